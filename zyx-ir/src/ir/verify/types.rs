//! The rules on types, arguments and access rights, one op at a time.

use super::{Check, Rule};
use crate::dtype::DType;
use crate::ir::kernel::Kernel;
use crate::ir::mma;
use crate::ir::op::{Access, Op, Order, Space, Type, Value};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;
use rustc_hash::FxHashSet;

/// Which argument slots have been bound to a value.
#[derive(Default)]
pub(super) struct Slots {
    params: FxHashSet<u16>,
    vars: FxHashSet<u16>,
}

impl Slots {
    /// Checks that the slot of a `Param` or `Var` exists and is bound once.
    pub(super) fn declared(&mut self, kernel: &Kernel, op: Op) -> Check {
        let (n, slot, seen) = match op {
            Op::Param { slot, .. } => (kernel.params().len(), slot, &mut self.params),
            Op::Var { slot } => (kernel.vars().len(), slot, &mut self.vars),
            _ => return Ok(()),
        };
        Rule::Arguments
            .require((slot as usize) < n, format_args!("slot {slot} of {n} declared"))?;
        Rule::Arguments.require(seen.insert(slot), format_args!("slot {slot} is bound twice"))
    }
}

/// Checks one op against the types of its operands.
pub(super) fn check(kernel: &Kernel, op: Op, ty: Type) -> Check {
    let of = |x: Value| kernel.ty(x);
    Rule::Types.require(ty.lanes > 0, "a value has at least one lane")?;
    match op {
        Op::Param { slot, access } => {
            let info = kernel.params()[slot as usize];
            result(ty, Type::scalar(info.dtype))?;
            Rule::Arguments.require(info.access == access, "access differs from the declaration")
        }
        Op::Var { slot } => result(ty, Type::scalar(kernel.vars()[slot as usize].dtype)),
        Op::Const { bits } => {
            scalar(ty)?;
            let canonical = Scalar::from_bits(ty.dtype, bits).bits() == bits;
            Rule::Types.require(canonical, format_args!("{bits:#x} are not bits of {ty}"))
        }
        Op::Alloc { len, .. } => Rule::Types.require(len > 0, "storage has at least one element"),
        Op::Unary { op, x } => {
            domain(op.domain().contains(ty.dtype), ty.dtype)?;
            result(ty, of(x))
        }
        Op::Binary { op, x, y } => {
            same(of(x), of(y))?;
            domain(op.domain().contains(of(x).dtype), of(x).dtype)?;
            result(ty, of(x).with(op.result(of(x).dtype)))
        }
        Op::Ternary { op, x, y, z } => {
            same(of(y), of(z))?;
            domain(op.domain().contains(ty.dtype), ty.dtype)?;
            let first = if op == TernaryOp::Where { DType::Bool } else { ty.dtype };
            same(of(x), of(y).with(first))?;
            result(ty, of(y))
        }
        Op::Cast { x } => result(ty, of(x).with(ty.dtype)),
        Op::Bitcast { x } => {
            let equal = ty.dtype.bits() == of(x).dtype.bits();
            Rule::Types.require(equal, format_args!("{} and {ty} differ in width", of(x)))?;
            result(ty, of(x).with(ty.dtype))
        }
        Op::Splat { x } => {
            scalar(of(x))?;
            Rule::Types.require(ty.is_vector(), "a splat is a vector")?;
            result(ty, Type::vector(of(x).dtype, ty.lanes))
        }
        Op::Lanes => {
            Rule::Types.require(ty.is_vector() && ty.dtype.is_int(), "lanes are an integer vector")
        }
        Op::Extract { x, lane } => {
            let lanes = of(x).lanes;
            Rule::Types.require(lane < lanes, format_args!("lane {lane} of {lanes}"))?;
            result(ty, Type::scalar(of(x).dtype))
        }
        Op::Concat { x, y } => {
            let lanes = of(x).lanes.saturating_add(of(y).lanes);
            same(of(y), of(y).with(of(x).dtype))?;
            result(ty, Type::vector(of(x).dtype, lanes))
        }
        Op::Fold { op, x } => {
            Rule::Types.require(op.is_associative(), format_args!("{op} is not associative"))?;
            domain(op.domain().contains(ty.dtype), ty.dtype)?;
            result(ty, Type::scalar(of(x).dtype))
        }
        Op::Guard { index, cond } => {
            is_index(of(index))?;
            let (n, m) = (of(index).lanes, of(cond).lanes);
            bool_of(of(cond))?;
            Rule::Types.require(
                n == m || n == 1 || m == 1,
                format_args!("{m} conditions guard {n} indices"),
            )?;
            result(ty, of(index))
        }
        Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => access(kernel, op, ty),
        Op::Loop { len, .. } => {
            is_index(ty)?;
            scalar(ty)?;
            same(of(len), ty)
        }
        Op::If { cond } | Op::Break { cond } => {
            result(of(cond), Type::scalar(DType::Bool))?;
            result(ty, Type::scalar(DType::Bool))
        }
        Op::End { .. } | Op::Barrier { .. } => result(ty, Type::scalar(DType::Bool)),
        Op::Shuffle { x, lane, .. } => {
            is_index(of(lane))?;
            scalar(of(lane))?;
            result(ty, of(x))
        }
        Op::Panel { buf, index } => {
            is_index(of(index))?;
            scalar(of(index))?;
            let shared = matches!(kernel.op(buf), Op::Alloc { space: Space::Shared, .. });
            let slots = of(buf).lanes as usize == mma::HELD && of(buf).dtype.size() == 2;
            Rule::Types.require(shared && slots, "a panel is in shared storage of eight halves")?;
            result(ty, of(buf))
        }
        Op::Mma { row, a, b, c } => {
            let Some(row) = mma::ROWS.get(row as usize) else {
                return Rule::Types.broken(format_args!("there is no matrix row {row}"));
            };
            let factors = Type::vector(row.factor, mma::HELD as u8);
            let sums = Type::vector(row.sum, row.held() as u8);
            same(of(a), factors)?;
            same(of(b), factors)?;
            let [left, right] = [a, b].map(|x| matches!(kernel.op(x), Op::Panel { .. }));
            let fits = if row.is_wide() { right } else { !left && !right };
            Rule::Types.require(fits, "a wide instruction's right factor is a panel")?;
            same(of(c), sums)?;
            result(ty, sums)
        }
    }
}

fn access(kernel: &Kernel, op: Op, ty: Type) -> Check {
    let (buf, index, order) = match op {
        Op::Load { order, buf, index } => (buf, index, order),
        Op::Store { order, buf, index, value } => {
            same(kernel.ty(value), ty)?;
            (buf, index, order)
        }
        Op::Atomic { op, order, buf, index, value } => {
            same(kernel.ty(value), ty)?;
            let closed = op.domain().contains(ty.dtype) && op.result(ty.dtype) == ty.dtype;
            Rule::Types.require(
                closed
                    && !matches!(
                        op,
                        BinaryOp::Atan2 | BinaryOp::LogAddExp | BinaryOp::Pow | BinaryOp::Gcd
                    ),
                format_args!("there is no atomic {op} on {}", ty.dtype),
            )?;
            (buf, index, order)
        }
        _ => return Ok(()),
    };
    let (element, position) = (kernel.ty(buf), kernel.ty(index));
    is_index(position)?;
    if element.is_vector() {
        same(element, ty)?;
        Rule::Types.require(!position.is_vector(), "whole vectors are indexed one at a time")?;
    } else {
        same(element.with(element.dtype), Type::scalar(ty.dtype))?;
        Rule::Types.require(
            position.lanes == 1 || position.lanes == ty.lanes,
            format_args!("{} indices for {} elements", position.lanes, ty.lanes),
        )?;
    }
    guards(kernel, index, if element.is_vector() { 1 } else { ty.lanes })?;
    rights(kernel, op, buf, order)
}

/// Checks that the conditions that guard an index fit an access of `lanes` elements.
fn guards(kernel: &Kernel, mut index: Value, lanes: u8) -> Check {
    while let Op::Guard { index: inner, cond } = kernel.op(index) {
        let n = kernel.ty(cond).lanes;
        Rule::Types
            .require(n == 1 || n == lanes, format_args!("{n} conditions guard {lanes} elements"))?;
        index = inner;
    }
    Ok(())
}

/// Checks that the storage allows this access, and that its order makes sense there.
fn rights(kernel: &Kernel, op: Op, buf: Value, order: Order) -> Check {
    let order_fits = match op {
        Op::Load { .. } => {
            let awaited = order == Order::AcquireSpin && waits_well(kernel, op, buf);
            let orders = [Order::Plain, Order::Streaming, Order::Relaxed, Order::Acquire];
            awaited || orders.contains(&order)
        }
        Op::Store { .. } => {
            matches!(order, Order::Plain | Order::Streaming | Order::Relaxed | Order::Release)
                || order == Order::AsyncCopy
        }
        _ => !matches!(
            order,
            Order::Plain | Order::Streaming | Order::AsyncCopy | Order::AcquireSpin
        ),
    };
    Rule::Access.require(order_fits, format_args!("{order:?} is no order of this op"))?;
    let shared = matches!(kernel.op(buf), Op::Alloc { space: Space::Shared, .. });
    Rule::Access
        .require(shared || order != Order::AsyncCopy, "only shared storage is stored late")?;
    match kernel.op(buf) {
        Op::Param { access, .. } => {
            let allowed = match op {
                Op::Load { .. } => access != Access::Write,
                Op::Store { .. } => access != Access::Read,
                _ => access == Access::ReadWrite,
            };
            Rule::Access.require(allowed, format_args!("{buf} is declared {access:?}"))
        }
        Op::Alloc { space: Space::Register, .. } => {
            Rule::Access.require(order == Order::Plain, "registers have no memory order")
        }
        _ => Ok(()),
    }
}

/// Whether a load may wait: for one integer of a buffer that other groups may store to.
fn waits_well(kernel: &Kernel, op: Op, buf: Value) -> bool {
    let Op::Load { index, .. } = op else { return false };
    let shared = matches!(kernel.op(buf), Op::Param { access: Access::ReadWrite, .. });
    shared && kernel.ty(buf).dtype.is_int() && !kernel.ty(index).is_vector()
}

fn result(ty: Type, expected: Type) -> Check {
    Rule::Types.require(ty == expected, format_args!("the type is {ty}, not {expected}"))
}

fn same(x: Type, y: Type) -> Check {
    Rule::Types.require(x == y, format_args!("operands of types {x} and {y}"))
}

fn scalar(ty: Type) -> Check {
    Rule::Types.require(!ty.is_vector(), format_args!("{ty} is not a scalar"))
}

fn bool_of(ty: Type) -> Check {
    Rule::Types.require(ty.dtype == DType::Bool, format_args!("{ty} is not a condition"))
}

fn is_index(ty: Type) -> Check {
    let fits = matches!(ty.dtype, DType::I64 | DType::I32);
    Rule::Types.require(fits, format_args!("{ty} is not an index"))
}

fn domain(contains: bool, dtype: DType) -> Check {
    Rule::Types.require(contains, format_args!("the op is not defined on {dtype}"))
}
