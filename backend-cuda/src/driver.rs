//! The driver API behind safe handles; those of graphs are in `graph`.
//!
//! What makes calls sound is stated once here and referred to below as *valid handles*: a handle
//! is made only from an object that the driver returned, is released only on drop, and everything
//! made in a context holds that context. The driver may be called from any thread; what acts on
//! "the current context" runs after [`Context::bind`].
//!
//! Nothing here is reached before [`version`] has seen the library, of at least the version
//! [`MINIMUM`], which has all functions that are used without asking.

use crate::sys::{self, DRIVER_FILE, LIBRARY_PATH, cuda};
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute as Attribute, CUdeviceptr, CUevent, CUevent_flags,
    CUfunction, CUfunction_attribute, CUjit_option, CUjitInputType, CUlinkState,
    CUmemPool_attribute, CUmodule, CUresult, CUstream, CUstream_flags,
};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use zyx_core::hal::{DeviceKind, TrafficCounter, Watch, ask_until};

/// The oldest driver used, CUDA 11.4: graphs, memory pools, all of what is called here but the
/// functions behind [`has_graphs`].
pub(crate) const MINIMUM: i32 = 11_040;

/// An error of the driver, by its number: a newer driver has some that no header of today lists.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(u32);

/// Errors after which a context cannot be used any more.
const LOST: [CUresult; 11] = [
    CUresult::CUDA_ERROR_ILLEGAL_ADDRESS,
    CUresult::CUDA_ERROR_LAUNCH_FAILED,
    CUresult::CUDA_ERROR_LAUNCH_TIMEOUT,
    CUresult::CUDA_ERROR_MISALIGNED_ADDRESS,
    CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION,
    CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE,
    CUresult::CUDA_ERROR_INVALID_PC,
    CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR,
    CUresult::CUDA_ERROR_ECC_UNCORRECTABLE,
    CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED,
    CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE,
];

/// The answer of `cuEventQuery` before the event is reached.
const NOT_READY: u32 = CUresult::CUDA_ERROR_NOT_READY as u32;

impl Code {
    /// The work that waited was stopped.
    pub(crate) const STOPPED: Code = Code(NOT_READY);

    /// Whether memory ran out.
    pub(crate) fn is_memory(self) -> bool {
        self.0 == CUresult::CUDA_ERROR_OUT_OF_MEMORY as u32
    }

    /// Whether the context cannot be used any more.
    pub(crate) fn is_lost(self) -> bool {
        LOST.iter().any(|&lost| self.0 == lost as u32)
    }

    /// The driver's own words.
    fn text(self) -> Option<&'static CStr> {
        let mut text = ptr::null();
        // SAFETY: the signature of NVIDIA's header, but with a number for the code.
        let describe: unsafe extern "C" fn(u32, *mut *const c_char) -> u32 =
            unsafe { sys::table().cuGetErrorString?.as_type() };
        // SAFETY: the place is for the result.
        let known = unsafe { describe(self.0, &mut text) };
        // SAFETY: not null, ends in zero, lives as long as the driver.
        (known == 0 && !text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "{} (CUDA error {})", text.to_string_lossy(), self.0),
            None if self.0 == CUresult::CUDA_ERROR_STUB_LIBRARY as u32 => {
                f.write_str("libcuda.so is one to link with, not a driver; install NVIDIA's driver")
            }
            None => write!(
                f,
                "the CUDA driver returned error {}, which it does not describe; start the program \
                 again, and reinstall NVIDIA's driver if it comes back",
                self.0
            ),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) type Result<T = (), E = Code> = std::result::Result<T, E>;

pub(crate) fn check(code: u32) -> Result {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// The value a function writes to the place it is given.
pub(crate) fn get<T>(call: impl FnOnce(*mut T) -> u32) -> Result<T> {
    let mut value = MaybeUninit::uninit();
    check(call(value.as_mut_ptr()))?;
    // SAFETY: the driver reported success, so it has written the value.
    Ok(unsafe { value.assume_init() })
}

/// The driver's version, as 13000 for CUDA 13.0, initialised on first use; the reason if there is
/// none that can be used.
pub(crate) fn version() -> Result<i32, String> {
    static VERSION: LazyLock<Result<i32, String>> = LazyLock::new(initialise);
    VERSION.clone()
}

fn initialise() -> Result<i32, String> {
    let lacks = sys::lacks().map_err(|reason| {
        format!(
            "there is no CUDA driver on this machine: {reason}; install NVIDIA's driver, or put \
             the folder of {DRIVER_FILE} into {LIBRARY_PATH}"
        )
    })?;
    let damaged = |names: &[&str]| {
        let (first, n) = (names[0], names.len());
        format!(
            "the CUDA driver's library ({DRIVER_FILE}) is damaged or not NVIDIA's: it lacks {first} \
             ({n} functions in all); reinstall NVIDIA's driver, or take what stands before it out \
             of {LIBRARY_PATH}"
        )
    };
    let failed = |name: &str, code: Code| format!("{name} of the CUDA driver: {code}");
    // The first question, since an older driver also lacks functions.
    if lacks.contains(&"cuDriverGetVersion") {
        return Err(damaged(lacks));
    }
    // SAFETY: the place is for the result.
    let version = get(|v| unsafe { cuda!(cuDriverGetVersion(v)) })
        .map_err(|code| failed("cuDriverGetVersion", code))?;
    let dotted = |version: i32| format!("{}.{}", version / 1000, version % 1000 / 10);
    if version < MINIMUM {
        return Err(format!(
            "the CUDA driver is too old: it is one of CUDA {}, and {} or later is needed; install \
             a newer driver of NVIDIA's",
            dotted(version),
            dotted(MINIMUM),
        ));
    }
    let needed: Vec<&str> =
        lacks.iter().copied().filter(|name| !name.starts_with("cuGraph")).collect();
    if !needed.is_empty() {
        return Err(damaged(&needed));
    }
    // SAFETY: the function is there.
    check(unsafe { cuda!(cuInit(0)) }).map_err(|code| failed("cuInit", code))?;
    Ok(version)
}

/// Whether there is no driver, or a driver without a device.
pub(crate) fn is_absent() -> bool {
    let none = CUresult::CUDA_ERROR_NO_DEVICE as u32;
    // SAFETY: the function is there.
    sys::lacks()
        .map_or(true, |lacks| !lacks.contains(&"cuInit") && unsafe { cuda!(cuInit(0)) } == none)
}

/// Whether the driver has the functions that [`crate::graph`] calls, as those since CUDA 12.0 do.
pub(crate) fn has_graphs() -> bool {
    let is_graphs = |name: &&str| name.starts_with("cuGraph") && *name != OVERLAP;
    sys::lacks().is_ok_and(|lacks| !lacks.iter().any(is_graphs))
}

/// What lets a node of a graph wait for another in its own code.
const OVERLAP: &str = "cuGraphAddDependencies_v2";

/// Whether the driver can, given that devices can, as those since CUDA 12.3.
pub(crate) fn has_overlap() -> bool {
    has_graphs() && sys::lacks().is_ok_and(|lacks| !lacks.contains(&OVERLAP))
}

/// A device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceId(CUdevice);

/// All devices.
///
/// # Errors
/// When there is no driver that can be used, or it does not tell.
pub(crate) fn devices() -> Result<Vec<DeviceId>, String> {
    version()?;
    // SAFETY: the driver is initialised; the place is for the result.
    let count = get(|n| unsafe { cuda!(cuDeviceGetCount(n)) });
    // SAFETY: as above.
    let device = |ordinal| get(|d| unsafe { cuda!(cuDeviceGet(d, ordinal)) }).map(DeviceId);
    let devices = count.and_then(|count| (0..count).map(device).collect());
    devices.map_err(|code| format!("asking the CUDA driver for devices: {code}"))
}

impl DeviceId {
    /// An attribute, 0 if the driver does not know it.
    pub(crate) fn attribute(self, attribute: Attribute) -> Result<i32> {
        // SAFETY: a device of the driver; the place is for the result.
        match get(|n| unsafe { cuda!(cuDeviceGetAttribute(n, attribute, self.0)) }) {
            Err(code) if code.0 == CUresult::CUDA_ERROR_INVALID_VALUE as u32 => Ok(0),
            other => other,
        }
    }

    pub(crate) fn name(self) -> String {
        let mut name = [0u8; 256];
        // SAFETY: a device of the driver; the length is the buffer's.
        let _ = unsafe { cuda!(cuDeviceGetName(name.as_mut_ptr().cast(), 256, self.0)) };
        let text = CStr::from_bytes_until_nul(&name).unwrap_or_default();
        text.to_string_lossy().into_owned()
    }

    pub(crate) fn memory(self) -> u64 {
        // SAFETY: a device of the driver; the place is for the result.
        get(|n| unsafe { cuda!(cuDeviceTotalMem_v2(n, self.0)) }).unwrap_or(0) as u64
    }
}

/// A device's primary context, shared with libraries such as cuBLAS. Kept for the process.
#[derive(Debug)]
pub(crate) struct Context {
    raw: CUcontext,
    device: DeviceId,
}

// SAFETY: contexts may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// The context of a device, retained once.
    pub(crate) fn of(device: DeviceId) -> Result<Arc<Context>> {
        static CONTEXTS: Mutex<Vec<Arc<Context>>> = Mutex::new(Vec::new());
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(context) = contexts.iter().find(|c| c.device == device) {
            return Ok(Arc::clone(context));
        }
        // SAFETY: a device of the driver; the place is for the result.
        let raw = get(|c| unsafe { cuda!(cuDevicePrimaryCtxRetain(c, device.0)) })?;
        let context = Arc::new(Context { raw, device });
        contexts.push(Arc::clone(&context));
        Ok(context)
    }

    /// Makes this the calling thread's current context.
    pub(crate) fn bind(&self) -> Result {
        // SAFETY: a valid handle.
        check(unsafe { cuda!(cuCtxSetCurrent(self.raw)) })
    }

    /// Lets freed memory stay in the device's pool instead of going back to the system whenever
    /// a stream is waited for.
    pub(crate) fn keep_pool(&self) -> Result {
        let mut bytes = u64::MAX;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: a device of the driver; the place is for the result.
        let pool = get(|p| unsafe { cuda!(cuDeviceGetDefaultMemPool(p, self.device.0)) })?;
        // SAFETY: the attribute takes a 64-bit number.
        check(unsafe { cuda!(cuMemPoolSetAttribute(pool, attribute, (&raw mut bytes).cast())) })
    }

    /// Gives what the pool keeps back to the system.
    pub(crate) fn trim_pool(&self) -> Result {
        // SAFETY: a device of the driver; the place is for the result.
        let pool = get(|p| unsafe { cuda!(cuDeviceGetDefaultMemPool(p, self.device.0)) })?;
        // SAFETY: the pool is the device's own.
        check(unsafe { cuda!(cuMemPoolTrimTo(pool, 0)) })
    }
}

/// Loaded machine code.
#[derive(Debug)]
pub(crate) struct Module {
    raw: CUmodule,
    context: Arc<Context>,
}

// SAFETY: modules belong to a context, not to a thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

/// The machine code of assembly for the device of a context. Unlike `cuModuleLoadData`, which holds a lock of the
/// driver meanwhile, this runs on several threads at once (four took a quarter of the time of one for 370 kernels,
/// driver 580 on an H100's host).
///
/// # Errors
/// With the assembler's words.
pub(crate) fn assemble(context: &Arc<Context>, source: &str) -> Result<Vec<u8>, String> {
    let text = |code: Code| code.to_string();
    context.bind().map_err(text)?;
    let source = CString::new(source).map_err(|e| e.to_string())?;
    let mut log = vec![0u8; 4096];
    let keys =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    // The driver takes numbers in the place of pointers.
    let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
    let (n, keys, values) = (keys.len() as u32, keys.as_ptr().cast_mut(), values.as_mut_ptr());
    // SAFETY: as many options as values. The driver may write to these and to the log until the linker is destroyed,
    // which is before they go.
    let raw = get(|l| unsafe { cuda!(cuLinkCreate_v2(n, keys, values, l)) }).map_err(text)?;
    let linker = Linker(raw);
    let (bytes, name) = (source.as_bytes_with_nul(), c"kernel".as_ptr());
    let (keys, values) = (ptr::null_mut(), ptr::null_mut());
    let (from, len) = (bytes.as_ptr().cast_mut().cast(), bytes.len());
    let kind = CUjitInputType::CU_JIT_INPUT_PTX;
    let added = || -> Result<Vec<u8>> {
        // SAFETY: a valid handle and text of this length that ends in zero; no options.
        check(unsafe {
            cuda!(cuLinkAddData_v2(linker.0, kind, from, len, name, 0, keys, values))
        })?;
        let mut size = 0;
        // SAFETY: a valid handle and places for the results.
        let code = get(|code| unsafe { cuda!(cuLinkComplete(linker.0, code, &mut size)) })?;
        // SAFETY: the linker owns so many bytes until it is destroyed.
        Ok(unsafe { std::slice::from_raw_parts(code.cast::<u8>(), size) }.to_vec())
    };
    let code = added();
    drop(linker);
    code.map_err(|code| {
        let log = String::from_utf8_lossy(&log);
        format!("{code}\n{}", log.trim_matches('\0'))
    })
}

/// A linker, destroyed once.
struct Linker(CUlinkState);

impl Drop for Linker {
    fn drop(&mut self) {
        // SAFETY: a valid handle.
        let _ = unsafe { cuda!(cuLinkDestroy(self.0)) };
    }
}

impl Module {
    /// Loads machine code, or assembly that ends in zero.
    pub(crate) fn new(context: &Arc<Context>, image: &[u8]) -> Result<Module> {
        context.bind()?;
        // SAFETY: the driver checks the image, whose headers state its length.
        let raw = get(|m| unsafe { cuda!(cuModuleLoadData(m, image.as_ptr().cast())) })?;
        Ok(Module { raw, context: Arc::clone(context) })
    }

    /// An entry point, valid as long as the module, whose launches ask for so much shared storage.
    pub(crate) fn function(&self, name: &str, shared: usize) -> Result<Function> {
        let name =
            CString::new(name).map_err(|_| Code(CUresult::CUDA_ERROR_INVALID_VALUE as u32))?;
        // SAFETY: a valid handle and a string that ends in zero.
        let raw = get(|f| unsafe { cuda!(cuModuleGetFunction(f, self.raw, name.as_ptr())) })?;
        if shared > 0 {
            const BYTES: CUfunction_attribute =
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a valid handle; the driver checks the number.
            check(unsafe { cuda!(cuFuncSetAttribute(raw, BYTES, shared as c_int)) })?;
        }
        Ok(Function { raw, shared: shared as u32 })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: a valid handle, released once; the driver waits for launches under way.
            let _ = unsafe { cuda!(cuModuleUnload(self.raw)) };
        }
    }
}

/// An entry point of a module that outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) raw: CUfunction,
    /// Bytes of shared storage that its launches ask for.
    pub(crate) shared: u32,
}

// SAFETY: functions belong to a module, not to a thread.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// Groups and threads per axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) groups: [u32; 3],
    pub(crate) local: [u32; 3],
}

/// An ordered queue of commands.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) raw: CUstream,
    context: Arc<Context>,
    pub(crate) traffic: Arc<TrafficCounter>,
}

// SAFETY: streams may be used from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream whose work is counted so.
    pub(crate) fn new(context: &Arc<Context>, traffic: &Arc<TrafficCounter>) -> Result<Stream> {
        context.bind()?;
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a context is current; the place is for the result.
        let raw = get(|s| unsafe { cuda!(cuStreamCreate(s, flags)) })?;
        Ok(Stream { raw, context: Arc::clone(context), traffic: Arc::clone(traffic) })
    }

    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Runs a kernel.
    ///
    /// # Safety
    /// `params` are pointers to the values of all of the kernel's parameters, which it can be run
    /// with: buffers are as long as it assumes and stay until it is done.
    pub(crate) unsafe fn launch(
        &self,
        function: Function,
        grid: Grid,
        params: &mut [*mut c_void],
    ) -> Result {
        self.traffic.submitted();
        let (g, l) = (grid.groups, grid.local);
        // SAFETY: valid handles; the rest is the caller's promise.
        check(unsafe {
            cuda!(cuLaunchKernel(
                function.raw,
                g[0],
                g[1],
                g[2],
                l[0],
                l[1],
                l[2],
                function.shared,
                self.raw,
                params.as_mut_ptr(),
                ptr::null_mut(),
            ))
        })
    }

    /// Copies pinned host memory to a device.
    pub(crate) fn upload(&self, to: CUdeviceptr, from: &Pinned, bytes: usize) -> Result {
        debug_assert!(bytes <= from.bytes, "the copy fits the staging memory");
        self.traffic.submitted();
        // SAFETY: valid handles; the staging memory is kept until an event after this copy.
        check(unsafe { cuda!(cuMemcpyHtoDAsync_v2(to, from.raw, bytes, self.raw)) })
    }

    /// Copies from a device to pinned host memory.
    pub(crate) fn download(&self, to: &Pinned, from: CUdeviceptr, bytes: usize) -> Result {
        debug_assert!(bytes <= to.bytes, "the copy fits the staging memory");
        self.traffic.submitted();
        // SAFETY: as for `upload`.
        check(unsafe { cuda!(cuMemcpyDtoHAsync_v2(to.raw, from, bytes, self.raw)) })
    }

    pub(crate) fn copy(&self, to: CUdeviceptr, from: CUdeviceptr, bytes: usize) -> Result {
        self.traffic.submitted();
        // SAFETY: valid handles; the driver checks that addresses are its own.
        check(unsafe { cuda!(cuMemcpyDtoDAsync_v2(to, from, bytes, self.raw)) })
    }

    /// Waits until everything queued is done.
    pub(crate) fn synchronize(&self) -> Result {
        self.context.bind()?;
        // SAFETY: a valid handle.
        check(unsafe { cuda!(cuStreamSynchronize(self.raw)) })
    }

    /// Moves an event to the end of the queue as it is now.
    pub(crate) fn record(&self, event: &Event) -> Result {
        // SAFETY: valid handles.
        check(unsafe { cuda!(cuEventRecord(event.raw, self.raw)) })
    }

    /// Makes later commands wait for an event.
    pub(crate) fn wait(&self, event: &Event) -> Result {
        // SAFETY: valid handles.
        check(unsafe { cuda!(cuStreamWaitEvent(self.raw, event.raw, 0)) })
    }

    /// Memory that can be used by what is queued here after the call.
    pub(crate) fn alloc(&self, bytes: usize) -> Result<CUdeviceptr> {
        // SAFETY: a valid handle; the place is for the result.
        get(|p| unsafe { cuda!(cuMemAllocAsync(p, bytes, self.raw)) })
    }

    /// Frees memory of [`alloc`](Self::alloc) once what is queued here is done.
    pub(crate) fn free(&self, address: CUdeviceptr) -> Result {
        // SAFETY: a valid handle; the caller owns the memory and forgets it.
        check(unsafe { cuda!(cuMemFreeAsync(address, self.raw)) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: a valid handle, released once. What is queued still runs.
            let _ = unsafe { cuda!(cuStreamDestroy_v2(self.raw)) };
        }
    }
}

/// Memory outside of the pool, where a device has none; freed after all work on the device.
pub(crate) fn alloc(context: &Context, bytes: usize) -> Result<CUdeviceptr> {
    context.bind()?;
    // SAFETY: a context is current; the place is for the result.
    get(|p| unsafe { cuda!(cuMemAlloc_v2(p, bytes)) })
}

/// Frees memory of [`alloc`], waiting for all work on the device.
pub(crate) fn free(context: &Context, address: CUdeviceptr) -> Result {
    context.bind()?;
    // SAFETY: the caller owns the memory and forgets it.
    check(unsafe { cuda!(cuMemFree_v2(address)) })
}

/// A point in a stream.
#[derive(Debug)]
pub(crate) struct Event {
    raw: CUevent,
    context: Arc<Context>,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event; `timed` if times between such events will be asked for, which costs a little.
    pub(crate) fn new(context: &Arc<Context>, timed: bool) -> Result<Event> {
        context.bind()?;
        let flags = if timed { 0 } else { CUevent_flags::CU_EVENT_DISABLE_TIMING as u32 };
        // SAFETY: a context is current; the place is for the result.
        let raw = get(|e| unsafe { cuda!(cuEventCreate(e, flags)) })?;
        Ok(Event { raw, context: Arc::clone(context) })
    }

    /// Waits until it is reached, or with [`Code::STOPPED`] until the work that waits is stopped.
    pub(crate) fn wait(&self) -> Result {
        self.context.bind()?;
        if !Watch::here().may_stop() {
            // SAFETY: a valid handle.
            return check(unsafe { cuda!(cuEventSynchronize(self.raw)) });
        }
        let is_reached = ask_until(DeviceKind::Gpu, || {
            // SAFETY: a valid handle.
            match unsafe { cuda!(cuEventQuery(self.raw)) } {
                NOT_READY => Ok(false),
                code => check(code).map(|()| true),
            }
        });
        if is_reached? { Ok(()) } else { Err(Code::STOPPED) }
    }

    /// Milliseconds from an earlier event to this, both done.
    pub(crate) fn since(&self, earlier: &Event) -> Option<f32> {
        self.context.bind().ok()?;
        // SAFETY: valid handles; the place is for the result.
        get(|ms| unsafe { cuda!(cuEventElapsedTime(ms, earlier.raw, self.raw)) }).ok()
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: a valid handle, released once.
            let _ = unsafe { cuda!(cuEventDestroy_v2(self.raw)) };
        }
    }
}

/// Host memory that a device reads and writes directly.
#[derive(Debug)]
pub(crate) struct Pinned {
    raw: *mut c_void,
    bytes: usize,
    context: Arc<Context>,
}

// SAFETY: plain memory, owned.
unsafe impl Send for Pinned {}

impl Pinned {
    pub(crate) fn new(context: &Arc<Context>, bytes: usize) -> Result<Pinned> {
        context.bind()?;
        // SAFETY: a context is current; the place is for the result.
        let raw = get(|p| unsafe { cuda!(cuMemHostAlloc(p, bytes, 0)) })?;
        // SAFETY: as long as just allocated; zeroed, so that it may be seen as bytes.
        unsafe { ptr::write_bytes(raw.cast::<u8>(), 0, bytes) };
        Ok(Pinned { raw, bytes, context: Arc::clone(context) })
    }

    /// The bytes, of which no copy is under way.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: initialised memory of this length that is owned; exclusive by `&mut`. Callers
        // wait for copies before.
        unsafe { std::slice::from_raw_parts_mut(self.raw.cast(), self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated so, freed once; the driver waits for copies under way.
            let _ = unsafe { cuda!(cuMemFreeHost(self.raw)) };
        }
    }
}
