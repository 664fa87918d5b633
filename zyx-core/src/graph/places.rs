//! Where slices and paddings start, as scalar arguments of a graph.
//!
//! A loop over data slices it in one place after the other: graphs that are equal but for the places.
//! The first of them is planned as it is. When another one comes, each place in which they differ
//! becomes an argument of the graph ([`Places::generalize`]), and one plan serves all that follow. A place
//! that never changes stays a literal, of which kernels know more.

use super::{Bindings, CaptureOrder, Graph, Node, NodeId};
use crate::lru::Lru;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// A list of a padding or a slice: for each axis a pair of numbers.
pub(super) type List = Arc<[(usize, usize)]>;

/// Marks the second number of an entry whose first is the slot of an argument. The rest of the second
/// is the step: the place is so many times the argument.
const ARGUMENT: usize = 1 << (usize::BITS - 1);
/// Elements that places are counted in, if all seen are multiples: loads stay as aligned as they were.
const STEP: usize = 16;
/// The part of the caches' limit that places have.
const SHARE: usize = 16;

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// So many elements.
    Literal(usize),
    /// So many times an argument.
    Argument { slot: u32, step: usize },
}

impl Place {
    pub(crate) fn of((first, second): (usize, usize)) -> Place {
        match second & ARGUMENT {
            0 => Place::Literal(first),
            _ => Place::Argument { slot: first as u32, step: second & !ARGUMENT },
        }
    }

    /// The place, given the arguments of the graph.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn value(self, arguments: &[u64]) -> usize {
        match self {
            Place::Literal(place) => place,
            Place::Argument { slot, step } => arguments[slot as usize] as usize * step,
        }
    }
}

/// Arguments of places that are being collected, from the first slot on.
#[derive(Debug, Default)]
pub(super) struct Collected(Vec<Option<u64>>);

impl Collected {
    pub(super) fn of(graph: &Graph) -> Collected {
        Collected(vec![None; graph.places.len()])
    }

    /// Whether a list is the given one for some arguments; those are kept.
    pub(super) fn matches(
        &mut self,
        graph: &Graph,
        list: u32,
        given: impl ExactSizeIterator<Item = (usize, usize)>,
    ) -> bool {
        let known = graph.list(list);
        known.len() == given.len()
            && known.iter().zip(given).all(|(&entry, given)| match Place::of(entry) {
                Place::Literal(_) => entry == given,
                Place::Argument { slot, step } => {
                    let own = &mut self.0[(slot - graph.places.start) as usize];
                    let argument = (given.0 / step) as u64;
                    given.0.is_multiple_of(step) && *own.get_or_insert(argument) == argument
                }
            })
    }

    /// Adds the arguments to those of the graph; `None` if one is missing.
    pub(super) fn add_to(self, bindings: &mut Bindings) -> Option<()> {
        bindings.arguments.extend(self.0.into_iter().collect::<Option<Vec<u64>>>()?);
        Some(())
    }
}

/// The places that graphs of some structures had.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// For each structure the places of its first graph, or the steps of those that vary.
    known: Lru<u64, Vec<Known>>,
}

#[derive(Clone, Copy, Debug)]
enum Known {
    Always(usize),
    MultipleOf(usize),
}

impl Known {
    /// What is known after one more place was seen, if it helps that all are multiples of a step.
    fn with(self, place: usize, step: usize) -> Known {
        match self {
            Known::Always(first) if first == place => self,
            Known::Always(first) if first.is_multiple_of(step) && place.is_multiple_of(step) => {
                Known::MultipleOf(step)
            }
            Known::MultipleOf(step) if place.is_multiple_of(step) => self,
            Known::Always(_) | Known::MultipleOf(_) => Known::MultipleOf(1),
        }
    }
}

impl Places {
    /// The graph with an argument for each place that is another one than it was in an earlier graph,
    /// and their values. Of what is known a part of so many bytes is kept.
    pub(crate) fn generalize(
        &mut self,
        graph: Graph,
        bindings: &mut Bindings,
        order: &mut CaptureOrder,
        limit: usize,
    ) -> Graph {
        let mut graph = self.with_arguments(graph, bindings, limit);
        graph.merge_twins(order);
        graph
    }

    fn with_arguments(&mut self, graph: Graph, bindings: &mut Bindings, limit: usize) -> Graph {
        let lists: Vec<(NodeId, u32)> = graph.lists_of_places().collect();
        if lists.is_empty() {
            return graph;
        }
        let entries = || lists.iter().flat_map(|&(id, list)| graph.entries(id, list));
        let structure = graph.structure();
        let known = self.known.get(&structure).filter(|known| known.len() == entries().count());
        let Some(known) = known else {
            let places: Vec<Known> = entries().map(|(place, _)| Known::Always(place)).collect();
            let bytes = size_of_val(&*places);
            self.known.insert(structure, places, bytes);
            self.known.fit(limit / SHARE);
            return graph;
        };
        let seen = known.iter_mut().zip(entries());
        seen.for_each(|(known, (place, step))| *known = known.with(place, step));
        if known.iter().all(|known| matches!(known, Known::Always(_))) {
            return graph;
        }
        vary_alike(&graph, &lists, known);
        let first = bindings.arguments.len() as u32;
        let mut known = known.iter();
        let (mut new, mut ids) = (Vec::new(), FxHashMap::<List, u32>::default());
        let mut nodes = graph.nodes.clone();
        for &(id, list) in &lists {
            let entry = |(&entry, known): (&(usize, usize), &Known)| match *known {
                Known::Always(_) => entry,
                Known::MultipleOf(step) => {
                    bindings.arguments.push((entry.0 / step) as u64);
                    (bindings.arguments.len() - 1, ARGUMENT | step)
                }
            };
            let entries: List = graph.list(list).iter().zip(&mut known).map(entry).collect();
            let own = *ids.entry(entries.clone()).or_insert_with(|| {
                new.push(entries);
                new.len() as u32 - 1
            });
            if let Node::Pad { list, .. } | Node::Shrink { list, .. } = &mut nodes[id.idx()] {
                *list = own;
            }
        }
        let places = first..bindings.arguments.len() as u32;
        Graph { nodes, lists: new, hash: structure, places, ..graph }
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.known.bytes()
    }
}

/// Slices of one value, of one size, vary along an axis if one of them does: a loop that takes rows by
/// numbers has one plan, whichever numbers are what they were before.
fn vary_alike(graph: &Graph, lists: &[(NodeId, u32)], known: &mut [Known]) {
    let axes = lists.iter().flat_map(|&(id, list)| {
        let from = match graph.node(id) {
            Node::Shrink { x, .. } => x,
            _ => id,
        };
        (0..graph.list(list).len()).map(move |axis| (from, graph.shape_id(id), axis))
    });
    let axes: Vec<(NodeId, u32, usize)> = axes.collect();
    let mut all: FxHashMap<(NodeId, u32, usize), Known> = FxHashMap::default();
    for (axis, known) in axes.iter().zip(&*known) {
        if let Known::MultipleOf(step) = *known {
            let other = all.entry(*axis).or_insert(*known);
            if let Known::MultipleOf(least) = other {
                *least = step.min(*least);
            }
        }
    }
    for (axis, known) in axes.iter().zip(&*known) {
        if let (Known::Always(place), Some(Known::MultipleOf(step))) = (*known, all.get_mut(axis))
            && !place.is_multiple_of(*step)
        {
            *step = 1;
        }
    }
    for (axis, known) in axes.iter().zip(known) {
        *known = all.get(axis).copied().unwrap_or(*known);
    }
}

impl Graph {
    /// Paddings and slices, each with its list.
    fn lists_of_places(&self) -> impl Iterator<Item = (NodeId, u32)> + '_ {
        self.ids().filter_map(|id| match self.node(id) {
            Node::Pad { list, .. } | Node::Shrink { list, .. } => Some((id, list)),
            _ => None,
        })
    }

    /// The places in the list of a node, each with the step that it is worth being a multiple of: 1
    /// where elements stay aligned anyway.
    fn entries(&self, id: NodeId, list: u32) -> impl Iterator<Item = (usize, usize)> + '_ {
        let within = match self.node(id) {
            Node::Shrink { x, .. } => x,
            _ => id,
        };
        let strides = self.shape(within).strides();
        let step = |stride: usize| if stride.is_multiple_of(STEP) { 1 } else { STEP };
        let steps = strides.into_iter().map(step);
        self.list(list).iter().zip(steps).map(|(entry, step)| (entry.0, step))
    }

    /// The slots of its arguments that are places.
    pub(crate) fn places(&self) -> Range<u32> {
        self.places.clone()
    }

    /// A hash of all but the places.
    fn structure(&self) -> u64 {
        let mut hash = FxHasher::default();
        for id in self.ids() {
            let node = self.without_places(id).words();
            (node, self.dtype(id), self.shape_ids[id.idx()]).hash(&mut hash);
        }
        (&self.shapes, &self.outputs).hash(&mut hash);
        hash.finish()
    }

    fn without_places(&self, id: NodeId) -> Node {
        match self.node(id) {
            Node::Pad { x, .. } => Node::Pad { x, list: 0 },
            Node::Shrink { x, .. } => Node::Shrink { x, list: 0 },
            node => node,
        }
    }

    /// A hash of what is equal for other sizes, too, and one of the sizes. Numbers may depend on sizes.
    pub(crate) fn hash_of_sizes(&self) -> [u64; 2] {
        let mut hash = FxHasher::default();
        for id in self.ids() {
            let node = match self.without_places(id) {
                Node::Const { .. } => Node::Const { bits: 0 },
                node => node,
            };
            (node.words(), self.dtype(id), self.shape(id).rank()).hash(&mut hash);
        }
        self.outputs.hash(&mut hash);
        let mut sizes = FxHasher::default();
        (&self.shapes, &self.shape_ids).hash(&mut sizes);
        [hash.finish(), sizes.finish()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{capture_with_order, eval, match_capture};
    use super::*;
    use crate::Tensor;
    use crate::testing::device;

    const ROWS: usize = 64;

    /// A slice, a padding and a slice that never moves, of a matrix of three columns.
    fn step(x: &Tensor, start: usize, before: usize) -> Tensor {
        let part = x.slice(0, start..start + 8).unwrap().slice(1, 1..3).unwrap();
        part.pad([(before, 40 - before), (0, 0)]).unwrap().neg()
    }

    #[test]
    fn places_of_ever_new_structures_stay_within_their_part() {
        let device = device();
        let x = Tensor::from_slice(&[0i32; 512], [512], &device).unwrap();
        let (mut places, limit) = (Places::default(), 64 << 10);
        for n in 1..500 {
            let captured = capture_with_order(&[&x.slice(0, 7..7 + n).unwrap()], 0);
            let (graph, mut bindings, mut order) = captured;
            places.generalize(graph, &mut bindings, &mut order, limit);
            assert!(0 < places.bytes() && places.bytes() <= limit / SHARE, "{}", places.bytes());
        }
    }

    #[test]
    fn places_that_vary_become_arguments_and_others_stay() {
        let device = device();
        let values: Vec<i32> = (0..3 * ROWS as i32).collect();
        let x = Tensor::from_slice(&values, [ROWS, 3], &device).unwrap();
        let leaves = [values.iter().map(|&x| crate::scalar::Scalar::from(x)).collect::<Vec<_>>()];
        let (mut places, mut visit) = (Places::default(), 1 << 20);
        let mut capture = |start: usize, before: usize| {
            let y = step(&x, start, before);
            let (graph, mut bindings, mut order) = capture_with_order(&[&y], 0);
            let want = eval::evaluate(&graph, &leaves, &bindings.arguments);
            let graph = places.generalize(graph, &mut bindings, &mut order, 1 << 20);
            let got = eval::evaluate(&graph, &leaves, &bindings.arguments);
            assert_eq!(got, want, "{start} {before}");
            (graph, bindings.arguments, order)
        };
        let mut follow = |graph: &Graph, order, start: usize, before: usize| {
            visit += 1;
            let found = match_capture(&[&step(&x, start, before)], graph, order, visit)?;
            Some(found.arguments)
        };
        let (first, none, _) = capture(32, 7);
        assert_eq!((first.places(), none), (0..0, vec![]));
        // The column and the padding are as they were.
        let (second, arguments, order) = capture(16, 7);
        assert_eq!((second.places(), arguments), (0..1, vec![1]));
        assert_eq!(follow(&second, &order, 48, 7), Some(vec![3]));
        assert_eq!(follow(&second, &order, 3, 7), None, "no multiple of the step");
        assert_eq!(follow(&second, &order, 48, 8), None, "another padding");
        let (third, arguments, order) = capture(3, 8);
        assert_eq!((third.places(), arguments), (0..2, vec![3, 8]));
        assert_eq!(follow(&third, &order, 56, 40), Some(vec![56, 40]));
        // From now on equal graphs are captured.
        for (start, before) in [(0, 0), (32, 7), (55, 39)] {
            let (graph, arguments, _) = capture(start, before);
            assert!(graph == third, "{start} {before}");
            assert_eq!(arguments, [start as u64, before as u64]);
        }
    }
}
