//! The conformance suite and random programs on the first OpenCL device.

use backend_opencl::OpenCl;

zyx_tests::conformance!("opencl", OpenCl::default());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("opencl", |runtime| runtime.register(OpenCl::default()), 300);
}
