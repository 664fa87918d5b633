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
//! `ZYX_SEED=n` makes the call of that seed alone; `ZYX_PROGRAMS=n` sets how many are made.

mod functional;
mod modules;
mod ops;
mod other;
mod source;
mod tensor;

use source::Source;
use std::panic::{AssertUnwindSafe, catch_unwind};
use zyx_tests::ladder::count;
use zyx_tests::sources::public_functions;
use zyx_tests::zyx_core::{Device, Error, Result, Runtime, Tensor};

/// A function's name and a call of it.
pub(crate) type Call = (&'static str, fn(&mut Source) -> Result<Outcome>);

/// What a call gave.
pub(crate) struct Outcome(Vec<Tensor>);

impl From<Tensor> for Outcome {
    fn from(tensor: Tensor) -> Outcome {
        Outcome(vec![tensor])
    }
}

impl From<Vec<Tensor>> for Outcome {
    fn from(tensors: Vec<Tensor>) -> Outcome {
        Outcome(tensors)
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Outcome {
        Outcome(vec![])
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
    [tensor::all(), other::all(), modules::all(), ops::all(), functional::all()].concat()
}

fn devices() -> [Device; 2] {
    let open = || Runtime::default().device("reference").expect("always present");
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
        Ok(outcome) => outcome.0.iter().try_for_each(|y| judge(y, &mut source)),
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
        Error::Format { .. } | Error::Io { .. } => name.contains("::"),
        Error::NoDevice { .. } if name == "Runtime::device" => true,
        // Layers and optimizers consist of methods that name themselves.
        _ if name.contains("::") || name.starts_with("clip") => text.contains(": "),
        _ => text.contains(last),
    };
    if !expected || text.len() < last.len() + 10 {
        return Err(format!("the error does not name it: {text}"));
    }
    // Errors say where the caller called, not where the library found out.
    match ["zyx-core/src", "nn/src", "optim/src"].iter().find(|inside| text.contains(*inside)) {
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
    let computed = y.to_bytes().map_err(|error| format!("cannot be computed: {error}"))?;
    if Some(computed.len()) != bytes {
        return Err(format!("{} bytes for shape {}", computed.len(), y.shape()));
    }
    if source.one_in(8) && y.to_string().starts_with('<') {
        return Err(format!("cannot be printed: {y}"));
    }
    Ok(())
}

#[test]
fn nothing_panics() {
    let (calls, devices) = (table(), devices());
    if let Some(seed) = std::env::var("ZYX_SEED").ok().and_then(|s| s.parse().ok()) {
        check(&calls, seed, &devices).unwrap_or_else(|problem| panic!("{problem}"));
        return;
    }
    // The messages of panics are reported at the end, each once.
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
    let mut shown: Vec<&String> = found.iter().collect();
    shown.sort_by_key(|line| line.split(' ').nth(1).map(str::to_owned));
    let shown: Vec<&str> = shown.into_iter().map(String::as_str).collect();
    assert!(computed > n / 4, "only {computed} of {n} results were computed");
    assert!(found.is_empty(), "{} of {n} calls:\n{}", found.len(), shown.join("\n"));
}

/// Functions that take no argument from a caller's data: they belong to the visitors of `nn`.
const WITHOUT_ARGUMENTS: &[&str] = &["Path::within", "Path::as_str", "Mode::is_training"];

#[test]
fn every_public_function_is_called() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for (folder, prefix) in [
        ("zyx-core/src/tensor", ""),
        ("nn/src", ""),
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
