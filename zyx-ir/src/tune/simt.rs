//! The default heuristic for devices of many threads (GPUs).
//!
//! Each nest is given to threads by the first row of [`STRATEGIES`] that applies to it and is not
//! left out; where none does, each thread has one iteration.
//!
//! Numbers of threads follow from lengths and from how many threads the device keeps resident.

use super::map_to_threads::{map_to_threads, spread_turns, spread_vectors, vectors_of_rows};
use super::strategies::{self, At, Strategy};
use super::{Draft, block, mma, parts, rows, scan, tile, transpose};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Value, padded_len};
use crate::passes::cooperate::{self, Found};
use crate::passes::loops::{LoopInfo, find_loop, loops};
use crate::passes::variance::{Form, Variance};
use crate::passes::{
    Site, cse, dce, divide, hoist, muladd, narrow, nest, owner_computes, simplify, stage_rows,
    unroll, unselect, vectorize,
};

/// Shortest reduction worth sharing, and the iterations of it that each thread should get.
const MIN_SHARED: i64 = 32;
const PER_THREAD: i64 = 16;

/// Fewest adjacent columns of a group, a 32-byte sector of 32-bit elements; fewest where a row of the results is shorter.
/// Most threads of a group that reduces columns.
const FEW_COLUMNS: i64 = 8;
const MIN_COLUMNS: i64 = 4;
const MAX_SHARING: i64 = 1024;
/// Columns that there are for each that the last group lacks, at least.
const IDLE: i64 = 8;

/// Most ops that turns of a thread over a row it keeps in registers may become.
const MAX_UNROLLED: i64 = 800;

/// Turns that a thread takes at once where it loads single elements: their loads are under way
/// together. Compilers do so themselves with some loops and not with others.
const COPIES: i64 = 8;

/// Fewest threads of a device that computes indices in 32 bits where they fit.
pub(super) const NARROW_THREADS: usize = 1 << 12;

/// Threads of a group that walks along rows in shared storage, the most first; steps of a piece,
/// which is a line of memory of 32-bit elements; fewest steps worth it.
const WALKERS: [i64; 3] = [128, 64, 32];
const PIECE: i64 = 32;
const MIN_WALK: i64 = 16;
/// Longest row whose reduction is left to one thread, if there are rows for this part of all.
const SHORT_ROW: i64 = 256;
const FEW_ROWS: i64 = 8;

/// Fewest updates of a scatter that threads share; keys that a thread reads at once; the part of
/// all threads that shall have updates to make.
const MIN_UPDATES: i64 = 64;
const KEYS: i64 = 8;
const UPDATING: i64 = 4;

/// Iterations up to which a reduction without a loop around is shared by one group, instead of
/// being left to one thread.
const ONE_GROUP: i64 = 1 << 16;

/// The rows of this kind of device, in the order in which they are tried.
pub(super) static STRATEGIES: [Strategy; 13] = [
    Strategy {
        name: "columns of a scan",
        apply: |draft, caps, at| caps.has_few_threads() && scan::columns(draft, caps, at.nest),
    },
    Strategy {
        name: "interleaved scans",
        apply: |draft, caps, at| caps.has_few_threads() && scan::interleave(draft, at.root),
    },
    Strategy {
        name: "interleaved rows",
        apply: |draft, caps, at| caps.has_few_threads() && rows::interleave(draft, caps, at.root),
    },
    Strategy {
        name: "transpose through shared memory",
        apply: |draft, caps, at| transpose::exchange(draft, caps, at.nest),
    },
    Strategy {
        name: "transpose in squares",
        apply: |draft, caps, at| transpose::tile(draft, caps, at.nest),
    },
    Strategy {
        name: "matrix instructions",
        apply: |draft, caps, at| mma::mma(draft, caps, at.nest),
    },
    Strategy { name: "blocks", apply: |draft, caps, at| block::block(draft, caps, at.nest) },
    Strategy {
        name: "rows through shared memory",
        apply: |draft, caps, at| walk(draft, caps, at.root),
    },
    Strategy {
        name: "register tiles",
        apply: |draft, caps, at| {
            claim_updates(draft, caps, at.nest);
            tile::tile(draft, caps, at.nest) && {
                let root = merge_all(draft, at.nest);
                map_to_threads(draft, caps, root);
                true
            }
        },
    },
    Strategy {
        name: "shared reductions",
        apply: |draft, caps, at| {
            claim_updates(draft, caps, at.nest);
            let widths = widths(&draft.kernel, at.nest);
            let root = merge_all(draft, at.nest);
            share(draft, caps, root, &widths)
        },
    },
    Strategy {
        name: "vectors",
        apply: |draft, caps, at| {
            claim_updates(draft, caps, at.nest);
            merge_all(draft, at.nest);
            spread_vectors(draft, caps, at.nest)
        },
    },
    Strategy {
        name: "vectors of rows",
        apply: |draft, caps, at| {
            claim_updates(draft, caps, at.nest);
            vectors_of_rows(draft, caps, at.nest)
        },
    },
    Strategy {
        name: "turns",
        apply: |draft, caps, at| {
            claim_updates(draft, caps, at.nest);
            spread_turns(draft, caps, at.nest)
        },
    },
];

/// What remains where no row applies: an iteration for each thread.
fn one_each(draft: &mut Draft, caps: &Caps, at: At) {
    claim_updates(draft, caps, at.nest);
    let root = merge_all(draft, at.nest);
    map_to_threads(draft, caps, root);
}

pub(super) fn tune(mut draft: Draft, caps: &Caps) -> Draft {
    draft.whole(&simplify::PASS);
    draft.whole(&cse::PASS);
    let alone = |l: &LoopInfo| l.depth == 0 && !l.is_parallel();
    if loops(&draft.kernel).iter().any(alone) {
        share_whole(&mut draft, caps);
    }
    if caps.has_few_threads() {
        parts::separate(&mut draft, caps);
    }
    let nests = roots(&draft.kernel).len();
    // Last nests first, so that the number of each stays what it is.
    for nest in (0..nests).rev() {
        let at = At { root: roots(&draft.kernel)[nest], nest };
        if !strategies::apply(&mut draft, &STRATEGIES, caps, at) {
            one_each(&mut draft, caps, at);
        }
    }
    draft.whole(&simplify::PASS);
    draft.whole(&unselect::PASS);
    // A GPU adds 64 bits in two instructions and divides them in dozens. A CPU loads vectors only
    // where it sees that an index does not wrap.
    if caps.threads >= NARROW_THREADS {
        draft.whole(&narrow::PASS);
    }
    if !caps.emulated.contains(DType::I64) {
        draft.whole(&divide::PASS);
    }
    draft.whole(&hoist::PASS);
    if caps.fast_fma {
        draft.whole(&muladd::PASS);
    }
    if caps.emulated.contains(DType::I64) {
        draft.whole(&narrow::PASS);
    }
    draft.whole(&cse::PASS);
    draft.whole(&dce::PASS);
    draft
}

/// Sends rows that threads walk along through shared storage. `false` if that is not worth it.
fn walk(draft: &mut Draft, caps: &Caps, root: Value) -> bool {
    if caps.threads < NARROW_THREADS {
        return false;
    }
    let Some(found) = stage_rows::Found::of(&draft.kernel, Some(root)) else { return false };
    let Some([rows, steps]) = found.extents() else { return false };
    // Long reductions are shared among threads.
    let few = rows < caps.threads as i64 / FEW_ROWS;
    if steps < MIN_WALK || !found.walks() && (steps > SHORT_ROW || few) {
        return false;
    }
    // Smaller groups where larger ones would leave multiprocessors idle.
    let wanted = caps.multiprocessors() as i64;
    let threads = WALKERS.into_iter().find(|threads| rows / threads >= wanted);
    let threads = threads.unwrap_or(WALKERS[WALKERS.len() - 1]);
    let sizes = [threads, power(steps.min(PIECE))];
    if !found.fits(&draft.kernel, sizes, caps) {
        return false;
    }
    draft.step(&stage_rows::PASS, Site::new(root, &sizes));
    true
}

/// Shares the updates of a scatter, where those who make them are few.
fn claim_updates(draft: &mut Draft, caps: &Caps, nest: usize) {
    if caps.threads < NARROW_THREADS {
        return;
    }
    let list = loops(&draft.kernel);
    let root = roots(&draft.kernel)[nest];
    let Some(root) = list.iter().find(|l| l.open == root) else { return };
    let inside = |l: &&LoopInfo| root.body().contains(&l.open.idx());
    let serial = list.iter().filter(inside).find(|l| l.kind == Some(LoopKind::Serial));
    let Some(found) = serial.and_then(|l| owner_computes::Found::of(&draft.kernel, Some(l.open)))
    else {
        return;
    };
    let wanted = caps.threads as i64 / UPDATING / found.rows.max(1);
    let parts = power(wanted.min(owner_computes::MAX_PARTS).min(found.extent));
    if parts > 1 && found.len >= MIN_UPDATES && found.is_uniform(&draft.kernel) {
        draft.step(&owner_computes::PASS, Site::new(found.updates.open, &[parts, KEYS]));
    }
}

/// The parallel loops at the top that are not spread over the device yet.
pub(super) fn roots(kernel: &Kernel) -> Vec<Value> {
    let list = loops(kernel);
    list.iter().filter(|l| l.depth == 0 && l.is_parallel()).map(|l| l.open).collect()
}

/// Merges the loop of a nest with all that are perfectly nested in it. A merge may put constants
/// in front of it, so it is looked up anew each time. Gives the loop.
pub(super) fn merge_all(draft: &mut Draft, nest: usize) -> Value {
    loop {
        let list = loops(&draft.kernel);
        let root = roots(&draft.kernel)[nest];
        let Some(l) = list.iter().find(|l| l.open == root) else { return root };
        let before = list.len();
        if nest::inner_of(&draft.kernel, l, &list).is_none() {
            return root;
        }
        draft.step(&nest::MERGE, Site::new(root, &[]));
        if loops(&draft.kernel).len() == before {
            return roots(&draft.kernel)[nest];
        }
    }
}

/// Iterations of the innermost loop of a nest, of the innermost two, and so on up to all.
fn widths(kernel: &Kernel, nest: usize) -> Vec<i64> {
    let list = loops(kernel);
    let mut next = list.iter().find(|l| l.open == roots(kernel)[nest]).copied();
    let mut extents = Vec::new();
    while let Some(l) = next {
        extents.push(l.len.unwrap_or(1));
        next = nest::inner_of(kernel, &l, &list);
    }
    let product = |all: &mut i64, n: i64| {
        *all = all.saturating_mul(n);
        Some(*all)
    };
    extents.into_iter().rev().scan(1, product).collect()
}

/// How the loads of a reduction lie in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Along,
    Across,
}

/// Whether most of what a loop inside `root` reads is read along its counter. Loads that are the same
/// for all results count where there are no others: a matrix is much more than the vector that it is
/// multiplied by.
fn direction(kernel: &Kernel, root: &LoopInfo, l: &LoopInfo) -> Option<Direction> {
    let (inside, around) = (Variance::of(kernel, l)?, Variance::of(kernel, root)?);
    let mut loads = [[0, 0], [0, 0]];
    for i in l.body() {
        let Op::Load { buf, index, .. } = kernel.op(Value(i as u32)) else { continue };
        if matches!(kernel.op(buf), Op::Param { .. }) {
            let of = &mut loads[usize::from(around.form(index) == Form::Uniform)];
            match inside.form(index) {
                Form::Linear(1) => of[0] += 1,
                Form::Uniform => {}
                _ => of[1] += 1,
            }
        }
    }
    let [along, across] = if loads[0] == [0, 0] { loads[1] } else { loads[0] };
    Some(if along >= across { Direction::Along } else { Direction::Across })
}

/// The largest power of two up to `n`, at least 1.
fn power(n: i64) -> i64 {
    1 << n.max(1).ilog2()
}

/// Shares the reductions of each result among threads, results of these widths side by side. `false` if that is not worth it.
fn share(draft: &mut Draft, caps: &Caps, root: Value, widths: &[i64]) -> bool {
    let Some(found) = Found::of(&draft.kernel, Some(root)) else { return false };
    // Nested loops of a reduction lie in memory as the innermost does, and are shared as one.
    let list = loops(&draft.kernel);
    let innermost = |l: &LoopInfo| {
        list.iter().rfind(|x| l.body().contains(&x.open.idx()) || x.open == l.open).copied()
    };
    let length = |l: &LoopInfo| {
        let inside = list.iter().filter(|x| l.body().contains(&x.open.idx()));
        inside.map(|x| x.len).try_fold(l.len?, |n, len| Some(n.saturating_mul(len?)))
    };
    let reductions = found.children.iter().filter(|l| l.kind == Some(LoopKind::Serial));
    // Sizes that are nearly the same have the same threads.
    let padded = |l: &LoopInfo| {
        let inside = list.iter().filter(|x| l.body().contains(&x.open.idx()) || x.open == l.open);
        inside.map(|x| padded_len(x.len.unwrap_or(0), true)).fold(1, i64::saturating_mul)
    };
    let steps = reductions.clone().map(padded).max().unwrap_or(0);
    let longest = reductions.max_by_key(|l| length(l)).and_then(innermost);
    let Some(root_loop) = found.root else { return false };
    let Some(direction) = longest.and_then(|l| direction(&draft.kernel, &root_loop, &l)) else {
        return false;
    };
    let mut flat = draft.fork();
    flatten(&mut flat, &found);
    if !share_flat(&mut flat, caps, root, (direction, steps, widths)) {
        return false;
    }
    *draft = flat;
    true
}

/// Makes one loop of the nested ones of each reduction.
fn flatten(draft: &mut Draft, found: &Found) {
    // Last ones first, so that those before stay where they are.
    for l in found.children.iter().rev().filter(|l| l.kind == Some(LoopKind::Serial)) {
        loop {
            let list = loops(&draft.kernel);
            let this = list.iter().find(|x| x.open >= l.open && x.kind == Some(LoopKind::Serial));
            let inner = this.and_then(|l| {
                nest::inner_of_kind(&draft.kernel, l, &list, LoopKind::Serial).map(|_| l.open)
            });
            let Some(open) = inner else { break };
            let before = list.len();
            draft.step(&nest::FLATTEN, Site::new(open, &[]));
            if loops(&draft.kernel).len() == before {
                break;
            }
        }
    }
}

/// Shares reductions of one loop each, the longest of which lies in memory so and has about as many steps, with results of
/// these widths side by side.
fn share_flat(
    draft: &mut Draft,
    caps: &Caps,
    root: Value,
    (direction, longest, widths): (Direction, i64, &[i64]),
) -> bool {
    let Some(found) = Found::of(&draft.kernel, Some(root)) else { return false };
    let Some(n) = found.root.and_then(|l| l.len).filter(|&n| n > 0) else { return false };
    let reductions = || found.children.iter().filter(|l| l.kind == Some(LoopKind::Serial));
    let lengths = || reductions().filter_map(|l| l.len);
    if lengths().min().unwrap_or(0) < MIN_SHARED {
        return false;
    }
    let resident = caps.threads as i64;
    let results = padded_len(n, true);
    let site = match direction {
        // Enough threads for the device, but not so many that the tree outweighs the loop.
        Direction::Along => {
            let wanted = power(resident / results).max(power(longest / PER_THREAD).min(256));
            let most = power(longest / 4).min(power(caps.max_local as i64)).min(1024);
            let threads = match draft.knobs.sharing {
                0 => wanted.clamp(32, 1024).min(most),
                n => n.min(most),
            };
            let run = run_length(&draft.kernel, &found, threads, caps);
            // Of rows that are one loop by divisions, runs may lie in one row.
            let lanes = caps.vector_bytes as i64 / 4;
            let whole = || {
                lengths().all(|n| n % (lanes * threads) == 0)
                    && !found.children.iter().any(|l| ends_early(&draft.kernel, l))
            };
            if run == 1 && lanes > 1 && whole() {
                let mut wide = draft.fork();
                if cooperate(&mut wide, caps, (Some(root), &found), [threads, 1, lanes]) {
                    *draft = wide;
                    return true;
                }
            }
            [threads, 1, run]
        }
        Direction::Across => {
            // A width across which nothing lies side by side; powers of two that divide the results; or a last group with fewer.
            let most = power(draft.knobs.columns);
            let wide =
                || (0..=most.ilog2()).rev().map(|shift| 1 << shift).filter(|&c| c >= FEW_COLUMNS);
            let is_full = |c: &i64| IDLE * ((n + c - 1) / c * c - n) <= n;
            let fits =
                |c: i64| (MIN_COLUMNS..=most).contains(&c) && (c >= FEW_COLUMNS || c != power(c));
            let width = widths.iter().rfind(|&&c| fits(c));
            let mut sizes: Vec<i64> = width.copied().into_iter().collect();
            if sizes.is_empty() {
                sizes = wide().filter(|c| n % c == 0).collect();
            }
            if sizes.is_empty() {
                sizes = wide().filter(|&c| c <= n).filter(is_full).collect();
            }
            // More groups of fewer columns where multiprocessors would be idle.
            let units = caps.multiprocessors() as i64;
            let columns = sizes.iter().find(|&c| n / c >= units).or(sizes.last());
            let Some(&columns) = columns.filter(|_| n < resident) else { return false };
            let most = power(caps.max_local as i64 / columns).min(power(longest / 4));
            let threads = power(resident / results).max(2).min(most.min(MAX_SHARING / columns));
            [threads, columns, 1]
        }
    };
    cooperate(draft, caps, (Some(root), &found), site)
}

/// A kernel with a reduction at the top, which every thread would do again: one group for all of it,
/// if it is small.
fn share_whole(draft: &mut Draft, caps: &Caps) {
    let Some(found) = Found::of(&draft.kernel, None) else { return };
    let total: i64 = found.children.iter().filter_map(|l| l.len).sum();
    let reductions = found.children.iter().filter(|l| l.kind == Some(LoopKind::Serial));
    let longest = reductions.filter_map(|l| l.len).max().unwrap_or(0);
    if (MIN_SHARED..=ONE_GROUP).contains(&longest) && total <= 2 * ONE_GROUP {
        let threads =
            power(padded_len(longest, true) / 4).clamp(8, 256).min(power(caps.max_local as i64));
        cooperate(draft, caps, (None, &found), [threads, 1, 1]);
    }
}

/// Applies the pass, and makes vectors of the runs in its turns. `false` if the device or the runs
/// cannot.
fn cooperate(
    draft: &mut Draft,
    caps: &Caps,
    (value, found): (Option<Value>, &Found),
    [threads, columns, run]: [i64; 3],
) -> bool {
    if !found.fits(&draft.kernel, [threads, columns, run], caps) {
        return false;
    }
    draft.step(&cooperate::PASS, Site { value, params: [threads, columns, run][..].into() });
    if run > 1 {
        draft.whole(&simplify::PASS);
        let runs = loops(&draft.kernel).into_iter().filter(|l| l.innermost && l.len == Some(run));
        let runs: Vec<Value> = runs.map(|l| l.open).collect();
        let all = runs.len().max(found.children.len());
        let wide = runs.into_iter().rev().filter(|&open| vectorize_run(draft, caps, open, run));
        if wide.count() < all {
            return false;
        }
    }
    let single = run == 1 && caps.threads >= NARROW_THREADS;
    // Of single elements a large device keeps more turns.
    let most = if single { 2 * draft.knobs.turns } else { draft.knobs.turns };
    let kept = found.children.len() > 1 && keep_in_registers(draft, threads, most);
    if single && !kept {
        take_turns_together(draft, value);
    }
    true
}

/// The loops of turns: serial ones directly inside of a local loop.
fn turns(kernel: &Kernel) -> Vec<LoopInfo> {
    let list = loops(kernel);
    let is_turns = |l: &&LoopInfo| {
        let bound = l.parent.is_some_and(|p| list[p].kind == Some(LoopKind::Local));
        bound && l.innermost && l.kind == Some(LoopKind::Serial)
    };
    list.iter().filter(is_turns).copied().collect()
}

/// Several turns at once in the nest that stands where this value stood, where that many are not
/// too many ops.
fn take_turns_together(draft: &mut Draft, value: Option<Value>) {
    let all = loops(&draft.kernel);
    let nest = all.iter().find(|l| l.depth == 0 && value.is_none_or(|v| l.open >= v));
    let Some(range) = nest.map(LoopInfo::body) else { return };
    let long = |l: &LoopInfo| {
        let size = (l.end - l.open.idx()) as i64;
        let enough = l.len.is_some_and(|n| n >= 2 * COPIES) && COPIES * size <= MAX_UNROLLED;
        enough && range.contains(&l.open.idx())
    };
    for l in turns(&draft.kernel).into_iter().rev().filter(long) {
        draft.step(&unroll::PASS, Site::new(l.open, &[COPIES]));
    }
}

/// Unrolls the turns of loops over the same elements, so that what the first loads or computes is
/// at hand for the next ones. `false`, if that is more than a thread can hold.
fn keep_in_registers(draft: &mut Draft, threads: i64, most: i64) -> bool {
    let small = |l: &LoopInfo| {
        let size = (l.end - l.open.idx()) as i64;
        l.len.is_some_and(|n| n <= most && n * size <= MAX_UNROLLED)
    };
    draft.whole(&simplify::PASS);
    let is_team = |l: &LoopInfo| l.kind == Some(LoopKind::Local) && l.len == Some(threads);
    let all = turns(&draft.kernel);
    if all.len() < 2 || !all.iter().all(small) || !loops(&draft.kernel).iter().any(is_team) {
        return false;
    }
    for l in all.into_iter().rev() {
        draft.step(&unroll::PASS, Site::new(l.open, &[0]));
    }
    true
}

/// How many consecutive iterations the threads take in each turn: as many as a load brings at
/// once, if all loops read along memory and are whole turns of them.
fn run_length(kernel: &Kernel, found: &Found, threads: i64, caps: &Caps) -> i64 {
    let lanes = |l: &LoopInfo| {
        let site = vectorize::site(kernel, l, caps).filter(|_| is_consecutive(kernel, l))?;
        let lanes = site.params[0];
        let whole = l.len.is_some_and(|n| n % (lanes * threads) == 0) && !ends_early(kernel, l);
        (l.innermost && whole && lanes <= 8).then_some(lanes)
    };
    let all: Option<Vec<i64>> = found.children.iter().map(lanes).collect();
    all.and_then(|all| all.into_iter().min()).unwrap_or(1)
}

/// Whether not all iterations of a loop make its accesses.
fn ends_early(kernel: &Kernel, l: &LoopInfo) -> bool {
    let Some(variance) = Variance::of(kernel, l) else { return false };
    let varies = |op: Op| match op {
        Op::Guard { cond, .. } => variance.form(cond) != Form::Uniform,
        _ => false,
    };
    l.body().any(|i| varies(kernel.op(Value(i as u32))))
}

/// Whether all buffers are accessed along the counter of a loop or at one place.
pub(super) fn is_consecutive(kernel: &Kernel, l: &LoopInfo) -> bool {
    let Some(variance) = Variance::of(kernel, l) else { return false };
    l.body().all(|i| match kernel.op(Value(i as u32)) {
        Op::Load { buf, index, .. } | Op::Store { buf, index, .. } => {
            let form = variance.form(index);
            !matches!(kernel.op(buf), Op::Param { .. })
                || matches!(form, Form::Linear(1) | Form::Uniform)
        }
        _ => true,
    })
}

/// Makes one vector iteration of a loop of `lanes` consecutive ones. `false` if there is none.
fn vectorize_run(draft: &mut Draft, caps: &Caps, open: Value, lanes: i64) -> bool {
    let Some(l) = find_loop(&draft.kernel, Some(open)) else { return false };
    let site = vectorize::site(&draft.kernel, &l, caps);
    let fits = is_consecutive(&draft.kernel, &l) && site.is_some_and(|s| s.params[0] >= lanes);
    if fits {
        draft.step(&vectorize::PASS, Site::new(open, &[lanes, 0]));
    }
    fits
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::ir::{Kernel, LoopKind, Op};
    use crate::passes::loops::loops;

    /// The mean of one row, and the row without it.
    fn centred(n: i64) -> Kernel {
        format!(
            "kernel row
             buffer 0 : f32[{n}] read
             buffer 1 : f32[{n}] write
             %p   param 0 read : f32
             %q   param 1 write : f32
             %n   const {n} : i64
             %z   const 0 : i64
             %f   const 0.0 : f32
             %a   alloc register 1 : f32
             %s   store %a[%z], %f : f32
             %i   loop serial %n
               %x   load %p[%i] : f32
               %o   load %a[%z] : f32
               %t   add %o, %x : f32
               %u   store %a[%z], %t : f32
             %e   end %i
             %m   load %a[%z] : f32
             %j   loop parallel %n
               %y   load %p[%j] : f32
               %d   sub %y, %m : f32
               %w   store %q[%j], %d : f32
             %g   end %j"
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn a_small_reduction_at_the_top_is_shared_by_one_group() {
        let caps = Caps {
            simt: true,
            max_local: 256,
            max_groups: [1 << 20; 3],
            shared_bytes: 1 << 14,
            threads: 1 << 15,
            ..Caps::default()
        };
        let repeats = |n| {
            let tuned = crate::tune::optimize(&centred(n), &caps);
            crate::ir::verify_for(&tuned, &caps).unwrap();
            let list = loops(&tuned);
            let whole = list.iter().any(|l| l.kind == Some(LoopKind::Serial) && l.len == Some(n));
            let groups =
                tuned.ops().iter().any(|op| matches!(op, Op::Loop { kind: LoopKind::Group, .. }));
            (whole, groups)
        };
        assert_eq!(repeats(768), (false, false), "threads of one group take turns");
        assert_eq!(repeats(1 << 20), (true, true), "one group would be alone for long");
    }
}
