//! Convolutions and pools against sums over the elements of each window.

use crate::oracle::movement::indices;
use crate::oracle::reduce::{accumulator, combined, inner_product};
use crate::oracle::{binary, cast};
use crate::tolerance::formula_error;
use crate::values::{moderate, with_ties};
use crate::{Array, Check, Rng, Val};
use zyx_core::{BinaryOp, Conv2dOptions, DType, Device, Pool2d};

/// Where windows lie on an image.
#[derive(Clone, Copy, Debug)]
struct Windows {
    kernel: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
}

impl Windows {
    /// The number of windows along each axis.
    fn positions(&self, image: [usize; 2]) -> [usize; 2] {
        [0, 1].map(|i| {
            let reach = self.dilation[i] * (self.kernel[i] - 1) + 1;
            (image[i] + 2 * self.padding[i] - reach) / self.stride[i] + 1
        })
    }

    /// For each tap of the window at `at`, the place in the image or `None` in the padding.
    fn taps(&self, at: [usize; 2], image: [usize; 2]) -> Vec<Option<[usize; 2]>> {
        let place = |i: usize, tap: usize| {
            let padded = at[i] * self.stride[i] + tap * self.dilation[i];
            padded.checked_sub(self.padding[i]).filter(|&at| at < image[i])
        };
        let taps = indices(&self.kernel);
        taps.map(|tap| Some([place(0, tap[0])?, place(1, tap[1])?])).collect()
    }
}

/// Each window of each channel combined to one element.
fn pooled(x: &Array, windows: Windows, mut f: impl FnMut(&[Option<Val>]) -> Val) -> Array {
    let image = [x.dims[2], x.dims[3]];
    let [rows, columns] = windows.positions(image);
    let dims = [x.dims[0], x.dims[1], rows, columns];
    let element = |at: Vec<usize>| {
        let taps = windows.taps([at[2], at[3]], image);
        let values: Vec<Option<Val>> =
            taps.iter().map(|tap| tap.map(|[r, c]| x.at(&[at[0], at[1], r, c]))).collect();
        f(&values)
    };
    let data = indices(&dims).map(element).collect();
    Array::new(x.dtype, &dims, data)
}

/// The convolution by its definition, with bias, in the accumulator of the dtype.
fn convolved(x: &Array, weight: &Array, bias: Option<&Array>, windows: Windows) -> Array {
    let dtype = if x.dtype == DType::Bool { DType::I64 } else { x.dtype };
    let wide = accumulator(dtype);
    let (x, w) = (x.cast(wide), weight.cast(wide));
    let image = [x.dims[2], x.dims[3]];
    let [rows, columns] = windows.positions(image);
    let (out, inner) = (w.dims[0], w.dims[1]);
    let groups = x.dims[1] / inner;
    let dims = [x.dims[0], out, rows, columns];
    let element = |at: Vec<usize>| {
        let first = at[1] / (out / groups) * inner;
        let taps = windows.taps([at[2], at[3]], image);
        let mut terms = Vec::new();
        for channel in 0..inner {
            for (tap, place) in indices(&windows.kernel).zip(&taps) {
                let Some([r, c]) = *place else { continue };
                let pixel = x.at(&[at[0], first + channel, r, c]);
                terms.push((pixel, w.at(&[at[1], channel, tap[0], tap[1]])));
            }
        }
        let sum = match terms.len() {
            0 => cast(Val::Int(0), DType::I64, wide),
            _ => inner_product(wide, terms.into_iter()),
        };
        let y = bias.map_or(sum, |bias| {
            let bias = cast(bias.data[at[1]], bias.dtype, wide);
            binary(BinaryOp::Add, wide, sum, bias)
        });
        cast(y, wide, dtype)
    };
    Array::new(dtype, &dims, indices(&dims).map(element).collect())
}

/// Convolutions with stride, padding, dilation, groups and bias.
pub fn convolution(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(90);
    let plain = Conv2dOptions::default();
    for (name, x, w, bias, options) in [
        (
            "all at once",
            [2, 4, 7, 6],
            [6, 2, 3, 2],
            true,
            Conv2dOptions { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 2 },
        ),
        ("plain", [1, 3, 5, 4], [2, 3, 2, 2], false, plain),
        (
            "strided",
            [1, 2, 6, 5],
            [3, 2, 3, 3],
            true,
            Conv2dOptions { stride: [2, 2], padding: [1, 1], ..plain },
        ),
        ("dilated", [1, 1, 7, 7], [2, 1, 3, 3], false, Conv2dOptions { dilation: [2, 3], ..plain }),
        ("depthwise", [2, 3, 4, 4], [3, 1, 2, 2], true, Conv2dOptions { groups: 3, ..plain }),
        ("of points", [2, 3, 3, 2], [4, 3, 1, 1], true, plain),
    ] {
        if !check.thorough(dtype) && !matches!(name, "all at once" | "plain") {
            continue;
        }
        let (image, weight) = (moderate(dtype, &x, &mut rng), moderate(dtype, &w, &mut rng));
        let bias = bias.then(|| moderate(dtype, &w[..1], &mut rng));
        let b = bias.as_ref().map(|bias| check.input(bias));
        let got = check.input(&image).conv2d(&check.input(&weight), b.as_ref(), options);
        let windows = Windows {
            kernel: [w[2], w[3]],
            stride: options.stride,
            padding: options.padding,
            dilation: options.dilation,
        };
        let want = convolved(&image, &weight, bias.as_ref(), windows);
        check.equal(format!("conv2d, {name}, of {dtype}"), got, &want);
    }
    check.finish();
}

/// Largest elements of windows that tile and that overlap, with ties and infinities.
pub fn max_pool(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(91);
    for (kernel, stride, padding, dilation) in [
        ([2, 2], [2, 2], [0, 0], [1, 1]),
        ([3, 2], [1, 2], [1, 1], [1, 1]),
        ([2, 2], [1, 1], [1, 0], [2, 1]),
    ] {
        let x = with_ties(dtype, &[2, 3, 6, 5], &mut rng);
        let pool = Pool2d { stride, padding, dilation, ..Pool2d::new(kernel) };
        let got = check.input(&x).max_pool2d(pool);
        let want = pooled(&x, Windows { kernel, stride, padding, dilation }, |window| {
            let inside: Vec<Val> = window.iter().copied().flatten().collect();
            combined(BinaryOp::Max, dtype, &inside)
        });
        check.equal(format!("max_pool2d by {kernel:?}, stride {stride:?}"), got, &want);
    }
    check.finish();
}

/// Means of windows, with the padding counted as zeros and left out.
pub fn mean_pool(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(92);
    let wide = accumulator(dtype);
    for (kernel, stride, padding) in
        [([2, 2], [2, 2], [0, 0]), ([3, 2], [1, 2], [1, 1]), ([2, 3], [1, 1], [0, 1])]
    {
        let dilation = [1, 1];
        let (windows, pool) = (
            Windows { kernel, stride, padding, dilation },
            Pool2d { stride, padding, dilation, ..Pool2d::new(kernel) },
        );
        let x = moderate(dtype, &[2, 2, 5, 6], &mut rng);
        let a = check.input(&x);
        let mean = |window: &[Option<Val>], n: usize| {
            let inside: Vec<Val> = window.iter().copied().flatten().collect();
            let Val::Real(low, high) = combined(BinaryOp::Add, wide, &inside) else {
                return Val::Unknown;
            };
            let (low, high) = (low / n as f64, high / n as f64);
            // A quotient, or a product with the rounded reciprocal.
            let error = formula_error(wide, 2.0, low.abs().max(high.abs()));
            cast(Val::interval(wide, low - error, high + error), wide, dtype)
        };
        let want = pooled(&x, windows, |window| mean(window, window.len()));
        check.equal(format!("avg_pool2d by {kernel:?}"), a.avg_pool2d(pool), &want);
        let want = pooled(&x, windows, |window| mean(window, window.iter().flatten().count()));
        check.equal(format!("avg_pool2d_inside by {kernel:?}"), a.avg_pool2d_inside(pool), &want);
    }
    check.finish();
}
