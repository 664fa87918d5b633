//! Pooling: windows over the last axes, each made one element.

use crate::{Forward, Init, Module, Path, Visitor};
use zyx_core::{Pool2d, Result, Tensor};

/// The largest element of each window over the last two axes.
#[derive(Clone, Copy, Debug, Module)]
pub struct MaxPool2d(pub Pool2d);

impl Forward for MaxPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.max_pool2d(self.0)
    }
}

/// The mean of each window over the last two axes.
#[derive(Clone, Copy, Debug, Module)]
pub struct AvgPool2d(pub Pool2d);

impl Forward for AvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.avg_pool2d(self.0)
    }
}

/// The windows of a pooling over one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Module)]
pub struct Window1d {
    /// Extent of a window.
    pub kernel: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Elements added on both sides, at most half a window.
    pub padding: usize,
    /// Distance between elements of a window.
    pub dilation: usize,
}

impl Window1d {
    /// Windows that tile the input: stride equal to the kernel.
    pub fn new(kernel: usize) -> Window1d {
        Window1d { kernel, stride: kernel, padding: 0, dilation: 1 }
    }

    /// Over the last of two axes, the other one untouched.
    fn flat(self) -> Pool2d {
        let mut pool = Pool2d::new([1, self.kernel]);
        pool.stride = [1, self.stride];
        pool.padding = [0, self.padding];
        pool.dilation = [1, self.dilation];
        pool
    }
}

/// The largest element of each window over the last axis.
#[derive(Clone, Copy, Debug, Module)]
pub struct MaxPool1d(pub Window1d);

impl Forward for MaxPool1d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.unsqueeze(-2)?.max_pool2d(self.0.flat())?.squeeze(-2)
    }
}

/// The mean of each window over the last axis; what is padded counts.
#[derive(Clone, Copy, Debug, Module)]
pub struct AvgPool1d(pub Window1d);

impl Forward for AvgPool1d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.unsqueeze(-2)?.avg_pool2d(self.0.flat())?.squeeze(-2)
    }
}

/// The root of the sum of powers over windows of the last two axes: `(sum x^p)^(1/p)`.
#[derive(Clone, Copy, Debug, Module)]
pub struct LpPool2d {
    /// The power.
    pub p: f64,
    /// The windows.
    pub pool: Pool2d,
}

impl Forward for LpPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let count = self.pool.kernel[0] as f64 * self.pool.kernel[1] as f64;
        x.pow(self.p)?.avg_pool2d(self.pool)?.mul(count)?.relu().pow(1.0 / self.p)
    }
}

/// Means over the last two axes, which become this.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveAvgPool2d(pub [usize; 2]);

/// Means over the last axis, which becomes this.
#[derive(Clone, Copy, Debug)]
pub struct AdaptiveAvgPool1d(pub usize);

/// The mean over the last two axes, which go.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAvgPool2d;

macro_rules! no_parameters {
    ($($name:ident)*) => {$(
        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }
    )*};
}

no_parameters! { AdaptiveAvgPool2d AdaptiveAvgPool1d GlobalAvgPool2d }

impl Forward for AdaptiveAvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.adaptive_avg_pool2d(self.0)
    }
}

impl Forward for AdaptiveAvgPool1d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        if x.rank() == 0 {
            return Err(Init::refuse("AdaptiveAvgPool1d", "needs an axis".to_owned()));
        }
        x.unsqueeze(-2)?.adaptive_avg_pool2d([1, self.0])?.squeeze(-2)
    }
}

impl Forward for GlobalAvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.global_avg_pool2d()
    }
}
