//! Pieces along the axes that NumPy names: rows, columns, depth; and places in a shape.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;
use crate::shape::Shape;

impl Tensor {
    /// Pieces along axis 1 (axis 0 of a vector) that begin at 0 and at each of `positions`; see
    /// [`Tensor::tensor_split`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.hsplit([1])?[1].to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there is no axis.
    #[track_caller]
    pub fn hsplit(&self, positions: impl AsRef<[usize]>) -> Result<Vec<Tensor>> {
        let axis = isize::from(self.rank() != 1);
        self.tensor_split(positions, if self.rank() == 0 { 0 } else { axis }).named("hsplit")
    }

    /// Pieces along axis 0 of two axes and more; see [`Tensor::tensor_split`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2], [3, 4]], &device)?;
    /// assert_eq!(x.vsplit([1])?[1].to_vec::<i32>()?, [3, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than two axes.
    #[track_caller]
    pub fn vsplit(&self, positions: impl AsRef<[usize]>) -> Result<Vec<Tensor>> {
        self.check_axes("vsplit", 2)?;
        self.tensor_split(positions, 0).named("vsplit")
    }

    /// Pieces along axis 2; see [`Tensor::tensor_split`].
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[[1i32, 2], [3, 4]]], &device)?;
    /// assert_eq!(x.dsplit([1])?[1].to_vec::<i32>()?, [2, 4]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are fewer than three axes.
    #[track_caller]
    pub fn dsplit(&self, positions: impl AsRef<[usize]>) -> Result<Vec<Tensor>> {
        self.check_axes("dsplit", 3)?;
        self.tensor_split(positions, 2).named("dsplit")
    }

    /// Positions in a flattened tensor of a shape as positions along each of its axes, `i64`: the
    /// remainders of divisions by the extents, from the last axis to the second. What is left over
    /// is the position along the first, so that one out of range stays so.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let at = Tensor::new([1i64, 5], &device)?.unravel_index([2, 3])?;
    /// assert_eq!(at[0].to_vec::<i64>()?, [0, 1]);
    /// assert_eq!(at[1].to_vec::<i64>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When this does not hold integers, or the shape has no axis.
    #[track_caller]
    pub fn unravel_index(&self, shape: impl Into<Shape>) -> Result<Vec<Tensor>> {
        const OP: &str = "unravel_index";
        let _here = composed();
        let shape = shape.into();
        if !self.dtype().is_int() {
            let reason = "positions are integers".to_owned();
            return Err(Tensor::dtype_error(OP, &[self], reason));
        }
        if shape.is_empty() || !shape.is_possible() {
            return Err(Tensor::argument_error(OP, format!("no places in shape {shape}")));
        }
        let places = || {
            let (mut rest, mut all) = (self.cast(DType::I64), Vec::new());
            for &extent in shape.dims()[1..].iter().rev() {
                all.push(rest.remainder(extent as i64)?);
                rest = rest.floor_divide(extent as i64)?;
            }
            all.push(rest);
            all.reverse();
            Ok(all)
        };
        places().named(OP)
    }

    #[track_caller]
    fn check_axes(&self, op: &'static str, least: usize) -> Result<()> {
        if self.rank() >= least {
            return Ok(());
        }
        Err(Tensor::shape_error(op, &[self], format!("there are fewer than {least} axes")))
    }
}
