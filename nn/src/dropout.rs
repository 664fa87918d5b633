//! Dropout: random zeros in training, nothing in evaluation.
//!
//! Every layer draws from a [`RngStream`] of its own, split off the [`Init`] it was made with, so one
//! seed fixes all masks on every device. Streams are part of a module: a checkpoint that saves
//! them resumes with the masks that would have come.

use crate::{Forward, Init, Mode, Module, Path, Visitor};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zyx_core::{Result, Rng, Shape, Tensor};

/// A random generator inside a module. Clones are one stream.
///
/// ```
/// use zyx::nn::RngStream;
/// use zyx::Rng;
/// let stream = RngStream::new(Rng::seed(1));
/// let same = stream.clone();
/// let first = stream.lock().next_u64();
/// stream.set([Rng::seed(1).key()[0], Rng::seed(1).key()[1]], 0);
/// assert_eq!(same.lock().next_u64(), first);
/// ```
#[derive(Clone, Debug)]
pub struct RngStream(Arc<Mutex<Rng>>);

impl RngStream {
    /// A stream that continues this generator.
    pub fn new(rng: Rng) -> RngStream {
        RngStream(Arc::new(Mutex::new(rng)))
    }

    /// The generator, for this call alone.
    pub fn lock(&self) -> MutexGuard<'_, Rng> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Continues at a place that [`Rng::key`] and [`Rng::counter`] told.
    pub fn set(&self, key: [u32; 2], counter: u64) {
        *self.lock() = Rng::at(key, counter);
    }
}

impl Module for RngStream {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.stream(path.as_str(), self);
    }
}

macro_rules! dropouts {
    ($($(#[$doc:meta])* $name:ident |$s:ident, $x:ident, $rng:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            /// The probability of a drop.
            pub p: f64,
            /// Train or eval.
            pub mode: Mode,
            /// Where masks are drawn from; clones share it.
            pub stream: RngStream,
        }

        impl $name {
            /// Dropout with a stream of its own, split off `init`.
            ///
            /// # Errors
            /// When `p` is not in `0 ..= 1`.
            #[track_caller]
            pub fn new(p: f64, init: &mut Init) -> Result<$name> {
                if !(0.0..=1.0).contains(&p) {
                    let reason = format!("{p} is not a probability");
                    return Err(Init::refuse(concat!(stringify!($name), "::new"), reason));
                }
                let stream = RngStream::new(init.rng.split());
                Ok($name { p, mode: Mode::default(), stream })
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, $x: &Tensor) -> Result<Tensor> {
                if !self.mode.is_training() || self.p == 0.0 {
                    return Ok($x.clone());
                }
                let $s = self;
                let $rng = &mut *self.stream.lock();
                $body
            }
        }
    )*};
}

dropouts! {
    /// In training, sets elements to zero with probability `p` and scales the others by
    /// `1 / (1 - p)`; in evaluation does nothing.
    Dropout |s, x, rng| x.dropout(s.p, rng);
    /// As [`Dropout`], for whole channels of `[n, channels, length]` or `[channels, length]`.
    Dropout1d |s, x, rng| channels("Dropout1d", x, 1, s.p, rng);
    /// As [`Dropout`], for whole channels of `[n, channels, height, width]` or without `n`.
    Dropout2d |s, x, rng| channels("Dropout2d", x, 2, s.p, rng);
    /// As [`Dropout`], for whole channels of `[n, channels, depth, height, width]` or without `n`.
    Dropout3d |s, x, rng| channels("Dropout3d", x, 3, s.p, rng);
    /// Dropout that keeps mean and variance of what [`Selu`](crate::Selu) gives: elements become
    /// its lower limit instead of zero, and all are scaled and moved (Klambauer et al. 2017).
    AlphaDropout |s, x, rng| {
        let lowest = -1.758_099_340_847_376_6;
        let kept = 1.0 - s.p;
        // With nothing kept there is no variance to keep.
        if kept == 0.0 {
            return x.mul(0.0);
        }
        let scale = 1.0 / (kept * (1.0 + s.p * lowest * lowest)).sqrt();
        let keep = Tensor::bernoulli(kept, x.shape(), rng, x.device())?;
        let mixed = keep.where_(x, x.zeros_like().add(lowest)?)?;
        mixed.mul(scale)?.add(-scale * lowest * s.p)
    };
}

/// Dropout of channels followed by `spatial` axes.
#[track_caller]
fn channels(op: &'static str, x: &Tensor, spatial: usize, p: f64, rng: &mut Rng) -> Result<Tensor> {
    let Some(lead) = x.rank().checked_sub(spatial).filter(|lead| [1, 2].contains(lead)) else {
        let reason = format!("needs channels and {spatial} axes, not shape {}", x.shape());
        return Err(Init::refuse(op, reason));
    };
    let shape = Shape::from([&x.shape()[..lead], &vec![1; spatial][..]].concat());
    x.mul(Tensor::ones(shape, x.dtype(), x.device()).dropout(p, rng)?)
}
