//! Recognising contractions: a sum of a product of two operands whose index maps are affine.
//!
//! Matrix products, batched products, convolutions and their gradients all look alike here: a
//! reduction over a multiplication, with movement ops in between. Pulled down to stored buffers,
//! each operand's address is an affine function of the output's and the reduction's axes, and
//! which operands an axis moves classifies it as batch, m, n or k. That is all a library kernel
//! needs to know.

use super::index::{AtomId, Index};
use super::pull::{Indices, TupleId};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::{ContractDim, ContractSpec};
use crate::ops::BinaryOp;

/// A contraction in a graph.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    /// The reduction, or the conversion of its results.
    pub(crate) node: NodeId,
    /// The nodes that are stored and read as operands A and B.
    pub(crate) operands: [NodeId; 2],
    /// Where the operands' elements stand, in counters of the sum's source.
    pub(super) tuples: [TupleId; 2],
    /// Those counters with the stride of each in C, 0 along what is summed over.
    axes: Vec<(AtomId, isize)>,
    /// What a library kernel is asked for.
    pub(crate) spec: ContractSpec,
}

impl Contraction {
    /// The counters of the dimensions of batch, m, n and k, in their order.
    pub(super) fn counters(&self) -> [Vec<AtomId>; 4] {
        // No two dimensions of a result have the same stride.
        let of = |dims: &[ContractDim]| -> Vec<AtomId> {
            let axis = |dim: &ContractDim| self.axes.iter().find(|axis| axis.1 == dim.c);
            dims.iter().filter_map(axis).map(|axis| axis.0).collect()
        };
        let summed = self.axes.iter().filter(|axis| axis.1 == 0).map(|axis| axis.0).collect();
        [of(&self.spec.batch), of(&self.spec.m), of(&self.spec.n), summed]
    }
}

/// Fewest multiply-adds, and fewest rows and columns, worth a library kernel: below, packing and
/// dispatch cost more than generated loops.
const MIN_WORK: usize = 4096;
const MIN_SIDE: usize = 2;

/// The contraction that `id` is, if it is one worth a library kernel.
pub(crate) fn recognize(graph: &Graph, indices: &mut Indices, id: NodeId) -> Option<Contraction> {
    let Node::Reduce { op: BinaryOp::Add, axes, x } = graph.node(id) else { return None };
    if !matches!(graph.dtype(id), DType::F32 | DType::F64) {
        return None;
    }
    let source = graph.shape(x).clone();
    let (atoms, tuple) = indices.axes(&source);
    let (product, tuple) = through_movement(graph, indices, x, tuple)?;
    let Node::Binary { op: BinaryOp::Mul, x: p, y: q } = graph.node(product) else { return None };
    let a = operand(graph, indices, p, tuple)?;
    let b = operand(graph, indices, q, tuple)?;
    // Axes of extent 1 have no counter, so walk the others along with their atoms.
    let mut atoms = atoms.into_iter();
    let strides = graph.shape(id).strides();
    let reduced = |axis: usize| axes_of(axes).any(|r| r == axis);
    let mut axes = Vec::new();
    let mut spec = ContractSpec {
        a: graph.dtype(a.node),
        b: graph.dtype(b.node),
        c: graph.dtype(id),
        acc: graph.dtype(id),
        offset: [a.flat.constant as isize, b.flat.constant as isize],
        batch: Vec::new(),
        m: Vec::new(),
        n: Vec::new(),
        k: Vec::new(),
    };
    for axis in (0..source.rank()).filter(|&axis| source[axis] != 1) {
        let atom: AtomId = atoms.next()?;
        let dim = ContractDim {
            len: source[axis],
            a: a.flat.coefficient(atom) as isize,
            b: b.flat.coefficient(atom) as isize,
            c: if reduced(axis) { 0 } else { strides[axis] as isize },
        };
        axes.push((atom, dim.c));
        match (reduced(axis), dim.a != 0, dim.b != 0) {
            (true, _, _) => spec.k.push(dim),
            (false, true, true) => spec.batch.push(dim),
            (false, true, false) => spec.m.push(dim),
            (false, false, true) => spec.n.push(dim),
            (false, false, false) => return None,
        }
    }
    let (mut operands, mut tuples) = ([a.node, b.node], [a.tuple, b.tuple]);
    // Results are written along n: the side that is contiguous in C.
    if spec.m.iter().any(|dim| dim.c == 1) {
        swap_sides(&mut spec);
        operands.swap(0, 1);
        tuples.swap(0, 1);
    }
    arrange(&mut spec);
    let count = |dims: &[ContractDim]| dims.iter().map(|dim| dim.len).product::<usize>();
    let (m, n, k) = (count(&spec.m), count(&spec.n), count(&spec.k));
    let worth = m.min(n) >= MIN_SIDE && k >= 2 && count(&spec.batch) * m * n * k >= MIN_WORK;
    worth.then_some(Contraction { node: id, operands, tuples, axes, spec })
}

/// The contraction of halves whose sums, rounded to that half, are all that anybody needs of it:
/// `id` is the conversion. A library that rounds itself spares a kernel and the sums in memory.
/// `only` says of a node whether it has a single user and is not itself stored.
pub(crate) fn recognize_rounded(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    only: impl Fn(NodeId) -> bool,
) -> Option<Contraction> {
    let half = graph.dtype(id);
    let Node::Cast { mut x } = graph.node(id) else { return None };
    if !matches!(half, DType::F16 | DType::BF16) {
        return None;
    }
    while let Node::Reshape { x: source } = graph.node(x) {
        x = only(x).then_some(source)?;
    }
    if !only(x) {
        return None;
    }
    let found = recognize(graph, indices, x)?;
    let fits = found.spec.a == half && found.spec.b == half && found.spec.c == DType::F32;
    let spec = ContractSpec { c: half, ..found.spec.clone() };
    fits.then_some(Contraction { node: id, spec, ..found })
}

fn swap_sides(spec: &mut ContractSpec) {
    std::mem::swap(&mut spec.a, &mut spec.b);
    std::mem::swap(&mut spec.m, &mut spec.n);
    spec.offset.swap(0, 1);
    for dim in spec.batch.iter_mut().chain(&mut spec.m).chain(&mut spec.n).chain(&mut spec.k) {
        std::mem::swap(&mut dim.a, &mut dim.b);
    }
}

/// Orders dimensions by their stride in C and moves outer n dimensions that do not merge with the
/// inner ones to the batch, so that a merged n position is affine in C.
fn arrange(spec: &mut ContractSpec) {
    for dims in [&mut spec.batch, &mut spec.m, &mut spec.n] {
        dims.sort_by_key(|dim| std::cmp::Reverse(dim.c));
    }
    let merges = |pair: &[ContractDim]| pair[0].c == pair[1].c * pair[1].len as isize;
    while !spec.n.windows(2).all(merges) {
        spec.batch.push(spec.n.remove(0));
    }
    spec.batch.sort_by_key(|dim| std::cmp::Reverse(dim.c));
}

/// Walks down movement ops other than padding.
pub(super) fn through_movement(
    graph: &Graph,
    indices: &mut Indices,
    mut id: NodeId,
    mut tuple: TupleId,
) -> Option<(NodeId, TupleId)> {
    loop {
        let node = graph.node(id);
        if matches!(node, Node::Pad { .. }) {
            return Some((id, tuple));
        }
        let Some(pulled) = indices.pull(graph, id, tuple) else { return Some((id, tuple)) };
        tuple = pulled;
        id = node.sources().next()?;
    }
}

/// A node whose buffer is addressed affinely.
pub(super) struct Operand {
    pub(super) node: NodeId,
    pub(super) tuple: TupleId,
    /// Its address.
    pub(super) flat: Index,
}

impl Operand {
    pub(super) fn address(self) -> (NodeId, Index) {
        (self.node, self.flat)
    }
}

/// The deepest node below `id` whose buffer is addressed affinely. Conversions from halves are left
/// to the library.
pub(super) fn operand(
    graph: &Graph,
    indices: &mut Indices,
    mut id: NodeId,
    mut tuple: TupleId,
) -> Option<Operand> {
    let mut best = None;
    loop {
        let flat = indices.flat(graph, id, tuple);
        if indices.algebra.is_affine(&flat) {
            best = Some(Operand { node: id, tuple, flat });
        }
        let node = graph.node(id);
        match node {
            Node::Pad { .. } => break,
            Node::Cast { x } if is_widening(graph.dtype(x), graph.dtype(id)) => id = x,
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => return None,
            _ => match indices.pull(graph, id, tuple) {
                Some(pulled) => {
                    tuple = pulled;
                    id = node.sources().next()?;
                }
                None => break,
            },
        }
    }
    best
}

/// Whether a conversion is one from halves to the dtype that sums of them have.
pub(super) fn is_widening(from: DType, to: DType) -> bool {
    matches!((from, to), (DType::F16 | DType::BF16, DType::F32))
}
