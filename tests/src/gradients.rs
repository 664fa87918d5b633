//! Gradients against central differences in `f64`.
//!
//! For a function of some tensors, a random weighted sum of the result's elements is
//! differentiated both ways. The difference quotient is extrapolated from two step sizes
//! (Richardson), so it is good to about ten digits, and the gradient that the device computes has
//! to agree to [`GRADIENT`]. The second order is the first of the gradient: the check applied to it.
//! The derivative in a random direction ([`Tensor::jvp`]) is compared, element by element, with the
//! quotient in that direction. It differentiates the gradient by a cotangent of zero, so rules that
//! are not linear in the cotangent, or ask for its sign, are found by it.
//!
//! The interpreter computes the quotients, at hundreds of points, so that a device with a compiler
//! of its own gets all functions and gradients of a test as one plan. That the device's function
//! is the interpreter's is compared at the point itself.

use crate::bounds::{FORMULA, GRADIENT};
use crate::oracle::Array;
use crate::tolerance::formula_error;
use crate::{Check, Rng, Val};
use zyx_core::{DType, Device, Error, Result, Runtime, Tensor};

/// The larger of the two steps.
const STEP: f64 = 2e-3;

/// A function of tensors, its inputs, and whether it has a second derivative to be checked.
pub struct Smooth {
    /// What is differentiated.
    pub name: String,
    /// Where.
    pub inputs: Vec<Array>,
    /// How.
    pub f: Function,
    /// Whether the second order is checked.
    pub twice: bool,
}

/// A function of tensors.
pub type Function = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

impl std::fmt::Debug for Smooth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Smooth").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A function at random points of `low .. high`.
pub fn smooth(
    name: &str,
    dims: &[&[usize]],
    (low, high): (f64, f64),
    f: impl Fn(&[Tensor]) -> Result<Tensor> + 'static,
) -> Smooth {
    let seed = name.bytes().fold(11u64, |h, b| h.wrapping_mul(31).wrapping_add(b as u64));
    let mut rng = Rng::new(seed);
    let input = |dims: &&[usize]| {
        let data: Vec<f64> = (0..dims.iter().product()).map(|_| rng.between(low, high)).collect();
        Array::reals(DType::F64, dims, &data)
    };
    let inputs = dims.iter().map(input).collect();
    Smooth { name: name.to_owned(), inputs, f: Box::new(f), twice: true }
}

impl Smooth {
    /// Has no second derivative, or one that is zero by definition.
    #[must_use]
    pub fn once(mut self) -> Smooth {
        self.twice = false;
        self
    }

    /// At these points instead.
    #[must_use]
    pub fn at(mut self, inputs: &[(&[usize], &[f64])]) -> Smooth {
        self.inputs = inputs.iter().map(|(d, x)| Array::reals(DType::F64, d, x)).collect();
        self
    }
}

/// A function to be checked: a given one, or the gradient of one.
struct Job<'a> {
    name: String,
    inputs: &'a [Array],
    f: Box<dyn Fn(&[Tensor]) -> Result<Tensor> + 'a>,
    seed: u64,
    /// Whether the derivative in a direction is checked.
    forward: bool,
}

/// Checks the first order, backwards and in a direction, and, where it exists, the second order of
/// each function.
///
/// Where there is no `f64`, gradients in `f32` are compared with those of the interpreter in
/// `f64`, which agree with the differences.
pub fn agree(device: &Device, functions: Vec<Smooth>) {
    if !device.caps().storage.contains(DType::F64) {
        return agree_in_f32(device, &functions);
    }
    let mut check = Check::new(device);
    let mut jobs = Vec::new();
    for s in &functions {
        let (name, inputs) = (s.name.clone(), &s.inputs[..]);
        jobs.push(Job { name, inputs, f: Box::new(|x| (s.f)(x)), seed: 1, forward: true });
        if s.twice {
            let name = format!("{}, second order", s.name);
            let f = Box::new(|x: &[Tensor]| gradient(s, x));
            jobs.push(Job { name, inputs, f, seed: 3, forward: false });
        }
    }
    let ready: Vec<_> = jobs.iter().map(|job| Ready::new(device, job)).collect();
    if device.caps().simt {
        // One plan for all; should that fail, it fails again below and tells why.
        let parts = |r: &Ready| {
            let all = r.dx.iter().flatten().chain(&r.along).chain([&r.terms]);
            all.cloned().collect::<Vec<_>>()
        };
        let tensors: Vec<Tensor> = ready.iter().flatten().flat_map(parts).collect();
        let _ = Tensor::realize_all(&tensors);
    }
    let reference = reference();
    for (job, ready) in jobs.iter().zip(ready) {
        let outcome = ready.map_err(|error| error.to_string());
        let outcome = outcome.and_then(|ready| ready.compare(job, &reference));
        let why = outcome.err().unwrap_or_default();
        check.that(why.is_empty(), format!("{}: {why}", job.name));
    }
    check.finish();
}

/// Checks the first order of each function in `f32` against `f64` at the same points.
fn agree_in_f32(device: &Device, functions: &[Smooth]) {
    let mut check = Check::new(device);
    let reference = reference();
    for s in functions {
        let inputs: Vec<Array> = s.inputs.iter().map(|x| x.cast(DType::F32)).collect();
        let gradients = |device: &Device, dtype: DType| -> Result<Vec<Tensor>> {
            let leaf = |x: &Array| Ok(x.tensor(device)?.cast(dtype).contiguous().tracked());
            let x = inputs.iter().map(leaf).collect::<Result<Vec<_>>>()?;
            // The sum of all elements: weights of one are the same in both dtypes.
            let y = (s.f)(&x)?;
            let dx = y.grad_with(&y.ones_like(), &x.iter().collect::<Vec<_>>())?;
            Ok(dx.iter().zip(&x).map(|(dx, x)| dx.clone().unwrap_or(x.zeros_like())).collect())
        };
        let want = gradients(&reference, DType::F64).expect("the interpreter computes");
        let got = gradients(device, DType::F32);
        let got = got.map_or_else(|e| vec![Err(e)], |got| got.into_iter().map(Ok).collect());
        for (got, want) in got.into_iter().zip(&want) {
            let want = Array::read(want).expect("the interpreter computes");
            let scale = want.floats().iter().fold(1.0f64, |m, x| m.max(x.abs()));
            let error = formula_error(DType::F32, FORMULA, scale);
            let near = want.map(DType::F32, |x| match x {
                Val::Real(x, _) => Val::about(DType::F32, x, error),
                other => other,
            });
            check.equal(&s.name, got, &near);
        }
    }
    check.finish();
}

/// All gradients of a weighted sum of a function's elements, in one vector.
fn gradient(s: &Smooth, x: &[Tensor]) -> Result<Tensor> {
    let y = (s.f)(x)?;
    let weights = weights(y.numel(), 2, y.device(), y.shape().dims())?;
    let dx = y.grad_with(&weights, &x.iter().collect::<Vec<_>>())?;
    let flat = dx.iter().zip(x).map(|(dx, x)| match dx {
        Some(dx) => dx.flatten(),
        None => x.zeros_like().flatten(),
    });
    Tensor::cat(&flat.collect::<Vec<_>>().iter().collect::<Vec<_>>(), 0)
}

/// Fixed random weights of a result's elements.
fn weights(n: usize, seed: u64, device: &Device, dims: &[usize]) -> Result<Tensor> {
    let mut rng = Rng::new(seed);
    let data: Vec<f64> = (0..n).map(|_| rng.between(0.5, 1.5)).collect();
    Tensor::from_slice(&data, dims, device)
}

/// The interpreter.
fn reference() -> Device {
    Runtime::default().device("reference").expect("always present")
}

/// The elements of a function's result with weights, of which the sum is differentiated.
fn terms(job: &Job<'_>, x: &[Tensor]) -> Result<Tensor> {
    let y = (job.f)(x)?;
    y.mul(weights(y.numel(), job.seed, y.device(), y.shape().dims())?)
}

/// Inputs on a device.
fn leaves(inputs: &[Array], device: &Device) -> Result<Vec<Tensor>> {
    inputs.iter().map(|x| x.tensor(device)).collect()
}

/// A fixed random direction in the space of the inputs.
fn direction(inputs: &[Array]) -> Vec<Array> {
    let mut rng = Rng::new(5);
    let part = |x: &Array| {
        let data: Vec<f64> = (0..x.numel()).map(|_| rng.between(-1.0, 1.0)).collect();
        Array::reals(DType::F64, &x.dims, &data)
    };
    inputs.iter().map(part).collect()
}

/// A function, its gradient and its derivative in a direction at its point, on the device under
/// test.
struct Ready {
    terms: Tensor,
    dx: Vec<Option<Tensor>>,
    along: Option<Tensor>,
}

impl Ready {
    fn new(device: &Device, job: &Job<'_>) -> Result<Ready> {
        let tracked: Vec<Tensor> =
            leaves(job.inputs, device)?.iter().map(Tensor::tracked).collect();
        let y = (job.f)(&tracked)?;
        let weights = weights(y.numel(), job.seed, device, y.shape().dims())?;
        let dx = y.grad_with(&weights, &tracked.iter().collect::<Vec<_>>())?;
        let along = || -> Result<Tensor> {
            let tangents = leaves(&direction(job.inputs), device)?;
            let inputs: Vec<&Tensor> = tracked.iter().collect();
            let (_, dy) = Tensor::jvp(&job.f, &inputs, &tangents.iter().collect::<Vec<_>>())?;
            Ok(dy)
        };
        let along = job.forward.then(along).transpose()?;
        Ok(Ready { terms: terms(job, &leaves(job.inputs, device)?)?, dx, along })
    }

    /// What differs from the interpreter's function and its difference quotients.
    fn compare(&self, job: &Job<'_>, reference: &Device) -> Result<(), String> {
        let text = |error: Error| error.to_string();
        let here = leaves(job.inputs, reference).map_err(text)?;
        let want = terms(job, &here).and_then(|y| y.to_vec::<f64>()).map_err(text)?;
        let got = self.terms.to_vec::<f64>().map_err(text)?;
        agreed("the function", &got, &want)?;
        for (i, input) in job.inputs.iter().enumerate() {
            let got = match &self.dx[i] {
                Some(dx) if dx.shape().dims() != input.dims => {
                    let shape = dx.shape();
                    return Err(format!("the gradient has shape {shape}, not {:?}", input.dims));
                }
                Some(dx) => dx.to_vec::<f64>().map_err(text)?,
                None => vec![0.0; input.numel()],
            };
            let want = quotients(job, &here, i).map_err(text)?;
            agreed(&format!("the gradient of input {i}"), &got, &want)?;
        }
        if let Some(along) = &self.along {
            let got = along.to_vec::<f64>().map_err(text)?;
            let want = quotients_along(job, reference).map_err(text)?;
            agreed("the derivative in a direction", &got, &want)?;
        }
        Ok(())
    }
}

/// The difference quotients of a function by the elements of input `i`, at a point.
fn quotients(job: &Job<'_>, here: &[Tensor], i: usize) -> Result<Vec<f64>> {
    let input = &job.inputs[i];
    let value = |at: usize, delta: f64| -> Result<f64> {
        let (mut moved, mut data) = (here.to_vec(), input.floats());
        data[at] += delta;
        moved[i] = Array::reals(DType::F64, &input.dims, &data).tensor(here[i].device())?;
        Ok(terms(job, &moved)?.to_vec::<f64>()?.iter().sum())
    };
    let quotient = |at: usize| -> Result<f64> {
        let of = |h: f64| Ok((value(at, h)? - value(at, -h)?) / (2.0 * h));
        let (wide, narrow): (Result<f64>, Result<f64>) = (of(STEP), of(STEP / 2.0));
        Ok((4.0 * narrow? - wide?) / 3.0)
    };
    (0..input.numel()).map(quotient).collect()
}

/// The difference quotients of the elements of a function in its direction.
fn quotients_along(job: &Job<'_>, device: &Device) -> Result<Vec<f64>> {
    let direction = direction(job.inputs);
    let value = |step: f64| -> Result<Vec<f64>> {
        let moved = job.inputs.iter().zip(&direction).map(|(x, t)| {
            let pairs = x.floats().into_iter().zip(t.floats());
            let data: Vec<f64> = pairs.map(|(x, t)| x + step * t).collect();
            Array::reals(DType::F64, &x.dims, &data).tensor(device)
        });
        (job.f)(&moved.collect::<Result<Vec<_>>>()?)?.to_vec::<f64>()
    };
    let quotient = |h: f64| -> Result<Vec<f64>> {
        let (above, below) = (value(h)?, value(-h)?);
        Ok(above.iter().zip(below).map(|(a, b)| (a - b) / (2.0 * h)).collect())
    };
    let (wide, narrow) = (quotient(STEP)?, quotient(STEP / 2.0)?);
    Ok(narrow.iter().zip(wide).map(|(n, w)| (4.0 * n - w) / 3.0).collect())
}

/// Says which element differs by more than [`GRADIENT`] of the largest.
fn agreed(what: &str, got: &[f64], want: &[f64]) -> Result<(), String> {
    if got.len() != want.len() {
        return Err(format!("{what} has {} elements, not {}", got.len(), want.len()));
    }
    let scale = want.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        if (got - want).abs() > GRADIENT * scale || got.is_nan() != want.is_nan() {
            return Err(format!("{what}, element {at}: got {got:e}, expected {want:e}"));
        }
    }
    Ok(())
}
