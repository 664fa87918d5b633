//! `narrow`: index arithmetic in 32 bits where every value provably fits.
//!
//! Indices are `i64`, which GPUs compute in two or more instructions, and some devices not at all.
//! A value is narrowed if [`Ranges`] says that it and all its operands fit `i32`: then no step can
//! wrap, and each op gives the same number in either width. Arguments, constants and counters of
//! loops are converted where they are defined (loops stay as they are, so that other passes know
//! them), and so is the smaller or larger of a wide number and a bound; what is needed as `i64` after all is converted back. Accesses take `i32` indices.
//! With [`with_loops`], for emitters, loops count in `i32`.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::dtype::DType;
use crate::ir::{Kernel, LoopKind, Op, Ranges, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "narrow",
    doc: "compute indices in 32 bits where they fit",
    reassociates: false,
    sites: |kernel, _| if any(kernel) { vec![Site::whole()] } else { Vec::new() },
    apply: |kernel, _| narrow(kernel),
};

/// Longest loops that count in 32 bits: also one that strides by its length does not wrap.
pub(crate) const LONGEST: i128 = (1 << 30) - 1;

fn is_wide(ty: Type) -> bool {
    ty.dtype == DType::I64
}

/// Whether there is 64-bit integer arithmetic.
fn any(kernel: &Kernel) -> bool {
    kernel.iter().any(|(_, op, ty)| {
        is_wide(ty) && matches!(op, Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. })
    })
}

/// The values that can be held in 32 bits, loops included or only their counters; and lengths of bound loops that are computed
/// in 32 bits and converted back where they are defined, since they must be known at launch.
fn small(kernel: &Kernel, loops: bool) -> [Vec<bool>; 2] {
    let ranges = Ranges::of(kernel);
    let [mut small, mut converted] = [0; 2].map(|_| vec![false; kernel.ops().len()]);
    // Lengths of bound loops stay where they are.
    let lengths = kernel.ops().iter().filter_map(|op| match *op {
        Op::Loop { kind: LoopKind::Group | LoopKind::Local, len, .. } if !loops => Some(len),
        _ => None,
    });
    let lengths: Vec<Value> = lengths.filter(|&len| kernel.constant(len).is_none()).collect();
    for (v, op, ty) in kernel.iter() {
        let all = op.operands().all(|x| small[x.idx()]);
        let follows = match op {
            Op::Loop { len, .. } if loops => all && ranges.get(len).within(-LONGEST, LONGEST),
            Op::Const { .. } | Op::Var { .. } | Op::Loop { .. } | Op::Lanes => true,
            Op::Cast { x } => kernel.ty(x).dtype.is_int() && kernel.ty(x).dtype.bits() <= 32,
            Op::Unary { op, .. } => all && matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Not),
            // The result is converted, whatever the operands.
            Op::Binary { op: BinaryOp::Min | BinaryOp::Max, .. } => true,
            // By more than 31 bits only wide numbers are shifted.
            Op::Binary { op: BinaryOp::Shl | BinaryOp::Shr, y, .. } => {
                all && ranges.get(y).within(0, 31)
            }
            Op::Binary { op, .. } => all && !matches!(op, BinaryOp::Pow | BinaryOp::Gcd),
            Op::Ternary { op: TernaryOp::Where, y, z, .. } => small[y.idx()] && small[z.idx()],
            Op::Guard { index, .. } => small[index.idx()],
            Op::Splat { .. } | Op::Extract { .. } => all,
            _ => false,
        };
        let fits = ranges.get(v).within(i32::MIN.into(), i32::MAX.into());
        let narrow = is_wide(ty) && follows && fits;
        let is_length = lengths.contains(&v);
        small[v.idx()] = narrow && !is_length;
        converted[v.idx()] = narrow && is_length && all && matches!(op, Op::Binary { .. });
    }
    [small, converted]
}

/// Applies the pass.
pub fn narrow(kernel: &Kernel) -> Kernel {
    rewritten(kernel, false)
}

/// The pass for kernels that no other pass sees afterwards: loops are narrowed themselves.
pub fn with_loops(kernel: &Kernel) -> Kernel {
    rewritten(kernel, true)
}

fn rewritten(kernel: &Kernel, loops: bool) -> Kernel {
    let [small, converted] = small(kernel, loops);
    let mut r = Rebuild::new(kernel);
    for (v, op, ty) in kernel.iter() {
        let narrowed = ty.with(DType::I32);
        let new = match op {
            // An access takes an index of either width, but values of its own type.
            Op::Load { .. } | Op::Panel { .. } => Some(r.copy(v)),
            Op::Store { order, buf, index, value } => {
                let (buf, index, value) = (r.get(buf), r.get(index), wide(&mut r, value));
                Some(r.out.push(Op::Store { order, buf, index, value }, ty))
            }
            Op::Atomic { op, order, buf, index, value } => {
                let (buf, index, value) = (r.get(buf), r.get(index), wide(&mut r, value));
                Some(r.out.push(Op::Atomic { op, order, buf, index, value }, ty))
            }
            // The number is the same in both.
            Op::Cast { x } if !small[v.idx()] => {
                let x = r.get(x);
                Some(r.out.cast(ty.dtype, x))
            }
            Op::Binary { op, x, y } if op.is_comparison() => {
                let (x, y) = match small[x.idx()] && small[y.idx()] {
                    true => (r.get(x), r.get(y)),
                    false => (wide(&mut r, x), wide(&mut r, y)),
                };
                Some(r.out.emit(Op::Binary { op, x, y }, ty))
            }
            Op::Guard { .. } if !small[v.idx()] => Some(r.copy(v)),
            Op::Loop { .. } if loops && small[v.idx()] => {
                let op = op.map(|x| r.get(x));
                Some(r.out.push(op, narrowed))
            }
            Op::Var { .. } | Op::Loop { .. } if small[v.idx()] => {
                let op = op.map(|x| wide(&mut r, x));
                let defined = r.out.push(op, ty);
                Some(r.out.cast(DType::I32, defined))
            }
            Op::Const { .. } if small[v.idx()] => {
                // The wide one stays where it was for lengths, which must be known at launch.
                r.copy(v);
                let constant = kernel.constant(v).map(|c| c.cast(DType::I32));
                constant.map(|c| r.out.constant(c))
            }
            Op::Cast { x } => {
                let x = r.get(x);
                Some(r.out.cast(DType::I32, x))
            }
            // The region is the loop, not the counter that stands for it.
            Op::End { .. } => {
                r.out.close();
                None
            }
            Op::Binary { x, y, .. } if small[v.idx()] && !(small[x.idx()] && small[y.idx()]) => {
                let op = op.map(|x| wide(&mut r, x));
                let new = r.out.emit(op, ty);
                Some(r.out.cast(DType::I32, new))
            }
            _ if small[v.idx()] || converted[v.idx()] => {
                let op = op.map(|x| r.get(x));
                let new = r.out.emit(op, narrowed);
                Some(if converted[v.idx()] { r.out.cast(ty.dtype, new) } else { new })
            }
            _ => {
                let op = op.map(|x| wide(&mut r, x));
                Some(r.out.emit(op, ty))
            }
        };
        if let Some(new) = new {
            r.set(v, new);
        }
    }
    r.out.finish()
}

/// The new value for an old one, of the old one's type.
fn wide(r: &mut Rebuild<'_>, old: Value) -> Value {
    let (dtype, new) = (r.src.ty(old).dtype, r.get(old));
    // Storage and conditions are what they were.
    if dtype == DType::I64 && r.out.ty(new).dtype == DType::I32 {
        r.out.cast(DType::I64, new)
    } else {
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::verify;

    fn kernel(scale: i64) -> Kernel {
        let text = format!(
            "kernel k
             buffer 0 : i64[4096] readwrite
             buffer 1 : f32[4096] write
             scalar 0 : i64 0..=15
             %p param 0 readwrite : i64
             %q param 1 write : f32
             %b var 0 : i64
             %n const 64 : i64
             %s const {scale} : i64
             %m const 4095 : i64
             %i loop serial %n
             %x mul %i, %s : i64
             %y add %x, %b : i64
             %z and %y, %m : i64
             %v load %p[%z] : i64
             %w add %v, %z : i64
             %c lt %y, %m : bool
             %f cast %z : f32
             %g guard %z, %c : i64
             %st store %q[%g], %f : f32
             %su store %p[%z], %w : i64
             %e end %i"
        );
        text.parse().unwrap()
    }

    fn wide_ops(kernel: &Kernel) -> usize {
        let is = |op: &Op| matches!(op, Op::Binary { op, .. } if !op.is_comparison());
        kernel.iter().filter(|(_, op, ty)| is(op) && is_wide(*ty)).count()
    }

    #[test]
    fn what_fits_is_narrowed_and_means_the_same() {
        // The multiples fit, or they do not; the sum with data never does.
        for (scale, left) in [(61, 1), (1 << 40, 4)] {
            let kernel = kernel(scale);
            for (new, counts) in [(narrow(&kernel), DType::I64), (with_loops(&kernel), DType::I32)]
            {
                verify(&new).unwrap_or_else(|e| panic!("{e}\n{new}"));
                assert_eq!(wide_ops(&new), left, "{new}");
                let is_loop = |op: Op| matches!(op, Op::Loop { .. });
                assert!(new.iter().all(|(_, op, ty)| !is_loop(op) || ty.dtype == counts), "{new}");
                let buffers = crate::passes::property_tests::inputs(
                    &kernel,
                    &mut crate::passes::property_tests::Rng(3),
                );
                let run = |k| crate::passes::property_tests::run(k, &buffers, &[7]);
                assert_eq!(run(&kernel), run(&new));
            }
        }
    }

    /// Emitters get no shift by more than a number has bits.
    #[test]
    fn long_shifts_stay_wide() {
        let text = |shift: i64| {
            format!(
                "kernel k
                 buffer 0 : i64[64] write
                 %p param 0 write : i64
                 %n const 64 : i64
                 %s const {shift} : i64
                 %i loop serial %n
                 %x shr %i, %s : i64
                 %st store %p[%i], %x : i64
                 %e end %i"
            )
        };
        for (shift, left) in [(3, 0), (31, 0), (32, 1), (63, 1)] {
            let kernel: Kernel = text(shift).parse().unwrap();
            for new in [narrow(&kernel), with_loops(&kernel)] {
                verify(&new).unwrap_or_else(|e| panic!("{e}\n{new}"));
                assert_eq!(wide_ops(&new), left, "{new}");
            }
        }
    }

    /// The minimum of a wide number and a bound is narrow.
    #[test]
    fn what_follows_a_bound_is_narrow() {
        let kernel: Kernel = "kernel k
             buffer 0 : i64[4096] readwrite
             %p param 0 readwrite : i64
             %n const 64 : i64
             %h const 1099511627776 : i64
             %m const 4000 : i64
             %d const 7 : i64
             %i loop serial %n
             %x mul %i, %h : i64
             %y min %x, %m : i64
             %q div %y, %d : i64
             %a add %q, %i : i64
             %v load %p[%a] : i64
             %st store %p[%i], %v : i64
             %e end %i"
            .parse()
            .unwrap();
        for new in [narrow(&kernel), with_loops(&kernel)] {
            verify(&new).unwrap_or_else(|e| panic!("{e}\n{new}"));
            assert_eq!(wide_ops(&new), 2, "{new}");
            let mut rng = crate::passes::property_tests::Rng(3);
            let buffers = crate::passes::property_tests::inputs(&kernel, &mut rng);
            let run = |k| crate::passes::property_tests::run(k, &buffers, &[]);
            assert_eq!(run(&kernel), run(&new));
        }
    }
}
