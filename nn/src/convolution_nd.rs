//! Convolutions over three axes and transposed ones: [`Conv3d`], [`ConvTranspose1d`] to
//! [`ConvTranspose3d`].

use crate::convolution::parameters;
use crate::init::OfLayer;
use crate::{Around, Forward, Init, Module};
use zyx_core::{Conv3dOptions, ConvTransposeOptions, Param, Result, Tensor};

/// 3-d convolution of `[n, in, depth, height, width]`. Parameters `weight` `[out, in / groups, kd,
/// kh, kw]` and `bias` `[out]`, initialised as those of [`Conv2d`](crate::Conv2d).
#[derive(Clone, Debug, Module)]
pub struct Conv3d {
    /// `[out, in / groups, kernel depth, kernel height, kernel width]`.
    pub weight: Param,
    /// `[out]`.
    pub bias: Option<Param>,
    /// Stride, padding, dilation and groups.
    #[module(skip)]
    pub options: Conv3dOptions,
    /// What is added around the input by the layer itself, not by the options.
    #[module(skip)]
    pub around: Option<Around>,
}

impl Conv3d {
    /// A convolution from `inputs` to `outputs` channels, with a bias.
    ///
    /// ```
    /// # use zyx::nn::{Conv3d, Forward, Init};
    /// # use zyx::{Conv3dOptions, DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Conv3d::new(1, 2, [2, 2, 2], Conv3dOptions::default(), init)?;
    /// let x = Tensor::ones([1, 1, 3, 3, 3], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 2, 2, 2, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the groups do not divide the channels, or the device fails.
    #[track_caller]
    pub fn new(
        inputs: usize,
        outputs: usize,
        kernel: [usize; 3],
        options: Conv3dOptions,
        init: &mut Init,
    ) -> Result<Conv3d> {
        let (weight, bias) =
            parameters("Conv3d::new", [outputs, inputs], outputs, options.groups, &kernel, init)?;
        Ok(Conv3d { weight, bias: Some(bias), options, around: None })
    }
}

impl Forward for Conv3d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let bias = self.bias.as_ref().map(Param::tensor);
        let x = &Around::padded(&self.around, x).of_layer(&self.weight)?;
        x.conv3d(&self.weight.tensor(), bias.as_ref(), self.options).of_layer(&self.weight)
    }
}

macro_rules! transposed {
    ($($name:ident $axes:literal $method:ident $shape:literal;)*) => {$(
        #[doc = concat!("Transposed convolution of `", $shape, "`: each element spreads to a window.")]
        /// Parameters `weight` `[in, out / groups, ..]` and `bias` `[out]`, uniform within `1 /
        /// sqrt(out / groups * kernel)` at first.
        #[derive(Clone, Debug, Module)]
        pub struct $name {
            /// `[in, out / groups, ..]`.
            pub weight: Param,
            /// `[out]`.
            pub bias: Option<Param>,
            /// Stride, padding, dilation and groups.
            #[module(skip)]
            pub options: ConvTransposeOptions<$axes>,
        }

        impl $name {
            /// From `inputs` to `outputs` channels, with a bias.
            ///
            /// ```
            /// # use zyx::nn::{ConvTranspose1d, Forward, Init};
            /// # use zyx::{ConvTransposeOptions, DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let options = ConvTransposeOptions { stride: [2], ..Default::default() };
            /// let layer = ConvTranspose1d::new(1, 2, [3], options, init)?;
            /// let x = Tensor::ones([1, 1, 4], DType::F32, &device);
            /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 2, 9]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the groups do not divide the channels, or the device fails.
            #[track_caller]
            pub fn new(
                inputs: usize,
                outputs: usize,
                kernel: [usize; $axes],
                options: ConvTransposeOptions<$axes>,
                init: &mut Init,
            ) -> Result<$name> {
                let op = concat!(stringify!($name), "::new");
                let (weight, bias) = parameters(op, [inputs, outputs], outputs, options.groups, &kernel, init)?;
                Ok($name { weight, bias: Some(bias), options })
            }
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                let bias = self.bias.as_ref().map(Param::tensor);
                let y = x.$method(&self.weight.tensor(), bias.as_ref(), self.options);
                y.of_layer(&self.weight)
            }
        }
    )*};
}

transposed! {
    ConvTranspose1d 1 conv_transpose1d "[n, in, length]";
    ConvTranspose2d 2 conv_transpose2d "[n, in, height, width]";
    ConvTranspose3d 3 conv_transpose3d "[n, in, depth, height, width]";
}
