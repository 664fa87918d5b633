//! How functions of NVIDIA's libraries are called.
//!
//! `cudarc` declares them: types, numbers and signatures are its own. It calls them in a way that two
//! states of a library make unsound: a function that is missing is a panic, and what a call returns
//! becomes a Rust enum, so that a code the enum does not list is undefined behaviour. Here the
//! functions of a library are looked up at once, which tells the names of those it lacks, and every
//! result is read as a number. [`call`] takes the signature from `cudarc`'s function of the same name.

use cudarc::cublaslt::sys::cublasStatus_t;
use cudarc::cudnn::sys::cudnnStatus_t;
use cudarc::driver::sys::{CUresult, culib, is_culib_present};
use cudarc::nvrtc::sys::nvrtcResult;
use libloading::Library;
use std::sync::LazyLock;

/// What a call of a function returns that is missing.
pub(crate) const ABSENT: u32 = CUresult::CUDA_ERROR_NOT_FOUND as u32;

/// The enumerations of results, which are read as numbers.
pub(crate) trait Status {}
impl Status for CUresult {}
impl Status for nvrtcResult {}
impl Status for cublasStatus_t {}
impl Status for cudnnStatus_t {}

/// A function as `cudarc` declares it.
pub(crate) trait Signature {
    /// The same in C, with a number as its result.
    type Function: Copy;
}

macro_rules! signatures {
    ($first:ident $($rest:ident)*) => {
        impl<S: Status, $first $(, $rest)*> Signature for unsafe fn($first $(, $rest)*) -> S {
            type Function = unsafe extern "C" fn($first $(, $rest)*) -> u32;
        }
        signatures!($($rest)*);
    };
    () => {};
}
signatures!(A B C D E F G H I J K L M N O P);

/// Where a function of a library lies that is never unloaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address(unsafe extern "C" fn());

impl Address {
    pub(crate) fn find(library: &Library, name: &'static str) -> Option<Address> {
        // SAFETY: a symbol is the address of what it names, or null; see `of` for how it is called.
        unsafe { library.get::<Option<_>>(name) }.ok().and_then(|symbol| *symbol).map(Address)
    }

    /// The function, given what `cudarc` declares, which is not called and so not compiled.
    ///
    /// # Safety
    /// The declaration is of the function that lies here.
    pub(crate) unsafe fn of<S: Signature>(self, _: impl FnOnce() -> S) -> S::Function {
        // SAFETY: the caller's promise. An enumeration of C is passed as a number of 32 bits.
        unsafe { self.as_type() }
    }

    /// The function by its type.
    ///
    /// # Safety
    /// It is a type of functions of C, and that of the function that lies here.
    pub(crate) unsafe fn as_type<F: Copy>(self) -> F {
        const { assert!(size_of::<F>() == size_of::<Address>()) };
        // SAFETY: pointers to functions have one size; the rest is the caller's promise.
        unsafe { std::mem::transmute_copy(&self.0) }
    }
}

/// Declares a library's functions that are used, by name.
macro_rules! functions {
    ($($name:ident)*) => {
        /// Where the functions lie that are used, as far as the library has them.
        #[derive(Clone, Copy, Debug, Default)]
        #[allow(non_snake_case, reason = "NVIDIA's names")]
        pub(crate) struct Functions {
            $(pub(crate) $name: Option<$crate::sys::Address>,)*
        }

        impl Functions {
            /// Those of a library, which has to stay loaded, and the names of those it lacks.
            pub(crate) fn of(library: &::libloading::Library) -> (Functions, Vec<&'static str>) {
                let mut missing = Vec::new();
                let mut find = |name| {
                    let found = $crate::sys::Address::find(library, name);
                    if found.is_none() {
                        missing.push(name);
                    }
                    found
                };
                (Functions { $($name: find(stringify!($name)),)* }, missing)
            }
        }
    };
}

/// A type that is inferred, in place of an argument.
macro_rules! inferred {
    ($argument:expr) => {
        _
    };
}

/// Calls a function from `Functions` with the signature it has in a module of `cudarc`; a number.
/// Unsafe, as NVIDIA's manual says of the function.
macro_rules! call {
    ($functions:expr, $library:ident::$name:ident($($argument:expr),* $(,)?)) => {
        match $functions.$name {
            Some(address) => {
                let declared =
                    || -> unsafe fn($($crate::sys::inferred!($argument)),*) -> _ { $library::$name };
                address.of(declared)($($argument),*)
            }
            None => $crate::sys::ABSENT,
        }
    };
}

/// Calls a function of the driver; a number. Unsafe, as the driver's manual says of the function.
macro_rules! cuda {
    ($name:ident $arguments:tt) => {{
        #[cfg(test)]
        let fails = $crate::faults::DRIVER.fails(stringify!($name));
        #[cfg(not(test))]
        let fails = false;
        use cudarc::driver::sys as declared;
        if fails { 999 } else { $crate::sys::call!($crate::sys::table(), declared::$name $arguments) }
    }};
}

pub(crate) use {call, cuda, functions, inferred};

functions! {
    // The driver and its devices.
    cuInit cuDriverGetVersion cuGetErrorString cuDeviceGet cuDeviceGetAttribute cuDeviceGetCount
    cuDeviceGetName cuDeviceTotalMem_v2 cuDeviceGetDefaultMemPool cuDevicePrimaryCtxRetain
    cuCtxSetCurrent
    // Code.
    cuLinkCreate_v2 cuLinkAddData_v2 cuLinkComplete cuLinkDestroy cuModuleLoadData cuModuleGetFunction cuModuleUnload cuFuncSetAttribute cuLaunchKernel
    // Memory.
    cuMemAlloc_v2 cuMemFree_v2 cuMemAllocAsync cuMemFreeAsync cuMemHostAlloc cuMemFreeHost
    cuMemPoolSetAttribute cuMemPoolTrimTo cuMemcpyDtoDAsync_v2 cuMemcpyDtoHAsync_v2
    cuMemcpyHtoDAsync_v2
    // Streams and events.
    cuStreamCreate cuStreamDestroy_v2 cuStreamSynchronize cuStreamWaitEvent
    cuStreamBeginCapture_v2 cuStreamEndCapture cuEventCreate cuEventDestroy_v2 cuEventElapsedTime
    cuEventRecord cuEventSynchronize cuEventQuery
    // Graphs.
    cuGraphCreate cuGraphDestroy cuGraphAddKernelNode_v2 cuGraphAddChildGraphNode
    cuGraphAddDependencies_v2 cuGraphInstantiateWithFlags cuGraphLaunch cuGraphExecDestroy
    cuGraphExecKernelNodeSetParams_v2 cuGraphExecChildGraphNodeSetParams cuGraphGetNodes
    cuGraphGetEdges cuGraphNodeGetType cuGraphKernelNodeGetParams_v2
    cuGraphKernelNodeCopyAttributes
}

/// The driver's functions, none without a driver, and the names of those it lacks or why there is
/// none.
static DRIVER: LazyLock<(Functions, Result<Vec<&'static str>, String>)> =
    LazyLock::new(|| match library().map(Functions::of) {
        Ok((functions, missing)) => (functions, Ok(missing)),
        Err(reason) => (Functions::default(), Err(reason)),
    });

/// What the driver calls its library.
pub(crate) const DRIVER_FILE: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// The variable that names folders in which the system looks for libraries.
pub(crate) const LIBRARY_PATH: &str = if cfg!(windows) { "PATH" } else { "LD_LIBRARY_PATH" };

/// The driver's library, kept loaded: under the driver's own name first, since a toolkit has an
/// empty `libcuda.so` to link with, then under every name that `cudarc` knows.
fn library() -> Result<&'static Library, String> {
    // SAFETY: loading NVIDIA's driver runs its initialisers only.
    match unsafe { Library::new(DRIVER_FILE) } {
        Ok(library) => Ok(Box::leak(Box::new(library))),
        // SAFETY: as above.
        Err(_) if unsafe { is_culib_present() } => Ok(unsafe { culib() }),
        Err(error) => Err(crate::library::why(&error)),
    }
}

/// The driver's functions, none without a driver.
pub(crate) fn table() -> &'static Functions {
    &DRIVER.0
}

/// The names of functions that the driver lacks.
///
/// # Errors
/// Why there is no driver.
pub(crate) fn lacks() -> Result<&'static Vec<&'static str>, &'static String> {
    DRIVER.1.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cudarc::driver::sys as declared;
    use std::ffi::c_int;

    #[test]
    fn a_function_that_is_missing_is_a_code() {
        let (none, mut version) = (Functions::default(), 0);
        // SAFETY: nothing is called.
        let code = unsafe { call!(none, declared::cuDriverGetVersion(&mut version)) };
        assert_eq!(code, ABSENT);
    }

    #[test]
    fn results_are_numbers_whatever_they_are() {
        unsafe extern "C" fn version(to: *mut c_int) -> c_int {
            // SAFETY: the caller's place.
            unsafe { *to = 13_000 };
            987_654
        }
        type Function = unsafe extern "C" fn(*mut c_int) -> c_int;
        // SAFETY: an address is only called as what it is of.
        let address =
            Address(unsafe { std::mem::transmute::<Function, unsafe extern "C" fn()>(version) });
        let one = Functions { cuDriverGetVersion: Some(address), ..Functions::default() };
        let mut version = 0;
        // SAFETY: the signature of the function above.
        let code = unsafe { call!(one, declared::cuDriverGetVersion(&mut version)) };
        assert_eq!((code, version), (987_654, 13_000));
    }
}
