//! Named tensors in safetensors files.
//!
//! The format (huggingface/safetensors, `README.md`): eight bytes little-endian header length, a
//! JSON header that gives dtype, shape and byte range of each tensor, then the data without gaps.
//! It is read and written here directly; the parts are small, and each kind of damage gets its
//! own message. Nothing in a file can make reading panic or allocate more than the file's size.
//!
//! Writing goes to a temporary file beside the target that is renamed when complete.

mod header;
mod json;
mod lazy;

pub use lazy::{LazyFile, open};

use header::{Entry, Header};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zyx_core::{Device, Error, Result, Tensor};

/// Writes tensors to a file, computing them if need be.
///
/// ```
/// use nn::safetensors;
/// use zyx_core::{Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-{}.safetensors", std::process::id()));
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// safetensors::save(&tensors, &file)?;
/// let read = safetensors::load(&file, &device)?;
/// assert_eq!(read["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// When a device fails, or the file cannot be written; an earlier file is left as it was.
#[track_caller]
pub fn save(tensors: &BTreeMap<String, Tensor>, file: impl AsRef<Path>) -> Result<()> {
    let file = file.as_ref();
    let bytes = to_bytes(tensors)?;
    let temporary = temporary_beside(file);
    let written = write_synced(&temporary, &bytes).and_then(|()| fs::rename(&temporary, file));
    written.map_err(|source| {
        // The error that matters is the first one; the temporary file may not even exist.
        let _ = fs::remove_file(&temporary);
        Error::Io { what: file.display().to_string(), source }
    })
}

fn write_synced(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(file)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A name in the same directory that no other save of this or another process uses.
fn temporary_beside(file: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = file.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Relaxed)));
    file.with_file_name(name)
}

/// Reads all tensors of a file.
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] saying what is wrong when it is
/// not a whole safetensors file, or as [`Tensor::from_bytes`].
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let what = file.as_ref().display().to_string();
    match fs::read(file) {
        Ok(bytes) => from_named_bytes(&bytes, &what, device),
        Err(source) => Err(Error::Io { what, source }),
    }
}

/// The bytes of a file with these tensors.
///
/// # Errors
/// When a device fails.
#[track_caller]
pub fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    Tensor::realize_all(tensors.values())?;
    // Wide elements first, so that all are aligned.
    let mut order: Vec<(&String, &Tensor)> = tensors.iter().collect();
    order.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.dtype().size()));
    let mut entries = Vec::new();
    let mut end = 0;
    for (name, tensor) in &order {
        let (dtype, shape) = (tensor.dtype(), tensor.shape().clone());
        let start = end;
        end += shape.numel() * dtype.size();
        entries.push(Entry { name: (*name).clone(), dtype, shape, range: start..end });
    }
    let mut bytes = Header { entries }.write();
    bytes.reserve_exact(end);
    for (_, tensor) in order {
        bytes.extend_from_slice(&tensor.to_bytes()?);
    }
    Ok(bytes)
}

/// The tensors of a file that was read already.
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<BTreeMap<String, Tensor>> {
    from_named_bytes(bytes, "safetensors", device)
}

#[track_caller]
fn from_named_bytes(bytes: &[u8], what: &str, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let (header, data) =
        Header::read(bytes).map_err(|reason| Error::Format { what: what.to_owned(), reason })?;
    let tensor = |Entry { name, dtype, shape, range }: Entry| -> Result<(String, Tensor)> {
        Ok((name, Tensor::from_bytes(&data[range], dtype, shape, device)?))
    };
    header.entries.into_iter().map(tensor).collect()
}
