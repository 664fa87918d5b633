//! Support vector machines: sums of kernel functions of an example and of support vectors.

use super::classical::{Labels, rows, transformed};
use super::one;
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

fn list(call: &Call<'_>, name: &str) -> Result<Vec<f32>> {
    Ok(call.floats_attribute(name)?.unwrap_or_default())
}

/// The kernel function of each example and each of `n` vectors, which an attribute lists: `[examples, n]`.
fn kernel(call: &Call<'_>, x: &Tensor, name: &str, n: usize) -> Result<Tensor> {
    let all = list(call, name)?;
    let vectors = Tensor::from_slice(&all, [all.len()], call.device())?;
    let vectors = vectors.reshape([n, x.shape()[1]])?;
    let parameters = list(call, "kernel_params")?;
    let [gamma, offset, degree] =
        [0, 1, 2].map(|i| parameters.get(i).map_or(0.0, |&x| f64::from(x)));
    let affine = || x.matmul(&vectors.t())?.mul(gamma)?.add(offset);
    match call.string_or("kernel_type", "LINEAR")? {
        "LINEAR" => x.matmul(&vectors.t()),
        "POLY" => affine()?.pow(degree),
        "SIGMOID" => Ok(affine()?.tanh()),
        "RBF" => {
            let apart = x.unsqueeze(1)?.sub(vectors.unsqueeze(0)?)?.square().sum(2)?;
            Ok(apart.mul(-gamma)?.exp())
        }
        other => Err(call.error(format!("`kernel_type` is `{other}`"))),
    }
}

pub(super) fn regressor(call: &Call<'_>) -> Values {
    let x = rows(call)?.cast(DType::F32);
    let n = call.sizes(&[call.int_or("n_supports", 0)?])?[0];
    let shift = list(call, "rho")?.first().map_or(0.0, |&x| f64::from(x));
    let y = match n {
        0 => kernel(call, &x, "coefficients", 1)?,
        n => {
            let weights = list(call, "coefficients")?;
            let weights = Tensor::from_slice(&weights, [weights.len()], call.device())?;
            kernel(call, &x, "support_vectors", n)?.matmul(&weights.reshape([n, 1])?)?
        }
    };
    let y = y.add(shift)?;
    if call.flag("one_class")? {
        return one(y.gt(0.0)?.cast(DType::F32).mul(2.0)?.sub(1.0)?);
    }
    one(transformed(call, &y, call.string_or("post_transform", "NONE")?)?)
}

/// One machine for each pair of classes; the class is that of most wins.
pub(super) fn classifier(call: &Call<'_>) -> Values {
    let x = rows(call)?.cast(DType::F32);
    let labels = Labels::of(call, "classlabels_ints")?;
    let counts = call.ints_attribute("vectors_per_class")?.unwrap_or_default();
    let counts = call.sizes(&counts)?;
    let (classes, weights, shifts) =
        (counts.len(), list(call, "coefficients")?, list(call, "rho")?);
    let n = counts.iter().fold(0, |sum: usize, &count| sum.saturating_add(count));
    let pairs = classes.saturating_mul(classes.saturating_sub(1)) / 2;
    if classes < 2 || labels.len() != classes || weights.len() != n.saturating_mul(classes - 1) {
        let (labels, weights) = (labels.len(), weights.len());
        let reason = format!("{weights} coefficients of {n} vectors of {classes} classes");
        return Err(call.error(format!("{reason}, for {labels} labels, are not supported")));
    }
    let shifts = shifts.get(..pairs).ok_or_else(|| call.error("`rho` is too short"))?;
    let first = |class: usize| counts[..class].iter().sum::<usize>();
    // `table`: the weight of each vector in each pair's score. `wins`: the class that wins a pair by a positive score,
    // and by a negative one.
    let size = n.saturating_mul(pairs);
    let mut table = call.budget().room(size)?;
    table.resize(size, 0f32);
    let wins_size = classes.saturating_mul(pairs);
    let mut wins = [call.budget().room(wins_size)?, call.budget().room(wins_size)?];
    wins.iter_mut().for_each(|wins| wins.resize(wins_size, 0f32));
    let all = (0..classes).flat_map(|i| (i + 1..classes).map(move |j| (i, j)));
    for (pair, (i, j)) in all.clone().enumerate() {
        Budget::check_interrupt()?;
        for (class, row) in [(i, j - 1), (j, i)] {
            for vector in first(class)..first(class) + counts[class] {
                table[vector * pairs + pair] = weights[row * n + vector];
            }
        }
        wins[0][pair * classes + i] = 1.0;
        wins[1][pair * classes + j] = 1.0;
    }
    let matrix = |numbers: &[f32], rows: usize| {
        Tensor::from_slice(numbers, [rows, numbers.len() / rows.max(1)], call.device())
    };
    let scores = kernel(call, &x, "support_vectors", n)?.matmul(&matrix(&table, n)?)?;
    let scores = scores.add(matrix(shifts, 1)?)?;
    let is_first = scores.gt(0.0)?.cast(DType::F32);
    let wins = is_first
        .matmul(&matrix(&wins[0], pairs)?)?
        .add(is_first.neg().add(1.0)?.matmul(&matrix(&wins[1], pairs)?)?)?;
    let class = labels.pick(call, &wins.argmax(1)?)?;
    let (a, b) = (list(call, "prob_a")?, list(call, "prob_b")?);
    let transform = call.string_or("post_transform", "NONE")?;
    let y = if a.is_empty() {
        match (pairs, transform) {
            (1, "NONE") => Tensor::cat(&[&scores.neg(), &scores], 1)?,
            (1, how) => super::classical::both(call, &scores, how)?,
            (_, how) => transformed(call, &scores, how)?,
        }
    } else {
        if a.len() != pairs || b.len() != pairs {
            return Err(call.error(format!("`prob_a` and `prob_b` are not for {pairs} pairs")));
        }
        let won = scores.mul(matrix(&a, 1)?)?.add(matrix(&b, 1)?)?.neg().sigmoid();
        let won = call.read_tensor(&won.clamp(1e-7, 1.0 - 1e-7)?)?.floats();
        let mut y = call.budget().room(x.shape()[0].saturating_mul(classes))?;
        for row in won.chunks_exact(pairs) {
            Budget::check_interrupt()?;
            let mut of = vec![0.0; classes * classes];
            for ((i, j), &won) in all.clone().zip(row) {
                (of[i * classes + j], of[j * classes + i]) = (won, 1.0 - won);
            }
            y.extend(coupled(&of, classes).into_iter().map(|p| p as f32));
        }
        let y = Tensor::from_slice(&y, [x.shape()[0], classes], call.device())?;
        transformed(call, &y, transform)?
    };
    Ok(vec![class, y.into()])
}

/// Probabilities of `n` classes from those of each against each other one, by the second method of Wu, Lin and Weng
/// (2004): the minimum of `sum (won[j][i] p[i] - won[i][j] p[j])^2`, one coordinate after the other, as near to it as
/// libsvm comes.
fn coupled(won: &[f64], n: usize) -> Vec<f64> {
    let others = |i: usize| (0..n).filter(move |&j| j != i);
    let diagonal: Vec<f64> =
        (0..n).map(|i| others(i).map(|j| won[j * n + i].powi(2)).sum()).collect();
    let q = |i: usize, j: usize| match i == j {
        true => diagonal[i],
        false => -won[j * n + i] * won[i * n + j],
    };
    let mut p = vec![1.0 / n as f64; n];
    for _ in 0..n.max(100) {
        let mut products: Vec<f64> = (0..n).map(|i| (0..n).map(|j| q(i, j) * p[j]).sum()).collect();
        let mut value: f64 = p.iter().zip(&products).map(|(p, qp)| p * qp).sum();
        if products.iter().all(|qp| (qp - value).abs() < 0.005 / n as f64) {
            break;
        }
        for i in 0..n {
            let step = (value - products[i]) / q(i, i);
            let scale = 1.0 + step;
            value = (value + step * (step * q(i, i) + 2.0 * products[i])) / (scale * scale);
            p[i] += step;
            for j in 0..n {
                products[j] = (products[j] + step * q(i, j)) / scale;
                p[j] /= scale;
            }
        }
    }
    p
}
