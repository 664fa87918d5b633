//! GGUF files: metadata and named tensors, whole or quantised, of language models.
//!
//! The layout is that of ggml's `docs/gguf.md`, versions 2 and 3, little-endian. Opening reads the
//! directory alone and keeps it as it is, with an index; a value is decoded and a tensor read when
//! it is asked for, and quantised ones become `f32` on the way. Extents are listed fastest first in
//! the file and slowest first here.

use crate::dequantize::Quant;
use crate::reader::Reader;
use crate::{damaged, owned, room};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use zyx_core::files::Input;
use zyx_core::hal::host_room;
use zyx_core::{DType, Device, Error, Result, Shape, Tensor};

/// A value of the metadata.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the type it holds")]
pub enum Value {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    List(List),
}

/// A list of values of one type, kept as the file has it and decoded one by one.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    kind: u32,
    n: usize,
    bytes: Vec<u8>,
}

impl List {
    /// How many values there are.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(matches!(file.get("words"), Some(Value::List(words)) if words.len() == 2));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there is none.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(matches!(file.get("words"), Some(Value::List(words)) if !words.is_empty()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The values, in order.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// let Some(Value::List(words)) = file.get("words") else { panic!("no list") };
    /// assert!(words.iter().eq(["one", "two"].map(|word| Value::Text(word.to_owned()))));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn iter(&self) -> impl Iterator<Item = Value> + '_ {
        let mut r = Reader::new(&self.bytes);
        (0..self.n).map_while(move |_| value(&mut r, self.kind).ok())
    }
}

/// How a tensor is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    Whole(DType),
    Quantised(Quant),
    /// A type that cannot be read, by its number.
    Other(u32),
}

#[derive(Clone, Debug)]
struct Entry {
    shape: Vec<usize>,
    storage: Storage,
    offset: u64,
}

impl Entry {
    /// An item of the list of tensors, from its name on.
    fn read(r: &mut Reader<'_>) -> Result<Entry, String> {
        let name = r.text()?;
        let rank = r.u32()? as usize;
        if rank > Shape::MAX_RANK {
            return Err(format!("`{name}` has {rank} axes"));
        }
        let mut shape = (0..rank).map(|_| r.count()).collect::<Result<Vec<_>, _>>()?;
        shape.reverse();
        let storage = storage(r.u32()?);
        Ok(Entry { shape, storage, offset: r.u64()? })
    }
}

/// An open file.
#[derive(Debug)]
pub struct Gguf {
    path: PathBuf,
    file: Mutex<Input>,
    length: u64,
    /// What the file says before its data.
    head: Vec<u8>,
    directory: Directory,
}

impl Gguf {
    /// Opens a file and reads its directory.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(file.names().count() > 0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] when it cannot be read, [`Error::Format`] when it is not a GGUF file.
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf> {
        let path = path.as_ref().to_owned();
        let what = path.display().to_string();
        let io = |source| Error::Io { what: what.clone(), source };
        let mut file = Input::open(&path).map_err(io)?;
        let length = file.length();
        // The directory's length is known once it was parsed: read more until it is whole.
        let mut head = Vec::new();
        let mut wanted = 1 << 20;
        let directory = loop {
            let more = wanted - head.len() as u64;
            let room = head.try_reserve_exact(more.min(length - head.len() as u64) as usize);
            room.map_err(|error| damaged(&what, error.to_string()))?;
            file.by_ref().take(more).read_to_end(&mut head).map_err(io)?;
            match Directory::read(&head) {
                Ok(directory) => break directory,
                Err(reason) if head.len() as u64 >= length => return Err(damaged(&what, reason)),
                Err(_) => wanted = (wanted * 4).min(length),
            }
        };
        head.truncate(usize::try_from(directory.data).unwrap_or(usize::MAX));
        head.shrink_to_fit();
        Ok(Gguf { path, file: Mutex::new(file), length, head, directory })
    }

    fn key(&self, at: usize) -> &str {
        Reader::from(&self.head, at).text().unwrap_or_default()
    }

    /// Where the item of this name begins.
    fn find(&self, index: &[usize], name: &str) -> Option<usize> {
        index.binary_search_by(|&at| self.key(at).cmp(name)).ok().map(|i| index[i])
    }

    fn entry(&self, name: &str) -> Option<Entry> {
        let at = self.find(&self.directory.entries, name)?;
        Entry::read(&mut Reader::from(&self.head, at)).ok()
    }

    /// The names of all tensors.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(file.names().all(|name| file.shape(name).is_some()));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.directory.entries.iter().map(|&at| self.key(at))
    }

    /// A value of the metadata, like `general.architecture`.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(matches!(file.get("general.architecture"), Some(Value::Text(_))));
    /// assert_eq!(file.get("no such key"), None);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn get(&self, key: &str) -> Option<Value> {
        named_value(&self.head, self.find(&self.directory.metadata, key)?).map(|(_, value)| value)
    }

    /// All metadata, in the order of the keys.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert!(file.metadata().any(|(key, _)| key == "general.architecture"));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn metadata(&self) -> impl Iterator<Item = (&str, Value)> {
        self.directory.metadata.iter().filter_map(|&at| named_value(&self.head, at))
    }

    /// The extents of a tensor, slowest first.
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// assert_eq!(file.shape("no such tensor"), None);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn shape(&self, name: &str) -> Option<Shape> {
        self.entry(name).map(|entry| Shape::from(&entry.shape[..]))
    }

    /// A tensor: in its dtype if it is stored whole, in `f32` if it is quantised (Q4_0, Q4_1, Q5_0,
    /// Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_K).
    ///
    /// ```
    /// # use zyx::io::gguf::{Gguf, Value};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.gguf");
    /// let file = Gguf::open(path)?;
    /// for name in file.names() {
    ///     let tensor = file.load(name, &device)?;
    ///     assert_eq!(Some(tensor.shape()), file.shape(name).as_ref());
    /// }
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is none of that name, the file ends before it does, or it is quantised in another
    /// way.
    #[track_caller]
    pub fn load(&self, name: &str, device: &Device) -> Result<Tensor> {
        let what = format!("{}, `{name}`", self.path.display());
        let fail = |reason: String| damaged(&what, reason);
        let entry = self.entry(name).ok_or_else(|| fail("there is no such tensor".into()))?;
        let n = entry.shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let n = n.ok_or_else(|| fail(format!("the extents {:?} are too large", entry.shape)))?;
        let size = match entry.storage {
            Storage::Whole(dtype) => n.checked_mul(dtype.size()),
            Storage::Quantised(quant) => {
                let row = entry.shape.last().copied().unwrap_or(1);
                if !row.is_multiple_of(quant.elements()) {
                    let (kind, block) = (quant.name(), quant.elements());
                    let reason = format!("rows of {row} are not whole {kind} blocks of {block}");
                    return Err(fail(reason));
                }
                (n / quant.elements()).checked_mul(quant.bytes())
            }
            Storage::Other(kind) => {
                let name = UNREAD.iter().find(|(known, _)| *known == kind);
                let name =
                    name.map_or_else(|| format!("type {kind}"), |(_, name)| (*name).to_owned());
                return Err(fail(format!(
                    "{name} cannot be read; quantise the model as one of Q2_K to Q8_0"
                )));
            }
        };
        let size = size.ok_or_else(|| fail("it is too large".into()))?;
        let bytes = self.bytes(&what, entry.offset, size)?;
        match entry.storage {
            Storage::Quantised(quant) => {
                let floats = quant.floats(&bytes)?;
                drop(bytes);
                owned(floats, DType::F32, &entry.shape[..], device)
            }
            Storage::Whole(dtype) => owned(bytes, dtype, &entry.shape[..], device),
            Storage::Other(_) => unreachable!("invariant: refused above"),
        }
    }

    fn bytes(&self, what: &str, offset: u64, size: usize) -> Result<Vec<u8>> {
        let data = self.directory.data;
        let start = data.checked_add(offset);
        let start = start.filter(|s| s.checked_add(size as u64).is_some_and(|e| e <= self.length));
        let Some(start) = start else {
            // The offset is that of the file's own directory, which may be damaged too.
            let left = self.length.saturating_sub(data.saturating_add(offset));
            let reason = format!(
                "the file ends before the tensor does, which has {size} bytes where {left} are left"
            );
            return Err(damaged(what, reason));
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bytes = host_room(size)?;
        bytes.resize(size, 0);
        let read = file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut bytes));
        read.map_err(|source| Error::Io { what: what.to_owned(), source })?;
        Ok(bytes)
    }
}

/// Where in a file's head its items begin, in the order of their names.
#[derive(Debug)]
struct Directory {
    metadata: Vec<usize>,
    entries: Vec<usize>,
    /// Where the tensors' data begins.
    data: u64,
}

impl Directory {
    fn read(bytes: &[u8]) -> Result<Directory, String> {
        let mut r = Reader::new(bytes);
        if r.take(4)? != b"GGUF" {
            return Err("it does not begin as a GGUF file".to_owned());
        }
        let version = r.u32()?;
        if !matches!(version, 2 | 3) {
            return Err(format!("version {version} is not known"));
        }
        let (n_tensors, n_values) = (r.count()?, r.count()?);
        // A value takes 13 bytes at least, a tensor 24.
        let metadata = items(&mut r, n_values, 13, |r| {
            r.text()?;
            let kind = r.u32()?;
            skip(r, kind, 0)
        })?;
        let entries = items(&mut r, n_tensors, 24, |r| Entry::read(r).map(drop))?;
        let alignment = metadata.iter().find_map(|&at| {
            let (key, value) = named_value(bytes, at)?;
            (key == "general.alignment").then_some(value)
        });
        let alignment = match alignment {
            Some(Value::Unsigned(n)) if n > 0 && n <= 1 << 20 => n,
            None => 32,
            Some(_) => return Err("an alignment that is no number up to 2^20".to_owned()),
        };
        let data = (r.position() as u64).next_multiple_of(alignment);
        Ok(Directory { metadata, entries, data })
    }
}

/// Where each of `n` items of at least `least` bytes begins, in the order of their names.
fn items(
    r: &mut Reader<'_>,
    n: usize,
    least: usize,
    mut skip: impl FnMut(&mut Reader<'_>) -> Result<(), String>,
) -> Result<Vec<usize>, String> {
    if n > r.rest() / least {
        return Err(format!("it ends before its {n} names do"));
    }
    let mut index = room(n)?;
    for _ in 0..n {
        index.push(r.position());
        skip(r)?;
    }
    let name = |at: usize| r.at(at).text().unwrap_or_default();
    index.sort_unstable_by(|&a, &b| name(a).cmp(name(b)));
    if let Some(twice) = index.windows(2).find(|two| name(two[0]) == name(two[1])) {
        return Err(format!("`{}` is there twice", name(twice[0])));
    }
    Ok(index)
}

/// The key and value that begin at a place of the head.
fn named_value(head: &[u8], at: usize) -> Option<(&str, Value)> {
    let mut r = Reader::from(head, at);
    let key = r.text().ok()?;
    let kind = r.u32().ok()?;
    Some((key, value(&mut r, kind).ok()?))
}

fn storage(kind: u32) -> Storage {
    match kind {
        0 => Storage::Whole(DType::F32),
        1 => Storage::Whole(DType::F16),
        2 => Storage::Quantised(Quant::Q4_0),
        3 => Storage::Quantised(Quant::Q4_1),
        6 => Storage::Quantised(Quant::Q5_0),
        7 => Storage::Quantised(Quant::Q5_1),
        8 => Storage::Quantised(Quant::Q8_0),
        10 => Storage::Quantised(Quant::Q2K),
        11 => Storage::Quantised(Quant::Q3K),
        12 => Storage::Quantised(Quant::Q4K),
        13 => Storage::Quantised(Quant::Q5K),
        14 => Storage::Quantised(Quant::Q6K),
        15 => Storage::Quantised(Quant::Q8K),
        24 => Storage::Whole(DType::I8),
        25 => Storage::Whole(DType::I16),
        26 => Storage::Whole(DType::I32),
        27 => Storage::Whole(DType::I64),
        28 => Storage::Whole(DType::F64),
        30 => Storage::Whole(DType::BF16),
        other => Storage::Other(other),
    }
}

/// Types of ggml that are not read, with those that it no longer has.
const UNREAD: [(u32, &str); 23] = [
    (4, "Q4_2"),
    (5, "Q4_3"),
    (9, "Q8_1"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (29, "IQ1_M"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
    (39, "MXFP4"),
    (40, "NVFP4"),
    (41, "Q1_0"),
];

/// A value of one of the thirteen types, which was checked by [`skip`].
fn value(r: &mut Reader<'_>, kind: u32) -> Result<Value, String> {
    Ok(match kind {
        0 => Value::Unsigned(r.u8()?.into()),
        1 => Value::Signed((r.u8()? as i8).into()),
        2 => Value::Unsigned(r.u16()?.into()),
        3 => Value::Signed((r.u16()? as i16).into()),
        4 => Value::Unsigned(r.u32()?.into()),
        5 => Value::Signed((r.u32()? as i32).into()),
        6 => Value::Float(f32::from_bits(r.u32()?).into()),
        7 => Value::Bool(r.u8()? != 0),
        8 => Value::Text(r.text()?.to_owned()),
        9 => {
            let (kind, n) = (r.u32()?, r.count()?);
            let mut end = r.clone();
            (0..n).try_for_each(|_| skip(&mut end, kind, 0))?;
            let bytes = r.take(end.position() - r.position())?.to_vec();
            Value::List(List { kind, n, bytes })
        }
        10 => Value::Unsigned(r.u64()?),
        11 => Value::Signed(r.u64()? as i64),
        12 => Value::Float(f64::from_bits(r.u64()?)),
        other => return Err(format!("values of type {other} are not known")),
    })
}

/// Goes behind a value; lists nest a little.
fn skip(r: &mut Reader<'_>, kind: u32, depth: usize) -> Result<(), String> {
    let size = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        8 => return r.text().map(drop),
        9 if depth < 4 => {
            let (kind, n) = (r.u32()?, r.count()?);
            // Every value takes a byte at least.
            if n > r.rest() {
                return Err(format!("a list of {n} values is cut off"));
            }
            return (0..n).try_for_each(|_| skip(r, kind, depth + 1));
        }
        other => return Err(format!("values of type {other} are not known")),
    };
    r.take(size).map(drop)
}
