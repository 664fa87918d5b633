//! From a legal kernel to a WGSL module.
//!
//! * [`expr`] spells values, types and every op's exact meaning;
//! * [`memory`] declares storage and says how elements lie in it;
//! * [`body`] writes the statements of one launch.
//!
//! Which loops a thread runs and where barriers stand is decided by `zyx_core::codegen`, which also
//! lowers the kernel to words before (`words`). A source is a pure function of kernel and
//! capabilities. It holds, in this order, the buffers, the scalar arguments, the functions of
//! `functions.wgsl` that are used, and an entry point per launch. All entry points take the same bind
//! group: the bindings of the buffers in order of slot, then the block of scalars, if there is one.

mod body;
mod expr;
mod memory;

use body::Body;
use expr::Speller;
use memory::Storage;
use std::fmt::Write;
use zyx_core::DType;
use zyx_core::codegen::{Entry, Unit, stages};
use zyx_core::hal::{Caps, CompileError};
use zyx_core::ir::Kernel;
use zyx_core::legalize::lower_to_32_bit;

/// A translated kernel.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    /// The kernel as it was lowered, whose arguments the launches take.
    pub(crate) kernel: Kernel,
    /// Source and launches.
    pub(crate) unit: Unit,
    /// The part of a buffer argument each binding covers, in order of binding.
    pub(crate) bindings: Vec<Binding>,
    /// Words of the block of scalars, a multiple of four; 0 when there is no block.
    pub(crate) words: usize,
}

impl Module {
    /// The source with these bindings, by bit, declared as read only.
    pub(crate) fn source(&self, read_only: u64) -> String {
        let mut source = self.unit.source.clone();
        for binding in (0..self.bindings.len()).filter(|&binding| read_only >> binding & 1 != 0) {
            let [from, to] = ["read_write", "read"]
                .map(|access| format!("@binding({binding}) var<storage, {access}>"));
            source = source.replacen(&from, &to, 1);
        }
        source
    }
}

/// A part of a buffer argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// The buffer's slot.
    pub(crate) slot: usize,
    /// Where the part starts, in bytes from the argument's offset.
    pub(crate) start: u64,
    /// Bytes, a multiple of four, at least four.
    pub(crate) bytes: u64,
}

/// The word of the block of scalars that is zero, and the number of words before arguments.
const RESERVED: usize = 1;

/// The words of scalar arguments as the block of scalars holds them: a zero, then each argument
/// in one word or, if it has 64 bits, in two, padded to whole vectors.
pub(crate) fn pack(kernel: &Kernel, vars: &[u64]) -> Vec<u32> {
    let mut words = vec![0; RESERVED];
    for (var, &bits) in kernel.vars().iter().zip(vars) {
        words.push(bits as u32);
        if var.dtype.bits() == 64 {
            words.push((bits >> 32) as u32);
        }
    }
    words.resize(words.len().next_multiple_of(4), 0);
    words
}

/// Translates a legal kernel.
///
/// # Errors
/// When the kernel needs what the device lacks, as legal kernels do not.
pub(crate) fn emit(kernel: &Kernel, caps: &Caps) -> Result<Module, CompileError> {
    let error = |log: String| CompileError::new(kernel, log);
    let lowered = lower_to_32_bit::lowered(kernel, caps).map_err(error)?;
    let kernel = &lowered;
    let speller = Speller { caps };
    let stages = stages::split(kernel, caps).map_err(error)?;
    let mut storage = Storage::of(kernel, speller).map_err(error)?;
    let (mut functions, mut entries, mut fenced) = (String::new(), Vec::new(), false);
    for (n, stage) in stages.iter().enumerate() {
        let name = format!("{}_{n}", identifier(kernel.name()));
        let mut body = Body::new(kernel, stage, speller, &mut storage);
        body.emit().map_err(error)?;
        fenced |= body.fenced;
        let [x, y, z] = stage.local;
        let lanes = stage.lanes(kernel, caps).map_err(error)?;
        let (thread, own) = thread(lanes);
        let start = own + &scalars(kernel, speller, body.fenced);
        let _ = write!(
            functions,
            "\n@compute @workgroup_size({x}, {y}, {z})\nfn {name}(\n    \
             @builtin(workgroup_id) group: vec3<u32>,\n    \
             @builtin(num_workgroups) groups: vec3<u32>,\n    \
             {thread},\n) {{\n{start}{}}}\n",
            body.out
        );
        entries.push(Entry { name, groups: stage.groups, local: stage.local, shared: 0 });
    }
    let words = match fenced || !kernel.vars().is_empty() {
        true => pack(kernel, &vec![0; kernel.vars().len()]).len(),
        false => 0,
    };
    let bindings = storage.bindings().to_vec();
    let mut source = storage.declarations().map_err(error)?;
    if words > 0 {
        let _ = writeln!(
            source,
            "@group(0) @binding({}) var<uniform> args: array<vec4<u32>, {}>;",
            bindings.len(),
            words / 4
        );
    }
    source.push_str(&storage.functions());
    source.push_str(&functions);
    source.push_str(&library(&source));
    Ok(Module { kernel: lowered, unit: Unit { source, entries }, bindings, words })
}

/// The kernel's name as an identifier no language reserves.
fn identifier(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    format!("k_{}", name.chars().map(clean).collect::<String>())
}

/// The parameters that tell a thread its place in its group, and the statement that defines it. With
/// shuffles, neighbours are lanes of one subgroup: the index that WGSL gives to a thread of the group
/// promises nothing of the sort.
fn thread(lanes: Option<u32>) -> (&'static str, String) {
    match lanes {
        None => ("@builtin(local_invocation_id) local: vec3<u32>", String::new()),
        Some(lanes) => (
            "@builtin(subgroup_id) subgroup: u32,\n    @builtin(subgroup_invocation_id) lane: u32",
            format!("    let local = vec3<u32>(subgroup * {lanes}u + lane, 0u, 0u);\n"),
        ),
    }
}

/// Definitions of the scalar arguments, and of the zero that fences use.
fn scalars(kernel: &Kernel, speller: Speller<'_>, fenced: bool) -> String {
    let word = |n: usize| format!("args[{}].{}", n / 4, ["x", "y", "z", "w"][n % 4]);
    let mut text = String::new();
    if fenced {
        let _ = writeln!(text, "    let z = {};", word(0));
    }
    let mut next = RESERVED;
    for (slot, var) in kernel.vars().iter().enumerate() {
        let (low, high) = (word(next), word(next + 1));
        next += var.dtype.bits().div_ceil(32);
        let value = match var.dtype {
            dtype if dtype.bits() == 64 => {
                let whole = format!("(u64({high}) << 32u) | u64({low})");
                speller.bitcast(DType::U64, dtype, &whole)
            }
            dtype => speller.bitcast(DType::U32, dtype, &low),
        };
        let _ = writeln!(text, "    let x{slot} = {value};");
    }
    text
}

/// The functions a source calls, none of which calls another.
fn library(source: &str) -> String {
    let all = include_str!("functions.wgsl").split("\n\n");
    let is_called = |text: &&str| {
        let name = text.split_once("fn ").and_then(|(_, rest)| rest.split_once('('));
        name.is_some_and(|(name, _)| source.contains(&format!("{name}(")))
    };
    all.filter(is_called).map(|text| format!("\n{}\n", text.trim_end())).collect()
}
