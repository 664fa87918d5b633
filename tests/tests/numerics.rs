//! Stated bounds of rounding: sums, means and products of halves, matrices of integers.

mod common;

use common::device;
use zyx_tests::zyx_core::{Conv2dOptions, DType, Interpolation, Result, Rng, Tensor};

/// The sum in `f64` of what the tensor holds in its own dtype.
fn exact(x: &Tensor) -> Result<f64> {
    x.cast(DType::F64).sum(..)?.item::<f64>()
}

#[test]
fn halves_are_summed_in_single_precision() -> Result<()> {
    let device = device();
    for (dtype, resolution) in [(DType::BF16, 2f64.powi(-8)), (DType::F16, 2f64.powi(-11))] {
        let x = Tensor::rand([10_000], DType::F32, &mut Rng::seed(2), &device)?.cast(dtype);
        x.realize()?;
        let want = exact(&x)?;
        let got = x.sum(..)?.cast(DType::F64).item::<f64>()?;
        // One rounding at the end; adding in halves would stop growing at 256 or 2048.
        assert!((got / want - 1.0).abs() <= 1.01 * resolution, "{dtype}: {got}, not {want}");
    }
    Ok(())
}

#[test]
fn norms_of_halves_overflow_only_where_they_are_infinite() -> Result<()> {
    let device = device();
    for dtype in [DType::F16, DType::BF16] {
        let x = Tensor::from_slice(&[384f32, 512.0], [2], &device)?.cast(dtype);
        assert_eq!(x.norm(0)?.cast(DType::F32).item::<f32>()?, 640.0, "{dtype}");
        assert_eq!(x.var(0, 1)?.cast(DType::F32).item::<f32>()?, 8192.0, "{dtype}");
        let zeros = Tensor::zeros([70_000], dtype, &device);
        let want = Tensor::full([], 70_000f32.ln(), &device).cast(dtype).cast(DType::F32);
        let got = zeros.logsumexp(0)?.cast(DType::F32).item::<f32>()?;
        assert_eq!(got, want.item::<f32>()?, "{dtype}");
    }
    Ok(())
}

#[test]
fn gradients_of_products_of_halves_round_the_sum_alone() -> Result<()> {
    let device = device();
    // Rounded to bf16, the square of this is 1.1484375 instead of 1.14557.
    let full = |dims: [usize; 2]| Tensor::full(dims, 1.0703125f32, &device).cast(DType::BF16);
    let (x, w, dy) = (full([100, 4]), full([4, 4]), full([100, 4]));
    let loss = x.matmul(&w)?.mul(&dy)?.cast(DType::F32).sum(..)?;
    let grad = loss.grad(&[&w])?.remove(0).expect("the loss depends on it");
    assert_eq!(grad.dtype(), DType::BF16);
    // 114.557 lies between 114.5 and 115.
    assert_eq!(grad.cast(DType::F32).to_vec::<f32>()?, [114.5; 16]);
    Ok(())
}

#[test]
fn convolutions_of_halves_round_the_sum_alone() -> Result<()> {
    let device = device();
    // As above; each element of the result and of both gradients is a sum of such squares.
    let full = |dims: [usize; 4]| Tensor::full(dims, 1.0703125f32, &device).cast(DType::BF16);
    let (x, w) = (full([1, 4, 5, 5]).tracked(), full([4, 4, 5, 5]).tracked());
    let y = x.conv2d(&w, None, Conv2dOptions::default())?;
    assert_eq!(y.dtype(), DType::BF16);
    assert_eq!(y.cast(DType::F32).to_vec::<f32>()?, [114.5; 4]);
    // Sums over 100 images, then over 100 channels of the result.
    let (x, w) = (full([100, 1, 1, 1]).tracked(), full([100, 1, 1, 1]).tracked());
    let y = x.conv2d(&w, None, Conv2dOptions::default())?;
    let dy = full([100, 100, 1, 1]);
    for gradient in y.grad_with(&dy, &[&x, &w])?.into_iter().flatten() {
        assert_eq!(gradient.dtype(), DType::BF16);
        assert_eq!(gradient.cast(DType::F32).to_vec::<f32>()?, [114.5; 100]);
    }
    Ok(())
}

#[test]
fn matrices_of_integers_are_read_exactly() -> Result<()> {
    let device = device();
    // Rounded to `f32`, both of its columns are alike.
    let n = (1i64 << 24) + 1;
    let a = Tensor::new([[n, 1], [n - 1, 1]], &device)?;
    assert_eq!(a.det()?.item::<f32>()?, 1.0);
    let (sign, log) = a.slogdet()?;
    assert_eq!(sign.item::<f32>()?, 1.0);
    assert!(log.item::<f32>()?.abs() < 1e-6);
    // Its last pivot is 1 / n, of which a rounding of 1 in `f64` is 2e-9; then `f32` rounds.
    let want = [1.0, -1.0, -(n - 1) as f64, n as f64];
    for (got, want) in a.inv()?.to_vec::<f32>()?.into_iter().zip(want) {
        assert!((f64::from(got) / want - 1.0).abs() < 1e-7, "{got}, not {want}");
    }
    assert_eq!(a.cast(DType::U64).det()?.item::<f32>()?, 1.0);
    assert_eq!(a.matrix_rank(None)?.item::<i64>()?, 2);
    assert_eq!(a.det()?.dtype(), DType::F32);
    Ok(())
}

/// First and second derivatives of distances of pairs, which have a rule, are those of all distances.
#[test]
fn gradients_of_pairs_are_those_of_all_distances() -> Result<()> {
    let device = device();
    let (n, d) = (5usize, 3usize);
    let values = Tensor::randn([n, d], DType::F64, &mut Rng::seed(4), &device)?;
    let pairs: Vec<i64> =
        (0..n).flat_map(|i| (i + 1..n).map(move |j| (i * n + j) as i64)).collect();
    let pairs = Tensor::from_slice(&pairs, [pairs.len()], &device)?;
    for p in [0.0, 0.5, 1.0, 2.0, 3.0, f64::INFINITY] {
        let results = [false, true].map(|all| -> Result<Vec<Vec<f64>>> {
            let x = values.contiguous().tracked();
            let y = if all { x.cdist(&x, p)?.take(&pairs)? } else { x.pdist(p)? };
            let weights = Tensor::iota(pairs.numel(), DType::F64, &device).add(1.0)?;
            let zeros = || Tensor::zeros([n, d], DType::F64, &device);
            let first = y.mul(&weights)?.sum(..)?.grad(&[&x])?.remove(0).unwrap_or_else(zeros);
            let second = first.square().sum(..)?.grad(&[&x])?.remove(0).unwrap_or_else(zeros);
            [y, first, second].iter().map(|x| x.to_vec::<f64>()).collect()
        });
        let [one, all] = results;
        for (order, (a, b)) in one?.iter().zip(&all?).enumerate() {
            for (a, b) in a.iter().zip(b) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{p}, {order}: {a} and {b}");
            }
        }
    }
    Ok(())
}

/// Quotients rounded down and remainders of floats, as PyTorch 2 gives them.
#[test]
fn floor_division_agrees_with_the_remainder() -> Result<()> {
    const INF: f64 = f64::INFINITY;
    let device = device();
    let known = [
        (6.0, 0.1, 59.0),
        (1.0, 0.1, 9.0),
        (INF, 1.0, f64::NAN),
        (-INF, 2.0, f64::NAN),
        (-7.0, 2.0, -4.0),
        (7.0, -2.0, -4.0),
        (-6.0, INF, -1.0),
        (6.0, INF, 0.0),
        (1.0, 0.0, INF),
        (-1.0, 0.0, -INF),
        (0.0, 0.0, f64::NAN),
        (-0.0, 1.0, -0.0),
        (0.0, -3.0, -0.0),
        (1e-30, -1.0, -1.0),
    ];
    for dtype in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        for (x, y, want) in known {
            let [x, y] = [x, y].map(|v| Tensor::full([], v, &device).cast(dtype).contiguous());
            // In a half, a tenth is another number.
            let rounded = |x: &Tensor| x.cast(DType::F64).item::<f64>();
            let (a, b) = (rounded(&x)?, rounded(&y)?);
            let got = rounded(&x.floor_divide(&y)?)?;
            if b.fract() == 0.0 && a != 0.0 || dtype.bits() >= 32 {
                let same = got == want && got.is_sign_negative() == want.is_sign_negative();
                assert!(
                    same || got.is_nan() && want.is_nan(),
                    "{a} // {b} in {dtype}: {got}, not {want}"
                );
            }
            let rest = rounded(&x.remainder(&y)?)?;
            if got.is_finite() && a.is_finite() && b.is_finite() {
                let exact = a - got * b;
                assert!(
                    (exact - rest).abs() <= 1e-2 * b.abs(),
                    "{a}, {b} in {dtype}: {got}, rest {rest}"
                );
            }
        }
    }
    Ok(())
}

/// Positions among elements are exact on axes of any length: values on a line are found on that line.
#[test]
fn interpolated_lines_are_lines() -> Result<()> {
    let device = device();
    for (n, m) in [(480, 1323), (4_801, 3_000), (48_000, 132_301), (200_003, 300_007)] {
        // Small steps back and forth, whose values are as fine as the positions.
        let data: Vec<f32> = (0..n).map(|i| (i % 2) as f32).collect();
        let x = Tensor::from_slice(&data, [1, 1, n], &device)?;
        for corners in [false, true] {
            let y = x.interpolate(&[m], Interpolation::Linear, corners)?.to_vec::<f32>()?;
            let mut most = 0f64;
            for (i, &y) in y.iter().enumerate() {
                let (i, n, m) = (i as f64, n as f64, m as f64);
                let at = match corners {
                    true => i * (n - 1.0) / (m - 1.0),
                    false => ((2.0 * i + 1.0) * n - m) / (2.0 * m),
                };
                let at = at.clamp(0.0, n - 1.0);
                let (low, rest) = (at.floor(), at.fract());
                let want = if low as i64 % 2 == 0 { rest } else { 1.0 - rest };
                most = most.max((want - f64::from(y)).abs());
            }
            assert!(most < 1e-6, "{n} to {m}, corners {corners}: {most}");
        }
        // The same places of an image of one row, told by a grid.
        let grid: Vec<f64> = (0..m.min(4000)).map(|i| (i as f64 * 0.37 / m as f64).sin()).collect();
        let places: Vec<f32> = grid.iter().flat_map(|&x| [x as f32, 0.0]).collect();
        let places = Tensor::from_slice(&places, [1, 1, grid.len(), 2], &device)?;
        let image = x.unsqueeze(2)?;
        let y = image.grid_sample(&places, false, true, true)?.to_vec::<f32>()?;
        for (&x, &y) in grid.iter().zip(&y) {
            let at = (f64::from(x as f32) + 1.0) / 2.0 * (n as f64 - 1.0);
            let (low, rest) = (at.floor(), at.fract());
            let want = if low as i64 % 2 == 0 { rest } else { 1.0 - rest };
            // The product with half the extent rounds.
            let error = f64::from(x.abs() as f32) * n as f64 * 2f64.powi(-24) + 1e-6;
            assert!((want - f64::from(y)).abs() <= error, "{n} at {x}: {y}, not {want}");
        }
    }
    Ok(())
}

/// Ranges are rounded once.
#[test]
fn ranges_are_rounded_once() -> Result<()> {
    let device = device();
    let x = Tensor::arange(0.0f32, 1000.0, 0.1, &device)?.to_vec::<f32>()?;
    let step = f64::from(0.1f32);
    assert!(x.iter().enumerate().all(|(i, &x)| x == (i as f64 * step) as f32));
    Ok(())
}
