use zyx::kernel::{BinaryOp::Add, Kernel, Lang};

/// Running sums of rows of any length.
pub fn cumsum() -> Kernel {
    Kernel::new("cumsum", |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], x.dtype());
        k.groups([rows], 256, |g, [row]| {
            let dtype = x.dtype().accumulator();
            let element = |i| x.at([row, i]).cast(dtype);
            g.scan(Add, cols, dtype, element, |i, _, sum| {
                y.set([row, i], sum.cast(y.dtype()));
            });
        });
    })
}
