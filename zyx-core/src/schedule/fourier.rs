//! Fourier transforms of few elements: all stages in one kernel.
//!
//! On devices of many threads a group has one or several rows in shared storage; its threads take
//! the elements of a stage in registers, meet, and store what comes out. Elsewhere a row lies in arrays
//! on the stack, between which stages go back and forth. Either way memory is read by the first stage
//! and written by the last one. The stages are those of [`fourier`].

use super::collect::collect_roots;
use super::index::{AtomId, Index};
use super::lower::{Lowered, Lowering};
use super::partition::{Group, Partition};
use super::pull::TupleId;
use crate::dtype::DType;
use crate::graph::fourier::{self, Stage};
use crate::graph::{Graph, Node, NodeId};
use crate::hal::Caps;
use crate::ir::{Access, BarrierScope, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Div, Lt, Min, Mul, Rem, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Most elements of a transform on a device of few threads: what fits into its caches.
const LONG: usize = 4096;
/// Threads that a group has, if rows are that many.
const THREADS: usize = 256;
/// Elements after which a place of shared storage is left out, so that threads whose places are a
/// power of two apart do not wait for one another.
const BANKS: i64 = 32;

/// The longest transform of which one kernel does all stages.
pub(crate) fn longest(caps: &Caps, dtype: DType) -> usize {
    if !groups(caps) {
        return LONG;
    }
    let bytes = caps.shared_bytes / (2 * dtype.size());
    (bytes - bytes / BANKS as usize - 1).min(LONG)
}

/// Whether groups of threads have a row.
fn groups(caps: &Caps) -> bool {
    caps.simt && caps.max_local >= THREADS && caps.shared_bytes >= 1 << 14
}

/// A real and an imaginary part.
type Complex = [Value; 2];

struct Emit<'l, 'a> {
    l: &'l mut Lowering<'a>,
    dtype: DType,
    inverse: bool,
    fma: bool,
    n: usize,
    /// The counter of positions, that of roots, and tuples of both parts.
    along: AtomId,
    number: Option<AtomId>,
    places: [TupleId; 2],
    turns: [TupleId; 2],
    x: NodeId,
    roots: NodeId,
    out: NodeId,
}

pub(super) fn lower(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    (this, caps): (&Group, &Caps),
) -> Lowered {
    let out = this.roots[0].node;
    let Node::Fourier { x, roots, inverse } = graph.node(out) else {
        unreachable!("invariant: the root is a transform")
    };
    let shape = graph.shape(out).clone();
    let &[before, n, after, _] = shape.dims() else { unreachable!("invariant: four axes") };
    let total = graph.shape(roots)[1];
    let (axes, place) = partition.indices.axes(&Shape::from([before, n, after]));
    let (own, turn) = partition.indices.axes(&Shape::from([total]));
    let (place, turn) = (partition.indices.get(place), partition.indices.get(turn));
    let along = place[1].terms[0].0;
    let places = [0, 1].map(|part| {
        let tuple = place.iter().cloned().chain([Index::constant(part)]).collect();
        partition.indices.intern(tuple)
    });
    let turns =
        [0, 1].map(|part| partition.indices.intern(vec![Index::constant(part), turn[0].clone()]));
    let all: Vec<_> = axes.iter().chain(&own).copied().collect();
    let needed = [(x, places[0]), (x, places[1]), (roots, turns[0]), (roots, turns[1])];
    let found = collect_roots(graph, partition, group, &needed, &[], &all);
    let name = format!("fourier_{before}x{n}x{after}");
    let mut l = Lowering::new(graph, partition, group, name);
    l.declare(found, &[(out, Access::Write)]);
    let rows: Vec<AtomId> = axes.into_iter().filter(|&axis| axis != along).collect();
    let dtype = graph.dtype(out);
    let stages = fourier::stages(n).expect("invariant: stages of small primes");
    let mut e = Emit {
        l: &mut l,
        dtype,
        inverse,
        fma: caps.fast_fma,
        n,
        along,
        number: own.first().copied(),
        places,
        turns,
        x,
        roots,
        out,
    };
    if groups(caps) {
        e.by_groups(&stages, &rows, (before * after, after > 1), caps);
    } else {
        e.by_rows(&stages, &rows);
    }
    l.finish()
}

impl Emit<'_, '_> {
    fn op(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        if matches!((op, by), (Add | Sub, 0) | (Mul | Div, 1)) {
            return x;
        }
        let by = self.l.b.index(by);
        self.l.b.binary(op, x, by)
    }

    /// Each row by itself, in arrays.
    fn by_rows(&mut self, stages: &[Stage], rows: &[AtomId]) {
        rows.iter().for_each(|&axis| self.l.open(axis, LoopKind::Parallel));
        let between = stages.len().saturating_sub(1).min(2);
        let ty = Type::scalar(self.dtype);
        let arrays: Vec<Complex> = (0..between)
            .map(|_| [(); 2].map(|()| self.l.b.alloc(Space::Register, ty, self.n as u32)))
            .collect();
        for (i, stage) in stages.iter().enumerate() {
            let (p, q) = (self.open_loop(stage.left), self.open_loop(stage.found));
            let first = self.op(Mul, p, stage.found as i64);
            let first = self.l.b.binary(Add, first, q);
            let source = i.checked_sub(1).map(|before| arrays[before % 2]);
            let step = (self.n / stage.radix) as i64;
            let x = (0..stage.radix as i64).map(|j| {
                let place = self.op(Add, first, j * step);
                match source {
                    None => self.input(place),
                    Some(array) => array.map(|part| self.l.b.load(part, place)),
                }
            });
            let x = x.collect();
            let y = self.turned(stage, p, x);
            let first = self.op(Mul, p, (stage.radix * stage.found) as i64);
            let first = self.l.b.binary(Add, first, q);
            for (k, y) in y.into_iter().enumerate() {
                let place = self.op(Add, first, (k * stage.found) as i64);
                match i + 1 == stages.len() {
                    true => self.output(place, None, y),
                    false => (0..2).for_each(|part| {
                        self.l.b.store(arrays[i % 2][part], place, y[part]);
                    }),
                }
            }
            for extent in [stage.left, stage.found] {
                if extent > 1 {
                    self.l.b.close();
                    self.l.close_scope();
                }
            }
        }
        rows.iter().rev().for_each(|&axis| self.l.close(axis));
    }

    /// Opens a serial loop, if there is more than one iteration.
    fn open_loop(&mut self, extent: usize) -> Value {
        let len = self.l.b.index(extent as i64);
        if extent == 1 {
            return self.l.b.index(0);
        }
        self.l.open_scope();
        self.l.b.open_loop(LoopKind::Serial, 0, len)
    }

    /// Groups of threads with one or several rows each, of `count`; neighbouring threads have
    /// neighbouring rows where those lie side by side.
    fn by_groups(
        &mut self,
        stages: &[Stage],
        rows: &[AtomId],
        (count, beside): (usize, bool),
        caps: &Caps,
    ) {
        let n = self.n;
        let largest = stages[0].radix;
        let team = (n / largest).clamp(1, THREADS);
        let room = longest(caps, self.dtype) / n;
        let share = (THREADS / team).min(room).min(count).max(1);
        let groups = count.div_ceil(share);
        let [count_of_groups, threads] = [groups, team * share].map(|n| self.l.b.index(n as i64));
        let group = self.l.b.open_loop(LoopKind::Group, 0, count_of_groups);
        let padded = n as i64 + n as i64 / BANKS;
        let ty = Type::scalar(self.dtype);
        let storage = (stages.len() > 1).then(|| {
            [(); 2].map(|()| self.l.b.alloc(Space::Shared, ty, (padded * share as i64) as u32))
        });
        let thread = self.l.b.open_loop(LoopKind::Local, 0, threads);
        let (own, lane) = if beside {
            (self.op(Rem, thread, share as i64), self.op(Div, thread, share as i64))
        } else {
            (self.op(Div, thread, team as i64), self.op(Rem, thread, team as i64))
        };
        let base = self.op(Mul, own, padded);
        let row = self.op(Mul, group, share as i64);
        let row = self.l.b.binary(Add, row, own);
        let exists = (!count.is_multiple_of(share)).then(|| self.op(Lt, row, count as i64));
        let row = if exists.is_some() { self.op(Min, row, count as i64 - 1) } else { row };
        self.l.count_digits(rows, row);
        for (i, stage) in stages.iter().enumerate() {
            let each = n / stage.radix;
            let turns = each.div_ceil(team);
            let mut held = Vec::new();
            for turn in 0..turns {
                let number = self.op(Add, lane, (turn * team) as i64);
                let (inside, number) = match (turn + 1) * team > each {
                    true => {
                        let inside = self.op(Lt, number, each as i64);
                        (Some(inside), self.op(Min, number, each as i64 - 1))
                    }
                    false => (None, number),
                };
                let x = (0..stage.radix).map(|j| {
                    let place = self.op(Add, number, (j * each) as i64);
                    match storage.filter(|_| i > 0) {
                        None => self.input(place),
                        Some(parts) => {
                            let place = self.shared_place(base, place);
                            parts.map(|part| self.l.b.load(part, place))
                        }
                    }
                });
                held.push((number, inside, x.collect::<Vec<_>>()));
            }
            if i > 0 && i + 1 < stages.len() {
                self.l.b.barrier(BarrierScope::Shared);
            }
            for (number, inside, x) in held {
                let p = self.op(Div, number, stage.found as i64);
                let q = self.op(Rem, number, stage.found as i64);
                let y = self.turned(stage, p, x);
                let first = self.op(Mul, p, (stage.radix * stage.found) as i64);
                let first = self.l.b.binary(Add, first, q);
                for (k, y) in y.into_iter().enumerate() {
                    let place = self.op(Add, first, (k * stage.found) as i64);
                    match storage.filter(|_| i + 1 < stages.len()) {
                        None => {
                            let both = match (inside, exists) {
                                (Some(a), Some(b)) => Some(self.l.b.binary(And, a, b)),
                                (a, b) => a.or(b),
                            };
                            self.output(place, both, y);
                        }
                        Some(parts) => {
                            let place = self.shared_place(base, place);
                            let place = inside.map_or(place, |cond| self.l.b.guard(place, cond));
                            (0..2).for_each(|part| {
                                self.l.b.store(parts[part], place, y[part]);
                            });
                        }
                    }
                }
            }
            if i + 1 < stages.len() {
                self.l.b.barrier(BarrierScope::Shared);
            }
        }
        self.l.b.close();
        self.l.b.close();
    }

    fn shared_place(&mut self, base: Value, place: Value) -> Value {
        let skipped = self.op(Div, place, BANKS);
        let place = self.l.b.binary(Add, place, skipped);
        self.l.b.binary(Add, base, place)
    }

    fn input(&mut self, place: Value) -> Complex {
        self.l.open_scope();
        self.l.counters.insert(self.along, place);
        let parts = self.places.map(|tuple| self.l.value(self.x, tuple, None));
        self.l.close_scope();
        parts
    }

    fn output(&mut self, place: Value, cond: Option<Value>, y: Complex) {
        self.l.counters.insert(self.along, place);
        for (tuple, part) in self.places.into_iter().zip(y) {
            let flat = self.l.indices.flat(self.l.graph, self.out, tuple);
            let mut at = self.l.index(&flat);
            if let Some(cond) = cond {
                at = self.l.b.guard(at, cond);
            }
            let buffer = self.l.param(self.out);
            self.l.b.store(buffer, at, part);
        }
    }

    /// The transform of a stage's elements, each times its root of unity.
    fn turned(&mut self, stage: &Stage, p: Value, x: Vec<Complex>) -> Vec<Complex> {
        let mut y = self.transformed(x);
        let Some(number) = self.number.filter(|_| stage.left > 1) else { return y };
        for (k, y) in y.iter_mut().enumerate().skip(1) {
            let at = self.op(Add, p, (stage.roots + (k - 1) * stage.left) as i64);
            self.l.open_scope();
            self.l.counters.insert(number, at);
            let [c, s] = self.turns.map(|tuple| self.l.value(self.roots, tuple, None));
            self.l.close_scope();
            *y = self.times(*y, c, s);
        }
        y
    }

    /// `x` times `c + s i`, or its conjugate for a forward transform.
    fn times(&mut self, [a, b]: Complex, c: Value, s: Value) -> Complex {
        let (real, imaginary) = if self.inverse { (Sub, Add) } else { (Add, Sub) };
        let real = self.product_and(real, (a, c), (b, s));
        let imaginary = self.product_and(imaginary, (b, c), (a, s));
        [real, imaginary]
    }

    /// `x y` plus or minus `z w`.
    fn product_and(
        &mut self,
        op: BinaryOp,
        (x, y): (Value, Value),
        (z, w): (Value, Value),
    ) -> Value {
        let second = self.l.b.binary(Mul, z, w);
        if !self.fma {
            let first = self.l.b.binary(Mul, x, y);
            return self.l.b.binary(op, first, second);
        }
        let second = if op == Sub { self.l.b.unary(UnaryOp::Neg, second) } else { second };
        self.l.b.ternary(TernaryOp::MulAdd, x, y, second)
    }

    fn number(&mut self, x: f64) -> Value {
        self.l.b.constant(Scalar::from_f64(self.dtype, x))
    }

    fn both(&mut self, op: BinaryOp, x: Complex, y: Complex) -> Complex {
        [0, 1].map(|part| self.l.b.binary(op, x[part], y[part]))
    }

    /// `x` times a root of unity, `exp(-2 pi i t / n)` or its conjugate if inverse.
    fn rotated(&mut self, [a, b]: Complex, t: usize, n: usize) -> Complex {
        let (c, s) = fourier::root(t, n);
        let neg = |e: &mut Self, x: Value| e.l.b.unary(UnaryOp::Neg, x);
        let forward = !self.inverse;
        if s == 0.0 {
            return if c > 0.0 { [a, b] } else { [neg(self, a), neg(self, b)] };
        }
        if c == 0.0 {
            // Times i or -i.
            return if (s > 0.0) != forward { [neg(self, b), a] } else { [b, neg(self, a)] };
        }
        let (c, s) = (self.number(c), self.number(s));
        self.times([a, b], c, s)
    }

    /// The transform of some numbers in registers.
    fn transformed(&mut self, x: Vec<Complex>) -> Vec<Complex> {
        let n = x.len();
        let Some(prime) = (2..=n).find(|&p| n.is_multiple_of(p)) else { return x };
        if prime == n {
            return self.prime(&x);
        }
        let rest = n / prime;
        let parts: Vec<Vec<Complex>> = (0..prime)
            .map(|first| self.transformed(x.iter().copied().skip(first).step_by(prime).collect()))
            .collect();
        let mut y = x;
        for k in 0..rest {
            let digits: Vec<Complex> =
                (0..prime).map(|j| self.rotated(parts[j][k], j * k, n)).collect();
            for (digit, value) in self.prime(&digits).into_iter().enumerate() {
                y[k + digit * rest] = value;
            }
        }
        y
    }

    /// The transform of a prime number of numbers: sums and differences of pairs, times cosines and
    /// sines.
    fn prime(&mut self, x: &[Complex]) -> Vec<Complex> {
        let n = x.len();
        if n == 2 {
            return vec![self.both(Add, x[0], x[1]), self.both(Sub, x[0], x[1])];
        }
        let half = n / 2;
        let sums: Vec<Complex> = (1..=half).map(|j| self.both(Add, x[j], x[n - j])).collect();
        let rests: Vec<Complex> = (1..=half).map(|j| self.both(Sub, x[j], x[n - j])).collect();
        let mut y = vec![x[0]; n];
        y[0] = sums.iter().fold(x[0], |sum, &x| self.both(Add, sum, x));
        for k in 1..=half {
            let mut even = x[0];
            let mut odd: Option<Complex> = None;
            for j in 1..=half {
                let (c, s) = fourier::root(j * k, n);
                let (c, s) = (self.number(c), self.number(s));
                even = [0, 1].map(|part| self.plus_product(Some(even[part]), sums[j - 1][part], c));
                odd = Some([0, 1].map(|part| {
                    self.plus_product(odd.map(|odd| odd[part]), rests[j - 1][part], s)
                }));
            }
            let odd = odd.expect("invariant: an odd prime has pairs");
            // Differences times i or -i.
            let plus = [self.l.b.binary(Sub, even[0], odd[1]), self.l.b.binary(Add, even[1], odd[0])];
            let minus = [self.l.b.binary(Add, even[0], odd[1]), self.l.b.binary(Sub, even[1], odd[0])];
            (y[k], y[n - k]) = if self.inverse { (plus, minus) } else { (minus, plus) };
        }
        y
    }

    fn plus_product(&mut self, sum: Option<Value>, x: Value, y: Value) -> Value {
        match sum {
            Some(sum) if self.fma => self.l.b.ternary(TernaryOp::MulAdd, x, y, sum),
            Some(sum) => {
                let product = self.l.b.binary(Mul, x, y);
                self.l.b.binary(Add, sum, product)
            }
            None => self.l.b.binary(Mul, x, y),
        }
    }
}
