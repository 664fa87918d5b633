//! Cases on which comparable libraries are known to fail, each by name.

use crate::{Array, Check, Val};
use zyx_core::{BinaryOp, DType, Device, Tensor};

/// NaN and infinity survive constant folding.
pub fn constants_keep_nan(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::reals(DType::F32, &[3], &[1.0, -2.0, 0.0]);
    let a = check.input(&x);
    for (name, value) in [("nan", f32::NAN), ("inf", f32::INFINITY), ("-inf", f32::NEG_INFINITY)] {
        let c = Array::reals(DType::F32, &[], &[value as f64]);
        let full = Tensor::full((), value, device);
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Max, BinaryOp::Min] {
            let got = crate::apply::binary(op, &a, &full);
            check.equal(format!("x {op} {name}"), got, &x.binary(op, &c));
            let got = crate::apply::binary(op, &full, &full);
            check.equal(format!("{name} {op} {name}"), got, &c.binary(op, &c));
            let zero = Array::reals(DType::F32, &[], &[0.0]);
            let got = crate::apply::binary(op, &full, &full.zeros_like());
            check.equal(format!("{name} {op} 0"), got, &c.binary(op, &zero));
        }
        check.equal(format!("{name} as i32"), Ok(full.cast(DType::I32)), &c.cast(DType::I32));
    }
    check.equal("x * nan", a.mul(f32::NAN), &Array::reals(DType::F32, &[3], &[f64::NAN; 3]));
    check.equal(
        "0 * x keeps nan",
        check.input(&Array::reals(DType::F32, &[1], &[f64::NAN])).mul(0.0),
        &Array::reals(DType::F32, &[1], &[f64::NAN]),
    );
    check.equal(
        "x - x keeps nan",
        {
            let inf = check.input(&Array::reals(DType::F32, &[1], &[f64::INFINITY]));
            inf.sub(&inf)
        },
        &Array::reals(DType::F32, &[1], &[f64::NAN]),
    );
    check.finish();
}

/// Integer division by zero and `MIN / -1` give the documented values.
pub fn integer_division(device: &Device, dtype: DType) {
    let mut check = Check::new(device);
    let (low, _) = crate::oracle::int_range(dtype);
    let data = vec![Val::Int(7), Val::Int(low), Val::Int(0), Val::Int(low)];
    let x = Array::new(dtype, &[4], data);
    let y = Array::ints(dtype, &[4], &[0, 0, 0, -1]);
    let (a, b) = (check.input(&x), check.input(&y));
    check.equal("x / 0", a.trunc_divide(&b), &x.binary(BinaryOp::Div, &y));
    check.equal("x % 0", a.fmod(&b), &x.binary(BinaryOp::Rem, &y));
    let zero = Array::ints(dtype, &[], &[0]);
    check.equal("x / literal 0", a.trunc_divide(0), &x.binary(BinaryOp::Div, &zero));
    check.equal("x % literal 0", a.fmod(0), &x.binary(BinaryOp::Rem, &zero));
    check.finish();
}

/// A reshape that changes the number of elements is refused.
pub fn reshape_refused(device: &Device) {
    let mut check = Check::new(device);
    let a = check.input(&Array::reals(DType::F32, &[3], &[1.0, 2.0, 3.0]));
    check.refused("[3] to [7, 1]", a.reshape([7, 1]), &["reshape", "[3]", "[7, 1]"]);
    check.finish();
}

/// Layer normalisation of 1, 2, 3, 4 written out in tensor methods.
pub fn layer_norm_by_hand(device: &Device) {
    let mut check = Check::new(device);
    let x = [1f32, 2.0, 3.0, 4.0];
    let a = Tensor::new(x, device).expect("the device has memory");
    let run = || {
        let mean = a.mean_keepdim(0)?;
        let centred = a.sub(&mean)?;
        let scale = a.var_keepdim(0, 0)?.add(1e-5f32)?.rsqrt();
        centred.mul(&scale)
    };
    let std = (1.25f64 + 1e-5).sqrt();
    let want: Vec<Val> = x
        .iter()
        .map(|&x| (x as f64 - 2.5) / std)
        .map(|y| {
            Val::about(DType::F32, y, crate::tolerance::formula_error(DType::F32, 8.0, y.abs()))
        })
        .collect();
    check.equal("layer norm of 1, 2, 3, 4", run(), &Array::new(DType::F32, &[4], want));
    check.finish();
}

/// Self-aliasing operands give what distinct equal operands give.
pub fn aliases(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::reals(DType::F32, &[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let a = check.input(&x);
    let t = x.permute(&[1, 0]);
    check.equal("x + x'", a.add(a.t()), &x.binary(BinaryOp::Add, &t));
    check.equal("x @ x", a.matmul(&a), &x.matmul(&x));
    let twice = a.t().add(&a).and_then(|s| s.matmul(&a)).and_then(|p| p.sub(&a));
    let want = t.binary(BinaryOp::Add, &x).matmul(&x).binary(BinaryOp::Sub, &x);
    check.equal("(x' + x) @ x - x", twice, &want);
    check.equal("x itself is unchanged", Ok(a), &x);
    check.finish();
}

/// One node used by many, and many outputs realized at once.
pub fn shared_work(device: &Device) {
    let mut check = Check::new(device);
    let x = Array::reals(DType::F32, &[4], &[0.5, 1.5, -2.0, 3.0]);
    let a = check.input(&x);
    let shared = a.mul(&a).expect("equal shapes");
    let square = x.binary(BinaryOp::Mul, &x);
    let outputs: Vec<Tensor> = (0..20).map(|i| shared.add(i as f32).expect("a number")).collect();
    Tensor::realize_all(&outputs).expect("the device computes");
    for (i, output) in outputs.into_iter().enumerate() {
        let i = Array::reals(DType::F32, &[], &[i as f64]);
        check.that(output.is_realized(), "every output is realized at once");
        check.equal("x x + i", Ok(output), &square.binary(BinaryOp::Add, &i));
    }
    check.finish();
}
