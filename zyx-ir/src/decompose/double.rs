//! What `f64` needs that is not the `f32` expansion with longer polynomials.
//!
//! * `sin`, `cos`, `tan`: the argument, from 1/2 on, is reduced by multiplying its mantissa with
//!   the 192 bits of `2 / pi` that matter (Payne and Hanek 1983), in limbs of 32 bits. No double
//!   is closer to a multiple of `pi / 2` than some 2^-62, so 128 bits of the fraction are enough.
//! * `erf`: the series with positive terms below 3 and the continued fraction above (Abramowitz
//!   and Stegun 7.1.6 and 7.1.14), both of a fixed length.

use super::Expand;
use super::circular::Reduced;
use super::coefficients::Table;
use crate::dtype::DType;
use crate::ir::{LoopKind, Space, Value};
use crate::ops::BinaryOp;

use BinaryOp::{Add, And, Div, Le, Lt, Mul, Or, Shl, Sub, Xor};

/// `2 / pi` after 64 zeros, in words of 32 bits, most significant first.
const TWO_OVER_PI: [u32; 40] = [
    0x0000_0000,
    0x0000_0000,
    0xa2f9_836e,
    0x4e44_1529,
    0xfc27_57d1,
    0xf534_ddc0,
    0xdb62_9599,
    0x3c43_9041,
    0xfe51_63ab,
    0xdebb_c561,
    0xb724_6e3a,
    0x424d_d2e0,
    0x0649_2eea,
    0x09d1_921c,
    0xfe1d_eb1c,
    0xb129_a73e,
    0xe882_35f5,
    0x2ebb_4484,
    0xe99c_7026,
    0xb45f_7e41,
    0x3991_d639,
    0x8353_39f4,
    0x9c84_5f8b,
    0xbdf9_283b,
    0x1ff8_97ff,
    0xde05_980f,
    0xef2f_118b,
    0x5a0a_6d1f,
    0x6d36_7ecf,
    0x27cb_09b7,
    0x4f46_3f66,
    0x9e5f_ea2d,
    0x7527_bac7,
    0xebe5_f17b,
    0x3d07_39f7,
    0x8a52_92ea,
    0x6bfb_5fb1,
    0x1f8d_5d08,
    0x5603_3046,
    0xfc7b_6bab,
];

/// What an index into the table may be as far as its range is known: the words that an exponent
/// beyond all finite ones would ask for are never read.
const TABLE_LEN: u32 = 64 + 7;

impl Expand<'_> {
    fn long(&mut self, x: u64, like: Value) -> Value {
        self.int(DType::U64, x as i64, like)
    }

    /// `|x|` as `quadrant * pi / 2 + r`, `|r| <= pi / 4`; the quadrant is an `i64`.
    pub(super) fn reduce_double(&mut self, a: Value) -> Reduced {
        let limit = self.k(0.5, a);
        let is_large = self.binary(Le, limit, a);
        let (float, int) = (self.b.ty(a), self.lanes_of(a, DType::I64));
        let origin = self.b.index(0);
        let (r, quadrant) =
            (self.b.alloc(Space::Register, float, 1), self.b.alloc(Space::Register, int, 1));
        let none = self.int(DType::I64, 0, a);
        self.b.store(r, origin, a);
        self.b.store(quadrant, origin, none);
        let any = self.any(is_large);
        self.b.open_if(any);
        let far = self.reduce_double_far(a, is_large);
        let chosen = self.select(is_large, far.r, a);
        self.b.store(r, origin, chosen);
        let chosen = self.select(is_large, far.quadrant, none);
        self.b.store(quadrant, origin, chosen);
        self.b.close();
        Reduced { r: self.b.load(r, origin), quadrant: self.b.load(quadrant, origin) }
    }

    fn reduce_double_far(&mut self, a: Value, is_large: Value) -> Reduced {
        let bits = self.bits(a);
        let bits = self.b.bitcast(DType::U64, bits);
        let (fraction, hidden) = (self.long((1 << 52) - 1, a), self.long(1 << 52, a));
        let mantissa = self.binary(And, bits, fraction);
        let mantissa = self.binary(Or, mantissa, hidden);
        // a = mantissa * 2^(field - 1075). From bit field - 1013 of the table on, bits give the
        // product's bits of weight 2 and less.
        let field = self.shr(bits, 52);
        let (first, most) = (self.long(1013, a), self.long(0x7ff, a));
        let position = self.binary(Sub, field, first);
        let position = self.binary(And, position, most);
        let none = self.long(0, a);
        let position = self.select(is_large, position, none);
        let words = self.words_from(position);
        let limbs = self.product(mantissa, &words);
        // Two integer bits on top; the rest, rounded to the nearest, is the signed fraction.
        let (high, middle) = (self.joined(limbs[0], limbs[1]), self.joined(limbs[2], limbs[3]));
        let quadrant = self.shr(high, 62);
        let carried = self.shr(middle, 62);
        let up = self.shl(high, 2);
        let up = self.binary(Or, up, carried);
        let down = self.shl(middle, 2);
        let negative = self.shr(up, 63);
        let quadrant = self.binary(Add, quadrant, negative);
        // All ones where the fraction is negative: its complement is the magnitude.
        let flip = self.binary(Sub, none, negative);
        let (up, down) = (self.binary(Xor, up, flip), self.binary(Xor, down, flip));
        let [up, down] = [up, down].map(|v| self.b.cast(DType::F64, v));
        let (unit, tiny) = (self.k((-64f64).exp2(), a), self.k((-128f64).exp2(), a));
        let (up, down) = (self.mul(up, unit), self.mul(down, tiny));
        let turn = self.add(up, down);
        let scale = self.k(std::f64::consts::FRAC_PI_2, a);
        let r = self.mul(turn, scale);
        let sign = self.shl(negative, 63);
        let sign = self.b.bitcast(DType::I64, sign);
        let r = self.flip_sign(r, sign);
        let (inf, nan) = (self.k(f64::INFINITY, a), self.k(f64::NAN, a));
        let is_finite = self.lt(a, inf);
        let r = self.select(is_finite, r, nan);
        Reduced { r, quadrant: self.b.bitcast(DType::I64, quadrant) }
    }

    /// `high * 2^32 + low`
    fn joined(&mut self, high: Value, low: Value) -> Value {
        let high = self.shl(high, 32);
        self.binary(Or, high, low)
    }

    /// Six words of the table from a bit on, most significant first.
    fn words_from(&mut self, position: Value) -> [Value; 6] {
        let scalar = crate::ir::Type::scalar(DType::U64);
        let table = self.b.alloc(Space::Register, scalar, TABLE_LEN);
        for (i, &word) in TWO_OVER_PI.iter().enumerate() {
            let (at, word) = (self.b.index(i as i64), self.b.constant(u64::from(word).into()));
            self.b.store(table, at, word);
        }
        let word = self.shr(position, 5);
        let word = self.b.cast(DType::I64, word);
        let low = self.long(31, position);
        let shift = self.binary(And, position, low);
        let lanes = self.b.ty(position).lanes;
        let read: [Value; 7] = std::array::from_fn(|i| {
            let step = self.int(DType::I64, i as i64, position);
            let at = self.binary(Add, word, step);
            if lanes == 1 { self.b.load(table, at) } else { self.b.load_vector(table, at, lanes) }
        });
        std::array::from_fn(|i| {
            let both = self.joined(read[i], read[i + 1]);
            let both = self.binary(Shl, both, shift);
            self.shr(both, 32)
        })
    }

    /// The upper four limbs of `mantissa * words` modulo 2^192.
    fn product(&mut self, mantissa: Value, words: &[Value; 6]) -> [Value; 4] {
        let mask = self.long(0xffff_ffff, mantissa);
        let (low, high) = (self.binary(And, mantissa, mask), self.shr(mantissa, 32));
        // What adds to each limb, least significant first.
        let mut columns: [Vec<Value>; 6] = std::array::from_fn(|_| Vec::new());
        for (i, &word) in words.iter().enumerate() {
            for (factor, at) in [(low, 5 - i), (high, 6 - i)].into_iter().filter(|f| f.1 < 6) {
                let product = self.binary(Mul, factor, word);
                columns[at].push(self.binary(And, product, mask));
                if at < 5 {
                    let upper = self.shr(product, 32);
                    columns[at + 1].push(upper);
                }
            }
        }
        let mut carry: Option<Value> = None;
        let limbs: Vec<Value> = columns
            .into_iter()
            .map(|column| {
                let mut sum = carry;
                for term in column {
                    sum = Some(sum.map_or(term, |sum| self.binary(Add, sum, term)));
                }
                let sum = sum.expect("invariant: every limb has a term");
                carry = Some(self.shr(sum, 32));
                self.binary(And, sum, mask)
            })
            .collect();
        [limbs[5], limbs[4], limbs[3], limbs[2]]
    }

    /// The error function.
    pub(super) fn erf_double(&mut self, t: &Table, x: Value) -> Value {
        let a = self.abs(x);
        let (three, six) = (self.k(3.0, x), self.k(6.0, x));
        let is_small = self.binary(Lt, a, three);
        let is_middle = self.binary(Lt, a, six);
        let below = self.select(is_small, a, three);
        let bounded = self.select(is_middle, a, six);
        let above = self.select(is_small, three, bounded);
        let (series, rest) = (self.erf_series(t, below), self.erf_rest(t, above));
        let y = self.select(is_small, series, rest);
        let sign = self.sign_bit(x);
        let y = self.flip_sign(y, sign);
        let is_nan = self.binary(BinaryOp::Ne, x, x);
        self.select(is_nan, x, y)
    }

    /// `exp(-a^2)`
    fn gauss(&mut self, t: &Table, a: Value) -> Value {
        let square = self.mul(a, a);
        let negative = self.neg(square);
        self.exp(t, negative)
    }

    /// A loop of so many steps: gives its counter as a float like `like`.
    fn steps(&mut self, count: i64, like: Value) -> Value {
        let len = self.b.index(count);
        let i = self.b.open_loop(LoopKind::Serial, 0, len);
        let i = self.b.cast(DType::F64, i);
        let lanes = self.b.ty(like).lanes;
        self.b.splat(i, lanes)
    }

    /// `2 / sqrt(pi) * exp(-a^2) * sum of 2^n a^(2n+1) / (2n+1)!!` for `a` up to 3.
    fn erf_series(&mut self, t: &Table, a: Value) -> Value {
        let (ty, origin) = (self.b.ty(a), self.b.index(0));
        let [term, sum] = [0; 2].map(|_| self.b.alloc(Space::Register, ty, 1));
        self.b.store(term, origin, a);
        self.b.store(sum, origin, a);
        let double = self.add(a, a);
        let double = self.mul(double, a);
        let i = self.steps(60, a);
        let (two, three) = (self.k(2.0, a), self.k(3.0, a));
        let n = self.mul(i, two);
        let n = self.add(n, three);
        let factor = self.binary(Div, double, n);
        let next = self.b.load(term, origin);
        let next = self.mul(next, factor);
        self.b.store(term, origin, next);
        let total = self.b.load(sum, origin);
        let total = self.add(total, next);
        self.b.store(sum, origin, total);
        self.b.close();
        let total = self.b.load(sum, origin);
        let gauss = self.gauss(t, a);
        let scale = self.k(std::f64::consts::FRAC_2_SQRT_PI, a);
        let gauss = self.mul(gauss, scale);
        self.mul(total, gauss)
    }

    /// `1 - exp(-a^2) / (sqrt(pi) * (a + 1/2 / (a + 2/2 / (a + …))))` for `a` from 3 on.
    fn erf_rest(&mut self, t: &Table, a: Value) -> Value {
        let (ty, origin) = (self.b.ty(a), self.b.index(0));
        let fraction = self.b.alloc(Space::Register, ty, 1);
        self.b.store(fraction, origin, a);
        let i = self.steps(60, a);
        let (last, half) = (self.k(60.0, a), self.k(0.5, a));
        let k = self.sub(last, i);
        let k = self.mul(k, half);
        let inner = self.b.load(fraction, origin);
        let part = self.binary(Div, k, inner);
        let next = self.add(a, part);
        self.b.store(fraction, origin, next);
        self.b.close();
        let fraction = self.b.load(fraction, origin);
        let root = self.k(std::f64::consts::PI.sqrt(), a);
        let bottom = self.mul(fraction, root);
        let gauss = self.gauss(t, a);
        let rest = self.binary(Div, gauss, bottom);
        let one = self.k(1.0, a);
        self.sub(one, rest)
    }
}
