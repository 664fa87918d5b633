//! Activations: elementwise functions between the layers of networks.
//!
//! Each is composed of elementwise ops, so it fuses with what surrounds it. Integers are converted
//! to `f32`, except by [`Tensor::relu`]; halves are computed in `f32` and rounded once. Where the
//! gradient of the formula would be `0 * inf` or `inf - inf`, or at 0 the wrong one, the rule is
//! given.

use super::Tensor;
use super::formula::Term;
use crate::ops::BinaryOp;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Beyond this magnitude a gate has been exactly open or shut for long, in every dtype.
const SATURATED: f64 = 1000.0;

impl Tensor {
    /// `max(x, 0)`; NaN stays NaN. The gradient at 0 is 0.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.relu().to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.bounded(BinaryOp::Max, &self.like(0.0), false)
    }

    /// `x` where positive, else `slope * x`. The gradient at 0 is `slope`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.leaky_relu(0.5).to_vec::<f32>()?, [1.0, -1.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn leaky_relu(&self, slope: f64) -> Tensor {
        let x = self.floating();
        let positive = x.like(0.0).combine(BinaryOp::Lt, &x);
        positive.select(&x, &x.combine(BinaryOp::Mul, &x.like(slope)))
    }

    /// `1 / (1 + e^-x)`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32], &device)?;
    /// assert_eq!(x.sigmoid().to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        Term::compute(self, Term::sigmoid)
    }

    /// `x * sigmoid(x)`, also called swish.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 1.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.silu()), "[0.     0.7311]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        let x = self.floating();
        let y = Term::compute(&x, |x| x * Term(x.0.sigmoid()));
        y.with_rule(&x, |inputs, _, dy| {
            Some(Term::compute2(&inputs[0], dy, |x, dy| {
                let gate = Term(x.0.sigmoid());
                dy * (&gate + x.within(SATURATED) * (&gate * (1.0 - &gate)))
            }))
        })
    }

    /// `log(1 + e^x)`, without overflow.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([0f32, 100.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.softplus()), "[  0.6931 100.    ]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        Term::compute(self, |x| {
            let y = x.max(&x.number(0.0)) + (-x.abs()).exp().log1p();
            y.ruled(x, |x, _, dy| x.sigmoid() * dy)
        })
    }

    /// `x` where positive, else `alpha * (e^x - 1)`. The gradient at 0 is `alpha`.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.elu(1.0)), "[ 1.     -0.8647  3.    ]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Tensor {
        Term::compute(self, |x| x.elu(alpha))
    }

    /// The self-normalising activation of Klambauer et al. 2017. The gradient at 0 is that from below.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.selu()), "[ 1.0507 -1.5202  3.1521]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn selu(&self) -> Tensor {
        Term::compute(self, |x| x.elu(1.673_263_242_354_377_2) * 1.050_700_987_355_480_5)
    }

    /// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.gelu()), "[ 0.8412 -0.0454  2.9964]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        let x = self.floating();
        let y = Term::compute(&x, |x| {
            let half = x * 0.5;
            &half * gelu_gate(x) + &half
        });
        y.with_rule(&x, |inputs, _, dy| {
            Some(Term::compute2(&inputs[0], dy, |x, dy| {
                let gate = gelu_gate(x);
                let steep = gelu_slope(x) * x.within(GELU_SATURATED) * 0.5;
                dy * (steep * (1.0 - gate.square()) + (&gate * 0.5 + 0.5))
            }))
        })
    }

    /// The Gaussian error linear unit by the error function.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.gelu_exact()), "[ 0.8413 -0.0455  2.996 ]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_exact(&self) -> Tensor {
        let x = self.floating();
        let y = Term::compute(&x, |x| {
            let half = x * 0.5;
            &half * Term((x * FRAC_1_SQRT_2).0.erf()) + &half
        });
        y.with_rule(&x, |inputs, _, dy| {
            Some(Term::compute2(&inputs[0], dy, |x, dy| {
                let gate = Term((x * FRAC_1_SQRT_2).0.erf()) * 0.5 + 0.5;
                let x = x.within(SATURATED);
                let density = (x.square() * -0.5).exp() * (0.5 / PI).sqrt();
                dy * (x * density + gate)
            }))
        })
    }

    /// `x * tanh(softplus(x))` (Misra 2019).
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.mish()), "[ 0.8651 -0.2525  2.9865]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[track_caller]
    pub fn mish(&self) -> Tensor {
        let x = self.floating();
        let y = Term::compute(&x, |x| x * Term(x.0.softplus().tanh()));
        y.with_rule(&x, |inputs, _, dy| {
            Some(Term::compute2(&inputs[0], dy, |x, dy| {
                let gate = Term(x.0.softplus().tanh());
                let steep = Term(x.0.sigmoid()) * (1.0 - gate.square());
                dy * (&gate + x.within(SATURATED) * steep)
            }))
        })
    }
}

/// The cubic in [`gelu_gate`] is far beyond where its hyperbolic tangent is 1.
const GELU_SATURATED: f64 = 16.0;

/// `sqrt(2 / pi)`, and that times the coefficient of the cubic.
const GELU: [f64; 2] = [0.797_884_560_802_865_4, 0.797_884_560_802_865_4 * 0.044_715];

/// `tanh(x (a + b x^2))`, in the order that multiplies and adds at once.
#[track_caller]
fn gelu_gate(x: &Term) -> Term {
    let [a, b] = GELU;
    let gate = ((x.square() * b + a) * x).0.tanh();
    Term(gate.with_rule(&x.0, |inputs, gate, dy| {
        let (x, gate) = (Term(inputs[0].clone()), Term(gate.clone()));
        Some((gelu_slope(&x) * (1.0 - gate.square()) * Term(dy.clone())).0)
    }))
}

/// The derivative of the argument of [`gelu_gate`], held where the gate is open or shut.
#[track_caller]
fn gelu_slope(x: &Term) -> Term {
    let [a, b] = GELU;
    x.within(GELU_SATURATED).square() * (3.0 * b) + a
}
