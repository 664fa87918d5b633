//! Independent iterations, groups of threads, and what a group does together.
//!
//! The body of a group is uniform: all of its threads run it with the same values. What threads do each for itself stands in
//! [`Group::each`] and in the closures of primitives. Where a device has no threads that share storage, a group is one thread,
//! and each primitive a loop.
//!
//! Barriers are placed here: before what threads do each for itself, if storage that they share was touched since the last one, and
//! at the ends of loops. Those that turn out not to be needed are dropped in the end.

use super::array::{Array, Coordinates, numel};
use super::control::{Carried, Span, Var};
use super::value::{Operand, Val};
use super::{Lang, Role, SMALL, State};
use crate::dtype::DType;
use crate::ir::{Access, BarrierScope, LoopKind, Op, ShuffleKind, Space as Storage, Type, Value};
use crate::ops::BinaryOp;

/// Threads of a group of independent iterations.
const EACH: usize = 256;

/// Most threads of a group on a processor that is programmed as a device of many threads: as many as it has lanes.
const FEW: usize = 16;

/// Accesses of storage that the threads of a group share.
#[derive(Clone, Copy, Default)]
pub(super) struct Touched {
    read: bool,
    written: bool,
}

impl Touched {
    pub(super) const READ: Touched = Touched { read: true, written: false };
    pub(super) const WRITTEN: Touched = Touched { read: false, written: true };

    fn is_any(self) -> bool {
        self.read || self.written
    }

    fn and(self, other: Touched) -> Touched {
        Touched { read: self.read | other.read, written: self.written | other.written }
    }

    /// Whether a barrier has to stand between these and others.
    fn conflicts(self, other: Touched) -> bool {
        self.written && other.is_any() || self.read && other.written
    }
}

/// The threads of the group being recorded.
#[derive(Default)]
pub(super) struct Threads {
    count: usize,
    /// The number of the thread; none where the group is one thread.
    number: Option<Value>,
    /// Whether a thread does something for itself.
    alone: bool,
    /// Accesses of shared storage since the last barrier.
    touched: Touched,
    /// Of each open loop or condition, those of threads that leave it by a break.
    left: Vec<Touched>,
    /// Shared storage of primitives that was given back.
    free: Vec<Value>,
}

/// Extents of a space of iterations: a number, an array or a list of them. The closure gets as many coordinates.
pub trait Space<'k>: Coordinates<'k> {
    /// The coordinates of a point: a value, an array or a list of values.
    type At: Carried<'k>;
}

impl<'k, T: Operand<'k>> Space<'k> for T {
    type At = Val<'k>;
}

impl<'k, T: Operand<'k>, const N: usize> Space<'k> for [T; N] {
    type At = [Val<'k>; N];
}

impl<'k> Space<'k> for &[Val<'k>] {
    type At = Vec<Val<'k>>;
}

impl State {
    fn group(&mut self) -> Option<&mut Threads> {
        self.threads.as_mut().filter(|threads| threads.number.is_some() && !threads.alone)
    }
}

impl Lang {
    /// Runs the body once for each point of a space, in any order and at the same time: the launch geometry follows from
    /// the extents.
    #[track_caller]
    pub fn each<'k, S: Space<'k>>(&'k self, space: S, body: impl FnOnce(S::At)) {
        let extents = space.list(self);
        self.outermost("each", || {
            let body = |at: &[Val<'k>]| self.of_program(|| body(S::At::with(at)));
            if self.caps().simt {
                self.each_on_threads(&extents, body);
            } else {
                self.each_in_loops(&extents, LoopKind::Parallel, body);
            }
        });
    }

    /// Records the outermost parallel loops; fails within a loop or a group.
    #[track_caller]
    fn outermost(&self, what: &str, write: impl FnOnce()) {
        if self.state.borrow().b.depth() > 0 {
            return self.fail(format_args!(
                "`{what}` stands within a loop or a group: it opens the outermost one"
            ));
        }
        self.primitive(write);
    }

    /// Loops over all extents; those over iterations that store to storage of around are serial.
    pub(super) fn each_in_loops<'k>(
        &'k self,
        extents: &[Val<'k>],
        kind: LoopKind,
        body: impl FnOnce(&[Val<'k>]),
    ) {
        body(&self.open_loops(extents, kind));
        for _ in extents {
            self.state.borrow_mut().parallel.pop();
            self.close();
        }
    }

    #[inline(never)]
    fn open_loops<'k>(&'k self, extents: &[Val<'k>], kind: LoopKind) -> Vec<Val<'k>> {
        let open = |&extent: &Val<'k>| {
            let counter = self.open_loop(kind, 0, self.as_index(extent));
            self.state.borrow_mut().parallel.push(counter.value);
            counter
        };
        extents.iter().map(open).collect()
    }

    fn each_on_threads<'k>(&'k self, extents: &[Val<'k>], body: impl FnOnce(&[Val<'k>])) {
        let total = extents.iter().fold(self.index(1), |total, &extent| total * extent);
        let total = self.counted(total, "the number of iterations");
        let threads = EACH.min(self.caps().max_local.max(1));
        let groups = self.derived(total.div_ceil(threads), "the number of iterations").1;
        self.in_groups(&[groups], threads, |group| {
            let number = group[0] * threads + Group { k: self }.thread();
            if let Some(threads) = &mut self.state.borrow_mut().threads {
                threads.alone = true;
            }
            self.inside(number.lt(total), || {
                // A bound lets the pass `narrow` divide in 32 bits.
                let bounded = || number.minimum(total.maximum(1) - 1);
                let number = if extents.len() > 1 { bounded() } else { number };
                body(&self.digits(number, extents));
            });
        });
    }

    /// Opens a loop; gives its counter.
    pub(super) fn open_loop<'k>(&'k self, kind: LoopKind, axis: u8, len: Val<'k>) -> Val<'k> {
        self.val(|s| s.b.open_loop(kind, axis, len.value))
    }

    /// Closes a loop or condition.
    pub(super) fn close(&self) {
        self.emit(|s| s.b.close());
    }

    /// Records the body where a condition holds, in which there are no barriers.
    fn inside(&self, condition: Val<'_>, body: impl FnOnce()) {
        self.emit(|s| s.b.open_if(condition.value));
        body();
        self.close();
    }

    /// A number of iterations or groups that follows from sizes.
    fn counted<'k>(&'k self, n: Val<'k>, what: &str) -> Val<'k> {
        let (expr, n) = self.derived(n, what);
        self.state.borrow_mut().recorded.spaces.push(expr);
        n
    }

    /// The coordinates of a number in a space.
    #[inline(never)]
    pub(super) fn digits<'k>(&'k self, number: Val<'k>, extents: &[Val<'k>]) -> Vec<Val<'k>> {
        let (mut at, mut rest) = (extents.to_vec(), number);
        for digit in at.iter_mut().skip(1).rev() {
            (*digit, rest) = (rest % *digit, rest / *digit);
        }
        at.iter_mut().take(1).for_each(|first| *first = rest);
        at
    }

    /// Opens groups of so many threads, a group for each point of a space of up to three axes, and runs the body for them.
    /// Threads are a power of two, and fewer where the device has fewer.
    #[track_caller]
    pub fn groups<'k, S: Space<'k>>(
        &'k self,
        space: S,
        threads: usize,
        body: impl FnOnce(Group<'k>, S::At),
    ) {
        let extents = space.list(self);
        self.outermost("groups", || {
            let n = extents.len();
            if !threads.is_power_of_two() || threads > 1024 || !(1..=3).contains(&n) {
                return self.fail(format_args!(
                    "groups of {threads} threads along {n} axes: a power of two up to 1024, and one to three axes"
                ));
            }
            let caps = self.caps();
            let most = 1 << caps.max_local.max(1).ilog2();
            let most = if caps.has_few_threads() { most.min(FEW) } else { most };
            let threads = if caps.simt { threads.min(most) } else { 1 };
            let counted = extents.iter().map(|&extent| self.counted(extent, "a number of groups"));
            let extents: Vec<Val<'k>> = counted.collect();
            self.in_groups(&extents, threads, |at| {
                self.of_program(|| body(Group { k: self }, S::At::with(at)));
            });
        });
    }

    /// Groups with a number in each axis.
    fn in_groups<'k>(&'k self, extents: &[Val<'k>], count: usize, body: impl FnOnce(&[Val<'k>])) {
        let set = |threads| self.state.borrow_mut().threads = threads;
        if !self.caps().simt {
            set(Some(Threads { count: 1, ..Threads::default() }));
            self.each_in_loops(extents, LoopKind::Parallel, body);
            return set(None);
        }
        if self.caps().max_iterations > 0 {
            self.cut();
        }
        // Numbers of groups stand at the top, where launches know them.
        let axes = (0..extents.len() as u8).rev();
        let most = |(&extent, axis)| self.most_groups(axis, extent);
        let most: Vec<Option<i64>> = extents.iter().zip(axes.clone()).map(most).collect();
        let len = |(&x, most): (&Val<'k>, &Option<i64>)| most.map_or(x, |most| x.minimum(most));
        let lens: Vec<Val<'k>> = extents.iter().zip(&most).map(len).collect();
        let open = |(len, axis)| self.open_loop(LoopKind::Group, axis, len);
        let mut at: Vec<Val<'k>> = lens.into_iter().zip(axes).map(open).collect();
        let number = self.open_loop(LoopKind::Local, 0, self.index(count as i64)).value;
        set(Some(Threads { count, number: (count > 1).then_some(number), ..Threads::default() }));
        for ((at, &extent), most) in at.iter_mut().zip(extents).zip(&most) {
            let Some(most) = *most else { continue };
            // More groups than the axis holds: each takes several in turn.
            let times = (extent - *at + (most - 1)) / most;
            *at = self.open_loop(LoopKind::Serial, 0, times) * most + *at;
        }
        body(&at);
        let turns = most.iter().flatten().count();
        if turns > 0 {
            self.barrier_at_end();
        }
        for _ in 0..turns + 1 + extents.len() {
            self.close();
        }
        set(None);
    }

    /// The number of groups along an axis, where that may be less than there are to be.
    fn most_groups(&self, axis: u8, extent: Val<'_>) -> Option<i64> {
        let most = self.caps().max_groups[usize::from(axis)].min(i64::MAX as u64) as i64;
        let known = extent.literal().map(|x| x.to_i64());
        let fits = known.unwrap_or(SMALL as i64) <= most;
        (!fits || self.setting.large && known.is_none()).then_some(most)
    }

    /// The argument that tells of loops that did not come to their end.
    pub(super) fn cut(&self) -> Value {
        let known = self.state.borrow().cut;
        known.unwrap_or_else(|| {
            let cut = self.declare("cut", DType::I32, &[self.index(1)], Role::Cut).storage();
            self.state.borrow_mut().cut = Some(cut);
            cut
        })
    }

    /// Notes an access of storage that threads share.
    #[track_caller]
    pub(super) fn touch(&self, array: &Array<'_>, touched: Touched) {
        if touched.written && matches!(array.op(), Op::Alloc { .. }) {
            self.stores_to(array.storage());
        }
        // Other threads see what a thread stores, and it is stored to.
        if !array.is_shared() || array.access() != Access::ReadWrite {
            return;
        }
        self.barrier_if(|before| before.conflicts(touched));
        if let Some(threads) = &mut self.state.borrow_mut().threads {
            threads.touched = threads.touched.and(touched);
        }
    }

    /// Makes loops serial whose iterations store to storage of around, which others may see.
    pub(super) fn stores_to(&self, storage: Value) {
        let state = &mut *self.state.borrow_mut();
        for &open in state.parallel.iter().filter(|&&open| open > storage) {
            state.b.set_kind(open, LoopKind::Serial);
        }
    }

    /// A barrier, where all threads of the group arrive before any goes on, if accesses of shared storage since the last one need
    /// it; gives both.
    #[track_caller]
    fn barrier_if(&self, is_needed: impl FnOnce(Touched) -> bool) -> Option<(Touched, Value)> {
        let touched = self.state.borrow_mut().group()?.touched;
        if !is_needed(touched) {
            return None;
        }
        let barrier = self.emit(|s| s.b.barrier(BarrierScope::Group));
        self.state.borrow_mut().group()?.touched = Touched::default();
        Some((touched, barrier))
    }

    /// A barrier if shared storage was touched: at the end of a body that runs again.
    pub(super) fn barrier_at_end(&self) {
        self.barrier_if(Touched::is_any);
    }

    /// Begins a loop or condition.
    pub(super) fn enter(&self) {
        if let Some(threads) = &mut self.state.borrow_mut().threads {
            threads.left.push(Touched::default());
        }
    }

    /// Notes that threads leave the innermost loop before the barrier at its end.
    pub(super) fn leave_early(&self) {
        if let Some(Threads { touched, left, .. }) = &mut self.state.borrow_mut().threads
            && let Some(left) = left.last_mut()
        {
            *left = left.and(*touched);
        }
    }

    /// Ends a loop or condition.
    pub(super) fn leave(&self) {
        if let Some(Threads { touched, left, .. }) = &mut self.state.borrow_mut().threads {
            *touched = touched.and(left.pop().unwrap_or_default());
        }
    }

    /// Whether what follows is done by all threads of a group together.
    pub(super) fn is_uniform(&self) -> bool {
        self.state.borrow_mut().group().is_some()
    }

    /// Records what a thread does for itself, without barriers.
    pub(super) fn alone<R>(&self, body: impl FnOnce() -> R) -> R {
        let set = |alone: bool| {
            let threads = &mut self.state.borrow_mut().threads;
            threads.as_mut().is_some_and(|threads| std::mem::replace(&mut threads.alone, alone))
        };
        let before = set(true);
        let result = body();
        set(before);
        result
    }
}

/// A group of threads.
#[derive(Clone, Copy, Debug)]
pub struct Group<'k> {
    pub(super) k: &'k Lang,
}

impl<'k> Group<'k> {
    /// Its number of threads: 1 where the device has no threads that share storage.
    pub fn threads(self) -> usize {
        self.k.state.borrow().threads.as_ref().map_or(1, |threads| threads.count)
    }

    /// The number of the thread; 0 where the group is one thread.
    pub(super) fn thread(self) -> Val<'k> {
        self.number().unwrap_or_else(|| self.k.index(0))
    }

    pub(super) fn number(self) -> Option<Val<'k>> {
        Some(self.k.val_of(self.k.state.borrow().threads.as_ref()?.number?))
    }

    /// Storage of literal extents that all threads of the group see, not initialised.
    #[track_caller]
    pub fn shared(self, shape: impl AsRef<[usize]>, dtype: DType) -> Array<'k> {
        self.scratch(shape.as_ref(), dtype)
    }

    /// Shared storage of a primitive, until it is given back: primitives that follow one another have the same.
    #[track_caller]
    pub(super) fn scratch(self, shape: &[usize], dtype: DType) -> Array<'k> {
        self.scratch_of(shape, Type::scalar(dtype))
    }

    /// As [`Group::scratch`], of elements of a type.
    #[track_caller]
    pub(super) fn scratch_of(self, shape: &[usize], ty: Type) -> Array<'k> {
        let wanted = numel(shape).map(|len| Op::Alloc { space: Storage::Shared, len });
        let free = {
            let State { b, threads, .. } = &mut *self.k.state.borrow_mut();
            threads.as_mut().and_then(|Threads { free, .. }| {
                let found = free.iter().position(|&x| (Some(b.op(x)), b.ty(x)) == (wanted, ty));
                found.map(|number| free.remove(number))
            })
        };
        let space = if self.number().is_some() { Storage::Shared } else { Storage::Register };
        match free {
            Some(storage) => Array::of_parts(self.k, storage, shape),
            None => Array::own(self.k, space, ty, shape),
        }
    }

    /// Gives storage of a primitive back.
    pub(super) fn give_back(self, array: &Array<'k>) {
        if let Some(threads) = &mut self.k.state.borrow_mut().threads {
            threads.free.push(array.storage());
        }
    }

    /// Records what threads do each for itself: with a barrier before it where shared storage was touched.
    pub(super) fn phase<R>(self, what: &str, body: impl FnOnce() -> R) -> R {
        self.is_whole(what);
        let before = self.k.barrier_if(Touched::is_any);
        let result = self.k.alone(body);
        self.end_phase(before);
        result
    }

    /// Runs a phase without a barrier before it: its accesses of shared storage are known not to meet those since the last one.
    pub(super) fn phase_beside(self, what: &str, body: impl FnOnce()) {
        let touched = || self.k.state.borrow_mut().group().map(|x| std::mem::take(&mut x.touched));
        let before = touched().unwrap_or_default();
        self.phase(what, body);
        if let Some(threads) = self.k.state.borrow_mut().group() {
            threads.touched = threads.touched.and(before);
        }
    }

    /// Refuses what only all threads of a group do together where one thread works for itself.
    #[track_caller]
    pub(super) fn is_whole(self, what: &str) {
        let alone = self.k.state.borrow().threads.as_ref().is_some_and(|threads| threads.alone);
        if alone {
            self.k.fail(format_args!(
                "`{what}` is of a whole group, and stands in what one thread does for itself"
            ));
        }
    }

    /// Drops the barrier of a phase that did not need it.
    #[inline(never)]
    fn end_phase(self, met: Option<(Touched, Value)>) {
        let State { threads, unneeded, .. } = &mut *self.k.state.borrow_mut();
        if let (Some((before, barrier)), Some(threads)) = (met, threads)
            && !before.conflicts(threads.touched)
        {
            unneeded.push(barrier);
            threads.touched = threads.touched.and(before);
        }
    }

    /// Runs the body once for each point of a space, its points spread over the threads.
    #[track_caller]
    pub fn each<S: Space<'k>>(self, space: S, body: impl FnOnce(S::At)) {
        let k = self.k;
        let extents = space.list(k);
        k.primitive(|| {
            self.phase("each", || {
                self.spread(&extents, |at| k.of_program(|| body(S::At::with(at))));
            });
        });
    }

    /// Runs the body in one thread of the group: the first. A variable that it sets is set for that thread; [`Group::broadcast`] gives a
    /// value to all.
    #[track_caller]
    pub fn elect(self, body: impl FnOnce()) {
        self.k.primitive(|| self.in_first_thread("elect", || self.k.of_program(body)));
    }

    /// A phase of the first thread alone.
    pub(super) fn in_first_thread(self, what: &str, body: impl FnOnce()) {
        self.phase(what, || match self.number() {
            Some(number) => self.k.inside(number.eq(0), body),
            None => body(),
        });
    }

    /// The value that the closure gives in one thread of the group, the first, for all threads, converted to a dtype.
    ///
    /// ```
    /// use zyx_ir::DType;
    /// use zyx_ir::lang::{Lang, Setting, record};
    ///
    /// // The end of each list: one thread searches, all fill the rest with zeros.
    /// let padded = |k: &Lang| {
    ///     let [lists, n] = k.sizes(["lists", "n"]);
    ///     let (x, y) = (k.input("x", [lists, n]), k.output("y", [lists, n], DType::F32));
    ///     k.groups([lists], 64, |g, [list]| {
    ///         let end = g.broadcast(DType::I64, || {
    ///             k.fold(n, n, |end, i| (end.eq(n) & x.at([list, i]).lt(0)).select(i, end))
    ///         });
    ///         g.each(n, |i| y.set([list, i], x.at_if(i.lt(end), [list, i], 0)));
    ///     });
    /// };
    /// let setting = Setting { inputs: vec![DType::F32], ..Setting::default() };
    /// record("padded", &setting, padded)?;
    /// # Ok::<(), zyx_ir::lang::LangError>(())
    /// ```
    #[track_caller]
    pub fn broadcast(self, dtype: DType, value: impl FnOnce() -> Val<'k>) -> Val<'k> {
        self.is_whole("broadcast");
        self.k.primitive(|| {
            self.value_of_first_thread(dtype, || self.k.of_program(value).cast(dtype))
        })
    }

    /// The value that the first thread finds, for all threads of a group that does something together.
    pub(super) fn value_of_first_thread(
        self,
        dtype: DType,
        find: impl FnOnce() -> Val<'k>,
    ) -> Val<'k> {
        if !self.k.is_uniform() {
            return self.k.alone(find);
        }
        let told = self.scratch(&[1], dtype);
        self.in_first_thread("broadcast", || told.set(0, find()));
        let value = told.at(0);
        self.give_back(&told);
        value
    }

    /// Copies an array, as a tile of an argument, to another one with its extents: into shared storage, or out of it.
    #[track_caller]
    pub fn copy(self, from: &Array<'k>, to: &Array<'k>) {
        let extents = |x: &Array<'k>| x.shape().into_iter().map(Val::literal).collect::<Vec<_>>();
        if extents(from) != extents(to) {
            return self.k.fail("`copy` needs two arrays of the same extents");
        }
        let copy = |at: &[Val<'k>]| to.set(at, from.at(at));
        self.k.primitive(|| self.phase("copy", || self.spread(&to.shape(), copy)));
    }

    /// Loops over a space whose points are spread over the threads, neighbours to neighbours.
    pub(super) fn spread(self, extents: &[Val<'k>], body: impl FnOnce(&[Val<'k>])) {
        let k = self.k;
        let Some(number) = self.number() else {
            return k.each_in_loops(extents, LoopKind::Parallel, body);
        };
        body(&self.open_spread(extents, number));
        k.close();
    }

    /// Opens the loop of a thread over its points.
    #[inline(never)]
    fn open_spread(self, extents: &[Val<'k>], number: Val<'k>) -> Vec<Val<'k>> {
        let k = self.k;
        let threads = self.threads() as i64;
        let total = extents.iter().fold(k.index(1), |total, &extent| total * k.as_index(extent));
        let whole = total.literal().is_some_and(|n| n.to_i64() % threads == 0);
        let len = if whole { total / threads } else { (total - number + (threads - 1)) / threads };
        let turn = k.open_loop(LoopKind::Serial, 0, len);
        k.digits(turn * threads + number, extents)
    }

    /// Combines a value for each number of a range by an associative operation, in an order that depends on the number of
    /// threads alone. All threads get the result.
    #[track_caller]
    pub fn reduce(
        self,
        op: BinaryOp,
        span: impl Span<'k>,
        value: impl FnOnce(Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        let k = self.k;
        let (first, len) = k.numbers(span);
        k.primitive(|| {
            let part = self.phase("reduce", || {
                let [storage, init, store] = k.accumulator();
                let sum = || Var(Array::of_parts(k, storage, &[]));
                self.spread(&[len], |at| {
                    let value = k.of_program(|| value(first + at[0]));
                    k.complete([storage, init, store], op, value.dtype());
                    sum().set(sum().get().binary(op, value));
                });
                sum().get()
            });
            self.combine(op, part)
        })
    }

    /// Combines the values that threads have; all get the result.
    #[inline(never)]
    pub(super) fn combine(self, op: BinaryOp, part: Val<'k>) -> Val<'k> {
        let Some(number) = self.number() else { return part };
        let (k, lanes) = (self.k, self.lanes());
        let (value, mut left) = (self.combine_lanes(op, part, lanes), self.threads() / lanes);
        if left == 1 {
            return value;
        }
        let mut parts = self.scratch(&[left], part.dtype());
        self.phase("reduce", || self.keep_of_subgroup(&parts, number, value));
        if left > 16 {
            let few = 1 << (left.ilog2() / 2);
            let sums = self.scratch(&[few], part.dtype());
            self.phase("reduce", || {
                k.when(number.lt(few), || {
                    let add = |sum: Val<'k>, i| sum.binary(op, parts.at(i * few + number));
                    sums.set(number, k.fold(1..left / few, parts.at(number), add));
                });
            });
            self.give_back(&parts);
            (parts, left) = (sums, few);
        }
        let result = self
            .phase("reduce", || k.fold(1..left, parts.at(0), |sum, i| sum.binary(op, parts.at(i))));
        self.give_back(&parts);
        result
    }

    /// Combines the values of so many neighbours of a subgroup; all get the result.
    pub(super) fn combine_lanes(self, op: BinaryOp, value: Val<'k>, lanes: usize) -> Val<'k> {
        let distances = (0..lanes.ilog2()).rev().map(|bit| self.k.index(1 << bit));
        distances
            .fold(value, |value, by| value.binary(op, self.k.shuffle(ShuffleKind::Xor, value, by)))
    }

    /// Stores the value that the threads of each subgroup agree on.
    fn keep_of_subgroup(self, parts: &Array<'k>, number: Val<'k>, value: Val<'k>) {
        let lanes = self.lanes();
        let at = number / lanes;
        let store = || parts.set(at, value);
        if lanes > 1 { self.k.when((number % lanes).eq(0), store) } else { store() }
    }

    /// Threads of a subgroup whose values are exchanged without storage; 1 if there are none of a known number.
    pub(super) fn lanes(self) -> usize {
        let lanes = self.k.caps().lanes().map_or(1, |lanes| lanes as usize);
        if lanes <= self.threads() { lanes } else { 1 }
    }

    /// Runs a scan along a range: `emit` gets each number, the combination of the values before it and that with its
    /// own. All threads get the combination of all.
    #[track_caller]
    pub fn scan(
        self,
        op: BinaryOp,
        span: impl Span<'k>,
        dtype: DType,
        value: impl FnOnce(Val<'k>) -> Val<'k>,
        emit: impl FnOnce(Val<'k>, Val<'k>, Val<'k>),
    ) -> Val<'k> {
        let (k, (first, len)) = (self.k, self.k.numbers(span));
        let value = |at| k.of_program(|| value(first + at));
        let emit = |at, before, after| k.of_program(|| emit(first + at, before, after));
        k.primitive(|| {
            let Some(identity) = op.identity(dtype) else {
                k.fail(format_args!("`scan` by `{op}`, which has no neutral element on {dtype}"));
                return k.value(0, dtype);
            };
            let identity = k.val(|s| s.b.constant(identity));
            let carry = k.var(identity);
            if self.number().is_none() {
                self.phase("scan", || {
                    k.for_each(len, |at| {
                        let before = carry.get();
                        let after = before.binary(op, value(at));
                        carry.set(after);
                        emit(at, before, after);
                    });
                });
                return carry.get();
            }
            self.scan_turns("scan", (op, identity), len, value, |at, own, before, all| {
                let before = carry.get().binary(op, before);
                self.phase("scan", || {
                    k.when(at.lt(len), || emit(at, before, before.binary(op, own)));
                });
                carry.set(carry.get().binary(op, all));
            });
            carry.get()
        })
    }

    /// Scans numbers in turns of as many as there are threads: `emit` gets a number of each, its value, the combination of
    /// those before it in its turn, and that of the turn.
    pub(super) fn scan_turns(
        self,
        what: &str,
        (op, identity): (BinaryOp, Val<'k>),
        len: Val<'k>,
        value: impl FnOnce(Val<'k>) -> Val<'k>,
        emit: impl FnOnce(Val<'k>, Val<'k>, Val<'k>, Val<'k>),
    ) {
        let (k, threads) = (self.k, self.threads());
        k.for_each(len.div_ceil(threads), |turn| {
            let at = turn * threads + self.thread();
            let own = k.var(identity);
            self.phase(what, || k.when(at.lt(len), || own.set(value(at))));
            let own = own.get();
            let (before, all) = self.before(op, own, identity);
            emit(at, own, before, all);
        });
    }

    /// The combination of the values of the threads before each, and of all.
    pub(super) fn before(
        self,
        op: BinaryOp,
        own: Val<'k>,
        identity: Val<'k>,
    ) -> (Val<'k>, Val<'k>) {
        let Some(number) = self.number() else { return (identity, own) };
        let (k, lanes) = (self.k, self.lanes());
        let (mut before, mut whole) = (identity, own);
        if lanes > 1 {
            let lane = number % lanes as i64;
            let mut sum = own;
            for by in (0..lanes.ilog2()).map(|bit| 1i64 << bit) {
                let other = k.shuffle(ShuffleKind::Index, sum, (lane - by).maximum(0));
                sum = lane.ge(by).select(other.binary(op, sum), sum);
            }
            let shifted = k.shuffle(ShuffleKind::Index, sum, (lane - 1).maximum(0));
            before = lane.ge(1).select(shifted, identity);
            whole = k.shuffle(ShuffleKind::Index, sum, k.index(lanes as i64 - 1));
        }
        let left = self.threads() / lanes;
        if left == 1 {
            return (before, whole);
        }
        let parts = self.scratch(&[left], own.dtype());
        let at = number / lanes;
        self.phase("scan", || self.keep_of_subgroup(&parts, number, whole));
        // Few threads run over parts of the parts, then each over what is before its own.
        let few = 1usize << (left.ilog2() / 2);
        let every = left / few;
        let sums = self.scratch(&[few], own.dtype());
        self.phase("scan", || {
            k.when(number.lt(few), || {
                let all = k.fold(0..every, identity, |sum, i| {
                    let place = number * every + i;
                    let next = sum.binary(op, parts.at(place));
                    parts.set(place, sum);
                    next
                });
                sums.set(number, all);
            });
        });
        let (earlier, all) = self.phase("scan", || {
            let part = at / every as i64;
            let earlier = k.fold(k.index(0)..part, identity, |sum, i| sum.binary(op, sums.at(i)));
            let all = k.fold(0..few, identity, |sum, i| sum.binary(op, sums.at(i)));
            (earlier.binary(op, parts.at(at)), all)
        });
        self.give_back(&parts);
        self.give_back(&sums);
        (earlier.binary(op, before), all)
    }
}

impl Lang {
    /// A variable that [`Lang::complete`] gives its dtype and first value: its storage, that value, and the store of it.
    fn accumulator(&self) -> [Value; 3] {
        let ty = Type::scalar(DType::F32);
        self.emit(|s| {
            let storage = s.b.alloc(Storage::Register, ty, 1);
            let zero = s.b.index(0);
            // Not shared with other constants, since it will be another one.
            let init = s.b.push(Op::Const { bits: 0 }, ty);
            [storage, init, s.b.store(storage, zero, init)]
        })
    }

    fn complete(&self, [storage, init, store]: [Value; 3], op: BinaryOp, dtype: DType) {
        let Some(identity) = op.identity(dtype) else {
            let reason = format!("`reduce` by `{op}`, which has no neutral element on {dtype}");
            return self.fail(reason);
        };
        let ty = Type::scalar(dtype);
        let b = &mut self.state.borrow_mut().b;
        b.replace(init, Op::Const { bits: identity.bits() }, ty);
        for value in [storage, store] {
            b.replace(value, b.op(value), ty);
        }
    }

    /// The value of another thread of the subgroup.
    #[inline(never)]
    pub(super) fn shuffle<'k>(&'k self, kind: ShuffleKind, x: Val<'k>, lane: Val<'k>) -> Val<'k> {
        let lane = lane.cast(DType::I32);
        self.val(|s| {
            let ty = s.b.ty(x.value);
            s.b.emit(Op::Shuffle { kind, x: x.value, lane: lane.value }, ty)
        })
    }
}
