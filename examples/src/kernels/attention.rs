use std::f64::consts::LOG2_E;
use zyx::kernel::{BinaryOp::Add, BinaryOp::Max, Kernel, Lang, Val};

/// `2^x`, and 0 below the normal numbers: devices have an instruction for that.
fn power<'k>(x: Val<'k>) -> Val<'k> {
    x.lt(-126.0).select(0.0, x.exp2())
}

/// Of queries `[heads, n, width]`, keys and values `[heads, keys, width]`; the width is a power of two.
pub fn attention(width: usize, causal: bool) -> Kernel {
    Kernel::new("attention", move |k: &Lang| {
        let [heads, n, keys] = k.sizes(["heads", "n", "keys"]);
        let across = k.index(width as i64);
        let q = k.input("q", [heads, n, across]);
        let key = k.input("k", [heads, keys, across]);
        let v = k.input("v", [heads, keys, across]);
        let y = k.output("y", [heads, n, across], q.dtype());
        let dtype = q.dtype().accumulator();
        // Queries of a group, and keys of a block.
        let is_fast = k.caps().mma.contains(q.dtype());
        let rows = k.parameter("rows", if is_fast { &[64, 128] } else { &[32, 16] });
        let block = k.parameter("block", if is_fast { &[64, 128, 32] } else { &[32, 16] });
        let scale = LOG2_E / (width as f64).sqrt();
        let parts = n.div_ceil(rows);
        let threads = k.parameter("threads", &[128, 256]);
        k.groups([parts, heads], threads, |g, [part, head]| {
            // Those that see most keys begin first.
            let top = (parts - 1 - part) * rows;
            let (sums, queries) = (g.matrix([rows, width], dtype), g.matrix([rows, width], dtype));
            queries.map(|[i, step], _| q.at_or([head, top + i, step], 0.0).cast(dtype));
            let (most, total) = (sums.rows(f64::NEG_INFINITY), sums.rows(0.0));
            let end = if causal { keys.minimum(top + rows) } else { keys };
            k.for_each(end.div_ceil(block), |turn| {
                let first = turn * block;
                // Values are on their way while scores are computed.
                let probabilities = || {
                    let scores = g.matrix([rows, block], dtype);
                    scores.add_product_of(&queries, q.dtype(), |step, j| {
                        key.at_or([head, first + j, step], 0.0)
                    });
                    let all_seen = if causal { keys.minimum(top + 1) } else { keys };
                    k.when((first + block).gt(all_seen), || {
                        scores.map(|[i, j], score| {
                            let there = (first + j).lt(keys);
                            let seen = if causal { there & (first + j).le(top + i) } else { there };
                            seen.select(score, f64::NEG_INFINITY)
                        });
                    });
                    // The block's maxima, and what sums of before are worth beside them.
                    let now = most.map([&scores.reduce_rows(Max)], |x, [y]| x.maximum(y * scale));
                    let worth = most.map([&now], |before, [now]| power(before - now));
                    scores.map_rows([&now], |_, score, [now]| power(score.mul_add(scale, -now)));
                    let part = scores.reduce_rows(Add);
                    total.set(&total.map([&worth, &part], |x, [w, sum]| x * w + sum));
                    sums.map_rows([&worth], |_, sum, [worth]| sum * worth);
                    most.set(&now);
                    scores
                };
                sums.add_product_after(block, v.dtype(), probabilities, |step, j| {
                    v.at_or([head, first + step, j], 0.0)
                });
            });
            sums.each([&total], |[i, j], sum, [total]| {
                y.set_if((top + i).lt(n), [head, top + i, j], (sum / total).cast(y.dtype()));
            });
        });
    })
}
