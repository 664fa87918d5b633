//! Which line of a program an operation comes from, for [`explain`](crate::Tensor::explain) and traces.
//!
//! A tensor knows the call that made it, as errors do: public methods are `#[track_caller]`. Where calls cannot see their
//! caller (closures, trait objects, rules of gradients), whoever is about to call them says for whom it works
//! ([`attribute`]). The call itself is what counts if it is not within the library.
//!
//! Origins are no part of what tensors and graphs are compared by. They are kept in builds with debug assertions or the
//! feature `lines`; in others [`Origin`] is empty and nothing is left of this.

use std::panic::Location;

/// A line of the program.
pub(crate) type Place = &'static Location<'static>;

#[cfg(any(debug_assertions, feature = "lines"))]
pub(crate) use kept::{Attributed, Origin, is_within_library};
#[cfg(not(any(debug_assertions, feature = "lines")))]
pub(crate) use none::{Attributed, Origin, is_within_library};

/// Calls `f`, whose operations belong to the line `here`, as [`explain`](crate::Tensor::explain) tells them. For
/// libraries of layers, where calls cannot see their caller: through trait objects and in closures.
///
/// ```
/// use std::panic::Location;
/// use zyx::internals::attribute;
/// use zyx::Tensor;
///
/// /// Whatever `layers` are, what they do is told as done by the caller of this.
/// #[track_caller]
/// fn chain(layers: &[Box<dyn Fn(&Tensor) -> Tensor>], x: &Tensor) -> Tensor {
///     let here = Location::caller();
///     attribute(here, || layers.iter().fold(x.clone(), |x, layer| layer(&x)))
/// }
/// # let device = zyx::runtime().device("reference")?;
/// let y = chain(&[Box::new(Tensor::exp), Box::new(Tensor::neg)], &Tensor::new(0f32, &device)?);
/// assert_eq!(y.item::<f32>()?, -1.0);
/// # Ok::<(), zyx::Error>(())
/// ```
#[inline]
pub fn attribute<T>(here: Place, f: impl FnOnce() -> T) -> T {
    let _here = Attributed::to(here);
    f()
}

/// As [`attribute`], to the caller of the function that calls this, until what this gives is dropped. Unlike a closure
/// it leaves calls that see their caller as they are.
#[inline]
#[track_caller]
pub(crate) fn composed() -> Attributed {
    Attributed::to(Location::caller())
}

#[cfg(not(any(debug_assertions, feature = "lines")))]
mod none;

#[cfg(any(debug_assertions, feature = "lines"))]
mod kept;
