//! Requests to stop: work under way ends within a second and can be done again.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use zyx_backend_cpu::Cpu;
use zyx_core::hal::{handle_signals, request_stop};
use zyx_core::{DType, Device, Result, Runtime, Tensor};

static ENDS: AtomicBool = AtomicBool::new(true);
static ASKED: AtomicUsize = AtomicUsize::new(0);

/// Compiles, and runs for seconds; every element of the result is 1.
fn product(n: usize, device: &Device) -> Result<Tensor> {
    let x = Tensor::full([n, n], 1.0 / n as f32, device).contiguous();
    let mut y = Tensor::ones([n, n], DType::F32, device).contiguous();
    for i in 0..40 {
        y = y.matmul(&x)?.add(i as f32)?.sub(i as f32)?.contiguous();
    }
    Ok(y)
}

/// How long a request that comes after this delay takes to end the work, if it does.
fn stopped(n: usize, delay: u64, device: &Device) -> (Option<Duration>, Tensor) {
    let y = product(n, device).unwrap();
    let asking = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(delay));
        request_stop();
        Instant::now()
    });
    let result = y.realize();
    let ended = Instant::now();
    let asked = asking.join().unwrap();
    if let Err(error) = &result {
        assert!(error.to_string().contains("interrupted"), "{error}");
    }
    (result.is_err().then(|| ended.saturating_duration_since(asked)), y)
}

#[test]
fn work_under_way_ends_and_can_be_done_again() {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let device = runtime.device("cpu").unwrap();
    let right = |y: &Tensor| {
        let error = y.sub(1.0).unwrap().abs().max(..).unwrap().item::<f32>().unwrap();
        assert!(error < 1e-3, "{error}");
    };
    // On a thread that handles no signals nothing ends.
    let (ended, y) = stopped(64, 0, &device);
    assert!(ended.is_none());
    right(&y);
    handle_signals(|| {
        ASKED.fetch_add(1, Relaxed);
        ENDS.load(Relaxed)
    });
    let mut heard = 0;
    for (i, delay) in [0, 1, 3, 10, 30, 100, 300].into_iter().enumerate() {
        let (ended, y) = stopped(700 + i, delay, &device);
        if let Some(time) = ended {
            heard += 1;
            assert!(time < Duration::from_secs(1), "after {delay} ms: {time:?}");
        }
        // A request that came when the work had ended ends nothing else.
        ENDS.store(false, Relaxed);
        right(&y);
        ENDS.store(true, Relaxed);
    }
    assert!(heard >= 4, "{heard} of 7 ended");
    // The program goes on: the work is done again.
    ENDS.store(false, Relaxed);
    let before = ASKED.load(Relaxed);
    let (ended, y) = stopped(800, 20, &device);
    assert!(ended.is_none() && ASKED.load(Relaxed) > before);
    right(&y);
}
