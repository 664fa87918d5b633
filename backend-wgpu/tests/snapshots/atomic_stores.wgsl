@group(0) @binding(0) var<storage, read_write> p0: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> p2: array<i32>;

@compute @workgroup_size(32, 1, 1)
fn k_atomic_stores_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n6 = i32(group.x);
        {
            let n7 = i32(local.x);
            let v8 = n7 % 8i;
            let v9 = v8 + 200i;
            let v10 = u32(v9);
            atomicStore(&p0[u32(v8)], v9);
            atomicStore(&p1[u32(v8)], v10);
            let v13 = atomicLoad(&p0[u32(v8)]);
            let v14 = atomicLoad(&p1[u32(v8)]);
            let v15 = i32(v14);
            let v16 = v13 + v15;
            let v17 = n6 * 32i;
            let v18 = v17 + n7;
            p2[u32(v18)] = v16;
        }
    }
}
