//! Recurrent layers, which traces list as one step each, as the operators `RNN`, `GRU` and `LSTM`.
//!
//! Operands and results are those that `zyx-nn` notes: PyTorch's weights, without a direction's axis.

use super::sizes::Size;
use super::writer::{Name, int, string, strings};
use super::{Exporter, refusal};
use zyx_core::tensor::StepOp;
use zyx_core::{DType, Result, Scalar};

struct Layer {
    /// The name of the noted operator.
    composite: &'static str,
    kind: &'static str,
    /// For each gate as ONNX orders them, its place in the weights.
    gates: &'static [i64],
    /// Of its outputs, those that are states.
    states: usize,
    activation: Option<&'static str>,
}

const LAYERS: [Layer; 4] = [
    Layer { composite: "rnn_tanh", kind: "RNN", gates: &[0], states: 1, activation: Some("Tanh") },
    Layer { composite: "rnn_relu", kind: "RNN", gates: &[0], states: 1, activation: Some("Relu") },
    Layer { composite: "gru", kind: "GRU", gates: &[1, 0, 2], states: 1, activation: None },
    Layer { composite: "lstm", kind: "LSTM", gates: &[0, 3, 1, 2], states: 2, activation: None },
];

/// The names of noted operators that are written as one.
pub(super) const COMPOSITES: [&str; 4] =
    [LAYERS[0].composite, LAYERS[1].composite, LAYERS[2].composite, LAYERS[3].composite];

impl Exporter<'_> {
    /// Writes a result of a recurrent layer: the outputs, or a state after the last step of a direction.
    pub(super) fn recurrent(&mut self, id: usize, composite: &str, result: usize) -> Result<Name> {
        let unlike =
            || refusal(format!("`{composite}` was noted with operands that are not known"));
        let layer = LAYERS.iter().find(|layer| layer.composite == composite).ok_or_else(unlike)?;
        let steps = self.steps;
        let step = &steps[id];
        let shape = |x: usize| steps[x].tensor.shape().dims();
        let (&x, rest) = step.sources.split_first().ok_or_else(unlike)?;
        let n_parameters = rest.len().checked_sub(layer.states).ok_or_else(unlike)?;
        let (parameters, starts) = rest.split_at(n_parameters);
        let (&[_, _, inputs], &[directions, _, hidden]) = (shape(x), shape(starts[0])) else {
            return Err(unlike());
        };
        let each = n_parameters.checked_div(directions).unwrap_or(0);
        let rows = layer.gates.len() * hidden;
        let fits = |own: &[usize]| {
            shape(own[0]) == [rows, inputs]
                && shape(own[1]) == [rows, hidden]
                && own[2..].iter().all(|&bias| shape(bias) == [rows])
        };
        let is_known = matches!(directions, 1 | 2)
            && matches!(each, 2 | 4)
            && each * directions == n_parameters
            && parameters.chunks(each).all(fits)
            && starts.iter().all(|&start| shape(start) == shape(starts[0]))
            && shape(id).len() == if result == 0 { 3 } else { 2 }
            && result <= layer.states * directions;
        if !is_known {
            return Err(unlike());
        }

        let dtype = if step.dtype == DType::BF16 { DType::F32 } else { step.dtype };
        // For weights and biases, what a direction has, and those of all directions.
        let mut stacked = Vec::new();
        for pick in [&[0][..], &[1], &[2, 3]].into_iter().take(1 + each / 2) {
            let mut all: Vec<Name> = Vec::new();
            for own in parameters.chunks(each) {
                let parts: Vec<Name> = pick
                    .iter()
                    .map(|&i| self.ordered(own[i], layer.gates, hidden, dtype))
                    .collect::<Result<_>>()?;
                all.push(self.joined(parts, 1));
            }
            stacked.push(self.joined(all, 0));
        }
        let mut inputs = vec![self.as_dtype(x, dtype)?];
        inputs.extend(stacked);
        // Without a bias, and without lengths of sequences.
        inputs.resize(5, Name::new());
        for &start in starts {
            let given = !self.is_zero(start);
            inputs.push(if given { self.as_dtype(start, dtype)? } else { Name::new() });
        }
        while inputs.pop_if(|name| name.is_empty()).is_some() {}
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();

        let direction = if directions == 2 { "bidirectional" } else { "forward" };
        let mut attributes =
            vec![string("direction", direction), int("hidden_size", hidden as i64)];
        if let Some(activation) = layer.activation {
            attributes.push(strings("activations", &vec![activation; directions]));
        }
        if layer.kind == "GRU" {
            attributes.push(int("linear_before_reset", 1));
        }
        let [outputs, h, c] = match layer.states {
            1 => {
                let [y, h] = self.writer.several(layer.kind, &inputs, attributes);
                [y, h, Name::new()]
            }
            _ => self.writer.several(layer.kind, &inputs, attributes),
        };
        let y = match result.checked_sub(1) {
            None => self.beside(id, &outputs, directions, hidden)?,
            Some(state) => {
                let all = if state % layer.states == 0 { h } else { c };
                let direction = Scalar::from((state / layer.states) as i64);
                let direction = self.writer.scalar(direction);
                self.writer.node("Gather", &[&all, &direction], vec![int("axis", 0)])
            }
        };
        Ok(if dtype == step.dtype { y } else { self.writer.cast(&y, step.dtype) })
    }

    /// Outputs `[steps, directions, n, hidden]` with those of a step beside each other.
    fn beside(&mut self, id: usize, y: &Name, directions: usize, hidden: usize) -> Result<Name> {
        let to = self.dims(id)?;
        let own = [directions, hidden].map(|n| Size::fixed(n as i128));
        let (y, from) = match directions {
            1 => (y.clone(), [&to[..1], &own[..1], &to[1..]].concat()),
            _ => (self.writer.transpose(y, &[0, 2, 1, 3]), [&to[..2], &own].concat()),
        };
        Ok(self.writer.reshape(&y, &from, &to))
    }

    /// A parameter `[gates hidden, ..]` with the gates in the order of ONNX, after an axis of one direction.
    fn ordered(&mut self, x: usize, gates: &[i64], hidden: usize, dtype: DType) -> Result<Name> {
        let name = self.as_dtype(x, dtype)?;
        let sizes = |dims: &[usize]| dims.iter().map(|&n| Size::fixed(n as i128)).collect();
        let dims = self.steps[x].tensor.shape().dims();
        let apart: Vec<Size> = sizes(&[&[gates.len(), hidden], &dims[1..]].concat());
        let (own, to): (Vec<Size>, Vec<Size>) = (sizes(dims), sizes(&[&[1], dims].concat()));
        if gates.len() == 1 {
            return Ok(self.writer.reshape(&name, &own, &to));
        }
        let name = self.writer.reshape(&name, &own, &apart);
        let order = self.writer.list(gates);
        let name = self.writer.node("Gather", &[&name, &order], vec![int("axis", 0)]);
        Ok(self.writer.reshape(&name, &apart, &to))
    }

    fn joined(&mut self, parts: Vec<Name>, axis: i64) -> Name {
        match &parts[..] {
            [one] => one.clone(),
            parts => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                self.writer.node("Concat", &parts, vec![int("axis", axis)])
            }
        }
    }

    fn as_dtype(&mut self, x: usize, dtype: DType) -> Result<Name> {
        let (name, own) = (self.operand(x)?, self.steps[x].dtype);
        Ok(if own == dtype { name } else { self.writer.convert(&name, own, dtype) })
    }

    /// Whether a step is zero everywhere, as states are that are not given.
    fn is_zero(&self, mut x: usize) -> bool {
        loop {
            let step = &self.steps[x];
            x = match (&step.op, &step.sources[..]) {
                (StepOp::Const(number), _) => return number.to_f64() == 0.0,
                (StepOp::Expand | StepOp::Reshape | StepOp::Shrink(_), [source]) => *source,
                _ => return false,
            };
        }
    }
}
