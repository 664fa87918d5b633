//! Functions of elements in the loads and stores of a recorded kernel.

use super::{Recorded, Role};
use crate::dtype::DType;
use crate::ir::{Builder, Kernel, Op, Type, Value};
use crate::scalar::Scalar;

/// A function of an element: a kernel without buffers, whose first scalar argument it is, and the result. Further scalar
/// arguments become further ones of the kernel that the function becomes part of.
pub type Function = (Kernel, Value);

/// The result of a function for an element, or a vector of them.
fn applied(b: &mut Builder, (function, result): &Function, further: &[Value], x: Value) -> Value {
    let lanes = b.ty(x).lanes;
    let mut map: Vec<Value> = Vec::with_capacity(result.idx() + 1);
    for (_, op, ty) in function.iter().take(result.idx() + 1) {
        map.push(match op {
            Op::Var { slot: 0 } => x,
            Op::Var { slot } => b.splat(further[usize::from(slot) - 1], lanes),
            Op::Const { bits } => {
                let literal = b.constant(Scalar::from_bits(ty.dtype, bits));
                b.splat(literal, lanes)
            }
            op => b.emit(op.map(|x| map[x.idx()]), Type { lanes, ..ty }),
        });
    }
    map[result.idx()]
}

impl Recorded {
    /// The kernel whose loads of an argument load elements of the function's argument, and give its result; `None` where
    /// the argument is more than loaded, or vectors would be longer.
    pub fn with_loads(&self, slot: u16, function: &Function) -> Option<Recorded> {
        let dtype = function.0.vars().first()?.dtype;
        let argument = &self.arguments[usize::from(slot)];
        let copied = |role: Role| matches!(role, Role::Filled(super::Fill::Input(_)));
        let any_copied = self.arguments.iter().any(|argument| copied(argument.role));
        let has_vectors = self.kernel.iter().any(|(_, op, ty)| match op {
            Op::Load { buf, .. } => ty.is_vector() && self.kernel.op(buf).is_param(slot),
            _ => false,
        });
        let fits = !has_vectors || dtype.size() <= argument.dtype.size();
        (argument.role == Role::Input && !any_copied && fits)
            .then(|| self.fused(slot, dtype, function))
    }

    /// The kernel that stores the function's result of each element of an output; `None` where the argument is more than
    /// stored to.
    pub fn with_stores(&self, slot: u16, function: &Function) -> Option<Recorded> {
        let dtype = function.0.ty(function.1).dtype;
        let is_output = self.arguments[usize::from(slot)].role == Role::Output;
        is_output.then(|| self.fused(slot, dtype, function))
    }

    fn fused(&self, slot: u16, dtype: DType, function: &Function) -> Recorded {
        let mut new = self.clone();
        new.arguments[usize::from(slot)].dtype = dtype;
        (new.kernel, _) = within(&self.kernel, &[], slot, dtype, function);
        (new.checked, new.lines) = within(&self.checked, &self.lines, slot, dtype, function);
        new
    }
}

/// The kernel with the function in the accesses of an argument, and the lines of its ops.
fn within(
    kernel: &Kernel,
    lines: &[u32],
    slot: u16,
    dtype: DType,
    function: &Function,
) -> (Kernel, Vec<u32>) {
    let mut b = kernel.rebuild();
    b.retype_param(slot, dtype);
    let further: Vec<Value> = function.0.vars()[1..].iter().map(|&info| b.var_of(info)).collect();
    let (mut map, mut new_lines) = (Vec::with_capacity(kernel.ops().len()), Vec::new());
    for (value, op, ty) in kernel.iter() {
        let mut new = op.map(|x: Value| map[x.idx()]);
        map.push(match (op, &mut new) {
            (Op::Param { .. }, _) if op.is_param(slot) => b.push(op, Type::scalar(dtype)),
            (Op::Load { buf, index, .. }, _) if kernel.op(buf).is_param(slot) => {
                let x = b.push(new, Type { dtype, ..ty });
                let y = applied(&mut b, function, &further, x);
                // Outside of what a guard allows an element is 0, whatever the function gives for 0.
                let (_, guards) = kernel.unguarded(index);
                let inside = guards.into_iter().map(|cond| map[cond.idx()]);
                let inside = inside.reduce(|x, y| b.binary(crate::ops::BinaryOp::And, x, y));
                inside.map_or(y, |inside| {
                    let zero = b.constant(Scalar::from_i64(ty.dtype, 0));
                    let [inside, zero] = [inside, zero].map(|x| b.splat(x, ty.lanes));
                    b.select(inside, y, zero)
                })
            }
            (Op::Store { buf, .. }, Op::Store { value, .. }) if kernel.op(buf).is_param(slot) => {
                *value = applied(&mut b, function, &further, *value);
                b.push(new, Type { dtype, ..ty })
            }
            _ => b.emit(new, ty),
        });
        new_lines.resize(b.kernel().ops().len(), lines.get(value.idx()).copied().unwrap_or(0));
    }
    (b.finish(), new_lines)
}
