//! What a function of tensors computes, as a list of operations: what exporters to other formats read.

use super::{Expr, History, Tensor};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Op, UpdateOrder, axes_of};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The operations of a function of tensors, each after those that it reads.
///
/// Nothing is merged or simplified: a function that does the same for inputs of other extents gives a list that
/// differs in extents alone.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The operations.
    pub steps: Vec<Step>,
    /// The positions of the results among them.
    pub outputs: Vec<usize>,
}

/// An operation with where its operands stand.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is done.
    pub op: StepOp,
    /// The positions of its operands.
    pub sources: Vec<usize>,
    /// Its result, with shape and dtype; it has a value, or can be computed, if it depends on no input.
    pub tensor: Tensor,
}

/// What a [`Step`] does; shape and dtype of its result complete what it says.
///
/// | operation | operands | result |
/// |---|---|---|
/// | `Input` | – | the input of this position |
/// | `Value` | – | a tensor that was computed before: the known one of this position, or another |
/// | `Const` | – | this number everywhere |
/// | `Iota` | – | 0, 1, 2, … along the one axis |
/// | `Unary` `Binary` `Ternary` | 1, 2, 3 of one shape | element by element |
/// | `Cast` `Bitcast` | 1 | the numbers, or their bits, in another dtype |
/// | `Reduce` | 1 | elements combined along axes, which have extent 1 then |
/// | `Scan` | 1 | as far combined along an axis, from its end if `reverse` |
/// | `Recurrence` | x, factor | `y[t] = factor[t] * y[t - 1] + x[t]`, a product with a zero `y[t - 1]` being zero |
/// | `Reshape` | 1 | the elements in row-major order |
/// | `Permute` | 1 | axis `i` is axis `axes[i]` of the operand |
/// | `Expand` | 1 | axes of extent 1 repeated |
/// | `Pad` | 1 | zeros before and after each axis |
/// | `Shrink` | 1 | as many elements as the result has, from these on |
/// | `Flip` | 1 | axes reversed |
/// | `Gather` | x, index | `x[.., index[.., i, ..], ..]`; zero for an index out of range |
/// | `Scatter` | base, index, x | `x[.., i, ..]` combined into or put at `[.., index[.., i, ..], ..]` of the base, not at an index out of range |
/// | `Segments` | base, ends, x | into each place of the base, the elements of x from the end of the place before to its own |
/// | `RadixScatter` `SortRows` `Fourier` | | parts of sorts and transforms |
/// | `Kernel` | inputs | an output of a user kernel; the second operand may be `Operands`, a list of inputs |
/// | `Composite` | as noted | a result of an operator that [`Steps::note`] names |
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table above documents every variant")]
pub enum StepOp {
    Input(usize),
    Value(Option<usize>),
    Const(Scalar),
    Iota,
    Unary(UnaryOp),
    Binary(BinaryOp),
    Ternary(TernaryOp),
    Cast,
    Bitcast,
    Reduce { op: BinaryOp, axes: Vec<usize> },
    Scan { op: BinaryOp, axis: usize, reverse: bool },
    Recurrence { axis: usize, reverse: bool },
    Reshape,
    Permute(Vec<usize>),
    Expand,
    Pad(Vec<(usize, usize)>),
    Shrink(Vec<usize>),
    Flip(Vec<usize>),
    Gather { axis: usize },
    Scatter { axis: usize, op: Option<BinaryOp> },
    Segments { axis: usize, op: BinaryOp },
    RadixScatter,
    SortRows { first: u8, bits: u8 },
    Fourier { inverse: bool, real: bool, done: u32 },
    Kernel { name: String, output: usize },
    Operands,
    Composite { name: &'static str, result: usize },
}

/// Results that are one operator of operands.
struct Note {
    name: &'static str,
    operands: Vec<Tensor>,
    results: Vec<Tensor>,
}

thread_local! {
    /// The notes of the function that this thread traces.
    static NOTES: RefCell<Option<Vec<Note>>> = const { RefCell::new(None) };
}

/// Collects notes until it is dropped; those of a trace around it wait.
struct Listening {
    outer: Option<Vec<Note>>,
}

impl Listening {
    fn start() -> Listening {
        Listening { outer: NOTES.replace(Some(Vec::new())) }
    }

    fn take(&self) -> Vec<Note> {
        NOTES.take().unwrap_or_default()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        NOTES.set(self.outer.take());
    }
}

impl Steps {
    /// Calls a function with tensors of these shapes and dtypes that have no values, and lists what its results are
    /// made of. What only gradients need is left out, and so are moves between devices. Tensors among `known` that
    /// have a value are told from others. Operators that were noted ([`Steps::note`]) are one step if their name is
    /// among `composites`, and the operations that compute them otherwise.
    ///
    /// ```
    /// # use zyx::internals::BinaryOp;
    /// # use zyx::internals::tensor::{StepOp, Steps};
    /// # use zyx::{DType, Shape};
    /// # let device = zyx::runtime().device("reference")?;
    /// let inputs = [(Shape::from([2, 3]), DType::F32)];
    /// let steps = Steps::trace(&inputs, &device, &[], &[], |x| Ok(vec![x[0].sum(1)?]))?;
    /// let sum = |op: &StepOp| matches!(op, StepOp::Reduce { op: BinaryOp::Add, .. });
    /// assert_eq!(steps.steps[0].op, StepOp::Input(0));
    /// assert_eq!(steps.steps.iter().filter(|step| sum(&step.op)).count(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the function fails, asks for a value, or uses a tensor of another function without a value.
    #[track_caller]
    pub fn trace(
        inputs: &[(Shape, DType)],
        device: &Device,
        known: &[Tensor],
        composites: &[&str],
        f: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Steps> {
        let unknown =
            |(shape, dtype): &(Shape, DType)| Tensor::unknown(shape.clone(), *dtype, device, false);
        let inputs: Vec<Tensor> = inputs.iter().map(unknown).collect();
        let listening = Listening::start();
        let outputs = f(&inputs)?;
        let mut listing = Listing { notes: listening.take(), ..Listing::default() };
        listing.notes.retain(|note| composites.contains(&note.name));
        for (i, note) in listing.notes.iter().enumerate() {
            let results = note.results.iter().enumerate();
            listing.noted.extend(results.map(|(result, y)| (y.id(), (i, result))));
        }
        let named = known.iter().enumerate().filter_map(|(i, x)| Some((x.value()?.key(), i)));
        // Of several names of one tensor, the first.
        listing.named = named.rev().collect();
        listing.inputs = inputs.iter().enumerate().map(|(i, x)| (x.id(), i)).collect();
        let outputs = outputs.iter().map(|y| listing.visit(y)).collect::<Result<_>>()?;
        Ok(Steps { steps: listing.steps, outputs })
    }

    /// Notes that `results` are an operator of this name of `operands`, for traces that list it as one step: a layer that
    /// computes a sequence step by step is then the same list for every length. Does nothing unless a function is traced.
    ///
    /// ```
    /// # use zyx::internals::tensor::{StepOp, Steps};
    /// # use zyx::{DType, Result, Shape, Tensor};
    /// fn decay(x: &Tensor) -> Result<Tensor> {
    ///     let y = (0..x.shape()[0]).try_fold(x.clone(), |y, _| y.mul(0.5))?;
    ///     Steps::note("decay", &[x], &[&y]);
    ///     Ok(y)
    /// }
    /// # let device = zyx::runtime().device("reference")?;
    /// let inputs = [(Shape::from([9]), DType::F32)];
    /// let steps = Steps::trace(&inputs, &device, &[], &["decay"], |x| Ok(vec![decay(&x[0])?]))?;
    /// assert_eq!(steps.steps.len(), 2);
    /// assert_eq!(steps.steps[1].op, StepOp::Composite { name: "decay", result: 0 });
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn note(name: &'static str, operands: &[&Tensor], results: &[&Tensor]) {
        let own = |tensors: &[&Tensor]| tensors.iter().map(|&tensor| tensor.clone()).collect();
        NOTES.with_borrow_mut(|notes| {
            if let Some(notes) = notes {
                notes.push(Note { name, operands: own(operands), results: own(results) });
            }
        });
    }
}

#[derive(Default)]
struct Listing {
    steps: Vec<Step>,
    /// Positions of inputs and of steps by the address of their tensor; steps hold tensors that others stand for.
    inputs: FxHashMap<usize, usize>,
    known: FxHashMap<usize, (usize, Tensor)>,
    /// Positions of tensors that are known to the caller, by the address of their memory.
    named: FxHashMap<usize, usize>,
    notes: Vec<Note>,
    /// The note and the position among its results, by the address of a tensor that is still to be listed.
    noted: FxHashMap<usize, (usize, usize)>,
}

/// How a tensor is listed after its operands were.
enum Made {
    By(Expr),
    Noted { note: usize, result: usize },
}

impl Listing {
    /// The position of a tensor, after everything that it is computed from was listed.
    #[track_caller]
    fn visit(&mut self, output: &Tensor) -> Result<usize> {
        let mut stack: Vec<(Tensor, Option<Made>)> = vec![(output.clone(), None)];
        while let Some((tensor, made)) = stack.pop() {
            if self.known.contains_key(&tensor.id()) {
                continue;
            }
            match made {
                Some(Made::By(expr)) => {
                    self.finish(tensor, &expr);
                    continue;
                }
                Some(Made::Noted { note, result }) => {
                    let Note { name, operands, .. } = &self.notes[note];
                    let sources = operands.iter().map(|x| self.position(x)).collect();
                    self.push(tensor, StepOp::Composite { name, result }, sources);
                    continue;
                }
                None => {}
            }
            // An operand that is made of the result after all finds no note of it.
            if let Some((note, result)) = self.noted.remove(&tensor.id()) {
                stack.push((tensor, Some(Made::Noted { note, result })));
                stack.extend(self.notes[note].operands.iter().rev().map(|x| (x.clone(), None)));
                continue;
            }
            tensor.remember_kept();
            let expr = match &*tensor.history() {
                History::Expr(expr) if !tensor.is_realized() => Some(expr.clone()),
                _ => None,
            };
            let Some(expr) = expr else {
                let op = match (self.inputs.get(&tensor.id()), tensor.value()) {
                    (Some(&input), _) => StepOp::Input(input),
                    (None, Some(value)) => StepOp::Value(self.named.get(&value.key()).copied()),
                    (None, None) => {
                        let reason =
                            "a result depends on a tensor without a value that is no input";
                        return Err(Tensor::argument_error("trace", reason.to_owned()));
                    }
                };
                self.push(tensor, op, Vec::new());
                continue;
            };
            let sources: Vec<Tensor> = expr.operands().cloned().collect();
            stack.push((tensor, Some(Made::By(expr))));
            stack.extend(sources.into_iter().rev().map(|source| (source, None)));
        }
        Ok(self.position(output))
    }

    fn position(&self, tensor: &Tensor) -> usize {
        self.known[&tensor.id()].0
    }

    fn push(&mut self, tensor: Tensor, op: StepOp, sources: Vec<usize>) {
        self.known.insert(tensor.id(), (self.steps.len(), tensor.clone()));
        self.steps.push(Step { op, sources, tensor });
    }

    fn finish(&mut self, tensor: Tensor, expr: &Expr) {
        let sources: Vec<usize> = expr.operands().map(|source| self.position(source)).collect();
        let list = |axes: u16| axes_of(axes).collect();
        let op = match &expr.op {
            Op::Alias(_) | Op::Within(_) | Op::Copy => {
                self.known.insert(tensor.id(), (sources[0], tensor));
                return;
            }
            Op::Const { bits, .. } => StepOp::Const(Scalar::from_bits(tensor.dtype(), *bits)),
            Op::Iota => StepOp::Iota,
            Op::Unary(op) => StepOp::Unary(*op),
            Op::Binary(op) => StepOp::Binary(*op),
            Op::Ternary(op) => StepOp::Ternary(*op),
            Op::Cast { bits: false } => StepOp::Cast,
            Op::Cast { bits: true } => StepOp::Bitcast,
            Op::Reduce { op, axes } => StepOp::Reduce { op: *op, axes: list(*axes) },
            Op::Scan { axis, reverse, scaled: true, .. } => {
                StepOp::Recurrence { axis: usize::from(*axis), reverse: *reverse }
            }
            Op::Scan { op, axis, reverse, scaled: false } => {
                StepOp::Scan { op: *op, axis: usize::from(*axis), reverse: *reverse }
            }
            Op::Reshape => StepOp::Reshape,
            Op::Permute(perm) => {
                StepOp::Permute((0..tensor.rank()).map(|axis| perm.get(axis)).collect())
            }
            Op::Expand => StepOp::Expand,
            Op::Pad(padding) => StepOp::Pad(padding.to_vec()),
            Op::Shrink(starts) => StepOp::Shrink(starts.to_vec()),
            Op::Flip { axes } => StepOp::Flip(list(*axes)),
            Op::Gather { axis } => StepOp::Gather { axis: usize::from(*axis) },
            Op::Scatter { axis, op: Some(op), order: UpdateOrder::Sorted } => {
                StepOp::Segments { axis: usize::from(*axis), op: *op }
            }
            Op::Scatter { axis, op, .. } => StepOp::Scatter { axis: usize::from(*axis), op: *op },
            Op::RadixScatter => StepOp::RadixScatter,
            Op::SortRows { first, bits } => StepOp::SortRows { first: *first, bits: *bits },
            Op::Kernel(call) => {
                StepOp::Kernel { name: call.name().to_owned(), output: call.output }
            }
            Op::Operands { .. } => StepOp::Operands,
            Op::Fourier(form) => {
                StepOp::Fourier { inverse: form.inverse, real: form.real, done: form.done }
            }
        };
        self.push(tensor, op, sources);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::device;

    #[test]
    fn aliases_are_left_out_and_what_is_shared_is_listed_once() {
        let d = device();
        let w = Tensor::new([1f32, 2.0, 3.0], &d).unwrap().tracked();
        let inputs = [(Shape::from([2, 3]), DType::F32)];
        let f = |x: &[Tensor]| {
            let y = x[0].mul(&w)?.detach();
            Ok(vec![y.add(&y)?, x[0].clone()])
        };
        let traced = Steps::trace(&inputs, &d, std::slice::from_ref(&w), &[], f).unwrap();
        let count = |wanted: &StepOp| traced.steps.iter().filter(|s| s.op == *wanted).count();
        assert_eq!(count(&StepOp::Binary(BinaryOp::Mul)), 1);
        assert_eq!(count(&StepOp::Value(Some(0))), 1);
        let sum = &traced.steps[traced.outputs[0]];
        assert_eq!(sum.op, StepOp::Binary(BinaryOp::Add));
        assert_eq!(sum.sources[0], sum.sources[1]);
        assert_eq!(traced.steps[traced.outputs[1]].op, StepOp::Input(0));
        let before = |(at, step): (usize, &Step)| step.sources.iter().all(|&source| source < at);
        assert!(traced.steps.iter().enumerate().all(before));
    }

    #[test]
    fn values_and_tensors_of_other_functions_are_refused() {
        let d = device();
        let inputs = [(Shape::from([2]), DType::F32)];
        let reads = |x: &[Tensor]| x[0].mul(x[0].sum(..)?.item::<f32>()?).map(|y| vec![y]);
        assert!(Steps::trace(&inputs, &d, &[], &[], reads).is_err());
        let mut kept = None;
        Steps::trace(&inputs, &d, &[], &[], |x| {
            kept = Some(x[0].clone());
            Ok(Vec::new())
        })
        .unwrap();
        let error = Steps::trace(&inputs, &d, &[], &[], |_| Ok(vec![kept.clone().unwrap()]));
        assert!(error.unwrap_err().to_string().contains("no input"));
    }
    /// Noted results are one step each, however they are computed; what is no result, or not asked for, is not.
    #[test]
    fn noted_operators_are_one_step() {
        let d = device();
        let f = |x: &[Tensor]| {
            let half = x[0].mul(0.5)?;
            let both = (half.exp(), half.sin());
            Steps::note("both", &[&x[0], &x[0]], &[&both.0, &both.1]);
            // Of what is made of a result, the result is no operator.
            let lie = both.0.neg();
            Steps::note("lie", &[&lie.exp()], &[&lie]);
            Ok(vec![both.1.add(&both.0)?, half, lie])
        };
        let inputs = [(Shape::from([3]), DType::F32)];
        let traced = Steps::trace(&inputs, &d, &[], &["both", "lie"], f).unwrap();
        let ops: Vec<&StepOp> = traced.steps.iter().map(|step| &step.op).collect();
        let both = |result| StepOp::Composite { name: "both", result };
        assert_eq!(ops[..3], [&StepOp::Input(0), &both(1), &both(0)]);
        assert_eq!(traced.steps[1].sources, [0, 0]);
        assert!(matches!(ops[traced.outputs[1]], StepOp::Binary(BinaryOp::Mul)));
        assert!(!ops.contains(&&StepOp::Unary(UnaryOp::Sin)));
        let plain = Steps::trace(&inputs, &d, &[], &[], f).unwrap();
        let is_noted = |step: &Step| matches!(step.op, StepOp::Composite { .. });
        assert!(!plain.steps.iter().any(is_noted));
        assert!(NOTES.with_borrow(Option::is_none));
    }
}
