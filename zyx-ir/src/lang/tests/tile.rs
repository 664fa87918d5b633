//! Matrices of a group on devices of many kinds.

use super::super::*;
use super::{devices, gpu, run, setting};
use crate::DTypeSet;
use crate::ir::interp::Options;
use crate::ops::BinaryOp;

fn with_mma(max_local: usize) -> Caps {
    let mma = DTypeSet::of(&[DType::F16, DType::BF16]);
    Caps { mma, ..gpu(max_local, 32) }
}

fn numbers(n: usize, by: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * by + 3) % 7) as f64 - 3.0).collect()
}

fn product(tile: [usize; 2], threads: usize) -> impl Fn(&Lang) {
    move |k: &Lang| {
        let [m, n, depth] = k.sizes(["m", "n", "depth"]);
        let x = k.input("x", [m, depth]);
        let w = k.input("w", [depth, n]);
        let y = k.output("y", [m, n], DType::F32);
        k.groups([m.div_ceil(tile[0]), n.div_ceil(tile[1])], threads, |g, [row, column]| {
            let sums = g.matrix(tile, DType::F32);
            let (top, left) = (row * tile[0], column * tile[1]);
            sums.add_product(
                depth,
                |i, step| x.at_or([top + i, step], 0.0),
                |step, j| w.at_or([step, left + j], 0.0),
            );
            sums.each([], |[i, j], sum, []| {
                let (i, j) = (top + i, left + j);
                y.set_if(i.lt(m) & j.lt(n), [i, j], sum);
            });
        });
    }
}

#[test]
fn products_of_tiles_on_every_device() {
    let mut devices = devices();
    devices.extend([with_mma(64), with_mma(128)]);
    for caps in devices {
        for dtype in [DType::F16, DType::BF16, DType::F32] {
            if caps.mma != DTypeSet::NONE && dtype == DType::F32 {
                continue;
            }
            for tile in [[16, 16], [64, 32]] {
                let recorded = record("product", &setting(&caps, &[dtype; 2]), product(tile, 64));
                let recorded = recorded.unwrap();
                for [m, n, depth] in [[1, 1, 1], [17, 5, 33], [64, 40, 64]] {
                    let (x, w) = (numbers(m * depth, 5), numbers(depth * n, 3));
                    let sizes = [m, n, depth].map(|x| x as i64);
                    let y = run(&recorded, &sizes, &[x.clone(), w.clone()], &Options::default());
                    for i in 0..m {
                        for j in 0..n {
                            let sum: f64 =
                                (0..depth).map(|s| x[i * depth + s] * w[s * n + j]).sum();
                            assert_eq!(y[0][i * n + j], sum, "{i} {j} {m} {n} {depth} {caps:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Accesses of arguments by so many elements side by side.
fn wide_loads(recorded: &Recorded) -> Vec<u8> {
    let kernel = recorded.kernel();
    let wide = kernel.iter().filter_map(|(_, op, ty)| match op {
        Op::Load { buf, .. } => matches!(kernel.op(buf), Op::Param { .. }).then_some(ty.lanes),
        _ => None,
    });
    wide.collect()
}

#[test]
fn factors_of_whole_vectors_are_loaded_by_vectors() {
    let tile = [64, 32];
    for caps in [with_mma(32), with_mma(128)] {
        let of = |aligned| {
            let setting = Setting { aligned, ..setting(&caps, &[DType::F16; 2]) };
            record("product", &setting, product(tile, 128)).unwrap()
        };
        assert!(wide_loads(&of(false)).iter().all(|&lanes| lanes == 1));
        let recorded = of(true);
        let lanes = wide_loads(&recorded);
        assert!(lanes.contains(&4) && lanes.contains(&8) && !lanes.contains(&1), "{lanes:?}");
        for [m, n, depth] in [[1, 8, 8], [17, 40, 24], [64, 32, 64], [70, 72, 136], [3, 8, 0]] {
            let (x, w) = (numbers(m * depth, 5), numbers(depth * n, 3));
            let sizes = [m, n, depth].map(|x| x as i64);
            for seed in [None, Some(1)] {
                let options = Options { shuffle: seed, ..Options::default() };
                let y = run(&recorded, &sizes, &[x.clone(), w.clone()], &options);
                for i in 0..m {
                    for j in 0..n {
                        let sum: f64 = (0..depth).map(|s| x[i * depth + s] * w[s * n + j]).sum();
                        assert_eq!(y[0][i * n + j], sum, "{i} {j} {m} {n} {depth}");
                    }
                }
            }
        }
    }
}

/// The product of a product with so many columns and another factor; the first one before or while the factor is loaded.
fn product_of_product(columns: usize, after: bool) -> impl Fn(&Lang) {
    move |k: &Lang| {
        let (n, depth) = (k.size("n"), k.size("depth"));
        let across = k.index(columns as i64);
        let (x, w) = (k.input("x", [n, depth]), k.input("w", [depth, across]));
        let v = k.input("v", [across, k.index(32)]);
        let y = k.output("y", [n, k.index(32)], DType::F32);
        k.groups([n.div_ceil(64)], 64, |g, [part]| {
            let top = part * 64;
            let sums = g.matrix([64, 32], DType::F32);
            let first = || {
                let first = g.matrix([64, columns], DType::F32);
                let x = |i, step| x.at_or([top + i, step], 0.0);
                first.add_product(depth, x, |step, j| w.at_or([step, j], 0.0));
                first
            };
            let dtype = x.dtype();
            if after {
                sums.add_product_after(columns, dtype, first, |step, j| v.at_or([step, j], 0.0));
            } else {
                sums.add_product_of(&first(), dtype, |step, j| v.at_or([step, j], 0.0));
            }
            sums.each([], |[i, j], sum, []| y.set_if((top + i).lt(n), [top + i, j], sum));
        });
    }
}

#[test]
fn products_of_products_on_every_device() {
    let caps = [gpu(64, 0), gpu(64, 32), with_mma(64), Setting::default().caps];
    for caps in caps {
        for (columns, after) in [8, 16, 64].into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let setting = setting(&caps, &[DType::F16; 3]);
            let recorded = record("products", &setting, product_of_product(columns, after));
            let recorded = recorded.unwrap();
            let (n, depth) = (70, 5);
            let (x, w) = (numbers(n * depth, 5), numbers(depth * columns, 3));
            let v = numbers(columns * 32, 11);
            let inputs = [x.clone(), w.clone(), v.clone()];
            let y = run(&recorded, &[n as i64, depth as i64], &inputs, &Options::default());
            for (i, c) in (0..n).flat_map(|i| (0..32).map(move |c| (i, c))) {
                let first = |j: usize| -> f64 {
                    (0..depth).map(|s| x[i * depth + s] * w[s * columns + j]).sum()
                };
                let sum: f64 = (0..columns).map(|j| first(j) * v[j * 32 + c]).sum();
                assert_eq!(y[0][i * 32 + c], sum, "{i} {c} of {columns} {after} {caps:?}");
            }
        }
    }
}

#[test]
fn factors_that_do_not_fit_are_refused() {
    for columns in [0, 24] {
        let caps = with_mma(64);
        let write = product_of_product(columns, true);
        let error = record("products", &setting(&caps, &[DType::F16; 3]), write).unwrap_err();
        assert!(error.reason.contains("power of two"), "{error}");
    }
}

/// Attention of one head: blocks of rows, running maxima and sums.
fn attention(k: &Lang) {
    const ROWS: usize = 32;
    const BLOCK: usize = 16;
    const WIDTH: usize = 16;
    let [n, keys] = k.sizes(["n", "keys"]);
    let [q, key, value] = [("q", n), ("k", keys), ("v", keys)]
        .map(|(name, n)| k.input(name, [n, k.index(WIDTH as i64)]));
    let y = k.output("y", [n, k.index(WIDTH as i64)], DType::F32);
    k.groups([n.div_ceil(ROWS)], 64, |g, [block]| {
        let top = block * ROWS;
        let sums = g.matrix([ROWS, WIDTH], DType::F32);
        let (most, total) = (sums.rows(f64::NEG_INFINITY), sums.rows(0.0));
        k.for_each(keys.div_ceil(BLOCK), |turn| {
            let first = turn * BLOCK;
            let scores = g.matrix([ROWS, BLOCK], DType::F32);
            scores.add_product(
                WIDTH,
                |i, step| q.at_or([top + i, step], 0.0),
                |step, j| key.at_or([first + j, step], 0.0),
            );
            scores.map(|[_, j], x| (first + j).lt(keys).select(x, f64::NEG_INFINITY));
            let now = most.map([&scores.reduce_rows(BinaryOp::Max)], |x, [y]| x.maximum(y));
            let factor = most.map([&now], |before, [now]| (before - now).exp());
            scores.map_rows([&now], |_, x, [most]| (x - most).exp());
            total.set(
                &total.map([&factor, &scores.reduce_rows(BinaryOp::Add)], |x, [f, y]| x * f + y),
            );
            sums.map_rows([&factor], |_, x, [factor]| x * factor);
            sums.add_product_of(&scores, value.dtype(), |step, j| {
                value.at_or([first + step, j], 0.0)
            });
            most.set(&now);
        });
        sums.each([&total], |[i, j], x, [total]| {
            y.set_if((top + i).lt(n), [top + i, j], x / total);
        });
    });
}

#[test]
fn attention_on_every_device() {
    let mut devices = devices();
    devices.extend([with_mma(64)]);
    for caps in devices {
        let dtype = DType::F16;
        let of = |aligned| Setting { aligned, ..setting(&caps, &[dtype; 3]) };
        let recorded = record("attention", &of(caps.mma != DTypeSet::NONE), attention).unwrap();
        for [n, keys] in [[1, 1], [40, 37]] {
            let inputs = [numbers(n * 16, 5), numbers(keys * 16, 3), numbers(keys * 16, 11)];
            let small = inputs.map(|x| x.iter().map(|x| x / 4.0).collect::<Vec<f64>>());
            let y = run(&recorded, &[n as i64, keys as i64], &small, &Options::default());
            let [q, k, v] = &small;
            for i in 0..n {
                let score = |j: usize| (0..16).map(|s| q[i * 16 + s] * k[j * 16 + s]).sum::<f64>();
                let weights: Vec<f64> = (0..keys).map(|j| score(j).exp()).collect();
                let total: f64 = weights.iter().sum();
                for c in 0..16 {
                    let sum: f64 = (0..keys).map(|j| weights[j] * v[j * 16 + c]).sum();
                    let found = y[0][i * 16 + c];
                    assert!((found - sum / total).abs() < 2e-3, "{found} {} {caps:?}", sum / total);
                }
            }
        }
    }
}
