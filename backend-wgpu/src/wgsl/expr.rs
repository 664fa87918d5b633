//! Spells expressions: the exact meaning of every op of the table in WGSL.
//!
//! A value is held in the nearest type WGSL has: bools as `bool`; 8- and 16-bit integers in a
//! 32-bit one of the same sign, always within their range; halves as their bits in a `u32`.
//! Arithmetic on halves and narrow integers does not occur, since no device here claims it; they are
//! loaded, stored and converted.
//!
//! Where WGSL leaves a result open or hardware differs, the spelling makes the defined value
//! explicit:
//! * NaN is recognised by its bits, since translators get comparisons of NaN wrong; `Max` and
//!   `Min` of floats select, so that a NaN operand wins; `!=` is the negation of `==`;
//! * negation and magnitude of floats change the sign bit, so they are exact for NaN and zeros;
//! * infinities and NaNs are made from bits at run time, since WGSL has no such constants.
//!
//! Divisors, distances of shifts and floats that become integers are such as WGSL defines the
//! result for, and nothing is converted to or from halves: the core has seen to that
//! (`Caps::partial_integers`, `Caps::partial_casts`).
//!
//! Drivers may contract and reassociate float arithmetic as if it were exact, and WGSL has no way
//! to forbid it. [`fence`](Speller::fence) hides a value's origin behind an exclusive or with a
//! zero that only the host knows; the emitter puts it between one float op and the next. Where the
//! device promises multiply-adds that round once, quotients of `f32` are a function that corrects
//! them by such.

use zyx_core::hal::{Caps, Rounding};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// Spells for one device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Speller<'a> {
    pub(super) caps: &'a Caps,
}

/// Whether a value of this dtype is held as something narrower than it is stored on its own.
pub(super) fn is_narrow(dtype: DType) -> bool {
    dtype.bits() < 32
}

impl Speller<'_> {
    /// The type a value is held in.
    pub(super) fn ty(self, dtype: DType) -> &'static str {
        match dtype {
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
            (Class::Float, _) => format!("{}({x})", op.name()),
            (_, UnaryOp::Not) => format!("~{x}"),
            (_, UnaryOp::Neg) => format!("{} - {x}", self.small(dtype, 0)),
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
            (Div, _) => infix("/"),
            (Rem, _) => infix("%"),
            (Shl | Shr, _) => {
                let symbol = if op == Shl { "<<" } else { ">>" };
                let distance = constant.map(|n| format!("{}u", n.to_i64()));
                format!("{x} {symbol} {}", distance.unwrap_or_else(|| format!("u32({y})")))
            }
            (BinaryOp::Pow | BinaryOp::Atan2, _) => {
                unreachable!("invariant: {op} is decomposed before")
            }
        }
    }

    /// A quotient of floats, as good as the capabilities say.
    fn quotient(self, dtype: DType, x: &str, y: &str) -> String {
        match self.caps.quotients {
            Rounding::Usual if dtype == DType::F32 => format!("div_f32({x}, {y})"),
            _ => format!("{x} / {y}"),
        }
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
        if from == to {
            return x.to_owned();
        }
        if from == DType::Bool {
            let [zero, one] = [0, 1].map(|n| self.small(to, n));
            return format!("select({zero}, {one}, {x})");
        }
        if to == DType::Bool {
            let zero = self.small(from, 0);
            return match from {
                _ if from.is_float() => format!("!({x} == {zero})"),
                _ => format!("{x} != {zero}"),
            };
        }
        match (from.is_float(), to.is_float()) {
            (true, false) if from == DType::F64 && to.bits() < 64 => {
                let name = self.ty(to);
                format!("{name}({}64({x}))", &name[..1])
            }
            (true, false) => format!("{}({x})", self.ty(to)),
            (false, false) => self.integer(from, to, x),
            (_, true) => format!("{to}({x})"),
        }
    }

    /// An integer as another, wrapped.
    fn integer(self, from: DType, to: DType, x: &str) -> String {
        let bits = to.bits();
        if bits == 64 {
            return match from.is_signed() {
                _ if from.bits() == 64 => format!("bitcast<{to}>({x})"),
                true if to == DType::U64 => format!("bitcast<u64>(i64({x}))"),
                // WGSL says nothing of it, and the translator extends the sign.
                false if to == DType::I64 => format!("bitcast<i64>(u64({x}))"),
                _ => format!("{to}({x})"),
            };
        }
        let fits = is_narrow(from)
            && from.bits() <= bits
            && (from.is_signed() == to.is_signed() || (from.bits() < bits && to.is_signed()));
        let name = self.ty(to);
        let converted = match self.ty(from) == name {
            true => x.to_owned(),
            false => format!("{name}({x})"),
        };
        match to {
            _ if fits || !is_narrow(to) => converted,
            _ if to.is_signed() => format!("extractBits({converted}, 0u, {bits}u)"),
            _ => format!("{converted} & {:#x}u", (1u64 << bits) - 1),
        }
    }
}
