//! Reductions, scans, sorts and products of sizes around those at which work is split, and of primes beside them: the
//! same on the CPU, where a CPU's plans are interpreted, and where those of a large GPU are, as the evaluator of graphs
//! says. Integers, and floats that hold small integers, so that sums are exact in any order.
//!
//! That such sizes take no longer than others is told by plans (`floor.rs`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use zyx_tests::zyx_core::reference::Reference;
use zyx_tests::zyx_core::{DType, DTypeSet, Device, Result, Runtime, Tensor, testing};

/// Extents of one axis: around 2^13 (scans), 2^16 (reductions to few results), 2^17 (to fewer than groups), whole pieces
/// and lines; primes, twice a prime and a square.
const LENGTHS: [usize; 8] = [8_191, 8_193, 65_535, 65_537, 66_049, 131_071, 131_074, 132_097];

/// Matrices: few rows, few columns, groups of columns that are not full.
const MATRICES: [[usize; 2]; 7] =
    [[2, 32_771], [3, 43_691], [9_363, 7], [257, 263], [67, 1_031], [1_031, 67], [521, 131]];

/// A device of few threads or of many, whose kernels are interpreted.
fn interpreted(threads: usize) -> Device {
    let mut caps = Reference::default().caps;
    (caps.masked, caps.vector_bytes, caps.threads) = (true, 16, threads);
    if threads > 2 {
        (caps.simt, caps.max_local, caps.shared_bytes) = (true, 1024, 48 << 10);
        caps.subgroup = (32, 32);
        let integers = DTypeSet::of(&[DType::I32, DType::U32, DType::I64, DType::U64]);
        (caps.atomics, caps.atomic_add) = (integers, integers);
    }
    let runtime = Runtime::default();
    runtime.register(Reference { caps, ..Reference::default() });
    runtime.device("reference").unwrap()
}

/// Small numbers without a pattern.
fn numbers(dims: &[usize], dtype: DType, device: &Device) -> Result<Tensor> {
    let n = dims.iter().product();
    let data: Vec<i32> = (0..n).map(|i: usize| (i * 7919 % 1013 % 7) as i32 - 3).collect();
    let x = Tensor::from_slice(&data, dims, device)?.cast(dtype);
    x.realize()?;
    Ok(x)
}

/// Whether all elements are those of the evaluator.
fn compare(what: &str, dims: &[usize], tensors: &[Tensor]) -> Result<()> {
    let all: Vec<&Tensor> = tensors.iter().collect();
    let want = testing::evaluate(&all)?;
    Tensor::realize_all(tensors)?;
    for (number, (got, want)) in tensors.iter().zip(&want).enumerate() {
        let got = got.cast(DType::F64).to_vec::<f64>()?;
        let differs = got.iter().zip(want).position(|(got, want)| *got != want.to_f64());
        if let Some(at) = differs {
            let (got, want) = (got[at], want[at].to_f64());
            panic!("{what} {dims:?}, {number} of {}: {got}, not {want} at {at}", all.len());
        }
    }
    Ok(())
}

/// Everything along an axis.
fn along(x: &Tensor, axis: isize) -> Result<Vec<Tensor>> {
    let positive = x.gt(0)?;
    Ok(vec![
        x.sum(axis)?,
        x.max(axis)?,
        x.min(axis)?,
        positive.any(axis)?,
        positive.all(axis)?,
        x.count_nonzero(axis)?,
        x.argmax(axis)?,
        x.cumsum(axis)?,
        x.flip(axis)?.cumsum(axis)?.flip(axis)?,
        x.cummax(axis)?.0,
        x.add(x.sum_keepdim(axis)?)?,
    ])
}

fn check(device: &Device) -> Result<()> {
    for dtype in [DType::I32, DType::F32] {
        for n in LENGTHS {
            let x = numbers(&[n], dtype, device)?;
            compare("along", &[n], &along(&x, 0)?)?;
            compare("fused", &[n], &[x.mul(&x)?.add(1)?.sum(..)?, x.max(..)?])?;
        }
        for dims in MATRICES {
            let x = numbers(&dims, dtype, device)?;
            for axis in [0, 1] {
                compare("along", &dims, &along(&x, axis)?)?;
            }
            compare("all", &dims, &[x.sum(..)?, x.max(..)?, x.t().contiguous(), x.t().sum(..)?])?;
        }
    }
    // Maps in which rows and columns are used again, and rows that a group sorts or several do.
    let x = numbers(&[1_031, 67], DType::F32, device)?;
    let (row, column) = (x.slice(0, ..1)?, x.slice(1, ..1)?);
    let rolled = [x.roll([7], [1])?, x.roll([5], [0])?, x.flip(1)?].map(|x| x.contiguous());
    compare("maps", &[1_031, 67], &[x.add(&row)?, x.add(&column)?, column.mul(&row)?])?;
    compare("moves", &[1_031, 67], &rolled)?;
    for dims in [[3, 1_031], [2, 4_099]] {
        let x = numbers(&dims, DType::F32, device)?;
        let (values, order) = x.sort(1, false)?;
        compare("sort", &dims, &[values, order, x.cumsum(1)?])?;
    }
    // Products whose sums are long and results few, and gradients that are such.
    for steps in [4_099, 8_191, 16_411] {
        let a = numbers(&[steps, 33], DType::F32, device)?;
        let b = numbers(&[steps, 17], DType::F32, device)?;
        compare("product", &[steps], &[a.t().matmul(&b)?, a.t().matmul(&b)?.add(1)?])?;
    }
    Ok(())
}

#[test]
fn on_the_cpu() -> Result<()> {
    check(&common::device())
}

#[test]
fn as_planned_for_a_cpu() -> Result<()> {
    check(&interpreted(2))
}

#[test]
fn as_planned_for_a_small_gpu() -> Result<()> {
    check(&interpreted(4 * 2048))
}

#[test]
fn as_planned_for_many_threads() -> Result<()> {
    check(&interpreted(132 * 2048))
}
