//! Each primitive of a group alone: every dtype that it takes, groups of 1 to 1024 threads, subgroups of none to
//! 128, with threads in random orders and from the last to the first.
//!
//! Each run tests some of the cases, which `ZYX_SAMPLE=n` chooses (unset, the day); `ZYX_FULL=1` tests all.

use super::super::*;
use super::progress::{Silent, check, scan_by, tree};
use super::{gpu, run, setting};
use crate::ir::interp::Options;
use crate::ops::BinaryOp::{self, Add, And, Max, Min, Mul, Or, Xor};
use std::fmt::Debug;

const THREADS: [usize; 5] = [1, 2, 32, 256, 1024];
const SUBGROUPS: [u32; 8] = [0, 1, 4, 8, 16, 32, 64, 128];

/// `ZYX_SAMPLE`, or days since 1970.
fn today() -> usize {
    if let Some(sample) = std::env::var("ZYX_SAMPLE").ok().and_then(|n| n.parse().ok()) {
        return sample;
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs() as usize / 86_400)
}

/// Tests `each` of the cases with one in `every` pair of sizes of groups and of subgroups, or all of them with all.
fn on_all<T: Copy + Debug>(
    cases: &[T],
    (each, every): (usize, usize),
    test: impl Fn(T, usize, &Caps),
) {
    let full = std::env::var("ZYX_FULL").is_ok_and(|value| value == "1");
    let (each, every) = if full { (cases.len(), 1) } else { (each, every) };
    let mut next = today() * each;
    for (row, threads) in THREADS.into_iter().enumerate() {
        for (column, subgroup) in SUBGROUPS.into_iter().enumerate() {
            if !(row + column + today()).is_multiple_of(every) {
                continue;
            }
            let mut caps = gpu(1024, subgroup);
            caps.shared_bytes = 1 << 20;
            for _ in 0..each {
                test(cases[next % cases.len()], threads, &caps);
                next += 1;
            }
        }
    }
}

/// A random order of threads and groups, and one from the last to the first.
fn orders(caps: &Caps, seed: usize) -> [Options; 2] {
    let (seed, subgroup) = ((seed + today()) as u64, caps.subgroup.1.max(1) as usize);
    [Some(seed), None].map(|shuffle| Options {
        shuffle,
        reversed: true,
        subgroup,
        max_iterations: 1 << 26,
        ..Options::default()
    })
}

/// Numbers of elements around the number of threads: none, one, or a last turn of some threads, and several turns.
fn sizes(threads: usize) -> [usize; 2] {
    [[0, 1, threads - 1, threads][today() % 4], 2 * threads + 3]
}

/// Associative operations with each dtype they take.
fn operations() -> Vec<(BinaryOp, DType)> {
    let of = |&dtype: &DType| {
        let ops: &[BinaryOp] = match dtype.class() {
            crate::Class::Float => &[Add, Mul, Max, Min],
            crate::Class::Bool => &[And, Or, Xor, Max, Min],
            _ => &[Add, Mul, Max, Min, And, Or, Xor],
        };
        ops.iter().map(move |&op| (op, dtype)).collect::<Vec<_>>()
    };
    DType::ALL.iter().flat_map(of).collect()
}

/// Numbers whose combinations are exact in any grouping.
fn numbers(op: BinaryOp, dtype: DType, n: usize) -> Vec<f64> {
    let mut state = n as u64 + 1;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut number = || match dtype.class() {
        crate::Class::Bool => random(2) as f64,
        crate::Class::Float if op == Mul => 1.0 - 2.0 * random(2) as f64,
        crate::Class::Float if op == Add => [-1.0, 0.0, 1.0, 0.0, 0.0][random(5) as usize],
        crate::Class::Float => random(41) as f64 - 20.0,
        _ => {
            let scale = if dtype.bits() == 64 { (1u64 << 33) as f64 + 1.0 } else { 1.0 };
            let least = if dtype.is_signed() { -100.0 } else { 0.0 };
            (least + random(201.min(1 << (dtype.bits() - 1))) as f64) * scale
        }
    };
    (0..n).map(|_| number()).collect()
}

/// The combinations of the numbers before each, and of all.
fn prefixes(op: BinaryOp, dtype: DType, x: &[f64]) -> Vec<f64> {
    let mut sum = op.identity(dtype).unwrap();
    let mut all = vec![sum.to_f64()];
    for &x in x {
        sum = op.eval(sum, Scalar::from_f64(dtype, x));
        all.push(sum.to_f64());
    }
    all
}

#[test]
fn every_thread_gets_a_reduction() {
    on_all(&operations(), (2, 1), |(op, dtype), threads, caps| {
        let recorded = record("reduce", &setting(caps, &[dtype]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let [all, half] = ["all", "half"].map(|name| k.output(name, [2, threads], dtype));
            k.groups([2], threads, |g, [group]| {
                assert_eq!(g.threads(), threads);
                let sum = g.reduce(op, n, |i| x.at(i));
                let part = g.reduce(op, n / 2..n, |i| x.at(i));
                g.each(threads, |i| {
                    all.set([group, i], sum);
                    half.set([group, i], part);
                });
            });
        });
        let recorded = recorded.unwrap();
        for n in sizes(threads) {
            let x = numbers(op, dtype, n);
            let [all, half] =
                [&x[..], &x[n / 2..]].map(|x| *prefixes(op, dtype, x).last().unwrap());
            for options in orders(caps, n) {
                let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options);
                let expected = [all, half].map(|x| vec![x; 2 * threads]);
                assert_eq!(found, expected, "{op} {dtype} {n} {threads} {caps:?}");
            }
        }
    });
}

#[test]
fn scans_emit_each_number_once() {
    on_all(&operations(), (2, 1), |(op, dtype), threads, caps| {
        let recorded = record("scan", &setting(caps, &[dtype]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let [before, after] =
                ["before", "after"].map(|name| k.output(name, [k.index(2), n], dtype));
            let all = k.output("all", [2, threads], dtype);
            k.groups([2], threads, |g, [group]| {
                let emit = |i, earlier, own| {
                    before.set([group, i], earlier);
                    after.set([group, i], own);
                };
                let sum = g.scan(op, n, dtype, |i| x.at(i), emit);
                g.each(threads, |i| all.set([group, i], sum));
            });
        });
        let recorded = recorded.unwrap();
        for n in sizes(threads) {
            let x = numbers(op, dtype, n);
            let sums = prefixes(op, dtype, &x);
            for options in orders(caps, n) {
                let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options);
                let what = format!("{op} {dtype} {n} {threads} {caps:?}");
                assert_eq!(found[0], sums[..n].repeat(2), "{what}");
                assert_eq!(found[1], sums[1..].repeat(2), "{what}");
                assert_eq!(found[2], vec![sums[n]; 2 * threads], "{what}");
            }
        }
    });
}

/// Digits of every integer dtype, of few bits and of as many as there may be.
#[test]
fn ranks_are_stable() {
    let ints = DType::ALL.iter().copied().filter(|dtype| dtype.is_int());
    let cases: Vec<(DType, u32)> =
        ints.flat_map(|dtype| [1, 3, 8].map(|bits| (dtype, bits))).collect();
    on_all(&cases, (1, 1), |(dtype, bits), threads, caps| {
        if threads << bits > 1 << 14 {
            return;
        }
        let recorded = record("rank", &setting(caps, &[dtype]), |k: &Lang| {
            let n = k.size("n");
            let (x, place) = (k.input("x", [n]), k.output("place", [n], DType::I32));
            k.groups([1], threads, |g, _| {
                g.rank(n, bits, |i| x.at(i), |i, at| place.set(i, at.cast(DType::I32)));
            });
        });
        let recorded = recorded.unwrap();
        for n in sizes(threads) {
            let x: Vec<f64> = (0..n).map(|i| ((i * 37 + i / 5) % 101) as f64).collect();
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|&i| x[i] as u64 & ((1 << bits) - 1));
            let mut places = vec![0.0; n];
            for (place, &i) in order.iter().enumerate() {
                places[i] = place as f64;
            }
            for options in orders(caps, n) {
                let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options);
                assert_eq!(found[0], places, "{dtype} {bits} {n} {threads} {caps:?}");
            }
        }
    });
}

const COUNTERS: [DType; 4] = [DType::I32, DType::U32, DType::I64, DType::U64];

#[test]
fn lists_hold_what_all_groups_appended() {
    on_all(&COUNTERS, (1, 1), |dtype, threads, caps| {
        let recorded = record("append", &setting(caps, &[DType::I32]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let list = k.output("list", [n * 3], DType::I32);
            let count = k.output_filled("count", [1], dtype, 0);
            k.groups([3], threads, |g, [group]| {
                let emit = |i: Val<'_>, at| list.set(at, (group * n + i).cast(DType::I32));
                g.append(&count, n, |i| x.at(i).gt(0), emit);
            });
        });
        let recorded = recorded.unwrap();
        for n in sizes(threads) {
            let x = numbers(Max, DType::I32, n);
            let chosen = (0..3 * n).filter(|i| x[i % n] > 0.0).map(|i| i as f64);
            let chosen: Vec<f64> = chosen.collect();
            for options in orders(caps, n) {
                let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options);
                assert_eq!(found[1], [chosen.len() as f64], "{dtype} {n} {threads} {caps:?}");
                let mut list = found[0][..chosen.len()].to_vec();
                list.sort_by(f64::total_cmp);
                assert_eq!(list, chosen, "{dtype} {n} {threads} {caps:?}");
            }
        }
    });
}

/// Shared arrays that threads read elements of others from, again and again.
#[test]
fn shared_arrays_are_exchanged() {
    on_all(DType::ALL, (1, 1), |dtype, threads, caps| {
        let n = 2 * threads + 1;
        let recorded = record("reverse", &setting(caps, &[dtype]), |k: &Lang| {
            let turns = k.size("turns");
            let (x, y) = (k.input("x", [n]), k.output("y", [n], dtype));
            k.groups([1], threads, |g, _| {
                let [one, other] = [0; 2].map(|_| g.shared([n], dtype));
                g.each(n, |i| one.set(i, x.at(i)));
                k.for_each(turns, |_| {
                    g.each(n, |i| other.set(i, one.at(k.index(n as i64 - 1) - i)));
                    g.each(n, |i| one.set(i, other.at((i + 1) % n)));
                });
                g.each(n, |i| y.set(i, one.at(i)));
            });
        });
        let recorded = recorded.unwrap();
        for turns in [0, 1, 3] {
            let x = numbers(Max, dtype, n);
            let mut expected = x.clone();
            for _ in 0..turns {
                expected.reverse();
                expected.rotate_left(1);
            }
            for options in orders(caps, turns) {
                let found = run(&recorded, &[turns as i64], std::slice::from_ref(&x), &options);
                assert_eq!(found[0], expected, "{dtype} {turns} {threads} {caps:?}");
            }
        }
    });
}

/// One thread takes a ticket and adds to shared storage; all threads leave the loop when the ticket says so.
#[test]
fn all_threads_are_told_what_one_found() {
    on_all(&COUNTERS, (1, 1), |dtype, threads, caps| {
        let recorded = record("tickets", &setting(caps, &[DType::I32]), |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n]);
            let next = k.output_filled("next", [1], dtype, 0);
            let owners = k.output("owners", [n], DType::I32);
            let told = k.output_filled("told", [n, k.index(threads as i64)], DType::I64, -1);
            let sums = k.output("sums", [3, threads], DType::I32);
            k.groups([3], threads, |g, [group]| {
                let sum = g.shared([1], DType::I32);
                g.each(1, |_| sum.set(0, 0));
                k.for_each(n + 1, |_| {
                    let ticket = next.fetch(Add, 0, 1).cast(DType::I64);
                    k.break_if(ticket.ge(n));
                    owners.set(ticket, group.cast(DType::I32));
                    g.each(threads, |i| {
                        told.set([ticket, i], ticket);
                        sum.atomic(Add, 0, x.at(ticket));
                    });
                });
                let all = g.reduce(Max, 1, |_| sum.at(0));
                g.each(threads, |i| sums.set([group, i], all));
            });
        });
        let recorded = recorded.unwrap();
        for n in [0usize, 1, 7] {
            let x = numbers(Max, DType::I32, n);
            for options in orders(caps, n) {
                let found = run(&recorded, &[n as i64], std::slice::from_ref(&x), &options);
                let what = format!("{dtype} {n} {threads} {caps:?}");
                assert_eq!(found[0], [n as f64 + 3.0], "{what}");
                let told = (0..n * threads).map(|at| (at / threads) as f64);
                assert_eq!(found[2], told.collect::<Vec<_>>(), "{what}");
                for group in 0..3 {
                    let own = (0..n).filter(|&ticket| found[1][ticket] == group as f64);
                    let sum = own.map(|ticket| x[ticket]).sum::<f64>() * threads as f64;
                    assert_eq!(
                        found[3][group * threads..][..threads],
                        vec![sum; threads],
                        "{what}"
                    );
                }
            }
        }
    });
}

/// One thread adds up what the group keeps, again and again, and all threads get the sum.
#[test]
fn values_of_one_thread_are_broadcast() {
    let cases: Vec<_> =
        operations().into_iter().filter(|x| x.0 == Add || x.1 == DType::Bool).collect();
    on_all(&cases, (1, 1), |(op, dtype), threads, caps| {
        let recorded = record("broadcast", &setting(caps, &[dtype]), |k: &Lang| {
            let [n, turns] = k.sizes(["n", "turns"]);
            let x = k.input("x", [n]);
            let last = k.output_filled("last", [2], dtype, 0);
            let y = k.output("y", [k.index(2), turns, k.index(threads as i64)], dtype);
            k.groups([2], threads, |g, [group]| {
                let kept = g.shared([1], dtype);
                g.elect(|| kept.set(0, k.value(0, dtype)));
                k.for_each(turns, |turn| {
                    let sum = g.broadcast(dtype, || {
                        let sum = k.fold(n, kept.at(0), |sum, i| sum.binary(op, x.at(i)));
                        kept.set(0, sum);
                        sum
                    });
                    g.each(threads, |i| y.set([group, turn, i], sum));
                    g.elect(|| last.set(group, kept.at(0)));
                });
            });
        });
        let recorded = recorded.unwrap();
        for (n, turns) in [(0, 2), (threads.min(40), 0), (3, 1), (5, 3)] {
            let x = numbers(op, dtype, n);
            let all: Vec<f64> =
                (0..=turns).map(|turn| prefixes_of(op, dtype, &x.repeat(turn))).collect();
            for options in orders(caps, n) {
                let sizes = [n, turns].map(|x| x as i64);
                let found = run(&recorded, &sizes, std::slice::from_ref(&x), &options);
                let what = format!("{op} {dtype} {n} {turns} {threads} {caps:?}");
                assert_eq!(found[0], [all[turns]; 2], "{what}");
                let sums = all[1..].iter().flat_map(|&sum| vec![sum; threads]);
                assert_eq!(found[1], sums.collect::<Vec<_>>().repeat(2), "{what}");
            }
        }
    });
}

/// The combination of the numbers, where 0 is the first one.
fn prefixes_of(op: BinaryOp, dtype: DType, x: &[f64]) -> f64 {
    let zero = Scalar::from_i64(dtype, 0);
    x.iter().fold(zero, |sum, &x| op.eval(sum, Scalar::from_f64(dtype, x))).to_f64()
}

/// Tiles are copied to shared storage, from there to that of a thread or of the group, and out of it. The last ones are cut.
#[test]
fn tiles_are_copied() {
    on_all(DType::ALL, (1, 1), |dtype, threads, caps| {
        let recorded = record("copy", &setting(caps, &[dtype]), |k: &Lang| {
            let [n, m] = k.sizes(["n", "m"]);
            let (x, y) = (k.input("x", [n, m]), k.output("y", [n, m], dtype));
            let z = k.output("z", [n, m], dtype);
            k.groups(x.tiles([3, 7]), threads, |g, [i, j]| {
                let [one, other] = [0; 2].map(|_| g.shared([3, 7], dtype));
                g.copy(&x.tile([i, j], [3, 7]), &one);
                g.copy(&one, &other);
                g.copy(&other, &y.tile([i, j], [3, 7]));
                // A row for each of a tile.
                let rows = z.tile([i, j], [3, 7]);
                k.for_each(3, |row| g.copy(&one.row(row), &rows.row(row)));
            });
        });
        let recorded = recorded.unwrap();
        for [n, m] in [[1, 1], [3, 7], [4, 20]] {
            let x = numbers(Max, dtype, n * m);
            for options in orders(caps, n) {
                let sizes = [n, m].map(|x| x as i64);
                let found = run(&recorded, &sizes, std::slice::from_ref(&x), &options);
                assert_eq!(found, [x.clone(), x.clone()], "{dtype} {n} {m} {threads} {caps:?}");
            }
        }
    });
}

/// Closures of one thread have no primitives of a group.
#[test]
fn primitives_of_a_group_are_refused_in_one_thread() {
    for caps in [crate::ir::interp::caps(), gpu(64, 32)] {
        let fails = |write: for<'k> fn(&'k Lang, Group<'k>)| {
            let recorded = record("wrong", &setting(&caps, &[]), |k: &Lang| {
                let y = k.output("y", [1], DType::F32);
                k.groups([1], 64, |g, _| g.elect(|| write(k, g)));
                y.set(0, 0);
            });
            let error = recorded.unwrap_err();
            assert!(error.site.file.ends_with("primitives.rs"), "{error}");
            error.to_string()
        };
        assert!(fails(|_, g| g.elect(|| {})).contains("`elect` is of a whole group"));
        let broadcast: for<'k> fn(&'k Lang, Group<'k>) =
            |k, g| _ = g.broadcast(DType::I32, || k.value(1, DType::I32));
        assert!(fails(broadcast).contains("`broadcast` is of a whole group"));
        let reduce: for<'k> fn(&'k Lang, Group<'k>) =
            |_, g| _ = g.broadcast(DType::I64, || g.reduce(Add, 3, |i| i));
        assert!(fails(reduce).contains("is of a whole group"));
    }
}

#[test]
fn look_back_with_groups_of_every_size() {
    let dtypes = [DType::F32, DType::F64, DType::I32, DType::U32, DType::I64, DType::U64];
    let ops = [Add, Max, Min];
    let cases: Vec<_> = dtypes.iter().flat_map(|&dtype| ops.map(|op| (op, dtype))).collect();
    on_all(&cases, (1, 4), |(op, dtype), threads, caps| {
        let every: Silent = |tile| tile.lt(0);
        let some: Silent = |tile| (tile % 3).eq(1);
        check(scan_by(threads, op, true, every), op, dtype, caps, &[1, 25]);
        check(scan_by(threads, op, false, some), op, dtype, caps, &[25]);
    });
}

#[test]
fn queues_with_groups_of_every_size() {
    on_all(&[(40, 80), (40, 15)], (1, 2), |(nodes, capacity), threads, caps| {
        tree(caps, threads, nodes, capacity);
    });
}

/// Products, maps and rows of matrices that the threads of a group hold together.
#[test]
fn matrices_with_groups_of_every_size() {
    let dtypes = DType::ALL.iter().copied().filter(|&dtype| dtype != DType::Bool);
    let tiles = [[1, 1], [1, 16], [16, 1], [16, 16], [32, 8]];
    let cases: Vec<_> = dtypes.flat_map(|dtype| tiles.map(|tile| (dtype, tile))).collect();
    on_all(&cases, (1, 5), |(dtype, tile @ [rows, columns]), threads, caps| {
        let setting = setting(caps, &[dtype; 2]);
        let recorded = record("matrix", &setting, |k: &Lang| {
            let [m, depth] = k.sizes(["m", "depth"]);
            let (x, w) = (k.input("x", [m, depth]), k.input("w", [depth, k.index(columns as i64)]));
            let shape = [m, k.index(columns as i64)];
            let [y, z] = ["y", "z"].map(|name| k.output(name, shape, dtype));
            let of_rows = k.output("rows", [m], dtype);
            k.groups([m.div_ceil(rows)], threads, |g, [group]| {
                let top = group * rows;
                let sums = g.matrix(tile, dtype);
                sums.add_product(
                    depth,
                    |i, step| x.at_or([top + i, step], 0),
                    |step, j| w.at_or([step, j], 0),
                );
                sums.map(|_, x| x + 1);
                let most = sums.reduce_rows(Max);
                let all = most.map([&sums.reduce_rows(Add)], |most, [sum]| most + sum);
                sums.map_rows([&most], |_, x, [most]| most - x);
                let turned = g.matrix([rows, columns], dtype);
                turned.add_product_of(&sums, dtype, |step, j| {
                    step.eq(k.index(columns as i64 - 1) - j).cast(dtype)
                });
                sums.each([&all], |[i, j], x, [all]| {
                    k.when((top + i).lt(m), || {
                        y.set([top + i, j], x);
                        k.when(j.eq(0), || of_rows.set(top + i, all));
                    });
                });
                turned.each([], |[i, j], x, []| z.set_if((top + i).lt(m), [top + i, j], x));
            });
        });
        let recorded = recorded.unwrap();
        for [m, depth] in [[1, 1], [rows + 1, 5], [2 * rows, 2]] {
            let bits = |n: usize, by: usize| (0..n).map(move |i| ((i * by + i / 3) % 5 % 2) as f64);
            let (x, w) = (
                bits(m * depth, 3).collect::<Vec<_>>(),
                bits(depth * columns, 7).collect::<Vec<_>>(),
            );
            let (mut y, mut z, mut all) = (Vec::new(), Vec::new(), Vec::new());
            for i in 0..m {
                let sum = |j: usize| {
                    (0..depth).map(|s| x[i * depth + s] * w[s * columns + j]).sum::<f64>()
                };
                let row: Vec<f64> = (0..columns).map(|j| sum(j) + 1.0).collect();
                let most = row.iter().copied().fold(0.0, f64::max);
                let total = Scalar::from_i64(dtype, (most + row.iter().sum::<f64>()) as i64);
                all.push(total.to_f64());
                y.extend(row.iter().map(|x| most - x));
                z.extend(row.iter().rev().map(|x| most - x));
            }
            for options in orders(caps, depth) {
                let found =
                    run(&recorded, &[m as i64, depth as i64], &[x.clone(), w.clone()], &options);
                let what = format!("{dtype} {tile:?} {m} {depth} {threads} {caps:?}");
                assert_eq!(found[0], y, "{what}");
                assert_eq!(found[1], z, "{what}");
                assert_eq!(found[2], all, "{what}");
            }
        }
    });
}
