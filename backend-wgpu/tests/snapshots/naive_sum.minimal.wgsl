@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;

@compute @workgroup_size(1, 1, 1)
fn k_naive_sum_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    for (var c6 = 0i; c6 < 23i; c6 = c6 + 1i) {
        let n6 = vec2<u32>(u32(c6), u32(c6 >> 31u));
        var m7: array<f32, 1>;
        m7[0u] = 0.0f;
        let v9 = mul_64(n6, vec2<u32>(37u, 0u));
        for (var c10 = 0i; c10 < 37i; c10 = c10 + 1i) {
            let n10 = vec2<u32>(u32(c10), u32(c10 >> 31u));
            let v11 = add_64(v9, n10);
            let v12 = p0[v11.x];
            let v13 = m7[0u];
            let v14 = v13 + v12;
            m7[0u] = v14;
        }
        let v17 = m7[0u];
        p1[n6.x] = v17;
    }
}

fn add_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
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
