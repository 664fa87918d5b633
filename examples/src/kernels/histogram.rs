use zyx::DType::I32;
use zyx::kernel::{BinaryOp::Add, Kernel, Lang};

const PART: usize = 4096;

/// Counts of bytes: each group counts in storage of its own first.
pub fn histogram() -> Kernel {
    Kernel::new("histogram", |k: &Lang| {
        let n = k.size("n");
        let x = k.input("x", [n]);
        let counts = k.output_filled("counts", [256], I32, 0);
        k.groups([n.div_ceil(PART)], 256, |g, [part]| {
            let own = g.shared([256], I32);
            g.each(256, |bin| own.set(bin, 0));
            let first = part * PART;
            g.each((n - first).minimum(PART), |i| own.atomic(Add, x.at(first + i), 1));
            g.each(256, |bin| counts.atomic(Add, bin, own.at(bin)));
        });
    })
}
