//! The core of zyx: tensors, graph, autodiff, scheduler, kernel IR, passes and runtime.
//!
//! Modules in reading order; each may use only those above it (tests enforce the exact table):
//! vocabulary ([`dtype`], [`scalar`], [`ops`], [`shape`]), kernels ([`ir`]), devices ([`hal`]),
//! optional passes ([`passes`]) and their choice ([`tune`]), code generation ([`codegen`]).
#![forbid(unsafe_code)]

mod autodiff;
pub mod codegen;
pub mod decompose;
pub mod dtype;
pub mod error;
pub mod files;
mod graph;
pub mod hal;
pub mod ir;
pub mod legalize;
mod lru;
pub mod ops;
pub mod passes;
pub mod reference;
pub mod runtime;
pub mod scalar;
mod schedule;
pub mod shape;
mod special;
pub mod tensor;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tune;

pub use dtype::{Class, DType, DTypeSet, Element};
pub use error::{Error, Operands, Result};
pub use hal::{DeviceInfo, DeviceKind};
pub use ops::{BinaryOp, TernaryOp, UnaryOp};
pub use reference::Reference;
pub use runtime::{Device, HostView, Pending, ProgramTime, Runtime, Stats, Tuned, Tuning};
pub use scalar::Scalar;
pub use schedule::{Explanation, KernelNote, LaunchNote, Speeds, ValueNote};
pub use shape::Shape;
pub use tensor::{
    Attention, Axes, BatchNorm, Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions,
    CrossEntropy, Ctc, EinsumPath, FftNorm, Float8, Interpolation, MatrixNorm, MultiMargin, Nested,
    Operand, PadMode, Param, PoissonNll, Pool, Pool2d, QuantizedMatrix, Reduction, Rng, Stft,
    Tensor, TripletMargin,
};
pub use tensor::{Index, Indexing, Jit, ScatterReduce, Unique};
