//! Parameters of user kernels, on the device whose clock counts ops.

use super::*;
use crate::dtype::DType;
use crate::lang::Lang;
use crate::tensor::Kernel;

/// The values of `steps`: a kernel with fewer steps has fewer ops, with 1 it computes something else, with 48 or 77 it cannot be
/// recorded.
const STEPS: [usize; 6] = [8, 77, 4, 1, 2, 48];

/// `x * scale`, by so many steps that change nothing.
fn scaled(scale: f64) -> Kernel {
    Kernel::new("scaled", move |k: &Lang| {
        let n = k.size("n");
        let steps = k.parameter("steps", &STEPS);
        assert_ne!(steps, 77, "a closure may panic");
        let threads = k.parameter("threads", &[64, 32]);
        // A device has no groups of 48 threads.
        let threads = if steps == 48 { 48 } else { threads };
        let partial = k.scratch("partial", [n.div_ceil(threads)], DType::F32);
        let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
        k.groups([n.div_ceil(threads)], threads, |g, [group]| {
            let first = group * threads;
            partial.set(group, 1.0);
            g.each((n - first).minimum(threads), |i| {
                let x = x.at(first + i);
                let most = (1..=steps).fold(x, |most, step| most.maximum(x - step as f64));
                let result = if steps == 1 { most + 1.0 } else { most };
                y.set(first + i, result * scale);
            });
        });
    })
}

fn input(n: usize, device: &Device) -> Tensor {
    let data: Vec<f32> = (0..n).map(|i| i as f32 / 8.0).collect();
    Tensor::from_slice(&data, [n], device).unwrap()
}

fn expected(n: usize, scale: f32) -> Vec<f32> {
    (0..n).map(|i| i as f32 / 8.0 * scale).collect()
}

/// The parameters of a call, as `explain` names them.
fn values(y: &Tensor) -> Vec<String> {
    let told = y.explain().unwrap();
    let kernels: Vec<_> = told.launches.iter().flat_map(|launch| &launch.kernels).collect();
    let found = kernels.iter().find(|kernel| !kernel.parameters.is_empty()).unwrap();
    assert!(told.to_string().contains("parameters: steps = "), "{told}");
    found.parameters.clone()
}

#[test]
fn the_fastest_values_that_compute_the_same_are_used_and_kept() {
    let dir = folder("values");
    let device = open(Clocked::default(), &dir);
    let kernel = scaled(2.0);
    let call = |kernel: &Kernel, n: usize, device: &Device| {
        let y = kernel.call(&[&input(n, device)]).unwrap();
        let values = values(&y);
        assert_eq!(y.to_vec::<f32>().unwrap(), expected(n, 2.0));
        values.join(", ")
    };
    assert_eq!(call(&kernel, 500, &device), "steps = 8, threads = 64");
    let tuned = device.tune(LONG).unwrap();
    let tuned = tuned.iter().find(|tuned| tuned.name == "scaled").unwrap();
    // The variant that computes something else, with both numbers of threads.
    assert!(tuned.after < tuned.before && tuned.refused == 2, "{tuned:?}");
    let best = call(&kernel, 500, &device);
    assert!(best.starts_with("steps = 2"), "{best}");
    // Sizes of the same class have the same values, others their own; a value that the program gave stays.
    assert_eq!(call(&kernel, 300, &device), best);
    assert_eq!(call(&kernel, 100, &device), "steps = 8, threads = 64");
    let pinned = kernel.with_parameter("steps", 4);
    assert_eq!(call(&pinned, 500, &device), "steps = 4, threads = 64");
    assert!(kernel.to_text(&[DType::F32], &device).unwrap().starts_with("kernel scaled"));
    device.tune(LONG).unwrap();
    assert!(call(&pinned, 500, &device).starts_with("steps = 4"));
    assert_eq!(call(&kernel, 100, &device), best);
    let searches = device.stats().searches;
    assert!(device.tune(LONG).unwrap().is_empty());
    assert_eq!(device.stats().searches, searches);

    // Another process has them while tuning is on, and searches nothing.
    let later = open(Clocked::default(), &dir);
    assert_eq!(call(&scaled(2.0), 500, &later), "steps = 8, threads = 64");
    later.set_tuning(Tuning::Background(LONG));
    assert_eq!(call(&scaled(2.0), 500, &later), best);
    later.set_tuning(Tuning::Off);
    let off = open(Clocked::default(), &dir);
    let again = scaled(2.0);
    assert_eq!(call(&again, 500, &off), "steps = 8, threads = 64");
    assert!(off.tune(LONG).unwrap().iter().all(|tuned| tuned.name != "scaled"));
    assert_eq!(call(&again, 500, &off), best);
    // A choice for other code is not used.
    assert_eq!(kernel_of_other_code(&off), "steps = 8, threads = 64");
    std::fs::remove_dir_all(dir).unwrap();
}

fn kernel_of_other_code(device: &Device) -> String {
    device.set_tuning(Tuning::Background(LONG));
    let y = scaled(3.0).call(&[&input(500, device)]).unwrap();
    device.set_tuning(Tuning::Off);
    let values = values(&y).join(", ");
    assert_eq!(y.to_vec::<f32>().unwrap(), expected(500, 3.0));
    values
}

#[test]
fn kernels_of_a_gradient_have_values_of_their_own() {
    let dir = folder("gradient");
    let device = open(Clocked::default(), &dir);
    let backward = scaled(2.0);
    let forward = scaled(2.0)
        .with_gradient(move |of| Ok(vec![Some(backward.call(&[&of.cotangent.contiguous()])?)]));
    let slope = || {
        let x = input(70, &device).tracked();
        let y = (forward.call(&[&x]).unwrap() * &x).sum(..).unwrap();
        let dx = y.grad(&[&x]).unwrap().remove(0).unwrap();
        dx.to_vec::<f32>().unwrap()
    };
    assert_eq!(slope(), expected(70, 4.0));
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned.iter().any(|tuned| tuned.name == "scaled" && tuned.after < tuned.before));
    assert_eq!(slope(), expected(70, 4.0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn a_budget_that_is_over_changes_nothing() {
    let dir = folder("no-time");
    let device = open(Clocked::default(), &dir);
    let kernel = scaled(2.0);
    kernel.call(&[&input(10, &device)]).unwrap().realize().unwrap();
    assert!(device.tune(Duration::ZERO).unwrap().is_empty());
    assert_eq!(device.stats().searches, 0);
    device.tune(LONG).unwrap();
    let y = kernel.call(&[&input(10, &device)]).unwrap();
    assert!(values(&y)[0] == "steps = 2" && y.to_vec::<f32>().unwrap() == expected(10, 2.0));
    let _ = std::fs::remove_dir_all(dir);
}

#[test]
fn wrong_variants_of_a_device_are_refused() {
    let dir = folder("wrong-variants");
    // The program itself and the first variant of the search are right.
    let device = open(Clocked { lies: Some(3), ..Clocked::default() }, &dir);
    let kernel = scaled(2.0);
    kernel.call(&[&input(40, &device)]).unwrap().realize().unwrap();
    let before = device.stats().compiles;
    let tuned = device.tune(LONG).unwrap();
    assert!(tuned[0].name == "scaled" && tuned[0].before == tuned[0].after, "{before} {tuned:?}");
    assert!(tuned[0].refused > 3, "{tuned:?}");
    let y = kernel.call(&[&input(40, &device)]).unwrap();
    assert_eq!(values(&y)[0], "steps = 8");
    std::fs::remove_dir_all(dir).unwrap();
}
