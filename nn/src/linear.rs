//! Layers that are one product: [`Linear`] and [`Bilinear`].

use crate::init::OfLayer;
use crate::{Forward, Init, Module};
use zyx_core::{Param, Result, Tensor};

/// `x W' + b` over the last axis. Parameters `weight` `[out, in]` and `bias` `[out]`, both
/// uniform within `1 / sqrt(in)` at first.
#[derive(Clone, Debug, Module)]
pub struct Linear {
    /// `[out, in]`.
    pub weight: Param,
    /// `[out]`.
    pub bias: Option<Param>,
}

impl Linear {
    /// A layer from `inputs` to `outputs` features, with a bias.
    ///
    /// ```
    /// # use zyx::nn::{Forward, Init, Linear};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Linear::new(4, 2, init)?;
    /// let x = Tensor::ones([5, 4], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [5, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn new(inputs: usize, outputs: usize, init: &mut Init) -> Result<Linear> {
        let mut linear = Linear::without_bias(inputs, outputs, init)?;
        linear.bias = Some(Param::new(init.fan_in_uniform([outputs], inputs)?));
        Ok(linear)
    }

    /// A layer without bias.
    ///
    /// ```
    /// # use zyx::nn::{Init, Linear};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Linear::without_bias(4, 2, init)?;
    /// assert!(layer.bias.is_none());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn without_bias(inputs: usize, outputs: usize, init: &mut Init) -> Result<Linear> {
        let weight = Param::new(init.fan_in_uniform([outputs, inputs], inputs)?);
        Ok(Linear { weight, bias: None })
    }
}

impl Forward for Linear {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let y = x.matmul(&self.weight.tensor().t()).of_layer(&self.weight)?;
        match &self.bias {
            Some(bias) => y.add(bias.tensor()),
            None => Ok(y),
        }
    }
}

/// `x1' W x2 + b` over the last axes of two inputs. Parameters `weight` `[out, in1, in2]` and
/// `bias` `[out]`, both uniform within `1 / sqrt(in1)` at first.
#[derive(Clone, Debug, Module)]
pub struct Bilinear {
    /// `[out, in1, in2]`.
    pub weight: Param,
    /// `[out]`.
    pub bias: Option<Param>,
}

impl Bilinear {
    /// A layer from `inputs` features of the first and the second input, with a bias.
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn new(inputs: [usize; 2], outputs: usize, init: &mut Init) -> Result<Bilinear> {
        let weight = init.fan_in_uniform([outputs, inputs[0], inputs[1]], inputs[0])?;
        let bias = init.fan_in_uniform([outputs], inputs[0])?;
        Ok(Bilinear { weight: Param::new(weight), bias: Some(Param::new(bias)) })
    }

    /// The result for two inputs `[.., in1]` and `[.., in2]` of equal other axes.
    ///
    /// ```
    /// use zyx::nn::{Bilinear, Init};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let layer = Bilinear::new([3, 4], 2, &mut Init::new(0, &device))?;
    /// let ones = |n| Tensor::ones([5, n], DType::F32, &device);
    /// assert_eq!(layer.apply(&ones(3), &ones(4))?.shape().dims(), [5, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn apply(&self, x1: &Tensor, x2: &Tensor) -> Result<Tensor> {
        let weight = self.weight.tensor();
        let (outputs, n1, n2) = (weight.shape()[0], weight.shape()[1], weight.shape()[2]);
        let fits = |x: &Tensor, n| x.shape().last() == Some(&n);
        let lead = |x: &Tensor| x.shape()[..x.rank().max(1) - 1].to_vec();
        if !fits(x1, n1) || !fits(x2, n2) || lead(x1) != lead(x2) {
            let reason =
                format!("needs [.., {n1}] and [.., {n2}], not {} and {}", x1.shape(), x2.shape());
            return Err(Init::refuse("Bilinear", reason)).of_layer(&self.weight);
        }
        let n: usize = lead(x1).iter().product();
        let products = x1
            .reshape([n, n1])?
            .matmul(&weight.permute([1, 0, 2])?.reshape([n1, outputs * n2])?)?
            .reshape([n, outputs, n2])?;
        let y = products.mul(x2.reshape([n, 1, n2])?)?.sum(-1)?;
        let y = y.reshape([lead(x1), vec![outputs]].concat())?;
        match &self.bias {
            Some(bias) => y.add(bias.tensor()),
            None => Ok(y),
        }
    }
}
