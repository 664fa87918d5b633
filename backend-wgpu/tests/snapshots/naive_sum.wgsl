@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;

@compute @workgroup_size(1, 1, 1)
fn k_naive_sum_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    for (var c6 = 0i; c6 < 23i; c6 = c6 + 1i) {
        let n6 = i64(c6);
        var m7: array<f32, 1>;
        m7[0u] = 0.0f;
        let v9 = n6 * 37li;
        for (var c10 = 0i; c10 < 37i; c10 = c10 + 1i) {
            let n10 = i64(c10);
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
