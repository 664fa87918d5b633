//! cuBLASLt, loaded at run time: matrix products that no generated code matches.
//!
//! A device without the library, or a product the library has no algorithm for, is no error: the
//! call is not offered and generated code computes it. `f32` is computed in `f32`, never in the
//! shorter `tf32`; halves are multiplied exactly and summed in `f32`.
//!
//! An algorithm is chosen once for each shape by the library's own heuristic. `ZYX_CUBLASLT`
//! names the library's file or folder; set to nothing it turns the library off.

use crate::driver::{Context, Stream};
use crate::gemm::{Gemm, Matrix};
use crate::library::{self, Names};
use libloading::Library;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use zyx_core::DType;

/// Most bytes of device memory a product may use beside its operands.
const MAX_WORKSPACE: usize = 32 << 20;

type Handle = *mut c_void;
type Status = c_int;

library::functions! {
    create = b"cublasLtCreate\0": fn(*mut Handle) -> Status;
    desc_create = b"cublasLtMatmulDescCreate\0": fn(*mut Handle, c_int, c_int) -> Status;
    desc_set = b"cublasLtMatmulDescSetAttribute\0":
        fn(Handle, c_int, *const c_void, usize) -> Status;
    desc_destroy = b"cublasLtMatmulDescDestroy\0": fn(Handle) -> Status;
    layout_create = b"cublasLtMatrixLayoutCreate\0":
        fn(*mut Handle, c_int, u64, u64, i64) -> Status;
    layout_set = b"cublasLtMatrixLayoutSetAttribute\0":
        fn(Handle, c_int, *const c_void, usize) -> Status;
    layout_destroy = b"cublasLtMatrixLayoutDestroy\0": fn(Handle) -> Status;
    preference_create = b"cublasLtMatmulPreferenceCreate\0": fn(*mut Handle) -> Status;
    preference_set = b"cublasLtMatmulPreferenceSetAttribute\0":
        fn(Handle, c_int, *const c_void, usize) -> Status;
    preference_destroy = b"cublasLtMatmulPreferenceDestroy\0": fn(Handle) -> Status;
    heuristic = b"cublasLtMatmulAlgoGetHeuristic\0": fn(
        Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Choice, *mut c_int
    ) -> Status;
    matmul = b"cublasLtMatmul\0": fn(
        Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64,
        Handle, *const Algorithm, u64, usize, *mut c_void
    ) -> Status;
}

/// An algorithm, opaque.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Algorithm([u64; 8]);

/// An algorithm the library proposes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Choice {
    algorithm: Algorithm,
    workspace: usize,
    status: Status,
    waves: f32,
    reserved: [c_int; 4],
}

/// Numbers of the library's header.
mod header {
    use std::ffi::c_int;

    pub(super) const COMPUTE_32F: c_int = 68;
    pub(super) const COMPUTE_64F: c_int = 70;
    pub(super) const DESC_TRANSA: c_int = 3;
    pub(super) const DESC_TRANSB: c_int = 4;
    pub(super) const LAYOUT_BATCH_COUNT: c_int = 5;
    pub(super) const LAYOUT_BATCH_STRIDE: c_int = 6;
    pub(super) const PREFERENCE_WORKSPACE: c_int = 1;
    /// Of the first operand; the next three follow.
    pub(super) const PREFERENCE_ALIGNMENT: c_int = 5;
}

/// An element type by the library's number.
fn number(dtype: DType) -> c_int {
    match dtype {
        DType::F16 => 2,
        DType::BF16 => 14,
        DType::F64 => 1,
        _ => 0,
    }
}

/// The library with a handle for one device; kept for the process.
#[derive(Debug)]
pub(crate) struct Blas {
    functions: Functions,
    handle: Handle,
    _library: Library,
}

// SAFETY: the handle may be used by several threads at a time (cuBLASLt, thread safety).
unsafe impl Send for Blas {}
// SAFETY: as above.
unsafe impl Sync for Blas {}

const NAMES: Names = Names {
    file: "libcublasLt.so",
    variable: "ZYX_CUBLASLT",
    wheels: &["nvidia/cu13/lib", "nvidia/cublas/lib"],
    before: None,
};

impl Blas {
    /// The library for the device of a context, if there is one.
    pub(crate) fn load(context: &Context) -> Option<Arc<Blas>> {
        if std::env::var_os(NAMES.variable).is_some_and(|path| path.is_empty()) {
            return None;
        }
        context.bind().ok()?;
        let found = library::find(NAMES, |library| {
            let functions = Functions::of(&library).map_err(|e| e.to_string())?;
            let mut handle = ptr::null_mut();
            // SAFETY: a context is current; the place is for the result.
            match unsafe { (functions.create)(&mut handle) } {
                0 => Ok(Blas { functions, handle, _library: library }),
                status => Err(format!("cublasLtCreate: {status}")),
            }
        });
        match found {
            Ok((blas, path)) => {
                log::debug!(target: "zyx::cuda", "cuBLASLt: {}", path.display());
                Some(Arc::new(blas))
            }
            Err(tried) => {
                log::info!(target: "zyx::cuda", "no cuBLASLt, matrix products will be slow:\n{tried}");
                None
            }
        }
    }
}

/// An object of the library that is described by attributes.
#[derive(Debug)]
struct Object {
    raw: Handle,
    set: unsafe extern "C" fn(Handle, c_int, *const c_void, usize) -> Status,
    destroy: unsafe extern "C" fn(Handle) -> Status,
}

// SAFETY: plain data of the library, changed only while it is made.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    fn set<T>(&self, attribute: c_int, value: T) -> Option<()> {
        // SAFETY: a valid object and a value of the size given, which is copied; the library
        // refuses a size that is not the attribute's.
        let status = unsafe {
            (self.set)(self.raw, attribute, ptr::from_ref(&value).cast(), size_of::<T>())
        };
        (status == 0).then_some(())
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: made by the library, destroyed once.
        let _ = unsafe { (self.destroy)(self.raw) };
    }
}

/// Matrix products with an algorithm chosen.
#[derive(Debug)]
pub(crate) struct Products {
    blas: Arc<Blas>,
    desc: Object,
    layouts: [Object; 3],
    algorithm: Algorithm,
    workspace: usize,
    acc: DType,
    calls: Vec<[isize; 3]>,
}

impl Products {
    /// The products on this device, if the library has an algorithm for them.
    pub(crate) fn new(blas: &Arc<Blas>, gemm: &Gemm) -> Option<Products> {
        let f = blas.functions;
        let compute = match gemm.acc {
            DType::F64 => header::COMPUTE_64F,
            _ => header::COMPUTE_32F,
        };
        let made = |create: &dyn Fn(*mut Handle) -> Status, set, destroy| {
            let mut raw = ptr::null_mut();
            (create(&mut raw) == 0).then_some(Object { raw, set, destroy })
        };
        // SAFETY: the place is for the result.
        let create = |raw| unsafe { (f.desc_create)(raw, compute, number(gemm.acc)) };
        let desc = made(&create, f.desc_set, f.desc_destroy)?;
        desc.set(header::DESC_TRANSA, c_int::from(gemm.left.transposed))?;
        desc.set(header::DESC_TRANSB, c_int::from(gemm.right.transposed))?;
        let layout = |m: &Matrix| {
            let (rows, columns, stride) = (m.rows as u64, m.columns as u64, m.stride as i64);
            let create =
                // SAFETY: the place is for the result.
                |raw| unsafe { (f.layout_create)(raw, number(m.dtype), rows, columns, stride) };
            let layout = made(&create, f.layout_set, f.layout_destroy)?;
            layout.set(header::LAYOUT_BATCH_COUNT, i32::try_from(gemm.batch).ok()?)?;
            layout.set(header::LAYOUT_BATCH_STRIDE, m.batch_stride as i64)?;
            Some(layout)
        };
        let layouts = [layout(&gemm.left)?, layout(&gemm.right)?, layout(&gemm.result)?];
        // SAFETY: the place is for the result.
        let create = |raw| unsafe { (f.preference_create)(raw) };
        let preference = made(&create, f.preference_set, f.preference_destroy)?;
        preference.set(header::PREFERENCE_WORKSPACE, MAX_WORKSPACE as u64)?;
        let aligns = [gemm.left.align, gemm.right.align, gemm.result.align, gemm.result.align];
        for (i, align) in (0..).zip(aligns) {
            preference.set(header::PREFERENCE_ALIGNMENT + i, align as u32)?;
        }
        let (mut choice, mut found) = (Choice::default(), 0);
        let [left, right, result] = layouts.each_ref().map(|layout| layout.raw);
        // SAFETY: valid objects; room for the one result asked for.
        let status = unsafe {
            (f.heuristic)(
                blas.handle,
                desc.raw,
                left,
                right,
                result,
                result,
                preference.raw,
                1,
                &mut choice,
                &mut found,
            )
        };
        let usable = status == 0 && found == 1 && choice.status == 0;
        usable.then(|| Products {
            blas: Arc::clone(blas),
            desc,
            layouts,
            algorithm: choice.algorithm,
            workspace: choice.workspace,
            acc: gemm.acc,
            calls: gemm.calls.clone(),
        })
    }

    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Queues the products on the contraction's A, B and C.
    ///
    /// # Safety
    /// The addresses are of memory as long as the contraction says, and of [`workspace`] bytes,
    /// that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        [a, b, c]: [u64; 3],
        workspace: u64,
    ) -> Result<(), String> {
        let (one, zero) = match self.acc {
            DType::F64 => (1f64.to_bits(), 0),
            _ => (u64::from(1f32.to_bits()), 0u64),
        };
        let [left, right, result] = self.layouts.each_ref().map(|layout| layout.raw);
        for offsets in &self.calls {
            let at = |base: u64, i: usize| base.wrapping_add_signed(offsets[i] as i64);
            // SAFETY: valid objects, scalars of the type computed in (their first bytes, as the
            // machine is little-endian); the rest is the caller's promise.
            let status = unsafe {
                (self.blas.functions.matmul)(
                    self.blas.handle,
                    self.desc.raw,
                    ptr::from_ref(&one).cast(),
                    at(b, 0),
                    left,
                    at(a, 1),
                    right,
                    ptr::from_ref(&zero).cast(),
                    at(c, 2),
                    result,
                    at(c, 2),
                    result,
                    &self.algorithm,
                    workspace,
                    self.workspace,
                    stream.raw.cast(),
                )
            };
            if status != 0 {
                return Err(format!("cublasLtMatmul: status {status}"));
            }
            stream.traffic.submitted();
        }
        Ok(())
    }
}
