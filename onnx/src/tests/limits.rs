//! Small files that would make the host allocate much, and loops that a user interrupts.

use super::{graph, model, node, port};
use crate::budget::Budget;
use crate::host::Host;
use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{
    AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto,
};
use crate::value::Value;
use prost::Message;
use std::cell::Cell;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use zyx_core::{DType, Device, Result, Scalar, Tensor};

/// One device for all.
fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(super::device).clone()
}

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(kind as i32), ..Default::default() }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto { i: Some(i), ..attribute(name, AttributeType::Int) }
}

fn ints(values: &[i64]) -> Value {
    let numbers = values.iter().map(|&n| Scalar::from(n)).collect();
    Host::new([values.len()], DType::I64, numbers).into()
}

fn nodes(nodes: Vec<NodeProto>, inputs: &[&str]) -> ModelProto {
    let mut graph = graph(nodes);
    graph.input = inputs.iter().map(|name| port(name)).collect();
    model(graph)
}

fn run(limit: usize, proto: &ModelProto, inputs: Vec<(&str, Value)>) -> Result<Vec<Value>> {
    Model::within(Budget::new(limit), proto.encode_to_vec(), &device())?.graph(inputs)
}

/// Says which node asked for more than there is, and how to allow it.
fn refused(proto: &ModelProto, inputs: Vec<(&str, Value)>, kind: &str) {
    let said = run(64 << 20, proto, inputs).unwrap_err().to_string();
    let limit = format!("of {} are taken (ZYX_ONNX_MEMORY_LIMIT=8G allows more)", 64 << 20);
    assert!(said.contains(&format!("({kind})")) && said.contains(&limit), "{said}");
}

#[test]
fn extents_of_attributes_and_shapes() {
    let huge = 1i64 << 40;
    let x = || ("x", Value::from(Tensor::new([1f32, 2.0], &device()).unwrap()));
    let mut split = node("Split", &["x"], &["y"]);
    split.attribute = vec![int("num_outputs", huge)];
    refused(&nodes(vec![split], &["x"]), vec![x()], "Split");
    let one = |n: i64| Value::from(Host::new([], DType::I64, vec![Scalar::from(n)]));
    let window = nodes(vec![node("HannWindow", &["x"], &["y"])], &["x"]);
    refused(&window, vec![("x", one(huge))], "HannWindow");
    let spread = |shape: [usize; 3]| Value::from(Tensor::zeros(shape, DType::F32, &device()));
    for (kind, gates, steps) in [("RNN", 1, 1 << 40), ("GRU", 3, 1 << 40), ("LSTM", 4, 10_000)] {
        let layer = nodes(vec![node(kind, &["x", "w", "r"], &["y"])], &["x", "w", "r"]);
        let given = |steps| {
            let (w, r) = (spread([1, gates, 1]), spread([1, gates, 1]));
            vec![("x", spread([steps, 1, 1])), ("w", w), ("r", r)]
        };
        refused(&layer, given(steps), kind);
        run(64 << 20, &layer, given(100)).unwrap();
    }
    let mut resize = node("Resize", &["x", "", "", "s"], &["y"]);
    let mode = Some(b"linear".to_vec().into());
    resize.attribute = vec![
        int("antialias", 1),
        AttributeProto { s: mode, ..attribute("mode", AttributeType::String) },
    ];
    let image = Tensor::zeros([1, 1, 1 << 38, 1], DType::F32, &device());
    let given = vec![("x", image.into()), ("s", ints(&[1, 1, 4, 1]))];
    refused(&nodes(vec![resize], &["x", "s"]), given, "Resize");
    let scan = AttributeProto {
        g: Some(GraphProto { input: vec![port("a")], ..graph(vec![node("Relu", &["a"], &["y"])]) }),
        ..attribute("body", AttributeType::Graph)
    };
    let mut scanned = node("Scan", &["x"], &["y"]);
    scanned.attribute = vec![int("num_scan_inputs", 1), scan];
    let long = Tensor::zeros([1 << 40], DType::F32, &device());
    refused(&nodes(vec![scanned], &["x"]), vec![("x", long.into())], "Scan");
}

/// Values that double fifty times: numbers, texts, lists and lists of lists.
#[test]
fn what_doubles() {
    let chain = |node_of: &dyn Fn(&str, &str) -> NodeProto| {
        let name = |i: usize| if i == 50 { "y".to_owned() } else { format!("x{i}") };
        let all = (0..50).map(|i| node_of(&name(i), &name(i + 1))).collect();
        nodes(all, &["x0"])
    };
    let twice = |kind: &'static str| move |x: &str, y: &str| node(kind, &[x, x], &[y]);
    let concat = |x: &str, y: &str| {
        let attribute = vec![int("axis", 0)];
        NodeProto { attribute, ..node("Concat", &[x, x], &[y]) }
    };
    let text = || Value::Strings(vec![1], vec!["text".into()]);
    refused(&chain(&concat), vec![("x0", text())], "Concat");
    refused(&chain(&twice("StringConcat")), vec![("x0", text())], "StringConcat");
    let list = || Value::Sequence(vec![ints(&[1, 2, 3])]);
    refused(&chain(&twice("SequenceConstruct")), vec![("x0", list())], "SequenceConstruct");
    refused(&chain(&twice("SequenceInsert")), vec![("x0", list())], "SequenceInsert");
    // More numbers than a shape has are a tensor, which is not computed here.
    let y = run(1 << 20, &chain(&concat), vec![("x0", ints(&[1, 2, 3]))]).unwrap().remove(0);
    assert_eq!(y.shape().unwrap(), [3 << 50]);
    // One long text picked many times.
    let (n, long) = (1000, Value::Strings(vec![1], vec!["x".repeat(1 << 20)]));
    let gather = nodes(vec![node("Gather", &["x", "i"], &["y"])], &["x", "i"]);
    refused(&gather, vec![("x", long), ("i", ints(&vec![0; n]))], "Gather");
}

/// A loop that collects values is refused when they are too many, and one that does not is not.
#[test]
fn loops() {
    let body = |nodes: Vec<NodeProto>, outputs: &[&str]| AttributeProto {
        g: Some(GraphProto {
            node: nodes,
            input: ["i", "go", "v"].map(port).to_vec(),
            output: outputs.iter().map(|name| port(name)).collect(),
            ..Default::default()
        }),
        ..attribute("body", AttributeType::Graph)
    };
    let looped = |inner: AttributeProto, outputs: &[&str]| {
        let attribute = vec![inner];
        nodes(vec![NodeProto { attribute, ..node("Loop", &["n", "", "v"], outputs) }], &["n", "v"])
    };
    let step = vec![node("Identity", &["go"], &["on"]), node("Add", &["v", "i"], &["w"])];
    let sum = looped(body(step.clone(), &["on", "w"]), &["y"]);
    let given = |n: i64| {
        let zero = Tensor::zeros([], DType::I64, &device());
        let n = Host::new([], DType::I64, vec![Scalar::from(n)]);
        vec![("n", n.into()), ("v", Value::from(zero))]
    };
    // 2,000 steps of 1 KiB each, of which 1 / 64 of 1 MiB are pending at a time.
    let y = run(1 << 20, &sum, given(2000)).unwrap().remove(0);
    assert_eq!(y.host().unwrap().ints(), [1999 * 1000]);
    // The same by a number of steps that the model has, which would be replayed if nothing were computed in between.
    let mut fixed = sum.clone();
    let all = fixed.graph.as_mut().unwrap();
    all.input.retain(|port| port.name() == "v");
    all.initializer.push(TensorProto {
        name: Some("n".into()),
        data_type: Some(7),
        int64_data: vec![2000],
        ..Default::default()
    });
    let fixed = Model::within(Budget::new(1 << 20), fixed.encode_to_vec(), &device()).unwrap();
    for _ in 0..2 {
        let zero = Tensor::zeros([], DType::I64, &device());
        assert_eq!(fixed.run([("v", zero)]).unwrap()[0].item::<i64>().unwrap(), 1999 * 1000);
    }
    let collected = looped(body(step, &["on", "w", "i"]), &["z", "y"]);
    let said = run(1 << 20, &collected, given(1 << 40)).unwrap_err().to_string();
    assert!(said.contains("(Loop)") && said.contains("ZYX_ONNX_MEMORY_LIMIT"), "{said}");
}

/// Forty functions of which each calls the next one twice.
fn doubling(kind: &str) -> ModelProto {
    let own = |kind: &str, x: &str, y: &str| NodeProto {
        domain: Some("own".into()),
        ..node(kind, &[x], &[y])
    };
    let mut proto = nodes(vec![own("f0", "x", "y")], &["x"]);
    proto.opset_import.push(OperatorSetIdProto { domain: Some("own".into()), version: Some(1) });
    for i in 0..40 {
        let next = format!("f{}", i + 1);
        let body = match i {
            39 => vec![node(kind, &["a"], &["c"])],
            _ => vec![own(&next, "a", "b"), own(&next, "b", "c")],
        };
        proto.functions.push(FunctionProto {
            name: Some(format!("f{i}")),
            domain: Some("own".into()),
            input: vec!["a".into()],
            output: vec!["c".into()],
            node: body,
            opset_import: proto.opset_import.clone(),
            ..Default::default()
        });
    }
    proto
}

#[test]
fn functions_that_call_one_another_twice() {
    let start = Instant::now();
    let proto = doubling("Neg");
    let model = Model::from_bytes(proto.encode_to_vec(), &device()).unwrap();
    assert_eq!(model.operators()["Neg"], 1 << 39);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    let x = Tensor::new([1f32], &device()).unwrap();
    refused(&proto, vec![("x", x.into())], "Neg");
}

thread_local! {
    static INTERRUPT: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Interrupts what runs after 100 ms; how long it went on.
fn interrupted<T>(run: impl FnOnce() -> Result<T>) -> Duration {
    zyx_core::hal::set_interrupt(|| INTERRUPT.get().is_some_and(|when| Instant::now() > when));
    let when = Instant::now() + Duration::from_millis(100);
    INTERRUPT.set(Some(when));
    let outcome = run();
    INTERRUPT.set(None);
    let said = outcome.err().expect("it would go on").to_string();
    assert!(said.contains("interrupted"), "{said}");
    when.elapsed()
}

#[test]
fn loops_are_interrupted() {
    let one = || Value::from(Host::new([], DType::I64, vec![Scalar::from(1)]));
    let copies = || run(1 << 30, &doubling("Identity"), vec![("x", one())]);
    let body = GraphProto {
        node: vec![node("Identity", &["c"], &["d"]), node("Identity", &["v"], &["w"])],
        input: ["i", "c", "v"].map(port).to_vec(),
        output: ["d", "w"].map(port).to_vec(),
        ..Default::default()
    };
    let mut endless = node("Loop", &["", "", "x"], &["y"]);
    endless.attribute =
        vec![AttributeProto { g: Some(body), ..attribute("body", AttributeType::Graph) }];
    let endless = nodes(vec![endless], &["x"]);
    let long = Value::from(Tensor::zeros([150_000, 1, 1], DType::F32, &device()));
    let small = || Value::from(Tensor::zeros([1, 4, 1], DType::F32, &device()));
    let layer = nodes(vec![node("LSTM", &["x", "w", "r"], &["y"])], &["x", "w", "r"]);
    let folder = folder("interrupted");
    let many = folder.join("model.onnx");
    let proto = nodes(vec![node("Relu", &["x"], &["y"]); 200_000], &["x"]);
    std::fs::write(&many, proto.encode_to_vec()).unwrap();
    drop(proto);
    let times = [
        interrupted(copies),
        interrupted(|| run(1 << 30, &endless, vec![("x", one())])),
        interrupted(|| run(2 << 30, &layer, vec![("x", long), ("w", small()), ("r", small())])),
        interrupted(|| Model::load(&many, &device())),
    ];
    assert!(times.iter().all(|time| *time < Duration::from_secs(1)), "{times:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("zyx-onnx-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn external(name: &str, n: usize, location: &str, offset: usize) -> TensorProto {
    let entry = |key: &str, value: String| StringStringEntryProto {
        key: Some(key.into()),
        value: Some(value),
    };
    TensorProto {
        name: Some(name.into()),
        dims: vec![n as i64],
        data_type: Some(1),
        data_location: Some(DataLocation::External as i32),
        external_data: vec![
            entry("location", location.into()),
            entry("offset", offset.to_string()),
            entry("length", (4 * n).to_string()),
        ],
        ..Default::default()
    }
}

/// A file is read once, by however many tensors it is named; parts of it that overlap are limited.
#[test]
fn a_file_that_many_tensors_name() {
    let (folder, n) = (folder("shared"), 1 << 18);
    std::fs::write(folder.join("weights"), vec![0u8; 4 * n + 4000]).unwrap();
    let path = folder.join("model.onnx");
    let load = |tensors: Vec<TensorProto>| {
        let mut graph = graph(vec![node("Add", &["x", "w7"], &["y"])]);
        graph.initializer = tensors;
        std::fs::write(&path, model(graph).encode_to_vec()).unwrap();
        Model::open(&path, Budget::new(64 << 20), &device())
    };
    let same = (0..3000).map(|i| external(&format!("w{i}"), n, "weights", 0)).collect();
    let model = load(same).unwrap();
    let tensors: Vec<_> = model.parameters().map(|(_, tensor)| tensor.clone()).collect();
    assert_eq!(tensors.len(), 3000);
    let first = tensors[0].to_vec::<f32>().unwrap();
    assert_eq!((first.len(), first[n - 1]), (n, 0.0));
    drop(model);
    // 3,000 parts of 1 MiB each that begin four bytes apart.
    let others = (0..3000).map(|i| external(&format!("w{i}"), n, "weights", i)).collect();
    let said = load(others).unwrap_err().to_string();
    assert!(said.contains("host memory") && said.contains("ZYX_ONNX_MEMORY_LIMIT"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Caches of downloaded models keep files under their hashes and link to them from folders of versions.
#[test]
#[cfg(unix)]
fn links_into_the_folder_of_the_model_s_own_file() {
    use std::os::unix::fs::symlink;
    let folder = folder("links");
    let version = folder.join("snapshots/1");
    std::fs::create_dir_all(&version).unwrap();
    std::fs::create_dir_all(folder.join("blobs")).unwrap();
    let mut graph = graph(vec![node("Add", &["x", "w"], &["y"])]);
    graph.initializer = vec![external("w", 2, "model.onnx_data", 0)];
    std::fs::write(folder.join("blobs/aa"), model(graph).encode_to_vec()).unwrap();
    std::fs::write(folder.join("blobs/bb"), [0u8; 8]).unwrap();
    std::fs::write(folder.join("secret"), [0u8; 8]).unwrap();
    symlink("../../blobs/aa", version.join("model.onnx")).unwrap();
    symlink("../../blobs/bb", version.join("model.onnx_data")).unwrap();
    let x = Tensor::new([1f32, 2.0], &device()).unwrap();
    let loaded = Model::load(version.join("model.onnx"), &device()).unwrap();
    assert_eq!(loaded.run([("x", x)]).unwrap()[0].to_vec::<f32>().unwrap(), [1.0, 2.0]);
    std::fs::remove_file(version.join("model.onnx_data")).unwrap();
    symlink("../../secret", version.join("model.onnx_data")).unwrap();
    let said = Model::load(version.join("model.onnx"), &device()).unwrap_err().to_string();
    assert!(said.contains("outside of the model's folder"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// Nodes in any order compute what they compute in the one that the standard asks for; within graphs, too.
#[test]
fn nodes_in_any_order() {
    let branch = |nodes| AttributeProto {
        g: Some(GraphProto { input: vec![], ..graph(nodes) }),
        ..attribute("", AttributeType::Graph)
    };
    let named = |name: &str, own: AttributeProto| AttributeProto { name: Some(name.into()), ..own };
    let inner = vec![node("Neg", &["b"], &["y"]), node("Add", &["a", "a"], &["b"])];
    let choice = NodeProto {
        attribute: vec![
            named("then_branch", branch(inner)),
            named("else_branch", branch(vec![node("Identity", &["x"], &["y"])])),
        ],
        ..node("If", &["go"], &["c"])
    };
    let all = vec![
        node("Mul", &["c", "d"], &["y"]),
        choice,
        node("Neg", &["a"], &["d"]),
        node("Add", &["x", "x"], &["a"]),
    ];
    let go = Value::from(Host::new([], DType::Bool, vec![Scalar::from(true)]));
    for shift in 0..all.len() {
        let mut all = all.clone();
        all.rotate_left(shift);
        let x = Tensor::new([1f32, 3.0], &device()).unwrap();
        let given = vec![("x", x.into()), ("go", go.clone())];
        let y = run(1 << 20, &nodes(all, &["x", "go"]), given).unwrap().remove(0);
        assert_eq!(y.host().unwrap().floats(), [8.0, 72.0], "{shift}");
    }
}

#[test]
fn operators_that_are_missing_are_counted() {
    let all = vec![node("Nope", &["x"], &["y"]); 1000];
    let said = run(1 << 30, &nodes(all, &["x"]), vec![]).unwrap_err().to_string();
    assert!(said.contains("Nope of opset 21 (1000 nodes, the first is `y`)"), "{said}");
    assert!(said.len() < 200, "{said}");
}

/// Attributes and ranks that indexed out of range or overflowed are named errors.
#[test]
fn ranks_and_attributes_that_do_not_fit() {
    let tensor = |shape: &[usize]| Value::from(Tensor::zeros(shape, DType::F32, &device()));
    let mut blocks = node("DepthToSpace", &["x"], &["y"]);
    blocks.attribute = vec![int("blocksize", 1 << 32)];
    let mut turned = node("Transpose", &["x"], &["y"]);
    let perm = vec![0, 0];
    turned.attribute =
        vec![AttributeProto { ints: perm, ..attribute("perm", AttributeType::Ints) }];
    let square = Host::new([2, 2], DType::I64, vec![Scalar::from(1i64); 4]);
    let mut past = node("Attention", &["q", "q", "q", "", "p", "p"], &["y"]);
    past.attribute = vec![int("q_num_heads", 1), int("kv_num_heads", 1)];
    let written = node("TensorScatter", &["x", "u"], &["y"]);
    let shifted =
        nodes(vec![node("MelWeightMatrix", &["n", "n", "n", "low", "n"], &["y"])], &["n", "low"]);
    let (n, low) = (Value::from(Host::new([], DType::I64, vec![Scalar::from(3i64)])), i64::MIN);
    let low = Value::from(Host::new([], DType::I64, vec![Scalar::from(low)]));
    let cases = [
        (nodes(vec![blocks], &["x"]), vec![("x", tensor(&[1, 4, 1, 1]))]),
        (nodes(vec![turned], &["x"]), vec![("x", square.into())]),
        (nodes(vec![past], &["q", "p"]), vec![("q", tensor(&[1, 2, 4])), ("p", tensor(&[4]))]),
        (nodes(vec![written], &["x", "u"]), vec![("x", tensor(&[2, 3, 4])), ("u", tensor(&[2]))]),
    ];
    for (proto, given) in cases {
        let kind = proto.graph.as_ref().unwrap().node[0].op_type().to_owned();
        let said = run(64 << 20, &proto, given).unwrap_err().to_string();
        assert!(said.contains(&kind), "{said}");
    }
    // Frequencies below zero are none: the result has weights that are not numbers, or zero.
    run(64 << 20, &shifted, vec![("n", n), ("low", low)]).unwrap();
}
