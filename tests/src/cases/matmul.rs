//! Matrix products: shapes, broadcasting, vectors, transposed operands, every dtype.

use crate::oracle::reduce::accumulator;
use crate::values::moderate;
use crate::{Array, Check, Rng, Val};
use zyx_core::{BinaryOp, DType, Device, QuantizedMatrix, Result, Tensor};

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

/// Integers of 8 bits of any size, the extremes among them.
fn bytes(dtype: DType, dims: &[usize], rng: &mut Rng) -> Array {
    let (low, high) = if dtype == DType::I8 { (-128, 127) } else { (0, 255) };
    let value = |i| match (i % 7, rng.below(8)) {
        (0, _) | (_, 0) => low,
        (1, _) | (_, 1) => high,
        _ => rng.range(low, high),
    };
    let data = (0..dims.iter().product()).map(value).map(|x| Val::Int(i128::from(x))).collect();
    Array::new(dtype, dims, data)
}

/// Products of integers of 8 bits that are summed in 32: of all signs, in all orders of their elements, alone and
/// with what follows; and those of the dtypes themselves, which wrap.
pub fn integers(device: &Device) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(64);
    for (p, q) in [
        (DType::I8, DType::I8),
        (DType::U8, DType::I8),
        (DType::I8, DType::U8),
        (DType::U8, DType::U8),
    ] {
        if ![p, q].iter().all(|&dtype| device.caps().storage.contains(dtype)) {
            continue;
        }
        let what = |what: &str| format!("{what} of {p} and {q}");
        let (x, y) = (bytes(p, &[37, 70], &mut rng), bytes(q, &[70, 45], &mut rng));
        let (a, b) = (check.input(&x), check.input(&y));
        let wide = |t: &Tensor| t.cast(DType::I32);
        let sums = x.cast(DType::I32).matmul(&y.cast(DType::I32));
        check.equal(what("sums"), wide(&a).matmul(&wide(&b)), &sums);
        let across = wide(&b.t()).matmul(&wide(&a.t()));
        check.equal(what("transposed sums"), across, &sums.permute(&[1, 0]));
        let half = a.slice(1, 3..68).and_then(|a| wide(&a).matmul(&wide(&b.slice(0, 3..68)?)));
        let (left, right) = (x.shrink(&[(0, 37), (3, 68)]), y.shrink(&[(3, 68), (0, 45)]));
        let want = left.cast(DType::I32).matmul(&right.cast(DType::I32));
        check.equal(what("sums of parts"), half, &want);
        check.settle();
        let bias = Array::whole(DType::I32, &[45], &[i64::from(i32::MAX); 45]);
        let c = check.input(&bias);
        let followed = wide(&a).matmul(&wide(&b)).and_then(|t| t.add(&c)?.clamp(-70_000, 9));
        let limit = |n| Array::whole(DType::I32, &[], &[n]);
        let want = sums.binary(BinaryOp::Add, &bias).binary(BinaryOp::Max, &limit(-70_000));
        check.equal(what("what follows"), followed, &want.binary(BinaryOp::Min, &limit(9)));
        let (n, k) = (4, 9_000);
        let (x, y) = (bytes(p, &[n, k], &mut rng), bytes(q, &[k, n], &mut rng));
        let got = wide(&check.input(&x)).matmul(&wide(&check.input(&y)));
        check.equal(what("long sums"), got, &x.cast(DType::I32).matmul(&y.cast(DType::I32)));
        if p == q {
            check.equal(what("products"), a.matmul(&b), &sums.cast(p));
        }
    }
    check.finish();
}

/// Layers of one shape whose weights are of 4 bits, with a bias each, in one plan.
pub fn quantised(device: &Device) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(65);
    for (m, n, k) in [(16, 64, 768), (48, 64, 128)] {
        let x = moderate(DType::F32, &[m, k], &mut rng);
        let a = check.input(&x);
        for layer in 0..3 {
            let weight = moderate(DType::F32, &[n, k], &mut rng);
            let bias = moderate(DType::F32, &[n], &mut rng);
            let (w, b) = (check.input(&weight), check.input(&bias));
            let quantized = QuantizedMatrix::new(&w, 4, 32);
            let numbers = quantized.as_ref().ok().and_then(|q| q.dequantize().ok()?.to_vec().ok());
            let numbers: Vec<f32> = numbers.unwrap_or_default();
            let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
            let want = x.matmul(&Array::reals(DType::F32, &[n, k], &numbers).permute(&[1, 0]));
            let got = quantized.and_then(|q| q.matmul(&a)?.add(&b));
            let want = want.binary(BinaryOp::Add, &bias);
            check.equal(format!("layer {layer} of {m} x {n} x {k}"), got, &want);
        }
        check.settle();
    }
    check.finish();
}
