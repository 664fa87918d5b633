//! Every second element, as the parts of complex numbers lie: vectors along memory and shuffles.
//!
//! A load reads two vectors that overlap by an element, so nothing behind the last lane, and nothing beside lanes that a
//! guard excludes. A store waits
//! for the one that fills the places between its lanes, if that comes before anything else touches
//! memory; then both are one row. The store that waits reads its value later than the kernel says, so it
//! keeps the value in a register that nothing else writes.

use super::super::machine::{
    Addr, Bools, ConstData, Effect, Inst, Place, Reg, Shape, Test, VecInst, Vop,
};
use super::super::x86::asm::{Len, VOp};
use super::address::{Affine, Root};
use super::mask::lane_bits;
use super::memory::{Guard, Spot};
use super::{Lower, Result, Val, len_of};
use zyx_core::ir::{Op, Type, Value};
use zyx_core::{BinaryOp, Scalar};

/// A store that waits, of this value in this register.
pub(super) struct Half {
    root: Root,
    first: Affine,
    index: Value,
    value: Value,
    reg: Reg,
}

/// Selects lanes 0 and 2 of one vector, 1 and 3 of another, in each 128 bits; quarters 0, 2, 1, 3.
const EVEN: u8 = 0b11_01_10_00;

/// Steps that are followed from a lane to the literals it is computed of.
const KNOWN_DEPTH: u8 = 6;

impl Lower<'_> {
    /// The first index, where lanes of 32 bits are every second element.
    pub(super) fn every_second(&self, spot: &Spot, ty: Type) -> Option<Affine> {
        let Spot::Scattered(index) = spot else { return None };
        let fits = ty.dtype.size() == 4 && matches!(ty.lanes, 4 | 8);
        match self.val(*index) {
            Val::Ramp(base, 2) if fits => Some(self.affines[base as usize].clone()),
            _ => None,
        }
    }

    /// A guard without bools in registers: tests of the access as a whole, and which lanes are touched
    /// then. `None` where those are known only when the kernel runs, or nothing can leave lanes out.
    pub(super) fn known_guard(
        &mut self,
        guard: &Guard,
        lanes: u8,
    ) -> Result<Option<(Vec<Test>, u64)>> {
        let mut tests = guard.tests.clone();
        let mut all = Vec::from_iter(guard.lanes);
        let mut known = lane_bits(lanes);
        while let Some(cond) = all.pop() {
            match self.kernel.op(cond) {
                Op::Splat { x } => self.tests(x, &mut tests)?,
                Op::Binary { op: BinaryOp::And, x, y } => all.extend([x, y]),
                _ => {
                    for lane in 0..lanes {
                        let Some(bit) = self.known_lane(cond, lane, KNOWN_DEPTH) else {
                            return Ok(None);
                        };
                        known &= !(u64::from(!bit.to_bool()) << lane);
                    }
                }
            }
        }
        let fits = known == lane_bits(lanes) || self.isa.masks_memory();
        Ok(fits.then_some((tests, known)))
    }

    /// A lane of a vector that is computed of literals in a few steps.
    fn known_lane(&self, value: Value, lane: u8, depth: u8) -> Option<Scalar> {
        let dtype = self.ty(value).dtype;
        let depth = depth.checked_sub(1)?;
        match self.kernel.op(value) {
            Op::Const { bits } => Some(Scalar::from_bits(dtype, bits)),
            Op::Splat { x } => self.known_lane(x, 0, depth),
            Op::Lanes => Some(Scalar::from_i64(dtype, lane.into())),
            Op::Binary { op, x, y } => {
                Some(op.eval(self.known_lane(x, lane, depth)?, self.known_lane(y, lane, depth)?))
            }
            _ => None,
        }
    }

    /// Loads every second element of the lanes given by their bits if all tests hold; zeros elsewhere.
    pub(super) fn load_every_second(
        &mut self,
        value: Value,
        root: Root,
        first: &Affine,
        ty: Type,
        (tests, lanes): (&[Test], u64),
    ) -> Result<()> {
        let len = self.len(ty)?;
        let low = self.address(root, first, 4);
        if tests.is_empty() {
            let all = self.join_every_second(low, len, ty, lanes);
            self.set(value, Val::Vec(all));
            return Ok(());
        }
        let dst = self.new_vec();
        self.zero_vec(dst);
        let end = self.branch_around(tests);
        let all = self.join_every_second(low, len, ty, lanes);
        self.move_vec(dst, all);
        self.bind(end);
        self.set(value, Val::Vec(dst));
        Ok(())
    }

    fn join_every_second(&mut self, low: Addr, len: Len, ty: Type, lanes: u64) -> Reg {
        let [low, high] = [0, ty.lanes - 1].map(|start| {
            // An element between two lanes may be read if both are.
            let may = |at: u8| lanes >> (at / 2) & lanes >> at.div_ceil(2) & 1;
            let bits = (0..ty.lanes).fold(0, |bits, i| bits | may(start + i) << i);
            self.load_some(low.plus(4 * i32::from(start)), ty, bits)
        });
        if !self.isa.is_x86() {
            let high = self.vop1(Vop::BytesFrom(4), Shape::ints(1, 16), high);
            return self.vop2(Vop::EvenLanes, Shape::of(ty), low, high);
        }
        let both = self.vec3_imm(VOp::Vshufps, len, low, high, EVEN);
        match ty.lanes {
            8 => self.vec3_imm(VOp::Vpermpd, len, Reg::NONE, both, EVEN),
            _ => both,
        }
    }

    /// Loads the lanes given by their bits.
    fn load_some(&mut self, addr: Addr, ty: Type, lanes: u64) -> Reg {
        if lanes == lane_bits(ty.lanes) {
            let dst = self.new_vec();
            self.load_bytes(dst, addr, ty.bytes());
            return dst;
        }
        let mask = match self.isa.bools() {
            Bools::MaskRegister => {
                let bits = self.imm(lanes);
                self.mask_from_gpr(bits, ty.lanes)
            }
            Bools::WideLanes => {
                let bytes = (0..4 * u32::from(ty.lanes))
                    .map(|i| 0u8.wrapping_sub((lanes >> (i / 4) & 1) as u8));
                self.constant_reg(ConstData::Bytes(bytes.collect()))
            }
        };
        self.load_masked(addr, ty, mask)
    }

    /// Stores every second element, together with the ones between if those are the next.
    pub(super) fn store_every_second(
        &mut self,
        root: Root,
        first: Affine,
        (index, value): (Value, Value),
    ) -> Result<()> {
        let ty = self.ty(value);
        let partner = self.half.take_if(|half| {
            let next = half.first.wrapping_plus(&Affine::constant(1));
            half.root == root && next == first && self.kernel.ty(half.value) == ty
        });
        if let Some(half) = partner {
            let second = self.vec(value)?;
            return self.store_pairs(root, &half.first, [half.reg, second], ty);
        }
        self.finish_half()?;
        let mut reg = self.vec(value)?;
        // Storage in registers is written by the instruction that computes its next element, which may
        // stand before the partner.
        if self.slots.contains(&reg) {
            let own = self.new_vec();
            self.move_vec(own, reg);
            reg = own;
        }
        self.half = Some(Half { root, first, index, value, reg });
        Ok(())
    }

    /// Makes the store that waits.
    pub(super) fn finish_half(&mut self) -> Result<()> {
        let Some(Half { root, index, value, reg, .. }) = self.half.take() else { return Ok(()) };
        self.set(value, Val::Vec(reg));
        if self.isa.has_masks() && self.can_gather(self.ty(value), index) {
            return self.scatter(root, index, value, None);
        }
        self.store_lanes(root, Spot::Scattered(index), value, None, &[])
    }

    fn store_pairs(
        &mut self,
        root: Root,
        first: &Affine,
        [a, b]: [Reg; 2],
        ty: Type,
    ) -> Result<()> {
        let len = len_of(ty.bytes())?;
        let addr = self.address(root, first, 4);
        if ty.lanes == 8 && self.isa.has_masks() {
            let turns = (0..8u32).flat_map(|i| [i, 16 + i]).flat_map(u32::to_le_bytes);
            let turns = self.constant_reg(ConstData::Bytes(turns.collect()));
            let row = self.new_vec();
            self.move_vec(row, a);
            let it = VecInst::new(VOp::Vpermt2d, Len::Z, Place::from(b));
            self.push(Inst::Vec(VecInst { reg: row, vvvv: turns, effect: Effect::Mod, ..it }));
            self.vec_store(VOp::VmovupsStore, Len::Z, addr, row, 0);
            return Ok(());
        }
        let [low, high] = match self.isa.is_x86() {
            // In each 128 bits.
            true => [VOp::Vunpcklps, VOp::Vunpckhps].map(|op| self.vec3(op, len, a, b)),
            false => [Vop::ZipLow, Vop::ZipHigh].map(|op| self.vop2(op, Shape::of(ty), a, b)),
        };
        let rows = match ty.lanes {
            8 => [0x20, 0x31].map(|halves| self.vec3_imm(VOp::Vperm2f128, len, low, high, halves)),
            _ => [low, high],
        };
        for (row, at) in rows.into_iter().zip([0, ty.bytes() as i32]) {
            self.store_bytes(addr.plus(at), row, ty.bytes());
        }
        Ok(())
    }
}
