//! What the CPU backend may use, and what it therefore can do.

use crate::blocks;
use crate::jit;
use zyx_core::hal::{Caps, DeviceInfo, DeviceKind, Flash, Progress};
use zyx_core::{BinaryOp, DType, DTypeSet, TernaryOp, UnaryOp};

/// The most an instruction set may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// No generated code at all: kernels run block by block, and library kernels are portable.
    Portable,
    /// NEON, of 64-bit Arm.
    Neon,
    /// At most AVX2 with FMA.
    Avx2,
    /// At most AVX-512 (F, BW, DQ, VL).
    Avx512,
}

/// Limits on what the backend uses; `None` for the best there is.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Instruction set at most used.
    pub level: Option<Level>,
    /// Number of threads.
    pub threads: Option<usize>,
    /// Bytes of the scores of an attention from which on its gradient computes them again instead
    /// of keeping them; if these are few, attention alone stores no more than so many either.
    pub recompute: Option<usize>,
}

/// What [`Config::recompute`] is unless set.
const RECOMPUTE: u64 = 256 << 20;
/// Bytes of scores from which on they are not stored if nobody needs them later: they do not fit
/// the second-level caches any more.
const STREAMED: u64 = 2 << 20;

impl Config {
    /// The limits in the environment: `ZYX_CPU=portable|neon|avx2|avx512` and `ZYX_THREADS=n`.
    ///
    /// # Errors
    /// When a value is none of these: what it is and what is allowed.
    pub fn from_env() -> Result<Config, String> {
        let [level, threads] = ["ZYX_CPU", "ZYX_THREADS"].map(|name| {
            let value = std::env::var_os(name).unwrap_or_default();
            value.to_string_lossy().trim().to_owned()
        });
        Config::read(&level, &threads)
    }

    fn read(level: &str, threads: &str) -> Result<Config, String> {
        let level = match level {
            "" => None,
            "portable" => Some(Level::Portable),
            "neon" => Some(Level::Neon),
            "avx2" => Some(Level::Avx2),
            "avx512" => Some(Level::Avx512),
            other => {
                let allowed = "write portable, neon, avx2 or avx512";
                return Err(format!("ZYX_CPU is `{other}`; {allowed}"));
            }
        };
        let threads = match threads.parse() {
            _ if threads.is_empty() => None,
            Ok(n) if n > 0 => Some(n),
            _ => return Err(format!("ZYX_THREADS is `{threads}`; write a number of 1 or more")),
        };
        Ok(Config { level, threads, recompute: None })
    }

    pub(crate) fn info(&self) -> DeviceInfo {
        let isa = match self.jit_isa() {
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Some(jit::Isa::Avx512) => "AVX-512",
            #[cfg(any(test, not(target_arch = "aarch64")))]
            Some(jit::Isa::Avx2) => "AVX2",
            #[cfg(any(test, target_arch = "aarch64"))]
            Some(jit::Isa::Neon { .. }) => "NEON",
            None if self.contract_isa().unwrap_or_else(zyx_gemm::Isa::detect)
                == zyx_gemm::Isa::Neon =>
            {
                "NEON"
            }
            None => "portable",
        };
        let name = format!("{} threads of {}, {isa}", self.threads(), std::env::consts::ARCH);
        DeviceInfo { spec: "cpu:0".into(), name, memory: 0, kind: DeviceKind::Cpu }
    }

    fn threads(&self) -> usize {
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        self.threads.unwrap_or(available).max(1)
    }

    /// The instruction set kernels are generated for.
    pub(crate) fn jit_isa(&self) -> Option<jit::Isa> {
        let best = jit::Isa::detect()?;
        match self.level {
            Some(Level::Portable) => None,
            #[cfg(target_arch = "x86_64")]
            Some(Level::Avx2) => Some(jit::Isa::Avx2),
            Some(_) | None => Some(best),
        }
    }

    /// The instruction set of library kernels, if it is limited; a limit of another architecture is none.
    pub(crate) fn contract_isa(&self) -> Option<zyx_gemm::Isa> {
        let isa = match self.level? {
            Level::Portable => zyx_gemm::Isa::Portable,
            Level::Neon => zyx_gemm::Isa::Neon,
            Level::Avx2 => zyx_gemm::Isa::Avx2,
            Level::Avx512 => zyx_gemm::Isa::Avx512,
        };
        isa.is_available().then_some(isa)
    }

    /// The same without functions that block programs alone have.
    pub(crate) fn without_functions(mut caps: Caps) -> Caps {
        for &op in UnaryOp::ALL {
            if blocks::computes(op, DType::F32) {
                let all = &mut caps.unary[op as usize];
                *all = all.without(DTypeSet::of(&[DType::F32]));
            }
        }
        caps
    }

    /// What kernels may contain, given the instruction set they are generated for, if they are.
    pub(crate) fn caps(&self, isa: Option<jit::Isa>) -> Caps {
        let mut caps = Caps::default();
        caps.threads = self.threads();
        // Blocks have as many lanes of whatever they hold.
        caps.vector_bytes = isa.map_or(8 * blocks::LANES, jit::Isa::vector_bytes);
        caps.masked = true;
        caps.unified_memory = true;
        caps.fused_calls = true;
        caps.prologues = true;
        caps.fast_fma = isa.is_some();
        caps.progress = Progress::Occupancy;
        // Two tiles, the operands and the sums of a block in the second-level cache.
        let large = self.recompute.map_or(RECOMPUTE, |bytes| bytes as u64);
        let least = large.min(STREAMED);
        caps.flash = Some(Flash { library: true, block: [192, 192], least, large });
        let all = DTypeSet::ALL;
        let halves = DTypeSet::of(&[DType::F16]);
        if isa.is_some_and(jit::Isa::computes_halves) {
            let narrow = [DType::U8, DType::U16, DType::I8, DType::I16, DType::BF16];
            caps.compute = all.without(DTypeSet::of(&narrow));
        }
        // Decomposed into arithmetic in f32; called per element in f64.
        let decomposed = DTypeSet::of(&[DType::F16, DType::F32]);
        for &op in UnaryOp::ALL {
            caps.unary[op as usize] = match op {
                _ if isa.is_none() && blocks::computes(op, DType::F32) => all,
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not | UnaryOp::Recip => all,
                UnaryOp::Sqrt | UnaryOp::Floor | UnaryOp::Ceil => all,
                UnaryOp::Round | UnaryOp::Trunc => all,
                _ => all.without(decomposed),
            };
        }
        for &op in BinaryOp::ALL {
            caps.binary[op as usize] = match op {
                BinaryOp::Pow | BinaryOp::Atan2 => all.without(decomposed),
                BinaryOp::LogAddExp | BinaryOp::Gcd => DTypeSet::NONE,
                BinaryOp::Rem => all.without(DTypeSet::of(&[DType::F16, DType::F32, DType::F64])),
                _ => all,
            };
        }
        for &op in TernaryOp::ALL {
            caps.ternary[op as usize] = all;
        }
        // In f32 the product is exact.
        caps.ternary[TernaryOp::MulAdd as usize] = all.without(halves);
        if isa.is_none() {
            // Without an instruction that rounds once it would be a function call for each element.
            let floats = DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
            caps.ternary[TernaryOp::MulAdd as usize] = all.without(floats);
        }
        caps
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Level};

    #[test]
    fn limits_are_read_or_refused() {
        let read = |level, threads| Config::read(level, threads).map(|c| (c.level, c.threads));
        assert_eq!(read("", ""), Ok((None, None)));
        assert_eq!(read("avx2", "3"), Ok((Some(Level::Avx2), Some(3))));
        for (level, threads, named) in [("sse2", "", "ZYX_CPU is `sse2`"), ("AVX2", "", "avx512")] {
            assert!(read(level, threads).unwrap_err().contains(named));
        }
        for threads in ["0", "-1", "four", "1.5", "99999999999999999999"] {
            let error = read("", threads).unwrap_err();
            assert!(error.starts_with(&format!("ZYX_THREADS is `{threads}`")), "{error}");
        }
    }
}
