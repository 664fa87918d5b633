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
use super::store::Store;
use super::tile::{MAX_ROWS, TileArgs};
use crate::memory::{Block, OutOfMemory};
use crate::pool::Pool;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;

/// Elements added to the rows of a packed block of A, so that rows do not share a cache set.
const ROW_PADDING: usize = 16;

thread_local! {
    /// Packing buffers of this thread, kept between calls.
    static BUFFERS: Cell<Option<Block>> = const { Cell::new(None) };
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
}

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
                for i in range {
                    // SAFETY: the caller's contract; the buffer is this thread's own.
                    unsafe { self.task(i, buffer, partials.get()) };
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
        let [a, b, region] = self.buffer_sizes();
        (a + b + region) * size_of::<T>()
    }

    /// Accumulators in the buffers for A, B and the region, each a whole number of cache lines.
    fn buffer_sizes(&self) -> [usize; 3] {
        self.plan.buffer_sizes
    }

    /// Columns of these panels, the last rounded up to whole vectors.
    fn padded_columns(&self, panels: Range<usize>) -> usize {
        let shapes = &self.plan.layout.panels[panels];
        shapes.iter().map(|p| p.vectors).sum::<usize>() * self.kernels.lanes
    }

    /// Computes task number `i`.
    unsafe fn task(&self, i: usize, buffer: *mut u8, partials: *mut T) {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let [batches, m, ..] = layout.sizes();
        let (i, k_part) = (i / blocking.k_parts, i % blocking.k_parts);
        let (i, n_part) = (i / blocking.n_parts, i % blocking.n_parts);
        let (batch, m_part) = (i / blocking.m_parts, i % blocking.m_parts);
        debug_assert!(batch < batches);
        let task = Task {
            batch,
            rows: part(m, layout.tile.rows, m_part, blocking.m_parts),
            panels: part(layout.panels.len(), 1, n_part, blocking.n_parts),
            blocks: part(blocking.k_blocks.len(), 1, k_part, blocking.k_parts),
        };
        let [a, b, _] = self.buffer_sizes();
        let base = buffer.cast::<T>();
        let buffers =
            Buffers { a: base, b: base.wrapping_add(a), region: base.wrapping_add(a + b) };
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
        unsafe { self.blocks(&task, &buffers, target) };
    }

    /// The loops over blocks of k, groups of panels, strips, panels and tiles.
    unsafe fn blocks(&self, task: &Task, buffers: &Buffers<T>, target: Target<T>) {
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
                for first in task.panels.clone().step_by(blocking.group) {
                    let group = first..(first + blocking.group).min(task.panels.end);
                    self.pack_group(&step, group.clone());
                    let mut ahead = self.ahead(&step, group.end);
                    let mut tiles = 0..n_tiles.min(blocking.strip);
                    while !tiles.is_empty() {
                        self.strip(&step, group.clone(), tiles.clone(), &mut ahead);
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
        let mut rows = Rows {
            src,
            k_offsets: &layout.k_a,
            m_offsets: &layout.m_a,
            k0: s.k0,
            k: s.k,
            m0: s.task.rows.start,
            rows: s.task.rows.len(),
            dst: s.buffers.a,
            row_stride: s.k + ROW_PADDING,
        };
        match layout.mode_a {
            ModeA::Direct => {}
            // SAFETY: the block is inside A and the buffer holds it.
            ModeA::Rows => unsafe { (self.moves_a.rows)(&rows) },
            ModeA::Strips => {
                for tile in 0..s.n_tiles {
                    let range = s.tile_rows(tile);
                    rows.m0 = range.start;
                    rows.rows = range.len();
                    rows.dst = s.strip_of(range.start);
                    // SAFETY: as above, tile by tile.
                    unsafe { (self.moves_a.strip)(&rows) };
                }
            }
        }
    }

    /// Packs those panels of a group that are not read in place.
    unsafe fn pack_group(&self, s: &Step<'_, T>, group: Range<usize>) {
        let layout = &self.plan.layout;
        let pack = match layout.mode_b {
            ModeB::Direct | ModeB::Runs => self.moves_b.panel_runs,
            ModeB::Transposed => self.moves_b.panel_transposed,
            ModeB::Scattered => self.moves_b.panel_scattered,
        };
        let src =
            typed_offset(self.operands.b, self.plan.dtypes[1], layout.batch_b.at(s.task.batch));
        for i in group.clone() {
            let shape = &layout.panels[i];
            if self.in_place(shape) {
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
                pieces: &layout.pieces,
                piece_starts: starts.unwrap_or(&[]),
                vectors: shape.vectors,
                dst: s.panel_of(i - group.start, layout.tile.vectors * layout.tile.lanes),
            };
            // SAFETY: the panel is inside B and the buffer holds it.
            unsafe { pack(&panel) };
        }
    }

    fn in_place(&self, shape: &PanelShape) -> bool {
        self.plan.layout.mode_b == ModeB::Direct && shape.contiguous_b
    }

    /// What to fetch while this group is worked on: the panel packed next.
    ///
    /// Its rows are too far apart for the hardware to foresee, and unfetched they would arrive one
    /// latency at a time. Panels packed from windows or columns are closer together.
    fn ahead(&self, s: &Step<'_, T>, next: usize) -> Ahead<T> {
        let layout = &self.plan.layout;
        let fetched = next < s.task.panels.end
            && layout.mode_b == ModeB::Runs
            && self.plan.dtypes[1].size() == size_of::<T>()
            && layout.k_b.left_in_run(s.k0) >= s.k;
        if !fetched {
            return Ahead { next: s.buffers.b.cast_const(), step: 0 };
        }
        let b = self.operands.b.cast::<T>().wrapping_offset(layout.batch_b.at(s.task.batch));
        let offset = layout.k_b.at(s.k0) + layout.n_b.at(layout.panels[next].n0);
        Ahead { next: b.wrapping_offset(offset), step: layout.k_b.step }
    }

    /// Computes the tiles of some rows in the panels of a group.
    unsafe fn strip(
        &self,
        s: &Step<'_, T>,
        group: Range<usize>,
        tiles: Range<usize>,
        ahead: &mut Ahead<T>,
    ) {
        let layout = &self.plan.layout;
        let lanes = layout.tile.lanes;
        let b = self.operands.b.cast::<T>().wrapping_offset(layout.batch_b.at(s.task.batch));
        for i in group.clone() {
            let shape = &layout.panels[i];
            let in_place = self.in_place(shape);
            let valid = shape.width - (shape.vectors - 1) * lanes;
            let mut args = TileArgs {
                k: s.k,
                a: [std::ptr::null(); MAX_ROWS],
                a_step: 1,
                b: s.panel_of(i - group.start, layout.tile.vectors * lanes).cast_const(),
                b_step: (shape.vectors * lanes) as isize,
                c: [std::ptr::null_mut(); MAX_ROWS],
                last: if matches!(s.target, Target::C { .. }) { valid } else { lanes },
                accumulate: s.accumulate,
                ahead: ahead.next,
                ahead_step: ahead.step,
            };
            if in_place {
                args.b = b.wrapping_offset(layout.k_b.at(s.k0) + layout.n_b.at(shape.n0));
                args.b_step = layout.k_b.step;
            }
            let first_row = s.tile_rows(tiles.start).start;
            for tile in tiles.clone() {
                let rows = s.tile_rows(tile);
                args.ahead = ahead.next;
                ahead.next = ahead.next.wrapping_offset(rows.len() as isize * ahead.step);
                self.point_at_a(s, rows.clone(), &mut args);
                self.point_at_c(s, group.start, shape, first_row, rows.clone(), &mut args);
                let tail = in_place && valid < lanes;
                if tail {
                    args.last = valid;
                }
                let kernel = self.kernels.tile(rows.len(), shape.vectors, tail);
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
            ModeA::Direct => {
                let offset = layout.batch_a.at(s.task.batch) + layout.k_a.at(s.k0);
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
        unsafe { self.deliver(tile) };
    }

    /// Gives finished accumulators to the epilogue, or writes them to C.
    unsafe fn deliver(&self, tile: Tile) {
        if let Some(epilogue) = self.epilogue {
            return epilogue(tile);
        }
        let layout = &self.plan.layout;
        let offset = layout.batch_c.at(tile.batch);
        let store = Store {
            src: tile.ptr.cast_const().cast::<T>(),
            row_stride: tile.row_stride,
            dst: typed_offset(self.operands.c.cast_const(), self.plan.dtypes[2], offset).cast_mut(),
            m_offsets: &layout.m_c,
            n_offsets: &layout.n_c,
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
        pool.run(batches * parts, 1, &|range| {
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
                unsafe { self.deliver(tile) };
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

/// Rows of a panel of B to be fetched, as many as a tile has rows with every tile.
///
/// The walk may end before or after the last row of the block: it is a hint.
struct Ahead<T> {
    next: *const T,
    step: isize,
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
        self.buffers.a.wrapping_add((row - self.task.rows.start) * self.k)
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

/// Accumulators in the buffers for A, B and the region of any task of a plan.
pub(super) fn buffer_sizes(plan: &Plan, bytes: usize) -> [usize; 3] {
    let (layout, blocking) = (&plan.layout, &plan.blocking);
    let line = 64 / bytes;
    let [_, m, ..] = layout.sizes();
    let tile = layout.tile;
    let rows = (m.div_ceil(tile.rows).div_ceil(blocking.m_parts) * tile.rows).min(m);
    let k = blocking.k_blocks.iter().map(|b| b.1).max().unwrap_or(0);
    let a = match layout.mode_a {
        ModeA::Direct => 0,
        ModeA::Rows | ModeA::Strips => rows * (k + ROW_PADDING),
    };
    let packs_b = layout.mode_b != ModeB::Direct || layout.panels.iter().any(|p| !p.contiguous_b);
    let columns = tile.vectors * tile.lanes;
    let b = if packs_b { blocking.group * k * columns } else { 0 };
    let region = if layout.direct_c || blocking.k_parts > 1 {
        0
    } else if blocking.k_blocks.len() == 1 {
        rows.min(blocking.strip.saturating_mul(tile.rows)) * blocking.group * columns
    } else {
        rows * layout.panels.len().div_ceil(blocking.n_parts) * columns
    };
    [a, b, region].map(|n| n.next_multiple_of(line))
}
