//! What computing a tensor takes or took, in words: launches, what each fuses, and why values lie
//! between them.
//!
//! Nothing is recorded while programs run. Scheduling is a function of the graph, so it is done
//! again, and the partition tells its reasons. Times are those of the device's profile, if one is
//! kept; what they could have been follows from two speeds measured on the device itself, of
//! copying and of multiplying matrices.

mod dot;
mod source;

use super::floor;
use super::horizontal_fusion::Joined;
use super::item::{Launch, ScheduleItem, Scheduled, fusions, schedule, storage};
use super::partition::{Kind, Partition};
use super::reason::Reason;
use crate::clock::Instant;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Graph, KeptNode, Node, NodeId, axes_of};
use crate::hal::Call;
use crate::ir::Access;
use crate::origin::Place;
use crate::runtime::Device;
use crate::shape::Shape;
use crate::tensor::Tensor;
use rustc_hash::{FxHashMap, FxHashSet};
use source::Sources;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
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
    /// Whether equal computations elsewhere in the program share the plan: lines and names of parameters are those
    /// of the first.
    pub shared: bool,
}

impl Explanation {
    /// The plan as a graph in the DOT language, as Graphviz draws it: a box for each launch, an ellipse for each
    /// input and result, an edge for each value that a launch reads or writes, with dtype, shape and bytes.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let dot = x.cumsum(1)?.exp().explain()?.to_dot();
    /// assert!(dot.starts_with("digraph plan {") && dot.contains("launch0 -> launch1"), "{dot}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn to_dot(&self) -> String {
        dot::of(self)
    }

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

impl LaunchNote {
    /// Bytes of what its kernels read and write, each value once for each kernel.
    pub fn bytes(&self) -> usize {
        self.values().map(ValueNote::bytes).sum()
    }

    /// The operations of its kernels.
    pub fn operations(&self) -> f64 {
        self.kernels.iter().map(|kernel| kernel.operations).sum()
    }

    fn values(&self) -> impl Iterator<Item = &ValueNote> {
        self.kernels.iter().flat_map(|kernel| kernel.reads.iter().chain(&kernel.writes))
    }
}

/// One computation of a launch.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct KernelNote {
    /// Its name.
    pub name: String,
    /// The strategy that made it.
    pub strategy: &'static str,
    /// The passes with their sites that a search found for it, see [`Device::tune`]; empty where those of the heuristic are
    /// the fastest, or no search took place.
    pub tuned: String,
    /// The parameters of a user kernel with the values that it has, as `tile = 64`.
    pub parameters: Vec<String>,
    /// The operations that are fused in it, each with how often it occurs.
    pub fused: Vec<(String, usize)>,
    /// The calls of the program that they come from, in the order in which they are computed, if that is known
    /// (in builds with debug assertions or the feature `lines`).
    pub calls: Vec<CallNote>,
    /// What it reads.
    pub reads: Vec<ValueNote>,
    /// What it stores.
    pub writes: Vec<ValueNote>,
    /// Operations: of a library call two for each multiply-add, of generated code as the cost model counts them, where
    /// what takes as long as several additions counts as several.
    pub operations: f64,
    /// Those of library calls.
    products: f64,
}

/// A call of the program, as far as a kernel computes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallNote {
    /// The elementwise kernel that was called, or the method as it was called, as `gelu` or `fc1.forward`: from the file of
    /// the source, if it is there and not newer than the program.
    pub name: Option<String>,
    /// The line of the program, as `src/main.rs:42`; `None` of operations whose caller is not known.
    pub line: Option<String>,
    /// Whether its gradient is computed.
    pub is_gradient: bool,
    /// The operations that it consists of, each with how often it occurs.
    pub operations: Vec<(String, usize)>,
}

/// A value in memory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ValueNote {
    /// Equal for notes of the same value.
    pub number: usize,
    /// Whether it was asked for, or is a value that was set together with it.
    pub is_result: bool,
    /// The name of a parameter that it is.
    pub parameter: Option<Arc<str>>,
    /// The operation that gives it, `input` if it was there before.
    pub op: String,
    /// The call of the program that gives it, as `gelu`, if that is known.
    pub call: Option<String>,
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

/// Explains the plan of a graph, of whose results some are parameters with names.
pub(crate) fn explain(
    graph: &Graph,
    device: &Device,
    results: &[(usize, Arc<str>)],
) -> Result<Explanation> {
    let speeds = if device.is_profiling() { Some(measure(device)?) } else { None };
    Ok(planned(graph, device, results, speeds))
}

/// What a plan is, with the speeds of the device if they are known.
fn planned(
    graph: &Graph,
    device: &Device,
    results: &[(usize, Arc<str>)],
    speeds: Option<Speeds>,
) -> Explanation {
    let least = nanoseconds(floor::least(graph, device.caps()));
    let kept = &graph.kept;
    let split = super::split_reduction::split(graph, device);
    let graph = split.as_ref().unwrap_or(graph);
    let Scheduled { partition, items, groups, strategies } = schedule(graph, device);
    let mut stored: Vec<NodeId> =
        graph.outputs.iter().map(|&output| storage(graph, output)).collect();
    // The last outputs are those in `kept`.
    let unasked = stored.split_off(stored.len() - kept.len());
    let kept = unasked.into_iter().zip(kept).filter(|(id, _)| !stored.contains(id));
    let kept: FxHashMap<NodeId, KeptNode> = kept.map(|(id, kept)| (id, *kept)).collect();
    let plain = if kept.is_empty() {
        FxHashMap::default()
    } else {
        without_kept(graph, stored.len(), device)
    };
    let reason = |(&id, kept): (&NodeId, &KeptNode)| match plain.get(&id) {
        Some(Reason::Output) | None => (id, kept.to_string()),
        Some(reason) => (id, format!("{reason}; {kept}")),
    };
    let kept: FxHashMap<NodeId, String> = kept.iter().map(reason).collect();
    let mut parameters: FxHashMap<NodeId, Arc<str>> = FxHashMap::default();
    for (output, name) in results {
        parameters.extend(stored.get(*output).map(|&id| (id, name.clone())));
    }
    for id in graph.ids() {
        if let Node::Leaf { slot } = graph.node(id)
            && let Some(Some(name)) = graph.origins.leaves.get(slot as usize)
        {
            parameters.insert(id, name.clone());
        }
    }
    let (results, writers) = (stored.into_iter().collect(), FxHashMap::default());
    let sources = RefCell::default();
    let mut explainer = Explainer { graph, partition, results, kept, parameters, writers, sources };
    let accesses: Vec<Vec<(NodeId, Access)>> = items.iter().map(ScheduleItem::accesses).collect();
    let calls: Vec<(String, [f64; 2])> = items.iter().map(name_of).collect();
    let mut tuned: Vec<Vec<String>> = items.iter().map(|item| tuned_steps(item, device)).collect();
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
                let tuned = std::mem::take(&mut tuned[item]);
                let made_by = (groups[item], strategies[item], tuned);
                explainer.kernel(&calls[item], made_by, &accesses[item])
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
    let shared = graph.origins.varied();
    Explanation { device: device.spec().to_owned(), launches, speeds, least, shared }
}

/// Why each node is stored by the plan of the first `asked` outputs alone, without those kept for the program.
fn without_kept(graph: &Graph, asked: usize, device: &Device) -> FxHashMap<NodeId, Reason> {
    let mut plain = graph.clone();
    plain.outputs.truncate(asked);
    schedule(&plain, device).partition.reasons
}

/// What a trace says of each launch of the plan of a graph, if that has as many launches as are `expected`.
#[cfg(feature = "trace")]
pub(super) fn about_launches(
    graph: &Graph,
    device: &Device,
    expected: usize,
) -> Vec<crate::runtime::Arguments> {
    let launches = planned(graph, device, &[], None).launches;
    let launches = if launches.len() == expected { &*launches } else { &[] };
    launches.iter().map(LaunchNote::arguments).collect()
}

/// How often each word occurs, in the order of the first.
fn count(ids: &[NodeId], word: impl Fn(NodeId) -> String) -> Vec<(String, usize)> {
    let mut list: Vec<(String, usize)> = Vec::new();
    for word in ids.iter().map(|&id| word(id)) {
        match list.iter_mut().find(|entry| entry.0 == word) {
            Some(entry) => entry.1 += 1,
            None => list.push((word, 1)),
        }
    }
    list
}

/// Words with how often they occur, as a sentence has them.
fn counted(list: &[(String, usize)]) -> String {
    let text = |(op, n): &(String, usize)| {
        if *n == 1 { op.clone() } else { format!("{op} ({n} times)") }
    };
    list.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn nanoseconds(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns * 1e-9).unwrap_or(Duration::MAX)
}

/// The name of an item, its operations, and those of a library call.
fn name_of(item: &ScheduleItem) -> (String, [f64; 2]) {
    match item {
        ScheduleItem::Kernel(lowered) => {
            let operations = crate::tune::model::work(&lowered.kernel).1;
            (lowered.kernel.name().to_owned(), [operations, 0.0])
        }
        ScheduleItem::Call { call, .. } => {
            let operations = match &**call {
                Call::Contract { spec, .. } => 2.0 * floor::multiplications(spec),
                Call::Convolve(spec) => 2.0 * spec.multiplications(),
                Call::Attend(spec) => 2.0 * spec.multiplications(),
                Call::Flash { spec, .. } => 2.0 * spec.multiplications(),
                Call::Raw(_) | Call::Fused { .. } => 0.0,
            };
            (call.name(), [operations; 2])
        }
    }
}

/// The steps that searches found for the kernel of an item.
fn tuned_steps(item: &ScheduleItem, device: &Device) -> Vec<String> {
    match item {
        ScheduleItem::Kernel(lowered) => device.tuned_steps(&lowered.kernel),
        ScheduleItem::Call { .. } => Vec::new(),
    }
}

/// The time that memory, or arithmetic if that is more, needs at least.
fn least_seconds(kernels: &[KernelNote], speeds: Speeds) -> f64 {
    let values = kernels.iter().flat_map(|k| k.reads.iter().chain(&k.writes));
    let bytes: f64 = values.map(|value| value.bytes() as f64).sum();
    let operations: f64 = kernels.iter().map(|k| k.products).sum();
    (bytes / speeds.bytes).max(operations / speeds.operations)
}

struct Explainer<'a> {
    graph: &'a Graph,
    partition: Partition,
    /// The nodes that are stored for outputs.
    results: FxHashSet<NodeId>,
    /// The nodes that are stored since the program holds them.
    kept: FxHashMap<NodeId, String>,
    /// The names of parameters.
    parameters: FxHashMap<NodeId, Arc<str>>,
    /// The launch that stores each node.
    writers: FxHashMap<NodeId, usize>,
    sources: RefCell<Sources>,
}

/// The line of a call with whether the operation computes a gradient of it, and the elementwise kernel that was called.
type Called = (Option<(Place, bool)>, Option<&'static str>);

impl Explainer<'_> {
    fn kernel(
        &self,
        (name, [operations, products]): &(String, [f64; 2]),
        (group, strategy, tuned): (usize, &'static str, Vec<String>),
        accesses: &[(NodeId, Access)],
    ) -> KernelNote {
        let values = |wanted: fn(Access) -> bool| {
            let mut seen = FxHashSet::default();
            let list = accesses.iter().filter(|a| wanted(a.1) && seen.insert(a.0));
            list.map(|a| self.value(a.0)).collect::<Vec<_>>()
        };
        let ids = self.computed(group);
        KernelNote {
            name: name.clone(),
            strategy,
            tuned: tuned.join("; "),
            parameters: self.parameters_of(group, name),
            fused: count(&ids, |id| self.op_of(group, id)),
            calls: self.calls(group, &ids),
            reads: values(|a| a != Access::Write),
            writes: values(|a| a != Access::Read),
            operations: *operations,
            products: *products,
        }
    }

    /// The parameters of the user kernel that a group is, but for launches that fill its arguments.
    fn parameters_of(&self, group: usize, name: &str) -> Vec<String> {
        let root = self.partition.groups[group].roots.first();
        let call = root.and_then(|root| self.graph.call_of(root.node));
        let call = call.filter(|call| call.raw.is_none() && call.name() == name);
        let parameters = call.map_or(&[][..], |call| call.recorded.parameters());
        parameters.iter().map(ToString::to_string).collect()
    }

    fn value(&self, id: NodeId) -> ValueNote {
        ValueNote {
            number: id.idx(),
            is_result: self.results.contains(&id),
            parameter: self.parameters.get(&id).cloned(),
            op: self.op(id),
            call: self.call(id),
            shape: self.graph.shape(id).clone(),
            dtype: self.graph.dtype(id),
            launch: self.writers.get(&id).copied(),
            reason: match self.kept.get(&id) {
                Some(reason) => Some(reason.clone()),
                None => self.partition.reasons.get(&id).map(ToString::to_string),
            },
        }
    }

    /// The product of a group, whose parts are no operations of their own.
    fn product(&self, group: usize) -> Option<NodeId> {
        match &self.partition.groups[group].kind {
            Kind::Contract(contract) => Some(contract.contraction.node),
            Kind::Flash(flash) => flash.tiles.first().map(|tile| tile.0),
            Kind::Loops | Kind::Scan | Kind::Scatter => None,
        }
    }

    /// The nodes computed in a group, sources first.
    fn computed(&self, group: usize) -> Vec<NodeId> {
        let (this, product) = (&self.partition.groups[group], self.product(group));
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
        ids
    }

    /// What a node of a group does, in a word or two.
    fn op_of(&self, group: usize, id: NodeId) -> String {
        if self.product(group) == Some(id) { "product".to_owned() } else { self.op(id) }
    }

    /// The calls that nodes of a group come from.
    fn calls(&self, group: usize, ids: &[NodeId]) -> Vec<CallNote> {
        let mut calls: Vec<(Called, Vec<NodeId>)> = Vec::new();
        for &id in ids {
            let called = self.called(id);
            match calls.iter_mut().find(|known| known.0 == called) {
                Some(known) => known.1.push(id),
                None => calls.push((called, vec![id])),
            }
        }
        if calls.iter().all(|((line, _), _)| line.is_none()) {
            return Vec::new();
        }
        let note = |(called, ids): (Called, Vec<NodeId>)| CallNote {
            name: self.name_of(called),
            line: called.0.map(|(place, _)| format!("{}:{}", place.file(), place.line())),
            is_gradient: called.0.is_some_and(|line| line.1),
            operations: count(&ids, |id| self.op_of(group, id)),
        };
        calls.into_iter().map(note).collect()
    }

    fn called(&self, id: NodeId) -> Called {
        let origin = self.graph.origins.of(id);
        (origin.line(), origin.kernel())
    }

    /// The elementwise kernel or the method that was called.
    fn name_of(&self, (line, kernel): Called) -> Option<String> {
        let method = || self.sources.borrow_mut().called(line?.0);
        kernel.map(str::to_owned).or_else(method)
    }

    /// The call that a node comes from.
    fn call(&self, id: NodeId) -> Option<String> {
        let called = self.called(id);
        let (name, (_, gradient)) = (self.name_of(called)?, called.0?);
        Some(if gradient { format!("gradient of {name}") } else { name })
    }

    fn op(&self, id: NodeId) -> String {
        describe(self.graph, id)
    }
}

/// The operation of a node, in a word or two.
pub(super) fn describe(graph: &Graph, id: NodeId) -> String {
    let word = match graph.node(id) {
        Node::Leaf { .. } => "input",
        Node::Const { .. } | Node::Argument { .. } => "number",
        Node::Iota => "iota",
        Node::Unary { op, .. } => op.name(),
        Node::Binary { op, .. } => op.name(),
        Node::Ternary { op, .. } => op.name(),
        Node::Cast { .. } => return format!("cast to {}", graph.dtype(id)),
        Node::Bitcast { .. } => return format!("bitcast to {}", graph.dtype(id)),
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
        Node::Kernel { call, .. } => {
            return format!("kernel {}", graph.calls[call as usize].name());
        }
        Node::Operands { .. } => "operands",
        Node::Fourier { .. } => "fourier",
        Node::Copy { .. } => "copy",
    };
    word.to_owned()
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
    let (profile, traced) = (device.pause_profile(), device.pause_trace());
    let measured = speeds(device);
    device.resume_profile(profile);
    device.resume_trace(traced);
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
        if self.shared {
            writeln!(
                f,
                "lines and parameters of the first of several computations with this plan"
            )?;
        }
        self.launches.iter().enumerate().try_for_each(|(number, launch)| launch.write(f, number))
    }
}

impl LaunchNote {
    #[cfg(feature = "trace")]
    fn arguments(&self) -> crate::runtime::Arguments {
        let mut arguments = crate::runtime::Arguments::default();
        let list = |texts: Vec<String>| texts.join("; ");
        let values = |of: fn(&KernelNote) -> &Vec<ValueNote>| {
            list(self.kernels.iter().flat_map(of).map(ToString::to_string).collect())
        };
        let fused = self.kernels.iter().map(KernelNote::summary).collect();
        arguments.text("computes", &list(fused));
        arguments.text("reads", &values(|kernel| &kernel.reads));
        arguments.text("writes", &values(|kernel| &kernel.writes));
        arguments.number("bytes", self.bytes() as f64);
        arguments.number("operations", self.operations());
        arguments.number("predicted_us", self.predicted.as_secs_f64() * 1e6);
        arguments.number("least_us", self.least.as_secs_f64() * 1e6);
        arguments
    }

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
    /// The strategy and the calls, or operations where those are not known.
    fn summary(&self) -> String {
        if self.calls.is_empty() {
            return format!("{} of {}", self.strategy, counted(&self.fused));
        }
        let mut text = format!("{} of ", self.strategy);
        for (i, call) in self.calls.iter().enumerate() {
            if i > 0 {
                text.push_str(", ");
            }
            text.push_str(&call.what());
            // Calls of one line are named together.
            let next = self.calls.get(i + 1).and_then(|next| next.line.as_ref());
            if let Some(line) = call.line.as_ref().filter(|line| next != Some(*line)) {
                text.push_str(&format!(" at {line}"));
            }
        }
        text
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "   {}", self.summary())?;
        if !self.tuned.is_empty() {
            writeln!(f, "     tuned: {}", self.tuned)?;
        }
        if !self.parameters.is_empty() {
            writeln!(f, "     parameters: {}", self.parameters.join(", "))?;
        }
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

impl CallNote {
    fn what(&self) -> String {
        let name = self.name.clone().unwrap_or_else(|| counted(&self.operations));
        if self.is_gradient { format!("gradient of {name}") } else { name }
    }
}

/// `gelu at src/main.rs:42`, in which a call without a name has its operations.
impl fmt::Display for CallNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        self.line.as_ref().map_or(Ok(()), |line| write!(f, " at {line}"))
    }
}

impl fmt::Display for ValueNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.as_deref().unwrap_or(&self.op);
        let name = self.parameter.as_deref().unwrap_or(call);
        write!(f, "{name} {} {}", self.dtype, self.shape)
    }
}
