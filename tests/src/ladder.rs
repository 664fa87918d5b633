//! The ladder: random programs through every layer, so that a failure names the guilty one.
//!
//! Each program is evaluated by the oracle and then, rung by rung, by more of the library: the
//! graph evaluator; the naive kernels of the schedule, interpreted; those kernels after passes,
//! interpreted; a device. The first rung whose result leaves the oracle's bounds is the layer at
//! fault: those before it were right. A failing program is made smaller before it is printed,
//! with its seed.
//!
//! `ZYX_SEED=n` runs that seed alone; `ZYX_PROGRAMS=n` sets how many are run, `ZYX_FIRST_SEED=n` with which
//! one the seeds begin.

use crate::Rng;
use crate::generate::{Limits, program, sized};
use crate::oracle::{Array, decode, flush};
use crate::program::Program;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::Once;
use zyx_core::hal::Caps;
use zyx_core::ir::{Kernel, verify};
use zyx_core::passes::PASSES;
use zyx_core::testing::{Optimizer, evaluate};
use zyx_core::{Device, Result, Runtime, Tensor};

/// One layer of the library: the outputs of pending tensors as it computes them.
#[derive(Debug)]
pub struct Rung {
    /// What is at fault if this rung is the first to fail.
    pub guilty: &'static str,
    /// The device that programs are built on.
    pub device: Device,
    /// Whether the graph evaluator computes the outputs, and not the device.
    evaluates: bool,
    /// How programs become tensors.
    build: Build,
}

/// How programs become tensors: by the methods they name, unless a test plants a fault there.
pub type Build = fn(&Program, &Device) -> Result<Vec<Tensor>>;

fn reference(optimizer: Optimizer) -> Device {
    let device = Runtime::default().device("reference").expect("always present");
    device.set_optimizer(optimizer);
    device
}

impl Rung {
    /// The meaning of the graph.
    pub fn evaluator() -> Rung {
        let device = reference(Optimizer::Off);
        Rung {
            guilty: "the tensor methods or the graph evaluator",
            device,
            evaluates: true,
            build: Program::build,
        }
    }

    /// Naive kernels, interpreted.
    pub fn naive() -> Rung {
        let device = reference(Optimizer::Off);
        Rung {
            guilty: "scheduling, lowering or the runtime",
            device,
            evaluates: false,
            build: Program::build,
        }
    }

    /// Kernels after random passes, interpreted; another `SALT` draws other passes.
    pub fn passes<const SALT: u64>() -> Rung {
        let device = reference(Optimizer::With(random_passes::<SALT>));
        Rung {
            guilty: "a pass, of a random sequence",
            device,
            evaluates: false,
            build: Program::build,
        }
    }

    /// Kernels after the tuner's default passes, interpreted.
    pub fn tuned() -> Rung {
        let device = reference(Optimizer::Default);
        Rung {
            guilty: "a pass, of the default sequence",
            device,
            evaluates: false,
            build: Program::build,
        }
    }

    /// The whole library on a device.
    pub fn device(device: &Device) -> Rung {
        let guilty = "the backend (legalization, code generation, driver)";
        Rung { guilty, device: device.clone(), evaluates: false, build: Program::build }
    }

    /// A device that gets kernels after random passes, which leave them in other forms than the
    /// tuner does. The device must be no other test's.
    pub fn shuffled<const SALT: u64>(device: &Device) -> Rung {
        device.set_optimizer(Optimizer::With(random_passes_for_device::<SALT>));
        let guilty = "the backend, given a kernel after a random sequence of passes";
        Rung { guilty, device: device.clone(), evaluates: false, build: Program::build }
    }

    /// The same rung of a library whose methods are these.
    #[must_use]
    pub fn built_by(self, build: Build) -> Rung {
        Rung { build, ..self }
    }

    /// Whether calling the compiler of the rung's device is dear.
    fn compiles(&self) -> bool {
        !self.evaluates && self.device.caps().simt
    }

    /// What is wrong with the outputs of many programs that are computed as one plan, or `None`.
    fn wrong_together(&self, programs: &[Program]) -> Option<String> {
        let wrong = || -> Result<Option<String>> {
            let tensors: Result<Vec<_>> =
                programs.iter().map(|p| (self.build)(p, &self.device)).collect();
            let tensors = tensors?;
            Tensor::realize_all(tensors.iter().flatten())?;
            for (program, tensors) in programs.iter().zip(&tensors) {
                let got = tensors.iter().map(Array::read).collect::<Result<Vec<_>>>()?;
                if let Some(wrong) = mismatch(program, &got) {
                    return Ok(Some(format!("{program}{wrong}")));
                }
            }
            Ok(None)
        };
        match quietly(wrong) {
            Ok(Ok(wrong)) => wrong,
            Ok(Err(error)) => Some(error.to_string()),
            Err(panic) => Some(panic),
        }
    }

    fn outputs(&self, program: &Program) -> Result<Vec<Array>> {
        let tensors = (self.build)(program, &self.device)?;
        if !self.evaluates {
            Tensor::realize_all(&tensors)?;
            return tensors.iter().map(Array::read).collect();
        }
        let elements = evaluate(&tensors.iter().collect::<Vec<_>>())?;
        let array = |(tensor, elements): (&Tensor, Vec<zyx_core::Scalar>)| {
            let data = elements.iter().map(|x| decode(tensor.dtype(), x.bits())).collect();
            Array::new(tensor.dtype(), tensor.shape().dims(), data)
        };
        Ok(tensors.iter().zip(elements).map(array).collect())
    }

    /// What is wrong with the outputs of `program`, or `None`. A panic of the library is wrong.
    pub fn wrong(&self, program: &Program) -> Option<String> {
        let got = match quietly(|| self.outputs(program)) {
            Ok(Ok(got)) => got,
            Ok(Err(error)) => return Some(error.to_string()),
            Err(panic) => return Some(panic),
        };
        mismatch(program, &got)
    }
}

/// Which output is wrong.
fn mismatch(program: &Program, got: &[Array]) -> Option<String> {
    let values = program.eval();
    program
        .outputs
        .iter()
        .zip(got)
        .find_map(|(&i, got)| values[i].mismatch(got, false).map(|wrong| format!("v{i}: {wrong}")))
}

/// A kernel after up to six passes that are a function of the kernel and `SALT`, for a device
/// that is one as well.
pub fn random_passes<const SALT: u64>(kernel: &Kernel, _: &Caps) -> Kernel {
    let mut rng = passes_rng(kernel, SALT);
    let caps = random_caps(&mut rng);
    after_passes(kernel, &caps, &mut rng)
}

/// The same for the capabilities of the device that is to run the kernel.
fn random_passes_for_device<const SALT: u64>(kernel: &Kernel, caps: &Caps) -> Kernel {
    after_passes(kernel, caps, &mut passes_rng(kernel, SALT))
}

fn passes_rng(kernel: &Kernel, salt: u64) -> Rng {
    let mut hasher = std::hash::DefaultHasher::new();
    kernel.hash(&mut hasher);
    Rng::new(hasher.finish() ^ salt)
}

/// Applies up to six passes at random sites, and verifies the kernel after each.
fn after_passes(kernel: &Kernel, caps: &Caps, rng: &mut Rng) -> Kernel {
    let mut kernel = kernel.clone();
    for _ in 0..rng.below(7) {
        let pass = rng.pick(PASSES);
        let sites = (pass.sites)(&kernel, caps);
        if sites.is_empty() {
            continue;
        }
        let site = rng.pick(&sites);
        let next = (pass.apply)(&kernel, site);
        if let Err(error) = verify(&next) {
            panic!("{} at {site:?}: {error}\nbefore:\n{kernel}\nafter:\n{next}", pass.name);
        }
        kernel = next;
    }
    kernel
}

fn random_caps(rng: &mut Rng) -> Caps {
    let mut caps = Caps::default();
    caps.fast_fma = rng.one_in(2);
    caps.masked = rng.one_in(2);
    caps.vector_bytes = *rng.pick(&[caps.vector_bytes, 16, 32, 64]);
    caps.threads = *rng.pick(&[1, 2, 4]);
    if rng.one_in(3) {
        (caps.simt, caps.max_local, caps.threads) = (true, 256, 1 << 16);
    }
    caps
}

/// How many distinct failures are reported.
const REPORTED: usize = 6;

/// How many programs are one plan on a device whose compiler is dear.
const TOGETHER: usize = 25;

/// Runs the programs of `seeds` up the ladder: each by itself, but on devices whose compiler is
/// dear only where many as one plan are not right.
///
/// # Panics
/// When programs fail, with the rung, a seed and the smallest program found for each distinct
/// failure.
pub fn climb(rungs: &[Rung], seeds: impl Iterator<Item = u64>, limits: Limits) {
    // What the last rung, the device if there is one, may do is allowed on all.
    if let Some(rung) = rungs.last() {
        flush::expect_of(rung.device.caps());
    }
    let mut failures: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let seeds: Vec<u64> = chosen(seeds).collect();
    for seeds in seeds.chunks(TOGETHER) {
        let programs: Vec<Program> = seeds.iter().map(|&seed| program(seed, limits)).collect();
        let mut together = None;
        let left = rungs.iter().filter(|rung| {
            let wrong = rung.compiles().then(|| rung.wrong_together(&programs));
            let is_left = wrong != Some(None);
            if let Some(Some(wrong)) = wrong {
                together.get_or_insert((rung.guilty, wrong));
            }
            is_left
        });
        let left: Vec<&Rung> = left.collect();
        let mut all_right = true;
        for (seed, program) in seeds.iter().zip(&programs) {
            for rung in &left {
                let Some(wrong) = rung.wrong(program) else { continue };
                all_right = false;
                note(&mut failures, *seed, rung, program, wrong);
                break;
            }
        }
        if let (true, Some((guilty, wrong))) = (all_right, together) {
            let report = format!("at fault: {guilty}\nonly as one plan: {seeds:?}\n{wrong}");
            failures.insert(report.clone(), (1, report));
        }
    }
    let report = |(n, report): &(usize, String)| format!("{report}\n({n} programs fail so)\n");
    let reports: Vec<String> = failures.values().map(report).collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}

/// Notes what failed, as small as it gets where it is the first of its kind.
fn note(
    failures: &mut BTreeMap<String, (usize, String)>,
    seed: u64,
    rung: &Rung,
    program: &Program,
    wrong: String,
) {
    let signature = format!("{}: {}", rung.guilty, signature(&wrong));
    if let Some((n, _)) = failures.get_mut(&signature) {
        *n += 1;
    } else if failures.len() < REPORTED {
        let small = program.shrunk(|p| rung.wrong(p).is_some());
        let wrong = rung.wrong(&small).unwrap_or(wrong);
        let report = format!("at fault: {}\nZYX_SEED={seed}\n{wrong}\n{small}", rung.guilty);
        failures.insert(signature, (1, report));
    }
}

/// A failure without its numbers, to tell kinds of failures apart.
fn signature(wrong: &str) -> String {
    let line = wrong.lines().next().unwrap_or_default();
    let plain = line.split(|c: char| c.is_ascii_digit() || "-.[],%".contains(c));
    plain.filter(|s| !s.trim().is_empty() && *s != "e").collect::<Vec<_>>().join("#")
}

/// Runs `f` without the message that a panic prints, returning the panic's text as an error.
fn quietly<T>(f: impl FnOnce() -> T) -> std::result::Result<T, String> {
    thread_local!(static QUIET: Cell<bool> = const { Cell::new(false) });
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                loud(info);
            }
        }));
    });
    QUIET.set(true);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    QUIET.set(false);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        format!("panic: {}", text.unwrap_or_default())
    })
}

/// Runs `n` programs on the device `spec`, as it is and with random passes before its own work,
/// and on the rungs above so that a failure here is the backend's, and gradients of others; skipped, as
/// [`crate::harness::device`] does, where there is no such device.
pub fn on_device(spec: &str, register: impl Fn(&Runtime), n: u64) {
    if let Some(device) = crate::harness::device(spec, "ladder", &register) {
        let runtime = Runtime::default();
        register(&runtime);
        let own = runtime.device(spec).expect("the device was there before");
        let rungs = [
            Rung::naive(),
            Rung::tuned(),
            Rung::passes::<3>(),
            Rung::device(&device),
            Rung::shuffled::<4>(&own),
        ];
        let stored = device.caps().storage;
        let fits = |seed: &u64| {
            let program = program(*seed, Limits::default());
            program.eval().iter().all(|value| stored.contains(value.dtype))
        };
        climb(&rungs, (0..count(n)).filter(fits), Limits::default());
        crate::slopes::run(&device, if device.caps().simt { 50 } else { 500 });
    }
}

/// Programs of a family, and families that a device computes before it is replaced by a new one.
const SIZES: u64 = 5;
const FAMILIES: u64 = 10;

/// Whether results depend on what was compiled before: `n` programs, each on a device that was just opened, and
/// on one that computed others of the same families, at other sizes, in random order. Both have to be right;
/// gives how many differ in a bit.
///
/// # Panics
/// When a result is wrong, with the seed of the family and that of the sizes.
pub fn fresh_and_after_others(spec: &str, register: impl Fn(&Runtime), n: u64) -> u64 {
    let open = || {
        let runtime = Runtime::default();
        register(&runtime);
        runtime.device(spec).expect("the device was there before")
    };
    let bits = |device: &Device, program: &Program| -> Result<(Vec<Array>, Vec<Vec<u8>>)> {
        let tensors = program.build(device)?;
        Tensor::realize_all(&tensors)?;
        let bytes = tensors.iter().map(Tensor::to_bytes).collect::<Result<_>>()?;
        Ok((tensors.iter().map(Array::read).collect::<Result<_>>()?, bytes))
    };
    let seeds: Vec<u64> = chosen(0..(n / SIZES).max(1)).collect();
    let (mut differ, mut wrong) = (0, Vec::new());
    for families in seeds.chunks(FAMILIES as usize) {
        let mut all: Vec<(u64, u64)> = families
            .iter()
            .flat_map(|&family| (0..SIZES).map(move |size| (family, size)))
            .collect();
        let mut rng = Rng::new(families[0]);
        for last in (1..all.len()).rev() {
            all.swap(last, rng.below(last + 1));
        }
        let used = open();
        for (family, size) in all {
            let program = sized(family, size);
            let both = || -> Result<_> { Ok((bits(&open(), &program)?, bits(&used, &program)?)) };
            let found = quietly(both);
            let (fresh, after) = match found {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => panic!("ZYX_SEED={family}, size {size}: {error}\n{program}"),
                Err(panic) => panic!("ZYX_SEED={family}, size {size}: {panic}\n{program}"),
            };
            differ += u64::from(fresh.1 != after.1);
            for (when, (got, _)) in [("on a fresh device", fresh), ("after others", after)] {
                if let Some(text) = mismatch(&program, &got) {
                    wrong
                        .push(format!("{when}, ZYX_SEED={family}, size {size}: {text}\n{program}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} results, first: {}", wrong.len(), wrong[0]);
    differ
}

/// The seed the environment asks for, or all.
pub fn chosen(seeds: impl Iterator<Item = u64>) -> Box<dyn Iterator<Item = u64>> {
    let first = number("ZYX_FIRST_SEED").unwrap_or(0);
    match number("ZYX_SEED") {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(seeds.map(|seed| seed + first).collect::<Vec<_>>().into_iter()),
    }
}

/// How many programs to run: `n`, unless the environment says otherwise.
pub fn count(n: u64) -> u64 {
    number("ZYX_PROGRAMS").unwrap_or(n)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}
