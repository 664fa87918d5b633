//! What operating systems expect of code, whoever generated it: stacks that grow page by page, registers of
//! callers, and where they put arguments.

use super::memory;
use crate::jit::arm::asm::Assembler;
use crate::jit::arm::emit;
use crate::jit::machine::{Addr, Class, ConstData, ConstId, Inst, Reg};
use crate::jit::regalloc::Allocated;
use crate::jit::{Function, Isa};
use std::hint::black_box;

/// Runs a function with these arguments.
fn run_with(
    allocated: &Allocated,
    constants: &[ConstData],
    words: &mut [u64; 4],
    [lo, hi]: [u64; 2],
) {
    let mut asm = Assembler::default();
    emit::function(&mut asm, allocated, constants, 0).unwrap();
    let code = memory().add(&asm.finish().unwrap()).unwrap();
    // SAFETY: a complete function of this type.
    let function: Function = unsafe { std::mem::transmute(code.start()) };
    // SAFETY: it accesses nothing but its frame and the words.
    unsafe { function(words.as_mut_ptr(), lo, hi, std::ptr::null_mut()) };
}

fn run(allocated: &Allocated, constants: &[ConstData]) {
    run_with(allocated, constants, &mut [0; 4], [0; 2]);
}

/// The farthest that the stack pointer goes below what was touched, and where it is left.
fn farthest(code: &[u8]) -> (i64, i64) {
    let (mut untouched, mut farthest) = (0, 0);
    for word in code.chunks_exact(4).map(|it| u32::from_le_bytes(it.try_into().unwrap())) {
        let number = i64::from(word >> 10 & 0xfff);
        match word & 0xffc0_03ff {
            // `sub sp, sp, #n`, also in units of 4096.
            0xd100_03ff => untouched += number,
            0xd140_03ff => untouched += number << 12,
            // `str xzr, [sp]`
            0xf900_03ff if number == 0 => untouched = 0,
            // The epilogue.
            0x9100_03ff | 0x9140_03ff => break,
            _ => {}
        }
        farthest = farthest.max(untouched);
    }
    (farthest, untouched)
}

#[test]
fn large_frames_touch_every_page() {
    for frame in [0, 8, 16, 4080, 4096, 4112, 8192, 10_000, 1 << 20] {
        let allocated = Allocated { insts: Vec::new(), saved: [1 << 19, 1 << 8, 0], frame };
        let mut asm = Assembler::default();
        emit::function(&mut asm, &allocated, &[], 0).unwrap();
        let (farthest, left) = farthest(&asm.finish().unwrap());
        // What a caller may have left, and what a function that is called reaches further, come on top.
        assert!(farthest <= 4096 - 1024 && left <= 1024, "{frame}: {farthest}, {left}");
        // Threads have stacks of two MiB, of which hardly any was touched yet.
        std::thread::spawn(move || run(&allocated, &[])).join().unwrap();
    }
}

#[test]
fn registers_of_callers_survive() {
    let file = Isa::Neon { halves: false }.registers();
    let of = |class: Class| {
        let set = file.allocatable[class as usize];
        (0..32).filter(move |n| set & 1 << n != 0).map(Reg)
    };
    let general = of(Class::Gpr).map(|dst| Inst::Imm { dst, value: 0x0123_4567_89ab_cdef });
    let vectors = of(Class::Vec).map(|dst| Inst::Const { dst, id: ConstId(0) });
    let insts: Vec<Inst> = general.chain(vectors).collect();
    let constants = [ConstData::Splat { bits: 0x1122_3344_5566_7788, size: 8 }];
    let floats: [f64; 16] = std::array::from_fn(|i| black_box(i as f64 + 1.0).sqrt());
    let words: [u64; 16] = std::array::from_fn(|i| black_box(i as u64 + 7) * 3);
    run(&Allocated { insts, saved: file.preserved, frame: 40 }, &constants);
    for i in 0..16 {
        assert_eq!(floats[i], (i as f64 + 1.0).sqrt());
        assert_eq!(words[i], (i as u64 + 7) * 3);
    }
}

/// Arguments move to their registers through one another's.
#[test]
fn arguments_arrive_in_any_registers() {
    for homes in 0..6_u32.pow(4) {
        let homes: [Reg; 4] = std::array::from_fn(|i| Reg(homes / 6_u32.pow(i as u32) % 6));
        let differ = (1..4).all(|i| !homes[..i].contains(&homes[i]));
        if !differ {
            continue;
        }
        let [args, lo, hi, scratch] = homes;
        let mut insts = vec![Inst::Entry { args, lo, hi, scratch }];
        insts.extend(homes.into_iter().zip([0, 8, 16, 24]).map(|(src, at)| Inst::Store {
            width: 3,
            addr: Addr::at(args, at),
            src,
        }));
        let mut words = [1; 4];
        let place = words.as_ptr().addr() as u64;
        run_with(&Allocated { insts, saved: [0; 3], frame: 0 }, &[], &mut words, [5, 7]);
        assert_eq!(words, [place, 5, 7, 0], "{homes:?}");
    }
}
