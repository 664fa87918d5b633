//! Derivatives where they are easily wrong: products with zeros, ties, powers and lengths at zero;
//! up to the third order, against closed forms.

mod edges;
mod halves;
mod law;
mod pairs;
mod real;
mod rows;

use zyx_tests::zyx_core::{DType, Device, Result, Runtime, ScatterReduce, Tensor};

fn device() -> Device {
    Runtime::default().device("reference").expect("always present")
}

fn vector(data: &[f64], device: &Device) -> Tensor {
    Tensor::from_slice(data, [data.len()], device).expect("a vector")
}

/// The gradient of the sum of `y`'s elements; zeros where there is no dependence.
fn gradient(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    Ok(y.grad(&[x])?.remove(0).unwrap_or_else(|| x.zeros_like()))
}

/// All derivatives of order `order` of a scalar: the last index runs fastest.
fn derivatives(y: &Tensor, x: &Tensor, order: usize) -> Result<Vec<f64>> {
    let d = gradient(y, x)?;
    if order == 1 {
        return d.to_vec::<f64>();
    }
    let flat = d.flatten();
    let parts = (0..flat.numel() as isize).map(|i| {
        let part = flat.select_index(0, i)?;
        derivatives(&part, x, order - 1)
    });
    Ok(parts.collect::<Result<Vec<_>>>()?.concat())
}

/// The derivative of a product by the elements at `by`: the product of all others, or 0 when one
/// is named twice.
fn product_of_others(x: &[f64], by: &[usize]) -> f64 {
    let twice = (1..by.len()).any(|i| by[..i].contains(&by[i]));
    let others = x.iter().enumerate().filter(|(i, _)| !by.contains(i));
    if twice { 0.0 } else { others.map(|(_, x)| x).product() }
}

#[test]
fn products_with_zeros_up_to_the_third_order() -> Result<()> {
    let device = device();
    for data in [
        vec![1.5, 2.0, -0.7, 3.0],
        vec![1.5, 0.0, -0.7, 3.0],
        vec![0.0, 2.0, 0.0, 3.0],
        vec![0.0, 0.0, -0.7, 0.0],
        vec![0.0; 4],
        vec![-0.0, 5.0],
        vec![0.0],
    ] {
        let x = vector(&data, &device);
        let y = x.prod(0)?;
        let n = data.len();
        for order in 1..=3u32 {
            let got = derivatives(&y, &x, order as usize)?;
            for (at, got) in got.into_iter().enumerate() {
                let by: Vec<usize> = (0..order).rev().map(|k| at / n.pow(k) % n).collect();
                let want = product_of_others(&data, &by);
                assert!((got - want).abs() < 1e-12, "{data:?} by {by:?}: {got}, not {want}");
            }
        }
    }
    Ok(())
}

#[test]
fn products_over_some_axes() -> Result<()> {
    let device = device();
    // Axes 0 and 2 of [2, 2, 2]: two products of four, one with a zero and one without.
    let data = [1.0, 2.0, 0.0, -1.5, 0.5, 3.0, 2.0, 4.0];
    let x = Tensor::from_slice(&data, [2, 2, 2], &device)?;
    let y = x.prod([0, 2])?;
    let second = derivatives(&y.sum(..)?, &x, 2)?;
    for i in 0..8 {
        for j in 0..8 {
            let (row, other) = (i / 2 % 2, j / 2 % 2);
            let members: Vec<usize> = (0..8).filter(|k| k / 2 % 2 == row).collect();
            let values: Vec<f64> = members.iter().map(|&k| data[k]).collect();
            let place = |i: usize| members.iter().position(|&k| k == i);
            let want = match (place(i), place(j)) {
                (Some(a), Some(b)) if row == other => product_of_others(&values, &[a, b]),
                _ => 0.0,
            };
            assert!((second[i * 8 + j] - want).abs() < 1e-12, "{i} {j}: {}", second[i * 8 + j]);
        }
    }
    Ok(())
}

#[test]
fn ties_share_and_are_flat() -> Result<()> {
    let device = device();
    let x = vector(&[2.0, 5.0, 5.0, 1.0, 1.0], &device);
    // The gradient of max^2 / 2 is max, shared; that of max is constant.
    let top = x.max(0)?;
    let y = top.square().mul(0.5)?;
    assert_eq!(derivatives(&y, &x, 1)?, [0.0, 2.5, 2.5, 0.0, 0.0]);
    let bottom = x.min(0)?.square().mul(0.5)?;
    assert_eq!(derivatives(&bottom, &x, 1)?, [0.0, 0.0, 0.0, 0.5, 0.5]);
    let second = derivatives(&y, &x, 2)?;
    let share = |i: usize| if i == 1 || i == 2 { 0.5 } else { 0.0 };
    for (at, got) in second.into_iter().enumerate() {
        assert_eq!(got, share(at / 5) * share(at % 5), "{at}");
    }
    assert!(derivatives(&top, &x, 2)?.iter().all(|&d| d == 0.0));
    // Elementwise: half each between tensors, nothing against a number.
    let (a, b) = (vector(&[1.0, 2.0], &device), vector(&[1.0, 3.0], &device));
    for y in [a.maximum(&b)?, a.minimum(&b)?] {
        let both = y.grad(&[&a, &b])?;
        let first = |d: &Option<Tensor>| d.as_ref().map(|d| d.to_vec::<f64>()).transpose();
        assert_eq!(first(&both[0])?.map(|d| d[0]), Some(0.5));
        assert_eq!(first(&both[1])?.map(|d| d[0]), Some(0.5));
    }
    let zero = vector(&[0.0], &device);
    assert_eq!(derivatives(&zero.relu().sum(..)?, &zero, 1)?, [0.0]);
    Ok(())
}

#[test]
fn at_their_limits_clamp_and_activations_are_flat() -> Result<()> {
    let device = device();
    let x = vector(&[-2.0, -1.0, 0.5, 1.0, 2.0], &device);
    let inside = [0.0, 0.0, 1.0, 0.0, 0.0];
    assert_eq!(derivatives(&x.clamp(-1.0, 1.0)?, &x, 1)?, inside);
    // Limits that are tensors share the gradient where they are equal, as in a maximum.
    let (low, high) = (x.ones_like().neg(), x.ones_like());
    let limited = x.clamp(&low, &high)?;
    assert_eq!(derivatives(&limited, &x, 1)?, [0.0, 0.5, 1.0, 0.5, 0.0]);
    assert_eq!(derivatives(&limited, &low, 1)?, [1.0, 0.5, 0.0, 0.0, 0.0]);
    assert_eq!(derivatives(&limited, &high, 1)?, [0.0, 0.0, 0.0, 0.5, 1.0]);
    assert_eq!(derivatives(&x.hardtanh(-1.0, 1.0), &x, 1)?, inside);
    let ends = vector(&[0.0, 6.0], &device);
    assert_eq!(derivatives(&ends.relu6(), &ends, 1)?, [0.0, 0.0]);
    let ends = vector(&[-3.0, 3.0], &device);
    assert_eq!(derivatives(&ends.hardsigmoid(), &ends, 1)?, [0.0, 0.0]);
    assert_eq!(derivatives(&ends.hardswish(), &ends, 1)?, [0.0, 1.0]);
    let ends = vector(&[-0.5, 0.5], &device);
    assert_eq!(derivatives(&ends.softshrink(0.5), &ends, 1)?, [0.0, 0.0]);
    // Coordinates of a sample at an end do not move it.
    let image = Tensor::from_slice(&[1.0f64, 3.0], [1, 1, 1, 2], &device)?;
    let at = Tensor::from_slice(&[1.0f64, 0.0], [1, 1, 1, 2], &device)?;
    let y = image.grid_sample(&at, false, true, true)?;
    assert_eq!(derivatives(&y, &at, 1)?, [0.0, 0.0]);
    Ok(())
}

#[test]
fn running_log_sums_up_to_the_third_order() -> Result<()> {
    let device = device();
    let data = [0.3, -1.2, 0.8, 2.0];
    let x = vector(&data, &device).tracked();
    // The gradient of w . y by x, with weights of both signs and zeros, by shares s of the sums:
    // sum w_i s_ij; its own by sum w_i s_ij (d_jk - s_ik).
    for weights in [[0.0; 4], [1.0, 0.0, -2.0, 0.5], [-1.0, 0.0, 0.0, 0.0]] {
        let w = vector(&weights, &device).tracked();
        let y = x.logcumsumexp(0)?;
        let dx = y.grad_with(&w, &[&x])?.remove(0).expect("it depends");
        let share = |i: usize, j: usize| {
            let sum: f64 = data[..=i].iter().map(|x| x.exp()).sum();
            if j <= i { data[j].exp() / sum } else { 0.0 }
        };
        let got = [dx.to_vec::<f64>()?, derivatives(&dx, &x, 1)?].concat();
        let first = |j: usize| (0..4).map(|i| weights[i] * share(i, j)).sum::<f64>();
        let second = |k: usize| {
            let term =
                |i: usize, j: usize| weights[i] * share(i, j) * (f64::from(j == k) - share(i, k));
            (0..16).map(|at| term(at / 4, at % 4)).sum::<f64>()
        };
        let want: Vec<f64> = (0..4).map(first).chain((0..4).map(second)).collect();
        for (got, want) in got.iter().zip(&want) {
            assert!((got - want).abs() < 1e-12, "{weights:?}: {got}, not {want}");
        }
        // By the weights: the shares, whatever the weights are.
        let by = dx.grad(&[&w])?.remove(0).expect("it is linear").to_vec::<f64>()?;
        for (i, got) in by.iter().enumerate() {
            let want: f64 = (0..4).map(|j| share(i, j)).sum();
            assert!((got - want).abs() < 1e-12, "{i}: {got}, not {want}");
        }
    }
    // Far apart, and infinities: what is nothing gets nothing.
    let minus = f64::NEG_INFINITY;
    let x = vector(&[minus, minus, -1000.0, 800.0, minus, 0.0], &device).tracked();
    let dx = gradient(&x.logcumsumexp(0)?.narrow(0, 2, 4)?, &x)?;
    assert_eq!(dx.to_vec::<f64>()?, [0.0, 0.0, 1.0, 3.0, 0.0, 0.0]);
    assert_eq!(derivatives(&dx, &x, 1)?, [0.0; 6]);
    let x = vector(&[1.0, f64::INFINITY, 2.0], &device);
    let dx = gradient(&x.logcumsumexp(0)?, &x)?.to_vec::<f64>()?;
    assert!(dx[0] == 1.0 && dx[1].is_nan() && dx[2] == 0.0, "{dx:?}");
    Ok(())
}

#[test]
fn running_products_with_zeros_up_to_the_third_order() -> Result<()> {
    let device = device();
    for data in [vec![1.5, 0.0, -0.7, 3.0], vec![0.0, 2.0, 0.0, 3.0], vec![0.0; 3]] {
        let x = vector(&data, &device);
        let (y, n) = (x.cumprod(0)?.sum(..)?, data.len());
        for order in 1..=3u32 {
            let got = derivatives(&y, &x, order as usize)?;
            for (at, got) in got.into_iter().enumerate() {
                let by: Vec<usize> = (0..order).rev().map(|k| at / n.pow(k) % n).collect();
                let last = *by.iter().max().expect("one at least");
                let want: f64 = (last..n).map(|i| product_of_others(&data[..=i], &by)).sum();
                assert!((got - want).abs() < 1e-12, "{data:?} by {by:?}: {got}, not {want}");
            }
        }
    }
    // What comes behind a zero may be too large for a product.
    let data = [0.0, 1e200, 1e200, 1e200];
    let x = vector(&data, &device);
    let dx = derivatives(&x.cumprod(0)?, &x, 1)?;
    assert!(dx[0] == f64::INFINITY && dx[1..] == [0.0; 3], "{dx:?}");
    Ok(())
}

#[test]
fn inputs_computed_from_one_another() -> Result<()> {
    let device = device();
    // y = x z with z = x^2 beside x: by x alone it is z, along (1, 1) z + x.
    let x = vector(&[3.0], &device);
    let z = x.square();
    let product = |x: &[Tensor]| x[0].mul(&x[1]);
    let one = x.ones_like();
    let (_, dy) = Tensor::jvp(product, &[&x, &z], &[&one, &one])?;
    assert_eq!(dy.to_vec::<f64>()?, [12.0]);
    // Through both, y = x^3.
    let y = Tensor::checkpoint(product, &[&x, &z])?;
    assert_eq!(derivatives(&y, &x, 1)?, [27.0]);
    assert_eq!(derivatives(&y, &x, 2)?, [18.0]);
    // Products that meet in a place, with a zero, of a tensor and its double.
    let index = Tensor::new([0i64], &device)?;
    let x = vector(&[0.0], &device);
    let meet = |a: &Tensor, b: &Tensor| a.scatter_reduce(0, &index, b, ScatterReduce::Prod, true);
    assert_eq!(derivatives(&meet(&x, &x.mul(2.0)?)?, &x, 2)?, [4.0]);
    assert_eq!(derivatives(&meet(&x.mul(2.0)?, &x)?, &x, 2)?, [4.0]);
    Ok(())
}

#[test]
fn long_scans_of_any_function_have_the_gradients_of_recurrences() -> Result<()> {
    let device = device();
    let n = 1000;
    // Factors of 0, 1 and -1: every number on the way is an integer.
    let factors: Vec<f64> = (0..n).map(|i| [1.0, -1.0, 1.0, 0.0, 1.0][i * i % 97 % 5]).collect();
    let inputs: Vec<f64> = (0..n).map(|i| (i * 31 % 7) as f64 - 3.0).collect();
    let weights = vector(&(0..n).map(|i| (i % 5) as f64 - 2.0).collect::<Vec<_>>(), &device);
    let (a, b) = (vector(&factors, &device).tracked(), vector(&inputs, &device).tracked());
    let compose =
        |x: &[Tensor], y: &[Tensor]| Ok(vec![x[0].mul(&y[0])?, y[0].mul(&x[1])?.add(&y[1])?]);
    for reverse in [false, true] {
        let scanned = Tensor::associative_scan(compose, &[&a, &b], 0, reverse)?.remove(1);
        let steps = a.linear_recurrence(&b, 0, reverse)?;
        assert_eq!(scanned.to_vec::<f64>()?, steps.to_vec::<f64>()?, "{reverse}");
        let (got, want) =
            (scanned.grad_with(&weights, &[&a, &b])?, steps.grad_with(&weights, &[&a, &b])?);
        for (got, want) in got.iter().zip(&want) {
            let [got, want] = [got, want].map(|d| d.as_ref().expect("it depends").to_vec::<f64>());
            assert_eq!(got?, want?, "{reverse}");
        }
    }
    Ok(())
}

#[test]
fn running_sums_and_selections_twice() -> Result<()> {
    let device = device();
    let data = [0.5, -1.0, 2.0];
    let x = vector(&data, &device);
    // y = sum_k s_k^3 with s the running sum: d2y / dx_i dx_j = sum over k >= i, j of 6 s_k.
    let s = x.cumsum(0)?;
    let second = derivatives(&s.mul(&s)?.mul(&s)?.sum(..)?, &x, 2)?;
    let sums = [0.5, -0.5, 1.5];
    for (at, got) in second.into_iter().enumerate() {
        let want: f64 = sums[(at / 3).max(at % 3)..].iter().map(|s| 6.0 * s).sum();
        assert!((got - want).abs() < 1e-12, "{at}: {got}, not {want}");
    }
    // Where x > 0 the cube, elsewhere the square; at 0 itself the square's.
    let x = vector(&[2.0, -3.0, 0.0], &device);
    let cube = x.mul(&x)?.mul(&x)?;
    let y = x.gt(0.0)?.where_(&cube, x.square())?.sum(..)?;
    let second = derivatives(&y, &x, 2)?;
    assert_eq!(second, [12.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0]);
    Ok(())
}

#[test]
fn powers_at_zero() -> Result<()> {
    let device = device();
    let x = vector(&[0.0], &device);
    for (exponent, want) in [
        (0.0, [0.0, 0.0, 0.0]),
        (1.0, [1.0, 0.0, 0.0]),
        (2.0, [0.0, 2.0, 0.0]),
        (3.0, [0.0, 0.0, 6.0]),
        (4.0, [0.0, 0.0, 0.0]),
        (1.5, [0.0, f64::INFINITY, f64::NEG_INFINITY]),
    ] {
        let power = vector(&[exponent], &device);
        // As a number, and as a tensor that somebody holds.
        for y in [x.pow(exponent)?, x.pow(&power)?] {
            for (order, want) in want.into_iter().enumerate().take(2 + (exponent != 1.5) as usize) {
                assert_eq!(derivatives(&y, &x, order + 1)?, [want], "x^{exponent}, {}", order + 1);
            }
        }
        // With respect to the exponent: 0^z is flat.
        let dz = gradient(&x.pow(&power)?, &power)?;
        assert_eq!(dz.to_vec::<f64>()?, [0.0], "{exponent}");
    }
    // d2 x^z / dx dz at z = 0 is 1 / x.
    let (x, z) = (vector(&[4.0], &device), vector(&[0.0], &device));
    let mixed = gradient(&gradient(&x.pow(&z)?, &x)?, &z)?.to_vec::<f64>()?;
    assert!((mixed[0] - 0.25).abs() < 1e-12, "{mixed:?}");
    // An exponent is differentiated whatever its value is.
    let (x, two) = (vector(&[3.0], &device), vector(&[2.0], &device));
    let dz = gradient(&x.pow(&two)?, &two)?.to_vec::<f64>()?;
    assert!((dz[0] - 9.0 * 3f64.ln()).abs() < 1e-12, "{dz:?}");
    Ok(())
}

#[test]
fn lengths_at_zero() -> Result<()> {
    let device = device();
    // As PyTorch: a length has gradient 0 at 0, not NaN.
    let x = Tensor::from_slice(&[0.0f64, 0.0, 3.0, 4.0], [2, 2], &device)?;
    let d = derivatives(&x.norm(1)?.sum(..)?, &x, 1)?;
    assert_eq!(d[..2], [0.0, 0.0]);
    assert!((d[2] - 0.6).abs() < 1e-15 && (d[3] - 0.8).abs() < 1e-15, "{d:?}");
    let same = vector(&[2.0, 2.0, 2.0], &device);
    assert_eq!(derivatives(&same.std(0, 1)?, &same, 1)?, [0.0; 3]);
    let unit = x.normalize(1, 1e-3)?.sum(..)?;
    let d = derivatives(&unit, &x, 1)?;
    assert!((d[0] - 1e3).abs() < 1e-6 && d.iter().all(|d| d.is_finite()), "{d:?}");
    assert_eq!(derivatives(&x.abs().sum(..)?, &x, 1)?, [0.0, 0.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn what_does_not_depend_has_none() -> Result<()> {
    let device = device();
    let (x, z) = (vector(&[1.0, 2.0], &device), vector(&[3.0, 4.0], &device));
    let y = x.exp().cast(DType::I64).cast(DType::F64).add(&z)?;
    let found = y.grad(&[&x, &z])?;
    assert!(found[0].is_none(), "integers let no gradient through");
    assert!(found[1].is_some());
    Ok(())
}
