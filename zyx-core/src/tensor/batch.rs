//! A function of one example applied to many: [`Tensor::vmap`].
//!
//! The function is called once, with tensors that have the shape of one example and no value. What
//! it made of them is a graph of few operations; every node that depends on an example is
//! made again with one axis more in front, so that all examples are computed at once. Because the
//! function has seen the shapes of one example, sums over all axes, flattening and questions for
//! extents mean what they mean for one.
//!
//! Guarantees: nodes that depend on no example are not made again, and broadcast; gradients pass
//! through the result as through any other tensor, rules attached to values are batched in the same
//! way; a function that asks for the *value* of an example (to branch on it, or because a
//! factorisation runs on the host) gets an error, as there is none.

use super::kernel::Kernel;
use super::{Expr, History, Tensor};
use crate::error::{Named, Result};
use crate::graph::fourier::Form;
use crate::graph::{GradientRule, KernelCall, Op, Perm};
use crate::hal::Caps;
use crate::lang::{Recorded, Role};
use crate::origin::composed;
use crate::shape::Shape;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

const OP: &str = "vmap";

/// Most examples that an operation without a rule of its own is repeated for.
const MOST: usize = 1024;

/// Examples, and all of each at once.
type Pairs = Vec<(Tensor, Tensor)>;

impl Tensor {
    /// `f` of each example: axis `in_axes[i]` of `inputs[i]` counts the examples, an input with
    /// `None` is the same for all; of the result, axis `out_axis` counts them.
    ///
    /// `f` is called once, with tensors of the shapes of one example. Random numbers that it draws
    /// are the same for all examples.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?;
    /// let w = Tensor::new([10f32, 1.0], &device)?;
    /// // The gradient for each example, and not of their sum.
    /// let gradient = |x: &[Tensor]| {
    ///     let loss = x[0].dot(&x[1])?.square();
    ///     Ok(loss.grad(&[&x[1]])?.remove(0).expect("the loss depends on it"))
    /// };
    /// let dw = Tensor::vmap(gradient, &[&x, &w], &[Some(0), None], 0)?;
    /// assert_eq!(dw.shape().dims(), [3, 2]);
    /// assert_eq!(dw.to_vec::<f32>()?[..2], [24.0, 48.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is not one axis for each input, all are `None`, an axis is out of range, or the
    /// numbers of examples differ; when `f` fails, asks for a value, or its result would have too
    /// many axes.
    #[track_caller]
    pub fn vmap(
        f: impl Fn(&[Tensor]) -> Result<Tensor>,
        inputs: &[&Tensor],
        in_axes: &[Option<isize>],
        out_axis: isize,
    ) -> Result<Tensor> {
        let _here = composed();
        let one = |x: &[Tensor]| Ok(vec![f(x)?]);
        let mut all = Tensor::batched(OP, one, inputs, in_axes)?;
        all.remove(0).movedim([0], [out_axis]).named(OP)
    }

    /// [`Tensor::vmap`] of a function with several results, all of which have the axis of examples in front.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// let ends = |x: &[Tensor]| Ok(vec![x[0].max(..)?, x[0].min(..)?]);
    /// let found = Tensor::vmap_many(ends, &[&x], &[Some(0)])?;
    /// assert_eq!(found[0].to_vec::<f32>()?, [2.0, 4.0]);
    /// assert_eq!(found[1].to_vec::<f32>()?, [1.0, 3.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::vmap`].
    #[track_caller]
    pub fn vmap_many(
        f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
        inputs: &[&Tensor],
        in_axes: &[Option<isize>],
    ) -> Result<Vec<Tensor>> {
        let _here = composed();
        Tensor::batched("vmap_many", f, inputs, in_axes)
    }

    /// The results with the axis of examples in front, for a method `op`.
    #[track_caller]
    fn batched(
        op: &'static str,
        f: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
        inputs: &[&Tensor],
        in_axes: &[Option<isize>],
    ) -> Result<Vec<Tensor>> {
        if inputs.len() != in_axes.len() {
            let reason = format!("{} axes for {} inputs", in_axes.len(), inputs.len());
            return Err(Tensor::argument_error(op, reason));
        }
        let (mut given, mut pairs, mut count) = (Vec::new(), Pairs::new(), None);
        for (input, axis) in inputs.iter().zip(in_axes) {
            let Some(axis) = axis else {
                given.push((*input).clone());
                continue;
            };
            let all = input.movedim([*axis], [0]).named(op)?;
            let n = all.shape()[0];
            if *count.get_or_insert(n) != n {
                let reason = format!("{n} examples beside {}", count.unwrap_or(0));
                return Err(Tensor::shape_error(op, inputs, reason));
            }
            let example = all.example();
            given.push(example.clone());
            pairs.push((example, all));
        }
        let Some(n) = count else {
            let reason = "no input has an axis of examples".to_owned();
            return Err(Tensor::argument_error(op, reason));
        };
        let found = f(&given)?;
        let mut batch = Batch::new(n, pairs);
        let mut all = Vec::with_capacity(found.len());
        for y in &found {
            all.push(batch.all_of(y).named(op)?);
        }
        Ok(all)
    }

    /// A tensor of the shape of what follows the first axis, without a value.
    #[track_caller]
    fn example(&self) -> Tensor {
        let shape = Shape::from(&self.shape()[1..]);
        Tensor::unknown(shape, self.dtype(), self.device(), self.is_tracked())
    }
}

/// Nodes made again for all examples.
struct Batch {
    n: usize,
    pairs: Pairs,
    /// By address: the node, kept so that no other gets its address, and what stands for all
    /// examples; nothing if it depends on none.
    known: FxHashMap<usize, (Tensor, Option<Tensor>)>,
    kernels: RefCell<Vec<BatchedKernel>>,
}

/// A kernel, which inputs have examples, and the kernel for several, if there is one.
struct BatchedKernel {
    one: Arc<Recorded>,
    depends: Vec<bool>,
    all: Option<Arc<Recorded>>,
}

impl Batch {
    fn new(n: usize, pairs: Pairs) -> Batch {
        let known = pairs.iter().map(|(one, all)| (one.id(), (one.clone(), Some(all.clone()))));
        Batch { n, known: known.collect(), pairs, kernels: RefCell::default() }
    }

    /// A tensor for all examples: made again, or repeated.
    #[track_caller]
    fn all_of(&mut self, y: &Tensor) -> Result<Tensor> {
        self.visit(y)?;
        self.lifted(y)
    }

    /// Makes everything again that `y` reaches and that depends on an example, sources first.
    fn visit(&mut self, y: &Tensor) -> Result<()> {
        let mut stack: Vec<(Tensor, Option<Expr>)> = vec![(y.clone(), None)];
        while let Some((tensor, expr)) = stack.pop() {
            if self.known.contains_key(&tensor.id()) {
                continue;
            }
            let Some(expr) = expr else {
                // What has a value depends on no example.
                let expr = match &*tensor.history() {
                    History::Expr(expr) if !tensor.is_realized() => Some(expr.clone()),
                    _ => None,
                };
                match expr {
                    None => drop(self.known.insert(tensor.id(), (tensor, None))),
                    Some(expr) => {
                        let mut sources: Vec<Tensor> =
                            expr.srcs.iter().flatten().cloned().collect();
                        if let Op::Within(check) = &expr.op {
                            sources.extend(check.cut_of_kernel().cloned());
                        }
                        stack.push((tensor, Some(expr)));
                        stack.extend(sources.into_iter().map(|source| (source, None)));
                    }
                }
                continue;
            };
            let depends = match &expr.op {
                // A list stays a list: inputs that depend on no example are repeated one by one.
                Op::Alias(Some(_)) if expr.is_list() => true,
                Op::Alias(Some(_)) => {
                    expr.operands().chain(&expr.inputs()).any(|source| self.depends(source))
                }
                _ => expr.srcs.iter().flatten().any(|source| self.depends(source)),
            };
            let all = if depends { Some(self.made(&tensor, &expr)?) } else { None };
            self.known.insert(tensor.id(), (tensor, all));
        }
        Ok(())
    }

    fn depends(&self, x: &Tensor) -> bool {
        self.known.get(&x.id()).is_some_and(|(_, all)| all.is_some())
    }

    /// A visited tensor for all examples.
    #[track_caller]
    fn lifted(&self, x: &Tensor) -> Result<Tensor> {
        if let Some((_, Some(all))) = self.known.get(&x.id()) {
            return Ok(all.clone());
        }
        let shape = self.shape(x)?;
        if let History::Expr(Expr { op: op @ Op::Const { .. }, .. }) = &*x.history() {
            return Ok(Tensor::source(op.clone(), shape, x.dtype(), x.device()));
        }
        x.unsqueeze(0)?.expand(shape)
    }

    /// The shape of a tensor for all examples.
    fn shape(&self, x: &Tensor) -> Result<Shape> {
        if x.rank() >= Shape::MAX_RANK {
            let reason = format!("a result inside has {} axes already", x.rank());
            return Err(Tensor::shape_error(OP, &[x], reason));
        }
        Ok(Shape::from([&[self.n], x.shape().dims()].concat()))
    }

    /// A node for all examples.
    #[track_caller]
    fn made(&self, y: &Tensor, expr: &Expr) -> Result<Tensor> {
        let shape = self.shape(y)?;
        let op = match &expr.op {
            Op::RadixScatter => return self.repeated(y, expr),
            Op::Kernel(call) => {
                let all = self.in_one_launch(y, expr, call)?;
                return all.map_or_else(|| self.repeated(y, expr), Ok);
            }
            // Its inputs are taken from the list as it was.
            Op::Operands { .. } => return Ok(y.clone()),
            Op::Within(check) => {
                let index = expr.srcs[0].as_ref().expect("invariant: one source");
                let index = self.lifted(index)?;
                let result = index.unless_one_cut(check, |number| self.lifted(number))?;
                return result.map_or_else(|| index.checked(check), Ok);
            }
            Op::Fourier(form) => return self.transformed(y, expr, *form),
            Op::Reduce { op, axes } => Op::Reduce { op: *op, axes: axes << 1 },
            Op::Scan { op, axis, reverse, scaled } => {
                Op::Scan { op: *op, axis: axis + 1, reverse: *reverse, scaled: *scaled }
            }
            Op::Permute(perm) => {
                let axes = (0..y.rank()).map(|i| perm.get(i) + 1);
                Op::Permute(Perm::new(&[0].into_iter().chain(axes).collect::<Vec<_>>()))
            }
            Op::Pad(padding) => Op::Pad(Arc::new([&[(0, 0)], &padding[..]].concat())),
            Op::Shrink(starts) => Op::Shrink(Arc::new([&[0], &starts[..]].concat())),
            Op::Flip { axes } => Op::Flip { axes: axes << 1 },
            Op::Gather { axis } => Op::Gather { axis: axis + 1 },
            Op::Scatter { axis, op, order } => {
                Op::Scatter { axis: axis + 1, op: *op, order: *order }
            }
            Op::Alias(Some(rule)) => Op::Alias(Some(self.rule(rule))),
            same => same.clone(),
        };
        let mut srcs = [None, None, None];
        for (slot, source) in srcs.iter_mut().zip(&expr.srcs) {
            *slot = source.as_ref().map(|source| self.lifted(source)).transpose()?;
        }
        // Where gradients stop for one example, the node says what it is for all.
        let tracked = match expr.op {
            Op::Alias(None) => y.is_tracked(),
            _ => srcs.iter().flatten().any(Tensor::is_tracked) && y.dtype().is_float(),
        };
        let all = Tensor::node(Expr { op, srcs }, shape, y.dtype(), y.device().clone(), tracked);
        all.take_note_of(y);
        Ok(all)
    }

    /// A transform of all examples' rows.
    #[track_caller]
    fn transformed(&self, y: &Tensor, expr: &Expr, form: Form) -> Result<Tensor> {
        let [Some(x), Some(roots), None] = &expr.srcs else {
            unreachable!("invariant: two sources")
        };
        let rows = self.lifted(x)?.flatten_axes(0, 1)?;
        rows.fourier_with(roots, form).reshape(self.shape(y)?)
    }

    /// The result of a user kernel for all examples by one launch; `None` if it cannot be made one of all.
    #[track_caller]
    fn in_one_launch(&self, y: &Tensor, expr: &Expr, call: &KernelCall) -> Result<Option<Tensor>> {
        let inputs = Kernel::inputs(expr);
        let depends: Vec<bool> = inputs.iter().map(|x| self.depends(x)).collect();
        let recorded = self.batched_kernel(&call.recorded, &depends, y.device().caps());
        let Some(call) = recorded.and_then(|recorded| call.batched(recorded, self.n)) else {
            return Ok(None);
        };
        let all = |(x, depends): (&Tensor, &bool)| {
            if *depends { self.lifted(x) } else { Ok(x.clone()) }
        };
        let inputs = inputs.iter().zip(&depends).map(all).collect::<Result<Vec<_>>>()?;
        let (slot, argument) =
            call.arguments(false).nth(call.output).expect("invariant: it is one");
        let (shape, is_one) = (call.shape(slot), argument.role == Role::Cut);
        let tracked = y.dtype().is_float() && inputs.iter().any(Tensor::is_tracked);
        let expr = Expr { op: Op::Kernel(Arc::new(call)), srcs: Kernel::sources(&inputs) };
        let all = Tensor::node(expr, shape, y.dtype(), y.device().clone(), tracked);
        all.take_note_of(y);
        // One flag tells of the loops of all examples.
        Ok(Some(if is_one { all.unsqueeze(0)?.expand(self.shape(y)?)? } else { all }))
    }

    /// A kernel for several examples, one and the same for all results of a call.
    fn batched_kernel(
        &self,
        recorded: &Arc<Recorded>,
        depends: &[bool],
        caps: &Caps,
    ) -> Option<Arc<Recorded>> {
        let mut kernels = self.kernels.borrow_mut();
        let is_it =
            |known: &&BatchedKernel| Arc::ptr_eq(&known.one, recorded) && known.depends == depends;
        if let Some(known) = kernels.iter().find(is_it) {
            return known.all.clone();
        }
        let all = recorded.batched(caps, depends).map(Arc::new);
        let (one, depends) = (recorded.clone(), depends.to_vec());
        kernels.push(BatchedKernel { one, depends, all: all.clone() });
        all
    }

    /// A node made for one example after the other.
    #[track_caller]
    fn repeated(&self, y: &Tensor, expr: &Expr) -> Result<Tensor> {
        if self.n == 0 || self.n > MOST {
            let reason =
                format!("a kernel or a long sort inside is repeated for 1 to {MOST} examples");
            return Err(Tensor::argument_error(OP, format!("{reason}, not {}", self.n)));
        }
        let one = |i: usize| {
            let mut srcs = [None, None, None];
            for (slot, source) in srcs.iter_mut().zip(&expr.srcs) {
                *slot = source.as_ref().map(|x| self.one(x, i)).transpose()?;
            }
            let (shape, device) = (y.shape().clone(), y.device().clone());
            Ok(Tensor::node(Expr { op: expr.op.clone(), srcs }, shape, y.dtype(), device, false))
        };
        let parts = (0..self.n).map(one).collect::<Result<Vec<Tensor>>>()?;
        Tensor::stack(&parts.iter().collect::<Vec<_>>(), 0)
    }

    /// An example of a source; of a list of sources, the list of theirs.
    #[track_caller]
    fn one(&self, x: &Tensor, i: usize) -> Result<Tensor> {
        let list = match x.history().expr() {
            Some(expr @ Expr { op: Op::Operands { .. }, .. }) => Some(expr.clone()),
            _ => None,
        };
        let Some(list) = list else { return self.lifted(x)?.select_index(0, i as isize) };
        let mut srcs = [None, None, None];
        for (slot, source) in srcs.iter_mut().zip(&list.srcs) {
            *slot = source.as_ref().map(|x| self.one(x, i)).transpose()?;
        }
        let (op, shape, device) = (list.op, x.shape().clone(), x.device().clone());
        Ok(Tensor::node(Expr { op, srcs }, shape, x.dtype(), device, false))
    }

    /// A gradient rule for all examples: the rule of one, with examples of what it gets. It may
    /// hold on to examples of this batch, which stay known.
    fn rule(&self, rule: &Arc<GradientRule>) -> Arc<GradientRule> {
        if rule.is_list {
            return rule.clone();
        }
        let (n, rule, pairs) = (self.n, rule.clone(), self.pairs.clone());
        let whole = move |inputs: &[Tensor], y: &Tensor, dy: &Tensor| {
            let all = inputs.iter().chain([y, dy]);
            let fresh: Pairs = all.map(|all| (all.example(), all.clone())).collect();
            let mut given: Vec<Tensor> = fresh.iter().map(|(one, _)| one.clone()).collect();
            let (dy, y) = (given.pop(), given.pop());
            let (Some(y), Some(dy)) = (y, dy) else { return Ok(Vec::new()) };
            let found = (rule.apply)(&given, &y, &dy)?;
            let mut batch = Batch::new(n, [&pairs[..], &fresh].concat());
            found.iter().map(|x| x.as_ref().map(|x| batch.all_of(x)).transpose()).collect()
        };
        Arc::new(GradientRule::new(Box::new(whole)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BinaryOp, DType, FftNorm, Runtime};

    type Function = fn(&[Tensor]) -> Result<Tensor>;

    /// Functions of a `[3, 4]` and a `[4]`.
    const FUNCTIONS: &[(&str, Function)] = &[
        ("elementwise", |x| x[0].mul(&x[1])?.exp().add(1.0)),
        ("sum of all", |x| x[0].sum(..)),
        ("extents", |x| x[0].sum(..)?.div(x[0].shape()[0] as f64)),
        ("softmax", |x| x[0].softmax(-1)),
        ("layer_norm", |x| x[0].layer_norm(-1, Some(&x[1]), None, 1e-5)),
        ("matmul", |x| x[0].matmul(&x[1].unsqueeze(1)?)),
        ("transposed", |x| x[0].t().matmul(&x[0])),
        ("moved", |x| x[0].flip(0)?.pad([(1, 0), (0, 2)])?.slice(0, 1..3)),
        ("scanned", |x| x[0].scan_with(BinaryOp::Add, 0, true, true)),
        ("cumulative", |x| Ok(x[0].cummax(1)?.0)),
        ("sorted", |x| Ok(x[0].sort(1, true)?.0)),
        ("argmax", |x| Ok(x[0].argmax(1)?.cast(DType::F64))),
        ("gathered", |x| x[0].index_select(0, &x[1].argmax(0)?.unsqueeze(0)?)),
        ("scattered", |x| x[0].scatter_add(1, &x[0].gt(0.0)?.cast(DType::I64), &x[0].square())),
        ("einsum", |x| Tensor::einsum("ij,j->i", &[&x[0], &x[1]])),
        ("transformed", |x| x[0].rfft(None, 1, FftNorm::Backward)),
        ("of no example", |x| Ok(Tensor::eye(2, DType::F64, x[0].device()))),
        ("flattened", |x| Ok(x[0].flatten())),
        ("of one alone", |x| x[1].square().mean(..)),
        ("bits", |x| Ok(x[0].bitcast(DType::I64)?.bitwise_and(255)?.cast(DType::F64))),
        ("gradient", |x| {
            Ok(x[0].softmax(-1)?.square().sum(..)?.grad(&[&x[0]])?.remove(0).unwrap())
        }),
        ("tracked", |x| {
            let w = x[1].tracked();
            Ok(x[0].mul(&w)?.exp().sum(..)?.grad(&[&w])?.remove(0).unwrap())
        }),
    ];

    fn numbers(dims: &[usize], salt: usize, device: &crate::Device) -> Tensor {
        let n: usize = dims.iter().product();
        let data: Vec<f64> = (0..n).map(|i| ((i + salt) * 7919 % 97) as f64 / 40.0 - 1.2).collect();
        Tensor::from_slice(&data, dims, device).unwrap()
    }

    /// One by one and all at once are the same, whichever inputs have examples.
    #[test]
    fn all_at_once_are_one_by_one() {
        let device = Runtime::default().device("reference").unwrap();
        let (x, y) = (numbers(&[3, 5, 4], 1, &device), numbers(&[5, 4], 2, &device));
        for (name, f) in FUNCTIONS {
            for axes in [[Some(1), Some(0)], [Some(1), None], [None, Some(-2)]] {
                let part = |x: &Tensor, axis: Option<isize>, rest: isize, i: isize| match axis {
                    Some(axis) => x.select_index(axis, i).unwrap(),
                    None => x.select_index(rest, 0).unwrap(),
                };
                let (a, b) = (
                    if axes[0].is_some() { x.clone() } else { x.select_index(1, 0).unwrap() },
                    if axes[1].is_some() { y.clone() } else { y.select_index(0, 0).unwrap() },
                );
                let got =
                    Tensor::vmap(f, &[&a, &b], &axes, 0).unwrap_or_else(|e| panic!("{name}: {e}"));
                let one = |i| f(&[part(&x, axes[0], 1, i), part(&y, axes[1], 0, i)]).unwrap();
                let all: Vec<Tensor> = (0..5).map(one).collect();
                let want = Tensor::stack(&all.iter().collect::<Vec<_>>(), 0).unwrap();
                assert_eq!(got.shape(), want.shape(), "{name} {axes:?}");
                let (got, want) = (got.to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
                let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
                assert!(got.iter().zip(&want).all(near), "{name} {axes:?}: {got:?} {want:?}");
            }
        }
    }

    #[test]
    fn examples_stand_where_they_are_asked_for_and_nest() {
        let device = Runtime::default().device("reference").unwrap();
        let (x, y) = (numbers(&[3, 2], 1, &device), numbers(&[4, 2], 2, &device));
        // All pairs: a matrix product out of dot products.
        let dots = |out: isize| {
            let row = |v: &[Tensor]| Tensor::vmap(|w| v[0].dot(&w[0]), &[&y], &[Some(0)], 0);
            Tensor::vmap(row, &[&x], &[Some(0)], out).unwrap()
        };
        let want = x.matmul(&y.t()).unwrap();
        assert_eq!(dots(0).to_vec::<f64>().unwrap(), want.to_vec::<f64>().unwrap());
        assert_eq!(dots(-1).to_vec::<f64>().unwrap(), want.t().to_vec::<f64>().unwrap());
    }

    #[test]
    fn gradients_pass_and_rules_are_batched() {
        let device = Runtime::default().device("reference").unwrap();
        let x = numbers(&[3, 4], 1, &device).tracked();
        let kept = |x: &[Tensor]| {
            Tensor::checkpoint(|x| Ok(x[0].exp().mul(&x[0])?.softmax(0)?.square()), &[&x[0]])
        };
        let plain = |x: &Tensor| x.exp().mul(x)?.softmax(1).map(|y| y.square());
        let got = Tensor::vmap(kept, &[&x], &[Some(0)], 0).unwrap();
        let want = plain(&x).unwrap();
        let weights = numbers(&[3, 4], 5, &device);
        let dx = |y: &Tensor| y.grad_with(&weights, &[&x]).unwrap().remove(0).unwrap();
        let gap = dx(&got).sub(dx(&want)).unwrap().abs().max(..).unwrap().item::<f64>().unwrap();
        assert!(gap < 1e-12, "{gap}");
    }

    #[test]
    fn what_has_no_value_says_so() {
        let device = Runtime::default().device("reference").unwrap();
        let x = numbers(&[3, 2], 1, &device);
        let all = [Some(0)];
        let asks = |x: &[Tensor]| {
            let first = x[0].sum(..)?.item::<f64>()?;
            x[0].mul(first)
        };
        let error = Tensor::vmap(asks, &[&x], &all, 0).unwrap_err().to_string();
        assert!(error.contains("vmap"), "{error}");
        assert!(Tensor::vmap(|x| x[0].reshape([3]), &[&x], &all, 0).is_err());
        let same = |x: &[Tensor]| Ok(x[0].clone());
        assert!(Tensor::vmap(same, &[&x], &[], 0).is_err());
        assert!(Tensor::vmap(same, &[&x], &[None], 0).is_err());
        assert!(Tensor::vmap(same, &[&x], &[Some(2)], 0).is_err());
        assert!(Tensor::vmap(same, &[&x], &all, 2).is_err());
        assert!(Tensor::vmap(same, &[&x, &x], &[Some(0), Some(1)], 0).is_err());
        let back = Tensor::vmap(same, &[&x], &[Some(1)], 1).unwrap();
        assert_eq!(back.to_vec::<f64>().unwrap(), x.to_vec::<f64>().unwrap());
    }
}
