//! `dce`: drops what nothing needs.
//!
//! Needed are stores to buffers, atomics, barriers and arguments; then whatever they use, the
//! regions they stand in, the breaks that end these, and the stores to storage something needed loads from, but for those to
//! registers that another store replaces before anything is loaded.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::ir::{Kernel, Op, Order, Space, Type, Value};
use rustc_hash::FxHashMap;

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
    let mut breaks: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
    let mut open: Vec<Value> = Vec::new();
    let mut work: Vec<Value> = Vec::new();
    let replaced = replaced(kernel);
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
                stores[buf.idx()].extend((!replaced[v.idx()]).then_some(v));
            }
            Op::Store { .. } | Op::Atomic { .. } | Op::Barrier { .. } => work.push(v),
            Op::Param { .. } | Op::Var { .. } => work.push(v),
            Op::Break { .. } => {
                breaks.entry(open[open.len() - 1]).or_default().push(v);
            }
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
        work.extend(breaks.remove(&v).unwrap_or_default());
        if let Op::Load { buf, .. } | Op::Atomic { buf, .. } | Op::Panel { buf, .. } = op {
            work.append(&mut stores[buf.idx()]);
        }
    }
    needed
}

/// For each op, whether it is a store to a register whose place is stored to again, in the same
/// region, before anything is loaded from the register.
fn replaced(kernel: &Kernel) -> Vec<bool> {
    let mut replaced = vec![false; kernel.ops().len()];
    let mut last: FxHashMap<Value, Vec<(Value, Type, Value)>> = FxHashMap::default();
    for (v, op, _) in kernel.iter() {
        match op {
            Op::Store { order: Order::Plain, buf, index, value }
                if matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. }) =>
            {
                let ty = kernel.ty(value);
                let places = last.entry(buf).or_default();
                match places.iter_mut().find(|place| (place.0, place.1) == (index, ty)) {
                    Some(place) => replaced[std::mem::replace(&mut place.2, v).idx()] = true,
                    None => places.push((index, ty, v)),
                }
            }
            // After a break what was stored before it is seen behind the loop.
            Op::End { .. } | Op::Break { .. } => last.clear(),
            _ if op.opens_region() => last.clear(),
            _ => op.operands().for_each(|operand| {
                last.remove(&operand);
            }),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests;

    #[test]
    fn stores_that_are_replaced_go() {
        let kernel: Kernel = "kernel k
             buffer 0 : i32[4] read
             buffer 1 : i32[4] write
             %p param 0 read : i32
             %o param 1 write : i32
             %a alloc register 2 : i32
             %z const 0 : i64
             %one const 1 : i64
             %x load %p[%z] : i32
             %s store %a[%z], %x : i32
             %t store %a[%one], %x : i32
             %y add %x, %x : i32
             %u store %a[%z], %y : i32
             %n const 3 : i64
             %i loop serial %n
             %l load %a[%z] : i32
             %w add %l, %y : i32
             %v store %a[%z], %w : i32
             %m mul %w, %y : i32
             %b store %a[%z], %m : i32
             %e end %i
             %r load %a[%z] : i32
             %q load %a[%one] : i32
             %c store %o[%z], %r : i32
             %d store %o[%one], %q : i32"
            .parse()
            .unwrap();
        let stores =
            |k: &Kernel| k.iter().filter(|(_, op, _)| matches!(op, Op::Store { .. })).count();
        assert_eq!((stores(&kernel), stores(&dce(&kernel))), (7, 5), "{}", dce(&kernel));
        let buffers = [vec![3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0], vec![0; 16]];
        let run = |kernel| property_tests::run(kernel, &buffers, &[]).remove(1);
        assert_eq!(run(&dce(&kernel)), run(&kernel));
    }

    #[test]
    fn breaks_and_what_is_stored_before_them_stay() {
        let kernel: Kernel = "kernel k
             buffer 0 : i32[4] read
             buffer 1 : i32[1] write
             %p param 0 read : i32
             %o param 1 write : i32
             %a alloc register 1 : i32
             %z const 0 : i64
             %n const 4 : i64
             %t const 5 : i32
             %i loop serial %n
             %x load %p[%i] : i32
             %s store %a[%z], %x : i32
             %c lt %t, %x : bool
             %b break %c
             %y add %x, %x : i32
             %u store %a[%z], %y : i32
             %e end %i
             %j loop serial %n
             %d break %c2
             %f end %j
             %r load %a[%z] : i32
             %w store %o[%z], %r : i32"
            .replace("%d break %c2", "%c2 lt %z, %j : bool\n%d break %c2")
            .parse()
            .unwrap();
        let after = dce(&kernel);
        let ops = |k: &Kernel, of: fn(&Op) -> bool| k.ops().iter().filter(|op| of(op)).count();
        assert_eq!(ops(&after, |op| matches!(op, Op::Store { .. })), 3, "{after}");
        // A loop that does nothing goes with its break.
        assert_eq!(ops(&after, |op| matches!(op, Op::Break { .. })), 1, "{after}");
        let buffers =
            [[1, 2, 9, 4].iter().flat_map(|x: &i32| x.to_le_bytes()).collect(), vec![0; 4]];
        let run = |kernel| property_tests::run(kernel, &buffers, &[]).remove(1);
        assert_eq!(run(&after), run(&kernel));
        assert_eq!(run(&kernel)[0], 9);
    }
}
