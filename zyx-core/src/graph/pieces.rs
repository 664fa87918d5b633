//! Axes in pieces: as many of one length as there have to be.
//!
//! An extent of `n` is `ceil(n / length)` pieces, whatever divides it: the last one holds neutral elements behind its
//! own, which loads give without reading memory. Lengths depend on extents alone, so results do not depend on a device's
//! number of threads.

use super::{Graph, Node, NodeId};
use crate::dtype::DType;
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::ops::Range;

/// Elements of which the length of long pieces is a multiple: a line of memory of the narrowest.
const LINE: usize = 128;
/// Part of a piece that may be added to make it whole lines.
const ADDED: usize = 32;

/// The length of pieces of an extent, `most` of them at most: that of equal pieces if three quarters as many divide the
/// extent, else the least, in whole lines where pieces are long.
pub(super) fn piece_length(extent: usize, most: usize) -> usize {
    let most = most.clamp(1, extent.max(1));
    let equal = ((3 * most).div_ceil(4)..=most).rev().find(|&pieces| extent.is_multiple_of(pieces));
    let length = extent.div_ceil(most);
    match equal {
        Some(pieces) => extent / pieces,
        None if length >= LINE * ADDED => length.next_multiple_of(LINE),
        None => length,
    }
}

impl Graph {
    /// `x` with an axis as two: pieces of a length, and the elements of each. Behind the last of `x` there are such that
    /// `op` makes nothing of.
    pub(super) fn in_pieces(
        &mut self,
        x: NodeId,
        axis: usize,
        length: usize,
        op: BinaryOp,
    ) -> NodeId {
        let pieces = self.shape(x)[axis].div_ceil(length);
        let x = self.padded(x, axis, pieces * length, op);
        let mut dims = self.shape(x).to_vec();
        dims[axis] = pieces;
        dims.insert(axis + 1, length);
        self.push(Node::Reshape { x }, self.dtype(x), dims.into())
    }

    /// Elements of `x` along an axis.
    pub(super) fn part(&mut self, x: NodeId, axis: usize, range: Range<usize>) -> NodeId {
        let mut dims = self.shape(x).to_vec();
        let mut cut = vec![(0, 0); dims.len()];
        cut[axis].0 = range.start;
        dims[axis] = range.len();
        let list = self.list_of(cut);
        self.push(Node::Shrink { x, list }, self.dtype(x), dims.into())
    }

    /// `x` with neutral elements of `op` behind it up to an extent.
    fn padded(&mut self, x: NodeId, axis: usize, extent: usize, op: BinaryOp) -> NodeId {
        let dtype = self.dtype(x);
        let neutral = op.identity(dtype).expect("invariant: what is split is associative");
        self.extended(x, axis, extent, neutral)
    }

    /// `x` with an element behind it up to an extent.
    pub(super) fn extended(
        &mut self,
        x: NodeId,
        axis: usize,
        extent: usize,
        element: Scalar,
    ) -> NodeId {
        let (dtype, shape) = (self.dtype(x), self.shape(x).clone());
        let missing = extent - shape[axis];
        if missing == 0 {
            return x;
        }
        let mut dims = shape.to_vec();
        dims[axis] = extent;
        let dims = Shape::from(dims);
        let mut padding = vec![(0, 0); shape.rank()];
        padding[axis].1 = missing;
        let list = self.list_of(padding);
        let padded = self.push(Node::Pad { x, list }, dtype, dims.clone());
        if element.to_f64() == 0.0 {
            return padded;
        }
        let yes = self.push(Node::Const { bits: 1 }, DType::Bool, shape);
        let inside = self.push(Node::Pad { x: yes, list }, DType::Bool, dims.clone());
        let element = self.push(Node::Const { bits: element.bits() }, dtype, dims.clone());
        let node = Node::Ternary { op: TernaryOp::Where, x: inside, y: padded, z: element };
        self.push(node, dtype, dims)
    }
}

#[cfg(test)]
mod tests {
    use super::piece_length;

    #[test]
    fn no_extent_has_much_fewer_or_shorter_pieces_than_those_beside_it() {
        let extents = (2..5000).chain((1 << 20)..(1 << 20) + 500).chain([10_000_019, 4_000_037]);
        for extent in extents {
            for most in [2, 3, 16, 85, 256] {
                let length = piece_length(extent, most);
                let pieces = extent.div_ceil(length);
                assert!(pieces <= most && 4 * pieces >= most.min(extent), "{extent}, {most}");
                let added = pieces * length - extent;
                assert!(added < length, "{extent}, {most}: no piece is empty");
            }
        }
        assert_eq!(piece_length(10_000_000, 256), 40_000);
        assert_eq!(piece_length(10_000_019, 256), 39_168);
    }
}
