//! What a module is: something with named parameters.
//!
//! A module is used by shared reference. What changes in it (parameters, running statistics, the
//! train/eval mode) lives in shared cells, [`Param`] and [`Mode`], so an optimizer holds the same
//! parameters without borrowing the model, and cloning a layer ties its clone to it.
//!
//! [`Module`] is about structure and is derived; [`Forward`] is the computation of those modules
//! that map one tensor to one tensor, which is what [`Sequential`](crate::Sequential) chains. A
//! model with another signature writes its own method and derives `Module` alone.

use crate::dropout::RngStream;
use crate::loading::Loaded;
use crate::whole;
use std::collections::BTreeMap;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use zyx_core::{Conv1dOptions, Conv2dOptions, Reduction};
use zyx_core::{DType, Device, Param, Pool2d, Result, Shape, Tensor};

/// Something with named parameters. Derive it: every field that is not marked
/// `#[module(skip)]` is visited under its name.
///
/// ```
/// use zyx::nn::{Forward, Init, Linear, Module};
/// use zyx::{Result, Tensor};
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
/// let device = zyx::device()?;
/// let init = &mut Init::new(0, &device);
/// let mlp = Mlp { hidden: Linear::new(4, 8, init)?, out: Linear::new(8, 2, init)? };
/// let names: Vec<String> = mlp.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["hidden.weight", "hidden.bias", "out.weight", "out.bias"]);
/// assert_eq!(mlp.n_parameters(), 4 * 8 + 8 + 8 * 2 + 2);
/// # Ok::<(), zyx::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no module",
    note = "a field of a struct that derives `Module` is a parameter, a module, a number, or an option, vector, array or \
            box of those; mark another one `#[module(skip)]`"
)]
pub trait Module {
    /// Shows every parameter and mode to the visitor, under `path`.
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor);

    /// All parameters, trainable or state, with their names in dotted form; a tied one under
    /// each of its names.
    fn named_parameters(&self) -> Vec<(String, Param)> {
        whole::named_parameters(&|path, visitor| self.visit(path, visitor))
    }

    /// All parameters, each once: what an optimizer is made with. It changes the trainable ones;
    /// state (running statistics) is among them so that its pending values are computed with each
    /// step.
    fn parameters(&self) -> Vec<Param> {
        whole::distinct(self.named_parameters())
    }

    /// Number of trainable elements.
    fn n_parameters(&self) -> usize {
        whole::n_trainable(&self.parameters())
    }

    /// The state among [`Module::named_parameters`]: running statistics and counts, what PyTorch
    /// calls buffers.
    fn named_state(&self) -> Vec<(String, Param)> {
        whole::state(self.named_parameters())
    }

    /// All random streams (of dropout) with their names, each once.
    fn named_streams(&self) -> Vec<(String, RngStream)> {
        whole::named_streams(&|path, visitor| self.visit(path, visitor))
    }

    /// Moves all parameters and state to a device. Optimizers are made afterwards: what they keep for a parameter
    /// is where the parameter was.
    ///
    /// ```
    /// # use zyx::nn::{Init, Linear, Module};
    /// # use zyx::DType;
    /// # let device = zyx::runtime().device("reference")?;
    /// # let other = zyx::Runtime::default().device("reference")?;
    /// let layer = Linear::new(4, 2, &mut Init::new(0, &device))?;
    /// layer.to_device(&other)?;
    /// assert_eq!(layer.weight.device(), other);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When a device fails; parameters before the one at which it does have moved, and the call can be repeated.
    #[track_caller]
    fn to_device(&self, device: &Device) -> Result<()> {
        whole::to_device(&self.parameters(), device)
    }

    /// Converts all parameters and state of floats to a dtype of floats; integers and bools stay. Optimizers are made
    /// afterwards.
    ///
    /// ```
    /// # use zyx::nn::{BatchNorm1d, Init, Module};
    /// # use zyx::DType;
    /// # let device = zyx::runtime().device("reference")?;
    /// let layer = BatchNorm1d::new(4, &mut Init::new(0, &device))?;
    /// layer.to_dtype(DType::BF16)?;
    /// let dtypes: Vec<DType> = layer.parameters().iter().map(|parameter| parameter.dtype()).collect();
    /// assert_eq!(dtypes[..4], [DType::BF16; 4]);
    /// assert_eq!(dtypes[4], DType::I64); // the number of batches
    /// assert!(layer.to_dtype(DType::I32).is_err());
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the dtype is not one of floats.
    #[track_caller]
    fn to_dtype(&self, dtype: DType) -> Result<()> {
        whole::to_dtype(&self.parameters(), dtype)
    }

    /// Keeps all parameters as they are: no gradients reach them, optimizers leave them alone.
    fn freeze(&self) {
        whole::freeze(&self.parameters());
    }

    /// Makes all parameters trainable again, but not state.
    fn unfreeze(&self) {
        whole::unfreeze(&self.parameters());
    }

    /// A table of all parameters: name, shape, dtype, number of elements, whether it is trained.
    fn summary(&self) -> String {
        crate::summary::of(&self.named_parameters())
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
    /// [`Error::Format`](zyx_core::Error::Format) when a name is missing or unknown or a shape differs.
    fn load_tensors(&self, tensors: &BTreeMap<String, Tensor>) -> Result<()> {
        crate::loading::strict(&self.named_parameters(), tensors)
    }

    /// As [`Module::load_tensors`], for files of other origin: `rename` gives the model's name of
    /// each name in the file, or `None` for what is not wanted. What is missing or left over is
    /// told instead of refused; shapes must fit all the same.
    ///
    /// ```
    /// use zyx::nn::{Init, Linear, Module};
    /// use zyx::{DType, Tensor};
    /// let device = zyx::device()?;
    /// let layer = Linear::new(2, 1, &mut Init::new(0, &device))?;
    /// let file = [("model.weight".to_owned(), Tensor::ones([1, 2], DType::F32, &device))].into();
    /// let rename = |name: &str| name.strip_prefix("model.").map(str::to_owned);
    /// let loaded = layer.load_partial(&file, &rename)?;
    /// assert_eq!((loaded.missing, loaded.unexpected), (vec!["bias".to_owned()], vec![]));
    /// assert_eq!(layer.weight.tensor().to_vec::<f32>()?, [1.0, 1.0]);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`](zyx_core::Error::Format) when a shape differs or two names of the file become one.
    #[track_caller]
    fn load_partial(
        &self,
        tensors: &BTreeMap<String, Tensor>,
        rename: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Loaded> {
        crate::loading::partial(&self.named_parameters(), tensors, rename)
    }

    /// The values of all parameters by name.
    fn to_tensors(&self) -> BTreeMap<String, Tensor> {
        whole::to_tensors(self.named_parameters())
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
        crate::safetensors::save(&self.to_tensors(), file.as_ref())
    }

    /// Reads all parameters from a safetensors file, or from several of one model: the path of their
    /// index or folder, as for [`safetensors::load`](crate::safetensors::load).
    ///
    /// # Errors
    /// When the file cannot be read or is corrupt, or as [`Module::load_tensors`].
    fn load(&self, file: impl AsRef<FilePath>) -> Result<()>
    where
        Self: Sized,
    {
        crate::loading::file(&self.named_parameters(), file.as_ref())
    }
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

    /// A random stream and its full name.
    fn stream(&mut self, name: &str, stream: &RngStream) {
        let _ = (name, stream);
    }
}

struct SetMode(bool);

impl Visitor for SetMode {
    fn parameter(&mut self, name: &str, parameter: &Param) {
        parameter.set_name(name);
    }

    fn mode(&mut self, mode: &Mode) {
        mode.0.store(self.0, Relaxed);
    }
}

/// Where a visit is: the names of the enclosing fields, joined by dots.
#[derive(Debug, Default)]
pub struct Path(String);

impl Path {
    /// Visits something inside under the name `name`.
    ///
    /// ```
    /// let mut path = zyx::nn::Path::default();
    /// path.within("layers", |path| path.within("0", |path| assert_eq!(path.as_str(), "layers.0")));
    /// assert_eq!(path.as_str(), "");
    /// ```
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
    ///
    /// ```
    /// # use zyx::nn::{Dropout, Init, Module};
    /// # let device = zyx::runtime().device("reference")?;
    /// # let init = &mut Init::new(0, &device);
    /// let layer = Dropout::new(0.5, init)?;
    /// assert!(layer.mode.is_training());
    /// layer.eval();
    /// assert!(!layer.mode.is_training());
    /// # Ok::<(), zyx::Error>(())
    /// ```
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

/// Named modules, visited in the order of their names.
impl<M: Module> Module for BTreeMap<String, M> {
    fn visit(&self, path: &mut Path, visitor: &mut dyn Visitor) {
        for (name, module) in self {
            path.within(name, |path| module.visit(path, visitor));
        }
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

/// Modules in a list, named by their position: PyTorch's `ModuleList`.
pub type ModuleList<M> = Vec<M>;

/// Modules by name: PyTorch's `ModuleDict`.
pub type ModuleDict<M> = BTreeMap<String, M>;

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
