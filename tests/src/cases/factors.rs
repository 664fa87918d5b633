//! Factors of small matrices by groups of threads, on every device that can, beside those of the host.

use zyx_backend_cpu::Cpu;
use zyx_core::{DType, Device, Result, Runtime, Tensor, testing};

/// Matrices, flattened.
struct Host {
    data: Vec<f64>,
    rows: usize,
    columns: usize,
}

impl Host {
    fn of(x: &Tensor) -> Result<Host> {
        let (rows, columns) = (x.shape()[x.rank() - 2], x.shape()[x.rank() - 1]);
        Ok(Host { data: x.cast(DType::F64).to_vec::<f64>()?, rows, columns })
    }

    fn at(&self, matrix: usize, i: usize, j: usize) -> f64 {
        self.data[(matrix * self.rows + i) * self.columns + j]
    }
}

/// The largest difference between `x diag(s) y^T` and `f`.
fn off(
    batch: usize,
    [x, s, y]: [&Host; 3],
    f: impl Fn(usize, usize, usize) -> f64,
    [rows, columns]: [usize; 2],
) -> f64 {
    let mut most = 0.0;
    for (b, i, j) in
        (0..batch).flat_map(|b| (0..rows).flat_map(move |i| (0..columns).map(move |j| (b, i, j))))
    {
        let sum = (0..s.columns).map(|k| x.at(b, i, k) * s.at(b, 0, k) * y.at(b, j, k));
        let off = (sum.sum::<f64>() - f(b, i, j)).abs();
        // A not-a-number is no small difference.
        most = if off <= most { most } else { off };
    }
    most
}

fn apart(x: &Host, y: &Host) -> f64 {
    assert_eq!((x.data.len(), x.rows, x.columns), (y.data.len(), y.rows, y.columns));
    let apart = x.data.iter().zip(&y.data).map(|(x, y)| (x - y).abs());
    apart.fold(0.0, |most: f64, off| if off <= most { most } else { off })
}

fn check(device: &Device, host: &Device, dtype: DType, dims: [usize; 3]) -> Result<()> {
    let [batch, m, n] = dims;
    let element = |i: usize| {
        ((i * 7919 + 13) % 1031) as f64 / 515.5 - 1.0 + ((i * i * 31) % 97) as f64 / 97.0
    };
    let data: Vec<f64> = (0..batch * m * n).map(element).collect();
    let on = |d: &Device| Tensor::from_slice(&data, dims, d).map(|x| x.cast(dtype));
    let (x, y) = (on(device)?, on(host)?);
    let rounding = if dtype == DType::F64 { 16.0 * f64::EPSILON } else { f64::from(f32::EPSILON) };
    // Elements are at most 2.
    let bound = 8.0 * rounding * (m.max(n)) as f64;
    let near = |what: &str, off: f64| {
        assert!(off <= bound, "{what} of {dims:?} {dtype}: {off:e} > {bound:e}");
    };
    let found = |x: &Tensor, op: &str| -> Result<Option<Vec<Host>>> {
        if device.caps().has_few_threads() && !["qr", "eigh", "svd"].contains(&op) {
            return Ok(None);
        }
        let found = testing::grouped(x, op)?;
        found.map(|all| all.iter().map(Host::of).collect::<Result<Vec<Host>>>()).transpose()
    };
    let orthonormal = |what: &str, x: &Host| -> Result<()> {
        let t = Host::of(&Tensor::from_slice(&x.data, [batch, x.rows, x.columns], host)?.t())?;
        let ones = Host { data: vec![1.0; batch * x.rows], rows: 1, columns: x.rows };
        let unit = |_, i, j| f64::from(u8::from(i == j));
        near(what, off(batch, [&t, &ones, &t], unit, [x.columns; 2]));
        Ok(())
    };
    let a = Host::of(&y)?;
    if m >= n
        && let Some(all) = found(&x, "qr")?
    {
        let (q, r) = y.qr()?;
        near("q", apart(&all[0], &Host::of(&q)?));
        near("r", apart(&all[1], &Host::of(&r)?));
    }
    if let Some(all) = found(&x, "svd")? {
        near("u s v^T", off(batch, [&all[0], &all[1], &all[2]], |b, i, j| a.at(b, i, j), [m, n]));
        orthonormal("u", &all[0])?;
        orthonormal("v", &all[2])?;
        near("s", apart(&all[1], &Host::of(&y.svdvals()?.unsqueeze(-2)?)?));
    }
    if let Some(all) = found(&x, "svdvals")? {
        near("values", apart(&all[0], &Host::of(&y.svdvals()?.unsqueeze(-2)?)?));
    }
    if m != n {
        return Ok(());
    }
    let symmetric = |x: &Tensor| x.add(x.t());
    if let Some(all) = found(&symmetric(&x)?, "eigh")? {
        let (a, w) =
            (Host::of(&symmetric(&y)?)?, Host::of(&symmetric(&y)?.eigh()?.0.unsqueeze(-2)?)?);
        near("v w v^T", off(batch, [&all[1], &all[0], &all[1]], |b, i, j| a.at(b, i, j), [n, n]));
        orthonormal("v", &all[1])?;
        near("w", apart(&all[0], &w));
    }
    let definite = |x: &Tensor| {
        let eye = Tensor::eye(n, dtype, x.device()).mul(4.0 * n as f64)?;
        symmetric(x)?.add(&eye)
    };
    let (x, y) = (definite(&x)?, definite(&y)?);
    if let Some(all) = found(&x, "cholesky")? {
        near("l", apart(&all[0], &Host::of(&y.cholesky()?)?));
    }
    if let Some(all) = found(&x, "solve")? {
        near("x", apart(&all[0], &Host::of(&y.solve(&y)?)?));
    }
    Ok(())
}

/// Batches of each shape; a device that cannot is left out.
pub fn grouped(device: &Device) {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let host = runtime.device("cpu").expect("always present");
    // Drivers for CPUs compile each kernel for seconds.
    let all = match device.caps().has_few_threads() {
        true => vec![([2, 5, 5], DType::F32)],
        false => vec![([3, 9, 5], DType::F32), ([1, 32, 32], DType::F64)],
    };
    for (dims, dtype) in all {
        check(device, &host, dtype, dims).unwrap_or_else(|e| panic!("{dims:?} {dtype}: {e}"));
    }
}
