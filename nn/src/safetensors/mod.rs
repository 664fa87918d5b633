//! Named tensors in safetensors files.
//!
//! The format is that of the crate `safetensors`, which says what a valid file is; each kind of
//! damage gets a message that names the tensor. A model in several files is read like one, through
//! its index. Nothing in a file can make reading panic, or take more memory than four times the
//! file's size beside what is returned.
//!
//! A file that is saved is replaced at once when it is complete ([`files::replace`]).

mod header;
mod index;
mod lazy;

pub use lazy::{LazyFile, open, open_owner};

use safetensors::tensor::TensorInfo;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use zyx_core::{Device, Error, Float8, Result, Tensor, files};

/// Writes tensors to a file, computing them if need be.
///
/// ```
/// use zyx::nn::safetensors;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let file = std::env::temp_dir().join(format!("doc-{}.safetensors", std::process::id()));
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// safetensors::save(&tensors, &file)?;
/// let read = safetensors::load(&file, &device)?;
/// assert_eq!(read["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When a device fails, a name is `__metadata__`, which the format keeps, or the file cannot be
/// written; an earlier file is left as it was.
#[track_caller]
pub fn save(tensors: &BTreeMap<String, Tensor>, file: impl AsRef<Path>) -> Result<()> {
    save_float8(tensors, &BTreeMap::new(), file)
}

/// Writes tensors to a file, those that `float8` names as eight-bit floats, a quarter of `f32`.
///
/// ```
/// use zyx::nn::safetensors;
/// use zyx::{Float8, Tensor};
/// let device = zyx::device()?;
/// let file = std::env::temp_dir().join(format!("float8-{}.safetensors", std::process::id()));
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 0.3], &device)?)].into();
/// safetensors::save_float8(&tensors, &[("x".to_owned(), Float8::E4M3)].into(), &file)?;
/// let read = safetensors::load(&file, &device)?;
/// assert_eq!(read["x"].to_vec::<f32>()?, [1.0, 0.3125]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `float8` names a tensor that is not there, or as [`save`].
#[track_caller]
pub fn save_float8(
    tensors: &BTreeMap<String, Tensor>,
    float8: &BTreeMap<String, Float8>,
    file: impl AsRef<Path>,
) -> Result<()> {
    if let Some(name) = float8.keys().find(|name| !tensors.contains_key(*name)) {
        let reason = format!("there is no tensor `{name}` to be narrowed");
        return Err(Error::Format { what: file.as_ref().display().to_string(), reason });
    }
    let content = Content::of(tensors, float8)?;
    files::write(file, &mut |to| content.write(to))
}

/// Reads all tensors of a file, or of a model in several files: the path of its index
/// (`model.safetensors.index.json`), or of a folder that has `model.safetensors` or that index.
/// Eight-bit floats stay codes of a byte each, which become `f32` where they are computed with.
///
/// ```
/// # use zyx::nn::safetensors;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// # let file = std::env::temp_dir().join(format!("load-{}.safetensors", std::process::id()));
/// # let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// # safetensors::save(&tensors, &file)?;
/// let tensors = safetensors::load(&file, &device)?;
/// assert_eq!(tensors["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] saying what is wrong when it is
/// not a whole safetensors file, or as [`Tensor::from_bytes`]. Of an index, also when a file is
/// missing or outside of the folder, a tensor is not in the file that should have it, or in two.
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    open(file)?.all(device)
}

/// The bytes of a file with these tensors.
///
/// ```
/// # use zyx::nn::safetensors;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// let bytes = safetensors::to_bytes(&tensors)?;
/// let read = safetensors::from_bytes(&bytes, &device)?;
/// assert_eq!(read["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When a device fails, or a name is `__metadata__`, which the format keeps.
#[track_caller]
pub fn to_bytes(tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>> {
    let content = Content::of(tensors, &BTreeMap::new())?;
    files::in_memory(&mut |to| content.write(to))
}

/// Writes what [`to_bytes`] gives, piece by piece, so the host never holds all of it.
///
/// ```
/// # use zyx::nn::safetensors;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// let mut bytes = Vec::new();
/// safetensors::write_to(&tensors, &mut bytes)?;
/// assert_eq!(bytes, safetensors::to_bytes(&tensors)?);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`to_bytes`], and when the writer fails.
#[track_caller]
pub fn write_to(tensors: &BTreeMap<String, Tensor>, to: &mut dyn Write) -> Result<()> {
    Content::of(tensors, &BTreeMap::new())?.write(to)
}

/// A file to be written: its header, and the tensors behind it.
struct Content {
    header: Vec<u8>,
    tensors: Vec<Tensor>,
}

impl Content {
    fn write(&self, to: &mut (impl Write + ?Sized)) -> Result<()> {
        let mut to = to;
        let io = |source| Error::Io { what: "safetensors".to_owned(), source };
        to.write_all(&self.header).map_err(io)?;
        self.tensors.iter().try_for_each(|tensor| tensor.write_to(&mut to))
    }

    /// Computes the tensors.
    #[track_caller]
    fn of(
        tensors: &BTreeMap<String, Tensor>,
        float8: &BTreeMap<String, Float8>,
    ) -> Result<Content> {
        let stored = |(name, tensor): (&String, &Tensor)| {
            let format = float8.get(name).copied();
            let tensor =
                format.map_or_else(|| tensor.clone(), |format| tensor.encode_float8(format));
            (name.clone(), format, tensor)
        };
        let mut order: Vec<(String, Option<Float8>, Tensor)> = tensors.iter().map(stored).collect();
        Tensor::realize_all(order.iter().map(|(_, _, tensor)| tensor))?;
        // Wide elements first, so that all are aligned.
        order.sort_by_key(|(_, _, tensor)| std::cmp::Reverse(tensor.dtype().size()));
        let mut infos = Vec::new();
        let mut end = 0;
        for (name, float8, tensor) in &order {
            let start = end;
            end += tensor.shape().numel() * tensor.dtype().size();
            let dtype = header::code(tensor.dtype(), *float8);
            let shape = tensor.shape().dims().to_vec();
            infos.push((name.clone(), TensorInfo { dtype, shape, data_offsets: (start, end) }));
        }
        let header = header::write(infos).map_err(damaged)?;
        Ok(Content { header, tensors: order.into_iter().map(|(_, _, tensor)| tensor).collect() })
    }
}

/// The tensors of a file that was read already.
///
/// ```
/// # use zyx::nn::safetensors;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// let bytes = safetensors::to_bytes(&tensors)?;
/// let read = safetensors::from_bytes(&bytes, &device)?;
/// assert_eq!(read["x"].to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let (metadata, data) = header::read(bytes).map_err(damaged)?;
    let tensor = |name: String| -> Result<(String, Tensor)> {
        let info = metadata.info(&name).expect("invariant: it is one of its keys");
        let tensor = header::tensor(info, &data[info.data_offsets.0..info.data_offsets.1], device)?;
        Ok((name, tensor))
    };
    metadata.offset_keys().into_iter().map(tensor).collect()
}

fn damaged(reason: String) -> Error {
    Error::Format { what: "safetensors".to_owned(), reason }
}
