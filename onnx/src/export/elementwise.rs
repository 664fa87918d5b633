//! Operations on elements, each with the meaning that the op table of zyx gives it.
//!
//! Integers divide by zero to zero, shifts by more bits than there are give what all bits shifted out leave, and
//! conversions saturate: where ONNX leaves that open, nodes around the operator say it. Dtypes that runtimes have few
//! kernels of are computed in a wider one.

use super::writer::{Name, Writer, int, string};
use zyx_core::{BinaryOp, Class, DType, Scalar, TernaryOp, UnaryOp};

/// An operand, with its value if it is a number.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) name: Name,
    pub(super) constant: Option<Scalar>,
}

/// The dtype in which sums, products and choices of a dtype are computed.
fn wide(dtype: DType) -> DType {
    match dtype {
        DType::I8 | DType::I16 | DType::U8 | DType::U16 => DType::I32,
        DType::U32 | DType::U64 => DType::I64,
        DType::BF16 => DType::F32,
        other => other,
    }
}

impl Writer {
    fn call(&mut self, kind: &str, inputs: &[&Name]) -> Name {
        let inputs: Vec<&str> = inputs.iter().map(|name| name.as_str()).collect();
        self.node(kind, &inputs, Vec::new())
    }

    fn widened(&mut self, x: &Name, from: DType, to: DType) -> Name {
        if from == to { x.clone() } else { self.cast(x, to) }
    }

    /// What `f` computes of operands in the wide dtype, in the dtype again.
    fn in_wide(
        &mut self,
        dtype: DType,
        operands: &[&Name],
        f: impl FnOnce(&mut Writer, &[Name]) -> Name,
    ) -> Name {
        let to = wide(dtype);
        let operands: Vec<Name> = operands.iter().map(|x| self.widened(x, dtype, to)).collect();
        let y = f(self, &operands);
        self.widened(&y, to, dtype)
    }

    pub(super) fn select(&mut self, dtype: DType, condition: &Name, x: &Name, y: &Name) -> Name {
        if dtype == DType::Bool {
            let not = self.call("Not", &[condition]);
            let (x, y) = (self.call("And", &[condition, x]), self.call("And", &[&not, y]));
            return self.call("Or", &[&x, &y]);
        }
        self.in_wide(dtype, &[x, y], |w, xy| w.call("Where", &[condition, &xy[0], &xy[1]]))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, dtype: DType, x: &Name) -> Result<Name, String> {
        if dtype.is_int() {
            return self.unary_of_integers(op, dtype, x);
        }
        if dtype == DType::Bool {
            return Ok(self.call("Not", &[x]));
        }
        if dtype == DType::BF16 {
            let x = self.cast(x, DType::F32);
            let y = self.unary(op, DType::F32, &x)?;
            return Ok(self.cast(&y, dtype));
        }
        let number = |w: &mut Writer, x: f64| w.number(dtype, x);
        let kind = match op {
            UnaryOp::Neg => "Neg",
            UnaryOp::Abs => "Abs",
            UnaryOp::Not => return Err("bits of floats".to_owned()),
            UnaryOp::Recip => "Reciprocal",
            UnaryOp::Sqrt => "Sqrt",
            UnaryOp::Exp => "Exp",
            UnaryOp::Log => "Log",
            UnaryOp::Sin => "Sin",
            UnaryOp::Cos => "Cos",
            UnaryOp::Tan => "Tan",
            UnaryOp::Asin => "Asin",
            UnaryOp::Acos => "Acos",
            UnaryOp::Atan => "Atan",
            UnaryOp::Sinh => "Sinh",
            UnaryOp::Cosh => "Cosh",
            UnaryOp::Tanh => "Tanh",
            UnaryOp::Erf => "Erf",
            UnaryOp::Floor => "Floor",
            UnaryOp::Ceil => "Ceil",
            UnaryOp::Round => "Round",
            UnaryOp::Exp2 => {
                let two = number(self, 2.0);
                return Ok(self.call("Pow", &[&two, x]));
            }
            UnaryOp::Log2 => {
                let (log, ln2) = (self.call("Log", &[x]), number(self, std::f64::consts::LN_2));
                return Ok(self.call("Div", &[&log, &ln2]));
            }
            UnaryOp::Trunc => {
                let zero = number(self, 0.0);
                let negative = self.call("Less", &[x, &zero]);
                let (up, down) = (self.call("Ceil", &[x]), self.call("Floor", &[x]));
                return Ok(self.call("Where", &[&negative, &up, &down]));
            }
            UnaryOp::Expm1 => return Ok(self.expm1(dtype, x)),
            UnaryOp::Log1p => return Ok(self.log1p(dtype, x)),
        };
        Ok(self.call(kind, &[x]))
    }

    fn unary_of_integers(&mut self, op: UnaryOp, dtype: DType, x: &Name) -> Result<Name, String> {
        match op {
            UnaryOp::Neg => Ok(self.in_wide(dtype, &[x], |w, x| w.call("Neg", &[&x[0]]))),
            UnaryOp::Abs if !dtype.is_signed() => Ok(x.clone()),
            UnaryOp::Abs => Ok(self.in_wide(dtype, &[x], |w, x| w.call("Abs", &[&x[0]]))),
            UnaryOp::Not => Ok(self.call("BitwiseNot", &[x])),
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => Ok(x.clone()),
            other => Err(format!("{other} of integers")),
        }
    }

    /// `exp(x) - 1` without cancellation (Kahan): `(u - 1) * x / log(u)` of the rounded `u = exp(x)`.
    fn expm1(&mut self, dtype: DType, x: &Name) -> Name {
        let one = self.number(dtype, 1.0);
        let u = self.call("Exp", &[x]);
        let less = self.call("Sub", &[&u, &one]);
        let log = self.call("Log", &[&u]);
        let scaled = self.call("Mul", &[&less, x]);
        let exact = self.call("Div", &[&scaled, &log]);
        let (half, limit) = (self.number(dtype, 0.5), self.call("Abs", &[x]));
        let small = self.call("Less", &[&limit, &half]);
        let is_one = self.call("Equal", &[&u, &one]);
        let y = self.call("Where", &[&small, &exact, &less]);
        self.call("Where", &[&is_one, x, &y])
    }

    /// `log(1 + x)` likewise: `log(u) * x / (u - 1)` of the rounded `u = 1 + x`.
    fn log1p(&mut self, dtype: DType, x: &Name) -> Name {
        let one = self.number(dtype, 1.0);
        let u = self.call("Add", &[x, &one]);
        let less = self.call("Sub", &[&u, &one]);
        let log = self.call("Log", &[&u]);
        let scaled = self.call("Mul", &[&log, x]);
        let exact = self.call("Div", &[&scaled, &less]);
        let (half, limit) = (self.number(dtype, 0.5), self.call("Abs", &[x]));
        let small = self.call("Less", &[&limit, &half]);
        let is_one = self.call("Equal", &[&u, &one]);
        let y = self.call("Where", &[&small, &exact, &log]);
        self.call("Where", &[&is_one, x, &y])
    }

    /// A binary operation on operands of a dtype.
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: &Operand,
        y: &Operand,
    ) -> Result<Name, String> {
        if op.is_comparison() {
            return Ok(self.comparison(op, dtype, &x.name, &y.name));
        }
        match dtype.class() {
            Class::Bool => self.binary_of_bools(op, &x.name, &y.name),
            Class::Float => self.binary_of_floats(op, dtype, x, y),
            _ => self.binary_of_integers(op, dtype, x, y),
        }
    }

    fn binary_of_bools(&mut self, op: BinaryOp, x: &Name, y: &Name) -> Result<Name, String> {
        Ok(match op {
            BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => self.call("Or", &[x, y]),
            BinaryOp::Mul | BinaryOp::Min | BinaryOp::And => self.call("And", &[x, y]),
            BinaryOp::Xor => self.call("Xor", &[x, y]),
            other => return Err(format!("{other} of bools")),
        })
    }

    fn comparison(&mut self, op: BinaryOp, dtype: DType, x: &Name, y: &Name) -> Name {
        let (mut x, mut y) = (x.clone(), y.clone());
        let is_order = matches!(op, BinaryOp::Lt | BinaryOp::Le);
        let to = if dtype == DType::Bool && is_order { DType::I32 } else { wide(dtype) };
        (x, y) = (self.widened(&x, dtype, to), self.widened(&y, dtype, to));
        if dtype == DType::U64 && is_order {
            // In the order of unsigned integers.
            let least = self.scalar(Scalar::from(i64::MIN));
            (x, y) = (self.call("Add", &[&x, &least]), self.call("Add", &[&y, &least]));
        }
        match op {
            BinaryOp::Lt => self.call("Less", &[&x, &y]),
            BinaryOp::Le => self.call("LessOrEqual", &[&x, &y]),
            BinaryOp::Eq => self.call("Equal", &[&x, &y]),
            _ => {
                let equal = self.call("Equal", &[&x, &y]);
                self.call("Not", &[&equal])
            }
        }
    }

    fn binary_of_floats(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: &Operand,
        y: &Operand,
    ) -> Result<Name, String> {
        let (a, b) = (&x.name, &y.name);
        if dtype == DType::BF16 {
            let wide = |w: &mut Writer, x: &Operand| Operand {
                name: w.cast(&x.name, DType::F32),
                constant: x.constant.map(|x| x.cast(DType::F32)),
            };
            let (x, y) = (wide(self, x), wide(self, y));
            let z = self.binary_of_floats(op, DType::F32, &x, &y)?;
            return Ok(self.cast(&z, dtype));
        }
        let is_zero = |x: &Operand| x.constant.is_some_and(|x| x.to_f64() == 0.0);
        Ok(match op {
            BinaryOp::Add => self.call("Add", &[a, b]),
            BinaryOp::Sub => self.call("Sub", &[a, b]),
            BinaryOp::Mul => self.call("Mul", &[a, b]),
            BinaryOp::Div => self.call("Div", &[a, b]),
            BinaryOp::Pow => self.call("Pow", &[a, b]),
            BinaryOp::Rem => self.node("Mod", &[a, b], vec![int("fmod", 1)]),
            BinaryOp::Max if is_zero(y) => self.call("Relu", &[a]),
            BinaryOp::Max if is_zero(x) => self.call("Relu", &[b]),
            BinaryOp::Max => self.call("Max", &[a, b]),
            BinaryOp::Min => self.call("Min", &[a, b]),
            BinaryOp::LogAddExp => {
                let (most, least) = (self.call("Max", &[a, b]), self.call("Min", &[a, b]));
                let gap = self.call("Sub", &[&least, &most]);
                let part = self.call("Exp", &[&gap]);
                let log = self.log1p(dtype, &part);
                let sum = self.call("Add", &[&most, &log]);
                // Of two equal infinities.
                let equal = self.call("Equal", &[a, b]);
                let ln2 = self.number(dtype, std::f64::consts::LN_2);
                let twice = self.call("Add", &[a, &ln2]);
                self.call("Where", &[&equal, &twice, &sum])
            }
            BinaryOp::Atan2 => self.atan2(dtype, a, b),
            other => return Err(format!("{other} of floats")),
        })
    }

    /// The angle of the point `(x, y)`: that of `y / x`, or a right angle less that of `x / y`, by quadrant.
    fn atan2(&mut self, dtype: DType, y: &Name, x: &Name) -> Name {
        let (zero, pi) = (self.number(dtype, 0.0), self.number(dtype, std::f64::consts::PI));
        let half = self.number(dtype, std::f64::consts::FRAC_PI_2);
        let (ax, ay) = (self.call("Abs", &[x]), self.call("Abs", &[y]));
        let (most, least) = (self.call("Max", &[&ax, &ay]), self.call("Min", &[&ax, &ay]));
        let ratio = self.call("Div", &[&least, &most]);
        // Both zero or both infinite.
        let (same, none) = (self.call("Equal", &[&ax, &ay]), self.call("Equal", &[&most, &zero]));
        let one = self.number(dtype, 1.0);
        let ratio = self.call("Where", &[&same, &one, &ratio]);
        let ratio = self.call("Where", &[&none, &zero, &ratio]);
        let angle = self.call("Atan", &[&ratio]);
        let steep = self.call("Less", &[&ax, &ay]);
        let other = self.call("Sub", &[&half, &angle]);
        let angle = self.call("Where", &[&steep, &other, &angle]);
        let (left, below) = (self.sign(x, dtype), self.sign(y, dtype));
        let other = self.call("Sub", &[&pi, &angle]);
        let angle = self.call("Where", &[&left, &other, &angle]);
        let other = self.call("Neg", &[&angle]);
        self.call("Where", &[&below, &other, &angle])
    }

    /// Whether a float is negative; -0 is, whose reciprocal is negative, and no NaN.
    pub(super) fn sign(&mut self, x: &Name, dtype: DType) -> Name {
        let (x, dtype) = match dtype {
            DType::BF16 => (self.cast(x, DType::F32), DType::F32),
            _ => (x.clone(), dtype),
        };
        let (zero, inverse) = (self.number(dtype, 0.0), self.call("Reciprocal", &[&x]));
        let (a, b) = (self.call("Less", &[&x, &zero]), self.call("Less", &[&inverse, &zero]));
        self.call("Or", &[&a, &b])
    }

    fn binary_of_integers(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: &Operand,
        y: &Operand,
    ) -> Result<Name, String> {
        let (a, b) = (&x.name, &y.name);
        let simple = |w: &mut Writer, kind: &str| {
            w.in_wide(dtype, &[a, b], |w, xy| w.call(kind, &[&xy[0], &xy[1]]))
        };
        Ok(match op {
            BinaryOp::Add => simple(self, "Add"),
            BinaryOp::Sub => simple(self, "Sub"),
            BinaryOp::Mul => simple(self, "Mul"),
            BinaryOp::Max | BinaryOp::Min if dtype == DType::U64 => {
                let kind = if op == BinaryOp::Max { "Max" } else { "Min" };
                self.call(kind, &[a, b])
            }
            BinaryOp::Max => simple(self, "Max"),
            BinaryOp::Min => simple(self, "Min"),
            BinaryOp::And => self.call("BitwiseAnd", &[a, b]),
            BinaryOp::Or => self.call("BitwiseOr", &[a, b]),
            BinaryOp::Xor => self.call("BitwiseXor", &[a, b]),
            BinaryOp::Div | BinaryOp::Rem => self.quotient(op, dtype, a, y)?,
            BinaryOp::Shl | BinaryOp::Shr => self.shift(op, dtype, a, y)?,
            BinaryOp::Pow => {
                let exponent = y.constant.map(|y| y.to_i64()).filter(|n| (1..=64).contains(n));
                let exponent =
                    exponent.ok_or("integers to powers other than fixed ones from 1 to 64")?;
                (1..exponent).fold(a.clone(), |power, _| {
                    self.in_wide(dtype, &[&power, a], |w, xy| w.call("Mul", &[&xy[0], &xy[1]]))
                })
            }
            other => return Err(format!("{other} of integers")),
        })
    }

    fn quotient(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: &Name,
        y: &Operand,
    ) -> Result<Name, String> {
        let fixed = y.constant.map(Scalar::to_i64).filter(|&y| y > 0);
        if dtype == DType::U64 && fixed.is_none() {
            return Err("quotients of u64 by numbers that are not fixed".to_owned());
        }
        let to = if dtype == DType::U64 { dtype } else { wide(dtype) };
        let a = self.widened(x, dtype, to);
        let b = self.widened(&y.name, dtype, to);
        let divide = |w: &mut Writer, b: &Name| match op {
            BinaryOp::Div => w.call("Div", &[&a, b]),
            _ => w.node("Mod", &[&a, b], vec![int("fmod", 1)]),
        };
        if fixed.is_some() {
            let z = divide(self, &b);
            return Ok(self.widened(&z, to, dtype));
        }
        // Neither 0 nor -1 is divided by: the first is undefined, the second of the least number.
        let (zero, one) = (self.number(to, 0.0), self.number(to, 1.0));
        let minus = self.number(to, -1.0);
        let (is_zero, is_minus) =
            (self.call("Equal", &[&b, &zero]), self.call("Equal", &[&b, &minus]));
        let unsafe_ = self.call("Or", &[&is_zero, &is_minus]);
        let divisor = self.call("Where", &[&unsafe_, &one, &b]);
        let z = divide(self, &divisor);
        let z = match op {
            BinaryOp::Div => {
                let negated = self.call("Neg", &[&a]);
                let z = self.call("Where", &[&is_minus, &negated, &z]);
                self.call("Where", &[&is_zero, &zero, &z])
            }
            _ => self.call("Where", &[&is_zero, &a, &z]),
        };
        Ok(self.widened(&z, to, dtype))
    }

    fn shift(&mut self, op: BinaryOp, dtype: DType, x: &Name, y: &Operand) -> Result<Name, String> {
        let fixed = y.constant.map(Scalar::to_i64).filter(|&n| n >= 0 && n < dtype.bits() as i64);
        let Some(n) = fixed else {
            return Err("shifts by other than fixed numbers of bits".to_owned());
        };
        let bits = match dtype.bits() {
            8 => DType::U8,
            16 => DType::U16,
            32 => DType::U32,
            _ => DType::U64,
        };
        let by = self.number(bits, n as f64);
        let direction = if op == BinaryOp::Shl { "LEFT" } else { "RIGHT" };
        let shifted = |w: &mut Writer, x: &Name| {
            let x = w.widened(x, dtype, bits);
            let y = w.node("BitShift", &[&x, &by], vec![string("direction", direction)]);
            w.widened(&y, bits, dtype)
        };
        if op == BinaryOp::Shl || !dtype.is_signed() {
            return Ok(shifted(self, x));
        }
        // A negative number shifted is the complement of its complement shifted.
        let zero = self.number(wide(dtype), 0.0);
        let plain = self.widened(x, dtype, wide(dtype));
        let negative = self.call("Less", &[&plain, &zero]);
        let not = self.call("BitwiseNot", &[x]);
        let (up, down) = (shifted(self, x), shifted(self, &not));
        let down = self.call("BitwiseNot", &[&down]);
        Ok(self.select(dtype, &negative, &down, &up))
    }

    pub(super) fn ternary(&mut self, op: TernaryOp, dtype: DType, [x, y, z]: [&Name; 3]) -> Name {
        match op {
            TernaryOp::Where => self.select(dtype, x, y, z),
            TernaryOp::MulAdd => self.in_wide(dtype, &[x, y, z], |w, xyz| {
                let product = w.call("Mul", &[&xyz[0], &xyz[1]]);
                w.call("Add", &[&product, &xyz[2]])
            }),
        }
    }

    /// The numbers in another dtype; floats saturate as integers, and NaN is 0.
    pub(super) fn convert(&mut self, x: &Name, from: DType, to: DType) -> Name {
        if !from.is_float() || !to.is_int() {
            return self.cast(x, to);
        }
        let (mut x, mut from) = (x.clone(), from);
        if matches!(from, DType::F16 | DType::BF16) {
            (x, from) = (self.cast(&x, DType::F32), DType::F32);
        }
        let (least, most) = (Scalar::lowest(to), Scalar::highest(to));
        let zero = self.number(from, 0.0);
        let nan = self.call("IsNaN", &[&x]);
        let finite = self.call("Where", &[&nan, &zero, &x]);
        // The first number that is too large is a power of two.
        let beyond = self.number(from, 2f64.powi((to.bits() - usize::from(to.is_signed())) as i32));
        let large = self.call("GreaterOrEqual", &[&finite, &beyond]);
        let inside = self.call("Where", &[&large, &zero, &finite]);
        let least = self.number(from, least.to_f64());
        let inside = self.call("Max", &[&inside, &least]);
        // Through the wide dtype: runtimes differ in how floats become unsigned integers.
        let through = if to == DType::U64 { to } else { wide(to) };
        let inside = self.cast(&inside, through);
        let inside = self.widened(&inside, through, to);
        let most = self.scalar(most);
        self.select(to, &large, &most, &inside)
    }
}
