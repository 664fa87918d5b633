//! A file's graph with its operators found.

use crate::attribute::Attribute;
use crate::ops::{self, Operator};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto};
use crate::read::{Source, damaged};
use crate::run::Kept;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use zyx_core::hal::on_threads;
use zyx_core::{Device, Error, Result};

/// Nodes in an order in which they can run, and what they start from.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) inputs: Vec<Arc<str>>,
    pub(crate) outputs: Vec<Arc<str>>,
    pub(crate) constants: BTreeMap<Arc<str>, Value>,
    pub(crate) nodes: Vec<Node>,
    /// Behind each node, the names that no later node reads.
    pub(crate) last_uses: Vec<Vec<Arc<str>>>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) action: Action,
    pub(crate) opset: i64,
    /// `None` where an optional input is left out.
    pub(crate) inputs: Vec<Option<Arc<str>>>,
    pub(crate) outputs: Vec<Option<Arc<str>>>,
    pub(crate) attributes: BTreeMap<String, Attribute>,
    /// What is computed from weights, and once.
    pub(crate) kept: Kept,
}

/// What a node does.
#[derive(Debug)]
pub(crate) enum Action {
    Operator(&'static Operator),
    /// The model's own function.
    Function(Arc<Graph>),
}

/// What is known while a file is read.
pub(crate) struct Reader<'a> {
    pub(crate) device: &'a Device,
    pub(crate) source: Source<'a>,
    pub(crate) functions: &'a [FunctionProto],
    /// Operators that are not there, by domain, name and version, with a node that wants each.
    pub(crate) missing: BTreeSet<String>,
    /// How deep functions call one another.
    pub(crate) depth: usize,
}

/// Functions and graphs within graphs nest no deeper.
const MOST_DEPTH: usize = 64;

fn domain(name: &str) -> &str {
    if name == "ai.onnx" { "" } else { name }
}

impl Reader<'_> {
    pub(crate) fn graph(
        &mut self,
        proto: &GraphProto,
        opsets: &[OperatorSetIdProto],
    ) -> Result<Graph> {
        let mut constants = BTreeMap::new();
        let (tensors, source) = (&proto.initializer, &self.source);
        let nanoseconds = |i: usize| source.nanoseconds(&tensors[i]);
        let read = |i: usize| source.value(&tensors[i], self.device);
        for (tensor, value) in tensors.iter().zip(on_threads(tensors.len(), nanoseconds, read)) {
            constants.insert(Arc::from(tensor.name.as_deref().unwrap_or_default()), value?);
        }
        if let Some(sparse) = proto.sparse_initializer.first() {
            let name = sparse.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or_default();
            return Err(damaged(&format!("tensor `{name}`"), "sparse tensors are not supported"));
        }
        let inputs = proto.input.iter().map(|port| Arc::from(port.name())).collect();
        let outputs = proto.output.iter().map(|port| Arc::from(port.name())).collect();
        self.nodes(&proto.node, opsets, inputs, outputs, constants)
    }

    fn nodes(
        &mut self,
        protos: &[NodeProto],
        opsets: &[OperatorSetIdProto],
        inputs: Vec<Arc<str>>,
        outputs: Vec<Arc<str>>,
        constants: BTreeMap<Arc<str>, Value>,
    ) -> Result<Graph> {
        let mut nodes = Vec::with_capacity(protos.len());
        for proto in protos {
            if let Some(node) = self.node(proto, opsets)? {
                nodes.push(node);
            }
        }
        let mut seen: BTreeSet<Arc<str>> = outputs.iter().cloned().collect();
        let mut last_uses = vec![Vec::new(); nodes.len()];
        for (node, last) in nodes.iter().zip(&mut last_uses).rev() {
            let mut read = Vec::new();
            names_read(node, &mut read);
            for name in read.into_iter().chain(node.outputs.iter().flatten().cloned()) {
                if seen.insert(name.clone()) {
                    last.push(name);
                }
            }
        }
        Ok(Graph { inputs, outputs, constants, nodes, last_uses })
    }

    /// `None` for a node whose operator is missing, which `missing` names.
    fn node(&mut self, proto: &NodeProto, opsets: &[OperatorSetIdProto]) -> Result<Option<Node>> {
        let (kind, from) = (proto.op_type(), domain(proto.domain()));
        let opset = opsets.iter().find(|set| domain(set.domain()) == from).map(|set| set.version());
        let name = match proto.name() {
            "" => proto.output.first().cloned().unwrap_or_default(),
            name => name.to_owned(),
        };
        let own = self.functions.iter().find(|f| {
            f.name() == kind && domain(f.domain()) == from && f.overload() == proto.overload()
        });
        let action = if let Some(function) = own {
            Some(Action::Function(Arc::new(self.function(function)?)))
        } else {
            ops::find(from, kind, opset.unwrap_or(1)).map(Action::Operator)
        };
        let Some(action) = action else {
            let dotted = if from.is_empty() { String::new() } else { format!("{from}.") };
            let version = opset.map_or("of no opset".to_owned(), |n| format!("of opset {n}"));
            self.missing.insert(format!("{dotted}{kind} {version} (node `{name}`)"));
            return Ok(None);
        };
        let mut attributes = BTreeMap::new();
        for attribute in &proto.attribute {
            let read = self.attribute(attribute, opsets);
            let read = read.map_err(|error| within(error, &name, kind))?;
            attributes.insert(attribute.name().to_owned(), read);
        }
        let names = |names: &[String]| {
            names.iter().map(|name| (!name.is_empty()).then(|| Arc::from(name.as_str()))).collect()
        };
        Ok(Some(Node {
            name,
            kind: kind.to_owned(),
            action,
            opset: opset.unwrap_or(1),
            inputs: names(&proto.input),
            outputs: names(&proto.output),
            attributes,
            kept: Kept::default(),
        }))
    }

    fn function(&mut self, proto: &FunctionProto) -> Result<Graph> {
        self.deeper(|reader| {
            let inputs = proto.input.iter().map(|name| Arc::from(name.as_str())).collect();
            let outputs = proto.output.iter().map(|name| Arc::from(name.as_str())).collect();
            reader.nodes(&proto.node, &proto.opset_import, inputs, outputs, BTreeMap::new())
        })
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MOST_DEPTH {
            let reason = format!("functions or graphs nest more than {MOST_DEPTH} deep");
            return Err(damaged("model", reason));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn attribute(
        &mut self,
        proto: &AttributeProto,
        opsets: &[OperatorSetIdProto],
    ) -> Result<Attribute> {
        if let Some(name) = proto.ref_attr_name.as_deref().filter(|name| !name.is_empty()) {
            return Ok(Attribute::Reference(name.to_owned()));
        }
        let what = || format!("attribute `{}`", proto.name());
        let absent = || damaged(&what(), "it has no value");
        Ok(match proto.r#type() {
            AttributeType::Int => Attribute::Int(proto.i()),
            AttributeType::Float => Attribute::Float(proto.f()),
            AttributeType::String => {
                let text = proto.s.as_ref().map(|field| self.source.text(field));
                Attribute::String(text.transpose()?.unwrap_or_default())
            }
            AttributeType::Ints => Attribute::Ints(proto.ints.clone()),
            AttributeType::Floats => Attribute::Floats(proto.floats.clone()),
            AttributeType::Strings => {
                let texts = proto.strings.iter().map(|field| self.source.text(field));
                Attribute::Strings(texts.collect::<Result<_>>()?)
            }
            AttributeType::Tensor => {
                let tensor = proto.t.as_ref().ok_or_else(absent)?;
                Attribute::Tensor(self.source.value(tensor, self.device)?)
            }
            AttributeType::Graph => {
                let graph = proto.g.as_ref().ok_or_else(absent)?;
                let graph = self.deeper(|reader| reader.graph(graph, opsets))?;
                Attribute::Graph(Arc::new(graph))
            }
            AttributeType::TypeProto => Attribute::Type,
            other => {
                let reason = format!("its type {} is not supported", other.as_str_name());
                return Err(damaged(&what(), reason));
            }
        })
    }
}

/// Every name of this scope that a node may read, also within its graphs.
fn names_read(node: &Node, read: &mut Vec<Arc<str>>) {
    read.extend(node.inputs.iter().flatten().cloned());
    for attribute in node.attributes.values() {
        if let Attribute::Graph(graph) = attribute {
            graph.nodes.iter().for_each(|node| names_read(node, read));
            read.extend(graph.outputs.iter().cloned());
        }
    }
}

/// An error with the node in which it happened.
pub(crate) fn within(error: Error, name: &str, kind: &str) -> Error {
    match error {
        Error::Format { what, reason } => {
            Error::Format { what: format!("node `{name}` ({kind}): {what}"), reason }
        }
        error => error.within(&format!("{name} ({kind})")),
    }
}

impl Graph {
    /// Adds to the count of nodes by kind.
    pub(crate) fn count(&self, counts: &mut BTreeMap<String, usize>) {
        for node in &self.nodes {
            *counts.entry(node.kind.clone()).or_default() += 1;
            if let Action::Function(graph) = &node.action {
                graph.count(counts);
            }
            for attribute in node.attributes.values() {
                if let Attribute::Graph(graph) = attribute {
                    graph.count(counts);
                }
            }
        }
    }
}
