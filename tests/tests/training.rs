//! Training loops: nothing is compiled, allocated or leaked after the first steps.

mod common;

use common::device;
use zyx_nn::{Forward, Init, Linear};
use zyx_optim::{Adam, AdamOptions, AdamW, Optimizer, Sgd, SgdOptions};
use zyx_tests::zyx_core::{DType, Device, Param, Result, Rng, Stats, Tensor};

/// Two layers, their data, and one step of training.
struct Job {
    device: Device,
    layers: [Linear; 2],
    inputs: Vec<(Tensor, Tensor)>,
}

impl Job {
    fn new() -> Result<Job> {
        let device = device();
        let init = &mut Init::new(1, &device);
        let layers = [Linear::new(20, 32, init)?, Linear::new(32, 5, init)?];
        let mut rng = Rng::seed(2);
        let batch = |_| {
            let x = Tensor::randn([16, 20], DType::F32, &mut rng, &device)?.contiguous();
            let y = Tensor::randint(0, 5, [16], DType::I64, &mut rng, &device)?.contiguous();
            Tensor::realize_all([&x, &y])?;
            Ok((x, y))
        };
        let inputs = (0..4).map(batch).collect::<Result<Vec<_>>>()?;
        Ok(Job { device, layers, inputs })
    }

    fn parameters(&self) -> Vec<Param> {
        use zyx_nn::Module;
        self.layers.iter().flat_map(|layer| layer.parameters()).collect()
    }

    fn step(&self, k: usize, optimizer: &mut dyn Optimizer) -> Result<f32> {
        let (x, y) = &self.inputs[k % self.inputs.len()];
        let hidden = self.layers[0].forward(x)?.relu();
        let loss = self.layers[1].forward(&hidden)?.cross_entropy(y)?;
        optimizer.step(&loss)?;
        loss.item::<f32>()
    }

    /// What `n` steps cost after `warm` of them; the losses fall.
    fn train(&self, optimizer: &mut dyn Optimizer, warm: usize, n: usize) -> Result<Stats> {
        let mut first = f32::INFINITY;
        for k in 0..warm {
            first = self.step(k, optimizer)?;
        }
        let before = self.device.stats();
        let mut last = first;
        for k in warm..warm + n {
            last = self.step(k, optimizer)?;
        }
        assert!(last < first, "the loss goes from {first} to {last}");
        let after = self.device.stats();
        assert_eq!(after.live_bytes, before.live_bytes, "memory grows");
        Ok(after.since(&before))
    }
}

#[test]
fn a_thousand_steps_allocate_and_compile_nothing() -> Result<()> {
    let job = Job::new()?;
    let options = SgdOptions { learning_rate: 0.05, momentum: 0.9, ..Default::default() };
    let mut sgd = Sgd::new(job.parameters(), options)?;
    let stats = job.train(&mut sgd, 8, 1000)?;
    assert_eq!((stats.driver_allocs, stats.compiles), (0, 0), "{stats:?}");
    assert_eq!((stats.plan_misses, stats.plan_hits), (0, 1000), "{stats:?}");
    Ok(())
}

#[test]
fn learning_rates_and_branches_compile_nothing_new() -> Result<()> {
    let job = Job::new()?;
    let mut adam = Adam::new(job.parameters(), AdamOptions::default())?;
    let step = |k: usize, adam: &mut Adam| -> Result<()> {
        adam.set_learning_rate(1e-3 / (1 + k) as f64);
        let (x, y) = &job.inputs[k % 4];
        let hidden = job.layers[0].forward(x)?;
        let hidden = match k % 3 {
            0 => hidden.relu(),
            1 => hidden.gelu(),
            _ => hidden.tanh(),
        };
        adam.step(&job.layers[1].forward(&hidden)?.cross_entropy(y)?)
    };
    for k in 0..12 {
        step(k, &mut adam)?;
    }
    let before = job.device.stats();
    for k in 12..312 {
        step(k, &mut adam)?;
    }
    let stats = job.device.stats().since(&before);
    assert_eq!((stats.compiles, stats.plan_misses, stats.driver_allocs), (0, 0, 0), "{stats:?}");
    Ok(())
}

#[test]
fn the_first_step_of_adamw_is_pytorch_s() -> Result<()> {
    // torch 2: AdamW([1.0, -2.0, 0.5], lr 0.1, weight_decay 0.01), gradients 0.5, -3.0 and 1e-9.
    let device = device();
    let w = Param::new(Tensor::new([1f64, -2.0, 0.5], &device)?);
    let options = AdamOptions { learning_rate: 0.1, weight_decay: 0.01, ..AdamOptions::default() };
    let mut adam = AdamW::new(vec![w.clone()], options)?;
    let g = Tensor::new([0.5f64, -3.0, 1e-9], &device)?;
    adam.apply(&[Some(g)], &[])?;
    let want = [0.899_000_002, -1.898_000_000_333_333_3, 0.490_409_090_909_090_9];
    for (got, want) in w.tensor().to_vec::<f64>()?.iter().zip(want) {
        assert!((got - want).abs() < 1e-12, "{got:?} where PyTorch has {want:?}");
    }
    Ok(())
}
