//! The gradient law: where the derivative of a function is a finite number of its dtype, so is its
//! gradient, and it is that number. At zeros of both signs, at the points where pieces meet, at the
//! largest, smallest normal and smallest numbers of every float dtype, beside the overflow of
//! exponentials, powers and squares, and at infinity.
//!
//! Derivatives are written here in `f64`, without the library, in forms that keep their digits
//! everywhere ([`super::real`]). Rows come from the op table by a match that a new op does not pass,
//! and from tables of activations, losses and norms, which a test compares with the sources. Where a
//! function has no derivative, the number is PyTorch's (2.x, on the CPU), and the documentation of
//! the function says it. Not-a-number in a table means that nothing is promised there.

use super::real;
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};
use zyx_backend_cpu::Cpu;
use zyx_tests::apply::unary;
use zyx_tests::bounds::FORMULA;
use zyx_tests::tolerance::{largest, round, smallest_normal, ulp, unit_roundoff};
use zyx_tests::zyx_core::{DType, Device, Result, Runtime, Tensor, UnaryOp};

pub(crate) const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
pub(crate) const INF: f64 = f64::INFINITY;

/// The CPU's backend, which compiles, and the interpreter.
pub(crate) fn devices() -> Vec<Device> {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    ["cpu", "reference"].map(|name| runtime.device(name).expect("always present")).into()
}

pub(crate) fn tensor(
    data: &[f64],
    dims: &[usize],
    dtype: DType,
    device: &Device,
) -> Result<Tensor> {
    let x = Tensor::from_slice(data, dims, device)?.cast(dtype).contiguous();
    x.realize()?;
    Ok(x)
}

pub(crate) fn vector(data: &[f64], dtype: DType, device: &Device) -> Result<Tensor> {
    tensor(data, &[data.len()], dtype, device)
}

pub(crate) fn numbers(x: &Tensor) -> Result<Vec<f64>> {
    x.cast(DType::F64).to_vec::<f64>()
}

/// Gradients of the sum of `y`; zeros where it does not depend on one.
pub(crate) fn gradients(y: &Tensor, x: &[&Tensor]) -> Result<Vec<Tensor>> {
    let found = y.grad(x)?;
    Ok(found.into_iter().zip(x).map(|(dx, x)| dx.unwrap_or_else(|| x.zeros_like())).collect())
}

/// In whose last places an error is counted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Of {
    /// Those of the derivative.
    It,
    /// Those of the larger of it and 1: the rule is in terms of the rounded result.
    One,
}

/// Whether a gradient is the derivative. Numbers below the smallest normal one may be zero.
pub(crate) fn agrees(dtype: DType, of: Of, got: f64, want: f64) -> bool {
    if want.is_nan() {
        return true;
    }
    let most = largest(dtype);
    let margin = |x: f64| FORMULA * ulp(dtype, x) + smallest_normal(dtype);
    if want.is_infinite() {
        return got == want;
    }
    let scale = if of == Of::One { want.abs().max(1.0) } else { want.abs() };
    let allowed = margin(scale.min(most));
    if want.abs() + allowed > most {
        // It may overflow, on its side.
        return got == INF.copysign(want) || (got - want).abs() <= allowed;
    }
    (got - want).abs() <= allowed
}

/// Numbers of a dtype at which something may go wrong: ends of formats, of the domains of functions
/// and of their inner functions, what meets at `marks`, and ordinary ones.
fn points(dtype: DType, marks: &[f64]) -> Vec<f64> {
    let (most, normal, least) = (largest(dtype), smallest_normal(dtype), ulp(dtype, 0.0));
    let eps = unit_roundoff(dtype);
    let mut all = vec![0.0, least, 3.0 * least, normal, normal * 1.5, most, most / 2.0, INF];
    all.extend([1e-3, 0.01, 0.1, 0.3, 0.5, 0.75, 0.9, 0.999, 1.0, 1.3, 1.5, 2.0, 2.5, 3.0, 4.5]);
    all.extend([6.0, 7.5, 9.0, 12.0, 17.0, 20.0, 40.0, 60.0, 100.0, 200.0, 300.0, 1e3, 1e4]);
    all.extend([1e10, 1e15, 1e18, 1e20, 1e30, 1e150, 1e-5, 1e-10, 1e-18, 1e-20, 1e-30, 1e-150]);
    for end in [most, normal, least] {
        // Where exponentials, squares, cubes and their reciprocals end.
        let edges = [end.ln(), end.log2(), end.sqrt(), end.cbrt(), (end / 4.0).sqrt()];
        for edge in edges.into_iter().chain(marks.iter().copied()).chain([1.0]) {
            all.extend(
                [-0.02, -4.0 * eps, -2.0 * eps, 0.0, 2.0 * eps, 4.0 * eps, 0.02]
                    .map(|d| edge * (1.0 + d)),
            );
        }
    }
    let mut all: Vec<f64> =
        all.iter().flat_map(|x| [round(dtype, *x), -round(dtype, *x)]).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by_key(|x| x.to_bits());
    all
}

type Real = fn(f64) -> f64;

/// A function of one tensor, elementwise, with its derivatives.
struct Row {
    name: &'static str,
    f: Box<dyn Fn(&Tensor) -> Result<Tensor>>,
    slope: Real,
    curve: Option<Real>,
    of: Of,
    /// Where its pieces meet, or its domain ends.
    marks: &'static [f64],
}

fn row(name: &'static str, f: fn(&Tensor) -> Tensor, slope: Real, curve: Real) -> Row {
    let (of, marks) = (Of::One, &[][..]);
    Row { name, f: Box::new(move |x| Ok(f(x))), slope, curve: Some(curve), of, marks }
}

impl Row {
    fn at(self, marks: &'static [f64]) -> Row {
        Row { marks, ..self }
    }

    fn once(self) -> Row {
        Row { curve: None, ..self }
    }

    fn of(self, of: Of) -> Row {
        Row { of, ..self }
    }

    /// What is wrong with it.
    fn check(&self, dtype: DType, device: &Device) -> Result<Vec<String>> {
        let at = points(dtype, self.marks);
        let x = vector(&at, dtype, device)?.tracked();
        let zero = vector(&vec![0.0; at.len()], dtype, device)?;
        let y = (self.f)(&x)?;
        let dx = gradients(&y, &[&x])?.remove(0);
        let none = y.grad_with(&zero, &[&x])?.remove(0).unwrap_or_else(|| x.zeros_like());
        let ddx = gradients(&dx, &[&x])?.remove(0);
        Tensor::realize_all([&y, &dx, &none, &ddx])?;
        let [y, dx, none, ddx] = [numbers(&y)?, numbers(&dx)?, numbers(&none)?, numbers(&ddx)?];
        let mut wrong = Vec::new();
        for (i, &x) in at.iter().enumerate() {
            // Where the value itself overflows, nothing is left to differentiate.
            if x.is_finite() && !y[i].is_finite() && (self.slope)(x).is_finite() {
                continue;
            }
            let mut want = (self.slope)(x);
            // At a pole the sign of a zero decides the side.
            if want.is_infinite() && x == 0.0 && dx[i].is_infinite() {
                want = dx[i];
            }
            let name = |what: &str, got: f64, want: f64| {
                format!(
                    "{} of {dtype} on {}, {what} at {x:e}: {got:e}, not {want:e}",
                    self.name,
                    device.spec()
                )
            };
            if !agrees(dtype, self.of, dx[i], want) {
                wrong.push(name("slope", dx[i], want));
            }
            if round(dtype, want).is_finite() && none[i] != 0.0 {
                wrong.push(name("by nothing", none[i], 0.0));
            }
            let Some(curve) = self.curve.filter(|_| x.is_finite() && !self.marks.contains(&x))
            else {
                continue;
            };
            let want = curve(x);
            let inner = round(dtype, (self.slope)(x)).is_finite() && y[i].is_finite();
            if inner && round(dtype, want).is_finite() && !agrees(dtype, Of::One, ddx[i], want) {
                wrong.push(name("curve", ddx[i], want));
            }
        }
        Ok(wrong)
    }
}

/// The derivatives of each unary op; a new one does not compile until it has its own.
fn of_unary(op: UnaryOp) -> Option<(Real, Real, Of, &'static [f64])> {
    let of_it = |slope: Real, curve: Real| Some((slope, curve, Of::It, &[][..]));
    let of_one = |slope: Real, curve: Real| Some((slope, curve, Of::One, &[][..]));
    match op {
        UnaryOp::Neg => of_it(|_| -1.0, |_| 0.0),
        UnaryOp::Abs => Some((real::sign, |_| 0.0, Of::It, &[0.0])),
        UnaryOp::Not => None,
        UnaryOp::Recip => of_it(|x| -(1.0 / x) / x, |x| 2.0 / x / x / x),
        UnaryOp::Sqrt => {
            of_it(|x| 0.5 / real::positive(x).sqrt(), |x| -0.25 / x / real::positive(x).sqrt())
        }
        UnaryOp::Exp => of_it(f64::exp, f64::exp),
        UnaryOp::Exp2 => of_it(|x| x.exp2() * LN_2, |x| x.exp2() * LN_2 * LN_2),
        UnaryOp::Expm1 => of_one(f64::exp, f64::exp),
        UnaryOp::Log => of_it(|x| 1.0 / real::positive(x), |x| -1.0 / real::positive(x) / x),
        UnaryOp::Log2 => {
            of_it(|x| 1.0 / real::positive(x) / LN_2, |x| -1.0 / real::positive(x) / x / LN_2)
        }
        UnaryOp::Log1p => {
            of_it(|x| 1.0 / real::positive(1.0 + x), |x| -1.0 / real::positive(1.0 + x) / (1.0 + x))
        }
        UnaryOp::Sin => of_it(f64::cos, |x| -x.sin()),
        UnaryOp::Cos => of_it(|x| -x.sin(), |x| -x.cos()),
        UnaryOp::Tan => {
            of_it(|x| 1.0 + x.tan() * x.tan(), |x| 2.0 * x.tan() * (1.0 + x.tan() * x.tan()))
        }
        UnaryOp::Asin => {
            of_it(|x| 1.0 / real::beside_one(x).sqrt(), |x| x / real::beside_one(x).powf(1.5))
        }
        UnaryOp::Acos => {
            of_it(|x| -1.0 / real::beside_one(x).sqrt(), |x| -x / real::beside_one(x).powf(1.5))
        }
        UnaryOp::Atan => {
            of_it(real::bell, |x| -2.0 * x.clamp(-1e150, 1e150) * real::bell(x) * real::bell(x))
        }
        UnaryOp::Sinh => of_it(f64::cosh, f64::sinh),
        UnaryOp::Cosh => of_it(f64::sinh, f64::cosh),
        UnaryOp::Tanh => of_one(real::sech2, |x| -2.0 * x.tanh() * real::sech2(x)),
        UnaryOp::Erf => of_one(
            |x| FRAC_2_SQRT_PI * (-x * x).exp(),
            |x| -2.0 * x.clamp(-1e3, 1e3) * FRAC_2_SQRT_PI * (-x * x).exp(),
        ),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => of_it(|_| 0.0, |_| 0.0),
    }
}

/// The names of the rows that are no ops.
pub(crate) fn names() -> Vec<&'static str> {
    [activations(), functions()].iter().flatten().map(|row| row.name).collect()
}

fn unary_rows() -> Vec<Row> {
    let rows = UnaryOp::ALL.iter().filter_map(|&op| {
        let (slope, curve, of, marks) = of_unary(op)?;
        let f = Box::new(move |x: &Tensor| unary(op, x));
        Some(Row { name: op.name(), f, slope, curve: Some(curve), of, marks })
    });
    rows.collect()
}

/// Activations, with PyTorch's derivative where pieces meet.
fn activations() -> Vec<Row> {
    use real::{sigmoid, sigmoid_slope, sign};
    let flat: Real = |_| 0.0;
    vec![
        row("relu", Tensor::relu, |x| f64::from(x > 0.0), flat).of(Of::It).at(&[0.0]),
        row("leaky_relu", |x| x.leaky_relu(0.125), |x| if x > 0.0 { 1.0 } else { 0.125 }, flat)
            .of(Of::It)
            .at(&[0.0]),
        row("sigmoid", Tensor::sigmoid, sigmoid_slope, |x| -sigmoid_slope(x) * (x / 2.0).tanh()),
        row("silu", Tensor::silu, real::silu_slope, real::silu_curve),
        row("softplus", Tensor::softplus, sigmoid, sigmoid_slope),
        row("logsigmoid", Tensor::logsigmoid, |x| sigmoid(-x), |x| -sigmoid_slope(x)),
        row(
            "elu",
            |x| x.elu(1.5),
            |x| if x > 0.0 { 1.0 } else { 1.5 * x.exp() },
            |x| if x > 0.0 { 0.0 } else { 1.5 * x.exp() },
        )
        .at(&[0.0]),
        row(
            "celu",
            |x| x.celu(0.5),
            |x| (2.0 * x).min(0.0).exp(),
            |x| if x > 0.0 { 0.0 } else { 2.0 * (2.0 * x).exp() },
        )
        .at(&[0.0]),
        row("selu", Tensor::selu, real::selu_slope, |x| {
            if x > 0.0 { 0.0 } else { real::selu_slope(x) }
        })
        .at(&[0.0]),
        row("gelu", Tensor::gelu, real::gelu_slope, real::gelu_curve),
        row("gelu_exact", Tensor::gelu_exact, real::gelu_exact_slope, real::gelu_exact_curve),
        row("mish", Tensor::mish, real::mish_slope, real::mish_curve),
        row(
            "softsign",
            Tensor::softsign,
            |x| 1.0 / (1.0 + x.abs()) / (1.0 + x.abs()),
            |x| -2.0 * sign(x) / (1.0 + x.abs()) / (1.0 + x.abs()) / (1.0 + x.abs()),
        ),
        row("relu6", Tensor::relu6, |x| f64::from(0.0 < x && x < 6.0), flat)
            .of(Of::It)
            .at(&[0.0, 6.0]),
        row("hardsigmoid", Tensor::hardsigmoid, |x| f64::from(-3.0 < x && x < 3.0) / 6.0, flat)
            .at(&[-3.0, 3.0]),
        row("hardswish", Tensor::hardswish, real::hardswish_slope, |x| {
            f64::from(x.abs() < 3.0) / 3.0
        })
        .at(&[-3.0, 3.0]),
        row("hardtanh", |x| x.hardtanh(-1.0, 2.0), |x| f64::from(-1.0 < x && x < 2.0), flat)
            .of(Of::It)
            .at(&[-1.0, 2.0]),
        row(
            "clamp",
            |x| x.clamp(-1.0, 2.0).expect("numbers"),
            |x| f64::from(-1.0 < x && x < 2.0),
            flat,
        )
        .of(Of::It)
        .at(&[-1.0, 2.0]),
        row(
            "tanhshrink",
            Tensor::tanhshrink,
            |x| x.tanh() * x.tanh(),
            |x| 2.0 * x.tanh() * real::sech2(x),
        ),
        row("threshold", |x| x.threshold(1.0, 20.0), |x| f64::from(x > 1.0), flat)
            .of(Of::It)
            .at(&[1.0]),
        row("softshrink", |x| x.softshrink(0.5), |x| f64::from(x.abs() > 0.5), flat)
            .of(Of::It)
            .at(&[-0.5, 0.5]),
        row("hardshrink", |x| x.hardshrink(0.5), |x| f64::from(x.abs() > 0.5), flat)
            .of(Of::It)
            .at(&[-0.5, 0.5]),
    ]
}

/// Functions of `math.rs` and of the elementwise methods.
fn functions() -> Vec<Row> {
    use real::{beside_one, positive};
    let flat: Real = |_| 0.0;
    vec![
        row("square", Tensor::square, |x| 2.0 * x, |_| 2.0).of(Of::It),
        row(
            "rsqrt",
            Tensor::rsqrt,
            |x| -0.5 / positive(x).sqrt() / x,
            |x| 0.75 / positive(x).sqrt() / x / x,
        )
        .of(Of::It),
        row("sign", Tensor::sign, flat, flat).of(Of::It),
        row("reciprocal", Tensor::reciprocal, |x| -(1.0 / x) / x, |x| 2.0 / x / x / x).of(Of::It),
        row("frac", Tensor::frac, |_| 1.0, flat).of(Of::It),
        row("deg2rad", Tensor::deg2rad, |_| PI / 180.0, flat).of(Of::It),
        row("rad2deg", Tensor::rad2deg, |_| 180.0 / PI, flat).of(Of::It),
        row(
            "log10",
            Tensor::log10,
            |x| 1.0 / positive(x) / LN_10,
            |x| -1.0 / positive(x) / x / LN_10,
        )
        .of(Of::It),
        row(
            "asinh",
            Tensor::asinh,
            |x| 1.0 / x.hypot(1.0),
            |x| -(x / x.hypot(1.0)) / x.hypot(1.0) / x.hypot(1.0),
        )
        .of(Of::It),
        row("acosh", Tensor::acosh, real::acosh_slope, |x| {
            -(x * real::acosh_slope(x)) * real::acosh_slope(x) * real::acosh_slope(x)
        })
        .of(Of::It)
        .at(&[1.0]),
        row(
            "atanh",
            Tensor::atanh,
            |x| 1.0 / beside_one(x),
            |x| 2.0 * x / beside_one(x) / beside_one(x),
        )
        .of(Of::It),
        row(
            "erfc",
            Tensor::erfc,
            |x| -FRAC_2_SQRT_PI * (-x * x).exp(),
            |x| 2.0 * x.clamp(-1e3, 1e3) * FRAC_2_SQRT_PI * (-x * x).exp(),
        ),
        row("erfcx", Tensor::erfcx, real::erfcx_slope, flat).once(),
        row("erfinv", Tensor::erfinv, real::erfinv_slope, flat).once(),
        row("ndtr", Tensor::ndtr, real::density, |x| -x.clamp(-1e3, 1e3) * real::density(x)),
        row(
            "log_ndtr",
            Tensor::log_ndtr,
            |x| (2.0 / PI).sqrt() / real::erfcx(-x / 2f64.sqrt()),
            flat,
        )
        .once(),
        row("lgamma", Tensor::lgamma, real::digamma, real::trigamma),
        row("digamma", Tensor::digamma, real::trigamma, flat).once(),
        row("sinc", Tensor::sinc, real::sinc_slope, flat).once(),
        row(
            "logit",
            |x| x.logit(None),
            |x| 1.0 / (positive(x) * positive(1.0 - x)),
            |x| (2.0 * x - 1.0) / (positive(x) * positive(1.0 - x)).powi(2),
        )
        .of(Of::It),
        row(
            "logit with ends",
            |x| x.logit(Some(0.25)),
            |x| if (0.25..=0.75).contains(&x) { 1.0 / (x * (1.0 - x)) } else { 0.0 },
            flat,
        )
        .once()
        .at(&[0.25, 0.75]),
        row("nan_to_num", |x| x.nan_to_num(0.0, None, None), |x| f64::from(x.is_finite()), flat)
            .of(Of::It),
    ]
}

/// Powers by a number.
fn powers() -> Vec<Row> {
    macro_rules! power {
        ($($n:literal)*) => {
            vec![$({
                const N: f64 = $n;
                let slope: Real = |x| N * real::power(x, N - 1.0);
                let curve: Real = |x| N * (N - 1.0) * if N == 1.0 { 1.0 } else { x.powf(N - 2.0) };
                row(concat!("pow ", $n), |x| x.pow(N).expect("a number"), slope, curve).of(Of::It)
            }),*]
        };
    }
    power!(1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 -1.0 -2.0 -3.0 -4.0 0.5 1.5 2.5 -0.5 9.0)
}

#[test]
fn derivatives_of_functions_of_one_tensor() -> Result<()> {
    let rows: Vec<Row> =
        [unary_rows(), activations(), functions(), powers()].into_iter().flatten().collect();
    let mut wrong = Vec::new();
    for device in devices() {
        for dtype in FLOATS {
            for row in &rows {
                wrong.extend(row.check(dtype, &device)?);
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    Ok(())
}
