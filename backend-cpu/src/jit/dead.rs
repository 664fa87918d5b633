//! Removes operations whose results nobody reads.
//!
//! Lowering leaves some behind: counters that a multiple replaced, operands of comparisons that
//! turned out to be constant, arguments that are not needed. One walk backwards over the list
//! finds them, since removing a reader comes before looking at what it read.

use super::machine::{Effect, Inst, Reg, Role};

/// Removes dead operations, keeping the order of the rest.
pub(super) fn remove(insts: &mut Vec<Inst>, n_registers: usize) {
    let mut readers = vec![0u32; n_registers];
    for inst in insts.iter_mut() {
        inst.visit(|reg, role| readers[reg.0 as usize] += u32::from(role != Role::Def));
    }
    let mut alive = vec![true; insts.len()];
    for (inst, alive) in insts.iter_mut().zip(&mut alive).rev() {
        if let Inst::Entry { args, lo, hi, scratch } = inst {
            for reg in [args, lo, hi, scratch] {
                if readers[reg.0 as usize] == 0 {
                    *reg = Reg::NONE;
                }
            }
            continue;
        }
        let unread = result(inst).is_some_and(|reg| readers[reg.0 as usize] == 0);
        if unread {
            *alive = false;
            inst.visit(|reg, role| readers[reg.0 as usize] -= u32::from(role != Role::Def));
        }
    }
    let mut alive = alive.into_iter();
    insts.retain(|_| alive.next().unwrap_or(true));
}

/// The only effect of the operation: the register it writes.
fn result(inst: &Inst) -> Option<Reg> {
    match *inst {
        Inst::Undef { dst }
        | Inst::Vector { dst, .. }
        | Inst::VecLoad { dst, .. }
        | Inst::SelectVec { dst, .. }
        | Inst::Fma { dst, .. }
        | Inst::MoveVec { dst, .. }
        | Inst::MoveMask { dst, .. }
        | Inst::Const { dst, .. }
        | Inst::Move { dst, .. }
        | Inst::Imm { dst, .. }
        | Inst::Alu { dst, .. }
        | Inst::Mul { dst, .. }
        | Inst::MulHigh { dst, .. }
        | Inst::Lea { dst, .. }
        | Inst::Shift { dst, .. }
        | Inst::ShiftBy { dst, .. }
        | Inst::Neg { dst, .. }
        | Inst::Not { dst, .. }
        | Inst::Popcnt { dst, .. }
        | Inst::Div { dst, .. }
        | Inst::Extend { dst, .. }
        | Inst::SetCc { dst, .. }
        | Inst::Select { dst, .. } => Some(dst),
        Inst::Vec(it) => match it.effect {
            Effect::Def => Some(it.reg),
            Effect::Shift => Some(it.vvvv),
            Effect::Mod | Effect::Store | Effect::Gather | Effect::Scatter => None,
        },
        Inst::Entry { .. }
        | Inst::Store { .. }
        | Inst::VecStore { .. }
        | Inst::Branch { .. }
        | Inst::Jump { .. }
        | Inst::Label { .. }
        | Inst::LoopHead { .. }
        | Inst::LoopEnd
        | Inst::Call { .. }
        | Inst::Prefetch { .. }
        | Inst::Fence => None,
    }
}
