//! Attributes of nodes.

use crate::graph::Graph;
use crate::value::Value;
use std::sync::Arc;

/// What a node says beside its inputs.
#[derive(Clone, Debug)]
pub(crate) enum Attribute {
    Int(i64),
    Float(f32),
    String(String),
    Ints(Vec<i64>),
    Floats(Vec<f32>),
    Strings(Vec<String>),
    Tensor(Value),
    Graph(Arc<Graph>),
    /// The type that an `Optional` or `SequenceEmpty` is declared with; nothing depends on it.
    Type,
    /// In the body of a function: the attribute of its call with this name.
    Reference(String),
}

impl Attribute {
    /// Its type, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Attribute::Int(_) => "an integer",
            Attribute::Float(_) => "a number",
            Attribute::String(_) => "a string",
            Attribute::Ints(_) => "a list of integers",
            Attribute::Floats(_) => "a list of numbers",
            Attribute::Strings(_) => "a list of strings",
            Attribute::Tensor(_) => "a tensor",
            Attribute::Graph(_) => "a graph",
            Attribute::Type => "a type",
            Attribute::Reference(_) => "a reference to an attribute",
        }
    }
}
