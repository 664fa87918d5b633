//! Programs over the public tensor interface, as data.
//!
//! A program is a list of inputs and of steps, each of which names earlier values by number. It
//! can be run on tensors, evaluated by the oracle, printed as Rust that can be pasted into a
//! test, and made smaller while it still fails.

use crate::oracle::Array;
use crate::{apply, oracle};
use std::fmt;
use zyx_core::{BinaryOp, DType, Device, Result, Tensor, UnaryOp};

/// One call of a tensor method. Operands are positions of earlier values.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "each variant is the tensor method of its name")]
pub enum Step {
    Unary(UnaryOp, usize),
    Binary(BinaryOp, usize, usize),
    Number(BinaryOp, usize, f64),
    Where(usize, usize, usize),
    Cast(usize, DType),
    Reshape(usize, Vec<usize>),
    Permute(usize, Vec<usize>),
    Expand(usize, Vec<usize>),
    Pad(usize, Vec<(usize, usize)>),
    Shrink(usize, Vec<(usize, usize)>),
    Flip(usize, u16),
    Stride(usize, usize, usize, usize),
    Reduce(Reduction, usize, u16, bool),
    Position(BinaryOp, usize, usize),
    /// `cumsum`, `cumprod`, `cummax` or `cummin` along an axis.
    Scan(BinaryOp, usize, usize),
    Softmax(usize, usize),
    LogCumsumExp(usize, usize),
    Matmul(usize, usize),
    Gather(usize, usize, usize),
    Select(usize, usize, usize),
    ScatterAdd(usize, usize, usize, usize),
    Cat(usize, usize, usize),
    Contiguous(usize),
}

/// What a reduction combines with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is the tensor method of its name")]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    Any,
    All,
}

/// Inputs, steps, and which values are read in the end.
#[derive(Clone, Debug)]
pub struct Program {
    /// The first values.
    pub inputs: Vec<Array>,
    /// Each makes the next value.
    pub steps: Vec<Step>,
    /// Positions of the values that are compared.
    pub outputs: Vec<usize>,
}

fn axes(mask: u16) -> Vec<isize> {
    (0..16).filter(|axis| mask >> axis & 1 == 1).collect()
}

impl Step {
    /// The positions of the operands.
    pub fn operands(&self) -> Vec<usize> {
        match *self {
            Step::Unary(_, x) | Step::Number(_, x, _) | Step::Cast(x, _) => vec![x],
            Step::Reshape(x, _) | Step::Permute(x, _) | Step::Expand(x, _) => vec![x],
            Step::Pad(x, _) | Step::Shrink(x, _) | Step::Flip(x, _) => vec![x],
            Step::Stride(x, ..) | Step::Reduce(_, x, ..) | Step::Position(_, x, _) => vec![x],
            Step::Scan(_, x, _) | Step::Softmax(x, _) | Step::LogCumsumExp(x, _) => vec![x],
            Step::Contiguous(x) => vec![x],
            Step::Binary(_, x, y) | Step::Matmul(x, y) | Step::Cat(x, y, _) => vec![x, y],
            Step::Gather(x, _, i) | Step::Select(x, _, i) => vec![x, i],
            Step::Where(c, x, y) => vec![c, x, y],
            Step::ScatterAdd(x, _, i, s) => vec![x, i, s],
        }
    }

    /// The same step on other operands.
    #[must_use]
    pub fn renumbered(&self, f: impl Fn(usize) -> usize) -> Step {
        let mut step = self.clone();
        match &mut step {
            Step::Unary(_, x) | Step::Number(_, x, _) | Step::Cast(x, _) => *x = f(*x),
            Step::Reshape(x, _) | Step::Permute(x, _) | Step::Expand(x, _) => *x = f(*x),
            Step::Pad(x, _) | Step::Shrink(x, _) | Step::Flip(x, _) => *x = f(*x),
            Step::Stride(x, ..) | Step::Reduce(_, x, ..) | Step::Position(_, x, _) => *x = f(*x),
            Step::Scan(_, x, _) | Step::Softmax(x, _) | Step::LogCumsumExp(x, _) => *x = f(*x),
            Step::Contiguous(x) => *x = f(*x),
            Step::Binary(_, x, y) | Step::Matmul(x, y) | Step::Cat(x, y, _) => {
                (*x, *y) = (f(*x), f(*y));
            }
            Step::Gather(x, _, i) | Step::Select(x, _, i) => (*x, *i) = (f(*x), f(*i)),
            Step::Where(c, x, y) => (*c, *x, *y) = (f(*c), f(*x), f(*y)),
            Step::ScatterAdd(x, _, i, s) => (*x, *i, *s) = (f(*x), f(*i), f(*s)),
        }
        step
    }

    /// The tensor this step makes of earlier ones.
    ///
    /// # Errors
    /// Where the method gives one.
    pub fn run(&self, v: &[Tensor]) -> Result<Tensor> {
        match self {
            Step::Unary(op, x) => apply::unary(*op, &v[*x]),
            Step::Binary(op, x, y) => apply::binary(*op, &v[*x], &v[*y]),
            Step::Number(BinaryOp::Mul, x, n) => v[*x].mul(*n),
            Step::Number(BinaryOp::Max, x, n) => v[*x].maximum(*n),
            Step::Number(_, x, n) => v[*x].add(*n),
            Step::Where(c, x, y) => v[*c].where_(&v[*x], &v[*y]),
            Step::Cast(x, dtype) => Ok(v[*x].cast(*dtype)),
            Step::Reshape(x, dims) => v[*x].reshape(dims.clone()),
            Step::Permute(x, order) => {
                v[*x].permute(order.iter().map(|&a| a as isize).collect::<Vec<_>>())
            }
            Step::Expand(x, dims) => v[*x].expand(dims.clone()),
            Step::Pad(x, padding) => v[*x].pad(padding),
            Step::Shrink(x, ranges) => v[*x].shrink(ranges),
            Step::Flip(x, mask) => v[*x].flip(axes(*mask).as_slice()),
            Step::Stride(x, axis, start, step) => v[*x].stride(*axis as isize, *start, *step),
            Step::Reduce(kind, x, mask, keep) => reduce(*kind, &v[*x], *mask, *keep),
            Step::Position(BinaryOp::Max, x, axis) => v[*x].argmax(*axis as isize),
            Step::Position(_, x, axis) => v[*x].argmin(*axis as isize),
            Step::Scan(op, x, axis) => match op {
                BinaryOp::Mul => v[*x].cumprod(*axis as isize),
                BinaryOp::Max => v[*x].cummax(*axis as isize).map(|found| found.0),
                BinaryOp::Min => v[*x].cummin(*axis as isize).map(|found| found.0),
                _ => v[*x].cumsum(*axis as isize),
            },
            Step::Softmax(x, axis) => v[*x].softmax(*axis as isize),
            Step::LogCumsumExp(x, axis) => v[*x].logcumsumexp(*axis as isize),
            Step::Matmul(x, y) => v[*x].matmul(&v[*y]),
            Step::Gather(x, axis, i) => v[*x].gather(*axis as isize, &v[*i].unchecked_indices()),
            Step::Select(x, axis, i) => {
                v[*x].index_select(*axis as isize, &v[*i].unchecked_indices())
            }
            Step::ScatterAdd(x, axis, i, s) => {
                v[*x].scatter_add(*axis as isize, &v[*i].unchecked_indices(), &v[*s])
            }
            Step::Cat(x, y, axis) => Tensor::cat(&[&v[*x], &v[*y]], *axis as isize),
            Step::Contiguous(x) => Ok(v[*x].contiguous()),
        }
    }

    /// The array this step makes of earlier ones.
    pub fn eval(&self, v: &[Array]) -> Array {
        match self {
            Step::Unary(op, x) => v[*x].unary(*op),
            Step::Binary(BinaryOp::Mul, x, y) => v[*x].product(&v[*y]),
            Step::Binary(op, x, y) => v[*x].binary(*op, &v[*y]),
            Step::Number(op, x, n) => {
                let x = &v[*x];
                let dtype = if x.dtype.is_float() { x.dtype } else { DType::F32 };
                let n = Array::reals(dtype, &[], &[*n]);
                match op {
                    BinaryOp::Mul => x.product(&n),
                    BinaryOp::Max => x.binary(*op, &n),
                    _ => x.binary(BinaryOp::Add, &n),
                }
            }
            Step::Where(c, x, y) => v[*c].select(&v[*x], &v[*y]),
            Step::Cast(x, dtype) => v[*x].cast(*dtype),
            Step::Reshape(x, dims) => v[*x].reshape(dims),
            Step::Permute(x, order) => v[*x].permute(order),
            Step::Expand(x, dims) => v[*x].expand(dims),
            Step::Pad(x, padding) => v[*x].pad(padding),
            Step::Shrink(x, ranges) => v[*x].shrink(ranges),
            Step::Flip(x, mask) => v[*x].flip(*mask),
            Step::Stride(x, axis, start, step) => v[*x].stride(*axis, *start, *step),
            Step::Reduce(kind, x, mask, keep) => {
                let x = &v[*x];
                match kind {
                    Reduction::Sum => x.sum(*mask, *keep),
                    Reduction::Prod => x.prod(*mask, *keep),
                    Reduction::Max => x.reduce(BinaryOp::Max, *mask, *keep),
                    Reduction::Min => x.reduce(BinaryOp::Min, *mask, *keep),
                    Reduction::Any => x.cast(DType::Bool).reduce(BinaryOp::Or, *mask, *keep),
                    Reduction::All => x.cast(DType::Bool).reduce(BinaryOp::And, *mask, *keep),
                }
            }
            Step::Position(op, x, axis) => v[*x].arg_extreme(*op, *axis),
            Step::Scan(op, x, axis) => {
                let (x, adds) = (&v[*x], matches!(op, BinaryOp::Add | BinaryOp::Mul));
                let dtype = if adds { oracle::reduce::summed(x.dtype) } else { x.dtype };
                x.cast(dtype).scan(*op, *axis, false)
            }
            Step::Softmax(x, axis) => v[*x].softmax(*axis),
            Step::LogCumsumExp(x, axis) => v[*x].log_cumsum_exp(*axis),
            Step::Matmul(x, y) => v[*x].matmul(&v[*y]),
            Step::Gather(x, axis, i) => v[*x].gather(*axis, &v[*i]),
            Step::Select(x, axis, i) => v[*x].gather(*axis, &v[*x].along(*axis, &v[*i])),
            Step::ScatterAdd(x, axis, i, s) => v[*x].scatter(*axis, true, &v[*i], &v[*s]),
            Step::Cat(x, y, axis) => {
                let dtype = oracle::arithmetic::promote(v[*x].dtype, v[*y].dtype);
                Array::cat(&[v[*x].cast(dtype), v[*y].cast(dtype)], *axis)
            }
            Step::Contiguous(x) => v[*x].clone(),
        }
    }
}

fn reduce(kind: Reduction, x: &Tensor, mask: u16, keep: bool) -> Result<Tensor> {
    let axes = axes(mask);
    let axes = axes.as_slice();
    match (kind, keep) {
        (Reduction::Sum, false) => x.sum(axes),
        (Reduction::Sum, true) => x.sum_keepdim(axes),
        (Reduction::Prod, false) => x.prod(axes),
        (Reduction::Prod, true) => x.prod_keepdim(axes),
        (Reduction::Max, false) => x.max(axes),
        (Reduction::Max, true) => x.max_keepdim(axes),
        (Reduction::Min, false) => x.min(axes),
        (Reduction::Min, true) => x.min_keepdim(axes),
        (Reduction::Any, false) => x.any(axes),
        (Reduction::Any, true) => x.any_keepdim(axes),
        (Reduction::All, false) => x.all(axes),
        (Reduction::All, true) => x.all_keepdim(axes),
    }
}

impl Program {
    /// The expected value at every position.
    pub fn eval(&self) -> Vec<Array> {
        let mut values = self.inputs.clone();
        for step in &self.steps {
            let value = step.eval(&values);
            values.push(value);
        }
        values
    }

    /// The pending outputs on a device.
    ///
    /// # Errors
    /// Where a method gives one.
    pub fn build(&self, device: &Device) -> Result<Vec<Tensor>> {
        let inputs = self.inputs.iter().map(|x| x.tensor(device)).collect::<Result<Vec<_>>>()?;
        self.build_on(&inputs)
    }

    /// The pending outputs of these inputs.
    ///
    /// # Errors
    /// Where a method gives one.
    pub fn build_on(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut values = inputs.to_vec();
        for step in &self.steps {
            let value = step.run(&values)?;
            values.push(value);
        }
        Ok(self.outputs.iter().map(|&i| values[i].clone()).collect())
    }

    /// Without the values that no output needs.
    #[must_use]
    pub fn pruned(&self) -> Program {
        let n = self.inputs.len();
        let mut needed = vec![false; n + self.steps.len()];
        self.outputs.iter().for_each(|&i| needed[i] = true);
        for (i, step) in self.steps.iter().enumerate().rev() {
            if needed[n + i] {
                step.operands().into_iter().for_each(|x| needed[x] = true);
            }
        }
        let mut place = Vec::with_capacity(needed.len());
        let mut next = 0;
        for &keep in &needed {
            place.push(next);
            next += keep as usize;
        }
        let inputs = self.inputs.iter().zip(&needed).filter(|x| *x.1).map(|x| x.0.clone());
        let steps = self.steps.iter().zip(&needed[n..]).filter(|x| *x.1);
        Program {
            inputs: inputs.collect(),
            steps: steps.map(|x| x.0.renumbered(|i| place[i])).collect(),
            outputs: self.outputs.iter().map(|&i| place[i]).collect(),
        }
    }

    /// A smaller program for which `fails` holds as it does for this one.
    #[must_use]
    pub fn shrunk(&self, fails: impl Fn(&Program) -> bool) -> Program {
        let mut best = self.clone();
        // Each round either makes the program smaller or ends the search.
        loop {
            let Some(smaller) = best.smaller().into_iter().find(|p| fails(p)) else {
                return best;
            };
            best = smaller;
        }
    }

    /// Candidates with fewer outputs or steps.
    fn smaller(&self) -> Vec<Program> {
        let mut candidates = Vec::new();
        if self.outputs.len() > 1 {
            for &output in &self.outputs {
                candidates.push(Program { outputs: vec![output], ..self.clone() }.pruned());
            }
        }
        let n = self.inputs.len();
        let values = self.eval();
        for (i, step) in self.steps.iter().enumerate() {
            let here = n + i;
            // The result of the step becomes an input of the same value.
            let certain = values[here].data.iter().all(|v| v.certain().is_some());
            if certain {
                let shift = |x: usize| if x >= n { x + 1 } else { x };
                let mut program = self.clone();
                program.inputs.push(values[here].clone());
                program.steps = self
                    .steps
                    .iter()
                    .map(|s| s.renumbered(|x| if x == here { n } else { shift(x) }))
                    .collect();
                let outputs = self.outputs.iter().filter(|&&o| o != here);
                program.outputs = outputs.map(|&o| shift(o)).collect();
                if !program.outputs.is_empty() {
                    candidates.push(program.pruned());
                }
            }
            // The step's operand takes its place.
            for operand in step.operands() {
                let same = values[operand].dims == values[here].dims
                    && values[operand].dtype == values[here].dtype;
                if same {
                    let swap = |x: usize| if x == here { operand } else { x };
                    let mut program = self.clone();
                    program.steps = self.steps.iter().map(|s| s.renumbered(swap)).collect();
                    program.outputs.iter_mut().for_each(|o| *o = swap(*o));
                    candidates.push(program.pruned());
                }
            }
        }
        let cost = |p: &Program| p.steps.len() * 4 + p.inputs.len() + p.outputs.len();
        candidates.retain(|p| cost(p) < cost(self) && p.steps.len() <= self.steps.len());
        candidates
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, x) in self.inputs.iter().enumerate() {
            write!(f, "v{i}: {} {:?} = [", x.dtype, x.dims)?;
            for (k, v) in x.data.iter().take(40).enumerate() {
                write!(f, "{}{v}", if k > 0 { ", " } else { "" })?;
            }
            writeln!(f, "{}]", if x.numel() > 40 { ", ..." } else { "" })?;
        }
        for (i, step) in self.steps.iter().enumerate() {
            writeln!(f, "v{} = {step:?}", self.inputs.len() + i)?;
        }
        write!(f, "outputs {:?}", self.outputs)
    }
}
