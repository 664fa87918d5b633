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

/// What `f` gives where nothing is flushed: for values that are inputs.
pub fn kept<T>(f: impl FnOnce() -> T) -> T {
    let before = FLUSHED.replace(DTypeSet::NONE);
    let result = f();
    FLUSHED.set(before);
    result
}

/// What may stand for a value of `dtype` as an operand.
pub fn flushed(dtype: DType, x: Val) -> Val {
    below(dtype, x, |x| x < smallest_normal(dtype))
}

/// What may stand for a value of `dtype` as a result. Hardware looks at the exact result, so what
/// rounds up to the smallest normal number is flushed as well.
pub fn flushed_result(dtype: DType, x: Val) -> Val {
    below(dtype, x, |x| x <= smallest_normal(dtype))
}

fn below(dtype: DType, x: Val, is_tiny: impl Fn(f64) -> bool) -> Val {
    match x {
        Val::Real(low, high) if FLUSHED.get().contains(dtype) => {
            let touches = is_tiny(low) && is_tiny(-high) && (low != 0.0 || high != 0.0);
            let (below, above) = (low >= 0.0, high <= 0.0);
            if !touches {
                return x;
            }
            Val::Real(if below { -0.0 } else { low }, if above { 0.0 } else { high })
        }
        _ => x,
    }
}

/// Whether a device that flushes takes two values for equal zeros although they may differ; the
/// larger and the smaller of them are then either.
pub fn tie(dtype: DType, x: Val, y: Val) -> Option<Val> {
    match (x, y) {
        (Val::Real(a, b), Val::Real(c, d)) if FLUSHED.get().contains(dtype) => {
            let tiny = smallest_normal(dtype);
            let zeros = [a, b, c, d].iter().all(|x| x.abs() < tiny);
            zeros.then(|| Val::Real(a.min(c).min(-0.0), b.max(d).max(0.0)))
        }
        _ => None,
    }
}

/// The same operand, or a zero of its sign if it is subnormal.
pub fn zeroed(x: Scalar) -> Scalar {
    let tiny = x.dtype().is_float() && x.to_f64().abs() < smallest_normal(x.dtype());
    if tiny { Scalar::from_f64(x.dtype(), 0f64.copysign(x.to_f64())) } else { x }
}

/// The same result, or a zero of its sign if it may have been subnormal before it was rounded.
pub fn zeroed_result(x: Scalar) -> Scalar {
    let tiny = x.dtype().is_float() && x.to_f64().abs() <= smallest_normal(x.dtype());
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
        assert_eq!(kept(|| flushed(DType::F32, tiny)), tiny);
        let normal = f64::from(f32::MIN_POSITIVE);
        let pair = [Val::point(normal), Val::point(-87.95)];
        let sum = binary(BinaryOp::LogAddExp, DType::F32, pair[0], pair[1]);
        assert!(sum.allows(pair[0], false) && sum.allows(Val::point(1.5427e-38), true), "{sum}");
        let smallest = Val::point(f64::from(f32::MIN_POSITIVE));
        assert_eq!(flushed(DType::F32, smallest), smallest);
        assert!(flushed_result(DType::F32, smallest).allows(Val::ZERO, false));
        let larger = binary(BinaryOp::Max, DType::F32, Val::point(-1e-45), Val::point(0.0));
        assert!(larger.allows(Val::point(-1e-45), false), "{larger}");
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
