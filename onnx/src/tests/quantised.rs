//! Random products and convolutions of quantised tensors, against sums of integers.

use super::{node, port};
use crate::model::Model;
use crate::proto::attribute_proto::AttributeType;
use crate::proto::tensor_proto::DataType;
use crate::proto::{
    AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
};
use prost::Message;
use std::sync::OnceLock;
use zyx_core::{DType, Device, Tensor};

fn device() -> Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(super::device).clone()
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn flip(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Integers with their extents, of `u8` or `i8`.
struct Bytes {
    signed: bool,
    dims: Vec<usize>,
    all: Vec<i64>,
}

impl Bytes {
    fn new(dims: &[usize], rng: &mut Rng) -> Bytes {
        let signed = rng.flip();
        let least = if signed { -128 } else { 0 };
        let one = |rng: &mut Rng| match rng.below(6) {
            0 => least,
            1 => least + 255,
            _ => least + rng.below(256) as i64,
        };
        let all = (0..dims.iter().product()).map(|_| one(rng)).collect();
        Bytes { signed, dims: dims.to_vec(), all }
    }

    /// Of the kind of others.
    fn like(&self, dims: &[usize], rng: &mut Rng) -> Bytes {
        loop {
            let other = Bytes::new(dims, rng);
            if other.signed == self.signed {
                return other;
            }
        }
    }

    fn dtype(&self) -> DType {
        if self.signed { DType::I8 } else { DType::U8 }
    }

    fn proto(&self, name: &str) -> TensorProto {
        let kind = if self.signed { DataType::Int8 } else { DataType::Uint8 };
        let bytes: Vec<u8> = self.all.iter().map(|&x| x as u8).collect();
        tensor(name, kind, &self.dims, bytes)
    }

    fn given(&self) -> Tensor {
        let bytes: Vec<u8> = self.all.iter().map(|&x| x as u8).collect();
        Tensor::from_bytes(&bytes, self.dtype(), self.dims.clone(), &device()).unwrap()
    }
}

fn tensor(name: &str, kind: DataType, dims: &[usize], bytes: Vec<u8>) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.iter().map(|&n| n as i64).collect(),
        data_type: Some(kind as i32),
        raw_data: Some(bytes.into()),
        ..Default::default()
    }
}

fn ints(name: &str, ints: &[usize]) -> AttributeProto {
    let ints = ints.iter().map(|&n| n as i64).collect();
    let kind = Some(AttributeType::Ints as i32);
    AttributeProto { name: Some(name.into()), r#type: kind, ints, ..Default::default() }
}

fn int(name: &str, i: usize) -> AttributeProto {
    let kind = Some(AttributeType::Int as i32);
    AttributeProto {
        name: Some(name.into()),
        r#type: kind,
        i: Some(i as i64),
        ..Default::default()
    }
}

/// A model on its way, with what it is given.
#[derive(Default)]
struct Making {
    graph: GraphProto,
    given: Vec<(String, Tensor)>,
}

impl Making {
    /// A value, as an input or a constant.
    fn bytes(&mut self, name: &str, value: &Bytes, rng: &mut Rng) {
        if rng.flip() {
            self.graph.initializer.push(value.proto(name));
        } else {
            self.graph.input.push(port(name));
            self.given.push((name.to_owned(), value.given()));
        }
    }

    fn node(&mut self, kind: &str, inputs: &[&str], output: &str, attributes: Vec<AttributeProto>) {
        let node = NodeProto { attribute: attributes, ..node(kind, inputs, &[output]) };
        self.graph.node.push(node);
    }

    /// The result `y`, computed twice: what was kept of constants is the same.
    fn run(mut self) -> Vec<Tensor> {
        self.graph.output = vec![port("y")];
        let opset = OperatorSetIdProto { domain: Some("".into()), version: Some(21) };
        let proto =
            ModelProto { graph: Some(self.graph), opset_import: vec![opset], ..Default::default() };
        let model = Model::from_bytes(proto.encode_to_vec(), &device()).unwrap();
        let given = || self.given.iter().map(|(name, x)| (name.as_str(), x.clone()));
        (0..2).map(|_| model.run(given()).unwrap().remove(0)).collect()
    }
}

/// Scales, which any float holds, but no half the products of.
fn scales(n: Option<usize>, half: bool, rng: &mut Rng) -> (Vec<f64>, TensorProto) {
    let one = |_| (1.0 + rng.below(8) as f64 / 8.0) * 0.5f64.powi(9 + rng.below(4) as i32);
    let all: Vec<f64> = (0..n.unwrap_or(1)).map(one).collect();
    let dims = n.map_or(vec![], |n| vec![n]);
    let (kind, bytes): (_, Vec<u8>) = match half {
        true => {
            let halves = all.iter().flat_map(|&x| half::f16::from_f64(x).to_le_bytes());
            (DataType::Float16, halves.collect())
        }
        false => (DataType::Float, all.iter().flat_map(|&x| (x as f32).to_le_bytes()).collect()),
    };
    (all, tensor("", kind, &dims, bytes))
}

fn named(name: &str, proto: TensorProto) -> TensorProto {
    TensorProto { name: Some(name.into()), ..proto }
}

/// What a product has beside its integers: zero points of both sides, and whether it is of dequantised numbers.
struct Sides {
    zeros: [Bytes; 2],
    scales: Option<[Vec<f64>; 2]>,
}

/// Writes both operands and gives their names: integers, or floats that stand for them. `along` is the extent along which
/// zero points and scales may differ, and the axis.
fn sides(
    making: &mut Making,
    values: [&Bytes; 2],
    along: [Option<(usize, usize)>; 2],
    floats: bool,
    rng: &mut Rng,
) -> Sides {
    let half = rng.flip();
    let mut all = Vec::new();
    let mut zeros = Vec::new();
    for (side, value) in values.into_iter().enumerate() {
        let [name, zero, scale] = [["a", "a_zero", "a_scale"], ["b", "b_zero", "b_scale"]][side];
        let differs = along[side].filter(|_| rng.flip());
        let n = differs.map(|(n, _)| n);
        let zeros_ = value.like(&n.map_or(vec![], |n| vec![n]), rng);
        making.bytes(zero, &zeros_, rng);
        if !floats {
            making.bytes(name, value, rng);
        } else {
            let codes = format!("{name}_codes");
            making.bytes(&codes, value, rng);
            let (numbers, proto) = scales(n, half, rng);
            making.graph.initializer.push(named(scale, proto));
            let axis = differs.map_or(0, |(_, axis)| axis);
            let attributes = vec![int("axis", axis)];
            making.node("DequantizeLinear", &[&codes, scale, zero], name, attributes);
            all.push(numbers);
        }
        zeros.push(zeros_);
    }
    let scales = <[_; 2]>::try_from(all).ok();
    Sides { zeros: zeros.try_into().unwrap_or_else(|_| unreachable!()), scales }
}

impl Sides {
    /// Entry `i` along the axis of a side.
    fn zero(&self, side: usize, i: usize) -> i64 {
        let all = &self.zeros[side].all;
        all[i % all.len()]
    }

    fn scaled(&self, sum: i64, [i, j]: [usize; 2]) -> f64 {
        let scale = |all: &[f64], i: usize| all[i % all.len()];
        self.scales.as_ref().map_or(sum as f64, |[a, b]| sum as f64 * scale(a, i) * scale(b, j))
    }
}

fn compare(what: &str, making: Making, dims: &[usize], want: &[f64]) {
    for y in making.run() {
        assert_eq!(y.shape().dims(), dims, "{what}");
        let eps = if y.dtype() == DType::F16 { 1e-3 } else { 1e-6 };
        let got = y.cast(DType::F64).to_vec::<f64>().unwrap();
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            let near = (got - want).abs() <= eps * want.abs().max(6e-5);
            assert!(near, "{what}: element {i} is {got}, not {want}");
        }
    }
}

#[test]
fn random_products_of_quantised_matrices() {
    for seed in 0..60 {
        let rng = &mut Rng(seed);
        let [batch, m, n, k] =
            [1 + rng.below(3), 1 + rng.below(6), 1 + rng.below(6), 1 + rng.below(9)];
        let kind = *["MatMulInteger", "MatMul", "Gemm"].get(rng.below(3)).unwrap();
        let floats = kind != "MatMulInteger";
        let batched = kind != "Gemm" && rng.flip();
        let turned = if kind == "Gemm" { [rng.flip(), rng.flip()] } else { [false; 2] };
        let dims = |rows, columns, turned, batched: bool| {
            let own = if turned { [columns, rows] } else { [rows, columns] };
            if batched { [&[batch], &own[..]].concat() } else { own.to_vec() }
        };
        let (a, b) = (
            Bytes::new(&dims(m, k, turned[0], batched), rng),
            Bytes::new(&dims(k, n, turned[1], batched && seed % 2 == 0), rng),
        );
        let mut making = Making::default();
        let rows = a.dims.len() - 2 + usize::from(turned[0]);
        let columns = b.dims.len() - 1 - usize::from(turned[1]);
        let along = [Some((m, rows)), Some((n, columns))];
        let sides = sides(&mut making, [&a, &b], along, floats, rng);
        let attributes = match kind {
            "Gemm" => {
                let flag = |name, turned| int(name, usize::from(turned));
                vec![flag("transA", turned[0]), flag("transB", turned[1])]
            }
            _ => Vec::new(),
        };
        let inputs: &[&str] = if floats { &["a", "b"] } else { &["a", "b", "a_zero", "b_zero"] };
        making.node(kind, inputs, "y", attributes);
        let at = |x: &Bytes, turned: bool, batch: usize, row: usize, column: usize| {
            let [.., rows, columns] = x.dims[..] else { unreachable!() };
            let batch = if x.dims.len() == 3 { batch } else { 0 };
            let (row, column) = if turned { (column, row) } else { (row, column) };
            x.all[(batch * rows + row) * columns + column]
        };
        let batches = if batched { batch } else { 1 };
        let mut want = Vec::new();
        for (z, i) in (0..batches).flat_map(|z| (0..m).map(move |i| (z, i))) {
            for j in 0..n {
                let product = |l: usize| {
                    let x = at(&a, turned[0], z, i, l) - sides.zero(0, i);
                    x * (at(&b, turned[1], z, l, j) - sides.zero(1, j))
                };
                want.push(sides.scaled((0..k).map(product).sum(), [i, j]));
            }
        }
        let shape = if batched { vec![batch, m, n] } else { vec![m, n] };
        compare(&format!("seed {seed}, {kind}"), making, &shape, &want);
    }
}

#[test]
fn random_convolutions_of_quantised_images() {
    for seed in 0..60 {
        let rng = &mut Rng(1000 + seed);
        let floats = rng.flip();
        let groups = 1 + rng.below(3);
        let (images, c, o) = (1 + rng.below(2), 1 + rng.below(3), 1 + rng.below(3));
        let (kernel, stride) =
            ([1 + rng.below(3), 1 + rng.below(3)], [1 + rng.below(2), 1 + rng.below(2)]);
        let dilation = [1 + rng.below(2), 1 + rng.below(2)];
        let pads: [usize; 4] = std::array::from_fn(|_| rng.below(3));
        let size = [5 + rng.below(3), 5 + rng.below(3)];
        let x = Bytes::new(&[images, groups * c, size[0], size[1]], rng);
        let w = Bytes::new(&[groups * o, c, kernel[0], kernel[1]], rng);
        let mut making = Making::default();
        let sides = sides(&mut making, [&x, &w], [None, Some((groups * o, 0))], floats, rng);
        let attributes = vec![
            ints("strides", &stride),
            ints("dilations", &dilation),
            ints("pads", &pads),
            int("group", groups),
        ];
        match floats {
            true => making.node("Conv", &["a", "b"], "y", attributes),
            false => making.node("ConvInteger", &["a", "b", "a_zero", "b_zero"], "y", attributes),
        }
        let extent = |i: usize| {
            (size[i] + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilation[i] - 1) / stride[i] + 1
        };
        let (height, width) = (extent(0), extent(1));
        let mut want = Vec::new();
        for i in 0..images * groups * o * height * width {
            let (p, q) = (i / width % height, i % width);
            let (channel, image) =
                (i / width / height % (groups * o), i / width / height / groups / o);
            let mut sum = 0;
            for j in 0..c * kernel[0] * kernel[1] {
                let (r, s, d) =
                    (j / kernel[1] % kernel[0], j % kernel[1], j / kernel[1] / kernel[0]);
                let place = |p: usize, r: usize, i: usize| {
                    (p * stride[i] + r * dilation[i])
                        .checked_sub(pads[i])
                        .filter(|&at| at < size[i])
                };
                let (Some(h), Some(v)) = (place(p, r, 0), place(q, s, 1)) else { continue };
                let from = ((image * groups + channel / o) * c + d) * size[0] + h;
                let x = x.all[from * size[1] + v] - sides.zero(0, 0);
                sum +=
                    x * (w.all[channel * c * kernel[0] * kernel[1] + j] - sides.zero(1, channel));
            }
            want.push(sides.scaled(sum, [0, channel]));
        }
        let shape = [images, groups * o, height, width];
        compare(&format!("seed {seed}"), making, &shape, &want);
    }
}

/// Zero points with as many axes as the matrices: each row of each entry of a batch has its own.
#[test]
fn zero_points_of_rows_of_a_batch() {
    let rng = &mut Rng(7);
    let (a, b) = (Bytes::new(&[2, 1, 3], rng), Bytes::new(&[2, 3, 4], rng));
    let (p, q) = (a.like(&[2, 1, 1], rng), b.like(&[2, 1, 4], rng));
    let mut making = Making::default();
    for (name, value) in [("a", &a), ("b", &b), ("p", &p), ("q", &q)] {
        making.bytes(name, value, rng);
    }
    making.node("MatMulInteger", &["a", "b", "p", "q"], "y", Vec::new());
    let sum = |i: usize| -> i64 {
        let (z, j) = (i / 4, i % 4);
        let product = |l: usize| {
            (a.all[z * 3 + l] - p.all[z]) * (b.all[(z * 3 + l) * 4 + j] - q.all[z * 4 + j])
        };
        (0..3).map(product).sum()
    };
    let want: Vec<f64> = (0..8).map(|i| sum(i) as f64).collect();
    compare("rows of a batch", making, &[2, 1, 4], &want);
}
