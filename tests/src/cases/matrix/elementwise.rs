//! Rows of operations element by element.

use super::{Row, rows};
use zyx_core::{DType, Tensor};

macro_rules! of {
    ($operand:ident: $($name:ident)*) => { rows! {$( $name |s| s.$operand.$name(); )*} };
}

macro_rules! pairs {
    ($x:ident, $y:ident: $($name:ident)*) => { rows! {$( $name |s| s.$x.$name(&s.$y); )*} };
}

/// The rows.
pub(super) fn table() -> Vec<Row> {
    let mut all = of! { x:
        neg abs recip exp exp2 expm1 sin cos tan atan sinh cosh tanh erf floor ceil round trunc
        square sign is_nan is_inf is_finite logical_not bitwise_not
        erfc erfcx ndtr log_ndtr asinh frac sinc signbit deg2rad rad2deg reciprocal isnan isinf
        isfinite isposinf isneginf
        relu sigmoid silu softplus selu gelu gelu_exact mish
        softsign relu6 hardsigmoid hardswish logsigmoid tanhshrink
    };
    all.extend(of! { unit: sqrt rsqrt log log2 log10 log1p asin acos atanh erfinv });
    all.extend(of! { large: acosh lgamma digamma });
    all.extend(pairs! { x, y:
        add sub mul div fmod trunc_divide floor_divide remainder atan2 maximum minimum
        bitwise_and bitwise_or bitwise_xor lt le eq ne gt ge logical_and logical_or logical_xor
        hypot copysign logaddexp logaddexp2 heaviside gcd lcm fmax fmin
    });
    all.extend(pairs! { unit, large: pow float_power xlogy xlog1py });
    all.extend(rows! {
        shl |s| s.y.shl(s.x.bitwise_and(3)?);
        shr |s| s.y.shr(s.x.bitwise_and(3)?);
        bitwise_left_shift |s| s.y.bitwise_left_shift(s.x.bitwise_and(3)?);
        bitwise_right_shift |s| s.y.bitwise_right_shift(s.x.bitwise_and(3)?);
        ldexp |s| s.x.ldexp(s.v.round());
        where_ |s| s.mask.where_(&s.x, &s.y);
        clamp |s| s.x.clamp(0, 2);
        lerp |s| s.x.lerp(&s.y, 0.25);
        addcmul |s| s.x.addcmul(&s.y, &s.v, 0.5);
        addcdiv |s| s.x.addcdiv(&s.v, &s.y, 0.5);
        isclose |s| s.x.isclose(&s.y, 0.5, 0.0, false);
        polygamma |s| s.large.polygamma(2);
        logit |s| s.unit.logit(Some(0.125));
        nan_to_num |s| s.x.div(s.v.sub(s.v.select_index(0, 0)?)?)?.nan_to_num(7.0, Some(8.0), Some(-8.0));
        leaky_relu |s| s.x.leaky_relu(0.1);
        elu |s| s.x.elu(0.5);
        hardtanh |s| s.x.hardtanh(-0.5, 0.75);
        celu |s| s.x.celu(0.5);
        threshold |s| s.x.threshold(0.5, 3.0);
        softshrink |s| s.x.softshrink(0.5);
        hardshrink |s| s.x.hardshrink(0.5);
        glu |s| s.x.glu(1);
        prelu |s| s.x.prelu(&s.v);
        cast |s| vec![s.x.cast(DType::F32), s.x.cast(DType::I32), s.x.cast(DType::Bool)];
        encode_float8 |s| s.x.encode_float8(zyx_core::Float8::E4M3);
        decode_float8 |s| s.x.decode_float8(zyx_core::Float8::E5M2);
    });
    all.extend(rows! { itself
        nextafter |s| s.x.nextafter(&s.y);
        bitcast |s| s.x.bitcast(same_width(s.dtype));
        equal |s| Tensor::full((), s.x.equal(&s.x)?, &s.device);
        allclose |s| Tensor::full((), s.x.allclose(&s.y, 0.5, 0.0, true)?, &s.device);
    });
    all
}

/// Another dtype of as many bits, if there is one.
fn same_width(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::Bool,
        DType::U8 => DType::I8,
        DType::I8 => DType::U8,
        DType::U16 | DType::I16 => DType::F16,
        DType::F16 | DType::BF16 => DType::U16,
        DType::U32 | DType::I32 => DType::F32,
        DType::F32 => DType::I32,
        DType::F64 => DType::U64,
        _ => DType::F64,
    }
}
