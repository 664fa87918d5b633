//! The kernels of `tests/kernels`: what they translate to, and that they compute what the
//! interpreter computes.
//!
//! Snapshots of the source are in `tests/snapshots` of each backend, for a typical device and,
//! where there is one, for a minimal one; `ZYX_BLESS=1` writes them anew.
#![allow(clippy::unwrap_used, reason = "a failing call is a failing test")]

use super::{bytes, run, scalars};
use std::fs;
use std::path::Path;
use zyx_core::hal::{Caps, CompileError, Device, Progress};
use zyx_core::ir::interp::{Options, interpret};
use zyx_core::ir::{Access, Kernel, Op, Order, Verified, mma, verify_for};
use zyx_core::legalize::legalize;
use zyx_core::testing::rewritten;
use zyx_core::{Class, DType, Scalar};

macro_rules! kernels {
    ($($name:ident)*) => {
        /// Names and texts of the kernels.
        pub const KERNELS: &[(&str, &str)] = &[
            $((stringify!($name), include_str!(concat!("../../kernels/", stringify!($name), ".ir"))),)*
        ];
    };
}

kernels!(
    arguments atomic_floats atomic_halves atomic_parts atomic_stores atomic_waits atomics block breaks doubles elementwise transpose_shared
    gather halves integers joint matmul mma naive_sum parts reduce_shared stage_rows special two_nests
    vectors wide
);

/// The kernel of this name.
///
/// # Panics
/// When there is none.
pub fn kernel(name: &str) -> Kernel {
    let (_, text) = KERNELS.iter().find(|kernel| kernel.0 == name).expect("a kernel of the list");
    text.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
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

/// How the sources of a backend are kept.
#[derive(Clone, Copy, Debug)]
pub struct Snapshots<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// What follows the kernel's name: the extension and what tells devices apart.
    pub suffix: &'a str,
    /// What the device is like.
    pub caps: &'a Caps,
    /// Translates a kernel: `Device::source`, or another language of the backend.
    pub source: fn(&Verified, &Caps) -> Result<String, CompileError>,
    /// Whether kernels are legalised first. Expansions are the core's own, so a backend that needs
    /// many of them keeps those kernels alone that are legal as they stand.
    pub legalised: bool,
    /// The line behind which the part starts that depends on the kernel.
    pub after: Option<&'a str>,
    /// Kernels that are left out, because what they show is the core's work.
    pub except: &'a [&'a str],
}

/// Compares the source of every kernel that is legal with the snapshot; for one that is not, there
/// must be none.
///
/// # Panics
/// When a source has changed.
pub fn sources_are_as_before(snapshots: Snapshots<'_>) {
    let mut wrong = Vec::new();
    for (name, _) in KERNELS.iter().filter(|kernel| !snapshots.except.contains(&kernel.0)) {
        let (kernel, caps) = (kernel(name), snapshots.caps);
        let kernel = if snapshots.legalised { legalize(&kernel, caps) } else { Ok(kernel) };
        let kernel = kernel.map_err(|error| error.to_string());
        let legal = kernel.and_then(|k| verify_for(&k, caps).map(|_| k).map_err(|e| e.to_string()));
        let name = format!("{name}{}", snapshots.suffix);
        let snapshot = snapshots.folder.join(&name);
        let kernel = match legal {
            Ok(kernel) => kernel,
            Err(error) => {
                if snapshot.exists() {
                    wrong.push(format!("{name} is a snapshot of what is not legal: {error}"));
                }
                continue;
            }
        };
        let source = (snapshots.source)(&rewritten(&kernel).unwrap(), caps).unwrap();
        let source = match snapshots.after {
            Some(line) => source.split_once(line).unwrap().1,
            None => &source,
        };
        if std::env::var("ZYX_BLESS").is_ok_and(|value| value == "1") {
            fs::create_dir_all(snapshots.folder).unwrap();
            fs::write(snapshot, source).unwrap();
            continue;
        }
        let old = fs::read_to_string(&snapshot).unwrap_or_default();
        if old != source {
            wrong.push(format!("{name} differs {}", difference(&old, source)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

/// What a kernel needs that the device lacks and legalisation cannot give.
fn lacks(kernel: &Kernel, caps: &Caps) -> Option<&'static str> {
    kernel.iter().find_map(|(_, op, ty)| match op {
        _ if !caps.storage.contains(ty.dtype) => Some("a dtype"),
        _ if ty.is_vector() && ty.bytes() > caps.vector_bytes => Some("vectors"),
        Op::Atomic { .. } if !caps.atomics.contains(ty.dtype) => Some("atomics"),
        Op::Atomic { .. } if !caps.atomic_add.contains(ty.dtype) => Some("atomics"),
        Op::Load { order: Order::Relaxed, .. } | Op::Store { order: Order::Relaxed, .. }
            if !caps.atomics.contains(ty.dtype) =>
        {
            Some("atomics")
        }
        Op::Load { order: Order::AcquireSpin, .. } if caps.progress == Progress::None => {
            Some("waits")
        }
        Op::Shuffle { .. } if caps.subgroup.1 == 0 => Some("subgroups"),
        Op::Mma { row, .. } if !mma::ROWS[row as usize].is_in(caps) => Some("matrix instructions"),
        _ => None,
    })
}

/// The kernel as the device gets it, unless it needs what the device lacks.
///
/// # Panics
/// When nothing is lacking and it is not legal all the same.
pub fn legal(kernel: &Kernel, caps: &Caps) -> Option<Kernel> {
    let legal = legalize(kernel, caps).map_err(|error| error.to_string());
    let legal = legal.and_then(|k| verify_for(&k, caps).map(|_| k).map_err(|e| e.to_string()));
    match legal {
        Ok(legal) => Some(legal),
        Err(error) => {
            assert!(lacks(kernel, caps).is_some(), "{}: {error}", kernel.name());
            None
        }
    }
}

/// Random buffers and scalars for a kernel.
fn inputs(kernel: &Kernel, round: u64) -> (Vec<Vec<u8>>, Vec<u64>) {
    let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let special = round > 1;
    let zero = kernel.name().starts_with("atomic");
    let buffers = kernel.params();
    let buffers = buffers.iter().map(|p| match p.access {
        Access::Write => vec![0; p.len as usize * p.dtype.size()],
        Access::ReadWrite if zero => vec![0; p.len as usize * p.dtype.size()],
        _ => {
            let elements = (0..p.len).map(|_| random.scalar(p.dtype, special));
            bytes(&elements.collect::<Vec<_>>())
        }
    });
    let buffers = buffers.collect();
    let vars = kernel.vars();
    let vars = vars.iter().map(|v| match v.dtype.is_int() {
        true => {
            let x = v.min + (random.next() % (v.max - v.min + 1) as u64) as i64;
            Scalar::from_i64(v.dtype, x).bits()
        }
        false => random.scalar(v.dtype, false).bits(),
    });
    (buffers, vars.collect())
}

/// Runs a kernel on numbers of four kinds.
///
/// # Panics
/// When a result is not the interpreter's.
pub fn results_are_the_interpreters<D: Device>(device: &D, name: &str) {
    let kernel = kernel(name);
    let Some(legal) = legal(&kernel, device.caps()) else { return };
    for round in 1..=4u64 {
        let (buffers, vars) = inputs(&kernel, round);
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
