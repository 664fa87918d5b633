//! Tensors from and to files of other programs.
//!
//! [`npy`] and [`npz`] are NumPy's: one array, and an archive of named ones. [`gguf`] reads the
//! files language models are shared in, and turns their blocks of small integers into floats.
//! Nothing in a file can make reading panic, or allocate more than a small multiple of the file's
//! size; what is wrong is said in an [`Error::Format`].
//!
//! A crate of its own: neither tensors nor layers need it, and it is the only one that needs a
//! decompressor. Safetensors stay in `nn`, whose checkpoints they are.
#![forbid(unsafe_code)]

mod dequantize;
pub mod gguf;
pub mod npy;
pub mod npz;
mod reader;
mod zip;

use std::path::Path;
use zyx_core::{Error, Result};

/// The bytes of a file.
fn read(file: &Path) -> Result<Vec<u8>> {
    std::fs::read(file).map_err(|source| Error::Io { what: file.display().to_string(), source })
}

/// Writes a file beside its target and renames it when it is complete.
fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = file.with_file_name(name);
    let written =
        std::fs::write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, file));
    written.map_err(|source| {
        // The error that matters is the first one; the temporary file may not even exist.
        let _ = std::fs::remove_file(&temporary);
        Error::Io { what: file.display().to_string(), source }
    })
}

/// An error about the content of `what`.
fn damaged(what: &str, reason: impl Into<String>) -> Error {
    Error::Format { what: what.to_owned(), reason: reason.into() }
}
