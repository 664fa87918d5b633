//! What the tests of this folder share.

use zyx_backend_cpu::Cpu;
use zyx_tests::zyx_core::{Device, Runtime};

/// The CPU, of a runtime of its own: counters and caches are the caller's alone.
pub(crate) fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu").expect("always present")
}
