//! Storage: how elements lie in buffers and shared storage, and how to load, store and combine
//! them.
//!
//! A buffer is an array of the type its elements are held in, or of atomics of that width where
//! some op of the kernel is atomic. Elements of 8 and 16 bits are packed in words, as the host
//! lays them out: loading shifts and masks, and since threads may store neighbouring elements of
//! one word at once, a word that is stored to is atomic too. A store flips those bits of its
//! element that change; nobody else may change them, so it is one atomic operation and no loop.
//! Elements of shared storage have a word each.
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
    /// Whether several elements share a word.
    packed: bool,
    atomic: bool,
    /// The first word of each part; one part is the rule.
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
                Op::Store { buf, .. } if matches!(kernel.op(buf), Op::Param { .. }) => {
                    atomic[buf.idx()] |= kernel.ty(buf).dtype.bits() < 32;
                }
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
            let (name, packed, parts) = match op {
                Op::Param { slot, .. } => {
                    let parts = starts[slot as usize].clone();
                    (format!("p{slot}"), ty.dtype.bits() < 32, parts)
                }
                Op::Alloc { space: Space::Shared, .. } => (format!("m{}", value.0), false, vec![0]),
                _ => continue,
            };
            let cells = Cells { name, dtype: ty.dtype, packed, atomic: atomic[value.idx()], parts };
            storage.cells.insert(value, cells);
        }
        Ok(storage)
    }

    /// Adds the bindings of a buffer; gives the first word of each.
    fn bind(&mut self, slot: usize) -> Vec<u64> {
        let info = self.kernel.params()[slot];
        let word = info.dtype.size().max(4) as u64;
        let bytes = info.len.saturating_mul(info.dtype.size() as u64).next_multiple_of(4).max(word);
        let most = (self.speller.caps.max_binding / PART * PART).max(PART);
        let mut starts = Vec::new();
        let mut start = 0;
        while start < bytes {
            let part = most.min(bytes - start);
            self.bindings.push(Binding { slot, start, bytes: part });
            starts.push(start / word);
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
        let bytes = cells.dtype.size().max(4) * len as usize;
        self.shared.insert(name, (declaration, bytes));
    }

    /// The type of an element of the array.
    fn element(&self, cells: &Cells) -> String {
        let word = if cells.packed { "u32" } else { self.speller.ty(cells.dtype) };
        if cells.atomic { format!("atomic<{word}>") } else { word.to_owned() }
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
        if !cells.packed && cells.parts.len() == 1 {
            return spell(&cells, &format!("{}[{index}]", cells.name), x.unwrap_or_default());
        }
        let (name, ty) = (format!("{verb}_{}", cells.name), self.speller.ty(cells.dtype));
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
        self.access("load", buf, (index, None), |cells, place, _| {
            let word =
                if cells.atomic { format!("atomicLoad(&{place})") } else { place.to_owned() };
            let bits = cells.dtype.bits();
            match cells.dtype.is_signed() {
                _ if !cells.packed => word,
                true => format!("extractBits(i32({word}), s, {bits}u)"),
                false => format!("extractBits({word}, s, {bits}u)"),
            }
        })
    }

    /// A statement that stores an element that no other thread stores at the same time.
    pub(super) fn store(&mut self, buf: Value, index: &str, x: &str) -> String {
        let statement = self.access("store", buf, (index, Some(x)), |cells, place, x| {
            let signed = cells.dtype.is_signed();
            let word = if signed { format!("bitcast<u32>({x})") } else { x.to_owned() };
            let bits = cells.dtype.bits();
            match (cells.packed, cells.atomic) {
                (true, _) => format!(
                    "let seen = atomicLoad(&{place});\n        \
                     atomicXor(&{place}, seen ^ insertBits(seen, {word}, s, {bits}u))"
                ),
                (_, true) => format!("atomicStore(&{place}, {x})"),
                (_, false) => format!("{place} = {x}"),
            }
        });
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
        let w = if self.packed {
            let per_word = 32 / self.dtype.bits();
            let (shift, rest) = (per_word.ilog2(), per_word - 1);
            let bits = self.dtype.bits();
            let _ = writeln!(text, "    let w = i >> {shift}u;");
            let _ = writeln!(text, "    let s = (i & {rest}u) * {bits}u;");
            "w"
        } else {
            "i"
        };
        for (part, start) in self.parts.iter().enumerate() {
            let name = self.part(part);
            let place = match start {
                0 => format!("{name}[{w}]"),
                _ => format!("{name}[{w} - {start}u]"),
            };
            match self.parts.get(part + 1) {
                Some(next) => {
                    let _ = writeln!(text, "    if ({w} < {next}u) {{\n{}    }}", body(&place));
                }
                None => text.push_str(&body(&place).replace("\n    ", "\n")[4..]),
            }
        }
        text.push_str("}\n");
        text
    }
}
