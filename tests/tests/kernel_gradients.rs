//! Gradient rules of kernels that are wrong: errors at the line that gave the rule.

use zyx_core::kernel::{Kernel, Lang};
use zyx_core::{DType, Device, Error, Result, Runtime, Tensor};
use zyx_tests::cases::kernels::gallery;

/// The CPU and another device.
fn devices() -> [Device; 2] {
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    ["cpu", "reference"].map(|spec| runtime.device(spec).expect("every build has it"))
}

/// `y = weight[i] * x * x` and `z = 3 x`, where `i` is an input of integers.
fn powers() -> Kernel {
    Kernel::new("powers", |k: &Lang| {
        let [n, weights] = k.sizes(["n", "weights"]);
        let (x, weight) = (k.input("x", [n]), k.input("weight", [weights]));
        let numbers = k.input("numbers", [n]);
        let [y, z] = ["y", "z"].map(|name| k.output(name, [n], x.dtype()));
        let count = k.output("count", [n], DType::I32);
        k.each(n, |i| {
            y.set(i, weight.at(numbers.at(i)) * x.at(i) * x.at(i));
            z.set(i, x.at(i) * 3.0);
            count.set(i, numbers.at(i) + 1);
        });
    })
}

/// Its inputs in a dtype.
fn inputs_of_powers(dtype: DType, device: &Device) -> Result<[Tensor; 3]> {
    let x = Tensor::new([0.5f32, -1.25, 2.0, 0.75], device)?.cast(dtype);
    let weight = Tensor::new([3f32, -0.5], device)?.cast(dtype);
    Ok([x, weight, Tensor::new([0i32, 1, 1, 0], device)?])
}

/// The cotangents of `x` and `weight` for output 0, times a factor.
fn of_y(x: &[Tensor], dy: &Tensor, factor: f64) -> Result<[Tensor; 2]> {
    let [x, weight, numbers] = x else { unreachable!("the kernel has three inputs") };
    let dx = dy * x * 2.0 * weight.gather(0, numbers)? * factor;
    Ok([dx, weight.zeros_like().scatter_add(0, numbers, &(dy * x * x))?])
}

/// `powers` whose gradients of the outputs are multiplied by factors, without that of `weight` if `is_short`.
#[track_caller]
fn with_factors(factors: [f64; 2], is_short: bool) -> Kernel {
    powers().with_gradient(move |of| {
        if of.number == 1 {
            return Ok(vec![Some(of.cotangent * 3.0 * factors[1]), None, None]);
        }
        let [dx, dweight] = of_y(of.inputs, of.cotangent, factors[0])?;
        Ok(vec![Some(dx), (!is_short).then_some(dweight), None])
    })
}

#[track_caller]
fn assert_at(error: &Error, kernel: &str, line: u32, words: &str) {
    let Error::Kernel(error) = error else { panic!("{error}") };
    assert_eq!((&*error.kernel, &*error.site.file, error.site.line), (kernel, file!(), line));
    assert!(error.reason.contains(words), "{error}");
}

#[test]
fn cotangents_that_do_not_fit_are_errors_at_the_rule() -> Result<()> {
    let [device, other] = devices();
    let double = Kernel::new("double", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        k.each(n, |i| y.set(i, x.at(i) * 2.0));
    });
    let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    let ones = |shape: &[usize], dtype, device| Tensor::ones(shape, dtype, device);
    let cases = [
        (vec![], "1, not 0"),
        (vec![x.detach(), x.detach()], "1, not 2"),
        (vec![ones(&[2, 1], DType::F32, &device)], "f32 [2, 1] on cpu:0 for input 0"),
        (vec![ones(&[2], DType::F64, &device)], "f64 [2] on cpu:0 for input 0"),
        (vec![ones(&[2], DType::F32, &other)], "f32 [2] on reference:0 for input 0"),
    ];
    for (given, words) in cases {
        let rule = move || Ok(given.iter().cloned().map(Some).collect());
        let (wrong, line) = (double.with_gradient(move |_| rule()), line!());
        let error = wrong.call(&[&x])?.sum(..)?.grad(&[&x]).expect_err(words);
        assert_at(&error, "double", line, words);
        let error = wrong.check_gradient(&[&x]).expect_err(words);
        assert_at(&error, "double", line, words);
    }
    Ok(())
}

#[test]
fn right_rules_pass_the_check() -> Result<()> {
    for device in &devices() {
        for dtype in [DType::F32, DType::F64] {
            let [x, weight, numbers] = inputs_of_powers(dtype, device)?;
            with_factors([1.0, 1.0], false).check_gradient(&[&x, &weight, &numbers])?;
            // The rule gets inputs of one shape.
            let gate = x.reshape([2, 2])?;
            gallery::gated::gated().check_gradient(&[&gate, &weight])?;
        }
        // Quotients of large values round more.
        let large = Tensor::new([2000f32, -3000.0, 1000.0, 4.0], device)?;
        let [_, weight, numbers] = inputs_of_powers(DType::F32, device)?;
        with_factors([1.0, 1.0], false).check_gradient(&[&large, &weight, &numbers])?;
    }
    Ok(())
}

#[test]
fn wrong_values_are_errors_at_the_rule() -> Result<()> {
    let [device, _] = devices();
    for (dtype, factor) in [(DType::F32, 1.01), (DType::F64, 1.00001)] {
        let [x, weight, numbers] = inputs_of_powers(dtype, &device)?;
        let cases = [
            ([factor, 1.0], false, "output 0, input 0, element"),
            ([1.0, factor], false, "output 1, input 0, element"),
            ([1.0, 1.0], true, "output 0, input 1, element 0: gradient 0, quotient"),
        ];
        for (factors, is_short, words) in cases {
            let (wrong, line) = (with_factors(factors, is_short), line!());
            let error = wrong.check_gradient(&[&x, &weight, &numbers]).expect_err(words);
            assert_at(&error, "powers", line, words);
        }
    }
    Ok(())
}

/// `y = x` in a dtype, with a rule that is not reached.
fn cast_to(dtype: DType) -> Kernel {
    let cast = Kernel::new("cast", move |k: &Lang| {
        let n = k.size("n");
        let (x, y) = (k.input("x", [n]), k.output("y", [n], dtype));
        k.each(n, |i| y.set(i, x.at(i).cast(dtype)));
    });
    cast.with_gradient(|_| unreachable!("there is nothing to check"))
}

#[test]
fn checks_without_a_gradient_say_what_is_missing() -> Result<()> {
    let [device, _] = devices();
    let [x, weight, numbers] = inputs_of_powers(DType::F32, &device)?;
    let half = x.cast(DType::F16);
    let narrow = cast_to(DType::I32);
    let cases: [(&Kernel, &[&Tensor], &str); 5] = [
        (&powers(), &[&x, &weight, &numbers], "`powers`: it has no rule"),
        (&narrow, &[&numbers], "needs an input of f32 or f64"),
        (&narrow, &[&half], "needs an input of f32 or f64"),
        (&narrow, &[&x], "no output holds floats"),
        (&cast_to(DType::F64), &[&x], "the result must hold f32"),
    ];
    for (kernel, inputs, words) in cases {
        let (error, line) = (kernel.check_gradient(inputs).expect_err(words).to_string(), line!());
        assert!(error.contains(words), "{error}");
        assert!(error.contains(&format!("{}:{line}:", file!())), "{error}");
    }
    Ok(())
}
