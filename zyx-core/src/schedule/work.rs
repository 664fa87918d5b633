//! Works: what groups become, and what launches are made of, before anything is compiled.
//!
//! A work is a kernel or a library call with the nodes that are its buffers; works that share a
//! launch become one [`Unit`].

use super::alternatives;
use super::bundle;
use super::lower::{Lowered, Var};
use super::partition::{Partition, partition, partition_by};
use super::starts;
use super::strategies::{self, Nest};
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Call, Caps, Part, PartWork};
use crate::ir::Access;
use crate::runtime::Device;
use std::sync::Arc;

/// What a group becomes before programs are compiled.
#[derive(Debug)]
pub(crate) enum Work {
    /// A generated kernel.
    Kernel(Lowered),
    /// A library call with its buffers, what it does to them, and its scalars.
    Call { call: Call, buffers: Vec<NodeId>, accesses: Vec<Access>, vars: Vec<Var> },
}

impl Work {
    /// The nodes it reads or writes, each as often as it is an argument.
    pub(super) fn accesses(&self) -> Vec<(NodeId, Access)> {
        match self {
            Work::Kernel(lowered) => {
                let accesses = lowered.kernel.params().iter().map(|info| info.access);
                lowered.params.iter().copied().zip(accesses).collect()
            }
            Work::Call { buffers, accesses, .. } => {
                buffers.iter().copied().zip(accesses.iter().copied()).collect()
            }
        }
    }

    /// A call with the operands it reads and then the arguments of kernels, each beyond so many that
    /// the device provides.
    pub(super) fn call(call: Call, operands: Vec<NodeId>, kernels: Vec<(Lowered, usize)>) -> Work {
        let mut accesses = vec![Access::Read; operands.len()];
        let (mut buffers, mut vars) = (operands, Vec::new());
        for (lowered, given) in kernels {
            accesses.extend(lowered.kernel.params()[given..].iter().map(|info| info.access));
            buffers.extend(&lowered.params);
            vars.extend(&lowered.vars);
        }
        Work::Call { call, buffers, accesses, vars }
    }

    /// The nodes that are its buffers, and its scalars.
    pub(super) fn arguments(&self) -> (&[NodeId], &[Var]) {
        match self {
            Work::Kernel(lowered) => (&lowered.params, &lowered.vars),
            Work::Call { buffers, vars, .. } => (buffers, vars),
        }
    }
}

/// The works of one launch made one program: by joining kernels, and together with library calls
/// by asking the device.
#[derive(Debug)]
pub(super) enum Unit {
    Work(Work),
    /// Works that the device runs together, with the nodes and scalars that are the launch's.
    Together {
        works: Vec<Work>,
        call: Call,
        buffers: Vec<NodeId>,
        scalars: Vec<Var>,
    },
}

impl Unit {
    /// Of the works of one launch.
    pub(super) fn of(works: Vec<Work>) -> Unit {
        let (kernels, mut works): (Vec<Work>, Vec<Work>) =
            works.into_iter().partition(|work| matches!(work, Work::Kernel(_)));
        let kernels: Vec<Lowered> = kernels
            .into_iter()
            .filter_map(|work| match work {
                Work::Kernel(lowered) => Some(lowered),
                Work::Call { .. } => None,
            })
            .collect();
        if !kernels.is_empty() {
            works.push(Work::Kernel(bundle::joined(&kernels)));
        }
        if works.len() == 1
            && let Some(only) = works.pop()
        {
            return Unit::Work(only);
        }
        let (mut buffers, mut scalars) = (bundle::Slots::new(), bundle::Slots::new());
        let mut parts = Vec::new();
        for work in &works {
            let (nodes, vars) = work.arguments();
            let buffers = nodes.iter().map(|&x| buffers.of(x)).collect();
            let scalars = vars.iter().map(|&x| scalars.of(x)).collect();
            let work = match work {
                Work::Kernel(lowered) => PartWork::Kernel(Arc::new(lowered.kernel.clone())),
                Work::Call { call, .. } => PartWork::Call(call.clone()),
            };
            parts.push(Part { work, buffers, scalars });
        }
        let call = Call::Together { parts };
        Unit::Together { works, call, buffers: buffers.list, scalars: scalars.list }
    }

    pub(super) fn arguments(&self) -> (&[NodeId], &[Var]) {
        match self {
            Unit::Work(work) => work.arguments(),
            Unit::Together { buffers, scalars, .. } => (buffers, scalars),
        }
    }

    /// The name its program has.
    pub(super) fn name(&self) -> String {
        match self {
            Unit::Work(Work::Kernel(lowered)) => lowered.kernel.name().to_owned(),
            Unit::Work(Work::Call { call, .. }) | Unit::Together { call, .. } => call.name(),
        }
    }

    /// The nodes it writes.
    pub(super) fn written(&self) -> impl Iterator<Item = NodeId> + '_ {
        let works = match self {
            Unit::Work(work) => std::slice::from_ref(work),
            Unit::Together { works, .. } => works,
        };
        let accesses = works.iter().flat_map(Work::accesses);
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

/// How works become launches.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Launches {
    /// Works that do not wait for each other share one.
    Joint,
    /// One for each work.
    Single,
}

/// The kernels and calls that compute the outputs of a graph, in order.
pub(crate) struct Scheduled {
    pub(crate) partition: Partition,
    pub(crate) works: Vec<Work>,
    /// The group that each work belongs to, and the name of the strategy that made it.
    pub(crate) groups: Vec<usize>,
    pub(crate) strategies: Vec<&'static str>,
}

/// Schedules a graph: by the partition that its search finds, and where items are far from their
/// least time, by what [`alternatives`](super::alternatives) find.
pub(crate) fn schedule(graph: &Graph, device: &Device) -> Scheduled {
    let roots: Vec<NodeId> = graph
        .outputs
        .iter()
        .map(|&output| storage(graph, output))
        .filter(|&id| !matches!(graph.node(id), Node::Leaf { .. }))
        .collect();
    let offers = |spec: &crate::hal::ContractSpec| {
        let call = Call::Contract { spec: spec.clone(), prologue: None, epilogue: None };
        device.library(&call).is_some()
    };
    let caps = device.caps();
    let first = lowered(graph, partition(graph, &roots, &offers, caps), caps);
    alternatives::improve(graph, first, caps, &mut |choices| {
        let mut other = partition_by(graph, &roots, &offers, caps, choices);
        other.walked = starts::walked(graph, &other.home);
        lowered(graph, other, caps)
    })
}

/// The items of each group.
fn lowered(graph: &Graph, mut partition: Partition, caps: &Caps) -> Scheduled {
    let (mut works, mut groups, mut strategies) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..partition.groups.len() {
        let group = partition.groups[number].clone();
        if graph.shape(group.roots[0].node).numel() == 0 {
            continue;
        }
        let mut nest = Nest { graph, partition: &mut partition, number, group, caps };
        let (strategy, items) = strategies::lower(&mut nest);
        works.extend(items);
        groups.resize(works.len(), number);
        strategies.resize(works.len(), strategy);
    }
    Scheduled { partition, works, groups, strategies }
}

/// Works that share a launch, with their numbers.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) works: Vec<Work>,
    pub(super) numbers: Vec<usize>,
}

impl Bundle {
    /// Of works whose numbers nobody asks for.
    pub(super) fn new(works: Vec<Work>) -> Bundle {
        Bundle { works, numbers: Vec::new() }
    }
}

/// The launches that works become.
pub(super) fn bundles(graph: &Graph, works: Vec<Work>, device: &Device) -> Vec<Bundle> {
    let bundles = bundle::bundle(graph, &works, device.caps());
    let mut works: Vec<Option<Work>> = works.into_iter().map(Some).collect();
    let mut take = |i: &usize| works[*i].take().expect("invariant: each work is in one bundle");
    let mut bundle = |numbers: Vec<usize>| {
        let works = numbers.iter().map(&mut take).collect();
        Bundle { works, numbers }
    };
    bundles.into_iter().map(&mut bundle).collect()
}
