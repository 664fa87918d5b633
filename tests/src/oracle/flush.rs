//! Devices that replace subnormal numbers by zero.
//!
//! Some drivers do so for a dtype, wherever they compute with it, and cannot be told otherwise; a
//! device whose capabilities say so (`Caps::flushes_subnormals`) may have a zero wherever an
//! operand or a result is subnormal. Here such a value becomes the interval from zero to itself.
//! That is a property of the device and no tolerance: all other values stay as they are.

use super::Val;
use crate::tolerance::smallest_normal;
use std::cell::Cell;
use zyx_core::hal::Caps;
use zyx_core::{DType, DTypeSet, Scalar};

thread_local! {
    /// Dtypes that the device under test flushes; a test runs in one thread.
    static FLUSHED: Cell<DTypeSet> = const { Cell::new(DTypeSet::NONE) };
}

/// The dtypes whose subnormal values a device may replace by zero: those it computes in a dtype
/// that it flushes and whose subnormals are subnormal there.
pub fn dtypes(caps: &Caps) -> DTypeSet {
    let flushed = |&dtype: &DType| {
        let compute = caps.compute_dtype(dtype);
        dtype.is_float()
            && caps.flushes_subnormals.contains(compute)
            && smallest_normal(dtype) <= smallest_normal(compute)
    };
    let all: Vec<DType> = DType::ALL.iter().copied().filter(flushed).collect();
    DTypeSet::of(&all)
}

/// From now on, values are expected of this device in this thread.
pub fn expect_of(caps: &Caps) {
    FLUSHED.set(dtypes(caps));
}

/// What may stand for a value of `dtype` as an operand or a result.
pub fn flushed(dtype: DType, x: Val) -> Val {
    match x {
        Val::Real(low, high) if FLUSHED.get().contains(dtype) => {
            let tiny = smallest_normal(dtype);
            let touches = low < tiny && high > -tiny && (low != 0.0 || high != 0.0);
            let (below, above) = (low >= 0.0, high <= 0.0);
            if !touches {
                return x;
            }
            Val::Real(if below { -0.0 } else { low }, if above { 0.0 } else { high })
        }
        _ => x,
    }
}

/// The same number, or a zero of its sign if it is subnormal.
pub fn zeroed(x: Scalar) -> Scalar {
    let tiny = x.dtype().is_float() && x.to_f64().abs() < smallest_normal(x.dtype());
    if tiny { Scalar::from_f64(x.dtype(), 0f64.copysign(x.to_f64())) } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::arithmetic::{binary, unary};
    use zyx_core::{BinaryOp, UnaryOp};

    #[test]
    fn subnormal_operands_and_results_may_be_zero_and_others_may_not() {
        let mut caps = Caps::default();
        caps.flushes_subnormals = DTypeSet::of(&[DType::F32]);
        expect_of(&caps);
        let tiny = Val::point(1e-40);
        assert_eq!(flushed(DType::F32, tiny), Val::Real(-0.0, 1e-40));
        assert_eq!(flushed(DType::F64, tiny), tiny);
        assert_eq!(flushed(DType::F32, Val::point(1e-30)), Val::point(1e-30));
        let scaled = binary(BinaryOp::Mul, DType::F32, tiny, Val::point(1e20));
        assert!(scaled.allows(Val::point(0.0), false), "{scaled}");
        assert!(!scaled.allows(Val::point(-1e-21), false), "{scaled}");
        let small = binary(BinaryOp::Mul, DType::F32, Val::point(1e-20), Val::point(1e-20));
        assert!(small.allows(Val::point(0.0), false), "{small}");
        assert_eq!(unary(UnaryOp::Recip, DType::F32, tiny), Val::Unknown);
        assert_eq!(binary(BinaryOp::Lt, DType::F32, Val::point(0.0), tiny), Val::Unknown);
        expect_of(&Caps::default());
        assert_eq!(binary(BinaryOp::Lt, DType::F32, Val::point(0.0), tiny), Val::Int(1));
    }

    #[test]
    fn bfloats_are_flushed_with_the_floats_they_are_computed_in() {
        let mut caps = Caps::default();
        caps.flushes_subnormals = DTypeSet::of(&[DType::F32]);
        assert_eq!(dtypes(&caps), DTypeSet::of(&[DType::F32, DType::BF16]));
    }
}
