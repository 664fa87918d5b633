//! The public method of each row of the op tables.
//!
//! Exhaustive matches on purpose: a new row does not compile until it says how users reach it,
//! and from then on every suite that walks the tables tests it on every device.

use zyx_core::{BinaryOp, DType, Result, Tensor, UnaryOp};

/// The method of a unary op.
///
/// # Errors
/// Where the method gives one.
pub fn unary(op: UnaryOp, x: &Tensor) -> Result<Tensor> {
    Ok(match op {
        UnaryOp::Neg => x.neg(),
        UnaryOp::Abs => x.abs(),
        UnaryOp::Not => return x.bitwise_not(),
        UnaryOp::Recip => x.recip(),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Exp => x.exp(),
        UnaryOp::Exp2 => x.exp2(),
        UnaryOp::Expm1 => x.expm1(),
        UnaryOp::Log => x.log(),
        UnaryOp::Log2 => x.log2(),
        UnaryOp::Log1p => x.log1p(),
        UnaryOp::Sin => x.sin(),
        UnaryOp::Cos => x.cos(),
        UnaryOp::Tan => x.tan(),
        UnaryOp::Asin => x.asin(),
        UnaryOp::Acos => x.acos(),
        UnaryOp::Atan => x.atan(),
        UnaryOp::Sinh => x.sinh(),
        UnaryOp::Cosh => x.cosh(),
        UnaryOp::Tanh => x.tanh(),
        UnaryOp::Erf => x.erf(),
        UnaryOp::Floor => x.floor(),
        UnaryOp::Ceil => x.ceil(),
        UnaryOp::Round => x.round(),
        UnaryOp::Trunc => x.trunc(),
    })
}

/// What [`unary`] calls.
pub fn unary_name(op: UnaryOp) -> &'static str {
    if op == UnaryOp::Not { "bitwise_not" } else { op.name() }
}

/// What [`binary`] calls on two tensors of a dtype.
pub fn binary_name(op: BinaryOp, dtype: DType) -> &'static str {
    match op {
        BinaryOp::Div if !dtype.is_float() => "trunc_divide",
        BinaryOp::Rem => "fmod",
        BinaryOp::Max => "maximum",
        BinaryOp::Min => "minimum",
        BinaryOp::And => "bitwise_and",
        BinaryOp::Or => "bitwise_or",
        BinaryOp::Xor => "bitwise_xor",
        _ => op.name(),
    }
}

/// The method of a binary op. Quotients of integers are [`Tensor::trunc_divide`], as
/// [`Tensor::div`] converts to floats first.
///
/// # Errors
/// Where the method gives one.
pub fn binary(op: BinaryOp, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    match op {
        BinaryOp::Add => x.add(y),
        BinaryOp::Sub => x.sub(y),
        BinaryOp::Mul => x.mul(y),
        BinaryOp::Div if x.dtype().promote(y.dtype()).is_float() => x.div(y),
        BinaryOp::Div => x.trunc_divide(y),
        BinaryOp::Rem => x.fmod(y),
        BinaryOp::Pow => x.pow(y),
        BinaryOp::Atan2 => x.atan2(y),
        BinaryOp::LogAddExp => x.logaddexp(y),
        BinaryOp::Max => x.maximum(y),
        BinaryOp::Min => x.minimum(y),
        BinaryOp::And => x.bitwise_and(y),
        BinaryOp::Or => x.bitwise_or(y),
        BinaryOp::Xor => x.bitwise_xor(y),
        BinaryOp::Gcd => x.gcd(y),
        BinaryOp::Shl => x.shl(y),
        BinaryOp::Shr => x.shr(y),
        BinaryOp::Lt => x.lt(y),
        BinaryOp::Le => x.le(y),
        BinaryOp::Eq => x.eq(y),
        BinaryOp::Ne => x.ne(y),
    }
}
