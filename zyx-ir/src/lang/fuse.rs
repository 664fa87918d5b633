//! Functions of elements in the loads and stores of a recorded kernel.

use super::{Argument, Fill, Recorded, Role};
use crate::dtype::DType;
use crate::ir::{Access, Builder, Extents, Kernel, Op, Order, ParamInfo, Type, Value, verify};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;

/// A function of an element.
#[derive(Clone, Debug)]
pub struct Function {
    /// A kernel without buffers, whose first scalar argument the element is.
    pub kernel: Kernel,
    /// The result.
    pub result: Value,
    /// What its further scalar arguments are.
    pub further: Vec<Further>,
}

/// A scalar argument of a function beside the element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Further {
    /// A scalar, which becomes a further scalar argument of the kernel that the function becomes part of.
    Scalar,
    /// An element of an array, which becomes a further input of that kernel: the array has those axes of the argument that are
    /// marked, and is repeated along the others.
    Element(Vec<bool>),
}

impl Recorded {
    /// The kernel whose loads of an argument load elements of the function's argument, and give its result; `None` where
    /// the argument is more than loaded, vectors would be longer, or the coordinates of an access cannot be told.
    pub fn with_loads(&self, slot: u16, function: &Function) -> Option<Recorded> {
        let dtype = function.kernel.vars().first()?.dtype;
        let copied = |role: Role| matches!(role, Role::Filled(Fill::Input(_)));
        let any_copied = self.arguments.iter().any(|argument| copied(argument.role));
        let is_input = self.arguments[usize::from(slot)].role == Role::Input;
        (is_input && !any_copied).then(|| self.fused(slot, dtype, function))?
    }

    /// The kernel that stores the function's result of each element of an output; `None` where the argument is more than
    /// stored to, or as for [`Recorded::with_loads`].
    pub fn with_stores(&self, slot: u16, function: &Function) -> Option<Recorded> {
        let dtype = function.kernel.ty(function.result).dtype;
        let is_output = self.arguments[usize::from(slot)].role == Role::Output;
        is_output.then(|| self.fused(slot, dtype, function))?
    }

    fn fused(&self, slot: u16, dtype: DType, function: &Function) -> Option<Recorded> {
        let mut new = self.clone();
        let argument = &mut new.arguments[usize::from(slot)];
        argument.dtype = dtype;
        let (name, shape) = (argument.name.clone(), argument.shape.clone());
        for (further, info) in function.further.iter().zip(&function.kernel.vars()[1..]) {
            let Further::Element(axes) = further else { continue };
            let shape = shape.iter().zip(axes).filter(|x| *x.1).map(|x| x.0.clone()).collect();
            let name = format!("{name}_{}", new.arguments.len());
            new.arguments.push(Argument { name, dtype: info.dtype, shape, role: Role::Input });
        }
        let within = |kernel, lines| Within::of(kernel, slot, function)?.kernel(dtype, lines);
        (new.kernel, _) = within(&self.kernel, &[])?;
        (new.checked, new.lines) = within(&self.checked, &self.lines)?;
        Some(new)
    }
}

/// A kernel being copied with a function in the accesses of an argument.
struct Within<'a> {
    kernel: &'a Kernel,
    slot: u16,
    function: &'a Function,
    /// The scalars that the extents of the argument are.
    extents: Vec<u16>,
    b: Builder,
    /// What the ops of the kernel became.
    map: Vec<Value>,
    /// What further arguments of the function became.
    further: Vec<Value>,
}

impl<'a> Within<'a> {
    fn of(kernel: &'a Kernel, slot: u16, function: &'a Function) -> Option<Within<'a>> {
        let info = kernel.params()[usize::from(slot)];
        let extents: Vec<u16> =
            info.extents.iter().flat_map(|x| x.slots().collect::<Vec<_>>()).collect();
        let mut b = kernel.rebuild();
        let mut further = Vec::new();
        for (of, var) in function.further.iter().zip(&function.kernel.vars()[1..]) {
            further.push(match of {
                Further::Scalar => b.var_of(*var),
                Further::Element(axes) if axes.len() == extents.len() => {
                    let own = extents.iter().zip(axes).filter(|x| *x.1).map(|x| *x.0);
                    let extents = Extents::of(&own.collect::<Vec<_>>());
                    let of = match extents {
                        Some(_) => ParamInfo { extents, ..info },
                        None => ParamInfo { extents, len: 1, open: false, ..info },
                    };
                    b.declare(ParamInfo { dtype: var.dtype, access: Access::Read, ..of })
                }
                Further::Element(_) => return None,
            });
        }
        let map = Vec::with_capacity(kernel.ops().len());
        Some(Within { kernel, slot, function, extents, b, map, further })
    }

    /// The kernel with an argument of this dtype, and the lines of its ops.
    fn kernel(mut self, dtype: DType, lines: &[u32]) -> Option<(Kernel, Vec<u32>)> {
        self.b.retype_param(self.slot, dtype);
        let mut new_lines = Vec::new();
        let (source, slot) = (self.kernel, self.slot);
        let is_it = |buf: Value| source.op(buf).is_param(slot);
        for (value, op, ty) in self.kernel.iter() {
            let mut new = op.map(|x: Value| self.map[x.idx()]);
            let copy = match (op, &mut new) {
                (Op::Param { .. }, _) if op.is_param(self.slot) => {
                    self.b.push(op, Type::scalar(dtype))
                }
                (Op::Load { buf, index, .. }, _) if is_it(buf) => {
                    // A vector is loaded at once.
                    if ty.is_vector() && dtype.size() > ty.dtype.size() {
                        return None;
                    }
                    let x = self.b.push(new, Type { dtype, ..ty });
                    let y = self.applied(x, index, ty)?;
                    self.zero_outside(index, y)
                }
                (Op::Store { buf, index, value, .. }, Op::Store { value: new_value, .. })
                    if is_it(buf) =>
                {
                    *new_value = self.applied(*new_value, index, self.kernel.ty(value))?;
                    self.b.push(new, Type { dtype, ..ty })
                }
                _ => self.b.emit(new, ty),
            };
            self.map.push(copy);
            let lines_of = lines.get(value.idx()).copied().unwrap_or(0);
            new_lines.resize(self.b.kernel().ops().len(), lines_of);
        }
        let kernel = self.b.finish();
        verify(&kernel).is_ok().then_some((kernel, new_lines))
    }

    /// The function's result for an element, or a vector of them, at an index of the kernel where the argument has this type.
    fn applied(&mut self, x: Value, index: Value, ty: Type) -> Option<Value> {
        let Function { kernel, result, further } = self.function;
        let mut map: Vec<Value> = Vec::with_capacity(result.idx() + 1);
        for (_, op, of) in kernel.iter().take(result.idx() + 1) {
            map.push(match op {
                Op::Var { slot: 0 } => x,
                Op::Var { slot } => {
                    let number = usize::from(slot) - 1;
                    match &further[number] {
                        Further::Scalar => self.b.splat(self.further[number], ty.lanes),
                        Further::Element(axes) => {
                            self.element(self.further[number], axes, index, ty)?
                        }
                    }
                }
                Op::Const { bits } => {
                    let literal = self.b.constant(Scalar::from_bits(of.dtype, bits));
                    self.b.splat(literal, ty.lanes)
                }
                op => self.b.emit(op.map(|x| map[x.idx()]), Type { lanes: ty.lanes, ..of }),
            });
        }
        Some(map[result.idx()])
    }

    /// The elements of an array with some of the argument's axes that belong to those at an index.
    fn element(&mut self, buf: Value, axes: &[bool], index: Value, ty: Type) -> Option<Value> {
        let index = self.moved(index, axes)?;
        let of = self.b.ty(buf);
        let is_vector = ty.is_vector() && axes.last() == Some(&true);
        if is_vector && of.dtype.size() > ty.dtype.size() {
            return None;
        }
        let lanes = if is_vector { ty.lanes } else { 1 };
        let load = Op::Load { order: Order::Plain, buf, index };
        let x = self.b.push(load, Type { lanes, ..of });
        Some(if is_vector { x } else { self.b.splat(x, ty.lanes) })
    }

    /// The index into an array with some of the argument's axes, under the conditions of an index of the argument.
    fn moved(&mut self, index: Value, axes: &[bool]) -> Option<Value> {
        match self.kernel.op(index) {
            Op::Guard { index, cond } => {
                let index = self.moved(index, axes)?;
                Some(self.b.guard(index, self.map[cond.idx()]))
            }
            // Outside the interpreter is told an index that no array has.
            Op::Ternary { op: TernaryOp::Where, x: inside, y: index, z: none }
                if self.kernel.constant(none).is_some_and(|x| x.to_i64() == -1) =>
            {
                let index = self.moved(index, axes)?;
                let [inside, none] = [inside, none].map(|x| self.map[x.idx()]);
                let none = self.b.cast(self.b.ty(index).dtype, none);
                Some(self.b.select(inside, index, none))
            }
            _ => {
                let dtype = self.kernel.ty(index).dtype;
                let digits = self.digits(index, &self.extents.clone())?;
                let own = digits.into_iter().zip(self.extents.clone()).zip(axes);
                let mut at = None;
                for ((digit, extent), _) in own.filter(|x| *x.1) {
                    let digit = self.b.cast(dtype, self.map[digit.idx()]);
                    at = Some(match at {
                        None => digit,
                        Some(row) => {
                            let extent = self.b.cast(dtype, self.scalar(extent)?);
                            let row = self.b.binary(BinaryOp::Mul, row, extent);
                            self.b.binary(BinaryOp::Add, row, digit)
                        }
                    });
                }
                let first = self.b.constant(Scalar::from_i64(dtype, 0));
                Some(at.unwrap_or(first))
            }
        }
    }

    /// The copy of a scalar argument.
    fn scalar(&self, slot: u16) -> Option<Value> {
        let is_it = |op: &Op| *op == Op::Var { slot };
        let at = self.kernel.ops().iter().position(is_it)?;
        self.map.get(at).copied()
    }

    /// The digits of an index `(i * e1 + j) * e2 + k`, outermost first.
    fn digits(&self, index: Value, extents: &[u16]) -> Option<Vec<Value>> {
        let (&last, outer) = extents.split_last()?;
        if outer.is_empty() {
            return Some(vec![index]);
        }
        let integer = |x: Value| !self.kernel.ty(x).dtype.is_float();
        match self.kernel.op(index) {
            Op::Cast { x } if integer(x) => self.digits(x, extents),
            Op::Binary { op: BinaryOp::Add, x, y } => {
                let (row, digit) = match (self.row(x, last), self.row(y, last)) {
                    (Some(row), _) => (row, y),
                    (_, row) => (row?, x),
                };
                let mut digits = self.digits(row, outer)?;
                digits.push(digit);
                Some(digits)
            }
            _ => None,
        }
    }

    /// What a product with a scalar argument multiplies by.
    fn row(&self, product: Value, extent: u16) -> Option<Value> {
        let Op::Binary { op: BinaryOp::Mul, x, y } = self.kernel.op(product) else { return None };
        let is_extent = |mut value: Value| {
            while let Op::Cast { x } = self.kernel.op(value) {
                value = x;
            }
            self.kernel.op(value) == Op::Var { slot: extent }
        };
        [(x, y), (y, x)].into_iter().find(|pair| is_extent(pair.1)).map(|pair| pair.0)
    }

    /// An element, but 0 outside of what the guards of an index allow: so a load is, whatever the function gives for 0.
    fn zero_outside(&mut self, index: Value, y: Value) -> Value {
        let (_, guards) = self.kernel.unguarded(index);
        let inside = guards.into_iter().map(|cond| self.map[cond.idx()]);
        let b = &mut self.b;
        let inside = inside.reduce(|x, y| b.binary(BinaryOp::And, x, y));
        inside.map_or(y, |inside| {
            let ty = b.ty(y);
            let zero = b.constant(Scalar::from_i64(ty.dtype, 0));
            let [inside, zero] = [inside, zero].map(|x| b.splat(x, ty.lanes));
            b.select(inside, y, zero)
        })
    }
}
