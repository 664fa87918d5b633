@group(0) @binding(0) var<storage, read_write> p0: array<i32>;
@group(0) @binding(1) var<storage, read_write> p1: array<i32>;
var<workgroup> m12: array<i32, 32>;
@group(0) @binding(2) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(32, 1, 1)
fn k_breaks_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x0 = bitcast<i32>(args[0].y);
    {
        let n11 = i32(group.x);
        {
            let n13 = i32(local.x);
            let v14 = n11 * 32i;
            let v15 = v14 + n13;
            let v16 = p0[u32(v15)];
            let v17 = v16 & 1023i;
            let v18 = v17 + 1i;
            var m19: array<i32, 1>;
            m19[0u] = v18;
            var m21: array<i32, 1>;
            m21[0u] = 0i;
            for (var n23 = 0i; n23 < 500i; n23 += 1i) {
                let v24 = m19[0u];
                let v25 = v24 <= 1i;
                if (v25) { break; }
                let v27 = v24 / 2i;
                let v28 = v24 & 1i;
                let v29 = v28 == 1i;
                let v30 = v24 * 3i;
                let v31 = v30 + 1i;
                let v32 = select(v27, v31, v29);
                m19[0u] = v32;
                let v34 = m21[0u];
                let v35 = v34 + 1i;
                m21[0u] = v35;
            }
            let v38 = m21[0u];
            m12[u32(n13)] = v38;
            workgroupBarrier();
            let v41 = n13 + 1i;
            let v42 = v41 % 32i;
            for (var n43 = 0i; n43 < 20i; n43 += 1i) {
                let v44 = x0 <= n43;
                if (v44) { break; }
                let v46 = m12[u32(v42)];
                workgroupBarrier();
                m12[u32(n13)] = v46;
                workgroupBarrier();
            }
            let v51 = m12[u32(n13)];
            p1[u32(v15)] = v51;
        }
    }
}
