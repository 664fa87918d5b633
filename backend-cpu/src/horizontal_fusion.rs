//! Several computations in one launch: contractions and kernels that do not wait for one another
//! are one job of the pool.
//!
//! The tasks of all contractions and the first phase of each kernel are handed out together; what
//! has to follow (sums of partial results, later phases of kernels) runs afterwards.

use crate::library::{Contraction, Ready};
use crate::run::{self, Kernel};
use crate::shares::{self, Share};
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;
use zyx_core::hal::{Arg, DeviceError};
use zyx_gemm::memory::Block;
use zyx_gemm::pool::Pool;
use zyx_gemm::{Execution, Fused};

/// What one part does.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a few per program, behind an `Arc`")]
pub(crate) enum Work {
    Kernel(Arc<Kernel>),
    Contraction(Contraction),
}

/// One part, with the positions of its arguments among those of the launch.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) work: Work,
    pub(crate) buffers: Vec<u16>,
    pub(crate) scalars: Vec<u16>,
}

type Args<'a> = SmallVec<[Arg<'a, Block>; 12]>;

impl Part {
    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let work = match &self.work {
            Work::Kernel(kernel) => kernel.bytes(),
            Work::Contraction(contraction) => contraction.bytes(),
        };
        size_of::<Part>() + work
    }

    /// Whether a launch may write to this buffer of it.
    pub(crate) fn writes(&self, buffer: usize) -> bool {
        let mut own = (0..).zip(&self.buffers).filter(|(_, own)| usize::from(**own) == buffer);
        own.any(|(slot, _)| match &self.work {
            Work::Kernel(kernel) => kernel.writes(slot),
            Work::Contraction(contraction) => contraction.writes(slot),
        })
    }

    fn arguments<'a>(&self, args: &[Arg<'a, Block>]) -> Args<'a> {
        let n_buffers = args.iter().filter(|arg| matches!(arg, Arg::Buffer(..))).count();
        let buffers = self.buffers.iter().map(|&i| args[i as usize]);
        buffers.chain(self.scalars.iter().map(|&i| args[n_buffers + i as usize])).collect()
    }

    /// Estimated nanoseconds on one thread.
    fn ns(&self) -> f64 {
        match &self.work {
            Work::Kernel(kernel) => kernel.ns(),
            Work::Contraction(contraction) => contraction.ns(),
        }
    }
}

/// Runs all parts.
pub(crate) fn launch(
    parts: &[Part],
    pool: &Pool,
    args: &[Arg<'_, Block>],
) -> Result<(), DeviceError> {
    let own: SmallVec<[Args<'_>; 8]> = parts.iter().map(|part| part.arguments(args)).collect();
    let mut contractions: SmallVec<[Ready<'_>; 8]> = SmallVec::new();
    let mut kernels: SmallVec<[(&Kernel, &[Arg<'_, Block>]); 2]> = SmallVec::new();
    for (part, own) in parts.iter().zip(&own) {
        match &part.work {
            Work::Kernel(kernel) => kernels.push((&**kernel, own)),
            Work::Contraction(contraction) => contractions.push(Ready::new(contraction, own)?),
        }
    }
    if kernels.iter().any(|(kernel, _)| kernel.compiled_code().is_none()) {
        return in_turn(parts, &own, pool);
    }
    let within = |ready| (Ready::prologue(ready), Ready::epilogue(ready));
    let within: SmallVec<[_; 8]> = contractions.iter().map(within).collect();
    let mut executions = SmallVec::<[_; 8]>::new();
    for (ready, (prologue, epilogue)) in contractions.iter().zip(&within) {
        let fused = Fused { prologue: prologue.as_deref(), epilogue: epilogue.as_deref() };
        executions.push(ready.start(fused)?);
    }
    let sizes = executions.iter().map(|e| e.shared_bytes().next_multiple_of(64));
    let mut starts: SmallVec<[usize; 8]> = SmallVec::from_slice(&[0]);
    sizes.for_each(|size| starts.push(starts[starts.len() - 1] + size));
    let total = starts[starts.len() - 1];
    let ns: f64 = parts.iter().map(Part::ns).sum();
    zyx_gemm::with_shared(total, |memory| {
        let memory = Address(memory);
        pack(&executions, &starts, &memory, pool);
        let tasks: SmallVec<[_; 8]> = executions
            .iter()
            .zip(&starts)
            .map(|(execution, &start)| {
                let memory = &memory;
                move |range: Range<usize>| {
                    // SAFETY: `Ready` checked the arguments, which nobody else uses during a
                    // launch; the job does each task once, and the memory is as large as asked for.
                    unsafe { execution.chunk(range, memory.get().wrapping_add(start)) }
                }
            })
            .collect();
        let first: SmallVec<[Share<'_>; 16]> = contractions
            .iter()
            .zip(executions.iter().zip(&tasks))
            .map(|(ready, (execution, task))| {
                let n = execution.tasks();
                Share { n, grain: ready.grain().clamp(1, n.max(1)), task }
            })
            .collect();
        run::run_with(&kernels, pool, &first, ns)?;
        for (execution, &start) in executions.iter().zip(&starts) {
            // SAFETY: as above; the job is done.
            let done = unsafe { execution.finish(pool, memory.get().wrapping_add(start)) };
            done.map_err(|error| run::driver("contraction", error.to_string()))?;
        }
        Ok(())
    })
    .map_err(|error| run::driver("contraction", error.to_string()))?
}

/// Packs what the tasks of all contractions read, as one job.
fn pack(executions: &[Execution<'_>], starts: &[usize], memory: &Address, pool: &Pool) {
    let tasks: SmallVec<[_; 8]> = executions
        .iter()
        .zip(starts)
        .map(|(execution, &start)| {
            move |range: Range<usize>| {
                // SAFETY: `Ready` checked the arguments, which nobody else uses during a launch;
                // each part is packed once, and the memory is as large as asked for.
                unsafe { execution.pack(range, memory.get().wrapping_add(start)) }
            }
        })
        .collect();
    let shares = executions.iter().zip(&tasks).map(|(execution, task)| {
        let (n, grain) = execution.packs();
        Share { n, grain, task: task as &(dyn Fn(Range<usize>) + Sync) }
    });
    let shares: SmallVec<[Share<'_>; 8]> = shares.filter(|share| share.n > 0).collect();
    shares::run(pool, &shares);
}

/// The parts one after the other, where some are interpreted.
fn in_turn(parts: &[Part], own: &[Args<'_>], pool: &Pool) -> Result<(), DeviceError> {
    parts.iter().zip(own).try_for_each(|(part, own)| match &part.work {
        Work::Kernel(kernel) => kernel.launch(pool, own),
        Work::Contraction(contraction) => contraction.launch(pool, own),
    })
}

/// An address that tasks on several threads may have.
struct Address(*mut u8);

// SAFETY: sharing the address is harmless; contractions justify their accesses.
unsafe impl Sync for Address {}

impl Address {
    fn get(&self) -> *mut u8 {
        self.0
    }
}
