//! Rounding to integers and remainders of floats.

use super::Expand;
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

    /// C's `fmod` on `f32`: long division, a bit of the quotient per step, of as many steps as
    /// the exponents of the lanes differ by at most. Exact, as each step is.
    pub(super) fn float_rem(&mut self, x: Value, y: Value) -> Option<Value> {
        if self.b.ty(x).dtype != DType::F32 {
            return None;
        }
        let (a, d) = (self.abs(x), self.abs(y));
        let (ma, ea) = self.mantissa(a);
        let (md, ed) = self.mantissa(d);
        let difference = self.binary(BinaryOp::Sub, ea, ed);
        let zero = self.int(DType::I32, 0, x);
        let steps = self.binary(BinaryOp::Max, difference, zero);
        let r = self.divide_mantissas(ma, md, steps);
        // The remainder has the divisor's exponent; where it was larger, `a` is the remainder.
        let remainder = self.scaled(r, ed);
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

    /// Integer mantissa and exponent with `x = mantissa * 2^(exponent - 150)`, the mantissa of at
    /// least 24 bits, for positive `x`.
    fn mantissa(&mut self, x: Value) -> (Value, Value) {
        // Subnormals are made normal first.
        let (small, scale) = (self.k(f32::MIN_POSITIVE as f64, x), self.k(8_388_608.0, x));
        let is_small = self.lt(x, small);
        let scaled = self.mul(x, scale);
        let x = self.select(is_small, scaled, x);
        let bits = self.bits(x);
        let exponent = self.shr(bits, 23);
        let shift = self.int(DType::I32, 23, x);
        let less = self.binary(BinaryOp::Sub, exponent, shift);
        let exponent = self.select(is_small, less, exponent);
        let (mask, one) = (self.int(DType::I32, 0x7f_ffff, x), self.int(DType::I32, 1 << 23, x));
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
        let i = self.b.cast(DType::I32, i);
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

    /// `r * 2^(exponent - 150)`, exactly, in two factors that are both normal.
    fn scaled(&mut self, r: Value, exponent: Value) -> Value {
        let float = self.b.cast(DType::F32, r);
        let low = self.k((-100f64).exp2(), float);
        let small = self.mul(float, low);
        // 2^(exponent - 50) has the exponent field exponent + 77, between 55 and 331: halve it.
        let half = self.shr(exponent, 1);
        let rest = self.binary(BinaryOp::Sub, exponent, half);
        let bias = self.int(DType::I32, 127, r);
        let less = self.int(DType::I32, 50, r);
        let first = self.binary(BinaryOp::Add, half, bias);
        let first = self.shl(first, 23);
        let first = self.float(first);
        let second = self.binary(BinaryOp::Add, rest, bias);
        let second = self.binary(BinaryOp::Sub, second, less);
        let second = self.shl(second, 23);
        let second = self.float(second);
        // The larger factor first, so that nothing is lost before the last product.
        let y = self.mul(small, first);
        self.mul(y, second)
    }
}
