//! Collects the outcomes of one test: every wrong result is told, not only the first.

use crate::oracle::Array;
use std::fmt::Display;
use zyx_core::{Device, Result, Tensor};

/// A test under way on a device.
#[derive(Debug)]
pub struct Check<'a> {
    /// The device under test.
    pub device: &'a Device,
    /// What went wrong so far.
    failures: Vec<String>,
    checked: usize,
}

/// How many failures are printed in full.
const SHOWN: usize = 12;

impl<'a> Check<'a> {
    /// A test on `device`.
    pub fn new(device: &'a Device) -> Check<'a> {
        Check { device, failures: Vec::new(), checked: 0 }
    }

    /// A tensor of an input's elements.
    ///
    /// # Panics
    /// When the device cannot hold it.
    pub fn input(&self, array: &Array) -> Tensor {
        array.tensor(self.device).expect("inputs fit the device")
    }

    /// Notes a failure.
    pub fn fail(&mut self, what: impl Display) {
        self.failures.push(what.to_string());
    }

    /// Notes a failure unless `holds`.
    pub fn that(&mut self, holds: bool, what: impl Display) {
        self.checked += 1;
        if !holds {
            self.fail(what);
        }
    }

    /// Compares with the expected elements; the sign of a zero does not matter.
    pub fn equal(&mut self, what: impl Display, got: Result<Tensor>, want: &Array) {
        self.compare(what, got, want, false);
    }

    /// Compares with the expected elements, signs of zeros included.
    pub fn identical(&mut self, what: impl Display, got: Result<Tensor>, want: &Array) {
        self.compare(what, got, want, true);
    }

    fn compare(&mut self, what: impl Display, got: Result<Tensor>, want: &Array, signed: bool) {
        self.checked += 1;
        match got.and_then(|tensor| Array::read(&tensor)) {
            Err(error) => self.fail(format!("{what}: {error}")),
            Ok(got) => {
                if let Some(wrong) = want.mismatch(&got, signed) {
                    self.fail(format!("{what}: {wrong}"));
                }
            }
        }
    }

    /// Asks for an error whose text has all of `parts`.
    pub fn refused<T>(&mut self, what: impl Display, got: Result<T>, parts: &[&str]) {
        self.checked += 1;
        match got {
            Ok(_) => self.fail(format!("{what}: accepted where an error is due")),
            Err(error) => {
                let text = error.to_string();
                if let Some(part) = parts.iter().find(|part| !text.contains(**part)) {
                    self.fail(format!("{what}: the error `{text}` does not name `{part}`"));
                }
            }
        }
    }

    /// Ends the test.
    ///
    /// # Panics
    /// When something went wrong, or nothing was checked.
    pub fn finish(self) {
        assert!(self.checked > 0, "the test checked nothing");
        let n = self.failures.len();
        let shown = self.failures.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n  ");
        assert!(n == 0, "on {}: {n} of {} checks failed:\n  {shown}", self.device, self.checked);
    }
}
