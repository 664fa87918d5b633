//! The objects of `opencl3` as a device uses them: all `unsafe` of the crate, but for the calls of what
//! is unsafe here in `staging`.
//!
//! `opencl3` owns an object and gives it back on drop, where it panics if the driver reports an error;
//! so [`Owned`] drops in its place. What makes calls sound is stated once here and referred to below as
//! *valid handles*: an object is one that the driver returned, is released only on drop, and those made
//! from a context keep that context alive inside of the driver.
//!
//! OpenCL's functions may be called from any thread, except that the arguments of one kernel
//! object must not be set by two at a time: a kernel alone is not `Sync`.
//!
//! The library is loaded at run time. Where it is missing, the list of devices is empty.

mod error;
mod shared;

pub(crate) use error::Code;
pub(crate) use shared::{Look, Mapped, View};

use error::{Result, call};
use opencl3::command_queue::{self, CommandQueue};
use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::memory::{self, Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::platform::{Platform, get_platforms};
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_device_id, cl_event};
use opencl3::{context, error_codes, event, kernel, program};
use std::ffi::CString;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::{Arc, LazyLock};

/// The devices of this machine.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// All that can compile and run: GPUs and accelerators before CPUs, otherwise in the order of the
    /// platforms.
    pub(crate) devices: Vec<Device>,
    /// Whether there is a library with a driver.
    pub(crate) has_driver: bool,
    /// What is wrong with the library, with platforms and with other devices, and what to do.
    pub(crate) problems: Vec<String>,
}

/// Found once per process and by one thread: a driver sets itself up in these calls, and PoCL's
/// crashes when two threads make them at a time.
pub(crate) fn found() -> &'static Found {
    static FOUND: LazyLock<Found> = LazyLock::new(|| {
        let mut found = Found::default();
        match call("clGetPlatformIDs", get_platforms) {
            Ok(platforms) if platforms.is_empty() => found.problems.push(error::NO_DRIVER.into()),
            Ok(platforms) => {
                found.has_driver = true;
                platforms.into_iter().for_each(|platform| found.look_at(platform));
            }
            Err(code) => {
                found.has_driver = !code.is_about_no_driver();
                found.problems.push(code.to_string());
            }
        }
        found.devices.sort_by_key(is_cpu);
        found
    });
    &FOUND
}

impl Found {
    fn look_at(&mut self, platform: Platform) {
        let devices = call("clGetDeviceIDs", || platform.get_devices(CL_DEVICE_TYPE_ALL));
        let name = || platform.name().unwrap_or_else(|_| "a platform without a name".to_owned());
        match devices {
            Ok(devices) if devices.is_empty() => {
                self.problems.push(format!("{} has no device", name()));
            }
            Ok(devices) => {
                for device in devices.into_iter().map(Device::new) {
                    match obstacle(&device) {
                        None => self.devices.push(device),
                        Some(obstacle) => {
                            let device = device.name().unwrap_or_else(|_| "a device".to_owned());
                            self.problems.push(format!("{device} of {}: {obstacle}", name()));
                        }
                    }
                }
            }
            Err(code) => self.problems.push(format!("{}: {code}", name())),
        }
    }
}

/// Why nothing can be computed on a device.
fn obstacle(device: &Device) -> Option<String> {
    let about = || {
        let available = call("clGetDeviceInfo", || device.available())?;
        let compiles = call("clGetDeviceInfo", || device.compiler_available())?;
        Ok::<_, Code>((available, compiles, call("clGetDeviceInfo", || device.version())?))
    };
    match about() {
        Err(code) => Some(code.to_string()),
        Ok((false, ..)) => Some("the driver says that it is not available".to_owned()),
        Ok((_, false, _)) => Some("its driver has no compiler; install one that does".to_owned()),
        Ok((.., version)) if !is_recent(&version) => {
            Some(format!("{} is before OpenCL 1.2; update its driver", version.trim()))
        }
        Ok(_) => None,
    }
}

/// Whether a version, as `OpenCL 1.2 pocl`, is one that generated code is for.
fn is_recent(version: &str) -> bool {
    let numbers = version.strip_prefix("OpenCL ").and_then(|rest| rest.split(' ').next());
    let parts = numbers.and_then(|text| text.split_once('.'));
    let parsed = parts.and_then(|(a, b)| Some((a.parse::<u32>().ok()?, b.parse::<u32>().ok()?)));
    parsed.is_none_or(|version| version >= (1, 2))
}

/// Whether a device is the host's processor.
pub(crate) fn is_cpu(device: &Device) -> bool {
    device.dev_type().unwrap_or_default() & CL_DEVICE_TYPE_CPU != 0
}

/// What the driver gives back.
pub(crate) trait Object {
    /// Gives a reference back. A failure leaves nothing to do.
    ///
    /// # Safety
    /// The object is not used any more.
    unsafe fn release(&self);
}

macro_rules! objects {
    ($($object:ty, $release:path;)*) => {$(
        impl Object for $object {
            unsafe fn release(&self) {
                // SAFETY: a valid handle, and the last use of it.
                let _ = unsafe { $release(self.get()) };
            }
        }
    )*};
}

objects! {
    context::Context, context::context::release_context;
    CommandQueue, command_queue::release_command_queue;
    Buffer<u8>, memory::release_mem_object;
    event::Event, event::release_event;
    program::Program, program::release_program;
    kernel::Kernel, kernel::release_kernel;
}

/// An object of `opencl3`, without its `Drop`.
#[derive(Debug)]
pub(crate) struct Owned<T: Object>(ManuallyDrop<T>);

impl<T: Object> Owned<T> {
    fn new(object: T) -> Owned<T> {
        Owned(ManuallyDrop::new(object))
    }
}

impl<T: Object> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: it is being dropped, which its own `Drop` will never do.
        unsafe { self.0.release() };
    }
}

/// What objects of one device live in.
pub(crate) type Context = Owned<context::Context>;
/// Device memory. The driver keeps it until commands that use it have finished.
pub(crate) type Memory = Owned<Buffer<u8>>;
/// A queue of commands.
pub(crate) type Queue = Owned<CommandQueue>;
/// The completion of a command.
pub(crate) type Event = Owned<event::Event>;
/// Compiled source.
pub(crate) type Program = Owned<program::Program>;
/// An entry point with arguments.
pub(crate) type Kernel = Owned<kernel::Kernel>;

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
    pub(crate) fn of(device: &Device) -> Result<Context> {
        call("clCreateContext", || context::Context::from_device(device)).map(Owned::new)
    }

    /// Memory of `bytes` bytes, which must not be zero.
    pub(crate) fn memory(&self, bytes: usize) -> Result<Memory> {
        // SAFETY: a valid handle; the flags ask for memory of the driver's own, so there is no
        // host pointer.
        let new = || unsafe { Buffer::create(&self.0, CL_MEM_READ_WRITE, bytes, ptr::null_mut()) };
        call("clCreateBuffer", new).map(Owned::new)
    }

    /// A queue.
    pub(crate) fn queue(&self, device: &Device, order: Order) -> Result<Queue> {
        let properties = match order {
            Order::Given => 0,
            Order::Any => command_queue::CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE,
            Order::Timed => command_queue::CL_QUEUE_PROFILING_ENABLE,
        };
        // SAFETY: a valid handle, and the device its context was made for.
        let new = || unsafe {
            command_queue::create_command_queue(self.0.get(), device.id(), properties)
        };
        // Not `CommandQueue::create`, which loses the queue where the device does not tell how many
        // dimensions it has: 3 at least.
        let queue = call("clCreateCommandQueue", new)?;
        Ok(Owned::new(CommandQueue::new(queue, 3)))
    }

    /// Compiles source; an error has the compiler's log.
    pub(crate) fn build(&self, source: &str, options: &str) -> Result<Program, String> {
        let new = || program::Program::create_from_source(&self.0, source);
        let program = call("clCreateProgramWithSource", new).map(Owned::new);
        program.map_err(|code| code.to_string())?.finish(self.0.default_device(), options)
    }

    /// A program from what [`Program::binary`] gave on the same device and driver.
    pub(crate) fn load(&self, binary: &[u8], options: &str) -> Result<Program, String> {
        let devices = self.0.devices();
        // SAFETY: a valid handle, and the device it was made for.
        let new = || unsafe { program::Program::create_from_binary(&self.0, devices, &[binary]) };
        let program = call("clCreateProgramWithBinary", new).map(Owned::new);
        program.map_err(|code| code.to_string())?.finish(self.0.default_device(), options)
    }
}

impl Program {
    fn finish(self, device: cl_device_id, options: &str) -> Result<Program, String> {
        let options = CString::new(options).map_err(|e| e.to_string())?;
        // Not `Program::build`, which then asks for the names of kernels and fails where that does.
        let build =
            || program::build_program(self.0.get(), &[device], &options, None, ptr::null_mut());
        match call("clBuildProgram", build) {
            Ok(()) => Ok(self),
            Err(code) => {
                let log = self.0.get_build_log(device).unwrap_or_default();
                Err(format!("{code}\n{log}"))
            }
        }
    }

    /// The program for the one device of its context, in the driver's own form.
    pub(crate) fn binary(&self) -> Option<Vec<u8>> {
        let binaries = call("clGetProgramInfo", || self.0.get_binaries()).ok()?;
        binaries.into_iter().next().filter(|binary| !binary.is_empty())
    }

    pub(crate) fn kernel(&self, name: &str) -> Result<Kernel> {
        // Not `Kernel::create`, which panics at a name with a zero byte.
        let new = || {
            let name = CString::new(name).map_err(|_| error_codes::CL_INVALID_KERNEL_NAME)?;
            kernel::create_kernel(self.0.get(), &name)
        };
        call("clCreateKernel", new).map(kernel::Kernel::new).map(Owned::new)
    }
}

/// The kind of a kernel's parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// A pointer to memory that a memory object is passed for.
    Global,
    /// A pointer to shared storage of a group.
    Local,
    /// A value.
    Private,
}

impl Kernel {
    /// The number of parameters.
    pub(crate) fn parameters(&self) -> Result<u32> {
        call("clGetKernelInfo", || self.0.num_args())
    }

    /// The kind of a parameter, if the driver tells.
    pub(crate) fn space(&self, index: u32) -> Option<Space> {
        let told = call("clGetKernelArgInfo", || self.0.get_arg_address_qualifier(index)).ok()?;
        match told {
            kernel::CL_KERNEL_ARG_ADDRESS_GLOBAL | kernel::CL_KERNEL_ARG_ADDRESS_CONSTANT => {
                Some(Space::Global)
            }
            kernel::CL_KERNEL_ARG_ADDRESS_LOCAL => Some(Space::Local),
            kernel::CL_KERNEL_ARG_ADDRESS_PRIVATE => Some(Space::Private),
            _ => None,
        }
    }

    /// The threads per axis that the source asks for, if it does, and the most that a group has, if the driver tells.
    pub(crate) fn group_sizes(&self, device: &Device) -> (Option<[usize; 3]>, Option<usize>) {
        let stated = || self.0.get_compile_work_group_size(device.id());
        let stated = call("clGetKernelWorkGroupInfo", stated).ok();
        let stated = stated.and_then(|sizes| <[usize; 3]>::try_from(sizes).ok());
        let most = || self.0.get_work_group_size(device.id());
        let most = call("clGetKernelWorkGroupInfo", most).ok();
        (stated.filter(|sizes| *sizes != [0; 3]), most)
    }

    /// Sets an argument that is shared storage of so many bytes.
    pub(crate) fn set_local(&self, index: u32, bytes: usize) -> Result {
        // SAFETY: a valid handle; there is no value. The driver refuses a parameter of another kind.
        call("clSetKernelArg", || unsafe { self.0.set_arg_local_buffer(index, bytes) })
    }

    /// Sets a buffer argument.
    pub(crate) fn set_memory(&self, index: u32, memory: &Memory) -> Result {
        self.set(index, &memory.0.get())
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
        // SAFETY: valid handles; the value is copied. The driver refuses a size that is not the
        // argument's.
        call("clSetKernelArg", || unsafe { self.0.set_arg(index, value) })
    }
}

impl Memory {
    /// The same object, as `opencl3` wants it for commands that write: for itself alone. Buffers are
    /// shared here; the queue orders what commands do to them.
    fn to_write(&self) -> ManuallyDrop<Buffer<u8>> {
        ManuallyDrop::new(Buffer::new(self.0.get()))
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
            self.0.enqueue_write_buffer(&mut to.to_write(), CL_NON_BLOCKING, offset, &bytes, &[])
        };
        let event = call("clEnqueueWriteBuffer", queue).map(Owned::new)?;
        Ok(Upload { event, bytes })
    }

    /// Copies to a device and waits.
    pub(crate) fn write(&self, to: &Memory, offset: usize, bytes: &[u8]) -> Result {
        // SAFETY: valid handles; the call returns when it has read all bytes.
        let queue = || unsafe {
            self.0.enqueue_write_buffer(&mut to.to_write(), CL_BLOCKING, offset, bytes, &[])
        };
        call("clEnqueueWriteBuffer", queue).map(Owned::new).map(drop)
    }

    /// Copies from a device and waits.
    pub(crate) fn read(&self, from: &Memory, offset: usize, bytes: &mut [u8]) -> Result {
        // SAFETY: valid handles; the call returns when it has written all bytes.
        let queue =
            || unsafe { self.0.enqueue_read_buffer(&from.0, CL_BLOCKING, offset, bytes, &[]) };
        call("clEnqueueReadBuffer", queue).map(Owned::new).map(drop)
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
            let write = &mut to.0.to_write();
            self.0.enqueue_copy_buffer(&from.0.0, write, from.1, to.1, bytes, &[])
        };
        call("clEnqueueCopyBuffer", queue).map(Owned::new).map(drop)
    }

    /// Runs a kernel whose arguments are all set, when these events have happened.
    pub(crate) fn launch(
        &self,
        kernel: &Kernel,
        threads: [usize; 3],
        local: [usize; 3],
        after: &[Arc<Event>],
    ) -> Result<Event> {
        let after: Vec<cl_event> = after.iter().map(|event| event.0.get()).collect();
        let (kernel, threads, local) = (kernel.0.get(), threads.as_ptr(), local.as_ptr());
        // SAFETY: valid handles; sizes have as many elements as there are dimensions, and offsets are
        // left out. That the kernel stays inside of its arguments is what the verifier of kernels
        // guarantees, or the author of a raw kernel (`RawKernel::new`).
        let queue = || unsafe {
            self.0.enqueue_nd_range_kernel(kernel, 3, ptr::null(), threads, local, &after)
        };
        call("clEnqueueNDRangeKernel", queue).map(Owned::new)
    }

    /// Lets later commands wait for all before.
    pub(crate) fn barrier(&self) -> Result {
        self.barrier_after(&[])
    }

    /// Lets later commands wait for an event.
    pub(crate) fn wait(&self, event: &Event) -> Result {
        self.barrier_after(&[event.0.get()])
    }

    fn barrier_after(&self, events: &[cl_event]) -> Result {
        // SAFETY: valid handles; an empty list means all commands before.
        let queue = || unsafe { self.0.enqueue_barrier_with_wait_list(events) };
        call("clEnqueueBarrierWithWaitList", queue).map(Owned::new).map(drop)
    }

    /// An event of the end of the queue, which it also starts to work on.
    pub(crate) fn mark(&self) -> Result<Event> {
        // SAFETY: a valid handle; an empty list means all commands before.
        let queue = || unsafe { self.0.enqueue_marker_with_wait_list(&[]) };
        let event = call("clEnqueueMarkerWithWaitList", queue).map(Owned::new)?;
        self.flush()?;
        Ok(event)
    }

    /// Starts to work on what is queued.
    pub(crate) fn flush(&self) -> Result {
        call("clFlush", || self.0.flush())
    }
}

impl Event {
    pub(crate) fn wait(&self) -> Result {
        call("clWaitForEvents", || self.0.wait())
    }

    /// Whether the command has finished, as far as can be told; an error if it failed.
    pub(crate) fn is_done(&self) -> Result<bool> {
        match call("clGetEventInfo", || self.0.command_execution_status()) {
            Ok(status) if status.0 < event::CL_COMPLETE => Err(Code::of_command(status.0)),
            Ok(status) => Ok(status.0 == event::CL_COMPLETE),
            Err(_) => Ok(false),
        }
    }

    /// When the command finished, in nanoseconds of the device's clock.
    pub(crate) fn finished_at(&self) -> Option<u64> {
        self.0.profiling_command_end().ok().filter(|&time| time != 0)
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
