//! Recognising the gradient of an image whose windows lie a stride apart.
//!
//! It is computed as phases that are interleaved afterwards (`tensor/convolution.rs`), so what a library
//! may compute is an arrangement of sums, and indices have quotients and remainders by the stride.
//! Axes do not depend on one another: along each, the products that an element sums are listed as pairs
//! of places in the result's cotangent and in the kernel, and compared with those of a gradient.

use super::{Level, Way};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{ConvolutionAxis, ConvolutionSpec, Convolved};
use crate::ops::BinaryOp;
use crate::schedule::contract::Contraction;
use crate::schedule::item::storage;
use crate::schedule::pull::{Indices, TupleId};
use rustc_hash::FxHashSet;

/// Longest distance between windows.
const MOST_STRIDE: i64 = 64;

/// The gradient that `id` is; `only` says of a node whether it has a single user and is not itself stored.
pub(in crate::schedule) fn recognize(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    only: impl Fn(NodeId) -> bool,
) -> Option<Contraction> {
    // Bounds are compared with numbers.
    if !graph.places().is_empty() {
        return None;
    }
    let top = match graph.node(id) {
        Node::Cast { x } if matches!(graph.dtype(id), DType::F16 | DType::BF16) => x,
        Node::Shrink { .. } | Node::Reshape { .. } => id,
        _ => return None,
    };
    if (top != id && !only(top)) || !is_interleaved(graph, top, &only) {
        return None;
    }
    let shape = graph.shape(id).clone();
    let (atoms, tuple) = indices.axes(&shape);
    let outer = Way::down(graph, indices, (top, tuple), |_| true);
    let &Level { node: sum, tuple, .. } = outer.levels.last()?;
    let Node::Reduce { op: BinaryOp::Add, axes, x } = graph.node(sum) else { return None };
    let (tuple, summed) = indices.open_reduce(graph, x, axes, tuple);
    let moved =
        Way::down(graph, indices, (x, tuple), |id| !matches!(graph.node(id), Node::Pad { .. }));
    let &Level { node: product, tuple, .. } = moved.levels.last()?;
    let Node::Binary { op: BinaryOp::Mul, x: p, y: q } = graph.node(product) else { return None };
    let p = Way::down(graph, indices, (p, tuple), |_| true);
    let q = Way::down(graph, indices, (q, tuple), |_| true);
    let mut own = atoms.into_iter();
    let own: Vec<Option<AtomId>> =
        shape.iter().map(|&dim| if dim == 1 { None } else { own.next() }).collect();
    let finder = Finder { graph, id, own, summed, outer: outer.bounds };
    finder.of(indices, &p, &q).or_else(|| finder.of(indices, &q, &p))
}

/// Whether elements of a sum change places on the way to `id`.
fn is_interleaved(graph: &Graph, mut id: NodeId, only: &impl Fn(NodeId) -> bool) -> bool {
    let mut permuted = false;
    loop {
        let node = graph.node(id);
        permuted |= matches!(node, Node::Permute { .. } | Node::Pad { .. });
        let moves = matches!(
            node,
            Node::Permute { .. } | Node::Reshape { .. } | Node::Shrink { .. } | Node::Pad { .. }
        );
        let Some(x) = node.sources().next().filter(|_| moves) else {
            return permuted && matches!(node, Node::Reduce { op: BinaryOp::Add, .. });
        };
        if !only(x) {
            return false;
        }
        id = x;
    }
}

struct Finder<'a> {
    graph: &'a Graph,
    id: NodeId,
    /// The counters of the image: images, channels, axes.
    own: Vec<Option<AtomId>>,
    summed: Vec<AtomId>,
    outer: Vec<(Index, i64)>,
}

impl Finder<'_> {
    /// The gradient, given the ways of the result's cotangent and of the kernel.
    fn of(&self, indices: &mut Indices, result: &Way, kernel: &Way) -> Option<Contraction> {
        let ranked = |way: &Way| -> Vec<Level> {
            let fits = |id: NodeId| self.graph.shape(id).rank() == self.own.len();
            way.levels.iter().rev().filter(|level| fits(level.node)).copied().collect()
        };
        let (results, kernels) = (ranked(result), ranked(kernel));
        results.iter().find_map(|y| {
            kernels.iter().find_map(|w| {
                let bounds = self.outer.iter().chain(&result.bounds[..y.bounds]);
                let bounds: Vec<_> = bounds.chain(&kernel.bounds[..w.bounds]).cloned().collect();
                self.at(indices, (y.node, y.tuple), (w.node, w.tuple), &bounds)
            })
        })
    }

    fn at(
        &self,
        indices: &Indices,
        (result, y): (NodeId, TupleId),
        (kernel, w): (NodeId, TupleId),
        bounds: &[(Index, i64)],
    ) -> Option<Contraction> {
        let graph = self.graph;
        let [image_dims, kernel_dims, result_dims] =
            [self.id, kernel, result].map(|id| graph.shape(id).clone());
        let dtype = graph.dtype(result);
        let (images, channels, outputs) = (image_dims[0], image_dims[1], kernel_dims[0]);
        let fits = [result_dims[0], result_dims[1], kernel_dims[1]] == [images, outputs, channels]
            && matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            && graph.dtype(kernel) == dtype;
        let (y, w) = (indices.get(y), indices.get(w));
        let is = |index: &Index, atom: Option<AtomId>| match atom {
            Some(atom) => *index == indices.algebra.of(atom),
            None => *index == Index::constant(0),
        };
        if !fits || !is(&y[0], self.own[0]) || !is(&w[1], self.own[1]) || y[1] != w[0] {
            return None;
        }
        let output = self.summed.iter().copied().find(|&atom| is(&y[1], Some(atom)));
        if output.map_or(outputs != 1 || !is(&y[1], None), |a| indices.extent(a) != outputs) {
            return None;
        }
        // What is left to sum over belongs to one axis each, and so does every bound.
        let mut free: Vec<AtomId> =
            self.summed.iter().copied().filter(|&atom| Some(atom) != output).collect();
        let mut used = vec![false; bounds.len()];
        let mut axes = Vec::new();
        for i in 2..self.own.len() {
            let own = self.own[i];
            let mut places: FxHashSet<AtomId> = FxHashSet::default();
            for index in [&y[i], &w[i]] {
                indices.algebra.visit_axes(index, &mut |atom| {
                    places.insert(atom);
                });
            }
            places.retain(|&atom| Some(atom) != own);
            if places.len() > 1 {
                return None;
            }
            let place = places.into_iter().next();
            if let Some(place) = place {
                free.remove(free.iter().position(|&atom| atom == place)?);
            }
            let mine = |index: &Index| {
                let mut all = true;
                indices.algebra.visit_axes(index, &mut |atom| {
                    all &= Some(atom) == own || Some(atom) == place;
                });
                all
            };
            let mut limits = Vec::new();
            for (bound, used) in bounds.iter().zip(&mut used) {
                if mine(&bound.0) {
                    *used = true;
                    limits.push(bound);
                }
            }
            let line = Line { own, place, result: &y[i], kernel: &w[i], limits };
            axes.push(line.axis(indices, image_dims[i], kernel_dims[i], result_dims[i])?);
        }
        if !free.is_empty() || used.contains(&false) {
            return None;
        }
        let strides = |dims: &[usize], group: usize| -> Vec<usize> {
            let mut next = 1;
            let mut list: Vec<usize> = dims
                .iter()
                .rev()
                .map(|&dim| {
                    let stride = if dim == 1 { 0 } else { next };
                    next *= dim;
                    stride
                })
                .collect();
            list.reverse();
            list.insert(group, 0);
            list
        };
        let spec = ConvolutionSpec {
            computes: Convolved::Image,
            operands: dtype,
            computed: graph.dtype(self.id),
            images,
            groups: 1,
            channels,
            outputs,
            axes,
            strides: [strides(&image_dims, 1), strides(&kernel_dims, 0), strides(&result_dims, 1)],
            offsets: [0; 3],
        };
        let operands = [kernel, result].map(|id| storage(graph, id));
        Some(Contraction::of_interleaved(self.id, operands, spec))
    }
}

/// One axis: its counters, the indices along it, and where there are elements.
struct Line<'a> {
    own: Option<AtomId>,
    place: Option<AtomId>,
    result: &'a Index,
    kernel: &'a Index,
    limits: Vec<&'a (Index, i64)>,
}

impl Line<'_> {
    /// The axis of a gradient that sums the same products.
    fn axis(
        &self,
        indices: &Indices,
        image: usize,
        kernel: usize,
        result: usize,
    ) -> Option<ConvolutionAxis> {
        let places = self.place.map_or(1, |atom| indices.extent(atom)) as i64;
        let mut products = Vec::new();
        for h in 0..image as i64 {
            for place in 0..places {
                let value = |index: &Index| {
                    let of = |atom| if Some(atom) == self.own { h } else { place };
                    indices.algebra.evaluate(index, &of)
                };
                if self.limits.iter().all(|(index, extent)| (0..*extent).contains(&value(index))) {
                    products.push((h, value(self.result), value(self.kernel)));
                }
            }
        }
        let (image, kernel, result) = (image as i64, kernel as i64, result as i64);
        let inside =
            |&(_, u, k): &(i64, i64, i64)| (0..result).contains(&u) && (0..kernel).contains(&k);
        let &(h, u, k) = products.first()?;
        let distinct: FxHashSet<_> = products.iter().map(|&(_, u, k)| (u, k)).collect();
        if !products.iter().all(inside) || distinct.len() != products.len() {
            return None;
        }
        (1..=MOST_STRIDE).find_map(|stride| {
            let before = u * stride + k - h;
            let same = products.iter().all(|&(h, u, k)| u * stride + k - before == h);
            let all = (0..result).flat_map(|u| (0..kernel).map(move |k| u * stride + k - before));
            let complete = || all.filter(|h| (0..image).contains(h)).count() == products.len();
            (before >= 0 && same && complete()).then_some(ConvolutionAxis {
                image: image as usize,
                kernel: kernel as usize,
                result: result as usize,
                stride: stride as usize,
                dilation: 1,
                before: before as usize,
            })
        })
    }
}
