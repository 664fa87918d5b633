//! The conformance suite and random programs on the first wgpu device; with `ZYX_WGPU=minimal` on
//! what WebGPU promises of every device.

use zyx_backend_wgpu::Wgpu;

zyx_tests::conformance!("wgpu", Wgpu::from_env());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("wgpu", |runtime| runtime.register(Wgpu::from_env()), 150);
}
