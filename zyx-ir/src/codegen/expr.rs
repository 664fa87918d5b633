//! Spells expressions: the exact meaning of every op of the table in a C-family language.
//!
//! Where C leaves an operation undefined or hardware differs, the spelling makes the defined
//! value explicit:
//! * sums, products, negation and shifts of signed integers go through the unsigned type, since
//!   signed overflow is undefined;
//! * `max` and `min` of floats select, so that a NaN operand wins;
//! * float to integer uses the saturating conversion; floats become halves by one rounding.
//!
//! Divisors and distances of shifts are such as C defines the result for: the core has seen to that
//! (`Caps::partial_integers`). Operands are identifiers or literals, so an expression may repeat
//! them.

use super::dialect::{Dialect, Helper};
use crate::caps::Caps;
use crate::dtype::{Class, DType};
use crate::ir::Type;
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use std::collections::BTreeSet;

/// A dialect on a device, and the helpers used so far.
#[derive(Debug)]
pub(super) struct Speller<'a> {
    pub(super) dialect: &'a Dialect,
    pub(super) caps: &'a Caps,
    pub(super) helpers: BTreeSet<Helper>,
}

impl Speller<'_> {
    /// The name of a type.
    pub(super) fn ty(&self, ty: Type) -> String {
        let name = self.dialect.types[ty.dtype as usize];
        if ty.is_vector() { (self.dialect.vector_type)(name, ty.lanes) } else { name.to_owned() }
    }

    /// Whether values of this half dtype are held as bits.
    fn is_packed(&self, dtype: DType) -> bool {
        matches!(dtype, DType::F16 | DType::BF16) && !self.caps.compute.contains(dtype)
    }

    /// A literal; never negative without parentheses.
    pub(super) fn literal(&self, x: Scalar) -> String {
        let dtype = x.dtype();
        let (name, suffix) =
            (self.dialect.types[dtype as usize], self.dialect.suffixes[dtype as usize]);
        let bits = |unsigned: DType| {
            let suffix = self.dialect.suffixes[unsigned as usize];
            (self.dialect.bitcast)(name, &format!("{:#x}{suffix}", x.bits()))
        };
        match dtype {
            DType::F16 | DType::BF16 => {
                let word = format!("({}){:#x}", self.dialect.types[DType::U16 as usize], x.bits());
                if self.is_packed(dtype) { word } else { (self.dialect.bitcast)(name, &word) }
            }
            DType::F32 if !x.to_f64().is_finite() => bits(DType::U32),
            DType::F64 if !x.to_f64().is_finite() => bits(DType::U64),
            DType::I32 if x == Scalar::lowest(dtype) => bits(DType::U32),
            DType::I64 if x == Scalar::lowest(dtype) => bits(DType::U64),
            DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::F32 | DType::F64 => {
                let text = format!("{x}{suffix}");
                if text.starts_with('-') { format!("({text})") } else { text }
            }
            _ => format!("({name}){}", x.to_i128()),
        }
    }

    /// The small integer `n` as a literal of `dtype`.
    fn small(&self, dtype: DType, n: i64) -> String {
        self.literal(Scalar::from_i64(dtype, n))
    }

    /// `if_true` where `test`, a comparison of values of type `ty`, holds.
    fn select(&self, ty: Type, test: &str, if_true: &str, if_false: &str) -> String {
        if !ty.is_vector() {
            return format!("({test} ? {if_true} : {if_false})");
        }
        (self.dialect.select)(test, &self.fill(ty, if_true), &self.fill(ty, if_false))
    }

    /// A scalar or vector expression as a vector of type `ty`.
    pub(super) fn fill(&self, ty: Type, x: &str) -> String {
        if ty.is_vector() {
            (self.dialect.vector)(&self.ty(ty), &[x.to_owned()])
        } else {
            x.to_owned()
        }
    }

    /// A vector from a function of its lanes, or the scalar of lane 0.
    pub(super) fn lanes(&mut self, ty: Type, f: &mut dyn FnMut(&mut Self, u8) -> String) -> String {
        if !ty.is_vector() {
            return f(self, 0);
        }
        let lanes: Vec<String> = (0..ty.lanes).map(|lane| f(self, lane)).collect();
        (self.dialect.vector)(&self.ty(ty), &lanes)
    }

    /// Lane `lane` of `x`, or `x` itself if it is no vector.
    pub(super) fn lane(&self, ty: Type, x: &str, lane: u8) -> String {
        if ty.is_vector() { (self.dialect.lane)(x, lane) } else { x.to_owned() }
    }

    /// A call of a helper, which the source will define.
    pub(super) fn call(&mut self, helper: Helper, args: &[&str]) -> String {
        self.helpers.insert(helper);
        format!("{}({})", helper.name(), args.join(", "))
    }

    /// The bits of `x` as the type `to` of equal width.
    pub(super) fn bitcast(&self, from: Type, to: Type, x: &str) -> String {
        let name = self.ty(to);
        if to.dtype == DType::Bool && from.dtype != DType::Bool {
            let zero = self.small(from.dtype, 0);
            self.truth(to.lanes, &format!("{x} != {zero}"))
        } else if name == self.ty(from) {
            x.to_owned()
        } else {
            (self.dialect.bitcast)(&name, x)
        }
    }

    /// A comparison as a bool.
    fn truth(&self, lanes: u8, comparison: &str) -> String {
        if lanes > 1 {
            return (self.dialect.truth)(lanes, comparison);
        }
        format!("({})({comparison})", self.dialect.types[DType::Bool as usize])
    }

    /// The unsigned type of the same width.
    fn unsigned(ty: Type) -> Type {
        ty.with(match ty.dtype.bits() {
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::U32,
            _ => DType::U64,
        })
    }

    /// `f` on the operands as unsigned integers: wrapping, with the bits of the signed result.
    fn wrapping(&self, ty: Type, args: &[&str], f: impl Fn(&[String]) -> String) -> String {
        let unsigned = Self::unsigned(ty);
        let args: Vec<String> = args.iter().map(|x| self.bitcast(ty, unsigned, x)).collect();
        self.bitcast(unsigned, ty, &f(&args))
    }

    /// A unary op on `x` of type `ty`.
    pub(super) fn unary(&self, op: UnaryOp, ty: Type, x: &str) -> String {
        let name = (self.dialect.unary)(op);
        match (ty.dtype.class(), op) {
            (Class::Bool, _) => format!("{x} ^ {}", self.small(DType::Bool, 1)),
            (Class::Float, UnaryOp::Neg) => format!("-{x}"),
            (Class::Float, UnaryOp::Recip) => format!("{} / {x}", self.small(ty.dtype, 1)),
            (Class::Float, _) => format!("{name}({x})"),
            (_, UnaryOp::Not) => format!("~{x}"),
            (_, UnaryOp::Neg) => {
                let zero = self.small(Self::unsigned(ty).dtype, 0);
                self.wrapping(ty, &[x], |a| format!("{zero} - {}", a[0]))
            }
            (Class::Signed, UnaryOp::Abs) => {
                let negative = self.unary(UnaryOp::Neg, ty, x);
                let zero = self.small(ty.dtype, 0);
                self.select(ty, &format!("({x} < {zero})"), &negative, x)
            }
            // Rounding an integer, and the magnitude of an unsigned one.
            _ => x.to_owned(),
        }
    }

    /// A binary op on operands of type `ty`.
    pub(super) fn binary(&mut self, op: BinaryOp, ty: Type, (x, y): (&str, &str)) -> String {
        use BinaryOp::{Add, And, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Sub, Xor};
        let class = ty.dtype.class();
        let infix = |symbol: &str| format!("{x} {symbol} {y}");
        match op {
            Lt => self.truth(ty.lanes, &infix("<")),
            Le => self.truth(ty.lanes, &infix("<=")),
            Eq => self.truth(ty.lanes, &infix("==")),
            Ne => self.truth(ty.lanes, &infix("!=")),
            And => infix("&"),
            Or => infix("|"),
            Xor => infix("^"),
            Add | Max if class == Class::Bool => infix("|"),
            Mul | Min if class == Class::Bool => infix("&"),
            Add | Sub | Mul => {
                let symbol = match op {
                    Add => "+",
                    Sub => "-",
                    _ => "*",
                };
                match class {
                    Class::Signed => {
                        self.wrapping(ty, &[x, y], |a| format!("{} {symbol} {}", a[0], a[1]))
                    }
                    _ => infix(symbol),
                }
            }
            Max | Min if (self.dialect.extreme)(op, ty.dtype).is_some() => {
                let function = (self.dialect.extreme)(op, ty.dtype).unwrap_or_default();
                format!("{function}({x}, {y})")
            }
            Max | Min if class == Class::Float => {
                let symbol = if op == Max { '>' } else { '<' };
                self.select(ty, &format!("(({x} {symbol} {y}) | ({x} != {x}))"), x, y)
            }
            BinaryOp::Div => infix("/"),
            BinaryOp::Rem if class != Class::Float => infix("%"),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, ty, x, y),
            BinaryOp::Pow if class != Class::Float => self.lanes(ty, &mut |s, lane| {
                let (x, y) = (s.lane(ty, x, lane), s.lane(ty, y, lane));
                s.call(Helper::Pow(ty.dtype), &[&x, &y])
            }),
            _ => format!("{}({x}, {y})", (self.dialect.binary)(op)),
        }
    }

    /// A shift: to the left as unsigned.
    fn shift(&self, op: BinaryOp, ty: Type, x: &str, y: &str) -> String {
        let unsigned = Self::unsigned(ty);
        match op {
            BinaryOp::Shl => {
                let shifted = format!("{} << {y}", self.bitcast(ty, unsigned, x));
                self.bitcast(unsigned, ty, &shifted)
            }
            _ => format!("{x} >> {y}"),
        }
    }

    /// A ternary op with a result of type `ty`.
    pub(super) fn ternary(&self, op: TernaryOp, ty: Type, x: &str, y: &str, z: &str) -> String {
        match op {
            TernaryOp::Where if ty.is_vector() => {
                (self.dialect.select)(&(self.dialect.test)(ty, x), y, z)
            }
            TernaryOp::Where => format!("{x} ? {y} : {z}"),
            TernaryOp::MulAdd => format!("{}({x}, {y}, {z})", (self.dialect.ternary)(op)),
        }
    }

    /// The value of `x` converted from one type to another, rounded once.
    pub(super) fn cast(&mut self, from: Type, to: Type, x: &str) -> String {
        if from.dtype == to.dtype {
            return x.to_owned();
        }
        if self.is_packed(from.dtype) {
            let single = from.with(DType::F32);
            let wide = self.call(Helper::Unpack(from.dtype, from.lanes), &[x]);
            return self.cast(single, to, &wide);
        }
        if to.dtype == DType::Bool {
            return self.truth(to.lanes, &format!("{x} != {}", self.small(from.dtype, 0)));
        }
        if self.is_packed(to.dtype) {
            let single = self.single(from, to, x);
            return self.call(Helper::Pack(to.dtype, to.lanes), &[&single]);
        }
        if from.dtype.is_float() && !to.dtype.is_float() {
            return (self.dialect.saturate)(from, &self.ty(to), x);
        }
        (self.dialect.convert)(&self.ty(to), x)
    }

    /// `x` as `f32` on its way to the half `to`: rounded to odd unless it either fits or, beyond
    /// 2^24, overflows `f16` anyway.
    fn single(&mut self, from: Type, to: Type, x: &str) -> String {
        let single = from.with(DType::F32);
        let exact = from.dtype == DType::F32
            || from.dtype.bits() <= 16
            || (to.dtype == DType::F16 && !from.dtype.is_float());
        if exact {
            return self.cast(from, single, x);
        }
        self.lanes(single, &mut |s, lane| {
            let x = s.lane(from, x, lane);
            s.call(Helper::Odd(from.dtype), &[&x])
        })
    }
}
