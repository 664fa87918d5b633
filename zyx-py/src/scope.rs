//! Scopes: calls of functions that are traced, in which tensors have no value.
//!
//! A write within a scope to a storage that was there before is noted, so that whoever traces can undo it and make what
//! was written a result of the function. Storages and cells have the number of the scope they were made in; outside of
//! all scopes it is 0. A scope belongs to a thread.

use crate::error::caught;
use crate::storage::{Saved, Storage};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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

/// A scope, until this is dropped.
pub(crate) struct Scope(u64);

impl Scope {
    pub(crate) fn enter() -> Scope {
        NOTES.with_borrow_mut(|notes| notes.push(Vec::new()));
        Scope(CURRENT.replace(LAST.fetch_add(1, Relaxed) + 1))
    }

    /// Undoes the writes to storages that were there before, and says which they are.
    pub(crate) fn undo(self) -> zyx::Result<Vec<Note>> {
        let notes = NOTES.with_borrow_mut(|notes| notes.last_mut().map(std::mem::take));
        let notes = notes.unwrap_or_default();
        for (storage, saved) in &notes {
            storage.restore(saved)?;
        }
        Ok(notes)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        CURRENT.set(self.0);
        let notes = NOTES.with_borrow_mut(Vec::pop);
        for (storage, saved) in notes.iter().flatten() {
            // The function failed, and that is what is told.
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
