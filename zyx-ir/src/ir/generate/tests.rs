//! Random kernels keep their promises, and failing ones shrink.

use super::*;
use crate::ir::interp::{self, interpret};
use crate::ir::{Op, verify};

fn all_options() -> Vec<Options> {
    let any = DTypeSet::ALL;
    let caps = Caps { compute: any, atomic_add: any, atomics: any, ..Caps::default() };
    vec![
        Options::default(),
        Options::scalar(),
        Options { exact: false, size: 40, ..Options::default() },
        Options { local: true, size: 12, ..Options::default() },
        Options { atomics: true, caps, ..Options::default() },
        Options { dtypes: DTypeSet::of(&[DType::F32]), narrow: false, ..Options::default() },
    ]
}

#[test]
fn random_kernels_verify_and_run_in_any_order() {
    for options in all_options() {
        for seed in 0..300 {
            let kernel = random_kernel(seed, &options);
            let report = verify(&kernel).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
            assert_eq!(report.unproven, [], "seed {seed}\n{kernel}");
            let (inputs, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
            let run = |check, shuffle| {
                let mut buffers = inputs.clone();
                let options = interp::Options { check, shuffle, ..Default::default() };
                interpret(&kernel, &mut buffers, &vars, &options)
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
                buffers
            };
            let in_order = run(true, None);
            assert_eq!(in_order, run(true, Some(seed)), "seed {seed}\n{kernel}");
            assert_eq!(in_order, run(false, Some(!seed)), "seed {seed}\n{kernel}");
        }
    }
}

#[test]
fn random_kernels_round_trip_as_text() {
    for options in all_options() {
        for seed in 0..100 {
            let kernel = random_kernel(seed, &options);
            let text = kernel.to_string();
            assert_eq!(text.parse::<Kernel>().as_ref(), Ok(&kernel), "{text}");
        }
    }
}

/// Every op and dtype turns up, so that nothing is tested by accident only.
#[test]
fn random_kernels_cover_the_ir() {
    let mut words = std::collections::BTreeSet::new();
    let mut dtypes = std::collections::BTreeSet::new();
    for options in all_options() {
        for seed in 0..400 {
            for line in random_kernel(seed, &options).to_string().lines() {
                let mut parts = line.split_whitespace();
                if parts.next().is_some_and(|label| label.starts_with('%')) {
                    words.extend(parts.next().map(str::to_owned));
                    dtypes.extend(line.split(" : ").nth(1).map(str::to_owned));
                }
            }
        }
    }
    for name in
        UnaryOp::ALL.iter().map(|op| op.name()).chain(BinaryOp::ALL.iter().map(|o| o.name()))
    {
        assert!(words.contains(name), "{name} never generated");
    }
    for word in
        "alloc atomic.relaxed barrier bitcast break cast concat extract fold guard if lanes load loop muladd \
         splat store store.streaming var where"
            .split_whitespace()
    {
        assert!(words.contains(word), "{word} never generated: {words:?}");
    }
    for dtype in DType::ALL {
        assert!(dtypes.contains(dtype.name()), "{dtype} never generated");
    }
}

#[test]
fn shrinking_finds_the_guilty_op() {
    // The "bug" is any multiplication of floats that is stored; what remains is one.
    let options = Options { dtypes: DTypeSet::of(&[DType::F32]), ..Options::default() };
    let is_mul = |op: &Op| matches!(op, Op::Binary { op: BinaryOp::Mul, .. });
    let fails =
        |kernel: &Kernel| kernel.iter().any(|(_, op, ty)| is_mul(&op) && ty.dtype == DType::F32);
    let mut tried = 0;
    for seed in 0..40 {
        let kernel = random_kernel(seed, &options);
        if !fails(&kernel) {
            continue;
        }
        tried += 1;
        let small = shrink(&kernel, fails);
        assert!(fails(&small));
        assert!(small.ops().len() <= 14, "seed {seed}: {} ops\n{small}", small.ops().len());
    }
    assert!(tried > 10);
}
