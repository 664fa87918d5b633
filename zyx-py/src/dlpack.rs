//! DLPack: memory shared with other libraries, in and out.
//!
//! The structures are those of the standard, versions 0.8 (unversioned) and 1.0. Out, a tensor on a
//! device that computes in host memory is shared, marked read-only where the consumer understands
//! that; other devices give a copy. In, dense host memory is shared: who goes on writing to it
//! changes the tensor. Everything that is unsafe about it stands here.

use crate::data::{Host, gather};
use crate::error::{caught, dtype_error, shape_error};
use crate::memory::Bytes;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;
use zyx::{DType, Device, Shape, Tensor};

/// The host, as DLPack numbers devices.
pub(crate) const HOST: (i32, i32) = (1, 0);

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
    let bytes = Bytes::of(py, tensor, copy == Some(true))?;
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
    let (pointer, name) = if max_version.is_some_and(|(major, _)| major >= 1) {
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
    // SAFETY: the pointer is not null, the name is static, and the destructor fits both.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
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

/// Host memory that a producer lends.
struct Lent {
    from: Consumed,
    bytes: usize,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `import` checked that the structure describes this many dense bytes, which the
        // producer keeps until the deleter is called.
        unsafe { std::slice::from_raw_parts(start(self.from.tensor()), self.bytes) }
    }
}

/// The address of the first element.
fn start(tensor: &DlTensor) -> *const u8 {
    tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize)
}

/// Takes the structure out of a producer's capsule.
fn consume(object: &Bound<'_, PyAny>) -> PyResult<Consumed> {
    let py = object.py();
    if object.hasattr("__dlpack_device__")? {
        let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
        // The host, and host memory that a GPU can read.
        if ![1, 3, 11].contains(&kind) {
            let text = format!("memory of DLPack device type {kind}: move it to the CPU first");
            return Err(PyBufferError::new_err(text));
        }
    }
    let capsule = if object.hasattr("__dlpack__")? {
        let options = PyDict::new(py);
        options.set_item("max_version", (1, 0))?;
        match object.call_method("__dlpack__", (), Some(&options)) {
            // Producers of before version 1.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                object.call_method0("__dlpack__")?
            }
            other => other?,
        }
    } else {
        object.clone()
    };
    let raw = capsule.as_ptr();
    // SAFETY: a valid capsule of one of these names holds the structure of that name; renaming
    // it makes the structure ours.
    unsafe {
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr());
            let managed = managed.cast::<ManagedVersioned>();
            if (*managed).major != 1 {
                return Err(PyBufferError::new_err("DLPack of a later major version than 1"));
            }
            ffi::PyCapsule_SetName(raw, USED_VERSIONED.as_ptr());
            return Ok(Consumed::Versioned(managed));
        }
        if ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast::<Managed>();
            ffi::PyCapsule_SetName(raw, USED.as_ptr());
            return Ok(Consumed::Plain(managed));
        }
    }
    Err(PyTypeError::new_err("neither a DLPack capsule nor an object with __dlpack__"))
}

/// Shape, strides in elements and dtype of a structure.
fn layout(py: Python<'_>, of: &DlTensor) -> PyResult<(Vec<usize>, Vec<isize>, DType)> {
    let Some(dtype) = dtype_of(&of.dtype) else {
        let DlDataType { code, bits, lanes } = of.dtype;
        let text = format!("DLPack dtype of code {code}, {bits} bits, {lanes} lanes");
        return Err(dtype_error(py, text));
    };
    let rank = usize::try_from(of.ndim).unwrap_or(usize::MAX);
    if rank > Shape::MAX_RANK {
        return Err(shape_error(py, format!("{} axes are too many", of.ndim)));
    }
    // SAFETY: the standard: `shape` has `ndim` entries, `strides` too unless it is null.
    let (extents, strides): (&[i64], Option<&[i64]>) = unsafe {
        let list = |at: *mut i64| match rank {
            0 => &[],
            _ => std::slice::from_raw_parts(at, rank),
        };
        (list(of.shape), (!of.strides.is_null()).then(|| list(of.strides)))
    };
    let shape: Result<Vec<usize>, _> = extents.iter().map(|&n| usize::try_from(n)).collect();
    let shape = shape.map_err(|_| PyValueError::new_err("a negative extent"))?;
    let strides = match strides {
        Some(strides) => strides.iter().map(|&n| n as isize).collect(),
        None => Shape::from(&shape[..]).strides().into_iter().map(|n| n as isize).collect(),
    };
    Ok((shape, strides, dtype))
}

/// A copy of a producer's elements.
pub(crate) fn read(object: &Bound<'_, PyAny>) -> PyResult<Host> {
    let from = consume(object)?;
    let of = from.tensor();
    let (shape, strides, dtype) = layout(object.py(), of)?;
    let strides: Vec<isize> = strides.iter().map(|n| n * dtype.size() as isize).collect();
    // SAFETY: the producer states that this memory holds such an array, and keeps it while `from`
    // lives.
    let mut bytes = unsafe { gather(start(of), &shape, Some(&strides), dtype.size()) };
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Ok(Host::Bytes { shape, dtype, bytes })
}

/// A tensor of a producer's memory, shared if it is dense and the device computes in host memory.
pub(crate) fn import(
    object: &Bound<'_, PyAny>,
    device: &Device,
    copy: Option<bool>,
) -> PyResult<Tensor> {
    let py = object.py();
    let from = consume(object)?;
    let (shape, strides, dtype) = layout(py, from.tensor())?;
    let shape = Shape::from(shape);
    let dense = shape.strides();
    let is_dense =
        shape.iter().zip(&strides).zip(&dense).all(|((&n, &s), &d)| n <= 1 || s == d as isize);
    // A byte of another library's `bool` need not be 0 or 1, so those are looked at one by one.
    let shared = is_dense && shape.numel() > 0 && dtype != DType::Bool && copy != Some(true);
    if shared {
        let bytes = shape.numel() * dtype.size();
        let owner = Arc::new(Lent { from, bytes });
        return caught(py, || Tensor::from_owner(owner, dtype, shape, device));
    }
    if copy == Some(false) {
        return Err(PyValueError::new_err("this memory cannot be shared without a copy"));
    }
    let byte_strides: Vec<isize> = strides.iter().map(|n| n * dtype.size() as isize).collect();
    // SAFETY: as in `read`.
    let mut bytes =
        unsafe { gather(start(from.tensor()), shape.dims(), Some(&byte_strides), dtype.size()) };
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|b| *b = u8::from(*b != 0));
    }
    Host::Bytes { shape: shape.to_vec(), dtype, bytes }.tensor(None, device)
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
