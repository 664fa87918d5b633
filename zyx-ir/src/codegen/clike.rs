//! The emitter for C-family languages: one statement per op, one block per region.
//!
//! Every value becomes a constant named after its number; constants and guards have no statement
//! of their own. A block of C ends where a region ends, so scopes agree. This file holds what
//! stands around the functions' bodies: parameters and helper functions.

use super::body::Body;
use super::dialect::{Dialect, Helper};
use super::expr::Speller;
use super::stages;
use super::{Entry, Unit};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::error::CompileError;
use crate::ir::{Access, Kernel, Type};
use crate::ops::BinaryOp;
use std::borrow::Borrow;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Translates a legal kernel.
///
/// # Errors
/// When the kernel needs what the device or the language lacks, as legal kernels do not.
pub fn emit(kernel: &Kernel, caps: &Caps, dialect: &Dialect) -> Result<Unit, CompileError> {
    let mut speller = Speller { dialect, caps, helpers: BTreeSet::new() };
    let (functions, entries) = functions(kernel, &mut speller, "k")?;
    Ok(Unit { source: around(&functions, &mut speller), entries })
}

/// Translates legal kernels to one source, and says what to launch for each.
///
/// # Errors
/// At the first kernel for which [`emit`] gives one.
pub fn emit_all(
    kernels: &[impl Borrow<Kernel>],
    caps: &Caps,
    dialect: &Dialect,
) -> Result<(String, Vec<Vec<Entry>>), CompileError> {
    let mut speller = Speller { dialect, caps, helpers: BTreeSet::new() };
    let (mut text, mut entries) = (String::new(), Vec::new());
    for (i, kernel) in kernels.iter().enumerate() {
        let (functions, of_kernel) = functions(kernel.borrow(), &mut speller, &format!("k{i}"))?;
        text.push_str(&functions);
        entries.push(of_kernel);
    }
    Ok((around(&text, &mut speller), entries))
}

/// The functions of a kernel, one for each stage, with names that start with `prefix`.
fn functions(
    kernel: &Kernel,
    speller: &mut Speller<'_>,
    prefix: &str,
) -> Result<(String, Vec<Entry>), CompileError> {
    let error = |log: String| CompileError::new(kernel, log);
    let stages = stages::split(kernel, speller.caps).map_err(error)?;
    let (mut functions, mut entries) = (String::new(), Vec::new());
    for (n, stage) in stages.iter().enumerate() {
        let name = format!("{prefix}_{}_{n}", identifier(kernel.name()));
        let (body, shared) = Body::new(kernel, stage, speller).emit().map_err(error)?;
        let start = (speller.dialect.entry)(stage.local);
        let arguments = arguments(kernel, speller);
        let _ = write!(functions, "\n{start} {name}({arguments}) {{\n{body}}}\n");
        entries.push(Entry { name, groups: stage.groups, local: stage.local, shared });
    }
    Ok((functions, entries))
}

/// The source around functions: the language's opening and the helpers they use.
fn around(functions: &str, speller: &mut Speller<'_>) -> String {
    let mut source = (speller.dialect.prelude)(speller.caps);
    source.push_str(&helpers(speller));
    source.push_str(functions);
    source
}

/// The kernel's name as the rest of an identifier.
fn identifier(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(clean).collect()
}

/// The parameter list, which all stages share.
fn arguments(kernel: &Kernel, speller: &Speller<'_>) -> String {
    let dialect = speller.dialect;
    let ty = |dtype| speller.ty(Type::scalar(dtype));
    let buffers = kernel.params().iter().enumerate().map(|(i, p)| {
        let constant = if p.access == Access::Read { "const " } else { "" };
        let buffer = format!("{}{constant}{} *p{i}", dialect.buffer, ty(p.dtype));
        if dialect.offsets { format!("{buffer}, {} o{i}", ty(DType::U64)) } else { buffer }
    });
    let vars = kernel.vars().iter().enumerate().map(|(i, v)| match v.dtype {
        DType::F16 => format!("{} h{i}", ty(DType::U16)),
        dtype => format!("{} x{i}", ty(dtype)),
    });
    buffers.chain(vars).collect::<Vec<_>>().join(", ")
}

/// Definitions of the helpers used. Atomics may call for more, so they are spelled first.
fn helpers(speller: &mut Speller<'_>) -> String {
    let mut atomics = String::new();
    for helper in speller.helpers.clone() {
        if let Helper::Atomic(op, dtype, shared) = helper {
            atomics.push_str(&atomic_helper(speller, op, dtype, shared));
        }
    }
    let mut text = String::new();
    for helper in speller.helpers.clone() {
        match helper {
            Helper::Atomic(..) => {}
            Helper::Pow(dtype) => text.push_str(&power_helper(speller, dtype)),
            Helper::Await(dtype) => text.push_str(&await_helper(speller, dtype)),
            _ => {
                let (from, to) = match helper {
                    Helper::Pack(dtype, n) => (Type::vector(DType::F32, n), dtype),
                    Helper::Unpack(dtype, n) => (Type::vector(dtype, n), DType::F32),
                    Helper::Odd(dtype) => (Type::scalar(dtype), DType::F32),
                    Helper::Pow(_) | Helper::Atomic(..) | Helper::Await(_) => continue,
                };
                let (result, from) = (speller.ty(from.with(to)), speller.ty(from));
                let (start, name) = (speller.dialect.function, helper.name());
                let body = (speller.dialect.helper)(helper);
                let _ = write!(text, "\n{start}{result} {name}({from} x) {{\n{body}}}\n");
            }
        }
    }
    text + &atomics
}

/// `x` to the power `y` by squaring; a negative exponent gives the truncated reciprocal.
fn power_helper(speller: &mut Speller<'_>, dtype: DType) -> String {
    let ty = Type::scalar(dtype);
    let name = speller.ty(ty);
    let mut product = |a, b| speller.binary(BinaryOp::Mul, ty, (a, b));
    let (step, square) = (product("r", "b"), product("b", "b"));
    let negative = match dtype.is_signed() {
        true => "    if (y < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1) : 0;\n",
        false => "",
    };
    let (start, helper) = (speller.dialect.function, Helper::Pow(dtype).name());
    format!(
        "\n{start}{name} {helper}({name} x, {name} y) {{\n{negative}    {name} r = 1, b = x;\n    \
         for (; y > 0; y >>= 1) {{\n        if (y & 1) r = {step};\n        b = {square};\n    \
         }}\n    return r;\n}}\n"
    )
}

/// Reads an element of a buffer until it is other than zero.
fn await_helper(speller: &Speller<'_>, dtype: DType) -> String {
    let (start, space) = (speller.dialect.function, speller.dialect.buffer);
    let (name, helper) = (speller.ty(Type::scalar(dtype)), Helper::Await(dtype).name());
    format!(
        "\n{start}{name} {helper}(const volatile {space}{name} *p) {{\n    {name} x;\n    \
         do x = *p;\n    while (x == 0);\n    return x;\n}}\n"
    )
}

/// A read-modify-write by compare and exchange of the 32- or 64-bit word around the element.
fn atomic_helper(speller: &mut Speller<'_>, op: BinaryOp, dtype: DType, shared: bool) -> String {
    let dialect = speller.dialect;
    let ty = Type::scalar(dtype);
    let compute = ty.with(speller.caps.compute_dtype(dtype));
    let bits = dtype.bits().max(32);
    let word = Type::scalar(if bits == 64 { DType::U64 } else { DType::U32 });
    let (y, x) = (speller.cast(ty, compute, "y"), speller.cast(ty, compute, "x"));
    let combined = speller.binary(op, compute, ("a", "b"));
    let result = speller.cast(compute, ty, "c");
    let (name, wname, cname) = (speller.ty(ty), speller.ty(word), speller.ty(compute));
    let space = if shared { dialect.shared_pointer } else { dialect.buffer };
    let (locate, old, new) = if dtype.bits() < 32 {
        let (mask, address) = ((1u64 << dtype.bits()) - 1, dialect.address);
        let raw = Type::scalar(if dtype.bits() == 8 { DType::U8 } else { DType::U16 });
        let extract = format!("({})(old >> shift)", speller.ty(raw));
        let insert = speller.bitcast(ty, raw, "z");
        (
            format!(
                "    const {address} at = ({address})p;\n    \
                 volatile {space}{wname} *word = (volatile {space}{wname} *)(at & ~({address})3);\n    \
                 const {wname} shift = ({wname})(at & 3) * 8u;\n"
            ),
            speller.bitcast(raw, ty, &extract),
            format!("(old & ~({mask:#x}u << shift)) | (({wname}){insert} << shift)"),
        )
    } else {
        (
            format!("    volatile {space}{wname} *word = (volatile {space}{wname} *)p;\n"),
            speller.bitcast(word, ty, "old"),
            speller.bitcast(ty, word, "z"),
        )
    };
    let (start, helper) = (dialect.function, Helper::Atomic(op, dtype, shared).name());
    let exchange = (dialect.exchange)(bits);
    format!(
        "\n{start}{name} {helper}(volatile {space}{name} *p, {name} x) {{\n{locate}    \
         {wname} seen = *word, old;\n    {name} y;\n    do {{\n        old = seen;\n        \
         y = {old};\n        const {cname} a = {y}, b = {x};\n        \
         const {cname} c = {combined};\n        const {name} z = {result};\n        \
         seen = {exchange}(word, old, {new});\n    }} while (seen != old);\n    return y;\n}}\n"
    )
}
