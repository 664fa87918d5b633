//! Printing agrees with NumPy, character by character.
//!
//! `data/numpy_print.txt` was written by NumPy 2.4.6: for each case a line `> dtype [shape] bytes`
//! (or `ramp start step`), then `str`, a line `-`, then `repr` with our names of dtypes.
#![allow(clippy::unwrap_used, reason = "a failing helper is a failing test")]

use zyx_core::{DType, Device, Runtime, Scalar, Tensor};

fn case(header: &str, device: &Device) -> Tensor {
    let mut words = header.split(' ');
    let mut word = || words.next().expect("a word");
    let dtype = DType::from_name(word()).expect("a dtype");
    let shape = word().trim_matches(['[', ']']);
    let shape: Vec<usize> =
        shape.split(',').filter(|d| !d.is_empty()).map(|d| d.parse().unwrap()).collect();
    let bytes = match word() {
        "ramp" => {
            let (start, step): (f64, f64) = (word().parse().unwrap(), word().parse().unwrap());
            let element = |i| Scalar::from_f64(dtype, start + i as f64 * step);
            let bytes = |x: Scalar| x.bits().to_le_bytes().into_iter().take(dtype.size());
            (0..shape.iter().product()).flat_map(|i: usize| bytes(element(i))).collect()
        }
        hex => {
            let byte = |i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap();
            (0..hex.len()).step_by(2).map(byte).collect::<Vec<u8>>()
        }
    };
    Tensor::from_bytes(&bytes, dtype, shape, device).unwrap()
}

#[test]
fn agrees_with_numpy() {
    let device = Runtime::default().device("reference").unwrap();
    let text = include_str!("data/numpy_print.txt");
    let mut n = 0;
    for part in format!("\n{text}").split("\n> ").skip(1) {
        let (header, expected) = part.split_once('\n').unwrap();
        let (str, repr) = expected.split_once("\n-\n").unwrap();
        let x = case(header, &device);
        assert_eq!(format!("{x}"), str, "str of {}", header.get(..60).unwrap_or(header));
        let repr = repr.strip_suffix('\n').unwrap_or(repr);
        assert_eq!(format!("{x:?}"), repr, "repr of {}", header.get(..60).unwrap_or(header));
        n += 1;
    }
    assert!(n > 150, "only {n} cases were read");
}

#[test]
fn a_precision_limits_the_digits() {
    let device = Runtime::default().device("reference").unwrap();
    let x = Tensor::new([1.0f32 / 3.0, 2.0], &device).unwrap();
    assert_eq!(format!("{x:.3}"), "[0.333 2.   ]");
    assert_eq!(format!("{:.4}", x.sum(..).unwrap()), "2.3333");
}

#[test]
fn brain_floats_show_their_shortest_digits() {
    let device = Runtime::default().device("reference").unwrap();
    let x = Tensor::new([0.1f32, 300.0, 1.5], &device).unwrap().cast(DType::BF16);
    assert_eq!(format!("{x:?}"), "tensor([1.0e-01, 3.0e+02, 1.5e+00], dtype=bf16)");
}

#[test]
fn an_error_of_the_device_is_printed() {
    let device = Runtime::default().device("reference").unwrap();
    let x = Tensor::new([1f32, 2.0], &device).unwrap();
    let y = &x + 1.0;
    device.set_memory_limit(Some(0));
    let text = format!("{y:?}");
    assert!(text.starts_with("tensor(<") && text.ends_with("shape=[2], dtype=f32)"), "{text}");
    device.set_memory_limit(None);
    assert_eq!(format!("{y}"), "[2. 3.]");
}
