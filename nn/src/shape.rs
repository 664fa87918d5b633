//! Modules that only move elements, and one that does nothing: [`Identity`], [`Flatten`],
//! [`Unflatten`], [`PixelShuffle`], [`PixelUnshuffle`], [`ChannelShuffle`],
//! [`UpsampleNearest2d`], [`ConstantPad`].

use crate::{Forward, Init, Module, Path, Visitor};
use zyx_core::{Result, Shape, Tensor};

/// Its input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity;

impl Module for Identity {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for Identity {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

/// All axes but the first merged into one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flatten;

impl Module for Flatten {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for Flatten {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() == 1 { x.unsqueeze(1) } else { x.flatten_axes(1, -1) }
    }
}

/// One axis made several.
#[derive(Clone, Debug, Module)]
pub struct Unflatten {
    /// Which axis; from the end if negative.
    pub axis: isize,
    /// Its extents from now on.
    pub shape: Shape,
}

impl Forward for Unflatten {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let rank = x.rank() as isize;
        let axis = if self.axis < 0 { self.axis.saturating_add(rank) } else { self.axis };
        if !(0..rank).contains(&axis) {
            let reason = format!("axis {} of shape {}", self.axis, x.shape());
            return Err(Init::refuse("Unflatten", reason));
        }
        let (axis, dims) = (axis as usize, x.shape());
        x.reshape([&dims[..axis], &self.shape[..], &dims[axis + 1..]].concat())
    }
}

/// `[.., c r^2, h, w]` to `[.., c, h r, w r]` (Shi et al. 2016).
#[derive(Clone, Copy, Debug, Module)]
pub struct PixelShuffle(pub usize);

impl Forward for PixelShuffle {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.pixel_shuffle(self.0)
    }
}

/// `[.., c, h r, w r]` to `[.., c r^2, h, w]`: undoes [`PixelShuffle`].
#[derive(Clone, Copy, Debug, Module)]
pub struct PixelUnshuffle(pub usize);

impl Forward for PixelUnshuffle {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.pixel_unshuffle(self.0)
    }
}

/// Channels `[n, c, ..]` in equal groups, dealt one from each group in turn (Zhang et al. 2018).
#[derive(Clone, Copy, Debug, Module)]
pub struct ChannelShuffle(pub usize);

impl Forward for ChannelShuffle {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.channel_shuffle(self.0)
    }
}

/// Each of the last two axes repeated elementwise: nearest neighbours, by whole factors.
#[derive(Clone, Copy, Debug, Module)]
pub struct UpsampleNearest2d(pub [usize; 2]);

impl Forward for UpsampleNearest2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some((lead, &[height, width])) = x.shape().split_last_chunk::<2>() else {
            let reason = format!("needs two axes, not shape {}", x.shape());
            return Err(Init::refuse("UpsampleNearest2d", reason));
        };
        let [rows, columns] = self.0;
        let wide = [lead, &[height, 1, width, 1]].concat();
        let spread = [lead, &[height, rows, width, columns]].concat();
        let [h, w] = [height.checked_mul(rows), width.checked_mul(columns)];
        let (Some(h), Some(w)) = (h, w) else {
            let reason = format!("{rows} times {columns} is too large");
            return Err(Init::refuse("UpsampleNearest2d", reason));
        };
        x.reshape(wide)?.expand(spread)?.reshape([lead, &[h, w]].concat())
    }
}

/// Elements of one value around the last axes.
#[derive(Clone, Debug, Module)]
pub struct ConstantPad {
    /// How many before and after, for each of the last axes in their order.
    #[module(skip)]
    pub padding: Vec<(usize, usize)>,
    /// What is added.
    pub value: f64,
}

impl Forward for ConstantPad {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let Some(lead) = x.rank().checked_sub(self.padding.len()) else {
            let reason = format!("{} axes of shape {}", self.padding.len(), x.shape());
            return Err(Init::refuse("ConstantPad", reason));
        };
        let padding = [&vec![(0, 0); lead][..], &self.padding].concat();
        x.pad_with(padding, self.value)
    }
}
