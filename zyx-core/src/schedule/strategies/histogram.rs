//! Sums of integers by where they go, row by row: a scatter that counts.
//!
//! Where a row has few places and many updates, and there are rows enough for a device of many
//! threads, a group makes all updates of a row in shared storage and then writes the row once.
//! Integers can be added in any order, so its threads do so atomically and the result is that of
//! [`scatter`](super::scatter) on every device. Each place has several counters, of which
//! neighbouring threads take different ones: in sorted data they have the same place.

use super::Nest;
use crate::affine::AtomId;
use crate::dtype::DType;
use crate::graph::{Node, NodeId};
use crate::ir::{Access, BarrierScope, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Lt, Mul, Rem};
use crate::scalar::Scalar;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowering, name};
use crate::schedule::pull::TupleId;

/// Threads of a group, and updates of a thread that are under way together.
const THREADS: i64 = 256;
const TOGETHER: i64 = 8;
/// Counters of a place.
const COPIES: i64 = 4;
/// Fewest updates of a row and most places of it.
const UPDATES: i64 = 2 * THREADS;
const PLACES: i64 = 1024;

/// The kernel of a scatter that groups count, if it is one.
pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group, caps) = (*graph, &mut **partition, *group, *caps);
    let root = this.roots[0].clone();
    let Node::Scatter { axis, op: Some(Add), base, index, x, .. } = graph.node(root.node) else {
        return None;
    };
    let (dtype, shape) = (graph.dtype(root.node), graph.shape(root.node).clone());
    let (last, updates) = (shape.dims().len() - 1, graph.shape(x).clone());
    let (places, n) = (shape[last] as i64, updates[last] as i64);
    let rows: i64 = shape[..last].iter().product::<usize>() as i64;
    let counts = !caps.has_few_threads()
        && matches!(dtype, DType::I32 | DType::U32)
        && caps.has_atomic(Add, dtype)
        && caps.max_local as i64 >= THREADS
        && caps.shared_bytes as i64 >= 4 * COPIES * places;
    let worth = n >= UPDATES && places <= PLACES && rows >= caps.multiprocessors().max(2) as i64;
    if !counts || !worth || axis as usize != last || shape[..last] != updates[..last] {
        return None;
    }
    let (axes, tuple) = partition.indices.axes(&updates);
    let (targets, place) = partition.indices.axes(&shape);
    let [along, out] =
        [tuple, place].map(|t| partition.indices.get(t)[last].terms.first().copied());
    let (along, out) = (along?.0, out?.0);
    let all: Vec<_> = axes.iter().chain(&targets).copied().collect();
    let roots = [(x, tuple), (index, tuple), (base, place)];
    let found = collect_roots(graph, partition, group, &roots, &[], &all);
    let mut l = Lowering::new(graph, partition, format!("{}_count", name(graph, this)));
    l.declare(found, &[(root.node, Access::Write)]);

    let turns = (n + THREADS * TOGETHER - 1) / (THREADS * TOGETHER);
    let [rows, threads, turns] = [rows, THREADS, turns].map(|n| l.b.index(n));
    let row = l.b.open_loop(LoopKind::Group, 0, rows);
    for (list, own) in [(&axes, along), (&targets, out)] {
        let outer: Vec<_> = list.iter().copied().filter(|&axis| axis != own).collect();
        l.count_digits(&outer, row);
    }
    let counters = l.b.alloc(Space::Shared, Type::scalar(dtype), (COPIES * places) as u32);
    let thread = l.b.open_loop(LoopKind::Local, 0, threads);
    let mut count = Count { l: &mut l, thread, counters, places };
    count.start(dtype);
    count.meet();
    let turn = count.l.b.open_loop(LoopKind::Serial, 0, turns);
    count.updates(turn, (index, x, tuple), (along, n));
    count.l.b.close();
    count.meet();
    count.finish(root.node, base, (place, out));
    l.b.close();
    l.b.close();
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

struct Count<'l, 'a> {
    l: &'l mut Lowering<'a>,
    thread: Value,
    counters: Value,
    places: i64,
}

impl Count<'_, '_> {
    fn op(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        let by = self.l.b.index(by);
        self.l.b.binary(op, x, by)
    }

    fn meet(&mut self) {
        self.l.b.barrier(BarrierScope::Shared);
    }

    /// The thread's numbers below `n`, each with the condition that it is one.
    fn own(&mut self, n: i64) -> Vec<(Value, Option<Value>)> {
        let turn = |i: i64| {
            let number = self.op(Add, self.thread, i * THREADS);
            let inside = ((i + 1) * THREADS > n).then(|| self.op(Lt, number, n));
            (number, inside)
        };
        (0..(n + THREADS - 1) / THREADS).map(turn).collect()
    }

    fn guarded(&mut self, index: Value, cond: Option<Value>) -> Value {
        cond.map_or(index, |cond| self.l.b.guard(index, cond))
    }

    fn start(&mut self, dtype: DType) {
        let nothing = self.l.b.constant(Scalar::from_i64(dtype, 0));
        for (number, inside) in self.own(COPIES * self.places) {
            let at = self.guarded(number, inside);
            self.l.b.store(self.counters, at, nothing);
        }
    }

    /// The updates of a turn, whose loads do not wait for one another.
    fn updates(
        &mut self,
        turn: Value,
        (index, x, tuple): (NodeId, NodeId, TupleId),
        (along, n): (AtomId, i64),
    ) {
        let first = self.op(Mul, turn, THREADS * TOGETHER);
        let first = self.l.b.binary(Add, first, self.thread);
        let mut list = Vec::new();
        for i in 0..TOGETHER {
            let number = self.op(Add, first, i * THREADS);
            let inside = (n % (THREADS * TOGETHER) != 0).then(|| self.op(Lt, number, n));
            self.l.open_scope();
            self.l.counters.insert(along, number);
            let picked = self.l.value(index, tuple, inside);
            let element = self.l.value(x, tuple, inside);
            self.l.close_scope();
            list.push((picked, element, inside));
        }
        let copy = self.op(Rem, self.thread, COPIES);
        for (picked, element, inside) in list {
            let valid = self.l.in_range(picked, self.places as usize);
            let valid = match inside {
                Some(inside) => self.l.b.binary(And, valid, inside),
                None => valid,
            };
            let picked = self.l.b.cast(DType::I64, picked);
            let at = self.op(Mul, picked, COPIES);
            let at = self.l.b.binary(Add, at, copy);
            let at = self.l.b.guard(at, valid);
            self.l.b.atomic(Add, self.counters, at, element);
        }
    }

    fn finish(&mut self, root: NodeId, base: NodeId, (place, out): (TupleId, AtomId)) {
        let buffer = self.l.param(root);
        for (number, inside) in self.own(self.places) {
            self.l.open_scope();
            self.l.counters.insert(out, number);
            let mut sum = self.l.value(base, place, inside);
            let first = self.op(Mul, number, COPIES);
            for copy in 0..COPIES {
                let at = self.op(Add, first, copy);
                let at = self.guarded(at, inside);
                let part = self.l.b.load(self.counters, at);
                sum = self.l.b.binary(Add, sum, part);
            }
            let flat = self.l.indices.flat(self.l.nodes.graph, root, place);
            let at = self.l.index(&flat);
            self.l.close_scope();
            let at = self.guarded(at, inside);
            self.l.b.store(buffer, at, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::dtype::DTypeSet;
    use crate::ir::Op;
    use crate::reference::Reference;
    use crate::runtime::{Optimizer, Runtime};
    use crate::tensor::Tensor;
    use crate::testing::{evaluate, kernels};

    /// Updates out of range count nowhere; the base counts; rows need not fill the last turn.
    #[test]
    fn groups_count_as_threads_do() {
        for (n, places, optimizer) in [(2048, 256, Optimizer::Off), (700, 33, Optimizer::Default)] {
            let mut reference = Reference::default();
            reference.caps.simt = true;
            reference.caps.max_local = 256;
            reference.caps.shared_bytes = 16 << 10;
            reference.caps.threads = 1 << 13;
            reference.caps.atomics = DTypeSet::ALL;
            reference.caps.atomic_add = DTypeSet::ALL;
            let runtime = Runtime::default();
            runtime.register(reference);
            let d = runtime.device("reference").unwrap();
            d.set_optimizer(optimizer);
            let rows = 6;
            let base: Vec<i32> = (0..rows * places).map(|i| i as i32 % 7 - 3).collect();
            let base = Tensor::from_slice(&base, [2, 3, places], &d).unwrap();
            let index: Vec<i64> =
                (0..rows * n).map(|i| (i * 7919 % (places + 5)) as i64 - 2).collect();
            let index = Tensor::from_slice(&index, [2, 3, n], &d).unwrap().unchecked_indices();
            let x: Vec<i32> = (0..rows * n).map(|i| i as i32 % 11 - 4).collect();
            let x = Tensor::from_slice(&x, [2, 3, n], &d).unwrap();
            let y = base.scatter_add(2, &index, &x).unwrap();
            let list = kernels(&[&y]);
            let atomic = |op: &Op| matches!(op, Op::Atomic { .. });
            assert_eq!(list.iter().filter(|k| k.ops().iter().any(atomic)).count(), 1);
            let expected: Vec<i32> =
                evaluate(&[&y]).unwrap()[0].iter().map(|x| x.to_i64() as i32).collect();
            assert_eq!(y.to_vec::<i32>().unwrap(), expected, "{n} updates of {places} places");
        }
    }
}
