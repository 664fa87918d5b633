//! `cooperate`: the threads of a group share the reductions of one result, or of a few.
//!
//! A parallel loop whose body reduces serially becomes groups; the threads of a group take turns
//! at the iterations of every loop directly in the body. A reduction ends with a tree in shared
//! storage after which every thread has the result, so what follows (a second reduction over the
//! same row, an elementwise loop) goes on as before. What the body itself stores, the first thread
//! stores.
//!
//! Parameters: threads per result, results per group, consecutive iterations per turn. Threads of
//! neighbouring results are neighbours, so reductions along columns of a matrix are read in rows;
//! with one result per group, turns along a row are. A loop inside of a turn holds its consecutive
//! iterations, for `vectorize`.
//!
//! Without a loop (no value), the kernel as a whole is the one result.

use super::loops::{LoopInfo, find_loop, loops};
use super::nest;
use super::rebuild::Rebuild;
use super::variance::{Accumulator, accumulators};
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{BarrierScope, Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use std::ops::Range;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "cooperate",
    doc: "share the reductions of a result among (1) threads, (2) results per group, (3) in runs of",
    reassociates: true,
    sites,
    apply,
};

/// Partial results that one thread combines in a step of the tree.
const RADIX: i64 = 8;

/// Combinations offered.
const CHOICES: [[i64; 3]; 5] = [[4, 1, 1], [32, 1, 4], [8, 8, 1], [8, 7, 1], [256, 1, 1]];

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    if !caps.simt || nest::meets(kernel) {
        return Vec::new();
    }
    let roots = loops(kernel).into_iter().filter(|l| l.depth == 0 && l.is_parallel());
    let bodies = roots.map(|l| Some(l.open)).chain([None]);
    let mut list = Vec::new();
    for value in bodies {
        let Some(found) = Found::of(kernel, value) else { continue };
        let fitting = CHOICES.iter().filter(|&&choice| found.fits(kernel, choice, caps));
        list.extend(fitting.map(|choice| Site { value, params: choice[..].into() }));
    }
    list
}

/// A body whose loops can be shared, and what is in it.
#[derive(Debug)]
pub struct Found {
    /// The loop over results, if there is one.
    pub root: Option<LoopInfo>,
    /// The loops directly in the body, reductions and parallel loops.
    pub children: Vec<LoopInfo>,
    body: Range<usize>,
    /// For each child its accumulators; none for a parallel loop.
    accumulators: Vec<Vec<Accumulator>>,
    /// Loads of what the first thread stores later, which no other thread needs.
    replaced: Vec<Value>,
    /// Whether an iteration of a parallel loop loads what it stores: it must be made once.
    in_place: bool,
}

impl Found {
    /// The body of a parallel loop at the top, or of the whole kernel; `None` where sharing would
    /// change its meaning, or there is no reduction.
    pub fn of(kernel: &Kernel, value: Option<Value>) -> Option<Found> {
        let list = loops(kernel);
        let root = match value {
            Some(_) => {
                let l = find_loop(kernel, value)?;
                Some(l).filter(|l| l.is_parallel() && l.depth == 0 && l.len.is_some_and(|n| n > 0))
            }
            None => None,
        };
        if root.is_none() && value.is_some() {
            return None;
        }
        let body = root.map_or(0..kernel.ops().len(), |l| l.body());
        let (mut children, mut shared) = (Vec::new(), Vec::new());
        let mut i = body.start;
        while i < body.end {
            let v = Value(i as u32);
            i += 1;
            match kernel.op(v) {
                Op::Loop { .. } => {
                    let l = *list.iter().find(|l| l.open == v)?;
                    shared.push(share(kernel, &l)?);
                    children.push(l);
                    i = l.end + 1;
                }
                Op::If { .. } | Op::Atomic { .. } | Op::Barrier { .. } => return None,
                Op::Shuffle { .. } | Op::Mma { .. } | Op::Alloc { space: Space::Shared, .. } => {
                    return None;
                }
                _ => {}
            }
        }
        let reduces = shared.iter().any(|accumulators| !accumulators.is_empty());
        let (accumulators, replaced) = (shared, Vec::new());
        let mut found = Found { root, children, body, accumulators, replaced, in_place: false };
        // Counters of threads and turns are as wide as those they stand for.
        let mut counters = found.root.iter().chain(&found.children);
        let wide = counters.all(|l| kernel.ty(l.open).dtype == DType::I64);
        if !reduces || !wide {
            return None;
        }
        (found.replaced, found.in_place) = found.replaced(kernel)?;
        Some(found)
    }

    /// The loads of what is stored later, and whether iterations of parallel loops have such, too; `None` if a thread
    /// could see another's store. A buffer may be both read and written if the body, or an iteration of one parallel
    /// loop, loads only the element that it stores afterwards, and no loop needs what the body loads.
    fn replaced(&self, kernel: &Kernel) -> Option<(Vec<Value>, bool)> {
        let ops = || self.body.clone().map(|i| (Value(i as u32), kernel.op(Value(i as u32))));
        let child = |v: Value| self.children.iter().find(|l| l.open <= v && v.idx() <= l.end);
        let is_shared = |v: Value| child(v).is_some();
        let slot = |buf| match kernel.op(buf) {
            Op::Param { slot, .. } => Some(slot),
            _ => None,
        };
        let stores = ops().filter_map(|(v, op)| match op {
            Op::Store { buf, index, .. } => Some((slot(buf)?, index, v)),
            _ => None,
        });
        let stores: Vec<(u16, Value, Value)> = stores.collect();
        let (mut replaced, mut in_place) = (Vec::new(), false);
        let mut depends = vec![false; kernel.ops().len()];
        for (v, op) in ops() {
            if let Op::Load { buf, index, .. } = op
                && let Some(slot) = slot(buf)
            {
                let mut own = stores.iter().filter(|store| store.0 == slot).peekable();
                if own.peek().is_some() {
                    let turn = child(v).map(|l| l.open);
                    let fits = |store: &(u16, Value, Value)| {
                        store.1 == index && v < store.2 && child(store.2).map(|l| l.open) == turn
                    };
                    if child(v).is_some_and(|l| !l.is_parallel()) || !own.all(fits) {
                        return None;
                    }
                    in_place |= turn.is_some();
                    if turn.is_none() {
                        replaced.push(v);
                        depends[v.idx()] = true;
                        continue;
                    }
                }
            }
            depends[v.idx()] = op.operands().any(|x| depends[x.idx()]);
            let is_kept = matches!(op, Op::Store { buf, .. } if slot(buf).is_none());
            if depends[v.idx()] && (is_shared(v) || is_kept) {
                return None;
            }
        }
        Some((replaced, in_place))
    }

    /// Whether a device has room for threads per result, results per group and runs like these.
    pub fn fits(&self, kernel: &Kernel, choice: [i64; 3], caps: &Caps) -> bool {
        let [threads, columns, run] = choice;
        let n = self.root.map_or(Some(1), |l| l.len).unwrap_or(0);
        let powers = [threads, run].iter().all(|&x| x > 0 && x & (x - 1) == 0);
        let accumulators = self.accumulators.iter().flatten();
        let bytes: usize = accumulators.map(|a| kernel.ty(a.alloc).dtype.size()).sum();
        let locals = threads * columns;
        powers
            && threads > 1
            && run <= 8
            && (1..=n.max(1)).contains(&columns)
            && (n as u64).div_ceil(columns as u64) <= caps.groups_on_two_axes()
            && locals <= caps.max_local as i64
            && bytes * locals as usize <= caps.shared_bytes
            && !(self.in_place && n % columns != 0)
    }
}

/// Ops that stand before everything.
fn is_argument(op: Op) -> bool {
    matches!(op, Op::Param { .. } | Op::Var { .. })
}

/// What sharing a loop needs: its accumulators if it reduces, nothing if it is parallel.
fn share(kernel: &Kernel, l: &LoopInfo) -> Option<Vec<Accumulator>> {
    l.len?;
    // Threads are counted in `i64`.
    if kernel.ty(l.open).dtype != DType::I64 {
        return None;
    }
    let found = match l.kind {
        Some(LoopKind::Serial) => accumulators(kernel, l).filter(|found| !found.is_empty())?,
        Some(LoopKind::Parallel) => Vec::new(),
        Some(LoopKind::Group | LoopKind::Local) | None => return None,
    };
    let fits = |v: Value| match kernel.op(v) {
        Op::Atomic { .. } | Op::Barrier { .. } | Op::Shuffle { .. } | Op::Mma { .. } => false,
        Op::Break { .. } => false,
        Op::Loop { kind, .. } => matches!(kind, LoopKind::Serial | LoopKind::Parallel),
        Op::Store { buf, .. } => match kernel.op(buf) {
            Op::Param { .. } => l.is_parallel(),
            _ => buf > l.open || found.iter().any(|a| a.store == v),
        },
        _ => true,
    };
    let scalar = |a: &Accumulator| !kernel.ty(a.alloc).is_vector();
    let all = l.body().all(|i| fits(Value(i as u32))) && found.iter().all(scalar);
    all.then_some(found)
}

/// Applies the pass where `Found::fits` a device of any size.
fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let &[threads, columns, run] = &site.params[..] else { return kernel.clone() };
    let Some(found) = Found::of(kernel, site.value) else { return kernel.clone() };
    let any = Caps { max_local: 1024, shared_bytes: 48 << 10, ..Caps::default() };
    if !found.fits(kernel, [threads, columns, run], &any) {
        return kernel.clone();
    }
    let mut r = Rebuild::new(kernel);
    match found.root {
        Some(root) => r.copy_range(0..root.open.idx()),
        None => {
            let all = found.body.clone().map(|i| Value(i as u32));
            all.filter(|&v| is_argument(kernel.op(v))).for_each(|v| {
                r.copy(v);
            });
        }
    }
    let [threads_v, columns_v] = [threads, columns].map(|n| r.out.index(n));
    let n = found.root.and_then(|l| l.len).unwrap_or(1);
    let groups = r.out.index((n + columns - 1) / columns);
    let group = found.root.map(|_| r.out.open_loop(LoopKind::Group, 0, groups));
    let reductions = found.accumulators.iter().flatten();
    let shared: Vec<Value> = reductions
        .map(|a| {
            let ty = Type::scalar(kernel.ty(a.alloc).dtype);
            r.out.alloc(Space::Shared, ty, (threads * columns) as u32)
        })
        .collect();
    let thread = r.out.open_loop(LoopKind::Local, u8::from(columns > 1), threads_v);
    let column = (columns > 1).then(|| r.out.open_loop(LoopKind::Local, 0, columns_v));
    let mut exists = None;
    if let (Some(root), Some(group)) = (found.root, group) {
        let first = r.out.binary(BinaryOp::Mul, group, columns_v);
        let mut result = column.map_or(first, |column| r.out.binary(BinaryOp::Add, first, column));
        // Threads without a result compute the last one, too, and store nothing.
        if n % columns != 0 {
            let (all, last) = (r.out.index(n), r.out.index(n - 1));
            exists = Some(r.out.binary(BinaryOp::Lt, result, all));
            result = r.out.binary(BinaryOp::Min, result, last);
        }
        r.set(root.open, result);
    }
    let shared = shared.into_iter();
    let mut team = Team { r, threads, columns, run, thread, column, exists, shared };
    team.body(&found);
    if column.is_some() {
        team.r.out.close();
    }
    team.r.out.close();
    match found.root {
        Some(root) => {
            team.r.out.close();
            team.r.finish_from(root.end + 1)
        }
        None => team.r.out.finish(),
    }
}

/// The threads that share a result, while the kernel is rewritten.
struct Team<'k, I: Iterator<Item = Value>> {
    r: Rebuild<'k>,
    threads: i64,
    columns: i64,
    run: i64,
    /// This thread's number among those of its result.
    thread: Value,
    /// The number of its result in the group, if there are several.
    column: Option<Value>,
    /// Whether its result is one of the kernel's, if the last group has fewer.
    exists: Option<Value>,
    /// Shared storage, one for each accumulator.
    shared: I,
}

impl<I: Iterator<Item = Value>> Team<'_, I> {
    fn body(&mut self, found: &Found) {
        let mut i = found.body.start;
        while i < found.body.end {
            let v = Value(i as u32);
            let child = found.children.iter().position(|l| l.open == v);
            match (child, self.r.src.op(v)) {
                (Some(child), _) => {
                    let l = found.children[child];
                    self.child(&l, &found.accumulators[child]);
                    i = l.end;
                }
                (_, Op::Store { buf, .. }) if matches!(self.r.src.op(buf), Op::Param { .. }) => {
                    let first = self.first();
                    self.r.out.open_if(first);
                    self.r.copy(v);
                    self.r.out.close();
                }
                (_, Op::Load { buf, index, order }) if found.replaced.contains(&v) => {
                    let mut cond = self.first();
                    let [buf, mut index] = [buf, index].map(|x| self.r.get(x));
                    if let Op::Guard { index: of, cond: own } = self.r.out.op(index) {
                        cond = self.r.out.binary(BinaryOp::And, own, cond);
                        index = of;
                    }
                    let index = self.r.out.guard(index, cond);
                    let ty = self.r.src.ty(v);
                    let loaded = self.r.out.emit(Op::Load { buf, index, order }, ty);
                    self.r.set(v, loaded);
                }
                (_, op) if is_argument(op) => {}
                _ => {
                    self.r.copy(v);
                }
            }
            i += 1;
        }
    }

    /// Whether this thread stores the result.
    fn first(&mut self) -> Value {
        let zero = self.r.out.index(0);
        let first = self.r.out.binary(BinaryOp::Eq, self.thread, zero);
        match self.exists {
            Some(exists) => self.r.out.binary(BinaryOp::And, first, exists),
            None => first,
        }
    }

    /// A loop of the body: its iterations in turns, then the tree of each accumulator.
    fn child(&mut self, l: &LoopInfo, accumulators: &[Accumulator]) {
        let zero = self.r.out.index(0);
        let wholes: Vec<Value> = accumulators.iter().map(|a| self.r.get(a.alloc)).collect();
        for a in accumulators {
            let ty = self.r.src.ty(a.alloc);
            let own = self.r.out.alloc(Space::Register, ty, 1);
            let identity = a.op.identity(ty.dtype);
            let identity = identity.expect("invariant: associative ops have identities");
            let identity = self.r.out.constant(identity);
            self.r.out.store(own, zero, identity);
            self.r.set(a.alloc, own);
        }
        self.turns(l);
        for (a, whole) in accumulators.iter().zip(wholes) {
            let own = self.r.get(a.alloc);
            let own = self.r.out.load(own, zero);
            let total = self.tree(a.op, own);
            let before = self.r.out.load(whole, zero);
            let after = self.r.out.binary(a.op, before, total);
            self.r.out.store(whole, zero, after);
            self.r.set(a.alloc, whole);
        }
    }

    /// The iterations of a loop: `run` consecutive ones to each thread in turn, the rest that no
    /// whole turn takes one by one.
    fn turns(&mut self, l: &LoopInfo) {
        let n = l.len.expect("invariant: shared loops have constant lengths");
        let kind = l.kind.expect("invariant: shared loops have no breaks");
        let whole = self.threads * self.run;
        let turns = n / whole;
        if turns > 0 {
            let count = self.r.out.index(turns);
            let turn = self.r.out.open_loop(LoopKind::Serial, 0, count);
            let start = self.place(turn, self.threads);
            if self.run == 1 {
                self.iteration(l, start);
            } else {
                let run = self.r.out.index(self.run);
                let first = self.r.out.binary(BinaryOp::Mul, start, run);
                let step = self.r.out.open_loop(kind, 0, run);
                let i = self.r.out.binary(BinaryOp::Add, first, step);
                self.iteration(l, i);
                self.r.out.close();
            }
            self.r.out.close();
        }
        let (mut done, rest) = (turns * whole, n % whole);
        for _ in 0..rest / self.threads {
            let base = self.r.out.index(done);
            let i = self.r.out.binary(BinaryOp::Add, base, self.thread);
            self.iteration(l, i);
            done += self.threads;
        }
        if done < n {
            let left = self.r.out.index(n - done);
            let mine = self.r.out.binary(BinaryOp::Lt, self.thread, left);
            self.r.out.open_if(mine);
            let base = self.r.out.index(done);
            let i = self.r.out.binary(BinaryOp::Add, base, self.thread);
            self.iteration(l, i);
            self.r.out.close();
        }
    }

    /// `turn * stride` plus this thread's number.
    fn place(&mut self, turn: Value, stride: i64) -> Value {
        let stride = self.r.out.index(stride);
        let base = self.r.out.binary(BinaryOp::Mul, turn, stride);
        self.r.out.binary(BinaryOp::Add, base, self.thread)
    }

    fn iteration(&mut self, l: &LoopInfo, counter: Value) {
        let counter = self.r.out.cast(self.r.src.ty(l.open).dtype, counter);
        self.r.set(l.open, counter);
        let tests = self.exists.filter(|_| l.is_parallel());
        if let Some(exists) = tests {
            self.r.out.open_if(exists);
        }
        self.r.copy_range(l.body());
        if tests.is_some() {
            self.r.out.close();
        }
    }

    /// Combines a value of each thread; every thread gets the result.
    fn tree(&mut self, op: BinaryOp, own: Value) -> Value {
        let shared = self.shared.next().expect("invariant: one storage for each accumulator");
        let at = self.slot(self.thread);
        self.r.out.store(shared, at, own);
        self.r.out.barrier(BarrierScope::Shared);
        let mut width = self.threads;
        while width > RADIX {
            let next = (width / RADIX).max(RADIX / 2);
            let limit = self.r.out.index(next);
            let mine = self.r.out.binary(BinaryOp::Lt, self.thread, limit);
            self.r.out.open_if(mine);
            let sum = self.combine(op, shared, (Some(self.thread), next), width / next);
            self.r.out.store(shared, at, sum);
            self.r.out.close();
            self.r.out.barrier(BarrierScope::Shared);
            width = next;
        }
        self.combine(op, shared, (None, 1), width)
    }

    /// Combines `count` partial results from a thread's own on, `step` apart.
    fn combine(
        &mut self,
        op: BinaryOp,
        shared: Value,
        (from, step): (Option<Value>, i64),
        count: i64,
    ) -> Value {
        let mut values = Vec::new();
        for i in 0..count {
            let offset = self.r.out.index(i * step);
            let thread = match from {
                Some(from) => self.r.out.binary(BinaryOp::Add, from, offset),
                None => offset,
            };
            let at = self.slot(thread);
            values.push(self.r.out.load(shared, at));
        }
        while values.len() > 1 {
            let pairs = values.chunks(2).map(|pair| match *pair {
                [x, y] => self.r.out.binary(op, x, y),
                _ => pair[0],
            });
            values = pairs.collect();
        }
        values[0]
    }

    /// Where in shared storage a thread's partial result is.
    fn slot(&mut self, thread: Value) -> Value {
        let Some(column) = self.column else { return thread };
        let columns = self.r.out.index(self.columns);
        let row = self.r.out.binary(BinaryOp::Mul, thread, columns);
        self.r.out.binary(BinaryOp::Add, row, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests::{Rng, devices, inputs, run};

    /// A parallel loop over 9 rows `%i` of 11 elements that runs `body` with a register array `%a`, set to 0. It
    /// reads `%p` and may read and write `%r[%i]`.
    fn rows(body: &str) -> Kernel {
        format!(
            "kernel k\nbuffer 0 : i32[99] read\nbuffer 1 : i32[9] readwrite\n%p param 0 read : i32
            %r param 1 readwrite : i32\n%9 const 9 : i64\n%11 const 11 : i64\n%0 const 0 : i64\n%z const 0 : i32
            %i loop parallel %9\n%a alloc register 1 : i32\n%c store %a[%0], %z : i32\n{body}%e end %i"
        )
        .parse()
        .unwrap()
    }

    const SUM: &str = "%j loop serial %11\n%k mul %i, %11 : i64\n%l add %k, %j : i64\n%x load %p[%l] : i32
        %y load %a[%0] : i32\n%s add %x, %y : i32\n%t store %a[%0], %s : i32\n%f end %j\n%b load %a[%0] : i32\n";

    #[test]
    fn what_a_result_replaces_is_read_by_the_thread_that_stores_it() {
        let old = "%o load %r[%i] : i32\n";
        let end = "%w sub %o, %b : i32\n%u store %r[%i], %w : i32\n";
        for body in [format!("{old}{SUM}{end}"), format!("{SUM}{old}{end}")] {
            let kernel = rows(&body);
            let args = inputs(&kernel, &mut Rng(5));
            let expected = run(&kernel, &args, &[]);
            let sites: Vec<Site> = devices().iter().flat_map(|caps| sites(&kernel, caps)).collect();
            assert!(!sites.is_empty(), "{body}");
            for site in sites {
                assert_eq!(run(&apply(&kernel, &site), &args, &[]), expected, "{site:?}");
            }
        }
    }

    #[test]
    fn threads_replace_the_elements_of_their_turns() {
        let turns =
            "%g loop parallel %11\n%h mul %i, %11 : i64\n%n add %h, %g : i64\n%o load %r[%n] : i32
            %w sub %o, %b : i32\n%u store %r[%n], %w : i32\n%v end %g\n";
        let kernel = rows(&format!("{SUM}{turns}")).to_string().replace("i32[9]", "i32[99]");
        let kernel: Kernel = kernel.parse().unwrap();
        let args = inputs(&kernel, &mut Rng(5));
        let expected = run(&kernel, &args, &[]);
        let sites: Vec<Site> = devices().iter().flat_map(|caps| sites(&kernel, caps)).collect();
        // Threads without a row, which the choice of 7 columns has, would read what others store.
        assert!(!sites.is_empty() && sites.iter().all(|site| site.params[1] == 1), "{sites:?}");
        for site in sites {
            assert_eq!(run(&apply(&kernel, &site), &args, &[]), expected, "{site:?}");
        }
    }

    #[test]
    fn what_loops_read_is_not_replaced_meanwhile() {
        let factor = SUM.replace("%s add %x, %y", "%m mul %x, %o : i32\n%s add %m, %y");
        let end = "%w sub %o, %b : i32\n%u store %r[%i], %w : i32\n";
        for body in [
            format!("%o load %r[%i] : i32\n{factor}{end}"),
            format!("%o load %r[%0] : i32\n{SUM}{end}"),
            format!(
                "{SUM}%u store %r[%i], %b : i32\n%o load %r[%i] : i32\n%w store %a[%0], %o : i32\n"
            ),
        ] {
            let kernel = rows(&body);
            assert!(devices().iter().all(|caps| sites(&kernel, caps).is_empty()), "{body}");
        }
    }
}
