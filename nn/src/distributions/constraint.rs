//! Sets of values: what a parameter may be, and what a distribution gives.

use std::fmt;
use zyx_core::{DType, Result, Tensor};

/// How far the sum of a point of the simplex may be from 1.
const SIMPLEX_TOLERANCE: f64 = 1e-6;

/// A set of numbers, vectors or matrices.
///
/// ```
/// use zyx::distributions::Constraint;
/// use zyx::Tensor;
/// let device = zyx::device()?;
/// let x = Tensor::new([-1f32, 0.0, 2.0], &device)?;
/// assert_eq!(Constraint::NonNegative.check(&x)?.to_vec::<bool>()?, [false, true, true]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Constraint {
    /// All numbers, infinities included; NaN is none.
    Real,
    /// Numbers above 0.
    Positive,
    /// 0 and numbers above it.
    NonNegative,
    /// 0 to 1, both included.
    Unit,
    /// 0 and 1.
    Boolean,
    /// 0, 1, 2, ..
    Count,
    /// 0, 1, .. up to and including the bound.
    CountTo(Tensor),
    /// Numbers above the bound.
    Above(Tensor),
    /// The bound and numbers above it.
    AtLeast(Tensor),
    /// Numbers from the first bound to the second, both included.
    Between(Tensor, Tensor),
    /// Vectors of real numbers.
    RealVector,
    /// Vectors of numbers above 0.
    PositiveVector,
    /// Vectors of non-negative numbers whose sum is 1.
    Simplex,
    /// Vectors of one 1 and otherwise 0.
    OneHot,
    /// Vectors of counts whose sum is the bound.
    Counts(Tensor),
    /// Lower triangular matrices whose diagonal is positive.
    LowerCholesky,
}

use Constraint::*;

impl Constraint {
    /// Number of trailing axes that are checked together: 0 for numbers, 1 for vectors, 2 for
    /// matrices.
    ///
    /// ```
    /// use zyx::distributions::Constraint;
    /// assert_eq!(Constraint::Simplex.event_rank(), 1);
    /// ```
    pub fn event_rank(&self) -> usize {
        match self {
            RealVector | PositiveVector | Simplex | OneHot | Counts(_) => 1,
            LowerCholesky => 2,
            _ => 0,
        }
    }

    /// Whether each number, vector or matrix of `value` is in the set: bools of the shape of
    /// `value` without [`Constraint::event_rank`] axes.
    ///
    /// # Errors
    /// When `value` has fewer axes than that, or does not broadcast with a bound.
    #[track_caller]
    pub fn check(&self, value: &Tensor) -> Result<Tensor> {
        let x = value;
        let whole = |x: &Tensor| x.floor().eq(x);
        match self {
            Real => x.eq(x),
            Positive => x.gt(0.0),
            NonNegative => x.ge(0.0),
            Unit => x.ge(0.0)?.logical_and(x.le(1.0)?),
            Boolean => x.eq(0.0)?.logical_or(x.eq(1.0)?),
            Count => x.ge(0.0)?.logical_and(whole(x)?),
            CountTo(most) => Count.check(x)?.logical_and(x.le(most)?),
            Above(low) => x.gt(low),
            AtLeast(low) => x.ge(low),
            Between(low, high) => x.ge(low)?.logical_and(x.le(high)?),
            RealVector => Real.check(x)?.all(-1),
            PositiveVector => x.gt(0.0)?.all(-1),
            Simplex => {
                let sum = x.sum(-1)?.sub(1.0)?.abs().lt(SIMPLEX_TOLERANCE)?;
                x.ge(0.0)?.all(-1)?.logical_and(sum)
            }
            OneHot => Boolean.check(x)?.all(-1)?.logical_and(x.sum(-1)?.eq(1.0)?),
            Counts(total) => Count.check(x)?.all(-1)?.logical_and(x.sum(-1)?.eq(total)?),
            LowerCholesky => {
                let zero = x.triu(1)?.eq(0.0)?.all(-1)?.all(-1)?;
                zero.logical_and(x.diagonal(0, -2, -1)?.gt(0.0)?.all(-1)?)
            }
        }
    }

    /// Prints the first number, vector or matrix of `value` that is not in the set; `None` if
    /// all are, or if `value` depends on an input of a traced function, which has no value.
    #[track_caller]
    pub(super) fn first_outside(&self, value: &Tensor) -> Result<Option<String>> {
        let inside = self.check(value)?;
        let inside = match inside.flatten().to_vec::<bool>() {
            Ok(inside) => inside,
            Err(zyx_core::Error::Argument { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(at) = inside.iter().position(|&inside| !inside) else { return Ok(None) };
        let values = value.cast(DType::F32).to_vec::<f32>()?;
        // One bound for many values: the mask has more axes than the value.
        let size = (values.len() / inside.len()).max(1);
        let found = values.chunks(size).nth(at).or_else(|| values.chunks(size).last());
        Ok(found.map(|found| match found {
            [one] => format!("{one}"),
            many => format!("{many:?}"),
        }))
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Real => "a number",
            Positive => "above 0",
            NonNegative => "at least 0",
            Unit => "within 0 and 1",
            Boolean => "0 or 1",
            Count => "a whole number of at least 0",
            CountTo(_) => "a whole number within 0 and the largest count",
            Above(_) => "above the lower bound",
            AtLeast(_) => "at least the lower bound",
            Between(..) => "within the bounds",
            RealVector => "a vector of numbers",
            PositiveVector => "a vector of numbers above 0",
            Simplex => "a vector of numbers of at least 0 whose sum is 1",
            OneHot => "a vector with one 1, otherwise 0",
            Counts(_) => "a vector of counts whose sum is total_count",
            LowerCholesky => "a lower triangular matrix with a positive diagonal",
        })
    }
}
