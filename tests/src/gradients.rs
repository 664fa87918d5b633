//! Gradients against central differences in `f64`.
//!
//! For a function of some tensors, a random weighted sum of the result's elements is
//! differentiated both ways. The difference quotient is extrapolated from two step sizes
//! (Richardson), so it is good to about ten digits, and the library's gradient has to agree to
//! [`RELATIVE`]. The second order is the first of the gradient: the check applied to it.

use crate::oracle::Array;
use crate::{Check, Rng};
use zyx_core::{DType, Device, Error, Result, Tensor};

/// Agreement asked for, relative to the largest component.
pub const RELATIVE: f64 = 1e-6;

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

/// Checks the first and, where it exists, the second order of each function.
pub fn agree(device: &Device, functions: Vec<Smooth>) {
    let mut check = Check::new(device);
    for s in functions {
        let first = compare(device, &s.inputs, &s.f, 1);
        check.that(first.is_ok(), format!("{}: {}", s.name, first.err().unwrap_or_default()));
        if !s.twice {
            continue;
        }
        let n = s.inputs.len();
        let gradient = |x: &[Tensor]| {
            let y = (s.f)(x)?;
            let weights = weights(y.numel(), 2, device, y.shape().dims())?;
            let dx = y.grad_with(&weights, &x.iter().collect::<Vec<_>>())?;
            // All gradients in one vector.
            let zero = |x: &Tensor| x.zeros_like();
            let flat: Vec<Tensor> =
                (0..n).map(|i| dx[i].clone().unwrap_or_else(|| zero(&x[i])).flatten()).collect();
            Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
        };
        let second = compare(device, &s.inputs, &gradient, 3);
        let why = second.err().unwrap_or_default();
        check.that(why.is_empty(), format!("{}, second order: {why}", s.name));
    }
    check.finish();
}

/// Fixed random weights of a result's elements.
fn weights(n: usize, seed: u64, device: &Device, dims: &[usize]) -> Result<Tensor> {
    let mut rng = Rng::new(seed);
    let data: Vec<f64> = (0..n).map(|_| rng.between(0.5, 1.5)).collect();
    Tensor::from_slice(&data, dims, device)
}

type Dyn<'a> = dyn Fn(&[Tensor]) -> Result<Tensor> + 'a;

/// What differs between the gradient of `f` and difference quotients.
fn compare(device: &Device, inputs: &[Array], f: &Dyn<'_>, seed: u64) -> Result<(), String> {
    let text = |error: Error| error.to_string();
    let leaves = inputs.iter().map(|x| x.tensor(device)).collect::<Result<Vec<_>>>();
    let leaves = leaves.map_err(text)?;
    let tracked: Vec<Tensor> = leaves.iter().map(Tensor::tracked).collect();
    let y = f(&tracked).map_err(text)?;
    let w = weights(y.numel(), seed, device, y.shape().dims()).map_err(text)?;
    let dx = y.grad_with(&w, &tracked.iter().collect::<Vec<_>>()).map_err(text)?;
    let value = |i: usize, at: usize, delta: f64| -> Result<f64> {
        let mut moved = leaves.clone();
        let mut data = inputs[i].floats();
        data[at] += delta;
        moved[i] = Array::reals(DType::F64, &inputs[i].dims, &data).tensor(device)?;
        let y = f(&moved)?;
        let terms = y.mul(&w)?.to_vec::<f64>()?;
        Ok(terms.iter().sum())
    };
    for (i, input) in inputs.iter().enumerate() {
        let got = match &dx[i] {
            Some(dx) if dx.shape().dims() != input.dims => {
                return Err(format!("the gradient has shape {}, not {:?}", dx.shape(), input.dims));
            }
            Some(dx) => dx.to_vec::<f64>().map_err(text)?,
            None => vec![0.0; input.numel()],
        };
        let quotient = |at: usize| -> Result<f64> {
            let of = |h: f64| Ok((value(i, at, h)? - value(i, at, -h)?) / (2.0 * h));
            let (wide, narrow): (Result<f64>, Result<f64>) = (of(STEP), of(STEP / 2.0));
            Ok((4.0 * narrow? - wide?) / 3.0)
        };
        let want = (0..input.numel()).map(quotient).collect::<Result<Vec<f64>>>().map_err(text)?;
        let scale = want.iter().fold(1e-3f64, |m, x| m.max(x.abs()));
        for (at, (&got, &want)) in got.iter().zip(&want).enumerate() {
            if (got - want).abs() > RELATIVE * scale || got.is_nan() != want.is_nan() {
                return Err(format!("input {i}, element {at}: got {got:e}, differences {want:e}"));
            }
        }
    }
    Ok(())
}
