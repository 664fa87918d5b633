//! Scopes: calls of functions that are traced, in which tensors have no value.
//!
//! A write within a scope to a storage that was there before is noted, so that the tracer can undo it and make what
//! was written a result of the function. Storages and cells have the number of the scope they were made in; outside of
//! all scopes it is 0. A scope belongs to a thread.

use crate::create::refuse;
use crate::error::caught;
use crate::leaf::Snapshot;
use crate::storage::{Saved, Storage};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use zyx::Tensor;

/// A storage that was written to, and its value before.
pub(crate) type Note = (Arc<Storage>, Saved);

static LAST: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    /// The notes of the scopes of this thread, the innermost last.
    static NOTES: RefCell<Vec<Vec<Note>>> = const { RefCell::new(Vec::new()) };
}

/// The number of the scope this thread is in.
pub(crate) fn current() -> u64 {
    CURRENT.get()
}

/// A scope, until this is dropped. What was written within is undone then.
pub(crate) struct Scope {
    op: &'static str,
    before: u64,
    /// Layers of Rust replace the values of parameters without a note.
    leaves: Vec<Snapshot>,
}

impl Scope {
    pub(crate) fn enter(op: &'static str) -> Scope {
        let leaves = Snapshot::all();
        NOTES.with_borrow_mut(|notes| notes.push(Vec::new()));
        Scope { op, before: CURRENT.replace(LAST.fetch_add(1, Relaxed) + 1), leaves }
    }

    /// The values now of storages that were there before and have been written to; they are undone.
    pub(crate) fn undo(self) -> zyx::Result<Vec<(Note, Tensor)>> {
        let mut grads = self.leaves.iter().map(Snapshot::restore_grad);
        if grads.by_ref().fold(false, |any, one| any | one) {
            let text = "a traced function collects gradients in `.grad`, which would have no value: take them by \
                        zyx.grad or zyx.value_and_grad";
            return Err(refuse(self.op, text.to_owned()));
        }
        self.note_leaves();
        let notes = NOTES.with_borrow(|notes| notes.last().cloned()).unwrap_or_default();
        notes.into_iter().map(|note| Ok((note.clone(), note.0.value()?))).collect()
    }

    fn note_leaves(&self) {
        for (storage, value) in self.leaves.iter().filter_map(Snapshot::replaced) {
            NOTES.with_borrow_mut(|notes| {
                let Some(notes) = notes.last_mut() else { return };
                if !notes.iter().any(|note| Arc::ptr_eq(&note.0, &storage)) {
                    notes.push((storage, Saved::of_param(value)));
                }
            });
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.note_leaves();
        for leaf in &self.leaves {
            leaf.restore_grad();
        }
        CURRENT.set(self.before);
        let notes = NOTES.with_borrow_mut(Vec::pop);
        for (storage, saved) in notes.iter().flatten() {
            // Shape, dtype and device were those of the value that is replaced.
            let _ = storage.restore(saved);
        }
    }
}

/// Notes that a storage is about to be written to.
pub(crate) fn note(py: Python<'_>, storage: &Arc<Storage>) -> PyResult<()> {
    if storage.scope() >= current() {
        return Ok(());
    }
    let is_noted = NOTES.with_borrow(|notes| {
        notes.last().is_some_and(|notes| notes.iter().any(|note| Arc::ptr_eq(&note.0, storage)))
    });
    if !is_noted {
        let saved = caught(py, || storage.saved())?;
        NOTES.with_borrow_mut(|notes| {
            if let Some(notes) = notes.last_mut() {
                notes.push((storage.clone(), saved));
            }
        });
    }
    Ok(())
}
