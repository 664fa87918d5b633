//! A function whose plans are known: inputs are bound and the plans are played, no graph is built.

use super::checks::{Reached, flag_of, inherit};
use super::plan_cache::{PlanCache, Planned};
use super::{across, refuse_no_value};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Bindings, CaptureOrder, Holders, capture_function};
use crate::hal::attempt;
use crate::runtime::{Buffer, Device, Flag, Flags, Note, Range};
use crate::shape::Shape;
use crate::tensor::Tensor;
use std::sync::Arc;

/// What a function made of inputs without values.
pub(crate) struct Traced {
    parts: Vec<Part>,
    /// The results, and behind them the numbers of flags.
    outputs: Vec<(Shape, DType)>,
    /// Position and range of each result of integers.
    ranges: Vec<(usize, Range)>,
    checks: Vec<TracedCheck>,
}

/// A check of an index (`tensor/indices.rs`) that results depend on.
struct TracedCheck {
    note: Note,
    /// The results that depend on it.
    results: Vec<usize>,
    of: Checked,
}

/// How a check is made in each call.
enum Checked {
    /// The index has the elements of an input, of which more is known in a call than while it is traced.
    Input(usize),
    /// By the output that is the number of its flag.
    Output(usize),
}

/// The results on one device.
struct Part {
    device: Device,
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
        let n = outputs.len();
        let integers = (0..n).filter(|&i| outputs[i].dtype().is_int());
        let ranges = integers.map(|i| (i, outputs[i].index_range())).collect();
        let mut outputs = outputs.to_vec();
        let checks = TracedCheck::of(&mut outputs, inputs);
        let outputs = &outputs[..];
        let mut rest: Vec<usize> = (0..outputs.len()).collect();
        let mut parts = Vec::new();
        while let Some(&first) = rest.first() {
            let device = outputs[first].device().clone();
            let is_here = |&i: &usize| *outputs[i].device() == device;
            let (results, others): (Vec<usize>, _) = rest.into_iter().partition(is_here);
            let part = || (device.clone(), results.clone());
            parts.push(attempt!(Part::new(part(), outputs, inputs, values))?);
            rest = others;
        }
        let outputs = outputs.iter().map(|y| (y.shape().clone(), y.dtype())).collect();
        Ok(Traced { parts, outputs, ranges, checks })
    }

    /// Bytes of memory, roughly, besides the plans, which the device keeps or drops.
    pub(crate) fn bytes(&self) -> usize {
        let part = |part: &Part| {
            let bound = size_of_val(&*part.bindings.leaves) + 8 * part.bindings.arguments.len();
            size_of::<Part>() + bound + 16 * part.slots.len() + part.planned.graph_bytes()
        };
        size_of::<Traced>() + 64 * self.outputs.len() + self.parts.iter().map(part).sum::<usize>()
    }

    /// The results for inputs of the same shapes, dtypes and devices, which have these values.
    #[track_caller]
    pub(crate) fn call(
        &self,
        inputs: &[&Tensor],
        values: &[Option<Buffer>],
    ) -> Result<Vec<Tensor>> {
        if self.checks.is_empty() {
            return self.play(values);
        }
        let mut flags: Vec<Option<Arc<Flag>>> = Vec::with_capacity(self.checks.len());
        for check in &self.checks {
            flags.push(match check.of {
                // An error at the call, if it is known to be out of range.
                Checked::Input(i) => flag_of(&inputs[i].checked_as(&check.note)?)?,
                Checked::Output(_) => Some(Arc::new(Flag::new(check.note.clone()))),
            });
        }
        let mut results = self.play(values)?;
        let numbers = results.split_off(self.outputs.len() - self.n_flags());
        let mut own: Vec<Flags> = vec![Flags::new(); results.len()];
        for (check, flag) in self.checks.iter().zip(flags) {
            let Some(flag) = flag else { continue };
            if let Checked::Output(output) = check.of
                && let Some(number) = numbers[output - results.len()].value()
            {
                flag.set(number);
            }
            check.results.iter().for_each(|&i| own[i].push(flag.clone()));
        }
        for (result, flags) in results.iter().zip(own) {
            if let Some(buffer) = result.value().filter(|_| !flags.is_empty()) {
                buffer.set_flags(flags);
            }
        }
        Ok(results)
    }

    /// How many outputs are numbers of flags.
    fn n_flags(&self) -> usize {
        self.checks.iter().filter(|check| matches!(check.of, Checked::Output(_))).count()
    }

    fn play(&self, values: &[Option<Buffer>]) -> Result<Vec<Tensor>> {
        let mut results = vec![None; self.outputs.len()];
        for part in &self.parts {
            for (&i, buffer) in part.results.iter().zip(attempt!(part.play(values))?) {
                let (shape, dtype) = self.outputs[i].clone();
                results[i] = Some(Tensor::leaf(buffer, shape, dtype));
            }
        }
        let known = |y: Option<Tensor>| y.expect("invariant: each result is one part's");
        let results: Vec<Tensor> = results.into_iter().map(known).collect();
        for &(i, range) in &self.ranges {
            if let Some(buffer) = results[i].value() {
                buffer.set_bounds(range);
            }
        }
        Ok(results)
    }
}

impl TracedCheck {
    /// The checks that outputs reach. Numbers of flags become outputs, too.
    fn of(outputs: &mut Vec<Tensor>, inputs: &[Tensor]) -> Vec<TracedCheck> {
        let results: Vec<&Tensor> = outputs.iter().collect();
        let reached = Reached::by(&results);
        let n = results.len();
        let mut checks = Vec::new();
        for (at, (check, index)) in reached.checks.iter().enumerate() {
            let Some(flagged) = &check.flagged else { continue };
            let results = (0..n).filter(|&i| reached.reaches(i, at)).collect();
            let elements = index.same_elements();
            let of = match inputs.iter().position(|input| input.id() == elements.id()) {
                Some(input) => Checked::Input(input),
                None => {
                    outputs.push(flagged.number.clone());
                    Checked::Output(outputs.len() - 1)
                }
            };
            checks.push(TracedCheck { note: flagged.flag.note.clone(), results, of });
        }
        checks
    }
}

impl Part {
    #[track_caller]
    fn new(
        (device, results): (Device, Vec<usize>),
        outputs: &[Tensor],
        inputs: &[Tensor],
        values: &[Option<Buffer>],
    ) -> Result<Part> {
        let wanted: Vec<&Tensor> = results.iter().map(|&i| &outputs[i]).collect();
        let (mut graph, mut bindings, mut slots) = capture_function(&wanted, inputs, values);
        if bindings.unmoved {
            across::move_known(&wanted)?;
            (graph, bindings, slots) = capture_function(&wanted, inputs, values);
        }
        refuse_no_value(bindings.unknown, "jit")?;
        let cache = device.attachment::<PlanCache>();
        let graph = cache.generalized(&device, graph, &mut bindings, &mut CaptureOrder::default());
        let holders = Holders { outputs: &wanted, given: &[], bindings: &bindings };
        let planned = cache.planned(&device, graph, &holders)?;
        // The inputs that there were meanwhile are not held on to.
        let nothing = device.alloc_uninit(0)?;
        slots.iter().for_each(|&(slot, _)| bindings.leaves[slot as usize] = nothing.clone());
        Ok(Part { device, planned, bindings, slots, results })
    }

    fn play(&self, values: &[Option<Buffer>]) -> Result<Vec<Buffer>> {
        let mut bindings = self.bindings.clone();
        for &(slot, input) in &self.slots {
            let value = values[input].clone();
            bindings.leaves[slot as usize] = value.expect("invariant: realized by the caller");
        }
        let sharing = self.device.read_lock();
        let plan = self.planned.plain(&self.device)?;
        let buffers = match plan.play_beside(&self.device, &bindings) {
            // Other threads may have what is missing.
            Err(Error::Device(full)) if full.is_about_memory() => {
                drop(sharing);
                let _alone = self.device.write_lock();
                plan.play_alone(&self.device, &bindings)?
            }
            played => played?,
        };
        inherit(plan.graph.as_deref(), &bindings, &buffers);
        if let Some(graph) = &plan.graph {
            let results = buffers.iter().enumerate();
            results.for_each(|(result, buffer)| buffer.set_origin(graph.clone(), result));
        }
        Ok(buffers)
    }
}
