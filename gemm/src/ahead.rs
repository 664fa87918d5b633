//! What is fetched into the caches while tiles are computed.
//!
//! The hardware fetches ahead of what it sees advance by small steps. It does not foresee the rows
//! of the next panel of B, pages apart, the jumps of a table, or the operands of the next batch
//! entry; left alone, they would arrive one memory latency at a time. The tile kernels therefore
//! fetch a few cache lines per row of theirs, spread over their loop: there are about a dozen miss
//! buffers, and the operands being computed on need them too. Everything here is a hint: a wrong
//! address costs time, never a fault.

use super::kernels::Real32Or64;
use super::layout::{Layout, ModeA, ModeB, Reach};
use super::offsets::Offsets;
use super::run::{Run, Step, Target, Task, typed_offset};
use super::spec::DType;
use std::ops::Range;

/// The most elements of an operand fetched ahead as runs, a share of L2.
const SPAN_ELEMENTS: isize = 128 << 10;

/// The most cache lines of A fetched ahead by its rows with one tile.
const LINES_MOST: usize = 12;

/// All that is fetched during a block of k, in order of need.
pub(super) struct Ahead<T> {
    /// Next row of the panel of B packed next, and elements to the one after.
    pub(super) panel: Option<(*const T, isize)>,
    /// How many of its rows to fetch with a tile, if more than rows of the tile.
    pub(super) panel_rows: usize,
    /// Runs of C, B and A.
    spans: [Span<T>; 3],
    /// Rows of A.
    pub(super) lines: Lines,
    /// Where to point when there is nothing to fetch: an address that is mapped.
    idle: *const T,
}

/// So many runs of adjacent elements.
#[derive(Clone, Copy)]
struct Span<T> {
    next: *const T,
    /// Elements of a run, and how many of this one are done.
    run: isize,
    done: isize,
    /// Runs left, this one included, and elements between their starts.
    runs: usize,
    jump: isize,
}

impl<T> Span<T> {
    const NOTHING: Span<T> = Span { next: std::ptr::null(), run: 0, done: 0, runs: 0, jump: 0 };

    /// What `reach` covers around every offset from `low` to `high`, if it is not too much.
    fn new(base: *const T, reach: Reach, (low, high): (isize, isize)) -> Span<T> {
        let Reach { mut count, stride, .. } = reach;
        let mut run = high - low + reach.high - reach.low + 1;
        let mut start = low + reach.low;
        if stride.abs() <= run {
            // The runs overlap or touch: they are one.
            let rest = stride * (count as isize - 1).max(0);
            start += rest.min(0);
            run += rest.abs();
            count = 1;
        }
        if count as isize * run > SPAN_ELEMENTS {
            return Span::NOTHING;
        }
        Span { next: base.wrapping_offset(start), run, done: 0, runs: count, jump: stride }
    }

    fn advance(&mut self, elements: isize) {
        self.next = self.next.wrapping_offset(elements);
        self.done += elements;
        if self.done >= self.run {
            self.next = self.next.wrapping_offset(self.jump - self.done);
            self.runs -= 1;
            self.done = 0;
        }
    }
}

impl<T> Ahead<T> {
    /// Where a kernel of so many rows and columns begins to fetch, its step from row to row of
    /// that, and how many.
    #[inline]
    pub(super) fn advance(&mut self, rows: usize, width: usize) -> (*const T, isize, usize) {
        if let Some((next, step)) = &mut self.panel {
            let (at, fetches) = (*next, rows.max(self.panel_rows));
            *next = at.wrapping_offset(fetches as isize * *step);
            return (at, *step, fetches);
        }
        let Some(span) = self.spans.iter_mut().find(|s| s.runs > 0) else {
            return (self.idle, 0, rows);
        };
        let at = span.next;
        span.advance((rows * width) as isize);
        (at, width as isize, rows)
    }
}

/// Cache lines of rows of A, some fetched with every tile.
pub(super) struct Lines {
    /// First element of the first step in row 0.
    base: *const u8,
    /// Rows left.
    rows: Range<usize>,
    /// Bytes of the first of them already fetched.
    at: usize,
    /// Bytes of a row.
    bytes: usize,
    per_tile: usize,
}

impl Lines {
    const NOTHING: Lines =
        Lines { base: std::ptr::null(), rows: 0..0, at: 0, bytes: 0, per_tile: 0 };

    /// Fetches the share of one tile.
    #[inline]
    pub(super) fn fetch(&mut self, layout: &Layout, dtype: DType) {
        for _ in 0..self.per_tile {
            if self.at >= self.bytes {
                self.at = 0;
                self.rows.start += 1;
            }
            if self.rows.is_empty() {
                self.per_tile = 0;
                return;
            }
            let row = typed_offset(self.base, dtype, layout.m_a.at(self.rows.start));
            prefetch_l2(row.wrapping_add(self.at));
            self.at += 64;
        }
    }
}

/// Asks for the cache line at `p`, which need not be a valid address, in L2.
#[inline(always)]
pub(super) fn prefetch_l2(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast());
    }
    #[cfg(target_arch = "aarch64")]
    super::simd::neon::prefetch_l2(p);
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// The least and the greatest offset in a range of indices, which is not empty.
fn extremes(offsets: &Offsets, range: Range<usize>) -> (isize, isize) {
    if offsets.is_uniform() {
        let ends = [offsets.at(range.start), offsets.at(range.end - 1)];
        return (ends[0].min(ends[1]), ends[0].max(ends[1]));
    }
    let all = offsets.table(range.start)[..range.len()].iter();
    all.fold((isize::MAX, isize::MIN), |(low, high), &o| (low.min(o), high.max(o)))
}

impl<T: Real32Or64> Run<'_, T> {
    /// What to fetch during a block of k; `next` is the task this thread executes afterwards.
    pub(super) fn ahead(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Ahead<T> {
        let a = self.span_a(s, block, next);
        let lines = if a.runs == 0 { self.lines_a(s, block, next) } else { Lines::NOTHING };
        let spans = [self.span_c(s), self.span_b(s, block, next), a];
        Ahead { panel: None, panel_rows: 0, spans, lines, idle: self.operands.a.cast() }
    }

    /// Has all of a packed panel fetched while the first tiles are computed that another is used for:
    /// of a copy that is larger than the caches, each panel comes from memory.
    pub(super) fn fetch_panel(
        &self,
        s: &Step<'_, T>,
        panel: usize,
        tiles: Range<usize>,
        ahead: &mut Ahead<T>,
    ) {
        let again = tiles.start > 0;
        ahead.panel = if again { None } else { self.next_panel(s, s.block, panel) };
        ahead.panel_rows = s.steps.div_ceil(tiles.len()).min(s.steps / 4);
    }

    /// The rows of the panel needed after this group: of the copy, or of B if it is packed from rows.
    pub(super) fn next_panel(
        &self,
        s: &Step<'_, T>,
        block: usize,
        next: usize,
    ) -> Option<(*const T, isize)> {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let (panel, (k0, k)) = match next < s.task.panels.end {
            true => (next, (s.k0, s.k)),
            false if block + 1 < s.task.blocks.end => {
                (s.task.panels.start, blocking.k_blocks[block + 1])
            }
            false => return None,
        };
        if blocking.shared {
            let width = layout.panels[panel].vectors * layout.tile.lanes;
            let at = self.shared_panel(s.packed, (k0, k), panel);
            return Some((at.cast_const(), width as isize));
        }
        let rows = layout.mode_b == ModeB::Runs
            && layout.panels[panel].contiguous_b
            && self.plan.dtypes[1].size() == size_of::<T>()
            && layout.k_b.left_in_run(k0) >= k;
        rows.then(|| {
            let offset = layout.k_b.at(k0) + layout.n_b.at(layout.panels[panel].n0);
            let offset = offset + layout.batch_b.at(s.task.batch);
            (self.operands.b.cast::<T>().wrapping_offset(offset), layout.k_b.step)
        })
    }

    /// The part of C that the finished blocks of this task are written to, if they are transposed:
    /// its rows are then written far from where the tiles were.
    fn span_c(&self, s: &Step<'_, T>) -> Span<T> {
        let layout = &self.plan.layout;
        let written = layout.turned
            && self.fused.epilogue.is_none()
            && self.plan.dtypes[2].size() == size_of::<T>()
            && layout.n_c.is_uniform()
            && matches!(s.target, Target::FinishStrip { .. });
        if !written {
            return Span::NOTHING;
        }
        let (first, last) = (s.task.panels.start, s.task.panels.end - 1);
        let (first, last) = (&layout.panels[first], &layout.panels[last]);
        let count = last.n0 + last.width - first.n0;
        let reach = Reach { count, stride: layout.n_c.step, low: 0, high: 0 };
        let offset = layout.batch_c.at(s.task.batch) + layout.n_c.at(first.n0);
        let base = self.operands.c.cast::<T>().wrapping_offset(offset);
        Span::new(base, reach, extremes(&layout.m_c, s.task.rows.clone()))
    }

    /// B of the next batch entry.
    fn span_b(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Span<T> {
        let layout = &self.plan.layout;
        let last = block + 1 == s.task.blocks.end && self.plan.blocking.n_parts == 1;
        match next {
            Some(next) if last && next.batch != s.task.batch => {
                let offset = layout.batch_b.at(next.batch);
                let base = self.operands.b.cast::<T>().wrapping_offset(offset);
                let Reach { count, stride, low, high } = layout.reach_k_b;
                let all = extremes(&layout.n_b, 0..layout.n_b.len);
                Span::new(base, Reach { count, stride, low, high }, all)
            }
            _ => Span::NOTHING,
        }
    }

    /// A of the next block of k, or of the next task.
    fn span_a(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Span<T> {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        if matches!(layout.mode_a, ModeA::Rows | ModeA::Strips) {
            return Span::NOTHING;
        }
        let (batch, extremes, reach) = match next {
            _ if block + 1 < s.task.blocks.end => {
                let (k0, k) = blocking.k_blocks[block + 1];
                (s.task.batch, extremes(&layout.k_a, k0..k0 + k), layout.reach_m_a)
            }
            Some(next) if (next.batch, &next.rows) != (s.task.batch, &s.task.rows) => {
                (next.batch, extremes(&layout.m_a, next.rows.clone()), layout.reach_k_a)
            }
            _ => return Span::NOTHING,
        };
        let base = self.operands.a.cast::<T>().wrapping_offset(layout.batch_a.at(batch));
        Span::new(base, reach, extremes)
    }

    /// The rows of A of the next block of k, or of the next task, where they are contiguous along
    /// k.
    fn lines_a(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Lines {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let (rows, block) = match next {
            _ if block + 1 < s.task.blocks.end => (s.task.rows.clone(), block + 1),
            Some(next) if next.batch == s.task.batch => (next.rows.clone(), next.blocks.start),
            _ => return Lines::NOTHING,
        };
        let (k0, k) = blocking.k_blocks[block];
        let here = rows == s.task.rows && k0 == s.k0;
        if here || layout.computed_run > 0 || layout.k_a.step != 1 || layout.mode_a == ModeA::Table
        {
            return Lines::NOTHING;
        }
        let dtype = self.plan.dtypes[0];
        let offset = layout.batch_a.at(s.task.batch) + layout.k_a.at(k0);
        let bytes = k * dtype.size();
        let calls = s.n_tiles * s.task.panels.len();
        Lines {
            base: typed_offset(self.operands.a, dtype, offset),
            rows: rows.clone(),
            at: 0,
            bytes,
            per_tile: (rows.len() * bytes.div_ceil(64)).div_ceil(calls).min(LINES_MOST),
        }
    }
}
