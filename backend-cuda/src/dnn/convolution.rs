//! Convolutions and their gradients in cuDNN.

use super::{Descriptor, Dnn, Kind, Name, Plan, WORKSPACE, What, element, give_strides, place};
use crate::driver::Stream;
use cudarc::cudnn::sys::{cudnnConvolutionMode_t, cudnnDataType_t};
use std::sync::Arc;
use zyx_core::hal::{ConvolutionAxis, ConvolutionSpec, Convolved};

/// Names of image, kernel and result.
const NAMES: [i64; 3] = [1, 2, 3];
/// Bytes of device memory that a convolution may use beside its tensors: [`WORKSPACE`], or so many times
/// as those, up to a limit. Tensors in another order lie there.
const TIMES: usize = 4;
const MOST_WORKSPACE: usize = 2 << 30;

/// A convolution with a way chosen.
#[derive(Debug)]
pub(crate) struct Convolution {
    plan: Plan,
    /// Bytes before the first elements of image, kernel and result, and their places among the arguments.
    offsets: [usize; 3],
    arguments: [usize; 3],
}

/// Lengths and strides of image, kernel and result as the library takes them, the axes, and the zeros
/// before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shapes {
    tensors: [(Vec<i64>, Vec<i64>); 3],
    axes: Vec<ConvolutionAxis>,
    padding: [Vec<i64>; 2],
}

impl Shapes {
    /// `None` if groups and channels are no dimension of their product.
    fn of(spec: &ConvolutionSpec) -> Option<Shapes> {
        let mut axes = spec.axes.clone();
        let mut strides = spec.strides.clone();
        if axes.len() == 1 {
            // The library knows no convolutions along one axis.
            let one = ConvolutionAxis {
                image: 1,
                kernel: 1,
                result: 1,
                stride: 1,
                dilation: 1,
                before: 0,
            };
            axes.insert(0, one);
            strides.iter_mut().for_each(|strides| strides.insert(3, 0));
        }
        let lengths = ConvolutionSpec { axes: axes.clone(), ..spec.clone() }.lengths();
        let mut tensors = Vec::new();
        for (role, (lens, strides)) in lengths.iter().zip(&strides).enumerate() {
            let (mut lens, mut strides) = (lens.clone(), strides.clone());
            // Groups are part of the next dimension: channels of images and results; of kernels outputs.
            let (group, next) = if role == 1 { (0, 1) } else { (1, 2) };
            if lens[group] > 1 && lens[next] > 1 && strides[group] != strides[next] * lens[next] {
                return None;
            }
            if lens[next] == 1 {
                strides[next] = strides[group];
            }
            lens[next] *= lens[group];
            lens.remove(group);
            strides.remove(group);
            let numbers = |list: Vec<usize>| -> Option<Vec<i64>> {
                list.into_iter().map(|n| i64::try_from(n).ok()).collect()
            };
            tensors.push((numbers(lens)?, numbers(strides)?));
        }
        // Of a tensor that could be either, channels come last if those of another one do.
        let plain: Vec<usize> = (0..2 + axes.len()).collect();
        let last: Vec<usize> = plain.iter().copied().filter(|&i| i != 1).chain([1]).collect();
        let is_last = !tensors.iter().all(|tensor| falls(tensor, &plain));
        for tensor in &mut tensors {
            let order = match is_last && falls(tensor, &last) {
                true => &last,
                false => &plain,
            };
            give_strides(&tensor.0, &mut tensor.1, order);
        }
        let mut padding: [Vec<i64>; 2] = Default::default();
        for axis in &axes {
            // As many zeros after it as before it, if that makes no other result.
            let reach = axis.dilation * (axis.kernel - 1) + 1;
            let windows = |after: usize| {
                let room = (axis.image + axis.before + after).checked_sub(reach);
                room.map_or(0, |room| room / axis.stride + 1)
            };
            let end = axis.stride * (axis.result - 1) + reach;
            let least = end.saturating_sub(axis.image + axis.before);
            let after = [axis.before, least].into_iter().find(|&n| windows(n) == axis.result)?;
            padding[0].push(i64::try_from(axis.before).ok()?);
            padding[1].push(i64::try_from(after).ok()?);
        }
        Some(Shapes { tensors: tensors.try_into().ok()?, axes, padding })
    }
}

/// Whether strides of longer dimensions than 1 fall in this order.
fn falls((lengths, strides): &(Vec<i64>, Vec<i64>), order: &[usize]) -> bool {
    let long = order.iter().filter(|&&i| lengths[i] != 1).map(|&i| strides[i]);
    long.is_sorted_by(|outer, inner| outer >= inner)
}

impl Convolution {
    /// The convolution on this device, if the library has so many ways, and one more, to compute it.
    pub(crate) fn new(dnn: &Arc<Dnn>, spec: &ConvolutionSpec, way: usize) -> Option<Convolution> {
        // Of 82 random ones in any order cuDNN 9.19 computed something else for 20 on an H100, without an error.
        // All of those were in other orders; lengths of 1 had strides then that did not fit.
        if !spec.is_ordered() {
            return None;
        }
        let shapes = Shapes::of(spec)?;
        let offsets: Vec<usize> =
            (0..3).map(|role| spec.offsets[role] * spec.dtype(role).size()).collect();
        let mut tensors = Vec::new();
        for (role, (lengths, strides)) in shapes.tensors.iter().enumerate() {
            let dtype = element(spec.dtype(role))?;
            let align = 1i64 << (offsets[role] | 16).trailing_zeros();
            let tensor = super::tensor(dnn, NAMES[role], lengths, strides, dtype, align)?;
            tensors.push(tensor.finish()?);
        }
        let Some(graph) = graph(dnn, spec, &shapes, &tensors) else {
            log::debug!(target: "zyx::cuda", "cuDNN refuses {spec:?}");
            return None;
        };
        let numbers = |role: usize| -> Option<usize> {
            spec.span(role)?.checked_mul(spec.dtype(role).size())
        };
        let bytes = numbers(0)? + numbers(1)? + numbers(2)?;
        let room = bytes.saturating_mul(TIMES).clamp(WORKSPACE, MOST_WORKSPACE);
        let Some(plan) = Plan::of(dnn, graph, tensors, (spec.operands, room), way) else {
            if way == 0 {
                log::debug!(target: "zyx::cuda", "cuDNN has nothing for {spec:?}");
            }
            return None;
        };
        let (operands, computed) = spec.roles();
        let mut arguments = [0; 3];
        for (at, role) in operands.into_iter().chain([computed]).enumerate() {
            arguments[role] = at;
        }
        Some(Convolution { plan, offsets: offsets.try_into().ok()?, arguments })
    }

    /// What tells its way from others.
    pub(crate) fn way(&self) -> &str {
        &self.plan.name
    }

    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        self.plan.workspace
    }

    /// Queues the convolution on its arguments.
    ///
    /// # Safety
    /// The addresses are three, of memory as long as the convolution says, and of [`workspace`] bytes,
    /// that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        arguments: &[u64],
        workspace: u64,
    ) -> Result<(), String> {
        let places = [0, 1, 2]
            .map(|role| place(arguments[self.arguments[role]] + self.offsets[role] as u64));
        // SAFETY: the caller's promise.
        unsafe { self.plan.execute(stream, &NAMES, &places, workspace) }
    }
}

/// The graph of one operation on image, kernel and result.
fn graph(
    dnn: &Arc<Dnn>,
    spec: &ConvolutionSpec,
    shapes: &Shapes,
    tensors: &[Descriptor],
) -> Option<Descriptor> {
    let axes = |f: fn(&ConvolutionAxis) -> usize| -> Vec<i64> {
        shapes.axes.iter().map(|axis| f(axis) as i64).collect()
    };
    let slide = Descriptor::new(dnn, What::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let (sums, mode) =
        (cudnnDataType_t::CUDNN_DATA_FLOAT, cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION);
    let mode_kind = Kind::CUDNN_TYPE_CONVOLUTION_MODE;
    slide.set_numbers(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &[shapes.axes.len() as i64])?;
    slide.set(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Kind::CUDNN_TYPE_DATA_TYPE, &[sums])?;
    slide.set(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, mode_kind, &[mode])?;
    slide.set_numbers(Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &shapes.padding[0])?;
    slide.set_numbers(Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &shapes.padding[1])?;
    slide.set_numbers(Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, &axes(|axis| axis.dilation))?;
    slide.set_numbers(Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &axes(|axis| axis.stride))?;
    let slide = slide.finish()?;
    let (what, names, [alpha, beta]) = match spec.computes {
        Convolved::Result => (
            What::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
            ],
        ),
        Convolved::Image => (
            What::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
            ],
        ),
        Convolved::Kernel => (
            What::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            ],
            [
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
            ],
        ),
    };
    let operation = Descriptor::new(dnn, what)?;
    for (name, object) in names.into_iter().zip(tensors.iter().chain([&slide])) {
        operation.set_object(name, object)?;
    }
    operation.set(alpha, Kind::CUDNN_TYPE_FLOAT, &[1f32])?;
    operation.set(beta, Kind::CUDNN_TYPE_FLOAT, &[0f32])?;
    super::graph_of(dnn, &[operation.finish()?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use zyx_core::DType;

    fn spec() -> ConvolutionSpec {
        let axis = |image, kernel, result, stride, before| ConvolutionAxis {
            image,
            kernel,
            result,
            stride,
            dilation: 1,
            before,
        };
        ConvolutionSpec {
            computes: Convolved::Result,
            operands: DType::F32,
            computed: DType::F32,
            images: 2,
            groups: 3,
            channels: 4,
            outputs: 1,
            axes: vec![axis(8, 3, 4, 2, 1), axis(8, 3, 8, 1, 1)],
            strides: [vec![768, 256, 64, 8, 1], vec![36, 0, 9, 3, 1], vec![96, 32, 0, 8, 1]],
            offsets: [0; 3],
        }
    }

    #[test]
    fn groups_are_channels_of_the_library() {
        let shapes = Shapes::of(&spec()).unwrap();
        assert_eq!(shapes.tensors[0], (vec![2, 12, 8, 8], vec![768, 64, 8, 1]));
        assert_eq!(shapes.tensors[1], (vec![3, 4, 3, 3], vec![36, 9, 3, 1]));
        assert_eq!(shapes.tensors[2], (vec![2, 3, 4, 8], vec![96, 32, 8, 1]));
        let mut apart = spec();
        apart.strides[0][1] = 300;
        assert_eq!(Shapes::of(&apart), None);
    }

    #[test]
    fn zeros_are_as_many_on_both_sides_where_results_are_the_same() {
        // The last window of stride 2 does not reach the zeros after the image.
        assert_eq!(Shapes::of(&spec()).unwrap().padding, [vec![1, 1], vec![1, 1]]);
        let mut uneven = spec();
        uneven.axes[1].result = 9;
        assert_eq!(Shapes::of(&uneven).unwrap().padding, [vec![1, 1], vec![1, 2]]);
    }

    #[test]
    fn lengths_of_one_lie_where_channels_come_last_elsewhere() {
        let mut spec = spec();
        (spec.images, spec.groups, spec.outputs) = (1, 1, 5);
        spec.axes[1] =
            ConvolutionAxis { image: 1, kernel: 1, result: 1, stride: 1, ..spec.axes[1] };
        spec.axes[1].before = 0;
        spec.strides = [vec![0, 0, 1, 4, 0], vec![0, 12, 1, 4, 0], vec![0, 0, 1, 5, 0]];
        let shapes = Shapes::of(&spec).unwrap();
        assert_eq!(shapes.tensors[0], (vec![1, 4, 8, 1], vec![32, 1, 4, 4]));
        assert_eq!(shapes.tensors[1], (vec![5, 4, 3, 1], vec![12, 1, 4, 4]));
        assert_eq!(shapes.tensors[2], (vec![1, 5, 4, 1], vec![20, 1, 5, 5]));
    }

    #[test]
    fn one_axis_is_two() {
        let mut one = spec();
        one.axes.remove(0);
        for strides in &mut one.strides {
            strides.remove(3);
        }
        let shapes = Shapes::of(&one).unwrap();
        assert_eq!(shapes.tensors[0], (vec![2, 12, 1, 8], vec![768, 64, 8, 1]));
        assert_eq!((shapes.axes.len(), &shapes.padding), (2, &[vec![0, 1], vec![0, 1]]));
    }
}
