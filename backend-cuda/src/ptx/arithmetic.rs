//! Operations on registers: arithmetic, conversions, lanes in words, division by known numbers.

use super::{Body, Half, Reg, bits, reg, suffix};
use zyx_core::ir::{Interval, Op, Value};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Numbers of `f32`.
const ONE: &str = "0f3F800000";
const LEAST_NORMAL: &str = "0f00800000";

impl Body<'_> {
    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, x: &str) -> String {
        let (kind, name) = (reg(dtype), suffix(dtype));
        let float = dtype.class() == Class::Float;
        match op {
            _ if dtype == DType::Bool => self.set(kind, "not.pred", &[x]),
            _ if dtype.bits() < 32 => self.refuse(format!("no {op} of {dtype}")),
            UnaryOp::Neg if !dtype.is_signed() && !float => {
                let (zero, sub) = (self.zero(dtype), format!("sub.{name}"));
                self.set(kind, &sub, &[&zero, x])
            }
            UnaryOp::Neg => self.set(kind, &format!("neg.{name}"), &[x]),
            UnaryOp::Abs if dtype.is_signed() || float => {
                self.set(kind, &format!("abs.{name}"), &[x])
            }
            UnaryOp::Not => self.set(kind, &format!("not.{}", bits(dtype)), &[x]),
            _ if !float => x.to_owned(),
            UnaryOp::Recip if self.avoids_calls(dtype) => self.quotient(ONE, x),
            UnaryOp::Sqrt if self.avoids_calls(dtype) => self.root(x),
            UnaryOp::Recip => self.set(kind, &format!("rcp.rn.{name}"), &[x]),
            UnaryOp::Sqrt => self.set(kind, &format!("sqrt.rn.{name}"), &[x]),
            UnaryOp::Exp2 if dtype == DType::F32 => self.set(kind, "ex2.approx.f32", &[x]),
            UnaryOp::Floor => self.set(kind, &format!("cvt.rmi.{name}.{name}"), &[x]),
            UnaryOp::Ceil => self.set(kind, &format!("cvt.rpi.{name}.{name}"), &[x]),
            UnaryOp::Round => self.set(kind, &format!("cvt.rni.{name}.{name}"), &[x]),
            UnaryOp::Trunc => self.set(kind, &format!("cvt.rzi.{name}.{name}"), &[x]),
            _ => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    pub(super) fn binary(&mut self, op: BinaryOp, dtype: DType, x: &str, y: &str) -> String {
        use BinaryOp::{Add, And, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor};
        let (kind, name, class) = (reg(dtype), suffix(dtype), dtype.class());
        if class == Class::Bool {
            return match op {
                And | Mul | Min => self.set(kind, "and.pred", &[x, y]),
                Or | Add | Max => self.set(kind, "or.pred", &[x, y]),
                Xor | Ne => self.set(kind, "xor.pred", &[x, y]),
                Eq => {
                    let differ = self.set(kind, "xor.pred", &[x, y]);
                    self.set(kind, "not.pred", &[&differ])
                }
                Lt | Le => {
                    let not = self.set(kind, "not.pred", &[x]);
                    self.set(kind, if op == Lt { "and.pred" } else { "or.pred" }, &[&not, y])
                }
                _ => self.refuse(format!("no {op} of bool")),
            };
        }
        if dtype.bits() < 32 {
            // They are held and computed with as wider ones.
            let wide = match class {
                Class::Float => DType::F32,
                _ if dtype.is_signed() => DType::I32,
                _ => DType::U32,
            };
            let [a, b] = [x, y].map(|x| self.cast(dtype, wide, x));
            let result = self.binary(op, wide, &a, &b);
            return if op.is_comparison() { result } else { self.cast(wide, dtype, &result) };
        }
        let float = class == Class::Float;
        let rounded = if float { ".rn" } else { "" };
        match op {
            Lt | Le | Eq => self.set(Reg::Pred, &format!("setp.{}.{name}", op.name()), &[x, y]),
            Ne if float => self.set(Reg::Pred, &format!("setp.neu.{name}"), &[x, y]),
            Ne => self.set(Reg::Pred, &format!("setp.ne.{name}"), &[x, y]),
            Add | Sub => self.set(kind, &format!("{}{rounded}.{name}", op.name()), &[x, y]),
            Mul if float => self.set(kind, &format!("mul.rn.{name}"), &[x, y]),
            Mul => self.set(kind, &format!("mul.lo.{name}"), &[x, y]),
            Div if self.avoids_calls(dtype) => self.quotient(x, y),
            Div => self.set(kind, &format!("div{rounded}.{name}"), &[x, y]),
            Rem if !float => self.set(kind, &format!("rem.{name}"), &[x, y]),
            Max | Min if dtype == DType::F32 && self.target.is_ampere() => {
                self.set(kind, &format!("{}.NaN.f32", op.name()), &[x, y])
            }
            Max | Min if float => {
                let test = if op == Max { "gt" } else { "lt" };
                let beyond = self.set(Reg::Pred, &format!("setp.{test}.{name}"), &[x, y]);
                let nan = self.set(Reg::Pred, &format!("setp.nan.{name}"), &[x, x]);
                let first = self.set(Reg::Pred, "or.pred", &[&beyond, &nan]);
                self.set(kind, &format!("selp.{name}"), &[x, y, &first])
            }
            Max | Min => self.set(kind, &format!("{}.{name}", op.name()), &[x, y]),
            And | Or | Xor if !float => {
                self.set(kind, &format!("{}.{}", op.name(), bits(dtype)), &[x, y])
            }
            Shl | Shr => {
                let distance = match dtype.bits() {
                    64 => self.set(Reg::Word, "cvt.u32.u64", &[y]),
                    _ => y.to_owned(),
                };
                let of = if op == Shl { bits(dtype) } else { name };
                self.set(kind, &format!("{}.{of}", op.name()), &[x, &distance])
            }
            _ => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    /// Whether correctly rounded quotients and roots, for which the assembler calls functions, are left out: the
    /// wide matrix instructions of a kernel with calls wait for one another.
    fn avoids_calls(&self, dtype: DType) -> bool {
        dtype == DType::F32 && self.kernel.ops().iter().any(|op| matches!(op, Op::Panel { .. }))
    }

    /// `x / y` of `f32` without a call: a Newton step after the approximate reciprocal, then one with the remainder
    /// (P. W. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", 1990). By that
    /// theorem it is correctly rounded, except where `y` has a fraction of ones, or the quotient or the remainder is
    /// subnormal; there it may be off by a unit.
    fn quotient(&mut self, x: &str, y: &str) -> String {
        let size = self.set(Reg::Float, "abs.f32", &[y]);
        let is_small = self.set(Reg::Pred, "setp.lt.f32", &[&size, LEAST_NORMAL]);
        let is_large = self.set(Reg::Pred, "setp.gt.f32", &[&size, "0f7E800000"]);
        // 2^32 and 2^-32.
        let scale = self.set(Reg::Float, "selp.f32", &["0f4F800000", ONE, &is_small]);
        let scale = self.set(Reg::Float, "selp.f32", &["0f2F800000", &scale, &is_large]);
        let y = self.set(Reg::Float, "mul.rn.f32", &[y, &scale]);
        let near = self.set(Reg::Float, "rcp.approx.ftz.f32", &[&y]);
        let minus = self.set(Reg::Float, "neg.f32", &[&y]);
        let error = self.set(Reg::Float, "fma.rn.f32", &[&minus, &near, ONE]);
        let inverse = self.set(Reg::Float, "fma.rn.f32", &[&near, &error, &near]);
        let inverse = self.normal_or(&inverse, &near);
        let quotient = self.set(Reg::Float, "mul.rn.f32", &[x, &inverse]);
        let rest = self.set(Reg::Float, "fma.rn.f32", &[&minus, &quotient, x]);
        let better = self.set(Reg::Float, "fma.rn.f32", &[&rest, &inverse, &quotient]);
        let quotient = self.normal_or(&better, &quotient);
        self.set(Reg::Float, "mul.rn.f32", &[&quotient, &scale])
    }

    /// The square root of an `f32` without a call, within a unit: one step after the approximate reciprocal root.
    fn root(&mut self, x: &str) -> String {
        let is_small = self.set(Reg::Pred, "setp.lt.f32", &[x, LEAST_NORMAL]);
        // 2^24, and the root of its reciprocal.
        let up = self.set(Reg::Float, "selp.f32", &["0f4B800000", ONE, &is_small]);
        let down = self.set(Reg::Float, "selp.f32", &["0f39800000", ONE, &is_small]);
        let x = self.set(Reg::Float, "mul.rn.f32", &[x, &up]);
        let near = self.set(Reg::Float, "rsqrt.approx.ftz.f32", &[&x]);
        let half = self.set(Reg::Float, "mul.rn.f32", &[&near, "0f3F000000"]);
        let root = self.set(Reg::Float, "mul.rn.f32", &[&x, &near]);
        let minus = self.set(Reg::Float, "neg.f32", &[&root]);
        let rest = self.set(Reg::Float, "fma.rn.f32", &[&minus, &root, &x]);
        let better = self.set(Reg::Float, "fma.rn.f32", &[&rest, &half, &root]);
        // Zeros, infinity and NaN are their own roots; what is below zero has none.
        let is_below = self.set(Reg::Pred, "setp.lt.f32", &[&x, "0f00000000"]);
        let itself = self.set(Reg::Float, "selp.f32", &["0f7FC00000", &x, &is_below]);
        let root = self.normal_or(&better, &itself);
        self.set(Reg::Float, "mul.rn.f32", &[&root, &down])
    }

    /// `x` where it is a normal number, else `y`.
    fn normal_or(&mut self, x: &str, y: &str) -> String {
        let is_normal = self.set(Reg::Pred, "testp.normal.f32", &[x]);
        self.set(Reg::Float, "selp.f32", &[x, y, &is_normal])
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, dtype: DType, [x, y, z]: [&str; 3]) -> String {
        match op {
            TernaryOp::Where if dtype == DType::Bool => {
                let (a, not) = (
                    self.set(Reg::Pred, "and.pred", &[x, y]),
                    self.set(Reg::Pred, "not.pred", &[x]),
                );
                let b = self.set(Reg::Pred, "and.pred", &[&not, z]);
                self.set(Reg::Pred, "or.pred", &[&a, &b])
            }
            TernaryOp::Where => self.set(reg(dtype), &format!("selp.{}", bits(dtype)), &[y, z, x]),
            TernaryOp::MulAdd if dtype.class() == Class::Float && dtype.bits() >= 32 => {
                self.set(reg(dtype), &format!("fma.rn.{}", suffix(dtype)), &[x, y, z])
            }
            TernaryOp::MulAdd if dtype.is_int() && dtype.bits() >= 32 => {
                self.set(reg(dtype), &format!("mad.lo.{}", suffix(dtype)), &[x, y, z])
            }
            TernaryOp::MulAdd => self.refuse(format!("no {op} of {dtype}")),
        }
    }

    pub(super) fn cast(&mut self, from: DType, to: DType, x: &str) -> String {
        use DType::{BF16, Bool, F16, F32, F64, I32, U32};
        if from == to {
            return x.to_owned();
        }
        let (float_from, float_to) = (from.class() == Class::Float, to.class() == Class::Float);
        match (from, to) {
            (F16, F32) => self.set(Reg::Float, "cvt.f32.f16", &[x]),
            (BF16, F32) => {
                let zero = self.set(Reg::Half, "mov.b16", &["0"]);
                let word = self.set(Reg::Word, "mov.b32", &[&format!("{{{zero}, {x}}}")]);
                self.set(Reg::Float, "mov.b32", &[&word])
            }
            (F16 | BF16, _) => {
                let single = self.cast(from, F32, x);
                self.cast(F32, to, &single)
            }
            (Bool, _) => {
                let (one, zero) = (self.literal(Scalar::from_i64(to, 1)), self.zero(to));
                self.set(reg(to), &format!("selp.{}", bits(to)), &[&one, &zero, x])
            }
            (_, Bool) => {
                let (zero, ne) = (self.zero(from), if float_from { "neu" } else { "ne" });
                let of = if from.bits() < 32 { "u32" } else { suffix(from) };
                self.set(Reg::Pred, &format!("setp.{ne}.{of}"), &[x, &zero])
            }
            (F32, F16 | BF16) if to == F16 || self.target.is_ampere() => {
                let half = self.set(Reg::Half, &format!("cvt.rn.{}.f32", suffix(to)), &[x]);
                self.halves.insert(half.clone(), Half::Rounded(x.to_owned()));
                half
            }
            (F32, BF16) => {
                // Adding half of what is cut off, less one unless the last kept bit is odd, rounds ties to even; a
                // NaN keeps its upper bits and stays quiet.
                let word = self.set(Reg::Word, "mov.b32", &[x]);
                let upper = self.set(Reg::Word, "shr.u32", &[&word, "16"]);
                let odd = self.set(Reg::Word, "and.b32", &[&upper, "1"]);
                let half = self.set(Reg::Word, "add.u32", &[&odd, "0x7fff"]);
                let sum = self.set(Reg::Word, "add.u32", &[&word, &half]);
                let rounded = self.set(Reg::Word, "shr.u32", &[&sum, "16"]);
                let quiet = self.set(Reg::Word, "or.b32", &[&upper, "0x40"]);
                let nan = self.set(Reg::Pred, "setp.nan.f32", &[x, x]);
                let word = self.set(Reg::Word, "selp.b32", &[&quiet, &rounded, &nan]);
                self.set(Reg::Half, "cvt.u16.u32", &[&word])
            }
            (_, F16 | BF16) if from.bits() <= 16 => {
                let single = self.cast(from, F32, x);
                self.cast(F32, to, &single)
            }
            (_, F16 | BF16) => {
                let odd = self.rounded_to_odd(from, x);
                self.cast(F32, to, &odd)
            }
            (F64, F32) => self.set(Reg::Float, "cvt.rn.f32.f64", &[x]),
            (F32, F64) => self.set(Reg::Double, "cvt.f64.f32", &[x]),
            _ if float_from && to.bits() < 32 => {
                let word = if to.is_signed() { I32 } else { U32 };
                let wide = self.cast(from, word, x);
                let range =
                    [Scalar::lowest(to), Scalar::highest(to)].map(|x| x.to_i128().to_string());
                let low = self.binary(BinaryOp::Max, word, &wide, &range[0]);
                self.binary(BinaryOp::Min, word, &low, &range[1])
            }
            _ if float_from => {
                let (a, b) = (suffix(to), suffix(from));
                let whole = self.set(reg(to), &format!("cvt.rzi.{a}.{b}"), &[x]);
                let nan = self.set(Reg::Pred, &format!("setp.nan.{b}"), &[x, x]);
                let zero = self.zero(to);
                self.set(reg(to), &format!("selp.{}", bits(to)), &[&zero, &whole, &nan])
            }
            _ if float_to => {
                // Narrow integers are held as words.
                let wide = match from.bits() < 32 {
                    true if from.is_signed() => "s32",
                    true => "u32",
                    false => suffix(from),
                };
                self.set(reg(to), &format!("cvt.rn.{}.{wide}", suffix(to)), &[x])
            }
            _ => {
                let of = match (from.bits() < 32, from.is_signed()) {
                    (true, true) => "s32",
                    (true, false) => "u32",
                    _ => suffix(from),
                };
                self.set(reg(to), &format!("cvt.{}.{of}", suffix(to)), &[x])
            }
        }
    }

    /// A number as an `f32` that, rounded once more to a half, is what it would be if it had been rounded once:
    /// truncated, with the last bit set if that cut anything off (Boldo and Melquiond 2008).
    pub(super) fn rounded_to_odd(&mut self, from: DType, x: &str) -> String {
        let f = self.set(Reg::Float, &format!("cvt.rz.f32.{}", suffix(from)), &[x]);
        let back = self.cast(DType::F32, from, &f);
        let mut exact = self.binary(BinaryOp::Eq, from, &back, x);
        if from == DType::F64 {
            let nan = self.set(Reg::Pred, "setp.nan.f64", &[x, x]);
            exact = self.set(Reg::Pred, "or.pred", &[&exact, &nan]);
        }
        let word = self.set(Reg::Word, "mov.b32", &[&f]);
        let odd = self.set(Reg::Word, "or.b32", &[&word, "1"]);
        let word = self.set(Reg::Word, "selp.b32", &[&word, &odd, &exact]);
        self.set(Reg::Float, "mov.b32", &[&word])
    }

    pub(super) fn bitcast(&mut self, from: DType, to: DType, x: &str) -> String {
        match (reg(from), reg(to)) {
            _ if from == to => x.to_owned(),
            (Reg::Pred, _) | (_, Reg::Pred) => self.cast(from, to, x),
            (Reg::Half, Reg::Half) => x.to_owned(),
            (Reg::Half, _) => {
                let wide = self.set(Reg::Word, "cvt.u32.u16", &[x]);
                if to.is_signed() { self.set(Reg::Word, "cvt.s16.s32", &[&wide]) } else { wide }
            }
            (_, Reg::Half) => self.set(Reg::Half, "cvt.u16.u32", &[x]),
            (Reg::Word, Reg::Word) if from.bits() < 32 => {
                self.set(Reg::Word, &format!("cvt.{}.u32", suffix(to)), &[x])
            }
            (a, b) if a == b => x.to_owned(),
            (_, Reg::Word | Reg::Float) => self.set(reg(to), "mov.b32", &[x]),
            _ => self.set(reg(to), "mov.b64", &[x]),
        }
    }

    /// Two halves in a word: the one that they come from, or both rounded at once.
    pub(super) fn pair(&mut self, dtype: DType, low: &str, high: &str) -> String {
        match (self.halves.get(low).cloned(), self.halves.get(high).cloned()) {
            (Some(Half::Part(a, 0)), Some(Half::Part(b, 1))) if a == b => a,
            (Some(Half::Rounded(a)), Some(Half::Rounded(b))) if self.target.is_ampere() => {
                self.set(Reg::Word, &format!("cvt.rn.{}x2.f32", suffix(dtype)), &[&b, &a])
            }
            _ => self.set(Reg::Word, "mov.b32", &[&format!("{{{low}, {high}}}")]),
        }
    }

    /// Lanes of less than 32 bits in words.
    pub(super) fn pack(&mut self, dtype: DType, lanes: &[String]) -> Vec<String> {
        let words = lanes.chunks(4 / dtype.size()).map(|part| {
            if reg(dtype) == Reg::Half {
                return self.pair(dtype, &part[0], &part[1]);
            }
            let mut word = "0".to_owned();
            for (i, x) in part.iter().enumerate() {
                let x = match dtype {
                    DType::Bool => self.set(Reg::Word, "selp.u32", &["1", "0", x]),
                    _ => x.clone(),
                };
                let (at, bits) = ((i * dtype.bits()).to_string(), dtype.bits().to_string());
                word = self.set(Reg::Word, "bfi.b32", &[&x, &word, &at, &bits]);
            }
            word
        });
        words.collect()
    }

    /// The lanes of words.
    pub(super) fn unpack(&mut self, dtype: DType, words: &[String]) -> Vec<String> {
        let mut lanes = Vec::new();
        for word in words {
            if reg(dtype) == Reg::Half {
                let pair = [self.fresh(Reg::Half), self.fresh(Reg::Half)];
                self.line(&format!("mov.b32 {{{}, {}}}, {word};", pair[0], pair[1]));
                for (i, half) in pair.into_iter().enumerate() {
                    self.halves.insert(half.clone(), Half::Part(word.clone(), i));
                    lanes.push(half);
                }
                continue;
            }
            let extract = if dtype.is_signed() { "bfe.s32" } else { "bfe.u32" };
            for i in 0..4 / dtype.size() {
                let (at, bits) = ((i * dtype.bits()).to_string(), dtype.bits().to_string());
                let x = self.set(Reg::Word, extract, &[word, &at, &bits]);
                lanes.push(match dtype {
                    DType::Bool => self.set(Reg::Pred, "setp.ne.u32", &[&x, "0"]),
                    _ => x,
                });
            }
        }
        lanes
    }

    /// A quotient or remainder. The assembler makes dozens of instructions of each, whatever the divisor: with one
    /// that is known this multiplies by its reciprocal (Granlund and Montgomery 1994).
    pub(super) fn divide(&mut self, op: BinaryOp, division: Division, x: &str, y: &str) -> String {
        let Division { dtype, by, natural, narrow } = division;
        if narrow {
            let [x, y] = [x, y].map(|x| self.cast(dtype, DType::I32, x));
            let division = Division { dtype: DType::I32, narrow: false, ..division };
            let result = self.divide(op, division, &x, &y);
            return self.cast(DType::I32, dtype, &result);
        }
        let (kind, bits) = (reg(dtype), dtype.bits() as u32);
        let largest = 1 << (bits - 1);
        let Some(by) = by.filter(|&by| by < largest) else {
            // Unsigned ones take fewer.
            let of = if natural { ["u32", "u64"][usize::from(bits == 64)] } else { suffix(dtype) };
            return self.set(kind, &format!("{}.{of}", op.name()), &[x, y]);
        };
        // The magnitude, and all bits of the sign.
        let sign = (!natural)
            .then(|| self.set(kind, &format!("shr.s{bits}"), &[x, &(bits - 1).to_string()]));
        let a = match &sign {
            None => self.copy(dtype, x),
            Some(sign) => {
                let turned = self.set(kind, &format!("xor.b{bits}"), &[x, sign]);
                self.set(kind, &format!("sub.s{bits}"), &[&turned, sign])
            }
        };
        let log = by.next_power_of_two().trailing_zeros();
        let shift = |this: &mut Self, x: &str, by: u32| {
            this.set(kind, &format!("shr.u{bits}"), &[x, &by.to_string()])
        };
        let quotient = if by.is_power_of_two() {
            shift(self, &a, log)
        } else {
            let half = dtype.is_signed();
            let low = format!("{:#x}", reciprocal(by, bits, half));
            let high = self.set(kind, &format!("mul.hi.u{bits}"), &[&a, &low]);
            match half {
                true => shift(self, &high, log - 1),
                false => {
                    let rest = self.set(kind, &format!("sub.u{bits}"), &[&a, &high]);
                    let rest = shift(self, &rest, 1);
                    let sum = self.set(kind, &format!("add.u{bits}"), &[&rest, &high]);
                    shift(self, &sum, log - 1)
                }
            }
        };
        let magnitude = match op {
            BinaryOp::Div => quotient,
            _ => {
                let by = by.to_string();
                let whole = self.set(kind, &format!("mul.lo.u{bits}"), &[&quotient, &by]);
                self.set(kind, &format!("sub.u{bits}"), &[&a, &whole])
            }
        };
        match sign {
            None => magnitude,
            Some(sign) => {
                let turned = self.set(kind, &format!("xor.b{bits}"), &[&magnitude, &sign]);
                self.set(kind, &format!("sub.s{bits}"), &[&turned, &sign])
            }
        }
    }
}

/// A division of integers, whose quotients are truncated.
#[derive(Clone, Copy)]
pub(super) struct Division {
    dtype: DType,
    /// The divisor where it is known and more than zero.
    by: Option<u64>,
    /// Whether both operands are zero or more.
    natural: bool,
    /// Whether they have at most 31 bits then.
    narrow: bool,
}

impl Division {
    pub(super) fn of(body: &Body<'_>, x: Value, y: Value) -> Division {
        let kernel = body.kernel;
        let scalar = match kernel.op(y) {
            Op::Splat { x } => x,
            _ => y,
        };
        let by = kernel.constant(scalar).and_then(|n| u64::try_from(n.to_i128()).ok());
        let dtype = kernel.ty(x).dtype;
        let [x, y] = [x, scalar].map(|v| body.ranges.get(v));
        let unsigned = !dtype.is_signed();
        let natural = unsigned || x.min >= 0 && y.min >= 0;
        let most = i32::MAX.into();
        let fits = |x: Interval| x.min >= 0 && x.max <= most;
        let narrow = dtype.bits() == 64 && fits(x) && fits(y);
        Division { dtype, by: by.filter(|&n| n > 0), natural, narrow }
    }
}

/// What magnitudes are multiplied by to divide them by a number that is no power of two: the lower `bits` bits of
/// its reciprocal. For magnitudes of up to half the range (`half`) there are no more, else one.
fn reciprocal(by: u64, bits: u32, half: bool) -> u64 {
    let log = by.next_power_of_two().trailing_zeros();
    let power = bits + log - u32::from(half);
    let whole = (1u128 << power) / u128::from(by) + 1;
    (whole & ((1 << bits) - 1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the instructions of a division compute.
    #[test]
    fn quotients_are_exact() {
        let mut divisors: Vec<u64> = (3..200).chain((1..31).map(|n| (1 << n) - 1)).collect();
        divisors.extend((2..31).flat_map(|n| [(1 << n) + 1, (1 << n) - (1 << (n / 2)) + 1]));
        for by in divisors.into_iter().filter(|by| *by > 2 && !by.is_power_of_two()) {
            let log = by.next_power_of_two().trailing_zeros();
            for (bits, half) in [(32, true), (32, false), (64, true), (64, false)] {
                let most = if half { 1 << (bits - 1) } else { u128::MAX >> (128 - bits) };
                let near = |x: u128| [x.saturating_sub(1), x, x + 1];
                let multiples = [1, 2, 1000, most / u128::from(by) / 2, most / u128::from(by)];
                let mut all: Vec<u128> =
                    multiples.into_iter().flat_map(|n| near(n * u128::from(by))).collect();
                all.extend([0, 1, most - 1, most]);
                for x in all.into_iter().filter(|&x| x <= most) {
                    let high = (x * u128::from(reciprocal(by, bits, half))) >> bits;
                    let sum = if half { high } else { ((x - high) >> 1) + high };
                    assert_eq!(sum >> (log - 1), x / u128::from(by), "{x} by {by}, {bits} bits");
                }
            }
        }
    }
}
