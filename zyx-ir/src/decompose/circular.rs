//! Circular functions and their inverses.
//!
//! `sin`, `cos` and `tan` subtract the nearest multiple of `pi / 2`: by three fused
//! multiply-adds where the multiple is below 2^15, and beyond by multiplying the mantissa with
//! the 96 bits of `2 / pi` that matter (Payne and Hanek 1983) in 32-bit integers, so that the
//! reduced argument is as accurate for 1e38 as for 1. The second way stands in a branch that is
//! entered only if some lane needs it.

use super::Expand;
use super::coefficients::{COS, COS_64, SIN, SIN_64, Table};
use crate::dtype::DType;
use crate::ir::{Space, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};

use BinaryOp::{Add, And, Eq, Le, Max, Min, Mul, Or, Shl, Shr, Sub};

/// Bits of `2 / pi` after twelve zeros, most significant first.
const TWO_OVER_PI: [u32; 8] = {
    // 0.A2F9836E 4E441529 FC2757D1 F534DDC0 DB629599 3C439041 FE5163AB (hexadecimal)
    let bits =
        [0xa2f9_836e, 0x4e44_1529, 0xfc27_57d1, 0xf534_ddc0, 0xdb62_9599, 0x3c43_9041, 0xfe51_63ab];
    let mut words = [0u32; 8];
    let mut i = 0;
    while i < 7 {
        words[i] |= bits[i] >> 12;
        words[i + 1] |= bits[i] << 20;
        i += 1;
    }
    words
};

/// Below this the fused reduction is accurate.
const LARGE: f64 = 51_000.0;

/// `|x|` as `quadrant * pi / 2 + r`, `|r| <= pi / 4`; the quadrant is an `i32`,
/// for `f64` an `i64`.
pub(super) struct Reduced {
    pub(super) r: Value,
    pub(super) quadrant: Value,
}

impl Expand<'_> {
    fn reduce(&mut self, a: Value) -> Reduced {
        if self.b.ty(a).dtype == DType::F64 {
            return self.reduce_double(a);
        }
        let near = self.reduce_near(a);
        let large = self.k(LARGE, a);
        let is_large = self.binary(Le, large, a);
        let (float, int) = (self.b.ty(a), self.lanes_of(a, DType::I32));
        let origin = self.b.index(0);
        let (r, quadrant) =
            (self.b.alloc(Space::Register, float, 1), self.b.alloc(Space::Register, int, 1));
        self.b.store(r, origin, near.r);
        self.b.store(quadrant, origin, near.quadrant);
        let any = self.any(is_large);
        self.b.open_if(any);
        let far = self.reduce_far(a);
        let chosen = self.select(is_large, far.r, near.r);
        self.b.store(r, origin, chosen);
        let chosen = self.select(is_large, far.quadrant, near.quadrant);
        self.b.store(quadrant, origin, chosen);
        self.b.close();
        Reduced { r: self.b.load(r, origin), quadrant: self.b.load(quadrant, origin) }
    }

    fn reduce_near(&mut self, a: Value) -> Reduced {
        let (magic, scale) = (self.k(12_582_912.0, a), self.k(std::f64::consts::FRAC_2_PI, a));
        let shifted = self.fma(a, scale, magic);
        let n = self.sub(shifted, magic);
        // pi / 2 in three parts of 24 bits each.
        let parts = [1.570_796_370_506_286_6, -4.371_138_828_673_793e-8, -1.715_124_513e-15];
        let mut r = a;
        if self.caps.has_ternary(TernaryOp::MulAdd, DType::F32) {
            let first = self.k(-parts[0], a);
            r = self.fma(n, first, r);
        } else {
            // The product is close to `a`, so what cancels is exact with its rounding error known.
            let first = self.k(parts[0], a);
            let (product, error) = self.exact_product(n, first);
            r = self.sub(r, product);
            r = self.sub(r, error);
        }
        for part in &parts[1..] {
            let part = self.k(-part, a);
            r = self.fma(n, part, r);
        }
        let quadrant = self.bits(shifted);
        Reduced { r, quadrant }
    }

    /// An unsigned constant.
    fn u(&mut self, x: u32, like: Value) -> Value {
        self.int(DType::U32, x as i64, like)
    }

    fn reduce_far(&mut self, a: Value) -> Reduced {
        let bits = self.bits(a);
        let bits = self.b.bitcast(DType::U32, bits);
        let (fraction, hidden) = (self.u(0x7f_ffff, a), self.u(1 << 23, a));
        let mantissa = self.binary(And, bits, fraction);
        let mantissa = self.binary(Or, mantissa, hidden);
        // a = mantissa * 2^(field - 150). The product's bits of weight 2 and less begin where
        // the table's offset is field - 140: there a bit of 2 / pi has 2^94 times its weight in
        // the product of 96 bits, the weight of whose upper two is 2 and 1.
        let exponent = self.shr(bits, 23);
        let bias = self.u(140, a);
        let offset = self.binary(Sub, exponent, bias);
        let word = self.shr(offset, 5);
        let low = self.u(31, a);
        let shift = self.binary(And, offset, low);
        let table: Vec<Value> = (0..4).map(|i| self.table_word(word, i)).collect();
        let w: Vec<Value> = (0..3).map(|i| self.funnel(table[i], table[i + 1], shift)).collect();
        // (high, low) = mantissa * w, of 96 bits, modulo 2^96 and without the last 32.
        let top = self.binary(Mul, mantissa, w[0]);
        let (middle_high, middle_low) = self.wide_mul(mantissa, w[1]);
        let (rest, _) = self.wide_mul(mantissa, w[2]);
        let low = self.binary(Add, middle_low, rest);
        let carries = self.lt(low, rest);
        let (zero, one) = (self.u(0, a), self.u(1, a));
        let carry = self.select(carries, one, zero);
        let high = self.binary(Add, top, middle_high);
        let high = self.binary(Add, high, carry);
        // Two integer bits on top; the rest, rounded to the nearest, is the signed fraction.
        let half = self.u(1 << 29, a);
        let rounded = self.binary(Add, high, half);
        let quadrant = self.shr(rounded, 30);
        let whole = self.shl(quadrant, 30);
        let fraction = self.binary(Sub, high, whole);
        let fraction = self.b.bitcast(DType::I32, fraction);
        let fraction = self.b.cast(DType::F32, fraction);
        let low = self.b.cast(DType::F32, low);
        let unit = self.k((-32f64).exp2(), a);
        let fraction = self.fma(low, unit, fraction);
        let scale = self.k(std::f64::consts::FRAC_PI_2 * (-30f64).exp2(), a);
        let r = self.mul(fraction, scale);
        let inf = self.k(f64::INFINITY, a);
        let nan = self.k(f64::NAN, a);
        let is_finite = self.lt(a, inf);
        let r = self.select(is_finite, r, nan);
        Reduced { r, quadrant: self.b.bitcast(DType::I32, quadrant) }
    }

    /// Word `word + i` of the table.
    fn table_word(&mut self, word: Value, i: usize) -> Value {
        let mut chosen = self.u(TWO_OVER_PI[i], word);
        for k in 1..4 {
            let number = self.u(k as u32, word);
            let is_it = self.binary(Eq, word, number);
            let other = self.u(TWO_OVER_PI[i + k], word);
            chosen = self.select(is_it, other, chosen);
        }
        chosen
    }

    /// The 32 bits from bit `shift` of `high` and `low` together.
    fn funnel(&mut self, high: Value, low: Value, shift: Value) -> Value {
        let width = self.u(32, shift);
        let rest = self.binary(Sub, width, shift);
        let (left, right) = (self.binary(Shl, high, shift), self.binary(Shr, low, rest));
        self.binary(Or, left, right)
    }

    /// High and low half of the 64-bit product.
    fn wide_mul(&mut self, x: Value, y: Value) -> (Value, Value) {
        let mask = self.u(0xffff, x);
        let (x0, x1) = (self.binary(And, x, mask), self.shr(x, 16));
        let (y0, y1) = (self.binary(And, y, mask), self.shr(y, 16));
        let low = self.mul(x0, y0);
        let carried = self.shr(low, 16);
        let cross = self.mul(x0, y1);
        let cross = self.binary(Add, cross, carried);
        let cross_low = self.binary(And, cross, mask);
        let other = self.mul(x1, y0);
        let other = self.binary(Add, other, cross_low);
        let high = self.mul(x1, y1);
        let (cross, other) = (self.shr(cross, 16), self.shr(other, 16));
        let high = self.binary(Add, high, cross);
        (self.binary(Add, high, other), self.mul(x, y))
    }

    /// `sin(r)` and `cos(r)` for a reduced argument.
    fn sin_cos(&mut self, r: Value) -> (Value, Value) {
        let z = self.mul(r, r);
        let is_double = self.b.ty(r).dtype == DType::F64;
        let (sines, cosines): (&[f64], &[f64]) =
            if is_double { (&SIN_64, &COS_64) } else { (&SIN, &COS) };
        let tail = self.polynomial(sines, z);
        let cube = self.mul(z, r);
        let sin = self.fma(cube, tail, r);
        let tail = self.polynomial(cosines, z);
        let fourth = self.mul(z, z);
        let (one, half) = (self.k(1.0, r), self.k(-0.5, r));
        let top = self.fma(z, half, one);
        (sin, self.fma(fourth, tail, top))
    }

    /// The bits `value & mask` moved to the sign; `shift` is that for 32 bits.
    fn moved_to_sign(&mut self, value: Value, mask: i64, shift: i64) -> Value {
        let dtype = self.b.ty(value).dtype;
        let mask = self.int(dtype, mask, value);
        let bit = self.binary(And, value, mask);
        self.shl(bit, shift + dtype.bits() as i64 - 32)
    }

    fn is_odd(&mut self, quadrant: Value) -> Value {
        let one = self.int(self.b.ty(quadrant).dtype, 1, quadrant);
        let bit = self.binary(And, quadrant, one);
        self.binary(Eq, bit, one)
    }

    pub(super) fn sin(&mut self, x: Value) -> Value {
        let a = self.abs(x);
        let Reduced { r, quadrant } = self.reduce(a);
        let (sin, cos) = self.sin_cos(r);
        let is_odd = self.is_odd(quadrant);
        let y = self.select(is_odd, cos, sin);
        let sign = self.moved_to_sign(quadrant, 2, 30);
        let y = self.flip_sign(y, sign);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    pub(super) fn cos(&mut self, x: Value) -> Value {
        let a = self.abs(x);
        let Reduced { r, quadrant } = self.reduce(a);
        let (sin, cos) = self.sin_cos(r);
        let is_odd = self.is_odd(quadrant);
        let y = self.select(is_odd, sin, cos);
        // Negative in quadrants 1 and 2.
        let one = self.int(self.b.ty(quadrant).dtype, 1, x);
        let next = self.binary(Add, quadrant, one);
        let sign = self.moved_to_sign(next, 2, 30);
        self.flip_sign(y, sign)
    }

    pub(super) fn tan(&mut self, x: Value) -> Value {
        let a = self.abs(x);
        let Reduced { r, quadrant } = self.reduce(a);
        let (sin, cos) = self.sin_cos(r);
        let is_odd = self.is_odd(quadrant);
        let above = self.select(is_odd, cos, sin);
        let below = self.select(is_odd, sin, cos);
        let y = self.div(above, below);
        let sign = self.moved_to_sign(quadrant, 1, 31);
        let y = self.flip_sign(y, sign);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    /// `asin(s)` for `s = sqrt(z)` and `0 <= s <= 1/2`.
    fn asin_small(&mut self, t: &Table, s: Value, z: Value) -> Value {
        let tail = self.polynomial(t.asin, z);
        let cube = self.mul(s, z);
        self.fma(cube, tail, s)
    }

    /// `asin` of `|x|` up to 1/2, of `sqrt((1 - |x|) / 2)` above; with whether it is above.
    fn asin_parts(&mut self, t: &Table, x: Value) -> (Value, Value) {
        let a = self.abs(x);
        let (half, one) = (self.k(0.5, x), self.k(1.0, x));
        let is_large = self.lt(half, a);
        let rest = self.sub(one, a);
        let rest = self.mul(rest, half);
        let square = self.mul(a, a);
        let z = self.select(is_large, rest, square);
        let root = self.unary(UnaryOp::Sqrt, z);
        let s = self.select(is_large, root, a);
        (self.asin_small(t, s, z), is_large)
    }

    pub(super) fn asin(&mut self, t: &Table, x: Value) -> Value {
        let (p, is_large) = self.asin_parts(t, x);
        // pi / 2 - 2 p
        let (high, low, minus_two) =
            (self.k(t.half_pi.0, x), self.k(t.half_pi.1, x), self.k(-2.0, x));
        let folded = self.fma(p, minus_two, low);
        let folded = self.add(folded, high);
        let y = self.select(is_large, folded, p);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    pub(super) fn acos(&mut self, t: &Table, x: Value) -> Value {
        let (p, is_large) = self.asin_parts(t, x);
        let sign = self.sign_bit(x);
        let zero = self.k(0.0, x);
        let is_negative = self.lt(x, zero);
        let (high, low) = (self.k(t.half_pi.0, x), self.k(t.half_pi.1, x));
        // Near 0: pi / 2 - asin(x).
        let signed = self.flip_sign(p, sign);
        let near = self.sub(low, signed);
        let near = self.add(near, high);
        // Near 1: 2 p; near -1: pi - 2 p.
        let double = self.add(p, p);
        let (pi, pi_low) = (self.add(high, high), self.add(low, low));
        let opposite = self.sub(pi_low, double);
        let opposite = self.add(opposite, pi);
        let far = self.select(is_negative, opposite, double);
        self.select(is_large, far, near)
    }

    /// `atan(z)` for `0 <= z <= 1`.
    fn atan_small(&mut self, t: &Table, z: Value) -> Value {
        let square = self.mul(z, z);
        let tail = self.polynomial(t.atan, square);
        let cube = self.mul(square, z);
        self.fma(cube, tail, z)
    }

    pub(super) fn atan(&mut self, t: &Table, x: Value) -> Value {
        let a = self.abs(x);
        let one = self.k(1.0, x);
        let is_large = self.lt(one, a);
        let inverse = self.div(one, a);
        let z = self.select(is_large, inverse, a);
        let p = self.atan_small(t, z);
        let folded = self.complement(t, p);
        let y = self.select(is_large, folded, p);
        let sign = self.sign_bit(x);
        self.flip_sign(y, sign)
    }

    /// `pi / 2 - p`
    fn complement(&mut self, t: &Table, p: Value) -> Value {
        let (high, low) = (self.k(t.half_pi.0, p), self.k(t.half_pi.1, p));
        let rest = self.sub(low, p);
        self.add(rest, high)
    }

    pub(super) fn atan2(&mut self, t: &Table, y: Value, x: Value) -> Value {
        let (a, b) = (self.abs(y), self.abs(x));
        let larger = self.binary(Max, a, b);
        let smaller = self.binary(Min, a, b);
        let ratio = self.div(smaller, larger);
        // 0 / 0 counts as 0 and inf / inf as 1; NaN stays.
        let equal = self.binary(Eq, a, b);
        let (zero, one) = (self.k(0.0, x), self.k(1.0, x));
        let is_zero = self.binary(Eq, larger, zero);
        let level = self.select(is_zero, zero, one);
        let z = self.select(equal, level, ratio);
        let p = self.atan_small(t, z);
        let is_steep = self.lt(b, a);
        let folded = self.complement(t, p);
        let p = self.select(is_steep, folded, p);
        let (pi, pi_low) = (self.k(2.0 * t.half_pi.0, x), self.k(2.0 * t.half_pi.1, x));
        let opposite = self.sub(pi_low, p);
        let opposite = self.add(opposite, pi);
        let bits = self.bits(x);
        let none = self.int(self.b.ty(bits).dtype, 0, x);
        let is_left = self.lt(bits, none);
        let p = self.select(is_left, opposite, p);
        let sign = self.sign_bit(y);
        self.flip_sign(p, sign)
    }
}
