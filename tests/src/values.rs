//! Inputs: the values at which arithmetic goes wrong, and random ones.

use crate::oracle::{Array, Val, int_range};
use crate::tolerance::{largest, round, smallest_normal, ulp, unit_roundoff};
use crate::{Rng, oracle};
use zyx_core::{Class, DType};

/// Shapes without an axis, without elements, of one element, of odd and of even extents.
pub const SHAPES: &[&[usize]] = &[
    &[],
    &[0],
    &[1],
    &[3],
    &[17],
    &[1023],
    &[1, 1],
    &[2, 3],
    &[0, 5],
    &[4, 0, 2],
    &[3, 1, 5],
    &[5, 7, 3],
    &[2, 1, 3, 1, 2],
];

/// Special values of a dtype: zeros, ones, ties, extremes, subnormals, infinities, NaN.
pub fn special(dtype: DType) -> Vec<Val> {
    if !dtype.is_float() {
        let (low, high) = int_range(dtype);
        let mut ints = vec![low, low + 1, -2, -1, 0, 1, 2, 3, 7, high / 2, high - 1, high];
        let bits = dtype.bits() as i128;
        ints.extend([bits - 1, bits, 85 % (high + 1)]);
        ints.retain(|i| (low..=high).contains(i));
        ints.sort_unstable();
        ints.dedup();
        return ints.into_iter().map(Val::Int).collect();
    }
    let tiny = ulp(dtype, 0.0);
    let eps = 2.0 * unit_roundoff(dtype);
    let mut positive = vec![
        0.0,
        tiny,
        smallest_normal(dtype) - tiny,
        smallest_normal(dtype),
        eps / 2.0,
        0.25,
        0.5,
        1.0 - eps / 2.0,
        1.0,
        1.0 + eps,
        1.5,
        2.0,
        2.5,
        std::f64::consts::PI,
        10.0,
        88.5,
        100.5,
        // Where integers begin and halves end: ties of rounding functions.
        0.5 / eps + 0.5,
        1.0 / eps,
        largest(dtype) / 2.0,
        largest(dtype),
        f64::INFINITY,
    ];
    positive.iter_mut().for_each(|x| *x = round(dtype, *x));
    let mut values: Vec<f64> = positive.iter().flat_map(|&x| [x, -x]).collect();
    values.push(f64::NAN);
    values.into_iter().map(Val::point).collect()
}

/// A random value: small, large, or any code of the dtype.
pub fn random(rng: &mut Rng, dtype: DType) -> Val {
    match (rng.below(4), dtype.is_float()) {
        (0, _) => oracle::decode(dtype, rng.bits() & (u64::MAX >> (64 - dtype.bits()))).sane(dtype),
        (1, true) => Val::point(round(dtype, rng.between(-100.0, 100.0))),
        (2, true) => Val::point(rng.range(-8, 8) as f64 / 2.0),
        (_, true) => Val::point(round(dtype, rng.between(-2.0, 2.0))),
        (_, false) => Val::Int(oracle::wrap(dtype, rng.range(-9, 9) as i128)),
    }
}

impl Val {
    /// A bool code that is neither 0 nor 1 becomes 1.
    fn sane(self, dtype: DType) -> Val {
        match self {
            Val::Int(i) if dtype == DType::Bool => Val::Int((i & 1 != 0) as i128),
            other => other,
        }
    }
}

/// Special values followed by `n` random ones, in a vector.
pub fn mixed(dtype: DType, n: usize, seed: u64) -> Array {
    let mut rng = Rng::new(seed);
    let mut data = special(dtype);
    data.extend((0..n).map(|_| random(&mut rng, dtype)));
    Array::new(dtype, &[data.len()], data)
}

/// Every pair of special values, then `n` random pairs.
pub fn pairs(x: DType, y: DType, n: usize, seed: u64) -> (Array, Array) {
    let mut rng = Rng::new(seed);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for &a in &special(x) {
        for &b in &special(y) {
            first.push(a);
            second.push(b);
        }
    }
    for _ in 0..n {
        first.push(random(&mut rng, x));
        second.push(random(&mut rng, y));
    }
    (Array::new(x, &[first.len()], first), Array::new(y, &[second.len()], second))
}

/// Random values of moderate size: floats in (-2, 2), integers in -9 ..= 9 (wrapped).
pub fn moderate(dtype: DType, dims: &[usize], rng: &mut Rng) -> Array {
    let value = |_| {
        if dtype.is_float() {
            Val::point(round(dtype, rng.between(-2.0, 2.0)))
        } else {
            Val::Int(oracle::wrap(dtype, rng.range(-9, 9) as i128))
        }
    };
    let data = (0..dims.iter().product()).map(value).collect();
    Array::new(dtype, dims, data)
}

/// Moderate values with some NaN, infinities and repetitions among them, for ordering ops.
pub fn with_ties(dtype: DType, dims: &[usize], rng: &mut Rng) -> Array {
    let value = |_| match (rng.below(40), dtype.is_float()) {
        (0, true) => Val::point(f64::INFINITY),
        (1, true) => Val::point(f64::NEG_INFINITY),
        (_, true) => Val::point(rng.range(-4, 4) as f64),
        (_, false) => Val::Int(oracle::wrap(dtype, rng.range(-4, 4) as i128)),
    };
    let data = (0..dims.iter().product()).map(value).collect();
    Array::new(dtype, dims, data)
}

/// As [`moderate`], with unsigned integers of 0 ..= 9 only, so that squares of any dtype are
/// finite in `f32`.
pub fn small(dtype: DType, dims: &[usize], rng: &mut Rng) -> Array {
    let mut array = moderate(dtype, dims, rng);
    if let Class::Unsigned = dtype.class() {
        array.data.iter_mut().for_each(|x| *x = Val::Int(rng.range(0, 9) as i128));
    }
    array
}
