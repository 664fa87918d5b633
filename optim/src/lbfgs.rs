//! L-BFGS: a quasi-Newton method with limited memory, and a line search.
//!
//! It evaluates the loss several times in a step, so it takes a function, where an
//! [`Optimizer`](crate::Optimizer) takes a loss. Nocedal and Wright, "Numerical Optimization",
//! algorithms 7.4, 7.5, 3.5 and 3.6; constants and conditions to stop are PyTorch's, so that
//! iterates are equal.

use crate::optimizer::{check_option, distinct, refuse};
use std::collections::{BTreeMap, VecDeque};
use std::panic::Location;
use zyx_core::{DType, Error, Param, Result, Tensor, attribute};

/// Share of the predicted decrease that a step must reach (Armijo).
const SUFFICIENT_DECREASE: f64 = 1e-4;
/// Share of the slope that may be left at the end of a step.
const CURVATURE: f64 = 0.9;
/// Length below which an interval is not divided further.
const MIN_INTERVAL: f64 = 1e-9;
/// Least curvature along a step that is remembered.
const MIN_CURVATURE: f64 = 1e-10;

/// The numbers of [`Lbfgs`]; the defaults are PyTorch's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LbfgsOptions {
    /// The length of a step along the quasi-Newton direction, or where the line search begins; 1.
    pub learning_rate: f64,
    /// Most directions in one call of [`Lbfgs::step`]; 20.
    pub max_iterations: usize,
    /// Most evaluations of the loss in one call; `None` is 5/4 of `max_iterations`.
    pub max_evaluations: Option<usize>,
    /// Ends a call when no component of the gradient is larger; 1e-7.
    pub gradient_tolerance: f64,
    /// Ends a call when neither the loss nor any element changes more; 1e-9.
    pub change_tolerance: f64,
    /// Steps that are remembered; 100.
    pub history: usize,
    /// Whether the length of steps is searched for by the strong Wolfe conditions; false.
    pub strong_wolfe: bool,
}

impl Default for LbfgsOptions {
    fn default() -> LbfgsOptions {
        LbfgsOptions {
            learning_rate: 1.0,
            max_iterations: 20,
            max_evaluations: None,
            gradient_tolerance: 1e-7,
            change_tolerance: 1e-9,
            history: 100,
            strong_wolfe: false,
        }
    }
}

impl LbfgsOptions {
    #[track_caller]
    fn check(&self) -> Result<()> {
        let numbers = [
            ("learning_rate", self.learning_rate),
            ("gradient_tolerance", self.gradient_tolerance),
            ("change_tolerance", self.change_tolerance),
        ];
        for (name, x) in numbers {
            check_option("Lbfgs::new", name, x, 0.0, f64::INFINITY)?;
        }
        check_option("Lbfgs::new", "history", self.history as f64, 1.0, f64::INFINITY)
    }
}

/// Limited-memory BFGS.
///
/// ```
/// use zyx::optim::{Lbfgs, LbfgsOptions};
/// use zyx::{Param, Tensor};
/// let device = zyx::device()?;
/// let x = Param::new(Tensor::new([-1f64, 1.0], &device)?);
/// let options = LbfgsOptions { strong_wolfe: true, max_iterations: 60, ..Default::default() };
/// let mut lbfgs = Lbfgs::new(vec![x.clone()], options)?;
/// // Rosenbrock's valley.
/// lbfgs.step(|| {
///     let (a, b) = (x.tensor().select_index(0, 0)?, x.tensor().select_index(0, 1)?);
///     Ok((&a - 1.0).square() + (b - a.square()).square() * 100.0)
/// })?;
/// assert!((x.tensor() - 1.0).abs().max(..)?.item::<f64>()? < 1e-4);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Debug)]
pub struct Lbfgs {
    parameters: Vec<Param>,
    options: LbfgsOptions,
    state: State,
}

/// State that is kept between steps. Vectors are all parameters, one after the other.
#[derive(Clone, Debug, Default)]
struct State {
    /// Directions so far.
    iterations: u64,
    evaluations: u64,
    /// Changes of the parameters, with those of the gradient, the oldest first.
    pairs: VecDeque<[Tensor; 2]>,
    /// The last direction, how far it was followed, and the gradient before.
    last: Option<(Tensor, f64, Tensor)>,
}

/// Loss, gradient, and slope along the direction after a step of some length.
#[derive(Clone)]
struct Point {
    length: f64,
    loss: f64,
    gradient: Tensor,
    slope: f64,
}

/// The loss and gradients of the parameters as they stand.
type Evaluate<'a> = dyn FnMut() -> Result<(Tensor, Vec<Option<Tensor>>)> + 'a;

impl Lbfgs {
    /// For these parameters, on one device.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Param::new(Tensor::new([1f32], &device)?);
    /// assert!(Lbfgs::new(vec![x], LbfgsOptions { history: 0, ..Default::default() }).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When an option is out of range, there are no parameters, or they are on several devices.
    #[track_caller]
    pub fn new(parameters: Vec<Param>, options: LbfgsOptions) -> Result<Lbfgs> {
        options.check()?;
        let parameters = distinct(parameters);
        let device = match parameters.first() {
            Some(first) => first.device(),
            None => return Err(refuse("Lbfgs::new", "there are no parameters".to_owned())),
        };
        if parameters.iter().any(|parameter| parameter.device() != device) {
            return Err(refuse("Lbfgs::new", "parameters are on several devices".to_owned()));
        }
        Ok(Lbfgs { parameters, options, state: State::default() })
    }

    /// The parameters, each once.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Param::new(Tensor::new([1f32], &device)?);
    /// let lbfgs = Lbfgs::new(vec![x.clone(), x], LbfgsOptions::default())?;
    /// assert_eq!(lbfgs.parameters().len(), 1);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn parameters(&self) -> &[Param] {
        &self.parameters
    }

    /// The numbers it works with.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Param::new(Tensor::new([1f32], &device)?);
    /// assert_eq!(Lbfgs::new(vec![x], LbfgsOptions::default())?.options().history, 100);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn options(&self) -> LbfgsOptions {
        self.options
    }

    /// Changes the factor of each step.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([1f32], &device)?);
    /// let mut lbfgs = Lbfgs::new(vec![x], LbfgsOptions::default())?;
    /// lbfgs.set_learning_rate(0.5);
    /// assert_eq!(lbfgs.options().learning_rate, 0.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn set_learning_rate(&mut self, learning_rate: f64) {
        self.options.learning_rate = learning_rate;
    }

    /// Follows directions until a condition of the options holds. `loss` computes the loss of the
    /// parameters as they stand, and is called several times. Gives the loss of the first call.
    ///
    /// # Errors
    /// When `loss` fails, is not one number or depends on none of the parameters, or the device
    /// fails; parameters and state are those before then.
    #[track_caller]
    pub fn step(&mut self, mut loss: impl FnMut() -> Result<Tensor>) -> Result<f64> {
        let (parameters, location) = (self.parameters.clone(), Location::caller());
        self.step_with(&mut || {
            let loss = loss()?;
            if loss.numel() != 1 {
                let reason = format!("the loss has shape {}, not one number", loss.shape());
                return Err(Error::Argument { op: "Lbfgs::step", reason, location });
            }
            let values: Vec<Tensor> = parameters.iter().map(Param::tensor).collect();
            let gradients = loss.grad(&values.iter().collect::<Vec<_>>())?;
            Ok((loss, gradients))
        })
    }

    /// [`Lbfgs::step`] by a function that gives the gradients of the parameters, too; parameters
    /// without one, or that are not trainable, stay.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Param::new(Tensor::new([3f64], &device)?);
    /// let mut lbfgs = Lbfgs::new(vec![x.clone()], LbfgsOptions::default())?;
    /// // x^2 and 2 x
    /// lbfgs.step_with(&mut || {
    ///     let x = x.tensor();
    ///     Ok((x.square().sum(..)?, vec![Some(x * 2.0)]))
    /// })?;
    /// assert!(x.tensor().abs().item::<f64>()? < 1e-6);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lbfgs::step`], and when gradients have other shapes than parameters.
    #[track_caller]
    pub fn step_with(&mut self, evaluate: &mut Evaluate<'_>) -> Result<f64> {
        let (values, state) =
            (self.parameters.iter().map(Param::tensor).collect::<Vec<_>>(), self.state.clone());
        let here = Location::caller();
        let found = attribute(here, || self.follow(evaluate));
        let found = found.map_err(|error| error.outside_library(here));
        if found.is_err() {
            self.state = state;
            for (parameter, value) in self.parameters.iter().zip(&values) {
                parameter.set(value)?;
            }
        }
        found
    }

    #[track_caller]
    fn follow(&mut self, evaluate: &mut Evaluate<'_>) -> Result<f64> {
        let options = self.options;
        let max_evaluations = options.max_evaluations.unwrap_or(options.max_iterations * 5 / 4);
        let (first, mut gradient) = self.evaluate(evaluate)?;
        let (mut loss, mut evaluations) = (first, 1);
        if largest(&gradient)? <= options.gradient_tolerance {
            return Ok(first);
        }
        for iteration in 1..=options.max_iterations {
            let direction = self.direction(&gradient)?;
            let (before, start) = (loss, self.values()?);
            let sums = [gradient.abs().sum(..)?, gradient.mul(&direction)?.sum(..)?];
            let [size, slope] = numbers(&sums)?[..] else { unreachable!("two were asked for") };
            self.state.last = Some((direction.clone(), 0.0, gradient.clone()));
            if slope > -options.change_tolerance {
                break;
            }
            let is_first = self.state.iterations == 1;
            let scale = if is_first { (1.0 / size).min(1.0) } else { 1.0 };
            let mut length = scale * options.learning_rate;
            if options.strong_wolfe {
                let point = Point { length: 0.0, loss, gradient: gradient.clone(), slope };
                let mut at = |length: f64| -> Result<Point> {
                    self.set(&start, &direction, length)?;
                    let (loss, gradient) = self.evaluate(evaluate)?;
                    let slope = numbers(&[gradient.mul(&direction)?.sum(..)?])?[0];
                    Ok(Point { length, loss, gradient, slope })
                };
                let left = max_evaluations.saturating_sub(evaluations);
                let (found, n) = search(&point, length, largest(&direction)?, left, &mut at)?;
                self.set(&start, &direction, found.length)?;
                (length, loss, gradient) = (found.length, found.loss, found.gradient);
                evaluations += n;
            } else {
                self.set(&start, &direction, length)?;
                if iteration != options.max_iterations {
                    (loss, gradient) = self.evaluate(evaluate)?;
                    evaluations += 1;
                }
            }
            if let Some(last) = &mut self.state.last {
                last.1 = length;
            }
            let [rest, change] = [largest(&gradient)?, largest(&direction)? * length.abs()];
            if evaluations >= max_evaluations
                || rest <= options.gradient_tolerance
                || change <= options.change_tolerance
                || (loss - before).abs() < options.change_tolerance
            {
                break;
            }
        }
        Ok(first)
    }

    /// Loss and gradient of the parameters as they stand.
    #[track_caller]
    fn evaluate(&mut self, evaluate: &mut Evaluate<'_>) -> Result<(f64, Tensor)> {
        let (loss, gradients) = evaluate()?;
        if gradients.len() != self.parameters.len() {
            let (n, of) = (gradients.len(), self.parameters.len());
            return Err(refuse("Lbfgs::step", format!("{n} gradients for {of} parameters")));
        }
        let mut flat = Vec::with_capacity(gradients.len());
        let mut has_some = false;
        for (i, (gradient, parameter)) in gradients.iter().zip(&self.parameters).enumerate() {
            let value = parameter.tensor();
            flat.push(match gradient.as_ref().filter(|_| parameter.is_trainable()) {
                None => value.zeros_like(),
                Some(gradient) if gradient.shape().same(value.shape()) => {
                    has_some = true;
                    gradient.clone()
                }
                Some(other) => {
                    let (shape, of) = (other.shape(), value.shape());
                    let reason = format!("gradient {i} has shape {shape}, its parameter {of}");
                    return Err(refuse("Lbfgs::step", reason));
                }
            });
        }
        if !has_some {
            let reason = "the loss depends on none of the parameters".to_owned();
            return Err(refuse("Lbfgs::step", reason));
        }
        let gradient = self.flat(&flat)?;
        let loss = loss.detach().cast(DType::F32.promote(loss.dtype())).flatten();
        Tensor::realize_all([&gradient, &loss])?;
        self.state.evaluations += 1;
        Ok((numbers(&[loss])?[0], gradient))
    }

    /// Tensors as one vector, in the widest dtype of the parameters, at least `f32`.
    fn flat(&self, tensors: &[Tensor]) -> Result<Tensor> {
        let dtypes = self.parameters.iter().map(|parameter| parameter.dtype().accumulator());
        let dtype = dtypes.fold(DType::F32, DType::promote);
        let flat: Vec<Tensor> = tensors.iter().map(|x| x.detach().cast(dtype).flatten()).collect();
        Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)
    }

    fn values(&self) -> Result<Tensor> {
        let values: Vec<Tensor> = self.parameters.iter().map(Param::tensor).collect();
        stored(self.flat(&values)?)
    }

    /// Makes the parameters those of a vector, and `length` times another.
    fn set(&self, start: &Tensor, direction: &Tensor, length: f64) -> Result<()> {
        let all = start.add(direction.mul(length)?)?;
        let (mut from, mut values) = (0, Vec::with_capacity(self.parameters.len()));
        for parameter in &self.parameters {
            let shape = parameter.shape();
            let to = from + shape.numel();
            values.push(all.slice(0, from..to)?.reshape(shape)?.cast(parameter.dtype()));
            from = to;
        }
        Tensor::realize_all(&values)?;
        let mut trainable = self.parameters.iter().zip(&values).filter(|(p, _)| p.is_trainable());
        trainable.try_for_each(|(parameter, value)| parameter.set(value))
    }

    /// The direction to follow from a gradient, after the last step was remembered: minus the
    /// gradient, multiplied by the inverse Hessian that the remembered steps imply.
    fn direction(&mut self, gradient: &Tensor) -> Result<Tensor> {
        self.state.iterations += 1;
        let Some((direction, length, before)) = self.state.last.take() else {
            return stored(gradient.neg());
        };
        let (y, s) = (gradient.sub(before)?, direction.mul(length)?);
        Tensor::realize_all([&y, &s])?;
        if numbers(&[y.mul(&s)?.sum(..)?])?[0] > MIN_CURVATURE {
            if self.state.pairs.len() == self.options.history {
                self.state.pairs.pop_front();
            }
            self.state.pairs.push_back([s, y]);
        }
        let dot = |x: &Tensor, y: &Tensor| x.mul(y)?.sum(..);
        let mut q = gradient.neg();
        let mut alphas = vec![];
        for [s, y] in self.state.pairs.iter().rev() {
            let alpha = dot(s, &q)?.div(dot(y, s)?)?;
            q = q.sub(y.mul(&alpha)?)?;
            alphas.push(alpha);
        }
        if let Some([s, y]) = self.state.pairs.back() {
            q = q.mul(dot(y, s)?.div(dot(y, y)?)?)?;
        }
        for ([s, y], alpha) in self.state.pairs.iter().zip(alphas.iter().rev()) {
            let beta = dot(y, &q)?.div(dot(y, s)?)?;
            q = q.add(s.mul(alpha.sub(beta)?)?)?;
        }
        stored(q)
    }

    /// Everything that is needed to continue later, by name.
    ///
    /// ```
    /// # use zyx::optim::{Lbfgs, LbfgsOptions};
    /// # use zyx::{Param, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let x = Param::new(Tensor::new([3f64], &device)?);
    /// let mut lbfgs = Lbfgs::new(vec![x.clone()], LbfgsOptions::default())?;
    /// lbfgs.step(|| x.tensor().square().sum(..))?;
    /// let mut again = Lbfgs::new(vec![x], LbfgsOptions::default())?;
    /// again.load_state(&lbfgs.state())?;
    /// assert_eq!(again.state().len(), lbfgs.state().len());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn state(&self) -> BTreeMap<String, Tensor> {
        let mut all = BTreeMap::new();
        let device = self.parameters[0].device();
        let State { iterations, evaluations, pairs, last } = &self.state;
        let mut count = |name: &str, n: u64| {
            all.insert(name.to_owned(), Tensor::full((), n as i64, &device));
        };
        count("iterations", *iterations);
        count("evaluations", *evaluations);
        for (i, [s, y]) in pairs.iter().enumerate() {
            all.insert(format!("{i}.step"), s.clone());
            all.insert(format!("{i}.change"), y.clone());
        }
        if let Some((direction, length, gradient)) = last {
            all.insert("direction".to_owned(), direction.clone());
            all.insert("length".to_owned(), gradient.full_like(*length).flatten());
            all.insert("gradient".to_owned(), gradient.clone());
        }
        all
    }

    /// Continues from what [`Lbfgs::state`] gave for the same parameters.
    ///
    /// # Errors
    /// [`Error::Format`] when something is missing or does not fit; nothing has changed then.
    #[track_caller]
    pub fn load_state(&mut self, state: &BTreeMap<String, Tensor>) -> Result<()> {
        let here = Location::caller();
        let read = attribute(here, || self.read_state(state));
        self.state = read.map_err(|error| error.outside_library(here))?;
        Ok(())
    }

    fn read_state(&self, state: &BTreeMap<String, Tensor>) -> Result<State> {
        let fail = |reason: String| Error::Format { what: "state of Lbfgs".into(), reason };
        let find = |name: &str| state.get(name).ok_or_else(|| fail(format!("`{name}` is missing")));
        let count = |name: &str| -> Result<u64> {
            let n = find(name)?.cast(DType::I64).item::<i64>()?;
            u64::try_from(n).map_err(|_| fail(format!("`{name}` is negative")))
        };
        let like = self.values()?;
        let vector = |name: &str| -> Result<Tensor> {
            let x = find(name)?;
            if !x.shape().same(like.shape()) {
                return Err(fail(format!("`{name}` is {} instead of {}", x.shape(), like.shape())));
            }
            stored(x.to_device(like.device())?.cast(like.dtype()))
        };
        let mut pairs = VecDeque::new();
        while state.contains_key(&format!("{}.step", pairs.len())) {
            let i = pairs.len();
            pairs.push_back([vector(&format!("{i}.step"))?, vector(&format!("{i}.change"))?]);
        }
        let last = match state.contains_key("direction") {
            false => None,
            true => {
                let length = vector("length")?.slice(0, ..1)?;
                Some((vector("direction")?, numbers(&[length])?[0], vector("gradient")?))
            }
        };
        let (iterations, evaluations) = (count("iterations")?, count("evaluations")?);
        Ok(State { iterations, evaluations, pairs, last })
    }
}

/// The tensor, computed.
fn stored(x: Tensor) -> Result<Tensor> {
    x.realize()?;
    Ok(x)
}

/// Numbers of tensors of one element and dtype, read together.
fn numbers(tensors: &[Tensor]) -> Result<Vec<f64>> {
    let flat: Vec<Tensor> = tensors.iter().map(Tensor::flatten).collect();
    let all = Tensor::cat(&flat.iter().collect::<Vec<_>>(), 0)?;
    match all.dtype() {
        DType::F64 => all.to_vec::<f64>(),
        _ => Ok(all.cast(DType::F32).to_vec::<f32>()?.into_iter().map(f64::from).collect()),
    }
}

/// The largest absolute value; 0 if there are no elements.
fn largest(x: &Tensor) -> Result<f64> {
    if x.numel() == 0 {
        return Ok(0.0);
    }
    Ok(numbers(&[x.abs().max(..)?])?[0])
}

/// A point that satisfies the strong Wolfe conditions, or the best one found; and the number of
/// evaluations, up to `most` after that at the length `first`. `scale` is the largest element of the
/// direction.
fn search(
    start: &Point,
    first: f64,
    scale: f64,
    most: usize,
    at: &mut dyn FnMut(f64) -> Result<Point>,
) -> Result<(Point, usize)> {
    let is_high =
        |point: &Point| point.loss > start.loss + SUFFICIENT_DECREASE * point.length * start.slope;
    let is_flat = |point: &Point| point.slope.abs() <= -CURVATURE * start.slope;
    let (mut before, mut point) = (start.clone(), at(first)?);
    let mut n = 0;
    // Longer steps, until two points have a minimum between them.
    let mut bracket = loop {
        if n == most {
            break [start.clone(), point];
        }
        if is_high(&point) || (n > 1 && point.loss >= before.loss) {
            break [before, point];
        }
        if is_flat(&point) {
            return Ok((point, n + 1));
        }
        if point.slope >= 0.0 {
            break [before, point];
        }
        let least = point.length + 0.01 * (point.length - before.length);
        let length = cubic_minimum(&before, &point, [least, point.length * 10.0]);
        before = point;
        point = at(length)?;
        n += 1;
    };
    // The better point is the first one.
    let sort = |bracket: &mut [Point; 2]| {
        if bracket[0].loss > bracket[1].loss {
            bracket.swap(0, 1);
        }
    };
    sort(&mut bracket);
    let mut was_near_end = false;
    while n < most {
        let [a, b] = bracket.each_ref().map(|point| point.length);
        let (low, high) = (a.min(b), a.max(b));
        if (high - low) * scale < MIN_INTERVAL {
            break;
        }
        let mut length = cubic_minimum(&bracket[0], &bracket[1], [low, high]);
        // Not twice near an end of the interval.
        let margin = 0.1 * (high - low);
        let is_near_end = (high - length).min(length - low) < margin;
        let is_moved = is_near_end && (was_near_end || length >= high || length <= low);
        if is_moved {
            let is_upper = (length - high).abs() < (length - low).abs();
            length = if is_upper { high - margin } else { low + margin };
        }
        was_near_end = is_near_end && !is_moved;
        let point = at(length)?;
        n += 1;
        if is_high(&point) || point.loss >= bracket[0].loss {
            bracket[1] = point;
            sort(&mut bracket);
            continue;
        }
        let is_done = is_flat(&point);
        if !is_done && point.slope * (bracket[1].length - bracket[0].length) >= 0.0 {
            bracket.swap(0, 1);
        }
        bracket[0] = point;
        if is_done {
            break;
        }
    }
    let [best, _] = bracket;
    Ok((best, n + 1))
}

/// The minimum within bounds of the cubic polynomial with the losses and slopes of two points.
fn cubic_minimum(a: &Point, b: &Point, [low, high]: [f64; 2]) -> f64 {
    let (a, b) = if a.length <= b.length { (a, b) } else { (b, a) };
    let width = b.length - a.length;
    let mean = a.slope + b.slope - 3.0 * (a.loss - b.loss) / (a.length - b.length);
    let square = mean * mean - a.slope * b.slope;
    if square < 0.0 {
        return (low + high) / 2.0;
    }
    let root = square.sqrt();
    let share = (b.slope + root - mean) / (b.slope - a.slope + 2.0 * root);
    (b.length - width * share).min(high).max(low)
}
