//! A function whose plans are known: inputs are bound and the plans are played, no graph is built.

use super::planned::{PlanCache, Planned};
use super::refuse_unknown;
use crate::dtype::DType;
use crate::error::Result;
use crate::graph::{Bindings, Holders, capture_function};
use crate::runtime::{Buffer, Device};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::sync::Arc;

/// What a function made of inputs without values.
pub(crate) struct Traced {
    parts: Vec<Part>,
    outputs: Vec<(Shape, DType)>,
}

/// The results on one device.
struct Part {
    device: Device,
    cache: Arc<PlanCache>,
    planned: Arc<Planned>,
    /// Complete but for inputs.
    bindings: Bindings,
    /// Slots of inputs, with their positions.
    slots: Vec<(u32, usize)>,
    /// Positions of the results.
    results: Vec<usize>,
}

impl Traced {
    /// Plans `outputs`, computed from `inputs`, which have no values; the given ones stand for them
    /// while plans are made. An input that no part of a result is computed from needs none.
    #[track_caller]
    pub(crate) fn new(
        outputs: &[Tensor],
        inputs: &[Tensor],
        values: &[Option<Buffer>],
    ) -> Result<Traced> {
        let mut rest: Vec<usize> = (0..outputs.len()).collect();
        let mut parts = Vec::new();
        while let Some(&first) = rest.first() {
            let device = outputs[first].device().clone();
            let (results, others) = rest.into_iter().partition(|&i| *outputs[i].device() == device);
            parts.push(Part::new(device, outputs, results, inputs, values)?);
            rest = others;
        }
        let outputs = outputs.iter().map(|y| (y.shape().clone(), y.dtype())).collect();
        Ok(Traced { parts, outputs })
    }

    /// The results for inputs of the same shapes, dtypes and devices.
    pub(crate) fn play(&self, values: &[Option<Buffer>]) -> Result<Vec<Tensor>> {
        let mut results = vec![None; self.outputs.len()];
        for part in &self.parts {
            for (&i, buffer) in part.results.iter().zip(part.play(values)?) {
                let (shape, dtype) = self.outputs[i].clone();
                results[i] = Some(Tensor::leaf(buffer, shape, dtype));
            }
        }
        let known = |y: Option<Tensor>| y.expect("invariant: each result is one part's");
        Ok(results.into_iter().map(known).collect())
    }
}

impl Part {
    #[track_caller]
    fn new(
        device: Device,
        outputs: &[Tensor],
        results: Vec<usize>,
        inputs: &[Tensor],
        values: &[Option<Buffer>],
    ) -> Result<Part> {
        let wanted: Vec<&Tensor> = results.iter().map(|&i| &outputs[i]).collect();
        let (graph, mut bindings, slots) = capture_function(&wanted, inputs, values);
        refuse_unknown(&bindings, "jit")?;
        let cache = device.attachment::<PlanCache>();
        let holders = Holders { outputs: &wanted, given: &[], bindings: &bindings };
        let planned = cache.planned(&device, graph, &holders)?;
        // The inputs that there were meanwhile are not held on to.
        let nothing = device.alloc_uninit(0)?;
        slots.iter().for_each(|&(slot, _)| bindings.leaves[slot as usize] = nothing.clone());
        Ok(Part { device, cache, planned, bindings, slots, results })
    }

    fn play(&self, values: &[Option<Buffer>]) -> Result<Vec<Buffer>> {
        let mut bindings = self.bindings.clone();
        for &(slot, input) in &self.slots {
            let value = values[input].clone();
            bindings.leaves[slot as usize] = value.expect("invariant: realized by the caller");
        }
        let _sharing = self.cache.share();
        let plan = self.planned.plain(&self.device)?;
        let buffers = plan.play(&self.device, &bindings)?;
        if plan.graph.is_some() {
            buffers.iter().for_each(|buffer| buffer.set_origin(plan.clone()));
        }
        Ok(buffers)
    }
}
