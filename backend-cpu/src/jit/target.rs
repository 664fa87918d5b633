//! The instruction sets the generator can aim at.

use super::asm::Len;

/// An instruction set, chosen at run time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Isa {
    /// AVX2 with FMA, F16C, BMI1 and BMI2: sixteen 256-bit registers.
    Avx2,
    /// AVX-512 F, BW, DQ and VL on top: thirty-two 512-bit registers and masks.
    Avx512,
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
        None
    }

    /// Bytes of a full vector register.
    pub(crate) const fn vector_bytes(self) -> usize {
        match self {
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        }
    }

    pub(super) const fn n_vector_registers(self) -> u8 {
        match self {
            Self::Avx2 => 16,
            Self::Avx512 => 32,
        }
    }

    pub(super) const fn widest(self) -> Len {
        match self {
            Self::Avx2 => Len::Y,
            Self::Avx512 => Len::Z,
        }
    }
}
