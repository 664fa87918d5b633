//! More of differentiation: directional derivatives, computing again instead of keeping, and a
//! check of gradients against differences.
//!
//! All three are made of [`Tensor::grad_with`]; there is no mode and no second table of rules. A
//! region without gradients needs nothing of its own either: [`Tensor::detach`] what enters it.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::graph::GradientRule;
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::scalar::Scalar;
use crate::shape::Shape;
use std::sync::Arc;

impl Tensor {
    /// `f` at `inputs`, and its derivative in the direction of `tangents`: the product of the
    /// Jacobian with them, exact and differentiable again.
    ///
    /// The gradient with a cotangent `u` is linear in `u`; its product with the tangents,
    /// differentiated by `u`, is the derivative asked for. So every rule serves both directions;
    /// what the cotangents alone need is never computed.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// let along = Tensor::new([1f32, 10.0], &device)?;
    /// let (y, dy) = Tensor::jvp(|x| Ok(x[0].square()), &[&x], &[&along])?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 4.0]);
    /// assert_eq!(dy.to_vec::<f32>()?, [2.0, 40.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a tangent differs from its input in shape or dtype, the result does not hold floats, or
    /// `f` fails.
    #[track_caller]
    pub fn jvp(
        f: impl Fn(&[Tensor]) -> Result<Tensor>,
        inputs: &[&Tensor],
        tangents: &[&Tensor],
    ) -> Result<(Tensor, Tensor)> {
        const OP: &str = "jvp";
        let _here = composed();
        let fits = |(x, t): (&&Tensor, &&Tensor)| {
            x.shape().same(t.shape()) && x.dtype() == t.dtype() && x.device() == t.device()
        };
        if inputs.len() != tangents.len() || !inputs.iter().zip(tangents).all(fits) {
            let reason = "each input needs a tangent of its shape, dtype and device".to_owned();
            return Err(Tensor::argument_error(OP, reason));
        }
        // One input may have been computed from another, which its tangent knows already.
        let x: Vec<Tensor> = inputs.iter().map(|x| x.alias()).collect();
        let y = f(&x)?;
        let derivative = || {
            let u = y.zeros_like();
            let mut sum: Option<Tensor> = None;
            let dx = y.grad_with(&u, &x.iter().collect::<Vec<_>>())?;
            for (dx, t) in dx.into_iter().zip(tangents) {
                let Some(dx) = dx else { continue };
                let part = dx.mul(*t)?.sum(..)?.cast(y.dtype());
                sum = Some(match sum {
                    Some(sum) => sum.add(&part)?,
                    None => part,
                });
            }
            let dy = match sum {
                Some(sum) => sum.grad(&[&u])?.remove(0),
                None => None,
            };
            Ok(dy.unwrap_or_else(|| y.zeros_like()))
        };
        let dy = derivative().named(OP)?;
        Ok((y, dy))
    }

    /// `f` at `inputs`, keeping nothing of what it computes on the way: gradients call `f` again.
    ///
    /// Values on the way are freed once they were used; without this, tracked ones are kept for
    /// gradients. `f` is computed again when the gradient of its result is there, also where value and
    /// gradients are one plan: in a chain of such regions the inputs of all of them are stored, and
    /// what is between for one at a time. Gradients asked for from the last region to the first leave
    /// the plan most freedom to be done with one. Tensors that `f` uses beside its inputs get no
    /// gradient; random numbers must be drawn from a generator that `f` clones.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    /// let y = Tensor::checkpoint(|x| Ok(x[0].exp().sin()), &[&x])?;
    /// y.realize()?;
    /// let dx = y.grad(&[&x])?.remove(0).expect("y depends on x");
    /// assert_eq!(format!("{dx:.3}"), "[-2.478  3.313]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are no inputs, they do not hold floats or are on different devices, or `f` fails.
    #[track_caller]
    pub fn checkpoint(
        f: impl Fn(&[Tensor]) -> Result<Tensor> + Send + Sync + 'static,
        inputs: &[&Tensor],
    ) -> Result<Tensor> {
        const OP: &str = "checkpoint";
        if inputs.is_empty() || !inputs.iter().all(|x| x.dtype().is_float()) {
            let reason = "needs inputs that hold floats".to_owned();
            return Err(Tensor::argument_error(OP, reason));
        }
        Tensor::check_operands(OP, inputs).named(OP)?;
        let detached: Vec<Tensor> = inputs.iter().map(|x| x.detach()).collect();
        let y = f(&detached)?;
        let kept: Arc<[Tensor]> = inputs.iter().map(|x| (*x).clone()).collect();
        let held = kept.clone();
        // All inputs are joined to one, which is never computed. With a list of inputs, plans store what is between for
        // several regions at a time.
        let joined = joined(kept.iter().map(|x| Ok(x.clone()))).named(OP)?;
        let dtype = joined.dtype();
        let rule = move |_: &[Tensor], _: &Tensor, dy: &Tensor| {
            let x = behind(&kept, dy)?;
            let dx = f(&x)?.grad_with(dy, &x.iter().collect::<Vec<_>>())?;
            let whole = dx
                .iter()
                .zip(&kept[..])
                .map(|(dx, x)| Ok(dx.clone().unwrap_or_else(|| x.zeros_like())));
            Ok(vec![Some(self::joined(whole)?.cast(dtype))])
        };
        let rule = GradientRule { held, ..GradientRule::new(Box::new(rule)) };
        y.with_gradient_rule(&[&joined], rule).named(OP)
    }

    /// Compares the gradients of `f` with difference quotients at `inputs`, which have to hold
    /// `f64`: each component of the gradient of a weighted sum of the result has to agree to
    /// `tolerance`, relative to the largest. Quotients are central and extrapolated from two steps,
    /// good to about ten digits of a function that is smooth within 0.002 of its inputs.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0.5f64, 2.0], &device)?;
    /// Tensor::gradcheck(|x| Ok(x[0].exp()), &[&x], 1e-6)?;
    /// let wrong = |x: &[Tensor]| x[0].exp().with_gradient(&[&x[0]], |_, y, _| Ok(vec![Some(y.clone())]));
    /// assert!(Tensor::gradcheck(wrong, &[&x], 1e-6).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a component differs (the message says which), the inputs or the result do not hold
    /// `f64`, or `f` fails.
    #[track_caller]
    pub fn gradcheck(
        f: impl Fn(&[Tensor]) -> Result<Tensor>,
        inputs: &[&Tensor],
        tolerance: f64,
    ) -> Result<()> {
        compare(&f, inputs, tolerance).named("gradcheck")
    }
}

/// The same values to be differentiated by alone, such that what is computed from them is computed
/// again, and not before the cotangent `dy` is there.
///
/// In one graph equal nodes are one, so computing again from the same inputs would be computing once
/// and storing. Bits of `dy` times a number that only a launch knows, zero, are mixed into the
/// inputs' bits: another value to the graph, the same one to everybody else. Parameters and data lie
/// in memory anyway, so inputs that were computed suffice where there are some.
#[track_caller]
pub(crate) fn behind(inputs: &[Tensor], dy: &Tensor) -> Result<Vec<Tensor>> {
    let computed = |x: &Tensor| x.history().expr().is_some();
    let all = !inputs.iter().any(computed);
    let late = |x: &Tensor| {
        if dy.numel() == 0 || !(all || computed(x)) {
            return Ok(x.alias());
        }
        let words = bits_of(x.dtype());
        let first = dy.flatten().slice(0, ..1)?.bitcast(bits_of(dy.dtype()))?.cast(words);
        let nothing = first.combine(BinaryOp::And, &first.argument(Scalar::from_f64(words, 0.0)));
        let nothing = nothing.reshape(Shape::scalar())?.broadcast_unchecked(x.shape());
        let same = x.bitcast(words)?.combine(BinaryOp::Xor, &nothing).bitcast(x.dtype())?;
        Ok(same.with_rule(x, |_, _, dy| Some(dy.clone())))
    };
    inputs.iter().map(late).collect()
}

/// The integers as wide as a float.
fn bits_of(dtype: DType) -> DType {
    match dtype.bits() {
        16 => DType::U16,
        32 => DType::U32,
        _ => DType::U64,
    }
}

/// Tensors in a row, in the widest of their dtypes.
#[track_caller]
fn joined(all: impl Iterator<Item = Result<Tensor>>) -> Result<Tensor> {
    let flat = all.map(|x| Ok(x?.flatten())).collect::<Result<Vec<Tensor>>>()?;
    Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
}

/// The larger of the two steps.
const STEP: f64 = 2e-3;

fn compare(
    f: &impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    tolerance: f64,
) -> Result<()> {
    const OP: &str = "gradcheck";
    if !inputs.iter().all(|x| x.dtype() == DType::F64) {
        return Err(Tensor::dtype_error(OP, inputs, "inputs must hold f64".to_owned()));
    }
    let x: Vec<Tensor> = inputs.iter().map(|x| x.tracked()).collect();
    let y = f(&x)?;
    if y.dtype() != DType::F64 {
        return Err(Tensor::dtype_error(OP, &[&y], "the result must hold f64".to_owned()));
    }
    // Weights that are no pattern, so that wrong components do not cancel.
    let place = Tensor::iota(y.numel(), DType::F64, y.device());
    let weights = place.mul(0.754_877_666)?.fmod(1.0)?.add(0.5)?.reshape(y.shape().clone())?;
    let gradients = y.grad_with(&weights, &x.iter().collect::<Vec<_>>())?;
    for (i, input) in inputs.iter().enumerate() {
        let data = input.to_vec::<f64>()?;
        let got = match &gradients[i] {
            Some(dx) => dx.to_vec::<f64>()?,
            None => vec![0.0; data.len()],
        };
        let value = |at: usize, by: f64| -> Result<f64> {
            let mut moved = data.clone();
            moved[at] += by;
            let mut all: Vec<Tensor> = inputs.iter().map(|x| x.detach()).collect();
            all[i] = Tensor::from_slice(&moved, input.shape().clone(), input.device())?;
            Ok(f(&all)?.mul(&weights)?.to_vec::<f64>()?.iter().sum())
        };
        let quotient = |at: usize| -> Result<f64> {
            let of = |h: f64| Ok::<f64, crate::Error>((value(at, h)? - value(at, -h)?) / (2.0 * h));
            Ok((4.0 * of(STEP / 2.0)? - of(STEP)?) / 3.0)
        };
        let want = (0..data.len()).map(quotient).collect::<Result<Vec<f64>>>()?;
        let scale = want.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            if (got - want).abs() > tolerance * scale || got.is_nan() != want.is_nan() {
                let reason = format!("input {i}, element {at}: gradient {got}, quotient {want}");
                return Err(Tensor::argument_error(OP, reason));
            }
        }
    }
    Ok(())
}
