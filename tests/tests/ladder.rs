//! Random programs, rung by rung: evaluator, naive kernels, kernels after passes; and that the ladder
//! names the guilty layer, for a fault planted in each.

use std::panic::{AssertUnwindSafe, catch_unwind};
use zyx_tests::generate::Limits;
use zyx_tests::ladder::{Rung, climb, count, random_passes};
use zyx_tests::program::{Program, Step};
use zyx_tests::robust::faulty::{Faults, Faulty};
use zyx_tests::zyx_core::hal::Caps;
use zyx_tests::zyx_core::ir::Kernel;
use zyx_tests::zyx_core::runtime::Optimizer;
use zyx_tests::zyx_core::{BinaryOp, Device, Reference, Result, Runtime, Tensor, tune};

/// Two random sequences of passes for each program, and the tuner's.
#[test]
fn random_programs() {
    let rungs =
        [Rung::evaluator(), Rung::naive(), Rung::passes::<1>(), Rung::passes::<2>(), Rung::tuned()];
    climb(&rungs, 0..count(10_000), Limits::default());
}

/// Layers in the order of their rungs. A fault shows from the rung of its layer on, but for that of a
/// pass which only random sequences have.
const METHODS: u8 = 0;
const LOWERING: u8 = 1;
const PASSES: u8 = 2;
const TUNER: u8 = 3;
const DEVICE: u8 = 4;
const NONE: u8 = 5;

/// The kernel with another operation on `f32` in place of one.
fn swapped(kernel: &Kernel, from: &str, to: &str) -> Kernel {
    // A fold is of associative operations only, so it stays what it is.
    let line = |line: &str| match line.split_whitespace().nth(1) == Some(from) {
        true if line.contains(" : f32") => line.replacen(from, to, 1),
        _ => line.to_owned(),
    };
    let text: Vec<String> = kernel.to_string().lines().map(line).collect();
    text.join("\n").parse().expect("another operation of the same operands")
}

/// What `FAULT`'s library makes of a kernel on the way to the rung `RUNG`.
fn kernels<const FAULT: u8, const RUNG: u8>(kernel: &Kernel, caps: &Caps) -> Kernel {
    let kernel = if FAULT == LOWERING { swapped(kernel, "mul", "add") } else { kernel.clone() };
    let kernel = match RUNG {
        LOWERING => return kernel,
        PASSES => random_passes::<1>(&kernel, caps),
        _ => tune::optimize(&kernel, caps),
    };
    // The tuner need not use the pass that is wrong, but the device gets what it chose.
    let wrong = FAULT == PASSES && RUNG == PASSES || FAULT == TUNER && RUNG >= TUNER;
    if wrong { swapped(&kernel, "add", "sub") } else { kernel }
}

/// A library whose differences are the wrong way round.
fn reversed(program: &Program, device: &Device) -> Result<Vec<Tensor>> {
    let mut program = program.clone();
    for step in &mut program.steps {
        if let Step::Binary(BinaryOp::Sub, x, y) = step {
            std::mem::swap(x, y);
        }
    }
    program.build(device)
}

/// The rungs of a library with this fault.
fn rungs<const FAULT: u8>() -> [Rung; 5] {
    let faults = Faults::default();
    if FAULT == DEVICE {
        faults.miscompile(|kernel| swapped(kernel, "max", "min"));
    }
    let runtime = Runtime::default();
    runtime.register(Faulty::new(Reference::default(), &faults));
    let device = runtime.device("reference").expect("always present");
    let rungs = [
        Rung::evaluator(),
        Rung::naive(),
        Rung::passes::<1>(),
        Rung::tuned(),
        Rung::device(&device),
    ];
    rungs[1].device.set_optimizer(Optimizer::With(kernels::<FAULT, LOWERING>));
    rungs[2].device.set_optimizer(Optimizer::With(kernels::<FAULT, PASSES>));
    rungs[3].device.set_optimizer(Optimizer::With(kernels::<FAULT, TUNER>));
    rungs[4].device.set_optimizer(Optimizer::With(kernels::<FAULT, DEVICE>));
    if FAULT == METHODS { rungs.map(|rung| rung.built_by(reversed)) } else { rungs }
}

/// What the ladder reports of programs, if one fails.
fn report<const FAULT: u8>(seeds: std::ops::Range<u64>) -> Option<String> {
    let climbed =
        catch_unwind(AssertUnwindSafe(|| climb(&rungs::<FAULT>(), seeds, Limits::default())));
    climbed.err().map(|panic| panic.downcast_ref::<String>().expect("a report").clone())
}

/// A fault of a layer is found, is said to be that layer's and no other's, and its seed shows it again.
fn named<const FAULT: u8>() {
    let found = report::<FAULT>(0..200).unwrap_or_else(|| panic!("fault {FAULT} is not found"));
    let names = rungs::<FAULT>().map(|rung| format!("at fault: {}\n", rung.guilty));
    for (layer, name) in names.iter().enumerate() {
        assert_eq!(found.contains(name), layer == usize::from(FAULT), "{FAULT}, {name}:\n{found}");
    }
    let seed = found.split("ZYX_SEED=").nth(1).and_then(|rest| rest.lines().next());
    let seed: u64 = seed.and_then(|seed| seed.parse().ok()).expect("a seed to replay");
    let again = report::<FAULT>(seed..seed + 1).unwrap_or_else(|| panic!("{seed} is not replayed"));
    assert!(again.contains(&names[usize::from(FAULT)]), "{again}");
    // One step is enough to show each of these faults, and that is what is left of the program.
    let steps = again.lines().filter(|line| line.starts_with('v') && line.contains(" = ")).count();
    assert!(steps <= 6, "a program of {steps} values is not small:\n{again}");
}

#[test]
fn the_ladder_names_the_guilty_layer() {
    if std::env::var_os("ZYX_SEED").is_some() {
        return;
    }
    assert_eq!(report::<NONE>(0..200), None, "there is nothing wrong");
    named::<METHODS>();
    named::<LOWERING>();
    named::<PASSES>();
    named::<TUNER>();
    named::<DEVICE>();
}

/// A device in checked mode that adds where a kernel of several products multiplies: operations alone are right.
fn adding_in_chains() -> Device {
    let faults = Faults::default();
    faults.miscompile(|kernel| {
        let text = kernel.to_string();
        let products = text.lines().filter(|line| line.contains(" mul ") && line.contains(": f32"));
        if products.count() > 1 { swapped(kernel, "mul", "add") } else { kernel.clone() }
    });
    let runtime = Runtime::default();
    runtime.register(Faulty::new(Reference::default(), &faults));
    let device = runtime.device("reference").expect("always present");
    device.set_optimizer(Optimizer::Off);
    device.set_checked(true);
    device
}

/// A kernel of several operations that computes something else than they do is reported by checked mode, with the
/// operation, the position and the lines.
#[test]
fn checked_mode_reports_a_wrong_plan() {
    let device = adding_in_chains();
    let x = Tensor::from_slice(&[1.5f32, 2.5, 3.5], [3], &device).expect("three numbers");
    let right = x.sub(1.0).and_then(|y| y.mul(&x)).and_then(|y| y.to_vec::<f32>());
    assert_eq!(right.expect("one product"), [0.75, 3.75, 8.75]);
    let wrong = || -> Result<Vec<f32>> { x.mul(&x)?.sub(1.0)?.mul(&x)?.to_vec::<f32>() };
    let error = wrong().expect_err("the plan is wrong").to_string();
    let start = "mul: the plan gives 3.5 at [0], where operation by operation it is 1.875";
    assert!(error.starts_with(start), "{error}");
    assert!(error.contains(&format!(", at {}:", file!())), "{error}");
}

/// So is a wrong value that is only kept, on the way to one that is right.
#[test]
fn checked_mode_reports_a_wrong_kept_value() {
    let device = adding_in_chains();
    let numbers: Vec<f32> = (0..128).map(|i| i as f32 / 64.0 + 1.0).collect();
    let x = Tensor::from_slice(&numbers, [2, 64], &device).expect("128 numbers");
    let sums = || -> Result<Tensor> { x.mul(&x)?.sub(1.0)?.mul(&x)?.sum(1) };
    let sums = sums().expect("two sums");
    let error =
        sums.minimum(-1000.0).and_then(|y| y.to_vec::<f32>()).expect_err("the sums are wrong");
    let error = error.to_string();
    assert!(error.starts_with("sum: the plan gives "), "{error}");
    assert!(error.contains(&format!(", at {}:", file!())), "{error}");
}

/// So is a wrong kernel of `where` and what it chooses from.
#[test]
fn checked_mode_reports_a_wrong_choice() {
    let device = adding_in_chains();
    let [x, y] = [[1.5f32, 2.5, 3.5], [2.5, 2.5, 1.5]]
        .map(|numbers| Tensor::from_slice(&numbers, [3], &device).expect("three numbers"));
    let chosen = || -> Result<Vec<f32>> { x.lt(&y)?.where_(x.mul(&x)?, y.mul(&y)?)?.to_vec() };
    let error = chosen().expect_err("both products are wrong").to_string();
    let reason = "the plan gives 3.0 at [0], where operation by operation it is 2.25";
    assert!(error.contains(reason), "{error}");
}
