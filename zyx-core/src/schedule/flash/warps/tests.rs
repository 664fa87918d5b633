//! Attention of halves by warps, interpreted, against the graph evaluator, which stores scores.

use crate::dtype::{DType, DTypeSet};
use crate::ir::mma::WIDE;
use crate::ir::{Kernel, Op};
use crate::reference::Reference;
use crate::runtime::{Device, Optimizer, Runtime};
use crate::tensor::{Attention, Tensor};
use crate::testing::{evaluate, kernels};

/// GPUs with matrix instructions, with square ones alone and with wide ones besides, and a width of
/// heads for them.
fn devices(optimizer: Optimizer) -> [(Device, usize); 2] {
    let halves = DTypeSet::of(&[DType::F16, DType::BF16]);
    [(DTypeSet::NONE, 32), (halves, 64)].map(|(wide, width)| (device(optimizer, wide), width))
}

fn device(optimizer: Optimizer, wide_mma: DTypeSet) -> Device {
    device_with(optimizer, wide_mma, false)
}

/// The same, maybe with attention as a library call.
fn device_with(optimizer: Optimizer, wide_mma: DTypeSet, attention: bool) -> Device {
    let mut reference = Reference { attention, ..Reference::default() };
    reference.caps.simt = true;
    reference.caps.max_local = 1024;
    reference.caps.shared_bytes = 48 << 10;
    reference.caps.vector_bytes = 32;
    reference.caps.threads = 1 << 18;
    reference.caps.subgroup = (32, 32);
    reference.caps.mma = DTypeSet::of(&[DType::F16, DType::BF16]);
    reference.caps.wide_mma = wide_mma;
    reference.caps.most_shared_bytes = if wide_mma == DTypeSet::NONE { 0 } else { 227 << 10 };
    let runtime = Runtime::default();
    runtime.register(reference);
    let device = runtime.device("reference").unwrap();
    device.set_optimizer(optimizer);
    device
}

/// Numbers of about unit size.
fn numbers(dims: &[usize], seed: usize, dtype: DType, device: &Device) -> Tensor {
    let n: usize = dims.iter().product();
    let value = |i: usize| ((i * 7919 + seed * 104_729) % 2003) as f32 / 512.0 - 1002.0 / 512.0;
    let values: Vec<f32> = (0..n).map(value).collect();
    let x = Tensor::from_slice(&values, dims, device).unwrap().cast(dtype);
    x.realize().unwrap();
    x.tracked()
}

/// Heads of queries and of keys, queries, keys, width, width of values.
type Sizes = [usize; 6];

/// Queries, keys and values.
fn inputs(
    [heads, groups, queries, keys, width, values]: Sizes,
    dtype: DType,
    device: &Device,
) -> [Tensor; 3] {
    let q = numbers(&[2, heads, queries, width], 1, dtype, device);
    let k = numbers(&[2, groups, keys, width], 2, dtype, device);
    [q, k, numbers(&[2, groups, keys, values], 3, dtype, device)]
}

/// The result and all gradients are those of stored scores, up to roundings to the half, and so
/// many launches of matrix instructions compute them.
#[track_caller]
fn check(what: &str, x: &[Tensor; 3], options: Attention<'_>, forward: usize, backward: usize) {
    check_from(0, what, x, options, forward, backward);
}

/// The same but for the first elements of the gradients of queries and keys, whose terms cancel.
#[track_caller]
fn check_from(
    first: usize,
    what: &str,
    x: &[Tensor; 3],
    options: Attention<'_>,
    forward: usize,
    backward: usize,
) {
    let [q, k, v] = x;
    let y = q.scaled_dot_product_attention(k, v, options).unwrap();
    assert_eq!(flash_caps(&[&y]), forward, "{what}");
    let weights = numbers(y.shape(), 5, DType::F32, y.device());
    let loss = y.cast(DType::F32).mul(&weights).unwrap().sum(..).unwrap();
    let gradients = loss.grad(&[q, k, v]).unwrap();
    let all: Vec<&Tensor> = [&y].into_iter().chain(gradients.iter().flatten()).collect();
    assert_eq!(all.len(), 4);
    // Wide ones of keys and of values share their tiles.
    let wide = y.device().caps().wide_mma.contains(q.dtype());
    let whole = [q, v].iter().all(|x| x.shape()[x.rank() - 1].is_multiple_of(WIDE));
    let backward = if wide && whole { backward - 1 } else { backward };
    assert_eq!(flash_caps(&all), backward, "{what}");
    let expected = evaluate(&all).unwrap();
    Tensor::realize_all(all.iter().copied()).unwrap();
    for (i, (got, expected)) in all.iter().zip(expected).enumerate() {
        let expected: Vec<f64> = expected.iter().map(|x| x.to_f64()).collect();
        let largest = expected.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let unit = if got.dtype() == DType::F16 { 2f64.powi(-11) } else { 2f64.powi(-8) };
        let got = got.cast(DType::F32).to_vec::<f32>().unwrap();
        let width = all[i].shape()[3];
        let skipped = if matches!(i, 1 | 2) { first } else { 0 };
        let compared = got.iter().zip(&expected).enumerate();
        let compared = compared.filter(|(at, _)| at % width >= skipped);
        let error = compared.map(|(_, (a, b))| (f64::from(*a) - b).abs());
        let error = error.fold(0.0f64, |m, e| if e.is_nan() { f64::INFINITY } else { m.max(e) });
        assert!(error <= 4.0 * unit * largest, "{what}, {i}: off by {error} of {largest}");
    }
}

/// Kernels with matrix instructions and without stored scores.
fn flash_caps(tensors: &[&Tensor]) -> usize {
    let is_flash = |k: &Kernel| {
        k.name().starts_with("flash") && k.ops().iter().any(|op| matches!(op, Op::Mma { .. }))
    };
    kernels(tensors).iter().filter(|k| is_flash(k)).count()
}

#[test]
fn lengths_and_widths_of_any_kind() {
    let [(square, _), (wide, _)] = devices(Optimizer::Off);
    let plain = Attention::default;
    for (sizes, dtype, d) in [
        ([2, 2, 70, 197, 32, 32], DType::BF16, &square),
        ([1, 1, 128, 128, 64, 64], DType::F16, &square),
        ([1, 1, 140, 130, 64, 96], DType::F16, &square),
        ([1, 1, 129, 65, 128, 128], DType::BF16, &square),
        ([1, 1, 70, 130, 64, 64], DType::BF16, &wide),
        ([1, 1, 64, 128, 64, 128], DType::F16, &wide),
        ([1, 1, 70, 130, 64, 96], DType::F16, &wide),
    ] {
        check(&format!("{sizes:?}"), &inputs(sizes, dtype, d), plain(), 1, 4);
    }
}

#[test]
fn blocks_that_a_mask_hides_are_left_out() {
    for (d, w) in devices(Optimizer::Off) {
        for sizes in [[1, 1, 150, 150, w, w], [1, 1, 70, 260, 64, 64], [1, 1, 260, 70, w, 64]] {
            let causal = Attention { causal: true, ..Attention::default() };
            check(&format!("{sizes:?}"), &inputs(sizes, DType::F16, &d), causal, 1, 4);
        }
    }
}

#[test]
fn masks_and_rows_that_see_nothing() {
    for (d, w) in devices(Optimizer::Off) {
        let (rows, columns) = (70, 197);
        let x = inputs([1, 1, rows, columns, w, w], DType::BF16, &d);
        let allowed =
            |i: usize, j: usize| !i.is_multiple_of(7) && (i.is_multiple_of(5) || j >= 150);
        let flags: Vec<u8> =
            (0..rows * columns).map(|at| u8::from(allowed(at / columns, at % columns))).collect();
        let mask = Tensor::from_slice(&flags, [rows, columns], &d).unwrap().cast(DType::Bool);
        mask.realize().unwrap();
        check("flags", &x, Attention { mask: Some(&mask), ..Attention::default() }, 1, 4);
        let slope = numbers(&[1, 1, rows, columns], 7, DType::F32, &d).detach();
        check("slope", &x, Attention { mask: Some(&slope), ..Attention::default() }, 1, 4);
    }
}

#[test]
fn groups_of_heads_and_heads_beside_positions() {
    for (d, w) in devices(Optimizer::Off) {
        let x = inputs([2, 1, 70, 130, w, w], DType::BF16, &d);
        let grouped = || Attention { grouped: true, ..Attention::default() };
        check("grouped", &x, grouped(), 1, 4);
        check("causal", &x, Attention { causal: true, ..grouped() }, 1, 4);
        let turned = x.map(|x| {
            let stored = x.permute([0, 2, 1, 3]).unwrap().contiguous().detach();
            stored.realize().unwrap();
            stored.tracked().permute([0, 2, 1, 3]).unwrap()
        });
        check("turned", &turned, grouped(), 1, 4);
        check("turned, causal", &turned, Attention { causal: true, ..grouped() }, 1, 4);
        // Queries that share keys are read where they are.
        let [q, k, v] = &turned;
        let y = q.scaled_dot_product_attention(k, v, grouped()).unwrap();
        assert_eq!(kernels(&[&y]).len(), 1);
    }
}

/// Heads that share keys are rows behind each other, whose positions begin again with each; blocks
/// of rows may lie in two of them.
#[test]
fn masks_of_groups_of_heads() {
    for (d, w) in devices(Optimizer::Off) {
        for [heads, groups, queries, keys] in
            [[4, 1, 67, 67], [2, 1, 131, 131], [4, 2, 70, 66], [2, 1, 64, 64], [8, 1, 20, 70]]
        {
            let what = format!("{heads} {groups} {queries} {keys}");
            let x = inputs([heads, groups, queries, keys, w, w], DType::BF16, &d);
            let grouped = || Attention { grouped: true, ..Attention::default() };
            check(&what, &x, Attention { causal: true, ..grouped() }, 1, 4);
            // What is hidden is before the diagonal.
            let [row, column] = [queries, keys].map(|n| Tensor::iota(n, DType::I64, &d));
            let later = row.unsqueeze(-1).unwrap().le(&column).unwrap();
            check(&what, &x, Attention { mask: Some(&later), ..grouped() }, 1, 4);
            let flags: Vec<u8> = (0..queries * keys).map(|at| u8::from(at % 3 != 0)).collect();
            let mask = Tensor::from_slice(&flags, [queries, keys], &d).unwrap().cast(DType::Bool);
            mask.realize().unwrap();
            check(&what, &x, Attention { mask: Some(&mask), ..grouped() }, 1, 4);
        }
    }
}

/// `x` with NaN at these positions.
fn with_nan(x: &Tensor, positions: std::ops::Range<usize>) -> Tensor {
    let [length, width] = [2, 1].map(|i| x.shape()[x.rank() - i]);
    let mut values = x.detach().cast(DType::F32).to_vec::<f32>().unwrap();
    for (i, line) in values.chunks_exact_mut(width).enumerate() {
        if positions.contains(&(i % length)) {
            line.fill(f32::NAN);
        }
    }
    let y = Tensor::from_slice(&values, x.shape(), x.device()).unwrap().cast(x.dtype());
    y.realize().unwrap();
    y.tracked()
}

/// Which lines of a result have a NaN, in the first of the batch, which is half of it.
fn lines_of_nan(x: &Tensor) -> Vec<bool> {
    let width = x.shape()[x.rank() - 1];
    let values = x.detach().cast(DType::F32).to_vec::<f32>().unwrap();
    let lines: Vec<bool> =
        values.chunks_exact(width).map(|x| x.iter().any(|x| x.is_nan())).collect();
    lines[..lines.len() / 2].to_vec()
}

/// Zero times NaN is NaN, so NaN beyond a causal mask reaches what is computed in full. It must not
/// reach blocks of rows that lie in one head and see no block of columns with one.
#[test]
fn blocks_hidden_from_groups_of_heads_are_left_out() {
    for ((d, w), rows) in devices(Optimizer::Off).into_iter().zip([128, 64]) {
        for (heads, length) in [(1, 192), (2, 192), (4, 131), (2, 197)] {
            let x = inputs([heads, 1, length, length, w, w], DType::BF16, &d);
            let run = |[q, k, v]: [&Tensor; 3], weights: &Tensor| {
                let options = Attention { causal: true, grouped: true, ..Attention::default() };
                let y = q.scaled_dot_product_attention(k, v, options).unwrap();
                let loss = y.cast(DType::F32).mul(weights).unwrap().sum(..).unwrap();
                let gradients = loss.grad(&[q, k, v]).unwrap().into_iter().flatten();
                let all: Vec<Tensor> = [y].into_iter().chain(gradients).collect();
                Tensor::realize_all(&all).unwrap();
                all.iter().map(lines_of_nan).collect::<Vec<_>>()
            };
            let weights = numbers(x[0].shape(), 5, DType::F32, &d);
            let [q, k, v] = &x;
            let [late, early] = [128, 64];
            // Queries of blocks before the last keys do not see them.
            let found = run([q, &with_nan(k, late..length), &with_nan(v, late..length)], &weights);
            let mut free = 0;
            for (row, reached) in found[0].iter().zip(&found[1]).enumerate() {
                let (first, last) = (row / rows * rows, row / rows * rows + rows - 1);
                if row % length >= late {
                    assert_eq!(reached, (&true, &true), "{heads} {length} {row}");
                } else if first / length == last / length && last % length < late {
                    assert_eq!(reached, (&false, &false), "{heads} {length} {row}");
                    free += 1;
                }
            }
            assert!(free >= rows, "{heads} {length}");
            // Keys of blocks behind the first queries are not seen by them.
            let found = run([&with_nan(q, 0..early), k, v], &with_nan(&weights, 0..early));
            for (row, reached) in found[2].iter().zip(&found[3]).enumerate() {
                if row < early {
                    assert_eq!(reached, (&true, &true), "{heads} {length} {row}");
                } else if row / rows > 0 {
                    assert_eq!(reached, (&false, &false), "{heads} {length} {row}");
                }
            }
        }
    }
}

#[test]
fn passes_leave_it_right() {
    for (d, w) in devices(Optimizer::Default) {
        let causal = Attention { causal: true, ..Attention::default() };
        check("tuned", &inputs([1, 1, 150, 150, w, w], DType::BF16, &d), causal, 1, 4);
    }
}

/// A number below zero turns the order of scores, zero makes them equal; a mask hides some either
/// way.
#[test]
fn scores_are_scaled_by_any_number() {
    for (d, w) in devices(Optimizer::Off) {
        let x = inputs([1, 1, 70, 130, w, w], DType::BF16, &d);
        for (scale, causal) in [(-0.25, false), (-0.25, true), (0.0, true)] {
            let options = Attention { scale: Some(scale), causal, ..Attention::default() };
            check(&format!("{scale} {causal}"), &x, options, 1, 4);
        }
    }
}

/// Attention and its gradient are wide where the device has wide instructions and room.
#[test]
fn wide_instructions_are_used_where_there_is_room() {
    for ((d, _), expected) in devices(Optimizer::Off).into_iter().zip([0, 3]) {
        let [q, k, v] = inputs([1, 1, 70, 130, 64, 64], DType::BF16, &d);
        let y = q.scaled_dot_product_attention(&k, &v, Attention::default()).unwrap();
        let gradients = y.square().sum(..).unwrap().grad(&[&q, &k, &v]).unwrap();
        let all: Vec<&Tensor> = [&y].into_iter().chain(gradients.iter().flatten()).collect();
        let is_wide = |k: &Kernel| k.ops().iter().any(|op| matches!(op, Op::Panel { .. }));
        assert_eq!(kernels(&all).iter().filter(|k| is_wide(k)).count(), expected);
    }
}

/// By hand, the softmax's gradient asks for its result, so weights are stored for the gradient of
/// scores and nothing computes them again.
#[test]
fn what_is_stored_anyway_is_not_computed_again() {
    let d = device(Optimizer::Off, DTypeSet::NONE);
    let [q, k, v] = inputs([2, 2, 70, 197, 32, 32], DType::BF16, &d);
    let scores = q.matmul(&k.t()).unwrap().cast(DType::F32).mul(0.2).unwrap();
    let y = scores.softmax(-1).unwrap().cast(DType::BF16).matmul(&v).unwrap();
    assert_eq!(flash_caps(&[&y]), 1);
    let gradients = y.square().sum(..).unwrap().grad(&[&q, &k, &v]).unwrap();
    let all: Vec<&Tensor> = [&y].into_iter().chain(gradients.iter().flatten()).collect();
    assert_eq!(flash_caps(&all), 0);
}

#[test]
fn other_dtypes_and_odd_widths_are_stored() {
    let d = device(Optimizer::Off, DTypeSet::NONE);
    let q = numbers(&[2, 2, 70, 40], 1, DType::BF16, &d);
    let k = numbers(&[2, 2, 197, 40], 2, DType::BF16, &d);
    let y = q.scaled_dot_product_attention(&k, &k, Attention::default()).unwrap();
    assert_eq!(flash_caps(&[&y]), 0);
    let x = inputs([2, 2, 70, 197, 32, 32], DType::F32, &d);
    let y = x[0].scaled_dot_product_attention(&x[1], &x[2], Attention::default()).unwrap();
    assert_eq!(flash_caps(&[&y]), 0);
}

/// Queries, keys and values whose products are whole numbers around plus or minus a power of two.
fn shifted(
    [queries, keys, width]: [usize; 3],
    (exponent, sign, dtype): (i32, f64, DType),
    device: &Device,
) -> [Tensor; 3] {
    let factor = [sign * 2f64.powi(exponent / 2), 2f64.powi(exponent - exponent / 2)];
    let make = |n: usize, seed: usize, first: Option<f64>| {
        let value = |i: usize| match first {
            Some(first) if i.is_multiple_of(width) => first as f32,
            Some(_) => ((i * 7919 + seed * 104_729) % 2003 % 3) as f32 - 1.0,
            None => ((i * 7919 + seed * 104_729) % 2003) as f32 / 512.0 - 1002.0 / 512.0,
        };
        let values: Vec<f32> = (0..2 * n * width).map(value).collect();
        let x = Tensor::from_slice(&values, [2, 1, n, width], device).unwrap().cast(dtype);
        x.realize().unwrap();
        x.tracked()
    };
    let [q, k] = [(queries, 1, factor[0]), (keys, 2, factor[1])]
        .map(|(n, seed, first)| make(n, seed, Some(first)));
    [q, k, make(keys, 3, None)]
}

/// Shifts of scores that cancel: none, some whose logarithm of a sum is exact enough, and beyond.
const SHIFTS: [(i32, f64, DType); 7] = [
    (10, 1.0, DType::F16),
    (20, 1.0, DType::F16),
    (20, -1.0, DType::BF16),
    (22, -1.0, DType::F16),
    (30, 1.0, DType::F16),
    (100, 1.0, DType::BF16),
    (100, -1.0, DType::BF16),
];

#[test]
fn scores_of_any_size() {
    for (d, w) in devices(Optimizer::Off) {
        for shift in SHIFTS {
            let x = shifted([70, 130, w], shift, &d);
            for (causal, scale) in [(false, 0.25), (true, 0.5), (false, -0.5)] {
                let options = Attention { scale: Some(scale), causal, ..Attention::default() };
                check_from(1, &format!("{shift:?} {causal} {scale}"), &x, options, 1, 4);
            }
        }
    }
}

/// Scores that differ by much, under a factor that rounds them.
#[test]
fn scores_of_several_sizes() {
    for (d, w) in devices(Optimizer::Off) {
        let (rows, columns) = (70, 130);
        let [_, _, v] = inputs([1, 1, rows, columns, w, w], DType::F16, &d);
        let make = |n: usize, value: &dyn Fn(usize) -> f32| {
            let at = |i: usize| if i.is_multiple_of(w) { value(i / w) } else { 0.0 };
            let values: Vec<f32> = (0..2 * n * w).map(at).collect();
            let x = Tensor::from_slice(&values, [2, 1, n, w], &d).unwrap().cast(DType::F16);
            x.realize().unwrap();
            x.tracked()
        };
        let q = make(rows, &|i| 1000.0 + (i % rows) as f32);
        let k = make(columns, &|j| [6000.0, 0.0, -3000.0, 6000.0][j % columns % 4]);
        for scale in [0.3, -0.3] {
            let options = Attention { scale: Some(scale), ..Attention::default() };
            check_from(1, &format!("{scale}"), &[q.clone(), k.clone(), v.clone()], options, 1, 4);
        }
    }
}

#[test]
fn masks_of_finite_numbers() {
    for (d, w) in devices(Optimizer::Off) {
        let (rows, columns) = (70, 130);
        for (dtype, least) in [(DType::F16, -65504.0), (DType::BF16, -3.389e38), (DType::F16, -1e9)]
        {
            // Scores that are exact beside the mask.
            let x = shifted([rows, columns, w], (0, 1.0, dtype), &d);
            // All of every third row, and padding on the left of others.
            let is_hidden = |i: usize| (i / columns).is_multiple_of(3) || i % columns < 40;
            let at = |i: usize| if is_hidden(i) { least } else { 0.0 };
            let values: Vec<f32> = (0..rows * columns).map(at).collect();
            let mask = Tensor::from_slice(&values, [rows, columns], &d).unwrap();
            mask.realize().unwrap();
            for causal in [false, true] {
                let scale = Some(0.25);
                let options =
                    Attention { mask: Some(&mask), causal, scale, ..Attention::default() };
                // Sums of which a band is known for one only share no tiles.
                let is_wide = d.caps().wide_mma != DTypeSet::NONE;
                let backward = if is_wide && causal { 5 } else { 4 };
                check(&format!("{dtype} {least} {causal}"), &x, options, 1, backward);
            }
        }
    }
}

/// A library gives one number of a row.
#[test]
fn gradients_of_attention_of_a_library() {
    let halves = DTypeSet::of(&[DType::F16, DType::BF16]);
    for (wide, w) in [(DTypeSet::NONE, 32), (halves, 64)] {
        let d = device_with(Optimizer::Off, wide, true);
        let x = inputs([4, 2, 70, 130, w, w], DType::BF16, &d);
        for (causal, grouped) in [(false, true), (true, true)] {
            let options = Attention { causal, grouped, ..Attention::default() };
            check(&format!("{causal}"), &x, options, 0, 3);
        }
        for shift in SHIFTS {
            let x = shifted([70, 130, w], shift, &d);
            for (causal, scale) in [(false, 0.25), (true, 0.5)] {
                let options = Attention { scale: Some(scale), causal, ..Attention::default() };
                check_from(1, &format!("{shift:?} {causal} {scale}"), &x, options, 0, 3);
            }
        }
    }
}
