//! Named arrays in a zip archive, as NumPy's `savez` and `savez_compressed` write them.
//!
//! A compressed archive may hold a thousand times its size. Reading one stops before it takes more
//! than a limit: 1 GiB, or 16 times the archive if that is more, unless another is given.

use crate::archive::{Archive, Source, Writer};
use crate::{damaged, npy, open};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use zyx_core::{Device, Result, Tensor, files};

/// Reads all arrays of an archive, compressed or not, by name.
///
/// ```
/// use zyx::io::npz;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let file = std::env::temp_dir().join(format!("doc-{}.npz", std::process::id()));
/// npz::save(&[("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into(), &file)?;
/// assert_eq!(npz::load(&file, &device)?["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`npy::load`], and when the archive is damaged, compressed in another way, or unpacked exceeds
/// what [`load_at_most`] is for.
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let (what, (mut reader, size)) = (file.as_ref().display().to_string(), open(file.as_ref())?);
    from_reader(&mut reader, &what, crate::default_limit(size), device)
}

/// As [`load`], with another limit on the bytes of all arrays together, unpacked.
///
/// ```
/// use zyx::io::npz;
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let file = std::env::temp_dir().join(format!("doc-limit-{}.npz", std::process::id()));
/// npz::save(&[("x".to_owned(), Tensor::ones([1000], DType::F32, &device))].into(), &file)?;
/// assert!(npz::load_at_most(&file, 4000, &device).is_err());
/// assert_eq!(npz::load_at_most(&file, 5000, &device)?.len(), 1);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn load_at_most(
    file: impl AsRef<Path>,
    limit: usize,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    let (what, (mut reader, _)) = (file.as_ref().display().to_string(), open(file.as_ref())?);
    from_reader(&mut reader, &what, limit, device)
}

/// Writes arrays by name, uncompressed, computing them if need be.
///
/// ```
/// # use zyx::io::npz;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-save-{}.npz", std::process::id()));
/// npz::save(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into(), &file)?;
/// assert_eq!(npz::load(&file, &device)?["x"].to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`npy::save`], and when a name has more than 65531 bytes.
#[track_caller]
pub fn save(tensors: &BTreeMap<String, Tensor>, file: impl AsRef<Path>) -> Result<()> {
    Tensor::realize_all(tensors.values())?;
    files::write(file, &mut |to| write(tensors, to))
}

/// The arrays of an archive that was read already.
///
/// ```
/// # use zyx::io::npz;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let bytes = npz::to_bytes(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into())?;
/// assert_eq!(npz::from_bytes(&bytes, &device)?["x"].to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<BTreeMap<String, Tensor>> {
    from_reader(&mut Cursor::new(bytes), "npz", crate::default_limit(bytes.len() as u64), device)
}

/// The bytes of an archive with these arrays.
///
/// ```
/// # use zyx::io::npz;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let bytes = npz::to_bytes(&[("x".to_owned(), Tensor::new([1i32, 2], &device)?)].into())?;
/// assert_eq!(bytes[..4], *b"PK\x03\x04");
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`save`].
#[track_caller]
pub fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    Tensor::realize_all(tensors.values())?;
    files::in_memory(&mut |to| write(tensors, to))
}

fn write(tensors: &BTreeMap<String, Tensor>, to: &mut dyn files::Output) -> Result<()> {
    let mut archive = Writer::new(to);
    for (name, tensor) in tensors {
        let bytes = tensor.numel() * tensor.dtype().size();
        npy::write(tensor, archive.entry(&format!("{name}.npy"), bytes)?)?;
    }
    archive.finish()
}

#[track_caller]
fn from_reader(
    reader: &mut dyn Source,
    what: &str,
    limit: usize,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    let mut archive = Archive::open(reader, what)?;
    let whole = archive.size();
    if whole > limit as u64 {
        let reason = format!(
            "unpacked it has {whole} bytes, more than the limit of {limit}: give another limit if \
             you trust it"
        );
        return Err(damaged(what, reason));
    }
    let mut tensors = BTreeMap::new();
    for i in 0..archive.len() {
        let mut content = archive.content(i)?;
        let (mut name, size) = (content.name.clone(), content.size);
        let within = format!("{what}, `{name}`");
        let tensor = npy::from_reader(&mut content, size, &within, device)?;
        if name.ends_with(".npy") {
            name.truncate(name.len() - 4);
        }
        if tensors.insert(name, tensor).is_some() {
            return Err(damaged(&within, "it is there twice"));
        }
    }
    Ok(tensors)
}
