//! zyx for Python: the native part, imported as `zyx._core`.
//!
//! Reading order: `python/zyx/_core.pyi` (the table of methods, from which `build/` makes the
//! bindings), [`arguments`] (what Python passes) and [`outcome`] (what it gets), [`tensor`] (the
//! class), [`data`], [`memory`] and [`dlpack`] (arrays in and out), [`index`], [`operators`], [`nn`],
//! [`kernel`] (kernels that programs write).
//!
//! Rules: nothing here computes; every call goes through [`error::caught`] or [`error::detached`],
//! which turn errors and panics into exceptions; whatever may compute lets other threads of Python
//! run. `unsafe` stands where foreign memory is read, in `data` and `dlpack`, and where the handler of
//! Ctrl-C is set, in `signals`.

mod arguments;
mod create;
mod data;
mod device;
mod distributions;
mod dlpack;
mod dtype;
mod error;
mod files;
mod fork;
mod forms;
mod functional;
mod grad_mode;
mod hooks;
mod index;
mod jit;
mod kernel;
mod leaf;
mod lists;
mod memory;
mod methods;
mod nn;
mod onnx;
mod open;
mod operators;
mod optim;
mod outcome;
mod quantized;
mod rng;
mod scope;
mod signals;
mod storage;
mod tensor;
mod views;
mod warnings;
mod writes;

use pyo3::prelude::*;

/// The native part of zyx.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    warnings::collect();
    signals::register(module.py())?;
    error::register(module)?;
    dtype::register(module)?;
    module.add_class::<tensor::PyTensor>()?;
    module.add_class::<tensor::PyParameter>()?;
    module.add_class::<device::PyDevice>()?;
    module.add_class::<rng::PyRng>()?;
    module.add_class::<quantized::PyQuantized>()?;
    module.add_class::<jit::PyJit>()?;
    kernel::register(module)?;
    nn::register(module)?;
    optim::register(module)?;
    distributions::register(module)?;
    module.add_function(wrap_pyfunction!(tensor::tensor, module)?)?;
    module.add_function(wrap_pyfunction!(device::device, module)?)?;
    module.add_function(wrap_pyfunction!(device::devices, module)?)?;
    module.add_function(wrap_pyfunction!(device::_set_default_device, module)?)?;
    module.add_function(wrap_pyfunction!(dlpack::from_dlpack, module)?)?;
    module.add_function(wrap_pyfunction!(rng::manual_seed, module)?)?;
    module.add_function(wrap_pyfunction!(rng::_shared_rng, module)?)?;
    module.add_function(wrap_pyfunction!(rng::_set_shared_rng, module)?)?;
    hooks::register(module)?;
    leaf::register(module)?;
    files::register(module)?;
    open::register(module)?;
    onnx::register(module)?;
    grad_mode::register(module)?;
    fork::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}
