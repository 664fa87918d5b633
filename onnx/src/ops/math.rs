//! Operators on elements: arithmetic, comparisons, functions, activations.
//!
//! Each is computed on the host where the host knows all of its inputs, by the same definition of each op.

use super::one;
use super::strings::places;
use crate::host::{Host, common, numel};
use crate::run::Call;
use crate::value::Value;
use zyx_core::ops::{BinaryOp, UnaryOp};
use zyx_core::{DType, Result, Scalar, Shape, Tensor};

type Values = Result<Vec<Value>>;

/// One op of one input.
pub(super) fn unary(call: &Call<'_>, op: UnaryOp, on_tensor: fn(&Tensor) -> Tensor) -> Values {
    match call.host(0).and_then(|host| host.unary(op)) {
        Some(host) => one(host),
        None => same(call, on_tensor),
    }
}

/// A function of one tensor that keeps its dtype.
pub(super) fn same(call: &Call<'_>, on_tensor: impl Fn(&Tensor) -> Tensor) -> Values {
    let x = call.tensor(0)?;
    one(on_tensor(&x).cast(x.dtype()))
}

fn binary(
    call: &Call<'_>,
    op: BinaryOp,
    on_tensors: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Values {
    if let Some([x, y]) = call.hosts().as_deref()
        && call.attribute("axis").is_none()
        && let Some(host) = x.binary(op, y)
    {
        return one(host);
    }
    let (x, y) = operands(call)?;
    one(on_tensors(&x, &y)?)
}

/// Two tensors of one dtype: the standard converts nothing.
fn operands(call: &Call<'_>) -> Result<(Tensor, Tensor)> {
    let (x, y) = aligned(call)?;
    match x.dtype() == y.dtype() {
        true => Ok((x, y)),
        false => Err(call.error(format!(
            "its operands are {} and {}, not of one type",
            x.dtype(),
            y.dtype()
        ))),
    }
}

/// The first two inputs. Before opset 7 the second one may lie along axes from `axis` on.
fn aligned(call: &Call<'_>) -> Result<(Tensor, Tensor)> {
    let (x, y) = (call.tensor(0)?, call.tensor(1)?);
    match call.int_attribute("axis")? {
        Some(axis) if call.opset() < 7 => {
            let behind = x.rank().saturating_sub(call.axis(axis, x.rank())? + y.rank());
            let y = y.reshape([y.shape().dims(), &vec![1; behind]].concat())?;
            Ok((x, y))
        }
        _ => Ok((x, y)),
    }
}

pub(super) fn add(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Add, |x, y| x.add(y))
}

pub(super) fn sub(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Sub, |x, y| x.sub(y))
}

pub(super) fn mul(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Mul, |x, y| x.mul(y))
}

/// Integers are truncated.
pub(super) fn div(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Div, |x, y| match x.dtype().is_float() {
        true => x.div(y),
        false => x.trunc_divide(y),
    })
}

/// The sign is the divisor's on integers; with `fmod` it is the dividend's.
pub(super) fn modulo(call: &Call<'_>) -> Values {
    let (x, y) = operands(call)?;
    one(if call.flag("fmod")? { x.fmod(&y)? } else { x.remainder(&y)? })
}

/// Base and exponent may differ in type; the result has the base's.
pub(super) fn pow(call: &Call<'_>) -> Values {
    let (x, y) = aligned(call)?;
    let exponent = match call.host(1) {
        Some(host)
            if host.numbers().len() == 1 && host.shape().is_empty() && x.dtype().is_float() =>
        {
            return one(x.pow(host.floats()[0])?);
        }
        _ => y,
    };
    if x.dtype().is_float() || !exponent.dtype().is_float() {
        return one(x.pow(exponent.cast(x.dtype()))?);
    }
    // A power of an integer: exact where the exponent is whole, and else truncated.
    let is_whole = exponent.eq(exponent.trunc())?.bitwise_and(&exponent.ge(0.0)?)?;
    let between = x.cast(DType::F64).pow(exponent.cast(DType::F64))?.cast(x.dtype());
    one(is_whole.where_(x.pow(exponent.cast(x.dtype()))?, between)?)
}

pub(super) fn and(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::And, |x, y| x.bitwise_and(y))
}

pub(super) fn or(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Or, |x, y| x.bitwise_or(y))
}

pub(super) fn xor(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Xor, |x, y| x.bitwise_xor(y))
}

pub(super) fn equal(call: &Call<'_>) -> Values {
    if let (Value::Strings(shape, x), Value::Strings(other, y)) = (call.value(0)?, call.value(1)?) {
        let both = Shape::from(shape.as_slice()).broadcast(&Shape::from(other.as_slice()));
        let both =
            both.ok_or_else(|| call.error(format!("shapes {shape:?} and {other:?} differ")))?;
        let pairs = places(shape, &both).into_iter().zip(places(other, &both));
        let equal = pairs.map(|(i, j)| Scalar::from(x[i] == y[j])).collect();
        return one(Host::new(both.to_vec(), DType::Bool, equal));
    }
    binary(call, BinaryOp::Eq, |x, y| x.eq(y))
}

pub(super) fn less(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Lt, |x, y| x.lt(y))
}

pub(super) fn less_or_equal(call: &Call<'_>) -> Values {
    binary(call, BinaryOp::Le, |x, y| x.le(y))
}

pub(super) fn greater(call: &Call<'_>) -> Values {
    if let Some([x, y]) = call.hosts().as_deref()
        && let Some(host) = y.binary(BinaryOp::Lt, x)
    {
        return one(host);
    }
    let (x, y) = operands(call)?;
    one(x.gt(&y)?)
}

pub(super) fn greater_or_equal(call: &Call<'_>) -> Values {
    if let Some([x, y]) = call.hosts().as_deref()
        && let Some(host) = y.binary(BinaryOp::Le, x)
    {
        return one(host);
    }
    let (x, y) = operands(call)?;
    one(x.ge(&y)?)
}

pub(super) fn not(call: &Call<'_>) -> Values {
    unary(call, UnaryOp::Not, Tensor::logical_not)
}

pub(super) fn bitwise_not(call: &Call<'_>) -> Values {
    one(call.tensor(0)?.bitwise_not()?)
}

pub(super) fn bit_shift(call: &Call<'_>) -> Values {
    let (x, y) = operands(call)?;
    let width = i64::from(x.dtype().bits() as u32);
    // Shifts by the width or more leave nothing, or the sign.
    let too_far = y.cast(DType::I64).ge(width)?;
    let last = y.full_like(width - 1);
    let y = too_far.where_(&last, &y)?;
    match call.string_or("direction", "")? {
        "LEFT" => {
            let shifted = x.shl(&y)?;
            one(too_far.where_(shifted.zeros_like(), &shifted)?)
        }
        "RIGHT" if x.dtype().is_signed() => one(x.shr(&y)?),
        "RIGHT" => {
            let shifted = x.shr(&y)?;
            one(too_far.where_(shifted.zeros_like(), &shifted)?)
        }
        other => Err(call.error(format!("attribute `direction` is `{other}`"))),
    }
}

/// `Max`, `Min`, `Sum`, `Mean` of any number of inputs.
pub(super) fn fold(
    call: &Call<'_>,
    join: impl Fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let tensors = call.tensors()?;
    let (first, rest) = tensors.split_first().ok_or_else(|| call.error("it has no input"))?;
    rest.iter().try_fold(first.clone(), |x, y| join(&x, y))
}

pub(super) fn max(call: &Call<'_>) -> Values {
    if let Some([x, y]) = call.hosts().as_deref()
        && let Some(host) = x.binary(BinaryOp::Max, y)
    {
        return one(host);
    }
    one(fold(call, |x, y| x.maximum(y))?)
}

pub(super) fn min(call: &Call<'_>) -> Values {
    if let Some([x, y]) = call.hosts().as_deref()
        && let Some(host) = x.binary(BinaryOp::Min, y)
    {
        return one(host);
    }
    one(fold(call, |x, y| x.minimum(y))?)
}

pub(super) fn sum(call: &Call<'_>) -> Values {
    one(fold(call, |x, y| x.add(y))?)
}

pub(super) fn mean(call: &Call<'_>) -> Values {
    let n = call.inputs.len() as f64;
    one(fold(call, |x, y| x.add(y))?.div(n)?)
}

pub(super) fn where_(call: &Call<'_>) -> Values {
    if let Some([condition, x, y]) = call.hosts().as_deref()
        && x.dtype() == y.dtype()
        && let Some(shape) = common(&[condition, x, y])
    {
        let [condition, x, y] = [condition, x, y].map(|host| host.broadcast(&shape));
        let numbers = condition.numbers().iter().zip(x.numbers().iter().zip(y.numbers()));
        let chosen = numbers.map(|(&c, (&x, &y))| if c.to_bool() { x } else { y }).collect();
        return one(Host::new(shape, x.dtype(), chosen));
    }
    one(call.tensor(0)?.where_(&call.tensor(1)?, &call.tensor(2)?)?)
}

pub(super) fn is_inf(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let (positive, negative) =
        (call.int_or("detect_positive", 1)? != 0, call.int_or("detect_negative", 1)? != 0);
    let inf = x.is_inf();
    one(match (positive, negative) {
        (true, true) => inf,
        (true, false) => inf.bitwise_and(&x.gt(0.0)?)?,
        (false, true) => inf.bitwise_and(&x.lt(0.0)?)?,
        (false, false) => inf.zeros_like(),
    })
}

/// Bounds are attributes before opset 11 and inputs since; a lower bound above the upper one gives the upper.
pub(super) fn clip(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    let bound = |i: usize, name: &str| -> Result<Option<Tensor>> {
        if call.opset() >= 11 {
            return call.optional_tensor(i);
        }
        let bound = call.float_attribute(name)?;
        Ok(bound.map(|bound| Tensor::scalar(bound, call.device()).cast(x.dtype())))
    };
    let mut y = x.clone();
    if let Some(low) = bound(1, "min")? {
        y = y.maximum(&low)?;
    }
    if let Some(high) = bound(2, "max")? {
        y = y.minimum(&high)?;
    }
    one(y)
}

pub(super) fn leaky_relu(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 0.01)?;
    same(call, |x| x.leaky_relu(alpha))
}

pub(super) fn elu(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 1.0)?;
    same(call, |x| x.elu(alpha))
}

pub(super) fn celu(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 1.0)?;
    same(call, |x| x.celu(alpha))
}

pub(super) fn selu(call: &Call<'_>) -> Values {
    let (alpha, gamma) = match call.opset() >= 6 {
        true => (1.673_263_192_176_818_8, 1.050_700_902_938_842_8),
        false => (1.6732, 1.0507),
    };
    let (alpha, gamma) = (call.float_or("alpha", alpha)?, call.float_or("gamma", gamma)?);
    let x = call.tensor(0)?;
    one(x.elu(alpha).mul(gamma)?)
}

pub(super) fn gelu(call: &Call<'_>) -> Values {
    match call.string_or("approximate", "none")? {
        "none" => same(call, Tensor::gelu_exact),
        "tanh" => same(call, Tensor::gelu),
        other => Err(call.error(format!("attribute `approximate` is `{other}`"))),
    }
}

pub(super) fn hard_sigmoid(call: &Call<'_>) -> Values {
    let (alpha, beta) = (call.float_or("alpha", 0.2)?, call.float_or("beta", 0.5)?);
    let x = call.tensor(0)?;
    one(x.mul(alpha)?.add(beta)?.clamp(0.0, 1.0)?)
}

pub(super) fn hard_swish(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    one(x.mul(1.0 / 6.0)?.add(0.5)?.clamp(0.0, 1.0)?.mul(&x)?)
}

pub(super) fn prelu(call: &Call<'_>) -> Values {
    let (x, mut slope) = operands(call)?;
    // Before opset 7 a vector is one number for each channel.
    if call.opset() < 7 && slope.rank() == 1 && slope.numel() > 1 {
        slope =
            slope.reshape([&[slope.numel()], &vec![1; x.rank().saturating_sub(2)][..]].concat())?;
    }
    one(x.lt(0)?.where_(x.mul(&slope)?, &x)?)
}

pub(super) fn thresholded_relu(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 1.0)?;
    let x = call.tensor(0)?;
    one(x.gt(alpha)?.where_(&x, x.zeros_like())?)
}

pub(super) fn shrink(call: &Call<'_>) -> Values {
    let (bias, lambda) = (call.float_or("bias", 0.0)?, call.float_or("lambd", 0.5)?);
    let x = call.tensor(0)?;
    let wide = if x.dtype().is_float() { x.clone() } else { x.cast(DType::F64) };
    let zero = wide.zeros_like();
    let above = wide.gt(lambda)?.where_(wide.sub(bias)?, &zero)?;
    one(wide.lt(-lambda)?.where_(wide.add(bias)?, &above)?.cast(x.dtype()))
}

pub(super) fn swish(call: &Call<'_>) -> Values {
    let alpha = call.float_or("alpha", 1.0)?;
    let x = call.tensor(0)?;
    one(x.mul(alpha)?.sigmoid().mul(&x)?)
}

pub(super) fn softsign(call: &Call<'_>) -> Values {
    let x = call.tensor(0)?;
    one(x.div(x.abs().add(1.0)?)?)
}

/// Before opset 13 the tensor counts as a matrix whose rows begin at the axis.
pub(super) fn along(
    call: &Call<'_>,
    x: &Tensor,
    opset: i64,
    f: fn(&Tensor, isize) -> Result<Tensor>,
) -> Result<Tensor> {
    if opset >= 13 {
        let axis = call.axis(call.int_or("axis", -1)?, x.rank())?;
        return f(x, axis as isize);
    }
    let axis = call.int_or("axis", 1)?;
    let axis = if axis == x.rank() as i64 { x.rank() } else { call.axis(axis, x.rank())? };
    let columns = numel(&x.shape()[axis..]);
    let rows = numel(&x.shape()[..axis]);
    f(&x.reshape([rows, columns])?, 1)?.reshape(x.shape())
}

pub(super) fn softmax(call: &Call<'_>) -> Values {
    one(along(call, &call.tensor(0)?, call.opset(), |x, axis| x.softmax(axis))?)
}

pub(super) fn log_softmax(call: &Call<'_>) -> Values {
    one(along(call, &call.tensor(0)?, call.opset(), |x, axis| x.log_softmax(axis))?)
}

pub(super) fn hardmax(call: &Call<'_>) -> Values {
    one(along(call, &call.tensor(0)?, call.opset(), |x, axis| {
        let n = x.shape()[axis as usize];
        let hot = x.argmax(axis)?.one_hot(n)?;
        let mut order: Vec<isize> = (0..x.rank() as isize - 1).collect();
        order.insert(axis as usize, x.rank() as isize - 1);
        Ok(hot.permute(order)?.cast(x.dtype()))
    })?)
}

/// Rounds toward zero; bits of integers that do not fit are lost, floats saturate.
pub(super) fn cast_to(call: &Call<'_>, value: &Value, dtype: DType) -> Values {
    match value {
        Value::Host(host) => one(host.cast(dtype)),
        Value::Strings(shape, strings) => {
            let parse = |text: &String| {
                let wrong = |_| call.error(format!("`{text}` is no number"));
                let text = text.trim();
                if let (false, Ok(n)) = (dtype.is_float(), text.parse::<i64>()) {
                    return Ok(Scalar::from(n).cast(dtype));
                }
                text.parse::<f64>().map(|x| Scalar::from(x).cast(dtype)).map_err(wrong)
            };
            let numbers = strings.iter().map(parse).collect::<Result<_>>()?;
            one(Host::new(shape.clone(), dtype, numbers))
        }
        Value::Coded(coded) => one(coded.decode(dtype)?),
        value => one(call.to_tensor(value)?.cast(dtype)),
    }
}
