//! What a convolution finds around its input: [`Around`], for [`Conv1d`], [`Conv2d`] and [`Conv3d`].
//!
//! A convolution's options know zeros, as many on both sides. The rest is added to the input before
//! it: other elements than zeros, or one element more behind than before, which the padding that
//! keeps the extent needs for kernels of even length.

use crate::{Conv1d, Conv2d, Conv3d, Init, Param};
use zyx_core::{PadMode, Result, Tensor};

/// Elements that a convolution adds around its input by itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Around {
    /// How many, before and after each axis that the kernel moves along.
    pub ends: Vec<(usize, usize)>,
    /// Which.
    pub mode: PadMode,
}

impl Around {
    /// The input with these elements, if there are such. One of another rank comes back as it is:
    /// the convolution refuses it.
    #[track_caller]
    pub(crate) fn padded(around: &Option<Around>, x: &Tensor) -> Result<Tensor> {
        match around {
            Some(Around { ends, mode }) if x.rank() == ends.len() + 2 => {
                x.pad_mode([&[(0, 0); 2], &ends[..]].concat(), *mode)
            }
            _ => Ok(x.clone()),
        }
    }
}

/// As many elements around an axis that a window moving by single steps fits as often as the axis
/// has elements; of an odd number the last one behind.
#[track_caller]
fn same(
    op: &'static str,
    weight: &Param,
    stride: &[usize],
    dilation: &[usize],
) -> Result<Vec<(usize, usize)>> {
    if stride.iter().any(|&step| step != 1) {
        let reason = format!("a stride of {stride:?} does not keep the extents");
        return Err(Init::refuse(op, reason));
    }
    let shape = weight.shape();
    let reach = |(&k, &d): (&usize, &usize)| k.checked_sub(1)?.checked_mul(d);
    let ends = shape[2..].iter().zip(dilation).map(|axis| reach(axis).map(|n| (n / 2, n - n / 2)));
    let ends: Option<Vec<(usize, usize)>> = ends.collect();
    match ends {
        Some(ends) => Ok(ends),
        None => Err(Init::refuse(op, format!("no window of dilation {dilation:?}"))),
    }
}

macro_rules! surrounded {
    ($($name:ident $options:ident => $stride:expr, $padding:expr, $dilation:expr;)*) => {$(
        impl $name {
            /// Padded so that the result has the extents of the input. The padding of the options
            /// is dropped; what is added are zeros, or what `with_padding_mode` chose.
            ///
            /// ```
            /// # use zyx::nn::{Conv2d, Forward, Init};
            /// # use zyx::{Conv2dOptions, DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = Conv2d::new(1, 1, [3, 3], Conv2dOptions::default(), init)?.with_same_padding()?;
            /// let x = Tensor::ones([1, 1, 5, 5], DType::F32, &device);
            /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 1, 5, 5]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the stride is not 1, or the window has no elements or reaches too far.
            #[track_caller]
            pub fn with_same_padding(self) -> Result<$name> {
                let $options = &self.options;
                let ends = same(concat!(stringify!($name), "::with_same_padding"), &self.weight, $stride, $dilation)?;
                let mode = self.around.map_or(PadMode::Zeros, |around| around.mode);
                let mut options = self.options;
                options.padding = Default::default();
                Ok($name { around: Some(Around { ends, mode }), options, ..self })
            }

            /// Padded by as many elements as before, chosen by `mode` instead of zeros.
            ///
            /// ```
            /// # use zyx::nn::{Conv2d, Forward, Init};
            /// # use zyx::{Conv2dOptions, DType, PadMode, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let options = Conv2dOptions { padding: [1, 1], ..Default::default() };
            /// let layer = Conv2d::new(1, 1, [3, 3], options, init)?.with_padding_mode(PadMode::Reflect);
            /// let x = Tensor::ones([1, 1, 5, 5], DType::F32, &device);
            /// assert_eq!(layer.forward(&x)?.shape().dims(), [1, 1, 5, 5]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            pub fn with_padding_mode(self, mode: PadMode) -> $name {
                let $options = &self.options;
                let given = || $padding.iter().map(|&n| (n, n)).collect();
                let ends = self.around.map_or_else(given, |around| around.ends);
                let mut options = self.options;
                options.padding = Default::default();
                $name { around: Some(Around { ends, mode }), options, ..self }
            }
        }
    )*};
}

surrounded! {
    Conv1d o => &[o.stride], [o.padding], &[o.dilation];
    Conv2d o => &o.stride, o.padding, &o.dilation;
    Conv3d o => &o.stride, o.padding, &o.dilation;
}
