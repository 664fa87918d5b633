//! One array in NumPy's format (NEP 1): a magic string, a Python dictionary that gives dtype,
//! order and shape, and the elements.
//!
//! Versions 1 to 3 are read, in either byte order and either memory order; version 1 is written,
//! little-endian, in row-major order. `bf16` has no name in NumPy and is refused when saving.

use crate::{damaged, read, write};
use std::path::Path;
use zyx_core::{DType, Device, Result, Tensor};

const MAGIC: &[u8] = b"\x93NUMPY";

/// Reads an array.
///
/// ```
/// use zyx_core::{Runtime, Tensor};
/// use zyx_io::npy;
/// let device = Runtime::default().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-{}.npy", std::process::id()));
/// npy::save(&Tensor::new([[1i32, 2], [3, 4]], &device)?, &file)?;
/// assert_eq!(npy::load(&file, &device)?.to_vec::<i32>()?, [1, 2, 3, 4]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// [`Error::Io`](zyx_core::Error::Io) when the file cannot be read, [`Error::Format`](zyx_core::Error::Format) when it is not such a file or its
/// elements have no dtype here, or as [`Tensor::from_bytes`].
#[track_caller]
pub fn load(file: impl AsRef<Path>, device: &Device) -> Result<Tensor> {
    let what = file.as_ref().display().to_string();
    from_named_bytes(&read(file.as_ref())?, &what, device)
}

/// Writes an array, computing it if need be.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # use zyx_io::npy;
/// # let device = Runtime::default().device("reference")?;
/// let file = std::env::temp_dir().join(format!("doc-save-{}.npy", std::process::id()));
/// npy::save(&Tensor::new([1i32, 2], &device)?, &file)?;
/// assert_eq!(npy::load(&file, &device)?.to_vec::<i32>()?, [1, 2]);
/// # std::fs::remove_file(file).unwrap();
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// When the device fails, the file cannot be written, or the elements are `bf16`.
#[track_caller]
pub fn save(tensor: &Tensor, file: impl AsRef<Path>) -> Result<()> {
    write(file.as_ref(), &to_bytes(tensor)?)
}

/// The array in the bytes of a file.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # use zyx_io::npy;
/// # let device = Runtime::default().device("reference")?;
/// let bytes = npy::to_bytes(&Tensor::new([1i32, 2], &device)?)?;
/// assert_eq!(npy::from_bytes(&bytes, &device)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), zyx_core::Error>(())
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
/// # use zyx_core::{Runtime, Tensor};
/// # let device = Runtime::default().device("reference")?;
/// let bytes = zyx_io::npy::to_bytes(&Tensor::new([1u8, 2], &device)?)?;
/// assert_eq!((&bytes[..6], bytes.len()), (&b"\x93NUMPY"[..], 128 + 2));
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// As [`save`].
#[track_caller]
pub fn to_bytes(tensor: &Tensor) -> Result<Vec<u8>> {
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
    let mut bytes = [MAGIC, &[1, 0], &length.to_le_bytes(), header.as_bytes()].concat();
    bytes.extend_from_slice(&tensor.to_bytes()?);
    Ok(bytes)
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
    let (header, data) = Header::read(bytes).map_err(|reason| damaged(what, reason))?;
    let mut data = data.to_vec();
    if header.swapped {
        data.chunks_exact_mut(header.dtype.size()).for_each(<[u8]>::reverse);
    }
    if header.dtype == DType::Bool && data.iter().any(|&b| b > 1) {
        return Err(damaged(what, "a bool is neither 0 nor 1"));
    }
    let Header { dtype, mut shape, columns, .. } = header;
    if !columns {
        return Tensor::from_bytes(&data, dtype, shape, device);
    }
    // Column-major order is row-major order of the axes reversed.
    shape.reverse();
    let order: Vec<isize> = (0..shape.len() as isize).rev().collect();
    Tensor::from_bytes(&data, dtype, shape, device)?.permute(order)
}

struct Header {
    dtype: DType,
    swapped: bool,
    columns: bool,
    shape: Vec<usize>,
}

impl Header {
    /// The header, and the elements it describes.
    fn read(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
        let rest = bytes.strip_prefix(MAGIC).ok_or("it does not begin as an npy file")?;
        let (length, start) = match *rest {
            [1, _, a, b, ..] => (usize::from(u16::from_le_bytes([a, b])), 4),
            [2 | 3, _, a, b, c, d, ..] => (u32::from_le_bytes([a, b, c, d]) as usize, 6),
            [version, _, ..] => return Err(format!("version {version} is not known")),
            _ => return Err("it ends within its header".to_owned()),
        };
        let end = start + length;
        let header = rest.get(start..end).ok_or("it ends within its header")?;
        let header = std::str::from_utf8(header).map_err(|_| "the header is not text")?;
        let header = Header::parse(header)?;
        let data = &rest[end..];
        let n = header.shape.iter().try_fold(header.dtype.size(), |n, &d| n.checked_mul(d));
        if n != Some(data.len()) {
            let (shape, dtype) = (&header.shape, header.dtype);
            return Err(format!("{} bytes are not {shape:?} of {dtype}", data.len()));
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
