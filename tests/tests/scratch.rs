#![allow(warnings)]
use zyx_tests::zyx_core::testing::{self, Null};
use zyx_tests::zyx_core::*;
fn dev() -> Device {
    let mut null = Null::default();
    let integers = DTypeSet::of(&[DType::I32, DType::U32, DType::I64, DType::U64]);
    (null.caps.atomics, null.caps.atomic_add) = (integers, integers); null.caps.most_shared_bytes = 227 << 10;
    if std::env::var("LAPTOP").is_ok() { (null.caps.threads, null.contracts) = (24 * 1536, false); }
    let runtime = Runtime::default();
    runtime.register(null);
    runtime.device("null").unwrap()
}
fn x(d: &Device, dims: &[usize]) -> Tensor { let x = Tensor::zeros(dims.to_vec(), DType::F32, d).contiguous(); x.realize().unwrap(); x }
#[test]
fn show() {
    let d = dev();
    let what = std::env::var("WHAT").unwrap();
    let dims: Vec<usize> = std::env::var("DIMS").unwrap().split('x').map(|n| n.parse().unwrap()).collect();
    let (a, b) = (x(&d, &dims), x(&d, &dims));
    let y = match &what[..] {
        "product" => a.permute([1, 0]).unwrap().matmul(&b).unwrap(),
        "rolled" => a.flatten().roll([7], [0]).unwrap().cumsum(0).unwrap(),
        "cat" => Tensor::cat(&[&a, &b], -1).unwrap().cumsum(-1).unwrap(),
        "trows" => a.t().sum(1).unwrap(),
        "outer" => a.narrow(1, 0, 1).unwrap().contiguous().mul(&a.narrow(0, 0, 1).unwrap().contiguous()).unwrap(),
        "cumsum" => a.cumsum(-1).unwrap(),
        "softmax0" => a.softmax(0).unwrap(),
        "sum0" => a.exp().sum(0).unwrap(),
        "lse0" => a.sub(&b.slice(0, ..1).unwrap()).unwrap().exp().sum(0).unwrap(),
        "max0" => a.max(0).unwrap(),
        "gather" => a.index_select(0, &Tensor::iota(dims[0], DType::I64, &d).remainder(7i64).unwrap()).unwrap(),
        "mesh" => { let (p, q) = (x(&d, &dims[..1]), x(&d, &dims[1..])); let v = Tensor::meshgrid(&[&p, &q], Indexing::Ij).unwrap(); let v: Vec<Tensor> = v.iter().map(|t| t.contiguous()).collect(); let all: Vec<&Tensor> = v.iter().collect(); show_all(&d, &all); return; }
        _ => panic!(),
    };
    show_all(&d, &[&y]);
}
fn show_all(d: &Device, y: &[&Tensor]) {
    println!("{}", testing::explain(y, &d).unwrap());
    if std::env::var("IR").is_ok() { for k in testing::kernels_in_pieces(y) { let o = zyx_tests::zyx_core::tune::optimize(&k, d.caps()); println!("{o}\npredicted {} least {}", zyx_tests::zyx_core::tune::model::predict(&o, d.caps()), zyx_tests::zyx_core::tune::model::least(&k, d.caps())); } }
}
