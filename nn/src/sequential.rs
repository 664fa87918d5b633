//! [`Sequential`]: modules one after the other.

use crate::{Forward, Module, Path, Visitor};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use zyx_core::{Error, Result, Tensor, attribute};

/// Modules of which each takes the result of the one before. Parameters are named by position,
/// `0.weight`. As with single layers, a clone shares all parameters, modes and random streams with the original.
///
/// ```
/// use zyx::nn::{Forward, Init, Linear, Module, Relu, Sequential};
/// use zyx::{DType, Tensor};
/// let device = zyx::device()?;
/// let init = &mut Init::new(0, &device);
/// let model = Sequential::new()
///     .then(Linear::new(4, 8, init)?)
///     .then(Relu)
///     .then(Linear::new(8, 2, init)?);
/// let y = model.forward(&Tensor::ones([5, 4], DType::F32, &device))?;
/// assert_eq!(y.shape().dims(), [5, 2]);
/// assert_eq!(model.named_parameters()[2].0, "2.weight");
/// // Errors name the module that refuses.
/// let error = model.forward(&Tensor::ones([5, 3], DType::F32, &device)).unwrap_err();
/// assert!(error.to_string().contains("in layer `0`: "), "{error}");
/// assert!(model.clone().parameters()[0].is_same(&model.parameters()[0]));
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Sequential(Vec<Arc<dyn Forward + Send + Sync>>);

impl Sequential {
    /// Of nothing yet: gives back what it gets.
    pub fn new() -> Sequential {
        Sequential::default()
    }

    /// With another module at the end.
    #[must_use]
    pub fn then(mut self, module: impl Forward + Send + Sync + 'static) -> Sequential {
        self.0.push(Arc::new(module));
        self
    }

    /// Number of modules.
    ///
    /// ```
    /// assert_eq!(zyx::nn::Sequential::new().then(zyx::nn::Relu).len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no module.
    ///
    /// ```
    /// assert!(zyx::nn::Sequential::new().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Module for Sequential {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.0.visit(path, visitor);
    }
}

impl Forward for Sequential {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        // Which line called is not seen through boxes.
        let here = Location::caller();
        let place = |error: Error, i: usize| error.outside_library(here).within(&i.to_string());
        attribute(here, || {
            let mut x = x.clone();
            for (i, module) in self.0.iter().enumerate() {
                x = module.forward(&x).map_err(|error| place(error, i))?;
            }
            Ok(x)
        })
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.named_parameters()).finish()
    }
}
