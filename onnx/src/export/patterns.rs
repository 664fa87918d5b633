//! Operators of ONNX that are many operations here, found by what the tensor methods make.
//!
//! A row names an operator and calls the method of the same meaning on tensors without values; the operations that it
//! makes are the pattern. If those of a step, down to its operands, are the same in every trace, the step is that
//! operator. So the patterns follow the methods, and a step that is made in another way is written as its operations.

use super::Exporter;
use super::sizes::Size;
use super::writer::{Name, float, int, string};
use crate::proto::AttributeProto;
use std::collections::HashMap;
use std::sync::Arc;
use zyx_core::tensor::{StepOp, Steps};
use zyx_core::{BinaryOp, DType, Device, Result, Shape, Tensor, UnaryOp};

/// A step that is one operator.
pub(super) struct Pattern {
    kind: &'static str,
    pub(super) reads: Vec<usize>,
    attributes: Vec<AttributeProto>,
    role: Role,
}

/// What is special about an operator.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    Plain,
    /// Rows where everything is `-inf` are zeros.
    Masked,
    /// The first or second result of `TopK`, which takes as many along an axis as the result has.
    Sorted {
        result: usize,
        axis: usize,
    },
}

/// The shape of an operand in each trace.
pub(super) enum Extents {
    /// That of a step.
    Step(usize),
    /// The last axes of a step.
    Tail(usize, usize),
    /// One axis of a step.
    Axis(usize, usize),
    Fixed(Shape),
}

pub(super) type Method = Box<dyn Fn(&[Tensor]) -> Result<Tensor>>;

/// What a step may be.
pub(super) struct Candidate {
    kind: &'static str,
    operands: Vec<Extents>,
    attributes: Vec<AttributeProto>,
    /// Of the operands.
    dtype: DType,
    role: Role,
    method: Method,
}

impl Candidate {
    pub(super) fn new(
        kind: &'static str,
        operands: Vec<Extents>,
        attributes: Vec<AttributeProto>,
        method: Method,
    ) -> Candidate {
        Candidate { kind, operands, attributes, dtype: DType::F32, role: Role::Plain, method }
    }
}

type Plain = (&'static str, &'static str, fn(&Tensor) -> Tensor);

/// Operators of one operand and its shape, with an attribute.
const PLAIN: &[Plain] = &[
    ("Sigmoid", "", Tensor::sigmoid),
    ("Gelu", "tanh", Tensor::gelu),
    ("Gelu", "none", Tensor::gelu_exact),
    ("Softplus", "", Tensor::softplus),
    ("Selu", "", Tensor::selu),
    ("Mish", "", Tensor::mish),
];

/// Most candidates of one kind that are tried for a step.
pub(super) const MAX_CANDIDATES: usize = 400;

impl Exporter<'_> {
    /// The operator that a step is.
    pub(super) fn pattern(&self, id: usize) -> Option<Pattern> {
        if let Some(sorted) = self.sorted(id) {
            return Some(sorted);
        }
        let dtype = self.steps[id].dtype;
        if !matches!(dtype, DType::F16 | DType::F32) {
            return None;
        }
        if let Some(softmax) = self.masked_softmax(id) {
            return Some(softmax);
        }
        let root = self.rounded(id);
        let candidates = match &self.steps[root].op {
            StepOp::Binary(_) => {
                let plain = self.plain(id).into_iter().chain(self.softmax(id, root));
                let norms = self.norms(id, root);
                plain.chain(norms).chain(self.sliding(root)).collect()
            }
            StepOp::Unary(_) | StepOp::Ternary(_) => self.plain(id),
            StepOp::Reshape | StepOp::Shrink(_) => self.sliding(root),
            _ => return None,
        };
        candidates
            .into_iter()
            .find_map(|candidate| self.matched(id, Candidate { dtype, ..candidate }))
    }

    pub(super) fn write_pattern(&mut self, id: usize, pattern: &Pattern) -> Name {
        let names: Vec<Name> = pattern.reads.iter().map(|&x| self.name(x)).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (kind, attributes) = (pattern.kind, pattern.attributes.clone());
        match pattern.role {
            Role::Plain => self.writer.node(kind, &names, attributes),
            Role::Masked => {
                let dtype = self.steps[id].dtype;
                let y = self.writer.node(kind, &names, attributes);
                let last = self.writer.list(&[-1]);
                let top =
                    self.writer.node("ReduceMax", &[names[0], &last], vec![int("keepdims", 1)]);
                let least = self.writer.number(dtype, f64::NEG_INFINITY);
                let none = self.writer.node("Equal", &[&top, &least], Vec::new());
                let zero = self.writer.number(dtype, 0.0);
                self.writer.select(dtype, &none, &zero, &y)
            }
            Role::Sorted { result, axis } => {
                let size = self.steps[id].dims.as_ref().map(|dims| dims[axis].clone());
                let count = self.writer.size(&size.unwrap_or(Size::fixed(0)));
                names.push(&count);
                let [values, order] = self.writer.several(kind, &names, attributes);
                if result == 0 { values } else { order }
            }
        }
    }

    /// Softmax as attention computes it: rows where everything is `-inf` give zeros. Only what hides scores makes such
    /// rows, so the operator alone is enough where nothing does.
    fn masked_softmax(&self, id: usize) -> Option<Pattern> {
        let op = |x: usize| &self.steps[x].op;
        let sources = |x: usize| &self.steps[x].sources[..];
        let peeled = |mut x: usize| {
            while let (StepOp::Expand, [source]) = (op(x), sources(x)) {
                x = *source;
            }
            x
        };
        let number = |x: usize, wanted: f64| {
            let x = peeled(x);
            matches!(op(x), StepOp::Const(number) if number.to_f64() == wanted)
        };
        let two = |x: usize, wanted: BinaryOp| match (op(x), sources(x)) {
            (StepOp::Binary(op), &[a, b]) if *op == wanted => Some([a, b]),
            _ => None,
        };
        // What is chosen where everything is `-inf`, a zero, and what is chosen elsewhere.
        let guarded = |x: usize| match (op(x), sources(x)) {
            (StepOp::Ternary(_), &[none, zero, y]) if number(zero, 0.0) => {
                Some((peeled(none), peeled(y)))
            }
            _ => None,
        };
        let last = self.steps[id].tensor.rank().checked_sub(1)?;
        let reduced = |x: usize, wanted: BinaryOp| match (op(x), sources(x)) {
            (StepOp::Reduce { op, axes }, &[y]) if *op == wanted && axes[..] == [last] => Some(y),
            _ => None,
        };
        let [e, scale] = two(id, BinaryOp::Mul)?;
        let (none, inverse) = guarded(peeled(scale))?;
        let (StepOp::Unary(UnaryOp::Recip), &[sum]) = (op(inverse), sources(inverse)) else {
            return None;
        };
        if reduced(sum, BinaryOp::Add)? != e {
            return None;
        }
        let (StepOp::Unary(UnaryOp::Exp), &[moved]) = (op(e), sources(e)) else { return None };
        let [x, shift] = two(moved, BinaryOp::Sub)?;
        let (same, top) = guarded(peeled(shift))?;
        let [compared, least] = two(none, BinaryOp::Eq)?;
        let fits = same == none
            && peeled(compared) == top
            && number(least, f64::NEG_INFINITY)
            && reduced(top, BinaryOp::Max)? == x;
        let hides = matches!(op(x), StepOp::Ternary(_) | StepOp::Binary(BinaryOp::Add));
        fits.then(|| Pattern {
            kind: "Softmax",
            reads: vec![x],
            attributes: vec![int("axis", -1)],
            role: if hides { Role::Masked } else { Role::Plain },
        })
    }

    /// The order, or the elements, that a sort along an axis gives, all or the first ones.
    fn sorted(&self, id: usize) -> Option<Pattern> {
        let step = &self.steps[id];
        let may_be = match step.dtype {
            DType::I64 => {
                !matches!(step.op, StepOp::Unary(_) | StepOp::Binary(_) | StepOp::Reduce { .. })
            }
            _ => matches!(step.op, StepOp::Ternary(_)),
        };
        if !may_be || !self.sorts[id] {
            return None;
        }
        let result = usize::from(step.dtype == DType::I64);
        let shape = step.tensor.shape();
        let mut tried = 0;
        for x in self.around(id) {
            let (source, dtype) = (&self.steps[x], self.steps[x].dtype);
            let longer = |axis: &usize| source.tensor.shape()[*axis] != shape[*axis];
            if source.tensor.rank() != shape.rank() || result == 0 && dtype != step.dtype {
                continue;
            }
            let along: Vec<usize> = (0..shape.rank()).filter(longer).collect();
            let axes = match along[..] {
                [] => (0..shape.rank()).collect(),
                [axis] if source.tensor.shape()[axis] > shape[axis] => vec![axis],
                _ => continue,
            };
            for (axis, largest) in axes.into_iter().flat_map(|axis| [(axis, false), (axis, true)]) {
                tried += 1;
                if tried > MAX_CANDIDATES {
                    return None;
                }
                let (n, whole) = (shape[axis], along.is_empty());
                let method: Method = Box::new(move |x| {
                    let (values, order) = match whole {
                        true => x[0].sort(axis as isize, largest)?,
                        false => x[0].topk(n, axis as isize, largest)?,
                    };
                    Ok(if result == 0 { values } else { order })
                });
                let attributes = vec![
                    int("axis", axis as i64),
                    int("largest", i64::from(largest)),
                    int("sorted", 1),
                ];
                let role = Role::Sorted { result, axis };
                let operands = vec![Extents::Step(x)];
                let candidate =
                    Candidate { kind: "TopK", operands, attributes, dtype, role, method };
                if let Some(found) = self.matched(id, candidate) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Steps that a step is made of: those that no bits are part of, the nearest first, then the others, which may be keys of
    /// the sort itself, the farthest first.
    fn around(&self, id: usize) -> Vec<usize> {
        let mut all = vec![id];
        let mut at = 0;
        while at < all.len() && all.len() < 300 {
            for &source in &self.steps[all[at]].sources {
                if !all.contains(&source) {
                    all.push(source);
                }
            }
            at += 1;
        }
        all.retain(|&x| x != id && !matches!(self.steps[x].op, StepOp::Const(_)));
        let (keys, mut others): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|&x| self.sorts[x]);
        others.extend(keys.into_iter().rev());
        others
    }

    /// By step, whether it is made of bits that ONNX has no operator for, as keys of sorts are, or of positions that
    /// are counted.
    pub(super) fn made_by_sorts(&self) -> Vec<bool> {
        let mut sorts: Vec<bool> = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            let own =
                matches!(step.op, StepOp::Bitcast | StepOp::SortRows { .. } | StepOp::RadixScatter);
            let below = step.sources.iter().any(|&source| sorts[source]);
            sorts.push(own || below);
        }
        sorts
    }

    /// What a step rounds to halves, or the step.
    fn rounded(&self, id: usize) -> usize {
        let step = &self.steps[id];
        match step.op {
            StepOp::Cast if step.dtype == DType::F16 => step.sources[0],
            _ => id,
        }
    }

    fn matched(&self, id: usize, candidate: Candidate) -> Option<Pattern> {
        let dtype = candidate.dtype;
        let device = self.steps[id].tensor.device();
        let mut found: Option<Vec<usize>> = None;
        for trace in self.traces {
            let shape = |extents: &Extents| {
                let of = |step: &usize| trace.steps[*step].tensor.shape();
                match extents {
                    Extents::Step(step) => of(step).clone(),
                    Extents::Tail(step, n) => Shape::from(&of(step)[of(step).rank() - n..]),
                    Extents::Axis(step, axis) => Shape::from([of(step)[*axis]]),
                    Extents::Fixed(shape) => shape.clone(),
                }
            };
            let shapes: Vec<(Shape, DType)> =
                candidate.operands.iter().map(|operand| (shape(operand), dtype)).collect();
            let template = template(&shapes, device, &candidate.method)?;
            let bound = unify(&template, trace, id, shapes.len())?;
            if *found.get_or_insert_with(|| bound.clone()) != bound {
                return None;
            }
        }
        // A number that stands for an operand is no operand.
        let reads = found?;
        let is_number = |&x: &usize| matches!(self.steps[x].op, StepOp::Const(_));
        let Candidate { kind, attributes, role, .. } = candidate;
        (!reads.iter().any(is_number)).then_some(Pattern { kind, reads, attributes, role })
    }

    fn plain(&self, id: usize) -> Vec<Candidate> {
        let row = |&(kind, approximation, method): &Plain| {
            let attributes = match kind {
                "Gelu" => vec![string("approximate", approximation)],
                _ => Vec::new(),
            };
            let method: Method = Box::new(move |x| Ok(method(&x[0])));
            Candidate::new(kind, vec![Extents::Step(id)], attributes, method)
        };
        PLAIN.iter().map(row).collect()
    }

    fn softmax(&self, id: usize, root: usize) -> Vec<Candidate> {
        let wanted = |op: &StepOp| match op {
            StepOp::Binary(BinaryOp::Mul) => Some("Softmax"),
            StepOp::Binary(BinaryOp::Sub) => Some("LogSoftmax"),
            _ => None,
        };
        let Some(kind) = wanted(&self.steps[root].op) else { return Vec::new() };
        let rank = self.steps[id].tensor.rank();
        let row = |axis: usize| {
            let axis = axis as isize;
            let method: Method = match kind {
                "Softmax" => Box::new(move |x| x[0].softmax(axis)),
                _ => Box::new(move |x| x[0].log_softmax(axis)),
            };
            let attributes = vec![int("axis", axis as i64)];
            Candidate::new(kind, vec![Extents::Step(id)], attributes, method)
        };
        (0..rank).map(row).collect()
    }

    /// Small positive numbers among what a step is made of.
    fn epsilons(&self, root: usize) -> Vec<f64> {
        let mut found = Vec::new();
        let mut list = vec![(root, 0)];
        let mut seen = Vec::new();
        while let Some((x, depth)) = list.pop() {
            if seen.contains(&x) || depth > 14 || seen.len() > 60 {
                continue;
            }
            seen.push(x);
            let step = &self.steps[x];
            if let StepOp::Const(number) = step.op {
                let number = number.to_f64();
                if number > 0.0 && number < 0.1 && !found.contains(&number) {
                    found.push(number);
                }
            }
            list.extend(step.sources.iter().map(|&source| (source, depth + 1)));
        }
        found
    }

    fn norms(&self, id: usize, root: usize) -> Vec<Candidate> {
        let step = &self.steps[root];
        let is_sum = matches!(step.op, StepOp::Binary(BinaryOp::Add));
        let rank = step.tensor.rank();
        if !is_sum || rank == 0 {
            return Vec::new();
        }
        let mut all = Vec::new();
        for eps in self.epsilons(root) {
            // As the caller wrote it: the operator's attribute is a float.
            let attribute = || float("epsilon", eps);
            for n in 1..=rank.min(3) {
                let axes: Vec<isize> = (1..=n as isize).map(|axis| -axis).collect();
                all.push(Candidate::new(
                    "LayerNormalization",
                    vec![Extents::Step(id), Extents::Tail(id, n), Extents::Tail(id, n)],
                    vec![attribute(), int("axis", -(n as i64))],
                    Box::new(move |x| x[0].layer_norm(&axes[..], Some(&x[1]), Some(&x[2]), eps)),
                ));
            }
            if rank >= 2 {
                let vector = || Extents::Axis(id, 1);
                all.push(Candidate::new(
                    "BatchNormalization",
                    vec![Extents::Step(id), vector(), vector(), vector(), vector()],
                    vec![attribute()],
                    Box::new(move |x| {
                        x[0].batch_norm_with(&x[3], &x[4], Some(&x[1]), Some(&x[2]), eps)
                    }),
                ));
            }
        }
        all
    }
}

/// The operations that a method makes.
fn template(operands: &[(Shape, DType)], device: &Device, method: &Method) -> Option<Arc<Steps>> {
    let steps = Steps::trace(operands, device, &[], &[], |x| Ok(vec![method(x)?]));
    steps.ok().map(Arc::new)
}

/// The steps that stand for a template's operands, if a step is made as the template's result is.
fn unify(template: &Steps, trace: &Steps, at: usize, operands: usize) -> Option<Vec<usize>> {
    let mut bound: Vec<Option<usize>> = vec![None; operands];
    let mut known: HashMap<usize, usize> = HashMap::new();
    let mut list = vec![(template.outputs[0], at)];
    while let Some((t, g)) = list.pop() {
        if let Some(&known) = known.get(&t) {
            if known != g {
                return None;
            }
            continue;
        }
        known.insert(t, g);
        let (pattern, step) = (&template.steps[t], &trace.steps[g]);
        let (a, b) = (&pattern.tensor, &step.tensor);
        if a.dtype() != b.dtype() || a.shape() != b.shape() {
            return None;
        }
        match pattern.op {
            StepOp::Input(operand) => bound[operand] = Some(g),
            _ if pattern.op != step.op || pattern.sources.len() != step.sources.len() => {
                return None;
            }
            _ => list.extend(pattern.sources.iter().copied().zip(step.sources.iter().copied())),
        }
    }
    bound.into_iter().collect()
}
