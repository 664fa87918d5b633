//! Every unary, binary and ternary op on every dtype, broadcasting, and non-contiguous inputs.

use crate::oracle::flush;
use crate::oracle::movement::broadcast;
use crate::values::{SHAPES, mixed, moderate, pairs};
use crate::{Array, Check, Rng, Val, apply, oracle};
use zyx_core::{BinaryOp, DType, Device, Result, Tensor, UnaryOp};

/// Whether IEEE 754 fixes the sign of a zero result.
fn fixes_zero(op: BinaryOp) -> bool {
    use BinaryOp::{Atan2, LogAddExp, Max, Min, Pow};
    !matches!(op, Max | Min | Pow | Atan2 | LogAddExp)
}

/// Every unary op over special and random values.
pub fn unary(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let x = mixed(dtype, 2000, 1);
    let input = check.input(&x);
    for &op in UnaryOp::ALL {
        if op == UnaryOp::Not && dtype.is_float() {
            check.refused(op, input.bitwise_not(), &["bitwise_not", dtype.name()]);
            continue;
        }
        let got = apply::unary(op, &input);
        check.identical(format!("{} of {dtype}", apply::unary_name(op)), got, &x.unary(op));
    }
    check.finish();
    if dtype.is_float() {
        known_to_compilers(device, dtype);
    }
}

/// Every unary op of numbers that a driver's compiler finds by itself: extremes of nothing and their difference.
fn known_to_compilers(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let array = |dims: &[usize], x: f64| {
        Array::new(dtype, dims, vec![Val::point(x); dims.iter().product()])
    };
    let none = check.input(&array(&[3, 0], 0.0));
    let made: [(f64, &dyn Fn() -> Result<Tensor>); 3] = [
        (f64::INFINITY, &|| none.min(1)),
        (f64::NEG_INFINITY, &|| none.max(1)),
        (f64::NAN, &|| none.min(1)?.sub(&none.min(1)?)),
    ];
    for (value, make) in made {
        for &op in UnaryOp::ALL.iter().filter(|&&op| op != UnaryOp::Not) {
            // Made anew, since what is held is stored for all.
            let got = make().and_then(|x| apply::unary(op, &x));
            // A kernel each, stored where something else stood, shows what becomes of such a number.
            if dtype == DType::F32 || dtype == DType::F16 && value.is_nan() {
                let other = Tensor::full([3], 7f32, device).cast(dtype).contiguous();
                other.realize().expect("memory");
                drop(other);
                got.as_ref().map_or(Ok(()), Tensor::realize).expect("a value");
            }
            let what = format!("{} of {dtype}", apply::unary_name(op));
            check.identical(what, got, &array(&[3], value).unary(op));
        }
    }
    check.finish();
}

/// Every binary op over all pairs of special values and random ones.
pub fn binary(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let (x, y) = pairs(dtype, dtype, 2000, 2);
    let (a, b) = (check.input(&x), check.input(&y));
    for &op in BinaryOp::ALL {
        let what = format!("{} of {dtype}", apply::binary_name(op, dtype));
        let got = apply::binary(op, &a, &b);
        if oracle::binary_dtype(op, dtype, dtype).is_none() {
            check.refused(what, got, &[op.name(), dtype.name()]);
        } else if fixes_zero(op) {
            check.identical(what, got, &x.binary(op, &y));
        } else {
            check.equal(what, got, &x.binary(op, &y));
        }
    }
    // True division of integers goes through `f32`.
    let dtype = if dtype.is_float() { dtype } else { DType::F32 };
    check.identical("div", a.div(&b), &x.binary_in(BinaryOp::Div, dtype, &y));
    check.finish();
}

/// Greater-than forms, floor division, remainders and logic, by their definitions.
pub fn derived(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let (x, y) = pairs(dtype, dtype, 500, 3);
    let (a, b) = (check.input(&x), check.input(&y));
    check.equal("gt", a.gt(&b), &y.binary(BinaryOp::Lt, &x));
    check.equal("ge", a.ge(&b), &y.binary(BinaryOp::Le, &x));
    let truth = |a: &Array| a.cast(DType::Bool);
    check.equal("logical_not", Ok(a.logical_not()), &truth(&x).unary(UnaryOp::Not));
    let and = truth(&x).binary(BinaryOp::And, &truth(&y));
    check.equal("logical_and", a.logical_and(&b), &and);
    let or = truth(&x).binary(BinaryOp::Or, &truth(&y));
    check.equal("logical_or", a.logical_or(&b), &or);
    let is_nan = x.map(DType::Bool, |v| Val::Int(v.certain().is_some_and(f64::is_nan) as i128));
    check.equal("is_nan", Ok(a.is_nan()), &is_nan);
    let is_finite =
        x.map(DType::Bool, |v| Val::Int(v.certain().is_some_and(f64::is_finite) as i128));
    check.equal("is_finite", Ok(a.is_finite()), &is_finite);
    let is_inf =
        x.map(DType::Bool, |v| Val::Int(v.certain().is_some_and(f64::is_infinite) as i128));
    check.equal("is_inf", Ok(a.is_inf()), &is_inf);
    if dtype != DType::Bool && !dtype.is_float() {
        check.equal("floor_divide", a.floor_divide(&b), &int_pairs(&x, &y, dtype, floored).0);
        check.equal("remainder", a.remainder(&b), &int_pairs(&x, &y, dtype, floored).1);
    }
    let signum = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
    let sign = |v: Val| match flush::flushed(dtype, v) {
        Val::Int(i) => Val::Int(i.signum()),
        Val::Real(x, _) if x.is_nan() => v,
        Val::Real(x, y) => Val::Real(signum(x), signum(y)),
        Val::Unknown => v,
    };
    check.equal("sign", Ok(a.sign()), &x.map(dtype, sign));
    let zero = Array::full(dtype, &[], oracle::cast(Val::Int(0), DType::I64, dtype));
    check.equal("relu", Ok(a.relu()), &x.binary(BinaryOp::Max, &zero));
    check.finish();
}

/// Python's `//` and `%`: rounded down, the remainder with the sign of the divisor; by zero, 0
/// and the dividend.
fn floored(a: i128, b: i128) -> (i128, i128) {
    if b == 0 {
        return (0, a);
    }
    let (q, r) = (a.div_euclid(b), a.rem_euclid(b));
    if b < 0 && r != 0 { (q - 1, r + b) } else { (q, r) }
}

fn int_pairs(
    x: &Array,
    y: &Array,
    dtype: DType,
    f: impl Fn(i128, i128) -> (i128, i128),
) -> (Array, Array) {
    let results = x.data.iter().zip(&y.data).map(|pair| {
        let (Val::Int(a), Val::Int(b)) = pair else { unreachable!("invariant: integers") };
        let (q, r) = f(*a, *b);
        (Val::Int(oracle::wrap(dtype, q)), Val::Int(oracle::wrap(dtype, r)))
    });
    let (q, r): (Vec<Val>, Vec<Val>) = results.unzip();
    (Array::new(dtype, &x.dims, q), Array::new(dtype, &x.dims, r))
}

/// Selection, with broadcasting of all three operands.
pub fn select(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(4);
    for dims in [[&[3usize, 5][..], &[3, 5], &[3, 5]], [&[3, 1], &[5], &[]], [&[], &[2, 1], &[4]]] {
        let c = moderate(DType::Bool, dims[0], &mut rng);
        let (x, y) = (moderate(dtype, dims[1], &mut rng), moderate(dtype, dims[2], &mut rng));
        let got = check.input(&c).where_(check.input(&x), check.input(&y));
        check.equal(format!("where_ on {dims:?}"), got, &c.select(&x, &y));
    }
    let (x, y) = pairs(dtype, dtype, 0, 5);
    let c = flush::kept(|| x.cast(DType::Bool));
    let got = check.input(&c).where_(check.input(&x), check.input(&y));
    check.identical("where_ on special values", got, &c.select(&x, &y));
    check.finish();
}

/// One op of each kind over all shapes and pairs of shapes that broadcast.
pub fn shapes(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(6);
    for (i, dims) in SHAPES.iter().enumerate() {
        if !check.thorough(dtype) && i % 2 == 1 {
            continue;
        }
        let (x, y) = (moderate(dtype, dims, &mut rng), moderate(dtype, dims, &mut rng));
        let (a, b) = (check.input(&x), check.input(&y));
        check.equal(format!("add on {dims:?}"), a.add(&b), &x.binary(BinaryOp::Add, &y));
        check.equal(format!("abs on {dims:?}"), Ok(a.abs()), &x.unary(UnaryOp::Abs));
    }
    for (p, q) in [
        (&[3usize, 1][..], &[1usize, 4][..]),
        (&[5, 1, 2], &[3, 1]),
        (&[], &[2, 3]),
        (&[1], &[0]),
        (&[0, 1], &[1, 3]),
        (&[2, 1, 3, 1], &[5, 1, 7]),
        (&[1023, 1], &[1]),
    ] {
        let (x, y) = (moderate(dtype, p, &mut rng), moderate(dtype, q, &mut rng));
        let (a, b) = (check.input(&x), check.input(&y));
        assert_eq!(broadcast(p, q).len(), p.len().max(q.len()));
        check.equal(format!("mul {p:?} {q:?}"), a.mul(&b), &x.binary(BinaryOp::Mul, &y));
        check.equal(format!("maximum {q:?} {p:?}"), b.maximum(&a), &y.binary(BinaryOp::Max, &x));
    }
    let (a, b) = (check.input(&moderate(dtype, &[2, 3], &mut rng)), [2usize, 4]);
    let b = check.input(&moderate(dtype, &b, &mut rng));
    check.refused("add [2, 3] [2, 4]", a.add(&b), &["add", "[2, 3]", "[2, 4]"]);
    check.finish();
}

/// A way to look at an array of shape [5, 7, 3] and what it shows.
type View = (&'static str, fn(&Tensor) -> Result<Tensor>, fn(&Array) -> Array);

/// Movements whose result is no row-major block.
const VIEWS: &[View] = &[
    ("permuted", |t| t.permute([2, 0, 1]), |a| a.permute(&[2, 0, 1])),
    ("sliced", |t| t.shrink([(1, 4), (2, 7), (0, 2)]), |a| a.shrink(&[(1, 4), (2, 7), (0, 2)])),
    ("flipped", |t| t.flip([0, 2]), |a| a.flip(0b101)),
    ("padded", |t| t.pad([(1, 0), (0, 2), (1, 1)]), |a| a.pad(&[(1, 0), (0, 2), (1, 1)])),
    (
        "expanded",
        |t| t.slice(1, 3..4)?.expand([5, 6, 3]),
        |a| a.shrink(&[(0, 5), (3, 4), (0, 3)]).expand(&[5, 6, 3]),
    ),
    ("strided", |t| t.stride(1, 1, 3), |a| a.stride(1, 1, 3)),
    (
        "merged",
        |t| t.permute([1, 0, 2])?.reshape([35, 3]),
        |a| a.permute(&[1, 0, 2]).reshape(&[35, 3]),
    ),
];

/// Elementwise ops over every pair of views of one array with itself, stored and not.
pub fn views(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(8);
    let x = moderate(dtype, &[5, 7, 3], &mut rng);
    let a = check.input(&x);
    for (name, of_tensor, of_array) in VIEWS {
        let view = of_tensor(&a).expect("the view fits");
        let want = of_array(&x);
        check.equal(name, Ok(view.clone()), &want);
        check.equal(format!("{name}, contiguous"), Ok(view.contiguous()), &want);
        let sum = view.add(&view);
        check.equal(format!("{name} + itself"), sum, &want.binary(BinaryOp::Add, &want));
        let reversed = view.flip(..).and_then(|flipped| flipped.maximum(&view));
        let mask = ((1u32 << want.rank()) - 1) as u16;
        let expected = want.flip(mask).binary(BinaryOp::Max, &want);
        check.equal(format!("{name} with its reverse"), reversed, &expected);
    }
    check.finish();
}

/// Every op on every kind of shape: without axes, without elements, odd, broadcast in both
/// operands, and read out of order. Where kernels are dear, dtypes that stand for no others take
/// every second op with each kind: those that one leaves out, the next takes.
pub fn kinds(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(10);
    let views = [VIEWS[0], VIEWS[1], VIEWS[3]];
    let kinds = [
        ("0-dim", &[][..], &[][..], None),
        ("zero-size", &[3, 0], &[0], None),
        ("odd", &[3, 1, 5], &[3, 1, 5], None),
        ("broadcast", &[3, 1], &[5], None),
        ("sliced", &[5, 7, 3], &[5, 7, 3], Some(views[1])),
        ("permuted", &[5, 7, 3], &[5, 7, 3], Some(views[0])),
        ("padded", &[5, 7, 3], &[5, 7, 3], Some(views[2])),
    ];
    for (k, (name, p, q, view)) in kinds.into_iter().enumerate() {
        let chosen = check.thorough(dtype);
        if !chosen && matches!(name, "permuted" | "padded") {
            continue;
        }
        let (mut x, mut y) = (moderate(dtype, p, &mut rng), moderate(dtype, q, &mut rng));
        let (mut a, mut b) = (check.input(&x), check.input(&y));
        if let Some((_, of_tensor, of_array)) = view {
            (a, b) = (of_tensor(&a).expect("the view fits"), of_tensor(&b).expect("as before"));
            (x, y) = (of_array(&x), of_array(&y));
        }
        let takes = |op: usize| chosen || (op + k).is_multiple_of(2);
        for (i, &op) in UnaryOp::ALL.iter().enumerate() {
            if takes(i) && (op != UnaryOp::Not || !dtype.is_float()) {
                let what = format!("{}, {name}", apply::unary_name(op));
                check.equal(what, apply::unary(op, &a), &x.unary(op));
            }
        }
        for (i, &op) in BinaryOp::ALL.iter().enumerate() {
            if takes(i) && oracle::binary_dtype(op, dtype, dtype).is_some() {
                let got = apply::binary(op, &a, &b);
                let what = format!("{}, {name}", apply::binary_name(op, dtype));
                check.equal(what, got, &x.binary(op, &y));
            }
        }
        let c = check.input(&moderate(DType::Bool, &x.dims, &mut rng));
        let chosen = Array::read(&c).expect("the device reads").select(&x, &y);
        check.equal(format!("where_, {name}"), c.where_(&a, &b), &chosen);
    }
    check.finish();
}

/// Two dtypes meet in the promoted one; numbers adapt to the tensor beside them.
pub fn promotion(device: &Device) {
    let mut check = Check::new(device);
    let data = [0, 1, 3, 100];
    for p in check.dtypes() {
        let x = Array::whole(p, &[4], &data);
        let a = check.input(&x);
        for q in check.dtypes() {
            let y = Array::whole(q, &[4], &[1, 0, 2, 27]);
            let b = check.input(&y);
            check.equal(format!("{p} + {q}"), a.add(&b), &x.binary(BinaryOp::Add, &y));
            check.equal(format!("{p} < {q}"), a.lt(&b), &x.binary(BinaryOp::Lt, &y));
            // Integers beyond the range of a half are infinite.
            let large = if p.is_float() || p.bits() < 32 { 100 } else { 70_000 };
            let column = Array::whole(p, &[4, 1], &[0, 1, 3, large]);
            let row = Array::whole(q, &[1, 4], &[1, 0, 2, 27]);
            let product = check.input(&column).mul(check.input(&row));
            let want = column.binary(BinaryOp::Mul, &row);
            check.equal(format!("{p} * {q}, a column and a row"), product, &want);
        }
        let keeps = if p == DType::Bool { DType::I64 } else { p };
        let three = Array::whole(keeps, &[], &[3]);
        check.equal(format!("{p} * 3"), a.mul(3), &x.cast(keeps).binary(BinaryOp::Mul, &three));
        let float = if p.is_float() { p } else { DType::F32 };
        let half = Array::reals(float, &[], &[0.5]);
        check.equal(format!("{p} * 0.5"), a.mul(0.5), &x.cast(float).binary(BinaryOp::Mul, &half));
        check.equal(
            format!("{p} | true"),
            a.logical_or(true),
            &Array::ints(DType::Bool, &[4], &[1; 4]),
        );
    }
    check.finish();
}

/// A chain of unlike ops, each rounding to the dtype: nothing may be kept in a wider one.
pub fn rounding_per_op(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let mut rng = Rng::new(9);
    let (x, y) = (moderate(dtype, &[257], &mut rng), moderate(dtype, &[257], &mut rng));
    let (a, b) = (check.input(&x), check.input(&y));
    let got = a.sub(&b).and_then(|d| d.add(&b)).and_then(|s| s.sub(&a));
    let want = x.binary(BinaryOp::Sub, &y).binary(BinaryOp::Add, &y).binary(BinaryOp::Sub, &x);
    check.equal("(a - b) + b - a", got, &want);
    check.finish();
}
