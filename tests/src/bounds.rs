//! How far a result may be from the exact one: one table, which the tests read and `docs/ops.md` prints.
//!
//! What an operation of the op table may be off by stands in that table (`zyx_core::ops`), and what a device may make
//! of a chain of those follows by intervals ([`crate::oracle`]). The rest is here, by the name of the method: it is
//! what [`crate::cases::matrix`], [`crate::cases::maths`] and [`crate::cases::functional`] compare with. Halves are
//! computed in `f32` and rounded, so their error is that of `f32` and a few roundings.

use crate::apply::{binary_name, unary_name};
use std::fmt;
use zyx_core::{BinaryOp, DType, UnaryOp};

/// How far from the exact result an element may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Not at all: elements are those of the operands, in other places, or chosen among them, or small whole numbers.
    Exact,
    /// Units in the last place of the exact result, rounding included; 0 is correctly rounded.
    Rounded(u32),
    /// Units in the last place of the largest of 1, the result and what it is sensitive to.
    Ulps(f64),
}

impl Bound {
    /// Units in the last place, the rounding to the result's dtype as one.
    pub fn ulps(self) -> f64 {
        match self {
            Bound::Exact => 0.0,
            Bound::Rounded(ulps) => f64::from(ulps) + 1.0,
            Bound::Ulps(ulps) => ulps,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Exact => f.write_str("exact"),
            Bound::Rounded(0) => f.write_str("rounded"),
            Bound::Rounded(ulps) => write!(f, "{ulps}"),
            Bound::Ulps(ulps) => write!(f, "{ulps} of max"),
        }
    }
}

/// What functions made of several operations may be off by unless they are named below.
pub const FORMULA: f64 = 64.0;

/// Agreement asked for of a gradient in `f64` with difference quotients, relative to the largest component.
pub const GRADIENT: f64 = 1e-6;

/// Agreement asked for of values and gradients in `f64` with PyTorch's, relative to the largest element.
pub const PYTORCH: f64 = 1e-9;

/// The same of einsum, whose rows are short sums of products.
pub const EINSUM: f64 = 1e-12;

/// Relative error of long sums in `f32`, in every kernel that a shape may take.
pub const LONG_SUM: f64 = 1e-6;

/// Special functions, at `max(1, |y|)`.
const FUNCTION: Bound = Bound::Ulps(32.0);

/// The table, beside the op table.
#[rustfmt::skip]
const BOUNDS: &[(Bound, &[&str])] = &[
    (FUNCTION, &[
        "acosh", "asinh", "atanh", "celu", "deg2rad", "digamma", "erfc", "erfcx", "erfinv", "hardsigmoid", "hardswish",
        "hypot", "ldexp", "lgamma", "log10", "log_ndtr", "logaddexp2", "logit", "logsigmoid", "ndtr", "polygamma",
        "rad2deg", "sinc", "softshrink", "softsign", "tanhshrink", "xlog1py", "xlogy", "addcmul",
    ]),
    (Bound::Exact, &[
        // Made.
        "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "iota", "eye", "tril", "triu", "meshgrid",
        "cartesian_prod", "one_hot", "arange", "tril_indices", "triu_indices", "unravel_index",
        // Moved.
        "reshape", "flatten", "flatten_axes", "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "pad",
        "pad_with", "pad_mode", "shrink", "slice", "stride", "select_index", "flip", "repeat", "contiguous", "detach",
        "tracked", "to_device", "roll", "rot90", "fliplr", "flipud", "tile", "repeat_interleave",
        "repeat_interleave_by", "movedim", "swapaxes", "unflatten", "unfold", "narrow", "unbind", "split", "chunk",
        "tensor_split", "hsplit", "vsplit", "dsplit", "split_with_sizes", "atleast_1d", "atleast_2d", "atleast_3d",
        "broadcast_tensors", "broadcast_to", "diagonal", "diag_embed", "diag", "diagflat", "fftshift", "ifftshift",
        "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "cat", "stack", "hstack", "vstack", "dstack",
        "column_stack", "block_diag", "im2col",
        // Picked and placed.
        "gather", "index_select", "embedding", "index", "take", "take_along_dim", "masked_select", "nonzero",
        "argwhere", "searchsorted", "bucketize", "bincount", "bincount_to", "scatter", "index_copy", "index_fill",
        "masked_fill", "masked_scatter", "put", "slice_scatter", "select_scatter", "diagonal_scatter", "max_unpool1d",
        "max_unpool2d", "max_unpool3d", "where_",
        // Chosen.
        "max", "max_keepdim", "min", "min_keepdim", "amax", "amin", "aminmax", "argmax", "argmin", "cummax", "cummin",
        "sort", "argsort", "msort", "topk", "kthvalue", "median", "mode", "unique", "unique_consecutive", "clamp",
        "fmax", "fmin", "relu", "relu6", "hardtanh", "threshold", "hardshrink", "copysign", "heaviside", "sign",
        // Bools and counts.
        "any", "any_keepdim", "all", "all_keepdim", "count_nonzero", "is_nan", "is_inf", "is_finite", "isnan", "isinf",
        "isfinite", "isposinf", "isneginf", "signbit", "isclose", "gt", "ge", "logical_not", "logical_and",
        "logical_or", "logical_xor", "lcm", "matrix_rank", "nextafter", "bitcast", "equal", "allclose",
    ]),
];

/// The bound of a method.
pub fn of(method: &str) -> Bound {
    let named = BOUNDS.iter().find(|(_, names)| names.contains(&method)).map(|(bound, _)| *bound);
    let unary = UnaryOp::ALL.iter().find(|&&op| unary_name(op) == method).map(|op| op.ulp());
    let binary = BinaryOp::ALL.iter();
    let binary = binary.filter(|&&op| binary_name(op, DType::F32) == method).map(|op| op.ulp());
    let ops = unary.into_iter().chain(binary).next().map(Bound::Rounded);
    ops.or(named).unwrap_or(Bound::Ulps(FORMULA))
}

/// The bound of a case by its name, of which the first word is the method.
pub fn of_case(name: &str) -> Bound {
    of(name.split([' ', ',', '(']).next().unwrap_or(name))
}

/// Whether a name is in the table.
pub fn names() -> impl Iterator<Item = &'static str> {
    BOUNDS.iter().flat_map(|(_, names)| names.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_bound() {
        let mut all: Vec<&str> = names().collect();
        let n = all.len();
        all.extend(UnaryOp::ALL.iter().map(|&op| unary_name(op)));
        all.extend(BinaryOp::ALL.iter().map(|&op| binary_name(op, DType::F32)));
        all.sort_unstable();
        let twice: Vec<&str> = all.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        assert_eq!(twice, [""; 0]);
        assert!(n > 100);
        assert_eq!(of("exp"), Bound::Rounded(4));
        assert_eq!(of_case("polygamma(1)"), FUNCTION);
        assert_eq!(of("maximum"), Bound::Rounded(0));
        assert_eq!(of("softmax"), Bound::Ulps(FORMULA));
    }
}
