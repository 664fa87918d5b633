//! One array in NumPy's format (NEP 1): a magic string, a Python dictionary that gives dtype,
//! order and shape, and the elements.
//!
//! Versions 1 to 3 are read, in either byte order and either memory order; version 1 is written,
//! little-endian, in row-major order. `bf16` has no name in NumPy and is refused when saving.

use crate::{damaged, owned};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use zyx_core::hal::host_room;
use zyx_core::{DType, Device, Error, Result, Shape, Tensor, files};

const MAGIC: &[u8] = b"\x93NUMPY";

/// The longest header that is read: as long as one of version 1 can be.
const MOST_HEADER: usize = 1 << 16;

/// Reads an array.
///
/// ```
/// use zyx::io::npy;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let file = std::env::temp_dir().join(format!("doc-{}.npy", std::process::id()));
/// npy::save(&Tensor::new([[1i32, 2], [3, 4]], &device)?, &file)?;
/// assert_eq!(npy::load(&file, &device)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`] when the file cannot be read, [`Error::Format`] when it is not such a file or its
/// elements have no dtype here, or as [`Tensor::from_bytes`].
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
    let what = file.as_ref().display().to_string();
    from_named_bytes(&files::read(file)?, &what, device)
}

/// Writes an array, computing it if need be.
///
/// ```
/// # use zyx::io::npy;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-save-{}.npy", std::process::id()));
/// npy::save(&Tensor::new([1i32, 2], &device)?, &file)?;
/// assert_eq!(npy::load(&file, &device)?.to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the device fails, the file cannot be written, or the elements are `bf16`.
#[track_caller]
pub fn save(tensor: &Tensor, file: impl AsRef<Path>) -> Result<()> {
    tensor.realize()?;
    files::write(file, &mut |to| write(tensor, to))
}

/// The array in the bytes of a file.
///
/// ```
/// # use zyx::io::npy;
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let bytes = npy::to_bytes(&Tensor::new([1i32, 2], &device)?)?;
/// assert_eq!(npy::from_bytes(&bytes, &device)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`load`].
#[track_caller]
pub fn from_bytes(bytes: &[u8], device: &Device) -> Result<Tensor> {
    from_named_bytes(bytes, "npy", device)
}

/// The bytes of a file with this array.
///
/// ```
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let bytes = zyx::io::npy::to_bytes(&Tensor::new([1u8, 2], &device)?)?;
/// assert_eq!((&bytes[..6], bytes.len()), (&b"\x93NUMPY"[..], 128 + 2));
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// As [`save`].
#[track_caller]
pub fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
    files::in_memory(&mut |to| write(tensor, to))
}

/// Writes a file with this array.
pub(crate) fn write(tensor: &Tensor, to: &mut dyn Write) -> Result<()> {
    to.write_all(&header(tensor)?)
        .map_err(|source| Error::Io { what: "npy".to_owned(), source })?;
    tensor.write_to(to)
}

/// The magic string, the version, and the header's length and text.
fn header(tensor: &Tensor) -> Result<Vec<u8>> {
    let Some(descr) = descr(tensor.dtype()) else {
        return Err(damaged("npy", format!("NumPy has no {}; cast it", tensor.dtype())));
    };
    let dims: Vec<String> = tensor.shape().iter().map(|d| format!("{d}, ")).collect();
    let shape = match dims.len() {
        1 => dims[0].trim_end().to_owned(),
        _ => dims.concat().trim_end_matches(", ").to_owned(),
    };
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The elements begin at a multiple of 64.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64).max(128) - unpadded));
    header.push('\n');
    let length = u16::try_from(header.len()).expect("invariant: sixteen extents are short");
    Ok([MAGIC, &[1, 0], &length.to_le_bytes(), header.as_bytes()].concat())
}

fn descr(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::Bool => "|b1",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        _ => return None,
    })
}

#[track_caller]
pub(crate) fn from_named_bytes(bytes: &[u8], what: &str, device: &Device) -> Result<Tensor> {
    from_reader(&mut { bytes }, bytes.len(), what, device)
}

/// The array in a file of `size` bytes. The elements are read to where they stay on devices that
/// compute in host memory.
#[track_caller]
pub(crate) fn from_reader(
    file: &mut dyn Read,
    size: usize,
    what: &str,
    device: &Device,
) -> Result<Tensor> {
    let fail = |reason: String| damaged(what, reason);
    let (header, n) = Header::read(file, size).map_err(fail)?;
    let mut data = host_room(n)?;
    data.resize(n, 0);
    exact(file, &mut data).map_err(fail)?;
    // An archive compares checksums at the end.
    if file.read(&mut [0]).map_err(|error| fail(error.to_string()))? > 0 {
        return Err(fail("bytes follow the elements".to_owned()));
    }
    let Header { dtype, swapped, columns, mut shape } = header;
    if swapped {
        data.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if dtype == DType::Bool && data.iter().any(|&b| b > 1) {
        return Err(damaged(what, "a bool is neither 0 nor 1"));
    }
    if !columns {
        return owned(data, dtype, shape, device);
    }
    // Column-major order is row-major order of the axes reversed.
    shape.reverse();
    let order: Vec<isize> = (0..shape.len() as isize).rev().collect();
    owned(data, dtype, shape, device)?.permute(order)
}

fn exact(file: &mut dyn Read, bytes: &mut [u8]) -> Result<(), String> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
        _ => error.to_string(),
    })
}

struct Header {
    dtype: DType,
    swapped: bool,
    columns: bool,
    shape: Vec<usize>,
}

impl Header {
    /// The header, and the number of bytes that follow it.
    fn read(file: &mut dyn Read, size: usize) -> Result<(Header, usize), String> {
        let within = |_| "it ends within its header".to_owned();
        let mut start = [0; 10];
        let fixed = &mut start[..size.min(10)];
        exact(file, fixed)?;
        if fixed.get(..6) != Some(MAGIC) {
            return Err("it does not begin as an npy file".to_owned());
        }
        let (length, mut begun) = match fixed[6..] {
            [1, _, a, b] => (usize::from(u16::from_le_bytes([a, b])), 10),
            [2 | 3, _, a, b] => {
                let mut high = [0; 2];
                exact(file, &mut high).map_err(within)?;
                (u32::from_le_bytes([a, b, high[0], high[1]]) as usize, 12)
            }
            [version, _, _, _] => return Err(format!("version {version} is not known")),
            _ => return Err("it ends within its header".to_owned()),
        };
        begun += length;
        if begun > size {
            return Err("it ends within its header".to_owned());
        }
        if length > MOST_HEADER {
            return Err(format!("its header has {length} bytes, at most {MOST_HEADER} are read"));
        }
        let mut header = vec![0; length];
        exact(file, &mut header).map_err(within)?;
        let header = std::str::from_utf8(&header).map_err(|_| "the header is not text")?;
        let header = Header::parse(header)?;
        let data = size - begun;
        let n = header.shape.iter().try_fold(header.dtype.size(), |n, &d| n.checked_mul(d));
        if n != Some(data) || header.shape.len() > Shape::MAX_RANK {
            let (shape, dtype) = (&header.shape, header.dtype);
            let rank = shape.len();
            let shape = &shape[..rank.min(Shape::MAX_RANK)];
            return Err(format!("{data} bytes are not {shape:?} ({rank} axes) of {dtype}"));
        }
        Ok((header, data))
    }

    fn parse(text: &str) -> Result<Header, String> {
        let value = |key: &str| {
            let quoted = [format!("'{key}'"), format!("\"{key}\"")];
            let found = quoted.iter().find_map(|key| Some(text.split_once(key.as_str())?.1));
            let after = found.and_then(|rest| rest.trim_start().strip_prefix(':'));
            after.map(str::trim_start).ok_or_else(|| format!("the header lacks `{key}`"))
        };
        let descr = value("descr")?;
        let quote = descr.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let descr = quote.and_then(|quote| descr[1..].split(quote).next());
        let descr = descr.ok_or("structured elements have no dtype here")?;
        let (order, kind) = descr.split_at_checked(1).ok_or("the dtype is empty")?;
        let dtype = match kind {
            "b1" => DType::Bool,
            "u1" => DType::U8,
            "u2" => DType::U16,
            "u4" => DType::U32,
            "u8" => DType::U64,
            "i1" => DType::I8,
            "i2" => DType::I16,
            "i4" => DType::I32,
            "i8" => DType::I64,
            "f2" => DType::F16,
            "f4" => DType::F32,
            "f8" => DType::F64,
            _ => return Err(format!("elements `{descr}` have no dtype here")),
        };
        let columns = match value("fortran_order")? {
            order if order.starts_with("True") => true,
            order if order.starts_with("False") => false,
            _ => return Err("`fortran_order` is neither True nor False".to_owned()),
        };
        let shape = value("shape")?.strip_prefix('(').and_then(|rest| rest.split(')').next());
        let shape = shape.ok_or("`shape` is not a tuple")?;
        let extents = shape.split(',').map(str::trim).filter(|d| !d.is_empty());
        let shape: Result<Vec<usize>, String> =
            extents.map(|d| d.parse().map_err(|_| format!("`{d}` is no extent"))).collect();
        Ok(Header { dtype, swapped: order == ">", columns, shape: shape? })
    }
}
