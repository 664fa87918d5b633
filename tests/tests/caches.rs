//! Caches keep to their bytes: memory of the process and counters while shapes and graphs keep coming.
//!
//! One test, so that nothing else allocates. `ZYX_FULL=1` takes 20,000 shapes and 5,000 graphs with
//! the limits of a device as it is opened; else there are fewer, with smaller limits.

use std::io::Write;
use zyx_backend_cpu::Cpu;
use zyx_tests::rng::Rng;
use zyx_tests::zyx_core::{DType, Device, Jit, Result, Runtime, Tensor};

/// Bytes of memory this process holds, or `None` where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

fn open() -> Result<Device> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu")
}

/// What is run for how many numbers, with which limit.
struct Case {
    name: &'static str,
    full: usize,
    quick: usize,
    run: fn(&Device, usize) -> Result<()>,
}

/// An elementwise computation and a sum, of a size of its own.
fn shape(device: &Device, i: usize) -> Result<()> {
    let n = 3 + i;
    let x = Tensor::iota(n, DType::F64, device);
    let sum = (x * 2.0 + 1.0).sum(..)?.item::<f64>()?;
    assert_eq!(sum, (n * n) as f64);
    Ok(())
}

/// A step of training, for a batch of a size of its own.
fn training(device: &Device, i: usize) -> Result<()> {
    let w = Tensor::full([8, 4], 0.5f32, device).contiguous().tracked();
    let x = Tensor::ones([1 + i, 8], DType::F32, device).contiguous();
    let loss = x.matmul(&w)?.tanh().mean(..)?;
    let gradient = loss.grad(&[&w])?.remove(0).expect("the loss depends on it");
    let next = w.sub(gradient.mul(0.1)?)?;
    Tensor::realize_all([&loss, &next])?;
    assert!((loss.item::<f32>()? - 4f32.tanh()).abs() < 1e-5);
    Ok(())
}

/// A chain of operations that no other number has, of one shape.
fn graph(device: &Device, i: usize) -> Result<()> {
    let x = Tensor::iota(8, DType::I32, device).contiguous();
    let mut rng = Rng::new(i as u64);
    let (mut y, mut expected) = (x.clone(), (0..8).collect::<Vec<i32>>());
    for _ in 0..12 {
        let (next, of): (Tensor, fn(i32, i32) -> i32) = match rng.below(4) {
            0 => (y.add(&x)?, |y, x| y.wrapping_add(x)),
            1 => (y.mul(&x)?, |y, x| y.wrapping_mul(x)),
            2 => (y.neg(), |y, _| y.wrapping_neg()),
            _ => (y.maximum(&x)?, |y, x| y.max(x)),
        };
        y = next;
        expected.iter_mut().zip(0..).for_each(|(y, x)| *y = of(*y, x));
    }
    assert_eq!(y.to_vec::<i32>()?, expected, "{i}");
    Ok(())
}

/// The same by a `Jit` of its own.
fn traced(device: &Device, i: usize) -> Result<()> {
    let step = Jit::new(|x: &[Tensor]| Ok(vec![x[0].mul(2.0)?.add(1.0)?.sum(..)?]));
    let n = 3 + i % 500;
    for n in [n, n + 1, n] {
        let x = Tensor::ones([n], DType::F32, device);
        assert_eq!(step.call(&[&x])?[0].item::<f32>()?, 3.0 * n as f32);
    }
    Ok(())
}

const CASES: [Case; 4] = [
    Case { name: "shapes", full: 20_000, quick: 2_000, run: shape },
    Case { name: "batches of training", full: 4_000, quick: 300, run: training },
    Case { name: "graphs", full: 5_000, quick: 1_000, run: graph },
    Case { name: "traces", full: 2_000, quick: 200, run: traced },
];

#[test]
fn caches() -> Result<()> {
    let full = std::env::var_os("ZYX_FULL").is_some();
    for case in CASES {
        stays_flat(&case, full)?;
    }
    threads_see_right_values()?;
    trimming_frees_everything()
}

/// Memory does not grow with what was seen, once the limit is reached.
fn stays_flat(case: &Case, full: bool) -> Result<()> {
    let (n, device) = (if full { case.full } else { case.quick }, open()?);
    // Quick: what is kept of a tenth of them exceeds the limit.
    let (limit, slack) = if full { (32 << 20, 64 << 20) } else { (256 << 10, 8 << 20) };
    device.set_cache_limit(limit);
    let warm = n / 10;
    (0..warm).try_for_each(|i| (case.run)(&device, i))?;
    let (before, stats) = (resident(), device.stats());
    let mut most = 0;
    for i in warm..n {
        (case.run)(&device, i)?;
        let stats = device.stats();
        most = most.max(stats.program_bytes + stats.plan_bytes);
    }
    let grown = resident().unwrap_or(0).saturating_sub(before.unwrap_or(0));
    let after = device.stats().since(&stats);
    // Written directly: the numbers of a full run are to be seen.
    let _ = writeln!(
        std::io::stderr(),
        "{}: {n}, {grown} bytes grown, {most} bytes kept, {} evictions, {} compiled",
        case.name,
        after.evictions,
        after.compiles
    );
    // As opened a device keeps all of the smaller ones.
    assert!(full || after.evictions > 0, "{}: {after:?}", case.name);
    // The sixteen plans used last stay.
    assert!(most <= limit as u64 + (1 << 20), "{}: {most} bytes", case.name);
    assert!(grown < slack, "{}: the process grew by {grown} bytes", case.name);
    Ok(())
}

/// Values while other threads have plans and programs dropped that are in use.
fn threads_see_right_values() -> Result<()> {
    let device = open()?;
    device.set_cache_limit(64 << 10);
    std::thread::scope(|scope| {
        let start = |thread: u64| {
            let device = &device;
            scope.spawn(move || {
                let mut rng = Rng::new(thread);
                (0..200).try_for_each(|_| {
                    let case = &CASES[rng.below(CASES.len())];
                    if rng.below(50) == 0 {
                        device.trim();
                    }
                    (case.run)(device, rng.below(60))
                })
            })
        };
        let threads: Vec<_> = (0..4).map(start).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

fn trimming_frees_everything() -> Result<()> {
    let device = open()?;
    (0..300).try_for_each(|i| shape(&device, i))?;
    let stats = device.stats();
    assert!(stats.program_bytes > 0 && stats.plan_bytes > 0, "{stats:?}");
    let kept = Tensor::ones([10], DType::F32, &device) * 3.0;
    kept.realize()?;
    device.trim();
    let stats = device.stats();
    assert_eq!((stats.program_bytes, stats.plan_bytes, stats.cached_bytes), (0, 0, 0));
    assert_eq!(kept.to_vec::<f32>()?, [3.0; 10]);
    assert!(kept.explain()?.to_string().contains("launch"), "{}", kept.explain()?);
    shape(&device, 1)
}
