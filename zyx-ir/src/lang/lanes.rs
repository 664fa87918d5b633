//! Vectors of values of a closure: consecutive elements are one load.

use super::handle::MAX_DEPTH;
use super::value::Val;
use super::{Lang, State};
use crate::ir::{Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::passes::variance::{Form, pure_form};
use rustc_hash::FxHashMap;

/// How values depend on a counter that runs over so many numbers from a multiple of `n` on.
struct Along<'s> {
    state: &'s State,
    n: u8,
    forms: FxHashMap<Value, Form>,
}

impl Along<'_> {
    fn form(&mut self, value: Value) -> Form {
        if let Some(&known) = self.forms.get(&value) {
            return known;
        }
        let kernel = self.state.b.kernel();
        let form = match kernel.op(value) {
            Op::Loop { .. } | Op::Alloc { .. } => Form::Uniform,
            Op::Guard { cond, .. } if self.form(cond) != Form::Uniform => Form::Varying,
            Op::Binary { op, x, y } if self.is_bound(op, x, y) => Form::Uniform,
            op => pure_form(kernel, value, op, &mut |x| self.form(x)),
        };
        self.forms.insert(value, form);
        form
    }

    /// Whether lanes are all below a multiple of their number, or none is.
    fn is_bound(&mut self, op: BinaryOp, x: Value, y: Value) -> bool {
        let (lane, bound) = match op {
            BinaryOp::Lt => (x, y),
            BinaryOp::Le => (y, x),
            _ => return false,
        };
        self.state.b.ty(x).dtype.is_int()
            && [lane, bound].map(|x| self.form(x)) == [Form::Linear(1), Form::Uniform]
            && [lane, bound].iter().all(|&x| self.is_multiple(x))
    }

    /// Whether an integer is seen to be a multiple of the number of lanes.
    fn is_multiple(&self, value: Value) -> bool {
        self.state.interval(value, MAX_DEPTH).multiple_of.is_multiple_of(self.n.into())
    }

    /// Whether a load is one of elements side by side, the first of which is a multiple of their number.
    fn is_wide(&mut self, load: Value) -> bool {
        let Op::Load { buf, index, .. } = self.state.b.op(load) else { return false };
        let is_argument = matches!(self.state.b.op(buf), Op::Param { .. });
        let digits = self.state.digits(load).and_then(|digits| digits.split_last());
        let Some((last, outer)) = digits else { return false };
        let is_whole = |(at, extent)| {
            let linear = self.form(at) == Form::Linear(1);
            linear && self.is_multiple(at) && self.is_multiple(extent)
        };
        is_argument
            && last.bounds().all(is_whole)
            && self.form(index) == Form::Linear(1)
            && outer.iter().flat_map(|x| x.bounds()).all(|x| self.form(x.0) == Form::Uniform)
    }
}

impl Lang {
    /// Of `n` numbers from `first` on, a multiple of `n`, a vector of what `f` gives.
    pub(super) fn lanes<'k>(
        &'k self,
        n: usize,
        first: Val<'k>,
        f: &dyn Fn(Val<'k>) -> Val<'k>,
    ) -> Value {
        let value = f(first);
        if let Some(vector) = self.vector(value, first, n) {
            return vector;
        }
        let lane = |i: usize| if i == 0 { value.value } else { f(first + i).value };
        let values: Vec<Value> = (0..n).map(lane).collect();
        self.gather(Type::scalar(value.dtype()), n, &|_, i| values[i])
    }

    /// A vector of so many values.
    pub(super) fn gather(
        &self,
        ty: Type,
        n: usize,
        value: &dyn Fn(&mut State, usize) -> Value,
    ) -> Value {
        self.emit(|s| {
            let parts = s.b.alloc(Space::Register, ty, n as u32);
            for i in 0..n {
                let (value, at) = (value(s, i), s.b.index(i as i64));
                s.b.store(parts, at, value);
            }
            let zero = s.b.index(0);
            s.b.load_vector(parts, zero, n as u8)
        })
    }

    /// The value for so many numbers from one on; `None` where that is no load of elements side by side and arithmetic of
    /// it.
    pub(super) fn vector(&self, value: Val<'_>, first: Val<'_>, n: usize) -> Option<Value> {
        let n = n as u8;
        let mut order = Vec::new();
        {
            let state = self.state.borrow();
            let forms = FxHashMap::from_iter([(first.value, Form::Linear(1))]);
            let mut along = Along { state: &state, n, forms };
            let mut stack = vec![value.value];
            while let Some(x) = stack.pop() {
                if along.form(x) == Form::Uniform || order.contains(&x) {
                    continue;
                }
                match state.b.op(x) {
                    Op::Load { .. } if along.is_wide(x) => {}
                    Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } | Op::Cast { .. }
                        if along.form(x) == Form::Varying =>
                    {
                        stack.extend(state.b.op(x).operands());
                    }
                    _ => return None,
                }
                order.push(x);
            }
        }
        order.sort_unstable();
        let mut vectors = FxHashMap::default();
        for x in order {
            let vector = self.emit(|s| {
                let ty = Type::vector(s.b.ty(x).dtype, n);
                let op = s.b.op(x);
                if let Op::Load { .. } = op {
                    let digits = s.digits(x).cloned().unwrap_or_default();
                    return s.access(op, ty, digits);
                }
                let op = op.map(|x| vectors.get(&x).copied().unwrap_or_else(|| s.b.splat(x, n)));
                s.b.emit(op, ty)
            });
            vectors.insert(x, vector);
        }
        vectors.get(&value.value).copied()
    }
}
