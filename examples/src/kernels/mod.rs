//! Kernels as programs write them, a file each. They run unchanged on every device, in every float dtype.

/// Attention that never stores its weights, in blocks of keys (Dao and others 2022, FlashAttention).
pub mod attention;
/// Breadth-first search in a graph: irregular work that groups share by a queue.
pub mod bfs;
/// Loops whose length is data.
pub mod collatz;
/// Running sums of rows.
pub mod cumsum;
/// A gated linear unit whose gradient is given by a rule.
pub mod gated;
/// A step of the heat equation on a plate whose border is at zero degrees.
pub mod heat;
/// Counts of bytes: each group counts in storage of its own first.
pub mod histogram;
/// An activation of one's own: shape, dtype and gradient follow.
pub mod mish;
/// Root-mean-square normalisation of rows with a weight for each column.
pub mod norm;
/// A matrix product in tiles, with matrix instructions where the device has them for the dtype.
pub mod product;
/// Running sums of one long row in one pass.
pub mod scan;
/// Sums of segments: segment `s` has the elements from `starts[s]` to `starts[s + 1]`.
pub mod segments;
/// Softmax of rows of any length: a group of threads for each row.
pub mod softmax;
/// Rows in order: a radix sort by a group of threads for each row.
pub mod sort;
