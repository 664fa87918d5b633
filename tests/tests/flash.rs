//! Attention as one generated kernel, interpreted: its accesses are checked, and results and
//! gradients are those of a device that stores the scores.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use zyx_core::hal::{Caps, Flash};
use zyx_core::reference::Reference;
use zyx_core::{Attention, Device, Runtime, Tensor};

/// A reference device on which each thread has a row of the scores.
fn device(flash: bool) -> Device {
    let mut reference = Reference::default();
    let mut caps: Caps = reference.caps.clone();
    caps.flash = flash.then_some(Flash { least: 0, large: 0, ..Flash::THREADS });
    reference.caps = caps;
    let runtime = Runtime::default();
    runtime.register(reference);
    runtime.device("reference").unwrap()
}

#[test]
fn any_kind_of_attention() {
    let device = device(true);
    zyx_tests::cases::attention::streamed(&device);
    zyx_tests::cases::attention::arranged(&device);
}

#[test]
fn gradients() {
    let [want, got] = [false, true].map(|flash| {
        let device = device(flash);
        let make = |n: usize, seed: usize| -> Vec<f64> {
            (0..n).map(|i| ((i * 7919 + seed * 131) % 1009) as f64 / 400.0 - 1.25).collect()
        };
        let input = |dims: [usize; 4], seed: usize| {
            let data = make(dims.iter().product(), seed);
            Tensor::from_slice(&data, dims, &device).unwrap().tracked()
        };
        let x = [input([1, 2, 40, 3], 1), input([1, 1, 150, 3], 2), input([1, 1, 150, 4], 3)];
        let options = Attention { grouped: true, ..Default::default() };
        let y = x[0].scaled_dot_product_attention(&x[1], &x[2], options).unwrap();
        let wanted: Vec<&Tensor> = x.iter().collect();
        let loss = y.square().sum(..).unwrap();
        let gradients: Vec<Tensor> = loss.grad(&wanted).unwrap().into_iter().flatten().collect();
        let before = device.stats();
        device.reset_peak();
        Tensor::realize_all(&gradients).unwrap();
        let stats = device.stats();
        let (scores, bytes) = (2 * 40 * 150 * 8, stats.peak_bytes - before.live_bytes);
        assert_eq!(bytes < scores / 4, flash, "{bytes} bytes, scores have {scores}");
        let spent = stats.since(&before);
        assert!(spent.launches <= 6 && spent.submits == spent.launches, "{spent:?}");
        gradients.iter().flat_map(|g| g.to_vec::<f64>().unwrap()).collect::<Vec<f64>>()
    });
    let scale = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
    for (x, y) in want.iter().zip(&got) {
        assert!((x - y).abs() <= 256.0 * f64::EPSILON * scale, "{x} and {y}");
    }
}
