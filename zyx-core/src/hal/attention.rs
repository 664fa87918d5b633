//! Scaled dot-product attention of halves: what some libraries compute whole.
//!
//! [`FlashSpec`](super::FlashSpec) is any chain of its kind, with kernels for what is between the products.
//! This is the one chain that libraries know.

use crate::dtype::DType;

/// Tensors of [`AttentionSpec`], in the order of arguments.
const TENSORS: usize = 5;

/// `result[b, h, i] = sum over j of softmax over j of (scale * queries[b, h, i] . keys[b, g, j]) *
/// values[b, g, j]` with `g = h / (heads / key_heads)`: products summed in `f32`, weights rounded to
/// the operands' dtype.
///
/// Arguments: queries, keys, values, the result, and the logarithms of the sums of `exp(scale * q . k)`,
/// in `f32`, if somebody asks for them; then the scale, an `f32`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttentionSpec {
    /// Dtype of queries, keys, values and result: a half.
    pub dtype: DType,
    /// Number of independent lists of heads.
    pub batch: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Heads of keys and values; each serves as many heads of queries, one behind the other.
    pub key_heads: usize,
    /// Positions of queries.
    pub queries: usize,
    /// Positions of keys and values.
    pub keys: usize,
    /// Elements of a query and of a key.
    pub width: usize,
    /// Elements of a value.
    pub value_width: usize,
    /// Whether query `i` sees the keys `0 ..= i` only.
    pub causal: bool,
    /// Strides, in elements, of queries, keys, values, result and logarithms along batch, heads,
    /// positions and elements. Of a length of 1 it is 0.
    pub strides: [[usize; 4]; TENSORS],
    /// Elements before the first one of each.
    pub offsets: [usize; TENSORS],
    /// Whether somebody asks for the logarithms. If not, they are no argument.
    pub logarithms: bool,
}

impl AttentionSpec {
    /// The place of the result among the tensors; what comes before is read.
    pub const RESULT: usize = 3;

    /// The lengths of queries, keys, values, result and logarithms, in the order of their strides.
    pub fn lengths(&self) -> [[usize; 4]; TENSORS] {
        let AttentionSpec { batch, heads, key_heads, queries, keys, width, value_width, .. } =
            *self;
        [
            [batch, heads, queries, width],
            [batch, key_heads, keys, width],
            [batch, key_heads, keys, value_width],
            [batch, heads, queries, value_width],
            [batch, heads, queries, 1],
        ]
    }

    /// The dtype of a tensor.
    pub fn dtype_of(&self, tensor: usize) -> DType {
        if tensor + 1 == TENSORS { DType::F32 } else { self.dtype }
    }

    /// Number of buffers among the arguments.
    pub fn buffers(&self) -> usize {
        if self.logarithms { TENSORS } else { TENSORS - 1 }
    }

    /// The elements that a tensor reaches over in its buffer; `None` if no memory is so long.
    pub fn span(&self, tensor: usize) -> Option<usize> {
        let mut places = self.lengths()[tensor].into_iter().zip(self.strides[tensor]);
        let first = self.offsets[tensor].checked_add(1)?;
        places.try_fold(first, |end, (len, stride)| {
            end.checked_add(len.checked_sub(1)?.checked_mul(stride)?)
        })
    }

    /// Multiplications of both products, of what is seen.
    pub fn multiplications(&self) -> f64 {
        let n = |n: usize| n as f64;
        let hidden = if self.causal { 0.5 } else { 1.0 };
        let scores = n(self.batch) * n(self.heads) * n(self.queries) * n(self.keys) * hidden;
        scores * n(self.width + self.value_width)
    }
}
