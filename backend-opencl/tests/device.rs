//! The first OpenCL device by its traits, and the sources it compiles.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use zyx_backend_opencl::{OpenCl, OpenClDevice};
use zyx_tests::device::kernels::{Snapshots, sources_are_as_before};
use zyx_tests::zyx_core::hal::Device;

zyx_tests::device!("opencl", OpenCl, full: OpenCl::default(), minimal: OpenCl::minimal());

zyx_tests::robustness!("opencl", OpenCl::default());
zyx_tests::training!("opencl", OpenCl::default());
zyx_tests::promises!("opencl", OpenCl::default());
zyx_tests::counts!("opencl", OpenCl::default());
zyx_tests::raw_programs!("opencl", OpenCl::default());

#[test]
fn long_launches_are_cut_into_parts() {
    zyx_tests::robust::parts::long_launches_are_cut_into_parts("opencl", OpenCl::minimal);
}

#[test]
fn any_order_gives_the_same_bits() {
    let (in_order, free) = (OpenCl::in_order, OpenCl::default);
    zyx_tests::robust::queues::any_order_gives_the_same_bits("opencl", in_order, free);
}

/// PoCL keeps programs itself, or leaves it to us.
mod warm {
    use super::*;

    zyx_tests::warm_start!(
        a_second_process_compiles_nothing,
        "opencl",
        OpenCl::default(),
        "POCL_CACHE_DIR" = None
    );
    zyx_tests::warm_start!(
        a_second_process_searches_nothing,
        "opencl",
        OpenCl::default(),
        "POCL_CACHE_DIR" = None
    );
    zyx_tests::warm_start!(
        without_the_drivers_cache: a_second_process_compiles_nothing,
        "opencl",
        OpenCl::default(),
        "POCL_KERNEL_CACHE" = Some("0")
    );
}

#[test]
fn dtypes_are_as_documented() {
    let (full, minimal) = (OpenCl::default().preset(), OpenCl::minimal().preset());
    zyx_tests::backends::rows_are_stated(&[
        ("opencl, typical", full),
        ("opencl, minimal", minimal),
    ]);
}

#[test]
fn sources_are_as_they_were() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    let check = |backend: OpenCl, suffix: &str| {
        let (caps, source) = (&backend.preset(), OpenClDevice::source);
        let (legalised, after, except) = (false, None, &[]);
        let snapshots = Snapshots { folder, suffix, caps, source, legalised, after, except };
        sources_are_as_before(snapshots);
    };
    check(OpenCl::default(), ".cl");
    check(OpenCl::minimal(), ".minimal.cl");
}
