//! Recognising attention and its gradients: contractions around a matrix that is never stored.
//!
//! The forward pass is `sum over j of (exp(s - f(top)) * g) * v`, where `s[.., i, j]` is any
//! elementwise function of one contraction (scaled, masked, biased), `top` its maximum over `j`,
//! and `g` any function of a row, usually the reciprocal of the sum of the exponentials. As the
//! maximum and that sum can be corrected when a block of columns changes them, the exponentials
//! never have to exist all at once (Milakov and Gimelshein 2018), so the matrix of the scores is
//! computed block by block ([`FlashSpec`]) and memory stays linear in the length of a sequence.
//!
//! The backward pass multiplies elementwise functions of such matrices with keys, queries or
//! gradients. They follow from products that are computed again and from values of rows that the
//! forward pass stores besides its result (Dao et al. 2022). That is more arithmetic than storing
//! the matrix, so it is done only where the matrix is large.
//!
//! Halves are multiplied by halves: where the graph rounds the middle before the last contraction,
//! a flash attention does so if it has matrix instructions that want it ([`warps`]). Others
//! multiply what they have, unrounded.
//!
//! Index expressions tell rows from columns, so heads, groups of heads and movement ops in between
//! may be arranged in any way whose addresses are affine; where generated code loads operands, rows and
//! columns may be two dimensions that do not merge, as those of heads that share keys. What is in the
//! middle is computed by each flash attention that needs it; if anybody else needs it, it is stored.

pub(super) mod dot_product;
pub(super) mod library;
mod partition;
pub(super) mod scalar;
pub(super) mod warps;

use super::contract::{operand_by, through_movement};
use super::pull::{Indices, TupleId};
use crate::affine::{Algebra, Atom, AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::{Caps, Flash, FlashOperand, FlashSpec, FlashSum, FlashTile};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use dot_product::DotProduct;
use rustc_hash::{FxHashMap, FxHashSet};

/// A value at an index tuple.
pub(crate) type At = (NodeId, TupleId);

/// Contractions whose middle is not stored.
#[derive(Clone, Debug)]
pub(crate) struct FlashAttention {
    /// What is stored: the last contraction, or what rounds it.
    pub(crate) node: NodeId,
    /// The last contraction, and the counters of its axes. The elements of the two lie at the same
    /// places.
    pub(crate) sum: NodeId,
    pub(crate) tuple: TupleId,
    /// What a library kernel is asked for.
    pub(crate) spec: FlashSpec,
    /// The nodes that are stored and read as the spec's operands, and where their elements are.
    pub(crate) operands: Vec<NodeId>,
    pub(crate) addresses: Vec<Index>,
    /// The counters that each tile sums over.
    pub(crate) inner: Vec<Vec<AtomId>>,
    /// The counters that are the batch, the rows, the columns and the rest of the result.
    pub(crate) batch: Vec<AtomId>,
    pub(crate) row: AtomId,
    pub(crate) column: AtomId,
    pub(crate) width: Vec<AtomId>,
    /// The first contractions: what tiles hold.
    pub(crate) tiles: Vec<At>,
    pub(crate) middle: Middle,
    /// Where the middle is not hidden by the band, if that is known.
    pub(crate) seen: Option<At>,
    /// Further sums of the same tiles, in counters of this flash attention.
    pub(crate) beside: Vec<Beside>,
    /// The half that the middle is rounded to.
    pub(crate) rounded: Option<DType>,
    /// What the kernels need beyond the chain.
    pub(crate) leaves: Vec<At>,
    /// The nodes of the middle, which the kernels compute even if somebody stores them.
    pub(crate) inside: FxHashSet<NodeId>,
    /// What it is called if it is what libraries call attention.
    pub(crate) dot_product: Option<DotProduct>,
}

/// A sum that shares the tiles of flash attention: its operand and its axes are the last ones of
/// the spec.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) node: NodeId,
    pub(crate) sum: NodeId,
    pub(crate) tuple: TupleId,
    pub(crate) width: Vec<AtomId>,
    /// What is multiplied with the operand.
    pub(crate) value: At,
}

/// What is between the contractions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Middle {
    /// A softmax along the columns.
    Softmax(Softmax),
    /// A function of the tiles and of rows and columns.
    Values(At),
}

/// The values in the middle of the forward pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    /// The scores as they enter the softmax.
    pub(crate) scores: At,
    /// Their maximum, and what is subtracted.
    pub(crate) top: At,
    pub(crate) shift: At,
    /// The sum of the exponentials, if something asks for it.
    pub(crate) sum: Option<At>,
    /// What the exponentials are multiplied with, or divided by.
    pub(crate) scale: At,
    pub(crate) divides: bool,
}

/// Fewest columns worth flash attention: below, scores are no more than keys.
const MIN_COLUMNS: usize = 64;
const MIN_ROWS: usize = 8;
/// Most nodes in the middle of a chain.
const MAX_INSIDE: usize = 64;
/// Most ops, one behind another, of what is computed from counters and not loaded.
const COUNTED: usize = 3;
/// How many times smaller than the middle a value is that is no part of it.
const SMALLER: usize = 8;

/// How a device runs flash attention.
pub(crate) fn flash_caps(caps: &Caps) -> Option<Flash> {
    caps.flash.or(caps.simt.then_some(Flash::THREADS))
}

/// The flash attention that ends in the sum `id`, or in its conversion to a half, if there is one.
/// `demanded` says whether somebody asks for a node already, `only` whether it has one user and is
/// not stored.
pub(crate) fn recognize(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    caps: &Caps,
    demanded: &dyn Fn(NodeId) -> bool,
    only: &dyn Fn(NodeId) -> bool,
) -> Option<FlashAttention> {
    let by_caps = flash_caps(caps)?;
    let (sum, is_rounded) = match graph.node(id) {
        Node::Cast { x } if warps::may_round(graph.dtype(id), caps) => {
            (sum_of(graph, x, only)?, true)
        }
        _ => (id, false),
    };
    let Node::Reduce { op: BinaryOp::Add, axes, x } = graph.node(sum) else { return None };
    let acc = graph.dtype(sum);
    let reduced: Vec<usize> = axes_of(axes).filter(|&axis| graph.shape(x)[axis] != 1).collect();
    let (&[axis], DType::F32 | DType::F64) = (&reduced[..], acc) else { return None };
    let columns = graph.shape(x)[axis];
    if columns < MIN_COLUMNS {
        return None;
    }
    let (_, tuple) = indices.axes(&graph.shape(sum).clone());
    let (source, column) = indices.open_reduce(graph, x, axes, tuple);
    let &[column] = &column[..] else { return None };
    let product = through_movement(graph, indices, (x, source));
    let Node::Binary { op: BinaryOp::Mul, x: p, y: q } = graph.node(product.0) else { return None };
    let (p, q) = ((p, product.1), (q, product.1));
    let mut find = Finder { graph, indices, column, splits: false };
    let [p, q] = [p, q].map(|at| find.moved(at));
    let bytes = |at: At| graph.shape(at.0).numel() as u64 * graph.dtype(at.0).size() as u64;
    [(p, q), (q, p)].into_iter().find_map(|(middle, other)| {
        let size = bytes(middle);
        let (middle, rounded) = find.unrounded(middle);
        let found = find.weights(middle).and_then(|weights| find.softmax(weights));
        let is_softmax = found.is_some();
        let large_for = |flash_caps: Flash| {
            size >= if is_softmax { flash_caps.least } else { flash_caps.large }
        };
        let for_warps = rounded.is_some_and(|r| warps::may_round(r.half, caps));
        if !(large_for(by_caps) && !is_rounded || for_warps && large_for(Flash::WARPS)) {
            return None;
        }
        let mut chain = match found {
            Some(softmax) => find.forward(middle, softmax)?,
            None => find.backward(middle)?,
        };
        chain.walk.inside.extend(rounded.iter().flat_map(|r| r.casts));
        if chain.walk.inside.iter().any(|&x| demanded(x) && !chain.may_be_stored(x)) {
            return None;
        }
        find.splits = !by_caps.library;
        let roles = find.roles(&chain, other, tuple);
        let splits = std::mem::take(&mut find.splits);
        let roles = roles.or_else(|| splits.then(|| find.roles(&chain, other, tuple)).flatten())?;
        let half = rounded.map(|r| r.half);
        let flash =
            find.flash((id, sum, tuple), chain, roles, (acc, columns, half), by_caps.block)?;
        let fits = large_for(by_caps) && !is_rounded || warps::Blocks::of(&flash, caps).is_some();
        fits.then_some(flash)
    })
}

/// What is rounded, through reshapes, if it is for nothing else.
fn sum_of(graph: &Graph, mut x: NodeId, only: &dyn Fn(NodeId) -> bool) -> Option<NodeId> {
    loop {
        match graph.node(x) {
            _ if !only(x) => return None,
            Node::Reshape { x: source } => x = source,
            Node::Reduce { .. } => return Some(x),
            _ => return None,
        }
    }
}

/// Two conversions, to a half and back.
#[derive(Clone, Copy)]
struct Rounded {
    half: DType,
    casts: [NodeId; 2],
}

/// What a walk through the middle of a chain found.
#[derive(Debug, Default)]
struct Walk {
    tiles: Vec<At>,
    leaves: Vec<At>,
    inside: FxHashSet<NodeId>,
    exponential: bool,
}

/// A chain without its last contraction.
#[derive(Debug)]
struct Chain {
    middle: Middle,
    /// A value at the place of the middle's elements.
    at: At,
    walk: Walk,
}

impl Chain {
    /// Whether the forward pass can store a node besides its result.
    fn may_be_stored(&self, x: NodeId) -> bool {
        match &self.middle {
            Middle::Softmax(softmax) => softmax.rows().any(|at| at.0 == x),
            Middle::Values(_) => false,
        }
    }
}

impl FlashAttention {
    /// One flash attention for the sums of two whose tiles are the same, or some of the same.
    pub(crate) fn joined(
        &self,
        other: &FlashAttention,
        indices: &mut Indices,
    ) -> Option<FlashAttention> {
        let (host, guest) = match self.tiles.len() < other.tiles.len() {
            true => (other, self),
            false => (self, other),
        };
        let (a, b) = (&host.spec, &guest.spec);
        let Middle::Values(value) = guest.middle else { return None };
        let alike = matches!(host.middle, Middle::Values(_))
            && host.beside.is_empty()
            && guest.beside.is_empty()
            && (a.acc, &a.batch, a.rows, a.columns, a.band, a.period)
                == (b.acc, &b.batch, b.rows, b.columns, b.band, b.period)
            && host.rounded == guest.rounded;
        if !alike {
            return None;
        }
        let mut by = FxHashMap::default();
        let mut same = |from: &[AtomId], to: &[AtomId]| {
            let pairs = from.iter().zip(to);
            by.extend(pairs.map(|(&from, &to)| (from, indices.algebra.of(to))));
        };
        same(&guest.batch, &host.batch);
        same(&[guest.row, guest.column], &[host.row, host.column]);
        for (i, tile) in b.tiles.iter().enumerate() {
            let operands =
                |flash: &FlashAttention, i: usize| [2 * i, 2 * i + 1].map(|i| flash.operands[i]);
            let found = (0..a.tiles.len())
                .find(|&j| a.tiles[j] == *tile && operands(host, j) == operands(guest, i));
            same(&guest.inner[i], &host.inner[found?]);
        }
        let mut moved = |at: At| (at.0, indices.substitute(at.1, &by));
        if !guest.tiles.iter().all(|&tile| host.tiles.contains(&moved(tile))) {
            return None;
        }
        let mut flash = host.clone();
        let leaves: Vec<At> = guest.leaves.iter().map(|&leaf| moved(leaf)).collect();
        flash.leaves.extend(leaves.into_iter().filter(|leaf| !host.leaves.contains(leaf)));
        flash.inside.extend(&guest.inside);
        flash.beside.push(Beside {
            node: guest.node,
            sum: guest.sum,
            tuple: moved((guest.sum, guest.tuple)).1,
            width: guest.width.clone(),
            value: moved(value),
        });
        flash.spec.sums.extend(b.sums.clone());
        flash.operands.extend(guest.operands.last());
        let address = guest.addresses.last().map(|x| indices.algebra.substitute(x, &by));
        flash.addresses.extend(address);
        Some(flash)
    }

    /// What the last contractions make: of the flash attention, then of those beside it.
    pub(crate) fn sums(&self) -> impl Iterator<Item = (NodeId, NodeId, TupleId, &[AtomId])> {
        let own = (self.node, self.sum, self.tuple, &self.width[..]);
        let beside = self.beside.iter().map(|x| (x.node, x.sum, x.tuple, &x.width[..]));
        std::iter::once(own).chain(beside)
    }
}

impl Softmax {
    /// The values of rows that others may ask for.
    pub(crate) fn rows(&self) -> impl Iterator<Item = At> + use<> {
        let all = [Some(self.top), Some(self.shift), self.sum, Some(self.scale)];
        all.into_iter().flatten()
    }
}

/// The factors of the weights: exponentials and what follows from the row.
struct Weights {
    exp: At,
    scale: At,
    divides: bool,
}

/// Which counters are what.
struct Roles {
    batch: Vec<AtomId>,
    row: AtomId,
    width: Vec<AtomId>,
    /// The operands along rows and along columns of each tile, and the counters it sums over.
    tiles: Vec<([Address; 2], Vec<AtomId>)>,
    /// The operand of the last contraction.
    other: Address,
}

/// An operand and where its elements are.
type Address = (NodeId, Index);

/// Where a condition between the positions of rows and columns holds ([`FlashSpec`]).
struct Band {
    limits: [Option<i64>; 2],
    period: [usize; 2],
    /// What is true there.
    seen: At,
}

struct Finder<'a> {
    graph: &'a Graph,
    indices: &'a mut Indices,
    column: AtomId,
    /// Whether addresses may take a counter apart.
    splits: bool,
}

impl Finder<'_> {
    fn moved(&mut self, at: At) -> At {
        through_movement(self.graph, self.indices, at)
    }

    /// A value before it was rounded to a half and widened again.
    fn unrounded(&mut self, at: At) -> (At, Option<Rounded>) {
        let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        let Node::Cast { x } = self.graph.node(at.0) else { return (at, None) };
        let inner = self.moved((x, at.1));
        let half = self.graph.dtype(inner.0);
        match self.graph.node(inner.0) {
            Node::Cast { x } if is_half(half) && self.graph.dtype(x) == self.graph.dtype(at.0) => {
                let casts = [at.0, inner.0];
                (self.moved((x, inner.1)), Some(Rounded { half, casts }))
            }
            _ => (at, None),
        }
    }

    /// Whether the tuple changes from column to column.
    fn varies(&self, at: At) -> bool {
        self.counters(at.1).contains(&self.column)
    }

    /// The counters in a tuple.
    fn counters(&self, tuple: TupleId) -> Vec<AtomId> {
        let mut list = Vec::new();
        self.indices.visit_axes(tuple, |axis| {
            if !list.contains(&axis) {
                list.push(axis);
            }
        });
        list
    }

    /// `at` as exponentials times, or over, something that does not vary along columns.
    fn weights(&mut self, at: At) -> Option<Weights> {
        let (node, tuple) = self.moved(at);
        let Node::Binary { op, x, y } = self.graph.node(node) else { return None };
        let (x, y) = (self.moved((x, tuple)), self.moved((y, tuple)));
        let is_exp = |at: At| matches!(self.graph.node(at.0), Node::Unary { op: UnaryOp::Exp, .. });
        let found = match op {
            BinaryOp::Mul if is_exp(x) => Weights { exp: x, scale: y, divides: false },
            BinaryOp::Mul if is_exp(y) => Weights { exp: y, scale: x, divides: false },
            BinaryOp::Div if is_exp(x) => Weights { exp: x, scale: y, divides: true },
            _ => return None,
        };
        (self.varies(found.exp) && !self.varies(found.scale)).then_some(found)
    }

    /// The values of a softmax that these weights are.
    fn softmax(&mut self, weights: Weights) -> Option<Softmax> {
        let Weights { exp, scale, divides } = weights;
        let Node::Unary { x, .. } = self.graph.node(exp.0) else { return None };
        let (node, tuple) = self.moved((x, exp.1));
        let Node::Binary { op: BinaryOp::Sub, x, y } = self.graph.node(node) else { return None };
        let (scores, shift) = (self.moved((x, tuple)), self.moved((y, tuple)));
        let top = self.shift(shift)?;
        if self.reduced(top, BinaryOp::Max)? != scores {
            return None;
        }
        // The sum is wherever the factor of a row has it.
        let mut sum = None;
        let mut seen = FxHashSet::default();
        let mut stack = vec![scale];
        while let Some(at) = stack.pop() {
            let at = self.moved(at);
            if at == top || !seen.insert(at) {
                continue;
            }
            if seen.len() > MAX_INSIDE {
                return None;
            }
            let node = self.graph.node(at.0);
            if let Node::Reduce { op: BinaryOp::Add, .. } = node
                && self.reduced(at, BinaryOp::Add) == Some(exp)
            {
                sum = Some(at);
            } else if node.is_elementwise() {
                stack.extend(node.sources().map(|x| (x, at.1)));
            }
        }
        Some(Softmax { scores, top, shift, sum, scale, divides })
    }

    /// The forward pass with this softmax.
    fn forward(&mut self, at: At, softmax: Softmax) -> Option<Chain> {
        let mut walk = self.walk(softmax.scores, softmax.scores)?;
        if walk.tiles.len() != 1 {
            return None;
        }
        // What the factor of a row follows from.
        let given = [Some(softmax.top), softmax.sum];
        let mut seen = FxHashSet::default();
        let mut stack = vec![softmax.scale];
        while let Some(at) = stack.pop() {
            let at = self.moved(at);
            if given.contains(&Some(at)) || !seen.insert(at) {
                continue;
            }
            let node = self.graph.node(at.0);
            match node.is_elementwise() && seen.len() < MAX_INSIDE {
                true => {
                    walk.inside.insert(at.0);
                    stack.extend(node.sources().map(|x| (x, at.1)));
                }
                false if matches!(node, Node::Reduce { .. }) => return None,
                false => walk.leaves.push(at),
            }
        }
        // All that is as large as the scores.
        walk.inside.extend(self.walk(at, softmax.scores)?.inside);
        walk.inside.extend(softmax.rows().map(|at| at.0));
        Some(Chain { middle: Middle::Softmax(softmax), at: softmax.scores, walk })
    }

    /// A part of the backward pass with this as its middle.
    fn backward(&mut self, at: At) -> Option<Chain> {
        let walk = self.walk(at, at)?;
        let fits = walk.exponential && !walk.tiles.is_empty() && !walk.tiles.contains(&at);
        fits.then_some(Chain { middle: Middle::Values(at), at, walk })
    }

    /// Walks from a value as large as `whole` to the tiles and leaves that it follows from.
    fn walk(&mut self, from: At, whole: At) -> Option<Walk> {
        let large = self.graph.shape(whole.0).numel();
        let mut walk = Walk::default();
        let mut seen = FxHashSet::default();
        let mut stack = vec![from];
        while let Some(at) = stack.pop() {
            let at = self.through(at, &mut walk.inside);
            if !seen.insert(at) {
                continue;
            }
            if seen.len() > MAX_INSIDE {
                return None;
            }
            let node = self.graph.node(at.0);
            let small = self.graph.shape(at.0).numel().saturating_mul(SMALLER) <= large
                && !is_of_counters(self.graph, at.0, COUNTED);
            if small || !self.varies(at) {
                walk.leaves.push(at);
            } else if matches!(node, Node::Reduce { op: BinaryOp::Add, .. })
                && self.counters(at.1).len() > 1
                && self.factors(at).is_some()
            {
                walk.inside.insert(at.0);
                walk.tiles.push(at);
            } else if node.is_elementwise() {
                walk.exponential |= matches!(node, Node::Unary { op: UnaryOp::Exp, .. });
                walk.inside.insert(at.0);
                stack.extend(node.sources().map(|x| (x, at.1)));
            } else {
                walk.leaves.push(at);
            }
        }
        Some(walk)
    }

    /// Through movement ops, which are noted.
    fn through(&mut self, mut at: At, inside: &mut FxHashSet<NodeId>) -> At {
        loop {
            let node = self.graph.node(at.0);
            if matches!(node, Node::Pad { .. }) {
                return at;
            }
            let Some(tuple) = self.indices.pull(self.graph, at.0, at.1) else { return at };
            let Some(source) = node.sources().next() else { return at };
            inside.insert(at.0);
            at = (source, tuple);
        }
    }

    /// The maximum that is subtracted: itself, or with zero in the place of minus infinity.
    fn shift(&mut self, at: At) -> Option<At> {
        let (node, tuple) = at;
        match self.graph.node(node) {
            Node::Reduce { op: BinaryOp::Max, .. } => Some(at),
            Node::Ternary { op: TernaryOp::Where, x, y, z } => {
                let (cond, zero) = (self.moved((x, tuple)), self.moved((y, tuple)));
                let top = self.moved((z, tuple));
                let is_max =
                    matches!(self.graph.node(top.0), Node::Reduce { op: BinaryOp::Max, .. });
                let fits = is_max && self.is_bottom(cond, top) && self.number(zero) == Some(0.0);
                fits.then_some(top)
            }
            _ => None,
        }
    }

    fn number(&self, at: At) -> Option<f64> {
        let Node::Const { bits } = self.graph.node(at.0) else { return None };
        Some(Scalar::from_bits(self.graph.dtype(at.0), bits).to_f64())
    }

    /// What a reduction along the columns reduces, at the columns' counter.
    fn reduced(&mut self, at: At, op: BinaryOp) -> Option<At> {
        let Node::Reduce { op: own, axes, x } = self.graph.node(at.0) else { return None };
        let reduced: Vec<usize> =
            axes_of(axes).filter(|&axis| self.graph.shape(x)[axis] != 1).collect();
        let &[axis] = &reduced[..] else { return None };
        let columns = self.indices.extent(self.column);
        if own != op || self.graph.shape(x)[axis] != columns || self.varies(at) {
            return None;
        }
        let mut tuple = self.indices.get(at.1).to_vec();
        tuple[axis] = self.indices.algebra.of(self.column);
        let tuple = self.indices.intern(tuple);
        Some(self.moved((x, tuple)))
    }

    /// The stored operands of a contraction with their addresses, and the counters it sums over.
    fn factors(&mut self, at: At) -> Option<([(NodeId, Index); 2], Vec<AtomId>)> {
        let Node::Reduce { axes, x, .. } = self.graph.node(at.0) else { return None };
        let (source, inner) = self.indices.open_reduce(self.graph, x, axes, at.1);
        let product = through_movement(self.graph, self.indices, (x, source));
        let Node::Binary { op: BinaryOp::Mul, x, y } = self.graph.node(product.0) else {
            return None;
        };
        let (a, b) = (self.operand((x, product.1))?, self.operand((y, product.1))?);
        Some(([a, b], inner))
    }

    /// What is stored and read as an operand, and where its elements are.
    fn operand(&mut self, at: At) -> Option<Address> {
        let splits = self.splits;
        let fits = |indices: &Indices, _, flat: &Index| {
            indices.algebra.is_affine(flat) || splits && is_split(&indices.algebra, flat)
        };
        Some(operand_by(self.graph, self.indices, at, fits)?.address())
    }

    /// Whether a counter moves an address.
    fn moves(&self, address: &Address, axis: AtomId) -> bool {
        let mut moves = false;
        self.indices.algebra.visit_axes(&address.1, &mut |of| moves |= of == axis);
        moves
    }

    /// Sorts the counters by what they move.
    fn roles(&mut self, chain: &Chain, other: At, out: TupleId) -> Option<Roles> {
        let other = self.operand(other)?;
        let mut tiles = Vec::new();
        for &tile in &chain.walk.tiles {
            let ([mut a, mut b], inner) = self.factors(tile)?;
            if self.moves(&a, self.column) {
                std::mem::swap(&mut a, &mut b);
            }
            tiles.push(([a, b], inner));
        }
        let own = self.counters(chain.at.1);
        let all = self.counters(out);
        let still =
            |axis| !self.moves(&other, axis) && tiles.iter().all(|t| !self.moves(&t.0[1], axis));
        let rows = all.iter().filter(|&&axis| own.contains(&axis) && still(axis));
        let row = *rows.max_by_key(|&&axis| self.indices.extent(axis))?;
        let width: Vec<AtomId> = all.iter().copied().filter(|a| !own.contains(a)).collect();
        let batch: Vec<AtomId> =
            all.iter().copied().filter(|&a| own.contains(&a) && a != row).collect();
        let algebra = &self.indices.algebra;
        let known = |x: &Address, also: &[AtomId], axis: AtomId| {
            let known = |a: &AtomId| {
                batch.contains(a)
                    || also.contains(a)
                    || *a == axis
                    || split_of(algebra, *a) == Some(axis)
            };
            x.1.terms.iter().all(|term| known(&term.0))
        };
        let tile_fits = |([a, b], inner): &([Address; 2], Vec<AtomId>)| {
            known(a, inner, row) && known(b, inner, self.column) && self.moves(b, self.column)
        };
        let fits = tiles.iter().all(|tile| tile_fits(tile) && !tile.1.is_empty())
            && known(&other, &width, self.column)
            && self.moves(&other, self.column)
            && self.indices.extent(row) >= MIN_ROWS
            && !width.is_empty();
        fits.then_some(Roles { batch, row, width, tiles, other })
    }

    fn flash(
        &mut self,
        (node, sum, tuple): (NodeId, NodeId, TupleId),
        chain: Chain,
        roles: Roles,
        (acc, columns, rounded): (DType, usize, Option<DType>),
        block: [usize; 2],
    ) -> Option<FlashAttention> {
        let Roles { batch, row, width, tiles, other } = roles;
        let floats = [DType::F16, DType::BF16, DType::F32, DType::F64];
        let describe = |this: &Self, (node, address): &Address, along: AtomId, inner: &[AtomId]| {
            let dtype = this.graph.dtype(*node);
            let fits = floats.contains(&dtype) && dtype.size() <= acc.size();
            let stride = |&axis: &AtomId| address.coefficient(axis) as isize;
            fits.then(|| FlashOperand {
                dtype,
                offset: address.constant as isize,
                batch: batch.iter().map(stride).collect(),
                along: stride(&along),
                inner: inner.iter().map(|a| (this.indices.extent(*a), stride(a))).collect(),
            })
        };
        let (mut described, mut operands, mut addresses) = (Vec::new(), Vec::new(), Vec::new());
        for ([a, b], inner) in &tiles {
            operands.extend([a.0, b.0]);
            addresses.extend([a.1.clone(), b.1.clone()]);
            let (a, b) = (describe(self, a, row, inner)?, describe(self, b, self.column, inner)?);
            described.push(FlashTile { a, b });
        }
        operands.push(other.0);
        addresses.push(other.1.clone());
        let values = describe(self, &other, self.column, &width)?;
        let Chain { middle, at, walk } = chain;
        let dtypes = walk.tiles.iter().chain([&at]).map(|at| self.graph.dtype(at.0));
        if dtypes.into_iter().any(|dtype| dtype != acc) {
            return None;
        }
        let rows = self.indices.extent(row);
        let limits = |n: usize, most: usize| match most {
            0..16 => most,
            _ => n.div_ceil(n.div_ceil(most)).next_multiple_of(16),
        };
        let number = |x: f64| Scalar::from_f64(acc, x);
        let (spare, tile, state) = match middle {
            // Each pass over a tile leaves its results in the other one.
            Middle::Softmax(softmax) => {
                let tile = usize::from(softmax.scores == walk.tiles[0]);
                (1, tile, vec![number(f64::NEG_INFINITY), number(0.0)])
            }
            Middle::Values(_) => (0, 0, Vec::new()),
        };
        let hidden = if matches!(middle, Middle::Softmax(_)) { f64::NEG_INFINITY } else { 0.0 };
        // Each period of columns is walked by itself; a softmax walks all at once.
        let found = self.band(at, row, hidden).filter(|band| {
            let period = band.period[1];
            let apart = period >= MIN_COLUMNS && columns.is_multiple_of(period);
            period == columns || apart && matches!(middle, Middle::Values(_))
        });
        let spec = FlashSpec {
            acc,
            batch: batch.iter().map(|&axis| self.indices.extent(axis)).collect(),
            rows,
            columns,
            tiles: described,
            spare,
            sums: vec![FlashSum { tile, b: values }],
            state,
            block: [limits(rows, block[0]), limits(columns, block[1])],
            band: found.as_ref().map_or([None, None], |band| band.limits),
            period: found.as_ref().map_or([rows, columns], |band| band.period),
        };
        let dot_product = match (middle, rounded) {
            (Middle::Softmax(softmax), Some(_)) => {
                self.dot_product(&softmax, walk.tiles[0], &found)
            }
            _ => None,
        };
        let seen = found.map(|band| band.seen);
        let (column, inner) = (self.column, tiles.into_iter().map(|tile| tile.1).collect());
        let Walk { tiles, leaves, inside, .. } = walk;
        Some(FlashAttention {
            node,
            sum,
            tuple,
            spec,
            operands,
            addresses,
            inner,
            batch,
            row,
            column,
            width,
            tiles,
            middle,
            seen,
            beside: Vec::new(),
            rounded,
            leaves,
            inside,
            dot_product,
        })
    }

    /// The band outside of which a value is `hidden`, zero or minus infinity.
    fn band(&mut self, at: At, row: AtomId, hidden: f64) -> Option<Band> {
        let (node, tuple) = self.moved(at);
        let (sources, hidden) = match self.graph.node(node) {
            Node::Ternary { op: TernaryOp::Where, y, z, .. } => {
                if let Some(found) = self.causal((node, tuple), row, hidden) {
                    return Some(found);
                }
                let other = self.moved((z, tuple));
                let zero = hidden == 0.0 && self.number(other) == Some(0.0);
                ([zero.then_some(y), None], hidden)
            }
            Node::Binary { op: BinaryOp::Mul, x, y } if hidden == 0.0 => ([Some(x), Some(y)], 0.0),
            Node::Binary { op: BinaryOp::Sub, x, .. } if hidden != 0.0 => ([Some(x), None], hidden),
            Node::Unary { op: UnaryOp::Exp, x } if hidden == 0.0 => {
                ([Some(x), None], f64::NEG_INFINITY)
            }
            _ => ([None, None], hidden),
        };
        sources.into_iter().flatten().find_map(|x| self.band((x, tuple), row, hidden))
    }

    /// The band where a choice is not `hidden`.
    fn causal(&mut self, (node, tuple): At, row: AtomId, hidden: f64) -> Option<Band> {
        let Node::Ternary { x, z, .. } = self.graph.node(node) else { return None };
        let (seen, other) = (self.moved((x, tuple)), self.moved((z, tuple)));
        let Node::Binary { op: BinaryOp::Le, x, y } = self.graph.node(seen.0) else { return None };
        let (x, y) = (self.position((x, seen.1))?, self.position((y, seen.1))?);
        if self.number(other) != Some(hidden) {
            return None;
        }
        let (along, limit) = (self.column, y.constant - x.constant);
        let found = match (self.period(&x, along), self.period(&y, row)) {
            (Some(columns), Some(rows)) => ([None, Some(limit)], [rows, columns]),
            _ => ([Some(-limit), None], [self.period(&x, row)?, self.period(&y, along)?]),
        };
        let (limits, period) = found;
        Some(Band { limits, period, seen })
    }

    /// After how many elements of a counter an index begins again, if it is the counter and a
    /// constant.
    fn period(&self, x: &Index, axis: AtomId) -> Option<usize> {
        let &[(atom, 1)] = x.terms.as_slice() else { return None };
        match self.indices.algebra.atom(atom) {
            _ if atom == axis => Some(self.indices.extent(axis)),
            Atom::Mod(of, by) if *of == self.indices.algebra.of(axis) => Some(*by as usize),
            _ => None,
        }
    }

    /// The position that an element of a running number is.
    fn position(&mut self, at: At) -> Option<Index> {
        let at = self.moved(at);
        match self.graph.node(at.0) {
            Node::Iota => Some(self.indices.get(at.1)[0].clone()),
            _ => None,
        }
    }
}

/// The counter that an atom is the quotient or the rest of.
fn split_of(algebra: &Algebra, atom: AtomId) -> Option<AtomId> {
    let (Atom::Div(of, _) | Atom::Mod(of, _)) = algebra.atom(atom) else { return None };
    of.single().filter(|&(_, by)| by == 1).map(|(axis, _)| axis)
}

/// Whether an address is affine in counters and in quotients and rests of them.
fn is_split(algebra: &Algebra, address: &Index) -> bool {
    address.terms.iter().all(|&(atom, _)| match algebra.atom(atom) {
        Atom::Axis { .. } => true,
        Atom::Opaque { .. } => false,
        Atom::Div(..) | Atom::Mod(..) => split_of(algebra, atom).is_some(),
    })
}

/// Whether a value follows from counters alone, by few ops.
fn is_of_counters(graph: &Graph, id: NodeId, most: usize) -> bool {
    let node = graph.node(id);
    match node {
        Node::Iota | Node::Const { .. } => true,
        Node::Reshape { .. } | Node::Expand { .. } | Node::Permute { .. } => {
            node.sources().all(|x| is_of_counters(graph, x, most))
        }
        _ if node.is_elementwise() && most > 0 => {
            node.sources().all(|x| is_of_counters(graph, x, most - 1))
        }
        _ => false,
    }
}
