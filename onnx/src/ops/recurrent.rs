//! `RNN`, `GRU` and `LSTM`: unrolled over time, with the products of all inputs before the first step.

use super::quantize::{Dynamic, dynamic};
use crate::budget::Budget;
use crate::run::Call;
use crate::value::Value;
use zyx_core::{DType, Result, Tensor};

type Values = Result<Vec<Value>>;

/// A function of an element by its name, with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Activation {
    kind: Kind,
    alpha: f64,
    beta: f64,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Relu,
    Tanh,
    Sigmoid,
    Affine,
    LeakyRelu,
    ThresholdedRelu,
    ScaledTanh,
    HardSigmoid,
    Elu,
    Softsign,
    Softplus,
}

/// Names in lower case, and the defaults of the parameters that a function has.
const ACTIVATIONS: [(&str, Kind, Option<f64>, Option<f64>); 11] = [
    ("relu", Kind::Relu, None, None),
    ("tanh", Kind::Tanh, None, None),
    ("sigmoid", Kind::Sigmoid, None, None),
    ("affine", Kind::Affine, Some(1.0), Some(0.0)),
    ("leakyrelu", Kind::LeakyRelu, Some(0.01), None),
    ("thresholdedrelu", Kind::ThresholdedRelu, Some(1.0), None),
    ("scaledtanh", Kind::ScaledTanh, Some(1.0), Some(1.0)),
    ("hardsigmoid", Kind::HardSigmoid, Some(0.2), Some(0.5)),
    ("elu", Kind::Elu, Some(1.0), None),
    ("softsign", Kind::Softsign, None, None),
    ("softplus", Kind::Softplus, None, None),
];

impl Activation {
    /// The function of a name, with parameters that are given or its own; those that it has not are not asked for.
    pub(super) fn named(
        call: &Call<'_>,
        name: &str,
        alpha: impl FnOnce() -> Option<f64>,
        beta: impl FnOnce() -> Option<f64>,
    ) -> Result<Activation> {
        let row = ACTIVATIONS.iter().find(|row| row.0.eq_ignore_ascii_case(name));
        let Some(&(_, kind, own_alpha, own_beta)) = row else {
            return Err(call.error(format!("activation `{name}` is not known")));
        };
        let alpha = own_alpha.map_or(0.0, |own| alpha().unwrap_or(own));
        let beta = own_beta.map_or(0.0, |own| beta().unwrap_or(own));
        Ok(Activation { kind, alpha, beta })
    }

    pub(super) fn of(&self, x: &Tensor) -> Result<Tensor> {
        let Activation { kind, alpha, beta } = *self;
        let y = match kind {
            Kind::Relu => x.relu(),
            Kind::Tanh => x.tanh(),
            Kind::Sigmoid => x.sigmoid(),
            Kind::Affine => x.mul(alpha)?.add(beta)?,
            Kind::LeakyRelu => x.leaky_relu(alpha),
            Kind::ThresholdedRelu => x.gt(alpha)?.where_(x, x.zeros_like())?,
            Kind::ScaledTanh => x.mul(beta)?.tanh().mul(alpha)?,
            Kind::HardSigmoid => x.mul(alpha)?.add(beta)?.clamp(0.0, 1.0)?,
            Kind::Elu => x.elu(alpha),
            Kind::Softsign => x.div(x.abs().add(1.0)?)?,
            Kind::Softplus => x.softplus(),
        };
        Ok(y.cast(x.dtype()))
    }
}

/// The functions of all directions, one after the other; parameters are taken in order by those that have any.
fn activations(call: &Call<'_>, defaults: &[&str], directions: usize) -> Result<Vec<Activation>> {
    let defaults = || defaults.repeat(directions).into_iter().map(str::to_owned).collect();
    let names: Vec<String> = call.strings_attribute("activations")?.unwrap_or_else(defaults);
    let parameters = |name: &str| {
        Ok::<_, zyx_core::Error>(call.floats_attribute(name)?.unwrap_or_default().into_iter())
    };
    let (mut alphas, mut betas) = (parameters("activation_alpha")?, parameters("activation_beta")?);
    let next = |list: &mut std::vec::IntoIter<f32>| list.next().map(f64::from);
    let named = |name| Activation::named(call, name, || next(&mut alphas), || next(&mut betas));
    names.iter().map(|name| name.as_str()).map(named).collect()
}

/// One direction of a layer.
struct Cell {
    /// Inputs of all gates at each time, with all that does not follow from the state: `[time, batch, gates * hidden]`.
    input: Tensor,
    /// `[hidden, gates * hidden]`.
    recurrent: Tensor,
    /// The bias of the recurrent product.
    bias: Option<Tensor>,
    peepholes: Option<Tensor>,
    activations: Vec<Activation>,
    clip: Option<f64>,
    hidden: usize,
    /// Whether inputs and states are quantised before they are multiplied by weights.
    quantises: bool,
}

/// The numbers that a tensor stands for when it is quantised by its own range.
fn requantised(call: &Call<'_>, x: &Tensor) -> Result<Tensor> {
    let Dynamic { scale, zero_point, codes } = dynamic(call, x)?;
    codes.cast(x.dtype()).sub(zero_point.cast(x.dtype()))?.mul(scale)
}

impl Cell {
    /// Gate `i` of several in a row.
    fn gate(&self, gates: &Tensor, i: usize) -> Result<Tensor> {
        gates.slice(-1, i * self.hidden..(i + 1) * self.hidden)
    }

    fn activated(&self, i: usize, x: &Tensor) -> Result<Tensor> {
        match self.clip {
            Some(clip) => self.activations[i].of(&x.clamp(-clip, clip)?),
            None => self.activations[i].of(x),
        }
    }

    /// The product of a state with the weights of gates `from..to`, and its bias.
    fn product(&self, call: &Call<'_>, state: &Tensor, from: usize, to: usize) -> Result<Tensor> {
        let columns = from * self.hidden..to * self.hidden;
        let state = if self.quantises { &requantised(call, state)? } else { state };
        let y = state.matmul(&self.recurrent.slice(1, columns.clone())?)?;
        match &self.bias {
            Some(bias) => y.add(bias.slice(0, columns)?),
            None => Ok(y),
        }
    }
}

/// A step: from the inputs at a time and the states to the next states.
type Step = fn(&Call<'_>, &Cell, &Tensor, &[Tensor]) -> Result<Vec<Tensor>>;

fn rnn_step(call: &Call<'_>, cell: &Cell, x: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(vec![cell.activated(0, &x.add(cell.product(call, &states[0], 0, 1)?)?)?])
}

/// Gates are update, reset and hidden.
fn gru_step(call: &Call<'_>, cell: &Cell, x: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let h = &states[0];
    let gates = x.slice(-1, ..2 * cell.hidden)?.add(cell.product(call, h, 0, 2)?)?;
    let update = cell.activated(0, &cell.gate(&gates, 0)?)?;
    let reset = cell.activated(0, &cell.gate(&gates, 1)?)?;
    let recurrent = match call.flag("linear_before_reset")? {
        true => reset.mul(cell.product(call, h, 2, 3)?)?,
        false => cell.product(call, &reset.mul(h)?, 2, 3)?,
    };
    let new = cell.activated(1, &cell.gate(x, 2)?.add(recurrent)?)?;
    Ok(vec![update.neg().add(1.0)?.mul(&new)?.add(update.mul(h)?)?])
}

/// Gates are input, output, forget and cell.
fn lstm_step(call: &Call<'_>, cell: &Cell, x: &Tensor, states: &[Tensor]) -> Result<Vec<Tensor>> {
    let (h, c) = (&states[0], &states[1]);
    let gates = x.add(cell.product(call, h, 0, 4)?)?;
    // Peepholes are in the order input, output, forget, too.
    let gate = |i: usize, c: &Tensor| {
        let gate = cell.gate(&gates, i)?;
        match &cell.peepholes {
            Some(peepholes) if i < 3 => gate.add(cell.gate(peepholes, i)?.mul(c)?),
            _ => Ok(gate),
        }
    };
    let input = cell.activated(0, &gate(0, c)?)?;
    let forget = match call.flag("input_forget")? {
        true => input.neg().add(1.0)?,
        false => cell.activated(0, &gate(2, c)?)?,
    };
    let new = cell.activated(1, &gate(3, c)?)?;
    let c = forget.mul(c)?.add(input.mul(&new)?)?;
    let output = cell.activated(0, &gate(1, &c)?)?;
    Ok(vec![output.mul(cell.activations[2].of(&c)?)?, c])
}

/// What differs between the three.
struct Layer {
    gates: usize,
    /// Where the initial states are among the inputs.
    states: &'static [usize],
    peepholes: Option<usize>,
    activations: &'static [&'static str],
    step: Step,
}

/// An LSTM whose weights are integers, `[directions, inputs, gates * hidden]`, with scales and zero points behind the
/// other inputs; inputs and states are quantised when they are multiplied.
pub(super) fn dynamic_quantize_lstm(call: &Call<'_>) -> Values {
    let weight = |i: usize, scale: usize| -> Result<Option<Value>> {
        let wide = |x: Tensor| {
            // One number, or one for each column, of each direction.
            let x = x.cast(DType::F32);
            if x.rank() == 1 { x.reshape([x.numel(), 1, 1]) } else { x.unsqueeze(1) }
        };
        let mut codes = call.tensor(i)?.cast(DType::F32);
        if let Some(zero) = call.optional_tensor(scale + 1)? {
            codes = codes.sub(wide(zero)?)?;
        }
        Ok(Some(codes.mul(wide(call.tensor(scale)?)?)?.transpose(-1, -2)?.into()))
    };
    let inputs = call.inputs.iter().take(8);
    let mut inputs: Vec<Option<Value>> = inputs.map(|value| value.as_deref().cloned()).collect();
    let (w, r) = (weight(1, 8)?, weight(2, 10)?);
    inputs.splice(1..3, [w, r]);
    let activations = &["Sigmoid", "Tanh", "Tanh"];
    let (states, peepholes) = (&[5, 6], Some(7));
    let layer = Layer { gates: 4, states, peepholes, activations, step: lstm_step };
    run_layer(&call.with_inputs(inputs), &layer, true)
}

pub(super) fn rnn(call: &Call<'_>) -> Values {
    let activations = &["Tanh"];
    run(call, &Layer { gates: 1, states: &[5], peepholes: None, activations, step: rnn_step })
}

pub(super) fn gru(call: &Call<'_>) -> Values {
    let activations = &["Sigmoid", "Tanh"];
    run(call, &Layer { gates: 3, states: &[5], peepholes: None, activations, step: gru_step })
}

pub(super) fn lstm(call: &Call<'_>) -> Values {
    let activations = &["Sigmoid", "Tanh", "Tanh"];
    let (states, peepholes) = (&[5, 6], Some(7));
    run(call, &Layer { gates: 4, states, peepholes, activations, step: lstm_step })
}

fn run(call: &Call<'_>, layer: &Layer) -> Values {
    run_layer(call, layer, false)
}

fn run_layer(call: &Call<'_>, layer: &Layer, quantises: bool) -> Values {
    let (x, weight, recurrent) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
    let batch_first = call.flag("layout")?;
    let reverse: &[bool] = match call.string_or("direction", "forward")? {
        "forward" => &[false],
        "reverse" => &[true],
        "bidirectional" => &[false, true],
        other => return Err(call.error(format!("attribute `direction` is `{other}`"))),
    };
    let wrong = || {
        let shapes = format!("{}, {} and {}", x.shape(), weight.shape(), recurrent.shape());
        call.error(format!("input and weights have shapes {shapes}"))
    };
    let x = if batch_first && x.rank() == 3 { x.transpose(0, 1)? } else { x.clone() };
    let (&[time, batch, size], &[directions, rows, hidden]) =
        (x.shape().dims(), recurrent.shape().dims())
    else {
        return Err(wrong());
    };
    let n = hidden.saturating_mul(layer.gates);
    if directions != reverse.len() || rows != n || weight.shape().dims() != [directions, n, size] {
        return Err(wrong());
    }
    let per_direction = layer.activations.len();
    let activations = activations(call, layer.activations, directions)?;
    if activations.len() != per_direction * directions {
        let found = activations.len();
        let reason = format!("{found} activations, {per_direction} are needed per direction");
        return Err(call.error(reason));
    }
    // A step is a dozen of pending tensors.
    call.budget().trace(time.saturating_mul(12 * directions))?;
    let clip = call.float_attribute("clip")?.filter(|&clip| clip > 0.0);
    let bias = call.optional_tensor(3)?;
    let lengths = call.optional_tensor(4)?;
    let lengths =
        lengths.map(|lengths| lengths.cast(DType::I64).reshape([batch, 1])).transpose()?;
    let peepholes = layer.peepholes.map(|i| call.optional_tensor(i)).transpose()?.flatten();
    let mut initial = Vec::new();
    for &i in layer.states {
        initial.push(match call.optional_tensor(i)? {
            Some(state) if batch_first => state.transpose(0, 1)?,
            Some(state) => state,
            None => Tensor::zeros([directions, batch, hidden], x.dtype(), call.device()),
        });
    }
    let x = if quantises { requantised(call, &x)? } else { x };
    // For each direction the outputs of all times, and the last states.
    let mut outputs = Vec::new();
    let mut last: Vec<Vec<Tensor>> = vec![Vec::new(); initial.len()];
    for (d, &reverse) in reverse.iter().enumerate() {
        let of = |x: &Tensor| x.select_index(0, d as isize);
        let mut input = x.matmul(&of(&weight)?.transpose(0, 1)?)?;
        let mut own = None;
        if let Some(bias) = &bias {
            let bias = of(bias)?;
            input = input.add(bias.slice(0, ..n)?)?;
            own = Some(bias.slice(0, n..)?);
        }
        let cell = Cell {
            input,
            recurrent: of(&recurrent)?.transpose(0, 1)?,
            bias: own,
            peepholes: peepholes.as_ref().map(of).transpose()?,
            activations: activations[d * per_direction..(d + 1) * per_direction].to_vec(),
            clip,
            hidden,
            quantises,
        };
        let mut states = initial.iter().map(of).collect::<Result<Vec<_>>>()?;
        let mut steps = Vec::with_capacity(time);
        for i in 0..time {
            Budget::check_interrupt()?;
            let t = if reverse { time - 1 - i } else { i };
            let next =
                (layer.step)(call, &cell, &cell.input.select_index(0, t as isize)?, &states)?;
            let Some(lengths) = &lengths else {
                steps.push(next[0].clone());
                states = next;
                continue;
            };
            // Behind its end a sequence keeps its state and has no output.
            let inside = lengths.gt(t as i64)?;
            steps.push(inside.where_(&next[0], next[0].zeros_like())?);
            let kept = next.iter().zip(&states).map(|(new, old)| inside.where_(new, old));
            states = kept.collect::<Result<_>>()?;
        }
        if reverse {
            steps.reverse();
        }
        outputs.push(match steps.is_empty() {
            true => Tensor::zeros([0, batch, hidden], x.dtype(), call.device()),
            false => Tensor::stack(&steps.iter().collect::<Vec<_>>(), 0)?,
        });
        last.iter_mut().zip(states).for_each(|(last, state)| last.push(state));
    }
    let stack = |list: &[Tensor], axis| Tensor::stack(&list.iter().collect::<Vec<_>>(), axis);
    let y = stack(&outputs, 1)?;
    let y = if batch_first { y.permute([2, 0, 1, 3])? } else { y };
    let mut values = vec![y.into()];
    for state in &last {
        values.push(stack(state, if batch_first { 1 } else { 0 })?.into());
    }
    Ok(values)
}
