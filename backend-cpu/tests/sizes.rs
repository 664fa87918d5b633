//! No size is special: reductions, scans, maps and copies of matrices whose extents are whole blocks, rows and lanes,
//! one more, one less, and primes, with each instruction set, against the evaluator of graphs.
//!
//! Each size runs on a new device, which has compiled no other size, and on a device that runs all sizes one after
//! the other and may reuse their programs.

use zyx_backend_cpu::{Config, Cpu, Level};
use zyx_core::testing::evaluate;
use zyx_core::{DType, Device, Result, Runtime, Tensor};

const LEVELS: [Level; 3] = [Level::Avx512, Level::Avx2, Level::Portable];

fn cpu(level: Level) -> Device {
    let runtime = Runtime::default();
    let config = Config { level: Some(level), threads: Some(2), ..Config::default() };
    runtime.register(Cpu { config });
    runtime.device("cpu").expect("always there")
}

/// A matrix of small multiples of 1/32, or of small integers: sums are exact in each order.
fn matrix([rows, columns]: [usize; 2], dtype: DType, device: &Device) -> Result<Tensor> {
    let mixed = Tensor::iota(rows * columns, DType::I64, device).mul(7919i64)?.remainder(97i64)?;
    let numbers = match dtype.is_float() {
        true => mixed.cast(DType::F32).sub(48.0)?.div(32.0)?.cast(dtype),
        false => mixed.remainder(5i64)?.cast(dtype),
    };
    let x = numbers.reshape([rows, columns])?.contiguous();
    x.realize()?;
    Ok(x)
}

/// Results that are the same in each order of operations, and results that are not.
fn results(x: &Tensor) -> Result<[Vec<Tensor>; 2]> {
    let first = x.narrow(0, 0, 1)?;
    let exact = vec![
        x.sum(0)?,
        x.sum(1)?,
        x.sum(..)?,
        x.max(0)?,
        x.min(1)?,
        x.add(&first)?.sum(1)?,
        x.gt(0)?.count_nonzero(0)?,
        x.argmax(1)?,
        x.cumsum(0)?,
        x.cumsum(1)?,
        x.cummax(1)?.0,
        x.mul(2)?.add(&first)?,
        x.flip(1)?.contiguous(),
        x.flip(1)?.sum(1)?,
        x.roll([3], [1])?.contiguous(),
        x.roll([3], [0])?.cumsum(1)?,
        x.pad([(1, 0), (0, 2)])?.contiguous(),
        x.stride(1, 0, 2)?.sum(1)?,
        x.t().contiguous(),
        x.t().sum(1)?,
        x.t().cumsum(1)?,
        Tensor::cat(&[x, x], 1)?.contiguous(),
    ];
    let rounded = match x.dtype().is_float() {
        true => vec![x.softmax(1)?, x.softmax(0)?, x.t().softmax(1)?, x.exp(), x.var(1, 1)?],
        false => Vec::new(),
    };
    Ok([exact, rounded])
}

fn values(tensors: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    Tensor::realize_all(tensors)?;
    tensors.iter().map(|tensor| tensor.cast(DType::F64).to_vec::<f64>()).collect()
}

fn expected(tensors: &[Tensor]) -> Result<Vec<Vec<f64>>> {
    let all = evaluate(&tensors.iter().collect::<Vec<_>>())?;
    Ok(all.iter().map(|one| one.iter().map(|x| x.to_f64()).collect()).collect())
}

fn check(dtype: DType, dims: [usize; 2], devices: &[(String, Device)]) -> Result<()> {
    let mut known: Option<[Vec<Vec<f64>>; 2]> = None;
    for (name, device) in devices {
        let both = results(&matrix(dims, dtype, device)?)?;
        if known.is_none() {
            known = Some([expected(&both[0])?, expected(&both[1])?]);
        }
        let Some(known) = &known else { continue };
        for (part, tensors) in both.iter().enumerate() {
            let tolerance = match dtype {
                _ if part == 0 => 0.0,
                DType::F16 => 2e-3,
                _ => 1e-5,
            };
            for (number, (found, right)) in values(tensors)?.iter().zip(&known[part]).enumerate() {
                let at = found.iter().zip(right).position(|(a, b)| {
                    (a - b).is_nan() || (a - b).abs() > tolerance * b.abs().max(1e-3)
                });
                assert_eq!(found.len(), right.len(), "{number} of {dtype} {dims:?} on {name}");
                if let Some(at) = at {
                    let (a, b) = (found[at], right[at]);
                    panic!("{part}.{number} of {dtype} {dims:?} on {name}, [{at}]: {a}, not {b}");
                }
            }
        }
    }
    Ok(())
}

/// `[rows, columns]`: primes and numbers near those by which kernels cut loops, such as rows that one pass scans or
/// reduces, strips, vector lanes, blocks of columns and of flat loops.
const SIZES: [[usize; 2]; 14] = [
    [1, 997],
    [2, 1025],
    [3, 257],
    [5, 8],
    [7, 64],
    [8, 63],
    [9, 65],
    [31, 127],
    [33, 257],
    [37, 131],
    [64, 64],
    [129, 15],
    [257, 33],
    [1031, 3],
];

fn check_all(dtype: DType) {
    let shared = LEVELS.map(|level| (format!("{level:?}, shared"), cpu(level)));
    for dims in SIZES {
        let mut devices = LEVELS.map(|level| (format!("{level:?}"), cpu(level))).to_vec();
        devices.extend(shared.clone());
        if let Err(error) = check(dtype, dims, &devices) {
            panic!("{dtype} {dims:?}: {error}");
        }
    }
}

#[test]
fn sizes_of_f32() {
    check_all(DType::F32);
}

#[test]
fn sizes_of_f64() {
    check_all(DType::F64);
}

#[test]
fn sizes_of_f16() {
    check_all(DType::F16);
}

#[test]
fn sizes_of_i8() {
    check_all(DType::I8);
}

#[test]
fn sizes_of_i64() {
    check_all(DType::I64);
}
