//! Convolutions: sums of products over windows of an image that zeros surround.
//!
//! A convolution and both of its gradients relate the same three tensors, of which one is computed
//! from the other two. As a contraction of operands in memory each would need its zeros stored.

use crate::dtype::DType;

/// Which tensor of a convolution is computed from the other two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Convolved {
    /// The result, from image and kernel.
    Result,
    /// The image, from kernel and result: the gradient along it.
    Image,
    /// The kernel, from image and result: the gradient along it.
    Kernel,
}

/// One axis along which the kernel slides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvolutionAxis {
    /// Length of the image, without the zeros around it.
    pub image: usize,
    /// Length of the kernel.
    pub kernel: usize,
    /// Length of the result.
    pub result: usize,
    /// Distance between windows.
    pub stride: usize,
    /// Distance between elements of a window.
    pub dilation: usize,
    /// Zeros before the image. After it there are as many as the last window reaches over.
    pub before: usize,
}

/// `result[i, g, o, p] = sum over c, k of image[i, g, c, p * stride + k * dilation - before] *
/// kernel[g, o, c, k]`, with `p` and `k` a list of indices, one for each axis, and zeros outside of the
/// image; or the gradient along the image or the kernel, which sums the same products otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ConvolutionSpec {
    /// What is computed.
    pub computes: Convolved,
    /// Dtype of both operands. Products are summed in the dtype that sums of it have.
    pub operands: DType,
    /// Dtype of what is computed.
    pub computed: DType,
    /// Number of images.
    pub images: usize,
    /// Groups of channels that do not see one another.
    pub groups: usize,
    /// Channels of the image in a group.
    pub channels: usize,
    /// Channels of the result in a group.
    pub outputs: usize,
    /// One to three axes, outermost first.
    pub axes: Vec<ConvolutionAxis>,
    /// Strides, in elements, of image (images, groups, channels, axes), kernel (groups, outputs,
    /// channels, axes) and result (images, groups, outputs, axes). Of a length of 1 it is 0.
    pub strides: [Vec<usize>; 3],
    /// Elements before the first one of image, kernel and result.
    pub offsets: [usize; 3],
}

impl ConvolutionSpec {
    /// The lengths of image, kernel and result, in the order of their strides.
    pub fn lengths(&self) -> [Vec<usize>; 3] {
        [0, 1, 2].map(|role| self.lengths_of(role).collect())
    }

    /// The lengths of image, kernel or result.
    pub(crate) fn lengths_of(&self, role: usize) -> impl DoubleEndedIterator<Item = usize> + '_ {
        let (lead, along): (_, fn(&ConvolutionAxis) -> usize) = match role {
            0 => ([self.images, self.groups, self.channels], |axis| axis.image),
            1 => ([self.groups, self.outputs, self.channels], |axis| axis.kernel),
            _ => ([self.images, self.groups, self.outputs], |axis| axis.result),
        };
        lead.into_iter().chain(self.axes.iter().map(along))
    }

    /// Which of image, kernel and result are the operands, in the order of arguments, and which is
    /// computed.
    pub fn roles(&self) -> ([usize; 2], usize) {
        match self.computes {
            Convolved::Result => ([0, 1], 2),
            Convolved::Image => ([1, 2], 0),
            Convolved::Kernel => ([0, 2], 1),
        }
    }

    /// The dtype of image, kernel or result.
    pub fn dtype(&self, role: usize) -> DType {
        if role == self.roles().1 { self.computed } else { self.operands }
    }

    /// The elements that image, kernel or result reaches over in its buffer; `None` if no memory is so
    /// long.
    pub fn span(&self, role: usize) -> Option<usize> {
        if self.lengths_of(role).any(|len| len == 0) {
            return Some(0);
        }
        let first = self.offsets[role].checked_add(1)?;
        let mut dims = self.lengths_of(role).zip(&self.strides[role]);
        dims.try_fold(first, |end, (len, &stride)| end.checked_add((len - 1).checked_mul(stride)?))
    }

    /// Whether the dimensions of image, kernel and result, each, lie in memory in their order or with channels
    /// innermost, perhaps with gaps.
    pub fn is_ordered(&self) -> bool {
        (0..3).all(|role| {
            let mut channels = [false; 3];
            channels[if role == 1 { 2..3 } else { 1..3 }].fill(true);
            let is_channel = |i: usize| channels.get(i) == Some(&true);
            let dims = || self.lengths_of(role).zip(&self.strides[role]).enumerate();
            let long = || dims().filter(|(_, (len, _))| *len != 1).map(|(i, (_, &by))| (i, by));
            let strides = |channels: bool| long().filter(move |x| is_channel(x.0) == channels);
            let falls = |outer: &usize, inner: &usize| outer >= inner;
            long().map(|x| x.1).is_sorted_by(falls)
                || strides(false).chain(strides(true)).map(|x| x.1).is_sorted_by(falls)
        })
    }

    /// Multiply-adds, those with zeros included.
    pub fn multiplications(&self) -> f64 {
        let lead = [self.images, self.groups, self.channels, self.outputs];
        let axes = self.axes.iter().map(|axis| axis.result as f64 * axis.kernel as f64);
        lead.into_iter().map(|n| n as f64).chain(axes).product()
    }
}
