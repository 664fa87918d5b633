//! Exponentials, logarithms and what is made of them in one pass over a register.
//!
//! Each does, operation by operation, what its expansion ([`decompose`]) does on a processor
//! that rounds products before it adds to them, so a value has the same bits whether it is computed in
//! a vector, alone, or by a kernel that was expanded.

use super::frame::{Frame, STEP, registers};
use super::ops::VectorOp;
use crate::config::Config;
use zyx_core::decompose::Expand;
use zyx_core::decompose::coefficients::{ERF_P, ERF_Q, SINGLE, TANH_P, TANH_Q};
use zyx_core::hal::Caps;
use zyx_core::ir::interp::scalar::Fn1;
use zyx_core::ir::{Kernel, Op, Value};
use zyx_core::{DType, UnaryOp};

/// Within bounds; NaN stays.
#[inline(always)]
fn clamp(x: f32, low: f32, high: f32) -> f32 {
    let x = if low > x { low } else { x };
    if high < x { high } else { x }
}

/// The polynomial with these coefficients, ascending.
#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    let (rest, last) = coefficients.split_at(N - 1);
    rest.iter().rev().fold(last[0], |sum, c| sum * x + c)
}

/// As `f32`.
const fn narrow<const N: usize>(x: &[f64]) -> [f32; N] {
    scaled(x, 1.0)
}

/// Those of a polynomial of the value times `scale`, as `f32`.
const fn scaled<const N: usize>(x: &[f64], scale: f64) -> [f32; N] {
    assert!(x.len() == N, "as many coefficients");
    let (mut all, mut power, mut i) = ([0.0; N], 1.0, 0);
    while i < N {
        all[i] = (x[i] * power) as f32;
        power *= scale;
        i += 1;
    }
    all
}

const FRACTION: u32 = SINGLE.fraction_bits as u32;
const BIAS: u32 = SINGLE.bias as u32;
const LN2: [f64; 2] = [SINGLE.ln2.0, SINGLE.ln2.1];
const HALF_EXP: [f64; 2] = [SINGLE.half_exp.0, SINGLE.half_exp.1];
const LOG2_E: f64 = std::f64::consts::LOG2_E;

/// A rounded integer, and two to its power over `1 << less`.
#[inline(always)]
fn split_exponent(scaled: f32, less: u32) -> (f32, f32) {
    let shifted = scaled + SINGLE.magic as f32;
    let power = (shifted.to_bits() << FRACTION).wrapping_add((BIAS - less) << FRACTION);
    (shifted - SINGLE.magic as f32, f32::from_bits(power))
}

/// `x - n * scale * ln 2`
#[inline(always)]
fn minus_ln2(x: f32, n: f32, scale: f64) -> f32 {
    let r = n * (-scale * LN2[0]) as f32 + x;
    n * (-scale * LN2[1]) as f32 + r
}

#[inline(always)]
fn exp(x: f32) -> f32 {
    const P: [f32; 7] = scaled(SINGLE.exp, 0.5);
    let x = clamp(x, (2.0 * HALF_EXP[0]) as f32, (2.0 * HALF_EXP[1]) as f32);
    let (n, power) = split_exponent(x * (0.5 * LOG2_E) as f32, 0);
    let root = polynomial(&P, minus_ln2(x, n, 2.0)) * power;
    root * root
}

#[inline(always)]
fn exp2(x: f32) -> f32 {
    const P: [f32; 7] = narrow(SINGLE.exp2);
    const MAGIC: f32 = SINGLE.magic as f32;
    let x = clamp(x, (2.0 * HALF_EXP[0] * LOG2_E) as f32, (2.0 * HALF_EXP[1] * LOG2_E) as f32);
    let (shifted, first) = (x + MAGIC, (x * 0.5 + MAGIC).to_bits());
    let second = shifted.to_bits().wrapping_sub(first);
    let power = |n: u32| f32::from_bits((n << FRACTION).wrapping_add(BIAS << FRACTION));
    polynomial(&P, x - (shifted - MAGIC)) * power(first) * power(second)
}

#[inline(always)]
fn expm1(x: f32) -> f32 {
    const P: [f32; 6] = narrow(SINGLE.expm1);
    const TINY: f32 = 1.0 / (1u64 << 60) as f32;
    let clamped = clamp(x, -(FRACTION as f32), (2.0 * HALF_EXP[1] - 1.0) as f32);
    let (n, power) = split_exponent(clamped * LOG2_E as f32, 1);
    let r = minus_ln2(clamped, n, 1.0);
    let small = r * r * polynomial(&P, r) + r;
    let y = power * small + (power - 0.5);
    if x.abs() < TINY { x } else { y + y }
}

#[inline(always)]
fn log(x: f32) -> f32 {
    const P: [f32; 9] = narrow(SINGLE.log);
    let is_small = x < SINGLE.min_normal as f32;
    let normal = if is_small { x * (1u32 << FRACTION) as f32 } else { x };
    let shift = if is_small { -(FRACTION as f32) } else { 0.0 };
    let bits = normal.to_bits() as i32;
    let exponent = bits.wrapping_sub(SINGLE.sqrt_half_bits as i32) >> FRACTION;
    let f = f32::from_bits(bits.wrapping_sub(exponent << FRACTION) as u32) - 1.0;
    let e = exponent as f32 + shift;
    let square = f * f;
    let tail = square * -0.5 + square * f * polynomial(&P, f);
    let tail = e * LN2[1] as f32 + tail;
    let y = e * LN2[0] as f32 + (f + tail);
    let y = if x < f32::INFINITY { y } else { x };
    let other = if x == 0.0 { f32::NEG_INFINITY } else { f32::NAN };
    if 0.0 < x { y } else { other }
}

/// `x * P(x^2) / Q(x^2)` up to the bound, then 1 with the sign of `x`.
#[inline(always)]
fn odd_rational<const N: usize>(x: f32, bound: f64, [p, q]: [&[f32; N]; 2]) -> f32 {
    let (y, most) = (x * x, (bound * bound) as f32);
    let y = if most < y { most } else { y };
    clamp(x * (polynomial(p, y) / polynomial(q, y)), -1.0, 1.0)
}

#[inline(always)]
fn tanh(x: f32) -> f32 {
    const P: [f32; 5] = narrow(&TANH_P);
    const Q: [f32; 5] = narrow(&TANH_Q);
    odd_rational(x, 9.0, [&P, &Q])
}

#[inline(always)]
fn erf(x: f32) -> f32 {
    const P: [f32; 6] = narrow(&ERF_P);
    const Q: [f32; 6] = narrow(&ERF_Q);
    odd_rational(x, 3.92, [&P, &Q])
}

/// A function of each lane of a register. The loop is what the compiler makes vector instructions of: it does not for
/// an array of results.
#[inline(always)]
fn each(frame: &mut Frame, [d, a, ..]: [u32; 4], f: impl Fn(f32) -> f32) {
    let n = frame.chunks;
    let [x, z] = registers(&mut frame.w32, n, [a, d]);
    for (x, z) in x.iter().zip(z) {
        let (x, mut to) = (x.get(), [0; STEP]);
        for (x, to) in x.iter().zip(&mut to) {
            *to = f(f32::from_bits(*x)).to_bits();
        }
        z.set(to);
    }
}

macro_rules! rows {
    ($op:expr, $($name:ident $f:ident)*) => {
        match $op {
            $(UnaryOp::$name => Some((
                |frame: &mut Frame, r: [u32; 4]| each(frame, r, $f),
                    |x: u64| u64::from($f(f32::from_bits(x as u32)).to_bits()),
            )),)*
            _ => None,
        }
    };
}

/// A function on vectors of `dtype`, and on one element.
pub(super) fn row(op: UnaryOp, dtype: DType) -> Option<(VectorOp, Fn1)> {
    match dtype {
        DType::F32 => rows!(op, Exp exp Exp2 exp2 Expm1 expm1 Log log Tanh tanh Erf erf),
        _ => None,
    }
}

/// A kernel with their expansions in place of functions, which the interpreter of the core rounds otherwise.
pub(crate) fn expanded(kernel: &Kernel, caps: &Caps) -> Kernel {
    let caps = Config::without_functions(caps.clone());
    let mut b = kernel.rebuild();
    let mut map: Vec<Value> = Vec::with_capacity(kernel.ops().len());
    for (_, op, ty) in kernel.iter() {
        map.push(match op.map(|x| map[x.idx()]) {
            Op::Unary { op, x } if computes(op, ty.dtype) => {
                Expand::new(&mut b, &caps).unary(op, x)
            }
            op => b.emit(op, ty),
        });
    }
    b.finish()
}

/// Whether there is such a function.
pub(crate) fn computes(op: UnaryOp, dtype: DType) -> bool {
    row(op, dtype).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::frame::Sizes;
    use std::array::from_fn;
    use zyx_core::ir::interp::{Options, interpret};
    use zyx_core::ir::{Access, Builder, LoopKind};

    /// Every function gives in vectors and alone the bits that its expansion has.
    #[test]
    fn functions_equal_their_expansions() {
        let caps = Config::without_functions(Config::default().caps(None));
        let mut inputs: Vec<f32> = (0..1 << 16).map(|i| f32::from_bits(i << 16 | 0x1234)).collect();
        inputs.extend((-4000..4000).map(|i| i as f32 * 0.03125));
        inputs.extend([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-45, 88.722_84, -103.97]);
        let mut tested = 0;
        for &op in UnaryOp::ALL {
            let Some((vector, scalar)) = row(op, DType::F32) else { continue };
            tested += 1;
            let mut b = Builder::new("expanded");
            let n = inputs.len() as u64;
            let from = b.param(DType::F32, n, Access::Read);
            let to = b.param(DType::F32, n, Access::Write);
            let len = b.index(n as i64);
            let i = b.open_loop(LoopKind::Serial, 0, len);
            let x = b.load(from, i);
            let y = Expand::new(&mut b, &caps).unary(op, x);
            b.store(to, i, y);
            b.close();
            let bytes: Vec<u8> = inputs.iter().flat_map(|x| x.to_le_bytes()).collect();
            let mut buffers = [bytes.clone(), bytes];
            interpret(&b.finish(), &mut buffers, &[], &Options::default()).unwrap();
            let expected = buffers[1].as_chunks::<4>().0.iter().map(|&x| f32::from_le_bytes(x));
            let expected: Vec<f32> = expected.collect();
            let mut frame = Frame::default();
            frame.reserve(&Sizes { chunks: 1, registers: [0, 0, 2, 0], ..Sizes::default() });
            frame.chunks = 1;
            for (xs, expected) in inputs.chunks(STEP).zip(expected.chunks(STEP)) {
                frame.w32[0] = from_fn(|i| xs.get(i).map_or(0, |x| x.to_bits()));
                vector(&mut frame, [1, 0, 0, 0]);
                for (i, (&x, &expected)) in xs.iter().zip(expected).enumerate() {
                    let alone = f32::from_bits(scalar(x.to_bits().into()) as u32);
                    let within = f32::from_bits(frame.w32[1][i]);
                    let bits = |y: f32| if y.is_nan() { None } else { Some(y.to_bits()) };
                    let all = [alone, within, expected];
                    assert!(
                        all.iter().all(|&y| bits(y) == bits(expected)),
                        "{op:?} of {x:e}: {all:?}"
                    );
                }
            }
        }
        assert_eq!(tested, 6);
    }
}
