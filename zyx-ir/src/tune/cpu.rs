//! The default heuristic for CPUs: few threads, wide vectors.
//!
//! In order: index algebra; loops over one contiguous range become one loop, loops over several
//! sources several; expensive values of
//! reductions are kept for the loops after them; divisions of indices go; the outermost
//! parallel loop of each nest becomes groups, cut into blocks where it is the only one; then of
//! each nest the loops that gain most from vectors are vectorised, reductions get several
//! accumulators, elementwise bodies are unrolled, outer-vectorised loops jammed; cleanup.

use super::Draft;
use super::cost::{UNKNOWN_TRIPS, op_weight};
use super::knobs::Knobs;
use super::parts;
use super::rows;
use super::scan::{self, nest_at};
use super::sources;
use super::strategies::{self, At, Strategy};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Value};
use crate::ops::BinaryOp;
use crate::passes::loops::{LoopInfo, find_loop, loops};
use crate::passes::variance::{Accumulator, Form};
use crate::passes::{
    Site, accumulate, bind, cse, cut, dce, divide, facts, hoist, jam, memoize, muladd, nest,
    simplify, split, unroll, variance, vectorize,
};

/// The rows of this kind of device, in the order in which they are tried. Where none applies, loops
/// are vectorised as they stand.
pub(super) static STRATEGIES: [Strategy; 3] = [
    Strategy { name: "interleaved scans", apply: |draft, _, at| scan::interleave(draft, at.root) },
    Strategy {
        name: "interleaved rows",
        apply: |draft, caps, at| rows::interleave(draft, caps, at.root),
    },
    Strategy { name: "strips", apply: |draft, caps, at| strips(draft, caps, at.root) },
];

pub(super) fn tune(mut draft: Draft, caps: &Caps) -> Draft {
    draft.whole(&simplify::PASS);
    flatten(&mut draft);
    sources::separate(&mut draft, caps);
    parts::separate(&mut draft, caps);
    if draft.knobs.stage {
        stage_values(&mut draft, caps);
    }
    // No vector holds a division of integers, and those of indices are multiplications.
    draft.whole(&divide::PASS);
    // Last nests first, so that earlier ones keep their values.
    let roots: Vec<Value> =
        loops(&draft.kernel).iter().filter(|l| l.depth == 0).map(|l| l.open).collect();
    for (nest, &root) in roots.iter().enumerate().rev() {
        if !strategies::apply(&mut draft, &STRATEGIES, caps, At { root, nest }) {
            tune_nest(&mut draft, caps, root);
        }
    }
    // Cleaned up before bodies are copied.
    draft.whole(&simplify::PASS);
    draft.whole(&divide::PASS);
    draft.whole(&hoist::PASS);
    if caps.fast_fma {
        draft.whole(&muladd::PASS);
    }
    draft.whole(&cse::PASS);
    draft.whole(&dce::PASS);
    if unroll_nests(&mut draft, caps) && has_guards(&draft.kernel) {
        // Copies inside of a padding need no guard.
        draft.whole(&simplify::PASS);
        draft.whole(&dce::PASS);
    }
    draft
}

/// Most ops of a loop whose iterations are jammed.
const JAMMED: usize = 400;

/// Keeps what reductions compute at great cost for the loops after them.
fn stage_values(draft: &mut Draft, caps: &Caps) {
    while let Some(site) = (memoize::PASS.sites)(&draft.kernel, caps).into_iter().next() {
        draft.step(&memoize::PASS, site);
        draft.whole(&dce::PASS);
    }
}

fn has_guards(k: &Kernel) -> bool {
    k.ops().iter().any(|op| matches!(op, Op::Guard { .. }))
}

/// Merges pairs of parallel loops that walk one contiguous range.
fn flatten(draft: &mut Draft) {
    loop {
        let list = loops(&draft.kernel);
        let pair = list.iter().rev().find(|outer| {
            nest::inner_of(&draft.kernel, outer, &list)
                .is_some_and(|inner| is_flat(&draft.kernel, outer, &inner))
        });
        let Some(outer) = pair else { return };
        let site = Site::new(outer.open, &[]);
        draft.step(&nest::MERGE, site);
        draft.whole(&simplify::PASS);
    }
}

/// Whether the counters of two loops are used as `outer * len(inner) + inner` only.
fn is_flat(k: &Kernel, outer: &LoopInfo, inner: &LoopInfo) -> bool {
    let Some(m) = inner.len else { return false };
    let facts = facts::Facts::of(k);
    let flat = |v: Value| {
        let l = facts.linear(v);
        l.coefficient(inner.open).checked_mul(m) == Some(l.coefficient(outer.open))
    };
    let is_sum = |v: Value| *facts.linear(v) != facts::Linear::atom(v);
    let body = outer.open.idx() + 1..outer.end;
    body.map(|i| Value(i as u32)).filter(|&v| !is_sum(v)).all(|v| match k.op(v) {
        Op::End { .. } => true,
        op => op.operands().all(flat),
    })
}

/// Makes groups of the outermost loop of a nest and vectorises what is worth it.
fn tune_nest(draft: &mut Draft, caps: &Caps, root: Value) {
    let mut chosen = prepare_groups(draft, caps, root);
    let Some((list, index)) = nest_at(draft, root) else { return };
    let l = list[index];
    let is_chosen = chosen.as_ref().is_some_and(|c| c.contains(&l.open));
    if l.is_parallel() && l.len != Some(1) && !l.innermost && !is_chosen {
        let before = draft.kernel.ops().len();
        draft.step(&bind::PASS, Site::new(l.open, &[0, 0]));
        chosen = chosen.filter(|_| draft.kernel.ops().len() == before);
    }
    let chosen = chosen.unwrap_or_else(|| {
        let Some((list, index)) = nest_at(draft, root) else { return Vec::new() };
        Choice::of(&draft.kernel, &list, index, (caps, &draft.knobs)).chosen
    });
    for &open in chosen.iter().rev() {
        vectorize_loop(draft, caps, open);
    }
}

/// Cuts a nest into strips and vectorises them. `false` if nothing was cut.
fn strips(draft: &mut Draft, caps: &Caps, root: Value) -> bool {
    let before = draft.trace.steps.len();
    if !cut_strips(draft, root)
        && let Some(rest) = cut_lanes(draft, caps, root)
    {
        tune_nest(draft, caps, rest);
    }
    let changed = draft.trace.steps.len() > before;
    if changed {
        tune_nest(draft, caps, root);
    }
    changed
}

/// Walks perfectly nested loops so that lines of memory that the innermost one walks across stay
/// in the cache until all of each is used: the loop that walks along them is brought next to it,
/// and the two run in strips of columns. `false` if there are none.
fn cut_strips(draft: &mut Draft, root: Value) -> bool {
    while let Some((chain, at)) = across(draft, root) {
        let between = chain[at + 1..].iter().filter_map(|l| l.len).product::<i64>();
        if at + 2 == chain.len() || between <= LINES {
            break;
        }
        draft.step(&nest::INTERCHANGE, Site::new(chain[at].open, &[]));
    }
    let is_across = across(draft, root).is_some_and(|(chain, at)| at + 2 == chain.len());
    let chain = chain_at(draft, root).unwrap_or_default();
    let [.., outer, inner] = chain[..] else { return false };
    let width = match draft.knobs.strip {
        0 if is_across && inner.len.is_some_and(|n| n > LINES) => {
            most_columns(&draft.kernel, &inner).unwrap_or(STRIP).min(STRIP)
        }
        width => width,
    };
    if width < 2 || inner.len.is_none_or(|n| n <= width) {
        return false;
    }
    draft.step(&nest::INTERCHANGE, Site::new(outer.open, &[]));
    let Some(columns) = loops(&draft.kernel).into_iter().find(|l| l.open >= outer.open) else {
        return true;
    };
    split_apart(draft, columns.open, width);
    // The strips and the last, narrower one: each walks all rows.
    let list = loops(&draft.kernel);
    let Some(strips) = list.iter().position(|l| l.open >= columns.open) else { return true };
    let inside = list.iter().filter(|l| l.parent == Some(strips) && l.is_parallel());
    for column in inside.rev() {
        draft.step(&nest::INTERCHANGE, Site::new(column.open, &[]));
    }
    true
}

/// Columns whose lines of memory all stay in the first-level cache, if they lie whole lines apart: then they share few
/// of its sets.
fn most_columns(k: &Kernel, columns: &LoopInfo) -> Option<i64> {
    let variance = variance::Variance::of(k, columns)?;
    let kept = |i: usize| match k.op(Value(i as u32)) {
        Op::Load { buf, index, .. } | Op::Store { buf, index, .. }
            if matches!(k.op(buf), Op::Param { .. }) =>
        {
            let Form::Linear(step) = variance.form(index) else { return None };
            let size = k.ty(buf).dtype.size() as i64;
            let bytes = step.saturating_mul(size).saturating_abs();
            let shared = 1i64 << (bytes / LINE).trailing_zeros().min(SETS.trailing_zeros());
            (bytes >= LINE && bytes % LINE == 0).then_some(WAYS * SETS / shared)
        }
        _ => None,
    };
    columns.body().filter_map(kept).min()
}

/// Makes blocks of a loop. Where its length is known, a shorter last block is a second loop.
pub(super) fn split_apart(draft: &mut Draft, open: Value, block: i64) {
    draft.step(&split::PASS, Site::new(open, &[block, split::APART]));
}

/// Cuts a loop over long bodies with arrays, whose iterations become lanes, behind the last whole
/// vector: lanes that may not exist would be a condition on every access. Gives the nest of what is
/// left, if it is one.
fn cut_lanes(draft: &mut Draft, caps: &Caps, root: Value) -> Option<Value> {
    let (list, index) = nest_at(draft, root)?;
    let k = &draft.kernel;
    let chosen = Choice::of(k, &list, index, (caps, &draft.knobs)).chosen;
    let is_cut = |l: &&LoopInfo| chosen.contains(&l.open) && l.is_parallel() && has_arrays(k, l);
    let l = *list.iter().find(is_cut)?;
    let (n, lanes) = (l.len?, vectorize::site(k, &l, caps)?.params[0]);
    if n % lanes == 0 || n < 4 * lanes {
        return None;
    }
    draft.step(&cut::PASS, Site::new(l.open, &[n - n % lanes]));
    let at = |from: usize| loops(&draft.kernel).into_iter().find(|l| l.open.idx() >= from);
    let whole = at(l.open.idx())?;
    at(whole.end).filter(|rest| rest.depth == 0 && whole.depth == 0).map(|rest| rest.open)
}

/// Columns of a strip where memory is walked across.
const STRIP: i64 = 64;

/// Sets of the first-level cache of a core and lines of each, as x86-64 processors have had since 2008 and more.
const SETS: i64 = 64;
const WAYS: i64 = 8;

/// Lines of memory that stay in the first-level cache while each is used a little.
const LINES: i64 = 256;

/// Bytes from which on what lies apart shares as little as can be.
const FAR: i64 = 32 << 10;

/// Bytes of such a line.
const LINE: i64 = 64;

/// The perfectly nested loops of a nest, from the outermost to an innermost one.
fn chain_at(draft: &Draft, root: Value) -> Option<Vec<LoopInfo>> {
    let (list, index) = nest_at(draft, root)?;
    let mut chain = vec![list[index]];
    while let Some(inner) = nest::inner_of(&draft.kernel, &chain[chain.len() - 1], &list) {
        chain.push(inner);
    }
    chain[chain.len() - 1].innermost.then_some(chain)
}

/// The chain of loops of a nest, and the last of them that walks along lines of memory that the
/// innermost one, which gives at least a line of results, walks across.
fn across(draft: &Draft, root: Value) -> Option<(Vec<LoopInfo>, usize)> {
    let (k, chain) = (&draft.kernel, chain_at(draft, root)?);
    let (inner, around) = chain.split_last()?;
    let columns = variance::Variance::of(k, inner)?;
    let strided = |i: usize| match k.op(Value(i as u32)) {
        Op::Load { buf, index, .. } if matches!(k.op(buf), Op::Param { .. }) => {
            let size = k.ty(Value(i as u32)).bytes() as i64;
            let Form::Linear(step) = columns.form(index) else { return None };
            let lines = inner.len.is_some_and(|n| n.saturating_mul(size) >= LINE);
            (lines && step.saturating_mul(size).saturating_abs() >= LINE).then_some(index)
        }
        _ => None,
    };
    let indices: Vec<Value> = inner.body().filter_map(strided).collect();
    let at = around.iter().rposition(|l| {
        let rows = variance::Variance::of(k, l);
        let along = |&index: &Value| {
            rows.as_ref().is_some_and(|r| matches!(r.form(index), Form::Linear(1 | -1)))
        };
        indices.iter().any(along)
    })?;
    Some((chain, at))
}

/// Cuts or merges the loops at the top of a nest so that the outermost has enough iterations for
/// all threads and leaves loops inside that are worth vectors. Gives the loops to vectorise, if
/// they are known for the nest as it is now.
fn prepare_groups(draft: &mut Draft, caps: &Caps, root: Value) -> Option<Vec<Value>> {
    let wanted = 4 * caps.threads.max(1) as i64;
    for _ in 0..3 {
        let (list, index) = nest_at(draft, root)?;
        let (k, l) = (&draft.kernel, list[index]);
        let knobs = draft.knobs;
        let choice = Choice::of(k, &list, index, (caps, &knobs));
        let known = Some(choice.chosen);
        let Some(n) = l.len.filter(|_| l.is_parallel()) else {
            if l.is_parallel() && choice.itself {
                let lanes = vectorize::site(k, &l, caps).map_or(1, |s| s.params[0]);
                let block = match l.innermost {
                    true => knobs.block / 4,
                    false => jammed(k, &l, lanes, &knobs) * lanes,
                };
                split_apart(draft, l.open, block);
                return None;
            }
            return known;
        };
        if choice.itself {
            let block = block_length(k, &l, n, (caps, &knobs));
            if n < 2 * block {
                return known;
            }
            split_apart(draft, l.open, block);
            return None;
        }
        let Some(inner) = nest::inner_of(k, &l, &list).filter(|_| n < wanted) else { return known };
        let m = inner.len?;
        if Choice::of(k, &list, index_of(&list, inner.open), (caps, &knobs)).itself {
            let block = block_length(k, &inner, m, (caps, &knobs));
            if m < 2 * block {
                return known;
            }
            split_apart(draft, inner.open, block);
        }
        let (list, index) = nest_at(draft, root)?;
        draft.step(&nest::MERGE, Site::new(list[index].open, &[]));
        draft.whole(&simplify::PASS);
    }
    None
}

fn index_of(list: &[LoopInfo], open: Value) -> usize {
    list.iter().position(|l| l.open == open).expect("invariant: the loop is in the list")
}

/// How many iterations of a loop that will be vectorised go to one group.
fn block_length(k: &Kernel, l: &LoopInfo, n: i64, (caps, knobs): (&Caps, &Knobs)) -> i64 {
    let lanes = vectorize::site(k, l, caps).map_or(1, |s| s.params[0]);
    let (step, most) = if l.innermost {
        (4 * lanes, knobs.block.max(4 * lanes))
    } else {
        (lanes, jammed(k, l, lanes, knobs) * lanes)
    };
    let groups = knobs.spread * caps.threads.max(1) as i64;
    let steps = (n + groups * step - 1) / (groups * step);
    (steps * step).clamp(step, most / step * step)
}

/// Vectors of columns that are jammed: no more than have their lines of memory in the cache.
fn jammed(k: &Kernel, l: &LoopInfo, lanes: i64, knobs: &Knobs) -> i64 {
    let most = most_columns(k, l).map_or(knobs.jam, |columns| columns / lanes);
    most.clamp(1, knobs.jam.max(1))
}

/// Which loops of a nest are worth vectorising.
struct Choice {
    /// Estimated cost of one run of the nest.
    cost: f64,
    /// Whether the outermost loop itself is vectorised.
    itself: bool,
    /// All loops to vectorise.
    chosen: Vec<Value>,
}

impl Choice {
    /// The best choice for the loop at `index` and those inside.
    fn of(k: &Kernel, list: &[LoopInfo], index: usize, (caps, knobs): (&Caps, &Knobs)) -> Choice {
        let l = &list[index];
        let trips = l.len.unwrap_or(UNKNOWN_TRIPS) as f64;
        let mut chosen = Vec::new();
        let mut cost = own_cost(k, l, list, index);
        for child in (index + 1..list.len()).filter(|&c| list[c].parent == Some(index)) {
            let best = Choice::of(k, list, child, (caps, knobs));
            cost += best.cost;
            chosen.extend(best.chosen);
        }
        let scalar = Choice { cost: trips * cost, itself: false, chosen };
        match vector_cost(k, l, caps) {
            Some(cost) if cost * knobs.bias(l) < scalar.cost => {
                Choice { cost, itself: true, chosen: vec![l.open] }
            }
            _ => scalar,
        }
    }
}

/// Cost of an iteration of a loop without its inner loops.
fn own_cost(k: &Kernel, l: &LoopInfo, list: &[LoopInfo], index: usize) -> f64 {
    let mut cost = 1.0;
    let mut i = l.open.idx() + 1;
    let mut children = list[index + 1..].iter().filter(|c| c.parent == Some(index)).peekable();
    while i < l.end {
        if let Some(child) = children.next_if(|c| c.open.idx() == i) {
            i = child.end + 1;
            continue;
        }
        cost += weight(k, Value(i as u32));
        i += 1;
    }
    cost
}

/// Weight of a scalar op; indices are mostly part of addresses.
fn weight(k: &Kernel, v: Value) -> f64 {
    let op = k.op(v);
    let is_index = op.is_pure() && k.ty(v).dtype.is_int();
    if is_index { 0.2 } else { op_weight(k, op) }
}

/// Cost of all iterations of a loop, vectorised; `None` where it cannot be.
fn vector_cost(k: &Kernel, l: &LoopInfo, caps: &Caps) -> Option<f64> {
    let (site, variance) = vectorize::analyse(k, l, caps)?;
    let lanes = site.params[0];
    let staged = has_arrays(k, l);
    let mut cost = 1.0;
    let mut trips = vec![1.0];
    for i in l.body() {
        let v = Value(i as u32);
        let times = trips.last().copied().unwrap_or(1.0);
        match k.op(v) {
            Op::Loop { len, .. } => {
                let n = k.constant(len).map_or(UNKNOWN_TRIPS, |c| c.to_i64());
                trips.push(times * n as f64);
            }
            Op::If { .. } => trips.push(times),
            Op::End { .. } => {
                trips.pop();
            }
            op @ (Op::Load { buf, index, .. } | Op::Store { buf, index, .. }) => {
                let size = k.ty(buf).dtype.size() as i64;
                let apart = |step: i64| step.saturating_mul(size).saturating_abs();
                let lanes = lanes as f64;
                cost += times
                    * match variance.form(index) {
                        Form::Linear(1) | Form::Uniform => 1.0,
                        _ if variance::is_private(k, l, buf) => 1.0,
                        // Neighbours share lines of memory; what is far apart has the same place in
                        // caches, and pages of its own.
                        Form::Linear(-2..=2) => 2.0 + lanes / 2.0,
                        Form::Linear(step) if staged && apart(step) > FAR => 2.0 + 4.0 * lanes,
                        Form::Linear(_) if staged => 2.0 + lanes,
                        // Lines are read before they are written, and written back.
                        Form::Linear(step)
                            if matches!(op, Op::Store { .. }) && apart(step) >= LINE =>
                        {
                            4.0 + lanes
                        }
                        _ => 2.0 + lanes,
                    };
            }
            _ => cost += times * weight(k, v),
        }
    }
    let trips = ((l.len.unwrap_or(UNKNOWN_TRIPS) + lanes - 1) / lanes) as f64;
    let fold = if l.kind == Some(LoopKind::Serial) { 12.0 } else { 0.0 };
    Some(trips * cost + fold)
}

/// Whether iterations keep values in arrays, so that strips cannot arrange how they walk memory.
fn has_arrays(k: &Kernel, l: &LoopInfo) -> bool {
    l.body().any(|i| matches!(k.op(Value(i as u32)), Op::Alloc { len, .. } if len > 1))
}

fn vectorize_loop(draft: &mut Draft, caps: &Caps, open: Value) {
    let Some(l) = find_loop(&draft.kernel, Some(open)) else { return };
    let Some(site) = vectorize::site(&draft.kernel, &l, caps) else { return };
    let whole = l.len.is_none_or(|n| n >= site.params[0]);
    let most = jammed(&draft.kernel, &l, site.params[0], &draft.knobs);
    draft.step(&vectorize::PASS, site);
    // What is long has enough to do already.
    let short = l.end - l.open.idx() <= JAMMED;
    if l.is_parallel() && !l.innermost && whole && short {
        // The vector loop is the first loop from where the scalar one stood.
        let list = loops(&draft.kernel);
        let Some(v) = list.into_iter().find(|v| v.open >= open) else { return };
        let trips = v.len.unwrap_or(UNKNOWN_TRIPS);
        if let Some(factor) = most_jammed(most).into_iter().find(|&f| f > 1 && trips >= f) {
            draft.step(&jam::PASS, Site::new(v.open, &[factor]));
            jam_rest(draft, &v, trips % factor);
        }
    }
}

/// Jams the few iterations that a jammed loop left: alone, each of them waits for its own sums.
fn jam_rest(draft: &mut Draft, jammed: &LoopInfo, rest: i64) {
    let after = |l: &LoopInfo| l.open >= jammed.open && l.depth == jammed.depth;
    let is_rest = |l: &LoopInfo| after(l) && l.is_parallel() && l.len == Some(rest);
    if rest > 1
        && let Some(l) = loops(&draft.kernel).into_iter().find(is_rest)
    {
        draft.step(&jam::PASS, Site::new(l.open, &[rest]));
    }
}

impl Knobs {
    /// What the cost of vectors along a loop is multiplied with.
    fn bias(&self, l: &LoopInfo) -> f64 {
        if l.innermost { 1.0 } else { self.outer as f64 / 100.0 }
    }
}

/// How many iterations are jammed, most wanted first.
fn most_jammed(jam: i64) -> [i64; 3] {
    [jam, jam.min(4), jam.min(2)]
}

/// Bytes of the largest register of any processor.
const LARGEST_REGISTER: usize = 64;

/// Gives innermost reductions several accumulators and unrolls innermost vector loops, last loops
/// first. Says whether there were any. Extrema need but one if a vector is many registers.
fn unroll_nests(draft: &mut Draft, caps: &Caps) -> bool {
    let before = draft.trace.steps.len();
    for l in loops(&draft.kernel).into_iter().rev().filter(|l| l.innermost) {
        let k = &draft.kernel;
        let trips = l.len.unwrap_or(UNKNOWN_TRIPS);
        let work: f64 = l.body().map(|i| weight(k, Value(i as u32))).sum();
        let is_vector = l.body().any(|i| k.ty(Value(i as u32)).is_vector());
        match l.kind {
            Some(LoopKind::Serial) => {
                let all = variance::accumulators(k, &l).unwrap_or_default();
                let extremum = |a: &Accumulator| matches!(a.op, BinaryOp::Max | BinaryOp::Min);
                let (chains, extrema) = (all.len(), all.iter().all(extremum));
                // Indices are not the same for lengths that are literals and others.
                let is_index = |v: Value| k.op(v).is_pure() && k.ty(v).dtype.is_int();
                let values = l.body().map(|i| Value(i as u32)).filter(|&v| !is_index(v));
                let work: f64 = values.map(|v| op_weight(k, k.op(v))).sum();
                let most = match draft.knobs.accumulators {
                    0 if extrema && caps.vector_bytes > LARGEST_REGISTER => 1,
                    0 if work < 8.0 => 8,
                    0 => 4,
                    n => n,
                };
                // A window of a few places: fewer than there would be accumulators.
                let copies = trips.saturating_mul(l.body().len() as i64);
                let is_window = is_vector && trips < 4 && copies <= JAMMED as i64;
                if most > 1 && (1..4).contains(&chains) {
                    let site = rows::streams(k, &l, &draft.knobs).site(l.open, most);
                    // A number of accumulators that does not depend on the length: so loops of unknown
                    // length add up as others do. In shorter loops all goes to the first.
                    match trips >= most {
                        true => draft.step(&accumulate::PASS, site),
                        false => draft.reorders(&accumulate::PASS, &site),
                    }
                }
                if is_window && (trips < most || chains >= 4) {
                    draft.step(&unroll::PASS, Site::new(l.open, &[0]));
                }
            }
            Some(LoopKind::Parallel) if is_vector && (work < 60.0 || draft.knobs.unroll > 0) => {
                let factor = match draft.knobs.unroll {
                    0 if work < 12.0 => 4,
                    0 => 2,
                    n => n,
                };
                if factor > 1 && trips >= 2 * factor {
                    draft.step(&unroll::PASS, Site::new(l.open, &[factor]));
                }
            }
            _ => {}
        }
    }
    draft.trace.steps.len() > before
}
