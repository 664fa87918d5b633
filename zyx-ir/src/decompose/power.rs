//! `x^y` for floats: `2^(y * log2(x))` with the logarithm in two parts.
//!
//! The exponent may be as large as 150 (in `f64` 1075), so the logarithm has to be good to some
//! 2^-33 (2^-60) for the power to be good to 2^-24 (within the op table's bound). The mantissa is divided in double-single arithmetic: with
//! `s = (m - 1) / (m + 1)` the logarithm is `2 (s + s^3 / 3 + …)`, of which only the first term
//! needs both parts.

use super::Expand;
use super::coefficients::Table;
use crate::dtype::DType;
use crate::ir::Value;
use crate::ops::{BinaryOp, UnaryOp};

use BinaryOp::{And, Eq, Ne, Or};

impl Expand<'_> {
    /// `a * b` as a rounded product and what rounding cut off, by splitting both factors in
    /// halves (Dekker 1971); needs no fused op. In `f64` the lower halves' product is itself
    /// rounded, far below what matters.
    pub(super) fn exact_product(&mut self, a: Value, b: Value) -> (Value, Value) {
        let p = self.mul(a, b);
        let ((ah, al), (bh, bl)) = (self.halves(a), self.halves(b));
        let high = self.mul(ah, bh);
        let error = self.sub(high, p);
        let cross = self.mul(ah, bl);
        let error = self.add(error, cross);
        let cross = self.mul(al, bh);
        let error = self.add(error, cross);
        let low = self.mul(al, bl);
        (p, self.add(error, low))
    }

    /// The upper twelve (of an `f64`: 26) bits of a float's significand, and the rest.
    fn halves(&mut self, a: Value) -> (Value, Value) {
        let bits = self.bits(a);
        let dtype = self.b.ty(bits).dtype;
        let mask = self.int(dtype, if dtype == DType::I64 { !0x7ff_ffff } else { !0xfff }, a);
        let high = self.binary(And, bits, mask);
        let high = self.float(high);
        (high, self.sub(a, high))
    }

    /// `a + b` and what rounding cut off, for `|a| >= |b|`.
    fn exact_sum(&mut self, a: Value, b: Value) -> (Value, Value) {
        let sum = self.add(a, b);
        let rest = self.sub(sum, a);
        (sum, self.sub(b, rest))
    }

    /// `log2` of a positive `x` in two parts.
    fn log2_parts(&mut self, t: &Table, x: Value) -> (Value, Value) {
        let (e, f) = self.split_float(t, x);
        // s = f / (2 + f) with its remainder; 2 + f is exact in two parts.
        let two = self.k(2.0, x);
        let (below, below_rest) = self.exact_sum(two, f);
        let s = self.div(f, below);
        let (product, product_rest) = self.exact_product(s, below);
        let error = self.sub(f, product);
        let error = self.sub(error, product_rest);
        let more = self.mul(s, below_rest);
        let error = self.sub(error, more);
        let s_low = self.div(error, below);
        // 2 / ln 2 * (s + s^3 / 3 + s^5 / 5 + …) with s <= 0.1716: the first term in two parts,
        // in `f64` the second, too.
        let is_double = self.b.ty(x).dtype == DType::F64;
        let z = self.mul(s, s);
        let scale = 2.0 * LOG2_E;
        let (scale_high, scale_low) = match is_double {
            true => (scale, 2.0 * LOG2_E_LOW),
            false => (scale as f32 as f64, scale - scale as f32 as f64),
        };
        let (high, low) = (self.k(scale_high, x), self.k(scale_low, x));
        let (first, first_rest) = self.exact_product(s, high);
        let low_part = self.mul(s, low);
        let rest = self.fma(s_low, high, low_part);
        let mut rest = self.add(rest, first_rest);
        let start = if is_double { 2 } else { 1 };
        let end = if is_double { 14 } else { 8 };
        let terms: Vec<f64> = (start..end).map(|i| scale / (2 * i + 1) as f64).collect();
        let tail = self.polynomial(&terms, z);
        let cube = self.mul(z, s);
        let mut tail = self.mul(tail, cube);
        if is_double {
            tail = self.mul(tail, z);
            let (second, second_rest) = self.second_term(s, s_low);
            let (sum, carried) = self.exact_sum(second, tail);
            rest = self.add(rest, second_rest);
            rest = self.add(rest, carried);
            tail = sum;
        }
        let (first, carried) = self.exact_sum_any(first, tail);
        let rest = self.add(rest, carried);
        let (sum, carried) = self.exact_sum_any(e, first);
        let rest = self.add(rest, carried);
        self.exact_sum(sum, rest)
    }

    /// `2 / (3 ln 2) * s^3` in two parts, in `f64`.
    fn second_term(&mut self, s: Value, s_low: Value) -> (Value, Value) {
        let (square, square_rest) = self.exact_product(s, s);
        let twice = self.add(s, s);
        let more = self.mul(twice, s_low);
        let square_rest = self.add(square_rest, more);
        let (cube, cube_rest) = self.exact_product(square, s);
        let more = self.mul(square, s_low);
        let cube_rest = self.add(cube_rest, more);
        let more = self.mul(square_rest, s);
        let cube_rest = self.add(cube_rest, more);
        let (high, low) = (self.k(THIRD.0, s), self.k(THIRD.1, s));
        let (term, term_rest) = self.exact_product(cube, high);
        let more = self.mul(cube, low);
        let term_rest = self.add(term_rest, more);
        let more = self.mul(cube_rest, high);
        (term, self.add(term_rest, more))
    }

    /// `a + b` and what rounding cut off, whichever is larger (Knuth).
    fn exact_sum_any(&mut self, a: Value, b: Value) -> (Value, Value) {
        let sum = self.add(a, b);
        let second = self.sub(sum, a);
        let first = self.sub(sum, second);
        let (x, y) = (self.sub(a, first), self.sub(b, second));
        (sum, self.add(x, y))
    }

    pub(super) fn pow(&mut self, x: Value, y: Value) -> Value {
        let Some(t) = Table::of(self.b.ty(x).dtype) else { return x };
        let a = self.abs(x);
        let (high, low) = self.log2_parts(t, a);
        // Beyond 2^20 in the exponent only the sign matters, and products would overflow.
        let exponent = self.clamp(y, -1e30, 1e30);
        let (p, p_rest) = self.exact_product(exponent, high);
        let p_rest = self.fma(exponent, low, p_rest);
        let most = if self.b.ty(x).dtype == DType::F64 { 1100.0 } else { 160.0 };
        let bounded = self.clamp(p, -most, most);
        let is_bounded = self.binary(Eq, p, bounded);
        let zero = self.k(0.0, x);
        let p_rest = self.select(is_bounded, p_rest, zero);
        let power = self.exp2_sum(t, bounded, Some(p_rest));
        self.pow_edges(x, y, a, power)
    }

    /// The result of `pow` where the power of the absolute value is not it.
    fn pow_edges(&mut self, x: Value, y: Value, a: Value, power: Value) -> Value {
        let (zero, one, inf, nan) =
            (self.k(0.0, x), self.k(1.0, x), self.k(f64::INFINITY, x), self.k(f64::NAN, x));
        let grows = self.lt(zero, y);
        // Zero and infinity to a power are zero or infinity.
        let small = self.select(grows, zero, inf);
        let large = self.select(grows, inf, zero);
        let is_zero = self.binary(Eq, a, zero);
        let is_infinite = self.binary(Eq, a, inf);
        let result = self.select(is_zero, small, power);
        let result = self.select(is_infinite, large, result);
        // An infinite power: by whether the base is beyond 1.
        let size = self.abs(y);
        let is_limit = self.binary(Eq, size, inf);
        let is_beyond = self.lt(one, a);
        let (up, down) = (self.select(grows, inf, zero), self.select(grows, zero, inf));
        let limit = self.select(is_beyond, up, down);
        let is_unit = self.binary(Eq, a, one);
        let limit = self.select(is_unit, one, limit);
        let result = self.select(is_limit, limit, result);
        // Negative bases: NaN unless the exponent is an integer, negative for odd ones.
        let whole = self.unary(UnaryOp::Trunc, y);
        let is_integer = self.binary(Eq, whole, y);
        let half = self.k(0.5, y);
        let halved = self.mul(y, half);
        let floor = self.unary(UnaryOp::Trunc, halved);
        let is_even = self.binary(Eq, floor, halved);
        let sign = self.sign_bit(x);
        let negated = self.flip_sign(result, sign);
        let odd = self.select(is_even, result, negated);
        let result = self.select(is_integer, odd, result);
        let is_negative = self.lt(x, zero);
        let fraction = self.binary(Ne, whole, y);
        let finite = self.lt(a, inf);
        let invalid = self.binary(And, is_negative, fraction);
        let invalid = self.binary(And, invalid, finite);
        let result = self.select(invalid, nan, result);
        // NaN unless the base is 1 or the exponent 0.
        let x_nan = self.binary(Ne, x, x);
        let y_nan = self.binary(Ne, y, y);
        let is_nan = self.binary(Or, x_nan, y_nan);
        let result = self.select(is_nan, nan, result);
        let always = self.binary(Eq, y, zero);
        let unit = self.binary(Eq, x, one);
        let always = self.binary(Or, always, unit);
        self.select(always, one, result)
    }
}

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// What rounding cut off [`LOG2_E`].
const LOG2_E_LOW: f64 = 2.0355273740931033e-17;
/// `2 / (3 ln 2)` in two parts.
const THIRD: (f64, f64) = (0.9617966939259756, 5.0577616648125907e-17);
