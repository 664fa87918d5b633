//! The part of the driver API that is used: types, numbers and functions under NVIDIA's names.
//!
//! Bound by hand, and not through a crate of bindings, for two reasons. Results are numbers here:
//! a newer driver may return codes that no header of today lists, which as a Rust enum would be
//! undefined behaviour. And nothing panics: the library is loaded when a function is first called,
//! and a function of a library that is missing, or of a driver too old to have it, returns
//! `CUDA_ERROR_NOT_FOUND`.
#![allow(non_camel_case_types, non_snake_case, reason = "NVIDIA's names")]
#![allow(clippy::too_many_arguments, reason = "NVIDIA's signatures")]

use libloading::Library;
use std::ffi::{c_char, c_int, c_void};
use std::sync::LazyLock;

/// Numbers of one of the API's enumerations, any of which a driver may return.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident($int:ty): $($constant:ident = $value:literal;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(transparent)]
        pub(crate) struct $name(pub(crate) $int);

        impl $name {
            $(pub(crate) const $constant: $name = $name($value);)*
        }
    };
}

numbers! {
    /// What a call returns.
    CUresult(c_int):
    CUDA_SUCCESS = 0;
    CUDA_ERROR_INVALID_VALUE = 1;
    CUDA_ERROR_OUT_OF_MEMORY = 2;
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46;
    CUDA_ERROR_ECC_UNCORRECTABLE = 214;
    CUDA_ERROR_NOT_FOUND = 500;
    CUDA_ERROR_ILLEGAL_ADDRESS = 700;
    CUDA_ERROR_LAUNCH_TIMEOUT = 702;
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709;
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714;
    CUDA_ERROR_ILLEGAL_INSTRUCTION = 715;
    CUDA_ERROR_MISALIGNED_ADDRESS = 716;
    CUDA_ERROR_INVALID_ADDRESS_SPACE = 717;
    CUDA_ERROR_INVALID_PC = 718;
    CUDA_ERROR_LAUNCH_FAILED = 719;
}

numbers! {
    /// What a device can be asked for.
    CUdevice_attribute(c_int):
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1;
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5;
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6;
    CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7;
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8;
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16;
    CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT = 17;
    CU_DEVICE_ATTRIBUTE_INTEGRATED = 18;
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39;
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97;
    CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115;
}

numbers! {
    /// What can be set of a function.
    CUfunction_attribute(c_int):
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8;
}

numbers! {
    /// What can be set of a memory pool.
    CUmemPool_attribute(c_int):
    CU_MEMPOOL_ATTR_RELEASE_THRESHOLD = 4;
}

numbers! {
    /// What other threads may do during a capture.
    CUstreamCaptureMode(c_int):
    CU_STREAM_CAPTURE_MODE_RELAXED = 2;
}

/// A flag of streams: no order with the default stream.
pub(crate) const CU_STREAM_NON_BLOCKING: u32 = 1;
/// A flag of events: they measure no time.
pub(crate) const CU_EVENT_DISABLE_TIMING: u32 = 2;

pub(crate) type CUdevice = c_int;
pub(crate) type CUdeviceptr = u64;
pub(crate) type CUcontext = *mut c_void;
pub(crate) type CUmodule = *mut c_void;
pub(crate) type CUfunction = *mut c_void;
pub(crate) type CUstream = *mut c_void;
pub(crate) type CUevent = *mut c_void;
pub(crate) type CUgraph = *mut c_void;
pub(crate) type CUgraphExec = *mut c_void;
pub(crate) type CUgraphNode = *mut c_void;
pub(crate) type CUmemoryPool = *mut c_void;

/// A launch in a graph, version 2.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CUDA_KERNEL_NODE_PARAMS {
    pub(crate) func: CUfunction,
    pub(crate) gridDimX: u32,
    pub(crate) gridDimY: u32,
    pub(crate) gridDimZ: u32,
    pub(crate) blockDimX: u32,
    pub(crate) blockDimY: u32,
    pub(crate) blockDimZ: u32,
    pub(crate) sharedMemBytes: u32,
    pub(crate) kernelParams: *mut *mut c_void,
    pub(crate) extra: *mut *mut c_void,
    pub(crate) kern: *mut c_void,
    pub(crate) ctx: CUcontext,
}

/// How a node of a graph waits for another.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CUgraphEdgeData {
    pub(crate) from_port: u8,
    pub(crate) to_port: u8,
    pub(crate) kind: u8,
    pub(crate) reserved: [u8; 5],
}

/// The port of a kernel that opens when all its groups are through or let dependents be launched.
pub(crate) const CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: u8 = 1;
/// The kind of waiting that ends at an instruction of the kernel that waits.
pub(crate) const CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC: u8 = 1;

/// Names of the library: Linux, then Windows.
const LIBRARIES: [&str; 3] = ["libcuda.so.1", "libcuda.so", "nvcuda.dll"];

static DRIVER: LazyLock<Option<Driver>> = LazyLock::new(|| {
    // SAFETY: loading NVIDIA's driver runs its initialisers only.
    let library = LIBRARIES.iter().find_map(|name| unsafe { Library::new(*name) }.ok())?;
    Some(Driver::of(library))
});

/// Whether there is a driver.
pub(crate) fn is_present() -> bool {
    DRIVER.is_some()
}

/// Declares the functions, each of which calls the driver's.
macro_rules! functions {
    ($(fn $name:ident($($arg:ident: $type:ty),*);)*) => {
        struct Driver {
            $($name: Option<unsafe extern "C" fn($($type),*) -> CUresult>,)*
            /// Keeps the code loaded.
            _library: Library,
        }

        impl Driver {
            fn of(library: Library) -> Driver {
                Driver {
                    $(
                        // SAFETY: the signature is that of NVIDIA's header, which never changes
                        // under one name.
                        $name: unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                            .ok()
                            .map(|symbol| *symbol),
                    )*
                    _library: library,
                }
            }
        }

        $(
            /// # Safety
            /// As the driver's manual says of the function.
            pub(crate) unsafe fn $name($($arg: $type),*) -> CUresult {
                #[cfg(test)]
                if crate::faults::DRIVER.fails(stringify!($name)) {
                    return CUresult(999);
                }
                match DRIVER.as_ref().and_then(|driver| driver.$name) {
                    // SAFETY: the caller's promise.
                    Some(function) => unsafe { function($($arg),*) },
                    None => CUresult::CUDA_ERROR_NOT_FOUND,
                }
            }
        )*
    };
}

functions! {
    // The driver and its devices.
    fn cuInit(flags: u32);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuGetErrorString(error: CUresult, text: *mut *const c_char);
    fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: CUdevice);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice);
    fn cuDeviceGetDefaultMemPool(pool: *mut CUmemoryPool, device: CUdevice);
    fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    fn cuCtxSetCurrent(context: CUcontext);
    // Code.
    fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void);
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char);
    fn cuFuncSetAttribute(function: CUfunction, attribute: CUfunction_attribute, value: c_int);
    fn cuModuleUnload(module: CUmodule);
    fn cuLaunchKernel(function: CUfunction, grid_dim_x: u32, grid_dim_y: u32, grid_dim_z: u32, block_dim_x: u32, block_dim_y: u32, block_dim_z: u32, shared_mem_bytes: u32, stream: CUstream, kernel_params: *mut *mut c_void, extra: *mut *mut c_void);
    // Memory.
    fn cuMemAlloc_v2(address: *mut CUdeviceptr, bytes: usize);
    fn cuMemFree_v2(address: CUdeviceptr);
    fn cuMemAllocAsync(address: *mut CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemFreeAsync(address: CUdeviceptr, stream: CUstream);
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: u32);
    fn cuMemFreeHost(pointer: *mut c_void);
    fn cuMemPoolSetAttribute(pool: CUmemoryPool, attribute: CUmemPool_attribute, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize);
    fn cuMemcpyDtoDAsync_v2(to: CUdeviceptr, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream);
    fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream);
    // Streams and events.
    fn cuStreamCreate(stream: *mut CUstream, flags: u32);
    fn cuStreamDestroy_v2(stream: CUstream);
    fn cuStreamSynchronize(stream: CUstream);
    fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: u32);
    fn cuStreamBeginCapture_v2(stream: CUstream, mode: CUstreamCaptureMode);
    fn cuStreamEndCapture(stream: CUstream, graph: *mut CUgraph);
    fn cuEventCreate(event: *mut CUevent, flags: u32);
    fn cuEventDestroy_v2(event: CUevent);
    fn cuEventElapsedTime(milliseconds: *mut f32, start: CUevent, end: CUevent);
    fn cuEventRecord(event: CUevent, stream: CUstream);
    fn cuEventSynchronize(event: CUevent);
    // Graphs; those of version 2 are in drivers since CUDA 12.
    fn cuGraphCreate(graph: *mut CUgraph, flags: u32);
    fn cuGraphDestroy(graph: CUgraph);
    fn cuGraphAddKernelNode_v2(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize, node_params: *const CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphAddChildGraphNode(node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode, num_dependencies: usize, child_graph: CUgraph);
    // In drivers since CUDA 12.3.
    fn cuGraphAddDependencies_v2(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data: *const CUgraphEdgeData, num_dependencies: usize);
    fn cuGraphInstantiateWithFlags(exec: *mut CUgraphExec, graph: CUgraph, flags: u64);
    fn cuGraphLaunch(exec: CUgraphExec, stream: CUstream);
    fn cuGraphExecDestroy(exec: CUgraphExec);
    fn cuGraphExecKernelNodeSetParams_v2(exec: CUgraphExec, node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphExecChildGraphNodeSetParams(exec: CUgraphExec, node: CUgraphNode, child_graph: CUgraph);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_an_error() {
        if is_present() {
            return;
        }
        let mut version = 0;
        // SAFETY: there is no driver, so nothing is called.
        let code = unsafe { cuDriverGetVersion(&mut version) };
        assert_eq!(code, CUresult::CUDA_ERROR_NOT_FOUND);
    }

    #[test]
    fn codes_that_no_header_lists_are_codes() {
        assert_ne!(CUresult(12345), CUresult::CUDA_SUCCESS);
        assert!(format!("{:?}", CUresult(12345)).contains("12345"));
    }
}
