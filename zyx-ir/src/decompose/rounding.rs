//! Rounding to integers and remainders of floats.

use super::Expand;
use super::coefficients::Table;
use crate::dtype::DType;
use crate::ir::{LoopKind, Space, Value};
use crate::ops::{BinaryOp, UnaryOp};

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

    /// C's `fmod`: long division, a bit of the quotient per step, of as many steps as
    /// the exponents of the lanes differ by at most. Exact, as each step is.
    pub(super) fn float_rem(&mut self, x: Value, y: Value) -> Option<Value> {
        let t = Table::of(self.b.ty(x).dtype)?;
        let (a, d) = (self.abs(x), self.abs(y));
        let (ma, ea) = self.mantissa(t, a);
        let (md, ed) = self.mantissa(t, d);
        let difference = self.binary(BinaryOp::Sub, ea, ed);
        let zero = self.int(self.b.ty(difference).dtype, 0, x);
        let steps = self.binary(BinaryOp::Max, difference, zero);
        let r = self.divide_mantissas(ma, md, steps);
        // The remainder has the divisor's exponent; where it was larger, `a` is the remainder.
        let remainder = self.scaled(t, r, ed);
        let is_less = self.lt(a, d);
        let remainder = self.select(is_less, a, remainder);
        let sign = self.sign_bit(x);
        let remainder = self.flip_sign(remainder, sign);
        let (inf, nan, none) = (self.k(f64::INFINITY, x), self.k(f64::NAN, x), self.k(0.0, x));
        let is_finite = self.lt(a, inf);
        let divides = self.lt(none, d);
        let is_valid = self.binary(BinaryOp::And, is_finite, divides);
        Some(self.select(is_valid, remainder, nan))
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
