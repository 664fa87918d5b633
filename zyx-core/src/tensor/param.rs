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
use crate::error::{Error, Named, Result};
use crate::runtime::Device;
use crate::schedule;
use crate::shape::Shape;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError, Weak};

/// A shared place for a tensor that training replaces. Clones are the same place.
///
/// ```
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let weight = Param::new(Tensor::new([1f32, 2.0], &device)?);
/// let tied = weight.clone();
/// weight.set(&(weight.tensor() * 10.0))?;
/// assert_eq!(tied.tensor().to_vec::<f32>()?, [10.0, 20.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone)]
pub struct Param(Arc<Place>);

#[derive(Debug)]
struct Place {
    value: RwLock<Tensor>,
    /// How often the value was replaced; raised while `value` is locked.
    version: AtomicU64,
    trainable: AtomicBool,
    /// Made as state, whatever is frozen and unfrozen later.
    state: bool,
    id: u32,
    /// The place that stands for this one; it is never tied itself.
    tied: RwLock<Option<Tie>>,
    /// Held by each place that is tied to this one.
    followed: Arc<()>,
    name: RwLock<Option<Arc<str>>>,
}

/// A parameter that is held elsewhere.
#[derive(Debug)]
pub(crate) struct WeakParam(Weak<Place>);

impl WeakParam {
    pub(crate) fn upgrade(&self) -> Option<Param> {
        self.0.upgrade().map(Param)
    }
}

#[derive(Debug)]
struct Tie {
    to: Param,
    _followed: Arc<()>,
}

/// The id of the next parameter. 0 is that of none; when ids are used up, all have the last.
static NEXT_ID: AtomicU32 = AtomicU32::new(1);

impl Param {
    /// A trainable parameter with this value. (Integers have no gradients: they are state.)
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert!(weight.is_trainable() && weight.tensor().is_tracked());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn new(value: Tensor) -> Param {
        let trainable = value.dtype().is_float();
        Param::of(&value, trainable)
    }

    /// A parameter that belongs to a model and is saved with it, but is not trained.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let mean = Param::state(Tensor::zeros([2], DType::F32, &device));
    /// assert!(!mean.is_trainable());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn state(value: Tensor) -> Param {
        Param::of(&value, false)
    }

    fn of(value: &Tensor, trainable: bool) -> Param {
        let next = NEXT_ID.fetch_update(Relaxed, Relaxed, |id| id.checked_add(1));
        let id = next.unwrap_or(u32::MAX);
        Param(Arc::new(Place {
            value: RwLock::new(leaf(value, trainable, id)),
            version: AtomicU64::new(0),
            trainable: AtomicBool::new(trainable),
            state: !trainable,
            id,
            tied: RwLock::new(None),
            followed: Arc::new(()),
            name: RwLock::default(),
        }))
    }

    /// The place that stands for this one.
    fn root(&self) -> Param {
        let tied = self.0.tied.read().unwrap_or_else(PoisonError::into_inner);
        tied.as_ref().map_or_else(|| self.clone(), |tie| tie.to.clone())
    }

    fn write(&self) -> RwLockWriteGuard<'_, Tensor> {
        self.0.value.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this parameter the same place as another, as layers whose weights are tied share one: whatever
    /// is read, set or trained from now on is the other's. Its own value is dropped.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let table = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// let output = Param::new(Tensor::ones([2], DType::F32, &device));
    /// output.tie(&table)?;
    /// table.set(&Tensor::full([2], 5f32, &device))?;
    /// assert_eq!(output.tensor().to_vec::<f32>()?, [5.0, 5.0]);
    /// assert!(output.is_same(&table));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes differ, or others are tied to this parameter.
    #[track_caller]
    pub fn tie(&self, other: &Param) -> Result<()> {
        let to = other.root();
        if self.is_same(&to) {
            return Ok(());
        }
        let (mine, its) = (self.tensor(), to.tensor());
        if !mine.shape().same(its.shape()) {
            let reason = "tied parameters have one shape".to_owned();
            return Err(Tensor::shape_error("tie", &[&mine, &its], reason));
        }
        if Arc::strong_count(&self.0.followed) > 1 {
            let reason = "others are tied to this parameter: tie those to the new one first";
            return Err(Tensor::argument_error("tie", reason.to_owned()));
        }
        let tie = Tie { _followed: to.0.followed.clone(), to };
        let before = self.0.tied.write().unwrap_or_else(PoisonError::into_inner).replace(tie);
        drop(before);
        // Its memory would be kept for nothing.
        let nothing = Tensor::zeros(mine.shape().clone(), mine.dtype(), mine.device());
        let old = std::mem::replace(&mut *self.write(), nothing);
        drop(old);
        Ok(())
    }

    /// A number that no other place has, by which [`Tensor::param_gradients`] names parameters.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let a = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// let b = Param::new(a.tensor());
    /// assert!(a.id() == a.clone().id() && a.id() != b.id());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn id(&self) -> u32 {
        self.root().0.id
    }

    /// The value now: a tracked leaf if trainable. Equal calls give the same tensor until the
    /// next [`Param::set`].
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::ones([2], DType::F32, &device));
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn tensor(&self) -> Tensor {
        let place = self.root();
        place.0.value.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How often the value was replaced, by [`Param::set`] and by whatever else replaces it: views of the value
    /// are out of date when it has risen.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert_eq!(weight.version(), 0);
    /// weight.set(&Tensor::ones([2], DType::F32, &device))?;
    /// assert_eq!(weight.version(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn version(&self) -> u64 {
        self.root().0.version.load(Relaxed)
    }

    /// Replaces the value. History does not come along: the new value is a leaf, pending if the
    /// tensor is.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set(&Tensor::ones([2], DType::F32, &device))?;
    /// assert!(weight.set(&Tensor::ones([3], DType::F32, &device)).is_err());
    /// assert_eq!(weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When shape, dtype or device differ from the present value's.
    #[track_caller]
    pub fn set(&self, value: &Tensor) -> Result<()> {
        let root = self.root();
        let mut place = root.write();
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
        let old = std::mem::replace(&mut *place, leaf(value, root.is_trainable(), root.0.id));
        root.0.version.fetch_add(1, Relaxed);
        // What the old value owns is freed after the lock.
        drop(place);
        drop(old);
        Ok(())
    }

    /// Gives it another dtype and device, the values converted. Optimizers are made afterwards:
    /// what they keep for a parameter has its dtype.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::ones([2], DType::F32, &device));
    /// weight.convert(DType::F16, &device)?;
    /// assert_eq!((weight.dtype(), weight.is_trainable()), (DType::F16, true));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a trainable parameter would be of integers, or the device fails.
    #[track_caller]
    pub fn convert(&self, dtype: DType, device: &Device) -> Result<()> {
        let root = self.root();
        let mut place = root.write();
        if root.is_trainable() && !dtype.is_float() {
            let reason = format!("{dtype} has no gradients: the parameter would be state");
            return Err(Tensor::dtype_error("convert", &[&place], reason));
        }
        let value = place.cast(dtype).to_device(device)?;
        if device != place.device() {
            // Else the memory on the old device stays until somebody asks for the value.
            value.realize().named("convert")?;
        }
        *place = leaf(&value, root.is_trainable(), root.0.id);
        root.0.version.fetch_add(1, Relaxed);
        drop(place);
        if self.name().is_some() {
            schedule::note_name(device, self);
        }
        Ok(())
    }

    /// Whether gradients reach it and optimizers change it.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let count = Param::new(Tensor::zeros([], DType::I64, &device));
    /// assert!(!count.is_trainable(), "integers have no gradients");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_trainable(&self) -> bool {
        self.root().0.trainable.load(Relaxed)
    }

    /// Makes it trainable, or state. A parameter of integers stays state.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set_trainable(false);
    /// assert!(!weight.tensor().is_tracked());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_trainable(&self, trainable: bool) {
        let root = self.root();
        let mut place = root.write();
        let trainable = trainable && place.dtype().is_float();
        root.0.trainable.store(trainable, Relaxed);
        let value = leaf(&place, trainable, root.0.id);
        *place = value;
        root.0.version.fetch_add(1, Relaxed);
    }

    /// Whether it was made as state (running statistics, counts) and not as something to train: a
    /// frozen parameter is not.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// weight.set_trainable(false);
    /// assert!(!weight.is_state());
    /// assert!(Param::state(Tensor::zeros([2], DType::F32, &device)).is_state());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_state(&self) -> bool {
        self.root().0.state
    }

    /// The name that it has in its model, as `fc1.weight`, if anybody has given it one: errors of layers and
    /// [`explain`](Tensor::explain) name it so.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::ones([2], DType::F32, &device));
    /// weight.set_name("fc1.weight");
    /// assert_eq!(weight.name().as_deref(), Some("fc1.weight"));
    /// // A part of the model is walked: the name stays that in the whole.
    /// weight.set_name("weight");
    /// assert_eq!(weight.name().as_deref(), Some("fc1.weight"));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn name(&self) -> Option<Arc<str>> {
        self.0.name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives it a name, unless it has a longer one that ends with a dot and this one. Methods of modules that
    /// walk over all parameters, as `parameters`, `load`, `save` and `eval`, do so.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let bias = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// bias.set_name("fc1.bias");
    /// assert_eq!(bias.name().as_deref(), Some("fc1.bias"));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_name(&self, name: &str) {
        let mut place = self.0.name.write().unwrap_or_else(PoisonError::into_inner);
        let whole = place.as_deref().and_then(|known| known.strip_suffix(name));
        if whole.is_some_and(|start| start.is_empty() || start.ends_with('.')) {
            return;
        }
        *place = Some(name.into());
        drop(place);
        schedule::note_name(self.tensor().device(), self);
    }

    /// The same error, which says in which layer of its model it was made: that whose parameter this is, by
    /// [`Param::name`] without the last part. For layers, whose callers need not name them then.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::ones([3, 2], DType::F32, &device));
    /// weight.set_name("encoder.fc1.weight");
    /// let error = weight.tensor().matmul(&weight.tensor()).unwrap_err();
    /// let error = weight.within_layer(error).to_string();
    /// assert!(error.starts_with("matmul: in layer `encoder.fc1`: "), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn within_layer(&self, error: Error) -> Error {
        let name = self.name();
        match name.as_deref().and_then(|name| name.rsplit_once('.')) {
            Some((layer, _)) => error.within_layer(layer),
            None => error,
        }
    }

    /// The value and the name, unless the value is being replaced, perhaps by this thread.
    pub(crate) fn named_value(&self) -> Option<(Tensor, Arc<str>)> {
        let root = self.root();
        let value = match root.0.value.try_read() {
            Ok(value) => value.clone(),
            Err(TryLockError::Poisoned(value)) => value.into_inner().clone(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some((value, self.name()?))
    }

    /// Equal for clones alone.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.root().0) as usize
    }

    pub(crate) fn downgrade(&self) -> WeakParam {
        WeakParam(Arc::downgrade(&self.0))
    }

    /// The extents of the axes.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2, 3], DType::F32, &device));
    /// assert_eq!(weight.shape().dims(), [2, 3]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn shape(&self) -> Shape {
        self.tensor().shape().clone()
    }

    /// The type of the elements.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::BF16, &device));
    /// assert_eq!(weight.dtype(), DType::BF16);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn dtype(&self) -> DType {
        self.tensor().dtype()
    }

    /// The device it is stored on.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert_eq!(weight.device(), device);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.tensor().device().clone()
    }

    /// Whether both are the same place (tied), whatever the values are.
    ///
    /// ```
    /// # use zyx::{DType, Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let weight = Param::new(Tensor::zeros([2], DType::F32, &device));
    /// assert!(weight.is_same(&weight.clone()));
    /// assert!(!weight.is_same(&Param::new(weight.tensor())));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn is_same(&self, other: &Param) -> bool {
        Arc::ptr_eq(&self.root().0, &other.root().0)
    }
}

#[track_caller]
fn leaf(value: &Tensor, trainable: bool, id: u32) -> Tensor {
    if trainable { value.tracked_for(id) } else { value.detach() }
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
    fn a_pending_parameter_with_a_name_moves() {
        let [from, to] = [0, 1].map(|_| Runtime::default().device("reference").unwrap());
        let data = Tensor::new([1f32, 2.0], &from).unwrap();
        let weight = Param::new(data.clone());
        weight.set_name("fc1.weight");
        weight.set(&(weight.tensor() + 1.0)).unwrap();
        // While it moves, its value is computed, of a leaf that may have a name.
        weight.convert(DType::F32, &to).unwrap();
        assert_eq!(weight.tensor().to_vec::<f32>().unwrap(), [2.0, 3.0]);
        // Its name is known there, in builds that keep names.
        let told = weight.tensor().exp().explain().unwrap().to_string();
        let has_name = told.contains("reads fc1.weight f32 [2]");
        assert_eq!(has_name, crate::origin::Origin::KEPT, "{told}");
    }

    #[test]
    fn a_tied_place_is_the_other() {
        let device = Runtime::default().device("reference").unwrap();
        let of = |x: f32| Param::new(Tensor::full([2], x, &device));
        let (a, b, c, d) = (of(1.0), of(2.0), of(3.0), of(4.0));
        a.tie(&b).unwrap();
        b.tie(&a).unwrap();
        c.tie(&a).unwrap();
        assert!(a.is_same(&b) && c.is_same(&b) && a.id() == b.id());
        a.set(&Tensor::full([2], 7f32, &device)).unwrap();
        assert_eq!(c.tensor().to_vec::<f32>().unwrap(), [7.0, 7.0]);
        assert!(b.tie(&d).is_err(), "others follow it");
        assert!(a.tie(&Param::new(Tensor::zeros([3], DType::F32, &device))).is_err());
        a.tie(&d).unwrap();
        assert_eq!((a.id(), c.id()), (d.id(), b.id()));
        drop(c);
        b.tie(&d).unwrap();
        b.set_trainable(false);
        assert!(!d.is_trainable() && !a.tensor().is_tracked());
    }

    #[test]
    fn gradients_of_parameters_are_found_by_id() {
        let device = Runtime::default().device("reference").unwrap();
        let of = |x: f32| Param::new(Tensor::full([], x, &device));
        let (a, b, frozen) = (of(2.0), of(5.0), of(7.0));
        frozen.set_trainable(false);
        let before = a.tensor();
        a.set(&Tensor::full([], 3f32, &device)).unwrap();
        // Both values of `a`, one of them used twice.
        let loss = before.square() * 10.0 + a.tensor() * b.tensor() + a.tensor() * frozen.tensor();
        drop(before);
        let mut found = loss.param_gradients(&loss.ones_like()).unwrap();
        found.sort_by_key(|(id, _)| *id);
        let values = found.iter().map(|(id, dx)| (*id, dx.item::<f32>().unwrap()));
        assert_eq!(values.collect::<Vec<_>>(), [(a.id(), 40.0 + 12.0), (b.id(), 3.0)]);
        let none = frozen.tensor().square();
        assert!(none.param_gradients(&none.ones_like()).is_err());
        assert!(loss.detach().param_gradients(&loss.ones_like()).is_err());
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
