//! Execution of a plan: tasks over the pool, blocks within a task, tiles within a block.
//!
//! The loops of a task, outermost first: blocks of k; groups of panels, packed here; strips of
//! tiles; panels of the group; tiles. A panel thus meets all rows of the task while it is in L1 or
//! L2, and a finished strip by group of accumulators is handed on while it is in L2. Buffers belong
//! to the executing thread and stay with it, so a call allocates nothing after the first.

use super::ahead::Ahead;
use super::blocking::part;
use super::bytes::{BEHIND, Form};
use super::finish::turned_size;
use super::kernels::{Kernels, Moves, Real32Or64};
use super::layout::{ModeA, PanelShape};
use super::pack::Rows;
use super::plan::{Fused, OperandBlock, Plan, Tile};
use super::spec::ContractError;
use super::store::Store;
use super::tile::{POINTERS, TileArgs, Variant};
use crate::interrupt::Watch;
use crate::memory::{Block, OutOfMemory};
use crate::pool::Pool;
use std::cell::Cell;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Packing buffers of this thread, kept between calls.
    pub(super) static BUFFERS: Cell<Option<Block>> = const { Cell::new(None) };
    /// What of B the packing buffer holds: successive tasks may need the same.
    static PACKED: Cell<Packed> = const { Cell::new(Packed(0, 0, 0, 0)) };
    /// What tasks share, a packed B and partial results, kept between calls by the calling thread.
    static SHARED: Cell<Option<Block>> = const { Cell::new(None) };
}

/// Runs `f` on a buffer of at least `bytes` bytes that stays with the thread.
///
/// A nested call finds the place empty and allocates its own.
pub(super) fn with_buffer<R>(
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

/// Runs `f` on at least `bytes` bytes, aligned to 64, that stay with the calling thread: memory for
/// the tasks of an [`Execution`](crate::Execution).
///
/// # Errors
/// [`OutOfMemory`] if the system refuses.
pub fn with_shared<R>(bytes: usize, f: impl FnOnce(*mut u8) -> R) -> Result<R, OutOfMemory> {
    if bytes == 0 {
        return Ok(f(std::ptr::null_mut()));
    }
    with_buffer(&SHARED, bytes, f)
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
    pub(super) plan: &'a Plan,
    pub(super) kernels: &'static Kernels<T>,
    moves_a: &'static Moves<T>,
    pub(super) moves_b: &'static Moves<T>,
    /// For A and B, what bytes become.
    pub(super) forms: [Form; 2],
    pub(super) store: unsafe fn(&Store<'_, T>),
    pub(super) operands: Operands,
    pub(super) accumulate: bool,
    pub(super) fused: Fused<'a>,
    pub(super) failed: OnceLock<OutOfMemory>,
    watch: Watch,
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
pub(super) enum Target<T> {
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
pub(super) struct Task {
    pub(super) batch: usize,
    pub(super) rows: Range<usize>,
    pub(super) panels: Range<usize>,
    pub(super) blocks: Range<usize>,
}

/// The packing buffers of one thread, in accumulators.
pub(super) struct Buffers<T> {
    a: *mut T,
    pub(super) b: *mut T,
    region: *mut T,
    turned: *mut T,
}

impl<'a, T: Real32Or64> Run<'a, T> {
    /// Prepares an execution; the element types were checked when the plan was made.
    pub(super) fn new(
        plan: &'a Plan,
        operands: Operands,
        accumulate: bool,
        fused: Fused<'a>,
    ) -> Run<'a, T> {
        let kernels = T::kernels(plan.isa, plan.products);
        let Operands { a, b, c } = operands;
        let operands = Operands {
            a: typed_offset(a, plan.dtypes[0], plan.layout.origin_a),
            b: match plan.blocking.prepacked {
                true => b,
                false => typed_offset(b, plan.dtypes[1], plan.layout.origin_b),
            },
            c,
        };
        let admitted = "invariant: Spec::check admits the types";
        let moves = |dtype| kernels.moves(dtype).expect(admitted);
        Run {
            plan,
            kernels,
            moves_a: moves(plan.dtypes[0]),
            moves_b: moves(plan.dtypes[1]),
            forms: Form::of(
                [plan.dtypes[0], plan.dtypes[1]],
                kernels.signed,
                (kernels.depth, kernels.lanes),
            ),
            store: kernels.store(plan.dtypes[2]).expect(admitted),
            operands,
            accumulate,
            fused,
            failed: OnceLock::new(),
            watch: Watch::here(),
            id: EXECUTIONS.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// Computes everything.
    ///
    /// # Safety
    /// See [`Plan::run`].
    pub(super) unsafe fn execute(&self, pool: &Pool) -> Result<(), ContractError> {
        with_shared(self.shared_bytes(), |memory| {
            let memory = Shared(memory);
            // SAFETY: the caller's contract; panels have places of their own.
            let pack = |range: Range<usize>| unsafe { self.pack_shared(range, memory.get()) };
            // SAFETY: the caller's contract; the panels are packed.
            let chunk = |range: Range<usize>| unsafe { self.chunk(range, memory.get()) };
            let (packs, pack_grain) = self.packs();
            if self.plan.blocking.threads == 1 {
                pack(0..packs);
                chunk(0..self.tasks());
            } else {
                pool.run(packs, pack_grain, &pack);
                pool.run(self.tasks(), self.plan.blocking.grain, &chunk);
            }
            // SAFETY: the caller's contract; all tasks have finished.
            unsafe { self.finish(pool, memory.get()) }
        })?
    }

    /// Number of tasks, any of which may run at once.
    pub(super) fn tasks(&self) -> usize {
        let [batches, ..] = self.plan.layout.sizes();
        batches * self.plan.blocking.parts()
    }

    /// Bytes of memory that all tasks share: for a packed B, then for partial results.
    pub(super) fn shared_bytes(&self) -> usize {
        let partial = if self.plan.blocking.k_parts == 1 { 0 } else { self.partial_shape().2 };
        self.packed_len() * size_of::<T>() + partial
    }

    /// Executes some tasks.
    ///
    /// # Safety
    /// See [`Plan::run`]; there are `shared_bytes` bytes at `memory`, in which B is packed if it is to
    /// be.
    pub(super) unsafe fn chunk(&self, range: Range<usize>, memory: *mut u8) {
        let result = with_buffer(&BUFFERS, self.buffer_bytes(), |buffer| {
            for i in range.clone().take_while(|_| !self.watch.is_stopped()) {
                let next = (i + 1 < range.end).then(|| self.locate(i + 1).0);
                // SAFETY: the caller's contract; the buffer is this thread's own.
                unsafe { self.task(i, next, buffer, memory.cast()) };
            }
        });
        if let Err(error) = result {
            let _ = self.failed.set(error);
        }
    }

    /// What remains after all tasks: partial results are added up.
    ///
    /// # Safety
    /// See [`Plan::run`]; all tasks have finished with this memory.
    pub(super) unsafe fn finish(&self, pool: &Pool, memory: *mut u8) -> Result<(), ContractError> {
        if self.plan.blocking.k_parts > 1 && self.failed.get().is_none() && !self.watch.is_stopped()
        {
            let partials = memory.cast::<T>().wrapping_add(self.packed_len());
            // SAFETY: the caller's contract.
            unsafe { self.reduce(pool, partials) };
        }
        match self.failed.get() {
            Some(&error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Row stride and size in accumulators of one partial result, and bytes of all of them.
    pub(super) fn partial_shape(&self) -> (usize, usize, usize) {
        let [batches, m, _, _] = self.plan.layout.sizes();
        let stride = self.padded_columns(0..self.plan.layout.panels.len());
        let size = batches * m * stride;
        (stride, size, size * self.plan.blocking.k_parts * size_of::<T>())
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
    unsafe fn task(&self, i: usize, next: Option<Task>, buffer: *mut u8, memory: *mut T) {
        let (blocking, layout) = (&self.plan.blocking, &self.plan.layout);
        let [_, m, ..] = layout.sizes();
        let (task, k_part) = self.locate(i);
        let batch = task.batch;
        let buffers = self.buffers(buffer);
        let target = if blocking.k_parts > 1 {
            let (row_stride, size, _) = self.partial_shape();
            let before = self.packed_len() + k_part * size + batch * m * row_stride;
            let base = memory.wrapping_add(before);
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
        unsafe { self.blocks(&task, next.as_ref(), (&buffers, self.packed(memory)), target) };
        if let Some((_, end)) = self.kernels.around {
            // SAFETY: the machine has what the kernels need.
            unsafe { end() };
        }
    }

    /// The loops over blocks of k, groups of panels, strips, panels and tiles.
    unsafe fn blocks(
        &self,
        task: &Task,
        next: Option<&Task>,
        (buffers, packed): (&Buffers<T>, *mut T),
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
            let steps = layout.tile.packed(k);
            let row_stride = layout.tile.row_stride(steps);
            let step = Step {
                task,
                buffers,
                packed,
                target,
                block,
                k0,
                k,
                steps,
                row_stride,
                accumulate,
                n_tiles,
            };
            // SAFETY: the caller's contract; buffers are large enough for any block of the plan.
            unsafe {
                self.pack_a(&step);
                let mut ahead = self.ahead(&step, block, next);
                for first in task.panels.clone().step_by(blocking.group) {
                    let group = first..(first + blocking.group).min(task.panels.end);
                    self.pack_group(&step, group.clone());
                    ahead.panel = self.next_panel(&step, block, group.end);
                    let mut tiles = 0..n_tiles.min(blocking.strip);
                    while !tiles.is_empty() {
                        self.strip(&step, group.clone(), tiles.clone(), &mut ahead);
                        if last {
                            self.hand_on_strip(&step, group.clone(), tiles.clone());
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
        if let Some(prologue) = self.fused.prologue {
            // An empty sum has no elements to compute.
            if s.k > 0 {
                prologue(self.computed_block(s));
            }
            return;
        }
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
            form: self.forms[0],
            dst: s.buffers.a,
            row_stride: layout.tile.row_stride(s.steps),
            tiles: s.n_tiles,
        };
        // SAFETY: the block is inside A and the buffer holds it.
        unsafe { pack(&rows) };
        if let (ModeA::Strips, Some(add_up)) = (layout.mode_a, self.kernels.add_up) {
            for tile in 0..s.n_tiles {
                let rows = s.tile_rows(tile);
                let first = s.strip_of(rows.start);
                // SAFETY: the strip of these rows is packed.
                unsafe { add_up(first, s.steps - BEHIND, rows.len(), 0, self.forms[0]) };
            }
        }
    }

    /// The block of A that a prologue computes.
    fn computed_block(&self, s: &Step<'_, T>) -> OperandBlock {
        let run = self.plan.layout.computed_run;
        let whole = s.k0.is_multiple_of(run) && s.k.is_multiple_of(run);
        OperandBlock {
            batch: s.task.batch,
            row0: s.task.rows.start,
            rows: s.task.rows.len(),
            run0: s.k0 / run,
            runs: if whole { s.k / run } else { 1 },
            step0: s.k0 % run,
            steps: if whole { run } else { s.k },
            ptr: s.buffers.a.cast(),
            row_stride: self.plan.layout.tile.row_stride(s.steps),
        }
    }

    /// Packs those panels of a group that are not read in place.
    unsafe fn pack_group(&self, s: &Step<'_, T>, group: Range<usize>) {
        if self.plan.blocking.shared {
            return;
        }
        let layout = &self.plan.layout;
        let packed = Packed(self.id, s.task.batch, s.k0, group.start);
        if PACKED.replace(packed) == packed {
            return;
        }
        for i in group.clone() {
            if !layout.reads_in_place(&layout.panels[i]) {
                let dst = self.panel_of(s, i, group.start);
                // SAFETY: the panel is inside B and the buffer holds it.
                unsafe { self.pack_panel(s.task.batch, (s.k0, s.k), i, dst) };
            }
        }
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
        if let Some((begin, _)) = self.kernels.around {
            // SAFETY: the machine has what the kernels need.
            unsafe { begin() };
        }
        let b = self.operands.b.cast::<T>().wrapping_offset(layout.batch_b.at(s.task.batch));
        for i in group.clone() {
            if self.plan.blocking.prepacked {
                self.fetch_panel(s, i + 1, tiles.clone(), ahead);
            }
            let shape = &layout.panels[i];
            let in_place = layout.reads_in_place(shape);
            let valid = shape.width - (shape.vectors - 1) * lanes;
            let mut args = TileArgs {
                k: s.steps,
                rows: 0,
                a: [std::ptr::null(); POINTERS],
                a_step: 1,
                a_table: layout.k_a.table(s.k0).as_ptr(),
                b: self.panel_of(s, i, group.start).cast_const(),
                b_step: (shape.vectors * lanes) as isize,
                c: [std::ptr::null(); POINTERS],
                last: if matches!(s.target, Target::C { .. }) { valid } else { lanes },
                accumulate: s.accumulate,
                corrected: self.forms.iter().any(|form| form.corrects()),
                ahead: std::ptr::null(),
                ahead_step: 0,
                fetches: 0,
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
                ahead.lines.fetch(layout, self.plan.dtypes[0]);
                (args.ahead, args.ahead_step, args.fetches) =
                    ahead.advance(rows.len(), shape.vectors * lanes);
                self.point_at_a(s, rows.clone(), &mut args);
                self.point_at_c(s, group.start, shape, first_row, rows.clone(), &mut args);
                args.rows = rows.len();
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
                layout.m_a.point(base, rows, &mut args.a);
            }
            ModeA::Rows => {
                let mut p = s.strip_of(rows.start).cast_const();
                for (_, a) in rows.zip(&mut args.a) {
                    *a = p;
                    p = p.wrapping_add(s.row_stride);
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
                layout.m_c.point(base.cast_const(), rows, &mut args.c);
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
        let mut p = base.wrapping_add((rows.start - row0) * row_stride).cast_const();
        for (_, c) in rows.zip(&mut args.c) {
            *c = p;
            p = p.wrapping_add(row_stride);
        }
    }

    /// Hands on the finished accumulators of some rows in the panels of a group.
    unsafe fn hand_on_strip(&self, s: &Step<'_, T>, group: Range<usize>, tiles: Range<usize>) {
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
}

/// What is fixed while one block of k is worked on.
pub(super) struct Step<'a, T> {
    pub(super) task: &'a Task,
    pub(super) buffers: &'a Buffers<T>,
    /// B packed for all tasks, if it is.
    pub(super) packed: *mut T,
    pub(super) target: Target<T>,
    /// The number of the block, its first step and number of steps.
    pub(super) block: usize,
    pub(super) k0: usize,
    pub(super) k: usize,
    /// Packed numbers along k.
    pub(super) steps: usize,
    /// Numbers between rows of a packed A.
    row_stride: usize,
    accumulate: bool,
    pub(super) n_tiles: usize,
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
        self.buffers.a.wrapping_add((row - self.task.rows.start) * self.row_stride)
    }
}

/// A pointer that tasks on several threads may have; they use it on disjoint parts.
#[derive(Clone, Copy)]
pub(super) struct Shared<T>(pub(super) *mut T);

// SAFETY: see the type: sharing the address is harmless, accesses are justified where they happen.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub(super) fn get(&self) -> *mut T {
        self.0
    }
}

/// The address `offset` elements of `dtype` after `base`.
pub(super) fn typed_offset(base: *const u8, dtype: super::spec::DType, offset: isize) -> *const u8 {
    base.wrapping_offset(offset * dtype.size() as isize)
}

/// Accumulators in the buffers for A, B, the region and its transpose, of any task of a plan.
pub(super) fn buffer_sizes(plan: &Plan) -> [usize; 4] {
    let (layout, blocking) = (&plan.layout, &plan.blocking);
    let line = 64 / layout.bytes;
    let [_, m, ..] = layout.sizes();
    let tile = layout.tile;
    let rows = (m.div_ceil(tile.rows).div_ceil(blocking.m_parts) * tile.rows).min(m);
    let k = blocking.k_blocks.iter().map(|b| tile.packed(b.1)).max().unwrap_or(0);
    let a = match layout.mode_a {
        ModeA::Direct | ModeA::Table => 0,
        ModeA::Rows | ModeA::Strips => rows * tile.row_stride(k),
    };
    let columns = tile.vectors * tile.lanes;
    let packs_b = layout.panels.iter().any(|p| !layout.reads_in_place(p));
    let b = if packs_b && !blocking.shared { blocking.group * k * columns } else { 0 };
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
