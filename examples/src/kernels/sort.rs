use zyx::kernel::{Kernel, Lang, Val};
use zyx::{Class, DType};

/// Most bytes of the keys of a row, which shared storage holds twice.
const KEY_BYTES: usize = 4096;
/// Dtypes have an even number of digits, so the last pass stores where the first one loaded.
const DIGIT_BITS: usize = 4;

/// The integer as wide as a number, and the one that holds its key.
fn key_dtypes(dtype: DType) -> [DType; 2] {
    match dtype.bits() {
        16 => [DType::I16, DType::I32],
        32 => [DType::I32; 2],
        _ => [DType::I64; 2],
    }
}

/// The key's lower bits, as many as the number has and without sign, are in the order of numbers.
fn key<'k>(x: Val<'k>) -> Val<'k> {
    let ([narrow, held], sign) = (key_dtypes(x.dtype()), -1i64 << (x.dtype().bits() - 1));
    let bits = x.bitcast(narrow).cast(held);
    match x.dtype().class() {
        Class::Float => x.ne(x).select(-1, bits.lt(0).select(!bits, bits ^ sign)),
        Class::Signed => bits ^ sign,
        _ => bits,
    }
}

/// The number of a key.
fn number<'k>(key: Val<'k>, dtype: DType) -> Val<'k> {
    let ([narrow, _], sign) = (key_dtypes(dtype), -1i64 << (dtype.bits() - 1));
    let bits = match dtype.class() {
        Class::Float => key.lt(0).select(key ^ sign, !key),
        Class::Signed => key ^ sign,
        _ => key,
    };
    bits.cast(narrow).bitcast(dtype)
}

/// Rows in ascending order, of numbers of 16, 32 or 64 bits; of floats -0 is before 0, and NaN last.
pub fn sort() -> Kernel {
    Kernel::new("sort", |k: &Lang| {
        let [rows, cols] = k.sizes(["rows", "cols"]);
        let x = k.input("x", [rows, cols]);
        let y = k.output("y", [rows, cols], x.dtype());
        let [_, dtype] = key_dtypes(x.dtype());
        let max_keys = KEY_BYTES / dtype.size();
        k.limit(cols, max_keys);
        // Drivers for CPUs gain nothing by threads.
        let threads = if k.caps().multiprocessors() > 0 { 128 } else { 1 };
        k.groups([rows], threads, |g, [row]| {
            let keys = g.shared([2, max_keys], dtype);
            g.each(cols, |i| keys.set((0, i), key(x.at([row, i]))));
            k.for_each(x.dtype().bits() / DIGIT_BITS, |pass| {
                let [from, to] = [pass % 2, (pass + 1) % 2];
                let digit = |i| keys.at([from, i]) >> (pass * DIGIT_BITS as i64).cast(dtype);
                let keep = |i, at| keys.set([to, at], keys.at([from, i]));
                g.rank(cols, DIGIT_BITS as u32, digit, keep);
            });
            g.each(cols, |i| y.set([row, i], number(keys.at((0, i)), y.dtype())));
        });
    })
}
