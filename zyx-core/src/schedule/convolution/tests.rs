//! Convolutions that are found, and what they compute.

use super::*;
use crate::graph::capture;
use crate::ir::interp;
use crate::runtime::Runtime;
use crate::scalar::Scalar;
use crate::tensor::{Conv1dOptions, Conv2dOptions, Conv3dOptions, Tensor};
use crate::testing::{Null, device, explain, values};

/// Small integers, whose sums are exact in any order.
fn data(dims: &[usize], device: &Device) -> Tensor {
    let n: usize = dims.iter().product();
    let values: Vec<f32> = (0..n).map(|i| ((i * 37 + 11) % 23) as f32 - 11.0).collect();
    Tensor::from_slice(&values, dims, device).unwrap()
}

/// What the kernel of a call computes from the buffers of its operands.
fn computed(spec: &ConvolutionSpec, operands: [&[Scalar]; 2], elements: usize) -> Vec<f64> {
    let kernel = Call::Convolve(spec.clone()).kernel().unwrap();
    let bytes = |x: &[Scalar]| -> Vec<u8> {
        x.iter().flat_map(|x| x.bits().to_le_bytes()[..x.dtype().size()].to_vec()).collect()
    };
    let zeros = vec![0; elements * spec.computed.size()];
    let mut buffers = vec![bytes(operands[0]), bytes(operands[1]), zeros];
    interp::interpret(&kernel, &mut buffers, &[], &interp::Options::default()).unwrap();
    let result = Scalar::read_all(spec.computed, &buffers[2]);
    result.into_iter().map(Scalar::to_f64).collect()
}

/// The convolutions found in what tensors are computed by. Each computes what its node means.
#[track_caller]
fn found(tensors: &[&Tensor]) -> Vec<ConvolutionSpec> {
    let (mut graph, bindings) = capture(tensors, 0);
    graph.outputs = graph.ids().collect();
    let values = values(&graph, &bindings).unwrap();
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
        let sooner = if half { &["result", "kernel", "image"][..] } else { &["result", "kernel"] };
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
