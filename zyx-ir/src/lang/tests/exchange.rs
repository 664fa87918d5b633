//! Exchanges within groups, and pipelines of tiles, on devices of many kinds.

use super::super::*;
use super::{gpu, options, run, setting};
use crate::ops::BinaryOp;

fn devices() -> Vec<Caps> {
    let mut devices = vec![crate::ir::interp::caps(), Caps { threads: 8, ..gpu(64, 0) }];
    devices.push(Caps { branched_barriers: false, ..gpu(64, 4) });
    for max_local in [1, 2, 8, 64, 1024] {
        devices.extend([0, 1, 4, 8, 16, 32, 64, 128].map(|subgroup| gpu(max_local, subgroup)));
    }
    devices
}

fn numbers(n: usize, dtype: DType) -> Vec<f64> {
    let most = if dtype == DType::Bool { 2 } else { 101 };
    (0..n).map(|i| ((i * 37 + 11) % most) as f64).collect()
}

#[test]
fn values_are_transposed_rotated_and_permuted() {
    let shapes = [(1, 1), (3, 2), (4, 8), (16, 16), (7, 30), (64, 32)];
    for (number, caps) in devices().into_iter().enumerate() {
        for (turn, (rows, cols)) in shapes.into_iter().enumerate() {
            let (n, dtype) = (rows * cols, DType::ALL[(number + turn) % DType::ALL.len()]);
            let threads = [1, 32, 1024, 64, 256][(number + turn) % 5];
            let write = |k: &Lang| {
                let [groups, by] = k.sizes(["groups", "by"]);
                let shape = [groups, k.index(n as i64)];
                let (x, at) = (k.input("x", shape), k.input("at", [k.index(n as i64)]));
                let y = ["transposed", "rotated", "permuted"].map(|y| k.output(y, shape, dtype));
                k.groups([groups], threads, |g, [group]| {
                    let (rows, cols) = (rows as i64, cols as i64);
                    let value = |i| x.at([group, i]);
                    let emit = |i, x| y[0].set([group, i], x);
                    g.exchange(n, dtype, value, |i| i % rows * cols + i / rows, emit);
                    g.exchange(n, dtype, value, |i| (i + by) % n, |i, x| y[1].set([group, i], x));
                    g.exchange(n, dtype, value, |i| at.at(i), |i, x| y[2].set([group, i], x));
                });
            };
            let recorded = record("exchange", &setting(&caps, &[dtype, DType::I32]), write);
            let recorded = recorded.unwrap();
            let x = numbers(2 * n, dtype);
            // Places outside are told by -1 and by numbers from `n` on.
            let at: Vec<f64> = (0..n).map(|i| ((i * 29 + 5) % (n + 2)) as f64 - 1.0).collect();
            let by = n / 3;
            let options = options(&caps, (turn > 1).then_some(n as u64));
            let y = run(&recorded, &[2, by as i64], &[x.clone(), at.clone()], &options);
            for i in 0..2 * n {
                let (first, i) = (i / n * n, i % n);
                let is = |of: usize, expected: f64| {
                    assert_eq!(y[of][first + i], expected, "{of} {i} of {n} {dtype} {caps:?}");
                };
                is(0, x[first + i % rows * cols + i / rows]);
                is(1, x[first + (i + by) % n]);
                let from = at[i];
                let inside = from >= 0.0 && from < n as f64;
                is(2, if inside { x[first + from as usize] } else { 0.0 });
            }
        }
    }
}

#[test]
fn few_values_are_shuffled_without_storage() {
    let ops = |threads: usize, n: usize| {
        let write = |k: &Lang| {
            let groups = k.size("groups");
            let shape = [groups, k.index(n as i64)];
            let (x, y) = (k.input("x", shape), k.output("y", shape, DType::F32));
            k.groups([groups], threads, |g, [group]| {
                let value = |i| x.at([group, i]);
                g.exchange(n, DType::F32, value, |i| (i + 1) % n, |i, x| y.set([group, i], x));
            });
        };
        let recorded = record("rotated", &setting(&gpu(1024, 32), &[DType::F32]), write).unwrap();
        let text = recorded.kernel().to_string();
        ["shuffle", "shared", "barrier"].map(|word| text.contains(word))
    };
    assert_eq!(ops(64, 32), [true, false, false]);
    assert_eq!(ops(64, 64), [false, true, true]);
}

/// Of each step the sum of products of neighbours, and products of other places.
fn products(
    stages: usize,
    shape: [usize; 2],
    steps: Option<usize>,
    threads: usize,
) -> impl Fn(&Lang) {
    move |k: &Lang| {
        let [groups, n, first] = k.sizes(["groups", "n", "first"]);
        let [rows, cols] = shape.map(|x| k.index(x as i64));
        let n = steps.map_or(n, |n| k.index(n as i64));
        let x = k.input("x", [groups, first + n, rows, cols]);
        let w = k.input("w", [first + n, rows, cols]);
        let y = k.output("y", [groups, n, rows, cols], DType::F32);
        let total = k.output("total", [groups], DType::F32);
        k.groups([groups], threads, |g, [group]| {
            let sum = k.var(k.value(0, DType::F32));
            let load = |step, [i, j]: [_; 2]| {
                let [x, w] = [x.at([group, step, i, j]), w.at([step, i, j])];
                (x.cast(DType::F32), w.cast(DType::F32))
            };
            g.pipeline(stages, first..first + n, shape, load, |step, tiles| {
                let [x, w] = [&tiles[0], &tiles[1]];
                let part = g.reduce(BinaryOp::Add, shape[1], |j| x.row(0).at(j) * w.row(0).at(j));
                sum.set(sum.get() + part);
                g.each(shape, |[i, j]| {
                    let other = x.at([rows - 1 - i, (j + 1) % cols]);
                    y.set([group, step - first, i, j], other * w.at([i, j]));
                });
            });
            total.set(group, sum.get());
        });
    }
}

#[test]
fn pipelines_have_the_tile_of_each_step() {
    for (number, caps) in devices().into_iter().enumerate() {
        for stages in 1..5 {
            let shape = [[1, 24], [4, 16], [3, 43], [2, 300]][(number + stages) % 4];
            let threads = [64, 32, 1024][(number + stages) % 3];
            let numel = shape[0] * shape[1];
            for n in [0, 1, 2, 3, 7] {
                let next = |by| DType::ALL[(number + stages + by * n) % DType::ALL.len()];
                let dtypes = [next(1), next(3)];
                let steps = (stages + n).is_multiple_of(2).then_some(n);
                let write = products(stages, shape, steps, threads);
                let recorded = record("products", &setting(&caps, &dtypes), write).unwrap();
                let first = n % 3;
                let x = numbers(2 * (first + n) * numel, dtypes[0]);
                let w = numbers((first + n) * numel, dtypes[1]);
                let options = options(&caps, (n > 1).then_some(n as u64));
                let inputs = [x.clone(), w.clone()];
                let sizes = [2, n as i64, first as i64];
                let y = run(&recorded, &sizes, &inputs, &options);
                for group in 0..2 {
                    let mut sum = 0.0;
                    for step in 0..n {
                        let at = |group: usize| (group * (first + n) + first + step) * numel;
                        let (x, w) = (&x[at(group)..][..numel], &w[at(0)..][..numel]);
                        let [rows, cols] = shape;
                        sum += (0..cols).map(|j| x[j] * w[j]).sum::<f64>();
                        for (place, w) in w.iter().enumerate() {
                            let (i, j) = (place / cols, place % cols);
                            let expected = x[(rows - 1 - i) * cols + (j + 1) % cols] * w;
                            let found = y[0][(group * n + step) * numel + place];
                            assert_eq!(found, expected, "{stages} {n} {shape:?} {caps:?}");
                        }
                    }
                    assert_eq!(y[1][group], sum, "{stages} {n} {shape:?} {caps:?}");
                }
            }
        }
    }
}

#[test]
fn two_stages_have_one_barrier_a_step() {
    let barriers = |stages: usize| {
        let write = |k: &Lang| {
            let n = k.size("n");
            let x = k.input("x", [n, k.index(64)]);
            let y = k.output("y", [n, k.index(64)], DType::F32);
            k.groups([k.index(1)], 64, |g, _| {
                g.pipeline(
                    stages,
                    n,
                    [64],
                    |step, [i]| x.at([step, i]),
                    |step, tiles| {
                        g.each(64, |i| y.set([step, i], tiles[0].at(63 - i)));
                    },
                );
            });
        };
        let recorded = record("reversed", &setting(&gpu(64, 0), &[DType::F32]), write).unwrap();
        let is_barrier = |op: &&Op| matches!(op, Op::Barrier { .. });
        recorded.kernel().ops().iter().filter(is_barrier).count()
    };
    // Of one stage before what a step computes and behind it; of two before the first step, behind each, and in the end.
    assert_eq!((barriers(1), barriers(2)), (2, 3));
}

#[test]
fn mistakes_in_pipelines_are_told() {
    let fails = |write: &dyn Fn(&Lang)| {
        record("wrong", &setting(&gpu(64, 0), &[DType::F32]), |k: &Lang| write(k)).unwrap_err()
    };
    let error = fails(&|k| {
        let x = k.input("x", [k.size("n")]);
        let stages = k.parameter("stages", &[0]);
        k.groups([1], 64, |g, _| g.pipeline(stages, 4, [8], |_, [i]| x.at(i), |_, _| {}));
    });
    assert!(error.reason.contains("1 to 16 stages"), "{error}");
    let error = fails(&|k| {
        let x = k.input("x", [k.size("n")]);
        k.groups([1], 64, |g, _| {
            g.exchange(8, DType::I32, |i| x.at(i), |i| i, |_, _| {});
        });
    });
    assert!(error.reason.contains("cast it"), "{error}");
}
