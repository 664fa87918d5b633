//! Normalisations, losses, convolutions and pools agree with PyTorch 2.15 in `f64`.
//!
//! `data/torch_functions.txt` has one line per result: name, shape, elements. The inputs are
//! sine waves both sides can make, `amplitude * sin(i * frequency)`.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_core::{
    Conv1dOptions, Conv2dOptions, CrossEntropy, DType, Device, Element, Error, Pool2d, Reduction,
    Result, Runtime, Tensor,
};

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

fn wave(shape: &[usize], frequency: f64, amplitude: f64, device: &Device) -> Tensor {
    let n: usize = shape.iter().product();
    let data: Vec<f64> = (0..n).map(|i| amplitude * (i as f64 * frequency).sin()).collect();
    Tensor::from_slice(&data, shape, device).unwrap()
}

/// Compares shape and elements with the line of that name.
#[track_caller]
fn check(name: &str, actual: Result<Tensor>) {
    let actual = actual.unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = include_str!("data/torch_functions.txt");
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    let mut words = line.unwrap_or_else(|| panic!("no line for {name}")).split(' ').skip(1);
    let shape = words.next().unwrap().split(',').filter(|d| !d.is_empty());
    let shape: Vec<usize> = shape.map(|d| d.parse().unwrap()).collect();
    assert_eq!(actual.shape().dims(), shape, "shape of {name}");
    let expected: Vec<f64> = words.map(|x| x.parse().unwrap()).collect();
    let actual = actual.to_vec::<f64>().unwrap();
    assert_eq!(actual.len(), expected.len());
    for (i, (a, e)) in actual.iter().zip(&expected).enumerate() {
        let close = (a - e).abs() <= 1e-11 * (1.0 + e.abs());
        assert!(close, "{name}: element {i} is {a}, PyTorch has {e}");
    }
}

#[test]
fn normalisations() {
    let d = &device();
    let x = wave(&[2, 6, 4], 0.7, 2.0, d);
    let (w, b) = (wave(&[4], 1.3, 2.0, d), wave(&[4], 2.1, 2.0, d));
    check("softmax", x.softmax(1));
    check("log_softmax", x.log_softmax(-1));
    check("layer_norm", x.layer_norm(-1, Some(&w), Some(&b), 1e-5));
    check("layer_norm_2", x.layer_norm([1, 2], None, None, 1e-5));
    check("rms_norm", x.rms_norm(-1, Some(&w), 1e-6));
    let (w, b) = (wave(&[6], 1.3, 2.0, d), wave(&[6], 2.1, 2.0, d));
    let batch = x.batch_norm(Some(&w), Some(&b), 1e-5).unwrap();
    check("batch_norm", Ok(batch.output));
    check("batch_mean", Ok(batch.mean));
    check("batch_var", Ok(batch.var));
    let (mean, var) = (wave(&[6], 0.3, 2.0, d), wave(&[6], 0.4, 2.0, d).abs() + 0.1);
    check("batch_norm_with", x.batch_norm_with(&mean, &var, Some(&w), Some(&b), 1e-5));
    check("group_norm", x.group_norm(3, Some(&w), Some(&b), 1e-5));
    check("normalize", x.normalize(1, 1e-12));
}

#[test]
fn losses() {
    let d = &device();
    let logits = wave(&[4, 5], 0.9, 3.0, d);
    let target = Tensor::new([0i64, 4, 2, 2], d).unwrap();
    let with = |options| logits.cross_entropy_with(&target, options);
    let plain = CrossEntropy::default();
    check("cross_entropy", logits.cross_entropy(&target));
    check("cross_entropy", logits.cross_entropy(&target.cast(DType::U8)));
    check("cross_entropy_none", with(CrossEntropy { reduction: Reduction::None, ..plain }));
    check("cross_entropy_sum", with(CrossEntropy { reduction: Reduction::Sum, ..plain }));
    check("cross_entropy_ignore", with(CrossEntropy { ignore_index: Some(2), ..plain }));
    check("cross_entropy_smooth", with(CrossEntropy { label_smoothing: 0.1, ..plain }));
    let many = Tensor::iota(8, DType::I64, d).reshape([2, 4]).unwrap().fmod(3).unwrap();
    check("cross_entropy_3", wave(&[2, 3, 4], 0.37, 3.0, d).cross_entropy(&many));
    let one = logits.select_index(0, 0).unwrap();
    check("cross_entropy_1", one.cross_entropy(&Tensor::new(3i64, d).unwrap()));
    check("nll", logits.log_softmax(1).unwrap().nll_loss(&target, plain));

    let (p, q) = (wave(&[3, 4], 0.7, 2.0, d), wave(&[3, 4], 1.9, 2.0, d));
    check("mse", p.mse_loss(&q, Reduction::Mean));
    check("l1", p.l1_loss(&q, Reduction::Mean));
    check("huber", p.huber_loss(&q, 0.8, Reduction::Mean));
    check("smooth_l1", p.smooth_l1_loss(&q, 0.8, Reduction::Sum));
    let set = |t: Tensor, i: usize, value: f64| {
        let mut data = t.to_vec::<f64>().unwrap();
        data[i] = value;
        Tensor::from_slice(&data, [3, 4], d).unwrap()
    };
    let probable = set(set(p.sigmoid(), 0, 0.0), 5, 1.0);
    let target = set(q.sigmoid(), 10, 0.0);
    check("bce", probable.bce_loss(&target, Reduction::Mean));
    check("bce_logits", p.mul(30.0).unwrap().bce_with_logits_loss(&target, Reduction::None));
    check("kl", p.log_softmax(1).unwrap().kl_div_loss(&target, Reduction::None));
}

/// The one element of a result.
fn item<T: Element>(x: Result<Tensor>) -> T {
    x.unwrap().item().unwrap()
}

#[test]
fn classes_out_of_range_are_errors_unless_they_are_ignored() {
    let d = &device();
    let logits = Tensor::new([[1f32, 2.0], [3.0, 4.0]], d).unwrap();
    for wrong in [2i64, -1, i64::MAX] {
        let target = Tensor::new([0, wrong], d).unwrap();
        let error = logits.cross_entropy(&target).unwrap_err();
        assert!(matches!(error, Error::Index { op: "cross_entropy", .. }), "{error}");
        let unchecked = target.unchecked_indices();
        assert!(item::<f32>(logits.cross_entropy(&unchecked)).is_nan());
        let options = CrossEntropy { ignore_index: Some(wrong), ..Default::default() };
        let loss: f32 = item(logits.cross_entropy_with(&target, options));
        assert!((loss - 1.313_261_6).abs() < 1e-6, "{loss}");
    }
}

#[test]
fn extreme_values_stay_finite() {
    let d = &device();
    let logits = Tensor::new([[1e30f32, -1e30, 0.0]], d).unwrap();
    assert_eq!(item::<f32>(logits.cross_entropy(&Tensor::new([0i64], d).unwrap())), 0.0);
    assert_eq!(logits.softmax(1).unwrap().to_vec::<f32>().unwrap(), [1.0, 0.0, 0.0]);
    let half = Tensor::new([60000f32, 60000.0, -60000.0], d).unwrap().cast(DType::F16);
    let normal = half.layer_norm(-1, None, None, 1e-5).unwrap();
    assert_eq!(normal.dtype(), DType::F16);
    assert_eq!(format!("{normal:.3}"), "[ 0.707  0.707 -1.414]");
    let wide = Tensor::new([100f32, -100.0], d).unwrap();
    let hard = Tensor::new([1f32, 0.0], d).unwrap();
    assert!(item::<f32>(wide.bce_with_logits_loss(&hard, Reduction::Mean)) < 1e-40);
    let wrong: f32 = item(wide.neg().bce_with_logits_loss(&hard, Reduction::Mean));
    assert_eq!(wrong, 100.0);
}

#[test]
fn batches_of_endlessly_many_empty_matrices_are_refused() {
    let d = &device();
    let x = Tensor::zeros([1 << 40, 0, 0], DType::F32, d);
    let refused = [x.eigh().is_err(), x.qr().is_err(), x.svd().is_err(), x.cholesky().is_err()];
    assert_eq!(refused, [true; 4]);
    let few = Tensor::zeros([3, 0, 0], DType::F32, d);
    assert_eq!(few.eigh().unwrap().0.shape().dims(), [3, 0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let d = &device();
    let x = Tensor::zeros([4, 5], DType::F32, d);
    let classes = Tensor::zeros([4], DType::I64, d);
    let message = |r: Result<Tensor>| r.map(|_| ()).unwrap_err().to_string();
    assert!(message(x.cross_entropy(&classes.cast(DType::F32))).contains("integers"));
    assert!(message(x.cross_entropy(&x.cast(DType::I64))).contains("[n, ..]"));
    assert!(x.mse_loss(&classes, Reduction::Mean).is_err());
    assert!(message(x.huber_loss(&x, 0.0, Reduction::Mean)).contains("positive"));
    assert!(x.layer_norm(-1, Some(&Tensor::ones([4], DType::F32, d)), None, 1e-5).is_err());
    assert!(x.layer_norm(-1, None, None, f64::NAN).is_err());
    assert!(x.layer_norm(2, None, None, 0.0).is_err());
    assert!(classes.batch_norm(None, None, 1e-5).is_err());
    assert!(message(x.group_norm(2, None, None, 1e-5)).contains("divide"));
    assert!(x.group_norm(0, None, None, 1e-5).is_err());
    let empty = Tensor::zeros([0, 4, usize::MAX, 2], DType::F32, d);
    assert_eq!(empty.group_norm(2, None, None, 1e-5).unwrap().numel(), 0);
    assert!(Tensor::zeros([0, 3], DType::F32, d).cross_entropy(&classes).is_err());
    let nothing = Tensor::zeros([0], DType::I64, d);
    assert!(item::<f32>(Tensor::zeros([0, 3], DType::F32, d).cross_entropy(&nothing)).is_nan());
}

#[test]
fn convolutions() {
    let d = &device();
    let x = wave(&[2, 4, 7, 6], 0.31, 2.0, d);
    let (w, b) = (wave(&[6, 4, 3, 2], 0.17, 2.0, d), wave(&[6], 0.5, 2.0, d));
    let plain = Conv2dOptions::default();
    check("conv", x.conv2d(&w, Some(&b), plain));
    let options = Conv2dOptions { stride: [2, 3], padding: [1, 2], dilation: [2, 1], ..plain };
    check("conv_s", x.conv2d(&w, Some(&b), options));
    let options = Conv2dOptions { padding: [1, 1], groups: 2, ..plain };
    check("conv_g", x.conv2d(&wave(&[6, 2, 3, 3], 0.23, 2.0, d), None, options));
    let options = Conv2dOptions { stride: [2, 2], groups: 4, ..plain };
    check("conv_dw", x.conv2d(&wave(&[4, 1, 2, 2], 0.23, 2.0, d), None, options));
    let one = wave(&[3, 4, 1, 1], 0.23, 2.0, d);
    check("conv_s4", x.conv2d(&one, None, Conv2dOptions { stride: [4, 4], ..plain }));
    check("conv_1x1", x.conv2d(&one, None, plain));
    let options = Conv2dOptions { dilation: [3, 5], ..plain };
    check("conv_d", x.conv2d(&wave(&[1, 4, 2, 2], 0.23, 2.0, d), None, options));
    let options = Conv1dOptions { stride: 2, padding: 1, dilation: 2, groups: 2 };
    let w = wave(&[6, 2, 3], 0.17, 2.0, d);
    check("conv1d", wave(&[2, 4, 9], 0.31, 2.0, d).conv1d(&w, Some(&b), options));
}

#[test]
fn pools() {
    let d = &device();
    let x = wave(&[2, 4, 7, 6], 0.31, 2.0, d);
    check("max2", x.max_pool2d(Pool2d::new([2, 2])));
    let uneven = Pool2d { stride: [2, 1], padding: [1, 1], ..Pool2d::new([3, 2]) };
    check("max_s", x.max_pool2d(uneven));
    check(
        "max_d",
        x.max_pool2d(Pool2d { stride: [1, 1], dilation: [3, 3], ..Pool2d::new([2, 2]) }),
    );
    check("max_gap", x.max_pool2d(Pool2d { stride: [3, 3], ..Pool2d::new([2, 2]) }));
    check("avg2", x.avg_pool2d(Pool2d::new([2, 2])));
    let padded = Pool2d { stride: [2, 2], padding: [1, 1], ..Pool2d::new([3, 3]) };
    check("avg_s", x.avg_pool2d(padded));
    check("avg_x", x.avg_pool2d_inside(padded));
    check("adaptive", x.adaptive_avg_pool2d([3, 4]));
    check("adaptive_1", x.adaptive_avg_pool2d([1, 1]));
    check("adaptive_1", x.global_avg_pool2d().unwrap().reshape([2, 4, 1, 1]));
    check("adaptive_up", x.adaptive_avg_pool2d([9, 6]));
    let bytes = Tensor::new([[-7i8, -9], [-128, -3]], d).unwrap();
    let padded = Pool2d { stride: [2, 2], padding: [1, 1], ..Pool2d::new([2, 2]) };
    assert_eq!(bytes.max_pool2d(padded).unwrap().to_vec::<i8>().unwrap(), [-7, -9, -128, -3]);
}

#[test]
fn windows_that_do_not_fit_are_refused() {
    let d = &device();
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, d);
    let x = zeros(&[1, 4, 5, 5]);
    let plain = Conv2dOptions::default();
    let conv =
        |w: &[usize], o: Conv2dOptions| x.conv2d(&zeros(w), None, o).unwrap_err().to_string();
    assert!(conv(&[2, 3, 3, 3], plain).contains("must have 4 input channels, not 3"));
    assert!(conv(&[2, 4, 6, 1], plain).contains("does not fit into 5"));
    assert!(conv(&[2, 4, 0, 1], plain).contains("at least 1"));
    assert!(conv(&[2, 4, 1], plain).contains("spatial axes"));
    assert!(conv(&[2, 4, 3, 3], Conv2dOptions { stride: [0, 1], ..plain }).contains("at least 1"));
    assert!(conv(&[2, 4, 3, 3], Conv2dOptions { groups: 0, ..plain }).contains("groups"));
    assert!(conv(&[3, 2, 3, 3], Conv2dOptions { groups: 2, ..plain }).contains("groups"));
    for huge in [usize::MAX, usize::MAX / 2, usize::MAX / 8] {
        conv(&[2, 4, 2, 2], Conv2dOptions { padding: [huge, 0], ..plain });
        conv(&[2, 4, 2, 2], Conv2dOptions { dilation: [1, huge], ..plain });
        let one =
            x.conv2d(&zeros(&[2, 4, 1, 1]), None, Conv2dOptions { stride: [huge; 2], ..plain });
        assert!(one.is_err() || one.unwrap().shape().dims() == [1, 2, 1, 1]);
        assert!(x.max_pool2d(Pool2d { padding: [huge, 0], ..Pool2d::new([2, 2]) }).is_err());
        assert!(x.max_pool2d(Pool2d::new([huge, 1])).is_err());
    }
    assert!(x.conv2d(&zeros(&[2, 4, 3, 3]), Some(&zeros(&[3])), plain).is_err());
    assert!(x.max_pool2d(Pool2d::new([0, 1])).is_err());
    assert!(x.max_pool2d(Pool2d { padding: [2, 0], ..Pool2d::new([2, 2]) }).is_err());
    assert!(zeros(&[5]).avg_pool2d(Pool2d::new([1, 1])).is_err());
    assert!(zeros(&[5]).avg_pool2d_inside(Pool2d::new([1, 1])).is_err());
    assert!(x.adaptive_avg_pool2d([0, 1]).is_err());
    let none = zeros(&[0, 4, 5, 5]).conv2d(&zeros(&[2, 4, 3, 3]), None, plain).unwrap();
    assert_eq!(none.shape().dims(), [0, 2, 3, 3]);
    assert_eq!(none.to_vec::<f32>().unwrap(), []);
}

/// Of each number of pieces and elements, also more pieces than elements, and of so many that means are sums of pieces.
#[test]
fn adaptive_pools_take_pieces_of_any_length() {
    let device = device();
    let lengths = (1..10).flat_map(|n| (1..12).map(move |m| (n, m)));
    for (n, m) in lengths.chain([(40, 33), (35, 70), (66, 33), (101, 37)]) {
        // Equal elements, too: the first of them has the gradient.
        let elements: Vec<f64> = (0..2 * n).map(|i| f64::from((i * 7919 % 5) as u8)).collect();
        let weights: Vec<f64> = (0..2 * m).map(|i| f64::from((i * 31 % 7) as u8) + 1.0).collect();
        let x = Tensor::from_slice(&elements, [2, n], &device).unwrap().tracked();
        let by = Tensor::from_slice(&weights, [2, m], &device).unwrap();
        let (mut means, mut largest) = (Vec::new(), Vec::new());
        let (mut of_means, mut of_largest) = (vec![0.0; 2 * n], vec![0.0; 2 * n]);
        for (row, i) in (0..2).flat_map(|row| (0..m).map(move |i| (row, i))) {
            let piece = row * n + i * n / m..row * n + ((i + 1) * n).div_ceil(m);
            let (taken, weight) = (&elements[piece.clone()], weights[row * m + i]);
            means.push(taken.iter().sum::<f64>() / taken.len() as f64);
            let most = taken.iter().copied().fold(f64::MIN, f64::max);
            largest.push(most);
            let first = taken.iter().position(|&x| x == most).unwrap();
            of_largest[piece.start + first] += weight;
            piece.for_each(|place| of_means[place] += weight / taken.len() as f64);
        }
        let pools = [
            ("mean", x.adaptive_avg_pool1d([m]), means, of_means),
            ("maximum", x.adaptive_max_pool1d([m]), largest, of_largest),
        ];
        for (name, pool, expected, gradient) in pools {
            let pool = pool.unwrap();
            let sum = pool.mul(&by).unwrap().sum(..).unwrap();
            let dx = sum.grad(&[&x]).unwrap().remove(0).unwrap();
            for (found, expected) in [(&pool, expected), (&dx, gradient)] {
                let found = found.to_vec::<f64>().unwrap();
                assert_eq!(found.len(), expected.len());
                let close = found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9);
                assert!(close, "{name} of {m} pieces of {n}: {found:?}, not {expected:?}");
            }
        }
    }
}
