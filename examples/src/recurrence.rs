//! A network whose memory is a linear recurrence, computed for all steps at once.
//!
//! Each layer keeps a state `h[t] = (1 - z[t]) h[t - 1] + z[t] c[t]`, where gate and candidate
//! depend on the input alone (a selective state-space model of the smallest kind; Feng et al. 2024
//! call it minGRU). That is an affine recurrence, so one scan computes all states of a sequence, and
//! its gradient is a scan the other way round.
//!
//! The task is the adding problem of Hochreiter and Schmidhuber (1997): a sequence of numbers of
//! which two are marked; the answer is their sum. Who remembers nothing has an error of 1/6.

use zyx::Reduction;
use zyx::data::Progress;
use zyx::nn::{Init, LayerNorm, Linear};
use zyx::optim::{AdamOptions, AdamW, clip_norm, schedule};
use zyx::prelude::*;

/// One layer: the recurrence beside a residual.
#[derive(Debug, Module)]
pub struct Layer {
    norm: LayerNorm,
    gates: Linear,
    out: Linear,
}

impl Layer {
    fn new(width: usize, init: &mut Init) -> Result<Layer> {
        Ok(Layer {
            norm: LayerNorm::new(width, init)?,
            gates: Linear::new(width, 2 * width, init)?,
            out: Linear::new(width, width, init)?,
        })
    }
}

impl Forward for Layer {
    /// Sequences `[n, steps, width]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let gates = self.gates.forward(&self.norm.forward(x)?)?.chunk(2, -1)?;
        let keep = gates[0].sigmoid();
        let new = keep.neg().add(1.0)?.mul(&gates[1])?;
        let states = keep.linear_recurrence(&new, 1, false)?;
        x.add(self.out.forward(&states.silu())?)
    }
}

/// The model.
#[derive(Debug, Module)]
pub struct Adder {
    input: Linear,
    layers: Vec<Layer>,
    norm: LayerNorm,
    output: Linear,
}

impl Adder {
    /// With so many layers of a width.
    ///
    /// # Errors
    /// When the device fails.
    pub fn new(layers: usize, width: usize, init: &mut Init) -> Result<Adder> {
        Ok(Adder {
            input: Linear::new(2, width, init)?,
            layers: (0..layers).map(|_| Layer::new(width, init)).collect::<Result<_>>()?,
            norm: LayerNorm::new(width, init)?,
            output: Linear::new(width, 1, init)?,
        })
    }
}

impl Forward for Adder {
    /// The answers `[n]` to sequences `[n, steps, 2]`.
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.input.forward(x)?;
        let x = self.layers.iter().try_fold(x, |x, layer| layer.forward(&x))?;
        let last = x.select_index(1, -1)?;
        self.output.forward(&self.norm.forward(&last)?)?.squeeze(1)
    }
}

/// Sequences `[n, steps, 2]` of numbers and marks, and the sums `[n]` of the marked numbers: one
/// in each half of the sequence.
///
/// # Errors
/// When the device fails.
pub fn tasks(n: usize, steps: usize, rng: &mut Rng, device: &Device) -> Result<(Tensor, Tensor)> {
    let mut x = vec![0f32; n * steps * 2];
    let mut sums = vec![0f32; n];
    for (row, sum) in x.chunks_mut(2 * steps).zip(&mut sums) {
        for number in row.iter_mut().step_by(2) {
            *number = rng.below(1 << 24) as f32 / (1 << 24) as f32;
        }
        let half = (steps / 2) as u64;
        for at in [rng.below(half) as usize, (half + rng.below(steps as u64 - half)) as usize] {
            row[2 * at + 1] = 1.0;
            *sum += row[2 * at];
        }
    }
    Ok((Tensor::from_slice(&x, [n, steps, 2], device)?, Tensor::from_slice(&sums, [n], device)?))
}

/// The mean squared error on new tasks.
///
/// # Errors
/// When the device fails.
pub fn judge(model: &Adder, n: usize, steps: usize, device: &Device) -> Result<f64> {
    let (x, y) = tasks(n, steps, &mut Rng::seed(99), device)?;
    let error = model.forward(&x)?.mse_loss(&y, Reduction::Mean)?;
    Ok(f64::from(error.item::<f32>()?))
}

/// A model that learned from sequences of `steps` steps for `rounds` rounds of 32; and the losses.
///
/// # Errors
/// When the device fails.
pub fn train(
    steps: usize,
    rounds: usize,
    device: &Device,
    progress: bool,
) -> Result<(Adder, Vec<f64>)> {
    let model = Adder::new(2, 32, &mut Init::new(0, device))?;
    let mut optimizer = AdamW::new(model.parameters(), AdamOptions::default())?;
    let mut rng = Rng::seed(1);
    let mut bar = progress.then(|| Progress::new(rounds));
    let mut losses = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let rate = schedule::cosine(round as u64, rounds as u64, 1e-2, 1e-4);
        optimizer.set_learning_rate(schedule::warmup(round as u64, 20) * rate);
        let (x, y) = tasks(32, steps, &mut rng, device)?;
        let loss = model.forward(&x)?.mse_loss(&y, Reduction::Mean)?;
        let (gradients, _) = clip_norm(&optimizer.gradients(&loss)?, 1.0)?;
        optimizer.apply(&gradients, &[&loss])?;
        losses.push(f64::from(loss.item::<f32>()?));
        if let Some(bar) = &mut bar {
            bar.set(round + 1, &format!("error {:.4}", losses[round]));
        }
    }
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    Ok((model, losses))
}
