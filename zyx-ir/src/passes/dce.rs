//! `dce`: drops what nothing needs.
//!
//! Needed are stores to buffers, atomics, barriers and arguments; then whatever they use, the
//! regions they stand in, and the stores to storage something needed loads from.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::ir::{Kernel, Op, Value};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "dce",
    doc: "drop values, stores to private storage and loops that nothing needs",
    reassociates: false,
    sites: |_, _| vec![Site::whole()],
    apply: |kernel, _| dce(kernel),
};

/// Applies the pass.
pub fn dce(kernel: &Kernel) -> Kernel {
    let needed = needed(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, _) in kernel.iter() {
        let keep = match op {
            Op::End { open } => needed[open.idx()],
            _ => needed[v.idx()],
        };
        if keep {
            r.copy(v);
        }
    }
    r.out.finish()
}

/// For each op, whether anything with an effect depends on it.
fn needed(kernel: &Kernel) -> Vec<bool> {
    let n = kernel.ops().len();
    let mut region = vec![None; n];
    let mut stores: Vec<Vec<Value>> = vec![Vec::new(); n];
    let mut open: Vec<Value> = Vec::new();
    let mut work: Vec<Value> = Vec::new();
    for (v, op, _) in kernel.iter() {
        if let Op::End { .. } = op {
            open.pop();
        }
        region[v.idx()] = open.last().copied();
        if op.opens_region() {
            open.push(v);
        }
        match op {
            Op::Store { buf, .. } if matches!(kernel.op(buf), Op::Alloc { .. }) => {
                stores[buf.idx()].push(v);
            }
            Op::Store { .. } | Op::Atomic { .. } | Op::Barrier { .. } => work.push(v),
            Op::Param { .. } | Op::Var { .. } => work.push(v),
            _ => {}
        }
    }
    let mut needed = vec![false; n];
    while let Some(v) = work.pop() {
        if std::mem::replace(&mut needed[v.idx()], true) {
            continue;
        }
        let op = kernel.op(v);
        work.extend(op.operands());
        work.extend(region[v.idx()]);
        if let Op::Load { buf, .. } | Op::Atomic { buf, .. } | Op::Panel { buf, .. } = op {
            work.append(&mut stores[buf.idx()]);
        }
    }
    needed
}
