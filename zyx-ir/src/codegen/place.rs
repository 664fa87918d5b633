//! Where an access goes, as every emitter takes it apart.

use crate::ir::{Kernel, Order, Value};

/// Buffer, index, and the conditions under which the access happens.
#[derive(Clone, Debug)]
pub struct Place {
    /// The buffer or allocation.
    pub buf: Value,
    /// The index without its guards.
    pub index: Value,
    /// The conditions of the guards.
    pub conds: Vec<Value>,
    /// Whether the access is atomic.
    pub relaxed: bool,
    /// Whether it waits for what others store.
    pub awaited: bool,
}

impl Place {
    /// Of a load, a store or an atomic.
    ///
    /// # Errors
    /// When it orders what other groups see, which no emitter spells.
    pub fn of(kernel: &Kernel, order: Order, buf: Value, index: Value) -> Result<Place, String> {
        if matches!(order, Order::Acquire | Order::Release | Order::AcquireRelease) {
            return Err("no memory ordering at device scope".into());
        }
        let (index, conds) = kernel.unguarded(index);
        Ok(Place {
            buf,
            index,
            conds,
            relaxed: order == Order::Relaxed,
            awaited: order == Order::AcquireSpin,
        })
    }
}
