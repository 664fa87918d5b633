//! Parameters: named places whose tensor changes during training.
//!
//! Tensors never change; what training changes is which tensor stands for a weight. A [`Param`] is
//! such a place, shared by all its clones: the layer that reads it, the optimizer that replaces
//! its value, a second layer whose weight is tied to it. That is why models are used by `&self`
//! and an optimizer needs no borrow of the model. It lives in the core because layers and
//! optimizers both know it and must not know each other.
//!
//! A *trainable* parameter is a tracked leaf, so gradients reach it; any other is *state* that
//! belongs to a model (running statistics, frozen weights). Reading takes a lock for one pointer
//! copy. Two threads that train one model at once see each other's values, whole ones always.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::runtime::Device;
use crate::shape::Shape;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// A shared place for a tensor that training replaces. Clones are the same place.
///
/// ```
/// use zyx_core::{Param, Runtime, Tensor};
/// let device = Runtime::default().device("reference")?;
/// let weight = Param::new(Tensor::new([1f32, 2.0], &device)?);
/// let tied = weight.clone();
/// weight.set(&(weight.tensor() * 10.0))?;
/// assert_eq!(tied.tensor().to_vec::<f32>()?, [10.0, 20.0]);
/// # Ok::<(), zyx_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Param(Arc<Place>);

struct Place {
    value: RwLock<Tensor>,
    trainable: AtomicBool,
    /// Made as state, whatever is frozen and unfrozen later.
    state: bool,
}

impl Param {
    /// A trainable parameter with this value. (Integers have no gradients: they are state.)
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert!(weight.is_trainable() && weight.tensor().is_tracked());
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn new(value: Tensor) -> Param {
        let trainable = value.dtype().is_float();
        Param::of(&value, trainable)
    }

    /// A parameter that belongs to a model and is saved with it, but is not trained.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let mean = Param::state(Tensor::zeros([2], DType::F32, &device));
    /// assert!(!mean.is_trainable());
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn state(value: Tensor) -> Param {
        Param::of(&value, false)
    }

    fn of(value: &Tensor, trainable: bool) -> Param {
        let value = RwLock::new(leaf(value, trainable));
        let state = !trainable;
        Param(Arc::new(Place { value, trainable: AtomicBool::new(trainable), state }))
    }

    /// The value now: a tracked leaf if trainable. Equal calls give the same tensor until the
    /// next [`Param::set`].
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::ones([2], DType::F32, &device));
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        self.0.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the value. History does not come along: the new value is a leaf, pending if the
    /// tensor is.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set(&Tensor::ones([2], DType::F32, &device))?;
    /// assert!(weight.set(&Tensor::ones([3], DType::F32, &device)).is_err());
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shape, dtype or device differ from the present value's.
    #[track_caller]
    pub fn set(&self, value: &Tensor) -> Result<()> {
        let mut place = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        if !value.shape().same(place.shape()) {
            let reason = "a parameter keeps its shape".to_owned();
            return Err(Tensor::shape_error("set", &[&place, value], reason));
        }
        if value.dtype() != place.dtype() {
            let reason = "a parameter keeps its dtype".to_owned();
            return Err(Tensor::dtype_error("set", &[&place, value], reason));
        }
        if value.device() != place.device() {
            let reason = format!("the parameter is on {}, not {}", place.device(), value.device());
            return Err(Tensor::argument_error("set", reason));
        }
        let old = std::mem::replace(&mut *place, leaf(value, self.is_trainable()));
        // What the old value owns is freed after the lock.
        drop(place);
        drop(old);
        Ok(())
    }

    /// Gives it another dtype and device, the values converted. Optimizers are made afterwards:
    /// what they keep for a parameter has its dtype.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::ones([2], DType::F32, &device));
    /// weight.convert(DType::F16, &device)?;
    /// assert_eq!((weight.dtype(), weight.is_trainable()), (DType::F16, true));
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a trainable parameter would be of integers, or the device fails.
    #[track_caller]
    pub fn convert(&self, dtype: DType, device: &Device) -> Result<()> {
        let mut place = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        if self.is_trainable() && !dtype.is_float() {
            let reason = format!("{dtype} has no gradients: the parameter would be state");
            return Err(Tensor::dtype_error("convert", &[&place], reason));
        }
        let value = place.cast(dtype).to_device(device)?;
        if device != place.device() {
            // Else the memory on the old device stays until somebody asks for the value.
            value.realize().named("convert")?;
        }
        *place = leaf(&value, self.is_trainable());
        Ok(())
    }

    /// Whether gradients reach it and optimizers change it.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let count = Param::new(Tensor::zeros([], DType::I64, &device));
    /// assert!(!count.is_trainable(), "integers have no gradients");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn is_trainable(&self) -> bool {
        self.0.trainable.load(Relaxed)
    }

    /// Makes it trainable, or state. A parameter of integers stays state.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set_trainable(false);
    /// assert!(!weight.tensor().is_tracked());
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn set_trainable(&self, trainable: bool) {
        let mut place = self.0.value.write().unwrap_or_else(PoisonError::into_inner);
        let trainable = trainable && place.dtype().is_float();
        self.0.trainable.store(trainable, Relaxed);
        let value = leaf(&place, trainable);
        *place = value;
    }

    /// Whether it was made as state (running statistics, counts) and not as something to train: a
    /// frozen parameter is not.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set_trainable(false);
    /// assert!(!weight.is_state());
    /// assert!(Param::state(Tensor::zeros([2], DType::F32, &device)).is_state());
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn is_state(&self) -> bool {
        self.0.state
    }

    /// The extents of the axes.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2, 3], DType::F32, &device));
    /// assert_eq!(weight.shape().dims(), [2, 3]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.tensor().shape().clone()
    }

    /// The type of the elements.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::BF16, &device));
    /// assert_eq!(weight.dtype(), DType::BF16);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.tensor().dtype()
    }

    /// The device it is stored on.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert_eq!(weight.device(), device);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.tensor().device().clone()
    }

    /// Whether both are the same place (tied), whatever the values are.
    ///
    /// ```
    /// # use zyx_core::{DType, Param, Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert!(weight.is_same(&weight.clone()));
    /// assert!(!weight.is_same(&Param::new(weight.tensor())));
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    pub fn is_same(&self, other: &Param) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[track_caller]
fn leaf(value: &Tensor, trainable: bool) -> Tensor {
    if trainable { value.tracked() } else { value.detach() }
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.tensor();
        let kind = if self.is_trainable() { "Param" } else { "State" };
        write!(f, "{kind}({} {})", value.dtype(), value.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Runtime;

    #[test]
    fn a_place_keeps_its_kind() {
        let device = Runtime::default().device("reference").unwrap();
        let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
        assert!(weight.tensor().is_tracked());
        assert!(weight.set(&Tensor::zeros([3], DType::F32, &device)).is_err());
        assert!(weight.set(&Tensor::zeros([2], DType::F64, &device)).is_err());
        let other = Runtime::default().device("reference").unwrap();
        assert!(weight.set(&Tensor::zeros([2], DType::F32, &other)).is_err());
        weight.set_trainable(false);
        assert!(!weight.tensor().is_tracked());
        assert_eq!(format!("{weight:?}"), "State(f32 [2])");
        let count = Param::new(Tensor::zeros([], DType::I64, &device));
        count.set_trainable(true);
        assert!(!count.is_trainable());
    }

    #[test]
    fn replaced_values_are_freed() {
        let device = Runtime::default().device("reference").unwrap();
        let weight = Param::new(Tensor::zeros([1000], DType::F32, &device));
        weight.tensor().realize().unwrap();
        let before = device.stats().live_bytes;
        for _ in 0..20 {
            weight.set(&(weight.tensor() + 1.0)).unwrap();
            weight.tensor().realize().unwrap();
        }
        assert_eq!(device.stats().live_bytes, before);
        assert_eq!(weight.tensor().to_vec::<f32>().unwrap()[0], 20.0);
    }
}
