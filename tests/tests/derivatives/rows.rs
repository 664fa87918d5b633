//! The gradient of every row of the matrix of methods, in `f64`, against difference quotients.
//!
//! The matrix has a row for every method of `Tensor` (`tests/ops.rs` reads the sources), so a new
//! method is differentiated here without anybody thinking of it: by all operands at once, along
//! random directions, which shows any component that is wrong or missing. What has no gradient that
//! quotients can show is named with the reason, and may not be named if they do.

use zyx_tests::Rng;
use zyx_tests::bounds::GRADIENT;
use zyx_tests::cases::matrix::{Operands, Row, accepted, table};
use zyx_tests::zyx_core::{DType, Device, Result, Tensor};

/// The larger of the two steps. Operands keep further away from each other and from zero.
const STEP: f64 = 1e-4;

/// Rows whose gradient is not the slope, and why.
const NOT_THE_SLOPE: &[(&str, &[&str])] = &[
    ("gradients stop here", &["detach"]),
    ("the statistics to remember are detached", &["batch_norm"]),
    ("divides zero by zero, where the slope of what replaces it is not a number", &["nan_to_num"]),
    ("the values are one-hot, the gradient that of the probabilities", &["gumbel_softmax"]),
    ("differentiate within themselves", &["grad", "grad_with"]),
    ("makes a leaf of its operand", &["tracked"]),
];

/// Rows whose results hold no finite float that depends on operands, and why.
const NO_FLOATS: &[(&str, &[&str])] = &[
    (
        "answers yes or no",
        &[
            "is_nan",
            "is_inf",
            "is_finite",
            "isnan",
            "isinf",
            "isfinite",
            "isposinf",
            "isneginf",
            "signbit",
            "logical_not",
            "logical_and",
            "logical_or",
            "logical_xor",
            "lt",
            "le",
            "eq",
            "ne",
            "gt",
            "ge",
            "isclose",
            "allclose",
            "equal",
            "any",
            "any_keepdim",
            "all",
            "all_keepdim",
        ],
    ),
    (
        "gives places or counts",
        &[
            "argmax",
            "argmin",
            "argsort",
            "argwhere",
            "nonzero",
            "count_nonzero",
            "searchsorted",
            "bucketize",
            "unravel_index",
            "tril_indices",
            "triu_indices",
            "matrix_rank",
        ],
    ),
    ("the row casts to other dtypes", &["cast", "bitcast", "encode_float8"]),
    ("has no operands", &["arange", "linspace", "logspace", "fftfreq", "rfftfreq"]),
    ("draws", &["bernoulli", "permutation", "multinomial"]),
];

/// The operands that hold floats.
pub(super) fn fields(o: &Operands) -> Vec<Tensor> {
    let first = [&o.x, &o.y, &o.v, &o.unit, &o.large, &o.sorted, &o.square];
    first.into_iter().chain(&o.images).chain(&o.kernels).cloned().collect()
}

/// The same operands with other floats.
pub(super) fn with(o: &Operands, floats: &[Tensor]) -> Operands {
    let at = |i: usize| floats[i].clone();
    Operands {
        x: at(0),
        y: at(1),
        v: at(2),
        unit: at(3),
        large: at(4),
        sorted: at(5),
        square: at(6),
        images: [at(7), at(8), at(9)],
        kernels: [at(10), at(11), at(12)],
        ..o.clone()
    }
}

/// A tensor like each of these; a symmetric one where there is a symmetric matrix.
fn likes(floats: &[Tensor], mut f: impl FnMut(usize) -> f64) -> Result<Vec<Tensor>> {
    let like = |(place, x): (usize, &Tensor)| {
        let data: Vec<f64> = (0..x.numel()).map(&mut f).collect();
        let y = Tensor::from_slice(&data, x.shape().dims(), x.device())?;
        if place == 6 { y.add(y.t())?.mul(0.5) } else { Ok(y) }
    };
    floats.iter().enumerate().map(like).collect()
}

/// Places at which methods are smooth: no two elements are equal, none is zero or a whole number.
fn points(device: &Device) -> Result<Vec<Vec<Tensor>>> {
    let operands = fields(&Operands::new(DType::F64, true, device)?);
    // Multiples of the golden ratio keep their distance.
    let apart = likes(&operands, |i| 0.004 + 0.012 * (i as f64 * 0.618_033_988_749_895).fract())?;
    let moved = operands.iter().zip(&apart).map(|(x, a)| x.add(a));
    let whole = moved.collect::<Result<Vec<Tensor>>>()?;
    // What is not defined for all numbers may be for those between 0 and 1, or above.
    let replaced = |by: usize| {
        let mut floats = whole.clone();
        floats[0] = floats[by].clone();
        floats
    };
    Ok(vec![whole.clone(), replaced(3), replaced(4)])
}

/// The weighted sum of what a row gives in `f64`.
fn total(row: &Row, operands: &Operands) -> Result<Option<Tensor>> {
    let mut sum: Option<Tensor> = None;
    for y in (row.run)(operands)?.iter().filter(|y| y.dtype() == DType::F64) {
        let weights: Vec<f64> =
            (0..y.numel()).map(|i| 0.5 + (i as f64 * 0.754_877_666_246_693).fract()).collect();
        let weights = Tensor::from_slice(&weights, y.shape().dims(), y.device())?;
        let part = y.mul(&weights)?.sum(..)?;
        sum = Some(match sum {
            Some(sum) => sum.add(&part)?,
            None => part,
        });
    }
    Ok(sum)
}

/// How far the gradient is from the slope in units of what it may be, with both; `None` where a row
/// has no result that is a finite float.
fn compare(row: &Row, o: &Operands, floats: &[Tensor], seed: u64) -> Result<Option<[f64; 3]>> {
    let mut rng = Rng::new(seed);
    let direction = likes(floats, |_| rng.between(-1.0, 1.0))?;
    let value = |step: f64| -> Result<f64> {
        let moved = floats.iter().zip(&direction).map(|(x, d)| x.add(d.mul(step)?));
        let moved = moved.collect::<Result<Vec<Tensor>>>()?;
        total(row, &with(o, &moved))?.map_or(Ok(f64::NAN), |y| y.item::<f64>())
    };
    let quotient = |h: f64| Ok((value(h)? - value(-h)?) / (2.0 * h));
    let (wide, narrow): (Result<f64>, Result<f64>) = (quotient(STEP), quotient(STEP / 2.0));
    let slope = (4.0 * narrow? - wide?) / 3.0;
    if !slope.is_finite() {
        return Ok(None);
    }
    let tracked: Vec<Tensor> = floats.iter().map(Tensor::tracked).collect();
    let (mut got, mut scale) = (0.0, 1.0f64);
    if let Some(y) = total(row, &with(o, &tracked))?.filter(Tensor::is_tracked) {
        let dx = y.grad(&tracked.iter().collect::<Vec<_>>())?;
        for (dx, d) in dx.iter().zip(&direction) {
            let Some(dx) = dx else { continue };
            let pairs = dx.to_vec::<f64>()?.into_iter().zip(d.to_vec::<f64>()?);
            pairs.for_each(|(dx, d)| (got, scale) = (got + dx * d, scale.max(dx.abs())));
        }
    }
    Ok(Some([(got - slope).abs() / (GRADIENT * scale), got, slope]))
}

#[test]
fn every_method_has_the_gradient_of_its_values() -> Result<()> {
    let device = super::device();
    let (operands, points) = (Operands::new(DType::F64, true, &device)?, points(&device)?);
    let excused = |name: &str| NOT_THE_SLOPE.iter().any(|(_, names)| names.contains(&name));
    let (mut wrong, mut needless, mut silent) = (Vec::new(), Vec::new(), Vec::new());
    let mut sloping = 0;
    let rows = table();
    for row in rows.iter().filter(|row| accepted(row.name).contains(&DType::F64)) {
        let mut found = None;
        for floats in &points {
            found = [1, 2]
                .map(|seed| compare(row, &operands, floats, seed))
                .into_iter()
                .try_fold(None::<[f64; 3]>, |worst, found| {
                    Ok::<_, String>(match (worst, found.map_err(|e| e.to_string())?) {
                        (Some(worst), Some(found)) if worst[0] >= found[0] => Some(worst),
                        (worst, found) => found.or(worst),
                    })
                })
                .unwrap_or_else(|error| panic!("{}: {error}", row.name));
            if found.is_some() {
                break;
            }
        }
        let Some([error, got, slope]) = found else {
            silent.push(row.name);
            continue;
        };
        sloping += usize::from(slope != 0.0);
        match (error <= 1.0, excused(row.name)) {
            (false, false) => wrong.push(format!("{}: {got:e}, slope {slope:e}", row.name)),
            (true, true) => needless.push(row.name),
            _ => {}
        }
    }
    let mut floatless: Vec<_> = NO_FLOATS.iter().flat_map(|(_, names)| *names).copied().collect();
    silent.sort_unstable();
    floatless.sort_unstable();
    assert_eq!(silent, floatless, "rows without a slope, and those known to have none");
    assert!(wrong.is_empty(), "gradients that are not the slope:\n{}", wrong.join("\n"));
    assert!(needless.is_empty(), "excused, but right: {needless:?}");
    let names = NOT_THE_SLOPE.iter().chain(NO_FLOATS).flat_map(|(_, names)| *names);
    let gone: Vec<_> = names.filter(|name| rows.iter().all(|row| row.name != **name)).collect();
    assert!(gone.is_empty(), "excused, but no row: {gone:?}");
    assert!(sloping > rows.len() / 2, "only {sloping} of {} rows have a slope", rows.len());
    Ok(())
}
