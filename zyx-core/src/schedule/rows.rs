//! Rows of programs: user kernels that compute operations of a graph in the place of what the scheduler makes.
//!
//! A row is registered at a device. When a graph is planned, [`replace`] asks the rows for each operation, results before
//! their sources, and puts a call of the kernel in the place of the first match. Fusion, plans and
//! explanations see the call of a user kernel.

use super::explain::describe;
use super::plan_cache::PlanCache;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, KernelCall, Node, NodeId, axes_of};
use crate::hal::Caps;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;
use crate::tensor::Kernel;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

/// An operation that is about to be planned, with the operations that it follows from. See
/// [`Device::register_row`].
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    graph: &'a Graph,
    id: NodeId,
}

type Applies = dyn for<'a> Fn(&Operation<'a>, &Caps) -> Option<Vec<Operation<'a>>> + Send + Sync;

type CallFor =
    dyn Fn(&Device, &[(DType, Shape)], (DType, &Shape)) -> Result<KernelCall> + Send + Sync;

/// A registered kernel, by what calls it: programs that register none are not linked with the language.
pub(super) struct Row {
    name: String,
    call_for: Box<CallFor>,
    applies: Box<Applies>,
}

/// The rows of a device.
pub(super) type Rows = Arc<[Arc<Row>]>;

impl Row {
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

impl<'a> Operation<'a> {
    /// The name, as [`Tensor::explain`](crate::Tensor::explain) prints it: `exp`, `add`, `reduce max over 1`,
    /// `scan add along 0`, `input`.
    pub fn name(&self) -> String {
        describe(self.graph, self.id)
    }

    /// The dtype of the result.
    pub fn dtype(&self) -> DType {
        self.graph.dtype(self.id)
    }

    /// The shape of the result. Axes of a reduction are still there, with one element.
    pub fn shape(&self) -> &'a Shape {
        self.graph.shape(self.id)
    }

    /// The operations that it is computed from.
    pub fn inputs(&self) -> Vec<Operation<'a>> {
        let graph = self.graph;
        graph.node(self.id).sources().map(|id| Operation { graph, id }).collect()
    }

    /// The axes of a reduction, or the axis of a scan; of other operations none.
    pub fn axes(&self) -> Vec<usize> {
        match self.graph.node(self.id) {
            Node::Reduce { axes, .. } => axes_of(axes).collect(),
            Node::Scan { axis, .. } | Node::Recurrence { axis, .. } => vec![axis.into()],
            _ => Vec::new(),
        }
    }

    /// The number that a literal is.
    pub fn literal(&self) -> Option<Scalar> {
        let Node::Const { bits } = self.graph.node(self.id) else { return None };
        Some(Scalar::from_bits(self.dtype(), bits))
    }
}

/// Equal if they are one operation of one graph.
impl PartialEq for Operation<'_> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.graph, other.graph) && self.id == other.id
    }
}

impl fmt::Debug for Operation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.name(), self.dtype(), self.shape())
    }
}

impl Device {
    /// From now on plans of this device compute an operation by this kernel where `applies` gives the kernel's inputs. It may
    /// look at the operations that the result follows from, so a row can stand for several of them. Earlier plans
    /// are dropped. Of several rows the first that applies is taken; [`Tensor::explain`](crate::Tensor::explain) names the kernel.
    ///
    /// The kernel has one output, of the dtype and shape of the operation. Otherwise, and where recording the
    /// kernel for these inputs fails, a warning is logged and the operation is computed as without the row. Gradients are those of the
    /// operation. `applies` runs while a plan is made, so it must not compute tensors.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang, Operation};
    /// let cube = Kernel::new("cube", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n]);
    ///     let y = k.output("y", [n], x.dtype());
    ///     k.each(n, |i| y.set(i, x.at(i) * x.at(i) * x.at(i)));
    /// });
    /// # let device = zyx::runtime().device("reference")?;
    /// device.register_row(&cube, |result, _| {
    ///     let [square, x] = result.inputs()[..] else { return None };
    ///     let is_product = |of: &Operation| of.name() == "mul" && of.shape().rank() == 1;
    ///     (is_product(result) && is_product(&square) && square.inputs() == [x, x]).then(|| vec![x])
    /// })?;
    /// let x = Tensor::new([2f32, 3.0], &device)?;
    /// let y = &(&x * &x) * &x;
    /// assert!(y.explain()?.to_string().contains("kernel cube"));
    /// assert_eq!(y.to_vec::<f32>()?, [8.0, 27.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Argument`] when another row of the device has the kernel's name, or the kernel is a function of elements.
    #[track_caller]
    pub fn register_row(
        &self,
        kernel: &Kernel,
        applies: impl for<'a> Fn(&Operation<'a>, &Caps) -> Option<Vec<Operation<'a>>>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        let (op, location) = ("register_row", Location::caller());
        let error = |reason: &str| {
            let reason = format!("kernel `{}`: {reason}", kernel.name());
            Err(Error::Argument { op, reason, location })
        };
        if kernel.is_elementwise() {
            return error("functions of elements are operations of tensors: use `Kernel::new`");
        }
        let (name, kernel) = (kernel.name().to_owned(), kernel.clone());
        let call_for =
            Box::new(move |device: &Device, inputs: &[(DType, Shape)], result: (DType, &Shape)| {
                kernel.call_for(device, inputs, result)
            });
        let row = Row { name, call_for, applies: Box::new(applies) };
        match self.attachment::<PlanCache>().add_row(row) {
            true => Ok(()),
            false => error("another row has this name"),
        }
    }
}

/// A call in the place of an operation, with its inputs.
struct Replacement {
    call: KernelCall,
    inputs: Vec<NodeId>,
}

/// The graph in which kernels of rows compute the operations that these apply to; `None` if none does.
pub(super) fn replace(graph: &Graph, device: &Device) -> Option<Graph> {
    let rows = device.attachment::<PlanCache>().rows();
    if rows.is_empty() {
        return None;
    }
    let mut is_needed = vec![false; graph.len()];
    graph.outputs.iter().for_each(|output| is_needed[output.idx()] = true);
    let mut replacements: Vec<Option<Replacement>> = graph.ids().map(|_| None).collect();
    for id in graph.ids().rev() {
        let node = graph.node(id);
        if matches!(node, Node::Leaf { .. } | Node::Argument { .. }) {
            is_needed[id.idx()] = true;
        } else if is_needed[id.idx()] {
            let found = rows.iter().find_map(|row| matched(row, graph, id, device));
            match &found {
                Some(found) => found.inputs.iter().for_each(|x| is_needed[x.idx()] = true),
                None => node.sources().for_each(|x| is_needed[x.idx()] = true),
            }
            replacements[id.idx()] = found;
        }
    }
    replacements.iter().find(|replacement| replacement.is_some())?;
    let mut new = graph.without_nodes();
    let mut map = vec![NodeId(0); graph.len()];
    for id in graph.ids().filter(|id| is_needed[id.idx()]) {
        new.origins.hand_on(&graph.origins, id);
        let node = match replacements[id.idx()].take() {
            Some(Replacement { call, inputs }) => {
                let inputs: Vec<NodeId> = inputs.iter().map(|x| map[x.idx()]).collect();
                new.call(call, &inputs)
            }
            None => graph.node(id).map(|x| map[x.idx()]),
        };
        map[id.idx()] = new.push(node, graph.dtype(id), graph.shape(id).clone());
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// The call of a row's kernel for an operation, if the row applies to it.
fn matched(row: &Row, graph: &Graph, id: NodeId, device: &Device) -> Option<Replacement> {
    let node = graph.node(id);
    if matches!(node, Node::Const { .. } | Node::Kernel { .. } | Node::Operands { .. }) {
        return None;
    }
    let inputs = (row.applies)(&Operation { graph, id }, device.caps())?;
    let shapes: Vec<(DType, Shape)> =
        inputs.iter().map(|x| (x.dtype(), x.shape().clone())).collect();
    let is_earlier = |x: &Operation<'_>| std::ptr::eq(x.graph, graph) && x.id < id;
    let is_empty = |shape: &Shape| shape.numel() == 0;
    if shapes.iter().any(|x| is_empty(&x.1)) || is_empty(graph.shape(id)) {
        return None;
    }
    let call = match inputs.is_empty() || !inputs.iter().all(is_earlier) {
        true => Err("its inputs are not those of the operation".to_owned()),
        false => (row.call_for)(device, &shapes, (graph.dtype(id), graph.shape(id)))
            .map_err(|error| error.to_string()),
    };
    let warn = |reason: &String| {
        log::warn!(target: "zyx::rows", "row `{}` does not apply: {reason}", row.name());
    };
    let call = call.inspect_err(warn).ok()?;
    Some(Replacement { call, inputs: inputs.iter().map(|x| x.id).collect() })
}
