@group(0) @binding(0) var<storage, read_write> p0: array<u32>;
@group(0) @binding(1) var<storage, read_write> p1: array<u32>;
@group(0) @binding(2) var<storage, read_write> p2: array<u32>;
@group(0) @binding(3) var<storage, read_write> p3: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> p4: array<atomic<u32>>;
@group(0) @binding(5) var<storage, read_write> p5: array<atomic<u32>>;
@group(0) @binding(6) var<uniform> args: array<vec4<u32>, 1>;

fn load_p0(i: u32) -> u32 {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    return extractBits(p0[w], s, 8u);
}

fn load_p1(i: u32) -> i32 {
    let w = i >> 1u;
    let s = (i & 1u) * 16u;
    return extractBits(i32(p1[w]), s, 16u);
}

fn load_p2(i: u32) -> u32 {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    return extractBits(p2[w], s, 8u);
}

fn store_p3(i: u32, x: i32) {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    let seen = atomicLoad(&p3[w]);
    atomicXor(&p3[w], seen ^ insertBits(seen, bitcast<u32>(x), s, 8u));
    return;
}

fn store_p4(i: u32, x: u32) {
    let w = i >> 1u;
    let s = (i & 1u) * 16u;
    let seen = atomicLoad(&p4[w]);
    atomicXor(&p4[w], seen ^ insertBits(seen, x, s, 16u));
    return;
}

fn store_p5(i: u32, x: u32) {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    let seen = atomicLoad(&p5[w]);
    atomicXor(&p5[w], seen ^ insertBits(seen, x, s, 8u));
    return;
}

@compute @workgroup_size(8, 1, 1)
fn k_parts_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let x0 = bitcast<i32>(args[0].y);
    {
        let n10 = i32(group.x);
        {
            let n11 = i32(local.x);
            let v12 = n10 * 8i;
            let v13 = v12 + n11;
            let v14 = v13 < 30i;
            let v16 = load_p0(u32(v13));
            let v17 = v16;
            let v18 = select(0i, v13, v14);
            let v19 = load_p1(u32(v18));
            let v20 = v19;
            let v21 = select(0i, v20, v14);
            let v22 = load_p2(u32(v13));
            let v23 = v22;
            let v24 = v23 != 0u;
            let v25 = i32(v17);
            let v26 = v25 + v21;
            let v27 = v26 * x0;
            let v29 = v27 << 24u;
            let v30 = v29 >> 24u;
            let v31 = u32(v26);
            let v33 = v31 & 65535u;
            let v34 = v21 < v25;
            let v35 = select(v21, v25, v34);
            let v36 = v25 < v35;
            let v37 = v24 != v36;
            let v38 = v30;
            store_p3(u32(v13), v38);
            let v41 = v33;
            if (v14) { store_p4(u32(v13), v41); }
            let v43 = select(0u, 1u, v37);
            let v44 = v43;
            store_p5(u32(v13), v44);
        }
    }
}
