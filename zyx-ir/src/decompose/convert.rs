//! Conversions that rest on the device for what every device does alike: between integers, from
//! integers to floats, and from floats to the integers that they are within the range of.
//!
//! * A float that becomes an integer is replaced by zero where it is NaN or beyond the range, and
//!   the bound selected.
//! * Halves are taken apart and put together by integer operations: drivers fold a conversion to
//!   16 bits and back away, and round it as they like.
//! * What `f32` does not hold goes to halves through `f32` rounded to odd: truncated, with the last
//!   bit set if anything was cut off.

use super::Expand;
use crate::dtype::{Class, DType};
use crate::ir::Value;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// Bits of an `f32`.
const INFINITY: i64 = 0x7f80_0000;

impl Expand<'_> {
    /// The value of `x` converted, rounded once.
    pub fn cast(&mut self, to: DType, x: Value) -> Value {
        let from = self.b.ty(x).dtype;
        let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        if !self.caps.partial_casts || from == to || self.b.as_constant(x).is_some() {
            return self.b.cast(to, x);
        }
        match (from, to) {
            (DType::F16 | DType::BF16, _) => {
                let single = self.unpacked(x);
                self.cast(to, single)
            }
            (DType::Bool, _) if is_half(to) => {
                let [one, zero] = [1, 0].map(|n| self.int(to, n, x));
                self.select(x, one, zero)
            }
            _ if is_half(to) => {
                let single = self.single(to, x);
                self.packed(to, single)
            }
            _ if from.is_float() && to.is_int() => self.saturated(to, x),
            _ => self.b.cast(to, x),
        }
    }

    /// A literal of any dtype with the lanes of `like`.
    pub(super) fn literal(&mut self, x: Scalar, like: Value) -> Value {
        let lanes = self.b.ty(like).lanes;
        let x = self.b.constant(x);
        self.b.splat(x, lanes)
    }

    /// `op` with a small constant.
    pub(super) fn by(&mut self, op: BinaryOp, x: Value, n: i64) -> Value {
        let n = self.int(self.b.ty(x).dtype, n, x);
        self.b.binary(op, x, n)
    }

    /// 1 where a truth value holds, else 0.
    pub(super) fn bit(&mut self, dtype: DType, cond: Value) -> Value {
        let [one, zero] = [1, 0].map(|n| self.int(dtype, n, cond));
        self.select(cond, one, zero)
    }

    /// A float truncated to an integer.
    fn saturated(&mut self, to: DType, x: Value) -> Value {
        let from = self.b.ty(x).dtype;
        let (lowest, highest) = (Scalar::lowest(to), Scalar::highest(to));
        let limit = self.k((highest.to_i128() + 1) as f64, x);
        let least = self.k(lowest.to_i128() as f64, x);
        let is_above = self.binary(BinaryOp::Le, limit, x);
        let is_below = self.lt(x, least);
        let bits = self.bits(x);
        let rest = if from.bits() == 64 { i64::MAX } else { i32::MAX.into() };
        let magnitude = self.by(BinaryOp::And, bits, rest);
        let infinity = self.k(f64::INFINITY, x);
        let infinity = self.bits(infinity);
        let is_nan = self.lt(infinity, magnitude);
        let outside = self.binary(BinaryOp::Or, is_above, is_below);
        let outside = self.binary(BinaryOp::Or, outside, is_nan);
        let zero = self.k(0.0, x);
        let safe = self.select(outside, zero, x);
        let inside = self.b.cast(to, safe);
        let [lowest, highest] = [lowest, highest].map(|bound| self.literal(bound, x));
        let bounded = self.select(is_above, highest, inside);
        self.select(is_below, lowest, bounded)
    }

    /// A half as `f32`, exactly.
    fn unpacked(&mut self, x: Value) -> Value {
        let from = self.b.ty(x).dtype;
        let bits = self.b.bitcast(DType::U16, x);
        let bits = self.b.cast(DType::U32, bits);
        if from == DType::BF16 {
            let bits = self.by(BinaryOp::Shl, bits, 16);
            return self.b.bitcast(DType::F32, bits);
        }
        let magnitude = self.by(BinaryOp::And, bits, 0x7fff);
        let placed = self.by(BinaryOp::Shl, magnitude, 13);
        let normal = self.by(BinaryOp::Add, placed, 112 << 23);
        let special = self.by(BinaryOp::Or, placed, INFINITY);
        // Below the normal numbers: a multiple of 2^-24.
        let whole = self.b.cast(DType::F32, magnitude);
        let unit = self.k((-24f64).exp2(), whole);
        let small = self.mul(whole, unit);
        let small = self.b.bitcast(DType::U32, small);
        let is_small = self.by(BinaryOp::Lt, magnitude, 0x400);
        let is_finite = self.by(BinaryOp::Lt, magnitude, 0x7c00);
        let result = self.select(is_finite, normal, special);
        let result = self.select(is_small, small, result);
        let sign = self.by(BinaryOp::And, bits, 0x8000);
        let sign = self.by(BinaryOp::Shl, sign, 16);
        let result = self.binary(BinaryOp::Or, result, sign);
        self.b.bitcast(DType::F32, result)
    }

    /// `f32` rounded to the nearest half, ties to even.
    fn packed(&mut self, to: DType, x: Value) -> Value {
        let bits = self.b.bitcast(DType::U32, x);
        let magnitude = self.by(BinaryOp::And, bits, 0x7fff_ffff);
        let infinity = self.int(DType::U32, INFINITY, x);
        let is_nan = self.lt(infinity, magnitude);
        let result = if to == DType::BF16 {
            let rounded = self.rounded(bits, 16);
            let cut = self.by(BinaryOp::Shr, bits, 16);
            let quiet = self.by(BinaryOp::Or, cut, 0x40);
            self.select(is_nan, quiet, rounded)
        } else {
            let rounded = self.rounded(magnitude, 13);
            let normal = self.by(BinaryOp::Sub, rounded, 112 << 10);
            let most = self.int(DType::U32, 0x7c00, x);
            let overflows = self.lt(most, normal);
            let normal = self.select(overflows, most, normal);
            // Below the normal numbers: adding 1/2, whose last place is 2^-24, rounds to multiples.
            let absolute = self.b.bitcast(DType::F32, magnitude);
            let half = self.k(0.5, x);
            let small = self.add(absolute, half);
            let small = self.b.bitcast(DType::U32, small);
            let small = self.by(BinaryOp::Sub, small, 0x3f00_0000);
            let is_small = self.by(BinaryOp::Lt, magnitude, 0x3880_0000);
            let result = self.select(is_small, small, normal);
            let nan = self.int(DType::U32, 0x7e00, x);
            let result = self.select(is_nan, nan, result);
            let sign = self.by(BinaryOp::Shr, bits, 16);
            let sign = self.by(BinaryOp::And, sign, 0x8000);
            self.binary(BinaryOp::Or, result, sign)
        };
        let bits = self.b.cast(DType::U16, result);
        self.b.bitcast(to, bits)
    }

    /// `x >> places`, rounded to nearest even: half of what is cut off is added, less one unless
    /// the last kept bit is odd.
    pub(super) fn rounded(&mut self, x: Value, places: i64) -> Value {
        let odd = self.by(BinaryOp::Shr, x, places);
        let odd = self.by(BinaryOp::And, odd, 1);
        let sum = self.by(BinaryOp::Add, x, (1 << (places - 1)) - 1);
        let sum = self.b.binary(BinaryOp::Add, sum, odd);
        self.by(BinaryOp::Shr, sum, places)
    }

    /// `x` as `f32` on its way to the half `to`: rounded to odd unless it either fits or, beyond
    /// 2^24, overflows `f16` anyway.
    fn single(&mut self, to: DType, x: Value) -> Value {
        let from = self.b.ty(x).dtype;
        match from.class() {
            Class::Float if from == DType::F64 => self.odd_from_double(x),
            Class::Signed | Class::Unsigned if from.bits() >= 32 && to == DType::BF16 => {
                self.odd_from_integer(x)
            }
            _ => self.b.cast(DType::F32, x),
        }
    }

    /// By magnitude: moved down until 24 bits hold it, so that the conversion is exact.
    fn odd_from_integer(&mut self, x: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        let unsigned = if dtype.bits() == 64 { DType::U64 } else { DType::U32 };
        let magnitude = if dtype.is_signed() { self.abs(x) } else { x };
        let mut kept = self.b.bitcast(unsigned, magnitude);
        let one = self.b.constant(Scalar::from(1f32));
        let mut scale = self.b.splat(one, self.b.ty(x).lanes);
        // Bits that are too many, and places to move by; at least 16 bits stay.
        let all: &[(i64, i64)] = &[(40, 16), (40, 16), (32, 8), (24, 8)];
        for &(bits, places) in if dtype.bits() == 64 { all } else { &all[3..] } {
            let many = self.int(unsigned, (1 << bits) - 1, x);
            let is_long = self.lt(many, kept);
            let moved = self.by(BinaryOp::Shr, kept, places);
            let moved = self.sticky(moved, kept, places);
            kept = self.select(is_long, moved, kept);
            let factor = self.k((places as f64).exp2(), scale);
            let larger = self.mul(scale, factor);
            scale = self.select(is_long, larger, scale);
        }
        let word = self.b.cast(DType::U32, kept);
        let float = self.b.cast(DType::F32, word);
        let float = self.mul(float, scale);
        if !dtype.is_signed() {
            return float;
        }
        let is_negative = self.by(BinaryOp::Lt, x, 0);
        let negated = self.neg(float);
        self.select(is_negative, negated, float)
    }

    /// From the bits alone: drivers take the way to `f32` and back for no change.
    fn odd_from_double(&mut self, x: Value) -> Value {
        let all = self.b.bitcast(DType::U64, x);
        let bits = self.by(BinaryOp::And, all, i64::MAX);
        // Normal as `f32`: 29 bits are cut off, and the exponent starts elsewhere.
        let placed = self.by(BinaryOp::Sub, bits, 896 << 52);
        let kept = self.by(BinaryOp::Shr, placed, 29);
        let normal = self.sticky(kept, bits, 29);
        // Subnormal: a whole number of the smallest steps. Of zero the last bit is set too, which
        // no half holds.
        let exponent = self.by(BinaryOp::Shr, bits, 52);
        let fraction = self.by(BinaryOp::And, bits, (1 << 52) - 1);
        let fraction = self.by(BinaryOp::Or, fraction, 1 << 52);
        let last = self.int(DType::U64, 926, x);
        let places = self.b.binary(BinaryOp::Sub, last, exponent);
        let most = self.int(DType::U64, 63, x);
        let is_short = self.lt(places, most);
        let places = self.select(is_short, places, most);
        let steps = self.b.binary(BinaryOp::Shr, fraction, places);
        let back = self.b.binary(BinaryOp::Shl, steps, places);
        let differs = self.binary(BinaryOp::Ne, back, fraction);
        let differs = self.bit(DType::U64, differs);
        let small = self.binary(BinaryOp::Or, steps, differs);
        let is_small = self.by(BinaryOp::Lt, bits, 897 << 52);
        let number = self.select(is_small, small, normal);
        let [infinity, nan] = [INFINITY, 0x7fc0_0000].map(|n| self.int(DType::U64, n, x));
        let limit = self.int(DType::U64, 2047 << 52, x);
        let is_nan = self.lt(limit, bits);
        let special = self.select(is_nan, nan, infinity);
        let is_finite = self.by(BinaryOp::Lt, bits, 1151 << 52);
        let number = self.select(is_finite, number, special);
        let sign = self.by(BinaryOp::Shr, all, 63);
        let sign = self.by(BinaryOp::Shl, sign, 31);
        let number = self.binary(BinaryOp::Or, number, sign);
        let number = self.b.cast(DType::U32, number);
        self.b.bitcast(DType::F32, number)
    }

    /// `kept`, with its last bit set if any of the lowest `places` bits of `x` is.
    fn sticky(&mut self, kept: Value, x: Value, places: i64) -> Value {
        let rest = self.by(BinaryOp::And, x, (1 << places) - 1);
        let is_cut = self.by(BinaryOp::Ne, rest, 0);
        let bit = self.bit(self.b.ty(x).dtype, is_cut);
        self.binary(BinaryOp::Or, kept, bit)
    }
}

#[cfg(test)]
mod tests {
    use crate::caps::Caps;
    use crate::dtype::{DType, DTypeSet};
    use crate::ir::{Access, Builder, Kernel, LoopKind, Op, Value, verify_for};
    use crate::legalize::legalize;
    use crate::ops::BinaryOp;
    use crate::passes::property_tests::run;
    use crate::scalar::Scalar;

    fn partial() -> Caps {
        let mut caps = Caps { partial_integers: true, partial_casts: true, ..Caps::default() };
        (caps.vector_bytes, caps.masked) = (32, true);
        caps
    }

    /// Numbers of all sizes, what lies around powers of two and halfway between halves.
    fn numbers(from: DType, n: u64) -> Vec<Scalar> {
        let edge = |i: u64| {
            let (power, step) = (i % from.bits() as u64, i / from.bits() as u64);
            (1u64 << power).wrapping_add(step).wrapping_sub(8)
        };
        let bits = |i: u64| match i % 4 {
            0 => i.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            1 => edge(i / 4),
            // Floats with few bits set, which are often halfway between two halves.
            2 => {
                i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & u64::MAX << (from.bits() - from.bits() / 3)
            }
            _ => i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % from.bits() as u64),
        };
        let all = (0..n).map(|i| if from.bits() == 16 { i } else { bits(i) });
        all.map(|bits| Scalar::from_bits(from, bits)).collect()
    }

    fn mapped(
        from: [DType; 2],
        to: DType,
        n: u64,
        f: impl Fn(&mut Builder, [Value; 2]) -> Value,
    ) -> Kernel {
        let mut b = Builder::new("mapped");
        let [p, q] = from.map(|dtype| b.param(dtype, n, Access::Read));
        let out = b.param(to, n, Access::Write);
        let (len, lanes) = (b.index(n as i64 / 4), b.index(4));
        let i = b.open_loop(LoopKind::Parallel, 0, len);
        let i = b.binary(BinaryOp::Mul, i, lanes);
        let operands = [p, q].map(|buffer| b.load_vector(buffer, i, 4));
        let value = f(&mut b, operands);
        b.store(out, i, value);
        b.close();
        b.finish()
    }

    fn results(kernel: &Kernel, x: &[Scalar], y: &[Scalar]) -> Vec<Scalar> {
        let bytes = |all: &[Scalar]| {
            all.iter().flat_map(|x| x.bits().to_le_bytes()[..x.dtype().size()].to_vec()).collect()
        };
        let to = kernel.params()[2].dtype;
        let output = vec![0; to.size() * x.len()];
        Scalar::read_all(to, &run(kernel, &[bytes(x), bytes(y), output], &[])[2])
    }

    #[test]
    fn conversions_round_once_and_saturate() {
        let n = 1 << 16;
        for &from in DType::ALL {
            let x = numbers(from, n);
            for &to in DType::ALL {
                let kernel = mapped([from; 2], to, n, |b, [x, _]| b.cast(to, x));
                let legal = legalize(&kernel, &partial()).unwrap();
                verify_for(&legal, &partial()).unwrap();
                for (x, got) in x.iter().zip(results(&legal, &x, &x)) {
                    let want = x.cast(to);
                    let both_nan = want.to_f64().is_nan() && got.to_f64().is_nan();
                    assert!(got == want || both_nan, "{x:?} is {got:?}, not {want:?}");
                }
            }
        }
    }

    #[test]
    fn quotients_of_64_bits_take_32_bits_at_once_or_one() {
        let mut caps = partial();
        let long = DTypeSet::of(&[DType::I64, DType::U64]);
        for op in [BinaryOp::Div, BinaryOp::Rem] {
            caps.binary[op as usize] = DTypeSet::ALL.without(long);
        }
        let n = 1 << 10;
        for dtype in [DType::I64, DType::U64] {
            let x = numbers(dtype, n);
            let y: Vec<Scalar> = (0..n).map(|i| x[(i * 7 + i % 3) as usize % 1024]).collect();
            let divisors = [1i64, 32, 1 << 62, 3, 1000, 65_535];
            for (op, divisor) in
                [BinaryOp::Div, BinaryOp::Rem].map(|op| divisors.map(|n| (op, n))).concat()
            {
                let divisor = Scalar::from_i64(dtype, divisor);
                let kernel = mapped([dtype; 2], dtype, n, |b, [x, _]| {
                    let y = b.constant(divisor);
                    b.binary(op, x, y)
                });
                let legal = legalize(&kernel, &caps).unwrap();
                assert!(legal.iter().all(|(_, op, _)| !matches!(op, Op::If { .. })), "{legal}");
                for (&x, found) in x.iter().zip(results(&legal, &x, &y)) {
                    assert_eq!(found, op.eval(x, divisor), "{op} of {x:?} and {divisor:?}");
                }
            }
            for op in [BinaryOp::Div, BinaryOp::Rem] {
                let kernel = mapped([dtype; 2], dtype, n, |b, [x, y]| b.binary(op, x, y));
                let legal = legalize(&kernel, &caps).unwrap();
                verify_for(&legal, &caps).unwrap();
                for ((&x, &y), found) in x.iter().zip(&y).zip(results(&legal, &x, &y)) {
                    assert_eq!(found, op.eval(x, y), "{op} of {x:?} and {y:?}");
                }
            }
        }
    }

    /// Quotients and shifts have the values of the op table although no instruction gets operands
    /// that it is undefined for.
    #[test]
    fn integer_instructions_get_defined_operands() {
        use BinaryOp::{Div, Rem, Shl, Shr};
        let n = 1 << 12;
        for dtype in [DType::I8, DType::U16, DType::I32, DType::U32, DType::I64, DType::U64] {
            let x = numbers(dtype, n);
            let small = |i: u64| Scalar::from_i64(dtype, i as i64 % 150 - 75);
            let y: Vec<Scalar> = (0..n)
                .map(|i| if i % 2 == 0 { small(i) } else { x[(i * 7 % n) as usize] })
                .collect();
            for op in [Div, Rem, Shl, Shr] {
                let kernel = mapped([dtype; 2], dtype, n, |b, [x, y]| b.binary(op, x, y));
                let legal = legalize(&kernel, &partial()).unwrap();
                let found = results(&legal, &x, &y);
                for ((&x, &y), found) in x.iter().zip(&y).zip(found) {
                    assert_eq!(found, op.eval(x, y), "{op} of {x:?} and {y:?}");
                }
                let is_chosen = |y| matches!(legal.op(y), Op::Ternary { .. });
                let is_safe =
                    |o| !matches!(o, Op::Binary { op: o, y, .. } if o == op && !is_chosen(y));
                assert!(legal.iter().all(|(_, o, _)| is_safe(o)), "{legal}");
            }
        }
    }
}
