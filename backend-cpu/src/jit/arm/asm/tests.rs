//! Every row is encoded with random operands in every arrangement, and decoded by `disarm64`, an
//! independent implementation; the text that comes back must be the row's. Where binutils for Arm
//! are installed, they assemble the same text, which must give the same words.

use super::field::{Arr, Field, File};
use super::table::{Op, Row};
use super::{
    Assembler, Cond, SP, TooFar, ZERO, add_immediate, bitmask, byte_mask, encode, float8, immediate,
};

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: u64) -> i64 {
        (self.next() % n) as i64
    }

    /// A mask that logical instructions can hold.
    fn mask(&mut self, width: u32) -> u64 {
        let element = 2_u32 << self.below(if width == 64 { 6 } else { 5 });
        let count = 1 + self.below(u64::from(element) - 1) as u32;
        let by = self.below(element.into()) as u32;
        let ones = u64::MAX >> (64 - element);
        let run = u64::MAX >> (64 - count);
        let run = if by == 0 { run } else { (run >> by | run << (element - by)) & ones };
        (0..width / element).fold(0, |mask, i| mask | run << (i * element))
    }
}

/// A random operand that the field holds.
fn operand(field: Field, arr: Arr, random: &mut Random) -> i64 {
    let size = arr.size();
    match field {
        Field::Reg(File::Lane, 16) if size == 1 => random.below(16),
        Field::Reg(..) => random.below(32),
        Field::Unsigned(_, bits, scale) => random.below(1 << bits) << scale,
        Field::Signed(_, bits, scale) => (random.below(1 << bits) - (1 << (bits - 1))) << scale,
        Field::ExtendShift => random.below(5),
        Field::Scaled(..) => random.below(2),
        Field::Cond(_) => random.below(14),
        Field::Mask(width) => random.mask(width) as i64,
        Field::Bit => random.below(64),
        Field::Label(..) | Field::Address => 0,
        Field::Left => random.below(8 << size),
        Field::Right => 1 + random.below(8 << size),
        Field::Lane5 | Field::Lane4 => random.below(16 >> size),
        Field::LaneOfFactor => random.below(8 >> (size - 1)),
        Field::LaneOfGroup => random.below(4),
        Field::LaneOfLoad(lane) => random.below(16 >> lane.size()),
        Field::Byte | Field::FloatByte | Field::Float => random.below(256),
        Field::ByteMask => {
            let bits = random.next();
            (0..8).fold(0_u64, |mask, i| mask | ((bits >> i & 1) * 0xff) << (8 * i)) as i64
        }
        Field::Prefetch => [0, 1, 2, 3, 4, 5, 16, 17, 18, 19, 20, 21][random.below(12) as usize],
    }
}

fn lanes(arr: Arr) -> &'static str {
    match arr {
        Arr::B8 => "8b",
        Arr::B16 => "16b",
        Arr::H4 => "4h",
        Arr::H8 => "8h",
        Arr::S2 => "2s",
        Arr::S4 => "4s",
        Arr::D2 => "2d",
        _ => panic!("{arr:?} has no lanes"),
    }
}

const fn letter(size: u32) -> &'static str {
    ["b", "h", "s", "d", "q"][size as usize]
}

fn register(file: File, n: i64, arr: Arr) -> String {
    let (size, full) = (arr.size(), arr.is_full());
    let pick = |half: &'static str, whole: &'static str| if full { whole } else { half };
    let general = |letter: &str, last: &str| match n {
        31 => last.to_string(),
        _ => format!("{letter}{n}"),
    };
    let arranged = |lanes: &str| format!("v{n}.{lanes}");
    match file {
        File::X => general("x", "xzr"),
        File::W => general("w", "wzr"),
        File::XSp => general("x", "sp"),
        File::WSp => general("w", "wsp"),
        File::Scalar(Arr::None) => format!("q{n}"),
        File::Scalar(arr) => format!("{}{n}", letter(arr.size())),
        File::Element => format!("{}{n}", letter(size)),
        File::WideElement => format!("{}{n}", letter(size + 1)),
        File::Lanes => arranged(lanes(arr)),
        File::Wide => arranged(["8h", "4s", "2d"][size as usize]),
        File::Pairs => arranged(match size {
            0 => pick("4h", "8h"),
            1 => pick("2s", "4s"),
            _ => pick("1d", "2d"),
        }),
        File::Bytes => arranged(pick("8b", "16b")),
        File::Halves => arranged(pick("4h", "8h")),
        File::FewHalves => arranged(pick("2h", "4h")),
        File::Fixed(arr) => arranged(lanes(arr)),
        File::Lane => arranged(letter(size)),
        File::LaneOf(arr) => arranged(letter(arr.size())),
        File::Group(group) => arranged(group),
        File::List(count) => {
            let list = (0..i64::from(count)).map(|i| format!("v{}.16b", (n + i) % 32));
            list.collect::<Vec<_>>().join(", ")
        }
    }
}

const CONDITIONS: [&str; 14] =
    ["eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le"];

/// An operand as assemblers spell it.
fn spell(field: Field, value: i64, arr: Arr) -> String {
    match field {
        Field::Reg(file, _) => register(file, value, arr),
        Field::Scaled(shift, lsl) => match value {
            0 => String::new(),
            _ => format!("{} #{shift}", if lsl { ", lsl" } else { "" }),
        },
        Field::Cond(_) => CONDITIONS[value as usize].into(),
        Field::Mask(_) | Field::ByteMask => format!("{value:#x}"),
        Field::Label(..) | Field::Address => ".".into(),
        Field::Float | Field::FloatByte => {
            format!("{:?}", immediate::float8_value(value as u8))
        }
        Field::Prefetch => {
            let kind = ["pld", "pli", "pst"][value as usize >> 3];
            format!("{kind}l{}{}", (value >> 1 & 3) + 1, ["keep", "strm"][value as usize & 1])
        }
        _ => value.to_string(),
    }
}

/// An instruction as assemblers spell it.
fn text(row: &Row, arr: Arr, operands: &[i64]) -> String {
    let mut operands = row.fields.iter().zip(operands);
    let mut text = String::new();
    for part in row.text.chars() {
        match part {
            '%' => {
                let (&field, &value) = operands.next().expect("a field for each operand");
                text += &spell(field, value, arr);
            }
            '~' => text += if arr.is_full() { "2" } else { "" },
            _ => text.push(part),
        }
    }
    assert!(operands.next().is_none(), "an operand for each field of {text}");
    text
}

/// All rows in all their arrangements, some times each.
fn samples(times: usize) -> Vec<(Op, Arr, Vec<i64>, String)> {
    let mut random = Random(1);
    let mut samples = Vec::new();
    for &op in Op::ALL {
        let row = op.row();
        let arrs = if row.arrs.is_empty() { &[Arr::None] } else { row.arrs };
        for &arr in arrs {
            for _ in 0..times {
                let mut operands: Vec<i64> =
                    row.fields.iter().map(|&field| operand(field, arr, &mut random)).collect();
                avoid_undefined(op, &mut operands);
                let text = text(row, arr, &operands);
                samples.push((op, arr, operands, text));
            }
        }
    }
    samples
}

/// Pairs that load twice into a register, or write back to one that they load or store, and exclusive
/// stores whose status is one of their operands, are unpredictable.
fn avoid_undefined(op: Op, operands: &mut [i64]) {
    let name = format!("{op:?}");
    if name.starts_with("Ldp") || name.starts_with("Stp") {
        (operands[0], operands[1], operands[2]) =
            (operands[0] % 10, 10 + operands[1] % 10, 20 + operands[2] % 10);
    } else if name.ends_with("Pre") || name.ends_with("Post") {
        (operands[0], operands[1]) = (operands[0] % 16, 16 + operands[1] % 15);
    } else if name.starts_with("Stxr") || name.starts_with("Stlxr") {
        (operands[0], operands[1], operands[2]) =
            (operands[0] % 10, 10 + operands[1] % 10, 20 + operands[2] % 10);
    }
}

/// Numbers as numbers, one space, no optional parts: what decoders may print one way or another.
fn normal(text: &str) -> String {
    let mut out = String::new();
    let text = text.to_lowercase().replace(", #0]", "]");
    let words = text.replace(['\t', '{', '}', ',', '[', ']'], " ");
    for word in words.split_whitespace() {
        let number = word.trim_start_matches('#');
        let value = match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(|value| value.to_string()),
            None => number.parse::<f64>().ok().map(|value| value.to_string()),
        };
        let extends = ["uxtw", "sxtw", "uxth", "sxth", "uxtb", "sxtb", "uxtx"];
        match value {
            Some(zero) if zero == "0" && extends.iter().any(|it| out.ends_with(it)) => {}
            Some(value) => out += &format!(" {value}"),
            None => out += &format!(" {}", word.replace('.', if word == "." { "0" } else { "." })),
        }
    }
    let out = out.replace(" uxtx", " lsl");
    out.strip_suffix(" lsl 0").map(str::to_string).unwrap_or(out)
}

/// Rows that the decoder takes for another instruction, or whose operands it prints wrongly (it
/// prints `fcvt d21, s8` as `fcvt s21, s8`), each with an arrangement, operands, and the word that
/// binutils 2.40 make of them.
const MISREAD: &[(Op, Arr, &[i64], u32)] = &[
    (Op::Ld1, Arr::B8, &[18, 15], 0x0c40_71f2),
    (Op::Ld1, Arr::B16, &[9, 0], 0x4c40_7009),
    (Op::Ld1, Arr::H4, &[16, 29], 0x0c40_77b0),
    (Op::Ld1, Arr::H8, &[29, 31], 0x4c40_77fd),
    (Op::Ld1, Arr::S2, &[19, 19], 0x0c40_7a73),
    (Op::Ld1, Arr::S4, &[21, 23], 0x4c40_7af5),
    (Op::Ld1, Arr::D2, &[25, 19], 0x4c40_7e79),
    (Op::St1, Arr::B8, &[4, 25], 0x0c00_7324),
    (Op::St1, Arr::B16, &[17, 6], 0x4c00_70d1),
    (Op::St1, Arr::H4, &[24, 11], 0x0c00_7578),
    (Op::St1, Arr::H8, &[29, 8], 0x4c00_751d),
    (Op::St1, Arr::S2, &[8, 11], 0x0c00_7968),
    (Op::St1, Arr::S4, &[19, 8], 0x4c00_7913),
    (Op::St1, Arr::D2, &[29, 3], 0x4c00_7c7d),
    (Op::Ld1r, Arr::D2, &[26, 11], 0x4d40_cd7a),
    (Op::Fmaxv, Arr::H4, &[22, 14], 0x0e30_f9d6),
    (Op::Fmaxv, Arr::H8, &[22, 20], 0x4e30_fa96),
    (Op::Fmaxv, Arr::S4, &[8, 18], 0x6e30_fa48),
    (Op::Fminv, Arr::H4, &[18, 15], 0x0eb0_f9f2),
    (Op::Fminv, Arr::H8, &[4, 15], 0x4eb0_f9e4),
    (Op::Fmaxnmv, Arr::H4, &[21, 1], 0x0e30_c835),
    (Op::Fmaxnmv, Arr::H8, &[19, 10], 0x4e30_c953),
    (Op::Fmaxnmv, Arr::S4, &[20, 1], 0x6e30_c834),
    (Op::Fminnmv, Arr::H4, &[21, 19], 0x0eb0_ca75),
    (Op::Fminnmv, Arr::H8, &[9, 30], 0x4eb0_cbc9),
    (Op::FaddpScalar, Arr::D2, &[25, 28], 0x7e70_db99),
    (Op::FmaxpScalar, Arr::D2, &[1, 24], 0x7e70_fb01),
    (Op::FminpScalar, Arr::S2, &[17, 0], 0x7eb0_f811),
    (Op::FminpScalar, Arr::D2, &[13, 31], 0x7ef0_fbed),
    (Op::FmaxnmpScalar, Arr::D2, &[25, 21], 0x7e70_cab9),
    (Op::FminnmpScalar, Arr::S2, &[3, 5], 0x7eb0_c8a3),
    (Op::FminnmpScalar, Arr::D2, &[14, 28], 0x7ef0_cb8e),
    (Op::InsX, Arr::D, &[19, 0, 25], 0x4e08_1f33),
    (Op::DupScalar, Arr::B, &[31, 25, 0], 0x5e01_073f),
    (Op::DupScalar, Arr::H, &[6, 17, 1], 0x5e06_0626),
    (Op::DupScalar, Arr::S, &[10, 6, 3], 0x5e1c_04ca),
    (Op::DupScalar, Arr::D, &[10, 7, 1], 0x5e18_04ea),
    (Op::SdotElement, Arr::S2, &[22, 15, 28, 0], 0x0f9c_e1f6),
    (Op::SdotElement, Arr::S4, &[11, 3, 19, 2], 0x4f93_e86b),
    (Op::UdotElement, Arr::S2, &[4, 22, 19, 0], 0x2f93_e2c4),
    (Op::UdotElement, Arr::S4, &[18, 21, 24, 3], 0x6fb8_eab2),
    (Op::BfdotElement, Arr::S2, &[31, 19, 30, 1], 0x0f7e_f27f),
    (Op::BfdotElement, Arr::S4, &[30, 16, 29, 1], 0x4f7d_f21e),
    (Op::Bfmmla, Arr::None, &[16, 17, 6], 0x6e46_ee30),
    (Op::FcvtDS, Arr::None, &[21, 8], 0x1e22_c115),
    (Op::FcvtHS, Arr::None, &[31, 9], 0x1e23_c13f),
    (Op::FcvtSD, Arr::None, &[27, 4], 0x1e62_409b),
    (Op::FcvtHD, Arr::None, &[30, 8], 0x1e63_c11e),
    (Op::FcvtSH, Arr::None, &[7, 2], 0x1ee2_4047),
    (Op::FcvtDH, Arr::None, &[26, 1], 0x1ee2_c03a),
];

fn is_misread(op: Op, arr: Arr) -> bool {
    MISREAD.iter().any(|it| it.0 == op && it.1 == arr)
}

#[test]
fn an_independent_decoder_reads_back_every_row() {
    let mut wrong = Vec::new();
    for (op, arr, operands, expected) in samples(40) {
        let word = encode(op, arr, &operands);
        let mut found = String::new();
        match disarm64::decoder::decode(word) {
            Some(decoded) => {
                disarm64::format_insn::format_insn_pc(0, &mut found, &decoded).expect("a string");
            }
            None => found += "nothing",
        }
        // The decoder names the register of a low bit `w`.
        let same = match op {
            Op::Tbz | Op::Tbnz => normal(&found).replace('w', "x") == normal(&expected),
            _ => normal(&found) == normal(&expected),
        };
        if !same && !is_misread(op, arr) {
            wrong.push(format!("{op:?} {arr:?} {word:08x}: {expected} came back as {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rows_that_the_decoder_misreads_are_those_of_binutils() {
    for &(op, arr, operands, word) in MISREAD {
        assert_eq!(encode(op, arr, operands), word, "{op:?} {arr:?} {operands:?}");
    }
}

/// What binutils make of the same text.
#[test]
#[ignore = "needs aarch64-linux-gnu-as: scripts/test-aarch64.sh runs it"]
fn binutils_assemble_the_same_words() {
    let samples = samples(40);
    let folder = std::env::temp_dir().join(format!("zyx-arm-asm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).to_str().expect("UTF-8").to_string();
    let mut source = String::from(".arch armv8.6-a+fp16+bf16+i8mm+fp16fml+lse+dotprod\n");
    samples.iter().for_each(|(.., text)| source += &format!("{text}\n"));
    std::fs::write(path("s"), source).expect("a file");
    let run = |tool: &str, args: &[&str]| {
        let status = std::process::Command::new(tool).args(args).status().expect(tool);
        assert!(status.success(), "{tool}");
    };
    run("aarch64-linux-gnu-as", &[&path("s"), "-o", &path("o")]);
    run("aarch64-linux-gnu-objcopy", &["-O", "binary", "-j", ".text", &path("o"), &path("bin")]);
    let bytes = std::fs::read(path("bin")).expect("words");
    std::fs::remove_dir_all(&folder).expect("the folder of this test");
    assert_eq!(bytes.len(), 4 * samples.len());
    for ((op, arr, operands, text), word) in samples.iter().zip(bytes.as_chunks::<4>().0) {
        let (found, expected) = (encode(*op, *arr, operands), u32::from_le_bytes(*word));
        assert_eq!(found, expected, "{op:?} {arr:?} {text}: {found:08x}, not {expected:08x}");
    }
}

#[test]
fn every_mask_has_a_spelling_and_nothing_else_has() {
    let mut masks = std::collections::HashSet::new();
    for width in [32, 64] {
        let mut element = 2;
        while element <= width {
            let ones = u64::MAX >> (64 - element);
            for count in 1..element {
                for by in 0..element {
                    let run = u64::MAX >> (64 - count);
                    let run =
                        if by == 0 { run } else { (run << by | run >> (element - by)) & ones };
                    let mask = (0..width / element).fold(0, |mask, i| mask | run << (i * element));
                    let bits = bitmask(mask, width).unwrap_or_else(|| panic!("{mask:#x}"));
                    assert!(width == 64 || bits >> 12 == 0, "N is for 64 bits");
                    masks.insert((width, mask));
                }
            }
            element *= 2;
        }
    }
    // 5334 masks of 64 bits are in the manual.
    assert_eq!(masks.iter().filter(|it| it.0 == 64).count(), 5334);
    let mut random = Random(3);
    for _ in 0..20_000 {
        let value = random.next() & random.next().rotate_left(1) & !(random.next() << 40);
        for (width, value) in [(64, value), (32, value & 0xffff_ffff)] {
            assert_eq!(
                bitmask(value, width).is_some(),
                masks.contains(&(width, value)),
                "{value:#x}"
            );
        }
    }
    assert_eq!([0, u64::MAX].map(|it| bitmask(it, 64)), [None; 2]);
    assert_eq!(bitmask(0xffff_ffff, 32), None);
}

#[test]
fn other_immediates() {
    for imm in 0..=u8::MAX {
        assert_eq!(float8(immediate::float8_value(imm)), Some(imm));
        let mask = (0..8).fold(0, |mask, i| mask | ((u64::from(imm) >> i & 1) * 0xff) << (8 * i));
        assert_eq!(byte_mask(mask), Some(imm));
    }
    assert_eq!([0.0, -0.0, 0.1, 32.0, f64::NAN].map(float8), [None; 5]);
    assert_eq!(byte_mask(0xfe), None);
    assert_eq!(add_immediate(0xfff), Some((0xfff, false)));
    assert_eq!(add_immediate(0x12_3000), Some((0x123, true)));
    assert_eq!([0x1001, 0x100_0000].map(add_immediate), [None; 2]);
}

/// Runs what `mov_imm` and `add_imm` write, which is a handful of instructions.
fn interpret(code: &[u8], registers: &mut [u64; 32]) {
    for word in code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)) {
        let bits = |at: u32, n: u32| u64::from(word >> at) & ((1 << n) - 1);
        let (d, n, m) = (bits(0, 5) as usize, bits(5, 5) as usize, bits(16, 5) as usize);
        let shift = 16 * bits(21, 2);
        registers[d] = match word >> 23 {
            0b1_1010_0101 => bits(5, 16) << shift,
            0b1_0010_0101 => !(bits(5, 16) << shift),
            0b1_1110_0101 => registers[d] & !(0xffff << shift) | bits(5, 16) << shift,
            0b1_0010_0010 => registers[n].wrapping_add(bits(10, 12) << (12 * bits(22, 1))),
            0b1_1010_0010 => registers[n].wrapping_sub(bits(10, 12) << (12 * bits(22, 1))),
            0b1_0001_0110 => registers[n].wrapping_add(registers[m]),
            0b1_1001_0110 => registers[n].wrapping_sub(registers[m]),
            0b1_0110_0100 => {
                let element = if bits(22, 1) == 1 { 64 } else { 1 << (!bits(10, 6) & 63).ilog2() };
                let ones = u64::MAX >> (64 - element);
                let (run, by) = (u64::MAX >> (63 - (bits(10, 6) & (element - 1))), bits(16, 6));
                let run = if by == 0 { run } else { (run >> by | run << (element - by)) & ones };
                (0..64 / element).fold(0, |mask, i| mask | run << (i * element))
            }
            _ => panic!("{word:08x} is not written here"),
        };
    }
}

#[test]
fn constants_and_sums_come_out() {
    let mut random = Random(5);
    for i in 0..20_000 {
        let value = match i % 5 {
            0 => random.next(),
            1 => random.mask(64),
            2 => random.next() >> random.below(64),
            3 => !(random.next() >> random.below(64)),
            _ => u64::from(random.next() as u16) << (16 * random.below(4)),
        };
        let mut asm = Assembler::default();
        asm.mov_imm(3, value);
        assert!(asm.position() <= 16);
        let mut registers = [0xdead_beef; 32];
        interpret(&asm.finish().unwrap(), &mut registers);
        assert_eq!(registers[3], value);

        let (dst, src, value) =
            ([3, SP][i % 2], [4, SP][i / 2 % 2], value as i64 >> random.below(60));
        let mut asm = Assembler::default();
        asm.add_imm(dst, src, value, 16);
        let mut registers = [1 << 40; 32];
        interpret(&asm.finish().unwrap(), &mut registers);
        assert_eq!(
            registers[usize::from(dst)],
            (1_u64 << 40).wrapping_add_signed(value),
            "{value}"
        );
    }
}

#[test]
fn labels_and_constants_are_reached() {
    let mut asm = Assembler::default();
    let (back, forth) = (asm.label(), asm.label());
    asm.bind(back);
    let constant = asm.constant(&[7; 16]);
    assert_eq!(constant, asm.constant(&[7; 16]));
    let short = asm.constant(&[9; 4]);
    asm.op(Op::LdrQLiteral, &[1, constant.operand()]);
    asm.op(Op::LdrSLiteral, &[2, short.operand()]);
    asm.op(Op::Adr, &[3, short.operand()]);
    asm.op(Op::BCond, &[Cond::Less as i64, forth.operand()]);
    asm.op(Op::Tbz, &[4, 33, back.operand()]);
    asm.align(16);
    asm.bind(forth);
    asm.op(Op::B, &[back.operand()]);
    asm.op(Op::Ret, &[30]);
    let code = asm.finish().unwrap();
    assert_eq!((code.len(), &code[48..64], &code[64..]), (68, &[7; 16][..], &[9; 4][..]));
    let texts = code[..40].as_chunks::<4>().0.iter().enumerate().map(|(i, word)| {
        let mut text = String::new();
        let decoded = disarm64::decoder::decode(u32::from_le_bytes(*word)).unwrap();
        disarm64::format_insn::format_insn_pc(4 * i as u64, &mut text, &decoded).unwrap();
        normal(&text)
    });
    let expected = [
        "ldr q1 48",
        "ldr s2 64",
        "adr x3 64",
        "b.lt 32",
        "tbz x4 33 0",
        "nop",
        "nop",
        "nop",
        "b 0",
        "ret x30",
    ];
    assert_eq!(texts.collect::<Vec<_>>(), expected.map(normal));
}

#[test]
fn what_is_too_far_is_refused() {
    let mut asm = Assembler::default();
    let label = asm.label();
    asm.op(Op::Tbnz, &[0, 0, label.operand()]);
    (0..(32 << 10) / 4).for_each(|_| asm.op(Op::Nop, &[]));
    asm.bind(label);
    assert_eq!(asm.finish(), Err(TooFar));
    assert_eq!(Cond::Less.not(), Cond::GreaterEqual);
    assert_eq!(ZERO, SP);
}
