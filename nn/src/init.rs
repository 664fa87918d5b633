//! Initial values of parameters.
//!
//! One [`Init`] says where a model's parameters live, in which dtype, and from which random
//! stream they are drawn; layers take it one after the other, so one seed fixes a whole model on
//! every device.

use zyx_core::{DType, Device, Error, Result, Rng, Shape, Tensor};

/// The random stream, device and dtype that new layers take.
///
/// ```
/// use nn::{Init, Linear};
/// use zyx_core::{DType, Runtime};
/// let device = Runtime::default().device("reference")?;
/// let mut init = Init::new(42, &device);
/// let layer = Linear::new(3, 2, &mut init)?;
/// init.dtype = DType::BF16;
/// let half = Linear::new(3, 2, &mut init)?;
/// assert_eq!(half.weight.dtype(), DType::BF16);
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Init {
    /// Where random values are drawn from.
    pub rng: Rng,
    /// Where parameters are stored.
    pub device: Device,
    /// What parameters consist of: a float.
    pub dtype: DType,
}

impl Init {
    /// Parameters of dtype `f32` on `device`, from the stream `seed`.
    pub fn new(seed: u64, device: &Device) -> Init {
        Init { rng: Rng::seed(seed), device: device.clone(), dtype: DType::F32 }
    }

    /// Uniform on `[-bound, bound)`.
    ///
    /// # Errors
    /// When the bound is not finite, the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn uniform(&mut self, shape: impl Into<Shape>, bound: f64) -> Result<Tensor> {
        let bound = bound.abs();
        let x = Tensor::rand_range(-bound, bound, shape, self.dtype, &mut self.rng, &self.device)?;
        stored(x)
    }

    /// Normal with mean 0 and standard deviation `std`.
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn normal(&mut self, shape: impl Into<Shape>, std: f64) -> Result<Tensor> {
        let x = Tensor::randn(shape, self.dtype, &mut self.rng, &self.device)?;
        stored(x.mul(std)?)
    }

    /// What linear layers and convolutions start with in PyTorch: uniform with the bound
    /// `1 / sqrt(fan_in)`, which is He's initialisation (2015) for leaky ReLUs of slope sqrt(5).
    ///
    /// # Errors
    /// As [`Init::uniform`].
    #[track_caller]
    pub fn fan_in_uniform(&mut self, shape: impl Into<Shape>, fan_in: usize) -> Result<Tensor> {
        self.uniform(shape, 1.0 / (fan_in.max(1) as f64).sqrt())
    }

    /// Every element equal to `x`.
    ///
    /// # Errors
    /// When the device fails.
    #[track_caller]
    pub fn full(&self, shape: impl Into<Shape>, x: f64) -> Result<Tensor> {
        stored(Tensor::zeros(shape, self.dtype, &self.device).add(x)?)
    }

    /// An error about an argument of a layer's constructor, at the caller.
    #[track_caller]
    pub(crate) fn refuse(op: &'static str, reason: String) -> Error {
        Error::Argument { op, reason, location: std::panic::Location::caller() }
    }
}

/// Computed now, so that the first training step is like all others.
#[track_caller]
fn stored(x: Tensor) -> Result<Tensor> {
    x.realize()?;
    Ok(x)
}
