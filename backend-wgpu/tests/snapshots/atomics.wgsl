@group(0) @binding(0) var<storage, read_write> p0: array<atomic<i32>>;
@group(0) @binding(1) var<storage, read_write> p1: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> p2: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> p3: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> p4: array<atomic<i64>>;
var<workgroup> m14: array<atomic<i64>, 4>;

fn add_p1(i: u32, x: f32) -> f32 {
    var seen = atomicLoad(&p1[i]);
    var old = bitcast<f32>(seen);
    loop {
        let next = (old + x);
        let result = atomicCompareExchangeWeak(&p1[i], seen, bitcast<u32>(next));
        if (result.exchanged) {
            break;
        }
        seen = result.old_value;
        old = bitcast<f32>(seen);
    }
    return old;
}

fn add_p2(i: u32, x: u32) -> u32 {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    var seen = atomicLoad(&p2[w]);
    var old = extractBits(seen, s, 8u);
    loop {
        let next = (old + x) & 0xffu;
        let result = atomicCompareExchangeWeak(&p2[w], seen, (seen & ~(0xffu << s)) | ((next & 0xffu) << s));
        if (result.exchanged) {
            break;
        }
        seen = result.old_value;
        old = extractBits(seen, s, 8u);
    }
    return old;
}

fn add_p3(i: u32, x: u32) -> u32 {
    let w = i >> 1u;
    let s = (i & 1u) * 16u;
    var seen = atomicLoad(&p3[w]);
    var old = extractBits(seen, s, 16u);
    loop {
        let next = (old + x) & 0xffffu;
        let result = atomicCompareExchangeWeak(&p3[w], seen, (seen & ~(0xffffu << s)) | ((next & 0xffffu) << s));
        if (result.exchanged) {
            break;
        }
        seen = result.old_value;
        old = extractBits(seen, s, 16u);
    }
    return old;
}

@compute @workgroup_size(32, 1, 1)
fn k_atomics_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n13 = i32(group.x);
        {
            let n15 = i32(local.x);
            let v16 = n15 < 4i;
            if (v16) {
                atomicStore(&m14[u32(n15)], 0li);
            }
            workgroupBarrier();
            let v21 = n15 % 4i;
            let v22 = atomicAdd(&p0[u32(v21)], 1i);
            let v23 = add_p1(u32(v21), 1.0f);
            let v24 = add_p2(u32(v21), 1u);
            let v25 = add_p3(u32(v21), 1u);
            let v26 = v21 < 4i;
            let v28 = i64(n15);
            var v29: i64;
            if (v26) { v29 = atomicMax(&m14[u32(v21)], v28); }
            workgroupBarrier();
            if (v16) {
                let v32 = atomicLoad(&m14[u32(n15)]);
                let v33 = atomicAdd(&p4[u32(n15)], v32);
            }
        }
    }
}
