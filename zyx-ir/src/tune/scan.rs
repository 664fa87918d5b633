//! Scans on devices of few threads: rows interleaved, the first step of each apart; neighbouring
//! columns at once.

use super::Draft;
use super::cpu::split_apart;
use super::simt::{is_consecutive, merge_all, roots};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::{Site, bind, jam, peel, simplify, split};

/// Neighbouring columns that a thread scans at once: a line of memory of 32-bit elements.
const COLUMNS: i64 = 16;

/// Runs several rows of a scan at once, if that is what the nest is: each step of one waits for
/// the step before, those of others need not. Vectors of rows would only gather and scatter.
pub(super) fn interleave(draft: &mut Draft, root: Value) -> bool {
    let Some((list, index)) = nest_at(draft, root) else { return false };
    let l = list[index];
    let inside: Vec<&LoopInfo> =
        list[index + 1..].iter().filter(|c| c.open.idx() < l.end).collect();
    let [child] = inside[..] else { return false };
    let count = draft.knobs.rows;
    let fits = count > 1 && l.is_parallel() && l.len.is_none_or(|n| n >= 2 * count);
    if !fits || !is_scan(&draft.kernel, child) {
        return false;
    }
    // What only the first step does, as to take what came before a block, is no test in each.
    if peel::compares(&draft.kernel, child) {
        draft.step(&peel::PASS, Site::new(child.open, &[]));
    }
    let Some((list, index)) = nest_at(draft, root) else { return true };
    if list[index].len.is_none() {
        // Whole groups are one nest, the rows that they leave over another.
        let rows = list[index].open;
        draft.step(&jam::PASS, Site::new(rows, &[count]));
        let open = loops(&draft.kernel).into_iter().filter(|l| l.depth == 0 && l.open >= rows);
        for nest in open.take(2).collect::<Vec<_>>().into_iter().rev() {
            draft.step(&bind::PASS, Site::new(nest.open, &[0, 0]));
        }
        return true;
    }
    split_apart(draft, list[index].open, count);
    let Some((list, index)) = nest_at(draft, root) else { return true };
    let groups = list[index];
    // The rows of whole groups, and those of the last one.
    for rows in list.iter().filter(|l| l.parent == Some(index) && l.is_parallel()).rev() {
        if let Some(n) = rows.len.filter(|&n| n > 1) {
            draft.step(&jam::PASS, Site::new(rows.open, &[n]));
        }
    }
    draft.step(&bind::PASS, Site::new(groups.open, &[0, 0]));
    true
}

/// Gives a thread neighbouring columns of a scan across memory, so that each step takes a line of
/// it whole. `false` if the nest is none.
pub(super) fn columns(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let mut wide = draft.fork();
    let list = loops(&wide.kernel);
    let root = roots(&wide.kernel)[nest];
    let Some(outer) = list.iter().find(|l| l.open == root) else { return false };
    let all: Vec<&LoopInfo> =
        list.iter().filter(|l| l.open >= root && l.end <= outer.end).collect();
    let [rows @ .., column, steps] = &all[..] else { return false };
    let nested = all.windows(2).all(|pair| list[pair[1].parent.unwrap_or(0)].open == pair[0].open);
    let count = rows.iter().chain([column]).try_fold(1i64, |n, l| n.checked_mul(l.len?));
    let enough = count.is_some_and(|n| n / COLUMNS >= caps.threads as i64);
    let fits = column.len.is_some_and(|n| n % COLUMNS == 0) && is_consecutive(&wide.kernel, column);
    let parallel = rows.iter().chain([column]).all(|l| l.is_parallel());
    if !(nested && enough && fits && parallel && is_scan(&wide.kernel, steps)) {
        return false;
    }
    wide.step(&split::PASS, Site::new(column.open, &[COLUMNS]));
    wide.whole(&simplify::PASS);
    let list = loops(&wide.kernel);
    let root = roots(&wide.kernel)[nest];
    let Some(outer) = list.iter().find(|l| l.open == root) else { return false };
    let mut inside = list.iter().filter(|l| l.open >= root && l.end <= outer.end);
    let Some(column) = inside.rfind(|l| l.len == Some(COLUMNS) && l.is_parallel()) else {
        return false;
    };
    wide.step(&jam::PASS, Site::new(column.open, &[COLUMNS]));
    merge_all(&mut wide, nest);
    let root = roots(&wide.kernel)[nest];
    wide.step(&bind::PASS, Site::new(root, &[0, 0]));
    *draft = wide;
    true
}

/// Whether a serial loop carries a value from step to step and stores at each.
fn is_scan(k: &Kernel, l: &LoopInfo) -> bool {
    let is_carried = |buf: Value| matches!(k.op(buf), Op::Alloc { len: 1, .. });
    let stores = |to: &dyn Fn(Value) -> bool| {
        l.body().any(|i| matches!(k.op(Value(i as u32)), Op::Store { buf, .. } if to(buf)))
    };
    let to_memory = |buf: Value| matches!(k.op(buf), Op::Param { .. });
    l.kind == Some(LoopKind::Serial) && stores(&is_carried) && stores(&to_memory)
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
    use crate::passes::samples;
    use crate::tune;

    /// A running sum along the rows of two matrices.
    const ACROSS: &str = "kernel across
buffer 0 : f32[32768] read
buffer 1 : f32[32768] write
%0   param 0 read : f32
%1   param 1 write : f32
%2   const 2 : i64
%3   loop parallel %2
%4     const 64 : i64
%5     loop parallel.1 %4
%6       alloc register 1 : f32
%7       const 0 : i64
%8       const 0.0 : f32
%9       store %6[%7], %8 : f32
%10      const 256 : i64
%11      loop serial.2 %10
%12        const 16384 : i64
%13        mul %3, %12 : i64
%14        add %13, %5 : i64
%15        mul %11, %4 : i64
%16        add %14, %15 : i64
%17        load %0[%16] : f32
%18        load %6[%7] : f32
%19        add %18, %17 : f32
%20        store %6[%7], %19 : f32
%21        store %1[%16], %19 : f32
%22      end %11
%23    end %5
%24  end %3
";

    #[test]
    fn a_thread_scans_neighbouring_columns() {
        let kernel: Kernel = ACROSS.parse().unwrap();
        let caps = Caps { simt: true, max_local: 256, threads: 2, ..Caps::default() };
        let tuned = tune::optimize(&kernel, &caps);
        let list = loops(&tuned);
        let [groups, steps] = &list[..] else { panic!("two loops:\n{tuned}") };
        assert_eq!((groups.kind, groups.len), (Some(LoopKind::Group), Some(8)), "{tuned}");
        assert_eq!((steps.kind, steps.len), (Some(LoopKind::Serial), Some(256)), "{tuned}");
        let loads = steps.body().filter(|&i| {
            matches!(tuned.op(Value(i as u32)), Op::Load { buf, .. }
                if matches!(tuned.op(buf), Op::Param { .. }))
        });
        assert_eq!(loads.count(), COLUMNS as usize, "{tuned}");
    }

    #[test]
    fn rows_that_are_left_over_are_interleaved_too() {
        let kernel = samples::resume(19, 100);
        let caps = Caps { vector_bytes: 64, masked: true, threads: 2, ..Caps::default() };
        let tuned = tune::optimize(&kernel, &caps);
        let list = loops(&tuned);
        assert_eq!((list[0].kind, list[0].len), (Some(LoopKind::Group), Some(5)), "{tuned}");
        let stores = |l: &LoopInfo| {
            let is_result = |buf: Value| matches!(tuned.op(buf), Op::Param { .. });
            let ops = l.body().map(|i| tuned.op(Value(i as u32)));
            ops.filter(|op| matches!(op, Op::Store { buf, .. } if is_result(*buf))).count()
        };
        let steps = list.iter().filter(|l| l.kind == Some(LoopKind::Serial));
        assert_eq!(steps.map(stores).collect::<Vec<_>>(), [4, 3], "{tuned}");
    }

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
            assert_eq!((groups.kind, groups.len), (Some(LoopKind::Group), Some(4)), "{tuned}");
            assert_eq!((steps.kind, steps.len), (Some(LoopKind::Serial), Some(99)), "{tuned}");
            assert!(!peel::compares(&tuned, steps), "{tuned}");
        }
    }
}
