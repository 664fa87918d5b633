//! The core of zyx: tensors, graph, autodiff, scheduler, runtime and the contract of backends.
//!
//! The compiler that all of it stands on is a crate of its own, `zyx-ir`, which knows no tensors and
//! no devices; its modules are here under their names: vocabulary ([`dtype`], [`scalar`], [`ops`]),
//! kernels ([`ir`]), optional passes ([`passes`]) and their choice ([`tune`]), what a device lacks
//! ([`legalize`], [`decompose`]) and code generation ([`codegen`]).
//!
//! Modules of this crate use only those below them (tests enforce the exact table): shapes
//! ([`shape`]), devices ([`hal`], [`runtime`]), graphs, schedules, tensors ([`tensor`]) and gradients.
//!
//! There is no unsafe block. One function is `unsafe`: [`hal::RawKernel::new`], whose caller promises what a
//! user's code does.
#![deny(unsafe_code)]
pub mod autodiff;
mod clock;
pub mod error;
pub mod files;
mod graph;
pub mod hal;
pub mod kernel;
mod lru;
mod origin;
pub mod reference;
pub mod runtime;
mod schedule;
pub mod shape;
pub mod tensor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[doc(inline)]
pub use zyx_ir::{
    affine, cmath, codegen, decompose, dtype, ir, lang, legalize, ops, passes, prepare, scalar,
    threads, tune,
};

pub use dtype::{Class, DType, DTypeSet, Element};
pub use error::{Error, Operands, Result};
pub use hal::{DeviceInfo, DeviceKind};
pub use ops::{BinaryOp, TernaryOp, UnaryOp};
pub use origin::attribute;
pub use reference::Reference;
#[cfg(feature = "trace")]
pub use runtime::Trace;
pub use runtime::{Device, HostView, Pending, ProgramTime, Runtime, Stats, Tuned, Tuning};
pub use scalar::Scalar;
pub use schedule::{CallNote, Explanation, KernelNote, LaunchNote, Speeds, ValueNote};
pub use shape::Shape;
pub use tensor::{
    Attention, Axes, BatchNorm, Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions,
    CrossEntropy, Ctc, EinsumPath, FftNorm, Float8, Interpolation, MatrixNorm, MultiMargin, Nested,
    Operand, PadMode, Param, PoissonNll, Pool, Pool2d, QuantizedMatrix, Reduction, Rng, SliceRange,
    Stft, Tensor, TripletMargin,
};
pub use tensor::{Index, Indexing, Jit, ScatterReduce, Unique};
