//! Functions of elements: recorded once for dtypes of inputs, and applied as operations of tensors.

use super::{ElementRule, Kernel};
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::Op;
use crate::hal::lock;
use crate::ir::{self, Value};
use crate::lang::{Lang, Val, record_function};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// A function of elements as it was recorded for dtypes of its inputs.
pub(super) struct Function {
    inputs: SmallVec<[DType; 4]>,
    /// The dtype of the result.
    dtype: DType,
    /// The function of inputs in dtypes that sums are computed in, and its result.
    kernel: ir::Kernel,
    result: Value,
}

impl Kernel {
    /// The result of a function of elements, as operations of tensors.
    #[track_caller]
    pub(super) fn elements(&self, inputs: &[Tensor], write: &ElementRule) -> Result<Tensor> {
        if inputs.is_empty() {
            return Err(self.wrong("it was called without an input".to_owned()));
        }
        let function = self.function(inputs, write)?;
        let inputs: Vec<Tensor> = inputs.iter().map(Tensor::widened).collect();
        let mut known = FxHashMap::default();
        let result = self.element(&function.kernel, function.result, &inputs, &mut known)?;
        Ok(result.cast(function.dtype))
    }

    /// The function of elements for the dtypes of these inputs, recorded at the first call.
    fn function(&self, inputs: &[Tensor], write: &ElementRule) -> Result<Arc<Function>> {
        let inputs: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.dtype()).collect();
        let known = lock(&self.0.functions).iter().find(|known| known.inputs == inputs).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let (narrow, result) = record_function(&self.0.name, &inputs, write)?;
        let dtype = narrow.ty(result).dtype;
        // Steps on halves are computed in `f32`, and rounded once.
        let wide: Vec<DType> = inputs.iter().map(|dtype| dtype.accumulator()).collect();
        let (kernel, result) = record_function(&self.0.name, &wide, write)?;
        let function = Arc::new(Function { inputs, dtype, kernel, result });
        lock(&self.0.functions).push(function.clone());
        Ok(function)
    }

    /// A value of an elementwise kernel as a tensor.
    #[track_caller]
    fn element(
        &self,
        kernel: &ir::Kernel,
        value: Value,
        inputs: &[Tensor],
        known: &mut FxHashMap<Value, Tensor>,
    ) -> Result<Tensor> {
        if let Some(tensor) = known.get(&value) {
            return Ok(tensor.clone());
        }
        let dtype = kernel.ty(value).dtype;
        let shape = inputs[0].shape().clone();
        let mut of = |x: Value| self.element(kernel, x, inputs, known);
        let tensor = match kernel.op(value) {
            ir::Op::Const { bits } => inputs[0].constant(Scalar::from_bits(dtype, bits)),
            ir::Op::Var { slot } => inputs[usize::from(slot)].clone(),
            ir::Op::Unary { op, x } => Tensor::pending(Op::Unary(op), [&of(x)?], shape, dtype),
            ir::Op::Binary { op, x, y } => {
                Tensor::pending(Op::Binary(op), [&of(x)?, &of(y)?], shape, dtype)
            }
            ir::Op::Ternary { op, x, y, z } => {
                Tensor::pending(Op::Ternary(op), [&of(x)?, &of(y)?, &of(z)?], shape, dtype)
            }
            ir::Op::Cast { x } => {
                Tensor::pending(Op::Cast { bits: false }, [&of(x)?], shape, dtype)
            }
            ir::Op::Bitcast { x } => {
                Tensor::pending(Op::Cast { bits: true }, [&of(x)?], shape, dtype)
            }
            _ => {
                let reason =
                    "an elementwise kernel is arithmetic of its elements: use `Kernel::new`";
                return Err(self.wrong(reason.to_owned()));
            }
        };
        known.insert(value, tensor.clone());
        Ok(tensor)
    }
}

/// Records a function of elements for arrays of one axis.
pub(super) fn flat(k: &Lang, dtypes: &[DType], write: &ElementRule) {
    let n = k.size("n");
    let x: Vec<_> = (0..dtypes.len()).map(|i| k.input(&format!("x{i}"), [n])).collect();
    let dtype = match record_function("", dtypes, write) {
        Ok((function, result)) => function.ty(result).dtype,
        Err(error) => return k.fail(error.reason),
    };
    let y = k.output("y", [n], dtype);
    k.each(n, |i| {
        // Steps on halves are computed in `f32`, and rounded once.
        let wide: Vec<Val<'_>> = x.iter().map(|x| x.at(i).cast(x.dtype().accumulator())).collect();
        y.set(i, write(&wide).cast(dtype));
    });
}
