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
        let n7 = i32(group.x);
        {
            let n9 = i32(local.x);
            let v10 = n7 * 64i;
            let v11 = v10 + n9;
            let v12 = p0[u32(v11)];
            m8[u32(n9)] = v12;
            workgroupBarrier();
            for (var n15 = 0i; n15 < 6i; n15 += 1i) {
                let v16 = 32i >> u32(n15);
                let v17 = n9 < v16;
                if (v17) {
                    let v19 = n9 + v16;
                    let v20 = m8[u32(n9)];
                    let v21 = m8[u32(v19)];
                    let v22 = select(v21, v20, v20 > v21 || is_nan_f32(v20));
                    m8[u32(n9)] = v22;
                }
                workgroupBarrier();
            }
            let v27 = n9 == 0i;
            if (v27) {
                let v29 = m8[0u];
                p1[u32(n7)] = v29;
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
