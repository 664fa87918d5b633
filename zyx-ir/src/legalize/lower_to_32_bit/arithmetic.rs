//! Arithmetic on 64-bit integers as pairs of `u32`.

use super::Lowering;
use crate::dtype::DType;
use crate::ir::Value;
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;

/// The words of a 64-bit integer, or twice what is no pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) low: Value,
    pub(super) high: Value,
}

impl From<Value> for Words {
    fn from(x: Value) -> Words {
        Words { low: x, high: x }
    }
}

impl Lowering<'_> {
    /// A literal.
    pub(super) fn long(&mut self, bits: u64) -> Words {
        Words { low: self.word(bits as u32), high: self.word((bits >> 32) as u32) }
    }

    fn word(&mut self, x: u32) -> Value {
        self.out.constant(Scalar::from(x))
    }

    /// `op` with a constant word.
    fn by(&mut self, op: BinaryOp, x: Value, n: u32) -> Value {
        let n = self.word(n);
        self.out.binary(op, x, n)
    }

    fn add(&mut self, x: Value, y: Value) -> Value {
        self.out.binary(BinaryOp::Add, x, y)
    }

    /// 1 where `cond` holds, else 0.
    fn flag(&mut self, cond: Value) -> Value {
        let [one, zero] = [1, 0].map(|n| self.word(n));
        self.out.select(cond, one, zero)
    }

    /// 0 or, of negative numbers, all ones, from the upper word.
    fn sign(&mut self, high: Value) -> Value {
        let thirty_one = self.word(31);
        self.arithmetic_shift(high, thirty_one)
    }

    fn arithmetic_shift(&mut self, x: Value, n: Value) -> Value {
        let [x, n] = [x, n].map(|word| self.out.bitcast(DType::I32, word));
        let shifted = self.out.binary(BinaryOp::Shr, x, n);
        self.out.bitcast(DType::U32, shifted)
    }

    fn is_negative(&mut self, x: Words) -> Value {
        let high = self.out.bitcast(DType::I32, x.high);
        let zero = self.out.constant(Scalar::from(0i32));
        self.out.binary(BinaryOp::Lt, high, zero)
    }

    /// An `i32` as a pair.
    pub(super) fn widened(&mut self, x: Value) -> Words {
        let low = self.out.bitcast(DType::U32, x);
        Words { low, high: self.sign(low) }
    }

    pub(super) fn select(&mut self, cond: Value, x: Words, y: Words) -> Words {
        let low = self.out.select(cond, x.low, y.low);
        Words { low, high: self.out.select(cond, x.high, y.high) }
    }

    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, x: Words) -> Words {
        match op {
            UnaryOp::Neg => {
                let zero = self.long(0);
                self.difference(zero, x)
            }
            UnaryOp::Not => {
                let low = self.out.unary(UnaryOp::Not, x.low);
                Words { low, high: self.out.unary(UnaryOp::Not, x.high) }
            }
            UnaryOp::Abs if dtype.is_signed() => {
                let negated = self.unary(UnaryOp::Neg, dtype, x);
                let is_negative = self.is_negative(x);
                self.select(is_negative, negated, x)
            }
            // Rounding an integer, and the magnitude of an unsigned one.
            _ => x,
        }
    }

    /// A binary op on pairs; of a comparison the result is no pair.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: Words,
        y: Words,
    ) -> Result<Words, &'static str> {
        Ok(match op {
            BinaryOp::Add => {
                let low = self.add(x.low, y.low);
                let carry = self.out.binary(BinaryOp::Lt, low, x.low);
                let (high, carry) = (self.add(x.high, y.high), self.flag(carry));
                Words { low, high: self.add(high, carry) }
            }
            BinaryOp::Sub => self.difference(x, y),
            BinaryOp::Mul => self.product(x, y),
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                let low = self.out.binary(op, x.low, y.low);
                Words { low, high: self.out.binary(op, x.high, y.high) }
            }
            BinaryOp::Lt | BinaryOp::Le => self.ordered(op, dtype, x, y).into(),
            BinaryOp::Eq | BinaryOp::Ne => {
                let low = self.out.binary(op, x.low, y.low);
                let high = self.out.binary(op, x.high, y.high);
                let both = if op == BinaryOp::Eq { BinaryOp::And } else { BinaryOp::Or };
                self.out.binary(both, low, high).into()
            }
            BinaryOp::Max | BinaryOp::Min => {
                let is_less = self.ordered(BinaryOp::Lt, dtype, x, y);
                let (x, y) = if op == BinaryOp::Min { (x, y) } else { (y, x) };
                self.select(is_less, x, y)
            }
            BinaryOp::Shl => self.left(x, y.low),
            BinaryOp::Shr => self.right(dtype, x, y.low),
            BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Pow
            | BinaryOp::Atan2
            | BinaryOp::LogAddExp
            | BinaryOp::Gcd => {
                return Err("such operation");
            }
        })
    }

    fn difference(&mut self, x: Words, y: Words) -> Words {
        let less = |p: &mut Self, x, y| p.out.binary(BinaryOp::Sub, x, y);
        let borrow = self.out.binary(BinaryOp::Lt, x.low, y.low);
        let borrow = self.flag(borrow);
        let high = less(self, x.high, y.high);
        Words { low: less(self, x.low, y.low), high: less(self, high, borrow) }
    }

    /// Less than, or less than or equal.
    fn ordered(&mut self, op: BinaryOp, dtype: DType, x: Words, y: Words) -> Value {
        let signed = |p: &mut Self, high| match dtype.is_signed() {
            true => p.out.bitcast(DType::I32, high),
            false => high,
        };
        let (a, b) = (signed(self, x.high), signed(self, y.high));
        let above = self.out.binary(BinaryOp::Lt, a, b);
        let equal = self.out.binary(BinaryOp::Eq, a, b);
        let below = self.out.binary(op, x.low, y.low);
        let tie = self.out.binary(BinaryOp::And, equal, below);
        self.out.binary(BinaryOp::Or, above, tie)
    }

    fn product(&mut self, x: Words, y: Words) -> Words {
        let times = |p: &mut Self, x, y| p.out.binary(BinaryOp::Mul, x, y);
        // The whole product of the lower words, from products of their halves.
        let half = |p: &mut Self, x| (p.by(BinaryOp::And, x, 0xffff), p.by(BinaryOp::Shr, x, 16));
        let ((xl, xh), (yl, yh)) = (half(self, x.low), half(self, y.low));
        let low = times(self, xl, yl);
        let (first, second) = (times(self, xh, yl), times(self, xl, yh));
        let (_, carried) = half(self, low);
        let middle = self.add(first, carried);
        let (rest, over) = half(self, middle);
        let other = self.add(second, rest);
        let (_, carried) = half(self, other);
        let high = times(self, xh, yh);
        let high = self.add(high, over);
        let high = self.add(high, carried);
        let (first, second) = (times(self, x.low, y.high), times(self, x.high, y.low));
        let high = self.add(high, first);
        Words { low: times(self, x.low, y.low), high: self.add(high, second) }
    }

    /// A distance below 64 taken apart: what is left of it within a word, 31 less that, and whether
    /// it reaches beyond.
    fn distance(&mut self, n: Value) -> [Value; 3] {
        let near = self.by(BinaryOp::And, n, 31);
        [near, self.by(BinaryOp::Xor, near, 31), self.by(BinaryOp::Le, n, 31)]
    }

    fn left(&mut self, x: Words, n: Value) -> Words {
        let [near, rest, is_near] = self.distance(n);
        let moved = self.out.binary(BinaryOp::Shl, x.low, near);
        let filled = self.out.binary(BinaryOp::Shl, x.high, near);
        // In two steps, since the word moves out entirely where the distance is none.
        let carried = self.by(BinaryOp::Shr, x.low, 1);
        let carried = self.out.binary(BinaryOp::Shr, carried, rest);
        let filled = self.out.binary(BinaryOp::Or, filled, carried);
        let zero = self.word(0);
        self.select(is_near, Words { low: moved, high: filled }, Words { low: zero, high: moved })
    }

    fn right(&mut self, dtype: DType, x: Words, n: Value) -> Words {
        let [near, rest, is_near] = self.distance(n);
        let (moved, fill) = match dtype.is_signed() {
            true => (self.arithmetic_shift(x.high, near), self.sign(x.high)),
            false => (self.out.binary(BinaryOp::Shr, x.high, near), self.word(0)),
        };
        let filled = self.out.binary(BinaryOp::Shr, x.low, near);
        let carried = self.by(BinaryOp::Shl, x.high, 1);
        let carried = self.out.binary(BinaryOp::Shl, carried, rest);
        let filled = self.out.binary(BinaryOp::Or, filled, carried);
        self.select(is_near, Words { low: filled, high: moved }, Words { low: moved, high: fill })
    }

    // Conversions.

    pub(super) fn cast_to_pair(&mut self, to: DType, x: Value) -> Words {
        let from = self.out.ty(x).dtype;
        if from.is_float() {
            return self.whole_of(to, x);
        }
        if from.is_signed() {
            let x = self.out.cast(DType::I32, x);
            return self.widened(x);
        }
        Words { low: self.out.cast(DType::U32, x), high: self.word(0) }
    }

    pub(super) fn cast_from_pair(&mut self, from: DType, to: DType, x: Words) -> Value {
        match to {
            DType::Bool => {
                let all = self.out.binary(BinaryOp::Or, x.low, x.high);
                self.out.cast(to, all)
            }
            _ if to.is_float() => self.float_of(from, x),
            _ => self.out.cast(to, x.low),
        }
    }

    /// To `f32`, rounded once: the leading bits, of which a word holds more than enough, with a last
    /// one that says whether any is set below them.
    fn float_of(&mut self, from: DType, x: Words) -> Value {
        let a = self.unary(UnaryOp::Abs, from, x);
        // The length of the upper word is in the exponent of it as a float, or one less. A bit of
        // that is moved out first, so that all distances are below 32.
        let is_short = self.by(BinaryOp::Eq, a.high, 0);
        let lost = self.by(BinaryOp::And, a.low, 1);
        let one = self.word(1);
        let halved = self.right(DType::U64, a, one);
        let float = self.out.cast(DType::F32, a.high);
        let bits = self.out.bitcast(DType::U32, float);
        let field = self.by(BinaryOp::Shr, bits, 23);
        let places = self.by(BinaryOp::Sub, field, 127);
        let most = self.word(31);
        let is_near = self.out.binary(BinaryOp::Lt, places, most);
        let places = self.out.select(is_near, places, most);
        let [near, rest, _] = self.distance(places);
        let top = self.out.binary(BinaryOp::Shr, halved.low, near);
        let carried = self.by(BinaryOp::Shl, halved.high, 1);
        let carried = self.out.binary(BinaryOp::Shl, carried, rest);
        let top = self.out.binary(BinaryOp::Or, top, carried);
        let unit = self.out.binary(BinaryOp::Shl, one, near);
        let below = self.by(BinaryOp::Sub, unit, 1);
        let cut = self.out.binary(BinaryOp::And, halved.low, below);
        let cut = self.out.binary(BinaryOp::Or, cut, lost);
        let is_cut = self.by(BinaryOp::Ne, cut, 0);
        let sticky = self.flag(is_cut);
        let top = self.out.binary(BinaryOp::Or, top, sticky);
        let float = self.out.cast(DType::F32, top);
        // Times a power of two, which is an exponent field.
        let scale = self.by(BinaryOp::Add, places, 128);
        let scale = self.by(BinaryOp::Shl, scale, 23);
        let scale = self.out.bitcast(DType::F32, scale);
        let long = self.out.binary(BinaryOp::Mul, float, scale);
        let short = self.out.cast(DType::F32, a.low);
        let float = self.out.select(is_short, short, long);
        if !from.is_signed() {
            return float;
        }
        let (is_negative, negated) = (self.is_negative(x), self.out.unary(UnaryOp::Neg, float));
        self.out.select(is_negative, negated, float)
    }

    /// From an `f32` within range, truncated.
    fn whole_of(&mut self, to: DType, x: Value) -> Words {
        let mut k = |n: f64| self.out.constant(Scalar::from_f64(DType::F32, n));
        let (down, up, zero) = (k((-32f64).exp2()), k(32f64.exp2()), k(0.0));
        let a = self.out.unary(UnaryOp::Abs, x);
        let high = self.out.binary(BinaryOp::Mul, a, down);
        let high = self.out.cast(DType::U32, high);
        let whole = self.out.cast(DType::F32, high);
        let whole = self.out.binary(BinaryOp::Mul, whole, up);
        let low = self.out.binary(BinaryOp::Sub, a, whole);
        let a = Words { low: self.out.cast(DType::U32, low), high };
        let is_negative = self.out.binary(BinaryOp::Lt, x, zero);
        let negated = self.unary(UnaryOp::Neg, to, a);
        self.select(is_negative, negated, a)
    }
}
