//! What a device can do, as plain data.

use crate::dtype::{DType, DTypeSet};
use crate::ir::Order;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// What a device promises about threads that wait for one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    /// Nothing: a waiting group may starve the one it waits for.
    None,
    /// A group that has started goes on (decoupled look-back is safe).
    Occupancy,
}

/// What a device's own quotients, or square roots, of floats are worth. They are corrected to be
/// correctly rounded on every device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Correctly rounded.
    Exact,
    /// Correctly rounded, unless the driver's compiler finds that an operand is zero.
    NonZero,
    /// Those of `f32` are correctly rounded for operands of usual size: between 2^-60 and 2^60, and
    /// no divisors whose fraction is all ones. A multiply-add that rounds once gives such.
    Usual,
    /// Those of `f32` are not, those of `f64` are, which is as fast as any correction.
    Double,
    /// Those of `f32` are off by eight units at most.
    Loose,
}

/// The capabilities of a device: the only thing passes and legalisation know of it.
///
/// Built by changing [`Caps::default`], the smallest device: scalar `i32`, `i64`, `f32` and
/// `f64` arithmetic with all ops native, no vectors, no local memory. Comparable and hashable,
/// so it can be part of a cache key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Caps {
    /// Dtypes with native arithmetic. Others are computed in a wider one of these.
    pub compute: DTypeSet,
    /// Dtypes of `compute` the device has no type for: 64-bit integers, of which
    /// [`words`](crate::legalize::lower_to_32_bit) makes pairs, right and slow.
    pub emulated: DTypeSet,
    /// Dtypes a buffer can hold and a kernel can load, store and cast.
    pub storage: DTypeSet,
    /// Integers of less than 32 bits that memory has elements of, where
    /// [`words`](crate::legalize::lower_to_32_bit) are made: others are parts of words.
    pub narrow: DTypeSet,
    /// For each unary op (by `as usize`) the dtypes it is native for; others are decomposed.
    pub unary: Vec<DTypeSet>,
    /// For each binary op the dtypes it is native for.
    pub binary: Vec<DTypeSet>,
    /// For each ternary op the dtypes it is native for.
    pub ternary: Vec<DTypeSet>,
    /// Whether instructions on integers are defined for part of their operands only, as those of
    /// GPUs are: divisors other than 0 and -1, distances of shifts below the width. Legal kernels
    /// then have no other.
    pub partial_integers: bool,
    /// Whether floats are converted only to integers that they are within the range of, and `f16`
    /// and `bf16` are 16 bits that no instruction converts. Legal kernels then ask for no more.
    pub partial_casts: bool,
    /// What `x / y` on floats gives.
    pub quotients: Rounding,
    /// What `sqrt` on floats gives.
    pub roots: Rounding,
    /// Bytes of the widest vector register; 0 when values are scalar only.
    pub vector_bytes: usize,
    /// Whether vector loads and stores may be guarded per lane and indexed by vectors.
    pub masked: bool,
    /// Whether `Group` and `Local` loops map to many hardware threads (a GPU). A CPU spreads
    /// `Group` over few threads and has no `Local`.
    pub simt: bool,
    /// Threads that run at once: cores of a CPU, resident threads of a GPU.
    pub threads: usize,
    /// Largest number of local iterations in a group.
    pub max_local: usize,
    /// Largest number of groups per axis.
    pub max_groups: [u64; 3],
    /// Bytes of shared storage per group.
    pub shared_bytes: usize,
    /// Bytes that a group may ask for which leaves less to others, if that is more.
    pub most_shared_bytes: usize,
    /// Smallest and largest subgroup; 0 when there are no subgroup operations.
    pub subgroup: (u32, u32),
    /// Dtypes of factors for which there are matrix instructions ([`mma`](crate::ir::mma)): threads
    /// of a group execute them in warps of neighbours.
    pub mma: DTypeSet,
    /// Of these, dtypes for which there are wide ones, whose warps are larger and whose right factor is
    /// read from shared storage.
    pub wide_mma: DTypeSet,
    /// Dtypes with native atomic add on buffers.
    pub atomic_add: DTypeSet,
    /// Dtypes with native atomic differences, extremes and bit operations on buffers.
    pub atomics: DTypeSet,
    /// Whether acquire and release work at device scope.
    pub device_scope: bool,
    /// What is promised about waiting.
    pub progress: Progress,
    /// Most buffers one kernel can bind.
    pub max_buffers: usize,
    /// Alignment in bytes of offsets into buffers.
    pub offset_align: usize,
    /// Largest number of bytes one buffer argument may span.
    pub max_binding: u64,
    /// Whether host and device share memory.
    pub unified_memory: bool,
    /// Whether library kernels take an epilogue. Otherwise what follows a library call is a kernel
    /// of its own.
    pub epilogues: bool,
    /// Whether the library adds a bias to the sums of a contraction (`hal::ContractSpec::bias` of zyx-core).
    pub biases: bool,
    /// Whether library kernels compute an operand as they need it
    /// (`hal::Prologue` of zyx-core). Otherwise operands are read from memory.
    pub prologues: bool,
    /// Whether there is a library for convolutions (`hal::Call::Convolve` of zyx-core).
    pub convolutions: bool,
    /// Whether the library runs independent computations, its own and kernels, in one launch
    /// (`hal::Call::Fused` of zyx-core).
    pub fused_calls: bool,
    /// How contractions with a softmax between them run without storing what it is applied to, if
    /// they do. [`Flash::THREADS`] where nothing is said of a device of many threads; on those with
    /// matrix instructions [`Flash::WARPS`] besides, for halves.
    pub flash: Option<Flash>,
    /// Whether threads may meet at a barrier under a condition that holds for all of a group or for
    /// none of it. All APIs allow it; drivers for CPUs, which make loops of the code between
    /// barriers, have got it wrong.
    pub branched_barriers: bool,
    /// Whether a fused multiply-add is at least as fast as a multiplication.
    pub fast_fma: bool,
    /// Whether the driver's compiler makes one operation of a multiplication and an addition as it likes: how a
    /// kernel rounds then depends on all of it.
    pub contracts: bool,
    /// Dtypes in which the device may replace subnormal operands and results by zero, because its
    /// driver does and cannot be told otherwise; see `hal::probe` of zyx-core.
    pub flushes_subnormals: DTypeSet,
    /// Most loop iterations one thread may execute, 0 for no limit.
    pub max_iterations: u64,
    /// Estimated nanoseconds from which on a launch is cut into parts, before a watchdog of the
    /// driver stops it; 0 for never.
    pub max_launch: u64,
}

/// How a device runs contractions whose middle is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flash {
    /// Whether its library does (`hal::Call::Flash` of zyx-core); else generated kernels do,
    /// whose threads have a row each.
    pub library: bool,
    /// Most rows and columns of a block.
    pub block: [usize; 2],
    /// Bytes of the middle from which on it is not stored where one contraction needs it.
    pub least: u64,
    /// Bytes from which on it is computed several times where several do, as in the gradient.
    pub large: u64,
}

impl Flash {
    /// Generated kernels for what would take very much memory: a thread with a row to itself makes
    /// less of a device than contractions in blocks do.
    pub const THREADS: Flash =
        Flash { library: false, block: [1, 8], least: 16 << 30, large: 16 << 30 };

    /// Generated kernels of matrix instructions, for what they have rounded factors of.
    pub const WARPS: Flash =
        Flash { library: false, block: [1, 8], least: 1 << 16, large: 1 << 16 };
}

/// The dtypes on which a device computes an op when its backend does not say otherwise.
fn natively(op: BinaryOp) -> DTypeSet {
    let none = matches!(op, BinaryOp::LogAddExp | BinaryOp::Gcd);
    if none { DTypeSet::NONE } else { DTypeSet::ALL }
}

impl Default for Caps {
    fn default() -> Caps {
        Caps {
            compute: DTypeSet::of(&[
                DType::Bool,
                DType::I32,
                DType::U32,
                DType::I64,
                DType::U64,
                DType::F32,
                DType::F64,
            ]),
            emulated: DTypeSet::NONE,
            storage: DTypeSet::ALL,
            narrow: DTypeSet::NONE,
            unary: vec![DTypeSet::ALL; UnaryOp::ALL.len()],
            binary: BinaryOp::ALL.iter().map(|&op| natively(op)).collect(),
            ternary: vec![DTypeSet::ALL; TernaryOp::ALL.len()],
            partial_integers: false,
            partial_casts: false,
            quotients: Rounding::Exact,
            roots: Rounding::Exact,
            vector_bytes: 0,
            masked: false,
            simt: false,
            threads: 1,
            max_local: 1,
            max_groups: [u32::MAX as u64; 3],
            shared_bytes: 0,
            most_shared_bytes: 0,
            subgroup: (0, 0),
            mma: DTypeSet::NONE,
            wide_mma: DTypeSet::NONE,
            atomic_add: DTypeSet::NONE,
            atomics: DTypeSet::NONE,
            device_scope: false,
            progress: Progress::None,
            max_buffers: usize::MAX,
            offset_align: 64,
            max_binding: u64::MAX,
            unified_memory: false,
            epilogues: true,
            biases: false,
            prologues: false,
            convolutions: false,
            fused_calls: false,
            flash: None,
            branched_barriers: true,
            fast_fma: false,
            contracts: false,
            flushes_subnormals: DTypeSet::NONE,
            max_iterations: 0,
            max_launch: 0,
        }
    }
}

/// What it is where backends cut devices down for tests, so that launches of tests are cut too.
pub const HURRIED_LAUNCH: u64 = 5_000;

/// What [`Caps::max_launch`] is for GPUs that a driver may watch: a quarter of the two seconds that
/// the least patient allow, since estimates are rough.
pub const WATCHED_LAUNCH: u64 = 500_000_000;

/// Fewest threads of a device that wants work for each of thousands.
const MANY_THREADS: usize = 1 << 12;

/// Threads that a multiprocessor keeps resident.
const RESIDENT: usize = 2048;

impl Caps {
    /// Threads of a subgroup, if all subgroups have one number that is a power of two.
    pub fn lanes(&self) -> Option<u32> {
        let (least, most) = self.subgroup;
        (least == most && most.is_power_of_two()).then_some(most)
    }

    /// Whether few threads run loops of any length: a CPU, also where it is programmed as a device
    /// of many threads is.
    pub fn has_few_threads(&self) -> bool {
        !self.simt || self.threads < MANY_THREADS && self.max_iterations == 0
    }

    /// How many multiprocessors a device of many threads has, going by 2048 threads that each keeps
    /// resident.
    pub fn multiprocessors(&self) -> usize {
        self.threads / RESIDENT
    }

    /// Groups of threads that two axes of the grid hold.
    pub fn groups_on_two_axes(&self) -> u64 {
        self.max_groups[0].saturating_mul(self.max_groups[1])
    }

    /// The dtype arithmetic on `dtype` happens in: itself where native, else the narrowest
    /// native one of the same class that holds all its values (halves: `f32`).
    pub fn compute_dtype(&self, dtype: DType) -> DType {
        if self.compute.contains(dtype) {
            return dtype;
        }
        let wider: &[DType] = match dtype {
            DType::F16 | DType::BF16 => &[DType::F32],
            DType::Bool | DType::U8 | DType::U16 => &[DType::U32, DType::I32],
            DType::I8 | DType::I16 => &[DType::I32],
            _ => &[],
        };
        wider.iter().copied().find(|&d| self.compute.contains(d)).unwrap_or(dtype)
    }

    /// Whether a unary op on `dtype` needs no decomposition.
    #[inline]
    pub fn has_unary(&self, op: UnaryOp, dtype: DType) -> bool {
        self.unary[op as usize].contains(dtype)
    }

    /// Whether a binary op on `dtype` needs no decomposition.
    #[inline]
    pub fn has_binary(&self, op: BinaryOp, dtype: DType) -> bool {
        self.binary[op as usize].contains(dtype)
    }

    /// Whether an element of a buffer can be combined atomically by an op. No driver has other ones.
    pub fn has_atomic(&self, op: BinaryOp, dtype: DType) -> bool {
        use BinaryOp::{Add, And, Max, Min, Or, Sub, Xor};
        let set = if op == Add { self.atomic_add } else { self.atomics };
        set.contains(dtype) && matches!(op, Add | Sub | Max | Min | And | Or | Xor)
    }

    /// Whether a load or a store of elements of `dtype` can have this order; what is missing
    /// otherwise. No rewriting can give it, so the verifier and `legalize` ask the same question.
    pub fn has_order(&self, order: Order, dtype: DType) -> Result<(), &'static str> {
        let plain = matches!(order, Order::Plain | Order::Streaming | Order::AsyncCopy);
        if !plain && !self.atomics.contains(dtype) {
            return Err("atomic accesses of this dtype");
        }
        if order == Order::AcquireSpin && self.progress != Progress::Occupancy {
            return Err("promise that groups go on, so none may wait");
        }
        self.has_scope(order)
    }

    /// Whether accesses of this order reach as far as they say: all that acquire or release do so
    /// for the whole device.
    pub fn has_scope(&self, order: Order) -> Result<(), &'static str> {
        let needs = matches!(order, Order::Acquire | Order::Release | Order::AcquireRelease);
        if needs && !self.device_scope {
            return Err("acquire and release at device scope");
        }
        Ok(())
    }

    /// Whether a ternary op on `dtype` needs no decomposition.
    #[inline]
    pub fn has_ternary(&self, op: TernaryOp, dtype: DType) -> bool {
        self.ternary[op as usize].contains(dtype)
    }
}
