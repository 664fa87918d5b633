//! What a device does that its driver does not say, found out by running a kernel.

use super::{Arg, CompileError, Device, DeviceError};
use crate::cmath;
use crate::dtype::{DType, DTypeSet};
use crate::ir::{Access, Builder, Kernel, LoopKind, Op, ShuffleKind, Space, Type, Value, Verified};
use crate::ops::{BinaryOp, TernaryOp};
use crate::scalar::Scalar;

/// The dtypes among `f32` and `f64` in which the device replaces subnormal operands or results by
/// zero: the smallest normal number is halved, and its half doubled.
///
/// # Errors
/// When the device fails.
pub fn flushed_subnormals<D: Device>(device: &D) -> Result<DTypeSet, DeviceError> {
    let mut found = Vec::new();
    for (dtype, normal) in
        [(DType::F32, f64::from(f32::MIN_POSITIVE)), (DType::F64, f64::MIN_POSITIVE)]
    {
        if device.caps().compute.contains(dtype) && flushes(device, dtype, normal)? {
            found.push(dtype);
        }
    }
    Ok(DTypeSet::of(&found))
}

fn flushes<D: Device>(device: &D, dtype: DType, normal: f64) -> Result<bool, DeviceError> {
    let number = |x: f64| Scalar::from_f64(dtype, x);
    let rows = [[normal, 0.5], [normal / 2.0, 2.0]].map(|row| row.map(number).to_vec());
    let expected = [number(normal / 2.0), number(normal)];
    let got = computed(device, dtype, &rows, |b, x| b.binary(BinaryOp::Mul, x[0], x[1]))?;
    Ok(got != expected)
}

/// How a multiply-add behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MulAdd {
    /// The sum is rounded, the product is not.
    pub rounds_once: bool,
    /// Subnormal operands and results are not replaced by zero.
    pub keeps_subnormals: bool,
}

/// What the device makes of a multiply-add on `f32`, which its emitter spells whatever the
/// capabilities say.
///
/// # Errors
/// When the device fails.
pub fn muladd<D: Device>(device: &D) -> Result<MulAdd, DeviceError> {
    // Products whose lower half is all that is left of them, and sums that round otherwise when
    // the product was rounded before.
    let usual = (1..=64u32).map(|n| {
        let x = f32::from_bits(0x3f80_0000 + n * 0x0001_e240 + n);
        let y = f32::from_bits(0x3f80_0000 + n * 0x0001_86a1);
        [x, y, if n % 2 == 0 { -(x * y) } else { x * y * (n as f32) }]
    });
    let (least, most) = (f32::from_bits(1), f32::MAX);
    let tiny =
        [[0.0, 0.0, least], [least, most, -0.1], [3.0 * least, 1.0, least], [1e-30, 1e-9, 0.0]];
    let fused = |rows: Vec<[f32; 3]>| -> Result<bool, DeviceError> {
        let expected = rows.iter().map(|[x, y, z]| Scalar::from(cmath::mul_add_f32(*x, *y, *z)));
        let expected: Vec<Scalar> = expected.collect();
        let rows: Vec<Vec<Scalar>> =
            rows.iter().map(|row| row.iter().map(|&x| Scalar::from(x)).collect()).collect();
        let op = TernaryOp::MulAdd;
        let got = computed(device, DType::F32, &rows, |b, x| b.ternary(op, x[0], x[1], x[2]))?;
        Ok(got == expected)
    };
    Ok(MulAdd { rounds_once: fused(usual.collect())?, keeps_subnormals: fused(tiny.to_vec())? })
}

/// Groups that [`shuffles`] runs.
const SHUFFLING_GROUPS: i64 = 64;

/// Whether the groups of a device that says it has subgroups of one size are made of full ones, in
/// which threads read the values of others: groups of one subgroup, and the largest.
///
/// # Errors
/// When the device fails.
pub fn shuffles<D: Device>(device: &D) -> Result<bool, DeviceError> {
    let lanes = i64::from(device.caps().subgroup.1.max(1));
    let most = device.caps().max_local as i64 / lanes * lanes;
    for threads in [lanes, most] {
        let n = threads * SHUFFLING_GROUPS;
        let mut b = Builder::new("probe");
        let out = b.param(DType::I32, n as u64, Access::Write);
        let input = b.param(DType::I32, n as u64, Access::Read);
        let [groups, len, one, mask, zero] =
            [SHUFFLING_GROUPS, threads, 1, lanes - 1, 0].map(|n| b.index(n));
        let group = b.open_loop(LoopKind::Group, 0, groups);
        let number = b.open_loop(LoopKind::Local, 0, len);
        let start = b.binary(BinaryOp::Mul, group, len);
        let at = b.binary(BinaryOp::Add, start, number);
        // Threads leave the loop one after another: the value is loaded in the last iteration of each.
        let held = b.alloc(Space::Register, Type::scalar(DType::I32), 1);
        let first = b.binary(BinaryOp::And, number, mask);
        let iterations = b.binary(BinaryOp::Add, first, one);
        let turn = b.open_loop(LoopKind::Serial, 0, iterations);
        let back = b.binary(BinaryOp::Sub, at, first);
        let place = b.binary(BinaryOp::Add, back, turn);
        let loaded = b.load(input, place);
        b.store(held, zero, loaded);
        b.close();
        let x = b.load(held, zero);
        let next = b.binary(BinaryOp::Add, number, one);
        let next = b.binary(BinaryOp::And, next, mask);
        let (kind, ty) = (ShuffleKind::Index, b.ty(x));
        let y = b.emit(Op::Shuffle { kind, x, lane: next }, ty);
        b.store(out, at, y);
        b.close();
        b.close();
        let numbers: Vec<Scalar> = (1..=n as i32).map(Scalar::from).collect();
        let got = launched(device, &b.finish(), (DType::I32, n as usize), &numbers)?;
        let expected = |at: i64| numbers[(at - at % lanes + (at + 1) % lanes) as usize];
        if (0..n).zip(&got).any(|(at, &x)| x != expected(at)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the device computes of each row of operands.
fn computed<D: Device>(
    device: &D,
    dtype: DType,
    rows: &[Vec<Scalar>],
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Result<Vec<Scalar>, DeviceError> {
    let (n, operands) = (rows.len(), rows[0].len());
    let mut b = Builder::new("probe");
    let out = b.param(dtype, n as u64, Access::Write);
    let input = b.param(dtype, (n * operands) as u64, Access::Read);
    let [count, width] = [n, operands].map(|x| b.index(x as i64));
    let i = b.open_loop(LoopKind::Group, 0, count);
    let start = b.binary(BinaryOp::Mul, i, width);
    let x: Vec<Value> = (0..operands)
        .map(|k| {
            let k = b.index(k as i64);
            let at = b.binary(BinaryOp::Add, start, k);
            b.load(input, at)
        })
        .collect();
    let y = f(&mut b, &x);
    b.store(out, i, y);
    b.close();
    let numbers: Vec<Scalar> = rows.iter().flatten().copied().collect();
    launched(device, &b.finish(), (dtype, n), &numbers)
}

/// The result of a kernel, of `n` elements, that reads the numbers.
fn launched<D: Device>(
    device: &D,
    kernel: &Kernel,
    (dtype, n): (DType, usize),
    numbers: &[Scalar],
) -> Result<Vec<Scalar>, DeviceError> {
    let kernel = Verified::new(kernel).map_err(CompileError::from);
    let program = kernel.and_then(|kernel| device.compile(&kernel));
    let program = program.map_err(|error| DeviceError::Driver {
        context: "compile a probe".to_owned(),
        reason: error.to_string(),
    })?;
    let size = dtype.size();
    let bytes: Vec<u8> =
        numbers.iter().flat_map(|x| x.bits().to_le_bytes()[..size].to_vec()).collect();
    let mut stream = device.stream()?;
    let (result, source) = (device.alloc(n * size)?, device.alloc(bytes.len())?);
    device.write(&mut stream, &source, 0, &bytes)?;
    device.launch(&mut stream, &program, &[Arg::Buffer(&result, 0), Arg::Buffer(&source, 0)])?;
    let mut got = vec![0; n * size];
    device.read(&mut stream, &result, 0, &mut got)?;
    let element = |chunk: &[u8]| {
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(chunk);
        Scalar::from_bits(dtype, u64::from_le_bytes(wide))
    };
    Ok(got.chunks_exact(size).map(element).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hal::Backend;
    use crate::reference::Reference;

    #[test]
    fn the_interpreter_keeps_subnormals() {
        let device = Reference::default().open(0).unwrap();
        assert_eq!(flushed_subnormals(&device).unwrap(), DTypeSet::NONE);
    }

    #[test]
    fn the_interpreter_rounds_a_multiply_add_once() {
        let found = muladd(&Reference::default().open(0).unwrap()).unwrap();
        assert!(found.rounds_once && found.keeps_subnormals);
    }
}
