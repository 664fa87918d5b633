//! The gradient law ([`super::law`]) for functions of two tensors: the op table, methods, losses
//! term by term. What one operand gets does not depend on whether the other's gradient is asked.

use super::law::{FLOATS, INF, Of, agrees, devices, gradients, numbers, vector};
use super::real::{positive, sigmoid, sign};
use std::f64::consts::LN_2;
use zyx_tests::apply::binary;
use zyx_tests::tolerance::{largest, round, smallest_normal, ulp};
use zyx_tests::zyx_core::{BinaryOp, DType, Device, PoissonNll, Reduction, Result, Tensor};

const NAN: f64 = f64::NAN;

type Slopes = fn(f64, f64) -> [f64; 2];

/// A function of two tensors with its derivatives by both.
struct Pair {
    name: &'static str,
    f: Box<dyn Fn(&Tensor, &Tensor) -> Result<Tensor>>,
    slopes: Slopes,
    /// The operands to combine; of none, ends of the format and ordinary numbers.
    x: &'static [f64],
    z: &'static [f64],
}

fn pair(name: &'static str, f: fn(&Tensor, &Tensor) -> Result<Tensor>, slopes: Slopes) -> Pair {
    Pair { name, f: Box::new(f), slopes, x: &[], z: &[] }
}

impl Pair {
    fn of(self, x: &'static [f64], z: &'static [f64]) -> Pair {
        Pair { x, z, ..self }
    }

    /// The second operand is one of these.
    fn by(self, z: &'static [f64]) -> Pair {
        Pair { z, ..self }
    }

    fn check(&self, dtype: DType, device: &Device) -> Result<Vec<String>> {
        let usual = ends(dtype);
        let operands = |given: &[f64]| match given {
            [] => usual.clone(),
            given => given.iter().map(|x| round(dtype, *x)).collect(),
        };
        let (first, second) = (operands(self.x), operands(self.z));
        let pairs = first.iter().flat_map(|x| second.iter().map(move |z| (*x, *z)));
        let (at_x, at_z): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let (x, z) =
            (vector(&at_x, dtype, device)?.tracked(), vector(&at_z, dtype, device)?.tracked());
        let y = (self.f)(&x, &z)?;
        let mut all = gradients(&y, &[&x, &z])?;
        all.extend([gradients(&y, &[&x])?.remove(0), gradients(&y, &[&z])?.remove(0), y]);
        Tensor::realize_all(&all)?;
        let all = all.iter().map(numbers).collect::<Result<Vec<_>>>()?;
        let mut wrong = Vec::new();
        for (i, (&x, &z)) in at_x.iter().zip(&at_z).enumerate() {
            let want = (self.slopes)(x, z);
            for (to, mut want) in want.into_iter().enumerate() {
                let (got, alone) = (all[to][i], all[2 + to][i]);
                if got != alone && !(got.is_nan() && alone.is_nan()) {
                    let name = self.name;
                    wrong.push(format!("{name} of {dtype} at ({x:e}, {z:e}) by {to}: {got:e} with the other, {alone:e} alone"));
                }
                // Where the value itself overflows, nothing is left to differentiate.
                if x.is_finite() && z.is_finite() && !all[4][i].is_finite() && want.is_finite() {
                    continue;
                }
                // At a pole the sign of a zero decides the side.
                if want.is_infinite() && (x == 0.0 || z == 0.0) && got.is_infinite() {
                    want = got;
                }
                if !agrees(dtype, Of::One, got, want) {
                    let (name, on) = (self.name, device.spec());
                    wrong.push(format!(
                        "{name} of {dtype} on {on} at ({x:e}, {z:e}) by {to}: {got:e}, not {want:e}"
                    ));
                }
            }
        }
        Ok(wrong)
    }
}

fn ends(dtype: DType) -> Vec<f64> {
    let (most, normal, least) = (largest(dtype), smallest_normal(dtype), ulp(dtype, 0.0));
    let edge = most.ln();
    let all = [
        0.0,
        least,
        normal,
        1e-20,
        0.1,
        0.5,
        1.0,
        2.0,
        3.0,
        100.0,
        edge * 0.99,
        edge * 1.01,
        1e20,
        most / 2.0,
        most,
        INF,
    ];
    let mut all: Vec<f64> =
        all.iter().flat_map(|x| [round(dtype, *x), -round(dtype, *x)]).collect();
    all.sort_by(f64::total_cmp);
    all.dedup_by_key(|x| x.to_bits());
    all
}

fn won(x: f64, z: f64) -> [f64; 2] {
    if x == z { [0.5, 0.5] } else { [f64::from(x > z), f64::from(x < z)] }
}

fn power(x: f64, z: f64) -> [f64; 2] {
    if x.is_infinite() || z.is_infinite() || (x < 0.0 && z.fract() != 0.0) {
        return [NAN; 2];
    }
    let lower = x.powf(z - 1.0);
    let by_x = match () {
        () if z == 0.0 => 0.0,
        // What the product is made of overflows or vanishes in a narrow format.
        () if x != 0.0 && !(1e-37..1e37).contains(&lower.abs()) => NAN,
        () => z * lower,
    };
    let by_z = match () {
        () if x == 0.0 => {
            if z < 0.0 {
                -INF
            } else {
                0.0
            }
        }
        () => x.powf(z) * x.ln(),
    };
    [by_x, by_z]
}

/// The gradient of an angle: the other coordinate over the square of the length.
fn angle(x: f64, z: f64) -> [f64; 2] {
    let h = x.hypot(z);
    match () {
        () if x.is_infinite() && z.is_infinite() => [NAN; 2],
        () if h == 0.0 || x.is_infinite() || z.is_infinite() => [0.0; 2],
        () if h.is_infinite() => [0.0; 2],
        () => [z / h / h, -x / h / h],
    }
}

fn log_shares(x: f64, z: f64) -> [f64; 2] {
    if x == z { [0.5; 2] } else { [sigmoid(x - z), sigmoid(z - x)] }
}

/// `1`, and the whole quotient that a remainder leaves.
fn rest(x: f64, z: f64, rest: f64) -> [f64; 2] {
    if z == 0.0 || x.is_infinite() || z.is_infinite() {
        return [NAN; 2];
    }
    [1.0, -((x - rest) / z).round()]
}

/// The derivatives of each binary op; a new one does not compile until it has its own.
fn of_binary(op: BinaryOp) -> Option<Slopes> {
    let slopes: Slopes = match op {
        BinaryOp::Add => |_, _| [1.0, 1.0],
        BinaryOp::Sub => |_, _| [1.0, -1.0],
        BinaryOp::Mul => |x, z| [z, x],
        BinaryOp::Div => |x, z| [1.0 / z, -(x / z) / z],
        BinaryOp::Rem => |x, z| rest(x, z, x % z),
        BinaryOp::Pow => power,
        BinaryOp::Atan2 => angle,
        BinaryOp::LogAddExp => log_shares,
        BinaryOp::Max => won,
        BinaryOp::Min => |x, z| won(z, x),
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Gcd
        | BinaryOp::Shl
        | BinaryOp::Shr => {
            return None;
        }
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => return None,
    };
    Some(slopes)
}

fn binary_rows() -> Vec<Pair> {
    let rows = BinaryOp::ALL.iter().filter_map(|&op| {
        let slopes = of_binary(op)?;
        let f = Box::new(move |x: &Tensor, z: &Tensor| binary(op, x, z));
        Some(Pair { name: op.name(), f, slopes, x: &[], z: &[] })
    });
    rows.collect()
}

fn methods() -> Vec<Pair> {
    const PLAIN: &[f64] = &[0.0, -0.0, 1e-20, 1.0, -2.0, 3.0, 100.0, 1e20, -1e20, INF];
    vec![
        pair(
            "hypot",
            |x, z| x.hypot(z),
            |x, z| {
                let h = x.hypot(z);
                if h == 0.0 {
                    [0.0; 2]
                } else if h.is_infinite() {
                    [NAN; 2]
                } else {
                    [x / h, z / h]
                }
            },
        )
        .of(PLAIN, PLAIN),
        pair("copysign", |x, z| x.copysign(z), |x, z| [sign(x) * 1f64.copysign(z), 0.0])
            .of(PLAIN, &[1.0, -1.0, INF]),
        pair(
            "logaddexp2",
            |x, z| x.logaddexp2(z),
            |x, z| {
                if x == z { [0.5; 2] } else { [sigmoid(LN_2 * (x - z)), sigmoid(LN_2 * (z - x))] }
            },
        ),
        pair(
            "xlogy",
            |x, z| x.xlogy(z),
            |x, z| match () {
                () if z < 0.0 => [NAN; 2],
                () if x == 0.0 => [if z == 0.0 { 0.0 } else { z.ln() }, 0.0],
                () => [z.ln(), x / z],
            },
        ),
        pair(
            "xlog1py",
            |x, z| x.xlog1py(z),
            |x, z| match () {
                () if z < -1.0 => [NAN; 2],
                () if x == 0.0 => [if z == -1.0 { 0.0 } else { z.ln_1p() }, 0.0],
                () => [z.ln_1p(), x / (1.0 + z)],
            },
        ),
        pair("heaviside", |x, z| x.heaviside(z), |x, _| [0.0, f64::from(x == 0.0)]),
        pair("fmax", |x, z| x.fmax(z), won),
        pair("fmin", |x, z| x.fmin(z), |x, z| won(z, x)),
        pair("ldexp", |x, z| x.ldexp(z), |x, z| [z.exp2(), x * z.exp2() * LN_2])
            .of(PLAIN, &[0.0, 1.0, -3.0, 9.0]),
        pair("float_power", |x, z| x.float_power(z), power),
        pair(
            "remainder",
            |x, z| x.remainder(z),
            |x, z| {
                let r = x % z;
                rest(x, z, if r != 0.0 && (r < 0.0) != (z < 0.0) { r + z } else { r })
            },
        )
        // Among smaller numbers `r + z` is rounded, and the quotient is another.
        .of(&[0.0, -0.0, 0.1, -0.5, 1.0, 3.0, -7.0, 100.0], &[0.1, -0.1, 0.5, 1.0, -3.0, 4.0]),
    ]
}

/// Losses term by term, and functions with targets.
fn losses() -> Vec<Pair> {
    const SHARES: &[f64] = &[0.0, 0.25, 1.0];
    const SIGNS: &[f64] = &[1.0, -1.0];
    const EACH: Reduction = Reduction::None;
    vec![
        pair("mse_loss", |x, z| x.mse_loss(z, EACH), |x, z| [2.0 * (x - z), 2.0 * (z - x)]),
        pair("l1_loss", |x, z| x.l1_loss(z, EACH), |x, z| [sign(x - z), sign(z - x)]),
        pair(
            "huber_loss",
            |x, z| x.huber_loss(z, 1.0, EACH),
            |x, z| [(x - z).clamp(-1.0, 1.0), (z - x).clamp(-1.0, 1.0)],
        ),
        pair(
            "smooth_l1_loss",
            |x, z| x.smooth_l1_loss(z, 2.0, EACH),
            |x, z| [(x - z).clamp(-2.0, 2.0) / 2.0, (z - x).clamp(-2.0, 2.0) / 2.0],
        ),
        pair("bce_loss", |x, z| x.bce_loss(z, EACH), bce)
            .of(&[0.0, 1e-20, 0.25, 0.5, 0.999, 1.0], SHARES),
        pair("binary_cross_entropy", |x, z| x.binary_cross_entropy(z, None, EACH), bce)
            .of(&[0.0, 1e-20, 0.25, 0.5, 0.999, 1.0], SHARES),
        pair(
            "bce_with_logits_loss",
            |x, z| x.bce_with_logits_loss(z, EACH),
            |x, z| [sigmoid(x) - z, -x],
        )
        .by(SHARES),
        pair(
            "binary_cross_entropy_with_logits",
            |x, z| {
                let three = x.ones_like().mul(3.0)?.detach();
                x.binary_cross_entropy_with_logits(z, None, Some(&three), EACH)
            },
            |x, z| [1.0 - z - (1.0 + 2.0 * z) * sigmoid(-x), NAN],
        )
        .by(SHARES),
        pair(
            "multilabel_soft_margin_loss",
            |x, z| x.unsqueeze(-1)?.multilabel_soft_margin_loss(&z.unsqueeze(-1)?, None, EACH),
            |x, z| [sigmoid(x) - z, -x],
        )
        .by(SHARES),
        pair(
            "soft_margin_loss",
            |x, z| x.soft_margin_loss(z, EACH),
            |x, z| [-z * sigmoid(-z * x), NAN],
        )
        .by(SIGNS),
        pair(
            "hinge_embedding_loss",
            |x, z| x.hinge_embedding_loss(z, 1.0, EACH),
            |x, z| [if z > 0.0 { 1.0 } else { -f64::from(x < 1.0) }, 0.0],
        )
        .by(SIGNS),
        pair(
            "margin_ranking_loss",
            |x, z| x.margin_ranking_loss(z, &x.ones_like().detach(), 0.5, EACH),
            |x, z| {
                let active = f64::from(0.5 - (x - z) > 0.0);
                if (x - z).is_nan() { [NAN; 2] } else { [-active, active] }
            },
        )
        .of(&[0.0, 0.5, 1.0, 2.0, INF], &[0.0, 0.5, 1.5]),
        pair(
            "kl_div_loss",
            |x, z| x.kl_div_loss(z, EACH),
            |x, z| [-z, if z == 0.0 { 0.0 } else { z.ln() + 1.0 - x }],
        )
        .of(&[0.0, -1.0, -100.0, -INF], SHARES),
        pair("kl_div", |x, z| x.kl_div(z, true, EACH), |x, z| [-z.exp(), z.exp() * (z - x + 1.0)])
            .of(&[0.0, -1.0, -100.0], &[0.0, -1.0, -50.0]),
        pair(
            "poisson_nll_loss",
            |x, z| x.poisson_nll_loss(z, PoissonNll { reduction: EACH, ..PoissonNll::default() }),
            |x, z| [x.exp() - z, -x],
        )
        .of(&[0.0, -0.0, 1.0, -100.0, 5.0, -INF], &[0.0, 1.0, 3.0]),
        pair(
            "poisson_nll_loss of rates",
            |x, z| {
                x.poisson_nll_loss(
                    z,
                    PoissonNll { log_input: false, reduction: EACH, ..PoissonNll::default() },
                )
            },
            |x, z| [1.0 - z / (x + 1e-8), -(x + 1e-8).ln()],
        )
        .of(&[0.5, 1.0, 100.0], &[0.0, 1.0, 3.0]),
        pair(
            "gaussian_nll_loss",
            |x, z| x.gaussian_nll_loss(&x.zeros_like().detach(), z, false, 1e-6, EACH),
            |x, z| [x / z, 0.5 / z - 0.5 * (x / z) * (x / z)],
        )
        .of(&[0.0, -0.0, 1.0, -3.0, 100.0], &[0.25, 1.0, 2.0]),
    ]
}

fn bce(x: f64, z: f64) -> [f64; 2] {
    let held = |x: f64| x.max(-100.0);
    [(x - z) / (x * (1.0 - x)).max(1e-12), held((-x).ln_1p()) - held(positive(x).ln())]
}

/// The names of the rows that are no ops.
pub(crate) fn names() -> Vec<&'static str> {
    [methods(), losses()].iter().flatten().map(|pair| pair.name).collect()
}

#[test]
fn derivatives_of_functions_of_two_tensors() -> Result<()> {
    let rows: Vec<Pair> = [binary_rows(), methods(), losses()].into_iter().flatten().collect();
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
