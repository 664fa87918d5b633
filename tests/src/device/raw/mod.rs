//! Kernels in a device's own language: what they compute, and what is refused.
//!
//! [`sources`] holds the code. Each test runs for every language of the device; a device that has none refuses
//! all.
#![allow(clippy::unwrap_used, reason = "a failing call is a failing test")]

pub mod sources;

use super::{bytes, scalars, verified};
use sources::{BROKEN_LINE, LANGUAGES, THREADS, axpy, broken, kernel};
use std::sync::Arc;
use zyx_core::hal::{
    Arg, Command, Device, Language, RawArg, RawKernel, RawParam, RawSource, Recording,
};
use zyx_core::ir::{Access, Builder, LoopKind};
use zyx_core::runtime::Launch;
use zyx_core::{BinaryOp, DType, Scalar};

/// Small integers, whose products and sums are exact however they are rounded.
fn numbers(n: usize, first: i32) -> Vec<f32> {
    (0..n).map(|i| ((i as i32 * 7 + first) % 23 - 11) as f32).collect()
}

fn raw(values: &[f32]) -> Vec<u8> {
    bytes(&values.iter().map(|&x| Scalar::from(x)).collect::<Vec<_>>())
}

fn floats(found: &[u8]) -> Vec<f32> {
    scalars(DType::F32, found).iter().map(|x| x.get::<f32>()).collect()
}

fn groups(n: usize) -> [u32; 3] {
    [(n as u32).div_ceil(THREADS), 1, 1]
}

/// The arguments of `axpy` over `n` elements.
fn axpy_args<'a, B>(
    axpy: &RawKernel,
    (x, y): ((&'a B, usize), (&'a B, usize)),
    a: f32,
    n: usize,
) -> Vec<Arg<'a, B>> {
    let buffer = |(buffer, offset)| RawArg::Buffer { buffer, offset, dtype: DType::F32, len: n };
    let scalars = [Scalar::from(a), Scalar::from(n as u32)].map(RawArg::Scalar);
    axpy.arguments(groups(n), &[buffer(x), buffer(y), scalars[0], scalars[1]]).unwrap()
}

/// `axpy` of lengths around groups, at offsets, and of nothing.
///
/// # Panics
/// When a result is wrong.
pub fn raw_code_computes<D: Device>(device: &D) {
    for &language in device.raw_languages() {
        let axpy = kernel(axpy(language));
        let program = device.compile_raw(&axpy).unwrap();
        let mut stream = device.stream().unwrap();
        let offset = device.caps().offset_align;
        for n in [0, 1, 3, 63, 64, 65, 1000, 100_000] {
            let (x, y) = (numbers(n, 0), numbers(n, 5));
            let buffers = [0, 1].map(|_| device.alloc(4 * n + offset).unwrap());
            device.write(&mut stream, &buffers[0], 0, &raw(&x)).unwrap();
            device.write(&mut stream, &buffers[1], offset, &raw(&y)).unwrap();
            let args = axpy_args(&axpy, ((&buffers[0], 0), (&buffers[1], offset)), 3.0, n);
            device.launch(&mut stream, &program, &args).unwrap();
            let mut found = vec![0; 4 * n];
            device.read(&mut stream, &buffers[1], offset, &mut found).unwrap();
            let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| 3.0 * x + y).collect();
            assert_eq!(floats(&found), expected, "{language}, {n} elements");
        }
    }
}

/// Lists of generated and raw launches that come back with other scalars, grids and buffers.
///
/// # Panics
/// When a result is wrong.
pub fn raw_launches_join_replayed_lists<D: Device>(device: &D) {
    const N: usize = 1000;
    let mut b = Builder::new("increment");
    let p = b.param(DType::F32, N as u64, Access::ReadWrite);
    let (one, n) = (b.constant(Scalar::from(1f32)), b.index(N as i64));
    let i = b.open_loop(LoopKind::Group, 0, n);
    let old = b.load(p, i);
    let new = b.binary(BinaryOp::Add, old, one);
    b.store(p, i, new);
    b.close();
    let increment = device.compile(&verified(&b.finish(), device.caps())).unwrap();
    for &language in device.raw_languages() {
        let axpy = kernel(axpy(language));
        let program = device.compile_raw(&axpy).unwrap();
        let mut stream = device.stream().unwrap();
        let buffers = [0; 3].map(|_| device.alloc(4 * N).unwrap());
        let mut expected = [1, 2, 3].map(|first| numbers(N, first));
        for (buffer, values) in buffers.iter().zip(&expected) {
            device.write(&mut stream, buffer, 0, &raw(values)).unwrap();
        }
        let mut recording = Recording::default();
        for round in 0..12usize {
            // Other scalars and grids now and then, other buffers half way.
            let (a, n) = ([1.0, -1.0, 0.0][round % 3], [N, 70, 0][round / 2 % 3]);
            let (x, y) = if round < 6 { (0, 1) } else { (2, 0) };
            let args = axpy_args(&axpy, ((&buffers[x], 0), (&buffers[y], 0)), a, n);
            let increments = [Arg::Buffer(&buffers[y], 0)];
            let first = Command { program: &increment, args: &increments, after: &[] };
            let second = Command { program: &program, args: &args, after: &[0] };
            let list = [
                first,
                second,
                Command { after: &[1], ..first },
                Command { after: &[2], ..second },
                Command { after: &[3], ..first },
            ];
            device.replay(&mut stream, &mut recording, &list).unwrap();
            let from = expected[x].clone();
            let to = &mut expected[y];
            let times = |to: &mut Vec<f32>| {
                to.iter_mut().zip(&from).take(n).for_each(|(y, x)| *y += a * x);
            };
            to.iter_mut().for_each(|y| *y += 1.0);
            times(to);
            to.iter_mut().for_each(|y| *y += 1.0);
            times(to);
            to.iter_mut().for_each(|y| *y += 1.0);
        }
        for (buffer, values) in buffers.iter().zip(&expected) {
            let mut found = vec![0; 4 * N];
            device.read(&mut stream, buffer, 0, &mut found).unwrap();
            assert_eq!(floats(&found), *values, "{language}");
        }
    }
}

/// Launches whose arguments do not fit the declaration, each with words of its error.
///
/// # Panics
/// When one runs, or the device does not go on.
pub fn raw_launches_are_refused<D: Device>(device: &D) {
    const N: usize = 256;
    for &language in device.raw_languages() {
        let source = axpy(language);
        let axpy = kernel(source.clone());
        let program = device.compile_raw(&axpy).unwrap();
        let mut stream = device.stream().unwrap();
        let [x, y] = [0; 2].map(|_| Arc::new(device.alloc(4 * N).unwrap()));
        device.write(&mut stream, &x, 0, &raw(&numbers(N, 0))).unwrap();
        device.write(&mut stream, &y, 0, &raw(&numbers(N, 1))).unwrap();
        let good = axpy_args(&axpy, ((&*x, 0), (&*y, 0)), 1.0, N);
        let mut refused = |at: usize, arg: Arg<'_, D::Buffer>, about: &str| {
            let mut args = good.clone();
            args[at] = arg;
            let error = device.launch(&mut stream, &program, &args).unwrap_err().to_string();
            assert!(error.contains(about), "{language}: {error}");
            let command = Command { program: &program, args: &args, after: &[] };
            let mut recording = Recording::default();
            device.replay(&mut stream, &mut recording, &[command]).unwrap_err();
        };
        // By slot: x, y, a, n, groups along three axes, lengths of x and y.
        refused(7, Arg::Scalar(4 * N as u64), "the kernel needs 4096");
        refused(8, Arg::Scalar(u64::MAX), "argument 1 has");
        refused(0, Arg::Buffer(&x, device.caps().offset_align), "the kernel needs 1024");
        refused(0, Arg::Buffer(&x, usize::MAX), "argument 0 has");
        refused(0, Arg::Scalar(0), "argument 0 is a scalar");
        refused(2, Arg::Buffer(&x, 0), "argument 2 is a buffer");
        refused(8, Arg::Buffer(&x, 0), "argument 1 has");
        refused(3, Arg::Scalar(1 << 40), "no u32");
        let limit = device.caps().max_groups[1];
        refused(5, Arg::Scalar(limit + 1), if limit < u32::MAX.into() { "axis 1" } else { "u32" });
        for n in [0, 4, 6, good.len() - 1] {
            let error = device.launch(&mut stream, &program, &good[..n]).unwrap_err().to_string();
            assert!(error.contains("2 buffers and 7 scalars"), "{language}: {error}");
        }
        // The lengths fit from there on, but not the alignment.
        let mut args = axpy_args(&axpy, ((&*x, 4), (&*y, 0)), 1.0, N - 1);
        let error = device.launch(&mut stream, &program, &args).unwrap_err().to_string();
        assert!(error.contains("multiple of"), "{language}: {error}");
        args[0] = Arg::Buffer(&x, 2);
        let error = device.launch(&mut stream, &program, &args).unwrap_err().to_string();
        assert!(error.contains("inside an element"), "{language}: {error}");
        // Memory that the host looks at is read, and not written.
        let end = device.record(&mut stream).unwrap();
        device.synchronize(&end).unwrap();
        if let Some(view) = device.host_view(&y, 4 * N) {
            let error = device.launch(&mut stream, &program, &good).unwrap_err().to_string();
            assert!(error.contains("written"), "{language}: {error}");
            drop(view);
        }
        device.launch(&mut stream, &program, &good).unwrap();
        let mut found = vec![0; 4 * N];
        device.read(&mut stream, &y, 0, &mut found).unwrap();
        let sums: Vec<f32> = numbers(N, 0).iter().zip(numbers(N, 1)).map(|(x, y)| x + y).collect();
        assert_eq!(floats(&found), sums, "{language}: something ran that was refused");
    }
}

/// A change of a declaration that is refused, with words of the error.
pub type Change = (fn(&mut RawSource), &'static str);

/// Changes of the declaration of `axpy` that each compiler refuses.
pub const CHANGES: &[Change] = &[
    (|source| source.name = "other".to_owned(), "other"),
    (|source| source.name = "axp".to_owned(), "axp"),
    (|source| source.name = "a\0b".to_owned(), "zero bytes"),
    (|source| source.params.push(source.params[0]), ""),
    (|source| source.params.truncate(1), ""),
    (|source| source.params.clear(), ""),
    (|source| source.vars.push(DType::I32), ""),
    (|source| source.vars.truncate(1), ""),
    (|source| source.vars.clear(), ""),
    (|source| source.threads = [1 << 20, 1, 1], "threads"),
    (|source| source.threads = [THREADS, 0, 1], "threads"),
    (|source| source.params[0].align = 48, "alignment 48"),
    (|source| source.shared_bytes = 1 << 30, "shared"),
];

/// Changes that are refused where the code states the same, or the sizes of parameters are known.
fn stated(language: Language) -> &'static [Change] {
    match language {
        Language::Wgsl | Language::SpirV => {
            &[(|source| source.threads = [THREADS / 2, 2, 1], "groups of [32, 2, 1]")]
        }
        _ => &[
            (|source| source.vars[0] = DType::F64, ""),
            (|source| source.vars[1] = DType::U16, ""),
        ],
    }
}

/// Code that does not compile, code that is not as declared, and languages of other devices.
///
/// # Panics
/// When one is accepted, or the error does not help.
pub fn raw_code_is_refused<D: Device>(device: &D) {
    let refused = |source: RawSource, about: &str| {
        let language = source.language;
        let told = match device.compile_raw(&kernel(source)) {
            Ok(_) => panic!("{language}: accepted, expected an error about {about}"),
            Err(error) => error.to_string(),
        };
        assert!(told.contains(about), "{language}: {told}");
        told
    };
    let own = device.raw_languages();
    for language in LANGUAGES {
        if !own.contains(&language) {
            let told = refused(axpy(language), &format!("has no {language}"));
            let names = |language: &Language| told.contains(&language.to_string());
            assert!(own.iter().all(names) && (!own.is_empty() || told.contains("none")), "{told}");
            continue;
        }
        let told = refused(broken(language), "axpy");
        match language {
            Language::SpirV => assert!(told.contains("malformed module"), "{told}"),
            _ => assert!(told.contains(&BROKEN_LINE.to_string()), "{told}"),
        }
        for (change, about) in CHANGES.iter().chain(stated(language)) {
            let mut source = axpy(language);
            change(&mut source);
            refused(source, about);
        }
        for (code, about) in sources::variants(language) {
            refused(RawSource { code: code.into(), ..axpy(language) }, about);
        }
        let code = |code: &[u8]| RawSource { code: code.into(), ..axpy(language) };
        refused(code(b""), "");
        refused(code(b"\xff\xfe\xff\xfe"), "");
        refused(code(b"text\0with zeros"), "");
        // The device goes on.
        device.compile_raw(&kernel(axpy(language))).unwrap();
    }
}

/// Scalars of every width arrive as documented.
///
/// # Panics
/// When one does not.
pub fn scalars_reach_raw_code<D: Device>(device: &D) {
    for &language in device.raw_languages() {
        let Some(source) = sources::scalars(language) else { continue };
        let kernel = kernel(source);
        let program = device.compile_raw(&kernel).unwrap();
        let mut stream = device.stream().unwrap();
        let out = device.alloc(24).unwrap();
        let half = Scalar::from_bits(DType::F16, 0xfc01);
        let values = [
            Scalar::from(-5i8),
            Scalar::from(-6i64 << 30),
            half,
            Scalar::from(true),
            Scalar::from(-7),
        ];
        let buffer = RawArg::Buffer { buffer: &out, offset: 0, dtype: DType::I32, len: 6 };
        let args: Vec<_> = [buffer].into_iter().chain(values.map(RawArg::Scalar)).collect();
        let args = kernel.arguments([1; 3], &args).unwrap();
        device.launch(&mut stream, &program, &args).unwrap();
        let mut found = vec![0; 24];
        device.read(&mut stream, &out, 0, &mut found).unwrap();
        let found: Vec<i32> = scalars(DType::I32, &found).iter().map(|x| x.get::<i32>()).collect();
        let long = -6i64 << 30;
        assert_eq!(found, [-5, long as i32, (long >> 32) as i32, 0xfc01, 1, -7], "{language}");
    }
}

/// A launch asks for shared storage.
///
/// # Panics
/// When a result is wrong.
pub fn raw_code_has_shared_storage<D: Device>(device: &D) {
    for &language in device.raw_languages() {
        let Some(source) = sources::reverse(language) else { continue };
        let kernel = kernel(source);
        let program = device.compile_raw(&kernel).unwrap();
        let mut stream = device.stream().unwrap();
        let values = numbers(3 * THREADS as usize, 2);
        let x = device.alloc(4 * values.len()).unwrap();
        device.write(&mut stream, &x, 0, &raw(&values)).unwrap();
        let len = values.len();
        let arg = RawArg::Buffer { buffer: &x, offset: 0, dtype: DType::F32, len };
        let args = kernel.arguments(groups(len), &[arg]).unwrap();
        device.launch(&mut stream, &program, &args).unwrap();
        let mut found = vec![0; 4 * len];
        device.read(&mut stream, &x, 0, &mut found).unwrap();
        let expected: Vec<f32> =
            values.chunks(THREADS as usize).flat_map(|part| part.iter().rev().copied()).collect();
        assert_eq!(floats(&found), expected, "{language}");
    }
}

/// Programs of the runtime: compiled once, launched in order with other work, refused where the arguments do not
/// fit.
///
/// # Panics
/// When it is not so.
pub fn programs_are_kept_and_launched(device: &zyx_core::Device) {
    const N: usize = 200;
    for &language in device.raw_languages() {
        let axpy = kernel(axpy(language));
        let program = device.raw_program(&axpy).unwrap();
        let before = device.stats();
        let again = device.raw_program(&kernel((*axpy).clone())).unwrap();
        let since = device.stats().since(&before);
        assert_eq!((since.compiles, since.loads), (0, 0), "{language}");
        let [x, y] = [0; 2].map(|_| device.alloc(4 * N).unwrap());
        device.write(&x, &raw(&numbers(N, 0))).unwrap();
        device.write(&y, &raw(&numbers(N, 1))).unwrap();
        let (px, py) = (x.pin().unwrap(), y.pin().unwrap());
        let args = axpy_args(&axpy, ((&px, 0), (&py, 0)), 2.0, N);
        let launch = |program, args, after| Launch { program, args, after };
        device.submit(&[launch(&program, &args, &[]), launch(&again, &args, &[0])]).unwrap();
        let mut found = vec![0; 4 * N];
        device.read(&y, &mut found).unwrap();
        let expected: Vec<f32> =
            numbers(N, 0).iter().zip(numbers(N, 1)).map(|(x, y)| 4.0 * x + y).collect();
        assert_eq!(floats(&found), expected, "{language}");
        let mut short = args.clone();
        short[8] = Arg::Scalar(N as u64 + 1);
        let list = [launch(&program, &args, &[]), launch(&program, &short, &[])];
        let error = device.submit(&list).unwrap_err().to_string();
        assert!(error.contains("axpy") && error.contains("the kernel needs 804"), "{error}");
        let mut after = vec![0; 4 * N];
        device.read(&y, &mut after).unwrap();
        assert!(found == after, "{language}: nothing of a refused list runs");
        // Unused programs go with the caches.
        drop((program, again));
        device.trim();
        let before = device.stats();
        let program = device.raw_program(&axpy).unwrap();
        let since = device.stats().since(&before);
        assert_eq!(since.compiles + since.loads, 1, "{language}");
        assert_eq!(program.name().as_ref(), "axpy");
    }
}

/// Typed arguments that differ from a declaration.
///
/// # Panics
/// When they are accepted.
pub fn typed_arguments_are_compared_with_the_declaration() {
    let axpy = kernel(RawSource {
        params: vec![
            RawParam::new(DType::F32, Access::Read),
            RawParam::new(DType::F32, Access::ReadWrite),
        ],
        ..axpy(Language::Wgsl)
    });
    let buffer = |dtype| RawArg::Buffer { buffer: &"memory", offset: 0, dtype, len: 5 };
    let (x, a, n) = (buffer(DType::F32), Scalar::from(1f32), Scalar::from(5u32));
    let [a, n] = [a, n].map(RawArg::Scalar);
    let refused = |args: &[RawArg<'_, &str>], about: &str| {
        let error = axpy.arguments([1; 3], args).unwrap_err().to_string();
        assert!(error.contains(about), "{error}");
    };
    assert_eq!(axpy.arguments([1; 3], &[x, x, a, n]).unwrap().len(), 9);
    // Of the same size.
    assert!(axpy.arguments([1; 3], &[buffer(DType::I32), x, a, n]).is_ok());
    refused(&[x, buffer(DType::F64), a, n], "buffer 1 holds f64, declared as f32");
    refused(&[x, x, n, n], "scalar 0 is u32, declared as f32");
    refused(&[x, x, a, RawArg::Scalar(Scalar::from(5i32))], "scalar 1 is i32");
    refused(&[x, a, a, n], "argument 1 is a scalar");
    refused(&[x, x, x, n], "argument 2 is a buffer");
    refused(&[x, x, a], "3 arguments, not 2 buffers and 2 scalars");
}

/// The tests of programs of the runtime on a backend, by its spec.
#[macro_export]
macro_rules! raw_programs {
    ($spec:expr, $backend:expr) => {
        #[test]
        fn raw_programs_are_kept_and_launched() {
            $crate::device::raw::typed_arguments_are_compared_with_the_declaration();
            // It counts what is compiled.
            if let Some(device) = $crate::harness::own_device($spec, "raw_programs", || $backend) {
                $crate::device::raw::programs_are_kept_and_launched(&device);
            }
        }
    };
}
