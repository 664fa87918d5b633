//! Pulling indices through movement ops, and interning of index tuples.

use crate::affine::{Algebra, Atom, AtomId, CounterId, Index};
use crate::graph::{Graph, Node, NodeId, Place, axes_of};
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Scopes in which counters and run-time values are allocated. Equal computations in equal scopes have equal tuples.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Scope {
    /// The axes of a group, and the loops of its reductions: each group begins anew.
    Group,
    /// A group that is lowered, after those of all groups are allocated; each group begins anew.
    Lowering,
    /// The epilogue of a group, whatever its prologue allocated before.
    Epilogue,
    /// A node that is matched with contractions.
    Contraction,
    /// All others; numbers are not used again.
    Other,
    /// Arguments of the plan that say where a slice starts, numbered by slot.
    Place,
}

impl Scope {
    pub(super) fn first(self) -> CounterId {
        CounterId::first(self as u8)
    }
}

/// An interned index tuple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TupleId(u32);

/// The algebra together with interned tuples of its expressions.
#[derive(Debug, Default)]
pub(crate) struct Indices {
    pub(crate) algebra: Algebra,
    tuples: Vec<Rc<[Index]>>,
    ids: FxHashMap<Rc<[Index]>, TupleId>,
    /// Tuples of sources, by the op, its shapes and the tuple of the result.
    pulled: FxHashMap<([u64; 2], [u32; 2], TupleId), TupleId>,
    /// Positions in buffers, as tuples of one index, by shape and tuple.
    flat: FxHashMap<(u32, TupleId), TupleId>,
    /// The values of arguments that are places, by slot.
    places: FxHashMap<u32, AtomId>,
}

impl Indices {
    pub(crate) fn intern(&mut self, tuple: Vec<Index>) -> TupleId {
        let tuple: Rc<[Index]> = tuple.into();
        if let Some(&id) = self.ids.get(&tuple) {
            return id;
        }
        let id = TupleId(self.tuples.len() as u32);
        self.tuples.push(tuple.clone());
        self.ids.insert(tuple, id);
        id
    }

    /// How many tuples there are.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.tuples.len()
    }

    pub(crate) fn get(&self, id: TupleId) -> Rc<[Index]> {
        self.tuples[id.0 as usize].clone()
    }

    /// Where a slice or a padding starts along each axis, within these many elements.
    fn places(&mut self, list: &[(usize, usize)], room: impl Iterator<Item = usize>) -> Vec<Index> {
        let place = |(&entry, room): (&(usize, usize), usize)| match Place::of(entry) {
            Place::Literal(place) => Index::constant(place as i64),
            Place::Argument { slot, step } => {
                let algebra = &mut self.algebra;
                let new = || {
                    let number = CounterId::numbered(Scope::Place as u8, slot);
                    let outer = algebra.allocate_from(number);
                    let place = algebra.opaque(room / step + 1);
                    algebra.allocate_from(outer);
                    place
                };
                let atom = *self.places.entry(slot).or_insert_with(new);
                self.algebra.scale(&Index::atom(atom), step as i64)
            }
        };
        list.iter().zip(room).map(place).collect()
    }

    /// Whether any slice or padding starts at an argument of the plan.
    pub(super) fn has_places(&self) -> bool {
        !self.places.is_empty()
    }

    /// The arguments of the plan that occur in expressions as places: their slots and counters, by slot.
    pub(super) fn places_in(&self, all: &[Index]) -> Vec<(u32, AtomId)> {
        let mut found: Vec<(u32, AtomId)> = Vec::new();
        if self.places.is_empty() {
            return found;
        }
        let slots: FxHashMap<AtomId, u32> =
            self.places.iter().map(|(&slot, &atom)| (atom, slot)).collect();
        for index in all {
            self.algebra.visit_opaque(index, &mut |atom| {
                found.extend(slots.get(&atom).map(|&slot| (slot, atom)));
            });
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Calls `f` with every loop counter that occurs in a tuple.
    pub(crate) fn visit_axes(&self, tuple: TupleId, mut f: impl FnMut(AtomId)) {
        self.get(tuple).iter().for_each(|index| self.algebra.visit_axes(index, &mut f));
    }

    /// How many of `loops` have to be open for a tuple to be complete.
    pub(crate) fn depth(&self, loops: &[AtomId], tuple: TupleId) -> usize {
        let mut depth = 0;
        self.visit_axes(tuple, |axis| {
            let position = loops.iter().position(|&l| l == axis);
            depth = depth.max(position.map_or(0, |p| p + 1));
        });
        depth
    }

    /// New counters for the axes of a shape; axes of extent 1 get none and index 0.
    pub(crate) fn axes(&mut self, dims: &[usize]) -> (Vec<AtomId>, TupleId) {
        let mut atoms = Vec::new();
        let tuple = dims
            .iter()
            .map(|&dim| {
                if dim == 1 {
                    return Index::constant(0);
                }
                let atom = self.algebra.axis(dim);
                atoms.push(atom);
                self.algebra.of(atom)
            })
            .collect();
        (atoms, self.intern(tuple))
    }

    /// Number of iterations of a counter.
    pub(crate) fn extent(&self, axis: AtomId) -> usize {
        match self.algebra.atom(axis) {
            Atom::Axis { extent, .. } | Atom::Opaque { extent, .. } => *extent,
            Atom::Div(..) | Atom::Mod(..) => unreachable!("invariant: only counters have extents"),
        }
    }

    /// The tuple of a reduction's source `x`, with new counters along the reduced axes.
    pub(crate) fn open_reduce(
        &mut self,
        graph: &Graph,
        x: NodeId,
        axes: u16,
        tuple: TupleId,
    ) -> (TupleId, Vec<AtomId>) {
        let mut source = self.get(tuple).to_vec();
        let mut atoms = Vec::new();
        for axis in axes_of(axes) {
            let extent = graph.shape(x)[axis];
            if extent != 1 {
                let atom = self.algebra.axis(extent);
                source[axis] = self.algebra.of(atom);
                atoms.push(atom);
            }
        }
        (self.intern(source), atoms)
    }

    /// As [`Indices::open_reduce`], along counters that there are.
    pub(crate) fn reduce_along(
        &mut self,
        axes: u16,
        own: &[AtomId],
        shape: &Shape,
        tuple: TupleId,
    ) -> TupleId {
        let mut source = self.get(tuple).to_vec();
        let long = axes_of(axes).filter(|&axis| shape[axis] != 1);
        for (axis, &atom) in long.zip(own) {
            source[axis] = self.algebra.of(atom);
        }
        self.intern(source)
    }

    /// The tuple with counters replaced by expressions.
    pub(crate) fn substitute(&mut self, tuple: TupleId, by: &FxHashMap<AtomId, Index>) -> TupleId {
        let old = self.get(tuple);
        let new = old.iter().map(|index| self.algebra.substitute(index, by)).collect();
        self.intern(new)
    }

    /// The tuple with one index counted from the end of its axis.
    pub(crate) fn reversed(&mut self, tuple: TupleId, axis: usize, extent: usize) -> TupleId {
        let mut tuple = self.get(tuple).to_vec();
        let negated = self.algebra.scale(&tuple[axis], -1);
        tuple[axis] = self.algebra.offset(&negated, extent as i64 - 1);
        self.intern(tuple)
    }

    /// The position in the buffer of `node` of an index tuple.
    pub(crate) fn flat(&mut self, graph: &Graph, node: NodeId, tuple: TupleId) -> Index {
        let flat = self.flat_id(graph, node, tuple);
        self.tuples[flat.0 as usize][0].clone()
    }

    /// The same as a tuple of one index.
    pub(crate) fn flat_id(&mut self, graph: &Graph, node: NodeId, tuple: TupleId) -> TupleId {
        let key = (graph.shape_id(node), tuple);
        if let Some(&known) = self.flat.get(&key) {
            return known;
        }
        let flat = self.algebra.flatten(&self.get(tuple), graph.shape(node));
        let id = self.intern(vec![flat]);
        self.flat.insert(key, id);
        id
    }

    /// The index tuple of the source of a movement op, given that of the result. `None` for ops
    /// that do not move.
    pub(crate) fn pull(&mut self, graph: &Graph, id: NodeId, tuple: TupleId) -> Option<TupleId> {
        let node = graph.node(id);
        if !node.is_movement() {
            return None;
        }
        let source = node.sources().next()?;
        let key = (node.op_words(), [id, source].map(|x| graph.shape_id(x)), tuple);
        if let Some(&known) = self.pulled.get(&key) {
            return Some(known);
        }
        let old = self.get(tuple);
        let room = |from: NodeId, to: NodeId| {
            let dims = graph.shape(from).iter().zip(graph.shape(to).iter());
            dims.map(|(&from, &to)| from - to)
        };
        let places = match node {
            Node::Pad { x, list } => self.places(graph.list(list), room(id, x)),
            Node::Shrink { x, list } => self.places(graph.list(list), room(x, id)),
            _ => Vec::new(),
        };
        let algebra = &mut self.algebra;
        let moved = |algebra: &mut Algebra, by: i64| -> Vec<Index> {
            let sum = |(i, place): (&Index, &Index)| match place.terms.is_empty() {
                true => algebra.offset(i, by * place.constant),
                false => algebra.add(i, &algebra.scale(place, by)),
            };
            old.iter().zip(&places).map(sum).collect()
        };
        let new = match node {
            Node::Reshape { x } => {
                let flat = algebra.flatten(&old, graph.shape(id));
                algebra.unflatten(&flat, graph.shape(x))
            }
            Node::Permute { perm, .. } => {
                let mut source = vec![Index::constant(0); old.len()];
                old.iter().enumerate().for_each(|(i, index)| source[perm.get(i)] = index.clone());
                source
            }
            Node::Expand { x } => {
                let kept = old.iter().zip(graph.shape(x).iter());
                kept.map(|(i, &d)| if d == 1 { Index::constant(0) } else { i.clone() }).collect()
            }
            Node::Pad { .. } => moved(algebra, -1),
            Node::Shrink { .. } => moved(algebra, 1),
            Node::Flip { axes, .. } => {
                let mut source = old.to_vec();
                for axis in axes_of(axes) {
                    let reversed = algebra.scale(&old[axis], -1);
                    source[axis] = algebra.offset(&reversed, graph.shape(id)[axis] as i64 - 1);
                }
                source
            }
            _ => return None,
        };
        let pulled = self.intern(new);
        self.pulled.insert(key, pulled);
        Some(pulled)
    }
}
