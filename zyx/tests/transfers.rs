//! Values go from each device of this machine to each other, whatever their backends.
#![allow(clippy::unwrap_used, reason = "tests")]

use zyx::prelude::*;

/// The bytes of so many elements: every pattern that the dtype has, NaNs included; bools are 0 or 1.
fn pattern(dtype: DType, n: usize) -> Vec<u8> {
    let byte = |i: usize| if dtype == DType::Bool { i % 2 } else { i * 37 + i / 256 * 11 };
    (0..n * dtype.size()).map(|i| byte(i) as u8).collect()
}

fn devices() -> Vec<Device> {
    Device::list().iter().filter_map(|info| Device::open(&info.spec).ok()).collect()
}

#[test]
fn each_device_to_each_other() {
    let devices = devices();
    assert!(devices.len() > 1, "the interpreter and one more: {devices:?}");
    for (from, to) in devices.iter().flat_map(|a| devices.iter().map(move |b| (a, b))) {
        let stored = |dtype: &&DType| [from, to].iter().all(|d| d.caps().storage.contains(**dtype));
        for &dtype in DType::ALL.iter().filter(stored) {
            for n in [0, 1, 3, 1000] {
                let what = format!("{n} {dtype} from {from} to {to}");
                let bytes = pattern(dtype, n);
                let x = Tensor::from_bytes(&bytes, dtype, [n], from).unwrap();
                let there = x.to_device(to).unwrap();
                assert_eq!(there.device(), to, "{what}");
                assert_eq!(there.to_bytes().unwrap(), bytes, "{what}");
                if let Some(view) = there.host_view().unwrap() {
                    assert_eq!(view.as_slice(), bytes, "{what}, in place");
                }
            }
        }
        // What is pending is computed where it is.
        let x = Tensor::arange(0i32, 5, 1, from).unwrap();
        let y = (&x * 3i32).to_device(to).unwrap();
        assert_eq!((&y + 1i32).to_vec::<i32>().unwrap(), [1, 4, 7, 10, 13], "{from} to {to}");
        let z = &y + 2i32;
        if let Some(view) = z.host_view().unwrap() {
            assert_eq!(view.as_slice(), [2i32, 5, 8, 11, 14].map(i32::to_le_bytes).concat());
        }
    }
}

#[test]
fn reads_go_on_while_the_program_does() {
    const N: usize = 100_000;
    for device in devices() {
        let x = Tensor::arange(0i32, N as i32, 1, &device).unwrap();
        let mut reads = Vec::new();
        for k in 0..8i32 {
            // Nothing but the read holds this value, and what follows would like its memory.
            reads.push((&x * k).read_async::<i32>().unwrap());
            (&x + k).realize().unwrap();
        }
        let empty = x.narrow(0, 0, 0).unwrap().read_async::<i32>().unwrap();
        assert!(empty.is_done() && empty.wait().unwrap().is_empty(), "{device}");
        assert!(x.read_async::<f32>().is_err(), "{device}: another dtype");
        for (k, read) in (0..).zip(reads) {
            let found = read.wait().unwrap();
            assert!(found.into_iter().eq((0..N as i32).map(|i| i * k)), "{device}: times {k}");
        }
        let read = x.read_async::<i32>().unwrap();
        while !read.is_done() {
            std::thread::yield_now();
        }
        assert_eq!(read.wait().unwrap().len(), N, "{device}");
        // Given up.
        drop(x.read_async::<i32>().unwrap());
    }
}
