//! Contractions as programs: the library's plan, and a compiled kernel as its epilogue.

use crate::contract::{self, Acc, Dim, Epilogue, Execution, Options, Plan, Spec, Tile};
use crate::memory::Block;
use crate::pool::Pool;
use crate::run::{self, Kernel, Words};
use zyx_core::DType;
use zyx_core::hal::{Arg, Caps, ContractDim, ContractSpec, DeviceError};
use zyx_core::{ir, runtime};

/// Scalar arguments an epilogue starts with: batch, first m, first n, rows, columns, stride.
const RESERVED: usize = 6;

/// A contraction that can run.
#[derive(Debug)]
pub(crate) struct Contraction {
    plan: Plan,
    /// Bytes in front of the operands' first elements.
    starts: [usize; 2],
    /// Bytes each operand (A, B and, without epilogue, C) has to span.
    spans: Vec<usize>,
    epilogue: Option<Kernel>,
}

/// A kernel after passes.
pub(crate) fn prepare(kernel: &ir::Kernel, caps: &Caps) -> Option<ir::Kernel> {
    runtime::prepare(kernel, caps).ok()
}

/// The library's name of an element type.
pub(crate) fn dtype(dtype: DType) -> Option<contract::DType> {
    Some(match dtype {
        DType::F16 => contract::DType::F16,
        DType::BF16 => contract::DType::BF16,
        DType::F32 => contract::DType::F32,
        DType::F64 => contract::DType::F64,
        _ => return None,
    })
}

/// The library's name of a type that it accumulates in.
pub(crate) fn acc(dtype: DType) -> Option<Acc> {
    match dtype {
        DType::F32 => Some(Acc::F32),
        DType::F64 => Some(Acc::F64),
        _ => None,
    }
}

fn dims(dims: &[ContractDim]) -> Vec<Dim> {
    dims.iter().map(|d| Dim { len: d.len, a: d.a, b: d.b, c: d.c }).collect()
}

impl Contraction {
    /// The contraction, if the library does it.
    pub(crate) fn new(
        spec: &ContractSpec,
        options: &Options,
        epilogue: Option<Kernel>,
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
        let start = |i: usize| usize::try_from(spec.offset[i]).ok();
        let (a, b) = (start(0)?, start(1)?);
        let size = [spec.a.size(), spec.b.size(), spec.c.size()];
        let mut spans = Vec::new();
        for (i, start) in [a, b, 0].into_iter().enumerate() {
            let range = &plan.spans()[i];
            start.checked_add_signed(*range.start())?;
            spans.push((start.checked_add_signed(*range.end())? + 1) * size[i]);
        }
        let empty =
            [&own.batch, &own.m, &own.n, &own.k].iter().any(|g| g.iter().any(|d| d.len == 0));
        if empty {
            return None;
        }
        let starts = [a * size[0], b * size[1]];
        Some(Contraction { plan, starts, spans, epilogue })
    }

    pub(crate) fn launch(&self, pool: &Pool, args: &[Arg<'_, Block>]) -> Result<(), DeviceError> {
        let ready = Ready::new(self, args)?;
        let epilogue = ready.epilogue();
        let addresses = ready.addresses();
        // SAFETY: `Ready` checked that all operands span every offset of the specification; C is a
        // buffer of its own, or not used.
        let result = unsafe { self.plan.run(pool, addresses, false, epilogue.as_deref()) };
        result.map_err(|error| run::driver("contraction", error.to_string()))
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
        match &contraction.epilogue {
            None => run::check_spans(args, &contraction.spans)?,
            Some(kernel) => {
                run::check_spans(&args[..2], &contraction.spans[..2])?;
                kernel.check_own(&args[2..], 1)?;
            }
        }
        let n_buffers = args.iter().filter(|a| matches!(a, Arg::Buffer(..))).count() - 2;
        Ok(Ready { contraction, words: run::words(args), n_buffers })
    }

    fn addresses(&self) -> (*const u8, *const u8, *mut u8) {
        let operand =
            |i: usize| (self.words[i] as *const u8).wrapping_add(self.contraction.starts[i]);
        let c = match self.contraction.epilogue {
            None => self.words[2] as *mut u8,
            Some(_) => std::ptr::null_mut(),
        };
        (operand(0), operand(1), c)
    }

    /// What is done with each finished tile.
    pub(crate) fn epilogue(&self) -> Option<Box<Epilogue<'_>>> {
        let kernel = self.contraction.epilogue.as_ref()?;
        Some(Box::new(|tile: Tile| {
            let words = epilogue_words(&tile, &self.words[2..], self.n_buffers);
            // SAFETY: the tile's address and extents are the library's, other buffers were
            // checked; tiles are disjoint, so stores of different threads are.
            unsafe { kernel.run_here(&words) }
        }))
    }

    /// An execution with [`Ready::epilogue`].
    pub(crate) fn start(
        &'a self,
        epilogue: Option<&'a Epilogue<'a>>,
    ) -> Result<Execution<'a>, DeviceError> {
        // SAFETY: as in `Contraction::launch`; buffers outlive a launch, which outlives this.
        let execution = unsafe { self.contraction.plan.start(self.addresses(), false, epilogue) };
        execution.map_err(|error| run::driver("contraction", error.to_string()))
    }

    /// Tasks that a thread takes at once.
    pub(crate) fn grain(&self) -> usize {
        self.contraction.plan.grain()
    }
}

/// The arguments of an epilogue for one tile: the tile, the other buffers, the tile's place, the
/// other scalars.
fn epilogue_words(tile: &Tile, rest: &[u64], n_buffers: usize) -> Words {
    let mut words = Words::new();
    words.push(tile.ptr as u64);
    words.extend_from_slice(&rest[..n_buffers]);
    let place: [usize; RESERVED] =
        [tile.batch, tile.m0, tile.n0, tile.m_len, tile.n_len, tile.row_stride];
    words.extend(place.map(|x| x as u64));
    words.extend_from_slice(&rest[n_buffers..]);
    words
}
