//! The kernels of `tests/kernels`: what they translate to, and that they compute what the
//! interpreter computes.
//!
//! Snapshots of the source are in `tests/snapshots`, for a typical and for a minimal device, of
//! those kernels that are legal as they stand. `ZYX_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use backend_wgpu::{Wgpu, WgpuDevice};
use common::{bytes, device, run, scalars};
use rstest::rstest;
use std::fs;
use std::path::{Path, PathBuf};
use zyx_core::hal::{Caps, Device};
use zyx_core::ir::interp::{Options, interpret};
use zyx_core::ir::{Access, Kernel, Op, verify_for};
use zyx_core::legalize::legalize;
use zyx_core::{Class, DType, Scalar};

fn directory(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn kernel(path: &Path) -> Kernel {
    let text = fs::read_to_string(path).unwrap();
    text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The kernel as the device gets it, unless it has vectors or dtypes the device lacks.
fn legal(kernel: &Kernel, caps: &Caps) -> Option<Kernel> {
    let lacks = |dtype| !caps.storage.contains(dtype) || caps.atomics != caps.storage;
    let missing = kernel.iter().any(|(_, op, ty)| {
        ty.is_vector()
            || !caps.storage.contains(ty.dtype)
            || matches!(op, Op::Atomic { .. }) && lacks(ty.dtype)
    });
    if missing {
        return None;
    }
    let legal = legalize(kernel, caps).unwrap_or_else(|error| panic!("{error}"));
    verify_for(&legal, caps).unwrap_or_else(|error| panic!("{error}\n{legal}"));
    Some(legal)
}

/// The lines in which two texts differ, with what stood and what stands there.
fn difference(old: &str, new: &str) -> String {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - same;
    let tail = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b);
    let tail = tail.count();
    let mut text = format!("from line {}:\n", same + 1);
    old[same..old.len() - tail].iter().for_each(|line| text += &format!("- {line}\n"));
    new[same..new.len() - tail].iter().for_each(|line| text += &format!("+ {line}\n"));
    text
}

fn golden(path: &Path, backend: Wgpu, suffix: &str) {
    let caps = backend.preset();
    let name = format!("{}{suffix}.wgsl", path.file_stem().unwrap().to_str().unwrap());
    let snapshot = directory("tests/snapshots").join(&name);
    // Expansions are the core's own, so what needs one is not compared here.
    let kernel = kernel(path);
    if verify_for(&kernel, &caps).is_err() {
        assert!(!snapshot.exists(), "{name} is a snapshot of a kernel that is not legal");
        return;
    }
    let source = WgpuDevice::source(&kernel, &caps).unwrap();
    if std::env::var("ZYX_BLESS").is_ok_and(|value| value == "1") {
        fs::create_dir_all(directory("tests/snapshots")).unwrap();
        fs::write(snapshot, source).unwrap();
        return;
    }
    let old = fs::read_to_string(snapshot).unwrap_or_default();
    assert!(old == source, "{name} differs {}", difference(&old, &source));
}

#[rstest]
fn sources_are_as_before(#[files("../tests/kernels/*.ir")] path: PathBuf) {
    golden(&path, Wgpu::default(), "");
    golden(&path, Wgpu::minimal(), ".minimal");
}

/// A sequence of numbers that looks random (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Small numbers, so that sums and products are exact in any order, and now and then
    /// something special.
    fn scalar(&mut self, dtype: DType, special: bool) -> Scalar {
        let small = (self.next() % 21) as i64 - 5;
        match dtype.class() {
            Class::Float if special && self.next().is_multiple_of(50) => {
                let x = [f64::NAN, f64::INFINITY, -0.0, 300.0];
                Scalar::from_f64(dtype, x[self.next() as usize % 4])
            }
            Class::Float => Scalar::from_f64(dtype, small as f64 / 4.0),
            _ if special && self.next().is_multiple_of(10) => Scalar::from_bits(dtype, self.next()),
            _ => Scalar::from_i64(dtype, small),
        }
    }
}

/// Units in the last place by which the results of a kernel may differ: those of the functions it
/// calls one on the other.
fn tolerance(kernel: &Kernel) -> u64 {
    if kernel.name() == "special" { 16 } else { 0 }
}

fn same(a: Scalar, b: Scalar, ulps: u64) -> bool {
    let float = a.dtype().is_float();
    let both_nan = float && a.to_f64().is_nan() && b.to_f64().is_nan();
    // Which of two zeros is the larger is open.
    a == b
        || both_nan
        || (float && a.to_f64() == b.to_f64())
        || (float && a.bits().abs_diff(b.bits()) <= ulps)
}

#[rstest]
fn results_are_the_interpreters(
    #[files("../tests/kernels/*.ir")] path: PathBuf,
    #[values(false, true)] minimal: bool,
) {
    let Some(device) = device(minimal) else { return };
    let kernel = kernel(&path);
    let Some(legal) = legal(&kernel, device.caps()) else { return };
    for round in 1..=4u64 {
        let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let special = round > 1;
        let buffers: Vec<Vec<u8>> = kernel
            .params()
            .iter()
            .map(|p| match p.access {
                Access::Write => vec![0; p.len as usize * p.dtype.size()],
                Access::ReadWrite if kernel.name() == "atomics" => {
                    vec![0; p.len as usize * p.dtype.size()]
                }
                _ => {
                    let elements = (0..p.len).map(|_| random.scalar(p.dtype, special));
                    bytes(&elements.collect::<Vec<_>>())
                }
            })
            .collect();
        let vars: Vec<u64> = kernel
            .vars()
            .iter()
            .map(|v| match v.dtype.is_int() {
                true => (v.min + (random.next() % (v.max - v.min + 1) as u64) as i64) as u64,
                false => random.scalar(v.dtype, false).bits(),
            })
            .collect();
        let mut expected = buffers.clone();
        interpret(&kernel, &mut expected, &vars, &Options::default()).unwrap();
        let actual = run(device, &legal, &buffers, &vars);
        for (slot, p) in kernel.params().iter().enumerate() {
            let (a, e) = (scalars(p.dtype, &actual[slot]), scalars(p.dtype, &expected[slot]));
            for (i, (&a, &e)) in a.iter().zip(&e).enumerate() {
                let ok = same(a, e, tolerance(&kernel));
                assert!(ok, "round {round}, buffer {slot}[{i}] is {a:?}, not {e:?}\n{kernel}");
            }
        }
    }
}
