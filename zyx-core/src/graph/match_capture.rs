//! Whether tensors reach a graph that was captured before.
//!
//! A loop captures equal graphs one after the other. Whether the next is like an earlier one takes
//! a fraction of capturing it: the same tensors are visited in the same order, and each is compared
//! with the node that its counterpart became. Nothing is hashed, nothing is built, and handles of
//! no tensor are made; only the values of leaves and arguments are collected.
//!
//! *Why this is right.* What a capture makes of a tensor is a function of the tensor's op, dtype and
//! shape, the numbers of its sources and what was numbered before. If the tensors visited are equal
//! in these to those of an earlier capture, one after the other, so are all numbers and the graph.
//!
//! Tensors that were visited carry a mark: the visit and the number ([`Tensor::mark`]). Another
//! thread that follows the same tensors takes marks away. Then a tensor is visited twice, which the
//! earlier capture did not do, and the comparison fails; it never succeeds wrongly.

use super::places::Collected;
use super::{Bindings, Graph, Node, NodeId, Op};
use crate::runtime::Buffer;
use crate::tensor::{Expr, History, Tensor};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// What a capture visited: the node that each tensor was found to be, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct CaptureOrder(pub(super) Vec<NodeId>);

/// Most nodes of a graph that can be followed: marks have so many bits for numbers.
pub(crate) const MAX_FOLLOWED: usize = 1 << Tensor::MARK_BITS;

/// Most tensors on a path that are looked into at once, each from within its user.
const MAX_DEPTH: u32 = 200;

/// Tensors that reach a graph.
#[derive(Default)]
pub(crate) struct Matched {
    pub(crate) bindings: Bindings,
    /// Nodes whose values the program may need again, ascending.
    pub(crate) held: Vec<HeldNode>,
    /// The tensors of the nodes that were wanted.
    pub(crate) tensors: Vec<(NodeId, Tensor)>,
    /// Untracked tensors among the leaves whose values were kept, but for those that the program holds.
    pub(crate) kept_leaves: Vec<(NodeId, Tensor)>,
}

/// A node, neither output nor leaf, whose value the program may need again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeldNode {
    pub(crate) node: NodeId,
    /// Whether handles of its tensors are held elsewhere than in the graph.
    pub(crate) held: bool,
    /// Whether a part of it was computed for another value before.
    pub(crate) needed: bool,
}

/// The values of leaves and arguments, if `outputs` reach this graph by this order. The number of
/// the visit is used once for each device.
#[cfg(test)]
pub(crate) fn match_capture(
    outputs: &[&Tensor],
    graph: &Graph,
    order: &CaptureOrder,
    visit: u64,
) -> Option<Bindings> {
    if outputs.len() != graph.outputs.len() {
        return None;
    }
    match_held(outputs, &[], (graph, order), visit, None).map(|matched| matched.bindings)
}

/// Compares tensors with the first outputs of a graph, and counts the handles of each node's tensor.
/// A node is held if its tensor has more handles than the graph uses: the program has the others, or
/// pending tensors outside the graph. Outputs and pending tensors in `given` count as not held.
/// Collects the tensors of the nodes for which `wanted` is true.
pub(crate) fn match_held(
    outputs: &[&Tensor],
    given: &[Tensor],
    (graph, order): (&Graph, &CaptureOrder),
    visit: u64,
    wanted: Option<&dyn Fn(NodeId) -> bool>,
) -> Option<Matched> {
    if outputs.len() > graph.outputs.len() || graph.len() >= MAX_FOLLOWED {
        return None;
    }
    let places = Collected::of(graph);
    let mut walk = Follow {
        graph,
        order: &order.0,
        at: 0,
        seen: 0,
        matched: Matched::default(),
        handles: SmallVec::from_elem((0, false), graph.len()),
        detached: Vec::new(),
        places,
        visit,
        wanted,
    };
    for (output, expected) in outputs.iter().zip(&graph.outputs) {
        if walk.output(output)? != *expected {
            return None;
        }
    }
    let Follow { at, mut matched, mut handles, detached, places, .. } = walk;
    places.add_to(&mut matched.bindings)?;
    if at != order.0.len() {
        return None;
    }
    let asked = graph.outputs[..outputs.len()].iter().copied();
    let given = given.iter().filter_map(|tensor| tensor.marked(visit).map(NodeId));
    asked.chain(given).for_each(|node| handles[node.idx()] = (0, false));
    // Here is one handle of each.
    matched.kept_leaves.retain(|(node, _)| handles[node.idx()].0 <= 1);
    for (node, (handles, needed)) in graph.ids().zip(handles) {
        let held = HeldNode { node, held: handles > 0, needed };
        if (held.held || needed) && graph.node(node).arity() > 0 {
            matched.held.push(held);
        }
    }
    // From now on these are leaves, and hold no history.
    for (tensor, slot) in detached {
        tensor.set_value(matched.bindings.leaves[slot as usize].clone());
    }
    Some(matched)
}

struct Follow<'a> {
    graph: &'a Graph,
    order: &'a [NodeId],
    /// How much of the order was followed, and how many nodes it led to.
    at: usize,
    seen: u32,
    matched: Matched,
    /// For each node the handles of its tensors that the graph does not account for, and whether a
    /// part of it was needed before.
    handles: SmallVec<[(i32, bool); 32]>,
    /// Tensors behind which gradients stop, and the slots of the leaves that they equal.
    detached: Vec<(Tensor, u32)>,
    /// Arguments that are places.
    places: Collected,
    visit: u64,
    wanted: Option<&'a dyn Fn(NodeId) -> bool>,
}

/// Why a tensor has no number yet.
enum Stop {
    /// It leads elsewhere.
    Differs,
    /// This tensor is too far below it, and is to be visited first. That changes no number: whatever
    /// comes before it was visited.
    Deep(Tensor),
}

impl Follow<'_> {
    fn output(&mut self, output: &Tensor) -> Option<NodeId> {
        let mut waiting: SmallVec<[Tensor; 4]> = SmallVec::new();
        loop {
            let id = self.number(waiting.last().unwrap_or(output), MAX_DEPTH);
            match id {
                Ok(id) if waiting.is_empty() => return Some(id),
                Ok(_) => drop(waiting.pop()),
                Err(Stop::Deep(tensor)) => waiting.push(tensor),
                Err(Stop::Differs) => return None,
            }
        }
    }

    /// The number of a tensor, sources first.
    fn number(&mut self, tensor: &Tensor, depth: u32) -> Result<NodeId, Stop> {
        if let Some(id) = tensor.marked(self.visit) {
            self.handles[id as usize].0 -= 1;
            return Ok(NodeId(id));
        }
        let id = self.enter(tensor, depth)?;
        tensor.mark(self.visit, id.0);
        let (handles, needed) = &mut self.handles[id.idx()];
        // The one that led here is the graph's.
        *handles += tensor.owners() as i32 - 1;
        *needed |= tensor.was_needed();
        if self.wanted.is_some_and(|wanted| wanted(id)) {
            self.matched.tensors.push((id, tensor.clone()));
        }
        Ok(id)
    }

    /// Notes an alias of a leaf where gradients stop, and discounts the handles of a gradient rule.
    fn alias(&mut self, alias: &Tensor, expr: &Expr, id: NodeId) {
        match (&expr.op, self.graph.node(id)) {
            (Op::Alias(None), Node::Leaf { slot }) => self.detached.push((alias.clone(), slot)),
            (Op::Alias(Some(rule)), _) => {
                self.for_gradients(&mut expr.srcs[1..].iter().flatten().chain(&rule.held[..]));
            }
            _ => {}
        }
    }

    /// Discounts the handles of `inputs` that a gradient rule has: they do not make a node held. An input that
    /// only such rules hold has no number; then the handles that it has of its sources are discounted, too.
    /// Tensors that the value also depends on mostly have numbers by now. The handles of others still count.
    fn for_gradients(&mut self, inputs: &mut dyn Iterator<Item = &Tensor>) {
        // Those of which some handles were not met, with the number of those that were.
        let mut waiting: FxHashMap<usize, (Tensor, usize)> = FxHashMap::default();
        let mut ready = Vec::new();
        let mut meet = |x: &Tensor, ready: &mut Vec<Tensor>| match x.marked(self.visit) {
            Some(number) => self.handles[number as usize].0 -= 1,
            None => {
                let (_, met) = waiting.entry(x.id()).or_insert_with(|| (x.clone(), 0));
                *met += 1;
                if *met + 1 == x.owners() {
                    ready.extend(waiting.remove(&x.id()).map(|(x, _)| x));
                }
            }
        };
        inputs.for_each(|x| meet(x, &mut ready));
        while let Some(x) = ready.pop() {
            x.each_source(&mut |source| meet(source, &mut ready));
        }
    }

    fn enter(&mut self, tensor: &Tensor, depth: u32) -> Result<NodeId, Stop> {
        if tensor.is_empty() {
            return self.compare(tensor, |expected| *expected == Node::Const { bits: 0 });
        }
        if !tensor.is_realized() {
            // Held while sources are visited: graphs have no circles, so nobody waits for one that
            // waits for them.
            let history = tensor.history();
            if let History::Expr(expr) = &*history {
                // The tensors below belong to visits of another device.
                if expr.source_elsewhere(tensor.device()).is_some() {
                    return Err(Stop::Differs);
                }
                if depth == 0 {
                    drop(history);
                    return Err(Stop::Deep(tensor.clone()));
                }
                let mut own = [NodeId(0); 3];
                for (own, source) in own.iter_mut().zip(expr.operands()) {
                    *own = self.number(source, depth - 1)?;
                }
                return match &expr.op {
                    Op::Alias(_) => {
                        self.alias(tensor, expr, own[0]);
                        Ok(own[0])
                    }
                    Op::Within(_) => Ok(own[0]),
                    Op::Const { literal: false, .. }
                    | Op::Pad(_)
                    | Op::Shrink(_)
                    | Op::Kernel(_) => {
                        let node = self.special(&expr.op, own)?;
                        self.compare(tensor, |expected| *expected == node)
                    }
                    op => self.compare(tensor, |expected| expected.is_plain(op, own)),
                };
            }
            if let History::Kept(kept) = &*history {
                let buffer = kept.buffer.clone();
                drop(history);
                let id = self.leaf(tensor, buffer)?;
                if !tensor.is_tracked() {
                    self.matched.kept_leaves.push((id, tensor.clone()));
                }
                return Ok(id);
            }
        }
        // A value set by another thread after the first look is found now.
        let buffer = tensor.value().ok_or(Stop::Differs)?.clone();
        self.leaf(tensor, buffer)
    }

    fn leaf(&mut self, tensor: &Tensor, buffer: Buffer) -> Result<NodeId, Stop> {
        let slot = self.matched.bindings.leaves.len() as u32;
        self.matched.bindings.leaves.push(buffer);
        self.compare(tensor, |expected| *expected == Node::Leaf { slot })
    }

    /// The node of an op that has an entry in a table.
    fn special(&mut self, op: &Op, [x, y, _]: [NodeId; 3]) -> Result<Node, Stop> {
        let expected = self.order.get(self.at).map(|&id| self.graph.node(id));
        match (op, expected) {
            (Op::Const { bits, .. }, _) => {
                self.matched.bindings.arguments.push(*bits);
                Ok(Node::Argument { slot: self.matched.bindings.arguments.len() as u32 - 1 })
            }
            (Op::Pad(padding), Some(Node::Pad { list, .. }))
                if self.places.matches(self.graph, list, padding.iter().copied()) =>
            {
                Ok(Node::Pad { x, list })
            }
            (Op::Shrink(starts), Some(Node::Shrink { list, .. }))
                if self.places.matches(self.graph, list, starts.iter().map(|&x| (x, 0))) =>
            {
                Ok(Node::Shrink { x, list })
            }
            (Op::Kernel(call), Some(Node::Kernel { call: expected, .. }))
                if self.graph.calls[expected as usize] == *call =>
            {
                Ok(Node::Kernel { n: call.sources(), call: expected, x, y })
            }
            _ => Err(Stop::Differs),
        }
    }

    /// The next number, if the node that has it is the tensor's.
    #[inline]
    fn compare(
        &mut self,
        tensor: &Tensor,
        is_its: impl FnOnce(&Node) -> bool,
    ) -> Result<NodeId, Stop> {
        let id = *self.order.get(self.at).ok_or(Stop::Differs)?;
        let same = is_its(&self.graph.nodes[id.idx()])
            && self.graph.dtype(id) == tensor.dtype()
            && self.graph.shape(id).same(tensor.shape());
        if !same {
            return Err(Stop::Differs);
        }
        self.at += 1;
        if id.0 == self.seen {
            self.seen += 1;
            self.graph.origins.compare(id, &self.graph.nodes[id.idx()], tensor);
        }
        Ok(id)
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture_with_order;
    use super::*;
    use crate::testing::device;
    use crate::{DType, Device};
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static VISIT: AtomicU64 = AtomicU64::new(1);

    /// What following gives, which is what capturing gives if the graphs are equal and nothing if
    /// they are not.
    fn check(known: &[&Tensor], again: &[&Tensor]) -> Option<Bindings> {
        let (graph, _, order) = capture_with_order(known, 0);
        let found = match_capture(again, &graph, &order, VISIT.fetch_add(1, Relaxed));
        let (other, bindings, other_trail) = capture_with_order(again, 0);
        assert_eq!(found.is_some(), other == graph && other_trail == order);
        if let Some(found) = &found {
            assert_eq!(keys(found), keys(&bindings));
            assert_eq!(found.arguments, bindings.arguments);
        }
        found
    }

    fn keys(bindings: &Bindings) -> Vec<usize> {
        bindings.leaves.iter().map(|leaf| leaf.key()).collect()
    }

    fn data(n: usize, device: &Device) -> Tensor {
        Tensor::from_slice(&vec![1f32; n], [n], device).unwrap()
    }

    /// Every kind of node that has a table beside it, sharing, an alias and an argument.
    fn step(x: &Tensor, rate: f64, start: usize) -> [Tensor; 2] {
        let p = x.tracked();
        let y = p.reshape([2, 3]).unwrap().softmax(1).unwrap();
        let z = Tensor::cat(&[&y, &y.exp()], 0).unwrap();
        let loss = z.slice(0, start..start + 2).unwrap().matmul(&y.t()).unwrap().sum(..).unwrap();
        let grad = loss.grad(&[&p]).unwrap().remove(0).unwrap();
        [loss, p.detach().sub(grad.mul(rate).unwrap()).unwrap()]
    }

    #[test]
    fn equal_steps_are_followed_with_their_own_values() {
        let d = device();
        let (x, y) = (data(6, &d), data(6, &d));
        let (a, b) = (step(&x, 0.5, 1), step(&y, 0.25, 1));
        let found = check(&a.each_ref(), &b.each_ref()).expect("the steps are equal");
        assert_eq!(found.arguments, [u64::from(0.25f32.to_bits())]);
        assert!(check(&a.each_ref(), &step(&x, 0.5, 2).each_ref()).is_none(), "another slice");
        let [loss, next] = &b;
        assert!(check(&a.each_ref(), &[next, loss]).is_none(), "another order");
        assert!(check(&a.each_ref(), &[loss]).is_none(), "fewer outputs");
        assert!(check(&[&a[0]], &b.each_ref()).is_none(), "more outputs");
    }

    #[test]
    fn whatever_differs_is_found() {
        let d = device();
        let (x, y) = (data(6, &d), data(6, &d));
        let known = x.add(&y).unwrap().exp();
        let others = [
            x.sub(&y).unwrap().exp(),
            x.add(&y).unwrap().log(),
            x.add(&x).unwrap().exp(),
            x.add(y.neg()).unwrap().exp(),
            x.cast(DType::F64).add(&y).unwrap().exp(),
            x.reshape([2, 3]).unwrap().add(y.reshape([2, 3]).unwrap()).unwrap().exp(),
            x.add(1.0).unwrap().exp(),
            x.add(x.like(1.0)).unwrap().exp(),
            x.clone(),
        ];
        assert!(check(&[&known], &[&y.add(&x).unwrap().exp()]).is_some());
        others.iter().for_each(|other| assert!(check(&[&known], &[other]).is_none()));
        let literal = |value: f64| x.add(x.like(value)).unwrap();
        assert!(check(&[&literal(1.0)], &[&literal(2.0)]).is_none(), "another literal");
        let axis = |axis: isize| x.reshape([6, 1]).unwrap().sum(axis).unwrap();
        assert!(check(&[&axis(0)], &[&axis(1)]).is_none(), "another axis");
    }

    #[test]
    fn a_value_that_is_there_is_a_leaf() {
        let d = device();
        let x = data(6, &d);
        let twice = || {
            let half = x.exp();
            (half.clone(), half.neg())
        };
        let (known, (half, again)) = (twice().1, twice());
        half.realize().unwrap();
        assert!(check(&[&known], &[&again]).is_none());
    }

    #[test]
    fn long_chains_are_followed_without_recursion() {
        let d = device();
        let (x, y) = (data(6, &d), data(6, &d));
        let long = |x: &Tensor| {
            let next = |z: Tensor, i: usize| {
                if i.is_multiple_of(3) { Ok(z.neg()) } else { z.exp().add(z.add(x)?) }
            };
            (0..20_000).try_fold(x.clone(), next).unwrap()
        };
        let (graph, _, order) = capture_with_order(&[&long(&x)], 0);
        assert!(match_capture(&[&long(&y)], &graph, &order, VISIT.fetch_add(1, Relaxed)).is_some());
        let other = long(&y).exp();
        assert!(match_capture(&[&other], &graph, &order, VISIT.fetch_add(1, Relaxed)).is_none());
    }

    #[test]
    fn threads_that_follow_the_same_tensors_find_the_same_or_nothing() {
        let d = device();
        let (x, y) = (data(6, &d), data(6, &d));
        let (known, again) = (step(&x, 0.5, 1), step(&y, 0.25, 1));
        let (graph, _, order) = capture_with_order(&known.each_ref(), 0);
        let (_, right, _) = capture_with_order(&again.each_ref(), 0);
        let run = || {
            let visit = || VISIT.fetch_add(1, Relaxed);
            let find = |_| match_capture(&again.each_ref(), &graph, &order, visit());
            (0..2000).filter_map(find).all(|found| keys(&found) == keys(&right))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            assert!(threads.into_iter().all(|thread| thread.join().unwrap()));
        });
    }
}
