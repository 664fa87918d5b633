//! Operations on whole registers: small loops over chunks, one per operation and type, which the
//! compiler makes vector instructions of.
//!
//! Each equals `eval` of the op table on every lane, as the scalar operations of the interpreter
//! do (tests of single ops and casts compare them), but for the sign of a zero that `max` and `min` give and the bits of
//! NaN. What has no row here runs lane by lane.

use super::LANES;
use super::frame::{Chunk, Frame, STEP, Word, no_such_register, operands, registers};
use std::array::from_fn;
use zyx_core::{BinaryOp, DType, UnaryOp};

/// An operation: the destination, then operands, as first chunks of registers or numbers of
/// scalars.
pub(super) type VectorOp = fn(&mut Frame, [u32; 4]);

#[inline(always)]
fn map1<W: Word>(frame: &mut Frame, [d, a, ..]: [u32; 4], f: impl Fn(W) -> W) {
    let n = frame.chunks;
    let [x, z] = registers(W::file(frame), n, [a, d]);
    for (x, z) in x.iter().zip(z) {
        z.set(x.get().map(&f));
    }
}

#[inline(always)]
fn map2<W: Word>(frame: &mut Frame, [d, a, b, _]: [u32; 4], f: impl Fn(W, W) -> W) {
    let n = frame.chunks;
    let [x, y, z] = registers(W::file(frame), n, [a, b, d]);
    for ((x, y), z) in x.iter().zip(y).zip(z) {
        let (x, y) = (x.get(), y.get());
        z.set(from_fn(|i| f(x[i], y[i])));
    }
}

/// As [`map2`] of `f32`, one of whose operands may be a row of memory ([`takes_rows`]).
#[inline(always)]
fn rows2(frame: &mut Frame, [d, a, b, _]: [u32; 4], f: impl Fn(u32, u32) -> u32) {
    let ([x, y], z) = operands(frame, [a, b], d);
    for (i, z) in z.iter().enumerate() {
        // SAFETY: operands are registers of as many chunks as there are of the result, or a row of memory
        // of which as many can be read.
        let [x, y] = [x, y].map(|p| unsafe { p.wrapping_add(i).read_unaligned() });
        z.set(from_fn(|i| f(x[i], y[i])));
    }
}

/// As [`map2`], with three operands.
#[inline(always)]
fn map3<W: Word>(frame: &mut Frame, [d, a, b, c]: [u32; 4], f: impl Fn(W, W, W) -> W) {
    let n = frame.chunks;
    let [x, y, z, to] = registers(W::file(frame), n, [a, b, c, d]);
    for (((x, y), z), to) in x.iter().zip(y).zip(z).zip(to) {
        let (x, y, z) = (x.get(), y.get(), z.get());
        to.set(from_fn(|i| f(x[i], y[i], z[i])));
    }
}

/// A comparison: truth values of two operands.
#[inline(always)]
fn compare<W: Word>(frame: &mut Frame, r: [u32; 4], f: impl Fn(W, W) -> bool) {
    let n = frame.chunks;
    let Some((file, bools)) = W::with_bools(frame) else {
        return map2::<u8>(frame, r, |x, y| f(W::of(x.bits()), W::of(y.bits())) as u8);
    };
    let [d, a, b, _] = r;
    let ([x, y], [z]) = (registers(file, n, [a, b]), registers(bools, n, [d]));
    for ((x, y), z) in x.iter().zip(y).zip(z) {
        let (x, y) = (x.get(), y.get());
        z.set(from_fn(|i| f(x[i], y[i]) as u8));
    }
}

fn choose<W: Word>(frame: &mut Frame, [d, c, a, b]: [u32; 4]) {
    let n = frame.chunks;
    let Some((file, bools)) = W::with_bools(frame) else {
        return map3::<u8>(frame, [d, c, a, b], |c, x, y| if c != 0 { x } else { y });
    };
    let ([c], [x, y, z]) = (registers(bools, n, [c]), registers(file, n, [a, b, d]));
    for (((x, y), c), z) in x.iter().zip(y).zip(c).zip(z) {
        let (x, y, c) = (x.get(), y.get(), c.get());
        z.set(from_fn(|i| if c[i] != 0 { x[i] } else { y[i] }));
    }
}

/// A conversion between words of different widths.
#[inline(always)]
fn convert<A: Word, B: Word>(frame: &mut Frame, [d, a, ..]: [u32; 4], f: impl Fn(A) -> B) {
    for c in 0..frame.chunks {
        let Some(x) = A::file(frame).get(a as usize + c) else { no_such_register() };
        let z: Chunk<B> = x.map(&f);
        let Some(to) = B::file(frame).get_mut(d as usize + c) else { no_such_register() };
        *to = z;
    }
}

#[inline(always)]
fn spread<W: Word>(frame: &mut Frame, [d, x, ..]: [u32; 4]) {
    let (n, x) = (frame.chunks, W::of(frame.scalars[x as usize]));
    let [z] = registers(W::file(frame), n, [d]);
    z.iter().for_each(|z| z.set([x; STEP]));
}

/// The lanes of a register combined to a scalar, upper half into lower.
#[inline(always)]
fn fold<W: Word>(frame: &mut Frame, [d, a, lanes, _]: [u32; 4], f: impl Fn(W, W) -> W) {
    let mut all = [W::default(); LANES];
    let mut n = lanes as usize;
    all[..n].copy_from_slice(&frame.lanes::<W>(a)[..n]);
    while n > 1 {
        n /= 2;
        let (low, high) = all.split_at_mut(n);
        for (x, &y) in low.iter_mut().zip(&*high) {
            *x = f(*x, y);
        }
    }
    frame.scalars[d as usize] = all[0].bits();
}

fn f32s(f: impl Fn(f32, f32) -> f32) -> impl Fn(u32, u32) -> u32 {
    move |x, y| f(f32::from_bits(x), f32::from_bits(y)).to_bits()
}

fn f64s(f: impl Fn(f64, f64) -> f64) -> impl Fn(u64, u64) -> u64 {
    move |x, y| f(f64::from_bits(x), f64::from_bits(y)).to_bits()
}

/// `f` on numbers kept in words of the same width.
macro_rules! float_rows {
    ($op:expr, $word:ty, $float:ty, $map:ident, $numbers:ident) => {{
        type F = $float;
        fn at(x: $word) -> F {
            F::from_bits(x)
        }
        Some(match $op {
            BinaryOp::Add => |m, r| $map(m, r, $numbers(|x, y| x + y)),
            BinaryOp::Sub => |m, r| $map(m, r, $numbers(|x, y| x - y)),
            BinaryOp::Mul => |m, r| $map(m, r, $numbers(|x, y| x * y)),
            BinaryOp::Div => |m, r| $map(m, r, $numbers(|x, y| x / y)),
            BinaryOp::Max => |m, r| $map(m, r, $numbers(|x, y| larger!(x, y))),
            BinaryOp::Min => |m, r| $map(m, r, $numbers(|x, y| smaller!(x, y))),
            BinaryOp::Lt => |m, r| compare::<$word>(m, r, |x, y| at(x) < at(y)),
            BinaryOp::Le => |m, r| compare::<$word>(m, r, |x, y| at(x) <= at(y)),
            BinaryOp::Eq => |m, r| compare::<$word>(m, r, |x, y| at(x) == at(y)),
            BinaryOp::Ne => |m, r| compare::<$word>(m, r, |x, y| at(x) != at(y)),
            _ => return None,
        })
    }};
}

/// The larger of two floats, NaN if either is.
macro_rules! larger {
    ($x:expr, $y:expr) => {{
        let z = if $x > $y { $x } else { $y };
        if $x.is_nan() { $x } else { z }
    }};
}
macro_rules! smaller {
    ($x:expr, $y:expr) => {{
        let z = if $x < $y { $x } else { $y };
        if $x.is_nan() { $x } else { z }
    }};
}

/// Operations on integers that depend on their sign.
macro_rules! signed_rows {
    ($op:expr, $word:ident, $int:ident) => {{
        type I = $int;
        Some(match $op {
            BinaryOp::Max => |m, r| map2::<$word>(m, r, |x, y| (x as I).max(y as I) as $word),
            BinaryOp::Min => |m, r| map2::<$word>(m, r, |x, y| (x as I).min(y as I) as $word),
            BinaryOp::Lt => |m, r| compare::<$word>(m, r, |x, y| (x as I) < y as I),
            BinaryOp::Le => |m, r| compare::<$word>(m, r, |x, y| x as I <= y as I),
            _ => return words!($op, $word),
        })
    }};
}

/// Operations that mean the same on signed and unsigned integers.
macro_rules! words {
    ($op:expr, $word:ident) => {{
        Some(match $op {
            BinaryOp::Add => |m, r| map2(m, r, $word::wrapping_add),
            BinaryOp::Sub => |m, r| map2(m, r, $word::wrapping_sub),
            BinaryOp::Mul => |m, r| map2(m, r, $word::wrapping_mul),
            _ => return bits!($op, $word),
        })
    }};
}

/// Operations on bits alone.
macro_rules! bits {
    ($op:expr, $word:ident) => {
        Some(match $op {
            BinaryOp::And => |m, r| map2::<$word>(m, r, |x, y| x & y),
            BinaryOp::Or => |m, r| map2::<$word>(m, r, |x, y| x | y),
            BinaryOp::Xor => |m, r| map2::<$word>(m, r, |x, y| x ^ y),
            BinaryOp::Eq => |m, r| compare::<$word>(m, r, |x, y| x == y),
            BinaryOp::Ne => |m, r| compare::<$word>(m, r, |x, y| x != y),
            _ => return None,
        })
    };
}

/// Whether an operand of the loop that [`binary`] gives may be a row of memory.
pub(super) fn takes_rows(op: BinaryOp, dtype: DType) -> bool {
    use BinaryOp::{Add, Div, Max, Min, Mul, Sub};
    dtype == DType::F32 && matches!(op, Add | Sub | Mul | Div | Max | Min)
}

/// A binary op on vectors of `dtype`.
pub(super) fn binary(op: BinaryOp, dtype: DType) -> Option<VectorOp> {
    match dtype {
        DType::F32 => float_rows!(op, u32, f32, rows2, f32s),
        DType::F64 => float_rows!(op, u64, f64, map2, f64s),
        DType::I32 if op == BinaryOp::Shr => {
            Some(|m, r| map2::<u32>(m, r, |x, y| ((x as i32) >> y.min(31)) as u32))
        }
        DType::I32 | DType::U32 if op == BinaryOp::Shl => {
            Some(|m, r| map2::<u32>(m, r, |x, y| if y < 32 { x << y } else { 0 }))
        }
        DType::U32 if op == BinaryOp::Shr => {
            Some(|m, r| map2::<u32>(m, r, |x, y| if y < 32 { x >> y } else { 0 }))
        }
        DType::I32 => signed_rows!(op, u32, i32),
        DType::U32 => signed_rows!(op, u32, u32),
        DType::I64 => signed_rows!(op, u64, i64),
        DType::U64 => signed_rows!(op, u64, u64),
        DType::Bool => match op {
            BinaryOp::Add | BinaryOp::Max => binary(BinaryOp::Or, dtype),
            BinaryOp::Mul | BinaryOp::Min => binary(BinaryOp::And, dtype),
            _ => bits!(op, u8),
        },
        DType::U8 | DType::I8 => bits!(op, u8),
        DType::U16 | DType::I16 => bits!(op, u16),
        DType::F16 | DType::BF16 => None,
    }
}

/// A shift of all lanes by one scalar, the second operand: one instruction on vectors everywhere, as
/// shifts by lanes are not.
pub(super) fn shift(op: BinaryOp, dtype: DType) -> Option<VectorOp> {
    #[inline(always)]
    fn by(frame: &mut Frame, r: [u32; 4], f: impl Fn(u32, u32) -> u32, beyond: fn(u32) -> u32) {
        let distance = frame.scalars[r[2] as usize] as u32;
        match distance {
            0..32 => map1::<u32>(frame, r, |x| f(x, distance)),
            _ => map1::<u32>(frame, r, beyond),
        }
    }
    Some(match (op, dtype) {
        (BinaryOp::Shl, DType::I32 | DType::U32) => |m, r| by(m, r, |x, n| x << n, |_| 0),
        (BinaryOp::Shr, DType::U32) => |m, r| by(m, r, |x, n| x >> n, |_| 0),
        (BinaryOp::Shr, DType::I32) => {
            |m, r| by(m, r, |x, n| ((x as i32) >> n) as u32, |x| ((x as i32) >> 31) as u32)
        }
        _ => return None,
    })
}

/// `max` and `min` with a scalar that is no NaN, the second operand.
pub(super) fn clamp(op: BinaryOp, dtype: DType) -> Option<VectorOp> {
    #[inline(always)]
    fn by(frame: &mut Frame, r: [u32; 4], f: impl Fn(f32, f32) -> f32) {
        let bound = f32::from_bits(frame.scalars[r[2] as usize] as u32);
        map1::<u32>(frame, r, |x| f(f32::from_bits(x), bound).to_bits());
    }
    Some(match (op, dtype) {
        (BinaryOp::Max, DType::F32) => |m, r| by(m, r, |x, c| if c > x { c } else { x }),
        (BinaryOp::Min, DType::F32) => |m, r| by(m, r, |x, c| if c < x { c } else { x }),
        _ => return None,
    })
}

/// Starting with the first operand, times the second plus each of these scalars in turn, each rounded as if alone: a
/// polynomial by Horner's rule.
pub(super) fn polynomial(frame: &mut Frame, [d, a, b, _]: [u32; 4], coefficients: &[u32]) {
    let n = frame.chunks;
    let Frame { scalars, w32, .. } = frame;
    let [start, x, z] = registers(w32, n, [a, b, d]);
    for ((start, x), z) in start.iter().zip(x).zip(z) {
        let x = x.get().map(f32::from_bits);
        let mut sum = start.get().map(f32::from_bits);
        for &c in coefficients {
            let c = f32::from_bits(scalars[c as usize] as u32);
            sum = from_fn(|i| sum[i] * x[i] + c);
        }
        z.set(sum.map(f32::to_bits));
    }
}

/// How a product enters the sum or difference that is its only use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Product {
    Plus,
    Minus,
    /// Subtracted from the other operand.
    From,
}

/// A product of the first two operands and the third in one pass, each rounded as if alone.
pub(super) fn product(way: Product, dtype: DType) -> Option<VectorOp> {
    #[inline(always)]
    fn all(frame: &mut Frame, r: [u32; 4], f: impl Fn(f32, f32, f32) -> f32) {
        let at = f32::from_bits;
        map3::<u32>(frame, r, |x, y, z| f(at(x), at(y), at(z)).to_bits());
    }
    Some(match (way, dtype) {
        (Product::Plus, DType::F32) => |m, r| all(m, r, |x, y, z| x * y + z),
        (Product::Minus, DType::F32) => |m, r| all(m, r, |x, y, z| x * y - z),
        (Product::From, DType::F32) => |m, r| all(m, r, |x, y, z| z - x * y),
        _ => return None,
    })
}

/// From here on an `f32` is an integer.
const WHOLE: f32 = (1 << 23) as f32;

/// Rounds an `f32` to one of the integers around it, by how the nearest one compares with it.
#[inline(always)]
fn rounded(x: u32, correct: impl Fn(f32, f32) -> f32) -> u32 {
    let x = f32::from_bits(x);
    let nearest = ((x.abs() + WHOLE) - WHOLE).copysign(x);
    let r = nearest + correct(nearest, x);
    // The sign of a zero is that of `x`, and so is NaN's.
    (if x.abs() < WHOLE { r } else { x }).copysign(x).to_bits()
}

/// A unary op on vectors of `dtype`.
pub(super) fn unary(op: UnaryOp, dtype: DType) -> Option<VectorOp> {
    const SIGN: u32 = 1 << 31;
    Some(match (op, dtype) {
        (UnaryOp::Neg, DType::F32) => |m, r| map1::<u32>(m, r, |x| x ^ SIGN),
        (UnaryOp::Abs, DType::F32) => |m, r| map1::<u32>(m, r, |x| x & !SIGN),
        (UnaryOp::Recip, DType::F32) => {
            |m, r| map1::<u32>(m, r, |x| (1.0 / f32::from_bits(x)).to_bits())
        }
        (UnaryOp::Sqrt, DType::F32) => {
            |m, r| map1::<u32>(m, r, |x| f32::from_bits(x).sqrt().to_bits())
        }
        (UnaryOp::Round, DType::F32) => |m, r| map1::<u32>(m, r, |x| rounded(x, |_, _| 0.0)),
        (UnaryOp::Floor, DType::F32) => {
            |m, r| map1::<u32>(m, r, |x| rounded(x, |n, x| if n > x { -1.0 } else { 0.0 }))
        }
        (UnaryOp::Ceil, DType::F32) => {
            |m, r| map1::<u32>(m, r, |x| rounded(x, |n, x| if n < x { 1.0 } else { 0.0 }))
        }
        (UnaryOp::Trunc, DType::F32) => |m, r| {
            map1::<u32>(m, r, |x| {
                rounded(x, |n, x| if n.abs() > x.abs() { -1f32.copysign(x) } else { 0.0 })
            });
        },
        (UnaryOp::Neg, DType::F64) => |m, r| map1::<u64>(m, r, |x| x ^ (1 << 63)),
        (UnaryOp::Abs, DType::F64) => |m, r| map1::<u64>(m, r, |x| x & !(1 << 63)),
        (UnaryOp::Recip, DType::F64) => {
            |m, r| map1::<u64>(m, r, |x| (1.0 / f64::from_bits(x)).to_bits())
        }
        (UnaryOp::Sqrt, DType::F64) => {
            |m, r| map1::<u64>(m, r, |x| f64::from_bits(x).sqrt().to_bits())
        }
        (UnaryOp::Not, DType::Bool) => |m, r| map1::<u8>(m, r, |x| x ^ 1),
        (UnaryOp::Not, DType::I32 | DType::U32) => |m, r| map1::<u32>(m, r, |x| !x),
        (UnaryOp::Not, DType::I64 | DType::U64) => |m, r| map1::<u64>(m, r, |x| !x),
        (UnaryOp::Neg, DType::I32 | DType::U32) => |m, r| map1::<u32>(m, r, |x| x.wrapping_neg()),
        (UnaryOp::Neg, DType::I64 | DType::U64) => |m, r| map1::<u64>(m, r, |x| x.wrapping_neg()),
        (UnaryOp::Abs, DType::I32) => {
            |m, r| map1::<u32>(m, r, |x| (x as i32).wrapping_abs() as u32)
        }
        _ => return None,
    })
}

/// `where` on elements of `1 << width` bytes.
pub(super) fn select(width: u8) -> VectorOp {
    [choose::<u8>, choose::<u16>, choose::<u32>, choose::<u64>][width as usize]
}

/// A scalar in all lanes.
pub(super) fn splat(width: u8) -> VectorOp {
    [spread::<u8>, spread::<u16>, spread::<u32>, spread::<u64>][width as usize]
}

/// A register copied to another.
pub(super) fn copy(width: u8) -> VectorOp {
    match width {
        0 => |m, r| map1::<u8>(m, r, |x| x),
        1 => |m, r| map1::<u16>(m, r, |x| x),
        2 => |m, r| map1::<u32>(m, r, |x| x),
        _ => |m, r| map1::<u64>(m, r, |x| x),
    }
}

/// A conversion of vectors.
pub(super) fn cast(from: DType, to: DType) -> Option<VectorOp> {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    Some(match (from, to) {
        (I32, F32) => |m, r| map1::<u32>(m, r, |x| (x as i32 as f32).to_bits()),
        (U32, F32) => |m, r| map1::<u32>(m, r, |x| (x as f32).to_bits()),
        (F32, I32) => |m, r| map1::<u32>(m, r, |x| f32::from_bits(x) as i32 as u32),
        (I32, U32) | (U32, I32) => copy(2),
        (I64, U64) | (U64, I64) => copy(3),
        (U8 | Bool, I8) | (I8 | Bool, U8) => copy(0),
        (I16, U16) | (U16, I16) => copy(1),
        (Bool, F32) => |m, r| convert(m, r, |x: u8| (x as f32).to_bits()),
        (U8, F32) => |m, r| convert(m, r, |x: u8| (x as f32).to_bits()),
        (Bool | U8, I32 | U32) => |m, r| convert(m, r, |x: u8| x as u32),
        (I8, I32 | U32) => |m, r| convert(m, r, |x: u8| x as i8 as u32),
        (U16, I32 | U32) => |m, r| convert(m, r, |x: u16| x as u32),
        (I16, I32 | U32) => |m, r| convert(m, r, |x: u16| x as i16 as u32),
        (Bool | U8, I64 | U64) => |m, r| convert(m, r, |x: u8| x as u64),
        (I32 | U32, U8 | I8) => |m, r| convert(m, r, |x: u32| x as u8),
        (I32 | U32, U16 | I16) => |m, r| convert(m, r, |x: u32| x as u16),
        (I64 | U64, U8 | I8) => |m, r| convert(m, r, |x: u64| x as u8),
        (I64 | U64, I32 | U32) => |m, r| convert(m, r, |x: u64| x as u32),
        (I32, I64 | U64) => |m, r| convert(m, r, |x: u32| x as i32 as u64),
        (U32, I64 | U64) => |m, r| convert(m, r, |x: u32| x as u64),
        (I32, F64) => |m, r| convert(m, r, |x: u32| (x as i32 as f64).to_bits()),
        (I64, F32) => |m, r| convert(m, r, |x: u64| (x as i64 as f32).to_bits()),
        (F32, F64) => |m, r| convert(m, r, |x: u32| (f32::from_bits(x) as f64).to_bits()),
        (F64, F32) => |m, r| convert(m, r, |x: u64| (f64::from_bits(x) as f32).to_bits()),
        (F32, Bool) => |m, r| convert(m, r, |x: u32| (f32::from_bits(x) != 0.0) as u8),
        (I32 | U32, Bool) => |m, r| convert(m, r, |x: u32| (x != 0) as u8),
        (BF16, F32) => |m, r| convert(m, r, |x: u16| u32::from(x) << 16),
        (F32, BF16) => |m, r| convert(m, r, bf16_bits),
        (F16, F32) => |m, r| convert(m, r, f32_of_f16),
        (F32, F16) => |m, r| convert(m, r, f16_bits),
        _ => return None,
    })
}

/// An `f32` rounded to the nearest `bf16`, ties to even.
#[inline(always)]
fn bf16_bits(x: u32) -> u16 {
    let odd = x >> 16 & 1;
    let rounded = (x.wrapping_add(0x7fff + odd) >> 16) as u16;
    let nan = (x >> 16) as u16 | 0x40;
    if x & 0x7fff_ffff > 0x7f80_0000 { nan } else { rounded }
}

/// The `f32` equal to an `f16`.
#[inline(always)]
fn f32_of_f16(x: u16) -> u32 {
    let (sign, magnitude) = (u32::from(x & 0x8000) << 16, u32::from(x & 0x7fff));
    // As if the exponent had the bias of an `f32`, then scaled by the difference: exact, and right
    // for subnormals, too.
    let scaled = f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23);
    let bits = scaled.to_bits();
    let huge = magnitude << 13 | 0x7f80_0000;
    (if magnitude >= 0x7c00 { huge } else { bits }) | sign
}

/// An `f32` rounded to the nearest `f16`, ties to even.
#[inline(always)]
fn f16_bits(x: u32) -> u16 {
    let (sign, magnitude) = ((x >> 16 & 0x8000) as u16, x & 0x7fff_ffff);
    // Normal: the exponent's bias changes, and what is cut off rounds.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_add((15u32.wrapping_sub(127) << 23).wrapping_add(0xfff + odd));
    let normal = (normal >> 13) as u16;
    // Subnormal: adding a half aligns the last place to that of the smallest number.
    let aligned = f32::from_bits(magnitude) + 0.5;
    let subnormal = aligned.to_bits().wrapping_sub(0.5f32.to_bits()) as u16;
    let nan = 0x7e00 | (magnitude >> 13) as u16 & 0x3ff;
    let finite = if magnitude < 113 << 23 { subnormal } else { normal };
    // From 65520 on the nearest is infinity.
    let bounded = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite };
    (if magnitude > 0x7f80_0000 { nan } else { bounded }) | sign
}

/// All lanes, a power of two, combined to a scalar: the destination, the register, the lanes.
pub(super) fn folded(op: BinaryOp, dtype: DType) -> Option<VectorOp> {
    Some(match (op, dtype) {
        (BinaryOp::Add, DType::F32) => |m, r| fold(m, r, f32s(|x, y| x + y)),
        (BinaryOp::Mul, DType::F32) => |m, r| fold(m, r, f32s(|x, y| x * y)),
        (BinaryOp::Max, DType::F32) => |m, r| fold(m, r, f32s(|x, y| larger!(x, y))),
        (BinaryOp::Min, DType::F32) => |m, r| fold(m, r, f32s(|x, y| smaller!(x, y))),
        (BinaryOp::Add, DType::F64) => |m, r| fold(m, r, f64s(|x, y| x + y)),
        (BinaryOp::Add, DType::I32 | DType::U32) => |m, r| fold(m, r, u32::wrapping_add),
        (BinaryOp::Add, DType::I64 | DType::U64) => |m, r| fold(m, r, u64::wrapping_add),
        _ => return None,
    })
}
