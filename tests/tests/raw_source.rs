//! Tests of what `Kernel::with_raw` refuses, by SPIR-V on Vulkan. The conformance suite runs code in every language (`kernels::code_of_one_backend`).

use zyx_backend_vulkan::Vulkan;
use zyx_core::hal::{Language, RawSource};
use zyx_core::ir::Access;
use zyx_core::kernel::{Kernel, RawLaunch, Val};
use zyx_core::{DType, Device, Error, Result, Runtime, Scalar, Tensor};
use zyx_tests::device::raw::sources::{axpy, broken, kernel, with_code, with_launch};

fn device(test: &str) -> Option<Device> {
    zyx_tests::harness::device("vulkan", test, |runtime| runtime.register(Vulkan::default()))
}

/// Small integers, of which results are exact.
fn numbers(n: usize, device: &Device) -> Result<(Tensor, Vec<f32>)> {
    let x: Vec<f32> = (0..n).map(|i| (i * 7 % 23) as f32 - 11.0).collect();
    Ok((Tensor::from_slice(&x, [n], device)?, x))
}

#[test]
fn declarations_that_do_not_fit_the_kernel_are_errors() -> Result<()> {
    let Some(device) = device("declarations_that_do_not_fit_the_kernel_are_errors") else {
        return Ok(());
    };
    let (x, values) = numbers(70, &device)?;
    let source = axpy(Language::SpirV);
    let changed = |change: fn(&mut RawSource)| {
        let mut source = source.clone();
        change(&mut source);
        with_code(source)
    };
    let buffers = "declare f32 `x`, f32 `y`, in this order; inputs are read, others written";
    let unknown = with_launch(source.clone(), |size| RawLaunch {
        groups: [1; 3],
        scalars: vec![Scalar::from(3f32), Scalar::from(size("m") as u32)],
    });
    let cases = [
        (changed(|source| source.params.push(source.params[0])), buffers),
        (changed(|source| source.params.truncate(1)), buffers),
        (changed(|source| source.params[0].dtype = DType::I32), buffers),
        (changed(|source| source.params[0].access = Access::ReadWrite), buffers),
        (changed(|source| source.params[1].access = Access::Read), buffers),
        (changed(|source| source.vars.push(DType::I32)), "launched with [F32, U32]"),
        (changed(|source| source.vars.truncate(1)), "launched with [F32, U32]"),
        (changed(|source| source.vars[1] = DType::I32), "launched with [F32, U32]"),
        (unknown, "asks for the size `m`: the sizes are [\"n\"]"),
    ];
    for (wrong, words) in cases {
        let (error, line) = (wrong.call(&[&x]).expect_err(words), line!());
        assert!(matches!(error, Error::Argument { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("kernel `portable`") && error.contains("`axpy`"), "{error}");
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&format!("{}:{line}:", file!())), "{error}");
    }
    // The declaration fits inputs of one dtype.
    let error = with_code(source.clone()).call(&[&x.cast(DType::I32)]).expect_err("it has floats");
    assert!(error.to_string().contains("declare i32 `x`, i32 `y`"), "{error}");
    // A module that the backend refuses is an error where results are read, and the device goes on.
    let error = with_code(broken(Language::SpirV)).call(&[&x])?.to_vec::<f32>();
    let error = error.expect_err("its last instructions are missing").to_string();
    assert!(error.contains("axpy") && error.contains("malformed module"), "{error}");
    let expected: Vec<f32> = values.iter().map(|x| 4.0 * x).collect();
    assert_eq!(with_code(source).call(&[&x])?.to_vec::<f32>()?, expected);
    Ok(())
}

#[test]
fn a_function_of_elements_has_no_launch_to_replace() -> Result<()> {
    let device = Runtime::default().device("reference")?;
    let (x, _) = numbers(3, &device)?;
    let double = Kernel::elementwise("double", |x: &[Val]| x[0] + x[0]);
    let launch = |_: &dyn Fn(&str) -> usize| RawLaunch { groups: [1; 3], scalars: Vec::new() };
    let raw = double.with_raw(kernel(axpy(Language::OpenClC)), launch);
    for found in [raw.call(&[&x]).map(|_| ()), raw.check(&[&x])] {
        let error = found.expect_err("its code would not run").to_string();
        assert!(
            error.contains("kernel `double`") && error.contains("use `Kernel::new`"),
            "{error}"
        );
        assert!(error.contains(file!()), "{error}");
    }
    double.call(&[&x])?.realize()
}
