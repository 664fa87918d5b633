//! The registers that code may use, for each machine.

use super::machine::Class;
use super::target::Isa;

/// The registers of a machine as allocation sees them. Arrays are by [`Class`], sets are bit masks of
/// hardware numbers.
#[derive(Debug)]
pub(super) struct RegisterFile {
    /// Those that values may live in. Lower numbers come first.
    pub(super) allocatable: [u32; 3],
    /// Those that a function gives back as they were (of vectors perhaps the lower half only): they
    /// cost a store and a load, and are taken last.
    pub(super) preserved: [u32; 3],
    /// Those that hold spilled operands for one operation, in order of use. One that is allocatable
    /// is set aside only if a first attempt without it fails.
    pub(super) scratch: [&'static [u8]; 3],
    /// Bytes that a spilled vector takes.
    pub(super) vector_slot: u32,
    /// Where the four arguments arrive.
    pub(super) arrivals: [u8; 4],
}

impl RegisterFile {
    /// What is allocatable when so many scratch registers are set aside.
    pub(super) fn without_scratch(&self, n: usize) -> [u32; 3] {
        let mut free = self.allocatable;
        for (free, scratch) in free.iter_mut().zip(self.scratch) {
            scratch.iter().take(n).for_each(|&number| *free &= !(1 << number));
        }
        free
    }

    /// Those that a value of this class may live in while a function is called.
    pub(super) fn outlives_calls(&self, class: Class) -> u32 {
        match class {
            Class::Gpr => self.preserved[class as usize],
            // Of no vector register all bits are preserved, and of no mask any.
            _ => 0,
        }
    }
}

/// All general registers but `rax`, `rcx`, `rdx`, which serve operations with fixed registers too, and
/// the stack pointer.
#[cfg(any(test, not(target_arch = "aarch64")))]
const X86_GENERAL: u32 = 0xffff & !(1 | 1 << 1 | 1 << 2 | 1 << 4);
/// `rbx`, `rbp`, `r12` to `r15`.
#[cfg(any(test, not(target_arch = "aarch64")))]
const X86_PRESERVED: u32 = 1 << 3 | 1 << 5 | 0xf000;
/// `rdi`, `rsi`, `rdx`, `rcx`.
#[cfg(any(test, not(target_arch = "aarch64")))]
const X86_ARRIVALS: [u8; 4] = [7, 6, 2, 1];
/// `k0` is no write mask, and never one of the first two operands that are spilled.
#[cfg(any(test, not(target_arch = "aarch64")))]
const X86_MASKS: u32 = 0xfe;

#[cfg(any(test, not(target_arch = "aarch64")))]
static AVX2: RegisterFile = RegisterFile {
    allocatable: [X86_GENERAL, 0xffff, X86_MASKS],
    preserved: [X86_PRESERVED, 0, 0],
    scratch: [&[1, 2, 0], &[15, 14, 13], &[7, 6, 0]],
    vector_slot: 64,
    arrivals: X86_ARRIVALS,
};

#[cfg(any(test, not(target_arch = "aarch64")))]
static AVX512: RegisterFile = RegisterFile {
    allocatable: [X86_GENERAL, u32::MAX, X86_MASKS],
    preserved: [X86_PRESERVED, 0, 0],
    scratch: [&[1, 2, 0], &[31, 30, 29], &[7, 6, 0]],
    vector_slot: 64,
    arrivals: X86_ARRIVALS,
};

/// `x16` and `x17` hold addresses and constants within one operation, `x18` is the platform's, `x29`
/// and `x30` are the frame's and where to return; `v31` is what `x16` is. A selection reads four
/// general registers, which may all be spilled.
#[cfg(any(test, target_arch = "aarch64"))]
static NEON: RegisterFile = RegisterFile {
    allocatable: [0xe1ff | 0x1ff8_0000, 0x7fff_ffff, 0],
    preserved: [0x1ff8_0000, 0xff00, 0],
    scratch: [&[9, 10, 11, 12], &[28, 29, 30], &[0]],
    vector_slot: 16,
    arrivals: [0, 1, 2, 3],
};

impl Isa {
    pub(super) const fn registers(self) -> &'static RegisterFile {
        match self {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx2 => &AVX2,
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Self::Avx512 => &AVX512,
            #[cfg(any(test, target_arch = "aarch64"))]
            Self::Neon { .. } => &NEON,
        }
    }
}
