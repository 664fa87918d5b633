//! The conformance suite and random programs on the first Vulkan device.

use backend_vulkan::Vulkan;

zyx_tests::conformance!("vulkan", Vulkan::default());

/// Random programs, after those rungs of the ladder that exonerate every layer above.
#[test]
fn ladder() {
    zyx_tests::ladder::on_device("vulkan", |runtime| runtime.register(Vulkan::default()), 150);
}
