//! The parameters of a device that have names, for what is told of plans.

use crate::hal::lock;
use crate::tensor::{Param, WeakParam};
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// Named parameters by the address of their place. Those that are gone stay until as many have come.
#[derive(Debug, Default)]
pub(crate) struct Names(Mutex<Places>);

#[derive(Debug, Default)]
struct Places {
    parameters: FxHashMap<usize, WeakParam>,
    /// How many there were when those that are gone were dropped.
    kept: usize,
}

impl Names {
    /// Adds a parameter; its name may change.
    pub(crate) fn add(&self, parameter: &Param) {
        let Places { parameters, kept } = &mut *lock(&self.0);
        parameters.insert(parameter.address(), parameter.downgrade());
        if parameters.len() > 2 * *kept + 64 {
            parameters.retain(|_, parameter| parameter.upgrade().is_some());
            *kept = parameters.len();
        }
    }

    /// All that are there.
    pub(super) fn all(&self) -> Vec<Param> {
        let mut all: Vec<Param> = Vec::new();
        let places = lock(&self.0);
        #[expect(clippy::iter_over_hash_type, reason = "they are looked up by what they hold")]
        for parameter in places.parameters.values() {
            all.extend(parameter.upgrade());
        }
        all
    }
}
