use zyx::kernel::{BinaryOp::Add, Kernel, Lang};

/// Sums of segments: segment `s` has the elements from `starts[s]` to `starts[s + 1]`.
pub fn segment_sum() -> Kernel {
    Kernel::new("segment_sum", |k: &Lang| {
        let [n, segments] = k.sizes(["n", "segments"]);
        let x = k.input("x", [n]);
        let starts = k.input("starts", [segments + 1]);
        let y = k.output("y", [segments], x.dtype());
        k.groups([segments], 64, |g, [segment]| {
            let (first, end) = (starts.at(segment), starts.at(segment + 1));
            let sum = g.reduce(Add, first..end, |i| x.at(i).cast(x.dtype().accumulator()));
            y.set(segment, sum.cast(y.dtype()));
        });
    })
}
