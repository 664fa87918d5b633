//! From tensors to a graph, without recursion.

use super::{Graph, Node, NodeId, Op};
use crate::dtype::DType;
use crate::runtime::Buffer;
use crate::shape::Shape;
use crate::tensor::{History, Tensor};
use rustc_hash::FxHashMap;
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
    capture.seen.reserve(expected);
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
    /// Nodes by the address of their tensor.
    seen: FxHashMap<usize, NodeId>,
    /// Nodes by what they are.
    cons: FxHashMap<(Node, DType, u32), NodeId>,
    shape_ids: FxHashMap<Shape, u32>,
    list_ids: FxHashMap<Arc<[(usize, usize)]>, u32>,
    last_shape: Option<(Shape, u32)>,
}

impl Capture {
    /// Numbers everything `output` reaches, sources first.
    fn visit(&mut self, output: &Tensor) -> NodeId {
        let mut stack = vec![(output.clone(), false)];
        let mut missing = Vec::new();
        // What was put back to wait for its sources cannot have been numbered by them.
        while let Some((tensor, waited)) = stack.pop() {
            if !waited {
                if self.seen.contains_key(&tensor.id()) {
                    continue;
                }
                if tensor.numel() == 0 {
                    // Nothing is to be computed, from whatever it was; an empty constant stands
                    // for it.
                    let id = self.push(Node::Const { bits: 0 }, &tensor);
                    self.seen.insert(tensor.id(), id);
                    continue;
                }
            }
            match self.number(&tensor, &mut missing) {
                Some(id) => {
                    self.seen.insert(tensor.id(), id);
                }
                None => {
                    stack.push((tensor, true));
                    stack.extend(missing.drain(..).rev().map(|source| (source, false)));
                }
            }
        }
        self.seen[&output.id()]
    }

    /// The node of a tensor, or `None` and the sources that have to be visited before.
    fn number(&mut self, tensor: &Tensor, missing: &mut Vec<Tensor>) -> Option<NodeId> {
        if !tensor.is_realized()
            && let History::Expr(expr) = &*tensor.history()
        {
            let mut ids = [NodeId(0); 3];
            for (id, source) in ids.iter_mut().zip(expr.operands()) {
                match self.seen.get(&source.id()) {
                    Some(&known) => *id = known,
                    None => missing.push(source.clone()),
                }
            }
            return missing.is_empty().then(|| self.add(tensor, &expr.op, ids));
        }
        // A value set by another thread after the first look is found now: the history is
        // released only once the value is there.
        let buffer = tensor.value().expect("invariant: a tensor has a value or a history");
        let slot = self.bindings.leaves.len() as u32;
        self.bindings.leaves.push(buffer.clone());
        Some(self.push(Node::Leaf { slot }, tensor))
    }

    fn add(&mut self, tensor: &Tensor, op: &Op, [x, y, z]: [NodeId; 3]) -> NodeId {
        let node = match op {
            Op::Alias(_) => return x,
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
            Op::Copy => Node::Copy { x },
        };
        self.push(node, tensor)
    }

    fn push(&mut self, node: Node, tensor: &Tensor) -> NodeId {
        let shape = self.shape(tensor.shape());
        let next = NodeId(self.graph.nodes.len() as u32);
        let id = *self.cons.entry((node, tensor.dtype(), shape)).or_insert(next);
        if id == next {
            self.graph.nodes.push(node);
            self.graph.dtypes.push(tensor.dtype());
            self.graph.shape_ids.push(shape);
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
