//! Tensors from and to files of other programs.
//!
//! [`npy`] and [`npz`] are NumPy's: one array, and an archive of named ones. [`gguf`] reads the
//! files language models are shared in, and turns their blocks of small integers into floats.
//! [`pytorch`] reads state dicts that PyTorch saved, and executes nothing of them.
//! Nothing in a file can make reading panic, or take more memory than four times the file's size
//! beside what is returned; of an archive that is compressed, what is returned has a limit too. What
//! is wrong is said in an [`Error::Format`].
//!
//! A crate of its own: neither tensors nor layers need it, and it is the only one that needs a
//! decompressor. Safetensors stay in `nn`, whose checkpoints they are.
#![forbid(unsafe_code)]

mod archive;
mod before_archives;
mod dequantize;
pub mod gguf;
pub mod npy;
pub mod npz;
mod pickle;
pub mod pytorch;
mod reader;

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use zyx_core::files::Input;
use zyx_core::hal::{host_room, interrupted, is_interrupted};
use zyx_core::{DType, Device, Error, Result, Shape, Tensor};

/// A file that is read in parts, and its size.
fn open(path: &Path) -> Result<(BufReader<Input>, u64)> {
    let io = |source| Error::Io { what: path.display().to_string(), source };
    let file = Input::open(path).map_err(io)?;
    let size = file.length();
    Ok((BufReader::new(file), size))
}

/// Steps of a loop between two looks at whether the user interrupts.
const STEPS_PER_LOOK: usize = 1 << 12;

/// Ends a loop when the user interrupts, at every `STEPS_PER_LOOK`-th step.
fn look(step: usize) -> Result<()> {
    match step.is_multiple_of(STEPS_PER_LOOK) && is_interrupted() {
        true => Err(Error::Io { what: "reading".to_owned(), source: interrupted() }),
        false => Ok(()),
    }
}

/// How many bytes the tensors of an archive of that size may have together if nothing else is said.
fn default_limit(archive: u64) -> usize {
    usize::try_from(archive.saturating_mul(16).max(1 << 30)).unwrap_or(usize::MAX)
}

/// A vector with room for what a file says it holds.
fn room<T>(n: usize) -> Result<Vec<T>, String> {
    host_room(n).map_err(|error| error.to_string())
}

/// A tensor of these bytes, which stay where they are on a device that computes in host memory.
#[track_caller]
fn owned(bytes: Vec<u8>, dtype: DType, shape: impl Into<Shape>, device: &Device) -> Result<Tensor> {
    match bytes.is_empty() {
        true => Tensor::from_bytes(&bytes, dtype, shape, device),
        false => Tensor::from_owner(Arc::new(bytes), dtype, shape, device),
    }
}

/// An error about the content of `what`.
fn damaged(what: &str, reason: impl Into<String>) -> Error {
    Error::Format { what: what.to_owned(), reason: reason.into() }
}
