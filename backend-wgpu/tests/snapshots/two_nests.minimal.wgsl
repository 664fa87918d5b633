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
        let n7 = i32(group.x);
        {
            let n8 = i32(local.x);
            let v9 = n7 * 8i;
            let v10 = v9 + n8;
            let v11 = p0[u32(v10)];
            let v12 = v11 * 2.0f;
            p1[u32(v10)] = v12;
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
        let n16 = i32(group.y);
        {
            let n17 = i32(local.y);
            let v18 = n16 * 8i;
            let v19 = v18 + n17;
            let v20 = 63i - v19;
            let v21 = p1[u32(v20)];
            p2[u32(v19)] = v21;
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
