//! Safetensors files that lie in memory: which tensors are that memory, and which are copies.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Error, Runtime, Tensor};
use zyx_nn::safetensors;

/// Memory aligned like a page, as that of a mapped file is, of which the first `n` bytes are the
/// file; a test may let it become shorter.
#[derive(Debug)]
struct Pages {
    pages: Vec<Page>,
    shift: usize,
    n: AtomicUsize,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(4096))]
struct Page([u8; 4096]);

impl Pages {
    /// The bytes of one page, from a place in it on.
    fn new(bytes: &[u8], shift: usize) -> Pages {
        let mut page = Page([0; 4096]);
        page.0[shift..shift + bytes.len()].copy_from_slice(bytes);
        Pages { pages: vec![page], shift, n: AtomicUsize::new(bytes.len()) }
    }
}

impl AsRef<[u8]> for Pages {
    fn as_ref(&self) -> &[u8] {
        &self.pages[0].0[self.shift..self.shift + self.n.load(Relaxed)]
    }
}

fn cpu() -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    runtime.device("cpu").unwrap()
}

/// `a` and `b` are whole multiples of 16 bytes, `c` is not, so `d` is not aligned.
fn tensors(device: &Device) -> BTreeMap<String, Tensor> {
    let iota = |n: usize| Tensor::iota(n, DType::F32, device);
    let all = [("a", iota(8)), ("b", iota(4)), ("c", iota(3)), ("d", iota(5))];
    all.into_iter().map(|(name, x)| (name.to_owned(), x)).collect()
}

#[test]
fn aligned_tensors_are_the_memory() {
    let device = cpu();
    let all = tensors(&device);
    let bytes = safetensors::to_bytes(&all).unwrap();
    let owner = Arc::new(Pages::new(&bytes, 0));
    let (weak, place): (Weak<Pages>, _) =
        (Arc::downgrade(&owner), (*owner).as_ref().as_ptr_range());
    let file = safetensors::open_owner(owner).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    let mut kept = Vec::new();
    for (name, in_place) in [("a", true), ("b", true), ("c", true), ("d", false)] {
        let x = file.load(name, &device).unwrap();
        assert_eq!(x.to_bytes().unwrap(), all[name].to_bytes().unwrap(), "{name}");
        let view = x.host_view().unwrap().expect("host memory");
        assert_eq!(place.contains(&view.as_slice().as_ptr()), in_place, "{name}");
        kept.push(x);
    }
    drop(file);
    let y = (&kept[0] * 2.0).sum(..).unwrap();
    assert_eq!(y.item::<f32>().unwrap(), 56.0, "tensors keep the memory");
    drop((kept, y));
    assert!(weak.upgrade().is_none(), "it goes with the last tensor");
}

#[test]
fn anything_else_is_copied() {
    let (cpu, reference) = (cpu(), Runtime::default().device("reference").unwrap());
    let all = tensors(&cpu);
    let bytes = safetensors::to_bytes(&all).unwrap();
    for (shift, device) in [(4, &cpu), (1, &cpu), (0, &reference)] {
        let file = safetensors::open_owner(Arc::new(Pages::new(&bytes, shift))).unwrap();
        for (name, x) in &all {
            let loaded = file.load(name, device).unwrap();
            assert_eq!(loaded.to_bytes().unwrap(), x.to_bytes().unwrap(), "{name} at {shift}");
        }
    }
}

#[test]
fn what_is_cut_off_is_refused() {
    let device = cpu();
    let bytes = safetensors::to_bytes(&tensors(&device)).unwrap();
    for n in 0..bytes.len() {
        let refused = safetensors::open_owner(Arc::new(bytes[..n].to_vec()));
        assert!(matches!(refused, Err(Error::Format { .. })), "{n} of {} bytes", bytes.len());
    }
    // Whole when it was opened.
    let owner = Arc::new(Pages::new(&bytes, 0));
    let file = safetensors::open_owner(owner.clone()).unwrap();
    owner.n.store(bytes.len() - 1, Relaxed);
    assert!(file.load("a", &device).is_ok());
    let error = file.load("d", &device).unwrap_err();
    assert!(matches!(&error, Error::Format { .. }), "{error}");
    assert!(error.to_string().contains("cut off: 0 of its 20 bytes"), "{error}");
}
