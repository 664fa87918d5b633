//! Random kernels against the interpreter, as they are and after legalisation.
//!
//! `ZYX_RANDOM` sets how many kernels of each kind are tried; a failure names the seed and prints
//! the kernel made small. Numbers are few by default since a driver's compiler is slow. On a device
//! that flushes subnormal numbers, kernels whose results depend on them are left out.

use super::{run, scalars};
use crate::tolerance::smallest_normal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zyx_core::hal::{Caps, Device};
use zyx_core::ir::interp::{self, interpret};
use zyx_core::ir::{Kernel, Op, verify_for};
use zyx_core::legalize::legalize;
use zyx_core::passes::rebuild::Rebuild;
use zyx_core::testing::generate::{
    Options, random_inputs, random_kernel, random_vars, same_elements, shrink,
};
use zyx_core::testing::rewritten;
use zyx_core::{BinaryOp, DTypeSet, Scalar, UnaryOp};

fn count() -> u64 {
    std::env::var("ZYX_RANDOM").ok().and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// What goes wrong with a kernel on the device, if anything.
fn fault<D: Device>(device: &D, kernel: &Kernel, seed: u64) -> Option<String> {
    let legal = match legalize(kernel, device.caps()) {
        Ok(legal) => legal,
        Err(error) => return Some(error.to_string()),
    };
    if let Err(error) = verify_for(&legal, device.caps()) {
        return Some(format!("not legal after legalisation: {error}"));
    }
    let (inputs, vars) = (random_inputs(kernel, seed), random_vars(kernel, seed));
    let mut expected = inputs.clone();
    interpret(kernel, &mut expected, &vars, &interp::Options::fast())
        .expect("random kernels are right");
    let actual = catch_unwind(AssertUnwindSafe(|| run(device, &legal, &inputs, &vars)));
    let Ok(actual) = actual else { return Some("the device fails".to_owned()) };
    let params = || kernel.params().iter().enumerate();
    let wrong = params().filter(|(i, p)| !same_elements(p.dtype, &actual[*i], &expected[*i]));
    let wrong: Vec<String> = wrong
        .map(|(i, p)| {
            let size = p.dtype.size();
            let elements = actual[i].chunks(size).zip(expected[i].chunks(size)).enumerate();
            let first = elements.into_iter().find(|(_, (a, e))| !same_elements(p.dtype, a, e));
            let (at, (a, e)) = first.expect("invariant: buffers that differ have such an element");
            let (a, e) = (scalars(p.dtype, a)[0], scalars(p.dtype, e)[0]);
            format!("buffer {i}[{at}] is {a:?}, not {e:?}")
        })
        .collect();
    let flushed = device.caps().flushes_subnormals;
    if !wrong.is_empty() && flushed != DTypeSet::NONE {
        let mut otherwise = inputs.clone();
        interpret(&with_zeros(&legal, flushed), &mut otherwise, &vars, &interp::Options::fast())
            .expect("random kernels are right");
        if params().any(|(i, p)| !same_elements(p.dtype, &otherwise[i], &expected[i])) {
            return None;
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

/// The kernel with zeros for all subnormal numbers, and what may be rounded ones, of some dtypes.
fn with_zeros(kernel: &Kernel, dtypes: DTypeSet) -> Kernel {
    let mut r = Rebuild::new(kernel);
    for (v, op, ty) in kernel.iter() {
        let x = r.copy(v);
        let computes = matches!(
            op,
            Op::Const { .. }
                | Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Ternary { .. }
                | Op::Cast { .. }
                | Op::Bitcast { .. }
                | Op::Load { .. }
        );
        if !computes || !dtypes.contains(ty.dtype) {
            continue;
        }
        let [zero, tiny] = [0.0, smallest_normal(ty.dtype)].map(|x| {
            let constant = r.out.constant(Scalar::from_f64(ty.dtype, x));
            r.out.splat(constant, ty.lanes)
        });
        let magnitude = r.out.unary(UnaryOp::Abs, x);
        let above = r.out.binary(BinaryOp::Lt, zero, magnitude);
        let below = r.out.binary(BinaryOp::Le, magnitude, tiny);
        let is_tiny = r.out.binary(BinaryOp::And, above, below);
        let y = r.out.select(is_tiny, zero, x);
        r.set(v, y);
    }
    r.out.finish()
}

fn check<D: Device>(device: &D, options: &Options, first: u64) {
    for seed in first..first + count() {
        if std::env::var_os("ZYX_RANDOM_TRACE").is_some() {
            eprintln!("seed {seed}");
        }
        let kernel = random_kernel(seed, options);
        let Some(reason) = fault(device, &kernel, seed) else { continue };
        let small = shrink(&kernel, |k| fault(device, k, seed).is_some());
        let source = match legalize(&small, device.caps()) {
            Ok(legal) => match rewritten(&legal) {
                Ok(legal) => D::source(&legal, device.caps()).unwrap_or_else(|e| e.to_string()),
                Err(error) => error.to_string(),
            },
            Err(error) => error.to_string(),
        };
        let now = fault(device, &small, seed);
        panic!("seed {seed}: {reason}; made small: {now:?}\n{small}\n{source}");
    }
}

fn for_device(caps: &Caps, local: bool) -> Options {
    let atomics = true;
    Options { local, atomics, ..Options::for_caps(caps) }
}

/// Kernels that need no legalisation, with and without threads that share storage.
///
/// # Panics
/// When a result is wrong.
pub fn device_kernels<D: Device>(device: &D, local: bool) {
    let options = for_device(device.caps(), local);
    check(device, &options, 1000);
}

/// Kernels of all dtypes and ops, legalised.
///
/// # Panics
/// When a result is wrong.
pub fn legalised_kernels<D: Device>(device: &D) {
    let caps = device.caps();
    let mut wide = caps.clone();
    wide.compute = caps.storage;
    let options = Options {
        dtypes: caps.storage,
        // Halves are computed in `f32`, which has to fit too.
        max_lanes: (caps.vector_bytes / 4).clamp(1, 16) as u8,
        masked: caps.masked,
        caps: wide,
        ..Options::default()
    };
    check(device, &options, 5000);
}
