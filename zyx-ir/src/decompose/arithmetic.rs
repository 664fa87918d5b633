//! Integer operations and comparisons in terms of simpler ones.

use super::Expand;
use crate::dtype::DType;
use crate::ir::{LoopKind, Space, Value};
use crate::ops::{BinaryOp, UnaryOp};

impl Expand<'_> {
    pub(crate) fn integer_unary(&mut self, op: UnaryOp, x: Value) -> Option<Value> {
        let dtype = self.b.ty(x).dtype;
        match op {
            UnaryOp::Neg => {
                let zero = self.int(dtype, 0, x);
                Some(self.sub(zero, x))
            }
            UnaryOp::Abs if dtype.is_signed() => {
                let zero = self.int(dtype, 0, x);
                let negated = self.sub(zero, x);
                let is_negative = self.lt(x, zero);
                Some(self.select(is_negative, negated, x))
            }
            UnaryOp::Not => {
                let ones = self.int(dtype, if dtype == DType::Bool { 1 } else { -1 }, x);
                Some(self.binary(BinaryOp::Xor, x, ones))
            }
            UnaryOp::Abs | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => {
                Some(x)
            }
            _ => None,
        }
    }

    /// Ops that follow from others on every dtype.
    pub(crate) fn simple_binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
        let dtype = self.b.ty(x).dtype;
        let is_bool = dtype == DType::Bool;
        Some(match op {
            BinaryOp::Sub => {
                let y = self.neg(y);
                self.add(x, y)
            }
            BinaryOp::Div if dtype.is_float() => {
                let inverse = self.unary(UnaryOp::Recip, y);
                self.mul(x, inverse)
            }
            BinaryOp::Add | BinaryOp::Max if is_bool => self.binary(BinaryOp::Or, x, y),
            BinaryOp::Mul | BinaryOp::Min if is_bool => self.binary(BinaryOp::And, x, y),
            BinaryOp::Max | BinaryOp::Min => self.extremum(op, x, y),
            BinaryOp::Lt | BinaryOp::Le if is_bool => {
                let is_false = self.not(x);
                let both = if op == BinaryOp::Lt { BinaryOp::And } else { BinaryOp::Or };
                self.binary(both, is_false, y)
            }
            BinaryOp::Le if dtype.is_float() => {
                let (less, equal) = (self.lt(x, y), self.binary(BinaryOp::Eq, x, y));
                self.binary(BinaryOp::Or, less, equal)
            }
            BinaryOp::Le => {
                let above = self.lt(y, x);
                self.not(above)
            }
            BinaryOp::Ne => {
                let equal = self.binary(BinaryOp::Eq, x, y);
                self.not(equal)
            }
            BinaryOp::Xor if is_bool => self.binary(BinaryOp::Ne, x, y),
            _ => return None,
        })
    }

    fn not(&mut self, x: Value) -> Value {
        self.unary(UnaryOp::Not, x)
    }

    /// Maximum or minimum by comparing; a NaN operand is the result.
    fn extremum(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let (a, b) = if op == BinaryOp::Max { (y, x) } else { (x, y) };
        let is_first = self.lt(a, b);
        let z = self.select(is_first, x, y);
        if !self.b.ty(x).dtype.is_float() {
            return z;
        }
        let is_nan = self.binary(BinaryOp::Ne, x, x);
        self.select(is_nan, x, z)
    }

    /// Quotient or remainder on a device that only divides by other numbers than 0 and -1:
    /// `x / 0 == 0`, `x % 0 == x`, `MIN / -1 == MIN`, `MIN % -1 == 0`.
    pub(super) fn total_division(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        if self.b.as_constant(y).is_some_and(|c| !matches!(c.to_i128(), 0 | -1)) {
            return self.b.binary(op, x, y);
        }
        let [zero, one, minus_one] = [0, 1, -1].map(|n| self.int(dtype, n, x));
        let is_zero = self.binary(BinaryOp::Eq, y, zero);
        let by_zero = if op == BinaryOp::Div { zero } else { x };
        if !dtype.is_signed() {
            let divisor = self.select(is_zero, one, y);
            let usual = self.b.binary(op, x, divisor);
            return self.select(is_zero, by_zero, usual);
        }
        let is_minus_one = self.binary(BinaryOp::Eq, y, minus_one);
        let is_special = self.binary(BinaryOp::Or, is_zero, is_minus_one);
        let divisor = self.select(is_special, one, y);
        let usual = self.b.binary(op, x, divisor);
        let usual = self.select(is_zero, by_zero, usual);
        let by_minus_one = if op == BinaryOp::Div { self.neg(x) } else { zero };
        self.select(is_minus_one, by_minus_one, usual)
    }

    /// A shift on a device that only shifts by less than the width: by more, or by a negative
    /// distance, gives 0, or the sign.
    pub(super) fn total_shift(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        let bits = dtype.bits() as i64;
        if self.b.as_constant(y).is_some_and(|c| (0..bits as i128).contains(&c.to_i128())) {
            return self.b.binary(op, x, y);
        }
        let unsigned = if bits == 64 { DType::U64 } else { DType::U32 };
        let (distance, width) = (self.b.bitcast(unsigned, y), self.int(unsigned, bits, x));
        let inside = self.lt(distance, width);
        let [zero, most] = [0, bits - 1].map(|n| self.int(dtype, n, x));
        let distance = self.select(inside, y, most);
        let shifted = self.b.binary(op, x, distance);
        if op == BinaryOp::Shr && dtype.is_signed() {
            return shifted;
        }
        self.select(inside, shifted, zero)
    }

    /// A quotient of 64-bit integers on a device that has none: by a shift if the divisor is a power of two, else of their
    /// magnitudes.
    pub(super) fn long_quotient(&mut self, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        let divisor = self.b.as_constant(y).map_or(0, |c| c.to_i128());
        if divisor > 0 && divisor.count_ones() == 1 {
            let shift = i64::from(divisor.trailing_zeros());
            if !dtype.is_signed() {
                return self.shr(x, shift);
            }
            // Quotients are rounded towards zero.
            let [none, below] = [0, (divisor - 1) as i64].map(|n| self.int(dtype, n, x));
            let is_negative = self.lt(x, none);
            let below = self.select(is_negative, below, none);
            let raised = self.add(x, below);
            return self.shr(raised, shift);
        }
        let [a, b] = [x, y].map(|v| {
            let magnitude = if dtype.is_signed() { self.abs(v) } else { v };
            self.b.bitcast(DType::U64, magnitude)
        });
        let zero = self.int(DType::U64, 0, x);
        let quotient = match (1..1 << 16).contains(&divisor) {
            true => self.quotient_by_digits(a, divisor as i64),
            false => self.quotient_by_words(a, b),
        };
        let by_zero = self.binary(BinaryOp::Eq, b, zero);
        let quotient = self.select(by_zero, zero, quotient);
        let quotient = self.b.bitcast(dtype, quotient);
        if !dtype.is_signed() {
            return quotient;
        }
        let signs = self.binary(BinaryOp::Xor, x, y);
        let none = self.int(dtype, 0, x);
        let is_negative = self.lt(signs, none);
        let negated = self.neg(quotient);
        self.select(is_negative, negated, quotient)
    }

    /// A quotient of `u64` by a constant below 2^16: a long division of four digits of 16 bits.
    fn quotient_by_digits(&mut self, x: Value, divisor: i64) -> Value {
        let high = self.shr(x, 32);
        let [divisor, digit, none] = [divisor, 0xffff, 0].map(|n| self.int(DType::U32, n, x));
        let (mut rest, mut words) = (none, [none; 2]);
        for (word, from) in words.iter_mut().zip([high, x]) {
            let from = self.b.cast(DType::U32, from);
            for shift in [16, 0] {
                let next = self.shr(from, shift);
                let next = self.binary(BinaryOp::And, next, digit);
                let rest_above = self.shl(rest, 16);
                let whole = self.binary(BinaryOp::Or, rest_above, next);
                let quotient = self.div(whole, divisor);
                let taken = self.mul(quotient, divisor);
                rest = self.sub(whole, taken);
                let above = self.shl(*word, 16);
                *word = self.binary(BinaryOp::Or, above, quotient);
            }
        }
        let [high, low] = words.map(|word| self.b.cast(DType::U64, word));
        let high = self.shl(high, 32);
        self.binary(BinaryOp::Or, high, low)
    }

    /// A quotient of `u64`: by the 32-bit instruction where both numbers are as short, else a bit per step.
    fn quotient_by_words(&mut self, x: Value, y: Value) -> Value {
        let all = self.binary(BinaryOp::Or, x, y);
        let all = self.shr(all, 32);
        let zero = self.int(DType::U64, 0, x);
        let is_long = self.binary(BinaryOp::Ne, all, zero);
        let words = [x, y].map(|v| self.b.cast(DType::U32, v));
        let short = self.div(words[0], words[1]);
        let short = self.b.cast(DType::U64, short);
        self.unless(is_long, short, |e| e.quotient_by_bits(x, y))
    }

    /// A quotient of `u64`: rest and quotient move up by a bit, and the divisor is taken off where it
    /// fits. What leaves the rest at the top counts as a 65th bit.
    fn quotient_by_bits(&mut self, x: Value, y: Value) -> Value {
        let (ty, origin) = (self.b.ty(x), self.b.index(0));
        let zero = self.int(DType::U64, 0, x);
        let [quotient, rest] = [x, zero].map(|start| {
            let storage = self.b.alloc(Space::Register, ty, 1);
            self.b.store(storage, origin, start);
            storage
        });
        let bits = self.b.index(64);
        self.b.open_loop(LoopKind::Serial, 0, bits);
        let [q, r] = [quotient, rest].map(|storage| self.b.load(storage, origin));
        let [top, out] = [q, r].map(|v| self.shr(v, 63));
        let up = self.shl(r, 1);
        let up = self.binary(BinaryOp::Or, up, top);
        let is_carried = self.binary(BinaryOp::Ne, out, zero);
        let is_less = self.binary(BinaryOp::Le, y, up);
        let fits = self.binary(BinaryOp::Or, is_carried, is_less);
        let less = self.sub(up, y);
        let next = self.select(fits, less, up);
        self.b.store(rest, origin, next);
        let (next, bit) = (self.shl(q, 1), self.bit(DType::U64, fits));
        let next = self.binary(BinaryOp::Or, next, bit);
        self.b.store(quotient, origin, next);
        self.b.close();
        self.b.load(quotient, origin)
    }

    /// Stein's algorithm, without a division, in numbers without a sign. `unit` is the highest power of
    /// two in both numbers: one, `u`, is an odd multiple of it, and so it stays. A step halves `v`, after
    /// `v = |u - v|` where that is an odd multiple, too: so each step halves `u v`, and twice as many
    /// steps as the longer number has bits leave 0 of `v`, and then change nothing.
    pub(super) fn common_divisor(&mut self, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        let unsigned = match dtype.bits() {
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::U32,
            _ => DType::U64,
        };
        let [x, y] = [x, y].map(|v| {
            let magnitude = if dtype.is_signed() { self.abs(v) } else { v };
            self.b.bitcast(unsigned, magnitude)
        });
        let zero = self.int(unsigned, 0, x);
        let both = self.binary(BinaryOp::Or, x, y);
        let negated = self.sub(zero, both);
        let unit = self.binary(BinaryOp::And, both, negated);
        let first = self.meets(x, unit);
        let (u, v) = (self.select(first, x, y), self.select(first, y, x));
        let (ty, origin) = (self.b.ty(x), self.b.index(0));
        let [left, right] = [u, v].map(|start| {
            let storage = self.b.alloc(Space::Register, ty, 1);
            self.b.store(storage, origin, start);
            storage
        });
        let len = self.twice_bits(both);
        self.b.open_loop(LoopKind::Serial, 0, len);
        let [u, v] = [left, right].map(|storage| self.b.load(storage, origin));
        let [least, most] = [BinaryOp::Min, BinaryOp::Max].map(|op| self.binary(op, u, v));
        let apart = self.meets(v, unit);
        let distance = self.sub(most, least);
        let (u, v) = (self.select(apart, least, u), self.select(apart, distance, v));
        let v = self.shr(v, 1);
        self.b.store(left, origin, u);
        self.b.store(right, origin, v);
        self.b.close();
        let u = self.b.load(left, origin);
        self.b.bitcast(dtype, u)
    }

    /// Whether two integers have bits in common.
    fn meets(&mut self, x: Value, y: Value) -> Value {
        let (both, zero) = (self.binary(BinaryOp::And, x, y), self.k(0.0, x));
        self.binary(BinaryOp::Ne, both, zero)
    }

    /// Twice the bits of the longest of an unsigned integer's lanes, as the length of a loop.
    fn twice_bits(&mut self, x: Value) -> Value {
        let ty = self.b.ty(x);
        let mut rest = if ty.is_vector() { self.fold(BinaryOp::Or, x) } else { x };
        let mut bits = self.b.index(0);
        let mut part = ty.dtype.bits() as i64 / 2;
        while part > 0 {
            let upper = self.shr(rest, part);
            let zero = self.k(0.0, rest);
            let is_long = self.binary(BinaryOp::Ne, upper, zero);
            let more = self.b.index(2 * part);
            let more = self.b.binary(BinaryOp::Add, bits, more);
            (rest, bits) = (self.select(is_long, upper, rest), self.select(is_long, more, bits));
            part /= 2;
        }
        let more = self.b.index(2);
        let more = self.b.binary(BinaryOp::Add, bits, more);
        let zero = self.k(0.0, rest);
        let is_any = self.binary(BinaryOp::Ne, rest, zero);
        self.select(is_any, more, bits)
    }

    /// `x - x / y * y`; dividing by zero gives 0, so that the remainder is `x`.
    pub(super) fn integer_rem(&mut self, x: Value, y: Value) -> Value {
        let quotient = self.div(x, y);
        let whole = self.mul(quotient, y);
        self.sub(x, whole)
    }

    /// Square and multiply, a bit of the exponent per step; negative exponents give the truncated
    /// reciprocal.
    pub(super) fn integer_pow(&mut self, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        let (zero, one) = (self.int(ty.dtype, 0, x), self.int(ty.dtype, 1, x));
        let origin = self.b.index(0);
        let [result, square, left] = [one, x, y].map(|start| {
            let storage = self.b.alloc(Space::Register, ty, 1);
            self.b.store(storage, origin, start);
            storage
        });
        let bits = self.b.index(ty.dtype.bits() as i64);
        self.b.open_loop(LoopKind::Serial, 0, bits);
        let (r, s, n) =
            (self.b.load(result, origin), self.b.load(square, origin), self.b.load(left, origin));
        let bit = self.binary(BinaryOp::And, n, one);
        let is_even = self.binary(BinaryOp::Eq, bit, zero);
        let product = self.mul(r, s);
        let next = self.select(is_even, r, product);
        self.b.store(result, origin, next);
        let s = self.mul(s, s);
        self.b.store(square, origin, s);
        let n = self.shr(n, 1);
        self.b.store(left, origin, n);
        self.b.close();
        let power = self.b.load(result, origin);
        if !ty.dtype.is_signed() {
            return power;
        }
        // 1 for base 1, plus or minus 1 for base -1, else 0.
        let minus_one = self.int(ty.dtype, -1, x);
        let bit = self.binary(BinaryOp::And, y, one);
        let is_odd = self.binary(BinaryOp::Eq, bit, one);
        let sign = self.select(is_odd, minus_one, one);
        let is_minus_one = self.binary(BinaryOp::Eq, x, minus_one);
        let inverse = self.select(is_minus_one, sign, zero);
        let is_one = self.binary(BinaryOp::Eq, x, one);
        let inverse = self.select(is_one, one, inverse);
        let is_negative = self.lt(y, zero);
        self.select(is_negative, inverse, power)
    }
}
