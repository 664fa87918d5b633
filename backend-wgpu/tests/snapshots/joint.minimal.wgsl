@group(0) @binding(0) var<storage, read_write> p0: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<i32>;
var<workgroup> m29: array<i32, 1>;
var<workgroup> m7: array<i32, 16>;

@compute @workgroup_size(16, 1, 1)
fn k_joint_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let v8 = atomicLoad(&p0[15u]);
    storageBarrier(); workgroupBarrier();
    {
        let n9 = i32(local.x);
        let v10 = atomicLoad(&p0[u32(n9)]);
        let v11 = v10 + v8;
        m7[u32(n9)] = v11;
    }
    storageBarrier(); workgroupBarrier();
    let v14 = m7[0u];
    let v15 = v14 + 1i;
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { m7[0u] = v15; }
    for (var n17 = 0i; n17 < 8i; n17 += 1i) {
        storageBarrier(); workgroupBarrier();
        let v18 = m7[u32(n17)];
        let v19 = v18 + 1i;
        storageBarrier(); workgroupBarrier();
        if (local.x == 0u) { m7[u32(n17)] = v19; }
        storageBarrier(); workgroupBarrier();
    }
    storageBarrier(); workgroupBarrier();
    {
        let n22 = i32(local.x);
        let v23 = 15i - n22;
        let v24 = m7[u32(v23)];
        p1[u32(n22)] = v24;
        atomicStore(&p0[u32(n22)], v24);
    }
    storageBarrier(); workgroupBarrier();
    var v28: i32;
    if (local.x == 0u) { v28 = atomicAdd(&p0[0u], 1i); }
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { m29[0u] = v28; }
    storageBarrier(); workgroupBarrier();
    let v31 = m29[0u];
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { p1[16u] = v31; }
}
