//! Functions of several steps: computed in `f32` where operands are halves, and rounded once.
//!
//! A method that is made of several operations is declared by [`Tensor::in_steps`], which gives its steps wide operands and
//! rounds what they return; elementwise formulas by `Term::compute`, which does the same. The gradient follows from
//! the steps, so it is in `f32` too, sums of several cotangents of one operand included, and is rounded where an operand was
//! widened. `tests/tests/derivatives/halves.rs` holds every method to this.

use super::{Operand, Tensor};
use crate::dtype::DType;
use crate::error::{Named, Result};
use crate::origin::composed;

/// Results of steps: tensors that are rounded to a dtype.
pub(crate) trait Rounded {
    /// The tensors computed in the accumulator of a half, in that half. Others stay.
    #[track_caller]
    fn rounded(self, dtype: DType) -> Self;
}

impl Rounded for Tensor {
    #[track_caller]
    fn rounded(self, dtype: DType) -> Tensor {
        if self.dtype() == dtype.accumulator() { self.cast(dtype) } else { self }
    }
}

impl Rounded for (Tensor, Tensor) {
    #[track_caller]
    fn rounded(self, dtype: DType) -> (Tensor, Tensor) {
        (self.0.rounded(dtype), self.1.rounded(dtype))
    }
}

impl Tensor {
    /// Converts halves to the dtype of their sums, `f32`. Other dtypes stay.
    #[track_caller]
    pub(crate) fn widened(&self) -> Tensor {
        self.cast(self.dtype().accumulator())
    }

    /// The result of a method `op` made of several steps on this tensor and others: halves are widened before, numbers
    /// adapt to the wide tensor, and results are rounded once to the promoted dtype of the operands.
    #[track_caller]
    pub(crate) fn in_steps<const N: usize, R: Rounded>(
        &self,
        op: &'static str,
        others: [&dyn Operand; N],
        steps: impl FnOnce(&Tensor, [Tensor; N]) -> Result<R>,
    ) -> Result<R> {
        let _here = composed();
        let dtypes = others.iter().map(|x| x.resolve(self).dtype());
        let dtype = dtypes.fold(self.dtype(), DType::promote);
        let wide = self.widened();
        let others = others.map(|x| x.resolve(&wide).widened());
        Ok(steps(&wide, others).named(op)?.rounded(dtype))
    }
}
