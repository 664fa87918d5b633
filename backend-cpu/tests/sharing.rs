//! Values are looked at, and memory of others is read, where they are.

use std::sync::{Arc, Weak};
use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Runtime, Tensor};

fn device() -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu").expect("always there")
}

/// Numbers that are aligned as allocators align them.
#[repr(align(64))]
struct Numbers([f32; 64]);

impl AsRef<[u8]> for Numbers {
    fn as_ref(&self) -> &[u8] {
        let start = (&raw const self.0).cast::<u8>();
        // SAFETY: an array of floats is that many initialised bytes, and `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start, size_of_val(&self.0)) }
    }
}

#[test]
fn a_view_is_the_value_itself_and_keeps_it() {
    let device = device();
    let x = Tensor::iota(1000, DType::F32, &device);
    let view = x.host_view().expect("it computes").expect("host memory");
    let again = x.host_view().expect("it computes").expect("host memory");
    assert_eq!(view.as_slice().as_ptr(), again.as_slice().as_ptr());
    drop(x);
    // Memory of the same size goes to others now, but not this one.
    let others: Vec<Tensor> = (0..4).map(|_| Tensor::zeros([1000], DType::F32, &device)).collect();
    Tensor::realize_all(&others).expect("it computes");
    assert_eq!(view.as_slice()[4 * 999..], 999f32.to_le_bytes());
}

#[test]
fn memory_of_others_is_read_in_place_and_kept_as_long_as_needed() {
    let device = device();
    let owner = Arc::new(Numbers(std::array::from_fn(|i| i as f32)));
    let (weak, start): (Weak<Numbers>, _) = (Arc::downgrade(&owner), owner.0.as_ptr().cast::<u8>());
    let copies = device.stats().copies;
    let x = Tensor::from_owner(owner, DType::F32, [64], &device).expect("it fits");
    assert_eq!(device.stats().copies, copies);
    let view = x.host_view().expect("computed").expect("host memory");
    assert_eq!(view.as_slice().as_ptr(), start);
    let y = (&x * 2.0).sum(..).expect("all axes");
    assert_eq!(y.item::<f32>().expect("one"), 2.0 * 63.0 * 32.0);
    drop((x, view));
    assert!(weak.upgrade().is_none(), "the owner goes with the last user");
}

#[test]
fn memory_that_does_not_fit_is_copied_or_refused() {
    let device = device();
    let bytes: Arc<Vec<u8>> = Arc::new((0..41).collect());
    let x = Tensor::from_owner(bytes.clone(), DType::U8, [41], &device).expect("it fits");
    assert_eq!(x.to_vec::<u8>().expect("bytes"), *bytes);
    let error = Tensor::from_owner(bytes, DType::F32, [10], &device).expect_err("41 bytes");
    assert!(error.to_string().contains("from_owner"), "{error}");
}
