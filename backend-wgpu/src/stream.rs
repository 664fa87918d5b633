//! A stream: launches and copies gathered in one command encoder, submitted together.
//!
//! wgpu orders dispatches of one pass that touch the same buffer, so a stream needs no barriers of
//! its own. It submits when somebody waits or records an event, before it writes, and when it has
//! gathered [`MOST`] launches or its block of scalars is full. Scalars of a launch are a part of
//! one uniform buffer, chosen by a dynamic offset, so launches with other scalars share their bind
//! group. The first part stays zero for launches without scalars.

use crate::device::{Compiled, Variant, WgpuBuffer, WgpuDevice};
use crate::groups::Groups;
use crate::wgsl;
use std::sync::Arc;
#[cfg(target_arch = "wasm32")]
use zyx_core::hal::OnRead;
use zyx_core::hal::{Arg, Device, DeviceError, TrafficCounter};
use zyx_core::legalize::lower_to_32_bit;

/// Most launches gathered.
const MOST: usize = 1024;

/// Bytes of the buffer of scalars.
const SCALARS: usize = 64 << 10;

/// Most bytes read at once.
const CHUNK: usize = 32 << 20;

/// The bind groups made, until one of their buffers is dropped.
pub(crate) type BindGroups = Groups<wgpu::BindGroup>;

/// An ordered sequence of commands.
#[derive(Debug)]
pub struct WgpuStream {
    id: u64,
    queue: wgpu::Queue,
    bind_groups: Arc<BindGroups>,
    traffic: Arc<TrafficCounter>,
    /// Commands gathered, and the pass that is open.
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    launches: usize,
    scalars: wgpu::Buffer,
    /// Contents of the buffer of scalars for the commands gathered, from byte `first` on.
    staged: Vec<u8>,
    first: usize,
    reads: Option<wgpu::Buffer>,
    /// Whether something was written that no submission follows yet.
    wrote: bool,
    last: Option<wgpu::SubmissionIndex>,
}

/// A point in a stream.
#[derive(Debug)]
pub struct WgpuEvent(Option<wgpu::SubmissionIndex>);

impl WgpuEvent {
    /// Waits until the commands before are done.
    pub(crate) fn wait(&self, device: &WgpuDevice) -> Result<(), DeviceError> {
        if let Some(index) = &self.0 {
            device.wait_for(index.clone())?;
        }
        device.check("synchronize")
    }
}

/// A buffer for the host's side of copies.
fn buffer(
    device: &WgpuDevice,
    bytes: usize,
    usage: wgpu::BufferUsages,
) -> Result<wgpu::Buffer, DeviceError> {
    device.scoped("create_buffer", || {
        device.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes as u64,
            usage,
            mapped_at_creation: false,
        })
    })
}

impl WgpuStream {
    pub(crate) fn new(device: &WgpuDevice, id: u64) -> Result<WgpuStream, DeviceError> {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        Ok(WgpuStream {
            id,
            queue: device.queue.clone(),
            bind_groups: Arc::clone(&device.bind_groups),
            traffic: Arc::clone(&device.traffic),
            encoder: None,
            pass: None,
            launches: 0,
            scalars: buffer(device, SCALARS, usage)?,
            staged: Vec::new(),
            first: device.block(1),
            reads: None,
            wrote: false,
            last: None,
        })
    }

    /// Notes a write that the next submission makes happen.
    pub(crate) fn wrote(&mut self) {
        self.wrote = true;
    }

    /// The end of what was submitted.
    pub(crate) fn event(&self) -> WgpuEvent {
        WgpuEvent(self.last.clone())
    }

    fn encoder(&mut self, device: &WgpuDevice) -> &mut wgpu::CommandEncoder {
        self.encoder.get_or_insert_with(|| {
            device.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
        })
    }

    /// Submits what was gathered.
    pub(crate) fn flush(&mut self, device: &WgpuDevice) -> Result<(), DeviceError> {
        device.check("submit")?;
        if !self.staged.is_empty() {
            device.scoped("write_buffer", || self.write_scalars())?;
        }
        if let Err(error) = device.scoped("submit", || self.submit()) {
            // Its commands are gone.
            device.faults.lose(error.to_string());
        }
        device.check("submit")
    }

    fn write_scalars(&mut self) {
        if !self.staged.is_empty() {
            self.queue.write_buffer(&self.scalars, self.first as u64, &self.staged);
            self.staged.clear();
        }
    }

    fn submit(&mut self) {
        self.pass = None;
        self.launches = 0;
        if self.encoder.is_some() || self.wrote {
            let commands = self.encoder.take().map(wgpu::CommandEncoder::finish);
            self.last = Some(self.queue.submit(commands));
            self.traffic.submitted();
            self.wrote = false;
        }
    }

    /// Copies on the device.
    pub(crate) fn copy(
        &mut self,
        device: &WgpuDevice,
        src: (&WgpuBuffer, usize),
        dst: (&WgpuBuffer, usize),
        bytes: usize,
    ) {
        self.pass = None;
        let (from, to) = (src.1 as u64, dst.1 as u64);
        let encoder = self.encoder(device);
        encoder.copy_buffer_to_buffer(&src.0.raw, from, &dst.0.raw, to, Some(bytes as u64));
    }

    /// Waits and copies whole words to the host.
    pub(crate) fn download(
        &mut self,
        device: &WgpuDevice,
        src: &WgpuBuffer,
        offset: usize,
        dst: &mut [u8],
    ) -> Result<(), DeviceError> {
        let wanted = dst.len().min(CHUNK).next_power_of_two().max(4096);
        let staging = match self.reads.take() {
            Some(staging) if staging.size() >= wanted as u64 => staging,
            _ => {
                buffer(device, wanted, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST)?
            }
        };
        if cfg!(target_arch = "wasm32") {
            let reason = "a page cannot wait for its device; use `read_async` and `.await`";
            return Err(device.error("read", reason.to_owned()));
        }
        for (n, chunk) in dst.chunks_mut(CHUNK).enumerate() {
            self.pass = None;
            let (from, bytes) = ((offset + n * CHUNK) as u64, chunk.len() as u64);
            let encoder = self.encoder(device);
            encoder.copy_buffer_to_buffer(&src.raw, from, &staging, 0, Some(bytes));
            self.flush(device)?;
            device.scoped("map_async", || {
                staging.map_async(wgpu::MapMode::Read, 0..bytes, |_| {});
            })?;
            self.event().wait(device)?;
            let view = staging.slice(0..bytes).get_mapped_range();
            let view = view.map_err(|error| device.error("read", error.to_string()))?;
            chunk.copy_from_slice(&view);
            drop(view);
            staging.unmap();
        }
        self.reads = Some(staging);
        Ok(())
    }

    /// Copies the first `bytes` bytes to the host, in whole words, and tells when they are there.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn read_later(
        &mut self,
        device: &WgpuDevice,
        src: &WgpuBuffer,
        bytes: usize,
        done: OnRead,
    ) {
        let words = bytes.next_multiple_of(4) as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = buffer(device, words as usize, usage).and_then(|staging| {
            self.pass = None;
            let encoder = self.encoder(device);
            encoder.copy_buffer_to_buffer(&src.raw, 0, &staging, 0, Some(words));
            self.flush(device)?;
            Ok(staging)
        });
        let staging = match staging {
            Ok(staging) => staging,
            Err(error) => return done(Err(error)),
        };
        let (mapped, spec) = (staging.clone(), device.info().spec.clone());
        let faults = Arc::clone(&device.faults);
        staging.map_async(wgpu::MapMode::Read, 0..words, move |result| {
            let failed =
                |reason: String| DeviceError::Driver { context: format!("read on {spec}"), reason };
            let read = result.map_err(|error| failed(error.to_string())).and_then(|()| {
                let view = mapped.slice(0..words).get_mapped_range();
                Ok(view.map_err(|error| failed(error.to_string()))?[..bytes].to_vec())
            });
            mapped.unmap();
            // What went wrong before says more.
            done(faults.check(&spec, "read").and(read));
        });
    }

    /// Puts scalars where a launch finds them; gives their offset.
    fn place(
        &mut self,
        device: &WgpuDevice,
        compiled: &Compiled,
        vars: &[u64],
    ) -> Result<usize, DeviceError> {
        if vars.is_empty() {
            return Ok(0);
        }
        let block = device.block(compiled.module.words);
        if self.first + self.staged.len() + block > SCALARS {
            self.flush(device)?;
        }
        let at = self.first + self.staged.len();
        for word in wgsl::pack(&compiled.module.kernel, vars) {
            self.staged.extend_from_slice(&word.to_le_bytes());
        }
        self.staged.resize(at - self.first + block, 0);
        Ok(at)
    }

    /// The bind group of a launch, of a raw kernel with these bytes of each buffer.
    fn bind(
        &self,
        device: &WgpuDevice,
        (compiled, variant): (&Compiled, &Variant),
        buffers: &[(&WgpuBuffer, usize)],
        lens: &[usize],
    ) -> Result<wgpu::BindGroup, DeviceError> {
        let module = &compiled.module;
        let scalars = if module.words > 0 { self.id } else { 0 };
        let parts = buffers.iter().map(|(buffer, offset)| (buffer.id, *offset));
        let sizes = buffers.iter().zip(lens).map(|((buffer, _), &len)| (buffer.id, len));
        let parts = parts.chain(sizes).collect();
        device.bind_groups.get((variant.id, scalars, parts), || {
            let resource = |buffer, offset, bytes: u64| {
                let size = wgpu::BufferSize::new(bytes);
                wgpu::BindingResource::Buffer(wgpu::BufferBinding { buffer, offset, size })
            };
            let storage = module.bindings.iter().map(|part| {
                let (buffer, offset) = buffers[part.slot];
                if let Some(&len) = lens.get(part.slot) {
                    // Of no elements, as below.
                    let offset = if len == 0 { 0 } else { offset as u64 };
                    let bytes = (len as u64).next_multiple_of(4).max(part.bytes);
                    return resource(&buffer.raw, offset, bytes);
                }
                // Of no elements, a buffer may end where the argument starts.
                let info = module.kernel.params()[part.slot];
                let offset = if info.len == 0 { 0 } else { offset };
                let start = offset as u64 + part.start;
                let whole = (buffer.raw.size() - start).min(device.caps.max_binding);
                let bytes = if info.is_open() { whole } else { part.bytes };
                resource(&buffer.raw, start, bytes)
            });
            let block =
                (module.words > 0).then(|| resource(&self.scalars, 0, 4 * module.words as u64));
            let entries: Vec<_> = storage
                .chain(block)
                .enumerate()
                .map(|(i, resource)| wgpu::BindGroupEntry { binding: i as u32, resource })
                .collect();
            device.scoped("create_bind_group", || {
                device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: None,
                    layout: &variant.layout,
                    entries: &entries,
                })
            })
        })
    }

    /// Gathers the launches of a program.
    pub(crate) fn launch(
        &mut self,
        device: &WgpuDevice,
        compiled: &Arc<Compiled>,
        args: &[Arg<'_, WgpuBuffer>],
    ) -> Result<(), DeviceError> {
        let (mut buffers, mut vars) = (Vec::new(), Vec::new());
        for arg in args {
            match *arg {
                Arg::Buffer(buffer, offset) => buffers.push((buffer, offset)),
                Arg::Scalar(bits) => vars.push(bits),
            }
        }
        let caps = Device::caps(device);
        // Grids follow from all scalars of a launch; the code of a raw kernel receives some of them.
        let (passed, lens) = match &compiled.raw {
            None => (None, Vec::new()),
            Some(raw) => (Some(raw.scalars(&vars)), raw.bytes_of_buffers(&vars).collect()),
        };
        let vars = match passed {
            None => lower_to_32_bit::arguments(&compiled.vars, caps, &vars),
            Some(_) => vars,
        };
        if self.launches >= MOST {
            self.flush(device)?;
        }
        let at = self.place(device, compiled, passed.as_ref().unwrap_or(&vars))? as u32;
        let variant = compiled.variant(device, &buffers)?;
        let group = self.bind(device, (compiled, &variant), &buffers, &lens)?;
        let offsets: &[u32] = if compiled.module.words > 0 { &[at] } else { &[] };
        for (entry, pipeline) in compiled.module.unit.entries.iter().zip(&variant.pipelines) {
            let grid = entry.grid(&compiled.module.kernel, &vars, caps.max_groups);
            let Some(groups) = grid else { continue };
            if self.pass.is_none() {
                let descriptor = wgpu::ComputePassDescriptor::default();
                let pass = self.encoder(device).begin_compute_pass(&descriptor);
                self.pass = Some(pass.forget_lifetime());
            }
            if let Some(pass) = &mut self.pass {
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, &group, offsets);
                let [x, y, z] = groups.map(|n| n as u32);
                pass.dispatch_workgroups(x, y, z);
                self.launches += 1;
            }
        }
        Ok(())
    }
}

impl Drop for WgpuStream {
    fn drop(&mut self) {
        self.write_scalars();
        self.submit();
        self.bind_groups.forget(self.id);
    }
}
