@group(0) @binding(0) var<storage, read_write> p0: array<i32>;
@group(0) @binding(1) var<storage, read_write> p1: array<i32>;
@group(0) @binding(2) var<storage, read_write> p2: array<i32>;
@group(0) @binding(3) var<storage, read_write> p3: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> p4: array<vec2<u32>>;

@compute @workgroup_size(1, 1, 1)
fn k_integers_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    for (var i8 = vec2<u32>(0u, 0u); lt_i64(i8, vec2<u32>(60u, 0u)); i8 = add_64(i8, vec2<u32>(1u, 0u))) {
        let v9 = p0[i8.x];
        let v10 = p1[i8.x];
        let v11 = select(select(v9 / select(v10, 1i, v10 == 0i || v10 == (-1i)), 0i, v10 == 0i), 0i - v9, v10 == (-1i));
        let v12 = select(select(v9 % select(v10, 1i, v10 == 0i || v10 == (-1i)), v9, v10 == 0i), 0i, v10 == (-1i));
        let v13 = select(0i, v11 << (u32(v10) & 31u), bitcast<u32>(v10) < 32u);
        let v14 = v12 >> select(31u, u32(v10), bitcast<u32>(v10) < 32u);
        var m18: array<i32, 1>;
        m18[0u] = 1i;
        var m20: array<i32, 1>;
        m20[0u] = v9;
        var m22: array<i32, 1>;
        m22[0u] = 3i;
        for (var i25 = vec2<u32>(0u, 0u); lt_i64(i25, vec2<u32>(32u, 0u)); i25 = add_64(i25, vec2<u32>(1u, 0u))) {
            let v26 = m18[0u];
            let v27 = m20[0u];
            let v28 = m22[0u];
            let v29 = v28 & 1i;
            let v30 = v29 == 0i;
            let v31 = v26 * v27;
            let v32 = select(v31, v26, v30);
            m18[0u] = v32;
            let v34 = v27 * v27;
            m20[0u] = v34;
            let v36 = v28 >> 1u;
            m22[0u] = v36;
        }
        let v39 = m18[0u];
        let v42 = v9 == (-1i);
        let v43 = select(0i, (-1i), v42);
        let v44 = v9 == 1i;
        let v45 = select(v43, 1i, v44);
        let v47 = v13 ^ v14;
        let v48 = v47 + v39;
        p2[i8.x] = v48;
        let v50 = p3[i8.x];
        let v51 = div_i64(v50, vec2<u32>(7u, 0u));
        let v52 = rem_i64(v50, vec2<u32>(7u, 0u));
        let v53 = neg_64(v52);
        let v54 = abs_i64(v53);
        let v55 = mul_64(v51, v54);
        p4[i8.x] = v55;
    }
}

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

// Quotient and remainder; 0 and the dividend when dividing by 0. A bit per step, but for words.
fn divided(x: vec2<u32>, y: vec2<u32>) -> vec4<u32> {
    if (y.x == 0u && y.y == 0u) {
        return vec4<u32>(0u, 0u, x.x, x.y);
    }
    if (x.y == 0u && y.y == 0u) {
        return vec4<u32>(x.x / y.x, 0u, x.x % y.x, 0u);
    }
    var quotient = x;
    var rest = vec2<u32>(0u, 0u);
    for (var i = 0u; i < 64u; i++) {
        let carry = rest.y >> 31u;
        rest = vec2<u32>((rest.x << 1u) | (quotient.y >> 31u), (rest.y << 1u) | (rest.x >> 31u));
        quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));
        if (carry == 1u || !lt_u64(rest, y)) {
            rest = sub_64(rest, y);
            quotient.x |= 1u;
        }
    }
    return vec4<u32>(quotient, rest);
}

fn div_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let magnitude = divided(abs_i64(x), abs_i64(y)).xy;
    return select(magnitude, neg_64(magnitude), i32(x.y ^ y.y) < 0i);
}

fn rem_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let magnitude = divided(abs_i64(x), abs_i64(y)).zw;
    return select(magnitude, neg_64(magnitude), i32(x.y) < 0i);
}
