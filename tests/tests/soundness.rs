//! Safe code cannot reach memory that is not its own, whatever kernels, arguments and orders of calls
//! it makes up.
//!
//! Random kernels, valid and with damaged text, go through every public door: parsing, compiling,
//! submitting with right and wrong arguments. Buffers lie between canaries, and what runs agrees with
//! the interpreter. Random interleavings of allocations, writes, reads, views, adopted memory, drops
//! and two runtimes agree with a model of bytes.
//!
//! `ZYX_SEED=n` runs that seed alone; `ZYX_CASES=n` sets how many are run. `scripts/sanitize.sh` runs
//! this under an address sanitizer.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use zyx_backend_cpu::{Config, Cpu, Level};
use zyx_core::hal::{Arg, Backend, Device as _, HostOwner};
use zyx_core::ir::interp::{self, InterpError};
use zyx_core::ir::{Kernel, Op, Ranges, Verified};
use zyx_core::runtime::{Buffer, Launch, Pinned, Program};
use zyx_core::testing::generate::{
    Options, random_inputs, random_kernel, random_vars, same_elements,
};
use zyx_core::{DType, Device, HostView, Result, Runtime, Tensor};
use zyx_tests::Rng;

fn seeds(default: u64) -> impl Iterator<Item = u64> {
    let number = |name| std::env::var(name).ok().and_then(|s| s.parse::<u64>().ok());
    let (first, n) = match number("ZYX_SEED") {
        Some(seed) => (seed, 1),
        None => (0, number("ZYX_CASES").unwrap_or(default)),
    };
    first..first + n
}

fn cpu(level: Option<Level>) -> Device {
    let runtime = Runtime::default();
    runtime.register(Cpu { config: Config { level, threads: Some(2), ..Config::default() } });
    runtime.device("cpu").expect("always present")
}

/// Most bytes of arguments, and most iterations of loops, with which a damaged kernel is run.
const MOST_BYTES: u64 = 1 << 20;
const MOST_ITERATIONS: i128 = 1 << 16;

/// Bytes around each argument.
const MARGIN: usize = 256;
const CANARY: u8 = 0xa5;

/// A buffer with canaries around these contents.
fn between_canaries(device: &Device, contents: &[u8]) -> Result<Buffer> {
    let mut bytes = vec![CANARY; MARGIN + contents.len() + MARGIN];
    bytes[MARGIN..][..contents.len()].copy_from_slice(contents);
    let buffer = device.alloc(bytes.len())?;
    device.write(&buffer, &bytes)?;
    Ok(buffer)
}

/// The contents between the canaries, which are as they were.
fn contents(device: &Device, buffer: &Buffer) -> Result<Vec<u8>> {
    let mut bytes = vec![0; buffer.bytes()];
    device.read(buffer, &mut bytes)?;
    let end = bytes.len() - MARGIN;
    let whole = |part: &[u8]| part.iter().all(|&b| b == CANARY);
    assert!(whole(&bytes[..MARGIN]) && whole(&bytes[end..]), "a canary was written");
    Ok(bytes[MARGIN..end].to_vec())
}

fn submit(device: &Device, program: &Program, args: &[Arg<'_, Pinned>]) -> Result<()> {
    device.submit(&[Launch { program, args, after: &[] }])
}

/// Runs a program on copies of these buffers; gives them afterwards.
fn run(
    device: &Device,
    program: &Program,
    inputs: &[Vec<u8>],
    vars: &[u64],
) -> Result<Vec<Vec<u8>>> {
    let buffers = inputs.iter().map(|bytes| between_canaries(device, bytes));
    let buffers = buffers.collect::<Result<Vec<Buffer>>>()?;
    let pins = buffers.iter().map(Buffer::pin).collect::<Result<Vec<Pinned>>>()?;
    let mut args: Vec<Arg<'_, Pinned>> = pins.iter().map(|pin| Arg::Buffer(pin, MARGIN)).collect();
    args.extend(vars.iter().map(|&bits| Arg::Scalar(bits)));
    submit(device, program, &args)?;
    buffers.iter().map(|buffer| contents(device, buffer)).collect()
}

/// A kernel's text with something changed.
fn damaged(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<Vec<String>> =
        text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    for _ in 0..1 + rng.below(3) {
        let at = 1 + rng.below(lines.len() - 1);
        let labels: Vec<String> = lines.iter().map(|line| line[0].clone()).collect();
        match rng.below(8) {
            0 => drop(lines.remove(at)),
            1 => {
                let copy = lines[at].clone();
                lines.insert(at, copy);
            }
            // An access without its guard.
            2 => {
                let guard = |line: &&Vec<String>| line.iter().any(|word| word == "guard");
                let guards: Vec<Vec<String>> = lines.iter().filter(guard).cloned().collect();
                if guards.is_empty() {
                    continue;
                }
                let words: Vec<&String> =
                    rng.pick(&guards).iter().filter(|w| !w.is_empty()).collect();
                let (name, index) = (words[0].clone(), words[2].trim_end_matches(',').to_owned());
                for word in lines.iter_mut().flat_map(|line| line.iter_mut().skip(1)) {
                    for (open, close) in [("", ","), ("", ""), ("[", "],"), ("[", "]")] {
                        if word.ends_with(&format!("{open}{name}{close}")) {
                            *word = word.replace(&name, &index);
                        }
                    }
                }
            }
            _ => {
                let n = lines[at].len();
                let word = &mut lines[at][rng.below(n)];
                *word = changed(word, &labels, rng);
            }
        }
        if lines.len() < 3 {
            break;
        }
    }
    lines.iter().map(|line| line.join(" ") + "\n").collect()
}

/// Another word in place of this one: of the same kind, most of the time.
fn changed(word: &str, labels: &[String], rng: &mut Rng) -> String {
    const NUMBERS: [&str; 12] = [
        "0",
        "1",
        "-1",
        "2",
        "7",
        "64",
        "1000",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "65535",
    ];
    const TYPES: [&str; 10] =
        ["bool", "u8", "i32", "i64", "u64", "f32", "f64", "i64x4", "f32x8", "boolx4"];
    const WORDS: [&str; 24] = [
        "read",
        "write",
        "readwrite",
        "parallel",
        "serial",
        "group",
        "local",
        "local.1",
        "register",
        "shared",
        "add",
        "sub",
        "mul",
        "div",
        "rem",
        "min",
        "max",
        "shl",
        "load",
        "store",
        "where",
        "relaxed",
        "cast",
        "guard",
    ];
    if let Some(start) = word.find('%') {
        let end = word[start + 1..].find(|c: char| !c.is_ascii_digit());
        let end = end.map_or(word.len(), |end| start + 1 + end);
        let labels: Vec<&String> = labels.iter().filter(|label| label.starts_with('%')).collect();
        return format!("{}{}{}", &word[..start], rng.pick(&labels), &word[end..]);
    }
    if let Some((dtype, _)) = word.split_once('[').filter(|_| word.ends_with(']')) {
        return format!("{dtype}[{}]", rng.pick(&NUMBERS));
    }
    if let Ok(number) = word.parse::<i64>() {
        return match rng.below(4) {
            0 => number.wrapping_add(1).to_string(),
            1 => number.wrapping_sub(1).to_string(),
            2 => number.wrapping_mul(2).to_string(),
            _ => (*rng.pick(&NUMBERS)).to_owned(),
        };
    }
    let kinds: [&[&str]; 2] = [&TYPES, &WORDS];
    (*rng.pick(kinds[usize::from(!TYPES.contains(&word))])).to_owned()
}

/// Whether a kernel can be run here: its arguments are small, it ends soon, and it waits for nothing.
fn is_short(kernel: &Kernel) -> bool {
    let bytes = kernel.params().iter().map(|p| p.len.saturating_mul(p.dtype.size() as u64));
    if bytes.fold(0u64, u64::saturating_add) > MOST_BYTES || kernel.waits() {
        return false;
    }
    let ranges = Ranges::of(kernel);
    let loops = kernel.ops().iter().filter_map(|op| match op {
        Op::Loop { len, .. } => Some(ranges.get(*len).max.max(1)),
        _ => None,
    });
    let iterations = loops.fold(1i128, |all, n| all.saturating_mul(n));
    let ranges_hold = kernel.vars().iter().all(|var| var.min <= var.max);
    iterations <= MOST_ITERATIONS && ranges_hold
}

/// What goes wrong with a text on a device, if anything.
fn fault(device: &Device, text: &str, seed: u64) -> Option<String> {
    let Ok(kernel) = text.parse::<Kernel>() else { return None };
    let source = || Verified::new(&kernel).map(|verified| device.source(&verified));
    let source = catch_unwind(AssertUnwindSafe(source));
    let Ok(source) = source else { return Some("its source panics".to_owned()) };
    if matches!(source, Ok(Ok(_))) && interp::Program::new(&kernel).is_err() {
        return Some("a malformed kernel has a source".to_owned());
    }
    let compiled = catch_unwind(AssertUnwindSafe(|| device.program(&kernel)));
    let Ok(compiled) = compiled else { return Some("compiling panics".to_owned()) };
    let well_formed = interp::Program::new(&kernel);
    let Ok(program) = compiled else { return None };
    if let Err(error) = well_formed {
        return Some(format!("a malformed kernel was compiled: {error}"));
    }
    if !is_short(&kernel) {
        // The arguments it asks for are not there.
        let refused = kernel.params().is_empty() || submit(device, &program, &[]).is_err();
        return (!refused).then(|| "a launch without arguments was accepted".to_owned());
    }
    let (inputs, vars) = (random_inputs(&kernel, seed), random_vars(&kernel, seed));
    let actual = catch_unwind(AssertUnwindSafe(|| run(device, &program, &inputs, &vars)));
    let actual = match actual {
        Err(_) => return Some("running panics".to_owned()),
        Ok(Err(error)) => return Some(format!("right arguments are refused: {error}")),
        Ok(Ok(actual)) => actual,
    };
    let mut expected = inputs;
    match interp::interpret(&kernel, &mut expected, &vars, &interp::Options::default()) {
        // What the interpreter finds wrong in the run has no result to agree on.
        Err(InterpError::Fault { .. }) => None,
        Err(error) => Some(format!("the interpreter refuses: {error}")),
        Ok(()) => {
            let mut params = kernel.params().iter().zip(&expected).zip(&actual);
            let differs = params.any(|((p, e), a)| !same_elements(p.dtype, e, a));
            differs.then(|| "the result is another than the interpreter's".to_owned())
        }
    }
}

#[test]
fn damaged_kernels_are_refused_or_stay_inside_their_arguments() {
    let devices = [cpu(None), cpu(Some(Level::Portable))];
    let options = Options { size: 12, ..Options::default() };
    let (mut parsed, mut accepted) = (0, 0);
    for seed in seeds(400) {
        let rng = &mut Rng::new(seed);
        let right = random_kernel(seed, &options).to_string();
        let text = if seed % 8 == 0 { right } else { damaged(&right, rng) };
        for device in &devices {
            if let Some(reason) = fault(device, &text, seed) {
                panic!("ZYX_SEED={seed}: {reason}\n{text}");
            }
        }
        let kernel = text.parse::<Kernel>();
        parsed += usize::from(kernel.is_ok());
        accepted += usize::from(kernel.is_ok_and(|kernel| devices[0].program(&kernel).is_ok()));
    }
    // Most damage is found, some does none.
    assert!(
        std::env::var_os("ZYX_SEED").is_some() || (accepted * 10 > parsed && accepted < parsed)
    );
}

/// An access that nobody can prove loads 0 outside, and stores nothing.
#[test]
fn accesses_in_doubt_are_guarded() -> Result<()> {
    const GATHER: &str = "kernel gather
        buffer 0 : i64[8] read
        buffer 1 : f32[4] read
        buffer 2 : f32[8] readwrite
        %i param 0 read : i64
        %x param 1 read : f32
        %y param 2 readwrite : f32
        %n const 8 : i64
        %l loop serial %n
        %k load %i[%l] : i64
        %v load %x[%k] : f32
        %o load %y[%k] : f32
        %s add %v, %o : f32
        %t store %y[%k], %s : f32
        %e end %l";
    let indices = [0, -1, 3, 4, 7, 8, i64::MAX, i64::MIN];
    let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let inputs = [
        indices.iter().flat_map(|i| i.to_le_bytes()).collect(),
        bytes(&[1.0, 2.0, 3.0, 4.0]),
        bytes(&[10.0; 8]),
    ];
    let expected = bytes(&[11.0, 10.0, 10.0, 14.0, 10.0, 10.0, 10.0, 10.0]);
    let kernel: Kernel = GATHER.parse().expect("it is well-formed");
    for device in [cpu(None), cpu(Some(Level::Portable)), Runtime::default().device("reference")?] {
        let program = device.program(&kernel)?;
        assert_eq!(run(&device, &program, &inputs, &[])?[2], expected, "{device}");
    }
    Ok(())
}

/// Bytes that are neither 0 nor 1 are true, and lead nowhere else.
#[test]
fn bytes_that_are_no_bools_lead_nowhere() -> Result<()> {
    const CHOOSE: &str = "kernel choose
        buffer 0 : bool[2] read
        buffer 1 : u8[2] readwrite
        %c param 0 read : bool
        %x param 1 readwrite : u8
        %k const 0 : i64
        %two const 2 : i64
        %b load %c[%k] : bool
        %i cast %b : i64
        %v load %x[%i] : u8
        %s store %x[%i], %v : u8
        %d load %c[%i] : bool
        %j cast %d : i64
        %far const 1000 : i64
        %at mul %i, %far : i64
        %out le %two, %at : bool
        %or or %d, %out : bool
        %in not %or : bool
        %if if %in
        %w store %x[%at], %v : u8
        %e end %if";
    let kernel: Kernel = CHOOSE.parse().expect("it is well-formed");
    for device in [cpu(None), cpu(Some(Level::Portable))] {
        let program = device.program(&kernel)?;
        for bytes in [[0, 0], [1, 1], [2, 2], [254, 254], [255, 255], [1, 254]] {
            assert_eq!(run(&device, &program, &[bytes.to_vec(), vec![5, 6]], &[])?[1], [5, 6]);
        }
    }
    Ok(())
}

/// Every way in which arguments may not fit is an error that changes nothing.
#[test]
fn wrong_arguments_are_refused() -> Result<()> {
    const KERNEL: &str = "kernel k
        buffer 0 : i32[4] read
        buffer 1 : i32[4] write
        scalar 0 : i64 0..=4
        scalar 1 : bool -9223372036854775808..=9223372036854775807
        scalar 2 : i32 -9223372036854775808..=9223372036854775807
        %a param 0 read : i32
        %b param 1 write : i32
        %n var 0 : i64
        %c var 1 : bool
        %y var 2 : i32
        %i loop serial %n
        %x load %a[%i] : i32
        %z where %c, %x, %y : i32
        %s store %b[%i], %z : i32
        %e end %i";
    let kernel: Kernel = KERNEL.parse().expect("it is well-formed");
    for (device, other) in [(cpu(None), cpu(None)), (cpu(Some(Level::Portable)), cpu(None))] {
        let (program, foreign) = (device.program(&kernel)?, other.program(&kernel)?);
        let buffers = [[1u8; 16], [2; 16]].map(|bytes| between_canaries(&device, &bytes));
        let [a, b] = buffers.map(|buffer| buffer.and_then(|buffer| buffer.pin()));
        let (a, b) = (&a?, &b?);
        let elsewhere = &between_canaries(&other, &[3; 16])?.pin()?;
        let buffers = [Arg::Buffer(a, MARGIN), Arg::Buffer(b, MARGIN)];
        let scalars = [Arg::Scalar(4), Arg::Scalar(1), Arg::Scalar(0xffff_ffff)];
        let all: Vec<_> = buffers.iter().chain(&scalars).copied().collect();
        let with = |at: usize, arg| {
            let mut args = all.clone();
            args[at] = arg;
            args
        };
        let wrong = [
            ("none", vec![]),
            ("no scalars", buffers.to_vec()),
            ("one too few", all[..4].to_vec()),
            ("one too many", [&all[..], &scalars[..1]].concat()),
            ("a scalar for a buffer", with(0, Arg::Scalar(0))),
            ("a buffer for a scalar", with(2, Arg::Buffer(a, 0))),
            ("a short buffer", with(1, Arg::Buffer(b, 2 * MARGIN + 4))),
            ("an offset beyond", with(1, Arg::Buffer(b, usize::MAX))),
            ("half an element", with(0, Arg::Buffer(a, MARGIN + 2))),
            ("above the range", with(2, Arg::Scalar(5))),
            ("below the range", with(2, Arg::Scalar(u64::MAX))),
            ("no bool", with(3, Arg::Scalar(2))),
            ("more than 32 bits", with(4, Arg::Scalar(1 << 32))),
            ("another runtime's", with(1, Arg::Buffer(elsewhere, MARGIN))),
        ];
        for (what, args) in wrong {
            assert!(submit(&device, &program, &args).is_err(), "{what}");
        }
        let error = submit(&device, &foreign, &all).expect_err("a program of another device");
        assert!(error.to_string().contains("another"), "{error}");
        let waits = Launch { program: &program, args: &all, after: &[0] };
        assert!(device.submit(&[waits]).is_err(), "a launch that waits for itself");
        submit(&device, &program, &all)?;
    }
    Ok(())
}

/// Scalars that are declared and not used are demanded like others.
#[test]
fn scalars_are_not_read_from_elsewhere() -> Result<()> {
    let scalars: String = (0..16)
        .map(|i| format!("scalar {i} : u64 -9223372036854775808..=9223372036854775807\n"))
        .collect();
    let ops: String = (0..16)
        .map(|i| {
            format!(
                "%v{i} var {i} : u64\n%i{i} const {i} : i64\n%s{i} store %p[%i{i}], %v{i} : u64\n"
            )
        })
        .collect();
    let text =
        format!("kernel k\nbuffer 0 : u64[16] write\n{scalars}%p param 0 write : u64\n{ops}");
    let kernel: Kernel = text.parse().expect("it is well-formed");
    for device in [cpu(None), cpu(Some(Level::Portable)), Runtime::default().device("reference")?] {
        let program = device.program(&kernel)?;
        assert!(run(&device, &program, &[vec![0; 128]], &[]).is_err());
        let vars: Vec<u64> = (0..16).map(|i| i * i).collect();
        let expected: Vec<u8> = vars.iter().flat_map(|x| x.to_le_bytes()).collect();
        assert_eq!(run(&device, &program, &[vec![0; 128]], &vars)?, [expected]);
    }
    Ok(())
}

/// A raw buffer with what must be in it.
struct Raw {
    device: usize,
    buffer: Buffer,
    bytes: Vec<u8>,
}

/// A tensor with its elements, and what its memory was adopted from.
struct Value {
    tensor: Tensor,
    bytes: Vec<u8>,
    owner: Option<Weak<Vec<u8>>>,
}

#[derive(Default)]
struct World {
    raw: Vec<Raw>,
    values: Vec<Value>,
    views: Vec<(HostView, Vec<u8>)>,
}

const FILL: &str = "kernel fill
    buffer 0 : u8[64] write
    scalar 0 : u8 -9223372036854775808..=9223372036854775807
    %p param 0 write : u8
    %x var 0 : u8
    %n const 64 : i64
    %i loop parallel %n
    %s store %p[%i], %x : u8
    %e end %i";

impl World {
    fn step(&mut self, devices: &[Device], programs: &[Program], rng: &mut Rng) -> Result<()> {
        let at = rng.below(devices.len());
        let device = &devices[at];
        let random =
            |rng: &mut Rng, n: usize| (0..n).map(|_| rng.bits() as u8).collect::<Vec<u8>>();
        match rng.below(12) {
            0 | 1 => {
                let bytes = vec![0; *rng.pick(&[0, 1, 63, 64, 65, 300, 4096, 70_000])];
                self.raw.push(Raw { device: at, buffer: device.alloc(bytes.len())?, bytes });
            }
            2 | 3 if !self.raw.is_empty() => {
                let i = rng.below(self.raw.len());
                let raw = &mut self.raw[i];
                let new = random(rng, rng.clone().below(raw.bytes.len() + 2));
                let written = device.write(&raw.buffer, &new);
                let fits = raw.device == at && new.len() <= raw.bytes.len();
                assert_eq!(written.is_ok(), fits, "{written:?}");
                if fits {
                    raw.bytes[..new.len()].copy_from_slice(&new);
                }
            }
            4 if !self.raw.is_empty() => {
                let raw = &self.raw[rng.below(self.raw.len())];
                let mut bytes = vec![0; raw.bytes.len()];
                let read = device.read(&raw.buffer, &mut bytes);
                assert_eq!(read.is_ok(), raw.device == at, "{read:?}");
                if raw.device == at {
                    assert_eq!(bytes, raw.bytes);
                }
            }
            5 if !self.raw.is_empty() => {
                let i = rng.below(self.raw.len());
                let raw = &mut self.raw[i];
                let (pin, x) = (raw.buffer.pin()?, rng.bits() as u8);
                let args = [Arg::Buffer(&pin, 0), Arg::Scalar(x.into())];
                let ran = submit(device, &programs[at], &args);
                assert_eq!(ran.is_ok(), raw.device == at && raw.bytes.len() >= 64, "{ran:?}");
                if ran.is_ok() {
                    raw.bytes[..64].fill(x);
                }
            }
            6 => {
                let n = *rng.pick(&[1, 64, 1000, 20_000]);
                let bytes = random(rng, n);
                let owner = Arc::new(bytes.clone());
                let weak = Some(Arc::downgrade(&owner));
                let tensor = Tensor::from_owner(owner, DType::U8, [bytes.len()], device)?;
                self.values.push(Value { tensor, bytes, owner: weak });
            }
            7 | 8 if !self.values.is_empty() => {
                let i = rng.below(self.values.len());
                let source = &self.values[i];
                let tensor = &source.tensor + 1;
                let bytes = source.bytes.iter().map(|b| b.wrapping_add(1)).collect();
                if rng.one_in(2) {
                    self.values.swap_remove(i);
                }
                tensor.realize()?;
                self.values.push(Value { tensor, bytes, owner: None });
            }
            9 if !self.values.is_empty() => {
                let value = &self.values[rng.below(self.values.len())];
                if let Some(view) = value.tensor.host_view()? {
                    self.views.push((view, value.bytes.clone()));
                }
            }
            10 => {
                if !self.raw.is_empty() && rng.one_in(2) {
                    self.raw.swap_remove(rng.below(self.raw.len()));
                }
                if !self.values.is_empty() && rng.one_in(2) {
                    self.values.swap_remove(rng.below(self.values.len()));
                }
                if !self.views.is_empty() && rng.one_in(2) {
                    self.views.swap_remove(rng.below(self.views.len()));
                }
            }
            11 if rng.one_in(4) => device.trim(),
            _ => {}
        }
        Ok(())
    }

    /// Everything is as it must be.
    fn check(&self, devices: &[Device]) -> Result<()> {
        for (view, bytes) in &self.views {
            assert_eq!(view.as_slice(), bytes, "a view");
        }
        for Value { tensor, bytes, owner } in &self.values {
            assert_eq!(tensor.to_vec::<u8>()?, *bytes, "a tensor");
            if let Some(owner) = owner.as_ref().and_then(Weak::upgrade) {
                assert_eq!(*owner, *bytes, "adopted memory");
            }
        }
        for Raw { device, buffer, bytes } in &self.raw {
            let mut found = vec![0; bytes.len()];
            devices[*device].read(buffer, &mut found)?;
            assert_eq!(found, *bytes, "a buffer");
        }
        Ok(())
    }
}

#[test]
fn random_interleavings_agree_with_a_model_of_bytes() -> Result<()> {
    let fill: Kernel = FILL.parse().expect("it is well-formed");
    for seed in seeds(30) {
        let rng = &mut Rng::new(seed);
        let level = *rng.pick(&[None, Some(Level::Portable)]);
        let devices = [cpu(None), cpu(level)];
        let programs = [devices[0].program(&fill)?, devices[1].program(&fill)?];
        let mut world = World::default();
        println!("ZYX_SEED={seed}");
        for step in 0..150 {
            world.step(&devices, &programs, rng)?;
            if step % 10 == 0 {
                world.check(&devices)?;
            }
        }
        world.check(&devices)?;
    }
    Ok(())
}

/// The rules hold for whoever calls a backend itself.
#[test]
fn backends_keep_the_rules_themselves() {
    for level in [None, Some(Level::Portable)] {
        let backend = Cpu { config: Config { level, threads: Some(1), ..Config::default() } };
        let device = backend.open(0).expect("always present");
        let mut stream = device.stream().expect("it costs nothing");
        let kernel: Kernel = FILL.parse().expect("it is well-formed");
        let program = device.compile(&Verified::new(&kernel).expect("it is well-formed"));
        let program = program.expect("it compiles");
        let memory = Arc::new(device.alloc(64).expect("there is room"));
        let mut bytes = [7; 64];
        device.read(&mut stream, &memory, 0, &mut bytes).expect("it is as long");
        assert_eq!(bytes, [0; 64], "new memory has something in it");
        let args = [Arg::Buffer(&*memory, 0), Arg::Scalar(3)];
        device.launch(&mut stream, &program, &args).expect("they fit");
        for wrong in [&args[..1], &[], &[Arg::Buffer(&*memory, 1), args[1]], &[args[1], args[0]]] {
            assert!(device.launch(&mut stream, &program, wrong).is_err());
        }
        // What is looked at stays as it is.
        let view = device.host_view(&memory, 64).expect("it is the host's memory");
        assert!(device.launch(&mut stream, &program, &args).is_err());
        assert!(device.write(&mut stream, &memory, 0, &[1]).is_err());
        assert!(device.copy(&mut stream, (&memory, 0), (&memory, 1), 8).is_err());
        assert_eq!((*view).as_ref(), [3; 64]);
        drop(view);
        device.write(&mut stream, &memory, 0, &[1]).expect("nobody looks any more");
        // So does what is lent, here read-only memory of the process.
        static LENT: Aligned = Aligned([9; 64]);
        let lent = device.adopt(&(Arc::new(&LENT) as HostOwner)).expect("it is aligned");
        assert!(device.launch(&mut stream, &program, &[Arg::Buffer(&lent, 0), args[1]]).is_err());
        assert!(device.write(&mut stream, &lent, 0, &[1]).is_err());
        assert!(device.copy(&mut stream, (&memory, 0), (&lent, 0), 8).is_err());
        assert_eq!(LENT.0, [9; 64]);
    }
}

/// Streams of one device, used by two threads, take turns.
#[test]
fn threads_take_turns_on_a_backend() {
    const COUNT: &str = "kernel count
        buffer 0 : i32[1000] readwrite
        %p param 0 readwrite : i32
        %one const 1 : i32
        %n const 1000 : i64
        %i loop parallel %n
        %x load %p[%i] : i32
        %y add %x, %one : i32
        %s store %p[%i], %y : i32
        %e end %i";
    const TIMES: i32 = 3000;
    for level in [None, Some(Level::Portable)] {
        let open = || {
            let backend = Cpu { config: Config { level, threads: Some(1), ..Config::default() } };
            backend.open(0).expect("always present")
        };
        let (device, other) = (open(), open());
        let kernel = Verified::new(&COUNT.parse().expect("it is well-formed"));
        let program = device.compile(&kernel.expect("it is well-formed")).expect("it compiles");
        let memory = Arc::new(device.alloc(4000).expect("there is room"));
        let times = if level.is_none() { TIMES } else { TIMES / 10 };
        let count = || {
            let mut stream = device.stream().expect("it costs nothing");
            let mut before = 0;
            for _ in 0..times {
                let args = [Arg::Buffer(&*memory, 0)];
                let start = Instant::now();
                while let Err(refused) = device.launch(&mut stream, &program, &args) {
                    // The other thread looks at it, for a moment.
                    let is_seen = refused.to_string().contains("the host looks at it");
                    assert!(is_seen && start.elapsed() < Duration::from_mins(1), "{refused}");
                    std::thread::yield_now();
                }
                let view = device.host_view(&memory, 4000).expect("it is the host's memory");
                let bytes = (*view).as_ref();
                let first = bytes[..4].to_vec();
                assert!(bytes.chunks(4).all(|x| x == first), "half of a launch is seen");
                let now = i32::from_le_bytes(first.try_into().expect("four bytes"));
                assert!(now > before, "{now} after {before}");
                before = now;
            }
        };
        std::thread::scope(|threads| {
            threads.spawn(count);
            threads.spawn(count);
        });
        let mut bytes = [0; 4];
        let mut stream = device.stream().expect("it costs nothing");
        device.read(&mut stream, &memory, 0, &mut bytes).expect("it is as long");
        assert_eq!(i32::from_le_bytes(bytes), 2 * times);
        // Another device has turns of its own, so it does not get the memory.
        let args = [Arg::Buffer(&*memory, 0)];
        let refused = other.launch(&mut stream, &program, &args).expect_err("another device");
        assert!(refused.to_string().contains("another device's"), "{refused}");
        assert!(other.write(&mut stream, &memory, 0, &[1]).is_err());
        assert!(other.read(&mut stream, &memory, 0, &mut bytes).is_err());
        assert!(other.host_view(&memory, 4).is_none());
    }
}

#[repr(align(64))]
struct Aligned([u8; 64]);

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
