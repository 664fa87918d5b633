//! The loops of a kernel and how deep they nest; facts that most loop passes start from.

use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::TernaryOp;

/// One loop of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct LoopInfo {
    /// The counter, which is the loop's op.
    pub open: Value,
    /// Position of its `End`.
    pub end: usize,
    /// How its iterations relate; `None` for a serial loop that a `Break` may end early. Passes change only loops
    /// of kinds that they name, so no pass changes such a loop.
    pub kind: Option<LoopKind>,
    /// Number of iterations, where constant. Unknown for a loop with a `Break`.
    pub len: Option<i64>,
    /// The value that holds the number of iterations.
    pub len_value: Value,
    /// Position in [`loops`]' list of the loop around it.
    pub parent: Option<usize>,
    /// Number of loops and conditions around it.
    pub depth: usize,
    /// Whether no other loop is inside.
    pub innermost: bool,
}

impl LoopInfo {
    /// Positions of the ops between the loop and its `End`.
    pub fn body(&self) -> std::ops::Range<usize> {
        self.open.idx() + 1..self.end
    }

    /// Whether the iterations may run in any order and, until a pass binds them, in one thread.
    pub fn is_parallel(&self) -> bool {
        self.kind == Some(LoopKind::Parallel)
    }
}

/// How many serial loops are around one.
pub fn serial_around(list: &[LoopInfo], l: &LoopInfo) -> i64 {
    let around = std::iter::successors(l.parent, |&parent| list[parent].parent);
    around.filter(|&parent| matches!(list[parent].kind, None | Some(LoopKind::Serial))).count()
        as i64
}

/// All loops, in program order.
pub fn loops(kernel: &Kernel) -> Vec<LoopInfo> {
    let mut list: Vec<LoopInfo> = Vec::new();
    let breaks = kernel.loops_with_break();
    let mut open: Vec<usize> = Vec::new();
    let mut regions = 0;
    for (value, op, _) in kernel.iter() {
        let ends = matches!(op, Op::End { .. });
        match op {
            Op::Loop { kind, len, .. } => {
                let parent = open.last().copied();
                if let Some(parent) = parent {
                    list[parent].innermost = false;
                }
                open.push(list.len());
                let counted = !breaks.contains(&value);
                let constant = kernel.constant(len).filter(|_| counted);
                list.push(LoopInfo {
                    open: value,
                    end: value.idx(),
                    kind: counted.then_some(kind),
                    len: constant.map(|x| x.to_i64().max(0)),
                    len_value: len,
                    parent,
                    depth: regions,
                    innermost: true,
                });
            }
            Op::End { open: start } if matches!(kernel.op(start), Op::Loop { .. }) => {
                if let Some(i) = open.pop() {
                    list[i].end = value.idx();
                }
            }
            _ => {}
        }
        regions = regions + usize::from(op.opens_region()) - usize::from(ends);
    }
    list
}

/// The loop whose counter is `open`, if it is one.
pub fn find_loop(kernel: &Kernel, open: Option<Value>) -> Option<LoopInfo> {
    let open = open.filter(|v| v.idx() < kernel.ops().len())?;
    if !matches!(kernel.op(open), Op::Loop { .. }) {
        return None;
    }
    loops(kernel).into_iter().find(|l| l.open == open)
}

/// How often each value is an operand (`End` does not count as a use of its loop).
pub fn use_counts(kernel: &Kernel) -> Vec<u32> {
    let mut counts = vec![0; kernel.ops().len()];
    for op in kernel.ops() {
        if !matches!(op, Op::End { .. }) {
            for v in op.operands() {
                counts[v.idx()] += 1;
            }
        }
    }
    counts
}

/// Whether a loop has no iteration if another one has: their lengths are the two sides of a choice, with zero
/// for the other.
pub(super) fn is_instead(k: &Kernel, l: &LoopInfo, other: &LoopInfo) -> bool {
    // The condition that has to hold, or not to hold, for a length not to be zero.
    let conditions = |mut len: Value| {
        let mut all = Vec::new();
        while let Op::Ternary { op: TernaryOp::Where, x, y, z } = k.op(len) {
            let is_zero = |v| k.constant(v).is_some_and(|c| c.to_i64() == 0);
            match (is_zero(y), is_zero(z)) {
                (true, false) => {
                    all.push((x, false));
                    len = z;
                }
                (false, true) => {
                    all.push((x, true));
                    len = y;
                }
                _ => break,
            }
        }
        all
    };
    let others = conditions(other.len_value);
    conditions(l.len_value).iter().any(|&(x, holds)| others.contains(&(x, !holds)))
}
