//! Which items share a launch: those that do not wait for one another.
//!
//! Works come in an order in which what one reads is written before. Each joins a launch behind
//! all that it depends on, the latest that takes it, or gets one of its own; so results are moved
//! forwards in time only. Works whose results nothing in the plan reads (an optimizer's updates)
//! go to the end first, where one launch takes them all, unless keeping their inputs until then
//! would need more memory than their results.
//!
//! What takes what: a kernel joins a kernel (`ir::joint`), on devices of many threads only if both
//! are elementwise or both are small, because a joint kernel has as few threads at once as its
//! greediest part allows; a contraction joins anything where the device says so
//! ([`Caps::fused_calls`]), flash attention nothing; all within the number of buffers that a launch can bind.

use super::item::ScheduleItem;
use super::lower::Lowered;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps};
use crate::ir::joint::{Member, join};
use crate::ir::{Access, Kernel, LoopKind, Op, ParamInfo, VarInfo};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::Arc;

/// How many launches back an item looks for one that takes it.
const WINDOW: usize = 12;
/// Most ops of a joint kernel: bounds what a compiler gets at once. Compilers of devices of many threads take a
/// millisecond for each, and several kernels compile on all cores, equal ones once; against that a launch
/// more is nothing.
const MAX_OPS: usize = 1 << 14;
const MAX_OPS_SIMT: usize = 1 << 10;
/// Iterations up to which a kernel counts as small on a device of many threads.
const SMALL: f64 = (1 << 18) as f64;

/// A set of items that may run in any order, or at once.
struct Fusion {
    items: Vec<usize>,
    buffers: FxHashSet<NodeId>,
    n_buffers: usize,
    ops: usize,
    calls: bool,
    alone: bool,
    /// Whether all are elementwise, and whether all are small.
    maps: bool,
    small: bool,
}

/// What matters of an item here.
struct Facts {
    reads: SmallVec<[NodeId; 8]>,
    writes: SmallVec<[NodeId; 4]>,
    call: bool,
    /// Whether it shares a launch with nothing.
    alone: bool,
    kernel: OfKernel,
}

/// What matters of its kernel, if it is one.
#[derive(Clone, Copy, Default)]
struct OfKernel {
    ops: usize,
    map: bool,
    small: bool,
    /// Bound to groups already.
    bound: bool,
}

impl OfKernel {
    fn of(kernel: &Kernel, caps: &Caps) -> OfKernel {
        let ops = kernel.ops();
        let any =
            |wanted| ops.iter().any(|op| matches!(op, Op::Loop { kind, .. } if *kind == wanted));
        OfKernel {
            ops: ops.len(),
            map: !any(LoopKind::Serial),
            small: caps.simt && iterations(kernel) <= SMALL,
            bound: any(LoopKind::Group),
        }
    }
}

/// The items of each launch, by number.
pub(super) fn fusion(graph: &Graph, items: &[ScheduleItem], caps: &Caps) -> Vec<Vec<usize>> {
    let mut known = FxHashMap::default();
    let facts: Vec<Facts> = items.iter().map(|item| Facts::of(item, caps, &mut known)).collect();
    let mut fusions: Vec<Fusion> = Vec::new();
    // The last launch that writes a node, and the last that reads it.
    let mut writer: FxHashMap<NodeId, usize> = FxHashMap::default();
    let mut reader: FxHashMap<NodeId, usize> = FxHashMap::default();
    let (early, late) = order(graph, &facts);
    let most = if caps.simt { MAX_OPS_SIMT } else { MAX_OPS };
    let (n, mut first) = (early.len(), 0);
    for (i, number) in early.into_iter().chain(late).enumerate() {
        if i == n {
            // The last launches take all results that are a program's, so that they can have their inputs' memory.
            first = fusions.len().saturating_sub(1);
        }
        let this = &facts[number];
        let after = |map: &FxHashMap<NodeId, usize>, x: &NodeId| map.get(x).map_or(0, |b| b + 1);
        let reads = this.reads.iter().map(|x| after(&writer, x));
        let writes = this.writes.iter().map(|x| after(&writer, x).max(after(&reader, x)));
        let earliest = reads.chain(writes).max().unwrap_or(0);
        let from = earliest.max(first).max(fusions.len().saturating_sub(WINDOW));
        let host =
            (from..fusions.len()).rev().find(|&b| fusions[b].takes(graph, this, (caps, most)));
        let at = host.unwrap_or_else(|| {
            fusions.push(Fusion::new());
            fusions.len() - 1
        });
        fusions[at].add(graph, number, this, caps);
        this.reads.iter().for_each(|&x| raise(&mut reader, x, at));
        this.writes.iter().for_each(|&x| raise(&mut writer, x, at));
    }
    fusions.into_iter().map(|fusion| fusion.items).collect()
}

fn raise(map: &mut FxHashMap<NodeId, usize>, x: NodeId, to: usize) {
    let known = map.entry(x).or_insert(to);
    *known = to.max(*known);
}

/// The order in which items choose: as they come, but for those at the end of the program that
/// cost no memory by coming last.
fn order(graph: &Graph, facts: &[Facts]) -> (Vec<usize>, Vec<usize>) {
    let read: FxHashSet<NodeId> = facts.iter().flat_map(|f| f.reads.iter().copied()).collect();
    let bytes = |list: &[NodeId]| -> usize {
        let temporary = |x: &&NodeId| !matches!(graph.node(**x), Node::Leaf { .. });
        let size = |&x: &NodeId| graph.shape(x).numel() * graph.dtype(x).size();
        list.iter().filter(temporary).map(size).sum()
    };
    let last = |f: &Facts| {
        f.kernel.map
            && !f.writes.iter().any(|x| read.contains(x))
            && bytes(&f.reads) <= bytes(&f.writes)
    };
    (0..facts.len()).partition(|&i| !last(&facts[i]))
}

impl Facts {
    fn of(
        item: &ScheduleItem,
        caps: &Caps,
        known: &mut FxHashMap<*const Kernel, OfKernel>,
    ) -> Facts {
        let mut facts = Facts {
            reads: SmallVec::new(),
            writes: SmallVec::new(),
            call: matches!(item, ScheduleItem::Call { .. }),
            alone: matches!(item, ScheduleItem::Call { call, .. } if matches!(**call, Call::Flash { .. } | Call::Convolve(_) | Call::Attend(_) | Call::Raw(_))),
            kernel: OfKernel::default(),
        };
        for (node, access) in item.accesses() {
            if access != Access::Write {
                facts.reads.push(node);
            }
            if access != Access::Read {
                facts.writes.push(node);
            }
        }
        if let ScheduleItem::Kernel(lowered) = item {
            let of = || OfKernel::of(&lowered.kernel, caps);
            facts.kernel = *known.entry(Arc::as_ptr(&lowered.kernel)).or_insert_with(of);
            // The scalars that say how long its buffers are would be others in a joint kernel.
            facts.alone = facts.kernel.bound || lowered.kernel.has_extents();
        }
        facts
    }
}

/// How often the innermost loops of a kernel run.
fn iterations(kernel: &Kernel) -> f64 {
    let (mut open, mut total) = (vec![1.0f64], 0.0f64);
    for op in kernel.ops() {
        let around = open.last().copied().unwrap_or(1.0);
        match *op {
            Op::Loop { len, .. } => {
                open.push(around * kernel.constant(len).map_or(128.0, |n| n.to_f64()));
            }
            Op::If { .. } => open.push(around),
            Op::End { .. } => {
                open.pop();
                total = total.max(around);
            }
            _ => {}
        }
    }
    total
}

impl Fusion {
    fn new() -> Fusion {
        Fusion {
            items: Vec::new(),
            buffers: FxHashSet::default(),
            n_buffers: 0,
            ops: 0,
            calls: false,
            alone: false,
            maps: true,
            small: true,
        }
    }

    fn takes(&self, graph: &Graph, facts: &Facts, (caps, most): (&Caps, usize)) -> bool {
        if (self.calls || facts.call) && !caps.fused_calls || self.alone || facts.alone {
            return false;
        }
        let alike = self.maps && facts.kernel.map || self.small && facts.kernel.small;
        let more = || -> usize {
            let new = facts.reads.iter().chain(&facts.writes).filter(|x| !self.buffers.contains(x));
            new.map(|&x| bindings(graph, x, caps)).sum()
        };
        (!caps.simt || alike)
            && self.ops + facts.kernel.ops <= most
            && (caps.max_buffers == usize::MAX || self.n_buffers + more() <= caps.max_buffers)
    }

    fn add(&mut self, graph: &Graph, number: usize, facts: &Facts, caps: &Caps) {
        self.items.push(number);
        for &x in facts.reads.iter().chain(&facts.writes) {
            if caps.max_buffers != usize::MAX && self.buffers.insert(x) {
                self.n_buffers += bindings(graph, x, caps);
            }
        }
        self.ops += facts.kernel.ops;
        self.calls |= facts.call;
        self.alone |= facts.alone;
        self.maps &= facts.kernel.map;
        self.small &= facts.kernel.small;
    }
}

/// Buffers that a value takes when it is bound.
fn bindings(graph: &Graph, x: NodeId, caps: &Caps) -> usize {
    let bytes = graph.shape(x).numel().saturating_mul(graph.dtype(x).size()) as u64;
    usize::try_from(bytes.div_ceil(caps.max_binding)).unwrap_or(1).max(1)
}

/// Numbers of distinct things in the order of their first use.
pub(super) struct Slots<T> {
    pub(super) list: Vec<T>,
    numbers: FxHashMap<T, u16>,
}

impl<T: Copy + Eq + std::hash::Hash> Slots<T> {
    pub(super) fn new() -> Slots<T> {
        Slots { list: Vec::new(), numbers: FxHashMap::default() }
    }

    pub(super) fn of(&mut self, x: T) -> u16 {
        *self.numbers.entry(x).or_insert_with(|| {
            self.list.push(x);
            self.list.len() as u16 - 1
        })
    }
}

/// Joint kernels made so far: by the members, each with the slots of its arguments. Members are kept,
/// so that no other kernel has the address of one.
#[derive(Default)]
pub(super) struct Joined(FxHashMap<Vec<usize>, (Arc<Kernel>, Vec<Arc<Kernel>>)>);

/// One kernel of several that do not depend on one another.
pub(super) fn joined(members: &[Lowered], known: &mut Joined) -> Lowered {
    if let [only] = members {
        return only.clone();
    }
    let (mut nodes, mut vars) = (Slots::new(), Slots::new());
    let (mut params, mut scalars): (Vec<ParamInfo>, Vec<VarInfo>) = (Vec::new(), Vec::new());
    let (mut places, mut key) = (Vec::new(), Vec::new());
    for member in members {
        let mut place = (Vec::new(), Vec::new());
        for (&node, &info) in member.params.iter().zip(member.kernel.params()) {
            let slot = nodes.of(node);
            match params.get_mut(slot as usize) {
                Some(known) if known.access != info.access => known.access = Access::ReadWrite,
                Some(_) => {}
                None => params.push(info),
            }
            place.0.push(slot);
        }
        for (&var, &info) in member.vars.iter().zip(member.kernel.vars()) {
            let slot = vars.of((var, info.dtype, info.min, info.max));
            if slot as usize == scalars.len() {
                scalars.push(info);
            }
            place.1.push(slot);
        }
        key.push(Arc::as_ptr(&member.kernel).addr());
        key.extend(place.0.iter().chain(&place.1).map(|&slot| usize::from(slot)));
        places.push(place);
    }
    let (params_of, vars_of) = (nodes.list, vars.list.iter().map(|v| v.0).collect());
    if let Some((kernel, _)) = known.0.get(&key) {
        return Lowered { kernel: kernel.clone(), params: params_of, vars: vars_of };
    }
    let list: Vec<Member<'_>> = members
        .iter()
        .zip(&places)
        .map(|(member, (params, vars))| Member { kernel: &member.kernel, params, vars })
        .collect();
    let kernel = Arc::new(join(&name(members), &params, &scalars, &list));
    let kept = members.iter().map(|member| member.kernel.clone()).collect();
    known.0.insert(key, (kernel.clone(), kept));
    Lowered { kernel, params: params_of, vars: vars_of }
}

/// The name of the first member and how many there are.
fn name(members: &[Lowered]) -> String {
    format!("{}_and_{}", members[0].kernel.name(), members.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::capture;
    use crate::runtime::Device;
    use crate::schedule::item::schedule;
    use crate::tensor::Tensor;
    use crate::testing::device;

    fn data(dims: &[usize], device: &Device) -> Tensor {
        let n: usize = dims.iter().product();
        Tensor::from_slice(&vec![0.5f32; n], dims, device).unwrap()
    }

    /// How many items each launch has.
    fn sizes(outputs: &[&Tensor], caps: &Caps) -> Vec<usize> {
        let (graph, _) = capture(outputs, 0);
        let items = schedule(&graph, outputs[0].device()).items;
        let fusions = fusion(&graph, &items, caps);
        let mut all: Vec<usize> = fusions.concat();
        all.sort_unstable();
        assert_eq!(all, (0..items.len()).collect::<Vec<_>>(), "each item is in one launch");
        fusions.iter().map(Vec::len).collect()
    }

    /// `n` updates that read four buffers and write three each.
    fn updates(n: usize, device: &Device) -> Vec<Tensor> {
        let update = |i: usize| {
            let [p, g, m, v] = [0; 4].map(|_| data(&[3 + i, 5], device));
            let m = m * 0.9 + &g * 0.1;
            let v = v * 0.999 + g.square() * 0.001;
            [p - &m / (v.sqrt() + 1e-8), m, v]
        };
        (0..n).flat_map(update).collect()
    }

    #[test]
    fn a_launch_binds_no_more_buffers_than_the_device() {
        let device = device();
        let updates = updates(4, &device);
        let outputs: Vec<&Tensor> = updates.iter().collect();
        assert_eq!(sizes(&outputs, &Caps::default()), [4]);
        let limited = |max_buffers, max_binding| {
            let mut caps = Caps::default();
            (caps.max_buffers, caps.max_binding) = (max_buffers, max_binding);
            sizes(&outputs, &caps)
        };
        assert_eq!(limited(8, u64::MAX), [1; 4]);
        assert_eq!(limited(14, u64::MAX), [2, 2]);
        assert_eq!(limited(usize::MAX, 16), [4]);
        assert_eq!(limited(64, 16).iter().sum::<usize>(), 4);
    }

    #[test]
    fn what_depends_on_another_comes_later() {
        let device = device();
        let x = data(&[6, 8], &device);
        // Each column sum divides every row, so the second needs all of the first.
        let y = &x / x.sum_keepdim(0).unwrap();
        let z = &y / y.sum_keepdim(0).unwrap();
        let alone = sizes(&[&z], &Caps::default());
        assert!(alone.len() >= 3 && alone.iter().all(|&n| n == 1), "{alone:?}");
        let other = x.sum(1).unwrap().exp();
        let both = sizes(&[&z, &other], &Caps::default());
        assert_eq!((both.len(), both.iter().max()), (alone.len(), Some(&2)), "{both:?}");
    }

    #[test]
    fn devices_of_many_threads_join_what_is_alike() {
        let device = device();
        let mut gpu = Caps::default();
        (gpu.simt, gpu.max_local, gpu.threads) = (true, 256, 1 << 16);
        let (x, y) = (data(&[1024, 1024], &device), data(&[64], &device));
        let (map, sum, small) = (x.exp(), x.sum(1).unwrap(), y.sum(..).unwrap());
        let gelu = y.gelu();
        assert_eq!(sizes(&[&map, &gelu], &gpu), [2], "elementwise kernels of any size");
        assert_eq!(sizes(&[&map, &sum], &gpu), [1, 1], "a large reduction stays alone");
        assert_eq!(sizes(&[&small, &gelu], &gpu), [2], "small kernels of any kind");
    }
}
