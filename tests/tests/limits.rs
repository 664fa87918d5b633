//! What launches ask of a device: iterations per thread, and time.
//!
//! The interpreter counts loop iterations, so it stands for a driver that stops what takes too
//! long, here with an error that cannot be overlooked.

use zyx_core::hal::Caps;
use zyx_core::ir::interp::Options;
use zyx_core::reference::Reference;
use zyx_core::testing::Optimizer;
use zyx_core::{DType, Device, Result, Runtime, Tensor};

/// An interpreter that gives up after so many loop iterations of a launch.
fn impatient(iterations: u64, caps: Caps) -> Device {
    let options = Options { max_iterations: iterations, ..Options::fast() };
    let runtime = Runtime::default();
    runtime.register(Reference { options, caps, attention: false });
    runtime.device("reference").expect("always present")
}

/// Sums, a scan and a softmax whose loops are long.
fn long_loops(device: &Device) -> Result<Vec<Vec<i32>>> {
    let x = Tensor::arange(0i32, 2000, 1, device)? % 97;
    let y = x.reshape([4, 500])?;
    let results = [x.cumsum(0)?, x.sum(..)?, y.max(1)?, (&y - y.min(1)?.reshape([4, 1])?).sum(0)?];
    results.iter().map(|x| x.cast(DType::I32).to_vec()).collect()
}

/// Kernels on a device that ends threads after 700 iterations stay below, with the same results;
/// what cannot is refused by name.
#[test]
fn threads_stay_below_the_iterations_a_device_allows() {
    let unlimited = impatient(u64::MAX, Reference::default().caps);
    let expected = long_loops(&unlimited).expect("without a limit");
    // Naive kernels of a GPU run in one thread, so that the whole launch is counted.
    let naive = |max_iterations| {
        let mut caps = Reference::default().caps;
        (caps.simt, caps.max_iterations) = (true, max_iterations);
        let device = impatient(700, caps);
        device.set_optimizer(Optimizer::Off);
        device
    };
    let error = long_loops(&naive(0)).expect_err("the device stops what it is not told about");
    assert!(error.to_string().contains("700"), "{error}");
    assert_eq!(long_loops(&naive(700)).expect("within the limit"), expected);
    let huge = Tensor::ones([1 << 16], DType::F32, &naive(10));
    let error = huge.sum(..).and_then(|x| x.to_vec::<f32>()).expect_err("it cannot");
    assert!(error.to_string().contains("loop iterations, only 10"), "{error}");
}

/// Launches on a device that stops what takes long are cut into parts, with the same results.
#[test]
fn long_launches_are_cut_into_parts() {
    let simt = |max_launch| {
        let mut caps = Reference::default().caps;
        (caps.simt, caps.max_local, caps.max_launch) = (true, 32, max_launch);
        caps
    };
    let work = |device: &Device| -> Result<Vec<f32>> {
        let x = Tensor::arange(0f32, 30_000.0, 1.0, device)?;
        (x.sin() * 2.0).tanh().to_vec::<f32>()
    };
    let device = impatient(u64::MAX, simt(0));
    let expected = work(&device).expect("without a limit");
    let whole = device.stats().launches;
    // A tenth of what the launch takes by the interpreter's count.
    let error = work(&impatient(3_500, simt(0))).expect_err("too many for the device");
    assert!(error.to_string().contains("3500"), "{error}");
    let device = impatient(3_500, simt(1));
    assert_eq!(work(&device).expect("in parts"), expected);
    assert!(device.stats().launches > 10 * whole, "{:?}", device.stats());
}
