use zyx::DType::{F32, I32, U32};
use zyx::kernel::{BinaryOp::Shr, Kernel, Lang, Val};

/// Most keys of a row, which are in storage that threads share, and bits of a digit.
const MAX_KEYS: usize = 1024;
const BITS: u32 = 4;

/// Bits that are in the order of numbers.
fn key<'k>(x: Val<'k>) -> Val<'k> {
    let bits = x.bitcast(U32);
    match x.dtype() {
        F32 => x.bitcast(I32).lt(0).select(!bits, bits ^ (1u32 << 31)),
        I32 => bits ^ (1u32 << 31),
        _ => bits,
    }
}

/// The number of a key.
fn number<'k>(key: Val<'k>, like: Val<'k>) -> Val<'k> {
    match like.dtype() {
        F32 => key.bitcast(I32).lt(0).select(key ^ (1u32 << 31), !key).bitcast(F32),
        dtype => (if dtype == I32 { key ^ (1u32 << 31) } else { key }).bitcast(dtype),
    }
}

/// Rows in ascending order, of 32-bit integers or `f32` (-0 before 0, NaN last).
pub fn sort() -> Kernel {
    Kernel::new("sort", |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        k.limit(cols, MAX_KEYS);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], x.dtype());
        // Drivers for CPUs gain nothing by threads.
        let threads = if k.caps().multiprocessors() > 0 { 128 } else { 1 };
        k.groups([rows], threads, |g, [row]| {
            let keys = g.shared([2, MAX_KEYS], U32);
            g.each(cols, |i| keys.set((0, i), key(x.at([row, i]))));
            k.for_each(32 / BITS as usize, |pass| {
                let [from, to] = [pass % 2, (pass + 1) % 2];
                let digit = |i| keys.at([from, i]).binary(Shr, (pass * BITS as i64).cast(U32));
                g.rank(cols, BITS, digit, |i, at| keys.set([to, at], keys.at([from, i])));
            });
            g.each(cols, |i| y.set([row, i], number(keys.at((0, i)), x.at([row, i]))));
        });
    })
}
