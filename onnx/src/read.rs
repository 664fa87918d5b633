//! Tensors of files as values.

use crate::budget::Budget;
use crate::coded::{Coded, CodedType};
use crate::file::{Content, Contents, Open};
use crate::host::Host;
use crate::proto::TensorProto;
use crate::proto::tensor_proto::{DataLocation, DataType};
use crate::value::Value;
use half::{bf16, f16};
use prost::Message;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::{DType, Device, Error, Result, Tensor};

/// An error about the content of `what`.
pub(crate) fn damaged(what: &str, reason: impl Into<String>) -> Error {
    Error::Format { what: what.to_owned(), reason: reason.into() }
}

/// The dtype of an element type of the standard, if there is one here.
pub(crate) fn dtype(element: i32) -> Result<DType, String> {
    let element = DataType::try_from(element).unwrap_or(DataType::Undefined);
    Ok(match element {
        DataType::Float => DType::F32,
        DataType::Uint8 => DType::U8,
        DataType::Int8 => DType::I8,
        DataType::Uint16 => DType::U16,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::Bool => DType::Bool,
        DataType::Float16 => DType::F16,
        DataType::Double => DType::F64,
        DataType::Uint32 => DType::U32,
        DataType::Uint64 => DType::U64,
        DataType::Bfloat16 => DType::BF16,
        other => return Err(format!("elements of type {} are not supported", other.as_str_name())),
    })
}

/// The extents of a tensor, if a tensor can have them.
fn extents(proto: &TensorProto) -> Result<Vec<usize>, String> {
    let dims: Option<Vec<usize>> = proto.dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    let dims = dims.ok_or_else(|| format!("extents {:?} are negative", proto.dims))?;
    let numel = dims.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
    match numel.is_some_and(|n| n < 1 << 48) && dims.len() <= 16 {
        true => Ok(dims),
        false => Err(format!("extents {dims:?} are more than a tensor can have")),
    }
}

/// Where the tensors of a model come from.
#[derive(Debug, Default)]
pub(crate) struct Source<'a> {
    /// The model's file; files of tensors may lie in its folder.
    pub(crate) file: Option<&'a Path>,
    /// What the model's file is called.
    pub(crate) path: &'a str,
    pub(crate) contents: Contents,
    pub(crate) budget: Budget,
    /// Files of tensors, and how many bytes of each may still be read: all of them once.
    pub(crate) files: Mutex<HashMap<PathBuf, (Open, u64)>>,
}

/// Equal keys are equal tensors of external data. `None` for a tensor in the model's file.
pub(crate) fn external_key(proto: &TensorProto) -> Option<Vec<u8>> {
    let key = TensorProto { name: None, doc_string: None, ..TensorProto::clone(proto) };
    (proto.data_location() == DataLocation::External).then(|| key.encode_to_vec())
}

impl Source<'_> {
    /// A text in the model's file.
    pub(crate) fn text(&self, field: &Bytes) -> Result<String> {
        let io = |source| Error::Io { what: self.path.to_owned(), source };
        let bytes = self.contents.of(field).bytes().map_err(io)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Nanoseconds that [`value`](Source::value) takes, roughly.
    pub(crate) fn nanoseconds(&self, proto: &TensorProto) -> usize {
        let raw = proto.raw_data.as_ref().map_or(0, |raw| self.contents.of(raw).len());
        let external = proto.data_location() == DataLocation::External;
        if external { 100_000 } else { raw / 4 }
    }

    /// A tensor. Few numbers stay on the host.
    pub(crate) fn value(&self, proto: &TensorProto, device: &Device) -> Result<Value> {
        let name = proto.name.as_deref().unwrap_or_default();
        let what = format!("tensor `{name}`");
        let bad = |reason: String| damaged(&what, reason);
        let io = |source| Error::Io { what: what.clone(), source };
        let shape = extents(proto).map_err(bad)?;
        let numel: usize = shape.iter().product();
        if proto.data_type() == DataType::String as i32 {
            let strings = proto.string_data.iter().map(|field| self.text(field));
            let strings: Vec<String> = strings.collect::<Result<_>>()?;
            if strings.len() != numel {
                return Err(bad(format!("{} strings are not of shape {shape:?}", strings.len())));
            }
            return Ok(Value::Strings(shape, strings));
        }
        let coded = CodedType::of(proto.data_type());
        // Codes are listed as bytes.
        let dtype =
            coded.map_or_else(|| dtype(proto.data_type()), |_| Ok(DType::U8)).map_err(bad)?;
        let content = match (proto.data_location(), &proto.raw_data) {
            (DataLocation::External, _) => self.external(proto, &what)?,
            (DataLocation::Default, Some(field)) => self.contents.of(field),
            (DataLocation::Default, None) => Content::Memory(typed(proto, dtype).into()),
        };
        let length = content.len();
        if let Some(kind) = coded {
            if length != (numel * kind.bits()).div_ceil(8) {
                let reason = format!("{length} bytes are not a {kind:?} tensor of shape {shape:?}");
                return Err(bad(reason));
            }
            let bytes = content.bytes().map_err(io)?;
            return Coded::unpack(kind, &bytes, &shape, device).map(Value::Coded);
        }
        if Some(length) != numel.checked_mul(dtype.size()) {
            return Err(bad(format!("{length} bytes are not a {dtype} tensor of shape {shape:?}")));
        }
        if numel <= Host::MOST && (!dtype.is_float() || numel <= 16) {
            let bytes = content.bytes().map_err(io)?;
            return Ok(Value::Host(Host::from_bytes(&bytes, dtype, &shape)));
        }
        let shape = shape.as_slice();
        let tensor = match content {
            // What is aligned stays where it is.
            Content::Memory(bytes) => Tensor::from_owner(Arc::new(bytes), dtype, shape, device),
            Content::File(mut part) => Tensor::from_reader(&mut part, dtype, shape, device),
        };
        tensor.map(Value::Tensor).map_err(|error| match error {
            Error::Io { source, .. } => io(source),
            error => error,
        })
    }
}

/// Elements that are listed as numbers.
fn typed(proto: &TensorProto, dtype: DType) -> Vec<u8> {
    let narrow = |size: usize| {
        let numbers = proto.int32_data.iter();
        numbers.flat_map(|x| x.to_le_bytes().into_iter().take(size)).collect()
    };
    match dtype {
        DType::F32 => proto.float_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::F64 => proto.double_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::I64 => proto.int64_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::U64 => proto.uint64_data.iter().flat_map(|x| x.to_le_bytes()).collect(),
        DType::U32 => proto.uint64_data.iter().flat_map(|&x| (x as u32).to_le_bytes()).collect(),
        DType::F16 => {
            let numbers = proto.int32_data.iter().map(|&x| f16::from_bits(x as u16));
            numbers.flat_map(|x| x.to_le_bytes()).collect()
        }
        DType::BF16 => {
            let numbers = proto.int32_data.iter().map(|&x| bf16::from_bits(x as u16));
            numbers.flat_map(|x| x.to_le_bytes()).collect()
        }
        dtype => narrow(dtype.size()),
    }
}

impl Source<'_> {
    /// Bytes that lie in a file beside the model: below its folder, or below that of the file that the model is a link
    /// to, as caches of downloaded models have them, and nowhere else.
    fn external(&self, proto: &TensorProto, what: &str) -> Result<Content> {
        let bad = |reason: String| damaged(what, reason);
        let entry = |key: &str| {
            let entry = proto.external_data.iter().find(|entry| entry.key() == key);
            entry.map(|entry| entry.value().to_owned())
        };
        let missing = |reason: &str| bad(reason.to_owned());
        let location =
            entry("location").ok_or_else(|| missing("external data without location"))?;
        let model = self.file.ok_or_else(|| {
            missing(
                "its data lies in a file of its own; load the model by its path, not from bytes",
            )
        })?;
        let outside =
            || bad(format!("its data lies outside of the model's folder, at `{location}`"));
        let parts = Path::new(&location).components();
        if location.is_empty()
            || !parts.into_iter().all(|part| matches!(part, Component::Normal(_)))
        {
            return Err(outside());
        }
        let path = model.with_file_name(&location);
        let io = |source| Error::Io { what: path.display().to_string(), source };
        // Links are followed first: they may lead outside, too.
        let real = path.canonicalize().map_err(io)?;
        let folder = model.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().map_err(io)?;
        let linked = model.canonicalize().map_err(io)?;
        if !real.starts_with(&folder) && !linked.parent().is_some_and(|own| real.starts_with(own)) {
            return Err(outside());
        }
        let number = |key: &str| -> Result<Option<u64>> {
            let parse = |text: String| {
                text.parse().map_err(|_| bad(format!("`{key}` of its data is `{text}`, no number")))
            };
            entry(key).map(parse).transpose()
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if !files.contains_key(&real) {
            let file = Open::new(&real).map_err(io)?;
            files.insert(real.clone(), (file.clone(), file.length));
        }
        let (file, unread) = files.get_mut(&real).ok_or_else(outside)?;
        let size = file.length;
        let rest =
            size.checked_sub(offset).ok_or_else(|| missing("its data begins behind its file"))?;
        let length = length.unwrap_or(rest);
        if length > rest {
            return Err(bad(format!("{length} bytes at {offset} of a file of {size}")));
        }
        // Bytes that are read once take as much memory as on disk; those that are read again are asked for.
        let again = length.saturating_sub(*unread);
        *unread -= length - again;
        let bytes = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        self.budget.ask(bytes(again))?;
        Ok(file.part(offset, bytes(length)))
    }
}
