//! Blocks of contractions for devices with many threads: when, and how large.
//!
//! `passes::block` can compute any sum of products in blocks. Here it is decided whether that pays
//! and which of a few blocks does it in the least time, by a model of two terms: multiprocessors
//! that have fewer threads than hide latency work more slowly, and blocks that stick out over the
//! edges work for nothing. Large tiles to a thread need the fewest loads from shared storage.
//!
//! Where neighbouring columns lie side by side, columns are vectors.

use super::Draft;
use super::simt::roots;
use crate::caps::Caps;
use crate::ir::{Kernel, Op, Value};
use crate::passes::block::{self, Found, Tile};
use crate::passes::loops::LoopInfo;
use crate::passes::variance::{Form, Variance};
use crate::passes::{Site, dce, vectorize};

/// Fewest resident threads of a device that gains: a CPU has no use for shared storage.
const MIN_THREADS: usize = 1 << 12;
/// Fewest rows, columns and steps worth it.
const MIN_SIDE: i64 = 16;
const MIN_STEPS: i64 = 16;

/// Rows and columns of a block and of a thread, and the part of the peak that its loads leave.
const BLOCKS: [([i64; 4], f64); 8] = [
    ([128, 128, 8, 8], 1.0),
    ([64, 128, 8, 8], 0.95),
    ([128, 64, 8, 8], 0.95),
    ([32, 256, 8, 8], 0.85),
    ([64, 64, 8, 4], 0.85),
    ([32, 128, 8, 4], 0.75),
    ([32, 64, 4, 4], 0.65),
    ([32, 32, 4, 4], 0.6),
];

/// Threads of a multiprocessor that hide latency.
const HIDES: i64 = 512;

/// Multiply-adds that a multiprocessor has time for while the fullest of them does one step of so
/// many groups with a block of these rows and columns and of these of a thread.
fn time([rows, columns, row, column]: [i64; 4], peak: f64, groups: i64, units: i64) -> f64 {
    let each = (groups + units - 1) / units;
    let resident = (each * (rows / row) * (columns / column)).min(HIDES) as f64;
    (each * rows * columns) as f64 / peak / (resident / HIDES as f64).powf(0.6)
}

fn units(caps: &Caps) -> i64 {
    caps.multiprocessors().max(4) as i64
}

/// What a step of `batch` sums of products of rows and columns takes in the best of the blocks, in
/// multiply-adds of a multiprocessor.
pub fn step_time([batch, rows, columns]: [usize; 3], caps: &Caps) -> f64 {
    let groups = |[height, width, ..]: [i64; 4]| {
        (batch * rows.div_ceil(height as usize) * columns.div_ceil(width as usize)) as i64
    };
    let each = |&(block, peak): &([i64; 4], f64)| time(block, peak, groups(block), units(caps));
    BLOCKS.iter().map(each).fold(f64::INFINITY, f64::min)
}

/// Computes the nest with this number in blocks, if it is a contraction large enough.
pub(super) fn block(draft: &mut Draft, caps: &Caps, number: usize) -> bool {
    let root = roots(&draft.kernel)[number];
    if caps.threads < MIN_THREADS {
        return false;
    }
    let Some(found) = Found::of(&draft.kernel, Some(root)) else { return false };
    let [rows, columns, _, steps] = found.sizes();
    if rows < MIN_SIDE || columns < MIN_SIDE || steps < MIN_STEPS {
        return false;
    }
    let mut blocked = draft.fork();
    let vectors = caps.vector_bytes >= 16 && caps.masked;
    let column = found.innermost_columns().filter(|_| vectors);
    if let Some(column) = column.filter(|l| is_side_by_side(&draft.kernel, l, caps)) {
        blocked.step(&vectorize::PASS, Site::new(column.open, &[4, 0]));
        blocked.whole(&dce::PASS);
    }
    let root = roots(&blocked.kernel)[number];
    let Some(wide) = Found::of(&blocked.kernel, Some(root)) else { return false };
    let lanes = columns / wide.sizes()[1];
    let Some(tile) = choose(&blocked, &wide, caps, lanes, vectors) else { return false };
    blocked.step(&block::PASS, Site { value: Some(root), params: tile.params()[..].into() });
    *draft = blocked;
    true
}

/// Whether four neighbouring columns can be one vector: loads and stores are side by side.
fn is_side_by_side(kernel: &Kernel, l: &LoopInfo, caps: &Caps) -> bool {
    let Some(variance) = Variance::of(kernel, l) else { return false };
    let site = vectorize::site(kernel, l, caps).is_some_and(|site| site.params[0] == 4);
    let buffer = |buf: Value| matches!(kernel.op(buf), Op::Param { .. });
    site && l.len.is_some_and(|n| n % 4 == 0)
        && l.body().all(|i| match kernel.op(Value(i as u32)) {
            Op::Store { buf, index, .. } | Op::Load { buf, index, .. } if buffer(buf) => {
                let (index, _) = kernel.unguarded(index);
                matches!(variance.form(index), Form::Linear(1) | Form::Uniform)
            }
            _ => true,
        })
}

/// The block that takes the least time, where enough of the device has work.
fn choose(draft: &Draft, found: &Found, caps: &Caps, lanes: i64, vectors: bool) -> Option<Tile> {
    let steps = found.sizes()[3];
    let units = units(caps);
    let depth = if steps >= 32 { 16 } else { 8 };
    let wanted = |i: usize| draft.knobs.tile == 0 || draft.knobs.tile == i as i64 + 1;
    let timed = BLOCKS.iter().enumerate().filter(|&(i, _)| wanted(i)).filter_map(|(_, entry)| {
        let &(block @ [rows, columns, row, column], peak) = entry;
        let (columns, column) = (columns / lanes, column / lanes);
        let tile = Tile { rows, columns, depth, row, column, lanes: if vectors { 4 } else { 1 } };
        let groups: i64 = found.groups(tile).iter().product();
        let fits = found.fits(&draft.kernel, tile, caps);
        fits.then(|| (tile, groups, time(block, peak, groups, units)))
    });
    let best = timed.min_by(|a, b| a.2.total_cmp(&b.2))?;
    (best.1 >= (units / 8).max(2)).then_some(best.0)
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::ir::{Op, Space};
    use crate::passes::samples;

    fn shared(caps: &Caps) -> usize {
        let tuned = crate::tune::optimize(&samples::matmul(256, 64, 256), caps);
        let is_shared = |op: &&Op| matches!(op, Op::Alloc { space: Space::Shared, .. });
        tuned.ops().iter().filter(is_shared).count()
    }

    #[test]
    fn only_devices_of_many_threads_stage_factors() {
        let gpu = Caps {
            simt: true,
            max_local: 1024,
            shared_bytes: 48 << 10,
            vector_bytes: 16,
            masked: true,
            threads: 1 << 15,
            ..Caps::default()
        };
        assert_eq!(shared(&gpu), 2);
        assert_eq!(shared(&Caps { threads: 8, ..gpu.clone() }), 0);
        assert_eq!(shared(&Caps { shared_bytes: 0, ..gpu }), 0);
    }
}
