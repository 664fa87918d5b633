// 64-bit integers as pairs of words, the lower first, for devices that have none.

fn add_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}

fn sub_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(x.x - y.x, x.y - y.y - select(0u, 1u, x.x < y.x));
}

fn neg_64(x: vec2<u32>) -> vec2<u32> {
    return sub_64(vec2<u32>(0u, 0u), x);
}

fn abs_i64(x: vec2<u32>) -> vec2<u32> {
    return select(x, neg_64(x), i32(x.y) < 0i);
}

// The whole product of two words, from products of their halves.
fn mul_wide(x: u32, y: u32) -> vec2<u32> {
    let xl = x & 0xffffu;
    let xh = x >> 16u;
    let yl = y & 0xffffu;
    let yh = y >> 16u;
    let low = xl * yl;
    let middle = xh * yl + (low >> 16u);
    let other = xl * yh + (middle & 0xffffu);
    return vec2<u32>(x * y, xh * yh + (middle >> 16u) + (other >> 16u));
}

fn mul_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = mul_wide(x.x, y.x);
    return vec2<u32>(low.x, low.y + x.x * y.y + x.y * y.x);
}

fn lt_u64(x: vec2<u32>, y: vec2<u32>) -> bool {
    return x.y < y.y || (x.y == y.y && x.x < y.x);
}

fn lt_i64(x: vec2<u32>, y: vec2<u32>) -> bool {
    return i32(x.y) < i32(y.y) || (x.y == y.y && x.x < y.x);
}

fn shl_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if (y.x >= 32u) {
        return vec2<u32>(0u, x.x << (y.x - 32u));
    }
    let carried = select(x.x >> ((32u - y.x) & 31u), 0u, y.x == 0u);
    return vec2<u32>(x.x << y.x, (x.y << y.x) | carried);
}

fn shr_u64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    if (y.x >= 32u) {
        return vec2<u32>(x.y >> (y.x - 32u), 0u);
    }
    let carried = select(x.y << ((32u - y.x) & 31u), 0u, y.x == 0u);
    return vec2<u32>((x.x >> y.x) | carried, x.y >> y.x);
}

fn shr_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sign = u32(i32(x.y) >> 31u);
    if (y.x >= 32u) {
        return vec2<u32>(u32(i32(x.y) >> (y.x - 32u)), sign);
    }
    let carried = select(x.y << ((32u - y.x) & 31u), 0u, y.x == 0u);
    return vec2<u32>((x.x >> y.x) | carried, u32(i32(x.y) >> y.x));
}

// The integer part of a float, which the type holds.
fn u64_from_f32(x: f32) -> vec2<u32> {
    let whole = trunc(x);
    let high = floor(whole * 2.3283064365386963e-10f);
    return vec2<u32>(u32(whole - high * 4294967296.0f), u32(high));
}

fn i64_from_f32(x: f32) -> vec2<u32> {
    let magnitude = u64_from_f32(abs(x));
    return select(magnitude, neg_64(magnitude), x < 0.0f);
}

// The upper 32 bits of a number whose leading bit was shifted to the top, with a last bit that
// says whether any below is set.
fn top_of_u64(x: vec2<u32>) -> u32 {
    return x.y | select(0u, 1u, x.x != 0u);
}

// To nearest, ties to even.
fn f32_from_u64(x: vec2<u32>) -> f32 {
    if (x.y == 0u) {
        return f32(x.x);
    }
    let shift = countLeadingZeros(x.y);
    let top = top_of_u64(shl_64(x, vec2<u32>(shift, 0u)));
    return f32(top) * f32(1u << (31u - shift)) * 2.0f;
}

fn f32_from_i64(x: vec2<u32>) -> f32 {
    let magnitude = f32_from_u64(abs_i64(x));
    return select(magnitude, -magnitude, i32(x.y) < 0i);
}
