//! Compilers as a gate that needs no GPU: what the emitters write, PTX and CUDA C++, becomes machine code for three
//! generations of hardware.
//!
//! Skipped, by name, where NVRTC and nvJitLink cannot be found; `scripts/install-drivers.sh nvrtc` installs
//! them into a folder these tests look in. With `nvrtc` among the words of `ZYX_REQUIRE` their
//! absence is a failure.
//!
//! * The golden kernels, each for every architecture.
//! * Random kernels over all dtypes, ops and widths of vectors.
//! * All kernels of the conformance suite as PTX; see `suite`.
//! * Registers, stack and spills of every kernel, as tables in `target/tmp`; no golden kernel may
//!   spill.
#![allow(clippy::unwrap_used, reason = "tests")]

mod assembler;
mod attention;
mod convolutions;
mod raw;
mod suite;

use assembler::{assemble, assembler};
use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use zyx_backend_cuda::{Cuda, CudaDevice, Nvrtc, Resources};
use zyx_core::DType;
use zyx_core::ir::{Kernel, Op, verify_for};
use zyx_core::legalize::legalize;
use zyx_core::passes::samples;
use zyx_core::testing::{generate, rewritten};
use zyx_core::tune::optimize;
use zyx_tests::device::kernels::{KERNELS, kernel};

/// Turing, Ampere, Hopper with its own instructions.
const ARCHS: [&str; 3] = ["75", "80", "90a"];

/// Those of the architectures that have the instructions of a kernel.
fn archs(kernel: &Kernel) -> &'static [&'static str] {
    let any = |f: &dyn Fn(&Op) -> bool| kernel.ops().iter().any(f);
    let bf16 = |op: &Op| matches!(op, Op::Mma { a, .. } if kernel.ty(*a).dtype == DType::BF16);
    match () {
        () if any(&|op| matches!(op, Op::Panel { .. })) => &ARCHS[2..],
        () if any(&bf16) => &ARCHS[1..],
        () => &ARCHS,
    }
}

/// The compiler, or a word that the test is skipped.
fn compiler(test: &str) -> Option<&'static Nvrtc> {
    match Nvrtc::get() {
        Ok(nvrtc) => Some(nvrtc),
        Err(reason) => {
            missing(test, &reason);
            None
        }
    }
}

/// Says that a test is skipped, where it may be.
fn missing(test: &str, reason: &str) {
    let required = env::var("ZYX_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|word| word == "nvrtc"), "{reason}");
    let reason = reason.lines().next().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped {test}: {reason}");
}

fn golden() -> Vec<Kernel> {
    let legal = |name| legalize(&kernel(name), &Cuda::default().preset()).unwrap();
    KERNELS.iter().map(|(name, _)| legal(name)).collect()
}

/// What tables of resources hold.
const COLUMNS: &str = "arch kernel registers stack spills\n";

/// A line of such a table.
fn row(arch: &str, of: &Resources) -> String {
    let Resources { name, registers, stack, spills } = of;
    format!("sm_{arch} {name} {registers} {stack} {spills}\n")
}

/// Writes a table below the folder of build products.
fn record(name: &str, table: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cuda-resources");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), table).unwrap();
}

#[test]
fn golden_kernels_compile_and_do_not_spill() {
    let Some(nvrtc) = compiler("golden_kernels_compile_and_do_not_spill") else { return };
    let Some(assembler) = assembler("golden_kernels_compile_and_do_not_spill") else { return };
    let caps = Cuda::default().preset();
    let mut table = String::from(COLUMNS);
    let mut spilled = Vec::new();
    for kernel in golden() {
        let source = CudaDevice::cuda_c(&rewritten(&kernel).unwrap(), &caps).unwrap();
        for arch in archs(&kernel) {
            let entries = nvrtc.resources(kernel.name(), &source, arch);
            let mut entries = entries.unwrap_or_else(|error| panic!("sm_{arch}: {error}"));
            let assembled = assemble(assembler, &kernel, &caps, arch);
            entries.extend(assembled.unwrap_or_else(|error| panic!("sm_{arch}: {error}")));
            assert!(!entries.is_empty(), "sm_{arch} {}", kernel.name());
            for entry in entries {
                table += &row(arch, &entry);
                if entry.spills > 0 {
                    spilled.push(format!("sm_{arch} {}", entry.name));
                }
            }
        }
    }
    record("golden.txt", &table);
    assert!(spilled.is_empty(), "{spilled:?}\n{table}");
}

/// Random kernels over all dtypes, ops and widths of vectors.
#[test]
fn random_kernels_compile() {
    let Some(nvrtc) = compiler("random_kernels_compile") else { return };
    let Some(assembler) = assembler("random_kernels_compile") else { return };
    let caps = Cuda::default().preset();
    let mut wide = caps.clone();
    wide.compute = caps.storage;
    let options = generate::Options {
        dtypes: caps.storage,
        max_lanes: 4,
        masked: caps.masked,
        atomics: true,
        caps: wide,
        ..generate::Options::default()
    };
    for seed in 0..60 {
        let kernel = legalize(&generate::random_kernel(seed, &options), &caps).unwrap();
        let source = CudaDevice::cuda_c(&rewritten(&kernel).unwrap(), &caps).unwrap();
        let code = nvrtc.machine_code(kernel.name(), &source, "80");
        code.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let arch = ARCHS[seed as usize % ARCHS.len()];
        let assembled = assemble(assembler, &kernel, &caps, arch);
        assembled.unwrap_or_else(|error| panic!("seed {seed}, sm_{arch}: {error}"));
    }
}

/// Products of halves in the blocks that are chosen for large ones: with matrix instructions on
/// each generation that has them, and no sum leaves the registers.
#[test]
fn products_of_halves_use_matrix_instructions() {
    let Some(nvrtc) = compiler("products_of_halves_use_matrix_instructions") else { return };
    let Some(assembler) = assembler("products_of_halves_use_matrix_instructions") else { return };
    let caps = Cuda::default().preset();
    let layouts = [samples::halves, samples::halves_columns];
    for (product, n) in layouts.into_iter().flat_map(|f| [(f, 4096), (f, 1000)]) {
        for (dtype, archs) in [(DType::F16, &ARCHS[..]), (DType::BF16, &ARCHS[1..])] {
            let kernel = optimize(&product(dtype, [n, n, n]), &caps);
            let kernel = legalize(&kernel, &caps).unwrap();
            verify_for(&kernel, &caps).unwrap();
            assert!(kernel.ops().iter().any(|op| matches!(op, Op::Mma { .. })), "{n} {dtype}");
            let source = CudaDevice::cuda_c(&rewritten(&kernel).unwrap(), &caps).unwrap();
            for arch in archs {
                let mut entries = nvrtc.resources(kernel.name(), &source, arch).unwrap();
                entries.extend(assemble(assembler, &kernel, &caps, arch).unwrap());
                for entry in entries {
                    assert_eq!(entry.stack, 0, "sm_{arch} {n} {dtype}: {entry:?}");
                }
            }
        }
    }
}

#[test]
fn an_error_carries_log_and_source() {
    let Some(nvrtc) = compiler("an_error_carries_log_and_source") else { return };
    let error = nvrtc.machine_code("k", "int broken = nothing;", "80").unwrap_err();
    assert_eq!(error.kernel, "k");
    assert!(error.log.contains("\"nothing\" is undefined"), "{}", error.log);
    assert!(error.log.contains("int broken"), "{}", error.log);
    assert!(nvrtc.machine_code("k", "", "1").is_err());
}
