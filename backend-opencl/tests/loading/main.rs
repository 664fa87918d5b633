//! Libraries that are absent, damaged, incomplete, too old or broken: each is an error that says what is
//! wrong and what to do, and never a panic. No device is needed: `stub.c` is a library with one.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::ffi::OsStr;
use std::sync::Arc;
use zyx_backend_opencl::OpenCl;
use zyx_core::hal::{Backend, Device as _, DeviceError};
use zyx_core::{DType, Device, Result, Runtime, Tensor};
use zyx_tests::stubs::{Folder, alone, is_alone};

const STUB: &str = include_str!("stub.c");

/// What a driver is asked for, by a process that found it: by devices of all it has, by some of little, and
/// by such as find programs on disk.
#[test]
fn case() {
    if !is_alone() {
        return;
    }
    let backends = [OpenCl::default(), OpenCl::minimal(), OpenCl::default()];
    for (name, backend) in NAMES.into_iter().zip(backends) {
        println!("{name} devices: {}", backend.devices().len());
        match transfers(backend).map_err(|e| e.to_string()) {
            Ok(()) => {}
            Err(error) => println!("{name} error: {error}"),
        }
        match work(backend) {
            Ok(()) => println!("{name} works"),
            Err(error) => println!("{name} error: {error}"),
        }
    }
}

const NAMES: [&str; 3] = ["full", "minimal", "again"];

/// Bytes to be lent: aligned as a device's own are.
#[repr(align(64))]
struct Lent([u8; 4096]);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        println!("given back");
    }
}

/// Copies of bytes, and times, of a device alone.
fn transfers(backend: OpenCl) -> Result<(), DeviceError> {
    let device = backend.open(0)?;
    let (mut stream, mut found) = (device.stream()?, [0; 64]);
    let (from, to) = (device.alloc(64)?, device.alloc(64)?);
    device.write(&mut stream, &from, 0, &[7; 64])?;
    device.copy(&mut stream, (&from, 0), (&to, 0), 64)?;
    device.read(&mut stream, &to, 0, &mut found)?;
    assert_eq!(found, [7; 64]);
    let timed = device.timed(&mut stream)?;
    let (start, end) = (device.record(timed)?, device.record(timed)?);
    device.synchronize(&end)?;
    let _ = device.elapsed(&start, &end);
    Ok(())
}

/// Every other kind of call: transfers small and large, memory that is lent and looked at, kernels, waits.
fn work(backend: OpenCl) -> Result<()> {
    let runtime = Runtime::default();
    runtime.register(backend);
    let device: Device = runtime.device("opencl")?;
    let data: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    for n in [64, data.len()] {
        let x = Tensor::from_slice(&data[..n], [n], &device)?;
        assert!(x.to_vec::<f32>()? == data[..n], "what was written is read");
        drop(x.host_view()?);
        for _ in 0..3 {
            (&x + 1.0).sum(..)?.realize()?;
        }
    }
    let lent = Tensor::from_owner(Arc::new(Lent([7; 4096])), DType::U8, [4096], &device)?;
    assert_eq!(lent.to_vec::<u8>()?, [7; 4096]);
    lent.add(1u8)?.realize()?;
    drop(lent);
    device.synchronize()
}

/// What [`case`] prints beside the library of a folder, with these variables.
fn told(folder: &Folder, variables: &[(&str, &str)]) -> String {
    let cache = folder.path().join("cache");
    let mut all: Vec<(&str, &OsStr)> = variables.iter().map(|v| (v.0, OsStr::new(v.1))).collect();
    all.extend([
        ("LD_LIBRARY_PATH", folder.path().as_os_str()),
        ("ZYX_CACHE_DIR", cache.as_os_str()),
    ]);
    let told = alone("case", &all);
    let _ = std::fs::remove_dir_all(cache);
    assert_eq!(told.matches(" devices: ").count(), NAMES.len(), "{told}");
    told
}

const LIBRARY: &str = "libOpenCL.so.1";

/// The stub, in a folder of its own.
fn stub() -> Option<Folder> {
    let folder = Folder::new()?;
    folder.library(LIBRARY, STUB);
    Some(folder)
}

/// All errors have these words; there is one of the first devices at least.
#[track_caller]
fn is_told(told: &str, words: &[&str]) {
    let errors: Vec<&str> = told.lines().filter(|line| line.contains(" error: ")).collect();
    assert!(errors.iter().any(|error| error.contains("full error: ")), "no error:\n{told}");
    for error in errors {
        for word in words {
            assert!(error.contains(word), "{word} is not in: {error}");
        }
    }
}

/// No device is found, for a reason that has all of these words.
#[track_caller]
fn is_refused(told: &str, words: &[&str]) {
    is_told(told, words);
    for name in NAMES {
        assert!(told.contains(&format!("{name} devices: 0")), "{told}");
        let core = format!("{name} error: device opencl: no opencl device is present: ");
        assert!(told.contains(&core), "{told}");
    }
}

#[track_caller]
fn works(told: &str) {
    assert!(!told.contains(" error: "), "{told}");
    for name in NAMES {
        assert!(told.contains(&format!("{name} devices: 1\n")), "{told}");
        assert!(told.contains(&format!("{name} works")), "{told}");
    }
}

/// What the other tests take away from is there.
#[test]
fn the_stub_works() {
    let Some(folder) = stub() else { return };
    let told = told(&folder, &[]);
    works(&told);
    assert_eq!(told.matches("given back").count(), NAMES.len(), "{told}");
}

/// The loader finds no file, as on a machine without OpenCL.
#[test]
fn an_absent_library_is_named() {
    let Some(folder) = Folder::new() else { return };
    let hides = folder.library("libhide.so", HIDE);
    let told = told(&folder, &[("LD_PRELOAD", hides.to_str().unwrap())]);
    is_refused(&told, &[LIBRARY, "cannot be loaded", "install an OpenCL loader"]);
}

const HIDE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
void *dlopen(const char *name, int flags) {
    void *(*loader)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
    return loader(name && strstr(name, "OpenCL") ? "/nowhere/libOpenCL.so.1" : name, flags);
}"#;

/// A file that is no library. (One that ends early kills the process in the system's loader.)
#[test]
fn a_damaged_library_is_named() {
    for content in ["", "not a library", "\u{7f}ELF\u{2}\u{1}\u{1}"] {
        let Some(folder) = Folder::new() else { return };
        std::fs::write(folder.path().join(LIBRARY), content).unwrap();
        let told = told(&folder, &[]);
        is_refused(&told, &[LIBRARY, "cannot be loaded", "install an OpenCL loader"]);
    }
}

/// A library without a function of OpenCL, found by the loader or by the variable that names one.
#[test]
fn an_empty_library_is_named() {
    let Some(folder) = Folder::new() else { return };
    let library = folder.library(LIBRARY, "");
    let words = [LIBRARY, "has no clGetPlatformIDs", "install an OpenCL loader"];
    is_refused(&told(&folder, &[]), &words);
    for named in [library.to_str().unwrap(), "/nowhere", ""] {
        let told = told(&folder, &[("OPENCL_DYLIB_PATH", named)]);
        is_refused(&told, &[&format!("`{named}`"), words[1], words[2]]);
    }
}

/// Calls whose failure takes nothing away.
const SPARED: &[&str] = &[
    "clCreateProgramWithBinary",
    "clEnqueueUnmapMemObject",
    "clGetEventInfo",
    "clGetEventProfilingInfo",
    "clGetPlatformInfo",
    "clGetProgramBuildInfo",
    "clGetProgramInfo",
    "clReleaseCommandQueue",
    "clReleaseContext",
    "clReleaseEvent",
    "clReleaseKernel",
    "clReleaseMemObject",
    "clReleaseProgram",
    "clSetMemObjectDestructorCallback",
];

/// The names of the stub's functions.
fn functions() -> Vec<&'static str> {
    let names = STUB.lines().filter_map(|line| {
        let line = line.strip_prefix("int ").or_else(|| line.strip_prefix("void *"))?;
        line.split('(').next().filter(|name| name.starts_with("cl"))
    });
    let names: Vec<&str> = names.collect();
    assert_eq!(names.len(), 35, "{names:?}");
    names
}

/// Libraries that lack one function each.
#[test]
fn a_missing_function_is_named() {
    for call in functions() {
        let Some(folder) = Folder::new() else { return };
        folder.library(LIBRARY, &format!("#define {call} absent_{call}\n{STUB}"));
        let told = told(&folder, &[]);
        match SPARED.contains(&call) {
            true => works(&told),
            false => {
                is_told(&told, &[LIBRARY, &format!("has no {call}"), "install an OpenCL loader"])
            }
        }
    }
}

/// Drivers that return a code of their own, from one function each.
#[test]
fn an_unknown_code_is_told() {
    let Some(folder) = stub() else { return };
    for call in functions() {
        let told = told(&folder, &[("STUB_FAILS", call)]);
        // Nobody asks for a log where everything compiles, and a context is kept for the process.
        let idle = ["clGetProgramBuildInfo", "clReleaseContext"].contains(&call);
        let asked = told.contains(&format!("stub: {call} fails\n"));
        assert_eq!(asked, !idle, "{call} is never made:\n{told}");
        match SPARED.contains(&call) {
            true => works(&told),
            false => {
                is_told(&told, &[&format!("{call} returned -9999"), "update the device's driver"])
            }
        }
        if call == "clBuildProgram" {
            assert!(told.contains("the compiler's log"), "{told}");
        }
    }
    let without_log = [("STUB_FAILS", "clBuildProgram,clGetProgramBuildInfo")];
    is_told(&told(&folder, &without_log), &["clBuildProgram returned -9999"]);
    is_refused(&told(&folder, &[("STUB_FAILS", "*")]), &["clGetPlatformIDs returned -9999"]);
}

/// Each object is given back to a driver that does not take it.
#[test]
fn objects_are_dropped_whatever_the_driver_says() {
    let Some(folder) = stub() else { return };
    let told = told(&folder, &[("STUB_FAILS", "clRelease*")]);
    works(&told);
    for call in functions().into_iter().filter(|call| call.starts_with("clRelease")) {
        // A context is kept for the process.
        let asked = told.contains(&format!("stub: {call} fails\n"));
        assert_eq!(asked, call != "clReleaseContext", "{call}:\n{told}");
    }
}

/// What a driver does not tell of a device is missing from some or all on.
#[test]
fn a_device_may_tell_nothing() {
    let Some(folder) = stub() else { return };
    for n in (1..64).step_by(4) {
        let told = told(&folder, &[("STUB_FAILS", &format!("clGetDeviceInfo@{n}"))]);
        assert!(told.contains("stub: clGetDeviceInfo fails"), "{told}");
        assert!(told.contains(" works") || told.contains(" error: "), "{told}");
    }
    for query in [0x1000, 0x1002, 0x1004, 0x1005, 0x1010, 0x1017, 0x101f, 0x1023, 0x1031] {
        let told = told(&folder, &[("STUB_LACKS", &query.to_string())]);
        assert!(told.contains(" works") || told.contains(" error: "), "{told}");
    }
}

#[test]
fn what_cannot_compute_is_told() {
    let Some(folder) = stub() else { return };
    let device = "Stub device of Stub platform: ";
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "STUB_VERSION",
            "OpenCL 1.0 stub",
            &[device, "OpenCL 1.0 stub is before OpenCL 1.2", "update"],
        ),
        (
            "STUB_VERSION",
            "OpenCL 1.1 stub",
            &[device, "OpenCL 1.1 stub is before OpenCL 1.2", "update"],
        ),
        ("STUB_LACKS", "4135", &[device, "not available"]),
        ("STUB_LACKS", "4136", &[device, "no compiler", "install"]),
        ("STUB_DEVICES", "0", &["Stub platform has no device"]),
        ("STUB_DEVICES", "-1", &["Stub platform has no device"]),
        ("STUB_PLATFORMS", "0", &["finds no driver", "install", "OCL_ICD_VENDORS"]),
        ("STUB_PLATFORMS", "-1", &["finds no driver", "install", "OCL_ICD_VENDORS"]),
    ];
    for (name, value, words) in cases {
        is_refused(&told(&folder, &[(name, value)]), words);
    }
}
