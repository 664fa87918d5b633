//! Random differentiable programs: gradients of a device against forward differentiation in `f64`.
//!
//! The reference (`Dual`) carries the derivative by every element of every input beside each value,
//! eagerly and by the textbook, and shares no code with the library. Programs contain what selects:
//! extremes, sorting, clamping, pooling, positions, branches, of operands that are computed and that
//! have other users, and they read values midway. So a value that is compared with another result of
//! the same computation has to be the same bits, in whatever kernels both are computed.
//!
//! The reference runs a few times more with a relative error of some units of `f32` after each
//! operation. How far that moves a derivative is how much of it a device can be held to; a program
//! in which it moves much (two different values nearly tie, a difference cancels) decides nothing.
//!
//! `ZYX_SEED=n` runs that seed alone; `ZYX_PROGRAMS=n` sets how many are run.

use crate::Rng;
use std::fmt;
use zyx_core::{Device, Pool, Result, ScatterReduce, Tensor, cmath};

/// Relative error after each operation of a disturbed run: four units in the last place of `f32`.
const NOISE: f64 = 4.0 / (1 << 24) as f64;
/// Disturbed runs.
const RUNS: u64 = 3;
/// How much more than the disturbed runs a device may differ.
const MARGIN: f64 = 16.0;
/// What a device may differ by in any case, of the largest derivative.
const FLOOR: f64 = 2e-6;
/// A derivative that moves by more than this part of the largest decides nothing.
const UNSURE: f64 = 1e-3;
/// Most elements of a value, and the largest magnitude.
const LARGEST: usize = 64;
const HIGHEST: f64 = 20.0;

/// One call of a tensor method. Operands are positions of earlier values.
#[derive(Clone, Debug)]
enum Step {
    Unary(Unary, usize),
    /// `x * a + b`.
    Affine(usize, f64, f64),
    Binary(Binary, usize, usize),
    /// `x * y + z`.
    MulAdd(usize, usize, usize),
    Clamp(usize, f64, f64),
    /// `x` where `x < y`, else `z`.
    Branch(usize, usize, usize),
    Reduce(Reduction, usize, u16, bool),
    Softmax(usize, usize),
    Sort(usize, usize, bool),
    Median(usize, usize),
    Topk(usize, usize, usize),
    Cummax(usize, usize),
    Cumsum(usize, usize),
    /// Maxima of windows along the last of three axes.
    MaxPool(usize, usize, usize),
    /// Elements of the second where the first is largest along an axis.
    AtLargest(usize, usize, usize),
    /// Maxima of the first and of what is put to its places along axis 0.
    ScatterMax(usize, usize, Vec<i64>),
    Select(usize, usize, Vec<i64>),
    Matmul(usize, usize),
    Permute(usize, Vec<usize>),
    Reshape(usize, Vec<usize>),
    Flip(usize, usize),
    Pad(usize, Vec<(usize, usize)>),
    Shrink(usize, Vec<(usize, usize)>),
    Cat(usize, usize, usize),
    /// The value is computed before anything else is asked for.
    Read(usize),
}

#[derive(Clone, Copy, Debug)]
enum Unary {
    Sin,
    Tanh,
    Exp,
    Sigmoid,
    Square,
    Abs,
    Relu,
    Softplus,
}

#[derive(Clone, Copy, Debug)]
enum Binary {
    Add,
    Sub,
    Mul,
    Maximum,
    Minimum,
}

#[derive(Clone, Copy, Debug)]
enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    Var,
    LogSumExp,
}

/// Inputs, steps, and which values are weighed and summed in the end.
#[derive(Clone, Debug)]
struct Program {
    inputs: Vec<(Vec<usize>, Vec<f64>)>,
    steps: Vec<Step>,
    outputs: Vec<usize>,
    seed: u64,
}

/// Values with their derivatives by `n` variables each.
#[derive(Clone, Debug)]
struct Dual {
    dims: Vec<usize>,
    values: Vec<f64>,
    /// Row by row, one for each value.
    slopes: Vec<f64>,
    n: usize,
}

/// A run of the reference.
struct Run {
    noise: Option<Rng>,
    /// Whether something tied that may be resolved either way.
    tied: bool,
}

fn strides(dims: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis] * dims[axis];
    }
    strides
}

/// The positions of all elements of `dims`, in row-major order.
fn places(dims: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    let strides = strides(dims);
    (0..dims.iter().product()).map(move |flat: usize| {
        strides.iter().zip(dims).map(|(stride, d)| flat / stride % d).collect()
    })
}

fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let at = |d: &[usize], i: usize| if i + d.len() < rank { 1 } else { d[i + d.len() - rank] };
    let common = (0..rank).map(|i| match (at(a, i), at(b, i)) {
        (x, y) if x == y || y == 1 => Some(x),
        (1, y) => Some(y),
        _ => None,
    });
    common.collect()
}

impl Dual {
    /// Elements that are each a weighted sum of elements here, as far as derivatives go: for each
    /// its value and the parts.
    fn combined(&self, dims: Vec<usize>, elements: Vec<(f64, Vec<(usize, f64)>)>) -> Dual {
        mix(&[self], dims, elements.into_iter().map(|(v, parts)| (v, vec![parts])).collect())
    }

    /// Elements that are elements here.
    fn moved(&self, dims: Vec<usize>, from: Vec<usize>) -> Dual {
        let elements = from.into_iter().map(|i| (self.values[i], vec![(i, 1.0)])).collect();
        self.combined(dims, elements)
    }

    fn flat(&self, place: &[usize]) -> usize {
        strides(&self.dims).iter().zip(place).map(|(s, i)| s * i).sum()
    }

    fn expanded(&self, dims: &[usize]) -> Dual {
        let skipped = dims.len() - self.dims.len();
        let from = places(dims).map(|place| {
            let own: Vec<usize> =
                place[skipped..].iter().zip(&self.dims).map(|(&i, &d)| i.min(d - 1)).collect();
            self.flat(&own)
        });
        self.moved(dims.to_vec(), from.collect())
    }

    /// For each place of the axes that are kept, the elements along the others.
    fn grouped(&self, mask: u16) -> (Vec<usize>, Vec<Vec<usize>>) {
        let reduced = |axis: usize| mask >> axis & 1 == 1;
        let kept = self.dims.iter().enumerate().map(|(a, &d)| if reduced(a) { 1 } else { d });
        let kept: Vec<usize> = kept.collect();
        let mut groups = vec![Vec::new(); kept.iter().product()];
        let into = strides(&kept);
        for (flat, place) in places(&self.dims).enumerate() {
            let to = place.iter().enumerate().filter(|(a, _)| !reduced(*a));
            groups[to.map(|(a, i)| into[a] * i).sum::<usize>()].push(flat);
        }
        (kept, groups)
    }
}

/// Elements whose derivatives are weighted sums of those of several arrays.
fn mix(of: &[&Dual], dims: Vec<usize>, elements: Vec<(f64, Vec<Vec<(usize, f64)>>)>) -> Dual {
    let n = of[0].n;
    let mut slopes = vec![0.0; elements.len() * n];
    for ((_, parts), row) in elements.iter().zip(slopes.chunks_mut(n)) {
        for (x, parts) in of.iter().zip(parts) {
            for &(i, weight) in parts.iter().filter(|part| part.1 != 0.0) {
                let source = &x.slopes[i * n..(i + 1) * n];
                row.iter_mut().zip(source).for_each(|(to, from)| *to += weight * from);
            }
        }
    }
    Dual { dims, values: elements.iter().map(|e| e.0).collect(), slopes, n }
}

impl Run {
    /// The rounding of a computed value.
    fn rounded(&mut self, mut x: Dual) -> Dual {
        if let Some(rng) = &mut self.noise {
            let all = x.values.iter_mut().chain(&mut x.slopes);
            all.for_each(|v| *v *= 1.0 + NOISE * rng.between(-1.0, 1.0));
        }
        x
    }

    fn unary(&mut self, x: &Dual, f: impl Fn(f64) -> (f64, f64)) -> Dual {
        let element = |(i, &v): (usize, &f64)| (f(v).0, vec![(i, f(v).1)]);
        let y = x.combined(x.dims.clone(), x.values.iter().enumerate().map(element).collect());
        self.rounded(y)
    }

    fn binary(&mut self, x: &Dual, y: &Dual, f: impl Fn(f64, f64) -> (f64, f64, f64)) -> Dual {
        let dims = broadcast(&x.dims, &y.dims).expect("operands broadcast");
        let (x, y) = (x.expanded(&dims), y.expanded(&dims));
        let element = |i: usize| {
            let (value, dx, dy) = f(x.values[i], y.values[i]);
            (value, vec![vec![(i, dx)], vec![(i, dy)]])
        };
        let elements = (0..x.values.len()).map(element).collect();
        let z = mix(&[&x, &y], dims, elements);
        self.rounded(z)
    }

    /// Elements in the order of a comparison along an axis; equal ones with different derivatives
    /// might come in another.
    fn order(&mut self, x: &Dual, line: &[usize], descending: bool) -> Vec<usize> {
        let mut line = line.to_vec();
        line.sort_by(|&a, &b| {
            let order = x.values[a].total_cmp(&x.values[b]);
            if descending { order.reverse() } else { order }
        });
        for pair in line.windows(2) {
            self.tie(x, pair[0], pair[1]);
        }
        line
    }

    fn tie(&mut self, x: &Dual, a: usize, b: usize) {
        let row = |i: usize| &x.slopes[i * x.n..(i + 1) * x.n];
        self.tied |= a != b && x.values[a] == x.values[b] && row(a) != row(b);
    }

    fn reduce(&mut self, kind: Reduction, x: &Dual, mask: u16, keep: bool) -> Dual {
        let (kept, groups) = x.grouped(mask);
        let value = |i: &usize| x.values[*i];
        let elements = groups.iter().map(|group| {
            let n = group.len() as f64;
            let sum: f64 = group.iter().map(value).sum();
            let all = |f: &dyn Fn(f64) -> f64| group.iter().map(|&i| (i, f(x.values[i]))).collect();
            let extreme = |best: f64| {
                let ties = group.iter().filter(|i| x.values[**i] == best).count() as f64;
                (best, all(&|v| if v == best { 1.0 / ties } else { 0.0 }))
            };
            match kind {
                Reduction::Sum => (sum, all(&|_| 1.0)),
                Reduction::Mean => (sum / n, all(&|_| 1.0 / n)),
                Reduction::Max => extreme(group.iter().map(value).fold(f64::MIN, f64::max)),
                Reduction::Min => extreme(group.iter().map(value).fold(f64::MAX, f64::min)),
                Reduction::Var => {
                    let mean = sum / n;
                    let var = group.iter().map(|i| (value(i) - mean).powi(2)).sum::<f64>() / n;
                    (var, all(&|v| 2.0 * (v - mean) / n))
                }
                Reduction::LogSumExp => {
                    let total: f64 = group.iter().map(|i| value(i).exp()).sum();
                    (total.ln(), all(&|v| v.exp() / total))
                }
            }
        });
        let elements = elements.collect();
        let dims = if keep {
            kept
        } else {
            let left = x.dims.iter().enumerate().filter(|(axis, _)| mask >> axis & 1 == 0);
            left.map(|(_, &d)| d).collect()
        };
        let y = x.combined(dims, elements);
        self.rounded(y)
    }

    fn step(&mut self, step: &Step, v: &[Dual]) -> Dual {
        match step {
            // The derivative is taken from the rounded result, where it is flat a difference of
            // nearly equal numbers.
            Step::Unary(Unary::Tanh, x) => {
                let x = &v[*x];
                let y = self.unary(x, |x| (x.tanh(), 0.0));
                let element = |(i, &y): (usize, &f64)| (y, vec![(i, 1.0 - y * y)]);
                x.combined(x.dims.clone(), y.values.iter().enumerate().map(element).collect())
            }
            Step::Unary(op, x) => self.unary(&v[*x], |x| match op {
                Unary::Sin => (cmath::sin(x), cmath::cos(x)),
                Unary::Tanh => unreachable!("invariant: handled above"),
                Unary::Exp => (x.exp(), x.exp()),
                Unary::Sigmoid => (1.0 / (1.0 + (-x).exp()), 1.0 / (2.0 + x.exp() + (-x).exp())),
                Unary::Square => (x * x, 2.0 * x),
                Unary::Abs => (x.abs(), if x == 0.0 { 0.0 } else { x.signum() }),
                Unary::Relu => (x.max(0.0), if x > 0.0 { 1.0 } else { 0.0 }),
                Unary::Softplus => (x.exp().ln_1p(), 1.0 / (1.0 + (-x).exp())),
            }),
            Step::Affine(x, a, b) => self.unary(&v[*x], |x| (x * a + b, *a)),
            Step::Binary(op, x, y) => self.binary(&v[*x], &v[*y], |x, y| {
                let (more, less) = match x.partial_cmp(&y) {
                    Some(std::cmp::Ordering::Greater) => (1.0, 0.0),
                    Some(std::cmp::Ordering::Less) => (0.0, 1.0),
                    _ => (0.5, 0.5),
                };
                match op {
                    Binary::Add => (x + y, 1.0, 1.0),
                    Binary::Sub => (x - y, 1.0, -1.0),
                    Binary::Mul => (x * y, y, x),
                    Binary::Maximum => (x.max(y), more, less),
                    Binary::Minimum => (x.min(y), less, more),
                }
            }),
            Step::MulAdd(x, y, z) => {
                let product = self.binary(&v[*x], &v[*y], |x, y| (x * y, y, x));
                self.binary(&product, &v[*z], |x, y| (x + y, 1.0, 1.0))
            }
            Step::Clamp(x, low, high) => self.unary(&v[*x], |x| {
                let inside = if *low < x && x < *high { 1.0 } else { 0.0 };
                (x.clamp(*low, *high), inside)
            }),
            Step::Branch(x, y, z) => {
                let dims = broadcast(&v[*x].dims, &v[*y].dims).expect("operands broadcast");
                let dims = broadcast(&dims, &v[*z].dims).expect("operands broadcast");
                let [x, y, z] = [x, y, z].map(|i| v[*i].expanded(&dims));
                let element = |i: usize| match x.values[i] < y.values[i] {
                    true => (x.values[i], vec![vec![(i, 1.0)], vec![]]),
                    false => (z.values[i], vec![vec![], vec![(i, 1.0)]]),
                };
                mix(&[&x, &z], dims, (0..x.values.len()).map(element).collect())
            }
            Step::Reduce(kind, x, mask, keep) => self.reduce(*kind, &v[*x], *mask, *keep),
            Step::Softmax(x, axis) => {
                let total = self.reduce(Reduction::LogSumExp, &v[*x], 1 << axis, true);
                self.binary(&v[*x], &total, |x, y| ((x - y).exp(), (x - y).exp(), -(x - y).exp()))
            }
            Step::Sort(x, axis, descending) => {
                let x = &v[*x];
                let (_, groups) = x.grouped(1 << axis);
                let mut from = vec![0; x.values.len()];
                for line in groups {
                    let sorted = self.order(x, &line, *descending);
                    line.iter().zip(sorted).for_each(|(&to, source)| from[to] = source);
                }
                x.moved(x.dims.clone(), from)
            }
            Step::Median(x, axis) => {
                let x = &v[*x];
                let (kept, groups) = x.grouped(1 << axis);
                let middle = |line: &Vec<usize>| self.order(x, line, false)[(line.len() - 1) / 2];
                let from = groups.iter().map(middle).collect();
                let mut dims = kept;
                dims.remove(*axis);
                x.moved(dims, from)
            }
            Step::Topk(x, k, axis) => {
                let x = &v[*x];
                let (mut dims, groups) = x.grouped(1 << axis);
                let lines: Vec<_> = groups.iter().map(|line| self.order(x, line, true)).collect();
                dims[*axis] = *k;
                let into = strides(&dims);
                let from = places(&dims).map(|place| {
                    let others = place.iter().enumerate().filter(|(a, _)| a != axis);
                    let mut kept = dims.clone();
                    kept[*axis] = 1;
                    let own = strides(&kept);
                    let group: usize = others.map(|(a, i)| own[a] * i).sum();
                    debug_assert_eq!(into.len(), place.len());
                    lines[group][place[*axis]]
                });
                let from = from.collect();
                x.moved(dims.clone(), from)
            }
            Step::Cummax(x, axis) => {
                let x = &v[*x];
                let (_, groups) = x.grouped(1 << axis);
                let mut from = vec![0; x.values.len()];
                for line in groups {
                    let mut best = line[0];
                    for to in line {
                        self.tie(x, best, to);
                        best = if x.values[to] >= x.values[best] { to } else { best };
                        from[to] = best;
                    }
                }
                x.moved(x.dims.clone(), from)
            }
            Step::Cumsum(x, axis) => {
                let x = &v[*x];
                let (_, groups) = x.grouped(1 << axis);
                let mut elements = vec![(0.0, Vec::new()); x.values.len()];
                for line in groups {
                    for (i, &to) in line.iter().enumerate() {
                        let sum = line[..=i].iter().map(|&j| x.values[j]).sum();
                        elements[to] = (sum, line[..=i].iter().map(|&j| (j, 1.0)).collect());
                    }
                }
                let y = x.combined(x.dims.clone(), elements);
                self.rounded(y)
            }
            Step::MaxPool(x, kernel, stride) => {
                let x = &v[*x];
                let mut dims = x.dims.clone();
                dims[2] = (dims[2] - kernel) / stride + 1;
                let mut from = Vec::new();
                for place in places(&dims) {
                    let at = |k: usize| x.flat(&[place[0], place[1], place[2] * stride + k]);
                    let mut best = at(0);
                    for k in 1..*kernel {
                        self.tie(x, best, at(k));
                        best = if x.values[at(k)] > x.values[best] { at(k) } else { best };
                    }
                    from.push(best);
                }
                x.moved(dims, from)
            }
            Step::AtLargest(x, y, axis) => {
                let (x, y) = (&v[*x], &v[*y]);
                let (kept, groups) = x.grouped(1 << axis);
                let first = |line: &Vec<usize>| {
                    let best = line.iter().map(|&i| x.values[i]).fold(f64::MIN, f64::max);
                    *line.iter().find(|&&i| x.values[i] == best).expect("one is the largest")
                };
                y.moved(kept, groups.iter().map(first).collect())
            }
            Step::ScatterMax(x, src, index) => {
                let (x, src) = (&v[*x], &v[*src]);
                let row: usize = x.dims[1..].iter().product();
                let element = |i: usize| {
                    let updates = index.iter().enumerate();
                    let mine = updates.filter(|(_, to)| **to as usize == i / row);
                    let mine: Vec<usize> = mine.map(|(k, _)| k * row + i % row).collect();
                    let best = mine.iter().map(|&k| src.values[k]).fold(x.values[i], f64::max);
                    let own = (x.values[i] == best) as usize;
                    let winners: Vec<usize> =
                        mine.into_iter().filter(|&k| src.values[k] == best).collect();
                    let share = 1.0 / (own + winners.len()) as f64;
                    let base = if own == 1 { vec![(i, share)] } else { vec![] };
                    (best, vec![base, winners.into_iter().map(|k| (k, share)).collect()])
                };
                mix(&[x, src], x.dims.clone(), (0..x.values.len()).map(element).collect())
            }
            Step::Select(x, axis, index) => {
                let x = &v[*x];
                let mut dims = x.dims.clone();
                dims[*axis] = index.len();
                let from = places(&dims).map(|mut place| {
                    place[*axis] = index[place[*axis]] as usize;
                    x.flat(&place)
                });
                let from = from.collect();
                x.moved(dims.clone(), from)
            }
            Step::Matmul(x, y) => {
                let (x, y) = (&v[*x], &v[*y]);
                let (n, k, m) = (x.dims[0], x.dims[1], y.dims[1]);
                let element = |i: usize| {
                    let pair = |j: usize| (i / m * k + j, j * m + i % m);
                    let value = (0..k).map(|j| x.values[pair(j).0] * y.values[pair(j).1]).sum();
                    let to_x = (0..k).map(|j| (pair(j).0, y.values[pair(j).1])).collect();
                    let to_y = (0..k).map(|j| (pair(j).1, x.values[pair(j).0])).collect();
                    (value, vec![to_x, to_y])
                };
                let z = mix(&[x, y], vec![n, m], (0..n * m).map(element).collect());
                self.rounded(z)
            }
            Step::Permute(x, order) => {
                let x = &v[*x];
                let dims: Vec<usize> = order.iter().map(|&a| x.dims[a]).collect();
                let from = places(&dims).map(|place| {
                    let mut source = vec![0; order.len()];
                    order.iter().zip(place).for_each(|(&a, i)| source[a] = i);
                    x.flat(&source)
                });
                let from = from.collect();
                x.moved(dims.clone(), from)
            }
            Step::Reshape(x, dims) => v[*x].moved(dims.clone(), (0..v[*x].values.len()).collect()),
            Step::Flip(x, axis) => {
                let x = &v[*x];
                let from = places(&x.dims).map(|mut place| {
                    place[*axis] = x.dims[*axis] - 1 - place[*axis];
                    x.flat(&place)
                });
                x.moved(x.dims.clone(), from.collect())
            }
            Step::Pad(x, padding) => {
                let x = &v[*x];
                let dims: Vec<usize> =
                    x.dims.iter().zip(padding).map(|(d, p)| d + p.0 + p.1).collect();
                let element = |place: Vec<usize>| {
                    let source = place.iter().zip(padding).zip(&x.dims);
                    let source: Option<Vec<usize>> =
                        source.map(|((i, p), d)| i.checked_sub(p.0).filter(|i| i < d)).collect();
                    source.map_or((0.0, vec![]), |source| {
                        let i = x.flat(&source);
                        (x.values[i], vec![(i, 1.0)])
                    })
                };
                let elements = places(&dims).map(element).collect();
                x.combined(dims.clone(), elements)
            }
            Step::Shrink(x, ranges) => {
                let x = &v[*x];
                let dims: Vec<usize> = ranges.iter().map(|r| r.1 - r.0).collect();
                let from = places(&dims).map(|place| {
                    let source: Vec<usize> =
                        place.iter().zip(ranges).map(|(i, r)| i + r.0).collect();
                    x.flat(&source)
                });
                let from = from.collect();
                x.moved(dims.clone(), from)
            }
            Step::Cat(x, y, axis) => {
                let (x, y) = (&v[*x], &v[*y]);
                let mut dims = x.dims.clone();
                dims[*axis] += y.dims[*axis];
                let element = |mut place: Vec<usize>| {
                    if place[*axis] < x.dims[*axis] {
                        let i = x.flat(&place);
                        return (x.values[i], vec![vec![(i, 1.0)], vec![]]);
                    }
                    place[*axis] -= x.dims[*axis];
                    let i = y.flat(&place);
                    (y.values[i], vec![vec![], vec![(i, 1.0)]])
                };
                let elements = places(&dims).map(element).collect();
                mix(&[x, y], dims.clone(), elements)
            }
            Step::Read(x) => v[*x].clone(),
        }
    }
}

impl Step {
    fn tensor(&self, v: &[Tensor]) -> Result<Tensor> {
        let axes = |mask: u16| (0..16).filter(|a| mask >> a & 1 == 1).collect::<Vec<isize>>();
        match self {
            Step::Unary(op, x) => {
                let x = &v[*x];
                Ok(match op {
                    Unary::Sin => x.sin(),
                    Unary::Tanh => x.tanh(),
                    Unary::Exp => x.exp(),
                    Unary::Sigmoid => x.sigmoid(),
                    Unary::Square => x.mul(x)?,
                    Unary::Abs => x.abs(),
                    Unary::Relu => x.relu(),
                    Unary::Softplus => x.softplus(),
                })
            }
            Step::Affine(x, 1.0, b) => v[*x].add(*b),
            Step::Affine(x, a, b) => v[*x].mul(*a)?.add(*b),
            Step::Binary(op, x, y) => match op {
                Binary::Add => v[*x].add(&v[*y]),
                Binary::Sub => v[*x].sub(&v[*y]),
                Binary::Mul => v[*x].mul(&v[*y]),
                Binary::Maximum => v[*x].maximum(&v[*y]),
                Binary::Minimum => v[*x].minimum(&v[*y]),
            },
            Step::MulAdd(x, y, z) => v[*x].mul(&v[*y])?.add(&v[*z]),
            Step::Clamp(x, low, high) => v[*x].clamp(*low, *high),
            Step::Branch(x, y, z) => v[*x].lt(&v[*y])?.where_(&v[*x], &v[*z]),
            Step::Reduce(kind, x, mask, keep) => {
                let (x, axes) = (&v[*x], axes(*mask));
                let axes = axes.as_slice();
                match (kind, keep) {
                    (Reduction::Sum, false) => x.sum(axes),
                    (Reduction::Sum, true) => x.sum_keepdim(axes),
                    (Reduction::Mean, false) => x.mean(axes),
                    (Reduction::Mean, true) => x.mean_keepdim(axes),
                    (Reduction::Max, false) => x.max(axes),
                    (Reduction::Max, true) => x.max_keepdim(axes),
                    (Reduction::Min, false) => x.min(axes),
                    (Reduction::Min, true) => x.min_keepdim(axes),
                    (Reduction::Var, false) => x.var(axes, 0),
                    (Reduction::Var, true) => x.var_keepdim(axes, 0),
                    (Reduction::LogSumExp, false) => x.logsumexp(axes),
                    (Reduction::LogSumExp, true) => {
                        let dims = x.sum_keepdim(axes)?.shape().clone();
                        x.logsumexp(axes)?.reshape(dims)
                    }
                }
            }
            Step::Softmax(x, axis) => v[*x].softmax(*axis as isize),
            Step::Sort(x, axis, descending) => Ok(v[*x].sort(*axis as isize, *descending)?.0),
            Step::Median(x, axis) => Ok(v[*x].median(*axis as isize)?.0),
            Step::Topk(x, k, axis) => Ok(v[*x].topk(*k, *axis as isize, true)?.0),
            Step::Cummax(x, axis) => Ok(v[*x].cummax(*axis as isize)?.0),
            Step::Cumsum(x, axis) => v[*x].cumsum(*axis as isize),
            Step::MaxPool(x, kernel, stride) => {
                v[*x].max_pool1d(Pool { stride: [*stride], ..Pool::new([*kernel]) })
            }
            Step::AtLargest(x, y, axis) => {
                let axis = *axis as isize;
                v[*y].gather(axis, &v[*x].argmax(axis)?.unsqueeze(axis)?)
            }
            Step::ScatterMax(x, src, index) => {
                let (x, src) = (&v[*x], &v[*src]);
                let mut dims = vec![1; src.rank()];
                dims[0] = index.len();
                let index = Tensor::new(index.as_slice(), x.device())?.reshape(dims)?;
                let index = index.expand(src.shape().clone())?;
                x.scatter_reduce(0, &index, src, ScatterReduce::Amax, true)
            }
            Step::Select(x, axis, index) => {
                let index = Tensor::new(index.as_slice(), v[*x].device())?;
                v[*x].index_select(*axis as isize, &index)
            }
            Step::Matmul(x, y) => v[*x].matmul(&v[*y]),
            Step::Permute(x, order) => {
                v[*x].permute(order.iter().map(|&a| a as isize).collect::<Vec<_>>())
            }
            Step::Reshape(x, dims) => v[*x].reshape(dims.clone()),
            Step::Flip(x, axis) => v[*x].flip(*axis as isize),
            Step::Pad(x, padding) => v[*x].pad(padding),
            Step::Shrink(x, ranges) => v[*x].shrink(ranges),
            Step::Cat(x, y, axis) => Tensor::cat(&[&v[*x], &v[*y]], *axis as isize),
            Step::Read(x) => {
                v[*x].realize()?;
                Ok(v[*x].clone())
            }
        }
    }
}

/// A random step on the values so far, or `None` if the draw does not fit.
fn draw(rng: &mut Rng, v: &[Dual]) -> Option<Step> {
    let n = v.len();
    let x = if rng.one_in(2) { n - 1 } else { rng.below(n) };
    let (y, z) = (rng.below(n), rng.below(n));
    let dims = &v[x].dims;
    let rank = dims.len();
    let axis = if rank > 0 { rng.below(rank) } else { 0 };
    let number = |rng: &mut Rng| rng.range(-8, 8) as f64 / 4.0;
    let fits = |a: &[usize], b: &[usize]| {
        broadcast(a, b).filter(|d| d.iter().product::<usize>() <= LARGEST)
    };
    Some(match rng.below(28) {
        0..=3 => {
            use Unary::{Abs, Exp, Relu, Sigmoid, Sin, Softplus, Square, Tanh};
            let all = [Sin, Tanh, Exp, Sigmoid, Square, Square, Abs, Relu, Softplus];
            Step::Unary(*rng.pick(&all), x)
        }
        4 | 5 => Step::Affine(x, number(rng), number(rng)),
        6..=8 => {
            use Binary::{Add, Maximum, Minimum, Mul, Sub};
            fits(dims, &v[y].dims)?;
            Step::Binary(*rng.pick(&[Add, Sub, Mul, Maximum, Minimum]), x, y)
        }
        9 | 10 => {
            let product = fits(dims, &v[y].dims)?;
            fits(&product, &v[z].dims)?;
            Step::MulAdd(x, y, z)
        }
        11 => Step::Clamp(x, -rng.between(0.1, 1.5), rng.between(0.1, 1.5)),
        12 => {
            let condition = fits(dims, &v[y].dims)?;
            fits(&condition, &v[z].dims)?;
            Step::Branch(x, y, z)
        }
        _ if rank == 0 => return None,
        13..=16 => {
            use Reduction::{LogSumExp, Max, Mean, Min, Sum, Var};
            let kind = *rng.pick(&[Sum, Mean, Max, Max, Min, Min, Var, LogSumExp]);
            Step::Reduce(kind, x, 1 << axis | rng.below(1 << rank) as u16, rng.one_in(2))
        }
        17 => Step::Softmax(x, axis),
        18 => Step::Sort(x, axis, rng.one_in(2)),
        19 if rng.one_in(2) => Step::Median(x, axis),
        19 => Step::Topk(x, 1 + rng.below(dims[axis]), axis),
        20 if rng.one_in(2) => Step::Cummax(x, axis),
        20 => Step::Cumsum(x, axis),
        21 if rank == 3 => {
            let kernel = 1 + rng.below(dims[2].min(3));
            Step::MaxPool(x, kernel, 1 + rng.below(2))
        }
        22 if v[y].dims == *dims => Step::AtLargest(x, y, axis),
        23 if v[y].dims.len() == rank && v[y].dims[1..] == dims[1..] => {
            let index = (0..v[y].dims[0]).map(|_| rng.below(dims[0]) as i64).collect();
            Step::ScatterMax(x, y, index)
        }
        24 if rank == 2 && v[y].dims.len() == 2 && v[y].dims[0] == dims[1] => Step::Matmul(x, y),
        25 => movement(rng, dims, x, axis),
        26 => {
            let same = v[y].dims.len() == rank
                && (0..rank).all(|a| a == axis || v[y].dims[a] == dims[a])
                && v[x].values.len() + v[y].values.len() <= LARGEST;
            if !same {
                return None;
            }
            Step::Cat(x, y, axis)
        }
        27 => Step::Read(x),
        _ => return None,
    })
}

/// A step that selects elements of `x` by comparing them.
fn selection(rng: &mut Rng, v: &[Dual], x: usize) -> Step {
    let rank = v[x].dims.len();
    if rank == 0 {
        return Step::Clamp(x, -rng.between(0.1, 1.5), rng.between(0.1, 1.5));
    }
    let axis = rng.below(rank);
    let mask = 1 << axis | rng.below(1 << rank) as u16;
    match rng.below(8) {
        0..=2 => Step::Reduce(Reduction::Max, x, mask, rng.one_in(2)),
        3 | 4 => Step::Reduce(Reduction::Min, x, mask, rng.one_in(2)),
        5 => Step::AtLargest(x, x, axis),
        6 => Step::Cummax(x, axis),
        _ => Step::Median(x, axis),
    }
}

fn movement(rng: &mut Rng, dims: &[usize], x: usize, axis: usize) -> Step {
    match rng.below(6) {
        0 => {
            let mut order: Vec<usize> = (0..dims.len()).collect();
            order.rotate_left(axis);
            Step::Permute(x, order)
        }
        1 => Step::Reshape(x, vec![dims.iter().product()]),
        2 => Step::Flip(x, axis),
        3 => Step::Pad(x, dims.iter().map(|_| (rng.below(2), rng.below(2))).collect()),
        4 => Step::Shrink(x, dims.iter().map(|&d| (rng.below(2).min(d - 1), d)).collect()),
        _ => {
            let index = (0..1 + rng.below(4)).map(|_| rng.below(dims[axis]) as i64).collect();
            Step::Select(x, axis, index)
        }
    }
}

impl Program {
    fn random(seed: u64) -> Program {
        let mut rng = Rng::new(seed.wrapping_mul(0x9e6c_63d0_876a_68ad) ^ 0x51ed);
        let rank = rng.below(4);
        let base: Vec<usize> = (0..rank).map(|_| *rng.pick(&[1, 2, 3, 4, 5])).collect();
        let mut inputs = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let mut dims = base.clone();
            if rng.one_in(3) && rank > 0 {
                let axis = rng.below(rank);
                dims[axis] = 1;
            }
            let n = dims.iter().product();
            // Numbers of `f32`, so that both sides start from the same.
            let values = (0..n).map(|_| f64::from(rng.between(-2.0, 2.0) as f32)).collect();
            inputs.push((dims, values));
        }
        let mut program = Program { inputs, steps: Vec::new(), outputs: Vec::new(), seed };
        let mut run = Run { noise: None, tied: false };
        let mut values = program.start();
        let n = 2 + rng.below(9);
        while program.steps.len() < n {
            let Some(step) = draw(&mut rng, &values) else { continue };
            let value = run.step(&step, &values);
            let large = value.values.iter().any(|x| !x.is_finite() || x.abs() > HIGHEST);
            if large || value.values.len() > LARGEST {
                continue;
            }
            values.push(value);
            program.steps.push(step);
        }
        // Often a product and a sum that it goes into, and what is largest or in the middle of each:
        // kernels that need both round the sum otherwise than a kernel of the sum alone would.
        let twins = rng.one_in(2).then(|| {
            let x = rng.below(values.len());
            let y = Some(rng.below(values.len()))
                .filter(|&y| broadcast(&values[x].dims, &values[y].dims).is_some());
            let product = values.len();
            let b = rng.between(-1.0, 1.0);
            [Step::Binary(Binary::Mul, x, y.unwrap_or(x)), Step::Affine(product, 1.0, b)]
        });
        for step in twins.into_iter().flatten() {
            values.push(run.step(&step, &values));
            program.steps.push(step);
            let x = values.len() - 1;
            if rng.below(4) > 0 {
                let step = selection(&mut rng, &values, x);
                let place = program.inputs.len() + program.steps.len();
                program.outputs.push(place);
                values.push(run.step(&step, &values));
                program.steps.push(step);
            }
        }
        program.outputs.push(values.len() - 1);
        while rng.one_in(2) {
            program.outputs.push(program.inputs.len() + rng.below(program.steps.len()));
        }
        program
    }

    /// The inputs, each element a variable.
    fn start(&self) -> Vec<Dual> {
        let n: usize = self.inputs.iter().map(|x| x.1.len()).sum();
        let mut first = 0;
        let dual = |(dims, values): &(Vec<usize>, Vec<f64>)| {
            let mut slopes = vec![0.0; values.len() * n];
            for i in 0..values.len() {
                slopes[i * n + first + i] = 1.0;
            }
            first += values.len();
            Dual { dims: dims.clone(), values: values.clone(), slopes, n }
        };
        self.inputs.iter().map(dual).collect()
    }

    /// The weight of an element of an output.
    fn weight(&self, output: usize, element: usize) -> f64 {
        let mut rng = Rng::new(self.seed ^ (output as u64) << 32 ^ element as u64);
        // A quarter of a whole number, which is exact in `f32`.
        rng.range(1, 8) as f64 / 4.0
    }

    /// The derivatives of the weighted sum; `None` where a tie is resolved by chance.
    fn slopes(&self, noise: Option<u64>) -> Option<Vec<f64>> {
        let mut run = Run { noise: noise.map(Rng::new), tied: false };
        let mut values = self.start();
        for step in &self.steps {
            let value = run.step(step, &values);
            values.push(value);
        }
        let mut total = vec![0.0; values[0].n];
        for (k, &output) in self.outputs.iter().enumerate() {
            let y = &values[output];
            for (i, row) in y.slopes.chunks(y.n).enumerate() {
                let weight = self.weight(k, i);
                total.iter_mut().zip(row).for_each(|(to, from)| *to += weight * from);
            }
        }
        (!run.tied).then_some(total)
    }

    /// The gradients of a device by each input, and the loss, pending.
    fn gradients(&self, device: &Device) -> Result<Vec<Tensor>> {
        let input = |(dims, values): &(Vec<usize>, Vec<f64>)| {
            let values: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            Ok(Tensor::new(values.as_slice(), device)?.reshape(dims.clone())?.tracked())
        };
        let inputs = self.inputs.iter().map(input).collect::<Result<Vec<_>>>()?;
        let mut values = inputs.clone();
        for step in &self.steps {
            let value = step.tensor(&values)?;
            values.push(value);
        }
        let mut loss: Option<Tensor> = None;
        for (k, &output) in self.outputs.iter().enumerate() {
            let y = &values[output];
            let weights: Vec<f32> = (0..y.numel()).map(|i| self.weight(k, i) as f32).collect();
            let weights = Tensor::new(weights.as_slice(), device)?.reshape(y.shape().clone())?;
            let part = y.mul(&weights)?.sum(..)?;
            loss = Some(match loss {
                Some(sum) => sum.add(&part)?,
                None => part,
            });
        }
        let loss = loss.expect("a program has outputs");
        let dx = loss.grad(&inputs.iter().collect::<Vec<_>>())?;
        let dx = inputs.iter().zip(dx).map(|(x, dx)| dx.unwrap_or_else(|| x.zeros_like()));
        // Several kernels may need what the loss needs, too.
        Ok(dx.chain([loss]).collect())
    }

    /// The derivatives and how far a device may be from them; `None` if the program decides nothing.
    fn expected(&self) -> Option<(Vec<f64>, f64)> {
        let want = self.slopes(None)?;
        let largest = want.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        let mut moved = 0.0f64;
        for run in 0..RUNS {
            let other = self.slopes(Some(self.seed ^ (run + 1)))?;
            moved = other.iter().zip(&want).fold(moved, |m, (a, b)| m.max((a - b).abs()));
        }
        let sure = largest.is_finite() && moved <= UNSURE * largest.max(1e-3);
        sure.then_some((want, MARGIN * moved + FLOOR * largest.max(1.0)))
    }

    /// What is wrong with pending gradients and their loss.
    fn compare(&self, pending: &[Tensor], (want, allowed): &(Vec<f64>, f64)) -> Option<String> {
        let read = || -> Result<Vec<f64>> {
            Tensor::realize_all(pending)?;
            let mut all = Vec::new();
            for dx in &pending[..pending.len() - 1] {
                all.extend(dx.to_vec::<f32>()?.into_iter().map(f64::from));
            }
            Ok(all)
        };
        let got = match read() {
            Ok(got) => got,
            Err(error) => return Some(error.to_string()),
        };
        let wrong = got.iter().zip(want);
        // NaN is far from everything.
        let wrong = wrong.map(|(a, b)| (a - b).abs()).position(|d| d.is_nan() || d > *allowed)?;
        Some(format!(
            "the derivative by element {wrong} is {}, not {} (by up to {allowed:e}): {got:?} for {want:?}",
            got[wrong], want[wrong]
        ))
    }

    /// What is wrong with the gradients of a device.
    fn wrong(&self, device: &Device) -> Option<String> {
        let expected = self.expected()?;
        match self.gradients(device) {
            Ok(pending) => self.compare(&pending, &expected),
            Err(error) => Some(error.to_string()),
        }
    }

    /// A program with fewer outputs or steps that is wrong as well.
    fn shrunk(&self, device: &Device) -> Program {
        let mut best = self.clone();
        let wrong = |p: &Program| p.wrong(device).is_some();
        loop {
            let fewer = (0..best.outputs.len()).filter(|_| best.outputs.len() > 1).map(|i| {
                let mut p = best.clone();
                p.outputs.remove(i);
                p
            });
            let last = best.inputs.len() + best.steps.len() - 1;
            let shorter = (!best.outputs.contains(&last) && best.steps.len() > 1).then(|| {
                let mut p = best.clone();
                p.steps.pop();
                p
            });
            match fewer.chain(shorter).find(wrong) {
                Some(smaller) => best = smaller,
                None => return best,
            }
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (dims, values)) in self.inputs.iter().enumerate() {
            writeln!(f, "v{i}: {dims:?} = {values:?}")?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            writeln!(f, "v{} = {step:?}", self.inputs.len() + i)?;
        }
        write!(f, "outputs {:?}", self.outputs)
    }
}

/// Most programs whose gradients are one plan on a device whose compiler is dear.
const TOGETHER: usize = 25;

/// Compares the gradients of the programs of `0..n` on a device with the reference.
///
/// # Panics
/// When some are wrong, with the seed and what is left of each of the first few, or if most programs
/// decide nothing.
pub fn run(device: &Device, n: u64) {
    let n = crate::ladder::count(n);
    let seeds: Vec<u64> = crate::ladder::chosen(0..n).collect();
    let (mut decided, mut wrong) = (0, Vec::new());
    for seeds in seeds.chunks(if device.caps().simt { TOGETHER } else { 1 }) {
        let sure = seeds.iter().filter_map(|&seed| {
            let program = Program::random(seed);
            let expected = program.expected()?;
            let pending = program.gradients(device);
            Some((program, expected, pending))
        });
        let sure: Vec<_> = sure.collect();
        decided += sure.len();
        // Should that fail, each fails again below and tells why.
        let _ = Tensor::realize_all(sure.iter().flat_map(|s| s.2.iter().flatten()));
        for (program, expected, pending) in sure {
            let right = pending.is_ok_and(|p| program.compare(&p, &expected).is_none());
            if !right {
                wrong.push(program.seed);
            }
        }
    }
    let report = |&seed: &u64| {
        let small = Program::random(seed).shrunk(device);
        let why = small.wrong(device).unwrap_or("only together with others".to_owned());
        format!("ZYX_SEED={seed}\n{small}\n{why}\n")
    };
    let reports: Vec<String> = wrong.iter().take(6).map(report).collect();
    let (failed, all) = (wrong.len(), seeds.len());
    assert!(
        failed == 0,
        "on {device}: {failed} of {all} gradients are wrong\n{}",
        reports.join("\n")
    );
    assert!(all < 20 || decided * 2 > all, "only {decided} of {all} programs decide anything");
}
