//! Prints prepared kernels of a few expressions.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "an example for developers")]
use zyx_backend_cpu::Cpu;
use zyx_core::{Runtime, Tensor};
fn main() {
    let runtime = Runtime::default();
    runtime.register(Cpu::default());
    let d = runtime.device("cpu").unwrap();
    let r =
        |dims: &[usize]| Tensor::from_slice(&vec![1f32; dims.iter().product()], dims, &d).unwrap();
    let n = 1 << 20;
    let which = std::env::args().nth(1).unwrap();
    let (a, b, c) = (r(&[n]), r(&[n]), r(&[n]));
    let m = a.reshape([1024, 1024]).unwrap();
    let t = match which.as_str() {
        "chain" => (&a + &b) * 5.0 - &c,
        "gelu" => a.gelu(),
        "sum" => a.sum(..).unwrap(),
        "rows" => m.sum(1).unwrap(),
        "cols" => m.sum(0).unwrap(),
        "softmax" => m.softmax(1).unwrap(),
        "argmax" => m.argmax(1).unwrap(),
        "transpose" => m.t().contiguous(),
        "mask" => (&m + Tensor::full([1024, 1024], f32::NEG_INFINITY, &d).triu(1).unwrap()).exp(),
        "mask32" => {
            let i = Tensor::iota(1024, zyx_core::DType::I32, &d);
            let c = i.reshape([1024, 1]).unwrap().lt(&i).unwrap();
            c.where_(f32::NEG_INFINITY, &m).unwrap().exp()
        }
        "ffn" => {
            let (x, w, b) = (r(&[8, 128, 256]), r(&[1024, 256]), r(&[1024]));
            (x.matmul(&w.t()).unwrap() + b).gelu()
        }
        "depth" => {
            // A depthwise convolution of stride 2.
            let (x, w, b) = (r(&[1, 144, 56, 56]), r(&[144, 1, 3, 3]), r(&[144, 1, 1]));
            let options = zyx_core::Conv2dOptions {
                stride: [2, 2],
                padding: [1, 1],
                groups: 144,
                ..Default::default()
            };
            (x.conv2d(&w, None, options).unwrap() + b).clamp(0.0, 6.0).unwrap()
        }
        "epi" => (m.matmul(&m).unwrap() + &a.reshape([1024, 1024]).unwrap()).relu(),
        _ => panic!(),
    };
    for k in zyx_core::testing::kernels(&[&t]) {
        println!("{k}");
        println!("{}", zyx_core::runtime::prepare(&k, d.caps()).unwrap());
    }
}
