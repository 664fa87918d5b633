@group(0) @binding(0) var<storage, read_write> p0: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> p2: array<atomic<i64>>;
var<workgroup> m10: array<atomic<i64>, 4>;

@compute @workgroup_size(32, 1, 1)
fn k_atomics_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n9 = i32(group.x);
        {
            let n11 = i32(local.x);
            let v12 = n11 < 4i;
            if (v12) {
                atomicStore(&m10[u32(n11)], 0li);
            }
            workgroupBarrier();
            let v17 = n11 % 4i;
            atomicAdd(&p0[u32(v17)], 1i);
            atomicAdd(&p1[u32(v17)], 1u);
            let v20 = v17 < 4i;
            let v21 = i64(n11);
            if (v20) { atomicMax(&m10[u32(v17)], v21); }
            workgroupBarrier();
            if (v12) {
                let v26 = atomicLoad(&m10[u32(n11)]);
                atomicAdd(&p2[u32(n11)], v26);
            }
        }
    }
}
