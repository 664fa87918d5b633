//! What makes tensors, and conversions between element types.

use super::index::from_front;
use super::math::cast_to;
use super::quantize::encoded;
use super::{dtype_attribute, one, one_value};
use crate::attribute::Attribute;
use crate::coded::CodedType;
use crate::host::Host;
use crate::proto::tensor_proto::DataType;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Scalar, Tensor};

type Values = Result<Vec<Value>>;

pub(super) fn cast(call: &Call<'_>) -> Values {
    // Before opset 6 the type is a name.
    let to = match call.attribute("to") {
        Some(Attribute::String(name)) => DataType::from_str_name(name).map_or(0, |to| to as i32),
        _ => call.int_or("to", 0)? as i32,
    };
    if to == 8 {
        return to_strings(call, call.value(0)?);
    }
    if let Some(kind) = CodedType::of(to) {
        return encoded(call, kind);
    }
    let dtype = crate::read::dtype(to).map_err(|reason| call.error(reason))?;
    cast_to(call, call.value(0)?, dtype)
}

pub(super) fn cast_like(call: &Call<'_>) -> Values {
    let like = call.value(1)?;
    match (like.dtype(), like) {
        (Some(dtype), _) => cast_to(call, call.value(0)?, dtype),
        (None, Value::Coded(like)) => encoded(call, like.kind),
        (None, Value::Strings(..)) => to_strings(call, call.value(0)?),
        (None, other) => {
            Err(call.error(format!("nothing is cast to the type of {}", other.kind())))
        }
    }
}

fn to_strings(call: &Call<'_>, value: &Value) -> Values {
    if let Value::Strings(..) = value {
        return one_value(call.copied(value)?);
    }
    let host = call.read(value)?;
    // The longest number has 309 digits and is negative.
    call.budget().ask_for(host.numbers().len(), size_of::<String>() + 310)?;
    let text = |x: &Scalar| match host.dtype() {
        DType::F64 => format!("{}", x.to_f64()),
        dtype if dtype.is_float() => format!("{}", x.to_f64() as f32),
        _ => format!("{}", x.to_i128()),
    };
    one_value(Value::Strings(host.shape().to_vec(), host.numbers().iter().map(text).collect()))
}

pub(super) fn constant(call: &Call<'_>) -> Values {
    let vector = |numbers: Vec<Scalar>, dtype| one(Host::new([numbers.len()], dtype, numbers));
    let names = [
        "value",
        "value_int",
        "value_float",
        "value_ints",
        "value_floats",
        "value_string",
        "value_strings",
    ];
    match names.iter().find_map(|name| call.attribute(name)) {
        Some(Attribute::Tensor(value)) => one_value(call.copied(value)?),
        Some(Attribute::Int(n)) => one(Host::new([], DType::I64, vec![Scalar::from(*n)])),
        Some(Attribute::Float(x)) => one(Host::new([], DType::F32, vec![Scalar::from(*x)])),
        Some(Attribute::Ints(n)) => {
            vector(n.iter().map(|&n| Scalar::from(n)).collect(), DType::I64)
        }
        Some(Attribute::Floats(x)) => {
            vector(x.iter().map(|&x| Scalar::from(x)).collect(), DType::F32)
        }
        Some(Attribute::String(text)) => one_value(Value::Strings(vec![], vec![text.clone()])),
        Some(Attribute::Strings(texts)) => {
            one_value(Value::Strings(vec![texts.len()], texts.clone()))
        }
        _ => Err(call.error("it has no value that is supported")),
    }
}

pub(super) fn constant_of_shape(call: &Call<'_>) -> Values {
    let shape = call.sizes(&call.ints(0)?)?;
    let number = match call.attribute("value") {
        Some(Attribute::Tensor(value)) => call.read(value)?,
        _ => Host::new([1], DType::F32, vec![Scalar::from(0f32)]),
    };
    let Some(&first) = number.numbers().first() else {
        return Err(call.error("its value has no element"));
    };
    let numel = shape.iter().try_fold(1usize, |n, &extent| n.checked_mul(extent));
    match numel {
        Some(numel) if numel <= Host::MOST => {
            one(Host::new(shape, number.dtype(), vec![first; numel]))
        }
        Some(_) => {
            let one_number = Host::new([1], number.dtype(), vec![first]).tensor(call.device())?;
            one(one_number.reshape(())?.broadcast_to(shape)?)
        }
        None => Err(call.error(format!("shape {shape:?} has more elements than can be"))),
    }
}

pub(super) fn range(call: &Call<'_>) -> Values {
    let [start, limit, delta] = [0, 1, 2].map(|i| call.value(i).and_then(|value| call.read(value)));
    let (start, limit, delta) = (start?, limit?, delta?);
    let dtype = start.dtype();
    let first = |host: &Host| {
        host.numbers().first().copied().ok_or_else(|| call.error("a bound has no element"))
    };
    let (start, limit, delta) = (first(&start)?, first(&limit)?, first(&delta)?);
    let wrong = || call.error("the step is zero or the range has more elements than can be");
    let n = if dtype.is_float() {
        let n = ((limit.to_f64() - start.to_f64()) / delta.to_f64()).ceil().max(0.0);
        if n.is_nan() || n > 1e15 { return Err(wrong()) } else { n as usize }
    } else {
        let (start, limit, delta) = (start.to_i128(), limit.to_i128(), delta.to_i128());
        if delta == 0 {
            return Err(wrong());
        }
        let n =
            if delta > 0 { limit - start + delta - 1 } else { limit - start + delta + 1 } / delta;
        usize::try_from(n.max(0)).map_err(|_| wrong())?
    };
    if n <= Host::MOST && !dtype.is_float() {
        let number = |i: usize| {
            Scalar::from_i64(
                dtype,
                start.to_i64().wrapping_add(delta.to_i64().wrapping_mul(i as i64)),
            )
        };
        return one(Host::new([n], dtype, (0..n).map(number).collect()));
    }
    let scalar = |x: Scalar| Host::new([], dtype, vec![x]).tensor(call.device());
    let steps = Tensor::iota(n, DType::I64, call.device()).cast(dtype);
    one(steps.mul(scalar(delta)?)?.add(scalar(start)?)?)
}

pub(super) fn one_hot(call: &Call<'_>) -> Values {
    let index = call.tensor(0)?;
    let depth = usize::try_from(call.int(1)?).map_err(|_| call.error("its depth is negative"))?;
    let values = call.tensor(2)?;
    let axis = call.axis(call.int_or("axis", -1)?, index.rank() + 1)?;
    let index = from_front(&index.unsqueeze(axis as isize)?, depth)?;
    let mut shape = vec![1; index.rank()];
    shape[axis] = depth;
    let hot = index.eq(Tensor::iota(depth, DType::I64, call.device()).reshape(shape)?)?;
    one(hot.where_(values.slice(0, 1..2)?.reshape(())?, values.slice(0, 0..1)?.reshape(())?)?)
}

pub(super) fn eye_like(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let dtype = dtype_attribute(call, "dtype")?.unwrap_or(x.dtype());
    let &[rows, columns] = x.shape().dims() else {
        return Err(call.error(format!("shape {} is no matrix's", x.shape())));
    };
    let device = call.device();
    let row = Tensor::iota(rows, DType::I64, device).add(call.int_or("k", 0)?)?.unsqueeze(1)?;
    one(row.eq(Tensor::iota(columns, DType::I64, device))?.cast(dtype))
}

pub(super) fn bit_cast(call: &Call<'_>) -> Values {
    let dtype =
        crate::read::dtype(call.int_or("to", 0)? as i32).map_err(|reason| call.error(reason))?;
    let x = call.tensor(0)?;
    let x = if x.dtype() == DType::Bool { x.cast(DType::U8) } else { x };
    one(if dtype == DType::Bool { x.cast(DType::Bool) } else { x.bitcast(dtype)? })
}
