//! The header of a safetensors file: what is where, and that it adds up.
//!
//! The crate `safetensors` defines what is valid, and `serde_json` reads it. Here are bounds on what
//! reading may take, the dtypes that tensors can have, and words that name the tensor that is wrong.
//!
//! A JSON value takes many times the memory of its text, so the members of a header are gone
//! through one by one ([`members`]), each parsed alone.

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use zyx_core::{DType, Device, Float8, Result, Shape, Tensor, hal::HostOwner};

/// What the start of the data is a multiple of in files that are written: a line of the cache, and
/// more than what memory of others must be aligned to for a device to compute in it. The format
/// asks for 8 and lets a header end with spaces.
const ALIGNMENT: usize = 64;

/// The longest header the format allows.
const MAX_HEADER: u64 = 100_000_000;

/// The member of a header that is no tensor.
const METADATA: &str = "__metadata__";

/// The longest text of an entry: more than any of sixteen axes has.
const MAX_ENTRY: usize = 4096;

/// The longest name.
const MAX_NAME: usize = 1 << 16;

/// Dtypes of the format that tensors have. Eight-bit floats are codes in `u8`.
const DTYPES: [(Dtype, DType, Option<Float8>); 15] = [
    (Dtype::BOOL, DType::Bool, None),
    (Dtype::U8, DType::U8, None),
    (Dtype::U16, DType::U16, None),
    (Dtype::U32, DType::U32, None),
    (Dtype::U64, DType::U64, None),
    (Dtype::I8, DType::I8, None),
    (Dtype::I16, DType::I16, None),
    (Dtype::I32, DType::I32, None),
    (Dtype::I64, DType::I64, None),
    (Dtype::F16, DType::F16, None),
    (Dtype::BF16, DType::BF16, None),
    (Dtype::F32, DType::F32, None),
    (Dtype::F64, DType::F64, None),
    (Dtype::F8_E4M3, DType::U8, Some(Float8::E4M3)),
    (Dtype::F8_E5M2, DType::U8, Some(Float8::E5M2)),
];

/// The dtype in a file of a tensor's elements.
pub(super) fn code(dtype: DType, float8: Option<Float8>) -> Dtype {
    let stored = if float8.is_some() { DType::U8 } else { dtype };
    let row = DTYPES.iter().find(|(_, known, format)| *known == stored && *format == float8);
    row.expect("invariant: the table has every dtype").0
}

/// The dtype that elements are stored in, and what they are codes of, if they are.
fn stored(info: &TensorInfo) -> (DType, Option<Float8>) {
    let row = DTYPES.iter().find(|(code, _, _)| *code == info.dtype);
    let (_, dtype, float8) = row.expect("invariant: a header that was read has known dtypes");
    (*dtype, *float8)
}

/// The dtype that a tensor is read in.
pub(super) fn read_dtype(info: &TensorInfo) -> DType {
    let (dtype, float8) = stored(info);
    if float8.is_some() { DType::F32 } else { dtype }
}

/// The tensor of these bytes. Eight-bit floats stay codes, which become `f32` where they are used.
#[track_caller]
pub(super) fn tensor(info: &TensorInfo, bytes: &[u8], device: &Device) -> Result<Tensor> {
    let (dtype, float8) = stored(info);
    decoded(Tensor::from_bytes(bytes, dtype, info.shape.clone(), device)?, float8)
}

/// As [`tensor`], of the memory of `owner`.
#[track_caller]
pub(super) fn tensor_in(info: &TensorInfo, owner: HostOwner, device: &Device) -> Result<Tensor> {
    let (dtype, float8) = stored(info);
    decoded(Tensor::from_owner(owner, dtype, info.shape.clone(), device)?, float8)
}

#[track_caller]
fn decoded(x: Tensor, float8: Option<Float8>) -> Result<Tensor> {
    float8.map_or(Ok(x.clone()), |format| x.decode_float8(format))
}

/// Length and text of the header of these tensors, whose data follow one another, padded with
/// spaces so that the data is aligned.
pub(super) fn write(tensors: Vec<(String, TensorInfo)>) -> Result<Vec<u8>, String> {
    if tensors.iter().any(|(name, _)| name == METADATA) {
        return Err(format!("no tensor can have the name `{METADATA}`, which the format keeps"));
    }
    let metadata = Metadata::new(None, tensors).map_err(|error| error.to_string())?;
    let mut text = serde_json::to_vec(&metadata).map_err(|error| error.to_string())?;
    text.resize((8 + text.len()).next_multiple_of(ALIGNMENT) - 8, b' ');
    let length = text.len() as u64;
    if length > MAX_HEADER {
        return Err(format!("its header has {length} bytes, the format allows {MAX_HEADER}"));
    }
    text.splice(0..0, length.to_le_bytes());
    Ok(text)
}

/// The header of a whole file, and the data behind it.
pub(super) fn read(bytes: &[u8]) -> Result<(Metadata, &[u8]), String> {
    let length = length(bytes)?;
    let rest = &bytes[8..];
    let (text, data) = rest.split_at_checked(length).unwrap_or((rest, &[]));
    Ok((parse(text, length, data.len())?, data))
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
            "claims a header of {length} bytes, the format allows {MAX_HEADER}; this is not a \
             safetensors file"
        ));
    }
    Ok(length as usize)
}

/// The header in a text that should have `length` bytes, before `available` bytes of data. Its
/// dtypes and ranks are those of tensors.
pub(super) fn parse(text: &[u8], length: usize, available: usize) -> Result<Metadata, String> {
    if text.len() < length {
        let n = text.len();
        return Err(format!("is cut off in the header: {n} of its {length} bytes are there"));
    }
    let text = std::str::from_utf8(text).map_err(|e| format!("the header is not UTF-8: {e}"))?;
    let mut tensors = entries(text)?;
    tensors.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    if let Some(twice) = tensors.windows(2).find(|two| two[0].0 == two[1].0) {
        return Err(format!("`{}` is there twice", twice[0].0));
    }
    tensors.sort_unstable_by_key(|(_, info)| info.data_offsets);
    let metadata = Metadata::new(None, tensors).map_err(|error| explain(&error, text))?;
    let end = metadata.data_len();
    if end > available {
        return Err(format!("is cut off in the data: {available} of {end} bytes are there"));
    }
    if end < available {
        return Err(format!("{} bytes follow the last tensor", available - end));
    }
    Ok(metadata)
}

/// The tensors that a header lists, in its order.
fn entries(text: &str) -> Result<Vec<(String, TensorInfo)>, String> {
    let each = |member: &mut dyn FnMut(String, TensorInfo)| {
        members(text, "the header", |name, value| match name.as_str() {
            METADATA => Ok(()),
            _ => entry(&name, value.get()).map(|info| member(name, info)),
        })
    };
    // Checked and counted first, so that no more memory is taken than they need.
    let mut n = 0;
    each(&mut |_, _| n += 1)?;
    let mut tensors = Vec::new();
    tensors.try_reserve_exact(n).map_err(|e| format!("{n} tensors: {e}"))?;
    each(&mut |name, info| tensors.push((name, info)))?;
    Ok(tensors)
}

fn entry(name: &str, text: &str) -> Result<TensorInfo, String> {
    if text.len() > MAX_ENTRY {
        let n = text.len();
        return Err(format!("the entry of `{name}` has {n} bytes, more than {MAX_ENTRY}"));
    }
    let parsed = serde_json::from_str(text);
    let mut info: TensorInfo = parsed.map_err(|error| format!("the entry of `{name}`: {error}"))?;
    info.shape.shrink_to_fit();
    if !DTYPES.iter().any(|(code, _, _)| *code == info.dtype) {
        let known = DTYPES.map(|(code, _, _)| code.to_string()).join(", ");
        return Err(format!("`{name}` has dtype `{}`, which is none of {known}", info.dtype));
    }
    if info.shape.len() > Shape::MAX_RANK {
        let (rank, most) = (info.shape.len(), Shape::MAX_RANK);
        return Err(format!("`{name}` has {rank} axes, more than the possible {most}"));
    }
    Ok(info)
}

/// Which tensor does not follow the one before it, or has another size than its shape says: the
/// first that a walk along the data meets.
fn explain(error: &SafeTensorError, text: &str) -> String {
    let mut tensors = match entries(text) {
        Ok(tensors) => tensors,
        Err(reason) => return reason,
    };
    tensors.sort_unstable_by_key(|(_, info)| info.data_offsets);
    let (mut end, mut previous) = (0, "");
    for (name, TensorInfo { dtype, shape, data_offsets: (start, stop) }) in &tensors {
        let Some(bytes) = stop.checked_sub(*start) else {
            return format!("the data of `{name}` ends at {stop}, before its start {start}");
        };
        let n = shape.iter().try_fold(dtype.bitsize() / 8, |n, &d| n.checked_mul(d));
        if n != Some(bytes) {
            return format!("`{name}` has {bytes} bytes, which is not {dtype} of shape {shape:?}");
        }
        if *start < end {
            return format!("the data of `{previous}` and `{name}` overlap");
        }
        if *start > end {
            return format!("{} bytes before `{name}` belong to no tensor", start - end);
        }
        (end, previous) = (*stop, name);
    }
    error.to_string()
}

/// Calls `member` with the name and the text of the value of each member of the object that a text
/// is. Errors call the text `what`.
pub(super) fn members<'a>(
    text: &'a str,
    what: &str,
    member: impl FnMut(String, &'a RawValue) -> Result<(), String>,
) -> Result<(), String> {
    let mut members = Members { member, refused: None };
    let mut json = serde_json::Deserializer::from_str(text);
    let gone_through = json.deserialize_map(&mut members).and_then(|()| json.end());
    match (members.refused, gone_through) {
        (Some(reason), _) => Err(reason),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.classify() == Category::Data => Err(format!("{what}: {error}")),
        (None, Err(error)) => Err(format!("{what} is not JSON: {error}")),
    }
}

struct Members<F> {
    member: F,
    /// What `member` said of the one it refused.
    refused: Option<String>,
}

impl<'a, F: FnMut(String, &'a RawValue) -> Result<(), String>> Visitor<'a> for &mut Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value()?;
            let taken = match name.len() {
                0..=MAX_NAME => (self.member)(name, value),
                n => Err(format!("a name has {n} bytes, more than {MAX_NAME}")),
            };
            if let Err(reason) = taken {
                self.refused = Some(reason);
                return Err(serde::de::Error::custom("refused"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_one_code() {
        for &dtype in DType::ALL {
            let info = TensorInfo { dtype: code(dtype, None), shape: vec![], data_offsets: (0, 0) };
            assert_eq!(stored(&info), (dtype, None));
        }
        for format in [Float8::E4M3, Float8::E5M2] {
            let dtype = code(DType::F32, Some(format));
            let info = TensorInfo { dtype, shape: vec![], data_offsets: (0, 0) };
            assert_eq!((stored(&info), read_dtype(&info)), ((DType::U8, Some(format)), DType::F32));
        }
    }

    #[test]
    fn members_are_gone_through() {
        let all = |text: &str| {
            let mut found = Vec::new();
            members(text, "x", |name, value| {
                found.push(format!("{name}={}", value.get()));
                Ok(())
            })?;
            Ok::<_, String>(found)
        };
        let found = all(" {\"a\": [1, {\"b\":2}] ,\"\\u0041\":\"x\"} ").unwrap();
        assert_eq!(found, ["a=[1, {\"b\":2}]", "A=\"x\""]);
        for text in ["{", "[1", "{\"a\":}", "{\"a\":1,}", "{\"a\":1} 2", "", "{\"a\":[[]}", "[]"] {
            assert!(all(text).is_err_and(|reason| reason.starts_with("x")), "{text}");
        }
        let stop = |name: String, _: &RawValue| Err(format!("no {name}"));
        assert_eq!(members("{\"a\":1,", "x", stop), Err("no a".to_owned()));
    }
}
