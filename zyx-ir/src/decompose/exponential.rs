//! Exponentials, logarithms, hyperbolic functions and the error function.
//!
//! `exp` squares the root of its result: the root neither overflows nor becomes subnormal, so one
//! multiplication does the rounding at both ends of the range, and `2^n` needs no second factor.
//! Halving the argument costs nothing, being part of the constants it is multiplied with. The
//! `exp2` has to be exact at whole numbers, which a square is not: there the power of two is two factors. The
//! integer part is found by adding 1.5 times the weight of the last bit of the fraction, after
//! which the low bits of the sum are that integer.

use super::Expand;
use super::coefficients::{ERF_P, ERF_Q, TANH_P, TANH_Q, Table};
use crate::dtype::DType;
use crate::ir::Value;
use crate::ops::{BinaryOp, UnaryOp};

impl Expand<'_> {
    /// Splits `x * scale` in a rounded integer `n`, as a float, and `2^(n - less)`.
    pub(super) fn split_exponent(
        &mut self,
        t: &Table,
        x: Value,
        scale: f64,
        less: i64,
    ) -> (Value, Value) {
        let magic = self.k(t.magic, x);
        let shifted = if scale == 1.0 {
            self.add(x, magic)
        } else {
            let scale = self.k(scale, x);
            self.fma(x, scale, magic)
        };
        let n = self.sub(shifted, magic);
        // The integer sits in the low bits; shifted up it is the exponent field.
        let bits = self.bits(shifted);
        let exponent = self.shl(bits, t.fraction_bits);
        let one = self.int(self.b.ty(bits).dtype, (t.bias - less) << t.fraction_bits, x);
        let power = self.binary(BinaryOp::Add, exponent, one);
        (n, self.float(power))
    }

    /// `x - n * scale * ln 2`, with `ln 2` in two parts of which the first times `n` is exact.
    fn minus_ln2(&mut self, t: &Table, x: Value, n: Value, scale: f64) -> Value {
        let (high, low) = (self.k(-scale * t.ln2.0, x), self.k(-scale * t.ln2.1, x));
        let r = self.fma(n, high, x);
        self.fma(n, low, r)
    }

    /// The polynomial with these coefficients of half the value.
    fn polynomial_of_half(&mut self, coefficients: &[f64], x: Value) -> Value {
        let scaled: Vec<f64> =
            coefficients.iter().zip(0..).map(|(c, power)| c * 0.5f64.powi(power)).collect();
        self.polynomial(&scaled, x)
    }

    /// `e^(x / 2)`, with `x` clamped to where the square is neither zero nor infinite yet or just so.
    fn exp_root(&mut self, t: &Table, x: Value) -> Value {
        let x = self.clamp(x, 2.0 * t.half_exp.0, 2.0 * t.half_exp.1);
        let (n, power) = self.split_exponent(t, x, 0.5 * std::f64::consts::LOG2_E, 0);
        let r = self.minus_ln2(t, x, n, 2.0);
        let p = self.polynomial_of_half(t.exp, r);
        self.mul(p, power)
    }

    pub(super) fn exp(&mut self, t: &Table, x: Value) -> Value {
        let root = self.exp_root(t, x);
        self.mul(root, root)
    }

    pub(super) fn exp2(&mut self, t: &Table, x: Value) -> Value {
        let log2_e = std::f64::consts::LOG2_E;
        let x = self.clamp(x, 2.0 * t.half_exp.0 * log2_e, 2.0 * t.half_exp.1 * log2_e);
        self.exp2_sum(t, x, None)
    }

    /// `2^(x + rest)` for an `x` of at most twice the exponents of its dtype, and a small `rest`. Of a whole number it is
    /// exact. The power of two is a product of two, since it may be beyond the exponents that a factor has.
    pub(super) fn exp2_sum(&mut self, t: &Table, x: Value, rest: Option<Value>) -> Value {
        let (magic, half) = (self.k(t.magic, x), self.k(0.5, x));
        let shifted = self.add(x, magic);
        let n = self.sub(shifted, magic);
        let halved = self.fma(x, half, magic);
        let (whole, first) = (self.bits(shifted), self.bits(halved));
        let second = self.binary(BinaryOp::Sub, whole, first);
        let bias = self.int(self.b.ty(whole).dtype, t.bias << t.fraction_bits, x);
        let mut power = |exponent: Value| {
            let exponent = self.shl(exponent, t.fraction_bits);
            let bits = self.binary(BinaryOp::Add, exponent, bias);
            self.float(bits)
        };
        let (first, second) = (power(first), power(second));
        let r = self.sub(x, n);
        let r = rest.map_or(r, |rest| self.add(r, rest));
        let p = self.polynomial(t.exp2, r);
        let scaled = self.mul(p, first);
        self.mul(scaled, second)
    }

    pub(super) fn expm1(&mut self, t: &Table, x: Value) -> Value {
        // Below, the result is -1; above, infinite.
        let clamped = self.clamp(x, -(t.fraction_bits as f64), 2.0 * t.half_exp.1 - 1.0);
        let (n, power) = self.split_exponent(t, clamped, std::f64::consts::LOG2_E, 1);
        let r = self.minus_ln2(t, clamped, n, 1.0);
        let tail = self.polynomial(t.expm1, r);
        let square = self.mul(r, r);
        let small = self.fma(square, tail, r);
        // 2^n * small + (2^n - 1), at half scale so that 2^n stays finite.
        let half = self.k(0.5, x);
        let rest = self.sub(power, half);
        let y = self.fma(power, small, rest);
        let y = self.add(y, y);
        // Zero, of either sign, and what at half scale a device may take for zero.
        let (magnitude, least) = (self.abs(x), self.k((-60f64).exp2(), x));
        let is_tiny = self.lt(magnitude, least);
        self.select(is_tiny, x, y)
    }

    /// Exponent and `m - 1` of positive `x = m * 2^e`, `m` around 1 within a factor `sqrt(2)`.
    pub(super) fn split_float(&mut self, t: &Table, x: Value) -> (Value, Value) {
        let normal = self.k(t.min_normal, x);
        let is_small = self.lt(x, normal);
        let scale = self.k((t.fraction_bits as f64).exp2(), x);
        let scaled = self.mul(x, scale);
        let x = self.select(is_small, scaled, x);
        let (shift, zero) = (self.k(-(t.fraction_bits as f64), x), self.k(0.0, x));
        let shift = self.select(is_small, shift, zero);
        let bits = self.bits(x);
        let dtype = self.b.ty(bits).dtype;
        let root = self.int(dtype, t.sqrt_half_bits, x);
        let above = self.sub(bits, root);
        let e = self.shr(above, t.fraction_bits);
        let exponent = self.shl(e, t.fraction_bits);
        let m = self.sub(bits, exponent);
        let m = self.float(m);
        let float = self.b.ty(x).dtype;
        let e = self.b.cast(float, e);
        let e = self.add(e, shift);
        let one = self.k(1.0, x);
        (e, self.sub(m, one))
    }

    /// `log(1 + f)` minus `f`, for `f` as [`Expand::split_float`] gives it.
    fn log_tail(&mut self, t: &Table, f: Value) -> Value {
        let p = self.polynomial(t.log, f);
        let square = self.mul(f, f);
        let cube = self.mul(square, f);
        let tail = self.mul(cube, p);
        let minus_half = self.k(-0.5, f);
        self.fma(square, minus_half, tail)
    }

    /// The result where `x` is zero, negative, infinite or NaN, else `y`.
    fn log_edges(&mut self, x: Value, y: Value) -> Value {
        let (inf, zero) = (self.k(f64::INFINITY, x), self.k(0.0, x));
        let is_finite = self.lt(x, inf);
        let y = self.select(is_finite, y, x);
        let (minus_inf, nan) = (self.k(f64::NEG_INFINITY, x), self.k(f64::NAN, x));
        let is_zero = self.binary(BinaryOp::Eq, x, zero);
        let other = self.select(is_zero, minus_inf, nan);
        let is_positive = self.lt(zero, x);
        self.select(is_positive, y, other)
    }

    pub(super) fn log(&mut self, t: &Table, x: Value) -> Value {
        let (e, f) = self.split_float(t, x);
        let tail = self.log_tail(t, f);
        let (high, low) = (self.k(t.ln2.0, x), self.k(t.ln2.1, x));
        let tail = self.fma(e, low, tail);
        let sum = self.add(f, tail);
        let y = self.fma(e, high, sum);
        self.log_edges(x, y)
    }

    pub(super) fn log2(&mut self, t: &Table, x: Value) -> Value {
        let (e, f) = self.split_float(t, x);
        let tail = self.log_tail(t, f);
        // log2(e) in two parts: the second corrects the rounding of the first.
        let exact = std::f64::consts::LOG2_E;
        let high = if t.fraction_bits == 23 { exact as f32 as f64 } else { exact };
        let low = if t.fraction_bits == 23 { exact - high } else { 2.035_527_374_093_103_3e-17 };
        let (high, low) = (self.k(high, x), self.k(low, x));
        let small = self.mul(f, low);
        let small = self.fma(tail, high, small);
        let y = self.fma(f, high, small);
        let y = self.add(y, e);
        self.log_edges(x, y)
    }

    /// The larger operand, and `log(1 + exp(-d))` of their distance `d`; of equal infinities that is 0.
    pub(super) fn log_add_exp(&mut self, x: Value, y: Value) -> Value {
        let (larger, smaller) =
            (self.binary(BinaryOp::Max, x, y), self.binary(BinaryOp::Min, x, y));
        let distance = self.sub(larger, smaller);
        let (none, inf) = (self.k(0.0, x), self.k(f64::INFINITY, x));
        // What the subtraction rounds off (Knuth's TwoSum) is a relative error of the exponential.
        let taken = self.sub(larger, distance);
        let kept = self.add(distance, taken);
        let (high, low) = (self.sub(larger, kept), self.sub(taken, smaller));
        let lost = self.add(high, low);
        let is_finite = self.lt(distance, inf);
        let lost = self.select(is_finite, lost, none);
        let equal = self.binary(BinaryOp::Eq, x, y);
        let distance = self.select(equal, none, distance);
        let exponent = self.neg(distance);
        let ratio = self.unary(UnaryOp::Exp, exponent);
        let correction = self.mul(ratio, lost);
        let ratio = self.sub(ratio, correction);
        let rest = self.unary(UnaryOp::Log1p, ratio);
        self.add(larger, rest)
    }

    pub(super) fn log1p(&mut self, t: &Table, x: Value) -> Value {
        // log(u) * x / (u - 1) with u = 1 + x rounded corrects for that rounding.
        let one = self.k(1.0, x);
        let u = self.add(x, one);
        let log = self.log(t, u);
        let shifted = self.sub(u, one);
        let ratio = self.div(x, shifted);
        let y = self.mul(log, ratio);
        let (inf, minus_one) = (self.k(f64::INFINITY, x), self.k(-1.0, x));
        let is_finite = self.lt(x, inf);
        let y = self.select(is_finite, y, log);
        let is_tiny = self.binary(BinaryOp::Eq, u, one);
        let y = self.select(is_tiny, x, y);
        let is_edge = self.binary(BinaryOp::Le, x, minus_one);
        self.select(is_edge, log, y)
    }

    /// `e^(|x| / 2)` and its square's inverse, for `|x|` as large as a result may be finite for.
    fn exp_pair(&mut self, t: &Table, a: Value) -> (Value, Value) {
        let root = self.exp_root(t, a);
        let square = self.mul(root, root);
        let one = self.k(1.0, a);
        (root, self.div(one, square))
    }

    pub(super) fn cosh(&mut self, t: &Table, x: Value) -> Value {
        let a = self.abs(x);
        let (root, inverse) = self.exp_pair(t, a);
        let half = self.k(0.5, x);
        let halved = self.mul(root, half);
        let small = self.mul(inverse, half);
        self.fma(halved, root, small)
    }

    pub(super) fn sinh(&mut self, t: &Table, x: Value) -> Value {
        let a = self.abs(x);
        let (root, inverse) = self.exp_pair(t, a);
        let (half, minus_half) = (self.k(0.5, x), self.k(-0.5, x));
        let halved = self.mul(root, half);
        let small = self.mul(inverse, minus_half);
        let large = self.fma(halved, root, small);
        let square = self.mul(a, a);
        let tail = self.polynomial(t.sinh, square);
        let cube = self.mul(square, a);
        let near = self.fma(cube, tail, a);
        let one = self.k(1.0, x);
        let is_near = self.lt(a, one);
        let y = self.select(is_near, near, large);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    pub(super) fn tanh(&mut self, t: &Table, x: Value) -> Value {
        if self.b.ty(x).dtype == DType::F32 {
            // Beyond the bound the nearest float is 1.
            return self.odd_rational(x, 9.0, &TANH_P, &TANH_Q);
        }
        // (e^2a - 1) / (e^2a + 1)
        let a = self.abs(x);
        let a = self.clamp(a, 0.0, 22.0);
        let double = self.add(a, a);
        let e = self.expm1(t, double);
        let two = self.k(2.0, x);
        let below = self.add(e, two);
        let y = self.div(e, below);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    pub(super) fn erf(&mut self, x: Value) -> Value {
        self.odd_rational(x, 3.92, &ERF_P, &ERF_Q)
    }

    /// `x * (P(x^2) / Q(x^2))` up to the bound. Beyond it the square stays, so that the product
    /// grows in proportion to `x`, and the result is clamped, as is a last bit that rounds beyond
    /// 1. Both polynomials are of usual size, so nothing has to be asked of their quotient.
    fn odd_rational(&mut self, x: Value, bound: f64, p: &[f64], q: &[f64]) -> Value {
        let y = self.mul(x, x);
        let most = self.k(bound * bound, x);
        let y = self.binary(BinaryOp::Min, y, most);
        let p = self.polynomial(p, y);
        let q = self.polynomial(q, y);
        let ratio = self.usual_quotient(p, q);
        let z = self.mul(x, ratio);
        self.clamp(z, -1.0, 1.0)
    }

    /// Neutral on zero of either sign: the op table's unary sign operations by their bits.
    pub(super) fn sign_unary(&mut self, op: UnaryOp, x: Value) -> Value {
        let bits = self.bits(x);
        let dtype = self.b.ty(bits).dtype;
        let sign = if dtype == DType::I64 { i64::MIN } else { i32::MIN as i64 };
        let changed = if op == UnaryOp::Neg {
            let mask = self.int(dtype, sign, x);
            self.binary(BinaryOp::Xor, bits, mask)
        } else {
            let mask = self.int(dtype, !sign, x);
            self.binary(BinaryOp::And, bits, mask)
        };
        self.float(changed)
    }
}
