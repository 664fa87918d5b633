//! Reductions over every set of axes, positions of extremes, running sums.

use crate::bounds::LONG_SUM;
use crate::oracle::reduce::accumulator;
use crate::tolerance::{formula_error, sum_error};
use crate::values::{moderate, small, with_ties};
use crate::{Array, Check, Rng, Val};
use zyx_core::{BinaryOp, DType, Device, Result, Tensor};

const DIMS: &[&[usize]] = &[&[], &[1], &[0], &[17], &[2, 3, 5], &[3, 0], &[0, 3], &[1, 4, 1]];

fn axes_of(mask: u16) -> Vec<isize> {
    (0..16).filter(|axis| mask >> axis & 1 == 1).collect()
}

/// Sum, product, largest, smallest, any and all over every set of axes.
pub fn axes(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(50);
    for dims in DIMS {
        let x = moderate(dtype, dims, &mut rng);
        let a = check.input(&x);
        let truth = x.cast(DType::Bool);
        for mask in 0..1u16 << dims.len() {
            if !check.thorough(dtype) && dims.len() == 3 && !matches!(mask, 0b010 | 0b101 | 0b111) {
                continue;
            }
            let axes = axes_of(mask);
            let axes = axes.as_slice();
            let what = |op: &str| format!("{op} of {dtype} {dims:?} over {axes:?}");
            check.equal(what("sum"), a.sum(axes), &x.sum(mask, false));
            check.equal(what("prod"), a.prod(axes), &x.prod(mask, false));
            check.equal(what("max"), a.max(axes), &x.reduce(BinaryOp::Max, mask, false));
            check.equal(what("min"), a.min(axes), &x.reduce(BinaryOp::Min, mask, false));
            check.equal(what("any"), a.any(axes), &truth.reduce(BinaryOp::Or, mask, false));
            check.equal(what("all"), a.all(axes), &truth.reduce(BinaryOp::And, mask, false));
            check.equal(what("sum_keepdim"), a.sum_keepdim(axes), &x.sum(mask, true));
        }
    }
    let a = check.input(&moderate(dtype, &[2, 3], &mut rng));
    check.refused("sum", a.sum(2), &["sum", "2", "[2, 3]"]);
    check.refused("max", a.max([0, 0]), &["max", "twice"]);
    check.finish();
}

/// Long reductions, where the order of summation and the accumulator matter.
pub fn long(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(51);
    for (dims, mask) in [
        (&[1023usize][..], 1u16),
        (&[4097], 1),
        (&[300, 17], 1),
        (&[17, 300], 2),
        (&[3, 65, 5, 33], 0b1010),
        (&[100_000], 1),
    ] {
        if !check.thorough(dtype) && matches!(dims, [4097] | [17, 300] | [3, 65, 5, 33]) {
            continue;
        }
        let x = moderate(dtype, dims, &mut rng);
        let a = check.input(&x);
        let axes = axes_of(mask);
        check.equal(format!("sum {dims:?}"), a.sum(axes.as_slice()), &x.sum(mask, false));
        let want = x.reduce(BinaryOp::Max, mask, false);
        check.equal(format!("max {dims:?}"), a.max(axes.as_slice()), &want);
    }
    if dtype == DType::F32 {
        equal_numbers(&mut check, device);
    }
    check.finish();
}

/// Equal numbers are all rounded the same way: 2^14 in a line lose 1e-4. The error of a sum is that of a
/// block of its additions, so one bound serves all lengths.
fn equal_numbers(check: &mut Check, device: &Device) {
    let x = f64::from(0.1f32);
    let all = Tensor::full([1 << 19], 0.1f32, device).contiguous();
    for dims in [[1 << 14, 1 << 5], [1 << 5, 1 << 14]] {
        let matrix = all.reshape(dims).expect("it has as many elements");
        let mut within = |what: &str, got: Result<Vec<f32>>, want: f64| {
            let got = got.unwrap_or_else(|e| panic!("{what} of {dims:?}: {e}"));
            let error = got.iter().map(|&y| (f64::from(y) / want - 1.0).abs()).fold(0.0, f64::max);
            check.that(error <= LONG_SUM, format!("{what} of {dims:?}: relative error {error:e}"));
        };
        for axis in [0, 1] {
            let n = dims[axis];
            let axis = axis as isize;
            let values = |y: Result<Tensor>| y.and_then(|y| y.to_vec::<f32>());
            within(&format!("sum over {axis}"), values(matrix.sum(axis)), x * n as f64);
            within(&format!("mean over {axis}"), values(matrix.mean(axis)), x);
            let last = matrix.cumsum(axis).and_then(|y| y.slice(axis, n - 1..));
            within(&format!("last of cumsum along {axis}"), values(last), x * n as f64);
        }
    }
}

/// Reductions of views, which read their input out of order.
pub fn of_views(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(52);
    let x = moderate(dtype, &[5, 7, 3], &mut rng);
    let a = check.input(&x);
    let moved =
        a.permute([2, 0, 1]).and_then(|t| t.flip(1)).and_then(|t| t.pad([(0, 1), (1, 0), (2, 2)]));
    let moved = moved.expect("the view fits");
    let y = x.permute(&[2, 0, 1]).flip(0b10).pad(&[(0, 1), (1, 0), (2, 2)]);
    for mask in 1..8u16 {
        if !check.thorough(dtype) && !matches!(mask, 0b010 | 0b101 | 0b111) {
            continue;
        }
        let axes = axes_of(mask);
        check.equal(format!("sum {axes:?}"), moved.sum(axes.as_slice()), &y.sum(mask, false));
        let want = y.reduce(BinaryOp::Min, mask, false);
        check.equal(format!("min {axes:?}"), moved.min(axes.as_slice()), &want);
    }
    // A reduction of a reduction, and one of an expanded one.
    let inner = x.sum(0b100, true);
    let twice = a.sum_keepdim(2).and_then(|s| s.max([0, 1]));
    check.equal("max of sums", twice, &inner.reduce(BinaryOp::Max, 0b11, false));
    let centred = a.max_keepdim(1).and_then(|m| a.minimum(&m)).and_then(|d| d.sum(1));
    let want = x.binary(BinaryOp::Min, &x.reduce(BinaryOp::Max, 2, true)).sum(2, false);
    check.equal("sum after max", centred, &want);
    check.finish();
}

/// NaN and infinities in reductions.
pub fn not_finite(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(53);
    for nan_at in [None, Some(0), Some(13), Some(39)] {
        let mut x = with_ties(dtype, &[40], &mut rng);
        match nan_at {
            Some(at) if dtype.is_float() => x.data[at] = Val::point(f64::NAN),
            Some(_) => continue,
            None => {}
        }
        let a = check.input(&x);
        check.equal("sum", a.sum(..), &x.sum(1, false));
        check.equal("max", a.max(..), &x.reduce(BinaryOp::Max, 1, false));
        check.equal("min", a.min(..), &x.reduce(BinaryOp::Min, 1, false));
        check.equal("argmax", a.argmax(0), &x.arg_extreme(BinaryOp::Max, 0));
        check.equal("argmin", a.argmin(0), &x.arg_extreme(BinaryOp::Min, 0));
    }
    check.finish();
}

/// Positions of extremes with ties, along every axis.
pub fn positions(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(54);
    for dims in [&[17usize][..], &[3, 5, 2], &[1], &[4, 6], &[2, 1023]] {
        if !check.thorough(dtype) && matches!(dims, [1] | [4, 6]) {
            continue;
        }
        let x = with_ties(dtype, dims, &mut rng);
        let a = check.input(&x);
        for axis in 0..dims.len() {
            let what = format!("argmax of {dims:?} along {axis}");
            check.equal(what, a.argmax(axis as isize), &x.arg_extreme(BinaryOp::Max, axis));
            let what = format!("argmin of {dims:?} along {axis}");
            check.equal(what, a.argmin(axis as isize), &x.arg_extreme(BinaryOp::Min, axis));
        }
    }
    let empty = check.input(&moderate(dtype, &[0, 2], &mut rng));
    check.refused("argmax of nothing", empty.argmax(0), &["argmax", "empty"]);
    check.finish();
}

/// Running sums along every axis.
pub fn cumulative(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let mut rng = Rng::new(55);
    for dims in [&[0usize][..], &[17], &[3, 5], &[1], &[1023], &[2, 3, 4]] {
        if !check.thorough(dtype) && !matches!(dims, [0] | [17] | [3, 5]) {
            continue;
        }
        let x = moderate(dtype, dims, &mut rng);
        let a = check.input(&x);
        for axis in 0..dims.len() {
            let wide = x.cast(crate::oracle::reduce::summed(dtype));
            let want = wide.scan(BinaryOp::Add, axis, false);
            check.equal(format!("cumsum {dims:?} {axis}"), a.cumsum(axis as isize), &want);
            let flipped = a.flip(axis as isize).and_then(|t| t.cumsum(axis as isize));
            let want = wide.flip(1 << axis).scan(BinaryOp::Add, axis, false);
            check.equal(format!("cumsum of the reverse {dims:?} {axis}"), flipped, &want);
        }
    }
    check.finish();
}

/// Scans and reductions of axes of 1 to 5 elements, with about as many rows as vectors have lanes, of operands
/// that are there, computed, or views.
pub fn short_axes(device: &Device) {
    // Compilers of drivers are dear: there all results of an operand are one plan.
    let few = device.caps().simt;
    let rows: &[usize] = match few {
        true => &[7, 33],
        false => &[1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65],
    };
    type Operand = fn(&Tensor) -> Result<Tensor>;
    let operands: [(&str, Operand); 4] = [
        ("stored", |x| Ok(x.clone())),
        ("a softmax", |x| x.softmax(1)),
        ("scaled", |x| x.mul(0.5)?.add(0.25)),
        ("a view", |x| x.t().contiguous().t().flip(1)),
    ];
    type Method = fn(&Tensor) -> Result<Tensor>;
    let methods: [(&str, Method); 8] = [
        ("cumsum", |x| x.cumsum(1)),
        ("cumprod", |x| x.cumprod(1)),
        ("cummax", |x| x.cummax(1).map(|found| found.0)),
        ("cummin", |x| x.cummin(1).map(|found| found.0)),
        ("logcumsumexp", |x| x.logcumsumexp(1)),
        ("cumsum from the end", |x| x.flip(1)?.cumsum(1)?.flip(1)),
        ("sum", |x| x.sum(1)),
        ("softmax", |x| x.softmax(1)),
    ];
    let run = || -> Result<()> {
        for (n, &rows) in (1..=5usize).flat_map(|n| rows.iter().map(move |rows| (n, rows))) {
            let mut rng = Rng::new((n * rows) as u64);
            let data: Vec<f32> = (0..rows * n).map(|_| rng.between(-2.0, 2.0) as f32).collect();
            let x = Tensor::from_slice(&data, [rows, n], device)?;
            for (kind, operand) in operands {
                // Each method gets a new operand: `to_vec` stores the first one, and methods fuse with pending ones.
                let values = operand(&x)?.to_vec::<f32>()?;
                let results: Vec<Tensor> =
                    methods.iter().map(|(_, f)| f(&operand(&x)?)).collect::<Result<_>>()?;
                if few {
                    Tensor::realize_all(&results)?;
                }
                for ((method, _), result) in methods.iter().zip(results) {
                    let got = result.to_vec::<f32>()?;
                    let want: Vec<f64> =
                        values.chunks(n).flat_map(|row| short_row(method, row)).collect();
                    let near = |(got, want): (&f32, &f64)| {
                        (f64::from(*got) - want).abs() <= 2e-6 * (1.0 + want.abs())
                    };
                    let right = got.len() == want.len() && got.iter().zip(&want).all(near);
                    assert!(
                        right,
                        "{device}: {method} of {kind}, [{rows}, {n}]: {got:?}, not {want:?}"
                    );
                }
            }
        }
        Ok(())
    };
    run().unwrap_or_else(|error| panic!("{device}: {error}"));
}

/// The expected result of a method of [`short_axes`] for one row.
fn short_row(method: &str, row: &[f32]) -> Vec<f64> {
    let row: Vec<f64> = row.iter().map(|&x| x.into()).collect();
    let total: f64 = row.iter().map(|x| x.exp()).sum();
    let parts = |f: &dyn Fn(&[f64]) -> f64| (1..=row.len()).map(|end| f(&row[..end])).collect();
    match method {
        "cumsum" => parts(&|part| part.iter().sum()),
        "cumprod" => parts(&|part| part.iter().product()),
        "cummax" => parts(&|part| part.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "cummin" => parts(&|part| part.iter().copied().fold(f64::INFINITY, f64::min)),
        "logcumsumexp" => parts(&|part| part.iter().map(|x| x.exp()).sum::<f64>().ln()),
        "cumsum from the end" => (0..row.len()).map(|start| row[start..].iter().sum()).collect(),
        "sum" => vec![row.iter().sum()],
        _ => row.iter().map(|x| x.exp() / total).collect(),
    }
}

/// Mean, variance, norm and log-sum-exp against their definitions.
pub fn statistics(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(56);
    let float = if dtype.is_float() { dtype } else { DType::F32 };
    for (rows, n) in [(3usize, 5usize), (1, 1), (2, 1023)] {
        let x = small(dtype, &[rows, n], &mut rng);
        let a = check.input(&x);
        let values = x.floats();
        let row = |r: usize| &values[r * n..(r + 1) * n];
        let of = |f: &dyn Fn(&[f64]) -> (f64, f64)| {
            let data = (0..rows).map(|r| {
                let (y, error) = f(row(r));
                Val::about(float, y, error)
            });
            Array::new(float, &[rows], data.collect())
        };
        let wide = accumulator(float);
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let size = |v: &[f64]| v.iter().fold(0f64, |m, x| m.max(x.abs()));
        let sum = |v: &[f64], scale: f64| sum_error(wide, v.len(), v.len() as f64 * scale);
        check.equal(
            "mean",
            a.mean(1),
            &of(&|v| (mean(v), sum(v, size(v)) / n as f64 + formula_error(wide, 2.0, size(v)))),
        );
        check.equal(
            "var",
            a.var(1, 0),
            &of(&|v| {
                let m = mean(v);
                let squares: f64 = v.iter().map(|x| (x - m).powi(2)).sum();
                // The mean's error e enters as 2 e |x - m| per term, each term is rounded twice more.
                let s = 4.0 * size(v).powi(2);
                (squares / n as f64, 2.0 * sum(v, s) / n as f64 + formula_error(wide, 6.0, 2.0 * s))
            }),
        );
        check.equal(
            "norm",
            a.norm(1),
            &of(&|v| {
                let squares: f64 = v.iter().map(|x| x * x).sum();
                let y = squares.sqrt();
                // Halves square before they are widened, so each square is rounded to the dtype.
                let relative = sum_error(wide, n, 1.0) + formula_error(float, 2.0, 1.0);
                (y, relative * y)
            }),
        );
        check.equal(
            "logsumexp",
            a.logsumexp(1),
            &of(&|v| {
                let y = v.iter().map(|x| x.exp()).sum::<f64>().ln();
                // Exp grants 4 ulps and log 4, on values rounded to the dtype at every step.
                let relative = sum_error(wide, n, 1.0) + formula_error(float, 12.0, 1.0);
                (y, relative * (1.0 + y.abs() + size(v)))
            }),
        );
    }
    check.finish();
}
