//! Rounding to integers and remainders of floats.

use super::Expand;
use super::coefficients::Table;
use crate::caps::Rounding;
use crate::dtype::DType;
use crate::ir::{LoopKind, Space, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

impl Expand<'_> {
    /// `floor`, `ceil`, `round` and `trunc` by adding and subtracting the first float from which
    /// on all are integers; the sign of zero is that of the operand.
    pub(super) fn rounding(&mut self, op: UnaryOp, x: Value) -> Value {
        let is_double = self.b.ty(x).dtype == DType::F64;
        let limit = self.k(if is_double { 4_503_599_627_370_496.0 } else { 8_388_608.0 }, x);
        let a = self.abs(x);
        let up = self.add(a, limit);
        let nearest = self.sub(up, limit);
        let sign = self.sign_bit(x);
        let one = self.k(1.0, x);
        let y = match op {
            UnaryOp::Trunc => {
                let less = self.sub(nearest, one);
                let is_above = self.lt(a, nearest);
                let y = self.select(is_above, less, nearest);
                self.flip_sign(y, sign)
            }
            UnaryOp::Floor => {
                let y = self.flip_sign(nearest, sign);
                let less = self.sub(y, one);
                let is_above = self.lt(x, y);
                self.select(is_above, less, y)
            }
            UnaryOp::Ceil => {
                let y = self.flip_sign(nearest, sign);
                let more = self.add(y, one);
                let is_below = self.lt(y, x);
                // -0.5 + 1 rounds up to -0.
                let y = self.select(is_below, more, y);
                let y = self.abs(y);
                self.flip_sign(y, sign)
            }
            _ => self.flip_sign(nearest, sign),
        };
        // Large numbers, infinities and NaN are their own integers.
        let is_fraction = self.lt(a, limit);
        self.select(is_fraction, y, x)
    }

    /// C's `fmod`, exact. A device that divides, and multiplies and adds, with one rounding
    /// finds quotients of `fraction_bits + 1` bits at once; others find a bit per step.
    pub(super) fn float_rem(&mut self, x: Value, y: Value) -> Option<Value> {
        let dtype = self.b.ty(x).dtype;
        let t = Table::of(dtype)?;
        let (a, d) = (self.abs(x), self.abs(y));
        let fused = self.caps.has_ternary(TernaryOp::MulAdd, dtype);
        let remainder = match fused && self.caps.quotients == Rounding::Exact {
            true => self.rem_by_quotients(t, a, d),
            false => self.rem_by_bits(t, a, d),
        };
        let is_less = self.lt(a, d);
        let remainder = self.select(is_less, a, remainder);
        let sign = self.sign_bit(x);
        Some(self.flip_sign(remainder, sign))
    }

    /// The remainder of magnitudes by rounded quotients: one where no quotient is long, else one
    /// for every `fraction_bits + 1` bits of the longest.
    fn rem_by_quotients(&mut self, t: &Table, a: Value, d: Value) -> Value {
        let (quotient, near) = self.rem_by_quotient(a, d);
        let width = t.fraction_bits + 1;
        let (limit, inf) = (self.k((width as f64).exp2(), a), self.k(f64::INFINITY, a));
        let is_long = self.binary(BinaryOp::Le, limit, quotient);
        let is_finite = self.lt(a, inf);
        // A divisor of zero gives NaN at once.
        let none = self.k(0.0, a);
        let divides = self.lt(none, d);
        let is_long = self.binary(BinaryOp::And, is_long, is_finite);
        let is_long = self.binary(BinaryOp::And, is_long, divides);
        self.unless(is_long, near, |e| {
            let (_, ea) = e.mantissa(t, a);
            let (_, ed) = e.mantissa(t, d);
            let bits = e.binary(BinaryOp::Sub, ea, ed);
            let ty = e.b.ty(bits);
            let (zero, one) = (e.int(ty.dtype, 0, a), e.int(ty.dtype, 1, a));
            let bits = e.binary(BinaryOp::Add, bits, one);
            let bits = e.select(is_long, bits, zero);
            let (float, origin) = (e.b.ty(a), e.b.index(0));
            let rest = e.b.alloc(Space::Register, float, 1);
            e.b.store(rest, origin, a);
            let most = if ty.is_vector() { e.fold(BinaryOp::Max, bits) } else { bits };
            let most = e.b.cast(DType::I64, most);
            let most = e.by(BinaryOp::Add, most, width - 1);
            let steps = e.by(BinaryOp::Div, most, width);
            let i = e.b.open_loop(LoopKind::Serial, 0, steps);
            let i = e.by(BinaryOp::Add, i, 1);
            let done = e.by(BinaryOp::Mul, i, width);
            let done = e.b.cast(ty.dtype, done);
            let done = e.b.splat(done, ty.lanes);
            // Bits of the quotient after this step, and so places to shift the divisor by now.
            let left = e.binary(BinaryOp::Sub, bits, done);
            let left = e.binary(BinaryOp::Max, left, zero);
            // Two factors, because one would not be finite.
            let half = e.shr(left, 1);
            let other = e.binary(BinaryOp::Sub, left, half);
            let factors = [half, other].map(|n| {
                let field = e.by(BinaryOp::Add, n, t.bias);
                let bits = e.shl(field, t.fraction_bits);
                e.float(bits)
            });
            let shifted = e.mul(d, factors[0]);
            let shifted = e.mul(shifted, factors[1]);
            let before = e.b.load(rest, origin);
            let (_, after) = e.rem_by_quotient(before, shifted);
            e.b.store(rest, origin, after);
            e.b.close();
            e.b.load(rest, origin)
        })
    }

    /// The rounded quotient of magnitudes and, where it has at most `fraction_bits + 1` bits, the
    /// exact remainder: the whole part is at most one too large, so what it leaves of the dividend is a
    /// multiple of the divisor's last bit, no larger than the divisor. NaN where there is none.
    fn rem_by_quotient(&mut self, a: Value, d: Value) -> (Value, Value) {
        let quotient = self.div(a, d);
        let whole = self.unary(UnaryOp::Trunc, quotient);
        let whole = self.neg(whole);
        let rest = self.fma(whole, d, a);
        let none = self.k(0.0, a);
        let is_below = self.lt(rest, none);
        let more = self.add(rest, d);
        (quotient, self.select(is_below, more, rest))
    }

    /// The remainder of magnitudes by long division, a bit of the quotient per step, of as many
    /// steps as the exponents of the lanes differ by at most.
    fn rem_by_bits(&mut self, t: &Table, a: Value, d: Value) -> Value {
        let (ma, ea) = self.mantissa(t, a);
        let (md, ed) = self.mantissa(t, d);
        let difference = self.binary(BinaryOp::Sub, ea, ed);
        let zero = self.int(self.b.ty(difference).dtype, 0, a);
        let steps = self.binary(BinaryOp::Max, difference, zero);
        let r = self.divide_mantissas(ma, md, steps);
        // The remainder has the divisor's exponent.
        let remainder = self.scaled(t, r, ed);
        let (inf, nan, none) = (self.k(f64::INFINITY, a), self.k(f64::NAN, a), self.k(0.0, a));
        let is_finite = self.lt(a, inf);
        let divides = self.lt(none, d);
        let is_valid = self.binary(BinaryOp::And, is_finite, divides);
        self.select(is_valid, remainder, nan)
    }

    /// Integer mantissa and exponent with `x = mantissa * 2^(exponent - bias - fraction bits)`, the
    /// mantissa of at least as many bits as a significand has, for positive `x`.
    fn mantissa(&mut self, t: &Table, x: Value) -> (Value, Value) {
        // Subnormals are made normal first.
        let (small, scale) = (self.k(t.min_normal, x), self.k((t.fraction_bits as f64).exp2(), x));
        let is_small = self.lt(x, small);
        let scaled = self.mul(x, scale);
        let x = self.select(is_small, scaled, x);
        let bits = self.bits(x);
        let dtype = self.b.ty(bits).dtype;
        let exponent = self.shr(bits, t.fraction_bits);
        let shift = self.int(dtype, t.fraction_bits, x);
        let less = self.binary(BinaryOp::Sub, exponent, shift);
        let exponent = self.select(is_small, less, exponent);
        let one = 1 << t.fraction_bits;
        let (mask, one) = (self.int(dtype, one - 1, x), self.int(dtype, one, x));
        let fraction = self.binary(BinaryOp::And, bits, mask);
        (self.binary(BinaryOp::Or, fraction, one), exponent)
    }

    /// `(m * 2^steps) mod d`, doubling once per step in each lane that has steps left.
    fn divide_mantissas(&mut self, m: Value, d: Value, steps: Value) -> Value {
        let ty = self.b.ty(m);
        let storage = self.b.alloc(Space::Register, ty, 1);
        let origin = self.b.index(0);
        let first = self.reduced(m, d);
        self.b.store(storage, origin, first);
        let most = if ty.is_vector() { self.fold(BinaryOp::Max, steps) } else { steps };
        let most = self.b.cast(DType::I64, most);
        let i = self.b.open_loop(LoopKind::Serial, 0, most);
        let i = self.b.cast(ty.dtype, i);
        let i = self.b.splat(i, ty.lanes);
        let r = self.b.load(storage, origin);
        let double = self.binary(BinaryOp::Add, r, r);
        let next = self.reduced(double, d);
        let goes_on = self.lt(i, steps);
        let next = self.select(goes_on, next, r);
        self.b.store(storage, origin, next);
        self.b.close();
        self.b.load(storage, origin)
    }

    /// `r - d` where that is not negative, else `r`.
    fn reduced(&mut self, r: Value, d: Value) -> Value {
        let less = self.binary(BinaryOp::Sub, r, d);
        let is_less = self.lt(r, d);
        self.select(is_less, r, less)
    }

    /// `r * 2^(exponent - bias - fraction bits)`, exactly: after a constant, by two factors that
    /// are both normal.
    fn scaled(&mut self, t: &Table, r: Value, exponent: Value) -> Value {
        let is_double = self.b.ty(r).dtype == DType::I64;
        let (float, down) = if is_double { (DType::F64, 500) } else { (DType::F32, 100) };
        let float = self.b.cast(float, r);
        let low = self.k((-down as f64).exp2(), float);
        let small = self.mul(float, low);
        // What is left of the exponent may lie beyond the field's range: halve it.
        let left = t.bias + t.fraction_bits - down;
        let half = self.shr(exponent, 1);
        let rest = self.binary(BinaryOp::Sub, exponent, half);
        let dtype = self.b.ty(exponent).dtype;
        let (bias, less) = (self.int(dtype, t.bias, r), self.int(dtype, left, r));
        let first = self.binary(BinaryOp::Add, half, bias);
        let first = self.shl(first, t.fraction_bits);
        let first = self.float(first);
        let second = self.binary(BinaryOp::Add, rest, bias);
        let second = self.binary(BinaryOp::Sub, second, less);
        let second = self.shl(second, t.fraction_bits);
        let second = self.float(second);
        // The larger factor first, so that nothing is lost before the last product.
        let y = self.mul(small, first);
        self.mul(y, second)
    }
}
