//! Files of which tensors are read one by one, when they are asked for.
//!
//! Opening reads the header alone, and checks it against the file's length; a tensor costs one
//! read of exactly its bytes. A file that somebody mapped into memory needs no read: its tensors
//! are the mapping. To map it is left to the program ([`open_owner`]), because that needs `unsafe`:
//! only who runs the program can promise that no other process changes the file or cuts it off.

use super::header;
use super::index::{self, Found, Index};
use safetensors::tensor::{Metadata, TensorInfo};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::files::Input;
use zyx_core::hal::{HostOwner, host_room};
use zyx_core::{DType, Device, Error, Result, Shape, Tensor};

/// An open file, or the open files of a model; see [`open`] and [`open_owner`].
#[derive(Debug)]
pub struct LazyFile {
    /// What errors call it.
    what: String,
    shards: Vec<Shard>,
    /// In alphabetical order, each with the number of its shard.
    names: Vec<(String, usize)>,
}

/// One file.
#[derive(Debug)]
struct Shard {
    what: String,
    source: Source,
    /// Where the tensors' data begins.
    start: usize,
    metadata: Metadata,
}

/// Where the bytes are.
enum Source {
    File(Mutex<Input>),
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

/// Opens a file without reading its tensors, or a model in several files: the path of its index
/// (`model.safetensors.index.json`), or of a folder that has `model.safetensors` or that index.
///
/// ```
/// use zyx::nn::safetensors;
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let path = std::env::temp_dir().join(format!("lazy-{}.safetensors", std::process::id()));
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// safetensors::save(&tensors, &path)?;
/// let file = safetensors::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["x"]);
/// assert_eq!(file.dtype("x"), Some(DType::F32));
/// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # std::fs::remove_file(path).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// A tensor that an index does not list is there all the same, if one of the files has it.
///
/// # Errors
/// As [`load`](super::load).
pub fn open(file: impl AsRef<Path>) -> Result<LazyFile> {
    let index = match index::find(file.as_ref())? {
        Found::File(file) => return LazyFile::new(vec![Shard::open(&file)?]),
        Found::Index(index) => index,
    };
    let folder = index.path.parent().unwrap_or(Path::new(""));
    let shards = index.files.iter().map(|name| Shard::open(&folder.join(name)));
    let file = LazyFile::new(shards.collect::<Result<_>>()?)?;
    let what = index.path.display().to_string();
    file.check(&index).map_err(|reason| Error::Format { what: what.clone(), reason })?;
    Ok(LazyFile { what, ..file })
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
/// use zyx::nn::safetensors;
/// use zyx::Tensor;
/// use std::sync::Arc;
/// let device = zyx::device()?;
/// let tensors = [("x".to_owned(), Tensor::new([1f32, 2.0], &device)?)].into();
/// // Or of the crate memmap2: `unsafe { memmap2::Mmap::map(&file)? }`.
/// let bytes: Vec<u8> = safetensors::to_bytes(&tensors)?;
/// let file = safetensors::open_owner(Arc::new(bytes))?;
/// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Format`] saying what is wrong when it is not a whole safetensors file.
pub fn open_owner(owner: HostOwner) -> Result<LazyFile> {
    let what = "safetensors".to_owned();
    let bytes = (*owner).as_ref();
    let parts = header::read(bytes).map(|(metadata, data)| (metadata, bytes.len() - data.len()));
    let (metadata, start) = match parts {
        Ok(parts) => parts,
        Err(reason) => return Err(Error::Format { what, reason }),
    };
    LazyFile::new(vec![Shard { what, source: Source::Memory(owner), start, metadata }])
}

impl Shard {
    fn open(path: &Path) -> Result<Shard> {
        let what = path.display().to_string();
        let io = |source| Error::Io { what: what.clone(), source };
        let mut file = Input::open(path).map_err(io)?;
        let length = file.length();
        let mut head = Vec::new();
        file.by_ref().take(8).read_to_end(&mut head).map_err(io)?;
        let damaged = |reason| Error::Format { what: what.clone(), reason };
        let n = header::length(&head).map_err(damaged)?;
        // As much as is there, if that is less than the header claims.
        head.reserve_exact(n.min(usize::try_from(length).unwrap_or(usize::MAX)));
        file.by_ref().take(n as u64).read_to_end(&mut head).map_err(io)?;
        let start = 8 + n;
        let available = usize::try_from(length.saturating_sub(start as u64)).unwrap_or(usize::MAX);
        let metadata = header::parse(&head[8..], n, available).map_err(damaged)?;
        Ok(Shard { what, source: Source::File(Mutex::new(file)), start, metadata })
    }

    #[track_caller]
    fn load(&self, name: &str, info: &TensorInfo, device: &Device) -> Result<Tensor> {
        let what = || format!("{}, `{name}`", self.what);
        let (begin, end) = info.data_offsets;
        match &self.source {
            Source::Memory(owner) => {
                // The header was checked against the bytes in memory: no sum overflows.
                let range = self.start + begin..self.start + end;
                let part = Part { owner: owner.clone(), range };
                let (n, wanted) = (part.as_ref().len(), end - begin);
                if n != wanted {
                    let reason = format!("is cut off: {n} of its {wanted} bytes are there");
                    return Err(Error::Format { what: what(), reason });
                }
                header::tensor_in(info, Arc::new(part), device)
            }
            Source::File(file) => {
                let mut bytes = host_room(end - begin)?;
                bytes.resize(end - begin, 0);
                let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
                let start = SeekFrom::Start(self.start as u64 + begin as u64);
                let read = file.seek(start).and_then(|_| file.read_exact(&mut bytes));
                drop(file);
                read.map_err(|source| Error::Io { what: what(), source })?;
                header::tensor(info, &bytes, device)
            }
        }
    }
}

impl LazyFile {
    /// The tensors of all shards, no name twice.
    fn new(shards: Vec<Shard>) -> Result<LazyFile> {
        let mut names = Vec::new();
        for (number, shard) in shards.iter().enumerate() {
            let mut keys = shard.metadata.offset_keys();
            names.reserve_exact(keys.len());
            names.extend(keys.drain(..).map(|name| (name, number)));
        }
        names.sort_unstable();
        if let Some([(name, a), (_, b)]) = names.array_windows().find(|[a, b]| a.0 == b.0) {
            let (what, other) = (shards[*b].what.clone(), &shards[*a].what);
            return Err(Error::Format { what, reason: format!("`{name}` is in {other}, too") });
        }
        let what = shards.first().map_or_else(String::new, |shard| shard.what.clone());
        Ok(LazyFile { what, shards, names })
    }

    /// That each tensor of an index is in the file that it names, and listed once.
    fn check(&self, index: &Index) -> Result<(), String> {
        let mut listed = vec![false; self.names.len()];
        index.each(|name, file| {
            let at = self.position(name);
            let shard = at.map(|at| &index.files[self.names[at].1]);
            let Some(at) = at.filter(|_| shard.is_some_and(|shard| shard == file)) else {
                let found = shard.map_or_else(String::new, |other| format!("; it is in `{other}`"));
                return Err(format!(
                    "`{name}` should be in `{file}`, which does not have it{found}"
                ));
            };
            match std::mem::replace(&mut listed[at], true) {
                true => Err(format!("`{name}` is listed twice")),
                false => Ok(()),
            }
        })
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()
    }

    fn entry(&self, name: &str) -> Option<(&Shard, &TensorInfo)> {
        let shard = &self.shards[self.names[self.position(name)?].1];
        Some((shard, shard.metadata.info(name)?))
    }

    /// All tensors, read in the order in which they lie in the files.
    #[track_caller]
    pub(super) fn all(&self, device: &Device) -> Result<BTreeMap<String, Tensor>> {
        let mut all = BTreeMap::new();
        for shard in &self.shards {
            for name in shard.metadata.offset_keys() {
                let info = shard.metadata.info(&name).expect("invariant: it is one of its keys");
                let tensor = shard.load(&name, info, device)?;
                all.insert(name, tensor);
            }
        }
        Ok(all)
    }

    /// The names of all tensors, in alphabetical order.
    ///
    /// ```
    /// # use zyx::nn::safetensors;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-names-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.names().collect::<Vec<_>>(), ["x"]);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|(name, _)| name.as_str())
    }

    /// The dtype that a tensor is read in; that of eight-bit floats is `f32`.
    ///
    /// ```
    /// # use zyx::nn::safetensors;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-dtype-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.dtype("x"), Some(DType::F32));
    /// assert_eq!(file.dtype("y"), None);
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn dtype(&self, name: &str) -> Option<DType> {
        self.entry(name).map(|(_, info)| header::read_dtype(info))
    }

    /// The extents of a tensor.
    ///
    /// ```
    /// # use zyx::nn::safetensors;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-shape-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.shape("x"), Some([1, 2].into()));
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.entry(name).map(|(_, info)| Shape::from(&info.shape[..]))
    }

    /// Reads a tensor. Eight-bit floats stay codes of a byte each until they are computed with.
    ///
    /// ```
    /// # use zyx::nn::safetensors;
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let path = std::env::temp_dir().join(format!("lazy-load-{}.safetensors", std::process::id()));
    /// # let x = Tensor::new([[1f32, 2.0]], &device)?;
    /// # safetensors::save(&[("x".to_owned(), x)].into(), &path)?;
    /// let file = safetensors::open(&path)?;
    /// assert_eq!(file.load("x", &device)?.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert!(file.load("y", &device).is_err());
    /// # std::fs::remove_file(path).unwrap();
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is none of that name, the file cannot be read or became shorter since it was
    /// opened, or as [`Tensor::from_bytes`].
    #[track_caller]
    pub fn load(&self, name: &str, device: &Device) -> Result<Tensor> {
        let Some((shard, info)) = self.entry(name) else {
            let what = format!("{}, `{name}`", self.what);
            return Err(Error::Format { what, reason: "there is no such tensor".to_owned() });
        };
        shard.load(name, info, device)
    }
}
