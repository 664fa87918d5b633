//! Whether a library computes a convolution sooner than generated code: predicted times of both.

use crate::dtype::DType;
use crate::hal::{Caps, ConvolutionAxis, ConvolutionSpec, Convolved};
use crate::schedule::contract::Contraction;
use crate::tune::model::Rates;

/// Part of the time of generated code that a library may be predicted to take at most.
const SOONER: f64 = 0.95;
/// Fewest channels that blocks of generated code are full of, and of a library's.
const OWN_BLOCK: usize = 64;
const LIBRARY_BLOCK: usize = 32;
/// Channels below which either computes otherwise.
const NARROW: usize = 16;
/// Positions of an image that make too small a product of matrices.
const FEW_POSITIONS: usize = 128;

/// Whether nothing else of a library is better: products of matrices for one place of a kernel, unless
/// they are many of few columns each.
pub(in crate::schedule) fn comes_first(contraction: &Contraction) -> bool {
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

/// Whether a library is predicted to take less time than generated code. Parts of a device's speed are
/// what was measured on an H100, of layers of ResNet-50, of a U-Net and of others
/// (`bench/src/bin/contractions.rs`).
pub(in crate::schedule) fn is_sooner(contraction: &Contraction, caps: &Caps) -> bool {
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
    let narrow = spec.channels.min(spec.outputs) < LIBRARY_BLOCK;
    let part = match spec.computes {
        Convolved::Kernel if winograd && wide => 1.3,
        Convolved::Kernel if winograd => 0.49,
        Convolved::Kernel => 0.3,
        Convolved::Image if spec.axes.len() == 3 && narrow => 0.3,
        Convolved::Result if spec.axes.len() == 3 && narrow => 0.37,
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
