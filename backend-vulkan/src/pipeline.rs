//! Compiled kernels: shader modules, pipelines and the layouts they share.
//!
//! Whether a pipeline was compiled or found in the cache is what the driver says, where it does
//! (`VK_EXT_pipeline_creation_feedback`); else it counts as compiled.

use crate::asm;
use crate::cache::Cache;
use crate::gpu::{Gpu, Result};
use crate::spirv::{Layout, Slot, Translation};
use ash::vk;
use rustc_hash::FxHashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use zyx_core::codegen::Entry;
use zyx_core::hal::{Caps, RawKernel, Signature, lock};
use zyx_core::ir::{Kernel, VarInfo, Verified};

/// How arguments reach shaders, for a number of bindings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) set: vk::DescriptorSetLayout,
    pub(crate) layout: vk::PipelineLayout,
}

/// Layouts by number of bindings, and the cache of compiled pipelines.
#[derive(Debug)]
pub(crate) struct Pipelines {
    gpu: Arc<Gpu>,
    bound: Mutex<FxHashMap<usize, Bound>>,
    /// Replaced by an empty one when it exceeds the budget of the file.
    cache: RwLock<vk::PipelineCache>,
    file: Cache,
}

impl Pipelines {
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Arc<Pipelines>> {
        Pipelines::saved_in(gpu, Cache::new(&gpu.facts.identity))
    }

    fn saved_in(gpu: &Arc<Gpu>, file: Cache) -> Result<Arc<Pipelines>> {
        let data = file.load().unwrap_or_default();
        let info = vk::PipelineCacheCreateInfo::default().initial_data(&data);
        // SAFETY: a valid device; drivers ignore data that is not theirs.
        let cache = unsafe { gpu.device.create_pipeline_cache(&info, None) }?;
        let bound = Mutex::default();
        Ok(Arc::new(Pipelines { gpu: Arc::clone(gpu), bound, cache: RwLock::new(cache), file }))
    }

    fn bound(&self, bindings: usize) -> Result<Bound> {
        let mut all = lock(&self.bound);
        if let Some(&found) = all.get(&bindings) {
            return Ok(found);
        }
        let device = &self.gpu.device;
        let slots: Vec<_> = (0..bindings as u32)
            .map(|i| {
                vk::DescriptorSetLayoutBinding::default()
                    .binding(i)
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .descriptor_count(1)
                    .stage_flags(vk::ShaderStageFlags::COMPUTE)
            })
            .collect();
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&slots);
        // SAFETY: a valid device.
        let set = unsafe { device.create_descriptor_set_layout(&info, None) }?;
        let push = [vk::PushConstantRange {
            stage_flags: vk::ShaderStageFlags::COMPUTE,
            offset: 0,
            size: self.gpu.facts.target.push_bytes as u32,
        }];
        let sets = [set];
        let info = vk::PipelineLayoutCreateInfo::default()
            .push_constant_ranges(&push)
            .set_layouts(&sets[..usize::from(bindings > 0)]);
        // SAFETY: valid handles.
        let layout = unsafe { device.create_pipeline_layout(&info, None) };
        let layout = layout.inspect_err(|_| {
            // SAFETY: the layout of sets was just made and is in use by nothing.
            unsafe { device.destroy_descriptor_set_layout(set, None) };
        })?;
        let new = Bound { set, layout };
        all.insert(bindings, new);
        Ok(new)
    }

    /// Calls `f` with the cache, which is the same until it returns.
    fn with_cache<T>(&self, f: impl FnOnce(vk::PipelineCache) -> T) -> T {
        f(*self.cache.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Saves compiled pipelines from time to time, and forgets all of them when they are too many.
    fn compiled(&self) {
        let too_many = self.file.compiled(|| {
            // SAFETY: valid handles.
            let data = |cache| unsafe { self.gpu.device.get_pipeline_cache_data(cache) };
            self.with_cache(data).unwrap_or_default()
        });
        if too_many {
            let info = vk::PipelineCacheCreateInfo::default();
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: a valid device.
            if let Ok(empty) = unsafe { self.gpu.device.create_pipeline_cache(&info, None) } {
                let full = std::mem::replace(&mut *cache, empty);
                // SAFETY: who uses the cache holds its lock; pipelines do not refer to it.
                unsafe { self.gpu.device.destroy_pipeline_cache(full, None) };
            }
        }
    }
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        let cache = *self.cache.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: compiled kernels keep this, so nothing uses these objects any more.
        unsafe {
            self.gpu.device.destroy_pipeline_cache(cache, None);
            #[allow(clippy::iter_over_hash_type, reason = "the order of release is open")]
            for bound in lock(&self.bound).values() {
                self.gpu.device.destroy_pipeline_layout(bound.layout, None);
                self.gpu.device.destroy_descriptor_set_layout(bound.set, None);
            }
        }
    }
}

/// What a driver says of a pipeline that was in the cache.
const FOUND: vk::PipelineCreationFeedbackFlags = vk::PipelineCreationFeedbackFlags::from_raw(
    vk::PipelineCreationFeedbackFlags::VALID.as_raw()
        | vk::PipelineCreationFeedbackFlags::APPLICATION_PIPELINE_CACHE_HIT.as_raw(),
);

/// One launch of a compiled kernel.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) entry: Entry,
    module: vk::ShaderModule,
    pub(crate) pipeline: vk::Pipeline,
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The kernel that was translated; of a raw kernel its outline.
    pub(crate) kernel: Kernel,
    /// The kernel that a user wrote; `kernel` is its outline.
    pub(crate) raw: Option<RawKernel>,
    /// The scalar arguments of the kernel that it was made of.
    pub(crate) vars: Vec<VarInfo>,
    pub(crate) signature: Signature,
    pub(crate) layout: Layout,
    pub(crate) bound: Bound,
    pub(crate) parts: Vec<Part>,
    /// Launches whose pipelines were found in the cache when the kernel was compiled.
    found: usize,
    shared: Arc<Pipelines>,
}

impl Compiled {
    pub(crate) fn new(
        shared: &Arc<Pipelines>,
        from: &Verified,
        Translation { kernel, shaders }: Translation,
    ) -> Result<Compiled> {
        let layout = Layout::of(&kernel, &shared.gpu.facts.target);
        let mut compiled = Compiled {
            kernel,
            raw: None,
            vars: from.vars().to_vec(),
            signature: Signature::of(from),
            layout,
            bound: shared.bound(layout.bindings)?,
            parts: Vec::new(),
            found: 0,
            shared: Arc::clone(shared),
        };
        for shader in shaders {
            let words = asm::words(&shader.module);
            compiled.add(shader.entry, &words, c"main", shader.shuffles)?;
        }
        Ok(compiled)
    }

    /// A module of a user, checked against its declaration; buffers are descriptors on every device. The
    /// signature is for these limits.
    pub(crate) fn new_raw(
        shared: &Arc<Pipelines>,
        kernel: &RawKernel,
        words: &[u32],
        caps: &Caps,
    ) -> Result<Compiled> {
        let bindings = kernel.params.len();
        let (outline, entry) = kernel.outline();
        let mut compiled = Compiled {
            vars: outline.vars().to_vec(),
            kernel: outline,
            raw: Some(kernel.clone()),
            signature: Signature::of_raw(kernel, caps),
            layout: Layout { slot: Slot::Push, addresses: 0, bindings },
            bound: shared.bound(bindings)?,
            parts: Vec::new(),
            found: 0,
            shared: Arc::clone(shared),
        };
        let name = CString::new(kernel.name.as_str());
        let name = name.map_err(|_| vk::Result::ERROR_INITIALIZATION_FAILED)?;
        compiled.add(entry, words, &name, false)?;
        Ok(compiled)
    }

    /// Adds a launch of the function `name` of a module; with `shuffles`, of full subgroups.
    fn add(&mut self, entry: Entry, words: &[u32], name: &CStr, shuffles: bool) -> Result {
        let info = vk::ShaderModuleCreateInfo::default().code(words);
        // SAFETY: a valid device; the module is well formed and keeps to enabled features, as the
        // translation sees to, or checks and the author of a raw kernel (`RawKernel::new`).
        let module = unsafe { self.shared.gpu.device.create_shader_module(&info, None) }?;
        self.parts.push(Part { entry, module, pipeline: vk::Pipeline::null() });
        let (pipeline, was_found) = self.made(module, name, shuffles)?;
        self.found += usize::from(was_found);
        if let Some(part) = self.parts.last_mut() {
            part.pipeline = pipeline;
        }
        Ok(())
    }

    /// Whether the driver's compiler made any of it.
    pub(crate) fn was_compiled(&self) -> bool {
        self.found < self.parts.len()
    }

    /// A new pipeline, and whether it was in the cache.
    fn made(
        &self,
        module: vk::ShaderModule,
        name: &CStr,
        shuffles: bool,
    ) -> Result<(vk::Pipeline, bool)> {
        let gpu = &self.shared.gpu;
        let lanes = gpu.facts.lanes;
        let mut size = vk::PipelineShaderStageRequiredSubgroupSizeCreateInfo::default()
            .required_subgroup_size(lanes.size);
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(name);
        let stage = match shuffles {
            true => stage.flags(vk::PipelineShaderStageCreateFlags::REQUIRE_FULL_SUBGROUPS),
            false => stage,
        };
        let stage = if shuffles && lanes.varies { stage.push_next(&mut size) } else { stage };
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(self.bound.layout);
        let mut told = vk::PipelineCreationFeedback::default();
        let mut feedback =
            vk::PipelineCreationFeedbackCreateInfo::default().pipeline_creation_feedback(&mut told);
        let info = if gpu.facts.feedback { info.push_next(&mut feedback) } else { info };
        // SAFETY: valid handles; the shader's arguments are those of the layout.
        let create = |cache| unsafe { gpu.device.create_compute_pipelines(cache, &[info], None) };
        let made = self.shared.with_cache(create);
        let pipeline = made.map_err(|(_, error)| error)?[0];
        let was_found = told.flags.contains(FOUND);
        if !was_found {
            self.shared.compiled();
        }
        Ok((pipeline, was_found))
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        let device = &self.shared.gpu.device;
        for part in &self.parts {
            // SAFETY: batches keep the program until they are done.
            unsafe {
                device.destroy_pipeline(part.pipeline, None);
                device.destroy_shader_module(part.module, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spirv;
    use zyx_core::hal::{Backend as _, Device as _};

    /// A cache that exceeds its budget is emptied, whoever compiles meanwhile.
    #[test]
    fn pipelines_are_forgotten_when_they_are_too_many() {
        let Ok(device) = crate::Vulkan::default().open(0) else { return };
        let gpu = device.gpu();
        let folder = std::env::temp_dir().join(format!("zyx-pipelines-{}", std::process::id()));
        let made = |most: usize, n: u64| {
            let shared = Pipelines::saved_in(gpu, Cache::of_at_most(most, &folder)).unwrap();
            let compile = |from: u64| {
                for n in from..from + n {
                    let text = format!(
                        "kernel k{n}
                        buffer 0 : i32[{n}] write
                        %p param 0 write : i32
                        %n const {n} : i64
                        %x const {n} : i32
                        %i loop parallel %n
                        %s store %p[%i], %x : i32
                        %e end %i"
                    );
                    let kernel = Verified::new(&text.parse().unwrap()).unwrap();
                    let translation = spirv::emit(
                        &zyx_core::runtime::prepare(&kernel, device.caps()).unwrap(),
                        device.caps(),
                        &gpu.facts.target,
                    );
                    Compiled::new(&shared, &kernel, translation.unwrap()).unwrap();
                }
            };
            std::thread::scope(|threads| {
                threads.spawn(|| compile(1));
                compile(100);
            });
            // SAFETY: valid handles.
            let data = |cache| unsafe { gpu.device.get_pipeline_cache_data(cache) };
            shared.with_cache(data).unwrap().len()
        };
        let (none, few, all) = (made(0, 0), made(0, 40), made(usize::MAX, 40));
        // Each pipeline was too many, so nothing is left; a driver may keep nothing anyway.
        assert!(few == none && few <= all, "{none}, {few} and {all} bytes");
        println!("{none} bytes of no pipelines, {all} of 80");
        let _ = std::fs::remove_dir_all(folder);
        assert_eq!(crate::validation_messages(), 0);
    }
}
