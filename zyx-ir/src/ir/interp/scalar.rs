//! Scalar operations on 64-bit slots, chosen once per op when a kernel is decoded.
//!
//! A slot holds an element's bits zero-extended, as `Scalar` does. The functions here equal the
//! `eval` of the op tables bit for bit (a test compares them all); they exist because matching on
//! op and dtype again for every element costs more than the operation. What has no row here is
//! computed by `eval` itself.

use crate::dtype::{DType, Element};
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;

/// An operation on one slot.
pub type Fn1 = fn(u64) -> u64;
/// An operation on two slots.
pub type Fn2 = fn(u64, u64) -> u64;

macro_rules! int_binary {
    ($t:ty, $op:expr) => {{
        type T = $t;
        fn at(x: u64) -> T {
            T::from_bits64(x)
        }
        Some(match $op {
            BinaryOp::Add => |x, y| at(x).wrapping_add(at(y)).to_bits64(),
            BinaryOp::Sub => |x, y| at(x).wrapping_sub(at(y)).to_bits64(),
            BinaryOp::Mul => |x, y| at(x).wrapping_mul(at(y)).to_bits64(),
            BinaryOp::Div => {
                |x, y| if at(y) == 0 { 0 } else { at(x).wrapping_div(at(y)).to_bits64() }
            }
            BinaryOp::Rem => {
                |x, y| if at(y) == 0 { x } else { at(x).wrapping_rem(at(y)).to_bits64() }
            }
            BinaryOp::Max => |x, y| at(x).max(at(y)).to_bits64(),
            BinaryOp::Min => |x, y| at(x).min(at(y)).to_bits64(),
            BinaryOp::Lt => |x, y| (at(x) < at(y)) as u64,
            BinaryOp::Le => |x, y| (at(x) <= at(y)) as u64,
            _ => return bits(T::DTYPE, $op),
        })
    }};
}

macro_rules! float_binary {
    ($t:ty, $op:expr) => {{
        type T = $t;
        fn at(x: u64) -> T {
            T::from_bits64(x)
        }
        Some(match $op {
            BinaryOp::Add => |x, y| (at(x) + at(y)).to_bits64(),
            BinaryOp::Sub => |x, y| (at(x) - at(y)).to_bits64(),
            BinaryOp::Mul => |x, y| (at(x) * at(y)).to_bits64(),
            BinaryOp::Div => |x, y| (at(x) / at(y)).to_bits64(),
            BinaryOp::Lt => |x, y| (at(x) < at(y)) as u64,
            BinaryOp::Le => |x, y| (at(x) <= at(y)) as u64,
            BinaryOp::Eq => |x, y| (at(x) == at(y)) as u64,
            BinaryOp::Ne => |x, y| (at(x) != at(y)) as u64,
            BinaryOp::Max => {
                |x, y| (BinaryOp::Max.eval_f64(at(x) as f64, at(y) as f64) as T).to_bits64()
            }
            BinaryOp::Min => {
                |x, y| (BinaryOp::Min.eval_f64(at(x) as f64, at(y) as f64) as T).to_bits64()
            }
            _ => return None,
        })
    }};
}

/// The fast form of a binary op on `dtype`.
pub fn binary(op: BinaryOp, dtype: DType) -> Option<Fn2> {
    match dtype {
        DType::I64 => int_binary!(i64, op),
        DType::I32 => int_binary!(i32, op),
        DType::U32 => int_binary!(u32, op),
        DType::U64 => int_binary!(u64, op),
        DType::F32 => float_binary!(f32, op),
        DType::F64 => float_binary!(f64, op),
        DType::U8 | DType::U16 | DType::I8 | DType::I16 | DType::Bool => bits(dtype, op),
        DType::F16 | DType::BF16 => None,
    }
}

/// Ops that mean the same on the canonical bits of every integer dtype and bool.
fn bits(dtype: DType, op: BinaryOp) -> Option<Fn2> {
    Some(match op {
        BinaryOp::And => |x, y| x & y,
        BinaryOp::Or => |x, y| x | y,
        BinaryOp::Xor => |x, y| x ^ y,
        BinaryOp::Eq => |x, y| (x == y) as u64,
        BinaryOp::Ne => |x, y| (x != y) as u64,
        BinaryOp::Add if dtype == DType::Bool => |x, y| x | y,
        BinaryOp::Mul if dtype == DType::Bool => |x, y| x & y,
        _ => return None,
    })
}

macro_rules! float_unary {
    ($t:ty, $op:expr, $($row:ident)*) => {
        match $op {
            $(UnaryOp::$row => Some(|x| {
                (UnaryOp::$row.eval_f64(<$t>::from_bits64(x) as f64) as $t).to_bits64()
            }),)*
            UnaryOp::Not => None,
        }
    };
}

macro_rules! float_unary_rows {
    ($t:ty, $op:expr) => {
        float_unary!($t, $op, Neg Abs Recip Sqrt Exp Exp2 Expm1 Log Log2 Log1p Sin Cos Tan Asin
            Acos Atan Sinh Cosh Tanh Erf Floor Ceil Round Trunc)
    };
}

/// The fast form of a unary op on `dtype`.
pub fn unary(op: UnaryOp, dtype: DType) -> Option<Fn1> {
    match dtype {
        DType::F32 => float_unary_rows!(f32, op),
        DType::F64 => float_unary_rows!(f64, op),
        DType::Bool if op == UnaryOp::Not => Some(|x| x ^ 1),
        _ => None,
    }
}

/// The fast form of a conversion.
pub fn cast(from: DType, to: DType) -> Option<Fn1> {
    Some(match (from, to) {
        (DType::I32, DType::I64) => |x| x as i32 as i64 as u64,
        (DType::I64, DType::I32 | DType::U32) => |x| x as u32 as u64,
        (DType::U8 | DType::U16 | DType::U32 | DType::Bool, DType::I64 | DType::U64) => |x| x,
        (DType::I64, DType::F32) => |x| (x as i64 as f32).to_bits64(),
        (DType::I32, DType::F32) => |x| (x as i32 as f32).to_bits64(),
        (DType::Bool, DType::F32) => |x| (x as f32).to_bits64(),
        (DType::F32, DType::F64) => |x| (f32::from_bits64(x) as f64).to_bits64(),
        (DType::F64, DType::F32) => |x| (f64::from_bits64(x) as f32).to_bits64(),
        (DType::F32, DType::I64) => |x| (f32::from_bits64(x) as i64).to_bits64(),
        (DType::F32, DType::I32) => |x| (f32::from_bits64(x) as i32).to_bits64(),
        (DType::F16, DType::F32) => |x| half::f16::from_bits64(x).to_f32().to_bits64(),
        (DType::BF16, DType::F32) => |x| half::bf16::from_bits64(x).to_f32().to_bits64(),
        _ => return None,
    })
}

/// `op` on slots of `dtype`, by the table's definition.
pub fn eval_binary(op: BinaryOp, dtype: DType, x: u64, y: u64) -> u64 {
    op.eval(Scalar::from_bits(dtype, x), Scalar::from_bits(dtype, y)).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that are edges of some dtype, and bits that look random.
    fn samples(dtype: DType) -> Vec<u64> {
        let floats = [0.0, -0.0, 1.0, -1.5, 2.5, 0.1, 1e-40, 1e30, -1e10, f64::INFINITY, f64::NAN];
        let edges = [0, 1, 2, 31, 32, 63, 64, 0x7f, 0x80, 0x7fff_ffff, 0x8000_0000, 1 << 63];
        let mut samples: Vec<u64> = Vec::new();
        samples.extend(floats.map(|x| Scalar::from_f64(dtype, x).bits()));
        samples.extend(edges.map(|x| Scalar::from_bits(dtype, x).bits()));
        samples.extend(edges.map(|x: u64| Scalar::from_i64(dtype, -(x as i64 >> 1)).bits()));
        samples
    }

    fn equal(dtype: DType, x: u64, y: u64) -> bool {
        let nan = |bits| Scalar::from_bits(dtype, bits).to_f64().is_nan();
        x == y || dtype.is_float() && nan(x) && nan(y)
    }

    #[test]
    fn fast_binary_ops_equal_the_table() {
        for &op in BinaryOp::ALL {
            for &dtype in DType::ALL.iter().filter(|&&d| op.domain().contains(d)) {
                let Some(fast) = binary(op, dtype) else { continue };
                for x in samples(dtype) {
                    for y in samples(dtype) {
                        let (got, want) = (fast(x, y), eval_binary(op, dtype, x, y));
                        let same = equal(op.result(dtype), got, want);
                        assert!(same, "{op} on {dtype}: {x:#x} {y:#x} {got:#x} {want:#x}");
                    }
                }
            }
        }
    }

    #[test]
    fn fast_unary_ops_and_casts_equal_the_table() {
        for &from in DType::ALL {
            for x in samples(from) {
                let scalar = Scalar::from_bits(from, x);
                for &op in UnaryOp::ALL.iter().filter(|op| op.domain().contains(from)) {
                    let Some(fast) = unary(op, from) else { continue };
                    assert!(equal(from, fast(x), op.eval(scalar).bits()), "{op} {scalar:?}");
                }
                for &to in DType::ALL {
                    let Some(fast) = cast(from, to) else { continue };
                    assert!(equal(to, fast(x), scalar.cast(to).bits()), "{scalar:?} to {to}");
                }
            }
        }
    }
}
