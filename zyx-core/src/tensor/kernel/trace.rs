//! The values of a thread, step by step.

use super::programs::{Call, scalars_of};
use super::{Kernel, Written};
use crate::error::Result;
use crate::graph::KernelCall;
use crate::ir::interp;
use crate::lang::{Setting, Site};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use std::fmt;
use std::sync::Arc;

/// An operation that a thread ran, of those that [`Kernel::trace`] gives.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelStep {
    /// The line of the program.
    pub line: Site,
    /// The operation in the text of the kernel.
    pub op: String,
    /// Its result, with an element for each lane: of a store what was stored, of a condition whether it holds, of a loop its counter.
    pub result: Vec<Scalar>,
}

impl fmt::Display for KernelStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lanes: Vec<String> = self.result.iter().map(Scalar::to_string).collect();
        write!(f, "{}: {} -> {}", self.line, self.op, lanes.join(" "))
    }
}

impl Kernel {
    /// The steps of one iteration of `each`, or of one group, in the interpreter, in order: at most 65,536, and none behind a mistake,
    /// which [`Kernel::check`] names. What the threads of a group do is traced as loops, as on a device without threads.
    ///
    /// ```
    /// use zyx::kernel::{Kernel, Lang};
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let square = Kernel::new("square", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
    ///     k.each(n, |i| y.set(i, x.at(i) * x.at(i)));
    /// });
    /// let steps = square.trace(&[&Tensor::new([2f32, 3.0, 4.0], &device)?], &[1])?;
    /// let product = steps.iter().find(|step| step.op.contains("mul %")).expect("a product");
    /// assert_eq!(product.result[0].to_f64(), 9.0);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Kernel::call`].
    #[track_caller]
    pub fn trace(&self, inputs: &[&Tensor], at: &[usize]) -> Result<Vec<KernelStep>> {
        let mut inputs: Vec<Tensor> = inputs.iter().map(|&input| input.clone()).collect();
        if let Written::Elementwise(_) = &self.0.write {
            let all: Vec<&Tensor> = inputs.iter().collect();
            let flat = Tensor::broadcast_tensors(&all)?;
            inputs = flat.iter().map(Tensor::flatten).collect();
        }
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        let Call { mut recorded, mut scalars, sizes, .. } = self.bound(&inputs)?;
        if !matches!(self.0.write, Written::Text(_)) {
            let setting = Setting {
                caps: interp::caps(),
                inputs: inputs.iter().map(|x| x.dtype()).collect(),
                large: recorded.is_large(),
                choices: recorded.parameters().iter().map(|known| known.choice).collect(),
                ..Setting::default()
            };
            recorded = Arc::new(self.record(&setting)?);
            scalars = scalars_of(&recorded, &sizes).map_err(|reason| self.wrong(reason))?;
        }
        let call = KernelCall { recorded, scalars, arguments: Vec::new(), output: 0, raw: None };
        let bytes: Vec<Vec<u8>> =
            inputs.iter().map(|input| input.to_bytes()).collect::<Result<_>>()?;
        let at: Vec<i64> = at.iter().map(|&x| x as i64).collect();
        let steps = call.trace(&bytes, &at)?.into_iter();
        Ok(steps
            .map(|(line, step)| KernelStep { line, op: step.op, result: step.result })
            .collect())
    }
}
