//! Memory of the process, measured from outside: one test, so that nothing else allocates.

use zyx_backend_cpu::Cpu;
use zyx_optim::{AdamOptions, AdamW, Optimizer};
use zyx_tests::zyx_core::{DType, Device, Param, Result, Rng, Runtime, Tensor};

/// Bytes of memory this process holds, or `None` where the system does not say.
fn resident() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

#[test]
fn memory() -> Result<()> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let device = runtime.device("cpu")?;
    if resident().is_none() {
        eprintln!("skipped: this system does not say how much memory a process holds");
        return Ok(());
    }
    a_pending_tensor_takes_160_bytes(&device)?;
    ten_thousand_steps_leak_nothing(&device)
}

fn a_pending_tensor_takes_160_bytes(device: &Device) -> Result<()> {
    let x = Tensor::new([1f32, 2.0], device)?;
    let n = 2_000_000;
    let before = resident();
    let y = (0..n).fold(x, |y, _| y.neg());
    let after = resident();
    let per_op = (after.unwrap_or(0) - before.unwrap_or(0)) as f64 / n as f64;
    drop(y);
    assert!(per_op > 50.0 && per_op <= 160.0, "{per_op} bytes");
    Ok(())
}

fn ten_thousand_steps_leak_nothing(device: &Device) -> Result<()> {
    let mut rng = Rng::seed(1);
    let w = Param::new(Tensor::randn([8, 4], DType::F32, &mut rng, device)?);
    let x = Tensor::randn([16, 8], DType::F32, &mut rng, device)?.contiguous();
    let y = Tensor::randint(0, 4, [16], DType::I64, &mut rng, device)?.contiguous();
    Tensor::realize_all([&x, &y])?;
    let mut adam = AdamW::new(vec![w.clone()], AdamOptions::default())?;
    let mut train = |n: usize| -> Result<f32> {
        let mut loss = 0.0;
        for _ in 0..n {
            let pending = x.matmul(&w.tensor())?.cross_entropy(&y)?;
            adam.step(&pending)?;
            loss = pending.item::<f32>()?;
        }
        Ok(loss)
    };
    let first = train(200)?;
    let (before, stats) = (resident(), device.stats());
    let last = train(10_000)?;
    assert!(last < first, "the loss goes from {first} to {last}");
    let after = device.stats();
    assert_eq!(after.live_bytes, stats.live_bytes);
    let stats = after.since(&stats);
    assert_eq!((stats.driver_allocs, stats.compiles), (0, 0), "{stats:?}");
    let grown = resident().unwrap_or(0).saturating_sub(before.unwrap_or(0));
    assert!(grown < 1 << 20, "the process grew by {grown} bytes");
    Ok(())
}
