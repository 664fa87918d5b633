//! The rules on where ops stand: nests of parallel loops, storage, uniform flow.

use super::{Check, Rule, VerifyError, error};
use crate::ir::kernel::Kernel;
use crate::ir::op::{LoopKind, Op, Order, Space, Value};
use crate::ir::regions::{Regions, loop_kind};

/// Checks that an op stands in a region it may stand in.
pub(super) fn placement(
    kernel: &Kernel,
    regions: &Regions,
    known_at_launch: &[bool],
    value: Value,
    op: Op,
) -> Check {
    match op {
        Op::Param { .. } | Op::Var { .. } => Rule::Arguments
            .require(regions.parent(value).is_none(), "arguments stand at the top level"),
        Op::Loop { kind: kind @ (LoopKind::Group | LoopKind::Local), axis, len } => {
            Rule::Nests.require(axis < 3, format_args!("axis {axis} of 3"))?;
            for region in regions.enclosing(value) {
                let around = loop_kind(kernel, region);
                let fits = around == Some(LoopKind::Group) || around == Some(kind);
                Rule::Nests.require(fits, format_args!("{kind:?} inside {region}"))?;
                let same_axis = matches!(kernel.op(region), Op::Loop { kind: k, axis: a, .. }
                    if k == kind && a == axis);
                Rule::Nests.require(!same_axis, format_args!("axis {axis} is used twice"))?;
            }
            let known = known_at_launch[len.idx()];
            Rule::Nests.require(known, format_args!("{len} is not known at launch"))
        }
        Op::Break { .. } => {
            let parent = regions.parent(value).and_then(|region| loop_kind(kernel, region));
            Rule::Regions.require(
                parent == Some(LoopKind::Serial),
                "a break stands directly in a serial loop",
            )
        }
        Op::Alloc { space: Space::Shared, .. } => {
            let in_group =
                regions.enclosing(value).all(|r| loop_kind(kernel, r) == Some(LoopKind::Group));
            Rule::Storage.require(in_group, "shared storage stands directly in its group")
        }
        _ => Ok(()),
    }
}

/// For each value whether it stands at the top level and depends on nothing but arguments and
/// literals.
pub(super) fn known_at_launch(kernel: &Kernel, regions: &Regions) -> Vec<bool> {
    let mut known = Vec::with_capacity(kernel.ops().len());
    for (value, op, _) in kernel.iter() {
        let own = matches!(op, Op::Var { .. }) || op.is_pure();
        let top = regions.parent(value).is_none();
        let constant = matches!(op, Op::Const { .. });
        known.push(constant || own && top && op.operands().all(|x| known[x.idx()]));
    }
    known
}

/// Checks that storage is visible to the iterations that access it.
pub(super) fn storage(kernel: &Kernel, regions: &Regions, value: Value, op: Op) -> Check {
    let (buf, is_store) = match op {
        Op::Load { buf, .. } | Op::Panel { buf, .. } => (buf, false),
        Op::Store { buf, .. } | Op::Atomic { buf, .. } => (buf, true),
        _ => return Ok(()),
    };
    let Op::Alloc { space, .. } = kernel.op(buf) else { return Ok(()) };
    for region in regions.between(value, buf) {
        let Some(kind) = loop_kind(kernel, region) else { continue };
        let fits = match (space, kind) {
            (_, LoopKind::Serial) => true,
            (Space::Register, _) => !is_store,
            (Space::Shared, _) => kind != LoopKind::Group,
        };
        Rule::Storage.require(
            fits,
            format_args!("{buf} is outside the {kind:?} loop {region} and belongs to all of it"),
        )?;
    }
    Ok(())
}

/// Checks that each nest is a chain and that effects stand in its innermost loop.
pub(super) fn chains(kernel: &Kernel, regions: &Regions) -> Result<(), VerifyError> {
    let is_parallel = |v| matches!(loop_kind(kernel, v), Some(LoopKind::Group | LoopKind::Local));
    // For each loop of a nest the one directly inside it.
    let mut inner = vec![None; kernel.ops().len()];
    for (value, _, _) in kernel.iter().filter(|&(v, _, _)| is_parallel(v)) {
        let Some(outer) = regions.parent(value) else { continue };
        if let Some(first) = inner[outer.idx()].replace(value) {
            let reason = format!("{outer} already holds the loop {first} of this nest");
            return Err(error(kernel, value, Rule::Nests, &reason));
        }
    }
    for (value, _, _) in kernel.iter().filter(|&(_, op, _)| is_effect(kernel, op)) {
        let loops = regions.enclosing(value).find(|&r| is_parallel(r));
        if let Some(inner) = loops.and_then(|r| inner[r.idx()]) {
            let reason = format!("an effect outside {inner}, the innermost loop of its nest");
            return Err(error(kernel, value, Rule::Nests, &reason));
        }
    }
    Ok(())
}

/// Whether other iterations can see that the op happens.
fn is_effect(kernel: &Kernel, op: Op) -> bool {
    match op {
        Op::Atomic { .. } => true,
        Op::Store { buf, .. } => {
            !matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. })
        }
        _ => op.meets(),
    }
}

/// Checks that a barrier, shuffle or matrix instruction is reached by all local iterations of a group together.
pub(super) fn flow(
    kernel: &Kernel,
    regions: &Regions,
    divergent: &[bool],
    value: Value,
    op: Op,
) -> Check {
    if !op.meets() {
        return Ok(());
    }
    let is_local = |r: &Value| loop_kind(kernel, *r) == Some(LoopKind::Local);
    let in_local = regions.enclosing(value).any(|r| is_local(&r));
    Rule::Flow.require(in_local, "there is no local loop around it")?;
    for region in regions.enclosing(value).filter(is_local) {
        let Op::Loop { len, .. } = kernel.op(region) else { continue };
        let fixed = kernel.constant(len).is_some();
        Rule::Flow.require(fixed, format_args!("the length of {region} is no literal"))?;
    }
    for region in regions.enclosing(value).take_while(|r| !is_local(r)) {
        let uniform = match kernel.op(region) {
            Op::If { cond } => !divergent[cond.idx()],
            Op::Loop { kind: LoopKind::Serial, len, .. } => !divergent[len.idx()],
            _ => false,
        };
        Rule::Flow.require(
            uniform,
            format_args!("local iterations may differ in whether they enter {region}"),
        )?;
        let leaves = kernel.iter().find(|&(v, op, _)| match op {
            Op::Break { cond } => divergent[cond.idx()] && regions.parent(v) == Some(region),
            _ => false,
        });
        if let Some((leaves, ..)) = leaves {
            let reason =
                format!("local iterations may differ in when they leave {region}, by {leaves}");
            return Rule::Flow.broken(reason);
        }
    }
    Ok(())
}

/// For each op whether it is a register that may be loaded before it is stored to: all but those of one element whose first
/// access is a store in the region of the register.
fn not_initialized(kernel: &Kernel) -> Vec<bool> {
    let mut unknown = vec![false; kernel.ops().len()];
    let mut regions: Vec<Value> = Vec::new();
    // Registers without an access so far, and their regions.
    let mut fresh: Vec<(Value, Option<Value>)> = Vec::new();
    for (value, op, _) in kernel.iter() {
        match op {
            Op::Alloc { space: Space::Register, len } => {
                unknown[value.idx()] = true;
                if len == 1 {
                    fresh.push((value, regions.last().copied()));
                }
            }
            Op::Loop { .. } | Op::If { .. } => regions.push(value),
            Op::End { .. } => _ = regions.pop(),
            _ => {}
        }
        for x in op.operands() {
            let Some(at) = fresh.iter().position(|register| register.0 == x) else { continue };
            let (register, region) = fresh.swap_remove(at);
            let is_store = matches!(op, Op::Store { buf, index, .. }
                if buf == register && !matches!(kernel.op(index), Op::Guard { .. }));
            unknown[register.idx()] = !(is_store && region == regions.last().copied());
        }
    }
    unknown
}

/// For each value whether local iterations of one group may see different ones. Results of atomics and shuffles are taken to
/// differ, and the contents of a register that may not be initialised, or that some iterations alone store to, or different values; a plain
/// load at an index that all share gives all the same, or else is a race.
pub(super) fn divergence(kernel: &Kernel) -> Vec<bool> {
    let n = kernel.ops().len();
    // For registers, whether contents differ; for loops, whether iterations leave at different times.
    let (mut divergent, mut apart) = (vec![false; n], not_initialized(kernel));
    let is_register = |buf| matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. });
    loop {
        let mut found = false;
        // The regions around an op, and whether iterations differ in whether they are in them.
        let mut around: Vec<(Value, bool)> = Vec::new();
        for (value, op, _) in kernel.iter() {
            let own = match op {
                Op::Loop { kind, .. } => kind == LoopKind::Local,
                Op::Load { order, buf, .. } => {
                    !matches!(order, Order::Plain | Order::Streaming) || apart[buf.idx()]
                }
                Op::Atomic { .. } | Op::Shuffle { .. } | Op::Mma { .. } => true,
                _ => false,
            };
            divergent[value.idx()] = own || op.operands().any(|x| divergent[x.idx()]);
            let (region, differ) = around.last().map_or((value, false), |&last| last);
            let mut part = |at: Value, parts: bool| {
                found |= parts && !apart[at.idx()];
                apart[at.idx()] |= parts;
            };
            match op {
                Op::Store { buf, index, value, .. } if is_register(buf) => {
                    part(buf, differ || divergent[index.idx()] || divergent[value.idx()]);
                }
                Op::Break { cond } => part(region, differ || divergent[cond.idx()]),
                _ => {}
            }
            match op {
                Op::If { cond } => around.push((value, differ || divergent[cond.idx()])),
                Op::Loop { kind: LoopKind::Local, .. } => around.push((value, false)),
                Op::Loop { len, .. } => {
                    around.push((value, differ || divergent[len.idx()] || apart[value.idx()]));
                }
                Op::End { .. } => _ = around.pop(),
                _ => {}
            }
        }
        if !found {
            return divergent;
        }
    }
}
