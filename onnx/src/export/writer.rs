//! Nodes and initialisers of the graph that is written, each once.

use super::sizes::{Number, Size};
use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_proto::DataType;
use crate::proto::{AttributeProto, GraphProto, NodeProto, TensorProto};
use std::array::from_fn;
use std::collections::{HashMap, HashSet};
use zyx_core::{DType, Result, Scalar, Shape, Tensor};

/// The element type of a dtype.
pub(super) fn element(dtype: DType) -> i32 {
    let kind = match dtype {
        DType::Bool => DataType::Bool,
        DType::U8 => DataType::Uint8,
        DType::U16 => DataType::Uint16,
        DType::U32 => DataType::Uint32,
        DType::U64 => DataType::Uint64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::BF16 => DataType::Bfloat16,
        DType::F32 => DataType::Float,
        DType::F64 => DataType::Double,
    };
    kind as i32
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(kind as i32),
        ..AttributeProto::default()
    }
}

pub(super) fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i: Some(i), ..attribute(name, AttributeType::Int) }
}

pub(super) fn ints(name: &str, ints: Vec<i64>) -> AttributeProto {
    AttributeProto { ints, ..attribute(name, AttributeType::Ints) }
}

pub(super) fn float(name: &str, f: f64) -> AttributeProto {
    AttributeProto { f: Some(f as f32), ..attribute(name, AttributeType::Float) }
}

pub(super) fn string(name: &str, s: &str) -> AttributeProto {
    AttributeProto {
        s: Some(s.as_bytes().to_vec().into()),
        ..attribute(name, AttributeType::String)
    }
}

pub(super) fn strings(name: &str, list: &[&str]) -> AttributeProto {
    let strings = list.iter().map(|s| s.as_bytes().to_vec().into()).collect();
    AttributeProto { strings, ..attribute(name, AttributeType::Strings) }
}

pub(super) fn graph(name: &str, g: GraphProto) -> AttributeProto {
    AttributeProto { g: Some(g), ..attribute(name, AttributeType::Graph) }
}

/// A value of the graph: its name.
pub(super) type Name = String;

#[derive(Default)]
pub(super) struct Writer {
    pub(super) nodes: Vec<NodeProto>,
    pub(super) initializers: Vec<TensorProto>,
    /// Names that are taken.
    pub(super) names: HashSet<String>,
    /// Results by what computes them.
    known: HashMap<String, Name>,
    /// What a reshaped value was before, with its extents.
    before: HashMap<Name, (Name, Vec<Size>)>,
    /// The input and axis that tell each named dimension.
    pub(super) symbols: Vec<(Name, usize)>,
    next: usize,
}

impl Writer {
    pub(super) fn fresh(&mut self) -> Name {
        loop {
            let name = format!("t{}", self.next);
            self.next += 1;
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }

    /// The result of a node; that of an equal one if there is one.
    pub(super) fn node(
        &mut self,
        kind: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> Name {
        let [name] = self.several(kind, inputs, attributes);
        name
    }

    /// An initialiser of this name.
    pub(super) fn initializer(&mut self, name: Name, dtype: DType, shape: &Shape, bytes: Vec<u8>) {
        self.names.insert(name.clone());
        self.initializers.push(TensorProto {
            dims: shape.iter().map(|&n| n as i64).collect(),
            data_type: Some(element(dtype)),
            name: Some(name),
            raw_data: Some(bytes.into()),
            ..TensorProto::default()
        });
    }

    fn constant(&mut self, dtype: DType, shape: &Shape, bytes: Vec<u8>) -> Name {
        let key = format!("constant {dtype} {shape} {bytes:?}");
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let name = self.fresh();
        self.initializer(name.clone(), dtype, shape, bytes);
        self.known.insert(key, name.clone());
        name
    }

    /// A tensor with its value.
    pub(super) fn tensor(&mut self, tensor: &Tensor) -> Result<Name> {
        let name = self.fresh();
        self.initializer(name.clone(), tensor.dtype(), tensor.shape(), tensor.to_bytes()?);
        Ok(name)
    }

    /// A number of rank 0.
    pub(super) fn scalar(&mut self, x: Scalar) -> Name {
        let bytes = x.bits().to_le_bytes()[..x.dtype().size()].to_vec();
        self.constant(x.dtype(), &Shape::from([]), bytes)
    }

    /// A number of rank 0, by its value.
    pub(super) fn number(&mut self, dtype: DType, x: f64) -> Name {
        self.scalar(Scalar::from_f64(dtype, x))
    }

    /// Integers of rank 1.
    pub(super) fn list(&mut self, list: &[i64]) -> Name {
        let bytes = list.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.constant(DType::I64, &Shape::from([list.len()]), bytes)
    }

    pub(super) fn cast(&mut self, x: &str, dtype: DType) -> Name {
        self.node("Cast", &[x], vec![int("to", element(dtype).into())])
    }

    /// Integers of shape `[1]`: a size.
    pub(super) fn size(&mut self, size: &Size) -> Name {
        if let Some(n) = size.constant() {
            return self.list(&[n]);
        }
        let mut sum: Option<Name> = None;
        for (exponents, &n) in &size.terms {
            let mut product = (n != 1 || exponents.is_empty()).then(|| self.list(&[n as i64]));
            for (symbol, &exponent) in exponents.iter().enumerate() {
                for _ in 0..exponent {
                    let (input, axis) = self.symbols[symbol].clone();
                    let ends = vec![int("start", axis as i64), int("end", axis as i64 + 1)];
                    let factor = self.node("Shape", &[&input], ends);
                    product = Some(match product {
                        Some(product) => self.node("Mul", &[&product, &factor], Vec::new()),
                        None => factor,
                    });
                }
            }
            let term = product.unwrap_or_else(|| self.list(&[1]));
            sum = Some(match sum {
                Some(sum) => self.node("Add", &[&sum, &term], Vec::new()),
                None => term,
            });
        }
        let sum = sum.unwrap_or_else(|| self.list(&[0]));
        match size.divisor {
            1 => sum,
            divisor => {
                let divisor = self.list(&[divisor as i64]);
                self.node("Div", &[&sum, &divisor], Vec::new())
            }
        }
    }

    /// Integers of rank 1: sizes.
    pub(super) fn sizes(&mut self, sizes: &[Size]) -> Name {
        let constants: Option<Vec<i64>> = sizes.iter().map(Size::constant).collect();
        if let Some(constants) = constants {
            return self.list(&constants);
        }
        let parts: Vec<Name> = sizes.iter().map(|size| self.size(size)).collect();
        match &parts[..] {
            [one] => one.clone(),
            parts => {
                let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
                self.node("Concat", &parts, vec![int("axis", 0)])
            }
        }
    }

    /// A number of rank 0 that may follow from sizes.
    pub(super) fn constant_of(&mut self, number: &Number, dtype: DType) -> Name {
        let (size, inverse) = match number {
            Number::Fixed(x) => return self.scalar(*x),
            Number::Size(size) => (size, false),
            Number::Reciprocal(size) => (size, true),
        };
        let name = self.size(size);
        let axes = self.list(&[0]);
        let name = self.node("Squeeze", &[&name, &axes], Vec::new());
        match inverse {
            false => self.cast(&name, dtype),
            true => {
                // Rounded once, as the number was.
                let wide = self.cast(&name, DType::F64);
                let inverse = self.node("Reciprocal", &[&wide], Vec::new());
                self.cast(&inverse, dtype)
            }
        }
    }

    /// The same elements with other extents.
    pub(super) fn reshape(&mut self, x: &str, from: &[Size], to: &[Size]) -> Name {
        let (x, from) = match self.before.get(x) {
            Some((x, from)) => (x.clone(), from.clone()),
            None => (x.to_owned(), from.to_vec()),
        };
        if from == to {
            return x;
        }
        let fixed: Vec<Option<i64>> = to.iter().map(Size::constant).collect();
        let is_fixed = |i: usize| fixed[i].is_some();
        let unknown = (0..to.len()).filter(|&i| !is_fixed(i)).count();
        let kept = |i: usize| !is_fixed(i) && from.get(i) == Some(&to[i]);
        let n_kept = (0..to.len()).filter(|&i| kept(i)).count();
        // 0 keeps an extent and -1 is what is left, unless there may be no elements.
        let name = if fixed.contains(&Some(0)) {
            let shape = self.sizes(to);
            self.node("Reshape", &[&x, &shape], vec![int("allowzero", 1)])
        } else if unknown <= 1 || unknown - n_kept <= 1 {
            let all_kept = unknown > 1;
            let entry = |i: usize| match fixed[i] {
                Some(n) => n,
                None if all_kept && kept(i) => 0,
                None => -1,
            };
            let shape: Vec<i64> = (0..to.len()).map(entry).collect();
            let shape = self.list(&shape);
            self.node("Reshape", &[&x, &shape], Vec::new())
        } else {
            let shape = self.sizes(to);
            self.node("Reshape", &[&x, &shape], vec![int("allowzero", 1)])
        };
        self.before.insert(name.clone(), (x, from));
        name
    }

    pub(super) fn transpose(&mut self, x: &str, axes: &[usize]) -> Name {
        if axes.iter().enumerate().all(|(i, &axis)| i == axis) {
            return x.to_owned();
        }
        let axes = axes.iter().map(|&axis| axis as i64).collect();
        self.node("Transpose", &[x], vec![ints("perm", axes)])
    }

    /// The nodes and initialisers that these values need.
    pub(super) fn prune(&mut self, outputs: &[Name]) {
        let mut needed: HashSet<String> = outputs.iter().cloned().collect();
        let mut kept = Vec::new();
        while let Some(node) = self.nodes.pop() {
            if node.output.iter().any(|output| needed.contains(output)) {
                needed.extend(node.input.iter().cloned());
                let inner = node.attribute.iter().filter_map(|attribute| attribute.g.as_ref());
                let inner = inner.flat_map(|graph| &graph.node).flat_map(|node| &node.input);
                needed.extend(inner.cloned());
                kept.push(node);
            }
        }
        kept.reverse();
        self.nodes = kept;
        self.initializers.retain(|tensor| needed.contains(tensor.name()));
    }
}

/// Graphs within nodes.
impl Writer {
    /// A writer of an inner graph, whose names are no names here.
    pub(super) fn inner(&mut self) -> Writer {
        Writer { names: std::mem::take(&mut self.names), next: self.next, ..Writer::default() }
    }

    /// The nodes of an inner graph.
    pub(super) fn leave(&mut self, inner: Writer) -> GraphProto {
        (self.names, self.next) = (inner.names, inner.next);
        GraphProto { node: inner.nodes, initializer: inner.initializers, ..GraphProto::default() }
    }

    /// The results of a node of several; those of an equal one if there is one.
    pub(super) fn several<const N: usize>(
        &mut self,
        kind: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> [Name; N] {
        let keys: [String; N] = from_fn(|i| format!("{kind} {inputs:?} {attributes:?} {i}"));
        if keys.iter().all(|key| self.known.contains_key(key)) {
            return keys.map(|key| self.known[&key].clone());
        }
        let names: [Name; N] = from_fn(|_| self.fresh());
        self.push(kind, inputs, names.to_vec(), attributes);
        self.known.extend(keys.into_iter().zip(names.clone()));
        names
    }

    fn push(
        &mut self,
        kind: &str,
        inputs: &[&str],
        output: Vec<Name>,
        attribute: Vec<AttributeProto>,
    ) {
        self.nodes.push(NodeProto {
            input: inputs.iter().map(|&input| input.to_owned()).collect(),
            output,
            name: Some(format!("{kind}_{}", self.nodes.len())),
            op_type: Some(kind.to_owned()),
            attribute,
            ..NodeProto::default()
        });
    }
}

impl Writer {
    /// Gives a value another name: that of a result.
    pub(super) fn rename(&mut self, value: &str, name: &str) {
        self.push("Identity", &[value], vec![name.to_owned()], Vec::new());
    }
}
