//! Nodes with attributes, ranks and extents that mean ill, and models whose bytes are damaged, end in values or errors:
//! never in a panic, an abort, or more memory than the budget has.
//!
//! They run in a process of their own whose address space is limited, so that what allocates without asking ends it.
//! `ZYX_ONNX_HOSTILE` says how many cases each operator has (20), `ZYX_ONNX_HOSTILE_SEED` which ones. With
//! `ZYX_ONNX_NODES`, the folder of the standard's tests, its models are mutated, too.

use super::{device, graph, model, node, port};
use crate::budget::Budget;
use crate::coded::{Coded, CodedType};
use crate::host::Host;
use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use crate::value::Value;
use prost::Message;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use zyx_core::{DType, Device, Scalar, Tensor};

thread_local! {
    static ASKED: RefCell<BTreeMap<String, ()>> = const { RefCell::new(BTreeMap::new()) };
}

/// Notes that an operator asks for an attribute.
pub(crate) fn note(name: &str) {
    ASKED.with_borrow_mut(|asked| asked.insert(name.to_owned(), ()));
}

/// Bytes that a model may take, and KiB of address space that the process may have.
const BUDGET: usize = 32 << 20;
const ADDRESSES: usize = 2 << 20;

/// SplitMix64 (Steele, Lea and Flood, 2014), and whether most of its numbers are plausible.
struct Dice(u64, bool);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())].clone()
    }

    fn int(&mut self) -> i64 {
        const HOSTILE: [i64; 16] = [
            i64::MIN,
            i64::MAX,
            i64::MIN + 1,
            -1,
            -2,
            -7,
            0,
            1 << 31,
            1 << 32,
            (1 << 32) + 1,
            1 << 40,
            1 << 48,
            1 << 62,
            -(1 << 32),
            -(1 << 40),
            1 << 20,
        ];
        if self.one_in(if self.1 { 12 } else { 3 }) {
            self.pick(&HOSTILE)
        } else {
            self.pick(&[0, 1, 1, 2, 2, 3, 4, 8])
        }
    }

    fn ints(&mut self) -> Vec<i64> {
        let n = self.pick(&[0, 1, 1, 2, 2, 3, 4, 4, 5, 8]);
        if self.one_in(4) {
            return (0..n as i64).collect();
        }
        let same = self.one_in(4).then(|| self.int());
        (0..n).map(|_| same.unwrap_or_else(|| self.int())).collect()
    }

    fn float(&mut self) -> f32 {
        self.pick(&[0.0, 1.0, 0.5, -1.0, 2.0, 1e-30, 1e30, f32::NAN, f32::INFINITY, -1e30])
    }

    fn text(&mut self) -> &'static str {
        self.pick(&[
            "",
            "constant",
            "reflect",
            "edge",
            "wrap",
            "SAME_UPPER",
            "VALID",
            "bidirectional",
            "reverse",
            "add",
            "linear",
            "cubic",
            "nearest",
            "align_corners",
            "tf_crop_and_resize",
            "not_larger",
            "CRD",
            "circular",
            "ij,jk->ik",
            "...i,i",
            "i->",
            "BRANCH_LEQ",
            "LEAF",
            "SOFTMAX",
            "TF",
            "IDF",
            "LOWER",
            "Relu",
            "a b",
            "\u{e9}",
        ])
    }

    /// An attribute of a kind that the operator may want.
    fn attribute(&mut self, name: &str, kind: Option<AttributeType>) -> AttributeProto {
        use AttributeType::{Float, Floats, Graph, Int, Ints, String, Strings, Tensor};
        let kinds = [Int, Int, Ints, Ints, Float, String, Floats, Strings, Tensor, Graph];
        let kind = kind.unwrap_or_else(|| self.pick(&kinds));
        let n = self.below(4);
        let mut own = AttributeProto {
            name: Some(name.into()),
            r#type: Some(kind as i32),
            i: Some(self.int()),
            f: Some(self.float()),
            s: Some(self.text().as_bytes().to_vec().into()),
            ints: self.ints(),
            floats: (0..n).map(|_| self.float()).collect(),
            strings: (0..n).map(|_| self.text().as_bytes().to_vec().into()).collect(),
            ..Default::default()
        };
        match kind {
            Tensor => own.t = Some(self.tensor()),
            Graph => {
                let kind = self.pick(&["Identity", "Not", "Add"]);
                let mut body = graph(vec![node(kind, &["x", "x"], &["y"])]);
                body.input = (0..n).map(|i| port(["x", "b", "c"][i.min(2)])).collect();
                body.output = (0..self.below(3)).map(|_| port("y")).collect();
                own.g = Some(body);
            }
            _ => {}
        }
        own
    }

    /// A tensor of integers, mostly, whose bytes are sometimes too few or too many.
    fn tensor(&mut self) -> TensorProto {
        let ints = self.ints();
        let (element, size) =
            self.pick(&[(7, 8), (7, 8), (7, 8), (1, 4), (6, 4), (9, 1), (11, 8), (2, 1), (17, 1)]);
        let bytes = |x: &i64| match element {
            1 => (*x as f32).to_le_bytes().to_vec(),
            11 => (*x as f64).to_le_bytes().to_vec(),
            _ => x.to_le_bytes()[..size].to_vec(),
        };
        TensorProto {
            dims: if self.one_in(6) { self.ints() } else { vec![ints.len() as i64] },
            data_type: Some(if self.one_in(20) { self.pick(&[8, 16, 21, 23]) } else { element }),
            raw_data: Some(ints.iter().flat_map(bytes).collect::<Vec<u8>>().into()),
            ..Default::default()
        }
    }

    fn shape(&mut self) -> Vec<usize> {
        let rank = self.pick(&[0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6]);
        let mut shape: Vec<usize> = (0..rank).map(|_| self.pick(&[1, 2, 2, 4, 4, 8])).collect();
        if rank > 0 && self.one_in(6) {
            let axis = self.below(rank);
            shape[axis] = 0;
            if self.one_in(2) {
                let axis = self.below(rank);
                shape[axis] = self.pick(&[0, 1 << 20, 1 << 31, 1 << 40]);
            }
        }
        shape
    }

    fn value(&mut self, device: &Device) -> Value {
        let shape = self.shape();
        let dtypes = [
            DType::F32,
            DType::F32,
            DType::F32,
            DType::I64,
            DType::I32,
            DType::U8,
            DType::Bool,
            DType::F16,
        ];
        let dtype = self.pick(&dtypes);
        match self.below(16) {
            0..8 => {
                let numel: usize = shape.iter().product();
                if numel > 1 << 20 {
                    return Tensor::zeros(shape, dtype, device).into();
                }
                let numbers: Vec<i64> = (0..numel).map(|i| (i % 5) as i64 - 1).collect();
                Tensor::from_slice(&numbers, shape, device).unwrap().cast(dtype).into()
            }
            8..12 => {
                let ints = self.ints();
                let shape =
                    if self.one_in(4) && ints.len() == 1 { vec![] } else { vec![ints.len()] };
                let dtype = self.pick(&[DType::I64, DType::I64, DType::I64, DType::F32]);
                let numbers = ints.iter().map(|&x| Scalar::from(x).cast(dtype)).collect();
                Host::new(shape, dtype, numbers).into()
            }
            12 => {
                let n = self.below(4);
                Value::Strings(vec![n], (0..n).map(|_| self.text().to_owned()).collect())
            }
            13 => {
                let n = self.below(3);
                Value::Sequence((0..n).map(|_| self.value(device)).collect())
            }
            14 => {
                let kind = self.pick(&[CodedType::Int4, CodedType::Float8E4M3Fn, CodedType::Uint2]);
                let dtype = if kind == CodedType::Int4 { DType::I8 } else { DType::U8 };
                let numel = shape.iter().product::<usize>();
                let shape = if numel > 1 << 20 { vec![2] } else { shape };
                Coded::new(kind, &Tensor::zeros(shape, dtype, device)).unwrap().into()
            }
            _ => match self.one_in(3) {
                true => {
                    Tensor::zeros([self.pick(&[1 << 20, 1 << 31, 1 << 40])], dtype, device).into()
                }
                false => Value::Optional(None),
            },
        }
    }
}

/// Prints a case, then runs it; the reason if it panics.
fn attempt(
    case: &str,
    bytes: &[u8],
    inputs: Vec<Value>,
    panics: &mut Vec<String>,
) -> Option<String> {
    println!("case {case}");
    let start = Instant::now();
    let device = inputs.iter().find_map(|value| match value {
        Value::Tensor(tensor) => Some(tensor.device().clone()),
        _ => None,
    });
    let device = device.unwrap_or_else(device_of_tests);
    let run = || {
        let model = Model::within(Budget::new(BUDGET), bytes.to_vec(), &device)?;
        let names: Vec<String> = model.inputs().iter().map(|port| port.name.clone()).collect();
        model.graph(names.iter().map(String::as_str).zip(inputs))
    };
    let outcome = catch_unwind(AssertUnwindSafe(run));
    if start.elapsed() > Duration::from_secs(2) {
        println!("slow {:?} {case}", start.elapsed());
    }
    match outcome {
        Ok(Ok(_)) => {
            println!("runs");
            None
        }
        Ok(Err(error)) => {
            let said = error.to_string();
            println!("said {}", said.chars().take(300).collect::<String>());
            Some(said)
        }
        Err(_) => {
            panics.push(case.to_owned());
            None
        }
    }
}

fn device_of_tests() -> Device {
    device()
}

/// Single nodes of every operator.
fn nodes(seed: u64, count: usize, panics: &mut Vec<String>) {
    let device = device();
    let only = std::env::var("ZYX_ONNX_HOSTILE_ONLY").ok();
    for (domain, name, since) in crate::operators() {
        let mut kinds: BTreeMap<String, Option<AttributeType>> = BTreeMap::new();
        let full = format!("{domain}.{name}");
        if only.as_ref().is_some_and(|only| *only != full) {
            continue;
        }
        let own = full.bytes().fold(0u64, |n, byte| n.wrapping_mul(31).wrapping_add(byte.into()));
        for i in 0..count {
            let mut dice =
                Dice(seed ^ own.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ i as u64, i % 3 > 0);
            let version = if dice.one_in(3) {
                since
            } else {
                dice.pick(&[since, 10, 13, 18, 24, 28]).max(since)
            };
            let inputs: Vec<Value> =
                (0..dice.pick(&[1, 2, 2, 3, 3, 4, 5, 7, 8])).map(|_| dice.value(&device)).collect();
            let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
            let mut attributes = Vec::new();
            for (name, kind) in &kinds {
                if !dice.one_in(3) {
                    attributes.push(dice.attribute(name, *kind));
                }
            }
            let outputs = ["y", "z", "v", "w"];
            let outputs = &outputs[..dice.pick(&[1, 1, 2, 3, 4])];
            let node = NodeProto {
                op_type: Some(name.into()),
                domain: Some(domain.into()),
                input: names.clone(),
                output: outputs.iter().map(|&name| name.into()).collect(),
                attribute: attributes,
                ..Default::default()
            };
            let mut all = graph(vec![node]);
            all.input = names.iter().map(|name| port(name)).collect();
            let opset = OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
            let proto = ModelProto { opset_import: vec![opset], ..model(all) };
            let shapes: Vec<String> = inputs.iter().map(Value::kind).collect();
            let case = format!("{full} {version} #{i} seed {seed}: {}", shapes.join("; "));
            ASKED.with_borrow_mut(BTreeMap::clear);
            let error = attempt(&case, &proto.encode_to_vec(), inputs, panics);
            for name in ASKED.with_borrow(|asked| asked.keys().cloned().collect::<Vec<_>>()) {
                let wanted =
                    error.as_ref().and_then(|e| e.split_once(&format!("attribute `{name}` is ")));
                let wanted = wanted.and_then(|(_, rest)| rest.split_once("not "));
                let kind = match wanted.map(|(_, wanted)| wanted) {
                    Some("an integer") => Some(AttributeType::Int),
                    Some("a number") => Some(AttributeType::Float),
                    Some("a string") => Some(AttributeType::String),
                    Some("a list of integers") => Some(AttributeType::Ints),
                    Some("a list of numbers") => Some(AttributeType::Floats),
                    Some("a list of strings") => Some(AttributeType::Strings),
                    _ => None,
                };
                let known = kinds.entry(name).or_default();
                *known = known.or(kind);
            }
        }
    }
}

impl Dice {
    /// Bytes of a model with a few of them changed, left out or added.
    fn damage(&mut self, mut bytes: Vec<u8>) -> Vec<u8> {
        for _ in 0..=self.below(3) {
            let place = self.below(bytes.len());
            match self.below(3) {
                0 => bytes[place] = self.next() as u8,
                1 => bytes.truncate(place + 1),
                _ => bytes.insert(place, self.pick(&[0, 0x7f, 0x80, 0xff])),
            }
        }
        bytes
    }

    /// Other attributes and initializers.
    fn mutate(&mut self, all: &mut GraphProto) {
        for attribute in all.node.iter_mut().flat_map(|node| &mut node.attribute) {
            let own = self.attribute(attribute.name(), Some(attribute.r#type()));
            match (self.one_in(2) || attribute.g.is_some(), self.one_in(3), attribute.ints.len()) {
                (true, ..) => {}
                (false, false, n @ 1..) => attribute.ints[self.below(n)] = self.int(),
                (false, ..) => *attribute = own,
            }
        }
        for tensor in &mut all.initializer {
            if self.one_in(3) {
                *tensor = TensorProto { name: tensor.name.take(), ..self.tensor() };
            }
        }
    }

    /// An input, another one, or one of more or fewer axes or with another number.
    fn input(&mut self, value: Value, device: &Device) -> Value {
        match (self.below(6), value) {
            (0, _) => self.value(device),
            (1, Value::Tensor(x)) => x.unsqueeze(0).unwrap_or(x).into(),
            (2, Value::Tensor(x)) if x.rank() > 0 => x.select_index(0, 0).unwrap_or(x).into(),
            (1, Value::Host(x)) if !x.numbers().is_empty() && x.dtype() != DType::Bool => {
                let mut numbers = x.numbers().to_vec();
                let place = self.below(numbers.len());
                numbers[place] = Scalar::from(self.int()).cast(x.dtype());
                Host::new(x.shape(), x.dtype(), numbers).into()
            }
            (_, value) => value,
        }
    }
}

/// Models of the standard's tests with attributes, inputs and bytes changed.
fn mutants(folder: &Path, seed: u64, count: usize, panics: &mut Vec<String>) {
    let device = device();
    let mut folders: Vec<_> =
        std::fs::read_dir(folder).unwrap().flatten().map(|f| f.path()).collect();
    folders.sort();
    for (at, folder) in folders.iter().enumerate() {
        let Ok(bytes) = std::fs::read(folder.join("model.onnx")) else { continue };
        let Ok(model) = Model::from_bytes(bytes.clone(), &device) else { continue };
        let input = |i: usize| std::fs::read(folder.join(format!("set_0/input_{i}.pb"))).ok();
        let inputs: Vec<_> = (0..model.inputs().len()).map_while(input).collect();
        let proto = ModelProto::decode(bytes.as_slice()).unwrap();
        if bytes.len() > 1 << 20 || proto.graph.is_none() {
            continue;
        }
        for i in 0..count {
            let mut dice = Dice(seed ^ (at as u64) << 32 ^ i as u64, true);
            let mut mutant = proto.clone();
            let all = mutant.graph.as_mut().unwrap();
            all.input.iter_mut().for_each(|port| port.r#type = None);
            let damages = dice.one_in(4);
            if !damages {
                dice.mutate(all);
            }
            let bytes = mutant.encode_to_vec();
            let bytes = if damages { dice.damage(bytes) } else { bytes };
            let mut values = Vec::new();
            for (port, bytes) in model.inputs().iter().zip(&inputs) {
                let Ok(value) = port.read(bytes.clone(), &device) else { break };
                values.push(dice.input(value, &device));
            }
            let name = folder.file_name().unwrap().to_string_lossy();
            let shapes: Vec<String> = values.iter().map(Value::kind).collect();
            let nodes = mutant.graph.as_ref().unwrap().node.iter().flat_map(|n| &n.attribute);
            let said: Vec<String> =
                nodes.map(|a| format!("{}={:?}{:?}{:?}", a.name(), a.i, a.ints, a.s)).collect();
            let case =
                format!("{name} #{i} seed {seed}: {} / {}", shapes.join("; "), said.join(" "));
            attempt(&case, &bytes, values, panics);
        }
    }
}

/// Runs in a process with limited memory.
#[test]
#[ignore = "run by `hostile_models`"]
fn child() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse::<usize>().ok());
    let count = number("ZYX_ONNX_HOSTILE").unwrap_or(20);
    let seed = number("ZYX_ONNX_HOSTILE_SEED").unwrap_or(1) as u64;
    let mut panics = Vec::new();
    nodes(seed, count, &mut panics);
    if let Ok(folder) = std::env::var("ZYX_ONNX_NODES") {
        mutants(Path::new(&folder), seed, count.div_ceil(10), &mut panics);
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
        println!("peak {peak}");
    }
    panics.iter().for_each(|case| println!("panic {case}"));
    assert!(panics.is_empty(), "{} panics", panics.len());
    println!("all ended well");
}

#[test]
#[cfg(target_os = "linux")]
fn hostile_models() {
    let run = std::env::current_exe().unwrap();
    let mut child = Command::new("sh");
    let limited = format!("ulimit -v {ADDRESSES}; exec \"$0\" \"$@\"");
    child.args(["-c", &limited]).arg(run);
    child.args([
        "tests::hostile::child",
        "--exact",
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    let output = child.output().unwrap();
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if out.contains("all ended well") {
        return;
    }
    let panics: Vec<&str> = out.lines().filter(|line| line.starts_with("panic ")).collect();
    let last = out.lines().rfind(|line| line.starts_with("case ")).unwrap_or_default();
    let err: Vec<&str> = err.lines().collect();
    let err = err[err.len().saturating_sub(200)..].join("\n");
    panic!("{}\nlast: {last}\n{err}", panics.join("\n"));
}
