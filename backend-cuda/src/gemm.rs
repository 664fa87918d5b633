//! Contractions that are matrix products, as plain data.
//!
//! A contraction is one when its m, n and k dimensions each merge into one, operands have
//! contiguous rows or columns, and the result has contiguous rows. Of m one dimension may be left: the
//! product is repeated along it as along a batch. Batch dimensions that do not merge into one stride are
//! run as several products. Convolution windows, flips and broadcast
//! sums are not: generated code computes those.
//!
//! cuBLAS counts matrices in columns, so `C = A B` in rows is asked for as `C' = B' A'`.

use zyx_core::DType;
use zyx_core::hal::{ContractDim, ContractSpec};

/// Most products one contraction may become.
const MAX_CALLS: usize = 64;

/// An operand in columns: the contiguous dimension first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    pub(crate) dtype: DType,
    /// Whether the product needs it transposed.
    pub(crate) transposed: bool,
    /// Length of the contiguous dimension and of the other, and elements between columns.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) stride: usize,
    /// Elements between matrices of the batch.
    pub(crate) batch_stride: isize,
    /// Bytes that the address of every matrix is a multiple of.
    pub(crate) align: usize,
}

/// Products of matrices: `result = left * right` in columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gemm {
    pub(crate) acc: DType,
    pub(crate) batch: usize,
    /// The contraction's B, A and C.
    pub(crate) left: Matrix,
    pub(crate) right: Matrix,
    pub(crate) result: Matrix,
    /// Whether a bias follows the operands: a number for each row of `result`.
    pub(crate) bias: bool,
    /// For each product the offsets in bytes of `left`, `right` and `result`.
    pub(crate) calls: Vec<[isize; 3]>,
}

/// Multiply-adds of `f32` up to which generated code is at least as fast, with whatever comes before
/// and after fused: on an H200 the library takes some 60 microseconds for 64 products of 128 by 32
/// by 128, generated code 8. Products of halves have the tensor cores.
const SMALL: usize = 1 << 25;

/// Rows up to which a product is not worth repeating for others.
const FEW_ROWS: usize = 64;

/// Whether a contraction is left to generated code, unless the tuner finds otherwise.
pub(crate) fn is_small(spec: &ContractSpec) -> bool {
    let dims = spec.batch.iter().chain(&spec.m).chain(&spec.n).chain(&spec.k);
    spec.a == DType::F32 && dims.map(|dim| dim.len).fold(1, usize::saturating_mul) <= SMALL
}

/// The products a contraction is, if it is any.
pub(crate) fn products(spec: &ContractSpec) -> Option<Gemm> {
    let supported = match (spec.a, spec.b, spec.c, spec.acc) {
        (DType::F64, DType::F64, DType::F64, DType::F64) => true,
        (a, b, c, DType::F32) => {
            let half = matches!(a, DType::F16 | DType::BF16);
            a == b && (half || a == DType::F32) && (c == DType::F32 || half && c == a)
        }
        _ => false,
    };
    if !supported {
        return None;
    }
    let (n, k) = (merge(&spec.n)?, merge_sum(&spec.k)?);
    let (m, apart) = rows(&spec.m)?;
    let (outer, inner) = batches(&[&spec.batch[..], &apart].concat());
    let sizes = [spec.b.size(), spec.a.size(), spec.c.size()];
    let mut calls = vec![[spec.offset[1], spec.offset[0], 0]];
    for dim in outer {
        let shifted = |call: &[isize; 3], i: usize| {
            let i = i as isize;
            [call[0] + i * dim.b, call[1] + i * dim.a, call[2] + i * dim.c]
        };
        calls = calls.iter().flat_map(|c| (0..dim.len).map(move |i| shifted(c, i))).collect();
        if calls.len() > MAX_CALLS {
            return None;
        }
    }
    for call in &mut calls {
        (0..3).for_each(|i| call[i] *= sizes[i] as isize);
    }
    let align = |i: usize| {
        let bits = calls.iter().fold(64, |bits, call| bits | call[i]);
        1 << bits.trailing_zeros().min(6)
    };
    let left = matrix(spec.b, (n.len, n.b), (k.len, k.b), inner.b, align(0))?;
    let right = matrix(spec.a, (k.len, k.a), (m.len, m.a), inner.a, align(1))?;
    let result = matrix(spec.c, (n.len, n.c), (m.len, m.c), inner.c, align(2))?;
    let whole = !result.transposed;
    let (acc, batch, bias) = (spec.acc, inner.len, spec.bias);
    whole.then_some(Gemm { acc, batch, left, right, result, bias, calls })
}

const UNIT: ContractDim = ContractDim { len: 1, a: 0, b: 0, c: 0 };

/// Whether a dimension and the next inner one are one.
fn follows(outer: &ContractDim, inner: &ContractDim) -> bool {
    let n = inner.len as isize;
    outer.a == inner.a * n && outer.b == inner.b * n && outer.c == inner.c * n
}

/// Dimensions, outermost first, as one.
fn merge(dims: &[ContractDim]) -> Option<ContractDim> {
    let mut dims = dims.iter().filter(|dim| dim.len != 1);
    let Some(&(mut merged)) = dims.next() else { return Some(UNIT) };
    for inner in dims {
        if !follows(&merged, inner) {
            return None;
        }
        merged = ContractDim { len: merged.len * inner.len, ..*inner };
    }
    Some(merged)
}

/// Dimensions of rows as one and what does not merge into it, for which the product is repeated: the
/// shortest of them, and of few rows none.
fn rows(dims: &[ContractDim]) -> Option<(ContractDim, Vec<ContractDim>)> {
    if let Some(merged) = merge(dims) {
        return Some((merged, Vec::new()));
    }
    let without = |i: usize| {
        let rest = [&dims[..i], &dims[i + 1..]].concat();
        Some((merge(&rest)?, vec![dims[i]]))
    };
    let found = (0..dims.len()).filter_map(without).max_by_key(|(merged, _)| merged.len);
    found.filter(|(merged, _)| merged.len >= FEW_ROWS)
}

/// Summed dimensions as one; their order is free.
fn merge_sum(dims: &[ContractDim]) -> Option<ContractDim> {
    let mut sorted = dims.to_vec();
    merge(&sorted).or_else(|| {
        sorted.sort_by_key(|dim| std::cmp::Reverse((dim.a.abs(), dim.b.abs())));
        merge(&sorted)
    })
}

/// Batch dimensions as some to loop over and one with strides.
fn batches(dims: &[ContractDim]) -> (Vec<ContractDim>, ContractDim) {
    let mut outer: Vec<ContractDim> = dims.iter().filter(|dim| dim.len != 1).copied().collect();
    let mut inner = outer.pop().unwrap_or(UNIT);
    while let Some(dim) = outer.pop() {
        if !follows(&dim, &inner) {
            outer.push(dim);
            break;
        }
        inner.len *= dim.len;
    }
    (outer, inner)
}

/// A matrix of so many rows and columns, each with the distance of its elements.
fn matrix(
    dtype: DType,
    (rows, row_step): (usize, isize),
    (columns, column_step): (usize, isize),
    batch_stride: isize,
    align: usize,
) -> Option<Matrix> {
    let with = |transposed, rows: usize, columns, stride: isize| {
        let stride = usize::try_from(stride).ok().filter(|&stride| stride >= rows)?;
        Some(Matrix { dtype, transposed, rows, columns, stride, batch_stride, align })
    };
    // The distance between the only column and the next does not matter.
    let column_stride = if columns == 1 { rows as isize } else { column_step };
    let row_stride = if rows == 1 { columns as isize } else { row_step };
    match (row_step, column_step) {
        (1, _) => with(false, rows, columns, column_stride),
        (_, 1) => with(true, columns, rows, row_stride),
        _ if rows == 1 && column_step != 1 => with(false, 1, columns, column_step),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dim(len: usize, a: isize, b: isize, c: isize) -> ContractDim {
        ContractDim { len, a, b, c }
    }

    fn spec(
        batch: &[ContractDim],
        m: &[ContractDim],
        n: &[ContractDim],
        k: &[ContractDim],
    ) -> ContractSpec {
        let f = DType::F32;
        let (batch, m, n, k) = (batch.to_vec(), m.to_vec(), n.to_vec(), k.to_vec());
        ContractSpec { a: f, b: f, c: f, acc: f, bias: false, offset: [0, 0], batch, m, n, k }
    }

    #[test]
    fn small_products_are_left_to_generated_code() {
        let square = |n: usize| {
            let i = n as isize;
            let (m, k) = (dim(n, i, 0, i), dim(n, 1, i, 0));
            spec(&[], &[m], &[dim(n, 0, 1, 1)], &[k])
        };
        assert!(is_small(&square(256)) && !is_small(&square(512)));
        let half = ContractSpec { a: DType::BF16, b: DType::BF16, ..square(256) };
        assert!(!is_small(&half) && products(&half).is_some());
    }

    #[test]
    fn rows_become_columns() {
        // 5 x 7 = 5 x 3 times 3 x 7, all in rows.
        let found =
            products(&spec(&[], &[dim(5, 3, 0, 7)], &[dim(7, 0, 1, 1)], &[dim(3, 1, 7, 0)]));
        let found = found.unwrap();
        let shape = |m: Matrix| (m.transposed, m.rows, m.columns, m.stride);
        assert_eq!(shape(found.left), (false, 7, 3, 7));
        assert_eq!(shape(found.right), (false, 3, 5, 3));
        assert_eq!(shape(found.result), (false, 7, 5, 7));
        assert_eq!((found.batch, found.calls.len()), (1, 1));
    }

    #[test]
    fn halves_may_be_rounded_to() {
        let (m, n, k) = (dim(4, 4, 0, 4), dim(4, 0, 1, 1), dim(4, 1, 4, 0));
        let half = |c| {
            let (a, b) = (DType::BF16, DType::BF16);
            products(&ContractSpec { a, b, c, ..spec(&[], &[m], &[n], &[k]) })
        };
        assert_eq!(half(DType::BF16).unwrap().result.dtype, DType::BF16);
        assert_eq!(half(DType::F32).unwrap().result.dtype, DType::F32);
        assert_eq!(half(DType::F16), None);
    }

    #[test]
    fn operands_may_be_transposed() {
        let found =
            products(&spec(&[], &[dim(5, 1, 0, 7)], &[dim(7, 0, 3, 1)], &[dim(3, 5, 1, 0)]));
        let found = found.unwrap();
        assert!(found.left.transposed && found.right.transposed);
        assert_eq!((found.left.rows, found.left.columns, found.left.stride), (3, 7, 3));
    }

    #[test]
    fn batches_merge_or_repeat() {
        let inner = dim(4, 16, 16, 16);
        let (m, n, k) = (dim(4, 4, 0, 4), dim(4, 0, 1, 1), dim(4, 1, 4, 0));
        let merged = products(&spec(&[dim(3, 64, 64, 64), inner], &[m], &[n], &[k])).unwrap();
        assert_eq!((merged.batch, merged.calls.len()), (12, 1));
        let apart = products(&spec(&[dim(3, 100, 64, 64), inner], &[m], &[n], &[k])).unwrap();
        assert_eq!((apart.batch, apart.calls.len()), (4, 3));
        assert_eq!(apart.calls[2], [512, 800, 512]);
        assert_eq!(apart.right.align, 16);
    }

    #[test]
    fn rows_may_lie_apart() {
        // Sequences of 100 steps, a step of all five behind the other: [5, 100, 3] times [3, 7] into
        // [100, 5, 7].
        let (step, sequence) = (dim(100, 3, 0, 35), dim(5, 300, 0, 7));
        let (n, k) = (dim(7, 0, 1, 1), dim(3, 1, 7, 0));
        let found = products(&spec(&[], &[step, sequence], &[n], &[k])).unwrap();
        assert_eq!((found.batch, found.calls.len()), (5, 1));
        assert_eq!([found.left, found.right, found.result].map(|m| m.batch_stride), [0, 300, 7]);
        assert_eq!((found.result.columns, found.result.stride), (100, 35));
        let few = dim(10, 3, 0, 35);
        assert_eq!(products(&spec(&[], &[few, sequence], &[n], &[k])), None);
    }

    #[test]
    fn windows_and_flips_are_no_products() {
        let (m, n) = (dim(8, 1, 0, 8), dim(8, 0, 9, 1));
        assert_eq!(products(&spec(&[], &[m], &[n], &[dim(3, 1, 1, 0)])), None);
        let (m, n) = (dim(8, 3, 0, 8), dim(8, 0, 1, 1));
        assert_eq!(products(&spec(&[], &[m], &[n], &[dim(3, -1, 8, 0)])), None);
        let broadcast = products(&spec(&[], &[m], &[n], &[dim(3, 0, 8, 0)]));
        assert_eq!(broadcast, None);
    }
}
