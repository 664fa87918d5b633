//! Training of small image networks.

use crate::Workload;
use crate::measure::{Report, Unit, training};
use zyx::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions};
use zyx::{Conv2dOptions, DType, Device, Param, Result, Rng, Tensor};

pub(crate) fn workloads() -> Vec<(&'static str, Workload)> {
    vec![("mlp_train", mlp), ("conv_train", conv)]
}

/// 60,000 images of 784 pixels with labels, and the rows of a thousand batches.
struct Images {
    x: Tensor,
    y: Tensor,
    batches: Vec<Vec<i64>>,
}

impl Images {
    fn new(batch: usize, rng: &mut Rng, device: &Device) -> Result<Images> {
        let x = Tensor::rand([60_000, 784], DType::F32, rng, device)?;
        let labels: Vec<i64> = (0..60_000).map(|_| rng.below(10) as i64).collect();
        let y = Tensor::from_slice(&labels, [60_000], device)?;
        let row = |_: usize| rng.below(60_000) as i64;
        let rows: Vec<i64> = (0..1000 * batch).map(row).collect();
        x.realize()?;
        Ok(Images { x, y, batches: rows.chunks(batch).map(<[i64]>::to_vec).collect() })
    }

    fn batch(&self, step: usize) -> Result<(Tensor, Tensor)> {
        let rows = &self.batches[step % 1000];
        let rows = Tensor::from_slice(rows, [rows.len()], self.x.device())?;
        Ok((self.x.index_select(0, &rows)?, self.y.index_select(0, &rows)?))
    }
}

/// Uniform in `-1/sqrt(fan_in) .. 1/sqrt(fan_in)`.
fn uniform(rng: &mut Rng, dims: &[usize], fan_in: usize, device: &Device) -> Result<Param> {
    let k = 1.0 / (fan_in as f64).sqrt();
    let value = Tensor::rand_range(-k, k, dims, DType::F32, rng, device)?;
    value.realize()?;
    Ok(Param::new(value))
}

fn mlp(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let images = Images::new(128, rng, device)?;
    let w1 = uniform(rng, &[128, 784], 784, device)?;
    let b1 = uniform(rng, &[128], 784, device)?;
    let w2 = uniform(rng, &[10, 128], 128, device)?;
    let b2 = uniform(rng, &[10], 128, device)?;
    let params = vec![w1.clone(), b1.clone(), w2.clone(), b2.clone()];
    let options = SgdOptions { learning_rate: 0.01, momentum: 0.9, ..Default::default() };
    let mut optimizer = Sgd::new(params, options)?;
    let mut step = 0;
    training(Unit::Ms, |read| {
        let (x, y) = images.batch(step)?;
        step += 1;
        let h = x.matmul(&w1.tensor().t())?.add(b1.tensor())?.relu();
        let loss = h.matmul(&w2.tensor().t())?.add(b2.tensor())?.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        if read {
            loss.item::<f32>()?;
        }
        Ok(())
    })
}

fn conv(device: &Device) -> Result<Report> {
    let rng = &mut Rng::seed(0);
    let images = Images::new(64, rng, device)?;
    let c1 = uniform(rng, &[32, 1, 3, 3], 9, device)?;
    let d1 = uniform(rng, &[32], 9, device)?;
    let c2 = uniform(rng, &[64, 32, 3, 3], 288, device)?;
    let d2 = uniform(rng, &[64], 288, device)?;
    let w1 = uniform(rng, &[128, 9216], 9216, device)?;
    let b1 = uniform(rng, &[128], 9216, device)?;
    let w2 = uniform(rng, &[10, 128], 128, device)?;
    let b2 = uniform(rng, &[10], 128, device)?;
    let all = [&c1, &d1, &c2, &d2, &w1, &b1, &w2, &b2];
    let mut optimizer = Adam::new(all.into_iter().cloned().collect(), AdamOptions::default())?;
    let (plain, mut step) = (Conv2dOptions::default(), 0);
    training(Unit::Ms, |read| {
        let (x, y) = images.batch(step)?;
        step += 1;
        let x = x.reshape([64, 1, 28, 28])?;
        let x = x.conv2d(&c1.tensor(), Some(&d1.tensor()), plain)?.relu();
        let x = x.conv2d(&c2.tensor(), Some(&d2.tensor()), plain)?.relu();
        let x = x.reshape([64, 64, 12, 2, 12, 2])?.max([3, 5])?.reshape([64, 9216])?;
        let x = x.matmul(&w1.tensor().t())?.add(b1.tensor())?.relu();
        let loss = x.matmul(&w2.tensor().t())?.add(b2.tensor())?.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        if read {
            loss.item::<f32>()?;
        }
        Ok(())
    })
}
