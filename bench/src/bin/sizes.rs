//! Whether the time of an operation jumps at sizes without small divisors.
//!
//! `sizes [device] [rows] [elements] [rounds] [explain]`, as in `sizes cpu cumsum,roll 1000000 9`. Each row is
//! computed at a round size and at awkward sizes near it: primes, twice a prime, products of two primes, round
//! size ± 1; of matrices also few rows and few columns. For each awkward size it prints microseconds measured and
//! predicted, and both as ratios: time per element over that of the round size. Sizes take turns, and the fastest of
//! all rounds counts, since other processes only add time. The last lines give the rows above 1.5 and the geometric
//! mean. With `explain` each size is followed by its plan, with the time that each kernel takes on the device.

#![allow(clippy::print_stdout, reason = "the report is what the program is for")]

use std::error::Error;
use std::time::Instant;
use zyx::{DType, Device, OpenDevice as _, Reduction, Result, Tensor};
use zyx_core::{CrossEntropy, testing};

/// Ratio from which on a size is special.
const MOST_RATIO: f64 = 1.5;

/// Nanoseconds that one measurement takes at least: shorter computations are repeated.
const LEAST_NS: u128 = 400_000;

/// Operands of a size.
struct Operands {
    /// `[n]` or `[rows, columns]`, normal values.
    x: Tensor,
    /// As `x`, between 0 and 1.
    y: Tensor,
    /// The first row of a matrix, or `x`.
    row: Tensor,
    /// `[rows, 1]`, or `[1]`.
    column: Tensor,
    /// `i64`, as `x`, from 0 to 999.
    ints: Tensor,
    /// `i64 [rows]`, valid columns.
    classes: Tensor,
    /// `[columns, 64]`.
    weights: Tensor,
}

impl Operands {
    fn new(dims: &[usize], device: &Device) -> Result<Operands> {
        let n = dims.iter().product();
        let numbers = |n: usize, factor: f64| {
            let x = Tensor::iota(n, DType::F32, device).mul(factor)?.sin();
            Ok::<Tensor, zyx::Error>(x.mul(43_758.547)?.sin())
        };
        let kept = |x: Tensor, dims: &[usize]| {
            let x = x.reshape(dims.to_vec())?.contiguous();
            x.realize()?;
            Ok::<Tensor, zyx::Error>(x)
        };
        let [rows, columns] = [*dims.first().unwrap_or(&1), *dims.last().unwrap_or(&1)];
        let x = kept(numbers(n, 0.731)?, dims)?.tracked();
        let y = kept(numbers(n, 0.377)?.mul(0.49)?.add(0.5)?, dims)?;
        let mixed = |n: usize, below: usize| {
            Tensor::iota(n, DType::I64, device).mul(7919i64)?.remainder(below as i64)
        };
        let matrix = dims.len() == 2;
        Ok(Operands {
            row: kept(x.reshape([n])?.narrow(0, 0, columns)?, &[columns])?,
            column: match matrix {
                true => kept(x.narrow(1, 0, 1)?, &[rows, 1])?,
                false => kept(x.narrow(0, 0, 1)?, &[1])?,
            },
            ints: kept(mixed(n, 1000)?, dims)?,
            classes: kept(mixed(rows, columns)?, &[rows])?,
            weights: match matrix {
                true => kept(numbers(columns * 64, 0.577)?, &[columns, 64])?.tracked(),
                false => kept(numbers(64, 0.577)?, &[1, 64])?,
            },
            x,
            y,
        })
    }
}

type Run = fn(&Operands) -> Result<Tensor>;

fn gradient(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    let found = y.sum(..)?.grad(&[x])?;
    Ok(found.into_iter().next().flatten().unwrap_or_else(|| x.clone()))
}

/// Rows for any shape; axis -1 is the last one.
const ANY: &[(&str, Run)] = &[
    ("sum", |s| s.x.sum(..)),
    ("max", |s| s.x.max(..)),
    ("mean", |s| s.x.mean(..)),
    ("norm", |s| s.x.norm(..)),
    ("var", |s| s.x.var(.., 1)),
    ("logsumexp", |s| s.x.logsumexp(..)),
    ("count", |s| s.x.gt(0.0)?.count_nonzero(..)),
    ("sum_i64", |s| s.ints.sum(..)),
    ("sum_i8", |s| s.ints.cast(DType::I8).sum(..)),
    ("sum_f16", |s| s.x.cast(DType::F16).sum(..)),
    ("sum_f64", |s| s.x.cast(DType::F64).sum(..)),
    ("sum_exp", |s| s.x.exp().sum(..)),
    ("sum_row", |s| s.x.add(&s.row)?.sum(..)),
    ("sum_first", |s| s.x.add(&s.x.narrow(0, 0, 1)?)?.sum(..)),
    ("dot", |s| s.x.mul(&s.y)?.sum(..)),
    ("iota_rem", |s| Tensor::iota(s.x.numel(), DType::I64, s.x.device()).remainder(2i64)?.sum(..)),
    ("any", |s| s.x.gt(2.0)?.any(..)),
    ("argmax", |s| s.x.flatten().argmax(0)),
    ("copy", |s| s.x.add(1.0)),
    ("exp", |s| Ok(s.x.exp())),
    ("cast", |s| Ok(s.x.cast(DType::F16))),
    ("add_row", |s| s.x.add(&s.row)),
    ("add_column", |s| s.x.add(&s.column)),
    ("div_ints", |s| s.ints.div(7i64)),
    ("cumsum", |s| s.x.cumsum(-1)),
    ("cummax", |s| s.x.cummax(-1).map(|both| both.0)),
    ("logcumsumexp", |s| s.x.logcumsumexp(-1)),
    ("cumsum_i64", |s| s.ints.cumsum(-1)),
    ("softmax", |s| s.x.softmax(-1)),
    ("log_softmax", |s| s.x.log_softmax(-1)),
    ("layer_norm", |s| s.x.layer_norm(-1, None, None, 1e-5)),
    ("sort", |s| s.x.sort(-1, false).map(|both| both.0)),
    ("argsort_i64", |s| s.ints.argsort(-1, false)),
    ("topk", |s| s.x.topk(5, -1, true).map(|both| both.0)),
    ("nonzero", |s| s.x.gt(0.0)?.nonzero()),
    ("masked_select", |s| s.x.masked_select(&s.x.gt(0.0)?)),
    ("roll", |s| Ok(s.x.roll([7], [-1])?.contiguous())),
    ("pad", |s| {
        let mut sides = vec![(0, 0); s.x.shape().len()];
        sides[s.x.shape().len() - 1] = (1, 2);
        Ok(s.x.pad(sides)?.contiguous())
    }),
    ("flip", |s| Ok(s.x.flip(-1)?.contiguous())),
    ("second", |s| Ok(s.x.stride(-1, 0, 2)?.contiguous())),
    ("sum_second", |s| s.x.stride(-1, 0, 2)?.sum(..)),
    ("sum_flipped", |s| s.x.flip(-1)?.sum(-1)),
    ("cumsum_rolled", |s| s.x.roll([7], [-1])?.cumsum(-1)),
    ("cat", |s| Ok(Tensor::cat(&[&s.x, &s.y], -1)?.contiguous())),
    ("cumsum_cat", |s| Tensor::cat(&[&s.x, &s.y], -1)?.cumsum(-1)),
    ("diff", |s| s.x.diff(1, -1)),
    ("bincount", |s| s.ints.flatten().bincount_to(1000)),
    ("mse", |s| s.x.mse_loss(&s.y, Reduction::Mean)),
    ("mse'", |s| gradient(&s.x.mse_loss(&s.y, Reduction::Mean)?, &s.x)),
    ("bce", |s| s.x.bce_with_logits_loss(&s.y, Reduction::Mean)),
    ("bce'", |s| gradient(&s.x.bce_with_logits_loss(&s.y, Reduction::Mean)?, &s.x)),
    ("softmax'", |s| gradient(&s.x.softmax(-1)?.mul(&s.y)?, &s.x)),
    ("layer_norm'", |s| gradient(&s.x.layer_norm(-1, None, None, 1e-5)?.mul(&s.y)?, &s.x)),
    ("norm'", |s| gradient(&s.x.norm(..)?, &s.x)),
    ("max'", |s| gradient(&s.x.max(-1)?, &s.x)),
    ("cumsum'", |s| gradient(&s.x.cumsum(-1)?.mul(&s.y)?, &s.x)),
];

/// Rows for matrices alone.
const MATRICES: &[(&str, Run)] = &[
    ("rows_sum", |s| s.x.sum(1)),
    ("columns_sum", |s| s.x.sum(0)),
    ("rows_max", |s| s.x.max(1)),
    ("columns_max", |s| s.x.max(0)),
    ("rows_mean", |s| s.x.mean(1)),
    ("columns_var", |s| s.x.var(0, 1)),
    ("rows_argmax", |s| s.x.argmax(1)),
    ("columns_softmax", |s| s.x.softmax(0)),
    ("columns_cumsum", |s| s.x.cumsum(0)),
    ("columns_sort", |s| s.x.sort(0, false).map(|both| both.0)),
    ("transpose", |s| Ok(s.x.t().contiguous())),
    ("t_add", |s| s.x.t().add(s.y.t())),
    ("t_rows_sum", |s| s.x.t().sum(1)),
    ("t_softmax", |s| Ok(s.x.t().softmax(1)?.contiguous())),
    ("t_layer_norm", |s| s.x.t().layer_norm(1, None, None, 1e-5)),
    ("t_cumsum", |s| s.x.t().cumsum(1)),
    ("t_add_row", |s| s.x.t().add(s.x.narrow(1, 0, 1)?.t())?.sum(..)),
    ("roll_rows", |s| Ok(s.x.roll([7], [0])?.contiguous())),
    ("batch_norm", |s| s.x.batch_norm(None, None, 1e-5).map(|b| b.output)),
    ("matmul", |s| s.x.matmul(&s.weights)),
    ("matmul'", |s| gradient(&s.x.matmul(&s.weights)?, &s.weights)),
    ("matmul_relu", |s| Ok(s.x.matmul(&s.weights)?.relu())),
    ("matvec", |s| s.x.matmul(&s.row)),
    ("vecmat", |s| s.column.t().matmul(&s.x)),
    ("vecmat_strided", |s| s.x.narrow(1, 3, 1)?.t().matmul(&s.y)),
    ("vecmat_padded", |s| s.column.t().pad([(0, 0), (1, 1)])?.matmul(&s.x.pad([(1, 1), (0, 0)])?)),
    ("expanded", |s| s.row.expand(s.x.shape().clone())?.matmul(&s.weights)),
    ("outer", |s| s.column.mul(&s.row)),
    ("cross_entropy", |s| s.x.cross_entropy_with(&s.classes, CrossEntropy::default())),
    ("cross_entropy'", |s| {
        gradient(&s.x.cross_entropy_with(&s.classes, CrossEntropy::default())?, &s.x)
    }),
    ("columns_sum'", |s| gradient(&s.x.exp().sum(0)?.log(), &s.x)),
    ("exp_rows_sum", |s| s.x.exp().sum(1)),
    ("abs_columns_sum", |s| s.x.abs().sum(0)),
    ("product", |s| s.x.t().matmul(&s.y.narrow(1, 0, s.y.shape()[1].min(61))?)),
    ("index_rows", |s| {
        let rows = s.classes.remainder(s.x.shape()[0] as i64)?.contiguous();
        s.x.index_select(0, &rows)
    }),
    ("mesh", |s| Ok(s.column.expand(s.x.shape().clone())?.contiguous())),
    ("nll'", |s| {
        let loss = s.x.cross_entropy_weighted(&s.classes, Some(&s.row), CrossEntropy::default());
        gradient(&loss?, &s.x)
    }),
    ("kl_div'", |s| gradient(&s.x.kl_div_loss(&s.y, Reduction::Mean)?, &s.x)),
    ("narrow_sum", |s| s.x.narrow(1, 1, s.x.shape()[1] - 2)?.sum(1)),
];

fn is_prime(n: usize) -> bool {
    (2..).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

fn next_prime(n: usize) -> usize {
    (n..).find(|&n| is_prime(n)).unwrap_or(n)
}

/// Vectors and matrices of about so many elements, each round one with its awkward ones.
fn shapes(elements: usize) -> Vec<(Vec<usize>, Vec<Vec<usize>>)> {
    let root = (elements as f64).sqrt().round() as usize;
    let product = next_prime(root) * next_prime(root + root / 16);
    let vectors =
        [next_prime(elements), 2 * next_prime(elements / 2), product, elements - 1, elements + 1];
    let [p, q] = [next_prime(root), 2 * next_prime(root / 2)];
    let matrices = [[p, root], [root, p], [p, p], [q, q], [root - 1, root + 1]];
    let vector = |n: usize| vec![n];
    // Two rows, and as many rows as a few columns allow.
    let half = elements / 2;
    let long = [[2, next_prime(half)], [3, next_prime(elements / 3)], [2, half + 1]];
    let tall = [7, 9, 13].map(|columns| [next_prime(elements / columns), columns]);
    let all = |dims: &[[usize; 2]]| dims.iter().map(|dims| dims.to_vec()).collect();
    vec![
        (vec![elements], vectors.map(vector).to_vec()),
        (vec![root, root], all(&matrices)),
        (vec![2, half], all(&long)),
        (vec![elements / 8, 8], all(&tall)),
    ]
}

/// One size of a row: its operands and the fastest time so far.
struct Case {
    dims: Vec<usize>,
    operands: Operands,
    predicted: f64,
    fastest: f64,
    repeats: u32,
}

impl Case {
    fn new(run: Run, dims: &[usize], device: &Device) -> Result<Case> {
        let operands = Operands::new(dims, device)?;
        let y = run(&operands)?;
        let predicted = match y.is_realized() {
            true => 0.0,
            false => testing::explain(&[&y], device)?.predicted().as_secs_f64() * 1e6,
        };
        y.realize()?;
        drop(y);
        let mut case =
            Case { dims: dims.to_vec(), operands, predicted, fastest: f64::MAX, repeats: 1 };
        case.measure(run, device)?;
        case.repeats = (LEAST_NS / ((case.fastest * 1e3) as u128).max(1)).clamp(1, 1000) as u32;
        case.fastest = f64::MAX;
        Ok(case)
    }

    fn measure(&mut self, run: Run, device: &Device) -> Result<()> {
        let start = Instant::now();
        for _ in 0..self.repeats {
            run(&self.operands)?.realize()?;
            device.synchronize()?;
        }
        let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(self.repeats);
        self.fastest = self.fastest.min(us);
        Ok(())
    }

    /// The plan, with measured times of its kernels.
    fn explain(&self, run: Run, device: &Device) -> Result<()> {
        device.set_profiling(true);
        for _ in 0..3 {
            run(&self.operands)?.realize()?;
        }
        let y = run(&self.operands)?;
        if !y.is_realized() {
            println!("{}", testing::explain(&[&y], device)?);
        }
        device.set_profiling(false);
        Ok(())
    }

    fn elements(&self) -> f64 {
        self.dims.iter().product::<usize>() as f64
    }
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |i: usize, default: &str| args.get(i).cloned().unwrap_or(default.to_owned());
    let (device, wanted) = (Device::open(&arg(0, "cpu"))?, arg(1, ""));
    let (elements, rounds): (usize, usize) = (arg(2, "1048576").parse()?, arg(3, "7").parse()?);
    let (mut special, mut logarithms) = (Vec::new(), Vec::new());
    for (round, awkward) in shapes(elements) {
        let more = if round.len() == 2 { MATRICES } else { &[] };
        for &(name, run) in ANY.iter().chain(more) {
            if !wanted.is_empty() && !wanted.split(',').any(|one| one == name) {
                continue;
            }
            let made = [&round].into_iter().chain(&awkward).map(|d| Case::new(run, d, &device));
            let mut cases = match made.collect::<Result<Vec<Case>>>() {
                Ok(cases) => cases,
                Err(error) => {
                    println!("{name:16} {round:?}: {error}");
                    continue;
                }
            };
            for _ in 0..rounds {
                for case in &mut cases {
                    case.measure(run, &device)?;
                }
            }
            if arg(4, "") == "explain" {
                for case in &cases {
                    println!("{name} {:?}", case.dims);
                    case.explain(run, &device)?;
                }
            }
            let (first, others) = (&cases[0], &cases[1..]);
            let [measured, predicted] =
                [first.fastest, first.predicted].map(|t| t / first.elements());
            println!(
                "{name:16} {:14} {:10.1} {:10.1} us",
                format!("{:?}", first.dims),
                first.fastest,
                first.predicted
            );
            for case in others {
                let ratio = case.fastest / case.elements() / measured;
                let model = case.predicted / case.elements() / predicted;
                let mark = if ratio > MOST_RATIO { " <" } else { "" };
                println!(
                    "{name:16} {:14} {:10.1} {:10.1} us {ratio:6.2} {model:6.2}{mark}",
                    format!("{:?}", case.dims),
                    case.fastest,
                    case.predicted
                );
                logarithms.push(ratio.ln());
                if ratio > MOST_RATIO {
                    special.push(format!("{name} {:?}: {ratio:.2}", case.dims));
                }
            }
        }
    }
    println!("{} of {} above {MOST_RATIO}: {special:#?}", special.len(), logarithms.len());
    let mean = logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64;
    println!("geometric mean {:.3}", mean.exp());
    Ok(())
}
