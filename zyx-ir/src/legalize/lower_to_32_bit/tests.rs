//! Lowered kernels compute what they did, word by word.

use super::*;
use crate::dtype::DTypeSet;
use crate::ir::generate::{Options, random_inputs, random_kernel, random_vars, same_elements};
use crate::ir::{Access, LoopKind, verify, verify_for};
use crate::legalize::legalize;
use crate::ops::UnaryOp;
use crate::passes::property_tests::{Rng, run};

/// A device without 64-bit numbers, as the least that an API promises.
fn small() -> Caps {
    let long = DTypeSet::of(&[DType::I64, DType::U64]);
    let double = DTypeSet::of(&[DType::F64]);
    let mut caps = Caps { partial_integers: true, partial_casts: true, ..Caps::default() };
    (caps.simt, caps.max_local, caps.shared_bytes) = (true, 256, 16 << 10);
    caps.emulated = long;
    caps.compute = caps.compute.without(double);
    caps.storage = caps.storage.without(double);
    for op in [BinaryOp::Div, BinaryOp::Rem] {
        caps.binary[op as usize] = DTypeSet::ALL.without(long);
    }
    caps
}

/// The same with 64-bit integers, vectors and memory of narrow elements.
fn large() -> Caps {
    let mut caps = small();
    (caps.emulated, caps.vector_bytes, caps.masked) = (DTypeSet::NONE, 16, true);
    caps.narrow = DTypeSet::of(&[DType::I8, DType::U8, DType::I16, DType::U16]);
    for op in [BinaryOp::Div, BinaryOp::Rem] {
        caps.binary[op as usize] = DTypeSet::ALL;
    }
    caps
}

/// What a kernel gives as it is, and lowered for a device.
fn both(kernel: &Kernel, inputs: &[Vec<u8>], vars: &[u64], caps: &Caps) -> [Vec<Vec<u8>>; 2] {
    let legal = legalize(kernel, caps).unwrap();
    verify_for(&legal, caps).unwrap();
    let lowered = lowered(&legal, caps).unwrap();
    verify(&lowered).unwrap_or_else(|e| panic!("{e}\n{lowered}"));
    for (value, op, ty) in lowered.iter() {
        // Of less than a word only what memory has, loaded and stored, and of bools only what is
        // computed.
        let moves = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Cast { .. })
            || matches!(op, Op::Const { .. } | Op::Splat { .. });
        let keeps = matches!(op, Op::Param { .. } | Op::Alloc { space: Space::Shared, .. });
        let is_half = matches!(ty.dtype, DType::F16 | DType::BF16);
        let fine = match ty.dtype {
            DType::Bool => !keeps,
            dtype if dtype.bits() >= 32 => true,
            dtype => !is_half && caps.narrow.contains(dtype) && (moves || keeps),
        };
        let simple = match op {
            Op::Binary { op, x, .. } => !follows(op, lowered.ty(x).dtype),
            Op::Unary { op, .. } => {
                ty.dtype.is_float() || matches!(op, UnaryOp::Neg | UnaryOp::Not)
            }
            _ => true,
        };
        // Of vectors what is loaded or stored at once, and of guards those of what has an effect.
        let accesses = matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Concat { .. });
        let guarded = |index| matches!(lowered.op(index), Op::Guard { .. });
        assert!(accesses || !ty.is_vector(), "{value}\n{lowered}");
        assert!(!matches!(op, Op::Load { index, .. } if guarded(index)), "{value}\n{lowered}");
        assert!(fine && simple && !caps.emulated.contains(ty.dtype), "{value}\n{lowered}");
    }
    let split = arguments(kernel.vars(), caps, vars);
    let whole = inputs.iter().map(|bytes| {
        let mut words = bytes.clone();
        words.resize(bytes.len().next_multiple_of(4), 0);
        words
    });
    let mut after = run(&lowered, &whole.collect::<Vec<_>>(), &split);
    for (bytes, input) in after.iter_mut().zip(inputs) {
        assert!(bytes[input.len()..].iter().all(|&byte| byte == 0), "{lowered}");
        bytes.truncate(input.len());
    }
    [run(kernel, inputs, vars), after]
}

#[test]
fn random_kernels_mean_the_same() {
    for caps in [small(), large()] {
        let options = Options { size: 30, local: true, ..Options::for_caps(&caps) };
        let (mut pairs, mut parts, mut vectors) = (0, 0, 0);
        for seed in 0..150 {
            let kernel = random_kernel(seed, &options);
            let (inputs, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
            let [before, after] = both(&kernel, &inputs, &vars, &caps);
            for (_, _, ty) in kernel.iter() {
                pairs += u32::from(caps.emulated.contains(ty.dtype));
                parts += u32::from(is_part(ty.dtype));
                vectors += u32::from(is_part(ty.dtype) && ty.is_vector());
            }
            for (p, (x, y)) in kernel.params().iter().zip(before.iter().zip(&after)) {
                assert!(same_elements(p.dtype, x, y), "seed {seed}\n{kernel}");
            }
        }
        assert!(pairs > 1000 || caps.emulated == DTypeSet::NONE, "{pairs} values of 64 bits");
        assert!(vectors > 50 || caps.vector_bytes == 0, "{vectors} vectors of less than 32 bits");
        assert!(parts > 1000, "{parts} values of less than 32 bits");
    }
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
    let [before, after] = both(kernel, &inputs, &[], &small());
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
        for op in [UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Not] {
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

/// Arguments of all dtypes are what they were.
#[test]
fn arguments_fill_their_words() {
    for &dtype in DType::ALL.iter().filter(|&&dtype| dtype != DType::F64) {
        let mut b = Builder::new("argument");
        let out = b.param(dtype, 2, Access::ReadWrite);
        let x = b.var(dtype, i64::MIN, i64::MAX);
        let [zero, one] = [0, 1].map(|n| b.index(n));
        b.store(out, zero, x);
        let again = b.load(out, zero);
        let again = b.cast(DType::Bool, again);
        let again = b.cast(dtype, again);
        b.store(out, one, if dtype.is_float() { x } else { again });
        let kernel = b.finish();
        for bits in [0, 1, 0x80, 0xff, 0x100, 0x7fff, 0x8001, 0xffff_fff0, 1 << 40] {
            let inputs = [vec![0; 2 * dtype.size()]];
            let bits = Scalar::from_bits(dtype, bits).bits();
            for caps in [small(), large()] {
                let [before, after] = both(&kernel, &inputs, &[bits], &caps);
                assert_eq!(before, after, "{bits:#x} as {dtype}");
            }
        }
    }
}

/// Integers of less than a word become each other, and stay within their range.
#[test]
fn narrow_integers_wrap() {
    let x: Vec<u64> = (0..1 << 16).collect();
    let narrow = DType::ALL.iter().copied().filter(|d| d.is_int() && d.bits() <= 32);
    for (from, to) in narrow.clone().flat_map(|from| narrow.clone().map(move |to| (from, to))) {
        let kernel = mapped(from, DType::I32, x.len() as u64, |b, x, _| {
            let y = b.cast(to, x);
            b.cast(DType::I32, y)
        });
        check(&kernel, &x, &x, &format!("{from} as {to}"));
    }
}

/// Ops that follow from others are those, on words and on bools.
#[test]
fn what_follows_is_the_same() {
    let all = |from: DType| {
        BinaryOp::ALL
            .iter()
            .copied()
            .filter(move |&op| op.domain().contains(from) && follows(op, from))
    };
    let (x, n) = (numbers(1 << 12), 1 << 12);
    let y: Vec<u64> = x.iter().rev().map(|&y| y ^ (y >> 7)).collect();
    for dtype in [DType::I32, DType::U32, DType::Bool] {
        assert!(all(dtype).count() > 1);
        let bits = |all: &[u64]| -> Vec<u64> {
            all.iter().map(|&x| if dtype == DType::Bool { x & 1 } else { x }).collect()
        };
        for op in all(dtype) {
            let kernel = mapped(dtype, op.result(dtype), n, |b, x, y| b.binary(op, x, y));
            check(&kernel, &bits(&x), &bits(&y), &format!("{op} on {dtype}"));
        }
    }
    for op in [UnaryOp::Abs, UnaryOp::Floor, UnaryOp::Round] {
        let kernel = mapped(DType::I32, DType::I32, n, |b, x, _| b.unary(op, x));
        check(&kernel, &x, &x, op.name());
    }
}

#[test]
fn aligned_words_are_accessed_at_once() {
    let kernel = |offset: u32| -> Kernel {
        let text = format!(
            "kernel k\nbuffer 0 : f32[68] read\nbuffer 1 : f32[68] write
            %p param 0 read : f32\n%q param 1 write : f32
            %4 const 4 : i64\n%16 const 16 : i64\n%o const {offset} : i64
            %g loop group %16\n%r mul %g, %4 : i64\n%i add %r, %o : i64
            %x load %p[%i] : f32x4\n%y add %x, %x : f32x4
            %s store %q[%i], %y : f32x4\n%e end %g"
        );
        text.parse().unwrap()
    };
    for (offset, accesses) in [(4, 1), (2, 4)] {
        let lowered = lowered(&kernel(offset), &large()).unwrap();
        let count = |is: fn(&Op) -> bool| lowered.ops().iter().filter(|op| is(op)).count();
        assert_eq!(count(|op| matches!(op, Op::Load { .. })), accesses, "{lowered}");
        assert_eq!(count(|op| matches!(op, Op::Store { .. })), accesses, "{lowered}");
        let inputs = [(0..68u32).flat_map(|n| (n as f32).to_le_bytes()).collect(), vec![0; 272]];
        let [before, after] = both(&kernel(offset), &inputs, &[], &large());
        assert_eq!(before, after, "{lowered}");
    }
}
