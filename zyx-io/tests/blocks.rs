//! Every kind of quantised block of GGUF files, against elements that were known before they were
//! packed.
//!
//! A block is made here from random integers, each put at its place by the layout in ggml's
//! `ggml-common.h` and with the full range that its bits have; what is expected of element `i` is
//! then computed from the integers and not from the block. Files the gguf package wrote are in
//! `files.rs`.

use half::f16;
use std::path::PathBuf;
use zyx_core::{Device, Error, Result, Runtime};
use zyx_io::gguf::Gguf;

/// Name, number of the type, elements and bytes of a block.
const KINDS: [(&str, u32, usize, usize); 11] = [
    ("Q4_0", 2, 32, 18),
    ("Q4_1", 3, 32, 20),
    ("Q5_0", 6, 32, 22),
    ("Q5_1", 7, 32, 24),
    ("Q8_0", 8, 32, 34),
    ("Q2_K", 10, 256, 84),
    ("Q3_K", 11, 256, 110),
    ("Q4_K", 12, 256, 144),
    ("Q5_K", 13, 256, 176),
    ("Q6_K", 14, 256, 210),
    ("Q8_K", 15, 256, 292),
];

fn device() -> Device {
    Runtime::default().device("reference").expect("always present")
}

/// A linear congruential generator; its upper bits are random enough.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % u64::from(n)) as u32
    }

    fn list(&mut self, len: usize, below: u32) -> Vec<u32> {
        (0..len).map(|_| self.below(below)).collect()
    }

    /// A scale with either sign that `f16` has.
    fn scale(&mut self) -> f16 {
        f16::from_f32(self.below(4001) as f32 / 1000.0 - 2.0)
    }
}

/// A block under construction.
struct Block(Vec<u8>);

impl Block {
    /// Bits of one byte that were zero before.
    fn put(&mut self, byte: usize, shift: usize, value: u32) {
        let value = u8::try_from(value << shift).expect("it fits the byte");
        assert_eq!(self.0[byte] & value, 0, "nothing else is there");
        self.0[byte] |= value;
    }

    fn half(&mut self, at: usize, value: f16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

/// A random block of a kind and its elements.
fn block(kind: &str, size: usize, random: &mut Random) -> (Vec<u8>, Vec<f64>) {
    let mut block = Block(vec![0; size]);
    let elements = match kind {
        "Q4_0" => small(&mut block, random, 4, false),
        "Q4_1" => small(&mut block, random, 4, true),
        "Q5_0" => small(&mut block, random, 5, false),
        "Q5_1" => small(&mut block, random, 5, true),
        "Q8_0" => q8_0(&mut block, random),
        "Q2_K" => q2_k(&mut block, random),
        "Q3_K" => q3_k(&mut block, random),
        "Q4_K" => q45_k(&mut block, random, 4),
        "Q5_K" => q45_k(&mut block, random, 5),
        "Q6_K" => q6_k(&mut block, random),
        "Q8_K" => q8_k(&mut block, random),
        other => unreachable!("{other} is in no row of the table"),
    };
    (block.0, elements)
}

/// `d`, then `m` if there are minima, then `qh` if there are five bits, then `qs[16]`.
fn small(block: &mut Block, random: &mut Random, bits: u32, minimum: bool) -> Vec<f64> {
    let (d, m) = (random.scale(), random.scale());
    let q = random.list(32, 1 << bits);
    block.half(0, d);
    let mut at = 2;
    if minimum {
        block.half(at, m);
        at += 2;
    }
    if bits == 5 {
        (0..32).for_each(|i| block.put(at + i / 8, i % 8, q[i] >> 4));
        at += 4;
    }
    (0..32).for_each(|i| block.put(at + i % 16, i / 16 * 4, q[i] & 15));
    let least = if minimum { m.to_f64() } else { -d.to_f64() * f64::from(1 << (bits - 1)) };
    q.iter().map(|&q| d.to_f64() * f64::from(q) + least).collect()
}

/// `d`, `qs[32]`.
fn q8_0(block: &mut Block, random: &mut Random) -> Vec<f64> {
    let d = random.scale();
    let q = random.list(32, 256);
    block.half(0, d);
    (0..32).for_each(|i| block.put(2 + i, 0, q[i]));
    q.iter().map(|&q| d.to_f64() * f64::from(q as u8 as i8)).collect()
}

/// Two bits of each of 256 elements in 64 bytes: elements `l`, `l + 32`, `l + 64` and `l + 96` of a
/// half share a byte.
fn put_two_bits(block: &mut Block, at: usize, q: &[u32]) {
    for half in 0..2 {
        for l in 0..32 {
            for quarter in 0..4 {
                let element = 128 * half + 32 * quarter + l;
                block.put(at + 32 * half + l, 2 * quarter, q[element]);
            }
        }
    }
}

/// `scales[16]` (low half scale, high half minimum), `qs[64]`, `d`, `dmin`.
fn q2_k(block: &mut Block, random: &mut Random) -> Vec<f64> {
    let (d, m) = (random.scale(), random.scale());
    let (scales, mins) = (random.list(16, 16), random.list(16, 16));
    let q = random.list(256, 4);
    for j in 0..16 {
        block.put(j, 0, scales[j]);
        block.put(j, 4, mins[j]);
    }
    put_two_bits(block, 16, &q);
    block.half(80, d);
    block.half(82, m);
    let element = |i: usize| {
        let (scale, minimum) = (f64::from(scales[i / 16]), f64::from(mins[i / 16]));
        d.to_f64() * scale * f64::from(q[i]) - m.to_f64() * minimum
    };
    (0..256).map(element).collect()
}

/// `hmask[32]`, `qs[64]`, `scales[12]` (sixteen of six bits), `d`.
fn q3_k(block: &mut Block, random: &mut Random) -> Vec<f64> {
    let d = random.scale();
    let scales = random.list(16, 64);
    let q = random.list(256, 8);
    // The third bits of the first 32 elements are the lowest of each byte, and so on.
    (0..256).for_each(|i| block.put(i % 32, i / 32, q[i] >> 2));
    put_two_bits(block, 32, &q.iter().map(|q| q & 3).collect::<Vec<_>>());
    for (j, scale) in scales.iter().enumerate() {
        block.put(96 + j % 8, j / 8 * 4, scale & 15);
        block.put(104 + j % 4, j / 4 * 2, scale >> 4);
    }
    block.half(108, d);
    let element = |i: usize| {
        let scale = f64::from(scales[i / 16]) - 32.0;
        d.to_f64() * scale * (f64::from(q[i]) - 4.0)
    };
    (0..256).map(element).collect()
}

/// `d`, `dmin`, `scales[12]` (eight scales and minima of six bits), `qh[32]` if there are five bits,
/// `qs[128]`.
fn q45_k(block: &mut Block, random: &mut Random, bits: u32) -> Vec<f64> {
    let (d, m) = (random.scale(), random.scale());
    let (scales, mins) = (random.list(8, 64), random.list(8, 64));
    let q = random.list(256, 1 << bits);
    block.half(0, d);
    block.half(2, m);
    for j in 0..4 {
        block.put(4 + j, 0, scales[j]);
        block.put(8 + j, 0, mins[j]);
        block.put(12 + j, 0, scales[4 + j] & 15);
        block.put(12 + j, 4, mins[4 + j] & 15);
        block.put(4 + j, 6, scales[4 + j] >> 4);
        block.put(8 + j, 6, mins[4 + j] >> 4);
    }
    let mut at = 16;
    if bits == 5 {
        (0..256).for_each(|i| block.put(at + i % 32, i / 32, q[i] >> 4));
        at += 32;
    }
    (0..256).for_each(|i| block.put(at + i / 64 * 32 + i % 32, i % 64 / 32 * 4, q[i] & 15));
    let element = |i: usize| {
        let (scale, minimum) = (f64::from(scales[i / 32]), f64::from(mins[i / 32]));
        d.to_f64() * scale * f64::from(q[i]) - m.to_f64() * minimum
    };
    (0..256).map(element).collect()
}

/// `ql[128]`, `qh[64]`, `scales[16]`, `d`.
fn q6_k(block: &mut Block, random: &mut Random) -> Vec<f64> {
    let d = random.scale();
    let scales = random.list(16, 256);
    let q = random.list(256, 64);
    for half in 0..2 {
        for l in 0..64 {
            // A byte has the low bits of elements 64 apart.
            block.put(64 * half + l, 0, q[128 * half + l] & 15);
            block.put(64 * half + l, 4, q[128 * half + 64 + l] & 15);
        }
    }
    put_two_bits(block, 128, &q.iter().map(|q| q >> 4).collect::<Vec<_>>());
    (0..16).for_each(|j| block.put(192 + j, 0, scales[j]));
    block.half(208, d);
    let element = |i: usize| {
        let scale = f64::from(scales[i / 16] as u8 as i8);
        d.to_f64() * scale * (f64::from(q[i]) - 32.0)
    };
    (0..256).map(element).collect()
}

/// `d` in `f32`, `qs[256]`, `bsums[16]` of 16 bits, which say nothing about elements.
fn q8_k(block: &mut Block, random: &mut Random) -> Vec<f64> {
    let d = random.scale().to_f32() / 3.0;
    let q = random.list(256, 256);
    block.0[..4].copy_from_slice(&d.to_le_bytes());
    (0..256).for_each(|i| block.put(4 + i, 0, q[i]));
    (260..292).for_each(|at| block.put(at, 0, random.below(256)));
    q.iter().map(|&q| f64::from(d) * f64::from(q as u8 as i8)).collect()
}

/// A file of one tensor `x`; extents are slowest first. Data begins at its byte 96.
fn file(kind: u32, extents: [usize; 2], data: &[u8]) -> Vec<u8> {
    let mut bytes = b"GGUF".to_vec();
    bytes.extend(3u32.to_le_bytes());
    // One tensor, no metadata.
    bytes.extend([1u64, 0, 1].iter().flat_map(|n| n.to_le_bytes()));
    bytes.push(b'x');
    bytes.extend(2u32.to_le_bytes());
    bytes.extend(extents.iter().rev().flat_map(|&n| (n as u64).to_le_bytes()));
    bytes.extend(kind.to_le_bytes());
    bytes.extend(0u64.to_le_bytes());
    bytes.resize(96, 0);
    bytes.extend(data);
    bytes
}

/// A file that is removed with the guard.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let name = format!("zyx-io-{name}-{}.gguf", std::process::id());
        Temporary(std::env::temp_dir().join(name))
    }

    fn write(&self, bytes: &[u8]) {
        std::fs::write(&self.0, bytes).expect("a temporary file");
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// All types of ggml, by number.
#[rustfmt::skip]
const TYPES: [&str; 42] = [
    "F32", "F16", "Q4_0", "Q4_1", "Q4_2", "Q4_3", "Q5_0", "Q5_1", "Q8_0", "Q8_1", "Q2_K", "Q3_K",
    "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL", "IQ3_S",
    "IQ2_S", "IQ4_XS", "I8", "I16", "I32", "I64", "F64", "IQ1_M", "BF16", "Q4_0_4_4", "Q4_0_4_8",
    "Q4_0_8_8", "TQ1_0", "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4", "NVFP4", "Q1_0",
];

#[test]
fn every_type_is_read_or_refused_by_its_name() -> Result<()> {
    let (device, path) = (device(), Temporary::new("types"));
    let mut read = Vec::new();
    for kind in (0..64).chain([u32::MAX]) {
        path.write(&file(kind, [1, 256], &[0; 2048]));
        let name =
            TYPES.get(kind as usize).map_or_else(|| format!("type {kind}"), |&name| name.into());
        match Gguf::open(&path.0)?.load("x", &device) {
            Ok(x) => {
                assert_eq!(x.shape().dims(), [1, 256], "{name}");
                read.push(name);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains(&format!(": {name} cannot be read")), "{kind}: {text}");
            }
        }
    }
    let kinds = KINDS.map(|(name, ..)| name);
    let others = ["F32", "F16", "I8", "I16", "I32", "I64", "F64", "BF16"];
    assert_eq!(read.len(), kinds.len() + others.len(), "{read:?}");
    assert!(read.iter().all(|name| kinds.contains(&&**name) || others.contains(&&**name)));
    Ok(())
}

#[test]
fn random_blocks() -> Result<()> {
    let (device, path) = (device(), Temporary::new("blocks"));
    let mut random = Random(7);
    for (name, kind, elements, size) in KINDS {
        // Three rows of two blocks: more than one block, and more than one row.
        let (mut data, mut want) = (Vec::new(), Vec::new());
        for _ in 0..6 {
            let (bytes, values) = block(name, size, &mut random);
            assert_eq!((bytes.len(), values.len()), (size, elements), "{name}");
            data.extend(bytes);
            want.extend(values);
        }
        path.write(&file(kind, [3, 2 * elements], &data));
        let x = Gguf::open(&path.0)?.load("x", &device)?;
        assert_eq!(x.shape().dims(), [3, 2 * elements], "{name}");
        for (i, (got, want)) in x.to_vec::<f32>()?.into_iter().zip(want).enumerate() {
            // A scaled element and its minimum, at most 2 * 63, are rounded up to three times.
            let error = (f64::from(got) - want).abs();
            assert!(error <= 4e-7 * want.abs().max(126.0), "{name} {i}: {got}, not {want}");
        }
    }
    Ok(())
}

#[test]
fn parts_of_blocks_are_refused() -> Result<()> {
    let (device, path) = (device(), Temporary::new("parts"));
    for (name, kind, elements, size) in KINDS {
        let whole = file(kind, [2, elements], &vec![1; 2 * size]);
        for missing in [1, 2, size - 1, size, size + 1, 2 * size] {
            path.write(&whole[..whole.len() - missing]);
            let error = Gguf::open(&path.0)?.load("x", &device).expect_err("a part of a tensor");
            assert!(matches!(error, Error::Format { .. }), "{name}: {error}");
            let (error, left) = (error.to_string(), 2 * size - missing);
            let wanted = format!("{} bytes where {left} are left", 2 * size);
            assert!(error.contains("`x`") && error.contains(&wanted), "{name}: {error}");
        }
        // Rows begin with a block each.
        path.write(&file(kind, [2, elements / 2], &vec![1; size]));
        let error = Gguf::open(&path.0)?.load("x", &device).expect_err("half blocks").to_string();
        let wanted = format!("not whole {name} blocks of {elements}");
        assert!(error.contains(&wanted), "{name}: {error}");
        // A file that became shorter after it was opened.
        path.write(&whole);
        let file = Gguf::open(&path.0)?;
        path.write(&whole[..whole.len() - 1]);
        let error = file.load("x", &device).expect_err("its end is gone");
        assert!(matches!(error, Error::Io { .. }), "{name}: {error}");
    }
    Ok(())
}
