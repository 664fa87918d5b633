//! NVIDIA's libraries in every state they may be found in, without a GPU: hidden, empty, incomplete,
//! too old, and returning codes that no header lists. Each state is a process of its own, which does
//! a small job; it ends in an error that says what to do, or works without what it lacks, and never in
//! a panic or a signal.
//!
//! The C compiler makes libraries that stand in for the driver, NVRTC, cuBLASLt and cuDNN. Where there is none,
//! tests skip themselves by name; in CI and with `cc` among the words of `ZYX_REQUIRE` that is a failure.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use std::env;
use std::ffi::OsStr;
use std::fs;
use zyx_backend_cuda::Cuda;
use zyx_core::hal::{
    Backend, Call, ContractDim, ContractSpec, ConvolutionAxis, ConvolutionSpec, Convolved, Device,
};
use zyx_core::{Conv2dOptions, DType, Result, Runtime, Tensor};
use zyx_tests::stubs::{Folder, alone, is_alone};

const DRIVER: &str = "libcuda.so.1";
const NVRTC: &str = "libnvrtc.so";
const BLAS: &str = "libcublasLt.so";
const DNN: &str = "libcudnn.so";

/// What they are made of.
const HEADER: &str = include_str!("stub.h");
const DRIVER_C: &str = include_str!("driver.c");
const NVRTC_C: &str = include_str!("nvrtc.c");
const BLAS_C: &str = include_str!("cublaslt.c");
const DNN_C: &str = include_str!("cudnn.c");

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

/// A product and a convolution that are large enough for libraries, so often that the launches become
/// a graph.
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
    let kernel = Tensor::from_slice(&vec![1f32; 64 * 64 * 9], [64, 64, 3, 3], &device)?;
    for _ in 0..4 {
        let x = weights.reshape([1, 64, 64, 64])?;
        x.conv2d(&kernel, None, Conv2dOptions::default())?.tanh().sum(1)?.to_vec::<f32>()?;
    }
    device.synchronize()
}

/// Tells the ways that the libraries have for a product too small to be given to one, and for a
/// convolution.
fn ways() -> Result<()> {
    let device = Cuda::default().open(0)?;
    let f = DType::F32;
    let dim = |len, a, b, c| ContractDim { len, a, b, c };
    let product = Call::contract(ContractSpec {
        a: f,
        b: f,
        c: f,
        acc: f,
        bias: false,
        offset: [0, 0],
        batch: Vec::new(),
        m: vec![dim(8, 8, 0, 8)],
        n: vec![dim(8, 0, 1, 1)],
        k: vec![dim(8, 1, 8, 0)],
    });
    let axis =
        ConvolutionAxis { image: 8, kernel: 3, result: 6, stride: 1, dilation: 1, before: 0 };
    let convolution = Call::Convolve(ConvolutionSpec {
        computes: Convolved::Result,
        operands: f,
        computed: f,
        images: 1,
        groups: 1,
        channels: 1,
        outputs: 1,
        axes: vec![axis],
        strides: [vec![0, 0, 0, 1], vec![0, 0, 0, 1], vec![0, 0, 0, 1]],
        offsets: [0; 3],
    });
    for call in [product, convolution] {
        let names = (0..9).map_while(|way| device.library_way(&call, way)).map(|way| way.0);
        let names = names.collect::<Vec<_>>().join(", ");
        println!("ways of {}: {names}; {}", call.name(), device.library(&call).is_some());
    }
    Ok(())
}

/// What the processes below do.
#[test]
fn job_of_a_process() {
    if !is_alone() {
        return;
    }
    // Ends the line on which the test is named.
    println!("job");
    log::set_logger(&Printer).unwrap();
    log::set_max_level(log::LevelFilter::Debug);
    let told = env::var("STUB_FAILS").unwrap_or_default();
    match job().and_then(|()| if told.is_empty() { ways() } else { Ok(()) }) {
        Ok(()) => println!("done"),
        Err(error) => println!("error {error}"),
    }
}

/// Compiles a library with lines before its source.
fn build(folder: &Folder, library: &str, source: &str, before: &str) {
    folder.library(library, &format!("{before}{HEADER}{source}"));
}

/// Lines that take some functions from a library.
fn hidden(functions: &[&str]) -> String {
    functions.iter().map(|f| format!("#define {f} hidden_{f}\n")).collect()
}

/// A folder with all libraries as they should be, where there is a C compiler.
fn whole() -> Option<Folder> {
    let folder = Folder::new()?;
    let sources = [(DRIVER, DRIVER_C), (NVRTC, NVRTC_C), (BLAS, BLAS_C), (DNN, DNN_C)];
    for (library, source) in sources {
        build(&folder, library, source, "");
    }
    Some(folder)
}

/// Makes a library a file that cannot be loaded, which also hides others of its name.
fn hide(folder: &Folder, library: &str) {
    fs::write(folder.path().join(library), "not a library").unwrap();
}

/// What the job says in a process that finds its libraries in a folder, with one function failing.
fn run(folder: &Folder, fails: &str) -> String {
    run_with(folder, fails, "")
}

/// The same with the compiler that `ZYX_CUDA` names.
fn run_with(folder: &Folder, fails: &str, compiler: &str) -> String {
    let path = folder.path();
    let (nvrtc, blas, cache) = (path.join(NVRTC), path.join(BLAS), path.join("cache"));
    let dnn = path.join(DNN);
    let mut variables = vec![
        ("STUB_FAILS", OsStr::new(fails)),
        ("LD_LIBRARY_PATH", path.as_os_str()),
        ("ZYX_CUDA", OsStr::new(compiler)),
        ("ZYX_NVRTC", nvrtc.as_os_str()),
        ("ZYX_CUBLASLT", blas.as_os_str()),
        ("ZYX_CUDNN", dnn.as_os_str()),
        ("XDG_CACHE_HOME", cache.as_os_str()),
        ("ZYX_CACHE_DIR", OsStr::new("")),
    ];
    let elsewhere = ["HOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_PATH", "CUDA_HOME"];
    variables.extend(elsewhere.map(|name| (name, OsStr::new("/nowhere"))));
    let told = alone("job_of_a_process", &variables);
    assert!(told.contains("\ndone") != told.contains("\nerror "), "{fails}: {told}");
    told
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
/// to be used in place of one that is damaged, which is made here.
fn is_elsewhere(folder: &Folder, library: &str) -> bool {
    hide(folder, library);
    let out = run_with(folder, "", if library == NVRTC { "nvrtc" } else { "" });
    let found = match library {
        BLAS => out.contains("log cuBLASLt: "),
        DNN => out.contains("log cuDNN: "),
        _ => out.contains("\nopened"),
    };
    if found {
        eprintln!("this machine has another {library}");
    }
    found
}

#[test]
fn libraries_that_work_are_used() {
    let Some(folder) = whole() else { return };
    let out = run(&folder, "");
    for word in ["\nopened", "\ndone", "log cuBLASLt: ", "log cuDNN: "] {
        assert!(out.contains(word), "{out}");
    }
    assert!(!out.contains("NVRTC"), "{out}");
    assert!(run_with(&folder, "", "nvrtc").contains("log NVRTC 12.9: "), "{out}");
    says(&run_with(&folder, "", "nvcc"), &["ZYX_CUDA is `nvcc`", "it may be `nvrtc`"]);
    assert!(!out.contains("no graph") && !out.contains("cuBLASLt can"), "{out}");
    assert!(!out.contains("cuDNN can") && !out.contains("cuDNN has nothing"), "{out}");
}

#[test]
fn libraries_have_several_ways() {
    let Some(folder) = whole() else { return };
    let out = run(&folder, "");
    let zeros = ".0".repeat(7);
    for ways in [
        format!("ways of contract_1x8x8x8_f32_f32: 0{zeros}., 1{zeros}., 2{zeros}.; false"),
        "_8k3s1d1_f32_f32: CUDNN_HEUR_MODE_A 0 engine 0, CUDNN_HEUR_MODE_FALLBACK 0 engine 0; true"
            .to_owned(),
    ] {
        assert!(out.contains(&ways), "{ways:?} is missing in {out}");
    }
}

#[test]
fn a_driver_that_cannot_be_loaded() {
    let Some(folder) = whole() else { return };
    for name in [DRIVER, "libcuda.so"] {
        hide(&folder, name);
    }
    says(&run(&folder, ""), &["no CUDA driver", DRIVER, "install NVIDIA's driver"]);
}

#[test]
fn no_driver() {
    // SAFETY: loading NVIDIA's driver runs its initialisers only.
    if unsafe { libloading::Library::new(DRIVER) }.is_ok() {
        // The test before hides it.
        return;
    }
    let Some(folder) = Folder::new() else { return };
    says(&run(&folder, ""), &["no CUDA driver", DRIVER, "No such file", "install NVIDIA's driver"]);
}

#[test]
fn a_driver_under_another_name() {
    let Some(folder) = whole() else { return };
    hide(&folder, DRIVER);
    build(&folder, "libcuda.so", DRIVER_C, "");
    assert!(run(&folder, "").contains("\ndone"));
    // What a toolkit has under this name.
    build(&folder, "libcuda.so", DRIVER_C, "#define UNLISTED 34\n");
    says(&run(&folder, "*"), &["libcuda.so is one to link with", "install NVIDIA's driver"]);
}

#[test]
fn a_driver_without_functions() {
    let Some(folder) = whole() else { return };
    folder.library(DRIVER, "");
    let damaged = "the CUDA driver's library (libcuda.so.1) is damaged or not NVIDIA's";
    says(&run(&folder, ""), &[damaged, "it lacks cuInit (", "reinstall NVIDIA's driver"]);
    build(&folder, DRIVER, DRIVER_C, &hidden(&["cuDriverGetVersion"]));
    says(&run(&folder, ""), &[damaged, "it lacks cuDriverGetVersion (1 function", "reinstall"]);
    for name in functions(DRIVER_C) {
        build(&folder, DRIVER, DRIVER_C, &hidden(&[name]));
        let out = run(&folder, "");
        match name.starts_with("cuGraph") {
            true => assert!(out.contains("\ndone"), "{name}: {out}"),
            false => says(&out, &[damaged, name, "reinstall NVIDIA's driver"]),
        }
    }
}

#[test]
fn a_driver_that_is_too_old() {
    let Some(folder) = whole() else { return };
    for newer in [&[][..], &["cuMemAllocAsync", "cuGraphInstantiateWithFlags"]] {
        let before = hidden(newer) + "#define VERSION 11020\n";
        build(&folder, DRIVER, DRIVER_C, &before);
        let words =
            ["the CUDA driver is too old", "11.2", "11.4 or later", "install a newer driver"];
        says(&run(&folder, ""), &words);
    }
    // The oldest that is used has no graphs.
    let without = |name: &&str| name.starts_with("cuGraph") && name.ends_with("_v2");
    let names: Vec<_> = functions(DRIVER_C).into_iter().filter(without).collect();
    assert_eq!(names.len(), 4);
    build(&folder, DRIVER, DRIVER_C, &(hidden(&names) + "#define VERSION 11040\n"));
    assert!(run(&folder, "").contains("\ndone"));
}

/// Functions of the driver without which the job cannot be done: it is an error if one fails.
const NEEDED: [&str; 25] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetDefaultMemPool",
    "cuDevicePrimaryCtxRetain",
    "cuCtxSetCurrent",
    "cuLinkCreate_v2",
    "cuLinkAddData_v2",
    "cuLinkComplete",
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
    let Some(folder) = whole() else { return };
    let words = ["CUDA driver", UNLISTED, "reinstall NVIDIA's driver"];
    says(&run(&folder, "*"), &words);
    for name in functions(DRIVER_C) {
        let out = run(&folder, name);
        match NEEDED.contains(&name) {
            true => says(&out, &words),
            false => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}

#[test]
fn a_compiler_that_cannot_be_used() {
    let Some(folder) = whole() else { return };
    let is_elsewhere = is_elsewhere(&folder, NVRTC);
    let check = |what: &[&str]| {
        let out = run_with(&folder, "", "nvrtc");
        if is_elsewhere {
            return assert!(out.contains("\nopened"), "{out}");
        }
        let words = ["no NVRTC, CUDA's run-time compiler", "pip install nvidia-cuda-nvrtc"];
        says(&out, &[&words[..], &["ZYX_NVRTC", NVRTC], what].concat());
    };
    hide(&folder, NVRTC);
    check(&["Tried:", "file too short"]);
    fs::remove_file(folder.path().join(NVRTC)).unwrap();
    check(&["Tried:", "No such file"]);
    folder.library(NVRTC, "");
    check(&["it is not NVRTC of CUDA 11.2 or later: it lacks nvrtcVersion (13 functions"]);
    for name in functions(NVRTC_C) {
        build(&folder, NVRTC, NVRTC_C, &hidden(&[name]));
        check(&["it is not NVRTC of CUDA 11.2 or later", name]);
    }
}

#[test]
fn codes_of_the_compiler_that_no_header_lists() {
    let Some(folder) = whole() else { return };
    let is_elsewhere = is_elsewhere(&folder, NVRTC);
    build(&folder, NVRTC, NVRTC_C, "");
    // With the first three it is not opened, and the last is only asked when something failed.
    let opening = ["nvrtcVersion", "nvrtcGetNumSupportedArchs", "nvrtcGetSupportedArchs"];
    for name in functions(NVRTC_C) {
        let out = run_with(&folder, name, "nvrtc");
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
    let Some(folder) = whole() else { return };
    let is_elsewhere = is_elsewhere(&folder, BLAS);
    build(&folder, BLAS, BLAS_C, "");
    let check = |fails: &str, what: &[&str]| {
        // Generated code computes the products then.
        let out = run(&folder, fails);
        assert!(out.contains("\ndone"), "{out}");
        if !is_elsewhere {
            let words = ["no cuBLASLt can be used", "pip install nvidia-cublas", "ZYX_CUBLASLT"];
            for word in words.iter().chain(what) {
                assert!(out.contains(word), "{word:?} is missing in {out}");
            }
        }
    };
    check("cublasLtCreate", &["cublasLtCreate: status 987654"]);
    hide(&folder, BLAS);
    check("", &["Tried:", "file too short"]);
    fs::remove_file(folder.path().join(BLAS)).unwrap();
    check("", &["Tried:", "No such file"]);
    folder.library(BLAS, "");
    check("", &["it is not cuBLASLt of CUDA 11 or later", "(12 functions in all)"]);
    for name in functions(BLAS_C) {
        build(&folder, BLAS, BLAS_C, &hidden(&[name]));
        check("", &["it is not cuBLASLt of CUDA 11 or later", name]);
    }
}

#[test]
fn codes_of_a_blas_that_no_header_lists() {
    let Some(folder) = whole() else { return };
    let names = functions(BLAS_C);
    // A product that the library refuses is computed by generated code, unless it was promised.
    for name in names.into_iter().chain(["state"]) {
        let out = run(&folder, name);
        match name {
            "cublasLtMatmul" => {
                says(&out, &["cublasLtMatmul of cuBLASLt", UNLISTED, "ZYX_CUBLASLT"])
            }
            _ => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}

#[test]
fn a_dnn_that_cannot_be_used() {
    let Some(folder) = whole() else { return };
    let is_elsewhere = is_elsewhere(&folder, DNN);
    build(&folder, DNN, DNN_C, "");
    let check = |fails: &str, what: &[&str]| {
        // Generated code computes the convolutions then.
        let out = run(&folder, fails);
        assert!(out.contains("\ndone"), "{out}");
        if !is_elsewhere {
            let words = ["no cuDNN can be used", "pip install nvidia-cudnn", "ZYX_CUDNN"];
            for word in words.iter().chain(what) {
                assert!(out.contains(word), "{word:?} is missing in {out}");
            }
        }
    };
    check("cudnnCreate", &["cudnnCreate: status 987654"]);
    hide(&folder, DNN);
    check("", &["Tried:", "file too short"]);
    fs::remove_file(folder.path().join(DNN)).unwrap();
    check("", &["Tried:", "No such file"]);
    folder.library(DNN, "");
    check("", &["it is not cuDNN 8 or later", "(8 functions in all)"]);
    for name in functions(DNN_C) {
        build(&folder, DNN, DNN_C, &hidden(&[name]));
        check("", &["it is not cuDNN 8 or later", name]);
    }
}

#[test]
fn codes_of_a_dnn_that_no_header_lists() {
    let Some(folder) = whole() else { return };
    // A convolution that the library refuses is computed by generated code, unless it was promised.
    for name in functions(DNN_C) {
        let out = run(&folder, name);
        match name {
            "cudnnSetStream" | "cudnnBackendExecute" => {
                says(&out, &["cuDNN", UNLISTED, "ZYX_CUDNN"])
            }
            _ => assert!(out.contains("\ndone"), "{name}: {out}"),
        }
    }
}
