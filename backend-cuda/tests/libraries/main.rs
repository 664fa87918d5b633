//! NVIDIA's libraries in every state they may be found in, without a GPU: hidden, empty, incomplete,
//! too old, and returning codes that no header lists. Each state is a process of its own, which does
//! a small job; it ends in an error that says what to do, or works without what it lacks, and never in
//! a panic or a signal.
//!
//! The C compiler makes libraries that stand in for the driver, NVRTC and cuBLASLt. Where there is none,
//! tests skip themselves by name; with `cc` among the words of `ZYX_REQUIRE` that is a failure.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use backend_cuda::Cuda;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use zyx_core::{Result, Runtime, Tensor};

const DRIVER: &str = "libcuda.so.1";
const NVRTC: &str = "libnvrtc.so";
const BLAS: &str = "libcublasLt.so";

/// What they are made of.
const HEADER: &str = include_str!("stub.h");
const DRIVER_C: &str = include_str!("driver.c");
const NVRTC_C: &str = include_str!("nvrtc.c");
const BLAS_C: &str = include_str!("cublaslt.c");

/// What the libraries return where they are told to fail: a code that no header lists.
const UNLISTED: &str = "987654";

/// Prints what the backend logs.
struct Printer;

impl log::Log for Printer {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        println!("log {}", record.args());
    }

    fn flush(&self) {}
}

/// A product that is large enough for the library, so often that the launches become a graph.
fn job() -> Result<()> {
    let runtime = Runtime::default();
    runtime.register(Cuda::default());
    let device = runtime.device("cuda")?;
    println!("opened");
    let weights = Tensor::from_slice(&vec![1f32; 512 * 512], [512, 512], &device)?;
    for k in 0..4 {
        let x = Tensor::from_slice(&vec![k as f32; 512 * 512], [512, 512], &device)?;
        let y = (x.tanh() + 1.0f32).matmul(&weights)?.tanh().sum(1)?;
        y.to_vec::<f32>()?;
    }
    device.synchronize()
}

/// What the processes below do.
#[test]
fn job_of_a_process() {
    if env::var_os("STUB_JOB").is_none() {
        return;
    }
    log::set_logger(&Printer).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    match job() {
        Ok(()) => println!("done"),
        Err(error) => println!("error {error}"),
    }
}

/// Whether there is a C compiler, or a word that the test is skipped.
fn is_possible(test: &str) -> bool {
    let is_there = Command::new("cc").arg("--version").output().is_ok();
    if !is_there {
        let required = env::var("ZYX_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "cc"), "there is no C compiler `cc`");
        let _ = writeln!(std::io::stderr(), "skipped {test}: there is no C compiler `cc`");
    }
    is_there
}

/// A folder in which the libraries of one state lie.
struct Folder(PathBuf);

impl Folder {
    /// An empty one; `name` is that of the test.
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-libraries").join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("cache")).unwrap();
        fs::write(path.join("stub.h"), HEADER).unwrap();
        Folder(path)
    }

    /// One with all three libraries as they should be.
    fn whole(name: &str) -> Folder {
        let folder = Folder::new(name);
        folder.build(DRIVER, DRIVER_C, &[]);
        folder.build(NVRTC, NVRTC_C, &[]);
        folder.build(BLAS, BLAS_C, &[]);
        folder
    }

    /// Compiles a library.
    fn build(&self, library: &str, source: &str, options: &[&str]) {
        let file = self.0.join("source.c");
        fs::write(&file, source).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(self.0.join(library)).args(options);
        let output = compiler.arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// The library without some functions.
    fn lacking(&self, library: &str, source: &str, functions: &[&str]) {
        let options: Vec<_> = functions.iter().map(|f| format!("-D{f}=hidden_{f}")).collect();
        self.build(library, source, &options.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Makes a library a file that cannot be loaded, which also hides others of its name.
    fn hide(&self, library: &str) {
        fs::write(self.0.join(library), "not a library").unwrap();
    }

    /// What the job says in a process that finds its libraries here, with one function failing.
    fn run(&self, fails: &str) -> String {
        let mut process = Command::new(env::current_exe().unwrap());
        process.args(["--exact", "job_of_a_process", "--nocapture"]);
        process.env("STUB_JOB", "1").env("STUB_FAILS", fails).env("LD_LIBRARY_PATH", &self.0);
        process.env("ZYX_NVRTC", self.0.join(NVRTC)).env("ZYX_CUBLASLT", self.0.join(BLAS));
        process.env("HOME", "/nowhere").env("XDG_CACHE_HOME", self.0.join("cache"));
        process.env("ZYX_CACHE_DIR", "");
        for name in ["PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"] {
            process.env_remove(name);
        }
        let output = process.output().unwrap();
        let [out, told] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{fails}: {:?}\n{out}\n{told}", output.status);
        assert!(!told.contains("panicked"), "{fails}: {out}\n{told}");
        assert!(out.contains("\ndone") != out.contains("\nerror "), "{fails}: {out}\n{told}");
        out.into_owned()
    }
}

/// All of what an error has to say.
fn says(out: &str, words: &[&str]) {
    let error = out.lines().skip_while(|line| !line.starts_with("error "));
    let error = error.take_while(|line| !line.starts_with("test ")).collect::<Vec<_>>().join("\n");
    for word in words {
        assert!(error.contains(word), "{word:?} is missing in {out}");
    }
}

/// Names of a source's functions.
fn functions(source: &str) -> Vec<&str> {
    let starts = source.lines().filter_map(|line| line.strip_prefix("FUNCTION("));
    starts.map(|line| line.split(',').next().unwrap()).collect()
}

/// Whether the machine has a library of NVIDIA's in a place that no variable hides. That one then has
/// to be used in place of one that is damaged.
fn is_elsewhere(library: &str, test: &str) -> bool {
    let folder = Folder::whole(&format!("{test}-elsewhere"));
    folder.hide(library);
    let out = folder.run("");
    let found = match library {
        BLAS => out.contains("log cuBLASLt: "),
        _ => out.contains("\nopened"),
    };
    if found {
        let _ = writeln!(std::io::stderr(), "this machine has another {library}");
    }
    found
}

#[test]
fn libraries_that_work_are_used() {
    if !is_possible("libraries_that_work_are_used") {
        return;
    }
    let out = Folder::whole("work").run("");
    for word in ["\nopened", "\ndone", "log NVRTC 12.9: ", "log cuBLASLt: "] {
        assert!(out.contains(word), "{out}");
    }
    assert!(!out.contains("no graph") && !out.contains("cuBLASLt can"), "{out}");
}

#[test]
fn a_driver_that_cannot_be_loaded() {
    if !is_possible("a_driver_that_cannot_be_loaded") {
        return;
    }
    let folder = Folder::whole("driver-hidden");
    for name in [DRIVER, "libcuda.so"] {
        folder.hide(name);
    }
    says(&folder.run(""), &["no CUDA driver", DRIVER, "install NVIDIA's driver"]);
}

#[test]
fn no_driver() {
    if !is_possible("no_driver") {
        return;
    }
    // SAFETY: loading NVIDIA's driver runs its initialisers only.
    if unsafe { libloading::Library::new(DRIVER) }.is_ok() {
        // The test before hides it.
        return;
    }
    let folder = Folder::new("driver-absent");
    says(&folder.run(""), &["no CUDA driver", DRIVER, "No such file", "install NVIDIA's driver"]);
}

#[test]
fn a_driver_under_another_name() {
    if !is_possible("a_driver_under_another_name") {
        return;
    }
    let folder = Folder::whole("driver-name");
    folder.hide(DRIVER);
    folder.build("libcuda.so", DRIVER_C, &[]);
    assert!(folder.run("").contains("\ndone"));
    // What a toolkit has under this name.
    folder.build("libcuda.so", DRIVER_C, &["-DUNLISTED=34"]);
    says(&folder.run("*"), &["libcuda.so is one to link with", "install NVIDIA's driver"]);
}

#[test]
fn a_driver_without_functions() {
    if !is_possible("a_driver_without_functions") {
        return;
    }
    let folder = Folder::whole("driver-empty");
    folder.build(DRIVER, "", &[]);
    let damaged = "the CUDA driver's library (libcuda.so.1) is damaged or not NVIDIA's";
    says(&folder.run(""), &[damaged, "it lacks cuInit (", "reinstall NVIDIA's driver"]);
    folder.lacking(DRIVER, DRIVER_C, &["cuDriverGetVersion"]);
    says(&folder.run(""), &[damaged, "it lacks cuDriverGetVersion (1 function", "reinstall"]);
    for name in functions(DRIVER_C) {
        folder.lacking(DRIVER, DRIVER_C, &[name]);
        let out = folder.run("");
        match name.starts_with("cuGraph") {
            true => assert!(out.contains("\ndone"), "{name}: {out}"),
            false => says(&out, &[damaged, name, "reinstall NVIDIA's driver"]),
        }
    }
}

#[test]
fn a_driver_that_is_too_old() {
    if !is_possible("a_driver_that_is_too_old") {
        return;
    }
    let folder = Folder::whole("driver-old");
    let hidden = ["-DVERSION=11020", "-DcuMemAllocAsync=a", "-DcuGraphInstantiateWithFlags=b"];
    for options in [&hidden[..1], &hidden] {
        folder.build(DRIVER, DRIVER_C, options);
        let words =
            ["the CUDA driver is too old", "11.2", "11.4 or later", "install a newer driver"];
        says(&folder.run(""), &words);
    }
    // The oldest that is used has no graphs.
    let without = |name: &&str| name.starts_with("cuGraph") && name.ends_with("_v2");
    let names: Vec<_> = functions(DRIVER_C).into_iter().filter(without).collect();
    assert_eq!(names.len(), 3);
    let mut options: Vec<_> = names.iter().map(|f| format!("-D{f}=hidden_{f}")).collect();
    options.push("-DVERSION=11040".to_owned());
    folder.build(DRIVER, DRIVER_C, &options.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(folder.run("").contains("\ndone"));
}

/// Functions of the driver without which the job cannot be done: it is an error if one fails.
const NEEDED: [&str; 22] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
    "cuMemAllocAsync",
    "cuMemHostAlloc",
    "cuMemPoolSetAttribute",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuStreamCreate",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGraphLaunch",
];

#[test]
fn codes_of_the_driver_that_no_header_lists() {
    if !is_possible("codes_of_the_driver_that_no_header_lists") {
        return;
    }
    let folder = Folder::whole("driver-codes");
    let words = ["CUDA driver", UNLISTED, "reinstall NVIDIA's driver"];
    says(&folder.run("*"), &words);
    for name in functions(DRIVER_C) {
        let out = folder.run(name);
        match NEEDED.contains(&name) {
            true => says(&out, &words),
            false => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}

#[test]
fn a_compiler_that_cannot_be_used() {
    if !is_possible("a_compiler_that_cannot_be_used") {
        return;
    }
    let is_elsewhere = is_elsewhere(NVRTC, "nvrtc");
    let folder = Folder::whole("nvrtc");
    let check = |what: &[&str]| {
        let out = folder.run("");
        if is_elsewhere {
            return assert!(out.contains("\nopened"), "{out}");
        }
        let words = ["no NVRTC, CUDA's run-time compiler", "pip install nvidia-cuda-nvrtc"];
        says(&out, &[&words[..], &["ZYX_NVRTC", NVRTC], what].concat());
    };
    folder.hide(NVRTC);
    check(&["Tried:", "file too short"]);
    fs::remove_file(folder.0.join(NVRTC)).unwrap();
    check(&["Tried:", "No such file"]);
    folder.build(NVRTC, "", &[]);
    check(&["it is not NVRTC of CUDA 11.2 or later: it lacks nvrtcVersion (13 functions"]);
    for name in functions(NVRTC_C) {
        folder.lacking(NVRTC, NVRTC_C, &[name]);
        check(&["it is not NVRTC of CUDA 11.2 or later", name]);
    }
}

#[test]
fn codes_of_the_compiler_that_no_header_lists() {
    if !is_possible("codes_of_the_compiler_that_no_header_lists") {
        return;
    }
    let is_elsewhere = is_elsewhere(NVRTC, "nvrtc-codes");
    let folder = Folder::whole("nvrtc-codes");
    // With the first three it is not opened, and the last is only asked when something failed.
    let opening = ["nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs"];
    for name in functions(NVRTC_C) {
        let out = folder.run(name);
        let is_opening = opening.contains(&name);
        match name {
            _ if is_opening && is_elsewhere => assert!(out.contains("\nopened"), "{out}"),
            "nvrtcCreateProgram"
            | "nvrtcCompileProgram"
            | "nvrtcGetCUBINSize"
            | "nvrtcGetCUBIN" => {
                says(&out, &[&format!("{name} of NVRTC: error {UNLISTED}"), "ZYX_NVRTC"]);
            }
            _ if is_opening => says(&out, &[name, UNLISTED, "ZYX_NVRTC", "pip install"]),
            _ => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}

#[test]
fn a_blas_that_cannot_be_used() {
    if !is_possible("a_blas_that_cannot_be_used") {
        return;
    }
    let is_elsewhere = is_elsewhere(BLAS, "blas");
    let folder = Folder::whole("blas");
    let check = |fails: &str, what: &[&str]| {
        // Generated code computes the products then.
        let out = folder.run(fails);
        assert!(out.contains("\ndone"), "{out}");
        if !is_elsewhere {
            let words = ["no cuBLASLt can be used", "pip install nvidia-cublas", "ZYX_CUBLASLT"];
            for word in words.iter().chain(what) {
                assert!(out.contains(word), "{word:?} is missing in {out}");
            }
        }
    };
    check("cublasLtCreate", &["cublasLtCreate: status 987654"]);
    folder.hide(BLAS);
    check("", &["Tried:", "file too short"]);
    fs::remove_file(folder.0.join(BLAS)).unwrap();
    check("", &["Tried:", "No such file"]);
    folder.build(BLAS, "", &[]);
    check("", &["it is not cuBLASLt of CUDA 11 or later", "(12 functions in all)"]);
    for name in functions(BLAS_C) {
        folder.lacking(BLAS, BLAS_C, &[name]);
        check("", &["it is not cuBLASLt of CUDA 11 or later", name]);
    }
}

#[test]
fn codes_of_a_blas_that_no_header_lists() {
    if !is_possible("codes_of_a_blas_that_no_header_lists") {
        return;
    }
    let folder = Folder::whole("blas-codes");
    let names = functions(BLAS_C);
    // A product that the library refuses is computed by generated code, unless it was promised.
    for name in names.into_iter().chain(["state"]) {
        let out = folder.run(name);
        match name {
            "cublasLtMatmul" => {
                says(&out, &["cublasLtMatmul of cuBLASLt", UNLISTED, "ZYX_CUBLASLT"])
            }
            _ => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}
