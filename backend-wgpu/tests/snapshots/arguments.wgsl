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
    let x0 = bitcast<i64>((u64(args[0].z) << 32u) | u64(args[0].y));
    let x1 = bitcast<i32>(args[0].w);
    let x2 = bitcast<f32>(args[1].x);
    let x3 = args[1].y;
    let x4 = args[1].z;
    let x5 = args[1].w != 0u;
    let x6 = args[2].x;
    let v9 = i64(x1);
    let v13 = f32_from_f16(x3);
    let v14 = f32_from_bf16(x4);
    let v15 = f32(x6);
    let v16 = v13 + v14;
    let v17 = select(v15, v16, x5);
    let v18 = bitcast<f32>(bitcast<u32>(v17) ^ z) + x2;
    for (var n19 = bitcast<i64>(u64(group.x)); n19 < x0; n19 = n19 + bitcast<i64>(u64(groups.x))) {
        {
            let n21 = bitcast<i64>(u64(local.x));
            let v22 = n19 * 8li;
            let v23 = v22 + n21;
            let v24 = p0[u32(v23)];
            let v25 = v24 + bitcast<f32>(bitcast<u32>(v18) ^ z);
            m20[u32(n21)] = v25;
            workgroupBarrier();
            let v28 = v9 - 1li;
            let v29 = v28 - n21;
            let v30 = m20[u32(v29)];
            p0[u32(v23)] = v30;
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
    let x0 = bitcast<i64>((u64(args[0].z) << 32u) | u64(args[0].y));
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
