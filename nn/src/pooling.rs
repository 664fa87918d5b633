//! Pooling: windows over the last axes, each made one element, and back.

use crate::{Forward, Module, Path, Visitor};
use zyx_core::{Pool, Result, Tensor};

macro_rules! windows {
    ($($(#[$doc:meta])* $name:ident $axes:literal $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub Pool<$axes>);

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$method(self.0)
            }
        }
    )*};
}

windows! {
    /// The largest element of each window over the last axis.
    MaxPool1d 1 max_pool1d;
    /// The largest element of each window over the last two axes.
    MaxPool2d 2 max_pool2d;
    /// The largest element of each window over the last three axes.
    MaxPool3d 3 max_pool3d;
    /// The mean of each window over the last axis.
    AvgPool1d 1 avg_pool1d;
    /// The mean of each window over the last two axes.
    AvgPool2d 2 avg_pool2d;
    /// The mean of each window over the last three axes.
    AvgPool3d 3 avg_pool3d;
    /// Windows of the last two axes of `[n, channels, height, width]` as columns `[n, channels
    /// kernel, positions]`.
    Unfold 2 im2col;
}

macro_rules! powers {
    ($($name:ident $axes:literal $method:ident;)*) => {$(
        /// The root of the sum of powers over windows of the last axes: `(sum x^p)^(1/p)`.
        #[derive(Clone, Copy, Debug)]
        pub struct $name {
            /// The power.
            pub p: f64,
            /// The windows.
            pub pool: Pool<$axes>,
        }

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$method(self.p, self.pool)
            }
        }
    )*};
}

powers! {
    LpPool1d 1 lp_pool1d;
    LpPool2d 2 lp_pool2d;
    LpPool3d 3 lp_pool3d;
}

macro_rules! adaptive {
    ($($(#[$doc:meta])* $name:ident $axes:literal $method:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub [usize; $axes]);

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl Forward for $name {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                x.$method(self.0)
            }
        }
    )*};
}

adaptive! {
    /// Means over the last axis, which becomes this.
    AdaptiveAvgPool1d 1 adaptive_avg_pool1d;
    /// Means over the last two axes, which become this.
    AdaptiveAvgPool2d 2 adaptive_avg_pool2d;
    /// Means over the last three axes, which become this.
    AdaptiveAvgPool3d 3 adaptive_avg_pool3d;
    /// Largest elements over the last axis, which becomes this.
    AdaptiveMaxPool1d 1 adaptive_max_pool1d;
    /// Largest elements over the last two axes, which become this.
    AdaptiveMaxPool2d 2 adaptive_max_pool2d;
    /// Largest elements over the last three axes, which become this.
    AdaptiveMaxPool3d 3 adaptive_max_pool3d;
}

/// The mean over the last two axes, which go.
#[derive(Clone, Copy, Debug)]
pub struct GlobalAvgPool2d;

impl Module for GlobalAvgPool2d {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for GlobalAvgPool2d {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.global_avg_pool2d()
    }
}

/// Columns `[n, channels kernel, positions]` added up where their windows lie: undoes [`Unfold`]
/// but for the sums.
#[derive(Clone, Copy, Debug)]
pub struct Fold {
    /// The extents of the image.
    pub output: [usize; 2],
    /// The windows.
    pub windows: Pool<2>,
}

impl Module for Fold {
    fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
}

impl Forward for Fold {
    #[track_caller]
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.col2im(self.output, self.windows)
    }
}

macro_rules! unpool {
    ($($name:ident $axes:literal $method:ident;)*) => {$(
        /// Puts the elements that a pooling with indices kept back to their places, zeros elsewhere.
        #[derive(Clone, Copy, Debug)]
        pub struct $name(
            /// The extents of the result.
            pub [usize; $axes],
        );

        impl Module for $name {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }

        impl $name {
            /// The elements at the places that `indices`, the second result of the pooling, tells.
            ///
            /// ```
            /// # use zyx::nn::MaxUnpool1d;
            /// # use zyx::{Pool, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// let x = Tensor::new([[[1f32, 5.0, 2.0, 3.0]]], &device)?;
            /// let (y, at) = x.max_pool1d_with_indices(Pool::new([2]))?;
            /// assert_eq!(MaxUnpool1d([4]).apply(&y, &at)?.to_vec::<f32>()?, [0.0, 5.0, 0.0, 3.0]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the shapes do not fit.
            #[track_caller]
            pub fn apply(&self, x: &Tensor, indices: &Tensor) -> Result<Tensor> {
                x.$method(indices, self.0)
            }
        }
    )*};
}

unpool! {
    MaxUnpool1d 1 max_unpool1d;
    MaxUnpool2d 2 max_unpool2d;
    MaxUnpool3d 3 max_unpool3d;
}
