//! Programs of a kernel: recorded for a device, dtypes and sizes of a class, with values of parameters that were found
//! to be the fastest.

use super::elements::flat;
use super::{Inner, Kernel, Written};
use crate::dtype::{DType, DTypeSet};
use crate::error::Result;
use crate::hal::lock;
use crate::ir::VarInfo;
use crate::lang::{
    Argument, Lang, LangError, Parameter, Recorded, Role, SMALL, Setting, SizeExpr, record,
};
use crate::runtime::{Device, ParameterCall, SizeClass, SizedKernel, WeakDevice};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A recorded kernel, with the device and dtypes it was recorded for.
#[derive(Clone)]
pub(super) struct Known {
    /// As a weak handle: kernels keep no device open.
    device: WeakDevice,
    dtypes: SmallVec<[DType; 4]>,
    bucket: Bucket,
    recorded: Arc<Recorded>,
    tuned: Vec<Tuned>,
}

/// The kernel with the values of parameters that a device found to be the fastest for sizes of a class, if it found any.
#[derive(Clone)]
struct Tuned {
    class: SizeClass,
    /// See [`Device::generation_of_values`].
    generation: u64,
    recorded: Option<Arc<Recorded>>,
}

/// Classes of sizes that a recorded kernel remembers; of more it asks the device again.
const MAX_CLASSES: usize = 64;

/// Sizes that share a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket {
    /// See [`Setting::large`].
    large: bool,
    /// See [`Setting::aligned`].
    aligned: bool,
}

impl Bucket {
    /// That of a recorded kernel and sizes, on a device that has alignment to offer if `aligned`.
    fn of(recorded: &Recorded, sizes: &[i64], aligned: bool) -> Bucket {
        let size = |number: usize| sizes.get(number).copied();
        let is_small = |expr: &SizeExpr| expr.eval(&size).is_some_and(|x| x <= SMALL as i64);
        let fits = |(slot, argument): (usize, &Argument)| {
            let numel = argument
                .shape
                .iter()
                .try_fold(1i64, |numel, expr| numel.checked_mul(expr.eval(&size)?));
            numel.is_some_and(|numel| numel <= recorded.kernel().params()[slot].len as i64)
        };
        let small = recorded.spaces().iter().chain(recorded.scalars()).all(is_small)
            && recorded.arguments().iter().enumerate().all(fits);
        let mut vars = recorded.kernel().vars().iter().zip(recorded.scalars());
        let whole = |(info, expr): (&VarInfo, &SizeExpr)| {
            expr.eval(&size).is_some_and(|x| x % i64::from(info.multiple_of) == 0)
        };
        Bucket { large: !small, aligned: aligned && vars.all(whole) }
    }
}

/// The numbers that the scalars of a launch are, or why they cannot be.
pub(super) fn scalars_of(recorded: &Recorded, sizes: &[i64]) -> Result<Arc<[i64]>, String> {
    let size = |number: usize| sizes.get(number).copied();
    let all = recorded.scalars().iter().zip(recorded.kernel().vars());
    let scalars = all.map(|(expr, info)| {
        let value = expr.eval(&size);
        value.filter(|x| (0..=info.max).contains(x)).ok_or_else(|| {
            let expr = expr.display(recorded.sizes());
            match value.filter(|&x| x >= 0) {
                Some(x) => format!("{expr} is {x}, and at most {}", info.max),
                None => format!("{expr} is no number from 0 on"),
            }
        })
    });
    scalars.collect()
}

/// The kernel with its scalars for these sizes, if it was recorded for such.
fn fitting(recorded: Arc<Recorded>, sizes: &[i64], bucket: Bucket) -> Option<SizedKernel> {
    let of_sizes = Bucket::of(&recorded, sizes, bucket.aligned);
    let fits = of_sizes.aligned == bucket.aligned && (bucket.large || !of_sizes.large);
    let scalars = if fits { scalars_of(&recorded, sizes).ok()? } else { return None };
    Some(SizedKernel { recorded, scalars })
}

/// A kernel with the numbers of a call.
pub(super) struct Call {
    pub(super) recorded: Arc<Recorded>,
    pub(super) scalars: Arc<[i64]>,
    pub(super) device: Device,
    pub(super) sizes: SmallVec<[i64; 8]>,
}

impl Kernel {
    /// The recorded kernel for a device and dtypes.
    #[track_caller]
    pub(super) fn recorded(
        &self,
        device: &Device,
        dtypes: &[DType],
        bucket: Bucket,
    ) -> Result<Arc<Recorded>> {
        let is_it = |known: &&Known| {
            known.bucket == bucket && known.dtypes[..] == *dtypes && device.is_of(&known.device)
        };
        if let Some(known) = lock(&self.0.recorded).iter().find(is_it) {
            return Ok(known.recorded.clone());
        }
        if let Written::Text(recorded) = &self.0.write {
            return self.of_text(recorded, device, dtypes, bucket.large);
        }
        let mut setting = self.setting(device, dtypes, bucket);
        let mut recorded = self.record(&setting)?;
        let promised = setting.caps.progress;
        if recorded.looks_back() {
            setting.caps.progress = device.progress()?;
        }
        if !self.0.choices.is_empty() || setting.caps.progress != promised {
            for Parameter { name, values, .. } in recorded.parameters() {
                let choice = match self.given(name) {
                    None => 0,
                    Some(value) => {
                        let place = values.iter().position(|&known| known == value);
                        place.ok_or_else(|| {
                            let reason = format!("is one of {values:?}, not {value}");
                            self.wrong(format!("parameter `{name}` {reason}"))
                        })?
                    }
                };
                setting.choices.push(choice);
            }
            recorded = self.record(&setting)?;
        }
        let recorded = Arc::new(recorded);
        let dtypes = SmallVec::from_slice(dtypes);
        let (device, tuned) = (device.downgrade(), Vec::new());
        let known = Known { device, dtypes, bucket, recorded: recorded.clone(), tuned };
        let mut all = lock(&self.0.recorded);
        all.retain(|known| known.device.strong_count() > 0);
        all.push(known);
        Ok(recorded)
    }

    /// The setting that the kernel is recorded for, with the first value of each parameter.
    fn setting(&self, device: &Device, dtypes: &[DType], bucket: Bucket) -> Setting {
        let mut caps = device.caps().clone();
        if !self.0.raw.is_empty() {
            // Arguments are those that the code declares.
            caps.max_iterations = 0;
        }
        let Bucket { large, aligned } = bucket;
        Setting { caps, inputs: dtypes.to_vec(), large, aligned, ..Setting::default() }
    }

    pub(super) fn record(&self, setting: &Setting) -> Result<Recorded, LangError> {
        record(&self.0.name, setting, |k: &Lang| match &self.0.write {
            Written::Whole(write) => write(k),
            Written::Elementwise(write) => flat(k, &setting.inputs, &**write),
            Written::Text(_) => {}
        })
    }

    /// The value of a parameter that [`Kernel::with_parameter`] gave.
    fn given(&self, name: &str) -> Option<usize> {
        self.0.choices.iter().find(|choice| choice.0 == *name).map(|choice| choice.1)
    }

    /// The kernel of a text, if it is for these dtypes and sizes.
    #[track_caller]
    fn of_text(
        &self,
        recorded: &Arc<Recorded>,
        device: &Device,
        dtypes: &[DType],
        large: bool,
    ) -> Result<Arc<Recorded>> {
        let inputs = recorded.arguments().iter().filter(|x| x.role == Role::Input);
        let known: Vec<DType> = inputs.map(|x| x.dtype).collect();
        if known != dtypes {
            return Err(self.wrong(format!("its text is for {known:?}, the inputs are {dtypes:?}")));
        }
        if device.caps().max_iterations > 0 && recorded.may_be_cut() {
            let reason =
                "its text has loops of any length, which this driver ends after so many iterations";
            return Err(self.wrong(reason.to_owned()));
        }
        if large && !recorded.is_large() {
            return Err(self.wrong(format!("its text is for at most {SMALL} elements")));
        }
        Ok(recorded.clone())
    }

    /// The kernel and its numbers for these inputs.
    #[track_caller]
    pub(super) fn bound(&self, inputs: &[&Tensor]) -> Result<Call> {
        let Some(device) = inputs.first().map(|x| x.device().clone()) else {
            return Err(self.wrong("it was called without an input".to_owned()));
        };
        self.on_one_device(inputs)?;
        let inputs: Vec<(DType, Shape)> =
            inputs.iter().map(|x| (x.dtype(), x.shape().clone())).collect();
        self.bind(device, &inputs)
    }

    /// The kernel and its numbers for inputs of these dtypes and shapes.
    #[track_caller]
    pub(super) fn bind(&self, device: Device, inputs: &[(DType, Shape)]) -> Result<Call> {
        let dtypes: SmallVec<[DType; 4]> = inputs.iter().map(|x| x.0).collect();
        let aligned = device.caps().mma != DTypeSet::NONE;
        let mut bucket = Bucket { large: false, aligned };
        let mut recorded = self.recorded(&device, &dtypes, bucket)?;
        let sizes = self.sizes(&recorded, inputs)?;
        let of_sizes = Bucket::of(&recorded, &sizes, aligned);
        if bucket != of_sizes {
            bucket = of_sizes;
            recorded = self.recorded(&device, &dtypes, bucket)?;
        }
        let scalars =
            scalars_of(&recorded, &sizes).map_err(|reason| self.misfit(inputs, reason))?;
        let call = Call { recorded, scalars, device, sizes };
        Ok(self.tuned(&call, &dtypes, bucket).unwrap_or(call))
    }

    /// The call with the values of parameters that the device found to be the fastest; `None` if it found none.
    fn tuned(&self, call: &Call, dtypes: &[DType], bucket: Bucket) -> Option<Call> {
        let Call { recorded, scalars, device, sizes } = call;
        let options: Vec<Vec<usize>> = (recorded.parameters().iter())
            .map(|Parameter { name, values, choice }| match self.given(name) {
                None => (0..values.len()).collect(),
                Some(_) => vec![*choice],
            })
            .collect();
        if options.iter().all(|numbers| numbers.len() < 2)
            || recorded.looks_back()
            || self.raw_of(device).is_some()
        {
            return None;
        }
        let (class, generation) = (SizeClass::of(sizes), device.generation_of_values());
        let is_it = |known: &&mut Known| Arc::ptr_eq(&known.recorded, recorded);
        let known = lock(&self.0.recorded).iter_mut().find(is_it).and_then(|known| {
            known.tuned.retain(|tuned| tuned.generation == generation);
            let tuned = known.tuned.iter().find(|tuned| tuned.class == class);
            tuned.map(|tuned| tuned.recorded.clone())
        });
        let chosen = known.unwrap_or_else(|| {
            // Without the rule of its gradient, which may hold tensors.
            let inner = Inner { gradient: None, ..(*self.0).clone() };
            let (kernel, first) = (Kernel(Arc::new(inner)), recorded.clone());
            let (dtypes, sizes) = (SmallVec::<[DType; 4]>::from_slice(dtypes), sizes.clone());
            let record = move |device: &Device, choices: &[usize]| {
                let setting = kernel.setting(device, &dtypes, bucket);
                kernel.variant(&first, &Setting { choices: choices.to_vec(), ..setting }, &sizes)
            };
            let first = SizedKernel { recorded: recorded.clone(), scalars: scalars.clone() };
            let call =
                ParameterCall { first, class: class.clone(), options, record: Arc::new(record) };
            let chosen = device.tuned_values(&call);
            let tuned = Tuned { class, generation, recorded: chosen.clone() };
            if let Some(known) = lock(&self.0.recorded).iter_mut().find(is_it) {
                if known.tuned.len() == MAX_CLASSES {
                    known.tuned.clear();
                }
                known.tuned.push(tuned);
            }
            chosen
        })?;
        let SizedKernel { recorded, scalars } = fitting(chosen, sizes, bucket)?;
        Some(Call { recorded, scalars, device: device.clone(), sizes: sizes.clone() })
    }

    /// The kernel recorded with other values of parameters; `None` where that fails, or it is called in another way than
    /// the first.
    fn variant(&self, first: &Recorded, setting: &Setting, sizes: &[i64]) -> Option<SizedKernel> {
        let setting = Setting { is_trial: true, ..setting.clone() };
        // The program's closure may not be prepared for all combinations of values.
        let other = catch_unwind(AssertUnwindSafe(|| self.record(&setting))).ok()?.ok()?;
        let names = |of: &Recorded| -> Vec<String> {
            of.parameters().iter().map(|parameter| parameter.name.clone()).collect()
        };
        let seen = |of: &Recorded| -> Vec<Argument> {
            of.arguments().iter().filter(|argument| argument.role.is_seen()).cloned().collect()
        };
        let is_same = first.sizes() == other.sizes()
            && names(first) == names(&other)
            && seen(first) == seen(&other);
        let bucket = Bucket { large: setting.large, aligned: setting.aligned };
        fitting(Arc::new(other), sizes, bucket).filter(|_| is_same)
    }

    /// The sizes that inputs and the program say, by number.
    #[track_caller]
    fn sizes(&self, recorded: &Recorded, inputs: &[(DType, Shape)]) -> Result<SmallVec<[i64; 8]>> {
        let names = recorded.sizes();
        let mut sizes: SmallVec<[Option<i64>; 8]> = names
            .iter()
            .map(|name| {
                let given = self.0.sizes.iter().find(|size| size.0 == *name);
                given.map(|size| size.1 as i64)
            })
            .collect();
        let arguments = recorded.arguments();
        let declared = arguments.iter().filter(|argument| argument.role == Role::Input);
        let n = declared.clone().count();
        if n != inputs.len() {
            return Err(
                self.wrong(format!("it has {n} inputs, and was called with {}", inputs.len()))
            );
        }
        // Sizes first: an extent may be made of one that a later input says.
        for (argument, (_, shape)) in declared.clone().zip(inputs) {
            if argument.shape.len() != shape.rank() {
                let reason = format!("`{}` has {} axes", argument.name, argument.shape.len());
                return Err(self.misfit(inputs, reason));
            }
            for (expr, &extent) in argument.shape.iter().zip(shape.iter()) {
                if let Some((number, size)) = expr.solve(extent as i64) {
                    sizes[number].get_or_insert(size);
                }
            }
        }
        let known = |number: usize| sizes.get(number).copied().flatten();
        for (argument, (_, shape)) in declared.zip(inputs) {
            for (axis, (expr, &extent)) in argument.shape.iter().zip(shape.iter()).enumerate() {
                if expr.eval(&known) != Some(extent as i64) {
                    let (name, expr_name) = (&argument.name, expr.display(names));
                    let expected = expr.eval(&known).map_or("unknown".into(), |x| x.to_string());
                    let reason = format!(
                        "axis {axis} of `{name}` is {extent}, and `{expr_name}` is {expected}"
                    );
                    return Err(self.misfit(inputs, reason));
                }
            }
        }
        let whole = names.iter().zip(&sizes).map(|(name, size)| {
            size.ok_or_else(|| {
                self.wrong(format!("no input says the size `{name}`: give it by `with_size`"))
            })
        });
        whole.collect()
    }
}
