//! Every op on every dtype and lane count, on interesting values.

use super::{Random, Way, check_way, values, ways};
use std::ops::Range;
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, Space, Type, Value};
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp, UnaryOp};

/// Iterations of the loop around the tested op.
const TRIPS: i64 = 40;

/// Lane counts whose vectors of `size` bytes fit the instruction set.
pub(super) fn lane_counts(way: Way, size: usize) -> Vec<u8> {
    [1u8, 2, 4, 8, 16, 32, 64]
        .into_iter()
        .filter(|&n| usize::from(n) * size <= way.vector_bytes())
        .collect()
}

/// `out[i] = f(a[i], b[i], c[i])` on vectors of `lanes`, results of dtype `to`.
pub(super) fn elementwise(
    dtypes: &[DType],
    to: DType,
    lanes: u8,
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Kernel {
    let n = TRIPS as u64 * u64::from(lanes);
    let mut b = Builder::new("op");
    let params: Vec<Value> = dtypes.iter().map(|&d| b.param(d, n, Access::Read)).collect();
    let out = b.param(to, n, Access::Write);
    let trips = b.index(TRIPS);
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let width = b.index(lanes.into());
    let at = b.binary(BinaryOp::Mul, i, width);
    let loaded: Vec<Value> = params.iter().map(|&p| b.load_vector(p, at, lanes)).collect();
    let result = f(&mut b, &loaded);
    b.store(out, at, result);
    b.close();
    b.finish()
}

fn test(kernel: &Kernel, way: Way, seed: u64, context: &str) {
    let mut random = Random(seed);
    let inputs: Vec<Vec<u8>> =
        kernel.params().iter().map(|it| values(it.dtype, it.len as usize, &mut random)).collect();
    check_way(kernel, way, &inputs, &[], context);
}

#[test]
fn unary_ops() {
    for way in ways() {
        for &op in UnaryOp::ALL {
            for &dtype in DType::ALL.iter().filter(|&&d| op.domain().contains(d)) {
                for lanes in lane_counts(way, dtype.size()) {
                    let kernel = elementwise(&[dtype], dtype, lanes, |b, x| b.unary(op, x[0]));
                    test(&kernel, way, 1, &format!("{op} {dtype} x {lanes}"));
                }
            }
        }
    }
}

#[test]
fn binary_ops() {
    for way in ways() {
        for &op in BinaryOp::ALL {
            for &dtype in DType::ALL.iter().filter(|&&d| op.domain().contains(d)) {
                for lanes in lane_counts(way, dtype.size()) {
                    let kernel = elementwise(&[dtype; 2], op.result(dtype), lanes, |b, x| {
                        b.binary(op, x[0], x[1])
                    });
                    let context = format!("{op} {dtype} x {lanes}");
                    test(&kernel, way, 2, &context);
                    if !dtype.is_float() && op.result(dtype) == dtype {
                        small_second_operand(op, dtype, lanes, way, &context);
                    }
                }
            }
        }
    }
}

/// Shifts, divisions and powers by small numbers, which random bits rarely are.
fn small_second_operand(op: BinaryOp, dtype: DType, lanes: u8, way: Way, context: &str) {
    if dtype == DType::Bool {
        return;
    }
    let kernel = elementwise(&[dtype; 2], dtype, lanes, |b, x| {
        let mask = b.constant(Scalar::from_i64(dtype, 0x47));
        let small = b.binary(BinaryOp::And, x[1], mask);
        b.binary(op, x[0], small)
    });
    test(&kernel, way, 3, context);
}

#[test]
fn binary_ops_with_a_constant() {
    let constants =
        [0i64, 1, -1, 2, 3, 5, 7, -7, 8, 10, 31, 32, 33, 63, 64, 100, i64::MIN, i64::MAX];
    for way in ways() {
        for &op in BinaryOp::ALL {
            for &dtype in DType::ALL.iter().filter(|&&d| op.domain().contains(d)) {
                for constant in constants {
                    for swap in [false, true] {
                        let most = (way.vector_bytes() / dtype.size()).min(4) as u8;
                        let lanes = if constant % 2 == 0 { 1 } else { most };
                        let kernel = elementwise(&[dtype], op.result(dtype), lanes, |b, x| {
                            let c = b.constant(Scalar::from_i64(dtype, constant));
                            let (u, v) = if swap { (c, x[0]) } else { (x[0], c) };
                            b.binary(op, u, v)
                        });
                        test(&kernel, way, 4, &format!("{op} {dtype} {constant} swap {swap}"));
                    }
                }
            }
        }
    }
}

#[test]
fn ternary_ops() {
    for way in ways() {
        for &dtype in DType::ALL {
            for lanes in lane_counts(way, dtype.size()) {
                let kernel = elementwise(&[DType::Bool, dtype, dtype], dtype, lanes, |b, x| {
                    b.select(x[0], x[1], x[2])
                });
                test(&kernel, way, 5, &format!("where {dtype} x {lanes}"));
                let kernel = elementwise(&[dtype; 4], dtype, lanes, |b, x| {
                    let cond = b.binary(BinaryOp::Lt, x[0], x[1]);
                    b.select(cond, x[2], x[3])
                });
                test(&kernel, way, 6, &format!("compare and select {dtype} x {lanes}"));
                if dtype.is_float() {
                    let kernel = elementwise(&[dtype; 3], dtype, lanes, |b, x| {
                        b.ternary(TernaryOp::MulAdd, x[0], x[1], x[2])
                    });
                    test(&kernel, way, 7, &format!("muladd {dtype} x {lanes}"));
                }
            }
        }
    }
}

#[test]
fn masks_meet_elements_of_every_width() {
    for way in ways() {
        for &from in DType::ALL {
            for &to in DType::ALL {
                let size = from.size().max(to.size());
                for lanes in lane_counts(way, size) {
                    let kernel =
                        elementwise(&[from, from, from, from, to, to], to, lanes, |b, x| {
                            let p = b.binary(BinaryOp::Le, x[0], x[1]);
                            let q = b.binary(BinaryOp::Ne, x[2], x[3]);
                            let r = b.unary(UnaryOp::Not, q);
                            let cond = b.binary(BinaryOp::Xor, p, r);
                            b.select(cond, x[4], x[5])
                        });
                    test(&kernel, way, 8, &format!("{from} masks {to} x {lanes}"));
                }
            }
        }
    }
}

#[test]
fn folds_extracts_and_splats() {
    for way in ways() {
        for &dtype in DType::ALL {
            for lanes in lane_counts(way, dtype.size()).into_iter().filter(|&n| n > 1) {
                for &op in BinaryOp::ALL.iter().filter(|op| op.is_associative()) {
                    if !op.domain().contains(dtype) {
                        continue;
                    }
                    let kernel = elementwise(&[dtype; 2], dtype, lanes, |b, x| {
                        let all = b.emit(Op::Fold { op, x: x[0] }, Type::scalar(dtype));
                        let lane = lanes / 2 + 1 - lanes / 4;
                        let lane = lane.min(lanes - 1);
                        let one = b.emit(Op::Extract { x: x[1], lane }, Type::scalar(dtype));
                        let (all, one) = (b.splat(all, lanes), b.splat(one, lanes));
                        let cond = b.binary(BinaryOp::Eq, x[0], x[1]);
                        b.select(cond, all, one)
                    });
                    test(&kernel, way, 9, &format!("fold {op} {dtype} x {lanes}"));
                }
            }
        }
    }
}

#[test]
fn gathers_scatters_and_guards() {
    for way in ways() {
        for &dtype in DType::ALL {
            for index in [DType::I32, DType::I64] {
                let size = dtype.size().max(index.size());
                for lanes in lane_counts(way, size) {
                    for guarded in [false, true] {
                        let kernel = scatter(dtype, index, lanes, guarded);
                        test(&kernel, way, 10, &format!("{dtype} by {index} x {lanes}"));
                    }
                }
            }
        }
    }
}

/// `if c: out[n - 1 - (i * lanes + lane)] = a[(index & mask)] where index is odd`
fn scatter(dtype: DType, index: DType, lanes: u8, guarded: bool) -> Kernel {
    let n = TRIPS as u64 * u64::from(lanes);
    let mut b = Builder::new("scatter");
    let a = b.param(dtype, 16, Access::Read);
    let indices = b.param(index, n, Access::Read);
    let out = b.param(dtype, n, Access::ReadWrite);
    let trips = b.index(TRIPS);
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let width = b.index(lanes.into());
    let at = b.binary(BinaryOp::Mul, i, width);
    let loaded = b.load_vector(indices, at, lanes);
    let fifteen = b.constant(Scalar::from_i64(index, 15));
    let from = b.binary(BinaryOp::And, loaded, fifteen);
    let one = b.constant(Scalar::from_i64(index, 1));
    let odd = b.binary(BinaryOp::And, loaded, one);
    let cond = b.binary(BinaryOp::Eq, odd, one);
    let last = b.index(n as i64 - 1);
    let first = b.binary(BinaryOp::Sub, last, at);
    let first = b.cast(index, first);
    let to = if lanes > 1 {
        let ramp = b.emit(Op::Lanes, Type::vector(index, lanes));
        b.binary(BinaryOp::Sub, first, ramp)
    } else {
        first
    };
    let (from, to) = if guarded { (b.guard(from, cond), b.guard(to, cond)) } else { (from, to) };
    let x = b.load_vector(a, from, lanes);
    b.store(out, to, x);
    b.close();
    b.finish()
}

/// Parts of complex numbers: stores that fill each other's gaps, and those that something comes between.
#[test]
fn every_second_element() {
    for way in ways() {
        for dtype in [DType::F32, DType::I32, DType::F64, DType::U16] {
            for lanes in lane_counts(way, dtype.size().max(8)).into_iter().filter(|&n| n > 1) {
                for (first, second) in [(0, 1), (1, 0), (0, 0), (0, 3), (2, 3)] {
                    for between in [Between::Nothing, Between::Load, Between::Slot] {
                        let kernel = pairs((dtype, lanes), (first, second), between);
                        let name = format!("{dtype} x {lanes} at {first}, {second}, {between:?}");
                        test(&kernel, way, 12, &name);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Between {
    Nothing,
    /// A load of what the first store writes.
    Load,
    /// A store to the register that the first store's value comes from.
    Slot,
}

/// `x = a[2 l], y = a[2 l + 1]; out[2 l + first] = y; out[2 l + second] = x + ..` for lanes `l`.
fn pairs((dtype, lanes): (DType, u8), (first, second): (i64, i64), between: Between) -> Kernel {
    let n = (TRIPS as u64 * u64::from(lanes)) * 2;
    let mut b = Builder::new("pairs");
    let a = b.param(dtype, n, Access::Read);
    let out = b.param(dtype, n + 4, Access::ReadWrite);
    let trips = b.index(TRIPS);
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let slot = b.alloc(Space::Register, Type::vector(dtype, lanes), 1);
    let (width, ramp) =
        (b.index(2 * i64::from(lanes)), b.emit(Op::Lanes, Type::vector(DType::I64, lanes)));
    let (two, zero) = (b.index(2), b.index(0));
    let ramp = b.binary(BinaryOp::Mul, ramp, two);
    let base = b.binary(BinaryOp::Mul, i, width);
    let place = |b: &mut Builder, at: i64| {
        let at = b.index(at);
        let at = b.binary(BinaryOp::Add, base, at);
        b.binary(BinaryOp::Add, ramp, at)
    };
    let (even, odd) = (place(&mut b, 0), place(&mut b, 1));
    let (x, y) = (b.load_vector(a, even, lanes), b.load_vector(a, odd, lanes));
    b.store(slot, zero, y);
    let kept = b.load(slot, zero);
    let to = place(&mut b, first);
    b.store(out, to, kept);
    let x = match between {
        Between::Nothing => x,
        Between::Load => {
            let seen = b.load_vector(out, to, lanes);
            b.binary(BinaryOp::Add, x, seen)
        }
        Between::Slot => {
            b.store(slot, zero, x);
            x
        }
    };
    let to = place(&mut b, second);
    b.store(out, to, x);
    b.close();
    b.finish()
}

/// Every second element of the lanes that a guard leaves, at both ends of what may be read.
#[test]
fn every_second_element_of_some_lanes() {
    let mut random = Random(5);
    for way in ways() {
        for (dtype, lanes) in [(DType::F32, 4), (DType::F32, 8), (DType::I32, 8), (DType::F32, 2)] {
            for _ in 0..12 {
                let first = random.below(4);
                let last = first + random.below(usize::from(lanes) + 1 - first.min(2));
                let whole = random.pick(&[None, Some(0i64), Some(2), Some(7)]);
                let kernel = some_pairs((dtype, lanes), first as i64..last as i64, whole);
                test(&kernel, way, 13, &format!("{dtype} x {lanes}, {first}..{last}, {whole:?}"));
            }
        }
    }
}

/// `out[l] = a[2 (l - first)]` for the lanes in `some`, of vectors that `whole` leaves, else zero.
fn some_pairs((dtype, lanes): (DType, u8), some: Range<i64>, whole: Option<i64>) -> Kernel {
    let n = (2 * (some.end - some.start) - 1).max(0) + 3 * (TRIPS - 1);
    let mut b = Builder::new("some_pairs");
    let a = b.param(dtype, n.max(1) as u64, Access::Read);
    let out = b.param(dtype, TRIPS as u64 * u64::from(lanes), Access::Write);
    let trips = b.index(TRIPS);
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let (width, ramp) = (b.index(lanes.into()), b.emit(Op::Lanes, Type::vector(DType::I64, lanes)));
    let [two, three, back] = [2, 3, -2 * some.start].map(|n| b.index(n));
    let ramp = b.binary(BinaryOp::Mul, ramp, two);
    let place = b.binary(BinaryOp::Mul, i, three);
    let place = b.binary(BinaryOp::Add, place, back);
    let place = b.binary(BinaryOp::Add, ramp, place);
    let lane = b.emit(Op::Lanes, Type::vector(DType::I32, lanes));
    let [start, end] = [some.start, some.end].map(|n| b.constant(Scalar::from(n as i32)));
    let (from, to) = (b.binary(BinaryOp::Le, start, lane), b.binary(BinaryOp::Lt, lane, end));
    let mut cond = b.binary(BinaryOp::And, from, to);
    if let Some(whole) = whole {
        let whole = b.index(whole);
        let all = b.binary(BinaryOp::Lt, i, whole);
        let all = b.splat(all, lanes);
        cond = b.binary(BinaryOp::And, cond, all);
    }
    let place = b.guard(place, cond);
    let x = b.load_vector(a, place, lanes);
    let to = b.binary(BinaryOp::Mul, i, width);
    b.store(out, to, x);
    b.close();
    b.finish()
}

#[test]
fn masked_rows() {
    for way in ways() {
        for &dtype in DType::ALL {
            for lanes in lane_counts(way, dtype.size().max(4)).into_iter().filter(|&n| n > 1) {
                for rest in [0i64, 1, i64::from(lanes) / 2, i64::from(lanes) - 1] {
                    let kernel = masked_row(dtype, lanes, rest);
                    test(&kernel, way, 11, &format!("{dtype} x {lanes}, {rest} left"));
                }
            }
        }
    }
}

/// A row of which the last, incomplete vector is masked, as `vectorize` makes it; the input is
/// shifted by one, so that the mask is needed at both ends.
fn masked_row(dtype: DType, lanes: u8, rest: i64) -> Kernel {
    let n = i64::from(lanes) * 2 + rest;
    let mut b = Builder::new("masked");
    let a = b.param(dtype, n as u64, Access::Read);
    let out = b.param(dtype, n as u64, Access::Write);
    let trips = b.index(3);
    let i = b.open_loop(LoopKind::Parallel, 0, trips);
    let width = b.index(lanes.into());
    let at = b.binary(BinaryOp::Mul, i, width);
    let end = b.index(n);
    let left = b.binary(BinaryOp::Sub, end, at);
    let left = b.cast(DType::I32, left);
    let ramp = b.emit(Op::Lanes, Type::vector(DType::I32, lanes));
    let inside = b.binary(BinaryOp::Lt, ramp, left);
    let one = b.index(1);
    let before = b.binary(BinaryOp::Sub, at, one);
    let before32 = b.cast(DType::I32, before);
    let places = b.binary(BinaryOp::Add, ramp, before32);
    let minus = b.constant(Scalar::from(-1i32));
    let after_start = b.binary(BinaryOp::Lt, minus, places);
    let both = b.binary(BinaryOp::And, inside, after_start);
    let from = b.guard(before, both);
    let x = b.load_vector(a, from, lanes);
    let to = b.guard(at, inside);
    b.store(out, to, x);
    b.close();
    b.finish()
}
