@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
@group(0) @binding(2) var<storage, read_write> p2: array<f32>;

@compute @workgroup_size(8, 1, 1)
fn k_two_nests_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n7 = vec2<u32>(group.x, 0u);
        {
            let n8 = vec2<u32>(local.x, 0u);
            let v9 = mul_64(n7, vec2<u32>(8u, 0u));
            let v10 = add_64(v9, n8);
            let v11 = p0[v10.x];
            let v12 = v11 * 2.0f;
            p1[v10.x] = v12;
        }
    }
}

@compute @workgroup_size(1, 8, 1)
fn k_two_nests_1(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n16 = vec2<u32>(group.y, 0u);
        {
            let n17 = vec2<u32>(local.y, 0u);
            let v18 = mul_64(n16, vec2<u32>(8u, 0u));
            let v19 = add_64(v18, n17);
            let v20 = sub_64(vec2<u32>(63u, 0u), v19);
            let v21 = p1[v20.x];
            p2[v19.x] = v21;
        }
    }
}

@compute @workgroup_size(1, 1, 1)
fn k_two_nests_2(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    p2[64u] = 2.0f;
}

fn add_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}

fn sub_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(x.x - y.x, x.y - y.y - select(0u, 1u, x.x < y.x));
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
