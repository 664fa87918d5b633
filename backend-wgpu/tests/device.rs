//! The first wgpu device by its traits, and the sources it compiles.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use zyx_backend_wgpu::{Wgpu, WgpuDevice};
use zyx_tests::device::kernels::{Snapshots, sources_are_as_before};
use zyx_tests::zyx_core::hal::Device;

zyx_tests::device!("wgpu", Wgpu, full: Wgpu::default(), minimal: Wgpu::minimal());

zyx_tests::robustness!("wgpu", Wgpu::default());
zyx_tests::training!("wgpu", Wgpu::default());
zyx_tests::promises!("wgpu", Wgpu::default());
zyx_tests::counts!("wgpu", Wgpu::default());
zyx_tests::raw_programs!("wgpu", Wgpu::default());

#[test]
fn long_launches_are_cut_into_parts() {
    zyx_tests::robust::parts::long_launches_are_cut_into_parts("wgpu", Wgpu::minimal);
}

#[test]
fn dtypes_are_as_documented() {
    let (full, minimal) = (Wgpu::default().preset(), Wgpu::minimal().preset());
    zyx_tests::backends::rows_are_stated(&[("wgpu, typical", full), ("wgpu, minimal", minimal)]);
}

#[test]
fn sources_are_as_they_were() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    let check = |backend: Wgpu, suffix: &str| {
        let (caps, source) = (&backend.preset(), WgpuDevice::source);
        let (legalised, after, except) = (false, None, &[]);
        let snapshots = Snapshots { folder, suffix, caps, source, legalised, after, except };
        sources_are_as_before(snapshots);
    };
    check(Wgpu::default(), ".wgsl");
    check(Wgpu::minimal(), ".minimal.wgsl");
}
