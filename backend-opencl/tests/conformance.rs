//! The conformance suite and random programs on the first OpenCL device; with `ZYX_OPENCL=minimal`
//! on what OpenCL C 1.2 demands of every device.

use zyx_backend_opencl::OpenCl;

zyx_tests::conformance!("opencl", OpenCl::from_env());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("opencl", |runtime| runtime.register(OpenCl::from_env()), 300);
}
