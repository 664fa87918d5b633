//! Operators that neither the standard's tests nor onnxruntime's CPU have: early versions, and some of com.microsoft.

use super::{device, graph, model, node, port};
use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, ModelProto, NodeProto, OperatorSetIdProto};
use prost::Message;
use zyx_core::Tensor;

fn int(name: &str, i: i64) -> AttributeProto {
    let kind = Some(AttributeType::Int as i32);
    AttributeProto { name: Some(name.into()), r#type: kind, i: Some(i), ..Default::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    let kind = Some(AttributeType::Ints as i32);
    AttributeProto { ints: ints.to_vec(), ..AttributeProto { r#type: kind, ..int(name, 0) } }
}

fn text(name: &str, text: &str) -> AttributeProto {
    let kind = Some(AttributeType::String as i32);
    AttributeProto { s: Some(text.as_bytes().to_vec().into()), r#type: kind, ..int(name, 0) }
}

/// The first output of a node for inputs of these shapes, whose elements are 1, -2, 3, -4, ..
fn run(own: NodeProto, opset: i64, shapes: &[&[usize]]) -> (Vec<usize>, Vec<f64>) {
    let device = device();
    let domain = own.domain.clone();
    let mut all = graph(vec![own]);
    all.input = all.node[0].input.iter().map(|name| port(name)).collect();
    let opsets = vec![OperatorSetIdProto { domain, version: Some(opset) }];
    let proto = ModelProto { opset_import: opsets, ..model(all) };
    let model = Model::from_bytes(proto.encode_to_vec(), &device).unwrap();
    let names: Vec<String> = model.inputs().iter().map(|port| port.name.clone()).collect();
    let tensor = |shape: &&[usize]| {
        let numbers = elements(shape.iter().product());
        let numbers: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
        Tensor::from_slice(&numbers, shape.to_vec(), &device).unwrap()
    };
    let given = names.iter().map(String::as_str).zip(shapes.iter().map(tensor));
    let y = model.run(given).unwrap().remove(0);
    let host = crate::Value::from(&y).host().unwrap();
    (y.shape().to_vec(), host.floats())
}

fn elements(n: usize) -> Vec<f64> {
    (1..=n).map(|i| if i % 2 == 0 { -(i as f64) } else { i as f64 }).collect()
}

fn close(found: &[f64], wanted: &[f64]) -> bool {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4 * b.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(near)
}

/// Before opset 7 the second operand lies along an axis that an attribute names.
#[test]
fn operands_along_an_axis() {
    let (x, y) = (elements(12), elements(3));
    type Function = fn(f64, f64) -> f64;
    let functions: [(&str, Function); 6] = [
        ("Add", |x, y| x + y),
        ("Sub", |x, y| x - y),
        ("Mul", |x, y| x * y),
        ("Div", |x, y| x / y),
        ("Greater", |x, y| f64::from(x > y)),
        ("Less", |x, y| f64::from(x < y)),
    ];
    for (kind, f) in functions {
        for opset in [1, 6] {
            let attribute = vec![int("broadcast", 1), int("axis", 1)];
            let own = NodeProto { attribute, ..node(kind, &["x", "z"], &["y"]) };
            let (shape, found) = run(own, opset, &[&[2, 3, 2], &[3]]);
            let wanted: Vec<f64> = (0..12).map(|i| f(x[i], y[i / 2 % 3])).collect();
            assert_eq!(shape, [2, 3, 2], "{kind} {opset}");
            assert!(close(&found, &wanted), "{kind} {opset}: {found:?}");
        }
    }
    let (_, found) = run(node("PRelu", &["x", "z"], &["y"]), 6, &[&[2, 3, 2], &[3]]);
    let slope = |i: usize| if x[i] < 0.0 { x[i] * y[i / 2 % 3] } else { x[i] };
    assert_eq!(found, (0..12).map(slope).collect::<Vec<f64>>());
}

#[test]
fn first_versions() {
    let with = |kind: &str, inputs: &[&str], attribute: Vec<AttributeProto>| NodeProto {
        attribute,
        ..node(kind, inputs, &["y"])
    };
    let x = elements(4);
    let (_, found) = run(with("Cast", &["x"], vec![text("to", "INT32")]), 5, &[&[4]]);
    assert_eq!(found, x);
    let (shape, found) =
        run(with("Pad", &["x"], vec![ints("paddings", &[0, 1, 0, 0])]), 1, &[&[2, 2]]);
    assert_eq!((shape, found), (vec![2, 3], vec![0.0, 1.0, -2.0, 0.0, 3.0, -4.0]));
    // The inputs are the elements 1, and 1 again as number of times and axis.
    let (shape, found) = run(with("Tile", &["x", "n", "a"], vec![]), 1, &[&[2, 2], &[1], &[1]]);
    assert_eq!((shape, found), (vec![2, 2], x.clone()));
    let (_, found) = run(with("Selu", &["x"], vec![]), 1, &[&[4]]);
    let selu = |x: f64| 1.0507 * if x > 0.0 { x } else { 1.6732 * (x.exp() - 1.0) };
    assert!(close(&found, &x.iter().map(|&x| selu(x)).collect::<Vec<f64>>()), "{found:?}");
    // Exporters wrote it before the standard had it; the scale is the row again.
    let (_, found) = run(with("LayerNormalization", &["x", "s"], vec![]), 11, &[&[1, 4], &[4]]);
    let normal = |x: f64| (x + 0.5) / (7.25f64 + 1e-5).sqrt() * x;
    assert!(close(&found, &x.iter().map(|&x| normal(x)).collect::<Vec<f64>>()), "{found:?}");
    for kind in ["Relu", "Sigmoid", "Sum", "Neg", "Dropout", "Split"] {
        assert_eq!(run(with(kind, &["x"], vec![]), 1, &[&[4]]).0, [4], "{kind}");
    }
}

/// A convolution of channels that are behind is that of channels in front; the weight's may be behind, too.
#[test]
fn convolutions_of_channels_that_are_behind() {
    let own = |inputs: &[&str]| NodeProto {
        domain: Some("com.microsoft".into()),
        attribute: vec![int("group", 2)],
        ..node("NhwcConv", inputs, &["y"])
    };
    // [1, 3, 3, 4] by [2, 2, 2, 3], of two groups of two channels, and the same weight with channels behind.
    let (x, w) = (elements(36), elements(24));
    let wanted = |at: &dyn Fn(usize, usize, usize, usize) -> f64, columns: usize| {
        let mut all = Vec::new();
        for (row, column) in (0..2).flat_map(|i| (0..columns).map(move |j| (i, j))) {
            for out in 0..2 {
                let mut sum = 0.0;
                for (c, i, j) in (0..2).flat_map(|c| {
                    (0..2).flat_map(move |i| (0..4 - columns).map(move |j| (c, i, j)))
                }) {
                    sum += x[((row + i) * 3 + column + j) * 4 + out * 2 + c] * at(out, c, i, j);
                }
                all.push(sum);
            }
        }
        all
    };
    let (shape, found) = run(own(&["x", "w"]), 1, &[&[1, 3, 3, 4], &[2, 2, 2, 3]]);
    assert_eq!(shape, [1, 2, 1, 2]);
    let front = |o: usize, c: usize, i: usize, j: usize| w[((o * 2 + c) * 2 + i) * 3 + j];
    assert!(close(&found, &wanted(&front, 1)), "{found:?}");
    // [2, 2, 3, 2] fits both ways, and is read as the standard's.
    let w = elements(36);
    let (shape, found) = run(own(&["x", "w"]), 1, &[&[1, 3, 3, 4], &[2, 3, 3, 2]]);
    assert_eq!(shape, [1, 1, 1, 2]);
    let behind = |out: usize| -> f64 {
        let all = (0..9).flat_map(|at| (0..2).map(move |c| (at, c)));
        all.map(|(at, c)| x[at * 4 + out * 2 + c] * w[(out * 9 + at) * 2 + c]).sum()
    };
    assert!(close(&found, &[behind(0), behind(1)]), "{found:?}");
}

#[test]
fn groups_of_channels_that_are_behind() {
    for is_last in [true, false] {
        let own = NodeProto {
            domain: Some("com.microsoft".into()),
            attribute: vec![
                int("groups", 2),
                int("activation", 1),
                int("channels_last", i64::from(is_last)),
            ],
            ..node("GroupNorm", &["x", "s", "b"], &["y"])
        };
        let shape: &[usize] = if is_last { &[1, 2, 3, 4] } else { &[1, 4, 2, 3] };
        let (_, found) = run(own, 1, &[shape, &[4], &[4]]);
        let (x, s) = (elements(24), elements(4));
        let channel = |i: usize| if is_last { i % 4 } else { i / 6 };
        let wanted = |i: usize| {
            let of = (0..24).filter(|&j| channel(j) / 2 == channel(i) / 2).map(|j| x[j]);
            let of: Vec<f64> = of.collect();
            let mean = of.iter().sum::<f64>() / 12.0;
            let variance = of.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 12.0;
            let y = (x[i] - mean) / (variance + 1e-5).sqrt() * s[channel(i)] + s[channel(i)];
            y / (1.0 + (-y).exp())
        };
        assert!(close(&found, &(0..24).map(wanted).collect::<Vec<f64>>()), "{found:?}");
    }
}

/// Windows that are larger than the image, by less than a stride, are one.
#[test]
fn windows_larger_than_the_image() {
    let own = |kind: &str, kernel: &[i64]| NodeProto {
        attribute: vec![ints("kernel_shape", kernel), ints("strides", &[2, 2])],
        ..node(kind, &["x"], &["y"])
    };
    let image: &[usize] = &[1, 1, 1, 2];
    for (kind, wanted) in [("MaxPool", 1.0), ("AveragePool", -0.5), ("LpPool", 5f64.sqrt())] {
        let (shape, found) = run(own(kind, &[2, 3]), 21, &[image]);
        assert_eq!(shape, [1, 1, 1, 1], "{kind}");
        assert!(close(&found, &[wanted]), "{kind}: {found:?}");
    }
}
