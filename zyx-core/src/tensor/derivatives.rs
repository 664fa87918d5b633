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
    /// `tolerance`, relative to the largest, beyond the rounding of the result. Quotients are central and
    /// extrapolated from two steps, good to about ten digits of a function that is smooth within 0.002 of
    /// its inputs. [`Kernel::check_gradient`](crate::kernel::Kernel::check_gradient) checks the rule of a kernel.
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
        if !inputs.iter().all(|x| x.dtype() == DType::F64) {
            return Err(Tensor::dtype_error(GRADCHECK, inputs, "inputs must hold f64".to_owned()));
        }
        match find_wrong_component(&f, inputs, DType::F64, tolerance).named(GRADCHECK)? {
            Some(reason) => Err(Tensor::argument_error(GRADCHECK, reason)),
            None => Ok(()),
        }
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

const GRADCHECK: &str = "gradcheck";

/// The larger of the two steps of a difference quotient in `f64`, in units of the input. The extrapolated quotient is off by
/// `step^4 / 480` times the fifth derivative, 3e-14, and by the rounding of the function divided by the step, 1e-13.
const STEP_F64: f64 = 2e-3;

/// The same in `f32`, where rounding divided by the step leaves an error of 6e-6 and a larger step would leave out what is not
/// smooth within it.
const STEP_F32: f64 = 2e-2;

/// Roundings of the result, in units of its norm times the epsilon of its dtype, that may be in a difference quotient: four
/// values of the function, whose weights add up to 3 and whose operations round several times each.
const QUOTIENT_ROUNDINGS: f64 = 16.0;

/// Describes the first component of a gradient that differs from its difference quotient; `None` if all agree
/// to `tolerance`, relative to the largest. Floats of the inputs and the result have to hold `dtype`, which
/// is `f32` or `f64`; other inputs are constants.
pub(super) fn find_wrong_component(
    f: &impl Fn(&[Tensor]) -> Result<Tensor>,
    inputs: &[&Tensor],
    dtype: DType,
    tolerance: f64,
) -> Result<Option<String>> {
    let (step, epsilon) = match dtype {
        DType::F32 => (STEP_F32, f64::from(f32::EPSILON)),
        _ => (STEP_F64, f64::EPSILON),
    };
    let floats: Vec<usize> = (0..inputs.len()).filter(|&i| inputs[i].dtype().is_float()).collect();
    if floats.iter().any(|&i| inputs[i].dtype() != dtype) {
        return Err(Tensor::dtype_error(GRADCHECK, inputs, format!("inputs must hold {dtype}")));
    }
    let mut x: Vec<Tensor> = inputs.iter().map(|x| x.detach()).collect();
    floats.iter().for_each(|&i| x[i] = inputs[i].tracked());
    let y = f(&x)?;
    if y.dtype() != dtype {
        return Err(Tensor::dtype_error(GRADCHECK, &[&y], format!("the result must hold {dtype}")));
    }
    // Weights that are no pattern, so that wrong components do not cancel.
    let place = Tensor::iota(y.numel(), dtype, y.device());
    let weights = place.mul(0.754_877_666)?.fmod(1.0)?.add(0.5)?.reshape(y.shape().clone())?;
    let targets: Vec<&Tensor> = floats.iter().map(|&i| &x[i]).collect();
    let gradients = y.grad_with(&weights, &targets)?;
    let weights = to_f64(&weights)?;
    let weighted = |y: &Tensor| -> Result<Vec<f64>> {
        Ok(to_f64(y)?.iter().zip(&weights).map(|(y, weight)| y * weight).collect())
    };
    let norm = weighted(&y)?.iter().map(|y| y * y).sum::<f64>().sqrt();
    let rounding = QUOTIENT_ROUNDINGS * epsilon * norm / step;
    for (dx, &i) in gradients.iter().zip(&floats) {
        let data = to_f64(inputs[i])?;
        let got = match dx {
            Some(dx) => to_f64(dx)?,
            None => vec![0.0; data.len()],
        };
        let value = |at: usize, element: f64| -> Result<f64> {
            let mut moved = data.clone();
            moved[at] = element;
            let mut all: Vec<Tensor> = inputs.iter().map(|x| x.detach()).collect();
            all[i] = of_f64(&moved, inputs[i])?;
            Ok(weighted(&f(&all)?)?.iter().sum())
        };
        let quotient = |at: usize| -> Result<f64> {
            let of = |h: f64| -> Result<f64> {
                let [low, high] = [-h, h].map(|by| rounded(data[at] + by, dtype));
                Ok((value(at, high)? - value(at, low)?) / (high - low))
            };
            Ok((4.0 * of(step / 2.0)? - of(step)?) / 3.0)
        };
        let want = (0..data.len()).map(quotient).collect::<Result<Vec<f64>>>()?;
        let scale = want.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
        for (at, (got, want)) in got.iter().zip(&want).enumerate() {
            let is_far = (got - want).abs() > tolerance * scale + rounding;
            if is_far || got.is_nan() != want.is_nan() {
                let reason = format!("input {i}, element {at}: gradient {got}, quotient {want}");
                return Ok(Some(reason));
            }
        }
    }
    Ok(None)
}

/// The nearest number of a dtype, `f32` or `f64`.
fn rounded(x: f64, dtype: DType) -> f64 {
    if dtype == DType::F32 { f64::from(x as f32) } else { x }
}

/// Elements of `f32` or `f64`. The host converts them: some devices have no `f64`.
fn to_f64(x: &Tensor) -> Result<Vec<f64>> {
    match x.dtype() {
        DType::F32 => Ok(x.to_vec::<f32>()?.into_iter().map(f64::from).collect()),
        _ => x.to_vec(),
    }
}

/// A tensor of these elements with shape, dtype and device of another, of `f32` or `f64`.
fn of_f64(data: &[f64], like: &Tensor) -> Result<Tensor> {
    let (shape, device) = (like.shape().clone(), like.device());
    match like.dtype() {
        DType::F32 => {
            let data: Vec<f32> = data.iter().map(|&x| x as f32).collect();
            Tensor::from_slice(&data, shape, device)
        }
        _ => Tensor::from_slice(data, shape, device),
    }
}
