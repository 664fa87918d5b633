//! Numbers that follow from sizes at launch.

use crate::dtype::DType;
use crate::ir::{Kernel, Op, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::fmt;
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
    pub(super) fn of(
        kernel: &Kernel,
        value: Value,
        scalars: &[(SizeExpr, Value)],
    ) -> Option<SizeExpr> {
        if let Some((expr, _)) = scalars.iter().find(|x| x.1 == value) {
            return Some(expr.clone());
        }
        if kernel.ty(value).dtype != DType::I64 {
            return None;
        }
        match kernel.op(value) {
            Op::Const { bits } => Some(SizeExpr::Literal(bits as i64)),
            Op::Binary { op, x, y } if !op.is_comparison() => {
                let [x, y] = [x, y].map(|x| SizeExpr::of(kernel, x, scalars));
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
    pub fn display<'a>(&'a self, names: &'a [String]) -> impl fmt::Display + 'a {
        Named { expr: self, names }
    }
}

struct Named<'a> {
    expr: &'a SizeExpr,
    names: &'a [String],
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named { expr, names } = *self;
        match expr {
            SizeExpr::Size(number) => f.write_str(names.get(*number).map_or("?", |name| name)),
            SizeExpr::Literal(x) => write!(f, "{x}"),
            SizeExpr::Binary(op, operands) => {
                let [x, y] = [&operands[0], &operands[1]].map(|expr| Named { expr, names });
                match op {
                    BinaryOp::Add => write!(f, "({x} + {y})"),
                    BinaryOp::Sub => write!(f, "({x} - {y})"),
                    BinaryOp::Mul => write!(f, "{x} * {y}"),
                    BinaryOp::Div => write!(f, "{x} / {y}"),
                    op => write!(f, "{op}({x}, {y})"),
                }
            }
        }
    }
}
