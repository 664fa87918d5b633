//! Files changed at random: each is read or refused, in the memory that its size allows.
//!
//! `ZYX_MUTANTS` is how many there are of each file, `ZYX_FIRST_SEED` the seed of the first. A failure
//! names the seed, which with `ZYX_MUTANTS=1` makes that mutant alone.

use super::{
    Files, Read, array, arrays, images, indexed, lazy, model, named, samples, saved, table,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Of each file, unless the environment says more.
const MUTANTS: u64 = 60;

/// Numbers that are limits of something.
const ENDS: [u64; 10] =
    [0, 1, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 1 << 40, u64::MAX];

/// Parts that formats are made of.
const PARTS: [&[u8]; 12] = [
    b"(",
    b"}",
    b"]",
    b"[",
    b"{",
    b"\"",
    b",",
    b"cx\ny\n",
    b")\x81}b",
    b"h\0",
    b"PK\x05\x06",
    b"\n",
];

struct Random(u64);

impl Random {
    /// A number below `n`, or 0.
    fn below(&mut self, n: usize) -> usize {
        // An odd multiple of the state, whose high bits are random enough.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize).checked_rem(n).unwrap_or(0)
    }
}

/// Some changes of a file, with parts of another.
fn mutant(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        // Headers are at the ends.
        let at = match random.below(3) {
            0 => random.below(bytes.len().min(200)),
            1 => bytes.len().saturating_sub(1 + random.below(200)),
            _ => random.below(bytes.len()),
        };
        let end = (at + random.below(40)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 => {
                let number = ENDS[random.below(ENDS.len())].to_le_bytes();
                let n = [1, 2, 4, 8][random.below(4)].min(bytes.len() - at);
                bytes[at..at + n].copy_from_slice(&number[..n]);
            }
            2 => drop(bytes.drain(at..end)),
            3 => {
                let again = bytes[at..end].repeat(1 + random.below(50));
                bytes.splice(at..at, again).for_each(drop);
            }
            4 => {
                let from = random.below(other.len());
                let part = &other[from..(from + random.below(100)).min(other.len())];
                bytes.splice(at..end, part.iter().copied()).for_each(drop);
            }
            5 => {
                let part = PARTS[random.below(PARTS.len())].repeat(1 + random.below(20));
                bytes.splice(at..at, part).for_each(drop);
            }
            _ => bytes.truncate(at.max(random.below(bytes.len()))),
        }
    }
    bytes
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

pub(super) fn all(files: &Files) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let mut corpus = samples(files);
    for (name, read) in [
        ("columns.npy", array as Read),
        ("half.npy", array),
        ("model.npz", arrays),
        ("deflated.npz", arrays),
        ("model.gguf", model),
        ("model.pt", saved),
        ("legacy.pt", saved),
        ("protocol5.pt", saved),
        ("refused.pt", saved),
    ] {
        corpus.push((name, std::fs::read(format!("{folder}/{name}")).unwrap(), read));
    }
    let index =
        br#"{"metadata": {"n": 1}, "weight_map": {"a": "x.safetensors", "b": "y.safetensors"}}"#;
    corpus.push(("index", index.to_vec(), indexed));
    let (first, n) = (number("ZYX_FIRST_SEED", 0), number("ZYX_MUTANTS", MUTANTS));
    for (i, (what, bytes, read)) in corpus.iter().enumerate() {
        for seed in first..first + n {
            let mut random = Random((seed << 8 | i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let other = &corpus[random.below(corpus.len())].1;
            let mutant = mutant(bytes, other, &mut random);
            // Any reader may get it: what a file is called says little.
            let readers: [Read; 9] =
                [array, arrays, model, named, lazy, saved, table, images, indexed];
            let read = if random.below(8) > 0 { *read } else { readers[random.below(9)] };
            let done = catch_unwind(AssertUnwindSafe(|| files.read(what, &mutant, &read)));
            assert!(done.is_ok(), "{what}: ZYX_FIRST_SEED={seed} ZYX_MUTANTS=1");
        }
    }
}
