use zyx::kernel::{Kernel, Lang};

/// A step of the heat equation on a plate whose border is at zero degrees.
pub fn heat(rate: f64) -> Kernel {
    Kernel::new("heat", move |k: &Lang| {
        let [height, width] = k.sizes(["height", "width"]);
        let x = k.input("x", [height, width]);
        let y = k.output("y", [height, width], x.dtype());
        k.each([height, width], |[i, j]| {
            let at = |i, j| x.at_or([i, j], 0.0);
            let around = at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1);
            y.set([i, j], x.at([i, j]) + (around - x.at([i, j]) * 4.0) * rate);
        });
    })
}
