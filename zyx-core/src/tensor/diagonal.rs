//! Diagonals: taking them out of matrices, making matrices of them, positions of triangles.
//!
//! A diagonal is a view: a square block written in rows of one element more has it as its first
//! column. So it costs index arithmetic only. A matrix made of one compares numbers of rows and columns.

use super::Tensor;
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::ops::BinaryOp;
use crate::origin::composed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;

/// Where a diagonal begins and how long it is in `rows` by `columns` elements.
fn place(rows: usize, columns: usize, offset: isize) -> (usize, usize, usize) {
    let (row, column) = if offset < 0 { (offset.unsigned_abs(), 0) } else { (0, offset as usize) };
    let n = rows.saturating_sub(row).min(columns.saturating_sub(column));
    (row.min(rows), column.min(columns), n)
}

impl Tensor {
    /// The diagonal of the plane of two axes as a new last axis; `offset` above the main one.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2, 3], [4, 5, 6]], &device)?;
    /// assert_eq!(x.diagonal(1, 0, 1)?.to_vec::<i32>()?, [2, 6]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the axes are equal or out of range.
    #[track_caller]
    pub fn diagonal(&self, offset: isize, a: isize, b: isize) -> Result<Tensor> {
        const OP: &str = "diagonal";
        let (a, b) = (self.axis(OP, a)?, self.axis(OP, b)?);
        if a == b || !self.shape().is_possible() {
            let reason = format!("axes {a} and {b} are no plane of a possible tensor");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let rest: Vec<usize> = (0..self.rank()).filter(|&axis| axis != a && axis != b).collect();
        let moved = self.permute_unchecked(&[&rest[..], &[a, b]].concat());
        let (row, column, n) = place(self.shape()[a], self.shape()[b], offset);
        let mut ranges: Vec<(usize, usize)> = rest.iter().map(|&i| (0, self.shape()[i])).collect();
        let lead: Vec<usize> = ranges.iter().map(|range| range.1).collect();
        ranges.extend([(row, row + n), (column, column + n)]);
        let square = moved.shrink_unchecked(&ranges);
        let flat = square.reshape_unchecked([&lead[..], &[n * n]].concat().into());
        let mut padding = vec![(0, 0); lead.len()];
        padding.push((0, n));
        let skewed = flat.pad(padding).named(OP)?;
        let skewed = skewed.reshape_unchecked([&lead[..], &[n, n + 1]].concat().into());
        let first = skewed.slice(-1, ..1).named(OP)?;
        Ok(first.reshape_unchecked([&lead[..], &[n]].concat().into()))
    }

    /// Matrices with the elements of the last axis on their diagonal, in the plane of axes `a`
    /// and `b` of the result, and zeros elsewhere.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.diag_embed(1, 0, 1)?.to_string(), "[[0 1 0]\n [0 0 2]\n [0 0 0]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Without axes, or when `a` and `b` are equal or out of range.
    #[track_caller]
    pub fn diag_embed(&self, offset: isize, a: isize, b: isize) -> Result<Tensor> {
        const OP: &str = "diag_embed";
        let _here = composed();
        let Some((&n, lead)) = self.shape().split_last() else {
            let reason = "there is no axis to place".to_owned();
            return Err(Tensor::shape_error(OP, &[self], reason));
        };
        let shift = offset.unsigned_abs();
        let side = n.saturating_add(shift);
        let shape = Shape::from([lead, &[side, side]].concat());
        let raised = Shape::from([lead, &[n, n.saturating_add(1)]].concat());
        if !shape.is_possible() || !raised.is_possible() {
            let reason = format!("the result would have the shape {shape}");
            return Err(Tensor::shape_error(OP, &[self], reason));
        }
        let before = if offset < 0 { shift } else { 0 };
        let mut padding = vec![(0, 0); lead.len()];
        padding.push((before, shift - before));
        let x = self.detach().pad(&padding)?.unsqueeze(-1)?.broadcast_unchecked(&shape);
        let numbers = |start: usize| {
            let numbers = Tensor::iota(side, DType::I64, self.device());
            numbers.combine(BinaryOp::Add, &numbers.like(start as f64))
        };
        // A row has its element where its number, and what is ahead of the diagonal, meet.
        let (row, column) = (numbers(shift - before).unsqueeze(-1)?, numbers(before));
        let here = row.broadcast_unchecked(&Shape::from([side, side]));
        let here = here.combine(BinaryOp::Eq, &column.broadcast_unchecked(here.shape()));
        let square = here.broadcast_unchecked(&shape).select(&x, &x.like(0.0));
        let rank = lead.len() as isize;
        let square = square.with_gradient(&[self], move |_, _, dy| {
            Ok(vec![Some(dy.diagonal(offset, rank, rank + 1)?)])
        })?;
        square.movedim([-2, -1], [a, b]).named(OP)
    }

    /// The diagonal of a matrix, or the matrix with a vector as its diagonal.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// assert_eq!(x.diag(0)?.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// assert_eq!(x.diag(0)?.diag(0)?.to_vec::<i32>()?, [1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unless it has one or two axes.
    #[track_caller]
    pub fn diag(&self, offset: isize) -> Result<Tensor> {
        match self.rank() {
            1 => self.diag_embed(offset, 0, 1).named("diag"),
            2 => self.diagonal(offset, 0, 1).named("diag"),
            _ => {
                let reason = "needs one or two axes".to_owned();
                Err(Tensor::shape_error("diag", &[self], reason))
            }
        }
    }

    /// Matrix with the flattened elements as its diagonal.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1i32, 2]], &device)?;
    /// assert_eq!(x.diagflat(0)?.to_vec::<i32>()?, [1, 0, 0, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the result would have too many elements.
    #[track_caller]
    pub fn diagflat(&self, offset: isize) -> Result<Tensor> {
        self.flatten().diag_embed(offset, 0, 1).named("diagflat")
    }

    /// Sum of the diagonal of a matrix; integers are summed in 64 bits.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device)?;
    /// assert_eq!(x.trace()?.item::<f32>()?, 5.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unless it has two axes.
    #[track_caller]
    pub fn trace(&self) -> Result<Tensor> {
        let _here = composed();
        if self.rank() != 2 {
            let reason = "needs two axes".to_owned();
            return Err(Tensor::shape_error("trace", &[self], reason));
        }
        self.diagonal(0, 0, 1).and_then(|d| d.sum(0)).named("trace")
    }

    /// This tensor with `src` on its diagonal: the counterpart of [`Tensor::diagonal`].
    ///
    /// ```
    /// # use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let x = Tensor::ones([2, 2], DType::I32, &device);
    /// let y = x.diagonal_scatter(&Tensor::new([5i32, 6], &device)?, 0, 0, 1)?;
    /// assert_eq!(y.to_vec::<i32>()?, [5, 1, 1, 6]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When `src` has not the shape of the diagonal.
    #[track_caller]
    pub fn diagonal_scatter(
        &self,
        src: &Tensor,
        offset: isize,
        a: isize,
        b: isize,
    ) -> Result<Tensor> {
        const OP: &str = "diagonal_scatter";
        let _here = composed();
        let shape = self.diagonal(offset, a, b).named(OP)?.shape().clone();
        if !src.shape().same(&shape) || src.device() != self.device() {
            let reason = format!("the source must have the shape {shape} and be on one device");
            return Err(Tensor::shape_error(OP, &[self, src], reason));
        }
        let (a, b) = (self.axis(OP, a)?, self.axis(OP, b)?);
        let spread = |x: &Tensor| {
            let square = x.diag_embed(offset, a as isize, b as isize)?;
            // The square holds the diagonal's own corner of the plane; cut it to the plane.
            let mut ranges: Vec<(usize, usize)> = square.shape().iter().map(|&d| (0, d)).collect();
            let mut padding = vec![(0, 0); self.rank()];
            for axis in [a, b] {
                let (have, want) = (square.shape()[axis], self.shape()[axis]);
                ranges[axis].1 = have.min(want);
                padding[axis].1 = want.saturating_sub(have);
            }
            square.shrink_unchecked(&ranges).pad(padding)
        };
        let here = spread(&src.constant(true.into())).named(OP)?;
        let placed = spread(&src.cast(self.dtype())).named(OP)?;
        Ok(here.select(&placed, self))
    }

    /// Row and column numbers (`i64`, `[2, n]`) of the elements of a `rows` by `columns` matrix
    /// on and below a diagonal, row by row.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let at = Tensor::tril_indices(2, 2, 0, &device)?;
    /// assert_eq!(at.to_string(), "[[0 1 1]\n [0 0 1]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too many or the device has no memory left.
    #[track_caller]
    pub fn tril_indices(
        rows: usize,
        columns: usize,
        offset: isize,
        device: &Device,
    ) -> Result<Tensor> {
        let _here = composed();
        check_listed("tril_indices", rows, columns)?;
        lower_indices([rows, columns], offset as i128, false, device).named("tril_indices")
    }

    /// As [`Tensor::tril_indices`], on and above the diagonal.
    ///
    /// ```
    /// # use zyx::Tensor;
    /// # let device = zyx::runtime().device("reference")?;
    /// let at = Tensor::triu_indices(2, 2, 0, &device)?;
    /// assert_eq!(at.to_string(), "[[0 0 1]\n [0 1 1]]");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When there are too many or the device has no memory left.
    #[track_caller]
    pub fn triu_indices(
        rows: usize,
        columns: usize,
        offset: isize,
        device: &Device,
    ) -> Result<Tensor> {
        let _here = composed();
        check_listed("triu_indices", rows, columns)?;
        upper_indices([rows, columns], offset as i128, device).named("triu_indices")
    }
}

/// Largest matrix whose positions are listed: their list takes 1 GiB.
const MOST_LISTED: usize = 1 << 26;

#[track_caller]
fn check_listed(op: &'static str, rows: usize, columns: usize) -> Result<()> {
    if rows.checked_mul(columns.max(1)).is_none_or(|n| n > MOST_LISTED) {
        let reason = format!("a matrix of {rows} by {columns} is too large");
        return Err(Tensor::argument_error(op, reason));
    }
    Ok(())
}

/// Positions (`i64`, `[2, n]`) of the elements of a matrix on and above a diagonal, row by row: those on
/// and below one, if rows and columns are numbered from the other end.
#[track_caller]
pub(super) fn upper_indices(extents: [usize; 2], offset: i128, device: &Device) -> Result<Tensor> {
    let [rows, columns] = extents.map(|n| n as i128);
    lower_indices(extents, columns - rows - offset, true, device)
}

/// Positions (`i64`, `[2, n]`) of the elements of a matrix on and below a diagonal, row by row, or all of
/// it turned by half a turn.
///
/// Behind rows without elements there are rows each of which has one more than the one before it, then
/// full ones. Where an element of the first kind stands follows from its number by a square root, rounded
/// so little that it is off by at most one row.
#[track_caller]
fn lower_indices(
    extents: [usize; 2],
    offset: i128,
    turned: bool,
    device: &Device,
) -> Result<Tensor> {
    let [rows, columns] = extents.map(|n| n as i128);
    // The row that has the first element, and how many it has.
    let empty = (-offset).clamp(0, rows);
    let least = (empty + offset + 1).clamp(0, columns);
    let growing = (columns - least).clamp(0, rows - empty);
    let in_growing = growing * (2 * least + growing - 1) / 2;
    let n = (in_growing + (rows - empty - growing) * columns) as usize;
    if n == 0 {
        return Tensor::from_slice::<i64>(&[], [2, 0], device);
    }
    // Vectors have more lanes of 32 bits, and multiplications in place of divisions in 64.
    let short = in_growing == n as i128 && n < 1 << 29;
    let dtype = if short { DType::I32 } else { DType::I64 };
    let numbers = Tensor::iota(n, dtype, device);
    let numbers = if turned { numbers.flip([0])? } else { numbers };
    let number = |n: i128| numbers.constant(Scalar::from_i64(dtype, n as i64));
    let add = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Add, y);
    let sub = |x: &Tensor, y: &Tensor| x.combine(BinaryOp::Sub, y);
    // No less than 0, as is asked for that.
    let full = sub(&numbers, &number(in_growing)).combine(BinaryOp::Max, &number(0));
    let full_row = full.combine(BinaryOp::Div, &number(columns));
    let full_column = sub(&full, &full_row.combine(BinaryOp::Mul, &number(columns)));
    let full_row = add(&full_row, &number(empty + growing));
    let (row, column) = if in_growing == 0 {
        (full_row, full_column)
    } else {
        // The first of row `r` has the number `r (r + b) / 2`.
        let b = 2 * least - 1;
        let before = |r: &Tensor| {
            let twice = r.combine(BinaryOp::Mul, &add(r, &number(b)));
            twice.combine(BinaryOp::Shr, &number(1))
        };
        let (one, real) = (number(1), numbers.cast(DType::F32));
        let root = real.mul_literal(8.0).combine(BinaryOp::Add, &real.like((b * b) as f64)).sqrt();
        let r = real.mul_literal(4.0).combine(BinaryOp::Div, &add(&root, &real.like(b as f64)));
        let r = r.cast(dtype);
        let is_late = numbers.combine(BinaryOp::Lt, &before(&r));
        let r = is_late.select(&sub(&r, &one), &r);
        let next = add(&r, &one);
        let r = before(&next).combine(BinaryOp::Le, &numbers).select(&next, &r);
        let (row, column) = (add(&r, &number(empty)), sub(&numbers, &before(&r)));
        if in_growing == n as i128 {
            (row, column)
        } else {
            let grows = numbers.combine(BinaryOp::Lt, &number(in_growing));
            (grows.select(&row, &full_row), grows.select(&column, &full_column))
        }
    };
    let at = [(row, rows), (column, columns)].map(|(at, extent)| {
        let at = if turned { sub(&number(extent - 1), &at) } else { at };
        at.cast(DType::I64)
    });
    Tensor::stack(&[&at[0], &at[1]], 0)
}
