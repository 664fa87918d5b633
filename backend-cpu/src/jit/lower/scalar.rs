//! Integer and bool scalars, in general registers.
//!
//! Narrow integers are kept extended to 32 bits by their own sign, with zeros above; every result
//! is brought back to that form. Comparisons stay symbolic until a branch, a selection or a
//! register wants them, so that they cost no `setcc`.

use super::super::machine::{Alu, Class, Cond, Extend, Inst, Operand, Reg, Shift, Size, Test};
use super::super::x86::asm::VOp;
use super::address::Affine;
use super::{EmitError, Lower, Result, Val};
use zyx_core::ir::{Op, Value};
use zyx_core::{BinaryOp, DType, Scalar, UnaryOp};

/// The register size arithmetic on a dtype happens in.
pub(super) const fn size_of(dtype: DType) -> Size {
    if dtype.size() == 8 { Size::B64 } else { Size::B32 }
}

/// A literal as its register holds it.
pub(super) fn literal(dtype: DType, bits: u64) -> u64 {
    match dtype {
        DType::I8 => bits as u8 as i8 as i32 as u32 as u64,
        DType::I16 => bits as u16 as i16 as i32 as u32 as u64,
        _ => Scalar::from_bits(dtype, bits).bits(),
    }
}

impl Lower<'_> {
    /// A scalar integer, bool or half in a general register.
    pub(super) fn gpr(&mut self, value: Value) -> Reg {
        let dtype = self.ty(value).dtype;
        match self.val(value) {
            Val::Gpr(reg) => reg,
            Val::Const(bits) => self.imm(literal(dtype, bits)),
            Val::Affine(n) => {
                let affine = self.affines[n as usize].clone();
                self.materialise(&affine)
            }
            Val::Compare => self.bool_reg(value),
            Val::Pending(addr) => {
                self.force(value, addr);
                self.gpr(value)
            }
            Val::Mask(mask) => {
                let bits = self.read_gpr(VOp::KmovwToGpr, super::Len::X, mask);
                self.alu(Alu::And, Size::B32, bits, Operand::Imm(1))
            }
            Val::Wide(reg, _) => {
                let bits = self.vec_to_gpr(reg, 4);
                self.alu(Alu::And, Size::B32, bits, Operand::Imm(1))
            }
            Val::Vec(reg) => self.vec_to_gpr(reg, dtype.size()),
            Val::Ramp(..) | Val::None => {
                unreachable!("invariant: operands are lowered before their uses")
            }
        }
    }

    /// A scalar integer of any dtype, extended to 64 bits.
    pub(super) fn gpr_as_i64(&mut self, value: Value) -> Reg {
        let reg = self.gpr(value);
        match self.ty(value).dtype {
            DType::I8 | DType::I16 | DType::I32 => self.extend(Extend::Sign32, reg),
            _ => reg,
        }
    }

    /// The second operand of integer arithmetic: an immediate if it fits.
    fn operand(&mut self, value: Value) -> Operand {
        if let Val::Const(bits) = self.val(value) {
            let dtype = self.ty(value).dtype;
            let bits = literal(dtype, bits);
            let signed = if dtype.size() == 8 { bits as i64 } else { i64::from(bits as i32) };
            if let Ok(imm) = i32::try_from(signed) {
                return Operand::Imm(imm);
            }
        }
        Operand::Reg(self.gpr(value))
    }

    pub(super) fn alu(&mut self, op: Alu, size: Size, a: Reg, b: Operand) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Alu { op, size, dst, a, b });
        dst
    }

    pub(super) fn shift(&mut self, op: Shift, size: Size, a: Reg, by: u8) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Shift { op, size, dst, a, by });
        dst
    }

    pub(super) fn extend(&mut self, kind: Extend, src: Reg) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Extend { kind, dst, src: src.into() });
        dst
    }

    fn select(&mut self, size: Size, test: Test, x: Reg, y: Reg) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Select { size, dst, test, x, y });
        dst
    }

    /// Brings a result back to the form of its dtype.
    fn normalise(&mut self, dtype: DType, reg: Reg) -> Reg {
        match dtype {
            DType::I8 => self.extend(Extend::Sign8, reg),
            DType::I16 => self.extend(Extend::Sign16, reg),
            DType::U8 => self.extend(Extend::Zero8, reg),
            DType::U16 => self.extend(Extend::Zero16, reg),
            _ => reg,
        }
    }

    /// Records a scalar that was computed in a general register.
    pub(super) fn set_gpr(&mut self, value: Value, reg: Reg) {
        let val = match self.ty(value).dtype {
            DType::I64 => self.atom_val(reg),
            _ => Val::Gpr(reg),
        };
        self.set(value, val);
    }

    // ---- ops ---------------------------------------------------------------------------------

    pub(super) fn scalar_unary(&mut self, value: Value, op: UnaryOp, x: Value) {
        let dtype = self.ty(value).dtype;
        let size = size_of(dtype);
        if dtype == DType::I64 && op == UnaryOp::Neg {
            let affine = self.affine(x).wrapping_scaled(-1);
            let n = self.new_affine(affine);
            return self.set(value, Val::Affine(n));
        }
        let a = self.gpr(x);
        let reg = match op {
            UnaryOp::Not if dtype == DType::Bool => {
                self.alu(Alu::Xor, Size::B32, a, Operand::Imm(1))
            }
            UnaryOp::Not => {
                let dst = self.new_reg(Class::Gpr);
                self.push(Inst::Not { size, dst, a });
                self.normalise(dtype, dst)
            }
            UnaryOp::Neg => {
                let dst = self.negate(size, a);
                self.normalise(dtype, dst)
            }
            UnaryOp::Abs if dtype.is_signed() => {
                let negative = self.negate(size, a);
                let test = Test { size, cond: Cond::Less, a, b: Operand::Imm(0) };
                let dst = self.select(size, test, negative, a);
                self.normalise(dtype, dst)
            }
            // Rounding an integer, or the magnitude of an unsigned one.
            _ => a,
        };
        self.set_gpr(value, reg);
    }

    fn negate(&mut self, size: Size, a: Reg) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Neg { size, dst, a });
        dst
    }

    pub(super) fn scalar_binary(
        &mut self,
        value: Value,
        op: BinaryOp,
        x: Value,
        y: Value,
    ) -> Result<()> {
        let dtype = self.ty(x).dtype;
        if dtype == DType::Bool {
            self.bool_binary(value, op, x, y);
            return Ok(());
        }
        if op.is_comparison() {
            // The operands' registers must exist where the comparison stands.
            self.settle(x);
            self.settle(y);
            self.set(value, Val::Compare);
            return Ok(());
        }
        if dtype == DType::I64
            && let Some(affine) = self.affine_binary(op, x, y)
        {
            let n = self.new_affine(affine);
            self.set(value, Val::Affine(n));
            return Ok(());
        }
        let size = size_of(dtype);
        let reg = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                let (x, y) = self.constant_last(op, x, y);
                let (a, b) = (self.gpr(x), self.operand(y));
                let alu = match op {
                    BinaryOp::Add => Alu::Add,
                    BinaryOp::Sub => Alu::Sub,
                    BinaryOp::And => Alu::And,
                    BinaryOp::Or => Alu::Or,
                    _ => Alu::Xor,
                };
                self.alu(alu, size, a, b)
            }
            BinaryOp::Mul => {
                let (x, y) = self.constant_last(op, x, y);
                let (a, b) = (self.gpr(x), self.operand(y));
                let dst = self.new_reg(Class::Gpr);
                self.push(Inst::Mul { size, dst, a, b });
                dst
            }
            BinaryOp::Div | BinaryOp::Rem => self.divide(op == BinaryOp::Rem, dtype, x, y),
            BinaryOp::Max | BinaryOp::Min => {
                let (a, b) = (self.gpr(x), self.gpr(y));
                let cond = match (op, dtype.is_signed()) {
                    (BinaryOp::Max, true) => Cond::Greater,
                    (BinaryOp::Max, false) => Cond::Above,
                    (_, true) => Cond::Less,
                    (_, false) => Cond::Below,
                };
                let test = Test { size, cond, a, b: Operand::Reg(b) };
                self.select(size, test, a, b)
            }
            BinaryOp::Shl | BinaryOp::Shr => self.scalar_shift(op, dtype, x, y),
            _ => return self.fallback_binary(value, op, x, y),
        };
        let reg = self.normalise(dtype, reg);
        self.set_gpr(value, reg);
        Ok(())
    }

    /// Makes sure that reading `value` later, in an inner region, computes nothing order-dependent.
    fn settle(&mut self, value: Value) {
        if let Val::Pending(addr) = self.val(value) {
            self.force(value, addr);
        }
    }

    fn constant_last(&self, op: BinaryOp, x: Value, y: Value) -> (Value, Value) {
        let swap = op.is_commutative() && matches!(self.val(x), Val::Const(_));
        if swap { (y, x) } else { (x, y) }
    }

    pub(super) fn known_i64(&self, value: Value) -> Option<i64> {
        match self.val(value) {
            Val::Const(bits) => Some(Scalar::from_bits(self.ty(value).dtype, bits).to_i64()),
            _ => None,
        }
    }

    fn affine_binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Affine> {
        match op {
            BinaryOp::Add => {
                let (a, b) = (self.affine(x), self.affine(y));
                Some(a.wrapping_plus(&b))
            }
            BinaryOp::Sub => {
                let (a, b) = (self.affine(x), self.affine(y));
                Some(a.wrapping_plus(&b.wrapping_scaled(-1)))
            }
            BinaryOp::Mul => match (self.known_i64(x), self.known_i64(y)) {
                (_, Some(n)) => Some(self.affine(x).wrapping_scaled(n)),
                (Some(n), None) => Some(self.affine(y).wrapping_scaled(n)),
                (None, None) => None,
            },
            BinaryOp::Shl => match self.known_i64(y) {
                Some(n @ 0..63) => Some(self.affine(x).wrapping_scaled(1 << n)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Shifts; by the width or more gives 0 or the sign.
    fn scalar_shift(&mut self, op: BinaryOp, dtype: DType, x: Value, y: Value) -> Reg {
        let (bits, size) = (dtype.bits() as i64, size_of(dtype));
        let kind = match (op, dtype.is_signed()) {
            (BinaryOp::Shl, _) => Shift::Shl,
            (_, true) => Shift::Sar,
            (_, false) => Shift::Shr,
        };
        let a = self.gpr(x);
        if let Some(n) = self.known_i64(y) {
            return match n {
                0 => a,
                n if (0..bits).contains(&n) => self.shift(kind, size, a, n as u8),
                _ if kind == Shift::Sar => self.shift(kind, size, a, bits as u8 - 1),
                _ => self.imm(0),
            };
        }
        let by = self.gpr(y);
        let inside = Test { size, cond: Cond::Below, a: by, b: Operand::Imm(bits as i32) };
        if kind == Shift::Sar {
            let most = self.imm(bits as u64 - 1);
            let by = self.select(size, inside, by, most);
            return self.shift_by(kind, size, a, by);
        }
        let shifted = self.shift_by(kind, size, a, by);
        let zero = self.imm(0);
        self.select(size, inside, shifted, zero)
    }

    fn shift_by(&mut self, op: Shift, size: Size, a: Reg, by: Reg) -> Reg {
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::ShiftBy { op, size, dst, a, by });
        dst
    }

    // ---- division ----------------------------------------------------------------------------

    fn divide(&mut self, rem: bool, dtype: DType, x: Value, y: Value) -> Reg {
        let signed = dtype.is_signed();
        if let Some(divisor) = self.known_i64(y)
            && dtype != DType::U64
            && divisor != 0
        {
            let a = self.gpr_as_i64(x);
            let quotient = self.divide_by(a, divisor);
            let result = if rem { self.remainder(a, quotient, divisor) } else { quotient };
            // Narrow results must not keep bits above 32.
            let narrow = dtype.size() < 8;
            return if narrow { self.extend(Extend::Zero32, result) } else { result };
        }
        let (a, b) = (self.gpr(x), self.gpr(y));
        let dst = self.new_reg(Class::Gpr);
        self.push(Inst::Div { size: size_of(dtype), signed, rem, dst, a, b });
        dst
    }

    /// `a - quotient * divisor`
    fn remainder(&mut self, a: Reg, quotient: Reg, divisor: i64) -> Reg {
        let size = Size::B64;
        let b = match i32::try_from(divisor) {
            Ok(n) => Operand::Imm(n),
            Err(_) => Operand::Reg(self.imm(divisor as u64)),
        };
        let product = self.new_reg(Class::Gpr);
        self.push(Inst::Mul { size, dst: product, a: quotient, b });
        self.alu(Alu::Sub, size, a, Operand::Reg(product))
    }

    /// A 64-bit signed quotient, truncated, without a division.
    fn divide_by(&mut self, a: Reg, divisor: i64) -> Reg {
        let size = Size::B64;
        let magnitude = divisor.unsigned_abs();
        let quotient = if magnitude == 1 {
            a
        } else if magnitude.is_power_of_two() {
            // Round towards zero: add the divisor less one to negative dividends.
            let k = magnitude.trailing_zeros() as u8;
            let sign = self.shift(Shift::Sar, size, a, 63);
            let bias = self.shift(Shift::Shr, size, sign, 64 - k);
            let biased = self.alu(Alu::Add, size, a, Operand::Reg(bias));
            self.shift(Shift::Sar, size, biased, k)
        } else {
            let (multiplier, shift) = magic(magnitude);
            let factor = self.imm(multiplier as u64);
            let high = self.new_reg(Class::Gpr);
            self.push(Inst::MulHigh { dst: high, a, b: factor });
            let high = match multiplier < 0 {
                true => self.alu(Alu::Add, size, high, Operand::Reg(a)),
                false => high,
            };
            let shifted = if shift > 0 { self.shift(Shift::Sar, size, high, shift) } else { high };
            // One more for negative dividends.
            let sign = self.shift(Shift::Shr, size, a, 63);
            self.alu(Alu::Add, size, shifted, Operand::Reg(sign))
        };
        if divisor < 0 { self.negate(size, quotient) } else { quotient }
    }

    // ---- bools -------------------------------------------------------------------------------

    fn bool_binary(&mut self, value: Value, op: BinaryOp, x: Value, y: Value) {
        let is_and = matches!(op, BinaryOp::And | BinaryOp::Mul | BinaryOp::Min);
        if is_and && self.facts.uses[value.idx()] == 1 {
            self.settle(x);
            self.settle(y);
            return self.set(value, Val::Compare);
        }
        let (a, b) = (self.gpr(x), self.gpr(y));
        let size = Size::B32;
        let b_op = Operand::Reg(b);
        let one = Operand::Imm(1);
        let reg = match op {
            BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => self.alu(Alu::Or, size, a, b_op),
            BinaryOp::Mul | BinaryOp::Min | BinaryOp::And => self.alu(Alu::And, size, a, b_op),
            BinaryOp::Eq => {
                let differ = self.alu(Alu::Xor, size, a, b_op);
                self.alu(Alu::Xor, size, differ, one)
            }
            BinaryOp::Lt | BinaryOp::Le => {
                let not = self.alu(Alu::Xor, size, a, one);
                let alu = if op == BinaryOp::Lt { Alu::And } else { Alu::Or };
                self.alu(alu, size, not, b_op)
            }
            _ => self.alu(Alu::Xor, size, a, b_op),
        };
        self.set(value, Val::Gpr(reg));
    }

    /// The condition of a comparison of scalar integers.
    fn compare_test(&mut self, op: BinaryOp, x: Value, y: Value) -> Test {
        let dtype = self.ty(x).dtype;
        let swap = matches!(self.val(x), Val::Const(_));
        let (first, second) = if swap { (y, x) } else { (x, y) };
        let a = self.gpr(first);
        let b = self.operand(second);
        let signed = dtype.is_signed();
        let cond = match (op, swap) {
            (BinaryOp::Eq, _) => Cond::Equal,
            (BinaryOp::Ne, _) => Cond::NotEqual,
            (BinaryOp::Lt, false) if signed => Cond::Less,
            (BinaryOp::Lt, false) => Cond::Below,
            (BinaryOp::Lt, true) if signed => Cond::Greater,
            (BinaryOp::Lt, true) => Cond::Above,
            (_, false) if signed => Cond::LessEqual,
            (_, false) => Cond::BelowEqual,
            (_, true) if signed => Cond::GreaterEqual,
            (_, true) => Cond::AboveEqual,
        };
        Test { size: size_of(dtype), cond, a, b }
    }

    /// A scalar bool as conditions that must all hold.
    pub(super) fn tests(&mut self, cond: Value, tests: &mut Vec<Test>) -> Result<()> {
        match (self.val(cond), self.kernel.op(cond)) {
            (Val::Compare, Op::Binary { op, x, y }) if op.is_comparison() => {
                tests.push(self.compare_test(op, x, y));
            }
            (Val::Compare, Op::Binary { x, y, .. }) => {
                self.tests(x, tests)?;
                self.tests(y, tests)?;
            }
            (Val::None, _) => return Err(EmitError::new("a condition that was not lowered")),
            (_, Op::Unary { op: UnaryOp::Not, x }) if self.is_comparison(x) => {
                let mut inner = Vec::new();
                self.tests(x, &mut inner)?;
                tests.extend(inner.into_iter().map(Test::not));
            }
            _ => tests.push(Test::is_true(self.gpr(cond))),
        }
        Ok(())
    }

    fn is_comparison(&self, value: Value) -> bool {
        let op = self.kernel.op(value);
        self.val(value) == Val::Compare && matches!(op, Op::Binary { op, .. } if op.is_comparison())
    }

    /// A symbolic bool as 0 or 1.
    fn bool_reg(&mut self, value: Value) -> Reg {
        let Op::Binary { op, x, y } = self.kernel.op(value) else {
            unreachable!("invariant: only binary ops stay symbolic")
        };
        if op.is_comparison() {
            let test = self.compare_test(op, x, y);
            let dst = self.new_reg(Class::Gpr);
            self.push(Inst::SetCc { dst, test });
            return dst;
        }
        let (a, b) = (self.gpr(x), self.gpr(y));
        self.alu(Alu::And, Size::B32, a, Operand::Reg(b))
    }

    /// `cond ? x : y` of integers.
    pub(super) fn scalar_where(
        &mut self,
        value: Value,
        cond: Value,
        x: Value,
        y: Value,
    ) -> Result<()> {
        let size = size_of(self.ty(value).dtype);
        let (x, y) = (self.gpr(x), self.gpr(y));
        let mut tests = Vec::new();
        self.tests(cond, &mut tests)?;
        let test = match tests[..] {
            [test] => test,
            _ => Test::is_true(self.gpr(cond)),
        };
        let reg = self.select(size, test, x, y);
        self.set_gpr(value, reg);
        Ok(())
    }
}

/// Multiplier and shift for signed division by a constant that is no power of two: the quotient
/// is the upper half of `x * multiplier` (plus `x` if the multiplier is negative), shifted right,
/// plus one if `x` is negative. Warren, Hacker's Delight, section 10-1.
fn magic(divisor: u64) -> (i64, u8) {
    const TWO63: u64 = 1 << 63;
    let t = TWO63;
    let anc = t - 1 - t % divisor;
    let mut p = 63;
    let (mut q1, mut r1) = (TWO63 / anc, TWO63 % anc);
    let (mut q2, mut r2) = (TWO63 / divisor, TWO63 % divisor);
    loop {
        p += 1;
        (q1, r1) = (q1.wrapping_mul(2), r1.wrapping_mul(2));
        if r1 >= anc {
            (q1, r1) = (q1.wrapping_add(1), r1 - anc);
        }
        (q2, r2) = (q2.wrapping_mul(2), r2.wrapping_mul(2));
        if r2 >= divisor {
            (q2, r2) = (q2.wrapping_add(1), r2 - divisor);
        }
        let delta = divisor - r2;
        if !(q1 < delta || (q1 == delta && r1 == 0)) {
            return (q2.wrapping_add(1) as i64, (p - 64) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::magic;

    #[test]
    fn magic_numbers_divide_exactly() {
        let interesting = [0, 1, 2, 3, 5, 6, 7, 100, 1 << 31, i64::MAX, i64::MAX - 1];
        for divisor in (3..2000u64).chain([1 << 40 | 1, i64::MAX as u64, 10_u64.pow(18)]) {
            if divisor.is_power_of_two() {
                continue;
            }
            let (multiplier, shift) = magic(divisor);
            for base in interesting {
                for x in [base, -base, base.wrapping_mul(divisor as i64), i64::MIN] {
                    for x in [x, x.wrapping_sub(1), x.wrapping_add(1)] {
                        let mut high = ((i128::from(x) * i128::from(multiplier)) >> 64) as i64;
                        if multiplier < 0 {
                            high = high.wrapping_add(x);
                        }
                        let quotient = (high >> shift).wrapping_add((x as u64 >> 63) as i64);
                        assert_eq!(quotient, x / divisor as i64, "{x} / {divisor}");
                    }
                }
            }
        }
    }
}
