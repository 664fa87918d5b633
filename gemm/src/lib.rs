//! Contractions: `C[batch, m, n] = sum over k of A[batch, m, k] * B[batch, k, n]`.
//!
//! Matrix products, batched ones, convolutions and their gradients, and any other sum of a product
//! of two tensors whose dimensions fall into those four groups, each group any number of
//! dimensions. Operands are addressed by separable offsets, one per group, so permuted, broadcast,
//! flipped and overlapping (windowed) operands need no copy.
//!
//! Guarantees: a [`Plan`] is immutable and may run on several threads at once; results do not
//! depend on the order in which tasks are executed; every access is at an offset the specification
//! names. Sums are accumulated in `f32` or `f64` in an order that depends on the plan (instruction
//! set, number of threads) only. Products of 8-bit integers, signed or not, are exact and summed in
//! `i32` modulo 2^32, so that their sums do not depend on that either.
//!
//! The pieces: [`spec`](self) says what is computed, `layout` how operands are reached, `blocking`
//! how the work is cut and what it costs, `run` executes, `shared` packs for all tasks; `tile`, `pack` and `store` are the loops
//! that touch data, written once over `simd` and instantiated per instruction set in `kernels`; `pairs`
//! are those for products of two steps at once, `bytes` those of 8-bit integers.
//! Block-scatter addressing is that of TBLIS (Matthews 2016), the loop order that of GotoBLAS and
//! BLIS (Goto and van de Geijn 2008; Van Zee and van de Geijn 2015).
//!
//! Beside them [`pool`], the threads, [`fork`], what a fork of the process means for them, [`interrupt`], how they
//! stop early, and [`memory`], aligned blocks: they serve the whole CPU backend.
//! The crate knows nothing of tensors, so it compiles beside the core.
//!
//! ```
//! use zyx_gemm::{DType, Options, Plan, Spec, pool::Pool};
//!
//! // Of row-major matrices: [2, 3] times [3, 1].
//! let plan = Plan::new(&Spec::matmul(DType::F32, 2, 1, 3), &Options::default())?;
//! let (a, b) = ([1f32, 2.0, 3.0, 4.0, 5.0, 6.0], [1f32, 0.0, -1.0]);
//! let mut c = [0f32; 2];
//! plan.run_slices(&Pool::new(Some(2)), (&a[..], &b[..], &mut c[..]), [0; 3], false)?;
//! assert_eq!(c, [-2.0, -2.0]);
//!
//! // Of bytes, A signed and B not.
//! let spec = Spec { b: DType::U8, ..Spec::matmul(DType::I8, 1, 1, 2) };
//! let plan = Plan::new(&spec, &Options::default())?;
//! let mut c = [0i32];
//! plan.run_slices(&Pool::new(Some(1)), (&[-128i8, 1], &[255u8, 2], &mut c[..]), [0; 3], false)?;
//! assert_eq!(c, [-128 * 255 + 2]);
//! # Ok::<(), zyx_gemm::ContractError>(())
//! ```

mod ahead;
#[cfg(target_arch = "x86_64")]
mod amx;
mod blocking;
mod bytes;
pub mod dense;
mod finish;
pub mod fork;
pub mod interrupt;
mod kernels;
mod layout;
pub mod memory;
mod offsets;
mod pack;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod pairs;
mod plan;
pub mod pool;
#[cfg(target_arch = "aarch64")]
mod quads;
mod run;
mod shared;
mod simd;
mod spec;
mod store;
mod tile;

pub use plan::{
    Epilogue, Execution, Extensions, Fused, OperandBlock, Options, Plan, Prologue, Tile, WHOLE_RUN,
    estimate_ns,
};
pub use run::with_shared;
pub use spec::{Acc, ContractError, DType, Dim, Isa, Scalar, Spec};
