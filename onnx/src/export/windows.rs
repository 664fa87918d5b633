//! Convolutions, transposed ones, and pooling: the ways of sliding a window that a step may be made by.
//!
//! Kernel, groups and positions are axes of what is summed. Strides, padding and dilations show in extents of the steps
//! below it: no others are tried.

use super::Exporter;
use super::patterns::{Candidate, Extents, MAX_CANDIDATES, Method};
use super::writer::{int, ints};
use crate::proto::AttributeProto;
use std::array::from_fn;
use std::collections::BTreeSet;
use zyx_core::tensor::StepOp;
use zyx_core::{
    BinaryOp, Conv1dOptions, Conv2dOptions, Conv3dOptions, ConvTransposeOptions, Pool, Shape,
};

/// How a window slides along an axis.
#[derive(Clone, Copy, Default)]
struct Window {
    kernel: usize,
    stride: usize,
    padding: usize,
    dilation: usize,
    /// Of transposed convolutions: elements more at the end.
    output_padding: usize,
}

/// How a window slides along each axis.
type Windows = Vec<Window>;

/// Windows of an image times weights, summed.
struct Contraction {
    windows: usize,
    weight: usize,
    batch: usize,
    groups: usize,
    /// Channels of results and of images, of one group.
    outputs: usize,
    channels: usize,
    positions: Vec<usize>,
    kernel: Vec<usize>,
}

impl Exporter<'_> {
    /// The sliding windows that a step may be made by.
    pub(super) fn sliding(&self, root: usize) -> Vec<Candidate> {
        let sum = match (&self.steps[root].op, &self.steps[root].sources[..]) {
            (StepOp::Binary(BinaryOp::Add), &[sum, _]) => Some((sum, true)),
            (StepOp::Reshape | StepOp::Shrink(_), _) => Some((root, false)),
            _ => None,
        };
        let mut all = Vec::new();
        if let Some((sum, has_bias)) = sum {
            // A convolution whose weight is flipped is a transposed one.
            all.extend(self.transposed_convolution(sum, has_bias).unwrap_or_default());
            all.extend(self.convolution(sum, has_bias).unwrap_or_default());
        }
        all.extend(self.pool(root).unwrap_or_default());
        all
    }

    /// A step and those below it on the way to the image or the weight that it shows, the deepest first.
    fn movement_chain(&self, mut x: usize) -> Vec<usize> {
        let mut chain = vec![x];
        loop {
            let step = &self.steps[x];
            x = match (&step.op, &step.sources[..]) {
                (StepOp::Ternary(_), [_, source, _]) => *source,
                (StepOp::Cast | StepOp::Reshape | StepOp::Permute(_), [source]) => *source,
                (StepOp::Expand | StepOp::Flip(_), [source]) => *source,
                (StepOp::Pad(_) | StepOp::Shrink(_), [source]) => *source,
                _ => break,
            };
            chain.push(x);
        }
        // An image itself comes before what pads it.
        chain.reverse();
        chain
    }

    /// Steps with as many axes and these first extents.
    fn shaped(&self, steps: &[usize], rank: usize, lead: [usize; 2]) -> Vec<usize> {
        let has_lead = |&x: &usize| {
            let shape = self.steps[x].tensor.shape();
            shape.rank() == rank && shape[..2] == lead
        };
        steps.iter().copied().filter(has_lead).collect()
    }

    fn extents(&self, steps: &[usize]) -> BTreeSet<usize> {
        steps.iter().flat_map(|&x| self.steps[x].tensor.shape().iter().copied()).collect()
    }

    /// The operand of a step, if the step is of such an op.
    fn behind(&self, id: usize, is: impl Fn(&StepOp) -> bool) -> Option<usize> {
        let step = &self.steps[id];
        if is(&step.op) { step.sources.first().copied() } else { None }
    }

    fn contraction(&self, sum: usize) -> Option<Contraction> {
        let product =
            self.behind(sum, |op| matches!(op, StepOp::Reduce { op: BinaryOp::Add, .. }))?;
        let step = &self.steps[product];
        let (StepOp::Binary(BinaryOp::Mul), &[windows, weight]) = (&step.op, &step.sources[..])
        else {
            return None;
        };
        // Images, groups, channels of results, positions, channels, places of the kernel.
        let dims = step.tensor.shape();
        let n = dims.rank().checked_sub(4).filter(|n| n % 2 == 0 && (2..=6).contains(n))? / 2;
        Some(Contraction {
            windows,
            weight,
            batch: dims[0],
            groups: dims[1],
            outputs: dims[2],
            channels: dims[3 + n],
            positions: dims[3..3 + n].to_vec(),
            kernel: dims[4 + n..].to_vec(),
        })
    }

    fn convolution(&self, y: usize, has_bias: bool) -> Option<Vec<Candidate>> {
        let sum = self.behind(y, |op| matches!(op, StepOp::Reshape))?;
        let Contraction { windows, batch, groups, outputs, channels, positions, kernel, .. } =
            self.contraction(sum)?;
        let lead = [groups * outputs, channels];
        let weight = Shape::from([&lead[..], &kernel].concat());
        let sliding = Sliding { positions, kernel };
        let movement_chain = self.movement_chain(windows);
        let visible = self.extents(&movement_chain);
        let mut all = Vec::new();
        for image in self.shaped(&movement_chain, weight.rank(), [batch, groups * channels]) {
            let extents = &self.steps[image].tensor.shape()[2..];
            let ways = sliding.ways(extents, &visible, |kernel| 2 * kernel);
            all.extend(ways.into_iter().map(|way| {
                let operands = operands(image, &weight, has_bias.then(|| weight[0]));
                let attributes = [attributes(&way), vec![int("group", groups as i64)]].concat();
                Candidate::new("Conv", operands, attributes, convolution(groups, way))
            }));
        }
        all.truncate(MAX_CANDIDATES);
        Some(all)
    }

    /// A transposed convolution is the convolution of the image with the flipped weight. Elements of the result that are a
    /// stride apart see the same places of the kernel, every one a stride apart, and so are channels of that
    /// convolution, beside each other afterwards; if dilated, the image's elements are spread apart instead.
    fn transposed_convolution(&self, y: usize, has_bias: bool) -> Option<Vec<Candidate>> {
        let shape = self.steps[y].tensor.shape();
        let n = shape.rank().checked_sub(2).filter(|n| (1..=3).contains(n))?;
        let (joined, starts) = match &self.steps[y].op {
            StepOp::Shrink(starts) => (*self.steps[y].sources.first()?, starts.clone()),
            _ => (y, vec![0; n + 2]),
        };
        let mut sum = self.behind(joined, |op| matches!(op, StepOp::Reshape))?;
        let split = self.steps[sum].tensor.shape();
        let period = |axis: usize| if split.rank() == 2 * n + 2 { split[3 + 2 * axis] } else { 1 };
        let periods: Vec<usize> = (0..n).map(period).collect();
        while let StepOp::Reshape | StepOp::Permute(_) | StepOp::Pad(_) = self.steps[sum].op {
            sum = *self.steps[sum].sources.first()?;
        }
        let made =
            self.contraction(sum).filter(|made| made.kernel.len() == n && made.groups > 0)?;
        let (groups, inputs) = (made.groups, made.groups * made.channels);
        let movement_chain = self.movement_chain(made.windows);
        let images = self.shaped(&movement_chain, n + 2, [made.batch, inputs]);
        let along = |axis: usize| images.iter().map(move |&x| self.steps[x].tensor.shape()[axis]);
        let visible: Vec<BTreeSet<usize>> = (2..n + 2).map(|axis| along(axis).collect()).collect();
        let weights = self.movement_chain(made.weight);
        let weights = self.shaped(&weights, n + 2, [inputs, shape[1] / groups]);
        let mut all = Vec::new();
        for &image in &images {
            let extents = &self.steps[image].tensor.shape()[2..];
            for weight in weights.iter().map(|&weight| self.steps[weight].tensor.shape()) {
                let axis = |i: usize| {
                    Spread {
                        extent: extents[i],
                        kernel: weight[2 + i],
                        result: shape[2 + i],
                        period: periods[i],
                        start: starts[2 + i],
                        taps: made.kernel[i],
                        positions: made.positions[i],
                    }
                    .ways(&visible[i])
                };
                all.extend(product((0..n).map(axis)).into_iter().map(|way| {
                    let operands = operands(image, weight, has_bias.then(|| shape[1]));
                    let more = way.iter().map(|axis| axis.output_padding as i64).collect();
                    let more = vec![int("group", groups as i64), ints("output_padding", more)];
                    let attributes = [attributes(&way), more].concat();
                    let method = transposed_convolution(groups, way);
                    Candidate::new("ConvTranspose", operands, attributes, method)
                }));
            }
        }
        all.truncate(MAX_CANDIDATES);
        Some(all)
    }

    fn pool(&self, root: usize) -> Option<Vec<Candidate>> {
        let step = &self.steps[root];
        let (reshape, is_mean) = match step.op {
            StepOp::Reshape => (root, false),
            StepOp::Binary(BinaryOp::Mul | BinaryOp::Div) => (step.sources[0], true),
            _ => return None,
        };
        let reduce = self.behind(reshape, |op| matches!(op, StepOp::Reshape))?;
        let (op, axes) = match &self.steps[reduce].op {
            StepOp::Reduce { op, axes } => (*op, axes.len()),
            _ => return None,
        };
        let wanted = if is_mean { BinaryOp::Add } else { BinaryOp::Max };
        let windows = *self.steps[reduce].sources.first()?;
        let dims = self.steps[windows].tensor.shape();
        if op != wanted || !(1..=3).contains(&axes) || dims.rank() != 2 + 2 * axes {
            return None;
        }
        let pick = |from: usize| (0..axes).map(|i| dims[from + 2 * i]).collect::<Vec<_>>();
        let sliding = Sliding { kernel: pick(2), positions: pick(3) };
        let movement_chain = self.movement_chain(windows);
        let visible = self.extents(&movement_chain);
        let mut all = Vec::new();
        for image in self.shaped(&movement_chain, axes + 2, [dims[0], dims[1]]) {
            let extents = &self.steps[image].tensor.shape()[2..];
            for way in sliding.ways(extents, &visible, |kernel| kernel / 2) {
                for inside in [false, true].into_iter().take(1 + usize::from(is_mean)) {
                    all.extend(pool(image, is_mean, inside, &way));
                }
            }
        }
        all.truncate(MAX_CANDIDATES);
        Some(all)
    }
}

/// Windows of some extents, with so many positions along each axis.
struct Sliding {
    kernel: Vec<usize>,
    positions: Vec<usize>,
}

impl Sliding {
    /// The ways in which windows have these positions in an image, whose extents on the way to them are visible.
    fn ways(
        &self,
        image: &[usize],
        visible: &BTreeSet<usize>,
        max_padding: impl Fn(usize) -> usize,
    ) -> Vec<Windows> {
        let axis = |((&kernel, &positions), &extent): ((&usize, &usize), &usize)| {
            let mut own = Vec::new();
            let (Some(gaps), true) = (kernel.checked_sub(1), positions > 0) else { return own };
            // All positions are a stride wide, and an axis of which windows are read is a dilation longer.
            let strides: Vec<usize> = visible
                .iter()
                .filter(|&whole| *whole > 0 && whole.is_multiple_of(positions))
                .map(|whole| whole / positions)
                .collect();
            for padding in 0..=max_padding(kernel).max(1) {
                let padded = extent + 2 * padding;
                if padding > 0 && !visible.contains(&padded) {
                    continue;
                }
                for &stride in &strides {
                    let spread = (positions * stride).saturating_sub(padded);
                    let longer = visible.iter().filter_map(|row| row.checked_sub(padded));
                    let dilations: BTreeSet<usize> = longer.chain(1..=spread.max(1)).collect();
                    let fits = |dilation: &usize| {
                        let room = padded.checked_sub(gaps * dilation + 1);
                        let is_free = gaps > 0 || *dilation == 1;
                        let same = |room: usize| room / stride + 1 == positions;
                        *dilation > 0 && is_free && room.is_some_and(same)
                    };
                    let dilations = dilations.into_iter().filter(fits);
                    own.extend(dilations.map(|dilation| Window {
                        kernel,
                        stride,
                        padding,
                        dilation,
                        output_padding: 0,
                    }));
                }
            }
            own
        };
        product(self.kernel.iter().zip(&self.positions).zip(image).map(axis))
    }
}

/// An axis of a transposed convolution.
struct Spread {
    extent: usize,
    kernel: usize,
    result: usize,
    /// Elements of the result that are channels of the convolution, and where the result starts among them.
    period: usize,
    start: usize,
    /// Places of the kernel that the convolution sums over, and its positions.
    taps: usize,
    positions: usize,
}

impl Spread {
    /// How it may be made, with strides and dilations that show in extents of images along it.
    fn ways(&self, visible: &BTreeSet<usize>) -> Vec<Window> {
        let &Spread { extent, kernel, result, period, start, taps, positions } = self;
        let (mut all, mut steps) = (Vec::new(), Vec::new());
        if kernel == 0 || period == 0 {
            return all;
        }
        if kernel.div_ceil(period) == taps {
            steps.push((period, 1));
        }
        if period == 1 && kernel == taps && kernel > 1 {
            // Both the image that is spread apart and the one that windows slide over are steps.
            let distance = |points: usize, room: usize| match points.checked_sub(1) {
                Some(gaps) if gaps > 0 && room > 0 && room.is_multiple_of(gaps) => {
                    Some(room / gaps)
                }
                _ => None,
            };
            let spread = visible.iter().filter_map(|n| distance(extent, n.checked_sub(1)?));
            let strides: BTreeSet<usize> = spread.chain([1]).collect();
            let wider = visible.iter().filter_map(|n| distance(kernel, n.checked_sub(positions)?));
            let dilations: BTreeSet<usize> = wider.filter(|&dilation| dilation > 1).collect();
            steps.extend(dilations.iter().flat_map(|&d| strides.iter().map(move |&s| (s, d))));
        }
        for (stride, dilation) in steps {
            for output_padding in 0..stride.max(dilation) {
                let whole = extent.saturating_sub(1) * stride + (kernel - 1) * dilation + 1;
                let cut = (whole + output_padding).checked_sub(result);
                let padding = cut.filter(|cut| cut % 2 == 0).map(|cut| cut / 2);
                if let Some(padding) = padding.filter(|padding| padding % period == start) {
                    all.push(Window { kernel, stride, padding, dilation, output_padding });
                }
            }
        }
        all
    }
}

/// All choices of a way for each axis, those that are the same along each axis first.
fn product(axes: impl Iterator<Item = Vec<Window>>) -> Vec<Windows> {
    let mut ways: Vec<Windows> = vec![Vec::new()];
    for own in axes {
        let longer = |way: &Windows| {
            let way = way.clone();
            own.iter().map(move |axis| [&way[..], &[*axis]].concat()).collect::<Vec<_>>()
        };
        ways = ways.iter().flat_map(longer).collect();
    }
    let differ = |a: &Window, b: &Window| {
        let of = |axis: &Window| (axis.stride, axis.padding, axis.dilation, axis.output_padding);
        of(a) != of(b)
    };
    ways.sort_by_key(|way| way.windows(2).filter(|pair| differ(&pair[0], &pair[1])).count());
    ways
}

fn attributes(way: &[Window]) -> Vec<AttributeProto> {
    let list =
        |of: fn(&Window) -> usize| way.iter().map(|axis| of(axis) as i64).collect::<Vec<_>>();
    let pads = list(|axis| axis.padding);
    vec![
        ints("kernel_shape", list(|axis| axis.kernel)),
        ints("strides", list(|axis| axis.stride)),
        ints("pads", [&pads[..], &pads[..]].concat()),
        ints("dilations", list(|axis| axis.dilation)),
    ]
}

/// An image, a weight, and a bias of so many channels.
fn operands(image: usize, weight: &Shape, bias: Option<usize>) -> Vec<Extents> {
    let bias = bias.map(|channels| Extents::Fixed(Shape::from([channels])));
    [Extents::Step(image), Extents::Fixed(weight.clone())].into_iter().chain(bias).collect()
}

/// Stride, padding and dilation along each axis.
fn numbers<const N: usize>(way: &[Window]) -> [[usize; N]; 3] {
    [from_fn(|i| way[i].stride), from_fn(|i| way[i].padding), from_fn(|i| way[i].dilation)]
}

fn convolution(groups: usize, way: Windows) -> Method {
    Box::new(move |x| match way.len() {
        1 => {
            let [[stride], [padding], [dilation]] = numbers(&way);
            let options = Conv1dOptions { stride, padding, dilation, groups };
            x[0].conv1d(&x[1], x.get(2), options)
        }
        2 => {
            let [stride, padding, dilation] = numbers(&way);
            let options = Conv2dOptions { stride, padding, dilation, groups };
            x[0].conv2d(&x[1], x.get(2), options)
        }
        _ => {
            let [stride, padding, dilation] = numbers(&way);
            let options = Conv3dOptions { stride, padding, dilation, groups };
            x[0].conv3d(&x[1], x.get(2), options)
        }
    })
}

fn transposed_convolution(groups: usize, way: Windows) -> Method {
    fn of<const N: usize>(way: &[Window], groups: usize) -> ConvTransposeOptions<N> {
        let [stride, padding, dilation] = numbers(way);
        let output_padding = from_fn(|i| way[i].output_padding);
        ConvTransposeOptions { stride, padding, output_padding, dilation, groups }
    }
    Box::new(move |x| match way.len() {
        1 => x[0].conv_transpose1d(&x[1], x.get(2), of(&way, groups)),
        2 => x[0].conv_transpose2d(&x[1], x.get(2), of(&way, groups)),
        _ => x[0].conv_transpose3d(&x[1], x.get(2), of(&way, groups)),
    })
}

fn pool(image: usize, is_mean: bool, inside: bool, way: &[Window]) -> Option<Candidate> {
    fn of<const N: usize>(way: &[Window], inside: bool) -> Pool<N> {
        let [stride, padding, dilation] = numbers(way);
        let kernel = from_fn(|i| way[i].kernel);
        Pool { stride, padding, dilation, count_include_pad: !inside, ..Pool::new(kernel) }
    }
    if inside && way.iter().all(|axis| axis.padding == 0) {
        return None;
    }
    let mut attributes = attributes(way);
    if is_mean {
        attributes.push(int("count_include_pad", i64::from(!inside)));
    }
    let way = way.to_vec();
    let method: Method = Box::new(move |x| match (way.len(), is_mean) {
        (1, false) => x[0].max_pool1d(of(&way, inside)),
        (2, false) => x[0].max_pool2d(of(&way, inside)),
        (_, false) => x[0].max_pool3d(of(&way, inside)),
        (1, true) => x[0].avg_pool1d(of(&way, inside)),
        (2, true) => x[0].avg_pool2d(of(&way, inside)),
        (_, true) => x[0].avg_pool3d(of(&way, inside)),
    });
    let kind = if is_mean { "AveragePool" } else { "MaxPool" };
    Some(Candidate::new(kind, vec![Extents::Step(image)], attributes, method))
}
