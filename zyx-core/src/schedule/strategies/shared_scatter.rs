//! A scatter whose places lie in shared memory while they are updated.
//!
//! Each thread has a row: it copies the row's places to shared memory, makes the row's updates there in
//! their order, and writes the places once. Where a row has more places than there is room for, a
//! thread has a part of them and goes through all updates of the row for those that are its own. An update in order waits for the one before it, so it
//! matters that shared memory answers twenty times as fast as memory does; what an update needs
//! from memory is loaded for several updates at once. Results are those of
//! [`scatter`](super::scatter).

use super::Nest;
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, UpdateOrder};
use crate::hal::Caps;
use crate::ir::{Access, LoopKind, Space, Type};
use crate::ops::BinaryOp::{Add, Div, Lt, Min, Mul, Rem, Sub};
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowering, name};

/// Threads of a group, the most first.
const THREADS: [i64; 3] = [32, 16, 8];
/// Updates of a thread whose loads are under way together.
const TOGETHER: i64 = 16;
/// Fewest updates of a place, on average, and fewest of a row.
const SHARE: i64 = 4;
const UPDATES: i64 = 64;
/// Groups that have room on a multiprocessor where each takes all of its shared memory, and most of them.
const GROUPS: usize = 4;
const MOST_GROUPS: usize = 32;
/// Most parts of a row: each reads all of its updates.
const PARTS: i64 = 8;

/// What a group has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// Rows, a thread for each.
    threads: i64,
    /// Parts of the places of a row, and places of a part.
    parts: i64,
    places: i64,
}

impl Share {
    /// How often all multiprocessors are full of groups until all groups had their turn.
    pub(crate) fn turns(self, caps: &Caps, dtype: DType, rows: usize) -> f64 {
        let groups = rows as f64 / self.threads as f64 * self.parts as f64;
        let bytes = (self.threads * self.places) as usize * dtype.size();
        let resident = GROUPS * caps.shared_bytes / bytes.max(1);
        let resident = resident.clamp(1, MOST_GROUPS) * caps.multiprocessors().max(1);
        (groups / resident as f64).max(1.0)
    }
}

/// What a group has, if parts of rows of so many places and updates fit in shared memory and there
/// are rows enough for the device.
pub(crate) fn share(
    caps: &Caps,
    dtype: DType,
    [rows, places, updates]: [usize; 3],
) -> Option<Share> {
    let [rows, places, updates] = [rows as i64, places as i64, updates as i64];
    let most = caps.shared_bytes as i64 / dtype.size() as i64;
    let worth = !caps.has_few_threads()
        && updates >= UPDATES
        && updates >= places / SHARE
        && places <= most * PARTS;
    if !worth {
        return None;
    }
    let mut shares = (1..=PARTS).flat_map(|parts| {
        THREADS.map(|threads| Share { threads, parts, places: (places + parts - 1) / parts })
    });
    shares.find(|&Share { threads, parts, places: own }| {
        rows >= threads
            && (rows + threads - 1) / threads
                >= (caps.multiprocessors() as i64 / 2 + parts - 1) / parts
            && (parts - 1) * own < places
            && threads * own <= most
            && threads <= caps.max_local as i64
    })
}

/// Whether positions are those of a vector of so many elements, the same in all rows: then neighbours
/// update neighbours, and memory is fast enough.
fn is_vector(graph: &Graph, mut index: NodeId, n: usize) -> bool {
    loop {
        if graph.shape(index).numel() <= n {
            return true;
        }
        match graph.node(index) {
            Node::Expand { x } | Node::Reshape { x } | Node::Cast { x } => index = x,
            Node::Permute { x, .. } => index = x,
            _ => return false,
        }
    }
}

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group, caps) = (*graph, &mut **partition, *group, *caps);
    let root = this.roots[0].clone();
    let Node::Scatter { axis, op, order: UpdateOrder::Given, base, index, x } =
        graph.node(root.node)
    else {
        return None;
    };
    let dtype = graph.dtype(root.node);
    if op.is_some_and(|op| super::scatter::is_unordered(caps, op, dtype)) {
        return None;
    }
    let (axis, shape, updates) =
        (axis as usize, graph.shape(root.node).clone(), graph.shape(x).clone());
    let others = (0..shape.rank()).filter(|&other| other != axis);
    let (places, n) = (shape[axis], updates[axis]);
    let rows = others.clone().map(|other| shape[other]).product();
    let share = share(caps, dtype, [rows, places, n])?;
    let Share { threads, parts, places: own } = share;
    if others.clone().any(|other| shape[other] != updates[other])
        || parts > 1 && is_vector(graph, index, n)
    {
        return None;
    }
    let (axes, tuple) = partition.indices.axes(&updates);
    let (targets, place) = partition.indices.axes(&shape);
    let [along, out] =
        [tuple, place].map(|t| partition.indices.get(t)[axis].terms.first().copied());
    let (along, out) = (along?.0, out?.0);
    let all: Vec<_> = axes.iter().chain(&targets).copied().collect();
    let roots = [(x, tuple), (index, tuple), (base, place)];
    let found = collect_roots(graph, partition, group, &roots, &[], &all);
    if !found.body.reductions.is_empty() {
        return None;
    }
    let mut l = Lowering::new(graph, partition, format!("{}_shared", name(graph, this)));
    l.declare(found, &[(root.node, Access::Write)]);
    let groups = (rows as i64 + threads - 1) / threads;
    let [all_groups, groups, local] = [groups * parts, groups, threads].map(|n| l.b.index(n));
    let number = l.b.open_loop(LoopKind::Group, 0, all_groups);
    let ty = Type::scalar(dtype);
    let memory = l.b.alloc(Space::Shared, ty, (threads * own) as u32);
    let thread = l.b.open_loop(LoopKind::Local, 0, local);
    // The first place of the part, and the last of the row.
    let (number, begin) = match parts {
        1 => (number, None),
        _ => {
            let [part, number] = [Div, Rem].map(|op| l.b.binary(op, number, groups));
            let [own, last] = [own, places as i64 - 1].map(|n| l.b.index(n));
            (number, Some((l.b.binary(Mul, part, own), last)))
        }
    };
    let first = l.b.binary(Mul, number, local);
    let mut row = l.b.binary(Add, first, thread);
    // The last group may have fewer rows than threads.
    let partial = rows as i64 % threads != 0;
    if partial {
        let [all, last] = [rows as i64, rows as i64 - 1].map(|n| l.b.index(n));
        let exists = l.b.binary(Lt, row, all);
        row = l.b.binary(Min, row, last);
        l.b.open_if(exists);
    }
    for (list, own) in [(&axes, along), (&targets, out)] {
        let outer: Vec<_> = list.iter().copied().filter(|&axis| axis != own).collect();
        l.count_digits(&outer, row);
    }
    let [own_places, turns, by] = [own, n as i64 / TOGETHER, TOGETHER].map(|n| l.b.index(n));
    let slot = |l: &mut Lowering<'_>, place| {
        let line = l.b.binary(Mul, place, local);
        l.b.binary(Add, line, thread)
    };

    // The last part may have fewer places than there is room for: what is beyond is a copy of the last.
    let place_at = |l: &mut Lowering<'_>, at| match begin {
        None => at,
        Some((first, _)) => l.b.binary(Add, first, at),
    };
    let at = l.b.open_loop(LoopKind::Serial, 0, own_places);
    let from = place_at(&mut l, at);
    let from = begin.map_or(from, |(_, last)| l.b.binary(Min, from, last));
    l.open_scope();
    l.counters.insert(out, from);
    let value = l.value(base, place, None);
    l.close_scope();
    let to = slot(&mut l, at);
    l.b.store(memory, to, value);
    l.b.close();

    let make = |l: &mut Lowering<'_>, numbers: &[crate::ir::Value]| {
        let mut list = Vec::new();
        for &number in numbers {
            l.open_scope();
            l.counters.insert(along, number);
            list.push((l.value(index, tuple, None), l.value(x, tuple, None)));
            l.close_scope();
        }
        for (picked, element) in list {
            let (inside, picked) = match begin {
                None => (l.in_range(picked, places), l.b.cast(DType::I64, picked)),
                Some((first, _)) => {
                    let picked = l.b.cast(DType::I64, picked);
                    let picked = l.b.binary(Sub, picked, first);
                    (l.in_range(picked, own as usize), picked)
                }
            };
            let to = slot(l, picked);
            let to = l.b.guard(to, inside);
            let new = match op {
                None => element,
                Some(op) => {
                    let old = l.b.load(memory, to);
                    l.b.binary(op, old, element)
                }
            };
            l.b.store(memory, to, new);
        }
    };
    let after = |l: &mut Lowering<'_>, first, numbers: std::ops::Range<i64>| -> Vec<_> {
        let number = |i| {
            let i = l.b.index(i);
            l.b.binary(Add, first, i)
        };
        numbers.map(number).collect()
    };
    let turn = l.b.open_loop(LoopKind::Serial, 0, turns);
    let first = l.b.binary(Mul, turn, by);
    let numbers = after(&mut l, first, 0..TOGETHER);
    make(&mut l, &numbers);
    l.b.close();
    let zero = l.b.index(0);
    let numbers = after(&mut l, zero, n as i64 / TOGETHER * TOGETHER..n as i64);
    make(&mut l, &numbers);

    let stored = begin.map_or(own_places, |(first, last)| {
        let left = l.b.binary(Sub, last, first);
        let one = l.b.index(1);
        let left = l.b.binary(Add, left, one);
        l.b.binary(Min, left, own_places)
    });
    let at = l.b.open_loop(LoopKind::Serial, 0, stored);
    let target = place_at(&mut l, at);
    l.open_scope();
    l.counters.insert(out, target);
    let from = slot(&mut l, at);
    let value = l.b.load(memory, from);
    l.store_value(root.node, place, value);
    l.close_scope();
    l.b.close();
    if partial {
        l.b.close();
    }
    l.b.close();
    l.b.close();
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

#[cfg(test)]
mod tests {
    use crate::ir::{Op, Space};
    use crate::reference::Reference;
    use crate::runtime::{Optimizer, Runtime};
    use crate::tensor::Tensor;
    use crate::testing::{evaluate, kernels};

    /// Updates out of range go nowhere; the base counts; updates need not fill the last turn; sums
    /// are made in the order of the evaluator, bit for bit.
    #[test]
    fn places_in_shared_memory_are_updated_in_order() {
        let cases = [
            (0, 67, 16 << 10, Optimizer::Off),
            (2, 80, 16 << 10, Optimizer::Default),
            // Parts of a row: of 11 places each, and of 7 of which the last has five.
            (0, 67, 480, Optimizer::Off),
            (2, 80, 240, Optimizer::Default),
        ];
        // Rows of whole groups, and more.
        let all = cases.into_iter().flat_map(|case| [(case, [4, 16]), (case, [5, 17])]);
        for ((axis, n, bytes, optimizer), sides) in all {
            let rows = sides[0] * sides[1];
            let mut reference = Reference::default();
            reference.caps.simt = true;
            reference.caps.max_local = 64;
            reference.caps.shared_bytes = bytes;
            reference.caps.threads = 1 << 12;
            let runtime = Runtime::default();
            runtime.register(reference);
            let d = runtime.device("reference").unwrap();
            d.set_optimizer(optimizer);
            let places = 33;
            let dims = |extent: usize| match axis {
                0 => [extent, sides[0], sides[1]],
                _ => [sides[0], sides[1], extent],
            };
            let float = |i: usize| ((i * 7919) % 1013) as f32 / 97.0 - 5.0;
            let base: Vec<f32> = (0..rows * places).map(float).collect();
            let base = Tensor::from_slice(&base, dims(places), &d).unwrap();
            let index: Vec<i64> =
                (0..rows * n).map(|i| (i * 31 % (places + 5)) as i64 - 2).collect();
            let index = Tensor::from_slice(&index, dims(n), &d).unwrap().unchecked_indices();
            let x: Vec<f32> = (0..rows * n).map(float).collect();
            let x = Tensor::from_slice(&x, dims(n), &d).unwrap();
            let all = [
                base.scatter_add(axis, &index, &x).unwrap(),
                base.scatter(axis, &index, &x).unwrap(),
            ];
            for y in all {
                let list = kernels(&[&y]);
                let shared = |op: &Op| matches!(op, Op::Alloc { space: Space::Shared, .. });
                let uses = list.iter().filter(|k| k.ops().iter().any(shared)).count();
                assert_eq!((list.len(), uses), (1, 1), "{list:?}");
                let expected: Vec<f64> =
                    evaluate(&[&y]).unwrap()[0].iter().map(|x| x.to_f64()).collect();
                let found: Vec<f64> =
                    y.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect();
                assert_eq!(found, expected, "{n} updates along {axis}");
            }
        }
    }
}
