//! The methods of `Tensor` that the stub lists; `build/` writes them.

#![allow(clippy::all, non_snake_case, reason = "generated")]

use crate::arguments::*;
use crate::create;
use crate::device::DeviceArg;
use crate::dtype::DTypeArg;
use crate::error::caught;
use crate::forms;
use crate::index::KeyArg;
use crate::lists::RawBytes;
use crate::operators::{beside, reflected, settle, settle_pair, settled};
use crate::outcome::{lift, lower, run, run_attached, wished};
use crate::rng::GeneratorArg;
use crate::tensor::PyTensor;
use crate::views;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use zyx::*;

include!(concat!(env!("OUT_DIR"), "/methods.rs"));
