//! Where device time goes: launches and time by program.
//!
//! Off by default, because measuring a launch means waiting for it.

use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// Launches of one program and the time they took; see [`Device::profile`](super::Device::profile).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramTime {
    /// The kernel's name, or what a library kernel computes.
    pub name: Arc<str>,
    /// Times it was launched.
    pub launches: u64,
    /// Time of all launches together, on the device's clock where it has one.
    pub time: Duration,
}

/// Times by program name.
#[derive(Debug, Default)]
pub(crate) struct Profile(FxHashMap<Arc<str>, (u64, Duration)>);

impl Profile {
    pub(crate) fn add(&mut self, name: &Arc<str>, time: Duration) {
        let (launches, total) = self.0.entry(name.clone()).or_default();
        *launches += 1;
        *total += time;
    }

    pub(crate) fn sorted(&self) -> Vec<ProgramTime> {
        let mut rows: Vec<ProgramTime> = self
            .0
            .iter()
            .map(|(name, &(launches, time))| ProgramTime { name: name.clone(), launches, time })
            .collect();
        rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}
