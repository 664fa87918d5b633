@group(0) @binding(0) var<storage, read_write> p0: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<i32>;
var<workgroup> m30: array<i32, 1>;
var<workgroup> m8: array<i32, 16>;

@compute @workgroup_size(16, 1, 1)
fn k_joint_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let v9 = atomicLoad(&p0[15u]);
    storageBarrier(); workgroupBarrier();
    {
        let n10 = i32(local.x);
        let v11 = atomicLoad(&p0[u32(n10)]);
        let v12 = v11 + v9;
        m8[u32(n10)] = v12;
    }
    storageBarrier(); workgroupBarrier();
    let v15 = m8[0u];
    let v16 = v15 + 1i;
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { m8[0u] = v16; }
    for (var n18 = 0i; n18 < 8i; n18 += 1i) {
        storageBarrier(); workgroupBarrier();
        let v19 = m8[u32(n18)];
        let v20 = v19 + 1i;
        storageBarrier(); workgroupBarrier();
        if (local.x == 0u) { m8[u32(n18)] = v20; }
        storageBarrier(); workgroupBarrier();
    }
    storageBarrier(); workgroupBarrier();
    {
        let n23 = i32(local.x);
        let v24 = 15i - n23;
        let v25 = m8[u32(v24)];
        p1[u32(n23)] = v25;
        atomicStore(&p0[u32(n23)], v25);
    }
    storageBarrier(); workgroupBarrier();
    var v29: i32;
    if (local.x == 0u) { v29 = atomicAdd(&p0[0u], 1i); }
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { m30[0u] = v29; }
    storageBarrier(); workgroupBarrier();
    let v32 = m30[0u];
    storageBarrier(); workgroupBarrier();
    if (local.x == 0u) { p1[16u] = v32; }
}
