//! Plans: everything that can be decided about a graph before its data is known.
//!
//! A plan is plain data: steps with programs and argument proxies, explicit dependencies, and
//! places for buffers. It depends only on the structure of the graph and the device, so a second
//! step of a training loop finds it by the graph's hash and only binds leaves and scalars.

use super::bundle;
use super::dependencies::{self, dependencies};
use super::lower::{Lowered, lower};
use super::memory::{self, Lifetime};
use super::partition::{ContractGroup, Group, Kind, Partition, partition};
use super::stream::{self, Stream};
use super::{epilogue, online, threads};
use crate::error::{Error, Result};
use crate::graph::{Bindings, Graph, Node, NodeId};
use crate::hal::{Arg, Call, DeviceError, Part, PartWork, Recording};
use crate::ir::Access;
use crate::runtime::{Buffer, Device, Launch, Pinned, Program};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Where the buffer of a stored node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The leaf in this slot.
    Leaf(u32),
    /// The output allocated under this number.
    Output(u32),
    /// At this offset of the arena, so many bytes.
    Temporary(usize, usize),
}

/// An argument of a step.
#[derive(Clone, Copy, Debug)]
enum PlanArg {
    /// The buffer with this number.
    Buffer(u32),
    /// The graph's scalar argument in this slot.
    Scalar(u32),
}

/// One launch.
#[derive(Debug)]
struct Step {
    program: Program,
    args: Vec<PlanArg>,
    /// Steps that must be done before this one.
    after: Vec<u32>,
}

/// A compiled schedule.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What it computes, if it is kept.
    pub(super) graph: Option<Arc<Graph>>,
    steps: Vec<Step>,
    places: Vec<Place>,
    /// Bytes of the allocated outputs, by number.
    output_bytes: Vec<usize>,
    /// For each output of the graph the number of its buffer.
    outputs: Vec<u32>,
    arena: usize,
    temporaries: usize,
    /// Set when the plan turned out to need more memory at once than there is.
    stepwise: AtomicBool,
    /// The plan with a launch for every work, which is the one to run step by step.
    apart: OnceLock<Box<Plan>>,
    /// What the device keeps of this plan's launches; taken out while it is in use, so that two
    /// threads that play one plan do not wait for each other.
    replay: Mutex<Replay>,
}

/// What a plan keeps from one run to the next.
#[derive(Debug, Default)]
struct Replay {
    recording: Recording,
    /// The programs to run instead of those of the steps, if any were replaced by better ones.
    programs: Vec<Program>,
    /// The device's count of replacements when they were looked up.
    generation: u64,
}

/// What a group becomes before programs are compiled.
#[derive(Debug)]
pub(crate) enum Work {
    /// A generated kernel.
    Kernel(Lowered),
    /// A library call with its buffers, what it does to them, and the graph's arguments that are
    /// its scalars.
    Call { call: Call, buffers: Vec<NodeId>, accesses: Vec<Access>, vars: Vec<u32> },
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
    fn call(call: Call, operands: Vec<NodeId>, kernels: Vec<(Lowered, usize)>) -> Work {
        let mut accesses = vec![Access::Read; operands.len()];
        let (mut buffers, mut vars) = (operands, Vec::new());
        for (lowered, given) in kernels {
            accesses.extend(lowered.kernel.params()[given..].iter().map(|info| info.access));
            buffers.extend(&lowered.params);
            vars.extend(&lowered.vars);
        }
        Work::Call { call, buffers, accesses, vars }
    }

    /// The nodes that are its buffers, and the graph's arguments that are its scalars.
    fn arguments(&self) -> (&[NodeId], &[u32]) {
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
    /// Works that the device runs together, with the nodes and arguments that are the launch's.
    Together {
        works: Vec<Work>,
        call: Call,
        buffers: Vec<NodeId>,
        scalars: Vec<u32>,
    },
}

impl Unit {
    fn of(works: Vec<Work>) -> Unit {
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

    fn arguments(&self) -> (&[NodeId], &[u32]) {
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
    fn written(&self) -> impl Iterator<Item = NodeId> + '_ {
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
    /// The group that each work belongs to.
    pub(crate) groups: Vec<usize>,
}

/// Schedules a graph.
pub(crate) fn schedule(graph: &Graph, device: &Device) -> Scheduled {
    let roots: Vec<NodeId> = graph
        .outputs
        .iter()
        .map(|&output| storage(graph, output))
        .filter(|&id| !matches!(graph.node(id), Node::Leaf { .. }))
        .collect();
    let offers = |spec: &crate::hal::ContractSpec| {
        let call = Call::Contract { spec: spec.clone(), epilogue: None };
        device.library(&call).is_some()
    };
    let mut partition = partition(graph, &roots, &offers, device.caps());
    let (mut works, mut groups) = (Vec::new(), Vec::new());
    for group in 0..partition.groups.len() {
        groups.resize(works.len(), group.saturating_sub(1));
        let this = partition.groups[group].clone();
        if graph.shape(this.roots[0].node).numel() == 0 {
            continue;
        }
        match &this.kind {
            Kind::Contract(contract) => {
                works.push(contract_work(graph, &mut partition, group, &this, contract));
            }
            Kind::Stream(stream) => {
                let library = stream::streams(device.caps()).is_some_and(|s| s.library);
                let p = &mut partition;
                works.push(match library {
                    true => stream_work(graph, p, group, &this, stream),
                    false => Work::Kernel(threads::lower(graph, p, group, &this, stream)),
                });
            }
            Kind::Nest | Kind::Scan | Kind::Scatter => {
                works.extend(lower(graph, &mut partition, group).into_iter().map(Work::Kernel));
            }
        }
    }
    groups.resize(works.len(), partition.groups.len().saturating_sub(1));
    Scheduled { partition, works, groups }
}

/// A contraction by the library, with its epilogue.
fn contract_work(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    contract: &ContractGroup,
) -> Work {
    let spec = contract.contraction.spec.clone();
    let operands = contract.contraction.operands.to_vec();
    match epilogue::lower(graph, partition, group, this, contract) {
        Some(lowered) => {
            let kernel = Arc::new(lowered.kernel.clone());
            let call = Call::Contract { spec, epilogue: Some(kernel) };
            // Its first argument is the tile.
            Work::call(call, operands, vec![(lowered, 1)])
        }
        None => {
            let call = Call::Contract { spec, epilogue: None };
            let accesses = vec![Access::Read, Access::Read, Access::Write];
            let buffers = [operands, vec![contract.contraction.node]].concat();
            Work::Call { call, buffers, accesses, vars: Vec::new() }
        }
    }
}

/// A stream by the library.
fn stream_work(
    graph: &Graph,
    partition: &mut Partition,
    group: usize,
    this: &Group,
    stream: &Stream,
) -> Work {
    let spec = stream.spec.clone();
    let given = spec.buffers();
    let [update, finish] = online::lower(graph, partition, group, this, stream);
    let kernel = |lowered: &Lowered| Arc::new(lowered.kernel.clone());
    let call = Call::Stream { spec, update: kernel(&update), finish: kernel(&finish) };
    Work::call(call, stream.operands.clone(), vec![(update, given), (finish, given)])
}

/// The launches that works become, each with the numbers of its works.
pub(super) fn units(graph: &Graph, works: Vec<Work>, device: &Device) -> Vec<(Unit, Vec<usize>)> {
    let bundles = bundle::bundle(graph, &works, device.caps());
    let mut works: Vec<Option<Work>> = works.into_iter().map(Some).collect();
    let mut take = |i: &usize| works[*i].take().expect("invariant: each work is in one bundle");
    let mut unit = |numbers: Vec<usize>| {
        let own = numbers.iter().map(&mut take).collect();
        (Unit::of(own), numbers)
    };
    bundles.into_iter().map(&mut unit).collect()
}

impl Plan {
    /// Schedules and compiles.
    pub(crate) fn new(graph: &Graph, device: &Device, launches: Launches) -> Result<Plan> {
        let split = super::pieces::split(graph, device);
        Plan::compile(split.as_ref().unwrap_or(graph), device, launches)
    }

    fn compile(graph: &Graph, device: &Device, launches: Launches) -> Result<Plan> {
        let works = schedule(graph, device).works;
        let units: Vec<Unit> = match launches {
            Launches::Joint => units(graph, works, device).into_iter().map(|u| u.0).collect(),
            Launches::Single => works.into_iter().map(Unit::Work).collect(),
        };
        let kernels = units.iter().filter_map(|unit| match unit {
            Unit::Work(Work::Kernel(lowered)) => Some(&lowered.kernel),
            Unit::Work(Work::Call { .. }) | Unit::Together { .. } => None,
        });
        let mut programs = device.programs(&kernels.collect::<Vec<_>>())?.into_iter();
        let mut numbers = Numbers::default();
        let mut plan = Plan::default();
        let mut lives: Vec<(usize, usize)> = Vec::new();
        for (step, unit) in units.iter().enumerate() {
            let program = match unit {
                Unit::Work(Work::Kernel(_)) => {
                    programs.next().expect("invariant: one program per kernel")
                }
                Unit::Work(Work::Call { call, .. }) | Unit::Together { call, .. } => {
                    device.library(call).ok_or_else(|| refused(call))?
                }
            };
            let (nodes, vars) = unit.arguments();
            let mut args = Vec::with_capacity(nodes.len() + vars.len());
            for &node in nodes {
                let number = numbers.of(node);
                if lives.len() <= number as usize {
                    lives.push((step, step));
                }
                lives[number as usize].1 = step;
                args.push(PlanArg::Buffer(number));
            }
            args.extend(vars.iter().map(|&slot| PlanArg::Scalar(slot)));
            plan.steps.push(Step { program, args, after: Vec::new() });
        }
        plan.place_buffers(graph, device, &mut numbers, &lives);
        plan.find_dependencies(&units, &numbers);
        Ok(plan)
    }

    /// Decides where each stored node lives.
    fn place_buffers(
        &mut self,
        graph: &Graph,
        device: &Device,
        numbers: &mut Numbers,
        lives: &[(usize, usize)],
    ) {
        for &output in &graph.outputs {
            self.outputs.push(numbers.of(storage(graph, output)));
        }
        let bytes = |id: NodeId| graph.shape(id).numel() * graph.dtype(id).size();
        let mut temporaries = Vec::new();
        for (number, &id) in numbers.nodes.iter().enumerate() {
            let place = match graph.node(id) {
                Node::Leaf { slot } => Place::Leaf(slot),
                _ if self.outputs.contains(&(number as u32)) => {
                    self.output_bytes.push(bytes(id));
                    Place::Output(self.output_bytes.len() as u32 - 1)
                }
                _ => {
                    let (first, last) = lives[number];
                    temporaries.push((number, Lifetime { bytes: bytes(id), first, last }));
                    Place::Temporary(0, 0)
                }
            };
            self.places.push(place);
        }
        let lifetimes: Vec<Lifetime> = temporaries.iter().map(|t| t.1).collect();
        let (offsets, size) = memory::place(&lifetimes, device.caps().offset_align.max(64));
        for ((number, life), offset) in temporaries.iter().zip(&offsets) {
            self.places[*number] = Place::Temporary(*offset, life.bytes);
        }
        self.arena = size;
        let mut distinct = offsets;
        distinct.sort_unstable();
        distinct.dedup();
        self.temporaries = distinct.len();
    }

    /// What each step waits for.
    fn find_dependencies(&mut self, units: &[Unit], numbers: &Numbers) {
        let touched = self.steps.iter().zip(units).map(|(step, unit)| {
            let written: FxHashSet<u32> = unit.written().map(|node| numbers.ids[&node]).collect();
            let buffers = step.args.iter().filter_map(|arg| match arg {
                PlanArg::Buffer(number) => Some(*number),
                PlanArg::Scalar(_) => None,
            });
            buffers.map(|number| self.touched(number, written.contains(&number))).collect()
        });
        let touched: Vec<Vec<dependencies::Access>> = touched.collect();
        for (step, after) in self.steps.iter_mut().zip(dependencies(&touched)) {
            step.after = after;
        }
    }

    /// The memory behind a buffer: bytes of the arena, or all of a buffer of its own.
    fn touched(&self, number: u32, writes: bool) -> dependencies::Access {
        let (space, bytes) = match self.places[number as usize] {
            Place::Temporary(offset, bytes) => (u32::MAX, offset..offset + bytes),
            Place::Leaf(_) | Place::Output(_) => (number, 0..1),
        };
        dependencies::Access { space, bytes, writes }
    }

    fn kept(&self) -> MutexGuard<'_, Replay> {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was kept, taken out, with the best programs there are now.
    fn replay(&self, device: &Device) -> Replay {
        let mut replay = std::mem::take(&mut *self.kept());
        let generation = device.generation();
        if replay.generation != generation {
            let program = |step: &Step| device.better(&step.program);
            let better: Vec<Option<Program>> = self.steps.iter().map(program).collect();
            let own = self.steps.iter().map(|step| &step.program);
            if better.iter().any(Option::is_some) {
                let best = better.into_iter().zip(own);
                replay.programs = best.map(|(b, own)| b.unwrap_or_else(|| own.clone())).collect();
                // A recording is of the programs it was made with.
                replay.recording = Recording::default();
            }
            replay.generation = generation;
        }
        replay
    }

    /// Runs the plan and gives the buffers of the graph's outputs.
    ///
    /// A plan that needs more memory at once than the device has is run step by step.
    pub(crate) fn play(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        device.count_temporaries(self.temporaries);
        if !self.stepwise.load(Relaxed) && self.fits(device, bindings) {
            match self.play_whole(device, bindings) {
                Err(Error::Device(DeviceError::OutOfMemory { .. })) if self.steps.len() > 1 => {}
                done => return done,
            }
        }
        let done = self.apart(device)?.play_steps(device, bindings)?;
        self.stepwise.store(true, Relaxed);
        Ok(done)
    }

    /// This plan without joint launches, which bind at once what their works need in turn; itself
    /// where the graph was not kept.
    fn apart(&self, device: &Device) -> Result<&Plan> {
        let (None, Some(graph)) = (self.apart.get(), &self.graph) else {
            return Ok(self.apart.get().map_or(self, |plan| plan));
        };
        let plan = Plan::new(graph, device, Launches::Single)?;
        Ok(self.apart.get_or_init(|| Box::new(plan)))
    }

    /// Whether all buffers may fit the device together.
    fn fits(&self, device: &Device, bindings: &Bindings) -> bool {
        let leaves: usize = bindings.leaves.iter().map(Buffer::bytes).sum();
        let outputs: usize = self.output_bytes.iter().sum();
        self.steps.len() <= 1 || device.could_hold(leaves + outputs + self.arena)
    }

    /// Runs the plan as one submission.
    fn play_whole(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        // First what exists: allocating what does not may move other buffers to the host.
        let leaves = pinned(&bindings.leaves)?;
        let alloc = |&bytes: &usize| device.alloc(bytes);
        let outputs = self.output_bytes.iter().map(alloc).collect::<Result<Vec<_>>>()?;
        let results = pinned(&outputs)?;
        // An arena of no bytes still is one: temporaries may all be empty.
        let arena = if self.temporaries > 0 { Some(device.alloc(self.arena)?) } else { None };
        let arena = arena.as_ref().map(Buffer::pin).transpose()?;
        let locate = |number: u32| match self.places[number as usize] {
            Place::Leaf(slot) => (&leaves[slot as usize], 0),
            Place::Output(output) => (&results[output as usize], 0),
            Place::Temporary(offset, _) => {
                (arena.as_ref().expect("invariant: temporaries have an arena"), offset)
            }
        };
        if !self.steps.is_empty() {
            let args = self.steps.iter().flat_map(|step| &step.args);
            let args: SmallVec<[Arg<'_, Pinned>; 64]> = args
                .map(|arg| match *arg {
                    PlanArg::Buffer(number) => {
                        let (buffer, offset) = locate(number);
                        Arg::Buffer(buffer, offset)
                    }
                    PlanArg::Scalar(slot) => Arg::Scalar(bindings.arguments[slot as usize]),
                })
                .collect();
            let Replay { mut recording, programs, generation } = self.replay(device);
            let mut launches: SmallVec<[Launch<'_>; 16]> = SmallVec::new();
            let mut rest = args.as_slice();
            for (i, step) in self.steps.iter().enumerate() {
                let (args, others) = rest.split_at(step.args.len());
                rest = others;
                let program = programs.get(i).unwrap_or(&step.program);
                launches.push(Launch { program, args, after: &step.after });
            }
            device.submit(&mut recording, &launches)?;
            drop(launches);
            *self.kept() = Replay { recording, programs, generation };
        }
        let result = |&number: &u32| match self.places[number as usize] {
            Place::Leaf(slot) => bindings.leaves[slot as usize].clone(),
            Place::Output(output) => outputs[output as usize].clone(),
            Place::Temporary(..) => unreachable!("invariant: outputs are no temporaries"),
        };
        Ok(self.outputs.iter().map(result).collect())
    }

    /// Runs the plan step by step, so that only what one step needs has to be on the device: all
    /// else, temporaries and finished outputs too, may move to the host meanwhile.
    fn play_steps(&self, device: &Device, bindings: &Bindings) -> Result<Vec<Buffer>> {
        let mut buffers: Vec<Option<Buffer>> = vec![None; self.places.len()];
        let buffer = |slot: &mut Option<Buffer>, number: u32| match (&*slot, self.bytes(number)) {
            (Some(buffer), _) => Ok(buffer.clone()),
            (None, Err(leaf)) => Ok(bindings.leaves[leaf as usize].clone()),
            (None, Ok(bytes)) => device.alloc(bytes).inspect(|new| *slot = Some(new.clone())),
        };
        let mut last_use = vec![0; self.places.len()];
        let numbers = |step: &Step| {
            let number = |arg: &PlanArg| match *arg {
                PlanArg::Buffer(number) => Some(number),
                PlanArg::Scalar(_) => None,
            };
            step.args.iter().filter_map(number).collect::<SmallVec<[u32; 12]>>()
        };
        for (at, step) in self.steps.iter().enumerate() {
            numbers(step).iter().for_each(|&number| last_use[number as usize] = at);
        }
        for (at, step) in self.steps.iter().enumerate() {
            let mut pins: SmallVec<[Pinned; 12]> = SmallVec::new();
            for number in numbers(step) {
                pins.push(buffer(&mut buffers[number as usize], number)?.pin()?);
            }
            let mut pins = pins.iter();
            let args = step.args.iter().map(|arg| match *arg {
                PlanArg::Buffer(_) => {
                    Arg::Buffer(pins.next().expect("invariant: one pin per buffer"), 0)
                }
                PlanArg::Scalar(slot) => Arg::Scalar(bindings.arguments[slot as usize]),
            });
            let args: SmallVec<[Arg<'_, Pinned>; 12]> = args.collect();
            let launch = Launch { program: &step.program, args: &args, after: &[] };
            device.submit(&mut Recording::default(), &[launch])?;
            for number in numbers(step) {
                let temporary = matches!(self.places[number as usize], Place::Temporary(..));
                if temporary && last_use[number as usize] == at {
                    buffers[number as usize] = None;
                }
            }
        }
        let result = |&number: &u32| buffer(&mut buffers[number as usize], number);
        self.outputs.iter().map(result).collect()
    }

    /// The bytes of a buffer that the plan makes, or the slot of a leaf.
    fn bytes(&self, number: u32) -> Result<usize, u32> {
        match self.places[number as usize] {
            Place::Leaf(slot) => Err(slot),
            Place::Output(output) => Ok(self.output_bytes[output as usize]),
            Place::Temporary(_, bytes) => Ok(bytes),
        }
    }
}

/// Pins of all buffers.
fn pinned(buffers: &[Buffer]) -> Result<SmallVec<[Pinned; 16]>> {
    buffers.iter().map(Buffer::pin).collect()
}

/// Numbers of buffers by node.
#[derive(Debug, Default)]
struct Numbers {
    nodes: Vec<NodeId>,
    ids: FxHashMap<NodeId, u32>,
}

impl Numbers {
    fn of(&mut self, id: NodeId) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self.ids.entry(id).or_insert(next);
        if number == next {
            self.nodes.push(id);
        }
        number
    }
}

fn refused(call: &Call) -> Error {
    crate::hal::CompileError {
        kernel: "contract".into(),
        log: format!("the device offered this contraction but refused its epilogue: {call:?}"),
    }
    .into()
}
