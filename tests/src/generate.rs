//! Random programs over the public tensor interface, as a function of a seed.
//!
//! The generator evaluates with the oracle as it goes, so it knows every shape, stays below a
//! size, and can prefer values that are still certain. Extents are small and odd; every op of
//! the tables, every dtype and every kind of step occurs.

use crate::oracle::{Array, Val};
use crate::program::{Program, Reduction, Step};
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

/// The program of a seed.
pub fn program(seed: u64, limits: Limits) -> Program {
    let mut rng = Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5a5a);
    let mut values: Vec<Array> = Vec::new();
    let base = extents(&mut rng);
    for _ in 0..1 + rng.below(limits.inputs) {
        let dims = if rng.one_in(3) { extents(&mut rng) } else { related(&mut rng, &base) };
        let dtype = dtype(&mut rng);
        values.push(input(&mut rng, dtype, &dims));
    }
    let inputs = values.clone();
    let mut steps = Vec::new();
    let n_steps = 1 + rng.below(limits.steps);
    while steps.len() < n_steps {
        let Some(step) = step(&mut rng, &values) else { continue };
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

fn dtype(rng: &mut Rng) -> DType {
    match rng.below(3) {
        0 => *rng.pick(DType::ALL),
        1 => *rng.pick(&[DType::F32, DType::I32, DType::I64]),
        _ => DType::F32,
    }
}

/// Zero to three extents, rarely zero-sized.
fn extents(rng: &mut Rng) -> Vec<usize> {
    let rank = rng.below(4);
    (0..rank).map(|_| if rng.one_in(40) { 0 } else { *rng.pick(&[1, 2, 3, 3, 4, 5, 7]) }).collect()
}

/// Extents that broadcast with `base`.
fn related(rng: &mut Rng, base: &[usize]) -> Vec<usize> {
    let from = rng.below(base.len() + 1);
    let from = if rng.one_in(2) { 0 } else { from };
    base[from..].iter().map(|&d| if rng.one_in(4) { 1 } else { d }).collect()
}

/// Whole numbers and halves mostly, so that arithmetic stays exact for long; some random floats.
fn input(rng: &mut Rng, dtype: DType, dims: &[usize]) -> Array {
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

fn broadcasts(x: &[usize], y: &[usize]) -> bool {
    let fits = x.iter().rev().zip(y.iter().rev()).all(|(&a, &b)| a == b || a == 1 || b == 1);
    fits && {
        let dims = oracle::movement::broadcast(x, y);
        dims.iter().product::<usize>() <= LARGEST
    }
}

/// One step on the values so far, or `None` if the draw does not fit.
fn step(rng: &mut Rng, values: &[Array]) -> Option<Step> {
    // Recent values are likelier, so that chains grow.
    let n = values.len();
    let x = if rng.one_in(2) { n - 1 } else { rng.below(n) };
    let a = &values[x];
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
        7 => Some(Step::Cast(x, dtype(rng))),
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

fn reduction(rng: &mut Rng, a: &Array, x: usize) -> Option<Step> {
    let rank = a.rank();
    if rank == 0 {
        return None;
    }
    let axis = rng.below(rank);
    match rng.below(8) {
        0 if a.dims[axis] > 0 => {
            Some(Step::Position(*rng.pick(&[BinaryOp::Max, BinaryOp::Min]), x, axis))
        }
        1 => Some(Step::Cumsum(x, axis)),
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
        assert_eq!(seen.len(), 21, "{seen:?}");
    }
}
