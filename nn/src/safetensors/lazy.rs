//! A file of which tensors are read one by one, when they are asked for.
//!
//! Opening reads the header alone, and checks it against the file's length; a tensor costs one
//! read of exactly its bytes. The file is not mapped into memory: a mapping needs `unsafe` (another
//! process may truncate the file), and its pages are read once either way.

use super::header::{Entry, Header};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zyx_core::{DType, Device, Error, Result, Shape, Tensor};

/// An open file; see [`open`].
#[derive(Debug)]
pub struct LazyFile {
    path: PathBuf,
    file: Mutex<File>,
    /// Where the tensors' data begins.
    start: u64,
    entries: BTreeMap<String, Entry>,
}

/// Opens a file without reading its tensors.
///
/// ```
/// use nn::safetensors;
/// use zyx_core::{DType, Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let path = std::env::temp_dir().join(format!("lazy-{}.safetensors", std::process::id()));
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// safetensors::save(&tensors, &path)?;
/// let file = safetensors::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["x"]);
/// assert_eq!(file.dtype("x"), Some(DType::F32));
/// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`load`](super::load).
pub fn open(file: impl AsRef<Path>) -> Result<LazyFile> {
    let path = file.as_ref().to_owned();
    let what = path.display().to_string();
    let io = |source| Error::Io { what: what.clone(), source };
    let mut file = File::open(&path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head).map_err(io)?;
    let damaged = |reason| Error::Format { what: what.clone(), reason };
    let n = Header::length(&head).map_err(damaged)?;
    file.by_ref().take(n as u64).read_to_end(&mut head).map_err(io)?;
    let start = 8 + n as u64;
    let available = usize::try_from(length.saturating_sub(start)).unwrap_or(usize::MAX);
    let header = Header::parse(&head[8..], n, available).map_err(damaged)?;
    let named = |entry: Entry| (entry.name.clone(), entry);
    let entries = header.entries.into_iter().map(named).collect();
    Ok(LazyFile { path, file: Mutex::new(file), start, entries })
}

impl LazyFile {
    /// The names of all tensors, in alphabetical order.
    ///
    /// ```
    /// # use nn::safetensors;
    /// # use zyx_core::{DType, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-names-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.names().collect::<Vec<_>>(), ["x"]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The dtype that a tensor is read in; that of eight-bit floats is `f32`.
    ///
    /// ```
    /// # use nn::safetensors;
    /// # use zyx_core::{DType, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-dtype-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.dtype("x"), Some(DType::F32));
    /// assert_eq!(file.dtype("y"), None);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.entries.get(name).map(Entry::read_dtype)
    }

    /// The extents of a tensor.
    ///
    /// ```
    /// # use nn::safetensors;
    /// # use zyx_core::{DType, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-shape-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.shape("x"), Some([1, 2].into()));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.entries.get(name).map(|entry| entry.shape.clone())
    }

    /// Reads a tensor. Eight-bit floats stay codes of a byte each until they are computed with.
    ///
    /// ```
    /// # use nn::safetensors;
    /// # use zyx_core::{DType, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-load-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert!(file.load("y", &device).is_err());
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is none of that name, the file cannot be read, or as [`Tensor::from_bytes`].
    #[track_caller]
    pub fn load(&self, name: &str, device: &Device) -> Result<Tensor> {
        let what = format!("{}, `{name}`", self.path.display());
        let Some(entry) = self.entries.get(name) else {
            return Err(Error::Format { what, reason: "there is no such tensor".to_owned() });
        };
        let mut bytes = vec![0; entry.range.len()];
        let start = SeekFrom::Start(self.start + entry.range.start as u64);
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(start).and_then(|_| file.read_exact(&mut bytes));
        drop(file);
        read.map_err(|source| Error::Io { what, source })?;
        entry.tensor(&bytes, device)
    }
}
