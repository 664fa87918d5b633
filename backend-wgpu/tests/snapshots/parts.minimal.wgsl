@group(0) @binding(0) var<storage, read_write> p0: array<u32>;
@group(0) @binding(1) var<storage, read_write> p1: array<u32>;
@group(0) @binding(2) var<storage, read_write> p2: array<u32>;
@group(0) @binding(3) var<storage, read_write> p3: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> p4: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> p5: array<atomic<u32>>;
@group(0) @binding(6) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(8, 1, 1)
fn k_parts_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x0 = bitcast<i32>(args[0].y);
    {
        let n11 = i32(group.x);
        {
            let n12 = i32(local.x);
            let v13 = n11 * 8i;
            let v14 = v13 + n12;
            let v15 = v14 < 30i;
            let v17 = u32(v14);
            let v19 = v17 >> 2u;
            let v20 = i32(v19);
            let v22 = v17 & 3u;
            let v23 = v22 * 8u;
            let v24 = p0[u32(v20)];
            let v25 = v24 >> u32(v23);
            let v27 = v25 & 255u;
            let v28 = select(0i, v14, v15);
            let v29 = u32(v28);
            let v31 = v29 >> 1u;
            let v32 = i32(v31);
            let v33 = v29 & 1u;
            let v35 = v33 * 16u;
            let v36 = p1[u32(v32)];
            let v37 = v36 >> u32(v35);
            let v38 = bitcast<i32>(v37);
            let v40 = v38 << 16u;
            let v41 = v40 >> 16u;
            let v42 = select(0i, v41, v15);
            let v43 = p2[u32(v20)];
            let v44 = v43 >> u32(v23);
            let v45 = v44 & 255u;
            let v46 = v45 != 0u;
            let v47 = i32(v27);
            let v48 = v47 + v42;
            let v49 = v48 * x0;
            let v51 = v49 << 24u;
            let v52 = v51 >> 24u;
            let v53 = u32(v48);
            let v55 = v53 & 65535u;
            let v56 = v42 < v47;
            let v57 = select(v42, v47, v56);
            let v58 = v47 < v57;
            let v59 = v46 != v58;
            let v60 = atomicLoad(&p3[u32(v20)]);
            let v61 = v60 >> u32(v23);
            let v62 = bitcast<u32>(v52);
            let v63 = v61 ^ v62;
            let v64 = v63 & 255u;
            let v65 = v64 << u32(v23);
            atomicXor(&p3[u32(v20)], v65);
            let v67 = v17 >> 1u;
            let v68 = i32(v67);
            let v69 = v17 & 1u;
            let v70 = v69 * 16u;
            let v71 = select(0i, v68, v15);
            let v73 = atomicLoad(&p4[u32(v71)]);
            let v74 = v73 >> u32(v70);
            let v75 = v74 ^ v55;
            let v76 = v75 & 65535u;
            let v77 = v76 << u32(v70);
            if (v15) { atomicXor(&p4[u32(v68)], v77); }
            let v79 = select(0u, 1u, v59);
            let v80 = atomicLoad(&p5[u32(v20)]);
            let v81 = v80 >> u32(v23);
            let v82 = v81 ^ v79;
            let v83 = v82 & 255u;
            let v84 = v83 << u32(v23);
            atomicXor(&p5[u32(v20)], v84);
        }
    }
}
