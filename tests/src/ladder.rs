//! The ladder: random programs through every layer, so that a failure names the guilty one.
//!
//! Each program is evaluated by the oracle and then, rung by rung, by more of the library. The
//! first rung whose result leaves the oracle's bounds is the layer at fault: those before it
//! were right. A failing program is made smaller before it is printed, with its seed.
//!
//! `ZYX_SEED=n` runs that seed alone; `ZYX_PROGRAMS=n` sets how many are run.

use crate::generate::{Limits, program};
use crate::oracle::Array;
use crate::program::Program;
use zyx_core::{Device, Result, Tensor};

/// One layer of the library: outputs of pending tensors as it computes them.
pub struct Rung<'a> {
    /// What is at fault if this rung is the first to fail.
    pub name: String,
    /// The device programs are built on.
    pub device: &'a Device,
    /// How outputs are computed.
    #[allow(clippy::type_complexity, reason = "one closure type, used here alone")]
    pub outputs: Box<dyn Fn(&[Tensor], u64) -> Result<Vec<Array>> + 'a>,
}

impl std::fmt::Debug for Rung<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rung").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Rung<'a> {
    /// The whole library on a device.
    pub fn device(device: &'a Device) -> Rung<'a> {
        let outputs = |tensors: &[Tensor], _: u64| {
            Tensor::realize_all(tensors)?;
            tensors.iter().map(Array::read).collect()
        };
        Rung { name: format!("the device {device}"), device, outputs: Box::new(outputs) }
    }

    /// What is wrong with the outputs of `program`, or `None`.
    pub fn wrong(&self, program: &Program, seed: u64) -> Option<String> {
        let values = program.eval();
        let got = program.build(self.device).and_then(|tensors| (self.outputs)(&tensors, seed));
        let got = match got {
            Ok(got) => got,
            Err(error) => return Some(error.to_string()),
        };
        let pairs = program.outputs.iter().zip(&got);
        pairs.into_iter().find_map(|(&i, got)| {
            values[i].mismatch(got, false).map(|wrong| format!("v{i}: {wrong}"))
        })
    }
}

/// Runs the programs of `seeds` up the ladder.
///
/// # Panics
/// At the first program that fails, naming the rung, the seed and the smallest program found.
pub fn climb(rungs: &[Rung<'_>], seeds: impl Iterator<Item = u64>, limits: Limits) {
    for seed in chosen(seeds) {
        let program = program(seed, limits);
        for rung in rungs {
            let Some(wrong) = caught(rung, &program, seed) else { continue };
            let small = program.shrunk(|p| caught(rung, p, seed).is_some());
            let wrong = caught(rung, &small, seed).unwrap_or(wrong);
            panic!("at fault: {}\nZYX_SEED={seed}\n{wrong}\n{small}", rung.name);
        }
    }
}

/// What is wrong, with a panic of the library counting as wrong.
fn caught(rung: &Rung<'_>, program: &Program, seed: u64) -> Option<String> {
    let run = std::panic::AssertUnwindSafe(|| rung.wrong(program, seed));
    std::panic::catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Some(format!("panic: {}", text.unwrap_or_default()))
    })
}

/// The seed the environment asks for, or all.
pub fn chosen(seeds: impl Iterator<Item = u64>) -> Box<dyn Iterator<Item = u64>> {
    match std::env::var("ZYX_SEED").ok().and_then(|s| s.parse().ok()) {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(seeds.collect::<Vec<_>>().into_iter()),
    }
}

/// How many programs to run: `n`, unless the environment says otherwise.
pub fn count(n: u64) -> u64 {
    std::env::var("ZYX_PROGRAMS").ok().and_then(|s| s.parse().ok()).unwrap_or(n)
}
