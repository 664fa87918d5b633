//! Launches are cut into parts where a driver would stop long ones.

use crate::device;
use zyx_core::hal::{Backend, HURRIED_LAUNCH};
use zyx_core::{Device, Result, Runtime, Tensor};

/// On a device that is cut down to [`HURRIED_LAUNCH`]: more launches than kernels, and the numbers that
/// whole launches give.
///
/// # Panics
/// When that is not so.
pub fn long_launches_are_cut_into_parts<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    // Not the device that tests share, which is not cut down.
    if device::open(&backend()).is_none() {
        return device::skipped(spec);
    }
    let runtime = Runtime::default();
    runtime.register(backend());
    let device = runtime.device(spec).expect("it opened before");
    assert_eq!(device.caps().max_launch, HURRIED_LAUNCH);
    let work = |device: &Device| -> Result<Vec<i32>> {
        let x = Tensor::arange(0i32, 1 << 22, 1, device)?;
        ((x * 3i32) ^ 0x55i32).to_vec()
    };
    let before = device.stats().launches;
    let found = work(&device).expect("in parts");
    let launches = device.stats().launches - before;
    assert!(launches > 1, "{launches} launches");
    let expected = (0..1 << 22).map(|i| (i * 3) ^ 0x55);
    assert!(found.into_iter().eq(expected), "in {launches} launches");
}
