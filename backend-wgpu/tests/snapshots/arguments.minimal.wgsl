@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m20: array<f32, 8>;
@group(0) @binding(2) var<uniform> args: array<vec4<u32>, 3>;

override k_arguments_0_x: u32;

@compute @workgroup_size(k_arguments_0_x, 1, 1)
fn k_arguments_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let z = args[0].x;
    let x0 = vec2<u32>(args[0].y, args[0].z);
    let x1 = bitcast<i32>(args[0].w);
    let x2 = bitcast<f32>(args[1].x);
    let x3 = args[1].y;
    let x4 = args[1].z;
    let x5 = args[1].w != 0u;
    let x6 = args[2].x;
    let v9 = vec2<u32>(u32(x1), u32(x1 >> 31u));
    let v13 = f32_from_f16(x3);
    let v14 = f32_from_bf16(x4);
    let v15 = f32(x6);
    let v16 = v13 + v14;
    let v17 = select(v15, v16, x5);
    let v18 = bitcast<f32>(bitcast<u32>(v17) ^ z) + x2;
    for (var n19 = vec2<u32>(group.x, 0u); lt_i64(n19, x0); n19 = add_64(n19, vec2<u32>(groups.x, 0u))) {
        {
            let n21 = vec2<u32>(local.x, 0u);
            let v22 = mul_64(n19, vec2<u32>(8u, 0u));
            let v23 = add_64(v22, n21);
            let v24 = p0[v23.x];
            let v25 = v24 + bitcast<f32>(bitcast<u32>(v18) ^ z);
            m20[n21.x] = v25;
            workgroupBarrier();
            let v28 = sub_64(v9, vec2<u32>(1u, 0u));
            let v29 = sub_64(v28, n21);
            let v30 = m20[v29.x];
            p0[v23.x] = v30;
        }
        storageBarrier(); workgroupBarrier();
    }
}

@compute @workgroup_size(1, 1, 1)
fn k_arguments_1(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let z = args[0].x;
    let x0 = vec2<u32>(args[0].y, args[0].z);
    let x1 = bitcast<i32>(args[0].w);
    let x2 = bitcast<f32>(args[1].x);
    let x3 = args[1].y;
    let x4 = args[1].z;
    let x5 = args[1].w != 0u;
    let x6 = args[2].x;
    let v13 = f32_from_f16(x3);
    let v14 = f32_from_bf16(x4);
    let v15 = f32(x6);
    let v16 = v13 + v14;
    let v17 = select(v15, v16, x5);
    let v18 = bitcast<f32>(bitcast<u32>(v17) ^ z) + x2;
    p1[0u] = v18;
}

fn f32_from_f16(x: u32) -> f32 {
    let m = x & 0x7fffu;
    let subnormal = bitcast<u32>(f32(m) * 5.9604644775390625e-8f);
    let normal = (m << 13u) + 0x38000000u;
    let special = (m << 13u) | 0x7f800000u;
    let bits = select(select(normal, special, m >= 0x7c00u), subnormal, m < 0x400u);
    return bitcast<f32>(((x & 0x8000u) << 16u) | bits);
}

fn f32_from_bf16(x: u32) -> f32 {
    return bitcast<f32>(x << 16u);
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

fn lt_i64(x: vec2<u32>, y: vec2<u32>) -> bool {
    return i32(x.y) < i32(y.y) || (x.y == y.y && x.x < y.x);
}
