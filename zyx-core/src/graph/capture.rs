//! From tensors to a graph, without recursion.

use super::{CaptureOrder, Graph, KernelCall, Node, NodeId, Op};
use crate::runtime::Buffer;
use crate::shape::Shape;
use crate::tensor::{History, Tensor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The values that complete a graph: realized buffers by slot, bits of scalars by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bindings {
    pub(crate) leaves: Vec<Buffer>,
    pub(crate) arguments: Vec<u64>,
    /// Whether a leaf has no value, as the examples of [`Tensor::vmap`]: nothing can be computed.
    pub(crate) unknown: bool,
    /// Whether a leaf is the value of another device that has not been moved here yet: the same.
    pub(crate) unmoved: bool,
}

/// The graph that `outputs` reach and the values of its leaves and arguments. Space is made for
/// `expected` nodes: growing the tables would take a sixth of the time.
pub(crate) fn capture(outputs: &[&Tensor], expected: usize) -> (Graph, Bindings) {
    let (mut graph, bindings, mut order) = capture_with_order(outputs, expected);
    graph.merge_twins(&mut order);
    (graph, bindings)
}

/// [`capture`] of what is computed from `inputs`, which have no values: the given ones stand for them.
/// Also the slots of those that are reached, each with its position.
pub(crate) fn capture_function(
    outputs: &[&Tensor],
    inputs: &[Tensor],
    values: &[Option<Buffer>],
) -> (Graph, Bindings, Vec<(u32, usize)>) {
    let position = inputs.iter().zip(values).enumerate();
    let known = position.filter_map(|(i, (x, value))| Some((x.id(), (i, value.clone()?))));
    let mut capture = Capture { inputs: known.collect(), ..Capture::default() };
    capture.visit_all(outputs);
    (capture.graph, capture.bindings, capture.slots)
}

/// [`capture`], with what was visited on the way. Slices and paddings are nodes each, even those that are equal:
/// [`Places::generalize`](super::Places::generalize) makes one of what is always equal.
pub(crate) fn capture_with_order(
    outputs: &[&Tensor],
    expected: usize,
) -> (Graph, Bindings, CaptureOrder) {
    let mut capture = Capture::default();
    capture.cons.reserve(expected);
    capture.graph.reserve(expected);
    capture.visit_all(outputs);
    (capture.graph, capture.bindings, capture.order)
}

#[derive(Default)]
struct Capture {
    graph: Graph,
    bindings: Bindings,
    order: CaptureOrder,
    /// Nodes by the address of their tensor, for tensors that may be reached again.
    seen: FxHashMap<usize, NodeId>,
    /// Nodes by what they are.
    cons: FxHashMap<Key, NodeId>,
    shape_ids: FxHashMap<Shape, u32>,
    list_ids: FxHashMap<Arc<[(usize, usize)]>, u32>,
    last_shape: Option<(Shape, u32)>,
    tasks: Vec<Task>,
    /// Of the tensors that wait for their sources: the node whose sources count them from 0, none
    /// for an alias.
    waiting: Vec<Option<Node>>,
    /// The numbers that finished tasks have left.
    numbers: SmallVec<[NodeId; 32]>,
    /// By the address of a tensor without value: its position among inputs and a value.
    inputs: FxHashMap<usize, (usize, Buffer)>,
    /// The leaves that are inputs, with their positions.
    slots: Vec<(u32, usize)>,
}

/// What a node is, in words, with their hash: computed once, used by the table and by the graph.
#[derive(PartialEq, Eq)]
struct Key {
    hash: u64,
    words: [u64; 2],
    rest: u64,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What remains to be done; when it is done, it has left one number.
struct Task {
    /// `None` if the number is known.
    tensor: Option<Tensor>,
    /// What to do, or the number.
    what: u64,
}

/// The tensor is to be numbered.
const VISIT: u64 = 0;
/// The sources of the tensor have left their numbers.
const FINISH: u64 = 1;
/// So they have, and the tensor may be reached again.
const FINISH_SHARED: u64 = 2;

impl Capture {
    fn visit_all(&mut self, outputs: &[&Tensor]) {
        for output in outputs {
            let id = self.visit(output);
            self.graph.outputs.push(id);
        }
    }

    /// Numbers everything `output` reaches, sources first.
    fn visit(&mut self, output: &Tensor) -> NodeId {
        self.tasks.push(Task { tensor: Some(output.clone()), what: VISIT });
        while let Some(Task { tensor, what }) = self.tasks.pop() {
            let Some(tensor) = tensor else {
                self.numbers.push(NodeId(what as u32));
                continue;
            };
            if what != VISIT {
                self.finish(&tensor, what == FINISH_SHARED);
                continue;
            }
            // Whoever owns the tensor alone is the only one to lead here; this is another handle.
            let shared = tensor.owners() > 2;
            match self.known(&tensor, shared) {
                Some(id) => self.numbers.push(id),
                None => self.enter(tensor, shared),
            }
        }
        self.numbers.pop().expect("invariant: the output has left its number")
    }

    /// The number a tensor has got; only one that is shared can have been reached before.
    fn known(&self, tensor: &Tensor, shared: bool) -> Option<NodeId> {
        if shared { self.seen.get(&tensor.id()).copied() } else { None }
    }

    /// Numbers a tensor without sources; any other waits until its sources are numbered.
    fn enter(&mut self, tensor: Tensor, shared: bool) {
        let mut leaf = None;
        if tensor.is_empty() {
            // Nothing is to be computed, from whatever it was; an empty constant stands for it.
            leaf = Some(Node::Const { bits: 0 });
        } else if !tensor.is_realized() {
            // Handles are made while the history is held, and moved afterwards.
            let mut sources: SmallVec<[Task; 3]> = SmallVec::new();
            let history = tensor.history();
            let kept = match &*history {
                History::Kept(kept) => Some(kept.buffer.clone()),
                _ => None,
            };
            if let Some(buffer) = kept {
                drop(history);
                let id = self.value(&tensor, buffer);
                self.leave(&tensor, shared, id);
                return;
            }
            if let History::Expr(expr) = &*history {
                let unmoved = expr.source_elsewhere(tensor.device()).is_some();
                let node = if unmoved { Some(self.unmoved()) } else { self.node(&expr.op) };
                if node.is_none_or(|node| node.arity() > 0) {
                    self.waiting.push(node);
                    sources.extend(expr.operands().map(|source| self.source(source)));
                } else {
                    leaf = node;
                }
            }
            drop(history);
            if !sources.is_empty() {
                let what = if shared { FINISH_SHARED } else { FINISH };
                self.tasks.push(Task { tensor: Some(tensor), what });
                while let Some(source) = sources.pop() {
                    self.tasks.push(source);
                }
                return;
            }
        }
        let id = match leaf {
            Some(node) => self.push(node, &tensor),
            None => self.leaf(&tensor),
        };
        self.leave(&tensor, shared, id);
    }

    /// What is to be done for a source; no handle of it is needed if it has its number.
    fn source(&self, source: &Tensor) -> Task {
        match self.known(source, source.owners() > 1) {
            Some(id) => Task { tensor: None, what: id.0.into() },
            None => Task { tensor: Some(source.clone()), what: VISIT },
        }
    }

    /// Numbers a tensor whose sources have left their numbers.
    fn finish(&mut self, tensor: &Tensor, shared: bool) {
        let node = self.waiting.pop().expect("invariant: the tensor waits");
        let first = self.numbers.len() - node.map_or(1, |node| node.arity());
        let own = &self.numbers[first..];
        let node = match node {
            // The usual cases, without looking twice at what it is.
            Some(Node::Unary { op, .. }) => Some(Node::Unary { op, x: own[0] }),
            Some(Node::Binary { op, .. }) => Some(Node::Binary { op, x: own[0], y: own[1] }),
            other => other.map(|node| node.map(|position| own[position.idx()])),
        };
        let alias = own[0];
        self.numbers.truncate(first);
        let id = node.map_or(alias, |node| self.push(node, tensor));
        self.leave(tensor, shared, id);
    }

    fn leave(&mut self, tensor: &Tensor, shared: bool, id: NodeId) {
        self.numbers.push(id);
        if shared {
            self.seen.insert(tensor.id(), id);
        }
    }

    fn leaf(&mut self, tensor: &Tensor) -> NodeId {
        // A value set by another thread after the first look is found now: the history is
        // released only once the value is there.
        let slot = self.bindings.leaves.len() as u32;
        let buffer = match (tensor.value(), self.inputs.get(&tensor.id())) {
            (Some(buffer), _) => buffer,
            (None, Some((position, buffer))) => {
                self.slots.push((slot, *position));
                buffer
            }
            (None, None) => {
                self.bindings.unknown = true;
                return self.push(Node::Const { bits: 0 }, tensor);
            }
        };
        let buffer = buffer.clone();
        self.value(tensor, buffer)
    }

    /// A leaf with this value.
    fn value(&mut self, tensor: &Tensor, buffer: Buffer) -> NodeId {
        let slot = self.bindings.leaves.len() as u32;
        self.bindings.leaves.push(buffer);
        self.push(Node::Leaf { slot }, tensor)
    }

    /// A leaf that stands for what another device computes.
    fn unmoved(&mut self) -> Node {
        self.bindings.unmoved = true;
        // Not a slot of any leaf.
        Node::Leaf { slot: u32::MAX - self.graph.nodes.len() as u32 }
    }

    /// The node of an op whose sources are numbered from 0; `None` for an alias.
    fn node(&mut self, op: &Op) -> Option<Node> {
        let x = NodeId(0);
        Some(match op {
            Op::Alias(_) | Op::Within(_) => return None,
            Op::Const { bits, literal: false } => {
                self.bindings.arguments.push(*bits);
                Node::Argument { slot: self.bindings.arguments.len() as u32 - 1 }
            }
            Op::Pad(list) => Node::Pad { x, list: self.list(list.as_slice().into()) },
            Op::Kernel(call) => self.call(call),
            Op::Shrink(starts) => {
                let list = self.list(starts.iter().map(|&start| (start, 0)).collect());
                Node::Shrink { x, list }
            }
            _ => return Node::plain(op, [x, NodeId(1), NodeId(2)]),
        })
    }

    fn push(&mut self, node: Node, tensor: &Tensor) -> NodeId {
        let shape = self.shape(tensor.shape());
        let dtype = tensor.dtype();
        let (words, rest) = (node.words(), u64::from(shape) << 8 | dtype as u64);
        let hash = hash_words(words, rest);
        let next = NodeId(self.graph.nodes.len() as u32);
        let mut id = *self.cons.entry(Key { hash, words, rest }).or_insert(next);
        // Places that are equal by chance may differ the next time.
        if id != next && matches!(node, Node::Pad { .. } | Node::Shrink { .. }) {
            self.graph.twins = true;
            id = next;
        }
        if id == next {
            self.graph.add(node, dtype, shape, hash);
            self.graph.origins.push(&node, tensor);
        }
        self.order.0.push(id);
        id
    }

    fn shape(&mut self, shape: &Shape) -> u32 {
        if let Some((last, id)) = &self.last_shape
            && last.same(shape)
        {
            return *id;
        }
        let next = self.graph.shapes.len() as u32;
        let id = *self.shape_ids.entry(shape.clone()).or_insert(next);
        if id == next {
            self.graph.shapes.push(shape.clone());
        }
        self.last_shape = Some((shape.clone(), id));
        id
    }

    /// The node of a user kernel.
    fn call(&mut self, call: &Arc<KernelCall>) -> Node {
        let calls = &mut self.graph.calls;
        let known = calls.iter().position(|known| known == call);
        let number = known.unwrap_or_else(|| {
            calls.push(call.clone());
            calls.len() - 1
        });
        let n = call.sources();
        let y = if n > 1 { NodeId(1) } else { NodeId(0) };
        Node::Kernel { n, call: number as u32, x: NodeId(0), y }
    }

    fn list(&mut self, list: Arc<[(usize, usize)]>) -> u32 {
        let next = self.graph.lists.len() as u32;
        let id = *self.list_ids.entry(list.clone()).or_insert(next);
        if id == next {
            self.graph.lists.push(list);
        }
        id
    }
}

impl Graph {
    /// Makes one node of equal ones, which come from places that are equal, and numbers the rest
    /// anew.
    pub(crate) fn merge_twins(&mut self, order: &mut CaptureOrder) {
        if !std::mem::take(&mut self.twins) {
            return;
        }
        let mut merged = self.without_nodes();
        let mut numbers: Vec<NodeId> = Vec::with_capacity(self.len());
        let mut known: FxHashMap<Key, NodeId> = FxHashMap::default();
        for id in self.ids() {
            let node = self.node(id).map(|x| numbers[x.idx()]);
            let (words, shape) = (node.words(), self.shape_id(id));
            let rest = u64::from(shape) << 8 | self.dtype(id) as u64;
            let hash = hash_words(words, rest);
            let next = NodeId(merged.nodes.len() as u32);
            let number = *known.entry(Key { hash, words, rest }).or_insert(next);
            if number == next {
                merged.add(node, self.dtype(id), shape, hash);
                merged.origins.hand_on(&self.origins, id);
                merged.origins.push_handed_on();
            }
            numbers.push(number);
        }
        merged.outputs = self.outputs.iter().map(|id| numbers[id.idx()]).collect();
        order.0.iter_mut().for_each(|id| *id = numbers[id.idx()]);
        *self = merged;
    }
}

fn hash_words([a, b]: [u64; 2], rest: u64) -> u64 {
    const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
    let mixed = (a ^ rest.rotate_left(44)).wrapping_mul(ODD[0]) ^ b;
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(ODD[1]);
    mixed ^ mixed >> 29
}
