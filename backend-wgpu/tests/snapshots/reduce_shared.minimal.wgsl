@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m8: array<f32, 64>;

@compute @workgroup_size(64, 1, 1)
fn k_reduce_shared_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n7 = vec2<u32>(group.x, 0u);
        {
            let n9 = vec2<u32>(local.x, 0u);
            let v10 = mul_64(n7, vec2<u32>(64u, 0u));
            let v11 = add_64(v10, n9);
            let v12 = p0[v11.x];
            m8[n9.x] = v12;
            workgroupBarrier();
            for (var c15 = 0i; c15 < 6i; c15 = c15 + 1i) {
                let n15 = vec2<u32>(u32(c15), u32(c15 >> 31u));
                let v16 = shr_i64(vec2<u32>(32u, 0u), n15);
                let v17 = lt_i64(n9, v16);
                if (v17) {
                    let v19 = add_64(n9, v16);
                    let v20 = m8[n9.x];
                    let v21 = m8[v19.x];
                    let v22 = select(v21, v20, v20 > v21 || is_nan_f32(v20));
                    m8[n9.x] = v22;
                }
                workgroupBarrier();
            }
            let v27 = all(n9 == vec2<u32>(0u, 0u));
            if (v27) {
                let v29 = m8[0u];
                p1[n7.x] = v29;
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
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

fn lt_i64(x: vec2<u32>, y: vec2<u32>) -> bool {
    return i32(x.y) < i32(y.y) || (x.y == y.y && x.x < y.x);
}

fn shr_i64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let sign = u32(i32(x.y) >> 31u);
    if (y.x >= 32u) {
        return vec2<u32>(u32(i32(x.y) >> (y.x - 32u)), sign);
    }
    let carried = select(x.y << ((32u - y.x) & 31u), 0u, y.x == 0u);
    return vec2<u32>((x.x >> y.x) | carried, u32(i32(x.y) >> y.x));
}
