//! Arithmetic in `f16`: every operation on every code, and no call where the device says it computes.

use super::ops::elementwise;
use super::{Isa, Random, Way, bytes_of, check_way, disassemble, isas, legal, tuned, values};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind};
use zyx_core::{BinaryOp, DType, UnaryOp};

const HALVES: Isa = Isa::Neon { halves: true };

/// `out[i] = f(a[i], b[i])` for `n` elements.
fn loops(
    n: u64,
    f: impl FnOnce(&mut Builder, [zyx_core::ir::Value; 2]) -> zyx_core::ir::Value,
) -> Kernel {
    let mut b = Builder::new("halves");
    let inputs = [0; 2].map(|_| b.param(DType::F16, n, Access::Read));
    let out = b.param(DType::F16, n, Access::Write);
    let len = b.index(n as i64);
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    let loaded = inputs.map(|p| b.load(p, i));
    let y = f(&mut b, loaded);
    b.store(out, i, y);
    b.close();
    b.finish()
}

#[test]
fn all_codes() {
    let n = 1 << 16;
    let codes = bytes_of(DType::F16, 0..n);
    let mut random = Random(1);
    let others = values(DType::F16, n as usize, &mut random);
    for isa in isas() {
        let way = Way::Machine(isa);
        let kernel = loops(n, |b, [x, y]| {
            let root = b.unary(UnaryOp::Sqrt, x);
            let parts = [UnaryOp::Recip, UnaryOp::Round, UnaryOp::Floor].map(|op| b.unary(op, x));
            let sum = parts.into_iter().fold(root, |sum, part| b.binary(BinaryOp::Max, sum, part));
            let quotient = b.binary(BinaryOp::Div, x, y);
            let product = b.binary(BinaryOp::Mul, x, y);
            let less = b.binary(BinaryOp::Lt, quotient, product);
            let difference = b.binary(BinaryOp::Sub, product, y);
            let chosen = b.select(less, sum, difference);
            b.binary(BinaryOp::Add, chosen, quotient)
        });
        let inputs = [codes.clone(), others.clone(), vec![0; 2 * n as usize]];
        check_way(&legal(&kernel, way), way, &inputs, &[], "all codes");
    }
}

#[test]
fn what_a_device_computes_in_takes_no_call() {
    let caps = Way::Machine(HALVES).caps();
    let unary = UnaryOp::ALL.iter().filter(|&&op| op.domain().contains(DType::F16));
    let binary = BinaryOp::ALL.iter().filter(|&&op| op.domain().contains(DType::F16));
    for lanes in [1, 2, 4, 8] {
        let check = |name: &str, native: bool, kernel: &Kernel| {
            let code = disassemble(kernel, HALVES);
            assert_eq!(code.contains("blr"), !native, "{name} x {lanes}\n{code}");
        };
        for &op in unary.clone() {
            let kernel = elementwise(&[DType::F16], DType::F16, lanes, |b, x| b.unary(op, x[0]));
            check(op.name(), caps.has_unary(op, DType::F16), &kernel);
        }
        for &op in binary.clone() {
            let result = op.result(DType::F16);
            let kernel =
                elementwise(&[DType::F16; 2], result, lanes, |b, x| b.binary(op, x[0], x[1]));
            check(op.name(), caps.has_binary(op, DType::F16), &kernel);
        }
    }
}

/// `(a * b - a) / b`: vectors of eight, and nothing is converted.
#[test]
fn a_chain_fills_registers() {
    let kernel = loops(1 << 12, |b, [x, y]| {
        let product = b.binary(BinaryOp::Mul, x, y);
        let difference = b.binary(BinaryOp::Sub, product, x);
        b.binary(BinaryOp::Div, difference, y)
    });
    let code = disassemble(&tuned(&kernel, HALVES), HALVES);
    assert!(code.contains("fdiv") && code.contains(".8h") && !code.contains("fcvt"), "{code}");
    let code =
        disassemble(&tuned(&kernel, Isa::Neon { halves: false }), Isa::Neon { halves: false });
    assert!(code.contains("fcvtn") && code.contains(".4s") && !code.contains(".8h"), "{code}");
}
