//! Without drivers a program runs on the CPU and says nothing of it; who asks for a device is told why it is not there.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]
#![cfg(feature = "cpu")]

use std::path::Path;
use std::process::Command;
use zyx::prelude::*;

/// What the process below does.
#[test]
fn without_drivers() {
    if std::env::var_os("ZYX_TEST_WITHOUT_DRIVERS").is_none() {
        return;
    }
    for _ in 0..2 {
        let x = zyx::tensor([1i32, 2]).unwrap();
        let device = zyx::device().unwrap();
        println!("device {}: {:?}", device.spec(), (&x + 1i32).to_vec::<i32>().unwrap());
    }
    for name in ["opencl", "vulkan", "wgpu", "cuda"] {
        let error = Device::open(name).unwrap_err().to_string();
        println!("error {error}");
    }
}

/// What it prints and is told where loaders find this manifest of Vulkan's and nothing else.
fn run(manifest: &Path) -> [String; 2] {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "without_drivers", "--nocapture"]);
    process.env("ZYX_TEST_WITHOUT_DRIVERS", "1").env_remove("ZYX_DEVICE");
    // Where loaders look for drivers, and NVIDIA's library for devices.
    process.env("OCL_ICD_VENDORS", "/nowhere").env("CUDA_VISIBLE_DEVICES", "");
    process.env("VK_DRIVER_FILES", manifest).env("VK_ICD_FILENAMES", manifest);
    // What wgpu looks for besides.
    process.env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nowhere.json");
    process.env("LIBGL_DRIVERS_PATH", "/nowhere").env_remove("DISPLAY");
    let output = process.output().unwrap();
    let texts = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into());
    assert!(output.status.success(), "{texts:?}");
    texts
}

#[test]
fn the_cpu_takes_over() {
    let [out, told] = run(Path::new("/nowhere.json"));
    assert_eq!(out.matches("device cpu:0: [2, 3]").count(), 2, "{out}");
    assert_eq!(out.matches("error ").count(), 4, "{out}");
    let compiled = [
        ("opencl", cfg!(feature = "opencl")),
        ("vulkan", cfg!(feature = "vulkan")),
        ("wgpu", cfg!(feature = "wgpu")),
        ("cuda", cfg!(feature = "cuda")),
    ];
    for (name, is_there) in compiled {
        let why = match is_there {
            true => format!("no {name} device is present"),
            false => format!("needs the feature `{name}`"),
        };
        assert_eq!(out.matches(&why).count(), 1, "{name}: {out}");
    }
    assert!(!told.contains("zyx:"), "{told}");
}

#[test]
#[cfg(all(feature = "vulkan", unix))]
fn a_damaged_driver_is_told() {
    let folder = std::env::temp_dir().join(format!("zyx-damaged-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("driver.so"), "no library").unwrap();
    let text = r#"{"file_format_version": "1.0.0", "ICD": {"library_path": "./driver.so", "api_version": "1.1.0"}}"#;
    std::fs::write(folder.join("driver.json"), text).unwrap();
    let [out, told] = run(&folder.join("driver.json"));
    std::fs::remove_dir_all(&folder).unwrap();
    let has_loader = !out.contains("no Vulkan loader");
    assert_eq!(told.matches("zyx: device vulkan: ").count(), usize::from(has_loader), "{told}");
    assert_eq!(told.matches("driver.json cannot be loaded").count(), usize::from(has_loader));
}

#[test]
fn a_setting_that_cannot_be_read_is_said_once() {
    let mut process = Command::new(std::env::current_exe().unwrap());
    process.args(["--exact", "without_drivers", "--nocapture"]);
    process.env("ZYX_TEST_WITHOUT_DRIVERS", "1").env_remove("ZYX_DEVICE").env("ZYX_TUNE", "yes");
    let output = process.output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{told}");
    assert_eq!(told.matches("ZYX_TUNE is `yes`").count(), 1, "{told}");
}
