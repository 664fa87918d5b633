//! Calls of the driver, each of which fails once.

use crate::OpenCl;
use std::sync::Arc;
use zyx_core::hal::{Backend, Device};
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
    large_transfers();
    looks();
}

/// What transfers through pinned memory call.
const STAGING: [&str; 9] = [
    "clCreateBuffer",
    "clEnqueueMapBuffer",
    "clEnqueueReadBuffer",
    "clEnqueueUnmapMemObject",
    "clEnqueueWriteBuffer",
    "clFlush",
    "clRetainCommandQueue",
    "clRetainMemObject",
    "clWaitForEvents",
];

/// Large transfers of a discrete device arrive, or tell that they do not and do when they are repeated.
fn large_transfers() {
    let Ok(device) = OpenCl::minimal().open(0) else { return };
    let bytes: Vec<u8> = (0..21 << 20).map(|i: usize| (i % 251) as u8).collect();
    let buffer = device.alloc(bytes.len()).expect("there is room");
    for call in STAGING {
        for n in [0, 1, 3, 5] {
            let mut found = vec![0; bytes.len()];
            let mut stream = device.stream().expect("nothing fails yet");
            DRIVER.arm(Some((call, n)));
            let written = device.write(&mut stream, &buffer, 0, &bytes);
            if written.is_err() {
                let again = device.write(&mut stream, &buffer, 0, &bytes);
                again.unwrap_or_else(|error| panic!("{call} {n}: {error}"));
            }
            if device.read(&mut stream, &buffer, 0, &mut found).is_err() {
                let again = device.read(&mut stream, &buffer, 0, &mut found);
                again.unwrap_or_else(|error| panic!("{call} {n}: {error}"));
            }
            drop(stream);
            assert!(found == bytes, "{call} {n}");
            assert!(!DRIVER.disarm() || n > 0, "{call} is never made");
        }
    }
}

/// A look at memory that the driver refuses to map is none, and the next one succeeds.
fn looks() {
    let Ok(device) = OpenCl::default().open(0) else { return };
    if !device.caps().unified_memory {
        return;
    }
    let buffer = Arc::new(device.alloc(64).expect("there is room"));
    let mut stream = device.stream().expect("nothing fails yet");
    device.write(&mut stream, &buffer, 0, &[7; 64]).expect("nothing fails yet");
    let end = device.record(&mut stream).expect("nothing fails yet");
    device.synchronize(&end).expect("nothing fails yet");
    DRIVER.arm(Some(("clEnqueueMapBuffer", 0)));
    assert!(device.host_view(&buffer, 64).is_none());
    let view = device.host_view(&buffer, 64).expect("it can be mapped");
    assert_eq!((*view).as_ref(), [7; 64]);
    // What somebody looks at is not written.
    assert!(device.write(&mut stream, &buffer, 0, &[8; 64]).is_err());
    assert_eq!((*view).as_ref(), [7; 64]);
    drop(view);
    DRIVER.arm(Some(("clEnqueueUnmapMemObject", 0)));
    device.write(&mut stream, &buffer, 0, &[8; 64]).expect("it is unmapped at the second attempt");
    let end = device.record(&mut stream).expect("nothing fails");
    device.synchronize(&end).expect("nothing fails");
    assert!(!DRIVER.disarm(), "it was mapped");
    let view = device.host_view(&buffer, 64).expect("it can be mapped");
    assert_eq!((*view).as_ref(), [8; 64]);
}
