//! Limits on gradients, between [`Optimizer::gradients`](crate::Optimizer::gradients) and
//! [`Optimizer::apply`](crate::Optimizer::apply).

use crate::optimizer::{check_option, refuse};
use std::panic::Location;
use zyx_core::{Result, Tensor, attribute};

/// Gradients scaled so that all of them together have at most the norm `max`, and the norm they
/// had. One that is `None` stays so.
///
/// ```
/// use zyx_optim::clip_norm;
/// use zyx_core::{Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let gradients = [Some(Tensor::new([3f32, 0.0], &device)?), None, Some(Tensor::new(4f32, &device)?)];
/// let (clipped, norm) = clip_norm(&gradients, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((clipped[2].as_ref().unwrap().item::<f32>()? - 0.8).abs() < 1e-6);
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// When there is no gradient, or `max` is negative.
#[track_caller]
pub fn clip_norm(gradients: &[Option<Tensor>], max: f64) -> Result<(Vec<Option<Tensor>>, Tensor)> {
    check_option("clip_norm", "max", max, 0.0, f64::INFINITY)?;
    let mut total: Option<Tensor> = None;
    for gradient in gradients.iter().flatten() {
        let wide = gradient.cast(gradient.dtype().accumulator());
        let squares = wide.square().sum(..)?;
        total = Some(match total {
            None => squares,
            Some(total) => total.add(&squares)?,
        });
    }
    let Some(total) = total else {
        return Err(refuse("clip_norm", "there is no gradient".to_owned()));
    };
    let norm = total.sqrt();
    let factor = norm.add(1e-6)?.recip().mul(max)?.minimum(1.0)?;
    let mut scaled = Vec::with_capacity(gradients.len());
    for gradient in gradients {
        scaled.push(match gradient {
            Some(gradient) => Some(gradient.mul(factor.cast(gradient.dtype()))?),
            None => None,
        });
    }
    Ok((scaled, norm))
}

/// Gradients with every element limited to `-max ..= max`.
///
/// ```
/// # use zyx_core::{Runtime, Tensor};
/// # let device = Runtime::default().device("reference")?;
/// let gradients = [Some(Tensor::new([3f32, -0.5], &device)?), None];
/// let clipped = zyx_optim::clip_value(&gradients, 1.0)?;
/// assert_eq!(clipped[0].as_ref().unwrap().to_vec::<f32>()?, [1.0, -0.5]);
/// # Ok::<(), zyx_core::Error>(())
/// ```
///
/// # Errors
/// When `max` is negative.
#[track_caller]
pub fn clip_value(gradients: &[Option<Tensor>], max: f64) -> Result<Vec<Option<Tensor>>> {
    check_option("clip_value", "max", max, 0.0, f64::INFINITY)?;
    let clip = |gradient: &Tensor| gradient.clamp(-max, max);
    let clipped = gradients.iter().map(|gradient| gradient.as_ref().map(clip).transpose());
    attribute(Location::caller(), || clipped.collect())
}
