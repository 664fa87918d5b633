//! Every instruction is encoded with random operands and decoded by `iced-x86`, an independent
//! implementation; names, registers, addresses and decorations must come back as given.

use super::operand::*;
use super::vector::{Forms, RegKind, RmKind, Row, Tuple};
use super::*;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> u8 {
        (self.next() % n) as u8
    }

    fn gpr(&mut self) -> Gpr {
        Gpr(self.below(16))
    }

    fn disp(&mut self) -> i32 {
        match self.below(6) {
            0 => 0,
            1 => self.next() as i8 as i32,
            2 => (self.next() as i8 as i32) * 64,
            3 => (self.next() as i8 as i32) * 4,
            4 => (self.next() as i8 as i32) * 32,
            _ => self.next() as i32 >> self.below(20),
        }
    }

    fn mem(&mut self) -> Mem {
        let index = match self.gpr() {
            Gpr(4) => Index::None,
            gpr if self.below(2) == 0 => Index::Gpr(gpr),
            _ => Index::None,
        };
        let shift = if index == Index::None { 0 } else { self.below(4) };
        let base = match self.below(12) {
            0 if index != Index::None => Base::None,
            _ => Base::Gpr(self.gpr()),
        };
        Mem { base, index, shift, disp: self.disp() }
    }
}

fn decode(code: &[u8]) -> Instruction {
    let mut decoder = Decoder::with_ip(64, code, 0, DecoderOptions::NONE);
    let it = decoder.decode();
    assert!(!it.is_invalid(), "invalid bytes {code:02x?}");
    assert_eq!(it.len(), code.len(), "trailing bytes in {code:02x?}: {it}");
    it
}

fn number(register: Register) -> Option<u8> {
    (register != Register::None).then(|| register.number() as u8)
}

fn check_mem(it: &Instruction, mem: Mem, context: &str) {
    let base = match mem.base {
        Base::Gpr(gpr) => Some(gpr.0),
        Base::None => None,
        Base::Label(_) => panic!("not used here"),
    };
    let index = match mem.index {
        Index::None => None,
        Index::Gpr(gpr) => Some(gpr.0),
        Index::Vec(vec) => Some(vec.0),
    };
    assert_eq!(number(it.memory_base()), base, "base {context}");
    assert_eq!(number(it.memory_index()), index, "index {context}");
    if index.is_some() {
        assert_eq!(it.memory_index_scale(), 1 << mem.shift, "scale {context}");
    }
    assert_eq!(it.memory_displacement64() as i32, mem.disp, "displacement {context}");
}

/// A register operand as the decoder names it: the file and the number.
fn check_reg(it: &Instruction, operand: u32, kind: RegKind, reg: u8, context: &str) {
    assert_eq!(it.op_kind(operand), OpKind::Register, "operand {operand} {context}");
    let register = it.op_register(operand);
    let file = match kind {
        RegKind::Vec => register.is_vector_register(),
        RegKind::Mask => register.is_k(),
        RegKind::Gpr => register.is_gpr(),
        RegKind::None => false,
    };
    assert!(file, "operand {operand} is {register:?} {context}");
    // Numbers of byte registers count ah..bh too; those of their full registers do not.
    assert_eq!(register.full_register().number() as u8, reg, "operand {operand} {context}");
}

/// Random operands that `row` accepts, and whether EVEX is needed.
struct Case {
    len: Len,
    reg: u8,
    vvvv: u8,
    rm: Rm,
    deco: Deco,
    imm: Option<u8>,
}

fn case(row: &Row, random: &mut Random) -> Case {
    let evex = matches!(row.forms, Forms::Evex | Forms::Both);
    let high = evex && (row.forms == Forms::Evex || random.below(2) == 0);
    let scalar = matches!(row.tuple, Tuple::Fixed(_)) && row.rm != RmKind::Scattered;
    let is_broadcast_load = row.name.contains("broadcast");
    let fixed = matches!(row.forms, Forms::VexL0 | Forms::VexL1)
        || row.name == "vmovhlps"
        || row.name == "vmovlhps"
        || (scalar && !is_broadcast_load && row.min_len == Len::X);
    let mut len = match random.below(if high { 3 } else { 2 }) {
        _ if fixed => Len::X,
        0 => Len::X,
        1 => Len::Y,
        _ => Len::Z,
    };
    len = len.max(row.min_len);
    if row.min_len == Len::Y && matches!(row.forms, Forms::Vex) {
        len = Len::Y;
    }
    let register = |kind: RegKind, random: &mut Random| match kind {
        RegKind::None => 0,
        RegKind::Vec => random.below(if high { 32 } else { 16 }),
        RegKind::Mask => random.below(8),
        RegKind::Gpr => random.below(16),
    };
    let reg = register(row.reg, random);
    let mut vvvv = register(row.vvvv, random);
    let rm = match row.rm {
        RmKind::Vec => VecReg(register(RegKind::Vec, random)).into(),
        RmKind::VecOrMem if random.below(2) == 0 => VecReg(register(RegKind::Vec, random)).into(),
        RmKind::Gpr => random.gpr().into(),
        RmKind::GprOrMem if random.below(2) == 0 => random.gpr().into(),
        RmKind::Mask => MaskReg(random.below(8)).into(),
        RmKind::MaskOrMem if random.below(2) == 0 => MaskReg(random.below(8)).into(),
        RmKind::Scattered => {
            // The registers of a gather must differ.
            let index = (reg + 1) % 16;
            vvvv = if row.vvvv == RegKind::None { 0 } else { (reg + 2) % 16 };
            let mem = Mem::indexed(random.gpr(), Gpr(0), random.below(4), random.disp());
            Mem { index: Index::Vec(VecReg(index)), ..mem }.into()
        }
        _ => random.mem().into(),
    };
    let deco = decorations(row, rm, high, random);
    let imm = row.imm.then(|| random.next() as u8);
    // The fourth register of a blend: low half of the immediate is not decoded.
    let imm = imm.map(|imm| if is_blend4(row) { imm & 0xf0 } else { imm });
    Case { len, reg, vvvv, rm, deco, imm }
}

fn is_blend4(row: &Row) -> bool {
    matches!(row.name, "vblendvps" | "vblendvpd" | "vpblendvb")
}

fn decorations(row: &Row, rm: Rm, high: bool, random: &mut Random) -> Deco {
    if row.rm == RmKind::Scattered && row.forms == Forms::Evex {
        return Deco::merge(MaskReg(1 + random.below(7)));
    }
    let memory = matches!(rm, Rm::Mem(_));
    let can_broadcast = memory && matches!(row.tuple, Tuple::Full(_) | Tuple::Half(_));
    let broadcast = high && can_broadcast && random.below(2) == 0;
    let into_mask = row.reg == RegKind::Mask;
    // Instructions that move between files or part of a vector take no mask.
    let maskable = high
        && !matches!(row.rm, RmKind::Gpr | RmKind::GprOrMem | RmKind::Mask)
        && (row.reg == RegKind::Vec || row.digit.is_some() || row.vvvv != RegKind::None)
        && !row.name.starts_with("vmovnt")
        && !row.name.starts_with("vpmov") | row.name.starts_with("vpmovz")
        && !["vmovd", "vmovq", "vmovhlps", "vmovlhps", "vpslldq", "vpsrldq"].contains(&row.name);
    let mask = if maskable { random.below(8) } else { 0 };
    let zero = mask != 0 && !into_mask && !(row.store && memory) && random.below(2) == 0;
    Deco { mask, zero, broadcast }
}

fn check_case(op: VOp, row: &Row, case: &Case, context: &str) {
    let mut asm = Assembler::default();
    asm.vector(op, case.len, (case.reg, case.vvvv, case.rm), case.deco, case.imm);
    let code = asm.finish();
    let it = decode(&code);
    let context = &format!("{context}: {it}");
    let name = format!("{:?}", it.mnemonic()).to_lowercase();
    let (vex, evex) = row.name.split_once('/').unwrap_or((row.name, row.name));
    let is_evex = code[0] == 0x62;
    assert_eq!(name, if is_evex { evex } else { vex }, "{context}");

    // Operands in the order of the manual.
    let mut operands = vec![(row.reg, Ok(case.reg)), (row.vvvv, Ok(case.vvvv))];
    operands.retain(|(kind, _)| *kind != RegKind::None);
    let rm = (RegKind::None, Err(case.rm));
    let vex_gather = row.rm == RmKind::Scattered && row.forms == Forms::Vex;
    if row.store {
        operands.insert(0, rm);
    } else if vex_gather || row.name.len() == 4 && row.name.ends_with('x') {
        operands.insert(1, rm);
    } else {
        operands.push(rm);
    }
    if row.store && operands.len() == 3 {
        operands.swap(1, 2);
    }
    for (i, (kind, operand)) in operands.into_iter().enumerate() {
        let i = i as u32;
        match operand {
            Ok(reg) => check_reg(&it, i, kind, reg, context),
            Err(Rm::Vec(v)) => check_reg(&it, i, RegKind::Vec, v.0, context),
            Err(Rm::Gpr(g)) => check_reg(&it, i, RegKind::Gpr, g.0, context),
            Err(Rm::Mask(k)) => check_reg(&it, i, RegKind::Mask, k.0, context),
            Err(Rm::Mem(mem)) => {
                assert_eq!(it.op_kind(i), OpKind::Memory, "operand {i} {context}");
                check_mem(&it, mem, context);
                check_memory_size(&it, row, case, context);
            }
        }
    }
    check_rest(&it, row, case, context);
}

fn check_memory_size(it: &Instruction, row: &Row, case: &Case, context: &str) {
    let size = it.memory_size().size() as u32;
    let expected = match row.tuple {
        _ if row.rm == RmKind::Scattered || row.rm == RmKind::MaskOrMem => return,
        _ if row.reg == RegKind::Mask && row.store => return,
        _ if row.rm == RmKind::GprOrMem && row.vvvv == RegKind::Gpr => return,
        Tuple::Full(n) | Tuple::Half(n) if case.deco.broadcast => u32::from(n),
        Tuple::Full(_) => case.len.bytes(),
        Tuple::Half(_) => case.len.bytes() / 2,
        Tuple::Part(shift) => case.len.bytes() >> shift,
        Tuple::Fixed(n) => u32::from(n),
    };
    assert_eq!(size, expected, "memory size {context}");
}

fn check_rest(it: &Instruction, row: &Row, case: &Case, context: &str) {
    assert_eq!(it.is_broadcast(), case.deco.broadcast, "{context}");
    let mask = number(it.op_mask()).unwrap_or(0);
    assert_eq!(mask, case.deco.mask, "{context}");
    assert_eq!(it.zeroing_masking(), case.deco.zero, "{context}");
    if let Some(imm) = case.imm {
        if is_blend4(row) {
            assert_eq!(it.op_register(3).number() as u8, imm >> 4, "{context}");
        } else {
            let last = it.op_count() - 1;
            assert_eq!(it.immediate(last) as u8, imm, "{context}");
        }
    }
    // The longest vector named has the asked length.
    let longest = (0..it.op_count()).map(|i| it.op_register(i)).filter(|r| r.is_vector_register());
    if let Some(longest) = longest.map(|r| r.size() as u32).max()
        && !matches!(row.rm, RmKind::Scattered)
    {
        assert!(longest <= case.len.bytes(), "{context}");
        let narrowing_load = matches!(row.tuple, Tuple::Full(8) | Tuple::Full(4))
            && matches!(case.rm, Rm::Mem(_))
            && row.vvvv == RegKind::None;
        if !narrowing_load {
            assert_eq!(longest, case.len.bytes(), "{context}");
        }
    }
}

#[test]
fn every_vector_instruction_decodes_as_written() {
    for seed in 0..300 {
        let mut random = Random(seed);
        for &op in VOp::ALL {
            let row = op.row();
            let case = case(row, &mut random);
            check_case(op, row, &case, &format!("seed {seed} {op:?}"));
        }
    }
}

type Encode = Box<dyn Fn(&mut Assembler, Gpr, Rm)>;

/// Instructions of the form `reg, rm`: expected mnemonic, whether memory is allowed, encoder.
fn reg_rm() -> Vec<(&'static str, u32, Encode)> {
    let mut all: Vec<(&'static str, u32, Encode)> = vec![
        ("movzx", 1, Box::new(|a, d, s| a.movzx8(d, s))),
        ("movzx", 2, Box::new(|a, d, s| a.movzx16(d, s))),
        ("movsxd", 4, Box::new(|a, d, s| a.movsxd(d, s))),
    ];
    for (size, bytes) in [(Size::B32, 4), (Size::B64, 8)] {
        all.push(("mov", bytes, Box::new(move |a, d, s| a.mov(size, d, s))));
        all.push(("imul", bytes, Box::new(move |a, d, s| a.imul(size, d, s))));
        all.push(("popcnt", bytes, Box::new(move |a, d, s| a.popcnt(size, d, s))));
        all.push(("movsx", 1, Box::new(move |a, d, s| a.movsx8(size, d, s))));
        all.push(("movsx", 2, Box::new(move |a, d, s| a.movsx16(size, d, s))));
        for (op, name) in [
            (Alu::Add, "add"),
            (Alu::Or, "or"),
            (Alu::And, "and"),
            (Alu::Sub, "sub"),
            (Alu::Xor, "xor"),
            (Alu::Cmp, "cmp"),
        ] {
            all.push((name, bytes, Box::new(move |a, d, s| a.alu(op, size, d, s))));
        }
        for (cond, name) in [
            (Cond::Below, "cmovb"),
            (Cond::Equal, "cmove"),
            (Cond::Greater, "cmovg"),
            (Cond::NotParity, "cmovnp"),
        ] {
            all.push((name, bytes, Box::new(move |a, d, s| a.cmov(size, cond, d, s))));
        }
    }
    all
}

#[test]
fn general_instructions_with_two_operands_decode_as_written() {
    for seed in 0..200 {
        let mut random = Random(seed);
        for (name, bytes, encode) in reg_rm() {
            let dst = random.gpr();
            let src: Rm =
                if random.below(2) == 0 { random.gpr().into() } else { random.mem().into() };
            let mut asm = Assembler::default();
            encode(&mut asm, dst, src);
            let it = decode(&asm.finish());
            let context = &format!("seed {seed} {name}: {it}");
            assert_eq!(format!("{:?}", it.mnemonic()).to_lowercase(), name, "{context}");
            check_reg(&it, 0, RegKind::Gpr, dst.0, context);
            match src {
                Rm::Gpr(gpr) => {
                    check_reg(&it, 1, RegKind::Gpr, gpr.0, context);
                    assert_eq!(it.op_register(1).size() as u32, bytes, "{context}");
                    // A byte register is the low byte, never ah..bh.
                    let high = [Register::AH, Register::BH, Register::CH, Register::DH];
                    assert!(!high.contains(&it.op_register(1)), "{context}");
                }
                Rm::Mem(mem) => {
                    check_mem(&it, mem, context);
                    assert_eq!(it.memory_size().size() as u32, bytes, "{context}");
                }
                _ => unreachable!(),
            }
        }
    }
}

fn text(encode: impl FnOnce(&mut Assembler)) -> String {
    let mut asm = Assembler::default();
    encode(&mut asm);
    let code = asm.finish();
    let mut decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
    let mut lines = Vec::new();
    while decoder.can_decode() {
        let it = decoder.decode();
        assert!(!it.is_invalid(), "{code:02x?}");
        lines.push(it.to_string());
    }
    lines.join("; ")
}

#[test]
fn the_other_general_instructions_decode_as_written() {
    use Size::{B32, B64};
    let mem = Mem::indexed(Gpr(13), Gpr(9), 3, -8);
    let cases: Vec<(String, &str)> = vec![
        (text(|a| a.mov_store(B64, mem, Gpr(12))), "mov [r13+r9*8-8],r12"),
        (text(|a| a.mov_store(B32, mem, Gpr(0))), "mov [r13+r9*8-8],eax"),
        (text(|a| a.mov_store8(Mem::at(Gpr(4), 1), Gpr(6))), "mov [rsp+1],sil"),
        (text(|a| a.mov_store16(Mem::at(Gpr(5), 0), Gpr(6))), "mov [rbp],si"),
        (text(|a| a.mov_store_imm(B64, mem, -2)), "mov qword ptr [r13+r9*8-8],0FFFFFFFFFFFFFFFEh"),
        (text(|a| a.mov_imm(Gpr(9), 7)), "mov r9d,7"),
        (text(|a| a.mov_imm(Gpr(1), u64::MAX)), "mov rcx,0FFFFFFFFFFFFFFFFh"),
        (text(|a| a.mov_imm(Gpr(15), 1 << 40)), "mov r15,10000000000h"),
        (text(|a| a.lea(B64, Gpr(8), mem)), "lea r8,[r13+r9*8-8]"),
        (text(|a| a.setcc(Cond::Above, Gpr(7))), "seta dil"),
        (text(|a| a.alu_imm(Alu::Add, B64, Gpr(11), 127)), "add r11,7Fh"),
        (text(|a| a.alu_imm(Alu::Cmp, B32, Gpr(11), 128)), "cmp r11d,80h"),
        (
            text(|a| a.alu_imm(Alu::And, B64, Mem::at(Gpr(3), 0), -1)),
            "and qword ptr [rbx],0FFFFFFFFFFFFFFFFh",
        ),
        (text(|a| a.test(B64, Gpr(1), Gpr(10))), "test rcx,r10"),
        (text(|a| a.test8_imm(Gpr(6), 1)), "test sil,1"),
        (text(|a| a.imul_imm(B64, Gpr(1), Gpr(2), 3)), "imul rcx,rdx,3"),
        (text(|a| a.imul_imm(B32, Gpr(9), Mem::at(Gpr(2), 5), 300)), "imul r9d,[rdx+5],12Ch"),
        (text(|a| a.imul_high(Gpr(9))), "imul r9"),
        (text(|a| a.neg(B64, Gpr(9))), "neg r9"),
        (text(|a| a.not(B32, Gpr(9))), "not r9d"),
        (text(|a| a.div(B64, Gpr(9))), "div r9"),
        (text(|a| a.idiv(B32, Gpr(9))), "idiv r9d"),
        (text(|a| a.sign_rdx(B64)), "cqo"),
        (text(|a| a.sign_rdx(B32)), "cdq"),
        (text(|a| a.shift_imm(Shift::Shl, B64, Gpr(9), 5)), "shl r9,5"),
        (text(|a| a.shift_imm(Shift::Sar, B32, Gpr(9), 31)), "sar r9d,1Fh"),
        (text(|a| a.shift_imm(Shift::Shr, B64, Gpr(1), 1)), "shr rcx,1"),
        (text(|a| a.shift_cl(Shift::Rol, B32, Gpr(1))), "rol ecx,cl"),
        (text(|a| a.shift_cl(Shift::Ror, B64, Gpr(1))), "ror rcx,cl"),
        (text(|a| a.call(Gpr(10))), "call r10"),
        (text(|a| a.call(Mem::at(Gpr(10), 16))), "call qword ptr [r10+10h]"),
        (text(|a| a.push(Gpr(3))), "push rbx"),
        (text(|a| a.push(Gpr(13))), "push r13"),
        (text(|a| a.pop(Gpr(5))), "pop rbp"),
        (text(Assembler::ret), "ret"),
        (text(Assembler::sfence), "sfence"),
        (text(Assembler::vzeroupper), "vzeroupper"),
        (text(|a| a.prefetch(mem)), "prefetcht0 [r13+r9*8-8]"),
    ];
    for (decoded, expected) in cases {
        assert_eq!(decoded, expected);
    }
}

#[test]
fn jumps_reach_their_labels_near_and_far() {
    for distance in [0, 100, 124, 125, 126, 127, 130, 5000] {
        let mut asm = Assembler::default();
        let (start, end) = (asm.label(), asm.label());
        asm.jcc(Cond::Less, end);
        asm.bind(start);
        asm.nop(distance);
        asm.jmp(start);
        let second = asm.position() as u64;
        asm.jcc(Cond::NotEqual, start);
        asm.bind(end);
        asm.ret();
        let end_at = asm.position() as u64 - 1;
        let code = asm.finish();
        let decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
        let jumps: Vec<_> = decoder
            .into_iter()
            .filter(|it| {
                let flow = it.flow_control();
                flow == FlowControl::ConditionalBranch || flow == FlowControl::UnconditionalBranch
            })
            .map(|it| (it.ip(), it.near_branch_target()))
            .collect();
        assert_eq!(jumps.len(), 3);
        assert_eq!(jumps[0].1, end_at);
        assert_eq!(jumps[1].1, 6);
        assert_eq!(jumps[2], (second, 6));
    }
}

#[test]
fn no_operations_pad_to_any_length() {
    for n in 0..40 {
        let mut asm = Assembler::default();
        asm.nop(n);
        assert_eq!(asm.position() as usize, n);
        let code = asm.finish();
        for it in &mut Decoder::with_ip(64, &code, 0, DecoderOptions::NONE) {
            assert_eq!(it.mnemonic(), iced_x86::Mnemonic::Nop);
        }
    }
}

#[test]
fn equal_constants_share_an_aligned_place() {
    let mut asm = Assembler::default();
    let small = asm.constant(&[1, 2, 3, 4]);
    let large = asm.constant(&[7; 64]);
    assert_eq!(asm.constant(&[1, 2, 3, 4]), small);
    asm.mov(Size::B32, Gpr(0), Mem::label(small));
    let imm_len = asm.position();
    asm.alu_imm(Alu::Cmp, Size::B32, Mem::label(small), 1000);
    let deco = Deco::NONE;
    asm.vector(VOp::Vmovups, Len::Z, (0, 0, Mem::label(large).into()), deco, None);
    let code = asm.finish();
    let targets: Vec<u64> = Decoder::with_ip(64, &code[..], 0, DecoderOptions::NONE)
        .into_iter()
        .take(3)
        .map(|it| it.ip_rel_memory_address())
        .collect();
    assert_eq!(imm_len, 6);
    assert_eq!(targets[0], targets[1]);
    assert_eq!(targets[2] % 64, 0);
    assert_eq!(code[targets[0] as usize..][..4], [1, 2, 3, 4]);
    assert_eq!(code[targets[2] as usize..][..64], [7; 64]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn assembled_functions_run() {
    use crate::exec_memory::ExecMemory;
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    // sum(pointer, count): adds `count` groups of eight floats lane by lane into the first.
    let mut asm = Assembler::default();
    let (head, done) = (asm.label(), asm.label());
    let (pointer, count) = (Gpr::RDI, Gpr::RSI);
    let first = Mem::at(pointer, 0);
    asm.vector(VOp::Vxorps, Len::Y, (0, 0, VecReg(0).into()), Deco::NONE, None);
    asm.mov_imm(Gpr::RAX, 0);
    asm.bind(head);
    asm.alu(Alu::Cmp, Size::B64, Gpr::RAX, count);
    asm.jcc(Cond::AboveEqual, done);
    asm.mov(Size::B64, Gpr::RCX, Gpr::RAX);
    asm.shift_imm(Shift::Shl, Size::B64, Gpr::RCX, 5);
    let here = Mem::indexed(pointer, Gpr::RCX, 0, 0);
    asm.vector(VOp::Vaddps, Len::Y, (0, 0, here.into()), Deco::NONE, None);
    asm.alu_imm(Alu::Add, Size::B64, Gpr::RAX, 1);
    asm.jmp(head);
    asm.bind(done);
    let half = asm.constant(&[0.5f32.to_le_bytes(); 8].concat());
    asm.vector(VOp::Vmulps, Len::Y, (0, 0, Mem::label(half).into()), Deco::NONE, None);
    asm.vector(VOp::VmovupsStore, Len::Y, (0, 0, first.into()), Deco::NONE, None);
    asm.vzeroupper();
    asm.ret();

    let memory = ExecMemory::new().unwrap();
    let code = memory.add(&asm.finish()).unwrap();
    // SAFETY: the code above is a complete function of this type.
    let function: extern "sysv64" fn(*mut f32, usize) =
        unsafe { std::mem::transmute(code.start()) };
    let mut data: Vec<f32> = (0..40).map(|i| i as f32).collect();
    function(data.as_mut_ptr(), 5);
    let expected: Vec<f32> = (0..8).map(|lane| (80 + 5 * lane) as f32 / 2.0).collect();
    assert_eq!(data[..8], expected);
}
