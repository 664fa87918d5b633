//! Lowered kernels compute what they did, word by word.

use super::*;
use crate::ir::generate::{Options, random_inputs, random_kernel, random_vars, same_elements};
use crate::ir::{Access, LoopKind, verify, verify_for};
use crate::legalize::legalize;
use crate::passes::law::{Rng, run};

/// A device without 64-bit numbers, as the least that an API promises.
fn small() -> Caps {
    let long = DTypeSet::of(&[DType::I64, DType::U64]);
    let double = DTypeSet::of(&[DType::F64]);
    let mut caps = Caps { partial_integers: true, partial_casts: true, ..Caps::default() };
    caps.emulated = long;
    caps.compute = caps.compute.without(double);
    caps.storage = caps.storage.without(double);
    for op in [BinaryOp::Div, BinaryOp::Rem] {
        caps.binary[op as usize] = DTypeSet::ALL.without(long);
    }
    caps
}

/// What a kernel gives as it is, and lowered for the device.
fn both(kernel: &Kernel, inputs: &[Vec<u8>], vars: &[u64]) -> [Vec<Vec<u8>>; 2] {
    let caps = small();
    let legal = legalize(kernel, &caps).unwrap();
    verify_for(&legal, &caps).unwrap();
    let lowered = lowered(&legal, &caps).unwrap();
    verify(&lowered).unwrap_or_else(|e| panic!("{e}\n{lowered}"));
    let is_free = |(_, _, ty): (Value, Op, Type)| !is_long(ty.dtype);
    assert!(lowered.iter().all(is_free), "{lowered}");
    let split = arguments(kernel.vars(), &caps, vars);
    [run(kernel, inputs, vars), run(&lowered, inputs, &split)]
}

#[test]
fn random_kernels_mean_the_same() {
    let options = Options { size: 30, ..Options::for_caps(&small()) };
    let mut pairs = 0;
    for seed in 0..150 {
        let kernel = random_kernel(seed, &options);
        let (inputs, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
        let [before, after] = both(&kernel, &inputs, &vars);
        pairs += kernel.iter().filter(|(_, _, ty)| is_long(ty.dtype)).count();
        for (p, (x, y)) in kernel.params().iter().zip(before.iter().zip(&after)) {
            assert!(same_elements(p.dtype, x, y), "seed {seed}\n{kernel}");
        }
    }
    assert!(pairs > 1000, "{pairs} values of 64 bits");
}

/// Numbers of all lengths, those next to powers of two, and halves between two floats.
fn numbers(n: u64) -> Vec<u64> {
    let mut rng = Rng(7);
    let number = |i: u64| {
        let x = rng.next();
        match i % 4 {
            0 => x >> (i / 4 % 64),
            1 => (1u64 << (i / 4 % 64)).wrapping_add(x % 5).wrapping_sub(2),
            2 => (x | 1 << 63) & (u64::MAX << 38) >> (i / 4 % 40),
            _ => (x >> 63 << 63) | x >> (i / 4 % 64),
        }
    };
    (0..n).map(number).collect()
}

/// `out[i] = f(x[i], y[i])`
fn mapped(
    from: DType,
    to: DType,
    n: u64,
    f: impl FnOnce(&mut Builder, Value, Value) -> Value,
) -> Kernel {
    let mut b = Builder::new("mapped");
    let [p, q] = [0; 2].map(|_| b.param(from, n, Access::Read));
    let out = b.param(to, n, Access::Write);
    let len = b.index(n as i64);
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    let (x, y) = (b.load(p, i), b.load(q, i));
    let z = f(&mut b, x, y);
    b.store(out, i, z);
    b.close();
    b.finish()
}

fn check(kernel: &Kernel, x: &[u64], y: &[u64], what: &str) {
    let [from, _, to] = [0, 1, 2].map(|i| kernel.params()[i].dtype);
    let bytes = |all: &[u64]| {
        all.iter().flat_map(|x| x.to_le_bytes()[..from.size()].to_vec()).collect::<Vec<u8>>()
    };
    let inputs = [bytes(x), bytes(y), vec![0; x.len() * to.size()]];
    let [before, after] = both(kernel, &inputs, &[]);
    let each = Scalar::read_all(to, &before[2]).into_iter().zip(Scalar::read_all(to, &after[2]));
    for (i, (want, got)) in each.enumerate() {
        assert_eq!(got, want, "{what} of {:#x} and {:#x}", x[i], y[i]);
    }
}

#[test]
fn each_operation_is_that_of_64_bits() {
    use BinaryOp::{Add, And, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Shl, Shr, Sub, Xor};
    let n = 1 << 12;
    let x = numbers(n);
    let y: Vec<u64> = (0..n as usize).map(|i| x[(i * 7 + i % 5) % x.len()]).collect();
    let near: Vec<u64> = (0..n as usize).map(|i| x[i].wrapping_add(y[i] % 3)).collect();
    let distances: Vec<u64> = (0..n).map(|i| i / 4 % 70).collect();
    for dtype in [DType::I64, DType::U64] {
        for op in [Add, And, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Sub, Xor, Shl, Shr] {
            let kernel = mapped(dtype, op.result(dtype), n, |b, x, y| b.binary(op, x, y));
            let shifts = matches!(op, Shl | Shr);
            check(&kernel, &x, if shifts { &distances } else { &y }, op.name());
            check(&kernel, &x, if shifts { &distances } else { &near }, op.name());
        }
        for op in [crate::ops::UnaryOp::Neg, crate::ops::UnaryOp::Abs, crate::ops::UnaryOp::Not] {
            let kernel = mapped(dtype, dtype, n, |b, x, _| b.unary(op, x));
            check(&kernel, &x, &y, op.name());
        }
    }
}

#[test]
fn conversions_round_once() {
    let n = 1 << 14;
    let x = numbers(n);
    for dtype in [DType::I64, DType::U64] {
        for &to in DType::ALL.iter().filter(|&&to| to != DType::F64) {
            let kernel = mapped(dtype, to, n, |b, x, _| b.cast(to, x));
            check(&kernel, &x, &x, &format!("{dtype} as {to}"));
        }
        for &from in DType::ALL.iter().filter(|&&from| from != DType::F64) {
            let is_number = |x: &u64| !Scalar::from_bits(from, *x).to_f64().is_nan();
            let x: Vec<u64> = x.iter().map(|&x| if is_number(&x) { x } else { 0 }).collect();
            let kernel = mapped(from, dtype, n, |b, x, _| b.cast(dtype, x));
            check(&kernel, &x, &x, &format!("{from} as {dtype}"));
        }
    }
}

#[test]
fn what_fits_is_one_word() {
    let kernel = mapped(DType::F32, DType::F32, 64, |_, x, _| x);
    let lowered = lowered(&legalize(&kernel, &small()).unwrap(), &small()).unwrap();
    let counters = |ty: Type| ty.dtype == DType::I32;
    assert!(lowered.iter().all(|(_, op, ty)| !matches!(op, Op::Loop { .. }) || counters(ty)));
    assert!(!lowered.to_string().contains("u32"), "{lowered}");
}
