//! The values of a thread, step by step.

use super::decode::{Code, Inst, Slot};
use crate::ir::kernel::Kernel;
use crate::ir::op::{LoopKind, Op, Value};
use crate::ir::print::line;
use crate::ir::regions::{Regions, loop_kind};
use crate::scalar::Scalar;

/// An op that a thread ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The value of the op.
    pub value: Value,
    /// The op as text.
    pub op: String,
    /// Its result by lane: of a store what was stored, of a condition whether it holds, of a loop the counter.
    pub result: Vec<Scalar>,
}

/// Steps of the iterations that have these counters.
#[derive(Debug)]
pub(super) struct Trace {
    at: Vec<i64>,
    most: usize,
    pub(super) steps: Vec<Step>,
    /// For each op where the counters of independent loops around it are, outermost first.
    counters: Vec<Vec<Slot>>,
}

impl Trace {
    pub(super) fn new(kernel: &Kernel, code: &Code, at: &[i64], most: usize) -> Trace {
        let regions = Regions::of(kernel);
        let is_independent =
            |&open: &Value| loop_kind(kernel, open).is_some_and(|kind| kind != LoopKind::Serial);
        let counters = kernel.iter().map(|(value, ..)| {
            let around = [value].into_iter().chain(regions.enclosing(value));
            let around = around.filter(is_independent);
            let mut slots: Vec<Slot> = around.map(|open| code.slots[open.idx()]).collect();
            slots.reverse();
            slots
        });
        let counters = counters.collect();
        Trace { at: at.to_vec(), most, steps: Vec::new(), counters }
    }

    /// Notes the result of the instruction at a place, behind which the thread goes on at another, if it is the last of its op.
    pub(super) fn note(
        &mut self,
        kernel: &Kernel,
        code: &Code,
        (at, next): (usize, usize),
        frame: &[u64],
    ) {
        let value = code.values[at];
        let is_step = match code.insts[at] {
            Inst::Loop { .. } | Inst::Enter { .. } => next == at + 1,
            Inst::Next { .. } | Inst::Advance { .. } => next != at + 1,
            Inst::Fresh { .. } | Inst::Barrier { .. } | Inst::Locals { .. } => false,
            _ => code.values.get(at + 1) != Some(&value),
        };
        let counters = self.counters[value.idx()].iter().zip(&self.at);
        let mut differs = counters.map(|(&slot, &at)| frame[slot as usize] as i64 != at);
        if !is_step || self.steps.len() >= self.most || differs.any(|differs| differs) {
            return;
        }
        let shown = match kernel.op(value) {
            Op::Store { value, .. } => value,
            Op::If { cond } | Op::Break { cond } => cond,
            _ => value,
        };
        let (slot, ty) = (code.slots[shown.idx()] as usize, kernel.ty(shown));
        let lanes = frame[slot..slot + usize::from(ty.lanes)].iter();
        let result = lanes.map(|&bits| Scalar::from_bits(ty.dtype, bits)).collect();
        self.steps.push(Step { value, op: line(kernel, value), result });
    }
}
