//! Kernels that users write in CUDA C++ or PTX.
//!
//! The driver reads as many arguments as the code has parameters, so parameters are compared with the
//! declaration before a program exists: in the text of PTX, for CUDA C++ in the PTX that NVRTC writes.

use zyx_core::DType;
use zyx_core::hal::{CompileError, Language, RawKernel};

/// Languages of raw kernels.
pub(crate) const LANGUAGES: &[Language] = &[Language::CudaC, Language::Ptx];

/// Threads of a group per axis, on every device.
const MAX_THREADS_PER_AXIS: [u32; 3] = [1024, 1024, 64];

/// Checks that PTX has the entry point of a raw kernel, with the parameters that the declaration says.
///
/// # Errors
/// Names the entry points there are, or the sizes of parameters.
pub fn check_entry(kernel: &RawKernel, ptx: &str) -> Result<(), CompileError> {
    let entries = entries(ptx);
    let Some((_, found)) = entries.iter().find(|(name, _)| *name == kernel.name) else {
        let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
        let hint = match kernel.language {
            Language::CudaC => "; functions need extern \"C\" __global__",
            _ => "",
        };
        let (name, names) = (&kernel.name, names.join(", "));
        return Err(kernel.error(format!("no entry point {name}; the code has: {names}{hint}")));
    };
    let pointers = kernel.params.iter().map(|_| size_of::<u64>());
    let expected: Vec<usize> =
        pointers.chain(kernel.vars.iter().map(|dtype: &DType| dtype.size())).collect();
    if *found == expected {
        return Ok(());
    }
    let (n, m) = (kernel.params.len(), kernel.vars.len());
    Err(kernel.error(format!(
        "{} has parameters of {found:?} bytes; the declared {n} buffers and {m} scalars are of {expected:?}",
        kernel.name
    )))
}

/// Checks what the driver would find at the first launch.
///
/// # Errors
/// When a group has too many threads along an axis.
pub(crate) fn check_threads(kernel: &RawKernel) -> Result<(), CompileError> {
    match kernel.threads.iter().zip(MAX_THREADS_PER_AXIS).all(|(&n, limit)| n <= limit) {
        true => Ok(()),
        false => {
            let threads = kernel.threads;
            let log = format!("groups of {threads:?}, limit {MAX_THREADS_PER_AXIS:?}");
            Err(kernel.error(log))
        }
    }
}

/// The entry points of PTX, with the size of each parameter in bytes.
fn entries(ptx: &str) -> Vec<(String, Vec<usize>)> {
    let text = without_comments(ptx);
    let entry = |part: &str| {
        let part = part.trim_start();
        let end = part.find(|c: char| c.is_whitespace() || "({;".contains(c)).unwrap_or(part.len());
        let (name, rest) = part.split_at(end);
        let list = rest.trim_start().strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let params = list.map_or("", |(params, _)| params).split(',');
        let sizes = params.filter(|param| param.contains(".param")).map(size).collect();
        (name.to_owned(), sizes)
    };
    text.split(".entry").skip(1).map(entry).collect()
}

/// The bytes of a parameter, as in `.param .align 2 .b8 name[2]`; 0 if its type is unknown.
fn size(param: &str) -> usize {
    let bits = |token: &str| match token.strip_prefix(['.'])?.strip_prefix(['u', 's', 'f', 'b'])? {
        "8" => Some(1),
        "16" => Some(2),
        "32" => Some(4),
        "64" => Some(8),
        "128" => Some(16),
        _ => None,
    };
    let element = param.split_whitespace().find_map(bits).unwrap_or(0);
    let count = param.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    element * count.map_or(Some(1), |(n, _)| n.trim().parse().ok()).unwrap_or(0)
}

/// Text without `// ...` and `/* ... */`.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let (end, skipped) = match from.as_bytes().get(1) {
            Some(b'/') => ("\n", 0),
            Some(b'*') => ("*/", 2),
            _ => {
                out.push('/');
                rest = &from[1..];
                continue;
            }
        };
        out.push(' ');
        rest = from[2..].find(end).map_or("", |end| &from[2 + end + skipped..]);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_from_assembly() {
        let ptx = "// .entry nothing(.param .u8 x)
.visible .entry axpy(
\t.param .u64 .ptr .global .align 4 axpy_param_0, /* , */ .param .b64 p,
\t.param .f32 axpy_param_2,
\t.param .align 2 .b8 axpy_param_3[2]
)
.maxntid 64, 1, 1
{ ret; }
.entry empty { div.rn.f32 %f1, %f2, 0f00000000; ret; }
.entry none() { ret; }";
        let empty = |name: &str| (name.to_owned(), vec![]);
        let axpy = ("axpy".to_owned(), vec![8, 8, 4, 2]);
        assert_eq!(entries(ptx), [axpy, empty("empty"), empty("none")]);
        assert_eq!(entries(".entry"), [empty("")]);
        assert_eq!(entries("/* open"), []);
        assert_eq!(without_comments("a / b // c\nd /* e */ f/"), "a / b  \nd   f/");
    }
}
