//! Sorting and what is made of it: stable, NaN last, every dtype, rows short enough to be counted
//! and long enough for the radix sort, against a sort of the oracle's values.

use crate::values::with_ties;
use crate::{Array, Check, Rng, Val};
use std::cmp::Ordering;
use zyx_core::{DType, Device, Result, Tensor};

/// NaN is the largest number; the two zeros are equal.
fn compare(x: Val, y: Val) -> Ordering {
    match (x, y) {
        (Val::Int(x), Val::Int(y)) => x.cmp(&y),
        (Val::Real(x, _), Val::Real(y, _)) => match (x.is_nan(), y.is_nan()) {
            (false, false) => x.partial_cmp(&y).expect("invariant: neither is NaN"),
            (x, y) => x.cmp(&y),
        },
        _ => unreachable!("invariant: inputs are certain"),
    }
}

/// Positions that sort each row of a matrix.
fn orders(x: &Array, descending: bool) -> Vec<Vec<usize>> {
    let n = x.dims[1];
    x.data
        .chunks(n.max(1))
        .map(|row| {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&i, &j| {
                let ascending = compare(row[i], row[j]);
                if descending { ascending.reverse() } else { ascending }
            });
            order
        })
        .collect()
}

/// The first `k` of each row in that order: values and positions.
fn picked(x: &Array, orders: &[Vec<usize>], k: usize) -> (Array, Array) {
    let n = x.dims[1];
    let flat = |(row, order): (usize, &Vec<usize>)| -> Vec<(Val, i64)> {
        order[..k].iter().map(|&i| (x.data[row * n + i], i as i64)).collect()
    };
    let all: Vec<(Val, i64)> = orders.iter().enumerate().flat_map(flat).collect();
    let (values, at): (Vec<Val>, Vec<i64>) = all.into_iter().unzip();
    let dims = [orders.len(), k];
    (Array::new(x.dtype, &dims, values), Array::ints(DType::I64, &dims, &at))
}

fn input(dtype: DType, dims: &[usize], seed: u64) -> Array {
    let mut x = with_ties(dtype, dims, &mut Rng::new(seed));
    if dtype.is_float() && x.data.len() > 5 {
        let last = x.data.len() - 2;
        x.data[3] = Val::point(f64::NAN);
        x.data[last] = Val::point(-0.0);
    }
    x
}

/// Compares values and positions.
fn both(
    check: &mut Check<'_>,
    what: &str,
    got: Result<(Tensor, Tensor)>,
    (values, at): (&Array, &Array),
) {
    match got {
        Err(error) => check.equal(what, Err(error), values),
        Ok((first, second)) => {
            check.equal(what, Ok(first), values);
            check.equal(format!("{what}, positions"), Ok(second), at);
        }
    }
}

/// Values and order, both directions, along both axes; the largest and smallest few.
pub fn sort(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let long = check.thorough(dtype);
    for (dims, seed) in [([3usize, 17usize], 1), ([2, 700], 2), ([2, 1], 3)] {
        if !long && dims[1] > 100 {
            continue;
        }
        let x = input(dtype, &dims, seed);
        let a = check.input(&x);
        for descending in [false, true] {
            let orders = orders(&x, descending);
            let (values, at) = picked(&x, &orders, dims[1]);
            let got = a.sort(1, descending);
            let what = format!("sort of {dims:?}, {descending}");
            both(&mut check, &what, got, (&values, &at));
            let k = dims[1].min(5);
            let (values, at) = picked(&x, &orders, k);
            let got = a.topk(k, 1, descending);
            let what = format!("topk of {dims:?}, {descending}");
            both(&mut check, &what, got, (&values, &at));
        }
    }
    let x = input(dtype, &[4, 9], 4);
    let columns = x.permute(&[1, 0]);
    let (values, _) = picked(&columns, &orders(&columns, false), 4);
    check.equal("msort", check.input(&x).msort(), &values.permute(&[1, 0]));
    check.finish();
}
