//! Parts of a graph that are replayed: what stands between two nodes that read values.
//!
//! What such a part computes depends on the shapes of what it takes and on the few numbers among it that the host
//! knows. It is traced once for each of them and replayed after that ([`Jit`]). A model that reads no values is one
//! part; where values decide, as before an `If`, a part ends, and each branch has parts of its own. Which nodes read is
//! found by tracing: there, it is an error.

use crate::graph::{Graph, Node, names_read};
use crate::host::Host;
use crate::read::damaged;
use crate::run::{Run, Scope};
use crate::value::Value;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx_core::{DType, Error, Jit, Result, Shape, Tensor};

/// Most kinds of inputs of a part that are known. After as many new ones in a row, one is traced when it comes again.
const MOST: usize = 64;

/// What was traced of a model's graphs, by their place in memory.
#[derive(Default)]
pub(crate) struct Replay(Mutex<HashMap<usize, Parts>>);

/// A graph's parts by their first node, and the nodes that belong to none.
#[derive(Default)]
struct Parts {
    apart: HashSet<usize>,
    parts: HashMap<usize, Arc<Part>>,
}

struct Part {
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

/// Kinds of inputs that a part was traced for; the one used last comes last.
#[derive(Default)]
struct Traces {
    known: Vec<Arc<Trace>>,
    /// How many calls in a row found no trace.
    misses: usize,
}

struct Trace {
    kinds: Vec<Kind>,
    jit: Jit<Function>,
    /// What tracing found out.
    found: Arc<Mutex<Found>>,
}

#[derive(Default)]
struct Found {
    /// For each name given, its numbers where the host knows them.
    hosts: Vec<Option<Host>>,
    /// The node that has to stand apart, if there is one.
    apart: Option<usize>,
}

/// What a part takes in one run.
#[derive(Default)]
struct Taken {
    kinds: Vec<Kind>,
    tensors: Vec<Tensor>,
    /// The names of the tensors.
    names: Vec<Arc<str>>,
    /// The values of all other names.
    fixed: HashMap<Arc<str>, Value>,
}

type Function = Box<dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync>;

/// What a part depends on, of a value that it takes.
#[derive(Clone, PartialEq)]
enum Kind {
    Missing,
    Constant,
    Host(Host),
    Tensor(Shape, DType),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Replay {
    /// The part of the graph that begins at a node, if any does.
    fn part(&self, graph: &Arc<Graph>, first: usize) -> Option<Arc<Part>> {
        let mut graphs = lock(&self.0);
        let Parts { apart, parts } = graphs.entry(Arc::as_ptr(graph).addr()).or_default();
        if let Some(part) = parts.get(&first) {
            return Some(part.clone());
        }
        let end = (first..graph.nodes.len()).find(|i| apart.contains(i));
        let range = first..end.unwrap_or(graph.nodes.len());
        if range.len() < 2 {
            return None;
        }
        let part = Part { nodes: Arc::new(Nodes::new(graph, range)), traces: Mutex::default() };
        Some(parts.entry(first).or_insert(Arc::new(part)).clone())
    }

    /// From now on, a node is in no part.
    fn set_apart(&self, graph: &Arc<Graph>, node: usize) {
        let mut graphs = lock(&self.0);
        let parts = graphs.entry(Arc::as_ptr(graph).addr()).or_default();
        parts.apart.insert(node);
        parts.parts.retain(|_, part| !part.nodes.range.contains(&node));
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

    /// What they take of a scope, or the node that takes what is neither a tensor nor numbers.
    fn take(&self, scope: &Scope<'_>) -> Result<Taken, Option<usize>> {
        let mut taken = Taken::default();
        for (name, is_constant) in &self.takes {
            if *is_constant && !scope.replaces_constants {
                continue;
            }
            let kind = match scope.look_up(name) {
                None => Kind::Missing,
                Some((Value::Tensor(tensor), false)) => {
                    taken.names.push(name.clone());
                    taken.tensors.push(tensor.clone());
                    Kind::Tensor(tensor.shape().clone(), tensor.dtype())
                }
                Some((value, is_constant)) => {
                    taken.fixed.insert(name.clone(), value.clone());
                    match value {
                        _ if is_constant => Kind::Constant,
                        Value::Host(host) => Kind::Host(host.clone()),
                        _ => return Err(self.first(|node| reads(node, name))),
                    }
                }
            };
            taken.kinds.push(kind);
        }
        Ok(taken)
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
    /// The trace for inputs of these kinds, which is now what was used last.
    fn find(&mut self, kinds: &[Kind]) -> Option<Arc<Trace>> {
        let place = self.known.iter().rposition(|trace| trace.kinds == kinds);
        self.misses = if place.is_some() { 0 } else { self.misses + 1 };
        self.known[place?..].rotate_left(1);
        self.known.last().cloned()
    }

    fn add(&mut self, trace: Arc<Trace>) {
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        self.known.push(trace);
    }
}

impl Trace {
    /// Nothing is traced yet.
    fn new(nodes: &Arc<Nodes>, taken: Taken, run: &Run<'_>) -> Trace {
        let Taken { kinds, names, fixed, .. } = taken;
        let found: Arc<Mutex<Found>> = Arc::default();
        let (nodes, noted) = (nodes.clone(), found.clone());
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
        Trace { kinds, jit: Jit::new(Box::new(function)), found }
    }
}

impl Run<'_> {
    /// Replays the part of a graph that begins at a node, and gives the node behind it; `None` where the node has to
    /// be evaluated by itself.
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
        while let Some(part) = replay.part(graph, first) {
            let range = part.nodes.range.clone();
            let mut taken = match part.nodes.take(scope) {
                Ok(taken) => taken,
                Err(node) => {
                    replay.set_apart(graph, node.unwrap_or(first));
                    continue;
                }
            };
            let tensors = std::mem::take(&mut taken.tensors);
            let (known, is_rare) = {
                let mut traces = lock(&part.traces);
                (traces.find(&taken.kinds), traces.misses > MOST)
            };
            let is_new = known.is_none();
            let trace = known.unwrap_or_else(|| Arc::new(Trace::new(&part.nodes, taken, self)));
            if is_new && is_rare {
                lock(&part.traces).add(trace);
                range.clone().try_for_each(|i| self.step(graph, i, scope))?;
                return Ok(Some(range.end));
            }
            let called = trace.jit.call(&tensors.iter().collect::<Vec<_>>());
            let found = lock(&trace.found);
            let outputs = match (called, found.apart) {
                (Ok(outputs), _) => outputs,
                (Err(_), Some(node)) => {
                    replay.set_apart(graph, node);
                    continue;
                }
                (Err(error), None) => return Err(error),
            };
            let mut outputs = outputs.into_iter().map(Value::Tensor);
            for (name, host) in part.nodes.gives.iter().zip(&found.hosts) {
                if let Some(value) = host.clone().map(Value::Host).or_else(|| outputs.next()) {
                    self.set(scope, name, value)?;
                }
            }
            range.clone().for_each(|i| self.forget(graph, i, scope));
            drop(found);
            // Of inputs without value there is no plan.
            if is_new && trace.jit.traces() > 0 {
                lock(&part.traces).add(trace);
            }
            return Ok(Some(range.end));
        }
        Ok(None)
    }
}
