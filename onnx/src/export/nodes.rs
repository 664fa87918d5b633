//! From steps to nodes: which operator a step becomes, and what it reads.

use super::elementwise::Operand;
use super::patterns::Pattern;
use super::products::Product;
use super::sizes::{Number, Size, Symbolic};
use super::writer::{Name, Writer, element, graph, int, ints};
use super::{Exporter, refusal};
use crate::proto::tensor_shape_proto::{Dimension, dimension};
use crate::proto::{GraphProto, TensorShapeProto, TypeProto, ValueInfoProto, type_proto};
use zyx_core::tensor::StepOp;
use zyx_core::{BinaryOp, DType, Result, Scalar};

/// Most elements of what depends on no input and is stored as it comes out.
const MOST_STORED: usize = 1 << 22;

/// How a step is written.
pub(super) enum Choice {
    /// An input or an initialiser.
    Named,
    /// By its value, which depends on no input.
    Stored,
    /// A number, repeated.
    Number,
    Pattern(Pattern),
    Product(Product),
    /// Whether the sign bit of a float is set.
    Sign(usize),
    /// Tensors joined along an axis.
    Joined(Vec<usize>, usize),
    /// The operator of its own, of these operands.
    Own(Vec<usize>),
}

impl Choice {
    /// The steps whose values are read.
    pub(super) fn reads(&self) -> Vec<usize> {
        match self {
            Choice::Named | Choice::Stored | Choice::Number => Vec::new(),
            Choice::Pattern(pattern) => pattern.reads.clone(),
            Choice::Product(product) => product.sides.iter().map(|side| side.step).collect(),
            Choice::Sign(x) => vec![*x],
            Choice::Joined(parts, _) => parts.clone(),
            Choice::Own(operands) => operands.clone(),
        }
    }
}

impl Exporter<'_> {
    pub(super) fn choose(&self, id: usize) -> Choice {
        let step = &self.steps[id];
        match step.op {
            StepOp::Input(_) | StepOp::Value(_) => return Choice::Named,
            StepOp::Const(_) => return Choice::Number,
            _ => {}
        }
        let repeats = matches!(step.op, StepOp::Expand | StepOp::Reshape);
        if step.is_static && !step.has_weights && !repeats && step.tensor.numel() <= MOST_STORED {
            return Choice::Stored;
        }
        if let Some(pattern) = self.pattern(id) {
            return Choice::Pattern(pattern);
        }
        if let Some(product) = self.product(id) {
            return Choice::Product(product);
        }
        if let Some(x) = self.sign_of(id) {
            return Choice::Sign(x);
        }
        if let Some((parts, axis)) = self.joined_parts(id) {
            return Choice::Joined(parts, axis);
        }
        let has_operator = !matches!(
            step.op,
            StepOp::Bitcast
                | StepOp::RadixScatter
                | StepOp::SortRows { .. }
                | StepOp::Fourier { .. }
                | StepOp::Segments { .. }
        );
        if step.is_static && !has_operator {
            return Choice::Stored;
        }
        match step.op {
            StepOp::Unary(_) | StepOp::Binary(_) | StepOp::Ternary(_) => {
                Choice::Own(self.operands(id))
            }
            StepOp::Gather { axis } => match self.vector(step.sources[1], axis) {
                Some(vector) => Choice::Own(vec![step.sources[0], vector]),
                None => Choice::Own(step.sources.clone()),
            },
            _ => Choice::Own(step.sources.clone()),
        }
    }

    /// Operands of an elementwise step without repetitions that broadcasting makes.
    fn operands(&self, id: usize) -> Vec<usize> {
        let step = &self.steps[id];
        let Some(dims) = &step.dims else { return step.sources.clone() };
        let mut operands: Vec<usize> = step.sources.iter().map(|&x| self.unrepeated(x)).collect();
        // Every axis, one of extent 1 too, is one of theirs, or they stay repeated, one after the other.
        for i in 0..operands.len() {
            let has = |x: &usize, axis: usize, size: &Size| {
                let own = self.steps[*x].dims.as_deref().unwrap_or_default();
                let place = (axis + own.len()).checked_sub(dims.len());
                let is_number = matches!(self.steps[*x].op, StepOp::Const(_));
                !is_number && place.is_some_and(|place| own[place] == *size)
            };
            let covers = |axis: usize, size: &Size| operands.iter().any(|x| has(x, axis, size));
            if dims.iter().enumerate().all(|(axis, size)| covers(axis, size)) {
                break;
            }
            operands[i] = step.sources[i];
        }
        operands
    }

    /// What an operand repeats.
    fn unrepeated(&self, mut x: usize) -> usize {
        loop {
            let step = &self.steps[x];
            let Some(&source) = step.sources.first() else { return x };
            let below = &self.steps[source];
            let is_number = matches!(below.op, StepOp::Const(_));
            match step.op {
                StepOp::Expand | StepOp::Reshape if is_number => return source,
                StepOp::Expand => x = source,
                StepOp::Reshape => {
                    let (Some(from), Some(to)) = (&below.dims, &step.dims) else { return x };
                    let Some(more) = to.len().checked_sub(from.len()) else { return x };
                    if to[..more].iter().all(Size::is_one) && to[more..] == from[..] {
                        x = source;
                    } else {
                        return x;
                    }
                }
                _ => return x,
            }
        }
    }

    /// The step whose elements an index has along an axis, if it has the same along all others.
    fn vector(&self, index: usize, axis: usize) -> Option<usize> {
        let view = self.view(index)?;
        let along: Vec<usize> = view.axes.iter().copied().flatten().collect();
        (along == [axis]).then_some(view.step)
    }

    /// The float whose bits are compared with 0 as a signed integer.
    fn sign_of(&self, id: usize) -> Option<usize> {
        let step = &self.steps[id];
        let (StepOp::Binary(BinaryOp::Lt), &[bits, zero]) = (&step.op, &step.sources[..]) else {
            return None;
        };
        let is_zero = matches!(self.steps[zero].op, StepOp::Const(x) if x.to_i64() == 0);
        let (StepOp::Bitcast, &[x]) = (&self.steps[bits].op, &self.steps[bits].sources[..]) else {
            return None;
        };
        let fits = self.steps[bits].dtype.is_signed() && self.steps[x].dtype.is_float();
        (is_zero && fits).then_some(x)
    }

    /// The tensors that a chain of choices joins along an axis.
    fn joined_parts(&self, id: usize) -> Option<(Vec<usize>, usize)> {
        let part_of = |x: usize| -> Option<(usize, usize, &[Size])> {
            let step = &self.steps[x];
            let (StepOp::Pad(_), Some(places)) = (&step.op, &step.places) else { return None };
            let zero = |size: &Size| size.constant() == Some(0);
            let mut padded = (0..places.len() / 2)
                .filter(|i| !zero(&places[2 * i]) || !zero(&places[2 * i + 1]));
            let (axis, None) = (padded.next()?, padded.next()) else { return None };
            Some((step.sources[0], axis, &places[2 * axis..2 * axis + 2]))
        };
        let mut parts = Vec::new();
        let mut x = id;
        let mut along = None;
        while let (StepOp::Ternary(zyx_core::TernaryOp::Where), [condition, part, rest]) =
            (&self.steps[x].op, &self.steps[x].sources[..])
        {
            let mask = part_of(*condition)?;
            let truth = &self.steps[mask.0].op;
            if !matches!(truth, StepOp::Const(x) if x.to_bool()) {
                return None;
            }
            let own = part_of(*part)?;
            if own.1 != mask.1 || own.2 != mask.2 || *along.get_or_insert(own.1) != own.1 {
                return None;
            }
            parts.push((own.0, own.2[0].clone()));
            x = *rest;
        }
        let axis = along?;
        let first = part_of(x).filter(|first| first.1 == axis)?;
        parts.push((first.0, first.2[0].clone()));
        parts.reverse();
        // One begins where the one before ends, and nothing is left.
        let mut end = Size::fixed(0);
        for (part, start) in &parts {
            if *start != end {
                return None;
            }
            end = end.plus(&self.steps[*part].dims.as_ref()?[axis]);
        }
        let whole = &self.steps[id].dims.as_ref()?[axis];
        (end == *whole).then(|| (parts.into_iter().map(|(part, _)| part).collect(), axis))
    }

    /// The name of what was written before.
    pub(super) fn name(&mut self, step: usize) -> Name {
        match (&self.names[step], &self.steps[step].number) {
            (Some(name), _) => name.clone(),
            (None, Some(number)) => self.writer.constant_of(number, self.steps[step].dtype),
            (None, None) => unreachable!("invariant: what a step reads was written before it"),
        }
    }

    pub(super) fn dims(&self, id: usize) -> Result<Vec<Size>> {
        let step = &self.steps[id];
        step.dims.clone().ok_or_else(|| {
            refusal(format!(
                "an extent of the result of {:?} (of shape {} at the example sizes) is no sum of products of the named \
                 dimensions, as where a stride does not divide one: give example sizes that are multiples of it \
                 (`Export::size`)",
                step.op,
                step.tensor.shape()
            ))
        })
    }

    /// Writes a step that is not named already.
    pub(super) fn write(&mut self, id: usize, choice: &Choice) -> Result<Name> {
        match choice {
            Choice::Named => Ok(self.names[id].clone().unwrap_or_default()),
            Choice::Stored => self.writer.tensor(&self.steps[id].tensor),
            Choice::Number => {
                let number = self.name(id);
                let dims = self.dims(id)?;
                let shape = self.writer.sizes(&dims);
                Ok(self.writer.node("Expand", &[&number, &shape], Vec::new()))
            }
            Choice::Pattern(pattern) => Ok(self.write_pattern(id, pattern)),
            Choice::Product(product) => Ok(self.write_product(id, product)),
            Choice::Sign(x) => {
                let (name, dtype) = (self.operand(*x)?, self.steps[*x].dtype);
                Ok(self.writer.sign(&name, dtype))
            }
            Choice::Joined(parts, axis) => {
                let parts: Vec<Name> =
                    parts.iter().map(|&part| self.operand(part)).collect::<Result<_>>()?;
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                Ok(self.writer.node("Concat", &parts, vec![int("axis", *axis as i64)]))
            }
            Choice::Own(operands) => self.own(id, operands),
        }
    }

    /// A whole operand: a number is repeated.
    pub(super) fn operand(&mut self, x: usize) -> Result<Name> {
        match self.names[x] {
            Some(_) => Ok(self.name(x)),
            None => self.write(x, &Choice::Number),
        }
    }

    fn own(&mut self, id: usize, operands: &[usize]) -> Result<Name> {
        let steps = self.steps;
        let step: &Symbolic = &steps[id];
        let dtype = step.dtype;
        let failed = |reason: String| {
            refusal(format!(
                "{reason} cannot be written in ONNX ({dtype}, shape {} at the example sizes)",
                step.tensor.shape()
            ))
        };
        match &step.op {
            StepOp::Unary(_) | StepOp::Binary(_) | StepOp::Ternary(_) => {
                return self.elementwise(id, operands).map_err(failed);
            }
            StepOp::Iota => {
                let n = self.dims(id)?;
                let n = self.writer.size(&n[0]);
                let axes = self.writer.list(&[0]);
                let n = self.writer.node("Squeeze", &[&n, &axes], Vec::new());
                let (zero, one) =
                    (self.writer.number(DType::I64, 0.0), self.writer.number(DType::I64, 1.0));
                let range = self.writer.node("Range", &[&zero, &n, &one], Vec::new());
                return Ok(if dtype == DType::I64 {
                    range
                } else {
                    self.writer.cast(&range, dtype)
                });
            }
            _ => {}
        }
        let x = self.operand(operands[0])?;
        let source = &steps[operands[0]];
        match &step.op {
            StepOp::Cast => Ok(self.writer.convert(&x, source.dtype, dtype)),
            StepOp::Bitcast
                if source.dtype.is_int()
                    && dtype.is_int()
                    && source.dtype.size() == dtype.size() =>
            {
                Ok(self.writer.cast(&x, dtype))
            }
            StepOp::Reduce { op, axes } => self.reduction(*op, dtype, &x, axes).map_err(failed),
            StepOp::Scan { op: BinaryOp::Add, axis, reverse } if dtype != DType::Bool => {
                let axis = self.writer.scalar(Scalar::from(*axis as i64));
                let reverse = int("reverse", i64::from(*reverse));
                let to = summed_in(dtype);
                let wide = if to == dtype { x } else { self.writer.cast(&x, to) };
                let y = self.writer.node("CumSum", &[&wide, &axis], vec![reverse]);
                Ok(if to == dtype { y } else { self.writer.cast(&y, dtype) })
            }
            StepOp::Scan { op, axis, reverse } => {
                let identity =
                    op.identity(dtype).ok_or_else(|| failed(format!("a scan by {op}")))?;
                let dims = self.dims(id)?;
                self.scan(dtype, identity, &dims, (*axis, *reverse), &[&x], |w, state, x| {
                    let operand = |name: &Name| Operand { name: name.clone(), constant: None };
                    w.binary(*op, dtype, &operand(state), &operand(&x[0]))
                })
                .map_err(failed)
            }
            StepOp::Recurrence { axis, reverse } => {
                let factor = self.operand(operands[1])?;
                let (dims, zero) = (self.dims(id)?, Scalar::from_f64(dtype, 0.0));
                self.scan(dtype, zero, &dims, (*axis, *reverse), &[&x, &factor], |w, state, x| {
                    let zero = w.scalar(zero);
                    let none = w.node("Equal", &[state, &zero], Vec::new());
                    let carried = w.node("Mul", &[state, &x[1]], Vec::new());
                    let carried = w.node("Where", &[&none, state, &carried], Vec::new());
                    Ok(w.node("Add", &[&carried, &x[0]], Vec::new()))
                })
                .map_err(failed)
            }
            StepOp::Reshape => {
                let (from, to) = (self.dims(operands[0])?, self.dims(id)?);
                Ok(self.writer.reshape(&x, &from, &to))
            }
            StepOp::Permute(axes) => Ok(self.writer.transpose(&x, axes)),
            StepOp::Expand => {
                let dims = self.dims(id)?;
                let shape = self.writer.sizes(&dims);
                Ok(self.writer.node("Expand", &[&x, &shape], Vec::new()))
            }
            StepOp::Pad(_) => self.pad(id, &x),
            StepOp::Shrink(_) => {
                let starts = self.places(id)?;
                let dims = self.dims(id)?;
                let from = self.dims(operands[0])?;
                let cut: Vec<usize> = (0..dims.len()).filter(|&i| dims[i] != from[i]).collect();
                let pick =
                    |sizes: &[Size]| cut.iter().map(|&i| sizes[i].clone()).collect::<Vec<_>>();
                let ends: Vec<Size> = starts.iter().zip(&dims).map(|(a, b)| a.plus(b)).collect();
                let (starts, ends) = (pick(&starts), pick(&ends));
                Ok(self.slice(&x, &starts, &ends, &cut))
            }
            StepOp::Flip(axes) => {
                let n = axes.len();
                let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
                let (starts, ends) =
                    (self.writer.list(&vec![-1; n]), self.writer.list(&vec![i64::MIN; n]));
                let (axes, steps) = (self.writer.list(&axes), self.writer.list(&vec![-1; n]));
                Ok(self.writer.node("Slice", &[&x, &starts, &ends, &axes, &steps], Vec::new()))
            }
            StepOp::Gather { axis } => self.gather(id, *axis, &x, operands),
            StepOp::Scatter { axis, op } => self.scatter(id, *axis, *op, operands),
            StepOp::Composite { name, result } => self.recurrent(id, name, *result),
            other => Err(failed(format!(
                "{other:?}, a part of a sort, a transform or a reinterpretation of bits,"
            ))),
        }
    }

    fn places(&self, id: usize) -> Result<Vec<Size>> {
        self.steps[id].places.clone().ok_or_else(|| {
            refusal(
                "where a slice or a padding starts is no sum of products of the named dimensions"
                    .to_owned(),
            )
        })
    }

    fn elementwise(&mut self, id: usize, operands: &[usize]) -> Result<Name, String> {
        let steps = self.steps;
        let number = |x: usize| match steps[x].number {
            Some(Number::Fixed(x)) => Some(x),
            _ => None,
        };
        let all: Vec<Operand> =
            operands.iter().map(|&x| Operand { name: self.name(x), constant: number(x) }).collect();
        let step = &steps[id];
        match (&step.op, &all[..]) {
            (StepOp::Unary(op), [x]) => self.writer.unary(*op, step.dtype, &x.name),
            (StepOp::Binary(op), [x, y]) => self.writer.binary(*op, steps[operands[0]].dtype, x, y),
            (StepOp::Ternary(op), [x, y, z]) => {
                Ok(self.writer.ternary(*op, step.dtype, [&x.name, &y.name, &z.name]))
            }
            _ => unreachable!("invariant: as many operands as the op has"),
        }
    }

    fn slice(&mut self, x: &str, starts: &[Size], ends: &[Size], axes: &[usize]) -> Name {
        if axes.is_empty() {
            return x.to_owned();
        }
        let (starts, ends) = (self.writer.sizes(starts), self.writer.sizes(ends));
        let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        let axes = self.writer.list(&axes);
        self.writer.node("Slice", &[x, &starts, &ends, &axes], Vec::new())
    }

    fn pad(&mut self, id: usize, x: &str) -> Result<Name> {
        let places = self.places(id)?;
        let (before, after) = (places.iter().step_by(2), places.iter().skip(1).step_by(2));
        let pads: Vec<Size> = before.chain(after).cloned().collect();
        let pads = self.writer.sizes(&pads);
        Ok(self.writer.node("Pad", &[x, &pads], Vec::new()))
    }

    fn reduction(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        x: &Name,
        axes: &[usize],
    ) -> Result<Name, String> {
        let axes: Vec<i64> = axes.iter().map(|&axis| axis as i64).collect();
        if axes.is_empty() {
            return Ok(x.clone());
        }
        let (kind, to) = match (op, dtype) {
            (BinaryOp::Add | BinaryOp::Max | BinaryOp::Or, DType::Bool) => {
                ("ReduceMax", DType::I32)
            }
            (BinaryOp::Mul | BinaryOp::Min | BinaryOp::And, DType::Bool) => {
                ("ReduceMin", DType::I32)
            }
            (BinaryOp::Add, _) => ("ReduceSum", summed_in(dtype)),
            (BinaryOp::Mul, _) => ("ReduceProd", summed_in(dtype)),
            (BinaryOp::Max | BinaryOp::Min, DType::U64) => return Err(format!("{op} of u64")),
            (BinaryOp::Max, _) => ("ReduceMax", summed_in(dtype)),
            (BinaryOp::Min, _) => ("ReduceMin", summed_in(dtype)),
            (BinaryOp::LogAddExp, _) => ("ReduceLogSumExp", summed_in(dtype)),
            (other, _) => return Err(format!("a reduction by {other} of {dtype}")),
        };
        let axes = self.writer.list(&axes);
        let wide = if to == dtype { x.clone() } else { self.writer.cast(x, to) };
        let y = self.writer.node(kind, &[&wide, &axes], vec![int("keepdims", 1)]);
        Ok(if to == dtype { y } else { self.writer.cast(&y, dtype) })
    }

    /// A scan along an axis: `step` gives the next state, which is the result, too, of the state and the elements.
    fn scan(
        &mut self,
        dtype: DType,
        first: Scalar,
        dims: &[Size],
        (axis, reverse): (usize, bool),
        inputs: &[&Name],
        step: impl FnOnce(&mut Writer, &Name, &[Name]) -> Result<Name, String>,
    ) -> Result<Name, String> {
        let mut rest = dims.to_vec();
        rest.remove(axis);
        let shape = self.writer.sizes(&rest);
        let first = self.writer.scalar(first);
        let state = self.writer.node("Expand", &[&first, &shape], Vec::new());
        let mut body = self.writer.inner();
        let own: Vec<Name> = (0..=inputs.len()).map(|_| body.fresh()).collect();
        let next = step(&mut body, &own[0], &own[1..])?;
        let out = body.node("Identity", &[&next], Vec::new());
        let port = |name: &Name| port(name, dtype, None);
        let inner = GraphProto {
            name: Some("scan".to_owned()),
            input: own.iter().map(port).collect(),
            output: [&next, &out].map(port).to_vec(),
            ..self.writer.leave(body)
        };
        let n = inputs.len();
        let direction = i64::from(reverse);
        let attributes = vec![
            graph("body", inner),
            int("num_scan_inputs", n as i64),
            ints("scan_input_axes", vec![axis as i64; n]),
            ints("scan_input_directions", vec![direction; n]),
            ints("scan_output_axes", vec![axis as i64]),
            ints("scan_output_directions", vec![direction]),
        ];
        let inputs: Vec<&str> =
            [&state].into_iter().chain(inputs.iter().copied()).map(String::as_str).collect();
        let [_, y] = self.writer.several("Scan", &inputs, attributes);
        Ok(y)
    }

    /// Whether integers lie between 0 and an extent, with those that do not replaced.
    fn within(&mut self, index: &str, extent: &Size, other: &Name) -> (Name, Name) {
        let n = self.writer.constant_of(&Number::Size(extent.clone()), DType::I64);
        let zero = self.writer.number(DType::I64, 0.0);
        let low = self.writer.node("GreaterOrEqual", &[index, &zero], Vec::new());
        let high = self.writer.node("Less", &[index, &n], Vec::new());
        let inside = self.writer.node("And", &[&low, &high], Vec::new());
        let index = self.writer.node("Where", &[&inside, index, other], Vec::new());
        (inside, index)
    }

    /// An index out of range gathers zero; ONNX counts negative ones from the end and refuses others.
    fn gather(&mut self, id: usize, axis: usize, x: &str, operands: &[usize]) -> Result<Name> {
        let steps = self.steps;
        let dtype = steps[id].dtype;
        let extent = self.dims(operands[0])?[axis].clone();
        let index = &steps[operands[1]];
        let is_vector = operands[1] != steps[id].sources[1];
        let mut name = self.operand(operands[1])?;
        if index.dtype != DType::I64 {
            name = self.writer.cast(&name, DType::I64);
        }
        let length = self.dims(id)?[axis].clone();
        if is_vector {
            let from = self.dims(operands[1])?;
            name = self.writer.reshape(&name, &from, std::slice::from_ref(&length));
        }
        let kind = if is_vector { "Gather" } else { "GatherElements" };
        let attribute = || vec![int("axis", axis as i64)];
        if index.is_static && self.is_inside(operands[1], &extent)? {
            return Ok(self.writer.node(kind, &[x, &name], attribute()));
        }
        let zero = self.writer.number(DType::I64, 0.0);
        let (mut inside, name) = self.within(&name, &extent, &zero);
        let y = self.writer.node(kind, &[x, &name], attribute());
        if is_vector {
            let mut dims = vec![Size::fixed(1); steps[id].tensor.rank()];
            dims[axis] = length.clone();
            inside = self.writer.reshape(&inside, &[length], &dims);
        }
        let zero = self.writer.number(dtype, 0.0);
        Ok(self.writer.select(dtype, &inside, &y, &zero))
    }

    /// Whether all integers of a step that depends on no input lie between 0 and an extent.
    fn is_inside(&self, index: usize, extent: &Size) -> Result<bool> {
        let Some(n) = extent.constant() else { return Ok(false) };
        let values = self.steps[index].tensor.cast(DType::I64).to_vec::<i64>()?;
        Ok(values.iter().all(|i| (0..n).contains(i)))
    }

    /// What an index out of range would put goes to a place behind the last, which is cut off.
    fn scatter(
        &mut self,
        id: usize,
        axis: usize,
        op: Option<BinaryOp>,
        operands: &[usize],
    ) -> Result<Name> {
        let dtype = self.steps[id].dtype;
        let reduction = match op {
            None => "none",
            Some(BinaryOp::Add) if dtype != DType::Bool => "add",
            Some(BinaryOp::Mul) if dtype != DType::Bool => "mul",
            Some(BinaryOp::Max) if dtype != DType::Bool => "max",
            Some(BinaryOp::Min) if dtype != DType::Bool => "min",
            Some(other) => {
                return Err(refusal(format!(
                    "a scatter by {other} of {dtype} cannot be written in ONNX"
                )));
            }
        };
        let (base, x) = (self.operand(operands[0])?, self.operand(operands[2])?);
        let mut index = self.operand(operands[1])?;
        if self.steps[operands[1]].dtype != DType::I64 {
            index = self.writer.cast(&index, DType::I64);
        }
        let rank = self.steps[id].tensor.rank();
        let mut pads = vec![0; 2 * rank];
        pads[rank + axis] = 1;
        let pads = self.writer.list(&pads);
        let extent = self.dims(id)?[axis].clone();
        let base = self.writer.node("Pad", &[&base, &pads], Vec::new());
        let n = self.writer.constant_of(&Number::Size(extent.clone()), DType::I64);
        let (_, index) = self.within(&index, &extent, &n);
        let attributes =
            vec![int("axis", axis as i64), super::writer::string("reduction", reduction)];
        let y = self.writer.node("ScatterElements", &[&base, &index, &x], attributes);
        Ok(self.slice(&y, &[Size::fixed(0)], &[extent], &[axis]))
    }
}

/// The dtype in which a reduction is computed: runtimes have few kernels of others.
fn summed_in(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64 => DType::F64,
        DType::I32 => DType::I32,
        _ => DType::I64,
    }
}

/// What a value is called, its dtype, and its extents if they are said.
pub(super) fn port(
    name: &str,
    dtype: DType,
    dims: Option<Vec<dimension::Value>>,
) -> ValueInfoProto {
    let dim = |value| Dimension { value: Some(value), ..Dimension::default() };
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.into_iter().map(dim).collect() });
    let tensor = type_proto::Tensor { elem_type: Some(element(dtype)), shape };
    let kind =
        TypeProto { value: Some(type_proto::Value::TensorType(tensor)), ..TypeProto::default() };
    ValueInfoProto { name: Some(name.to_owned()), r#type: Some(kind), ..ValueInfoProto::default() }
}
