//! The law of passes, for tests: a pass keeps the meaning of a kernel.

use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::interp::{self, Binding, Program};
use crate::ir::{Kernel, verify};
use crate::scalar::Scalar;

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
pub(crate) fn run(kernel: &Kernel, buffers: &[Vec<u8>], vars: &[u64]) -> Vec<Vec<u8>> {
    if let Err(e) = verify(kernel) {
        panic!("{e}\n{kernel}");
    }
    let mut buffers = buffers.to_vec();
    let bindings: Vec<Binding> =
        (0..buffers.len()).map(|buffer| Binding { buffer, offset: 0 }).collect();
    let mut slices: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    let program = Program::new(kernel).unwrap();
    if let Err(e) = program.run(&mut slices, &bindings, vars, &interp::Options::default()) {
        panic!("{e}\n{kernel}");
    }
    buffers
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
    use crate::ir::generate::{Options, random_inputs, random_kernel, random_vars};
    use crate::passes::{PASSES, Step, Trace, samples};

    #[test]
    fn every_pass_at_every_site_of_the_samples_keeps_the_meaning() {
        let mut applied = vec![0; PASSES.len()];
        for kernel in samples::all() {
            let input = inputs(&kernel, &mut Rng(1));
            let expected = run(&kernel, &input, &[]);
            for caps in devices() {
                for (p, pass) in PASSES.iter().enumerate() {
                    for site in (pass.sites)(&kernel, &caps) {
                        let after = (pass.apply)(&kernel, &site);
                        applied[p] += (after != kernel) as usize;
                        let found = run(&after, &input, &[]);
                        let bound = pass.reassociates.then_some(1e-5);
                        if let Err(e) = compare(&kernel, (&expected, &found), bound) {
                            panic!("{} at {site:?}: {e}\n{kernel}\n{after}", pass.name);
                        }
                    }
                }
            }
        }
        for (pass, n) in PASSES.iter().zip(applied) {
            assert!(n > 0, "no sample gives {} a site it changes anything at", pass.name);
        }
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
            assert_eq!(trace.apply(kernel), after, "seed {seed}: {trace}");
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
    fn random_kernels(seeds: std::ops::Range<u64>, options: &Options, exact_only: bool) {
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
