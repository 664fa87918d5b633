use zyx::kernel::{BinaryOp::Add, BinaryOp::Max, Kernel, Lang};

/// Softmax of rows of any length: a group of threads for each row.
pub fn softmax() -> Kernel {
    Kernel::new("softmax", |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], x.dtype());
        k.groups([rows], 256, |g, [row]| {
            let at = |i| x.at([row, i]).cast(zyx::DType::F32);
            let max = g.reduce(Max, cols, at);
            let sum = g.reduce(Add, cols, |i| (at(i) - max).exp());
            g.each(cols, |i| y.set([row, i], ((at(i) - max).exp() / sum).cast(y.dtype())));
        });
    })
}
