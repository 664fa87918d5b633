//! The first CUDA device by its traits, and the sources it compiles.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use zyx_backend_cuda::{Cuda, CudaDevice};
use zyx_tests::device::kernels::{Snapshots, sources_are_as_before};
use zyx_tests::long_sums;
use zyx_tests::zyx_core::Runtime;
use zyx_tests::zyx_core::hal::Device;

zyx_tests::device!("cuda", Cuda, full: Cuda::default());

zyx_tests::robustness!("cuda", Cuda::default());
zyx_tests::training!("cuda", Cuda::default());
zyx_tests::promises!("cuda", Cuda::default());
zyx_tests::counts!("cuda", Cuda::default());
zyx_tests::raw_programs!("cuda", Cuda::default());
zyx_tests::warm_start!(a_second_process_compiles_nothing, "cuda", Cuda::default());
zyx_tests::warm_start!(a_second_process_searches_nothing, "cuda", Cuda::default());

/// A hundred million numbers, which take memory and time that only a GPU has.
#[test]
fn long_sums() {
    let register = |runtime: &Runtime| runtime.register(Cuda::default());
    let Some(device) = zyx_tests::harness::device("cuda", "long_sums", register) else { return };
    let equal = long_sums::sums_of_equal_numbers_in_every_shape(&device);
    long_sums::moments_of_numbers_far_from_zero(&device).and(equal).unwrap();
}

#[test]
fn dtypes_are_as_documented() {
    zyx_tests::backends::rows_are_stated(&[("cuda, typical", Cuda::default().preset())]);
}

#[test]
fn sources_are_as_they_were() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    let (caps, except) = (&Cuda::default().preset(), &[]);
    let (suffix, source, after) = (".ptx", CudaDevice::source, None);
    let ptx = Snapshots { folder, suffix, caps, source, legalised: true, after, except };
    sources_are_as_before(ptx);
    // The definitions before it are the files `src/*.cuh`.
    let (suffix, source, after) =
        (".cu", CudaDevice::cuda_c, Some("// Generated from the kernel.\n"));
    sources_are_as_before(Snapshots { suffix, source, after, ..ptx });
}
