//! A distribution that is a row of the table: its parameters, shapes and checks.

use super::draw::Draw;
use super::laws::ROWS;
use super::{Constraint, Distribution, refuse};
use crate::init::located;
use std::panic::Location;
use zyx_core::{DType, Error, Result, Rng, Shape, Tensor};

/// A formula of parameters.
pub(super) type OfParameters<T = Tensor> = fn(&[Tensor]) -> Result<T>;
/// A formula of parameters and a value.
pub(super) type OfValue = fn(&[Tensor], &Tensor) -> Result<Tensor>;
/// A formula of parameters and random numbers.
pub(super) type OfDraw = fn(&[Tensor], &mut Draw<'_>) -> Result<Tensor>;

/// A family of distributions: one row of the table in `laws.rs`.
///
/// Formulas get the parameters in their order, in one float dtype, expanded to the batch shape.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) parameters: &'static [&'static str],
    pub(super) constraints: OfParameters<Vec<Constraint>>,
    pub(super) support: OfParameters<Constraint>,
    /// Samples have gradients by the parameters.
    pub(super) is_pathwise: bool,
    pub(super) draw: OfDraw,
    pub(super) log_prob: OfValue,
    pub(super) closed: Closed,
}

/// Formulas that not every family has.
pub(super) struct Closed {
    pub(super) entropy: Option<OfParameters>,
    pub(super) mean: Option<OfParameters>,
    pub(super) variance: Option<OfParameters>,
    pub(super) cdf: Option<OfValue>,
    pub(super) icdf: Option<OfValue>,
}

impl Closed {
    pub(super) const NONE: Closed =
        Closed { entropy: None, mean: None, variance: None, cdf: None, icdf: None };
}

/// A distribution of one of the families by name, as [`Law::by_name`] makes it.
///
/// The types of the families ([`Normal`](super::Normal), ..) hold one each.
#[derive(Clone)]
pub struct Law {
    row: &'static Row,
    parameters: Vec<Tensor>,
    /// Of parameters and results.
    dtype: DType,
    batch: Shape,
    event: Shape,
    is_checked: bool,
}

impl std::fmt::Debug for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut fields = f.debug_struct(self.row.name);
        for (name, x) in self.row.parameters.iter().zip(&self.parameters) {
            fields.field(name, &format_args!("{} {}", x.dtype(), x.shape()));
        }
        fields.finish()
    }
}

/// The dtype that floats of these tensors are computed in; `f32` if none is a float.
pub(super) fn float_dtype(tensors: &[&Tensor]) -> DType {
    let dtypes = tensors.iter().map(|x| x.dtype()).filter(|dtype| dtype.is_float());
    dtypes.reduce(DType::promote).unwrap_or(DType::F32)
}

/// The dtype of formulas: halves are computed in `f32` and rounded once.
pub(super) fn wide(dtype: DType) -> DType {
    if dtype == DType::F64 { dtype } else { DType::F32 }
}

impl Law {
    /// The distribution of a family with these parameters, in the order of its constructor.
    ///
    /// Parameters broadcast; integers become `f32`. With `is_checked`, parameters and later the
    /// values of [`Distribution::log_prob`] are read and checked; values under `vmap` or in a
    /// [`Jit`](zyx_core::Jit) have no elements to read and are not.
    ///
    /// ```
    /// use zyx::distributions::{Distribution, Law};
    /// use zyx::Tensor;
    /// let device = zyx::device()?;
    /// let rate = Tensor::new([1f32, 2.0], &device)?;
    /// let law = Law::by_name("Exponential", &[&rate], true)?;
    /// assert_eq!(law.mean()?.to_vec::<f32>()?, [1.0, 0.5]);
    /// assert!(Law::by_name("Exponential", &[&-rate], true).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such family, the number of parameters is another, shapes do not broadcast,
    /// devices differ, or with `is_checked` a parameter is outside its set.
    #[track_caller]
    pub fn by_name(name: &str, parameters: &[&Tensor], is_checked: bool) -> Result<Law> {
        match ROWS.iter().find(|row| row.name == name) {
            Some(row) => Law::new(row, parameters, is_checked),
            None => Err(refuse("Law::by_name", format!("there is no distribution {name}"))),
        }
    }

    /// Names of the families, each with the names of its parameters.
    ///
    /// ```
    /// use zyx::distributions::Law;
    /// assert!(Law::families().any(|family| family == ("Normal", &["loc", "scale"])));
    /// ```
    pub fn families() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
        ROWS.iter().map(|row| (row.name, row.parameters))
    }

    #[track_caller]
    pub(super) fn new(row: &'static Row, given: &[&Tensor], is_checked: bool) -> Result<Law> {
        let n = row.parameters.len();
        if given.len() != n {
            return Err(refuse(
                row.name,
                format!("{n} parameters are needed, not {}", given.len()),
            ));
        }
        check_devices(row.name, given)?;
        let dtype = float_dtype(given);
        let parameters: Vec<Tensor> =
            located(|| Ok(given.iter().map(|x| x.cast(wide(dtype))).collect()))?;
        let constraints = located(|| (row.constraints)(&parameters))?;
        let ranks: Vec<usize> = constraints.iter().map(Constraint::event_rank).collect();
        let mut batch = Shape::scalar();
        let mut length = None;
        for ((name, x), &rank) in row.parameters.iter().zip(&parameters).zip(&ranks) {
            let dims = x.shape().dims();
            let (lead, vector) = dims.split_at(dims.len().saturating_sub(rank));
            let wrong = vector.iter().find(|&&n| n == 0 || n != *length.get_or_insert(n));
            let reason = match (wrong, batch.broadcast(&Shape::from(lead))) {
                _ if dims.len() < rank => format!("{name} needs {rank} axes or more"),
                (Some(n), _) => format!("{name} has vectors of {n} elements"),
                (None, None) => format!("{name} does not broadcast to the shape {batch}"),
                (None, Some(both)) => {
                    batch = both;
                    continue;
                }
            };
            return Err(shape_error(row.name, given, reason));
        }
        let expand = |(x, &rank): (&Tensor, &usize)| {
            let dims = x.shape().dims();
            x.expand(&[batch.dims(), &dims[dims.len() - rank..]].concat()[..])
        };
        let parameters: Result<Vec<Tensor>> =
            located(|| parameters.iter().zip(&ranks).map(expand).collect());
        let parameters = parameters?;
        let law = Law { row, parameters, dtype, batch, event: Shape::scalar(), is_checked };
        let event = match (law.support().event_rank(), length) {
            (1, Some(n)) => Shape::from([n]),
            _ => Shape::scalar(),
        };
        let law = Law { event, ..law };
        if is_checked {
            law.check_parameters()?;
        }
        Ok(law)
    }

    #[track_caller]
    fn check_parameters(&self) -> Result<()> {
        let constraints = located(|| (self.row.constraints)(&self.parameters))?;
        for ((constraint, x), name) in
            constraints.iter().zip(&self.parameters).zip(self.row.parameters)
        {
            if let Some(found) = located(|| constraint.first_outside(x))? {
                let reason = format!("{name} is {found}, it must be {constraint}");
                return Err(refuse(self.row.name, reason));
            }
        }
        Ok(())
    }

    /// The parameters in their order, expanded to the batch shape.
    ///
    /// ```
    /// use zyx::distributions::Law;
    /// use zyx::Tensor;
    /// let device = zyx::device()?;
    /// let law = Law::by_name("Poisson", &[&Tensor::new(3f32, &device)?], true)?;
    /// assert_eq!(law.parameters()[0].item::<f32>()?, 3.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    pub(super) fn parameter(&self, name: &str) -> &Tensor {
        let at = self.row.parameters.iter().position(|known| *known == name);
        &self.parameters[at.unwrap_or(0)]
    }

    pub(super) fn dtype(&self) -> DType {
        self.dtype
    }

    /// Samples, with gradients where there are some.
    #[track_caller]
    fn draw(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        // Vectors of parameters, or those of samples.
        let vector = self.parameters.iter().map(|x| &x.shape().dims()[self.batch.rank()..]);
        let vector = vector.max_by_key(|dims| dims.len().min(1)).unwrap_or(&[]);
        let vector = &vector[..vector.len().min(1)];
        let (device, dtype) = (self.parameters[0].device(), wide(self.dtype));
        let shape = [shape, self.batch.dims(), vector].concat();
        if check_room(self.row.name, &shape).is_err() {
            return Err(refuse(self.row.name, format!("samples of {shape:?} are too many")));
        }
        let mut draw = Draw { shape, dtype, device, rng };
        located(|| Ok((self.row.draw)(&self.parameters, &mut draw)?.cast(self.dtype)))
    }

    #[track_caller]
    fn of_parameters(&self, formula: Option<OfParameters>, what: &str) -> Result<Tensor> {
        let Some(formula) = formula else { return Err(self.has_no(what)) };
        located(|| Ok(formula(&self.parameters)?.cast(self.dtype)))
    }

    #[track_caller]
    fn of_value(&self, formula: Option<OfValue>, what: &str, value: &Tensor) -> Result<Tensor> {
        let Some(formula) = formula else { return Err(self.has_no(what)) };
        check_devices(self.row.name, &[&self.parameters[0], value])?;
        let lead = self.check_shape(value)?;
        // Vectors and matrices of parameters.
        let of_event = self.parameters.iter().map(|x| &x.shape().dims()[self.batch.rank()..]);
        let of_event = of_event.max_by_key(|dims| dims.len()).unwrap_or(&[]);
        check_room(self.row.name, &[lead.dims(), of_event].concat())?;
        located(|| Ok(formula(&self.parameters, &value.cast(wide(self.dtype)))?.cast(self.dtype)))
    }

    #[track_caller]
    fn has_no(&self, what: &str) -> Error {
        refuse(self.row.name, format!("there is no {what} of it"))
    }

    /// Refuses values whose shape does not fit; gives that of the result.
    #[track_caller]
    fn check_shape(&self, value: &Tensor) -> Result<Shape> {
        let dims = value.shape().dims();
        let (lead, event) = dims.split_at(dims.len().saturating_sub(self.event.rank()));
        match Shape::from(lead).broadcast(&self.batch) {
            Some(both) if event == self.event.dims() => Ok(both),
            _ => {
                let (batch, event) = (&self.batch, &self.event);
                let reason = format!(
                    "a value must broadcast with the batch shape {batch}, and have the event shape {event} behind"
                );
                Err(shape_error(self.row.name, &[value], reason))
            }
        }
    }
}

#[track_caller]
fn shape_error(op: &'static str, tensors: &[&Tensor], reason: String) -> Error {
    let operands = tensors.iter().copied().collect();
    Error::Shape { op, reason, operands, location: Location::caller() }
}

/// Refuses formulas whose values have too many elements or axes: they have this shape, and up to two
/// axes more, of [`MOST_ADDED`] elements.
#[track_caller]
pub(super) fn check_room(op: &'static str, dims: &[usize]) -> Result<()> {
    let n = dims.iter().fold(MOST_ADDED, |n, &extent| n.saturating_mul(extent.max(1)));
    let mut room = vec![1; dims.len() + 2];
    room[0] = n;
    match Shape::from(&room[..]).is_possible() {
        true => Ok(()),
        false => Err(refuse(op, format!("{dims:?} are too many elements or axes"))),
    }
}

/// Elements of the axes that formulas add: attempts times terms of a sum.
const MOST_ADDED: usize = 32 * 64;

#[track_caller]
pub(super) fn check_devices(op: &'static str, tensors: &[&Tensor]) -> Result<()> {
    let first = tensors[0].device();
    match tensors.iter().find(|x| x.device() != first) {
        None => Ok(()),
        Some(other) => Err(Error::NoDevice {
            spec: other.device().spec().to_owned(),
            reason: format!("{op} needs tensors of one device, one is on {first}"),
            location: Location::caller(),
        }),
    }
}

impl Distribution for Law {
    fn name(&self) -> &'static str {
        self.row.name
    }

    fn batch_shape(&self) -> &Shape {
        &self.batch
    }

    fn event_shape(&self) -> &Shape {
        &self.event
    }

    fn support(&self) -> Constraint {
        (self.row.support)(&self.parameters).unwrap_or(Constraint::Real)
    }

    fn has_rsample(&self) -> bool {
        self.row.is_pathwise
    }

    #[track_caller]
    fn rsample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        match self.row.is_pathwise {
            true => self.draw(shape, rng),
            false => Err(self.has_no("rsample")),
        }
    }

    #[track_caller]
    fn sample(&self, shape: &[usize], rng: &mut Rng) -> Result<Tensor> {
        Ok(self.draw(shape, rng)?.detach())
    }
    #[track_caller]
    fn log_prob(&self, value: &Tensor) -> Result<Tensor> {
        if self.is_checked {
            self.check_shape(value)?;
            let support = self.support();
            let found = located(|| support.first_outside(&value.cast(wide(self.dtype))))?;
            if let Some(found) = found {
                let reason = format!("the value is {found}, it must be {support}");
                return Err(refuse(self.row.name, reason));
            }
        }
        self.of_value(Some(self.row.log_prob), "log_prob", value)
    }

    #[track_caller]
    fn entropy(&self) -> Result<Tensor> {
        self.of_parameters(self.row.closed.entropy, "entropy")
    }

    #[track_caller]
    fn mean(&self) -> Result<Tensor> {
        self.of_parameters(self.row.closed.mean, "mean")
    }

    #[track_caller]
    fn variance(&self) -> Result<Tensor> {
        self.of_parameters(self.row.closed.variance, "variance")
    }

    #[track_caller]
    fn cdf(&self, value: &Tensor) -> Result<Tensor> {
        self.of_value(self.row.closed.cdf, "cdf", value)
    }

    #[track_caller]
    fn icdf(&self, value: &Tensor) -> Result<Tensor> {
        self.of_value(self.row.closed.icdf, "icdf", value)
    }

    fn as_law(&self) -> Option<&Law> {
        Some(self)
    }
}
