//! Attention in blocks on the CPU: gradients that keep no scores, and how much memory it takes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use zyx_backend_cpu::{Config, Cpu};
use zyx_core::{Attention, DType, Device, Result, Rng, Runtime, Tensor};

/// A device that computes scores again from so many bytes on.
fn device(recompute: usize) -> Device {
    let runtime = Runtime::default();
    let config = Config { recompute: Some(recompute), ..Config::default() };
    runtime.register(Cpu { config });
    runtime.device("cpu").unwrap()
}

/// Queries, keys and values.
fn inputs(dims: [[usize; 4]; 3], device: &Device) -> Vec<Tensor> {
    let mut rng = Rng::seed(3);
    let make = |dims: [usize; 4]| Tensor::randn(dims, DType::F32, &mut rng, device).unwrap();
    let tensors: Vec<Tensor> = dims.map(make).into_iter().map(|x| x.tracked()).collect();
    Tensor::realize_all(&tensors).unwrap();
    tensors
}

/// The result and the gradients of a weighted sum of it.
fn train(x: &[Tensor], options: Attention<'_>) -> Result<Vec<Tensor>> {
    let y = x[0].scaled_dot_product_attention(&x[1], &x[2], options)?;
    let n = y.numel();
    let weights: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 / 50.0 - 1.0).collect();
    let weights = Tensor::from_slice(&weights, y.shape().to_vec(), y.device())?;
    let wanted: Vec<&Tensor> = x.iter().collect();
    let gradients = y.mul(&weights)?.sum(..)?.grad(&wanted)?;
    Ok([vec![y], gradients.into_iter().flatten().collect()].concat())
}

/// Results and gradients with and without stored scores.
fn compare(what: &str, dims: [[usize; 4]; 3], options: impl Fn(&Device) -> Options) {
    let [stored, again] = [usize::MAX, 0].map(|recompute| {
        let device = device(recompute);
        let x = inputs(dims, &device);
        let own = options(&device);
        let all = train(&x, own.attention()).unwrap();
        if recompute == 0 {
            // Of the gradient alone: a program that holds the other ones may store what they share.
            let alone = train(&x, own.attention()).unwrap().swap_remove(1);
            let explained = alone.explain().unwrap().to_string();
            assert!(explained.contains("flash_"), "{what}: {explained}");
        }
        let all: Vec<&Tensor> = all.iter().collect();
        Tensor::realize_all(all.iter().copied()).unwrap();
        let scores = dims[0][0] * dims[0][1] * dims[0][2] * dims[1][2];
        if recompute == 0 {
            let explained = all[1].explain().unwrap();
            let notes = explained.launches.iter().flat_map(|l| &l.kernels);
            let largest = notes.flat_map(|k| &k.writes).map(|v| v.shape.numel()).max().unwrap();
            assert!(largest < scores / 2, "{what}: {largest} elements are stored\n{explained}");
        }
        all.iter().map(|x| x.to_vec::<f32>().unwrap()).collect::<Vec<_>>()
    });
    for (i, (a, b)) in stored.iter().zip(&again).enumerate() {
        let scale = a.iter().fold(1e-3f32, |m, x| m.max(x.abs()));
        for (x, y) in a.iter().zip(b) {
            assert!((x - y).abs() <= 64.0 * f32::EPSILON * scale, "{what} {i}: {x} and {y}");
        }
    }
}

/// Options with the tensors that they refer to.
struct Options {
    mask: Option<Tensor>,
    causal: bool,
    grouped: bool,
}

impl Options {
    fn attention(&self) -> Attention<'_> {
        let (causal, grouped) = (self.causal, self.grouped);
        Attention { mask: self.mask.as_ref(), causal, grouped, ..Default::default() }
    }
}

#[test]
fn blocks_of_any_kind_of_attention() {
    let device = device(0);
    zyx_tests::cases::attention::streamed(&device);
    zyx_tests::cases::attention::arranged(&device);
}

#[test]
fn gradients_need_no_scores() {
    let none = Options { mask: None, causal: false, grouped: false };
    let dims = |heads: [usize; 2], queries: usize, keys: usize| {
        [[2, heads[0], queries, 16], [2, heads[1], keys, 16], [2, heads[1], keys, 24]]
    };
    compare("plain", dims([2, 2], 101, 203), |_| Options { mask: None, ..none });
    compare("causal", dims([2, 2], 200, 200), |_| Options { causal: true, mask: None, ..none });
    compare("grouped", dims([4, 2], 77, 130), |_| Options { grouped: true, mask: None, ..none });
    compare("masked", dims([2, 2], 90, 201), |device| {
        // Some rows see nothing.
        let allowed = |at: usize| u8::from(at / 201 % 9 != 4 && at % 7 != 2);
        let mask: Vec<u8> = (0..90 * 201).map(allowed).collect();
        let mask = Tensor::from_slice(&mask, [90, 201], device).unwrap().cast(DType::Bool);
        Options { mask: Some(mask), ..none }
    });
}

/// Memory grows with the length of a sequence, not with its square.
#[test]
fn memory_is_linear() {
    let device = device(0);
    let peak = |n: usize| {
        let x = inputs([[1, 1, n, 16]; 3], &device);
        let before = device.stats().live_bytes;
        device.reset_peak();
        let all = train(&x, Attention { causal: true, ..Default::default() }).unwrap();
        Tensor::realize_all(&all).unwrap();
        device.stats().peak_bytes - before
    };
    let (short, long) = (peak(512), peak(2048));
    assert!(long <= 5 * short, "{short} bytes for 512, {long} for 2048");
    assert!(long < 4 * 2048 * 2048 / 2, "{long} bytes");
}
