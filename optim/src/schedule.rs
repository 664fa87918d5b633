//! Learning rates over time, as functions of the step: what to give to
//! [`Optimizer::set_learning_rate`](crate::Optimizer::set_learning_rate).
//!
//! Functions of the step alone need nothing saved: training resumes at any step. Products and
//! pieces of them are schedules again (warm-up is a factor). The one that looks at results,
//! [`Plateau`], has state. Values agree with PyTorch's schedulers of the same name, and products
//! with those of several schedulers that are stepped together: a plateau, and a change by hand,
//! are factors like the others.
//!
//! ```
//! use zyx::optim::schedule::{Plateau, exponential, warmup};
//! let mut plateau = Plateau { patience: 0, ..Plateau::new(1.0) };
//! let mut rates = Vec::new();
//! for (step, loss) in [(0, 5.0), (1, 4.0), (2, 4.0), (3, 3.0)] {
//!     rates.push(exponential(step, 0.8, 0.5) * warmup(step, 2) * plateau.rate);
//!     plateau.observe(loss);
//! }
//! // The third loss was no better: the fourth rate is a tenth.
//! assert_eq!(rates, [0.4, 0.4, 0.2, 0.1 * 0.1]);
//! ```

use std::f64::consts::PI;

/// In a straight line to 1, reached after `steps` steps: multiply with another schedule.
///
/// ```
/// use zyx::optim::schedule::warmup;
/// assert_eq!([0, 4, 9, 99].map(|step| warmup(step, 10)), [0.1, 0.5, 1.0, 1.0]);
/// ```
pub fn warmup(step: u64, steps: u64) -> f64 {
    if step >= steps { 1.0 } else { (step + 1) as f64 / steps as f64 }
}

/// From `from` in a straight line to `to` at step `steps`, then `to`.
///
/// ```
/// use zyx::optim::schedule::linear;
/// assert_eq!([0, 5, 10, 99].map(|step| linear(step, 10, 1.0, 0.0)), [1.0, 0.5, 0.0, 0.0]);
/// ```
pub fn linear(step: u64, steps: u64, from: f64, to: f64) -> f64 {
    if step >= steps { to } else { from + (to - from) * (step as f64 / steps as f64) }
}

/// From `from` along half a cosine to `to` at step `steps`, then `to`.
///
/// ```
/// use zyx::optim::schedule::cosine;
/// assert_eq!(cosine(0, 100, 1.0, 0.1), 1.0);
/// assert!((cosine(50, 100, 1.0, 0.1) - 0.55).abs() < 1e-12);
/// assert_eq!(cosine(200, 100, 1.0, 0.1), 0.1);
/// ```
pub fn cosine(step: u64, steps: u64, from: f64, to: f64) -> f64 {
    if step >= steps {
        return to;
    }
    let progress = step as f64 / steps as f64;
    to + (from - to) * (1.0 + (PI * progress).cos()) / 2.0
}

/// [`cosine`] again and again: the first descent takes `first` steps, each further one `factor`
/// times as many (Loshchilov and Hutter 2017).
///
/// ```
/// use zyx::optim::schedule::cosine_restarts;
/// let at = |step| cosine_restarts(step, 10, 2, 1.0, 0.0);
/// assert_eq!([0, 10, 30].map(at), [1.0; 3]);
/// assert!((at(20) - 0.5).abs() < 1e-12);
/// ```
pub fn cosine_restarts(step: u64, first: u64, factor: u64, from: f64, to: f64) -> f64 {
    let (mut length, factor) = (first.max(1), factor.max(1));
    let mut rest = step;
    if factor == 1 {
        rest %= length;
    }
    while rest >= length {
        rest -= length;
        length = length.saturating_mul(factor);
    }
    cosine(rest, length, from, to)
}

/// `from`, multiplied by `factor` after every `every` steps.
///
/// ```
/// use zyx::optim::schedule::steps;
/// assert_eq!([0, 9, 10, 25].map(|step| steps(step, 10, 8.0, 0.5)), [8.0, 8.0, 4.0, 2.0]);
/// ```
pub fn steps(step: u64, every: u64, from: f64, factor: f64) -> f64 {
    from * factor.powf((step / every.max(1)) as f64)
}

/// `from`, multiplied by `factor` at each of the `milestones`.
///
/// ```
/// use zyx::optim::schedule::multistep;
/// let at = |step| multistep(step, &[10, 30], 1.0, 0.5);
/// assert_eq!([9, 10, 29, 30].map(at), [1.0, 0.5, 0.5, 0.25]);
/// ```
pub fn multistep(step: u64, milestones: &[u64], from: f64, factor: f64) -> f64 {
    let passed = milestones.iter().filter(|&&milestone| step >= milestone).count();
    from * factor.powf(passed as f64)
}

/// `from`, multiplied by `factor` at every step.
///
/// ```
/// use zyx::optim::schedule::exponential;
/// assert_eq!([0, 1, 3].map(|step| exponential(step, 8.0, 0.5)), [8.0, 4.0, 1.0]);
/// ```
pub fn exponential(step: u64, from: f64, factor: f64) -> f64 {
    from * factor.powf(step as f64)
}

/// `from (1 - step / steps)^power`, then 0.
///
/// ```
/// use zyx::optim::schedule::polynomial;
/// assert_eq!([0, 5, 10, 20].map(|step| polynomial(step, 10, 2.0, 1.0)), [2.0, 1.0, 0.0, 0.0]);
/// ```
pub fn polynomial(step: u64, steps: u64, from: f64, power: f64) -> f64 {
    let rest = if step >= steps { 0.0 } else { 1.0 - step as f64 / steps as f64 };
    from * rest.powf(power)
}

/// The reciprocal root of the step, scaled to reach `most` after a linear warm-up of `warm` steps
/// (Vaswani et al. 2017).
///
/// ```
/// use zyx::optim::schedule::inverse_root;
/// assert_eq!([0, 3, 15].map(|step| inverse_root(step, 4, 1.0)), [0.25, 1.0, 0.5]);
/// ```
pub fn inverse_root(step: u64, warm: u64, most: f64) -> f64 {
    let (step, warm) = (step as f64 + 1.0, warm.max(1) as f64);
    most * (step / warm).min((warm / step).sqrt())
}

/// One cycle (Smith and Topin 2018): half a cosine from `most / 25` up to `most` over the first
/// `rise` of `steps` steps, then half a cosine down to a 250,000th of `most`.
///
/// ```
/// use zyx::optim::schedule::one_cycle;
/// let at = |step| one_cycle(step, 101, 0.3, 1.0);
/// assert!((at(0) - 0.04).abs() < 1e-12 && (at(29) - 1.0).abs() < 1e-3 && at(100) < 1e-5);
/// ```
pub fn one_cycle(step: u64, steps: u64, rise: f64, most: f64) -> f64 {
    let last = steps.max(1) as f64 - 1.0;
    let top = rise * steps as f64 - 1.0;
    let step = (step as f64).min(last);
    let between = |from: f64, to: f64, progress: f64| {
        from + (to - from) * (1.0 - (PI * progress.clamp(0.0, 1.0)).cos()) / 2.0
    };
    let (low, end) = (most / 25.0, most / 25e4);
    match step <= top {
        true => between(low, most, step / top.max(f64::MIN_POSITIVE)),
        false => between(most, end, (step - top) / (last - top).max(f64::MIN_POSITIVE)),
    }
}

/// Lowers the rate when a result (a loss: smaller is better) has stopped to improve.
///
/// ```
/// use zyx::optim::schedule::Plateau;
/// let mut plateau = Plateau { patience: 1, ..Plateau::new(1.0) };
/// let rates: Vec<f64> = [5.0, 4.0, 4.0, 4.0, 4.0].map(|loss| plateau.observe(loss)).into();
/// assert_eq!(rates, [1.0, 1.0, 1.0, 0.1, 0.1]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plateau {
    /// The rate now.
    pub rate: f64,
    /// What it is multiplied with; 0.1.
    pub factor: f64,
    /// Results without improvement that are put up with; 10.
    pub patience: u64,
    /// By which share of the best result a result must be better to count; 1e-4.
    pub threshold: f64,
    /// Results after a change of the rate that do not count; 0.
    pub cooldown: u64,
    /// The rate does not fall below it; 0.
    pub least: f64,
    /// The best result so far.
    pub best: f64,
    /// Results since then.
    pub bad: u64,
    /// Results that still do not count.
    pub waiting: u64,
}

impl Plateau {
    /// Starts with this rate, and PyTorch's other numbers.
    pub fn new(rate: f64) -> Plateau {
        Plateau {
            rate,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            cooldown: 0,
            least: 0.0,
            best: f64::INFINITY,
            bad: 0,
            waiting: 0,
        }
    }

    /// Takes a result into account; the rate from now on.
    pub fn observe(&mut self, loss: f64) -> f64 {
        // By share of a positive loss, as PyTorch has it; the first always counts.
        if self.best == f64::INFINITY || loss < self.best * (1.0 - self.threshold) {
            self.best = loss;
            self.bad = 0;
        } else {
            self.bad += 1;
        }
        if self.waiting > 0 {
            self.waiting -= 1;
            self.bad = 0;
        }
        if self.bad > self.patience {
            let lower = (self.rate * self.factor).max(self.least);
            // A change too small to matter is not made.
            if self.rate - lower > 1e-8 {
                self.rate = lower;
            }
            self.waiting = self.cooldown;
            self.bad = 0;
        }
        self.rate
    }
}
