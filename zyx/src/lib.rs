//! zyx: tensors, automatic differentiation, neural networks and optimizers on any device.
//!
//! ```
//! use zyx::prelude::*;
//!
//! let x = zyx::tensor([[1f32, 2.0], [3.0, 4.0]])?;
//! let y = x.matmul(&x)?.relu().sum(0)?;
//! println!("{y}");
//! # assert_eq!(y.to_vec::<f32>()?, [22.0, 32.0]);
//! # Ok::<(), zyx::Error>(())
//! ```
//!
//! This crate is the door: it exports the core ([`Tensor`] and what belongs to it), the modules
//! ([`nn`]), the optimizers ([`optim`]) and what surrounds training ([`data`]), registers the
//! backends that were compiled in, and has what the core deliberately lacks: a default device and functions that use it.
//! What stands behind it is in [`internals`].
//!
//! The folder `docs/guide` of the repository is a guide with a tour in ten minutes.
//!
//! # Devices
//!
//! [`device()`] is the default device: the one the environment variable `ZYX_DEVICE` names
//! (`cpu`, `opencl:1`), or else the best that was compiled in and is there: a GPU, or the CPU.
//! Every function below that makes a tensor makes it there; the constructors of [`Tensor`] take a
//! device. [`Device::open`](OpenDevice::open) opens one by name, [`Device::list`](OpenDevice::list)
//! tells what there is; [`runtime()`] accepts further backends.
//!
//! # Features
//!
//! `cpu` (default) is the embedded CPU backend, `cuda` adds NVIDIA GPUs, `opencl` OpenCL devices, `vulkan` Vulkan
//! devices, `wgpu` what wgpu finds (Vulkan, Metal, DirectX 12, WebGPU). Drivers are loaded at run time, so a program with every
//! feature starts on a machine with none. `io` adds files of NumPy, GGUF and PyTorch, `onnx` models in that format, `image` data sets of
//! pictures and models that decode them, `regex` models that match regular expressions, `chart` curves of losses. `lines` keeps source lines for [`Tensor::explain`] in release builds, too, and
//! `trace` adds traces of what devices do (`Trace`, `ZYX_TRACE`).
#![forbid(unsafe_code)]

// Lets the derive macro, which names `::zyx`, be used in this crate's examples.
extern crate self as zyx;

mod defaults;
#[cfg(doctest)]
mod guide;

pub use defaults::{
    OpenDevice, arange, device, eye, full, ones, rand, randint, randn, runtime, seed, tensor, zeros,
};
#[cfg(feature = "trace")]
#[doc(inline)]
pub use zyx_core::Trace;
#[doc(inline)]
pub use zyx_core::einsum;
#[doc(inline)]
pub use zyx_core::kernel;
#[doc(inline)]
pub use zyx_core::{
    Attention, Axes, BatchNorm, CallNote, Class, Conv1dOptions, Conv2dOptions, Conv3dOptions,
    ConvTransposeOptions, CrossEntropy, Ctc, DType, Device, DeviceInfo, DeviceKind, EinsumPath,
    Element, Error, Explanation, FftNorm, Float8, HostView, Index, Indexing, Interpolation, Jit,
    KernelNote, LaunchNote, MatrixNorm, MultiMargin, Nested, Operand, Operands, PadMode, Param,
    Pending, PoissonNll, Pool, Pool2d, ProgramTime, QuantizedMatrix, Reduction, Result, Rng,
    Runtime, Scalar, ScatterReduce, Shape, SliceRange, Speeds, Stats, Stft, Tensor, TripletMargin,
    Tuned, Tuning, Unique, ValueNote,
};
pub use zyx_data as data;
#[cfg(feature = "io")]
pub use zyx_io as io;
#[doc(inline)]
pub use zyx_nn::distributions;
#[cfg(feature = "onnx")]
pub use zyx_onnx as onnx;
pub use zyx_optim as optim;

pub mod internals {
    //! What those see who add a backend, a pass or a dtype: the compiler, the contract of devices, the runtime.
    //!
    //! They are the modules of `zyx-core`, whose documentation says in which order to read them. Programs that use
    //! tensors need none of them, and they change more often than the rest of this crate.
    pub use zyx_core::{BinaryOp, DTypeSet, Reference, TernaryOp, UnaryOp, attribute};
    pub use zyx_core::{
        affine, autodiff, cmath, codegen, decompose, dtype, error, files, hal, ir, legalize, ops,
        passes, prepare, reference, runtime, scalar, shape, tensor, tune,
    };
}

pub mod nn {
    //! Neural network modules; see the crate `zyx_nn`.
    //!
    //! ```
    //! use zyx::prelude::*;
    //! use zyx::nn::{Init, Linear};
    //!
    //! #[derive(Module)]
    //! struct Net {
    //!     hidden: Linear,
    //!     out: Linear,
    //! }
    //!
    //! let init = &mut Init::new(0, &zyx::device()?);
    //! let net = Net { hidden: Linear::new(2, 4, init)?, out: Linear::new(4, 1, init)? };
    //! assert_eq!(net.n_parameters(), 2 * 4 + 4 + 4 + 1);
    //! # Ok::<(), zyx::Error>(())
    //! ```
    pub use zyx_nn::*;
    // The macro that names `::zyx::nn`; it takes precedence over the one above.
    pub use zyx_nn_derive::FacadeModule as Module;
}

pub mod prelude {
    //! What most programs use: `use zyx::prelude::*;`.
    pub use crate::nn::{Forward, Module};
    pub use crate::optim::Optimizer;
    pub use crate::{
        DType, Device, Error, Index, OpenDevice, Param, Reduction, Result, Rng, Shape, Tensor,
    };
}
