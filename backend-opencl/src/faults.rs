//! Calls of the driver, each of which fails once.

use crate::OpenCl;
use zyx_tests::robust::driver::{Calls, Driver, every_driver_call_may_fail_once};

pub(crate) static DRIVER: Driver = Driver::new();

/// What the job calls on every device. Some drivers' programs are on disk, and a device is asked how far it
/// is where there is time.
const CALLS: [&str; 11] = [
    "clBuildProgram",
    "clCreateBuffer",
    "clCreateCommandQueue",
    "clCreateKernel",
    "clEnqueueMarkerWithWaitList",
    "clEnqueueNDRangeKernel",
    "clEnqueueReadBuffer",
    "clEnqueueWriteBuffer",
    "clFlush",
    "clSetKernelArg",
    "clWaitForEvents",
];

#[test]
fn every_call_may_fail_once() {
    for backend in [OpenCl::default(), OpenCl::in_order(), OpenCl::minimal()] {
        let all = Calls { driver: &DRIVER, expected: &CALLS, fatal: &[], submit: ("clFlush", 1) };
        every_driver_call_may_fail_once("opencl", all, || backend);
    }
}
