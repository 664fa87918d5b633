//! What a process compiled or searched, the next one finds on disk.
//!
//! Each test starts its own binary again, several times with one empty folder for all caches, and
//! reads what each process says of its counters.

use crate::harness::own_device;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use zyx_core::hal::{Backend, Device as _};
use zyx_core::ir::{Access, Builder, Verified};
use zyx_core::legalize::legalize;
use zyx_core::{DType, Device, Result, Scalar, Tensor, Tuning};

/// Says in a started process what it has to do.
const PART: &str = "ZYX_TEST_WARM_PART";

/// Time for a search, which ends long before.
const BUDGET: Duration = Duration::from_secs(900);

/// What a process said: programs compiled, programs loaded, candidates timed.
type Counts = [u64; 3];

/// A test that is started as a process.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// The name of the test with its crate and modules.
    pub test: &'a str,
    /// Variables, each with a value, or with `None` if it names the folder of the driver's cache.
    pub variables: &'a [(&'a str, Option<&'a str>)],
}

/// A folder for all caches of the processes of a test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Process<'_> {
    fn name(&self) -> &str {
        self.test.split_once("::").map_or(self.test, |(_, test)| test)
    }

    fn folder(&self) -> Folder {
        let name = format!("zyx-{}-{}", self.name().replace("::", "-"), std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        std::fs::create_dir_all(folder.driver()).expect("a folder");
        folder
    }

    /// Starts a process that does a part of the test.
    fn run(&self, folder: &Folder, part: &str) -> Counts {
        let mut command = Command::new(std::env::current_exe().expect("this test's binary"));
        command.args(["--exact", self.name(), "--nocapture", "--test-threads=1"]);
        command.env(PART, part).env("ZYX_CACHE_DIR", &folder.0).env_remove("ZYX_TUNE");
        for (variable, value) in self.variables {
            let value = value.map_or(folder.driver().into_os_string(), Into::into);
            command.env(variable, value);
        }
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.split_once("counts ").and_then(|(_, rest)| rest.split_once('.'));
        let line = line.unwrap_or_else(|| panic!("{output:?}")).0;
        let counts: Vec<u64> = line.split(' ').map(|n| n.parse().expect("a number")).collect();
        counts.try_into().expect("three numbers")
    }
}

impl Folder {
    fn driver(&self) -> PathBuf {
        self.0.join("driver")
    }

    /// What the driver keeps. That has an extension; PoCL's notes have none.
    fn kept(&self) -> BTreeSet<PathBuf> {
        fn below(folder: &Path, found: &mut BTreeSet<PathBuf>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    below(&entry.path(), found);
                } else if entry.path().extension().is_some() {
                    found.insert(entry.path());
                }
            }
        }
        let mut found = BTreeSet::new();
        below(&self.driver(), &mut found);
        found
    }
}

fn input(device: &Device) -> Result<Tensor> {
    let data: Vec<f32> = (0..48 * 96).map(|i| (i * 37 % 33) as f32 / 8.0 - 2.0).collect();
    Tensor::from_slice(&data, [48, 96], device)
}

/// A softmax beside a transposition.
fn joint(device: &Device) -> Result<()> {
    let x = input(device)?;
    Tensor::realize_all(&[x.softmax(-1)?, x.transpose(0, 1)? * 2.0])
}

/// A process: `compute` runs one plan and another, `search` looks for a better program of the first,
/// `tuned` finds it.
fn part(device: &Device, part: &str) -> Result<()> {
    if part == "tuned" {
        // Takes choices from disk. No thread searches: whatever is left to, `tune` below does.
        device.set_tuning(Tuning::Background(Duration::ZERO));
    }
    joint(device)?;
    if part == "compute" {
        input(device)?.sum(0)?.realize()?;
    } else {
        device.tune(BUDGET)?;
        joint(device)?;
    }
    device.synchronize()
}

/// The device, if this process is to start others; does its part if it is one of those.
fn is_first<B: Backend>(spec: &str, test: &str, backend: impl Fn() -> B) -> bool {
    let Some(device) = own_device(spec, test, backend) else { return false };
    let Ok(told) = std::env::var(PART) else { return true };
    part(&device, &told).expect("the kernels run");
    let stats = device.stats();
    let counts = [stats.compiles, stats.loads, stats.searches];
    // Written directly: the parent reads it.
    writeln!(std::io::stdout(), "counts {} {} {}.", counts[0], counts[1], counts[2])
        .expect("somebody reads");
    false
}

/// Two plans, and again: what the first process compiled, and what the second counts.
fn twice(process: Process<'_>) -> (u64, Counts) {
    let folder = process.folder();
    let cold = process.run(&folder, "compute");
    assert!(cold[0] > 0 && cold[1..] == [0, 0], "a cold process: {cold:?}");
    let kept = folder.kept();
    let warm = process.run(&folder, "compute");
    assert_eq!(folder.kept(), kept, "what the driver compiled although it was known");
    (cold[0], warm)
}

/// Two plans, and again.
///
/// # Panics
/// When the second process, or the driver in it, compiles.
pub fn a_second_process_compiles_nothing<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
    process: Process<'_>,
) {
    if is_first(spec, process.test, backend) {
        let (compiled, warm) = twice(process);
        assert_eq!(warm, [0, compiled, 0], "a warm process");
    }
}

/// Two plans, and again, on drivers that may keep programs or not and may tell of it or not: one that
/// tells within a process what it has compiled before has to do so in the next.
///
/// # Panics
/// When the second process compiles although the driver tells of what it keeps, or is said to have
/// found programs although it does not.
pub fn a_second_process_compiles_what_the_driver_does_not_keep<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
    process: Process<'_>,
) {
    if is_first(spec, process.test, &backend) {
        let (compiled, warm) = twice(process);
        let (expected, says) = match tells_what_it_keeps(&backend()) {
            true => ([0, compiled, 0], "tells what it keeps: all programs have to be found"),
            false => ([compiled, 0, 0], "does not tell what it keeps: all programs are compiled"),
        };
        // Written directly: which of the two was tested is to be seen in every run.
        writeln!(std::io::stderr(), "{}: the driver {says}", process.name())
            .expect("somebody reads");
        assert_eq!(warm, expected, "a warm process");
    }
}

/// Whether a device says of a kernel that it compiles a second time that it had it.
fn tells_what_it_keeps<B: Backend>(backend: &B) -> bool {
    let device = backend.open(0).expect("it opened before");
    let mut b = Builder::new("kept");
    let out = b.param(DType::F32, 1, Access::Write);
    let (origin, one) = (b.index(0), b.constant(Scalar::from(1f32)));
    b.store(out, origin, one);
    let kernel = legalize(&b.finish(), device.caps()).expect("every device has `f32`");
    let compiled = || {
        device.compile(&Verified::new(&kernel).expect("it is well-formed")).expect("it compiles")
    };
    let first = compiled();
    let found = !device.was_compiled(&compiled());
    drop(first);
    found
}

/// A process that searches, and others after it.
///
/// # Panics
/// When a later process searches, or the last one compiles.
pub fn a_second_process_searches_nothing<B: Backend>(
    spec: &str,
    backend: impl Fn() -> B,
    process: Process<'_>,
) {
    if !is_first(spec, process.test, backend) {
        return;
    }
    let folder = process.folder();
    let searched = process.run(&folder, "search");
    assert!(searched[2] > 0, "the process that searches: {searched:?}");
    // It is the first to compile what was found together, on devices that compile several kernels
    // as one source.
    let found = process.run(&folder, "tuned");
    assert_eq!(found[2], 0, "the process after a search: {found:?}");
    let kept = folder.kept();
    let warm = process.run(&folder, "tuned");
    assert_eq!((warm[0], warm[2]), (0, 0), "a warm process with tuned kernels: {warm:?}");
    assert_eq!(folder.kept(), kept, "what the driver compiled although it was known");
}
