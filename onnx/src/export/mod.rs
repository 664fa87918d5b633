//! Functions of tensors as ONNX models: [`Export`].
//!
//! A function is traced: called with tensors that have no values. What it made of them is a list of some twenty
//! operations ([`Steps`]), of which each has a meaning in ONNX (`elementwise`, `nodes`). Sums of products become
//! matrix products (`products`), and what is made as a method of tensors makes it becomes the operator of that method:
//! normalisation and activations (`patterns`), convolutions and pooling (`windows`). Recording the methods as they are
//! called would find the same operators, but put the exporter into every method, and leave out what programs make
//! themselves. Only layers whose operations depend on the length of a sequence say which operator they are
//! (`recurrent`).
//!
//! Dimensions with names are found by tracing with several sizes: everything but sizes must be equal, and sizes must
//! be sums of products of the named dimensions (`sizes`).

mod elementwise;
mod nodes;
mod patterns;
mod products;
mod recurrent;
mod sizes;
mod views;
mod windows;
mod writer;

use crate::proto::tensor_proto::DataLocation;
use crate::proto::tensor_shape_proto::dimension;
use crate::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, ValueInfoProto,
};
use nodes::{Choice, port};
use prost::Message;
use sizes::{Grid, Size, Symbolic};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::panic::Location;
use std::path::Path;
use writer::{Name, Writer};
use zyx_core::tensor::{StepOp, Steps};
use zyx_core::{DType, Device, Error, Param, Result, Shape, Tensor};

/// The version of the operators that are written, and of the format that has them.
const OPSET: i64 = 20;
const IR_VERSION: i64 = 9;
/// The example sizes of named dimensions, in their order, unless they are given.
const LEAST: [usize; 4] = [16, 25, 36, 49];
/// Bytes from which on weights go to a file of their own: a file of protobuf ends at 2 GiB.
const LARGE: usize = 2_000_000_000;
/// Bytes of a tensor that stays in the model's file nevertheless.
const SMALL: usize = 1024;

/// An extent of an input of an exported function: a number, or a name of what is known when the model runs.
///
/// ```
/// use zyx::onnx::Dim;
/// let dims: [Dim; 2] = ["batch".into(), 784.into()];
/// assert_eq!(dims[0], Dim::Named("batch".to_owned()));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Always this.
    Fixed(usize),
    /// Whatever it is, the same wherever the name is.
    Named(String),
}

impl From<usize> for Dim {
    fn from(n: usize) -> Dim {
        Dim::Fixed(n)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Dim {
        Dim::Named(name.to_owned())
    }
}

struct Input {
    name: String,
    dtype: DType,
    dims: Vec<Dim>,
}

/// A function of tensors on its way to an ONNX model: what is said of it before it is traced.
///
/// ```
/// use zyx::onnx::{Export, Model};
/// use zyx::{DType, Tensor};
///
/// let device = zyx::device()?;
/// let weight = Tensor::new([[1f32, 2.0], [3.0, 4.0], [5.0, 6.0]], &device)?;
/// let model = Export::new(&device)
///     .input("x", DType::F32, ["batch".into(), 3.into()])
///     .weights([("weight", weight.clone())])
///     .trace(|x| Ok(vec![("y", x[0].matmul(&weight)?.relu())]))?;
///
/// let bytes = model.to_bytes();
/// let model = Model::from_bytes(bytes, &device)?;
/// assert_eq!(model.inputs()[0].to_string(), "x: f32 [batch, 3]");
/// let y = model.run([("x", Tensor::new([[1f32, 0.0, -1.0]], &device)?)])?.remove(0);
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0]);
/// # Ok::<(), zyx::Error>(())
/// ```
///
/// # What is written
/// Operators of opset 20. Sums of products are `MatMul`; convolutions, transposed ones, pooling, softmax, layer and batch
/// normalisation and activations are their operators where they are computed by the tensor methods of that meaning, and
/// so are the recurrent layers of `zyx-nn`, whose sequences may have a named length; everything else is written operation
/// by operation. Integers divided by zero, indices out of range and floats that no integer holds give what they give here.
/// Sorts are `TopK`, which leaves open where NaN stands; attention without a mask is `Softmax`, which gives NaN where every
/// score of a row is `-inf`. Recurrent layers of `bf16`, which the operators lack,
/// are computed in `f32`.
///
/// Not written are Fourier transforms, reinterpreted bits (and so random numbers that depend on an input), and
/// additions to places of an index on devices that sort for them: [`Export::trace`] names the operation. What depends
/// on no input is stored with its value, whatever computed it. A bool, integer or float of any dtype has a type in ONNX;
/// runtimes lack operators of some of them (of `bf16` and `f64` most often).
#[must_use = "nothing is exported before `trace`"]
pub struct Export {
    device: Device,
    inputs: Vec<Input>,
    weights: Vec<(String, Tensor)>,
    sizes: BTreeMap<String, (usize, usize)>,
    metadata: Vec<(String, String)>,
    name: String,
}

impl Export {
    /// Of a function whose inputs are on this device, as its weights.
    pub fn new(device: &Device) -> Export {
        Export {
            device: device.clone(),
            inputs: Vec::new(),
            weights: Vec::new(),
            sizes: BTreeMap::new(),
            metadata: Vec::new(),
            name: "zyx".to_owned(),
        }
    }

    /// The next input of the function.
    pub fn input(
        mut self,
        name: &str,
        dtype: DType,
        dims: impl IntoIterator<Item = Dim>,
    ) -> Export {
        self.inputs.push(Input { name: name.to_owned(), dtype, dims: dims.into_iter().collect() });
        self
    }

    /// Tensors by name, as `Module::to_tensors` gives them. Those that the function uses are initialisers of these names;
    /// other tensors get names that are made up.
    pub fn weights<N: Into<String>>(
        mut self,
        weights: impl IntoIterator<Item = (N, Tensor)>,
    ) -> Export {
        self.weights.extend(weights.into_iter().map(|(name, tensor)| (name.into(), tensor)));
        self
    }

    /// Parameters by name, as `Module::named_parameters` gives them: as [`Export::weights`].
    pub fn parameters(self, parameters: impl IntoIterator<Item = (String, Param)>) -> Export {
        self.weights(parameters.into_iter().map(|(name, parameter)| (name, parameter.tensor())))
    }

    /// Sizes of a named dimension to trace the function with, and for which the model is right: `least`, `least + step`,
    /// `least + 2 * step` and so on. Without them a function is traced with sizes of 2 and more, and refused if it does
    /// something else for some. A function that halves an axis needs an even step, one that looks at so many neighbours a
    /// least size.
    pub fn size(mut self, name: &str, least: usize, step: usize) -> Export {
        self.sizes.insert(name.to_owned(), (least, step.max(1)));
        self
    }

    /// What the model's graph is called.
    pub fn name(mut self, name: &str) -> Export {
        name.clone_into(&mut self.name);
        self
    }

    /// A property of the model, for whoever reads the file.
    pub fn metadata(mut self, key: &str, value: &str) -> Export {
        self.metadata.push((key.to_owned(), value.to_owned()));
        self
    }

    /// Traces the function, which gives its results with their names, and makes a model of it.
    ///
    /// It is called several times, with tensors that have no values, and has to do the same each time: modules are
    /// switched to `eval` before, and what it does must not depend on values, nor in kind on sizes of named dimensions.
    ///
    /// # Errors
    /// [`Error::Argument`] when it does not; when sizes are no sums of products of named dimensions; when ONNX has no
    /// operator of what it does; when names are there twice. What the function fails with.
    #[track_caller]
    pub fn trace<N: Into<String>>(
        self,
        f: impl Fn(&[Tensor]) -> Result<Vec<(N, Tensor)>>,
    ) -> Result<Exported> {
        let symbols = self.symbols()?;
        Tensor::realize_all(self.weights.iter().map(|(_, tensor)| tensor))?;
        let mut known: Vec<Tensor> =
            self.weights.iter().map(|(_, tensor)| tensor.clone()).collect();
        let mut outputs: Vec<String> = Vec::new();
        let mut trace = |sizes: &[usize], known: &[Tensor]| -> Result<Steps> {
            let extent = |dim: &Dim| match dim {
                Dim::Fixed(n) => *n,
                Dim::Named(name) => {
                    symbols.iter().position(|known| known == name).map_or(0, |i| sizes[i])
                }
            };
            let kind =
                |input: &Input| (input.dims.iter().map(extent).collect::<Shape>(), input.dtype);
            let inputs: Vec<(Shape, DType)> = self.inputs.iter().map(kind).collect();
            Steps::trace(&inputs, &self.device, known, &recurrent::COMPOSITES, |x| {
                let named: Vec<(String, Tensor)> =
                    f(x)?.into_iter().map(|(name, y)| (name.into(), y)).collect();
                outputs = named.iter().map(|(name, _)| name.clone()).collect();
                Ok(named.into_iter().map(|(_, y)| y).collect())
            })
        };
        let dims = symbols.iter().zip(LEAST);
        let dims = dims.map(|(name, least)| self.sizes.get(name).copied().unwrap_or((least, 1)));
        let mut grid = Grid::new(symbols.clone(), dims.collect());
        // Tensors that the function holds are then known in every trace.
        let first = trace(&grid.sizes[0], &known)?;
        let unnamed = first.steps.iter().filter(|step| step.op == StepOp::Value(None));
        known.extend(unnamed.map(|step| step.tensor.clone()));
        let mut traces: Vec<Steps> =
            grid.sizes.iter().map(|sizes| trace(sizes, &known)).collect::<Result<_>>()?;
        let may_be_small: Vec<bool> =
            symbols.iter().map(|name| !self.sizes.contains_key(name)).collect();
        for sizes in grid.further(&may_be_small) {
            // A function that refuses a size needs no model for it.
            if let Ok(further) = trace(&sizes, &known) {
                traces.push(further);
                grid.sizes.push(sizes);
            }
        }
        drop(first);
        let steps = sizes::join(&traces, &mut grid, self.weights.len()).map_err(refusal)?;
        self.check_names(&outputs)?;
        self.write(&symbols, &steps, &traces, &outputs)
    }

    /// The named dimensions in order of their first use.
    #[track_caller]
    fn symbols(&self) -> Result<Vec<String>> {
        let mut symbols: Vec<String> = Vec::new();
        for dim in self.inputs.iter().flat_map(|input| &input.dims) {
            if let Dim::Named(name) = dim
                && !symbols.contains(name)
            {
                symbols.push(name.clone());
            }
        }
        if symbols.len() > LEAST.len() {
            let reason =
                format!("{} named dimensions are more than {}", symbols.len(), LEAST.len());
            return Err(refusal(reason));
        }
        if let Some(unknown) = self.sizes.keys().find(|name| !symbols.contains(name)) {
            return Err(refusal(format!("no input has the dimension `{unknown}`")));
        }
        Ok(symbols)
    }

    #[track_caller]
    fn check_names(&self, outputs: &[String]) -> Result<()> {
        let inputs = self.inputs.iter().map(|input| &input.name);
        let weights = self.weights.iter().map(|(name, _)| name);
        let mut seen = HashSet::new();
        for name in inputs.chain(weights).chain(outputs) {
            if name.is_empty() || !seen.insert(name) {
                let reason = if name.is_empty() { "is empty" } else { "is there twice" };
                return Err(refusal(format!(
                    "the name `{name}` of an input, weight or result {reason}"
                )));
            }
        }
        Ok(())
    }

    #[track_caller]
    fn write(
        &self,
        symbols: &[String],
        steps: &[Symbolic],
        traces: &[Steps],
        outputs: &[String],
    ) -> Result<Exported> {
        let mut exporter = Exporter {
            steps,
            traces,
            writer: Writer::default(),
            names: vec![None; steps.len()],
            sorts: Vec::new(),
        };
        exporter.sorts = exporter.made_by_sorts();
        let writer = &mut exporter.writer;
        let names = self.inputs.iter().map(|input| &input.name);
        let names = names.chain(self.weights.iter().map(|(name, _)| name)).chain(outputs);
        writer.names = names.cloned().collect();
        for symbol in symbols {
            let place = |input: &Input| {
                let is_it = |dim: &Dim| matches!(dim, Dim::Named(name) if name == symbol);
                Some((input.name.clone(), input.dims.iter().position(is_it)?))
            };
            writer.symbols.extend(self.inputs.iter().find_map(place));
        }
        let results = exporter.write_all(&traces[0].outputs, &self.inputs, &self.weights)?;
        let mut written = Vec::new();
        for ((name, result), &id) in outputs.iter().zip(&results).zip(&traces[0].outputs) {
            exporter.writer.rename(result, name);
            let dims = steps[id].dims.as_ref().map(|dims| {
                let value = |size: &Size| match size.constant() {
                    Some(n) => dimension::Value::DimValue(n),
                    None => dimension::Value::DimParam(size.describe(symbols)),
                };
                dims.iter().map(value).collect()
            });
            written.push(port(name, steps[id].dtype, dims));
        }
        exporter.writer.prune(outputs);
        let Writer { nodes, initializers, .. } = exporter.writer;
        let graph = GraphProto {
            node: nodes,
            name: Some(self.name.clone()),
            initializer: initializers,
            input: self.inputs.iter().map(Input::port).collect(),
            output: written,
            ..GraphProto::default()
        };
        let opset = OperatorSetIdProto { domain: Some(String::new()), version: Some(OPSET) };
        let model = ModelProto {
            ir_version: Some(IR_VERSION),
            opset_import: vec![opset],
            producer_name: Some("zyx".to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            graph: Some(graph),
            metadata_props: self.metadata.iter().map(|(key, value)| entry(key, value)).collect(),
            ..ModelProto::default()
        };
        Ok(Exported { model })
    }
}

impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inputs: Vec<&str> = self.inputs.iter().map(|input| input.name.as_str()).collect();
        f.debug_struct("Export").field("inputs", &inputs).finish_non_exhaustive()
    }
}

impl Input {
    fn port(&self) -> ValueInfoProto {
        let value = |dim: &Dim| match dim {
            Dim::Fixed(n) => dimension::Value::DimValue(*n as i64),
            Dim::Named(name) => dimension::Value::DimParam(name.clone()),
        };
        port(&self.name, self.dtype, Some(self.dims.iter().map(value).collect()))
    }
}

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value.to_owned()) }
}

/// Why something cannot be exported.
#[track_caller]
fn refusal(reason: String) -> Error {
    Error::Argument { op: "export", reason, location: Location::caller() }
}

/// Steps on their way to nodes.
struct Exporter<'a> {
    steps: &'a [Symbolic],
    traces: &'a [Steps],
    writer: Writer,
    /// By step, once it is written.
    names: Vec<Option<Name>>,
    /// By step, whether it may be a part of a sort.
    sorts: Vec<bool>,
}

impl Exporter<'_> {
    /// Writes what results are made of, and gives their names.
    fn write_all(
        &mut self,
        results: &[usize],
        inputs: &[Input],
        weights: &[(String, Tensor)],
    ) -> Result<Vec<Name>> {
        let mut choices: Vec<Option<Choice>> = self.steps.iter().map(|_| None).collect();
        let mut needed = vec![false; self.steps.len()];
        results.iter().for_each(|&id| needed[id] = true);
        for id in (0..self.steps.len()).rev() {
            if !needed[id] {
                continue;
            }
            let choice = self.choose(id);
            choice.reads().into_iter().for_each(|x| needed[x] = true);
            choices[id] = Some(choice);
        }
        for id in 0..self.steps.len() {
            if !needed[id] {
                continue;
            }
            match self.steps[id].op {
                StepOp::Input(i) => self.names[id] = Some(inputs[i].name.clone()),
                StepOp::Value(known) => {
                    let name = known.and_then(|i| weights.get(i)).map(|(name, _)| name.clone());
                    let tensor = &self.steps[id].tensor;
                    let name = name.unwrap_or_else(|| self.writer.fresh());
                    let bytes = tensor.to_bytes()?;
                    self.writer.initializer(name.clone(), tensor.dtype(), tensor.shape(), bytes);
                    self.names[id] = Some(name);
                }
                // Written where it is read, as a number if it may be one.
                StepOp::Const(_) => {}
                _ => {
                    let choice = choices[id].take().expect("invariant: what is needed was chosen");
                    self.names[id] = Some(self.write(id, &choice)?);
                }
            }
        }
        let name = |&id: &usize| match &self.names[id] {
            Some(name) => Ok(name.clone()),
            None => self.write(id, &Choice::Number),
        };
        results.iter().map(name).collect()
    }
}

/// A model that can be saved.
pub struct Exported {
    model: ModelProto,
}

impl Exported {
    /// The bytes of its file.
    ///
    /// A file of protobuf ends at 2 GiB: a larger model must be saved by [`Exported::save`].
    pub fn to_bytes(&self) -> Vec<u8> {
        self.model.encode_to_vec()
    }

    /// How many nodes of each kind it has.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for node in self.model.graph.iter().flat_map(|graph| &graph.node) {
            *counts.entry(node.op_type().to_owned()).or_insert(0) += 1;
        }
        counts
    }

    /// Writes it to a file, or, if it has more than 2 GB, its weights to a file beside it (`model.onnx.data`).
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        match self.model.encoded_len() > LARGE {
            true => self.save_apart(path),
            false => zyx_core::files::replace(path, &self.to_bytes()),
        }
    }

    /// Writes it to a file, and weights of more than 1 kB to a file beside it (`model.onnx.data`), which must stay in its
    /// folder.
    ///
    /// # Errors
    /// When a file cannot be written, or the path has no name.
    pub fn save_apart(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let Some(name) = path.file_name() else {
            return Err(refusal(format!("{} is no path of a file", path.display())));
        };
        let location = format!("{}.data", name.to_string_lossy());
        let mut model = self.model.clone();
        let mut data: Vec<u8> = Vec::new();
        for tensor in model.graph.iter_mut().flat_map(|graph| &mut graph.initializer) {
            let Some(bytes) = tensor.raw_data.take_if(|bytes| bytes.len() > SMALL) else {
                continue;
            };
            // Pages, so that a runtime can map the file.
            data.resize(data.len().next_multiple_of(4096), 0);
            tensor.data_location = Some(DataLocation::External as i32);
            tensor.external_data = vec![
                entry("location", &location),
                entry("offset", &data.len().to_string()),
                entry("length", &bytes.len().to_string()),
            ];
            data.extend_from_slice(&bytes);
        }
        zyx_core::files::replace(path.with_file_name(&location), &data)?;
        zyx_core::files::replace(path, &model.encode_to_vec())
    }
}

impl fmt::Debug for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exported").field("operators", &self.operators()).finish_non_exhaustive()
    }
}
