//! Softmax and what is made of it, under shifts of any size: logits that differ by little and are
//! large, masks of finite numbers, and rows that they hide whole. Values and gradients are those of an
//! `f64` reference that subtracts the maximum first.

mod common;

use std::cell::RefCell;
use zyx_backend_cpu::{Config, Cpu};
use zyx_tests::tolerance::{largest, round, smallest_normal, ulp, unit_roundoff};
use zyx_tests::zyx_core::hal::Flash;
use zyx_tests::zyx_core::{
    Attention, CrossEntropy, DType, Device, Reduction, Reference, Result, Runtime, Tensor,
};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

/// Wrong results, all of which are told at the end.
#[derive(Default)]
struct Wrong(RefCell<Vec<String>>);

impl Wrong {
    /// Compares elements, which may be off by two units in the last place, and by some roundings, in the dtype of
    /// sums, of numbers of `size`.
    fn compare(&self, what: &str, got: &Tensor, want: &[f64], size: f64) -> Result<()> {
        self.compare_by(what, got, want, &|_| size)
    }

    /// The same by a size for each element.
    fn compare_by(
        &self,
        what: &str,
        got: &Tensor,
        want: &[f64],
        size: &dyn Fn(usize) -> f64,
    ) -> Result<()> {
        let dtype = got.dtype();
        let precision = unit_roundoff(dtype.accumulator());
        let got = got.cast(DType::F64).to_vec::<f64>()?;
        assert_eq!(got.len(), want.len(), "{what}");
        for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
            let error = 2.0 * ulp(dtype, want) + 64.0 * precision * size(i).max(want.abs());
            let beyond = want.abs() + error >= largest(dtype) && got.is_infinite();
            let same = got == round(dtype, want) || beyond && got.signum() == want.signum();
            if !(same || (got - want).abs() <= error) {
                self.0.borrow_mut().push(format!("{what} [{i}]: {got:e}, not {want:e}"));
                break;
            }
        }
        Ok(())
    }

    #[track_caller]
    fn tell(self) {
        let all = self.0.into_inner();
        let shown: Vec<&str> = all.iter().take(40).map(String::as_str).collect();
        assert!(all.is_empty(), "{} of them:\n{}", all.len(), shown.join("\n"));
    }
}

/// Even numbers in -2 .. 2, with few digits.
fn small(i: usize) -> f64 {
    ((i * 7919 + 131) % 64) as f64 / 16.0 - 2.0
}

/// A sum with what rounding loses added in the end (Neumaier 1974).
fn total(terms: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for x in terms {
        let next = sum + x;
        lost += if sum.abs() < x.abs() { (x - next) + sum } else { (sum - next) + x };
        sum = next;
    }
    if lost.is_finite() { sum + lost } else { sum }
}

/// The maximum of a row, and the exponentials of the differences from it with their sum.
struct Row {
    top: f64,
    weights: Vec<f64>,
    sum: f64,
}

impl Row {
    fn of(x: &[f64]) -> Row {
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shift = if top.is_finite() { top } else { 0.0 };
        let weights: Vec<f64> = x.iter().map(|x| (x - shift).exp()).collect();
        Row { top: shift, sum: total(weights.iter().copied()), weights }
    }

    fn share(&self, i: usize) -> f64 {
        self.weights[i] / self.sum
    }

    fn log(&self, x: f64) -> f64 {
        (x - self.top) - self.sum.ln()
    }
}

/// Rows of logits in the numbers of a dtype: small ones beside a shift, and masks.
fn logits(dtype: DType, shift: f64, n: usize) -> Vec<Vec<f64>> {
    let most = largest(dtype);
    let hidden = [most.min(1e9), most].map(|x| -x);
    let row = |of: &dyn Fn(usize) -> f64| (0..n).map(|i| round(dtype, of(i))).collect();
    let mut rows = vec![
        row(&|i| (shift + small(i)).clamp(-most, most)),
        row(&|_| shift),
        row(&|i| if i % 3 == 0 { shift } else { hidden[0].min(shift) }),
    ];
    if shift == 0.0 {
        rows.push(row(&|i| if i % 4 == 1 { small(i) } else { hidden[i % 2] }));
        rows.push(row(&|_| hidden[0]));
        rows.push(row(&|i| hidden[1] + small(i)));
    }
    rows
}

/// Shifts that a dtype holds.
fn shifts(dtype: DType) -> Vec<f64> {
    let most = largest(dtype);
    let all = [0.0, 1e-30, 1.0, 1e3, 6e4, 1e9, 3e38, 1e300];
    all.into_iter().filter(|&x| x <= most).flat_map(|x| [x, -x]).skip(1).collect()
}

/// Rows as a tensor.
fn tensor(rows: &[Vec<f64>], dtype: DType, device: &Device) -> Result<Tensor> {
    let x = Tensor::from_slice(&rows.concat(), [rows.len(), rows[0].len()], device)?.cast(dtype);
    x.realize()?;
    Ok(x.tracked())
}

/// Values of a function and the gradient of their sum weighted by [`small`] numbers.
fn both(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> Result<(Tensor, Tensor, Vec<f64>)> {
    let y = f(x)?;
    let dy: Vec<f64> = (0..y.numel()).map(|i| small(i * 3 + 1)).collect();
    let weights = Tensor::from_slice(&dy, y.shape().to_vec(), x.device())?;
    let wide = y.dtype().accumulator();
    let loss = y.cast(wide).mul(weights.cast(wide))?.sum(..)?;
    let dx = loss.grad(&[x])?.remove(0).expect("the loss depends on it");
    Ok((y, dx, dy))
}

/// Softmax, its logarithm, log-sum-exp and its running form.
#[test]
fn softmax_and_logarithms_of_sums() -> Result<()> {
    let (device, wrong) = (common::device(), Wrong::default());
    for (dtype, n) in FLOATS.into_iter().flat_map(|dtype| [1, 3, 64, 515].map(|n| (dtype, n))) {
        for shift in shifts(dtype) {
            let rows = logits(dtype, shift, n);
            let x = tensor(&rows, dtype, &device)?;
            let of: Vec<Row> = rows.iter().map(|row| Row::of(row)).collect();
            let each = |f: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
                let row = |r| (0..n).map(move |i| f(r, i));
                (0..rows.len()).flat_map(row).collect()
            };
            let what = |name: &str| format!("{name} {dtype} {n} {shift:e}");
            let (y, dx, dy) = both(&x, |x| x.softmax(-1))?;
            wrong.compare(&what("softmax"), &y, &each(&|r, i| of[r].share(i)), 0.0)?;
            let mean = |r: usize| total((0..n).map(|j| of[r].share(j) * dy[r * n + j]));
            let want = each(&|r, i| of[r].share(i) * (dy[r * n + i] - mean(r)));
            wrong.compare(&what("softmax'"), &dx, &want, 2.0)?;
            let (y, dx, _) = both(&x.neg(), |x| x.softmin(-1))?;
            wrong.compare(&what("softmin"), &y, &each(&|r, i| of[r].share(i)), 0.0)?;
            let want: Vec<f64> = want.iter().map(|x| -x).collect();
            wrong.compare(&what("softmin'"), &dx, &want, 2.0)?;
            let (y, dx, dy) = both(&x, |x| x.log_softmax(-1))?;
            wrong.compare(&what("log_softmax"), &y, &each(&|r, i| of[r].log(rows[r][i])), 1.0)?;
            let sum = |r: usize| total(dy[r * n..][..n].iter().copied());
            let want = each(&|r, i| dy[r * n + i] - of[r].share(i) * sum(r));
            wrong.compare(&what("log_softmax'"), &dx, &want, 2.0 * n as f64)?;
            let (y, dx, dy) = both(&x, |x| x.logsumexp(-1))?;
            let want: Vec<f64> = of.iter().map(|of| of.top + of.sum.ln()).collect();
            wrong.compare(&what("logsumexp"), &y, &want, 1.0)?;
            let want = each(&|r, i| of[r].share(i) * dy[r]);
            wrong.compare(&what("logsumexp'"), &dx, &want, 0.0)?;
            let prefixes = |row: &Vec<f64>| (0..n).map(|i| Row::of(&row[..=i])).collect();
            let running: Vec<Vec<Row>> = rows.iter().map(prefixes).collect();
            let (y, dx, dy) = both(&x, |x| x.logcumsumexp(-1))?;
            let want = each(&|r, i| {
                let of = &running[r][i];
                of.top + of.sum.ln()
            });
            wrong.compare(&what("logcumsumexp"), &y, &want, 1.0)?;
            let want = each(&|r, j| {
                let of = |i: usize| running[r][i].share(j) * dy[r * n + i];
                total((j..n).map(of))
            });
            wrong.compare(&what("logcumsumexp'"), &dx, &want, n as f64)?;
        }
    }
    wrong.tell();
    Ok(())
}

/// The logarithm of the sum of two exponentials.
#[test]
fn logarithms_of_two() -> Result<()> {
    let (device, wrong) = (common::device(), Wrong::default());
    for dtype in FLOATS {
        for shift in shifts(dtype) {
            let rows = logits(dtype, shift, 16);
            let n = rows.concat().len();
            let (x, y) = (rows.concat(), rows.iter().rev().flatten().copied().collect::<Vec<_>>());
            let pairs: Vec<Row> = (0..n).map(|i| Row::of(&[x[i], y[i]])).collect();
            let a = tensor(&[x], dtype, &device)?;
            let b = tensor(&[y], dtype, &device)?;
            let (z, da, dz) = both(&a, |a| a.logaddexp(&b))?;
            let want: Vec<f64> = pairs.iter().map(|of| of.top + of.sum.ln()).collect();
            wrong.compare(&format!("logaddexp {dtype} {shift:e}"), &z, &want, 1.0)?;
            let want: Vec<f64> = pairs.iter().zip(dz).map(|(of, dz)| of.share(0) * dz).collect();
            wrong.compare(&format!("logaddexp' {dtype} {shift:e}"), &da, &want, 0.0)?;
        }
    }
    wrong.tell();
    Ok(())
}

/// How a cross entropy is computed, and what part of the target each class has.
struct Loss<'a> {
    name: &'a str,
    compute: &'a dyn Fn(&Tensor) -> Result<Tensor>,
    /// By row and class.
    target: &'a dyn Fn(usize, usize) -> f64,
}

#[test]
fn cross_entropies() -> Result<()> {
    let (device, wrong) = (common::device(), Wrong::default());
    for (dtype, n) in FLOATS.into_iter().flat_map(|dtype| [2, 64, 333].map(|n| (dtype, n))) {
        for shift in shifts(dtype) {
            let rows = logits(dtype, shift, n);
            let of: Vec<Row> = rows.iter().map(|row| Row::of(row)).collect();
            let x = tensor(&rows, dtype, &device)?;
            let class = |r: usize| (r * 5) % n;
            let classes: Vec<i64> = (0..rows.len()).map(|r| class(r) as i64).collect();
            let target = Tensor::from_slice(&classes, [rows.len()], &device)?;
            let at = |r: usize, j: usize| f64::from(u8::from(class(r) == j));
            // Probabilities and factors that every dtype holds.
            let soft = |r: usize, j: usize| ((r + 3 * j) % 4) as f64 / 8.0;
            let weight = |j: usize| (j % 3) as f64 / 2.0 + 0.5;
            let soft_rows: Vec<Vec<f64>> =
                (0..rows.len()).map(|r| (0..n).map(|j| soft(r, j)).collect()).collect();
            let probabilities = tensor(&soft_rows, dtype, &device)?.detach();
            let weights: Vec<f64> = (0..n).map(weight).collect();
            let weights = Tensor::from_slice(&weights, [n], &device)?.cast(dtype);
            let options = |label_smoothing: f64, ignore_index: Option<i64>| CrossEntropy {
                ignore_index,
                label_smoothing,
                reduction: Reduction::None,
            };
            let smooth = |t: f64| 0.75 * t + 0.25 / n as f64;
            let seen = |r: usize| f64::from(u8::from(class(r) != class(0)));
            let by = |smoothing: f64, ignored| {
                let options = options(smoothing, ignored);
                let target = &target;
                move |x: &Tensor| x.cross_entropy_with(target, options)
            };
            let weighted = |target: &Tensor, smoothing: f64| {
                let (target, weights) = (target.clone(), weights.clone());
                let options = options(smoothing, None);
                move |x: &Tensor| x.cross_entropy_weighted(&target, Some(&weights), options)
            };
            let losses = [
                Loss { name: "plain", compute: &by(0.0, None), target: &at },
                Loss {
                    name: "smoothed",
                    compute: &by(0.25, None),
                    target: &|r, j| smooth(at(r, j)),
                },
                Loss {
                    name: "ignoring",
                    compute: &by(0.25, Some(classes[0])),
                    target: &|r, j| seen(r) * smooth(at(r, j)),
                },
                Loss {
                    name: "weighted",
                    compute: &weighted(&target, 0.0),
                    target: &|r, j| at(r, j) * weight(j),
                },
                Loss {
                    name: "weighted and smoothed",
                    compute: &weighted(&target, 0.25),
                    target: &|r, j| smooth(at(r, j)) * weight(j),
                },
                Loss {
                    name: "soft and weighted",
                    compute: &weighted(&probabilities, 0.25),
                    target: &|r, j| smooth(soft(r, j)) * weight(j),
                },
                Loss {
                    name: "soft",
                    compute: &|x| {
                        x.cross_entropy_weighted(&probabilities, None, options(0.0, None))
                    },
                    target: &soft,
                },
                Loss {
                    name: "likelihood of a log_softmax",
                    compute: &|x| {
                        x.cast(dtype.accumulator())
                            .log_softmax(-1)?
                            .nll_loss(&target, options(0.0, None))
                    },
                    target: &at,
                },
                Loss {
                    name: "divergence",
                    compute: &|x| {
                        let wide = probabilities.cast(dtype.accumulator());
                        let own = wide.xlogy(&wide)?.sum(-1)?;
                        let log = x.cast(dtype.accumulator()).log_softmax(-1)?;
                        log.kl_div(&wide, false, Reduction::None)?.sum(-1)?.sub(&own)
                    },
                    target: &soft,
                },
            ];
            for Loss { name, compute, target } in losses {
                let what = format!("{name} {dtype} {n} {shift:e}");
                let (y, dx, dy) = both(&x, compute)?;
                let part = |r: usize, j: usize| match target(r, j) {
                    0.0 => 0.0,
                    t => -t * of[r].log(rows[r][j]),
                };
                let want: Vec<f64> =
                    (0..rows.len()).map(|r| total((0..n).map(|j| part(r, j)))).collect();
                wrong.compare(&what, &y, &want, 1.0)?;
                let all = |r: usize| total((0..n).map(|j| target(r, j)));
                let slope = |r: usize, j: usize| dy[r] * (of[r].share(j) * all(r) - target(r, j));
                let want: Vec<f64> = (0..rows.len())
                    .flat_map(|r| (0..n).map(move |j| (r, j)))
                    .map(|(r, j)| slope(r, j))
                    .collect();
                wrong.compare(&format!("{what} gradient"), &dx, &want, all(0).max(1.0))?;
            }
        }
    }
    wrong.tell();
    Ok(())
}

/// Losses of logits of two classes keep the digits of the smaller probability.
#[test]
fn binary_cross_entropies() -> Result<()> {
    let (device, wrong) = (common::device(), Wrong::default());
    for dtype in FLOATS {
        let most = largest(dtype);
        let sizes = [0.0, 1e-30, 1e-3, 0.5, 3.0, 10.0, 14.0, 60.0, 1e3, 6e4, 1e9, 1e30, 3e38];
        let sizes = sizes.into_iter().filter(|&x| x <= most);
        let x: Vec<f64> = sizes.flat_map(|x| [x, -x]).map(|x| round(dtype, x)).collect();
        let logits = tensor(std::slice::from_ref(&x), dtype, &device)?;
        let log = |x: f64| x.max(0.0) + (-x.abs()).exp().ln_1p();
        let sigmoid =
            |x: f64| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) };
        for y in [0.0, 0.25, 1.0] {
            let target = Tensor::full([1, x.len()], y, &device).cast(dtype);
            let positive = Tensor::full([1], 3.0, &device).cast(dtype);
            let none = Reduction::None;
            type Compute<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
            let ways: [(&str, f64, Compute<'_>); 4] = [
                ("plain", y, &|x| x.bce_with_logits_loss(&target, none)),
                ("functional", y, &|x| {
                    x.binary_cross_entropy_with_logits(&target, None, None, none)
                }),
                ("weighted", 3.0 * y, &|x| {
                    x.binary_cross_entropy_with_logits(&target, None, Some(&positive), none)
                }),
                ("several", y, &|x| {
                    let n = x.shape()[1];
                    let column = [n, 1];
                    let target = target.reshape(column)?;
                    x.reshape(column)?.multilabel_soft_margin_loss(&target, None, none)
                }),
            ];
            for (name, yes, compute) in ways {
                let what = format!("{name} {dtype} {y}");
                let (loss, dx, dy) = both(&logits, compute)?;
                let product = |weight: f64, x: f64| if weight == 0.0 { 0.0 } else { weight * x };
                let term = |&x: &f64| product(yes, log(-x)) + product(1.0 - y, log(x));
                let want: Vec<f64> = x.iter().map(term).collect();
                wrong.compare(&what, &loss, &want, 0.0)?;
                let slope =
                    |(&x, dy): (&f64, f64)| dy * ((1.0 - y) * sigmoid(x) - yes * sigmoid(-x));
                let want: Vec<f64> = x.iter().zip(dy).map(slope).collect();
                let size = if y == 0.25 { 1.0 } else { 0.0 };
                wrong.compare(&format!("{what} gradient"), &dx, &want, size)?;
            }
        }
    }
    wrong.tell();
    Ok(())
}

/// Second derivatives do not change with the shift either.
#[test]
fn second_derivatives() -> Result<()> {
    let (device, wrong) = (common::device(), Wrong::default());
    let n = 17;
    let target = Tensor::from_slice(&[3i64], [1], &device)?;
    let smoothed = CrossEntropy { label_smoothing: 0.25, ..CrossEntropy::default() };
    type Compute<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let functions: [(&str, Compute<'_>); 6] = [
        ("softmax", &|x| x.softmax(-1)?.square().sum(..)),
        ("log_softmax", &|x| x.log_softmax(-1)?.square().sum(..)),
        ("logsumexp", &|x| x.logsumexp(-1)?.sum(..)),
        ("logcumsumexp", &|x| x.logcumsumexp(-1)?.sum(..)),
        ("cross_entropy", &|x| x.cross_entropy(&target)),
        ("smoothed", &|x| x.cross_entropy_with(&target, smoothed)),
    ];
    for (name, f) in functions {
        let second = |x: &Tensor| -> Result<Tensor> {
            let dx = f(x)?.grad(&[x])?.remove(0).expect("depends on it");
            let weights: Vec<f64> = (0..n).map(|i| small(5 * i)).collect();
            let weights = Tensor::from_slice(&weights, [1, n], x.device())?.cast(x.dtype());
            let along = dx.mul(&weights)?.sum(..)?;
            Ok(along.grad(&[x])?.remove(0).expect("depends on it"))
        };
        let at = |shift: f64, dtype: DType| -> Result<Tensor> {
            // Multiples of what a dtype resolves at the shift.
            let unit = if shift.abs() < 1e6 { 0.0625 } else { 64.0 };
            let row = (0..n).map(|i| shift + (small(i) * 16.0).rem_euclid(3.0) * unit).collect();
            tensor(&[row], dtype, &device)
        };
        for (shift, dtype) in [
            (1e3, DType::F32),
            (-65536.0, DType::F32),
            (2f64.powi(29), DType::F32),
            (-(2f64.powi(29)), DType::F32),
            (2f64.powi(40), DType::F64),
        ] {
            // The same differences around zero.
            let x = at(shift, dtype)?;
            let near = x.cast(DType::F64).sub(shift)?;
            near.realize()?;
            // log_softmax squared grows with the differences.
            let want = second(&near.tracked())?.to_vec::<f64>()?;
            let size = want.iter().fold(1.0f64, |most, x| most.max(x.abs()));
            wrong.compare(&format!("{name}'' {dtype} {shift:e}"), &second(&x)?, &want, size)?;
        }
    }
    wrong.tell();
    Ok(())
}

/// Sizes of an attention: queries, keys, width, width of values.
#[derive(Clone, Copy, Debug)]
struct Sizes([usize; 4]);

/// The number that is added to a score, by query and key.
type Mask<'a> = dyn Fn(usize, usize) -> f64 + 'a;

/// Results and the gradients of queries, keys and values, each with the sum of the magnitudes of its terms.
struct Exact([Vec<[f64; 2]>; 4]);

impl Exact {
    fn add(&mut self, which: usize, at: usize, factors: [f64; 2], sizes: [f64; 2]) {
        let [value, size] = &mut self.0[which][at];
        *value += factors[0] * factors[1];
        *size += (sizes[0] * sizes[1]).abs();
    }
}

/// Attention in `f64` under a mask, with the gradients of its sum weighted by `dy`. Scores are numbers of the
/// dtype that sums have, in which those beside a mask vanish.
fn exact(
    (Sizes([rows, keys, width, values]), dtype): (Sizes, DType),
    [q, k, v]: [&[f64]; 3],
    (scale, mask): (f64, &Mask<'_>),
    dy: &[f64],
) -> Exact {
    let acc = dtype.accumulator();
    let lengths = [rows * values, rows * width, keys * width, keys * values];
    let mut exact = Exact(lengths.map(|n| vec![[0.0; 2]; n]));
    for i in 0..rows {
        let score = |j: usize| {
            let product: f64 = (0..width).map(|e| q[i * width + e] * k[j * width + e]).sum();
            round(acc, round(acc, product * scale) + mask(i, j))
        };
        let scores: Vec<f64> = (0..keys).map(score).collect();
        let of = Row::of(&scores);
        if of.sum == 0.0 {
            continue;
        }
        let slope = |j: usize| total((0..values).map(|e| dy[i * values + e] * v[j * values + e]));
        let slopes: Vec<f64> = (0..keys).map(slope).collect();
        let mean = total((0..keys).map(|j| of.share(j) * slopes[j]));
        for (j, slope) in slopes.into_iter().enumerate() {
            let share = of.share(j);
            let own = scale * share * (slope - mean);
            // Below the normal numbers a half has fewer digits.
            let least = smallest_normal(dtype);
            let size = scale * (share * (8.0 + slope.abs() + mean.abs()) + least);
            for e in 0..values {
                let (dy, v) = (dy[i * values + e], v[j * values + e]);
                exact.add(0, i * values + e, [share, v], [share, 2.0]);
                exact.add(3, j * values + e, [share, dy], [share, 2.0]);
            }
            for e in 0..width {
                let (q, k) = (q[i * width + e], k[j * width + e]);
                exact.add(1, i * width + e, [own, k], [size, k]);
                exact.add(2, j * width + e, [own, q], [size, q]);
            }
        }
    }
    exact
}

/// Attention on a device against the reference.
fn attend(device: &Device, dtypes: &[DType], sizes: &[Sizes]) -> Result<()> {
    let wrong = Wrong::default();
    for (&dtype, &sizes) in dtypes.iter().flat_map(|dtype| sizes.iter().map(move |s| (dtype, s))) {
        let Sizes([rows, keys, width, values]) = sizes;
        let wide = dtype.accumulator();
        let least = -largest(dtype);
        let hidden = f64::NEG_INFINITY;
        let causal = |i: usize, j: usize| if j <= i { 0.0 } else { hidden };
        let padded = |i: usize, j: usize| if j < 5 || i.is_multiple_of(7) { least } else { 0.0 };
        let (all, third) = (|_, _| 0.0, |i: usize, _| if i.is_multiple_of(3) { -1e9 } else { 0.0 });
        let some =
            |i: usize, j: usize| if (i + j).is_multiple_of(4) { -1e9 } else { small(i + 2 * j) };
        let nothing = |i: usize, j: usize| match i % 3 {
            0 => hidden,
            1 if j.is_multiple_of(2) => least,
            _ => 0.0,
        };
        let masks: [(&str, bool, Option<&Mask<'_>>); 8] = [
            ("plain", false, None),
            ("causal", true, None),
            ("rows of -1e9", false, Some(&third)),
            ("some of -1e9", false, Some(&some)),
            ("padded", false, Some(&padded)),
            ("padded and causal", true, Some(&padded)),
            ("nothing seen", false, Some(&nothing)),
            ("nothing seen and causal", true, Some(&nothing)),
        ];
        for (name, is_causal, mask) in masks {
            // Products of about so much. Whole numbers that they differ by are exact, or
            // vanish beside the largest.
            let bases: &[f64] = match (mask, dtype) {
                (Some(_), _) => &[0.0],
                (None, DType::F16) => &[0.0, 1024.0, -1048576.0, 4194304.0],
                (None, _) => {
                    &[0.0, 1024.0, -1048576.0, 4194304.0, 1.099511627776e12, -1.2676506002282294e30]
                }
            };
            for &base in bases {
                let root = base.abs().sqrt().max(1.0);
                let factor = |first: f64, seed: usize| {
                    move |at: usize| match at % width {
                        0 if base != 0.0 => first,
                        at_width => {
                            let number = (at / width * 13 + at_width * 7 + seed) * 7919 % 2003 % 5;
                            (number as f64 - 2.0) / if base == 0.0 { 2.0 } else { 1.0 }
                        }
                    }
                };
                let make = |n: usize, of: &dyn Fn(usize) -> f64| -> Vec<f64> {
                    (0..n).map(|i| round(dtype, of(i))).collect()
                };
                let data = [
                    make(rows * width, &factor(base.signum() * root, 1)),
                    make(keys * width, &factor(root, 2)),
                    make(keys * values, &|i| small(i * 11 + i / 7)),
                ];
                let dims = [[1, 1, rows, width], [1, 1, keys, width], [1, 1, keys, values]];
                let mut x = Vec::new();
                for (data, dims) in data.iter().zip(dims) {
                    let input = Tensor::from_slice(data, dims, device)?.cast(dtype);
                    input.realize()?;
                    x.push(input.tracked());
                }
                let given = mask.map(|mask| {
                    let numbers = (0..rows * keys).map(|at| mask(at / keys, at % keys));
                    let numbers: Vec<f64> = numbers.collect();
                    let mask = Tensor::from_slice(&numbers, [rows, keys], device)?;
                    let mask = mask.cast(dtype.accumulator());
                    mask.realize().map(|()| mask)
                });
                let given = given.transpose()?;
                let scale = 0.25;
                let options = Attention {
                    mask: given.as_ref(),
                    causal: is_causal,
                    scale: Some(scale),
                    ..Attention::default()
                };
                let y = x[0].scaled_dot_product_attention(&x[1], &x[2], options)?;
                let dy: Vec<f64> = (0..y.numel()).map(|i| small(i * 3 + 1)).collect();
                let weights = Tensor::from_slice(&dy, y.shape().to_vec(), device)?;
                let loss = y.cast(wide).mul(weights.cast(wide))?.sum(..)?;
                let gradients = loss.grad(&[&x[0], &x[1], &x[2]])?;
                let gradients: Vec<Tensor> = gradients.into_iter().flatten().collect();
                Tensor::realize_all([&y].into_iter().chain(&gradients))?;
                let sum = |i: usize, j: usize| {
                    let mask = mask.map_or(0.0, |mask| mask(i, j));
                    mask + if is_causal { causal(i, j) } else { all(i, j) }
                };
                let inputs = [&data[0][..], &data[1], &data[2]];
                let want = exact((sizes, dtype), inputs, (scale, &sum), &dy);
                // Weights, and in gradients those of scores, are rounded to halves before products.
                let halves = unit_roundoff(dtype) / unit_roundoff(wide) / 16.0;
                for (i, (got, want)) in [&y].into_iter().chain(&gradients).zip(&want.0).enumerate()
                {
                    let what = format!("{name} {base:e} {dtype} {sizes:?} {i}");
                    let [values, terms] =
                        [0, 1].map(|i| want.iter().map(|x| x[i]).collect::<Vec<_>>());
                    wrong.compare_by(&what, got, &values, &|at| halves.max(1.0) * terms[at])?;
                }
            }
        }
    }
    wrong.tell();
    Ok(())
}

const ATTENTIONS: [Sizes; 5] = [
    Sizes([3, 5, 4, 3]),
    Sizes([40, 64, 8, 8]),
    Sizes([70, 130, 16, 12]),
    Sizes([33, 300, 64, 64]),
    Sizes([200, 201, 32, 17]),
];

/// Stored scores, and blocks in forward and backward passes.
#[test]
fn attention_on_the_cpu() -> Result<()> {
    attend(&common::device(), &FLOATS, &ATTENTIONS)?;
    let runtime = Runtime::default();
    runtime.register(Cpu { config: Config { recompute: Some(0), ..Config::default() } });
    attend(&runtime.device("cpu")?, &FLOATS, &ATTENTIONS)
}

/// Threads that have a row each, interpreted.
#[test]
fn attention_by_threads() -> Result<()> {
    let mut reference = Reference::default();
    reference.caps.flash = Some(Flash { least: 0, large: 0, ..Flash::THREADS });
    let runtime = Runtime::default();
    runtime.register(reference);
    let device = runtime.device("reference")?;
    attend(&device, &FLOATS, &ATTENTIONS[..2])?;
    attend(&device, &[DType::F16, DType::F32], &ATTENTIONS[2..3])
}
