//! Random kernels, and how to make a failing one small.
//!
//! Lowering produces only some of the kernels the IR allows; passes and backends have to be right
//! on all. [`random_kernel`] makes well-formed kernels directly: nested loops, vectors, guards,
//! gathers, ifs, breaks, register storage, every dtype and scalar op, several arguments. They pass
//! `verify` with nothing unproven, have no races, read nothing that was not stored, and finish
//! soon. The same seed and options give the same kernel on every machine.
//!
//! **Replaying.** A test prints the seed; `random_kernel(seed, &options)` is the kernel again, with
//! inputs from [`random_inputs`] and [`random_vars`] under the same seed.
//!
//! **Shrinking.** `shrink(&kernel, |k| fails(k))` removes ops, loops and operands while the test
//! still fails. Print the result: the text form is the regression test.
//!
//! ```
//! use zyx_ir::ir::generate::{Options, random_inputs, random_kernel, random_vars};
//! use zyx_ir::ir::interp;
//! let kernel = random_kernel(7, &Options::default());
//! let mut buffers = random_inputs(&kernel, 7);
//! let vars = random_vars(&kernel, 7);
//! interp::interpret(&kernel, &mut buffers, &vars, &interp::Options::default()).unwrap();
//! ```

mod build;
mod expression;
mod shrink;

pub use shrink::shrink;

use super::kernel::Kernel;
use crate::caps::Caps;
use crate::dtype::{DType, DTypeSet};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;

/// What random kernels may contain.
#[derive(Clone, Debug)]
pub struct Options {
    /// About how many statements (loads, stores, loops, values) a kernel has.
    pub size: usize,
    /// Dtypes of values and buffers.
    pub dtypes: DTypeSet,
    /// Only ops whose result is the same on every device: correctly rounded, and no `Max` and
    /// `Min` of floats, whose zeros differ in sign.
    pub exact: bool,
    /// Most lanes of a vector; 1 for scalar kernels.
    pub max_lanes: u8,
    /// Accesses guarded per lane and indexed by vectors.
    pub masked: bool,
    /// Indices and loop counters of 32 bits beside those of 64.
    pub narrow: bool,
    /// Vectors put together from two others.
    pub joined: bool,
    /// Atomic updates of buffers.
    pub atomics: bool,
    /// Wrap the kernel in group and local loops with shared storage and barriers.
    pub local: bool,
    /// Ops and dtypes outside these capabilities are not used.
    pub caps: Caps,
}

impl Default for Options {
    /// Everything a CPU can be asked to do, results equal on every device.
    fn default() -> Options {
        Options {
            size: 24,
            dtypes: DTypeSet::ALL,
            exact: true,
            max_lanes: 16,
            masked: true,
            narrow: true,
            joined: true,
            atomics: false,
            local: false,
            caps: whole(),
        }
    }
}

/// What the interpreter computes, which has every op on every dtype.
fn whole() -> Caps {
    let binary = vec![DTypeSet::ALL; BinaryOp::ALL.len()];
    Caps { compute: DTypeSet::ALL, binary, ..Caps::default() }
}

impl Options {
    /// What a device can do without legalisation.
    pub fn for_caps(caps: &Caps) -> Options {
        Options {
            dtypes: caps.storage,
            max_lanes: (caps.vector_bytes / 4).clamp(1, 16) as u8,
            masked: caps.masked,
            local: caps.simt && caps.max_local > 1,
            atomics: false,
            caps: caps.clone(),
            ..Options::default()
        }
    }

    /// Scalar kernels.
    pub fn scalar() -> Options {
        Options { max_lanes: 1, ..Options::default() }
    }

    fn unary(&self, op: UnaryOp, dtype: DType) -> bool {
        op.domain().contains(dtype)
            && self.computes(dtype)
            && self.caps.has_unary(op, dtype)
            && (!self.exact || op.ulp() == 0)
    }

    fn binary(&self, op: BinaryOp, dtype: DType) -> bool {
        let signs = dtype.is_float() && matches!(op, BinaryOp::Max | BinaryOp::Min);
        op.domain().contains(dtype)
            && self.computes(dtype)
            && self.caps.has_binary(op, dtype)
            && (!self.exact || (op.ulp() == 0 && !signs))
    }

    fn ternary(&self, op: TernaryOp, dtype: DType) -> bool {
        op.domain().contains(dtype)
            && (op == TernaryOp::Where || self.computes(dtype))
            && self.caps.has_ternary(op, dtype)
            && (!self.exact || op.ulp() == 0)
    }

    /// Whether a fold may be part of a kernel: its grouping must not show.
    fn fold(&self, op: BinaryOp, dtype: DType) -> bool {
        op.is_associative()
            && self.binary(op, dtype)
            && (!self.exact || op.is_exactly_associative(dtype))
    }

    fn computes(&self, dtype: DType) -> bool {
        dtype == DType::Bool || self.caps.compute.contains(dtype)
    }

    /// Lanes a vector of `dtype` may have at most.
    fn lanes(&self, dtype: DType) -> u8 {
        match self.caps.vector_bytes {
            0 => self.max_lanes,
            bytes if dtype.is_float() => self.max_lanes.min((bytes / dtype.size()) as u8),
            bytes => self.max_lanes.min(bytes.min(255) as u8),
        }
    }
}

/// A random well-formed kernel.
pub fn random_kernel(seed: u64, options: &Options) -> Kernel {
    build::kernel(seed, options)
}

/// Contents for the buffers of a kernel, by slot: mostly small numbers, some special ones.
/// Buffers that are only stored to are filled too, to show that they are not touched elsewhere.
pub fn random_inputs(kernel: &Kernel, seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::new(seed ^ 0xda7a);
    let buffer = |info: &super::ParamInfo| {
        let mut bytes = Vec::new();
        for _ in 0..info.len {
            let bits = random.scalar(info.dtype).bits();
            bytes.extend_from_slice(&bits.to_le_bytes()[..info.dtype.size()]);
        }
        bytes
    };
    kernel.params().iter().map(buffer).collect()
}

/// Scalar arguments of a kernel, by slot, as bits; integers within their declared range.
pub fn random_vars(kernel: &Kernel, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed ^ 0x5ca1a5);
    let scalar = |info: &super::VarInfo| match info.dtype.is_int() {
        true => Scalar::from_i64(info.dtype, random.between(info.min, info.max)).bits(),
        false => random.scalar(info.dtype).bits(),
    };
    kernel.vars().iter().map(scalar).collect()
}

/// Whether two buffers of `dtype` hold the same elements, all NaNs being one.
pub fn same_elements(dtype: DType, a: &[u8], b: &[u8]) -> bool {
    let size = dtype.size();
    let scalar = |bytes: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        Scalar::from_bits(dtype, u64::from_le_bytes(wide))
    };
    let same = |(x, y): (&[u8], &[u8])| {
        let (x, y) = (scalar(x), scalar(y));
        x == y || dtype.is_float() && x.to_f64().is_nan() && y.to_f64().is_nan()
    };
    a.len() == b.len() && a.chunks_exact(size).zip(b.chunks_exact(size)).all(same)
}

/// A small generator: SplitMix64 (Steele, Lea and Flood 2014). Tests need repeatability, not
/// quality.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that gives the same numbers for the same seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        crate::ir::interp::splitmix(&mut self.0)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.bits() % n.max(1) as u64) as usize
    }

    /// A number between two bounds, inclusive.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        let width = (max as i128 - min as i128 + 1) as u128;
        (min as i128 + (self.bits() as u128 % width) as i128) as i64
    }

    /// True once in `n` times.
    pub fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// One of the items.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// An element worth testing: mostly small, at times an edge of its dtype or any bits.
    pub fn scalar(&mut self, dtype: DType) -> Scalar {
        let edges = [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e-41];
        match self.below(16) {
            0 => Scalar::from_f64(dtype, self.pick(&edges)),
            1 => Scalar::lowest(dtype),
            2 => Scalar::highest(dtype),
            3 if !dtype.is_float() => Scalar::from_bits(dtype, self.bits()),
            4..8 => Scalar::from_f64(dtype, self.between(-64, 64) as f64 / 8.0),
            _ => Scalar::from_i64(dtype, self.between(-9, 9)),
        }
    }
}

#[cfg(test)]
mod tests;
