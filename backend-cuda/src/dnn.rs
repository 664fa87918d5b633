//! cuDNN, loaded at run time: convolutions and their gradients.
//!
//! A device without the library, or a convolution the library has nothing for, is no error: the call
//! is not offered and generated code computes it. `f32` is computed in `f32`, never in the shorter
//! `tf32`; halves are multiplied exactly and summed in `f32`. What depends on chance, or transforms
//! tiles, is not used.
//!
//! The library's own heuristic lists ways to compute a convolution, the best first; of those that keep
//! to this and need no more memory than the tensors the first is taken, or one that the tuner asks for.
//! `ZYX_CUDNN` names the library's file or folder; set to nothing it turns the library off.

use crate::driver::{Context, Stream};
use crate::library::{self, Names};
use crate::sys::{call, functions};
use cudarc::cudnn::sys::{
    self as dnn, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Kind,
    cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t as What, cudnnBackendHeurMode_t as Mode,
    cudnnBackendNumericalNote_t as Note, cudnnConvolutionMode_t, cudnnDataType_t, cudnnHandle_t,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::DType;
use zyx_core::hal::{ConvolutionAxis, ConvolutionSpec, Convolved};

/// Bytes of device memory that a convolution may use beside its tensors: so many, or so many times as
/// those, up to a limit. Tensors in another order lie there.
const WORKSPACE: usize = 256 << 20;
const TIMES: usize = 4;
const MOST_WORKSPACE: usize = 2 << 30;
/// Most ways of the library's list that are looked at.
const MOST_WAYS: usize = 128;
/// Most notes that the library has on a way.
const MOST_NOTES: usize = 32;

// In every version since cuDNN 8.0.
functions! {
    cudnnCreate cudnnSetStream cudnnBackendCreateDescriptor cudnnBackendDestroyDescriptor
    cudnnBackendSetAttribute cudnnBackendGetAttribute cudnnBackendFinalize cudnnBackendExecute
}

/// The library, which stays loaded, with a handle for one device.
#[derive(Debug)]
pub(crate) struct Dnn {
    functions: Functions,
    /// Has a stream, so one thread uses it at a time.
    handle: Mutex<Handle>,
}

#[derive(Debug)]
struct Handle(cudnnHandle_t);

// SAFETY: a handle may be used by any thread, one at a time (cuDNN, thread safety).
unsafe impl Send for Handle {}

const NAMES: Names = Names {
    file: "libcudnn.so",
    versions: &["", ".9", ".8"],
    variable: "ZYX_CUDNN",
    wheels: &["nvidia/cudnn/lib"],
    before: None,
};

impl Dnn {
    /// The library for the device of a context, if there is one.
    pub(crate) fn load(context: &Context) -> Option<Arc<Dnn>> {
        if is_off() {
            return None;
        }
        context.bind().ok()?;
        let found = library::find(NAMES, |library| {
            let (functions, missing) = Functions::of(library);
            library::complete(&missing, "cuDNN 8 or later")?;
            let mut handle = ptr::null_mut();
            // SAFETY: a context is current; the place is for the result.
            match unsafe { call!(functions, dnn::cudnnCreate(&mut handle)) } {
                0 => Ok(Dnn { functions, handle: Mutex::new(Handle(handle)) }),
                status => Err(format!("cudnnCreate: status {status}")),
            }
        });
        match found {
            Ok((dnn, path)) => {
                log::debug!(target: "zyx::cuda", "cuDNN: {}", path.display());
                Some(Arc::new(dnn))
            }
            Err(tried) => {
                log::info!(
                    target: "zyx::cuda",
                    "no cuDNN can be used, convolutions are generated code; install it (pip install \
                     nvidia-cudnn-cu13) or name its file in ZYX_CUDNN. Tried:\n{tried}"
                );
                None
            }
        }
    }
}

/// Whether the user wants to do without the library.
pub(crate) fn is_off() -> bool {
    std::env::var_os(NAMES.variable).is_some_and(|path| path.is_empty())
}

/// An object of the library that is described by attributes.
#[derive(Debug)]
struct Descriptor {
    raw: cudnnBackendDescriptor_t,
    dnn: Arc<Dnn>,
}

// SAFETY: plain data of the library, not changed once it is finished.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once.
        let _ = unsafe { call!(self.dnn.functions, dnn::cudnnBackendDestroyDescriptor(self.raw)) };
    }
}

impl Descriptor {
    fn new(dnn: &Arc<Dnn>, what: What) -> Option<Descriptor> {
        let mut raw = ptr::null_mut();
        // SAFETY: the place is for the result.
        let status =
            unsafe { call!(dnn.functions, dnn::cudnnBackendCreateDescriptor(what, &mut raw)) };
        (status == 0).then(|| Descriptor { raw, dnn: Arc::clone(dnn) })
    }

    fn set<T: Copy>(&self, name: Name, kind: Kind, values: &[T]) -> Option<()> {
        let (count, from) = (values.len() as i64, values.as_ptr().cast());
        // SAFETY: a valid object and so many values of the kind, which are copied; the library refuses
        // a kind that is not the attribute's.
        let status = unsafe {
            call!(
                self.dnn.functions,
                dnn::cudnnBackendSetAttribute(self.raw, name, kind, count, from)
            )
        };
        (status == 0).then_some(())
    }

    fn set_object(&self, name: Name, object: &Descriptor) -> Option<()> {
        self.set(name, Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR, &[object.raw])
    }

    fn set_numbers(&self, name: Name, numbers: &[i64]) -> Option<()> {
        self.set(name, Kind::CUDNN_TYPE_INT64, numbers)
    }

    /// Reads as many values as there are, at most as many as there is room for; how many there are.
    fn get<T: Copy>(&self, name: Name, kind: Kind, values: &mut [T]) -> Option<usize> {
        let (mut count, room) = (0, values.len() as i64);
        let to = if values.is_empty() { ptr::null_mut() } else { values.as_mut_ptr().cast() };
        // SAFETY: a valid object and room for so many values of the kind.
        let status = unsafe {
            call!(
                self.dnn.functions,
                dnn::cudnnBackendGetAttribute(self.raw, name, kind, room, &mut count, to)
            )
        };
        usize::try_from(count).ok().filter(|_| status == 0)
    }

    fn finish(self) -> Option<Descriptor> {
        // SAFETY: a valid object.
        let status = unsafe { call!(self.dnn.functions, dnn::cudnnBackendFinalize(self.raw)) };
        (status == 0).then_some(self)
    }
}

/// A convolution with a way chosen.
#[derive(Debug)]
pub(crate) struct Convolution {
    dnn: Arc<Dnn>,
    plan: Descriptor,
    /// What tells the way from others.
    pub(crate) way: String,
    /// What the plan is made of.
    _parts: Vec<Descriptor>,
    workspace: usize,
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
            let mut inner = 1;
            for (len, stride) in lens.iter().zip(&mut strides).rev() {
                if *len == 1 {
                    *stride = inner;
                }
                inner = *stride * len;
            }
            let numbers = |list: Vec<usize>| -> Option<Vec<i64>> {
                list.into_iter().map(|n| i64::try_from(n).ok()).collect()
            };
            tensors.push((numbers(lens)?, numbers(strides)?));
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

/// An element type as the library names it.
fn element(dtype: DType) -> Option<cudnnDataType_t> {
    match dtype {
        DType::F32 => Some(cudnnDataType_t::CUDNN_DATA_FLOAT),
        DType::F16 => Some(cudnnDataType_t::CUDNN_DATA_HALF),
        DType::BF16 => Some(cudnnDataType_t::CUDNN_DATA_BFLOAT16),
        _ => None,
    }
}

/// Whether results of a way are sums in `f32`, the same each time. Transforms of whole tiles, Fourier's and
/// Winograd's, spread one infinite or large element over results that do not depend on it.
fn is_exact(notes: &[u32], dtype: DType) -> bool {
    let refused = [
        Note::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC,
        Note::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
        Note::CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION,
        Note::CUDNN_NUMERICAL_NOTE_FFT,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
        Note::CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13,
    ];
    // Of `f32` these are products of `tf32`.
    let shorter = (dtype == DType::F32).then_some(Note::CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
    !refused.into_iter().chain(shorter).any(|note| notes.contains(&(note as u32)))
}

impl Convolution {
    /// The convolution on this device, if the library has so many ways, and one more, to compute it.
    pub(crate) fn new(
        dnn: &Arc<Dnn>,
        spec: &ConvolutionSpec,
        mut way: usize,
    ) -> Option<Convolution> {
        let shapes = Shapes::of(spec)?;
        let offsets: Vec<usize> =
            (0..3).map(|role| spec.offsets[role] * spec.dtype(role).size()).collect();
        let mut tensors = Vec::new();
        for (role, (lengths, strides)) in shapes.tensors.iter().enumerate() {
            let tensor = Descriptor::new(dnn, What::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
            let dtype = element(spec.dtype(role))?;
            let align = 1i64 << (offsets[role] | 16).trailing_zeros();
            tensor.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Kind::CUDNN_TYPE_DATA_TYPE, &[dtype])?;
            tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, lengths)?;
            tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_STRIDES, strides)?;
            tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, &[role as i64 + 1])?;
            tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[align])?;
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
        let modes = [Mode::CUDNN_HEUR_MODE_A, Mode::CUDNN_HEUR_MODE_FALLBACK];
        let is_first = way == 0;
        let mut found = modes
            .into_iter()
            .filter_map(|mode| plan(dnn, &graph, mode, spec.operands, room, &mut way));
        let Some((plan, config, workspace, way)) = found.next() else {
            if is_first {
                log::debug!(target: "zyx::cuda", "cuDNN has nothing for {spec:?}");
            }
            return None;
        };
        let (operands, computed) = spec.roles();
        let mut arguments = [0; 3];
        for (at, role) in operands.into_iter().chain([computed]).enumerate() {
            arguments[role] = at;
        }
        let offsets = offsets.try_into().ok()?;
        tensors.extend([graph, config]);
        let dnn = Arc::clone(dnn);
        Some(Convolution { dnn, plan, way, _parts: tensors, workspace, offsets, arguments })
    }

    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Queues the convolution on its arguments.
    ///
    /// # Safety
    /// The addresses are of memory as long as the convolution says, and of [`workspace`] bytes,
    /// that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        arguments: [u64; 3],
        workspace: u64,
    ) -> Result<(), String> {
        let place = |address: u64| -> *mut c_void { ptr::without_provenance_mut(address as usize) };
        let tensors = [0, 1, 2]
            .map(|role| place(arguments[self.arguments[role]] + self.offsets[role] as u64));
        let pack = || {
            let pack = Descriptor::new(&self.dnn, What::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
            let pointer = Kind::CUDNN_TYPE_VOID_PTR;
            pack.set_numbers(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &[1, 2, 3])?;
            pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointer, &tensors)?;
            pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, pointer, &[place(workspace)])?;
            pack.finish()
        };
        let Some(pack) = pack() else {
            return Err("cuDNN refuses the addresses of a convolution".to_owned());
        };
        let handle = self.dnn.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let functions = &self.dnn.functions;
        // SAFETY: a valid handle, which this thread has alone, and a valid stream.
        let mut status =
            unsafe { call!(functions, dnn::cudnnSetStream(handle.0, stream.raw.cast())) };
        if status == 0 {
            // SAFETY: finished objects; the rest is the caller's promise.
            status = unsafe {
                call!(functions, dnn::cudnnBackendExecute(handle.0, self.plan.raw, pack.raw))
            };
        }
        if status != 0 {
            return Err(format!(
                "cudnnBackendExecute of cuDNN: status {status}; another library can be named in \
                 ZYX_CUDNN, and an empty ZYX_CUDNN does without"
            ));
        }
        stream.traffic.submitted();
        Ok(())
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
    let operation = operation.finish()?;
    let graph = Descriptor::new(dnn, What::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
    graph.set_object(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, &operation)?;
    let handle = dnn.handle.lock().unwrap_or_else(PoisonError::into_inner).0;
    graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Kind::CUDNN_TYPE_HANDLE, &[handle])?;
    graph.finish()
}

/// A way that the library lists for a graph, keeps to its dtype, and needs no more than so many bytes: the
/// one after so many others, which are taken off `skipped`. With its configuration, the bytes it needs, and
/// what tells it from others.
fn plan(
    dnn: &Arc<Dnn>,
    graph: &Descriptor,
    mode: Mode,
    dtype: DType,
    room: usize,
    skipped: &mut usize,
) -> Option<(Descriptor, Descriptor, usize, String)> {
    let object = Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR;
    let list = Descriptor::new(dnn, What::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
    list.set_object(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)?;
    list.set(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Kind::CUDNN_TYPE_HEUR_MODE, &[mode])?;
    let list = list.finish()?;
    let none: &mut [cudnnBackendDescriptor_t] = &mut [];
    let count = list.get(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, object, none)?;
    let new = |_| Descriptor::new(dnn, What::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    let ways: Vec<Descriptor> = (0..count.min(MOST_WAYS)).map(new).collect::<Option<_>>()?;
    let mut raw: Vec<_> = ways.iter().map(|way| way.raw).collect();
    let count = list.get(Name::CUDNN_ATTR_ENGINEHEUR_RESULTS, object, &mut raw)?;
    let handle = dnn.handle.lock().unwrap_or_else(PoisonError::into_inner).0;
    ways.into_iter().take(count).enumerate().find_map(|(rank, way)| {
        let engine = Descriptor::new(dnn, What::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
        way.get(Name::CUDNN_ATTR_ENGINECFG_ENGINE, object, &mut [engine.raw])?;
        let mut notes = [u32::MAX; MOST_NOTES];
        let kind = Kind::CUDNN_TYPE_NUMERICAL_NOTE;
        let count = engine.get(Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, kind, &mut notes)?;
        if count > MOST_NOTES || !is_exact(&notes[..count], dtype) {
            return None;
        }
        let plan = Descriptor::new(dnn, What::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        plan.set(Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Kind::CUDNN_TYPE_HANDLE, &[handle])?;
        plan.set_object(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &way)?;
        let plan = plan.finish()?;
        let mut bytes = [0i64];
        let kind = Kind::CUDNN_TYPE_INT64;
        plan.get(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, kind, &mut bytes)?;
        let mut number = [0i64];
        engine.get(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, kind, &mut number)?;
        log::debug!(
            target: "zyx::cuda",
            "cuDNN: way {rank}, engine {}, {} bytes of at most {room}",
            number[0],
            bytes[0]
        );
        let workspace = usize::try_from(bytes[0]).ok().filter(|&bytes| bytes <= room)?;
        if *skipped > 0 {
            *skipped -= 1;
            return None;
        }
        Some((plan, way, workspace, format!("{mode:?} {rank} engine {}", number[0])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn what_rounds_otherwise_or_depends_on_chance_is_refused() {
        use Note as N;
        let tensor_cores = N::CUDNN_NUMERICAL_NOTE_TENSOR_CORE as u32;
        assert!(is_exact(&[], DType::F32) && is_exact(&[tensor_cores], DType::BF16));
        assert!(!is_exact(&[tensor_cores], DType::F32));
        let chance = N::CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC as u32;
        assert!(!is_exact(&[chance], DType::BF16) && !is_exact(&[chance], DType::F32));
        assert!(!is_exact(&[N::CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS as u32], DType::F16));
    }
}
