//! What ops mean in terms of simpler ones, for devices that lack them.
//!
//! An expansion is written against [`Expand`], a builder that asks the device's [`Caps`] for each
//! op it is given and expands that in turn where it is missing; so an expansion may use whatever
//! reads best. All work lane by lane, on scalars and vectors alike, without branches but for huge
//! arguments of the circular functions.
//!
//! Float functions meet the error bounds of the op table in `f32` (tests sweep the whole range
//! against `f64`) and handle NaN, infinities, zeros of both signs, subnormals and overflow. In
//! `f64` the same code runs with longer polynomials; what differs stands in `double.rs`.
//! Coefficients come from `scripts/polynomials.py`.

mod arithmetic;
mod circular;
pub mod coefficients;
mod convert;
mod double;
mod exponential;
mod power;
mod quotient;
mod rounding;

use crate::caps::{Caps, Rounding};
use crate::dtype::DType;
use crate::ir::{Builder, Op, Space, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;
use coefficients::Table;

/// A builder that expands what the device lacks.
#[derive(Debug)]
pub struct Expand<'a> {
    b: &'a mut Builder,
    caps: &'a Caps,
    missing: Option<String>,
    depth: u32,
}

impl<'a> Expand<'a> {
    /// Emits into `b` for a device.
    pub fn new(b: &'a mut Builder, caps: &'a Caps) -> Expand<'a> {
        Expand { b, caps, missing: None, depth: 0 }
    }

    /// What could not be expressed, if anything.
    pub fn missing(self) -> Option<String> {
        self.missing
    }

    /// A unary op or its expansion.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        if self.caps.has_unary(op, dtype) {
            return match op {
                UnaryOp::Recip if self.caps.quotients != Rounding::Exact && dtype.is_float() => {
                    let one = self.k(1.0, x);
                    self.div(one, x)
                }
                UnaryOp::Sqrt => self.root(x),
                _ => self.b.unary(op, x),
            };
        }
        self.expand(op.name(), dtype, x, |e| e.expand_unary(op, x))
    }

    /// A binary op or its expansion.
    pub fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let dtype = self.b.ty(x).dtype;
        if self.caps.has_binary(op, dtype) {
            return match op {
                BinaryOp::Div | BinaryOp::Rem if self.caps.partial_integers && dtype.is_int() => {
                    self.total_division(op, x, y)
                }
                BinaryOp::Div if dtype.is_float() => self.quotient(x, y),
                BinaryOp::Shl | BinaryOp::Shr if self.caps.partial_integers => {
                    self.total_shift(op, x, y)
                }
                _ => self.b.binary(op, x, y),
            };
        }
        self.expand(op.name(), dtype, x, |e| e.expand_binary(op, x, y))
    }

    /// A ternary op or its expansion.
    pub fn ternary(&mut self, op: TernaryOp, x: Value, y: Value, z: Value) -> Value {
        let dtype = self.b.ty(y).dtype;
        if op == TernaryOp::Where || self.caps.has_ternary(op, dtype) {
            return self.b.ternary(op, x, y, z);
        }
        if matches!(dtype, DType::F16 | DType::BF16) {
            // The product is exact there.
            let [x, y, z] = [x, y, z].map(|x| self.cast(DType::F32, x));
            let wide = self.ternary(op, x, y, z);
            return self.cast(dtype, wide);
        }
        let product = self.mul(x, y);
        self.add(product, z)
    }

    /// All lanes combined; without a native op to combine by, lane by lane in the order the
    /// interpreter does it (which any grouping of float sums may differ from).
    pub fn fold(&mut self, op: BinaryOp, x: Value) -> Value {
        let ty = self.b.ty(x);
        let scalar = Type::scalar(ty.dtype);
        if self.caps.has_binary(op, ty.dtype) {
            return self.b.emit(Op::Fold { op, x }, scalar);
        }
        self.fold_lanes(x, |e, x, y| e.binary(op, x, y))
    }

    /// All lanes combined by `f`: the upper half into the lower until one is left, or from left
    /// to right where there are no halves.
    pub fn fold_lanes(
        &mut self,
        x: Value,
        mut f: impl FnMut(&mut Expand<'a>, Value, Value) -> Value,
    ) -> Value {
        let ty = self.b.ty(x);
        let scalar = Type::scalar(ty.dtype);
        let lane = |lane| self.b.emit(Op::Extract { x, lane }, scalar);
        let mut lanes: Vec<Value> = (0..ty.lanes).map(lane).collect();
        while lanes.len() > 1 {
            let half = if lanes.len().is_power_of_two() { lanes.len() / 2 } else { 1 };
            for (i, high) in lanes.split_off(half).into_iter().enumerate() {
                lanes[i % half] = f(self, lanes[i % half], high);
            }
        }
        lanes[0]
    }

    /// Casts operands to `wide`, computes, and casts the result back to their dtype (a truth value
    /// stays one).
    pub fn through(
        &mut self,
        wide: DType,
        operands: &[Value],
        f: impl FnOnce(&mut Expand<'a>, &[Value]) -> Value,
    ) -> Value {
        let dtype = self.b.ty(operands[0]).dtype;
        let cast: Vec<Value> = operands.iter().map(|&x| self.cast(wide, x)).collect();
        let y = f(self, &cast);
        let is_truth = self.b.ty(y).dtype == DType::Bool;
        if is_truth { y } else { self.cast(dtype, y) }
    }

    /// Runs an expansion, or notes that there is none. Expansions that need one another in a
    /// circle have no end on a device without both, so the depth is limited.
    fn expand(
        &mut self,
        name: &str,
        dtype: DType,
        x: Value,
        f: impl FnOnce(&mut Expand<'a>) -> Option<Value>,
    ) -> Value {
        self.depth += 1;
        let value = if self.depth < 8 { f(self) } else { None };
        self.depth -= 1;
        value.unwrap_or_else(|| {
            self.missing.get_or_insert_with(|| format!("{name} on {dtype}"));
            x
        })
    }

    fn expand_unary(&mut self, op: UnaryOp, x: Value) -> Option<Value> {
        let dtype = self.b.ty(x).dtype;
        if dtype == DType::F16 || dtype == DType::BF16 {
            let wide = self.cast(DType::F32, x);
            let y = self.unary(op, wide);
            return Some(self.cast(dtype, y));
        }
        if !dtype.is_float() {
            return self.integer_unary(op, x);
        }
        let table = Table::of(dtype)?;
        match op {
            UnaryOp::Neg | UnaryOp::Abs => Some(self.sign_unary(op, x)),
            UnaryOp::Not => None,
            UnaryOp::Recip => {
                let one = self.k(1.0, x);
                Some(self.div(one, x))
            }
            UnaryOp::Sqrt => None,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => {
                Some(self.rounding(op, x))
            }
            UnaryOp::Exp => Some(self.exp(table, x)),
            UnaryOp::Exp2 => Some(self.exp2(table, x)),
            UnaryOp::Expm1 => Some(self.expm1(table, x)),
            UnaryOp::Log => Some(self.log(table, x)),
            UnaryOp::Log2 => Some(self.log2(table, x)),
            UnaryOp::Log1p => Some(self.log1p(table, x)),
            UnaryOp::Sinh => Some(self.sinh(table, x)),
            UnaryOp::Cosh => Some(self.cosh(table, x)),
            UnaryOp::Tanh => Some(self.tanh(table, x)),
            UnaryOp::Asin => Some(self.asin(table, x)),
            UnaryOp::Acos => Some(self.acos(table, x)),
            UnaryOp::Atan => Some(self.atan(table, x)),
            UnaryOp::Erf if dtype == DType::F64 => Some(self.erf_double(table, x)),
            UnaryOp::Erf => Some(self.erf(x)),
            UnaryOp::Sin => Some(self.sin(x)),
            UnaryOp::Cos => Some(self.cos(x)),
            UnaryOp::Tan => Some(self.tan(x)),
        }
    }

    fn expand_binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Option<Value> {
        let dtype = self.b.ty(x).dtype;
        if dtype == DType::F16 || dtype == DType::BF16 {
            let (a, b) = (self.cast(DType::F32, x), self.cast(DType::F32, y));
            let z = self.binary(op, a, b);
            return Some(if op.is_comparison() { z } else { self.cast(dtype, z) });
        }
        match op {
            BinaryOp::Pow if dtype.is_float() => Some(self.pow(x, y)),
            BinaryOp::Pow if dtype.is_int() => Some(self.integer_pow(x, y)),
            BinaryOp::Atan2 => Some(self.atan2(Table::of(dtype)?, x, y)),
            BinaryOp::LogAddExp => Some(self.log_add_exp(x, y)),
            BinaryOp::Gcd => Some(self.common_divisor(x, y)),
            BinaryOp::Rem if dtype.is_float() => self.float_rem(x, y),
            BinaryOp::Rem => Some(self.integer_rem(x, y)),
            BinaryOp::Div if dtype.is_int() && dtype.bits() == 64 => Some(self.long_quotient(x, y)),
            _ => self.simple_binary(op, x, y),
        }
    }

    /// A constant of the dtype and lanes of `like`.
    fn k(&mut self, x: f64, like: Value) -> Value {
        let ty = self.b.ty(like);
        let c = self.b.constant(Scalar::from_f64(ty.dtype, x));
        self.b.splat(c, ty.lanes)
    }

    /// An integer constant of `dtype` and the lanes of `like`.
    fn int(&mut self, dtype: DType, x: i64, like: Value) -> Value {
        let lanes = self.b.ty(like).lanes;
        let c = self.b.constant(Scalar::from_i64(dtype, x));
        self.b.splat(c, lanes)
    }

    fn lanes_of(&self, x: Value, dtype: DType) -> Type {
        self.b.ty(x).with(dtype)
    }

    fn add(&mut self, x: Value, y: Value) -> Value {
        self.binary(BinaryOp::Add, x, y)
    }

    fn sub(&mut self, x: Value, y: Value) -> Value {
        self.binary(BinaryOp::Sub, x, y)
    }

    fn mul(&mut self, x: Value, y: Value) -> Value {
        self.binary(BinaryOp::Mul, x, y)
    }

    fn div(&mut self, x: Value, y: Value) -> Value {
        self.binary(BinaryOp::Div, x, y)
    }

    /// `x * y + z`, fused where the device can.
    fn fma(&mut self, x: Value, y: Value, z: Value) -> Value {
        self.ternary(TernaryOp::MulAdd, x, y, z)
    }

    fn lt(&mut self, x: Value, y: Value) -> Value {
        self.binary(BinaryOp::Lt, x, y)
    }

    fn select(&mut self, cond: Value, x: Value, y: Value) -> Value {
        self.b.select(cond, x, y)
    }

    fn abs(&mut self, x: Value) -> Value {
        self.unary(UnaryOp::Abs, x)
    }

    fn neg(&mut self, x: Value) -> Value {
        self.unary(UnaryOp::Neg, x)
    }

    fn clamp(&mut self, x: Value, low: f64, high: f64) -> Value {
        let (low, high) = (self.k(low, x), self.k(high, x));
        let x = self.binary(BinaryOp::Max, x, low);
        self.binary(BinaryOp::Min, x, high)
    }

    /// The polynomial with these coefficients, ascending, by Horner's rule.
    fn polynomial(&mut self, coefficients: &[f64], x: Value) -> Value {
        let mut terms = coefficients.iter().rev();
        let first = terms.next().copied().unwrap_or(0.0);
        let mut sum = self.k(first, x);
        for &c in terms {
            let c = self.k(c, x);
            sum = self.fma(sum, x, c);
        }
        sum
    }

    /// `usual`, but in lanes for which `rare` holds what `f` computes. That is skipped where it holds
    /// for none.
    fn unless(
        &mut self,
        rare: Value,
        usual: Value,
        f: impl FnOnce(&mut Expand<'a>) -> Value,
    ) -> Value {
        let (ty, origin) = (self.b.ty(usual), self.b.index(0));
        let result = self.b.alloc(Space::Register, ty, 1);
        self.b.store(result, origin, usual);
        let any = self.any(rare);
        self.b.open_if(any);
        let other = f(self);
        let chosen = self.select(rare, other, usual);
        self.b.store(result, origin, chosen);
        self.b.close();
        self.b.load(result, origin)
    }

    /// The bits of a float as a signed integer.
    fn bits(&mut self, x: Value) -> Value {
        let dtype = if self.b.ty(x).dtype == DType::F64 { DType::I64 } else { DType::I32 };
        self.b.bitcast(dtype, x)
    }

    /// The float with these bits.
    fn float(&mut self, x: Value) -> Value {
        let dtype = if self.b.ty(x).dtype == DType::I64 { DType::F64 } else { DType::F32 };
        self.b.bitcast(dtype, x)
    }

    fn shl(&mut self, x: Value, n: i64) -> Value {
        let n = self.int(self.b.ty(x).dtype, n, x);
        self.binary(BinaryOp::Shl, x, n)
    }

    fn shr(&mut self, x: Value, n: i64) -> Value {
        let n = self.int(self.b.ty(x).dtype, n, x);
        self.binary(BinaryOp::Shr, x, n)
    }

    /// The sign bit of `x`, everything else zero, as an integer.
    fn sign_bit(&mut self, x: Value) -> Value {
        let bits = self.bits(x);
        let dtype = self.b.ty(bits).dtype;
        let mask = if dtype == DType::I64 { i64::MIN } else { i32::MIN as i64 };
        let mask = self.int(dtype, mask, x);
        self.binary(BinaryOp::And, bits, mask)
    }

    /// `x` with its sign flipped where the sign bit of `sign` (an integer) is set.
    fn flip_sign(&mut self, x: Value, sign: Value) -> Value {
        let bits = self.bits(x);
        let bits = self.binary(BinaryOp::Xor, bits, sign);
        self.float(bits)
    }

    /// Whether any lane of a bool holds.
    fn any(&mut self, cond: Value) -> Value {
        if !self.b.ty(cond).is_vector() {
            return cond;
        }
        self.fold(BinaryOp::Or, cond)
    }
}

#[cfg(test)]
mod tests;
