//! User kernels: functions from lazy tensors to lazy tensors.

mod elements;
mod programs;
mod trace;

use super::derivatives::find_wrong_component;
use super::{Expr, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Named, Operands, Result};
use crate::graph::{KernelCall, Op, RawCall};
use crate::hal::{RawKernel, RawParam};
use crate::ir::{self, Access};
use crate::lang::{Argument, Lang, Recorded, Role, Val};
use crate::origin::Attributed;
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::shape::Shape;
use elements::Function;
use programs::{Bucket, Call, Known};
use std::cell::RefCell;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex};

pub use trace::KernelStep;

/// A kernel written in [`lang`](crate::lang), which is called with tensors as a method is.
///
/// The closure is run once for each device and each combination of dtypes; what it records serves all sizes. The results are lazy:
/// nothing is computed before their values are asked for. A call of several kernels and operations is one plan.
///
/// ```
/// use zyx::Tensor;
/// use zyx::kernel::{BinaryOp, Kernel, Lang};
/// # let device = zyx::runtime().device("reference")?;
/// let softmax = Kernel::new("softmax", |k: &Lang| {
///     let [rows, cols] = k.sizes(["rows", "cols"]);
///     let x = k.input("x", [rows, cols]);
///     let y = k.output("y", [rows, cols], x.dtype());
///     k.groups([rows], 256, |g, [row]| {
///         let max = g.reduce(BinaryOp::Max, cols, |i| x.at([row, i]));
///         let sum = g.reduce(BinaryOp::Add, cols, |i| (x.at([row, i]) - max).exp());
///         g.each(cols, |i| y.set([row, i], (x.at([row, i]) - max).exp() / sum));
///     });
/// });
/// let x = Tensor::new([[1f32, 1.0], [0.0, 3f32.ln()]], &device)?;
/// let y = softmax.call(&[&x])?;
/// assert_eq!(y.to_vec::<f32>()?[..2], [0.5, 0.5]);
/// # Ok::<(), zyx::Error>(())
/// ```
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    name: Arc<str>,
    write: Written,
    /// Sizes and values of parameters that are given by name.
    sizes: Vec<(String, usize)>,
    choices: Vec<(String, usize)>,
    gradient: Option<Arc<Gradient>>,
    raw: Vec<Raw>,
    recorded: Arc<Mutex<Vec<Known>>>,
    functions: Arc<Mutex<Vec<Arc<Function>>>>,
}

#[derive(Clone)]
enum Written {
    Whole(Arc<dyn Fn(&Lang) + Send + Sync>),
    /// Read from a text, for the dtypes of its inputs.
    Text(Arc<Recorded>),
    Elementwise(Arc<ElementRule>),
}

/// A kernel in the language of one backend, and its launch.
#[derive(Clone)]
struct Raw {
    kernel: RawKernel,
    launch: Arc<LaunchRule>,
}

type LaunchRule = dyn Fn(&dyn Fn(&str) -> usize) -> RawLaunch + Send + Sync;
type ElementRule = dyn for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync;
type Rule = dyn Fn(&KernelGradient<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// A rule of [`Kernel::with_gradient`].
struct Gradient {
    rule: Box<Rule>,
    /// Where `with_gradient` was called.
    location: &'static Location<'static>,
}

/// The geometry and scalars of a launch of a [`RawKernel`].
#[derive(Clone, Debug, PartialEq)]
pub struct RawLaunch {
    /// Groups of threads along axes x, y and z.
    pub groups: [u32; 3],
    /// The scalars that the code declares, in order.
    pub scalars: Vec<Scalar>,
}

/// What the gradient rule of a [`Kernel`] is given.
#[derive(Debug)]
pub struct KernelGradient<'a> {
    /// The inputs of the call.
    pub inputs: &'a [Tensor],
    /// The output whose cotangent is given.
    pub output: &'a Tensor,
    /// Its number among the outputs.
    pub number: usize,
    /// The cotangent of the output.
    pub cotangent: &'a Tensor,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kernel({})", self.0.name)
    }
}

impl Kernel {
    /// A kernel that a closure writes. Nothing is recorded before the first call.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let double = Kernel::new("double", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], zyx::DType::F32));
    ///     k.each(n, |i| y.set(i, x.at(i) * 2.0));
    /// });
    /// let y = double.call(&[&Tensor::new([1f32, 2.0], &device)?])?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn new(name: &str, write: impl Fn(&Lang) + Send + Sync + 'static) -> Kernel {
        Kernel::of(name, Written::Whole(Arc::new(write)))
    }

    /// A function of elements at equal places. Inputs are broadcast; shape, dtype and gradient of the result follow, and it is fused
    /// with what stands around it as any operation is.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Val};
    /// # let device = zyx::runtime().device("reference")?;
    /// let swiglu = Kernel::elementwise("swiglu", |x: &[Val]| x[0] * x[0].sigmoid() * x[1]);
    /// let gate = Tensor::new([0f32, 2.0], &device)?.tracked();
    /// let up = Tensor::new([3f32], &device)?;
    /// let y = swiglu.call(&[&gate, &up])?;
    /// assert_eq!(y.to_vec::<f32>()?[0], 0.0);
    /// let slope = y.sum(..)?.grad(&[&gate])?.remove(0).expect("it depends on the gate");
    /// assert_eq!(slope.to_vec::<f32>()?[0], 1.5);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    pub fn elementwise(
        name: &str,
        write: impl for<'k> Fn(&[Val<'k>]) -> Val<'k> + Send + Sync + 'static,
    ) -> Kernel {
        Kernel::of(name, Written::Elementwise(Arc::new(write)))
    }

    fn of(name: &str, write: Written) -> Kernel {
        let (sizes, choices, raw) = Default::default();
        let (recorded, functions) = Default::default();
        let (name, gradient) = (name.into(), None);
        Kernel(Arc::new(Inner { name, write, sizes, choices, gradient, raw, recorded, functions }))
    }

    /// Its name, as [`Tensor::explain`] and the profiler have it.
    ///
    /// ```
    /// # use zyx::kernel::{Kernel, Val};
    /// let kernel = Kernel::elementwise("square", |x: &[Val]| x[0] * x[0]);
    /// assert_eq!(kernel.name(), "square");
    /// ```
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The kernel with a size that no input says.
    ///
    /// ```
    /// use zyx::kernel::{Kernel, Lang};
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let repeated = Kernel::new("repeated", |k: &Lang| {
    ///     let [n, times] = k.sizes(["n", "times"]);
    ///     let x = k.input("x", [n]);
    ///     let y = k.output("y", [times, n], x.dtype());
    ///     k.each([times, n], |[i, j]| y.set([i, j], x.at(j)));
    /// });
    /// let x = Tensor::new([1i32, 2], &device)?;
    /// let y = repeated.with_size("times", 2).call(&[&x])?;
    /// assert_eq!(y.to_vec::<i32>()?, [1, 2, 1, 2]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn with_size(&self, name: &str, size: usize) -> Kernel {
        let mut inner = (*self.0).clone();
        inner.sizes.retain(|(known, _)| known != name);
        inner.sizes.push((name.to_owned(), size));
        Kernel(Arc::new(inner))
    }

    /// The kernel with a value of a parameter, which [`Device::tune`] then leaves as it is; see [`Lang::parameter`].
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let copy = Kernel::new("copy", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let part = k.parameter("part", &[256, 64]);
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], zyx::DType::F32));
    ///     k.groups([n.div_ceil(part)], 64, |g, [group]| {
    ///         let first = group * part;
    ///         g.each((n - first).minimum(part), |i| y.set(first + i, x.at(first + i)));
    ///     });
    /// });
    /// let x = Tensor::new([1f32, 2.0], &device)?;
    /// assert_eq!(copy.with_parameter("part", 64).call(&[&x])?.to_vec::<f32>()?, [1.0, 2.0]);
    /// assert!(copy.with_parameter("part", 65).call(&[&x]).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn with_parameter(&self, name: &str, value: usize) -> Kernel {
        let mut inner = (*self.0).clone();
        inner.choices.retain(|(known, _)| known != name);
        inner.choices.push((name.to_owned(), value));
        inner.recorded = Arc::default();
        Kernel(Arc::new(inner))
    }

    /// The kernel with a rule for its gradient in operations of tensors: one cotangent, or `None`, for each input.
    ///
    /// # Errors
    /// None here. Gradients fail with [`Error::Kernel`] at the line of this call when the rule returns another number of cotangents, or
    /// one of another shape, dtype or device than its input. [`Kernel::check_gradient`] finds wrong values.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let double = Kernel::new("double", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n]);
    ///     let y = k.output("y", [n], x.dtype());
    ///     k.each(n, |i| y.set(i, x.at(i) * 2.0));
    /// })
    /// .with_gradient(|of| Ok(vec![Some(of.cotangent * 2.0)]));
    /// let x = Tensor::new([1f32, 2.0], &device)?.tracked();
    /// let dx = double.call(&[&x])?.sum(..)?.grad(&[&x])?.remove(0).expect("by the rule");
    /// assert_eq!(dx.to_vec::<f32>()?, [2.0, 2.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn with_gradient(
        &self,
        rule: impl Fn(&KernelGradient<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync + 'static,
    ) -> Kernel {
        let mut inner = (*self.0).clone();
        let location = Location::caller();
        inner.gradient = Some(Arc::new(Gradient { rule: Box::new(rule), location }));
        Kernel(Arc::new(inner))
    }

    /// The kernel with code of its author's own for one backend, which runs in its place on devices that have the language. Its buffers are
    /// the arguments of the kernel, in order, scratch included; `launch` gets the sizes by name.
    ///
    /// The shapes and dtypes of results are those of the portable kernel, which runs everywhere else. A kernel of
    /// [`Kernel::elementwise`] is fused with other operations and has no launch to replace: its calls fail.
    ///
    /// ```
    /// use zyx::kernel::{Access, Kernel, Lang, Language, RawKernel, RawLaunch, RawParam, RawSource};
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let double = Kernel::new("double", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
    ///     k.each(n, |i| y.set(i, x.at(i) * 2.0));
    /// });
    /// let code = "__kernel void twice(__global float *x, ulong x0, __global float *y, ulong y0, uint n) {
    ///     uint i = get_global_id(0);
    ///     if (i < n) y[y0 + i] = 2 * x[x0 + i];
    /// }";
    /// let source = RawSource {
    ///     name: "twice".to_owned(),
    ///     language: Language::OpenClC,
    ///     code: code.as_bytes().into(),
    ///     params: vec![RawParam::new(DType::F32, Access::Read), RawParam::new(DType::F32, Access::Write)],
    ///     vars: vec![DType::U32],
    ///     threads: [64, 1, 1],
    ///     shared_bytes: 0,
    /// };
    /// // SAFETY: the code accesses the elements below `n`, which is the length of both buffers.
    /// let raw = unsafe { RawKernel::new(source) };
    /// let double = double.with_raw(raw, |size| {
    ///     let n = size("n") as u32;
    ///     RawLaunch { groups: [n.div_ceil(64), 1, 1], scalars: vec![n.into()] }
    /// });
    /// let y = double.call(&[&Tensor::new([1f32, 2.0], &device)?])?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    #[must_use]
    pub fn with_raw(
        &self,
        kernel: RawKernel,
        launch: impl Fn(&dyn Fn(&str) -> usize) -> RawLaunch + Send + Sync + 'static,
    ) -> Kernel {
        let mut inner = (*self.0).clone();
        inner.raw.push(Raw { kernel, launch: Arc::new(launch) });
        Kernel(Arc::new(inner))
    }

    /// The result of the kernel, which has one output, for these inputs, in the order in which it declares them.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Val};
    /// # let device = zyx::runtime().device("reference")?;
    /// let mean = Kernel::elementwise("mean", |x: &[Val]| (x[0] + x[1]) * 0.5);
    /// let (x, y) = (Tensor::new([1f32], &device)?, Tensor::new([4f32], &device)?);
    /// assert_eq!(mean.call(&[&x, &y])?.to_vec::<f32>()?, [2.5]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Kernel`] at the line of the kernel that is wrong; [`Error::Shape`] or [`Error::Argument`] where inputs do not fit
    /// it: another number of them or of axes, extents that contradict one another, a size that nothing says.
    #[track_caller]
    pub fn call(&self, inputs: &[&Tensor]) -> Result<Tensor> {
        let mut outputs = self.call_all(inputs)?;
        let n = outputs.len();
        match outputs.pop() {
            Some(only) if n == 1 => Ok(only),
            _ => Err(self.wrong(format!("it has {n} outputs: `call_all` gives all of them"))),
        }
    }

    /// All results of the kernel, in the order in which it declares them.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let halves = Kernel::new("halves", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n]);
    ///     let [quotient, rest] = ["quotient", "rest"].map(|name| k.output(name, [n], x.dtype()));
    ///     k.each(n, |i| {
    ///         quotient.set(i, x.at(i) / 2);
    ///         rest.set(i, x.at(i) % 2);
    ///     });
    /// });
    /// let both = halves.call_all(&[&Tensor::new([4i32, 7], &device)?])?;
    /// assert_eq!(both[0].to_vec::<i32>()?, [2, 3]);
    /// assert_eq!(both[1].to_vec::<i32>()?, [0, 1]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Kernel::call`].
    #[track_caller]
    pub fn call_all(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>> {
        if let Written::Elementwise(write) = &self.0.write {
            if !self.0.raw.is_empty() {
                let reason = "functions of elements have no launch that the code of `with_raw` could replace: use `Kernel::new`";
                return Err(self.wrong(reason.to_owned()));
            }
            self.on_one_device(inputs)?;
            let _here = Attributed::to_kernel(&self.0.name);
            // The rule of a gradient has inputs of one shape; what was broadcast is summed behind it.
            let inputs = Tensor::broadcast_tensors(inputs);
            let inputs = inputs.map_err(|error| error.at(Location::caller()))?;
            let y = self.elements(&inputs, &**write)?;
            let inputs: Vec<&Tensor> = inputs.iter().collect();
            return Ok(vec![self.with_rule(y, &inputs, 0)?]);
        }
        let Call { recorded, scalars, device, sizes } = self.bound(inputs)?;
        let raw = self.raw_call(&recorded, &scalars, &device, &sizes)?;
        let call = KernelCall { recorded, scalars, arguments: Vec::new(), output: 0, raw };
        let mut owned: Vec<Tensor> = Vec::with_capacity(inputs.len());
        for input in inputs {
            // Nothing is read of an empty input, and a launch needs a buffer.
            owned.push(match input.is_empty() {
                true => Tensor::zeros([1], input.dtype(), &device).contiguous(),
                false => (*input).clone(),
            });
        }
        let (mut outputs, mut cut) = (Vec::new(), None);
        for (output, (slot, argument)) in call.arguments(false).enumerate() {
            if argument.role == Role::Scratch {
                continue;
            }
            let (shape, dtype) = (call.shape(slot), argument.dtype);
            let op = Op::Kernel(Arc::new(KernelCall { output, ..call.clone() }));
            let srcs = Kernel::sources(&owned);
            let tracked = dtype.is_float() && inputs.iter().any(|input| input.is_tracked());
            let y = Tensor::node(Expr { op, srcs }, shape, dtype, device.clone(), tracked);
            match argument.role {
                Role::Cut => cut = Some(y),
                _ => outputs.push(y),
            }
        }
        let note = device.note_of(Location::caller(), None);
        let outputs = outputs.into_iter().enumerate().map(|(number, y)| {
            let y = match &cut {
                Some(cut) => y.unless_cut(&self.0.name, cut, &note),
                None => y,
            };
            self.with_rule(y, inputs, number)
        });
        outputs.collect()
    }

    /// Runs the kernel in the interpreter, which looks at each access, with threads in several orders: what it finds is an error at the
    /// line of the program.
    ///
    /// ```
    /// use zyx::kernel::{Kernel, Lang};
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let wrong = Kernel::new("wrong", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n]);
    ///     let y = k.output("y", [1], DType::F32);
    ///     k.each(n, |i| y.set(0, x.at(i)));
    /// });
    /// let error = wrong.check(&[&Tensor::new([1f32, 2.0], &device)?]).unwrap_err();
    /// assert!(error.to_string().contains("element 0"), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// A race of threads, an access outside of an array, a loop that does not end, a barrier that only some threads reach; and as for
    /// [`Kernel::call`].
    #[track_caller]
    pub fn check(&self, inputs: &[&Tensor]) -> Result<()> {
        if let Written::Elementwise(_) = &self.0.write {
            return self.call(inputs).map(|_| ());
        }
        let Call { recorded, scalars, .. } = self.bound(inputs)?;
        let call = KernelCall { recorded, scalars, arguments: Vec::new(), output: 0, raw: None };
        let bytes: Vec<Vec<u8>> =
            inputs.iter().map(|input| input.to_bytes()).collect::<Result<_>>()?;
        for seed in [None, Some(1), Some(2)] {
            call.interpret(&bytes, seed)?;
        }
        Ok(())
    }

    /// Compares the rule of [`Kernel::with_gradient`] with difference quotients at these inputs, as [`Tensor::gradcheck`] does, for each
    /// output that holds floats. Floats of inputs and outputs have one dtype: six digits of a gradient are compared in `f64`, three in
    /// `f32`, which fits kernels that compute in `f32`. Other inputs are constants. The kernel runs four times for each element of
    /// an input and has to be smooth within 0.002 of it in `f64`, within 0.02 in `f32`.
    ///
    /// ```
    /// use zyx::Tensor;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let square = Kernel::new("square", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n]);
    ///     let y = k.output("y", [n], x.dtype());
    ///     k.each(n, |i| y.set(i, x.at(i) * x.at(i)));
    /// });
    /// let x = Tensor::new([0.5f64, 2.0], &device)?;
    /// let right = square.with_gradient(|of| Ok(vec![Some(of.cotangent * &of.inputs[0] * 2.0)]));
    /// right.check_gradient(&[&x])?;
    /// let wrong = square.with_gradient(|of| Ok(vec![Some(of.cotangent * 2.0)]));
    /// let error = wrong.check_gradient(&[&x]).unwrap_err().to_string();
    /// assert!(error.contains("kernel `square` at ") && error.contains("input 0, element 0"), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Kernel`] at the line of `with_gradient` where a component of a gradient is not its quotient; [`Error::Argument`] if the
    /// kernel has no rule, or no input or output has a gradient; [`Error::DType`] if floats are of several dtypes; and as for
    /// [`Kernel::call`].
    #[track_caller]
    pub fn check_gradient(&self, inputs: &[&Tensor]) -> Result<()> {
        let Some(gradient) = &self.0.gradient else {
            let reason = "it has no rule of a gradient to check: `with_gradient` gives it one";
            return Err(self.wrong(reason.to_owned()));
        };
        let first = inputs.iter().map(|x| x.dtype()).find(|dtype| dtype.is_float());
        let (dtype, tolerance) = match first {
            Some(DType::F64) => (DType::F64, 1e-6),
            Some(DType::F32) => (DType::F32, 1e-3),
            _ => {
                let reason = "a check of its gradient needs an input of f32 or f64";
                return Err(self.wrong(reason.to_owned()));
            }
        };
        let outputs = self.call_all(inputs)?.into_iter().enumerate();
        let floats: Vec<usize> =
            outputs.filter(|(_, y)| y.dtype().is_float()).map(|(number, _)| number).collect();
        if floats.is_empty() {
            return Err(self.wrong("no output holds floats, which have gradients".to_owned()));
        }
        for number in floats {
            let f = |x: &[Tensor]| {
                let x: Vec<&Tensor> = x.iter().collect();
                Ok(self.call_all(&x)?.swap_remove(number))
            };
            let wrong = find_wrong_component(&f, inputs, dtype, tolerance);
            if let Some(wrong) = wrong.named("check_gradient")? {
                let reason = format!("the rule of its gradient is wrong: output {number}, {wrong}");
                return Err(gradient.error(&self.0.name, &reason));
            }
        }
        Ok(())
    }

    /// The text of the kernel for inputs of these dtypes on a device: its IR, with a header that says how it is called.
    /// [`Kernel::from_text`] reads it. A function of elements is written for arrays of one axis.
    ///
    /// ```
    /// use zyx::DType;
    /// use zyx::kernel::{Kernel, Lang};
    /// # let device = zyx::runtime().device("reference")?;
    /// let double = Kernel::new("double", |k: &Lang| {
    ///     let n = k.size("n");
    ///     let (x, y) = (k.input("x", [n]), k.output("y", [n], DType::F32));
    ///     k.each(n, |i| y.set(i, x.at(i) * 2.0));
    /// });
    /// assert!(double.to_text(&[DType::F32], &device)?.starts_with("kernel double"));
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Kernel::call`].
    #[track_caller]
    pub fn to_text(&self, dtypes: &[DType], device: &Device) -> Result<String> {
        Ok(self.recorded(device, dtypes, Bucket::default())?.to_string())
    }

    /// The kernel of a text that [`Kernel::to_text`] gave, or that was written by hand, for the dtypes that it names. It is
    /// verified; accesses that are not shown to be inside get guards when it is compiled.
    ///
    /// ```
    /// use zyx::kernel::Kernel;
    /// use zyx::{DType, Tensor};
    /// # let device = zyx::runtime().device("reference")?;
    /// let text = "kernel double
    ///     size 0 : n
    ///     value 0 : n0
    ///     argument 0 : input 1 x
    ///     argument 1 : output 1 y
    ///     buffer 0 : f32[1000] read s0
    ///     buffer 1 : f32[1000] write s0
    ///     scalar 0 : i64 0..=1000
    ///     %x   param 0 read : f32
    ///     %y   param 1 write : f32
    ///     %n   var 0 : i64
    ///     %i   loop parallel %n
    ///     %a     load %x[%i] : f32
    ///     %b     add %a, %a : f32
    ///     %s     store %y[%i], %b : f32
    ///     %e   end %i";
    /// let double = Kernel::from_text(text)?;
    /// let y = double.call(&[&Tensor::new([1f32, 2.0], &device)?])?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]);
    /// let again = Kernel::from_text(&double.to_text(&[DType::F32], &device)?)?;
    /// assert_eq!(again.name(), "double");
    /// let error = Kernel::from_text(&text.replace("add", "ad")).unwrap_err();
    /// assert!(error.to_string().contains("line 14: there is no op `ad`"), "{error}");
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`] with the line that is wrong.
    pub fn from_text(text: &str) -> Result<Kernel> {
        let recorded: Recorded = text.parse().map_err(|error: ir::ParseError| Error::Format {
            what: "text of a kernel".to_owned(),
            reason: error.to_string(),
        })?;
        let name = recorded.kernel().name().to_owned();
        Ok(Kernel::of(&name, Written::Text(Arc::new(recorded))))
    }

    #[track_caller]
    fn wrong(&self, reason: String) -> Error {
        let reason = format!("kernel `{}`: {reason}", self.0.name);
        Error::Argument { op: "kernel", reason, location: Location::caller() }
    }

    #[track_caller]
    fn misfit(&self, inputs: &[(DType, Shape)], reason: String) -> Error {
        let operands = Operands(inputs.to_vec());
        let reason = format!("kernel `{}`: {reason}", self.0.name);
        Error::Shape { op: "kernel", reason, operands, location: Location::caller() }
    }

    #[track_caller]
    fn on_one_device(&self, inputs: &[&Tensor]) -> Result<()> {
        let Some(other) = inputs.iter().find(|x| x.device() != inputs[0].device()) else {
            return Ok(());
        };
        let reason = format!(
            "kernel `{}` needs all inputs on one device, the first is on {}; use `to_device`",
            self.0.name,
            inputs[0].device()
        );
        let (spec, location) = (other.device().spec().to_owned(), Location::caller());
        Err(Error::NoDevice { spec, reason, location })
    }

    /// The output with the gradient rule, if there is one.
    #[track_caller]
    fn with_rule(&self, y: Tensor, inputs: &[&Tensor], number: usize) -> Result<Tensor> {
        let Some(gradient) = self.0.gradient.clone() else { return Ok(y) };
        let name = self.0.name.clone();
        y.with_gradient(inputs, move |inputs, output, cotangent| {
            gradient.cotangents(&name, &KernelGradient { inputs, output, number, cotangent })
        })
    }

    /// Whether it is a function of elements.
    pub(crate) fn is_elementwise(&self) -> bool {
        matches!(self.0.write, Written::Elementwise(_))
    }

    /// The call of the kernel in the place of an operation that gives one result of this dtype and shape.
    pub(crate) fn call_for(
        &self,
        device: &Device,
        inputs: &[(DType, Shape)],
        result: (DType, &Shape),
    ) -> Result<KernelCall> {
        let Call { recorded, scalars, device, sizes } = self.bind(device.clone(), inputs)?;
        let raw = self.raw_call(&recorded, &scalars, &device, &sizes)?;
        let mut call = KernelCall { recorded, scalars, arguments: Vec::new(), output: 0, raw };
        let given = call.arguments(false).enumerate();
        let given: Vec<(usize, (usize, &Argument))> =
            given.filter(|(_, (_, argument))| argument.role != Role::Scratch).collect();
        let output = match given[..] {
            [(output, (slot, argument))] if (argument.dtype, &call.shape(slot)) == result => output,
            _ => {
                let (dtype, shape) = result;
                let reason = format!("the operation gives {dtype} {shape}, the kernel does not");
                return Err(self.misfit(inputs, reason));
            }
        };
        call.output = output;
        Ok(call)
    }

    /// Inputs as the sources of a node: of more than two, the second is a list.
    #[track_caller]
    pub(super) fn sources(inputs: &[Tensor]) -> [Option<Tensor>; 3] {
        let [first, rest @ ..] = inputs else { return [None, None, None] };
        let second = match rest {
            [] | [_] => rest.first().cloned(),
            _ => Some(Kernel::listed(rest)),
        };
        [Some(first.clone()), second, None]
    }

    #[track_caller]
    fn listed(inputs: &[Tensor]) -> Tensor {
        let (own, rest) = inputs.split_at(if inputs.len() > 3 { 2 } else { inputs.len() });
        let mut srcs = [None, None, None];
        srcs.iter_mut().zip(own).for_each(|(slot, input)| *slot = Some(input.clone()));
        if !rest.is_empty() {
            srcs[2] = Some(Kernel::listed(rest));
        }
        let n = srcs.iter().flatten().count() as u8;
        let tracked = inputs.iter().any(Tensor::is_tracked);
        let (expr, device) = (Expr { op: Op::Operands { n }, srcs }, inputs[0].device().clone());
        Tensor::node(expr, Shape::scalar(), DType::F32, device, tracked)
    }

    /// The inputs of a call that these are the sources of.
    pub(super) fn inputs(expr: &Expr) -> Vec<Tensor> {
        let [first, second, _] = expr.srcs.clone();
        let (mut inputs, mut rest) = (Vec::from_iter(first), second);
        while let Some(last) = rest {
            rest = match last.history().expr() {
                Some(Expr { op: Op::Operands { .. }, srcs: [x, y, others] }) => {
                    inputs.extend(x.iter().chain(y).cloned());
                    others.clone()
                }
                _ => {
                    inputs.push(last.clone());
                    None
                }
            };
        }
        inputs
    }

    /// The author's own code in a language of the device.
    fn raw_of(&self, device: &Device) -> Option<&Raw> {
        let languages = if self.0.raw.is_empty() { &[] } else { device.raw_languages() };
        self.0.raw.iter().find(|raw| languages.contains(&raw.kernel.language))
    }

    /// The launch of the author's own code, if the device has its language.
    #[track_caller]
    fn raw_call(
        &self,
        recorded: &Recorded,
        scalars: &[i64],
        device: &Device,
        sizes: &[i64],
    ) -> Result<Option<Arc<RawCall>>> {
        let Some(raw) = self.raw_of(device) else { return Ok(None) };
        let (source, arguments) = (&raw.kernel, recorded.arguments());
        let fits = |(param, argument): (&RawParam, &Argument)| {
            let reads = param.access == Access::Read;
            param.dtype == argument.dtype && reads == (argument.role == Role::Input)
        };
        let name = &source.name;
        if source.params.len() != arguments.len() || !source.params.iter().zip(arguments).all(fits)
        {
            let described: Vec<String> = arguments
                .iter()
                .map(|argument| format!("{} `{}`", argument.dtype, argument.name))
                .collect();
            let reason = format!(
                "the raw kernel `{name}` declares other buffers than the kernel has: declare {}, in this order; inputs are read, others \
                 written",
                described.join(", ")
            );
            return Err(self.wrong(reason));
        }
        let unknown = RefCell::new(None);
        let size = |name: &str| match recorded.sizes().iter().position(|known| known == name) {
            Some(number) => sizes[number] as usize,
            None => {
                unknown.replace(Some(name.to_owned()));
                0
            }
        };
        let launch = (raw.launch)(&size);
        if let Some(unknown) = unknown.take() {
            let known = recorded.sizes();
            let reason = format!(
                "the launch of the raw kernel `{name}` asks for the size `{unknown}`: the sizes are {known:?}"
            );
            return Err(self.wrong(reason));
        }
        let dtypes: Vec<DType> = launch.scalars.iter().map(|x| x.dtype()).collect();
        if dtypes != source.vars {
            let reason = format!(
                "the raw kernel `{name}` declares scalars {:?}, and is launched with {dtypes:?}: give those that it declares",
                source.vars
            );
            return Err(self.wrong(reason));
        }
        let own = launch.scalars.iter().map(|x| x.bits());
        let groups = launch.groups.into_iter().map(u64::from);
        let params = recorded.kernel().params();
        let lens = params.iter().map(|info| {
            let extent = |slot: u16| scalars[usize::from(slot)];
            info.extents.and_then(|extents| extents.product(extent)).unwrap_or(info.len)
        });
        let scalars = own.chain(groups).chain(lens).collect();
        Ok(Some(Arc::new(RawCall { kernel: source.clone(), scalars })))
    }
}

impl Gradient {
    /// An error at the line that gave the rule.
    fn error(&self, kernel: &str, reason: &str) -> Error {
        Error::of_kernel(kernel, reason, (self.location.file(), self.location.line()))
    }

    /// The cotangents that the rule returns, if they fit the inputs.
    fn cotangents(&self, kernel: &str, of: &KernelGradient<'_>) -> Result<Vec<Option<Tensor>>> {
        let given = (self.rule)(of)?;
        let (returned, needed) = (given.len(), of.inputs.len());
        if returned != needed {
            let reason = format!(
                "the rule of its gradient must return one cotangent, or `None`, for each input: {needed}, not {returned}"
            );
            return Err(self.error(kernel, &reason));
        }
        for (i, (dx, x)) in given.iter().zip(of.inputs).enumerate() {
            let Some(dx) = dx else { continue };
            let [given, needed] = [dx, x].map(|x| (x.dtype(), x.shape(), x.device()));
            if given != needed {
                let [given, needed] = [given, needed]
                    .map(|(dtype, shape, device)| format!("{dtype} {shape} on {device}"));
                let reason = format!(
                    "the rule of its gradient returns {given} for input {i}: the cotangent must be {needed}, as the input is"
                );
                return Err(self.error(kernel, &reason));
            }
        }
        Ok(given)
    }
}
