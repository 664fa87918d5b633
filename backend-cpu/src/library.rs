//! Contractions as programs: the library's plan, and compiled kernels as its prologue and epilogue.

use crate::run::{self, Kernel, Words};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use zyx_core::DType;
use zyx_core::hal::{self, Arg, Caps, ContractDim, ContractSpec, DeviceError};
use zyx_core::{ir, runtime};
use zyx_gemm::memory::{Block, Derived};
use zyx_gemm::pool::Pool;
use zyx_gemm::{Acc, Dim, Epilogue, Execution, Fused, OperandBlock, Options, Plan, Spec, Tile};

/// Scalar arguments an epilogue starts with: batch, first m, first n, rows, columns, stride.
const RESERVED: usize = 6;

/// Scalar arguments a prologue starts with: batch, first row, run and step; rows, runs, steps, stride.
pub(crate) const PROLOGUE_VARS: usize = 8;

const _: () = assert!(zyx_gemm::WHOLE_RUN == hal::Prologue::WHOLE);

/// What computes an operand.
#[derive(Debug)]
pub(crate) struct Prologue {
    /// 0 for A, 1 for B.
    pub(crate) operand: usize,
    pub(crate) kernel: Arc<Kernel>,
    /// Buffers and scalars that are its own, behind the block and what says where that is.
    pub(crate) buffers: usize,
    pub(crate) scalars: usize,
}

/// A contraction that can run.
#[derive(Debug)]
pub(crate) struct Contraction {
    plan: Plan,
    /// What the plan was made of.
    made_of: (Spec, Options),
    /// A number of its own in this process.
    id: u64,
    /// For each of A and B what runs if it is packed beforehand, once that was looked into.
    prepacked: [OnceLock<Option<Box<Plan>>>; 2],
    /// For each of A and B the number of its argument and the bytes in front of its first element,
    /// if it is read from memory.
    operands: [Option<(usize, usize)>; 2],
    /// Bytes each of them has to span, and then C.
    spans: Vec<usize>,
    prologue: Option<Prologue>,
    epilogue: Option<Arc<Kernel>>,
}

/// Bytes of what the library decides for one contraction, roughly.
pub(crate) const PLAN: usize = 2 << 10;

/// The share of a launch's time that one of a packed operand takes at most, to be worth the copy.
const PREPACKED: f64 = 0.97;

/// Numbers contractions.
static CONTRACTIONS: AtomicU64 = AtomicU64::new(0);

/// A kernel after passes.
pub(crate) fn prepare(kernel: &ir::Kernel, caps: &Caps) -> Option<ir::Verified> {
    runtime::prepare(kernel, caps).ok()
}

/// The library's name of an element type.
pub(crate) fn dtype(dtype: DType) -> Option<zyx_gemm::DType> {
    Some(match dtype {
        DType::I8 => zyx_gemm::DType::I8,
        DType::U8 => zyx_gemm::DType::U8,
        DType::I32 => zyx_gemm::DType::I32,
        DType::F16 => zyx_gemm::DType::F16,
        DType::BF16 => zyx_gemm::DType::BF16,
        DType::F32 => zyx_gemm::DType::F32,
        DType::F64 => zyx_gemm::DType::F64,
        _ => return None,
    })
}

/// The library's name of a type that it accumulates in.
pub(crate) fn acc(dtype: DType) -> Option<Acc> {
    match dtype {
        DType::I32 => Some(Acc::I32),
        DType::F32 => Some(Acc::F32),
        DType::F64 => Some(Acc::F64),
        _ => None,
    }
}

fn dims(dims: &[ContractDim]) -> Vec<Dim> {
    dims.iter().map(|d| Dim { len: d.len, a: d.a, b: d.b, c: d.c }).collect()
}

impl Contraction {
    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let prologue = self.prologue.as_ref().map_or(0, |prologue| prologue.kernel.bytes());
        PLAN + prologue + self.epilogue.as_ref().map_or(0, |kernel| kernel.bytes())
    }

    /// The contraction, if the library does it.
    pub(crate) fn new(
        spec: &ContractSpec,
        options: &Options,
        prologue: Option<Prologue>,
        epilogue: Option<Arc<Kernel>>,
    ) -> Option<Contraction> {
        let acc = acc(spec.acc)?;
        let own = Spec {
            a: dtype(spec.a)?,
            b: dtype(spec.b)?,
            acc,
            c: dtype(spec.c)?,
            batch: dims(&spec.batch),
            m: dims(&spec.m),
            n: dims(&spec.n),
            k: dims(&spec.k),
        };
        let plan = Plan::new(&own, options).ok()?;
        let size = [spec.a.size(), spec.b.size(), spec.c.size()];
        let (mut spans, mut operands) = (Vec::new(), [None; 2]);
        for i in (0..3).filter(|&i| Some(i) != options.computed) {
            let start = spec.offset.get(i).map_or(Some(0), |&start| usize::try_from(start).ok())?;
            let range = &plan.spans()[i];
            start.checked_add_signed(*range.start())?;
            if let Some(operand) = operands.get_mut(i) {
                *operand = Some((spans.len(), start * size[i]));
            }
            spans.push((start.checked_add_signed(*range.end())? + 1) * size[i]);
        }
        let empty =
            [&own.batch, &own.m, &own.n, &own.k].iter().any(|g| g.iter().any(|d| d.len == 0));
        if empty {
            return None;
        }
        let id = CONTRACTIONS.fetch_add(1, Relaxed);
        let (made_of, prepacked) = ((own, *options), [const { OnceLock::new() }; 2]);
        Some(Contraction { plan, made_of, id, prepacked, operands, spans, prologue, epilogue })
    }

    /// Whether a launch may write to this buffer.
    pub(crate) fn writes(&self, slot: usize) -> bool {
        let operands = self.spans.len() - 1;
        let [of_prologue, _] = self.of_prologue();
        let Some(own) = slot.checked_sub(operands) else { return false };
        match (&self.prologue, &self.epilogue) {
            (Some(prologue), _) if own < of_prologue => prologue.kernel.writes(own + 1),
            (_, Some(epilogue)) => epilogue.writes(own - of_prologue + 1),
            (_, None) => true,
        }
    }

    /// The plan for an operand that is packed already, and the copy, where an operand stays the same
    /// from launch to launch. It is packed when it is met the second time.
    fn prepacked(
        &self,
        pool: &Pool,
        args: &[Arg<'_, Block>],
    ) -> Option<(&Plan, usize, Arc<Block>)> {
        (0..2).find_map(|side| {
            let (at, start) = self.operands[side]?;
            let Arg::Buffer(block, offset) = args[at] else { return None };
            let derivation = (self.id, offset);
            let known = block.derived_before(derivation);
            if matches!(known, Derived::Unknown) {
                return None;
            }
            let (spec, options) = &self.made_of;
            let plan = self.prepacked[side].get_or_init(|| {
                let plan = self.plan.prepacked(spec, options, side)?;
                let sooner = plan.estimate_ns() < PREPACKED * self.plan.estimate_ns();
                sooner.then(|| Box::new(plan))
            });
            let plan = plan.as_deref()?;
            if let Derived::Kept(copy) = known {
                return Some((plan, side, copy));
            }
            let src = block.as_ptr().wrapping_add(offset + start).cast_const();
            let copy = block.keep(derivation, plan.packed_bytes(), |copy| {
                // SAFETY: the arguments were checked; the copy is as long as the plan says.
                unsafe { plan.pack(pool, src, copy.as_ptr()) }
            })?;
            Some((plan, side, copy))
        })
    }

    pub(crate) fn launch(&self, pool: &Pool, args: &[Arg<'_, Block>]) -> Result<(), DeviceError> {
        let ready = Ready::new(self, args)?;
        let (prologue, epilogue) = (ready.prologue(), ready.epilogue());
        let fused = Fused { prologue: prologue.as_deref(), epilogue: epilogue.as_deref() };
        let mut addresses = ready.addresses();
        let prepacked = self.prepacked(pool, args);
        let plan = match &prepacked {
            Some((plan, side, copy)) => {
                let operand = if *side == 0 { &mut addresses.0 } else { &mut addresses.1 };
                *operand = copy.as_ptr();
                *plan
            }
            None => &self.plan,
        };
        // SAFETY: `Ready` checked that all operands span every offset of the specification, or one is
        // the copy that the plan is for; C is a buffer of its own, or not used.
        let result = unsafe { plan.run_fused(pool, addresses, false, fused) };
        result.map_err(|error| run::driver("contraction", error.to_string()))
    }

    /// Buffers and scalars of the prologue.
    fn of_prologue(&self) -> [usize; 2] {
        self.prologue.as_ref().map_or([0; 2], |prologue| [prologue.buffers, prologue.scalars])
    }

    /// Estimated nanoseconds, with as many threads as it was planned for.
    pub(crate) fn ns(&self) -> f64 {
        self.plan.estimate_ns()
    }
}

/// A contraction with the arguments of one launch, which were checked.
pub(crate) struct Ready<'a> {
    contraction: &'a Contraction,
    words: Words,
    n_buffers: usize,
}

impl<'a> Ready<'a> {
    /// Checks that the arguments span what the contraction accesses.
    pub(crate) fn new(
        contraction: &'a Contraction,
        args: &[Arg<'_, Block>],
    ) -> Result<Ready<'a>, DeviceError> {
        let n_buffers = args.iter().filter(|a| matches!(a, Arg::Buffer(..))).count();
        let (buffers, scalars) = args.split_at(n_buffers);
        let (operands, rest) = buffers.split_at(contraction.spans.len() - 1);
        run::check_spans(operands, &contraction.spans[..operands.len()])?;
        let [n, m] = contraction.of_prologue();
        let ((of_prologue, rest), (first, scalars)) = (rest.split_at(n), scalars.split_at(m));
        if let Some(prologue) = &contraction.prologue {
            prologue.kernel.check_own([1, PROLOGUE_VARS], of_prologue, first)?;
        }
        match &contraction.epilogue {
            None => run::check_spans(rest, &contraction.spans[operands.len()..])?,
            Some(kernel) => kernel.check_own([1, RESERVED], rest, scalars)?,
        }
        Ok(Ready { contraction, words: run::words(args), n_buffers })
    }

    /// The arguments of the prologue, and those behind them: buffers, then scalars.
    fn split(&self) -> [(&[u64], &[u64]); 2] {
        let [buffers, scalars] = self.contraction.of_prologue();
        let (all, values) = self.words.split_at(self.n_buffers);
        let (first, rest) = all[self.contraction.spans.len() - 1..].split_at(buffers);
        let (of_first, of_rest) = values.split_at(scalars);
        [(first, of_first), (rest, of_rest)]
    }

    fn addresses(&self) -> (*const u8, *const u8, *mut u8) {
        let operand = |i: usize| match self.contraction.operands[i] {
            Some((at, start)) => (self.words[at] as *const u8).wrapping_add(start),
            None => std::ptr::null(),
        };
        let c = match (&self.contraction.epilogue, self.split()[1].0) {
            (None, &[c]) => c as *mut u8,
            _ => std::ptr::null_mut(),
        };
        (operand(0), operand(1), c)
    }

    /// What computes a block of an operand.
    pub(crate) fn prologue(&self) -> Option<Box<zyx_gemm::Prologue<'_>>> {
        let kernel = &self.contraction.prologue.as_ref()?.kernel;
        let [(buffers, scalars), _] = self.split();
        Some(Box::new(move |block: OperandBlock| {
            let words = prologue_words(&block, buffers, scalars);
            // SAFETY: the block's address and extents are the library's, other buffers were
            // checked; a block belongs to the thread that asks for it.
            unsafe { kernel.run_here(&words) }
        }))
    }

    /// What is done with each finished tile.
    pub(crate) fn epilogue(&self) -> Option<Box<Epilogue<'_>>> {
        let kernel = self.contraction.epilogue.as_ref()?;
        let [_, (buffers, scalars)] = self.split();
        Some(Box::new(move |tile: Tile| {
            let words = epilogue_words(&tile, buffers, scalars);
            // SAFETY: the tile's address and extents are the library's, other buffers were
            // checked; tiles are disjoint, so stores of different threads are.
            unsafe { kernel.run_here(&words) }
        }))
    }

    /// An execution with [`Ready::prologue`] and [`Ready::epilogue`].
    pub(crate) fn start(&'a self, fused: Fused<'a>) -> Result<Execution<'a>, DeviceError> {
        // SAFETY: as in `Contraction::launch`; buffers outlive a launch, which outlives this.
        let execution = unsafe { self.contraction.plan.start(self.addresses(), false, fused) };
        execution.map_err(|error| run::driver("contraction", error.to_string()))
    }

    /// Tasks that a thread takes at once.
    pub(crate) fn grain(&self) -> usize {
        self.contraction.plan.grain()
    }
}

/// The arguments of an epilogue for one tile: the tile, the other buffers, the tile's place, the
/// other scalars.
fn epilogue_words(tile: &Tile, buffers: &[u64], scalars: &[u64]) -> Words {
    let mut words = Words::new();
    words.push(tile.ptr as u64);
    words.extend_from_slice(buffers);
    let place: [usize; RESERVED] =
        [tile.batch, tile.m0, tile.n0, tile.m_len, tile.n_len, tile.row_stride];
    words.extend(place.map(|x| x as u64));
    words.extend_from_slice(scalars);
    words
}

/// The arguments of a prologue for one block, likewise.
fn prologue_words(block: &OperandBlock, buffers: &[u64], scalars: &[u64]) -> Words {
    let mut words = Words::new();
    words.push(block.ptr as u64);
    words.extend_from_slice(buffers);
    let &OperandBlock { batch, row0, rows, run0, runs, step0, steps, row_stride, .. } = block;
    let place: [usize; PROLOGUE_VARS] = [batch, row0, run0, step0, rows, runs, steps, row_stride];
    words.extend(place.map(|x| x as u64));
    words.extend_from_slice(scalars);
    words
}
