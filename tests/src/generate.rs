//! Random programs over the public tensor interface, as a function of a seed.
//!
//! The generator evaluates with the oracle as it goes, so it knows every shape, stays below a
//! size, and can prefer values that are still certain. Extents are small and odd; every op of
//! the tables, every dtype and every kind of step occurs. A seed has a [`Theme`], which says what its
//! program is rich in.

use crate::oracle::{Array, Val};
use crate::program::{Program, Reduction, Step};
use crate::tolerance::{largest, round};
use crate::values::moderate;
use crate::{Rng, oracle};
use zyx_core::{BinaryOp, DType, UnaryOp};

/// Most elements of a value.
const LARGEST: usize = 600;

/// What programs may consist of.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most steps.
    pub steps: usize,
    /// Most inputs.
    pub inputs: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { steps: 10, inputs: 3 }
    }
}

/// The operations, dtypes or values that a generated program favours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// A bit of everything.
    Usual,
    /// Values that are replaced beside a product, a reduction, a scan, a gather or a scatter: numbers, one a
    /// row, one a column, whole ones. Their operands die with the plan, so results may take their memory.
    Replaced,
    /// Scans and reductions of axes of 1 to 5 elements, with as many rows as vectors have lanes or nearly.
    Short,
    /// Magnitudes from 1e-30 to 1e30, and masks of large finite numbers.
    Magnitudes,
    /// Every float a half.
    Halves,
    /// No element, or one, along most axes.
    Tiny,
}

impl Theme {
    /// Every one, the usual one more often.
    const CYCLE: [Theme; 8] = [
        Theme::Usual,
        Theme::Replaced,
        Theme::Short,
        Theme::Usual,
        Theme::Magnitudes,
        Theme::Halves,
        Theme::Usual,
        Theme::Tiny,
    ];

    /// That of a seed.
    pub fn of(seed: u64) -> Theme {
        Theme::CYCLE[seed as usize % Theme::CYCLE.len()]
    }
}

/// The program of a seed.
pub fn program(seed: u64, limits: Limits) -> Program {
    let mut rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5a5a);
    program_of(Theme::of(seed), &mut rng, limits)
}

/// A random program with a theme.
pub fn program_of(theme: Theme, rng: &mut Rng, limits: Limits) -> Program {
    if theme == Theme::Replaced {
        let mut sizes = Rng::new(rng.bits());
        return replaced(rng, &mut sizes);
    }
    let mut values: Vec<Array> = Vec::new();
    let base = extents(rng, theme);
    for _ in 0..1 + rng.below(limits.inputs) {
        let dims = if rng.one_in(3) { extents(rng, theme) } else { related(rng, &base) };
        let dtype = dtype(rng, theme);
        values.push(input(rng, theme, dtype, &dims));
    }
    let inputs = values.clone();
    let mut steps = Vec::new();
    let n_steps = 1 + rng.below(limits.steps);
    while steps.len() < n_steps {
        let Some(step) = step(rng, theme, &values) else { continue };
        let value = step.eval(&values);
        assert!(value.numel() <= 4 * LARGEST, "{step:?}");
        values.push(value);
        steps.push(step);
    }
    let mut outputs = vec![values.len() - 1];
    while rng.one_in(3) {
        outputs.push(inputs.len() + rng.below(steps.len()));
    }
    outputs.sort_unstable();
    outputs.dedup();
    Program { inputs, steps, outputs }.pruned()
}

fn dtype(rng: &mut Rng, theme: Theme) -> DType {
    match (theme, rng.below(3)) {
        (Theme::Halves, 1..) => *rng.pick(&[DType::F16, DType::BF16]),
        (Theme::Short | Theme::Magnitudes, 1) => *rng.pick(&[DType::F32, DType::F32, DType::F64]),
        (_, 0) => *rng.pick(DType::ALL),
        (_, 1) => *rng.pick(&[DType::F32, DType::I32, DType::I64]),
        _ => DType::F32,
    }
}

/// Zero to three extents, rarely zero-sized.
fn extents(rng: &mut Rng, theme: Theme) -> Vec<usize> {
    let usual = |rng: &mut Rng| match theme {
        Theme::Tiny => *rng.pick(&[0, 1, 1, 1, 1, 1, 2]),
        _ if rng.one_in(40) => 0,
        _ => *rng.pick(&[1, 2, 3, 3, 4, 5, 7]),
    };
    if theme == Theme::Short {
        // About as many rows as one, two, or eight vectors of 4, 8 or 16 lanes have.
        let lanes = 4 << rng.below(3) << *rng.pick(&[0, 0, 1, 3]);
        let rows = (lanes + rng.below(3)).saturating_sub(1);
        let mut dims = vec![rows.min(LARGEST / 5), 1 + rng.below(5)];
        dims.rotate_left(usize::from(rng.one_in(4)));
        return dims;
    }
    let rank = rng.below(4);
    (0..rank).map(|_| usual(rng)).collect()
}

/// Extents that broadcast with `base`.
fn related(rng: &mut Rng, base: &[usize]) -> Vec<usize> {
    let from = rng.below(base.len() + 1);
    let from = if rng.one_in(2) { 0 } else { from };
    base[from..].iter().map(|&d| if rng.one_in(4) { 1 } else { d }).collect()
}

/// Whole numbers and halves mostly, so that arithmetic stays exact for long; some random floats.
fn input(rng: &mut Rng, theme: Theme, dtype: DType, dims: &[usize]) -> Array {
    if theme == Theme::Magnitudes && dtype.is_float() && !rng.one_in(4) {
        return of_any_magnitude(rng, dtype, dims);
    }
    if rng.one_in(3) {
        return moderate(dtype, dims, rng);
    }
    let value = |_| match dtype.is_float() {
        true => Val::point(rng.range(-6, 6) as f64 / 2.0),
        false => Val::Int(oracle::wrap(dtype, rng.range(-4, 6) as i128)),
    };
    let data = (0..dims.iter().product()).map(value).collect();
    Array::new(dtype, dims, data)
}

/// Numbers of one magnitude, of many, or zeros with the large negative numbers that masks are made of.
fn of_any_magnitude(rng: &mut Rng, dtype: DType, dims: &[usize]) -> Array {
    let highest = if dtype.size() == 2 { 4 } else { 30 };
    let (kind, scale) = (rng.below(3), rng.range(-highest, highest));
    let mask = *rng.pick(&[-1e4, -largest(dtype).min(1e9), -largest(dtype)]);
    let value = |_| {
        let x = match kind {
            0 if rng.one_in(2) => mask,
            0 => 0.0,
            1 => rng.between(-4.0, 4.0) * 10f64.powi(scale as i32),
            _ => rng.between(-4.0, 4.0) * 10f64.powi(rng.range(-highest, highest) as i32),
        };
        Val::point(round(dtype, x))
    };
    let data = (0..dims.iter().product()).map(value).collect();
    Array::new(dtype, dims, data)
}

/// One of the programs that differ in sizes alone: what it does follows from `seed`, its extents and values
/// from `size` as well.
pub fn sized(seed: u64, size: u64) -> Program {
    let (mut rng, mut sizes) = (Rng::new(seed ^ 0x51ed), Rng::new(seed.rotate_left(32) ^ size));
    // Both are drawn from the same sources in the same order, whatever the extents.
    match rng.one_in(2) {
        true => replaced(&mut rng, &mut sizes),
        false => rows(&mut rng, &mut sizes),
    }
}

/// A chain of maps, scans and reductions of rows and columns. Extents and values are drawn from `sizes`.
fn rows(rng: &mut Rng, sizes: &mut Rng) -> Program {
    let dtype = *rng.pick(&[DType::F32, DType::F32, DType::F64, DType::F16]);
    let dims = [1 + sizes.below(66), 1 + sizes.below(9)];
    let inputs = [dims.to_vec(), vec![dims[0], 1], vec![dims[1]], vec![]];
    let inputs: Vec<Array> =
        inputs.iter().map(|dims| input(sizes, Theme::Usual, dtype, dims)).collect();
    let (mut steps, mut last) = (Vec::new(), 0);
    for _ in 0..2 + rng.below(6) {
        let (axis, other) = (rng.below(2), 1 + rng.below(3));
        let kind = *rng.pick(&[Reduction::Sum, Reduction::Max, Reduction::Min]);
        let step = match rng.below(8) {
            0 => Step::Scan(*rng.pick(SCANS), last, axis),
            1 => Step::Softmax(last, axis),
            2 => Step::LogCumsumExp(last, axis),
            3 => {
                steps.push(Step::Reduce(kind, last, 1 << axis, true));
                Step::Binary(BinaryOp::Sub, last, inputs.len() + steps.len() - 1)
            }
            4 => Step::Unary(*rng.pick(&[UnaryOp::Tanh, UnaryOp::Sin, UnaryOp::Abs]), last),
            5 => Step::Flip(last, 1 << axis),
            6 => Step::Contiguous(last),
            _ => Step::Binary(*rng.pick(&[BinaryOp::Add, BinaryOp::Mul]), last, other),
        };
        steps.push(step);
        last = inputs.len() + steps.len() - 1;
    }
    Program { inputs, steps, outputs: vec![last] }.pruned()
}

/// A program that starts with a product of matrices, a reduction, a scan, a softmax or a selection. It replaces
/// 1 to 3 inputs that broadcast to the result by scaled, shifted or squared ones, and combines them with the
/// result. Outputs are replacements and combinations. Extents and elements of inputs are drawn from `sizes`, all
/// else from `rng`.
fn replaced(rng: &mut Rng, sizes: &mut Rng) -> Program {
    let dtype =
        *rng.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::BF16]);
    let batch = if rng.one_in(3) { vec![1 + sizes.below(4)] } else { vec![] };
    let room = LARGEST / batch.iter().product::<usize>().max(1);
    let n = *sizes.pick(&[1, 2, 3, 5, 8, 9, 16, 17, 30]);
    let m = (1 + sizes.below(66)).min(room / n);
    let k = 1 + sizes.below(40);
    let of = |dims: &[usize]| [&batch[..], dims].concat();
    let mut values = vec![];
    let first = match rng.below(8) {
        0..=3 => {
            values.push(input(sizes, Theme::Usual, dtype, &of(&[m, k])));
            let shared = rng.one_in(2);
            let dims = if shared { vec![k, n] } else { of(&[k, n]) };
            values.push(input(sizes, Theme::Usual, dtype, &dims));
            Step::Matmul(0, 1)
        }
        4 => {
            let k = 1 + k % (4 * room / (m * n)).max(1);
            values.push(input(sizes, Theme::Usual, dtype, &of(&[m, n, k])));
            let kind = *rng.pick(&[Reduction::Sum, Reduction::Max, Reduction::Prod]);
            Step::Reduce(kind, 0, 1 << (batch.len() + 2), false)
        }
        kind => {
            values.push(input(sizes, Theme::Usual, dtype, &of(&[m, n])));
            let axis = rng.below(batch.len() + 2);
            match kind {
                5 => Step::Scan(*rng.pick(SCANS), 0, axis),
                6 => Step::Softmax(0, axis),
                _ => {
                    let extent = values[0].dims[axis];
                    let at: Vec<i64> = (0..extent).map(|_| sizes.below(extent) as i64).collect();
                    values.push(Array::ints(DType::I64, &[extent], &at));
                    Step::Select(0, axis, 1)
                }
            }
        }
    };
    let shape = first.eval(&values).dims;
    let olds = 1 + rng.below(3);
    let from = values.len();
    for _ in 0..olds {
        let dims: Vec<usize> = shape.iter().map(|&d| if rng.one_in(2) { 1 } else { d }).collect();
        // Leading axes of extent 1 may be left out.
        let lead = dims.iter().take_while(|&&d| d == 1).count();
        let dims = dims[if rng.one_in(2) { lead } else { 0 }..].to_vec();
        values.push(input(sizes, Theme::Usual, dtype, &dims));
    }
    let inputs = values.clone();
    let mut steps = vec![first];
    let mut outputs = vec![];
    let news = (0..olds).map(|old| {
        let old = from + old;
        let number = rng.range(-3, 3) as f64 / 2.0;
        steps.push(match rng.below(3) {
            0 => Step::Number(BinaryOp::Mul, old, number),
            1 => Step::Number(BinaryOp::Add, old, number),
            _ => Step::Binary(BinaryOp::Mul, old, old),
        });
        inputs.len() + steps.len() - 1
    });
    let news: Vec<usize> = news.collect();
    outputs.extend(news.iter().filter(|_| !rng.one_in(4)));
    let mut last = inputs.len();
    for new in news {
        let op = *rng.pick(&[BinaryOp::Mul, BinaryOp::Add, BinaryOp::Sub]);
        steps.push(Step::Binary(op, last, new));
        last = inputs.len() + steps.len() - 1;
        outputs.extend(rng.one_in(4).then_some(last));
    }
    outputs.push(last);
    outputs.sort_unstable();
    outputs.dedup();
    Program { inputs, steps, outputs }.pruned()
}

fn broadcasts(x: &[usize], y: &[usize]) -> bool {
    let fits = x.iter().rev().zip(y.iter().rev()).all(|(&a, &b)| a == b || a == 1 || b == 1);
    fits && {
        let dims = oracle::movement::broadcast(x, y);
        dims.iter().product::<usize>() <= LARGEST
    }
}

/// One step on the values so far, or `None` if the draw does not fit.
fn step(rng: &mut Rng, theme: Theme, values: &[Array]) -> Option<Step> {
    // Recent values are likelier, so that chains grow.
    let n = values.len();
    let x = if rng.one_in(2) { n - 1 } else { rng.below(n) };
    let a = &values[x];
    if theme == Theme::Short && rng.one_in(2) {
        return reduction(rng, a, x);
    }
    match rng.below(16) {
        0 | 1 => {
            let op = *rng.pick(UnaryOp::ALL);
            (op != UnaryOp::Not || !a.dtype.is_float()).then_some(Step::Unary(op, x))
        }
        2..=4 => binary(rng, values, x),
        5 => {
            let op = *rng.pick(&[BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max]);
            Some(Step::Number(op, x, rng.range(-4, 4) as f64 / 2.0))
        }
        6 => {
            let (y, c) = (rng.below(n), rng.below(n));
            let fits = broadcasts(&a.dims, &values[y].dims);
            let dims = fits.then(|| oracle::movement::broadcast(&a.dims, &values[y].dims))?;
            broadcasts(&dims, &values[c].dims).then_some(Step::Where(c, x, y))
        }
        7 => Some(Step::Cast(x, dtype(rng, theme))),
        8..=10 => movement(rng, a, x),
        11 | 12 => reduction(rng, a, x),
        13 => contraction(rng, values, x),
        14 => indexing(rng, values, x),
        _ if rng.one_in(2) => Some(Step::Contiguous(x)),
        _ => {
            let y = rng.below(n);
            let b = &values[y];
            let axis = (a.rank() > 0).then(|| rng.below(a.rank()))?;
            let fits = a.rank() == b.rank()
                && (0..a.rank()).all(|i| i == axis || a.dims[i] == b.dims[i])
                && a.numel() + b.numel() <= LARGEST;
            fits.then_some(Step::Cat(x, y, axis))
        }
    }
}

fn binary(rng: &mut Rng, values: &[Array], x: usize) -> Option<Step> {
    let y = rng.below(values.len());
    let (x, y) = if rng.one_in(2) { (x, y) } else { (y, x) };
    let (a, b) = (&values[x], &values[y]);
    let op = *rng.pick(BinaryOp::ALL);
    let defined = oracle::binary_dtype(op, a.dtype, b.dtype).is_some();
    (defined && broadcasts(&a.dims, &b.dims)).then_some(Step::Binary(op, x, y))
}

fn movement(rng: &mut Rng, a: &Array, x: usize) -> Option<Step> {
    let rank = a.rank();
    match rng.below(7) {
        0 => {
            let mut order: Vec<usize> = (0..rank).collect();
            for i in (1..rank).rev() {
                order.swap(i, rng.below(i + 1));
            }
            Some(Step::Permute(x, order))
        }
        1 => Some(Step::Flip(x, rng.below(1 << rank) as u16)),
        2 => {
            let padding: Vec<_> = (0..rank).map(|_| (rng.below(3), rng.below(3))).collect();
            let size = a.dims.iter().zip(&padding).map(|(d, p)| d + p.0 + p.1);
            (size.product::<usize>() <= LARGEST).then_some(Step::Pad(x, padding))
        }
        3 => {
            let mut range = |&d: &usize| {
                let start = rng.below(d.min(2) + 1);
                (start, d - rng.below((d - start).min(2) + 1))
            };
            let ranges = a.dims.iter().map(&mut range).collect();
            Some(Step::Shrink(x, ranges))
        }
        4 => {
            let mut dims: Vec<usize> =
                a.dims.iter().map(|&d| if d == 1 { 1 + rng.below(4) } else { d }).collect();
            if rng.one_in(2) && rank < 4 {
                dims.insert(0, 1 + rng.below(3));
            }
            (dims.iter().product::<usize>() <= LARGEST).then_some(Step::Expand(x, dims))
        }
        5 if rank > 0 => {
            let axis = rng.below(rank);
            Some(Step::Stride(x, axis, rng.below(a.dims[axis] + 1), 1 + rng.below(3)))
        }
        _ => Some(Step::Reshape(x, reshaped(rng, a))),
    }
}

/// Random extents for the same number of elements.
fn reshaped(rng: &mut Rng, a: &Array) -> Vec<usize> {
    let mut rest = a.numel();
    if rest == 0 {
        return vec![1 + rng.below(3), 0];
    }
    let mut dims = Vec::new();
    for prime in [2, 3, 5, 7] {
        while rest.is_multiple_of(prime) && rng.below(3) > 0 && dims.len() < 3 {
            dims.push(prime);
            rest /= prime;
        }
    }
    if rest > 1 || dims.is_empty() || rng.one_in(3) {
        dims.push(rest);
    }
    let n = dims.len();
    dims.rotate_left(rng.below(n));
    dims
}

/// Operations that running combinations are made of.
const SCANS: &[BinaryOp] =
    &[BinaryOp::Add, BinaryOp::Add, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min];

fn reduction(rng: &mut Rng, a: &Array, x: usize) -> Option<Step> {
    let rank = a.rank();
    if rank == 0 {
        return None;
    }
    let axis = rng.below(rank);
    match rng.below(12) {
        0 if a.dims[axis] > 0 => {
            Some(Step::Position(*rng.pick(&[BinaryOp::Max, BinaryOp::Min]), x, axis))
        }
        1 => Some(Step::Scan(*rng.pick(SCANS), x, axis)),
        2 if a.dtype != DType::Bool => Some(Step::Scan(*rng.pick(SCANS), x, axis)),
        3 => Some(Step::Softmax(x, axis)),
        4 if a.dtype.is_float() => Some(Step::LogCumsumExp(x, axis)),
        _ => {
            use Reduction::{All, Any, Max, Min, Prod, Sum};
            let kind = *rng.pick(&[Sum, Sum, Sum, Max, Max, Min, Prod, Any, All]);
            let mask = 1 << axis | rng.below(1 << rank) as u16;
            Some(Step::Reduce(kind, x, mask, rng.one_in(2)))
        }
    }
}

fn contraction(rng: &mut Rng, values: &[Array], x: usize) -> Option<Step> {
    let y = rng.below(values.len());
    let (a, b) = (&values[x].dims, &values[y].dims);
    if a.is_empty() || b.is_empty() || a.len() > 4 || b.len() > 4 {
        return None;
    }
    let inner = if b.len() == 1 { b[0] } else { b[b.len() - 2] };
    let lead = |d: &[usize]| d[..d.len().saturating_sub(2)].to_vec();
    let fits = a[a.len() - 1] == inner && broadcasts(&lead(a), &lead(b));
    let size: usize = a.iter().chain(b).product();
    (fits && size <= 16 * LARGEST).then_some(Step::Matmul(x, y))
}

fn indexing(rng: &mut Rng, values: &[Array], x: usize) -> Option<Step> {
    let a = &values[x];
    let i = rng.below(values.len());
    let index = &values[i];
    if a.rank() == 0 || !index.dtype.is_int() {
        return None;
    }
    let axis = rng.below(a.rank());
    let same_rank = index.rank() == a.rank();
    if same_rank && (0..a.rank()).all(|k| k == axis || index.dims[k] <= a.dims[k]) {
        let s = rng.below(values.len());
        let scatters = values[s].dims == index.dims
            && values[s].dtype == a.dtype
            && (0..a.rank()).all(|k| k == axis || index.dims[k] == a.dims[k]);
        if scatters {
            return Some(Step::ScatterAdd(x, axis, i, s));
        }
        return Some(Step::Gather(x, axis, i));
    }
    let size = a.numel() / a.dims[axis].max(1) * index.numel();
    (index.rank() == 1 && size <= LARGEST).then_some(Step::Select(x, axis, i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_program() {
        let print = |seed| program(seed, Limits::default()).to_string();
        assert_eq!(print(5), print(5));
        assert_ne!(print(5), print(6));
    }

    #[test]
    fn most_elements_are_certain_or_bounded() {
        let (mut known, mut all) = (0, 0);
        for seed in 0..2000 {
            let program = program(seed, Limits::default());
            let values = program.eval();
            for &output in &program.outputs {
                all += values[output].numel();
                known += values[output].data.iter().filter(|v| **v != Val::Unknown).count();
            }
        }
        assert!(known * 10 >= all * 8, "only {known} of {all} elements can be checked");
    }

    #[test]
    fn every_kind_of_step_occurs() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..2000 {
            for step in program(seed, Limits::default()).steps {
                let name = format!("{step:?}");
                seen.insert(name.split('(').next().unwrap_or_default().to_owned());
            }
        }
        assert_eq!(seen.len(), 23, "{seen:?}");
    }
}
