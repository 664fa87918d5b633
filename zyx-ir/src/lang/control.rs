//! Loops, conditions and variables.

use super::array::Array;
use super::value::{Operand, Val};
use super::{Lang, SMALL};
use crate::dtype::DType;
use crate::ir::{LoopKind, Order, Space, Type};
use std::ops::Range;

/// What a loop runs over: `n` for `0 .. n`, or a range.
pub trait Span<'k> {
    /// The first number, if it is not 0, and the end.
    fn bounds(self, k: &'k Lang) -> (Option<Val<'k>>, Val<'k>);
}

impl<'k, T: Operand<'k>> Span<'k> for T {
    #[track_caller]
    fn bounds(self, k: &'k Lang) -> (Option<Val<'k>>, Val<'k>) {
        (None, self.val(k, DType::I64))
    }
}

impl<'k, T: Operand<'k>> Span<'k> for Range<T> {
    #[track_caller]
    fn bounds(self, k: &'k Lang) -> (Option<Val<'k>>, Val<'k>) {
        (Some(self.start.val(k, DType::I64)), self.end.val(k, DType::I64))
    }
}

/// First number and count of a span.
pub(super) type Numbers<'k> = (Val<'k>, Val<'k>);

/// What a loop carries from one iteration to the next: a value, or several.
pub trait Carried<'k> {
    /// The values.
    fn list(&self) -> Vec<Val<'k>>;
    /// The same with other values.
    fn with(values: &[Val<'k>]) -> Self;
}

macro_rules! carried {
    ($($ty:ty $(, $n:ident)?: |$all:ident| $list:expr, |$values:ident| $with:expr;)*) => {$(
        impl<'k $(, const $n: usize)?> Carried<'k> for $ty {
            fn list(&self) -> Vec<Val<'k>> {
                let $all = self;
                $list
            }

            fn with($values: &[Val<'k>]) -> $ty {
                $with
            }
        }
    )*};
}

carried! {
    Val<'k>: |x| vec![*x], |values| values[0];
    (Val<'k>, Val<'k>): |pair| vec![pair.0, pair.1], |values| (values[0], values[1]);
    [Val<'k>; N], N: |array| array.to_vec(), |values| std::array::from_fn(|i| values[i]);
    Vec<Val<'k>>: |list| list.clone(), |values| values.to_vec();
}

/// A variable of a thread.
#[derive(Clone, Debug)]
pub struct Var<'k>(pub(super) Array<'k>);

impl<'k> Var<'k> {
    /// What was stored last.
    #[track_caller]
    pub fn get(&self) -> Val<'k> {
        self.0.at(())
    }

    /// Stores a value of the variable's dtype.
    #[track_caller]
    pub fn set(&self, value: impl Operand<'k>) {
        self.0.set((), value);
    }

    /// Its dtype.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }
}

impl Lang {
    /// A variable that begins with a value.
    #[track_caller]
    pub fn var<'k>(&'k self, init: Val<'k>) -> Var<'k> {
        let var = Var(Array::own(self, Space::Register, Type::scalar(init.dtype()), &[]));
        var.set(init);
        var
    }

    /// Storage of one thread of literal extents, not initialised.
    #[track_caller]
    pub fn array(&self, shape: impl AsRef<[usize]>, dtype: DType) -> Array<'_> {
        Array::own(self, Space::Register, Type::scalar(dtype), shape.as_ref())
    }

    /// Runs the body once for each number, in order.
    #[track_caller]
    pub fn for_each<'k>(&'k self, span: impl Span<'k>, body: impl FnOnce(Val<'k>)) {
        body(self.open_for(self.numbers(span)));
        self.close_region();
    }

    /// The first number of a span, and how many they are.
    #[track_caller]
    pub(super) fn numbers<'k>(&'k self, span: impl Span<'k>) -> Numbers<'k> {
        let (start, end) = span.bounds(self);
        let start = start.unwrap_or_else(|| self.index(0));
        let (start, end) = (self.as_index(start), self.as_index(end));
        let zero = start.literal().is_some_and(|x| x.to_i64() == 0);
        (start, if zero { end } else { (end - start).maximum(0) })
    }

    #[track_caller]
    #[inline(never)]
    fn open_for<'k>(&'k self, (first, len): Numbers<'k>) -> Val<'k> {
        self.primitive(|| {
            self.barrier_at_end();
            self.enter();
            let counter = self.open_loop(LoopKind::Serial, 0, len);
            if first.literal().is_some_and(|x| x.to_i64() == 0) { counter } else { first + counter }
        })
    }

    /// Closes a loop or condition that may hold barriers.
    #[track_caller]
    #[inline(never)]
    fn close_region(&self) {
        self.primitive(|| {
            self.barrier_at_end();
            self.close();
            self.leave();
        });
    }

    /// Runs the body for each number, in order, with what the one before gave; gives what the last one gave.
    #[track_caller]
    pub fn fold<'k, C: Carried<'k>>(
        &'k self,
        span: impl Span<'k>,
        init: C,
        body: impl FnOnce(C, Val<'k>) -> C,
    ) -> C {
        let vars: Vec<Var<'k>> = init.list().into_iter().map(|x| self.var(x)).collect();
        let now = || vars.iter().map(Var::get).collect::<Vec<_>>();
        let site = self.here();
        self.for_each(span, |i| {
            let before = now();
            let new = body(C::with(&before), i).list();
            for (var, value) in vars.iter().zip(new) {
                if value.dtype() != var.dtype() {
                    let (from, to) = (var.dtype(), value.dtype());
                    let reason = format!("`fold` begins with {from} and goes on with {to}");
                    self.fail_at(site.clone(), reason);
                }
                var.set(value);
            }
        });
        C::with(&now())
    }

    /// Runs the body where a condition holds.
    #[track_caller]
    pub fn when<'k>(&'k self, condition: Val<'k>, body: impl FnOnce()) {
        if self.open_when(condition) {
            body();
            self.close_region();
        }
    }

    #[track_caller]
    #[inline(never)]
    fn open_when<'k>(&'k self, condition: Val<'k>) -> bool {
        if !self.is_bool(condition) {
            return false;
        }
        self.primitive(|| {
            self.barrier_at_end();
            self.enter();
            if self.is_uniform() && !self.caps().branched_barriers {
                // Barriers may stand in the body, and the driver has none in a branch.
                let times = condition.cast(DType::I64);
                self.open_loop(LoopKind::Serial, 0, times);
            } else {
                self.emit(|s| s.b.open_if(condition.value));
            }
        });
        true
    }

    /// Ends the innermost loop, in whose body it stands, where a condition holds.
    #[track_caller]
    pub fn break_if<'k>(&'k self, condition: Val<'k>) {
        if self.is_bool(condition) {
            self.emit(|s| s.b.break_if(condition.value));
            self.leave_early();
        }
    }

    /// Whether a condition is `bool`; another dtype is a mistake.
    #[track_caller]
    fn is_bool(&self, condition: Val<'_>) -> bool {
        let is_bool = condition.dtype() == DType::Bool;
        if !is_bool {
            self.fail(format_args!("a condition is {}, not bool", condition.dtype()));
        }
        is_bool
    }

    /// Runs the body as long as a condition holds, which is recorded before it. A thread that has not come to an end after
    /// [`SMALL`] iterations, or what the device allows, gives up; then no result of the call can be read.
    #[track_caller]
    pub fn while_<'k>(&'k self, condition: impl FnOnce() -> Val<'k>, body: impl FnOnce()) {
        // Fewer than after which a driver ends loops.
        let limit = self.caps().max_iterations as i64;
        let most = if limit > 0 { limit / 2 } else { SMALL as i64 }.min(SMALL as i64);
        let (most, cut) = (self.index(most), Array::of_parts(self, self.cut(), &[1]));
        // Of threads that come one after the other none waits once one has given up.
        let is_atomic = self.caps().atomics.contains(DType::I32);
        let order = if is_atomic { Order::Relaxed } else { Order::Plain };
        let told = || cut.loaded(vec![self.index(0)], None, order);
        let most = if self.caps().simt { most } else { told().eq(0).select(most, 0) };
        let counter = self.open_for((self.index(0), most));
        self.state.borrow_mut().waits.push(counter.value);
        let holds = condition();
        if self.is_bool(holds) {
            self.break_if(!holds);
        }
        body();
        self.close_region();
    }

    /// Runs one body or another.
    #[track_caller]
    pub fn when_else<'k>(&'k self, condition: Val<'k>, then: impl FnOnce(), or: impl FnOnce()) {
        self.when(condition, then);
        self.when(!condition, or);
    }
}
