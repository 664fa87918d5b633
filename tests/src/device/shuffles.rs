//! Exchange within subgroups against the interpreter: every kind, every dtype, groups of one subgroup and of
//! many. A device without subgroups passes.

use super::{bytes, run, scalars, verified};
use zyx_core::hal::Device;
use zyx_core::ir::interp::{Options, interpret};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, ShuffleKind, Type, Value};
use zyx_core::{BinaryOp, DType, Scalar};

const KINDS: [ShuffleKind; 3] = [ShuffleKind::Index, ShuffleKind::Xor, ShuffleKind::Down];

/// Groups of each launch.
const GROUPS: usize = 3;

/// The size of subgroups, if the device has them.
fn lanes<D: Device>(device: &D) -> Option<usize> {
    let (least, most) = device.caps().subgroup;
    if most == 0 {
        return None;
    }
    assert_eq!(least, most, "a known size, as the language needs it");
    assert!(most.is_power_of_two(), "subgroups of {most}");
    Some(most as usize)
}

/// A kernel that stores a row for each shuffle that `shuffles` emits of an element and a lane, both of
/// them loaded: buffer 0 is the result, 1 the elements, 2 the lanes.
fn kernel(
    (dtype, index): (DType, DType),
    axes: &[usize],
    rows: usize,
    shuffles: impl FnOnce(&mut Builder, Value, Value) -> Vec<Value>,
) -> Kernel {
    let threads: usize = axes.iter().product();
    let n = (GROUPS * threads) as u64;
    let mut b = Builder::new("shuffles");
    let out = b.param(dtype, n * rows as u64, Access::Write);
    let [elements, lanes] = [dtype, index].map(|dtype| b.param(dtype, n, Access::Read));
    let [groups, all] = [GROUPS, threads].map(|n| b.index(n as i64));
    let group = b.open_loop(LoopKind::Group, 0, groups);
    let mut at = b.binary(BinaryOp::Mul, group, all);
    let mut stride = 1;
    for (axis, &len) in axes.iter().enumerate() {
        let [len, step] = [len as i64, stride as i64].map(|n| b.index(n));
        stride *= axes[axis];
        let counter = b.open_loop(LoopKind::Local, axis as u8, len);
        let place = b.binary(BinaryOp::Mul, counter, step);
        at = b.binary(BinaryOp::Add, at, place);
    }
    let (x, lane) = (b.load(elements, at), b.load(lanes, at));
    let results = shuffles(&mut b, x, lane);
    assert_eq!(results.len(), rows);
    for (row, result) in results.into_iter().enumerate() {
        let start = b.index((row * GROUPS * threads) as i64);
        let place = b.binary(BinaryOp::Add, start, at);
        b.store(out, place, result);
    }
    for _ in 0..=axes.len() {
        b.close();
    }
    b.finish()
}

fn shuffle(b: &mut Builder, kind: ShuffleKind, x: Value, lane: Value) -> Value {
    let ty: Type = b.ty(x);
    b.emit(Op::Shuffle { kind, x, lane }, ty)
}

/// Elements of random bits and lanes, one in four of which does not exist.
fn inputs((dtype, index): (DType, DType), n: usize, lanes: usize) -> [Vec<u8>; 2] {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let element = |bits: u64| match dtype {
        DType::Bool => Scalar::from(bits & 1 != 0),
        _ => Scalar::from_bits(dtype, bits & (u64::MAX >> (64 - dtype.bits()))),
    };
    let elements: Vec<Scalar> = (0..n).map(|_| element(random())).collect();
    let size = lanes as i64;
    let beyond = [-1, size, -size, size + 1, i64::MIN, i64::MAX, 1 << 32, (1 << 32) + 1];
    let lane = |_| match random() {
        bits if bits % 4 == 0 => beyond[(bits / 4 % beyond.len() as u64) as usize],
        bits => (bits / 4 % lanes as u64) as i64,
    };
    let lanes: Vec<Scalar> = (0..n).map(lane).map(|n| Scalar::from_i64(index, n)).collect();
    [bytes(&elements), bytes(&lanes)]
}

/// Runs a kernel on a device and on the interpreter.
fn compare<D: Device>(device: &D, kernel: &Kernel, lanes: usize) {
    let [out, elements, index] = [0, 1, 2].map(|slot| kernel.params()[slot]);
    let n = elements.len as usize;
    let [elements, lane] = inputs((elements.dtype, index.dtype), n, lanes);
    let zeros = vec![0; out.len as usize * out.dtype.size()];
    let buffers = vec![zeros, elements, lane];
    let mut expected = buffers.clone();
    let options = Options { subgroup: lanes, ..Options::default() };
    interpret(kernel, &mut expected, &[], &options).unwrap();
    let actual = run(device, kernel, &buffers, &[]);
    let [actual, expected] = [&actual[0], &expected[0]].map(|bytes| scalars(out.dtype, bytes));
    for (at, (a, e)) in actual.iter().zip(&expected).enumerate() {
        let bits = (a.bits(), e.bits());
        assert!(a.bits() == e.bits(), "row {}, {}: {bits:x?}\n{kernel}", at / n, at % n);
    }
}

/// Numbers of threads: one subgroup, some, and as many as the device has.
fn threads<D: Device>(device: &D, lanes: usize) -> Vec<usize> {
    let most = device.caps().max_local;
    let mut all = vec![lanes, 2 * lanes, 3 * lanes, most / lanes * lanes];
    all.retain(|&n| (lanes..=most).contains(&n));
    all.dedup();
    all
}

/// Shuffles by loaded lanes and by literal ones.
///
/// # Panics
/// When a result is not the interpreter's.
pub fn shuffles_exchange_every_dtype<D: Device>(device: &D, dtype: DType) {
    let Some(lanes) = lanes(device) else { return };
    if !device.caps().storage.contains(dtype) {
        return;
    }
    let size = lanes as i64;
    let literals = [0, 1, size / 2, size - 1, size, -1, i64::MAX];
    for threads in threads(device, lanes) {
        let rows = KINDS.len() * (1 + literals.len());
        let kernel = kernel((dtype, DType::I64), &[threads], rows, |b, x, lane| {
            let mut all = Vec::new();
            for kind in KINDS {
                all.push(shuffle(b, kind, x, lane));
                for n in literals {
                    let lane = b.index(n);
                    all.push(shuffle(b, kind, x, lane));
                }
            }
            all
        });
        compare(device, &kernel, lanes);
    }
}

/// Lanes of other dtypes than indices have.
///
/// # Panics
/// When a result is not the interpreter's.
pub fn shuffles_take_lanes_of_each_width<D: Device>(device: &D) {
    let Some(lanes) = lanes(device) else { return };
    for index in [DType::I32, DType::I64] {
        let kernel = kernel((DType::F32, index), &[2 * lanes], KINDS.len(), |b, x, lane| {
            KINDS.map(|kind| shuffle(b, kind, x, lane)).to_vec()
        });
        compare(device, &kernel, lanes);
    }
}

/// Shuffles after what some threads alone have done, in a loop, and of what others stored.
///
/// # Panics
/// When a result is not the interpreter's.
pub fn shuffles_follow_branches_and_loops<D: Device>(device: &D) {
    let Some(lanes) = lanes(device) else { return };
    for threads in threads(device, lanes) {
        let dtype = DType::I32;
        let kernel = kernel((dtype, DType::I64), &[threads], 1, |b, x, lane| {
            let [zero, one, rounds] = [0, 1, 5].map(|n| b.index(n));
            let sum = b.alloc(zyx_core::ir::Space::Register, Type::scalar(dtype), 1);
            b.store(sum, zero, x);
            let round = b.open_loop(LoopKind::Serial, 0, rounds);
            let is_above = b.binary(BinaryOp::Lt, round, lane);
            b.open_if(is_above);
            let before = b.load(sum, zero);
            let doubled = b.binary(BinaryOp::Add, before, before);
            b.store(sum, zero, doubled);
            b.close();
            let own = b.load(sum, zero);
            let other = shuffle(b, ShuffleKind::Xor, own, one);
            let third = shuffle(b, ShuffleKind::Down, other, round);
            let all = b.binary(BinaryOp::Sub, own, third);
            b.store(sum, zero, all);
            b.close();
            vec![b.load(sum, zero)]
        });
        compare(device, &kernel, lanes);
    }
}

/// Groups that are no whole subgroups, or of two axes: refused, or as the interpreter does it.
///
/// # Panics
/// When the kernel compiles and a result is not the interpreter's.
pub fn shuffles_of_parts_of_subgroups_are_right_or_refused<D: Device>(device: &D) {
    let Some(lanes) = lanes(device) else { return };
    for axes in [vec![lanes + 1], vec![lanes - 1], vec![1], vec![lanes, 2], vec![2, lanes]] {
        let threads: usize = axes.iter().product();
        if threads == 0 || threads > device.caps().max_local {
            continue;
        }
        let kernel = kernel((DType::F32, DType::I64), &axes, KINDS.len(), |b, x, lane| {
            KINDS.map(|kind| shuffle(b, kind, x, lane)).to_vec()
        });
        match device.compile(&verified(&kernel, device.caps())) {
            Ok(_) => compare(device, &kernel, lanes),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("a shuffle needs groups of one axis"), "{text}");
            }
        }
    }
}
