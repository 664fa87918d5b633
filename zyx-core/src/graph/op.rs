//! The graph's op set: twenty-four ops, from which every tensor method is made.

use super::KernelCall;
use super::fourier::Form;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::tensor::{Check, Tensor};
use std::sync::Arc;

/// How the value of a node follows from its sources. The node's own shape and dtype complete
/// ops that change them (`Reshape`, `Expand`, `Cast` …).
///
/// | op | sources | meaning |
/// |---|---|---|
/// | `Const` | – | every element is the scalar with these bits; a `literal` is part of the structure, any other constant an argument of plans |
/// | `Iota` | – | shape `[n]`: 0, 1, 2, … |
/// | `Unary` `Binary` `Ternary` | 1, 2, 3 of one shape | see the op table |
/// | `Cast` | 1 | conversion of the value, or the `bits` as they are |
/// | `Reduce` | 1 | combines the elements along the axes of the mask, which become 1 |
/// | `Scan` | 1 or x, factor | running combine along an axis, inclusive; from the end if `reverse`; if `scaled`, what ran so far is multiplied by the element's factor before the element is added |
/// | `Reshape` | 1 | the same elements in row-major order |
/// | `Permute` | 1 | axis `i` of the result is axis `perm[i]` of the source |
/// | `Expand` | 1 | axes of extent 1 are repeated |
/// | `Pad` | 1 | zeros before and after each axis |
/// | `Shrink` | 1 | the elements from `start` on along each axis |
/// | `Flip` | 1 | axes of the mask reversed |
/// | `Gather` | x, index | `out[.., i, ..] = x[.., index[.., i, ..], ..]` along `axis` |
/// | `Scatter` | base, index, x | base with `x[.., i, ..]` combined into `[.., index[.., i, ..], ..]`; or, if `ends`, into each place the elements of x that stand from the `index` of the place before to its own |
/// | `RadixScatter` | x, shift, starts | each block (row) of x placed element by element at the running flat position of the element's bin, the lowest byte of `x >> shift`, which begins at `starts[block, bin]` |
/// | `SortRows` | 1 | `u64`, each row along the last axis in the stable order of the `bits` of its elements from `first` on |
/// | `Fourier` | x, roots | the discrete Fourier transform of complex `[before, n, after, 2]` along the second axis, unscaled, in one of some forms; `roots` `[2, m]` are cosines and sines that it multiplies by (`graph/fourier.rs`) |
/// | `Copy` | 1 | the source stored on the node's device, which may be another than the source's; on the same device: stored at all |
/// | `Kernel` | inputs | an output of a user kernel (`kernel.rs`); of more than two inputs the second source is `Operands` |
/// | `Operands` | 1 to 3 | no value: lists inputs of a kernel, the last of which may be a list again |
/// | `Within` | index | the index, which is in the range that the check says or makes its flag tell |
/// | `Alias` | value, inputs | the value; gradients flow to the inputs by the rule, or stop |
///
/// An index out of range gathers zero and scatters nothing.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table above documents every variant")]
pub(crate) enum Op {
    Const { bits: u64, literal: bool },
    Iota,
    Unary(UnaryOp),
    Binary(BinaryOp),
    Ternary(TernaryOp),
    Cast { bits: bool },
    Reduce { op: BinaryOp, axes: u16 },
    Scan { op: BinaryOp, axis: u8, reverse: bool, scaled: bool },
    Reshape,
    Permute(Perm),
    Expand,
    Pad(Arc<Vec<(usize, usize)>>),
    Shrink(Arc<Vec<usize>>),
    Flip { axes: u16 },
    Gather { axis: u8 },
    Scatter { axis: u8, op: Option<BinaryOp>, order: UpdateOrder },
    RadixScatter,
    SortRows { first: u8, bits: u8 },
    Fourier(Form),
    Copy,
    Kernel(Arc<KernelCall>),
    Operands { n: u8 },
    Within(Arc<Check>),
    Alias(Option<Arc<GradientRule>>),
}

impl Op {
    /// Whether the elements are the source's, in the same place or another, and zeros.
    pub(crate) fn computes_nothing(&self) -> bool {
        matches!(
            self,
            Op::Alias(_)
                | Op::Within(_)
                | Op::Reshape
                | Op::Permute(_)
                | Op::Expand
                | Op::Pad(_)
                | Op::Shrink(_)
                | Op::Flip { .. }
        )
    }
}

/// In which order a scatter makes the updates of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UpdateOrder {
    /// As they come along the axis.
    Given,
    /// Whatever is fastest: results may differ in rounding from run to run.
    Any,
    /// As they come, sorted by place: the index says where those of each place end.
    Sorted,
}

/// The type of a gradient rule: inputs, result and its cotangent to the inputs' cotangents.
type Rule = dyn Fn(&[Tensor], &Tensor, &Tensor) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// A gradient given by a function instead of being derived from the graph.
pub(crate) struct GradientRule {
    pub(crate) apply: Box<Rule>,
    /// Tensors that the function captured, if its author lists them. They do not count as held by the program.
    pub(crate) held: Arc<[Tensor]>,
    /// Whether the node only lists inputs for the rule of another node. Then `apply` is never called.
    pub(crate) is_list: bool,
}

impl GradientRule {
    pub(crate) fn new(apply: Box<Rule>) -> GradientRule {
        GradientRule { apply, held: Arc::default(), is_list: false }
    }

    /// The rule of a node that lists inputs for the rule of another node.
    pub(crate) fn of_list() -> GradientRule {
        GradientRule { is_list: true, ..GradientRule::new(Box::new(|_, _, _| Ok(Vec::new()))) }
    }
}

impl PartialEq for GradientRule {
    fn eq(&self, other: &GradientRule) -> bool {
        std::ptr::eq(self, other)
    }
}

impl std::fmt::Debug for GradientRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GradientRule")
    }
}

/// A permutation of up to sixteen axes, four bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Perm(u64);

impl Perm {
    pub(crate) fn new(axes: &[usize]) -> Perm {
        Perm(axes.iter().enumerate().fold(0, |bits, (i, &axis)| bits | (axis as u64) << (4 * i)))
    }

    /// Four bits for each axis.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The source axis that result axis `i` is.
    pub(crate) fn get(self, i: usize) -> usize {
        (self.0 >> (4 * i)) as usize & 15
    }

    /// The permutation that undoes this one of `rank` axes.
    pub(crate) fn inverse(self, rank: usize) -> Vec<usize> {
        let mut inverse = vec![0; rank];
        for i in 0..rank {
            inverse[self.get(i)] = i;
        }
        inverse
    }
}

/// The positions of the set bits of an axis mask.
pub(crate) fn axes_of(mask: u16) -> impl Iterator<Item = usize> + Clone {
    (0..16).filter(move |axis| mask >> axis & 1 == 1)
}

/// The dtype of an index operand.
pub(crate) fn is_index(dtype: DType) -> bool {
    dtype.is_int()
}
