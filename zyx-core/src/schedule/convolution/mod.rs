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

pub(super) mod interleaved;
mod library_time;
#[cfg(test)]
mod tests;

pub(super) use library_time::{comes_first, is_sooner};

use super::contract::{Contraction, Counter, below, counters};
use super::item::storage;
use super::pull::{Indices, TupleId};
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, ConvolutionAxis, ConvolutionSpec, Convolved, sort_by_number};
use crate::runtime::Device;

/// Most axes along which a kernel slides.
const MOST_AXES: usize = 3;

/// A node on the way down from a value, and how many bounds were met before it.
#[derive(Clone, Copy)]
struct Level {
    node: NodeId,
    tuple: TupleId,
    bounds: usize,
}

/// What a value is pulled through: what moves elements, stores them or widens halves.
struct Way {
    levels: Vec<Level>,
    /// Indices with the number of elements there are from 0 on, where they may leave them; zeros
    /// elsewhere.
    bounds: Vec<(Index, i64)>,
}

impl Way {
    /// The way below a node, as long as `goes` says.
    fn down(
        graph: &Graph,
        indices: &mut Indices,
        (mut node, mut tuple): (NodeId, TupleId),
        goes: impl Fn(NodeId) -> bool,
    ) -> Way {
        let mut way = Way { levels: vec![Level { node, tuple, bounds: 0 }], bounds: Vec::new() };
        while goes(node) {
            let below = match graph.node(node) {
                Node::Copy { x } => Some((x, tuple)),
                _ => below(graph, indices, node, tuple),
            };
            let Some((x, pulled)) = below else { break };
            if matches!(graph.node(node), Node::Pad { .. }) {
                let extents = graph.shape(x).iter().map(|&extent| extent as i64);
                for (index, extent) in indices.get(pulled).iter().zip(extents) {
                    let (min, max) = indices.algebra.range(index);
                    if min < 0 || max >= extent {
                        way.bounds.push((index.clone(), extent));
                    }
                }
            }
            (node, tuple) = (x, pulled);
            way.levels.push(Level { node, tuple, bounds: way.bounds.len() });
        }
        way
    }
}

/// A node whose buffer is addressed affinely.
struct Place {
    node: NodeId,
    tuple: TupleId,
    flat: Index,
    /// Levels down to it, and bounds that were met before it.
    levels: usize,
    bounds: usize,
}

/// The way down from a factor as far as bounds are affine, and places on it.
struct Side {
    way: Way,
    places: Vec<Place>,
}

impl Side {
    fn of(graph: &Graph, indices: &mut Indices, at: (NodeId, TupleId)) -> Option<Side> {
        let mut way = Way::down(graph, indices, at, |_| true);
        let affine = way.bounds.iter().take_while(|bound| indices.algebra.is_affine(&bound.0));
        let affine = affine.count();
        way.levels.retain(|level| level.bounds <= affine);
        let end = graph.node(way.levels.last()?.node);
        if matches!(end, Node::Const { .. } | Node::Argument { .. } | Node::Iota) {
            return None;
        }
        let mut places = Vec::new();
        for (i, &Level { node, tuple, bounds }) in way.levels.iter().enumerate() {
            let flat = indices.flat(graph, node, tuple);
            if indices.algebra.is_affine(&flat) {
                // A reshape is another view of one place, of which the deepest is kept.
                let is_same = |last: &Place| {
                    (last.bounds, &last.flat) == (bounds, &flat)
                        && storage(graph, last.node) == storage(graph, node)
                };
                places.pop_if(|last| is_same(last));
                places.push(Place { node, tuple, flat, levels: i + 1, bounds });
            }
        }
        Some(Side { way, places })
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
    if !graph.dtype(id).is_float() {
        return None;
    }
    let (counters, [p, q]) = counters(graph, indices, id)?;
    let p = Side::of(graph, indices, p)?;
    let q = Side::of(graph, indices, q)?;
    let found = Finder { graph, counters: &counters, id };
    found.of(indices, &p, &q).or_else(|| found.of(indices, &q, &p))
}

/// Whether the sum `id` is one of products of floats of 32 bits without windows or zeros around: as a
/// convolution it does not [come first](comes_first).
pub(super) fn is_product(graph: &Graph, indices: &mut Indices, id: NodeId) -> bool {
    let Some((counters, factors)) = counters(graph, indices, id) else { return false };
    let ways = factors.map(|factor| Way::down(graph, indices, factor, |_| true));
    let indices = &*indices;
    let is_affine = |level: &&Level| {
        indices.get(level.tuple).iter().all(|index| indices.algebra.is_affine(index))
    };
    let moves = |way: &Way, atom: AtomId| {
        let last = way.levels.iter().rev().find(is_affine);
        let moved = |index: &Index| index.coefficient(atom) != 0;
        last.is_some_and(|level| indices.get(level.tuple).iter().any(moved))
    };
    // Windows are made of a counter of the result that moves one factor and one that is summed over.
    let kinds = |&(atom, _): &(AtomId, i64)| match counters.iter().find(|c| c.atom == atom) {
        Some(counter) if counter.c == 0 => [false, true],
        Some(_) => [!ways.iter().all(|way| moves(way, atom)), false],
        None => [false, false],
    };
    let is_window = |index: &Index| {
        let all = index.terms.iter().map(kinds);
        index.terms.len() > 1 && all.fold([false; 2], |[a, b], [c, d]| [a | c, b | d]) == [true; 2]
    };
    let is_plain = |level: &Level| {
        graph.dtype(level.node) == DType::F32 && !indices.get(level.tuple).iter().any(is_window)
    };
    ways.iter().all(|way| way.bounds.is_empty() && way.levels.iter().all(is_plain))
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
    [*spec, rounded].into_iter().any(|spec| device.offers(&Call::Convolve(spec)))
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
    fn of(&self, indices: &mut Indices, image: &Side, other: &Side) -> Option<Contraction> {
        let place = image.places.last()?;
        let bounds = &image.way.bounds[..place.bounds];
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
        let levels = image.way.levels[..place.levels].iter();
        let mut sorted: Vec<Sorted> =
            levels.filter_map(|&level| self.sorted(indices, level, &class)).collect();
        sort_by_number(&mut sorted, |sorted| -(self.overlapping(sorted) as i128));
        let parts = sorted.into_iter().filter_map(|sorted| {
            let kernel = self.is_gradient_of_kernel(&sorted, outer)?;
            let axes = sorted.axes.clone();
            let (slides, rest) = self.slides(sorted, &place.flat, kernel)?;
            Some(Parts { slides, rest, group, outer, kernel, axes })
        });
        let parts: Vec<Parts> = parts.collect();
        // Libraries are best at tensors in their usual order.
        let mut ordered: Option<Contraction> = None;
        for parts in &parts {
            for at in unbounded.iter().rev() {
                let ways = self.ways(place, at, bounds, parts).unwrap_or_default();
                let packed = ways.iter().position(is_packed);
                let first = || ways.iter().position(ConvolutionSpec::is_ordered);
                let chosen = packed.or_else(|| if ordered.is_none() { first() } else { None });
                let found = chosen.and_then(|i| self.contraction(place, at, ways[i].clone()));
                if packed.is_some() && found.is_some() {
                    return found;
                }
                ordered = ordered.or(found);
            }
        }
        ordered
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
        Level { node, tuple, .. }: Level,
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
        sort_by_number(positions, |&atom| -i128::from(flat.coefficient(atom)));
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
        sort_by_number(&mut slides, |slide| -i128::from(slide.stride));
        let channel = match channels[..] {
            [] => None,
            [channel] => Some(channel),
            _ => return None,
        };
        let usable = (1..=MOST_AXES).contains(&slides.len());
        usable.then_some((slides, [images, channel]))
    }

    /// What it may be as a convolution with the other factor read at `at`.
    fn ways(
        &self,
        image: &Place,
        at: &Place,
        bounds: &[(Index, i64)],
        parts: &Parts,
    ) -> Option<Vec<ConvolutionSpec>> {
        let dtype = self.graph.dtype(at.node);
        if !matches!(dtype, DType::F32 | DType::F16 | DType::BF16)
            || self.graph.dtype(image.node) != dtype
        {
            return None;
        }
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
        ways.retain(fits);
        Some(ways)
    }

    /// The contraction that is this convolution, with the other factor read at `at`.
    fn contraction(&self, image: &Place, at: &Place, spec: ConvolutionSpec) -> Option<Contraction> {
        let (x, y) = (&image.flat, &at.flat);
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

/// Whether image, kernel and result are arrays in row-major order.
fn is_packed(spec: &ConvolutionSpec) -> bool {
    (0..3).all(|role| {
        let mut next = 1;
        spec.lengths_of(role).rev().zip(spec.strides[role].iter().rev()).all(|(len, &stride)| {
            let fits = len == 1 || stride == next;
            next *= len;
            fits
        })
    })
}
