//! Every op on every dtype, scalar and vector, against the op table.
//!
//! One kernel holds all ops of a kind on all dtypes, as far as the device binds buffers, since
//! calling a driver's compiler is what takes time. A dtype the device does not compute with is
//! converted around the op, as legalisation does it, and kernels are legalised, so an op that the
//! device lacks tests its expansion; some expansions do not exist for `f64`.

use super::{bytes, run, scalars};
use crate::oracle::flush::{self, zeroed, zeroed_result};
use crate::tolerance::ulp;
use zyx_core::hal::{Caps, Device};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, Type, Value};
use zyx_core::legalize::legalize;
use zyx_core::{BinaryOp, Class, DType, DTypeSet, Scalar, TernaryOp, UnaryOp};

/// Values at which something can go wrong.
fn edges(dtype: DType) -> Vec<Scalar> {
    let bits = dtype.bits() as u32;
    match dtype.class() {
        Class::Bool => vec![Scalar::from(false), Scalar::from(true)],
        Class::Signed | Class::Unsigned => {
            let mut values: Vec<i64> =
                (-9..=9).chain([31, 32, 63, 64, 100, 127, 128, 255]).collect();
            values.extend((0..bits).step_by(3).map(|n| (0x1234_5678_9abc_def1u64 >> n) as i64));
            let mut values: Vec<Scalar> =
                values.into_iter().map(|x| Scalar::from_i64(dtype, x)).collect();
            values.extend([Scalar::lowest(dtype), Scalar::highest(dtype)]);
            values
        }
        Class::Float => {
            let infinity = Scalar::highest(dtype).bits();
            let sign = 1u64 << (bits - 1);
            let codes = [0, 1, 2, infinity >> 1, infinity - 1, infinity];
            let mut values: Vec<Scalar> = codes
                .iter()
                .flat_map(|&c| [Scalar::from_bits(dtype, c), Scalar::from_bits(dtype, c | sign)])
                .collect();
            values.push(Scalar::from_f64(dtype, f64::NAN));
            let numbers = [
                0.1,
                0.5,
                0.999,
                1.0,
                1.5,
                2.0,
                2.5,
                3.5,
                3.75,
                7.0,
                10.0,
                88.5,
                100.0,
                127.5,
                128.0,
                255.0,
                300.0,
                1e4,
                65504.0,
                1e-3,
                1e-6,
                std::f64::consts::FRAC_PI_4,
                std::f64::consts::FRAC_PI_2,
                2147483647.0,
                9.3e18,
                1e25,
            ];
            for x in numbers {
                values.extend([Scalar::from_f64(dtype, x), Scalar::from_f64(dtype, -x)]);
            }
            values
        }
    }
}

/// Distance in units in the last place; infinite between NaN and a number.
fn ulps(a: Scalar, b: Scalar) -> u64 {
    let dtype = a.dtype();
    if !dtype.is_float() {
        return if a == b { 0 } else { u64::MAX };
    }
    match (a.to_f64().is_nan(), b.to_f64().is_nan()) {
        (true, true) => return 0,
        (false, false) => {}
        _ => return u64::MAX,
    }
    // Codes in the order of values; both zeros are one.
    let place = |x: Scalar| {
        let magnitude = x.bits() & ((1u64 << (dtype.bits() - 1)) - 1);
        if x.bits() == magnitude { magnitude as i128 } else { -(magnitude as i128) }
    };
    (place(a) - place(b)).unsigned_abs() as u64
}

/// What an op may give: one value, or several where the device flushes operands or results.
struct Expected {
    value: Scalar,
    others: Vec<Scalar>,
    ulps: u32,
    /// An error that is no larger is none.
    slack: f64,
    what: String,
}

impl Expected {
    /// The result of `f` on `args`.
    fn of(
        caps: &Caps,
        args: &[Scalar],
        ulps: u32,
        what: String,
        f: impl Fn(&[Scalar]) -> Scalar,
    ) -> Expected {
        let (value, mut others) = (f(args), Vec::new());
        let flushed = flush::dtypes(caps);
        let zero = |x: Scalar| if flushed.contains(x.dtype()) { zeroed(x) } else { x };
        if flushed != DTypeSet::NONE {
            // Each operand may have been replaced or not.
            for mask in 0..1u32 << args.len() {
                let pick = |(i, &x): (usize, &Scalar)| if mask >> i & 1 == 1 { zero(x) } else { x };
                let y = f(&args.iter().enumerate().map(pick).collect::<Vec<_>>());
                others.push(y);
                if flushed.contains(y.dtype()) {
                    others.push(zeroed_result(y));
                }
            }
        }
        Expected { value, others, ulps, slack: 0.0, what }
    }

    fn allows(&self, got: Scalar) -> bool {
        let near = |&want: &Scalar| {
            ulps(got, want) <= u64::from(self.ulps)
                || (got.to_f64() - want.to_f64()).abs() <= self.slack
        };
        near(&self.value) || self.others.iter().any(near)
    }
}

/// The device's results in `actual` against `expected`, each within a bound.
#[track_caller]
fn compare(actual: &[Scalar], expected: &[&Expected]) {
    let wrong: Vec<String> = actual
        .iter()
        .zip(expected)
        .filter(|(a, e)| !e.allows(**a))
        .map(|(a, e)| format!("{} = {a:?}, not {:?} within {} ulp", e.what, e.value, e.ulps))
        .collect();
    let shown = wrong.iter().take(40).cloned().collect::<Vec<_>>().join("\n");
    assert!(wrong.is_empty(), "{} of {} wrong:\n{shown}", wrong.len(), actual.len());
}

/// The kernel as a backend may be given it.
#[track_caller]
fn legal(kernel: &Kernel, caps: &Caps) -> Kernel {
    let kernel = legalize(kernel, caps).unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = zyx_core::ir::verify_for(&kernel, caps) {
        panic!("{error}\n{kernel}");
    }
    kernel
}

/// Widest vectors of floats of this dtype's compute dtype; integers take 16 lanes.
fn lanes_for(caps: &Caps, dtype: DType, wanted: u8) -> Option<u8> {
    let compute = caps.compute_dtype(dtype);
    let float = dtype.is_float() || compute.is_float();
    let most = if wanted == 1 {
        1
    } else if float {
        caps.vector_bytes / compute.size()
    } else {
        caps.vector_bytes.min(16)
    };
    (wanted as usize <= most).then_some(wanted)
}

/// Pads a list so that vectors divide it.
fn pad(values: &mut Vec<Scalar>) {
    while !values.len().is_multiple_of(16) {
        values.push(values[0]);
    }
}

/// Ops on the same inputs, done in one loop.
struct Group<'a> {
    inputs: Vec<Vec<Scalar>>,
    lanes: u8,
    jobs: Vec<Job<'a>>,
}

type Function<'a> = Box<dyn Fn(&mut Builder, &[Value]) -> Value + 'a>;

/// One op: how it is built, the dtype of its result, and what the result has to be within how
/// many units in the last place.
struct Job<'a> {
    to: DType,
    function: Function<'a>,
    expected: Vec<Expected>,
}

/// Most buffers of one kernel, whatever the device takes.
const BUFFERS: usize = 40;

/// Checks all groups in as few kernels as buffers allow.
fn check<D: Device>(device: &D, groups: Vec<Group<'_>>) {
    let most = device.caps().max_buffers.min(BUFFERS);
    let results = |jobs: &[Job<'_>], known: &mut Vec<DType>| {
        known.extend(jobs.iter().map(|job| job.to));
        known.sort();
        known.dedup();
    };
    let (mut together, mut inputs, mut outs) = (Vec::new(), 0, Vec::new());
    for Group { inputs: values, lanes, mut jobs } in groups {
        jobs.sort_by_key(|job| job.to);
        while !jobs.is_empty() {
            // As many of its jobs as write buffers that fit.
            let fits = |n: usize, inputs: usize, outs: &[DType]| {
                let mut all = outs.to_vec();
                results(&jobs[..n], &mut all);
                inputs + values.len() + all.len() <= most
            };
            let mut n = jobs.len();
            if !fits(n, inputs, &outs) && !together.is_empty() {
                check_together(device, &std::mem::take(&mut together));
                (inputs, outs) = (0, Vec::new());
            }
            while n > 1 && !fits(n, inputs, &outs) {
                n -= 1;
            }
            let later = jobs.split_off(n);
            inputs += values.len();
            results(&jobs, &mut outs);
            together.push(Group { inputs: values.clone(), lanes, jobs });
            jobs = later;
        }
    }
    if !together.is_empty() {
        check_together(device, &together);
    }
}

/// Builds one kernel of all groups, with one result buffer per dtype, runs and checks it.
fn check_together<D: Device>(device: &D, groups: &[Group<'_>]) {
    let mut b = Builder::new("ops");
    let total = |dtype: DType| -> u64 {
        let jobs = groups.iter().flat_map(|g| &g.jobs).filter(|job| job.to == dtype);
        jobs.map(|job| job.expected.len() as u64).sum()
    };
    let mut buffers = Vec::new();
    let outs: Vec<Option<Value>> = DType::ALL
        .iter()
        .map(|&dtype| {
            let n = total(dtype);
            (n > 0).then(|| {
                buffers.push(vec![0; n as usize * dtype.size()]);
                b.param(dtype, n, Access::Write)
            })
        })
        .collect();
    let mut filled = vec![0i64; DType::ALL.len()];
    for group in groups {
        let n = group.inputs[0].len();
        let inputs: Vec<Value> = group
            .inputs
            .iter()
            .map(|values| {
                buffers.push(bytes(values));
                b.param(values[0].dtype(), n as u64, Access::Read)
            })
            .collect();
        let lanes = group.lanes;
        let (steps, step) = (b.index((n / lanes as usize) as i64), b.index(lanes.into()));
        let i = b.open_loop(LoopKind::Parallel, 0, steps);
        let index = b.binary(BinaryOp::Mul, i, step);
        let operands: Vec<Value> =
            inputs.iter().map(|&buffer| b.load_vector(buffer, index, lanes)).collect();
        for job in &group.jobs {
            let start = b.index(filled[job.to as usize]);
            filled[job.to as usize] += n as i64;
            let at = b.binary(BinaryOp::Add, start, index);
            let y = (job.function)(&mut b, &operands);
            b.store(outs[job.to as usize].expect("invariant: its dtype has results"), at, y);
        }
        b.close();
    }
    let kernel = legal(&b.finish(), device.caps());
    let results = run(device, &kernel, &buffers, &[]);
    let present = DType::ALL.iter().zip(&outs).filter(|(_, out)| out.is_some());
    for ((&dtype, _), bytes) in present.zip(&results) {
        let jobs = groups.iter().flat_map(|g| &g.jobs).filter(|job| job.to == dtype);
        let expected: Vec<&Expected> = jobs.flat_map(|job| &job.expected).collect();
        compare(&scalars(dtype, bytes), &expected);
    }
}

/// Whether the op exists on the device or can be expanded.
fn exists(caps: &Caps, dtype: DType, f: impl FnOnce(&mut Builder, Value) -> Value) -> bool {
    let mut b = Builder::new("probe");
    let p = b.param(dtype, 1, Access::Read);
    let zero = b.index(0);
    let x = b.load(p, zero);
    f(&mut b, x);
    let found = legalize(&b.finish(), caps);
    assert!(found.is_ok() || dtype == DType::F64, "{:?}", found.err());
    found.is_ok()
}

/// Applies `f` in the dtype the device computes `dtype` in; `to` is the result's dtype.
fn computed(
    b: &mut Builder,
    caps: &Caps,
    (dtype, to): (DType, DType),
    args: &[Value],
    f: impl FnOnce(&mut Builder, &[Value]) -> Value,
) -> Value {
    let compute = caps.compute_dtype(dtype);
    let args: Vec<Value> = args.iter().map(|&x| b.cast(compute, x)).collect();
    let y = f(b, &args);
    b.cast(to, y)
}

/// The dtypes that can be stored, and computed in vectors of so many lanes.
fn dtypes(caps: &Caps, lanes: u8) -> Vec<DType> {
    let fits = |&d: &DType| caps.storage.contains(d) && lanes_for(caps, d, lanes).is_some();
    DType::ALL.iter().copied().filter(fits).collect()
}

/// Unary ops.
///
/// # Panics
/// When a result is wrong.
pub fn unary_ops<D: Device>(device: &D, lanes: u8) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for dtype in dtypes(caps, lanes) {
        let mut values = edges(dtype);
        pad(&mut values);
        let ops = UnaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype));
        let ops = ops.filter(|&op| exists(caps, dtype, |b, x| b.unary(op, x)));
        let jobs = ops.map(|op| Job {
            to: dtype,
            function: Box::new(move |b, args| {
                computed(b, caps, (dtype, dtype), args, |b, args| b.unary(op, args[0]))
            }),
            expected: (values.iter())
                .map(|&x| {
                    Expected::of(caps, &[x], op.ulp(), format!("{op}({x:?})"), |v| op.eval(v[0]))
                })
                .collect(),
        });
        groups.push(Group { jobs: jobs.collect(), inputs: vec![values], lanes });
    }
    check(device, groups);
}

/// Unary ops of constants that a compiler may take for impossible.
///
/// # Panics
/// When a result is wrong.
pub fn unary_ops_of_infinite_constants<D: Device>(device: &D) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for dtype in dtypes(caps, 1).into_iter().filter(|d| d.is_float()) {
        let mut unread = vec![Scalar::from_f64(dtype, 1.0)];
        pad(&mut unread);
        let ops = UnaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype));
        let ops = ops.filter(|&op| exists(caps, dtype, |b, x| b.unary(op, x)));
        let constants = [f64::INFINITY, f64::NEG_INFINITY];
        let jobs = ops.flat_map(|op| constants.map(|x| (op, Scalar::from_f64(dtype, x))));
        let jobs = jobs.map(|(op, x)| Job {
            to: dtype,
            function: Box::new(move |b, _| {
                // A lane of a vector, where there are any, is not evaluated before the compiler sees it.
                let mut x = b.constant(x);
                if lanes_for(caps, dtype, 2).is_some() {
                    let pair = b.splat(x, 2);
                    x = b.push(Op::Extract { x: pair, lane: 1 }, Type::scalar(dtype));
                }
                computed(b, caps, (dtype, dtype), &[x], |b, args| b.unary(op, args[0]))
            }),
            expected: (unread.iter())
                .map(|_| {
                    Expected::of(caps, &[x], op.ulp(), format!("{op}({x:?})"), |v| op.eval(v[0]))
                })
                .collect(),
        });
        groups.push(Group { jobs: jobs.collect(), inputs: vec![unread.clone()], lanes: 1 });
    }
    check(device, groups);
}

/// Sums, differences and products with a constant zero have the sign that IEEE 754 gives them.
///
/// # Panics
/// When a result is wrong.
pub fn constant_zeros_keep_their_sign<D: Device>(device: &D) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for (dtype, bits) in [(DType::F32, DType::U32), (DType::F64, DType::U64)] {
        if !caps.compute.contains(dtype) {
            continue;
        }
        let numbers = [0.0, -0.0, 1.0, -1.0];
        let mut xs = numbers.map(|x| Scalar::from_f64(dtype, x)).to_vec();
        pad(&mut xs);
        let mut jobs = Vec::new();
        for op in [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul] {
            for (zero, first) in [(0.0, false), (0.0, true), (-0.0, false), (-0.0, true)] {
                let zero = Scalar::from_f64(dtype, zero);
                let ordered = move |x: Scalar| if first { (zero, x) } else { (x, zero) };
                let expected = |&x: &Scalar| {
                    let ((l, r), to_bits) =
                        (ordered(x), |y: Scalar| Scalar::from_bits(bits, y.bits()));
                    let what = format!("bits of {op}({l:?}, {r:?})");
                    Expected::of(caps, &[], 0, what, |_| to_bits(op.eval(l, r)))
                };
                jobs.push(Job {
                    to: bits,
                    function: Box::new(move |b, args| {
                        let zero = b.constant(zero);
                        let (l, r) = if first { (zero, args[0]) } else { (args[0], zero) };
                        let y = b.binary(op, l, r);
                        b.bitcast(bits, y)
                    }),
                    expected: xs.iter().map(expected).collect(),
                });
            }
        }
        groups.push(Group { jobs, inputs: vec![xs], lanes: 1 });
    }
    check(device, groups);
}

/// Binary ops.
///
/// # Panics
/// When a result is wrong.
pub fn binary_ops<D: Device>(device: &D, lanes: u8) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for dtype in dtypes(caps, lanes) {
        let edges = edges(dtype);
        let pairs = edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y)));
        let (mut xs, mut ys): (Vec<_>, Vec<_>) = pairs.unzip();
        pad(&mut xs);
        pad(&mut ys);
        let ops = BinaryOp::ALL.iter().copied().filter(|op| op.domain().contains(dtype));
        let ops = ops.filter(|&op| exists(caps, dtype, |b, x| b.binary(op, x, x)));
        let jobs = ops.map(|op| Job {
            to: op.result(dtype),
            function: Box::new(move |b, args| {
                let types = (dtype, op.result(dtype));
                computed(b, caps, types, args, |b, args| b.binary(op, args[0], args[1]))
            }),
            expected: (xs.iter().zip(&ys))
                .map(|(&x, &y)| {
                    let what = format!("{op}({x:?}, {y:?})");
                    let f = |v: &[Scalar]| op.eval(v[0], v[1]);
                    let mut expected = Expected::of(caps, &[x, y], op.ulp(), what, f);
                    let exact = [x, y, expected.value].map(Scalar::to_f64);
                    let unit = op.unit(exact[0], exact[1], exact[2]);
                    if unit > exact[2].abs() {
                        expected.slack = f64::from(op.ulp()) * ulp(dtype, unit);
                    }
                    // What is taken for two equal zeros has no larger and no smaller one.
                    let is_zero = |x: Scalar| zeroed(x).to_f64() == 0.0;
                    let chooses = matches!(op, BinaryOp::Max | BinaryOp::Min);
                    if chooses && flush::dtypes(caps).contains(dtype) && is_zero(x) && is_zero(y) {
                        expected.others.extend([x, y]);
                    }
                    expected
                })
                .collect(),
        });
        groups.push(Group { jobs: jobs.collect(), inputs: vec![xs, ys], lanes });
    }
    check(device, groups);
}

/// Choosing needs no arithmetic, so it is done on the dtype itself.
///
/// # Panics
/// When a result is wrong.
pub fn ternary_ops<D: Device>(device: &D, lanes: u8) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for dtype in dtypes(caps, lanes) {
        let mut xs: Vec<Scalar> = edges(dtype);
        pad(&mut xs);
        let rotate = |n: usize| -> Vec<Scalar> {
            xs.iter().cycle().skip(n).take(xs.len()).copied().collect()
        };
        let (ys, zs) = (rotate(5), rotate(11));
        let conds: Vec<Scalar> = (0..xs.len()).map(|i| Scalar::from(i % 3 == 0)).collect();
        let rows = || xs.iter().zip(&ys).zip(&zs).zip(&conds);
        let op = TernaryOp::Where;
        let mut jobs = vec![Job {
            to: dtype,
            function: Box::new(|b, args| b.select(args[3], args[0], args[1])),
            expected: rows()
                .map(|(((&x, &y), _), &c)| {
                    let what = format!("where({c:?}, {x:?}, {y:?})");
                    Expected::of(caps, &[c, x, y], 0, what, |v| op.eval(v[0], v[1], v[2]))
                })
                .collect(),
        }];
        if caps.compute.contains(dtype) && dtype.is_float() {
            let op = TernaryOp::MulAdd;
            // Where it is not one instruction it is two roundings.
            let fused = caps.has_ternary(op, dtype);
            let sum = move |x: Scalar, y: Scalar, z: Scalar| match fused {
                true => op.eval(x, y, z),
                false => BinaryOp::Add.eval(BinaryOp::Mul.eval(x, y), z),
            };
            jobs.push(Job {
                to: dtype,
                function: Box::new(move |b, args| b.ternary(op, args[0], args[1], args[2])),
                expected: rows()
                    .map(|(((&x, &y), &z), _)| {
                        let what = format!("muladd({x:?}, {y:?}, {z:?})");
                        Expected::of(caps, &[x, y, z], 0, what, |v| sum(v[0], v[1], v[2]))
                    })
                    .collect(),
            });
        }
        groups.push(Group { jobs, inputs: vec![xs, ys, zs, conds], lanes });
    }
    check(device, groups);
}

/// Casts and bitcasts between all dtypes.
///
/// # Panics
/// When a result is wrong.
pub fn casts_and_bitcasts<D: Device>(device: &D, lanes: u8) {
    let caps = device.caps();
    let mut groups = Vec::new();
    for from in dtypes(caps, lanes) {
        let mut values = edges(from);
        // What rounds once to a half but not through another float: just beside ties.
        if !matches!(from.bits(), 8 | 16) {
            let odd = [(1i64 << 40) + (1 << 32) + 1, (1 << 24) + (1 << 16) + 1, 0x0101_8001];
            values.extend(odd.map(|x| Scalar::from_i64(from, x)));
            let near =
                [1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-8) + 2f64.powi(-40)];
            values.extend(near.map(|x| Scalar::from_f64(from, x)));
        }
        pad(&mut values);
        let mut jobs: Vec<Job<'_>> = Vec::new();
        for to in dtypes(caps, lanes) {
            jobs.push(Job {
                to,
                function: Box::new(move |b, args| b.cast(to, args[0])),
                expected: (values.iter())
                    .map(|&x| {
                        Expected::of(caps, &[x], 0, format!("{x:?} as {to}"), |v| v[0].cast(to))
                    })
                    .collect(),
            });
            if from.bits() == to.bits() {
                jobs.push(Job {
                    to,
                    function: Box::new(move |b, args| b.bitcast(to, args[0])),
                    expected: (values.iter())
                        .map(|&x| {
                            let what = format!("bits of {x:?} as {to}");
                            Expected::of(caps, &[x], 0, what, |v| v[0].bitcast(to))
                        })
                        .collect(),
                });
            }
        }
        groups.push(Group { jobs, inputs: vec![values], lanes });
    }
    check(device, groups);
}

/// All codes of both halves to `f32` and back, and `f32` values between them.
///
/// # Panics
/// When a result is wrong.
pub fn every_half<D: Device>(device: &D, lanes: u8) {
    let caps = device.caps();
    if lanes_for(caps, DType::F32, lanes).is_none() {
        return;
    }
    let mut groups = Vec::new();
    for half in [DType::F16, DType::BF16] {
        let codes: Vec<Scalar> =
            (0..=u64::from(u16::MAX)).map(|code| Scalar::from_bits(half, code)).collect();
        // Each code's neighbourhood: half-way up to the next, one below and one above that.
        let step = 1u64 << if half == DType::F16 { 12 } else { 15 };
        let around = |x: &Scalar| [0, step, step - 1, step + 1].map(|d| x.bits() + d);
        let singles: Vec<Scalar> = codes
            .iter()
            .flat_map(|&x| around(&x.cast(DType::F32)))
            .map(|bits| Scalar::from_bits(DType::F32, bits))
            .collect();
        let cast = |to: DType, from: &[Scalar]| Job {
            to,
            function: Box::new(move |b: &mut Builder, args: &[Value]| b.cast(to, args[0])),
            expected: (from.iter())
                .map(|&x| Expected::of(caps, &[x], 0, format!("{x:?} as {to}"), |v| v[0].cast(to)))
                .collect(),
        };
        let jobs = vec![cast(DType::F32, &codes)];
        groups.push(Group { jobs, inputs: vec![codes], lanes });
        let jobs = vec![cast(half, &singles)];
        groups.push(Group { jobs, inputs: vec![singles], lanes });
    }
    check(device, groups);
}
