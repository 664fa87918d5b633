//! What operating systems expect of code, whoever generated it: stacks that grow page by page, registers of
//! callers, no panic that passes through.

use super::{isas, memory};
use crate::jit::helpers;
use crate::jit::regalloc::Allocated;
use crate::jit::x86::asm::{Assembler, Gpr, Len, Rm, VOp, VecReg};
use crate::jit::x86::emit;
use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use std::hint::black_box;

const PAGE: i64 = 4096;

/// A function with a frame of so many bytes that does nothing.
fn with_frame(frame: u32) -> Vec<u8> {
    let isa = isas()[0];
    let mut asm = Assembler::default();
    let allocated = Allocated { insts: Vec::new(), saved: [1 << 3, 0, 0], frame };
    emit::function(&mut asm, &allocated, &[], 0, isa);
    asm.finish()
}

/// The farthest that a function reaches below what it touched before, a call from its body included.
fn farthest(code: &[u8]) -> i64 {
    // Bytes below the return address, which the caller wrote.
    let (mut depth, mut touched, mut farthest) = (0i64, 0i64, 0i64);
    for it in Decoder::new(64, code, DecoderOptions::NONE) {
        match it.mnemonic() {
            Mnemonic::Push => {
                depth += 8;
                touched = depth;
            }
            // At most.
            Mnemonic::And if it.op0_register() == Register::RSP => depth += 63,
            Mnemonic::Sub if it.op0_register() == Register::RSP => {
                depth += it.immediate(1) as i64;
            }
            Mnemonic::Mov if it.op0_kind() == OpKind::Memory => {
                assert_eq!(it.memory_base(), Register::RSP);
                let at = depth - it.memory_displacement64() as i64;
                farthest = farthest.max(at - touched);
                touched = touched.max(at);
            }
            // The epilogue.
            Mnemonic::Pop | Mnemonic::Ret => break,
            _ => {}
        }
    }
    farthest.max(depth + 8 - touched)
}

#[test]
fn large_frames_touch_every_page() {
    if isas().is_empty() {
        return;
    }
    for frame in [0, 8, 64, 3900, 3960, 3968, 4000, 4096, 5000, 8192, 10_000, 1 << 20] {
        let code = with_frame(frame);
        let reaches = farthest(&code);
        assert!(reaches <= PAGE, "a frame of {frame} bytes reaches {reaches} bytes further");
        let code = memory().add(&code).unwrap();
        // Threads have stacks of two MiB, of which hardly any was touched yet.
        std::thread::spawn(move || {
            // SAFETY: a complete function of this type, whose frame fits in the stack.
            let function: extern "sysv64" fn() = unsafe { std::mem::transmute(code.start()) };
            function();
        })
        .join()
        .unwrap();
    }
}

/// Some conventions, as that of Windows, let callers keep values in vector registers and in `rdi` and
/// `rsi`. Generated code changes all of them, which Rust has to know.
#[test]
fn registers_of_callers_survive() {
    if isas().is_empty() {
        return;
    }
    let mut asm = Assembler::default();
    for n in 0..16 {
        let deco = crate::jit::x86::asm::Deco::NONE;
        asm.vector(VOp::Vxorps, Len::Y, (n, n, Rm::Vec(VecReg(n))), deco, None);
    }
    for reg in [Gpr::RDI, Gpr::RSI, Gpr::RAX, Gpr::RCX, Gpr::RDX, Gpr(8), Gpr(9), Gpr(10), Gpr(11)]
    {
        asm.mov_imm(reg, 0);
    }
    asm.vzeroupper();
    asm.ret();
    let code = memory().add(&asm.finish()).unwrap();
    // SAFETY: a complete function of this type.
    let function: extern "sysv64" fn() = unsafe { std::mem::transmute(code.start()) };
    let floats: [f64; 16] = std::array::from_fn(|i| black_box(i as f64 + 1.0).sqrt());
    let words: [u64; 16] = std::array::from_fn(|i| black_box(i as u64 + 7) * 3);
    function();
    for i in 0..16 {
        assert_eq!(floats[i], (i as f64 + 1.0).sqrt());
        assert_eq!(words[i], (i as u64 + 7) * 3);
    }
}

/// Generated code has no unwind tables.
#[test]
fn a_panic_in_a_helper_ends_the_process() {
    const NAME: &str = "jit::tests::system::a_panic_in_a_helper_ends_the_process";
    if isas().is_empty() {
        return;
    }
    if std::env::var_os("ZYX_TEST_PANIC").is_none() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env("ZYX_TEST_PANIC", "1")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success(), "it went on: {told}");
        assert!(told.contains("begins") && told.contains("cannot unwind"), "{told}");
        assert!(!told.contains("it returned"), "{told}");
        return;
    }
    let mut asm = Assembler::default();
    asm.push(Gpr(3));
    // No call is encoded so.
    asm.mov_imm(Gpr(8), u64::MAX);
    asm.mov_imm(Gpr::RAX, helpers::elementwise_address() as u64);
    asm.call(Gpr::RAX);
    asm.pop(Gpr(3));
    asm.ret();
    let code = memory().add(&asm.finish()).unwrap();
    // SAFETY: a complete function of this type, whose helper looks at the word first.
    let function: extern "sysv64" fn() = unsafe { std::mem::transmute(code.start()) };
    eprintln!("begins");
    let _ = std::panic::catch_unwind(|| function());
    eprintln!("it returned");
}
