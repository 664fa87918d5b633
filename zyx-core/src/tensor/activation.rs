//! Activations: elementwise functions between the layers of networks.
//!
//! Each is composed of elementwise ops, so it fuses with what surrounds it and its gradient
//! follows. Integers are converted to `f32`, except by [`Tensor::relu`].

use super::Tensor;
use crate::ops::BinaryOp;

impl Tensor {
    /// `max(x, 0)`; NaN stays NaN.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.relu().to_vec::<f32>()?, [1.0, 0.0, 3.0]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn relu(&self) -> Tensor {
        self.combine(BinaryOp::Max, &self.like(0.0))
    }

    /// `x` where positive, else `slope * x`.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(x.leaky_relu(0.5).to_vec::<f32>()?, [1.0, -1.0, 3.0]);
    /// # Ok::<(), zyx_core::Error>(())
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
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([0f32], &device)?;
    /// assert_eq!(x.sigmoid().to_vec::<f32>()?, [0.5]);
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn sigmoid(&self) -> Tensor {
        let x = self.floating();
        x.neg().exp().combine(BinaryOp::Add, &x.like(1.0)).recip()
    }

    /// `x * sigmoid(x)`, also called swish.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([0f32, 1.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.silu()), "[0.     0.7311]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn silu(&self) -> Tensor {
        let x = self.floating();
        x.combine(BinaryOp::Mul, &x.sigmoid())
    }

    /// `log(1 + e^x)`, without overflow.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([0f32, 100.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.softplus()), "[  0.6931 100.    ]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn softplus(&self) -> Tensor {
        let x = self.floating();
        let tail = x.abs().neg().exp().log1p();
        x.relu().combine(BinaryOp::Add, &tail)
    }

    /// `x` where positive, else `alpha * (e^x - 1)`.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.elu(1.0)), "[ 1.     -0.8647  3.    ]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn elu(&self, alpha: f64) -> Tensor {
        let x = self.floating();
        let zero = x.like(0.0);
        let low = x.combine(BinaryOp::Min, &zero).expm1();
        let low = low.combine(BinaryOp::Mul, &x.like(alpha));
        zero.combine(BinaryOp::Lt, &x).select(&x, &low)
    }

    /// The self-normalising activation of Klambauer et al. 2017.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.selu()), "[ 1.0507 -1.5202  3.1521]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn selu(&self) -> Tensor {
        let y = self.elu(1.673_263_242_354_377_2);
        y.combine(BinaryOp::Mul, &y.like(1.050_700_987_355_480_5))
    }

    /// The Gaussian error linear unit in its tanh form (Hendrycks and Gimpel 2016).
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.gelu()), "[ 0.8412 -0.0454  2.9964]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu(&self) -> Tensor {
        let x = self.floating();
        // 0.5 x (1 + tanh(x (a + b x^2))), in the order that multiplies and adds at once.
        let a = (2.0 / std::f64::consts::PI).sqrt();
        let slope = x.square().combine(BinaryOp::Mul, &x.like(0.044_715 * a));
        let slope = slope.combine(BinaryOp::Add, &x.like(a));
        let gate = slope.combine(BinaryOp::Mul, &x).tanh();
        let half = x.combine(BinaryOp::Mul, &x.like(0.5));
        half.combine(BinaryOp::Mul, &gate).combine(BinaryOp::Add, &half)
    }

    /// The Gaussian error linear unit by the error function.
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.gelu_exact()), "[ 0.8413 -0.0455  2.996 ]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn gelu_exact(&self) -> Tensor {
        let x = self.floating();
        let scaled = x.combine(BinaryOp::Mul, &x.like(std::f64::consts::FRAC_1_SQRT_2));
        let half = x.combine(BinaryOp::Mul, &x.like(0.5));
        half.combine(BinaryOp::Mul, &scaled.erf()).combine(BinaryOp::Add, &half)
    }

    /// `x * tanh(softplus(x))` (Misra 2019).
    ///
    /// ```
    /// # use zyx_core::{Runtime, Tensor};
    /// # let device = Runtime::default().device("reference")?;
    /// let x = Tensor::new([1f32, -2.0, 3.0], &device)?;
    /// assert_eq!(format!("{:.4}", x.mish()), "[ 0.8651 -0.2525  2.9865]");
    /// # Ok::<(), zyx_core::Error>(())
    /// ```
    #[track_caller]
    pub fn mish(&self) -> Tensor {
        let x = self.floating();
        x.combine(BinaryOp::Mul, &x.softplus().tanh())
    }
}
