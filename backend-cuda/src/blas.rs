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
use crate::sys::{call, functions};
use cudarc::cublaslt::sys::{
    self as lt, cublasComputeType_t, cublasLtEpilogue_t, cublasLtHandle_t, cublasLtMatmulAlgo_t,
    cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, cublasLtMatmulHeuristicResult_t,
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayoutAttribute_t, cudaDataType_t,
};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use zyx_core::DType;

/// Most bytes of device memory a product may use beside its operands.
const MAX_WORKSPACE: usize = 32 << 20;

/// Schemes to sum parts of sums by: in place, or in the dtype of sums.
const REDUCTIONS: u32 = 1 | 2;

/// A place of a bias, as aligned as all buffers are, while there is none yet.
const NOWHERE: u64 = 256;

// In every version since CUDA 11.0.
functions! {
    cublasLtCreate cublasLtMatmul cublasLtMatmulAlgoGetHeuristic
    cublasLtMatmulDescCreate cublasLtMatmulDescSetAttribute cublasLtMatmulDescDestroy
    cublasLtMatrixLayoutCreate cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutDestroy
    cublasLtMatmulPreferenceCreate cublasLtMatmulPreferenceSetAttribute
    cublasLtMatmulPreferenceDestroy
}

/// An element type as the library names it.
fn element(dtype: DType) -> cudaDataType_t {
    match dtype {
        DType::F16 => cudaDataType_t::CUDA_R_16F,
        DType::BF16 => cudaDataType_t::CUDA_R_16BF,
        DType::F64 => cudaDataType_t::CUDA_R_64F,
        _ => cudaDataType_t::CUDA_R_32F,
    }
}

/// The library, which stays loaded, with a handle for one device.
#[derive(Debug)]
pub(crate) struct Blas {
    functions: Functions,
    handle: cublasLtHandle_t,
}

// SAFETY: the handle may be used by several threads at a time (cuBLASLt, thread safety).
unsafe impl Send for Blas {}
// SAFETY: as above.
unsafe impl Sync for Blas {}

const NAMES: Names = Names {
    file: if cfg!(windows) { "cublasLt64_" } else { "libcublasLt.so" },
    versions: if cfg!(windows) { &["13.dll", "12.dll"] } else { library::CUDA_VERSIONS },
    variable: "ZYX_CUBLASLT",
    wheels: if cfg!(windows) {
        &["nvidia/cu13/bin/x86_64", "nvidia/cublas/bin"]
    } else {
        &["nvidia/cu13/lib", "nvidia/cublas/lib"]
    },
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
            let (functions, missing) = Functions::of(library);
            library::complete(&missing, "cuBLASLt of CUDA 11 or later")?;
            let mut handle = ptr::null_mut();
            // SAFETY: a context is current; the place is for the result.
            match unsafe { call!(functions, lt::cublasLtCreate(&mut handle)) } {
                0 => Ok(Blas { functions, handle }),
                status => Err(format!("cublasLtCreate: status {status}")),
            }
        });
        match found {
            Ok((blas, path)) => {
                log::debug!(target: "zyx::cuda", "cuBLASLt: {}", path.display());
                Some(Arc::new(blas))
            }
            Err(tried) => {
                log::info!(
                    target: "zyx::cuda",
                    "no cuBLASLt can be used, matrix products will be slow; install it (pip install \
                     nvidia-cublas) or name its file in ZYX_CUBLASLT. Tried:\n{tried}"
                );
                None
            }
        }
    }
}

/// Declares objects of the library that are described by attributes.
macro_rules! objects {
    ($($name:ident: $raw:ty, $attribute:ty, $set:ident, $destroy:ident;)*) => {
        $(
            #[derive(Debug)]
            struct $name {
                raw: $raw,
                blas: Arc<Blas>,
            }

            // SAFETY: plain data of the library, changed while it is made, or behind a lock.
            unsafe impl Send for $name {}
            // SAFETY: as above.
            unsafe impl Sync for $name {}

            impl $name {
                /// What `create` makes, with a status.
                fn new(blas: &Arc<Blas>, create: impl FnOnce(*mut $raw) -> u32) -> Option<$name> {
                    let mut raw = ptr::null_mut();
                    (create(&mut raw) == 0).then(|| $name { raw, blas: Arc::clone(blas) })
                }

                fn set<T>(&self, attribute: $attribute, value: T) -> Option<()> {
                    let (from, bytes) = (ptr::from_ref(&value).cast(), size_of::<T>());
                    // SAFETY: a valid object and a value of the size given, which is copied; the
                    // library refuses a size that is not the attribute's.
                    let status = unsafe {
                        call!(self.blas.functions, lt::$set(self.raw, attribute, from, bytes))
                    };
                    (status == 0).then_some(())
                }
            }

            impl Drop for $name {
                fn drop(&mut self) {
                    // SAFETY: made by the library, destroyed once.
                    let _ = unsafe { call!(self.blas.functions, lt::$destroy(self.raw)) };
                }
            }
        )*
    };
}

objects! {
    Product: cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
        cublasLtMatmulDescSetAttribute, cublasLtMatmulDescDestroy;
    Layout: cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t,
        cublasLtMatrixLayoutSetAttribute, cublasLtMatrixLayoutDestroy;
    Preference: cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
        cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceDestroy;
}

/// Matrix products with an algorithm chosen.
#[derive(Debug)]
pub(crate) struct Products {
    blas: Arc<Blas>,
    /// Has the address of a bias in it.
    product: Mutex<Product>,
    bias: bool,
    layouts: [Layout; 3],
    algorithm: cublasLtMatmulAlgo_t,
    /// What tells the algorithm from others.
    pub(crate) way: String,
    workspace: usize,
    acc: DType,
    calls: Vec<[isize; 3]>,
}

impl Products {
    /// The products on this device, if the library has so many algorithms, and one more, for them.
    pub(crate) fn new(blas: &Arc<Blas>, gemm: &Gemm, way: usize) -> Option<Products> {
        use cublasLtMatmulDescAttributes_t as D;
        use cublasLtMatmulPreferenceAttributes_t as P;
        use cublasLtMatrixLayoutAttribute_t as L;
        let functions = &blas.functions;
        let compute = match gemm.acc {
            DType::F64 => cublasComputeType_t::CUBLAS_COMPUTE_64F,
            _ => cublasComputeType_t::CUBLAS_COMPUTE_32F,
        };
        let acc = element(gemm.acc);
        // SAFETY: the place is for the result.
        let create =
            |raw| unsafe { call!(functions, lt::cublasLtMatmulDescCreate(raw, compute, acc)) };
        let product = Product::new(blas, create)?;
        product.set(D::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(gemm.left.transposed))?;
        product.set(D::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(gemm.right.transposed))?;
        if gemm.bias {
            let epilogue = cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            product.set(D::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue)?;
            product.set(D::CUBLASLT_MATMUL_DESC_BIAS_POINTER, NOWHERE)?;
        }
        let layout = |m: &Matrix| {
            let (rows, columns, stride) = (m.rows as u64, m.columns as u64, m.stride as i64);
            let dtype = element(m.dtype);
            // SAFETY: the place is for the result.
            let layout = Layout::new(blas, |raw| unsafe {
                call!(functions, lt::cublasLtMatrixLayoutCreate(raw, dtype, rows, columns, stride))
            })?;
            let batch = i32::try_from(gemm.batch).ok()?;
            layout.set(L::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch)?;
            layout.set(L::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, m.batch_stride as i64)?;
            Some(layout)
        };
        let layouts = [layout(&gemm.left)?, layout(&gemm.right)?, layout(&gemm.result)?];
        // SAFETY: the place is for the result.
        let create = |raw| unsafe { call!(functions, lt::cublasLtMatmulPreferenceCreate(raw)) };
        let preference = Preference::new(blas, create)?;
        preference.set(P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, MAX_WORKSPACE as u64)?;
        // Parts of sums are not rounded to halves.
        preference.set(P::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, REDUCTIONS)?;
        for (attribute, matrix) in [
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &gemm.left),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &gemm.right),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &gemm.result),
            (P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &gemm.result),
        ] {
            preference.set(attribute, matrix.align as u32)?;
        }
        let zeroed = MaybeUninit::<cublasLtMatmulHeuristicResult_t>::zeroed;
        let mut choices: Vec<_> = (0..=way).map(|_| zeroed()).collect();
        let (asked, mut found) = (i32::try_from(choices.len()).ok()?, 0);
        let [left, right, result] = layouts.each_ref().map(|layout| layout.raw);
        // SAFETY: valid objects; room for the results asked for.
        let status = unsafe {
            call!(
                functions,
                lt::cublasLtMatmulAlgoGetHeuristic(
                    blas.handle,
                    product.raw,
                    left,
                    right,
                    result,
                    result,
                    preference.raw,
                    asked,
                    choices.as_mut_ptr().cast(),
                    &mut found,
                )
            )
        };
        let choice = choices[way].as_ptr();
        // SAFETY: zero, or what the library wrote; the status may be one that is not listed.
        let (algorithm, workspace, state) = unsafe {
            let state = (&raw const (*choice).state).cast::<u32>();
            ((*choice).algo, (*choice).workspaceSize, state.read())
        };
        let usable = status == 0 && found == asked && state == 0 && workspace <= MAX_WORKSPACE;
        usable.then(|| Products {
            blas: Arc::clone(blas),
            product: Mutex::new(product),
            bias: gemm.bias,
            layouts,
            algorithm,
            way: algorithm.data.iter().map(|word| format!("{word:x}.")).collect(),
            workspace,
            acc: gemm.acc,
            calls: gemm.calls.clone(),
        })
    }

    /// Bytes of device memory needed while it runs.
    pub(crate) fn workspace(&self) -> usize {
        self.workspace
    }

    /// Queues the products on the contraction's A, B, bias if there is one, and C.
    ///
    /// # Safety
    /// The addresses are those, of memory as long as the contraction says, and of [`workspace`] bytes,
    /// that stays until the stream is done and that nothing else uses meanwhile.
    ///
    /// [`workspace`]: Self::workspace
    pub(crate) unsafe fn queue(
        &self,
        stream: &Stream,
        arguments: &[u64],
        workspace: u64,
    ) -> Result<(), String> {
        let (a, b, bias, c) = match *arguments {
            [a, b, c] if !self.bias => (a, b, None, c),
            [a, b, bias, c] if self.bias => (a, b, Some(bias), c),
            _ => return Err(format!("a product with {} arguments", arguments.len())),
        };
        // Nothing else of it changes, so it is whole whatever happens.
        let product = self.product.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bias) = bias {
            let place = cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER;
            product.set(place, bias).ok_or("cuBLASLt takes no bias")?;
        }
        let (one, zero) = match self.acc {
            DType::F64 => (1f64.to_bits(), 0),
            _ => (u64::from(1f32.to_bits()), 0u64),
        };
        let [left, right, result] = self.layouts.each_ref().map(|layout| layout.raw);
        for offsets in &self.calls {
            let at = |base: u64, i: usize| base.wrapping_add_signed(offsets[i] as i64);
            let c = place(at(c, 2));
            // SAFETY: valid objects, scalars of the type computed in (their first bytes, as the
            // machine is little-endian); the rest is the caller's promise.
            let status = unsafe {
                call!(
                    self.blas.functions,
                    lt::cublasLtMatmul(
                        self.blas.handle,
                        product.raw,
                        ptr::from_ref(&one).cast(),
                        place(at(b, 0)),
                        left,
                        place(at(a, 1)),
                        right,
                        ptr::from_ref(&zero).cast(),
                        c,
                        result,
                        c,
                        result,
                        &self.algorithm,
                        place(workspace),
                        self.workspace,
                        stream.raw.cast(),
                    )
                )
            };
            if status != 0 {
                return Err(format!(
                    "cublasLtMatmul of cuBLASLt: status {status}; another library can be named in \
                     ZYX_CUBLASLT, and an empty ZYX_CUBLASLT does without"
                ));
            }
            stream.traffic.submitted();
        }
        Ok(())
    }
}

/// An address on the device, as the library takes it.
fn place(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}
