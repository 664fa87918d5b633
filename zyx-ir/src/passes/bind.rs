//! `bind`: runs a parallel loop on the threads of the device.
//!
//! The first parameter is 0 for groups (CPU tasks, GPU blocks) and 1 for the local threads of a
//! group, the second the axis. Bound loops form an outer nest, a chain with all effects in the
//! innermost loop; a loop is offered only where binding it keeps that.

use super::loops::{LoopInfo, find_loop, loops};
use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Regions, Space, Value};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "bind",
    doc: "run a parallel loop as groups (0) or local threads (1) of an axis",
    reassociates: false,
    sites,
    apply,
};

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    let list = loops(kernel);
    let regions = Regions::of(kernel);
    let mut found = Vec::new();
    for l in &list {
        let Some(len) = l.len.map(|n| n as u64) else { continue };
        let axes = if caps.simt { 3 } else { 1 };
        if let Some(axis) = axis(kernel, &regions, &list, l, LoopKind::Group)
            && axis < axes
            && len <= caps.max_groups[axis]
        {
            found.push(Site::new(l.open, &[0, axis as i64]));
        }
        if caps.simt
            && let Some(axis) = axis(kernel, &regions, &list, l, LoopKind::Local)
            && len * locals(kernel, &regions, l) <= caps.max_local as u64
        {
            found.push(Site::new(l.open, &[1, axis as i64]));
        }
    }
    found
}

/// Product of the lengths of the local loops around and inside a loop.
fn locals(kernel: &Kernel, regions: &Regions, l: &LoopInfo) -> u64 {
    let around: Vec<Value> = regions.enclosing(l.open).collect();
    let inside = l.body().map(|i| Value(i as u32));
    let lengths = around.into_iter().chain(inside).filter_map(|v| match kernel.op(v) {
        Op::Loop { kind: LoopKind::Local, len, .. } => kernel.constant(len),
        _ => None,
    });
    lengths.fold(1u64, |n, len| n.saturating_mul(len.to_i64().max(1) as u64))
}

/// The first free axis, if the loop may be bound to `kind`.
fn axis(
    kernel: &Kernel,
    regions: &Regions,
    list: &[LoopInfo],
    l: &LoopInfo,
    kind: LoopKind,
) -> Option<usize> {
    if !l.is_parallel() || l.len.is_none() && kind == LoopKind::Local {
        return None;
    }
    let bound = |v: Value| match kernel.op(v) {
        Op::Loop { kind: k @ (LoopKind::Group | LoopKind::Local), axis, .. } => Some((k, axis)),
        _ => None,
    };
    let around: Vec<Value> = regions.enclosing(l.open).collect();
    let fits = |v: &Value| match bound(*v) {
        Some((LoopKind::Group, _)) => true,
        Some((LoopKind::Local, _)) => kind == LoopKind::Local,
        _ => false,
    };
    if !around.iter().all(fits) {
        return None;
    }
    // The loops of the nest this one joins: around it, and those bound inside of it.
    let inside: Vec<&LoopInfo> = list
        .iter()
        .filter(|m| l.body().contains(&m.open.idx()) && bound(m.open).is_some())
        .collect();
    let stays_chain = inside.iter().all(|m| {
        let parent = regions.parent(m.open);
        (parent == Some(l.open) || parent.is_some_and(|p| bound(p).is_some()))
            && (kind == LoopKind::Group || m.kind == Some(LoopKind::Local))
    });
    let innermost = inside.last().map_or(*l, |m| **m);
    let outermost = around.last().copied();
    if !stays_chain || !effects_inside(kernel, outermost.unwrap_or(l.open), &innermost) {
        return None;
    }
    let used: Vec<u8> = around
        .iter()
        .copied()
        .chain(inside.iter().map(|m| m.open))
        .filter_map(bound)
        .filter(|b| b.0 == kind)
        .map(|b| b.1)
        .collect();
    (0..3).find(|axis| !used.contains(&(*axis as u8)))
}

/// Whether everything that other threads can see in the nest of `root` happens in `innermost`,
/// and no other loop of the nest is bound beside it.
fn effects_inside(kernel: &Kernel, root: Value, innermost: &LoopInfo) -> bool {
    let end = kernel.region_ends()[root.idx()];
    let outside = (root.idx()..innermost.open.idx()).chain(innermost.end..end);
    let is_fine = |i: usize| match kernel.op(Value(i as u32)) {
        Op::Store { buf, .. } => {
            matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. })
        }
        Op::Loop { kind: LoopKind::Group | LoopKind::Local, .. } => i < innermost.open.idx(),
        Op::Atomic { .. } => false,
        op => !op.meets(),
    };
    // Loops that end before the innermost begins would be beside it.
    let beside = (root.idx()..innermost.open.idx()).any(|i| match kernel.op(Value(i as u32)) {
        Op::End { open } => {
            matches!(kernel.op(open), Op::Loop { kind: LoopKind::Group | LoopKind::Local, .. })
        }
        _ => false,
    });
    outside.into_iter().all(is_fine) && !beside
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(l), &[kind, axis]) = (find_loop(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    if !(0..3).contains(&axis) {
        return kernel.clone();
    }
    let regions = Regions::of(kernel);
    let root = regions.enclosing(l.open).last().unwrap_or(l.open);
    let kind = if kind == 0 { LoopKind::Group } else { LoopKind::Local };
    // How many groups there are is known at the top level.
    let known = l.len.is_some() || l.len_value < root && regions.parent(l.len_value).is_none();
    if !known || self::axis(kernel, &regions, &loops(kernel), &l, kind).is_none() {
        return kernel.clone();
    }
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..root.idx());
    // Launch geometry is read off the top level.
    let len = match l.len {
        Some(len) => r.number(l.open, len),
        None => r.get(l.len_value),
    };
    r.copy_range(root.idx()..l.open.idx());
    let op = Op::Loop { kind, axis: axis as u8, len };
    let new = r.out.push(op, kernel.ty(l.open));
    r.set(l.open, new);
    r.finish_from(l.open.idx() + 1)
}
