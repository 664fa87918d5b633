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

/// The outputs of a classifier: labels, and scores in rows.
fn classify(
    kind: &str,
    attributes: Vec<AttributeProto>,
    x: &[f32],
    dims: [usize; 2],
) -> (Vec<i64>, Vec<f64>) {
    let domain = Some("ai.onnx.ml".to_owned());
    let own = NodeProto {
        attribute: attributes,
        domain: domain.clone(),
        ..node(kind, &["x"], &["label", "y"])
    };
    let mut all = graph(vec![own]);
    all.output.insert(0, super::port("label"));
    let mut proto = model(all);
    proto.opset_import.push(OperatorSetIdProto { domain, version: Some(1) });
    let device = device();
    let model = Model::from_bytes(proto.encode_to_vec(), &device).unwrap();
    let x = Tensor::from_slice(x, dims, &device).unwrap();
    let y = model.run([("x", x)]).unwrap();
    let [label, y] = [&y[0], &y[1]].map(|y| Value::from(y).host().unwrap());
    (label.ints(), y.floats())
}

fn numbers(n: usize, seed: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37 + seed * 53) % 101) as f32 / 50.0 - 1.0).collect()
}

/// Three classes of vectors of two features: scores of pairs and wins by their definition, and probabilities that are
/// the minimum that they are defined as.
#[test]
fn support_vector_machines() {
    let (counts, n) = ([2usize, 3, 2], 7);
    let (vectors, weights) = (numbers(2 * n, 1), numbers(2 * n, 2));
    let (shifts, x) = (numbers(3, 3), numbers(10, 4));
    let (a, b) = (vec![-1.5f32, -1.0, -2.0], numbers(3, 5));
    let text = AttributeProto {
        s: Some(b"RBF".to_vec().into()),
        ..attribute("kernel_type", AttributeType::String)
    };
    let mut attributes = vec![
        text,
        floats("kernel_params", &[0.5, 0.0, 0.0]),
        floats("support_vectors", &vectors),
        floats("coefficients", &weights),
        floats("rho", &shifts),
        ints("vectors_per_class", &counts.map(|n| n as i64)),
        ints("classlabels_ints", &[10, 20, 30]),
    ];
    let (labels, scores) = classify("SVMClassifier", attributes.clone(), &x, [5, 2]);
    attributes.extend([floats("prob_a", &a), floats("prob_b", &b)]);
    let (same, probabilities) = classify("SVMClassifier", attributes, &x, [5, 2]);
    assert_eq!(labels, same);
    let wide = |x: f32| f64::from(x);
    for (row, x) in x.chunks(2).enumerate() {
        let kernel = |v: usize| {
            let apart = (0..2).map(|i| (wide(x[i]) - wide(vectors[2 * v + i])).powi(2));
            (-0.5 * apart.sum::<f64>()).exp()
        };
        let of = |class: usize, weights: &[f32]| -> f64 {
            let first: usize = counts[..class].iter().sum();
            (first..first + counts[class]).map(|v| wide(weights[v]) * kernel(v)).sum()
        };
        let (mut wins, mut won) = ([0; 3], [[0.0; 3]; 3]);
        for (pair, (i, j)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
            let (for_i, for_j) = (&weights[(j - 1) * n..], &weights[i * n..]);
            let score = of(i, for_i) + of(j, for_j) + wide(shifts[pair]);
            assert!((scores[3 * row + pair] - score).abs() < 1e-5);
            wins[if score > 0.0 { i } else { j }] += 1;
            won[i][j] = 1.0 / (1.0 + (score * wide(a[pair]) + wide(b[pair])).exp());
            won[j][i] = 1.0 - won[i][j];
        }
        let most = (0..3).rev().max_by_key(|&i| wins[i]).unwrap();
        assert_eq!(labels[row], [10, 20, 30][most], "{wins:?}");
        let p = &probabilities[3 * row..3 * row + 3];
        let loss = |p: &[f64]| -> f64 {
            let pairs = (0..3).flat_map(|i| (0..3).map(move |j| (i, j))).filter(|(i, j)| i != j);
            pairs.map(|(i, j)| (won[j][i] * p[i] - won[i][j] * p[j]).powi(2)).sum()
        };
        assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{p:?}");
        for (i, j) in [(0, 1), (1, 2), (2, 0)] {
            let moved = |by: f64| {
                let mut p = p.to_vec();
                (p[i], p[j]) = (p[i] + by, p[j] - by);
                loss(&p)
            };
            assert!(loss(p) < moved(0.05).min(moved(-0.05)), "{p:?}");
        }
    }
}

/// One score says by its sign which of two classes it is; of more, the largest is the class.
#[test]
fn linear_classifiers() {
    let x = numbers(10, 1);
    for classes in [1, 3] {
        let (weights, shifts) = (numbers(2 * classes, 2), numbers(classes, 3));
        let attributes = vec![
            floats("coefficients", &weights),
            floats("intercepts", &shifts),
            ints("classlabels_ints", &[10, 20, 30][..classes.max(2)]),
        ];
        let (labels, scores) = classify("LinearClassifier", attributes, &x, [5, 2]);
        for (row, x) in x.chunks(2).enumerate() {
            let score = |k: usize| {
                let products = (0..2).map(|i| f64::from(x[i]) * f64::from(weights[2 * k + i]));
                products.sum::<f64>() + f64::from(shifts[k])
            };
            let wanted: Vec<f64> = match classes {
                1 => vec![1.0 - score(0), score(0)],
                n => (0..n).map(score).collect(),
            };
            let found = &scores[row * wanted.len()..][..wanted.len()];
            assert!(found.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?}");
            let best = match classes {
                1 => usize::from(score(0) > 0.0),
                n => (0..n).max_by(|&i, &j| score(i).total_cmp(&score(j))).unwrap(),
            };
            assert_eq!(labels[row], [10, 20, 30][best]);
        }
    }
}
