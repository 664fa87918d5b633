//! Kernels that a search chose on a real driver compute what the heuristic's did.

use crate::harness::own_device;
use std::io::Write;
use std::time::Duration;
use zyx_core::hal::Backend;
use zyx_core::{Device, Result, Tensor};

/// A softmax, a transposition, column sums and a product, of numbers whose sums are exact.
fn results(device: &Device) -> Result<Vec<f32>> {
    let (rows, columns) = (48, 96);
    let data: Vec<f32> = (0..rows * columns).map(|i| (i * 37 % 33) as f32 / 8.0 - 2.0).collect();
    let x = Tensor::from_slice(&data, [rows, columns], device)?;
    let mut all = x.softmax(-1)?.to_vec::<f32>()?;
    all.extend((x.transpose(0, 1)? * 2.0).to_vec::<f32>()?);
    all.extend(x.sum(0)?.to_vec::<f32>()?);
    all.extend(x.matmul(&x.transpose(0, 1)?)?.to_vec::<f32>()?);
    Ok(all)
}

/// Four kernels, or library calls, before and after a short search.
///
/// # Panics
/// When results differ by more than the rounding of a softmax, or a searched device compiles or
/// searches again.
pub fn tuned_kernels_compute_the_same<B: Backend>(spec: &str, backend: impl Fn() -> B) {
    let Some(device) = own_device(spec, "tuned_kernels_compute_the_same", backend) else { return };
    let expected = results(&device).expect("untuned");
    let tuned = device.tune(Duration::from_millis(400)).expect("the search");
    for kernel in tuned {
        // Written directly: a test of the CPU reads it.
        writeln!(std::io::stdout(), "searched {}", kernel.name).expect("somebody reads");
    }
    let before = device.stats();
    let found = results(&device).expect("tuned");
    for (i, (a, b)) in expected.iter().zip(&found).enumerate() {
        // All but the softmax is exact.
        let margin = if i < 48 * 96 { 1e-5 * a.abs() } else { 0.0 };
        assert!((a - b).abs() <= margin, "result {i} is {b}, was {a}");
    }
    let since = device.stats().since(&before);
    assert_eq!((since.compiles, since.searches, since.plan_misses), (0, 0, 0));
}
