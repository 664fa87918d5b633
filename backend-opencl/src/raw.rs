//! Kernels that users write in OpenCL C.

use crate::driver::{Kernel, Space};
use opencl3::device::Device;
use zyx_core::hal::{CompileError, Language, RawKernel};

/// Languages of raw kernels.
pub(crate) const LANGUAGES: &[Language] = &[Language::OpenClC];

/// Options of raw kernels: the language is that of generated ones, and the driver tells of parameters.
pub(crate) const OPTIONS: &str = "-cl-std=CL1.2 -cl-kernel-arg-info";

/// Checks that the parameters of an entry point are the declared ones, before a launch passes numbers for memory
/// objects; and that the source does not ask for other groups.
///
/// # Errors
/// Names the first parameter that differs.
pub(crate) fn check(
    kernel: &RawKernel,
    object: &Kernel,
    device: &Device,
) -> Result<(), CompileError> {
    let error = |log: String| Err(kernel.error(log));
    let buffers = kernel.params.iter().flat_map(|_| [Space::Global, Space::Private]);
    let scalars = kernel.vars.iter().map(|_| Space::Private);
    let shared = (kernel.shared_bytes > 0).then_some(Space::Local);
    let expected: Vec<Space> = buffers.chain(scalars).chain(shared).collect();
    let (n, m, all) = (kernel.params.len(), kernel.vars.len(), expected.len());
    let found = object.parameters().map_err(|code| kernel.error(code))?;
    if found as usize != all {
        let name = &kernel.name;
        return error(format!(
            "{name} has {found} parameters; the declared {n} buffers, {m} scalars and {} bytes of shared storage are {all}",
            kernel.shared_bytes
        ));
    }
    for (index, &expected) in (0..).zip(&expected) {
        if let Some(found) = object.space(index).filter(|&found| found != expected) {
            return error(format!("parameter {index} is {found:?}, declared as {expected:?}"));
        }
    }
    // The driver compares the sizes of values.
    let sizes = kernel.vars.iter().map(|dtype| dtype.size());
    let offsets = (0..n).map(|slot| (2 * slot as u32 + 1, size_of::<u64>()));
    for (index, bytes) in offsets.chain((2 * n as u32..).zip(sizes)) {
        if let Err(code) = object.set_scalar(index, bytes, 0) {
            return error(format!("parameter {index} has not {bytes} bytes: {code}"));
        }
    }
    let threads = kernel.threads.map(|n| n as usize);
    let (stated, most) = object.group_sizes(device);
    if let Some(stated) = stated.filter(|&stated| stated != threads) {
        return error(format!("groups of {threads:?}, but the source asks for {stated:?}"));
    }
    match most.filter(|&most| threads.iter().product::<usize>() > most) {
        Some(most) => error(format!("groups of {threads:?}, limit {most} threads for this code")),
        None => Ok(()),
    }
}
