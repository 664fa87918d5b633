//! Recognising convolutions: contractions over windows of an image that zeros surround.
//!
//! One factor of the product is the image. On the way down to its buffer the index along some of its
//! axes is `stride * p + dilation * k` less the zeros before it, where `p` and `k` are counters of which
//! one belongs to the result and the other to the sum. Paddings on the way bound that index, and what
//! is outside of the bounds is zero. The other factor is addressed affinely and has no zeros.
//!
//! If the result's counters are the positions of windows this is a convolution, or along a
//! flipped kernel the gradient of its image; if they are the places of the kernel, it is the gradient of
//! the kernel.

use super::contract::{Contraction, Counter, counters, is_widening};
use super::item::storage;
use super::pull::{Indices, TupleId};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps, ConvolutionAxis, ConvolutionSpec, Convolved};
use crate::runtime::Device;
use crate::tune::model::Rates;

/// Most axes along which a kernel slides.
const MOST_AXES: usize = 3;

/// A node whose buffer is addressed affinely.
struct Place {
    node: NodeId,
    tuple: TupleId,
    flat: Index,
    /// Tuples and bounds that were met before it.
    levels: usize,
    bounds: usize,
}

/// What a factor is pulled through.
struct Way {
    /// From the factor down.
    places: Vec<Place>,
    levels: Vec<(NodeId, TupleId)>,
    /// Indices with the number of elements there are from 0 on; zeros elsewhere.
    bounds: Vec<(Index, i64)>,
}

impl Way {
    fn of(graph: &Graph, indices: &mut Indices, mut id: NodeId, mut tuple: TupleId) -> Option<Way> {
        let mut way = Way { places: Vec::new(), levels: Vec::new(), bounds: Vec::new() };
        'down: loop {
            way.levels.push((id, tuple));
            let flat = indices.flat(graph, id, tuple);
            if indices.algebra.is_affine(&flat) {
                let (levels, bounds) = (way.levels.len(), way.bounds.len());
                way.places.push(Place { node: id, tuple, flat, levels, bounds });
            }
            let node = graph.node(id);
            match node {
                Node::Const { .. } | Node::Argument { .. } | Node::Iota => return None,
                Node::Copy { x } => id = x,
                Node::Cast { x } if is_widening(graph.dtype(x), graph.dtype(id)) => id = x,
                _ => {
                    let Some(pulled) = indices.pull(graph, id, tuple) else { break };
                    let x = node.sources().next()?;
                    if matches!(node, Node::Pad { .. }) {
                        for (index, &extent) in
                            indices.get(pulled).iter().zip(graph.shape(x).iter())
                        {
                            let (min, max) = indices.algebra.range(index);
                            if min >= 0 && max < extent as i64 {
                                continue;
                            }
                            if !indices.algebra.is_affine(index) {
                                break 'down;
                            }
                            way.bounds.push((index.clone(), extent as i64));
                        }
                    }
                    (id, tuple) = (x, pulled);
                }
            }
        }
        Some(way)
    }
}

/// What a counter moves beside the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// The result: of a convolution its positions and images.
    Result,
    /// The other factor, and is summed over: channels and places of the kernel.
    Sum,
    /// All three.
    Group,
    /// The result and the other factor, not the image.
    Other,
}

/// An axis of the image: counters of positions and of places in the kernel with their coefficients.
#[derive(Clone, Copy)]
struct Slide {
    position: Option<(AtomId, i64)>,
    place: Option<(AtomId, i64)>,
    /// Elements between neighbours in memory.
    stride: i64,
}

/// The convolution that `id` is, or the gradient of one. What it is as a contraction has addresses
/// that are wrong where there are zeros.
pub(crate) fn recognize(graph: &Graph, indices: &mut Indices, id: NodeId) -> Option<Contraction> {
    let (counters, [p, q]) = counters(graph, indices, id)?;
    let p = Way::of(graph, indices, p.0, p.1)?;
    let q = Way::of(graph, indices, q.0, q.1)?;
    let found = Finder { graph, counters: &counters, id };
    found.of(indices, &p, &q).or_else(|| found.of(indices, &q, &p))
}

/// Whether nothing else of a library is better: products of matrices for one place of a kernel, unless
/// they are many of few columns each.
pub(super) fn comes_first(contraction: &Contraction) -> bool {
    let spec = contraction.convolution.as_deref();
    spec.is_some_and(|spec| {
        is_many_products(spec) || slides(spec, |axis| axis.kernel > 1) || is_strided_image(spec)
    })
}

/// Whether generated code computes phases of it, which are interleaved.
fn is_strided_image(spec: &ConvolutionSpec) -> bool {
    spec.computes == Convolved::Image && slides(spec, |axis| axis.stride > 1)
}

/// Whether it is a product of matrices for each image, with few columns: of halves slow in libraries.
fn is_many_products(spec: &ConvolutionSpec) -> bool {
    let positions: usize = spec.axes.iter().map(|axis| axis.result).product();
    spec.computes != Convolved::Kernel
        && spec.operands != DType::F32
        && spec.images > 1
        && positions < FEW_POSITIONS
        && !slides(spec, |axis| axis.kernel > 1)
}

/// Part of the time of generated code that a library may be predicted to take at most.
const SOONER: f64 = 0.95;
/// Fewest channels that blocks of generated code are full of, and of a library's.
const OWN_BLOCK: usize = 64;
const LIBRARY_BLOCK: usize = 32;
/// Channels below which either computes otherwise.
const NARROW: usize = 16;
/// Positions of an image that make too small a product of matrices.
const FEW_POSITIONS: usize = 128;

/// Whether a library is predicted to take less time than generated code. Parts of a device's speed are
/// what was measured on an H100, of layers of ResNet-50, of a U-Net and of others
/// (`bench/src/bin/convolutions.rs`).
pub(super) fn is_sooner(contraction: &Contraction, caps: &Caps) -> bool {
    let rates = Rates::of(caps);
    let sooner = |spec: &ConvolutionSpec| {
        is_measured(spec) && library(spec, &rates) < SOONER * generated(spec, &rates)
    };
    contraction.convolution.as_deref().is_some_and(sooner)
}

/// Whether times of the library are known. Of gradients along strides they are those of square kernels;
/// for a kernel of 3 x 2 elements it has nothing but a way that takes 17 times as long as phases do.
fn is_measured(spec: &ConvolutionSpec) -> bool {
    let square = |axes: &[ConvolutionAxis]| matches!(axes, [a, b] if (a.kernel, a.stride, a.dilation) == (b.kernel, b.stride, b.dilation));
    !is_strided_image(spec) || square(&spec.axes)
}

/// Channels that are summed over, and those of what is computed.
fn sides(spec: &ConvolutionSpec) -> [usize; 2] {
    match spec.computes {
        Convolved::Image => [spec.outputs, spec.channels],
        Convolved::Result | Convolved::Kernel => [spec.channels, spec.outputs],
    }
}

/// Multiply-adds with channels rounded up to blocks.
fn rounded(spec: &ConvolutionSpec, [first, second]: [usize; 2]) -> f64 {
    let [inner, outer] = sides(spec);
    let up = |n: usize, block: usize| n.next_multiple_of(block) as f64 / n.max(1) as f64;
    spec.multiplications() * up(inner, first) * up(outer, second)
}

fn slides(spec: &ConvolutionSpec, f: impl Fn(&ConvolutionAxis) -> bool) -> bool {
    spec.axes.iter().any(f)
}

fn bytes(spec: &ConvolutionSpec) -> f64 {
    let tensor = |role: usize| {
        spec.lengths()[role].iter().product::<usize>() as f64 * spec.dtype(role).size() as f64
    };
    tensor(0) + tensor(2)
}

/// Nanoseconds of generated code.
fn generated(spec: &ConvolutionSpec, rates: &Rates) -> f64 {
    let (half, kernel) = (spec.operands != DType::F32, spec.computes == Convolved::Kernel);
    let [inner, outer] = sides(spec);
    let windows = slides(spec, |axis| axis.kernel > 1);
    let strided = slides(spec, |axis| axis.stride > 1);
    let macs = spec.multiplications();
    if is_strided_image(spec) {
        let phased = |axis: &ConvolutionAxis| {
            let places = axis.kernel.div_ceil(axis.stride) * axis.kernel.min(axis.stride);
            places as f64 / axis.kernel as f64
        };
        let macs = macs * spec.axes.iter().map(phased).product::<f64>();
        // Phases are channels; without overlap it is a product of matrices.
        let phases: usize = spec.axes.iter().map(|axis| axis.kernel.min(axis.stride)).product();
        let product = !slides(spec, |axis| axis.kernel > axis.stride);
        let part = match (half, outer * phases < NARROW) {
            (true, _) if product => 0.21 * rates.products,
            (true, true) => 0.02 * rates.products,
            (true, false) => 0.1 * rates.products,
            (false, true) => 0.12 * rates.operations,
            (false, false) => 0.53 * rates.operations,
        };
        return macs / part + 2.0 * bytes(spec) / (0.75 * rates.bytes) + 3.0 * rates.launch;
    }
    let arithmetic = if spec.groups > 1 && inner.min(outer) < NARROW {
        let alone = inner == 1 && outer == 1;
        let part = match (alone, kernel) {
            (true, false) => 0.06,
            (false, false) => 0.11,
            (_, true) => 0.03,
        };
        macs / (part * rates.operations)
    } else if outer < NARROW {
        macs / if half { 0.01 * rates.products } else { 0.18 * rates.operations }
    } else if inner < NARROW {
        macs / if half { 0.05 * rates.products } else { 0.5 * rates.operations }
    } else if half {
        let part = match (kernel, windows, strided) {
            (false, true, true) => 0.16,
            (false, false, _) if is_many_products(spec) => 0.08,
            (false, _, _) => 0.21,
            (true, true, _) => 0.125,
            (true, false, true) => 0.06,
            (true, false, false) => 0.15,
        };
        rounded(spec, [OWN_BLOCK; 2]) / (part * rates.products)
    } else {
        let part = if windows { 0.53 } else { 0.68 };
        rounded(spec, [1, OWN_BLOCK]) / (part * rates.operations)
    };
    arithmetic.max(bytes(spec) / rates.bytes) + rates.launch
}

/// Nanoseconds of a library. Halves it puts in another order before and after.
fn library(spec: &ConvolutionSpec, rates: &Rates) -> f64 {
    let (half, kernel) = (spec.operands != DType::F32, spec.computes == Convolved::Kernel);
    let windows = slides(spec, |axis| axis.kernel > 1);
    let uneven = slides(spec, |axis| axis.stride > 1 || axis.dilation > 1);
    let positions: usize = spec.axes.iter().map(|axis| axis.result).product();
    if spec.groups > 1 && spec.channels == 1 && spec.outputs == 1 {
        let part = match (half, kernel) {
            (true, false) => 0.35,
            (true, true) => 0.13,
            (false, _) => 0.1,
        };
        return bytes(spec) / (part * rates.bytes) + rates.launch;
    }
    if half {
        let macs = rounded(spec, [LIBRARY_BLOCK, 2 * LIBRARY_BLOCK]);
        let order = 2.0 * bytes(spec) / (0.75 * rates.bytes);
        return order + macs / (0.4 * rates.products) + 3.0 * rates.launch;
    }
    let strided = slides(spec, |axis| axis.stride > 1);
    let small = |axis: &ConvolutionAxis| axis.kernel == 3;
    let winograd = spec.axes.len() == 2 && spec.axes.iter().all(small) && !uneven;
    let wide = spec.channels.min(spec.outputs) >= 128;
    let part = match spec.computes {
        Convolved::Kernel if winograd && wide => 1.3,
        Convolved::Kernel if winograd => 0.49,
        Convolved::Kernel => 0.3,
        _ if spec.axes.len() == 3 => 0.9,
        Convolved::Image if strided && spec.outputs < 256 => 0.28,
        Convolved::Image if strided => 0.34,
        Convolved::Image => 0.46,
        Convolved::Result if !windows => 0.75,
        Convolved::Result if spec.axes.len() == 1 => 0.43,
        Convolved::Result if strided => 0.5,
        Convolved::Result if positions >= 3136 && !uneven => 0.8,
        Convolved::Result if positions >= 196 => 0.6,
        Convolved::Result => 0.44,
    };
    rounded(spec, [LIBRARY_BLOCK; 2]) / (part * rates.operations) + rates.launch
}

/// Whether the device's library computes the sum `id` as a convolution, rounded or not.
pub(super) fn is_offered(
    graph: &Graph,
    indices: &mut Indices,
    id: NodeId,
    device: &Device,
) -> bool {
    if !device.caps().convolutions {
        return false;
    }
    let found = recognize(graph, indices, id).filter(|c| is_sooner(c, device.caps()));
    let Some(spec) = found.and_then(|c| c.convolution) else { return false };
    let rounded = ConvolutionSpec { computed: spec.operands, ..(*spec).clone() };
    [*spec, rounded].into_iter().any(|spec| device.library(&Call::Convolve(spec)).is_some())
}

struct Finder<'a> {
    graph: &'a Graph,
    counters: &'a [Counter],
    id: NodeId,
}

/// Counters by class; but for windows there is one of each at most, or what is left along axes
/// where the kernel has one element.
#[derive(Default)]
struct Sorted {
    windows: Vec<[(AtomId, i64); 2]>,
    results: Vec<AtomId>,
    sums: Vec<AtomId>,
    /// Indices along axes with their lengths.
    axes: Vec<(Index, i64)>,
}

impl Finder<'_> {
    fn of(&self, indices: &mut Indices, image: &Way, other: &Way) -> Option<Contraction> {
        let place = image.places.last()?;
        let bounds = &image.bounds[..place.bounds];
        let unbounded: Vec<&Place> = other.places.iter().filter(|p| p.bounds == 0).collect();
        let deepest = *unbounded.last()?;
        let class = |atom: AtomId| {
            let counter = self.counters.iter().find(|c| c.atom == atom)?;
            let moves = [place, deepest].map(|place| place.flat.coefficient(atom) != 0);
            match (moves, counter.c != 0) {
                ([true, false], true) => Some(Class::Result),
                ([true, true], false) => Some(Class::Sum),
                ([true, true], true) => Some(Class::Group),
                ([false, true], true) => Some(Class::Other),
                _ => None,
            }
        };
        let mut of_class: [Vec<AtomId>; 2] = Default::default();
        for counter in self.counters {
            match class(counter.atom)? {
                Class::Group => of_class[0].push(counter.atom),
                Class::Other => of_class[1].push(counter.atom),
                Class::Result | Class::Sum => {}
            }
        }
        let [groups, others] = of_class;
        let single = |list: &[AtomId]| (list.len() <= 1).then(|| list.first().copied());
        let (group, outer) = (single(&groups)?, single(&others)?);
        // The level with the most axes that slide, since above it some are not put together yet.
        let levels = image.levels[..place.levels].iter();
        let mut sorted: Vec<Sorted> =
            levels.filter_map(|&level| self.sorted(indices, level, &class)).collect();
        sorted.sort_by_key(|sorted| std::cmp::Reverse(self.overlapping(sorted)));
        let parts = sorted.into_iter().filter_map(|sorted| {
            let kernel = self.is_gradient_of_kernel(&sorted, outer)?;
            let axes = sorted.axes.clone();
            let (slides, rest) = self.slides(sorted, &place.flat, kernel)?;
            Some(Parts { slides, rest, group, outer, kernel, axes })
        });
        let parts: Vec<Parts> = parts.collect();
        // Libraries are best at tensors in their usual order.
        [true, false].into_iter().find_map(|packed| {
            parts.iter().find_map(|parts| {
                let mut places = unbounded.iter().rev();
                places.find_map(|at| self.finish(place, at, bounds, parts, packed))
            })
        })
    }

    /// How many axes of windows are no mere division of an axis in pieces.
    fn overlapping(&self, sorted: &Sorted) -> usize {
        let pieces = |[(a, c), (b, d)]: &[(AtomId, i64); 2]| {
            let [a, b] = [a, b].map(|&atom| self.len(Some(atom)) as i64);
            *c >= d * b || *d >= c * a
        };
        sorted.windows.iter().filter(|window| !pieces(window)).count()
    }

    /// Which counters make windows at a level.
    fn sorted(
        &self,
        indices: &Indices,
        (node, tuple): (NodeId, TupleId),
        class: &impl Fn(AtomId) -> Option<Class>,
    ) -> Option<Sorted> {
        let mut sorted = Sorted::default();
        let mut seen: Vec<AtomId> = Vec::new();
        for (index, &extent) in indices.get(tuple).iter().zip(self.graph.shape(node).iter()) {
            sorted.axes.push((index.clone(), extent as i64));
            if !indices.algebra.is_affine(index) {
                return None;
            }
            for &(atom, _) in &index.terms {
                if seen.contains(&atom) {
                    return None;
                }
                seen.push(atom);
            }
            let moving: Vec<((AtomId, i64), Class)> =
                index.terms.iter().filter_map(|&term| Some((term, class(term.0)?))).collect();
            match moving[..] {
                [(a, Class::Result), (b, Class::Sum)] | [(b, Class::Sum), (a, Class::Result)]
                    if a.1 > 0 && b.1 > 0 =>
                {
                    sorted.windows.push([a, b]);
                }
                _ => {
                    for &((atom, _), class) in &moving {
                        match class {
                            Class::Result => sorted.results.push(atom),
                            Class::Sum => sorted.sums.push(atom),
                            Class::Group | Class::Other => {}
                        }
                    }
                }
            }
        }
        Some(sorted)
    }

    fn counter(&self, atom: AtomId) -> Option<&Counter> {
        self.counters.iter().find(|c| c.atom == atom)
    }

    fn len(&self, atom: Option<AtomId>) -> usize {
        atom.and_then(|atom| self.counter(atom)).map_or(1, |counter| counter.len)
    }

    /// Whether sums run over positions and images rather than over places and channels. Where both
    /// could be, outer dimensions of a result are images, inner ones channels of a kernel; and there are
    /// more positions than places.
    fn is_gradient_of_kernel(&self, sorted: &Sorted, outer: Option<AtomId>) -> Option<bool> {
        let stride = |atom: AtomId| self.counter(atom).map_or(0, |counter| counter.c);
        let count = |side: usize| -> usize {
            sorted.windows.iter().map(|window| self.len(Some(window[side].0))).product()
        };
        match (&sorted.results[..], &sorted.sums[..], outer) {
            ([_, _, ..], [_, _, ..], _) => None,
            (_, [_, _, ..], _) => Some(true),
            ([_, _, ..], _, _) => Some(false),
            (&[result], _, Some(outer)) => Some(stride(result) < stride(outer)),
            _ => Some(count(0) < count(1)),
        }
    }

    /// The axes of the image, the outermost first, and what is left: images and channels.
    fn slides(
        &self,
        sorted: Sorted,
        flat: &Index,
        kernel: bool,
    ) -> Option<(Vec<Slide>, [Option<AtomId>; 2])> {
        let Sorted { windows, mut results, mut sums, axes } = sorted;
        let mut slides = Vec::new();
        for [result, sum] in windows {
            let (position, place) = if kernel { (sum, result) } else { (result, sum) };
            let strides = [position, place].map(|(atom, by)| (flat.coefficient(atom), by));
            let [stride, same] = strides.map(|(c, by)| (c % by == 0).then_some(c / by));
            let stride = stride.filter(|&stride| stride > 0 && same == Some(stride))?;
            slides.push(Slide { position: Some(position), place: Some(place), stride });
        }
        // Counters of images, and of positions where the kernel has one place.
        let (positions, channels) =
            if kernel { (&mut sums, &mut results) } else { (&mut results, &mut sums) };
        positions.sort_by_key(|&atom| std::cmp::Reverse(flat.coefficient(atom)));
        // One that runs along a whole axis may count images.
        let along = |atom: AtomId| {
            let mut of_it = axes.iter().filter(|axis| axis.0.coefficient(atom) != 0);
            of_it.next().map(|(index, extent)| (index.coefficient(atom), *extent, index.constant))
        };
        let whole = |&atom: &AtomId| along(atom) == Some((1, self.len(Some(atom)) as i64, 0));
        let images = positions.iter().position(whole).map(|at| positions.remove(at));
        for &atom in &*positions {
            let (by, c) = (along(atom)?.0, flat.coefficient(atom));
            if by <= 0 || c <= 0 || c % by != 0 {
                return None;
            }
            slides.push(Slide { position: Some((atom, by)), place: None, stride: c / by });
        }
        slides.sort_by_key(|slide| std::cmp::Reverse(slide.stride));
        let channel = match channels[..] {
            [] => None,
            [channel] => Some(channel),
            _ => return None,
        };
        let usable = (1..=MOST_AXES).contains(&slides.len());
        usable.then_some((slides, [images, channel]))
    }

    /// The contraction with the other factor read at `at`; `packed` if nothing but the usual order in
    /// memory will do.
    fn finish(
        &self,
        image: &Place,
        at: &Place,
        bounds: &[(Index, i64)],
        parts: &Parts,
        packed: bool,
    ) -> Option<Contraction> {
        let Parts { slides, rest: [images, channel], group, outer, kernel, axes: whole } = parts;
        let (x, y) = (&image.flat, &at.flat);
        // Every bound is one of an axis.
        let mut axes = Vec::new();
        let (mut offset, mut used) = (x.constant, 0);
        for slide in slides {
            let step = |term: Option<(AtomId, i64)>| term.map_or(0, |term| term.1);
            let [positions, places] =
                [slide.position, slide.place].map(|term| self.len(term.map(|term| term.0)) as i64);
            let (stride, dilation) = (step(slide.position).max(1), step(slide.place).max(1));
            let reach = dilation * (places - 1);
            let end = stride * (positions - 1) + reach + 1;
            let (mut low, mut high) = (0, i64::MAX);
            for (i, (index, extent)) in bounds.iter().chain(whole).enumerate() {
                let terms = [slide.position, slide.place];
                if index.terms.len() != terms.iter().flatten().count()
                    || terms.iter().flatten().any(|&(atom, by)| index.coefficient(atom) != by)
                {
                    continue;
                }
                used += usize::from(i < bounds.len());
                (low, high) = (low.max(-index.constant), high.min(extent - index.constant));
            }
            // Elements behind the last window are no part of the image where they would make for another
            // one.
            if high > end && (high - reach - 1) / stride >= positions {
                high = end;
            }
            if high <= low {
                return None;
            }
            offset += slide.stride * low;
            axes.push((positions, places, stride, dilation, low, high - low));
        }
        if used != bounds.len() {
            return None;
        }
        let stride_of = |flat: &Index, atom: Option<AtomId>| -> Option<usize> {
            usize::try_from(atom.map_or(0, |atom| flat.coefficient(atom))).ok()
        };
        let in_c = |atom: Option<AtomId>| -> usize {
            atom.and_then(|atom| self.counter(atom)).map_or(0, |counter| counter.c as usize)
        };
        let atoms = |of: fn(&Slide) -> Option<(AtomId, i64)>| -> Vec<Option<AtomId>> {
            slides.iter().map(|slide| of(slide).map(|term| term.0)).collect()
        };
        let (positions, places) = (atoms(|slide| slide.position), atoms(|slide| slide.place));
        let of_image: Vec<usize> = [*images, *group, *channel]
            .into_iter()
            .map(|atom| stride_of(x, atom))
            .chain(slides.iter().map(|slide| usize::try_from(slide.stride).ok()))
            .collect::<Option<_>>()?;
        // A kernel that is flipped makes it the gradient along the image.
        let signs: Vec<i64> =
            places.iter().flatten().map(|&atom| y.coefficient(atom).signum()).collect();
        let all = |sign: i64| signs.iter().all(|&s| s == sign);
        let mut last = y.constant;
        for atom in places.iter().flatten().filter(|_| !kernel && !all(1)) {
            last += y.coefficient(*atom) * (self.len(Some(*atom)) as i64 - 1);
        }
        let [offset, last] = [offset, last].map(usize::try_from).map(Result::ok);
        let (offset, last) = (offset?, last?);
        let strides_of = |lead: [Option<AtomId>; 3], along: &[Option<AtomId>]| {
            let all = lead.into_iter().chain(along.iter().copied());
            all.map(|atom| stride_of(y, atom)).collect::<Option<Vec<usize>>>()
        };
        let in_result = |lead: [Option<AtomId>; 3], along: &[Option<AtomId>]| -> Vec<usize> {
            lead.into_iter().chain(along.iter().copied()).map(in_c).collect()
        };
        let dtype = self.graph.dtype(at.node);
        if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            || self.graph.dtype(image.node) != dtype
        {
            return None;
        }
        let mut spec = ConvolutionSpec {
            computes: Convolved::Result,
            operands: dtype,
            computed: self.graph.dtype(self.id),
            images: self.len(*images),
            groups: self.len(*group),
            channels: self.len(*channel),
            outputs: self.len(*outer),
            axes: axes
                .iter()
                .map(|&(positions, places, stride, dilation, low, len)| ConvolutionAxis {
                    image: len as usize,
                    kernel: places as usize,
                    result: positions as usize,
                    stride: stride as usize,
                    dilation: dilation as usize,
                    before: low as usize,
                })
                .collect(),
            strides: Default::default(),
            offsets: [offset, last, 0],
        };
        let mut ways = Vec::new();
        if *kernel {
            // The other factor has the shape of results.
            spec.computes = Convolved::Kernel;
            spec.strides = [
                of_image,
                in_result([*group, *outer, *channel], &places),
                strides_of([*images, *group, *outer], &positions)?,
            ];
            spec.offsets = [offset, 0, last];
            ways.push(spec);
        } else {
            let result = in_result([*images, *group, *outer], &positions);
            if all(1) {
                let kernel = strides_of([*group, *outer, *channel], &places)?;
                let mut spec = spec.clone();
                spec.strides = [of_image.clone(), kernel, result.clone()];
                ways.push(spec);
            }
            if all(-1) && spec.axes.iter().all(|axis| axis.stride == 1) {
                let flipped = |atom: &AtomId| usize::try_from(-y.coefficient(*atom)).ok();
                let lead = [*group, *channel, *outer].map(|atom| stride_of(y, atom));
                let along = places.iter().map(|atom| atom.as_ref().map_or(Some(0), flipped));
                let kernel = lead.into_iter().chain(along).collect::<Option<Vec<usize>>>()?;
                // What is read is the gradient of results, what is computed that of the image.
                let turned = |axis: &ConvolutionAxis| {
                    let reach = axis.dilation * (axis.kernel - 1);
                    let before = reach.checked_sub(axis.before)?;
                    let after = (axis.image + reach).checked_sub(axis.result + before);
                    let (image, result) = (axis.result, axis.image);
                    after.map(|_| ConvolutionAxis { image, result, before, ..*axis })
                };
                if let Some(axes) = spec.axes.iter().map(turned).collect::<Option<Vec<_>>>() {
                    spec.computes = Convolved::Image;
                    spec.axes = axes;
                    std::mem::swap(&mut spec.channels, &mut spec.outputs);
                    spec.strides = [result, kernel, of_image];
                    spec.offsets = [0, last, offset];
                    ways.push(spec);
                }
            }
        }
        let fits = |spec: &ConvolutionSpec| {
            let nodes = match spec.computes {
                Convolved::Result => [image.node, at.node, self.id],
                Convolved::Image => [self.id, at.node, image.node],
                Convolved::Kernel => [image.node, self.id, at.node],
            };
            let room = |role: usize| {
                let elements = self.graph.shape(nodes[role]).numel();
                spec.span(role).is_some_and(|span| span > 0 && span <= elements)
            };
            (0..3).all(room)
        };
        let usual = |spec: &ConvolutionSpec| {
            let all = spec.lengths();
            !packed || all.iter().zip(&spec.strides).all(|(lens, by)| is_packed(lens, by))
        };
        let spec = ways.into_iter().find(|spec| fits(spec) && usual(spec))?;
        let (from_image, from_other) =
            (storage(self.graph, image.node), storage(self.graph, at.node));
        // In the order of arguments.
        let swap = spec.computes == Convolved::Image;
        let mut ends = [(from_image, image.tuple, x), (from_other, at.tuple, y)];
        if swap {
            ends.swap(0, 1);
        }
        Contraction::of_convolution(self.graph, self.id, ends, self.counters, spec)
    }
}

/// What a level was taken apart to.
struct Parts {
    slides: Vec<Slide>,
    /// Images and channels.
    rest: [Option<AtomId>; 2],
    group: Option<AtomId>,
    outer: Option<AtomId>,
    /// Whether the kernel is computed.
    kernel: bool,
    axes: Vec<(Index, i64)>,
}

/// Whether strides are those of an array in row-major order.
fn is_packed(lengths: &[usize], strides: &[usize]) -> bool {
    let mut next = 1;
    lengths.iter().zip(strides).rev().all(|(&len, &stride)| {
        let fits = len == 1 || stride == next;
        next *= len;
        fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{capture, eval};
    use crate::runtime::Runtime;
    use crate::scalar::Scalar;
    use crate::schedule::interleaved;
    use crate::tensor::{Conv1dOptions, Conv2dOptions, Conv3dOptions, Tensor};
    use crate::testing::{Null, explain};

    fn device() -> Device {
        Runtime::default().device("reference").unwrap()
    }

    /// Small integers, whose sums are exact in any order.
    fn data(dims: &[usize], device: &Device) -> Tensor {
        let n: usize = dims.iter().product();
        let values: Vec<f32> = (0..n).map(|i| ((i * 37 + 11) % 23) as f32 - 11.0).collect();
        Tensor::from_slice(&values, dims, device).unwrap()
    }

    /// What a specification says, from the buffers of its operands.
    fn computed(spec: &ConvolutionSpec, operands: [&[Scalar]; 2], elements: usize) -> Vec<f64> {
        let (roles, result) = spec.roles();
        let mut out = vec![0.0; elements];
        let strides = &spec.strides;
        let at = |role: usize, lead: [usize; 3], along: &[usize]| {
            let index = lead.iter().chain(along).zip(&strides[role]);
            spec.offsets[role] + index.map(|(i, stride)| i * stride).sum::<usize>()
        };
        let lengths: Vec<usize> = spec.axes.iter().flat_map(|a| [a.result, a.kernel]).collect();
        let steps: usize = lengths.iter().product();
        let leads = [spec.images, spec.groups, spec.outputs, spec.channels];
        for lead in 0..leads.iter().product::<usize>() {
            let (lead, c) = (lead / leads[3], lead % leads[3]);
            let (lead, o) = (lead / leads[2], lead % leads[2]);
            let (i, g) = (lead / leads[1], lead % leads[1]);
            for step in 0..steps {
                let mut rest = step;
                let (mut x, mut k, mut y) = (Vec::new(), Vec::new(), Vec::new());
                let mut inside = true;
                for axis in &spec.axes {
                    let position = rest % axis.result;
                    rest /= axis.result;
                    let place = rest % axis.kernel;
                    rest /= axis.kernel;
                    let u = position * axis.stride + place * axis.dilation;
                    inside &= u >= axis.before && u < axis.before + axis.image;
                    x.push(u.wrapping_sub(axis.before));
                    k.push(place);
                    y.push(position);
                }
                if !inside {
                    continue;
                }
                let places = [at(0, [i, g, c], &x), at(1, [g, o, c], &k), at(2, [i, g, o], &y)];
                let factor = |n: usize| operands[n][places[roles[n]]].to_f64();
                out[places[result]] += factor(0) * factor(1);
            }
        }
        out
    }

    /// The convolutions found in what tensors are computed by. Each computes what its node means.
    #[track_caller]
    fn found(tensors: &[&Tensor]) -> Vec<ConvolutionSpec> {
        let (mut graph, bindings) = capture(tensors, 0);
        graph.outputs = graph.ids().collect();
        let mut leaves = vec![Vec::new(); bindings.leaves.len()];
        for id in graph.ids() {
            if let Node::Leaf { slot } = graph.node(id) {
                let buffer = &bindings.leaves[slot as usize];
                let mut bytes = vec![0; graph.shape(id).numel() * graph.dtype(id).size()];
                buffer.device().read(buffer, &mut bytes).unwrap();
                leaves[slot as usize] = Scalar::read_all(graph.dtype(id), &bytes);
            }
        }
        let values = eval::evaluate(&graph, &leaves, &bindings.arguments);
        let mut specs = Vec::new();
        for id in graph.ids() {
            let indices = &mut Indices::default();
            let found = recognize(&graph, indices, id);
            let found = found.or_else(|| interleaved::recognize(&graph, indices, id, |_| true));
            let Some(found) = found else { continue };
            let spec = *found.convolution.unwrap();
            let operands = found.operands.map(|x| &values[x.idx()][..]);
            let expected: Vec<f64> = values[id.idx()].iter().map(|x| x.to_f64()).collect();
            assert_eq!(computed(&spec, operands, expected.len()), expected, "{spec:?}");
            specs.push(spec);
        }
        specs
    }

    /// A convolution and both of its gradients.
    fn all(x: &Tensor, w: &Tensor, y: &Tensor) -> Vec<ConvolutionSpec> {
        let dy = data(y.shape(), x.device());
        let gradients = y.grad_with(&dy, &[x, w]).unwrap();
        found(&[y, gradients[0].as_ref().unwrap(), gradients[1].as_ref().unwrap()])
    }

    fn axis(sizes: [usize; 3], stride: usize, dilation: usize, before: usize) -> ConvolutionAxis {
        let [image, kernel, result] = sizes;
        ConvolutionAxis { image, kernel, result, stride, dilation, before }
    }

    #[test]
    fn a_convolution_and_both_gradients_are_found() {
        let d = device();
        let (x, w) = (data(&[2, 3, 8, 9], &d), data(&[4, 3, 3, 5], &d));
        let options = Conv2dOptions { padding: [1, 2], ..Default::default() };
        let y = x.conv2d(&w, None, options).unwrap();
        let specs = all(&x, &w, &y);
        let computes: Vec<_> = specs.iter().map(|s| s.computes).collect();
        assert_eq!(specs.len(), 3, "{specs:?}");
        for wanted in [Convolved::Result, Convolved::Image, Convolved::Kernel] {
            assert!(computes.contains(&wanted), "{computes:?}");
        }
        for spec in &specs {
            assert_eq!((spec.images, spec.groups, spec.channels, spec.outputs), (2, 1, 3, 4));
            assert_eq!(spec.axes, [axis([8, 3, 8], 1, 1, 1), axis([9, 5, 9], 1, 1, 2)]);
            assert_eq!(spec.strides[0], [216, 0, 72, 9, 1]);
            assert_eq!(spec.strides[1], [0, 45, 15, 5, 1]);
            assert_eq!(spec.strides[2], [288, 0, 72, 9, 1]);
            assert_eq!(spec.offsets, [0; 3]);
        }
    }

    #[test]
    fn odd_shapes_are_found() {
        let d = device();
        let options = |stride, padding, dilation, groups| Conv2dOptions {
            stride: [stride, 1],
            padding: [padding, 1],
            dilation: [dilation, 1],
            groups,
        };
        let rows: [(&[usize], &[usize], Conv2dOptions); 12] = [
            (&[2, 3, 8, 7], &[4, 3, 3, 3], options(2, 1, 1, 1)),
            (&[2, 3, 9, 7], &[4, 3, 7, 2], options(2, 3, 1, 1)),
            (&[2, 3, 12, 7], &[4, 3, 4, 3], options(3, 0, 1, 1)),
            // Zeros wider than the kernel.
            (&[2, 3, 4, 5], &[2, 3, 2, 3], options(1, 5, 1, 1)),
            (&[2, 3, 23, 6], &[2, 3, 3, 2], options(3, 2, 2, 1)),
            (&[2, 3, 20, 6], &[2, 3, 3, 2], options(3, 0, 2, 1)),
            (&[2, 6, 7, 6], &[4, 3, 3, 3], options(1, 1, 1, 2)),
            (&[2, 6, 7, 6], &[4, 3, 3, 3], options(2, 1, 1, 2)),
            // Depthwise, with two results a channel.
            (&[2, 3, 7, 6], &[6, 1, 3, 3], options(1, 1, 1, 3)),
            (&[2, 3, 8, 6], &[3, 1, 3, 3], options(2, 1, 1, 3)),
            // One image, one channel, one result.
            (&[1, 1, 9, 8], &[1, 1, 4, 3], options(1, 2, 1, 1)),
            // Windows that do not overlap.
            (&[2, 3, 8, 6], &[5, 3, 2, 2], options(2, 0, 1, 1)),
        ];
        for (x, w, options) in rows {
            let (x, w) = (data(x, &d), data(w, &d));
            let y = x.conv2d(&w, None, options).unwrap();
            let specs = all(&x, &w, &y);
            let computes = |wanted| specs.iter().filter(|s| s.computes == wanted).count();
            assert_eq!(computes(Convolved::Kernel), 1, "{options:?}: {specs:?}");
            // Of a stride the gradient of the image is also a convolution of its phases, of which those
            // of one channel may be either.
            let phased = options.stride[0] > 1 && options.dilation[0] == 1;
            assert!(computes(Convolved::Result) >= 1, "{options:?}: {specs:?}");
            let stride = if phased { options.stride[0] } else { 1 };
            let mut images = specs.iter().filter(|s| s.computes == Convolved::Image);
            let found = images.any(|s| s.axes[0].stride == stride);
            assert!(found || phased && options.groups > 1, "{options:?}: {specs:?}");
            let groups = specs.iter().all(|s| s.groups == options.groups);
            assert!(groups, "{options:?}: {specs:?}");
        }
    }

    #[test]
    fn kernels_slide_along_one_to_three_axes() {
        let d = device();
        let (x, w) = (data(&[2, 3, 17], &d), data(&[4, 3, 5], &d));
        let options = Conv1dOptions { stride: 2, padding: 3, dilation: 2, groups: 1 };
        let specs = all(&x, &w, &x.conv1d(&w, None, options).unwrap());
        assert_eq!(specs[0].axes, [axis([17, 5, 8], 2, 2, 3)]);
        let (x, w) = (data(&[2, 4, 3, 4, 5], &d), data(&[2, 2, 3, 2, 3], &d));
        let options = Conv3dOptions { padding: [1, 0, 2], groups: 2, ..Default::default() };
        let specs = all(&x, &w, &x.conv3d(&w, None, options).unwrap());
        assert_eq!(specs.len(), 3);
        let axes = [axis([3, 3, 3], 1, 1, 1), axis([4, 2, 3], 1, 1, 0), axis([5, 3, 7], 1, 1, 2)];
        assert!(specs.iter().all(|spec| spec.axes == axes), "{specs:?}");
    }

    #[test]
    fn zeros_may_be_uneven_and_of_several_paddings() {
        let d = device();
        let (x, w) = (data(&[2, 3, 5, 6], &d), data(&[4, 3, 2, 3], &d));
        let padded = x.pad([(0, 0), (0, 0), (3, 0), (0, 1)]).unwrap();
        let options = Conv2dOptions { padding: [0, 1], ..Default::default() };
        let specs = found(&[&padded.conv2d(&w, None, options).unwrap()]);
        assert_eq!(specs.len(), 1);
        assert_eq!(specs[0].axes, [axis([5, 2, 7], 1, 1, 3), axis([6, 3, 7], 1, 1, 1)]);
        // Part of an image, whose memory goes on.
        let part = x.shrink([(0, 2), (1, 3), (1, 5), (2, 6)]).unwrap();
        let w = data(&[4, 2, 2, 3], &d);
        let specs = found(&[&part.conv2d(&w, None, options).unwrap()]);
        assert_eq!(specs[0].axes, [axis([4, 2, 3], 1, 1, 0), axis([4, 3, 4], 1, 1, 1)]);
        assert_eq!(specs[0].offsets, [30 + 6 + 2, 0, 0]);
        // Channels between zeros are no channels of a library.
        let channels = x.pad([(0, 0), (1, 0), (0, 0), (0, 0)]).unwrap();
        let w = data(&[4, 4, 2, 3], &d);
        assert!(found(&[&channels.conv2d(&w, None, options).unwrap()]).is_empty());
    }

    #[test]
    fn windows_of_one_place_are_found_and_products_of_matrices_are_not() {
        let d = device();
        let (x, w) = (data(&[2, 3, 5, 6], &d), data(&[4, 3, 1, 1], &d));
        let options = Conv2dOptions { stride: [2, 2], ..Default::default() };
        let specs = all(&x, &w, &x.conv2d(&w, None, options).unwrap());
        assert_eq!(specs.len(), 3, "{specs:?}");
        assert_eq!(specs[0].axes, [axis([5, 1, 3], 2, 1, 0), axis([6, 1, 3], 2, 1, 0)]);
        assert_eq!(specs[0].strides[0], [90, 0, 30, 6, 1]);
        let (a, b) = (data(&[3, 4, 5], &d), data(&[3, 5, 6], &d));
        assert!(found(&[&a.matmul(&b).unwrap()]).is_empty());
        let (a, b) = (data(&[4, 5], &d), data(&[5], &d));
        assert!(found(&[&a.matmul(&b).unwrap(), &a.sum(0).unwrap()]).is_empty());
        let empty = Tensor::zeros([0, 3, 5, 6], DType::F32, &d);
        found(&[&empty.conv2d(&w, None, options).unwrap()]);
    }

    /// A device with such a library gets a call for each, of halves as well, and others get none.
    #[test]
    fn libraries_are_asked_for_convolutions() {
        let names = |convolutions, dtype| -> Vec<String> {
            let mut null = Null::default();
            null.caps.convolutions = convolutions;
            let runtime = Runtime::default();
            runtime.register(null);
            let d = runtime.device("null").unwrap();
            let sized = |dims: &[usize]| Tensor::zeros(dims, dtype, &d).contiguous();
            let (x, w) = (sized(&[64, 256, 14, 14]), sized(&[256, 256, 3, 3]));
            Tensor::realize_all([&x, &w]).unwrap();
            let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
            let y = x.conv2d(&w, None, options).unwrap();
            let dy = sized(y.shape());
            dy.realize().unwrap();
            let gradients = y.grad_with(&dy, &[&x, &w]).unwrap();
            let all = [&y, gradients[0].as_ref().unwrap(), gradients[1].as_ref().unwrap()];
            let told = |t: &Tensor| explain(&[t], &d).unwrap().launches;
            all.iter().flat_map(|t| told(t)).map(|launch| launch.name).collect()
        };
        for dtype in [DType::F32, DType::BF16] {
            let with = names(true, dtype);
            // Predicted to be sooner.
            let half = dtype == DType::BF16;
            let sooner =
                if half { &["result", "kernel", "image"][..] } else { &["result", "kernel"] };
            for computes in sooner {
                let start = format!("convolve_{computes}_64x1x256x256_14k3s1d1_14k3s1d1_{dtype}");
                let calls = with.iter().filter(|name| **name == format!("{start}_{dtype}"));
                assert_eq!(calls.count(), 1, "{computes}: {with:?}");
            }
            assert!(!half || with.len() == 3, "nothing else is launched: {with:?}");
            let without = names(false, dtype);
            assert!(!without.iter().any(|name| name.contains("convolve")), "{without:?}");
        }
    }
}
