//! Splits a kernel into launches and gives each its grid.
//!
//! Groups of one launch run in no order, so two nests of parallel loops one after the other are
//! two launches in general. The rule: each top-level nest of `Group` or `Local` loops is a stage
//! of its own, and what lies between becomes stages of a single thread. Values of the top level
//! are computed in every stage that uses them, also if that takes registers and regions.
//!
//! That fails when stages share storage, when a value of the top level was loaded from a buffer
//! that the kernel also writes, or when a nest loads from such a buffer outside of its innermost
//! loop, where every group would load it at its own time. Then the whole computation is one stage
//! of one group, in which loops over groups stride by the number of groups and so become serial, and
//! barriers stand between nests: slow, but the meaning of the kernel. Of a kernel that does several
//! independent computations, the others stay apart.

use crate::caps::Caps;
use crate::ir::joint::computations;
use crate::ir::{Access, Kernel, LoopKind, Op, Regions, Space, Type, Value};
use std::ops::Range;

/// How many groups a launch has along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Const(u64),
    /// As many as this value says, for the scalar arguments of the launch.
    Value(Value),
}

/// Threads along an axis whose `Local` loops have lengths that depend on arguments. Such a loop
/// strides: there is no barrier in it.
const DEFAULT_LOCAL: u64 = 64;

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// For each op of the kernel whether it belongs to this stage.
    pub members: Vec<bool>,
    /// Groups per axis.
    pub groups: [Extent; 3],
    /// Threads of a group per axis.
    pub local: [u64; 3],
}

impl Stage {
    /// The size of subgroups if the stage has shuffles: the counter of local axis 0 is then the number of the
    /// subgroup times this, plus the number of the lane.
    ///
    /// # Errors
    /// When the threads of the stage are not whole subgroups along one axis.
    pub fn lanes(&self, kernel: &Kernel, caps: &Caps) -> Result<Option<u32>, String> {
        let is_shuffle = |(value, op, _): &(Value, Op, Type)| {
            self.members[value.idx()] && matches!(op, Op::Shuffle { .. })
        };
        let Some((value, ..)) = kernel.iter().find(is_shuffle) else { return Ok(None) };
        let Some(size) = caps.lanes() else {
            let (least, most) = caps.subgroup;
            return Err(format!("{value}: subgroups of {least} to {most} threads"));
        };
        match self.local {
            [n, 1, 1] if n > 0 && n.is_multiple_of(size.into()) => Ok(Some(size)),
            local => Err(format!(
                "{value}: a shuffle needs groups of one axis that are whole subgroups of {size} threads, not {local:?}"
            )),
        }
    }
}

/// The threads of a launch in all, if no argument decides.
pub fn threads(groups: [Extent; 3], local: [u64; 3]) -> Option<u64> {
    groups.into_iter().try_fold(local.iter().product(), |n: u64, extent| match extent {
        Extent::Const(m) => n.checked_mul(m),
        Extent::Value(_) => None,
    })
}

/// Splits a well-formed kernel (see the module documentation).
///
/// # Errors
/// When local loops need more threads than the device has, or synchronise at different lengths.
pub fn split(kernel: &Kernel, caps: &Caps) -> Result<Vec<Stage>, String> {
    let (ops, ends) = (kernel.ops(), kernel.region_ends());
    let items = items(&ends);
    // For each stage whether it is a nest, and what belongs to it.
    let mut stages: Vec<(bool, Vec<bool>)> = Vec::new();
    for item in &items {
        let op = ops[item.start];
        let nest = axis_of(&op).is_some();
        let is_statement = op.opens_region() || is_effect(&op);
        if !is_statement || ops[item.clone()].iter().all(|op| is_private(kernel, op)) {
            continue;
        }
        if nest || stages.last().is_none_or(|last| last.0) {
            stages.push((nest, vec![false; ops.len()]));
        }
        let (_, members) = stages.last_mut().expect("invariant: a stage was pushed");
        members[item.clone()].fill(true);
    }
    stages.iter_mut().for_each(|(_, members)| close(kernel, &items, members));
    let finish = |members: Vec<bool>, apart: bool| -> Result<Stage, String> {
        let groups = if apart { groups(kernel, &members) } else { [Extent::Const(1); 3] };
        Ok(Stage { groups, local: locals(kernel, &ends, caps, &members)?, members })
    };
    let everything = vec![true; ops.len()];
    if separable(kernel, &items, &stages, &everything) {
        return stages.into_iter().map(|(_, members)| finish(members, true)).collect();
    }
    let mut finished = Vec::new();
    for own in computations(kernel) {
        let part = |(nest, members): &(bool, Vec<bool>)| {
            let mut members: Vec<bool> = members.iter().zip(&own).map(|(&a, &b)| a && b).collect();
            let is_empty = !members.contains(&true);
            close(kernel, &items, &mut members);
            (!is_empty).then_some((*nest, members))
        };
        let parts: Vec<(bool, Vec<bool>)> = stages.iter().filter_map(part).collect();
        if separable(kernel, &items, &parts, &own) {
            for (_, members) in parts {
                finished.push(finish(members, true)?);
            }
        } else {
            let mut members = own;
            for i in (0..ops.len()).rev().filter(|&i| members[i]).collect::<Vec<_>>() {
                require(kernel, i, &mut members);
            }
            finished.push(finish(members, false)?);
        }
    }
    Ok(finished)
}

/// Marks an op and the values that it is computed from.
fn require(kernel: &Kernel, op: usize, members: &mut [bool]) {
    let mut open = vec![op];
    while let Some(i) = open.pop() {
        for operand in kernel.ops()[i].operands() {
            if !std::mem::replace(&mut members[operand.idx()], true) {
                open.push(operand.idx());
            }
        }
    }
}

/// Kind and axis of a loop that is spread over groups or threads.
fn axis_of(op: &Op) -> Option<(LoopKind, usize)> {
    match *op {
        Op::Loop { kind: kind @ (LoopKind::Group | LoopKind::Local), axis, .. } => {
            Some((kind, axis as usize))
        }
        _ => None,
    }
}

fn is_effect(op: &Op) -> bool {
    matches!(op, Op::Store { .. } | Op::Atomic { .. })
}

/// The ops and regions of the top level.
fn items(ends: &[usize]) -> Vec<Range<usize>> {
    let first = (!ends.is_empty()).then(|| 0..ends[0] + 1);
    let next = |last: &Range<usize>| Some(last.end..*ends.get(last.end)? + 1);
    std::iter::successors(first, next).collect()
}

/// Whether an op does nothing that another thread could tell.
fn is_private(kernel: &Kernel, op: &Op) -> bool {
    let is_register =
        |buf: Value| matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. });
    match *op {
        Op::Store { buf, .. } => is_register(buf),
        Op::Load { buf, .. } => is_register(buf) || !is_written(kernel, buf),
        Op::Loop { kind, .. } => matches!(kind, LoopKind::Serial | LoopKind::Parallel),
        Op::If { .. } | Op::Break { .. } | Op::End { .. } => true,
        Op::Alloc { space, .. } => space == Space::Register,
        _ => op.is_pure() || matches!(op, Op::Param { .. } | Op::Var { .. }),
    }
}

/// Adds to a stage the top-level values it uses, and what is stored in registers that it loads.
fn close(kernel: &Kernel, items: &[Range<usize>], members: &mut [bool]) {
    for item in items.iter().rev() {
        let ops = &kernel.ops()[item.clone()];
        let stores = |op: &Op| matches!(*op, Op::Store { buf, .. } if members[buf.idx()]);
        if ops.iter().any(stores) && ops.iter().all(|op| is_private(kernel, op)) {
            members[item.clone()].fill(true);
        }
        for i in item.clone().rev().filter(|&i| members[i]).collect::<Vec<_>>() {
            kernel.ops()[i].operands().for_each(|v| members[v.idx()] = true);
        }
    }
}

/// Whether storage is written somewhere in the kernel.
fn is_written(kernel: &Kernel, buf: Value) -> bool {
    !matches!(kernel.op(buf), Op::Param { access: Access::Read, .. })
}

/// Whether stages share nothing that has to be stored or loaded once for all of them, of the ops that are `own`.
fn separable(
    kernel: &Kernel,
    items: &[Range<usize>],
    stages: &[(bool, Vec<bool>)],
    own: &[bool],
) -> bool {
    let regions = Regions::of(kernel);
    // Whether each stage that uses registers can store what they hold.
    let is_own = |buf: Value| {
        let stores = |op: &Op| matches!(*op, Op::Store { buf: b, .. } if b == buf);
        matches!(kernel.op(buf), Op::Alloc { space: Space::Register, .. })
            && items
                .iter()
                .map(|item| &kernel.ops()[item.clone()])
                .all(|ops| !ops.iter().any(stores) || ops.iter().all(|op| is_private(kernel, op)))
    };
    let single = stages.len() == 1 && !stages[0].0;
    kernel.iter().filter(|(value, ..)| own[value.idx()]).all(|(value, op, _)| {
        let top = regions.parent(value).is_none();
        let users = stages.iter().filter(|stage| stage.1[value.idx()]).count();
        match op {
            Op::Alloc { .. } | Op::Atomic { .. } if top => users <= 1 || is_own(value),
            Op::Load { buf, .. } if top => {
                users == 0 || single || !is_written(kernel, buf) || is_own(buf)
            }
            Op::Load { buf, .. } if matches!(kernel.op(buf), Op::Param { .. }) => {
                !is_written(kernel, buf) || is_innermost(kernel, &regions, value)
            }
            _ => true,
        }
    })
}

/// Whether an op stands in the innermost loop of its nest, or in none.
fn is_innermost(kernel: &Kernel, regions: &Regions, value: Value) -> bool {
    let nest = regions.enclosing(value).find(|&r| axis_of(&kernel.op(r)).is_some());
    nest.is_none_or(|inner| {
        kernel.iter().all(|(v, op, _)| axis_of(&op).is_none() || regions.parent(v) != Some(inner))
    })
}

/// A loop's length.
fn extent(kernel: &Kernel, len: Value) -> Extent {
    match kernel.constant(len) {
        Some(n) => Extent::Const(u64::try_from(n.to_i64()).unwrap_or(0)),
        None => Extent::Value(len),
    }
}

fn groups(kernel: &Kernel, members: &[bool]) -> [Extent; 3] {
    let mut groups = [Extent::Const(1); 3];
    for (value, op, _) in kernel.iter().filter(|(v, ..)| members[v.idx()]) {
        if let (Some((LoopKind::Group, axis)), Op::Loop { len, .. }) = (axis_of(&op), op) {
            debug_assert!(members[value.idx()], "a nest is in one stage");
            groups[axis] = extent(kernel, len);
        }
    }
    groups
}

/// Threads per axis: the length of a loop with a barrier in it, else the longest loop. A loop of
/// another length strides by the number of threads.
fn locals(
    kernel: &Kernel,
    ends: &[usize],
    caps: &Caps,
    members: &[bool],
) -> Result<[u64; 3], String> {
    let mut pinned: [Option<u64>; 3] = [None; 3];
    let mut sizes = [1u64; 3];
    for (value, op, _) in kernel.iter().filter(|(v, ..)| members[v.idx()]) {
        let (Some((LoopKind::Local, axis)), Op::Loop { len, .. }) = (axis_of(&op), op) else {
            continue;
        };
        let size = match extent(kernel, len) {
            Extent::Const(n) => n,
            Extent::Value(_) => DEFAULT_LOCAL,
        };
        let body = &kernel.ops()[value.idx()..ends[value.idx()]];
        if body.iter().any(Op::meets) && pinned[axis].replace(size).is_some_and(|n| n != size) {
            return Err(format!("barriers in local loops of different length, axis {axis}"));
        }
        sizes[axis] = sizes[axis].max(size);
    }
    for (size, pinned) in sizes.iter_mut().zip(pinned) {
        *size = pinned.unwrap_or(*size);
    }
    while sizes.iter().product::<u64>() > caps.max_local as u64 {
        let free = (0..3).filter(|&a| pinned[a].is_none() && sizes[a] > 1);
        let Some(axis) = free.max_by_key(|&a| sizes[a]) else {
            return Err(format!("{sizes:?} threads in a group of {}", caps.max_local));
        };
        sizes[axis] = sizes[axis].div_ceil(2);
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stages(text: &str) -> Vec<Stage> {
        let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
        crate::ir::verify(&kernel).unwrap();
        let caps = Caps { max_local: 256, ..Caps::default() };
        split(&kernel, &caps).unwrap()
    }

    /// `p[i] = p[i]` in a nest of these lengths, as often as asked for.
    fn nests(group: &str, local: &str, times: usize) -> String {
        let head = "kernel k\nbuffer 0 : f32[64] readwrite\nscalar 0 : i64 0..=64
            %p param 0 readwrite : f32\n%2 const 2 : i64\n%8 const 8 : i64
            %400 const 400 : i64\n%n var 0 : i64\n";
        let nest = |n| {
            format!(
                "%g{n} loop group %{group}\n%l{n} loop local %{local}\n%x{n} load %p[%g{n}] : f32
                %s{n} store %p[%g{n}], %x{n} : f32\n%d{n} end %l{n}\n%e{n} end %g{n}\n"
            )
        };
        head.to_owned() + &(0..times).map(nest).collect::<String>()
    }

    #[test]
    fn each_nest_is_a_launch() {
        let stages = stages(&nests("8", "2", 2));
        assert_eq!(stages.len(), 2);
        for stage in &stages {
            assert_eq!(stage.groups, [Extent::Const(8), Extent::Const(1), Extent::Const(1)]);
            assert_eq!(stage.local, [2, 1, 1]);
        }
    }

    #[test]
    fn lengths_may_be_arguments_and_too_many_threads_become_a_stride() {
        let stages = stages(&nests("n", "400", 1));
        assert!(matches!(stages[0].groups[0], Extent::Value(_)));
        assert_eq!(stages[0].local[0], 200);
    }

    #[test]
    fn what_nests_share_joins_them() {
        let text = "kernel k\nbuffer 0 : f32[8] readwrite\n%p param 0 readwrite : f32
            %0 const 0 : i64\n%8 const 8 : i64
            %m alloc shared 8 : f32
            %x load %p[%0] : f32
            %l loop local %8\n%s store %m[%l], %x : f32\n%e end %l
            %k loop local %8\n%y load %m[%k] : f32\n%t store %p[%k], %y : f32\n%f end %k";
        let joint = stages(text);
        assert_eq!(joint.len(), 1);
        assert_eq!(joint[0].local[0], 8);
    }

    #[test]
    fn computations_that_know_nothing_of_one_another_stay_apart() {
        let computation = |buffer: &str, n: usize| {
            format!(
                "%m{buffer} alloc shared 8 : f32\n%x{buffer} load %{buffer}[%0] : f32
                %l{buffer} loop local %{n}\n%s{buffer} store %m{buffer}[%l{buffer}], %x{buffer} : f32
                %b{buffer} barrier group\n%e{buffer} end %l{buffer}
                %k{buffer} loop local %{n}\n%y{buffer} load %m{buffer}[%k{buffer}] : f32
                %t{buffer} store %{buffer}[%k{buffer}], %y{buffer} : f32\n%f{buffer} end %k{buffer}\n"
            )
        };
        let head = "kernel k\nbuffer 0 : f32[8] readwrite\nbuffer 1 : f32[8] readwrite
            %p param 0 readwrite : f32\n%q param 1 readwrite : f32
            %0 const 0 : i64\n%8 const 8 : i64\n%4 const 4 : i64\n";
        let stages = stages(&(head.to_owned() + &computation("p", 8) + &computation("q", 4)));
        let local: Vec<u64> = stages.iter().map(|stage| stage.local[0]).collect();
        assert_eq!(local, [8, 4]);
        assert!(stages.iter().all(|stage| stage.groups == [Extent::Const(1); 3]));
    }

    #[test]
    fn values_of_the_top_level_may_take_registers_and_regions() {
        let text = "kernel k\nbuffer 0 : f32[8] write\nbuffer 1 : f32[8] write
            scalar 0 : f32 0..=0\n%p param 0 write : f32\n%q param 1 write : f32
            %0 const 0 : i64\n%8 const 8 : i64\n%x var 0 : f32\n%z const 0.0 : f32
            %m alloc register 1 : f32\n%s store %m[%0], %x : f32
            %c lt %x, %z : bool\n%f if %c\n%t store %m[%0], %z : f32\n%e end %f
            %y load %m[%0] : f32
            %g loop group %8\n%u store %p[%g], %y : f32\n%h end %g
            %k loop group %8\n%v store %q[%k], %y : f32\n%l end %k";
        let stages = stages(text);
        assert_eq!(stages.len(), 2);
        for stage in &stages {
            assert_eq!(stage.groups[0], Extent::Const(8));
            assert_eq!(stage.members.iter().filter(|&&is| !is).count(), 4);
        }
    }

    #[test]
    fn serial_code_between_nests_is_a_launch_of_one_thread() {
        let text = "kernel k\nbuffer 0 : f32[8] readwrite\n%p param 0 readwrite : f32
            %0 const 0 : i64\n%8 const 8 : i64\n%x const 1.0 : f32
            %l loop group %8\n%s store %p[%l], %x : f32\n%e end %l
            %k loop serial %8\n%t store %p[%k], %x : f32\n%f end %k
            %u store %p[%0], %x : f32";
        let stages = stages(text);
        assert_eq!(stages.len(), 2);
        assert_eq!(stages[1].groups, [Extent::Const(1); 3]);
    }
}
