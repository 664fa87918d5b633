//! Temporary: how long the kernels of an LSTM compile.
use super::compiler;
use backend_cuda::{Cuda, CudaDevice};
use std::time::Instant;
use zyx_core::hal::Device as _;
use zyx_core::legalize::legalize;
use zyx_core::testing::{kernels, rewritten, Null};
use zyx_core::tune::optimize;
use zyx_core::{DType, Runtime, Tensor};

#[test]
#[ignore]
fn lstm_kernels() {
    let nvrtc = compiler("lstm").unwrap();
    let caps = Cuda::default().preset();
    let runtime = Runtime::default();
    runtime.register(Null { caps: caps.clone(), ..Null::default() });
    let device = runtime.device("null").unwrap();
    let real = |dims: &[usize]| { let x = Tensor::zeros(dims.to_vec(), DType::F32, &device).contiguous(); x.realize().unwrap(); x.tracked() };
    let steps: usize = std::env::var("STEPS").map_or(256, |s| s.parse().unwrap());
    let (b, n) = (64, 512);
    let x = real(&[b, steps, n]);
    let params: Vec<Tensor> = (0..2).flat_map(|_| [real(&[4 * n, n]), real(&[4 * n, n]), real(&[4 * n]), real(&[4 * n])]).collect();
    let mut seq = x.permute([1, 0, 2]).unwrap();
    for layer in 0..2 {
        let [w, u, bi, bh] = [0, 1, 2, 3].map(|i| params[4 * layer + i].clone());
        let share = (seq.matmul(&w.t()).unwrap() + &bi) + &bh;
        let mut h = Tensor::zeros([b, n], DType::F32, &device);
        let mut c = h.clone();
        let mut all = Vec::new();
        for t in 0..steps {
            let g = share.select_index(0, t as isize).unwrap() + h.matmul(&u.t()).unwrap();
            let gate = |i: usize| g.slice(-1, i * n..(i + 1) * n).unwrap();
            c = gate(1).sigmoid() * &c + gate(0).sigmoid() * gate(2).tanh();
            h = gate(3).sigmoid() * c.tanh();
            all.push(h.clone());
        }
        seq = Tensor::stack(&all.iter().collect::<Vec<_>>(), 0).unwrap();
    }
    let loss = seq.square().sum(..).unwrap();
    let grads = loss.grad(&params.iter().collect::<Vec<_>>()).unwrap();
    let all: Vec<Tensor> = [loss].into_iter().chain(grads.into_iter().flatten()).collect();
    let start = Instant::now();
    let list = kernels(&all.iter().collect::<Vec<_>>());
    println!("{} kernels, planned {:?}", list.len(), start.elapsed());
    let mut seen = std::collections::HashSet::new();
    let mut rows = Vec::new();
    for kernel in &list {
        if !seen.insert(kernel.clone()) { continue; }
        let t0 = Instant::now();
        let best = optimize(kernel, &caps);
        let t1 = Instant::now();
        let legal = legalize(&best, &caps).unwrap();
        let source = CudaDevice::source(&rewritten(&legal).unwrap(), &caps).unwrap();
        let t2 = Instant::now();
        let _ = nvrtc.machine_code(kernel.name(), &source, "90a").unwrap();
        rows.push((t2.elapsed(), t1 - t0, t2 - t1, kernel.ops().len(), source.len(), kernel.name().to_owned(), source));
    }
    rows.sort_by_key(|r| std::cmp::Reverse(r.0));
    for r in &rows { println!("nvrtc {:?} optimize {:?} legal {:?} ops {} source {} {}", r.0, r.1, r.2, r.3, r.4, r.5); }
    std::fs::write("/tmp/slowest.cu", &rows[0].6).unwrap();
}
