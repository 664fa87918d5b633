//! Splits a kernel into launches and gives each its grid.
//!
//! `Group` loops in one launch run in no order, so two of them one after the other may have to be
//! two launches. The rule: a top-level region whose `Group` loops can be spread over groups
//! becomes a stage of its own, and what lies between becomes stages of a single group. A region
//! can be spread when
//! * its `Group` loops stand one inside the other, each axis once, with nothing but other
//!   independent loops and conditions around them;
//! * whatever stores, synchronises or runs `Local` loops stands inside all of them;
//! * what it loads outside of them is not stored to in this kernel, and its register storage is
//!   declared inside of them.
//!
//! Anything else is run by one group, in which loops over groups stride by the number of groups
//! and so become serial: slow, but the meaning of the kernel. Storage or a loaded value shared by
//! two stages joins the whole kernel to one such stage.

use crate::hal::Caps;
use crate::ir::{Access, Kernel, LoopKind, Op, Space, Value};

/// How many groups a launch has along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Const(u64),
    /// As many as this value says, for the scalar arguments of the launch.
    Value(Value),
}

/// Threads along an axis whose `Local` loops have no constant length.
const DEFAULT_LOCAL: u64 = 64;

/// One launch.
#[derive(Clone, Debug)]
pub struct Stage {
    /// For each op of the kernel whether it belongs to this stage.
    pub members: Vec<bool>,
    /// Groups per axis.
    pub groups: [Extent; 3],
    /// Threads of a group per axis.
    pub local: [u32; 3],
    /// Register storage declared outside of `Local` loops that store to it: one for the group,
    /// so it lives in shared memory.
    pub promoted: Vec<bool>,
}

/// Where each op stands.
#[derive(Debug)]
pub struct Regions {
    parent: Vec<Option<u32>>,
    ends: Vec<usize>,
}

impl Regions {
    /// Finds the regions of a kernel.
    pub fn new(kernel: &Kernel) -> Regions {
        let mut open = Vec::new();
        let mut parent = Vec::with_capacity(kernel.ops().len());
        for (i, op) in kernel.ops().iter().enumerate() {
            if let Op::End { .. } = op {
                open.pop();
            }
            parent.push(open.last().copied());
            if op.opens_region() {
                open.push(i as u32);
            }
        }
        Regions { parent, ends: kernel.region_ends() }
    }

    /// The regions around op `i`, innermost first.
    pub fn around(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.parent[i], |&p| self.parent[p as usize]).map(|p| p as usize)
    }

    /// The axis that op `i` is mapped to if it is a loop of this kind, `Group` or `Local`, and the
    /// axis is one of three and not already taken by a loop around it.
    pub fn binds(&self, kernel: &Kernel, i: usize, wanted: LoopKind) -> Option<usize> {
        let mapped = matches!(wanted, LoopKind::Group | LoopKind::Local);
        match kernel.ops()[i] {
            Op::Loop { kind, axis, .. } if mapped && kind == wanted && axis < 3 => {
                let taken = self.around(i).any(|p| {
                    matches!(kernel.ops()[p], Op::Loop { kind: k, axis: a, .. }
                        if k == wanted && a == axis)
                });
                (!taken).then_some(axis as usize)
            }
            _ => None,
        }
    }
}

/// Splits `kernel` (see the module documentation).
///
/// # Errors
/// When local loops need more threads than the device has, or synchronise at different lengths.
pub fn split(kernel: &Kernel, caps: &Caps) -> Result<Vec<Stage>, String> {
    let regions = Regions::new(kernel);
    let mut stages: Vec<(bool, Vec<bool>)> = Vec::new();
    let mut i = 0;
    while i < kernel.ops().len() {
        let range = i..regions.ends[i] + 1;
        i = range.end;
        let op = kernel.ops()[range.start];
        let grid = op.opens_region() && spreads(kernel, &regions, range.clone());
        let acts = op.opens_region() || is_effect(&op);
        if !acts {
            continue;
        }
        if grid || stages.last().is_none_or(|last| last.0) {
            stages.push((grid, vec![false; kernel.ops().len()]));
        }
        let (_, members) = stages.last_mut().expect("invariant: a stage was pushed");
        members[range].fill(true);
    }
    stages.iter_mut().for_each(|(_, members)| close(kernel, members));
    if !separable(kernel, &regions, &stages) {
        stages = vec![(false, vec![true; kernel.ops().len()])];
    }
    stages.into_iter().map(|(grid, members)| stage(kernel, caps, &regions, grid, members)).collect()
}

fn is_effect(op: &Op) -> bool {
    matches!(op, Op::Store { .. } | Op::Atomic { .. } | Op::Barrier { .. })
}

/// Adds to a stage the top-level values it uses.
fn close(kernel: &Kernel, members: &mut [bool]) {
    for i in (0..members.len()).rev() {
        if members[i] {
            kernel.ops()[i].operands().for_each(|v| members[v.idx()] = true);
        }
    }
}

/// Whether no two stages share storage or a value that must be computed once.
fn separable(kernel: &Kernel, regions: &Regions, stages: &[(bool, Vec<bool>)]) -> bool {
    let top = |i: usize| regions.parent[i].is_none();
    let written = |buf: Value| match kernel.op(buf) {
        Op::Param { access, .. } => access != Access::Read,
        _ => true,
    };
    let grids = stages.iter().any(|s| s.0);
    (0..kernel.ops().len()).filter(|&i| top(i)).all(|i| {
        let users = stages.iter().filter(|s| s.1[i]).count();
        match kernel.ops()[i] {
            Op::Alloc { .. } | Op::Atomic { .. } => users <= 1,
            Op::Load { buf, .. } => users == 0 || !grids || !written(buf),
            _ => true,
        }
    })
}

/// Whether the region in `range` holds `Group` loops that can be spread over groups.
fn spreads(kernel: &Kernel, regions: &Regions, range: std::ops::Range<usize>) -> bool {
    let ops = kernel.ops();
    let is_group = |i: usize| matches!(ops[i], Op::Loop { kind: LoopKind::Group, .. });
    let groups: Vec<usize> = range.clone().filter(|&i| is_group(i)).collect();
    let inside = |i: usize| regions.around(i).filter(|&p| is_group(p)).count() == groups.len();
    let chained = groups.iter().enumerate().all(|(n, &g)| {
        regions.binds(kernel, g, LoopKind::Group).is_some()
            && regions.around(g).filter(|&p| is_group(p)).count() == n
            && regions.around(g).all(|p| match ops[p] {
                Op::Loop { kind, .. } => matches!(kind, LoopKind::Group | LoopKind::Parallel),
                _ => true,
            })
    });
    let private = |buf: Value| match kernel.op(buf) {
        Op::Alloc { space: Space::Register, .. } => inside(buf.idx()),
        _ => true,
    };
    let constant = |buf: Value| matches!(kernel.op(buf), Op::Param { access: Access::Read, .. });
    !groups.is_empty()
        && chained
        && range.clone().all(|i| match ops[i] {
            Op::Store { buf, .. } | Op::Atomic { buf, .. } => inside(i) && private(buf),
            Op::Barrier { .. } | Op::Loop { kind: LoopKind::Local, .. } => inside(i),
            Op::Load { buf, .. } if inside(i) => private(buf),
            Op::Load { buf, .. } => constant(buf),
            _ => true,
        })
}

/// Geometry and storage of one stage.
fn stage(
    kernel: &Kernel,
    caps: &Caps,
    regions: &Regions,
    grid: bool,
    members: Vec<bool>,
) -> Result<Stage, String> {
    let mut groups = [Extent::Const(1); 3];
    for i in (0..members.len()).filter(|&i| grid && members[i]) {
        if let (Some(axis), Op::Loop { len, .. }) =
            (regions.binds(kernel, i, LoopKind::Group), kernel.ops()[i])
        {
            groups[axis] = match kernel.constant(len) {
                Some(n) => Extent::Const(u64::try_from(n.to_i64()).unwrap_or(0)),
                None => Extent::Value(len),
            };
        }
    }
    let local = local_sizes(kernel, caps, regions, &members)?;
    let mut promoted = vec![false; members.len()];
    if local != [1; 3] {
        for i in (0..members.len()).filter(|&i| members[i]) {
            if let Op::Store { buf, .. } | Op::Atomic { buf, .. } = kernel.ops()[i] {
                if !matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. }) {
                    continue;
                }
                let locals = |i: usize| {
                    regions
                        .around(i)
                        .filter(|&p| regions.binds(kernel, p, LoopKind::Local).is_some())
                        .count()
                };
                match locals(buf.idx()) {
                    home if home == locals(i) => {}
                    0 => promoted[buf.idx()] = true,
                    _ => return Err(format!("{buf}: storage of some axes of threads only")),
                }
            }
        }
    }
    Ok(Stage { members, groups, local, promoted })
}

/// Threads per axis: the length of a loop that synchronises, else the longest loop. A loop of
/// another length strides by the number of threads.
fn local_sizes(
    kernel: &Kernel,
    caps: &Caps,
    regions: &Regions,
    members: &[bool],
) -> Result<[u32; 3], String> {
    let mut pinned: [Option<u64>; 3] = [None; 3];
    let mut sizes = [1u64; 3];
    for i in (0..members.len()).filter(|&i| members[i]) {
        let Some(axis) = regions.binds(kernel, i, LoopKind::Local) else { continue };
        let Op::Loop { len, .. } = kernel.ops()[i] else { continue };
        let len = kernel.constant(len).map(|n| n.to_i64().max(1) as u64);
        sizes[axis] = sizes[axis].max(len.unwrap_or(DEFAULT_LOCAL));
        let synchronises =
            (i..regions.ends[i]).any(|j| matches!(kernel.ops()[j], Op::Barrier { .. }));
        if synchronises {
            let len = len.ok_or("a local loop with a barrier has no constant length")?;
            if pinned[axis].is_some_and(|other| other != len) {
                return Err(format!("barriers in local loops of different length, axis {axis}"));
            }
            pinned[axis] = Some(len);
        }
    }
    for axis in 0..3 {
        sizes[axis] = pinned[axis].unwrap_or(sizes[axis]);
    }
    while sizes.iter().product::<u64>() > caps.max_local as u64 {
        let widest = (0..3).filter(|&a| pinned[a].is_none()).max_by_key(|&a| sizes[a]);
        match widest.filter(|&a| sizes[a] > 1) {
            Some(axis) => sizes[axis] = sizes[axis].div_ceil(2),
            None => {
                return Err(format!(
                    "local loops need {sizes:?} threads, the device has {}",
                    caps.max_local
                ));
            }
        }
    }
    Ok(sizes.map(|n| n as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::ir::Builder;

    fn caps() -> Caps {
        let mut caps = Caps::default();
        caps.max_local = 256;
        caps
    }

    /// `loops` around `p[i] = p[i]` for the innermost counter `i`, `times` times in sequence.
    fn nests(loops: &[(LoopKind, u8, i64)], times: usize) -> Kernel {
        let mut b = Builder::new("k");
        let p = b.param(DType::F32, 64, Access::ReadWrite);
        for _ in 0..times {
            let mut counter = b.index(0);
            for &(kind, axis, len) in loops {
                let len = b.index(len);
                counter = b.open_loop(kind, axis, len);
            }
            let x = b.load(p, counter);
            b.store(p, counter, x);
            loops.iter().for_each(|_| b.close());
        }
        b.finish()
    }

    #[test]
    fn two_nests_are_two_launches() {
        let kernel = nests(&[(LoopKind::Group, 0, 8), (LoopKind::Local, 0, 32)], 2);
        let stages = split(&kernel, &caps()).unwrap();
        assert_eq!(stages.len(), 2);
        for stage in &stages {
            assert_eq!(stage.groups, [Extent::Const(8), Extent::Const(1), Extent::Const(1)]);
            assert_eq!(stage.local, [32, 1, 1]);
        }
    }

    #[test]
    fn groups_in_a_serial_loop_are_one_group() {
        let kernel = nests(&[(LoopKind::Serial, 0, 4), (LoopKind::Group, 0, 8)], 1);
        let stages = split(&kernel, &caps()).unwrap();
        assert_eq!(stages.len(), 1);
        assert_eq!(stages[0].groups, [Extent::Const(1); 3]);
        let kernel = nests(&[(LoopKind::Parallel, 0, 4), (LoopKind::Group, 0, 8)], 1);
        assert_eq!(split(&kernel, &caps()).unwrap()[0].groups[0], Extent::Const(8));
    }

    #[test]
    fn unbound_loops_run_in_sequence_in_one_launch() {
        let kernel = nests(&[(LoopKind::Parallel, 0, 8)], 3);
        assert_eq!(split(&kernel, &caps()).unwrap().len(), 1);
    }

    #[test]
    fn too_many_threads_become_a_stride() {
        let kernel = nests(&[(LoopKind::Local, 1, 64), (LoopKind::Local, 0, 64)], 1);
        let stages = split(&kernel, &caps()).unwrap();
        assert!(stages[0].local.iter().product::<u32>() <= 256);
    }
}
