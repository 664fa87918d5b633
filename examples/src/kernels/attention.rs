use zyx::DType::F32;
use zyx::kernel::{BinaryOp::Add, BinaryOp::Max, Kernel, Lang};

/// Of queries `[heads, n, width]`, keys and values `[heads, keys, width]`; the width is a power of two.
pub fn attention(width: usize, causal: bool) -> Kernel {
    Kernel::new("attention", move |k: &Lang| {
        let [heads, n, keys] = k.sizes(["heads", "n", "keys"]);
        let across = k.index(width as i64);
        let q = k.input("q", [heads, n, across]);
        let key = k.input("k", [heads, keys, across]);
        let v = k.input("v", [heads, keys, across]);
        let y = k.output("y", [heads, n, across], q.dtype());
        // Rows of queries of a group, and keys of a block; the dtype of sums.
        let tile = if q.dtype().bits() > 16 { 32 } else { 64 };
        let dtype = if q.dtype().bits() > 32 { q.dtype() } else { F32 };
        let scale = 1.0 / (width as f64).sqrt();
        k.groups([heads, n.div_ceil(tile)], 128, |g, [head, block]| {
            let top = block * tile;
            let sums = g.matrix([tile, width], dtype);
            let (most, total) = (sums.rows(f64::NEG_INFINITY), sums.rows(0.0));
            let end = if causal { keys.minimum(top + tile) } else { keys };
            k.for_each(end.div_ceil(tile), |turn| {
                let first = turn * tile;
                let scores = g.matrix([tile, tile], dtype);
                scores.add_product(
                    width,
                    |i, step| q.at_or([head, top + i, step], 0.0),
                    |step, j| key.at_or([head, first + j, step], 0.0),
                );
                scores.map(|[i, j], score| {
                    let there = (first + j).lt(keys);
                    let seen = if causal { there & (first + j).le(top + i) } else { there };
                    seen.select(score * scale, f64::NEG_INFINITY)
                });
                // The block's maxima, and what sums of before are worth beside them.
                let now = most.map([&scores.reduce_rows(Max)], |x, [y]| x.maximum(y));
                let worth = most.map([&now], |before, [now]| (before - now).exp());
                scores.map_rows([&now], |_, score, [most]| (score - most).exp());
                let new = total.map([&worth, &scores.reduce_rows(Add)], |x, [w, sum]| x * w + sum);
                sums.map_rows([&worth], |_, sum, [worth]| sum * worth);
                sums.add_product_of(&scores, v.dtype(), |step, j| {
                    v.at_or([head, first + step, j], 0.0)
                });
                total.set(&new);
                most.set(&now);
            });
            sums.each([&total], |[i, j], sum, [total]| {
                y.set_if((top + i).lt(n), [head, top + i, j], (sum / total).cast(y.dtype()));
            });
        });
    })
}
