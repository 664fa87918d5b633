//! The evaluation of a graph.

use crate::attribute::Attribute;
use crate::budget::Budget;
use crate::graph::{Action, Graph, Node, within};
use crate::host::Host;
use crate::ops::Dequantized;
use crate::read::damaged;
use crate::replay::Replay;
use crate::value::{TEXT_BYTES, Value};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::{Device, Error, Result, Scalar, Tensor};

/// Names and values of a graph that runs, and of those around it.
pub(crate) struct Scope<'a> {
    pub(crate) values: HashMap<Arc<str>, Value>,
    graph: &'a Graph,
    /// Whether inputs stand in the place of constants.
    pub(crate) replaces_constants: bool,
    outer: Option<&'a Scope<'a>>,
    /// The attributes of the call, in a function.
    pub(crate) call: Option<&'a BTreeMap<String, Attribute>>,
    /// The integers that values of this scope stand for, which products are computed of.
    dequantized: RefCell<HashMap<Arc<str>, Arc<Dequantized>>>,
}

/// Tensors that a node computes from inputs that are constants of the model, by what tells them apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<Mutex<BTreeMap<Vec<usize>, Tensor>>>);

impl Kept {
    /// The tensor, computed where it is not known.
    pub(crate) fn get(
        &self,
        key: &[usize],
        compute: impl FnOnce() -> Result<Tensor>,
    ) -> Result<Tensor> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tensor) = known.get(key) {
            return Ok(tensor.clone());
        }
        let tensor = compute()?;
        tensor.realize()?;
        known.insert(key.to_vec(), tensor.clone());
        Ok(tensor)
    }
}

impl<'a> Scope<'a> {
    pub(crate) fn new(
        values: HashMap<Arc<str>, Value>,
        graph: &'a Graph,
        outer: Option<&'a Scope<'a>>,
        call: Option<&'a BTreeMap<String, Attribute>>,
    ) -> Scope<'a> {
        let replaces_constants = values.keys().any(|name| graph.constants.contains_key(name));
        let dequantized = RefCell::default();
        Scope { values, graph, replaces_constants, outer, call, dequantized }
    }

    /// A value, and whether it is a constant of the model.
    pub(crate) fn look_up(&self, name: &str) -> Option<(&Value, bool)> {
        let value = self.values.get(name).map(|value| (value, false));
        let own = value.or_else(|| self.graph.constants.get(name).map(|value| (value, true)));
        own.or_else(|| self.outer.and_then(|outer| outer.look_up(name)))
    }

    fn find(&self, name: &str) -> Option<&Value> {
        self.look_up(name).map(|(value, _)| value)
    }
}

/// What all of a run shares.
pub(crate) struct Run<'a> {
    pub(crate) device: &'a Device,
    pub(crate) budget: Budget,
    /// Whether a value was read from the device: then the graph depends on more than shapes.
    pub(crate) has_read: Cell<bool>,
    /// Whether random numbers were drawn that another run would draw anew: it cannot be replayed.
    pub(crate) has_drawn: Cell<bool>,
    /// The traces of earlier runs; `None` where results have a history.
    pub(crate) replay: Option<&'a Replay>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(device: &'a Device, limit: usize, replay: Option<&'a Replay>) -> Run<'a> {
        let (has_read, has_drawn) = (Cell::new(false), Cell::new(false));
        Run { device, budget: Budget::new(limit), has_read, has_drawn, replay }
    }
}

impl Run<'_> {
    /// The outputs of a graph for its inputs, in order.
    pub(crate) fn graph(
        &self,
        graph: &Arc<Graph>,
        inputs: impl IntoIterator<Item = (Arc<str>, Value)>,
        outer: Option<&Scope<'_>>,
        call: Option<&BTreeMap<String, Attribute>>,
    ) -> Result<Vec<Value>> {
        let before = self.budget.used();
        let values: HashMap<Arc<str>, Value> = inputs.into_iter().collect();
        values.values().try_for_each(|value| self.budget.ask(value.bytes()))?;
        let mut scope = Scope::new(values, graph, outer, call);
        let mut next = 0;
        while next < graph.nodes.len() {
            next = match self.replay(graph, next, &mut scope)? {
                Some(next) => next,
                None => {
                    self.step(graph, next, &mut scope)?;
                    next + 1
                }
            };
        }
        let output = |name: &Arc<str>| {
            let value = scope.find(name).cloned();
            value.ok_or_else(|| damaged("graph", format!("nothing computes its output `{name}`")))
        };
        let outputs = graph.outputs.iter().map(output).collect();
        self.budget.give_back(before);
        outputs
    }

    /// Evaluates one node of a graph.
    pub(crate) fn step(&self, graph: &Graph, i: usize, scope: &mut Scope<'_>) -> Result<()> {
        let node = &graph.nodes[i];
        let used = self.budget.used();
        let outputs = self.node(node, scope);
        let outputs = outputs.map_err(|error| within(error, &node.name, &node.kind))?;
        // Of what the operator took, only its outputs stay.
        self.budget.give_back(used);
        for (name, value) in node.outputs.iter().zip(outputs) {
            if let Some(name) = name {
                let set = self.set(scope, name, value);
                set.map_err(|error| within(error, &node.name, &node.kind))?;
            }
        }
        self.forget(graph, i, scope);
        Ok(())
    }

    /// Gives a name its value.
    pub(crate) fn set(&self, scope: &mut Scope<'_>, name: &Arc<str>, value: Value) -> Result<()> {
        self.budget.ask(value.bytes())?;
        self.replaced(scope.values.insert(name.clone(), value));
        Ok(())
    }

    /// Drops the values that are not read behind a node.
    pub(crate) fn forget(&self, graph: &Graph, i: usize, scope: &mut Scope<'_>) {
        for name in &graph.last_uses[i] {
            self.replaced(scope.values.remove(name));
            scope.dequantized.get_mut().remove(name);
        }
    }

    /// Gives back the bytes of a value that a scope had.
    fn replaced(&self, value: Option<Value>) {
        let bytes = value.map_or(0, |value| value.bytes());
        self.budget.give_back(self.budget.used().saturating_sub(bytes));
    }

    fn node(&self, node: &Node, scope: &Scope<'_>) -> Result<Vec<Value>> {
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            let value = name.as_ref().map(|name| {
                let missing = || damaged("input", format!("nothing computes `{name}` before"));
                scope.find(name).map(Cow::Borrowed).ok_or_else(missing)
            });
            inputs.push(value.transpose()?);
        }
        match &node.action {
            Action::Operator(operator) => {
                let outputs = (operator.run)(&Call { node, inputs, run: self, scope })?;
                let pending = outputs.iter().filter(|value| matches!(value, Value::Tensor(_)));
                self.budget.trace(pending.count())?;
                let named = node.outputs.iter().rposition(Option::is_some).map_or(0, |n| n + 1);
                if outputs.len() < named {
                    let reason = format!("output {} is not supported", outputs.len());
                    return Err(damaged(&node.kind, reason));
                }
                Ok(outputs)
            }
            Action::Function(graph) => {
                let inputs = graph.inputs.iter().cloned().zip(inputs);
                let inputs = inputs.filter_map(|(name, value)| Some((name, value?)));
                let copied = |(name, value): (_, Cow<'_, Value>)| {
                    self.budget.ask(value.bytes())?;
                    Ok((name, value.into_owned()))
                };
                let inputs = inputs.map(copied).collect::<Result<Vec<_>>>()?;
                let attributes = node.attributes.iter();
                let resolved = attributes.filter_map(|(name, value)| match value {
                    Attribute::Reference(of) => {
                        scope.call.and_then(|call| Some((name.clone(), call.get(of)?.clone())))
                    }
                    value => Some((name.clone(), value.clone())),
                });
                self.graph(graph, inputs, None, Some(&resolved.collect()))
            }
        }
    }
}

/// One node that runs: what its function sees.
pub(crate) struct Call<'a> {
    pub(crate) node: &'a Node,
    pub(crate) inputs: Vec<Option<Cow<'a, Value>>>,
    pub(crate) run: &'a Run<'a>,
    scope: &'a Scope<'a>,
}

impl Call<'_> {
    pub(crate) fn device(&self) -> &Device {
        self.run.device
    }

    /// Host memory that the run may take.
    pub(crate) fn budget(&self) -> &Budget {
        &self.run.budget
    }

    /// The same node with other inputs.
    pub(crate) fn with_inputs(&self, inputs: Vec<Option<Value>>) -> Call<'_> {
        let inputs = inputs.into_iter().map(|value| value.map(Cow::Owned)).collect();
        Call { node: self.node, inputs, run: self.run, scope: self.scope }
    }

    pub(crate) fn opset(&self) -> i64 {
        self.node.opset
    }

    /// An error of this node.
    pub(crate) fn error(&self, reason: impl Into<String>) -> Error {
        damaged(&self.node.kind, reason)
    }

    pub(crate) fn optional(&self, i: usize) -> Option<&Value> {
        self.inputs.get(i).and_then(Option::as_deref)
    }

    /// Where to keep what is computed from an input, if that is a constant of the model.
    pub(crate) fn kept(&self, i: usize) -> Option<Kept> {
        let name = self.node.inputs.get(i)?.as_ref()?;
        let is_constant =
            !self.scope.values.contains_key(name) && self.scope.graph.constants.contains_key(name);
        is_constant.then(|| self.node.kept.clone())
    }

    /// The integers that an input stands for, if it does.
    pub(crate) fn dequantized(&self, i: usize) -> Option<Arc<Dequantized>> {
        let name = self.node.inputs.get(i)?.as_ref()?;
        self.scope.dequantized.borrow().get(name).cloned()
    }

    /// Notes what the first output stands for.
    pub(crate) fn stands_for(&self, dequantized: Dequantized) {
        if let Some(Some(name)) = self.node.outputs.first() {
            self.scope.dequantized.borrow_mut().insert(name.clone(), Arc::new(dequantized));
        }
    }

    /// An input that must be there.
    pub(crate) fn value(&self, i: usize) -> Result<&Value> {
        self.optional(i).ok_or_else(|| self.error(format!("input {i} is missing")))
    }

    /// A copy of a value.
    pub(crate) fn copied(&self, value: &Value) -> Result<Value> {
        self.budget().ask(value.bytes())?;
        Ok(value.clone())
    }

    /// Copies of the inputs from one on, which must be there.
    pub(crate) fn values_from(&self, first: usize) -> Result<Vec<Value>> {
        (first..self.inputs.len()).map(|i| self.copied(self.value(i)?)).collect()
    }

    pub(crate) fn tensor(&self, i: usize) -> Result<Tensor> {
        self.to_tensor(self.value(i)?)
    }

    pub(crate) fn optional_tensor(&self, i: usize) -> Result<Option<Tensor>> {
        self.optional(i).map(|value| self.to_tensor(value)).transpose()
    }

    pub(crate) fn to_tensor(&self, value: &Value) -> Result<Tensor> {
        match value {
            Value::Tensor(tensor) => Ok(tensor.clone()),
            Value::Host(host) => host.tensor(self.device()),
            Value::Optional(Some(value)) => self.to_tensor(value),
            Value::Coded(coded) => Err(self.error(format!(
                "it does not compute with {:?}; Cast or DequantizeLinear make numbers of it",
                coded.kind()
            ))),
            other => Err(self.error(format!("a tensor is needed, and here is {}", other.kind()))),
        }
    }

    /// All inputs as tensors.
    pub(crate) fn tensors(&self) -> Result<Vec<Tensor>> {
        (0..self.inputs.len()).map(|i| self.tensor(i)).collect()
    }

    /// The input where the host knows its numbers, and they are few.
    pub(crate) fn host(&self, i: usize) -> Option<&Host> {
        match self.optional(i)? {
            Value::Host(host) if host.numbers().len() <= Host::MOST => Some(host),
            _ => None,
        }
    }

    /// All inputs, if the host knows them.
    pub(crate) fn hosts(&self) -> Option<Vec<&Host>> {
        (0..self.inputs.len()).map(|i| self.host(i)).collect()
    }

    /// The numbers of an input, read from the device where the host does not know them.
    pub(crate) fn read(&self, value: &Value) -> Result<Host> {
        match value {
            Value::Host(host) => Ok(host.clone()),
            Value::Optional(Some(value)) => self.read(value),
            value => self.read_tensor(&self.to_tensor(value)?),
        }
    }

    /// The numbers of a tensor, read from the device.
    pub(crate) fn read_tensor(&self, tensor: &Tensor) -> Result<Host> {
        self.run.has_read.set(true);
        // As bytes, as numbers, and as what is made of them.
        let bytes = tensor.dtype().size() + size_of::<Scalar>() + size_of::<f64>();
        self.budget().ask_for(tensor.numel(), bytes)?;
        Host::read(tensor)
    }

    /// Copies of texts, which may be one many times.
    pub(crate) fn texts(&self, texts: &[&str]) -> Result<Vec<String>> {
        let bytes = texts.iter().fold(0, |sum: usize, text| sum.saturating_add(text.len()));
        self.budget().ask_for(texts.len(), TEXT_BYTES - size_of::<String>())?;
        self.budget().ask(bytes)?;
        let mut all = self.budget().room(texts.len())?;
        for texts in texts.chunks(1 << 16) {
            Budget::check_interrupt()?;
            all.extend(texts.iter().map(|&text| text.to_owned()));
        }
        Ok(all)
    }

    pub(crate) fn ints(&self, i: usize) -> Result<Vec<i64>> {
        Ok(self.read(self.value(i)?)?.ints())
    }

    pub(crate) fn optional_ints(&self, i: usize) -> Result<Option<Vec<i64>>> {
        self.optional(i).map(|value| Ok(self.read(value)?.ints())).transpose()
    }

    pub(crate) fn floats(&self, i: usize) -> Result<Vec<f64>> {
        Ok(self.read(self.value(i)?)?.floats())
    }

    pub(crate) fn int(&self, i: usize) -> Result<i64> {
        let ints = self.ints(i)?;
        ints.first().copied().ok_or_else(|| self.error(format!("input {i} has no element")))
    }

    pub(crate) fn float(&self, i: usize) -> Result<f64> {
        let floats = self.floats(i)?;
        floats.first().copied().ok_or_else(|| self.error(format!("input {i} has no element")))
    }

    /// The extents of an input.
    pub(crate) fn shape(&self, i: usize) -> Result<Vec<usize>> {
        let value = self.value(i)?;
        let shape = value.shape();
        shape.ok_or_else(|| self.error(format!("input {i} is {}", value.kind())))
    }

    pub(crate) fn attribute(&self, name: &str) -> Option<&Attribute> {
        #[cfg(test)]
        crate::tests::hostile::note(name);
        match self.node.attributes.get(name)? {
            Attribute::Reference(of) => self.scope.call?.get(of),
            attribute => Some(attribute),
        }
    }

    fn wrong(&self, name: &str, wanted: &str, found: &Attribute) -> Error {
        self.error(format!("attribute `{name}` is {}, not {wanted}", found.kind()))
    }

    pub(crate) fn int_attribute(&self, name: &str) -> Result<Option<i64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Int(n)) => Ok(Some(*n)),
            Some(other) => Err(self.wrong(name, "an integer", other)),
        }
    }

    pub(crate) fn int_or(&self, name: &str, default: i64) -> Result<i64> {
        Ok(self.int_attribute(name)?.unwrap_or(default))
    }

    pub(crate) fn flag(&self, name: &str) -> Result<bool> {
        Ok(self.int_or(name, 0)? != 0)
    }

    pub(crate) fn float_attribute(&self, name: &str) -> Result<Option<f64>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Float(x)) => Ok(Some(f64::from(*x))),
            Some(other) => Err(self.wrong(name, "a number", other)),
        }
    }

    pub(crate) fn float_or(&self, name: &str, default: f64) -> Result<f64> {
        Ok(self.float_attribute(name)?.unwrap_or(default))
    }

    pub(crate) fn string_or<'s>(&'s self, name: &str, default: &'s str) -> Result<&'s str> {
        match self.attribute(name) {
            None => Ok(default),
            Some(Attribute::String(text)) => Ok(text),
            Some(other) => Err(self.wrong(name, "a string", other)),
        }
    }

    pub(crate) fn ints_attribute(&self, name: &str) -> Result<Option<Vec<i64>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Ints(ints)) => Ok(Some(ints.clone())),
            Some(other) => Err(self.wrong(name, "a list of integers", other)),
        }
    }

    pub(crate) fn floats_attribute(&self, name: &str) -> Result<Option<Vec<f32>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Floats(floats)) => Ok(Some(floats.clone())),
            Some(other) => Err(self.wrong(name, "a list of numbers", other)),
        }
    }

    pub(crate) fn strings_attribute(&self, name: &str) -> Result<Option<Vec<String>>> {
        match self.attribute(name) {
            None => Ok(None),
            Some(Attribute::Strings(strings)) => Ok(Some(strings.clone())),
            Some(other) => Err(self.wrong(name, "a list of strings", other)),
        }
    }

    /// Runs a graph of an attribute; it sees the names around this node.
    pub(crate) fn subgraph(&self, name: &str, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let Some(Attribute::Graph(graph)) = self.attribute(name) else {
            return Err(self.error(format!("it has no graph `{name}`")));
        };
        if inputs.len() != graph.inputs.len() {
            let (n, given) = (graph.inputs.len(), inputs.len());
            return Err(self.error(format!("graph `{name}` has {n} inputs and gets {given}")));
        }
        let inputs = graph.inputs.iter().cloned().zip(inputs);
        self.run.graph(graph, inputs, Some(self.scope), self.scope.call)
    }

    /// An axis counted from the front.
    pub(crate) fn axis(&self, axis: i64, rank: usize) -> Result<usize> {
        let n = rank as i64;
        match (-n..n).contains(&axis) {
            true => Ok(axis.rem_euclid(n) as usize),
            false => Err(self.error(format!("axis {axis} is not in {} to {}", -n, n - 1))),
        }
    }

    pub(crate) fn axes(&self, axes: &[i64], rank: usize) -> Result<Vec<usize>> {
        axes.iter().map(|&axis| self.axis(axis, rank)).collect()
    }

    /// A list of extents or counts.
    pub(crate) fn sizes(&self, numbers: &[i64]) -> Result<Vec<usize>> {
        let size = |&n: &i64| {
            usize::try_from(n).map_err(|_| self.error(format!("an extent or a count is {n}")))
        };
        numbers.iter().map(size).collect()
    }
}
