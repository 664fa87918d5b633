//! What a contraction is: element types, dimensions in four groups, the instruction set to use.

use half::{bf16, f16};
use std::ops::RangeInclusive;

/// The type of the elements of an operand or of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of binary32.
    BF16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Signed integers of 8 bits.
    I8,
    /// Unsigned integers of 8 bits.
    U8,
    /// Signed integers of 32 bits; a result only.
    I32,
}

impl DType {
    /// How many there are.
    pub(super) const COUNT: usize = DType::I32 as usize + 1;

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::F16 | DType::BF16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::F64 => 8,
        }
    }

    /// Whether this is an integer of 8 bits.
    pub(super) fn is_byte(self) -> bool {
        matches!(self, DType::I8 | DType::U8)
    }
}

/// A Rust type that is a [`DType`].
pub trait Scalar: Copy + Send + Sync + 'static {
    /// The name of this type.
    const DTYPE: DType;
}

macro_rules! scalar {
    ($($type:ty => $dtype:ident),*) => {
        $(impl Scalar for $type {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

scalar!(f16 => F16, bf16 => BF16, f32 => F32, f64 => F64, i8 => I8, u8 => U8, i32 => I32);

/// The type sums are accumulated in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acc {
    /// Products and sums in binary32.
    F32,
    /// Products and sums in binary64.
    F64,
    /// Products of 8-bit integers, exact, and sums modulo 2^32, in whatever order they are added.
    I32,
}

impl Acc {
    /// The accumulator as an element type.
    pub fn dtype(self) -> DType {
        match self {
            Acc::F32 => DType::F32,
            Acc::F64 => DType::F64,
            Acc::I32 => DType::I32,
        }
    }
}

/// One dimension: its length, and its strides in elements in A, B and C.
///
/// A stride may be zero (broadcast), negative (flip) or overlap others (convolution windows). An
/// operand that has no such dimension has stride zero: C for a dimension of k, B for one of m, A
/// for one of n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dim {
    /// Number of indices.
    pub len: usize,
    /// Stride in A.
    pub a: isize,
    /// Stride in B.
    pub b: isize,
    /// Stride in C.
    pub c: isize,
}

impl Dim {
    /// A dimension of the batch: in A, B and C.
    pub fn batch(len: usize, a: isize, b: isize, c: isize) -> Dim {
        Dim { len, a, b, c }
    }

    /// A dimension of m: in A and C.
    pub fn m(len: usize, a: isize, c: isize) -> Dim {
        Dim { len, a, b: 0, c }
    }

    /// A dimension of n: in B and C.
    pub fn n(len: usize, b: isize, c: isize) -> Dim {
        Dim { len, a: 0, b, c }
    }

    /// A dimension of k: in A and B.
    pub fn k(len: usize, a: isize, b: isize) -> Dim {
        Dim { len, a, b, c: 0 }
    }
}

/// `C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]`, every group any number of
/// dimensions, outermost first.
///
/// Each index of C must be written once: no two (batch, m, n) may share an element of C.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// Element type of A.
    pub a: DType,
    /// Element type of B.
    pub b: DType,
    /// Type of the accumulators.
    pub acc: Acc,
    /// Element type of C.
    pub c: DType,
    /// Dimensions shared by A, B and C.
    pub batch: Vec<Dim>,
    /// Dimensions of A and C.
    pub m: Vec<Dim>,
    /// Dimensions of B and C.
    pub n: Vec<Dim>,
    /// Dimensions summed over.
    pub k: Vec<Dim>,
}

/// Why a contraction cannot be planned or run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// An operand is wider than the accumulators.
    #[error("operand of type {operand:?} would lose precision in accumulators of type {acc:?}")]
    Precision {
        /// Type of the operand.
        operand: DType,
        /// Type of the accumulators.
        acc: Acc,
    },
    /// Integers and floating-point numbers, or integers of several widths, where one kind goes only.
    #[error(
        "no product of {a:?} and {b:?} is summed in {acc:?} and stored as {c:?}: operands of I8 and \
         U8, either of them, are summed in I32 and stored as I32; convert others to a floating-point \
         type, which is summed in F32 or F64 and stored as any such type"
    )]
    Types {
        /// Type of A.
        a: DType,
        /// Type of B.
        b: DType,
        /// Type of the accumulators.
        acc: Acc,
        /// Type of C.
        c: DType,
    },
    /// A dimension has a stride in an operand that its group does not have.
    #[error("dimension {dim} of group {group} has a stride in {operand}, which lacks that group")]
    ForeignStride {
        /// Name of the group.
        group: &'static str,
        /// Position of the dimension in the group.
        dim: usize,
        /// Name of the operand.
        operand: &'static str,
    },
    /// The number of indices or the span of offsets does not fit the machine.
    #[error("contraction too large: its extent in {what} exceeds the address space")]
    TooLarge {
        /// What overflows.
        what: &'static str,
    },
    /// The instruction set asked for is not available on this machine.
    #[error("instruction set {isa:?} is not available on this machine")]
    Unavailable {
        /// The instruction set.
        isa: Isa,
    },
    /// A slice passed to a safe entry point has the wrong type or does not cover the offsets.
    #[error("operand {operand} does not fit: {why}")]
    Operand {
        /// Name of the operand.
        operand: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A run was given an epilogue its plan was not made for.
    #[error("the plan of this contraction was not made for an epilogue")]
    Epilogue,
    /// A run was given a prologue its plan was not made for, or none where it was.
    #[error("the plan of this contraction was made {} a prologue", if *.needed { "for" } else { "without" })]
    Prologue {
        /// Whether the plan needs one.
        needed: bool,
    },
    /// No operand of this number (0 for A, 1 for B) has the type of the accumulators.
    #[error(
        "a prologue computes A (0) or B (1) in the type of the accumulators, which operand {side} is not"
    )]
    Computed {
        /// The number given.
        side: usize,
    },
    /// The packing buffers could not be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] crate::memory::OutOfMemory),
}

impl Spec {
    /// The product `C[m, n] = A[m, k] B[k, n]` of row-major matrices of one element type,
    /// accumulated in `f32`, but `f64` in `f64`, and integers in `i32`, of which C then is.
    pub fn matmul(dtype: DType, m: usize, n: usize, k: usize) -> Spec {
        let (acc, c) = match dtype {
            DType::F64 => (Acc::F64, dtype),
            DType::I8 | DType::U8 | DType::I32 => (Acc::I32, DType::I32),
            DType::F16 | DType::BF16 | DType::F32 => (Acc::F32, dtype),
        };
        Spec {
            a: dtype,
            b: dtype,
            acc,
            c,
            batch: vec![],
            m: vec![Dim::m(m, k as isize, n as isize)],
            n: vec![Dim::n(n, 1, 1)],
            k: vec![Dim::k(k, 1, n as isize)],
        }
    }

    /// Number of multiply-adds, saturating.
    pub fn work(&self) -> usize {
        [&self.batch, &self.m, &self.n, &self.k].into_iter().fold(1, |work: usize, group| {
            group.iter().fold(work, |work, d| work.saturating_mul(d.len))
        })
    }

    /// The dimensions of each group, with their names.
    pub(super) fn groups(&self) -> [(&'static str, &[Dim]); 4] {
        [("batch", &self.batch), ("m", &self.m), ("n", &self.n), ("k", &self.k)]
    }

    /// Checks types, strides and sizes.
    pub(super) fn check(&self) -> Result<(), ContractError> {
        let &Spec { a, b, acc, c, .. } = self;
        let fits = match acc {
            Acc::I32 => a.is_byte() && b.is_byte() && c == DType::I32,
            Acc::F32 | Acc::F64 => ![a, b, c].iter().any(|t| t.is_byte() || *t == DType::I32),
        };
        if !fits {
            return Err(ContractError::Types { a, b, acc, c });
        }
        for operand in [self.a, self.b] {
            if self.acc == Acc::F32 && operand == DType::F64 {
                return Err(ContractError::Precision { operand, acc: self.acc });
            }
        }
        let foreign: [(_, _, fn(&Dim) -> isize); 3] =
            [("m", "B", |d| d.b), ("n", "A", |d| d.a), ("k", "C", |d| d.c)];
        for (name, operand, stride) in foreign {
            let dims = self.groups().into_iter().find(|g| g.0 == name).map_or(&[][..], |g| g.1);
            if let Some(dim) = dims.iter().position(|d| stride(d) != 0) {
                return Err(ContractError::ForeignStride { group: name, dim, operand });
            }
        }
        for (what, dims) in self.groups() {
            let len = dims.iter().try_fold(1_usize, |n, d| n.checked_mul(d.len));
            if len.is_none_or(|n| n > isize::MAX as usize / 64) {
                return Err(ContractError::TooLarge { what });
            }
        }
        for (what, stride) in operands() {
            self.span(stride).ok_or(ContractError::TooLarge { what })?;
        }
        Ok(())
    }

    /// The least and the greatest offset an operand is accessed at, in elements; `None` if they
    /// overflow. An empty contraction touches nothing; its span is 0 to 0.
    pub(super) fn span(&self, stride: fn(&Dim) -> isize) -> Option<RangeInclusive<isize>> {
        let (mut low, mut high) = (0_isize, 0_isize);
        for d in self.groups().into_iter().flat_map(|g| g.1) {
            let reach = stride(d).checked_mul(d.len.saturating_sub(1).try_into().ok()?)?;
            if reach < 0 {
                low = low.checked_add(reach)?;
            } else {
                high = high.checked_add(reach)?;
            }
        }
        // Bytes must be addressable too, with room for the steps past the end.
        (low > isize::MIN / 64 && high < isize::MAX / 64).then_some(low..=high)
    }

    /// Whether every (batch, m, n) has an element of C of its own, as far as a simple argument goes:
    /// sorted by stride, each dimension steps over all that the smaller ones reach.
    pub(super) fn is_injective(&self) -> bool {
        let dims = [&self.batch, &self.m, &self.n].into_iter().flatten().filter(|d| d.len > 1);
        let mut dims: Vec<_> = dims.map(|d| (d.c.unsigned_abs(), d.len - 1)).collect();
        dims.sort_unstable();
        let mut reach = 0_usize;
        dims.iter().all(|&(stride, steps)| {
            let apart = stride > reach;
            reach = reach.saturating_add(stride.saturating_mul(steps));
            apart
        })
    }

    /// Whether there is no (batch, m, n) at all.
    pub(super) fn is_empty(&self) -> bool {
        [&self.batch, &self.m, &self.n].into_iter().flatten().any(|d| d.len == 0)
    }
}

/// The operands with their strides.
pub(super) fn operands() -> [(&'static str, fn(&Dim) -> isize); 3] {
    [("A", |d| d.a), ("B", |d| d.b), ("C", |d| d.c)]
}

/// An instruction set there are kernels for, best last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Whatever the target guarantees: SSE2 on x86-64.
    Portable,
    /// The 128-bit vectors of 64-bit Arm.
    Neon,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Isa {
    /// The best instruction set of this machine.
    pub fn detect() -> Isa {
        let best_first = [Isa::Avx512, Isa::Avx2, Isa::Neon];
        best_first.into_iter().find(|isa| isa.is_available()).unwrap_or(Isa::Portable)
    }

    /// Whether this machine, and its operating system, support the instruction set.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c")
            }
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => {
                Isa::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => std::arch::is_aarch64_feature_detected!("neon"),
            _ => false,
        }
    }
}
