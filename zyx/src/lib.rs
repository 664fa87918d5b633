//! zyx: tensors, automatic differentiation, neural networks and optimizers on any device.
//!
//! ```
//! use zyx::prelude::*;
//!
//! let x = zyx::tensor([[1.0, 2.0], [3.0, 4.0]])?;
//! let y = x.matmul(&x)?.relu().sum(0)?;
//! println!("{y}");
//! # assert_eq!(y.to_vec::<f64>()?, [22.0, 32.0]);
//! # Ok::<(), zyx::Error>(())
//! ```
//!
//! This crate is the door: it exports the core ([`Tensor`] and what belongs to it), the modules
//! ([`nn`]), the optimizers ([`optim`]) and what surrounds training ([`data`]), registers the
//! backends that were compiled in, and has what the core deliberately lacks: a default device and functions that use it.
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
//! feature starts on a machine with none. `io` adds files of NumPy, GGUF and PyTorch, `image` data sets of
//! pictures, `chart` curves of losses.
#![forbid(unsafe_code)]

// Lets the derive macro, which names `::zyx`, be used in this crate's examples.
extern crate self as zyx;

mod defaults;
#[cfg(doctest)]
mod guide;

pub use defaults::{
    OpenDevice, arange, device, eye, full, ones, rand, randint, randn, runtime, seed, tensor, zeros,
};
pub use optim;
pub use zyx_core::*;
pub use zyx_data as data;
#[cfg(feature = "io")]
pub use zyx_io as io;

pub mod nn {
    //! Neural network modules; see the crate `nn`.
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
    pub use ::nn::*;
    // The macro that names `::zyx::nn`; it takes precedence over the one above.
    pub use nn_derive::FacadeModule as Module;
}

pub mod prelude {
    //! What most programs use: `use zyx::prelude::*;`.
    pub use crate::nn::{Forward, Module};
    pub use crate::optim::Optimizer;
    pub use crate::{DType, Device, Error, OpenDevice, Param, Result, Rng, Shape, Tensor};
}
