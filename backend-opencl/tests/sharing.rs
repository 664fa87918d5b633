//! Where the device computes in the host's memory, values are looked at, and memory of others is read,
//! where they are.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zyx_backend_opencl::OpenCl;
use zyx_core::{DType, Device, Runtime, Tensor};

/// A device that shares the host's memory, if there is one.
fn device() -> Option<Device> {
    let runtime = Runtime::default();
    runtime.register(OpenCl::default());
    let device = runtime.device("opencl").ok().filter(|device| device.caps().unified_memory);
    if device.is_none() {
        zyx_tests::device::skipped("opencl with the host's memory");
    }
    device
}

/// Numbers that are aligned as a device's own buffers are.
#[repr(align(64))]
struct Numbers([f32; 1024]);

impl AsRef<[u8]> for Numbers {
    fn as_ref(&self) -> &[u8] {
        let start = (&raw const self.0).cast::<u8>();
        // SAFETY: an array of floats is that many initialised bytes, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start, size_of_val(&self.0)) }
    }
}

#[test]
fn a_view_is_the_value_itself_and_its_memory_is_used_again() {
    let Some(device) = device() else { return };
    for round in 0..4 {
        let x = Tensor::iota(1000, DType::F32, &device) + round as f32;
        let copies = device.stats().copies;
        let view = x.host_view().expect("it computes").expect("host memory");
        let again = x.host_view().expect("it computes").expect("host memory");
        assert_eq!(view.as_slice().as_ptr(), again.as_slice().as_ptr());
        assert_eq!(device.stats().copies, copies, "nothing is copied");
        drop(x);
        // Memory of the same size goes to others now, but not this one; that of the round before does.
        let others: Vec<Tensor> =
            (0..4).map(|_| Tensor::zeros([1000], DType::F32, &device)).collect();
        Tensor::realize_all(&others).expect("it computes");
        assert_eq!(view.as_slice()[4 * 999..], (999.0 + round as f32).to_le_bytes());
        let uploaded = Tensor::from_slice(&[7f32; 1000], [1000], &device).expect("it fits");
        let view = uploaded.host_view().expect("it is there").expect("host memory");
        assert_eq!(view.as_slice()[..4], 7f32.to_le_bytes());
    }
}

#[test]
fn memory_of_others_is_read_in_place_and_kept_as_long_as_needed() {
    let Some(device) = device() else { return };
    let owner = Arc::new(Numbers(std::array::from_fn(|i| i as f32)));
    let (weak, start): (Weak<Numbers>, _) = (Arc::downgrade(&owner), owner.0.as_ptr().cast::<u8>());
    let copies = device.stats().copies;
    let x = Tensor::from_owner(owner, DType::F32, [1024], &device).expect("it fits");
    assert_eq!(device.stats().copies, copies);
    let view = x.host_view().expect("computed").expect("host memory");
    assert_eq!(view.as_slice().as_ptr(), start);
    // Given up while it is still to be read.
    let y = (&x * 2.0).sum(..).expect("all axes");
    y.realize().expect("it is submitted");
    drop((x, view));
    assert_eq!(y.item::<f32>().expect("one"), 1023.0 * 1024.0);
    // The driver says when it is done with the memory, which may be a moment after.
    let start = Instant::now();
    while weak.upgrade().is_some() {
        assert!(start.elapsed() < Duration::from_secs(10), "the owner goes with the last user");
        std::thread::yield_now();
    }
}

#[test]
fn memory_that_does_not_fit_is_copied() {
    let Some(device) = device() else { return };
    let bytes: Arc<Vec<u8>> = Arc::new((0..41).collect());
    let x = Tensor::from_owner(bytes.clone(), DType::U8, [41], &device).expect("it fits");
    assert_eq!(x.to_vec::<u8>().expect("bytes"), *bytes);
}
