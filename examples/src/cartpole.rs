//! A pole on a cart, and a network that learns to balance it.
//!
//! The cart is that of Barto, Sutton and Anderson (1983): a push to the left or to the right every
//! 20 ms, an episode ends when the pole leans by more than 12 degrees, the cart leaves 2.4 m, or
//! after 200 steps. The network estimates what each push is worth (deep Q-learning, Mnih et al.
//! 2015): it learns from remembered steps drawn at random, against a slower copy of itself that
//! judges the push the network would choose (double Q-learning, van Hasselt et al. 2016).

use zyx::nn::{Init, Linear, Relu, Sequential};
use zyx::optim::{AdamOptions, AdamW};
use zyx::prelude::*;
use zyx::{Reduction, data::Progress};

/// Steps of a full episode.
pub const LIMIT: usize = 200;

/// Position, speed, angle, angular speed.
pub type State = [f32; 4];

/// The state after a push to the right or to the left, and whether the pole has fallen.
pub fn push([x, speed, angle, spin]: State, right: bool) -> (State, bool) {
    const GRAVITY: f32 = 9.8;
    const POLE: f32 = 0.1;
    const ALL: f32 = 1.1;
    const HALF: f32 = 0.5;
    const TIME: f32 = 0.02;
    let force = if right { 10.0 } else { -10.0 };
    let (sin, cos) = angle.sin_cos();
    let pull = (force + POLE * HALF * spin * spin * sin) / ALL;
    let turn = (GRAVITY * sin - cos * pull) / (HALF * (4.0 / 3.0 - POLE * cos * cos / ALL));
    let drive = pull - POLE * HALF * turn * cos / ALL;
    let next = [x + TIME * speed, speed + TIME * drive, angle + TIME * spin, spin + TIME * turn];
    (next, next[0].abs() > 2.4 || next[2].abs() > 12f32.to_radians())
}

/// Almost upright, almost at rest.
pub fn start(rng: &mut Rng) -> State {
    [(); 4].map(|()| (rng.below(10_001) as f32 / 10_000.0 - 0.5) * 0.1)
}

/// One remembered step.
#[derive(Clone, Copy, Debug)]
struct Memory {
    state: State,
    right: bool,
    next: State,
    fallen: bool,
}

/// The last steps, of which any may be remembered.
#[derive(Debug, Default)]
struct Memories {
    kept: Vec<Memory>,
    at: usize,
}

impl Memories {
    const MOST: usize = 10_000;

    fn add(&mut self, memory: Memory) {
        if self.kept.len() < Memories::MOST {
            self.kept.push(memory);
        } else {
            self.kept[self.at] = memory;
            self.at = (self.at + 1) % Memories::MOST;
        }
    }

    /// States `[n, 4]`, pushes, next states, and 1 where the pole still stands.
    fn draw(&self, n: usize, rng: &mut Rng, device: &Device) -> Result<[Tensor; 4]> {
        let drawn: Vec<Memory> =
            (0..n).map(|_| self.kept[rng.below(self.kept.len() as u64) as usize]).collect();
        let states: Vec<f32> = drawn.iter().flat_map(|m| m.state).collect();
        let nexts: Vec<f32> = drawn.iter().flat_map(|m| m.next).collect();
        let pushes: Vec<i64> = drawn.iter().map(|m| i64::from(m.right)).collect();
        let standing: Vec<f32> = drawn.iter().map(|m| if m.fallen { 0.0 } else { 1.0 }).collect();
        Ok([
            Tensor::from_slice(&states, [n, 4], device)?,
            Tensor::from_slice(&pushes, [n, 1], device)?,
            Tensor::from_slice(&nexts, [n, 4], device)?,
            Tensor::from_slice(&standing, [n], device)?,
        ])
    }
}

/// What each push is worth.
fn network(init: &mut Init) -> Result<Sequential> {
    Ok(Sequential::new()
        .then(Linear::new(4, 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 64, init)?)
        .then(Relu)
        .then(Linear::new(64, 2, init)?))
}

/// The push that the network thinks best.
fn choose(model: &Sequential, state: State, device: &Device) -> Result<bool> {
    let worth = model.forward(&Tensor::from_slice(&state, [1, 4], device)?)?.to_vec::<f32>()?;
    Ok(worth[1] > worth[0])
}

/// The mean length of `n` episodes, those of a seed, in which the network decides alone.
///
/// # Errors
/// When the device fails.
pub fn judge(model: &Sequential, n: usize, seed: u64, device: &Device) -> Result<f64> {
    let mut rng = Rng::seed(seed);
    let mut steps = 0;
    for _ in 0..n {
        let mut state = start(&mut rng);
        for _ in 0..LIMIT {
            let (next, fallen) = push(state, choose(model, state, device)?);
            state = next;
            steps += 1;
            if fallen {
                break;
            }
        }
    }
    Ok(steps as f64 / n as f64)
}

/// What training gave.
#[derive(Debug)]
pub struct Trained {
    /// The network with the best judgement.
    pub model: Sequential,
    /// The lengths of the episodes of training.
    pub lengths: Vec<f64>,
    /// The best mean length of the network's own episodes.
    pub best: f64,
}

/// Trains for at most `most` steps, until the network's own episodes have the mean length `goal`.
///
/// # Errors
/// When the device fails.
pub fn train(most: usize, goal: f64, device: &Device, progress: bool) -> Result<Trained> {
    const BATCH: usize = 64;
    let init = &mut Init::new(0, device);
    let (model, slow) = (network(init)?, network(init)?);
    slow.load_tensors(&model.to_tensors())?;
    let adam = AdamOptions { learning_rate: 1e-3, ..Default::default() };
    let mut optimizer = AdamW::new(model.parameters(), adam)?;
    let (mut rng, mut memories) = (Rng::seed(0), Memories::default());
    let (mut lengths, mut best) = (Vec::new(), (0.0, model.to_tensors()));
    let mut bar = progress.then(|| Progress::new(most));
    let (mut state, mut length) = (start(&mut rng), 0);
    for step in 0..most {
        // Curious at first.
        let curious = 1.0 - 0.95 * (step as f64 / 3000.0).min(1.0);
        let right = match (rng.below(1 << 20) as f64) < curious * f64::from(1 << 20) {
            true => rng.below(2) == 1,
            false => choose(&model, state, device)?,
        };
        let (next, fallen) = push(state, right);
        memories.add(Memory { state, right, next, fallen });
        (state, length) = (next, length + 1);
        if fallen || length == LIMIT {
            lengths.push(length as f64);
            (state, length) = (start(&mut rng), 0);
        }
        if step >= 500 {
            let batch = memories.draw(BATCH, &mut rng, device)?;
            optimizer.step(&error(&model, &slow, &batch)?)?;
        }
        if step % 250 == 0 {
            slow.load_tensors(&model.to_tensors())?;
        }
        if step % 1000 == 999 {
            let mean = judge(&model, 10, 1, device)?;
            if mean > best.0 {
                best = (mean, model.to_tensors());
            }
            if best.0 >= goal {
                break;
            }
        }
        if let Some(bar) = &mut bar {
            let last = lengths.last().copied().unwrap_or(0.0);
            bar.set(step, &format!("{} episodes, the last of {last} steps", lengths.len()));
        }
    }
    if let Some(bar) = &mut bar {
        bar.clear();
    }
    model.load_tensors(&best.1)?;
    Ok(Trained { model, lengths, best: best.0 })
}

/// How far the network's judgement is from what came of it.
fn error(model: &Sequential, slow: &Sequential, batch: &[Tensor; 4]) -> Result<Tensor> {
    const DISCOUNT: f64 = 0.99;
    let [states, pushes, nexts, standing] = batch;
    let worth = model.forward(states)?.gather(1, pushes)?.squeeze(1)?;
    let choice = model.forward(nexts)?.detach().argmax(1)?.unsqueeze(1)?;
    let later = slow.forward(nexts)?.detach().gather(1, &choice)?.squeeze(1)?;
    let target = later.mul(standing)?.mul(DISCOUNT)?.add(1.0)?;
    worth.huber_loss(&target, 1.0, Reduction::Mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pole_that_is_not_held_falls() {
        let mut state = [0.0, 0.0, 0.01, 0.0];
        let steps = (1..).find(|_| {
            let (next, fallen) = push(state, true);
            state = next;
            fallen
        });
        assert!((5..15).contains(&steps.unwrap()), "{steps:?}");
        assert!(state[0] > 0.0 && state[2] < 0.0, "pushed to the right, it falls to the left");
        // Pushing to where it leans holds it for a while.
        let mut state = [0.0, 0.0, 0.01, 0.0];
        let held = (1..).find(|_| {
            let (next, fallen) = push(state, state[2] + 0.5 * state[3] > 0.0);
            state = next;
            fallen
        });
        assert!(held.unwrap() > 60, "{held:?}");
    }
}
