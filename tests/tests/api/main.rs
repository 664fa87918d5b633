//! Every public function of tensors, layers and optimizers with random arguments: a result or an
//! error that names the function, never a panic.
//!
//! Each row of [`tensor`] and [`other`] calls one function with arguments from [`source`]: ranks
//! 0 to 5 and beyond the limit, no elements, more elements than there are numbers, axes and
//! lengths at the ends of their types, NaN, empty and repeated lists, operands on another device.
//! What was built from small arguments is computed by the interpreter, as is its gradient, and
//! must have the length its shape says. [`every_public_function_is_called`] reads the sources, so
//! a function without a row fails.
//!
//! [`rows_agree`] makes the calls with moderate arguments, on the interpreter and on the CPU, and
//! compares all that a row returns: errors, shapes, elements, and what else it tells. A row has to
//! return something, or it does not compile, and has to return it for some seed.
//!
//! `ZYX_SEED=n` makes the call of that seed alone; `ZYX_PROGRAMS=n` sets how many are made.

mod distributions;
mod functional;
mod modules;
mod ops;
mod other;
mod source;
mod tensor;

use source::Source;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use zyx_backend_cpu::Cpu;
use zyx_tests::ladder::count;
use zyx_tests::sources::public_functions;
use zyx_tests::tolerance::unit_roundoff;
use zyx_tests::zyx_core::hal::lock;
use zyx_tests::zyx_core::{DType, Device, Error, Result, Runtime, Tensor};
use zyx_tests::{Array, Val};

/// A function's name and a call of it.
pub(crate) type Call = (&'static str, fn(&mut Source) -> Result<Outcome>);

/// What a call gave: tensors, or something else as text.
///
/// There is no conversion from `()`: a row that drops what it calls is an error of types.
pub(crate) struct Outcome {
    tensors: Vec<Tensor>,
    told: Option<String>,
}

impl Outcome {
    /// Of arguments that the function is not called with.
    pub(crate) fn nothing() -> Outcome {
        Outcome { tensors: vec![], told: None }
    }
}

/// What is no tensor: numbers, shapes, names.
pub(crate) fn told(x: impl std::fmt::Debug) -> Outcome {
    Outcome { tensors: vec![], told: Some(format!("{x:?}")) }
}

impl From<Tensor> for Outcome {
    fn from(tensor: Tensor) -> Outcome {
        vec![tensor].into()
    }
}

impl From<Vec<Tensor>> for Outcome {
    fn from(tensors: Vec<Tensor>) -> Outcome {
        Outcome { tensors, told: None }
    }
}

/// Rows: a name and a closure over the source of arguments.
#[macro_export]
macro_rules! calls {
    ($($name:ident |$s:ident| $body:expr;)*) => {
        vec![$($crate::row(stringify!($name), |$s: &mut $crate::Source| Ok($body.into()))),*]
    };
    ($($name:literal |$s:ident| $body:expr;)*) => {
        vec![$($crate::row($name, |$s: &mut $crate::Source| Ok($body.into()))),*]
    };
}

/// Gives the closure its type.
pub(crate) fn row(name: &'static str, call: fn(&mut Source) -> Result<Outcome>) -> Call {
    (name, call)
}

fn table() -> Vec<Call> {
    [
        tensor::all(),
        other::all(),
        modules::all(),
        ops::all(),
        functional::all(),
        distributions::all(),
    ]
    .concat()
}

fn devices(spec: &str) -> [Device; 2] {
    let open = || {
        let runtime = Runtime::default();
        runtime.register(Cpu::default());
        runtime.device(spec).expect("always present")
    };
    let devices = [open(), open()];
    // What a test machine does not have is refused instead of sought.
    devices.iter().for_each(|device| device.set_memory_limit(Some(64 << 20)));
    devices
}

/// Elements up to which results are computed.
const SMALL: usize = 400;

/// What is wrong with the call of `seed`, or whether its result was computed.
fn check(calls: &[Call], seed: u64, [device, other]: &[Device; 2]) -> Result<bool, String> {
    let (name, call) = calls[(seed % calls.len() as u64) as usize];
    let mut source = Source::new(seed, device, other);
    if std::env::var_os("ZYX_TRACE").is_some() {
        eprintln!("ZYX_SEED={seed} {name}");
    }
    let judged = catch_unwind(AssertUnwindSafe(|| match call(&mut source) {
        Ok(outcome) => outcome.tensors.iter().try_for_each(|y| judge(y, &mut source)),
        Err(error) => named(name, &error, &source),
    }));
    let problem = match judged {
        Ok(Ok(())) => return Ok(source.computed),
        Ok(Err(problem)) => problem,
        Err(panic) => format!("panicked: {}", message(&*panic)),
    };
    Err(format!("ZYX_SEED={seed} {name}: {problem}\n    {}", source.log.join(", ")))
}

fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("something")
}

/// Whether the error says which function refused. What does not fit into memory is refused by the
/// device, and files by name.
fn named(name: &str, error: &Error, source: &Source) -> Result<(), String> {
    let text = error.to_string();
    // Functions with options are named as those without.
    let last = name.rsplit("::").next().unwrap_or(name).trim_end_matches("_with");
    let last = last.trim_end_matches("_all").trim_end_matches("_replacing");
    let last = last.trim_end_matches('_');
    let expected = match error {
        Error::Device(_) => source.large,
        Error::Format { .. } | Error::Io { .. } => name.contains("::") || text.contains(last),
        Error::NoDevice { .. } if name == "Runtime::device" => true,
        // Layers and optimizers consist of methods that name themselves.
        _ if name.contains("::") || name.starts_with("clip") || name == "total_norm" => {
            text.contains(": ")
        }
        _ => text.contains(last),
    };
    if !expected || text.len() < last.len() + 10 {
        return Err(format!("the error does not name it: {text}"));
    }
    // Errors say where the caller called, not where the library found out.
    match ["zyx-core/src", "zyx-ir/src", "nn/src", "optim/src"]
        .iter()
        .find(|inside| text.contains(*inside))
    {
        Some(_) => Err(format!("the error is not at the caller: {text}")),
        None => Ok(()),
    }
}

/// A result can be computed, or is refused because there is too much of it; so is its gradient.
fn judge(y: &Tensor, source: &mut Source) -> Result<(), String> {
    let bytes = y.shape().checked_numel().and_then(|n| n.checked_mul(y.dtype().size()));
    if y.numel() > 0 && bytes.is_none_or(|n| n > isize::MAX as usize) {
        let done = y.to_bytes();
        return if done.is_err() { Ok(()) } else { Err("computed the impossible".to_owned()) };
    }
    if source.large || y.numel() > SMALL {
        return Ok(());
    }
    source.computed = true;
    let computed = match y.to_bytes() {
        Err(Error::Index { .. }) => return Ok(()),
        done => done.map_err(|error| format!("cannot be computed: {error}"))?,
    };
    if Some(computed.len()) != bytes {
        return Err(format!("{} bytes for shape {}", computed.len(), y.shape()));
    }
    if source.one_in(8) && y.to_string().starts_with('<') {
        return Err(format!("cannot be printed: {y}"));
    }
    Ok(())
}

/// Held while panics have no message.
static TOLD: Mutex<()> = Mutex::new(());

#[test]
fn nothing_panics() {
    let (calls, devices) = (table(), devices("reference"));
    if let Some(seed) = std::env::var("ZYX_SEED").ok().and_then(|s| s.parse().ok()) {
        check(&calls, seed, &devices).unwrap_or_else(|problem| panic!("{problem}"));
        return;
    }
    // The messages of panics are reported at the end, each once.
    let told = lock(&TOLD);
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let n = count(100 * calls.len() as u64);
    let (mut found, mut computed) = (Vec::new(), 0);
    for seed in 0..n {
        match check(&calls, seed, &devices) {
            Ok(done) => computed += u64::from(done),
            Err(problem) => found.push(problem),
        }
    }
    std::panic::set_hook(hook);
    drop(told);
    let mut shown: Vec<&String> = found.iter().collect();
    shown.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
    let shown: Vec<&str> = shown.into_iter().map(String::as_str).collect();
    assert!(computed > n / 4, "only {computed} of {n} results were computed");
    assert!(found.is_empty(), "{} of {n} calls:\n{}", found.len(), shown.join("\n"));
}

/// A result of a row on one device.
struct Ran {
    done: Result<Outcome>,
    large: bool,
    log: Vec<String>,
}

fn run((name, call): Call, seed: u64, [device, other]: &[Device; 2]) -> Result<Ran, String> {
    let mut source = Source::tame(seed, device, other);
    let done = catch_unwind(AssertUnwindSafe(|| call(&mut source)));
    let Source { large, log, .. } = source;
    match done {
        Ok(done) => Ok(Ran { done, large, log }),
        Err(panic) => Err(format!("ZYX_SEED={seed} {name}: panicked: {}", message(&*panic))),
    }
}

/// Whether the call of `seed` gave something to compare, or what differs.
fn agree(calls: &[Call], seed: u64, on: &[[Device; 2]; 2]) -> Result<bool, String> {
    let row = calls[(seed % calls.len() as u64) as usize];
    let (want, got) = (run(row, seed, &on[0])?, run(row, seed, &on[1])?);
    let differ = |what: String| {
        Err(format!("ZYX_SEED={seed} {}: {what}\n    {}", row.0, want.log.join(", ")))
    };
    // Where devices are named, they are called the same.
    let plain = |text: &str| text.replace("reference", "cpu");
    let (want_outcome, got_outcome) = match (&want.done, &got.done) {
        (Ok(want), Ok(got)) => (want, got),
        (Err(want), Err(got)) if plain(&want.to_string()) == plain(&got.to_string()) => {
            return Ok(false);
        }
        // An index out of range is refused at the call where it is known, which differs by device, else at a read.
        (Ok(outcome), Err(Error::Index { .. })) | (Err(Error::Index { .. }), Ok(outcome))
            if has_bad_index(outcome) =>
        {
            return Ok(false);
        }
        (want, got) => {
            let shown = |x: &Result<Outcome>| match x {
                Ok(_) => "succeeds".to_owned(),
                Err(error) => format!("fails: {error}"),
            };
            return differ(format!("the interpreter {}, the CPU {}", shown(want), shown(got)));
        }
    };
    let (a, b) = (&want_outcome.told, &got_outcome.told);
    if a.as_deref().map(plain) != b.as_deref().map(plain) {
        return differ(format!("the interpreter tells {a:?}, the CPU {b:?}"));
    }
    let (a, b) = (&want_outcome.tensors, &got_outcome.tensors);
    if a.len() != b.len() && (has_bad_index(want_outcome) || has_bad_index(got_outcome)) {
        return Ok(false);
    }
    if a.len() != b.len() {
        return differ(format!("{} tensors on the interpreter, {} on the CPU", a.len(), b.len()));
    }
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        if (a.dtype(), a.shape()) != (b.dtype(), b.shape()) {
            return differ(format!("result {at} is {a:?} on the interpreter, {b:?} on the CPU"));
        }
        // What is on the other device of a row fails in `judge`, and the same way here.
        if want.large || a.numel() > SMALL {
            continue;
        }
        match (Array::read(a), Array::read(b)) {
            (Ok(a), Ok(b)) => {
                if let Some(wrong) = within(&a, row.0.contains("::")).mismatch(&b, false) {
                    return differ(format!("result {at}: {wrong}"));
                }
            }
            (Err(a), Err(b)) if plain(&a.to_string()) == plain(&b.to_string()) => {}
            (a, b) => return differ(format!("result {at}: {:?} and {:?}", a.err(), b.err())),
        }
    }
    Ok(!a.is_empty() || want_outcome.told.is_some())
}

/// Whether a result is computed by an index out of range.
fn has_bad_index(outcome: &Outcome) -> bool {
    outcome.tensors.iter().any(|y| matches!(y.to_bytes(), Err(Error::Index { .. })))
}

/// How far two devices may be apart, in roundings of the largest number of the result.
const ROUNDINGS: f64 = 32.0;

/// What a device may give where the interpreter gave `want`. Weights of layers are of `f32`
/// whatever the result is of.
fn within(want: &Array, layer: bool) -> Array {
    let dtype = want.dtype;
    if !dtype.is_float() {
        return want.clone();
    }
    let finite = |x: f64| if x.is_finite() { x.abs() } else { 0.0 };
    let scale = want.floats().iter().fold(1.0, |scale: f64, &x| scale.max(finite(x)));
    let unit = unit_roundoff(dtype).max(if layer { unit_roundoff(DType::F32) } else { 0.0 });
    want.map(dtype, |x| match x {
        Val::Real(x, _) if x.is_finite() => Val::about(dtype, x, ROUNDINGS * unit * scale),
        other => other,
    })
}

#[test]
fn rows_agree() {
    let (calls, devices) = (table(), ["reference", "cpu"].map(devices));
    if let Some(seed) = std::env::var("ZYX_SEED").ok().and_then(|s| s.parse().ok()) {
        agree(&calls, seed, &devices).unwrap_or_else(|problem| panic!("{problem}"));
        return;
    }
    let (n, rows) = (count(12 * calls.len() as u64), calls.len() as u64);
    let (mut found, mut compared) = (Vec::new(), vec![false; calls.len()]);
    let mut each = |seed: u64, compared: &mut bool| match agree(&calls, seed, &devices) {
        Ok(something) => *compared |= something,
        Err(problem) => found.push(problem),
    };
    (0..n).for_each(|seed| each(seed, &mut compared[(seed % rows) as usize]));
    // Arguments of some rows seldom fit one another.
    for (row, compared) in (0..rows).zip(&mut compared) {
        let mut further = n.next_multiple_of(rows) + row;
        while !*compared && further < 500 * rows {
            each(further, compared);
            further += rows;
        }
    }
    // Without its lock, the messages would be dropped.
    let _told = lock(&TOLD);
    found.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
    assert!(found.is_empty(), "{} of {n} calls:\n{}", found.len(), found.join("\n"));
    let silent = calls.iter().zip(&compared).filter(|(_, done)| !**done).map(|(call, _)| call.0);
    let silent: Vec<&str> = silent.collect();
    assert!(silent.is_empty(), "rows that give nothing to compare: {silent:?}");
}

/// Kernels are told by the lines of the program, whichever functions the library calls within.
#[test]
fn kernels_have_lines_of_the_caller() {
    let (calls, devices) = (table(), devices("reference"));
    let (n, rows) = (count(24 * calls.len() as u64), calls.len() as u64);
    let (mut found, mut seen) = (BTreeMap::new(), 0);
    for seed in 0..n {
        let row = calls[(seed % rows) as usize];
        let Ok(Ran { done: Ok(outcome), large: false, .. }) = run(row, seed, &devices) else {
            continue;
        };
        for y in outcome.tensors.iter().filter(|y| y.numel() <= SMALL) {
            let Ok(told) = y.explain() else { continue };
            let kernels = told.launches.iter().flat_map(|launch| &launch.kernels);
            for call in kernels.flat_map(|kernel| &kernel.calls) {
                seen += 1;
                let own = |line: &String| line.starts_with("tests/");
                if !call.line.as_ref().is_some_and(own) {
                    found
                        .entry(row.0)
                        .or_insert_with(|| format!("ZYX_SEED={seed} {}: {told}", row.0));
                }
            }
        }
    }
    let shown: Vec<String> = found.into_values().collect();
    assert!(seen as u64 > n / 4, "only {seen} calls were told");
    assert!(shown.is_empty(), "{} functions:\n{}", shown.len(), shown.join("\n"));
}

/// Functions that take no argument from a caller's data: they belong to the visitors of `nn`, or another row calls them.
/// What a user kernel does with its inputs is up to its closure: `tests/kernels.rs` and the conformance suite call these.
const WITHOUT_ARGUMENTS: &[&str] = &[
    "Path::within",
    "Path::as_str",
    "Mode::is_training",
    "Rng::next_f64",
    "Kernel::new",
    "Kernel::elementwise",
    "Kernel::name",
    "Kernel::with_size",
    "Kernel::with_parameter",
    "Kernel::with_gradient",
    "Kernel::with_raw",
    "Kernel::call",
    "Kernel::call_all",
    "Kernel::check",
    "Kernel::check_gradient",
    "Kernel::to_text",
    "Kernel::from_text",
];

#[test]
fn every_public_function_is_called() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for (folder, prefix) in [
        ("zyx-core/src/tensor", ""),
        ("nn/src", ""),
        ("nn/src/distributions", "distributions::"),
        ("nn/src/safetensors", "safetensors::"),
        ("optim/src", ""),
    ] {
        for entry in std::fs::read_dir(root.join(folder)).expect("the sources are there") {
            let path = entry.expect("a file").path();
            if path.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a source file");
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or("");
            let prefix = if stem == "schedule" { "schedule::" } else { prefix };
            found.extend(public_functions(&text).into_iter().map(|name| format!("{prefix}{name}")));
        }
    }
    let text = std::fs::read_to_string(root.join("zyx-core/src/autodiff.rs")).expect("a file");
    found.extend(public_functions(&text));
    assert!(found.len() > 200, "only {} public functions were recognised", found.len());
    let known: Vec<&str> = table().iter().map(|call| call.0).collect();
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| {
            !known.contains(&name.as_str()) && !WITHOUT_ARGUMENTS.contains(&name.as_str())
        })
        .collect();
    assert!(missing.is_empty(), "public functions without a row in this test: {missing:?}");
    let gone: Vec<&&str> = known
        .iter()
        .filter(|name| !modules::BY_MACROS.iter().any(|made| name.starts_with(made)))
        .filter(|name| **name != "Runtime::device" && !found.iter().any(|f| f == **name))
        .collect();
    assert!(gone.is_empty(), "rows whose function is gone: {gone:?}");
}
