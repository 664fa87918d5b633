//! What a well-formed kernel is: the executable specification of the IR.
//!
//! A kernel is well-formed when all of these hold; [`Rule`] names them in errors.
//!
//! * **Regions** nest: each `End` names the innermost open `Loop` or `If`; all are closed. A
//!   `Break` stands directly in a serial loop.
//! * **Operands** stand before their use and in a region still open there. A loop's counter is
//!   visible inside the loop only. Storage (`Param`, `Alloc`) is used as storage, nothing else is;
//!   ops without a result are not used; a `Guard` is used only as an index.
//! * **Types** follow from the operands (`types.rs`): domains of the op tables, equal lanes,
//!   `bool` conditions, `i64` or `i32` indices.
//! * **Arguments**: `Param` and `Var` stand at the top level, once per slot, as declared.
//! * **Access** rights: loads need `Read`, stores `Write`, atomics `ReadWrite`; orders stronger
//!   than plain are for storage that others can see.
//! * **Nests** (`nest.rs`): `Group` and `Local` loops form an outer nest: `Group` loops inside
//!   nothing but `Group` loops, `Local` loops inside nothing but those and each other, one chain
//!   per nest, distinct axes below 3, lengths known at launch. What others can see (stores to
//!   buffers and shared storage, atomics, barriers, shuffles) happens in the innermost loop of
//!   the chain. Several nests may follow one another.
//! * **Storage**: register storage is private to an iteration: no parallel loop lies between it
//!   and a store to it. Shared storage is allocated directly inside its group.
//! * **Flow**: a barrier or shuffle is reached by all local iterations together: loops and ifs
//!   around it depend on nothing that differs between them, nor do conditions that end those loops.
//! * **Bounds**: no access is outside its storage for certain. What [`Ranges`]
//!   can neither prove nor refute is listed in [`Report::unproven`]; kernels for devices must
//!   have none.
//!
//! What needs the run to be seen, races above all, is the interpreter's part.

mod caps;
mod nest;
mod types;
mod verified;

pub use verified::{Rewritten, Verified};

use super::extents::{Extents, Proof};
use super::kernel::Kernel;
use super::mma;
use super::op::{Op, Type, Value};
use super::range::Ranges;
use super::regions::Regions;
use crate::caps::Caps;
use std::fmt;

/// The rule of the [module documentation](self) that a kernel breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the module documentation explains each rule")]
pub enum Rule {
    Regions,
    Operands,
    Types,
    Arguments,
    Access,
    Nests,
    Storage,
    Flow,
    Bounds,
    /// A limit of the device, see [`verify_for`].
    Caps,
}

/// A kernel that is not well-formed: which value breaks which rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {kernel}: {value} `{op}` breaks rule {rule:?}: {reason}")]
pub struct VerifyError {
    /// The kernel's name.
    pub kernel: String,
    /// The value whose op is wrong.
    pub value: Value,
    /// That op as text.
    pub op: String,
    /// The broken rule.
    pub rule: Rule,
    /// What is wrong.
    pub reason: String,
}

/// What verification learnt of a well-formed kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Accesses that range analysis could not prove to be in bounds.
    pub unproven: Vec<Value>,
}

/// Why one op breaks a rule; turned into a [`VerifyError`] where the kernel is known.
struct Broken {
    rule: Rule,
    reason: String,
}

type Check = Result<(), Broken>;

impl Rule {
    /// This rule as broken for a reason.
    fn broken<T>(self, reason: impl fmt::Display) -> Result<T, Broken> {
        Err(Broken { rule: self, reason: reason.to_string() })
    }

    /// Fine if `holds`, else broken.
    fn require(self, holds: bool, reason: impl fmt::Display) -> Check {
        if holds { Ok(()) } else { self.broken(reason) }
    }
}

/// Checks all rules that hold on every device.
///
/// # Errors
/// With the first value that breaks a rule.
pub fn verify(kernel: &Kernel) -> Result<Report, VerifyError> {
    structure(kernel)?;
    flows(kernel)?;
    bounds(kernel)
}

/// Checks the rule on barriers and shuffles.
fn flows(kernel: &Kernel) -> Result<(), VerifyError> {
    if !kernel.ops().iter().any(Op::meets) {
        return Ok(());
    }
    let regions = Regions::of(kernel);
    let divergent = nest::divergence(kernel);
    each(kernel, |value, op, _| nest::flow(kernel, &regions, &divergent, value, op))
}

/// How many elements the storage of an access has.
fn len(kernel: &Kernel, access: Value) -> i128 {
    let buf = kernel.op(access).operands().next();
    buf.map_or(0, |buf| match kernel.op(buf) {
        Op::Param { slot, .. } => {
            let info = &kernel.params()[slot as usize];
            if info.open { 0 } else { info.len as i128 }
        }
        Op::Alloc { len, .. } => len as i128,
        _ => 0,
    })
}

/// The extents of the buffer of an access, if they are scalars, and the most elements that it has.
fn extents(kernel: &Kernel, access: Value) -> Option<(Extents, u64)> {
    let Op::Param { slot, .. } = kernel.op(kernel.op(access).operands().next()?) else {
        return None;
    };
    let info = kernel.params()[usize::from(slot)];
    Some((info.extents?, info.len))
}

/// The values that scalar arguments are, by slot.
fn scalars(kernel: &Kernel) -> Vec<Option<Value>> {
    let mut vars = vec![None; kernel.vars().len()];
    for (value, op, _) in kernel.iter() {
        if let Op::Var { slot } = op {
            vars[usize::from(slot)] = Some(value);
        }
    }
    vars
}

/// Sorts accesses into those in bounds, those certainly not, and those unproven.
fn bounds(kernel: &Kernel) -> Result<Report, VerifyError> {
    if kernel.members().is_some_and(|members| members.made(kernel)) {
        // Of each member it was shown, and launches are for members alone.
        return Ok(Report::default());
    }
    let ranges = Ranges::of(kernel);
    let vars = scalars(kernel);
    let mut unproven = Vec::new();
    each(kernel, |value, op, _| {
        if let Op::Mma { row, a, b, .. } = op {
            let wide = |(right, x)| (!in_panel(kernel, &ranges, row, right, x)).then_some(x);
            unproven.extend([(false, a), (true, b)].into_iter().filter_map(wide));
        }
        let Some(elements) = ranges.elements(value) else { return Ok(()) };
        if let Some((extents, most)) = extents(kernel, value) {
            let proof = Proof { kernel, ranges: &ranges, access: value, vars: &vars, most };
            unproven.extend((!proof.holds(extents) && !ranges.is_dead(value)).then_some(value));
            return Ok(());
        }
        let len = len(kernel, value);
        if elements.within(0, len - 1) || ranges.is_dead(value) {
            return Ok(());
        }
        // Loops may be empty and conditions false: what is certainly outside is an error only
        // where it certainly happens.
        let (min, max) = (elements.min, elements.max);
        let outside = max < 0 || min >= len;
        Rule::Bounds.require(
            !(outside && is_certain(kernel, &ranges, value)),
            format_args!("elements {min} to {max} of {len}"),
        )?;
        unproven.push(value);
        Ok(())
    })?;
    Ok(Report { unproven })
}

/// Whether the slots that a matrix instruction reads of a panel are in its storage. True of factors
/// in registers.
fn in_panel(kernel: &Kernel, ranges: &Ranges<'_>, row: u16, right: bool, x: Value) -> bool {
    let Op::Panel { index, .. } = kernel.op(x) else { return true };
    let first = ranges.at(index, x);
    let slots = mma::SLOTS as i128;
    let turned = right && mma::ROWS[row as usize].shape == mma::Shape::Turned;
    let rows = if turned { mma::WARPGROUP as i128 / slots } else { mma::WIDE as i128 };
    first.within(0, len(kernel, x) - 1) && (first.max / slots + rows) * slots <= len(kernel, x)
}

/// Whether an access happens in every run: it is not guarded, loops around it are not empty and do not end
/// before it in their first iteration.
fn is_certain(kernel: &Kernel, ranges: &Ranges<'_>, access: Value) -> bool {
    let guarded = kernel.op(access).operands().any(|x| matches!(kernel.op(x), Op::Guard { .. }));
    let left = |region| {
        let before = kernel.iter().take(access.idx());
        let mut breaks = before.filter(|(_, op, _)| matches!(op, Op::Break { .. }));
        breaks.any(|(v, ..)| ranges.regions().parent(v) == Some(region))
    };
    !guarded
        && !ranges.regions().enclosing(access).any(left)
        && ranges.regions().enclosing(access).all(|region| match kernel.op(region) {
            Op::Loop { len, .. } => ranges.get(len).min > 0,
            Op::If { cond } => ranges.get(cond).min > 0,
            _ => false,
        })
}

/// Checks all rules and that the kernel needs nothing `caps` lacks: what legalisation promises.
///
/// # Errors
/// With the first value that breaks a rule, [`Rule::Caps`] for a limit of the device.
pub fn verify_for(kernel: &Kernel, caps: &Caps) -> Result<Report, VerifyError> {
    let report = verify(kernel)?;
    caps::check(kernel, caps)?;
    Ok(report)
}

/// The rules without which a kernel has no meaning: all but flow and bounds. The interpreter
/// accepts what passes these and finds the rest while running.
pub(super) fn structure(kernel: &Kernel) -> Result<(), VerifyError> {
    let mut scope = Scope { open: Vec::new(), visible: vec![false; kernel.ops().len()] };
    each(kernel, |value, op, _| scope.enter(kernel, value, op))?;
    if let Some(&open) = scope.open.last() {
        return Err(error(kernel, open, Rule::Regions, "the region is never closed"));
    }
    let mut slots = types::Slots::default();
    each(kernel, |_, op, ty| {
        slots.declared(kernel, op)?;
        types::check(kernel, op, ty)
    })?;
    let regions = Regions::of(kernel);
    let known = nest::known_at_launch(kernel, &regions);
    each(kernel, |value, op, _| {
        nest::placement(kernel, &regions, &known, value, op)?;
        nest::storage(kernel, &regions, value, op)
    })?;
    nest::chains(kernel, &regions)
}

fn each(
    kernel: &Kernel,
    mut check: impl FnMut(Value, Op, Type) -> Check,
) -> Result<(), VerifyError> {
    for (value, op, ty) in kernel.iter() {
        check(value, op, ty).map_err(|b| error(kernel, value, b.rule, &b.reason))?;
    }
    Ok(())
}

fn error(kernel: &Kernel, value: Value, rule: Rule, reason: &str) -> VerifyError {
    VerifyError {
        kernel: kernel.name().to_owned(),
        value,
        op: super::print::line(kernel, value),
        rule,
        reason: reason.to_owned(),
    }
}

/// The walk that checks regions and what operands refer to.
struct Scope {
    open: Vec<Value>,
    /// For each value whether it may be used at this point.
    visible: Vec<bool>,
}

impl Scope {
    fn enter(&mut self, kernel: &Kernel, value: Value, op: Op) -> Check {
        if let Op::End { open } = op {
            Rule::Regions.require(
                self.open.last() == Some(&open),
                format_args!("{open} is not the innermost open region"),
            )?;
            self.open.pop();
            // The values of the region, its counter included, are out of scope from here on.
            self.visible[open.idx()..value.idx()].fill(false);
            return Ok(());
        }
        for (position, operand) in op.operands().enumerate() {
            Rule::Operands.require(
                self.visible.get(operand.idx()).copied().unwrap_or(false),
                format_args!("{operand} is not defined here"),
            )?;
            self.kind(kernel, op, position, operand)?;
        }
        self.visible[value.idx()] = true;
        if op.opens_region() {
            self.open.push(value);
        }
        Ok(())
    }

    /// Whether what `operand` is may stand at this position of `op`.
    fn kind(&self, kernel: &Kernel, op: Op, position: usize, operand: Value) -> Check {
        let is_access =
            matches!(op, Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::Panel { .. });
        let is_storage = matches!(kernel.op(operand), Op::Param { .. } | Op::Alloc { .. });
        let wants_storage = is_access && position == 0;
        let is_index =
            is_access && position == 1 || matches!(op, Op::Guard { .. }) && position == 0;
        let is_factor = matches!(op, Op::Mma { .. }) && position < 2;
        match kernel.op(operand) {
            _ if wants_storage && !is_storage => {
                Rule::Operands.broken(format_args!("{operand} is not storage"))
            }
            _ if !wants_storage && is_storage => {
                Rule::Operands.broken(format_args!("{operand} is storage, not a value"))
            }
            Op::Store { .. }
            | Op::If { .. }
            | Op::Break { .. }
            | Op::End { .. }
            | Op::Barrier { .. } => Rule::Operands.broken(format_args!("{operand} has no result")),
            Op::Guard { .. } if !is_index => {
                Rule::Operands.broken(format_args!("{operand} is a guard, usable as index only"))
            }
            Op::Panel { .. } if !is_factor => {
                Rule::Operands.broken(format_args!("{operand} is a panel, usable as factor only"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
