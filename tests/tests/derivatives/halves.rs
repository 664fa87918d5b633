//! Halves are computed in `f32` and rounded once: values and gradients of every row of the matrix of methods, for
//! operands of all magnitudes that `f16` and `bf16` hold.
//!
//! A result in a half is within [`ULPS`] units in its last place of the same method's result in `f64` for the same
//! operands, or both overflow. The error of the method in `f32` (cancellation, a step that a rounding moves to the
//! other side) is no error of the half: twice that error is allowed in addition.

use super::rows::{fields, with};
use zyx_tests::cases::matrix::{Against, Operands, Row, accepted, table};
use zyx_tests::tolerance::{largest, round, ulp};
use zyx_tests::zyx_core::{DType, Device, Result, Tensor};

/// Units in the last place that a result in a half may be off by.
const ULPS: f64 = 2.0;

/// The magnitudes of operands: subnormal, small, usual, large.
const MAGNITUDES: [(DType, &[f64]); 2] = [
    (DType::F16, &[2e-6, 1e-4, 1.0, 10.0, 300.0, 6e4]),
    (DType::BF16, &[1e-39, 1e-4, 1.0, 10.0, 300.0, 6e4, 1e15]),
];

/// Rows that are compositions by themselves, or whose results in a half are not those of `f64`, and why.
const EXCUSED: &[(&str, &[&str])] = &[
    (
        "the row calls several methods, each of which rounds, or takes an operand twice",
        &[
            "nan_to_num",
            "istft",
            "matrix_exp",
            "batch_norm_with",
            "bce_loss",
            "binary_cross_entropy",
            "ctc_loss",
            "grad",
            "vmap",
        ],
    ),
    ("the row takes magnitudes, which have no slope where a half rounds to zero", &["svd", "eigh"]),
    ("its gradient is made of rounded weights", &["scaled_dot_product_attention"]),
];

/// The operands in a dtype.
fn in_dtype(dtype: DType, floats: &[Tensor]) -> Vec<Tensor> {
    floats.iter().map(|x| x.cast(dtype).contiguous()).collect()
}

/// Operands of a magnitude: all of them, or every second from `first` on, the others as they are.
fn scaled(o: &Operands, dtype: DType, by: f64, which: Option<usize>) -> Result<Vec<Tensor>> {
    let most = largest(dtype);
    let scale = |(at, x): (usize, &Tensor)| {
        let factor = if which.is_none_or(|which| at % 2 == which) { by } else { 1.0 };
        let data = x.to_vec::<f64>()?.into_iter();
        let data: Vec<f64> = data.map(|x| round(dtype, (x * factor).clamp(-most, most))).collect();
        Tensor::from_slice(&data, x.shape().dims(), x.device())
    };
    fields(o).iter().enumerate().map(scale).collect()
}

/// The results of a row that hold numbers of a dtype, and the gradients of each.
fn results(
    row: &Row,
    o: &Operands,
    floats: &[Tensor],
    dtype: DType,
) -> Result<Vec<(String, Vec<f64>)>> {
    let floats: Vec<Tensor> = in_dtype(dtype, floats).iter().map(Tensor::tracked).collect();
    let o = Operands { dtype, ..with(o, &floats) };
    let mut found = Vec::new();
    for (place, y) in (row.run)(&o)?.iter().enumerate().filter(|(_, y)| y.dtype() == dtype) {
        found.push((format!("result {place}"), y.cast(DType::F64).to_vec::<f64>()?));
        if !y.is_tracked() {
            continue;
        }
        let weights: Vec<f64> = (0..y.numel()).map(|i| 0.5 + (i * 7 % 16) as f64 / 16.0).collect();
        let weights = Tensor::from_slice(&weights, y.shape().dims(), y.device())?.cast(dtype);
        let dx = y.grad_with(&weights, &floats.iter().collect::<Vec<_>>())?;
        for (at, dx) in dx.iter().enumerate() {
            let Some(dx) = dx else { continue };
            let values = dx.cast(DType::F64).to_vec::<f64>()?;
            found.push((format!("gradient {at} of result {place}"), values));
        }
    }
    Ok(found)
}

/// By how many units in the last place an element is too far off.
fn excess(dtype: DType, got: f64, single: f64, want: f64) -> f64 {
    if got.is_nan() || want.is_nan() || single.is_nan() {
        return if got.is_nan() == single.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let most = largest(dtype);
    let near = |x: f64| x.clamp(-most, most);
    let unit = ulp(dtype, near(want));
    // A step that overflows in `f32` does so for operands in `f32`, too.
    if single.is_infinite() && want.is_finite() {
        return if got == single { 0.0 } else { f64::INFINITY };
    }
    let loss = (near(single) - near(want)).abs();
    // An infinity stands for what rounds to one.
    let off = (near(got) - near(want)).abs();
    let off = if got.is_infinite() && near(single).abs() < most { f64::INFINITY } else { off };
    (off - 2.0 * loss) / unit
}

fn check(row: &Row, device: &Device, dtype: DType) -> Vec<String> {
    let mut found = Vec::new();
    let operands = Operands::new(DType::F64, true, device).expect("operands");
    let magnitudes = MAGNITUDES.iter().find(|(d, _)| *d == dtype).expect("halves").1;
    for &by in magnitudes {
        for which in [None, Some(0), Some(1)] {
            let floats = scaled(&operands, dtype, by, which).expect("operands");
            let all = [dtype, DType::F32, DType::F64].map(|d| results(row, &operands, &floats, d));
            let [Ok(got), Ok(single), Ok(want)] = &all else {
                continue;
            };
            for ((got, single), want) in got.iter().zip(single).zip(want) {
                let elements = got.1.iter().zip(&single.1).zip(&want.1);
                let worst = elements
                    .map(|((&got, &single), &want)| {
                        (excess(dtype, got, single, want), got, single, want)
                    })
                    .max_by(|a, b| a.0.total_cmp(&b.0));
                if let Some((off, value, single, want)) = worst.filter(|w| w.0 > ULPS) {
                    let kind = ["all", "even", "odd"][which.map_or(0, |w| w + 1)];
                    found.push(format!(
                        "{} of {dtype} at {by:e} ({kind}), {}: {value:e}, in f32 {single:e}, in f64 {want:e}: {off:.1} ulps",
                        row.name, got.0
                    ));
                }
            }
        }
    }
    found
}

#[test]
fn halves_are_rounded_once() {
    let device = super::device();
    let excused = |name: &str| EXCUSED.iter().any(|(_, names)| names.contains(&name));
    let (mut wrong, mut needless) = (Vec::new(), Vec::new());
    let rows = table();
    for row in rows.iter().filter(|row| row.against == Against::Wider) {
        let kinds = accepted(row.name);
        let halves = [DType::F16, DType::BF16].into_iter().filter(|d| kinds.contains(d));
        let found: Vec<String> = halves.flat_map(|dtype| check(row, &device, dtype)).collect();
        match (found.is_empty(), excused(row.name)) {
            (false, false) => wrong.extend(found),
            (true, true) => needless.push(row.name),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} results:\n{}", wrong.len(), wrong.join("\n"));
    assert!(needless.is_empty(), "excused, but right: {needless:?}");
    let names = EXCUSED.iter().flat_map(|(_, names)| *names);
    let gone: Vec<_> = names.filter(|name| rows.iter().all(|row| row.name != **name)).collect();
    assert!(gone.is_empty(), "excused, but no row: {gone:?}");
}
