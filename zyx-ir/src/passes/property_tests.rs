//! The law of passes, for tests: a pass keeps the meaning of a kernel.

use super::{Pass, PassError, samples};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::generate::{Options, random_inputs, random_kernel, random_vars};
use crate::ir::interp::{self, Binding, Program};
use crate::ir::{Kernel, verify};
use crate::scalar::Scalar;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(crate) use crate::testing::Rng;

/// Devices whose capabilities passes are tried with.
pub(crate) fn devices() -> Vec<Caps> {
    let scalar = Caps { fast_fma: true, ..Caps::default() };
    let avx512 = Caps { vector_bytes: 64, masked: true, threads: 2, ..scalar.clone() };
    let neon = Caps { vector_bytes: 16, threads: 4, ..scalar.clone() };
    let gpu = Caps {
        simt: true,
        max_local: 256,
        shared_bytes: 32 << 10,
        threads: 1 << 16,
        ..scalar.clone()
    };
    let matrices = Caps {
        vector_bytes: 16,
        masked: true,
        mma: crate::dtype::DTypeSet::of(&[DType::F16, DType::BF16]),
        ..gpu.clone()
    };
    vec![scalar, avx512, neon, gpu, matrices]
}

/// Contents for each buffer: small integers in small floats' range, so that sums stay tame.
pub(crate) fn inputs(kernel: &Kernel, rng: &mut Rng) -> Vec<Vec<u8>> {
    let fill = |dtype: DType, n: u64, rng: &mut Rng| {
        let mut bytes = Vec::new();
        for _ in 0..n {
            let x = (rng.next() % 4001) as f64 / 1000.0 - 2.0;
            let x = if dtype.is_int() { (rng.next() % 13) as f64 - 3.0 } else { x };
            let bits = Scalar::from_f64(dtype, x).bits().to_le_bytes();
            bytes.extend_from_slice(&bits[..dtype.size()]);
        }
        bytes
    };
    kernel.params().iter().map(|p| fill(p.dtype, p.len, rng)).collect()
}

/// The buffers after running a kernel on them.
#[cfg(test)]
pub(crate) fn run(kernel: &Kernel, buffers: &[Vec<u8>], vars: &[u64]) -> Vec<Vec<u8>> {
    try_run(kernel, buffers, vars).unwrap_or_else(|e| panic!("{e}"))
}

fn try_run(kernel: &Kernel, buffers: &[Vec<u8>], vars: &[u64]) -> Result<Vec<Vec<u8>>, String> {
    verify(kernel).map_err(|e| format!("{e}\n{kernel}"))?;
    let mut buffers = buffers.to_vec();
    let bindings: Vec<Binding> =
        (0..buffers.len()).map(|buffer| Binding { buffer, offset: 0 }).collect();
    let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    Program::new(kernel)
        .map_err(interp::InterpError::from)
        .and_then(|program| program.run(&mut slices, &bindings, vars, &interp::Options::default()))
        .map_err(|e| format!("{e}\n{kernel}"))?;
    Ok(buffers)
}

/// Part of the largest value by which the results of one step of a pass that reassociates may differ.
const ROUNDING: f64 = 1e-5;
/// Steps of other passes that are taken before the pass that is checked, at most.
const STEPS_BEFORE: usize = 2;

/// Checks the law of passes for one of them, as the tests of this crate do for all: at each of its sites, for all kinds
/// of devices, the kernel after it is valid, and the interpreter gives the same results as before, bit for bit. Floats
/// may differ by rounding where the pass [reassociates](Pass::reassociates).
///
/// Kernels are the samples of this crate, these `kernels`, and for each seed a random kernel, or one of the others, after
/// a few steps of other passes. Random kernels with floats are left out where the pass reassociates: they may turn
/// rounding into anything.
///
/// ```
/// use zyx_ir::ir::Kernel;
/// use zyx_ir::passes::{Pass, cse, property_tests::check_pass};
/// check_pass(&cse::PASS, &[], 0..50)?;
/// static WRONG: Pass = Pass {
///     name: "wrong",
///     apply: |kernel: &Kernel, _| kernel.to_string().replace("add", "sub").parse().unwrap(),
///     ..cse::PASS
/// };
/// assert!(check_pass(&WRONG, &[], 0..50).is_err());
/// # Ok::<(), zyx_ir::passes::PassError>(())
/// ```
///
/// # Errors
/// With the kernel, the site and the first difference, or if the pass changes none of the kernels.
pub fn check_pass(
    pass: &'static Pass,
    kernels: &[Kernel],
    seeds: Range<u64>,
) -> Result<(), PassError> {
    let mut changes = 0;
    let known: Vec<Kernel> = samples::all().into_iter().chain(kernels.iter().cloned()).collect();
    let bound = pass.reassociates.then_some(ROUNDING);
    for kernel in &known {
        let arguments = (&*inputs(kernel, &mut Rng(1)), &*random_vars(kernel, 1));
        for caps in devices() {
            changes += check_kernel(pass, kernel, &caps, arguments, bound)?;
        }
    }
    for seed in seeds {
        let mut rng = Rng(seed);
        let caps = &devices()[rng.below(devices().len())];
        let options = [Options::default(), Options::scalar()];
        let (kernel, input) = match options.get(rng.below(options.len() + 1)) {
            Some(options) => {
                let kernel = random_kernel(seed, options);
                let input = random_inputs(&kernel, seed);
                (kernel, input)
            }
            None => {
                let kernel = known[rng.below(known.len())].clone();
                let input = inputs(&kernel, &mut rng);
                (kernel, input)
            }
        };
        let is_random = !known.contains(&kernel);
        let has_floats = kernel.iter().any(|(_, _, ty)| ty.dtype.is_float());
        if is_random && has_floats && pass.reassociates {
            continue;
        }
        let (kernel, _) = random_trace(&kernel, caps, rng.below(STEPS_BEFORE + 1), &mut rng);
        let vars = random_vars(&kernel, seed);
        let bound = bound.filter(|_| !is_random);
        changes += check_kernel(pass, &kernel, caps, (&input, &vars), bound)?;
    }
    match changes {
        0 => Err(PassError { name: pass.name, reason: "it changes none of the kernels".into() }),
        _ => Ok(()),
    }
}

/// Checks a pass at each of its sites in a kernel, for these buffers and scalars; gives the number of sites at which it
/// changes the kernel.
fn check_kernel(
    pass: &'static Pass,
    kernel: &Kernel,
    caps: &Caps,
    (input, vars): (&[Vec<u8>], &[u64]),
    bound: Option<f64>,
) -> Result<usize, PassError> {
    let error = |reason: String| PassError { name: pass.name, reason };
    let panicked = |_| error(format!("it panics on\n{kernel}"));
    let sites = catch_unwind(AssertUnwindSafe(|| (pass.sites)(kernel, caps))).map_err(panicked)?;
    if sites.is_empty() {
        return Ok(0);
    }
    let expected = try_run(kernel, input, vars).map_err(error)?;
    let mut changes = 0;
    for site in sites {
        let apply = AssertUnwindSafe(|| (pass.apply)(kernel, &site));
        let after = catch_unwind(apply).map_err(panicked)?;
        if after == *kernel {
            continue;
        }
        changes += 1;
        let found = try_run(&after, input, vars);
        found.and_then(|found| compare(kernel, (&expected, &found), bound)).map_err(|reason| {
            error(format!("at {site:?}: {reason}\nbefore:\n{kernel}\nafter:\n{after}"))
        })?;
    }
    Ok(changes)
}

/// Checks that two runs agree: bit for bit, or for floats of a reassociating pass within
/// `relative` of the largest value. A sum may cancel to nothing: then what its terms, of the size
/// of [`inputs`], were rounded by counts. Any two NaNs are equal.
pub(crate) fn compare(
    kernel: &Kernel,
    (expected, found): (&[Vec<u8>], &[Vec<u8>]),
    relative: Option<f64>,
) -> Result<(), String> {
    for (slot, info) in kernel.params().iter().enumerate() {
        let size = info.dtype.size();
        let read = |bytes: &[u8]| {
            let mut wide = [0; 8];
            wide[..size].copy_from_slice(bytes);
            Scalar::from_bits(info.dtype, u64::from_le_bytes(wide))
        };
        let (a, b) = (expected[slot].chunks_exact(size), found[slot].chunks_exact(size));
        let largest = a.clone().map(|x| read(x).to_f64().abs()).filter(|x| x.is_finite());
        let largest = largest.fold(1e-30, f64::max);
        let rounded = 4.0 * f64::from(f32::EPSILON);
        for (i, (a, b)) in a.zip(b).enumerate() {
            let (a, b) = (read(a), read(b));
            let (x, y) = (a.to_f64(), b.to_f64());
            let is_close = info.dtype.is_float()
                && relative.is_some_and(|r| (x - y).abs() <= (r * largest).max(rounded) || x == y);
            let is_equal = a == b || info.dtype.is_float() && x.is_nan() && y.is_nan();
            if !is_close && !is_equal {
                return Err(format!("buffer {slot} element {i}: {a:?} expected, {b:?} found"));
            }
        }
    }
    Ok(())
}

/// Applies up to `steps` random passes at random sites.
pub(crate) fn random_trace(
    kernel: &Kernel,
    caps: &Caps,
    steps: usize,
    rng: &mut Rng,
) -> (Kernel, super::Trace) {
    let (mut k, mut trace) = (kernel.clone(), super::Trace::default());
    for _ in 0..steps {
        let pass = &super::PASSES[rng.below(super::PASSES.len())];
        let sites = (pass.sites)(&k, caps);
        if sites.is_empty() || k.ops().len() > 1500 {
            continue;
        }
        let site = sites[rng.below(sites.len())].clone();
        k = (pass.apply)(&k, &site);
        if let Err(e) = verify(&k) {
            panic!("{trace} then {} at {site:?}: {e}\n{k}", pass.name);
        }
        trace.steps.push(super::Step { pass, site });
    }
    (k, trace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DTypeSet;
    use crate::passes::{PASSES, Site, Step, Trace, simplify};

    #[test]
    fn every_pass_at_every_site_of_the_samples_keeps_the_meaning() {
        for pass in PASSES {
            check_pass(pass, &[], 0..60).unwrap_or_else(|e| panic!("{e}"));
        }
    }

    #[test]
    fn passes_that_break_the_law_are_found() {
        let whole = |_: &Kernel, _: &Caps| vec![Site::whole()];
        let found = |pass: Pass, reason: &str| {
            let error = check_pass(Box::leak(Box::new(pass)), &[], 0..5).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        };
        let pass = Pass { name: "wrong", sites: whole, ..simplify::PASS };
        found(Pass { apply: |kernel, _| kernel.clone(), ..pass }, "changes none");
        found(Pass { apply: |_, _| panic!("a wrong pass"), ..pass }, "panics");
        fn other(kernel: &Kernel, from: &str, to: &str) -> Kernel {
            kernel.to_string().replace(from, to).parse().expect("still a kernel")
        }
        found(Pass { apply: |kernel, _| other(kernel, " add ", " sub "), ..pass }, "expected");
        found(
            Pass {
                apply: |kernel, _| other(kernel, "loop parallel %", "loop serial %0 #"),
                ..pass
            },
            "before",
        );
    }

    #[test]
    fn random_sequences_on_the_samples_keep_the_meaning() {
        let kernels = samples::all();
        for seed in 0..600 {
            let mut rng = Rng(seed);
            let kernel = &kernels[rng.below(kernels.len())];
            let caps = &devices()[rng.below(devices().len())];
            let input = inputs(kernel, &mut rng);
            let expected = run(kernel, &input, &[]);
            let (after, trace) = random_trace(kernel, caps, 6, &mut rng);
            assert_eq!(trace.to_string().parse::<Trace>().as_ref(), Ok(&trace));
            assert_eq!(trace.apply(kernel).as_ref(), Some(&after), "seed {seed}: {trace}");
            let found = run(&after, &input, &[]);
            let bound = trace.reassociates().then_some(2e-5);
            if let Err(e) = compare(kernel, (&expected, &found), bound) {
                panic!("seed {seed}: {trace}: {e}\n{kernel}\n{after}");
            }
        }
    }

    /// How many random sequences to try; `ZYX_SEQUENCES` asks for more or fewer.
    fn sequences(default: u64) -> u64 {
        std::env::var("ZYX_SEQUENCES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    }

    /// Random kernels, random passes: equal bit for bit. Steps that reassociate are left out for
    /// kernels with floats, where a comparison may turn a rounding into anything.
    fn random_kernels(seeds: Range<u64>, options: &Options, exact_only: bool) {
        let mut changed = vec![0; PASSES.len()];
        for seed in seeds {
            let mut rng = Rng(seed);
            let kernel = random_kernel(seed, options);
            let caps = &devices()[rng.below(devices().len())];
            let (input, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
            let expected = run(&kernel, &input, &vars);
            let (mut k, mut trace) = (kernel.clone(), Trace::default());
            for _ in 0..5 {
                let p = rng.below(PASSES.len());
                let sites = (PASSES[p].sites)(&k, caps);
                if sites.is_empty() || k.ops().len() > 1500 {
                    continue;
                }
                let site = sites[rng.below(sites.len())].clone();
                if exact_only && PASSES[p].reassociates_at(&k, &site) {
                    continue;
                }
                let next = (PASSES[p].apply)(&k, &site);
                changed[p] += (next != k) as usize;
                trace.steps.push(Step { pass: &PASSES[p], site });
                k = next;
                if let Err(e) = verify(&k) {
                    panic!("seed {seed}: {trace}: {e}\n{kernel}\n{k}");
                }
            }
            let found = run(&k, &input, &vars);
            if let Err(e) = compare(&kernel, (&expected, &found), None) {
                panic!("seed {seed}: {trace}: {e}\n{kernel}\n{k}");
            }
        }
        println!("{:?}", PASSES.iter().zip(&changed).map(|(p, n)| (p.name, n)).collect::<Vec<_>>());
    }

    #[test]
    fn random_sequences_on_random_kernels_keep_every_bit() {
        random_kernels(0..sequences(3000), &Options::default(), true);
        random_kernels(0..sequences(3000), &Options::scalar(), true);
    }

    #[test]
    fn random_sequences_on_random_integer_kernels_keep_every_bit() {
        let ints =
            DTypeSet::ALL.without(DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]));
        let options = Options { dtypes: ints, ..Options::scalar() };
        random_kernels(0..sequences(4000), &options, false);
    }
}
