//! Elementwise mathematics beyond the op table, of one tensor: special functions, inverse
//! hyperbolic functions, tests of floats.
//!
//! Each is a formula of table ops, so every device has it and it fuses. Integers are converted to
//! `f32`; halves are computed in `f32` and rounded once. Bounds, in units in the last place of the
//! dtype at `max(1, |y|)`: 32 for the gamma family, 16 for the error functions and the rest. Where
//! differentiating the formula would lose accuracy or meet `inf - inf`, the rule is given.

use super::Tensor;
use super::formula::{Condition, Term};
use super::series;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::BinaryOp;
use crate::origin::composed;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, LN_2, LN_10, PI};

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident $in:tt => $out:tt $dtype:ident |$x:ident| $body:expr;)*) => {
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// ```
            /// # use zyx::Tensor;
            /// # let device = zyx::runtime().device("reference")?;
            #[doc = concat!("let x = Tensor::new(", stringify!($in), ", &device)?;")]
            #[doc = concat!(
                "assert_eq!(x.", stringify!($name), "().to_vec::<", stringify!($dtype), ">()?, ",
                stringify!($out), ");"
            )]
            /// # Ok::<(), zyx::Error>(())
            /// ```
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                let $x = self;
                $body
            }
        )*}
    };
}

unary_methods! {
    /// Complement of the error function, `1 - erf(x)`, accurate where that is small.
    erfc [f32::NEG_INFINITY, 30.0] => [2.0, 0.0] f32 |x| with_slope(x, erfc, |x, _| (-x.square()).exp() * -FRAC_2_SQRT_PI);
    /// Scaled complement of the error function, `exp(x^2) erfc(x)`, which stays finite.
    erfcx [f32::INFINITY] => [0.0] f32 |x| with_slope(x, erfcx, erfcx_slope);
    /// The inverse of the error function; infinite at 1 and -1, NaN beyond.
    erfinv [0f32, 1.0] => [0.0, f32::INFINITY] f32 |x| with_slope(x, erfinv, |_, y| y.square().exp() * (1.0 / FRAC_2_SQRT_PI));
    /// Distribution function of the standard normal distribution.
    ndtr [f32::NEG_INFINITY, f32::INFINITY] => [0.0, 1.0] f32 |x| Term::compute(x, |x| Term((x * -FRAC_1_SQRT_2).0.erfc()) * 0.5);
    /// Logarithm of [`Tensor::ndtr`], accurate in both tails.
    log_ndtr [f32::INFINITY] => [0.0] f32 |x| log_ndtr(x);
    /// Logarithm of the absolute value of the gamma function.
    lgamma [1f32, 2.0] => [0.0, 0.0] f32 |x| lgamma(x);
    /// Logarithmic derivative of the gamma function; NaN at negative integers.
    digamma [f32::INFINITY] => [f32::INFINITY] f32 |x| digamma(x);
    /// Base-10 logarithm.
    log10 [1f32] => [0.0] f32 |x| Term::compute(x, |x| x.log() * (1.0 / LN_10));
    /// Inverse hyperbolic sine.
    asinh [0f32] => [0.0] f32 |x| with_slope(x, asinh, |x, _| inverse_length(x, 1.0));
    /// Inverse hyperbolic cosine; NaN below 1.
    acosh [1f32] => [0.0] f32 |x| with_slope(x, acosh, |x, _| inverse_length(x, -1.0));
    /// Inverse hyperbolic tangent; NaN outside -1 ..= 1.
    atanh [0f32] => [0.0] f32 |x| with_slope(x, atanh, |x, _| ((1.0 - x) * (x + 1.0)).recip());
    /// Fraction: `x - trunc(x)`, with the sign of `x`.
    frac [1.5f32, -1.5] => [0.5, -0.5] f32 |x| x.sub_same(&x.trunc());
    /// `sin(pi x) / (pi x)`, and 1 at 0.
    sinc [0f32] => [1.0] f32 |x| with_slope(x, sinc, sinc_slope);
    /// Whether the sign bit is set: negative, or `-0.0`.
    signbit [-0f32, 1.0] => [true, false] bool |x| x.has_sign();
    /// Degrees to radians.
    deg2rad [0f32] => [0.0] f32 |x| Term::compute(x, |x| x * (PI / 180.0));
    /// Radians to degrees.
    rad2deg [0f32] => [0.0] f32 |x| Term::compute(x, |x| x * (180.0 / PI));
    /// `1 / x`; the same as [`Tensor::recip`].
    reciprocal [4f32] => [0.25] f32 |x| x.recip();
    /// Whether each element is NaN; the same as [`Tensor::is_nan`].
    isnan [1f32, f32::NAN] => [false, true] bool |x| x.is_nan();
    /// Whether each element is infinite; the same as [`Tensor::is_inf`].
    isinf [1f32, f32::NEG_INFINITY] => [false, true] bool |x| x.is_inf();
    /// Whether each element is finite; the same as [`Tensor::is_finite`].
    isfinite [1f32, f32::NAN] => [true, false] bool |x| x.is_finite();
    /// Whether each element is positive infinity.
    isposinf [f32::INFINITY, f32::NEG_INFINITY] => [true, false] bool |x| x.is_infinity(f64::INFINITY);
    /// Whether each element is negative infinity.
    isneginf [f32::INFINITY, f32::NEG_INFINITY] => [false, true] bool |x| x.is_infinity(f64::NEG_INFINITY);
}

/// `value(x)` with the cotangent `slope(x, y) * dy`. Both are formulas in the wide dtype.
#[track_caller]
fn with_slope(
    x: &Tensor,
    value: impl Fn(&Term) -> Term,
    slope: impl Fn(&Term, &Term) -> Term + Copy + Send + Sync + 'static,
) -> Tensor {
    Term::compute(x, |x| value(x).ruled(x, move |x, y, dy| slope(x, y) * dy))
}

impl Tensor {
    /// [`Tensor::with_gradient`] of one input, by a rule that cannot fail.
    #[track_caller]
    pub(crate) fn with_rule(
        &self,
        x: &Tensor,
        rule: impl Fn(&[Tensor], &Tensor, &Tensor) -> Option<Tensor> + Send + Sync + 'static,
    ) -> Tensor {
        self.with_gradient(&[x], move |inputs, y, dy| Ok(vec![rule(inputs, y, dy)]))
            .expect("invariant: one input is not too many")
    }

    /// The same value, to be differentiated by alone: what else was computed from this tensor was
    /// not computed from its alias.
    #[track_caller]
    pub(crate) fn alias(&self) -> Tensor {
        self.with_rule(self, |_, _, dy| Some(dy.clone()))
    }

    /// The product with a number that belongs to a formula.
    #[track_caller]
    pub(crate) fn mul_literal(&self, by: f64) -> Tensor {
        self.combine(BinaryOp::Mul, &self.like(by))
    }

    /// The difference from a tensor that was computed from this one; bools become integers.
    #[track_caller]
    fn sub_same(&self, y: &Tensor) -> Tensor {
        self.cast(y.dtype()).combine(BinaryOp::Sub, y)
    }

    /// Whether the sign bit of each element is set.
    #[track_caller]
    pub(crate) fn has_sign(&self) -> Tensor {
        let signed = match self.dtype() {
            DType::F16 | DType::BF16 => self.bitcast(DType::I16),
            DType::F32 => self.bitcast(DType::I32),
            DType::F64 => self.bitcast(DType::I64),
            _ => Ok(self.clone()),
        };
        let signed = signed.expect("invariant: the widths are equal");
        signed.combine(BinaryOp::Lt, &signed.like(0.0))
    }

    #[track_caller]
    fn is_infinity(&self, which: f64) -> Tensor {
        if !self.dtype().is_float() {
            return self.constant(crate::scalar::Scalar::from(false));
        }
        self.combine(BinaryOp::Eq, &self.like(which))
    }

    /// The `n`-th derivative of [`Tensor::digamma`] (order 0 is digamma itself, order 1 the
    /// trigamma function), in the same shape. Below 0 only the orders 0 and 1 are defined, the
    /// rest is NaN there.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f64], &device)?;
    /// let y = x.polygamma(1).to_vec::<f64>()?[0];
    /// assert!((y - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-13);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn polygamma(&self, n: usize) -> Tensor {
        if n == 0 {
            return self.digamma();
        }
        Term::compute(self, |x| {
            let slope = move |x: &Term| Term(x.0.polygamma(n.saturating_add(1)));
            polygamma(n, x).ruled(x, move |x, _, dy| slope(x) * dy)
        })
    }

    /// `log(x / (1 - x))`, with `x` first limited to `eps ..= 1 - eps` if `eps` is given,
    /// at which the gradient is that from inside.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0.5f32, 1.0], &device)?;
    /// assert_eq!(x.logit(None).to_vec::<f32>()?, [0.0, f32::INFINITY]);
    /// assert!(x.logit(Some(1e-3)).to_vec::<f32>()?[1] < 7.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn logit(&self, eps: Option<f64>) -> Tensor {
        let held = |x: &Term| match eps {
            Some(eps) => {
                let x = x.bounded(BinaryOp::Max, eps, true);
                x.bounded(BinaryOp::Min, 1.0 - eps, true)
            }
            None => x.clone(),
        };
        Term::compute(self, |x| {
            let x = held(x);
            let y = (&x / (1.0 - &x)).log();
            Term(y.0.with_rule(&x.0, |inputs, _, dy| {
                let x = Term(inputs[0].clone());
                Some((Term(dy.clone()) / (&x * (1.0 - &x))).0)
            }))
        })
    }

    /// NaN replaced by `nan`, infinities by the given numbers or else by the largest and smallest
    /// finite numbers of the dtype. Integers stay as they are.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, f32::NAN, f32::INFINITY], &device)?;
    /// assert_eq!(x.nan_to_num(0.0, Some(9.0), None).to_vec::<f32>()?, [1.0, 0.0, 9.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Tensor {
        let _here = composed();
        let most = match self.dtype() {
            DType::F16 => half::f16::MAX.to_f64(),
            DType::BF16 => half::bf16::MAX.to_f64(),
            DType::F32 => f32::MAX as f64,
            DType::F64 => f64::MAX,
            _ => return self.clone(),
        };
        let x = Term(self.clone());
        let y = x.is(f64::INFINITY).choose(&x.number(posinf.unwrap_or(most)), &x);
        let y = x.is(f64::NEG_INFINITY).choose(&x.number(neginf.unwrap_or(-most)), &y);
        x.is_nan().choose(&x.number(nan), &y).0
    }
}

/// `y` with the sign of `x`, that of a zero too, for odd functions computed from `|x|`.
#[track_caller]
fn signed(x: &Term, y: &Term) -> Term {
    Condition(x.0.has_sign()).choose(&-y, y)
}

/// `log(erfc(|x|) / t) + x^2` and `t = 2 / (2 + |x|)`.
#[track_caller]
fn erfc_parts(x: &Term) -> (Term, Term) {
    let t = 2.0 / (x.abs() + 2.0);
    ((&t * 2.0 - 1.0).chebyshev(series::ERFC), t)
}

#[track_caller]
fn erfc(x: &Term) -> Term {
    // Beyond 30 the result underflows in every dtype, and infinity would give inf - inf.
    let a = x.abs().min(&x.number(30.0));
    let (p, t) = erfc_parts(&a);
    // The square in two parts, the first exact, so that the exponential's argument is accurate.
    let coarse = (&a * 16.0).floor() * (1.0 / 16.0);
    let rest = (&a - &coarse) * (&a + &coarse);
    let y = t * (-coarse.square()).exp() * (p - rest).exp();
    x.below(0.0).choose(&(2.0 - &y), &y)
}

#[track_caller]
fn erfcx(x: &Term) -> Term {
    let (p, t) = erfc_parts(x);
    let y = t * p.exp();
    x.below(0.0).choose(&(x.square().exp() * 2.0 - &y), &y)
}

/// `2 x y - 2 / sqrt(pi)`; of large `x`, where nothing is left of that difference, `-y / x`.
#[track_caller]
fn erfcx_slope(x: &Term, y: &Term) -> Term {
    let near = 2.0 * x.bounded(BinaryOp::Min, LARGE, true) * y - FRAC_2_SQRT_PI;
    x.below(1e6).choose(&near, &(-y / x.bounded(BinaryOp::Max, 1.0, true)))
}

#[track_caller]
fn log_ndtr(x: &Tensor) -> Tensor {
    let value = |x: &Term| {
        let scaled = x * FRAC_1_SQRT_2;
        let tail = (erfcx(&(-x.min(&x.number(0.0)) * FRAC_1_SQRT_2)) * 0.5).log();
        let tail = tail - scaled.square();
        let body = (erfc(&scaled) * -0.5).log1p();
        x.below(-1.0).choose(&tail, &body)
    };
    // The density over the distribution: sqrt(2 / pi) / erfcx(-x / sqrt(2)).
    with_slope(x, value, |x, _| (2.0 / PI).sqrt() / erfcx(&(x * -FRAC_1_SQRT_2)))
}

/// By Chebyshev series of `erfinv(y) / y` in `w = -log(1 - y^2)` and its root, the variables in
/// which Giles (GPU Computing Gems 2, 2010) found it smooth.
#[track_caller]
fn erfinv(y: &Term) -> Term {
    let w = -((1.0 - y) * (y + 1.0)).log();
    let low = 5f64.sqrt();
    let centre = (w.min(&y.number(5.0)) * 0.4 - 1.0).chebyshev(series::ERFINV_CENTRE);
    let root = w.max(&y.number(5.0)).sqrt().min(&y.number(6.1));
    let tail = ((root - low) * (2.0 / (6.1 - low)) - 1.0).chebyshev(series::ERFINV_TAIL);
    let x = y * w.below(5.0).choose(&centre, &tail);
    let infinite = y.abs().is(1.0).choose(&(y * f64::INFINITY), &x);
    y.abs().above(1.0).choose(&y.number(f64::NAN), &infinite)
}

/// `B(2k) / (2k (2k - 1))`, from `k` = 8 down: Stirling's series.
const STIRLING: &[f64] = &[
    -0.029_550_653_594_771_242,
    0.006_410_256_410_256_41,
    -0.001_917_526_917_526_917_6,
    0.000_841_750_841_750_841_7,
    -0.000_595_238_095_238_095_3,
    0.000_793_650_793_650_793_7,
    -0.002_777_777_777_777_778,
    0.083_333_333_333_333_33,
];

/// `log(gamma(x))` for `x > 0`: a Chebyshev series between 1 and 3 that has its zeros at 1 and 2
/// exactly, one step of the recurrence below, Stirling's series at `x + 5` or `x` above.
#[track_caller]
fn lgamma_positive(x: &Term) -> Term {
    let small = x.below(1.0);
    let near = small.choose(&(x + 1.0), &x.min(&x.number(3.0)));
    let near = (&near - 2.0).chebyshev(series::LGAMMA) * (&near - 1.0) * (&near - 2.0);
    let near = small.choose(&(&near - x.log()), &near);
    let low = x.below(8.0);
    let z = low.choose(&(x + 5.0), x);
    let inverse = z.recip();
    let series = inverse.square().polynomial(STIRLING) * &inverse;
    let half_log_tau = 0.918_938_533_204_672_8;
    let log = z.log();
    let far = &z * (&log - 1.0) - &log * 0.5 + half_log_tau + series;
    let product = x * (x + 1.0) * (x + 2.0) * (x + 3.0) * (x + 4.0);
    let far = low.choose(&(&far - low.choose(&product, &x.number(1.0)).log()), &far);
    x.below(3.0).choose(&near, &far)
}

/// `sin(pi x)` and `cos(pi x)` up to a common sign, exact at multiples of a half.
#[track_caller]
fn sin_cos_pi(x: &Term) -> (Term, Term) {
    let r = x - Term(x.0.round());
    let (sin, cos) = (Term((&r * PI).0.sin()), Term((&r * PI).0.cos()));
    (sin, r.abs().is(0.5).choose(&x.number(0.0), &cos))
}

#[track_caller]
fn lgamma(x: &Tensor) -> Tensor {
    let value = |x: &Term| {
        let reflected = x.below(0.5);
        let y = lgamma_positive(&reflected.choose(&(1.0 - x), x));
        // gamma(x) gamma(1 - x) = pi / sin(pi x)
        let mirror = (PI / sin_cos_pi(x).0.abs()).log() - &y;
        let y = reflected.choose(&mirror, &y);
        x.abs().is(f64::INFINITY).choose(&x.number(f64::INFINITY), &y)
    };
    with_slope(x, value, |x, _| Term(x.0.digamma()))
}

/// `B(2k) / 2k`, from `k` = 8 down.
const DIGAMMA: &[f64] = &[
    -0.443_259_803_921_568_65,
    0.083_333_333_333_333_33,
    -0.021_092_796_092_796_094,
    0.007_575_757_575_757_576,
    -0.004_166_666_666_666_667,
    0.003_968_253_968_253_968,
    -0.008_333_333_333_333_333,
    0.083_333_333_333_333_33,
];

#[track_caller]
fn digamma(x: &Tensor) -> Tensor {
    let value = |x: &Term| {
        let reflected = x.below(0.0);
        let a = reflected.choose(&(1.0 - x), x);
        let low = a.below(8.0);
        let steps = (0..8).fold(a.number(0.0), |sum, k| sum + (&a + k as f64).recip());
        let z = low.choose(&(&a + 8.0), &a);
        let inverse = z.recip();
        let square = inverse.square();
        let far = z.log() - &inverse * 0.5 - square.polynomial(DIGAMMA) * &square;
        let y = low.choose(&(&far - steps), &far);
        // psi(1 - x) - psi(x) = pi cot(pi x)
        let (sin, cos) = sin_cos_pi(x);
        let mirror = &y - cos / &sin * PI;
        let mirror = sin.is(0.0).choose(&x.number(f64::NAN), &mirror);
        reflected.choose(&mirror, &y)
    };
    let with_pole = |x: &Term| {
        // At 0 the sign of the pole is that of the zero.
        let below = Condition(x.0.has_sign());
        let below = below.choose(&x.number(f64::INFINITY), &x.number(f64::NEG_INFINITY));
        x.is(0.0).choose(&below, &value(x))
    };
    with_slope(x, with_pole, |x, _| Term(x.0.polygamma(1)))
}

/// `B(2k) / (2k)!`, from `k` = 1 on.
const EULER_MACLAURIN: [f64; 8] = [
    0.083_333_333_333_333_33,
    -0.001_388_888_888_888_889,
    3.306_878_306_878_307e-5,
    -8.267_195_767_195_768e-7,
    2.087_675_698_786_81e-8,
    -5.284_190_138_687_493e-10,
    1.338_253_653_068_468e-11,
    -3.389_680_296_322_583e-13,
];

/// Factors of a power from which on it is computed as one.
const MOST_FACTORS: usize = 8;

/// `(-1)^(n + 1) n! zeta(n + 1, x)` with the Hurwitz zeta function by its first terms and the
/// Euler-Maclaurin formula for the rest.
#[track_caller]
fn polygamma(n: usize, x: &Term) -> Term {
    let s = n as f64 + 1.0;
    let reflected = x.below(0.0);
    let a = if n == 1 { reflected.choose(&(1.0 - x), x) } else { x.clone() };
    // `x^-s`: of few factors a product of reciprocals, which costs much less than a power.
    let power = |x: &Term| match n {
        0..MOST_FACTORS => {
            let inverse = x.recip();
            (0..n).fold(inverse.clone(), |product, _| product * &inverse)
        }
        _ => Term(x.0.combine(BinaryOp::Pow, &x.0.like(-s))),
    };
    let first = (0..10).map(|k| power(&(&a + k as f64)));
    let first = first.reduce(|sum, term| sum + term).expect("invariant: there are ten terms");
    let w = &a + 10.0;
    let inverse = w.recip();
    let mut rest = &w * (1.0 / (s - 1.0)) + 0.5;
    let (mut rising, mut odd) = (s, inverse.clone());
    for (k, b) in EULER_MACLAURIN.iter().enumerate() {
        rest = rest + &odd * (b * rising);
        let j = 2.0 * k as f64 + 1.0;
        rising *= (s + j) * (s + j + 1.0);
        odd = odd * inverse.square();
    }
    let factorial = (1..=n.min(400)).fold(1.0, |f, k| f * k as f64);
    let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
    let y = (first + power(&w) * rest) * (sign * factorial);
    let y = x.is(f64::INFINITY).choose(&x.number(0.0), &y);
    if n == 1 {
        let (sin, _) = sin_cos_pi(x);
        let mirror = (PI * PI) / sin.square() - &y;
        reflected.choose(&mirror, &y)
    } else {
        reflected.choose(&x.number(f64::NAN), &y)
    }
}

/// Above this the square of `x` no longer changes `x^2 + 1`.
const LARGE: f64 = 1e9;

/// `1 / sqrt(x^2 + c)` for `c` of 1 and -1, without overflow.
#[track_caller]
fn inverse_length(x: &Term, c: f64) -> Term {
    let a = x.abs();
    let b = a.min(&x.number(LARGE));
    let squares = if c > 0.0 { b.square() + c } else { (&b + c) * (&b - c) };
    let far = a.bounded(BinaryOp::Max, LARGE, true).recip();
    a.below(LARGE).choose(&squares.sqrt().recip(), &far)
}

#[track_caller]
fn asinh(x: &Term) -> Term {
    let a = x.abs();
    let b = a.min(&x.number(LARGE));
    let body = (&b + b.square() / ((b.square() + 1.0).sqrt() + 1.0)).log1p();
    signed(x, &a.below(LARGE).choose(&body, &(a.log() + LN_2)))
}

#[track_caller]
fn acosh(x: &Term) -> Term {
    let t = x.min(&x.number(LARGE)) - 1.0;
    let body = (&t + (&t * (&t + 2.0)).sqrt()).log1p();
    let y = x.below(LARGE).choose(&body, &(x.log() + LN_2));
    x.below(1.0).choose(&x.number(f64::NAN), &y)
}

#[track_caller]
fn atanh(x: &Term) -> Term {
    let a = x.abs();
    signed(x, &((&a * 2.0 / (1.0 - &a)).log1p() * 0.5))
}

#[track_caller]
fn sinc(x: &Term) -> Term {
    let zero = x.is(0.0);
    let r = x - Term((x * 0.5).0.round()) * 2.0;
    let angle = zero.choose(&x.number(1.0), &(x * PI));
    zero.choose(&x.number(1.0), &(Term((r * PI).0.sin()) / angle))
}

/// The derivative of `sin(u) / u`, with `u = pi x`, by `x`: near 0, where what follows from the
/// formula is a difference of large numbers, its series in `u`, `(-1)^k 2k / (2k + 1)! u^(2k - 1)`.
#[track_caller]
fn sinc_slope(x: &Term, y: &Term) -> Term {
    let u = x.within(0.5) * PI;
    let mut factorial = 1.0;
    let mut series: Vec<f64> = (1..=11)
        .map(|k| {
            let k = f64::from(k);
            factorial *= 2.0 * k * (2.0 * k + 1.0);
            (if k % 2.0 == 0.0 { 2.0 } else { -2.0 }) * k / factorial
        })
        .collect();
    series.reverse();
    let near = u.square().polynomial(&series) * &u * PI;
    let small = x.abs().below(0.5);
    let (_, cos) = sin_cos_pi(x);
    let odd = Term((x * 0.5).0.round()) * 2.0;
    let r = x - odd;
    let cos = r.abs().above(0.5).choose(&-&cos, &cos);
    let safe = small.choose(&x.number(1.0), x);
    small.choose(&near, &((cos - y) / safe))
}

/// Shared by methods that answer with one bool.
pub(super) fn truth(condition: Result<Tensor>) -> Result<bool> {
    condition?.all(..)?.item::<bool>()
}
