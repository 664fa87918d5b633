//! `hoist`: moves what does not change in a loop out of it.
//!
//! Pure ops go to just inside the innermost region one of their operands is defined in. Loads go
//! with them where nothing in the loops they leave stores to their storage and the loops surely
//! run: out of loops with a positive constant length, never out of an `If`, and behind a `Break` not out of
//! the loop that it ends.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::ir::{Kernel, Op, Order, Regions, Space, Value};
use rustc_hash::FxHashMap;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "hoist",
    doc: "move loop-invariant values out of loops",
    reassociates: false,
    sites: |_, _| vec![Site::whole()],
    apply: |kernel, _| hoist(kernel),
};

/// The region of the kernel itself.
const ROOT: u32 = u32::MAX;

/// Applies the pass.
pub fn hoist(kernel: &Kernel) -> Kernel {
    let plan = Plan::of(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, _) in kernel.iter() {
        if op.opens_region()
            && let Some(moved) = plan.before.get(&v)
        {
            moved.iter().for_each(|&m| {
                r.copy(m);
            });
        }
        if !plan.moved[v.idx()] {
            r.copy(v);
        }
    }
    r.out.finish()
}

/// Which ops move, and in front of which region.
struct Plan {
    moved: Vec<bool>,
    before: FxHashMap<Value, Vec<Value>>,
}

/// An open region of the walk.
struct Region {
    open: u32,
    /// Whether leaving it is safe for a load: a loop that runs at least once, up to here.
    surely_runs: bool,
}

impl Plan {
    fn of(kernel: &Kernel) -> Plan {
        let n = kernel.ops().len();
        let mut plan = Plan { moved: vec![false; n], before: FxHashMap::default() };
        let stores = stores_by_storage(kernel);
        let ends = kernel.region_ends();
        // For each value, how many regions are open where it is defined after moving.
        let mut level = vec![0usize; n];
        let mut open = vec![Region { open: ROOT, surely_runs: true }];
        for (v, op, _) in kernel.iter() {
            if let Op::End { .. } = op {
                open.pop();
            }
            if let (Op::Break { .. }, Some(region)) = (op, open.last_mut()) {
                region.surely_runs = false;
            }
            let here = open.len() - 1;
            let deepest = op.operands().map(|x| level[x.idx()]).max().unwrap_or(0);
            let target = match op {
                _ if op.is_pure() => deepest.min(here),
                Op::Load { order: Order::Plain, buf, .. } => {
                    let stored = stores.get(&buf).map_or(&[][..], Vec::as_slice);
                    let is_register =
                        matches!(kernel.op(buf), Op::Alloc { space: Space::Register, len: 1 });
                    load_level(&open, &ends, is_register, stored, deepest)
                }
                _ => here,
            };
            level[v.idx()] = target;
            if target < here {
                plan.moved[v.idx()] = true;
                plan.before.entry(Value(open[target + 1].open)).or_default().push(v);
            }
            if op.opens_region() {
                level[v.idx()] = open.len();
                open.push(Region { open: v.0, surely_runs: surely_runs(kernel, op) });
            }
        }
        plan
    }
}

/// The outermost level a load may move to. A single register that was stored to directly in a
/// surrounding region is there to be read even if the loop it leaves does not run.
fn load_level(
    open: &[Region],
    ends: &[usize],
    is_register: bool,
    stored: &[Stored],
    deepest: usize,
) -> usize {
    let mut level = open.len() - 1;
    while level > deepest {
        let region = &open[level];
        let start = region.open as usize;
        let range = start..ends[start];
        let is_set = |s: &Stored| s.at < start && open[..level].iter().any(|r| r.open == s.region);
        let surely = region.surely_runs || is_register && stored.iter().any(is_set);
        if !surely || stored.iter().any(|s| range.contains(&s.at)) {
            break;
        }
        level -= 1;
    }
    level
}

fn surely_runs(kernel: &Kernel, op: Op) -> bool {
    match op {
        Op::Loop { len, .. } => kernel.constant(len).is_some_and(|n| n.to_i64() > 0),
        _ => false,
    }
}

/// Where something is stored: the position, and the region it stands in directly.
struct Stored {
    at: usize,
    region: u32,
}

/// The stores and atomics on each storage; barriers count as stores to all shared storage and
/// buffers.
fn stores_by_storage(kernel: &Kernel) -> FxHashMap<Value, Vec<Stored>> {
    let regions = Regions::of(kernel);
    let mut map: FxHashMap<Value, Vec<Stored>> = FxHashMap::default();
    for (v, op, _) in kernel.iter() {
        let region = regions.parent(v).map_or(ROOT, |r| r.0);
        let mut add = |buf| map.entry(buf).or_default().push(Stored { at: v.idx(), region });
        match op {
            Op::Store { buf, .. } | Op::Atomic { buf, .. } => add(buf),
            Op::Barrier { .. } => {
                let is_storage = |op| matches!(op, Op::Param { .. } | Op::Alloc { .. });
                kernel.iter().filter(|s| is_storage(s.1)).for_each(|s| add(s.0));
            }
            _ => {}
        }
    }
    map
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_behind_a_break_stay_in_its_loop() {
        let kernel: Kernel = "kernel k
             buffer 0 : i32[4] read
             %p param 0 read : i32
             %z const 0 : i64
             %n const 4 : i64
             %t const 5 : i32
             %a alloc register 2 : i32
             %i loop serial %n
             %x load %p[%z] : i32
             %c lt %t, %x : bool
             %b break %c
             %j loop serial %n
             %y load %a[%z] : i32
             %e end %j
             %f end %i"
            .parse()
            .unwrap();
        let after = hoist(&kernel);
        let at = |wanted: fn(Op) -> bool| after.ops().iter().position(|&op| wanted(op)).unwrap();
        let in_registers = |op| matches!(op, Op::Load { buf, .. } if buf != Value(0));
        let load = after.iter().find(|x| in_registers(x.1)).unwrap().0.idx();
        let (of_outer, of_break) =
            (at(|op| matches!(op, Op::Loop { .. })), at(|op| matches!(op, Op::Break { .. })));
        assert!(at(|op| matches!(op, Op::Load { buf: Value(0), .. })) < of_outer, "{after}");
        assert_eq!(Regions::of(&after).parent(Value(load as u32)), Some(Value(of_outer as u32)));
        assert!(load > of_break, "{after}");
    }
}
