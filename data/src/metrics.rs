//! How good predictions are: means, accuracy, precision and recall.
//!
//! They take numbers of the host and add up over batches.

use std::fmt;
use zyx_core::{Error, Result, Tensor};

/// A mean of numbers, each with a weight.
///
/// ```
/// use zyx::data::metrics::Mean;
/// let mut mean = Mean::default();
/// mean.add(1.0, 3.0);
/// mean.add(5.0, 1.0);
/// assert_eq!(mean.value(), 2.0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mean {
    pub(crate) sum: f64,
    pub(crate) weight: f64,
}

impl Mean {
    /// Takes a number into account.
    pub fn add(&mut self, x: f64, weight: f64) {
        self.sum += x * weight;
        self.weight += weight;
    }

    /// The mean; NaN of nothing.
    pub fn value(&self) -> f64 {
        self.sum / self.weight
    }
}

/// The share of logits `[n, classes]` whose `k` largest have the class of the target `[n]` among
/// them. Of equal logits, the one with the smaller number is the larger.
///
/// ```
/// use zyx::data::metrics::top_k;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let logits = Tensor::new([[0.1f32, 0.7, 0.2], [0.5, 0.3, 0.2]], &device)?;
/// let target = Tensor::new([2i64, 0], &device)?;
/// assert_eq!((top_k(&logits, &target, 1)?, top_k(&logits, &target, 2)?), (0.5, 1.0));
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When the shapes do not fit, or the device fails.
pub fn top_k(logits: &Tensor, target: &Tensor, k: usize) -> Result<f64> {
    let (n, classes) = match (logits.shape().dims(), target.shape().dims()) {
        (&[n, classes], &[m]) if n == m => (n, classes),
        (a, b) => {
            let reason = format!("logits of shape {a:?} and targets of shape {b:?}");
            return Err(Error::Format { what: "top_k".to_owned(), reason });
        }
    };
    let values = logits.cast(zyx_core::DType::F32).to_vec::<f32>()?;
    let targets = target.cast(zyx_core::DType::I64).to_vec::<i64>()?;
    let hit = |i: usize| {
        let row = &values[i * classes..(i + 1) * classes];
        let Some(target) = usize::try_from(targets[i]).ok().filter(|&t| t < classes) else {
            return false;
        };
        let above = |(j, &x): (usize, &f32)| x > row[target] || (x == row[target] && j < target);
        row.iter().enumerate().filter(|&pair| above(pair)).count() < k
    };
    Ok((0..n).filter(|&i| hit(i)).count() as f64 / n as f64)
}

/// How often each class was taken for each other one.
///
/// ```
/// use zyx::data::metrics::Confusion;
/// let mut confusion = Confusion::new(2);
/// confusion.add(&[0, 0, 1, 1], &[0, 1, 1, 1]);
/// assert_eq!((confusion.accuracy(), confusion.recall(0)), (0.75, 0.5));
/// assert!((confusion.precision(1) - 2.0 / 3.0).abs() < 1e-12);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    /// Row by row of the true class.
    counts: Vec<u64>,
}

impl Confusion {
    /// Of so many classes.
    pub fn new(classes: usize) -> Confusion {
        Confusion { classes, counts: vec![0; classes * classes] }
    }

    /// Takes pairs of true and predicted class into account; a number that is no class is left
    /// out.
    pub fn add(&mut self, truth: &[i64], predicted: &[i64]) {
        let class = |x: i64| usize::try_from(x).ok().filter(|&x| x < self.classes);
        let pairs: Vec<usize> = truth
            .iter()
            .zip(predicted)
            .filter_map(|(&t, &p)| Some(class(t)? * self.classes + class(p)?))
            .collect();
        pairs.into_iter().for_each(|place| self.counts[place] += 1);
    }

    /// How often `predicted` was said where `truth` was right.
    ///
    /// ```
    /// # use zyx::data::metrics::Confusion;
    /// # let mut confusion = Confusion::new(2);
    /// # confusion.add(&[0, 0, 1, 1], &[0, 1, 1, 1]);
    /// assert_eq!((confusion.count(0, 1), confusion.count(1, 0)), (1, 0));
    /// ```
    pub fn count(&self, truth: usize, predicted: usize) -> u64 {
        self.counts.get(truth * self.classes + predicted).copied().unwrap_or(0)
    }

    /// The share of right predictions; NaN of none.
    pub fn accuracy(&self) -> f64 {
        let right: u64 = (0..self.classes).map(|c| self.count(c, c)).sum();
        right as f64 / self.counts.iter().sum::<u64>() as f64
    }

    /// The share of right ones among predictions of a class; 0 of none.
    pub fn precision(&self, class: usize) -> f64 {
        share(self.count(class, class), (0..self.classes).map(|t| self.count(t, class)).sum())
    }

    /// The share of right predictions where a class was right; 0 of none.
    pub fn recall(&self, class: usize) -> f64 {
        share(self.count(class, class), (0..self.classes).map(|p| self.count(class, p)).sum())
    }

    /// The harmonic mean of precision and recall.
    ///
    /// ```
    /// # use zyx::data::metrics::Confusion;
    /// # let mut confusion = Confusion::new(2);
    /// # confusion.add(&[0, 0, 1, 1], &[0, 1, 1, 1]);
    /// assert!((confusion.f1(1) - 0.8).abs() < 1e-12);
    /// ```
    pub fn f1(&self, class: usize) -> f64 {
        let (p, r) = (self.precision(class), self.recall(class));
        if p + r == 0.0 { 0.0 } else { 2.0 * p * r / (p + r) }
    }

    /// The mean of [`Confusion::f1`] over all classes.
    ///
    /// ```
    /// # use zyx::data::metrics::Confusion;
    /// # let mut confusion = Confusion::new(2);
    /// # confusion.add(&[0, 0, 1, 1], &[0, 1, 1, 1]);
    /// assert!((confusion.macro_f1() - (0.8 + 2.0 / 3.0) / 2.0).abs() < 1e-12);
    /// ```
    pub fn macro_f1(&self) -> f64 {
        (0..self.classes).map(|class| self.f1(class)).sum::<f64>() / self.classes as f64
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A row for each true class, a column for each predicted one, whose numbers are above.
impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = self.counts.iter().copied().max().unwrap_or(0).max(self.classes as u64);
        let width = most.to_string().len() + 1;
        write!(f, "{:4} │", "")?;
        for predicted in 0..self.classes {
            write!(f, "{predicted:>width$}")?;
        }
        writeln!(f)?;
        for truth in 0..self.classes {
            write!(f, "{truth:4} │")?;
            for predicted in 0..self.classes {
                match self.count(truth, predicted) {
                    0 => write!(f, "{:>width$}", "·")?,
                    n => write!(f, "{n:>width$}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_by_hand() {
        let mut confusion = Confusion::new(3);
        confusion.add(&[0, 0, 0, 1, 1, 2, 9, -1], &[0, 0, 1, 1, 0, 2, 0, 0]);
        assert_eq!(confusion.accuracy(), 4.0 / 6.0);
        assert_eq!((confusion.precision(0), confusion.recall(0)), (2.0 / 3.0, 2.0 / 3.0));
        assert_eq!((confusion.precision(1), confusion.recall(1)), (0.5, 0.5));
        assert_eq!((confusion.f1(2), confusion.f1(1)), (1.0, 0.5));
        assert!((confusion.macro_f1() - (2.0 / 3.0 + 0.5 + 1.0) / 3.0).abs() < 1e-12);
        let text = confusion.to_string();
        assert_eq!(text.lines().next(), Some("     │ 0 1 2"));
        assert_eq!(text.lines().nth(1), Some("   0 │ 2 1 ·"));
        let none = Confusion::new(2);
        assert!(none.accuracy().is_nan() && none.f1(0) == 0.0 && none.count(5, 5) == 0);
        assert!(Mean::default().value().is_nan());
    }
}
