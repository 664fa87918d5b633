//! Scalar operations on 64-bit slots, chosen once per op when a kernel is decoded.
//!
//! A slot holds an element's bits zero-extended, as `Scalar` does. The functions here equal the
//! `eval` of the op tables bit for bit (a test compares them all); they exist because matching on
//! op and dtype again for every element costs more than the operation. What has no row here is
//! computed by `eval` itself.

use crate::dtype::{DType, Element, by_type};
use crate::ops::{BinaryOp, UnaryOp};
use crate::scalar::Scalar;
use num_traits::{AsPrimitive, CheckedRem, Float, PrimInt, WrappingAdd, WrappingMul, WrappingSub};

/// An operation on one slot.
pub type Fn1 = fn(u64) -> u64;
/// An operation on two slots.
pub type Fn2 = fn(u64, u64) -> u64;

/// The element in a slot.
fn at<T: Element>(slot: u64) -> T {
    T::from_bits64(slot)
}

fn int_binary<T>(op: BinaryOp) -> Option<Fn2>
where
    T: Element + PrimInt + WrappingAdd + WrappingSub + WrappingMul + CheckedRem,
{
    Some(match op {
        BinaryOp::Add => |x, y| at::<T>(x).wrapping_add(&at(y)).to_bits64(),
        BinaryOp::Sub => |x, y| at::<T>(x).wrapping_sub(&at(y)).to_bits64(),
        BinaryOp::Mul => |x, y| at::<T>(x).wrapping_mul(&at(y)).to_bits64(),
        // The one refused quotient by another number than 0, that of the least integer by -1, wraps to it.
        BinaryOp::Div => {
            |x, y| if y == 0 { 0 } else { at::<T>(x).checked_div(&at(y)).map_or(x, T::to_bits64) }
        }
        BinaryOp::Rem => {
            |x, y| if y == 0 { x } else { at::<T>(x).checked_rem(&at(y)).map_or(0, T::to_bits64) }
        }
        BinaryOp::Max => |x, y| at::<T>(x).max(at(y)).to_bits64(),
        BinaryOp::Min => |x, y| at::<T>(x).min(at(y)).to_bits64(),
        BinaryOp::Lt => |x, y| (at::<T>(x) < at(y)) as u64,
        BinaryOp::Le => |x, y| (at::<T>(x) <= at(y)) as u64,
        _ => return bits(T::DTYPE, op),
    })
}

fn float_binary<T: Element + Float + AsPrimitive<f64>>(op: BinaryOp) -> Option<Fn2>
where
    f64: AsPrimitive<T>,
{
    Some(match op {
        BinaryOp::Add => |x, y| (at::<T>(x) + at(y)).to_bits64(),
        BinaryOp::Sub => |x, y| (at::<T>(x) - at(y)).to_bits64(),
        BinaryOp::Mul => |x, y| (at::<T>(x) * at(y)).to_bits64(),
        BinaryOp::Div => |x, y| (at::<T>(x) / at(y)).to_bits64(),
        BinaryOp::Lt => |x, y| (at::<T>(x) < at(y)) as u64,
        BinaryOp::Le => |x, y| (at::<T>(x) <= at(y)) as u64,
        BinaryOp::Eq => |x, y| (at::<T>(x) == at(y)) as u64,
        BinaryOp::Ne => |x, y| (at::<T>(x) != at(y)) as u64,
        BinaryOp::Max => {
            |x, y| BinaryOp::Max.eval_f64(at::<T>(x).as_(), at::<T>(y).as_()).as_().to_bits64()
        }
        BinaryOp::Min => {
            |x, y| BinaryOp::Min.eval_f64(at::<T>(x).as_(), at::<T>(y).as_()).as_().to_bits64()
        }
        _ => return None,
    })
}

/// The fast form of a binary op on `dtype`.
pub fn binary(op: BinaryOp, dtype: DType) -> Option<Fn2> {
    match dtype {
        DType::Bool => bits(dtype, op),
        _ => by_type!(dtype, T => int_binary::<T>(op), float_binary::<T>(op)),
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

fn float_unary<T: Element + AsPrimitive<f64>>(op: UnaryOp) -> Option<Fn1>
where
    f64: AsPrimitive<T>,
{
    macro_rules! rows {
        ($($row:ident)*) => {
            Some(match op {
                $(UnaryOp::$row => |x| UnaryOp::$row.eval_f64(at::<T>(x).as_()).as_().to_bits64(),)*
                UnaryOp::Not => return None,
            })
        };
    }
    rows!(Neg Abs Recip Sqrt Exp Exp2 Expm1 Log Log2 Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh
        Erf Floor Ceil Round Trunc)
}

/// The fast form of a unary op on `dtype`.
pub fn unary(op: UnaryOp, dtype: DType) -> Option<Fn1> {
    match dtype {
        DType::F32 => float_unary::<f32>(op),
        DType::F64 => float_unary::<f64>(op),
        DType::Bool if op == UnaryOp::Not => Some(|x| x ^ 1),
        _ => None,
    }
}

fn conversion<F: Element + AsPrimitive<T>, T: Element>() -> Fn1 {
    |x| at::<F>(x).as_().to_bits64()
}

/// The fast form of a conversion: where `as` is the definition, so not to halves, which round once, nor to bool.
pub fn cast(from: DType, to: DType) -> Option<Fn1> {
    match to {
        DType::Bool | DType::F16 | DType::BF16 => None,
        _ => Some(by_type!(from, F => by_type!(to, T => conversion::<F, T>()))),
    }
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
        // Sums and quotients of halves are computed in `f32` and rounded twice, which has to equal once.
        if dtype.is_float() && dtype.bits() == 16 {
            samples.extend((0..=u16::MAX).step_by(251).map(u64::from));
        }
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
