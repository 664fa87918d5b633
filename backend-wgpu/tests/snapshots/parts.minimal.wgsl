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
            var v18: i32;
            if (v14) { v18 = load_p1(u32(v13)); }
            let v19 = v18;
            let v20 = load_p2(u32(v13));
            let v21 = v20;
            let v22 = v21 != 0u;
            let v23 = i32(v17);
            let v24 = v23 + v19;
            let v25 = v24 * x0;
            let v27 = v25 << 24u;
            let v28 = v27 >> 24u;
            let v29 = u32(v24);
            let v31 = v29 & 65535u;
            let v32 = v19 < v23;
            let v33 = select(v19, v23, v32);
            let v34 = v23 < v33;
            let v35 = v22 != v34;
            let v36 = v28;
            store_p3(u32(v13), v36);
            let v38 = v31;
            if (v14) { store_p4(u32(v13), v38); }
            let v40 = select(0u, 1u, v35);
            let v41 = v40;
            store_p5(u32(v13), v41);
        }
    }
}
