use zyx::kernel::{BinaryOp::Add, Kernel, Lang};

/// Root-mean-square normalisation of rows with a weight for each column.
pub fn rms_norm(epsilon: f64) -> Kernel {
    Kernel::new("rms_norm", move |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let (x, weight) = (k.input("x", [rows, cols]), k.input("weight", [cols]));
        let y = k.output("y", [rows, cols], x.dtype());
        let dtype = x.dtype().accumulator();
        k.groups([rows], 128, |g, [row]| {
            let squares = g.reduce(Add, cols, |i| x.at([row, i]).cast(dtype).square());
            let factor = (squares / cols.cast(dtype) + epsilon).sqrt().recip();
            g.each(cols, |i| {
                let scaled = x.at([row, i]).cast(dtype) * factor * weight.at(i).cast(dtype);
                y.set([row, i], scaled.cast(y.dtype()));
            });
        });
    })
}
