//! `divide`: index divisions by constants become a multiplication and a shift.
//!
//! For `0 <= x < 2^31` and a constant `d > 0`, `x / d` is `(x * m) >> s` with `s = 31 +
//! ceil(log2 d)` and `m = ceil(2^s / d)`: the product stays below `2^63` and the error of `m` is
//! too small to reach the next integer (Granlund and Montgomery 1994). Powers of two are a shift
//! and a mask. A hardware division takes tens of cycles and has no vector form; index arithmetic
//! of windows and pooling has one per element. Ranges are those `ir::range` proves.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::dtype::DType;
use crate::ir::Ranges;
use crate::ir::{Kernel, Op, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "divide",
    doc: "turn index divisions by constants into multiplications and shifts",
    reassociates: false,
    sites: |kernel, _| if any(kernel) { vec![Site::whole()] } else { Vec::new() },
    apply: |kernel, _| divide(kernel),
};

/// The dividend and divisor, if the op divides an index by a constant above 1.
fn division(kernel: &Kernel, op: Op) -> Option<(BinaryOp, Value, i64)> {
    let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), x, y } = op else { return None };
    let d = kernel.constant(y).filter(|d| d.dtype() == DType::I64)?.to_i64();
    (d > 1 && d < 1 << 31).then_some((op, x, d))
}

fn any(kernel: &Kernel) -> bool {
    kernel.ops().iter().any(|&op| division(kernel, op).is_some())
}

/// Applies the pass.
pub fn divide(kernel: &Kernel) -> Kernel {
    let ranges = Ranges::of(kernel);
    let mut r = Rebuild::new(kernel);
    for (v, op, _) in kernel.iter() {
        let bounded =
            division(kernel, op).filter(|&(_, x, _)| ranges.get(x).within(0, (1 << 31) - 1));
        let Some((op, x, d)) = bounded else {
            r.copy(v);
            continue;
        };
        let x = r.get(x);
        let lanes = r.out.ty(x).lanes;
        let constant = |r: &mut Rebuild<'_>, c: i64| {
            let c = r.out.constant(Scalar::from(c));
            r.out.splat(c, lanes)
        };
        let log = 64 - (d - 1).leading_zeros() as i64;
        let new = if d == 1 << log && op == BinaryOp::Rem {
            let mask = constant(&mut r, d - 1);
            r.out.binary(BinaryOp::And, x, mask)
        } else {
            let quotient = if d == 1 << log {
                let shift = constant(&mut r, log);
                r.out.binary(BinaryOp::Shr, x, shift)
            } else {
                let shift = 31 + log;
                let factor = ((1i128 << shift) + d as i128 - 1) / d as i128;
                let (factor, shift) = (constant(&mut r, factor as i64), constant(&mut r, shift));
                let product = r.out.binary(BinaryOp::Mul, x, factor);
                r.out.binary(BinaryOp::Shr, product, shift)
            };
            match op {
                BinaryOp::Div => quotient,
                _ => {
                    let by = constant(&mut r, d);
                    let whole = r.out.binary(BinaryOp::Mul, quotient, by);
                    r.out.binary(BinaryOp::Sub, x, whole)
                }
            }
        };
        r.set(v, new);
    }
    r.out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::property_tests;

    #[test]
    fn quotients_and_remainders_are_exact_up_to_two_to_the_31() {
        for d in [2i64, 3, 5, 7, 8, 10, 24, 576, 641, 65_535, 1 << 20, (1 << 31) - 1] {
            let text = format!(
                "kernel k
                 buffer 0 : i64[4096] readwrite
                 buffer 1 : i64[4096] write
                 scalar 0 : i64 0..=2147479551
                 %q param 0 readwrite : i64
                 %r param 1 write : i64
                 %b var 0 : i64
                 %n const 4096 : i64
                 %d const {d} : i64
                 %i loop parallel %n
                 %x add %i, %b : i64
                 %y div %x, %d : i64
                 %z rem %x, %d : i64
                 %s store %q[%i], %y : i64
                 %t store %r[%i], %z : i64
                 %e end %i"
            );
            let kernel: Kernel = text.parse().unwrap();
            let new = divide(&kernel);
            assert!(!new.ops().iter().any(|op| matches!(op, Op::Binary { op: BinaryOp::Div, .. })));
            for base in [0, d.min(1 << 30) * 3 % 2_147_479_551, 2_147_479_551] {
                let buffers = vec![vec![0; 4096 * 8]; 2];
                let run = |kernel| property_tests::run(kernel, &buffers, &[base as u64]);
                assert_eq!(run(&kernel), run(&new), "divided by {d} from {base}");
            }
        }
    }
}
