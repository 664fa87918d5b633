// Functions on 64-bit numbers for devices that have them.

fn real64(x: u64) -> f64 {
    return bitcast<f64>(x);
}

fn is_nan_f64(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

fn i64_from_f32(x: f32) -> i64 {
    if (is_nan_f32(x)) {
        return 0li;
    }
    if (x >= 9223372036854775808.0f) {
        return 9223372036854775807li;
    }
    if (x < -9223372036854775808.0f) {
        return -9223372036854775807li - 1li;
    }
    return i64(x);
}

fn u64_from_f32(x: f32) -> u64 {
    if (!(x > 0.0f)) {
        return 0lu;
    }
    if (x >= 18446744073709551616.0f) {
        return 18446744073709551615lu;
    }
    return u64(x);
}

fn i64_from_f64(x: f64) -> i64 {
    if (is_nan_f64(x)) {
        return 0li;
    }
    if (x >= 9223372036854775808.0lf) {
        return 9223372036854775807li;
    }
    if (x < -9223372036854775808.0lf) {
        return -9223372036854775807li - 1li;
    }
    return i64(x);
}

fn u64_from_f64(x: f64) -> u64 {
    if (!(x > 0.0lf)) {
        return 0lu;
    }
    if (x >= 18446744073709551616.0lf) {
        return 18446744073709551615lu;
    }
    return u64(x);
}

fn i32_from_f64(x: f64) -> i32 {
    return i32(clamp(i64_from_f64(x), -2147483648li, 2147483647li));
}

fn u32_from_f64(x: f64) -> u32 {
    return u32(min(u64_from_f64(x), 4294967295lu));
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

fn odd_f32_from_u64(x: u64) -> f32 {
    let high = u32(x >> 32u);
    if (high == 0u) {
        return odd_f32_from_u32(u32(x));
    }
    let shift = countLeadingZeros(high);
    return odd_f32_from_u32(top_of_u64(x << shift)) * f32(1u << (31u - shift)) * 2.0f;
}

fn odd_f32_from_i64(x: i64) -> f32 {
    let magnitude = odd_f32_from_u64(bitcast<u64>(select(x, 0li - x, x < 0li)));
    return select(magnitude, -magnitude, x < 0li);
}

// From the bits alone: drivers take the way to f32 and back for no change.
fn odd_f32_from_f64(x: f64) -> f32 {
    let bits = bitcast<u64>(x);
    let exponent = u32(bits >> 52u) & 2047u;
    if (bits << 1u == 0lu || exponent >= 1151u) {
        return f32(x);
    }
    if (exponent < 897u) {
        // Subnormal as f32: a whole number of its smallest steps.
        let fraction = (bits & 4503599627370495lu) | 4503599627370496lu;
        let shift = min(926u - exponent, 63u);
        let steps = fraction >> shift;
        let sign = u32(bits >> 32u) & 2147483648u;
        return bitcast<f32>(sign | u32(steps) | select(0u, 1u, steps << shift != fraction));
    }
    let low = bits & 536870911lu;
    return bitcast<f32>(bitcast<u32>(f32(bitcast<f64>(bits - low))) | select(0u, 1u, low != 0lu));
}
