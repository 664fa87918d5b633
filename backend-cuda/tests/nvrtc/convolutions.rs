//! Convolutions of halves and their gradients by matrix instructions, whatever their geometry:
//! compiled, and on the interpreter equal to what naive kernels compute.

use crate::compiler;
use crate::suite::{Gate, Noted};
use zyx_backend_cuda::{Cuda, CudaDevice};
use zyx_core::ir::Op;
use zyx_core::testing::rewritten;
use zyx_core::{Conv2dOptions, DType, Device, Runtime, Tensor};

/// Shapes of input and weight, and the rest.
type Case = ([usize; 4], [usize; 4], Conv2dOptions);

fn cases() -> [Case; 4] {
    let plain = Conv2dOptions::default();
    [
        // Blocks walk along channels; padded.
        ([2, 32, 9, 9], [32, 32, 3, 3], Conv2dOptions { padding: [1, 1], ..plain }),
        // Blocks walk along channels and offsets; strided; nothing is a multiple of 16.
        ([1, 20, 11, 13], [23, 20, 3, 2], Conv2dOptions { stride: [2, 1], ..plain }),
        ([3, 64, 8, 6], [17, 64, 2, 3], Conv2dOptions { dilation: [2, 2], ..plain }),
        // More padding than windows reach.
        ([1, 64, 9, 7], [64, 64, 2, 2], Conv2dOptions { padding: [3, 2], ..plain }),
    ]
}

/// The result and both gradients. Inputs are small integers, so that all sums are exact.
fn results((x, w, options): Case, dtype: DType, device: &Device) -> Vec<Vec<f32>> {
    let small = |dims: &[usize], step: i64, range: i64| {
        let x = Tensor::iota(dims.iter().product::<usize>(), DType::I64, device);
        let x = x.mul(step).unwrap().remainder(range).unwrap().sub(range / 2).unwrap();
        x.cast(dtype).reshape(dims).unwrap().tracked()
    };
    let (x, w) = (small(&x, 5, 7), small(&w, 3, 5));
    Tensor::realize_all([&x, &w]).unwrap();
    let y = x.conv2d(&w, None, options).unwrap();
    let dy = small(y.shape().dims(), 7, 5);
    let gradients = y.grad_with(&dy, &[&x, &w]).unwrap();
    let all = [Some(y)].into_iter().chain(gradients).flatten();
    all.map(|t| t.cast(DType::F32).to_vec::<f32>().unwrap()).collect()
}

#[test]
fn convolutions_of_halves_use_matrix_instructions() {
    let Some(nvrtc) = compiler("convolutions_of_halves_use_matrix_instructions") else { return };
    let caps = Cuda::default().preset();
    for (i, case) in cases().into_iter().enumerate() {
        let dtype = [DType::BF16, DType::F16][i % 2];
        let (noted, runtime) = (Noted::default(), Runtime::default());
        runtime.register(Gate(noted.clone()));
        let [actual, expected] =
            ["cuda", "reference"].map(|spec| results(case, dtype, &runtime.device(spec).unwrap()));
        assert!(actual == expected, "case {i}");
        let noted = noted.lock().unwrap();
        let multiplies = |op: &Op| matches!(op, Op::Mma { .. });
        let products: Vec<_> =
            noted.values().filter(|kernel| kernel.ops().iter().any(multiplies)).collect();
        assert!(products.len() >= 3, "case {i}: {} kernels", products.len());
        for kernel in products {
            let source = CudaDevice::cuda_c(&rewritten(kernel).unwrap(), &caps).unwrap();
            nvrtc.machine_code(kernel.name(), &source, "80").unwrap();
        }
    }
}
