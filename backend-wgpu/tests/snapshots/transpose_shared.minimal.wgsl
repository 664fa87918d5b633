@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m11: array<f32, 20>;
@group(0) @binding(2) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(8, 1, 1)
fn k_transpose_shared_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x0 = bitcast<f32>(args[0].y);
    {
        let n8 = i32(group.z);
        {
            let n9 = i32(group.y);
            {
                let n10 = i32(group.x);
                {
                    let n12 = i32(local.x);
                    let v14 = n9 << 2u;
                    let v15 = n10 << 2u;
                    let v16 = n12 & 3i;
                    let v17 = n12 >> 2u;
                    let v18 = v16 * 5i;
                    let v19 = v18 + v17;
                    let v20 = v14 + v16;
                    let v21 = v15 + v17;
                    let v22 = v20 < 9i;
                    if (v22) {
                        let v24 = v21 * 9i;
                        let v25 = v20 + v24;
                        let v26 = p0[u32(v25)];
                        m11[u32(v19)] = v26;
                    }
                    let v29 = n12 + 8i;
                    let v30 = v29 & 3i;
                    let v31 = v29 >> 2u;
                    let v32 = v30 * 5i;
                    let v33 = v32 + v31;
                    let v34 = v14 + v30;
                    let v35 = v15 + v31;
                    let v36 = v34 < 9i;
                    if (v36) {
                        let v38 = v35 * 9i;
                        let v39 = v34 + v38;
                        let v40 = p0[u32(v39)];
                        m11[u32(v33)] = v40;
                    }
                    workgroupBarrier();
                    let v44 = v17 * 5i;
                    let v45 = v44 + v16;
                    let v46 = v14 + v17;
                    let v47 = v15 + v16;
                    let v48 = v46 < 9i;
                    if (v48) {
                        let v50 = m11[u32(v45)];
                        let v52 = v46 * 20i;
                        let v53 = v52 + v47;
                        let v54 = v50 * x0;
                        p1[u32(v53)] = v54;
                    }
                    let v57 = v31 * 5i;
                    let v58 = v57 + v30;
                    let v59 = v14 + v31;
                    let v60 = v15 + v30;
                    let v61 = v59 < 9i;
                    if (v61) {
                        let v63 = m11[u32(v58)];
                        let v65 = v59 * 20i;
                        let v66 = v65 + v60;
                        let v67 = v63 * x0;
                        p1[u32(v66)] = v67;
                    }
                }
            }
        }
    }
}
