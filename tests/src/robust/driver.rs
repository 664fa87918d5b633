//! Each call that a backend makes of its driver fails once.
//!
//! A backend's unit tests put a [`Driver`] where it calls its driver: it counts calls by name and lets
//! one of them fail. What a training job then computes is right or an error that says something, memory is
//! given back, and the same device does the job when it is asked again.

use super::faults::attempt_steps;
use crate::harness;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zyx_core::hal::Backend;
use zyx_core::{Device, Runtime};

/// The calls of a driver.
#[derive(Debug, Default)]
pub struct Driver {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: BTreeMap<&'static str, usize>,
    armed: Option<(&'static str, usize)>,
}

impl Driver {
    /// A driver that works.
    pub const fn new() -> Driver {
        Driver { state: Mutex::new(State { calls: BTreeMap::new(), armed: None }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call; whether it has to fail.
    pub fn fails(&self, call: &'static str) -> bool {
        let mut state = self.state();
        let calls = state.calls.entry(call).or_default();
        let this = (call, *calls);
        *calls += 1;
        let hit = state.armed == Some(this);
        if hit {
            state.armed = None;
        }
        hit
    }

    /// Counts from zero again and lets the call of this name fail that comes after `n` others.
    pub fn arm(&self, armed: Option<(&'static str, usize)>) {
        *self.state() = State { calls: BTreeMap::new(), armed };
    }

    /// Lets nothing fail; whether what was to fail has not.
    pub fn disarm(&self) -> bool {
        self.state().armed.take().is_some()
    }
}

/// The calls that a backend makes in a job.
#[derive(Clone, Copy, Debug)]
pub struct Calls<'a> {
    /// Lets them fail.
    pub driver: &'a Driver,
    /// Those that are made on every machine.
    pub expected: &'a [&'a str],
    /// Those after which the device may be lost.
    pub fatal: &'a [&'a str],
    /// The one that hands work to the device, and how often a step of training does so at most: for what
    /// it uploads, computes, waits for and reads.
    pub submit: (&'a str, usize),
}

/// As many as it takes until lists of launches are recorded.
const STEPS: usize = 6;

/// A device that nothing else uses. What holds it goes with the runtime.
fn open<B: Backend>(spec: &str, backend: B) -> zyx_core::Result<(Device, Runtime)> {
    let runtime = Runtime::default();
    runtime.register(backend);
    Ok((runtime.device(spec)?, runtime))
}

/// See the module.
///
/// # Panics
/// When a fault is not survived, or one of the expected calls is never made.
pub fn every_driver_call_may_fail_once<B: Backend>(
    spec: &str,
    all: Calls<'_>,
    backend: impl Fn() -> B,
) {
    let test = "every_driver_call_may_fail_once";
    if harness::device(spec, test, |runtime| runtime.register(backend())).is_none() {
        return;
    }
    all.driver.arm(None);
    let (device, _runtime) = open(spec, backend()).expect("it opened before");
    let (losses, errors) = attempt_steps(&device, STEPS);
    let losses = losses.unwrap_or_else(|| panic!("without faults: {errors:?}"));
    let calls = std::mem::take(&mut all.driver.state().calls);
    for call in all.expected {
        assert!(calls.contains_key(call), "the job never calls {call}: {calls:?}");
    }
    let (submit, each) = all.submit;
    let submissions = calls.get(submit).copied().unwrap_or(0);
    // Opening a device and making the first values takes some more.
    assert!(submissions <= each * STEPS + 4, "{submissions} submissions in {STEPS} steps");
    drop((device, _runtime));
    for (call, count) in calls {
        for n in (0..count).step_by(count.div_ceil(8)) {
            let what = format!("on {spec}, with {call} {n} of {count} failing");
            survive(spec, all, (call, n), &losses, &what, &backend);
        }
    }
}

/// One fault, from opening the device on.
fn survive<B: Backend>(
    spec: &str,
    all: Calls<'_>,
    (call, n): (&'static str, usize),
    expected: &[u32],
    what: &str,
    backend: &impl Fn() -> B,
) {
    all.driver.arm(Some((call, n)));
    let opened = open(spec, backend());
    let Ok((device, _runtime)) = opened else {
        assert!(!all.driver.disarm(), "{what}: {:?} of itself", opened.err());
        open(spec, backend()).unwrap_or_else(|error| panic!("{what}: opened again: {error}"));
        return;
    };
    let (losses, errors) = attempt_steps(&device, STEPS);
    // How often a driver is asked whether it is done depends on how fast it is, and what it compiles on
    // what it finds on disk.
    let must_happen = n == 0 && all.expected.contains(&call);
    assert!(!all.driver.disarm() || !must_happen, "{what}: it did not fail");
    assert!(errors.iter().all(|error| error.len() > 10), "{what}: {errors:?}");
    if let Some(losses) = losses {
        assert_eq!(losses, expected, "{what}: losses, after {errors:?}");
    }
    let (losses, again) = attempt_steps(&device, STEPS);
    let is_lost = errors.iter().chain(&again).any(|error| error.contains("lost"));
    if is_lost && all.fatal.contains(&call) {
        return;
    }
    assert_eq!(losses.as_deref(), Some(expected), "{what}: {errors:?}, then {again:?}");
    device.trim_memory();
    assert_eq!(device.stats().live_bytes, 0, "{what}: memory leaks");
}
