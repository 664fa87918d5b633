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
        let n8 = vec2<u32>(group.z, 0u);
        let v9 = i32(n8.x);
        {
            let n10 = vec2<u32>(group.y, 0u);
            let v11 = i32(n10.x);
            {
                let n12 = vec2<u32>(group.x, 0u);
                let v13 = i32(n12.x);
                {
                    let n15 = vec2<u32>(local.x, 0u);
                    let v16 = i32(n15.x);
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
                        let v31 = vec2<u32>(u32(v26), u32(v26 >> 31u));
                        let v32 = vec2<u32>(u32(v27), u32(v27 >> 31u));
                        let v33 = mul_64(v32, vec2<u32>(9u, 0u));
                        let v34 = add_64(v31, v33);
                        let v35 = p0[v34.x];
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
                        let v48 = vec2<u32>(u32(v44), u32(v44 >> 31u));
                        let v49 = vec2<u32>(u32(v45), u32(v45 >> 31u));
                        let v50 = mul_64(v49, vec2<u32>(9u, 0u));
                        let v51 = add_64(v48, v50);
                        let v52 = p0[v51.x];
                        m14[u32(v43)] = v52;
                    }
                    workgroupBarrier();
                    let v56 = v22 * 5i;
                    let v57 = v56 + v21;
                    let v58 = v18 + v22;
                    let v59 = v19 + v21;
                    let v60 = v58 < 9i;
                    if (v60) {
                        let v62 = vec2<u32>(u32(v58), u32(v58 >> 31u));
                        let v63 = vec2<u32>(u32(v59), u32(v59 >> 31u));
                        let v64 = m14[u32(v57)];
                        let v66 = mul_64(v62, vec2<u32>(20u, 0u));
                        let v67 = add_64(v66, v63);
                        let v68 = v64 * x0;
                        p1[v67.x] = v68;
                    }
                    let v71 = v41 * 5i;
                    let v72 = v71 + v40;
                    let v73 = v18 + v41;
                    let v74 = v19 + v40;
                    let v75 = v73 < 9i;
                    if (v75) {
                        let v77 = vec2<u32>(u32(v73), u32(v73 >> 31u));
                        let v78 = vec2<u32>(u32(v74), u32(v74 >> 31u));
                        let v79 = m14[u32(v72)];
                        let v81 = mul_64(v77, vec2<u32>(20u, 0u));
                        let v82 = add_64(v81, v78);
                        let v83 = v79 * x0;
                        p1[v82.x] = v83;
                    }
                }
            }
        }
    }
}

fn add_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}

// The whole product of two words, from products of their halves.
fn mul_wide(x: u32, y: u32) -> vec2<u32> {
    let xl = x & 0xffffu;
    let xh = x >> 16u;
    let yl = y & 0xffffu;
    let yh = y >> 16u;
    let low = xl * yl;
    let middle = xh * yl + (low >> 16u);
    let other = xl * yh + (middle & 0xffffu);
    return vec2<u32>(x * y, xh * yh + (middle >> 16u) + (other >> 16u));
}

fn mul_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = mul_wide(x.x, y.x);
    return vec2<u32>(low.x, low.y + x.x * y.y + x.y * y.x);
}
