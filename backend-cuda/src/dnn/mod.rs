//! cuDNN, loaded at run time: convolutions and their gradients, and attention.
//!
//! A device without the library, or a call that the library has nothing for, is no error: it is not
//! offered and generated code computes it. `f32` is computed in `f32`, never in the shorter
//! `tf32`; halves are multiplied exactly and summed in `f32`. What depends on chance, or transforms
//! tiles, is not used.
//!
//! The library's own heuristic lists ways to compute a graph of operations, the best first; of those
//! that keep to this and need no more memory than the tensors the first is taken, or one that the tuner
//! asks for. `ZYX_CUDNN` names the library's file or folder; set to nothing it turns the library off.

use crate::driver::{Context, Stream};
use crate::library::{self, Names};
use crate::sys::{call, functions};
use cudarc::cudnn::sys::{
    self as dnn, cudnnBackendAttributeName_t as Name, cudnnBackendAttributeType_t as Kind,
    cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t as What, cudnnBackendHeurMode_t as Mode,
    cudnnBackendNumericalNote_t as Note, cudnnDataType_t, cudnnHandle_t,
};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::DType;

mod attention;
mod convolution;

pub(crate) use attention::Attention;
pub(crate) use convolution::Convolution;

/// Bytes of device memory that any graph may use beside its tensors.
const WORKSPACE: usize = 256 << 20;
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
    file: if cfg!(windows) { "cudnn64_" } else { "libcudnn.so" },
    versions: if cfg!(windows) { &["9.dll", "8.dll"] } else { &["", ".9", ".8"] },
    variable: "ZYX_CUDNN",
    wheels: if cfg!(windows) { &["nvidia/cudnn/bin"] } else { &["nvidia/cudnn/lib"] },
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

/// A graph with a way to compute it chosen.
#[derive(Debug)]
struct Plan {
    dnn: Arc<Dnn>,
    plan: Descriptor,
    /// What the plan is made of.
    _parts: Vec<Descriptor>,
    /// What tells the way from others.
    name: String,
    workspace: usize,
}

impl Plan {
    /// The way after so many others for a graph of operands of a dtype, of those that need at most so many
    /// bytes, if there are so many.
    fn of(
        dnn: &Arc<Dnn>,
        graph: Descriptor,
        mut parts: Vec<Descriptor>,
        (dtype, room): (DType, usize),
        mut way: usize,
    ) -> Option<Plan> {
        let modes = [Mode::CUDNN_HEUR_MODE_A, Mode::CUDNN_HEUR_MODE_FALLBACK];
        let mut found =
            modes.into_iter().filter_map(|mode| find(dnn, &graph, mode, (dtype, room), &mut way));
        let (plan, config, workspace, name) = found.next()?;
        parts.extend([graph, config]);
        Some(Plan { dnn: Arc::clone(dnn), plan, _parts: parts, name, workspace })
    }

    /// Queues it on tensors and numbers with these names at these places.
    ///
    /// # Safety
    /// The places are of memory as long as the tensors of the graph, and of so many bytes of workspace,
    /// that stays until the stream is done and that nothing else uses meanwhile; those of numbers are the
    /// host's.
    unsafe fn execute(
        &self,
        stream: &Stream,
        names: &[i64],
        places: &[*mut c_void],
        workspace: u64,
    ) -> Result<(), String> {
        let pack = || {
            let pack = Descriptor::new(&self.dnn, What::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
            let pointer = Kind::CUDNN_TYPE_VOID_PTR;
            pack.set_numbers(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, names)?;
            pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointer, places)?;
            pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, pointer, &[place(workspace)])?;
            pack.finish()
        };
        let Some(pack) = pack() else {
            return Err("cuDNN refuses the addresses of its tensors".to_owned());
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

/// An address on the device, as the library takes it.
fn place(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

/// A tensor, not finished.
fn tensor(
    dnn: &Arc<Dnn>,
    name: i64,
    lengths: &[i64],
    strides: &[i64],
    dtype: cudnnDataType_t,
    align: i64,
) -> Option<Descriptor> {
    let tensor = Descriptor::new(dnn, What::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Kind::CUDNN_TYPE_DATA_TYPE, &[dtype])?;
    tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, lengths)?;
    tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_STRIDES, strides)?;
    tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, &[name])?;
    tensor.set_numbers(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[align])?;
    Some(tensor)
}

/// Gives lengths of 1 the stride that they have in memory without gaps, in this order of dimensions. Where they
/// do not fit those of the others, cuDNN takes the tensor for another one: gradients of images came out wrong.
fn give_strides(lengths: &[i64], strides: &mut [i64], order: &[usize]) {
    let mut inner = 1;
    for &i in order.iter().rev() {
        if lengths[i] == 1 {
            strides[i] = inner;
        }
        inner = strides[i] * lengths[i];
    }
}

/// Strides in memory without gaps.
fn contiguous(lengths: &[i64; 4]) -> [i64; 4] {
    let [_, b, c, d] = *lengths;
    [b * c * d, c * d, d, 1]
}

/// A graph of operations.
fn graph_of(dnn: &Arc<Dnn>, operations: &[Descriptor]) -> Option<Descriptor> {
    let graph = Descriptor::new(dnn, What::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
    let raw: Vec<_> = operations.iter().map(|operation| operation.raw).collect();
    let object = Kind::CUDNN_TYPE_BACKEND_DESCRIPTOR;
    graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, object, &raw)?;
    let handle = dnn.handle.lock().unwrap_or_else(PoisonError::into_inner).0;
    graph.set(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE, Kind::CUDNN_TYPE_HANDLE, &[handle])?;
    graph.finish()
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

/// A way that the library lists for a graph, that keeps to its dtype and needs no more than so many bytes:
/// the one after so many others, which are taken off `skipped`. With its configuration, the bytes it needs,
/// and what tells it from others.
fn find(
    dnn: &Arc<Dnn>,
    graph: &Descriptor,
    mode: Mode,
    (dtype, room): (DType, usize),
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
