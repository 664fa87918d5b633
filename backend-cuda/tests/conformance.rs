//! The conformance suite and random programs on the first CUDA device.

use zyx_backend_cuda::Cuda;

zyx_tests::conformance!("cuda", Cuda::default());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("cuda", |runtime| runtime.register(Cuda::default()), 150);
}
