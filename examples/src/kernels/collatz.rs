use zyx::DType::I32;
use zyx::kernel::{Kernel, Lang};

/// Steps after which each number is 1, where an even one is halved and an odd one becomes `3 n + 1`: loops whose length is data.
pub fn collatz() -> Kernel {
    Kernel::new("collatz", |k: &Lang| {
        let n = k.size("n");
        let (x, y) = (k.input("x", [n]), k.output("y", [n], I32));
        k.each(n, |i| {
            let (number, steps) = (k.var(x.at(i)), k.var(k.value(0, I32)));
            let is_more = || number.get().gt(1);
            k.while_(is_more, || {
                let now = number.get();
                let odd = (now % 2).eq(1);
                number.set(odd.select(now * 3 + 1, now / 2));
                steps.set(steps.get() + 1);
            });
            y.set(i, steps.get());
        });
    })
}
