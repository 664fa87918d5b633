//! Correctly rounded quotients and square roots of `f32` on devices that are off by a few units.
//!
//! A multiply-add that rounds once, where there is one, gives the exact remainder of an estimate
//! (Markstein 1990), as long as that is no subnormal number. Else integers do it: the device's own
//! result is within eight units, so an integer near the exact one is known, and its remainder fits
//! 32 bits although the dividend does not: arithmetic modulo 2^32 gives it. The remainder corrects
//! the integer and says how to round. Infinities, zeros and NaN are selected; subnormal operands
//! are normalised first.

use super::asm::{Ty, gl};
use super::math::Math;
use rspirv::spirv::{Op, Word};

/// A positive number `m * 2^(field - 150)` with `m` of 24 bits.
struct Parts {
    m: Word,
    field: Word,
}

const INFINITY: u32 = 0x7f80_0000;

/// Exponent fields from which on, and how many further ones up to which, quotients of operands are
/// normal and remainders are no subnormal numbers: 2^-60 to 2^60.
const LEAST_FIELD: u32 = 67;
const FIELDS: u32 = 120;

impl Math<'_> {
    fn w(&mut self, op: Op, x: Word, y: Word) -> Word {
        self.asm.op(op, Ty::U32, &[x, y])
    }

    /// `op` with a constant.
    fn wk(&mut self, op: Op, x: Word, k: u32) -> Word {
        let k = self.asm.word(k);
        self.asm.op(op, Ty::U32, &[x, k])
    }

    fn is(&mut self, op: Op, x: Word, k: u32) -> Word {
        let k = self.asm.word(k);
        self.test(op, &[x, k])
    }

    fn pick(&mut self, cond: Word, x: Word, y: Word) -> Word {
        self.asm.op(Op::Select, Ty::U32, &[cond, x, y])
    }

    /// 1 where `cond` holds, else 0.
    fn bit(&mut self, cond: Word) -> Word {
        let (one, zero) = (self.asm.word(1), self.asm.word(0));
        self.pick(cond, one, zero)
    }

    fn parts(&mut self, magnitude: Word) -> Parts {
        let is_small = self.is(Op::ULessThan, magnitude, 1 << 23);
        let first = self.asm.extended(gl::FIND_U_MSB, Ty::U32, &[magnitude]);
        let last = self.asm.word(23);
        let up = self.w(Op::ISub, last, first);
        let (zero, one) = (self.asm.word(0), self.asm.word(1));
        // Of zero nothing is used.
        let up = self.wk(Op::BitwiseAnd, up, 31);
        let up = self.pick(is_small, up, zero);
        let field = self.wk(Op::ShiftRightLogical, magnitude, 23);
        let field = self.pick(is_small, one, field);
        let field = self.w(Op::ISub, field, up);
        let fraction = self.wk(Op::BitwiseAnd, magnitude, 0x7f_ffff);
        let hidden = self.asm.word(1 << 23);
        let hidden = self.pick(is_small, zero, hidden);
        let m = self.w(Op::BitwiseOr, fraction, hidden);
        Parts { m: self.w(Op::ShiftLeftLogical, m, up), field }
    }

    /// The bits of a positive result from its 24 bits, the next one and whether more follows, and
    /// its exponent field, which may be out of range.
    fn rounded_bits(&mut self, extended: Word, field: Word) -> Word {
        let one = self.asm.word(1);
        let is_small = self.test(Op::SLessThan, &[field, one]);
        let down = self.w(Op::ISub, one, field);
        let most = self.asm.word(26);
        let is_tiny = self.test(Op::SLessThan, &[most, down]);
        let down = self.pick(is_tiny, most, down);
        let zero = self.asm.word(0);
        let down = self.pick(is_small, down, zero);
        let field = self.pick(is_small, one, field);
        let mask = self.w(Op::ShiftLeftLogical, one, down);
        let mask = self.w(Op::ISub, mask, one);
        let lost = self.w(Op::BitwiseAnd, extended, mask);
        let lost = self.is(Op::INotEqual, lost, 0);
        let lost = self.bit(lost);
        let kept = self.w(Op::ShiftRightLogical, extended, down);
        let kept = self.w(Op::BitwiseOr, kept, lost);
        let odd = self.wk(Op::ShiftRightLogical, kept, 2);
        let odd = self.wk(Op::BitwiseAnd, odd, 1);
        let sum = self.w(Op::IAdd, kept, one);
        let sum = self.w(Op::IAdd, sum, odd);
        let m = self.wk(Op::ShiftRightLogical, sum, 2);
        let high = self.w(Op::ISub, field, one);
        let high = self.wk(Op::ShiftLeftLogical, high, 23);
        let bits = self.w(Op::IAdd, high, m);
        let last = self.asm.word(254);
        let overflows = self.test(Op::SLessThan, &[last, field]);
        let infinity = self.asm.word(INFINITY);
        self.pick(overflows, infinity, bits)
    }

    /// `x / y`
    pub(super) fn rounded_quotient(&mut self, x: Word, y: Word) -> Word {
        let [bx, by] = [x, y].map(|v| self.asm.op(Op::Bitcast, Ty::U32, &[v]));
        let sign = self.w(Op::BitwiseXor, bx, by);
        let sign = self.wk(Op::BitwiseAnd, sign, 1 << 31);
        let [ax, ay] = [bx, by].map(|v| self.wk(Op::BitwiseAnd, v, 0x7fff_ffff));
        let (a, b) = (self.parts(ax), self.parts(ay));
        let y_zero = self.is(Op::IEqual, ay, 0);
        let unit = self.asm.word(1 << 23);
        let bm = self.pick(y_zero, unit, b.m);
        // The quotient has 24 bits if the dividend is shifted by one more where it is smaller.
        let smaller = self.test(Op::ULessThan, &[a.m, bm]);
        let smaller = self.bit(smaller);
        let shift = self.wk(Op::IAdd, smaller, 23);
        let dividend = self.w(Op::ShiftLeftLogical, a.m, shift);
        let field = self.w(Op::ISub, a.field, b.field);
        let field = self.wk(Op::IAdd, field, 127);
        let field = self.w(Op::ISub, field, smaller);
        let [fa, fb] = [a.m, bm].map(|v| self.asm.op(Op::ConvertUToF, Ty::F32, &[v]));
        let near = self.asm.exact(Op::FDiv, Ty::F32, &[fa, fb]);
        // Times 2^shift, by its exponent field.
        let scale = self.wk(Op::IAdd, shift, 127);
        let scale = self.wk(Op::ShiftLeftLogical, scale, 23);
        let scale = self.asm.op(Op::Bitcast, Ty::F32, &[scale]);
        let near = self.asm.exact(Op::FMul, Ty::F32, &[near, scale]);
        let near = self.asm.op(Op::ConvertFToU, Ty::U32, &[near]);
        let mut quotient = self.wk(Op::ISub, near, 8);
        let product = self.w(Op::IMul, quotient, bm);
        let mut rest = self.w(Op::ISub, dividend, product);
        for k in [8, 4, 2, 1] {
            let step = self.wk(Op::IMul, bm, k);
            let fits = self.test(Op::SLessThanEqual, &[step, rest]);
            let (more, less) = (self.wk(Op::IAdd, quotient, k), self.w(Op::ISub, rest, step));
            quotient = self.pick(fits, more, quotient);
            rest = self.pick(fits, less, rest);
        }
        let twice = self.wk(Op::ShiftLeftLogical, rest, 1);
        let above = self.test(Op::ULessThanEqual, &[bm, twice]);
        let less = self.w(Op::ISub, twice, bm);
        let left = self.pick(above, less, twice);
        let left = self.is(Op::INotEqual, left, 0);
        let bits = self.extended(quotient, above, left);
        let bits = self.rounded_bits(bits, field);
        // What is not a quotient of two positive numbers.
        let (infinity, zero) = (self.asm.word(INFINITY), self.asm.word(0));
        let x_zero = self.is(Op::IEqual, ax, 0);
        let (x_inf, y_inf) = (self.is(Op::IEqual, ax, INFINITY), self.is(Op::IEqual, ay, INFINITY));
        let vanishes = self.test(Op::LogicalOr, &[x_zero, y_inf]);
        let explodes = self.test(Op::LogicalOr, &[y_zero, x_inf]);
        let bits = self.pick(vanishes, zero, bits);
        let bits = self.pick(explodes, infinity, bits);
        let bits = self.w(Op::BitwiseOr, bits, sign);
        let both = self.test(Op::LogicalAnd, &[vanishes, explodes]);
        let (x_nan, y_nan) =
            (self.is(Op::UGreaterThan, ax, INFINITY), self.is(Op::UGreaterThan, ay, INFINITY));
        let is_nan = self.test(Op::LogicalOr, &[x_nan, y_nan]);
        let is_nan = self.test(Op::LogicalOr, &[is_nan, both]);
        let nan = self.asm.word(0x7fc0_0000);
        let bits = self.pick(is_nan, nan, bits);
        self.asm.op(Op::Bitcast, Ty::F32, &[bits])
    }

    /// 24 bits, the next one, and whether more follows.
    fn extended(&mut self, m: Word, next: Word, more: Word) -> Word {
        let m = self.wk(Op::ShiftLeftLogical, m, 2);
        let next = self.bit(next);
        let next = self.wk(Op::ShiftLeftLogical, next, 1);
        let m = self.w(Op::BitwiseOr, m, next);
        let more = self.bit(more);
        self.w(Op::BitwiseOr, m, more)
    }

    /// The square root of `x`
    pub(super) fn rounded_root(&mut self, x: Word) -> Word {
        let bits = self.asm.op(Op::Bitcast, Ty::U32, &[x]);
        let magnitude = self.wk(Op::BitwiseAnd, bits, 0x7fff_ffff);
        let Parts { m, field } = self.parts(magnitude);
        // x = m * 2^23 * 2^(field - 173): the last exponent has to be even.
        let odd = self.wk(Op::BitwiseAnd, field, 1);
        let one = self.asm.word(1);
        let shift = self.w(Op::BitwiseXor, odd, one);
        let m = self.w(Op::ShiftLeftLogical, m, shift);
        let exponent = self.w(Op::ISub, field, shift);
        let exponent = self.wk(Op::ISub, exponent, 173);
        let exponent = self.wk(Op::ShiftRightArithmetic, exponent, 1);
        let field = self.wk(Op::IAdd, exponent, 150);
        // sqrt(m * 2^23) = sqrt(2 m) * 2^11
        let float = self.asm.op(Op::ConvertUToF, Ty::F32, &[m]);
        let (two, scale) = (self.float(2.0), self.float(2048.0));
        let double = self.asm.exact(Op::FMul, Ty::F32, &[float, two]);
        let near = self.asm.extended(gl::SQRT, Ty::F32, &[double]);
        let near = self.asm.exact(Op::FMul, Ty::F32, &[near, scale]);
        let near = self.asm.op(Op::ConvertFToU, Ty::U32, &[near]);
        let square = self.wk(Op::ShiftLeftLogical, m, 23);
        let mut root = self.wk(Op::ISub, near, 8);
        let product = self.w(Op::IMul, root, root);
        let mut rest = self.w(Op::ISub, square, product);
        for k in [8, 4, 2, 1] {
            // (root + k)^2 - root^2
            let step = self.wk(Op::IMul, root, 2 * k);
            let step = self.wk(Op::IAdd, step, k * k);
            let fits = self.test(Op::SLessThanEqual, &[step, rest]);
            let (more, less) = (self.wk(Op::IAdd, root, k), self.w(Op::ISub, rest, step));
            root = self.pick(fits, more, root);
            rest = self.pick(fits, less, rest);
        }
        let above = self.test(Op::ULessThan, &[root, rest]);
        let left = self.is(Op::INotEqual, rest, 0);
        let result = self.extended(root, above, left);
        let result = self.rounded_bits(result, field);
        // Zeros and infinity are their own roots; negative numbers and NaN have none.
        let is_zero = self.is(Op::IEqual, magnitude, 0);
        let is_infinite = self.is(Op::IEqual, bits, INFINITY);
        let itself = self.test(Op::LogicalOr, &[is_zero, is_infinite]);
        let invalid = self.is(Op::UGreaterThan, bits, INFINITY);
        let nan = self.asm.word(0x7fc0_0000);
        let result = self.pick(invalid, nan, result);
        let result = self.pick(itself, bits, result);
        self.asm.op(Op::Bitcast, Ty::F32, &[result])
    }

    /// `refined` where `far` does not hold, else `rounded`.
    fn refined(
        &mut self,
        far: Word,
        rounded: impl FnOnce(&mut Self) -> Word,
        refined: impl FnOnce(&mut Self) -> Word,
    ) -> Word {
        let [slow, fast, merge] = [0; 3].map(|_| self.asm.id());
        self.asm.selection(far, slow, fast, merge);
        self.asm.label(slow);
        let exact = rounded(self);
        let slow = self.asm.here();
        self.asm.branch(merge);
        self.asm.label(fast);
        let quick = refined(self);
        let fast = self.asm.here();
        self.asm.branch(merge);
        self.asm.label(merge);
        self.asm.op(Op::Phi, Ty::F32, &[exact, slow, quick, fast])
    }

    /// Whether the exponent field in these bits leaves no room for exact remainders.
    fn is_far(&mut self, bits: Word) -> Word {
        let field = self.wk(Op::ShiftRightLogical, bits, 23);
        let field = self.wk(Op::ISub, field, LEAST_FIELD);
        self.is(Op::UGreaterThan, field, FIELDS)
    }

    /// `x * y + z`, rounded once; what is subnormal may become zero.
    fn fused(&mut self, x: Word, y: Word, z: Word) -> Word {
        self.asm.extended(gl::FMA, Ty::F32, &[x, y, z])
    }

    /// `z - x * y`
    fn remainder(&mut self, x: Word, y: Word, z: Word) -> Word {
        let x = self.asm.exact(Op::FNegate, Ty::F32, &[x]);
        self.fused(x, y, z)
    }

    /// A first guess without its lowest bits, so that no compiler knows what it is to the operand.
    fn guess(&mut self, near: Word) -> Word {
        let bits = self.asm.op(Op::Bitcast, Ty::U32, &[near]);
        let bits = self.wk(Op::BitwiseAnd, bits, !15);
        self.asm.op(Op::Bitcast, Ty::F32, &[bits])
    }

    /// `x / y` by a multiply-add that rounds once: what it leaves of the dividend corrects the
    /// quotient, given the rounded inverse, which a divisor of all ones does not get this way.
    pub(super) fn refined_quotient(&mut self, x: Word, y: Word) -> Word {
        let [bx, by] = [x, y].map(|v| self.asm.op(Op::Bitcast, Ty::U32, &[v]));
        let [ax, ay] = [bx, by].map(|v| self.wk(Op::BitwiseAnd, v, 0x7fff_ffff));
        let [x_far, y_far] = [ax, ay].map(|v| self.is_far(v));
        let fraction = self.wk(Op::BitwiseAnd, by, 0x7f_ffff);
        let ones = self.is(Op::IEqual, fraction, 0x7f_ffff);
        let far = self.test(Op::LogicalOr, &[x_far, y_far]);
        let far = self.test(Op::LogicalOr, &[far, ones]);
        let rounded = |m: &mut Self| m.rounded_quotient(x, y);
        self.refined(far, rounded, |m| {
            let one = m.float(1.0);
            let near = m.asm.exact(Op::FDiv, Ty::F32, &[one, y]);
            let mut inverse = m.guess(near);
            for _ in 0..2 {
                let rest = m.remainder(y, inverse, one);
                inverse = m.fused(rest, inverse, inverse);
            }
            let mut quotient = m.asm.exact(Op::FMul, Ty::F32, &[x, inverse]);
            for _ in 0..2 {
                let rest = m.remainder(y, quotient, x);
                quotient = m.fused(rest, inverse, quotient);
            }
            quotient
        })
    }

    /// The square root of `x`: the one whose products with its neighbours lie around `x` (Tuckerman).
    pub(super) fn refined_root(&mut self, x: Word) -> Word {
        let bits = self.asm.op(Op::Bitcast, Ty::U32, &[x]);
        let far = self.is_far(bits);
        let rounded = |m: &mut Self| m.rounded_root(x);
        self.refined(far, rounded, |m| {
            let near = m.asm.extended(gl::INVERSE_SQRT, Ty::F32, &[x]);
            let guess = m.guess(near);
            let first = m.asm.exact(Op::FMul, Ty::F32, &[x, guess]);
            let half = m.float(0.5);
            let half = m.asm.exact(Op::FMul, Ty::F32, &[half, guess]);
            let rest = m.remainder(first, first, x);
            let near = m.fused(rest, half, first);
            let bits = m.asm.op(Op::Bitcast, Ty::U32, &[near]);
            let [below, above] = [Op::ISub, Op::IAdd].map(|op| {
                let bits = m.wk(op, bits, 1);
                m.asm.op(Op::Bitcast, Ty::F32, &[bits])
            });
            let zero = m.float(0.0);
            let [under, over] = [below, above].map(|v| m.remainder(v, near, x));
            let too_large = m.test(Op::FOrdLessThanEqual, &[under, zero]);
            let too_small = m.test(Op::FOrdLessThan, &[zero, over]);
            let lower = m.asm.op(Op::Select, Ty::F32, &[too_large, below, near]);
            m.asm.op(Op::Select, Ty::F32, &[too_small, above, lower])
        })
    }

    fn float(&mut self, x: f32) -> Word {
        self.asm.constant(Ty::F32, x.to_bits().into())
    }
}
