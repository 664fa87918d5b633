//! Quotients and square roots, correctly rounded on devices whose own are not.
//!
//! * In integers: the device's result is within eight units, so an integer near the exact one is
//!   known, and its remainder fits 32 bits although the dividend does not: arithmetic modulo 2^32
//!   gives it. The remainder corrects the integer and says how to round. Infinities, zeros and NaN
//!   are selected; subnormal operands are normalised first.
//! * Through `f64`, whose quotients and roots have more than twice the bits of those of `f32`.
//! * Where the device is exact for operands of usual size, only the others are done in integers,
//!   which is skipped where there are none.
//! * Where a compiler goes wrong if it finds a zero, the results for zeros are selected by the bits
//!   of the operands. Mesa's drivers for CPUs take a constant zero divided by anything, even by zero
//!   or NaN, for plain zero, and what is divided by a constant zero for anything at all.

use super::Expand;
use crate::caps::Rounding;
use crate::dtype::DType;
use crate::ir::Value;
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;

/// A positive number `m * 2^(field - 150)` with `m`, a `u32`, of 24 bits.
struct Parts {
    m: Value,
    field: Value,
}

/// Bits of an `f32`.
const INFINITY: i64 = 0x7f80_0000;
const NAN: i64 = 0x7fc0_0000;
const FRACTION: i64 = 0x7f_ffff;
const SIGN: i64 = 1 << 31;

/// The exponent field of 2^-60, and how many further ones there are up to that of 2^60.
const LEAST_FIELD: i64 = 67;
const FIELDS: i64 = 120;

impl Expand<'_> {
    /// `x / y` on floats.
    pub(super) fn quotient(&mut self, x: Value, y: Value) -> Value {
        let is_single = self.b.ty(x).dtype == DType::F32;
        match self.caps.quotients {
            Rounding::NonZero => self.quotient_of_zeros(x, y),
            Rounding::Usual if is_single => {
                let near = self.b.binary(BinaryOp::Div, x, y);
                let [ax, ay] = [x, y].map(|v| self.magnitude(v));
                let [x_far, y_far] = [ax, ay].map(|v| self.is_far(v));
                let fraction = self.by(BinaryOp::And, ay, FRACTION);
                let ones = self.by(BinaryOp::Eq, fraction, FRACTION);
                let far = self.binary(BinaryOp::Or, x_far, y_far);
                let far = self.binary(BinaryOp::Or, far, ones);
                self.unless(far, near, |e| e.quotient_in_integers(x, y))
            }
            Rounding::Double if is_single => {
                let [x, y] = [x, y].map(|v| self.b.cast(DType::F64, v));
                let quotient = self.b.binary(BinaryOp::Div, x, y);
                self.b.cast(DType::F32, quotient)
            }
            Rounding::Loose if is_single => self.quotient_in_integers(x, y),
            _ => self.b.binary(BinaryOp::Div, x, y),
        }
    }

    /// `x / y` of positive numbers from 2^-60 to 2^60, or of NaN, not necessarily rounded to nearest.
    pub(super) fn usual_quotient(&mut self, x: Value, y: Value) -> Value {
        match self.caps.quotients {
            Rounding::Usual | Rounding::NonZero => self.b.binary(BinaryOp::Div, x, y),
            _ => self.div(x, y),
        }
    }

    /// The square root of a float.
    pub(super) fn root(&mut self, x: Value) -> Value {
        let is_single = self.b.ty(x).dtype == DType::F32;
        match self.caps.roots {
            Rounding::Usual if is_single => {
                let near = self.b.unary(UnaryOp::Sqrt, x);
                let bits = self.b.bitcast(DType::U32, x);
                let far = self.is_far(bits);
                self.unless(far, near, |e| e.root_in_integers(x))
            }
            Rounding::Double if is_single => {
                let x = self.b.cast(DType::F64, x);
                let root = self.b.unary(UnaryOp::Sqrt, x);
                self.b.cast(DType::F32, root)
            }
            Rounding::Loose if is_single => self.root_in_integers(x),
            _ => self.b.unary(UnaryOp::Sqrt, x),
        }
    }

    /// Whether a number with these bits is not of usual size.
    fn is_far(&mut self, bits: Value) -> Value {
        let field = self.by(BinaryOp::Shr, bits, 23);
        let field = self.by(BinaryOp::Sub, field, LEAST_FIELD);
        let most = self.int(DType::U32, FIELDS, bits);
        self.lt(most, field)
    }

    /// The bits of an `f32` without its sign.
    fn magnitude(&mut self, x: Value) -> Value {
        let bits = self.b.bitcast(DType::U32, x);
        self.by(BinaryOp::And, bits, SIGN - 1)
    }

    /// The device's quotient where neither operand is zero; else what follows from their bits.
    fn quotient_of_zeros(&mut self, x: Value, y: Value) -> Value {
        let quotient = self.b.binary(BinaryOp::Div, x, y);
        let ty = self.b.ty(x);
        let [infinity, nan] = [f64::INFINITY, f64::NAN].map(|n| self.k(n, x));
        let [infinity, nan] = [infinity, nan].map(|v| self.bits(v));
        let [bx, by] = [x, y].map(|v| self.bits(v));
        let dtype = self.b.ty(bx).dtype;
        let rest = self.literal(Scalar::highest(dtype), x);
        let sign = self.literal(Scalar::lowest(dtype), x);
        let zero = self.int(dtype, 0, x);
        let [ax, ay] = [bx, by].map(|v| self.binary(BinaryOp::And, v, rest));
        let [x_zero, y_zero] = [ax, ay].map(|v| self.binary(BinaryOp::Eq, v, zero));
        let is_special = self.binary(BinaryOp::Or, x_zero, y_zero);
        let signs = self.binary(BinaryOp::Xor, bx, by);
        let signs = self.binary(BinaryOp::And, signs, sign);
        let size = self.select(y_zero, infinity, zero);
        let special = self.binary(BinaryOp::Or, signs, size);
        // One is zero, so these are the bits of the other: neither zero nor NaN?
        let other = self.binary(BinaryOp::Or, ax, ay);
        let is_some = self.binary(BinaryOp::Ne, other, zero);
        let is_number = self.binary(BinaryOp::Le, other, infinity);
        let is_number = self.binary(BinaryOp::And, is_some, is_number);
        let special = self.select(is_number, special, nan);
        let special = self.b.bitcast(ty.dtype, special);
        self.select(is_special, special, quotient)
    }

    /// A magnitude taken apart. One that is subnormal is a small integer, and as a float of that
    /// value normal. Of zero nothing is used.
    fn parts(&mut self, magnitude: Value) -> Parts {
        let is_small = self.by(BinaryOp::Lt, magnitude, 1 << 23);
        let whole = self.b.cast(DType::F32, magnitude);
        let whole = self.b.bitcast(DType::U32, whole);
        let bits = self.select(is_small, whole, magnitude);
        let fraction = self.by(BinaryOp::And, bits, FRACTION);
        let m = self.by(BinaryOp::Or, fraction, 1 << 23);
        let field = self.by(BinaryOp::Shr, bits, 23);
        let field = self.b.cast(DType::I32, field);
        let less = self.by(BinaryOp::Sub, field, 149);
        Parts { m, field: self.select(is_small, less, field) }
    }

    fn quotient_in_integers(&mut self, x: Value, y: Value) -> Value {
        let [bx, by] = [x, y].map(|v| self.b.bitcast(DType::U32, v));
        let sign = self.b.binary(BinaryOp::Xor, bx, by);
        let sign = self.by(BinaryOp::And, sign, SIGN);
        let [ax, ay] = [x, y].map(|v| self.magnitude(v));
        let (a, b) = (self.parts(ax), self.parts(ay));
        // The quotient has 24 bits if a smaller dividend is shifted by one more.
        let is_smaller = self.lt(a.m, b.m);
        let [shift, least] = [24, 23].map(|n| self.int(DType::U32, n, x));
        let shift = self.select(is_smaller, shift, least);
        let dividend = self.b.binary(BinaryOp::Shl, a.m, shift);
        let [scale, least] = [24f64, 23.0].map(|n| self.k(n.exp2(), x));
        let scale = self.select(is_smaller, scale, least);
        let [fa, fb] = [a.m, b.m].map(|v| self.b.cast(DType::F32, v));
        let near = self.b.binary(BinaryOp::Div, fa, fb);
        let near = self.mul(near, scale);
        let near = self.b.cast(DType::U32, near);
        let mut near = self.by(BinaryOp::Sub, near, 8);
        let product = self.mul(near, b.m);
        let mut rest = self.sub(dividend, product);
        for k in [8, 4, 2, 1] {
            let step = self.by(BinaryOp::Mul, b.m, k);
            (near, rest) = self.corrected(near, rest, k, step);
        }
        let twice = self.by(BinaryOp::Shl, rest, 1);
        let is_above = self.binary(BinaryOp::Le, b.m, twice);
        let less = self.sub(twice, b.m);
        let left = self.select(is_above, less, twice);
        let extended = self.extended(near, is_above, left);
        let field = self.sub(a.field, b.field);
        let bias = self.int(DType::I32, 127, x);
        let less = self.int(DType::I32, 126, x);
        let bias = self.select(is_smaller, less, bias);
        let field = self.add(field, bias);
        let bits = self.rounded_bits(extended, field);
        // What is not a quotient of two positive numbers.
        let [infinity, zero, nan] = [INFINITY, 0, NAN].map(|n| self.int(DType::U32, n, x));
        let [x_zero, y_zero] = [ax, ay].map(|v| self.by(BinaryOp::Eq, v, 0));
        let [x_inf, y_inf] = [ax, ay].map(|v| self.by(BinaryOp::Eq, v, INFINITY));
        let vanishes = self.binary(BinaryOp::Or, x_zero, y_inf);
        let explodes = self.binary(BinaryOp::Or, y_zero, x_inf);
        let bits = self.select(vanishes, zero, bits);
        let bits = self.select(explodes, infinity, bits);
        let bits = self.binary(BinaryOp::Or, bits, sign);
        let both = self.binary(BinaryOp::And, vanishes, explodes);
        let [x_nan, y_nan] = [ax, ay].map(|v| self.lt(infinity, v));
        let is_nan = self.binary(BinaryOp::Or, x_nan, y_nan);
        let is_nan = self.binary(BinaryOp::Or, is_nan, both);
        let bits = self.select(is_nan, nan, bits);
        self.b.bitcast(DType::F32, bits)
    }

    fn root_in_integers(&mut self, x: Value) -> Value {
        let bits = self.b.bitcast(DType::U32, x);
        let magnitude = self.magnitude(x);
        let Parts { m, field } = self.parts(magnitude);
        // x = m * 2^23 * 2^(field - 173): the last exponent has to be even.
        let shift = self.by(BinaryOp::And, field, 1);
        let shift = self.by(BinaryOp::Xor, shift, 1);
        let distance = self.b.cast(DType::U32, shift);
        let m = self.b.binary(BinaryOp::Shl, m, distance);
        let exponent = self.sub(field, shift);
        let exponent = self.by(BinaryOp::Sub, exponent, 173);
        let exponent = self.by(BinaryOp::Shr, exponent, 1);
        let field = self.by(BinaryOp::Add, exponent, 150);
        // sqrt(m * 2^23) = sqrt(2 m) * 2^11
        let float = self.b.cast(DType::F32, m);
        let [two, scale] = [2.0, 2048.0].map(|n| self.k(n, x));
        let twice = self.mul(float, two);
        let near = self.b.unary(UnaryOp::Sqrt, twice);
        let near = self.mul(near, scale);
        let near = self.b.cast(DType::U32, near);
        let mut near = self.by(BinaryOp::Sub, near, 8);
        let square = self.by(BinaryOp::Shl, m, 23);
        let product = self.mul(near, near);
        let mut rest = self.sub(square, product);
        for k in [8, 4, 2, 1] {
            // (near + k)^2 - near^2
            let step = self.by(BinaryOp::Mul, near, 2 * k);
            let step = self.by(BinaryOp::Add, step, k * k);
            (near, rest) = self.corrected(near, rest, k, step);
        }
        let is_above = self.lt(near, rest);
        let extended = self.extended(near, is_above, rest);
        let result = self.rounded_bits(extended, field);
        // Zeros and infinity are their own roots; negative numbers and NaN have none.
        let [infinity, nan] = [INFINITY, NAN].map(|n| self.int(DType::U32, n, x));
        let is_zero = self.by(BinaryOp::Eq, magnitude, 0);
        let is_infinite = self.binary(BinaryOp::Eq, bits, infinity);
        let is_itself = self.binary(BinaryOp::Or, is_zero, is_infinite);
        let is_invalid = self.lt(infinity, bits);
        let result = self.select(is_invalid, nan, result);
        let result = self.select(is_itself, bits, result);
        self.b.bitcast(DType::F32, result)
    }

    /// `near` moved up by `k`, and by `step` less of the remainder, if that is left.
    fn corrected(&mut self, near: Value, rest: Value, k: i64, step: Value) -> (Value, Value) {
        let [least, left] = [step, rest].map(|v| self.b.bitcast(DType::I32, v));
        let fits = self.binary(BinaryOp::Le, least, left);
        let (more, less) = (self.by(BinaryOp::Add, near, k), self.sub(rest, step));
        (self.select(fits, more, near), self.select(fits, less, rest))
    }

    /// 24 bits, the next one, and whether anything is left.
    fn extended(&mut self, m: Value, next: Value, left: Value) -> Value {
        let m = self.by(BinaryOp::Shl, m, 2);
        let next = self.bit(DType::U32, next);
        let next = self.by(BinaryOp::Shl, next, 1);
        let m = self.binary(BinaryOp::Or, m, next);
        let left = self.by(BinaryOp::Ne, left, 0);
        let left = self.bit(DType::U32, left);
        self.binary(BinaryOp::Or, m, left)
    }

    /// The bits of a positive number from its extended ones and its exponent field, which may be out
    /// of range.
    fn rounded_bits(&mut self, extended: Value, field: Value) -> Value {
        let [zero, one, most] = [0, 1, 26].map(|n| self.int(DType::I32, n, field));
        let down = self.sub(one, field);
        let down = self.binary(BinaryOp::Max, down, zero);
        let down = self.binary(BinaryOp::Min, down, most);
        let down = self.b.cast(DType::U32, down);
        let unit = self.int(DType::U32, 1, field);
        let mask = self.b.binary(BinaryOp::Shl, unit, down);
        let mask = self.by(BinaryOp::Sub, mask, 1);
        let lost = self.binary(BinaryOp::And, extended, mask);
        let lost = self.by(BinaryOp::Ne, lost, 0);
        let lost = self.bit(DType::U32, lost);
        let kept = self.b.binary(BinaryOp::Shr, extended, down);
        let kept = self.binary(BinaryOp::Or, kept, lost);
        let m = self.rounded(kept, 2);
        let high = self.binary(BinaryOp::Max, field, one);
        let high = self.by(BinaryOp::Sub, high, 1);
        let high = self.b.cast(DType::U32, high);
        let high = self.by(BinaryOp::Shl, high, 23);
        let bits = self.add(high, m);
        let last = self.int(DType::I32, 254, field);
        let overflows = self.lt(last, field);
        let infinity = self.int(DType::U32, INFINITY, field);
        self.select(overflows, infinity, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Caps;
    use crate::ir::{Access, Builder, Kernel, LoopKind, Op, verify_for};
    use crate::legalize::legalize;
    use crate::passes::property_tests::{Rng, run};
    use crate::passes::rebuild::Rebuild;

    const N: u64 = 1 << 16;

    /// Quotients, inverses and roots, four at once.
    fn kernel() -> Kernel {
        let mut b = Builder::new("quotients");
        let [p, q] = [0; 2].map(|_| b.param(DType::F32, N, Access::Read));
        let out = [0; 3].map(|_| b.param(DType::F32, N, Access::Write));
        let (len, lanes) = (b.index(N as i64 / 4), b.index(4));
        let i = b.open_loop(LoopKind::Parallel, 0, len);
        let i = b.binary(BinaryOp::Mul, i, lanes);
        let [x, y] = [p, q].map(|buffer| b.load_vector(buffer, i, 4));
        let quotient = b.binary(BinaryOp::Div, x, y);
        let (inverse, root) = (b.unary(UnaryOp::Recip, y), b.unary(UnaryOp::Sqrt, x));
        for (out, value) in out.into_iter().zip([quotient, inverse, root]) {
            b.store(out, i, value);
        }
        b.close();
        b.finish()
    }

    fn device(rounding: Rounding) -> Caps {
        let mut caps = Caps { quotients: rounding, roots: rounding, ..Caps::default() };
        (caps.vector_bytes, caps.masked) = (32, true);
        (caps.partial_integers, caps.partial_casts) = (true, true);
        caps
    }

    /// The kernel on a device that is off by up to three units; by that only where an operand is not
    /// of usual size, or where it is zero, if it promises as much.
    fn worsened(kernel: &Kernel, caps: &Caps) -> Kernel {
        let mut r = Rebuild::new(kernel);
        for (v, op, ty) in kernel.iter() {
            let new = r.copy(v);
            let (x, y) = match op {
                Op::Binary { op: BinaryOp::Div, x, y } => (r.get(x), r.get(y)),
                Op::Unary { op: UnaryOp::Sqrt, x } if caps.quotients != Rounding::NonZero => {
                    (r.get(x), r.get(x))
                }
                _ => continue,
            };
            if ty.dtype != DType::F32 {
                continue;
            }
            let mut e = Expand::new(&mut r.out, caps);
            let [ax, ay] = [x, y].map(|v| e.magnitude(v));
            let by = match caps.quotients {
                Rounding::NonZero => {
                    let [x_zero, y_zero] = [ax, ay].map(|v| e.by(BinaryOp::Eq, v, 0));
                    e.binary(BinaryOp::Or, x_zero, y_zero)
                }
                Rounding::Usual => {
                    let [x_far, y_far] = [ax, ay].map(|v| e.is_far(v));
                    e.binary(BinaryOp::Or, x_far, y_far)
                }
                _ => e.by(BinaryOp::Le, ax, i64::from(u32::MAX >> 1)),
            };
            let units = e.by(BinaryOp::Rem, ax, 7);
            let units = e.by(BinaryOp::Sub, units, 3);
            let zero = e.int(DType::U32, 0, x);
            let units = e.select(by, units, zero);
            let bits = e.b.bitcast(DType::U32, new);
            let bits = e.add(bits, units);
            let worse = e.b.bitcast(DType::F32, bits);
            r.set(v, worse);
        }
        r.out.finish()
    }

    /// Of all sizes, of about the size of one, with few bits set, and special.
    fn numbers(rng: &mut Rng) -> Vec<f32> {
        let special = [0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, 1e-45];
        let bits = |i: u64| {
            let bits = rng.next() as u32;
            match i % 6 {
                0 => special[(bits % 8) as usize].to_bits(),
                1 => bits & 0xffff_0000,
                2 => bits & 0x80ff_ffff,
                3 => bits | 0x7f_ffff,
                4 => bits,
                _ => bits & 0x83ff_ffff | 0x3c00_0000,
            }
        };
        (0..N).map(bits).map(f32::from_bits).collect()
    }

    #[test]
    fn corrected_results_are_exact() {
        let mut rng = Rng(11);
        let [xs, ys] = [0; 2].map(|_| numbers(&mut rng));
        let bytes = |all: &[f32]| all.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let empty = vec![0; 4 * N as usize];
        let buffers = [bytes(&xs), bytes(&ys), empty.clone(), empty.clone(), empty];
        for rounding in
            [Rounding::NonZero, Rounding::Usual, Rounding::Double, Rounding::Loose, Rounding::Exact]
        {
            let caps = device(rounding);
            let mut legal = legalize(&kernel(), &caps).unwrap();
            verify_for(&legal, &caps).unwrap();
            if rounding != Rounding::Exact {
                legal = worsened(&legal, &caps);
            }
            let results = run(&legal, &buffers, &[]);
            type Function = fn(f32, f32) -> f32;
            let functions: [Function; 3] = [|x, y| x / y, |_, y| 1.0 / y, |x, _| x.sqrt()];
            for (f, all) in functions.into_iter().zip(&results[2..]) {
                let all = Scalar::read_all(DType::F32, all);
                for ((&x, &y), got) in xs.iter().zip(&ys).zip(all) {
                    let (got, want) = (got.get::<f32>(), f(x, y));
                    let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                    assert!(same, "{rounding:?}: {x:?}, {y:?} give {got:?}, not {want:?}");
                }
            }
        }
    }
}
