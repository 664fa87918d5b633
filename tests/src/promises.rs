//! What is promised of size and of launches, on any backend: scans, counts and sorts of many elements that are exact
//! and stable, and contractions that copy no operand.
//!
//! Results of so many elements are checked on the device, each by a property that determines it and that other
//! kernels compute: the differences of running sums are the elements, equal neighbours of what is sorted keep their
//! order. Sizes are those that hold more than a window of tiles, a pass of blocks or a 24-bit significand;
//! `ZYX_FULL=1` takes the largest that is promised.

use crate::check::full;
use zyx_core::{BinaryOp, DType, Device, Result, Tensor};

/// Tests of a backend that runs kernels: the interpreter would take hours.
///
/// ```ignore
/// zyx_tests::promises!("cpu", Cpu::default());
/// ```
#[macro_export]
macro_rules! promises {
    ($spec:expr, $backend:expr) => {
        $crate::promises!(@each $spec, $backend,
            running_sums_are_exact, running_maxima_are_exact, a_bin_counts_all, sorts_are_stable,
            einsum_copies_no_operand,
        );
    };
    (@each $spec:expr, $backend:expr, $($case:ident,)*) => {
        /// What is promised of size and of launches.
        mod promises {
            #[allow(unused_imports, reason = "the backend's expression names items around it")]
            use super::*;
            $(
                #[test]
                fn $case() {
                    let device = $crate::harness::device($spec, stringify!($case), |runtime| {
                        runtime.register($backend)
                    });
                    if let Some(device) = device {
                        $crate::promises::$case(&device).expect("the device computes");
                    }
                }
            )*
        }
    };
}

/// Elements of a scan.
fn scanned() -> usize {
    if full() { 1 << 27 } else { (1 << 22) + 3 }
}

/// Residues in no order, which repeat.
const PERIOD: usize = 1031;

/// Element `i`, before a constant is subtracted.
fn residue(i: usize) -> i64 {
    (i % PERIOD * 7919 % PERIOD) as i64
}

/// The first `n` of those, less `mean`.
fn residues(n: usize, mean: i64, dtype: DType, device: &Device) -> Result<Tensor> {
    let at = Tensor::iota(n, DType::I32, device);
    let x = at.fmod(PERIOD as i32)?.mul(7919)?.fmod(PERIOD as i32)?;
    let x = x.sub(mean as i32)?.cast(dtype);
    x.realize()?;
    Ok(x)
}

/// Whether all of some bools are set.
fn all(x: &Tensor) -> Result<bool> {
    x.all(..)?.item::<bool>()
}

/// Whether all neighbours of a row are so.
fn neighbours(x: &Tensor, test: impl Fn(&Tensor, &Tensor) -> Result<Tensor>) -> Result<bool> {
    let n = x.numel();
    all(&test(&x.slice(0, ..n - 1)?, &x.slice(0, 1..)?)?)
}

/// Running sums whose every partial sum is representable: in floats those of a mean of zero, in
/// 64-bit integers beyond 32 bits.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When a sum is wrong.
pub fn running_sums_are_exact(device: &Device) -> Result<()> {
    let n = scanned();
    for dtype in [DType::F32, DType::I64, DType::F64] {
        if !device.caps().storage.contains(dtype) {
            continue;
        }
        let mean = if dtype.is_float() { PERIOD as i64 / 2 } else { -1 << 10 };
        let x = residues(n, mean, dtype, device)?;
        let y = x.scan_with(BinaryOp::Add, 0, false, false)?;
        y.realize()?;
        let total: i64 = (0..n).map(|i| residue(i) - mean).sum();
        assert!(dtype.is_float() || total > 1 << 32, "{total} needs no 64 bits");
        let last = y.slice(0, n - 1..)?.cast(DType::I64).item::<i64>()?;
        assert_eq!(last, total, "the sum of {n} {dtype}");
        let first = y.slice(0, ..1)?.cast(DType::I64).item::<i64>()?;
        assert_eq!(first, residue(0) - mean);
        let steps = y.slice(0, 1..)?.sub(y.slice(0, ..n - 1)?)?;
        assert!(all(&steps.eq(x.slice(0, 1..)?)?)?, "running sums of {n} {dtype}");
    }
    Ok(())
}

/// Running maxima with their positions: pairs go through a scan as single numbers do.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When a value or a position is wrong.
pub fn running_maxima_are_exact(device: &Device) -> Result<()> {
    let n = scanned();
    // They rise slowly, so that most elements are no new maximum.
    let rise = Tensor::iota(n, DType::I32, device).shr(5)?;
    let x = residues(n, 0, DType::I32, device)?.add(&rise)?.cast(DType::F32);
    x.realize()?;
    let (y, at) = x.cummax(0)?;
    Tensor::realize_all([&y, &at])?;
    let (before, now) = (y.slice(0, ..n - 1)?, x.slice(0, 1..)?);
    assert!(all(&y.slice(0, 1..)?.eq(before.maximum(&now)?)?)?, "running maxima of {n}");
    assert_eq!(y.slice(0, ..1)?.item::<f32>()?, residue(0) as f32);
    let here = Tensor::iota(n, DType::I64, device);
    let new = x.eq(&y)?;
    assert!(all(&at.eq(&here)?.eq(&new)?)?, "positions are those of the latest maximum");
    assert!(all(&x.gather(0, &at)?.eq(&y)?)?, "positions are those of maxima");
    Ok(())
}

/// As many additions to one place as the significand of an `f32` counts, by a histogram and by
/// scattered sums.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When an addition is lost.
pub fn a_bin_counts_all(device: &Device) -> Result<()> {
    let n = 1usize << 24;
    let values = Tensor::zeros([n], DType::U8, device);
    values.realize()?;
    assert_eq!(values.bincount_to(1)?.item::<i64>()?, n as i64);
    let n = if full() { n } else { 1 << 20 };
    let (places, base) = (Tensor::zeros([n], DType::I64, device), [1usize]);
    for dtype in [DType::F32, DType::U32] {
        let ones = Tensor::ones([n], dtype, device);
        Tensor::realize_all([&places, &ones])?;
        let sum = Tensor::zeros(base, dtype, device).scatter_add(0, &places, &ones)?;
        assert_eq!(sum.cast(DType::I64).item::<i64>()?, n as i64, "additions in {dtype}");
    }
    Ok(())
}

/// Values with many ties, and their positions: equal ones keep their order.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When an element is lost, misplaced or not in its order.
pub fn sorts_are_stable(device: &Device) -> Result<()> {
    let n = if full() { 1 << 22 } else { (1 << 18) + 7 };
    for (dtype, descending) in [(DType::F32, false), (DType::U8, false), (DType::I32, true)] {
        let x = residues(n, 0, DType::I32, device)?.fmod(251)?.cast(dtype);
        x.realize()?;
        let (y, at) = x.sort(0, descending)?;
        Tensor::realize_all([&y, &at])?;
        let what = format!("{n} of {dtype}");
        assert!(all(&x.gather(0, &at)?.eq(&y)?)?, "{what}: values are those of the positions");
        let ordered = |a: &Tensor, b: &Tensor| if descending { a.ge(b) } else { a.le(b) };
        assert!(neighbours(&y, ordered)?, "{what}: in order");
        // Equal ones ascend, so no position is there twice, and all are.
        let tied = y.slice(0, 1..)?.eq(y.slice(0, ..n - 1)?)?;
        let ascends = at.slice(0, 1..)?.gt(at.slice(0, ..n - 1)?)?;
        assert!(all(&ascends.logical_or(tied.logical_not())?)?, "{what}: stable");
    }
    Ok(())
}

/// All layouts of a matrix product, and a permuted result, are one launch: nothing is copied.
///
/// # Errors
/// When the device fails.
///
/// # Panics
/// When there are more launches, or another result.
pub fn einsum_copies_no_operand(device: &Device) -> Result<()> {
    let of = |n: usize| Tensor::iota(n * n, DType::F32, device).mul(0.01)?.reshape([n, n]);
    let (a, b) = (of(64)?, of(64)?);
    let want = a.matmul(&b)?;
    Tensor::realize_all([&a, &b, &want])?;
    let (left, right) = (a.t().contiguous(), b.t().contiguous());
    Tensor::realize_all([&left, &right])?;
    for (spec, x, y) in [
        ("ij,jk->ik", &a, &b),
        ("ji,jk->ik", &left, &b),
        ("ij,kj->ik", &a, &right),
        ("ji,kj->ik", &left, &right),
    ] {
        for (spec, permuted) in [(spec.to_owned(), false), (spec.replace("ik", "ki"), true)] {
            let product = Tensor::einsum(&spec, &[x, y])?;
            // Asked of the plan: tests that share the device launch meanwhile.
            let plan = product.explain()?;
            assert_eq!(plan.launches.len(), 1, "{spec}: {plan}");
            let product = if permuted { product.t() } else { product };
            let gap = product.sub(&want)?.abs().max(..)?.div(want.max(..)?)?.item::<f32>()?;
            assert!(gap < 1e-6, "{spec}: {gap}");
        }
    }
    Ok(())
}
