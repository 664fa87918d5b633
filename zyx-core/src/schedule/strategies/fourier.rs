//! Fourier transforms of few elements: all stages in one kernel.
//!
//! On devices of many threads a group has one or several rows in shared storage; its threads take
//! the elements of a stage in registers, meet, and store what comes out. Elsewhere a row lies in arrays
//! on the stack, between which stages go back and forth. Either way memory is read by the first stage
//! and written by the last one. The stages are those of [`fourier`].

use super::Nest;
use crate::affine::{AtomId, Index};
use crate::dtype::DType;
use crate::graph::fourier::{self, Form, Layout, Stage, lengths};
use crate::graph::{Node, NodeId};
use crate::hal::Caps;
use crate::ir::{Access, BarrierScope, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Div, Eq, Lt, Min, Mul, Rem, Shr, Sub};
use crate::ops::{TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::Lowering;
use crate::schedule::pull::TupleId;
use crate::shape::Shape;

/// Most elements of a transform on a device of few threads: what fits into its caches.
const LONG: usize = 4096;
/// Bytes apart at which lines of memory have the same place in a first cache, and nearly so in the next.
const CONFLICT: usize = 8192;
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
    form: Form,
    fma: bool,
    n: usize,
    layout: Layout,
    /// The counters along the axis, of the source and the result, and tuples of both parts.
    along: [AtomId; 2],
    places: [[TupleId; 2]; 2],
    /// The same of roots.
    number: Option<AtomId>,
    turns: [TupleId; 2],
    /// The counter of what lies after the axis, and how many of it have one factor.
    after: Option<(AtomId, i64)>,
    x: NodeId,
    roots: NodeId,
    out: NodeId,
}

pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group, caps) = (*graph, &mut **partition, *group, *caps);
    let out = this.roots[0].node;
    let Node::Fourier { x, roots, inverse, real, done } = graph.node(out) else { return None };
    let form = Form { inverse, real, done };
    let shape = graph.shape(x).clone();
    let &[before, source, after, _] = shape.dims() else { unreachable!("invariant: four axes") };
    let [_, n, results] = lengths(form, source);
    let (axes, place) = partition.indices.axes(&Shape::from([before, after]));
    let place = partition.indices.get(place);
    let [(along, from), (out_along, to)] =
        [source, results].map(|n| partition.indices.axes(&Shape::from([n])));
    let (own, turn) = partition.indices.axes(&Shape::from([graph.shape(roots)[1]]));
    let [from, to, turn] = [from, to, turn].map(|tuple| partition.indices.get(tuple)[0].clone());
    let places = [from, to].map(|at| {
        [0, 1].map(|part| {
            let tuple = vec![place[0].clone(), at.clone(), place[1].clone(), Index::constant(part)];
            partition.indices.intern(tuple)
        })
    });
    let turns =
        [0, 1].map(|part| partition.indices.intern(vec![Index::constant(part), turn.clone()]));
    let all: Vec<_> = axes.iter().chain(&along).chain(&own).copied().collect();
    let needed = places[0].map(|tuple| (x, tuple)).into_iter();
    let needed: Vec<_> = needed.chain(turns.map(|tuple| (roots, tuple))).collect();
    let found = collect_roots(graph, partition, group, &needed, &[], &all);
    let kind = if real { "real_fourier" } else { "fourier" };
    let name = format!("{kind}_{before}x{n}x{after}");
    let mut l = Lowering::new(graph, partition, name);
    l.declare(found, &[(out, Access::Write)]);
    let mut e = Emit {
        l: &mut l,
        dtype: graph.dtype(out),
        form,
        fma: caps.fast_fma,
        n,
        layout: fourier::layout(n, form).expect("invariant: stages of small primes"),
        along: [along[0], out_along[0]],
        places,
        number: own.first().copied(),
        turns,
        after: place[1].terms.first().map(|term| (term.0, (after / done as usize) as i64)),
        x,
        roots,
        out,
    };
    if groups(caps) {
        e.by_groups(&axes, (before * after, after > 1), caps);
    } else {
        e.by_rows(&axes);
    }
    Some(vec![ScheduleItem::Kernel(l.finish())])
}

impl Emit<'_, '_> {
    fn op(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        if matches!((op, by), (Add | Sub, 0) | (Mul | Div, 1)) {
            return x;
        }
        let by = self.l.b.index(by);
        self.l.b.binary(op, x, by)
    }

    /// Whether the last stage's results are combined before they are written.
    fn combines(&self) -> bool {
        self.form.real && !self.form.inverse
    }

    /// Each row by itself, in arrays.
    fn by_rows(&mut self, rows: &[AtomId]) {
        // Lanes are rows that lie side by side, or positions of one row where rows would drive one
        // another out of the cache.
        let bytes = 2 * self.n * self.dtype.size();
        let apart = self.after.is_none() && bytes.is_multiple_of(CONFLICT);
        let kind = if apart { LoopKind::Group } else { LoopKind::Parallel };
        rows.iter().for_each(|&axis| self.l.open(axis, kind));
        let stages = self.layout.stages.clone();
        let between = (stages.len() - 1 + self.combines() as usize).min(2);
        let ty = Type::scalar(self.dtype);
        let len = self.n as u32 + 1;
        let arrays: Vec<Complex> = (0..between)
            .map(|_| [(); 2].map(|()| self.l.b.alloc(Space::Register, ty, len)))
            .collect();
        for (i, stage) in stages.iter().enumerate() {
            let last = i + 1 == stages.len() && !self.combines();
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
                if last {
                    self.output(place, None, y);
                } else {
                    self.keep(arrays[i % 2], place, y);
                }
            }
            self.close_loop(stage.found);
            self.close_loop(stage.left);
        }
        if self.combines() {
            let array = arrays[(stages.len() - 1) % 2];
            let (zero, end) = (self.l.b.index(0), self.l.b.index(self.n as i64));
            let first = array.map(|part| self.l.b.load(part, zero));
            self.keep(array, end, first);
            let k = self.open_loop(self.n + 1);
            let mirror = self.l.b.binary(Sub, end, k);
            let [x, y] = [k, mirror].map(|at| array.map(|part| self.l.b.load(part, at)));
            let y = self.combined(k, x, y);
            self.output(k, None, y);
            self.close_loop(self.n + 1);
        }
        rows.iter().rev().for_each(|&axis| self.l.close(axis));
    }

    fn keep(&mut self, array: Complex, place: Value, x: Complex) {
        for (part, x) in array.into_iter().zip(x) {
            self.l.b.store(part, place, x);
        }
    }

    fn close_loop(&mut self, extent: usize) {
        if extent > 1 {
            self.l.b.close();
            self.l.close_scope();
        }
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
    fn by_groups(&mut self, rows: &[AtomId], (count, beside): (usize, bool), caps: &Caps) {
        let n = self.n;
        let stages = self.layout.stages.clone();
        let team = (n / stages[0].radix).clamp(1, THREADS);
        let room = longest(caps, self.dtype) / n;
        let share = (THREADS / team).min(room).min(count).max(1);
        let [groups, threads] =
            [count.div_ceil(share), team * share].map(|n| self.l.b.index(n as i64));
        let group = self.l.b.open_loop(LoopKind::Group, 0, groups);
        let padded = n as i64 + n as i64 / BANKS;
        let ty = Type::scalar(self.dtype);
        let len = (padded * share as i64) as u32;
        let storage = (stages.len() > 1 || self.combines())
            .then(|| [(); 2].map(|()| self.l.b.alloc(Space::Shared, ty, len)));
        let thread = self.l.b.open_loop(LoopKind::Local, 0, threads);
        let by = if beside { share } else { team } as i64;
        let (own, lane) = (self.op(Div, thread, by), self.op(Rem, thread, by));
        let (own, lane) = if beside { (lane, own) } else { (own, lane) };
        let base = self.op(Mul, own, padded);
        let row = self.op(Mul, group, share as i64);
        let row = self.l.b.binary(Add, row, own);
        let exists = (!count.is_multiple_of(share)).then(|| self.op(Lt, row, count as i64));
        let row = if exists.is_some() { self.op(Min, row, count as i64 - 1) } else { row };
        self.l.count_digits(rows, row);
        for (i, stage) in stages.iter().enumerate() {
            let last = i + 1 == stages.len() && !self.combines();
            let each = n / stage.radix;
            let mut held = Vec::new();
            for (number, inside) in self.turns_of(lane, team, each) {
                let x = (0..stage.radix).map(|j| {
                    let place = self.op(Add, number, (j * each) as i64);
                    match storage.filter(|_| i > 0) {
                        None => self.input(place),
                        Some(parts) => self.shared(parts, base, place),
                    }
                });
                held.push((number, inside, x.collect::<Vec<_>>()));
            }
            if i > 0 && !last {
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
                    match storage.filter(|_| !last) {
                        None => {
                            let both = self.and(inside, exists);
                            self.output(place, both, y);
                        }
                        Some(parts) => {
                            let place = self.shared_place(base, place);
                            let place = inside.map_or(place, |cond| self.l.b.guard(place, cond));
                            self.keep(parts, place, y);
                        }
                    }
                }
            }
            if !last {
                self.l.b.barrier(BarrierScope::Shared);
            }
        }
        if let Some(parts) = storage.filter(|_| self.combines()) {
            for (k, inside) in self.turns_of(lane, team, n + 1) {
                let end = self.l.b.index(n as i64);
                let mirror = self.l.b.binary(Sub, end, k);
                let [x, y] = [k, mirror].map(|at| {
                    let at = self.op(Rem, at, n as i64);
                    self.shared(parts, base, at)
                });
                let y = self.combined(k, x, y);
                let both = self.and(inside, exists);
                self.output(k, both, y);
            }
        }
        self.l.b.close();
        self.l.b.close();
    }

    /// Numbers below `n` that a thread of a team has, each with the condition that it is one; what
    /// is none is the last one.
    fn turns_of(&mut self, lane: Value, team: usize, n: usize) -> Vec<(Value, Option<Value>)> {
        let turn = |turn: usize| {
            let number = self.op(Add, lane, (turn * team) as i64);
            if (turn + 1) * team <= n {
                return (number, None);
            }
            let inside = self.op(Lt, number, n as i64);
            (self.op(Min, number, n as i64 - 1), Some(inside))
        };
        (0..n.div_ceil(team)).map(turn).collect()
    }

    fn and(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.l.b.binary(And, a, b)),
            (a, b) => a.or(b),
        }
    }

    fn shared(&mut self, parts: Complex, base: Value, place: Value) -> Complex {
        let place = self.shared_place(base, place);
        parts.map(|part| self.l.b.load(part, place))
    }

    fn shared_place(&mut self, base: Value, place: Value) -> Value {
        let skipped = self.op(Div, place, BANKS);
        let place = self.l.b.binary(Add, place, skipped);
        self.l.b.binary(Add, base, place)
    }

    fn source(&mut self, place: Value) -> Complex {
        self.l.open_scope();
        self.l.counters.insert(self.along[0], place);
        let parts = self.places[0].map(|tuple| self.l.value(self.x, tuple, None));
        self.l.close_scope();
        parts
    }

    /// A root of unity of the table.
    fn root(&mut self, at: Value) -> Complex {
        let number = self.number.expect("invariant: a table that is used has several roots");
        self.l.open_scope();
        self.l.counters.insert(number, at);
        let parts = self.turns.map(|tuple| self.l.value(self.roots, tuple, None));
        self.l.close_scope();
        parts
    }

    /// What the first stage transforms.
    fn input(&mut self, place: Value) -> Complex {
        let x = self.source(place);
        if self.form.real && self.form.inverse {
            return self.separated(place, x);
        }
        let Some((after, many)) = self.after.filter(|_| self.form.done > 1) else { return x };
        let row = self.l.counters[&after];
        let row = self.op(Div, row, many);
        let step = self.l.b.binary(Mul, place, row);
        let high = self.op(Shr, step, self.layout.bits.into());
        let high = self.op(Add, high, self.layout.coarse as i64);
        let low = self.op(And, step, (1 << self.layout.bits) - 1);
        let low = self.op(Add, low, self.layout.fine as i64);
        let (high, low) = (self.root(high), self.root(low));
        let [c, s] = self.product(high, low);
        self.times(x, c, s)
    }

    /// The product of two roots of unity.
    fn product(&mut self, [a, b]: Complex, [c, d]: Complex) -> Complex {
        [self.product_and(Sub, (a, c), (b, d)), self.product_and(Add, (a, d), (b, c))]
    }

    /// The frequency of real numbers at `k`, twice, from those of pairs of them at `k` and its mirror
    /// image: even and odd numbers have the parts of these that are and are not their own conjugates
    /// in reverse order (Sorensen et al. 1987).
    fn combined(&mut self, k: Value, [a, b]: Complex, [c, d]: Complex) -> Complex {
        let at = self.op(Add, k, self.layout.real as i64);
        let [cos, sin] = self.root(at);
        let even = [self.l.b.binary(Add, a, c), self.l.b.binary(Sub, b, d)];
        let odd = [self.l.b.binary(Add, b, d), self.l.b.binary(Sub, c, a)];
        let odd = self.times(odd, cos, sin);
        self.both(Add, even, odd)
    }

    /// [`Emit::combined`] undone. Both ends of the frequencies are real.
    fn separated(&mut self, k: Value, [a, b]: Complex) -> Complex {
        let end = self.l.b.index(self.n as i64);
        let mirror = self.l.b.binary(Sub, end, k);
        let [c, d] = self.source(mirror);
        let (zero, nothing) = (self.l.b.index(0), self.number(0.0));
        let is_end = self.l.b.binary(Eq, k, zero);
        let [b, d] = [b, d].map(|part| self.l.b.select(is_end, nothing, part));
        let at = self.op(Add, k, self.layout.real as i64);
        let [cos, sin] = self.root(at);
        let odd = [self.l.b.binary(Sub, a, c), self.l.b.binary(Add, b, d)];
        let [x, y] = self.times(odd, cos, sin);
        let even = [self.l.b.binary(Add, a, c), self.l.b.binary(Sub, b, d)];
        [self.l.b.binary(Sub, even[0], y), self.l.b.binary(Add, even[1], x)]
    }

    fn output(&mut self, place: Value, cond: Option<Value>, y: Complex) {
        self.l.counters.insert(self.along[1], place);
        for (tuple, part) in self.places[1].into_iter().zip(y) {
            let flat = self.l.indices.flat(self.l.nodes.graph, self.out, tuple);
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
        if stage.left == 1 {
            return y;
        }
        for (k, y) in y.iter_mut().enumerate().skip(1) {
            let at = self.op(Add, p, (stage.roots + (k - 1) * stage.left) as i64);
            let [c, s] = self.root(at);
            *y = self.times(*y, c, s);
        }
        y
    }

    /// `x` times `c + s i`, or its conjugate for a forward transform.
    fn times(&mut self, [a, b]: Complex, c: Value, s: Value) -> Complex {
        let (real, imaginary) = if self.form.inverse { (Sub, Add) } else { (Add, Sub) };
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
        let forward = !self.form.inverse;
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
            let plus =
                [self.l.b.binary(Sub, even[0], odd[1]), self.l.b.binary(Add, even[1], odd[0])];
            let minus =
                [self.l.b.binary(Add, even[0], odd[1]), self.l.b.binary(Sub, even[1], odd[0])];
            (y[k], y[n - k]) = if self.form.inverse { (plus, minus) } else { (minus, plus) };
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
