use zyx::kernel::{Kernel, Lang};

/// `[m, depth] x [depth, n]`; sums of halves are `f32`, those of 8-bit integers `i32`.
pub fn product() -> Kernel {
    Kernel::new("product", |k: &Lang| {
        let [m, n, depth] = k.sizes(["m", "n", "depth"]);
        let x = k.input("x", [m, depth]);
        let w = k.input("w", [depth, n]);
        let y = k.output("y", [m, n], x.dtype());
        let tiles = if k.caps().multiprocessors() > 0 { [128, 64, 32] } else { [32, 64, 128] };
        let (rows, columns) = (k.parameter("rows", &tiles), k.parameter("columns", &tiles));
        let sums = x.dtype().product_accumulator();
        k.groups([m.div_ceil(rows), n.div_ceil(columns)], 128, |g, [i, j]| {
            let (top, left) = (i * rows, j * columns);
            let sums = g.matrix([rows, columns], sums);
            sums.add_product(
                depth,
                |i, step| x.at_or([top + i, step], 0.0),
                |step, j| w.at_or([step, left + j], 0.0),
            );
            sums.each([], |[i, j], sum, []| {
                let (i, j) = (top + i, left + j);
                y.set_if(i.lt(m) & j.lt(n), [i, j], sum.cast(y.dtype()));
            });
        });
    })
}
