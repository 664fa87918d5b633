//! Kernels that users write: CUDA C++ compiles for every generation, PTX is assembled, and code that is not as
//! declared is refused, all without a GPU.

use super::assembler::assembler;
use super::{ARCHS, compiler};
use zyx_backend_cuda::check_entry;
use zyx_core::hal::{Language, RawSource};
use zyx_tests::device::raw::sources::{
    BROKEN_LINE, axpy, broken, kernel, reverse, scalars, variants,
};
use zyx_tests::device::raw::{CHANGES, Change};

/// Changes that the compiler alone finds, before any device is known.
fn found_by_compiler() -> impl Iterator<Item = &'static Change> {
    let of_devices = ["zero bytes", "threads", "alignment 48", "shared"];
    CHANGES.iter().filter(move |change| !of_devices.contains(&change.1))
}

#[test]
fn raw_cuda_c_compiles_or_is_refused() {
    let Some(nvrtc) = compiler("raw_cuda_c_compiles_or_is_refused") else { return };
    let sources = [Some(axpy(Language::CudaC)), scalars(Language::CudaC), reverse(Language::CudaC)];
    for source in sources.into_iter().flatten() {
        for arch in ARCHS {
            let code = nvrtc.raw(&kernel(source.clone()), arch);
            assert!(!code.unwrap_or_else(|error| panic!("sm_{arch}: {error}")).is_empty());
        }
    }
    for (code, about) in variants(Language::CudaC) {
        let source = RawSource { code: code.into(), ..axpy(Language::CudaC) };
        let error = nvrtc.raw(&kernel(source), ARCHS[0]).unwrap_err().to_string();
        assert!(error.contains(about), "{error}");
    }
    let error = nvrtc.raw(&kernel(broken(Language::CudaC)), ARCHS[0]).unwrap_err().to_string();
    assert!(error.contains(&format!("({BROKEN_LINE}): error")), "{error}");
    for (change, about) in found_by_compiler() {
        let mut source = axpy(Language::CudaC);
        change(&mut source);
        let error = nvrtc.raw(&kernel(source), ARCHS[0]).unwrap_err().to_string();
        assert!(error.contains(about) && error.contains("axpy"), "{error}");
    }
}

#[test]
fn raw_ptx_is_assembled_or_refused() {
    let text = |source: &[u8]| String::from_utf8(source.to_vec()).unwrap();
    let source = axpy(Language::Ptx);
    check_entry(&kernel(source.clone()), &text(&source.code)).unwrap();
    for (change, about) in found_by_compiler() {
        let mut changed = source.clone();
        change(&mut changed);
        let error = check_entry(&kernel(changed), &text(&source.code)).unwrap_err().to_string();
        assert!(error.contains(about) && error.contains("axpy"), "{error}");
    }
    for (code, about) in variants(Language::Ptx) {
        let error = check_entry(&kernel(source.clone()), &text(&code)).unwrap_err().to_string();
        assert!(error.contains(about), "{error}");
    }
    let Some(assembler) = assembler("raw_ptx_is_assembled_or_refused") else { return };
    for arch in ARCHS {
        assembler.run(&text(&source.code), arch).unwrap_or_else(|log| panic!("sm_{arch}: {log}"));
    }
    let log = assembler.run(&text(&broken(Language::Ptx).code), ARCHS[0]).unwrap_err();
    assert!(log.contains(&format!("line {BROKEN_LINE}")), "{log}");
}
