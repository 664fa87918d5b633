//! Random shapes, dtypes and arguments into normalisations, losses, convolutions, pools and the
//! generator: a result or an error, never a panic. What has few elements is also computed.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use zyx_core::{
    Conv1dOptions, Conv2dOptions, CrossEntropy, DType, Device, Pool2d, Reduction, Result, Rng,
    Runtime, Shape, Tensor,
};

struct Source {
    rng: Rng,
    device: Device,
}

impl Source {
    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.rng.below(from.len() as u64) as usize].clone()
    }

    fn extent(&mut self) -> usize {
        self.pick(&[0, 1, 1, 2, 2, 3, 4, 5])
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = self.pick(&[0, 1, 2, 2, 3, 4, 4, 5]);
        let mut shape: Vec<usize> = (0..rank).map(|_| self.extent()).collect();
        // Huge extents are possible where another one is zero.
        if shape.contains(&0) && self.rng.below(4) == 0 {
            let at = self.rng.below(rank) as usize;
            if shape[at] != 0 {
                shape[at] = self.pick(&[usize::MAX, usize::MAX / 2, 1 << 40]);
            }
        }
        shape
    }

    fn dtype(&mut self) -> DType {
        if self.rng.below(2) == 0 { DType::F32 } else { self.pick(DType::ALL) }
    }

    fn tensor(&mut self, shape: Vec<usize>) -> Tensor {
        let dtype = self.dtype();
        let few = |shape: &Shape| shape.checked_numel().filter(|&n| n < 10_000);
        let shape =
            Some(Shape::from(shape)).filter(|s| few(s).is_some()).unwrap_or(Shape::from([2]));
        let n = shape.numel();
        let x = Tensor::iota(n, DType::F32, &self.device).mul(0.37).unwrap().sin() * 3.0;
        x.reshape(shape).unwrap().cast(dtype)
    }

    /// A tensor related to `x` or not.
    fn partner(&mut self, x: &Tensor) -> Tensor {
        let dims = x.shape().to_vec();
        let shape = match self.rng.below(6) {
            0 => self.shape(),
            1 | 2 => dims,
            3 => dims.iter().enumerate().filter(|&(i, _)| i != 1).map(|(_, &d)| d).collect(),
            4 => dims.get(1).map_or(vec![], |&d| vec![d]),
            _ => dims.last().map_or(vec![], |&d| vec![d]),
        };
        self.tensor(shape)
    }

    fn size(&mut self) -> usize {
        self.pick(&[0, 1, 1, 1, 1, 2, 2, 3, 4, usize::MAX, usize::MAX / 3])
    }

    fn pair(&mut self) -> [usize; 2] {
        [self.size(), self.size()]
    }

    fn small(&mut self) -> [usize; 2] {
        [self.pick(&[0, 0, 0, 1, 2, usize::MAX]), self.pick(&[0, 0, 0, 1, 2, 3])]
    }

    fn number(&mut self) -> f64 {
        self.pick(&[0.0, 1e-5, 0.5, 1.0, 2.0, -1.0, f64::NAN, f64::INFINITY, -0.0])
    }

    fn axis(&mut self) -> isize {
        self.pick(&[-1, -1, 0, 1, 2, -3, 9])
    }

    fn call(&mut self) -> (&'static str, Result<Tensor>) {
        let shape = self.shape();
        let x = self.tensor(shape);
        let (y, z) = (self.partner(&x), self.partner(&x));
        let (number, axis) = (self.number(), self.axis());
        let reduction = self.pick(&[Reduction::Mean, Reduction::Sum, Reduction::None]);
        let options = CrossEntropy {
            ignore_index: self.pick(&[None, Some(0), Some(-1)]),
            label_smoothing: number,
            reduction,
        };
        let pool = Pool2d {
            kernel: self.pair(),
            stride: self.pair(),
            padding: self.small(),
            dilation: self.pair(),
        };
        let groups = self.pick(&[1, 1, 1, 2, 0, 3]);
        let (device, dtype) = (self.device.clone(), self.dtype());
        match self.rng.below(24) {
            0 => ("softmax", x.softmax(axis)),
            1 => ("log_softmax", x.log_softmax([axis, 0])),
            2 => ("layer_norm", x.layer_norm(axis, Some(&y), Some(&z), number)),
            3 => ("rms_norm", x.rms_norm(axis, Some(&y), number)),
            4 => (
                "batch_norm",
                x.batch_norm(Some(&y), None, 1e-5).map(|b| b.output + b.var.sum(..).unwrap()),
            ),
            5 => ("batch_norm_with", x.batch_norm_with(&y, &z, Some(&z), None, number)),
            6 => ("group_norm", x.group_norm(groups, Some(&y), Some(&z), 1e-5)),
            7 => ("normalize", x.normalize(axis, number)),
            8 => ("cross_entropy", x.cross_entropy_with(&y, options)),
            9 => ("nll_loss", x.nll_loss(&y, options)),
            10 => ("mse_loss", x.mse_loss(&y, reduction)),
            11 => ("huber_loss", x.huber_loss(&y, number, reduction)),
            12 => ("smooth_l1_loss", x.smooth_l1_loss(&y, number, reduction)),
            13 => ("bce_loss", x.bce_loss(&y, reduction)),
            14 => ("kl_div_loss", x.kl_div_loss(&y, reduction)),
            15..18 => {
                let [stride, dilation] = [self.pair(), self.pair()];
                let options = Conv2dOptions { stride, dilation, padding: self.small(), groups };
                let channels = x.shape().get(1).map_or(1, |&c| c / groups.max(1));
                let mut shape =
                    vec![self.pick(&[1, 2, 4, 0]), channels, self.extent(), self.extent()];
                if self.rng.below(8) == 0 {
                    shape = self.shape();
                }
                let weight = self.tensor(shape);
                let bias = self.pick(&[None, None, Some(z)]);
                ("conv2d", x.conv2d(&weight, bias.as_ref(), options))
            }
            18 => {
                let [stride, dilation] = self.pair();
                let options = Conv1dOptions { stride, dilation, padding: self.small()[0], groups };
                ("conv1d", x.conv1d(&y, Some(&z), options))
            }
            19 => ("max_pool2d", x.max_pool2d(pool)),
            20 => ("avg_pool2d", x.avg_pool2d(pool)),
            21 => ("avg_pool2d_inside", x.avg_pool2d_inside(pool)),
            22 => ("adaptive_avg_pool2d", x.adaptive_avg_pool2d(self.pair().map(|n| n % 7))),
            _ => {
                let (low, high) = (self.pick(&[0, -5, i64::MIN]), self.pick(&[3, 300, i64::MAX]));
                let shape = x.shape().clone();
                match self.rng.below(5) {
                    0 => ("rand", Tensor::rand(shape, dtype, &mut self.rng, &device)),
                    1 => ("randn", Tensor::randn(shape, dtype, &mut self.rng, &device)),
                    2 => (
                        "randint",
                        Tensor::randint(low, high, shape, dtype, &mut self.rng, &device),
                    ),
                    3 => ("bernoulli", Tensor::bernoulli(number, shape, &mut self.rng, &device)),
                    _ => ("dropout", x.dropout(number, &mut self.rng)),
                }
            }
        }
    }
}

#[test]
fn nothing_panics() {
    let device = Runtime::default().device("reference").unwrap();
    let (mut good, mut bad) = (0, 0);
    for seed in 0..6000 {
        let mut source = Source { rng: Rng::seed(seed), device: device.clone() };
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (name, result) = source.call();
            match result {
                Err(error) => {
                    assert!(error.to_string().len() > 10, "{name}");
                    false
                }
                Ok(y) => {
                    // Computing everything takes too long. Printing computes.
                    if y.numel() < 500 && seed % 8 == 0 {
                        assert!(!y.to_string().starts_with('<'), "{name}: {y}");
                    }
                    true
                }
            }
        }));
        match outcome {
            Ok(true) => good += 1,
            Ok(false) => bad += 1,
            Err(_) => panic!("seed {seed} panicked"),
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} results, {bad} errors: the inputs are too uniform");
}
