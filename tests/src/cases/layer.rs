//! Softmax, normalisations, losses and embeddings against their definitions.
//!
//! The definitions are written in the oracle's ops, so the bound of each result follows from the
//! rows of the op table that it is made of. Halves are computed in `f32` and rounded at the end.

use crate::oracle::reduce::accumulator;
use crate::tolerance::formula_error;
use crate::values::moderate;
use crate::{Array, Check, Rng, Val};
use zyx_core::{BinaryOp, CrossEntropy, DType, Device, Reduction, Tensor, UnaryOp};

/// Added to variances; not small beside them, so that it matters.
const EPS: f64 = 0.01;

fn wide(x: &Array) -> Array {
    x.cast(accumulator(x.dtype))
}

fn number(like: &Array, x: f64) -> Array {
    Array::reals(like.dtype, &[], &[x])
}

/// `x / y`, which may be a product with the reciprocal: two roundings instead of one.
fn quotient(x: &Array, y: &Array) -> Array {
    let dtype = x.dtype;
    x.binary(BinaryOp::Div, y).map(dtype, |v| match v {
        Val::Real(low, high) if low.is_finite() && high.is_finite() => {
            let error = formula_error(dtype, 2.0, low.abs().max(high.abs()));
            Val::interval(dtype, low - error, high + error)
        }
        other => other,
    })
}

fn mean(x: &Array, mask: u16) -> Array {
    let sum = x.reduce(BinaryOp::Add, mask, true);
    let n = x.numel() / sum.numel();
    quotient(&sum, &number(x, n as f64))
}

fn square(x: &Array) -> Array {
    x.binary(BinaryOp::Mul, x)
}

/// `1 / sqrt(x + EPS)`.
fn inverse_root(x: &Array) -> Array {
    let root = x.binary(BinaryOp::Add, &number(x, EPS)).unary(UnaryOp::Sqrt);
    quotient(&number(x, 1.0), &root)
}

/// The elements shifted and scaled to mean 0 and variance 1 along the axes of `mask`.
fn standardised(x: &Array, mask: u16) -> Array {
    let centred = x.binary(BinaryOp::Sub, &mean(x, mask));
    let scale = inverse_root(&mean(&square(&centred), mask));
    centred.binary(BinaryOp::Mul, &scale)
}

/// `x w + b`, with one rounding or two.
fn affine(x: &Array, w: &Array, b: &Array) -> Array {
    x.product(&wide(w)).binary(BinaryOp::Add, &wide(b))
}

/// The logarithm of the sum of exponentials along the axes of `mask`.
fn logsumexp(x: &Array, mask: u16) -> Array {
    let top = x.reduce(BinaryOp::Max, mask, true);
    let sum = x.binary(BinaryOp::Sub, &top).unary(UnaryOp::Exp).reduce(BinaryOp::Add, mask, true);
    sum.unary(UnaryOp::Log).binary(BinaryOp::Add, &top)
}

/// Softmax and its logarithm along the last axis, an inner one and two.
pub fn softmax(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(80);
    for (dims, axes, mask) in [
        (&[3usize, 17][..], &[1isize][..], 0b10u16),
        (&[2, 5, 3], &[1], 0b010),
        (&[2, 3, 5], &[1, 2], 0b110),
        (&[1], &[0], 1),
        (&[0, 4], &[1], 0b10),
    ] {
        if !check.thorough(dtype) && dims.len() == 3 && mask == 0b110 {
            continue;
        }
        let mut x = moderate(dtype, dims, &mut rng);
        if let Some(first) = x.data.first_mut() {
            // Too large for the exponential by itself.
            *first = Val::point(200.0);
        }
        let a = check.input(&x);
        let v = wide(&x);
        let shifted = v.binary(BinaryOp::Sub, &v.reduce(BinaryOp::Max, mask, true));
        let e = shifted.unary(UnaryOp::Exp);
        let sum = e.reduce(BinaryOp::Add, mask, true);
        check.equal(format!("softmax {dims:?}"), a.softmax(axes), &quotient(&e, &sum).cast(dtype));
        let want = shifted.binary(BinaryOp::Sub, &sum.unary(UnaryOp::Log));
        check.equal(format!("log_softmax {dims:?}"), a.log_softmax(axes), &want.cast(dtype));
    }
    check.finish();
}

/// Layer, root-mean-square, batch and group normalisation.
pub fn normalise(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(81);
    let x = moderate(dtype, &[3, 4, 5], &mut rng);
    let (w, b) = (moderate(dtype, &[5], &mut rng), moderate(dtype, &[5], &mut rng));
    let (u, c) = (moderate(dtype, &[4], &mut rng), moderate(dtype, &[4], &mut rng));
    let [a, w_, b_, u_, c_] = [&x, &w, &b, &u, &c].map(|x| check.input(x));
    let v = wide(&x);
    let layer = affine(&standardised(&v, 0b100), &w, &b).cast(dtype);
    check.equal("layer_norm", a.layer_norm(2, Some(&w_), Some(&b_), EPS), &layer);
    let plain = standardised(&v, 0b110).cast(dtype);
    check.equal("layer_norm of two axes", a.layer_norm([1, 2], None, None, EPS), &plain);
    let rms = v.binary(BinaryOp::Mul, &inverse_root(&mean(&square(&v), 0b100)));
    let want = rms.binary(BinaryOp::Mul, &wide(&w)).cast(dtype);
    check.equal("rms_norm", a.rms_norm(2, Some(&w_), EPS), &want);

    let channels = [&u, &c].map(|x| x.reshape(&[4, 1]));
    let batch = a.batch_norm(Some(&u_), Some(&c_), EPS).expect("the parameters fit");
    let want = affine(&standardised(&v, 0b101), &channels[0], &channels[1]);
    check.equal("batch_norm", Ok(batch.output), &want.cast(dtype));
    let centre = mean(&v, 0b101);
    check.equal("mean of the batch", Ok(batch.mean), &centre.reshape(&[4]));
    let spread = mean(&square(&v.binary(BinaryOp::Sub, &centre)), 0b101);
    let unbiased = quotient(&spread.binary(BinaryOp::Mul, &number(&v, 15.0)), &number(&v, 14.0));
    check.equal("variance of the batch", Ok(batch.var), &unbiased.reshape(&[4]));
    // Statistics come in the dtype they were computed in.
    let (m, s) = (moderate(v.dtype, &[4], &mut rng), moderate(v.dtype, &[4], &mut rng));
    let s = s.unary(UnaryOp::Abs);
    let got = a.batch_norm_with(&check.input(&m), &check.input(&s), Some(&u_), Some(&c_), EPS);
    let [m, s] = [m, s].map(|x| x.reshape(&[4, 1]));
    let scaled = v.binary(BinaryOp::Sub, &m).binary(BinaryOp::Mul, &inverse_root(&s));
    let want = affine(&scaled, &channels[0], &channels[1]).cast(dtype);
    check.equal("batch_norm_with", got, &want);
    let grouped = standardised(&v.reshape(&[3, 2, 10]), 0b100).reshape(&[3, 4, 5]);
    let want = affine(&grouped, &channels[0], &channels[1]).cast(dtype);
    check.equal("group_norm", a.group_norm(2, Some(&u_), Some(&c_), EPS), &want);
    check.finish();
}

/// Cross entropy: plain, smoothed, with classes left out and out of range.
pub fn cross_entropy(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(82);
    let x = moderate(dtype, &[5, 7], &mut rng);
    let classes = [2i64, 0, 6, 3, 2];
    let target = Array::ints(DType::I64, &[5], &classes);
    let (a, t) = (check.input(&x), check.input(&target));
    let v = wide(&x);
    let normaliser = logsumexp(&v, 0b10);
    let chosen = v.gather(1, &target.reshape(&[5, 1]));
    let terms = normaliser.binary(BinaryOp::Sub, &chosen).reshape(&[5]);
    let whole = |terms: &Array| mean(terms, 1).reshape(&[]).cast(dtype);
    check.equal("cross_entropy", a.cross_entropy(&t), &whole(&terms));
    let with = |reduction, label_smoothing, ignore_index| {
        a.cross_entropy_with(&t, CrossEntropy { ignore_index, label_smoothing, reduction })
    };
    let sum = terms.reduce(BinaryOp::Add, 1, false).cast(dtype);
    check.equal("cross_entropy_with, summed", with(Reduction::Sum, 0.0, None), &sum);
    check.equal(
        "cross_entropy_with, by sample",
        with(Reduction::None, 0.0, None),
        &terms.cast(dtype),
    );
    let spread = normaliser.binary(BinaryOp::Sub, &mean(&v, 0b10)).reshape(&[5]);
    let smoothed = terms.product(&number(&v, 1.0 - 0.1));
    let smoothed = smoothed.binary(BinaryOp::Add, &spread.product(&number(&v, 0.1)));
    check.equal(
        "cross_entropy_with, smoothed",
        with(Reduction::Mean, 0.1, None),
        &whole(&smoothed),
    );
    let kept = Array::new(v.dtype, &[3], vec![terms.data[1], terms.data[2], terms.data[3]]);
    check.equal(
        "cross_entropy_with, without class 2",
        with(Reduction::Mean, 0.0, Some(2)),
        &whole(&kept),
    );
    let outside =
        check.input(&Array::ints(DType::I64, &[5], &[2, 7, -1, 3, 2])).unchecked_indices();
    let mut marked = terms.cast(dtype);
    (marked.data[1], marked.data[2]) = (Val::point(f64::NAN), Val::point(f64::NAN));
    let by_sample = CrossEntropy { reduction: Reduction::None, ..CrossEntropy::default() };
    check.equal(
        "unchecked classes out of range",
        a.cross_entropy_with(&outside, by_sample),
        &marked,
    );
    let nll = chosen.unary(UnaryOp::Neg).reshape(&[5]);
    check.equal("nll_loss", a.nll_loss(&t, CrossEntropy::default()), &whole(&nll));
    check.finish();
}

/// Losses of pairs of elements.
pub fn losses(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(83);
    let (x, y) = (moderate(dtype, &[4, 6], &mut rng), moderate(dtype, &[4, 6], &mut rng));
    let (a, b) = (check.input(&x), check.input(&y));
    let (v, w) = (wide(&x), wide(&y));
    let whole = |terms: &Array| mean(terms, 0b11).reshape(&[]).cast(dtype);
    let gap = v.binary(BinaryOp::Sub, &w);
    check.equal("mse_loss", a.mse_loss(&b, Reduction::Mean), &whole(&square(&gap)));
    let size = gap.unary(UnaryOp::Abs);
    let sum = size.reduce(BinaryOp::Add, 0b11, false).cast(dtype);
    check.equal("l1_loss", a.l1_loss(&b, Reduction::Sum), &sum);
    let capped = size.binary(BinaryOp::Min, &number(&v, 0.75));
    let half = capped.product(&number(&v, 0.5));
    let huber = capped.binary(BinaryOp::Mul, &size.binary(BinaryOp::Sub, &half));
    check.equal("huber_loss", a.huber_loss(&b, 0.75, Reduction::None), &huber.cast(dtype));
    let p = w.unary(UnaryOp::Abs).binary(BinaryOp::Mul, &number(&v, 0.5)).cast(dtype);
    let (b, w) = (check.input(&p), wide(&p));
    let decay = v.unary(UnaryOp::Abs).unary(UnaryOp::Neg).unary(UnaryOp::Exp);
    let softplus = v.binary(BinaryOp::Max, &number(&v, 0.0));
    let softplus = softplus.binary(BinaryOp::Add, &decay.unary(UnaryOp::Log1p));
    let terms = softplus.binary(BinaryOp::Sub, &v.product(&w));
    check.equal(
        "bce_with_logits_loss",
        a.bce_with_logits_loss(&b, Reduction::Mean),
        &whole(&terms),
    );
    let terms = w.binary(BinaryOp::Mul, &w.unary(UnaryOp::Log).binary(BinaryOp::Sub, &v));
    check.equal("kl_div_loss", a.kl_div_loss(&b, Reduction::None), &terms.cast(dtype));
    check.finish();
}

/// Gradients of picking and placing, whose sums of small integers are exact in every dtype.
pub fn picking(device: &Device, dtype: DType) {
    let mut check = Check::new(device).untied();
    let mut rng = Rng::new(84);
    let whole = |dims: &[usize], rng: &mut Rng| {
        let n = dims.iter().product();
        Array::whole(dtype, dims, &(0..n).map(|_| rng.range(-3, 3)).collect::<Vec<_>>())
    };
    let index = Array::ints(DType::I64, &[6], &[3, 0, 3, 1, 3, 0]);
    let i = check.input(&index);
    let table = check.input(&whole(&[4, 3], &mut rng)).tracked();
    let dy = whole(&[6, 3], &mut rng);
    let gradient = |y: zyx_core::Result<Tensor>, dy: &Array, x: &Tensor| {
        let dy = dy.tensor(device)?;
        Ok(y?.grad_with(&dy, &[x])?.remove(0).expect("the result depends on it"))
    };
    let rows = Array::new(DType::I64, &[6, 3], index.data.iter().flat_map(|&i| [i; 3]).collect());
    let zeros = Array::whole(dtype, &[4, 3], &[0; 12]);
    let want = zeros.scatter(0, true, &rows, &dy);
    check.equal("gradient of embedding", gradient(table.embedding(&i), &dy, &table), &want);
    let selected = table.index_select(0, &i);
    check.equal("gradient of index_select", gradient(selected, &dy, &table), &want);
    let places = check.input(&rows);
    let gathered = table.gather(0, &places);
    check.equal("gradient of gather", gradient(gathered, &dy, &table), &want);
    let (base, src) = (whole(&[4, 3], &mut rng), whole(&[6, 3], &mut rng));
    let src = check.input(&src).tracked();
    let added = check.input(&base).scatter_add(0, &places, &src);
    let dz = whole(&[4, 3], &mut rng);
    check.equal("gradient of scatter_add", gradient(added, &dz, &src), &dz.gather(0, &rows));
    check.finish();
}
