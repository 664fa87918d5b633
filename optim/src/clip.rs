//! Limits on gradients, between [`Optimizer::gradients`](crate::Optimizer::gradients) and
//! [`Optimizer::apply`](crate::Optimizer::apply).

use crate::optimizer::refuse;
use std::panic::Location;
use zyx_core::{DType, Result, Tensor, attribute};

/// Gradients scaled so that all of them together have at most the norm `max`, and the norm they
/// had ([`total_norm`] with `p = 2`). One that is `None` stays so. An infinite `max` changes nothing.
///
/// ```
/// use zyx::optim::clip_norm;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let gradients = [Some(Tensor::new([3f32, 0.0], &device)?), None, Some(Tensor::new(4f32, &device)?)];
/// let (clipped, norm) = clip_norm(&gradients, 1.0)?;
/// assert_eq!(norm.item::<f32>()?, 5.0);
/// assert!((clipped[2].as_ref().unwrap().item::<f32>()? - 0.8).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no gradient, or `max` is negative or NaN.
#[track_caller]
pub fn clip_norm(gradients: &[Option<Tensor>], max: f64) -> Result<(Vec<Option<Tensor>>, Tensor)> {
    check_max("clip_norm", max)?;
    let norm = total_norm(gradients, 2.0)?;
    Ok((clip_to_norm(gradients, max, &norm)?, norm))
}

/// The p-norm of all elements of all gradients as one vector, a scalar in `f32` (`f64` if there are
/// gradients of `f64`). Gradients without elements contribute nothing. As in PyTorch, `p = 0` counts
/// the gradients that are not zero, and `p` may be infinite or negative.
///
/// ```
/// use zyx::optim::total_norm;
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let empty = Tensor::zeros([0], DType::F32, &device);
/// let gradients = [Some(Tensor::new([3f32, -4.0], &device)?), None, Some(empty)];
/// assert_eq!(total_norm(&gradients, f64::INFINITY)?.item::<f32>()?, 4.0);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When there is no gradient, or `p` is NaN.
#[track_caller]
pub fn total_norm(gradients: &[Option<Tensor>], p: f64) -> Result<Tensor> {
    let mut each: Vec<Tensor> = Vec::with_capacity(gradients.len());
    let dtypes = gradients.iter().flatten().map(|gradient| gradient.dtype().accumulator());
    let widest = dtypes.reduce(DType::promote).unwrap_or(DType::F32);
    for gradient in gradients.iter().flatten() {
        let wide = gradient.cast(widest);
        each.push(if p == 2.0 { wide.square().sum(..)? } else { wide.vector_norm(p, ..)? });
    }
    let Some((first, rest)) = each.split_first() else {
        return Err(refuse("total_norm", "there is no gradient".to_owned()));
    };
    let here = Location::caller();
    let total = attribute(here, || -> Result<Tensor> {
        if p == 2.0 {
            return Ok(rest.iter().try_fold(first.clone(), |sum, x| sum.add(x))?.sqrt());
        }
        Tensor::stack(&each.iter().collect::<Vec<_>>(), 0)?.vector_norm(p, ..)
    });
    total.map_err(|error| error.at(here))
}

/// Gradients scaled by `max / norm` where that is less than 1: [`clip_norm`] by another norm.
///
/// ```
/// use zyx::optim::{clip_to_norm, total_norm};
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let gradients = [Some(Tensor::new([3f32, -4.0], &device)?)];
/// let clipped = clip_to_norm(&gradients, 2.0, &total_norm(&gradients, f64::INFINITY)?)?;
/// assert!((clipped[0].as_ref().unwrap().to_vec::<f32>()?[1] + 2.0).abs() < 1e-6);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `norm` is no scalar, or `max` is negative or NaN.
#[track_caller]
pub fn clip_to_norm(
    gradients: &[Option<Tensor>],
    max: f64,
    norm: &Tensor,
) -> Result<Vec<Option<Tensor>>> {
    check_max("clip_to_norm", max)?;
    if norm.rank() != 0 {
        return Err(refuse("clip_to_norm", format!("the norm has shape {}", norm.shape())));
    }
    if max == f64::INFINITY {
        return Ok(gradients.to_vec());
    }
    let factor = norm.full_like(max).div(norm.add(1e-6)?)?.minimum(1.0)?;
    let scale = |gradient: &Tensor| -> Result<Tensor> {
        let wide = gradient.dtype().accumulator();
        Ok(gradient.cast(wide).mul(factor.cast(wide))?.cast(gradient.dtype()))
    };
    let here = Location::caller();
    let scaled = gradients.iter().map(|gradient| gradient.as_ref().map(scale).transpose());
    attribute(here, || scaled.collect::<Result<_>>()).map_err(|error| error.at(here))
}

#[track_caller]
fn check_max(op: &'static str, max: f64) -> Result<()> {
    if max >= 0.0 {
        return Ok(());
    }
    Err(refuse(op, format!("max is {max}, it must be at least 0")))
}

/// Gradients with every element limited to `-max ..= max`.
///
/// ```
/// # use zyx::Tensor;
/// # let device = zyx::runtime().device("reference")?;
/// let gradients = [Some(Tensor::new([3f32, -0.5], &device)?), None];
/// let clipped = zyx::optim::clip_value(&gradients, 1.0)?;
/// assert_eq!(clipped[0].as_ref().unwrap().to_vec::<f32>()?, [1.0, -0.5]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # Errors
/// When `max` is negative or NaN.
#[track_caller]
pub fn clip_value(gradients: &[Option<Tensor>], max: f64) -> Result<Vec<Option<Tensor>>> {
    check_max("clip_value", max)?;
    let clip = |gradient: &Tensor| gradient.clamp(-max, max);
    let clipped = gradients.iter().map(|gradient| gradient.as_ref().map(clip).transpose());
    attribute(Location::caller(), || clipped.collect())
}
