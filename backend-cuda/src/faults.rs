//! Calls of the driver, each of which fails once. Needs a GPU.

use crate::Cuda;
use zyx_tests::robust::driver::{Calls, Driver, every_driver_call_may_fail_once};

pub(crate) static DRIVER: Driver = Driver::new();

/// What the job calls on every device. Code comes from disk or a compiler, and drivers before CUDA 12
/// have no graphs that can be changed.
const CALLS: [&str; 11] = [
    "cuCtxSetCurrent",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuLaunchKernel",
    "cuMemHostAlloc",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuStreamCreate",
];

#[test]
fn every_call_may_fail_once() {
    let all = Calls { driver: &DRIVER, expected: &CALLS, fatal: &[], submit: ("cuGraphLaunch", 1) };
    every_driver_call_may_fail_once("cuda", all, Cuda::default);
}
