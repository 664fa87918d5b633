//! Blocks of small integers with scales, as floats.
//!
//! Layouts are those of ggml (`ggml-common.h` and `ggml-quants.c` of llama.cpp): blocks of 32
//! elements have one scale and perhaps one minimum; blocks of 256 ("K") have one of each and small
//! integer multiples of them for groups of 16 or 32 elements.

use half::f16;

/// How elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quant {
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Q8K,
}

impl Quant {
    /// What ggml calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Quant::Q4_0 => "Q4_0",
            Quant::Q4_1 => "Q4_1",
            Quant::Q5_0 => "Q5_0",
            Quant::Q5_1 => "Q5_1",
            Quant::Q8_0 => "Q8_0",
            Quant::Q2K => "Q2_K",
            Quant::Q3K => "Q3_K",
            Quant::Q4K => "Q4_K",
            Quant::Q5K => "Q5_K",
            Quant::Q6K => "Q6_K",
            Quant::Q8K => "Q8_K",
        }
    }

    /// Elements of a block.
    pub(crate) fn elements(self) -> usize {
        match self {
            Quant::Q4_0 | Quant::Q4_1 | Quant::Q5_0 | Quant::Q5_1 | Quant::Q8_0 => 32,
            Quant::Q2K | Quant::Q3K | Quant::Q4K | Quant::Q5K | Quant::Q6K | Quant::Q8K => 256,
        }
    }

    /// Bytes of a block.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Quant::Q4_0 => 18,
            Quant::Q4_1 => 20,
            Quant::Q5_0 => 22,
            Quant::Q5_1 => 24,
            Quant::Q8_0 => 34,
            Quant::Q2K => 84,
            Quant::Q3K => 110,
            Quant::Q4K => 144,
            Quant::Q5K => 176,
            Quant::Q6K => 210,
            Quant::Q8K => 292,
        }
    }

    /// The elements of whole blocks, as bytes of `f32`.
    pub(crate) fn floats(self, blocks: &[u8]) -> zyx_core::Result<Vec<u8>> {
        let mut bytes =
            zyx_core::hal::host_room(blocks.len() / self.bytes() * self.elements() * 4)?;
        let mut floats = Vec::with_capacity(self.elements());
        for (step, block) in blocks.chunks_exact(self.bytes()).enumerate() {
            crate::look(step)?;
            self.block(block, &mut floats);
            floats.drain(..).for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
        }
        Ok(bytes)
    }

    fn block(self, block: &[u8], out: &mut Vec<f32>) {
        match self {
            Quant::Q4_0 => plain(block, false, false, out),
            Quant::Q4_1 => plain(block, true, false, out),
            Quant::Q5_0 => plain(block, false, true, out),
            Quant::Q5_1 => plain(block, true, true, out),
            Quant::Q8_0 => {
                let scale = half_at(block, 0);
                out.extend(block[2..].iter().map(|&q| scale * f32::from(q as i8)));
            }
            Quant::Q2K => twos(block, out),
            Quant::Q3K => threes(block, out),
            Quant::Q4K => groups(block, false, out),
            Quant::Q5K => groups(block, true, out),
            Quant::Q6K => sixes(block, out),
            Quant::Q8K => eights(block, out),
        }
    }
}

fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Scale, perhaps a minimum, perhaps fifth bits, then sixteen bytes of two elements each: the low
/// halves are the first sixteen. Without a minimum the integers are centred.
fn plain(block: &[u8], minimum: bool, fifth: bool, out: &mut Vec<f32>) {
    let scale = half_at(block, 0);
    let mut at = 2;
    let mut least = 0.0;
    if minimum {
        least = half_at(block, 2);
        at += 2;
    }
    let mut high = 0;
    if fifth {
        high = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        at += 4;
    }
    let centre = match (minimum, fifth) {
        (true, _) => 0,
        (false, false) => 8,
        (false, true) => 16,
    };
    for i in 0..32 {
        let byte = block[at + i % 16];
        let low = if i < 16 { byte & 15 } else { byte >> 4 };
        let q = i32::from(low) | ((high >> i & 1) << 4) as i32;
        out.push((q - centre) as f32 * scale + least);
    }
}

/// Six-bit scale and minimum of group `j` of eight, packed into twelve bytes.
fn scale_and_minimum(packed: &[u8], j: usize) -> (f32, f32) {
    let (scale, minimum) = if j < 4 {
        (packed[j] & 63, packed[j + 4] & 63)
    } else {
        let high = |byte: u8| (byte >> 6) << 4;
        (packed[j + 4] & 15 | high(packed[j - 4]), packed[j + 4] >> 4 | high(packed[j]))
    };
    (f32::from(scale), f32::from(minimum))
}

/// 256 elements of four or five bits in eight groups, each `scale q - minimum`.
fn groups(block: &[u8], fifth: bool, out: &mut Vec<f32>) {
    let (scale, minimum) = (half_at(block, 0), half_at(block, 2));
    let packed = &block[4..16];
    let (high, low) =
        if fifth { (&block[16..48], &block[48..]) } else { (&block[..0], &block[16..]) };
    for group in 0..8 {
        let (s, m) = scale_and_minimum(packed, group);
        let (s, m) = (scale * s, minimum * m);
        for i in 0..32 {
            let byte = low[group / 2 * 32 + i];
            let mut q = if group % 2 == 0 { byte & 15 } else { byte >> 4 };
            if fifth {
                q |= (high[i] >> group & 1) << 4;
            }
            out.push(s * f32::from(q) - m);
        }
    }
}

/// The two bits of element `at` of 256 that are packed into 64 bytes: each half of the elements has
/// 32 of the bytes, of which each quarter of the half takes two bits.
fn two_bits(packed: &[u8], at: usize) -> u8 {
    packed[at / 128 * 32 + at % 32] >> (at % 128 / 32 * 2) & 3
}

/// 256 elements of two bits in sixteen groups, each `scale q - minimum`; scale and minimum have
/// four bits each.
fn twos(block: &[u8], out: &mut Vec<f32>) {
    let (packed, low) = (&block[..16], &block[16..80]);
    let (scale, minimum) = (half_at(block, 80), half_at(block, 82));
    for (group, byte) in packed.iter().enumerate() {
        let (s, m) = (scale * f32::from(byte & 15), minimum * f32::from(byte >> 4));
        out.extend((0..16).map(|i| s * f32::from(two_bits(low, group * 16 + i)) - m));
    }
}

/// 256 elements of three bits in sixteen groups with a signed scale of six bits. Third bits are
/// apart, one byte for every 32nd element; so are the upper two bits of the scales, one byte for
/// every fourth group.
fn threes(block: &[u8], out: &mut Vec<f32>) {
    let (high, low, packed) = (&block[..32], &block[32..96], &block[96..108]);
    let scale = half_at(block, 108);
    for group in 0..16 {
        let four = if group < 8 { packed[group] & 15 } else { packed[group - 8] >> 4 };
        let two = packed[8 + group % 4] >> (group / 4 * 2) & 3;
        let s = scale * f32::from((four | two << 4) as i8 - 32);
        out.extend((group * 16..group * 16 + 16).map(|at| {
            let third = high[at % 32] >> (at / 32) & 1;
            s * f32::from((two_bits(low, at) | third << 2) as i8 - 4)
        }));
    }
}

/// 256 elements of eight bits with one scale of 32. The sums of groups that follow serve products
/// of integers and are not needed here.
fn eights(block: &[u8], out: &mut Vec<f32>) {
    let scale = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    out.extend(block[4..260].iter().map(|&q| scale * f32::from(q as i8)));
}

/// 256 elements of six bits, in two halves of four quarters, with a signed scale for each sixteen.
fn sixes(block: &[u8], out: &mut Vec<f32>) {
    let (low, high, scales) = (&block[..128], &block[128..192], &block[192..208]);
    let scale = half_at(block, 208);
    for half in 0..2 {
        for quarter in 0..4 {
            for i in 0..32 {
                let byte = low[half * 64 + quarter % 2 * 32 + i];
                let four = if quarter < 2 { byte & 15 } else { byte >> 4 };
                let two = high[half * 32 + i] >> (2 * quarter) & 3;
                let q = i32::from(four | two << 4) - 32;
                let s = scales[half * 8 + quarter * 2 + i / 16] as i8;
                out.push(scale * f32::from(s) * q as f32);
            }
        }
    }
}
