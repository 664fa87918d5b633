//! Measures what a dispatch of the thread pool costs: hot, after a pause, and asleep.
//!
//! `cargo run --release -p backend-cpu --example pool_bench [threads]`
//!
//! "rendezvous" is the honest figure: every thread must be inside the job before any may leave, so
//! it contains the way of the job to the workers and of the result back. "empty" is what a caller
//! pays for a job too short for the workers to reach in time.
#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use zyx_gemm::pool::Pool;

/// Median and best of `n` timings of `f`, in microseconds, each after a pause.
fn time(n: usize, pause: Duration, mut f: impl FnMut()) -> (f64, f64) {
    let mut times: Vec<f64> = (0..n)
        .map(|_| {
            let start = Instant::now();
            while start.elapsed() < pause {
                std::hint::spin_loop();
            }
            let start = Instant::now();
            f();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[n / 2], times[0])
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|a| a.parse().ok());
    let pool = Pool::new(threads);
    let n = pool.n_threads();
    println!("{n} threads");

    let batch = 10_000;
    for (name, tasks) in [("empty, one task a thread", n), ("empty, 16 tasks", 16)] {
        let (median, best) = time(21, Duration::ZERO, || {
            for _ in 0..batch {
                pool.run(tasks, 1, &|range| {
                    std::hint::black_box(range);
                });
            }
        });
        let each = batch as f64;
        println!("hot {name}: median {:.3} us, best {:.3} us", median / each, best / each);
    }

    let rendezvous = || {
        let inside = AtomicUsize::new(0);
        pool.run(n, 1, &|_| {
            inside.fetch_add(1, Ordering::AcqRel);
            while inside.load(Ordering::Acquire) < n {
                std::hint::spin_loop();
            }
        });
    };
    let (median, best) = time(21, Duration::ZERO, || (0..batch).for_each(|_| rendezvous()));
    println!(
        "hot rendezvous: median {:.3} us, best {:.3} us",
        median / batch as f64,
        best / batch as f64
    );
    for pause in [10, 50, 500, 5000] {
        let (median, best) = time(201, Duration::from_micros(pause), rendezvous);
        println!("rendezvous after {pause} us: median {median:.2} us, best {best:.2} us");
    }
}
