//! Recurrent layers: [`Rnn`], [`Gru`], [`Lstm`], and their single steps [`RnnCell`], [`GruCell`],
//! [`LstmCell`].
//!
//! Names, shapes and the order of gates are PyTorch's: `weight_ih_l0` `[gates hidden, in]`,
//! `weight_hh_l0` `[gates hidden, hidden]`, `bias_ih_l0`, `bias_hh_l0`, with `_reverse` behind for
//! the backward direction; gates r, z, n of a GRU, i, f, g, o of an LSTM. All are uniform within
//! `1 / sqrt(hidden)` at first.
//!
//! The products with the inputs of all steps are one matmul; each step adds its product with the
//! state. A sequence is one graph, whose size grows with the number of steps; traces list each layer as one operator
//! ([`Steps::note`]).

use crate::init::{OfLayer, located};
use crate::{Forward, Init, Mode, Module, Path, RngStream, Visitor};
use zyx_core::tensor::Steps;
use zyx_core::{Param, Result, Tensor};

/// How the state moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tanh,
    Relu,
    Gru,
    Lstm,
}

impl Kind {
    fn gates(self) -> usize {
        match self {
            Kind::Tanh | Kind::Relu => 1,
            Kind::Gru => 3,
            Kind::Lstm => 4,
        }
    }

    /// Tensors of state: an LSTM has its output and its cell.
    fn states(self) -> usize {
        if self == Kind::Lstm { 2 } else { 1 }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Tanh | Kind::Relu => "Rnn",
            Kind::Gru => "Gru",
            Kind::Lstm => "Lstm",
        }
    }

    /// The operator of a layer in traces. Its operands are `x` `[steps, n, in]`, the parameters of each direction in
    /// the order of their names, and the states `[directions, n, hidden]`; its results the outputs `[steps, n,
    /// directions hidden]` and the last states `[n, hidden]` of each direction.
    fn operator(self) -> &'static str {
        match self {
            Kind::Tanh => "rnn_tanh",
            Kind::Relu => "rnn_relu",
            Kind::Gru => "gru",
            Kind::Lstm => "lstm",
        }
    }
}

/// The parameters of one layer in one direction.
#[derive(Clone, Debug)]
struct Weights {
    ih: Param,
    hh: Param,
    bias: Option<[Param; 2]>,
}

impl Weights {
    #[track_caller]
    fn new(
        kind: Kind,
        inputs: usize,
        hidden: usize,
        bias: bool,
        init: &mut Init,
    ) -> Result<Weights> {
        let Some(rows) = hidden.checked_mul(kind.gates()) else {
            return Err(Init::refuse(kind.name(), format!("a state of {hidden} is too large")));
        };
        let mut draw = |shape: &[usize]| -> Result<Param> {
            Ok(Param::new(init.fan_in_uniform(shape, hidden)?))
        };
        let (ih, hh) = (draw(&[rows, inputs])?, draw(&[rows, hidden])?);
        let bias = if bias { Some([draw(&[rows])?, draw(&[rows])?]) } else { None };
        Ok(Weights { ih, hh, bias })
    }

    fn visit(&self, suffix: &str, path: &mut Path, visitor: &mut dyn Visitor) {
        let mut show = |name: &str, parameter: &Param| {
            path.within(&format!("{name}{suffix}"), |path| parameter.visit(path, visitor));
        };
        show("weight_ih", &self.ih);
        show("weight_hh", &self.hh);
        if let Some([ih, hh]) = &self.bias {
            show("bias_ih", ih);
            show("bias_hh", hh);
        }
    }

    /// The parameters in the order of their names.
    fn tensors(&self) -> Vec<Tensor> {
        let biases = self.bias.iter().flatten();
        [&self.ih, &self.hh].into_iter().chain(biases).map(Param::tensor).collect()
    }

    fn inputs(&self) -> usize {
        self.ih.shape()[1]
    }

    fn hidden(&self) -> usize {
        self.hh.shape()[1]
    }

    /// The share of inputs `[.., in]` in the gates, `[.., gates hidden]`, with what is the same in
    /// all steps: the states' bias too, unless a gate multiplies it.
    #[track_caller]
    fn of_inputs(&self, kind: Kind, x: &Tensor) -> Result<Tensor> {
        let y = x.matmul(&self.ih.tensor().t())?;
        match (&self.bias, kind) {
            (Some([ih, _]), Kind::Gru) => y.add(ih.tensor()),
            (Some([ih, hh]), _) => y.add(ih.tensor().add(hh.tensor())?),
            (None, _) => Ok(y),
        }
    }

    /// The next state from the inputs' share `[n, gates hidden]` and the state.
    #[track_caller]
    fn step(&self, kind: Kind, x: &Tensor, state: &[Tensor]) -> Result<Vec<Tensor>> {
        let mut h = state[0].matmul(&self.hh.tensor().t())?;
        if let (Some([_, bias]), Kind::Gru) = (&self.bias, kind) {
            h = h.add(bias.tensor())?;
        }
        let n = self.hidden();
        let gate = |of: &Tensor, i: usize| of.slice(-1, i * n..(i + 1) * n);
        match kind {
            Kind::Tanh => Ok(vec![x.add(h)?.tanh()]),
            Kind::Relu => Ok(vec![x.add(h)?.relu()]),
            Kind::Gru => {
                let reset = gate(x, 0)?.add(gate(&h, 0)?)?.sigmoid();
                let keep = gate(x, 1)?.add(gate(&h, 1)?)?.sigmoid();
                let new = gate(x, 2)?.add(reset.mul(gate(&h, 2)?)?)?.tanh();
                Ok(vec![new.add(keep.mul(state[0].sub(&new)?)?)?])
            }
            Kind::Lstm => {
                let all = x.add(h)?;
                let [input, forget] = [gate(&all, 0)?.sigmoid(), gate(&all, 1)?.sigmoid()];
                let [new, output] = [gate(&all, 2)?.tanh(), gate(&all, 3)?.sigmoid()];
                let cell = forget.mul(&state[1])?.add(input.mul(new)?)?;
                Ok(vec![output.mul(cell.tanh())?, cell])
            }
        }
    }
}

/// The options of [`Rnn`], [`Gru`] and [`Lstm`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecurrentOptions {
    /// Layers, each on the outputs of the one before; 1.
    pub layers: usize,
    /// A second direction from the end, its outputs beside the first's; false.
    pub bidirectional: bool,
    /// Sequences are `[n, steps, in]` instead of `[steps, n, in]`; false.
    pub batch_first: bool,
    /// Dropout of the outputs between layers; 0.
    pub dropout: f64,
    /// Whether there are biases; true.
    pub bias: bool,
}

impl Default for RecurrentOptions {
    fn default() -> RecurrentOptions {
        RecurrentOptions {
            layers: 1,
            bidirectional: false,
            batch_first: false,
            dropout: 0.0,
            bias: true,
        }
    }
}

/// Layers of one kind.
#[derive(Clone, Debug)]
struct Stack {
    kind: Kind,
    /// Layer by layer, within each by direction.
    weights: Vec<Weights>,
    options: RecurrentOptions,
    mode: Mode,
    stream: RngStream,
}

impl Stack {
    /// A parameter with the layer's name.
    fn named(&self) -> Option<&Param> {
        self.weights.first().map(|weights| &weights.ih)
    }

    #[track_caller]
    fn new(
        kind: Kind,
        inputs: usize,
        hidden: usize,
        options: RecurrentOptions,
        init: &mut Init,
    ) -> Result<Stack> {
        let refuse = |reason: String| Err(Init::refuse(kind.name(), reason));
        if hidden == 0 || options.layers == 0 {
            return refuse(format!("{} layers of {hidden}", options.layers));
        }
        if !(0.0..=1.0).contains(&options.dropout) {
            return refuse(format!("{} is not a probability", options.dropout));
        }
        let directions = if options.bidirectional { 2 } else { 1 };
        let mut weights = Vec::new();
        for layer in 0..options.layers {
            let width = if layer == 0 { inputs } else { hidden.saturating_mul(directions) };
            for _ in 0..directions {
                weights.push(Weights::new(kind, width, hidden, options.bias, init)?);
            }
        }
        let (mode, stream) = (Mode::default(), RngStream::new(init.rng.split()));
        Ok(Stack { kind, weights, options, mode, stream })
    }

    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        let directions = if self.options.bidirectional { 2 } else { 1 };
        for (i, weights) in self.weights.iter().enumerate() {
            let reverse = if i % directions == 1 { "_reverse" } else { "" };
            weights.visit(&format!("_l{}{reverse}", i / directions), path, visitor);
        }
        self.mode.visit(path, visitor);
        path.within("stream", |path| self.stream.visit(path, visitor));
    }

    /// Outputs of all steps, and the states after the last, `[layers directions, n, hidden]` each.
    #[track_caller]
    fn run(&self, x: &Tensor, start: Option<&[&Tensor]>) -> Result<(Tensor, Vec<Tensor>)> {
        let name = self.kind.name();
        let inputs = self.weights[0].inputs();
        let batched = x.rank() == 3;
        if !(2..=3).contains(&x.rank()) || x.shape()[x.rank() - 1] != inputs {
            let reason = format!("needs a sequence of {inputs} features, not shape {}", x.shape());
            return Err(Init::refuse(name, reason));
        }
        let swapped = batched && self.options.batch_first;
        let mut x = match (batched, swapped) {
            (false, _) => x.unsqueeze(1)?,
            (true, false) => x.clone(),
            (true, true) => x.transpose(0, 1)?,
        };
        let (steps, n) = (x.shape()[0], x.shape()[1]);
        if steps == 0 {
            return Err(Init::refuse(name, "the sequence has no step".to_owned()));
        }
        let start = self.start(&x, n, batched, start)?;
        let directions = if self.options.bidirectional { 2 } else { 1 };
        let mut last: Vec<Vec<Tensor>> = vec![vec![]; self.kind.states()];
        for (layer, weights) in self.weights.chunks(directions).enumerate() {
            if layer > 0 && self.options.dropout > 0.0 && self.mode.is_training() {
                x = x.dropout(self.options.dropout, &mut self.stream.lock())?;
            }
            let places = layer * directions..(layer + 1) * directions;
            let start: Vec<Tensor> =
                start.iter().map(|s| s.slice(0, places.clone())).collect::<Result<_>>()?;
            let (mut outputs, mut ends) = (Vec::new(), Vec::new());
            for (direction, weights) in weights.iter().enumerate() {
                let state: Result<Vec<Tensor>> =
                    start.iter().map(|s| s.select_index(0, direction as isize)).collect();
                let (y, state) = self.sequence(weights, &x, state?, direction == 1)?;
                outputs.push(y);
                last.iter_mut().zip(&state).for_each(|(all, state)| all.push(state.clone()));
                ends.extend(state);
            }
            let y = match &outputs[..] {
                [one] => one.clone(),
                _ => Tensor::cat(&outputs.iter().collect::<Vec<_>>(), -1)?,
            };
            let parameters: Vec<Tensor> = weights.iter().flat_map(Weights::tensors).collect();
            let operands: Vec<&Tensor> =
                [&x].into_iter().chain(&parameters).chain(&start).collect();
            let results: Vec<&Tensor> = [&y].into_iter().chain(&ends).collect();
            Steps::note(self.kind.operator(), &operands, &results);
            x = y;
        }
        let stack = |states: &Vec<Tensor>| -> Result<Tensor> {
            let all = Tensor::stack(&states.iter().collect::<Vec<_>>(), 0)?;
            if batched { Ok(all) } else { all.squeeze(1) }
        };
        let last = last.iter().map(stack).collect::<Result<Vec<Tensor>>>()?;
        let y = match (batched, swapped) {
            (false, _) => x.squeeze(1)?,
            (true, false) => x,
            (true, true) => x.transpose(0, 1)?,
        };
        Ok((y, last))
    }

    /// The states to start with, `[layers directions, n, hidden]`: those given, or zeros.
    #[track_caller]
    fn start(
        &self,
        x: &Tensor,
        n: usize,
        batched: bool,
        given: Option<&[&Tensor]>,
    ) -> Result<Vec<Tensor>> {
        let shape = [self.weights.len(), n, self.weights[0].hidden()];
        let Some(given) = given else {
            let dtype = self.weights[0].hh.dtype();
            return Ok(vec![Tensor::zeros(shape, dtype, x.device()); self.kind.states()]);
        };
        let state = |state: &&Tensor| -> Result<Tensor> {
            let state = if batched { (*state).clone() } else { state.unsqueeze(1)? };
            if state.shape().dims() == shape {
                return Ok(state);
            }
            let reason = format!("the state has shape {} instead of {shape:?}", state.shape());
            Err(Init::refuse(self.kind.name(), reason))
        };
        given.iter().map(state).collect()
    }

    /// One layer in one direction over `[steps, n, in]`.
    #[track_caller]
    fn sequence(
        &self,
        weights: &Weights,
        x: &Tensor,
        mut state: Vec<Tensor>,
        backward: bool,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let shares = weights.of_inputs(self.kind, x)?;
        let steps = x.shape()[0];
        let mut outputs = Vec::with_capacity(steps);
        for i in 0..steps {
            let at = if backward { steps - 1 - i } else { i };
            let share = shares.select_index(0, at as isize)?;
            state = weights.step(self.kind, &share, &state)?;
            outputs.push(state[0].clone());
        }
        if backward {
            outputs.reverse();
        }
        Ok((Tensor::stack(&outputs.iter().collect::<Vec<_>>(), 0)?, state))
    }
}

macro_rules! recurrent {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Stack);

        impl $name {
            /// From `inputs` features to a state of `hidden`.
            ///
            /// ```
            /// # use zyx::nn::{Forward, Gru, Init, RecurrentOptions};
            /// # use zyx::{DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = Gru::new(3, 4, RecurrentOptions::default(), init)?;
            /// let x = Tensor::ones([7, 5, 3], DType::F32, &device);
            /// assert_eq!(layer.forward(&x)?.shape().dims(), [7, 5, 4]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When an extent is 0, the dropout is no probability, or the device fails.
            #[track_caller]
            pub fn new(
                inputs: usize,
                hidden: usize,
                options: RecurrentOptions,
                init: &mut Init,
            ) -> Result<$name> {
                located(|| Ok($name(Stack::new(Kind::$kind, inputs, hidden, options, init)?)))
            }

            /// The options it was made with.
            ///
            /// ```
            /// # use zyx::nn::{Gru, Init, RecurrentOptions};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let layer = Gru::new(3, 4, RecurrentOptions { layers: 2, ..Default::default() }, init)?;
            /// assert_eq!(layer.options().layers, 2);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            pub fn options(&self) -> RecurrentOptions {
                self.0.options
            }
        }

        impl Module for $name {
            fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
                self.0.visit(path, visitor);
            }
        }

        impl Forward for $name {
            /// The outputs of all steps, from a state of zeros.
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Result<Tensor> {
                located(|| Ok(self.0.run(x, None)?.0)).of_layer(self.0.named())
            }
        }
    )*};
}

recurrent! {
    /// A plain recurrent network (Elman 1990): `h = tanh(W x + b + U h + c)`.
    Rnn Tanh;
    /// A gated recurrent unit (Cho et al. 2014), with the reset gate after the product.
    Gru Gru;
    /// Long short-term memory (Hochreiter and Schmidhuber 1997, with the forget gate of Gers et
    /// al. 2000).
    ///
    /// ```
    /// use zyx::nn::{Init, Lstm, Module, RecurrentOptions};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let init = &mut Init::new(0, &device);
    /// let options = RecurrentOptions { layers: 2, batch_first: true, ..Default::default() };
    /// let lstm = Lstm::new(3, 4, options, init)?;
    /// let x = Tensor::ones([5, 7, 3], DType::F32, &device);
    /// let (y, (h, c)) = lstm.run(&x, None)?;
    /// assert_eq!(y.shape().dims(), [5, 7, 4]);
    /// assert_eq!((h.shape().dims(), c.shape().dims()), (&[2, 5, 4][..], &[2, 5, 4][..]));
    /// assert_eq!(lstm.named_parameters()[4].0, "weight_ih_l1");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    Lstm Lstm;
}

impl Rnn {
    /// As [`Rnn::new`], with ReLU in place of the hyperbolic tangent.
    ///
    /// ```
    /// # use zyx::nn::{Forward, Init, RecurrentOptions, Rnn};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Rnn::relu(3, 4, RecurrentOptions::default(), init)?;
    /// let x = Tensor::ones([7, 5, 3], DType::F32, &device);
    /// assert_eq!(layer.forward(&x)?.shape().dims(), [7, 5, 4]);
    /// assert!(layer.forward(&x)?.ge(0)?.all(..)?.item::<bool>()?);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Rnn::new`].
    #[track_caller]
    pub fn relu(
        inputs: usize,
        hidden: usize,
        options: RecurrentOptions,
        init: &mut Init,
    ) -> Result<Rnn> {
        located(|| Ok(Rnn(Stack::new(Kind::Relu, inputs, hidden, options, init)?)))
    }

    /// The outputs of all steps and the last states `[layers directions, n, hidden]`, from given
    /// states of that shape or zeros. `x` is a sequence as the options say, or one without `n`.
    ///
    /// # Errors
    /// When the shapes do not fit, or there is no step.
    #[track_caller]
    pub fn run(&self, x: &Tensor, start: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let start = start.map(|start| [start]);
        let (y, mut last) =
            located(|| self.0.run(x, start.as_ref().map(|s| &s[..]))).of_layer(self.0.named())?;
        Ok((y, last.swap_remove(0)))
    }
}

impl Gru {
    /// The outputs of all steps and the last states `[layers directions, n, hidden]`, from given
    /// states of that shape or zeros. `x` is a sequence as the options say, or one without `n`.
    ///
    /// # Errors
    /// When the shapes do not fit, or there is no step.
    #[track_caller]
    pub fn run(&self, x: &Tensor, start: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let start = start.map(|start| [start]);
        let (y, mut last) =
            located(|| self.0.run(x, start.as_ref().map(|s| &s[..]))).of_layer(self.0.named())?;
        Ok((y, last.swap_remove(0)))
    }
}

impl Lstm {
    /// The outputs of all steps and the last outputs and cells `[layers directions, n, hidden]`,
    /// from given ones of that shape or zeros. `x` is a sequence as the options say, or one
    /// without `n`.
    ///
    /// # Errors
    /// When the shapes do not fit, or there is no step.
    #[track_caller]
    pub fn run(
        &self,
        x: &Tensor,
        start: Option<(&Tensor, &Tensor)>,
    ) -> Result<(Tensor, (Tensor, Tensor))> {
        let start = start.map(|(h, c)| [h, c]);
        let (y, mut last) =
            located(|| self.0.run(x, start.as_ref().map(|s| &s[..]))).of_layer(self.0.named())?;
        let h = last.swap_remove(0);
        Ok((y, (h, last.swap_remove(0))))
    }
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            weights: Weights,
            kind: Kind,
        }

        impl $name {
            /// From `inputs` features to a state of `hidden`, with biases.
            ///
            /// ```
            /// # use zyx::nn::{GruCell, Init};
            /// # use zyx::{DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let cell = GruCell::new(3, 4, init)?;
            /// let (x, h) = (Tensor::ones([5, 3], DType::F32, &device), Tensor::zeros([5, 4], DType::F32, &device));
            /// assert_eq!(cell.step(&x, &h)?.shape().dims(), [5, 4]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the dtype is not a float, or the device fails.
            #[track_caller]
            pub fn new(inputs: usize, hidden: usize, init: &mut Init) -> Result<$name> {
                let kind = Kind::$kind;
                let weights = located(|| Weights::new(kind, inputs, hidden, true, init))?;
                Ok($name { weights, kind })
            }
        }

        impl Module for $name {
            fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
                self.weights.visit("", path, visitor);
            }
        }
    )*};
}

cells! {
    /// One step of an [`Rnn`].
    RnnCell Tanh;
    /// One step of a [`Gru`].
    GruCell Gru;
    /// One step of an [`Lstm`].
    LstmCell Lstm;
}

macro_rules! step {
    ($($name:ident)*) => {$(
        impl $name {
            /// The state `[n, hidden]` after inputs `[n, in]`.
            ///
            /// ```
            /// # use zyx::nn::{GruCell, Init};
            /// # use zyx::{DType, Tensor};
            /// # let device = zyx::runtime().device("reference")?;
            /// # let init = &mut Init::new(0, &device);
            /// let cell = GruCell::new(3, 4, init)?;
            /// let x = Tensor::ones([5, 3], DType::F32, &device);
            /// let mut h = Tensor::zeros([5, 4], DType::F32, &device);
            /// for _ in 0..3 {
            ///     h = cell.step(&x, &h)?;
            /// }
            /// assert_eq!(h.shape().dims(), [5, 4]);
            /// # Ok::<(), zyx::Error>(())
            /// ```
            ///
            /// # Errors
            /// When the shapes do not fit.
            #[track_caller]
            pub fn step(&self, x: &Tensor, state: &Tensor) -> Result<Tensor> {
                located(|| {
                    let share = self.weights.of_inputs(self.kind, x)?;
                    let state = std::slice::from_ref(state);
                    Ok(self.weights.step(self.kind, &share, state)?.swap_remove(0))
                })
                .of_layer(&self.weights.ih)
            }
        }
    )*};
}

step! { RnnCell GruCell }

impl LstmCell {
    /// Output and cell, both `[n, hidden]`, after inputs `[n, in]`.
    ///
    /// ```
    /// # use zyx::nn::{Init, LstmCell};
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let cell = LstmCell::new(3, 4, init)?;
    /// let x = Tensor::ones([5, 3], DType::F32, &device);
    /// let zero = Tensor::zeros([5, 4], DType::F32, &device);
    /// let (h, c) = cell.step(&x, (&zero, &zero))?;
    /// assert_eq!((h.shape().dims(), c.shape().dims()), (&[5, 4][..], &[5, 4][..]));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the shapes do not fit.
    #[track_caller]
    pub fn step(&self, x: &Tensor, state: (&Tensor, &Tensor)) -> Result<(Tensor, Tensor)> {
        let state = [state.0.clone(), state.1.clone()];
        let step = || self.weights.step(self.kind, &self.weights.of_inputs(self.kind, x)?, &state);
        let mut next = located(step).of_layer(&self.weights.ih)?;
        let h = next.swap_remove(0);
        Ok((h, next.swap_remove(0)))
    }
}
