//! Operators of `ai.onnx.ml`, by hand.

use super::{device, graph, model, node};
use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{AttributeProto, NodeProto, OperatorSetIdProto};
use crate::value::Value;
use prost::Message;
use zyx_core::Tensor;

fn attribute(name: &str, kind: AttributeType) -> AttributeProto {
    let kind = Some(kind as i32);
    AttributeProto { name: Some(name.into()), r#type: kind, ..Default::default() }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto { ints: ints.to_vec(), ..attribute(name, AttributeType::Ints) }
}

fn floats(name: &str, floats: &[f32]) -> AttributeProto {
    AttributeProto { floats: floats.to_vec(), ..attribute(name, AttributeType::Floats) }
}

fn run(kind: &str, attributes: Vec<AttributeProto>, x: &[f32], dims: &[usize]) -> Vec<f32> {
    let domain = Some("ai.onnx.ml".to_owned());
    let own =
        NodeProto { attribute: attributes, domain: domain.clone(), ..node(kind, &["x"], &["y"]) };
    let mut proto = model(graph(vec![own]));
    proto.opset_import.push(OperatorSetIdProto { domain, version: Some(3) });
    let device = device();
    let model = Model::from_bytes(proto.encode_to_vec(), &device).unwrap();
    let x = Tensor::from_slice(x, dims.to_vec(), &device).unwrap();
    model.run([("x", x)]).unwrap().remove(0).to_vec().unwrap()
}

#[test]
fn elements_of_no_class_are_zeros() {
    let y = run("OneHotEncoder", vec![ints("cats_int64s", &[7, 5, 9])], &[5.0, 1.0, 9.0], &[3]);
    assert_eq!(y, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
}

/// One tree of two leaves, which vote for one target each.
#[test]
fn targets_without_votes_have_their_base_values() {
    for how in ["MIN", "MAX", "SUM"] {
        let text = |s: &str| s.as_bytes().to_vec().into();
        let strings = AttributeProto {
            strings: ["BRANCH_LEQ", "LEAF", "LEAF"].map(text).to_vec(),
            ..attribute("nodes_modes", AttributeType::Strings)
        };
        let how = AttributeProto {
            s: Some(text(how)),
            ..attribute("aggregate_function", AttributeType::String)
        };
        let targets = AttributeProto { i: Some(2), ..attribute("n_targets", AttributeType::Int) };
        let attributes = vec![
            strings,
            how,
            targets,
            ints("nodes_treeids", &[0, 0, 0]),
            ints("nodes_nodeids", &[0, 1, 2]),
            ints("nodes_featureids", &[0, 0, 0]),
            ints("nodes_truenodeids", &[1, 0, 0]),
            ints("nodes_falsenodeids", &[2, 0, 0]),
            floats("nodes_values", &[0.5, 0.0, 0.0]),
            floats("base_values", &[10.0, 20.0]),
            ints("target_treeids", &[0, 0]),
            ints("target_nodeids", &[1, 2]),
            ints("target_ids", &[0, 1]),
            floats("target_weights", &[1.0, 2.0]),
        ];
        let y = run("TreeEnsembleRegressor", attributes, &[0.0, 1.0], &[2, 1]);
        assert_eq!(y, [11.0, 20.0, 10.0, 22.0]);
    }
}

/// A row of scores becomes a map from classes, in their order.
#[test]
fn maps_of_scores() {
    let texts = |names: &[&str]| AttributeProto {
        strings: names.iter().map(|name| name.as_bytes().to_vec().into()).collect(),
        ..attribute("classlabels_strings", AttributeType::Strings)
    };
    let domain = Some("ai.onnx.ml".to_owned());
    let device = device();
    let x = Tensor::new([[1f32, 2.0], [3.0, 4.0]], &device).unwrap();
    for own in [texts(&["b", "a"]), ints("classlabels_int64s", &[7, -1]), texts(&["b"])] {
        let own = NodeProto {
            attribute: vec![own],
            domain: domain.clone(),
            ..node("ZipMap", &["x"], &["y"])
        };
        let mut proto = model(graph(vec![own]));
        proto.opset_import.push(OperatorSetIdProto { domain: domain.clone(), version: Some(1) });
        let model = Model::from_bytes(proto.encode_to_vec(), &device).unwrap();
        let Ok(mut found) = model.graph([("x", (&x).into())]) else {
            // One class of two scores.
            assert!(proto.graph.unwrap().node[0].attribute[0].strings.len() == 1);
            continue;
        };
        let Value::Sequence(maps) = found.remove(0) else { panic!("{found:?}") };
        let rows: Vec<(Vec<String>, Vec<f64>)> = maps
            .into_iter()
            .map(|map| match map {
                Value::Map(keys, values) => match *keys {
                    Value::Strings(_, keys) => (keys, values.floats()),
                    keys => {
                        let keys = keys.host().unwrap().ints();
                        (keys.iter().map(i64::to_string).collect(), values.floats())
                    }
                },
                other => panic!("{other:?}"),
            })
            .collect();
        let keys = if rows[0].0[0] == "b" { ["b", "a"] } else { ["7", "-1"] }.map(str::to_owned);
        let wanted = [(keys.to_vec(), vec![1.0, 2.0]), (keys.to_vec(), vec![3.0, 4.0])];
        assert_eq!(rows, wanted);
    }
}
