//! Expansions are compiled for a device that has nothing but the basics, interpreted, and
//! compared with the op table's meaning in `f64`.

use super::*;
use crate::dtype::DTypeSet;
use crate::ir::interp::{Binding, Options, Program};
use crate::ir::{Access, Kernel, LoopKind, verify_for};
use crate::legalize::legalize;

/// Only arithmetic, comparisons and bit operations.
fn bare() -> Caps {
    let mut caps = Caps::default();
    (caps.vector_bytes, caps.masked) = (64, true);
    for &op in UnaryOp::ALL {
        if op != UnaryOp::Sqrt {
            caps.unary[op as usize] = DTypeSet::NONE;
        }
    }
    let missing = [BinaryOp::Pow, BinaryOp::Atan2, BinaryOp::Rem, BinaryOp::Max, BinaryOp::Min];
    for op in missing {
        caps.binary[op as usize] = DTypeSet::NONE;
    }
    caps
}

/// `out[i] = f(a[i], b[i])` on `n` elements, `lanes` at a time.
fn map(
    dtype: DType,
    n: usize,
    lanes: u8,
    f: impl FnOnce(&mut Builder, Value, Value) -> Value,
) -> Kernel {
    let mut b = Builder::new("map");
    let [p, q] = [0; 2].map(|_| b.param(dtype, n as u64, Access::Read));
    let out = b.param(dtype, n as u64, Access::Write);
    let len = b.index((n / lanes as usize) as i64);
    let i = b.open_loop(LoopKind::Serial, 0, len);
    let step = b.index(lanes as i64);
    let i = b.binary(BinaryOp::Mul, i, step);
    let (x, y) = (b.load_vector(p, i, lanes), b.load_vector(q, i, lanes));
    let z = f(&mut b, x, y);
    b.store(out, i, z);
    b.close();
    b.finish()
}

/// Codes that look random, of every sign and exponent.
fn codes64(n: u64) -> impl Iterator<Item = f64> {
    (1..=n).map(|i| f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn run(kernel: &Kernel, caps: &Caps, a: &[u8], b: &[u8]) -> Vec<u8> {
    let legal = legalize(kernel, caps).unwrap();
    verify_for(&legal, caps).unwrap();
    let (mut a, mut b, mut out) = (a.to_vec(), b.to_vec(), vec![0; a.len()]);
    let bindings = [0, 1, 2].map(|buffer| Binding { buffer, offset: 0 });
    let program = Program::new(&legal).unwrap();
    program.run(&mut [&mut a, &mut b, &mut out], &bindings, &[], &Options::fast()).unwrap();
    out
}

fn bytes32(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Distance of `found` from `exact` in units in the last place of an `f32` result.
fn ulps(exact: f64, found: f32) -> f64 {
    let rounded = exact as f32;
    if rounded.is_nan() || found.is_nan() {
        return if rounded.is_nan() && found.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if rounded == found {
        return 0.0;
    }
    if rounded.is_infinite() || found.is_infinite() {
        // One step beyond the largest number counts as that step.
        let limit = f32::MAX as f64;
        let step = 2f64.powi(104);
        let clamp = |x: f64| x.clamp(-limit - step, limit + step);
        return (clamp(exact) - clamp(found as f64)).abs() / step;
    }
    let exponent = rounded.abs().max(f32::MIN_POSITIVE).log2().floor() as i32;
    (exact - found as f64).abs() / 2f64.powi(exponent - 23)
}

/// Floats all over the range: every exponent with random fractions, and all special values.
fn sweep(n: usize) -> Vec<f32> {
    let mut x: Vec<f32> = vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -f32::MIN_POSITIVE,
        f32::from_bits(1),
        f32::from_bits(0x8000_0001),
        f32::from_bits(0x7fff_ffff),
        f32::from_bits(0xffc0_0001),
        88.72284,
        88.7229,
        -87.4,
        -103.97,
        -104.1,
        1.5,
        2.5,
        -1.5,
        -2.5,
        8_388_607.5,
        8_388_609.0,
        9.0,
        9.01,
        -9.2,
        51_000.0,
        1e5,
        1e30,
    ];
    let mut seed = 0x2545_f491u64;
    while x.len() < n {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = (seed >> 32) as u32;
        // Half of them near 1, where functions do interesting things.
        let narrow = (bits & 0x83ff_ffff) | 0x3c00_0000;
        x.push(f32::from_bits(if seed & 4 == 0 { bits } else { narrow }));
    }
    x.truncate(n);
    x
}

fn worst(op: UnaryOp, caps: &Caps, lanes: u8, n: usize) -> (f64, f32, f32) {
    let x = sweep(n);
    let kernel = map(DType::F32, n, lanes, |b, x, _| b.unary(op, x));
    let out = run(&kernel, caps, &bytes32(&x), &bytes32(&x));
    let mut worst = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(out.chunks_exact(4)) {
        let y = f32::from_le_bytes(y.try_into().unwrap());
        let exact = op.eval_f64(*x as f64);
        let zero_sign =
            exact == 0.0 && y == 0.0 && exact.is_sign_negative() != y.is_sign_negative();
        let error = if zero_sign { f64::INFINITY } else { ulps(exact, y) };
        if error > worst.0 {
            worst = (error, *x, y);
        }
    }
    worst
}

#[test]
fn unary_functions_meet_the_bounds_of_the_op_table() {
    for &op in UnaryOp::ALL.iter().filter(|&&op| op.domain().contains(DType::F32)) {
        for (lanes, n) in [(1, 1 << 13), (16, 1 << 17)] {
            let (error, x, y) = worst(op, &bare(), lanes, n);
            println!("{op} on {lanes} lanes: {error:.2} ulp at {x:e} ({y:e})");
            let bound = (op.ulp() as f64).max(0.501);
            assert!(error <= bound, "{op}({x:e}) = {y:e}, {:e} exactly", op.eval_f64(x as f64));
        }
    }
}

#[test]
fn binary_functions_meet_the_bounds_of_the_op_table() {
    let n = 1 << 16;
    let (mut x, mut y) = (sweep(n), sweep(n));
    let specials = 34;
    for i in 0..specials {
        for j in 0..specials {
            (x[specials * (i + 1) + j], y[specials * (i + 1) + j]) = (x[i], y[j]);
        }
    }
    // Shuffle the partner so that pairs are not equal, and let many exponents be small integers.
    let tail = specials * (specials + 1);
    y[tail..].rotate_left(4321);
    for (i, y) in y[tail..].iter_mut().enumerate().filter(|(i, _)| i % 3 == 0) {
        *y = (i % 41) as f32 * 0.5 - 10.0;
    }
    use BinaryOp::{Atan2, LogAddExp, Max, Min, Pow, Rem};
    for op in [Pow, Atan2, Rem, Max, Min, LogAddExp] {
        let kernel = map(DType::F32, n, 16, |b, x, y| b.binary(op, x, y));
        let out = run(&kernel, &bare(), &bytes32(&x), &bytes32(&y));
        let mut most = 0f64;
        for ((x, y), z) in x.iter().zip(&y).zip(out.chunks_exact(4)) {
            let z = f32::from_le_bytes(z.try_into().unwrap());
            let exact = op.eval_f64(*x as f64, *y as f64);
            let unit = op.unit(*x as f64, *y as f64, exact);
            let error = match unit > exact.abs() {
                true => {
                    (exact - z as f64).abs()
                        / 2f64.powi((unit.log2().floor() as i32).max(-126) - 23)
                }
                false => ulps(exact, z),
            };
            let bound = (op.ulp() as f64).max(0.501);
            assert!(error <= bound, "{op}({x:e}, {y:e}) = {z:e}, {exact:e} exactly: {error} ulp");
            most = most.max(error);
        }
        println!("{op}: {most:.2} ulp");
    }
}

#[test]
fn bounded_functions_stay_in_their_bounds() {
    let x: Vec<f32> = (0..1 << 16).map(|i| i as f32 * (12.0 / 65536.0)).collect();
    for op in [UnaryOp::Tanh, UnaryOp::Erf] {
        let kernel = map(DType::F32, x.len(), 16, |b, x, _| b.unary(op, x));
        let out = run(&kernel, &bare(), &bytes32(&x), &bytes32(&x));
        for (x, y) in x.iter().zip(out.chunks_exact(4)) {
            let y = f32::from_le_bytes(y.try_into().unwrap());
            assert!(y.abs() <= 1.0, "{op}({x}) = {y:e}");
        }
    }
}

#[test]
fn double_precision_functions_are_accurate() {
    let caps = bare();
    let mut x: Vec<f64> = sweep(1 << 13).iter().map(|&x| x as f64 * 1.000_000_123).collect();
    x.extend(codes64(1 << 12));
    x.extend([1e300, -1e22, f64::MAX]);
    x.resize(x.len().next_multiple_of(8), 1.0);
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    for &op in UnaryOp::ALL.iter().filter(|&&op| op.domain().contains(DType::F64)) {
        let kernel = map(DType::F64, x.len(), 8, |b, x, _| b.unary(op, x));
        let out = run(&kernel, &caps, &bytes, &bytes);
        let mut most = 0f64;
        for (x, y) in x.iter().zip(out.chunks_exact(8)) {
            let (y, exact) = (f64::from_le_bytes(y.try_into().unwrap()), op.eval_f64(*x));
            let error = match (exact.is_nan(), y.is_nan()) {
                (true, true) => 0.0,
                _ if exact == y => 0.0,
                _ if exact.abs() < f64::MIN_POSITIVE => (exact - y).abs() / 5e-324,
                _ => (exact - y).abs() / exact.abs() / f64::EPSILON,
            };
            assert!(error <= op.ulp() as f64 + 1.0, "{op}({x:e}) = {y:e}, {exact:e}: {error}");
            most = most.max(error);
        }
        println!("{op} on f64: {most:.2} epsilons");
    }
}

/// Whole powers of small whole numbers, and powers of two, are exact where they are numbers of the dtype.
#[test]
fn powers_of_whole_numbers_are_exact() {
    let caps = bare();
    let whole = |x: f64| x.fract() == 0.0;
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    for x in 1..=32i32 {
        let powers = (0..=32).map(|y| (f64::from(x), f64::from(y)));
        pairs.extend(powers.filter(|&(x, y)| x.powf(y) <= f64::from(1u32 << 24)));
    }
    pairs.extend((-149..=127).map(|y| (2.0, f64::from(y))));
    pairs.resize(pairs.len().next_multiple_of(8), (1.0, 1.0));
    let single = |f: fn(&(f64, f64)) -> f64| -> Vec<u8> {
        pairs.iter().flat_map(|p| (f(p) as f32).to_le_bytes()).collect()
    };
    let (a, b) = (single(|p| p.0), single(|p| p.1));
    for lanes in [1, 8] {
        let kernel = map(DType::F32, pairs.len(), lanes, |b, x, y| b.binary(BinaryOp::Pow, x, y));
        let out = run(&kernel, &caps, &a, &b);
        for (&(x, y), z) in pairs.iter().zip(out.chunks_exact(4)) {
            let z = f32::from_le_bytes(z.try_into().unwrap());
            assert_eq!(z, x.powf(y) as f32, "{x}^{y}");
        }
        let kernel = map(DType::F32, pairs.len(), lanes, |b, _, y| b.unary(UnaryOp::Exp2, y));
        let out = run(&kernel, &caps, &a, &b);
        for (&(_, y), z) in pairs.iter().zip(out.chunks_exact(4)) {
            let z = f32::from_le_bytes(z.try_into().unwrap());
            assert!(whole(y) && z == y.exp2() as f32, "2^{y} = {z}");
        }
    }
    let double = |f: fn(&(f64, f64)) -> f64| -> Vec<u8> {
        pairs.iter().flat_map(|p| f(p).to_le_bytes()).collect()
    };
    let (a, b) = (double(|p| p.0), double(|p| p.1));
    for op in [None, Some(BinaryOp::Pow)] {
        let kernel = map(DType::F64, pairs.len(), 8, |b, x, y| match op {
            Some(op) => b.binary(op, x, y),
            None => b.unary(UnaryOp::Exp2, y),
        });
        let out = run(&kernel, &caps, &a, &b);
        for (&(x, y), z) in pairs.iter().zip(out.chunks_exact(8)) {
            let z = f64::from_le_bytes(z.try_into().unwrap());
            let want = if op.is_some() { x.powf(y) } else { y.exp2() };
            assert_eq!(z, want, "{x}, {y}");
        }
    }
}

/// The double that is closest to a multiple of pi / 2 (Muller et al. 2018, table 11.1); its cosine
/// in many digits is -4.687165924254627611123e-19, which not every system's library finds.
#[test]
fn the_hardest_argument_is_reduced_exactly() {
    let x = 6_381_956_970_095_103.0 * 797f64.exp2();
    let kernel = map(DType::F64, 1, 1, |b, x, _| b.unary(UnaryOp::Cos, x));
    let out = run(&kernel, &bare(), &x.to_le_bytes(), &x.to_le_bytes());
    let y = f64::from_le_bytes(out.try_into().unwrap());
    assert!((y / -4.687_165_924_254_627e-19 - 1.0).abs() <= 3.0 * f64::EPSILON, "{y:e}");
}

#[test]
fn double_precision_powers_and_remainders_are_accurate() {
    let caps = bare();
    let special = [0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 1e300, 1e-300, 5e-324, f64::INFINITY, f64::NAN];
    let special: Vec<f64> = special.iter().flat_map(|&x| [x, -x]).collect();
    let mut pairs: Vec<(f64, f64)> =
        special.iter().flat_map(|&x| special.iter().map(move |&y| (x, y))).collect();
    // Powers that neither overflow nor vanish, of bases of all sizes and near 1.
    for (i, code) in codes64(1 << 11).enumerate() {
        let x = f64::from_bits(code.abs().to_bits() & !(1 << 62) | (i as u64 & 1) << 62);
        let y = (i as f64 - 1000.0) * 0.69 / x.log2().abs().max(1e-3);
        pairs.extend([(x, y), (1.0 + (i as f64 - 1000.0) * 1e-6, y)]);
    }
    // Remainders with quotients of all sizes.
    let codes: Vec<f64> = codes64(1 << 10).collect();
    pairs.extend(codes.iter().zip(&codes[100..]).map(|(&x, &y)| (x, y)));
    pairs.extend(codes.iter().map(|&x| (x, x * 0.001 / 3.0)));
    pairs.resize(pairs.len().next_multiple_of(8), (1.0, 1.0));
    let bytes = |f: fn(&(f64, f64)) -> f64| -> Vec<u8> {
        pairs.iter().flat_map(|p| f(p).to_le_bytes()).collect()
    };
    let (a, b) = (bytes(|p| p.0), bytes(|p| p.1));
    for op in [BinaryOp::Pow, BinaryOp::Rem] {
        for lanes in [1, 8] {
            let kernel = map(DType::F64, pairs.len(), lanes, |b, x, y| b.binary(op, x, y));
            let out = run(&kernel, &caps, &a, &b);
            for (&(x, y), z) in pairs.iter().zip(out.chunks_exact(8)) {
                let (z, exact) = (f64::from_le_bytes(z.try_into().unwrap()), op.eval_f64(x, y));
                let error = match (exact.is_nan(), z.is_nan()) {
                    (true, true) => 0.0,
                    _ if exact == z => 0.0,
                    _ if exact.abs() < f64::MIN_POSITIVE => (exact - z).abs() / 5e-324,
                    _ => (exact - z).abs() / exact.abs() / f64::EPSILON,
                };
                assert!(error <= op.ulp() as f64, "{op}({x:e}, {y:e}) = {z:e}, {exact:e}: {error}");
            }
        }
    }
}

/// On devices with and without fused multiply-adds, in each dtype, one and many lanes at once.
#[test]
fn remainders_are_exact() {
    let without = || {
        let mut caps = bare();
        caps.ternary[TernaryOp::MulAdd as usize] = DTypeSet::NONE;
        caps
    };
    let n = 1 << 14;
    let mut pairs: Vec<(f64, f64)> = Vec::new();
    let (x, y) = (sweep(n), sweep(n + 77));
    for i in 0..34 {
        pairs.extend(x[..34].iter().map(|&y| (x[i] as f64, y as f64)));
    }
    pairs.extend(x[34..].iter().zip(&y[111..]).map(|(&x, &y)| (x as f64, y as f64)));
    // Dividends near multiples of the divisor, with quotients of up to 277 bits.
    let near = |(i, &y): (usize, &f32)| {
        let whole = (y as f64 * f64::from(1 + i as u32 % 4099) * ((i % 251) as f64).exp2()) as f32;
        let x = f32::from_bits(whole.to_bits().wrapping_add(i as u32 % 3).wrapping_sub(1));
        (x as f64, y as f64)
    };
    pairs.extend(y.iter().enumerate().map(near));
    // The same in f64, whose quotients have up to 2,098 bits.
    let mut wide = pairs.clone();
    let codes: Vec<f64> = codes64(1 << 11).collect();
    wide.extend(codes.iter().zip(&codes[100..]).map(|(&x, &y)| (x, y)));
    wide.extend(codes.iter().enumerate().map(|(i, &y)| {
        (f64::from_bits((y * (i + 1) as f64).to_bits().wrapping_add(i as u64 % 3)), y)
    }));
    wide.push((f64::MAX, 5e-324));
    for (dtype, pairs) in [(DType::F32, &pairs), (DType::F64, &wide), (DType::F16, &pairs)] {
        let bytes = |f: fn(&(f64, f64)) -> f64| -> Vec<u8> {
            let padding = [(1.0, 1.0); 64];
            let all = pairs.iter().chain(&padding);
            let all = all.map(|p| Scalar::from_f64(dtype, f(p)));
            let bytes = all.flat_map(|x| x.bits().to_le_bytes()[..dtype.size()].to_vec());
            bytes.collect()
        };
        let (a, b) = (bytes(|p| p.0), bytes(|p| p.1));
        let numbers = |bytes: &[u8]| -> Vec<f64> {
            Scalar::read_all(dtype, bytes).into_iter().map(|x| x.to_f64()).collect()
        };
        let (x, y) = (numbers(&a), numbers(&b));
        for (caps, lanes) in [(bare(), 1), (bare(), 8), (without(), 8)] {
            let kernel =
                map(dtype, x.len() / 64 * 64, lanes, |b, x, y| b.binary(BinaryOp::Rem, x, y));
            let out = numbers(&run(&kernel, &caps, &a, &b));
            for ((x, y), z) in x.iter().zip(&y).zip(out).take(pairs.len()) {
                let same = (x % y).to_bits() == z.to_bits() || z.is_nan() && (x % y).is_nan();
                assert!(same, "{dtype}: {x:e} % {y:e} is {:e}, not {z:e}", x % y);
            }
        }
    }
}
