//! Execution of a plan: tasks over the pool, blocks within a task, tiles within a block.
//!
//! The loops of a task, outermost first: blocks of k; groups of panels, packed here; strips of
//! tiles; panels of the group; tiles. A panel thus meets all rows of the task while it is in L1 or
//! L2, and a finished strip by group of accumulators is handed on while it is in L2. Buffers belong
//! to the executing thread and stay with it, so a call allocates nothing after the first.

use super::blocking::part;
use super::kernels::{Kernels, Moves, Real32Or64};
use super::layout::{ModeA, ModeB, PanelShape};
use super::pack::{Panel, Rows};
use super::plan::{Epilogue, Plan, Tile};
use super::spec::ContractError;
use super::store::{Store, Turn};
use super::tile::{MAX_ROWS, TileArgs, Variant};
use crate::memory::{Block, OutOfMemory};
use crate::pool::Pool;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Elements added to the rows of a packed block of A, so that rows do not share a cache set, and
/// that packing may write a vector too much.
const ROW_PADDING: usize = 16;

/// The most elements of A fetched ahead for a table, a share of L2.
const FETCH_ELEMENTS: isize = 128 << 10;

/// The most cache lines of A fetched ahead with one tile.
const FETCH_MOST: usize = 12;

thread_local! {
    /// Packing buffers of this thread, kept between calls.
    static BUFFERS: Cell<Option<Block>> = const { Cell::new(None) };
    /// What of B the packing buffer holds: successive tasks may need the same.
    static PACKED: Cell<Packed> = const { Cell::new(Packed(0, 0, 0, 0)) };
    /// Partial results of a split along k, kept between calls by the calling thread.
    static PARTIALS: Cell<Option<Block>> = const { Cell::new(None) };
}

/// Runs `f` on a buffer of at least `bytes` bytes that stays with the thread.
///
/// A nested call finds the place empty and allocates its own.
fn with_buffer<R>(
    place: &'static std::thread::LocalKey<Cell<Option<Block>>>,
    bytes: usize,
    f: impl FnOnce(*mut u8) -> R,
) -> Result<R, OutOfMemory> {
    let block = match place.take() {
        Some(block) if block.len() >= bytes => block,
        _ => Block::new(bytes)?,
    };
    let result = f(block.as_ptr());
    place.set(Some(block));
    Ok(result)
}

/// The addresses of the elements at offset zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operands {
    pub(super) a: *const u8,
    pub(super) b: *const u8,
    pub(super) c: *mut u8,
}

/// One execution of a plan.
pub(super) struct Run<'a, T: 'static> {
    plan: &'a Plan,
    kernels: &'static Kernels<T>,
    moves_a: &'static Moves<T>,
    moves_b: &'static Moves<T>,
    operands: Operands,
    accumulate: bool,
    epilogue: Option<&'a Epilogue<'a>>,
    failed: OnceLock<OutOfMemory>,
    /// Different for every execution in this process.
    id: u64,
}

/// Numbers executions.
static EXECUTIONS: AtomicU64 = AtomicU64::new(1);

/// Which group of panels a buffer of a thread holds: execution, batch entry, block of k, panel.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed(u64, usize, usize, usize);

// SAFETY: the pointers are those of `Plan::run`, whose caller vouches for them on all threads;
// tasks write disjoint parts of C.
unsafe impl<T> Sync for Run<'_, T> {}

/// Where the tiles of a task go.
#[derive(Clone, Copy)]
enum Target<T> {
    /// To C itself.
    C { base: *mut T },
    /// To accumulators of which `row0` and `column0` come first, handed on when complete.
    Finish { base: *mut T, row_stride: usize, row0: usize, column0: usize },
    /// To a small block of accumulators, handed on at the end of each strip.
    FinishStrip { base: *mut T, row_stride: usize },
    /// To accumulators of the whole result of a batch entry, reduced later.
    Partial { base: *mut T, row_stride: usize },
}

/// What one task computes.
#[derive(Clone)]
struct Task {
    batch: usize,
    rows: Range<usize>,
    panels: Range<usize>,
    blocks: Range<usize>,
}

/// The packing buffers of one thread, in accumulators.
struct Buffers<T> {
    a: *mut T,
    b: *mut T,
    region: *mut T,
    turned: *mut T,
}

impl<'a, T: Real32Or64> Run<'a, T> {
    /// Prepares an execution; the element types were checked when the plan was made.
    pub(super) fn new(
        plan: &'a Plan,
        operands: Operands,
        accumulate: bool,
        epilogue: Option<&'a Epilogue<'a>>,
    ) -> Run<'a, T> {
        let kernels = T::kernels(plan.isa);
        let Operands { a, b, c } = operands;
        let operands = Operands {
            a: typed_offset(a, plan.dtypes[0], plan.layout.origin_a),
            b: typed_offset(b, plan.dtypes[1], plan.layout.origin_b),
            c,
        };
        let moves = |dtype| kernels.moves(dtype).expect("invariant: Spec::check admits the types");
        Run {
            plan,
            kernels,
            moves_a: moves(plan.dtypes[0]),
            moves_b: moves(plan.dtypes[1]),
            operands,
            accumulate,
            epilogue,
            failed: OnceLock::new(),
            id: EXECUTIONS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Computes everything.
    ///
    /// # Safety
    /// See [`Plan::run`].
    pub(super) unsafe fn execute(&self, pool: &Pool) -> Result<(), ContractError> {
        let blocking = &self.plan.blocking;
        // SAFETY: the caller's contract.
        unsafe {
            if blocking.k_parts == 1 {
                self.for_each_task(pool, std::ptr::null_mut());
            } else {
                let (_, _, bytes) = self.partial_shape();
                with_buffer(&PARTIALS, bytes, |partials| {
                    self.for_each_task(pool, partials.cast());
                    if self.failed.get().is_none() {
                        self.reduce(pool, partials.cast());
                    }
                })?;
            }
        }
        match self.failed.get() {
            Some(&error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Row stride and size in accumulators of one partial result, and bytes of all of them.
    fn partial_shape(&self) -> (usize, usize, usize) {
        let [batches, m, _, _] = self.plan.layout.sizes();
        let stride = self.padded_columns(0..self.plan.layout.panels.len());
        let size = batches * m * stride;
        (stride, size, size * self.plan.blocking.k_parts * size_of::<T>())
    }

    unsafe fn for_each_task(&self, pool: &Pool, partials: *mut T) {
        let blocking = &self.plan.blocking;
        let [batches, ..] = self.plan.layout.sizes();
        let tasks = batches * blocking.parts();
        let partials = Shared(partials);
        let chunk = |range: Range<usize>| {
            let result = with_buffer(&BUFFERS, self.buffer_bytes(), |buffer| {
                for i in range.clone() {
                    let next = (i + 1 < range.end).then(|| self.locate(i + 1).0);
                    // SAFETY: the caller's contract; the buffer is this thread's own.
                    unsafe { self.task(i, next, buffer, partials.get()) };
                }
            });
            if let Err(error) = result {
                let _ = self.failed.set(error);
            }
        };
        if blocking.threads == 1 {
            chunk(0..tasks);
        } else {
            pool.run(tasks, blocking.grain, &chunk);
        }
    }

    /// Bytes of packing buffers a thread needs.
    fn buffer_bytes(&self) -> usize {
        self.plan.buffer_sizes.iter().sum::<usize>() * size_of::<T>()
    }

    /// The buffers in the block of a thread.
    fn buffers(&self, block: *mut u8) -> Buffers<T> {
        let [a, b, region, _] = self.plan.buffer_sizes;
        let base = block.cast::<T>();
        Buffers {
            a: base,
            b: base.wrapping_add(a),
            region: base.wrapping_add(a + b),
            turned: base.wrapping_add(a + b + region),
        }
    }

    /// Columns of these panels, the last rounded up to whole vectors.
    fn padded_columns(&self, panels: Range<usize>) -> usize {
        let shapes = &self.plan.layout.panels[panels];
        shapes.iter().map(|p| p.vectors).sum::<usize>() * self.kernels.lanes
    }

    /// What task number `i` computes, and its part of k.
    fn locate(&self, i: usize) -> (Task, usize) {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let [_, m, ..] = layout.sizes();
        let (i, k_part) = (i / blocking.k_parts, i % blocking.k_parts);
        let (i, n_part) = (i / blocking.n_parts, i % blocking.n_parts);
        let (batch, m_part) = (i / blocking.m_parts, i % blocking.m_parts);
        let task = Task {
            batch,
            rows: part(m, layout.tile.rows, m_part, blocking.m_parts),
            panels: part(layout.panels.len(), 1, n_part, blocking.n_parts),
            blocks: part(blocking.k_blocks.len(), 1, k_part, blocking.k_parts),
        };
        (task, k_part)
    }

    /// Computes task number `i`; `next` is what this thread computes after it.
    unsafe fn task(&self, i: usize, next: Option<Task>, buffer: *mut u8, partials: *mut T) {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let [_, m, ..] = layout.sizes();
        let (task, k_part) = self.locate(i);
        let batch = task.batch;
        let buffers = self.buffers(buffer);
        let target = if blocking.k_parts > 1 {
            let (row_stride, size, _) = self.partial_shape();
            let base = partials.wrapping_add(k_part * size + batch * m * row_stride);
            Target::Partial { base, row_stride }
        } else if layout.direct_c {
            let offset = layout.batch_c.at(batch);
            Target::C { base: self.operands.c.cast::<T>().wrapping_offset(offset) }
        } else if task.blocks.len() == 1 {
            let row_stride = blocking.group * layout.tile.vectors * layout.tile.lanes;
            Target::FinishStrip { base: buffers.region, row_stride }
        } else {
            let row_stride = self.padded_columns(task.panels.clone());
            let column0 = layout.panels[task.panels.start].n0;
            Target::Finish { base: buffers.region, row_stride, row0: task.rows.start, column0 }
        };
        // SAFETY: the caller's contract.
        unsafe { self.blocks(&task, next.as_ref(), &buffers, target) };
    }

    /// The loops over blocks of k, groups of panels, strips, panels and tiles.
    unsafe fn blocks(
        &self,
        task: &Task,
        next: Option<&Task>,
        buffers: &Buffers<T>,
        target: Target<T>,
    ) {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let n_tiles = task.rows.len().div_ceil(layout.tile.rows);
        for block in task.blocks.clone() {
            let (k0, k) = blocking.k_blocks[block];
            let accumulate = match target {
                Target::C { .. } => self.accumulate || block > task.blocks.start,
                _ => block > task.blocks.start,
            };
            let last = block + 1 == task.blocks.end;
            let step = Step { task, buffers, target, k0, k, accumulate, n_tiles };
            // SAFETY: the caller's contract; buffers are large enough for any block of the plan.
            unsafe {
                self.pack_a(&step);
                let mut fetch = self.fetch_a(&step, block, next);
                let mut ahead_a = self.ahead_a(&step, block, next);
                for first in task.panels.clone().step_by(blocking.group) {
                    let group = first..(first + blocking.group).min(task.panels.end);
                    self.pack_group(&step, group.clone());
                    let mut ahead_b = self.ahead(&step, group.end);
                    let ahead = ahead_b.as_mut().unwrap_or(&mut ahead_a);
                    let mut tiles = 0..n_tiles.min(blocking.strip);
                    while !tiles.is_empty() {
                        self.strip(&step, group.clone(), tiles.clone(), ahead, &mut fetch);
                        if last {
                            self.finish(&step, group.clone(), tiles.clone());
                        }
                        tiles = tiles.end..n_tiles.min(tiles.end.saturating_add(blocking.strip));
                    }
                }
            }
        }
    }

    /// Packs the block of A, if it has to be.
    unsafe fn pack_a(&self, s: &Step<'_, T>) {
        let layout = &self.plan.layout;
        let src =
            typed_offset(self.operands.a, self.plan.dtypes[0], layout.batch_a.at(s.task.batch));
        let pack = match layout.mode_a {
            ModeA::Direct | ModeA::Table => return,
            ModeA::Rows => self.moves_a.rows,
            ModeA::Strips => self.moves_a.strips,
        };
        let rows = Rows {
            src,
            k_offsets: &layout.k_a,
            m_offsets: &layout.m_a,
            k0: s.k0,
            k: s.k,
            m0: s.task.rows.start,
            rows: s.task.rows.len(),
            dst: s.buffers.a,
            row_stride: s.k + ROW_PADDING,
            tiles: s.n_tiles,
        };
        // SAFETY: the block is inside A and the buffer holds it.
        unsafe { pack(&rows) };
    }

    /// Packs those panels of a group that are not read in place.
    unsafe fn pack_group(&self, s: &Step<'_, T>, group: Range<usize>) {
        let layout = &self.plan.layout;
        let packed = Packed(self.id, s.task.batch, s.k0, group.start);
        if PACKED.replace(packed) == packed {
            return;
        }
        let pack = match layout.mode_b {
            ModeB::Direct | ModeB::Runs => self.moves_b.panel_runs,
            ModeB::Transposed => self.moves_b.panel_transposed,
            ModeB::Scattered => self.moves_b.panel_scattered,
        };
        let src =
            typed_offset(self.operands.b, self.plan.dtypes[1], layout.batch_b.at(s.task.batch));
        for i in group.clone() {
            let shape = &layout.panels[i];
            if layout.reads_in_place(shape) {
                continue;
            }
            let starts = layout.piece_starts.get(shape.vector0..=shape.vector0 + shape.vectors);
            let panel = Panel {
                src,
                k_offsets: &layout.k_b,
                n_offsets: &layout.n_b,
                k0: s.k0,
                k: s.k,
                n0: shape.n0,
                width: shape.width,
                contiguous: shape.contiguous_b,
                pieces: &layout.pieces,
                piece_starts: starts.unwrap_or(&[]),
                vectors: shape.vectors,
                dst: s.panel_of(i - group.start, layout.tile.vectors * layout.tile.lanes),
            };
            // SAFETY: the panel is inside B and the buffer holds it.
            unsafe { pack(&panel) };
        }
    }

    /// What of A to fetch while this block is worked on: what is worked on next.
    fn fetch_a(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Fetch {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let (rows, block) = match next {
            _ if block + 1 < s.task.blocks.end => (s.task.rows.clone(), block + 1),
            Some(next) if next.batch == s.task.batch => (next.rows.clone(), next.blocks.start),
            _ => return Fetch::NOTHING,
        };
        let here = rows == s.task.rows && (s.k0, s.k) == blocking.k_blocks[block];
        if here || layout.k_a.step != 1 || layout.mode_a == ModeA::Table {
            return Fetch::NOTHING;
        }
        let (k0, k) = blocking.k_blocks[block];
        let dtype = self.plan.dtypes[0];
        let offset = layout.batch_a.at(s.task.batch) + layout.k_a.at(k0);
        let bytes = k * dtype.size();
        let calls = s.n_tiles * s.task.panels.len();
        Fetch {
            base: typed_offset(self.operands.a, dtype, offset),
            rows: rows.clone(),
            at: 0,
            bytes,
            per_tile: (rows.len() * bytes.div_ceil(64)).div_ceil(calls).min(FETCH_MOST),
        }
    }

    /// Fetches the share of one tile.
    #[inline]
    fn fetch(&self, fetch: &mut Fetch) {
        for _ in 0..fetch.per_tile {
            if fetch.at >= fetch.bytes {
                fetch.at = 0;
                fetch.rows.start += 1;
            }
            if fetch.rows.is_empty() {
                fetch.per_tile = 0;
                return;
            }
            let offset = self.plan.layout.m_a.at(fetch.rows.start);
            let row = typed_offset(fetch.base, self.plan.dtypes[0], offset);
            prefetch_l2(row.wrapping_add(fetch.at));
            fetch.at += 64;
        }
    }

    /// What to fetch while this group is worked on: the panel packed next.
    ///
    /// Its rows are too far apart for the hardware to foresee, and unfetched they would arrive one
    /// latency at a time. Panels packed from windows or columns are closer together.
    fn ahead(&self, s: &Step<'_, T>, next: usize) -> Option<Ahead<T>> {
        let layout = &self.plan.layout;
        let fetched = next < s.task.panels.end
            && layout.mode_b == ModeB::Runs
            && self.plan.dtypes[1].size() == size_of::<T>()
            && layout.k_b.left_in_run(s.k0) >= s.k;
        let b = self.operands.b.cast::<T>().wrapping_offset(layout.batch_b.at(s.task.batch));
        fetched.then(|| {
            let offset = layout.k_b.at(s.k0) + layout.n_b.at(layout.panels[next].n0);
            Ahead {
                next: b.wrapping_offset(offset),
                step: layout.k_b.step,
                run: 0,
                runs: 0,
                jump: 0,
                gone: 0,
            }
        })
    }

    /// What to fetch of an A that is read in place by a table: what the next block of k, or the next
    /// task, reads of it. The steps of a table are not foreseen by the hardware either.
    fn ahead_a(&self, s: &Step<'_, T>, block: usize, next: Option<&Task>) -> Ahead<T> {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let nothing = Ahead { next: s.buffers.b, step: 0, run: 0, runs: 0, jump: 0, gone: 0 };
        if layout.mode_a != ModeA::Table {
            return nothing;
        }
        let (range, offsets, reach) = match next {
            _ if block + 1 < s.task.blocks.end => {
                let (k0, k) = blocking.k_blocks[block + 1];
                (k0..k0 + k, &layout.k_a, layout.reach_m)
            }
            Some(next) if next.rows != s.task.rows && next.batch == s.task.batch => {
                (next.rows.clone(), &layout.m_a, layout.reach_k)
            }
            _ => return nothing,
        };
        let ends = range.clone().map(|i| offsets.at(i));
        let (low, high) = ends.fold((isize::MAX, isize::MIN), |(l, h), o| (l.min(o), h.max(o)));
        let run = high - low + reach.high - reach.low + 1;
        // Fetching must not cost more than it saves: not much is fetched that is not used.
        if reach.count as isize * run > FETCH_ELEMENTS {
            return nothing;
        }
        let start = layout.batch_a.at(s.task.batch) + low + reach.low;
        let a = self.operands.a.cast::<T>().wrapping_offset(start);
        Ahead { next: a, step: 0, run, runs: reach.count, jump: reach.stride, gone: 0 }
    }

    /// Computes the tiles of some rows in the panels of a group.
    unsafe fn strip(
        &self,
        s: &Step<'_, T>,
        group: Range<usize>,
        tiles: Range<usize>,
        ahead: &mut Ahead<T>,
        fetch: &mut Fetch,
    ) {
        let layout = &self.plan.layout;
        let lanes = layout.tile.lanes;
        let b = self.operands.b.cast::<T>().wrapping_offset(layout.batch_b.at(s.task.batch));
        for i in group.clone() {
            let shape = &layout.panels[i];
            let in_place = layout.reads_in_place(shape);
            let valid = shape.width - (shape.vectors - 1) * lanes;
            let mut args = TileArgs {
                k: s.k,
                a: [std::ptr::null(); MAX_ROWS],
                a_step: 1,
                a_table: layout.k_a.table(s.k0).as_ptr(),
                b: s.panel_of(i - group.start, layout.tile.vectors * lanes).cast_const(),
                b_step: (shape.vectors * lanes) as isize,
                c: [std::ptr::null_mut(); MAX_ROWS],
                last: if matches!(s.target, Target::C { .. }) { valid } else { lanes },
                accumulate: s.accumulate,
                ahead: ahead.next,
                ahead_step: ahead.step_for(shape.vectors * lanes),
            };
            let variant = match layout.mode_a {
                ModeA::Table => Variant::Table,
                _ if in_place && valid < lanes => Variant::Tail,
                _ => Variant::Plain,
            };
            if variant == Variant::Tail {
                args.last = valid;
            }
            if in_place {
                args.b = b.wrapping_offset(layout.k_b.at(s.k0) + layout.n_b.at(shape.n0));
                args.b_step = layout.k_b.step;
            }
            let first_row = s.tile_rows(tiles.start).start;
            for tile in tiles.clone() {
                let rows = s.tile_rows(tile);
                self.fetch(fetch);
                args.ahead = ahead.next;
                ahead.advance(rows.len() as isize * args.ahead_step);
                self.point_at_a(s, rows.clone(), &mut args);
                self.point_at_c(s, group.start, shape, first_row, rows.clone(), &mut args);
                let kernel = self.kernels.tile(rows.len(), shape.vectors, variant);
                // SAFETY: rows of A, panel of B and rows of C are inside the operands or buffers.
                unsafe { kernel(&args) };
            }
        }
    }

    /// Sets the rows of A of a tile.
    #[inline]
    fn point_at_a(&self, s: &Step<'_, T>, rows: Range<usize>, args: &mut TileArgs<T>) {
        let layout = &self.plan.layout;
        match layout.mode_a {
            ModeA::Direct | ModeA::Table => {
                // A table has the offset of the first step in it.
                let first = if layout.mode_a == ModeA::Table { 0 } else { layout.k_a.at(s.k0) };
                let offset = layout.batch_a.at(s.task.batch) + first;
                let base = self.operands.a.cast::<T>().wrapping_offset(offset);
                args.a_step = layout.k_a.step;
                for (row, a) in rows.zip(&mut args.a) {
                    *a = base.wrapping_offset(layout.m_a.at(row));
                }
            }
            ModeA::Rows => {
                let stride = s.k + ROW_PADDING;
                for (row, a) in rows.zip(&mut args.a) {
                    *a = s.buffers.a.wrapping_add((row - s.task.rows.start) * stride);
                }
            }
            ModeA::Strips => {
                let base = s.strip_of(rows.start);
                args.a_step = rows.len() as isize;
                for (i, (_, a)) in rows.zip(&mut args.a).enumerate() {
                    *a = base.wrapping_add(i);
                }
            }
        }
    }

    /// Sets the rows of C of a tile.
    #[inline]
    fn point_at_c(
        &self,
        s: &Step<'_, T>,
        group_start: usize,
        shape: &PanelShape,
        first_row: usize,
        rows: Range<usize>,
        args: &mut TileArgs<T>,
    ) {
        let layout = &self.plan.layout;
        let (base, row_stride, row0) = match s.target {
            Target::C { base } => {
                let base = base.wrapping_offset(layout.n_c.at(shape.n0));
                for (row, c) in rows.zip(&mut args.c) {
                    *c = base.wrapping_offset(layout.m_c.at(row));
                }
                return;
            }
            Target::Finish { base, row_stride, row0, column0 } => {
                (base.wrapping_add(shape.n0 - column0), row_stride, row0)
            }
            Target::FinishStrip { base, row_stride } => {
                let column0 = layout.panels[group_start].n0;
                (base.wrapping_add(shape.n0 - column0), row_stride, first_row)
            }
            Target::Partial { base, row_stride } => (base.wrapping_add(shape.n0), row_stride, 0),
        };
        for (row, c) in rows.zip(&mut args.c) {
            *c = base.wrapping_add((row - row0) * row_stride);
        }
    }

    /// Hands on the finished accumulators of some rows in the panels of a group.
    unsafe fn finish(&self, s: &Step<'_, T>, group: Range<usize>, tiles: Range<usize>) {
        let layout = &self.plan.layout;
        let m0 = s.tile_rows(tiles.start).start;
        let m_len = s.tile_rows(tiles.end - 1).end - m0;
        let (first, last) = (&layout.panels[group.start], &layout.panels[group.end - 1]);
        let (ptr, row_stride) = match s.target {
            Target::C { .. } | Target::Partial { .. } => return,
            Target::FinishStrip { base, row_stride } => (base, row_stride),
            Target::Finish { base, row_stride, row0, column0 } => {
                (base.wrapping_add((m0 - row0) * row_stride + first.n0 - column0), row_stride)
            }
        };
        let n_len = last.n0 + last.width - first.n0;
        let tile = Tile {
            batch: s.task.batch,
            m0,
            m_len,
            n0: first.n0,
            n_len,
            ptr: ptr.cast(),
            row_stride,
        };
        // SAFETY: the block is complete and this thread's own.
        unsafe { self.deliver(tile, s.buffers.turned) };
    }

    /// Hands on finished accumulators, transposed if the plan says so.
    unsafe fn deliver(&self, tile: Tile, buffer: *mut T) {
        if !self.plan.layout.turned {
            // SAFETY: the caller's contract.
            return unsafe { self.hand_on(tile) };
        }
        let row_stride = turned_stride(tile.m_len, self.kernels.lanes);
        let turn = Turn {
            src: tile.ptr.cast_const().cast::<T>(),
            src_stride: tile.row_stride,
            rows: tile.m_len,
            columns: tile.n_len,
            dst: buffer,
            dst_stride: row_stride,
        };
        let turned = Tile {
            batch: tile.batch,
            m0: tile.n0,
            m_len: tile.n_len,
            n0: tile.m0,
            n_len: tile.m_len,
            ptr: buffer.cast(),
            row_stride,
        };
        // SAFETY: the block is complete, and the buffer holds the largest of a plan.
        unsafe {
            (self.kernels.turn)(&turn);
            self.hand_on(turned);
        }
    }

    /// Gives finished accumulators to the epilogue, or writes them to C.
    unsafe fn hand_on(&self, tile: Tile) {
        let layout = &self.plan.layout;
        if let Some(epilogue) = self.epilogue {
            return match (layout.folded, layout.turned) {
                (0, _) => epilogue(tile),
                (per_batch, turned) => unfold(tile, per_batch, turned, size_of::<T>(), epilogue),
            };
        }
        let (m_offsets, n_offsets) = match layout.turned {
            false => (&layout.m_c, &layout.n_c),
            true => (&layout.n_c, &layout.m_c),
        };
        let offset = layout.batch_c.at(tile.batch);
        let store = Store {
            src: tile.ptr.cast_const().cast::<T>(),
            row_stride: tile.row_stride,
            dst: typed_offset(self.operands.c.cast_const(), self.plan.dtypes[2], offset).cast_mut(),
            m_offsets,
            n_offsets,
            m0: tile.m0,
            rows: tile.m_len,
            n0: tile.n0,
            columns: tile.n_len,
            accumulate: self.accumulate,
        };
        // SAFETY: the accumulators are complete; the block of C is written by this task only.
        unsafe { self.kernels.store(self.plan.dtypes[2])(&store) };
    }

    /// Adds up the partial results of a split along k, in a fixed order, and hands them on.
    unsafe fn reduce(&self, pool: &Pool, partials: *mut T) {
        let layout = &self.plan.layout;
        let [batches, m, n, _] = layout.sizes();
        let (row_stride, size, _) = self.partial_shape();
        let rows_per_task = (16384 / row_stride.max(1)).clamp(1, m);
        let parts = m.div_ceil(rows_per_task);
        let partials = Shared(partials);
        let turned = turned_size(layout.turned, rows_per_task, row_stride, self.kernels.lanes);
        let task = |range: Range<usize>, buffer: *mut u8| {
            for i in range {
                let (batch, m0) = (i / parts, i % parts * rows_per_task);
                let m_len = rows_per_task.min(m - m0);
                let start = (batch * m + m0) * row_stride;
                let sum = partials.get().wrapping_add(start);
                for k_part in 1..self.plan.blocking.k_parts {
                    let other = sum.wrapping_add(k_part * size);
                    for j in 0..m_len * row_stride {
                        // SAFETY: both are inside the partial results, in rows of this task only.
                        unsafe { *sum.wrapping_add(j) += *other.wrapping_add(j) };
                    }
                }
                let ptr = sum.cast();
                let tile = Tile { batch, m0, m_len, n0: 0, n_len: n, ptr, row_stride };
                // SAFETY: the rows are complete and of this task only.
                unsafe { self.deliver(tile, buffer.cast()) };
            }
        };
        pool.run(batches * parts, 1, &|range| {
            let done = with_buffer(&BUFFERS, turned * size_of::<T>(), |b| task(range, b));
            if let Err(error) = done {
                let _ = self.failed.set(error);
            }
        });
    }
}

/// What is fixed while one block of k is worked on.
struct Step<'a, T> {
    task: &'a Task,
    buffers: &'a Buffers<T>,
    target: Target<T>,
    k0: usize,
    k: usize,
    accumulate: bool,
    n_tiles: usize,
}

/// Cache lines of A to be fetched into L2, some with every tile.
struct Fetch {
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

impl Fetch {
    const NOTHING: Fetch =
        Fetch { base: std::ptr::null(), rows: 0..0, at: 0, bytes: 0, per_tile: 0 };
}

/// Asks for the cache line at `p`, which need not be a valid address, in L2.
#[inline(always)]
fn prefetch_l2(p: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults; SSE is part of x86-64.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(p.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = p;
}

/// Gives a block whose rows (or columns, if turned) run over several batch entries to the epilogue,
/// entry by entry.
fn unfold(tile: Tile, per_batch: usize, turned: bool, bytes: usize, epilogue: &Epilogue<'_>) {
    let (start, len) = if turned { (tile.n0, tile.n_len) } else { (tile.m0, tile.m_len) };
    let mut at = start;
    while at < start + len {
        let (batch, first) = (at / per_batch, at % per_batch);
        let n = (per_batch - first).min(start + len - at);
        let step = if turned { 1 } else { tile.row_stride };
        let ptr = tile.ptr.wrapping_add((at - start) * step * bytes);
        epilogue(match turned {
            true => Tile { batch, n0: first, n_len: n, ptr, ..tile },
            false => Tile { batch, m0: first, m_len: n, ptr, ..tile },
        });
        at += n;
    }
}

/// Accumulators between the rows of a transposed block of so many rows: whole vectors, and an odd
/// number of them, so that rows do not share a cache set.
fn turned_stride(rows: usize, lanes: usize) -> usize {
    (rows.div_ceil(lanes) | 1) * lanes
}

/// Accumulators of the buffer for transposed blocks.
fn turned_size(turned: bool, rows: usize, columns: usize, lanes: usize) -> usize {
    if turned { columns * turned_stride(rows, lanes) } else { 0 }
}

/// Addresses the tile kernels fetch while they compute, one row of vectors for each row of theirs:
/// rows `step` apart, or, if there are `runs`, that many runs of adjacent elements.
///
/// The walk may end before or after the last address wanted: it is a hint.
struct Ahead<T> {
    next: *const T,
    step: isize,
    /// Elements of a run; runs left, this one included; elements between their starts.
    run: isize,
    runs: usize,
    jump: isize,
    /// Elements gone of this run.
    gone: isize,
}

impl<T> Ahead<T> {
    /// Elements between the rows a kernel so wide fetches.
    fn step_for(&self, width: usize) -> isize {
        if self.runs > 0 { width as isize } else { self.step }
    }

    /// Notes that a kernel has fetched rows over so many elements.
    #[inline]
    fn advance(&mut self, elements: isize) {
        self.next = self.next.wrapping_offset(elements);
        if self.runs == 0 {
            return;
        }
        self.gone += elements;
        if self.gone >= self.run {
            self.next = self.next.wrapping_offset(self.jump - self.gone);
            self.runs -= 1;
            self.gone = 0;
        }
    }
}

impl<T> Step<'_, T> {
    /// The rows of a tile: heights differ by at most one, so that none is much less efficient.
    #[inline]
    fn tile_rows(&self, tile: usize) -> Range<usize> {
        let (rows, n) = (&self.task.rows, self.n_tiles);
        rows.start + tile * rows.len() / n..rows.start + (tile + 1) * rows.len() / n
    }

    /// Where the packed strip of the tile that begins with this row lies.
    fn strip_of(&self, row: usize) -> *mut T {
        self.buffers.a.wrapping_add((row - self.task.rows.start) * (self.k + ROW_PADDING))
    }

    /// Where the packed panel number `i` of a group lies.
    fn panel_of(&self, i: usize, columns: usize) -> *mut T {
        self.buffers.b.wrapping_add(i * self.k * columns)
    }
}

/// A pointer that tasks on several threads may have; they use it on disjoint parts.
#[derive(Clone, Copy)]
struct Shared<T>(*mut T);

// SAFETY: see the type: sharing the address is harmless, accesses are justified where they happen.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

/// The address `offset` elements of `dtype` after `base`.
fn typed_offset(base: *const u8, dtype: super::spec::DType, offset: isize) -> *const u8 {
    base.wrapping_offset(offset * dtype.size() as isize)
}

/// Accumulators in the buffers for A, B, the region and its transpose, of any task of a plan.
pub(super) fn buffer_sizes(plan: &Plan) -> [usize; 4] {
    let (layout, blocking) = (&plan.layout, &plan.blocking);
    let line = 64 / layout.bytes;
    let [_, m, ..] = layout.sizes();
    let tile = layout.tile;
    let rows = (m.div_ceil(tile.rows).div_ceil(blocking.m_parts) * tile.rows).min(m);
    let k = blocking.k_blocks.iter().map(|b| b.1).max().unwrap_or(0);
    let a = match layout.mode_a {
        ModeA::Direct | ModeA::Table => 0,
        ModeA::Rows | ModeA::Strips => rows * (k + ROW_PADDING),
    };
    let columns = tile.vectors * tile.lanes;
    let packs_b = layout.panels.iter().any(|p| !layout.reads_in_place(p));
    let b = if packs_b { blocking.group * k * columns } else { 0 };
    let strip = rows.min(blocking.strip.saturating_mul(tile.rows));
    let region = if layout.direct_c || blocking.k_parts > 1 {
        0
    } else if blocking.k_blocks.len() == 1 {
        strip * blocking.group * columns
    } else {
        rows * layout.panels.len().div_ceil(blocking.n_parts) * columns
    };
    let turned = turned_size(layout.turned, strip, blocking.group * columns, tile.lanes);
    [a, b, region, turned].map(|n| n.next_multiple_of(line))
}
