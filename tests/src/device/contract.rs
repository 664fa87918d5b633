//! The device contract: memory, streams, events, arguments, launches, errors.
#![allow(clippy::unwrap_used, reason = "a failing call is a failing test")]

use super::{bytes, result, run, scalars, verified};
use crate::Rng;
use std::time::{Duration, Instant};
use zyx_core::hal::{
    Arg, Backend, Call, Command, ContractDim, ContractSpec, ConvolutionAxis, ConvolutionSpec,
    Convolved, Device, DeviceError, DeviceKind, Mode, Recording, handle_signals, request_stop,
};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind};
use zyx_core::prepare::prepare;
use zyx_core::testing::samples;
use zyx_core::{BinaryOp, DType, Scalar};

fn numbers(n: usize) -> Vec<Scalar> {
    (0..n).map(|i| Scalar::from(i as f32 - 3.5)).collect()
}

/// `out[i] = in[i] * 2` over loops of these kinds, outermost first, with these lengths.
fn double(loops: &[(LoopKind, u8, i64)]) -> Kernel {
    let total = loops.iter().map(|l| l.2).product::<i64>() as u64;
    let mut b = Builder::new("double");
    let out = b.param(DType::F32, total, Access::Write);
    let input = b.param(DType::F32, total, Access::Read);
    let two = b.constant(Scalar::from(2f32));
    let mut index = b.index(0);
    for &(kind, axis, len) in loops {
        let len = b.index(len);
        let i = b.open_loop(kind, axis, len);
        let scaled = b.binary(BinaryOp::Mul, index, len);
        index = b.binary(BinaryOp::Add, scaled, i);
    }
    let x = b.load(input, index);
    let y = b.binary(BinaryOp::Mul, x, two);
    b.store(out, index, y);
    loops.iter().for_each(|_| b.close());
    b.finish()
}

/// Nests of loops: kind, axis and length of each, outermost first.
const NESTS: &[&[(LoopKind, u8, i64)]] = &[
    &[(LoopKind::Parallel, 0, 1000)],
    &[(LoopKind::Serial, 0, 10), (LoopKind::Parallel, 0, 10)],
    &[(LoopKind::Group, 0, 10), (LoopKind::Local, 0, 64)],
    &[(LoopKind::Group, 2, 3), (LoopKind::Group, 1, 5), (LoopKind::Group, 0, 7)],
    &[
        (LoopKind::Group, 1, 3),
        (LoopKind::Group, 0, 2),
        (LoopKind::Local, 1, 4),
        (LoopKind::Local, 0, 8),
    ],
    &[(LoopKind::Group, 0, 3), (LoopKind::Local, 0, 10_000)],
    &[(LoopKind::Group, 0, 100_000)],
    &[(LoopKind::Group, 1, 70_000)],
];

/// Loops of every kind, longer than an axis of a grid and nested, run each iteration once.
///
/// # Panics
/// When a result is wrong.
pub fn loops_cover_every_iteration<D: Device>(device: &D) {
    for loops in NESTS {
        let kernel = double(loops);
        let input = numbers(kernel.params()[0].len as usize);
        let expected: Vec<Scalar> =
            input.iter().map(|x| Scalar::from(x.get::<f32>() * 2.0)).collect();
        assert!(result(device, &kernel, &[input]) == expected, "{loops:?}");
    }
}

/// A loop ends when its condition holds: each thread of many goes from its own number down to 1 by Collatz steps.
///
/// # Panics
/// When a result is wrong.
pub fn a_loop_ends_when_its_condition_holds<D: Device>(device: &D) {
    let (n, most) = (10_000, 1 << 12);
    let kernel = prepare(&samples::collatz(n, most), device.caps()).unwrap();
    let steps = |first: i64| {
        let next = |x: &i64| (*x != 1).then_some(if x % 2 == 0 { x / 2 } else { 3 * x + 1 });
        Scalar::from(std::iter::successors(Some(first), next).count() as i32 - 1)
    };
    let expected: Vec<Scalar> = (1..=n).map(steps).collect();
    assert!(result(device, &kernel, &[]) == expected);
}

/// `p[i] = p[i] + x` for all `i` of `len` elements.
fn add(len: i64) -> Kernel {
    let mut b = Builder::new("add");
    let p = b.param(DType::F32, len as u64, Access::ReadWrite);
    let x = b.var(DType::F32, 0, 0);
    let n = b.index(len);
    let i = b.open_loop(LoopKind::Group, 0, n);
    let old = b.load(p, i);
    let new = b.binary(BinaryOp::Add, old, x);
    b.store(p, i, new);
    b.close();
    b.finish()
}

/// A stream keeps its order.
///
/// # Panics
/// When it is not so.
pub fn a_stream_keeps_its_order<D: Device>(device: &D) {
    let program = device.compile(&verified(&add(16), device.caps())).unwrap();
    let (a, b) = (device.alloc(64).unwrap(), device.alloc(64).unwrap());
    let mut stream = device.stream().unwrap();
    let start = bytes(&numbers(16));
    device.write(&mut stream, &a, 0, &start).unwrap();
    for _ in 0..100 {
        let one = Arg::Scalar(Scalar::from(1f32).bits());
        device.launch(&mut stream, &program, &[Arg::Buffer(&a, 0), one]).unwrap();
        device.copy(&mut stream, (&a, 0), (&b, 0), 64).unwrap();
        device.launch(&mut stream, &program, &[Arg::Buffer(&b, 0), one]).unwrap();
        device.copy(&mut stream, (&b, 0), (&a, 0), 64).unwrap();
    }
    let mut out = vec![0; 64];
    device.read(&mut stream, &b, 0, &mut out).unwrap();
    let expected: Vec<Scalar> =
        numbers(16).iter().map(|x| Scalar::from(x.get::<f32>() + 200.0)).collect();
    assert_eq!(scalars(DType::F32, &out), expected);
}

/// `out[i] = a[i] * b[i] + x` for 64 elements.
fn combine() -> Kernel {
    let mut b = Builder::new("combine");
    let out = b.param(DType::F32, 64, Access::Write);
    let (p, q) = (b.param(DType::F32, 64, Access::Read), b.param(DType::F32, 64, Access::Read));
    let x = b.var(DType::F32, 0, 0);
    let n = b.index(64);
    let i = b.open_loop(LoopKind::Group, 0, n);
    let (y, z) = (b.load(p, i), b.load(q, i));
    let product = b.binary(BinaryOp::Mul, y, z);
    let sum = b.binary(BinaryOp::Add, product, x);
    b.store(out, i, sum);
    b.close();
    b.finish()
}

/// A diamond of launches over other buffers in turn and always other scalars, with a matrix
/// product in one arm, and that arm alone: more sets of buffers than are kept, so every way of
/// replaying occurs.
///
/// # Panics
/// When it is not so.
pub fn lists_replay_with_other_arguments<D: Device>(device: &D) {
    let dim = |len, a, b, c| ContractDim { len, a, b, c };
    let spec = ContractSpec {
        a: DType::F32,
        b: DType::F32,
        c: DType::F32,
        acc: DType::F32,
        bias: false,
        offset: [0, 0],
        batch: vec![],
        m: vec![dim(8, 8, 0, 8)],
        n: vec![dim(8, 0, 1, 1)],
        k: vec![dim(8, 1, 8, 0)],
    };
    let call = Call::contract(spec);
    let (combine, product) =
        (device.compile(&verified(&combine(), device.caps())).unwrap(), device.library(&call));
    let mut stream = device.stream().unwrap();
    let offset = device.caps().offset_align.max(64);
    let sets: Vec<Vec<_>> =
        (0..6).map(|_| (0..4).map(|_| device.alloc(offset + 256).unwrap()).collect()).collect();
    let (mut recording, mut alone) = (Recording::default(), Recording::default());
    for round in 0..40usize {
        let set = &sets[if round < 12 { round % 2 } else { round % 6 }];
        let start: Vec<f32> = (0..64).map(|i| ((i + round) % 7) as f32 - 3.0).collect();
        let bytes: Vec<u8> = start.iter().flat_map(|x| x.to_le_bytes()).collect();
        device.write(&mut stream, &set[0], offset, &bytes).unwrap();
        let (x, y) = (round as f32, round as f32 / 2.0);
        let scalar = |x: f32| Arg::Scalar(Scalar::from(x).bits());
        let at = |i: usize| Arg::Buffer(&set[i], offset);
        let first = [at(1), at(0), at(0), scalar(x)];
        let second = [at(0), at(0), at(2)];
        let other = [at(2), at(0), at(0), scalar(y)];
        let last = [at(3), at(1), at(2), scalar(x + y)];
        let (arm, args) = match &product {
            Some(product) => (product, &second[..]),
            None => (&combine, &other[..]),
        };
        let commands = [
            Command { program: &combine, args: &first, after: &[] },
            Command { program: arm, args, after: &[] },
            Command { program: &combine, args: &last, after: &[0, 1] },
        ];
        device.replay(&mut stream, &mut recording, &commands).unwrap();
        let mut out = vec![0; 256];
        device.read(&mut stream, &set[3], offset, &mut out).unwrap();
        let squares: Vec<f32> = match product {
            Some(_) => (0..64)
                .map(|i| (0..8).map(|k| start[i / 8 * 8 + k] * start[k * 8 + i % 8]).sum())
                .collect(),
            None => start.iter().map(|v| v * v + y).collect(),
        };
        let expected: Vec<Scalar> = start
            .iter()
            .zip(&squares)
            .map(|(v, s)| Scalar::from((v * v + x) * s + x + y))
            .collect();
        assert_eq!(scalars(DType::F32, &out), expected, "round {round}");
        device.write(&mut stream, &set[2], offset, &[0; 256]).unwrap();
        let only = [Command { after: &[], ..commands[1] }];
        device.replay(&mut stream, &mut alone, &only).unwrap();
        device.read(&mut stream, &set[2], offset, &mut out).unwrap();
        let expected: Vec<Scalar> = squares.into_iter().map(Scalar::from).collect();
        assert_eq!(scalars(DType::F32, &out), expected, "alone, round {round}");
    }
}

/// A small convolution whose tensors have their dimensions in any order, with gaps.
fn any_convolution(rng: &mut Rng) -> ConvolutionSpec {
    let n_axes = 1 + rng.below(2);
    let axes = (0..n_axes).map(|_| {
        let (kernel, result) = ([1, 1, 3][rng.below(3)], 1 + rng.below(9));
        let before = rng.below(kernel.min(2));
        let image = result + kernel - 1 - before.min(result + kernel - 2);
        ConvolutionAxis { image, kernel, result, stride: 1, dilation: 1, before }
    });
    let axes: Vec<ConvolutionAxis> = axes.collect();
    let mut spec = ConvolutionSpec {
        computes: [Convolved::Result, Convolved::Image, Convolved::Kernel][rng.below(3)],
        operands: DType::F32,
        computed: DType::F32,
        images: 1 + rng.below(4),
        groups: 1,
        channels: 1 + rng.below(20),
        outputs: 1 + rng.below(20),
        axes,
        strides: Default::default(),
        offsets: [0; 3],
    };
    for (role, lengths) in spec.lengths().into_iter().enumerate() {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        match rng.below(3) {
            0 => {}
            1 => order.sort_by_key(|&i| if role == 1 { i == 2 } else { i == 1 || i == 2 }),
            _ => (1..order.len()).rev().for_each(|i| order.swap(i, rng.below(i + 1))),
        }
        let (mut all, mut next) = (vec![0; lengths.len()], 1);
        for &i in order.iter().rev().filter(|&&i| lengths[i] != 1) {
            all[i] = next;
            next = next * lengths[i] + rng.below(2) * rng.below(4);
        }
        spec.strides[role] = all;
    }
    spec
}

/// What a library computes of convolutions it offers is what the call's own kernel computes, whatever
/// strides tensors have.
///
/// # Panics
/// When it is not so.
pub fn convolutions_of_any_strides<D: Device>(device: &D) {
    let (mut rng, mut offered, mut wrong) = (Rng::new(77), 0, Vec::new());
    for _ in 0..150 {
        let spec = any_convolution(&mut rng);
        let ([first, second], computed) = spec.roles();
        let call = Call::Convolve(spec.clone());
        let (Some(program), Some(kernel)) = (device.library(&call), call.kernel()) else {
            continue;
        };
        offered += 1;
        let mut whole = |role: usize| -> Vec<Scalar> {
            (0..spec.span(role).unwrap()).map(|_| Scalar::from(rng.below(7) as f32 - 3.0)).collect()
        };
        let buffers = [
            bytes(&whole(first)),
            bytes(&whole(second)),
            vec![0; 4 * spec.span(computed).unwrap()],
        ];
        let want = run(device, &kernel, &buffers, &[]).pop().unwrap();
        let mut stream = device.stream().unwrap();
        let on_device = buffers.each_ref().map(|bytes| device.alloc(bytes.len()).unwrap());
        for (buffer, bytes) in on_device.iter().zip(&buffers) {
            device.write(&mut stream, buffer, 0, bytes).unwrap();
        }
        let args = on_device.each_ref().map(|buffer| Arg::Buffer(buffer, 0));
        device.launch(&mut stream, &program, &args).unwrap();
        let mut got = vec![0; want.len()];
        device.read(&mut stream, &on_device[2], 0, &mut got).unwrap();
        // Sums of small integers, which a transformation of tiles gives but nearly.
        let pairs = scalars(DType::F32, &got).into_iter().zip(scalars(DType::F32, &want));
        if pairs.map(|(a, b)| (a.to_f64() - b.to_f64()).abs()).fold(0.0, f64::max) > 0.01 {
            wrong.push(spec);
        }
    }
    assert!(wrong.is_empty(), "{} of {offered} are wrong: {wrong:#?}", wrong.len());
}

/// Streams wait for events.
///
/// # Panics
/// When it is not so.
pub fn streams_wait_for_events<D: Device>(device: &D) {
    let program = device.compile(&verified(&add(1 << 16), device.caps())).unwrap();
    let buffer = device.alloc(4 << 16).unwrap();
    let (mut first, mut second) = (device.stream().unwrap(), device.stream().unwrap());
    device.write(&mut first, &buffer, 0, &vec![0; 4 << 16]).unwrap();
    let start = device.record(&mut first).unwrap();
    for round in 0..20 {
        let (from, to) =
            if round % 2 == 0 { (&mut first, &mut second) } else { (&mut second, &mut first) };
        let one = Arg::Scalar(Scalar::from(1f32).bits());
        device.launch(from, &program, &[Arg::Buffer(&buffer, 0), one]).unwrap();
        let event = device.record(from).unwrap();
        device.wait(to, &event).unwrap();
    }
    let end = device.record(&mut first).unwrap();
    device.synchronize(&end).unwrap();
    assert!(device.elapsed(&start, &end).is_none_or(|time| time.as_secs() < 60));
    let mut out = vec![0; 8];
    device.read(&mut first, &buffer, (4 << 16) - 8, &mut out).unwrap();
    assert_eq!(scalars(DType::F32, &out), [Scalar::from(20f32); 2]);
}

/// Writes larger than the staging arrive.
///
/// # Panics
/// When it is not so.
pub fn writes_larger_than_the_staging_arrive<D: Device>(device: &D) {
    let bytes: Vec<u8> = (0..40usize << 20).map(|i| (i >> 8) as u8 ^ i as u8).collect();
    let (a, b) = (device.alloc(bytes.len()).unwrap(), device.alloc(bytes.len()).unwrap());
    let mut stream = device.stream().unwrap();
    for buffer in [&a, &b, &a] {
        device.write(&mut stream, buffer, 0, &bytes).unwrap();
    }
    device.copy(&mut stream, (&b, 1 << 20), (&a, 3 << 20), 1 << 20).unwrap();
    let mut out = vec![0; bytes.len()];
    device.read(&mut stream, &a, 0, &mut out).unwrap();
    assert!(out[..3 << 20] == bytes[..3 << 20] && out[4 << 20..] == bytes[4 << 20..]);
    assert!(out[3 << 20..4 << 20] == bytes[1 << 20..2 << 20]);
}

/// Nothing is a size.
///
/// # Panics
/// When it is not so.
pub fn nothing_is_a_size<D: Device>(device: &D) {
    let buffer = device.alloc(0).unwrap();
    let mut stream = device.stream().unwrap();
    device.write(&mut stream, &buffer, 0, &[]).unwrap();
    device.copy(&mut stream, (&buffer, 0), (&buffer, 0), 0).unwrap();
    device.read(&mut stream, &buffer, 0, &mut []).unwrap();
    let nothing = Builder::new("nothing").finish();
    let program = device.compile(&verified(&nothing, device.caps())).unwrap();
    device.launch(&mut stream, &program, &[]).unwrap();
    let mut b = Builder::new("no_iterations");
    let p = b.param(DType::F32, 1, Access::Write);
    let n = b.var(DType::I64, -1, 1);
    let x = b.constant(Scalar::from(7f32));
    let i = b.open_loop(LoopKind::Group, 0, n);
    b.store(p, i, x);
    b.close();
    let kernel = b.finish();
    for (n, expected) in [(-1i64, 0f32), (0, 0.0), (1, 7.0)] {
        let out = run(device, &kernel, &[vec![0; 4]], &[n as u64]);
        assert_eq!(scalars(DType::F32, &out[0]), [Scalar::from(expected)]);
    }
}

/// Too much memory is an error and the device goes on.
///
/// # Panics
/// When it is not so.
pub fn too_much_memory_is_an_error_and_the_device_goes_on<D: Device>(device: &D) {
    for bytes in [1 << 60, usize::MAX] {
        let error = device.alloc(bytes).err().unwrap();
        let (DeviceError::OutOfMemory { requested, .. } | DeviceError::TooLong { requested, .. }) =
            error
        else {
            panic!("another error: {error}");
        };
        assert_eq!(requested, bytes);
    }
    assert!(device.alloc(1 << 20).is_ok());
}

/// A device that is not there is an error that says which.
///
/// # Panics
/// When it is not so.
pub fn a_device_that_is_not_there_is_an_error<B: Backend>(backend: &B) {
    let n = backend.devices().len();
    let error = backend.open(n).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains(&format!("{}:{n}", B::NAME)), "{error}");
}

/// A program serves many threads.
///
/// # Panics
/// When it is not so.
pub fn a_program_serves_many_threads<D: Device>(device: &D) {
    let program = device.compile(&verified(&add(64), device.caps())).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let program = &program;
            scope.spawn(move || {
                let mut stream = device.stream().unwrap();
                let buffer = device.alloc(256).unwrap();
                device.write(&mut stream, &buffer, 0, &[0; 256]).unwrap();
                for _ in 0..200 {
                    let x = Arg::Scalar(Scalar::from(thread as f32).bits());
                    device.launch(&mut stream, program, &[Arg::Buffer(&buffer, 0), x]).unwrap();
                }
                let mut out = [0; 256];
                device.read(&mut stream, &buffer, 0, &mut out).unwrap();
                let expected = [Scalar::from(200.0 * thread as f32); 64];
                assert_eq!(scalars(DType::F32, &out), expected);
            });
        }
    });
}

/// Buffers may be dropped while in use.
///
/// # Panics
/// When it is not so.
pub fn buffers_may_be_dropped_while_in_use<D: Device>(device: &D) {
    let program = device.compile(&verified(&add(1 << 20), device.caps())).unwrap();
    let mut stream = device.stream().unwrap();
    for _ in 0..20 {
        let buffer = device.alloc(4 << 20).unwrap();
        let x = Arg::Scalar(Scalar::from(1f32).bits());
        device.launch(&mut stream, &program, &[Arg::Buffer(&buffer, 0), x]).unwrap();
    }
    let end = device.record(&mut stream).unwrap();
    device.synchronize(&end).unwrap();
}

/// More arguments than travel with a launch go through memory.
///
/// # Panics
/// When it is not so.
pub fn many_arguments_arrive<D: Device>(device: &D) {
    let n = 60;
    let mut b = Builder::new("many");
    let out = b.param(DType::I32, n as u64, Access::Write);
    let narrow = [DType::I8, DType::U16, DType::I32, DType::I64, DType::F32, DType::Bool];
    let dtype = |i: usize| narrow[i % narrow.len()];
    let vars: Vec<_> = (0..n).map(|i| b.var(dtype(i), -100, 100)).collect();
    for (i, &x) in vars.iter().enumerate() {
        let (x, at) = (b.cast(DType::I32, x), b.index(i as i64));
        b.store(out, at, x);
    }
    let kernel = b.finish();
    let value = |i: usize| match dtype(i) {
        DType::U16 | DType::Bool => i as i64 % 2,
        _ => 20 - i as i64,
    };
    let bits: Vec<u64> = (0..n).map(|i| Scalar::from_i64(dtype(i), value(i)).bits()).collect();
    let expected: Vec<Scalar> = (0..n).map(|i| Scalar::from_i64(DType::I32, value(i))).collect();
    let result = run(device, &kernel, &[vec![0; 4 * n]], &bits);
    assert_eq!(scalars(DType::I32, &result[0]), expected);
}

/// Reads from and writes to one buffer, and copies, each dependent on the one before or on the
/// one before that: wrong where a barrier is missing.
///
/// # Panics
/// When it is not so.
pub fn dependent_commands_wait_for_one_another<D: Device>(device: &D) {
    let n = 1 << 14;
    let program = device.compile(&verified(&add(n), device.caps())).unwrap();
    let size = 4 * n as usize;
    let mut stream = device.stream().unwrap();
    let memory = device.alloc(3 * size).unwrap();
    device.write(&mut stream, &memory, 0, &vec![0; 3 * size]).unwrap();
    let one = Arg::Scalar(Scalar::from(1f32).bits());
    for round in 0..60 {
        let (from, to) = (round % 3 * size, (round + 1) % 3 * size);
        device.copy(&mut stream, (&memory, from), (&memory, to), size).unwrap();
        device.launch(&mut stream, &program, &[Arg::Buffer(&memory, to), one]).unwrap();
        let small = bytes(&[Scalar::from(0.5f32)]);
        device.write(&mut stream, &memory, from, &small).unwrap();
    }
    let mut out = vec![0; 3 * size];
    device.read(&mut stream, &memory, 0, &mut out).unwrap();
    let all = scalars(DType::F32, &out);
    let n = n as usize;
    // The last launch wrote part 60 % 3, the first element of the parts before was overwritten.
    assert!(all[..n].iter().skip(1).all(|x| *x == Scalar::from(60f32)), "{:?}", &all[..3]);
    assert!(all[2 * n + 1..].iter().all(|x| *x == Scalar::from(59f32)), "{:?}", &all[2 * n..][..3]);
    assert_eq!((all[n], all[2 * n]), (Scalar::from(0.5f32), Scalar::from(0.5f32)));
}

/// Events measure time.
///
/// # Panics
/// When it is not so.
pub fn events_measure_time<D: Device>(device: &D) {
    let program = device.compile(&verified(&add(1 << 20), device.caps())).unwrap();
    let buffer = device.alloc(4 << 20).unwrap();
    let mut stream = device.stream().unwrap();
    device.write(&mut stream, &buffer, 0, &vec![0; 4 << 20]).unwrap();
    let written = device.record(&mut stream).unwrap();
    device.synchronize(&written).unwrap();
    for round in 1..=2 {
        let timed = device.timed(&mut stream).unwrap();
        let start = device.record(timed).unwrap();
        let one = Arg::Scalar(Scalar::from(1f32).bits());
        for _ in 0..4 {
            device.launch(timed, &program, &[Arg::Buffer(&buffer, 0), one]).unwrap();
        }
        let end = device.record(timed).unwrap();
        device.synchronize(&end).unwrap();
        if let Some(time) = device.elapsed(&start, &end) {
            assert!(time.as_nanos() > 0 && time.as_secs() < 60, "{time:?}");
        }
        // What a timed stream did is there for the stream it belongs to.
        let mut out = vec![0; 8];
        device.read(&mut stream, &buffer, 4 << 10, &mut out).unwrap();
        assert_eq!(scalars(DType::F32, &out), [Scalar::from(4.0 * round as f32); 2]);
    }
}

/// `out[0]` after `n` times [`AT_ONCE`] steps of a generator, one after the other.
fn steps() -> Kernel {
    let mut b = Builder::new("steps");
    let out = b.param(DType::U32, 1, Access::ReadWrite);
    let n = b.var(DType::I64, 1, i64::from(i32::MAX));
    let [factor, offset] = STEP.map(|x| b.constant(Scalar::from(x)));
    let first = b.index(0);
    b.open_loop(LoopKind::Serial, 0, n);
    let mut x = b.load(out, first);
    for _ in 0..AT_ONCE {
        let scaled = b.binary(BinaryOp::Mul, x, factor);
        x = b.binary(BinaryOp::Add, scaled, offset);
    }
    b.store(out, first, x);
    b.close();
    b.finish()
}

/// Steps of one turn of the loop, which has at most 2^31 turns.
const AT_ONCE: i64 = 32;

/// Factor and offset of a generator of period 2^32, from W. H. Press and others, *Numerical Recipes*.
const STEP: [u32; 2] = [1_664_525, 1_013_904_223];

/// The result of `n` steps from 0 on. Two steps of a generator are one step of another.
fn after(mut n: i64) -> u32 {
    let [mut factor, mut offset] = STEP;
    let mut x = 0u32;
    while n > 0 {
        if n % 2 == 1 {
            x = x.wrapping_mul(factor).wrapping_add(offset);
        }
        offset = offset.wrapping_mul(factor.wrapping_add(1));
        factor = factor.wrapping_mul(factor);
        n /= 2;
    }
    x
}

/// A wait for a kernel of seconds ends soon after the user asks for it. The kernel runs to its end.
///
/// # Panics
/// When it is not so.
pub fn a_wait_ends_when_it_is_stopped<D: Device>(device: &D) {
    let kind = device.info().kind;
    let program = device.compile(&verified(&steps(), device.caps())).unwrap();
    let mut stream = device.stream().unwrap();
    let buffer = device.alloc(4).unwrap();
    device.write(&mut stream, &buffer, 0, &[0; 4]).unwrap();
    let launch = |n: i64, stream: &mut D::Stream| {
        let n = Arg::Scalar(Scalar::from(n).bits());
        device.launch(stream, &program, &[Arg::Buffer(&buffer, 0), n]).unwrap();
        device.record(stream).unwrap()
    };
    // As many steps as take three seconds, found from runs that take more and more. The first may compile.
    let mut all = 1;
    device.synchronize(&launch(1, &mut stream)).unwrap();
    let (mut n, mut taken) = (1000, Duration::ZERO);
    while taken < Duration::from_millis(50) {
        n *= 4;
        all += 2 * n;
        let mut timed = || {
            let start = Instant::now();
            device.synchronize(&launch(n, &mut stream)).unwrap();
            start.elapsed()
        };
        taken = timed().min(timed());
    }
    let long = (n as f64 * (3.0 / taken.as_secs_f64())).min(f64::from(i32::MAX)) as i64;
    all += long;
    handle_signals(|| true);
    let end = launch(long, &mut stream);
    let asked = std::thread::spawn(|| {
        std::thread::sleep(Duration::from_millis(100));
        request_stop();
        Instant::now()
    });
    let attempt = Mode::attempt();
    let waited = device.synchronize(&end);
    let heard = Instant::now();
    let asked = asked.join().unwrap();
    let read = device.read(&mut stream, &buffer, 0, &mut [0; 4]);
    drop(attempt);
    // On a CPU and in the interpreter, a launch returns after its kernel has ended.
    if !matches!(kind, DeviceKind::Cpu | DeviceKind::Interpreter) {
        assert!(matches!(waited, Err(DeviceError::Interrupted)), "{waited:?}");
        assert!(heard - asked < Duration::from_secs(1), "{:?}", heard - asked);
        assert!(matches!(read, Err(DeviceError::Interrupted)), "{read:?}");
    }
    // Outside of an attempt nothing is stopped.
    device.synchronize(&end).unwrap();
    let mut out = [0; 4];
    device.read(&mut stream, &buffer, 0, &mut out).unwrap();
    assert_eq!(u32::from_le_bytes(out), after(AT_ONCE * all));
}

/// A list that comes back, with the same arguments, others, and those of before.
///
/// # Panics
/// When it is not so.
pub fn replayed_lists_do_what_their_launches_do<D: Device>(device: &D) {
    let n = 1 << 12;
    let program = device.compile(&verified(&add(n), device.caps())).unwrap();
    let size = 4 * n as usize;
    let mut stream = device.stream().unwrap();
    let buffers = [0; 2].map(|_| device.alloc(size).unwrap());
    for buffer in &buffers {
        device.write(&mut stream, buffer, 0, &vec![0; size]).unwrap();
    }
    let mut recording = Recording::default();
    // At `i` the number of the launch before the one with number `i`.
    const ORDER: [u32; 6] = [0, 0, 1, 2, 3, 4];
    let mut sums = [0f32; 2];
    for round in 0..40usize {
        let step = if round % 5 == 4 { round as f32 } else { 1.0 };
        let which = (round / 8) % 2;
        let scalar = Arg::Scalar(Scalar::from(step).bits());
        let args = [Arg::Buffer(&buffers[which], 0), scalar];
        // Each adds to what the one before it left.
        let commands: Vec<_> = (0..6)
            .map(|i| Command {
                program: &program,
                args: &args,
                after: &ORDER[i..][..usize::from(i > 0)],
            })
            .collect();
        device.replay(&mut stream, &mut recording, &commands).unwrap();
        sums[which] += 6.0 * step;
        if round % 3 == 0 {
            // Between lists, an ordinary launch on what the list wrote.
            device.launch(&mut stream, &program, &args).unwrap();
            sums[which] += step;
        }
    }
    for (buffer, sum) in buffers.iter().zip(sums) {
        let mut out = vec![0; size];
        device.read(&mut stream, buffer, 0, &mut out).unwrap();
        assert!(scalars(DType::F32, &out).iter().all(|x| *x == Scalar::from(sum)), "{sum}");
    }
    drop(recording);
}

/// `p[i] = p[i] + x` for all `i` up to a number of groups that is an argument.
pub fn add_to_some(len: i64) -> Kernel {
    let mut b = Builder::new("add_to_some");
    let p = b.param(DType::F32, len as u64, Access::ReadWrite);
    let groups = b.var(DType::I64, 1, len);
    let x = b.var(DType::F32, 0, 0);
    let i = b.open_loop(LoopKind::Group, 0, groups);
    let old = b.load(p, i);
    let new = b.binary(BinaryOp::Add, old, x);
    b.store(p, i, new);
    b.close();
    b.finish()
}

/// A list whose grids are arguments, with those of before and others.
///
/// # Panics
/// When it is not so.
pub fn lists_replay_with_other_grids<D: Device>(device: &D) {
    const LEN: usize = 64;
    let program = device.compile(&verified(&add_to_some(LEN as i64), device.caps())).unwrap();
    let mut stream = device.stream().unwrap();
    let buffer = device.alloc(4 * LEN).unwrap();
    device.write(&mut stream, &buffer, 0, &[0; 4 * LEN]).unwrap();
    let (mut recording, mut expected) = (Recording::default(), [0f32; LEN]);
    for round in 0..40usize {
        let groups = [64, 64, 3, 64, 17][round % 5];
        let x = round as f32;
        let scalars = [groups as u64, Scalar::from(x).bits()].map(Arg::Scalar);
        let args = [Arg::Buffer(&buffer, 0), scalars[0], scalars[1]];
        const ORDER: [u32; 5] = [0, 0, 1, 2, 3];
        let commands = [0, 1, 2, 3, 4].map(|i| Command {
            program: &program,
            args: &args,
            after: &ORDER[i..][..usize::from(i > 0)],
        });
        device.replay(&mut stream, &mut recording, &commands).unwrap();
        expected[..groups].iter_mut().for_each(|sum| *sum += commands.len() as f32 * x);
    }
    let mut out = vec![0; 4 * LEN];
    device.read(&mut stream, &buffer, 0, &mut out).unwrap();
    assert_eq!(scalars(DType::F32, &out), expected.map(Scalar::from));
}
