//! Attention of halves and its gradients as a transformer has them, compiled without a GPU: streams
//! of matrix instructions whose sums and scores stay in registers, and what else they are made of.

use super::assembler::{assemble, assembler};
use super::{ARCHS, archs, compiler};
use zyx_backend_cuda::{Cuda, CudaDevice};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, ShuffleKind, verify_for};
use zyx_core::legalize::legalize;
use zyx_core::reference::Reference;
use zyx_core::testing::{kernels, rewritten};
use zyx_core::tune::optimize;
use zyx_core::{Attention, DType, DTypeSet, Device, Runtime, Tensor};

/// Bytes of the stack that spilling takes at most, in the kernels with most sums: of CUDA C++, and of PTX.
const SPILLED: [u32; 2] = [32, 128];

/// The kernels of attention and its gradients.
fn streams(causal: bool, width: usize, device: &Device) -> Vec<Kernel> {
    let x = [0; 3].map(|_| Tensor::zeros([1, 2, 1024, width], DType::BF16, device).contiguous());
    x.iter().for_each(|x| x.realize().unwrap());
    let x = x.map(|x| x.tracked());
    let options = Attention { causal, ..Attention::default() };
    let y = x[0].scaled_dot_product_attention(&x[1], &x[2], options).unwrap();
    let loss = y.cast(DType::F32).square().sum(..).unwrap();
    let gradients = loss.grad(&[&x[0], &x[1], &x[2]]).unwrap();
    let all: Vec<&Tensor> = [&y].into_iter().chain(gradients.iter().flatten()).collect();
    let is_stream = |k: &Kernel| k.name().starts_with("flash");
    kernels(&all).into_iter().filter(is_stream).collect()
}

#[test]
fn attention_of_halves_stays_in_registers() {
    let Some(nvrtc) = compiler("attention_of_halves_stays_in_registers") else { return };
    let Some(assembler) = assembler("attention_of_halves_stays_in_registers") else { return };
    let wide = Cuda::default().preset();
    let mut square = wide.clone();
    square.wide_mma = DTypeSet::NONE;
    let cases = [(false, 64), (true, 64), (true, 128)];
    for (caps, (causal, width)) in [wide, square].iter().flat_map(|c| cases.map(|case| (c, case))) {
        let runtime = Runtime::default();
        runtime.register(Reference { caps: caps.clone(), ..Reference::default() });
        let device = runtime.device("reference").unwrap();
        let streams = streams(causal, width, &device);
        // Wide ones compute the gradients of keys and values in one launch.
        let (n, wide) = if caps.wide_mma != DTypeSet::NONE { (3, 3) } else { (4, 0) };
        assert_eq!(streams.len(), n);
        let is_wide = |k: &&Kernel| k.ops().iter().any(|op| matches!(op, Op::Panel { .. }));
        assert_eq!(streams.iter().filter(is_wide).count(), wide);
        for kernel in &streams {
            let kernel = legalize(&optimize(kernel, caps), caps).unwrap();
            verify_for(&kernel, caps).unwrap();
            let source = CudaDevice::cuda_c(&rewritten(&kernel).unwrap(), caps).unwrap();
            for arch in archs(&kernel) {
                let compiled = nvrtc.resources(kernel.name(), &source, arch).unwrap();
                let assembled = assemble(assembler, &kernel, caps, arch).unwrap();
                for (entries, most) in [compiled, assembled].into_iter().zip(SPILLED) {
                    let kept = entries.iter().all(|entry| entry.stack <= most);
                    assert!(kept, "sm_{arch} {width}: {entries:?}");
                }
            }
        }
    }
}

/// Exchanges between lanes, in groups of whole warps and in others, of values of all widths.
#[test]
fn exchanges_between_lanes_compile() {
    let Some(nvrtc) = compiler("exchanges_between_lanes_compile") else { return };
    let Some(assembler) = assembler("exchanges_between_lanes_compile") else { return };
    let caps = Cuda::default().preset();
    let kinds = [ShuffleKind::Index, ShuffleKind::Xor, ShuffleKind::Down];
    for (threads, dtype) in [(64, DType::F32), (48, DType::F64), (5, DType::U8)] {
        let mut b = Builder::new("exchange");
        let [from, to] =
            [Access::Read, Access::Write].map(|access| b.param(dtype, threads as u64, access));
        let n = b.index(threads);
        let thread = b.open_loop(LoopKind::Local, 0, n);
        let mut x = b.load(from, thread);
        let (lane, ty) = (b.index(3), b.ty(x));
        for kind in kinds {
            x = b.emit(Op::Shuffle { kind, x, lane }, ty);
        }
        b.store(to, thread, x);
        b.close();
        let kernel = legalize(&b.finish(), &caps).unwrap();
        verify_for(&kernel, &caps).unwrap();
        let source = CudaDevice::cuda_c(&rewritten(&kernel).unwrap(), &caps).unwrap();
        assert_eq!(source.contains("shuffle_xor<true>("), threads % 32 == 0, "{source}");
        for arch in ARCHS {
            nvrtc.machine_code(kernel.name(), &source, arch).unwrap();
            assemble(assembler, &kernel, &caps, arch).unwrap();
        }
    }
}
