//! Every op on every dtype, scalar and vector, against the op table.
//!
//! One kernel holds all ops of a kind on one dtype, so that the compiler is called rarely. A
//! dtype the device does not compute with is converted around the op, as legalisation does it.

mod common;

use common::{device, result, run, scalars};
use rstest::rstest;
use zyx_core::hal::{Caps, Device};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Value};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Values at which something can go wrong.
fn edges(dtype: DType) -> Vec<Scalar> {
    let bits = dtype.bits() as u32;
    match dtype.class() {
        Class::Bool => vec![Scalar::from(false), Scalar::from(true)],
        Class::Signed | Class::Unsigned => {
            let mut values: Vec<i64> =
                (-9..=9).chain([31, 32, 63, 64, 100, 127, 128, 255]).collect();
            values.extend((0..bits).step_by(3).map(|n| (0x1234_5678_9abc_def1u64 >> n) as i64));
            let mut values: Vec<Scalar> =
                values.into_iter().map(|x| Scalar::from_i64(dtype, x)).collect();
            values.extend([Scalar::lowest(dtype), Scalar::highest(dtype)]);
            values
        }
        Class::Float => {
            let infinity = Scalar::highest(dtype).bits();
            let sign = 1u64 << (bits - 1);
            let codes = [0, 1, 2, infinity >> 1, infinity - 1, infinity];
            let mut values: Vec<Scalar> = codes
                .iter()
                .flat_map(|&c| [Scalar::from_bits(dtype, c), Scalar::from_bits(dtype, c | sign)])
                .collect();
            values.push(Scalar::from_f64(dtype, f64::NAN));
            let numbers = [
                0.1,
                0.5,
                0.999,
                1.0,
                1.5,
                2.0,
                2.5,
                3.5,
                3.75,
                7.0,
                10.0,
                88.5,
                100.0,
                127.5,
                128.0,
                255.0,
                300.0,
                1e4,
                65504.0,
                1e-3,
                1e-6,
                0.7853981,
                1.5707963,
                2147483647.0,
                9.3e18,
                1e25,
            ];
            for x in numbers {
                values.extend([Scalar::from_f64(dtype, x), Scalar::from_f64(dtype, -x)]);
            }
            values
        }
    }
}

/// Distance in units in the last place; infinite between NaN and a number.
fn ulps(a: Scalar, b: Scalar) -> u64 {
    let dtype = a.dtype();
    if !dtype.is_float() {
        return if a == b { 0 } else { u64::MAX };
    }
    match (a.to_f64().is_nan(), b.to_f64().is_nan()) {
        (true, true) => return 0,
        (false, false) => {}
        _ => return u64::MAX,
    }
    // Codes in the order of values; both zeros are one.
    let place = |x: Scalar| {
        let magnitude = x.bits() & ((1u64 << (dtype.bits() - 1)) - 1);
        if x.bits() == magnitude { magnitude as i128 } else { -(magnitude as i128) }
    };
    (place(a) - place(b)).unsigned_abs() as u64
}

/// The device's results in `actual` against `expected`, each within a bound.
#[track_caller]
fn compare(actual: &[Scalar], expected: &[(Scalar, u32, String)]) {
    let wrong: Vec<String> = actual
        .iter()
        .zip(expected)
        .filter(|(a, (e, ulp, _))| ulps(**a, *e) > u64::from(*ulp))
        .map(|(a, (e, ulp, what))| format!("{what} = {a:?}, not {e:?} within {ulp} ulp"))
        .collect();
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} wrong:\n{shown}", wrong.len(), actual.len());
}

/// Checks that a kernel is one a backend may be given.
#[track_caller]
fn legal(kernel: &Kernel, caps: &Caps) {
    if let Err(error) = zyx_core::ir::verify_for(kernel, caps) {
        panic!("{error}\n{kernel}");
    }
}

/// Widest vectors of floats of this dtype's compute dtype; integers take 16 lanes.
fn lanes_for(caps: &Caps, dtype: DType, wanted: u8) -> Option<u8> {
    let compute = caps.compute_dtype(dtype);
    let float = dtype.is_float() || compute.is_float();
    let most = if wanted == 1 {
        1
    } else if float {
        caps.vector_bytes / compute.size()
    } else {
        caps.vector_bytes.min(16)
    };
    (wanted as usize <= most).then_some(wanted)
}

/// Pads a list so that vectors divide it.
fn pad(values: &mut Vec<Scalar>) {
    while values.len() % 16 != 0 {
        values.push(values[0]);
    }
}

/// `out[f * n + i] = f(inputs[i])` for each `f`, by a loop over `i` in steps of `lanes`.
fn table(
    caps: &Caps,
    (out, inputs): (DType, &[DType]),
    (n, lanes): (usize, u8),
    functions: &mut [Box<dyn FnMut(&mut Builder, &[Value]) -> Value + '_>],
) -> Kernel {
    let mut b = Builder::new("table");
    let result = b.param(out, (functions.len() * n) as u64, Access::Write);
    let buffers: Vec<Value> =
        inputs.iter().map(|&dtype| b.param(dtype, n as u64, Access::Read)).collect();
    let (steps, step) = (b.index((n / lanes as usize) as i64), b.index(lanes.into()));
    let i = b.open_loop(LoopKind::Parallel, 0, steps);
    let index = b.binary(BinaryOp::Mul, i, step);
    let operands: Vec<Value> =
        buffers.iter().map(|&buffer| b.load_vector(buffer, index, lanes)).collect();
    for (f, function) in functions.iter_mut().enumerate() {
        let start = b.index((f * n) as i64);
        let at = b.binary(BinaryOp::Add, start, index);
        let y = function(&mut b, &operands);
        b.store(result, at, y);
    }
    b.close();
    let kernel = b.finish();
    legal(&kernel, caps);
    kernel
}

/// Applies `f` in the dtype the device computes `dtype` in; `to` is the result's dtype.
fn computed(
    b: &mut Builder,
    caps: &Caps,
    args: &[Value],
    dtype: DType,
    to: DType,
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Value {
    let compute = caps.compute_dtype(dtype);
    let args: Vec<Value> = args.iter().map(|&x| b.cast(compute, x)).collect();
    let y = f(b, &args);
    b.cast(to, y)
}

fn dtypes(caps: &Caps) -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|&d| caps.storage.contains(d))
}

#[rstest]
fn unary_ops(#[values(false, true)] minimal: bool, #[values(1, 2, 4, 16)] lanes: u8) {
    let Some(device) = device(minimal) else { return };
    let caps = device.caps();
    for dtype in dtypes(caps) {
        let Some(lanes) = lanes_for(caps, dtype, lanes) else { continue };
        let mut values = edges(dtype);
        pad(&mut values);
        let ops: Vec<UnaryOp> =
            UnaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype)).collect();
        let mut functions: Vec<Box<dyn FnMut(&mut Builder, &[Value]) -> Value>> = Vec::new();
        for &op in &ops {
            functions.push(Box::new(move |b, args| {
                computed(b, caps, args, dtype, dtype, |b, args| b.unary(op, args[0]))
            }));
        }
        let kernel = table(caps, (dtype, &[dtype]), (values.len(), lanes), &mut functions);
        let mut expected = Vec::new();
        for &op in &ops {
            expected.extend(values.iter().map(|&x| (op.eval(x), op.ulp(), format!("{op}({x:?})"))));
        }
        compare(&result(device, &kernel, &[values.clone()]), &expected);
    }
}

#[rstest]
fn binary_ops(#[values(false, true)] minimal: bool, #[values(1, 2, 4, 16)] lanes: u8) {
    let Some(device) = device(minimal) else { return };
    let caps = device.caps();
    for dtype in dtypes(caps) {
        let Some(lanes) = lanes_for(caps, dtype, lanes) else { continue };
        let edges = edges(dtype);
        let pairs = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y)));
        let (mut xs, mut ys): (Vec<_>, Vec<_>) = pairs.unzip();
        pad(&mut xs);
        pad(&mut ys);
        for to_bool in [false, true] {
            let ops: Vec<BinaryOp> = BinaryOp::ALL
                .iter()
                .copied()
                .filter(|op| op.domain().contains(dtype) && op.is_comparison() == to_bool)
                .collect();
            let to = if to_bool { DType::Bool } else { dtype };
            let mut functions: Vec<Box<dyn FnMut(&mut Builder, &[Value]) -> Value>> = Vec::new();
            for &op in &ops {
                functions.push(Box::new(move |b, args| {
                    computed(b, caps, args, dtype, to, |b, args| b.binary(op, args[0], args[1]))
                }));
            }
            let kernel = table(caps, (to, &[dtype, dtype]), (xs.len(), lanes), &mut functions);
            let mut expected = Vec::new();
            for &op in &ops {
                expected.extend(
                    xs.iter()
                        .zip(&ys)
                        .map(|(&x, &y)| (op.eval(x, y), op.ulp(), format!("{op}({x:?}, {y:?})"))),
                );
            }
            compare(&result(device, &kernel, &[xs.clone(), ys.clone()]), &expected);
        }
    }
}

#[rstest]
fn ternary_ops(#[values(false, true)] minimal: bool, #[values(1, 2, 4, 16)] lanes: u8) {
    let Some(device) = device(minimal) else { return };
    let caps = device.caps();
    for dtype in dtypes(caps) {
        let Some(lanes) = lanes_for(caps, dtype, lanes) else { continue };
        let edges = edges(dtype);
        let mut xs: Vec<Scalar> = edges.clone();
        pad(&mut xs);
        let rotate = |n: usize| xs.iter().cycle().skip(n).take(xs.len()).copied().collect();
        let (ys, zs): (Vec<Scalar>, Vec<Scalar>) = (rotate(5), rotate(11));
        let conds: Vec<Scalar> = (0..xs.len()).map(|i| Scalar::from(i % 3 == 0)).collect();
        // Choosing needs no arithmetic, so it is done on the dtype itself.
        let mut choose: [Box<dyn FnMut(&mut Builder, &[Value]) -> Value>; 1] =
            [Box::new(|b, args| b.select(args[0], args[1], args[2]))];
        let inputs = (dtype, &[DType::Bool, dtype, dtype][..]);
        let kernel = table(caps, inputs, (xs.len(), lanes), &mut choose);
        let expected: Vec<_> = (0..xs.len())
            .map(|i| {
                let y = TernaryOp::Where.eval(conds[i], xs[i], ys[i]);
                (y, 0, format!("where({:?}, {:?}, {:?})", conds[i], xs[i], ys[i]))
            })
            .collect();
        compare(&result(device, &kernel, &[conds, xs.clone(), ys.clone()]), &expected);
        if !caps.compute.contains(dtype) || !dtype.is_float() {
            continue;
        }
        let mut fuse: [Box<dyn FnMut(&mut Builder, &[Value]) -> Value>; 1] =
            [Box::new(|b, args| b.ternary(TernaryOp::MulAdd, args[0], args[1], args[2]))];
        let inputs = (dtype, &[dtype, dtype, dtype][..]);
        let kernel = table(caps, inputs, (xs.len(), lanes), &mut fuse);
        let expected: Vec<_> = (0..xs.len())
            .map(|i| {
                let y = TernaryOp::MulAdd.eval(xs[i], ys[i], zs[i]);
                (y, 0, format!("muladd({:?}, {:?}, {:?})", xs[i], ys[i], zs[i]))
            })
            .collect();
        compare(&result(device, &kernel, &[xs, ys, zs]), &expected);
    }
}

#[rstest]
fn casts_and_bitcasts(#[values(false, true)] minimal: bool, #[values(1, 2, 4, 16)] lanes: u8) {
    let Some(device) = device(minimal) else { return };
    let caps = device.caps();
    for from in dtypes(caps) {
        let mut values = edges(from);
        // What rounds once to a half but not through another float: just beside ties.
        if !matches!(from.bits(), 8 | 16) {
            let odd = [(1i64 << 40) + (1 << 32) + 1, (1 << 24) + (1 << 16) + 1, 0x0101_8001];
            values.extend(odd.map(|x| Scalar::from_i64(from, x)));
            let near =
                [1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-8) + 2f64.powi(-40)];
            values.extend(near.map(|x| Scalar::from_f64(from, x)));
        }
        pad(&mut values);
        let n = values.len();
        for bitcast in [false, true] {
            let mut b = Builder::new("casts");
            let input = b.param(from, n as u64, Access::Read);
            let fits = |to: &DType| {
                lanes_for(caps, *to, lanes).is_some() && (!bitcast || to.bits() == from.bits())
            };
            let targets: Vec<DType> = dtypes(caps).filter(fits).collect();
            if targets.is_empty() || lanes_for(caps, from, lanes).is_none() {
                continue;
            }
            let outs: Vec<Value> =
                targets.iter().map(|&to| b.param(to, n as u64, Access::Write)).collect();
            let (steps, step) = (b.index((n / lanes as usize) as i64), b.index(lanes.into()));
            let i = b.open_loop(LoopKind::Parallel, 0, steps);
            let index = b.binary(BinaryOp::Mul, i, step);
            let x = b.load_vector(input, index, lanes);
            for (&out, &to) in outs.iter().zip(&targets) {
                let y = if bitcast { b.bitcast(to, x) } else { b.cast(to, x) };
                b.store(out, index, y);
            }
            b.close();
            let kernel = b.finish();
            legal(&kernel, caps);
            let mut buffers = vec![common::bytes(&values)];
            buffers.extend(targets.iter().map(|to| vec![0; n * to.size()]));
            let outs = run(device, &kernel, &buffers, &[]);
            for (bytes, &to) in outs[1..].iter().zip(&targets) {
                let expected: Vec<_> = values
                    .iter()
                    .map(|&x| {
                        let y = if bitcast { x.bitcast(to) } else { x.cast(to) };
                        (y, 0, format!("{x:?} as {to}"))
                    })
                    .collect();
                compare(&scalars(to, bytes), &expected);
            }
        }
    }
}

/// All codes of both halves to `f32` and back, and `f32` values between them.
#[rstest]
#[case(DType::F16)]
#[case(DType::BF16)]
fn every_half(#[case] half: DType, #[values(1, 4)] lanes: u8) {
    let Some(device) = device(false) else { return };
    let caps = device.caps();
    let codes: Vec<Scalar> =
        (0..=u64::from(u16::MAX)).map(|code| Scalar::from_bits(half, code)).collect();
    let mut widen: [Box<dyn FnMut(&mut Builder, &[Value]) -> Value>; 1] =
        [Box::new(|b, args| b.cast(DType::F32, args[0]))];
    let kernel = table(caps, (DType::F32, &[half]), (codes.len(), lanes), &mut widen);
    let expected: Vec<_> =
        codes.iter().map(|&x| (x.cast(DType::F32), 0, format!("{x:?}"))).collect();
    compare(&result(device, &kernel, &[codes]), &expected);

    // Each code's neighbourhood: the value, and half-way up, one below and one above that.
    let step = 1u64 << if half == DType::F16 { 12 } else { 15 };
    let singles: Vec<Scalar> = expected
        .iter()
        .flat_map(|(x, ..)| {
            let bits = x.bits();
            [bits, bits + step, bits + step - 1, bits + step + 1]
        })
        .map(|bits| Scalar::from_bits(DType::F32, bits))
        .collect();
    let mut narrow: [Box<dyn FnMut(&mut Builder, &[Value]) -> Value>; 1] =
        [Box::new(|b, args| b.cast(half, args[0]))];
    let kernel = table(caps, (half, &[DType::F32]), (singles.len(), lanes), &mut narrow);
    let expected: Vec<_> =
        singles.iter().map(|&x| (x.cast(half), 0, format!("{x:?} as {half}"))).collect();
    compare(&result(device, &kernel, &[singles]), &expected);
}
