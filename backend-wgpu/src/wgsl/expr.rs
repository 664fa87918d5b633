//! Spells expressions: the exact meaning of every op of the table in WGSL.
//!
//! A value is held in the nearest type WGSL has: bools as `bool`; 8- and 16-bit integers in a
//! 32-bit one of the same sign, always within their range; halves as their bits in a `u32`; 64-bit
//! integers, where the device has none, as a pair of words. Arithmetic on halves and narrow
//! integers does not occur, since no device here claims it; they are loaded, stored and converted.
//!
//! Where WGSL leaves a result open or hardware differs, the spelling makes the defined value
//! explicit:
//! * a divisor of 0 or -1 is replaced by 1 and the defined result selected;
//! * shift distances are compared with the width;
//! * NaN is recognised by its bits, since translators get comparisons of NaN wrong; `Max` and
//!   `Min` of floats select, so that a NaN operand wins; `!=` is the negation of `==`;
//! * negation and magnitude of floats change the sign bit, so they are exact for NaN and zeros;
//! * float to integer saturates explicitly; integers and floats become halves by one rounding;
//! * infinities and NaNs are made from bits at run time, since WGSL has no such constants.
//!
//! Drivers may contract and reassociate float arithmetic as if it were exact, and WGSL has no way
//! to forbid it. [`fence`](Speller::fence) hides a value's origin behind an exclusive or with a
//! zero that only the host knows; the emitter puts it between one float op and the next. Quotients and square roots of
//! `f32` are functions that correct what the device is off by, except where it is exact.

use super::Division;
use zyx_core::hal::Caps;
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Spells for one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speller<'a> {
    pub(super) caps: &'a Caps,
    pub(super) division: Division,
}

/// Whether a value of this dtype is held as something narrower than it is stored on its own.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.bits() < 32
}

impl Speller<'_> {
    /// Whether a 64-bit integer is held as a pair of words.
    pub(super) fn is_pair(self, dtype: DType) -> bool {
        self.caps.emulated.contains(dtype)
    }

    /// The type a value is held in.
    pub(super) fn ty(self, dtype: DType) -> &'static str {
        match dtype {
            _ if self.is_pair(dtype) => "vec2<u32>",
            DType::Bool => "bool",
            DType::U8 | DType::U16 | DType::U32 | DType::F16 | DType::BF16 => "u32",
            DType::I8 | DType::I16 | DType::I32 => "i32",
            DType::U64 => "u64",
            DType::I64 => "i64",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }

    /// A literal; never negative without parentheses.
    pub(super) fn literal(self, x: Scalar) -> String {
        let (dtype, bits) = (x.dtype(), x.bits());
        let signed = |text: String| if text.starts_with('-') { format!("({text})") } else { text };
        let plain = x.to_f64().is_normal() || bits == 0;
        match dtype {
            _ if self.is_pair(dtype) => {
                format!("vec2<u32>({}u, {}u)", bits & 0xffff_ffff, bits >> 32)
            }
            DType::Bool => x.to_bool().to_string(),
            DType::U8 | DType::U16 | DType::U32 => format!("{bits}u"),
            DType::F16 | DType::BF16 => format!("{bits:#x}u"),
            DType::U64 => format!("{bits}lu"),
            DType::I64 if x == Scalar::lowest(dtype) => "(-9223372036854775807li - 1li)".into(),
            DType::I64 => signed(format!("{}li", x.to_i64())),
            DType::I32 if x == Scalar::lowest(dtype) => "(-2147483647i - 1i)".into(),
            DType::I8 | DType::I16 | DType::I32 => signed(format!("{}i", x.to_i64())),
            DType::F32 if plain && x.to_f64().abs() >= f32::MIN_POSITIVE.into() || bits == 0 => {
                signed(format!("{:?}f", x.get::<f32>()))
            }
            DType::F32 => format!("real({bits:#x}u)"),
            DType::F64 if plain => signed(format!("{:?}lf", x.to_f64())),
            DType::F64 => format!("real64({bits:#x}lu)"),
        }
    }

    /// The small integer `n` as a literal.
    pub(super) fn small(self, dtype: DType, n: i64) -> String {
        self.literal(Scalar::from_i64(dtype, n))
    }

    /// The float `x` as one whose origin the driver cannot know; `z` is a zero it cannot know.
    pub(super) fn fence(self, dtype: DType, x: &str) -> String {
        match dtype {
            DType::F64 => format!("bitcast<f64>(bitcast<u64>({x}) ^ u64(z))"),
            _ => format!("bitcast<f32>(bitcast<u32>({x}) ^ z)"),
        }
    }

    /// The unsigned integer type with the bits of a dtype of 32 or 64, its suffix and sign bit.
    fn bits_of(dtype: DType) -> (&'static str, &'static str, u64) {
        if dtype.bits() == 64 { ("u64", "lu", 1 << 63) } else { ("u32", "u", 1 << 31) }
    }

    /// A unary op.
    pub(super) fn unary(self, op: UnaryOp, dtype: DType, x: &str) -> String {
        let name = self.ty(dtype);
        let (raw, suffix, sign) = Self::bits_of(dtype);
        match (dtype.class(), op) {
            (Class::Bool, _) => format!("!{x}"),
            (Class::Float, UnaryOp::Neg) => {
                format!("bitcast<{name}>(bitcast<{raw}>({x}) ^ {sign:#x}{suffix})")
            }
            (Class::Float, UnaryOp::Abs) => {
                format!("bitcast<{name}>(bitcast<{raw}>({x}) & {:#x}{suffix})", sign - 1)
            }
            (Class::Float, UnaryOp::Recip) => self.quotient(dtype, &self.small(dtype, 1), x),
            (Class::Float, UnaryOp::Sqrt) if dtype == DType::F32 => match self.division {
                Division::Native => format!("sqrt({x})"),
                // NVIDIA's compiler rounds the products in remainders of roots, unlike those of
                // quotients, so that one root in thirty thousand would be off by a unit.
                Division::Fused | Division::Integer => format!("exact_root_f32({x})"),
            },
            (Class::Float, _) => format!("{}({x})", op.name()),
            (_, UnaryOp::Not) => format!("~{x}"),
            (_, UnaryOp::Neg) if self.is_pair(dtype) => format!("neg_64({x})"),
            (_, UnaryOp::Neg) => format!("{} - {x}", self.small(dtype, 0)),
            (Class::Signed, UnaryOp::Abs) if self.is_pair(dtype) => format!("abs_i64({x})"),
            (Class::Signed, UnaryOp::Abs) => {
                let zero = self.small(dtype, 0);
                format!("select({x}, {zero} - {x}, {x} < {zero})")
            }
            // Rounding an integer, and the magnitude of an unsigned one.
            _ => x.to_owned(),
        }
    }

    /// A binary op on operands of `dtype`; `constant` is what `y` is known to be.
    pub(super) fn binary(
        self,
        op: BinaryOp,
        dtype: DType,
        (x, y): (&str, &str),
        constant: Option<Scalar>,
    ) -> String {
        use BinaryOp::{Add, And, Div, Eq, Le, Lt, Max, Min, Mul, Ne, Or, Rem, Shl, Shr, Sub, Xor};
        if self.is_pair(dtype) {
            return self.pair_binary(op, dtype, x, y);
        }
        let class = dtype.class();
        let infix = |symbol: &str| format!("{x} {symbol} {y}");
        match (op, class) {
            (Lt, Class::Bool) => format!("!{x} & {y}"),
            (Le, Class::Bool) => format!("!{x} | {y}"),
            (Add | Max | Or, Class::Bool) => infix("|"),
            (Mul | Min | And, Class::Bool) => infix("&"),
            (Xor, Class::Bool) => infix("!="),
            (Ne, Class::Float) => format!("!({x} == {y})"),
            (Max | Min, Class::Float) => {
                let symbol = if op == Max { '>' } else { '<' };
                format!("select({y}, {x}, {x} {symbol} {y} || is_nan_{dtype}({x}))")
            }
            (Max, _) => format!("select({y}, {x}, {x} > {y})"),
            (Min, _) => format!("select({y}, {x}, {x} < {y})"),
            (Lt, _) => infix("<"),
            (Le, _) => infix("<="),
            (Eq, _) => infix("=="),
            (Ne, _) => infix("!="),
            (Add, _) => infix("+"),
            (Sub, _) => infix("-"),
            (Mul, _) => infix("*"),
            (And, _) => infix("&"),
            (Or, _) => infix("|"),
            (Xor, _) => infix("^"),
            (Div, Class::Float) => self.quotient(dtype, x, y),
            (Div | Rem, _) => self.divide(op, dtype, x, y, constant),
            (Shl | Shr, _) => self.shift(op, dtype, x, y, constant),
            (BinaryOp::Pow | BinaryOp::Atan2, _) => {
                unreachable!("invariant: {op} is decomposed before")
            }
        }
    }

    /// A quotient of floats. Those of `f64` are exact on every device seen.
    fn quotient(self, dtype: DType, x: &str, y: &str) -> String {
        match self.division {
            Division::Fused if dtype == DType::F32 => format!("div_f32({x}, {y})"),
            Division::Integer if dtype == DType::F32 => format!("exact_div_f32({x}, {y})"),
            _ => format!("{x} / {y}"),
        }
    }

    /// A binary op on pairs of words.
    fn pair_binary(self, op: BinaryOp, dtype: DType, x: &str, y: &str) -> String {
        use BinaryOp::{And, Eq, Le, Lt, Max, Min, Ne, Or, Xor};
        let less = |x: &str, y: &str| format!("lt_{dtype}({x}, {y})");
        match op {
            Lt => less(x, y),
            Le => format!("!{}", less(y, x)),
            Eq => format!("all({x} == {y})"),
            Ne => format!("any({x} != {y})"),
            Max => format!("select({y}, {x}, {})", less(y, x)),
            Min => format!("select({y}, {x}, {})", less(x, y)),
            And => format!("{x} & {y}"),
            Or => format!("{x} | {y}"),
            Xor => format!("{x} ^ {y}"),
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shr => {
                format!("{}_{dtype}({x}, {y})", op.name())
            }
            _ => format!("{}_64({x}, {y})", op.name()),
        }
    }

    /// Integer quotient or remainder: `x / 0 == 0`, `x % 0 == x`, `MIN / -1 == MIN`,
    /// `MIN % -1 == 0`.
    fn divide(self, op: BinaryOp, dtype: DType, x: &str, y: &str, known: Option<Scalar>) -> String {
        let symbol = if op == BinaryOp::Div { '/' } else { '%' };
        let [zero, one] = [0, 1].map(|n| self.small(dtype, n));
        let by_zero = if op == BinaryOp::Div { zero.as_str() } else { x };
        let by_minus_one = if op == BinaryOp::Div { format!("{zero} - {x}") } else { zero.clone() };
        match known.map(Scalar::to_i128) {
            Some(0) => return by_zero.to_owned(),
            Some(-1) => return by_minus_one,
            Some(_) => return format!("{x} {symbol} {y}"),
            None => {}
        }
        if !dtype.is_signed() {
            let divisor = format!("select({y}, {one}, {y} == {zero})");
            return format!("select({x} {symbol} {divisor}, {by_zero}, {y} == {zero})");
        }
        let minus_one = self.small(dtype, -1);
        let divisor = format!("select({y}, {one}, {y} == {zero} || {y} == {minus_one})");
        let usual = format!("select({x} {symbol} {divisor}, {by_zero}, {y} == {zero})");
        format!("select({usual}, {by_minus_one}, {y} == {minus_one})")
    }

    /// A shift: by the width or more (or a negative distance) gives 0, or the sign.
    fn shift(self, op: BinaryOp, dtype: DType, x: &str, y: &str, known: Option<Scalar>) -> String {
        let bits = dtype.bits() as i128;
        let (raw, suffix, _) = Self::bits_of(dtype);
        let symbol = if op == BinaryOp::Shl { "<<" } else { ">>" };
        let fills = op == BinaryOp::Shr && dtype.is_signed();
        match known.map(Scalar::to_i128) {
            Some(n) if (0..bits).contains(&n) => return format!("{x} {symbol} {n}u"),
            Some(_) if fills => return format!("{x} >> {}u", bits - 1),
            Some(_) => return self.small(dtype, 0),
            None => {}
        }
        let inside = format!("bitcast<{raw}>({y}) < {bits}{suffix}");
        if fills {
            return format!("{x} >> select({}u, u32({y}), {inside})", bits - 1);
        }
        let zero = self.small(dtype, 0);
        format!("select({zero}, {x} {symbol} (u32({y}) & {}u), {inside})", bits - 1)
    }

    /// A ternary op.
    pub(super) fn ternary(self, op: TernaryOp, x: &str, y: &str, z: &str) -> String {
        match op {
            TernaryOp::Where => format!("select({z}, {y}, {x})"),
            TernaryOp::MulAdd => format!("fma({x}, {y}, {z})"),
        }
    }

    /// The bits of `x` as a dtype of equal width.
    pub(super) fn bitcast(self, from: DType, to: DType, x: &str) -> String {
        let (held, name) = (self.ty(from), self.ty(to));
        let signed = matches!(to, DType::I8 | DType::I16);
        match (from, to) {
            _ if from == to => x.to_owned(),
            (DType::Bool, _) => {
                format!("select({}, {}, {x})", self.small(to, 0), self.small(to, 1))
            }
            (_, DType::Bool) => format!("{x} != {}", self.small(from, 0)),
            _ if held == name => x.to_owned(),
            _ if is_narrow(to) && signed => format!("extractBits(i32({x}), 0u, {}u)", to.bits()),
            _ if is_narrow(to) => format!("u32({x}) & {:#x}u", (1u64 << to.bits()) - 1),
            _ => format!("bitcast<{name}>({x})"),
        }
    }

    /// The value of `x` converted from one dtype to another, rounded once.
    pub(super) fn cast(self, from: DType, to: DType, x: &str) -> String {
        let is_half = |dtype| matches!(dtype, DType::F16 | DType::BF16);
        if from == to {
            return x.to_owned();
        }
        if from == DType::Bool {
            let [zero, one] = [0, 1].map(|n| self.small(to, n));
            return format!("select({zero}, {one}, {x})");
        }
        if is_half(from) {
            return self.cast(DType::F32, to, &format!("f32_from_{from}({x})"));
        }
        if to == DType::Bool {
            let zero = self.small(from, 0);
            return match from {
                _ if self.is_pair(from) => format!("any({x} != {zero})"),
                _ if from.is_float() => format!("!({x} == {zero})"),
                _ => format!("{x} != {zero}"),
            };
        }
        if is_half(to) {
            return format!("{to}_from_f32({})", self.single(from, to, x));
        }
        match (from.is_float(), to.is_float()) {
            (true, false) => self.saturate(from, to, x),
            (false, false) => self.integer(from, to, x),
            (false, true) => self.float(from, to, x),
            (true, true) => format!("{to}({x})"),
        }
    }

    /// `x` as `f32` on its way to the half `to`: rounded to odd unless it either fits or, beyond
    /// 2^24, overflows `f16` anyway.
    fn single(self, from: DType, to: DType, x: &str) -> String {
        let exact = from == DType::F32 || is_narrow(from) || (to == DType::F16 && !from.is_float());
        if exact { self.cast(from, DType::F32, x) } else { format!("odd_f32_from_{from}({x})") }
    }

    /// An integer as a float.
    fn float(self, from: DType, to: DType, x: &str) -> String {
        if to == DType::F32 && from.bits() == 64 {
            return format!("f32_from_{from}({x})");
        }
        format!("{to}({x})")
    }

    /// A float truncated to an integer, saturated, NaN to 0.
    fn saturate(self, from: DType, to: DType, x: &str) -> String {
        let wide = match to {
            _ if !is_narrow(to) => return format!("{to}_from_{from}({x})"),
            _ if to.is_signed() => DType::I32,
            _ => DType::U32,
        };
        let [low, high] =
            [Scalar::lowest(to), Scalar::highest(to)].map(|limit| self.literal(limit.cast(wide)));
        format!("clamp({wide}_from_{from}({x}), {low}, {high})")
    }

    /// An integer as another, wrapped.
    fn integer(self, from: DType, to: DType, x: &str) -> String {
        let bits = to.bits();
        if bits == 64 {
            let signed = from.is_signed();
            return match (self.is_pair(to), from.bits() == 64) {
                (true, true) => x.to_owned(),
                (false, true) => format!("bitcast<{to}>({x})"),
                (true, false) if signed => format!("vec2<u32>(u32({x}), u32({x} >> 31u))"),
                (true, false) => format!("vec2<u32>({x}, 0u)"),
                (false, false) if to == DType::U64 && signed => format!("bitcast<u64>(i64({x}))"),
                // WGSL says nothing of it, and the translator extends the sign.
                (false, false) if to == DType::I64 && !signed => format!("bitcast<i64>(u64({x}))"),
                (false, false) => format!("{to}({x})"),
            };
        }
        let low = if self.is_pair(from) { format!("{x}.x") } else { x.to_owned() };
        let held = if self.is_pair(from) { "u32" } else { self.ty(from) };
        let fits = is_narrow(from)
            && from.bits() <= bits
            && (from.is_signed() == to.is_signed() || (from.bits() < bits && to.is_signed()));
        let name = self.ty(to);
        let converted = if held == name { low } else { format!("{name}({low})") };
        match to {
            _ if fits || !is_narrow(to) => converted,
            _ if to.is_signed() => format!("extractBits({converted}, 0u, {bits}u)"),
            _ => format!("{converted} & {:#x}u", (1u64 << bits) - 1),
        }
    }
}
