//! The conformance suite and random programs on the first wgpu device.

use backend_wgpu::Wgpu;

zyx_tests::conformance!("wgpu", Wgpu::default());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("wgpu", |runtime| runtime.register(Wgpu::default()), 150);
}
