//! Scans on devices of few threads: rows interleaved, the first step of each apart.

use super::Draft;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::{Site, bind, jam, peel, split};

/// Runs several rows of a scan at once, if that is what the nest is: each step of one waits for
/// the step before, those of others need not. Vectors of rows would only gather and scatter.
pub(super) fn interleave(draft: &mut Draft, root: Value) -> bool {
    let Some((list, index)) = nest_at(draft, root) else { return false };
    let l = list[index];
    let inside: Vec<&LoopInfo> =
        list[index + 1..].iter().filter(|c| c.open.idx() < l.end).collect();
    let [child] = inside[..] else { return false };
    let count = draft.knobs.rows;
    let fits = count > 1 && l.is_parallel();
    let fits = fits && l.len.is_some_and(|n| n >= 2 * count && n % count == 0);
    if !fits || !is_scan(&draft.kernel, child) {
        return false;
    }
    // What only the first step does, as to take what came before a block, is no test in each.
    if peel::compares(&draft.kernel, child) {
        draft.step(&peel::PASS, Site::new(child.open, &[]));
    }
    let Some((list, index)) = nest_at(draft, root) else { return true };
    draft.step(&split::PASS, Site::new(list[index].open, &[count]));
    let Some((list, index)) = nest_at(draft, root) else { return true };
    let outer = list[index];
    let rows = list[index + 1..].iter().find(|c| c.open.idx() < outer.end && c.is_parallel());
    if let Some(rows) = rows {
        draft.step(&jam::PASS, Site::new(rows.open, &[count]));
    }
    if let Some((list, index)) = nest_at(draft, root) {
        draft.step(&bind::PASS, Site::new(list[index].open, &[0, 0]));
    }
    true
}

/// Whether a serial loop carries a value from step to step and stores at each.
fn is_scan(k: &Kernel, l: &LoopInfo) -> bool {
    let is_carried = |buf: Value| matches!(k.op(buf), Op::Alloc { len: 1, .. });
    let stores = |to: &dyn Fn(Value) -> bool| {
        l.body().any(|i| matches!(k.op(Value(i as u32)), Op::Store { buf, .. } if to(buf)))
    };
    let to_memory = |buf: Value| matches!(k.op(buf), Op::Param { .. });
    l.kind == LoopKind::Serial && stores(&is_carried) && stores(&to_memory)
}

/// All loops and which of them is the outermost one that stands from `root` on: where a nest is
/// after steps that may have put constants in front of it.
pub(super) fn nest_at(draft: &Draft, root: Value) -> Option<(Vec<LoopInfo>, usize)> {
    let list = loops(&draft.kernel);
    let index = list.iter().position(|l| l.open >= root && l.depth == 0)?;
    Some((list, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::Caps;
    use crate::passes::samples;
    use crate::tune;

    #[test]
    fn rows_are_interleaved_and_no_step_asks_whether_it_is_the_first() {
        let kernel = samples::resume(16, 100);
        let cpu = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        let driver = Caps { simt: true, max_local: 256, threads: 2, ..Caps::default() };
        for caps in [cpu, driver] {
            assert!(caps.has_few_threads());
            let tuned = tune::optimize(&kernel, &caps);
            let list = loops(&tuned);
            let [groups, steps] = &list[..] else { panic!("two loops:\n{tuned}") };
            assert_eq!((groups.kind, groups.len), (LoopKind::Group, Some(4)), "{tuned}");
            assert_eq!((steps.kind, steps.len), (LoopKind::Serial, Some(99)), "{tuned}");
            assert!(!peel::compares(&tuned, steps), "{tuned}");
        }
    }
}
