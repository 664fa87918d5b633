//! The instruction sets the generator can aim at.

use super::machine::{Bools, Has};
use super::x86::asm::Len;

/// What code is made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Target {
    pub(super) isa: Isa,
    /// Large outputs of kernels that touch at least this many bytes are written past the caches: they
    /// would not stay there until somebody reads them, and writing around saves reading them first.
    pub(super) stream_from: u64,
}

impl Target {
    /// This machine, limited to an instruction set.
    pub(super) fn of(isa: Isa) -> Self {
        if !isa.has(Has::Streaming) {
            return Self { isa, stream_from: u64::MAX };
        }
        // A virtual machine is told of a cache it shares with many others.
        let cache = last_level_cache().unwrap_or(32 << 20);
        Self { isa, stream_from: cache.clamp(8 << 20, 64 << 20) }
    }
}

/// Bytes of the last cache level, as the processor reports it.
fn last_level_cache() -> Option<u64> {
    use std::sync::OnceLock;
    static BYTES: OnceLock<Option<u64>> = OnceLock::new();
    #[cfg(target_arch = "x86_64")]
    return *BYTES.get_or_init(|| {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        // Leaf 4 on Intel, 0x8000001d on AMD, the same layout: subleaves are caches.
        let amd = __cpuid(0x8000_0000).eax >= 0x8000_001d;
        let intel = __cpuid(0).eax >= 4;
        let leaves = [(intel, 4), (amd, 0x8000_001d)];
        let caches = leaves.into_iter().filter(|leaf| leaf.0).flat_map(|(_, leaf)| {
            (0..8).map(move |n| __cpuid_count(leaf, n)).take_while(|it| it.eax & 31 != 0)
        });
        let bytes = |it: std::arch::x86_64::CpuidResult| {
            let ways = u64::from(it.ebx >> 22) + 1;
            let partitions = u64::from(it.ebx >> 12 & 0x3ff) + 1;
            let line = u64::from(it.ebx & 0xfff) + 1;
            ways * partitions * line * (u64::from(it.ecx) + 1)
        };
        caches.map(bytes).max()
    });
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// An instruction set, chosen at run time. Builds know those of their machine, tests know all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Isa {
    /// AVX2 with FMA, F16C, BMI1 and BMI2: sixteen 256-bit registers.
    #[cfg(any(test, not(target_arch = "aarch64")))]
    Avx2,
    /// AVX-512 F, BW, DQ and VL on top: thirty-two 512-bit registers and masks.
    #[cfg(any(test, not(target_arch = "aarch64")))]
    Avx512,
    /// What every 64-bit Arm processor has: thirty-two 128-bit registers.
    #[cfg(any(test, target_arch = "aarch64"))]
    Neon {
        /// Whether it computes in `f16` (FEAT_FP16).
        halves: bool,
    },
}

impl Isa {
    /// The best instruction set of this processor and operating system, if any will do.
    pub(crate) fn detect() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("popcnt");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl");
            match (avx2, avx512) {
                (true, true) => return Some(Self::Avx512),
                (true, false) => return Some(Self::Avx2),
                (false, _) => {}
            }
        }
        #[cfg(target_arch = "aarch64")]
        return Some(Self::Neon { halves: std::arch::is_aarch64_feature_detected!("fp16") });
        #[cfg(not(target_arch = "aarch64"))]
        None
    }

    /// Whether kernels may compute in `f16`.
    pub(crate) const fn computes_halves(self) -> bool {
        self.has(Has::Halves)
    }

    /// Bytes of a full vector register.
    pub(crate) const fn vector_bytes(self) -> usize {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx2 => 32,
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx512 => 64,
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { .. } => 16,
        }
    }

    /// Whether there are instructions that load and store vectors under masks.
    pub(super) const fn masks_memory(self) -> bool {
        self.folds_memory()
    }

    /// Vector registers that values may live in.
    pub(super) const fn n_vector_registers(self) -> u8 {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx2 => 16,
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx512 => 32,
            // One is left to sequences of the emitter.
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { .. } => 31,
        }
    }

    /// The length of a full register (x86).
    pub(super) const fn widest(self) -> Len {
        if self.vector_bytes() == 64 { Len::Z } else { Len::Y }
    }

    /// How vectors of bools are held.
    pub(super) const fn bools(self) -> Bools {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx512 => Bools::MaskRegister,
            _ => Bools::WideLanes,
        }
    }

    /// Whether bools are bits of mask registers.
    pub(super) const fn has_masks(self) -> bool {
        matches!(self.bools(), Bools::MaskRegister)
    }

    /// Whether lowering may write rows of the x86 table.
    pub(super) const fn is_x86(self) -> bool {
        self.folds_memory()
    }

    /// Whether an operand of arithmetic may be in memory. Elsewhere loads are operations of their own,
    /// and every [`Place`](super::machine::Place) of other vector operations is a register.
    pub(super) const fn folds_memory(self) -> bool {
        match self {
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { .. } => false,
            #[cfg(any(test, not(target_arch = "aarch64")))]
            _ => true,
        }
    }

    /// Whether the index of an address may be scaled by 1, 2, 4 or 8 whatever is accessed; elsewhere
    /// by the size of the access only.
    pub(super) const fn any_scale(self) -> bool {
        self.folds_memory()
    }

    /// Whether a comparison holds this number.
    pub(super) const fn compares_with(self, n: i32) -> bool {
        self.folds_memory()
            || matches!(n, 0..0x1000)
            || n & 0xfff == 0 && matches!(n, 0..0x100_0000)
    }

    /// Whether there is an instruction, or a kind of instructions.
    pub(super) const fn has(self, what: Has) -> bool {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx2 => matches!(what, Has::AnyShiftCount | Has::Gather | Has::Streaming),
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx512 => matches!(
                what,
                Has::MulI64
                    | Has::MaxI64
                    | Has::ShrI64
                    | Has::AbsI64
                    | Has::AnyShiftCount
                    | Has::BroadcastGpr
                    | Has::Gather
                    | Has::Streaming
            ),
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { halves } if matches!(what, Has::Halves) => halves,
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { .. } => matches!(
                what,
                Has::ShrI64
                    | Has::AbsI64
                    | Has::MulI8
                    | Has::NarrowShifts
                    | Has::NanExtremum
                    | Has::SignOps
                    | Has::IntCompare
                    | Has::SaturatingConversions
                    | Has::BroadcastGpr
            ),
        }
    }
}
