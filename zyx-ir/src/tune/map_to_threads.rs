//! Maps and other nests without shared work, spread over the threads of a device.
//!
//! Each thread takes one iteration, or as many consecutive ones as a load can bring at once where
//! all accesses are consecutive, or a few that lie apart.

use super::Draft;
use super::simt::{NARROW_THREADS, is_consecutive, merge_all, roots};
use crate::caps::Caps;
use crate::ir::{Kernel, Op, Order, Value};
use crate::passes::loops::{LoopInfo, find_loop, loops};
use crate::passes::variance::{Form, Variance};
use crate::passes::{Site, bind, cut, jam, simplify, split, vectorize};

/// Fewest threads of a group that may be chosen because they divide the work, and threads that run together, of which
/// they are a multiple.
const MIN_LOCAL: i64 = 64;
const TOGETHER: i64 = 32;

/// Iterations of a thread where it loads single elements of a long map, and most ops of all of them.
const TURNS: i64 = 4;
const MAX_TURNED: i64 = 256;

/// Gives each thread as many consecutive iterations as a vector has lanes. The remaining iterations are a nest of their own
/// where threads are few; elsewhere [`spread_turns`] takes them all. `false` if accesses are not consecutive.
pub(super) fn spread_vectors(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let root = roots(&draft.kernel)[nest];
    let Some(l) = find_loop(&draft.kernel, Some(root)) else { return false };
    let (Some(n), true) = (l.len, l.innermost) else { return false };
    let widest = (caps.vector_bytes / 4) as i64;
    let wanted = match draft.knobs.lanes {
        0 => [widest, widest / 2],
        n => [n; 2],
    };
    wanted.into_iter().any(|lanes| {
        // Fewer iterations than threads gain from more threads, not from wider loads.
        let enough = || draft.knobs.lanes > 0 || n / lanes >= caps.threads as i64 / 4;
        if lanes < 2 || n < lanes || !enough() {
            return false;
        }
        let whole = n / lanes * lanes;
        if whole < n && !caps.has_few_threads() {
            return false;
        }
        let mut wide = draft.fork();
        if whole < n {
            wide.step(&cut::PASS, Site::new(root, &[whole]));
            let Some(&rest) = roots(&wide.kernel).get(nest + 1) else { return false };
            map_to_threads(&mut wide, caps, rest);
        }
        let root = roots(&wide.kernel)[nest];
        let spread = spread_lanes(&mut wide, caps, (root, nest), lanes);
        if spread {
            *draft = wide;
        }
        spread
    })
}

/// The same for a number of lanes.
fn spread_lanes(draft: &mut Draft, caps: &Caps, (root, nest): (Value, usize), lanes: i64) -> bool {
    let mut wide = draft.fork();
    wide.step(&split::PASS, Site::new(root, &[lanes]));
    wide.whole(&simplify::PASS);
    let list = loops(&wide.kernel);
    let Some(&root) = roots(&wide.kernel).get(nest) else { return false };
    let Some(outer) = list.iter().find(|l| l.open == root) else { return false };
    let Some(inner) = list.iter().find(|l| l.open > outer.open && l.end < outer.end) else {
        return false;
    };
    if !fills_vectors(&wide.kernel, inner, lanes, caps) {
        return false;
    }
    wide.step(&vectorize::PASS, Site::new(inner.open, &[lanes, 0]));
    *draft = wide;
    map_to_threads(draft, caps, root);
    true
}

/// Whether all accesses of a loop of so many iterations can be those of vectors.
fn fills_vectors(kernel: &Kernel, inner: &LoopInfo, lanes: i64, caps: &Caps) -> bool {
    inner.len == Some(lanes)
        && is_consecutive(kernel, inner)
        && vectorize::site(kernel, inner, caps).is_some_and(|s| s.params[0] >= lanes)
}

/// Gives each thread consecutive iterations of the innermost loop, whose rows are whole numbers of
/// them: what depends on the row alone is the same for all. `false` if accesses are not consecutive.
pub(super) fn vectors_of_rows(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let wide = (caps.threads >= NARROW_THREADS).then(|| row_vectors(draft, caps, nest)).flatten();
    wide.map(|wide| *draft = wide).is_some()
}

fn row_vectors(draft: &Draft, caps: &Caps, nest: usize) -> Option<Draft> {
    let root = roots(&draft.kernel)[nest];
    let list = loops(&draft.kernel);
    let all: Vec<&LoopInfo> = {
        let outer = list.iter().find(|l| l.open == root)?;
        list.iter().filter(|l| l.open >= root && l.end <= outer.end).collect()
    };
    let row = **all.last().filter(|l| all.len() > 1 && l.innermost)?;
    let total = all.iter().try_fold(1i64, |n, l| n.checked_mul(l.len?))?;
    // Each loop holds nothing but the next one.
    let nested = all.windows(2).all(|pair| list[pair[1].parent.unwrap_or(0)].open == pair[0].open);
    if !nested || !all.iter().all(|l| l.is_parallel()) {
        return None;
    }
    let widest = (caps.vector_bytes / 4) as i64;
    [widest, widest / 2].into_iter().find_map(|lanes| {
        let enough = lanes >= 2 && total / lanes >= caps.threads as i64 / 4;
        if !enough || row.len? % lanes != 0 {
            return None;
        }
        let mut wide = draft.fork();
        wide.step(&split::PASS, Site::new(row.open, &[lanes]));
        wide.whole(&simplify::PASS);
        let root = *roots(&wide.kernel).get(nest)?;
        let list = loops(&wide.kernel);
        let end = list.iter().find(|l| l.open == root)?.end;
        let inner = list.iter().rfind(|l| l.open > root && l.end < end)?;
        if !fills_vectors(&wide.kernel, inner, lanes, caps) {
            return None;
        }
        wide.step(&vectorize::PASS, Site::new(inner.open, &[lanes, 0]));
        // Without the loop of a single vector.
        wide.whole(&simplify::PASS);
        merge_all(&mut wide, nest);
        let root = *roots(&wide.kernel).get(nest)?;
        let merged = loops(&wide.kernel).iter().any(|l| l.open == root && l.innermost);
        map_to_threads(&mut wide, caps, root);
        merged.then_some(wide)
    })
}

/// Gives each thread a few iterations, whose loads are under way together: neighbours take neighbouring ones in every turn.
/// `false` where iterations do more than read, compute and write side by side.
pub(super) fn spread_turns(draft: &mut Draft, caps: &Caps, nest: usize) -> bool {
    let in_rows = is_of_rows(&draft.kernel, nest);
    merge_all(draft, nest);
    let mut turns = draft.fork();
    // Indices of loops that were merged.
    turns.whole(&simplify::PASS);
    let Some(&root) = roots(&turns.kernel).get(nest) else { return false };
    let Some(l) = find_loop(&turns.kernel, Some(root)) else { return false };
    let (Some(n), true) = (l.len, l.innermost) else { return false };
    let size = (l.end - l.open.idx()) as i64;
    let fits = TURNS * size <= MAX_TURNED && n / TURNS >= caps.threads as i64 / 4;
    let beside = writes_side_by_side(&turns.kernel, &l, in_rows);
    if caps.threads < NARROW_THREADS || !fits || !beside {
        return false;
    }
    // A number of threads that divides the iterations spares guards.
    let most = draft.knobs.local.min(caps.max_local as i64);
    let local = dividing(n, [TURNS, TOGETHER], most).unwrap_or(most);
    turns.step(&split::PASS, Site::new(root, &[TURNS * local, split::GUARDED]));
    let inner = |kernel: &Kernel, depth: usize| {
        let root = roots(kernel)[nest];
        loops(kernel).into_iter().find(|l| l.open > root && l.depth == depth).map(|l| l.open)
    };
    let Some(group) = inner(&turns.kernel, 1) else { return false };
    turns.step(&split::PASS, Site::new(group, &[local]));
    let Some(middle) = inner(&turns.kernel, 1) else { return false };
    turns.step(&jam::PASS, Site::new(middle, &[TURNS]));
    turns.whole(&simplify::PASS);
    let list = loops(&turns.kernel);
    let root = roots(&turns.kernel)[nest];
    let Some(threads) = list.iter().find(|l| l.open > root && l.depth == 1) else { return false };
    if !threads.innermost || threads.len != Some(local) {
        return false;
    }
    bind_both(&mut turns, root);
    *draft = turns;
    true
}

/// Whether the innermost loop of a nest writes neighbouring elements, enough for all threads that run together.
fn is_of_rows(kernel: &Kernel, nest: usize) -> bool {
    let list = loops(kernel);
    let root = list.iter().find(|l| l.open == roots(kernel)[nest]);
    let row = root.and_then(|root| list.iter().rfind(|l| l.open >= root.open && l.end <= root.end));
    let long = row.filter(|l| l.innermost && l.len.is_some_and(|n| n >= TOGETHER));
    long.is_some_and(|l| writes_side_by_side(kernel, l, false))
}

/// Whether neighbouring iterations of a loop write neighbouring elements, and no loop or branch is in it. `known` if they
/// do but at the ends of rows, whose number the loop finds by a quotient.
fn writes_side_by_side(kernel: &Kernel, l: &LoopInfo, known: bool) -> bool {
    let Some(variance) = Variance::of(kernel, l) else { return false };
    l.body().all(|i| match kernel.op(Value(i as u32)) {
        Op::Load { order: Order::Plain, .. } => true,
        Op::Store { order: Order::Plain, index, .. } => {
            let (index, _) = kernel.unguarded(index);
            known || variance.form(index) == Form::Linear(1)
        }
        op => op.is_pure(),
    })
}

/// The most threads of a group, up to a number, that divide iterations of which each takes so many: so many run together.
fn dividing(n: i64, [turns, together]: [i64; 2], most: i64) -> Option<i64> {
    let mut sizes = (MIN_LOCAL.min(most)..=most).rev();
    sizes.find(|f| n % (turns * f) == 0 && (f % together == 0 || *f == most))
}

/// Cuts the loop into groups of local threads.
pub(super) fn map_to_threads(draft: &mut Draft, caps: &Caps, root: Value) {
    let local = draft.knobs.local.min(caps.max_local as i64);
    let Some(l) = loops(&draft.kernel).into_iter().find(|l| l.open == root) else { return };
    let Some(n) = l.len else {
        draft.step(&split::PASS, Site::new(root, &[local, 1]));
        return bind_both(draft, root);
    };
    if n <= local {
        draft.step(&bind::PASS, Site::new(root, &[1, 0]));
        return;
    }
    // A number of threads that divides the iterations spares a test in each.
    let together = if caps.has_few_threads() { 1 } else { TOGETHER };
    let even = dividing(n, [1, together], local);
    let site = even.map_or(Site::new(root, &[local, 1]), |local| Site::new(root, &[local]));
    draft.step(&split::PASS, site);
    bind_both(draft, root);
}

/// Makes groups of the first loop from here on and threads of the one after it.
fn bind_both(draft: &mut Draft, root: Value) {
    let list = loops(&draft.kernel);
    let Some(outer) = list.iter().find(|l| l.open >= root) else { return };
    let outer = outer.open;
    draft.step(&bind::PASS, Site::new(outer, &[0, 0]));
    let inner = loops(&draft.kernel).into_iter().find(|l| l.open > outer);
    if let Some(inner) = inner {
        draft.step(&bind::PASS, Site::new(inner.open, &[1, 0]));
    }
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::ir::{Kernel, Op};
    use crate::passes::property_tests::{Rng, compare, inputs, run};

    /// A matrix, each row of which has a factor.
    fn scaled(rows: i64, cols: i64) -> Kernel {
        format!(
            "kernel scaled
             buffer 0 : f32[{n}] read
             buffer 1 : f32[{rows}] read
             buffer 2 : f32[{n}] write
             %p   param 0 read : f32
             %q   param 1 read : f32
             %r   param 2 write : f32
             %n   const {rows} : i64
             %i   loop parallel %n
               %m   const {cols} : i64
               %j   loop parallel %m
                 %k   mul %i, %m : i64
                 %l   add %k, %j : i64
                 %x   load %p[%l] : f32
                 %f   load %q[%i] : f32
                 %y   mul %x, %f : f32
                 %s   store %r[%l], %y : f32
               %e   end %j
             %g   end %i",
            n = rows * cols
        )
        .parse()
        .unwrap()
    }

    #[test]
    fn rows_with_a_factor_each_are_read_in_vectors() {
        let caps = Caps {
            simt: true,
            max_local: 256,
            max_groups: [1 << 20; 3],
            vector_bytes: 16,
            masked: true,
            threads: 1 << 13,
            ..Caps::default()
        };
        // Rows of an odd length are no whole number of vectors.
        for (cols, lanes) in [(132, 4), (130, 2), (131, 1)] {
            let kernel = scaled(128, cols);
            let tuned = crate::tune::optimize(&kernel, &caps);
            crate::ir::verify_for(&tuned, &caps).unwrap();
            let widest = tuned.iter().map(|(_, _, ty)| ty.lanes).max();
            assert_eq!(widest, Some(lanes), "{tuned}");
            let input = inputs(&kernel, &mut Rng(5));
            let (expected, found) = (run(&kernel, &input, &[]), run(&tuned, &input, &[]));
            compare(&kernel, (&expected, &found), None).unwrap();
        }
    }

    #[test]
    fn long_maps_take_turns_where_there_are_no_vectors() {
        let caps = Caps {
            simt: true,
            max_local: 64,
            max_groups: [1 << 20; 3],
            threads: 1 << 13,
            ..Caps::default()
        };
        for n in [1 << 14, (1 << 14) + 128, 16_411] {
            let kernel = scaled(1, n);
            let tuned = crate::tune::optimize(&kernel, &caps);
            crate::ir::verify_for(&tuned, &caps).unwrap();
            let ops = tuned.ops();
            let stored = ops.iter().filter(|op| matches!(op, Op::Store { .. })).count();
            assert_eq!(stored, 4, "{tuned}");
            let first = ops.iter().position(|op| matches!(op, Op::Store { .. }));
            let loaded = ops.iter().rposition(|op| matches!(op, Op::Load { .. }));
            assert!(loaded < first, "all loads come first: {tuned}");
            let input = inputs(&kernel, &mut Rng(5));
            let (expected, found) = (run(&kernel, &input, &[]), run(&tuned, &input, &[]));
            compare(&kernel, (&expected, &found), None).unwrap();
        }
    }

    /// A kernel of several sizes finds rows by quotients, and its strides are not known.
    #[test]
    fn maps_of_several_sizes_take_turns() {
        use crate::ir::{Family, Outline, Verified};
        let caps = Caps {
            simt: true,
            max_local: 64,
            max_groups: [1 << 20; 3],
            threads: 1 << 13,
            ..Caps::default()
        };
        let outline =
            |rows, columns| Outline::of(&Verified::new(&scaled(rows, columns)).unwrap()).unwrap();
        let family = Family::new(&outline(300, 515), false).with(&outline(311, 517));
        let own = outline(311, 517);
        let padded = family.padded(&own, "padded").unwrap().verify().unwrap();
        let family = family.of_padded(&own, &Outline::with_lengths(&padded).unwrap()).unwrap();
        let general = crate::tune::optimize(&family.kernel("general").unwrap(), &caps);
        let stored = general.ops().iter().filter(|op| matches!(op, Op::Store { .. })).count();
        assert_eq!(stored, 4, "{general}");
    }
}
