//! Tensors and expressions beyond what WebGPU promises of a device: more operands than it binds,
//! buffers longer than a binding, more groups than an axis has.
#![allow(clippy::unwrap_used, reason = "tests")]

use zyx_backend_wgpu::Wgpu;
use zyx_core::{DType, Device, Tensor};

/// The first device, cut down to what WebGPU promises.
fn minimal() -> Option<Device> {
    zyx_tests::harness::device("wgpu", "limits", |runtime| runtime.register(Wgpu::minimal()))
}

fn numbers(n: usize, start: usize) -> Vec<f32> {
    (0..n).map(|i| ((i + start) % 17) as f32).collect()
}

#[test]
fn expressions_of_many_tensors_are_several_kernels() {
    let Some(d) = minimal() else { return };
    let terms: Vec<Vec<f32>> = (0..20).map(|k| numbers(300, k)).collect();
    let tensors: Vec<Tensor> =
        terms.iter().map(|t| Tensor::new(t.as_slice(), &d).unwrap()).collect();
    let mut expected = vec![0f32; 300];
    let mut sum = Tensor::zeros([300], DType::F32, &d);
    for (n, (term, tensor)) in terms.iter().zip(&tensors).enumerate() {
        let factor = n as f32 - 9.0;
        sum = sum + tensor * factor;
        expected.iter_mut().zip(term).for_each(|(e, x)| *e += x * factor);
    }
    assert_eq!(sum.to_vec::<f32>().unwrap(), expected);
    // A tree of sums, and many results of one kernel.
    let mut level = tensors.clone();
    while level.len() > 1 {
        level =
            level.chunks(2).map(|pair| pair.iter().fold(&pair[0] * 0.0, |s, x| s + x)).collect();
    }
    let expected: Vec<f32> = (0..300).map(|i| terms.iter().map(|t| t[i]).sum()).collect();
    assert_eq!(level[0].to_vec::<f32>().unwrap(), expected);
    let results: Vec<Tensor> = tensors.iter().map(|t| t + &tensors[0]).collect();
    Tensor::realize_all(&results).unwrap();
    for (result, term) in results.iter().zip(&terms) {
        let expected: Vec<f32> = term.iter().zip(&terms[0]).map(|(x, y)| x + y).collect();
        assert_eq!(result.to_vec::<f32>().unwrap(), expected);
    }
    let all: Vec<&Tensor> = tensors.iter().collect();
    assert_eq!(Tensor::cat(&all, 0).unwrap().to_vec::<f32>().unwrap(), terms.concat());
}

#[test]
fn tensors_longer_than_a_binding_are_bound_in_parts() {
    let Some(d) = minimal() else { return };
    // 128 MiB and a little more; 2^18 groups of 128 threads.
    let n = (32 << 20) + 1000;
    let x = Tensor::arange(0i32, n, 1, &d).unwrap();
    x.realize().unwrap();
    let y = ((&x + 1) * 3).to_vec::<i32>().unwrap();
    assert_eq!(y.len(), n as usize);
    let wrong = y.iter().enumerate().find(|(i, y)| **y != (*i as i32 + 1).wrapping_mul(3));
    assert_eq!(wrong, None);
    // Bytes, packed in words, across the border of the parts as well.
    let narrow = x.cast(DType::U8);
    narrow.realize().unwrap();
    let far = narrow.shrink([(n as usize - 5, n as usize)]).unwrap();
    let expected: Vec<u8> = (n - 5..n).map(|i| i as u8).collect();
    assert_eq!(far.to_vec::<u8>().unwrap(), expected);
}

#[test]
fn tensors_longer_than_a_buffer_are_refused() {
    let Some(d) = minimal() else { return };
    let kept = Tensor::new([1f32, 2.0], &d).unwrap();
    let long = Tensor::zeros([(256 << 20) / 4 + 1], DType::F32, &d) + &kept.sum(..).unwrap();
    let error = long.realize().unwrap_err().to_string();
    let parts = ["268435460 bytes on wgpu", "at most 268435456", "split the tensor"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    assert_eq!(d.stats().spills, 0, "nothing moves for what cannot fit");
    assert_eq!(kept.to_vec::<f32>().unwrap(), [1.0, 2.0]);
}

#[test]
fn double_precision_is_refused_where_there_is_none() {
    let Some(d) = minimal() else { return };
    assert!(!d.caps().storage.contains(DType::F64));
    let wide = Tensor::new([1f64, 2.0], &d).and_then(|x| (&x * 2.0).to_vec::<f64>());
    let cast = Tensor::new([1f32, 2.0], &d).unwrap().cast(DType::F64).to_vec::<f64>();
    for error in [wide, cast].map(|got| got.unwrap_err().to_string()) {
        let parts = ["f64", "f32", "another device"];
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}
