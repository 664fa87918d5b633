//! The OpenCL API behind safe handles: all `unsafe` of the crate, but for the calls of what is unsafe
//! here in `staging`.
//!
//! A handle owns one reference to an OpenCL object and gives it back on drop. What makes calls
//! sound is stated once here and referred to below as *valid handles*: a handle is made only from
//! an object that the driver returned, is released only on drop, and objects made from a context
//! keep that context alive inside of the driver.
//!
//! OpenCL's functions may be called from any thread, except that the arguments of one kernel
//! object must not be set by two at a time: [`Kernel`] alone is not `Sync`.
//!
//! The library is loaded at run time. Where it is missing, the list of devices is empty.

mod shared;

pub(crate) use shared::{Look, Mapped, View};

use cl3::types::{
    CL_FALSE, CL_TRUE, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel,
    cl_mem, cl_program, cl_uint,
};
use cl3::{command_queue, context, device, event, kernel, memory, platform, program};
use std::ffi::{CString, c_void};
use std::fmt;
use std::ptr;
use std::sync::LazyLock;

/// An error number of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(cl_int);

impl Code {
    /// Whether memory ran out.
    pub(crate) fn is_memory(self) -> bool {
        use cl3::error_codes::{
            CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY,
            CL_OUT_OF_RESOURCES,
        };
        let codes = [
            CL_MEM_OBJECT_ALLOCATION_FAILURE,
            CL_OUT_OF_RESOURCES,
            CL_OUT_OF_HOST_MEMORY,
            CL_INVALID_BUFFER_SIZE,
        ];
        codes.contains(&self.0)
    }

    /// Whether the device cannot be used any more; a faulting kernel invalidates the queue, or what
    /// comes after it fails.
    pub(crate) fn is_lost(self) -> bool {
        use cl3::error_codes::{
            CL_CONTEXT_TERMINATED_KHR, CL_DEVICE_NOT_AVAILABLE,
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_COMMAND_QUEUE,
        };
        let codes = [
            CL_DEVICE_NOT_AVAILABLE,
            CL_INVALID_COMMAND_QUEUE,
            CL_CONTEXT_TERMINATED_KHR,
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
        ];
        codes.contains(&self.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", cl3::error_codes::error_text(self.0), self.0)
    }
}

type Result<T = (), E = Code> = std::result::Result<T, E>;

/// Makes a call of the driver, which a test may let fail.
fn call<T>(name: &'static str, call: impl FnOnce() -> Result<T, cl_int>) -> Result<T> {
    #[cfg(test)]
    if crate::faults::DRIVER.fails(name) {
        return Err(Code(cl3::error_codes::CL_OUT_OF_HOST_MEMORY));
    }
    #[cfg(not(test))]
    let _ = name;
    call().map_err(Code)
}

/// A device; valid for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DeviceId(cl_device_id);

// SAFETY: a device id of a platform is an opaque constant that any thread may pass.
unsafe impl Send for DeviceId {}
// SAFETY: as above.
unsafe impl Sync for DeviceId {}

/// All devices that can compile and run: GPUs and accelerators before CPUs, otherwise in the
/// order of the platforms. Found once per process and by one thread: a driver sets itself up in
/// these calls, and PoCL's crashes when two threads make them at a time.
pub(crate) fn devices() -> &'static [DeviceId] {
    static DEVICES: LazyLock<Vec<DeviceId>> = LazyLock::new(|| {
        if !cl3::is_opencl_runtime_available() {
            return Vec::new();
        }
        let platforms = platform::get_platform_ids().unwrap_or_default();
        let mut devices: Vec<DeviceId> = platforms
            .into_iter()
            .flat_map(|p| device::get_device_ids(p, device::CL_DEVICE_TYPE_ALL).unwrap_or_default())
            .map(DeviceId)
            .filter(|d| d.number(device::CL_DEVICE_AVAILABLE) == 1)
            .filter(|d| d.number(device::CL_DEVICE_COMPILER_AVAILABLE) == 1)
            .filter(|d| is_recent(&d.text(device::CL_DEVICE_VERSION)))
            .collect();
        devices.sort_by_key(|d| d.is_cpu());
        devices
    });
    &DEVICES
}

/// Whether a version, as `OpenCL 1.2 pocl`, is one that generated code is for.
fn is_recent(version: &str) -> bool {
    let numbers = version.strip_prefix("OpenCL ").and_then(|rest| rest.split(' ').next());
    let parts = numbers.and_then(|text| text.split_once('.'));
    let parsed = parts.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    parsed.is_none_or(|version| version >= (1, 2))
}

impl DeviceId {
    fn data(self, what: cl_uint) -> Vec<u8> {
        device::get_device_data(self.0, what).unwrap_or_default()
    }

    /// An integer the driver reports, 0 if it does not.
    pub(crate) fn number(self, what: cl_uint) -> u64 {
        let mut wide = [0; 8];
        for (to, from) in wide.iter_mut().zip(self.data(what)) {
            *to = from;
        }
        u64::from_le_bytes(wide)
    }

    /// A list of sizes the driver reports.
    pub(crate) fn sizes(self, what: cl_uint) -> Vec<usize> {
        const WORD: usize = size_of::<usize>();
        let data = self.data(what);
        let words = data.chunks_exact(WORD);
        words.map(|w| usize::from_ne_bytes(w.try_into().unwrap_or([0; WORD]))).collect()
    }

    /// A string the driver reports.
    pub(crate) fn text(self, what: cl_uint) -> String {
        String::from_utf8_lossy(&self.data(what)).trim_matches(['\0', ' ', '\n']).to_owned()
    }

    /// Whether the device is the host's processor.
    pub(crate) fn is_cpu(self) -> bool {
        self.number(device::CL_DEVICE_TYPE) & device::CL_DEVICE_TYPE_CPU != 0
    }

    /// The platform's name and version.
    pub(crate) fn platform(self) -> String {
        let id = self.number(device::CL_DEVICE_PLATFORM) as usize as *mut c_void;
        let data = platform::get_platform_data(id, platform::CL_PLATFORM_VERSION);
        String::from_utf8_lossy(&data.unwrap_or_default()).trim_matches(['\0', ' ']).to_owned()
    }
}

/// Declares a handle: its raw type and the function that gives it back.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name($raw);

        // SAFETY: OpenCL objects belong to the process, not to a thread.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: a valid handle, released once. A failure leaves nothing to do.
                let _ = unsafe { $release(self.0) };
            }
        }
    };
}

handle!(
    /// What objects of one device live in.
    Context, cl_context, context::release_context
);
handle!(
    /// Device memory. The driver keeps it until commands that use it have finished.
    Memory, cl_mem, memory::release_mem_object
);
handle!(
    /// A queue of commands.
    Queue, cl_command_queue, command_queue::release_command_queue
);
handle!(
    /// The completion of a command.
    Event, cl_event, event::release_event
);
handle!(
    /// Compiled source.
    Program, cl_program, program::release_program
);
handle!(
    /// An entry point with arguments. Not `Sync`: setting arguments is not thread-safe.
    Kernel, cl_kernel, kernel::release_kernel
);

// SAFETY: only the arguments of kernels are unsafe to change from several threads.
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Sync for Queue {}
// SAFETY: as above.
unsafe impl Sync for Event {}
// SAFETY: as above.
unsafe impl Sync for Program {}

/// When the commands of a queue start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// One after the other.
    Given,
    /// Whenever nothing they wait for is missing.
    Any,
    /// One after the other, and their times are measured. NVIDIA's driver takes twice as long over
    /// short kernels on such a queue (an H200 decoded 590 tokens a second with it, 1,010 without).
    Timed,
}

impl Context {
    pub(crate) fn new(device: DeviceId) -> Result<Context> {
        let new = || context::create_context(&[device.0], ptr::null(), None, ptr::null_mut());
        call("clCreateContext", new).map(Context)
    }

    /// Memory of `bytes` bytes, which must not be zero.
    pub(crate) fn memory(&self, bytes: usize) -> Result<Memory> {
        // SAFETY: a valid handle; the flags ask for memory of the driver's own, so there is no
        // host pointer.
        let new = || unsafe {
            memory::create_buffer(self.0, memory::CL_MEM_READ_WRITE, bytes, ptr::null_mut())
        };
        call("clCreateBuffer", new).map(Memory)
    }

    /// A queue.
    pub(crate) fn queue(&self, device: DeviceId, order: Order) -> Result<Queue> {
        let properties = match order {
            Order::Given => 0,
            Order::Any => command_queue::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
            Order::Timed => command_queue::CL_QUEUE_PROFILING_ENABLE,
        };
        // SAFETY: a valid handle, and the device its context was made for.
        let new = || unsafe { command_queue::create_command_queue(self.0, device.0, properties) };
        call("clCreateCommandQueue", new).map(Queue)
    }

    /// Compiles source; an error is the compiler's log.
    pub(crate) fn build(
        &self,
        device: DeviceId,
        source: &str,
        options: &str,
    ) -> Result<Program, String> {
        let new = || program::create_program_with_source(self.0, &[source]);
        let program = call("clCreateProgramWithSource", new).map(Program);
        program.map_err(|code| code.to_string())?.finish(device, options)
    }

    /// A program from what [`Program::binary`] gave on the same device and driver.
    pub(crate) fn load(
        &self,
        device: DeviceId,
        binary: &[u8],
        options: &str,
    ) -> Result<Program, String> {
        // SAFETY: a valid handle, and the device its context was made for.
        let new = || unsafe { program::create_program_with_binary(self.0, &[device.0], &[binary]) };
        let program = call("clCreateProgramWithBinary", new).map(Program);
        program.map_err(|code| code.to_string())?.finish(device, options)
    }
}

impl Program {
    fn finish(self, device: DeviceId, options: &str) -> Result<Program, String> {
        let options = CString::new(options).map_err(|e| e.to_string())?;
        let build = || program::build_program(self.0, &[device.0], &options, None, ptr::null_mut());
        match call("clBuildProgram", build) {
            Ok(()) => Ok(self),
            Err(code) => {
                let log = program::get_program_build_data(
                    self.0,
                    device.0,
                    program::CL_PROGRAM_BUILD_LOG,
                );
                let log = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
                Err(format!("{code}\n{}", log.trim_matches('\0')))
            }
        }
    }

    /// The program for the one device of its context, in the driver's own form.
    pub(crate) fn binary(&self) -> Option<Vec<u8>> {
        let info = || program::get_program_info(self.0, program::CL_PROGRAM_BINARIES);
        match call("clGetProgramInfo", info).ok()? {
            cl3::info_type::InfoType::VecVecUchar(binaries) => {
                binaries.into_iter().next().filter(|binary| !binary.is_empty())
            }
            _ => None,
        }
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        let name =
            CString::new(name).map_err(|_| Code(cl3::error_codes::CL_INVALID_KERNEL_NAME))?;
        call("clCreateKernel", || kernel::create_kernel(self.0, &name)).map(Kernel)
    }
}

impl Kernel {
    /// Sets a buffer argument.
    pub(crate) fn set_memory(&self, index: u32, memory: &Memory) -> Result {
        self.set(index, &memory.0)
    }

    /// Sets a scalar argument of 1, 2, 4 or 8 bytes to the low bytes of `bits`.
    pub(crate) fn set_scalar(&self, index: u32, bytes: usize, bits: u64) -> Result {
        match bytes {
            1 => self.set(index, &(bits as u8)),
            2 => self.set(index, &(bits as u16)),
            4 => self.set(index, &(bits as u32)),
            _ => self.set(index, &bits),
        }
    }

    fn set<T>(&self, index: u32, value: &T) -> Result {
        // SAFETY: valid handles; the pointer is to a value of the size given, which is copied.
        // The driver refuses a size that is not the argument's.
        call("clSetKernelArg", || unsafe {
            kernel::set_kernel_arg(self.0, index, size_of::<T>(), ptr::from_ref(value).cast())
        })
    }
}

/// Bytes on their way to a device; dropping it waits until they have arrived.
#[derive(Debug)]
pub(crate) struct Upload {
    event: Event,
    bytes: Vec<u8>,
}

impl Upload {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the bytes have arrived; an error if they never will.
    pub(crate) fn is_done(&self) -> Result<bool> {
        self.event.is_done()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.event.wait().is_err() && self.is_done() == Ok(false) {
            // The driver may read them yet.
            std::mem::forget(std::mem::take(&mut self.bytes));
        }
    }
}

impl Queue {
    /// Copies to a device without waiting.
    pub(crate) fn upload(&self, to: &Memory, offset: usize, bytes: Vec<u8>) -> Result<Upload> {
        // SAFETY: valid handles; `Upload` keeps the bytes where they are until the copy is done.
        let queue = || unsafe {
            command_queue::enqueue_write_buffer(
                self.0,
                to.0,
                CL_FALSE,
                offset,
                bytes.len(),
                bytes.as_ptr().cast_mut().cast(),
                0,
                ptr::null(),
            )
        };
        let event = call("clEnqueueWriteBuffer", queue).map(Event)?;
        Ok(Upload { event, bytes })
    }

    /// Copies to a device and waits.
    pub(crate) fn write(&self, to: &Memory, offset: usize, bytes: &[u8]) -> Result {
        // SAFETY: valid handles; the call returns when it has read all bytes.
        let queue = || unsafe {
            command_queue::enqueue_write_buffer(
                self.0,
                to.0,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_ptr().cast_mut().cast(),
                0,
                ptr::null(),
            )
        };
        call("clEnqueueWriteBuffer", queue).map(Event).map(drop)
    }

    /// Copies from a device and waits.
    pub(crate) fn read(&self, from: &Memory, offset: usize, bytes: &mut [u8]) -> Result {
        // SAFETY: valid handles; the call returns when it has written all bytes.
        let queue = || unsafe {
            command_queue::enqueue_read_buffer(
                self.0,
                from.0,
                CL_TRUE,
                offset,
                bytes.len(),
                bytes.as_mut_ptr().cast(),
                0,
                ptr::null(),
            )
        };
        call("clEnqueueReadBuffer", queue).map(Event).map(drop)
    }

    /// Copies `bytes` bytes on the device.
    pub(crate) fn copy(
        &self,
        from: (&Memory, usize),
        to: (&Memory, usize),
        bytes: usize,
    ) -> Result {
        // SAFETY: valid handles; the driver checks ranges.
        let queue = || unsafe {
            command_queue::enqueue_copy_buffer(
                self.0,
                from.0.0,
                to.0.0,
                from.1,
                to.1,
                bytes,
                0,
                ptr::null(),
            )
        };
        call("clEnqueueCopyBuffer", queue).map(Event).map(drop)
    }

    /// Runs a kernel whose arguments are all set, when these events have happened.
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        threads: [usize; 3],
        local: [usize; 3],
        after: &[&Event],
    ) -> Result<Event> {
        let after: Vec<cl_event> = after.iter().map(|event| event.0).collect();
        let list = if after.is_empty() { ptr::null() } else { after.as_ptr() };
        // SAFETY: valid handles; offsets and sizes have as many elements as dimensions, and the
        // list as many as said. That the kernel stays inside of its arguments is what the verifier
        // of kernels guarantees.
        let queue = || unsafe {
            command_queue::enqueue_nd_range_kernel(
                self.0,
                kernel.0,
                3,
                ptr::null(),
                threads.as_ptr(),
                local.as_ptr(),
                after.len() as cl_uint,
                list,
            )
        };
        call("clEnqueueNDRangeKernel", queue).map(Event)
    }

    /// Lets later commands wait for all before.
    pub(crate) fn barrier(&self) -> Result {
        // SAFETY: a valid handle; an empty wait list means all commands before.
        let queue =
            || unsafe { command_queue::enqueue_barrier_with_wait_list(self.0, 0, ptr::null()) };
        call("clEnqueueBarrierWithWaitList", queue).map(Event).map(drop)
    }

    /// An event of the end of the queue, which it also starts to work on.
    pub(crate) fn mark(&self) -> Result<Event> {
        // SAFETY: a valid handle; an empty wait list means all commands before.
        let queue =
            || unsafe { command_queue::enqueue_marker_with_wait_list(self.0, 0, ptr::null()) };
        let event = call("clEnqueueMarkerWithWaitList", queue).map(Event)?;
        self.flush()?;
        Ok(event)
    }

    /// Lets later commands wait for an event.
    pub(crate) fn wait(&self, event: &Event) -> Result {
        // SAFETY: valid handles; the list has one element.
        let queue = || unsafe {
            command_queue::enqueue_barrier_with_wait_list(self.0, 1, &raw const event.0)
        };
        call("clEnqueueBarrierWithWaitList", queue).map(Event).map(drop)
    }

    /// Starts to work on what is queued.
    pub(crate) fn flush(&self) -> Result {
        call("clFlush", || command_queue::flush(self.0))
    }
}

impl Event {
    pub(crate) fn wait(&self) -> Result {
        call("clWaitForEvents", || event::wait_for_events(&[self.0]))
    }

    /// Whether the command has finished, as far as can be told; an error if it failed.
    pub(crate) fn is_done(&self) -> Result<bool> {
        let status = || event::get_event_info(self.0, event::CL_EVENT_COMMAND_EXECUTION_STATUS);
        match call("clGetEventInfo", status) {
            Ok(cl3::info_type::InfoType::Int(status)) if status < event::CL_COMPLETE => {
                Err(Code(status))
            }
            Ok(cl3::info_type::InfoType::Int(status)) => Ok(status == event::CL_COMPLETE),
            _ => Ok(false),
        }
    }

    /// When the command finished, in nanoseconds of the device's clock.
    pub(crate) fn finished_at(&self) -> Option<u64> {
        match event::get_event_profiling_info(self.0, event::CL_PROFILING_COMMAND_END).ok()? {
            cl3::info_type::InfoType::Ulong(time) if time != 0 => Some(time),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_recent;

    #[test]
    fn devices_before_version_1_2_are_left_out() {
        assert!(is_recent("OpenCL 1.2 pocl") && is_recent("OpenCL 3.0 CUDA") && is_recent("?"));
        assert!(!is_recent("OpenCL 1.1 ") && !is_recent("OpenCL 1.0 Mesa"));
    }
}
