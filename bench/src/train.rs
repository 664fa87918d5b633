//! Training of small image networks.

use crate::Workload;
use crate::inputs::Inputs;
use crate::measure::{Report, Unit, training};
use zyx::optim::{Adam, AdamOptions, Optimizer, Sgd, SgdOptions};
use zyx::{Conv2dOptions, Result, Tensor};

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
    fn new(batch: usize, inputs: &mut Inputs) -> Result<Images> {
        let x = inputs.unit("X", &[60_000, 784])?;
        let labels = inputs.integers("Y", 60_000, 10)?;
        let y = Tensor::from_slice(&labels, [60_000], &inputs.device)?;
        let rows = inputs.integers("T", 1000 * batch, 60_000)?;
        Ok(Images { x, y, batches: rows.chunks(batch).map(<[i64]>::to_vec).collect() })
    }

    fn batch(&self, step: usize) -> Result<(Tensor, Tensor)> {
        let rows = &self.batches[step % 1000];
        let rows = Tensor::from_slice(rows, [rows.len()], self.x.device())?;
        Ok((self.x.index_select(0, &rows)?, self.y.index_select(0, &rows)?))
    }
}

/// The loss as a number, if it is to be read.
pub(crate) fn read(loss: &Tensor, wanted: bool) -> Result<Option<f32>> {
    wanted.then(|| loss.item::<f32>()).transpose()
}

fn mlp(inputs: &mut Inputs) -> Result<Report> {
    let images = Images::new(128, inputs)?;
    let w1 = inputs.uniform("w1", &[128, 784], 784)?;
    let b1 = inputs.uniform("b1", &[128], 784)?;
    let w2 = inputs.uniform("w2", &[10, 128], 128)?;
    let b2 = inputs.uniform("b2", &[10], 128)?;
    let params = vec![w1.clone(), b1.clone(), w2.clone(), b2.clone()];
    let options = SgdOptions { learning_rate: 0.01, momentum: 0.9, ..Default::default() };
    let mut optimizer = Sgd::new(params, options)?;
    let mut step = 0;
    training(Unit::Ms, |wanted| {
        let (x, y) = images.batch(step)?;
        step += 1;
        let h = x.matmul(&w1.tensor().t())?.add(b1.tensor())?.relu();
        let loss = h.matmul(&w2.tensor().t())?.add(b2.tensor())?.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        read(&loss, wanted)
    })
}

fn conv(inputs: &mut Inputs) -> Result<Report> {
    let images = Images::new(64, inputs)?;
    let c1 = inputs.uniform("c1", &[32, 1, 3, 3], 9)?;
    let d1 = inputs.uniform("d1", &[32], 9)?;
    let c2 = inputs.uniform("c2", &[64, 32, 3, 3], 288)?;
    let d2 = inputs.uniform("d2", &[64], 288)?;
    let w1 = inputs.uniform("w1", &[128, 9216], 9216)?;
    let b1 = inputs.uniform("b1", &[128], 9216)?;
    let w2 = inputs.uniform("w2", &[10, 128], 128)?;
    let b2 = inputs.uniform("b2", &[10], 128)?;
    let all = [&c1, &d1, &c2, &d2, &w1, &b1, &w2, &b2];
    let mut optimizer = Adam::new(all.into_iter().cloned().collect(), AdamOptions::default())?;
    let (plain, mut step) = (Conv2dOptions::default(), 0);
    training(Unit::Ms, |wanted| {
        let (x, y) = images.batch(step)?;
        step += 1;
        let x = x.reshape([64, 1, 28, 28])?;
        let x = x.conv2d(&c1.tensor(), Some(&d1.tensor()), plain)?.relu();
        let x = x.conv2d(&c2.tensor(), Some(&d2.tensor()), plain)?.relu();
        let x = x.reshape([64, 64, 12, 2, 12, 2])?.max([3, 5])?.reshape([64, 9216])?;
        let x = x.matmul(&w1.tensor().t())?.add(b1.tensor())?.relu();
        let loss = x.matmul(&w2.tensor().t())?.add(b2.tensor())?.cross_entropy(&y)?;
        optimizer.step(&loss)?;
        read(&loss, wanted)
    })
}
