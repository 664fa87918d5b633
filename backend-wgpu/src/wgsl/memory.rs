//! Storage: where elements of buffers and shared storage are, and how to load, store and combine
//! them.
//!
//! A buffer is an array of numbers, or of atomics where some op of the kernel on it is atomic.
//!
//! All buffers are declared `read_write`, whatever the kernel does with them: two arguments may
//! lie in one buffer, and WebGPU refuses a buffer bound both ways. A buffer longer than a binding
//! may be is declared as several parts.

use super::Binding;
use super::expr::Speller;
use std::collections::BTreeMap;
use std::fmt::Write;
use zyx_core::ir::{Kernel, Op, Order, Space, Value};
use zyx_core::{BinaryOp, DType};

/// Parts of long buffers start at multiples of so many bytes.
const PART: u64 = 256;

/// How elements of one buffer or shared storage lie.
#[derive(Clone, Debug)]
struct Cells {
    name: String,
    dtype: DType,
    atomic: bool,
    /// The first element of each part; one part is the rule.
    parts: Vec<u64>,
}

/// The storage of a kernel, and the functions that its accesses need.
#[derive(Debug)]
pub(super) struct Storage<'a> {
    kernel: &'a Kernel,
    speller: Speller<'a>,
    /// By the `Param` or shared `Alloc`.
    cells: BTreeMap<Value, Cells>,
    bindings: Vec<Binding>,
    /// Declarations of shared storage that is used, and its bytes.
    shared: BTreeMap<String, (String, usize)>,
    /// Definitions by name.
    functions: BTreeMap<String, String>,
}

impl<'a> Storage<'a> {
    pub(super) fn of(kernel: &'a Kernel, speller: Speller<'a>) -> Result<Storage<'a>, String> {
        let mut storage = Storage {
            kernel,
            speller,
            cells: BTreeMap::new(),
            bindings: Vec::new(),
            shared: BTreeMap::new(),
            functions: BTreeMap::new(),
        };
        let mut atomic = vec![false; kernel.ops().len()];
        for (_, op, _) in kernel.iter() {
            match op {
                Op::Atomic { buf, .. }
                | Op::Load { order: Order::Relaxed, buf, .. }
                | Op::Store { order: Order::Relaxed, buf, .. } => atomic[buf.idx()] = true,
                _ => {}
            }
        }
        // Every argument has its bindings, even one the kernel never looks at.
        let mut starts = Vec::new();
        for slot in 0..kernel.params().len() {
            starts.push(storage.bind(slot));
        }
        let limit = speller.caps.max_buffers;
        if storage.bindings.len() > limit {
            let n = storage.bindings.len();
            return Err(format!("{n} bindings of buffers, the device has {limit}"));
        }
        for (value, op, ty) in kernel.iter() {
            let (name, parts) = match op {
                Op::Param { slot, .. } => (format!("p{slot}"), starts[slot as usize].clone()),
                Op::Alloc { space: Space::Shared, .. } => (format!("m{}", value.0), vec![0]),
                _ => continue,
            };
            let cells = Cells { name, dtype: ty.dtype, atomic: atomic[value.idx()], parts };
            storage.cells.insert(value, cells);
        }
        Ok(storage)
    }

    /// Adds the bindings of a buffer; gives the first element of each.
    fn bind(&mut self, slot: usize) -> Vec<u64> {
        let info = self.kernel.params()[slot];
        let size = info.dtype.size() as u64;
        let bytes = info.len.saturating_mul(size).max(size);
        let most = (self.speller.caps.max_binding / PART * PART).max(PART);
        // Launches bind all of a buffer of which they tell the length.
        let bytes = if info.is_open() { bytes.min(most) } else { bytes };
        let mut starts = Vec::new();
        let mut start = 0;
        while start < bytes {
            let part = most.min(bytes - start);
            self.bindings.push(Binding { slot, start, bytes: part });
            starts.push(start / size);
            start += part;
        }
        starts
    }

    pub(super) fn bindings(&self) -> &[Binding] {
        &self.bindings
    }

    /// The declarations of buffers and shared storage.
    pub(super) fn declarations(&self) -> Result<String, String> {
        let mut text = String::new();
        let mut seen = BTreeMap::new();
        for (at, binding) in self.bindings.iter().enumerate() {
            let part = seen.entry(binding.slot).and_modify(|n| *n += 1).or_insert(0usize);
            let by_slot = |c: &&Cells| c.name == format!("p{}", binding.slot);
            let Some(cells) = self.cells.values().find(by_slot) else { continue };
            let (name, ty) = (cells.part(*part), self.element(cells));
            let _ = writeln!(
                text,
                "@group(0) @binding({at}) var<storage, read_write> {name}: array<{ty}>;"
            );
        }
        let mut bytes = 0;
        for (declaration, size) in self.shared.values() {
            text.push_str(declaration);
            bytes += size;
        }
        let limit = self.speller.caps.shared_bytes;
        if bytes > limit {
            return Err(format!("{bytes} bytes of shared storage, the device has {limit}"));
        }
        Ok(text)
    }

    /// The functions that accesses call.
    pub(super) fn functions(&self) -> String {
        self.functions.values().cloned().collect()
    }

    /// Declares a shared `Alloc` of so many elements.
    pub(super) fn share(&mut self, value: Value, len: u32) {
        let cells = &self.cells[&value];
        let (name, ty) = (cells.name.clone(), self.element(cells));
        let declaration = format!("var<workgroup> {name}: array<{ty}, {len}>;\n");
        let bytes = cells.dtype.size() * len as usize;
        self.shared.insert(name, (declaration, bytes));
    }

    /// The type of an element of the array.
    fn element(&self, cells: &Cells) -> String {
        if cells.atomic { format!("atomic<{}>", cells.dtype) } else { cells.dtype.to_string() }
    }

    /// What `spell` makes of the place of an element and `x`: where finding the place takes a
    /// function, a call of one.
    fn access(
        &mut self,
        verb: &str,
        buf: Value,
        (index, x): (&str, Option<&str>),
        spell: impl Fn(&Cells, &str, &str) -> String,
    ) -> String {
        let cells = self.cells[&buf].clone();
        if cells.parts.len() == 1 {
            return spell(&cells, &format!("{}[{index}]", cells.name), x.unwrap_or_default());
        }
        let (name, ty) = (format!("{verb}_{}", cells.name), cells.dtype);
        let body = |place: &str| match (verb, spell(&cells, place, "x")) {
            ("store", statement) => format!("        {statement};\n        return;\n"),
            (_, result) => format!("        return {result};\n"),
        };
        let x = x.map(|x| (format!(", x: {ty}"), format!(", {x}")));
        let (parameter, argument) = x.unwrap_or_default();
        let result = if verb == "store" { String::new() } else { format!(" -> {ty}") };
        let text = cells.function(&format!("{name}(i: u32{parameter}){result}"), body);
        let call = format!("{name}({index}{argument})");
        self.functions.insert(name, text);
        call
    }

    /// The element at an index.
    pub(super) fn load(&mut self, buf: Value, index: &str) -> String {
        self.access("load", buf, (index, None), |cells, place, _| match cells.atomic {
            true => format!("atomicLoad(&{place})"),
            false => place.to_owned(),
        })
    }

    /// A statement that stores an element that no other thread stores at the same time.
    pub(super) fn store(&mut self, buf: Value, index: &str, x: &str) -> String {
        let spell = |cells: &Cells, place: &str, x: &str| match cells.atomic {
            true => format!("atomicStore(&{place}, {x})"),
            false => format!("{place} = {x}"),
        };
        let statement = self.access("store", buf, (index, Some(x)), spell);
        statement + ";"
    }

    /// An expression that combines an element with `x` indivisibly and gives the old one.
    pub(super) fn atomic(
        &mut self,
        op: BinaryOp,
        buf: Value,
        index: &str,
        x: &str,
    ) -> Result<String, String> {
        let dtype = self.kernel.ty(buf).dtype;
        if !self.speller.caps.has_atomic(op, dtype) {
            return Err(format!("no atomic {op} on {dtype}"));
        }
        let (first, rest) = op.name().split_at(1);
        let builtin = format!("atomic{}{rest}", first.to_uppercase());
        let spell = |_: &Cells, place: &str, x: &str| format!("{builtin}(&{place}, {x})");
        Ok(self.access(op.name(), buf, (index, Some(x)), spell))
    }
}

impl Cells {
    /// The name of a part.
    fn part(&self, part: usize) -> String {
        if self.parts.len() == 1 { self.name.clone() } else { format!("{}_{part}", self.name) }
    }

    /// A function of the element index `i` with a body for the part that holds the element, given
    /// its place. The body returns.
    fn function(&self, signature: &str, body: impl Fn(&str) -> String) -> String {
        let mut text = format!("\nfn {signature} {{\n");
        for (part, start) in self.parts.iter().enumerate() {
            let name = self.part(part);
            let place = match start {
                0 => format!("{name}[i]"),
                _ => format!("{name}[i - {start}u]"),
            };
            match self.parts.get(part + 1) {
                Some(next) => {
                    let _ = writeln!(text, "    if (i < {next}u) {{\n{}    }}", body(&place));
                }
                None => text.push_str(&body(&place).replace("\n    ", "\n")[4..]),
            }
        }
        text.push_str("}\n");
        text
    }
}
