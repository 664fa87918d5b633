//! Quotients, reciprocals and square roots of `f32` on many random numbers: devices whose own are
//! off by a few units correct them, and a correction that fails does so for one number in
//! millions.

use super::{bytes, run, scalars};
use crate::oracle::flush::{self, zeroed, zeroed_result};
use crate::rng::Rng;
use zyx_core::hal::Device;
use zyx_core::ir::{Access, Builder, LoopKind};
use zyx_core::legalize::legalize;
use zyx_core::{BinaryOp, DType, Scalar, UnaryOp};

const N: usize = 1 << 18;

/// Quotients by zeros that no kernel spells out, but a driver's compiler finds: the differences of
/// equal loads.
///
/// # Panics
/// When a result is wrong.
pub fn divisions_by_hidden_zeros_are_defined<D: Device>(device: &D) {
    let x = [0.0, -0.0, 1.0, -2.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e30];
    let n = x.len() as u64;
    let mut b = Builder::new("hidden_zero");
    let over = b.param(DType::F32, n, Access::Write);
    let under = b.param(DType::F32, n, Access::Write);
    let [p, q] = [(DType::F32, n), (DType::U32, 1)].map(|(d, n)| b.param(d, n, Access::Read));
    let (len, first) = (b.index(n as i64), b.index(0));
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    let [one, same] = [(); 2].map(|()| b.load(q, first));
    let zero = b.binary(BinaryOp::Sub, one, same);
    let zero = b.cast(DType::F32, zero);
    let dividend = b.load(p, i);
    let quotients =
        [b.binary(BinaryOp::Div, dividend, zero), b.binary(BinaryOp::Div, zero, dividend)];
    for (out, value) in [over, under].into_iter().zip(quotients) {
        b.store(out, i, value);
    }
    b.close();
    let kernel = legalize(&b.finish(), device.caps()).unwrap_or_else(|error| panic!("{error}"));
    let bytes = |all: &[f32]| bytes(&all.iter().map(|&x| Scalar::from(x)).collect::<Vec<_>>());
    let empty = vec![0; 4 * x.len()];
    let buffers = [empty.clone(), empty, bytes(&x), 7u32.to_le_bytes().to_vec()];
    let results = run(device, &kernel, &buffers, &[]);
    for (what, all, f) in [
        ("x / 0", &results[0], (|x| x / 0.0) as fn(f32) -> f32),
        ("0 / x", &results[1], |x| 0.0 / x),
    ] {
        for (&x, got) in x.iter().zip(scalars(DType::F32, all)) {
            let (got, want) = (got.get::<f32>(), f(x));
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{what} of {x:?} is {got:?}, not {want:?}");
        }
    }
}

/// Numbers of all sizes, of about the size of one, with few bits set, and close to the edges.
fn number(rng: &mut Rng) -> f32 {
    let bits = rng.bits() as u32;
    let near_one = (bits & 0x83ff_ffff) | 0x3c00_0000;
    f32::from_bits(match rng.below(8) {
        0 | 1 => bits,
        2 => bits & 0xffff_0000,
        3 => bits & 0x80ff_ffff,
        4 => near_one | 0xf_ff00,
        _ => near_one,
    })
}

/// All three are exact, but for subnormal numbers where the device flushes them.
///
/// # Panics
/// When a result is wrong.
pub fn quotients_and_roots_are_exact<D: Device>(device: &D) {
    let mut rng = Rng::new(0x5eed);
    let [xs, ys]: [Vec<f32>; 2] = [(); 2].map(|()| (0..N).map(|_| number(&mut rng)).collect());
    let mut b = Builder::new("division");
    let [p, q] = [(); 2].map(|()| b.param(DType::F32, N as u64, Access::Read));
    let out = [(); 3].map(|()| b.param(DType::F32, N as u64, Access::Write));
    let len = b.index(N as i64);
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    let (x, y) = (b.load(p, i), b.load(q, i));
    let quotient = b.binary(BinaryOp::Div, x, y);
    let inverse = b.unary(UnaryOp::Recip, y);
    let root = b.unary(UnaryOp::Sqrt, x);
    for (out, value) in out.into_iter().zip([quotient, inverse, root]) {
        b.store(out, i, value);
    }
    b.close();
    let caps = device.caps();
    let kernel = zyx_core::tune::optimize(&b.finish(), caps);
    let kernel = legalize(&kernel, caps).unwrap_or_else(|error| panic!("{error}"));
    let bytes = |all: &[f32]| bytes(&all.iter().map(|&x| Scalar::from(x)).collect::<Vec<_>>());
    let empty = vec![0; 4 * N];
    let buffers = [bytes(&xs), bytes(&ys), empty.clone(), empty.clone(), empty];
    let results = run(device, &kernel, &buffers, &[]);
    let flushes = flush::dtypes(caps).contains(DType::F32);
    let zero = |x: f32| if flushes { zeroed(Scalar::from(x)).get::<f32>() } else { x };
    let result = |x: f32| if flushes { zeroed_result(Scalar::from(x)).get::<f32>() } else { x };
    type Function = fn(f32, f32) -> f32;
    let functions: [(&str, Function); 3] =
        [("x / y", |x, y| x / y), ("1 / y", |_, y| 1.0 / y), ("sqrt x", |x, _| x.sqrt())];
    for ((what, f), all) in functions.into_iter().zip(&results[2..]) {
        let mut wrong = Vec::new();
        for ((&x, &y), got) in xs.iter().zip(&ys).zip(scalars(DType::F32, all)) {
            let got = got.get::<f32>();
            let same =
                |want: f32| got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            let operands = [(x, y), (zero(x), y), (x, zero(y)), (zero(x), zero(y))];
            let allowed = |&(x, y): &(f32, f32)| same(f(x, y)) || same(result(f(x, y)));
            if !operands.iter().any(allowed) {
                wrong.push(format!("{what} of {x:?}, {y:?} is {got:?}, not {:?}", f(x, y)));
            }
        }
        let shown = wrong.iter().take(20).cloned().collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{} of {N} wrong:\n{shown}", wrong.len());
    }
}
