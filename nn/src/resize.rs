//! Images of another size: [`Upsample`] and [`Pad`].

use crate::{Forward, Init, Module};
use zyx_core::{Interpolation, PadMode, Result, Tensor};

/// The last axes made larger or smaller, by factors.
///
/// ```
/// use zyx::nn::{Forward, Upsample};
/// use zyx::{Interpolation, Tensor};
/// let device = zyx::device()?;
/// let x = Tensor::new([[[1f32, 2.0]]], &device)?;
/// let twice = Upsample { mode: Interpolation::Nearest, ..Upsample::new([2.0]) };
/// assert_eq!(twice.forward(&x)?.to_vec::<f32>()?, [1.0, 1.0, 2.0, 2.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug, Module)]
pub struct Upsample {
    /// The factors of the last axes; extents are rounded down, places are not.
    #[module(skip)]
    pub scale: Vec<f64>,
    /// How values between elements are found; the nearest element.
    #[module(skip)]
    pub mode: Interpolation,
    /// Whether elements are points, of which the outermost stay; false.
    pub align_corners: bool,
}

impl Upsample {
    /// By these factors of the last axes, to the nearest element.
    pub fn new(scale: impl Into<Vec<f64>>) -> Upsample {
        Upsample { scale: scale.into(), mode: Interpolation::Nearest, align_corners: false }
    }
}

impl Forward for Upsample {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.interpolate_by(&self.scale, self.mode, self.align_corners)
    }
}

/// Elements around the last axes: zeros, a number, mirror images, copies of the outermost, or the
/// other end.
#[derive(Clone, Debug, Module)]
pub struct Pad {
    /// How many before and after, for each of the last axes in their order.
    #[module(skip)]
    pub padding: Vec<(usize, usize)>,
    /// What is added.
    #[module(skip)]
    pub mode: PadMode,
}

impl Forward for Pad {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(lead) = x.rank().checked_sub(self.padding.len()) else {
            let reason = format!("{} axes of shape {}", self.padding.len(), x.shape());
            return Err(Init::refuse("Pad", reason));
        };
        let padding = [&vec![(0, 0); lead][..], &self.padding].concat();
        x.pad_mode(padding, self.mode)
    }
}
