// Quotients and square roots of floats, correctly rounded whatever the device's own are like.

// A positive number as m * 2^(field - 150) with m of 24 bits. Of zero nothing is used.
fn parts_f32(magnitude: u32) -> vec2<u32> {
    let small = magnitude < 0x800000u;
    let up = select(0u, (countLeadingZeros(magnitude) - 8u) & 31u, small);
    let m = (magnitude & 0x7fffffu) | select(0x800000u, 0u, small);
    return vec2<u32>(m << up, select(magnitude >> 23u, 1u, small) - up);
}

// The bits of a positive result from its 24 bits, the next one and whether more follows, and its
// exponent field, which may be out of range.
fn rounded_f32(extended: u32, field: i32) -> u32 {
    let down = u32(clamp(1 - field, 0, 26));
    let lost = (extended & ((1u << down) - 1u)) != 0u;
    let kept = (extended >> down) | select(0u, 1u, lost);
    let m = (kept + 1u + ((kept >> 2u) & 1u)) >> 2u;
    let bits = (u32(max(field, 1) - 1) << 23u) + m;
    return select(bits, 0x7f800000u, field > 254);
}

// In integers. The device's own result is within eight units, so an integer near the exact one is
// known, and its remainder fits 32 bits although the dividend does not: arithmetic modulo 2^32
// gives it. The remainder corrects the integer and says how to round.
fn exact_div_f32(x: f32, y: f32) -> f32 {
    let sign = (bitcast<u32>(x) ^ bitcast<u32>(y)) & 0x80000000u;
    let ax = bitcast<u32>(x) & 0x7fffffffu;
    let ay = bitcast<u32>(y) & 0x7fffffffu;
    let vanishes = ax == 0u || ay == 0x7f800000u;
    let explodes = ay == 0u || ax == 0x7f800000u;
    if (max(ax, ay) > 0x7f800000u || (vanishes && explodes)) {
        return real(0x7fc00000u);
    }
    if (vanishes || explodes) {
        return bitcast<f32>(sign | select(0x7f800000u, 0u, vanishes));
    }
    let a = parts_f32(ax);
    let b = parts_f32(ay);
    // The quotient has 24 bits if a smaller dividend is shifted by one more.
    let smaller = select(0u, 1u, a.x < b.x);
    let shift = 23u + smaller;
    let near = u32(f32(a.x) / f32(b.x) * bitcast<f32>((shift + 127u) << 23u));
    var quotient = near - 8u;
    var rest = (a.x << shift) - quotient * b.x;
    for (var k = 8u; k > 0u; k = k >> 1u) {
        let step = b.x * k;
        if (i32(step) <= i32(rest)) {
            quotient += k;
            rest -= step;
        }
    }
    let above = b.x <= 2u * rest;
    let more = 2u * rest != select(0u, b.x, above);
    let extended = (quotient << 2u) | select(0u, 2u, above) | select(0u, 1u, more);
    let field = i32(a.y) - i32(b.y) - i32(smaller) + 127;
    return bitcast<f32>(sign | rounded_f32(extended, field));
}

fn exact_root_f32(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if ((bits & 0x7fffffffu) == 0u || bits == 0x7f800000u) {
        return x;
    }
    if (bits > 0x7f800000u) {
        return real(0x7fc00000u);
    }
    // x = m * 2^23 * 2^(field - 173), where the last exponent has to be even.
    let p = parts_f32(bits);
    let shift = (p.y & 1u) ^ 1u;
    let m = p.x << shift;
    let field = ((i32(p.y - shift) - 173) >> 1u) + 150;
    let near = u32(sqrt(f32(m) * 2.0f) * 2048.0f);
    var root = near - 8u;
    var rest = (m << 23u) - root * root;
    for (var k = 8u; k > 0u; k = k >> 1u) {
        let step = (2u * root + k) * k;
        if (i32(step) <= i32(rest)) {
            root += k;
            rest -= step;
        }
    }
    let extended = (root << 2u) | select(0u, 2u, root < rest) | select(0u, 1u, rest != 0u);
    return bitcast<f32>(rounded_f32(extended, field));
}

// By a multiply-add that rounds once: it gives remainders exactly, and these correct what the
// device is off by. Where a remainder could be subnormal, and for divisors of all ones, whose
// inverse rounds otherwise (Markstein 1990), in integers. The lowest bits of the first guess are cut
// off, so that no compiler knows what it is to the operand and "simplifies".
fn div_f32(x: f32, y: f32) -> f32 {
    let fx = (bitcast<u32>(x) >> 23u) & 0xffu;
    let fy = (bitcast<u32>(y) >> 23u) & 0xffu;
    if (max(fx - 67u, fy - 67u) > 120u || (bitcast<u32>(y) & 0x7fffffu) == 0x7fffffu) {
        return exact_div_f32(x, y);
    }
    let guess = bitcast<f32>(bitcast<u32>(1.0f / y) & 0xfffffff0u);
    let near = fma(fma(-y, guess, 1.0f), guess, guess);
    let inverse = fma(fma(-y, near, 1.0f), near, near);
    let first = x * inverse;
    let second = fma(fma(-y, first, x), inverse, first);
    return fma(fma(-y, second, x), inverse, second);
}
