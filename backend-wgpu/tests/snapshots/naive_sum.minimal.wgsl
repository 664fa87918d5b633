@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;

@compute @workgroup_size(1, 1, 1)
fn k_naive_sum_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    for (var n6 = 0i; n6 < 23i; n6 += 1i) {
        var m7: array<f32, 1>;
        m7[0u] = 0.0f;
        let v9 = n6 * 37i;
        for (var n10 = 0i; n10 < 37i; n10 += 1i) {
            let v11 = v9 + n10;
            let v12 = p0[u32(v11)];
            let v13 = m7[0u];
            let v14 = v13 + v12;
            m7[0u] = v14;
        }
        let v17 = m7[0u];
        p1[u32(n6)] = v17;
    }
}
