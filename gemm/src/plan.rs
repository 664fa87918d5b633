//! A contraction made ready to run any number of times.

use super::blocking::Blocking;
use super::kernels::{Kernels, Products, Real32Or64};
use super::layout::{self, Layout, TileShape};
use super::run::{self, Operands, Run, typed_offset};
use super::shared;
use super::spec::{Acc, ContractError, DType, Isa, Scalar, Spec, operands};
use crate::pool::Pool;
use std::ops::{Range, RangeInclusive};

/// A finished block of accumulators, as an epilogue receives it.
///
/// Element (i, j), for rows `m0 + i` and columns `n0 + j` of the linear indices of m and n (last
/// dimension fastest), is number `i * row_stride + j` behind `ptr`, an `f32`, `f64` or `i32` as the
/// specification's accumulators are. The block belongs to the epilogue, which may overwrite it.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Linear index of the batch entry.
    pub batch: usize,
    /// First row.
    pub m0: usize,
    /// Number of rows, at least 1.
    pub m_len: usize,
    /// First column.
    pub n0: usize,
    /// Number of columns, at least 1.
    pub n_len: usize,
    /// The first accumulator; columns are adjacent.
    pub ptr: *mut u8,
    /// Accumulators between rows.
    pub row_stride: usize,
}

/// What is called once for every finished block, on any thread of the pool.
pub type Epilogue<'a> = dyn Fn(Tile) + Sync + 'a;

/// A block of an operand that is to be computed, as a prologue receives it.
///
/// Element (i, j), for row `row0 + i` of the operand (a linear index of m for A, of n for B) and step
/// j of the block, goes to number `i * row_stride + j` behind `ptr`, an `f32` or `f64` as the
/// specification's accumulators are. The steps are those of `runs` runs along the last dimension of
/// k, from number `run0` (a linear index of the other dimensions of k) on: all of them or, where runs
/// are longer than [`WHOLE_RUN`], `steps` of a single one from `step0` on.
#[derive(Clone, Copy, Debug)]
pub struct OperandBlock {
    /// Linear index of the batch entry.
    pub batch: usize,
    /// First row.
    pub row0: usize,
    /// Number of rows, at least 1.
    pub rows: usize,
    /// First run.
    pub run0: usize,
    /// Number of runs, at least 1.
    pub runs: usize,
    /// First step of a run.
    pub step0: usize,
    /// Steps of each run.
    pub steps: usize,
    /// Where the first element goes; steps are adjacent.
    pub ptr: *mut u8,
    /// Numbers between rows.
    pub row_stride: usize,
}

/// Steps up to which a prologue is asked for whole runs only.
pub const WHOLE_RUN: usize = 256;

/// What computes a block of an operand, on any thread of the pool; a block may be asked for more
/// than once.
pub type Prologue<'a> = dyn Fn(OperandBlock) + Sync + 'a;

/// What runs within a contraction.
#[derive(Clone, Copy, Default)]
pub struct Fused<'a> {
    /// Computes the operand that [`Options::computed`] names.
    pub prologue: Option<&'a Prologue<'a>>,
    /// Receives the finished blocks instead of C.
    pub epilogue: Option<&'a Epilogue<'a>>,
}

impl std::fmt::Debug for Fused<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fused")
            .field("prologue", &self.prologue.is_some())
            .field("epilogue", &self.epilogue.is_some())
            .finish()
    }
}

/// How a plan is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The instruction set; `None` for the best of this machine.
    pub isa: Option<Isa>,
    /// Threads to plan for; `None` for one per available core.
    pub threads: Option<usize>,
    /// Whether runs may pass an epilogue.
    pub epilogue: bool,
    /// The operand that a prologue computes, 0 for A and 1 for B. Its strides and offsets say in
    /// which order dimensions are counted, and no more; it has the type of the accumulators.
    pub computed: Option<usize>,
    /// Which instructions beyond those of the instruction set are used.
    pub extensions: Extensions,
}

/// Which instructions beyond those of an [`Isa`] kernels may use, where this machine has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extensions {
    /// All there are kernels for.
    #[default]
    All,
    /// Products of several steps in vectors, of `bf16` and of bytes, but no matrix registers.
    Vectors,
    /// None.
    None,
}

/// A contraction made ready to run: offsets tabulated, blocks chosen.
///
/// Making one takes microseconds to milliseconds (tables as long as the groups); running it
/// allocates nothing after each thread's first time.
pub struct Plan {
    pub(super) isa: Isa,
    pub(super) acc: Acc,
    /// What is multiplied at once.
    pub(super) products: Products,
    /// Types of A, B and C as the layout has them.
    pub(super) dtypes: [DType; 3],
    pub(super) layout: Layout,
    pub(super) blocking: Blocking,
    pub(super) buffer_sizes: [usize; 4],
    /// Whether A and B are exchanged with respect to the specification.
    exchanged: bool,
    epilogue: bool,
    is_empty: bool,
    is_injective: bool,
    /// Least and greatest offset in A, B and C of the specification.
    spans: [RangeInclusive<isize>; 3],
    spec_dtypes: [DType; 3],
}

/// An execution of a plan that its caller drives: all tasks, on any threads, then the end.
pub struct Execution<'a>(Either<'a>);

enum Either<'a> {
    F32(Run<'a, f32>),
    F64(Run<'a, f64>),
    Nothing,
}

impl std::fmt::Debug for Execution<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Execution").field("tasks", &self.tasks()).finish()
    }
}

impl Execution<'_> {
    /// Number of tasks, any of which may run at once.
    pub fn tasks(&self) -> usize {
        match &self.0 {
            Either::F32(run) => run.tasks(),
            Either::F64(run) => run.tasks(),
            Either::Nothing => 0,
        }
    }

    /// Bytes of memory, aligned to 64, that all tasks share.
    pub fn shared_bytes(&self) -> usize {
        match &self.0 {
            Either::F32(run) => run.shared_bytes(),
            Either::F64(run) => run.shared_bytes(),
            Either::Nothing => 0,
        }
    }

    /// How much there is to pack before the first task, and how much of it a thread takes at once.
    pub fn packs(&self) -> (usize, usize) {
        match &self.0 {
            Either::F32(run) => run.packs(),
            Either::F64(run) => run.packs(),
            Either::Nothing => (0, 1),
        }
    }

    /// Does some of that.
    ///
    /// # Safety
    /// What [`Plan::start`] asks for still holds; each part is packed once; there are
    /// `shared_bytes` bytes.
    pub unsafe fn pack(&self, range: Range<usize>, memory: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            match &self.0 {
                Either::F32(run) => run.pack_shared(range, memory),
                Either::F64(run) => run.pack_shared(range, memory),
                Either::Nothing => {}
            }
        }
    }

    /// Executes some tasks.
    ///
    /// # Safety
    /// What [`Plan::start`] asks for still holds; each task is executed once; there are
    /// `shared_bytes` bytes, and everything is packed.
    pub unsafe fn chunk(&self, range: Range<usize>, memory: *mut u8) {
        // SAFETY: the caller's contract.
        unsafe {
            match &self.0 {
                Either::F32(run) => run.chunk(range, memory),
                Either::F64(run) => run.chunk(range, memory),
                Either::Nothing => {}
            }
        }
    }

    /// What remains to be done when all tasks have finished.
    ///
    /// # Errors
    /// When a task could not allocate its buffers.
    ///
    /// # Safety
    /// What [`Plan::start`] asks for still holds; the memory is that of the tasks.
    pub unsafe fn finish(&self, pool: &Pool, memory: *mut u8) -> Result<(), ContractError> {
        // SAFETY: the caller's contract.
        unsafe {
            match &self.0 {
                Either::F32(run) => run.finish(pool, memory),
                Either::F64(run) => run.finish(pool, memory),
                Either::Nothing => Ok(()),
            }
        }
    }
}

impl std::fmt::Debug for Plan {
    /// The decisions, without the tables.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (layout, cut) = (&self.layout, &self.blocking);
        f.debug_struct("Plan")
            .field("isa", &self.isa)
            .field("products", &self.products)
            .field("sizes", &layout.sizes())
            .field("exchanged", &self.exchanged)
            .field("a", &layout.mode_a)
            .field("b", &layout.mode_b)
            .field("direct_c", &layout.direct_c)
            .field("turned", &layout.turned)
            .field("parts", &[cut.m_parts, cut.n_parts, cut.k_parts])
            .field("k_blocks", &cut.k_blocks.len())
            .field("shared", &cut.shared)
            .field("prepacked", &cut.prepacked)
            .field("threads", &cut.threads)
            .field("us", &(cut.ns() / 1e3))
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Plans a contraction.
    ///
    /// # Errors
    /// If the specification is inconsistent or too large, or the instruction set is unavailable.
    pub fn new(spec: &Spec, options: &Options) -> Result<Plan, ContractError> {
        spec.check()?;
        let isa = options.isa.unwrap_or_else(Isa::detect);
        if !isa.is_available() {
            return Err(ContractError::Unavailable { isa });
        }
        if let Some(side) = options.computed
            && [spec.a, spec.b].get(side) != Some(&spec.acc.dtype())
        {
            return Err(ContractError::Computed { side });
        }
        let threads = threads(options);
        let oriented = |exchange| Plan::oriented(spec, (isa, threads), options, (exchange, None));
        // What is computed takes the place of A.
        if let Some(side) = options.computed {
            return Ok(oriented(side == 1));
        }
        let (plan, other) = (oriented(false), oriented(true));
        Ok(if other.blocking.cycles < 0.95 * plan.blocking.cycles { other } else { plan })
    }

    /// The same contraction of an operand (0 for A, 1 for B) that is packed once for many runs: for
    /// weights, say, that stay the same. Runs are given the address of the copy instead of the
    /// operand's. Sums are in the same order, so results have the same bits, unless they are added
    /// to C. `options` are those that this plan was made with.
    ///
    /// `None` where the order of sums cannot be the same, an operand is computed, or entries of
    /// a batch have operands of their own. Whether runs are sooner
    /// [`Plan::estimate_ns`] tells.
    ///
    /// ```
    /// use zyx_gemm::{DType, Options, Plan, Spec, memory::Block, pool::Pool};
    ///
    /// let spec = Spec::matmul(DType::F32, 49, 512, 1024);
    /// let (options, pool) = (Options::default(), Pool::new(Some(2)));
    /// let plan = Plan::new(&spec, &options)?;
    /// let (a, b) = (vec![0.5f32; 49 * 1024], vec![2f32; 1024 * 512]);
    /// let mut c = vec![0f32; 49 * 512];
    /// if let Some(packed) = plan.prepacked(&spec, &options, 1) {
    ///     let copy = Block::new(packed.packed_bytes())?;
    ///     // SAFETY: the operands span the specification, and the block the copy.
    ///     unsafe {
    ///         packed.pack(&pool, b.as_ptr().cast(), copy.as_ptr());
    ///         let operands = (a.as_ptr().cast(), copy.as_ptr().cast_const(), c.as_mut_ptr().cast());
    ///         packed.run(&pool, operands, false, None)?;
    ///     }
    ///     assert_eq!(c[0], 1024.0);
    /// }
    /// # Ok::<(), zyx_gemm::ContractError>(())
    /// ```
    pub fn prepacked(&self, spec: &Spec, options: &Options, side: usize) -> Option<Plan> {
        // A dimension that one operand has backwards is summed from an end that depends on which
        // takes the place of A.
        let backwards = spec.k.iter().any(|dim| dim.a < 0 || dim.b < 0);
        if self.is_empty || backwards || options.computed.is_some() {
            return None;
        }
        let threads = threads(options);
        let plan =
            Plan::oriented(spec, (self.isa, threads), options, (side == 0, Some(&self.blocking)));
        let align = plan.layout.k_alignment();
        let within = |&(k0, k): &(usize, usize)| k == 0 || k0 / align == (k0 + k - 1) / align;
        let fits = plan.layout.sizes()[0] == 1 && plan.blocking.k_blocks.iter().all(within);
        fits.then_some(plan)
    }

    /// Bytes of the copy that a plan of [`Plan::prepacked`] reads, 0 for others.
    pub fn packed_bytes(&self) -> usize {
        match self.blocking.prepacked {
            true => shared::packed_numbers(&self.layout, &self.blocking) * self.layout.bytes,
            false => 0,
        }
    }

    /// Packs the operand at `src`, its element at offset zero, for runs of a plan of
    /// [`Plan::prepacked`].
    ///
    /// # Safety
    /// Every element of the operand at an offset of the specification is readable, aligned and
    /// initialised, and there are [`Plan::packed_bytes`] bytes at `dst`, aligned to 64, that nobody else
    /// accesses meanwhile.
    pub unsafe fn pack(&self, pool: &Pool, src: *const u8, dst: *mut u8) {
        if self.packed_bytes() == 0 {
            return;
        }
        let src = typed_offset(src, self.dtypes[1], self.layout.origin_b);
        let operands = Operands { a: std::ptr::null(), b: src, c: std::ptr::null_mut() };
        // SAFETY: the caller's contract.
        unsafe {
            match self.acc {
                Acc::F32 | Acc::I32 => {
                    Run::<f32>::new(self, operands, false, Fused::default()).pack_all(pool, dst)
                }
                Acc::F64 => {
                    Run::<f64>::new(self, operands, false, Fused::default()).pack_all(pool, dst)
                }
            }
        }
    }

    fn oriented(
        spec: &Spec,
        (isa, threads): (Isa, usize),
        &Options { epilogue, computed, extensions, .. }: &Options,
        (exchange, base): (bool, Option<&Blocking>),
    ) -> Plan {
        let spans = operands().map(|(_, stride)| spec.span(stride).unwrap_or(0..=0));
        let own = if exchange { layout::exchanged(spec) } else { spec.clone() };
        let products = Products::of(&own, isa, extensions);
        let tile = match spec.acc {
            Acc::F32 | Acc::I32 => tile_shape(f32::kernels(isa, products)),
            Acc::F64 => tile_shape(f64::kernels(isa, products)),
        };
        let mut layout = Layout::new(&own, tile, epilogue, (exchange, computed.is_some()));
        if base.is_some() {
            layout.pack_b();
        }
        let blocking = Blocking::new(&layout, threads, base);
        let mut plan = Plan {
            isa,
            acc: spec.acc,
            products,
            dtypes: [own.a, own.b, own.c],
            layout,
            blocking,
            buffer_sizes: [0; 4],
            exchanged: exchange,
            epilogue,
            is_empty: spec.is_empty(),
            is_injective: spec.is_injective(),
            spans,
            spec_dtypes: [spec.a, spec.b, spec.c],
        };
        plan.buffer_sizes = run::buffer_sizes(&plan);
        plan
    }

    /// Least and greatest offset, in elements, at which A, B and C are accessed.
    pub fn spans(&self) -> &[RangeInclusive<isize>; 3] {
        &self.spans
    }

    /// Estimated nanoseconds of a run, for a choice between this library and generated code.
    pub fn estimate_ns(&self) -> f64 {
        self.blocking.ns()
    }

    /// Computes C, or adds to it with `accumulate`; with an epilogue, C is left alone and every
    /// finished block goes to the epilogue instead, the blocks together covering all (batch, m, n)
    /// once. If the [`Watch`](crate::interrupt::Watch) of the thread reports a request, the rest of C is not
    /// written.
    ///
    /// # Errors
    /// [`ContractError::Epilogue`] if the plan was not made for an epilogue, and
    /// [`ContractError::OutOfMemory`] if buffers cannot be allocated; C is then partly written.
    ///
    /// # Safety
    /// `a`, `b` and `c` are the addresses of the elements at offset zero. Every element at an
    /// offset of the specification must be readable in A and B and, without epilogue, readable and
    /// writable in C, aligned for its type, and initialised; C overlaps neither A nor B, no two
    /// indices share an element of C, and nobody else writes A or B, or touches C, during the call.
    pub unsafe fn run(
        &self,
        pool: &Pool,
        (a, b, c): (*const u8, *const u8, *mut u8),
        accumulate: bool,
        epilogue: Option<&Epilogue<'_>>,
    ) -> Result<(), ContractError> {
        let fused = Fused { prologue: None, epilogue };
        // SAFETY: the caller's contract.
        unsafe { self.run_fused(pool, (a, b, c), accumulate, fused) }
    }

    /// [`Plan::run`] with whatever the plan was made for.
    ///
    /// # Errors
    /// As [`Plan::run`], and [`ContractError::Prologue`] if there is none where the plan was made for
    /// one, or one where it was not.
    ///
    /// # Safety
    /// As [`Plan::run`], but that the operand which a prologue computes is not accessed.
    pub unsafe fn run_fused(
        &self,
        pool: &Pool,
        operands: (*const u8, *const u8, *mut u8),
        accumulate: bool,
        fused: Fused<'_>,
    ) -> Result<(), ContractError> {
        // SAFETY: the caller's contract.
        let execution = unsafe { self.start(operands, accumulate, fused)? };
        // SAFETY: the caller's contract.
        unsafe {
            match execution.0 {
                Either::F32(run) => run.execute(pool),
                Either::F64(run) => run.execute(pool),
                Either::Nothing => Ok(()),
            }
        }
    }

    /// One execution in steps, for callers that run several at once.
    ///
    /// # Errors
    /// As [`Plan::run_fused`].
    ///
    /// # Safety
    /// As [`Plan::run_fused`], until the execution is finished.
    pub unsafe fn start<'a>(
        &'a self,
        (a, b, c): (*const u8, *const u8, *mut u8),
        accumulate: bool,
        fused: Fused<'a>,
    ) -> Result<Execution<'a>, ContractError> {
        if fused.epilogue.is_some() && !self.epilogue {
            return Err(ContractError::Epilogue);
        }
        let needed = self.layout.computed_run > 0;
        if fused.prologue.is_some() != needed {
            return Err(ContractError::Prologue { needed });
        }
        if self.is_empty {
            return Ok(Execution(Either::Nothing));
        }
        let (a, b) = if self.exchanged { (b, a) } else { (a, b) };
        let operands = Operands { a, b, c };
        Ok(Execution(match self.acc {
            Acc::F32 | Acc::I32 => Either::F32(Run::new(self, operands, accumulate, fused)),
            Acc::F64 => Either::F64(Run::new(self, operands, accumulate, fused)),
        }))
    }

    /// Tasks that a thread takes at once; all of them, if one thread does everything.
    pub fn grain(&self) -> usize {
        if self.blocking.threads == 1 { usize::MAX } else { self.blocking.grain }
    }

    /// [`Plan::run`] on slices; `starts` are the positions of the elements at offset zero.
    ///
    /// # Errors
    /// [`ContractError::Operand`] if a slice has another type than the specification says or does
    /// not contain all offsets, or if indices might share elements of C; else as [`Plan::run`].
    pub fn run_slices<A: Scalar, B: Scalar, C: Scalar>(
        &self,
        pool: &Pool,
        (a, b, c): (&[A], &[B], &mut [C]),
        starts: [usize; 3],
        accumulate: bool,
    ) -> Result<(), ContractError> {
        self.check_operand(0, A::DTYPE, starts[0], a.len())?;
        self.check_operand(1, B::DTYPE, starts[1], b.len())?;
        self.check_operand(2, C::DTYPE, starts[2], c.len())?;
        if !self.is_injective && !self.is_empty {
            let why = "two indices might share an element".into();
            return Err(ContractError::Operand { operand: "C", why });
        }
        let a = a.as_ptr().wrapping_add(starts[0]).cast();
        let b = b.as_ptr().wrapping_add(starts[1]).cast();
        let c = c.as_mut_ptr().wrapping_add(starts[2]).cast();
        // SAFETY: types match, all offsets are inside the slices, which borrowing keeps apart, and
        // no two indices share an element of C.
        unsafe { self.run(pool, (a, b, c), accumulate, None) }
    }

    fn check_operand(
        &self,
        i: usize,
        dtype: DType,
        start: usize,
        len: usize,
    ) -> Result<(), ContractError> {
        let operand = operands()[i].0;
        let refuse = |why| Err(ContractError::Operand { operand, why });
        if dtype != self.spec_dtypes[i] {
            return refuse(format!("elements are {dtype:?}, planned {:?}", self.spec_dtypes[i]));
        }
        if self.is_empty {
            return Ok(());
        }
        let (low, high) = (*self.spans[i].start(), *self.spans[i].end());
        let fits = start.checked_add_signed(low).is_some()
            && start.checked_add_signed(high).is_some_and(|last| last < len);
        if fits {
            return Ok(());
        }
        refuse(format!("offsets {low} to {high} from element {start} leave its {len} elements"))
    }
}

/// Threads to plan for.
fn threads(options: &Options) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    options.threads.unwrap_or_else(available).max(1)
}

fn tile_shape<T>(kernels: &Kernels<T>) -> TileShape {
    let &Kernels {
        lanes, rows, vectors, depth, group, behind, strips, along, ops, by_lane, ..
    } = kernels;
    let bytes = kernels.add_up.is_some();
    TileShape { lanes, rows, vectors, depth, group, behind, strips, along, bytes, ops, by_lane }
}

/// Estimated nanoseconds of a contraction on this machine with so many threads.
///
/// # Errors
/// As [`Plan::new`].
pub fn estimate_ns(spec: &Spec, threads: usize) -> Result<f64, ContractError> {
    let options = Options { threads: Some(threads), ..Options::default() };
    Ok(Plan::new(spec, &options)?.estimate_ns())
}
