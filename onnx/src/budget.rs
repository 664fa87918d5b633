//! The host memory that loading or running a model may take.
//!
//! A file of a hundred bytes can name 2^40 elements. Whatever allocates as many bytes as a file, an attribute or a value
//! says asks the budget first: [`Budget::ask`] for bytes, [`Budget::room`] for a vector. Inputs and outputs of nodes
//! are counted by `run`; memory of devices, which tensors take, is limited by the device.

use crate::read::damaged;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use zyx_core::hal::{interrupted, is_interrupted};
use zyx_core::{Error, Result};

/// Bytes that a pending tensor of a node takes: its graph nodes, shapes and names. Measured: 12 KB for a step of an
/// LSTM, which has 26 of them.
pub(crate) const TRACE_BYTES: usize = 1 << 10;

/// The environment variable that sets the limit, in bytes; `K`, `M` and `G` multiply.
const VARIABLE: &str = "ZYX_ONNX_MEMORY_LIMIT";
const DEFAULT_BYTES: usize = 2 << 30;

/// A limit of bytes, and how many of them are taken.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    /// Bytes of values and of operators that run; given back by [`Budget::give_back`].
    used: AtomicUsize,
    /// Bytes of pending tensors.
    traced: AtomicUsize,
}

impl Default for Budget {
    fn default() -> Budget {
        let given = std::env::var(VARIABLE).ok().and_then(|text| bytes(&text));
        Budget::new(given.unwrap_or(DEFAULT_BYTES))
    }
}

/// `8G` as bytes.
fn bytes(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Budget {
        Budget { limit, used: AtomicUsize::new(0), traced: AtomicUsize::new(0) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes bytes.
    ///
    /// # Errors
    /// When there are not so many left, and when the user interrupts.
    pub(crate) fn ask(&self, bytes: usize) -> Result<()> {
        self.take(&self.used, bytes)
    }

    /// Takes `n` times `bytes`.
    pub(crate) fn ask_for(&self, n: usize, bytes: usize) -> Result<()> {
        self.ask(n.saturating_mul(bytes))
    }

    /// Takes the bytes of `n` pending tensors.
    pub(crate) fn trace(&self, n: usize) -> Result<()> {
        self.take(&self.traced, n.saturating_mul(TRACE_BYTES))
    }

    /// # Errors
    /// When the user wants the program to stop.
    pub(crate) fn check_interrupt() -> Result<()> {
        match is_interrupted() {
            true => Err(Error::Io { what: "model".to_owned(), source: interrupted() }),
            false => Ok(()),
        }
    }

    fn take(&self, count: &AtomicUsize, bytes: usize) -> Result<()> {
        Budget::check_interrupt()?;
        let taken = self.used().saturating_add(self.traced());
        if bytes > self.limit.saturating_sub(taken) {
            return Err(self.refused(bytes));
        }
        count.fetch_add(bytes, Relaxed);
        Ok(())
    }

    #[cold]
    fn refused(&self, bytes: usize) -> Error {
        let (limit, taken) = (self.limit, self.used().saturating_add(self.traced()));
        damaged(
            "host memory",
            format!(
                "{bytes} bytes more are needed; {taken} of {limit} are taken ({VARIABLE}=8G allows more)"
            ),
        )
    }

    /// An empty vector for `n` elements.
    pub(crate) fn room<T>(&self, n: usize) -> Result<Vec<T>> {
        let bytes = n.saturating_mul(size_of::<T>());
        self.ask(bytes)?;
        let mut vector = Vec::new();
        match vector.try_reserve_exact(n) {
            Ok(()) => Ok(vector),
            Err(_) => Err(self.refused(bytes)),
        }
    }

    /// A vector of what an iterator gives, which are `n` elements at most.
    pub(crate) fn collect<T>(&self, n: usize, items: impl Iterator<Item = T>) -> Result<Vec<T>> {
        let mut vector = self.room(n)?;
        vector.extend(items.take(n));
        Ok(vector)
    }

    /// Bytes that are not taken.
    #[cfg(feature = "image")]
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used().saturating_add(self.traced()))
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    pub(crate) fn traced(&self) -> usize {
        self.traced.load(Relaxed)
    }

    /// Sets what is taken to an earlier count.
    pub(crate) fn give_back(&self, used: usize) {
        self.used.store(used, Relaxed);
    }

    /// Forgets pending tensors that were computed, down to an earlier count.
    pub(crate) fn computed(&self, traced: usize) {
        self.traced.store(traced, Relaxed);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn limits_with_units() {
        for (text, wanted) in
            [("5", Some(5)), ("8G", Some(8 << 30)), ("2K", Some(2048)), ("G", None)]
        {
            assert_eq!(bytes(text), wanted, "{text}");
        }
        assert_eq!((bytes("8X"), bytes("-1"), bytes("99999999999999G")), (None, None, None));
    }

    #[test]
    fn what_is_taken_counts() {
        let budget = Budget::new(1000);
        assert_eq!(budget.room::<u64>(100).unwrap().capacity(), 100);
        let error = budget.room::<u8>(201).unwrap_err().to_string();
        assert!(error.contains("201 bytes more") && error.contains("800 of 1000"), "{error}");
        budget.give_back(0);
        budget.ask(1000).unwrap();
        assert!(budget.ask_for(usize::MAX, 8).is_err() && budget.trace(1).is_err());
    }
}
