// Functions that translated kernels call; a source gets those it uses. A blank line ends each.

// A float by its bits. Not an expression the translator could evaluate: WGSL has no constant
// infinities or NaNs.
fn real(x: u32) -> f32 {
    return bitcast<f32>(x);
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn f32_from_f16(x: u32) -> f32 {
    let m = x & 0x7fffu;
    let subnormal = bitcast<u32>(f32(m) * 5.9604644775390625e-8f);
    let normal = (m << 13u) + 0x38000000u;
    let special = (m << 13u) | 0x7f800000u;
    let bits = select(select(normal, special, m >= 0x7c00u), subnormal, m < 0x400u);
    return bitcast<f32>(((x & 0x8000u) << 16u) | bits);
}

// To nearest, ties to even.
fn f16_from_f32(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let sign = (u >> 16u) & 0x8000u;
    let m = u & 0x7fffffffu;
    if (m > 0x7f800000u) {
        return sign | 0x7e00u;
    }
    if (m >= 0x477ff000u) {
        return sign | 0x7c00u;
    }
    if (m >= 0x38800000u) {
        return sign | ((m - 0x38000000u + 0xfffu + ((m >> 13u) & 1u)) >> 13u);
    }
    if (m < 0x33000000u) {
        return sign;
    }
    let significand = (m & 0x7fffffu) | 0x800000u;
    let shift = 126u - (m >> 23u);
    let kept = significand >> shift;
    let rest = significand & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    let up = rest > half || (rest == half && (kept & 1u) == 1u);
    return sign | (kept + select(0u, 1u, up));
}

fn f32_from_bf16(x: u32) -> f32 {
    return bitcast<f32>(x << 16u);
}

// To nearest, ties to even; a NaN stays one.
fn bf16_from_f32(x: f32) -> u32 {
    let u = bitcast<u32>(x);
    let rounded = (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
    return select(rounded, (u >> 16u) | 0x40u, is_nan_f32(x));
}

fn i32_from_f32(x: f32) -> i32 {
    if (is_nan_f32(x)) {
        return 0i;
    }
    if (x >= 2147483648.0f) {
        return 2147483647i;
    }
    if (x < -2147483648.0f) {
        return -2147483647i - 1i;
    }
    return i32(x);
}

fn u32_from_f32(x: f32) -> u32 {
    if (!(x > 0.0f)) {
        return 0u;
    }
    if (x >= 4294967296.0f) {
        return 4294967295u;
    }
    return u32(x);
}

// Rounded to odd, so that rounding again to a half rounds only once.
fn odd_f32_from_u32(x: u32) -> f32 {
    let shift = 8u - min(8u, countLeadingZeros(x));
    let kept = x >> shift;
    let odd = select(0u, 1u, (kept << shift) != x);
    return f32(kept | odd) * f32(1u << shift);
}

fn odd_f32_from_i32(x: i32) -> f32 {
    let magnitude = odd_f32_from_u32(u32(abs(x)));
    return select(magnitude, -magnitude, x < 0i);
}
