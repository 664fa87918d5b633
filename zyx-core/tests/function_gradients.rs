//! Gradients of normalisations, losses, convolutions and pools against central differences in
//! `f64`.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::sync::LazyLock;
use zyx_core::{
    Conv1dOptions, Conv2dOptions, CrossEntropy, DType, Device, Pool2d, Reduction, Result, Rng,
    Runtime, Tensor,
};

fn device() -> Device {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(Runtime::default);
    static DEVICE: LazyLock<Device> = LazyLock::new(|| RUNTIME.device("reference").unwrap());
    DEVICE.clone()
}

/// Compares the gradients of `f`, weighted by a wave, with differences in every element of every
/// input. Inputs are normal numbers of the given shapes.
#[track_caller]
fn check(name: &str, shapes: &[&[usize]], f: impl Fn(&[Tensor]) -> Result<Tensor>) {
    let d = &device();
    let mut rng = Rng::seed(7);
    let inputs: Vec<Vec<f64>> = shapes
        .iter()
        .map(|&shape| Tensor::randn(shape, DType::F64, &mut rng, d).unwrap().to_vec().unwrap())
        .collect();
    let tensors = |data: &[Vec<f64>]| -> Vec<Tensor> {
        let pairs = data.iter().zip(shapes);
        pairs.map(|(x, &shape)| Tensor::from_slice(x, shape, d).unwrap()).collect()
    };
    let weighted = |x: &[Tensor]| {
        let y = f(x).unwrap_or_else(|error| panic!("{name}: {error}"));
        let wave = Tensor::iota(y.numel(), DType::F64, d).mul(0.7).unwrap().sin() + 0.3;
        y.mul(wave.reshape(y.shape()).unwrap()).unwrap().sum(..).unwrap()
    };
    let x: Vec<Tensor> = tensors(&inputs).iter().map(Tensor::tracked).collect();
    let gradients = weighted(&x).grad(&x.iter().collect::<Vec<_>>()).unwrap();
    for (i, gradient) in gradients.iter().enumerate() {
        let gradient = gradient.as_ref().unwrap_or_else(|| panic!("{name}: input {i} has none"));
        let gradient = gradient.to_vec::<f64>().unwrap();
        for (j, &g) in gradient.iter().enumerate() {
            let step = 1e-5;
            let at = |offset: f64| {
                let mut moved = inputs.clone();
                moved[i][j] += offset;
                weighted(&tensors(&moved)).item::<f64>().unwrap()
            };
            let slope = (at(step) - at(-step)) / (2.0 * step);
            let close = (g - slope).abs() <= 1e-7 * (1.0 + slope.abs());
            assert!(close, "{name}: input {i}, element {j}: gradient {g}, difference {slope}");
        }
    }
}

#[test]
fn normalisations() {
    check("softmax", &[&[2, 5]], |x| x[0].softmax(-1));
    check("log_softmax", &[&[2, 3, 2]], |x| x[0].log_softmax(1));
    check("logsumexp", &[&[2, 5]], |x| x[0].logsumexp(1));
    check("layer_norm", &[&[3, 4], &[4], &[4]], |x| {
        x[0].layer_norm(-1, Some(&x[1]), Some(&x[2]), 1e-5)
    });
    check("rms_norm", &[&[3, 4], &[4]], |x| x[0].rms_norm(-1, Some(&x[1]), 1e-6));
    check("batch_norm", &[&[3, 2, 2], &[2], &[2]], |x| {
        Ok(x[0].batch_norm(Some(&x[1]), Some(&x[2]), 1e-5)?.output)
    });
    check("batch_norm_with", &[&[3, 2], &[2], &[2], &[2]], |x| {
        x[0].batch_norm_with(&x[1], &(x[2].square() + 0.5), Some(&x[3]), None, 1e-5)
    });
    check("group_norm", &[&[2, 4, 3], &[4], &[4]], |x| {
        x[0].group_norm(2, Some(&x[1]), Some(&x[2]), 1e-5)
    });
    check("normalize", &[&[2, 4]], |x| x[0].normalize(1, 1e-12));
}

#[test]
fn losses() {
    let d = &device();
    let classes = Tensor::new([2i64, 0, 1], d).unwrap();
    check("cross_entropy", &[&[3, 4]], |x| x[0].cross_entropy(&classes));
    let options =
        CrossEntropy { ignore_index: Some(0), label_smoothing: 0.2, ..Default::default() };
    check("cross_entropy_with", &[&[3, 4]], |x| x[0].cross_entropy_with(&classes, options));
    let many = Tensor::new([[2i64, 0], [1, 1]], d).unwrap();
    let each = CrossEntropy { reduction: Reduction::None, ..Default::default() };
    check("cross_entropy_3", &[&[2, 3, 2]], |x| x[0].cross_entropy_with(&many, each));
    check("nll", &[&[3, 4]], |x| x[0].nll_loss(&classes, CrossEntropy::default()));
    let pair: &[&[usize]] = &[&[2, 3], &[2, 3]];
    check("mse", pair, |x| x[0].mse_loss(&x[1], Reduction::Mean));
    check("l1", pair, |x| x[0].l1_loss(&x[1], Reduction::None));
    check("huber", pair, |x| x[0].huber_loss(&x[1], 0.5, Reduction::None));
    check("smooth_l1", pair, |x| x[0].smooth_l1_loss(&x[1], 0.5, Reduction::Sum));
    check("bce", pair, |x| x[0].sigmoid().bce_loss(&x[1].sigmoid(), Reduction::Mean));
    check("bce_logits", pair, |x| x[0].bce_with_logits_loss(&x[1], Reduction::None));
    check("kl", pair, |x| x[0].log_softmax(1)?.kl_div_loss(&x[1].softmax(1)?, Reduction::None));
}

#[test]
fn convolutions() {
    let plain = Conv2dOptions::default();
    let shapes: &[&[usize]] = &[&[2, 2, 4, 3], &[2, 2, 2, 2], &[2]];
    check("conv2d", shapes, |x| x[0].conv2d(&x[1], Some(&x[2]), plain));
    let uneven = Conv2dOptions { stride: [2, 1], padding: [1, 2], dilation: [1, 2], groups: 1 };
    check("conv2d with options", shapes, |x| x[0].conv2d(&x[1], Some(&x[2]), uneven));
    let grouped = Conv2dOptions { groups: 2, padding: [1, 1], ..plain };
    check("conv2d in groups", &[&[1, 2, 3, 3], &[4, 1, 3, 3]], |x| {
        x[0].conv2d(&x[1], None, grouped)
    });
    let apart = Conv2dOptions { stride: [3, 3], ..plain };
    check("conv2d apart", &[&[1, 1, 7, 7], &[2, 1, 2, 2]], |x| x[0].conv2d(&x[1], None, apart));
    let line = Conv1dOptions { stride: 2, padding: 1, dilation: 2, groups: 1 };
    check("conv1d", &[&[2, 2, 6], &[3, 2, 2], &[3]], |x| x[0].conv1d(&x[1], Some(&x[2]), line));
}

#[test]
fn pools() {
    let shape: &[&[usize]] = &[&[1, 2, 4, 5]];
    check("max_pool2d", shape, |x| x[0].max_pool2d(Pool2d::new([2, 2])));
    let overlapping = Pool2d { stride: [1, 2], padding: [1, 1], ..Pool2d::new([3, 2]) };
    check("max_pool2d overlapping", shape, |x| x[0].max_pool2d(overlapping));
    check("avg_pool2d", shape, |x| x[0].avg_pool2d(overlapping));
    check("avg_pool2d_inside", shape, |x| x[0].avg_pool2d_inside(overlapping));
    check("adaptive_avg_pool2d", shape, |x| x[0].adaptive_avg_pool2d([3, 2]));
    check("global_avg_pool2d", shape, |x| x[0].global_avg_pool2d());
}

#[test]
fn the_first_of_the_largest_has_the_gradient() {
    let d = &device();
    let x = Tensor::new([[1f32, 1.0], [0.0, 1.0]], d).unwrap().tracked();
    let y = x.max_pool2d(Pool2d::new([2, 2])).unwrap();
    let dx = y.grad(&[&x]).unwrap().remove(0).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(dx, [1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn dropped_elements_have_no_gradient() {
    let d = &device();
    let x = Tensor::ones([64], DType::F32, d).tracked();
    let y = x.dropout(0.5, &mut Rng::seed(1)).unwrap();
    let dx = y.grad(&[&x]).unwrap().remove(0).unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), y.to_vec::<f32>().unwrap());
}
