//! `legalize`: makes a kernel one that the device can express. Mandatory, runs last.
//!
//! Arithmetic on dtypes the device does not compute in happens in [`Caps::compute_dtype`], with
//! casts around each op: integers wrap as they would have, halves round after every op, so the
//! result is that of the interpreter. Ops the device lacks are expanded by
//! [`decompose`](crate::decompose). What no rewriting can give (atomics, storage, a dtype without
//! a wider one) is reported. Long float sums are [compensated](crate::passes::compensate). Emitters may assume all of this and never decide anything. Those for
//! languages without vectors lower what remains to 32-bit [`lower_to_32_bit`] first.

mod groups;
mod iterations;
pub mod lower_to_32_bit;
pub mod shuffles;

pub use iterations::iterations;

use crate::caps::Caps;
use crate::decompose::Expand;
use crate::dtype::DType;
use crate::error::CompileError;
use crate::ir::{Builder, Kernel, Op, Type, Value, mma};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::passes::compensate;
use crate::passes::rebuild::Rebuild;
use crate::scalar::Scalar;

/// The kernel in terms of what the device has.
///
/// # Errors
/// When the kernel needs what the device lacks and nothing can replace.
pub fn legalize(kernel: &Kernel, caps: &Caps) -> Result<Kernel, CompileError> {
    let error = |log: String| CompileError::new(kernel, log);
    let spread = groups::spread(kernel, caps);
    let kernel = spread.as_ref().unwrap_or(kernel);
    let compensated = compensate::compensate(kernel);
    let kernel = compensated.as_ref().unwrap_or(kernel);
    let bounded = match caps.max_iterations {
        0 => None,
        _ => Some(
            iterations::bounded(kernel, caps)
                .map_err(|missing| error(format!("the device has no {missing}")))?,
        ),
    };
    let kernel = bounded.as_ref().unwrap_or(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, ty) in kernel.iter() {
        match legal(&mut r, op, ty, caps) {
            Ok(Some(new)) => r.set(v, new),
            Ok(None) => {
                r.copy(v);
            }
            Err(missing) => {
                return Err(error(format!(
                    "the device has no {missing}, needed by {v}{}",
                    advice(ty)
                )));
            }
        }
    }
    Ok(r.out.finish())
}

/// What to do where a device lacks the dtype of a value.
fn advice(ty: Type) -> &'static str {
    match ty.dtype {
        DType::F64 => ": cast to f32, or compute on another device",
        _ => "",
    }
}

/// The new value for an op that cannot be copied as it stands.
fn legal(r: &mut Rebuild<'_>, op: Op, ty: Type, caps: &Caps) -> Result<Option<Value>, String> {
    match op {
        Op::Unary { op, x } => {
            let x = r.get(x);
            unary(&mut r.out, caps, op, x).map(Some)
        }
        Op::Binary { op, x, y } => {
            let (x, y) = (r.get(x), r.get(y));
            binary(&mut r.out, caps, op, x, y).map(Some)
        }
        Op::Ternary { op: op @ TernaryOp::MulAdd, x, y, z } => {
            let operands = [r.get(x), r.get(y), r.get(z)];
            ternary(&mut r.out, caps, op, operands).map(Some)
        }
        Op::Fold { op, x } => {
            let x = r.get(x);
            fold(&mut r.out, caps, op, x).map(Some)
        }
        Op::Lanes => {
            let wide = caps.compute_dtype(ty.dtype);
            let lanes = r.out.emit(Op::Lanes, ty.with(wide));
            expanded(&mut r.out, caps, |e| e.cast(ty.dtype, lanes)).map(Some)
        }
        Op::Param { .. } | Op::Alloc { .. } if !caps.storage.contains(ty.dtype) => {
            Err(format!("storage of {}", ty.dtype))
        }
        Op::Const { .. } | Op::Cast { .. } | Op::Bitcast { .. } | Op::Var { .. }
            if !caps.storage.contains(ty.dtype) =>
        {
            Err(format!("values of {}", ty.dtype))
        }
        Op::Cast { x } => {
            let x = r.get(x);
            expanded(&mut r.out, caps, |e| e.cast(ty.dtype, x)).map(Some)
        }
        Op::Atomic { op, order, .. } => {
            caps.has_scope(order)?;
            let has = caps.has_atomic(op, ty.dtype);
            if has { Ok(None) } else { Err(format!("atomic {op} on {ty}")) }
        }
        Op::Load { order, .. } | Op::Store { order, .. }
            if let Err(missing) = caps.has_order(order, ty.dtype) =>
        {
            Err(missing.to_owned())
        }
        _ if !caps.storage.contains(ty.dtype) && !caps.compute.contains(ty.dtype) => {
            Err(format!("values of {}", ty.dtype))
        }
        Op::Shuffle { .. } if caps.subgroup.1 == 0 => Err("subgroup operations".to_owned()),
        Op::Mma { row, .. } if !mma::ROWS[row as usize].is_in(caps) => {
            Err("matrix instructions".to_owned())
        }
        _ => Ok(None),
    }
}

/// The dtype an op on `dtype` is computed in; an error where the device has none.
fn compute(caps: &Caps, dtype: DType, op: &str) -> Result<DType, String> {
    let wide = caps.compute_dtype(dtype);
    if dtype == DType::Bool {
        Ok(dtype)
    } else if caps.compute.contains(wide) {
        Ok(wide)
    } else {
        Err(format!("{op} on {dtype}"))
    }
}

/// Emits through an [`Expand`] and reports what it could not.
fn expanded(
    b: &mut Builder,
    caps: &Caps,
    f: impl FnOnce(&mut Expand<'_>) -> Value,
) -> Result<Value, String> {
    let mut expand = Expand::new(b, caps);
    let value = f(&mut expand);
    expand.missing().map_or(Ok(value), Err)
}

fn unary(b: &mut Builder, caps: &Caps, op: UnaryOp, x: Value) -> Result<Value, String> {
    let wide = compute(caps, b.ty(x).dtype, op.name())?;
    expanded(b, caps, |e| e.through(wide, &[x], |e, v| e.unary(op, v[0])))
}

fn binary(b: &mut Builder, caps: &Caps, op: BinaryOp, x: Value, y: Value) -> Result<Value, String> {
    if let Some(infinity) = reciprocal_of_zero(b, op, y) {
        return binary(b, caps, BinaryOp::Mul, x, infinity);
    }
    let wide = compute(caps, b.ty(x).dtype, op.name())?;
    expanded(b, caps, |e| e.through(wide, &[x, y], |e, v| e.binary(op, v[0], v[1])))
}

/// For a division by a constant zero, the infinity whose product with any number is the quotient.
/// Mesa's compiler makes NaN of such a division when it divides in `f64` (seen with 25.0).
fn reciprocal_of_zero(b: &mut Builder, op: BinaryOp, y: Value) -> Option<Value> {
    let ty = b.ty(y);
    if op != BinaryOp::Div || !ty.dtype.is_float() {
        return None;
    }
    let mut source = y;
    while let Op::Cast { x } | Op::Splat { x } = b.op(source) {
        source = x;
    }
    let zero = b.as_constant(source)?.cast(ty.dtype).to_f64();
    let infinity = Scalar::from_f64(ty.dtype, f64::INFINITY.copysign(zero));
    let infinity = (zero == 0.0).then(|| b.constant(infinity))?;
    Some(b.splat(infinity, ty.lanes))
}

fn ternary(
    b: &mut Builder,
    caps: &Caps,
    op: TernaryOp,
    operands: [Value; 3],
) -> Result<Value, String> {
    let wide = compute(caps, b.ty(operands[0]).dtype, op.name())?;
    expanded(b, caps, |e| e.through(wide, &operands, |e, v| e.ternary(op, v[0], v[1], v[2])))
}

/// Folds in the wider dtype where rounding after each step makes no difference; else lane by
/// lane, in the order the interpreter combines them.
fn fold(b: &mut Builder, caps: &Caps, op: BinaryOp, x: Value) -> Result<Value, String> {
    let ty = b.ty(x);
    let wide = compute(caps, ty.dtype, op.name())?;
    if wide == ty.dtype || op.is_exactly_associative(ty.dtype) {
        return expanded(b, caps, |e| {
            let x = e.cast(wide, x);
            let y = e.fold(op, x);
            e.cast(ty.dtype, y)
        });
    }
    expanded(b, caps, |e| {
        e.fold_lanes(x, |e, x, y| e.through(wide, &[x, y], |e, v| e.binary(op, v[0], v[1])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DTypeSet;
    use crate::ir::{Access, LoopKind, verify_for};
    use crate::passes::property_tests::run;

    /// `out[i] = op(x[i], y[i])` for all pairs of the 256 codes of an 8-bit dtype.
    fn pairs(dtype: DType, op: BinaryOp) -> (Kernel, Vec<Vec<u8>>) {
        let n = 1 << 16;
        let mut b = Builder::new("pairs");
        let [p, q] = [0; 2].map(|_| b.param(dtype, n, Access::Read));
        let out = b.param(op.result(dtype), n, Access::Write);
        let len = b.index(n as i64);
        let i = b.open_loop(LoopKind::Parallel, 0, len);
        let (x, y) = (b.load(p, i), b.load(q, i));
        let z = b.binary(op, x, y);
        b.store(out, i, z);
        b.close();
        let x = (0..n).map(|i| (i >> 8) as u8).collect();
        let y = (0..n).map(|i| i as u8).collect();
        (b.finish(), vec![x, y, vec![0; n as usize]])
    }

    #[test]
    fn narrow_integers_wrap_as_if_native() {
        let mut caps = Caps::default();
        caps.binary[BinaryOp::Pow as usize] = DTypeSet::NONE;
        caps.binary[BinaryOp::Rem as usize] = DTypeSet::NONE;
        for dtype in [DType::U8, DType::I8] {
            let ops = BinaryOp::ALL.iter().filter(|op| op.domain().contains(dtype));
            for &op in ops {
                let (kernel, input) = pairs(dtype, op);
                let legal = legalize(&kernel, &caps).unwrap();
                verify_for(&legal, &caps).unwrap();
                assert_eq!(run(&legal, &input, &[]), run(&kernel, &input, &[]), "{op} on {dtype}");
            }
        }
    }

    #[test]
    fn halves_round_after_every_op() {
        let n = 1u64 << 16;
        for dtype in [DType::F16, DType::BF16] {
            let mut b = Builder::new("halves");
            let p = b.param(dtype, n, Access::Read);
            let out = b.param(dtype, n, Access::Write);
            let len = b.index(n as i64);
            let i = b.open_loop(LoopKind::Parallel, 0, len);
            let x = b.load(p, i);
            let y = b.binary(BinaryOp::Mul, x, x);
            let y = b.binary(BinaryOp::Sub, y, x);
            let y = b.unary(UnaryOp::Floor, y);
            let y = b.binary(BinaryOp::Max, y, x);
            b.store(out, i, y);
            b.close();
            let kernel = b.finish();
            let codes = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
            let input = vec![codes, vec![0; 2 * n as usize]];
            let legal = legalize(&kernel, &Caps::default()).unwrap();
            verify_for(&legal, &Caps::default()).unwrap();
            let (a, b) = (run(&kernel, &input, &[]), run(&legal, &input, &[]));
            let bound = crate::passes::property_tests::compare(&kernel, (&a, &b), None);
            assert_eq!(bound, Ok(()), "{dtype}");
        }
    }

    #[test]
    fn divisions_by_a_constant_zero_become_products() {
        let kernel: Kernel = "kernel k
            buffer 0 : f32[8] read\nbuffer 1 : f32[8] write\nbuffer 2 : f32[8] write
            %x param 0 read : f32\n%y param 1 write : f32\n%z param 2 write : f32
            %n const 0 : i64\n%i const 0 : i32\n%m const -0.0 : f32
            %v splat %i : i32x8\n%w cast %v : f32x8\n%u splat %m : f32x8
            %a load %x[%n] : f32x8
            %b div %a, %w : f32x8\n%c div %a, %u : f32x8
            %s store %y[%n], %b : f32x8\n%t store %z[%n], %c : f32x8"
            .parse()
            .unwrap();
        let caps = Caps { vector_bytes: 32, ..Caps::default() };
        let legal = legalize(&kernel, &caps).unwrap();
        assert!(!legal.to_string().contains("div"), "{legal}");
        let x = [0.0, -0.0, 1.0, -2.5, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40];
        let x: Vec<u8> = x.into_iter().flat_map(f32::to_le_bytes).collect();
        let buffers = vec![x, vec![0; 32], vec![0; 32]];
        let (before, after) = (run(&kernel, &buffers, &[]), run(&legal, &buffers, &[]));
        assert_eq!(
            crate::passes::property_tests::compare(&kernel, (&before, &after), None),
            Ok(())
        );
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let mut caps = Caps::default();
        caps.compute = caps.compute.without(DTypeSet::of(&[DType::F64]));
        let mut b = Builder::new("wide");
        let p = b.param(DType::F64, 1, Access::ReadWrite);
        let zero = b.index(0);
        let x = b.load(p, zero);
        let y = b.binary(BinaryOp::Add, x, x);
        b.store(p, zero, y);
        let error = legalize(&b.finish(), &caps).unwrap_err().to_string();
        assert!(error.contains("wide") && error.contains("add on f64"), "{error}");
    }

    /// No rewriting makes an access atomic, so an emitter must never be asked to.
    #[test]
    fn accesses_that_no_driver_orders_are_refused_by_both() {
        use crate::caps::Progress;
        let ints = DTypeSet::of(&[DType::U32]);
        let caps = Caps { atomics: ints, progress: Progress::None, ..Caps::default() };
        let whole = Caps {
            atomics: DTypeSet::ALL,
            atomic_add: DTypeSet::ALL,
            device_scope: true,
            progress: Progress::Occupancy,
            ..Caps::default()
        };
        for (dtype, access, missing) in [
            ("f32", "%c load.relaxed %p[%n]", Some("atomic accesses")),
            ("f32", "%c store.relaxed %p[%n], %x", Some("atomic accesses")),
            ("u32", "%c load.relaxed %p[%n]", None),
            ("u32", "%c store.relaxed %p[%n], %x", None),
            ("u32", "%c load.acquire_spin %p[%n]", Some("may wait")),
            ("u32", "%c load.acquire %p[%n]", Some("device scope")),
            ("u32", "%c store.release %p[%n], %x", Some("device scope")),
            ("f32", "%c load %p[%n]", None),
            ("f32", "%c store.streaming %p[%n], %x", None),
        ] {
            let text = format!(
                "kernel orders\nbuffer 0 : {dtype}[1] readwrite\n%p param 0 readwrite : {dtype}
                 %n const 0 : i64\n%x const 1 : {dtype}\n{access} : {dtype}"
            );
            let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
            let (legal, verified) = (legalize(&kernel, &caps), verify_for(&kernel, &caps));
            match missing {
                None => assert!(legal.is_ok() && verified.is_ok(), "{text}\n{legal:?}"),
                Some(missing) => {
                    let [a, b] =
                        [legal.unwrap_err().to_string(), verified.unwrap_err().to_string()];
                    assert!(a.contains(missing) && b.contains(missing), "{a}\n{b}\n{text}");
                }
            }
            legalize(&kernel, &whole).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
    }
}
