//! Spells expressions: the exact meaning of every op of the table in WGSL.
//!
//! A value is a bool or a number of 32 or 64 bits: the core has lowered everything else to these
//! (`zyx_core::legalize::lower_to_32_bit`).
//!
//! Where WGSL leaves a result open or hardware differs, the spelling makes the defined value
//! explicit:
//! * NaN is recognised by its bits, since translators get comparisons of NaN wrong; `Max` and
//!   `Min` of floats select, so that a NaN operand wins; `!=` is the negation of `==`;
//! * negation and magnitude of floats change the sign bit, so they are exact for NaN and zeros;
//! * infinities and NaNs are made from bits at run time, since WGSL has no such constants.
//!
//! Divisors, distances of shifts and floats that become integers are such as WGSL defines the
//! result for: the core has seen to that (`Caps::partial_integers`, `Caps::partial_casts`).
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

impl Speller<'_> {
    /// A literal; never negative without parentheses.
    pub(super) fn literal(self, x: Scalar) -> String {
        let (dtype, bits) = (x.dtype(), x.bits());
        let signed = |text: String| if text.starts_with('-') { format!("({text})") } else { text };
        let plain = x.to_f64().is_normal() || bits == 0;
        match dtype {
            DType::Bool => x.to_bool().to_string(),
            DType::U64 => format!("{bits}lu"),
            DType::I64 if x == Scalar::lowest(dtype) => "(-9223372036854775807li - 1li)".into(),
            DType::I64 => signed(format!("{}li", x.to_i64())),
            DType::I32 if x == Scalar::lowest(dtype) => "(-2147483647i - 1i)".into(),
            DType::I32 => signed(format!("{}i", x.to_i64())),
            DType::F32 if plain && x.to_f64().abs() >= f32::MIN_POSITIVE.into() || bits == 0 => {
                signed(format!("{:?}f", x.get::<f32>()))
            }
            DType::F32 => format!("real({bits:#x}u)"),
            DType::F64 if plain => signed(format!("{:?}lf", x.to_f64())),
            DType::F64 => format!("real64({bits:#x}lu)"),
            _ => format!("{bits}u"),
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
        let name = dtype.name();
        let (raw, suffix, sign) = Self::bits_of(dtype);
        match (dtype.class(), op) {
            (Class::Bool, _) => format!("!{x}"),
            (Class::Float, UnaryOp::Neg) => {
                format!("bitcast<{name}>(bitcast<{raw}>({x}) ^ {sign:#x}{suffix})")
            }
            (Class::Float, UnaryOp::Abs) => {
                format!("bitcast<{name}>(bitcast<{raw}>({x}) & {:#x}{suffix})", sign - 1)
            }
            (Class::Float, _) => format!("{}({x})", op.name()),
            (_, UnaryOp::Neg) => format!("{} - {x}", self.small(dtype, 0)),
            _ => format!("~{x}"),
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
        let symbol = match op {
            BinaryOp::Max | BinaryOp::Min => {
                let symbol = if op == BinaryOp::Max { '>' } else { '<' };
                return format!("select({y}, {x}, {x} {symbol} {y} || is_nan_{dtype}({x}))");
            }
            BinaryOp::Ne if dtype.is_float() => return format!("!({x} == {y})"),
            BinaryOp::Div if dtype.is_float() => return self.quotient(dtype, x, y),
            BinaryOp::Shl | BinaryOp::Shr => {
                let symbol = if op == BinaryOp::Shl { "<<" } else { ">>" };
                let distance = constant.map(|n| format!("{}u", n.to_i64()));
                let distance = distance.unwrap_or_else(|| format!("u32({y})"));
                return format!("{x} {symbol} {distance}");
            }
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::LogAddExp | BinaryOp::Gcd => {
                unreachable!("invariant: {op} is decomposed before")
            }
        };
        format!("{x} {symbol} {y}")
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
        if from == to { x.to_owned() } else { format!("bitcast<{to}>({x})") }
    }

    /// The value of `x` converted from one dtype to another, rounded once.
    pub(super) fn cast(self, from: DType, to: DType, x: &str) -> String {
        let name = to.name();
        match (from, to) {
            _ if from == to => x.to_owned(),
            (DType::Bool, _) => {
                let [zero, one] = [0, 1].map(|n| self.small(to, n));
                format!("select({zero}, {one}, {x})")
            }
            (_, DType::Bool) => self.binary(BinaryOp::Ne, from, (x, &self.small(from, 0)), None),
            (DType::F64, _) if !to.is_float() && to.bits() < 64 => {
                format!("{name}({}64({x}))", &name[..1])
            }
            (DType::I64 | DType::U64, DType::I64 | DType::U64) => format!("bitcast<{to}>({x})"),
            _ if from.is_signed() && to == DType::U64 => format!("bitcast<u64>(i64({x}))"),
            // WGSL says nothing of it, and the translator extends the sign.
            _ if from.is_int() && !from.is_signed() && to == DType::I64 => {
                format!("bitcast<i64>(u64({x}))")
            }
            _ => format!("{name}({x})"),
        }
    }
}
