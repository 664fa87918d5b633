//! Numbers that follow from sizes at launch.

use super::State;
use crate::dtype::DType;
use crate::ir::{Op, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::sync::Arc;

/// A number that follows from the sizes of a kernel, with the arithmetic of `i64`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SizeExpr {
    /// The size of this number.
    Size(usize),
    /// A literal.
    Literal(i64),
    /// An operation on two.
    Binary(BinaryOp, Arc<[SizeExpr; 2]>),
}

impl SizeExpr {
    /// What a value is, if it follows from scalars and literals.
    pub(super) fn of(state: &State, value: Value) -> Option<SizeExpr> {
        if let Some((expr, _)) = state.scalars.iter().find(|x| x.1 == value) {
            return Some(expr.clone());
        }
        match state.b.op(value) {
            _ if state.b.ty(value).dtype != DType::I64 => None,
            Op::Const { bits } => Some(SizeExpr::Literal(bits as i64)),
            Op::Binary { op, x, y } if !op.is_comparison() => {
                let [x, y] = [x, y].map(|x| SizeExpr::of(state, x));
                Some(SizeExpr::Binary(op, Arc::new([x?, y?])))
            }
            _ => None,
        }
    }

    pub(super) fn times(self, other: SizeExpr) -> SizeExpr {
        match (&self, &other) {
            (SizeExpr::Literal(1), _) => other,
            (_, SizeExpr::Literal(1)) => self,
            _ => SizeExpr::Binary(BinaryOp::Mul, Arc::new([self, other])),
        }
    }

    /// The number, given the sizes; `None` where a sum or product does not fit `i64`, or a size is not known.
    pub fn eval(&self, size: &dyn Fn(usize) -> Option<i64>) -> Option<i64> {
        Some(match self {
            SizeExpr::Size(number) => size(*number)?,
            SizeExpr::Literal(x) => *x,
            SizeExpr::Binary(op, operands) => {
                let [x, y] = [operands[0].eval(size)?, operands[1].eval(size)?];
                match op {
                    BinaryOp::Add => x.checked_add(y)?,
                    BinaryOp::Sub => x.checked_sub(y)?,
                    BinaryOp::Mul => x.checked_mul(y)?,
                    _ => op.eval(Scalar::from(x), Scalar::from(y)).to_i64(),
                }
            }
        })
    }

    /// The one size that it follows from, and what that is where the number is `x`; `None` where that does not follow from
    /// sums and products with literals alone.
    pub fn solve(&self, x: i64) -> Option<(usize, i64)> {
        let SizeExpr::Binary(op, operands) = self else {
            let SizeExpr::Size(number) = *self else { return None };
            return Some((number, x));
        };
        let exact = |x: i64, by: i64| x.checked_div(by).filter(|quotient| quotient * by == x);
        match (op, &operands[0], &operands[1]) {
            (BinaryOp::Add, expr, SizeExpr::Literal(y))
            | (BinaryOp::Add, SizeExpr::Literal(y), expr) => expr.solve(x.checked_sub(*y)?),
            (BinaryOp::Sub, expr, SizeExpr::Literal(y)) => expr.solve(x.checked_add(*y)?),
            (BinaryOp::Mul, expr, SizeExpr::Literal(y))
            | (BinaryOp::Mul, SizeExpr::Literal(y), expr) => expr.solve(exact(x, *y)?),
            _ => None,
        }
    }

    /// As text, with the names of sizes.
    pub fn display(&self, names: &[String]) -> String {
        let (op, operands) = match self {
            SizeExpr::Size(number) => return names.get(*number).cloned().unwrap_or("?".into()),
            SizeExpr::Literal(x) => return x.to_string(),
            SizeExpr::Binary(op, operands) => (op, operands),
        };
        let [x, y] = [0, 1].map(|i| operands[i].display(names));
        match op {
            BinaryOp::Add => format!("({x} + {y})"),
            BinaryOp::Sub => format!("({x} - {y})"),
            BinaryOp::Mul => format!("{x} * {y}"),
            BinaryOp::Div => format!("{x} / {y}"),
            op => format!("{op}({x}, {y})"),
        }
    }
}
