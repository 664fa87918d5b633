//! Functions of elements in the loads and stores of a recorded kernel.

use super::copied::Copied;
use super::{Argument, Fill, Recorded, Role};
use crate::dtype::DType;
use crate::ir::{Access, Extents, Kernel, Op, Order, ParamInfo, Type, Value, verify};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// A function of an element.
#[derive(Clone, Debug)]
pub struct Function {
    /// A kernel without buffers, whose first scalar argument the element is.
    pub kernel: Kernel,
    /// The result.
    pub result: Value,
    /// Its further scalar arguments.
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
        if !verify(&new.kernel).ok()?.unproven.is_empty() {
            // Coordinates may be others than the extents say, as in a text.
            return None;
        }
        (new.checked, new.lines) = within(&self.checked, &self.lines)?;
        Some(new)
    }
}

/// A kernel being copied with a function in the accesses of an argument.
struct Within<'a> {
    copy: Copied<'a>,
    slot: u16,
    function: &'a Function,
    /// The copies of the function's further arguments.
    further: Vec<Value>,
}

impl<'a> Within<'a> {
    fn of(kernel: &'a Kernel, slot: u16, function: &'a Function) -> Option<Within<'a>> {
        let info = kernel.params()[usize::from(slot)];
        let mut copy = Copied::of(kernel);
        let all = copy.extents(slot);
        let mut further = Vec::new();
        for (of, var) in function.further.iter().zip(&function.kernel.vars()[1..]) {
            further.push(match of {
                Further::Scalar => copy.b.var_of(*var),
                Further::Element(axes) if axes.len() == all.len() => {
                    let own = all.iter().zip(axes).filter(|x| *x.1).map(|x| *x.0);
                    let extents = Extents::of(&own.collect::<Vec<_>>());
                    let of = match extents {
                        Some(_) => ParamInfo { extents, ..info },
                        None => ParamInfo { extents, len: 1, open: false, ..info },
                    };
                    copy.b.declare(ParamInfo { dtype: var.dtype, access: Access::Read, ..of })
                }
                Further::Element(_) => return None,
            });
        }
        Some(Within { copy, slot, function, further })
    }

    /// The kernel with an argument of this dtype, and the lines of its ops.
    fn kernel(mut self, dtype: DType, lines: &[u32]) -> Option<(Kernel, Vec<u32>)> {
        let (source, slot) = (self.copy.kernel, self.slot);
        self.copy.b.param_mut(slot).dtype = dtype;
        let mut new_lines = Vec::new();
        let is_it = |buf: Value| source.op(buf).is_param(slot);
        for (value, op, ty) in source.iter() {
            let mut new = self.copy.mapped(op);
            let copy = match (op, &mut new) {
                (Op::Param { .. }, _) if op.is_param(slot) => {
                    self.copy.b.push(op, Type::scalar(dtype))
                }
                (Op::Load { buf, index, .. }, _) if is_it(buf) => {
                    // A vector load may be no wider than before.
                    if ty.is_vector() && dtype.size() > ty.dtype.size() {
                        return None;
                    }
                    let x = self.copy.b.push(new, Type { dtype, ..ty });
                    let y = self.applied(x, index, ty)?;
                    self.zero_outside(index, y)
                }
                (Op::Store { buf, index, value, .. }, Op::Store { value: result, .. })
                    if is_it(buf) =>
                {
                    *result = self.applied(*result, index, source.ty(value))?;
                    self.copy.b.push(new, Type { dtype, ..ty })
                }
                _ => self.copy.b.emit(new, ty),
            };
            self.copy.map.push(copy);
            let lines_of = lines.get(value.idx()).copied().unwrap_or(0);
            new_lines.resize(self.copy.b.kernel().ops().len(), lines_of);
        }
        let kernel = self.copy.b.finish();
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
                        Further::Scalar => self.copy.b.splat(self.further[number], ty.lanes),
                        Further::Element(axes) => {
                            self.element(self.further[number], axes, index, ty)?
                        }
                    }
                }
                Op::Const { bits } => {
                    let literal = self.copy.b.constant(Scalar::from_bits(of.dtype, bits));
                    self.copy.b.splat(literal, ty.lanes)
                }
                op => self.copy.b.emit(op.map(|x| map[x.idx()]), Type { lanes: ty.lanes, ..of }),
            });
        }
        Some(map[result.idx()])
    }

    /// The elements of an array with some of the argument's axes that belong to those at an index.
    fn element(&mut self, buf: Value, axes: &[bool], index: Value, ty: Type) -> Option<Value> {
        let extents = self.copy.extents(self.slot);
        let index = self.copy.moved(index, None, &extents, axes)?;
        let of = self.copy.b.ty(buf);
        let is_vector = ty.is_vector() && axes.last() == Some(&true);
        if is_vector && of.dtype.size() > ty.dtype.size() {
            return None;
        }
        let lanes = if is_vector { ty.lanes } else { 1 };
        let load = Op::Load { order: Order::Plain, buf, index };
        let x = self.copy.b.push(load, Type { lanes, ..of });
        Some(if is_vector { x } else { self.copy.b.splat(x, ty.lanes) })
    }

    /// An element, but 0 outside of what the guards of an index allow: so a load is, whatever the function gives for 0.
    fn zero_outside(&mut self, index: Value, y: Value) -> Value {
        let (_, guards) = self.copy.kernel.unguarded(index);
        let inside = guards.into_iter().map(|cond| self.copy.map[cond.idx()]);
        let b = &mut self.copy.b;
        let inside = inside.reduce(|x, y| b.binary(BinaryOp::And, x, y));
        inside.map_or(y, |inside| {
            let ty = b.ty(y);
            let zero = b.constant(Scalar::from_i64(ty.dtype, 0));
            let [inside, zero] = [inside, zero].map(|x| b.splat(x, ty.lanes));
            b.select(inside, y, zero)
        })
    }
}
