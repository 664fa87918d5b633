//! What a module is: something with named parameters.
//!
//! A module is used by shared reference. What changes in it (parameters, running statistics, the
//! train/eval mode) lives in shared cells, [`Param`] and [`Mode`], so an optimizer holds the same
//! parameters without borrowing the model, and cloning a layer ties its clone to it.
//!
//! [`Module`] is about structure and is derived; [`Forward`] is the computation of those modules
//! that map one tensor to one tensor, which is what [`Sequential`](crate::Sequential) chains. A
//! model with another signature writes its own method and derives `Module` alone.

use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use zyx_core::{Conv1dOptions, Conv2dOptions, Reduction};
use zyx_core::{DType, Device, Error, Param, Pool2d, Result, Shape, Tensor};

/// Something with named parameters. Derive it: every field that is not marked
/// `#[module(skip)]` is visited under its name.
///
/// ```
/// use nn::{Forward, Init, Linear, Module};
/// use zyx_core::{Result, Runtime, Tensor};
///
/// #[derive(Module)]
/// struct Mlp {
///     hidden: Linear,
///     out: Linear,
/// }
///
/// impl Forward for Mlp {
///     fn forward(&self, x: &Tensor) -> Result<Tensor> {
///         self.out.forward(&self.hidden.forward(x)?.relu())
///     }
/// }
///
/// let device = Runtime::default().device("reference")?;
/// let init = &mut Init::new(0, &device);
/// let mlp = Mlp { hidden: Linear::new(4, 8, init)?, out: Linear::new(8, 2, init)? };
/// let names: Vec<String> = mlp.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
/// assert_eq!(mlp.n_parameters(), 4 * 8 + 8 + 8 * 2 + 2);
/// # Ok::<(), zyx_core::Error>(())
/// ```
pub trait Module {
    /// Shows every parameter and mode to the visitor, under `path`.
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor);

    /// All parameters, trainable or state, with their names in dotted form; a tied one under
    /// each of its names.
    fn named_parameters(&self) -> Vec<(String, Param)> {
        struct Collect(Vec<(String, Param)>);
        impl Visitor for Collect {
            fn parameter(&mut self, name: &str, parameter: &Param) {
                self.0.push((name.to_owned(), parameter.clone()));
            }
        }
        let mut collect = Collect(Vec::new());
        self.visit(&mut Path::default(), &mut collect);
        collect.0
    }

    /// All parameters, each once: what an optimizer is made with. It changes the trainable ones;
    /// state (running statistics) is among them so that its pending values are computed with each
    /// step.
    fn parameters(&self) -> Vec<Param> {
        let mut parameters: Vec<Param> = Vec::new();
        for (_, parameter) in self.named_parameters() {
            if !parameters.iter().any(|known| known.is_same(&parameter)) {
                parameters.push(parameter);
            }
        }
        parameters
    }

    /// Number of trainable elements.
    fn n_parameters(&self) -> usize {
        let trainable = self.parameters().into_iter().filter(Param::is_trainable);
        trainable.map(|parameter| parameter.shape().numel()).sum()
    }

    /// Switches dropout on and batch normalisation to the statistics of the batch: the mode a new
    /// module is in.
    fn train(&self) {
        self.visit(&mut Path::default(), &mut SetMode(true));
    }

    /// Switches dropout off and batch normalisation to its running statistics.
    fn eval(&self) {
        self.visit(&mut Path::default(), &mut SetMode(false));
    }

    /// Replaces the values of all parameters by those of the tensors of the same names, converted
    /// to each parameter's dtype and device. Nothing is replaced unless all fit.
    ///
    /// # Errors
    /// [`Error::Format`] when a name is missing or unknown or a shape differs.
    fn load_tensors(&self, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
        load(&self.named_parameters(), tensors)
    }

    /// The values of all parameters by name.
    fn to_tensors(&self) -> BTreeMap<String, Tensor> {
        let named = self.named_parameters().into_iter();
        named.map(|(name, parameter)| (name, parameter.tensor().detach())).collect()
    }

    /// Writes all parameters to a safetensors file. The file is replaced at once when it is
    /// complete; an interrupted save leaves an earlier one as it was.
    ///
    /// # Errors
    /// When the file cannot be written or the device fails.
    fn save(&self, file: impl AsRef<FilePath>) -> Result<()>
    where
        Self: Sized,
    {
        crate::safetensors::save(&self.to_tensors(), file)
    }

    /// Reads all parameters from a safetensors file.
    ///
    /// # Errors
    /// When the file cannot be read or is corrupt, or as [`Module::load_tensors`].
    fn load(&self, file: impl AsRef<FilePath>) -> Result<()>
    where
        Self: Sized,
    {
        let file = file.as_ref();
        let Some((_, first)) = self.named_parameters().into_iter().next() else {
            return Ok(());
        };
        let tensors = crate::safetensors::load(file, &first.device())?;
        self.load_tensors(&tensors).map_err(|error| match error {
            Error::Format { reason, .. } => {
                Error::Format { what: file.display().to_string(), reason }
            }
            other => other,
        })
    }
}

fn load(named: &[(String, Param)], tensors: &BTreeMap<String, Tensor>) -> Result<()> {
    let fail = |reason: String| Error::Format { what: "parameters".to_owned(), reason };
    let list = |names: Vec<&str>| names.join(", ");
    let missing = named.iter().map(|(name, _)| name.as_str());
    let missing: Vec<&str> = missing.filter(|name| !tensors.contains_key(*name)).collect();
    let known = |name: &str| named.iter().any(|(known, _)| known == name);
    let unknown: Vec<&str> = tensors.keys().map(String::as_str).filter(|n| !known(n)).collect();
    let mut complaints = Vec::new();
    if !missing.is_empty() {
        complaints.push(format!("missing are: {}", list(missing)));
    }
    if !unknown.is_empty() {
        complaints.push(format!("not part of the model are: {}", list(unknown)));
    }
    if !complaints.is_empty() {
        return Err(fail(complaints.join("; ")));
    }
    let mut values = Vec::new();
    for (name, parameter) in named {
        let (value, shape) = (&tensors[name], parameter.shape());
        if !value.shape().same(&shape) {
            return Err(fail(format!(
                "{name} has shape {}, the model needs {shape}",
                value.shape()
            )));
        }
        values.push(value.to_device(&parameter.device())?.cast(parameter.dtype()));
    }
    Tensor::realize_all(&values)?;
    for ((_, parameter), value) in named.iter().zip(&values) {
        parameter.set(value)?;
    }
    Ok(())
}

/// A module that maps one tensor to one tensor.
pub trait Forward: Module {
    /// The result for `x`.
    ///
    /// # Errors
    /// When `x` does not fit.
    fn forward(&self, x: &Tensor) -> Result<Tensor>;
}

/// Sees what [`Module::visit`] shows.
pub trait Visitor {
    /// A parameter and its full name.
    fn parameter(&mut self, name: &str, parameter: &Param) {
        let _ = (name, parameter);
    }

    /// A train/eval mode.
    fn mode(&mut self, mode: &Mode) {
        let _ = mode;
    }
}

struct SetMode(bool);

impl Visitor for SetMode {
    fn mode(&mut self, mode: &Mode) {
        mode.0.store(self.0, Relaxed);
    }
}

/// Where a visit is: the names of the enclosing fields, joined by dots.
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    /// Visits something inside under the name `name`.
    pub fn within(&mut self, name: &str, visit: impl FnOnce(&mut Path)) {
        let outside = self.0.len();
        if outside > 0 {
            self.0.push('.');
        }
        self.0.push_str(name);
        visit(self);
        self.0.truncate(outside);
    }

    /// The name so far.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a layer is training; starts true. Clones are one mode.
#[derive(Clone, Debug)]
pub struct Mode(Arc<AtomicBool>);

impl Default for Mode {
    fn default() -> Mode {
        Mode(Arc::new(AtomicBool::new(true)))
    }
}

impl Mode {
    /// Whether the layer is training.
    pub fn is_training(&self) -> bool {
        self.0.load(Relaxed)
    }
}

impl Module for Param {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        visitor.parameter(path.as_str(), self);
    }
}

impl Module for Mode {
    fn visit(&self, _: &mut Path, visitor: &mut dyn Visitor) {
        visitor.mode(self);
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        if let Some(module) = self {
            module.visit(path, visitor);
        }
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        for (i, module) in self.iter().enumerate() {
            path.within(&i.to_string(), |path| module.visit(path, visitor));
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.as_slice().visit(path, visitor);
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        self.as_slice().visit(path, visitor);
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}

impl<M: Module + ?Sized> Module for Arc<M> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}

impl<M: Module + ?Sized> Module for &M {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        (**self).visit(path, visitor);
    }
}

impl<M: Forward + ?Sized> Forward for Box<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (**self).forward(x)
    }
}

impl<M: Forward + ?Sized> Forward for Arc<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        (**self).forward(x)
    }
}

/// Settings have no parameters.
macro_rules! settings {
    ($($type:ty)*) => {$(
        impl Module for $type {
            fn visit(&self, _: &mut Path, _: &mut dyn Visitor) {}
        }
    )*};
}

settings! {
    () bool char u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 String &'static str
    Shape DType Device Conv1dOptions Conv2dOptions Pool2d Reduction
}
