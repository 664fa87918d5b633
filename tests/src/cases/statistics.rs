//! Running combinations, order statistics, distinct elements and histograms against their
//! definitions; scans long enough to be split into blocks.

use crate::tolerance::formula_error;
use crate::values::{moderate, with_ties};
use crate::{Array, Check, Rng, Val};
use zyx_core::{BinaryOp, DType, Device, Tensor};

/// The larger or smaller of two values, neither NaN.
fn extreme(larger: bool) -> impl Fn(Val, Val) -> Val {
    move |x, y| {
        let above = match (x, y) {
            (Val::Int(x), Val::Int(y)) => x > y,
            _ => x.certain() > y.certain(),
        };
        if above == larger { x } else { y }
    }
}

/// Running combination along the last axis, step by step.
fn running_from(x: &Array, reverse: bool, f: impl Fn(Val, Val) -> Val) -> Array {
    let mut data = x.data.clone();
    for row in data.chunks_mut(x.dims[x.dims.len() - 1]) {
        if reverse {
            row.reverse();
        }
        for i in 1..row.len() {
            row[i] = f(row[i - 1], row[i]);
        }
        if reverse {
            row.reverse();
        }
    }
    Array::new(x.dtype, &x.dims, data)
}

/// Logarithms of running sums of exponentials of a vector, to each of which as many steps contribute.
fn running_logs(x: &Array, steps: f64) -> Array {
    let (dtype, values) = (x.dtype, x.floats());
    let wide = if dtype.bits() == 16 { DType::F32 } else { dtype };
    let mut y = f64::NEG_INFINITY;
    let data = values.iter().map(|x| {
        y = x.max(y) + (-(x - y).abs()).exp().ln_1p();
        let ulps = f64::from(BinaryOp::LogAddExp.ulp()) * steps;
        Val::about(
            dtype,
            y,
            formula_error(wide, ulps, y.abs().max(1.0)) + formula_error(dtype, 1.0, y.abs()),
        )
    });
    Array::new(dtype, &x.dims, data.collect())
}

/// Scans of one row that is split into blocks, whole and with a rest, both directions.
pub fn long_scans(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    // Rows of some tiles for groups that look back, and one row of more than they look at.
    let rows = with_ties(dtype, &[3, 5001], &mut Rng::new(102));
    check.equal(
        "cummax of rows",
        check.input(&rows).cummax(1).map(|m| m.0),
        &running_from(&rows, false, extreme(true)),
    );
    // One scan of each dtype also where kernels are dear.
    if !check.thorough(dtype) {
        return check.finish();
    }
    let long = if dtype == DType::I32 { 600_011 } else { 10_007 };
    for n in [1usize << 14, long] {
        let x = with_ties(dtype, &[n], &mut Rng::new(100));
        let a = check.input(&x);
        let maximum = running_from(&x, false, extreme(true));
        check.equal(format!("cummax of {n}"), a.cummax(0).map(|m| m.0), &maximum);
        let minimum = running_from(&x, true, extreme(false));
        let got = a.scan_with(BinaryOp::Min, 0, true, false);
        check.equal(format!("scan_with Min of {n} from the end"), got, &minimum);
        if dtype.is_float() {
            // They grow, so that every sum is of about a hundred terms, across blocks as within.
            let mut rng = Rng::new(103);
            let logs: Vec<f64> = (0..n).map(|i| i as f64 * 0.01 + rng.between(-3.0, 3.0)).collect();
            let logs = Array::reals(dtype, &[n], &logs);
            let got = check.input(&logs).logcumsumexp(0);
            check.equal(format!("logcumsumexp of {n}"), got, &running_logs(&logs, 500.0));
        }
        if dtype.is_float() || dtype == DType::Bool {
            continue;
        }
        for reverse in [false, true] {
            let sums = running_from(&x, reverse, |x, y| match (x, y) {
                (Val::Int(x), Val::Int(y)) => Val::Int(crate::oracle::wrap(dtype, x + y)),
                _ => Val::Unknown,
            });
            let got = a.scan_with(BinaryOp::Add, 0, reverse, false);
            check.equal(format!("scan_with Add of {n}, {reverse}"), got, &sums);
        }
    }
    check.finish();
}

/// Extremes with their positions, the latest of equal ones; products; differences.
pub fn running(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let mut x = with_ties(dtype, &[2, 9], &mut Rng::new(101));
    if dtype.is_float() {
        x.data[12] = Val::point(f64::NAN);
    }
    let a = check.input(&x);
    for op in [BinaryOp::Max, BinaryOp::Min] {
        let best = x.scan(op, 1, false);
        let same = |x: &Val, y: &Val| match (x, y) {
            (Val::Real(x, _), _) if x.is_nan() => true,
            (Val::Int(x), Val::Int(y)) => x == y,
            _ => x.certain() == y.certain(),
        };
        let mut latest = 0;
        let at = x.data.iter().zip(&best.data).enumerate().map(|(i, (x, y))| {
            if i % 9 == 0 || same(x, y) {
                latest = i % 9;
            }
            latest as i64
        });
        let at: Vec<i64> = at.collect();
        match if op == BinaryOp::Max { a.cummax(1) } else { a.cummin(1) } {
            Err(error) => check.fail(error),
            Ok((values, places)) => {
                check.equal(format!("cum{op}"), Ok(values), &best);
                let want = Array::ints(DType::I64, &[2, 9], &at);
                check.equal(format!("cum{op}, places"), Ok(places), &want);
            }
        }
    }
    let small = moderate(dtype, &[3, 4], &mut Rng::new(102));
    let b = check.input(&small);
    let summed = small.cast(crate::oracle::reduce::summed(dtype));
    check.equal("cumprod", b.cumprod(1), &summed.scan(BinaryOp::Mul, 1, false));
    let (low, high) = (small.shrink(&[(0, 3), (0, 3)]), small.shrink(&[(0, 3), (1, 4)]));
    let op = if dtype == DType::Bool { BinaryOp::Xor } else { BinaryOp::Sub };
    check.equal("diff", b.diff(1, 1), &high.binary(op, &low));
    check.finish();
}

/// Sums of exponentials far apart, recurrences, segmented sums, integrals.
pub fn associative(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let x = Array::reals(dtype, &[7], &[-1000.0, 0.5, -1000.0, 2.0, 1.5, -3.0, 2.0]);
    let a = check.input(&x);
    check.equal("logcumsumexp", a.logcumsumexp(0), &running_logs(&x, 7.0));

    let factors = Array::reals(dtype, &[5], &[0.5, 2.0, -1.0, 0.25, 3.0]);
    let inputs = Array::reals(dtype, &[5], &[1.0, 2.0, -0.5, 4.0, 0.75]);
    let (f, b) = (check.input(&factors), check.input(&inputs));
    for reverse in [false, true] {
        let mut state = 0.0;
        let mut states = vec![Val::point(0.0); 5];
        for step in 0..5 {
            let i = if reverse { 4 - step } else { step };
            state = factors.floats()[i] * state + inputs.floats()[i];
            states[i] = Val::about(dtype, state, formula_error(dtype, 8.0, 16.0));
        }
        let want = Array::new(dtype, &[5], states);
        check.equal("linear_recurrence", f.linear_recurrence(&b, 0, reverse), &want);
    }
    if check.thorough(dtype) {
        long_recurrences(&mut check, dtype);
    }
    let lengths: &[usize] = if check.thorough(dtype) { &[1, 2, 3, 7, 1000, 4097] } else { &[7] };
    for &n in lengths {
        any_function(&mut check, dtype, n);
    }
    let exact = Array::reals(dtype, &[5], &[0.0, 1.0, 3.0, 2.5, 6.5]);
    check.equal("scan_with, exclusive", b.scan_with(BinaryOp::Add, 0, false, true), &exact);
    let integral = Array::reals(dtype, &[], &[6.375]);
    check.equal("trapezoid", b.trapezoid(1.0, 0), &integral);
    check.finish();
}

/// Scans of two tensors by functions that are associative and not commutative: sums that start again
/// at flags, and maps `a x + b` one after the other. All numbers on the way are small integers.
fn any_function(check: &mut Check, dtype: DType, n: usize) {
    let mut rng = Rng::new(105 + n as u64);
    let values: Vec<f64> = (0..2 * n).map(|_| rng.range(-3, 3) as f64).collect();
    let flags: Vec<f64> = (0..2 * n).map(|_| f64::from(rng.below(4) == 0)).collect();
    let factors: Vec<f64> = (0..2 * n).map(|_| [0.0, 1.0, -1.0][rng.below(3)]).collect();
    let tensor = |check: &Check, data: &[f64]| check.input(&Array::reals(dtype, &[2, n], data));
    let (x, flag) = (tensor(check, &values), tensor(check, &flags));
    let factor = tensor(check, &factors);
    let segments = |x: &[Tensor], y: &[Tensor]| {
        let kept = x[0].mul(y[1].neg().add(1.0)?)?;
        Ok(vec![kept.add(&y[0])?, x[1].maximum(&y[1])?])
    };
    let compose =
        |x: &[Tensor], y: &[Tensor]| Ok(vec![y[1].mul(&x[0])?.add(&y[0])?, x[1].mul(&y[1])?]);
    for reverse in [false, true] {
        // Both continue a row from the element before it, by 1 - flag or by the factor.
        let along = |by: &dyn Fn(usize) -> f64| {
            let mut sums = values.clone();
            for row in 0..2 {
                for step in 1..n {
                    let i = row * n + if reverse { n - 1 - step } else { step };
                    sums[i] += by(i) * sums[if reverse { i + 1 } else { i - 1 }];
                }
            }
            Array::reals(dtype, &[2, n], &sums)
        };
        let first = |mut all: Vec<Tensor>| all.remove(0);
        let got = Tensor::associative_scan(segments, &[&x, &flag], 1, reverse).map(first);
        check.equal(
            format!("associative_scan of segments of {n}, {reverse}"),
            got,
            &along(&|i| 1.0 - flags[i]),
        );
        let got = Tensor::associative_scan(compose, &[&x, &factor], 1, reverse).map(first);
        check.equal(
            format!("associative_scan of maps of {n}, {reverse}"),
            got,
            &along(&|i| factors[i]),
        );
    }
}

/// Recurrences of long rows and of many, by factors of 1, -1 and often 0, so that every state is a
/// small integer however rows are cut.
fn long_recurrences(check: &mut Check, dtype: DType) {
    let mut rng = Rng::new(104);
    for (dims, axis) in [([2, 10_007], 1), ([300, 130], 1), ([8200, 3], 0)] {
        let numel = dims[0] * dims[1];
        let factors: Vec<f64> = (0..numel).map(|_| [0.0, 1.0, -1.0, 1.0][rng.below(4)]).collect();
        let inputs: Vec<f64> = (0..numel).map(|_| rng.range(-3, 3) as f64).collect();
        let f = check.input(&Array::reals(dtype, &dims, &factors));
        let x = check.input(&Array::reals(dtype, &dims, &inputs));
        let step = if axis == 0 { dims[1] } else { 1 };
        for reverse in [false, true] {
            let mut states = inputs.clone();
            let before = |i: usize| match (i / step % dims[axis], reverse) {
                (0, false) => None,
                (place, true) if place + 1 == dims[axis] => None,
                (_, false) => Some(i - step),
                (_, true) => Some(i + step),
            };
            for i in 0..numel {
                let i = if reverse { numel - 1 - i } else { i };
                states[i] += before(i).map_or(0.0, |before| factors[i] * states[before]);
            }
            let got = f.linear_recurrence(&x, axis as isize, reverse);
            let want = Array::reals(dtype, &dims, &states);
            check.equal(format!("recurrence of {dims:?} along {axis}, {reverse}"), got, &want);
        }
    }
    // A state of zero stays zero though the product of all factors is infinite.
    let n = 9000;
    let zeros = check.input(&Array::reals(dtype, &[n], &vec![0.0; n]));
    let twos = Array::reals(dtype, &[n], &vec![2.0; n]);
    let got = check.input(&twos).linear_recurrence(&zeros, 0, false);
    check.equal("zeros by large factors", got, &Array::reals(dtype, &[n], &vec![0.0; n]));
}

/// Medians, modes, quantiles, distinct elements.
pub fn ordered(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let bools = dtype == DType::Bool;
    let x =
        Array::whole(dtype, &[6], if bools { &[1, 0, 1, 0, 1, 0] } else { &[3, 1, 3, 1, 9, 7] });
    let a = check.input(&x);
    let one = |v: i64| Array::whole(dtype, &[], &[v]);
    check.equal("median", a.median(0).map(|m| m.0), &one(if bools { 0 } else { 3 }));
    check.equal("mode", a.mode(0).map(|m| m.0), &one(if bools { 0 } else { 1 }));
    let place = Array::ints(DType::I64, &[], &[if bools { 5 } else { 3 }]);
    check.equal("place of the mode", a.mode(0).map(|m| m.1), &place);
    check.equal("kthvalue", a.kthvalue(5, 0).map(|k| k.0), &one(if bools { 1 } else { 7 }));
    match a.unique() {
        Err(error) => check.fail(error),
        Ok(found) => {
            let (values, inverse, counts): (&[i64], &[i64], &[i64]) = if bools {
                (&[0, 1], &[1, 0, 1, 0, 1, 0], &[3, 3])
            } else {
                (&[1, 3, 7, 9], &[1, 0, 1, 0, 3, 2], &[2, 2, 1, 1])
            };
            let values = Array::whole(dtype, &[values.len()], values);
            check.equal("unique", Ok(found.values), &values);
            check.equal("inverse", Ok(found.inverse), &Array::ints(DType::I64, &[6], inverse));
            let counts = Array::ints(DType::I64, &[counts.len()], counts);
            check.equal("counts", Ok(found.counts), &counts);
        }
    }
    if !bools && !dtype.is_float() {
        distinct_of_many(&mut check, dtype);
    }
    if dtype.is_float() {
        let q = Array::reals(dtype, &[2], &[3.0, 5.0]);
        check.equal("quantile", a.quantile(&[0.5, 0.7], 0), &q);
        let nan = Array::reals(dtype, &[3], &[1.0, f64::NAN, 0.5]);
        let nan = check.input(&nan);
        let lost = Array::reals(dtype, &[], &[f64::NAN]);
        check.equal("median with NaN", nan.median(0).map(|m| m.0), &lost);
        check.equal("nansum", nan.nansum(0), &Array::reals(dtype, &[], &[1.5]));
        check.equal("nanmean", nan.nanmean(0), &Array::reals(dtype, &[], &[0.75]));
        let three = Array::reals(dtype, &[2], &[3.0, -4.0]);
        let three = check.input(&three);
        for (p, norm) in [(1.0, 7.0), (2.0, 5.0), (0.0, 2.0), (f64::INFINITY, 4.0)] {
            let want = Array::reals(dtype, &[], &[norm]);
            check.equal(format!("norm_p of {p}"), three.norm_p(p, 0), &want);
        }
    }
    check.finish();
}

/// Distinct integers of many, in small ranges, which are counted, and in large ones.
fn distinct_of_many(check: &mut Check<'_>, dtype: DType) {
    let bits = dtype.bits();
    let (low, high): (i128, i128) = match dtype {
        DType::U8 | DType::U16 | DType::U32 => (0, (1 << bits) - 1),
        // Arrays hold `i64`.
        DType::U64 => (0, i64::MAX.into()),
        _ => (-1 << (bits - 1), (1 << (bits - 1)) - 1),
    };
    let whole = high - low;
    let some = whole.min(1 << 20);
    let ranges = [(low, 200), (high - 200, 200), (high - some, some), (low, whole), (high, 0)];
    for (first, width) in ranges {
        let n = 1500;
        let slots = (0..n).map(|i: i128| (i * i * 31 + i) % 97);
        let data: Vec<i64> = slots.map(|s| (first + s * (width / 96)) as i64).collect();
        let mut values = data.clone();
        values.sort_unstable();
        values.dedup();
        let place = |x: &i64| values.partition_point(|v| v < x) as i64;
        let inverse: Vec<i64> = data.iter().map(place).collect();
        let mut counts = vec![0; values.len()];
        inverse.iter().for_each(|&at| counts[at as usize] += 1);
        let name = format!("{width} above {first}");
        match check.input(&Array::whole(dtype, &[n as usize], &data)).unique() {
            Err(error) => check.fail(error),
            Ok(found) => {
                let ints = |x: &[i64]| Array::ints(DType::I64, &[x.len()], x);
                let values = Array::whole(dtype, &[values.len()], &values);
                check.equal(format!("distinct of {name}"), Ok(found.values), &values);
                check.equal(format!("inverse of {name}"), Ok(found.inverse), &ints(&inverse));
                check.equal(format!("counts of {name}"), Ok(found.counts), &ints(&counts));
            }
        }
    }
}

/// Counts, exactly, over several blocks.
pub fn counts(device: &Device) {
    let mut check = Check::new(device).untied();
    let n = 40_000;
    let data: Vec<i64> = (0..n).map(|i| (i * i + i / 7) % 13 - 2).collect();
    let mut want = [0i64; 8];
    data.iter().filter(|x| (0..8).contains(*x)).for_each(|&x| want[x as usize] += 1);
    let a = check.input(&Array::ints(DType::I64, &[n as usize], &data));
    check.equal("bincount_to", a.bincount_to(8), &Array::ints(DType::I64, &[8], &want));
    let inside = a.clamp(0, 7).and_then(|x| x.bincount(0));
    let mut clamped = [0i64; 8];
    data.iter().for_each(|&x| clamped[x.clamp(0, 7) as usize] += 1);
    check.equal("bincount", inside, &Array::ints(DType::I64, &[8], &clamped));
    let x = check.input(&Array::reals(DType::F32, &[6], &[0.0, 0.5, 1.0, 1.5, 2.0, 9.0]));
    let want = Array::reals(DType::F32, &[4], &[1.0, 1.0, 1.0, 2.0]);
    check.equal("histc", x.histc(4, 0.0, 2.0), &want);
    let one_bin = Tensor::zeros([1 << 16], DType::U8, device).bincount_to(1);
    check.equal("one bin", one_bin, &Array::ints(DType::I64, &[1], &[1 << 16]));
    check.finish();
}
