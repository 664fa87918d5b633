//! Neural network modules: layers, parameters by name, saving and loading.
//!
//! Reading order: [`Module`] and [`Forward`] (what a layer is), [`Init`] (how parameters start),
//! the layers, [`safetensors`] (files). Names and shapes of parameters and their initial
//! distributions are PyTorch's, so that weights can be exchanged.
//!
//! The crate uses the public interface of `zyx-core` alone.
#![forbid(unsafe_code)]

// Lets the derive macro, which names `::nn`, be used in this crate.
extern crate self as nn;

mod convolution;
mod init;
mod layers;
mod linear;
mod module;
mod normalization;
pub mod safetensors;
mod sequential;

pub use convolution::{Conv1d, Conv2d};
pub use init::Init;
pub use layers::{
    AvgPool2d, Dropout, Flatten, Gelu, GeluExact, LeakyRelu, MaxPool2d, Mish, Relu, Selu, Sigmoid,
    Silu, Softplus, Tanh,
};
pub use linear::{Embedding, Linear};
pub use module::{Forward, Mode, Module, Path, Visitor};
pub use nn_derive::Module;
pub use normalization::{BatchNorm2d, GroupNorm, LayerNorm, RmsNorm};
pub use sequential::Sequential;
pub use zyx_core::Param;
