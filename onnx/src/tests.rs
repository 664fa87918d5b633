//! Files that are damaged or mean ill, and what a model says of itself.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_proto::{DataLocation, DataType};
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, ValueInfoProto,
};
use prost::Message;
use std::path::Path;
use zyx_core::{Device, Runtime, Tensor};

mod classical;
pub(crate) mod hostile;
mod limits;
mod operators;
mod quantised;

fn device() -> Device {
    Runtime::default().device("reference").unwrap()
}

fn node(kind: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    NodeProto {
        op_type: Some(kind.into()),
        input: inputs.iter().map(|&name| name.into()).collect(),
        output: outputs.iter().map(|&name| name.into()).collect(),
        ..Default::default()
    }
}

fn port(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), ..Default::default() }
}

fn graph(nodes: Vec<NodeProto>) -> GraphProto {
    GraphProto {
        node: nodes,
        input: vec![port("x")],
        output: vec![port("y")],
        ..Default::default()
    }
}

fn model(graph: GraphProto) -> ModelProto {
    let opset = OperatorSetIdProto { domain: Some("".into()), version: Some(21) };
    ModelProto { graph: Some(graph), opset_import: vec![opset], ..Default::default() }
}

/// What is said of a model when it is loaded, or run with four numbers.
fn refusal(model: &ModelProto) -> String {
    let device = device();
    let loaded = Model::from_bytes(model.encode_to_vec(), &device);
    let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device).unwrap();
    loaded.and_then(|model| model.run([("x", x)])).unwrap_err().to_string()
}

fn with_tensor(tensor: TensorProto) -> ModelProto {
    let mut graph = graph(vec![node("Add", &["x", "w"], &["y"])]);
    graph.initializer.push(TensorProto { name: Some("w".into()), ..tensor });
    model(graph)
}

#[test]
fn bytes_that_are_no_model() {
    let device = device();
    for bytes in [&b""[..], b"\xff\xff\xff\xff", b"not a model at all"] {
        let error = Model::from_bytes(bytes, &device).unwrap_err().to_string();
        assert!(
            error.contains("it is no ONNX model") || error.contains("it has no graph"),
            "{error}"
        );
    }
    let whole = model(graph(vec![node("Relu", &["x"], &["y"])])).encode_to_vec();
    for n in 0..whole.len() {
        // A part of a file is refused or is a smaller model; nothing else happens.
        let _ = Model::from_bytes(&whole[..n], &device);
    }
}

#[test]
fn everything_that_is_missing_is_named() {
    let nodes = vec![
        node("Relu", &["x"], &["a"]),
        node("Nope", &["a"], &["b"]),
        node("Neither", &["b"], &["y"]),
    ];
    let error = refusal(&model(graph(nodes)));
    assert!(
        error.contains("Neither of opset 21 (node `y`), Nope of opset 21 (node `b`)"),
        "{error}"
    );
}

#[test]
fn cycles_and_names_that_nothing_computes() {
    let cycle = vec![
        node("Add", &["x", "b"], &["a"]),
        node("Relu", &["a"], &["b"]),
        node("Relu", &["b"], &["y"]),
    ];
    let error = refusal(&model(graph(cycle)));
    assert!(
        error.contains("nothing computes `a` before") && error.contains("node `b` (Relu)"),
        "{error}"
    );
    let error = refusal(&model(graph(vec![node("Relu", &["x"], &["z"])])));
    assert!(error.contains("nothing computes its output `y`"), "{error}");
}

#[test]
fn extents_and_bytes_that_do_not_fit() {
    for dims in [vec![1 << 40, 1 << 40], vec![-1], vec![3], vec![1; 40], vec![i64::MAX]] {
        let tensor = TensorProto {
            dims: dims.clone(),
            data_type: Some(1),
            raw_data: Some(vec![0; 16].into()),
            ..Default::default()
        };
        let error = refusal(&with_tensor(tensor));
        assert!(error.contains("tensor `w`"), "{dims:?}: {error}");
    }
    let tensor = TensorProto { dims: vec![4], data_type: Some(99), ..Default::default() };
    assert!(refusal(&with_tensor(tensor)).contains("not supported"));
}

#[test]
fn external_data_stays_in_the_folder() {
    let device = device();
    let folder = std::env::temp_dir().join(format!("zyx-onnx-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("model")).unwrap();
    std::fs::write(folder.join("secret"), [0u8; 16]).unwrap();
    let numbers: Vec<u8> = [1f32, 1.0, 1.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    std::fs::write(folder.join("model/weights"), [&[0u8; 8][..], &numbers].concat()).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.join("secret"), folder.join("model/link")).unwrap();
    let entry = |key: &str, value: &str| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value.into()),
    };
    let external = |location: &str, offset: &str, length: &str| {
        with_tensor(TensorProto {
            dims: vec![4],
            data_type: Some(1),
            data_location: Some(DataLocation::External as i32),
            external_data: vec![
                entry("location", location),
                entry("offset", offset),
                entry("length", length),
            ],
            ..Default::default()
        })
    };
    let path = folder.join("model/model.onnx");
    let load = |model: ModelProto| {
        std::fs::write(&path, model.encode_to_vec()).unwrap();
        Model::load(&path, &device)
    };
    let x = Tensor::new([1f32, 2.0, 3.0, 4.0], &device).unwrap();
    let good = load(external("weights", "8", "16")).unwrap();
    assert_eq!(good.run([("x", x)]).unwrap()[0].to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 6.0]);
    let absolute = folder.join("secret").display().to_string();
    let mut outside = vec!["../secret", "model/../../secret", "", &absolute];
    if cfg!(unix) {
        outside.push("link");
    }
    for location in outside {
        let error = load(external(location, "0", "16")).unwrap_err().to_string();
        assert!(error.contains("outside of the model's folder"), "{location}: {error}");
    }
    for (offset, length) in
        [("9", "16"), ("100", "16"), ("8", "99999999999999"), ("x", "16"), ("-1", "16")]
    {
        let error = load(external("weights", offset, length)).unwrap_err().to_string();
        assert!(error.contains("tensor `w`"), "{offset} {length}: {error}");
    }
    let error = Model::from_bytes(external("weights", "8", "16").encode_to_vec(), &device);
    assert!(error.unwrap_err().to_string().contains("load the model by its path"));
    std::fs::remove_dir_all(folder).unwrap();
}

/// Graphs in attributes of graphs: more than protobuf allows, and as many as are too many here.
#[test]
fn deep_nesting() {
    for depth in [20, 200, 1000] {
        let mut inner = graph(vec![node("Identity", &["x"], &["y"])]);
        inner.input.clear();
        for _ in 0..depth {
            let mut wrapping = node("If", &["condition"], &["y"]);
            wrapping.attribute.push(AttributeProto {
                name: Some("then_branch".into()),
                r#type: Some(AttributeType::Graph as i32),
                g: Some(inner),
                ..Default::default()
            });
            inner = graph(vec![wrapping]);
            inner.input.clear();
        }
        inner.input.push(port("x"));
        // Encoding is recursive, too.
        let encode = move || model(inner).encode_to_vec();
        let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(encode).unwrap();
        let bytes = thread.join().unwrap();
        let loaded = Model::from_bytes(bytes, &device());
        assert_eq!(loaded.is_ok(), depth == 20, "{depth}");
    }
}

#[test]
fn functions_that_call_themselves() {
    let function = FunctionProto {
        name: Some("Again".into()),
        domain: Some("own".into()),
        input: vec!["x".into()],
        output: vec!["y".into()],
        node: vec![NodeProto { domain: Some("own".into()), ..node("Again", &["x"], &["y"]) }],
        ..Default::default()
    };
    let call = NodeProto { domain: Some("own".into()), ..node("Again", &["x"], &["y"]) };
    let mut model = model(graph(vec![call]));
    model.functions.push(function);
    assert!(refusal(&model).contains("nest more than"), "{}", refusal(&model));
}

#[test]
fn inputs_by_name() {
    let device = device();
    let bytes = model(graph(vec![node("Relu", &["x"], &["y"])])).encode_to_vec();
    let model = Model::from_bytes(bytes, &device).unwrap();
    let x = Tensor::new([-1f32, 2.0], &device).unwrap();
    let error = model.run([("z", x.clone())]).unwrap_err().to_string();
    assert!(error.contains("no input `z`; there are: x"), "{error}");
    let error = model.run([]).unwrap_err().to_string();
    assert!(error.contains("input `x` is missing"), "{error}");
    assert_eq!(model.run([("x", x)]).unwrap()[0].to_vec::<f32>().unwrap(), [0.0, 2.0]);
    assert!(Model::load(Path::new("/nowhere/model.onnx"), &device).is_err());
}

/// Whether a value of one kind is given for another: also one that is no optional for an optional.
fn takes(kind: &str, value: &str) -> bool {
    let (optional, list) = ("optional ", "sequence of ");
    if let Some(kind) = kind.strip_prefix(optional) {
        return takes(kind, value.strip_prefix(optional).unwrap_or(value));
    }
    match (kind.strip_prefix(list), value.strip_prefix(list)) {
        (Some(kind), Some(value)) => takes(kind, value),
        _ => kind == value,
    }
}

/// An input of every declared kind takes values of that kind and no others.
#[test]
fn kinds_of_inputs() {
    use crate::proto::{TypeProto, type_proto};
    use crate::{Coded, CodedType, Kind, Value};
    use type_proto::Value as Type;
    use zyx_core::DType;
    let device = device();
    let typed = |value: Type| TypeProto { value: Some(value), ..Default::default() };
    let tensor = |element: DataType| {
        typed(Type::TensorType(type_proto::Tensor { elem_type: Some(element as i32), shape: None }))
    };
    let codes = Tensor::new([1u8, 2], &device).unwrap();
    let plain: Vec<(DataType, Value, String)> = vec![
        (DataType::Float, Tensor::zeros([2], DType::F32, &device).into(), "f32".into()),
        (DataType::Int64, Tensor::zeros([0], DType::I64, &device).into(), "i64".into()),
        (DataType::Bool, Tensor::zeros([0, 3], DType::Bool, &device).into(), "bool".into()),
        (DataType::String, Value::Strings(vec![0], vec![]), "strings".into()),
        (
            DataType::Float8e4m3fn,
            Coded::new(CodedType::Float8E4M3Fn, &codes).unwrap().into(),
            "Float8E4M3Fn".into(),
        ),
        (
            DataType::Uint4,
            Coded::new(CodedType::Uint4, &codes.slice(0, 0..0).unwrap()).unwrap().into(),
            "Uint4".into(),
        ),
    ];
    let mut cases: Vec<(TypeProto, Value, String)> =
        plain.into_iter().map(|(element, value, name)| (tensor(element), value, name)).collect();
    // Sequences and optionals of these, and of one another.
    for _ in 0..2 {
        for (proto, value, name) in cases.clone().into_iter().rev().take(6).rev() {
            let elem_type = Some(Box::new(proto));
            let sequence = type_proto::Sequence { elem_type: elem_type.clone() };
            let values = Value::Sequence(vec![value.clone(), value.clone()]);
            cases.push((
                typed(Type::SequenceType(sequence.into())),
                values,
                format!("sequence of {name}"),
            ));
            let optional = type_proto::Optional { elem_type };
            let value = Value::Optional(Some(Box::new(value)));
            cases.push((
                typed(Type::OptionalType(optional.into())),
                value,
                format!("optional {name}"),
            ));
        }
    }
    assert!(cases.len() > 20);
    for (proto, value, name) in &cases {
        let mut graph = graph(vec![node("Identity", &["x"], &["y"])]);
        graph.input[0].r#type = Some(proto.clone());
        let model = Model::from_bytes(model(graph).encode_to_vec(), &device).unwrap();
        let kind = model.inputs()[0].kind();
        assert_eq!(kind.to_string(), *name);
        let found = model.graph([("x", value.clone())]).unwrap().remove(0);
        assert_eq!(format!("{found:?}"), format!("{value:?}"));
        for (_, other, of) in &cases {
            assert_eq!(
                model.graph([("x", other.clone())]).is_ok(),
                takes(name, of),
                "{name}: {of}"
            );
        }
        let nothing = Value::Optional(None);
        assert_eq!(model.graph([("x", nothing)]).is_ok(), matches!(kind, Kind::Optional(_)));
        let empty = Value::Sequence(vec![]);
        let takes_lists = name.trim_start_matches("optional ").starts_with("sequence");
        assert_eq!(model.graph([("x", empty)]).is_ok(), takes_lists, "{name}");
    }
}

/// A model is a graph of tensors: it has gradients.
#[test]
fn gradients() {
    let device = device();
    let bytes = model(graph(vec![node("Mul", &["x", "x"], &["y"])])).encode_to_vec();
    let model = Model::from_bytes(bytes, &device).unwrap();
    let x = Tensor::new([1f32, 3.0], &device).unwrap().tracked();
    let y = model.graph([("x", (&x).into())]).unwrap().remove(0);
    let crate::Value::Tensor(y) = y else { panic!("{y:?}") };
    let dx = y.sum(..).unwrap().grad(&[&x]).unwrap().remove(0).unwrap();
    assert_eq!(dx.to_vec::<f32>().unwrap(), [2.0, 6.0]);
}

/// Parameters can be given as if they were inputs, and have gradients then.
#[test]
fn parameters_in_place_of_the_model_s() {
    let device = device();
    let mut graph = graph(vec![
        node("MatMul", &["x", "w"], &["a"]),
        node("Mul", &["a", "s"], &["c"]),
        node("Add", &["c", "b"], &["y"]),
    ]);
    let (b, s) = (weight("b", 1, 4), weight("s", 1, 1));
    graph.initializer = vec![weight("w", 5, 4), b, TensorProto { dims: vec![], ..s }];
    let model = Model::from_bytes(model(graph).encode_to_vec(), &device).unwrap();
    assert_eq!(model.parameters().map(|(name, _)| name).collect::<Vec<_>>(), ["b", "w"]);
    let zero = Tensor::zeros([1, 4], zyx_core::DType::F32, &device);
    assert_ne!(model.parameters().next().unwrap().1.to_vec::<f32>().unwrap(), [0.0; 4]);
    let x = Tensor::new([[1f32, 2.0, 3.0, 4.0, 5.0]], &device).unwrap();
    let w = Tensor::full([5, 4], 2f32, &device).tracked();
    let y = model
        .graph([("x", (&x).into()), ("w", (&w).into()), ("b", (&zero).into())])
        .unwrap()
        .remove(0);
    let crate::Value::Tensor(y) = y else { panic!("{y:?}") };
    assert_eq!(y.to_vec::<f32>().unwrap(), [-15.0; 4]);
    let dw = y.sum(..).unwrap().grad(&[&w]).unwrap().remove(0).unwrap();
    assert_eq!(dw.to_vec::<f32>().unwrap()[..5], [-0.5, -0.5, -0.5, -0.5, -1.0]);
    let own = model.run([("x", x.clone())]).unwrap()[0].to_vec::<f32>().unwrap();
    let other = model.run([("x", x.clone()), ("w", w), ("b", zero)]).unwrap().remove(0);
    assert_eq!(other.to_vec::<f32>().unwrap(), [-15.0; 4]);
    assert_eq!(model.run([("x", x.clone())]).unwrap()[0].to_vec::<f32>().unwrap(), own);
    let narrow = Tensor::full([5, 3], 2f32, &device);
    let error = model.run([("x", x), ("w", narrow)]).unwrap_err().to_string();
    assert!(error.contains("parameter `w` is a f32 tensor of shape [5, 4]"), "{error}");
}

fn numbers(rows: usize, columns: usize) -> Vec<f32> {
    (0..rows * columns).map(|i| ((i * 37 % 101) as f32 - 50.0) / 100.0).collect()
}

fn weight(name: &str, rows: usize, columns: usize) -> TensorProto {
    let numbers = numbers(rows, columns).into_iter().flat_map(f32::to_le_bytes);
    TensorProto {
        name: Some(name.into()),
        dims: vec![rows as i64, columns as i64],
        data_type: Some(1),
        raw_data: Some(numbers.collect::<Vec<u8>>().into()),
        ..Default::default()
    }
}

/// Attention and layers behind it over a sequence: whatever its length, the third and later ones compile nothing, and
/// a length that was seen before is replayed.
#[test]
fn lengths_compile_nothing() {
    let nodes = vec![
        node("MatMul", &["x", "wq"], &["q"]),
        node("MatMul", &["x", "wk"], &["k"]),
        node("Transpose", &["k"], &["kt"]),
        node("MatMul", &["q", "kt"], &["scores"]),
        node("Softmax", &["scores"], &["p"]),
        node("MatMul", &["p", "x"], &["seen"]),
        node("Add", &["seen", "x"], &["sum"]),
        node("MatMul", &["sum", "up"], &["wide"]),
        node("Gelu", &["wide"], &["active"]),
        node("MatMul", &["active", "down"], &["z"]),
        node("Shape", &["z"], &["shape"]),
        node("Reshape", &["z", "shape"], &["y"]),
    ];
    let mut graph = graph(nodes);
    graph.initializer = vec![
        weight("wq", 64, 64),
        weight("wk", 64, 64),
        weight("up", 64, 256),
        weight("down", 256, 64),
    ];
    let runtime = Runtime::default();
    runtime.register(zyx_backend_cpu::Cpu::default());
    let device = runtime.device("cpu").unwrap();
    let model = Model::from_bytes(model(graph).encode_to_vec(), &device).unwrap();
    let run = |n: usize| {
        let numbers: Vec<f32> = (0..n * 64).map(|i| (i as f32).sin()).collect();
        let x = Tensor::from_slice(&numbers, [n, 64], &device).unwrap();
        let before = device.stats();
        let y = model.run([("x", x)]).unwrap().remove(0);
        assert_eq!(y.shape().dims(), [n, 64]);
        device.stats().since(&before)
    };
    run(40);
    run(57);
    for n in (20..120).filter(|n| ![40, 57].contains(n)) {
        assert_eq!(run(n).compiles, 0, "length {n}");
    }
    let again = run(100);
    assert_eq!((again.compiles, again.plan_misses), (0, 0));
}

/// What is stored as codes is not taken for numbers, and sizes that attributes claim are not believed.
#[test]
fn coded_and_packed_tensors_are_refused_where_they_do_not_fit() {
    let four_bits = TensorProto {
        dims: vec![2],
        data_type: Some(DataType::Int4 as i32),
        raw_data: Some(vec![0x21].into()),
        ..Default::default()
    };
    let said = refusal(&with_tensor(four_bits));
    assert!(said.contains("it does not compute with Int4"), "{said}");

    let mut packed = node("MatMulNBits", &["x", "w", "s"], &["y"]);
    packed.domain = Some("com.microsoft".into());
    packed.attribute = ["K", "N", "block_size"]
        .map(|name| AttributeProto {
            name: Some(name.into()),
            r#type: Some(AttributeType::Int as i32),
            i: Some(i64::from(i32::MAX)),
            ..Default::default()
        })
        .to_vec();
    let bytes = |name: &str| TensorProto {
        name: Some(name.into()),
        dims: vec![1, 1, 8],
        data_type: Some(DataType::Uint8 as i32),
        raw_data: Some(vec![0; 8].into()),
        ..Default::default()
    };
    let mut graph = graph(vec![packed]);
    graph.initializer = vec![bytes("w"), bytes("s")];
    for (value, wanted) in [(i64::from(i32::MAX) - 1, "is not ["), (1 << 40, "`K` is")] {
        graph.node[0].attribute.iter_mut().for_each(|attribute| attribute.i = Some(value));
        let mut model = model(graph.clone());
        let domain = Some("com.microsoft".into());
        model.opset_import.push(OperatorSetIdProto { domain, version: Some(1) });
        let said = refusal(&model);
        assert!(said.contains(wanted), "{said}");
    }
}

/// A model that branches on what it computes, in a branch on the sign, and then lists what it finds, whose count is
/// read, too: both branches are traced once, and no later run builds a graph, but for what follows from a count that is
/// new.
#[test]
fn parts_between_reads_are_replayed() {
    let branch = |name: &str, nodes| AttributeProto {
        name: Some(name.into()),
        r#type: Some(AttributeType::Graph as i32),
        g: Some(GraphProto { input: vec![], ..graph(nodes) }),
        ..Default::default()
    };
    let mut choice = node("If", &["go"], &["z"]);
    choice.attribute = vec![
        branch("then_branch", vec![node("Exp", &["h"], &["e"]), node("Add", &["e", "x"], &["y"])]),
        branch(
            "else_branch",
            vec![node("Mul", &["h", "h"], &["e"]), node("Sub", &["e", "x"], &["y"])],
        ),
    ];
    let mut nodes = vec![
        node("MatMul", &["x", "w"], &["p"]),
        node("Tanh", &["p"], &["h"]),
        node("ReduceSum", &["h"], &["sum"]),
        node("Sub", &["sum", "sum"], &["zero"]),
        node("Greater", &["sum", "zero"], &["many"]),
        node("Squeeze", &["many"], &["go"]),
        choice,
        node("Relu", &["z"], &["r"]),
        node("Neg", &["r"], &["y"]),
    ];
    let device = device();
    let expected = |x: &[f32]| -> Vec<f32> {
        let w = numbers(4, 4);
        let h = |i: usize| (0..4).map(|k| x[k] * w[k * 4 + i]).sum::<f32>().tanh();
        let is_positive = (0..4).map(h).sum::<f32>() > 0.0;
        let z = |i: usize| if is_positive { h(i).exp() + x[i] } else { h(i) * h(i) - x[i] };
        (0..4).map(|i| -z(i).max(0.0)).collect()
    };
    let check = |model: &Model, scale: f32| {
        let numbers: Vec<f32> = [1.0, -2.0, 0.5, 3.0].map(|x| x * scale).to_vec();
        let x = Tensor::from_slice(&numbers, [1, 4], &device).unwrap();
        let before = device.stats();
        let y = model.run([("x", x)]).unwrap();
        let made = device.stats().since(&before);
        for (y, expected) in y[0].to_vec::<f32>().unwrap().iter().zip(expected(&numbers)) {
            assert!((y - expected).abs() < 1e-5, "{y} for {expected}");
        }
        (y, made)
    };
    let load = |nodes: Vec<NodeProto>, outputs: &[&str]| {
        let mut graph = graph(nodes);
        graph.initializer = vec![weight("w", 4, 4)];
        graph.output = outputs.iter().map(|name| port(name)).collect();
        Model::from_bytes(model(graph).encode_to_vec(), &device).unwrap()
    };
    let branches = load(nodes.clone(), &["y"]);
    check(&branches, 1.0);
    check(&branches, -1.0);
    for scale in [0.5, -0.5, -2.0, 1.5] {
        assert_eq!(check(&branches, scale).1.nodes, 0, "{scale}");
    }
    nodes.push(node("NonZero", &["y"], &["places"]));
    nodes.push(node("Add", &["places", "places"], &["twice"]));
    nodes.push(node("Mul", &["twice", "places"], &["list"]));
    let lists = load(nodes, &["y", "list"]);
    for scale in [1.0, -1.0, 0.5, 0.1, -0.5, -2.0, 1.5, -0.01] {
        let y = check(&lists, scale).0;
        let numbers = y[0].to_vec::<f32>().unwrap();
        let places = (0..4).filter(|&i| numbers[i] != 0.0).map(|i| 2 * (i * i) as i64);
        let list: Vec<i64> = std::iter::repeat_n(0, numbers.iter().filter(|&&y| y != 0.0).count())
            .chain(places)
            .collect();
        assert_eq!(y[1].to_vec::<i64>().unwrap(), list, "{scale}");
    }
}

/// Kinds of inputs that are new again and again are traced when they come again.
#[test]
fn shapes_that_are_always_new() {
    let device = device();
    let model = model(graph(vec![node("Exp", &["x"], &["e"]), node("Add", &["e", "x"], &["y"])]));
    let model = Model::from_bytes(model.encode_to_vec(), &device).unwrap();
    let run = |n: usize| {
        let x = Tensor::from_slice(&vec![0f32; n], [n], &device).unwrap();
        let before = device.stats();
        let y = model.run([("x", x)]).unwrap();
        let nodes = device.stats().since(&before).nodes;
        assert_eq!(y[0].to_vec::<f32>().unwrap(), vec![1.0; n]);
        nodes
    };
    for n in 1..200 {
        run(n);
    }
    assert!(run(200) > 0 && run(200) > 0);
    assert_eq!((run(200), run(190) > 0, run(190)), (0, true, 0));
}

/// Random numbers without a seed are others in each run and each node; with one they are the same.
#[test]
fn random_numbers_are_not_replayed() {
    let device = device();
    let x = Tensor::new([0.5f32; 64], &device).unwrap();
    let run = |model: &Model| model.run([("x", x.clone())]).unwrap()[0].to_vec::<f32>().unwrap();
    let load = |nodes| Model::from_bytes(model(graph(nodes)).encode_to_vec(), &device).unwrap();
    for kind in ["RandomNormalLike", "RandomUniformLike", "Bernoulli"] {
        let free = load(vec![node(kind, &["x"], &["y"])]);
        let drawn: Vec<_> = (0..3).map(|_| run(&free)).collect();
        assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2], "{kind}");
        let mut seeded = node(kind, &["x"], &["y"]);
        seeded.attribute.push(AttributeProto {
            name: Some("seed".into()),
            r#type: Some(AttributeType::Float as i32),
            f: Some(7.0),
            ..Default::default()
        });
        let seeded = load(vec![seeded]);
        assert_eq!(run(&seeded), run(&seeded), "{kind}");
        let two = vec![
            node(kind, &["x"], &["a"]),
            node(kind, &["x"], &["b"]),
            node("Sub", &["a", "b"], &["y"]),
        ];
        assert!(run(&load(two)).iter().any(|&x| x != 0.0), "{kind}");
    }
}

/// A file that is decoded while it is read gives what its bytes give: whole, and cut off anywhere. Tensors are larger
/// and smaller than what is read at a time.
#[test]
fn files_are_what_their_bytes_are() {
    let device = device();
    let mut constant = node("Constant", &[], &["scale"]);
    constant.attribute.push(AttributeProto {
        name: Some("value".into()),
        r#type: Some(AttributeType::Tensor as i32),
        t: Some(weight("", 6, 3000)),
        ..Default::default()
    });
    let nodes = vec![
        constant,
        node("MatMul", &["x", "small"], &["a"]),
        node("MatMul", &["a", "large"], &["b"]),
        node("Mul", &["b", "scale"], &["c"]),
        node("ReduceSum", &["c", "rows"], &["d"]),
        node("Add", &["d", "listed"], &["y"]),
    ];
    let mut graph = graph(nodes);
    let listed = TensorProto {
        name: Some("listed".into()),
        dims: vec![3000],
        data_type: Some(DataType::Float as i32),
        float_data: (0..3000).map(|i| i as f32).collect(),
        ..Default::default()
    };
    let rows = TensorProto {
        name: Some("rows".into()),
        dims: vec![1],
        data_type: Some(DataType::Int64 as i32),
        raw_data: Some(vec![0; 8].into()),
        ..Default::default()
    };
    graph.initializer = vec![weight("small", 4, 7), listed, rows, weight("large", 7, 3000)];
    let mut proto = model(graph);
    proto.doc_string = Some("long ".repeat(5000));
    let mut bytes = proto.encode_to_vec();
    // A field that no version of the format has.
    bytes.extend([&[0xfa, 0x7f, 0xa0, 0x9c, 0x01][..], &[7; 20000]].concat());
    let folder = std::env::temp_dir().join(format!("zyx-onnx-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.onnx");
    let x = Tensor::new([[1f32, 2.0, 3.0, 4.0]], &device).unwrap();
    let load = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let outcomes = [Model::load(&path, &device), Model::from_bytes(bytes, &device)];
        outcomes.map(|model| {
            let y = model.and_then(|model| model.run([("x", x.clone())]))?;
            y[0].to_vec::<f32>()
        })
    };
    let [file, memory] = load(&bytes).map(Result::unwrap);
    assert_eq!(file, memory);
    assert!(file[2999] != file[2998] && file.len() == 3000);
    let (small, large, scale) = (numbers(4, 7), numbers(7, 3000), numbers(6, 3000));
    let hidden = |j: usize| (0..4).map(|i| (i + 1) as f32 * small[i * 7 + j]).sum::<f32>();
    for n in [0, 1, 2999] {
        let b: f32 = (0..7).map(|j| hidden(j) * large[j * 3000 + n]).sum();
        let y = n as f32 + (0..6).map(|i| scale[i * 3000 + n] * b).sum::<f32>();
        assert!((file[n] - y).abs() < 1e-3, "{n}: {} and {y}", file[n]);
    }
    for n in (0..bytes.len()).step_by(997) {
        let [file, memory] = load(&bytes[..n]);
        assert_eq!(file.is_ok(), memory.is_ok(), "{n} bytes");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
