//! Plans: everything that can be decided about a graph before its data is known.
//!
//! A plan is plain data: steps with programs and argument proxies, explicit dependencies, and
//! places for buffers. It depends only on the structure of the graph and the device, so a second
//! step of a training loop finds it by the graph's hash and only binds leaves and scalars.

use super::contract;
use super::dependencies::{self, dependencies};
use super::donate::{self, Donation};
use super::item::{self, Fusion, Launch, Launches, ScheduleItem, storage};
use super::lower::Var;
use super::memory::{self, Lifetime};
use super::plan_cache::PlanCache;
use crate::error::{Error, Result};
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Arg, Call, DeviceError, Recording, Watch};
use crate::runtime::{Device, Pinned, Program};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

/// Where the buffer of a stored node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The leaf in this slot.
    Leaf(u32),
    /// An output in the memory of the leaf in this slot, which nobody needs any more.
    Donated(u32),
    /// The output allocated under this number.
    Output(u32),
    /// At this offset of the arena, so many bytes.
    Temporary(usize, usize),
}

/// An argument of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum PlanArg {
    /// The buffer with this number.
    Buffer(u32),
    /// The same from so many times `bytes` bytes on as the graph's argument in this slot says.
    From { number: u32, slot: u32, bytes: u32 },
    /// The graph's scalar argument in this slot.
    Scalar(u32),
    /// The bits of a scalar that is the same in every run.
    Known(u64),
}

impl PlanArg {
    /// The number of the buffer that it is.
    pub(super) fn buffer(&self) -> Option<u32> {
        match *self {
            PlanArg::Buffer(number) | PlanArg::From { number, .. } => Some(number),
            PlanArg::Scalar(_) | PlanArg::Known(_) => None,
        }
    }

    /// What a launch is given, with the graph's arguments and where a buffer is.
    pub(super) fn value<'a>(
        &self,
        arguments: &[u64],
        locate: impl FnOnce(u32) -> (&'a Pinned, usize),
    ) -> Arg<'a, Pinned> {
        let (number, start) = match *self {
            PlanArg::Buffer(number) => (number, 0),
            PlanArg::From { number, slot, bytes } => {
                (number, arguments[slot as usize] as usize * bytes as usize)
            }
            PlanArg::Scalar(slot) => return Arg::Scalar(arguments[slot as usize]),
            PlanArg::Known(bits) => return Arg::Scalar(bits),
        };
        let (buffer, offset) = locate(number);
        Arg::Buffer(buffer, offset + start)
    }
}

/// One launch.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) program: Program,
    pub(super) args: Vec<PlanArg>,
    /// Steps that must be done before this one.
    pub(super) after: Vec<u32>,
}

/// Whether there were earlier plans of a graph that is equal but for sizes: its kernels are those for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sizes {
    #[default]
    One,
    Several,
}

/// A compiled schedule.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What it computes, if it is kept.
    pub(super) graph: Option<Arc<Graph>>,
    /// See [`PlanCache::generation_of_rows`]; that when it was scheduled.
    pub(super) rows: usize,
    pub(super) steps: Vec<Step>,
    pub(super) places: Vec<Place>,
    /// Bytes of the allocated outputs, by number.
    pub(super) output_bytes: Vec<usize>,
    /// For each output of the graph the number of its buffer.
    pub(super) outputs: Vec<u32>,
    pub(super) arena: usize,
    pub(super) temporaries: usize,
    /// Leaves whose memory outputs could have, if it is free then; those it was made for; and those
    /// whose memory outputs have; all ascending.
    pub(super) candidates: Vec<u32>,
    pub(super) dying: Vec<u32>,
    pub(super) donated: Vec<u32>,
    /// Set when the plan turned out to need more memory at once than there is, and what was known
    /// of the memory then.
    pub(super) stepwise: AtomicBool,
    pub(super) crowded: Mutex<Option<Crowded>>,
    /// The plan with a launch for every item, which is the one to run step by step.
    pub(super) apart: OnceLock<Box<Plan>>,
    /// What the device keeps of this plan's launches; taken out while it is in use, so that two
    /// threads that play one plan do not wait for each other.
    pub(super) replay: Mutex<Replay>,
    /// What traces say of its launches.
    #[cfg(feature = "trace")]
    pub(super) about: OnceLock<Vec<crate::runtime::Arguments>>,
}

/// Bytes of a recording for each launch, roughly.
const RECORDED: usize = 256;

/// When a plan had no room to run at once.
#[derive(Debug)]
pub(super) struct Crowded {
    /// See [`Device::demand`].
    pub(super) demand: (u64, u64),
    /// Plays since then.
    pub(super) plays: u32,
}

/// What a plan keeps from one run to the next.
#[derive(Debug, Default)]
pub(super) struct Replay {
    pub(super) recording: Recording,
    /// The programs to run instead of those of the steps, if any were replaced by better ones.
    pub(super) programs: Vec<Program>,
    /// The device's count of replacements when they were looked up.
    pub(super) generation: u64,
}

impl Plan {
    /// Schedules and compiles. Of the leaves whose memory results could have, `dying` tells those
    /// that nobody will hold; it is asked only where there are any.
    pub(crate) fn new(
        graph: &Graph,
        device: &Device,
        joining: Launches,
        sizes: Sizes,
        dying: &mut dyn FnMut(&[u32]) -> Vec<u32>,
    ) -> Result<Plan> {
        Draft::new(graph, device, joining, sizes)?.plan(graph, device, dying)
    }

    /// Bytes of memory, roughly, with what a device keeps of its launches.
    pub(super) fn bytes(&self) -> usize {
        let args = |step: &Step| size_of_val(&*step.args) + size_of_val(&*step.after);
        let steps: usize = self.steps.iter().map(args).sum();
        let each = size_of::<Step>() + size_of::<Program>() + RECORDED;
        let lists = self.output_bytes.len() + self.outputs.len();
        let slots = self.candidates.len() + self.dying.len() + self.donated.len();
        let places = size_of_val(&*self.places) + 8 * lists + 4 * slots;
        size_of::<Plan>() + self.steps.len() * each + steps + places
    }

    /// The bytes of the arena of a graph's temporaries, and the most of them that are live at once.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn arena(graph: &Graph, device: &Device) -> (usize, usize) {
        let split = super::split_reduction::split(graph, device);
        let graph = split.as_ref().unwrap_or(graph);
        let fusions = item::fusions(graph, item::schedule(graph, device).items, device);
        let launches = item::launches(fusions);
        let (mut numbers, lives) = lives(graph, &launches.iter().collect::<Vec<_>>());
        let mut plan = Plan::default();
        plan.place_buffers(graph, device, (&mut numbers, &lives), &[]);
        let places = plan.places.iter().zip(lives);
        let temporaries = places.filter_map(|(place, (first, last))| match *place {
            Place::Temporary(_, bytes) => Some(Lifetime { bytes, first, last }),
            _ => None,
        });
        let temporaries: Vec<Lifetime> = temporaries.collect();
        (plan.arena, memory::most_live(&temporaries, device.caps().offset_align.max(64)))
    }

    /// Decides where each stored node lives.
    fn place_buffers(
        &mut self,
        graph: &Graph,
        device: &Device,
        (numbers, lives): (&mut Numbers, &[(usize, usize)]),
        donations: &[Donation],
    ) {
        for &output in &graph.outputs {
            self.outputs.push(numbers.of(storage(graph, output)));
        }
        let bytes = |id: NodeId| graph.shape(id).numel() * graph.dtype(id).size();
        let donated: FxHashMap<NodeId, u32> =
            donations.iter().map(|donation| (donation.result, donation.slot)).collect();
        let outputs: FxHashSet<u32> = self.outputs.iter().copied().collect();
        let mut temporaries = Vec::new();
        for (number, &id) in numbers.nodes.iter().enumerate() {
            let place = match graph.node(id) {
                Node::Leaf { slot } => Place::Leaf(slot),
                _ if donated.contains_key(&id) => Place::Donated(donated[&id]),
                _ if outputs.contains(&(number as u32)) => {
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
    fn find_dependencies(&mut self, launches: &[&Launch], numbers: &Numbers) {
        // By buffer the last step that writes it.
        let mut writer = vec![usize::MAX; self.places.len()];
        let touched = self.steps.iter().zip(launches).enumerate().map(|(at, (step, launch))| {
            launch.written().for_each(|node| writer[numbers.ids[node.idx()] as usize] = at);
            let buffers = step.args.iter().filter_map(PlanArg::buffer);
            buffers.map(|number| self.touched(number, writer[number as usize] == at)).collect()
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
            Place::Leaf(slot) | Place::Donated(slot) => (2 * slot, 0..1),
            Place::Output(output) => (2 * output + 1, 0..1),
        };
        dependencies::Access { space, bytes, writes }
    }
}

/// What the variants of a plan have in common: all but the last launch, which results take memory in.
#[derive(Debug)]
pub(super) struct Draft {
    /// The graph with long reductions in pieces, if it has any.
    split: Option<Graph>,
    /// See [`PlanCache::generation_of_rows`]; that before it was scheduled.
    pub(super) rows: usize,
    sizes: Sizes,
    launches: Vec<Launch>,
    /// The items of the last launch.
    last: Vec<ScheduleItem>,
    candidates: Vec<u32>,
    compiled: OnceLock<Compiled>,
}

/// Programs of launches, and whether they are those of all sizes.
#[derive(Debug)]
struct Compiled {
    programs: Vec<Program>,
    resized: bool,
}

impl Draft {
    /// Schedules a graph.
    ///
    /// # Errors
    /// When the user interrupts.
    pub(super) fn new(
        graph: &Graph,
        device: &Device,
        joining: Launches,
        sizes: Sizes,
    ) -> Result<Draft> {
        let rows = device.attachment::<PlanCache>().generation_of_rows(device);
        let split = super::split_reduction::split(graph, device);
        let own = split.as_ref().unwrap_or(graph);
        let items = device.attachment::<PlanCache>().schedule(own, device, sizes).items;
        if Watch::here().is_stopped() {
            return Err(DeviceError::Interrupted.into());
        }
        let (mut fusions, mut last, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
        match joining {
            Launches::Joint => {
                fusions = item::fusions(own, items, device);
                last = fusions.pop().map(|fusion| fusion.items).unwrap_or_default();
                candidates = donate::candidates(own, &last, device.caps());
            }
            Launches::Single => {
                fusions.extend(items.into_iter().map(|item| Fusion::new(vec![item])));
            }
        }
        let (launches, compiled) = (item::launches(fusions), OnceLock::new());
        Ok(Draft { split, rows, sizes, launches, last, candidates, compiled })
    }

    /// Whether there may be several variants.
    pub(super) fn may_vary(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// The variant for leaves that are `dying`, of those whose memory results could have.
    pub(super) fn plan(
        &self,
        graph: &Graph,
        device: &Device,
        dying: &mut dyn FnMut(&[u32]) -> Vec<u32>,
    ) -> Result<Plan> {
        let graph = self.split.as_ref().unwrap_or(graph);
        let candidates = self.candidates.clone();
        let mut plan = Plan { candidates, rows: self.rows, ..Plan::default() };
        let (mut last, mut donations) = (self.last.clone(), Vec::new());
        if self.may_vary() {
            plan.dying = dying(&plan.candidates);
            donations = donate::donate(graph, &mut last, &plan.dying, device.caps());
        }
        plan.donated = donations.iter().map(|donation| donation.slot).collect();
        plan.donated.sort_unstable();
        let last = item::launches(if last.is_empty() { vec![] } else { vec![Fusion::new(last)] });
        let launches: Vec<&Launch> = self.launches.iter().chain(&last).collect();
        let programs = self.programs(graph, device, &launches)?;
        let (mut numbers, lives) = lives(graph, &launches);
        for (launch, program) in launches.iter().zip(programs) {
            let (nodes, vars) = launch.arguments();
            let mut args = Vec::with_capacity(nodes.len() + vars.len());
            args.extend(nodes.iter().map(|&(node, start)| match (numbers.of(node), start) {
                (number, None) => PlanArg::Buffer(number),
                (number, Some((slot, bytes))) => PlanArg::From { number, slot, bytes },
            }));
            args.extend(vars.iter().map(|&var| match var {
                Var::Argument(slot) => PlanArg::Scalar(slot),
                Var::Known(number) => PlanArg::Known(number as u64),
            }));
            plan.steps.push(Step { program, args, after: Vec::new() });
        }
        // A launch in parts may be refused halfway.
        if plan.steps.last().is_some_and(|step| step.program.parts() > 1) && !donations.is_empty() {
            return self.plan(graph, device, &mut |_| Vec::new());
        }
        plan.place_buffers(graph, device, (&mut numbers, &lives), &donations);
        plan.find_dependencies(&launches, &numbers);
        Ok(plan)
    }

    /// The program of each launch, of which all but the last are those of an earlier variant if there was one.
    fn programs(
        &self,
        graph: &Graph,
        device: &Device,
        launches: &[&Launch],
    ) -> Result<Vec<Program>> {
        if let Some(known) = self.compiled.get() {
            let last = &launches[self.launches.len()..];
            let last = compile(graph, device, last, known.resized)?.programs;
            return Ok(known.programs.iter().cloned().chain(last).collect());
        }
        let made = compile(graph, device, launches, self.sizes == Sizes::Several)?;
        let programs = made.programs[..self.launches.len()].to_vec();
        // Another thread's are as good.
        let _ = self.compiled.set(Compiled { programs, resized: made.resized });
        Ok(made.programs)
    }
}

/// The programs of launches; `resized` if they have to be those of all sizes.
fn compile(
    graph: &Graph,
    device: &Device,
    launches: &[&Launch],
    resized: bool,
) -> Result<Compiled> {
    // Kernels by their addresses: equal groups share theirs.
    let (mut kernels, mut numbers) = (Vec::new(), FxHashMap::default());
    for launch in launches {
        if let Launch::Item(ScheduleItem::Kernel(lowered)) = launch
            && !numbers.contains_key(&Arc::as_ptr(&lowered.kernel))
        {
            device.offer(&lowered.kernel, || contract::call_of(graph, lowered, device.caps()));
            numbers.insert(Arc::as_ptr(&lowered.kernel), kernels.len());
            kernels.push(&*lowered.kernel);
        }
    }
    let resized = resized || device.are_served(&kernels);
    let compiled = match resized {
        true => device.general_programs(&kernels)?,
        false => device.programs_by_places(&kernels)?,
    };
    let is_raw = |call: &&Call| matches!(call, Call::Raw(_));
    let calls = launches.iter().filter_map(|launch| launch.call());
    let calls: Vec<&Call> = calls.filter(|call| !is_raw(call)).collect();
    let made = match resized {
        true => device.general_libraries(&calls),
        false => device.libraries(&calls),
    };
    let mut made = made.into_iter();
    let program = |launch: &&Launch| match launch {
        Launch::Item(ScheduleItem::Kernel(lowered)) => {
            Ok(compiled[numbers[&Arc::as_ptr(&lowered.kernel)]].clone())
        }
        Launch::Item(ScheduleItem::Call { call, .. }) | Launch::Fused { call, .. } => {
            if let Call::Raw(kernel) = &**call {
                return device.raw_program(kernel);
            }
            made.next().flatten().ok_or_else(|| refused(call))
        }
    };
    let programs = launches.iter().map(program).collect::<Result<_>>()?;
    Ok(Compiled { programs, resized })
}

/// The buffers that launches use, and for each the first and the last launch that does.
fn lives(graph: &Graph, launches: &[&Launch]) -> (Numbers, Vec<(usize, usize)>) {
    let mut numbers = Numbers { nodes: Vec::new(), ids: vec![u32::MAX; graph.len()] };
    let mut lives: Vec<(usize, usize)> = Vec::new();
    for (step, launch) in launches.iter().enumerate() {
        for (node, _) in launch.arguments().0 {
            let number = numbers.of(node) as usize;
            if lives.len() <= number {
                lives.push((step, step));
            }
            lives[number].1 = step;
        }
    }
    (numbers, lives)
}

/// Numbers of buffers by node.
#[derive(Debug)]
struct Numbers {
    nodes: Vec<NodeId>,
    /// By node; the largest number if it is no buffer.
    ids: Vec<u32>,
}

impl Numbers {
    fn of(&mut self, id: NodeId) -> u32 {
        let number = &mut self.ids[id.idx()];
        if *number == u32::MAX {
            *number = self.nodes.len() as u32;
            self.nodes.push(id);
        }
        *number
    }
}

fn refused(call: &Call) -> Error {
    crate::hal::CompileError {
        kernel: "contract".into(),
        log: format!("the device offered this contraction but refused its epilogue: {call:?}"),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::capture;
    use crate::ir::generate::Random;
    use crate::{DType, Runtime, Tensor};

    fn plan(outputs: &[&Tensor]) -> Plan {
        let (graph, _) = capture(outputs, 0);
        Plan::new(&graph, outputs[0].device(), Launches::Joint, Sizes::One, &mut |_| Vec::new())
            .unwrap()
    }

    /// The temporaries of a plan, read from its steps.
    fn temporaries(plan: &Plan) -> Vec<Lifetime> {
        let number = |arg: &PlanArg| arg.buffer().map(|number| number as usize);
        let uses = |buffer| {
            let steps = plan.steps.iter().enumerate();
            let used = steps.filter(move |(_, s)| s.args.iter().any(|a| number(a) == Some(buffer)));
            used.map(|(step, _)| step)
        };
        let places = plan.places.iter().enumerate();
        let lives = places.filter_map(|(buffer, place)| match *place {
            Place::Temporary(_, bytes) => {
                let (first, last) = (uses(buffer).min()?, uses(buffer).max()?);
                Some(Lifetime { bytes, first, last })
            }
            _ => None,
        });
        lives.collect()
    }

    /// A graph in which values are stored, used soon or late, and differ in size by hundreds.
    fn random_graph(seed: u64, device: &Device) -> Tensor {
        let mut random = Random::new(seed);
        let rows = [1, 3, 16, 40, 100, 300];
        let mut values: Vec<Tensor> =
            (0..2).map(|i| Tensor::iota(64 * (i + 1), DType::F32, device).contiguous()).collect();
        for _ in 0..8 + random.below(24) {
            let reach = random.pick(&[1, 2, 2, 3, 12]).min(values.len());
            let x = &values[values.len() - 1 - random.below(reach)];
            let y = &values[values.len() - 1 - random.below(values.len())];
            // A sum is needed before anything of its size can be computed from it: nothing fuses.
            let total = x.sum(..).unwrap().add(y.sum(..).unwrap()).unwrap();
            let n = 64 * random.pick(&rows);
            let next = Tensor::iota(n, DType::F32, device).mul(total.expand([n]).unwrap()).unwrap();
            values.push(next.sin().contiguous());
        }
        let last = &values[values.len() - 1];
        values.iter().fold(last.sum(..).unwrap(), |sum, x| sum.add(x.max(..).unwrap()).unwrap())
    }

    #[test]
    fn plans_of_random_graphs_hold_hardly_more_than_what_is_live() {
        let device = Runtime::default().device("reference").unwrap();
        let mut stored = 0;
        for seed in 0..50 {
            let plan = plan(&[&random_graph(seed, &device)]);
            let lives = temporaries(&plan);
            let live = memory::most_live(&lives, device.caps().offset_align.max(64));
            let percent = 100.0 * plan.arena as f64 / live as f64;
            assert!(live <= plan.arena, "seed {seed}: {} cannot hold {live}", plan.arena);
            assert!(percent <= 105.0, "seed {seed}: {percent:.1} per cent of {live}: {lives:?}");
            stored += lives.len();
        }
        assert!(stored > 50 * 8, "graphs of {stored} temporaries in all show nothing");
    }

    #[test]
    fn a_hundred_products_take_turns_in_two_places() {
        let device = Runtime::default().device("reference").unwrap();
        let weight = Tensor::ones([8, 8], DType::F32, &device).contiguous();
        weight.realize().unwrap();
        let product = |x: Tensor, _| x.matmul(&weight).unwrap().contiguous();
        let plan = plan(&[&(0..100).fold(weight.clone(), product)]);
        assert!(plan.steps.len() >= 100, "{} steps", plan.steps.len());
        assert_eq!((plan.temporaries, plan.arena), (2, 2 * 256));
    }
}
