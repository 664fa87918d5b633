//! The programs of the guide and of README, as tests: `cargo test -p zyx --doc --features io,onnx,trace guide`.
//!
//! The files are outside of the package, so this is compiled for documentation tests alone.

#[doc = include_str!("../../README.md")]
mod readme {}

#[doc = include_str!("../../docs/guide/tour.md")]
mod tour {}

#[doc = include_str!("../../docs/guide/laziness.md")]
mod laziness {}

#[doc = include_str!("../../docs/guide/devices.md")]
mod devices {}

// Some of it needs the file formats.
#[cfg(all(feature = "io", feature = "onnx"))]
#[doc = include_str!("../../docs/guide/saving.md")]
mod saving {}

#[doc = include_str!("../../docs/guide/modules.md")]
mod modules {}

#[doc = include_str!("../../docs/guide/mixed-precision.md")]
mod mixed_precision {}

#[doc = include_str!("../../docs/guide/performance.md")]
mod performance {}

#[doc = include_str!("../../docs/guide/kernels.md")]
mod kernels {}

#[doc = include_str!("../../docs/guide/extending.md")]
mod extending {}

#[doc = include_str!("../../docs/guide/from-pytorch.md")]
mod from_pytorch {}

#[doc = include_str!("../../docs/guide/from-candle-and-burn.md")]
mod from_candle_and_burn {}

#[doc = include_str!("../../docs/guide/internals.md")]
mod internals {}
