//! Tests of the extension: values stay equal, the laws of passes and rows hold, the tuner tries the pass and the row's parameters,
//! explanations name both.

use extension::{MAX_BEFORE_EXP, register, register_highest, swap};
use std::ffi::OsStr;
use std::time::Duration;
use zyx::internals::UnaryOp;
use zyx::internals::ir::Kernel;
use zyx::internals::passes::{Pass, Site};
use zyx::kernel::{self, Lang, Operation};
use zyx::{DType, Device, Result, Runtime, Tensor};
use zyx_core::passes::property_tests::check_pass;
use zyx_core::testing::check_row;
use zyx_tests::stubs;

/// A new device: tests share no registered passes and rows.
fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    runtime.device("cpu").expect("there is a CPU")
}

fn numbers(shape: &[usize], device: &Device) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let x: Vec<f32> = (0..n).map(|i| ((i * 7919 + 13) % 1031) as f32 / 8.0 - 64.0).collect();
    let x = Tensor::from_slice(&x, shape, device)?;
    x.realize()?;
    Ok(x)
}

/// Runs a test in another process, which keeps no results of searches on disk; returns whether this is that process.
fn is_alone(test: &str) -> bool {
    if !stubs::is_alone() {
        stubs::alone(test, &[("ZYX_CACHE_DIR", OsStr::new(""))]);
    }
    stubs::is_alone()
}

/// The largest of results of a function.
fn largest(x: &[Tensor], f: &dyn Fn(&Tensor) -> Tensor) -> Result<Tensor> {
    x[1..].iter().try_fold(f(&x[0]), |y, x| y.maximum(f(x)))
}

/// Maxima of two results of a function, as the IR has them.
fn maximum(op: &str) -> Kernel {
    let text = format!(
        "kernel maximum
        buffer 0 : f32[200] read
        buffer 1 : f32[200] read
        buffer 2 : f32[200] write
        %x param 0 read : f32
        %y param 1 read : f32
        %z param 2 write : f32
        %n const 200 : i64
        %i loop parallel %n
        %a load %x[%i] : f32
        %b load %y[%i] : f32
        %c {op} %a : f32
        %d {op} %b : f32
        %e max %c, %d : f32
        %s store %z[%i], %e : f32
        %f end %i"
    );
    text.parse().expect("it is a kernel")
}

/// A negation does not grow with its operand: the maximum of two is that of the smaller operand.
static WRONG: Pass = Pass {
    name: "max_before_neg",
    doc: "take the maximum of operands instead of negations, which is wrong",
    sites: |kernel, _| match swap(kernel, UnaryOp::Neg) == *kernel {
        true => Vec::new(),
        false => vec![Site::whole()],
    },
    apply: |kernel, _| swap(kernel, UnaryOp::Neg),
    ..MAX_BEFORE_EXP
};

#[test]
fn the_law_of_passes_holds_for_a_right_pass_alone() {
    let kernels = [maximum("exp"), maximum("neg")];
    check_pass(&MAX_BEFORE_EXP, &kernels, 0..100).unwrap_or_else(|error| panic!("{error}"));
    let error = check_pass(&WRONG, &kernels, 0..100).unwrap_err().to_string();
    assert!(error.contains("max_before_neg") && error.contains("buffer 2 element"), "{error}");
}

#[test]
fn the_tuner_takes_the_pass_and_explanations_name_it() -> Result<()> {
    if !is_alone("the_tuner_takes_the_pass_and_explanations_name_it") {
        return Ok(());
    }
    let device = device();
    // Long enough that other processes do not hide what the pass gains.
    let x: Vec<Tensor> = (0..8)
        .map(|i| numbers(&[200_000 + i], &device)?.narrow(0, i, 200_000))
        .collect::<Result<_>>()?;
    x.iter().try_for_each(Tensor::realize)?;
    let y = || largest(&x, &Tensor::exp);
    let expected: Vec<f32> = y()?.to_vec()?;
    device.register_pass(&MAX_BEFORE_EXP)?;
    let tuned = device.tune(Duration::from_secs(60))?;
    assert!(tuned.iter().any(|kernel| kernel.after < kernel.before), "{tuned:?}");
    let told = y()?.explain()?;
    assert!(told.launches[0].kernels[0].tuned.contains("max_before_exp("), "{told}");
    assert!(told.to_string().contains("max_before_exp("), "{told}");
    for (found, expected) in y()?.to_vec::<f32>()?.iter().zip(&expected) {
        assert!((found - expected).abs() <= expected * 2.0 * f32::EPSILON, "{found}, {expected}");
    }
    Ok(())
}

#[test]
fn the_tuner_refuses_a_pass_that_computes_something_else() -> Result<()> {
    if !is_alone("the_tuner_refuses_a_pass_that_computes_something_else") {
        return Ok(());
    }
    let device = device();
    let x: Vec<Tensor> =
        (0..4).map(|i| numbers(&[999 + i], &device)?.narrow(0, i, 999)).collect::<Result<_>>()?;
    x.iter().try_for_each(Tensor::realize)?;
    let y = || largest(&x, &Tensor::neg);
    let expected: Vec<f32> = y()?.to_vec()?;
    device.register_pass(&WRONG)?;
    let tuned = device.tune(Duration::from_secs(60))?;
    assert!(tuned.iter().any(|kernel| kernel.refused > 0), "{tuned:?}");
    assert!(!y()?.explain()?.to_string().contains("max_before_neg"));
    assert_eq!(y()?.to_vec::<f32>()?, expected);
    Ok(())
}

#[test]
fn the_row_computes_what_the_operations_do() -> Result<()> {
    let device = device();
    let highest = |x: &Tensor| x.cumsum(1)?.max(1);
    let shapes: [&[usize]; 4] = [&[1, 1], &[3, 7], &[5, 1031], &[300, 2]];
    // Sums of multiples of an eighth are exact in any order.
    let values = |dtype| -> Result<Vec<Vec<f32>>> {
        let of = |shape: &&[usize]| {
            highest(&numbers(shape, &device)?.cast(dtype))?.cast(DType::F32).to_vec()
        };
        shapes.iter().map(of).collect()
    };
    let dtypes = [DType::F32, DType::F64, DType::I32];
    let before: Vec<_> = dtypes.into_iter().map(values).collect::<Result<_>>()?;
    register_highest(&device)?;
    let after: Vec<_> = dtypes.into_iter().map(values).collect::<Result<_>>()?;
    assert_eq!(before, after);
    let told = |x: &Tensor| Ok::<_, zyx::Error>(highest(x)?.explain()?.to_string());
    let x = numbers(&[3, 7], &device)?;
    assert!(
        told(&x)?.contains(": highest,") && told(&x)?.starts_with("1 launch "),
        "{}",
        told(&x)?
    );
    // Of integers, and of other axes, the row says nothing.
    assert!(!told(&x.cast(DType::I32))?.contains(": highest,"));
    assert!(!x.cumsum(0)?.max(0)?.explain()?.to_string().contains(": highest,"));
    assert!(register_highest(&device).is_err());
    Ok(())
}

fn highest(x: &Tensor) -> Result<Tensor> {
    x.cumsum(1)?.max(1)
}

fn highest_of_first(x: &[Tensor]) -> Result<Tensor> {
    highest(&x[0])
}

#[test]
fn the_law_of_rows_holds_for_a_right_row() -> Result<()> {
    let device = device();
    register_highest(&device)?;
    for shape in [&[1, 2][..], &[3, 7], &[5, 1031], &[300, 2]] {
        for dtype in [DType::F32, DType::F64] {
            let x = numbers(shape, &device)?.cast(dtype);
            check_row("highest", highest_of_first, &[&x], 0..20)?;
        }
    }
    let x = numbers(&[3, 7], &device)?.cast(DType::I32);
    let error = check_row("highest", highest_of_first, &[&x], 0..1).unwrap_err().to_string();
    assert!(
        error.contains("row `highest`, seed 0, inputs i32 [3, 7]: it does not apply"),
        "{error}"
    );
    Ok(())
}

/// Forgets the last element of each row.
fn without_last() -> kernel::Kernel {
    kernel::Kernel::new("without_last", |k: &Lang| {
        let [rows, n] = k.sizes(["rows", "n"]);
        let x = k.input("x", [rows, n]);
        let y = k.output("y", [rows, k.index(1)], x.dtype());
        k.each(rows, |row| {
            let (sum, most) = (k.value(0.0, x.dtype()), k.value(f64::NEG_INFINITY, x.dtype()));
            let (_, most) = k.fold(n - 1, (sum, most), |(sum, most), i| {
                let sum = sum + x.at([row, i]);
                (sum, most.maximum(sum))
            });
            y.set([row, k.index(0)], most);
        });
    })
}

#[test]
fn the_law_of_rows_finds_a_wrong_row() -> Result<()> {
    let device = device();
    register(&without_last(), &device)?;
    let x = numbers(&[50, 7], &device)?;
    let error = check_row("without_last", highest_of_first, &[&x], 0..20).unwrap_err().to_string();
    for part in ["row `without_last`, seed ", "f32 [50, 7]", "element ", " without the row"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // Right for small elements.
    register_log_of_exp(&device)?;
    let x = numbers(&[50], &device)?;
    let error = check_row("log_of_exp", log_of_exp, &[&x], 0..40).unwrap_err().to_string();
    assert!(error.contains("row `log_of_exp`, seed "), "{error}");
    Ok(())
}

fn log_of_exp(x: &[Tensor]) -> Result<Tensor> {
    Ok(x[0].exp().log().exp().log())
}

/// A row for [`log_of_exp`], whose kernel is slow with the first value of its parameter, and tells the value in the result for 101.
fn register_log_of_exp(device: &Device) -> Result<()> {
    let kernel = kernel::Kernel::new("log_of_exp", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        let times = k.parameter("times", &[1000, 1]);
        k.each(n, |i| {
            let of = x.at(i);
            let same = k.fold(k.index(times as i64), of, |value, step| {
                value.maximum(of - step.cast(x.dtype()))
            });
            y.set(i, same + (of - 100.0).maximum(0.0) * times as f64);
        });
    });
    device.register_row(&kernel, |result: &Operation<'_>, _| {
        let mut of = *result;
        for name in ["log", "exp", "log", "exp"] {
            if of.name() != name {
                return None;
            }
            of = *of.inputs().first()?;
        }
        (result.shape().rank() == 1).then(|| vec![of])
    })
}

#[test]
fn the_tuner_chooses_parameters_of_a_row() -> Result<()> {
    if !is_alone("the_tuner_chooses_parameters_of_a_row") {
        return Ok(());
    }
    let device = device();
    register_log_of_exp(&device)?;
    let x = [Tensor::full([100_000], 101f32, &device).contiguous()];
    x[0].realize()?;
    let first = || Ok::<_, zyx::Error>(log_of_exp(&x)?.to_vec::<f32>()?[0]);
    assert_eq!(first()?, 1101.0);
    let tuned = device.tune(Duration::from_secs(60))?;
    let is_faster = |name| tuned.iter().any(|x| x.name == name && x.after * 2 < x.before);
    assert!(is_faster("log_of_exp"), "{tuned:?}");
    // A plan that was made before uses the value that was found.
    assert_eq!(first()?, 102.0);
    let told = log_of_exp(&x)?.explain()?.to_string();
    assert!(told.contains(": log_of_exp,") && told.contains("times = 1"), "{told}");
    Ok(())
}
