//! What computing a tensor takes or took, in words: launches, what each fuses, and why values lie
//! between them.
//!
//! Nothing is recorded while programs run. Scheduling is a function of the graph, so it is done
//! again, and the partition tells its reasons. Times are those of the device's profile, if one is
//! kept; what they could have been follows from two speeds measured on the device itself, of
//! copying and of multiplying matrices.

use super::floor;
use super::horizontal_fusion::Joined;
use super::item::{Launch, ScheduleItem, Scheduled, fusions, schedule};
use super::partition::{Kind, Partition};
use crate::clock::Instant;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, Node, NodeId, axes_of};
use crate::hal::Call;
use crate::ir::Access;
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::time::Duration;

/// The launches that compute some values; see [`Tensor::explain`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Explanation {
    /// The device they run on.
    pub device: String,
    /// The launches, in order.
    pub launches: Vec<LaunchNote>,
    /// Speeds of the device, measured when its profile is on.
    pub speeds: Option<Speeds>,
    /// The least time for what is computed, estimated from the device's capabilities: every input is
    /// read once, every output written once, every operation done once.
    pub least: Duration,
}

impl Explanation {
    /// The sum of the times that the launches are predicted to take.
    pub fn predicted(&self) -> Duration {
        self.launches.iter().map(|launch| launch.predicted).sum()
    }
}

/// What bounds every kernel of a device, measured on it.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Speeds {
    /// Bytes a second of reading one large array and writing another.
    pub bytes: f64,
    /// Operations a second (two for each multiply-add) of a large matrix product in `f32`.
    pub operations: f64,
}

/// One launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LaunchNote {
    /// The name of its program, as in the device's profile.
    pub name: String,
    /// The computations in it, which do not wait for one another.
    pub kernels: Vec<KernelNote>,
    /// Mean time of a launch of this name, if the device's profile is on and has it.
    pub time: Option<Duration>,
    /// The least time by the device's speeds, divided by `time`: 1 is as fast as can be.
    pub roofline: Option<f64>,
    /// The time that it takes by the cost model.
    pub predicted: Duration,
    /// The time that it takes at least: what it accesses is moved once, what it computes is computed at
    /// full speed.
    pub least: Duration,
}

/// One computation of a launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelNote {
    /// Its name.
    pub name: String,
    /// The strategy that made it.
    pub strategy: &'static str,
    /// The operations that are fused in it, each with how often it occurs.
    pub fused: Vec<(String, usize)>,
    /// What it reads.
    pub reads: Vec<ValueNote>,
    /// What it stores.
    pub writes: Vec<ValueNote>,
    /// Operations of a matrix product or convolution, two for each multiply-add; else 0.
    pub operations: f64,
}

/// A value in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValueNote {
    /// The operation that gives it, `input` if it was there before.
    pub op: String,
    /// Its shape.
    pub shape: Shape,
    /// Its dtype.
    pub dtype: DType,
    /// The number of the launch that stores it; `None` if it was there before.
    pub launch: Option<usize>,
    /// Why it is stored instead of being computed where it is used; `None` for inputs.
    pub reason: Option<String>,
}

impl ValueNote {
    /// How much memory it takes.
    pub fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }
}

/// Explains the plan of a graph.
pub(crate) fn explain(graph: &Graph, device: &Device) -> Result<Explanation> {
    let least = nanoseconds(floor::least(graph, device.caps()));
    let split = super::split_reduction::split(graph, device);
    let graph = split.as_ref().unwrap_or(graph);
    let speeds = if device.is_profiling() { Some(measure(device)?) } else { None };
    let Scheduled { partition, items, groups, strategies } = schedule(graph, device);
    let mut explainer = Explainer { graph, partition, writers: FxHashMap::default() };
    let accesses: Vec<Vec<(NodeId, Access)>> = items.iter().map(ScheduleItem::accesses).collect();
    let calls: Vec<(String, f64)> = items.iter().map(name_of).collect();
    let profile = device.profile();
    let (mut launches, mut joined) = (Vec::new(), Joined::default());
    for (number, fusion) in fusions(graph, items, device).into_iter().enumerate() {
        let (launch, members) = (Launch::of(fusion.items, &mut joined), &fusion.numbers);
        for &item in members {
            let written = accesses[item].iter().filter(|a| a.1 != Access::Read);
            explainer.writers.extend(written.map(|a| (a.0, number)));
        }
        let kernels: Vec<KernelNote> = members
            .iter()
            .map(|&item| {
                explainer.kernel(&calls[item], (groups[item], strategies[item]), &accesses[item])
            })
            .collect();
        let name = launch.name();
        let predicted = nanoseconds(floor::predict(graph, &launch, device.caps()));
        let row = profile.iter().find(|row| *row.name == *name && row.launches > 0);
        let time = row.map(|row| row.time / row.launches as u32);
        let roofline = speeds
            .zip(time)
            .map(|(speeds, time)| least_seconds(&kernels, speeds) / time.as_secs_f64().max(1e-9));
        let least = nanoseconds(floor::least_of_unit(graph, &launch, device.caps()));
        launches.push(LaunchNote { name, kernels, time, roofline, predicted, least });
    }
    Ok(Explanation { device: device.spec().to_owned(), launches, speeds, least })
}

fn nanoseconds(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns * 1e-9).unwrap_or(Duration::MAX)
}

/// The name of an item, and the operations of a contraction.
fn name_of(item: &ScheduleItem) -> (String, f64) {
    match item {
        ScheduleItem::Kernel(lowered) => (lowered.kernel.name().to_owned(), 0.0),
        ScheduleItem::Call { call, .. } => {
            let operations = match &**call {
                Call::Contract { spec, .. } => 2.0 * floor::multiplications(spec),
                Call::Convolve(spec) => 2.0 * spec.multiplications(),
                Call::Attend(spec) => 2.0 * spec.multiplications(),
                Call::Flash { spec, .. } => 2.0 * spec.multiplications(),
                Call::Fused { .. } => 0.0,
            };
            (call.name(), operations)
        }
    }
}

/// The time that memory, or arithmetic if that is more, needs at least.
fn least_seconds(kernels: &[KernelNote], speeds: Speeds) -> f64 {
    let values = kernels.iter().flat_map(|k| k.reads.iter().chain(&k.writes));
    let bytes: f64 = values.map(|value| value.bytes() as f64).sum();
    let operations: f64 = kernels.iter().map(|k| k.operations).sum();
    (bytes / speeds.bytes).max(operations / speeds.operations)
}

struct Explainer<'a> {
    graph: &'a Graph,
    partition: Partition,
    /// The launch that stores each node.
    writers: FxHashMap<NodeId, usize>,
}

impl Explainer<'_> {
    fn kernel(
        &self,
        (name, operations): &(String, f64),
        (group, strategy): (usize, &'static str),
        accesses: &[(NodeId, Access)],
    ) -> KernelNote {
        let values = |wanted: fn(Access) -> bool| {
            let mut seen = FxHashSet::default();
            let list = accesses.iter().filter(|a| wanted(a.1) && seen.insert(a.0));
            list.map(|a| self.value(a.0)).collect::<Vec<_>>()
        };
        KernelNote {
            name: name.clone(),
            strategy,
            fused: self.fused(group),
            reads: values(|a| a != Access::Write),
            writes: values(|a| a != Access::Read),
            operations: *operations,
        }
    }

    fn value(&self, id: NodeId) -> ValueNote {
        ValueNote {
            op: self.op(id),
            shape: self.graph.shape(id).clone(),
            dtype: self.graph.dtype(id),
            launch: self.writers.get(&id).copied(),
            reason: self.partition.reasons.get(&id).map(ToString::to_string),
        }
    }

    /// The operations computed in a group, sources first.
    fn fused(&self, group: usize) -> Vec<(String, usize)> {
        let this = &self.partition.groups[group];
        let product = match &this.kind {
            Kind::Contract(contract) => Some(contract.contraction.node),
            Kind::Flash(flash) => flash.tiles.first().map(|tile| tile.0),
            Kind::Loops | Kind::Scan | Kind::Scatter => None,
        };
        let mut seen: FxHashSet<NodeId> = FxHashSet::default();
        let mut stack: Vec<NodeId> = this.roots.iter().map(|root| root.node).collect();
        if let Kind::Contract(contract) = &this.kind {
            stack.extend(contract.computed.map(|side| contract.contraction.operands[side]));
        }
        while let Some(id) = stack.pop() {
            let elsewhere = self.partition.producer[id.idx()]
                .is_some_and(|producer| producer as usize != group);
            let leaf = matches!(
                self.graph.node(id),
                Node::Leaf { .. } | Node::Const { .. } | Node::Argument { .. }
            );
            if elsewhere || leaf || !seen.insert(id) || product == Some(id) {
                continue;
            }
            stack.extend(self.graph.node(id).sources());
        }
        let mut ids: Vec<NodeId> = seen.into_iter().collect();
        ids.sort_unstable();
        let mut list: Vec<(String, usize)> = Vec::new();
        for id in ids {
            let op = if product == Some(id) { "product".to_owned() } else { self.op(id) };
            match list.iter_mut().find(|entry| entry.0 == op) {
                Some(entry) => entry.1 += 1,
                None => list.push((op, 1)),
            }
        }
        list
    }

    /// What a node does, in a word or two.
    fn op(&self, id: NodeId) -> String {
        let word = match self.graph.node(id) {
            Node::Leaf { .. } => "input",
            Node::Const { .. } | Node::Argument { .. } => "number",
            Node::Iota => "iota",
            Node::Unary { op, .. } => op.name(),
            Node::Binary { op, .. } => op.name(),
            Node::Ternary { op, .. } => op.name(),
            Node::Cast { .. } => return format!("cast to {}", self.graph.dtype(id)),
            Node::Bitcast { .. } => return format!("bitcast to {}", self.graph.dtype(id)),
            Node::Reduce { op, axes, .. } => {
                let axes: Vec<String> = axes_of(axes).map(|axis| axis.to_string()).collect();
                return format!("reduce {} over {}", op.name(), axes.join(", "));
            }
            Node::Recurrence { axis, .. } => return format!("recurrence along {axis}"),
            Node::Scan { op, axis, .. } => return format!("scan {} along {axis}", op.name()),
            Node::Reshape { .. } => "reshape",
            Node::Permute { .. } => "permute",
            Node::Expand { .. } => "expand",
            Node::Pad { .. } => "pad",
            Node::Shrink { .. } => "shrink",
            Node::Flip { .. } => "flip",
            Node::Gather { .. } => "gather",
            Node::Scatter { .. } => "scatter",
            Node::RadixScatter { .. } => "distribute",
            Node::SortRows { .. } => "sort rows",
            Node::Fourier { .. } => "fourier",
            Node::Copy { .. } => "copy",
        };
        word.to_owned()
    }
}

/// Elements copied, and rows of the matrices multiplied, to measure a device.
const COPIED: usize = 1 << 24;
const ROWS: usize = 1024;

/// The speeds of a device, measured once.
fn measure(device: &Device) -> Result<Speeds> {
    let cache = device.attachment::<super::PlanCache>();
    if let Some(&known) = cache.speeds.get() {
        return Ok(known);
    }
    let profile = device.pause_profile();
    let measured = speeds(device);
    device.resume_profile(profile);
    let speeds = measured?;
    Ok(*cache.speeds.get_or_init(|| speeds))
}

fn speeds(device: &Device) -> Result<Speeds> {
    let best = |compute: &dyn Fn() -> Result<Tensor>| -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..4 {
            let result = compute()?;
            device.synchronize()?;
            let start = Instant::now();
            result.realize()?;
            device.synchronize()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(best)
    };
    let x = Tensor::full([COPIED], 1f32, device).contiguous();
    x.realize()?;
    let seconds = best(&|| Ok(x.neg()))?;
    let bytes = 8.0 * COPIED as f64 / seconds;
    let a = Tensor::full([ROWS, ROWS], 1f32, device).contiguous();
    a.realize()?;
    let seconds = best(&|| a.matmul(&a))?;
    Ok(Speeds { bytes, operations: 2.0 * (ROWS as f64).powi(3) / seconds })
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.launches.len() == 1 { "" } else { "es" };
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        write!(f, "{} launch{plural} on {}", self.launches.len(), self.device)?;
        let (predicted, least) = (us(self.predicted()), us(self.least));
        writeln!(f, ", predicted {predicted:.1} us, at least {least:.1} us")?;
        if let Some(speeds) = self.speeds {
            let (bytes, operations) = (speeds.bytes / 1e9, speeds.operations / 1e9);
            writeln!(
                f,
                "measured there: copies {bytes:.1} GB/s, products {operations:.1} GFLOP/s"
            )?;
        }
        self.launches.iter().enumerate().try_for_each(|(number, launch)| launch.write(f, number))
    }
}

impl LaunchNote {
    fn write(&self, f: &mut fmt::Formatter<'_>, number: usize) -> fmt::Result {
        write!(f, "{number}: {}", self.name)?;
        if let Some(time) = self.time {
            write!(f, ", {:.1} us", time.as_secs_f64() * 1e6)?;
        }
        if let Some(roofline) = self.roofline {
            write!(f, ", {:.0} % of what the device can do", 100.0 * roofline)?;
        }
        let [predicted, least] = [self.predicted, self.least].map(|time| time.as_secs_f64() * 1e6);
        writeln!(f, ", predicted {predicted:.1} us, at least {least:.1} us")?;
        self.kernels.iter().try_for_each(|kernel| kernel.write(f))
    }
}

impl KernelNote {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |(op, n): &(String, usize)| {
            if *n == 1 { op.clone() } else { format!("{op} ({n} times)") }
        };
        let fused: Vec<String> = self.fused.iter().map(count).collect();
        writeln!(f, "   {} of {}", self.strategy, fused.join(", "))?;
        for value in &self.reads {
            match value.launch {
                None => writeln!(f, "     reads {value}")?,
                Some(launch) => {
                    let reason = value.reason.as_deref().unwrap_or("it is stored anyway");
                    writeln!(f, "     reads {value} of launch {launch}, not fused: {reason}")?;
                }
            }
        }
        for value in &self.writes {
            let reason = value.reason.as_deref().unwrap_or("the kernel is for it");
            writeln!(f, "     writes {value}: {reason}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ValueNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.op, self.dtype, self.shape)
    }
}
