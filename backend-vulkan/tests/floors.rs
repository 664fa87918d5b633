//! The conformance suite on the first Vulkan device, cut down to what Vulkan 1.1 demands.

use backend_vulkan::Vulkan;

zyx_tests::conformance!("vulkan", Vulkan::minimal());
