//! The names of functions and classes that a pickle may use.

use zyx_core::{DType, Float8};

/// What elements are stored as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Stored {
    /// Elements of a dtype.
    Plain(DType),
    /// Codes of a byte each.
    Float8(Float8),
    /// Bytes, of which the tensor says what they are.
    Bytes,
}

/// What a name in a pickle stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Global {
    /// A dict.
    Dict,
    /// A tensor of a typed storage, and one that says its dtype itself.
    Tensor,
    TypedTensor,
    /// A parameter, which is a tensor with what else it is told.
    Parameter,
    /// A tensor with attributes: another function, a class, the function's arguments, attributes.
    WithAttributes,
    /// A tuple.
    Size,
    /// A storage class.
    Storage(Stored),
    /// A dtype.
    DType(Stored),
    /// A class that is only named.
    Class,
    /// What has no tensor in it.
    Dropped,
}

/// Functions and classes.
const NAMES: [(&str, &str, Global); 14] = [
    ("collections", "OrderedDict", Global::Dict),
    ("collections", "defaultdict", Global::Dict),
    ("torch._utils", "_rebuild_tensor_v2", Global::Tensor),
    ("torch._utils", "_rebuild_tensor_v3", Global::TypedTensor),
    ("torch._utils", "_rebuild_parameter", Global::Parameter),
    ("torch._utils", "_rebuild_parameter_with_state", Global::Parameter),
    ("torch._tensor", "_rebuild_from_type_v2", Global::WithAttributes),
    ("torch", "Size", Global::Size),
    ("torch", "Tensor", Global::Class),
    ("torch.nn.parameter", "Parameter", Global::Class),
    ("torch", "device", Global::Dropped),
    ("_codecs", "encode", Global::Dropped),
    ("__builtin__", "set", Global::Dropped),
    ("builtins", "set", Global::Dropped),
];

/// Classes of storages and names of dtypes, both in the module `torch`. Newer dtypes have no class
/// of storages.
const TYPES: [(&str, &str, Stored); 16] = [
    ("FloatStorage", "float32", Stored::Plain(DType::F32)),
    ("DoubleStorage", "float64", Stored::Plain(DType::F64)),
    ("HalfStorage", "float16", Stored::Plain(DType::F16)),
    ("BFloat16Storage", "bfloat16", Stored::Plain(DType::BF16)),
    ("LongStorage", "int64", Stored::Plain(DType::I64)),
    ("IntStorage", "int32", Stored::Plain(DType::I32)),
    ("ShortStorage", "int16", Stored::Plain(DType::I16)),
    ("CharStorage", "int8", Stored::Plain(DType::I8)),
    ("ByteStorage", "uint8", Stored::Plain(DType::U8)),
    ("BoolStorage", "bool", Stored::Plain(DType::Bool)),
    ("UntypedStorage", "", Stored::Bytes),
    ("", "uint16", Stored::Plain(DType::U16)),
    ("", "uint32", Stored::Plain(DType::U32)),
    ("", "uint64", Stored::Plain(DType::U64)),
    ("", "float8_e4m3fn", Stored::Float8(Float8::E4M3)),
    ("", "float8_e5m2", Stored::Float8(Float8::E5M2)),
];

/// What a name stands for, if it is one of those that a pickle may use.
pub(super) fn find(module: &str, name: &str) -> Option<Global> {
    if module == "torch" || module == "torch.storage" && name == "UntypedStorage" {
        let row = |row: &&(&str, &str, Stored)| [row.0, row.1].contains(&name);
        if let Some((class, _, stored)) = TYPES.iter().find(row).filter(|_| !name.is_empty()) {
            let of = if name == *class { Global::Storage } else { Global::DType };
            return Some(of(*stored));
        }
    }
    let row = NAMES.iter().find(|row| (row.0, row.1) == (module, name));
    row.map(|row| row.2)
}
