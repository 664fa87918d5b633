//! The first CUDA device by its traits, and the sources it compiles.
#![allow(clippy::unwrap_used, reason = "tests")]

use backend_cuda::{Cuda, CudaDevice};
use std::path::Path;
use zyx_tests::device::kernels::{Snapshots, sources_are_as_before};

zyx_tests::device!("cuda", Cuda, full: Cuda::default());

zyx_tests::robustness!("cuda", Cuda::default());
zyx_tests::training!("cuda", Cuda::default());
zyx_tests::promises!("cuda", Cuda::default());
zyx_tests::counts!("cuda", Cuda::default());
zyx_tests::warm_start!(a_second_process_compiles_nothing, "cuda", Cuda::default());
zyx_tests::warm_start!(a_second_process_searches_nothing, "cuda", Cuda::default());

#[test]
fn dtypes_are_as_documented() {
    zyx_tests::backends::rows_are_stated(&[("cuda, typical", Cuda::default().preset())]);
}

#[test]
fn sources_are_as_they_were() {
    let check = |backend: Cuda, suffix: &str| {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
        let caps = &backend.preset();
        let except = &[];
        let after = Some("// Generated from the kernel.\n");
        sources_are_as_before::<CudaDevice>(Snapshots {
            folder,
            suffix,
            caps,
            legalised: false,
            after,
            except,
        });
    };
    check(Cuda::default(), ".cu");
}
