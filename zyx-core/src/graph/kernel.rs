//! Calls of user kernels, as operations of a graph.
//!
//! A node is one output of a call. [`number_calls`] puts the outputs of each call beside each other, those that nobody
//! asked for and scratch included, so that the strategy finds the buffer of each argument.

use super::{Graph, Node, NodeId};
use crate::dtype::DType;
use crate::hal::RawKernel;
use crate::ir::interp::{Binding, Fault, InterpError, Options, Program, Step};
use crate::lang::{Argument, Fill, LangError, Recorded, Role, Site};
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One output of a kernel at given sizes.
#[derive(Clone, Debug)]
pub(crate) struct KernelCall {
    pub(crate) recorded: Arc<Recorded>,
    /// The numbers that scalars are, by slot.
    pub(crate) scalars: Arc<[i64]>,
    /// The arguments of the graph that further scalars are.
    pub(crate) arguments: Vec<u32>,
    /// Which of the arguments that are no inputs.
    pub(crate) output: usize,
    /// What runs instead, where the device has its language.
    pub(crate) raw: Option<Arc<RawCall>>,
}

/// A kernel in the language of one backend, with the scalars of its launch.
#[derive(Debug, PartialEq)]
pub(crate) struct RawCall {
    pub(crate) kernel: RawKernel,
    pub(crate) scalars: Vec<u64>,
}

impl PartialEq for KernelCall {
    fn eq(&self, other: &KernelCall) -> bool {
        let same = Arc::ptr_eq(&self.recorded, &other.recorded)
            || self.recorded.kernel() == other.recorded.kernel()
                && self.recorded.kernel().name() == other.recorded.kernel().name()
                && self.recorded.arguments() == other.recorded.arguments();
        same && self.output == other.output
            && self.scalars == other.scalars
            && self.arguments == other.arguments
            && self.raw == other.raw
    }
}

impl KernelCall {
    /// The arguments that are inputs, and those that are not, each with its slot.
    pub(crate) fn arguments(&self, inputs: bool) -> impl Iterator<Item = (usize, &Argument)> {
        let arguments = self.recorded.arguments().iter().enumerate();
        arguments.filter(move |(_, argument)| (argument.role == Role::Input) == inputs)
    }

    /// The call of `recorded`, which is this kernel for several examples, for so many; `None` if they are too many.
    pub(crate) fn batched(&self, recorded: Arc<Recorded>, n: usize) -> Option<KernelCall> {
        let most = recorded.kernel().vars().last()?.max;
        if self.raw.is_some() || n == 0 || n as i64 > most {
            return None;
        }
        let scalars = self.scalars.iter().copied().chain([n as i64]).collect();
        let call = KernelCall { recorded, scalars, ..self.clone() };
        let params = call.recorded.kernel().params().iter().enumerate();
        let fits =
            params.into_iter().all(|(slot, info)| call.shape(slot).numel() as u64 <= info.len);
        fits.then_some(call)
    }

    /// Sources of its node.
    pub(crate) fn sources(&self) -> u8 {
        self.arguments(true).take(2).count() as u8
    }

    /// The name of the kernel.
    pub(crate) fn name(&self) -> &str {
        self.recorded.kernel().name()
    }

    /// The extents of the argument in a slot.
    pub(crate) fn shape(&self, slot: usize) -> Shape {
        let info = self.recorded.kernel().params()[slot];
        let rank = self.recorded.arguments()[slot].shape.len();
        let slots = info.extents.iter().flat_map(|extents| extents.slots().collect::<Vec<_>>());
        let dims = slots.take(rank).map(|slot| self.scalars[usize::from(slot)] as usize);
        Shape::from(&dims.collect::<Vec<_>>()[..])
    }

    /// Runs the kernel in the interpreter, which looks at each access, in an order of threads that the seed says; gives the
    /// bytes of all arguments.
    pub(crate) fn interpret(
        &self,
        inputs: &[Vec<u8>],
        seed: Option<u64>,
    ) -> Result<Vec<Vec<u8>>, LangError> {
        self.interpret_by(inputs, seed, |program, buffers, params, scalars, options| {
            program.run(buffers, params, scalars, options)
        })
        .map(|(buffers, ())| buffers)
    }

    /// The steps of a thread in the interpreter, until the end or a mistake, at the lines of the program.
    pub(crate) fn trace(
        &self,
        inputs: &[Vec<u8>],
        at: &[i64],
    ) -> Result<Vec<(Site, Step)>, LangError> {
        let (_, steps) =
            self.interpret_by(inputs, None, |program, buffers, params, scalars, options| {
                Ok(program.trace(buffers, params, scalars, options, (at, MAX_TRACED_STEPS)).0)
            })?;
        let site = |step: Step| Some((self.recorded.site(step.value)?.clone(), step));
        Ok(steps.into_iter().filter_map(site).collect())
    }

    fn interpret_by<T>(
        &self,
        inputs: &[Vec<u8>],
        seed: Option<u64>,
        run: impl FnOnce(
            &Program,
            &mut [&mut [u8]],
            &[Binding],
            &[u64],
            &Options,
        ) -> Result<T, InterpError>,
    ) -> Result<(Vec<Vec<u8>>, T), LangError> {
        let mut inputs = inputs.iter();
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for (slot, argument) in self.recorded.arguments().iter().enumerate() {
            let (n, size) = (self.shape(slot).numel(), argument.dtype.size());
            let input = |number: usize| self.arguments(true).nth(number).map(|x| x.0);
            let filled = match argument.role {
                Role::Input => inputs.next().cloned(),
                Role::Output | Role::Scratch | Role::Cut => Some(vec![0; n * size]),
                Role::Filled(Fill::Scalar(bits)) => Some(bits.to_le_bytes()[..size].repeat(n)),
                Role::Filled(Fill::Input(number)) => {
                    input(number).map(|slot| buffers[slot].clone())
                }
            };
            buffers.push(filled.unwrap_or_default());
        }
        let kernel = self.recorded.checked();
        let params: Vec<Binding> =
            (0..buffers.len()).map(|buffer| Binding { buffer, offset: 0 }).collect();
        let scalars: Vec<u64> = self.scalars.iter().map(|&x| x as u64).collect();
        let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let (max_iterations, patience) = (MAX_ITERATIONS, MAX_WAITING_ITERATIONS);
        let options = Options { shuffle: seed, max_iterations, patience, ..Options::default() };
        let result = Program::new(kernel)
            .map_err(InterpError::from)
            .and_then(|program| run(&program, &mut slices, &params, &scalars, &options));
        match result {
            Ok(result) => Ok((buffers, result)),
            Err(error) => Err(self.fault(&error)),
        }
    }

    /// What went wrong in the interpreter, at a line of the program.
    fn fault(&self, error: &InterpError) -> LangError {
        let none = || Site { file: "unknown".into(), line: 0 };
        let kernel = self.name().to_owned();
        let InterpError::Fault { value, fault, at, .. } = error else {
            return LangError { kernel, reason: error.to_string(), site: none() };
        };
        let site = |value| self.recorded.site(value).cloned().unwrap_or_else(none);
        let reason = match fault {
            Fault::OutOfBounds { index: -1, .. } => {
                "a coordinate is outside of the array or tile".to_owned()
            }
            Fault::Race { index, earlier } => format!(
                "threads that nothing orders access element {index}, and one of them stores it (the other access is at {})",
                site(*earlier)
            ),
            Fault::StoredTwice { index, earlier } => {
                format!(
                    "element {index} of an output is stored twice (first at {})",
                    site(*earlier)
                )
            }
            Fault::Endless { limit } => format!("no end after {limit} iterations of loops"),
            fault => fault.to_string(),
        };
        let counters: Vec<String> = at.iter().map(|(_, counter)| counter.to_string()).collect();
        let reason = match counters.is_empty() {
            true => reason,
            false => {
                format!("{reason}; counters of loops, outermost first: {}", counters.join(", "))
            }
        };
        LangError { kernel, reason, site: site(*value) }
    }
}

/// Iterations of all loops of a kernel after which the interpreter gives it up.
const MAX_ITERATIONS: u64 = 1 << 32;

/// Iterations of a loop that waits for a condition after which the interpreter gives the kernel up: a thousandth of all, since
/// a wait without end is the usual mistake.
const MAX_WAITING_ITERATIONS: u64 = MAX_ITERATIONS >> 10;

/// Operations of a trace. Each has its text and result, some 200 bytes, so a trace takes at most some 13 MB.
const MAX_TRACED_STEPS: usize = 1 << 16;

/// The graph in which outputs of each call stand beside each other, with all that a launch writes; `None` if it calls no
/// kernel.
pub(crate) fn number_calls(graph: &Graph) -> Option<Graph> {
    graph.ids().find(|&id| matches!(graph.node(id), Node::Kernel { .. }))?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    let mut known: FxHashMap<(u32, Vec<NodeId>), NodeId> = FxHashMap::default();
    for id in graph.ids() {
        new.origins.hand_on(&graph.origins, id);
        let node = graph.node(id).map(|source| map[source.idx()]);
        let (dtype, shape) = (graph.dtype(id), graph.shape(id).clone());
        let Node::Kernel { n, call, x, y } = node else {
            map.push(new.push(node, dtype, shape));
            continue;
        };
        let of = new.calls[call as usize].clone();
        let first = KernelCall { output: 0, ..(*of).clone() };
        let number = new.number_of(first);
        let sources = graph.inputs_of_kernel(id).iter().map(|source| map[source.idx()]).collect();
        let base = match known.get(&(number, sources)) {
            Some(&base) => base,
            None => {
                let sources = graph.inputs_of_kernel(id);
                let sources = sources.iter().map(|source| map[source.idx()]).collect();
                let base = NodeId(new.len() as u32);
                known.insert((number, sources), base);
                let arguments: Vec<(usize, DType)> =
                    of.arguments(false).map(|(slot, argument)| (slot, argument.dtype)).collect();
                for (output, (slot, dtype)) in arguments.into_iter().enumerate() {
                    let shape = of.shape(slot);
                    let call = new.number_of(KernelCall { output, ..(*of).clone() });
                    new.push(Node::Kernel { n, call, x, y }, dtype, shape);
                }
                base
            }
        };
        map.push(NodeId(base.0 + of.output as u32));
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

impl Graph {
    /// The number of a call.
    fn number_of(&mut self, call: KernelCall) -> u32 {
        let known = self.calls.iter().position(|known| **known == call);
        known.unwrap_or_else(|| {
            self.calls.push(Arc::new(call));
            self.calls.len() - 1
        }) as u32
    }

    /// The node of a call with these inputs: of more than two, the second source lists the others.
    pub(crate) fn call(&mut self, call: KernelCall, inputs: &[NodeId]) -> Node {
        let (n, call) = (call.sources(), self.number_of(call));
        let x = inputs[0];
        let y = match inputs[1..] {
            [] => x,
            [y] => y,
            _ => self.listed(&inputs[1..]),
        };
        Node::Kernel { n, call, x, y }
    }

    /// A list of inputs: of more than three, the third source is a list.
    fn listed(&mut self, inputs: &[NodeId]) -> NodeId {
        let [x, y] = [inputs[0], inputs[1]];
        let (n, z) = match inputs[2..] {
            [] => (2, y),
            [z] => (3, z),
            _ => (3, self.listed(&inputs[2..])),
        };
        self.push(Node::Operands { n, x, y, z }, DType::F32, Shape::scalar())
    }

    /// The call of a kernel node.
    pub(crate) fn call_of(&self, id: NodeId) -> Option<&KernelCall> {
        let Node::Kernel { call, .. } = self.node(id) else { return None };
        Some(&self.calls[call as usize])
    }

    /// The call of a kernel node, and the first node of its launch, where [`number_calls`] put its outputs beside each other.
    pub(crate) fn kernel_call(&self, id: NodeId) -> Option<(&KernelCall, NodeId)> {
        let call = self.call_of(id)?;
        Some((call, NodeId(id.0 - call.output as u32)))
    }
}
