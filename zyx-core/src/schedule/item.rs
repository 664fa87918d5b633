//! Works: what groups become, and what launches are made of, before anything is compiled.
//!
//! An item is a kernel or a library call with the nodes that are its buffers; items that share a
//! launch become one [`Launch`].

use super::alternatives;
use super::contract::Start;
use super::horizontal_fusion::{self, Joined};
use super::lower::{Lowered, Var};
use super::partition::{Partition, partition_by};
use super::pull::Scope;
use super::search::{self, Choices};
use super::starts;
use super::strategies::{self, Nest};
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps, Part, PartWork, Watch};
use crate::ir::Access;
use crate::runtime::Device;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

/// What a group becomes before programs are compiled.
#[derive(Clone, Debug)]
pub(crate) enum ScheduleItem {
    /// A generated kernel.
    Kernel(Lowered),
    /// A library call with its buffers, what it does to them, and its scalars; and where the first
    /// of the buffers start.
    Call {
        call: Box<Call>,
        buffers: Vec<NodeId>,
        accesses: Vec<Access>,
        vars: Vec<Var>,
        starts: Vec<Start>,
    },
}

impl ScheduleItem {
    /// The nodes it reads or writes, each as often as it is an argument.
    pub(super) fn accesses(&self) -> Vec<(NodeId, Access)> {
        match self {
            ScheduleItem::Kernel(lowered) => {
                let accesses = lowered.kernel.params().iter().map(|info| info.access);
                lowered.params.iter().copied().zip(accesses).collect()
            }
            ScheduleItem::Call { buffers, accesses, .. } => {
                buffers.iter().copied().zip(accesses.iter().copied()).collect()
            }
        }
    }

    /// A call with the operands it reads and then the arguments of kernels, each beyond so many that
    /// the device provides.
    pub(super) fn call(
        call: Call,
        operands: Vec<NodeId>,
        kernels: Vec<(Lowered, usize)>,
    ) -> ScheduleItem {
        let mut accesses = vec![Access::Read; operands.len()];
        let (mut buffers, mut vars) = (operands, Vec::new());
        for (lowered, given) in kernels {
            accesses.extend(lowered.kernel.params()[given..].iter().map(|info| info.access));
            buffers.extend(&lowered.params);
            vars.extend(&lowered.vars);
        }
        let call = Box::new(call);
        ScheduleItem::Call { call, buffers, accesses, vars, starts: Vec::new() }
    }

    /// Its buffers, each with where it starts.
    pub(super) fn buffers(&self) -> impl Iterator<Item = (NodeId, Start)> + '_ {
        let starts = match self {
            ScheduleItem::Kernel(_) => &[][..],
            ScheduleItem::Call { starts, .. } => starts,
        };
        let starts = starts.iter().copied().chain(std::iter::repeat(None));
        self.arguments().0.iter().copied().zip(starts)
    }

    /// The nodes that are its buffers, and its scalars.
    pub(super) fn arguments(&self) -> (&[NodeId], &[Var]) {
        match self {
            ScheduleItem::Kernel(lowered) => (&lowered.params, &lowered.vars),
            ScheduleItem::Call { buffers, vars, .. } => (buffers, vars),
        }
    }
}

/// The items of one launch made one program: by joining kernels, and together with library calls
/// by asking the device.
#[derive(Debug)]
pub(super) enum Launch {
    Item(ScheduleItem),
    /// Items that the device runs together, with the buffers and scalars that are the launch's.
    Fused {
        items: Vec<ScheduleItem>,
        call: Box<Call>,
        buffers: Vec<(NodeId, Start)>,
        scalars: Vec<Var>,
    },
}

impl Launch {
    /// Of the items of one launch.
    pub(super) fn of(mut items: Vec<ScheduleItem>, known: &mut Joined) -> Launch {
        if items.len() == 1
            && let Some(only) = items.pop()
        {
            return Launch::Item(only);
        }
        let (kernels, mut items): (Vec<ScheduleItem>, Vec<ScheduleItem>) =
            items.into_iter().partition(|item| matches!(item, ScheduleItem::Kernel(_)));
        let kernels: Vec<Lowered> = kernels
            .into_iter()
            .filter_map(|item| match item {
                ScheduleItem::Kernel(lowered) => Some(lowered),
                ScheduleItem::Call { .. } => None,
            })
            .collect();
        if !kernels.is_empty() {
            items.push(ScheduleItem::Kernel(horizontal_fusion::joined(&kernels, known)));
        }
        if items.len() == 1
            && let Some(only) = items.pop()
        {
            return Launch::Item(only);
        }
        let (mut buffers, mut scalars) =
            (horizontal_fusion::Slots::new(), horizontal_fusion::Slots::new());
        let mut parts = Vec::new();
        for item in &items {
            let buffers = item.buffers().map(|x| buffers.of(x)).collect();
            let scalars = item.arguments().1.iter().map(|&x| scalars.of(x)).collect();
            let item = match item {
                ScheduleItem::Kernel(lowered) => PartWork::Kernel(lowered.kernel.clone()),
                ScheduleItem::Call { call, .. } => PartWork::Call((**call).clone()),
            };
            parts.push(Part { work: item, buffers, scalars });
        }
        let call = Box::new(Call::Fused { parts });
        Launch::Fused { items, call, buffers: buffers.list, scalars: scalars.list }
    }

    /// Its buffers, each with where it starts, and its scalars.
    pub(super) fn arguments(&self) -> (Vec<(NodeId, Start)>, &[Var]) {
        match self {
            Launch::Item(item) => (item.buffers().collect(), item.arguments().1),
            Launch::Fused { buffers, scalars, .. } => (buffers.clone(), scalars),
        }
    }

    /// The name its program has.
    pub(super) fn name(&self) -> String {
        match self {
            Launch::Item(ScheduleItem::Kernel(lowered)) => lowered.kernel.name().to_owned(),
            Launch::Item(ScheduleItem::Call { call, .. }) | Launch::Fused { call, .. } => {
                call.name()
            }
        }
    }

    /// The call of a library, if it is one.
    pub(super) fn call(&self) -> Option<&Call> {
        match self {
            Launch::Item(ScheduleItem::Call { call, .. }) | Launch::Fused { call, .. } => {
                Some(call)
            }
            Launch::Item(ScheduleItem::Kernel(_)) => None,
        }
    }

    /// The nodes it writes.
    pub(super) fn written(&self) -> impl Iterator<Item = NodeId> + '_ {
        let items = match self {
            Launch::Item(item) => std::slice::from_ref(item),
            Launch::Fused { items, .. } => items,
        };
        let accesses = items.iter().flat_map(ScheduleItem::accesses);
        accesses.filter(|access| access.1 != Access::Read).map(|access| access.0)
    }
}

/// The buffer that holds a node which only reshapes it.
pub(super) fn storage(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Node::Reshape { x } = graph.node(id) {
        id = x;
    }
    id
}

/// How items become launches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Launches {
    /// Items that do not wait for each other share one.
    Joint,
    /// One for each item.
    Single,
}

/// The kernels and calls that compute the outputs of a graph, in order.
pub(crate) struct Scheduled {
    pub(crate) partition: Partition,
    pub(crate) items: Vec<ScheduleItem>,
    /// The group that each item belongs to, and the name of the strategy that made it.
    pub(crate) groups: Vec<usize>,
    pub(crate) strategies: Vec<&'static str>,
}

/// Schedules a graph: by the partition that its search finds, and where items are far from their
/// least time, by what [`alternatives`](super::alternatives) find.
pub(crate) fn schedule(graph: &Graph, device: &Device) -> Scheduled {
    schedule_by(graph, device, &|_| None).0
}

/// As [`schedule`], with what has to be chosen beside the rules for that; or by what is `known` to be found from the
/// rules on.
pub(super) fn schedule_by(
    graph: &Graph,
    device: &Device,
    known: &dyn Fn(&Partition) -> Option<Arc<Choices>>,
) -> (Scheduled, Option<Choices>) {
    let roots: Vec<NodeId> = graph
        .outputs
        .iter()
        .map(|&output| storage(graph, output))
        .filter(|&id| !matches!(graph.node(id), Node::Leaf { .. }))
        .collect();
    // A search asks for the same calls again and again.
    let offered: RefCell<FxHashMap<Call, bool>> = RefCell::default();
    let offers = |call: &Call| {
        if let Some(&offers) = offered.borrow().get(call) {
            return offers;
        }
        let offers = device.offers(call);
        offered.borrow_mut().insert(call.clone(), offers);
        offers
    };
    let caps = device.caps();
    let mut by = |choices: &Choices| partition_by(graph, &roots, &offers, caps, choices);
    let lower = |mut found: Partition| {
        found.walked = starts::walked(graph, &found.producer);
        lowered(graph, found, (&offers, caps))
    };
    let rules = by(&Choices::default());
    match known(&rules) {
        Some(chosen) if chosen.is_empty() => (lower(rules), None),
        Some(chosen) => (lower(by(&chosen)), None),
        None => {
            let decided = search::decided(&rules);
            let first = lower(search::cheapest(graph.len(), rules, &mut by));
            let found =
                alternatives::improve(graph, first, caps, &mut |choices| lower(by(choices)));
            let changes = search::changes(decided, &found.partition);
            (found, Some(changes))
        }
    }
}

/// The items of each group; of some, if the user wants the program to stop.
fn lowered(
    graph: &Graph,
    mut partition: Partition,
    (offers, caps): (&dyn Fn(&Call) -> bool, &Caps),
) -> Scheduled {
    let (mut items, mut groups, mut strategies) = (Vec::new(), Vec::new(), Vec::new());
    let watch = Watch::here();
    for number in (0..partition.groups.len()).take_while(|_| !watch.is_stopped()) {
        let group = partition.groups[number].clone();
        if group.roots.iter().all(|root| graph.shape(root.node).numel() == 0) {
            continue;
        }
        partition.indices.algebra.allocate_from(Scope::Lowering.first());
        let mut nest = Nest { graph, partition: &mut partition, number, group, caps, offers };
        let (strategy, lowered) = strategies::lower(&mut nest);
        items.extend(lowered);
        groups.resize(items.len(), number);
        strategies.resize(items.len(), strategy);
    }
    Scheduled { partition, items, groups, strategies }
}

/// Items that share a launch, with their numbers.
#[derive(Debug)]
pub(super) struct Fusion {
    pub(super) items: Vec<ScheduleItem>,
    pub(super) numbers: Vec<usize>,
}

impl Fusion {
    /// Of items whose numbers nobody asks for.
    pub(super) fn new(items: Vec<ScheduleItem>) -> Fusion {
        Fusion { items, numbers: Vec::new() }
    }
}

/// The launches that items become.
pub(super) fn fusions(graph: &Graph, items: Vec<ScheduleItem>, device: &Device) -> Vec<Fusion> {
    let fusions = horizontal_fusion::fusion(graph, &items, device.caps());
    let mut items: Vec<Option<ScheduleItem>> = items.into_iter().map(Some).collect();
    let mut take = |i: &usize| items[*i].take().expect("invariant: each item is in one fusion");
    let mut fusion = |numbers: Vec<usize>| {
        let items = numbers.iter().map(&mut take).collect();
        Fusion { items, numbers }
    };
    fusions.into_iter().map(&mut fusion).collect()
}

/// What each of them is as a program.
pub(super) fn launches(fusions: Vec<Fusion>) -> Vec<Launch> {
    let mut known = Joined::default();
    fusions.into_iter().map(|fusion| Launch::of(fusion.items, &mut known)).collect()
}
