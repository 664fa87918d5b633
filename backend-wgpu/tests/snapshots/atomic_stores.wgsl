@group(0) @binding(0) var<storage, read_write> p0: array<atomic<u32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> p2: array<atomic<i32>>;
@group(0) @binding(3) var<storage, read_write> p3: array<i32>;

fn load_p0(i: u32) -> u32 {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    return extractBits(atomicLoad(&p0[w]), s, 8u);
}

fn load_p1(i: u32) -> i32 {
    let w = i >> 1u;
    let s = (i & 1u) * 16u;
    return extractBits(i32(atomicLoad(&p1[w])), s, 16u);
}

fn set_p0(i: u32, x: u32) -> u32 {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    var seen = atomicLoad(&p0[w]);
    var old = extractBits(seen, s, 8u);
    loop {
        let next = x;
        let result = atomicCompareExchangeWeak(&p0[w], seen, (seen & ~(0xffu << s)) | ((next & 0xffu) << s));
        if (result.exchanged) {
            break;
        }
        seen = result.old_value;
        old = extractBits(seen, s, 8u);
    }
    return old;
}

fn set_p1(i: u32, x: i32) -> i32 {
    let w = i >> 1u;
    let s = (i & 1u) * 16u;
    var seen = atomicLoad(&p1[w]);
    var old = extractBits(i32(seen), s, 16u);
    loop {
        let next = x;
        let result = atomicCompareExchangeWeak(&p1[w], seen, (seen & ~(0xffffu << s)) | ((u32(next) & 0xffffu) << s));
        if (result.exchanged) {
            break;
        }
        seen = result.old_value;
        old = extractBits(i32(seen), s, 16u);
    }
    return old;
}

@compute @workgroup_size(32, 1, 1)
fn k_atomic_stores_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n7 = i32(group.x);
        {
            let n8 = i32(local.x);
            let v9 = n8 % 8i;
            let v10 = v9 + 200i;
            let v11 = u32(v10) & 0xffu;
            let v12 = 8i - v10;
            let v13 = extractBits(v12, 0u, 16u);
            set_p0(u32(v9), v11);
            set_p1(u32(v9), v13);
            atomicStore(&p2[u32(v9)], v10);
            let v17 = load_p0(u32(v9));
            let v18 = load_p1(u32(v9));
            let v19 = atomicLoad(&p2[u32(v9)]);
            let v20 = i32(v17);
            let v21 = v18;
            let v22 = v20 + v21;
            let v23 = v22 + v19;
            let v24 = n7 * 32i;
            let v25 = v24 + n8;
            p3[u32(v25)] = v23;
        }
    }
}
