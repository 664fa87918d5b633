//! Recognising contractions: a sum of a product of two operands whose index maps are affine.
//!
//! Matrix products, batched products, convolutions and their gradients all look alike here: a
//! reduction over a multiplication, with movement ops in between. Pulled down to stored buffers,
//! each operand's address is an affine function of the output's and the reduction's axes, and
//! which operands an axis moves classifies it as batch, m, n or k. That is all a library kernel
//! needs to know.

use super::convolution;
use super::lower::Lowered;
use super::pull::{Indices, TupleId};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::{Call, Caps, ContractDim, ContractSpec, ConvolutionSpec, sort_by_number};
use crate::ir::Access;
use crate::ops::BinaryOp;

/// A contraction in a graph.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    /// The reduction, or the conversion of its results.
    pub(crate) node: NodeId,
    /// The nodes that are stored and read as operands A and B.
    pub(crate) operands: [NodeId; 2],
    /// The node of a bias: what `node` adds to the sums.
    pub(super) bias: Option<NodeId>,
    /// Where the operands' elements stand, in counters of the sum's source.
    pub(super) tuples: [TupleId; 2],
    /// The argument that says where each operand starts, if one does, with the bytes it counts in.
    pub(super) starts: [Start; 2],
    /// Those counters with the stride of each in C, 0 along what is summed over.
    axes: Vec<(AtomId, isize)>,
    /// What a library kernel is asked for.
    pub(crate) spec: ContractSpec,
    /// What it is asked for instead: `spec` is then of an image with zeros around it that does not
    /// exist, or has no dimensions.
    pub(crate) convolution: Option<Box<ConvolutionSpec>>,
}

impl Contraction {
    /// That of a convolution; operands in the order of its arguments, with their addresses.
    pub(super) fn of_convolution(
        graph: &Graph,
        node: NodeId,
        operands: [(NodeId, TupleId, &Index); 2],
        counters: &[Counter],
        convolution: ConvolutionSpec,
    ) -> Option<Contraction> {
        let spec = specify(graph, node, counters, operands.map(|side| (side.0, side.2)))?;
        let axes = counters.iter().map(|counter| (counter.atom, counter.c)).collect();
        let (operands, tuples) = (operands.map(|side| side.0), operands.map(|side| side.1));
        let convolution = Some(Box::new(convolution));
        let (bias, starts) = (None, [None; 2]);
        Some(Contraction { node, operands, bias, tuples, starts, axes, spec, convolution })
    }

    /// That of a gradient whose phases are interleaved, which is no sum itself.
    pub(super) fn of_interleaved(
        node: NodeId,
        operands: [NodeId; 2],
        convolution: ConvolutionSpec,
    ) -> Contraction {
        let half = convolution.operands;
        let spec = ContractSpec {
            a: half,
            b: half,
            c: convolution.computed,
            acc: DType::F32,
            bias: false,
            offset: [0; 2],
            batch: Vec::new(),
            m: Vec::new(),
            n: Vec::new(),
            k: Vec::new(),
        };
        let (tuples, starts, axes) = (Default::default(), [None; 2], Vec::new());
        let convolution = Some(Box::new(convolution));
        Contraction { node, operands, bias: None, tuples, starts, axes, spec, convolution }
    }

    /// Makes n the side that is contiguous in C: along it results are written.
    fn write_along_n(&mut self) {
        if self.spec.m.iter().any(|dim| dim.c == 1) {
            swap_sides(&mut self.spec);
            self.operands.swap(0, 1);
            self.tuples.swap(0, 1);
            self.starts.swap(0, 1);
        }
        arrange(&mut self.spec);
    }

    /// The call of a library, without what it may take along.
    pub(crate) fn call(&self) -> Call {
        match &self.convolution {
            Some(spec) => Call::Convolve((**spec).clone()),
            None => Call::contract(self.spec.clone()),
        }
    }

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

/// A graph's argument that is a place, with the bytes that it counts.
pub(super) type Start = Option<(u32, u32)>;

/// Bytes that starts of operands have to be multiples of: devices with libraries take offsets of so many
/// ([`Caps::offset_align`]), and addresses of libraries stay as aligned as they are without.
const START: usize = 64;

/// Fewest multiply-adds, and fewest rows and columns, worth a library kernel: below, packing and
/// dispatch cost more than generated loops.
const MIN_WORK: usize = 4096;
const MIN_SIDE: usize = 2;

/// A counter of the source of a sum, with its stride in the result: 0 if it is summed over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) atom: AtomId,
    pub(super) len: usize,
    pub(super) c: isize,
}

/// Two factors, each at a tuple.
type Factors = [(NodeId, TupleId); 2];

/// The counters of a sum and the factors of the product that is summed.
pub(super) fn counters(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
) -> Option<(Vec<Counter>, Factors)> {
    let Node::Reduce { op: BinaryOp::Add, axes, x } = graph.node(id) else { return None };
    if !matches!(graph.dtype(id), DType::F32 | DType::F64 | DType::I32) {
        return None;
    }
    let source = graph.shape(x).clone();
    let (atoms, tuple) = indices.axes(&source);
    let (product, tuple) = through_movement(graph, indices, (x, tuple));
    let Node::Binary { op: BinaryOp::Mul, x: p, y: q } = graph.node(product) else { return None };
    let strides = graph.shape(id).strides();
    let reduced = |axis: usize| axes_of(axes).any(|r| r == axis);
    // Axes of extent 1 have no counter.
    let long = (0..source.rank()).filter(|&axis| source[axis] != 1);
    let counters = long.zip(atoms).map(|(axis, atom)| {
        let c = if reduced(axis) { 0 } else { strides[axis] as isize };
        Counter { atom, len: source[axis], c }
    });
    Some((counters.collect(), [(p, tuple), (q, tuple)]))
}

/// The specification for two factors with their addresses; `None` if a counter moves neither.
fn specify(
    graph: &Graph,
    id: NodeId,
    counters: &[Counter],
    [a, b]: [(NodeId, &Index); 2],
) -> Option<ContractSpec> {
    let mut spec = ContractSpec {
        a: graph.dtype(a.0),
        b: graph.dtype(b.0),
        c: graph.dtype(id),
        acc: graph.dtype(id),
        bias: false,
        offset: [a.1.constant as isize, b.1.constant as isize],
        batch: Vec::new(),
        m: Vec::new(),
        n: Vec::new(),
        k: Vec::new(),
    };
    for &Counter { atom, len, c } in counters {
        let [a, b] = [a, b].map(|side| side.1.coefficient(atom) as isize);
        let dim = ContractDim { len, a, b, c };
        match (c == 0, a != 0, b != 0) {
            (true, _, _) => spec.k.push(dim),
            (false, true, true) => spec.batch.push(dim),
            (false, true, false) => spec.m.push(dim),
            (false, false, true) => spec.n.push(dim),
            (false, false, false) => return None,
        }
    }
    Some(spec)
}

/// The contraction that `id` is, if it is one worth a library kernel.
pub(crate) fn recognize(graph: &Graph, indices: &mut Indices, id: NodeId) -> Option<Contraction> {
    // Each element of the source of the sum is a multiply-add.
    if graph.node(id).sources().any(|x| graph.shape(x).numel() < MIN_WORK) {
        return None;
    }
    let (counters, [p, q]) = counters(graph, indices, id)?;
    let fits =
        |indices: &Indices, node, flat: &Index| start_of(graph, indices, node, flat).is_some();
    let a = operand_by(graph, indices, p, fits)?;
    let b = operand_by(graph, indices, q, fits)?;
    let spec = specify(graph, id, &counters, [(a.node, &a.flat), (b.node, &b.flat)])?;
    let (operands, tuples) = ([a.node, b.node], [a.tuple, b.tuple]);
    let start = |x: &Operand| start_of(graph, indices, x.node, &x.flat).flatten();
    let starts = [start(&a), start(&b)];
    let axes = counters.iter().map(|counter| (counter.atom, counter.c)).collect();
    let (node, bias, convolution) = (id, None, None);
    let mut found = Contraction { node, operands, bias, tuples, starts, axes, spec, convolution };
    found.write_along_n();
    let count = |dims: &[ContractDim]| dims.iter().map(|dim| dim.len).product::<usize>();
    let [batch, m, n, k] =
        [&found.spec.batch, &found.spec.m, &found.spec.n, &found.spec.k].map(|dims| count(dims));
    (m.min(n) >= MIN_SIDE && k >= 2 && batch * m * n * k >= MIN_WORK).then_some(found)
}

/// Where the elements of a node start that are addressed affinely from a place on; `None` if they are not.
fn start_of(graph: &Graph, indices: &Indices, node: NodeId, flat: &Index) -> Option<Start> {
    if indices.algebra.is_affine(flat) {
        return Some(None);
    }
    let &[(slot, place)] = &indices.places_in(std::slice::from_ref(flat))[..] else { return None };
    let terms = flat.terms.iter().filter(|term| term.0 != place).copied().collect();
    let bytes = usize::try_from(flat.coefficient(place)).ok()? * graph.dtype(node).size();
    let fits = indices.algebra.is_affine(&Index { constant: 0, terms })
        && bytes > 0
        && bytes.is_multiple_of(START);
    fits.then_some(Some((slot, u32::try_from(bytes).ok()?)))
}

/// What finds the contraction that a node is.
pub(super) type Recognizer = fn(&Graph, &mut Indices, NodeId) -> Option<Contraction>;

/// The contraction of halves whose sums, rounded to that half, are all that anybody needs of it:
/// `id` is the conversion. A library that rounds itself spares a kernel and the sums in memory.
/// `only` says of a node whether it has a single user and is not itself stored.
pub(crate) fn recognize_rounded(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    only: impl Fn(NodeId) -> bool,
    recognize: Recognizer,
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
    let mut found = recognize(graph, indices, x)?;
    let fits = found.spec.a == half && found.spec.b == half && found.spec.c == DType::F32;
    (found.node, found.spec.c) = (id, half);
    if let Some(convolution) = &mut found.convolution {
        convolution.computed = half;
    }
    fits.then_some(found)
}

/// The contraction that a node has the results of, perhaps rounded, if nobody needs them otherwise.
fn alone(
    graph: &Graph,
    indices: &mut Indices,
    mut x: NodeId,
    only: impl Fn(NodeId) -> bool,
) -> Option<Contraction> {
    while let (true, Node::Reshape { x: source }) = (only(x), graph.node(x)) {
        x = source;
    }
    match graph.node(x) {
        _ if !only(x) => None,
        Node::Cast { .. } => recognize_rounded(graph, indices, x, only, recognize),
        _ => recognize(graph, indices, x),
    }
}

/// The contraction whose results are wanted transposed, and perhaps rounded, by `id`, and by nobody in another
/// order: it stores them so, as the product of its operands' transposes. `only` is as above.
pub(crate) fn recognize_transposed(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    only: impl Fn(NodeId) -> bool,
) -> Option<Contraction> {
    let half = graph.dtype(id);
    let (mut turned, is_rounded) = match graph.node(id) {
        Node::Cast { x } if matches!(half, DType::F16 | DType::BF16) => (x, true),
        _ => (id, false),
    };
    while let (true, Node::Reshape { x }) = (is_rounded && only(turned), graph.node(turned)) {
        turned = x;
    }
    let Node::Permute { x, perm } = graph.node(turned) else { return None };
    let mut found = alone(graph, indices, x, &only)?;
    if is_rounded {
        let ContractSpec { a, b, c, .. } = &mut found.spec;
        if !only(turned) || [*a, *b, *c] != [half, half, DType::F32] {
            return None;
        }
        *c = half;
    }
    let (old, new) = (graph.shape(x).strides(), graph.shape(turned).strides());
    let of = perm.inverse(old.len());
    // By length and stride, which no two dimensions of a result have in common; `None` of what is several axes.
    let place = |len: usize, c: isize| {
        let is_it = |&axis: &usize| (graph.shape(x)[axis], old[axis] as isize) == (len, c);
        (0..old.len()).find(is_it).map(|axis| new[of[axis]] as isize)
    };
    let ContractSpec { batch, m, n, .. } = &mut found.spec;
    let n_batch = batch.len();
    let mut moved = Vec::new();
    for dim in batch.iter_mut().chain(m).chain(n) {
        let to = place(dim.len, dim.c)?;
        moved.push((std::mem::replace(&mut dim.c, to), to));
    }
    for (_, c) in &mut found.axes {
        *c = moved.iter().find(|(from, _)| from == c).map_or(*c, |&(_, to)| to);
    }
    found.write_along_n();
    found.node = id;
    (found.spec.batch.len() == n_batch).then_some(found)
}

/// The contraction to whose sums `id` adds a parameter's number for each position of n, if nobody needs the sums
/// alone: the results are rounded once. `only` is as above.
pub(crate) fn recognize_biased(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    only: impl Fn(NodeId) -> bool,
) -> Option<Contraction> {
    let Node::Binary { op: BinaryOp::Add, x, y } = graph.node(id) else { return None };
    let (atoms, tuple) = indices.axes(&graph.shape(id).clone());
    [(x, y), (y, x)].into_iter().find_map(|(sum, bias)| {
        let (bias, tuple) = through_movement(graph, indices, (bias, tuple));
        if !is_parameter(graph, bias) || graph.dtype(bias) != graph.dtype(id) {
            return None;
        }
        let mut found = alone(graph, indices, sum, &only)?;
        let columns: i64 = found.spec.n.iter().map(|dim| dim.len as i64).product();
        let flat = indices.flat(graph, bias, tuple);
        // The sums have the elements of `id` in the same order.
        let strides = graph.shape(id).strides();
        let long = (0..strides.len()).filter(|&axis| graph.shape(id)[axis] != 1);
        let mut along = long.zip(&atoms).map(|(axis, &atom)| {
            let (len, stride) = (graph.shape(id)[axis] as i64, strides[axis] as i64);
            let within = stride * len <= columns;
            let expected = if within { stride } else { 0 };
            (within || stride % columns == 0) && flat.coefficient(atom) == expected
        });
        let fits = along.all(|fits| fits)
            && flat.constant == 0
            && flat.terms.iter().all(|term| atoms.contains(&term.0))
            && found.spec.n.last().is_some_and(|dim| dim.c == 1);
        (found.node, found.bias, found.spec.bias) = (id, Some(bias), true);
        fits.then_some(found)
    })
}

/// Whether a node is kept from call to call, or converted from what is.
fn is_parameter(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id) {
        Node::Cast { x } => matches!(graph.node(x), Node::Leaf { .. }),
        node => matches!(node, Node::Leaf { .. }),
    }
}

/// The call of a library that computes what a kernel does, with the places of the call's arguments among
/// the kernel's: of a kernel that reads the operands of a contraction and writes its result, nothing else.
pub(super) fn call_of(graph: &Graph, lowered: &Lowered, caps: &Caps) -> Option<(Call, [u8; 3])> {
    let params = lowered.kernel.params();
    let mut writes = (0..params.len()).filter(|&slot| params[slot].access != Access::Read);
    let (3, Some(written), None) = (params.len(), writes.next(), writes.next()) else {
        return None;
    };
    let id = lowered.params[written];
    let mut ways: Vec<Recognizer> = vec![recognize];
    if caps.convolutions {
        let last = convolution::is_product(graph, &mut Indices::default(), id);
        ways.insert(usize::from(last), convolution::recognize);
    }
    let found = ways.into_iter().find_map(|recognize| {
        let indices = &mut Indices::default();
        let found = match graph.node(id) {
            Node::Cast { .. } => recognize_rounded(graph, indices, id, |_| true, recognize)?,
            _ => recognize(graph, indices, id)?,
        };
        let place = |node| lowered.params.iter().position(|&param| param == node);
        let [a, b] = found.operands.map(place);
        Some((found.call(), [a? as u8, b? as u8, written as u8]))
    });
    found.filter(|(_, [a, b, _])| a != b && lowered.vars.is_empty())
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
        sort_by_number(dims, |dim| -(dim.c as i128));
    }
    let merges = |pair: &[ContractDim]| pair[0].c == pair[1].c * pair[1].len as isize;
    while !spec.n.windows(2).all(merges) {
        spec.batch.push(spec.n.remove(0));
    }
    sort_by_number(&mut spec.batch, |dim| -(dim.c as i128));
}

/// The source of what moves elements, or widens them, at its tuple.
pub(super) fn below(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    tuple: TupleId,
) -> Option<(NodeId, TupleId)> {
    match graph.node(id) {
        Node::Cast { x } if is_widening(graph.dtype(x), graph.dtype(id)) => Some((x, tuple)),
        node => {
            indices.pull(graph, id, tuple).and_then(|pulled| Some((node.sources().next()?, pulled)))
        }
    }
}

/// Walks down movement ops other than padding.
pub(super) fn through_movement(
    graph: &Graph,
    indices: &mut Indices,
    (mut id, mut tuple): (NodeId, TupleId),
) -> (NodeId, TupleId) {
    loop {
        let node = graph.node(id);
        let pulled = match node {
            Node::Pad { .. } => None,
            _ => indices.pull(graph, id, tuple),
        };
        let Some(below) = pulled.zip(node.sources().next()) else { return (id, tuple) };
        (tuple, id) = below;
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

/// The deepest node below `id` whose addresses fit. Conversions that widen are left to the library.
pub(super) fn operand_by(
    graph: &Graph,
    indices: &mut Indices,
    (mut id, mut tuple): (NodeId, TupleId),
    fits: impl Fn(&Indices, NodeId, &Index) -> bool,
) -> Option<Operand> {
    let mut best = None;
    loop {
        let flat = indices.flat(graph, id, tuple);
        if fits(indices, id, &flat) {
            best = Some(Operand { node: id, tuple, flat });
        }
        let below = match graph.node(id) {
            Node::Const { .. } | Node::Argument { .. } | Node::Iota => return None,
            Node::Pad { .. } => None,
            _ => below(graph, indices, id, tuple),
        };
        let Some(below) = below else { return best };
        (id, tuple) = below;
    }
}

/// Whether a conversion is one from halves, or integers of 8 bits, to a dtype in which libraries sum their products.
pub(super) fn is_widening(from: DType, to: DType) -> bool {
    let halves = matches!((from, to), (DType::F16 | DType::BF16, DType::F32));
    halves || matches!((from, to), (DType::I8 | DType::U8, DType::I32))
}

#[cfg(test)]
mod tests {
    use crate::runtime::Device;
    use crate::testing::Null;
    use crate::{DType, Runtime, Tensor};

    fn device() -> Device {
        let runtime = Runtime::default();
        runtime.register(Null::default());
        runtime.device("null").unwrap()
    }

    fn realized(dims: &[usize], dtype: DType, device: &Device) -> Tensor {
        let x = Tensor::iota(dims.iter().product(), dtype, device).reshape(dims.to_vec()).unwrap();
        x.realize().unwrap();
        x
    }

    fn launches(y: &Tensor) -> Vec<String> {
        y.explain().unwrap().launches.into_iter().map(|launch| launch.name).collect()
    }

    #[test]
    fn a_library_adds_a_bias_that_is_a_parameter() {
        let device = device();
        for dtype in [DType::F32, DType::BF16] {
            let of = |dims: &[usize]| realized(dims, dtype, &device);
            let (bias, rows) = (of(&[48]), of(&[64, 1]));
            // A product that the program holds would be stored for itself.
            let product = || of(&[2, 64, 32]).matmul(&of(&[32, 48])).unwrap();
            let one = |y: &Tensor| {
                let found = launches(y);
                found.len() == 1 && found[0].ends_with("_bias")
            };
            let none = |y: &Tensor| !launches(y).iter().any(|name| name.contains("_bias"));
            let layer = product() + &bias;
            assert!(one(&layer), "{:?}", launches(&layer));
            assert!(one(&layer.reshape([128, 3, 16]).unwrap()));
            assert!(one(&(bias.reshape([1, 48]).unwrap() + product())));
            // What is added to rows, in another order, computed, or to sums that are needed alone.
            assert!(none(&(product() + &rows)));
            assert!(none(&(product() + bias.flip(0).unwrap())));
            assert!(none(&(product() + of(&[96]).slice(0, 1..49).unwrap())));
            assert!(none(&(product() + (&bias * 2.0 + &bias))));
            {
                let product = product();
                assert!(none(&(&product + &bias + &product)));
            }
            // With a conversion of a wider parameter.
            let wide = realized(&[48], DType::F32, &device);
            let found = launches(&(product() + wide.cast(dtype)));
            assert!(found.iter().any(|name| name.ends_with("_bias")), "{found:?}");
        }
    }

    #[test]
    fn a_library_stores_results_transposed_where_that_is_a_product_still() {
        let device = device();
        for dtype in [DType::F32, DType::BF16] {
            let of = |dims: &[usize]| realized(dims, dtype, &device);
            let (x, w, dy) = (of(&[128, 32]), of(&[32, 48]).tracked(), of(&[128, 48]));
            // A product that the program holds would be stored for itself.
            let transposed = x.matmul(&w).unwrap().t();
            let found = launches(&transposed);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].starts_with("contract_1x48x128x32"), "{found:?}");
            let product = x.matmul(&w).unwrap();
            let gradients = product.grad_with(&dy, &[&w]).unwrap();
            let found = launches(gradients[0].as_ref().unwrap());
            assert_eq!(found.len(), 1, "{found:?}");
            // Heads that come before positions would be a batch.
            let heads = product.reshape([2, 64, 4, 12]).unwrap().permute([0, 2, 1, 3]).unwrap();
            assert!(launches(&heads)[0].starts_with("contract_1x128x48x32"));
        }
    }
}
