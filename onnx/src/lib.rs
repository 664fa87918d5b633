//! Models in the ONNX format, run and written by zyx.
//!
//! [`Export`] makes a model of a function of tensors. The rest of this page is about reading.
//!
//! [`Model`] reads a file and runs it. `graph` is what a file becomes (nodes with their operators found,
//! constants as values), `run` evaluates it, `ops` has one row and one function for each operator.
//!
//! Tensors of a model stay lazy, so a model is one graph for the scheduler, with what surrounds it. Shapes, and
//! what models compute from them, are [`Value::Host`]: few numbers that the host knows and computes with, so that
//! no device is waited for inside of a model. An operator whose output's shape depends on values (`NonZero`,
//! `NonMaxSuppression`), or `If` and `Loop` with a condition that a device computed, reads them.
//!
//! Elements that no dtype has (floats of four and eight bits, integers of two and four) are stored and moved as
//! [`Coded`]; `Cast` and the operators that quantise convert them.
//!
//! A file is not trusted: what is wrong with it is an [`Error::Format`](zyx_core::Error::Format), external data
//! lies in the folder of the model or of the file that it links to, and protobuf's messages nest at most a hundred deep.
//! A budget (`budget.rs`) limits the host memory that a file takes: 2 GiB, or the value of `ZYX_ONNX_MEMORY_LIMIT`.
#![forbid(unsafe_code)]

mod attribute;
mod budget;
mod coded;
mod export;
mod file;
mod graph;
mod host;
mod model;
mod ops;
#[allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    reason = "made by prost-build from the standard's onnx-ml.proto (ONNX 1.23), without messages that are not read: devices, shards, training, annotations and maps"
)]
mod proto;
mod read;
mod replay;
mod run;
mod scan;
#[cfg(test)]
mod tests;
mod value;

pub use coded::{Coded, CodedType};
pub use export::{Dim, Export, Exported};
pub use host::Host;
pub use model::{Kind, Model, Port};
pub use ops::operators;
pub use value::Value;
