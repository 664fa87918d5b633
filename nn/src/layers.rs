//! Layers without parameters: [`Dropout`], [`Flatten`], pooling and activations.

use crate::{Forward, Init, Mode, Module, Path, Visitor};
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::{Pool2d, Result, Rng, Tensor};

/// In training, sets elements to zero with probability `p` and scales the others by
/// `1 / (1 - p)`; in evaluation does nothing.
#[derive(Clone, Debug, Module)]
pub struct Dropout {
    /// The probability of zero.
    pub p: f64,
    /// Train or eval.
    pub mode: Mode,
    /// Where masks are drawn from; clones share it.
    #[module(skip)]
    rng: Arc<Mutex<Rng>>,
}

impl Dropout {
    /// Dropout with a stream of its own, split off `init`.
    ///
    /// # Errors
    /// When `p` is not in `0 ..= 1`.
    #[track_caller]
    pub fn new(p: f64, init: &mut Init) -> Result<Dropout> {
        if !(0.0..=1.0).contains(&p) {
            return Err(Init::refuse("Dropout::new", format!("{p} is not a probability")));
        }
        Ok(Dropout { p, mode: Mode::default(), rng: Arc::new(Mutex::new(init.rng.split())) })
    }
}

impl Forward for Dropout {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if !self.mode.is_training() {
            return Ok(x.clone());
        }
        x.dropout(self.p, &mut self.rng.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// All axes but the first merged into one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flatten;

impl Module for Flatten {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for Flatten {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() == 1 { x.unsqueeze(1) } else { x.flatten_axes(1, -1) }
    }
}

/// The largest element of each window over the last two axes.
#[derive(Clone, Copy, Debug, Module)]
pub struct MaxPool2d(pub Pool2d);

impl Forward for MaxPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.max_pool2d(self.0)
    }
}

/// The mean of each window over the last two axes.
#[derive(Clone, Copy, Debug, Module)]
pub struct AvgPool2d(pub Pool2d);

impl Forward for AvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.avg_pool2d(self.0)
    }
}

macro_rules! activations {
    ($($(#[$doc:meta])* $name:ident $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name;

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Forward for $name {
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                Ok(x.$method())
            }
        }
    )*};
}

activations! {
    /// `max(x, 0)`.
    Relu relu;
    /// The Gaussian error linear unit in its tanh form.
    Gelu gelu;
    /// The Gaussian error linear unit by the error function.
    GeluExact gelu_exact;
    /// `x * sigmoid(x)`.
    Silu silu;
    /// `x * tanh(softplus(x))`.
    Mish mish;
    /// `1 / (1 + e^-x)`.
    Sigmoid sigmoid;
    /// Hyperbolic tangent.
    Tanh tanh;
    /// The self-normalising unit.
    Selu selu;
    /// `log(1 + e^x)`.
    Softplus softplus;
}

/// `x` where positive, else `slope * x`.
#[derive(Clone, Copy, Debug, Module)]
pub struct LeakyRelu {
    /// The slope below zero; PyTorch has 0.01.
    pub slope: f64,
}

impl Forward for LeakyRelu {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.leaky_relu(self.slope))
    }
}
