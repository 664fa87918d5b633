//! Learning rates over time, as functions of the step: what to give to
//! [`Optimizer::set_learning_rate`](crate::Optimizer::set_learning_rate).

use std::f64::consts::PI;

/// In a straight line to 1, reached after `steps` steps: multiply with another schedule.
///
/// ```
/// use optim::schedule::warmup;
/// assert_eq!([0, 4, 9, 99].map(|step| warmup(step, 10)), [0.1, 0.5, 1.0, 1.0]);
/// ```
pub fn warmup(step: u64, steps: u64) -> f64 {
    if step >= steps { 1.0 } else { (step + 1) as f64 / steps as f64 }
}

/// From `from` along half a cosine to `to` at step `steps`, then `to`.
///
/// ```
/// use optim::schedule::cosine;
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

/// `from`, multiplied by `factor` after every `every` steps.
///
/// ```
/// use optim::schedule::steps;
/// assert_eq!([0, 9, 10, 25].map(|step| steps(step, 10, 8.0, 0.5)), [8.0, 8.0, 4.0, 2.0]);
/// ```
pub fn steps(step: u64, every: u64, from: f64, factor: f64) -> f64 {
    from * factor.powf((step / every.max(1)) as f64)
}
