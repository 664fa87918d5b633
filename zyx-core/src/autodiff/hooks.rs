//! Hooks: functions that see the gradient of a tensor on its way to others, and may replace it.
//!
//! A hook belongs to a tensor, or to a parameter with every value that it takes. The walk of a gradient looks for the
//! hooks of each tensor that it passes; without any hook that is one read of a counter.

use crate::error::Result;
use crate::tensor::{Tensor, WeakTensor};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

type Function = dyn Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync;

/// The tensor or the parameter that a hook belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Tensor(usize),
    Param(u32),
}

impl Owner {
    fn of(tensor: &Tensor) -> Owner {
        match tensor.param_id() {
            // The last id is that of several parameters.
            0 | u32::MAX => Owner::Tensor(tensor.id()),
            id => Owner::Param(id),
        }
    }
}

struct Hook {
    /// Keeps the address of a tensor from being used again.
    tensor: Option<WeakTensor>,
    is_last: bool,
    number: u64,
    function: Arc<Function>,
}

type Hooks = FxHashMap<Owner, Vec<Hook>>;

static HOOKS: LazyLock<Mutex<Hooks>> = LazyLock::new(Mutex::default);
/// How many tensors and parameters have hooks.
static OWNERS: AtomicUsize = AtomicUsize::new(0);
static NUMBER: AtomicU64 = AtomicU64::new(0);

fn lock() -> MutexGuard<'static, Hooks> {
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a registered hook away again.
#[derive(Clone, Copy, Debug)]
pub struct GradientHook {
    owner: Owner,
    number: u64,
}

impl GradientHook {
    /// Removes the hook.
    pub fn remove(self) {
        let mut hooks = lock();
        let Some(own) = hooks.get_mut(&self.owner) else { return };
        let place = own.iter().position(|hook| hook.number == self.number);
        let removed = place.map(|place| own.remove(place));
        if own.is_empty() {
            hooks.remove(&self.owner);
        }
        OWNERS.store(hooks.len(), Relaxed);
        // It is dropped without the lock, since that may run code of users.
        drop(hooks);
        drop(removed);
    }
}

/// Calls a function with each gradient of a tensor that is computed from now on; a result takes the gradient's place.
/// Hooks run in the order of registration, those with `is_last` after the others. The hooks of a tensor end with it, those
/// of a parameter when they are removed.
pub fn register(
    tensor: &Tensor,
    is_last: bool,
    function: impl Fn(&Tensor) -> Result<Option<Tensor>> + Send + Sync + 'static,
) -> GradientHook {
    let owner = Owner::of(tensor);
    let number = NUMBER.fetch_add(1, Relaxed);
    let tensor = matches!(owner, Owner::Tensor(_)).then(|| tensor.downgrade());
    let hook = Hook { tensor, is_last, number, function: Arc::new(function) };
    let mut hooks = lock();
    // Those of tensors that are gone leave before the table would have to grow.
    let mut gone = Vec::new();
    if hooks.len() == hooks.capacity() {
        let is_gone = |hook: &Hook| hook.tensor.as_ref().is_some_and(|tensor| !tensor.is_alive());
        gone.extend(hooks.extract_if(|_, own| own.iter().all(is_gone)));
    }
    hooks.entry(owner).or_default().push(hook);
    OWNERS.store(hooks.len(), Relaxed);
    drop(hooks);
    drop(gone);
    GradientHook { owner, number }
}

/// The gradient of a tensor after its hooks.
pub(super) fn apply(tensor: &Tensor, gradient: Tensor) -> Result<Tensor> {
    if OWNERS.load(Relaxed) == 0 {
        return Ok(gradient);
    }
    let owner = Owner::of(tensor);
    // The functions are called without the lock.
    let mut found: Vec<(bool, Arc<Function>)> = {
        let hooks = lock();
        let own = hooks.get(&owner).into_iter().flatten();
        own.map(|hook| (hook.is_last, hook.function.clone())).collect()
    };
    found.sort_by_key(|hook| hook.0);
    let mut gradient = gradient;
    for (_, function) in found {
        let Some(new) = function(&gradient)? else { continue };
        if !new.shape().same(gradient.shape())
            || new.dtype() != gradient.dtype()
            || new.device() != gradient.device()
        {
            let reason = "a hook must keep shape, dtype and device of the gradient".to_owned();
            return Err(Tensor::argument_error("gradient hook", reason));
        }
        gradient = new;
    }
    Ok(gradient)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Param, Runtime};

    #[test]
    fn hooks_see_and_replace_gradients() -> Result<()> {
        let device = Runtime::default().device("reference")?;
        let w = Param::new(Tensor::new([1f32, 2.0], &device)?);
        let y = w.tensor().mul(3.0)?;
        // The hook comes after the use.
        let loss = y.square().sum(..)?;
        let doubled = register(&y, false, |dy| Ok(Some(dy.mul(2.0)?)));
        let of_param = register(&w.tensor(), false, |dw| Ok(Some(dw.add(1.0)?)));
        let gradient = || -> Result<Vec<f32>> {
            loss.param_gradients(&loss.ones_like())?.remove(0).1.to_vec()
        };
        assert_eq!(gradient()?, [37.0, 73.0]);
        // A parameter keeps its hooks when its value is replaced.
        w.set(&Tensor::new([0f32, 0.0], &device)?)?;
        let dw = w.tensor().sum(..)?.grad(&[&w.tensor()])?.remove(0).expect("it depends on it");
        assert_eq!(dw.to_vec::<f32>()?, [2.0, 2.0]);
        doubled.remove();
        of_param.remove();
        assert_eq!(gradient()?, [18.0, 36.0]);
        let _wrong = register(&y, false, |dy| Ok(Some(dy.sum(..)?)));
        assert!(gradient().is_err());
        Ok(())
    }
}
