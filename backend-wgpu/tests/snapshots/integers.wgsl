@group(0) @binding(0) var<storage, read_write> p0: array<i32>;
@group(0) @binding(1) var<storage, read_write> p1: array<i32>;
@group(0) @binding(2) var<storage, read_write> p2: array<i32>;
@group(0) @binding(3) var<storage, read_write> p3: array<i64>;
@group(0) @binding(4) var<storage, read_write> p4: array<i64>;

@compute @workgroup_size(1, 1, 1)
fn k_integers_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    for (var i8 = 0li; i8 < 60li; i8 = i8 + 1li) {
        let v9 = p0[u32(i8)];
        let v10 = p1[u32(i8)];
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
        for (var i25 = 0li; i25 < 32li; i25 = i25 + 1li) {
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
        p2[u32(i8)] = v48;
        let v50 = p3[u32(i8)];
        let v51 = v50 / 7li;
        let v52 = v50 % 7li;
        let v53 = 0li - v52;
        let v54 = select(v53, 0li - v53, v53 < 0li);
        let v55 = v51 * v54;
        p4[u32(i8)] = v55;
    }
}
