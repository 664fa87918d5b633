//! What is known of values in small kernels, and that nothing false is ever said.

use super::*;
use crate::ir::generate::{Options, random_inputs, random_kernel, random_vars};
use crate::ir::{Access, Builder, interp};
use crate::scalar::Scalar;

/// The analysis of the last value of a kernel given as lines, labels being positions.
fn parse(lines: &str) -> Kernel {
    format!("kernel k\n{lines}").parse().unwrap_or_else(|e| panic!("{e}\n{lines}"))
}

/// The value some line of the kernel defines, by the text after the label.
fn find(kernel: &Kernel, text: &str) -> Value {
    let found = kernel.iter().find(|&(v, _, _)| crate::ir::print::line(kernel, v) == text);
    found.unwrap_or_else(|| panic!("no `{text}` in\n{kernel}")).0
}

fn bounds(i: Interval) -> (i128, i128, u64) {
    (i.min, i.max, i.multiple_of)
}

#[test]
fn sums_are_recognised_however_they_are_written() {
    let kernel = parse(
        "%n const 10 : i64
         %4 const 4 : i64
         %i loop serial %n
         %d div %i, %4 : i64
         %m mul %d, %4 : i64
         %r rem %i, %4 : i64
         %s add %m, %r : i64
         %z sub %s, %i : i64
         %c lt %s, %n : bool
         %e end %i",
    );
    let ranges = Ranges::of(&kernel);
    assert_eq!(bounds(ranges.get(find(&kernel, "add %4, %5 : i64"))), (0, 9, 1));
    assert_eq!(bounds(ranges.get(find(&kernel, "sub %6, %2 : i64"))), (0, 0, 0));
    assert_eq!(ranges.get(find(&kernel, "lt %6, %0 : bool")).constant(), Some(1));
    assert_eq!(bounds(ranges.get(find(&kernel, "mul %3, %1 : i64"))), (0, 8, 4));
}

#[test]
fn ifs_refine_what_stands_inside() {
    let kernel = parse(
        "%n const 100 : i64
         %8 const 8 : i64
         %3 const 3 : i64
         %i loop serial %n
         %x mul %i, %8 : i64
         %c lt %i, %3 : bool
         %f if %c
         %y add %x, %3 : i64
         %g end %f
         %e end %i",
    );
    let ranges = Ranges::of(&kernel);
    let (x, y) = (find(&kernel, "mul %3, %1 : i64"), find(&kernel, "add %4, %2 : i64"));
    assert_eq!(bounds(ranges.get(x)), (0, 792, 8));
    assert_eq!(bounds(ranges.at(x, y)), (0, 16, 8));
    assert_eq!((ranges.get(y).min, ranges.get(y).max), (3, 19));
}

#[test]
fn symbolic_lengths_bound_their_counters() {
    // i < n and n <= 100, then i + (100 - n) < 100.
    let kernel = parse(
        "scalar 0 : i64 0..=100
         %n var 0 : i64
         %h const 100 : i64
         %i loop serial %n
         %s sub %h, %n : i64
         %x add %i, %s : i64
         %e end %i",
    );
    let ranges = Ranges::of(&kernel);
    let x = ranges.get(find(&kernel, "add %2, %3 : i64"));
    assert_eq!((x.min, x.max), (0, 99));
}

/// Each choice asks about both its sides under its condition, and they about theirs: without a limit
/// forty within one another are asked about `2^32` times, which takes hours.
#[test]
fn choices_within_choices_are_asked_about_in_linear_time() {
    let mut lines = String::from(
        "%n const 100 : i64
         %one const 1 : i64
         %i loop serial %n
         %v0 add %i, %one : i64\n",
    );
    for k in 1..=40 {
        let before = k - 1;
        lines += &format!(
            "%k{k} const {k} : i64
             %c{k} lt %i, %k{k} : bool
             %s{k} add %v{before}, %one : i64
             %v{k} where %c{k}, %s{k}, %v{before} : i64\n"
        );
    }
    lines += "%e end %i";
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let kernel = parse(&lines);
        let mut chosen = kernel.iter().filter(|(_, op, _)| matches!(op, Op::Ternary { .. }));
        let last = chosen.next_back().expect("a choice").0;
        sender.send(bounds(Ranges::of(&kernel).get(last)))
    });
    let found = receiver.recv_timeout(std::time::Duration::from_secs(20));
    let (least, most, _) = found.expect("an answer within 20 s");
    // The counter passes forty less itself, so 41 to 100 come out; each adds one at most.
    assert!((1..=41).contains(&least) && (100..=140).contains(&most), "{least}..={most}");
}

const MASKED: &str = "buffer 0 : f32[10] read
    %p param 0 read : f32
    %n const 3 : i64
    %4 const 4 : i64
    %i loop serial %n
    %b mul %i, %4 : i64
    %l lanes : i64x4
    %s splat %b : i64x4
    %k add %s, %l : i64x4
    %t const 10 : i64
    %u splat %t : i64x4
    %c lt %k, %u : boolx4
    %g guard %b, %c : i64
    %h guard %k, %c : i64x4
    %x load %p[%b] : f32x4
    %y load %p[%g] : f32x4
    %z load %p[%h] : f32x4
    %w extract %k, 2 : i64
    %e end %i";

#[test]
fn guards_bound_the_elements_of_an_access() {
    let kernel = parse(MASKED);
    let ranges = Ranges::of(&kernel);
    let elements = |text| {
        let interval = ranges.elements(find(&kernel, text)).unwrap();
        (interval.min, interval.max)
    };
    assert_eq!(elements("load %0[%4] : f32x4"), (0, 11));
    assert_eq!(elements("load %0[%11] : f32x4"), (0, 9));
    assert_eq!(elements("load %0[%12] : f32x4"), (0, 9));
    let lane = ranges.get(find(&kernel, "extract %7, 2 : i64"));
    assert_eq!((lane.min, lane.max), (2, 10));
}

#[test]
fn selects_know_their_condition() {
    // Python's index: i < 0 ? i + 5 : i, for i in -5 ..= 4.
    let kernel = parse(
        "scalar 0 : i64 -5..=4
         %i var 0 : i64
         %z const 0 : i64
         %5 const 5 : i64
         %c lt %i, %z : bool
         %j add %i, %5 : i64
         %w where %c, %j, %i : i64",
    );
    let ranges = Ranges::of(&kernel);
    assert_eq!(bounds(ranges.get(Value(5))), (0, 4, 1));
}

#[test]
fn what_may_wrap_is_not_a_sum() {
    let kernel = parse(
        "scalar 0 : i32 0..=2000000000
         %i var 0 : i32
         %s add %i, %i : i32
         %d sub %s, %i : i32
         %u const 7 : u8
         %v const 250 : u8
         %w add %u, %v : u8",
    );
    let ranges = Ranges::of(&kernel);
    let i32s = (i32::MIN as i128, i32::MAX as i128);
    assert_eq!((ranges.get(Value(1)).min, ranges.get(Value(1)).max), i32s);
    assert_eq!((ranges.get(Value(2)).min, ranges.get(Value(2)).max), i32s);
    assert_eq!((ranges.get(Value(5)).min, ranges.get(Value(5)).max), (0, 255));
}

#[test]
fn facts_on_lanes_say_nothing_of_other_lanes() {
    // The guard holds in the lanes where v < 4, not where lane 0 is.
    let kernel = parse(
        "buffer 0 : i64[8] read
         %p param 0 read : i64
         %z const 0 : i64
         %v load %p[%z] : i64x4
         %t const 4 : i64
         %4 splat %t : i64x4
         %zs splat %z : i64x4
         %a lt %v, %4 : boolx4
         %b le %zs, %v : boolx4
         %c and %a, %b : boolx4
         %0 extract %v, 0 : i64
         %s splat %0 : i64x4
         %g guard %s, %c : i64x4
         %h guard %v, %c : i64x4
         %x load %p[%g] : i64x4
         %y load %p[%h] : i64x4",
    );
    let ranges = Ranges::of(&kernel);
    assert!(!ranges.elements(Value(13)).unwrap().within(0, 7));
    assert!(ranges.elements(Value(14)).unwrap().within(0, 3));
}

#[test]
fn comparisons_inside_their_own_condition_are_decided() {
    let kernel = parse(
        "scalar 0 : i64 0..=100
         scalar 1 : i64 0..=100
         %a var 0 : i64
         %b var 1 : i64
         %1 const 1 : i64
         %c lt %a, %b : bool
         %f if %c
         %d add %a, %1 : i64
         %e le %d, %b : bool
         %g lt %b, %a : bool
         %h end %f",
    );
    let ranges = Ranges::of(&kernel);
    assert_eq!(ranges.get(Value(6)).constant(), Some(1));
    assert_eq!(ranges.get(Value(7)).constant(), Some(0));
    assert_eq!(ranges.get(Value(3)).constant(), None);
}

#[test]
fn contradictions_are_dead_code() {
    let kernel = parse(
        "%n const 4 : i64
         %i loop serial %n
         %c lt %n, %i : bool
         %f if %c
         %y add %i, %n : i64
         %g end %f
         %e end %i",
    );
    let ranges = Ranges::of(&kernel);
    assert!(ranges.is_dead(Value(4)));
    assert!(!ranges.is_dead(Value(2)));
}

#[test]
fn long_chains_are_analysed_in_linear_time() {
    let mut b = Builder::raw("chain");
    let n = b.var(DType::I64, 0, 7);
    let i = b.open_loop(crate::ir::LoopKind::Serial, 0, n);
    let mut x = i;
    for k in 0..20_000 {
        let c = b.index(k % 3);
        x = if k % 2 == 0 { b.binary(BinaryOp::Max, x, c) } else { b.binary(BinaryOp::Rem, x, n) };
    }
    b.close();
    let kernel = b.finish();
    let start = std::time::Instant::now();
    Ranges::of(&kernel);
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}

/// Emits, after an op has been copied, a store of 1 to `flag` where a scalar integer is not what
/// its interval says.
fn watch(b: &mut Builder, flags: Value, flag: i64, x: Value, interval: Interval) {
    let dtype = b.ty(x).dtype;
    let range = Interval::of(dtype);
    let mut wrong = Vec::new();
    let literal = |b: &mut Builder, x: i128| b.constant(Scalar::from_bits(dtype, x as u64));
    if interval.min > range.min {
        let min = literal(b, interval.min);
        wrong.push(b.binary(BinaryOp::Lt, x, min));
    }
    if interval.max < range.max {
        let max = literal(b, interval.max);
        wrong.push(b.binary(BinaryOp::Lt, max, x));
    }
    if interval.multiple_of > 1 && dtype != DType::Bool {
        let (by, zero) = (literal(b, interval.multiple_of as i128), literal(b, 0));
        let rest = b.binary(BinaryOp::Rem, x, by);
        wrong.push(b.binary(BinaryOp::Ne, rest, zero));
    }
    for wrong in wrong {
        let (at, one) = (b.index(flag), b.constant(Scalar::from(1i32)));
        let at = b.guard(at, wrong);
        b.store(flags, at, one);
    }
}

/// The kernel with every integer watched where it is defined and where it is used.
fn watched(kernel: &Kernel) -> Kernel {
    let ranges = Ranges::of(kernel);
    let mut b = kernel.rebuild();
    let flags = b.param(DType::I32, kernel.ops().len() as u64, Access::ReadWrite);
    let mut map: Vec<Value> = Vec::new();
    for (value, op, ty) in kernel.iter() {
        let is_region_end = matches!(op, Op::End { .. });
        if !is_region_end {
            for x in op.operands().filter(|&x| is_watched(kernel, x)) {
                watch_lanes(&mut b, flags, (value, map[x.idx()]), ranges.at(x, value));
            }
        }
        let copy = b.push(op.map(|x| map[x.idx()]), ty);
        map.push(copy);
        if is_watched(kernel, value) {
            watch_lanes(&mut b, flags, (value, copy), ranges.get(value));
        }
    }
    b.finish()
}

fn is_watched(kernel: &Kernel, value: Value) -> bool {
    let op = kernel.op(value);
    let is_value = op.is_pure() && !matches!(op, Op::Guard { .. })
        || matches!(op, Op::Loop { .. } | Op::Load { .. } | Op::Var { .. });
    is_value && !kernel.ty(value).dtype.is_float()
}

fn watch_lanes(b: &mut Builder, flags: Value, (at, x): (Value, Value), interval: Interval) {
    let ty = b.ty(x);
    if !ty.is_vector() {
        return watch(b, flags, at.0 as i64, x, interval);
    }
    for lane in 0..ty.lanes {
        let x = b.emit(Op::Extract { x, lane }, Type::scalar(ty.dtype));
        watch(b, flags, at.0 as i64, x, interval);
    }
}

#[test]
fn nothing_false_is_said_of_random_kernels() {
    let ints = [DType::I64, DType::I32, DType::U8, DType::U64, DType::I16, DType::Bool];
    let options = Options { dtypes: crate::DTypeSet::of(&ints), ..Options::default() };
    let mut said = 0;
    for seed in 0..400 {
        let kernel = random_kernel(seed, &options);
        let ranges = Ranges::of(&kernel);
        said += kernel
            .iter()
            .filter(|&(v, op, ty)| {
                let all = Interval::of(ty.dtype);
                !matches!(op, Op::Const { .. }) && is_watched(&kernel, v) && ranges.get(v) != all
            })
            .count();
        let watching = watched(&kernel);
        let mut buffers = random_inputs(&kernel, seed);
        buffers.push(vec![0; 4 * kernel.ops().len()]);
        let vars = random_vars(&kernel, seed);
        interp::interpret(&watching, &mut buffers, &vars, &interp::Options::fast())
            .unwrap_or_else(|e| panic!("seed {seed}: {e}\n{kernel}"));
        let flags = buffers.pop().unwrap();
        let wrong: Vec<usize> = (0..kernel.ops().len()).filter(|&i| flags[4 * i] != 0).collect();
        assert!(wrong.is_empty(), "seed {seed}: wrong at {wrong:?}\n{kernel}");
    }
    assert!(said > 5_000, "intervals say something of {said} values");
}

#[test]
fn bytes_of_buffers_may_be_more_than_bits() {
    let kernel: Kernel = "kernel k
        buffer 0 : bool[1] read
        %0 param 0 read : bool
        %1 const 0 : i64
        %2 load %0[%1] : bool
        %3 cast %2 : i64
        %4 not %2 : bool
        %5 cast %4 : u8
        %6 lt %1, %3 : bool
        %7 and %6, %6 : bool
        %8 cast %7 : i64"
        .parse()
        .unwrap();
    let ranges = Ranges::of(&kernel);
    let most = |i| ranges.get(Value(i)).max;
    assert_eq!((most(3), most(5), most(8)), (255, 255, 1));
}

/// A part of a row that ends where the row does, walked along in whole vectors.
#[test]
fn a_part_that_ends_with_the_whole_stays_inside() {
    let mut b = Builder::new("part");
    let start = b.var(DType::I64, 0, 1000);
    let len = b.var(DType::I64, 0, 1000);
    let (whole, lanes) = (b.index(1000), b.index(16));
    let left = b.binary(BinaryOp::Sub, whole, start);
    let len = b.binary(BinaryOp::Min, left, len);
    let vectors = b.binary(BinaryOp::Div, len, lanes);
    let i = b.open_loop(crate::ir::LoopKind::Serial, 0, vectors);
    let at = b.binary(BinaryOp::Mul, i, lanes);
    let first = b.binary(BinaryOp::Add, start, at);
    let fifteen = b.index(15);
    let last = b.binary(BinaryOp::Add, first, fifteen);
    b.close();
    let kernel = b.finish();
    let ranges = Ranges::of(&kernel);
    assert_eq!((ranges.get(first).max, ranges.get(last).max), (984, 999));
}

/// Each is the lesser of two sums of the one before: there are as many ways through them as subsets.
#[test]
fn the_lesser_of_sums_of_the_lesser_takes_no_time() {
    let mut b = Builder::new("chain");
    let len = b.var(DType::I64, 0, 1000);
    let i = b.open_loop(crate::ir::LoopKind::Serial, 0, len);
    let mut least = i;
    for n in 1..60 {
        let (one, two) = (b.index(n), b.index(n % 7));
        let (x, y) = (b.binary(BinaryOp::Add, least, one), b.binary(BinaryOp::Add, least, two));
        least = b.binary(BinaryOp::Min, x, y);
    }
    b.close();
    let kernel = b.finish();
    let ranges = Ranges::of(&kernel);
    assert!(ranges.get(least).max >= 999 && ranges.get(least).min >= 0);
}
