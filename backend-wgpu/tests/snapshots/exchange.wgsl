@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m14: array<f32, 20>;
@group(0) @binding(2) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(8, 1, 1)
fn k_exchange_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x0 = bitcast<f32>(args[0].y);
    {
        let n8 = bitcast<i64>(u64(group.z));
        let v9 = i32(n8);
        {
            let n10 = bitcast<i64>(u64(group.y));
            let v11 = i32(n10);
            {
                let n12 = bitcast<i64>(u64(group.x));
                let v13 = i32(n12);
                {
                    let n15 = bitcast<i64>(u64(local.x));
                    let v16 = i32(n15);
                    let v18 = v11 << 2u;
                    let v19 = v13 << 2u;
                    let v21 = v16 & 3i;
                    let v22 = v16 >> 2u;
                    let v24 = v21 * 5i;
                    let v25 = v24 + v22;
                    let v26 = v18 + v21;
                    let v27 = v19 + v22;
                    let v29 = v26 < 9i;
                    if (v29) {
                        let v31 = i64(v26);
                        let v32 = i64(v27);
                        let v33 = v32 * 9li;
                        let v34 = v31 + v33;
                        let v35 = p0[u32(v34)];
                        m14[u32(v25)] = v35;
                    }
                    let v39 = v16 + 8i;
                    let v40 = v39 & 3i;
                    let v41 = v39 >> 2u;
                    let v42 = v40 * 5i;
                    let v43 = v42 + v41;
                    let v44 = v18 + v40;
                    let v45 = v19 + v41;
                    let v46 = v44 < 9i;
                    if (v46) {
                        let v48 = i64(v44);
                        let v49 = i64(v45);
                        let v50 = v49 * 9li;
                        let v51 = v48 + v50;
                        let v52 = p0[u32(v51)];
                        m14[u32(v43)] = v52;
                    }
                    workgroupBarrier();
                    let v56 = v22 * 5i;
                    let v57 = v56 + v21;
                    let v58 = v18 + v22;
                    let v59 = v19 + v21;
                    let v60 = v58 < 9i;
                    if (v60) {
                        let v62 = i64(v58);
                        let v63 = i64(v59);
                        let v64 = m14[u32(v57)];
                        let v66 = v62 * 20li;
                        let v67 = v66 + v63;
                        let v68 = v64 * x0;
                        p1[u32(v67)] = v68;
                    }
                    let v71 = v41 * 5i;
                    let v72 = v71 + v40;
                    let v73 = v18 + v41;
                    let v74 = v19 + v40;
                    let v75 = v73 < 9i;
                    if (v75) {
                        let v77 = i64(v73);
                        let v78 = i64(v74);
                        let v79 = m14[u32(v72)];
                        let v81 = v77 * 20li;
                        let v82 = v81 + v78;
                        let v83 = v79 * x0;
                        p1[u32(v82)] = v83;
                    }
                }
            }
        }
    }
}
