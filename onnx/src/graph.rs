//! A file's graph with its operators found.

use crate::attribute::Attribute;
use crate::budget::Budget;
use crate::ops::{self, Operator};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use crate::read::{Source, damaged, external_key};
use crate::run::Kept;
use crate::value::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
    /// Operators that are not there, by domain, name and version: how many nodes want each, and the first of them.
    pub(crate) missing: BTreeMap<String, (usize, String)>,
    /// How deep functions call one another.
    pub(crate) depth: usize,
    /// Functions that were read, by their place.
    pub(crate) read: HashMap<usize, Arc<Graph>>,
    /// Tensors of files of their own that were read.
    pub(crate) external: HashMap<Vec<u8>, Value>,
}

/// Bytes of a node without its attributes, roughly.
const NODE_BYTES: usize = 512;

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
        let names = proto.initializer.iter().map(|t| Arc::from(t.name.as_deref().unwrap_or("")));
        let constants = names.zip(self.tensors(&proto.initializer)?).collect();
        if let Some(sparse) = proto.sparse_initializer.first() {
            let name = sparse.values.as_ref().and_then(|v| v.name.as_deref()).unwrap_or_default();
            return Err(damaged(&format!("tensor `{name}`"), "sparse tensors are not supported"));
        }
        let inputs = proto.input.iter().map(|port| Arc::from(port.name())).collect();
        let outputs = proto.output.iter().map(|port| Arc::from(port.name())).collect();
        self.nodes(&proto.node, opsets, inputs, outputs, constants)
    }

    /// Tensors of a file; several that are the same bytes of a file of their own are one.
    fn tensors(&mut self, protos: &[TensorProto]) -> Result<Vec<Value>> {
        let keys: Vec<_> = protos.iter().map(external_key).collect();
        let mut known: HashSet<&[u8]> = self.external.keys().map(Vec::as_slice).collect();
        let is_new: Vec<bool> =
            keys.iter().map(|key| key.as_ref().is_none_or(|key| known.insert(key))).collect();
        let source = &self.source;
        let nanoseconds = |i: usize| if is_new[i] { source.nanoseconds(&protos[i]) } else { 0 };
        // After the first error no thread reads on.
        let has_failed = AtomicBool::new(false);
        let read = |i: usize| -> Result<Option<Value>> {
            if has_failed.load(Relaxed) || !is_new[i] {
                return Ok(None);
            }
            let traced = Budget::check_interrupt().and_then(|()| source.budget.trace(1));
            let value = traced.and_then(|()| source.value(&protos[i], self.device));
            has_failed.fetch_or(value.is_err(), Relaxed);
            value.map(Some)
        };
        let mut read = on_threads(protos.len(), nanoseconds, read);
        if let Some(place) = read.iter().position(Result::is_err) {
            read.swap_remove(place)?;
        }
        let mut values = Vec::with_capacity(protos.len());
        for (key, value) in keys.into_iter().zip(read) {
            let value = match (value?, key) {
                (Some(value), Some(key)) => self.external.entry(key).or_insert(value).clone(),
                (Some(value), None) => value,
                (None, key) => {
                    let known = key.and_then(|key| self.external.get(&key).cloned());
                    known.ok_or_else(|| damaged("model", "a tensor was not read"))?
                }
            };
            self.source.budget.ask(value.bytes())?;
            values.push(value);
        }
        Ok(values)
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
            self.source.budget.ask(NODE_BYTES)?;
            if let Some(node) = self.node(proto, opsets)? {
                nodes.push(node);
            }
        }
        let nodes = sorted(nodes, |name| inputs.contains(name) || constants.contains_key(name));
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
        let own = self.functions.iter().position(|f| {
            f.name() == kind && domain(f.domain()) == from && f.overload() == proto.overload()
        });
        let action = if let Some(place) = own {
            Some(Action::Function(self.function(place)?))
        } else {
            ops::find(from, kind, opset.unwrap_or(1)).map(Action::Operator)
        };
        let Some(action) = action else {
            let dotted = if from.is_empty() { String::new() } else { format!("{from}.") };
            let version = opset.map_or("of no opset".to_owned(), |n| format!("of opset {n}"));
            let missing = self.missing.entry(format!("{dotted}{kind} {version}"));
            missing.or_insert((0, name)).0 += 1;
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

    /// A function of the model, which is read once.
    fn function(&mut self, place: usize) -> Result<Arc<Graph>> {
        if let Some(graph) = self.read.get(&place) {
            return Ok(graph.clone());
        }
        let proto = &self.functions[place];
        let graph = self.deeper(|reader| {
            let inputs = proto.input.iter().map(|name| Arc::from(name.as_str())).collect();
            let outputs = proto.output.iter().map(|name| Arc::from(name.as_str())).collect();
            reader.nodes(&proto.node, &proto.opset_import, inputs, outputs, BTreeMap::new())
        })?;
        Ok(self.read.entry(place).or_insert(Arc::new(graph)).clone())
    }

    /// The operators that are not there, with how many nodes want each.
    pub(crate) fn missing(&self) -> Option<String> {
        let row = |(kind, (n, first)): (&String, &(usize, String))| match n {
            1 => format!("{kind} (node `{first}`)"),
            n => format!("{kind} ({n} nodes, the first is `{first}`)"),
        };
        let rows: Vec<String> = self.missing.iter().map(row).collect();
        (!rows.is_empty()).then(|| rows.join(", "))
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
                let value = self.tensors(std::slice::from_ref(tensor))?.pop();
                Attribute::Tensor(value.ok_or_else(absent)?)
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

/// Nodes in an order in which each stands behind those that compute what it reads: the given one where that is so, and
/// among nodes of a cycle. `is_given` tells names that no node has to compute.
fn sorted(nodes: Vec<Node>, is_given: impl Fn(&Arc<str>) -> bool) -> Vec<Node> {
    let mut sources: HashMap<&Arc<str>, usize> = HashMap::new();
    for (i, node) in nodes.iter().enumerate() {
        for name in node.outputs.iter().flatten().filter(|name| !is_given(name)) {
            sources.entry(name).or_insert(i);
        }
    }
    let read = |node: &Node| -> Vec<usize> {
        let mut names = Vec::new();
        names_read(node, &mut names);
        names.iter().filter_map(|name| sources.get(name).copied()).collect()
    };
    let read: Vec<Vec<usize>> = nodes.iter().map(read).collect();
    let mut is_seen = vec![false; nodes.len()];
    let mut order = Vec::with_capacity(nodes.len());
    for first in 0..nodes.len() {
        // Nodes, and how many of those that they read from were looked at.
        let mut open = if is_seen[first] { Vec::new() } else { vec![(first, 0)] };
        is_seen[first] = true;
        while let Some((i, looked_at)) = open.last_mut() {
            match read[*i].get(*looked_at) {
                Some(&source) => {
                    *looked_at += 1;
                    if !std::mem::replace(&mut is_seen[source], true) {
                        open.push((source, 0));
                    }
                }
                None => {
                    order.push(*i);
                    open.pop();
                }
            }
        }
    }
    let mut nodes: Vec<Option<Node>> = nodes.into_iter().map(Some).collect();
    order.into_iter().filter_map(|i| nodes[i].take()).collect()
}

/// Every name of this scope that a node reads, also within its graphs.
pub(crate) fn names_read(node: &Node, read: &mut Vec<Arc<str>>) {
    read.extend(node.inputs.iter().flatten().cloned());
    for attribute in node.attributes.values() {
        if let Attribute::Graph(graph) = attribute {
            let mut inner = graph.outputs.clone();
            graph.nodes.iter().for_each(|node| names_read(node, &mut inner));
            let computed = graph.nodes.iter().flat_map(|node| node.outputs.iter().flatten());
            let own: HashSet<&Arc<str>> = computed.chain(&graph.inputs).collect();
            let is_outer =
                |name: &Arc<str>| !own.contains(name) && !graph.constants.contains_key(name);
            read.extend(inner.into_iter().filter(is_outer));
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

/// Nodes by kind.
pub(crate) type Counts = BTreeMap<String, usize>;

impl Graph {
    /// Adds to the count of nodes by kind. `known` has the counts of functions, which may call one another many times.
    pub(crate) fn count(&self, counts: &mut Counts, known: &mut HashMap<*const Graph, Counts>) {
        for node in &self.nodes {
            *counts.entry(node.kind.clone()).or_default() += 1;
            if let Action::Function(graph) = &node.action {
                let place = Arc::as_ptr(graph);
                if !known.contains_key(&place) {
                    let mut own = Counts::new();
                    graph.count(&mut own, known);
                    known.insert(place, own);
                }
                for (kind, &n) in &known[&place] {
                    let count = counts.entry(kind.clone()).or_default();
                    *count = count.saturating_add(n);
                }
            }
            for attribute in node.attributes.values() {
                if let Attribute::Graph(graph) = attribute {
                    graph.count(counts, known);
                }
            }
        }
    }
}
