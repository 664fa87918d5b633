//! Attention as one launch: whatever a device makes of it, against sums in `f64`.
//!
//! Sizes are such that devices with blocks of rows and columns have several and a remainder. The
//! cases are those that a running maximum can get wrong: rows that see nothing at first, or at all,
//! minus infinity in the scores, large scores, and scores that grow along a row.

use crate::bounds::FORMULA;
use crate::tolerance::formula_error;
use crate::{Array, Check, Val};
use zyx_core::{Attention, DType, Device, Result, Stats, Tensor};

/// Sizes: batch, heads of queries, queries, keys, width, width of values, queries' heads for each
/// of keys.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    heads: usize,
    queries: usize,
    keys: usize,
    width: usize,
    values: usize,
    group: usize,
}

const SIZES: Sizes =
    Sizes { batch: 2, heads: 2, queries: 70, keys: 197, width: 8, values: 12, group: 1 };

/// Even numbers of about unit size, the same for everybody.
fn numbers(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7919 + seed * 104_729) % 2003) as f64 / 512.0 - 1002.0 / 512.0).collect()
}

/// What is added to the score of a query and a key.
type Bias<'a> = dyn Fn(usize, usize) -> f64 + 'a;

struct Inputs {
    sizes: Sizes,
    q: Vec<f64>,
    k: Vec<f64>,
    v: Vec<f64>,
}

impl Inputs {
    fn new(sizes: Sizes, scale: f64) -> Inputs {
        let Sizes { batch, heads, queries, keys, width, values, group } = sizes;
        let q = numbers(batch * heads * queries * width, 1).iter().map(|x| x * scale).collect();
        let k = numbers(batch * heads / group * keys * width, 2);
        let v = numbers(batch * heads / group * keys * values, 3);
        Inputs { sizes, q, k, v }
    }

    fn tensors(&self, check: &Check<'_>, dtype: DType) -> [Tensor; 3] {
        let Sizes { batch, heads, queries, keys, width, values, group } = self.sizes;
        let input = |data: &[f64], dims: [usize; 4]| {
            check.input(&Array::reals(DType::F32, &dims, data)).cast(dtype)
        };
        [
            input(&self.q, [batch, heads, queries, width]),
            input(&self.k, [batch, heads / group, keys, width]),
            input(&self.v, [batch, heads / group, keys, values]),
        ]
    }

    /// The result in `f64`; a row that sees nothing gives `empty`.
    fn attend(&self, bias: &Bias<'_>, empty: f64) -> Vec<f64> {
        let Sizes { batch, heads, queries, keys, width, values, group } = self.sizes;
        let mut out = Vec::new();
        for row in 0..batch * heads * queries {
            let (head, query) = (row / queries, row % queries);
            let head = head / heads * (heads / group) + head % heads / group;
            let key = |j: usize| &self.k[(head * keys + j) * width..][..width];
            let own = &self.q[row * width..][..width];
            let score = |j: usize| {
                let product: f64 = own.iter().zip(key(j)).map(|(a, b)| a * b).sum();
                product / (width as f64).sqrt() + bias(query, j)
            };
            let scores: Vec<f64> = (0..keys).map(score).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if top == f64::NEG_INFINITY {
                out.extend(std::iter::repeat_n(empty, values));
                continue;
            }
            let e: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let sum: f64 = e.iter().sum();
            let value = |n: usize| {
                let products = (0..keys).map(|j| e[j] * self.v[(head * keys + j) * values + n]);
                products.sum::<f64>() / sum
            };
            out.extend((0..values).map(value));
        }
        out
    }

    fn expect(&self, bias: &Bias<'_>, empty: f64, dtype: DType) -> Array {
        let Sizes { batch, heads, queries, values, .. } = self.sizes;
        let want = self.attend(bias, empty);
        let dims = [batch, heads, queries, values];
        let error = formula_error(dtype, FORMULA, 2.0);
        Array::reals(DType::F64, &dims, &want).map(dtype, |x| match x {
            Val::Real(x, _) if x.is_finite() => Val::about(dtype, x, error),
            other => other,
        })
    }
}

fn attend([q, k, v]: &[Tensor; 3], options: Attention<'_>) -> Result<Tensor> {
    q.scaled_dot_product_attention(k, v, options)
}

/// Computes attention and counts: one launch, which the driver received as such, and no memory of
/// the size of the scores. So it has to be where the device streams whatever the size. The operands
/// have been computed. A library computes blocks in jobs of their own.
fn is_one_launch(check: &mut Check<'_>, what: &str, y: &Result<Tensor>, device: &Device) {
    let Ok(y) = y else { return };
    let Some(streams) = device.caps().flash.filter(|streams| streams.least == 0) else { return };
    let run = || -> Result<(Stats, u64)> {
        device.synchronize()?;
        let before = device.stats();
        device.reset_peak();
        y.realize()?;
        device.synchronize()?;
        let stats = device.stats();
        Ok((stats.since(&before), stats.peak_bytes - before.live_bytes))
    };
    let (stats, bytes) = match run() {
        Ok(counted) => counted,
        Err(error) => return check.fail(format!("{what}: {error}")),
    };
    let submits = if streams.library { 1 } else { stats.submits };
    let counted = (stats.launches, submits, stats.temps);
    check.that(counted == (1, 1, 0), format!("{what}: launches, submissions, temps {counted:?}"));
    let scores = SIZES.batch * SIZES.heads * SIZES.queries * SIZES.keys * DType::F32.size();
    check.that(bytes < scores as u64 / 4, format!("{what}: {bytes} bytes, scores have {scores}"));
}

/// Masks of all kinds, groups of heads, and what a user writes by hand.
pub fn streamed(device: &Device) {
    let mut check = Check::new(device);
    let inputs = Inputs::new(SIZES, 1.0);
    let x = inputs.tensors(&check, DType::F32);
    let (rows, columns) = (SIZES.queries, SIZES.keys);
    let hidden = f64::NEG_INFINITY;
    let mut compare = |name: &str, y: Result<Tensor>, want: Array| {
        is_one_launch(&mut check, name, &y, device);
        check.equal(name, y, &want);
    };
    compare("plain", attend(&x, Attention::default()), inputs.expect(&|_, _| 0.0, 0.0, DType::F32));
    let seen = |i: usize, j: usize| if j <= i { 0.0 } else { hidden };
    let causal = Attention { causal: true, ..Default::default() };
    compare("causal", attend(&x, causal), inputs.expect(&seen, 0.0, DType::F32));
    // Rows 0, 7, 14 .. see nothing; others nothing in the first 150 columns but every fifth row.
    let allowed = |i: usize, j: usize| !i.is_multiple_of(7) && (i.is_multiple_of(5) || j >= 150);
    let flags: Vec<u8> =
        (0..rows * columns).map(|at| u8::from(allowed(at / columns, at % columns))).collect();
    let mask = Tensor::from_slice(&flags, [rows, columns], device);
    let mask = mask.map(|mask| mask.cast(DType::Bool));
    if let Ok(mask) = mask.and_then(|mask| mask.realize().map(|()| mask)) {
        let bias = |i: usize, j: usize| if allowed(i, j) { 0.0 } else { hidden };
        let masked = Attention { mask: Some(&mask), ..Default::default() };
        compare("masked", attend(&x, masked), inputs.expect(&bias, 0.0, DType::F32));
    }
    let slope = |i: usize, j: usize| if (i + j) % 11 == 3 { hidden } else { j as f64 / 64.0 };
    let numbers: Vec<f32> =
        (0..rows * columns).map(|at| slope(at / columns, at % columns) as f32).collect();
    if let Ok(mask) = Tensor::from_slice(&numbers, [1, 1, rows, columns], device) {
        let biased = Attention { mask: Some(&mask), ..Default::default() };
        compare("biased", attend(&x, biased), inputs.expect(&slope, 0.0, DType::F32));
    }
    let by_hand = || -> Result<Tensor> {
        let scores = x[0].matmul(&x[1].t())?.mul(1.0 / (SIZES.width as f64).sqrt())?;
        scores.softmax(-1)?.matmul(&x[2])
    };
    compare("by hand", by_hand(), inputs.expect(&|_, _| 0.0, 0.0, DType::F32));
    check.finish();
}

/// Groups of heads, heads beside positions in memory, halves, large scores.
pub fn arranged(device: &Device) {
    let mut check = Check::new(device);
    let sizes = Sizes { heads: 4, group: 2, ..SIZES };
    let grouped = Inputs::new(sizes, 1.0);
    let x = grouped.tensors(&check, DType::F32);
    let options = || Attention { grouped: true, ..Default::default() };
    let want = grouped.expect(&|_, _| 0.0, 0.0, DType::F32);
    let y = attend(&x, options());
    is_one_launch(&mut check, "grouped", &y, device);
    check.equal("grouped", y, &want);
    let inputs = Inputs::new(SIZES, 1.0);
    let seen = |i: usize, j: usize| if j <= i { 0.0 } else { f64::NEG_INFINITY };
    // As a layer has it: [batch, positions, heads, width], heads moved by a permutation.
    let turned = || -> Result<Tensor> {
        let x = inputs.tensors(&check, DType::F32);
        let mut moved = Vec::new();
        for x in x {
            let stored = x.permute([0, 2, 1, 3])?.contiguous();
            stored.realize()?;
            moved.push(stored.permute([0, 2, 1, 3])?);
        }
        let [q, k, v] = &moved[..] else { unreachable!("three tensors") };
        let causal = Attention { causal: true, ..Default::default() };
        q.scaled_dot_product_attention(k, v, causal)
    };
    let y = turned();
    is_one_launch(&mut check, "turned", &y, device);
    check.equal("turned", y, &inputs.expect(&seen, 0.0, DType::F32));
    let large = Inputs::new(SIZES, 200.0);
    let x = large.tensors(&check, DType::F32);
    let y = attend(&x, Attention::default());
    if let Ok(y) = y.and_then(|y| y.to_vec::<f32>()) {
        check.that(y.iter().all(|x| x.is_finite() && x.abs() < 2.0), "large scores");
    }
    check.finish();
}
