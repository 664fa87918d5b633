use zyx::kernel::{BinaryOp::Add, BinaryOp::Max, Kernel, Lang};

/// Softmax of rows of any length: a group of threads for each row.
pub fn softmax() -> Kernel {
    Kernel::new("softmax", |k: &Lang| {
        let x = k.input("x", k.sizes(["rows", "cols"]));
        let y = k.output("y", &x.shape()[..], x.dtype());
        k.groups([x.extent(0)], 256, |g, [row]| {
            let (cols, at) = (x.extent(1), |i| x.at([row, i]).cast(x.dtype().accumulator()));
            let max = g.reduce(Max, cols, at);
            let sum = g.reduce(Add, cols, |i| (at(i) - max).exp());
            g.each(cols, |i| y.set([row, i], ((at(i) - max).exp() / sum).cast(y.dtype())));
        });
    })
}
