//! Exponentials, logarithms and what is made of them in one pass over a register.
//!
//! Each does, operation by operation, what its expansion ([`decompose`]) does on a processor
//! that rounds products before it adds to them, so a value has the same bits whether it is computed in
//! a vector, alone, or by a kernel that was expanded.

use super::frame::{Chunk, Frame, STEP, registers};
use super::ops::VectorOp;
use std::array::from_fn;
use std::ops::{Add, Div, Mul, Sub};
use zyx_core::decompose::coefficients::{ERF_P, ERF_Q, SINGLE, TANH_P, TANH_Q};
use zyx_core::ir::interp::scalar::Fn1;
use zyx_core::{DType, UnaryOp};

/// Lanes that intermediate results are kept in registers of.
const WIDE: usize = 8;

/// A few lanes of floats.
#[derive(Clone, Copy)]
struct Lanes<const N: usize>([f32; N]);

macro_rules! arithmetic {
    ($($name:ident $f:ident $op:tt;)*) => {
        $(impl<const N: usize> $name for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, y: Self) -> Self {
                Lanes(from_fn(|i| self.0[i] $op y.0[i]))
            }
        }
        impl<const N: usize> $name<f32> for Lanes<N> {
            type Output = Self;
            #[inline(always)]
            fn $f(self, y: f32) -> Self {
                Lanes(self.0.map(|x| x $op y))
            }
        })*
    };
}

arithmetic! { Add add +; Sub sub -; Mul mul *; Div div /; }

impl<const N: usize> Lanes<N> {
    /// Within bounds; NaN stays.
    #[inline(always)]
    fn clamp(self, low: f32, high: f32) -> Self {
        let x = self.0.map(|x| if low > x { low } else { x });
        Lanes(x.map(|x| if high < x { high } else { x }))
    }

    /// The polynomial with these coefficients, ascending.
    #[inline(always)]
    fn polynomial<const K: usize>(self, coefficients: &[f32; K]) -> Self {
        let mut sum = Lanes([coefficients[K - 1]; N]);
        for &c in coefficients[..K - 1].iter().rev() {
            sum = sum * self + c;
        }
        sum
    }

    #[inline(always)]
    fn bits(self, f: impl Fn(u32) -> u32) -> Self {
        Lanes(self.0.map(|x| f32::from_bits(f(x.to_bits()))))
    }

    /// `if cond(self) { yes } else { no }`
    #[inline(always)]
    fn choose(self, cond: impl Fn(f32) -> bool, yes: Self, no: Self) -> Self {
        Lanes(from_fn(|i| if cond(self.0[i]) { yes.0[i] } else { no.0[i] }))
    }
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
fn split_exponent<const N: usize>(scaled: Lanes<N>, less: u32) -> (Lanes<N>, Lanes<N>) {
    let shifted = scaled + SINGLE.magic as f32;
    let one = (BIAS - less) << FRACTION;
    let power = shifted.bits(|x| (x << FRACTION).wrapping_add(one));
    (shifted - SINGLE.magic as f32, power)
}

/// `x - n * scale * ln 2`
#[inline(always)]
fn minus_ln2<const N: usize>(x: Lanes<N>, n: Lanes<N>, scale: f64) -> Lanes<N> {
    let r = n * (-scale * LN2[0]) as f32 + x;
    n * (-scale * LN2[1]) as f32 + r
}

#[inline(always)]
fn exp<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 7] = scaled(SINGLE.exp, 0.5);
    let x = x.clamp((2.0 * HALF_EXP[0]) as f32, (2.0 * HALF_EXP[1]) as f32);
    let (n, power) = split_exponent(x * (0.5 * LOG2_E) as f32, 0);
    let root = minus_ln2(x, n, 2.0).polynomial(&P) * power;
    root * root
}

#[inline(always)]
fn exp2<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 7] = scaled(SINGLE.exp2, 0.5);
    let [low, high] = HALF_EXP.map(|x| (2.0 * x * LOG2_E) as f32);
    let x = x.clamp(low, high);
    let (n, power) = split_exponent(x * 0.5, 0);
    let root = (n * -2.0 + x).polynomial(&P) * power;
    root * root
}

#[inline(always)]
fn expm1<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 6] = narrow(SINGLE.expm1);
    const TINY: f32 = 1.0 / (1u64 << 60) as f32;
    let clamped = x.clamp(-(FRACTION as f32), (2.0 * HALF_EXP[1] - 1.0) as f32);
    let (n, power) = split_exponent(clamped * LOG2_E as f32, 1);
    let r = minus_ln2(clamped, n, 1.0);
    let small = r * r * r.polynomial(&P) + r;
    let y = power * small + (power - 0.5);
    x.choose(|x| x.abs() < TINY, x, y + y)
}

#[inline(always)]
fn log<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 9] = narrow(SINGLE.log);
    const SCALE: f32 = (1u32 << FRACTION) as f32;
    let is_small = |x| x < SINGLE.min_normal as f32;
    let normal = x.choose(is_small, x * SCALE, x);
    let zero = Lanes([0.0; N]);
    let shift = x.choose(is_small, zero - FRACTION as f32, zero);
    let exponent = |x: u32| (x as i32).wrapping_sub(SINGLE.sqrt_half_bits as i32) >> FRACTION;
    let f = normal.bits(|x| x.wrapping_sub((exponent(x) << FRACTION) as u32)) - 1.0;
    let e = Lanes(normal.0.map(|x| exponent(x.to_bits()) as f32)) + shift;
    let square = f * f;
    let tail = square * -0.5 + square * f * f.polynomial(&P);
    let tail = e * LN2[1] as f32 + tail;
    let y = e * LN2[0] as f32 + (f + tail);
    let y = x.choose(|x| x < f32::INFINITY, y, x);
    let [infinite, nan] = [f32::NEG_INFINITY, f32::NAN].map(|x| Lanes([x; N]));
    x.choose(|x| 0.0 < x, y, x.choose(|x| x == 0.0, infinite, nan))
}

/// `x * P(x^2) / Q(x^2)` up to the bound, then 1 with the sign of `x`.
#[inline(always)]
fn odd_rational<const N: usize, const K: usize>(
    x: Lanes<N>,
    bound: f64,
    [p, q]: [&[f32; K]; 2],
) -> Lanes<N> {
    let most = (bound * bound) as f32;
    let y = Lanes((x * x).0.map(|y| if most < y { most } else { y }));
    (x * (y.polynomial(p) / y.polynomial(q))).clamp(-1.0, 1.0)
}

#[inline(always)]
fn tanh<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 5] = narrow(&TANH_P);
    const Q: [f32; 5] = narrow(&TANH_Q);
    odd_rational(x, 9.0, [&P, &Q])
}

#[inline(always)]
fn erf<const N: usize>(x: Lanes<N>) -> Lanes<N> {
    const P: [f32; 6] = narrow(&ERF_P);
    const Q: [f32; 6] = narrow(&ERF_Q);
    odd_rational(x, 3.92, [&P, &Q])
}

/// A function of a register.
#[inline(always)]
fn each(frame: &mut Frame, [d, a, ..]: [u32; 4], f: impl Fn(Lanes<WIDE>) -> Lanes<WIDE>) {
    let n = frame.chunks;
    let [x, z] = registers(&mut frame.w32, n, [a, d]);
    for (x, z) in x.iter().zip(z) {
        let (x, mut to): (Chunk<u32>, Chunk<u32>) = (x.get(), [0; STEP]);
        for (x, to) in x.as_chunks::<WIDE>().0.iter().zip(to.as_chunks_mut::<WIDE>().0) {
            *to = f(Lanes(x.map(f32::from_bits))).0.map(f32::to_bits);
        }
        z.set(to);
    }
}

macro_rules! rows {
    ($op:expr, $($name:ident $f:ident)*) => {
        match $op {
            $(UnaryOp::$name => Some((
                |frame: &mut Frame, r: [u32; 4]| each(frame, r, $f),
                |x: u64| u64::from($f(Lanes([f32::from_bits(x as u32)])).0[0].to_bits()),
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

/// Whether there is such a function.
pub(crate) fn computes(op: UnaryOp, dtype: DType) -> bool {
    row(op, dtype).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::frame::Sizes;
    use crate::config::Config;
    use zyx_core::decompose::Expand;
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
