//! Layers that are one product: [`Linear`] and [`Embedding`].

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
        let y = x.matmul(&self.weight.tensor().t())?;
        match &self.bias {
            Some(bias) => y.add(bias.tensor()),
            None => Ok(y),
        }
    }
}

/// Rows of a table by number. Parameter `weight` `[rows, width]`, standard normal at first.
#[derive(Clone, Debug, Module)]
pub struct Embedding {
    /// `[rows, width]`.
    pub weight: Param,
}

impl Embedding {
    /// A table of `rows` vectors of `width` elements.
    ///
    /// # Errors
    /// When the dtype is not a float, or the device fails.
    #[track_caller]
    pub fn new(rows: usize, width: usize, init: &mut Init) -> Result<Embedding> {
        Ok(Embedding { weight: Param::new(init.normal([rows, width], 1.0)?) })
    }
}

impl Forward for Embedding {
    /// The rows of integers `x`, along a new last axis; a number out of range gives zeros.
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.weight.tensor().embedding(x)
    }
}
