//! A file as something that runs.

use crate::budget::Budget;
use crate::coded::CodedType;
use crate::file::{Contents, FileBuf};
use crate::graph::{Graph, Reader};
use crate::proto::{
    ModelProto, OptionalProto, SequenceProto, TensorProto, TypeProto, ValueInfoProto,
};
use crate::proto::{tensor_proto::DataType, tensor_shape_proto::dimension, type_proto};
use crate::read::{Source, damaged, dtype};
use crate::replay::Replay;
use crate::run::Run;
use crate::scan;
use crate::value::Value;
use prost::bytes::{Buf, Bytes};
use prost::{DecodeError, Message};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::sync::Arc;
use zyx_core::{DType, Device, Error, Result, Tensor};

/// An ONNX model on a device.
///
/// [`run`](Model::run) is the way to results: what a model computes for inputs of one shape is planned once and
/// replayed. [`graph`](Model::graph) is the way to everything else: it gives pending values, which more can be made of
/// and which can be differentiated.
pub struct Model {
    graph: Arc<Graph>,
    device: Device,
    /// Bytes of host memory that a run may take.
    limit: usize,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    parameters: BTreeMap<Arc<str>, Tensor>,
    replay: Replay,
}

/// An input or output as a model declares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// What it is called.
    pub name: String,
    /// The dtype, if it is a tensor of numbers and the model says so.
    pub dtype: Option<DType>,
    /// Its extents, if it is a tensor and the model says so: numbers, or names of what is known when it runs.
    pub shape: Option<Vec<String>>,
    kind: Kind,
}

/// The kind of value that a model declares.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Kind {
    /// A tensor of numbers.
    Tensor(DType),
    /// A tensor of elements that no dtype has.
    Coded(CodedType),
    /// A tensor of strings.
    Strings,
    /// Values of one kind in an order.
    Sequence(Box<Kind>),
    /// A value or none.
    Optional(Box<Kind>),
    /// A map or a sparse tensor, which are not supported.
    Other,
    /// The model does not say it.
    Unknown,
}

impl Kind {
    fn new(proto: &TypeProto) -> Kind {
        let inner = |proto: &Option<Box<TypeProto>>| {
            Box::new(proto.as_ref().map_or(Kind::Unknown, |proto| Kind::new(proto)))
        };
        match &proto.value {
            Some(type_proto::Value::TensorType(tensor)) => {
                let element = tensor.elem_type();
                if element == DataType::String as i32 {
                    return Kind::Strings;
                }
                let coded = CodedType::of(element).map(Kind::Coded);
                let number = || dtype(element).map_or(Kind::Unknown, Kind::Tensor);
                coded.unwrap_or_else(number)
            }
            Some(type_proto::Value::SequenceType(proto)) => Kind::Sequence(inner(&proto.elem_type)),
            Some(type_proto::Value::OptionalType(proto)) => Kind::Optional(inner(&proto.elem_type)),
            Some(_) => Kind::Other,
            None => Kind::Unknown,
        }
    }

    /// Whether a value is of this kind; one that is no optional is taken for an optional with it.
    pub fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (Kind::Unknown | Kind::Other, _) | (Kind::Optional(_), Value::Optional(None)) => true,
            (Kind::Tensor(dtype), Value::Tensor(_) | Value::Host(_)) => {
                value.dtype() == Some(*dtype)
            }
            (Kind::Coded(kind), Value::Coded(coded)) => coded.kind == *kind,
            (Kind::Strings, Value::Strings(..)) => true,
            (Kind::Sequence(kind), Value::Sequence(values)) => {
                values.iter().all(|value| kind.accepts(value))
            }
            (Kind::Optional(kind), Value::Optional(Some(value))) => kind.accepts(value),
            (Kind::Optional(kind), value) => kind.accepts(value),
            _ => false,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Tensor(dtype) => write!(f, "{dtype}"),
            Kind::Coded(kind) => write!(f, "{kind:?}"),
            Kind::Strings => write!(f, "strings"),
            Kind::Sequence(kind) => write!(f, "sequence of {kind}"),
            Kind::Optional(kind) => write!(f, "optional {kind}"),
            Kind::Other => write!(f, "map or sparse tensor"),
            Kind::Unknown => write!(f, "unknown"),
        }
    }
}

impl Port {
    fn new(proto: &ValueInfoProto) -> Port {
        let kind = proto.r#type.as_ref().map_or(Kind::Unknown, Kind::new);
        let declared = proto.r#type.as_ref().and_then(|kind| kind.value.as_ref());
        let mut shape = None;
        if let Some(type_proto::Value::TensorType(tensor)) = declared {
            let extent = |value: &Option<dimension::Value>| match value {
                Some(dimension::Value::DimValue(n)) => n.to_string(),
                Some(dimension::Value::DimParam(name)) => name.clone(),
                None => "?".to_owned(),
            };
            shape = tensor.shape.as_ref().map(|s| s.dim.iter().map(|d| extent(&d.value)).collect());
        }
        let dtype = match kind {
            Kind::Tensor(dtype) => Some(dtype),
            _ => None,
        };
        Port { name: proto.name().to_owned(), dtype, shape, kind }
    }

    /// The kind of value.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// A value of a file in protobuf's format, as those that published models are tested with (`input_0.pb`).
    ///
    /// # Errors
    /// [`Error::Format`] when the bytes are no value of this kind.
    pub fn read(&self, bytes: impl Into<Vec<u8>>, device: &Device) -> Result<Value> {
        self.decode(Bytes::from(bytes.into()), device)
    }

    fn decode(&self, mut bytes: Bytes, device: &Device) -> Result<Value> {
        let wrong = |error: DecodeError| damaged(&self.name, error.to_string());
        let tensor = |proto: &TensorProto| Source::default().value(proto, device);
        let sequence = |proto: &SequenceProto| -> Result<Value> {
            Ok(Value::Sequence(proto.tensor_values.iter().map(tensor).collect::<Result<_>>()?))
        };
        match self.kind {
            Kind::Tensor(_) | Kind::Coded(_) | Kind::Strings | Kind::Unknown => {
                tensor(&decode(&mut bytes).map_err(wrong)?)
            }
            Kind::Sequence(_) => sequence(&decode(&mut bytes).map_err(wrong)?),
            Kind::Optional(_) => {
                let proto: OptionalProto = decode(&mut bytes).map_err(wrong)?;
                let inner = match (&proto.tensor_value, &proto.sequence_value) {
                    (Some(proto), _) => Some(tensor(proto)?),
                    (None, Some(proto)) => Some(sequence(proto)?),
                    (None, None) => None,
                };
                Ok(Value::Optional(inner.map(Box::new)))
            }
            Kind::Other => Err(damaged(&self.name, "maps are not supported")),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if self.kind != Kind::Unknown {
            write!(f, ": {}", self.kind)?;
        }
        if let Some(shape) = &self.shape {
            write!(f, " [{}]", shape.join(", "))?;
        }
        Ok(())
    }
}

/// Decodes a message: through one type of reader, because the code of decoding is large.
fn decode<M: Message + Default>(buf: &mut dyn Buf) -> Result<M, DecodeError> {
    M::decode(buf)
}

impl Model {
    /// Reads a model's file; tensors in files of their own are looked for in its folder.
    ///
    /// # Errors
    /// [`Error::Io`] when a file cannot be read; [`Error::Format`] when it is damaged, or when it needs operators that
    /// are not there: all of them are named.
    pub fn load(path: impl AsRef<Path>, device: &Device) -> Result<Model> {
        Model::open(path.as_ref(), Budget::default(), device)
    }

    /// As [`Model::load`], with a limit of host memory.
    pub(crate) fn open(path: &Path, budget: Budget, device: &Device) -> Result<Model> {
        let what = path.display().to_string();
        let io = |source| Error::Io { what: what.clone(), source };
        let mut file = File::open(path).map_err(io)?;
        let metadata = file.metadata().map_err(io)?;
        let (proto, contents) = match (metadata.is_file(), metadata.len().try_into()) {
            (true, Ok(length)) => {
                scan::ask(&mut FileBuf::new(file.try_clone().map_err(io)?, length), &budget)?;
                file.rewind().map_err(io)?;
                let mut buf = FileBuf::new(file, length);
                let proto = decode(&mut buf);
                (proto, buf.finish().map_err(io)?)
            }
            _ => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).map_err(io)?;
                let mut bytes = Bytes::from(bytes);
                scan::ask(&mut bytes.clone(), &budget)?;
                (decode(&mut bytes), Contents::default())
            }
        };
        let source =
            Source { file: Some(path), path: &what, contents, budget, ..Source::default() };
        Model::new(proto, source, device)
    }

    /// Reads a model from the bytes of its file.
    ///
    /// # Errors
    /// As [`Model::load`]; tensors in files of their own are an error.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>, device: &Device) -> Result<Model> {
        Model::within(Budget::default(), bytes.into(), device)
    }

    /// As [`Model::from_bytes`], with a limit of host memory.
    pub(crate) fn within(budget: Budget, bytes: Vec<u8>, device: &Device) -> Result<Model> {
        let mut bytes = Bytes::from(bytes);
        scan::ask(&mut bytes.clone(), &budget)?;
        let source = Source { path: "model", budget, ..Source::default() };
        Model::new(decode(&mut bytes), source, device)
    }

    fn new(
        proto: Result<ModelProto, DecodeError>,
        source: Source<'_>,
        device: &Device,
    ) -> Result<Model> {
        let what = source.path;
        let proto =
            proto.map_err(|error| damaged(what, format!("it is no ONNX model: {error}")))?;
        let graph = proto.graph.as_ref().ok_or_else(|| damaged(what, "it has no graph"))?;
        let mut reader = Reader {
            device,
            source,
            functions: &proto.functions,
            missing: BTreeMap::new(),
            depth: 0,
            read: HashMap::new(),
            external: HashMap::new(),
        };
        let read = reader.graph(graph, &proto.opset_import)?;
        if let Some(missing) = reader.missing() {
            return Err(damaged(what, format!("it needs operators that are not there: {missing}")));
        }
        let needed = |port: &&ValueInfoProto| !read.constants.contains_key(port.name());
        let inputs: Vec<Port> = graph.input.iter().filter(needed).map(Port::new).collect();
        let outputs = graph.output.iter().map(Port::new).collect();
        let mut parameters = BTreeMap::new();
        for (name, value) in &read.constants {
            match value {
                Value::Tensor(tensor) => drop(parameters.insert(name.clone(), tensor.clone())),
                Value::Host(host) if host.dtype().is_float() && !host.shape().is_empty() => {
                    parameters.insert(name.clone(), host.tensor(device)?);
                }
                _ => {}
            }
        }
        Ok(Model {
            graph: Arc::new(read),
            device: device.clone(),
            limit: reader.source.budget.limit(),
            inputs,
            outputs,
            parameters,
            replay: Replay::default(),
        })
    }

    /// What it must be given, in its order; inputs that have a value of their own are not among them.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What it gives, in its order.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Where it runs.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// How many nodes of each kind it has, within functions and graphs, too.
    pub fn operators(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.graph.count(&mut counts, &mut HashMap::new());
        counts
    }

    /// Its tensors by name: what was trained. [`graph`](Model::graph) and [`run`](Model::run) take others of the same
    /// shape and dtype instead of them, as if they were inputs. Single numbers, and few integers, are none of them.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.parameters.iter().map(|(name, tensor)| (&**name, tensor))
    }

    /// The outputs, in order, for tensors by name: computed, and without history.
    ///
    /// The nodes between two nodes that read values are traced once for each shape of their inputs, and replayed: all
    /// of a model whose graph depends on shapes alone, and each branch of an `If`.
    ///
    /// # Errors
    /// As [`Model::graph`]; an output that is no tensor; what a device refuses.
    pub fn run<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<Vec<Tensor>> {
        let inputs = inputs.into_iter().map(|(name, tensor)| (name, Value::Tensor(tensor)));
        let tensor = |value| match value {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Host(host) => host.tensor(&self.device),
            other => Err(damaged("output", format!("it is {}, no tensor", other.kind()))),
        };
        let outputs = self.evaluate(inputs, Some(&self.replay))?.into_iter().map(tensor);
        let outputs: Vec<Tensor> = outputs.collect::<Result<_>>()?;
        Tensor::realize_all(&outputs)?;
        Ok(outputs.iter().map(Tensor::detach).collect())
    }

    /// The outputs, in order, for inputs by name, which need be no tensors. Tensors among them are pending: they are
    /// computed when they are asked for, together with what is made of them, and have gradients.
    ///
    /// # Errors
    /// An input that is missing, unknown, or of another dtype than the model declares; what an operator refuses,
    /// with its node.
    pub fn graph<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<Vec<Value>> {
        self.evaluate(inputs, None)
    }

    fn evaluate<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Value)>,
        replay: Option<&Replay>,
    ) -> Result<Vec<Value>> {
        let given = self.check(inputs)?.into_iter().map(|(name, value)| (name.into(), value));
        Run::new(&self.device, self.limit, replay).graph(&self.graph, given, None, None)
    }

    fn check<'a>(
        &self,
        inputs: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Result<BTreeMap<&'a str, Value>> {
        let mut given: BTreeMap<&str, Value> = BTreeMap::new();
        for (name, value) in inputs {
            match self.parameters.get(name) {
                Some(own)
                    if value.dtype() != Some(own.dtype())
                        || value.shape().as_deref() != Some(own.shape().dims()) =>
                {
                    let (own, given) = (Value::from(own).kind(), value.kind());
                    let reason = format!("parameter `{name}` is {own}, and is given as {given}");
                    return Err(damaged("model", reason));
                }
                Some(_) => {}
                _ if self.graph.inputs.iter().any(|known| &**known == name) => {}
                _ => {
                    let names: Vec<_> = self.inputs.iter().map(Port::to_string).collect();
                    let names = names.join(", ");
                    let reason = format!("it has no input `{name}`; there are: {names}");
                    return Err(damaged("model", reason));
                }
            }
            given.insert(name, value);
        }
        for port in &self.inputs {
            let Some(value) = given.get(port.name.as_str()) else {
                return Err(damaged("model", format!("input `{port}` is missing")));
            };
            if !port.kind.accepts(value) {
                return Err(damaged(
                    "model",
                    format!("input `{port}` is given as {}", value.kind()),
                ));
            }
        }
        Ok(given)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = |ports: &[Port]| ports.iter().map(Port::to_string).collect::<Vec<_>>();
        f.debug_struct("Model")
            .field("inputs", &ports(&self.inputs))
            .field("outputs", &ports(&self.outputs))
            .finish_non_exhaustive()
    }
}
