//! Primitives of groups that no kernel of the gallery has, against what the host computes.

use zyx_core::kernel::{BinaryOp::Add, Kernel, Lang};
use zyx_core::{DType, Device, Result, Tensor};

/// Drivers for CPUs compile few threads in less time.
fn threads(k: &Lang) -> usize {
    if k.caps().multiprocessors() > 0 { 64 } else { 4 }
}

/// `n` values of each group, transposed and shifted: as many as a subgroup may have threads, and more than the group has.
pub(super) fn exchanges(device: &Device) -> Result<()> {
    for [rows, cols] in [[2, 2], [24, 10]] {
        let n = rows * cols;
        let kernel = Kernel::new("exchange", move |k: &Lang| {
            let groups = k.size("groups");
            let shape = [groups, k.index(n as i64)];
            let x = k.input("x", shape);
            let y = ["transposed", "shifted"].map(|name| k.output(name, shape, x.dtype()));
            k.groups([groups], threads(k), |g, [group]| {
                let value = |i| x.at([group, i]);
                let [transposed, shifted] = &y;
                g.exchange(
                    n,
                    x.dtype(),
                    value,
                    |i| i % rows * cols + i / rows,
                    |i, x| transposed.set([group, i], x),
                );
                // The last places take from beyond the end, which gives 0.
                g.exchange(n, x.dtype(), value, |i| i + 3, |i, x| shifted.set([group, i], x));
            });
        });
        let at = |group: usize, i: usize| (group * 1000 + i + 1) as i32;
        let of = |f: &dyn Fn(usize, usize) -> i32| -> Vec<i32> {
            (0..3).flat_map(|group| (0..n).map(move |i| f(group, i))).collect()
        };
        let x = Tensor::from_slice(&of(&at), [3, n], device)?;
        let found = kernel.call_all(&[&x])?;
        let transposed = of(&|group, i| at(group, i % rows * cols + i / rows));
        assert_eq!(found[0].to_vec::<i32>()?, transposed, "{rows} x {cols}");
        let shifted = of(&|group, i| if i + 3 < n { at(group, i + 3) } else { 0 });
        assert_eq!(found[1].to_vec::<i32>()?, shifted, "{rows} x {cols}");
    }
    Ok(())
}

/// The place of the first number of a row that is not above 0, which one thread finds, cuts tiles that the group copies.
pub(super) fn elections(device: &Device) -> Result<()> {
    const TILE: usize = 16;
    let kernel = Kernel::new("elections", move |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], x.dtype());
        let ends = k.output("ends", [rows], DType::I32);
        k.groups([rows], threads(k), |g, [row]| {
            let end = g.broadcast(ends.dtype(), || {
                let end = k.var(cols.cast(ends.dtype()));
                k.for_each(cols, |i| {
                    k.when(x.at([row, i]).le(0), || end.set(i.cast(ends.dtype())));
                    k.break_if(x.at([row, i]).le(0));
                });
                end.get()
            });
            let kept = g.shared([1, TILE], x.dtype());
            k.for_each(cols.div_ceil(TILE), |tile| {
                g.copy(&x.tile([row, tile], [1, TILE]), &kept);
                g.each(TILE, |i| {
                    let is_cut = (tile * TILE + i).ge(end.cast(DType::I64));
                    kept.set_if(is_cut, [k.index(0), i], 0);
                });
                g.copy(&kept, &y.tile([row, tile], [1, TILE]));
            });
            g.elect(|| ends.set(row, end));
        });
    });
    for cols in [1, TILE, 3 * TILE - 5] {
        let number = |i: usize| (i * 7919 % 41) as i32 - 1;
        let x: Vec<i32> = (0..3 * cols).map(number).collect();
        let rows = || x.chunks(cols);
        let end = |row: &[i32]| row.iter().position(|&x| x <= 0).unwrap_or(cols);
        let cut = |row: &[i32]| [&row[..end(row)], &vec![0; cols - end(row)]].concat();
        let found = kernel.call_all(&[&Tensor::from_slice(&x, [3, cols], device)?])?;
        assert_eq!(found[0].to_vec::<i32>()?, rows().flat_map(cut).collect::<Vec<_>>(), "{cols}");
        let ends: Vec<i32> = rows().map(|row| end(row) as i32).collect();
        assert_eq!(found[1].to_vec::<i32>()?, ends, "{cols}");
    }
    Ok(())
}

/// Weighted sums of rows by tiles, of which the last is not full: fewer steps than stages, as many, and more.
pub(super) fn pipelines(device: &Device) -> Result<()> {
    const TILE: usize = 48;
    for stages in [1, 3] {
        let kernel = Kernel::new("pipeline", move |k: &Lang| {
            let [rows, cols] = k.sizes(["rows", "cols"]);
            let (x, w) = (k.input("x", [rows, cols]), k.input("w", [cols]));
            let y = k.output("y", [rows], x.dtype());
            k.groups([rows], threads(k), |g, [row]| {
                let sum = k.var(k.value(0, x.dtype()));
                let load = |step, [i]: [_; 1]| {
                    let at = step * TILE + i;
                    (x.at_or([row, at], 0), w.at_or(at, 0))
                };
                g.pipeline(stages, cols.div_ceil(TILE), [TILE], load, |step, tiles| {
                    // Neighbours of other threads, and steps of different weight.
                    let part =
                        g.reduce(Add, TILE, |i| tiles[0].at(i) * tiles[1].at((i + 1) % TILE));
                    sum.set(sum.get() + part * (step + 1).cast(x.dtype()));
                });
                y.set(row, sum.get());
            });
        });
        for cols in [1, 2 * TILE, 5 * TILE - 7] {
            let number = |i: usize, of: usize| (i * 7919 % of) as i32 - 5;
            let x: Vec<i32> = (0..3 * cols).map(|i| number(i, 31)).collect();
            let w: Vec<i32> = (0..cols).map(|i| number(i, 17)).collect();
            let term = |row: usize, step: usize, i: usize| {
                let [at, other] = [step * TILE + i, step * TILE + (i + 1) % TILE];
                let is_inside = at < cols && other < cols;
                if is_inside { x[row * cols + at] * w[other] * (step as i32 + 1) } else { 0 }
            };
            let row = |row| {
                let steps =
                    (0..cols.div_ceil(TILE)).flat_map(|step| (0..TILE).map(move |i| (step, i)));
                steps.map(|(step, i)| term(row, step, i)).sum::<i32>()
            };
            let expected: Vec<i32> = (0..3).map(row).collect();
            let (x, w) = (
                Tensor::from_slice(&x, [3, cols], device)?,
                Tensor::from_slice(&w, [cols], device)?,
            );
            assert_eq!(kernel.call(&[&x, &w])?.to_vec::<i32>()?, expected, "{stages} {cols}");
        }
    }
    Ok(())
}
