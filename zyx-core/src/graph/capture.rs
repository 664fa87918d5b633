//! From tensors to a graph, without recursion.

use super::{Graph, Node, NodeId, Op};
use crate::dtype::DType;
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
}

/// The graph that `outputs` reach and the values of its leaves and arguments. Space is made for
/// `expected` nodes: growing the tables would take a sixth of the time.
pub(crate) fn capture(outputs: &[&Tensor], expected: usize) -> (Graph, Bindings) {
    let mut capture = Capture::default();
    capture.cons.reserve(expected);
    capture.graph.reserve(expected);
    for output in outputs {
        let id = capture.visit(output);
        capture.graph.outputs.push(id);
    }
    (capture.graph, capture.bindings)
}

#[derive(Default)]
struct Capture {
    graph: Graph,
    bindings: Bindings,
    /// Nodes by the address of their tensor, for tensors that may be reached again.
    seen: FxHashMap<usize, NodeId>,
    /// Nodes by what they are.
    cons: FxHashMap<Key, NodeId>,
    shape_ids: FxHashMap<Shape, u32>,
    list_ids: FxHashMap<Arc<[(usize, usize)]>, u32>,
    last_shape: Option<(Shape, u32)>,
}

/// What a node is, with its hash: computed once, used by the table and by the graph.
#[derive(PartialEq, Eq)]
struct Key {
    hash: u64,
    node: Node,
    dtype: DType,
    shape: u32,
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What remains to be done.
enum Task {
    /// Leaves the number of the tensor's node.
    Visit(Tensor),
    /// The sources of a tensor have left their numbers, which the node's sources count from 0; no
    /// node if the tensor is an alias. It is noted if it may be reached again.
    Finish(Tensor, Option<Node>, bool),
}

impl Capture {
    /// Numbers everything `output` reaches, sources first.
    fn visit(&mut self, output: &Tensor) -> NodeId {
        let mut tasks = vec![Task::Visit(output.clone())];
        let mut numbers: SmallVec<[NodeId; 32]> = SmallVec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(tensor) => {
                    // Whoever owns the tensor alone is the only one to lead here.
                    let shared = tensor.owners() > 2;
                    let known = if shared { self.seen.get(&tensor.id()).copied() } else { None };
                    if let Some(id) = known {
                        numbers.push(id);
                    } else if let Some(id) = self.enter(tensor, shared, &mut tasks) {
                        numbers.push(id);
                    }
                }
                Task::Finish(tensor, node, shared) => {
                    let first = numbers.len() - node.map_or(1, |node| node.arity());
                    let id = match node {
                        Some(node) => {
                            let own = &numbers[first..];
                            let node = node.map(|position| own[position.idx()]);
                            self.push(node, &tensor)
                        }
                        None => numbers[first],
                    };
                    numbers.truncate(first);
                    numbers.push(id);
                    if shared {
                        self.seen.insert(tensor.id(), id);
                    }
                }
            }
        }
        numbers[0]
    }

    /// The number of a tensor without sources; else its sources are to be visited before.
    fn enter(&mut self, tensor: Tensor, shared: bool, tasks: &mut Vec<Task>) -> Option<NodeId> {
        let mut node = None;
        if tensor.numel() == 0 {
            // Nothing is to be computed, from whatever it was; an empty constant stands for it.
            node = Some(Node::Const { bits: 0 });
        } else if !tensor.is_realized()
            && let History::Expr(expr) = &*tensor.history()
        {
            node = self.node(&expr.op);
            let finish = tasks.len();
            if node.is_none_or(|node| node.arity() > 0) {
                tasks.push(Task::Finish(tensor.clone(), node, shared));
                tasks.extend(expr.operands().rev().map(|source| Task::Visit(source.clone())));
                debug_assert_eq!(tasks.len() - finish - 1, node.map_or(1, |node| node.arity()));
                return None;
            }
        }
        let id = match node {
            Some(node) => self.push(node, &tensor),
            None => self.leaf(&tensor),
        };
        if shared {
            self.seen.insert(tensor.id(), id);
        }
        Some(id)
    }

    fn leaf(&mut self, tensor: &Tensor) -> NodeId {
        // A value set by another thread after the first look is found now: the history is
        // released only once the value is there.
        let buffer = tensor.value().expect("invariant: a tensor has a value or a history");
        let slot = self.bindings.leaves.len() as u32;
        self.bindings.leaves.push(buffer.clone());
        self.push(Node::Leaf { slot }, tensor)
    }

    /// The node of an op whose sources are numbered from 0; `None` for an alias.
    fn node(&mut self, op: &Op) -> Option<Node> {
        let [x, y, z] = [NodeId(0), NodeId(1), NodeId(2)];
        Some(match op {
            Op::Alias(_) => return None,
            Op::Const { bits, literal: true } => Node::Const { bits: *bits },
            Op::Const { bits, literal: false } => {
                self.bindings.arguments.push(*bits);
                Node::Argument { slot: self.bindings.arguments.len() as u32 - 1 }
            }
            Op::Iota => Node::Iota,
            Op::Unary(op) => Node::Unary { op: *op, x },
            Op::Binary(op) => Node::Binary { op: *op, x, y },
            Op::Ternary(op) => Node::Ternary { op: *op, x, y, z },
            Op::Cast => Node::Cast { x },
            Op::Bitcast => Node::Bitcast { x },
            Op::Reduce { op, axes } => Node::Reduce { op: *op, axes: *axes, x },
            Op::Scan { op, axis, reverse } => {
                Node::Scan { op: *op, axis: *axis, reverse: *reverse, x }
            }
            Op::Reshape => Node::Reshape { x },
            Op::Permute(perm) => Node::Permute { x, perm: *perm },
            Op::Expand => Node::Expand { x },
            Op::Pad(list) => Node::Pad { x, list: self.list(list.as_slice().into()) },
            Op::Shrink(starts) => {
                let list = self.list(starts.iter().map(|&start| (start, 0)).collect());
                Node::Shrink { x, list }
            }
            Op::Flip { axes } => Node::Flip { x, axes: *axes },
            Op::Gather { axis } => Node::Gather { axis: *axis, x, index: y },
            Op::Scatter { axis, op } => {
                Node::Scatter { axis: *axis, op: *op, base: x, index: y, x: z }
            }
            Op::Distribute => Node::Distribute { x, bin: y, starts: z },
            Op::Copy => Node::Copy { x },
        })
    }

    fn push(&mut self, node: Node, tensor: &Tensor) -> NodeId {
        let shape = self.shape(tensor.shape());
        let dtype = tensor.dtype();
        let hash = node.hash_with(u64::from(shape) << 8 | dtype as u64);
        let next = NodeId(self.graph.nodes.len() as u32);
        let id = *self.cons.entry(Key { hash, node, dtype, shape }).or_insert(next);
        if id == next {
            self.graph.add(node, dtype, shape, hash);
        }
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

    fn list(&mut self, list: Arc<[(usize, usize)]>) -> u32 {
        let next = self.graph.lists.len() as u32;
        let id = *self.list_ids.entry(list.clone()).or_insert(next);
        if id == next {
            self.graph.lists.push(list);
        }
        id
    }
}
