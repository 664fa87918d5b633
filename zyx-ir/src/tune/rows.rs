//! Sums along memory on devices of few threads: several places read at once.
//!
//! A core that reads one place after another waits for memory: its prefetchers run only so far
//! ahead. From several rows at once, or several parts of one long row, it reads up to a quarter
//! faster; and what the rows are multiplied with is loaded once for all.

use super::Draft;
use super::knobs::Knobs;
use super::scan::nest_at;
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::passes::accumulate::Streams;
use crate::passes::facts::Facts;
use crate::passes::loops::{LoopInfo, loops};
use crate::passes::variance::{self, Form};
use crate::passes::{Site, bind, cut, jam, simplify, split, vectorize};

/// Rows of so many bytes are long enough that their ends do not matter.
const ROW: i64 = 1 << 10;

/// Bytes of a row from which on a core reads it faster in two and in four streams.
const SHORT: i64 = 16 << 10;
const LONG: i64 = 64 << 10;

/// Runs several rows at once, if the nest reduces rows and does nothing else.
pub(super) fn interleave(draft: &mut Draft, caps: &Caps, root: Value) -> bool {
    let Some((list, index)) = nest_at(draft, root) else { return false };
    let l = list[index];
    let inside: Vec<&LoopInfo> =
        list[index + 1..].iter().filter(|c| c.open.idx() < l.end).collect();
    let [row] = inside[..] else { return false };
    let count = draft.knobs.reduced;
    let groups = 4 * caps.threads.max(1) as i64;
    let fits = count > 1 && l.is_parallel();
    let Some(n) = l.len.filter(|&n| fits && n >= groups * count) else { return false };
    if !is_sum_along_memory(&draft.kernel, &l, row, caps) {
        return false;
    }
    // Far apart, so that each place is walked from row to row.
    let apart = n / count;
    if n % count > 0 {
        draft.step(&cut::PASS, Site::new(l.open, &[apart * count]));
        let nests = loops(&draft.kernel).into_iter().filter(|l| l.depth == 0);
        if let Some(rest) = nests.filter(|nest| nest.open >= root).nth(1) {
            jam_rows(draft, caps, rest.open, [1, n % count]);
        }
    }
    jam_rows(draft, caps, root, [apart, count]);
    true
}

/// Runs the rows of a nest in groups of `count`, which are `apart`.
fn jam_rows(draft: &mut Draft, caps: &Caps, root: Value, [apart, count]: [i64; 2]) {
    let Some((list, index)) = nest_at(draft, root) else { return };
    draft.step(&split::PASS, Site::new(list[index].open, &[apart]));
    let Some((list, index)) = nest_at(draft, root) else { return };
    let parts = list[index];
    let row = list[index + 1..].iter().find(|c| c.open.idx() < parts.end && c.innermost);
    if let Some(row) = row
        && let Some(site) = vectorize::site(&draft.kernel, row, caps)
    {
        draft.step(&vectorize::PASS, site);
    }
    draft.step(&jam::PASS, Site::new(parts.open, &[count]));
    draft.whole(&simplify::PASS);
    // Of a single group of rows no loop is left.
    if let Some((list, index)) = nest_at(draft, root)
        && list[index].is_parallel()
    {
        draft.step(&bind::PASS, Site::new(list[index].open, &[0, 0]));
    }
}

/// Whether a row is combined to one value and all it reads lies side by side.
fn is_sum_along_memory(k: &Kernel, rows: &LoopInfo, row: &LoopInfo, caps: &Caps) -> bool {
    let is_sum = row.kind == Some(LoopKind::Serial) && row.innermost;
    if !is_sum || variance::accumulators(k, row).is_none_or(|a| a.len() != 1) {
        return false;
    }
    let Some((_, along)) = vectorize::analyse(k, row, caps) else { return false };
    let Some(across) = variance::Variance::of(k, rows) else { return false };
    let mut bytes = 0;
    for v in row.body().map(|i| Value(i as u32)) {
        let Op::Load { buf, index, .. } = k.op(v) else { continue };
        if !matches!(k.op(buf), Op::Param { .. }) {
            continue;
        }
        match along.form(index) {
            Form::Linear(1) if across.form(index) != Form::Uniform => {
                bytes += k.ty(v).bytes() as i64
            }
            Form::Linear(1) | Form::Uniform => {}
            _ => return false,
        }
    }
    (ROW..LONG).contains(&(row.len.unwrap_or(0) * bytes))
}

/// How many places of memory a reduction reads at once. In short rows the prefetchers would start
/// anew too often.
pub(super) fn streams(k: &Kernel, l: &LoopInfo, knobs: &Knobs) -> Streams {
    if knobs.streams > 0 {
        return Streams::Known(knobs.streams);
    }
    let bytes_of = |v: Value| match k.op(v) {
        Op::Load { buf, .. } if matches!(k.op(buf), Op::Param { .. }) => k.ty(v).bytes(),
        _ => 0,
    };
    let longest = l.body().map(|i| bytes_of(Value(i as u32))).max().unwrap_or(0) as i64;
    if longest == 0 {
        return Streams::Known(1);
    }
    let [two, four] = [SHORT, LONG].map(|bytes| (bytes + longest - 1) / longest);
    // What vectors leave of a loop is short.
    let most = l.len.or_else(|| Some(Facts::of(k).interval(l.len_value)?.1));
    match (l.len, most) {
        (_, Some(most)) if most < two => Streams::Known(1),
        (Some(len), _) if len < four => Streams::Known(2),
        (Some(_), _) => Streams::Known(4),
        (None, _) => Streams::ByLength(two, four),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::passes::samples;
    use crate::tune;

    fn cpu() -> Caps {
        Caps { vector_bytes: 32, threads: 2, ..Caps::default() }
    }

    /// The different places that the innermost loop of a kernel reads of its first argument.
    fn places(kernel: &Kernel) -> usize {
        let list = loops(kernel);
        let row = list.iter().find(|l| l.kind == Some(LoopKind::Serial)).expect("a loop");
        let reads = |i: &usize| match kernel.op(Value(*i as u32)) {
            Op::Load { buf, .. } => matches!(kernel.op(buf), Op::Param { slot: 0, .. }),
            _ => false,
        };
        row.body().filter(reads).count()
    }

    #[test]
    fn rows_are_reduced_four_at_once_far_apart() {
        // The same CPU behind an interface for many threads, which has shorter vectors.
        let driver = Caps { simt: true, max_local: 256, vector_bytes: 16, ..cpu() };
        for (caps, steps) in [(cpu(), 128), (driver, 256)] {
            let tuned = tune::optimize(&samples::sum_rows(DType::F32, 64, 1024), &caps);
            let list = loops(&tuned);
            let [groups, row] = &list[..] else { panic!("two loops:\n{tuned}") };
            assert_eq!((groups.kind, groups.len), (Some(LoopKind::Group), Some(16)), "{tuned}");
            assert_eq!((row.kind, row.len), (Some(LoopKind::Serial), Some(steps)), "{tuned}");
            assert_eq!(places(&tuned), 4, "{tuned}");
        }
    }

    #[test]
    fn rows_that_are_left_over_are_a_nest_of_their_own() {
        let tuned = tune::optimize(&samples::sum_rows(DType::F32, 67, 1024), &cpu());
        let list = loops(&tuned);
        let groups: Vec<_> = list.iter().filter(|l| l.kind == Some(LoopKind::Group)).collect();
        assert_eq!(groups.iter().map(|l| l.len).collect::<Vec<_>>(), [Some(16)], "{tuned}");
        let rows = list.iter().filter(|l| l.kind == Some(LoopKind::Serial));
        assert_eq!(rows.count(), 2, "{tuned}");
        assert_eq!(places(&tuned), 4, "{tuned}");
    }

    #[test]
    fn a_long_row_is_read_in_four_streams() {
        let kernel = samples::sum_rows(DType::F32, 8, 1 << 16);
        let list = loops(&kernel);
        let row = list.iter().find(|l| l.kind == Some(LoopKind::Serial)).expect("a loop");
        let wide = Knobs::default();
        assert_eq!(streams(&kernel, row, &wide), Streams::Known(4));
        let site = Streams::Known(4).site(row.open, 2);
        assert_eq!(site.params[..], [2, 2], "never more than accumulators");
        assert_eq!(streams(&kernel, row, &Knobs { streams: 1, ..wide }), Streams::Known(1));
    }
}
