//! Named arrays in a zip archive, as NumPy's `savez` and `savez_compressed` write them.

use crate::{damaged, npy, read, write, zip};
use std::collections::BTreeMap;
use std::path::Path;
use zyx_core::{Device, Result, Tensor};

/// Reads all arrays of an archive, compressed or not, by name.
///
/// ```
/// use zyx_core::{Runtime, Tensor};
/// use zyx_io::npz;
/// let device = Runtime::default().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-{}.npz", std::process::id()));
/// npz::save(&[("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into(), &file)?;
/// assert_eq!(npz::load(&file, &device)?["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`npy::load`], and when the archive is damaged or compressed in another way.
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let what = file.as_ref().display().to_string();
    from_named_bytes(&read(file.as_ref())?, &what, device)
}

/// Writes arrays by name, uncompressed, computing them if need be.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # use zyx_io::npz;
/// # let device = Runtime::default().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-save-{}.npz", std::process::id()));
/// npz::save(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into(), &file)?;
/// assert_eq!(npz::load(&file, &device)?["x"].to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`npy::save`], and when the archive would exceed 4 GiB.
#[track_caller]
pub fn save(tensors: &BTreeMap<String, Tensor>, file: impl AsRef<Path>) -> Result<()> {
    write(file.as_ref(), &to_bytes(tensors)?)
}

/// The arrays of an archive that was read already.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # use zyx_io::npz;
/// # let device = Runtime::default().device("reference")?;
/// let bytes = npz::to_bytes(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into())?;
/// assert_eq!(npz::from_bytes(&bytes, &device)?["x"].to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<BTreeMap<String, Tensor>> {
    from_named_bytes(bytes, "npz", device)
}

/// The bytes of an archive with these arrays.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # use zyx_io::npz;
/// # let device = Runtime::default().device("reference")?;
/// let bytes = npz::to_bytes(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into())?;
/// assert_eq!(bytes[..4], *b"PK\x03\x04");
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`save`].
#[track_caller]
pub fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    Tensor::realize_all(tensors.values())?;
    let file = |(name, tensor): (&String, &Tensor)| -> Result<(String, Vec<u8>)> {
        Ok((format!("{name}.npy"), npy::to_bytes(tensor)?))
    };
    let files = tensors.iter().map(file).collect::<Result<Vec<_>>>()?;
    zip::archive(&files).map_err(|reason| damaged("npz", reason))
}

#[track_caller]
fn from_named_bytes(bytes: &[u8], what: &str, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let entries = zip::entries(bytes).map_err(|reason| damaged(what, reason))?;
    let mut tensors = BTreeMap::new();
    for entry in entries {
        let content = entry.read(bytes).map_err(|reason| damaged(what, reason))?;
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name).to_owned();
        let within = format!("{what}, `{name}`");
        tensors.insert(name, npy::from_named_bytes(&content, &within, device)?);
    }
    Ok(tensors)
}
