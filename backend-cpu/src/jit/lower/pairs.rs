//! Every second element, as the parts of complex numbers lie: vectors along memory and shuffles.
//!
//! A load reads two vectors that overlap by an element, so nothing behind the last lane. A store waits
//! for the one that fills the places between its lanes, if that comes before anything else touches
//! memory; then both are one row.

use super::super::machine::{ConstData, Effect, Inst, Place, Reg, Shape, VecInst, Vop};
use super::super::x86::asm::{Len, VOp};
use super::address::{Affine, Root};
use super::memory::Spot;
use super::{Lower, Result, Val, len_of};
use zyx_core::ir::{Type, Value};

/// A store that waits.
pub(super) struct Half {
    root: Root,
    first: Affine,
    index: Value,
    value: Value,
}

/// Selects lanes 0 and 2 of one vector, 1 and 3 of another, in each 128 bits; quarters 0, 2, 1, 3.
const EVEN: u8 = 0b11_01_10_00;

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

    pub(super) fn load_every_second(
        &mut self,
        value: Value,
        root: Root,
        first: &Affine,
        ty: Type,
    ) -> Result<()> {
        let len = self.len(ty)?;
        let low = self.address(root, first, 4);
        let high = low.plus(ty.bytes() as i32 - 4);
        if !self.isa.is_x86() {
            let [low, high] = [low, high].map(|addr| {
                let dst = self.new_vec();
                self.load_bytes(dst, addr, ty.bytes());
                dst
            });
            let high = self.vop1(Vop::BytesFrom(4), Shape::ints(1, 16), high);
            let all = self.vop2(Vop::EvenLanes, Shape::of(ty), low, high);
            self.set(value, Val::Vec(all));
            return Ok(());
        }
        let low = self.vec2(VOp::Vmovups, len, low);
        let both = self.vec3_imm(VOp::Vshufps, len, low, high, EVEN);
        let all = match ty.lanes {
            8 => self.vec3_imm(VOp::Vpermpd, len, Reg::NONE, both, EVEN),
            _ => both,
        };
        self.set(value, Val::Vec(all));
        Ok(())
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
            return self.store_pairs(root, &half.first, [half.value, value]);
        }
        self.finish_half()?;
        self.half = Some(Half { root, first, index, value });
        Ok(())
    }

    /// Makes the store that waits.
    pub(super) fn finish_half(&mut self) -> Result<()> {
        let Some(Half { root, index, value, .. }) = self.half.take() else { return Ok(()) };
        if self.isa.has_masks() && self.can_gather(self.ty(value), index) {
            return self.scatter(root, index, value, None);
        }
        self.store_lanes(root, Spot::Scattered(index), value, None, &[])
    }

    fn store_pairs(&mut self, root: Root, first: &Affine, parts: [Value; 2]) -> Result<()> {
        let ty = self.ty(parts[0]);
        let len = len_of(ty.bytes())?;
        let [a, b] = [self.vec(parts[0])?, self.vec(parts[1])?];
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
