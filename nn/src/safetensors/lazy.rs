//! A file of which tensors are read one by one, when they are asked for.
//!
//! Opening reads the header alone, and checks it against the file's length; a tensor costs one
//! read of exactly its bytes. A file that somebody mapped into memory needs no read: its tensors
//! are the mapping. To map it is left to the program ([`open_owner`]), because that needs `unsafe`:
//! only who runs the program can promise that no other process changes the file or cuts it off.

use super::header::{Entry, Header};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::{DType, Device, Error, Result, Shape, Tensor, hal::HostOwner};

/// An open file; see [`open`] and [`open_owner`].
#[derive(Debug)]
pub struct LazyFile {
    /// What errors call it.
    what: String,
    source: Source,
    /// Where the tensors' data begins.
    start: usize,
    /// In the order of their names.
    entries: Vec<Entry>,
}

/// Where the bytes are.
enum Source {
    File(Mutex<File>),
    Memory(HostOwner),
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(file) => file.fmt(f),
            Source::Memory(owner) => write!(f, "{} bytes", (**owner).as_ref().len()),
        }
    }
}

/// Some bytes of an owner, which keep all of it.
struct Part {
    owner: HostOwner,
    range: Range<usize>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        // None is too few, which is an error where a tensor is made of them.
        (*self.owner).as_ref().get(self.range.clone()).unwrap_or_default()
    }
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
    let what = file.as_ref().display().to_string();
    let io = |source| Error::Io { what: what.clone(), source };
    let mut file = File::open(&file).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut head = Vec::new();
    file.by_ref().take(8).read_to_end(&mut head).map_err(io)?;
    let damaged = |reason| Error::Format { what: what.clone(), reason };
    let n = Header::length(&head).map_err(damaged)?;
    // As much as is there, if that is less than the header claims.
    head.reserve_exact(n.min(usize::try_from(length).unwrap_or(usize::MAX)));
    file.by_ref().take(n as u64).read_to_end(&mut head).map_err(io)?;
    let start = 8 + n;
    let available = usize::try_from(length.saturating_sub(start as u64)).unwrap_or(usize::MAX);
    let header = Header::parse(&head[8..], n, available).map_err(damaged)?;
    Ok(LazyFile::new(what, Source::File(Mutex::new(file)), start, header))
}

/// Opens a file that lies in memory already, like one that was mapped: no tensor is read before
/// somebody looks at it, and on a device that computes in host memory none is copied, if it begins
/// at a multiple of 16 bytes. Those of files that [`save`](super::save) wrote do until one has a
/// number of bytes that is none. On other devices a tensor is copied once, to the device.
///
/// The owner is kept as long as the file and its tensors are. Its bytes must stay what they are; a
/// mapped file that another process changes or cuts off breaks what whoever mapped it promised, and
/// the system then ends a program that looks at what is gone.
///
/// ```
/// use nn::safetensors;
/// use std::sync::Arc;
/// use zyx_core::{Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// // Or of the crate memmap2: `unsafe { memmap2::Mmap::map(&file)? }`.
/// let bytes: Vec<u8> = safetensors::to_bytes(&tensors)?;
/// let file = safetensors::open_owner(Arc::new(bytes))?;
/// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Format`] saying what is wrong when it is not a whole safetensors file.
pub fn open_owner(owner: HostOwner) -> Result<LazyFile> {
    let what = "safetensors".to_owned();
    let bytes = (*owner).as_ref();
    let parts = Header::read(bytes).map(|(header, data)| (header, bytes.len() - data.len()));
    let (header, start) = match parts {
        Ok(parts) => parts,
        Err(reason) => return Err(Error::Format { what, reason }),
    };
    Ok(LazyFile::new(what, Source::Memory(owner), start, header))
}

impl LazyFile {
    fn new(what: String, source: Source, start: usize, header: Header) -> LazyFile {
        let mut entries = header.entries;
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        LazyFile { what, source, start, entries }
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        let found = self.entries.binary_search_by(|entry| entry.name.as_str().cmp(name));
        found.ok().map(|i| &self.entries[i])
    }

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
        self.entries.iter().map(|entry| entry.name.as_str())
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
        self.entry(name).map(Entry::read_dtype)
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
        self.entry(name).map(|entry| entry.shape.clone())
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
    /// When there is none of that name, the file cannot be read or became shorter since it was
    /// opened, or as [`Tensor::from_bytes`].
    #[track_caller]
    pub fn load(&self, name: &str, device: &Device) -> Result<Tensor> {
        let what = format!("{}, `{name}`", self.what);
        let Some(entry) = self.entry(name) else {
            return Err(Error::Format { what, reason: "there is no such tensor".to_owned() });
        };
        match &self.source {
            Source::Memory(owner) => {
                // The header was checked against the bytes in memory: no sum overflows.
                let range = self.start + entry.range.start..self.start + entry.range.end;
                let part = Part { owner: owner.clone(), range };
                let (n, wanted) = (part.as_ref().len(), entry.range.len());
                if n != wanted {
                    let reason = format!("is cut off: {n} of its {wanted} bytes are there");
                    return Err(Error::Format { what, reason });
                }
                entry.tensor_in(Arc::new(part), device)
            }
            Source::File(file) => {
                let mut bytes = Vec::new();
                let n = entry.range.len();
                if let Err(error) = bytes.try_reserve_exact(n) {
                    return Err(Error::Format { what, reason: format!("{n} bytes: {error}") });
                }
                bytes.resize(n, 0);
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let start = SeekFrom::Start(self.start as u64 + entry.range.start as u64);
                let read = file.seek(start).and_then(|_| file.read_exact(&mut bytes));
                drop(file);
                read.map_err(|source| Error::Io { what, source })?;
                entry.tensor(&bytes, device)
            }
        }
    }
}
