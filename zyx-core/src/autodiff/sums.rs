//! Sums of cotangents.
//!
//! A weight that every step of a recurrence multiplies by has as many cotangents as there are steps,
//! each a product of few rows. Their sum is one product of all rows: `a1 b1 + a2 b2` is `[a1 a2]` times `[b1 b2]`
//! stacked. What steps cut out of one tensor comes back padded; the sum of pieces side by side is their
//! concatenation.

use crate::graph::{Op, Perm};
use crate::ops::BinaryOp;
use crate::shape::Shape;
use crate::tensor::{Expr, History, Tensor};
use smallvec::SmallVec;

/// Products that are worth being stacked.
const MANY: usize = 8;
/// Pieces that are joined in one step.
const AT_ONCE: usize = 16;
/// Most axes of a tensor.
const MAX_RANK: usize = 16;

/// Cotangents of one tensor.
pub(super) type Parts = SmallVec<[Tensor; 1]>;

/// The sum of cotangents, in order but for products and pieces that are joined; `None` of none.
#[track_caller]
pub(super) fn sum(parts: Parts) -> Option<Tensor> {
    if parts.len() < MANY {
        return added(parts);
    }
    if let Some(whole) = concatenated(&parts) {
        return Some(whole);
    }
    // Products of one kind each, and what is none.
    let (mut kinds, mut rest): (Vec<Vec<Product>>, Parts) = Default::default();
    for part in parts {
        match Product::of(&part) {
            None => rest.push(part),
            Some(product) => match kinds.iter_mut().find(|kind| kind[0].is_like(&product)) {
                Some(kind) => kind.push(product),
                None => kinds.push(vec![product]),
            },
        }
    }
    for kind in kinds {
        if kind.len() < MANY {
            rest.extend(kind.into_iter().map(|product| product.part));
        } else {
            rest.push(Product::joined(&kind));
        }
    }
    added(rest)
}

#[track_caller]
fn added(parts: Parts) -> Option<Tensor> {
    parts.into_iter().reduce(|sum, part| sum.combine(BinaryOp::Add, &part))
}

/// How a pending tensor is computed.
fn expr(x: &Tensor) -> Option<Expr> {
    if x.is_realized() {
        return None;
    }
    match &*x.history() {
        History::Expr(expr) => Some(expr.clone()),
        _ => None,
    }
}

/// Pieces along one axis that leave no gap, joined.
#[track_caller]
fn concatenated(parts: &[Tensor]) -> Option<Tensor> {
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let Some(Expr { op: Op::Pad(padding), srcs: [Some(piece), ..] }) = expr(part) else {
            return None;
        };
        let mut padded = (0..padding.len()).filter(|&axis| padding[axis] != (0, 0));
        let (Some(axis), None) = (padded.next(), padded.next()) else { return None };
        pieces.push((axis, padding[axis].0, piece));
    }
    pieces.sort_by_key(|(axis, start, _)| (*axis, *start));
    let axis = pieces[0].0;
    let mut end = 0;
    for (own, start, piece) in &pieces {
        if (*own, *start) != (axis, end) {
            return None;
        }
        end += piece.shape()[axis];
    }
    let pieces: Vec<Tensor> = pieces.into_iter().map(|piece| piece.2).collect();
    (end == parts[0].shape()[axis]).then(|| side_by_side(&pieces, axis)).flatten()
}

/// Tensors joined along an axis, as a sum: an element of it is at most one of theirs. Of many, some
/// are joined and stored at a time, so that no element is looked for in all of them.
#[track_caller]
fn side_by_side(pieces: &[Tensor], axis: usize) -> Option<Tensor> {
    if pieces.len() > AT_ONCE {
        let groups = pieces.chunks(pieces.len().div_ceil(AT_ONCE));
        let groups = groups.map(|group| Some(side_by_side(group, axis)?.contiguous()));
        return side_by_side(&groups.collect::<Option<Vec<Tensor>>>()?, axis);
    }
    let total: usize = pieces.iter().map(|piece| piece.shape()[axis]).sum();
    let mut before = 0;
    let padded = pieces.iter().map(|piece| {
        let mut padding = vec![(0, 0); piece.rank()];
        let extent = piece.shape()[axis];
        padding[axis] = (before, total - before - extent);
        before += extent;
        piece.pad(padding).ok()
    });
    added(padded.collect::<Option<Parts>>()?)
}

/// An op that only moves or converts elements, and what comes out of it.
struct Move {
    op: Op,
    of: Tensor,
}

impl Move {
    fn is_like(&self, other: &Move) -> bool {
        self.op == other.op
            && self.of.dtype() == other.of.dtype()
            && self.of.shape().same(other.of.shape())
    }
}

/// What is left of `x` when ops that only move or convert elements are taken away, which are given
/// with the last first.
fn stripped(x: &Tensor) -> (Vec<Move>, Tensor) {
    let (mut moves, mut x) = (Vec::new(), x.clone());
    while let Some(Expr { op, srcs: [Some(source), ..] }) = expr(&x)
        && matches!(op, Op::Reshape | Op::Permute(_) | Op::Expand | Op::Cast { bits: false })
    {
        moves.push(Move { op, of: std::mem::replace(&mut x, source) });
    }
    (moves, x)
}

/// A factor of a product: what it is made of, and how it is moved to where it is multiplied.
struct Factor {
    moves: Vec<Move>,
    from: Tensor,
}

impl Factor {
    fn of(x: &Tensor) -> Factor {
        let (moves, from) = stripped(x);
        Factor { moves, from }
    }

    fn is_like(&self, other: &Factor) -> bool {
        let moves = self.moves.iter().zip(&other.moves);
        self.moves.len() == other.moves.len()
            && moves.into_iter().all(|(a, b)| a.is_like(b))
            && self.from.dtype() == other.from.dtype()
            && self.from.shape().same(other.from.shape())
    }

    /// Those of all products along a new first axis.
    #[track_caller]
    fn stacked<'a>(all: impl Iterator<Item = &'a Factor> + Clone) -> Option<Tensor> {
        let rows = all.clone().map(|factor| factor.from.unsqueeze(0).ok());
        let from = rows.collect::<Option<Vec<Tensor>>>()?;
        let mut x = side_by_side(&from, 0)?;
        for step in all.take(1).flat_map(|factor| factor.moves.iter().rev()) {
            let shape = || [&[from.len()], step.of.shape().dims()].concat().into();
            x = match &step.op {
                Op::Permute(order) => x.permute_unchecked(&behind_first(*order, step.of.rank())),
                Op::Cast { .. } => x.cast(step.of.dtype()),
                Op::Expand => x.broadcast_unchecked(&shape()),
                _ => x.reshape_unchecked(shape()),
            };
        }
        Some(x)
    }
}

/// A permutation of `rank` axes as one of those behind a first one.
fn behind_first(order: Perm, rank: usize) -> Vec<usize> {
    std::iter::once(0).chain((0..rank).map(|axis| order.get(axis) + 1)).collect()
}

/// A sum of products of two factors, moved to where it is a cotangent.
struct Product {
    part: Tensor,
    moves: Vec<Move>,
    axes: u16,
    /// The shape of the sum.
    shape: Shape,
    factors: [Factor; 2],
}

impl Product {
    /// A part that is such a sum, and has more elements than what it is made of.
    fn of(part: &Tensor) -> Option<Product> {
        let (moves, sum) = stripped(part);
        let Expr { op: Op::Reduce { op: BinaryOp::Add, axes }, srcs: [Some(x), ..] } = expr(&sum)?
        else {
            return None;
        };
        let Expr { op: Op::Binary(BinaryOp::Mul), srcs: [Some(a), Some(b), _] } = expr(&x)? else {
            return None;
        };
        let factors = [Factor::of(&a), Factor::of(&b)];
        let made_of: usize = factors.iter().map(|factor| factor.from.shape().numel()).sum();
        let ranks = |factor: &Factor| factor.moves.iter().all(|step| step.of.rank() < MAX_RANK);
        (made_of < part.shape().numel() && x.rank() < MAX_RANK && factors.iter().all(ranks)).then(
            || Product { part: part.clone(), moves, axes, shape: sum.shape().clone(), factors },
        )
    }

    fn is_like(&self, other: &Product) -> bool {
        let moves = self.moves.iter().zip(&other.moves);
        self.axes == other.axes
            && self.shape.same(&other.shape)
            && self.moves.len() == other.moves.len()
            && moves.into_iter().all(|(a, b)| a.is_like(b))
            && self.factors.iter().zip(&other.factors).all(|(a, b)| a.is_like(b))
    }

    /// The sum of products that are alike.
    #[track_caller]
    fn joined(all: &[Product]) -> Tensor {
        let factor = |i: usize| Factor::stacked(all.iter().map(move |product| &product.factors[i]));
        let first = &all[0];
        let (Some(a), Some(b)) = (factor(0), factor(1)) else {
            let parts = all.iter().map(|product| product.part.clone()).collect();
            return added(parts).expect("invariant: there are products");
        };
        let sum = a.combine(BinaryOp::Mul, &b).reduce(BinaryOp::Add, first.axes << 1 | 1);
        let mut x = sum.reshape_unchecked(first.shape.clone());
        for step in first.moves.iter().rev() {
            let shape = step.of.shape();
            x = match &step.op {
                Op::Permute(order) => {
                    let order: Vec<usize> = (0..x.rank()).map(|axis| order.get(axis)).collect();
                    x.permute_unchecked(&order)
                }
                Op::Cast { .. } => x.cast(step.of.dtype()),
                Op::Expand => x.broadcast_unchecked(shape),
                _ => x.reshape_unchecked(shape.clone()),
            };
        }
        x
    }
}
