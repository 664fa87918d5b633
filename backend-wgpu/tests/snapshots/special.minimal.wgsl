@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
@group(0) @binding(2) var<storage, read_write> p2: array<atomic<u32>>;
@group(0) @binding(3) var<uniform> args: array<vec4<u32>, 1>;

fn store_p2(i: u32, x: i32) {
    let w = i >> 2u;
    let s = (i & 3u) * 8u;
    let changed = (atomicLoad(&p2[w]) ^ (u32(x) << s)) & (0xffu << s);
    atomicXor(&p2[w], changed);
    return;
}

@compute @workgroup_size(1, 1, 1)
fn k_special_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let z = args[0].x;
    {
        let i8 = vec2<u32>(group.x, 0u);
        let v9 = p0[i8.x];
        let v11 = v9 * 0.5f;
        let v14 = select((-52.5f), bitcast<f32>(bitcast<u32>(v11) ^ z), bitcast<f32>(bitcast<u32>(v11) ^ z) > (-52.5f) || is_nan_f32(bitcast<f32>(bitcast<u32>(v11) ^ z)));
        let v15 = select(45.0f, bitcast<f32>(bitcast<u32>(v14) ^ z), bitcast<f32>(bitcast<u32>(v14) ^ z) < 45.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v14) ^ z)));
        let v18 = bitcast<f32>(bitcast<u32>(v15) ^ z) * 1.442695f;
        let v19 = bitcast<f32>(bitcast<u32>(v18) ^ z) + 12582912.0f;
        let v20 = bitcast<f32>(bitcast<u32>(v19) ^ z) - 12582912.0f;
        let v21 = bitcast<i32>(v19);
        let v23 = v21 << 23u;
        let v25 = v23 + 1065353216i;
        let v26 = bitcast<f32>(v25);
        let v29 = bitcast<f32>(bitcast<u32>(v20) ^ z) * (-0.6933594f);
        let v30 = bitcast<f32>(bitcast<u32>(v29) ^ z) + bitcast<f32>(bitcast<u32>(v15) ^ z);
        let v31 = bitcast<f32>(bitcast<u32>(v20) ^ z) * 0.00021219444f;
        let v32 = bitcast<f32>(bitcast<u32>(v31) ^ z) + bitcast<f32>(bitcast<u32>(v30) ^ z);
        let v35 = 0.001383686f * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v36 = bitcast<f32>(bitcast<u32>(v35) ^ z) + 0.008374816f;
        let v38 = bitcast<f32>(bitcast<u32>(v36) ^ z) * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v39 = bitcast<f32>(bitcast<u32>(v38) ^ z) + 0.041668225f;
        let v41 = bitcast<f32>(bitcast<u32>(v39) ^ z) * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v42 = bitcast<f32>(bitcast<u32>(v41) ^ z) + 0.1666642f;
        let v44 = bitcast<f32>(bitcast<u32>(v42) ^ z) * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v45 = bitcast<f32>(bitcast<u32>(v44) ^ z) + 0.4999999f;
        let v47 = bitcast<f32>(bitcast<u32>(v45) ^ z) * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v48 = bitcast<f32>(bitcast<u32>(v47) ^ z) + 1.0f;
        let v49 = bitcast<f32>(bitcast<u32>(v48) ^ z) * bitcast<f32>(bitcast<u32>(v32) ^ z);
        let v50 = bitcast<f32>(bitcast<u32>(v49) ^ z) + 1.0f;
        let v51 = bitcast<f32>(bitcast<u32>(v50) ^ z) * v26;
        let v52 = bitcast<f32>(bitcast<u32>(v51) ^ z) * bitcast<f32>(bitcast<u32>(v51) ^ z);
        let v53 = v9 + 1.0f;
        let v55 = bitcast<f32>(bitcast<u32>(v53) ^ z) < 1.1754944e-38f;
        let v57 = bitcast<f32>(bitcast<u32>(v53) ^ z) * 8388608.0f;
        let v58 = select(v53, v57, v55);
        let v61 = select(0.0f, (-23.0f), v55);
        let v62 = bitcast<i32>(v58);
        let v64 = v62 - 1060439283i;
        let v65 = v64 >> 23u;
        let v66 = v65 << 23u;
        let v67 = v62 - v66;
        let v68 = bitcast<f32>(v67);
        let v69 = f32(v65);
        let v70 = v69 + bitcast<f32>(bitcast<u32>(v61) ^ z);
        let v71 = v68 - 1.0f;
        let v74 = 0.06746663f * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v75 = bitcast<f32>(bitcast<u32>(v74) ^ z) + (-0.1167564f);
        let v77 = bitcast<f32>(bitcast<u32>(v75) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v78 = bitcast<f32>(bitcast<u32>(v77) ^ z) + 0.11888145f;
        let v80 = bitcast<f32>(bitcast<u32>(v78) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v81 = bitcast<f32>(bitcast<u32>(v80) ^ z) + (-0.12405589f);
        let v83 = bitcast<f32>(bitcast<u32>(v81) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v84 = bitcast<f32>(bitcast<u32>(v83) ^ z) + 0.14219555f;
        let v86 = bitcast<f32>(bitcast<u32>(v84) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v87 = bitcast<f32>(bitcast<u32>(v86) ^ z) + (-0.16667996f);
        let v89 = bitcast<f32>(bitcast<u32>(v87) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v90 = bitcast<f32>(bitcast<u32>(v89) ^ z) + 0.20002119f;
        let v92 = bitcast<f32>(bitcast<u32>(v90) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v93 = bitcast<f32>(bitcast<u32>(v92) ^ z) + (-0.2500001f);
        let v95 = bitcast<f32>(bitcast<u32>(v93) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v96 = bitcast<f32>(bitcast<u32>(v95) ^ z) + 0.33333313f;
        let v97 = bitcast<f32>(bitcast<u32>(v71) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v98 = bitcast<f32>(bitcast<u32>(v97) ^ z) * bitcast<f32>(bitcast<u32>(v71) ^ z);
        let v99 = bitcast<f32>(bitcast<u32>(v98) ^ z) * bitcast<f32>(bitcast<u32>(v96) ^ z);
        let v101 = bitcast<f32>(bitcast<u32>(v97) ^ z) * (-0.5f);
        let v102 = bitcast<f32>(bitcast<u32>(v101) ^ z) + bitcast<f32>(bitcast<u32>(v99) ^ z);
        let v105 = bitcast<f32>(bitcast<u32>(v70) ^ z) * (-0.00021219444f);
        let v106 = bitcast<f32>(bitcast<u32>(v105) ^ z) + bitcast<f32>(bitcast<u32>(v102) ^ z);
        let v107 = bitcast<f32>(bitcast<u32>(v71) ^ z) + bitcast<f32>(bitcast<u32>(v106) ^ z);
        let v108 = bitcast<f32>(bitcast<u32>(v70) ^ z) * 0.6933594f;
        let v109 = bitcast<f32>(bitcast<u32>(v108) ^ z) + bitcast<f32>(bitcast<u32>(v107) ^ z);
        let v110 = bitcast<f32>(bitcast<u32>(v53) ^ z) < real(0x7f800000u);
        let v111 = select(v53, v109, v110);
        let v113 = bitcast<f32>(bitcast<u32>(v53) ^ z) == 0.0f;
        let v114 = select(real(0x7fc00000u), real(0xff800000u), v113);
        let v115 = 0.0f < bitcast<f32>(bitcast<u32>(v53) ^ z);
        let v116 = select(v114, v111, v115);
        let v117 = bitcast<f32>(bitcast<u32>(v53) ^ z) - 1.0f;
        let v118 = v9 / bitcast<f32>(bitcast<u32>(v117) ^ z);
        let v119 = bitcast<f32>(bitcast<u32>(v116) ^ z) * bitcast<f32>(bitcast<u32>(v118) ^ z);
        let v121 = bitcast<f32>(bitcast<u32>(v9) ^ z) < real(0x7f800000u);
        let v122 = select(v116, v119, v121);
        let v123 = bitcast<f32>(bitcast<u32>(v53) ^ z) == 1.0f;
        let v124 = select(v122, v9, v123);
        let v125 = bitcast<f32>(bitcast<u32>(v9) ^ z) <= (-1.0f);
        let v126 = select(v124, v116, v125);
        let v129 = select((-9.0f), bitcast<f32>(bitcast<u32>(v52) ^ z), bitcast<f32>(bitcast<u32>(v52) ^ z) > (-9.0f) || is_nan_f32(bitcast<f32>(bitcast<u32>(v52) ^ z)));
        let v130 = select(9.0f, bitcast<f32>(bitcast<u32>(v129) ^ z), bitcast<f32>(bitcast<u32>(v129) ^ z) < 9.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v129) ^ z)));
        let v131 = bitcast<f32>(bitcast<u32>(v130) ^ z) * bitcast<f32>(bitcast<u32>(v130) ^ z);
        let v134 = 1.3339839e-8f * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v135 = bitcast<f32>(bitcast<u32>(v134) ^ z) + 2.0598796e-5f;
        let v137 = bitcast<f32>(bitcast<u32>(v135) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v138 = bitcast<f32>(bitcast<u32>(v137) ^ z) + 0.0034949793f;
        let v140 = bitcast<f32>(bitcast<u32>(v138) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v141 = bitcast<f32>(bitcast<u32>(v140) ^ z) + 0.13380519f;
        let v142 = bitcast<f32>(bitcast<u32>(v141) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v143 = bitcast<f32>(bitcast<u32>(v142) ^ z) + 1.0f;
        let v144 = bitcast<f32>(bitcast<u32>(v143) ^ z) * bitcast<f32>(bitcast<u32>(v130) ^ z);
        let v147 = 7.7706164e-7f * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v148 = bitcast<f32>(bitcast<u32>(v147) ^ z) + 0.0003284628f;
        let v150 = bitcast<f32>(bitcast<u32>(v148) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v151 = bitcast<f32>(bitcast<u32>(v150) ^ z) + 0.025874682f;
        let v153 = bitcast<f32>(bitcast<u32>(v151) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v154 = bitcast<f32>(bitcast<u32>(v153) ^ z) + 0.46713835f;
        let v155 = bitcast<f32>(bitcast<u32>(v154) ^ z) * bitcast<f32>(bitcast<u32>(v131) ^ z);
        let v156 = bitcast<f32>(bitcast<u32>(v155) ^ z) + 1.0f;
        let v157 = bitcast<f32>(bitcast<u32>(v144) ^ z) / bitcast<f32>(bitcast<u32>(v156) ^ z);
        let v158 = select((-1.0f), bitcast<f32>(bitcast<u32>(v157) ^ z), bitcast<f32>(bitcast<u32>(v157) ^ z) > (-1.0f) || is_nan_f32(bitcast<f32>(bitcast<u32>(v157) ^ z)));
        let v159 = select(1.0f, bitcast<f32>(bitcast<u32>(v158) ^ z), bitcast<f32>(bitcast<u32>(v158) ^ z) < 1.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v158) ^ z)));
        let v160 = bitcast<f32>(bitcast<u32>(v9) & 0x7fffffffu);
        let v161 = bitcast<f32>(bitcast<u32>(v160) ^ z) < 1.1754944e-38f;
        let v162 = bitcast<f32>(bitcast<u32>(v160) ^ z) * 8388608.0f;
        let v163 = select(v160, v162, v161);
        let v164 = bitcast<i32>(v163);
        let v165 = v164 >> 23u;
        let v166 = v165 - 23i;
        let v167 = select(v165, v166, v161);
        let v170 = v164 & 8388607i;
        let v171 = v170 | 8388608i;
        let v179 = v167 - 128i;
        let v181 = select(0i, v179, v179 > 0i);
        var m182: array<i32, 1>;
        let v184 = v171 - 12582912i;
        let v185 = v171 < 12582912i;
        let v186 = select(v184, v171, v185);
        m182[0u] = v186;
        let v188 = vec2<u32>(u32(v181), u32(v181 >> 31u));
        for (var i189 = vec2<u32>(0u, 0u); lt_i64(i189, v188); i189 = add_64(i189, vec2<u32>(1u, 0u))) {
            let v190 = i32(i189.x);
            let v191 = m182[0u];
            let v192 = v191 + v191;
            let v193 = v192 - 12582912i;
            let v194 = v192 < 12582912i;
            let v195 = select(v193, v192, v194);
            let v196 = v190 < v181;
            let v197 = select(v191, v195, v196);
            m182[0u] = v197;
        }
        let v200 = m182[0u];
        let v201 = f32(v200);
        let v203 = v201 * 7.888609e-31f;
        let v214 = bitcast<f32>(bitcast<u32>(v203) ^ z) * 1.8446744e19f;
        let v215 = bitcast<f32>(bitcast<u32>(v214) ^ z) * 16384.0f;
        let v216 = bitcast<f32>(bitcast<u32>(v160) ^ z) < 3.0f;
        let v217 = select(v215, v160, v216);
        let v218 = bitcast<i32>(v9);
        let v220 = v218 & (-2147483647i - 1i);
        let v221 = bitcast<i32>(v217);
        let v222 = v221 ^ v220;
        let v223 = bitcast<f32>(v222);
        let v224 = bitcast<f32>(bitcast<u32>(v160) ^ z) < real(0x7f800000u);
        let v226 = select(real(0x7fc00000u), v223, v224);
        let v227 = sqrt(bitcast<f32>(bitcast<u32>(v126) ^ z));
        let v228 = round(v9);
        let v229 = select(real(0x7f800000u), bitcast<f32>(bitcast<u32>(v227) ^ z), bitcast<f32>(bitcast<u32>(v227) ^ z) < real(0x7f800000u) || is_nan_f32(bitcast<f32>(bitcast<u32>(v227) ^ z)));
        let v230 = bitcast<f32>(bitcast<u32>(v159) ^ z) + bitcast<f32>(bitcast<u32>(v226) ^ z);
        let v231 = bitcast<f32>(bitcast<u32>(v230) ^ z) + bitcast<f32>(bitcast<u32>(v229) ^ z);
        let v232 = !(bitcast<f32>(bitcast<u32>(v231) ^ z) == bitcast<f32>(bitcast<u32>(v231) ^ z));
        let v233 = select(v231, v228, v232);
        let v234 = select(real(0x1u), bitcast<f32>(bitcast<u32>(v233) ^ z), bitcast<f32>(bitcast<u32>(v233) ^ z) > real(0x1u) || is_nan_f32(bitcast<f32>(bitcast<u32>(v233) ^ z)));
        let v235 = real(0x7f800000u) < bitcast<f32>(bitcast<u32>(v234) ^ z);
        let v236 = select(v234, real(0x7fc00000u), v235);
        p1[i8.x] = v236;
        let v238 = clamp(i32_from_f32(v9), (-128i), 127i);
        store_p2(i8.x, v238);
    }
}

// A float by its bits. Not an expression the translator could evaluate: WGSL has no constant
// infinities or NaNs.
fn real(x: u32) -> f32 {
    return bitcast<f32>(x);
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn i32_from_f32(x: f32) -> i32 {
    if (is_nan_f32(x)) {
        return 0i;
    }
    if (x >= 2147483648.0f) {
        return 2147483647i;
    }
    if (x < -2147483648.0f) {
        return -2147483647i - 1i;
    }
    return i32(x);
}

fn add_64(x: vec2<u32>, y: vec2<u32>) -> vec2<u32> {
    let low = x.x + y.x;
    return vec2<u32>(low, x.y + y.y + select(0u, 1u, low < x.x));
}

fn lt_i64(x: vec2<u32>, y: vec2<u32>) -> bool {
    return i32(x.y) < i32(y.y) || (x.y == y.y && x.x < y.x);
}
