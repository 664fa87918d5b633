//! The device contract: memory, streams, events, arguments, launches, errors.

mod common;

use common::{device, result};
use rstest::rstest;
use zyx_core::ir::{Access, Builder, Kernel, LoopKind};
use zyx_core::{BinaryOp, DType, Scalar};

fn numbers(n: usize) -> Vec<Scalar> {
    (0..n).map(|i| Scalar::from(i as f32 - 3.5)).collect()
}

/// `out[i] = in[i] * 2` over loops of these kinds, outermost first, with these lengths.
fn double(loops: &[(LoopKind, u8, i64)]) -> Kernel {
    let total = loops.iter().map(|l| l.2).product::<i64>() as u64;
    let mut b = Builder::new("double");
    let out = b.param(DType::F32, total, Access::Write);
    let input = b.param(DType::F32, total, Access::Read);
    let two = b.constant(Scalar::from(2f32));
    let mut index = b.index(0);
    for &(kind, axis, len) in loops {
        let len = b.index(len);
        let i = b.open_loop(kind, axis, len);
        let scaled = b.binary(BinaryOp::Mul, index, len);
        index = b.binary(BinaryOp::Add, scaled, i);
    }
    let x = b.load(input, index);
    let y = b.binary(BinaryOp::Mul, x, two);
    b.store(out, index, y);
    loops.iter().for_each(|_| b.close());
    b.finish()
}

#[rstest]
#[case(&[(LoopKind::Parallel, 0, 1000)])]
#[case(&[(LoopKind::Serial, 0, 10), (LoopKind::Parallel, 0, 10)])]
#[case(&[(LoopKind::Group, 0, 10), (LoopKind::Local, 0, 64)])]
#[case(&[(LoopKind::Group, 2, 3), (LoopKind::Group, 1, 5), (LoopKind::Group, 0, 7)])]
#[case(&[(LoopKind::Group, 1, 3), (LoopKind::Group, 0, 2), (LoopKind::Local, 1, 4), (LoopKind::Local, 0, 8)])]
#[case(&[(LoopKind::Group, 0, 3), (LoopKind::Local, 0, 10_000)])]
#[case(&[(LoopKind::Parallel, 0, 3), (LoopKind::Group, 0, 5), (LoopKind::Local, 0, 2)])]
#[case(&[(LoopKind::Serial, 0, 3), (LoopKind::Group, 0, 5), (LoopKind::Local, 0, 2)])]
#[case(&[(LoopKind::Group, 0, 100_000)])]
#[case(&[(LoopKind::Group, 1, 70_000)])]
fn loops_cover_every_iteration(
    #[case] loops: &[(LoopKind, u8, i64)],
    #[values(false, true)] minimal: bool,
) {
    let Some(device) = device(minimal) else { return };
    let kernel = double(loops);
    let input = numbers(kernel.params()[0].len as usize);
    let expected: Vec<Scalar> = input.iter().map(|x| Scalar::from(x.get::<f32>() * 2.0)).collect();
    assert_eq!(result(device, &kernel, &[input]), expected);
}
