//! Weights that stay the same from launch to launch are packed once: how often threads are started
//! says so. Results have the same bits, and follow the weights when those change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Mutex, PoisonError};
use zyx_backend_cpu::{Config, Cpu};
use zyx_core::hal::{Arg, Backend, Call, ContractDim, ContractSpec, Device};
use zyx_core::{DType, Runtime, Tensor};
use zyx_gemm::memory::kept;

/// What is kept is counted by process.
static ALONE: Mutex<()> = Mutex::new(());

/// `[m, k] x [k, n]`, of few columns: packing the weights costs more than it gains for one launch.
const SIZES: [usize; 3] = [512, 49, 1024];

fn spec() -> ContractSpec {
    let [m, n, k] = SIZES;
    let dim = |len: usize, a: usize, b: usize, c: usize| ContractDim {
        len,
        a: a as isize,
        b: b as isize,
        c: c as isize,
    };
    ContractSpec {
        a: DType::F32,
        b: DType::F32,
        c: DType::F32,
        acc: DType::F32,
        bias: false,
        offset: [0; 2],
        batch: vec![],
        m: vec![dim(m, k, 0, n)],
        n: vec![dim(n, 0, 1, 1)],
        k: vec![dim(k, 1, n, 0)],
    }
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 31 + seed * 17) % 127) as f32 / 64.0 - 1.0).collect()
}

#[test]
fn weights_that_stay_are_packed_once() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let [m, n, k] = SIZES;
    let config = Config { threads: Some(2), ..Config::default() };
    let device = Cpu { config }.open(0).unwrap();
    let program = device.library(&Call::contract(spec())).unwrap();
    let mut stream = device.stream().unwrap();
    let [weights, image, result] = [m * k, k * n, m * n].map(|n| device.alloc(4 * n).unwrap());
    device.write(&mut stream, &weights, 0, &bytes(&numbers(m * k, 1))).unwrap();
    device.write(&mut stream, &image, 0, &bytes(&numbers(k * n, 2))).unwrap();
    let mut launch = || {
        let before = device.traffic().submits;
        let args = [Arg::Buffer(&weights, 0), Arg::Buffer(&image, 0), Arg::Buffer(&result, 0)];
        device.launch(&mut stream, &program, &args).unwrap();
        let mut all = vec![0; 4 * m * n];
        device.read(&mut stream, &result, 0, &mut all).unwrap();
        (device.traffic().submits - before, all)
    };
    // The first launch may pack the other operand, as a job before the tasks.
    let ((_, first), (second, again), (third, last)) = (launch(), launch(), launch());
    assert_eq!((second, third), (2, 1), "packed in the second launch, and no more");
    assert!(first == again && again == last);

    let other = numbers(m * k, 3);
    device.write(&mut device.stream().unwrap(), &weights, 0, &bytes(&other)).unwrap();
    let (jobs, changed) = launch();
    assert!(changed != last);
    let expected = |i: usize, j: usize| -> f32 {
        let image = numbers(k * n, 2);
        (0..k).map(|l| f64::from(other[i * k + l]) * f64::from(image[l * n + j])).sum::<f64>()
            as f32
    };
    for (i, j) in [(0, 0), (17, 48), (511, 3)] {
        let at = 4 * (i * n + j);
        let got = f32::from_le_bytes(changed[at..at + 4].try_into().unwrap());
        assert!((got - expected(i, j)).abs() < 1e-3, "{got}, not {}", expected(i, j));
    }
    // As in the first launch of all: nothing is packed that changed.
    assert_eq!((launch().0, launch().0), (2, 1), "{jobs} jobs before");

    // Memory of others may change unseen.
    device.share(&weights);
    device.share(&image);
    let jobs = [launch().0, launch().0, launch().0];
    assert!(jobs.iter().all(|&n| n == jobs[0]), "{jobs:?}");
}

/// Memory that waits for whoever asks next has no copies: there is room for those of other weights.
#[test]
fn copies_go_with_their_weights() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = Runtime::default();
    runtime.register(Cpu { config: Config { threads: Some(2), ..Config::default() } });
    let device = runtime.device("cpu").unwrap();
    let [m, n, k] = SIZES;
    let [weights, image] = [[m, k], [k, n]].map(|dims| {
        let x = Tensor::from_slice(&numbers(dims[0] * dims[1], 1), dims, &device).unwrap();
        x.realize().unwrap();
        x
    });
    let before = kept();
    for _ in 0..3 {
        weights.matmul(&image).unwrap().realize().unwrap();
    }
    let packed = kept() - before;
    assert!(packed >= 4 * m * k, "{packed}");
    drop(weights);
    assert!(device.stats().cached_bytes as usize >= 4 * m * k);
    assert_eq!(kept(), before);
}
