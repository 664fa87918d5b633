//! Look-back and queues, on devices of many kinds, with groups in many orders.

use super::super::progress::{PREFIX, TILE};
use super::super::*;
use super::{devices, gpu, run, setting};
use crate::caps::Progress;
use crate::ir::interp::Options;
use crate::ops::BinaryOp::{self, Add, Max, Min};

/// Elements of a tile, and threads of a group.
const WIDTH: i64 = 3;
const THREADS: usize = 8;

fn options(caps: &Caps, seed: u64) -> Options {
    let subgroup = caps.subgroup.1.max(1) as usize;
    // Endless loops are found.
    Options { shuffle: Some(seed), subgroup, max_iterations: 1 << 26, ..Options::default() }
}

/// Whether the group of a tile publishes nothing.
pub(super) type Silent = for<'k> fn(Val<'k>) -> Val<'k>;

/// The combination of a tile.
fn sum_of<'k>(g: Group<'k>, op: BinaryOp, x: &Array<'k>, tile: Val<'k>) -> Val<'k> {
    let first = tile * WIDTH;
    g.reduce(op, first..(first + WIDTH).minimum(x.extent(0)), |i| x.at(i))
}

/// A scan whose groups take tiles by ticket, or by their own number, of which `is_silent` publish nothing.
fn scan(op: BinaryOp, by_ticket: bool, is_silent: Silent) -> impl Fn(&Lang) {
    scan_by(THREADS, op, by_ticket, is_silent)
}

/// The same with groups of so many threads.
pub(super) fn scan_by(
    threads: usize,
    op: BinaryOp,
    by_ticket: bool,
    is_silent: Silent,
) -> impl Fn(&Lang) {
    move |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let y = k.output("y", [n], x.dtype());
        let tiles = n.div_ceil(WIDTH);
        let sums = k.look_back("sums", op, x.dtype(), tiles);
        k.groups([tiles], threads, |g, [group]| {
            let tile = if by_ticket { sums.ticket(g) } else { group };
            let sum = |tile| sum_of(g, op, &x, tile);
            let own = sum(tile);
            let before = match by_ticket {
                true => sums.prefix(g, tile, own, sum),
                false => {
                    let is_loud = !is_silent(tile);
                    k.when(is_loud, || sums.publish(g, TILE, tile, own));
                    let before = sums.look_back(g, tile, sum);
                    k.when(is_loud, || sums.publish(g, PREFIX, tile, before.binary(op, own)));
                    before
                }
            };
            let first = tile * WIDTH;
            let element = |i| x.at(first + i);
            g.scan(op, (n - first).minimum(WIDTH), x.dtype(), element, |i, _, after| {
                y.set(first + i, before.binary(op, after));
            });
        });
    }
}

/// Runs a scan of numbers that need all bits of the dtype.
pub(super) fn check(
    write: impl Fn(&Lang),
    op: BinaryOp,
    dtype: DType,
    caps: &Caps,
    sizes: &[usize],
) {
    let recorded = record("scan", &setting(caps, &[dtype]), write).unwrap();
    assert!(recorded.looks_back());
    let scale = match dtype {
        DType::I64 => (1i64 << 40) as f64,
        DType::F32 | DType::F64 => 1.0 / 64.0,
        _ => 1.0,
    };
    let sign = if dtype == DType::U32 { 0.0 } else { 14.0 };
    for &n in sizes {
        let x: Vec<f64> =
            (0..n).map(|i| (((i * 37 + 11) % 29) as f64 - sign) * (scale + 1.0)).collect();
        let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options(caps, n as u64));
        let mut sum = op.identity(dtype).unwrap();
        for i in 0..n {
            sum = op.eval(sum, Scalar::from_f64(dtype, x[i]));
            assert_eq!(found[0][i], sum.to_f64(), "{op} {dtype} {i} of {n} {caps:?}");
        }
    }
}

#[test]
fn a_scan_looks_back_on_every_device() {
    let none: Silent = |tile| tile.lt(0);
    for caps in devices() {
        for (op, dtype) in [(Add, DType::F32), (Add, DType::I64), (Max, DType::I32)] {
            check(scan(op, true, none), op, dtype, &caps, &[1, 3, 4, 150]);
        }
    }
    let caps = devices().remove(5);
    for dtype in [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64, DType::U64] {
        for op in [Add, Max, Min] {
            check(scan(op, true, none), op, dtype, &caps, &[100]);
        }
    }
}

/// Groups run one after another in a random order, so most look for tiles whose groups run later; besides, half of the groups, or runs
/// of them, publish nothing.
#[test]
fn a_scan_ends_where_half_of_the_groups_are_silent() {
    for (number, caps) in devices().into_iter().enumerate() {
        let every_other: Silent = |tile| (tile % 2).eq(0);
        let in_runs: Silent = |tile| (tile / 9 % 2).eq(1);
        check(scan(Add, false, |tile| tile.lt(0)), Add, DType::I32, &caps, &[1, 70]);
        check(scan(Add, false, every_other), Add, DType::I64, &caps, &[1, 70]);
        check(scan(Max, false, in_runs), Max, DType::F32, &caps, &[1, 70]);
        // With a promise groups read for long before they go on without: long for an interpreter.
        if number % 10 == 3 {
            let caps = Caps { progress: Progress::Occupancy, ..caps };
            check(scan(Add, false, every_other), Add, DType::I32, &caps, &[13]);
        }
    }
}

#[test]
fn look_back_refuses_other_dtypes_and_devices_without_atomics() {
    let fails = |dtype: DType, caps: &Caps| {
        let line = line!() + 2;
        let error = record("scan", &setting(caps, &[dtype]), |k: &Lang| {
            k.look_back("sums", Add, dtype, 5);
        });
        let error = error.unwrap_err();
        assert_eq!(error.site.line, line, "{error}");
        error.to_string()
    };
    let caps = devices().remove(5);
    assert!(fails(DType::F16, &caps).contains("32 or 64 bits"));
    let caps = Caps { atomics: crate::DTypeSet::NONE, ..caps };
    assert!(fails(DType::I32, &caps).contains("needs the atomic `or` on u32"));
}

/// Numbers of a binary tree: each item pushes its children, and is counted.
#[test]
fn a_queue_hands_out_each_item_once() {
    for caps in devices() {
        for capacity in [200, 40] {
            tree(&caps, THREADS, 100, capacity);
        }
    }
}

/// Works off a tree of so many nodes by groups of so many threads.
pub(super) fn tree(caps: &Caps, threads: usize, nodes: i64, capacity: i64) {
    let recorded = record("tree", &setting(caps, &[DType::I32]), |k: &Lang| {
        let n = k.size("n");
        let roots = k.input("roots", [n]);
        let seen = k.output_filled("seen", [nodes], DType::I32, 0);
        let lost = k.output_filled("lost", [nodes], DType::I32, 0);
        let queue = k.queue("queue", capacity);
        let push = |item: Val<'_>| {
            let is_lost = !queue.push(item);
            k.when(is_lost, || lost.atomic(Add, item, 1));
        };
        k.groups([n], threads, |g, [group]| {
            push(roots.at(group).cast(DType::I64));
            queue.drain(g, |item| {
                seen.atomic(Add, item, 1);
                g.each(2, |child| {
                    let child = item * 2 + 1 + child;
                    k.when(child.lt(nodes), || push(child));
                });
            });
        });
    })
    .unwrap();
    for roots in [vec![0.0], vec![1.0, 2.0], vec![3.0, 5.0, 6.0, 4.0]] {
        let n = roots.len();
        let least = n - 1;
        let options = options(caps, 7);
        let found = run(&recorded, &[n as i64], &[roots], &options);
        let [seen, lost] = &found[..] else { panic!() };
        // Of items that there was no room for, those below are not there either.
        let mut expected = vec![0.0; nodes as usize];
        for i in 0..nodes as usize {
            let parent = i.saturating_sub(1) / 2;
            let is_there = i >= least && (i <= 2 * least || expected[parent] > 0.0);
            expected[i] = if is_there { 1.0 - lost[i] } else { 0.0 };
        }
        assert_eq!(*seen, expected, "{caps:?}");
        let lost = lost.iter().sum::<f64>() > 0.0;
        assert_eq!(lost, capacity < 2 * nodes, "{caps:?}");
    }
}

/// A group takes the first slot before there is an item in it.
#[test]
fn an_item_for_a_slot_that_was_taken_goes_to_another() {
    for caps in devices() {
        let recorded = record("late", &setting(&caps, &[DType::I32]), |k: &Lang| {
            let n = k.size("n");
            let (x, seen) = (k.input("x", [n]), k.output("seen", [n], DType::I32));
            let (queue, count) = (k.queue("queue", 3), k.scratch("count", [1], DType::I32));
            k.groups([1], THREADS, |g, _| {
                queue.take();
                k.for_each(n, |i| {
                    queue.push(x.at(i));
                });
                queue.drain(g, |item| {
                    seen.set(count.fetch(Add, 0, 1), item.cast(DType::I32));
                });
            });
        })
        .unwrap();
        let found = run(&recorded, &[2], &[vec![7.0, 8.0]], &options(&caps, 1));
        assert_eq!(found[0], [7.0, 8.0], "{caps:?}");
    }
}

/// Threads leave a loop early while others still read what comes after it overwrites.
#[test]
fn loops_are_left_together() {
    for caps in devices() {
        let recorded = record("twice", &setting(&caps, &[DType::I32]), |k: &Lang| {
            let n = k.size("n");
            let (x, y) = (k.input("x", [n]), k.output("y", [4], DType::I32));
            let queues = ["first", "second"].map(|name| k.queue(name, n));
            k.groups([1], THREADS, |g, _| {
                let shared = g.shared([1], DType::I32);
                let last = k.var(k.value(0, DType::I32));
                k.for_each(n, |i| {
                    g.elect(|| shared.set(0, x.at(i)));
                    last.set(shared.at(0));
                    k.break_if(last.get().gt(2));
                });
                g.elect(|| shared.set(0, 7));
                y.set(0, last.get());
                y.set(1, shared.at(0));
                for (queue, at) in queues.iter().zip(2..) {
                    k.for_each(n, |i| {
                        queue.push(x.at(i));
                    });
                    let total = k.var(k.value(0, DType::I32));
                    queue.drain(g, |item| total.set(total.get() + item.cast(DType::I32)));
                    let total = g.broadcast(DType::I32, || total.get());
                    y.set(at, total);
                }
            });
        })
        .unwrap();
        for seed in 0..20 {
            let found = run(&recorded, &[4], &[vec![1.0, 2.0, 3.0, 4.0]], &options(&caps, seed));
            assert_eq!(found[0], [3.0, 7.0, 10.0, 10.0], "{caps:?}");
        }
    }
}

#[test]
fn a_queue_takes_no_numbers_that_do_not_fit() {
    for caps in [crate::ir::interp::caps(), devices().remove(5)] {
        let recorded = record("push", &setting(&caps, &[DType::I64]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let (kept, sum) = (k.output("kept", [n], DType::I32), k.output("sum", [1], DType::I64));
            let queue = k.queue("queue", n);
            k.groups([1], THREADS, |g, _| {
                k.for_each(n, |i| kept.set(i, queue.push(x.at(i)).cast(DType::I32)));
                let total = k.var(k.index(0));
                queue.drain(g, |item| total.set(total.get() + item));
                sum.set(0, total.get());
            });
        })
        .unwrap();
        let x = [0, -1, SMALL as i64, SMALL as i64 + 1, 5, i64::from(u32::MAX)].map(|x| x as f64);
        let found = run(&recorded, &[6], &[x.to_vec()], &options(&caps, 1));
        assert_eq!(found[0], [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        assert_eq!(found[1], [SMALL as f64 + 5.0]);
    }
}

/// No wait is longer than the loops that a driver runs, whatever it promises.
#[test]
fn waits_are_shorter_than_the_loops_of_a_driver() {
    let silent: Silent = |tile| tile.lt(0);
    for max_iterations in [0, 65_000] {
        let mut caps = gpu(64, 0);
        (caps.progress, caps.max_iterations) = (Progress::Occupancy, max_iterations);
        let write = scan_by(64, Add, true, silent);
        let recorded = record("scan", &setting(&caps, &[DType::F32]), write).unwrap();
        let kernel = recorded.kernel();
        let longest = kernel.iter().filter_map(|(_, op, _)| match op {
            Op::Loop { len, .. } => kernel.constant(len).map(|n| n.to_i64() as u64),
            _ => None,
        });
        let longest = longest.max().unwrap();
        assert!(max_iterations == 0 || longest < max_iterations / 100, "{longest}");
        assert!(max_iterations > 0 || longest > 65_000, "{longest}");
    }
}
