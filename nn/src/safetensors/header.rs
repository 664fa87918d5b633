//! The header of a safetensors file: what is where, and that it adds up.

use super::json::{self, Value, Wrong};
use std::ops::Range;
use zyx_core::{DType, Device, Error, Float8, Shape, Tensor, hal::HostOwner};

/// What the start of the data is a multiple of in files that are written: a line of the cache, and
/// more than what memory of others must be aligned to for a device to compute in it. The format
/// asks for 8 and lets a header end with spaces.
const ALIGNMENT: usize = 64;

/// The longest header the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// Names of dtypes in the format.
const DTYPES: [(&str, DType); 13] = [
    ("BOOL", DType::Bool),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("I8", DType::I8),
    ("I16", DType::I16),
    ("I32", DType::I32),
    ("I64", DType::I64),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
];

/// Names of the eight-bit floats, which are codes in `u8`.
const FLOAT8: [(&str, Float8); 2] = [("F8_E4M3", Float8::E4M3), ("F8_E5M2", Float8::E5M2)];

/// One tensor of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    /// The dtype of its elements in the file.
    pub(super) dtype: DType,
    /// What they are codes of, if they are.
    pub(super) float8: Option<Float8>,
    pub(super) shape: Shape,
    /// Its bytes, from the start of the data.
    pub(super) range: Range<usize>,
}

impl Entry {
    /// The tensor of these bytes. Eight-bit floats stay codes, which become `f32` where they are
    /// used.
    #[track_caller]
    pub(super) fn tensor(&self, bytes: &[u8], device: &Device) -> Result<Tensor, Error> {
        self.decoded(Tensor::from_bytes(bytes, self.dtype, self.shape.clone(), device)?)
    }

    /// As [`tensor`](Entry::tensor), of the memory of `owner`.
    #[track_caller]
    pub(super) fn tensor_in(&self, owner: HostOwner, device: &Device) -> Result<Tensor, Error> {
        self.decoded(Tensor::from_owner(owner, self.dtype, self.shape.clone(), device)?)
    }

    #[track_caller]
    fn decoded(&self, x: Tensor) -> Result<Tensor, Error> {
        match self.float8 {
            Some(format) => x.decode_float8(format),
            None => Ok(x),
        }
    }

    /// The dtype of that tensor.
    pub(super) fn read_dtype(&self) -> DType {
        if self.float8.is_some() { DType::F32 } else { self.dtype }
    }
}

/// All tensors of a file, in the order of their data.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) entries: Vec<Entry>,
}

impl Header {
    /// Length and text of the header, padded with spaces so that the data is aligned.
    pub(super) fn write(&self) -> Vec<u8> {
        let entry = |Entry { name, dtype, float8, shape, range }: &Entry| {
            let narrow = FLOAT8.iter().find(|(_, known)| Some(*known) == *float8).map(|row| row.0);
            let named = DTYPES.iter().find(|(_, known)| known == dtype).map(|row| row.0);
            let code = narrow.or(named).expect("invariant: the table has every dtype");
            let Range { start, end } = range;
            let name = json::quote(name);
            format!(
                "{name}:{{\"dtype\":\"{code}\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}"
            )
        };
        let entries: Vec<String> = self.entries.iter().map(entry).collect();
        let mut text = format!("{{{}}}", entries.join(",")).into_bytes();
        text.resize((8 + text.len()).next_multiple_of(ALIGNMENT) - 8, b' ');
        [&(text.len() as u64).to_le_bytes()[..], &text].concat()
    }

    /// The header of a whole file, and the data behind it.
    pub(super) fn read(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
        let length = Header::length(bytes)?;
        let rest = &bytes[8..];
        let (text, data) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        Ok((Header::parse(text, length, data.len())?, data))
    }

    /// The length of the header, which a file begins with.
    pub(super) fn length(bytes: &[u8]) -> Result<usize, String> {
        let Some(length) = bytes.first_chunk::<8>() else {
            let n = bytes.len();
            return Err(format!("is cut off: {n} bytes, not even the 8 of the header's length"));
        };
        let length = u64::from_le_bytes(*length);
        if length > MAX_HEADER {
            return Err(format!(
                "claims a header of {length} bytes, the format allows {MAX_HEADER}; this is not \
                 a safetensors file"
            ));
        }
        Ok(length as usize)
    }

    /// The header in a text that should have `length` bytes, before `available` bytes of data.
    pub(super) fn parse(text: &[u8], length: usize, available: usize) -> Result<Header, String> {
        if text.len() < length {
            let n = text.len();
            return Err(format!("is cut off in the header: {n} of its {length} bytes are there"));
        }
        let text =
            std::str::from_utf8(text).map_err(|e| format!("the header is not UTF-8: {e}"))?;
        let named = |member: &mut dyn FnMut(String, &str) -> Result<(), String>| match json::members(
            text,
            |name, value| match name.as_str() {
                "__metadata__" => Ok(()),
                _ => member(name, value).map_err(Wrong::Member),
            },
        ) {
            Ok(true) => Ok(()),
            Ok(false) => Err("the header is JSON, but not an object".to_owned()),
            Err(Wrong::Json(e)) => Err(format!("the header is not JSON: {e}")),
            Err(Wrong::Member(reason)) => Err(reason),
        };
        // Checked and counted first, so that no more memory is taken than they need.
        let mut n = 0;
        named(&mut |name, value| {
            n += 1;
            entry(name, value).map(drop)
        })?;
        let mut entries = Vec::new();
        entries.try_reserve_exact(n).map_err(|e| format!("{n} tensors: {e}"))?;
        named(&mut |name, value| {
            entries.push(entry(name, value)?);
            Ok(())
        })?;
        entries.sort_unstable_by(|a: &Entry, b: &Entry| a.name.cmp(&b.name));
        if let Some(twice) = entries.windows(2).find(|two| two[0].name == two[1].name) {
            return Err(format!("`{}` is there twice", twice[0].name));
        }
        entries.sort_unstable_by_key(|entry| (entry.range.start, entry.range.end));
        let header = Header { entries };
        header.check_layout(available)?;
        Ok(header)
    }

    /// That the entries cover the data exactly.
    fn check_layout(&self, available: usize) -> Result<(), String> {
        let mut end = 0;
        let mut previous = "";
        for Entry { name, range, .. } in &self.entries {
            if range.start < end {
                return Err(format!("the data of `{previous}` and `{name}` overlap"));
            }
            if range.start > end {
                let gap = range.start - end;
                return Err(format!("{gap} bytes before `{name}` belong to no tensor"));
            }
            (end, previous) = (range.end, name);
        }
        if end > available {
            return Err(format!("is cut off in the data: {available} of {end} bytes are there"));
        }
        if end < available {
            return Err(format!("{} bytes follow the last tensor", available - end));
        }
        Ok(())
    }
}

/// The longest text of an entry: more than any of sixteen axes has.
const MAX_ENTRY: usize = 4096;

fn entry(mut name: String, text: &str) -> Result<Entry, String> {
    if text.len() > MAX_ENTRY {
        let n = text.len();
        return Err(format!("the entry of `{name}` has {n} bytes, more than {MAX_ENTRY}"));
    }
    name.shrink_to_fit();
    let value = &json::parse(text)?;
    let field = |key: &str| {
        let Value::Object(members) = value else {
            return Err(format!("the entry of `{name}` is not an object"));
        };
        let member = members.iter().find(|(known, _)| known == key);
        member.map(|(_, value)| value).ok_or_else(|| format!("`{name}` has no `{key}`"))
    };
    let numbers = |key: &str| {
        let number = |value: &Value| match value {
            Value::Unsigned(n) => usize::try_from(*n).ok(),
            _ => None,
        };
        let list = match field(key)? {
            Value::Array(list) => list.iter().map(number).collect::<Option<Vec<usize>>>(),
            _ => None,
        };
        list.ok_or_else(|| format!("`{key}` of `{name}` is not a list of whole numbers"))
    };
    let Value::String(code) = field("dtype")? else {
        return Err(format!("`dtype` of `{name}` is not a string"));
    };
    let float8 = FLOAT8.iter().find(|(known, _)| known == code).map(|row| row.1);
    let plain = DTYPES.iter().find(|(known, _)| known == code).map(|row| row.1);
    let Some(dtype) = float8.map(|_| DType::U8).or(plain) else {
        let known = DTYPES.iter().map(|row| row.0).chain(FLOAT8.iter().map(|row| row.0));
        let known = known.collect::<Vec<_>>().join(", ");
        return Err(format!("`{name}` has dtype `{code}`, which is none of {known}"));
    };
    let shape = Shape::from(numbers("shape")?);
    if shape.rank() > Shape::MAX_RANK {
        let (rank, most) = (shape.rank(), Shape::MAX_RANK);
        return Err(format!("`{name}` has {rank} axes, more than the possible {most}"));
    }
    let offsets = numbers("data_offsets")?;
    let &[start, end] = &offsets[..] else {
        return Err(format!("`{name}` has {} data offsets instead of two", offsets.len()));
    };
    let Some(bytes) = end.checked_sub(start) else {
        return Err(format!("the data of `{name}` ends at {end}, before its start {start}"));
    };
    if shape.checked_numel().and_then(|n| n.checked_mul(dtype.size())) != Some(bytes) {
        return Err(format!("`{name}` has {bytes} bytes, which is not {dtype} of shape {shape}"));
    }
    Ok(Entry { name, dtype, float8, shape, range: start..end })
}
