//! The first Vulkan device by its traits, and the sources it compiles.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::process::Command;
use zyx_backend_vulkan::{Vulkan, VulkanDevice};
use zyx_core::hal::{Device, Progress};
use zyx_core::ir::Kernel;
use zyx_tests::device::kernels::{KERNELS, Snapshots, kernel, legal, sources_are_as_before};

zyx_tests::device!("vulkan", Vulkan, full: Vulkan::default(), minimal: Vulkan::minimal(); after: || assert_eq!(
    zyx_backend_vulkan::validation_messages(),
    0,
    "the validation layer has told something"
));

zyx_tests::robustness!("vulkan", Vulkan::default());
zyx_tests::training!("vulkan", Vulkan::default());
zyx_tests::promises!("vulkan", Vulkan::default());
zyx_tests::counts!("vulkan", Vulkan::default());
zyx_tests::raw_programs!("vulkan", Vulkan::default());

#[test]
fn long_launches_are_cut_into_parts() {
    zyx_tests::robust::parts::long_launches_are_cut_into_parts("vulkan", Vulkan::minimal);
}

// Drivers keep pipelines and tell of it as they like: Mesa's for CPUs does neither.
zyx_tests::warm_start!(
    a_second_process_compiles_what_the_driver_does_not_keep,
    "vulkan",
    Vulkan::default()
);

#[test]
fn dtypes_are_as_documented() {
    let (full, minimal) = (Vulkan::default().preset(), Vulkan::minimal().preset());
    zyx_tests::backends::rows_are_stated(&[
        ("vulkan, typical", full),
        ("vulkan, minimal", minimal),
    ]);
}

#[test]
fn sources_are_as_they_were() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots"));
    let check = |backend: Vulkan, suffix: &str| {
        let (caps, source) = (&backend.preset(), VulkanDevice::source);
        let (legalised, after, except) = (true, None, &["special"]);
        let snapshots = Snapshots { folder, suffix, caps, source, legalised, after, except };
        sources_are_as_before(snapshots);
    };
    check(Vulkan::default(), ".spvasm");
    check(Vulkan::minimal(), ".minimal.spvasm");
}

/// `spirv-val` accepts the modules of a kernel; whether it is installed.
fn validate(device: &VulkanDevice, kernel: &Kernel) -> bool {
    let kernel = &zyx_core::testing::rewritten(kernel).unwrap();
    for (i, words) in device.modules(kernel).unwrap().iter().enumerate() {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = format!("zyx-{}-{}-{i}.spv", std::process::id(), kernel.name());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes).unwrap();
        let output =
            Command::new("spirv-val").args(["--target-env", "vulkan1.1"]).arg(&path).output();
        std::fs::remove_file(path).unwrap();
        let Ok(output) = output else { return false };
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}\n{kernel}");
    }
    true
}

#[test]
fn modules_are_valid() {
    for backend in [Vulkan::default(), Vulkan::minimal()] {
        let Some(device) = zyx_tests::device::open(&backend) else {
            return zyx_tests::device::skipped("vulkan");
        };
        // What waits for other groups is valid also where it may not run.
        let mut caps = device.caps().clone();
        caps.progress = Progress::Occupancy;
        let legal = KERNELS.iter().filter_map(|(name, _)| legal(&kernel(name), &caps));
        let legal: Vec<Kernel> = legal.collect();
        assert!(!legal.is_empty(), "no kernel is legal on {}", device.info().name);
        if !legal.iter().all(|kernel| validate(&device, kernel)) {
            let required = std::env::var("ZYX_REQUIRE").unwrap_or_default();
            let is_required = required.split(',').any(|word| word.trim() == "spirv-val");
            assert!(!is_required, "ZYX_REQUIRE names spirv-val, which is not installed");
            eprintln!("skipped modules_are_valid: no spirv-val");
        }
    }
}
