//! The conformance suite and random programs on the first Vulkan device; with `ZYX_VULKAN=minimal`
//! on what Vulkan 1.1 demands of every device.

use zyx_backend_vulkan::Vulkan;

zyx_tests::conformance!("vulkan", Vulkan::from_env());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("vulkan", |runtime| runtime.register(Vulkan::from_env()), 150);
}
