//! DLPack: memory shared with other libraries, in and out.
//!
//! The structures are those of the standard, versions 0.8 (unversioned) and 1.0. Out, a tensor on a
//! device that computes in host memory is shared, marked read-only; consumers of before version 1,
//! which know no such mark, and tensors of other devices get a copy. In, dense host memory is
//! shared: who goes on writing to it changes the tensor. What a structure says is checked before
//! memory is read: device, dtype, null pointers, extents and strides that reach beyond the address
//! space. Everything that is unsafe about it stands here.

use crate::data::{Host, Strided};
use crate::error::{caught, dtype_error, shape_error};
use crate::memory::Bytes;
use pyo3::exceptions::{PyBufferError, PyException, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;
use zyx::{DType, Device, Shape, Tensor};

/// The host, as DLPack numbers devices.
pub(crate) const HOST: (i32, i32) = (1, 0);

/// The host, and host memory that a GPU can read: CUDA's and ROCm's.
const READABLE: [i32; 3] = [1, 3, 11];

const PLAIN: &CStr = c"dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED: &CStr = c"used_dltensor";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
const READ_ONLY: u64 = 1;
const COPIED: u64 = 2;

#[repr(C)]
struct DlDataType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    ndim: i32,
    dtype: DlDataType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// What an exported structure points into.
struct Context {
    _bytes: Bytes,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

fn code(dtype: DType) -> DlDataType {
    let code = match dtype {
        DType::Bool => 6,
        DType::BF16 => 4,
        _ if dtype.is_float() => 2,
        _ if dtype.is_signed() => 0,
        _ => 1,
    };
    DlDataType { code, bits: dtype.bits() as u8, lanes: 1 }
}

fn dtype_of(code_of: &DlDataType) -> Option<DType> {
    let same = |d: &DType| {
        let known = code(*d);
        (known.code, known.bits, known.lanes) == (code_of.code, code_of.bits, code_of.lanes)
    };
    DType::ALL.iter().copied().find(same)
}

/// A capsule of the tensor.
pub(crate) fn export<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    max_version: Option<(u32, u32)>,
    device: Option<(i32, i32)>,
    copy: Option<bool>,
) -> PyResult<Bound<'py, PyAny>> {
    if device.is_some_and(|device| device != HOST) {
        return Err(PyBufferError::new_err("tensors are exported to the host (1, 0) only"));
    }
    let versioned = max_version.is_some_and(|(major, _)| major >= 1);
    if !versioned && copy == Some(false) {
        let text = "the memory of tensors never changes, which DLPack says from version 1 on: pass \
                    max_version=(1, 0), or let it copy";
        return Err(PyBufferError::new_err(text));
    }
    let bytes = Bytes::of(py, tensor, copy == Some(true) || !versioned)?;
    let copied = matches!(bytes, Bytes::Own(_));
    if copied && copy == Some(false) && tensor.numel() > 0 {
        let text = format!("{} does not share its memory with the host", tensor.device().spec());
        return Err(PyBufferError::new_err(text));
    }
    let shape: Vec<i64> = tensor.shape().iter().map(|&n| n as i64).collect();
    let strides = tensor.shape().strides().into_iter().map(|n| n as i64).collect();
    let address =
        if tensor.numel() == 0 { ptr::null_mut() } else { bytes.address() as *mut c_void };
    let context = Box::into_raw(Box::new(Context { _bytes: bytes, shape, strides }));
    // SAFETY: just made by `Box::into_raw`, and shared with nobody yet. The vectors stay where they
    // are until `free_context`.
    let parts = unsafe { &mut *context };
    let described = DlTensor {
        data: address,
        device_type: HOST.0,
        device_id: HOST.1,
        ndim: parts.shape.len() as i32,
        dtype: code(tensor.dtype()),
        shape: parts.shape.as_mut_ptr(),
        strides: parts.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = context.cast::<c_void>();
    let (pointer, name) = if versioned {
        let flags = if copied { COPIED } else { READ_ONLY };
        let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
        let managed =
            ManagedVersioned { major: 1, minor: 0, context, deleter, flags, tensor: described };
        (Box::into_raw(Box::new(managed)).cast::<c_void>(), VERSIONED)
    } else {
        let deleter = Some(delete as unsafe extern "C" fn(_));
        let managed = Managed { tensor: described, context, deleter };
        (Box::into_raw(Box::new(managed)).cast::<c_void>(), PLAIN)
    };
    // SAFETY: the pointer is not null, the name is static, and the destructor fits both. Without a
    // capsule nobody else has the pointer, whose name says what it is.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
        if capsule.is_null() {
            match versioned {
                true => delete_versioned(pointer.cast()),
                false => delete(pointer.cast()),
            }
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// # Safety
/// `managed` comes from [`export`] and is deleted once.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: both boxes were made by `export`, and a deleter is called once.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete`.
    unsafe {
        let managed = Box::from_raw(managed);
        drop(Box::from_raw(managed.context.cast::<Context>()));
    }
}

/// Frees what a capsule holds that nobody has consumed.
///
/// # Safety
/// Python calls it with a capsule of [`export`].
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: a capsule that is still named as it was made holds what its name says; consumers
    // rename it. No Python error may be left behind, and none of these sets one.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            delete(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// A consumed structure of either version; deleted when it is dropped.
enum Consumed {
    Plain(*mut Managed),
    Versioned(*mut ManagedVersioned),
}

// SAFETY: a consumed structure belongs to its holder; the standard lets a deleter be called on any
// thread.
unsafe impl Send for Consumed {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Consumed {}

impl Consumed {
    fn tensor(&self) -> &DlTensor {
        // SAFETY: the producer keeps the structure until its deleter is called, in `drop`.
        unsafe {
            match self {
                Consumed::Plain(managed) => &(**managed).tensor,
                Consumed::Versioned(managed) => &(**managed).tensor,
            }
        }
    }
}

impl Drop for Consumed {
    fn drop(&mut self) {
        // SAFETY: it was consumed, so the deleter is ours to call, once.
        unsafe {
            match *self {
                Consumed::Plain(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
                Consumed::Versioned(managed) => {
                    if let Some(deleter) = (*managed).deleter {
                        deleter(managed);
                    }
                }
            }
        }
    }
}

/// Dense host memory that a producer lends.
struct Lent {
    start: *const u8,
    bytes: usize,
    _from: Consumed,
}

// SAFETY: the memory belongs to the structure, which may be held and deleted on any thread.
unsafe impl Send for Lent {}
// SAFETY: shared, it is only read.
unsafe impl Sync for Lent {}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `import` checked that the structure describes this many dense bytes, of which there
        // is one, so that `start` is not null; the producer keeps them until the deleter is called.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

/// Takes the structure out of a producer's capsule.
fn consume(object: &Bound<'_, PyAny>, copy: Option<bool>) -> PyResult<Consumed> {
    let py = object.py();
    let mut elsewhere = None;
    if object.hasattr("__dlpack_device__")? {
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        elsewhere = Some(kind).filter(|kind| !READABLE.contains(kind));
    }
    let capsule = if object.hasattr("__dlpack__")? {
        let options = PyDict::new(py);
        options.set_item("max_version", (1, 0))?;
        if elsewhere.is_some() && copy != Some(false) {
            options.set_item("dl_device", HOST)?;
        }
        match (object.call_method("__dlpack__", (), Some(&options)), elsewhere) {
            // A producer that cannot copy to the host.
            (Err(error), Some(kind)) if error.is_instance_of::<PyException>(py) => {
                return Err(not_on_the_host(kind));
            }
            // Producers of before version 1.
            (Err(error), None) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            (other, _) => other?,
        }
    } else {
        object.clone()
    };
    let raw = capsule.as_ptr();
    // SAFETY: a valid capsule of one of these names holds the structure of that name, which begins
    // with its version if it has one; renaming it makes the structure ours.
    unsafe {
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr());
            let managed = managed.cast::<ManagedVersioned>();
            let (major, minor) = ((*managed).major, (*managed).minor);
            if major != 1 {
                let text = format!("DLPack of version {major}.{minor}, where 1 is understood");
                return Err(PyBufferError::new_err(text));
            }
            rename(py, raw, USED_VERSIONED)?;
            return Ok(Consumed::Versioned(managed));
        }
        if ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast::<Managed>();
            rename(py, raw, USED)?;
            return Ok(Consumed::Plain(managed));
        }
    }
    Err(PyTypeError::new_err("neither a DLPack capsule nor an object with __dlpack__"))
}

/// # Safety
/// `capsule` is a capsule.
unsafe fn rename(py: Python<'_>, capsule: *mut ffi::PyObject, name: &'static CStr) -> PyResult<()> {
    // SAFETY: as the caller promises; the name is static.
    match unsafe { ffi::PyCapsule_SetName(capsule, name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(py)),
    }
}

fn not_on_the_host(kind: i32) -> PyErr {
    PyBufferError::new_err(format!("memory of DLPack device type {kind}: move it to the CPU first"))
}

/// What a structure describes.
fn described(py: Python<'_>, of: &DlTensor) -> PyResult<Strided> {
    if !READABLE.contains(&of.device_type) {
        return Err(not_on_the_host(of.device_type));
    }
    let Some(dtype) = dtype_of(&of.dtype) else {
        let DlDataType { code, bits, lanes } = of.dtype;
        let text = format!("DLPack dtype of code {code}, {bits} bits, {lanes} lanes");
        return Err(dtype_error(py, text));
    };
    let rank = match usize::try_from(of.ndim) {
        Ok(rank) if rank <= Shape::MAX_RANK => rank,
        _ => {
            let most = Shape::MAX_RANK;
            return Err(shape_error(py, format!("{} axes, not 0 to {most}", of.ndim)));
        }
    };
    if rank > 0 && of.shape.is_null() {
        return Err(PyBufferError::new_err("DLPack with axes, but without a shape"));
    }
    // SAFETY: the standard: `shape` has `ndim` entries, `strides` too unless it is null. They are
    // copied, as a producer's need not be aligned.
    let list =
        |at: *const i64| (0..rank).map(move |i| unsafe { at.wrapping_add(i).read_unaligned() });
    let shape: Result<Vec<usize>, _> = list(of.shape).map(usize::try_from).collect();
    let shape = shape.map_err(|_| PyValueError::new_err("a negative extent"))?;
    let strides = (!of.strides.is_null()).then(|| {
        // Saturated, a stride is as impossible in bytes as in elements.
        list(of.strides).map(|n| (n as isize).saturating_mul(dtype.size() as isize)).collect()
    });
    // No memory is longer.
    let offset = isize::try_from(of.byte_offset).ok().map(isize::unsigned_abs);
    let start = offset.and_then(|offset| (of.data as usize).checked_add(offset));
    let Some(start) = start else {
        let text = format!("DLPack data that starts {} bytes behind its address", of.byte_offset);
        return Err(PyBufferError::new_err(text));
    };
    if of.data.is_null() && !shape.contains(&0) {
        return Err(PyBufferError::new_err("DLPack with elements, but without data"));
    }
    Strided::new(py, start, shape, strides, dtype)
}

/// A copy of a producer's elements.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Host> {
    let from = consume(object, None)?;
    let memory = described(object.py(), from.tensor())?;
    // SAFETY: the producer states that this memory holds such an array, and keeps it while `from`
    // lives.
    unsafe { memory.read() }
}

/// A tensor of a producer's memory, shared if it is dense and the device computes in host memory.
pub(crate) fn import(
    object: &Bound<'_, PyAny>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Tensor> {
    let py = object.py();
    let from = consume(object, copy)?;
    let memory = described(py, from.tensor())?;
    let Strided { start, dtype, bytes, .. } = memory;
    // A byte of another library's `bool` need not be 0 or 1, so those are looked at one by one.
    let shared = memory.is_dense() && bytes > 0 && dtype != DType::Bool && copy != Some(true);
    if shared {
        let owner = Arc::new(Lent { start, bytes, _from: from });
        return caught(py, || Tensor::from_shared(owner, dtype, memory.shape, device));
    }
    if copy == Some(false) {
        return Err(PyValueError::new_err("this memory cannot be shared without a copy"));
    }
    // SAFETY: as in `read`.
    let host = unsafe { memory.read() }?;
    drop(from);
    host.tensor(None, device)
}

/// A tensor of another library's array, sharing its memory where both can: on a device that
/// computes in host memory. Writing to the array then changes the tensor.
#[pyfunction]
#[pyo3(signature = (x, *, device=None, copy=None))]
pub(crate) fn from_dlpack(
    x: &Bound<'_, PyAny>,
    device: Option<crate::device::DeviceArg>,
    copy: Option<bool>,
) -> PyResult<crate::tensor::PyTensor> {
    let device = device.unwrap_or_default().open()?;
    import(x, &device, copy).map(crate::tensor::PyTensor::new)
}
