//! State dicts that PyTorch saved (`torch.save`: `.pt`, `.pth`, `.bin`): a zip archive with a
//! pickle and the bytes of storages.
//!
//! Nothing in a file is executed. A pickle may name functions of Python; those that make tensors
//! and dicts are understood. What is no tensor (numbers, strings, objects of other classes) is left out;
//! an object of another class with tensors in it is an error that names the class. So files that hold
//! whole modules are refused: save the `state_dict()`.
//!
//! Dicts and lists may be within one another, as checkpoints have them; the name of a tensor then
//! consists of all keys, joined by dots: `state_dict.layer.weight`, `optimizer.state.0.exp_avg`.
//!
//! Files of PyTorch before 1.6, which are no archives and have no checksums, are read as well; those
//! of big-endian machines are refused.

use crate::archive::{Archive, Source};
use crate::before_archives;
use crate::pickle::{Found, Pickle, Stored, View};
use crate::{damaged, default_limit, look, open, owned, room};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, SeekFrom};
use std::path::Path;
use zyx_core::hal::host_room;
use zyx_core::{DType, Device, Error, Result, Tensor};

/// What the directory of an archive may take for an entry.
const ENTRY: u64 = 280;

/// What reading takes whatever the file.
const CONSTANT: u64 = 64 << 10;

/// Reads all tensors of a file, by name.
///
/// ```
/// use zyx::io::pytorch;
/// let device = zyx::device()?;
/// let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.pt");
/// let tensors = pytorch::load(file, &device)?;
/// assert_eq!(tensors["model.weight"].shape().dims(), [3, 2]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] when the file cannot be read; [`Error::Format`] when it is damaged, names a function
/// or class that state dicts do not need, holds elements that have no dtype here (complex numbers),
/// was written on a big-endian machine, two tensors get the same name, or the tensors have more
/// bytes than [`load_at_most`] is for; or as [`Tensor::from_bytes`].
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let (what, (mut reader, size)) = (file.as_ref().display().to_string(), open(file.as_ref())?);
    from_reader(&mut reader, size, &what, default_limit(size), device)
}

/// As [`load`], with another limit on the bytes of all tensors together. Tensors of one storage are
/// read one by one, so a small file can have large ones; where no limit is given, it is 1 GiB, or 16
/// times the file if that is more.
///
/// ```
/// use zyx::io::pytorch;
/// let device = zyx::device()?;
/// let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.pt");
/// assert!(pytorch::load_at_most(file, 100, &device).is_err());
/// assert!(pytorch::load_at_most(file, 10_000, &device).is_ok());
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
    let (what, (mut reader, size)) = (file.as_ref().display().to_string(), open(file.as_ref())?);
    from_reader(&mut reader, size, &what, limit, device)
}

/// The tensors of a file that was read already.
///
/// ```
/// use zyx::io::pytorch;
/// let device = zyx::device()?;
/// let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model.pt");
/// let bytes = std::fs::read(file).unwrap();
/// assert!(pytorch::from_bytes(&bytes, &device)?.contains_key("model.bias"));
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<BTreeMap<String, Tensor>> {
    let size = bytes.len() as u64;
    from_reader(&mut Cursor::new(bytes), size, "pytorch", default_limit(size), device)
}

#[track_caller]
fn from_reader(
    reader: &mut dyn Source,
    size: u64,
    what: &str,
    limit: usize,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    let io = |source| Error::Io { what: what.to_owned(), source };
    let mut start = Vec::new();
    let head = before_archives::START.len() as u64;
    let begun = (&mut *reader).take(head).read_to_end(&mut start);
    begun.and_then(|_| reader.seek(SeekFrom::Start(0))).map_err(io)?;
    if start == before_archives::START {
        let mut bytes = host_room(usize::try_from(size).unwrap_or(usize::MAX))?;
        reader.take(size).read_to_end(&mut bytes).map_err(io)?;
        let (pickle, found, mut storages) =
            before_archives::read(&bytes).map_err(|reason| damaged(what, reason))?;
        return tensors(&pickle, found, &mut storages, what, limit, device);
    }
    let (archive, entries, code) = opened(reader, what)?;
    // Four times the file, without what is taken already and the largest storage, which is read
    // beside the pickle.
    let largest = entries.storages.iter().map(|(_, i)| archive.entry_size(*i)).max().unwrap_or(0);
    let taken = archive.len() as u64 * ENTRY + code.len() as u64 + largest.min(size);
    let memory = size.saturating_mul(4).saturating_sub(taken) + CONSTANT;
    let memory = usize::try_from(memory).unwrap_or(usize::MAX);
    let mut pickle = Pickle::run(&code, memory).map_err(|reason| damaged(what, reason))?;
    let found = pickle.tensors().map_err(|reason| damaged(what, reason))?;
    tensors(&pickle, found, &mut (archive, entries), what, limit, device)
}

/// Where the bytes of storages are.
pub(crate) trait Storages {
    /// The number of bytes of a storage.
    fn size(&self, name: &str) -> Option<u64>;
    /// All bytes of a storage, of which errors say where it is; none of one that is missing.
    fn read(&mut self, name: &str, what: &str) -> Result<Vec<u8>>;
}

impl Storages for (Archive<'_>, Entries) {
    fn size(&self, name: &str) -> Option<u64> {
        self.1.storage(name).map(|entry| self.0.entry_size(entry))
    }

    fn read(&mut self, name: &str, what: &str) -> Result<Vec<u8>> {
        self.1.storage(name).map_or(Ok(Vec::new()), |entry| bytes(&mut self.0, what, entry))
    }
}

/// The tensors that were found, all of which are looked at before any is made.
#[track_caller]
fn tensors(
    pickle: &Pickle<'_>,
    mut found: Vec<(String, Found)>,
    storages: &mut dyn Storages,
    what: &str,
    limit: usize,
    device: &Device,
) -> Result<BTreeMap<String, Tensor>> {
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(twice) = found.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(damaged(what, format!("two tensors get the name `{}`", twice[0].0)));
    }
    let mut whole = 0usize;
    for (name, tensor) in &found {
        let n = check(storages, pickle, *tensor);
        let n = n.map_err(|reason| damaged(&format!("{what}, `{name}`"), reason))?;
        whole = whole.saturating_add(n);
    }
    if whole > limit {
        let reason = format!(
            "its tensors have {whole} bytes, more than the limit of {limit}: give another limit if \
             you trust it"
        );
        return Err(damaged(what, reason));
    }
    // Each storage is read once.
    let storage_of = |found: &(String, Found)| pickle.storage_name(found.1);
    found.sort_unstable_by_key(storage_of);
    let mut tensors = BTreeMap::new();
    for group in found.chunk_by(|a, b| storage_of(a) == storage_of(b)) {
        let mut storage = storages.read(storage_of(&group[0]), what)?;
        let alone = group.len() == 1;
        for (name, tensor) in group {
            let within = format!("{what}, `{name}`");
            let fail = |reason| damaged(&within, reason);
            let view = pickle.view(*tensor).map_err(fail)?;
            let layout = Layout::new(&view).map_err(fail)?;
            let whole = layout.run * view.element() == storage.len();
            let elements = match alone && whole {
                true => std::mem::take(&mut storage),
                false => layout.gather(&view, &storage)?,
            };
            tensors.insert(name.clone(), layout.tensor(&view, elements, &within, device)?);
        }
    }
    Ok(tensors)
}

/// The archive in a file, which of its entries are what, and its pickle.
fn opened<'a>(reader: &'a mut dyn Source, what: &str) -> Result<(Archive<'a>, Entries, Vec<u8>)> {
    let mut archive = Archive::open(reader, what)?;
    // As `torch.serialization.set_crc32_options(False)` has it.
    archive.zero_is_none = true;
    let entries = Entries::read(&archive, what)?;
    if let Some(order) = entries.byte_order {
        let order = bytes(&mut archive, what, order)?;
        if order != b"little" {
            let order = String::from_utf8_lossy(&order[..order.len().min(20)]).into_owned();
            return Err(damaged(what, format!("its byte order is {order}, not little")));
        }
    }
    let code = bytes(&mut archive, what, entries.pickle)?;
    Ok((archive, entries, code))
}

/// Which entries of an archive are what.
pub(crate) struct Entries {
    pickle: usize,
    byte_order: Option<usize>,
    /// The names of storages, sorted, and their entries.
    storages: Vec<(String, usize)>,
}

impl Entries {
    fn read(archive: &Archive<'_>, what: &str) -> Result<Entries> {
        let mut pickle = None;
        for i in 0..archive.len() {
            let name = archive.name(i)?;
            let folder = name.split_once('/').filter(|(_, file)| *file == "data.pkl");
            if let Some((folder, _)) = folder
                && pickle.replace((i, folder.to_owned())).is_some()
            {
                return Err(damaged(what, "it has more than one `data.pkl`"));
            }
        }
        let Some((pickle, folder)) = pickle else {
            return Err(damaged(what, "it has no `data.pkl`, so `torch.save` did not write it"));
        };
        let storages = room(archive.len()).map_err(|reason| damaged(what, reason))?;
        let mut entries = Entries { pickle, byte_order: None, storages };
        for i in 0..archive.len() {
            let name = archive.name(i)?;
            let file = name.strip_prefix(&folder).and_then(|rest| rest.strip_prefix('/'));
            match file.map(|file| (file, file.strip_prefix("data/"))) {
                Some(("byteorder", _)) => entries.byte_order = Some(i),
                Some((_, Some(storage))) => entries.storages.push((storage.to_owned(), i)),
                _ => {}
            }
        }
        entries.storages.sort_unstable();
        Ok(entries)
    }

    fn storage(&self, name: &str) -> Option<usize> {
        let at = self.storages.binary_search_by(|(known, _)| known.as_str().cmp(name)).ok()?;
        Some(self.storages[at].1)
    }
}

/// All bytes of an entry, compared with their checksum.
fn bytes(archive: &mut Archive<'_>, what: &str, entry: usize) -> Result<Vec<u8>> {
    let mut content = archive.content(entry)?;
    let within = format!("{what}, `{}`", content.name);
    if !content.stored {
        return Err(damaged(&within, "it is compressed, as PyTorch compresses nothing"));
    }
    let mut bytes = host_room(content.size)?;
    bytes.resize(content.size, 0);
    let read = content.read_exact(&mut bytes).and_then(|()| content.read(&mut [0]));
    match read {
        Ok(0) => Ok(bytes),
        Ok(_) => Err(damaged(&within, "it has more bytes than the directory says")),
        Err(source) if source.raw_os_error().is_some() => Err(Error::Io { what: within, source }),
        Err(error) => Err(damaged(&within, error.to_string())),
    }
}

/// Checks a tensor against its storage, and tells how many bytes it has.
fn check(storages: &dyn Storages, pickle: &Pickle<'_>, tensor: Found) -> Result<usize, String> {
    let view = pickle.view(tensor)?;
    let layout = Layout::new(&view)?;
    let storage = view.storage;
    match storages.size(storage) {
        Some(size) if view.storage_size() != Some(size) => {
            let len = view.len;
            Err(format!("its storage `{storage}` has {size} bytes instead of {len} elements"))
        }
        None if layout.n > 0 => Err(format!("its storage `{storage}` is missing")),
        _ => Ok(layout.n * view.element()),
    }
}

/// Where the elements of a tensor are in its storage.
struct Layout {
    /// The extents, 1 along axes that repeat what they have.
    dense: Vec<usize>,
    /// The number of elements, without those that are repeated.
    n: usize,
    /// Extents and strides of the axes along which there is more than one, but those of `run`.
    outer: Vec<(usize, usize)>,
    /// How many elements follow one another.
    run: usize,
}

impl Layout {
    fn new(view: &View<'_>) -> Result<Layout, String> {
        let View { shape, strides, offset, .. } = view;
        let too_large = || format!("its shape {shape:?} is too large");
        let all = shape.iter().try_fold(view.element(), |n, &d| n.checked_mul(d));
        all.ok_or_else(too_large)?;
        let repeats = |(&d, &stride): (&usize, &usize)| if stride == 0 { d.min(1) } else { d };
        let dense: Vec<usize> = shape.iter().zip(strides).map(repeats).collect();
        let n = dense.iter().product();
        if n == 0 {
            return Ok(Layout { dense, n, outer: Vec::new(), run: 0 });
        }
        let axes = dense.iter().copied().zip(strides.iter().copied());
        let mut outer: Vec<(usize, usize)> = axes.filter(|(d, _)| *d > 1).collect();
        let step = |last: usize, &(d, stride): &(usize, usize)| {
            (d - 1).checked_mul(stride).and_then(|more| last.checked_add(more))
        };
        let last = outer.iter().try_fold(*offset, step).ok_or_else(too_large)?;
        let len = view.storage_len();
        if last >= len {
            return Err(format!("it reaches element {last} of a storage that has {len}"));
        }
        if n > len {
            return Err(format!(
                "its {n} elements overlap in a storage of {len}; save its `contiguous()`"
            ));
        }
        let mut run = 1;
        while let Some((d, _)) = outer.pop_if(|(_, stride)| *stride == run) {
            run *= d;
        }
        Ok(Layout { dense, n, outer, run })
    }

    /// The elements in row-major order.
    fn gather(&self, view: &View<'_>, storage: &[u8]) -> Result<Vec<u8>> {
        let size = view.element();
        let mut elements = host_room(self.n * size)?;
        let mut index = vec![0; self.outer.len()];
        let mut at = view.offset;
        for step in 0..self.n / self.run.max(1) {
            look(step)?;
            elements.extend_from_slice(&storage[at * size..(at + self.run) * size]);
            // The next place along the outer axes, the last of them first.
            for (index, &(d, stride)) in index.iter_mut().zip(&self.outer).rev() {
                (*index, at) = (*index + 1, at + stride);
                if *index < d {
                    break;
                }
                (*index, at) = (0, at - d * stride);
            }
        }
        Ok(elements)
    }

    /// The tensor of these elements.
    #[track_caller]
    fn tensor(
        self,
        view: &View<'_>,
        elements: Vec<u8>,
        what: &str,
        device: &Device,
    ) -> Result<Tensor> {
        let (dtype, float8) = match view.stored {
            Stored::Plain(dtype) => (dtype, None),
            Stored::Float8(format) => (DType::U8, Some(format)),
            Stored::Bytes => (DType::U8, None),
        };
        if dtype == DType::Bool && elements.iter().any(|&b| b > 1) {
            return Err(damaged(what, "a bool is neither 0 nor 1"));
        }
        let repeated = self.dense != view.shape;
        let mut tensor = owned(elements, dtype, self.dense, device)?;
        if let Some(format) = float8 {
            tensor = tensor.decode_float8(format)?;
        }
        if repeated { tensor.expand(&view.shape[..]) } else { Ok(tensor) }
    }
}
