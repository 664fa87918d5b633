//! Maps of values that distributions follow.

use super::Constraint::{self, *};
use crate::init::located;
use zyx_core::{Result, Tensor};

/// A differentiable map, one to one but for `Abs` and `Softmax`.
///
/// ```
/// use zyx::distributions::Transform;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let x = Tensor::new([0f64, 1.0], &device)?;
/// let both = Transform::Compose(vec![Transform::Exp, Transform::Power(Tensor::new(2f64, &device)?)]);
/// let y = both.forward(&x)?;
/// assert!((y.to_vec::<f64>()?[1] - 2f64.exp()).abs() < 1e-12);
/// assert!(both.inverse(&y)?.sub(&x)?.abs().max(..)?.item::<f64>()? < 1e-12);
/// let log = both.log_abs_det_jacobian(&x, &y)?.to_vec::<f64>()?;
/// assert!((log[1] - (2.0 + 2f64.ln())).abs() < 1e-12);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Transform {
    /// `e^x`.
    Exp,
    /// `loc + scale x`.
    Affine {
        /// Added.
        loc: Tensor,
        /// The factor, not 0.
        scale: Tensor,
    },
    /// `1 / (1 + e^(-x))`.
    Sigmoid,
    /// The hyperbolic tangent.
    Tanh,
    /// `x` to this power, not 0, for positive numbers.
    Power(Tensor),
    /// The absolute value; the inverse is the positive number.
    Abs,
    /// Vectors to shares that sum to 1; the inverse is the logarithm. It has no Jacobian, as adding
    /// a number to a vector changes nothing.
    Softmax,
    /// Vectors of `n` numbers to points of the simplex of `n + 1`, by breaking off shares.
    StickBreaking,
    /// One after the other, the first one first.
    Compose(Vec<Transform>),
}

use Transform::*;

impl Transform {
    /// Number of trailing axes that are mapped together: 0, or 1 for vectors.
    ///
    /// ```
    /// use zyx::distributions::Transform;
    /// assert_eq!(Transform::StickBreaking.event_rank(), 1);
    /// ```
    pub fn event_rank(&self) -> usize {
        match self {
            Softmax | StickBreaking => 1,
            Compose(parts) => parts.iter().map(Transform::event_rank).max().unwrap_or(0),
            _ => 0,
        }
    }

    /// The set of results for numbers or vectors of a set.
    pub(super) fn codomain(&self, from: Constraint) -> Constraint {
        match self {
            Exp | Power(_) => Positive,
            Sigmoid => Unit,
            Abs => NonNegative,
            Softmax | StickBreaking => Simplex,
            Affine { .. } | Tanh if from.event_rank() == 1 => RealVector,
            Affine { .. } | Tanh => Real,
            Compose(parts) => parts.iter().fold(from, |from, part| part.codomain(from)),
        }
    }

    /// The results for `x`, of its shape but for `StickBreaking`.
    ///
    /// # Errors
    /// When shapes do not broadcast, or `x` has no axis for vectors.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        located(|| match self {
            Exp => Ok(x.exp()),
            Affine { loc, scale } => x.mul(scale)?.add(loc),
            Sigmoid => Ok(x.sigmoid()),
            Tanh => Ok(x.tanh()),
            Power(exponent) => x.pow(exponent),
            Abs => Ok(x.abs()),
            Softmax => x.softmax(-1),
            StickBreaking => {
                // Share i of the rest of the stick is the sigmoid of x_i - log(n - i).
                let share = x.sub(rest_logs(x)?)?.sigmoid();
                let left = (-&share + 1.0).cumprod(-1)?;
                let one = left.slice(-1, ..1)?.ones_like();
                let before = Tensor::cat(&[&one, &left], -1)?;
                let whole = share.slice(-1, ..1)?.ones_like();
                Tensor::cat(&[&share, &whole], -1)?.mul(before)
            }
            Compose(parts) => parts.iter().try_fold(x.clone(), |x, part| part.forward(&x)),
        })
    }

    /// The value whose result is `y`.
    ///
    /// # Errors
    /// As [`Transform::forward`].
    #[track_caller]
    pub fn inverse(&self, y: &Tensor) -> Result<Tensor> {
        located(|| match self {
            Exp => Ok(y.log()),
            Affine { loc, scale } => y.sub(loc)?.div(scale),
            Sigmoid => Ok(super::logits_of(y)),
            Tanh => Ok(y.atanh()),
            Power(exponent) => y.pow(1.0 / exponent),
            Abs => Ok(y.clone()),
            Softmax => Ok(y.log()),
            StickBreaking => {
                let n = last(y)? - 1;
                let shares = y.slice(-1, ..n)?;
                let left = -shares.cumsum(-1)? + 1.0;
                let x = shares.log() - left.log();
                x.add(rest_logs(&x)?)
            }
            Compose(parts) => parts.iter().rev().try_fold(y.clone(), |y, part| part.inverse(&y)),
        })
    }

    /// The logarithm of the absolute Jacobian determinant at `x` with result `y`, of the shape of
    /// `x` without [`Transform::event_rank`] axes.
    ///
    /// # Errors
    /// As [`Transform::forward`], and for `Abs` and `Softmax`, which have none.
    #[track_caller]
    pub fn log_abs_det_jacobian(&self, x: &Tensor, y: &Tensor) -> Result<Tensor> {
        located(|| match self {
            Exp => Ok(x.clone()),
            Affine { scale, .. } => x.zeros_like().add(scale.abs().log()),
            Sigmoid => Ok(-(-x).softplus() - x.softplus()),
            // log(1 - tanh(x)^2) without the square, which rounds to 1.
            Tanh => Ok((-x - (x * -2.0).softplus() + std::f64::consts::LN_2) * 2.0),
            Power(exponent) => Ok(y.mul(exponent)?.div(x)?.abs().log()),
            Abs | Softmax => {
                let reason = format!("{self:?} has no Jacobian determinant");
                Err(super::refuse("log_abs_det_jacobian", reason))
            }
            StickBreaking => {
                let x = x.sub(rest_logs(x)?)?;
                let shares = y.slice(-1, ..last(y)? - 1)?;
                (shares.log() - (-&x).softplus() - x).sum(-1)
            }
            Compose(parts) => {
                let rank = self.event_rank();
                let mut sum: Option<Tensor> = None;
                let mut x = x.clone();
                for part in parts {
                    let y = part.forward(&x)?;
                    let mut term = part.log_abs_det_jacobian(&x, &y)?;
                    for _ in part.event_rank()..rank {
                        term = term.sum(-1)?;
                    }
                    sum = Some(sum.map_or(Ok(term.clone()), |sum| sum.add(&term))?);
                    x = y;
                }
                Ok(sum.unwrap_or_else(|| x.zeros_like()))
            }
        })
    }
}

/// The length of vectors, at least 1.
fn last(x: &Tensor) -> Result<usize> {
    match x.shape().dims().last() {
        Some(&n) if n > 0 => Ok(n),
        _ => Err(super::refuse("StickBreaking", format!("{} are no vectors", x.shape()))),
    }
}

/// `log(n - i)` for the elements `i` of vectors of `n`.
fn rest_logs(x: &Tensor) -> Result<Tensor> {
    let n = last(x)?;
    Ok((n as f64 - Tensor::iota(n, x.dtype(), x.device())).log())
}
