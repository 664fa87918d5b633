//! Reverse-mode differentiation as a function from tensors to tensors.
//!
//! [`Tensor::grad`] walks the pending graph backwards once and applies each op's rule with
//! ordinary tensor methods. The results are lazy like any other tensor, so higher derivatives,
//! fusion of forward with backward, and recomputation need nothing special. It happens before
//! scheduling: no kernel, fused or from a library, can cut a gradient off.

pub mod hooks;
pub mod recompute;
mod sums;
mod tape;

use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{GradientRule, Op, UpdateOrder, axes_of};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::origin::{Attributed, composed};
use crate::shape::Shape;
use crate::tensor::{Expr, Tensor};
use std::sync::Arc;
use sums::Parts;
use tape::Tape;

/// Gradients for the sources of one node.
type Cotangents = [Option<Tensor>; 3];

impl Tensor {
    /// The gradients of the sum of this tensor's elements with respect to others, which may be
    /// any tensors it was computed from, not only leaves. `None` where it does not depend on one.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0, 3.0], &device)?.tracked();
    /// let y = x.square().sum(..)?;
    /// let dx = y.grad(&[&x])?.remove(0).expect("y depends on x");
    /// assert_eq!(dx.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
    /// // The derivative of the derivative.
    /// let ddx = dx.grad(&[&x])?.remove(0).expect("so does its gradient");
    /// assert_eq!(ddx.to_vec::<f32>()?, [2.0, 2.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When this tensor does not hold floats, an op on the way has no gradient rule, or the
    /// history that leads to a tensor was freed by realizing something untracked on the way.
    #[track_caller]
    pub fn grad(&self, wrt: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
        self.grad_with(&self.ones_like(), wrt)
    }

    /// As [`Tensor::grad`], with the given cotangent of this tensor instead of ones.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// let weights = Tensor::new([1f32, 10.0], &device)?;
    /// let dx = x.square().grad_with(&weights, &[&x])?.remove(0).expect("it depends on x");
    /// assert_eq!(dx.to_vec::<f32>()?, [2.0, 40.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::grad`], and when the cotangent has another shape or dtype.
    #[track_caller]
    pub fn grad_with(&self, cotangent: &Tensor, wrt: &[&Tensor]) -> Result<Vec<Option<Tensor>>> {
        self.check_cotangent("grad", cotangent)?;
        let tape = Tape::record(self, wrt);
        if tape.forgotten && !wrt.is_empty() {
            return Err(Tensor::argument_error(
                "grad",
                "the history of a value on the way was given up: of a long chain of untracked values \
                 the last few have theirs; mark parameters with `tracked()` before computing with \
                 them, or cut the chain with `detach()`"
                    .into(),
            ));
        }
        let cotangents = self.pull_back(cotangent, &tape)?;
        let found = |x: &&Tensor| {
            let position = tape.targets.get(&x.id()).copied().flatten()?;
            cotangents[position as usize].first().cloned()
        };
        let found: Vec<Option<Tensor>> = wrt.iter().map(found).collect();
        if tape.released && !wrt.is_empty() && found.iter().all(Option::is_none) {
            return Err(Tensor::argument_error(
                "grad",
                "the history was freed when a value on the way was realized; mark parameters \
                 with `tracked()` before computing with them"
                    .into(),
            ));
        }
        Ok(found)
    }

    /// The gradients of the sum of this tensor's elements, weighed by `cotangent`, with respect to every
    /// trainable [`Param`](crate::Param) that it was computed from, by [`Param::id`](crate::Param::id). The gradient of
    /// a parameter whose value was replaced meanwhile is the one at the value that was used.
    ///
    /// ```
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let w = Param::new(Tensor::new([3f32, 4.0], &device)?);
    /// let loss = w.tensor().square().sum(..)?;
    /// let found = loss.param_gradients(&loss.ones_like())?;
    /// assert_eq!(found[0].0, w.id());
    /// assert_eq!(found[0].1.to_vec::<f32>()?, [6.0, 8.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::grad_with`], and when this tensor depends on no trainable parameter.
    #[track_caller]
    pub fn param_gradients(&self, cotangent: &Tensor) -> Result<Vec<(u32, Tensor)>> {
        self.check_cotangent("param_gradients", cotangent)?;
        let tape = Tape::record_params(self);
        let cotangents = self.pull_back(cotangent, &tape)?;
        let mut found: Vec<(u32, Tensor)> = Vec::new();
        let mut places = rustc_hash::FxHashMap::default();
        for (position, entry) in tape.entries.reversed() {
            let id = entry.tensor.param_id();
            let Some(dx) = cotangents[position].first().filter(|_| id != 0) else { continue };
            if id == u32::MAX {
                let reason = "more than 4294967294 parameters were made: they have no ids left";
                return Err(Tensor::argument_error("param_gradients", reason.to_owned()));
            }
            match places.insert(id, found.len()) {
                None => found.push((id, dx.clone())),
                // A leaf of the value before and one of the value now are one parameter.
                Some(place) => {
                    places.insert(id, place);
                    found[place].1 = add_tensors(&found[place].1, dx);
                }
            }
        }
        if found.is_empty() {
            let reason = "the tensor depends on no trainable parameter and on no tensor made with \
                          requires_grad: was it computed without history, or detached?";
            return Err(Tensor::argument_error("param_gradients", reason.to_owned()));
        }
        Ok(found)
    }

    #[track_caller]
    fn check_cotangent(&self, op: &'static str, cotangent: &Tensor) -> Result<()> {
        if !self.dtype().is_float() {
            let reason = "only floats have gradients; cast first".to_owned();
            return Err(Tensor::dtype_error(op, &[self], reason));
        }
        if !cotangent.shape().same(self.shape()) || cotangent.dtype() != self.dtype() {
            let reason = "the cotangent must have the tensor's shape and dtype".to_owned();
            return Err(Tensor::shape_error(op, &[self, cotangent], reason));
        }
        if cotangent.device() != self.device() {
            let reason =
                format!("the cotangent is on {}, not {}", cotangent.device(), self.device());
            return Err(Tensor::argument_error(op, reason));
        }
        Ok(())
    }

    /// The cotangent of each entry of a tape whose last entry is this tensor.
    #[track_caller]
    fn pull_back(&self, cotangent: &Tensor, tape: &Tape) -> Result<Vec<Parts>> {
        let _span = self.device().span("gradient", &[]);
        let _here = composed();
        let mut cotangents: Vec<Parts> = vec![Parts::new(); tape.entries.len()];
        let output = cotangents.last_mut().expect("invariant: the output is on the tape");
        output.push(cotangent.clone());
        for (position, entry) in tape.entries.reversed() {
            let parts = std::mem::take(&mut cotangents[position]);
            let _of = Attributed::to_gradient(entry.tensor.origin());
            let Some(dy) = sums::sum(parts) else { continue };
            let dy = hooks::apply(&entry.tensor, dy)?;
            cotangents[position].push(dy.clone());
            let (true, Some(expr)) = (entry.leads, &entry.expr) else { continue };
            if let Op::Alias(Some(rule)) = &expr.op {
                let parts = cotangents_by_rule(rule, &expr.inputs(), &entry.tensor, &dy)?;
                for (part, input) in parts.into_iter().zip(tape.entries.inputs(entry)) {
                    let Some(part) = part.filter(|_| tape.entries.leads(input)) else { continue };
                    cotangents[input as usize].push(part);
                }
                continue;
            }
            let leads = entry.sources.map(|source| tape.entries.leads(source));
            let parts = cotangents_of(expr, &entry.tensor, &dy, leads)?;
            for ((part, source), leads) in parts.into_iter().zip(entry.sources).zip(leads) {
                let (Some(part), true) = (part, leads) else { continue };
                cotangents[source as usize].push(part);
            }
        }
        Ok(cotangents)
    }

    /// This tensor's values, with gradients that flow to `inputs` by `rule` instead of being derived
    /// from how the values are computed. `rule(inputs, y, dy)` gets the inputs, this tensor and its
    /// cotangent, and returns one cotangent, or `None`, for each input, with the input's shape,
    /// dtype and device. Any number of inputs of any dtype is allowed; integers and bools get no gradient.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// // Rounding whose gradient passes straight through.
    /// let x = Tensor::new([0.4f32, 1.6], &device)?.tracked();
    /// let y = x.round().with_gradient(&[&x], |_, _, dy| Ok(vec![Some(dy.clone())]))?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0]);
    /// let dx = y.grad(&[&x])?.remove(0).expect("by the rule");
    /// assert_eq!(dx.to_vec::<f32>()?, [1.0, 1.0]);
    ///
    /// // A sum of three products with a rule for all six factors.
    /// let w: Vec<Tensor> =
    ///     (1..7).map(|i| Tensor::new([i as f32], &device)).collect::<Result<_, _>>()?;
    /// let y = &w[0] * &w[1] + &w[2] * &w[3] + &w[4] * &w[5];
    /// let inputs: Vec<&Tensor> = w.iter().collect();
    /// let y = y.with_gradient(&inputs, |w, _, dy| Ok((0..6).map(|i| Some(dy * &w[i ^ 1])).collect()))?;
    /// let dw = y.grad(&[&w[5]])?.remove(0).expect("by the rule");
    /// assert_eq!(dw.to_vec::<f32>()?, [5.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// None here. Gradients of the result fail with [`Error::Argument`](crate::Error::Argument) when the
    /// rule returns another number of cotangents, or one that does not fit its input.
    #[track_caller]
    pub fn with_gradient(
        &self,
        inputs: &[&Tensor],
        rule: impl Fn(&[Tensor], &Tensor, &Tensor) -> Result<Vec<Option<Tensor>>>
        + Send
        + Sync
        + 'static,
    ) -> Result<Tensor> {
        self.with_gradient_rule(inputs, GradientRule::new(Box::new(rule)))
    }

    /// [`Tensor::with_gradient`], compiled once for all rules.
    #[track_caller]
    pub(crate) fn with_gradient_rule(
        &self,
        inputs: &[&Tensor],
        rule: GradientRule,
    ) -> Result<Tensor> {
        let (first, others) = match inputs.split_first() {
            Some((&first, others)) => (Some(first.clone()), self.list_inputs(others)),
            None => (None, None),
        };
        let tracked = inputs.iter().any(|input| input.is_tracked());
        let expr =
            Expr { op: Op::Alias(Some(Arc::new(rule))), srcs: [Some(self.clone()), first, others] };
        let (shape, device) = (self.shape().clone(), self.device().clone());
        Ok(Tensor::node(expr, shape, self.dtype(), device, tracked))
    }

    /// Inputs of a gradient rule as one source of its node: see [`Expr::inputs`]. Nothing of the list is computed.
    #[track_caller]
    fn list_inputs(&self, inputs: &[&Tensor]) -> Option<Tensor> {
        let (&last, others) = inputs.split_last()?;
        if others.is_empty() {
            return Some(last.clone());
        }
        let rule = Arc::new(GradientRule::of_list());
        let zero = Tensor::zeros(Shape::scalar(), DType::F32, self.device());
        let listed = others.iter().rev().fold(last.clone(), |rest, &input| {
            let tracked = input.is_tracked() || rest.is_tracked();
            let srcs = [Some(zero.clone()), Some(input.clone()), Some(rest)];
            let expr = Expr { op: Op::Alias(Some(rule.clone())), srcs };
            Tensor::node(expr, Shape::scalar(), DType::F32, self.device().clone(), tracked)
        });
        Some(listed)
    }
}

/// The cotangents of the inputs of a tensor with a gradient rule.
#[track_caller]
fn cotangents_by_rule(
    rule: &GradientRule,
    inputs: &[Tensor],
    y: &Tensor,
    dy: &Tensor,
) -> Result<Vec<Option<Tensor>>> {
    let given = (rule.apply)(inputs, y, dy)?;
    let fits = |(dx, x): (&Option<Tensor>, &Tensor)| {
        dx.as_ref().is_none_or(|dx| {
            dx.shape().same(x.shape()) && dx.dtype() == x.dtype() && dx.device() == x.device()
        })
    };
    if given.len() != inputs.len() || !given.iter().zip(inputs).all(fits) {
        let reason =
            "the rule of `with_gradient` must give one cotangent, or `None`, for each input, with \
                      the input's shape, dtype and device"
                .to_owned();
        return Err(Tensor::argument_error("grad", reason));
    }
    Ok(given)
}

/// The cotangents of the sources of `y`, given that of `y`. Those of sources that lead to no target
/// may be left out.
#[track_caller]
fn cotangents_of(expr: &Expr, y: &Tensor, dy: &Tensor, leads: [bool; 3]) -> Result<Cotangents> {
    let [Some(x), second, third] = &expr.srcs else { return Ok([None, None, None]) };
    let only = |dx: Tensor| Ok([Some(dx), None, None]);
    match &expr.op {
        Op::Const { .. } | Op::Iota | Op::Cast { bits: true } => Ok([None, None, None]),
        Op::Unary(op) => only(unary(*op, x, y, dy)),
        Op::Binary(op) => {
            let z = second.as_ref().expect("invariant: binary ops have two sources");
            let (dx, dz) = binary(*op, x, z, y, dy, leads);
            Ok([dx, dz, None])
        }
        Op::Ternary(TernaryOp::Where) => {
            let zero = dy.like(0.0);
            Ok([None, Some(x.select(dy, &zero)), Some(x.select(&zero, dy))])
        }
        Op::Ternary(TernaryOp::MulAdd) => {
            let z = second.as_ref().expect("invariant: ternary ops have three sources");
            Ok([Some(mul(dy, z)), Some(mul(dy, x)), Some(dy.clone())])
        }
        Op::Cast { bits: false } if x.dtype().is_float() => only(dy.cast(x.dtype())),
        Op::Cast { bits: false } => Ok([None, None, None]),
        Op::Reduce { op, axes } => only(reduce(*op, *axes, x, dy)?),
        Op::Scan { axis, reverse, scaled: true, .. } => {
            let factor = second.as_ref().expect("invariant: scaled scans have factors");
            let (axis, reverse) = (*axis as usize, *reverse);
            // `dx[t] = dy[t] + factor[t + 1] * dx[t + 1]`.
            let dx = dy.recurrence(&factor.beside(axis, !reverse), axis, !reverse);
            let dfactor = leads[1].then(|| mul(&dx, &y.beside(axis, reverse)));
            Ok([Some(dx), dfactor, None])
        }
        Op::Scan { op: BinaryOp::Add, axis, reverse, .. } => {
            only(dy.scan(BinaryOp::Add, *axis as usize, !*reverse))
        }
        Op::Scan { op, .. } => {
            let reason = format!("a running {op} has no gradient rule");
            Err(Tensor::argument_error("grad", reason))
        }
        Op::Reshape => only(dy.reshape_unchecked(x.shape().clone())),
        Op::Permute(perm) => only(dy.permute_unchecked(&perm.inverse(x.rank()))),
        Op::Expand => {
            let stretched = |axis: usize| x.shape()[axis] == 1 && y.shape()[axis] != 1;
            let mask = (0..x.rank()).filter(|&a| a < 16 && stretched(a)).fold(0, |m, a| m | 1 << a);
            only(dy.reduce(BinaryOp::Add, mask))
        }
        Op::Pad(padding) => {
            let inner = padding.iter().zip(x.shape().iter()).map(|(p, &d)| (p.0, p.0 + d));
            only(dy.shrink_unchecked(&inner.collect::<Vec<_>>()))
        }
        Op::Shrink(starts) => {
            let outer = starts.iter().zip(x.shape().iter()).zip(y.shape().iter());
            let padding: Vec<_> = outer.map(|((&s, &d), &n)| (s, d - s - n)).collect();
            only(dy.pad(padding)?)
        }
        Op::Flip { axes } => only(dy.flip(&axes_of(*axes).collect::<Vec<_>>()[..])?),
        Op::Gather { axis } => {
            let index = second.as_ref().expect("invariant: gathers have an index");
            let zero = x.like(0.0);
            only(zero.scatter_unchecked(*axis as usize, Some(BinaryOp::Add), index, dy))
        }
        Op::Scatter { axis, op, order: UpdateOrder::Given | UpdateOrder::Any } => {
            let index = second.as_ref().expect("invariant: scatters have an index");
            scatter(*axis as usize, *op, index, third.as_ref(), dy)
        }
        // Only integers are distributed, and what is scattered by ends has a rule.
        Op::Scatter { order: UpdateOrder::Sorted, .. } | Op::RadixScatter | Op::SortRows { .. } => {
            Ok([None, None, None])
        }
        Op::Fourier(_) => {
            let reason = "a transform in one kernel has the gradient of the method it is made by";
            Err(Tensor::argument_error("grad", reason.to_owned()))
        }
        Op::Kernel(call) => {
            let reason = format!(
                "the kernel `{}` has no gradient: give it a rule by `Kernel::with_gradient`, or detach its inputs",
                call.name()
            );
            Err(Tensor::argument_error("grad", reason))
        }
        Op::Operands { .. } => Ok([None, None, None]),
        Op::Copy => only(dy.to_device(x.device())?),
        // `pull_back` applies rules, which may have more inputs than a node has sources.
        Op::Within(_) if x.dtype().is_float() => only(dy.clone()),
        Op::Alias(_) | Op::Within(_) => Ok([None, None, None]),
    }
}

#[track_caller]
fn mul(x: &Tensor, y: &Tensor) -> Tensor {
    x.combine(BinaryOp::Mul, y)
}

#[track_caller]
fn add_tensors(x: &Tensor, y: &Tensor) -> Tensor {
    x.combine(BinaryOp::Add, y)
}

#[track_caller]
fn add(x: &Tensor, y: f64) -> Tensor {
    x.combine(BinaryOp::Add, &x.like(y))
}

#[track_caller]
fn scale(x: &Tensor, by: f64) -> Tensor {
    mul(x, &x.like(by))
}

#[track_caller]
fn div(x: &Tensor, y: &Tensor) -> Tensor {
    x.combine(BinaryOp::Div, y)
}

/// The cotangent of `x` for `y = op(x)`. Steps have gradient zero, and so has `abs` at 0.
///
/// No rule may meet `0 * inf` or `inf - inf` where the derivative is finite, and a rule of several
/// steps computes halves in `f32`, where squares neither overflow nor vanish
/// (`tests/tests/derivatives/law.rs`).
#[track_caller]
fn unary(op: UnaryOp, x: &Tensor, y: &Tensor, dy: &Tensor) -> Tensor {
    use std::f64::consts::{FRAC_2_SQRT_PI, LN_2};
    match op {
        UnaryOp::Neg => return dy.neg(),
        UnaryOp::Abs => return mul(dy, &x.sign()),
        UnaryOp::Exp => return mul(dy, y),
        UnaryOp::Log => return div(dy, x),
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => return x.like(0.0),
        _ => {}
    }
    let narrow = x.dtype();
    let [wide_x, wide_dy] = [x, dy].map(Tensor::widened);
    // Of a half, the result as it was before it was rounded: `1 - y^2` cancels.
    let wide_y = if wide_x.dtype() == narrow { y.clone() } else { wide_x.unary(op) };
    let (x, y, dy) = (&wide_x, &wide_y, &wide_dy);
    let dx = match op {
        UnaryOp::Recip => mul(&mul(dy, y), y).neg(),
        UnaryOp::Sqrt => div(&scale(dy, 0.5), y),
        UnaryOp::Exp2 => scale(&mul(dy, y), LN_2),
        UnaryOp::Expm1 => mul(dy, &add(y, 1.0)),
        UnaryOp::Log2 => div(dy, &scale(x, LN_2)),
        UnaryOp::Log1p => div(dy, &add(x, 1.0)),
        UnaryOp::Sin => mul(dy, &x.cos()),
        UnaryOp::Cos => mul(dy, &x.sin()).neg(),
        UnaryOp::Tan => mul(dy, &add(&y.square(), 1.0)),
        UnaryOp::Asin => div(dy, &beside_one(x).sqrt()),
        UnaryOp::Acos => div(dy, &beside_one(x).sqrt()).neg(),
        UnaryOp::Atan => div(dy, &add(&x.square(), 1.0)),
        UnaryOp::Sinh => mul(dy, &x.cosh()),
        UnaryOp::Cosh => mul(dy, &x.sinh()),
        UnaryOp::Tanh => mul(dy, &add(&y.square().neg(), 1.0)),
        UnaryOp::Erf => scale(&mul(dy, &x.square().neg().exp()), FRAC_2_SQRT_PI),
        UnaryOp::Neg
        | UnaryOp::Abs
        | UnaryOp::Exp
        | UnaryOp::Log
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Trunc => unreachable!("invariant: its rule stands above"),
        UnaryOp::Not => unreachable!("invariant: not is undefined on floats"),
    };
    dx.cast(narrow)
}

/// `1 - x^2` as a product, whose factors are exact near 1 and -1.
#[track_caller]
fn beside_one(x: &Tensor) -> Tensor {
    mul(&add(&x.neg(), 1.0), &add(x, 1.0))
}

/// The cotangents of `x` and `z` for `y = x op z`. They depend on the operands alone, never on which
/// of the two are asked for. Of equal operands of a maximum or minimum each gets half.
#[track_caller]
fn binary(
    op: BinaryOp,
    x: &Tensor,
    z: &Tensor,
    y: &Tensor,
    dy: &Tensor,
    [to_x, to_z, _]: [bool; 3],
) -> (Option<Tensor>, Option<Tensor>) {
    let pair = |dx: &dyn Fn() -> Tensor, dz: &dyn Fn() -> Tensor| (to_x.then(dx), to_z.then(dz));
    match op {
        BinaryOp::Add => return pair(&|| dy.clone(), &|| dy.clone()),
        BinaryOp::Sub => return pair(&|| dy.clone(), &|| dy.neg()),
        BinaryOp::Mul => return pair(&|| mul(dy, z), &|| mul(dy, x)),
        BinaryOp::Max => return pair(&|| winner(x, z, dy, z, x), &|| winner(x, z, dy, x, z)),
        BinaryOp::Min => return pair(&|| winner(x, z, dy, x, z), &|| winner(x, z, dy, z, x)),
        BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Gcd
        | BinaryOp::Shl
        | BinaryOp::Shr => {
            return (None, None);
        }
        BinaryOp::Lt | BinaryOp::Le | BinaryOp::Eq | BinaryOp::Ne => return (None, None),
        _ => {}
    }
    let narrow = x.dtype();
    let [wide_x, wide_z, wide_dy] = [x, z, dy].map(Tensor::widened);
    // Of halves, the result as it was before it was rounded.
    let wide_y = if wide_x.dtype() == narrow { y.clone() } else { wide_x.combine(op, &wide_z) };
    let (x, z, y, dy) = (&wide_x, &wide_z, &wide_y, &wide_dy);
    let (dx, dz) = match op {
        BinaryOp::Div => pair(&|| div(dy, z), &|| mul(dy, &div(y, z)).neg()),
        // What was taken from `x` is the quotient times `z`, also where `x / z` rounds up to it.
        BinaryOp::Rem => {
            pair(&|| dy.clone(), &|| mul(dy, &div(&x.combine(BinaryOp::Sub, y), z).round()).neg())
        }
        BinaryOp::Pow => pair(
            &|| {
                // x^0 is constant where 1 / x is infinite or NaN too: 0 * x^-1 must not become NaN,
                // in this or a higher order. Elsewhere the exponent stays, for derivatives by it.
                let tiny = if x.dtype() == DType::F64 {
                    f64::MIN_POSITIVE
                } else {
                    f32::MIN_POSITIVE as f64
                };
                let singular =
                    x.like(tiny / 4.0).combine(BinaryOp::Lt, &x.abs()).unary(UnaryOp::Not);
                let flat = z.combine(BinaryOp::Eq, &z.like(0.0)).combine(BinaryOp::And, &singular);
                let lower = x.combine(BinaryOp::Pow, &flat.select(&z.like(0.0), &add(z, -1.0)));
                mul(dy, &mul(z, &lower))
            },
            &|| {
                // 0^z is flat from 0 on, and falls from infinity below.
                let zero = x.like(0.0);
                let flat = x.combine(BinaryOp::Eq, &zero);
                let flat = flat.combine(BinaryOp::And, &zero.combine(BinaryOp::Le, z));
                mul(dy, &mul(y, &flat.select(&x.like(1.0), x).log()))
            },
        ),
        BinaryOp::Atan2 => {
            let (a, b, length) = direction(x, z);
            let squares = a.square().combine(BinaryOp::Add, &b.square());
            pair(&|| mul(dy, &div(&div(&b, &squares), &length)), &|| {
                mul(dy, &div(&div(&a, &squares), &length)).neg()
            })
        }
        BinaryOp::LogAddExp => pair(&|| mul(dy, &share(x, z)), &|| mul(dy, &share(z, x))),
        _ => unreachable!("invariant: the rule of {op} stands above"),
    };
    (dx.map(|dx| dx.cast(narrow)), dz.map(|dz| dz.cast(narrow)))
}

/// `x / h`, `z / h` and `h` for the larger magnitude `h` of both, a constant to gradients: squares
/// of the first two neither overflow nor vanish. At the origin, which has no direction, `0, 0, inf`.
fn direction(x: &Tensor, z: &Tensor) -> (Tensor, Tensor, Tensor) {
    let most = if x.dtype() == DType::F64 { f64::MAX } else { f32::MAX as f64 };
    let finite = |t: &Tensor| {
        let low = t.bounded(BinaryOp::Max, &t.like(-most), true);
        low.bounded(BinaryOp::Min, &t.like(most), true)
    };
    let (x, z) = (finite(x), finite(z));
    let h = x.abs().combine(BinaryOp::Max, &z.abs()).detach_lazily();
    let nowhere = h.combine(BinaryOp::Eq, &h.like(0.0));
    let safe = nowhere.select(&h.like(1.0), &h);
    let length = nowhere.select(&h.like(f64::INFINITY), &h);
    let b = nowhere.select(&h.like(1.0), &div(&z, &safe));
    (div(&x, &safe), b, length)
}

/// The part of `exp(x)` in `exp(x) + exp(z)`, which is half of equal infinities.
#[track_caller]
fn share(x: &Tensor, z: &Tensor) -> Tensor {
    let infinite = x.abs().combine(BinaryOp::Eq, &x.like(f64::INFINITY));
    let alike = x.combine(BinaryOp::Eq, z).combine(BinaryOp::And, &infinite);
    alike.select(&x.like(0.0), &x.combine(BinaryOp::Sub, z)).sigmoid()
}

/// The cotangent of an operand of a maximum or minimum of `x` and `z` where `below < above` says
/// that it won: half of a tie.
#[track_caller]
fn winner(x: &Tensor, z: &Tensor, dy: &Tensor, below: &Tensor, above: &Tensor) -> Tensor {
    let rest = x.combine(BinaryOp::Eq, z).select(&scale(dy, 0.5), &dy.like(0.0));
    below.combine(BinaryOp::Lt, above).select(dy, &rest)
}

#[track_caller]
fn reduce(op: BinaryOp, axes: u16, x: &Tensor, dy: &Tensor) -> Result<Tensor> {
    let full = |t: &Tensor| t.broadcast_unchecked(x.shape());
    match op {
        BinaryOp::Add => Ok(full(dy)),
        BinaryOp::Mul => {
            // Without zeros y / x; with one zero it alone gets the product of the others.
            let zero = x.combine(BinaryOp::Eq, &x.like(0.0));
            let others = zero.select(&x.like(1.0), x).reduce(BinaryOp::Mul, axes);
            let zeros = full(&zero.cast(x.dtype()).reduce(BinaryOp::Add, axes));
            let one = zeros.combine(BinaryOp::Eq, &zeros.like(1.0));
            let none = zeros.combine(BinaryOp::Eq, &zeros.like(0.0));
            let alone = zero.combine(BinaryOp::And, &one);
            let safe = zero.select(&x.like(1.0), x);
            let slope = none
                .select(&div(&full(&others), &safe), &alone.select(&full(&others), &x.like(0.0)));
            let slope = slope.with_gradient(&[x], move |inputs, _, dy| {
                Ok(vec![Some(slope_gradient(&inputs[0], axes, dy)?)])
            })?;
            Ok(mul(&full(dy), &slope))
        }
        BinaryOp::Max | BinaryOp::Min => {
            // Ties share. The extreme is that of the elements it is compared with: `y` may have been
            // computed earlier, from elements that rounded otherwise.
            let best = full(&x.reduce(op, axes));
            let hit = x.combine(BinaryOp::Eq, &best).cast(x.dtype());
            let count = hit.reduce(BinaryOp::Add, axes);
            Ok(mul(&hit, &full(&div(dy, &count))))
        }
        _ => Err(Tensor::argument_error("grad", format!("reduction {op} has no gradient rule"))),
    }
}

/// The cotangent of `x` for the slopes of a product over `axes`: `slope[i]` is the product of all
/// elements but `i`.
///
/// As computed for the first order, a slope is a constant where another element is zero, which its
/// derivative is not. Here each is a product of its own, with element `i` replaced by 1: quadratic
/// in the elements of a product, and right for every order because products have this rule.
#[track_caller]
fn slope_gradient(x: &Tensor, axes: u16, dy: &Tensor) -> Result<Tensor> {
    let kept = (0..x.rank()).filter(|&axis| axes >> axis & 1 == 0);
    let order: Vec<usize> = kept.chain(axes_of(axes)).collect();
    let n: usize = axes_of(axes).map(|axis| x.shape()[axis]).product();
    let split = x.rank() - axes_of(axes).count();
    let moved = x.permute_unchecked(&order);
    let shape = moved.shape().clone();
    let rows: usize = shape[..split].iter().product();
    let flat = moved.reshape_unchecked(Shape::from([rows, n]));
    let dy = dy.permute_unchecked(&order).reshape_unchecked(flat.shape().clone());
    let square = Shape::from([rows, n, n]);
    let all = flat.reshape_unchecked(Shape::from([rows, 1, n])).broadcast_unchecked(&square);
    let own = Tensor::eye(n, DType::Bool, x.device()).broadcast_unchecked(&square);
    let others = own.select(&all.like(1.0), &all).reduce(BinaryOp::Mul, 0b100);
    let slopes = others.reshape_unchecked(flat.shape().clone());
    let dx = slopes.grad_with(&dy, &[&flat])?.remove(0);
    let mut back = vec![0; order.len()];
    for (i, &axis) in order.iter().enumerate() {
        back[axis] = i;
    }
    let dx = dx.unwrap_or_else(|| flat.like(0.0)).reshape_unchecked(shape);
    Ok(dx.permute_unchecked(&back))
}

#[track_caller]
fn scatter(
    axis: usize,
    op: Option<BinaryOp>,
    index: &Tensor,
    src: Option<&Tensor>,
    dy: &Tensor,
) -> Result<Cotangents> {
    let src = src.expect("invariant: scatters have three sources");
    let picked = dy.gather_unchecked(axis, index);
    match op {
        Some(BinaryOp::Add) => Ok([Some(dy.clone()), None, Some(picked)]),
        None => {
            let kept = dy.scatter_unchecked(axis, None, index, &src.like(0.0));
            // Of several writes to one place the last holds: an element has a gradient if its
            // own number is what a scatter of numbers leaves there.
            let numbers = Tensor::iota(src.numel(), DType::I64, src.device());
            let numbers = numbers.reshape_unchecked(src.shape().clone());
            let none = Tensor::full(dy.shape().clone(), -1i64, dy.device());
            let left = none.scatter_unchecked(axis, None, index, &numbers);
            let held = left.gather_unchecked(axis, index).combine(BinaryOp::Eq, &numbers);
            Ok([Some(kept), None, Some(held.select(&picked, &picked.like(0.0)))])
        }
        Some(op) => {
            let reason = format!("a scatter with {op} has no gradient rule");
            Err(Tensor::argument_error("grad", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Runtime};

    #[test]
    fn unreachable_is_none_and_freed_history_is_an_error() {
        let device = Runtime::default().device("reference").unwrap();
        let (x, z) = (Tensor::scalar(2f32, &device), Tensor::scalar(1f32, &device));
        let y = x.exp();
        assert!(y.grad(&[&z]).unwrap()[0].is_none());
        assert!(y.cast(DType::I32).grad(&[&x]).is_err());
        let loss = y.square();
        loss.realize().unwrap();
        assert!(loss.grad(&[&x]).is_err(), "the history is gone");
        let w = Tensor::scalar(2f32, &device).tracked();
        let loss = w.square();
        loss.realize().unwrap();
        let dw = loss.grad(&[&w]).unwrap().remove(0).unwrap();
        assert_eq!(dw.item::<f32>().unwrap(), 4.0);
    }

    #[test]
    fn gradients_are_those_found_among_untracked_targets() {
        let device = Runtime::default().device("reference").unwrap();
        let x = Tensor::new([1f32, 2.0], &device).unwrap().tracked();
        let c = Tensor::new([3f32, 5.0], &device).unwrap();
        // Untracked tensors beside the way, on it twice, and a tensor used by three.
        let y = x.mul(c.exp()).unwrap().softmax(0).unwrap();
        let loss = y.mul(&y).unwrap().add(y.mul(&c).unwrap()).unwrap().add(&x).unwrap();
        let alone = loss.grad(&[&x]).unwrap().remove(0).unwrap();
        let both = loss.grad(&[&c, &x, &y, &x]).unwrap();
        let [dc, dx, dy, again] = [0, 1, 2, 3].map(|i| both[i].clone().unwrap());
        for other in [dx, again] {
            assert_eq!(alone.to_vec::<f32>().unwrap(), other.to_vec::<f32>().unwrap());
        }
        assert!(dc.to_vec::<f32>().unwrap().iter().all(|x| x.is_finite()));
        let want = y.mul(2.0).unwrap().add(&c).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(dy.to_vec::<f32>().unwrap(), want);
    }

    /// The product of the floats among `x`, with a rule if asked for.
    fn product(x: &[Tensor], has_rule: bool) -> Result<Tensor> {
        let floats = || x.iter().filter(|x| x.dtype().is_float()).map(|x| x.cast(DType::F64));
        let y = floats().try_fold(x[0].ones_like().cast(DType::F64), |y, x| y.mul(x))?;
        if !has_rule {
            return Ok(y);
        }
        let rule = |x: &[Tensor], y: &Tensor, dy: &Tensor| {
            let one = |x: &Tensor| {
                let slope = y.div(x.cast(DType::F64))?.mul(dy)?.cast(x.dtype());
                Ok(Some(slope).filter(|_| x.dtype().is_float()))
            };
            x.iter().map(one).collect()
        };
        y.detach().with_gradient(&x.iter().collect::<Vec<_>>(), rule)
    }

    /// Up to seven inputs: of three dtypes, one an integer, one twice, tracked or not.
    fn inputs(n: usize, device: &crate::Device) -> Vec<Tensor> {
        let data = |i: usize| [1.5 + i as f64, 0.5 - i as f64, 2.0];
        let mut x: Vec<Tensor> = (0..n).map(|i| Tensor::new(data(i), device).unwrap()).collect();
        if n > 3 {
            x[1] = x[1].cast(DType::F32).tracked();
            x[2] = x[2].cast(DType::I32);
            x[3] = x[0].clone();
        }
        x.iter()
            .enumerate()
            .map(|(i, x)| if i % 2 == 1 { x.tracked() } else { x.clone() })
            .collect()
    }

    #[test]
    fn rules_of_any_number_of_inputs_give_the_derived_gradients() {
        let device = Runtime::default().device("reference").unwrap();
        for n in 1..8 {
            let x = inputs(n, &device);
            let targets: Vec<&Tensor> = x.iter().collect();
            let found = [true, false].map(|has_rule| {
                let y = product(&x, has_rule).unwrap();
                let first = y.square().grad(&targets).unwrap();
                let both = first.iter().flatten().fold(y.clone(), |sum, dx| sum.add(dx).unwrap());
                let second = both.grad(&targets).unwrap();
                let values = |dx: Vec<Option<Tensor>>| {
                    let dx = dx
                        .into_iter()
                        .map(|dx| Some(dx?.cast(DType::F64).to_vec::<f64>().unwrap()));
                    dx.collect::<Vec<_>>()
                };
                (values(first), values(second))
            });
            let [by_rule, derived] = found;
            for (a, b) in [(by_rule.0, derived.0), (by_rule.1, derived.1)] {
                for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                    assert_eq!(a.is_some(), x[i].dtype().is_float(), "input {i} of {n}");
                    let (a, b) = (a.iter().flatten(), b.iter().flatten());
                    let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-4 * b.abs();
                    assert!(a.zip(b).all(is_close), "input {i} of {n}");
                }
            }
        }
    }

    #[test]
    fn rules_of_many_inputs_work_for_all_examples_of_a_batch() {
        let device = Runtime::default().device("reference").unwrap();
        let matrix = |i: usize| [[1.5 + i as f64, 2.0], [0.5, 1.25 - i as f64]];
        let matrix = |i: usize| Tensor::new(matrix(i), &device).unwrap();
        let row = |i: usize| Tensor::new([0.5 - i as f64, 3.0], &device).unwrap();
        let is_close = |[a, b]: [Vec<f64>; 2]| {
            let is_close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
            a.len() == b.len() && a.iter().zip(&b).all(is_close)
        };
        // Lists of inputs of which some, or none, have an example for each row.
        for n_batched in [5, 4, 2, 1] {
            let all: Vec<Tensor> =
                (0..5).map(|i| if i < n_batched { matrix(i) } else { row(i) }).collect();
            let all: Vec<&Tensor> = all.iter().collect();
            let axes: Vec<Option<isize>> =
                (0..5).map(|i| (i < n_batched).then_some((i % 2) as isize)).collect();
            let inside = [true, false].map(|has_rule| {
                let slopes = |x: &[Tensor]| {
                    let dx = product(x, has_rule)?.square().grad(&[&x[1], &x[4]])?;
                    let dx: Vec<Tensor> = dx.into_iter().flatten().collect();
                    dx[0].mul(&dx[1])
                };
                Tensor::vmap(slopes, &all, &axes, 0).unwrap().to_vec::<f64>().unwrap()
            });
            assert!(is_close(inside), "{n_batched}: gradients inside");
            let outside = [true, false].map(|has_rule| {
                let y = Tensor::vmap(|x| product(x, has_rule), &all, &axes, 0).unwrap();
                let dx = y.square().grad(&all).unwrap().into_iter().flatten();
                dx.flat_map(|dx| dx.to_vec::<f64>().unwrap()).collect()
            });
            assert!(is_close(outside), "{n_batched}: gradients outside");
        }
    }

    #[test]
    fn a_rule_of_ten_thousand_inputs_has_one_node_for_each() {
        let device = Runtime::default().device("reference").unwrap();
        let x: Vec<Tensor> =
            (0..10_000).map(|i| Tensor::scalar(i as f64, &device).tracked()).collect();
        let inputs: Vec<&Tensor> = x.iter().collect();
        let rule =
            |x: &[Tensor], _: &Tensor, dy: &Tensor| Ok(x.iter().map(|x| Some(x + dy)).collect());
        let y = Tensor::scalar(1f64, &device).with_gradient(&inputs, rule).unwrap();
        let dx = y.grad(&[&x[0], &x[9_999]]).unwrap();
        let dx = dx.into_iter().map(|dx| dx.unwrap().item::<f64>().unwrap());
        assert_eq!(dx.collect::<Vec<_>>(), [1.0, 10_000.0]);
        let short = |_: &[Tensor], _: &Tensor, dy: &Tensor| Ok(vec![Some(dy.clone()); 2]);
        let y = Tensor::scalar(1f64, &device).with_gradient(&inputs[..3], short).unwrap();
        let message = y.grad(&[&x[0]]).unwrap_err().to_string();
        assert!(message.contains("one cotangent, or `None`, for each input"), "{message}");
    }

    #[test]
    fn a_million_ops_differentiate_without_recursion() {
        let device = Runtime::default().device("reference").unwrap();
        let x = Tensor::new([1f32, 2.0], &device).unwrap();
        let mut y = x.clone();
        for _ in 0..1_000_000 {
            y = y.neg();
        }
        let dx = y.grad(&[&x]).unwrap().remove(0).unwrap();
        drop(y);
        assert_eq!(dx.shape(), &Shape::from([2]));
    }
}
