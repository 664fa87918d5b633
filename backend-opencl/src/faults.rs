//! Calls of the driver, each of which fails once.

use crate::OpenCl;
use zyx_tests::robust::driver::{Driver, every_driver_call_may_fail_once};

pub(crate) static DRIVER: Driver = Driver::new();

/// What the job calls on every device. Binaries are for some drivers only, and a device is asked how far
/// it is where there is time.
const CALLS: [&str; 12] = [
    "clBuildProgram",
    "clCreateBuffer",
    "clCreateCommandQueue",
    "clCreateKernel",
    "clCreateProgramWithSource",
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
        every_driver_call_may_fail_once("opencl", &DRIVER, (&CALLS, &[]), || backend);
    }
}
