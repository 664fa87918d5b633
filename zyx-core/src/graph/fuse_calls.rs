//! Elementwise operations around calls of user kernels, which become part of their loads and stores.

use super::{Graph, KernelCall, Node, NodeId};
use crate::dtype::DType;
use crate::hal::Caps;
use crate::ir::Builder;
use crate::lang::{Function, Further, Recorded, Role};
use crate::scalar::Scalar;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// Most operations of a function.
const MAX_OPERATIONS: usize = 16;
/// Most that a function of a load costs, in additions: a kernel may load an element several times, and a load that a cache
/// serves costs about as much.
const CHEAP: f32 = 4.0;

/// The graph in which kernels do what elementwise operations of their inputs and outputs did; `None` if there are none.
pub(crate) fn fuse_calls(graph: &Graph, caps: &Caps) -> Option<Graph> {
    graph.ids().find(|&id| matches!(graph.node(id), Node::Kernel { .. }))?;
    let mut users = vec![SmallVec::<[NodeId; 2]>::new(); graph.len()];
    for id in graph.ids() {
        graph.node(id).sources().for_each(|x| users[x.idx()].push(id));
    }
    let around = Around { graph, users, caps };
    let mut fused: FxHashMap<NodeId, Fused> = FxHashMap::default();
    // Operations that are part of a call: between two calls they are of the first.
    let mut gone: FxHashSet<NodeId> = FxHashSet::default();
    for id in graph.ids() {
        if let Some(found) = around.fused(id, &gone) {
            gone.extend(&found.gone);
            fused.insert(id, found);
        }
    }
    if fused.is_empty() {
        return None;
    }
    let results: FxHashMap<NodeId, NodeId> =
        fused.iter().map(|(&call, x)| (x.result, call)).collect();
    let mut new = graph.without_nodes();
    let mut map: Vec<Option<NodeId>> = vec![None; graph.len()];
    let to = |map: &[Option<NodeId>], x: NodeId| {
        map[x.idx()].expect("invariant: sources come before what they are sources of")
    };
    for id in graph.ids() {
        // A call stands where its result was: behind all that the operations are of.
        let node = if let Some(&call) = results.get(&id) {
            new.origins.hand_on(&graph.origins, call);
            let Fused { call, inputs, .. } = &fused[&call];
            let inputs: Vec<NodeId> = inputs.iter().map(|&x| to(&map, x)).collect();
            new.call(call.clone(), &inputs)
        } else if fused.contains_key(&id) || gone.contains(&id) || around.is_old_list(id, &map) {
            continue;
        } else {
            new.origins.hand_on(&graph.origins, id);
            // Another output of the same launch: the flag of loops that a driver ended.
            let same = fused.iter().find(|x| around.is_same_call(id, *x.0)).map(|x| x.1);
            match (same, graph.call_of(id)) {
                (Some(Fused { call, inputs, .. }), Some(own)) => {
                    let inputs: Vec<NodeId> = inputs.iter().map(|&x| to(&map, x)).collect();
                    new.call(KernelCall { output: own.output, ..call.clone() }, &inputs)
                }
                _ => graph.node(id).map(|x| to(&map, x)),
            }
        };
        map[id.idx()] = Some(new.push(node, graph.dtype(id), graph.shape(id).clone()));
    }
    new.outputs = graph.outputs.iter().map(|&id| to(&map, id)).collect();
    Some(new)
}

/// A call with functions in its loads and stores.
struct Fused {
    call: KernelCall,
    inputs: Vec<NodeId>,
    result: NodeId,
    /// Operations that are part of it.
    gone: Vec<NodeId>,
}

impl Fused {
    fn take(&mut self, region: Region) {
        self.call.arguments.extend(region.arguments);
        self.inputs.extend(region.arrays);
        self.gone.extend(region.operations);
    }
}

/// Operations that are a function of a node, literals, arguments of the graph, and elements of other nodes.
struct Region {
    of: NodeId,
    operations: Vec<NodeId>,
    function: Function,
    arguments: Vec<u32>,
    arrays: Vec<NodeId>,
}

struct Around<'g> {
    graph: &'g Graph,
    users: Vec<SmallVec<[NodeId; 2]>>,
    caps: &'g Caps,
}

impl Around<'_> {
    /// A call with what is around it, but for operations that are gone.
    fn fused(&self, id: NodeId, gone: &FxHashSet<NodeId>) -> Option<Fused> {
        let call = self.graph.call_of(id)?;
        let inputs = self.graph.inputs_of_kernel(id);
        let results = call.arguments(false).enumerate();
        let results = results.filter(|(_, x)| !matches!(x.1.role, Role::Scratch | Role::Cut));
        let [(output, (slot, _))] = results.collect::<Vec<_>>()[..] else { return None };
        if call.raw.is_some() || call.output != output {
            return None;
        }
        let own = call.arguments(true).map(|x| x.0).collect::<Vec<_>>();
        let mut new = Fused { call: call.clone(), inputs, result: id, gone: Vec::new() };
        let mut recorded = (*call.recorded).clone();
        let fits = |region: &Region, recorded: &Recorded| {
            recorded.arguments().len() + region.arrays.len() <= self.caps.max_buffers
                && region.arrays.iter().chain([&region.of]).all(|&x| self.can_be_bound(x))
                && region.operations.last().is_some_and(|&x| self.can_be_bound(x))
                && !region.operations.iter().chain(&region.arrays).any(|id| gone.contains(id))
        };
        if let Some(region) = self.consumers(id).filter(|region| fits(region, &recorded))
            && let Some(with) = recorded.with_stores(slot as u16, &region.function)
        {
            recorded = with;
            new.result = *region.operations.last()?;
            new.take(region);
        }
        for (number, slot) in own.into_iter().enumerate() {
            let region = self.producers(new.inputs[number], id);
            if let Some(region) = region.filter(|region| fits(region, &recorded))
                && let Some(with) = recorded.with_loads(slot as u16, &region.function)
            {
                recorded = with;
                new.inputs[number] = region.of;
                new.take(region);
            }
        }
        // A value that is given to several arguments, one of which cannot compute it, is still needed.
        if new.gone.is_empty() || new.inputs.iter().any(|x| new.gone.contains(x)) {
            return None;
        }
        new.call.recorded = Arc::new(recorded);
        Some(new)
    }

    /// The literal, or the argument of the graph, that all elements of a node are.
    fn literal(&self, id: NodeId) -> Option<NodeId> {
        match self.graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } => Some(id),
            Node::Expand { x } | Node::Reshape { x } => self.literal(x),
            _ => None,
        }
    }

    /// The array that a node repeats along some axes, or is, and its own axes.
    fn array(&self, id: NodeId) -> Option<(NodeId, Vec<bool>)> {
        let graph = self.graph;
        let x = match graph.node(id) {
            Node::Expand { x } => x,
            _ => id,
        };
        let (own, all) = (graph.shape(x), graph.shape(id));
        let is_stored = |mut x: NodeId| {
            while let Node::Reshape { x: of } = graph.node(x) {
                x = of;
            }
            matches!(graph.node(x), Node::Leaf { .. } | Node::Kernel { .. })
        };
        // A stored array costs nothing more, nor does a small one.
        let fits = graph.dtype(x) != DType::Bool
            && own.len() == all.len()
            && (own.numel() < all.numel() || is_stored(x));
        fits.then(|| (x, own.iter().zip(all.iter()).map(|(own, all)| own == all).collect()))
    }

    /// Whether one argument may hold the elements of a node.
    fn can_be_bound(&self, id: NodeId) -> bool {
        let (n, size) = (self.graph.shape(id).numel(), self.graph.dtype(id).size());
        n.saturating_mul(size) as u64 <= self.caps.max_binding
    }

    /// Whether a node is a list of inputs that a call had before.
    fn is_old_list(&self, id: NodeId, map: &[Option<NodeId>]) -> bool {
        let node = self.graph.node(id);
        matches!(node, Node::Operands { .. }) && node.sources().any(|x| map[x.idx()].is_none())
    }

    fn is_output(&self, id: NodeId) -> bool {
        self.graph.outputs.contains(&id)
    }

    /// The operations that follow from a node and that it is for alone, as a function, and the last of them.
    fn consumers(&self, from: NodeId) -> Option<Region> {
        let graph = self.graph;
        let mut region = vec![from];
        let mut best = 0;
        // Nodes that depend on the call. Other outputs of the launch may be used by its operands: then it gets none.
        let mut later: FxHashSet<NodeId> = FxHashSet::from_iter([from]);
        let is_alone = !graph.ids().any(|id| id != from && self.is_same_call(id, from));
        for id in (from.0 + 1..graph.len() as u32).map(NodeId) {
            let node = graph.node(id);
            if node.sources().any(|x| later.contains(&x)) {
                later.insert(id);
            }
            let of_region = |x: NodeId| region.contains(&x);
            let is_further = |x: NodeId| {
                self.literal(x).is_some()
                    || is_alone && !later.contains(&x) && self.array(x).is_some()
            };
            let fits = node.is_elementwise()
                && graph.shape(id) == graph.shape(from)
                && node.sources().any(of_region)
                && node.sources().all(|x| of_region(x) || is_further(x));
            if !fits || region.len() > MAX_OPERATIONS {
                continue;
            }
            region.push(id);
            let (last, inner) = region.split_last()?;
            let is_inner = |&x: &NodeId| {
                !self.is_output(x) && self.users[x.idx()].iter().all(|user| region.contains(user))
            };
            if inner.iter().all(is_inner) && graph.dtype(*last) != DType::Bool {
                best = region.len() - 1;
            }
        }
        self.function(from, &region[1..=best])
    }

    /// The operations that an input of a call is computed by for this call alone, as a function, and what it is a function of.
    fn producers(&self, input: NodeId, call: NodeId) -> Option<Region> {
        let graph = self.graph;
        let mut region: Vec<NodeId> = Vec::new();
        let mut bases: Vec<NodeId> = Vec::new();
        let mut cost = 0.0;
        for id in (0..=input.0).rev().map(NodeId) {
            let users = &self.users[id.idx()];
            let is_asked = id == input || users.iter().any(|user| region.contains(user));
            if !is_asked || self.literal(id).is_some() {
                continue;
            }
            let own = |&user: &NodeId| region.contains(&user) || self.is_for(user, call);
            let fits = graph.node(id).is_elementwise()
                && graph.shape(id) == graph.shape(input)
                && !self.is_output(id)
                && users.iter().all(own);
            if !fits {
                bases.push(id);
                continue;
            }
            cost += match graph.node(id) {
                Node::Unary { op, .. } => op.weight(),
                Node::Binary { op, .. } => op.weight(),
                _ => 1.0,
            };
            region.push(id);
        }
        region.reverse();
        // One array is loaded as the argument was; of others a cache has what is repeated.
        let is_repeated = |&id: &NodeId| {
            self.array(id).is_some_and(|(x, _)| graph.shape(x).numel() < graph.shape(id).numel())
        };
        bases.retain(|id| !is_repeated(id));
        let [base] = bases[..] else { return None };
        let usual = graph.dtype(base) != DType::Bool && graph.dtype(input) != DType::Bool;
        if cost > CHEAP || !usual || graph.shape(base) != graph.shape(input) {
            return None;
        }
        self.function(base, &region)
    }

    /// Whether a node is an output of a call, or a list of its inputs alone.
    fn is_for(&self, id: NodeId, call: NodeId) -> bool {
        let is_list = matches!(self.graph.node(id), Node::Operands { .. });
        self.is_same_call(id, call)
            || is_list && self.users[id.idx()].iter().all(|&user| self.is_for(user, call))
    }

    fn is_same_call(&self, id: NodeId, other: NodeId) -> bool {
        let of = |id: NodeId| {
            let (Node::Kernel { x, y, .. }, call) = (self.graph.node(id), self.graph.call_of(id)?)
            else {
                return None;
            };
            Some(((x, y, Arc::as_ptr(&call.recorded), call.scalars.clone()), call.output))
        };
        // The same output of another node is that of another launch.
        let is_other_output =
            |(own, output)| of(other).is_some_and(|x| x.0 == own && x.1 != output);
        id == other || of(id).is_some_and(is_other_output)
    }

    /// Operations as a function of a node, arguments of the graph, and elements of arrays.
    fn function(&self, from: NodeId, region: &[NodeId]) -> Option<Region> {
        let graph = self.graph;
        let mut b = Builder::new("function");
        let (mut arguments, mut arrays, mut further) = (Vec::new(), Vec::new(), Vec::new());
        let x = b.var(graph.dtype(from), i64::MIN, i64::MAX);
        let mut known = FxHashMap::from_iter([(from, x)]);
        for &id in region {
            let node = graph.node(id);
            let mut operands = SmallVec::<[_; 3]>::new();
            for source in node.sources() {
                if let Some(&known) = known.get(&source) {
                    operands.push(known);
                    continue;
                }
                let dtype = graph.dtype(source);
                let value = match self.literal(source).map(|literal| graph.node(literal)) {
                    Some(Node::Const { bits }) => b.constant(Scalar::from_bits(dtype, bits)),
                    Some(Node::Argument { slot }) => {
                        arguments.push(slot);
                        further.push(Further::Scalar);
                        b.var(dtype, i64::MIN, i64::MAX)
                    }
                    _ => {
                        let (array, axes) = self.array(source)?;
                        arrays.push(array);
                        further.push(Further::Element(axes));
                        b.var(dtype, i64::MIN, i64::MAX)
                    }
                };
                known.insert(source, value);
                operands.push(value);
            }
            let value = match (node, &operands[..]) {
                (Node::Unary { op, .. }, &[x]) => b.unary(op, x),
                (Node::Binary { op, .. }, &[x, y]) => b.binary(op, x, y),
                (Node::Ternary { op, .. }, &[x, y, z]) => b.ternary(op, x, y, z),
                (Node::Cast { .. }, &[x]) => b.cast(graph.dtype(id), x),
                _ => return None,
            };
            known.insert(id, value);
        }
        let result = *known.get(region.last()?)?;
        let function = Function { kernel: b.finish(), result, further };
        let operations = region.to_vec();
        Some(Region { of: from, operations, function, arguments, arrays })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DTypeSet;
    use crate::lang::{Lang, Setting, record};
    use crate::ops::{BinaryOp, UnaryOp};
    use crate::shape::Shape;

    fn call(inputs: &[DType], caps: Caps, n: i64, write: fn(&Lang)) -> KernelCall {
        let setting =
            Setting { caps, inputs: inputs.to_vec(), aligned: true, ..Setting::default() };
        let recorded = record("kernel", &setting, write).expect("it is right");
        let size = |_| Some(n);
        let scalars = recorded.scalars().iter().map(|x| x.eval(&size).expect("a size"));
        let scalars = scalars.collect();
        KernelCall {
            recorded: Arc::new(recorded),
            scalars,
            arguments: Vec::new(),
            output: 0,
            raw: None,
        }
    }

    /// Whether inputs of each call have the dtypes that its kernel loads.
    fn loads_its_inputs(graph: &Graph) -> bool {
        graph.ids().all(|id| {
            let Some(call) = graph.call_of(id) else { return true };
            let inputs = graph.inputs_of_kernel(id).into_iter().map(|x| graph.dtype(x));
            inputs.eq(call.arguments(true).map(|(_, argument)| argument.dtype))
        })
    }

    #[test]
    fn a_value_that_one_argument_of_several_cannot_compute_stays() {
        let mut caps = Caps::default();
        (caps.simt, caps.max_local, caps.subgroup) = (true, 128, (32, 32));
        (caps.threads, caps.mma) = (1 << 16, DTypeSet::of(&[DType::F16]));
        // One argument is loaded by single elements, the other by vectors of halves.
        let call = call(&[DType::F16; 2], caps, 64, |k| {
            let n = k.size("n");
            let (x, w) = (k.input("x", [n, n]), k.input("w", [n, n]));
            let y = k.output("y", [n, n], DType::F16);
            k.groups([n.div_ceil(64)], 128, |g, [part]| {
                let sums = g.matrix([64, 64], DType::F32);
                let top = part * 64;
                sums.add_product(
                    n,
                    |i, step| w.at_or([top + i, step], 0.0),
                    |step, j| w.at_or([step, j], 0.0),
                );
                sums.each([], |[i, j], sum, []| {
                    let (at, inside) = ([top + i, j], (top + i).lt(n) & j.lt(n));
                    y.set_if(inside, at, sum.cast(DType::F16) + x.at_if(inside, at, 0.0));
                });
            });
        });
        let shape = Shape::from([64, 64]);
        let mut graph = Graph::default();
        let leaf = graph.push(Node::Leaf { slot: 0 }, DType::F32, shape.clone());
        let half = graph.push(Node::Cast { x: leaf }, DType::F16, shape.clone());
        let node = graph.call(call, &[half, half]);
        let y = graph.push(node, DType::F16, shape);
        graph.outputs.push(y);
        let fused = fuse_calls(&graph, &Caps::default());
        assert!(fused.is_none_or(|fused| loads_its_inputs(&fused)));
    }

    #[test]
    fn equal_calls_do_not_take_over_from_one_another() {
        let call = call(&[DType::F32], Caps::default(), 8, |k| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
            k.each(n, |i| y.set(i, x.at(i) * x.at(i)));
        });
        let shape = Shape::from([8]);
        let mut graph = Graph::default();
        let leaf = graph.push(Node::Leaf { slot: 0 }, DType::F32, shape.clone());
        let x = graph.push(Node::Unary { op: UnaryOp::Neg, x: leaf }, DType::F32, shape.clone());
        let [first, second] = [(); 2].map(|()| {
            let node = graph.call(call.clone(), &[x]);
            graph.push(node, DType::F32, shape.clone())
        });
        let one = graph.push(Node::Const { bits: 0 }, DType::F32, shape.clone());
        let max = Node::Binary { op: BinaryOp::Max, x: first, y: one };
        let max = graph.push(max, DType::F32, shape);
        graph.outputs.extend([max, second]);
        let fused =
            fuse_calls(&graph, &Caps::default()).expect("the maximum is part of the first call");
        let [first, second] = [0, 1].map(|i| fused.outputs[i]);
        assert_ne!(first, second);
        // The second call is as it was, and its input is the negated leaf.
        assert_eq!(fused.call_of(second), Some(&call));
        let [input] = fused.inputs_of_kernel(second)[..] else { panic!("it has one input") };
        assert!(matches!(fused.node(input), Node::Unary { op: UnaryOp::Neg, .. }));
    }
}
