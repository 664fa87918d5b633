//! What nodes give one another.

use crate::coded::Coded;
use crate::host::Host;
use crate::read::damaged;
use zyx_core::{DType, Result, Tensor};

/// Bytes of a text beside its characters, with those that an allocator adds.
pub(crate) const TEXT_BYTES: usize = 2 * size_of::<String>();

/// An input or output of a model or of a node.
#[derive(Clone, Debug)]
pub enum Value {
    /// A tensor on the model's device.
    Tensor(Tensor),
    /// Few numbers that the host knows.
    Host(Host),
    /// A tensor of elements that no dtype has.
    Coded(Coded),
    /// Strings in rows, and their shape.
    Strings(Vec<usize>, Vec<String>),
    /// Values of one kind, as `SequenceConstruct` makes them.
    Sequence(Vec<Value>),
    /// Keys, which are strings or integers, and a number for each.
    Map(Box<Value>, Host),
    /// A value or none.
    Optional(Option<Box<Value>>),
}

impl Value {
    /// What it is, for errors.
    pub fn kind(&self) -> String {
        match self {
            Value::Tensor(tensor) => {
                format!("a {} tensor of shape {}", tensor.dtype(), tensor.shape())
            }
            Value::Host(host) => format!("a {} tensor of shape {:?}", host.dtype(), host.shape()),
            Value::Coded(coded) => {
                format!("a {:?} tensor of shape {}", coded.kind, coded.codes.shape())
            }
            Value::Strings(shape, _) => format!("strings of shape {shape:?}"),
            Value::Sequence(values) => format!("a sequence of {}", values.len()),
            Value::Map(_, values) => format!("a map of {}", values.numbers().len()),
            Value::Optional(None) => "an optional without value".to_owned(),
            Value::Optional(Some(value)) => format!("an optional with {}", value.kind()),
        }
    }

    /// The numbers of what has any: those of a tensor are computed for that.
    ///
    /// # Errors
    /// Of strings and of what consists of several values; when a device fails.
    pub fn host(&self) -> Result<Host> {
        match self {
            Value::Tensor(tensor) => Host::read(tensor),
            Value::Host(host) => Ok(host.clone()),
            other => Err(damaged("value", format!("{} has no numbers", other.kind()))),
        }
    }

    /// Bytes of host memory that a copy takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Value::Tensor(_) | Value::Coded(_) => 0,
            Value::Host(host) => size_of_val(host.numbers()),
            Value::Strings(_, texts) => texts.iter().map(|text| TEXT_BYTES + text.len()).sum(),
            Value::Sequence(values) => {
                values.iter().map(|value| size_of_val(value) + value.bytes()).sum()
            }
            Value::Map(keys, values) => {
                size_of_val(&**keys) + keys.bytes() + size_of_val(values.numbers())
            }
            Value::Optional(value) => {
                value.iter().map(|value| size_of_val(&**value) + value.bytes()).sum()
            }
        }
    }

    /// The extents, of what has any.
    pub fn shape(&self) -> Option<Vec<usize>> {
        match self {
            Value::Tensor(tensor) => Some(tensor.shape().to_vec()),
            Value::Host(host) => Some(host.shape().to_vec()),
            Value::Coded(coded) => Some(coded.codes.shape().to_vec()),
            Value::Strings(shape, _) => Some(shape.clone()),
            Value::Sequence(_) | Value::Map(..) | Value::Optional(_) => None,
        }
    }

    /// The dtype, of what has one.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Value::Tensor(tensor) => Some(tensor.dtype()),
            Value::Host(host) => Some(host.dtype()),
            _ => None,
        }
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<Coded> for Value {
    fn from(coded: Coded) -> Value {
        Value::Coded(coded)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Value {
        Value::Tensor(tensor.clone())
    }
}

impl From<Host> for Value {
    fn from(host: Host) -> Value {
        Value::Host(host)
    }
}
