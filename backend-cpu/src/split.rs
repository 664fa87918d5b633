//! Cuts a kernel into entries that a thread pool can run one after another.
//!
//! An entry is either one parallel loop of the outermost level, whose iterations threads divide
//! among themselves, or a stretch of everything else, which one thread runs. Pure values of the
//! outermost level are recomputed where they are needed. When a stretch needs storage or a loaded
//! value from before a parallel loop, or a parallel loop uses such storage, the kernel is one
//! single entry.

use zyx_core::ir::{Kernel, LoopKind, Op, Value};

/// A part of a kernel that becomes one function.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The parallel loop whose iterations are the function's range, if there is one.
    pub(crate) parallel: Option<Value>,
    /// The ops that belong to it.
    pub(crate) ops: Vec<bool>,
}

pub(crate) fn split(kernel: &Kernel) -> Vec<Part> {
    let ends = kernel.region_ends();
    let n = kernel.ops().len();
    let shareable = shareable(kernel, &ends);
    let mut parts: Vec<Part> = Vec::new();
    let mut i = 0;
    while i < n {
        let end = ends[i];
        let item = i..end + 1;
        i = end + 1;
        if item.len() == 1 && shareable[item.start] {
            continue;
        }
        let parallel = is_independent(kernel, &shareable, item.clone());
        let joins = !parallel && parts.last().is_some_and(|it| it.parallel.is_none());
        if !joins {
            let start = Value(item.start as u32);
            parts.push(Part { parallel: parallel.then_some(start), ops: vec![false; n] });
        }
        let part = parts.last_mut().expect("invariant: a part was just pushed");
        part.ops[item].fill(true);
    }
    if !parts.iter().all(|part| stands_alone(kernel, &shareable, part)) {
        parts = vec![Part { parallel: None, ops: vec![true; n] }];
    }
    for part in &mut parts {
        add_needed(kernel, part);
    }
    parts
}

/// Values of the outermost level that any part may compute anew.
fn shareable(kernel: &Kernel, ends: &[usize]) -> Vec<bool> {
    let mut shareable = vec![false; kernel.ops().len()];
    let mut i = 0;
    while i < shareable.len() {
        let op = kernel.ops()[i];
        shareable[i] = match op {
            Op::Param { .. } | Op::Var { .. } => true,
            _ => op.is_pure() && op.operands().all(|x| shareable[x.idx()]),
        };
        i = ends[i] + 1;
    }
    shareable
}

/// Whether these ops are a parallel loop that only needs shareable values.
fn is_independent(kernel: &Kernel, shareable: &[bool], ops: std::ops::Range<usize>) -> bool {
    let is_parallel = matches!(
        kernel.ops()[ops.start],
        Op::Loop { kind: LoopKind::Parallel | LoopKind::Group, .. }
    );
    is_parallel
        && kernel.ops()[ops.clone()]
            .iter()
            .all(|op| op.operands().all(|x| ops.contains(&x.idx()) || shareable[x.idx()]))
}

fn stands_alone(kernel: &Kernel, shareable: &[bool], part: &Part) -> bool {
    let ops = kernel.ops().iter().zip(&part.ops);
    ops.filter(|(_, own)| **own)
        .all(|(op, _)| op.operands().all(|x| part.ops[x.idx()] || shareable[x.idx()]))
}

/// Adds the shareable values that the part needs.
fn add_needed(kernel: &Kernel, part: &mut Part) {
    for i in (0..part.ops.len()).rev() {
        if part.ops[i] {
            for operand in kernel.ops()[i].operands() {
                part.ops[operand.idx()] = true;
            }
        }
    }
}

/// Ranges of parts that may run at once: none of a range accesses what another of it writes.
pub(crate) fn phases(kernel: &Kernel, parts: &[Part]) -> Vec<std::ops::Range<usize>> {
    let mut phases: Vec<std::ops::Range<usize>> = Vec::new();
    // What the last phase reads and writes, by slot.
    let mut used: Vec<[bool; 2]> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let own = accesses(kernel, part);
        let clash = |(a, b): (&[bool; 2], &[bool; 2])| a[1] && (b[0] || b[1]) || b[1] && a[0];
        match phases.last_mut() {
            Some(phase) if !used.iter().zip(&own).any(clash) => {
                phase.end = number + 1;
                for (used, own) in used.iter_mut().zip(own) {
                    *used = [used[0] || own[0], used[1] || own[1]];
                }
            }
            _ => {
                phases.push(number..number + 1);
                used = own;
            }
        }
    }
    phases
}

/// For each buffer argument whether the part reads it and whether it writes it.
fn accesses(kernel: &Kernel, part: &Part) -> Vec<[bool; 2]> {
    let mut accesses = vec![[false; 2]; kernel.params().len()];
    for (op, _) in kernel.ops().iter().zip(&part.ops).filter(|(_, own)| **own) {
        let (buf, access) = match *op {
            Op::Load { buf, .. } => (buf, [true, false]),
            Op::Store { buf, .. } => (buf, [false, true]),
            Op::Atomic { buf, .. } => (buf, [true, true]),
            _ => continue,
        };
        if let Op::Param { slot, .. } = kernel.op(buf) {
            let known = &mut accesses[slot as usize];
            *known = [known[0] || access[0], known[1] || access[1]];
        }
    }
    accesses
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_core::ir::{Access, Builder, Space, Type};
    use zyx_core::{BinaryOp, DType};

    #[test]
    fn parallel_loops_become_ranges_and_the_rest_joins() {
        let mut b = Builder::new("k");
        let a = b.param(DType::F32, 8, Access::ReadWrite);
        let n = b.index(8);
        let i = b.open_loop(LoopKind::Parallel, 0, n);
        let x = b.load(a, i);
        b.store(a, i, x);
        b.close();
        let zero = b.index(0);
        let x = b.load(a, zero);
        b.store(a, zero, x);
        let i = b.open_loop(LoopKind::Group, 0, n);
        let x = b.load(a, i);
        b.store(a, i, x);
        b.close();
        let parts = split(&b.finish());
        let ranges: Vec<bool> = parts.iter().map(|it| it.parallel.is_some()).collect();
        assert_eq!(ranges, [true, false, true]);
        assert!(parts.iter().all(|part| part.ops[a.idx()]));
        assert!(!parts[0].ops[x.idx()]);
    }

    #[test]
    fn parts_that_touch_different_memory_may_run_at_once() {
        let mut b = Builder::new("k");
        let buffers = [(); 3].map(|()| b.param(DType::F32, 8, Access::ReadWrite));
        let n = b.index(8);
        for (from, to) in [(0, 1), (0, 2), (1, 0), (2, 2)] {
            let i = b.open_loop(LoopKind::Parallel, 0, n);
            let x = b.load(buffers[from], i);
            b.store(buffers[to], i, x);
            b.close();
        }
        let kernel = b.finish();
        let parts = split(&kernel);
        assert_eq!(phases(&kernel, &parts), [0..2, 2..4]);
    }

    #[test]
    fn storage_used_across_a_parallel_loop_keeps_the_kernel_whole() {
        let mut b = Builder::new("k");
        let a = b.param(DType::F32, 8, Access::ReadWrite);
        let acc = b.alloc(Space::Register, Type::scalar(DType::F32), 1);
        let (zero, n) = (b.index(0), b.index(8));
        let x = b.load(a, zero);
        b.store(acc, zero, x);
        let i = b.open_loop(LoopKind::Parallel, 0, n);
        let y = b.load(a, i);
        let z = b.binary(BinaryOp::Add, y, y);
        b.store(a, i, z);
        b.close();
        let x = b.load(acc, zero);
        b.store(a, zero, x);
        let parts = split(&b.finish());
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].parallel, None);
    }
}
