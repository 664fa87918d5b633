//! Eight-bit floats and weights of four and eight bits, bit by bit.
//!
//! The numbers of a format are listed here from its definition (OFP8, 2023), and a number is
//! encoded by looking for its neighbours in that list: no arithmetic on bits as the library's.

use crate::{Array, Check, Val, oracle};
use zyx_core::{DType, Device, Float8, QuantizedMatrix, Tensor};

/// The numbers that codes 0 to 127 stand for.
fn numbers(format: Float8) -> Vec<f64> {
    let (fraction, bias) = match format {
        Float8::E4M3 => (3, 7),
        Float8::E5M2 => (2, 15),
    };
    let of = |code: i32| {
        let (e, rest) = (code >> fraction, code & ((1 << fraction) - 1));
        let digits = if e == 0 { rest } else { rest + (1 << fraction) };
        f64::from(digits) * 2f64.powi(e.max(1) - bias - fraction)
    };
    let special = |code: i32| match (format, code) {
        (Float8::E4M3, 0x7f) => f64::NAN,
        (Float8::E5M2, 0x7c) => f64::INFINITY,
        (Float8::E5M2, 0x7d..) => f64::NAN,
        _ => of(code),
    };
    (0..128).map(special).collect()
}

/// The code of a number: the nearest, of two the even one. What rounds to the place above the
/// largest number is infinite, or no number where there is no infinity.
fn code(format: Float8, numbers: &[f64], x: f64) -> i64 {
    let sign = if x.is_sign_negative() { 0x80 } else { 0 };
    let largest = numbers.iter().rposition(|x| x.is_finite()).unwrap_or(0);
    let above = match format {
        Float8::E4M3 => 480.0,
        Float8::E5M2 => 65536.0,
    };
    let size = x.abs();
    let value = |code: usize| if code > largest { above } else { numbers[code] };
    if size >= above {
        return sign | (largest as i64 + 1);
    }
    let below = (0..=largest).rev().find(|&code| numbers[code] <= size).unwrap_or(0);
    let middle = (value(below) + value(below + 1)) / 2.0;
    let up = size > middle || (size == middle && below % 2 == 1);
    sign | (below + usize::from(up)) as i64
}

/// All 256 codes decoded, all numbers of `f16` encoded.
pub fn codes(device: &Device) {
    let mut check = Check::new(device).untied();
    let all = check.input(&Array::ints(DType::U8, &[256], &(0..256).collect::<Vec<_>>()));
    let halves: Vec<f64> = (0..1 << 16)
        .filter_map(|code| oracle::decode(DType::F16, code).certain())
        .filter(|x| !x.is_nan())
        .collect();
    let inputs = check.input(&Array::reals(DType::F16, &[halves.len()], &halves));
    for format in [Float8::E4M3, Float8::E5M2] {
        let numbers = numbers(format);
        let both: Vec<f64> = numbers.iter().copied().chain(numbers.iter().map(|x| -x)).collect();
        let want = Array::reals(DType::F32, &[256], &both);
        check.identical(format!("{format:?} decoded"), all.decode_float8(format), &want);
        let want: Vec<i64> = halves.iter().map(|&x| code(format, &numbers, x)).collect();
        let want = Array::ints(DType::U8, &[halves.len()], &want);
        check.equal(format!("{format:?} encoded"), Ok(inputs.encode_float8(format)), &want);
        let wide = check.input(&Array::reals(DType::F32, &[3], &[1e30, f64::NAN, -f64::INFINITY]));
        let ends = match format {
            Float8::E4M3 => [0x7f, 0x7f, 0x7f],
            Float8::E5M2 => [0x7c, 0x7f, 0x7c],
        };
        // The sign of what is no number is not kept on every device.
        let sizes = wide.encode_float8(format).bitwise_and(0x7f);
        check.equal(format!("{format:?} of the ends"), sizes, &Array::ints(DType::U8, &[3], &ends));
    }
    check.finish();
}

/// Weights whose scales are powers of two: everything is exact.
pub fn weights(device: &Device) {
    let mut check = Check::new(device).untied();
    let (rows, columns) = (3usize, 8usize);
    for (bits, most) in [(4u32, 7i64), (8, 127)] {
        let group = 4;
        // Each group has its largest magnitude, so that its scale is 1/4, 1/2, 1, ...
        let whole: Vec<i64> = (0..rows * columns)
            .map(|i| if i % group == 1 { -most } else { (i as i64 * 37 % (2 * most + 1)) - most })
            .collect();
        let scale = |i: usize| 2f64.powi((i / group) as i32 - 2);
        let values: Vec<f64> =
            whole.iter().enumerate().map(|(i, &q)| q as f64 * scale(i)).collect();
        let weight = Array::reals(DType::F32, &[rows, columns], &values);
        let x =
            Array::whole(DType::F32, &[2, columns], &(0..16).map(|i| i % 5).collect::<Vec<_>>());
        let quantized = match QuantizedMatrix::new(&check.input(&weight), bits, group) {
            Ok(quantized) => quantized,
            Err(error) => {
                check.fail(error);
                continue;
            }
        };
        let packed = match bits {
            8 => Array::ints(DType::I8, &[rows, columns], &whole),
            _ => {
                let pairs = whole.chunks(2).map(|pair| (pair[0] + 8) | (pair[1] + 8) << 4);
                Array::ints(DType::U8, &[rows, columns / 2], &pairs.collect::<Vec<_>>())
            }
        };
        check.equal(format!("{bits} bits, packed"), Ok(quantized.packed.clone()), &packed);
        check.equal(format!("{bits} bits, widened"), quantized.dequantize(), &weight);
        let product = |r: usize| {
            let (x, weight) = (&x, &weight);
            (0..rows).map(move |i| {
                let terms = (0..columns).map(|k| {
                    let (Some(a), Some(b)) =
                        (x.at(&[r, k]).certain(), weight.at(&[i, k]).certain())
                    else {
                        return f64::NAN;
                    };
                    a * b
                });
                Val::point(terms.sum())
            })
        };
        let want = Array::new(DType::F32, &[2, rows], (0..2).flat_map(product).collect());
        check.equal(format!("{bits} bits, product"), quantized.matmul(&check.input(&x)), &want);
    }
    check.finish();
}

/// Matrices of small numbers with products in many shapes: groups that are short, odd, of several
/// runs, longer than a library's blocks; some products with what follows, and two in one launch.
/// Scales are powers of two, so that sums are exact in any order.
pub fn products(device: &Device) {
    let mut check = Check::new(device).untied();
    // Vectors, rows, columns, columns of a group.
    let shapes = [
        (5, 7, 96, 32),
        (33, 50, 66, 6),
        (6, 9, 45, 15),
        (4, 13, 11000, 11000),
        (70, 24, 1200, 300),
    ];
    for (n, rows, columns, group) in shapes {
        let numbers: Vec<i64> =
            (0..n * columns).map(|i| (i as i64 * 7 + i as i64 / 5) % 5 - 2).collect();
        let x = Array::whole(DType::F32, &[n, columns], &numbers);
        let input = check.input(&x);
        let mut results = Vec::new();
        for (bits, most) in [(4u32, 7i64), (8, 127)] {
            if bits == 4 && group % 2 == 1 {
                continue;
            }
            let whole = |i: usize| match i % group {
                1 => -most,
                _ => (i as i64 * 37 + i as i64 / 11) % (2 * most + 1) - most,
            };
            let scale = |i: usize| 2f64.powi((i / group % 3) as i32 - 2);
            let values: Vec<f64> =
                (0..rows * columns).map(|i| whole(i) as f64 * scale(i)).collect();
            let weight = check.input(&Array::reals(DType::F32, &[rows, columns], &values));
            let quantized = match QuantizedMatrix::new(&weight, bits, group) {
                Ok(quantized) => quantized,
                Err(error) => {
                    check.fail(error);
                    continue;
                }
            };
            let sum = |i: usize| -> f64 {
                let (r, c) = (i / rows * columns, i % rows * columns);
                (0..columns).map(|k| numbers[r + k] as f64 * values[c + k]).sum()
            };
            let sums: Vec<f64> = (0..n * rows).map(sum).collect();
            let followed = quantized.matmul(&input).and_then(|y| Ok(y.add(1.0)?.relu()));
            results.push((bits, quantized.matmul(&input), followed, sums));
        }
        // All of a shape at once, which may be one launch; then each with what follows.
        let tensors: Vec<_> = results.iter().filter_map(|result| result.1.as_ref().ok()).collect();
        if let Err(error) = Tensor::realize_all(tensors) {
            check.fail(error);
        }
        for (bits, product, followed, sums) in results {
            let name = format!("{n} by {rows}x{columns}, {bits} bits by {group}");
            let positive: Vec<f64> = sums.iter().map(|&x| (x + 1.0).max(0.0)).collect();
            check.equal(&name, product, &Array::reals(DType::F32, &[n, rows], &sums));
            let want = Array::reals(DType::F32, &[n, rows], &positive);
            check.equal(format!("{name}, what follows"), followed, &want);
        }
    }
    // The same bytes for every entry of a batch, as the left factor, and entries of their own.
    for batch in [1usize, 2] {
        let bytes: Vec<i64> = (0..batch * 16 * 32).map(|i| (i as i64 * 31) % 256).collect();
        let numbers: Vec<i64> = (0..2 * 32 * 8).map(|i| i as i64 % 7 - 3).collect();
        let weight = Array::ints(DType::U8, &[batch, 16, 32], &bytes);
        let x = Array::whole(DType::F32, &[2, 32, 8], &numbers);
        let wide = check.input(&weight).cast(DType::F32);
        let sum = |i: usize| -> f64 {
            let (entry, row, column) = (i / 128, i / 8 % 16, i % 8);
            let (w, x) = ((entry % batch * 16 + row) * 32, entry * 256 + column);
            (0..32).map(|k| (bytes[w + k] * numbers[x + 8 * k]) as f64).sum()
        };
        let sums: Vec<f64> = (0..2 * 16 * 8).map(sum).collect();
        let got = wide.matmul(&check.input(&x));
        check.equal(
            format!("bytes of {batch} by a batch"),
            got,
            &Array::reals(DType::F32, &[2, 16, 8], &sums),
        );
    }
    check.finish();
}
