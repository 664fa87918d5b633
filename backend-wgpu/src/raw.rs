//! Kernels that users write in WGSL.
//!
//! wgpu compiles them with its checks: an access outside of a binding touches no other memory, and loops end. wgpu
//! compares some of the declaration with the source at a launch only, and drops all launches gathered with
//! it if they differ. [`module`] and the pipeline's layout find these differences when the kernel is compiled.

use crate::wgsl::{self, Binding, Module};
use zyx_core::codegen::Unit;
use zyx_core::hal::{CompileError, Language, RawKernel};

/// Languages of raw kernels.
pub(crate) const LANGUAGES: &[Language] = &[Language::Wgsl];

/// Bytes that every binding of a buffer has at least, and that an element may have at most: buffers are
/// allocated in whole multiples, and offsets into them are multiples.
pub(crate) const MIN_BINDING_BYTES: u64 = 16;

/// The source with a launch of its entry point, if both fit the declaration.
///
/// # Errors
/// With the parser's log, which has line numbers, or the first difference.
pub(crate) fn module(kernel: &RawKernel) -> Result<Module, CompileError> {
    let source = kernel.text()?;
    check(kernel, source).map_err(|log| kernel.error(log))?;
    let (outline, entry) = kernel.outline();
    let zeros = vec![0; kernel.vars.len()];
    let words = if zeros.is_empty() { 0 } else { wgsl::pack(&outline, &zeros).len() };
    // The bytes are those of the launch.
    let binding = |slot| Binding { slot, start: 0, bytes: MIN_BINDING_BYTES };
    let bindings = (0..kernel.params.len()).map(binding).collect();
    let unit = Unit { source: source.to_owned(), entries: vec![entry] };
    Ok(Module { kernel: outline, unit, bindings, words })
}

/// In a browser the source is checked by the browser alone.
#[cfg(target_arch = "wasm32")]
fn check(_: &RawKernel, _: &str) -> Result<(), String> {
    Ok(())
}

/// Compares the entry point, its groups and its bindings with the declaration.
#[cfg(not(target_arch = "wasm32"))]
fn check(kernel: &RawKernel, source: &str) -> Result<(), String> {
    use wgpu::naga::{self, AddressSpace, ShaderStage};
    let module = naga::front::wgsl::parse_str(source);
    let module = module.map_err(|error| error.emit_to_string(source))?;
    let name = &kernel.name;
    let compute = || module.entry_points.iter().filter(|e| e.stage == ShaderStage::Compute);
    let Some(entry) = compute().find(|entry| entry.name == *name) else {
        let names: Vec<&str> = compute().map(|entry| entry.name.as_str()).collect();
        let names = names.join(", ");
        return Err(format!("no entry point {name} for compute; the source has: {names}"));
    };
    let threads = entry.workgroup_size;
    if threads != kernel.threads || entry.workgroup_size_overrides.is_some() {
        return Err(format!("groups of {:?}, but the source has {threads:?}", kernel.threads));
    }
    // wgpu compares what the entry point uses with the layout of the declared arguments. Found here: arguments that are
    // declared and not in the source.
    let (buffers, scalars) = (kernel.params.len(), kernel.vars.len());
    let mut bound = vec![false; buffers + usize::from(scalars > 0)];
    let needed: usize = 1 + kernel.vars.iter().map(|dtype| dtype.size().div_ceil(4)).sum::<usize>();
    for (_, variable) in module.global_variables.iter() {
        let Some(binding) = variable.binding.filter(|binding| binding.group == 0) else { continue };
        let is_buffer = match variable.space {
            AddressSpace::Storage { .. } => true,
            AddressSpace::Uniform => false,
            _ => continue,
        };
        let slot = binding.binding as usize;
        let Some(bound) = bound.get_mut(slot).filter(|_| is_buffer == (slot < buffers)) else {
            continue;
        };
        *bound = true;
        let size = module.types[variable.ty].inner.size(module.to_ctx()) as usize;
        if !is_buffer && ![4 * needed, (4 * needed).next_multiple_of(16)].contains(&size) {
            return Err(format!(
                "binding {slot} has {size} bytes; a zero and {scalars} scalars are {needed} words"
            ));
        }
    }
    match bound.iter().position(|bound| !bound) {
        Some(slot) => Err(format!(
            "binding {slot} is missing; {buffers} buffers and {scalars} scalars are declared"
        )),
        None => Ok(()),
    }
}
