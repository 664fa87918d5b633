//! Matrix products: shapes, broadcasting, vectors, transposed operands, every dtype.

use crate::oracle::reduce::accumulator;
use crate::values::moderate;
use crate::{Array, Check, Rng};
use zyx_core::{BinaryOp, DType, Device, Result, Tensor};

/// Elements and the tensor that holds them.
type Operand<'a> = (&'a Array, &'a Tensor);

/// Products of all shapes, checked in every element.
pub fn shapes(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(60);
    for (p, q) in [
        (&[1usize, 1][..], &[1usize, 1][..]),
        (&[2, 3], &[3, 4]),
        (&[17, 31], &[31, 13]),
        (&[1, 100], &[100, 1]),
        (&[33, 1], &[1, 29]),
        (&[5], &[5]),
        (&[5], &[5, 3]),
        (&[3, 5], &[5]),
        (&[2, 3, 4], &[2, 4, 5]),
        (&[2, 1, 3, 4], &[5, 4, 2]),
        (&[4], &[3, 4, 2]),
        (&[2, 3, 4], &[4]),
        (&[0, 3], &[3, 2]),
        (&[2, 0], &[0, 3]),
        (&[64, 64], &[64, 64]),
        (&[65, 40], &[40, 70]),
    ] {
        let essential = matches!(p, [1, 1] | [17, 31] | [5] | [2, 1, 3, 4] | [0, 3] | [2, 0]);
        if !check.thorough(dtype) && !essential {
            continue;
        }
        let (x, y) = (moderate(dtype, p, &mut rng), moderate(dtype, q, &mut rng));
        let (a, b) = (check.input(&x), check.input(&y));
        check.equal(format!("matmul {p:?} by {q:?} in {dtype}"), a.matmul(&b), &x.matmul(&y));
    }
    let a = check.input(&moderate(dtype, &[2, 3], &mut rng));
    check.refused("inner extents", a.matmul(&a), &["matmul", "[2, 3]"]);
    let scalar = check.input(&moderate(dtype, &[], &mut rng));
    check.refused("a scalar", a.matmul(&scalar), &["matmul"]);
    check.finish();
}

/// Operands that are views, and elementwise work before and after.
pub fn fused(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(61);
    let (x, y) = (moderate(dtype, &[19, 23], &mut rng), moderate(dtype, &[19, 21], &mut rng));
    let bias = moderate(dtype, &[21], &mut rng);
    let (a, b, c) = (check.input(&x), check.input(&y), check.input(&bias));
    check.equal("matmul x' y", a.t().matmul(&b), &x.permute(&[1, 0]).matmul(&y));
    if check.thorough(dtype) {
        products_of_views(&mut check, (&x, &a), (&y, &b));
    }
    let layer = a.t().matmul(&b).and_then(|t| t.add(&c)).and_then(|t| t.maximum(0));
    let sums = biased(&x.permute(&[1, 0]), &y, &bias);
    let zero = Array::whole(sums.dtype, &[], &[0]);
    check.equal("bias and relu", layer, &sums.binary(BinaryOp::Max, &zero));
    let doubled = a.add(&a).and_then(|t| t.t().matmul(&b)).and_then(|t| t.sum(..));
    let want = x.binary(BinaryOp::Add, &x).permute(&[1, 0]).matmul(&y).sum(0b11, false);
    check.equal("sum of a product of a sum", doubled, &want);
    check.finish();
}

/// A product and a bias for each column. A library may add before it rounds to a half.
fn biased(x: &Array, y: &Array, bias: &Array) -> Array {
    let product = x.matmul(y);
    if !product.dtype.is_float() {
        return product.binary(BinaryOp::Add, bias);
    }
    let wide = [x, y, bias].map(|array| array.cast(accumulator(product.dtype)));
    let once = wide[0].matmul(&wide[1]).binary(BinaryOp::Add, &wide[2]).cast(product.dtype);
    product.binary(BinaryOp::Add, bias).or(&once)
}

/// Layers, each in a plan of its own: a bias by itself, behind several axes, first, in the middle of a row,
/// reversed, beside its sums, and one of rows, which no library adds.
pub fn biases(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(63);
    let (x, w) = (moderate(dtype, &[2, 33, 24], &mut rng), moderate(dtype, &[24, 40], &mut rng));
    let (bias, rows) = (moderate(dtype, &[40], &mut rng), moderate(dtype, &[33, 1], &mut rng));
    let [a, b, c] = [&x, &w, &bias].map(|array| check.input(array));
    let (want, product) = (biased(&x, &w, &bias), x.matmul(&w));
    let sums = || a.matmul(&b);
    let mut equal = |what: &str, got: Result<Tensor>, want: &Array| {
        check.equal(what, got, want);
        check.settle();
    };
    equal("bias", sums().and_then(|t| t.add(&c)), &want);
    let split = sums().and_then(|t| t.add(&c)?.reshape([66, 5, 8])?.permute([1, 0, 2]));
    equal("split", split, &want.reshape(&[66, 5, 8]).permute(&[1, 0, 2]));
    equal("first", sums().and_then(|t| c.reshape([1, 1, 40])?.add(t)), &want);
    let twice = Tensor::cat(&[&c, &c], 0).and_then(|twice| {
        twice.realize()?;
        twice.slice(0, 40..80)
    });
    equal("part of a row", twice.and_then(|part| sums()?.add(part)), &want);
    let reversed = c.flip(0).and_then(|c| sums()?.add(c));
    equal("reversed", reversed, &biased(&x, &w, &bias.flip(1)));
    let beside = sums().and_then(|t| Tensor::stack(&[&t.add(&c)?, &t], 0));
    let both = Array::cat(&[want.reshape(&[1, 2, 33, 40]), product.reshape(&[1, 2, 33, 40])], 0);
    equal("beside its sums", beside, &both);
    let (flat, across) =
        (product.reshape(&[66, 40]), a.reshape([66, 24]).and_then(|t| Ok(t.matmul(&b)?.t())));
    equal("transposed", across, &flat.permute(&[1, 0]));
    let down = check.input(&rows);
    let down = sums().and_then(|t| t.add(&down));
    check.equal("a bias of rows", down, &product.binary(BinaryOp::Add, &rows));
    check.finish();
}

/// Products of a matrix of 19 rows and 23 columns and one of 19 and 21, read in several orders.
fn products_of_views(check: &mut Check<'_>, (x, a): Operand<'_>, (y, b): Operand<'_>) {
    check.equal("y' x", b.t().matmul(a), &y.permute(&[1, 0]).matmul(x));
    check.equal("x x'", a.matmul(&a.t()), &x.matmul(&x.permute(&[1, 0])));
    let flipped = a.t().flip(0).and_then(|t| t.matmul(b));
    check.equal("flipped", flipped, &x.permute(&[1, 0]).flip(1).matmul(y));
    let sliced = a.slice(1, 3..20).and_then(|t| t.t().matmul(b));
    let want = x.shrink(&[(0, 19), (3, 20)]).permute(&[1, 0]).matmul(y);
    check.equal("sliced", sliced, &want);
}

/// Operands of two dtypes meet in the promoted one.
pub fn mixed(device: &Device) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(62);
    for (p, q) in [
        (DType::F16, DType::F32),
        (DType::BF16, DType::F16),
        (DType::I32, DType::F32),
        (DType::U8, DType::I8),
        (DType::Bool, DType::F64),
    ] {
        if ![p, q].iter().all(|&dtype| device.caps().storage.contains(dtype)) {
            continue;
        }
        let (x, y) = (moderate(p, &[4, 9], &mut rng), moderate(q, &[9, 3], &mut rng));
        let got = check.input(&x).matmul(&check.input(&y));
        check.equal(format!("{p} @ {q}"), got, &x.matmul(&y));
    }
    check.finish();
}
