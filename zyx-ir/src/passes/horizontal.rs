//! `horizontal`: two nests that know nothing of one another run side by side in one grid.
//!
//! Nests that follow one another are launches of their own on a GPU. Here the groups of the
//! second are counted on after those of the first: every group finds out by its number whose work
//! it does. A nest is a loop over groups, a loop over local threads, or the one directly inside of
//! the other; the result is a nest of both again, so that any number can be joined. The local loop
//! is as long as the longer of the two, and threads beyond a nest's own pass it by.

use super::rebuild::Rebuild;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::ir::{Kernel, LoopKind, Op, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;
use std::ops::Range;

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "horizontal",
    doc: "run a nest and the next, independent one side by side in one grid",
    reassociates: false,
    sites,
    apply,
};

/// Most shared storage, in bytes, of nests that are joined: what every device has that has any.
const MAX_SHARED: usize = 16 << 10;

/// A loop over groups, local threads or both.
struct Nest {
    /// From its first op to its end.
    range: Range<usize>,
    group: Option<(Value, i64)>,
    local: Option<(Value, i64)>,
    /// Shared storage, directly inside the group.
    allocs: Vec<usize>,
    /// Pure ops between the two loops.
    between: Vec<usize>,
    body: Range<usize>,
    synchronises: bool,
}

impl Nest {
    fn of(kernel: &Kernel, ends: &[usize], start: usize) -> Option<Nest> {
        let bound = |i: usize, wanted: LoopKind| match kernel.ops()[i] {
            Op::Loop { kind, axis: 0, len } if kind == wanted => {
                Some((Value(i as u32), kernel.constant(len)?.to_i64().max(0)))
            }
            _ => None,
        };
        let mut nest = Nest {
            range: start..ends[start] + 1,
            group: bound(start, LoopKind::Group),
            local: bound(start, LoopKind::Local),
            allocs: Vec::new(),
            between: Vec::new(),
            body: start + 1..ends[start],
            synchronises: false,
        };
        if nest.group.is_some() {
            let mut i = start + 1;
            while kernel.ops()[i].is_pure() || matches!(kernel.ops()[i], Op::Alloc { .. }) {
                i += 1;
            }
            nest.local = bound(i, LoopKind::Local).filter(|_| ends[i] + 1 == ends[start]);
            if nest.local.is_some() {
                let is_alloc = |&j: &usize| matches!(kernel.ops()[j], Op::Alloc { .. });
                (nest.allocs, nest.between) = (start + 1..i).partition(is_alloc);
                nest.body = i + 1..ends[i];
            }
        }
        let is_shared = |&j: &usize| matches!(kernel.ops()[j], Op::Alloc { space, .. } if space == Space::Shared);
        let plain = nest.body.clone().all(|i| match kernel.ops()[i] {
            Op::Loop { kind, .. } => !matches!(kind, LoopKind::Group | LoopKind::Local),
            Op::Alloc { space, .. } => space != Space::Shared,
            op if op.meets() => {
                nest.synchronises = true;
                true
            }
            _ => true,
        });
        let fits = plain && nest.allocs.iter().all(is_shared);
        ((nest.group.is_some() || nest.local.is_some()) && fits).then_some(nest)
    }

    fn groups(&self) -> i64 {
        self.group.map_or(1, |g| g.1)
    }

    fn threads(&self) -> i64 {
        self.local.map_or(1, |l| l.1)
    }
}

/// The nest at a value and the next one, if they may run side by side.
fn pair(kernel: &Kernel, value: Option<Value>) -> Option<(Nest, Nest)> {
    let start = value.filter(|v| v.idx() < kernel.ops().len())?.idx();
    let ends = kernel.region_ends();
    let mut top = Vec::new();
    let mut i = 0;
    while i < ends.len() {
        top.push(i);
        i = ends[i] + 1;
    }
    let at = top.iter().position(|&i| i == start)?;
    let first = Nest::of(kernel, &ends, start)?;
    let rest = &top[at + 1..];
    let next = rest.iter().position(|&i| kernel.ops()[i].opens_region())?;
    if !rest[..next].iter().all(|&i| kernel.ops()[i].is_pure()) {
        return None;
    }
    let second = Nest::of(kernel, &ends, rest[next])?;
    let apart = independent(kernel, &first.range, &second.range);
    let threads = first.threads().max(second.threads());
    let together = |n: &Nest| !n.synchronises || n.threads() == threads;
    let counter = |n: &Nest| n.group.or(n.local).map(|l| kernel.ty(l.0).dtype);
    let shared: usize = first
        .allocs
        .iter()
        .chain(&second.allocs)
        .map(|&i| match kernel.ops()[i] {
            Op::Alloc { len, .. } => len as usize * kernel.ty(Value(i as u32)).bytes(),
            _ => 0,
        })
        .sum();
    let fits =
        shared == 0 || shared <= MAX_SHARED || first.allocs.is_empty() || second.allocs.is_empty();
    let same = counter(&first) == counter(&second);
    (apart && fits && same && together(&first) && together(&second)).then_some((first, second))
}

/// Whether neither range writes what the other accesses.
fn independent(kernel: &Kernel, a: &Range<usize>, b: &Range<usize>) -> bool {
    let mut accesses = vec![[false; 4]; kernel.params().len()];
    for (which, range) in [a, b].into_iter().enumerate() {
        for i in range.clone() {
            let (buf, writes) = match kernel.ops()[i] {
                Op::Load { buf, .. } => (buf, 0),
                Op::Store { buf, .. } | Op::Atomic { buf, .. } => (buf, 1),
                _ => continue,
            };
            match kernel.op(buf) {
                Op::Param { slot, .. } => accesses[slot as usize][2 * which + writes] = true,
                _ if range.contains(&buf.idx()) => {}
                // Storage of the top level belongs to both.
                _ => return false,
            }
        }
    }
    accesses.iter().all(|[read, written, reads, writes]| {
        !(*written && (*reads || *writes) || *writes && *read)
    })
}

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    if !caps.simt {
        return Vec::new();
    }
    let ends = kernel.region_ends();
    let mut found = Vec::new();
    let mut i = 0;
    while i < ends.len() {
        let site = Site::new(Value(i as u32), &[]);
        if kernel.ops()[i].opens_region()
            && let Some((first, second)) = pair(kernel, site.value)
            && (caps.branched_barriers || !(first.synchronises || second.synchronises))
            && (first.groups() + second.groups()) as u64 <= caps.max_groups[0]
            && first.threads().max(second.threads()) <= caps.max_local as i64
        {
            found.push(site);
        }
        i = ends[i] + 1;
    }
    found
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let Some((first, second)) = pair(kernel, site.value) else { return kernel.clone() };
    let mut r = Rebuild::new(kernel);
    r.copy_range(0..first.range.start);
    r.copy_range(first.range.end..second.range.start);
    let like = first.group.or(first.local).expect("invariant: a nest has a loop").0;
    let (n, m) = (first.groups(), second.groups());
    let threads = first.threads().max(second.threads());
    let total = r.number(like, n + m);
    let length = r.number(like, threads);
    let ty = kernel.ty(like);
    let group = r.out.push(Op::Loop { kind: LoopKind::Group, axis: 0, len: total }, ty);
    for &i in first.allocs.iter().chain(&second.allocs) {
        r.copy(Value(i as u32));
    }
    let local = r.out.push(Op::Loop { kind: LoopKind::Local, axis: 0, len: length }, ty);
    for (nest, from) in [(&first, 0), (&second, n)] {
        member(&mut r, nest, (group, local), (from, threads), ty);
    }
    r.out.close();
    r.out.close();
    r.finish_from(second.range.end)
}

/// One nest's part: its groups are counted from `from` on.
fn member(
    r: &mut Rebuild<'_>,
    nest: &Nest,
    (group, local): (Value, Value),
    (from, threads): (i64, i64),
    ty: Type,
) {
    let number = |r: &mut Rebuild<'_>, n| r.out.constant(Scalar::from_i64(ty.dtype, n));
    let (start, end) = (number(r, from), number(r, from + nest.groups()));
    let mut cond = if from == 0 {
        r.out.binary(BinaryOp::Lt, group, end)
    } else {
        r.out.binary(BinaryOp::Le, start, group)
    };
    if nest.threads() < threads {
        let most = number(r, nest.threads());
        let inside = r.out.binary(BinaryOp::Lt, local, most);
        cond = r.out.binary(BinaryOp::And, cond, inside);
    }
    r.out.open_if(cond);
    // What ranges are proven from: the condition said so already.
    let own = |r: &mut Rebuild<'_>, x: Value, len: i64| {
        let (zero, last) = (number(r, 0), number(r, (len - 1).max(0)));
        let x = r.out.binary(BinaryOp::Max, x, zero);
        r.out.binary(BinaryOp::Min, x, last)
    };
    if let Some((counter, len)) = nest.group {
        let shifted = r.out.binary(BinaryOp::Sub, group, start);
        let value = own(r, shifted, len);
        r.set(counter, value);
    }
    if let Some((counter, len)) = nest.local {
        let value = if len < threads { own(r, local, len) } else { local };
        r.set(counter, value);
    }
    for &i in &nest.between {
        r.copy(Value(i as u32));
    }
    r.copy_range(nest.body.clone());
    r.out.close();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caps::Caps;
    use crate::ir::joint::{Member, join};
    use crate::passes::property_tests::{Rng, compare, inputs, run};
    use crate::passes::samples;
    use crate::{DType, tune};

    fn gpu() -> Caps {
        Caps {
            simt: true,
            max_local: 256,
            shared_bytes: 32 << 10,
            threads: 1 << 12,
            ..Caps::default()
        }
    }

    #[test]
    fn any_number_of_nests_become_one() {
        let caps = gpu();
        let kernels = [
            samples::chain(100),
            samples::sum_rows(DType::F32, 24, 20),
            samples::chain(7),
            samples::gelu(5000),
            samples::softmax(300, 12),
        ];
        let (mut params, mut slots) = (Vec::new(), Vec::new());
        let tuned: Vec<Kernel> = kernels.iter().map(|k| tune::optimize(k, &caps)).collect();
        for kernel in &tuned {
            let first = params.len() as u16;
            params.extend_from_slice(kernel.params());
            slots.push((first..params.len() as u16).collect::<Vec<_>>());
        }
        let members: Vec<Member<'_>> = tuned
            .iter()
            .zip(&slots)
            .map(|(kernel, params)| Member { kernel, params, vars: &[] })
            .collect();
        let joint = join("joint", &params, &[], &members);
        let input = inputs(&joint, &mut Rng(9));
        let expected = run(&joint, &input, &[]);
        let mut kernel = joint;
        while let Some(site) = sites(&kernel, &caps).into_iter().next() {
            kernel = apply(&kernel, &site);
            compare(&kernel, (&expected, &run(&kernel, &input, &[])), None).unwrap();
        }
        let nests = kernel.ops().iter();
        let groups =
            nests.filter(|op| matches!(op, Op::Loop { kind: LoopKind::Group, .. })).count();
        assert_eq!(groups, 1, "{kernel}");
        crate::ir::verify_for(&kernel, &caps).unwrap();
    }
}
