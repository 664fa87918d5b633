//! Functions that are traced once: [`Jit`].
//!
//! A loop that builds equal graphs already finds its plan again and replays it; what is left of the
//! host's work is building the graph, op by op, and comparing it. A function whose inputs are all
//! that changes needs neither: it is called once with tensors that have no value, the plan of what
//! it made of them is kept, and a later call binds its inputs and submits.

use super::Tensor;
use crate::dtype::DType;
use crate::error::Result;
use crate::runtime::{Buffer, Device};
use crate::schedule::{Traced, any_unknown};
use crate::shape::Shape;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most kinds of inputs for which plans are kept, and the part of the device's limit of caches that
/// they take; those used least recently go first.
const MOST: usize = 64;
const SHARE: usize = 8;

/// A function of tensors that is traced once for each shape, dtype and device of its inputs, and
/// replayed after that: a call takes the host a few microseconds, however many operations it does.
///
/// The function is called when inputs of a new kind come, with tensors that have no value. What it
/// does besides computing tensors happens then and not again: tensors that it uses and that are no
/// inputs are those of that first call (weights that change belong into the inputs), random numbers
/// are the same each time, and asking for a value is an error. Results are realized and have no
/// history; take gradients inside.
///
/// ```
/// # use zyx::{Jit, Tensor};
/// # let device = zyx::runtime().device("reference")?;
/// // A step of gradient descent.
/// let step = Jit::new(|x: &[Tensor]| {
///     let (w, x) = (x[0].tracked(), &x[1]);
///     let loss = x.mul(&w)?.sub(3.0)?.square().mean(..)?;
///     let dw = loss.grad(&[&w])?.remove(0).expect("the loss depends on it");
///     Ok(vec![w.sub(dw.mul(0.1)?)?, loss])
/// });
/// let x = Tensor::new([1f32, 1.0], &device)?;
/// let mut w = Tensor::new(0f32, &device)?;
/// for _ in 0..50 {
///     w = step.call(&[&w, &x])?.remove(0);
/// }
/// assert!((w.item::<f32>()? - 3.0).abs() < 1e-3);
/// assert_eq!(step.traces(), 1);
/// # Ok::<(), zyx::Error>(())
/// ```
pub struct Jit<F> {
    function: F,
    /// The one used last comes last: a loop finds its own at the first look, and few are kept.
    known: Mutex<Vec<Known>>,
}

/// A kind of inputs.
struct Known {
    kinds: Vec<(Shape, DType, Device)>,
    traced: Arc<Traced>,
}

impl Known {
    fn fits(&self, inputs: &[&Tensor]) -> bool {
        let same = |((shape, dtype, device), x): (&(Shape, DType, Device), &&Tensor)| {
            *dtype == x.dtype() && shape.same(x.shape()) && device == x.device()
        };
        self.kinds.len() == inputs.len() && self.kinds.iter().zip(inputs).all(same)
    }
}

impl<F: Fn(&[Tensor]) -> Result<Vec<Tensor>>> Jit<F> {
    /// Nothing is called yet.
    ///
    /// ```
    /// # use zyx::{Jit, Tensor};
    /// let square = Jit::new(|x: &[Tensor]| Ok(vec![x[0].square()]));
    /// assert_eq!(square.traces(), 0);
    /// ```
    pub fn new(function: F) -> Jit<F> {
        Jit { function, known: Mutex::default() }
    }

    /// The function of these inputs. Under [`Tensor::vmap`] or within another such function it is
    /// called like any other.
    ///
    /// ```
    /// # use zyx::{Jit, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let square = Jit::new(|x: &[Tensor]| Ok(vec![x[0].square()]));
    /// let y = square.call(&[&Tensor::new([1f32, 3.0], &device)?])?;
    /// assert_eq!(y[0].to_vec::<f32>()?, [1.0, 9.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the function fails or asks for a value, or a device fails; the next call may succeed.
    #[track_caller]
    pub fn call(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if any_unknown(inputs) {
            let inputs: Vec<Tensor> = inputs.iter().map(|&x| x.clone()).collect();
            return (self.function)(&inputs);
        }
        Tensor::realize_all(inputs.iter().copied())?;
        if inputs.iter().any(|x| x.device().is_checked()) {
            // What is replayed is not looked at.
            let inputs: Vec<Tensor> = inputs.iter().map(|x| x.detach()).collect();
            let outputs = (self.function)(&inputs)?;
            Tensor::realize_all(&outputs)?;
            return Ok(outputs.iter().map(Tensor::detach).collect());
        }
        let values: Vec<Option<Buffer>> = inputs.iter().map(|x| x.value().cloned()).collect();
        match self.find(inputs) {
            Some(traced) => traced.call(inputs, &values),
            None => self.trace(inputs, &values)?.call(inputs, &values),
        }
    }

    /// How many kinds of inputs there have been, of which plans are kept.
    ///
    /// ```
    /// # use zyx::{Jit, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let square = Jit::new(|x: &[Tensor]| Ok(vec![x[0].square()]));
    /// for x in [1f32, 2.0, 3.0] {
    ///     square.call(&[&Tensor::new(x, &device)?])?;
    /// }
    /// square.call(&[&Tensor::new([1f32, 2.0], &device)?])?;
    /// assert_eq!(square.traces(), 2);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn traces(&self) -> usize {
        self.known().len()
    }

    /// What was traced for such inputs, which is now what was used last.
    fn find(&self, inputs: &[&Tensor]) -> Option<Arc<Traced>> {
        let mut known = self.known();
        let at = known.iter().rposition(|known| known.fits(inputs))?;
        known[at..].rotate_left(1);
        known.last().map(|known| known.traced.clone())
    }

    #[track_caller]
    fn trace(&self, inputs: &[&Tensor], values: &[Option<Buffer>]) -> Result<Arc<Traced>> {
        let kind = |x: &&Tensor| (x.shape().clone(), x.dtype(), x.device().clone());
        let kinds: Vec<(Shape, DType, Device)> = inputs.iter().map(kind).collect();
        let unknown = kinds
            .iter()
            .map(|(shape, dtype, device)| Tensor::unknown(shape.clone(), *dtype, device, false));
        let unknown: Vec<Tensor> = unknown.collect();
        let outputs = (self.function)(&unknown)?;
        let traced = Arc::new(Traced::new(&outputs, &unknown, values)?);
        let limit = outputs.first().map_or(0, |y| y.device().cache_limit() / SHARE);
        let mut known = self.known();
        known.push(Known { kinds, traced: traced.clone() });
        let mut bytes = 0;
        let kept = known.iter().rev().take(MOST).take_while(|known| {
            bytes += known.traced.bytes();
            bytes <= limit
        });
        let going = known.len() - kept.count().max(1);
        drop(known.drain(..going));
        Ok(traced)
    }

    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> fmt::Debug for Jit<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn vector(values: &[f64], device: &Device) -> Tensor {
        Tensor::from_slice(values, [values.len()], device).unwrap()
    }

    fn values(outputs: &[Tensor]) -> Vec<Vec<f64>> {
        outputs.iter().map(|y| y.to_vec::<f64>().unwrap()).collect()
    }

    /// Results that share work, one that is an input, one that depends on none, an input used by
    /// nobody, and an empty one.
    fn several(x: &[Tensor]) -> Result<Vec<Tensor>> {
        let z = x[0].mul(&x[1])?;
        let loss = z.exp().sum(..)?;
        let dx = loss.grad(&[&x[1]])?.remove(0).unwrap();
        let none = Tensor::eye(2, DType::F64, x[0].device());
        Ok(vec![loss, dx, x[1].clone(), none, x[3].exp(), z.slice(0, 1..)?])
    }

    #[test]
    fn calls_replay_what_was_traced() {
        let d = device();
        let calls = AtomicUsize::new(0);
        let jit = Jit::new(|x: &[Tensor]| {
            calls.fetch_add(1, Relaxed);
            several(x)
        });
        for n in [2, 3, 2, 3] {
            for round in 0..3 {
                let of = |salt: usize| -> Vec<f64> {
                    (0..n).map(|i| ((i * 5 + salt + round) % 7) as f64 / 3.0).collect()
                };
                let inputs =
                    [vector(&of(1), &d), vector(&of(2), &d), vector(&of(3), &d), vector(&[], &d)];
                let got = jit.call(&inputs.each_ref()).unwrap();
                assert!(got.iter().all(|y| y.is_realized() && !y.is_tracked()));
                assert_eq!(values(&got), values(&several(&inputs).unwrap()));
            }
        }
        assert_eq!((calls.load(Relaxed), jit.traces()), (2, 2));
    }

    #[test]
    fn a_replay_builds_no_graph_and_compiles_nothing() {
        let d = device();
        let weights = vector(&[1.0, 2.0], &d);
        let jit = Jit::new(|x: &[Tensor]| Ok(vec![x[0].mul(&weights)?.add(2.0)?.exp()]));
        jit.call(&[&vector(&[1.0, 2.0], &d)]).unwrap();
        let before = d.stats();
        let x = vector(&[0.0, 1.0], &d);
        let y = jit.call(&[&x]).unwrap().remove(0);
        let after = d.stats();
        assert_eq!((after.compiles, after.nodes), (before.compiles, before.nodes));
        assert_eq!((after.launches, after.submits), (before.launches + 1, before.submits + 1));
        // Not by the compiler, whose exponential need not be this system's.
        let exp = |x: f64| std::hint::black_box(x).exp();
        assert_eq!(y.to_vec::<f64>().unwrap(), [exp(2.0), exp(4.0)]);
    }

    #[test]
    fn functions_that_slice_in_other_places_share_a_plan() {
        let d = device();
        let x = vector(&(0..64).map(f64::from).collect::<Vec<_>>(), &d);
        for (step, i) in [3, 10, 21, 40, 0].into_iter().enumerate() {
            let jit = Jit::new(|x: &[Tensor]| Ok(vec![x[0].slice(0, i..i + 8)?.mul(0.5)?]));
            let before = d.stats();
            let y = jit.call(&[&x]).unwrap();
            let made = d.stats().since(&before);
            assert!(step < 2 || (made.compiles, made.plan_misses) == (0, 0), "{step}: {made:?}");
            let want: Vec<f64> = (i..i + 8).map(|i| i as f64 / 2.0).collect();
            assert_eq!(values(&y), [want]);
        }
    }

    #[test]
    fn one_tensor_may_be_two_inputs_and_inputs_may_be_pending() {
        let d = device();
        let jit = Jit::new(|x: &[Tensor]| Ok(vec![x[0].sub(&x[1])?]));
        let x = vector(&[1.0, 5.0], &d);
        assert_eq!(values(&jit.call(&[&x, &x]).unwrap()), [[0.0, 0.0]]);
        assert_eq!(values(&jit.call(&[&x.mul(3.0).unwrap(), &x]).unwrap()), [[2.0, 10.0]]);
        assert_eq!(jit.traces(), 1);
    }

    #[test]
    fn such_functions_nest_and_are_batched() {
        let d = device();
        let inner = Jit::new(|x: &[Tensor]| Ok(vec![x[0].square()]));
        let outer = Jit::new(|x: &[Tensor]| inner.call(&[&x[0].add(1.0)?]));
        let x = vector(&[1.0, 2.0], &d);
        assert_eq!(values(&outer.call(&[&x]).unwrap()), [[4.0, 9.0]]);
        assert_eq!(inner.traces(), 0);
        let each = |x: &[Tensor]| Ok(inner.call(&[&x[0]])?.remove(0));
        let y = Tensor::vmap(each, &[&x], &[Some(0)], 0).unwrap();
        assert_eq!(y.to_vec::<f64>().unwrap(), [1.0, 4.0]);
    }

    #[test]
    fn asking_for_a_value_is_an_error_that_leaves_nothing() {
        let d = device();
        let strict = AtomicUsize::new(1);
        let jit = Jit::new(|x: &[Tensor]| match strict.load(Relaxed) {
            0 => Ok(vec![x[0].neg()]),
            _ => Ok(vec![x[0].mul(x[0].sum(..)?.item::<f64>()?)?]),
        });
        let x = vector(&[1.0], &d);
        let error = jit.call(&[&x]).unwrap_err().to_string();
        assert!(error.contains("jit"), "{error}");
        assert_eq!(jit.traces(), 0);
        strict.store(0, Relaxed);
        assert_eq!(values(&jit.call(&[&x]).unwrap()), [[-1.0]]);
    }

    #[test]
    fn inputs_are_not_held_on_to() {
        let d = device();
        let jit = Jit::new(|x: &[Tensor]| Ok(vec![x[0].sum(..)?]));
        let before = d.stats().live_bytes;
        for value in [1.0, 2.0] {
            let y = jit.call(&[&vector(&vec![value; 1 << 16], &d)]).unwrap();
            assert_eq!(values(&y), [[value * 65536.0]]);
        }
        assert!(d.stats().live_bytes < before + (8 << 16) / 2, "{}", d.stats().live_bytes);
    }

    #[test]
    fn the_kind_used_least_recently_goes_first() {
        let d = device();
        let calls = AtomicUsize::new(0);
        let jit = Jit::new(|x: &[Tensor]| {
            calls.fetch_add(1, Relaxed);
            Ok(vec![x[0].sum(..)?])
        });
        let call = |n: usize| {
            assert_eq!(values(&jit.call(&[&vector(&vec![1.0; n], &d)]).unwrap()), [[n as f64]]);
        };
        for n in 1..=MOST + 3 {
            call(n);
            call(1);
        }
        assert_eq!((jit.traces(), calls.load(Relaxed)), (MOST, MOST + 3));
        call(MOST);
        assert_eq!(calls.load(Relaxed), MOST + 3, "a late one is known");
        call(2);
        assert_eq!(calls.load(Relaxed), MOST + 4, "an early one is not");
        // Of few bytes there is one kind left, and its plan is made again as often as it must be.
        d.set_cache_limit(0);
        (1..40).for_each(call);
        assert_eq!(jit.traces(), 1);
    }

    #[test]
    fn plans_that_were_dropped_are_made_again() {
        let d = device();
        let jit = Jit::new(several);
        let inputs = [1.0, 2.0, 3.0].map(|x| vector(&[x, x / 2.0], &d));
        let inputs = [&inputs[0], &inputs[1], &inputs[2], &vector(&[], &d)];
        let expected = values(&jit.call(&inputs).unwrap());
        for _ in 0..3 {
            d.trim();
            assert_eq!((d.stats().plan_bytes, d.stats().program_bytes), (0, 0));
            let before = d.stats();
            assert_eq!(values(&jit.call(&inputs).unwrap()), expected);
            assert!(d.stats().since(&before).compiles > 0 && d.stats().plan_bytes > 0);
            let before = d.stats();
            assert_eq!(values(&jit.call(&inputs).unwrap()), expected);
            assert_eq!(d.stats().since(&before).compiles, 0);
        }
        assert_eq!(jit.traces(), 1);
    }
}
