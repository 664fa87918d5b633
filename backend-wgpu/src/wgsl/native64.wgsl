// Functions on 64-bit numbers for devices that have them.

fn real64(x: u64) -> f64 {
    return bitcast<f64>(x);
}

fn is_nan_f64(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

// The upper 32 bits of a number whose leading bit was shifted to the top, with a last bit that
// says whether any below is set.
fn top_of_u64(x: u64) -> u32 {
    return u32(x >> 32u) | select(0u, 1u, u32(x) != 0u);
}

// To nearest, ties to even.
fn f32_from_u64(x: u64) -> f32 {
    let high = u32(x >> 32u);
    if (high == 0u) {
        return f32(u32(x));
    }
    let shift = countLeadingZeros(high);
    return f32(top_of_u64(x << shift)) * f32(1u << (31u - shift)) * 2.0f;
}

fn f32_from_i64(x: i64) -> f32 {
    let magnitude = f32_from_u64(bitcast<u64>(select(x, 0li - x, x < 0li)));
    return select(magnitude, -magnitude, x < 0li);
}
