//! Replay of graphs in segments, which end at nodes that read values.
//!
//! The result of a segment depends on the shapes of its inputs and on the numbers that the host knows. A segment is
//! traced once for each of them and replayed after that ([`Jit`]). A model that reads no values is one segment; a
//! segment ends before an `If` on a computed value, and each branch has segments of its own. Tracing finds the nodes
//! that read: reading is an error there.

use crate::graph::{Graph, Node, names_read};
use crate::host::Host;
use crate::read::damaged;
use crate::run::{Run, Scope};
use crate::value::Value;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx_core::{DType, Error, Jit, Result, Shape, Tensor};

/// Traces that a segment keeps. After as many calls in a row without a trace, new inputs are traced at their second call.
const MAX_TRACES: usize = 64;

/// Traces of a model's graphs, by the graph's address.
#[derive(Default)]
pub(crate) struct Replay(Mutex<HashMap<usize, Segments>>);

/// A graph's segments by their first node, and the nodes that belong to none.
#[derive(Default)]
struct Segments {
    apart: HashSet<usize>,
    segments: HashMap<usize, Arc<Segment>>,
}

struct Segment {
    nodes: Arc<Nodes>,
    traces: Mutex<Traces>,
}

/// Nodes of a graph that follow one another.
struct Nodes {
    graph: Arc<Graph>,
    range: Range<usize>,
    /// The names that they read and do not compute, with whether these are constants of their graph.
    takes: Vec<(Arc<str>, bool)>,
    /// The names that they compute and that are read behind them.
    gives: Vec<Arc<str>>,
}

/// Traces by their keys, the most recently used last.
#[derive(Default)]
struct Traces {
    known: Vec<Arc<Trace>>,
    /// How many calls in a row found no trace.
    misses: usize,
}

struct Trace {
    key: Vec<InputKey>,
    jit: Jit<Function>,
    /// The outcome of tracing.
    outcome: Arc<Mutex<Outcome>>,
}

#[derive(Default)]
struct Outcome {
    /// For each name given, its numbers where the host knows them.
    hosts: Vec<Option<Host>>,
    /// The node that has to stand apart, if there is one.
    apart: Option<usize>,
}

/// Inputs of a segment in one run.
#[derive(Default)]
struct Inputs {
    key: Vec<InputKey>,
    tensors: Vec<Tensor>,
    /// The names of the tensors.
    names: Vec<Arc<str>>,
    /// The values of all other names.
    fixed: HashMap<Arc<str>, Value>,
}

type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// The property of an input that a trace depends on.
#[derive(Clone, PartialEq)]
enum InputKey {
    Missing,
    Constant,
    Host(Host),
    Tensor(Shape, DType),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replay {
    /// The segment that begins at a node, if there is one.
    fn segment(&self, graph: &Arc<Graph>, first: usize) -> Option<Arc<Segment>> {
        let mut graphs = lock(&self.0);
        let Segments { apart, segments } = graphs.entry(Arc::as_ptr(graph).addr()).or_default();
        if let Some(segment) = segments.get(&first) {
            return Some(segment.clone());
        }
        let end = (first..graph.nodes.len()).find(|i| apart.contains(i));
        let range = first..end.unwrap_or(graph.nodes.len());
        if range.len() < 2 {
            return None;
        }
        let segment =
            Segment { nodes: Arc::new(Nodes::new(graph, range)), traces: Mutex::default() };
        Some(segments.entry(first).or_insert(Arc::new(segment)).clone())
    }

    /// Excludes a node from all segments.
    fn set_apart(&self, graph: &Arc<Graph>, node: usize) {
        let mut graphs = lock(&self.0);
        let segments = graphs.entry(Arc::as_ptr(graph).addr()).or_default();
        segments.apart.insert(node);
        segments.segments.retain(|_, segment| !segment.nodes.range.contains(&node));
    }
}

impl Nodes {
    fn new(graph: &Arc<Graph>, range: Range<usize>) -> Nodes {
        let (nodes, last_uses) = (&graph.nodes[range.clone()], &graph.last_uses[range.clone()]);
        let mut computed = HashSet::new();
        let (mut takes, mut seen) = (Vec::new(), HashSet::new());
        for node in nodes {
            let mut read = Vec::new();
            names_read(node, &mut read);
            for name in read {
                if !computed.contains(&name) && seen.insert(name.clone()) {
                    let is_constant = graph.constants.contains_key(&name);
                    takes.push((name, is_constant));
                }
            }
            computed.extend(node.outputs.iter().flatten().cloned());
        }
        let gone: HashSet<&Arc<str>> = last_uses.iter().flatten().collect();
        let mut gives: Vec<_> = computed.into_iter().filter(|name| !gone.contains(name)).collect();
        gives.sort();
        Nodes { graph: graph.clone(), range, takes, gives }
    }

    /// The first node of which something is true.
    fn first(&self, is_so: impl Fn(&Node) -> bool) -> Option<usize> {
        self.range.clone().find(|&i| is_so(&self.graph.nodes[i]))
    }

    /// Their inputs in a scope, or the node that reads a value that is neither a tensor nor numbers.
    fn inputs(&self, scope: &Scope<'_>) -> Result<Inputs, Option<usize>> {
        let mut inputs = Inputs::default();
        for (name, is_constant) in &self.takes {
            if *is_constant && !scope.replaces_constants {
                continue;
            }
            let key = match scope.look_up(name) {
                None => InputKey::Missing,
                Some((Value::Tensor(tensor), false)) => {
                    inputs.names.push(name.clone());
                    inputs.tensors.push(tensor.clone());
                    InputKey::Tensor(tensor.shape().clone(), tensor.dtype())
                }
                Some((value, is_constant)) => {
                    inputs.fixed.insert(name.clone(), value.clone());
                    match value {
                        _ if is_constant => InputKey::Constant,
                        Value::Host(host) => InputKey::Host(host.clone()),
                        _ => return Err(self.first(|node| reads(node, name))),
                    }
                }
            };
            inputs.key.push(key);
        }
        Ok(inputs)
    }

    /// The values that they give, computed node by node, or an error and the node that has to stand apart: one that
    /// reads or draws random numbers, or gives what is neither a tensor nor numbers.
    fn evaluate(
        &self,
        run: &Run<'_>,
        values: HashMap<Arc<str>, Value>,
    ) -> Result<Vec<Value>, (Error, Option<usize>)> {
        let mut scope = Scope::new(values, &self.graph, None, None);
        for i in self.range.clone() {
            run.has_read.set(false);
            let done = run.step(&self.graph, i, &mut scope);
            done.map_err(|error| (error, run.has_read.get().then_some(i)))?;
            if run.has_drawn.get() {
                return Err((damaged("node", "it draws random numbers"), Some(i)));
            }
        }
        let value = |name: &Arc<str>| match scope.values.remove(name) {
            Some(value @ (Value::Tensor(_) | Value::Host(_))) => Ok(value),
            _ => {
                let error = damaged("node", format!("`{name}` is no tensor"));
                Err((error, self.first(|node| node.outputs.contains(&Some(name.clone())))))
            }
        };
        self.gives.iter().map(value).collect()
    }
}

fn reads(node: &Node, name: &Arc<str>) -> bool {
    let mut names = Vec::new();
    names_read(node, &mut names);
    names.contains(name)
}

impl Traces {
    /// The trace with a key, which becomes the most recently used.
    fn find(&mut self, key: &[InputKey]) -> Option<Arc<Trace>> {
        let place = self.known.iter().rposition(|trace| trace.key == key);
        self.misses = if place.is_some() { 0 } else { self.misses + 1 };
        self.known[place?..].rotate_left(1);
        self.known.last().cloned()
    }

    fn add(&mut self, trace: Arc<Trace>) {
        if self.known.len() == MAX_TRACES {
            self.known.remove(0);
        }
        self.known.push(trace);
    }
}

impl Trace {
    /// Nothing is traced yet.
    fn new(nodes: &Arc<Nodes>, inputs: Inputs, run: &Run<'_>) -> Trace {
        let Inputs { key, names, fixed, .. } = inputs;
        let outcome: Arc<Mutex<Outcome>> = Arc::default();
        let (nodes, noted) = (nodes.clone(), outcome.clone());
        let (device, limit) = (run.device.clone(), run.budget.limit());
        let function = move |tensors: &[Tensor]| {
            let mut values = fixed.clone();
            values.extend(names.iter().cloned().zip(tensors.iter().cloned().map(Value::Tensor)));
            let run = Run::new(&device, limit, None);
            let values = nodes.evaluate(&run, values).map_err(|(error, apart)| {
                lock(&noted).apart = apart;
                error
            })?;
            let mut tensors = Vec::new();
            let host = |value| match value {
                Value::Host(host) => Some(host),
                Value::Tensor(tensor) => {
                    tensors.push(tensor);
                    None
                }
                _ => None,
            };
            lock(&noted).hosts = values.into_iter().map(host).collect();
            Ok(tensors)
        };
        Trace { key, jit: Jit::new(Box::new(function)), outcome }
    }
}

impl Run<'_> {
    /// Replays the segment that begins at a node, and returns the node behind it; `None` where the node has to be
    /// evaluated by itself.
    pub(crate) fn replay(
        &self,
        graph: &Arc<Graph>,
        first: usize,
        scope: &mut Scope<'_>,
    ) -> Result<Option<usize>> {
        let Some(replay) = self.replay else { return Ok(None) };
        // The nodes of a function may ask for attributes of its call.
        if scope.call.is_some_and(|call| !call.is_empty()) {
            return Ok(None);
        }
        while let Some(segment) = replay.segment(graph, first) {
            let range = segment.nodes.range.clone();
            let mut inputs = match segment.nodes.inputs(scope) {
                Ok(inputs) => inputs,
                Err(node) => {
                    replay.set_apart(graph, node.unwrap_or(first));
                    continue;
                }
            };
            let tensors = std::mem::take(&mut inputs.tensors);
            let (known, is_rare) = {
                let mut traces = lock(&segment.traces);
                (traces.find(&inputs.key), traces.misses > MAX_TRACES)
            };
            let is_new = known.is_none();
            let trace = known.unwrap_or_else(|| Arc::new(Trace::new(&segment.nodes, inputs, self)));
            if is_new && is_rare {
                lock(&segment.traces).add(trace);
                range.clone().try_for_each(|i| self.step(graph, i, scope))?;
                return Ok(Some(range.end));
            }
            let called = trace.jit.call(&tensors.iter().collect::<Vec<_>>());
            let outcome = lock(&trace.outcome);
            let outputs = match (called, outcome.apart) {
                (Ok(outputs), _) => outputs,
                (Err(_), Some(node)) => {
                    replay.set_apart(graph, node);
                    continue;
                }
                (Err(error), None) => return Err(error),
            };
            let mut outputs = outputs.into_iter().map(Value::Tensor);
            for (name, host) in segment.nodes.gives.iter().zip(&outcome.hosts) {
                if let Some(value) = host.clone().map(Value::Host).or_else(|| outputs.next()) {
                    self.set(scope, name, value)?;
                }
            }
            range.clone().for_each(|i| self.forget(graph, i, scope));
            drop(outcome);
            // Of inputs without value there is no plan.
            if is_new && trace.jit.traces() > 0 {
                lock(&segment.traces).add(trace);
            }
            return Ok(Some(range.end));
        }
        Ok(None)
    }
}
