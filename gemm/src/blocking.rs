//! How a contraction is cut into tasks and blocks, and what it will cost.
//!
//! A task computes one region of C for one batch entry: some rows, some panels, and some blocks of
//! k. It needs nothing of other tasks, so tasks run in any order on any thread. A panel of B is
//! packed by every part of m that needs it, or by all threads before the tasks. The block sizes follow the caches (a panel of B
//! in L1 or on its way from L2, a block of A in L2), and the cut is the cheapest of all candidates
//! under the cost model below.
//!
//! The model counts cycles of one core. Its constants were measured on a 2.8 GHz server core with
//! two 512-bit multiply-add ports; what matters is their ratios.

use super::bytes::ROW;
use super::layout::{Layout, ModeA, ModeB};
use super::plan::WHOLE_RUN;
use super::shared;
use std::ops::Range;

/// Bytes of a packed panel of B: it and the rows of A of a tile share L1. On Arm a panel is a third
/// as wide against as many rows of A, and 24 KiB of B stand beside 14 of A in 64 KiB.
const PANEL_BYTES: usize = if cfg!(target_arch = "aarch64") { 24 << 10 } else { 40 << 10 };

/// Bytes of the block of A (rows of a task times steps of a block), a share of L2.
const A_BLOCK_BYTES: usize = if cfg!(target_arch = "aarch64") { 384 << 10 } else { 768 << 10 };

/// The same where A is computed: whatever panels do not find in L1 they read from L2, in order.
const COMPUTED_PANEL_BYTES: usize = 320 << 10;
const COMPUTED_BLOCK_BYTES: usize = 64 << 10;

/// Bytes of accumulators of a region kept over several blocks of k.
const REGION_BYTES: usize = 1 << 20;

/// Bytes and columns of a finished block handed to the epilogue.
const FINISHED_BYTES: usize = 128 << 10;
const FINISHED_COLUMNS: usize = 256;

/// Cycles of work below which one thread does it all: about 20 us.
const SERIAL_CYCLES: f64 = 60e3;

/// Cycles of work a thread takes at a time, unless that would leave threads without work.
const CHUNK_CYCLES: f64 = 30e3;

/// Cycles to start tasks on other threads, and to start a task.
const DISPATCH_CYCLES: f64 = 1500.0;
const TASK_CYCLES: f64 = 200.0;

/// Cycles until a vector of a panel that was packed for all is in the caches of the one who reads it.
const SHARED_CYCLES: f64 = 0.4;

/// Cycles to compute an element of an operand.
const COMPUTED_CYCLES: f64 = 1.5;

/// Steps along k that a matrix register holds.
const REGISTER_STEPS: usize = 64;

/// Cycles at the ends of a tile, and of one of bytes, in vectors or in matrix registers.
const END_CYCLES: f64 = 30.0;
const BYTES_END_CYCLES: f64 = 90.0;
const REGISTERS_END_CYCLES: f64 = 300.0;

/// Elements of `f32` in a page of 4096 bytes.
const PAGE: usize = 1024;

/// Bytes of partial results when k is split over threads.
const PARTIAL_BYTES: usize = 64 << 20;

/// Partial results beyond so many bytes leave L2; cycles to write and add up one accumulator of
/// them, inside L2 and outside.
const PARTIAL_L2_BYTES: usize = 4 << 20;
const PARTIAL_CYCLES: [f64; 2] = [0.15, 1.5];

/// How much longer than the others the core may take that is waited for, as a share of a task.
const WAIT: f64 = 0.04;

/// Nanoseconds per cycle.
const NS_PER_CYCLE: f64 = 1.0 / 2.8;

/// The cut of a contraction.
#[derive(Clone, Debug)]
pub(super) struct Blocking {
    /// First step and number of steps of every block of k; at least one, maybe of length 0.
    pub(super) k_blocks: Vec<(usize, usize)>,
    /// Parts of m, of the panels, and of the blocks of k.
    pub(super) m_parts: usize,
    pub(super) n_parts: usize,
    pub(super) k_parts: usize,
    /// Threads worth waking.
    pub(super) threads: usize,
    /// Tasks a thread takes at a time.
    pub(super) grain: usize,
    /// Whether B is packed before the tasks, for all of them.
    pub(super) shared: bool,
    /// Whether the caller did that before the run.
    pub(super) prepacked: bool,
    /// Panels packed, and finished, together.
    pub(super) group: usize,
    /// Tiles of rows finished together.
    pub(super) strip: usize,
    /// Estimated cycles from call to return.
    pub(super) cycles: f64,
}

impl Blocking {
    /// The cheapest cut for so many threads; of a packed B for those that sum in the order of `base`.
    pub(super) fn new(layout: &Layout, threads: usize, base: Option<&Blocking>) -> Blocking {
        let bytes = layout.bytes;
        let [batches, m, _, k] = layout.sizes();
        let vectors = layout.panels.iter().map(|p| p.vectors).max().unwrap_or(1);
        let depth = layout.tile.depth;
        // A task computes rows of A and multiplies them at once: a few along all of k, so that what
        // they are made of is read in long runs. That needs a B which is not packed for each task.
        let few_rows = layout.computed_run > 0
            && (layout.mode_b == ModeB::Direct || shared::packed_bytes(layout).is_some());
        let [panel_bytes, a_bytes] = match few_rows {
            true => [COMPUTED_PANEL_BYTES, COMPUTED_BLOCK_BYTES],
            false => [PANEL_BYTES, A_BLOCK_BYTES],
        };
        // Of the widest panels, so that those of other orientations sum in the same order.
        let steps = panel_bytes * depth / (layout.tile.vectors * layout.tile.lanes * bytes);
        // Matrix registers hold so many steps.
        let whole = layout.tile.ops < 1.0 && k.is_multiple_of(REGISTER_STEPS);
        let unit = if whole { REGISTER_STEPS } else { layout.computed_run.max(1) };
        let k_blocks = match base {
            Some(base) => base.k_blocks.clone(),
            None => cut_k(k, steps, layout.k_alignment(), unit),
        };
        let k_longest = k_blocks.iter().map(|b| b.1).max().unwrap_or(0);
        let (group, strip) = if layout.direct_c {
            (1, usize::MAX)
        } else {
            let widest = vectors * layout.tile.lanes;
            let group = FINISHED_COLUMNS.div_ceil(widest).min(layout.panels.len()).max(1);
            let columns = group * widest;
            (group, (FINISHED_BYTES / (columns * bytes * layout.tile.rows)).max(1))
        };
        let mut best = Blocking {
            k_blocks,
            m_parts: 1,
            n_parts: 1,
            k_parts: 1,
            threads: 1,
            grain: 1,
            shared: false,
            prepacked: false,
            group,
            strip,
            cycles: f64::INFINITY,
        };
        if let Some(base) = base {
            (best.k_parts, best.shared, best.prepacked) = (base.k_parts, true, true);
        }
        let rows_most = (a_bytes * depth / (k_longest.max(1) * bytes)).max(layout.tile.rows);
        let tiles = m.div_ceil(layout.tile.rows).max(1);
        for m_parts in candidates(m.div_ceil(rows_most).max(1), tiles, threads) {
            let cut = Blocking { m_parts, n_parts: 1, ..best.clone() };
            let least = cut.region_bytes(layout).div_ceil(REGION_BYTES);
            let panels = layout.panels.len().max(1);
            for n_parts in candidates(least.clamp(1, panels), panels, threads) {
                let shared = base.is_some();
                let cut = Blocking { m_parts, n_parts, shared, ..best.clone() };
                best.improve(&cut, layout, batches, threads);
                if !shared && shared::packed_bytes(layout).is_some() {
                    best.improve(&Blocking { shared: true, ..cut }, layout, batches, threads);
                }
            }
        }
        best
    }

    /// Takes over `cut`, with or without a split of k, if it is cheaper.
    fn improve(&mut self, cut: &Blocking, layout: &Layout, batches: usize, threads: usize) {
        let bytes = layout.bytes;
        let tasks = batches * cut.m_parts * cut.n_parts;
        let [_, m, _, _] = layout.sizes();
        let columns = layout.panels.last().map_or(0, |p| p.vector0 + p.vectors) * layout.tile.lanes;
        let most = if tasks >= 2 * threads { 1 } else { 2 * threads };
        let parts = match cut.prepacked {
            true => cut.k_parts..=cut.k_parts,
            false => 1..=most.min(cut.k_blocks.len()),
        };
        for k_parts in parts {
            let partial = batches.saturating_mul(m).saturating_mul(columns * k_parts * bytes);
            if k_parts > 1 && partial > PARTIAL_BYTES {
                break;
            }
            let mut cut = Blocking { k_parts, ..cut.clone() };
            let task = cut.task_cycles(layout);
            let tasks = tasks * k_parts;
            let each = PARTIAL_CYCLES[usize::from(partial > PARTIAL_L2_BYTES)];
            let reduce = if k_parts > 1 { (partial / bytes) as f64 * each + 2000.0 } else { 0.0 };
            let serial = tasks as f64 * task + reduce;
            cut.threads = if serial < SERIAL_CYCLES { 1 } else { threads.min(tasks.max(1)) };
            let parallel = cut.threads as f64;
            let packs = cut.shared && !cut.prepacked;
            let before = if packs { cut.pack_cycles(layout) / parallel } else { 0.0 };
            let rounds = tasks.div_ceil(cut.threads) as f64;
            let jobs = if packs { 2.0 } else { 1.0 };
            let start = if cut.threads > 1 { jobs * DISPATCH_CYCLES } else { 0.0 };
            let wait = if cut.threads > 1 { task * WAIT } else { 0.0 };
            cut.cycles = before + rounds * task + reduce / parallel + start + wait;
            let chunk = (CHUNK_CYCLES / task.max(1.0)) as usize;
            cut.grain = chunk.clamp(1, (tasks / (4 * cut.threads)).max(1));
            if cut.cycles < self.cycles {
                *self = cut;
            }
        }
    }

    /// Cycles of one task.
    fn task_cycles(&self, layout: &Layout) -> f64 {
        let [_, m, _, k] = layout.sizes();
        let rows = m.div_ceil(self.m_parts);
        let all_vectors = layout.panels.last().map_or(0, |p| p.vector0 + p.vectors);
        let panels = layout.panels.len().div_ceil(self.n_parts);
        let vectors = (all_vectors as f64 / self.n_parts as f64).ceil();
        let (rows_f, k_f) = (rows as f64, k as f64 / (self.k_parts * layout.tile.depth) as f64);
        let tiles = rows.div_ceil(layout.tile.rows).max(1);
        let height = rows_f / tiles as f64;
        let width = vectors / panels.max(1) as f64;
        // Two multiply-adds per cycle, if there are 8 chains to hide the latency of 4; two loads.
        let ops = layout.tile.ops;
        let busy = match ops < 1.0 {
            // Matrix registers are loaded beside.
            true => (height * width * ops / 2.0).max(2.0) + 1.0,
            false => (height * width * ops / 2.0).max((height + width) / 2.0).max(4.0),
        };
        let steps = k_f / layout.tile.group as f64;
        let ends = match layout.tile.bytes {
            true if ops < 1.0 => REGISTERS_END_CYCLES,
            true => BYTES_END_CYCLES,
            false => END_CYCLES,
        };
        let multiply = (tiles * panels) as f64 * (busy * steps + ends * self.blocks_per_task());
        let pack_a = match layout.mode_a {
            ModeA::Direct | ModeA::Table => 0.05,
            _ if layout.computed_run > 0 => COMPUTED_CYCLES,
            _ if layout.tile.bytes => pack_bytes_of_a(layout),
            // The rows lie in different pages and come from L3; every part of n packs them again.
            ModeA::Rows if layout.k_a.step == 1 => 1.0,
            ModeA::Rows => 1.5,
            ModeA::Strips => 0.3,
        };
        let lanes = layout.tile.lanes as f64;
        let pack_b = if self.shared { SHARED_CYCLES } else { pack_b(layout) };
        let write = match (layout.direct_c, layout.turned) {
            (true, _) => 1.0,
            (false, true) => 8.0,
            (false, false) if layout.n_c.step == 1 => 3.0,
            (false, false) => 2.0 * lanes,
        };
        let write = write + self.blocks_per_task() - 1.0;
        multiply
            + rows_f * k_f * pack_a
            + vectors * k_f * pack_b
            + rows_f * vectors * write
            + TASK_CYCLES
    }

    /// Cycles to pack all of B.
    fn pack_cycles(&self, layout: &Layout) -> f64 {
        let [_, _, _, k] = layout.sizes();
        let vectors = layout.panels.last().map_or(0, |p| p.vector0 + p.vectors);
        vectors as f64 * k as f64 / layout.tile.depth as f64 * pack_b(layout)
    }

    fn blocks_per_task(&self) -> f64 {
        self.k_blocks.len() as f64 / self.k_parts as f64
    }

    /// Bytes of the accumulators a task keeps between blocks of k.
    fn region_bytes(&self, layout: &Layout) -> usize {
        let [_, m, n, _] = layout.sizes();
        if layout.direct_c || self.k_blocks.len() == 1 {
            return 0;
        }
        m.div_ceil(self.m_parts) * n.div_ceil(self.n_parts) * layout.bytes
    }

    /// Estimated nanoseconds from call to return.
    pub(super) fn ns(&self) -> f64 {
        self.cycles * NS_PER_CYCLE
    }

    /// Number of tasks per batch entry.
    pub(super) fn parts(&self) -> usize {
        self.m_parts * self.n_parts * self.k_parts
    }
}

/// Cycles to pack one number of a row of A, where bytes are multiplied.
fn pack_bytes_of_a(layout: &Layout) -> f64 {
    let (k, depth) = (&layout.k_a, layout.tile.depth as f64);
    let (adjacent, run) = (k.step == 1, k.run as f64);
    match layout.mode_a {
        ModeA::Strips if adjacent && run >= depth => 3.0,
        ModeA::Strips if layout.m_a.step == 1 => 2.0,
        ModeA::Strips => 5.0 * depth,
        _ if adjacent && run >= ROW as f64 => 0.6 + depth * 20.0 / run,
        _ => depth * (1.7 + 10.0 / run),
    }
}

/// Cycles to pack one vector of B for one step, or what a number holds.
fn pack_b(layout: &Layout) -> f64 {
    let vectors = layout.panels.last().map_or(1, |p| p.vector0 + p.vectors);
    if layout.tile.bytes {
        let run = layout.k_b.run as f64;
        let gather = 12.0 * layout.tile.lanes as f64;
        return match layout.mode_b {
            ModeB::Direct | ModeB::Runs => {
                let pieces = layout.pieces.len() as f64 / vectors as f64;
                let apart = if layout.n_b.step == 1 { 0.0 } else { 7.0 };
                2.0 + pieces * (4.0 + apart)
            }
            // Runs have a rest, too.
            ModeB::Transposed => 7.0 + gather * (layout.tile.depth as f64 * 2.0 / run).min(1.0),
            ModeB::Scattered => gather,
        };
    }
    match layout.mode_b {
        ModeB::Direct => 0.5,
        ModeB::Runs if layout.pieces.len() as f64 <= 1.1 * vectors as f64 => {
            // Each step lies in another page, which the processor fetches nothing of ahead.
            if layout.k_b.step.unsigned_abs() >= PAGE { 6.0 } else { 2.5 }
        }
        ModeB::Runs => 8.0,
        ModeB::Transposed => 6.0,
        ModeB::Scattered => 1.5 * layout.tile.lanes as f64,
    }
}

/// Part `i` of `parts` of `0..n`, in multiples of `unit`; sizes differ by at most one unit.
pub(super) fn part(n: usize, unit: usize, i: usize, parts: usize) -> Range<usize> {
    let units = n.div_ceil(unit);
    let at = |i: usize| (units * i / parts * unit).min(n);
    at(i)..at(i + 1)
}

/// Numbers of parts worth trying, from `least` to `most`.
fn candidates(least: usize, most: usize, threads: usize) -> impl Iterator<Item = usize> + Clone {
    const FACTORS: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
    let last = if threads == 1 { 1 } else { 4 * threads };
    FACTORS
        .into_iter()
        .take_while(move |&f| f <= last)
        .map(move |f| least.saturating_mul(f).min(most))
        .scan(0, |before, parts| (parts > *before).then(|| *before = parts).map(|()| parts))
}

/// Cuts `0..k` into even blocks of about `most` steps, none across a multiple of `run`; each consists
/// of whole units or lies in one, where units divide the runs.
fn cut_k(k: usize, most: usize, run: usize, unit: usize) -> Vec<(usize, usize)> {
    if unit > most.max(WHOLE_RUN) {
        return cut_k(k, most, unit, 1);
    }
    if unit > 1 {
        let cuts = cut_k(k / unit, (most / unit).max(1), run / unit, 1);
        return cuts.into_iter().map(|(start, len)| (start * unit, len * unit)).collect();
    }
    if k == 0 {
        return vec![(0, 0)];
    }
    let run = run.min(k);
    // A remainder of less than half a block is not worth another pass over C.
    let blocks = ((run + most / 2) / most).max(1);
    let mut cuts = Vec::with_capacity(k / run * blocks);
    for start in (0..k).step_by(run) {
        for i in 0..blocks {
            let block = part(run, 1, i, blocks);
            cuts.push((start + block.start, block.len()));
        }
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_cover_k_and_respect_runs() {
        let cases = [(0, 8, 1), (1, 8, 1), (100, 8, 100), (96, 8, 24), (1000, 384, 1000)];
        for (k, most, run) in cases {
            let cuts = cut_k(k, most, run, 1);
            let mut at = 0;
            for (start, len) in cuts {
                assert_eq!(start, at);
                assert!(
                    len <= most + most / 2 && (k == 0 || start / run == (start + len - 1) / run)
                );
                at += len;
            }
            assert_eq!(at, k);
        }
    }

    #[test]
    fn cuts_are_whole_units_or_inside_of_one() {
        let long = 2 * WHOLE_RUN;
        let cases = [(96, 20, 96, 8), (96, 20, 48, 12), (100, 20, 100, 50), (0, 8, 1, 1)];
        for (k, most, run, unit) in cases.into_iter().chain([(3 * long, 20, 3 * long, long)]) {
            let mut at = 0;
            for (start, len) in cut_k(k, most, run, unit) {
                let whole = start % unit == 0 && len % unit == 0;
                let inside = unit > WHOLE_RUN && start / unit == (start + len - 1) / unit;
                assert!(whole || inside, "{start} {len}");
                assert!(start == at && len <= (most + most / 2).max(WHOLE_RUN), "{start} {len}");
                at += len;
            }
            assert_eq!(at, k);
        }
    }

    #[test]
    fn parts_cover_in_units() {
        for (n, unit, parts) in [(0, 8, 1), (7, 8, 3), (100, 8, 4), (64, 1, 5)] {
            let mut at = 0;
            for i in 0..parts {
                let p = part(n, unit, i, parts);
                assert!(p.start == at && (p.end.is_multiple_of(unit) || p.end == n));
                at = p.end;
            }
            assert_eq!(at, n);
        }
    }

    #[test]
    fn candidates_are_increasing_and_bounded() {
        let all: Vec<_> = candidates(2, 9, 8).collect();
        assert_eq!(all, [2, 4, 6, 8, 9]);
        assert_eq!(candidates(1, 1, 8).collect::<Vec<_>>(), [1]);
        assert_eq!(candidates(3, 100, 1).collect::<Vec<_>>(), [3]);
    }
}
