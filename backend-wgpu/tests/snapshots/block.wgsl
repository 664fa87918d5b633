@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
@group(0) @binding(2) var<storage, read_write> p2: array<f32>;
@group(0) @binding(3) var<storage, read_write> p3: array<f32>;
var<workgroup> m12: array<f32, 40>;
var<workgroup> m13: array<f32, 72>;
@group(0) @binding(4) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(8, 1, 1)
fn k_block_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let z = args[0].x;
    {
        let n9 = i32(group.z);
        {
            let n10 = i32(group.y);
            {
                let n11 = i32(group.x);
                {
                    let n14 = i32(local.x);
                    let v15 = n10 << 2u;
                    let v16 = n11 << 3u;
                    let v17 = n14 >> 2u;
                    let v18 = n14 & 3i;
                    var m21: array<f32, 1>;
                    m21[0u] = 0.0f;
                    var m23: array<f32, 1>;
                    m23[0u] = 0.0f;
                    var m25: array<f32, 1>;
                    m25[0u] = 0.0f;
                    var m27: array<f32, 1>;
                    m27[0u] = 0.0f;
                    var m29: array<f32, 1>;
                    var m30: array<f32, 1>;
                    var m31: array<f32, 1>;
                    var m32: array<f32, 1>;
                    var m33: array<f32, 1>;
                    var m34: array<f32, 1>;
                    let v36 = v18 * 5i;
                    let v37 = v36 + v17;
                    let v38 = v15 + v17;
                    let v39 = v38 < 8i;
                    let v40 = select(8i, v38, v39);
                    let v42 = v18 < 10i;
                    let v43 = v18 < 9i;
                    let v44 = select(9i, v18, v43);
                    let v45 = v40 * 10i;
                    let v46 = v45 + v44;
                    let v47 = p0[u32(v46)];
                    let v48 = select(0.0f, v47, v42);
                    m29[0u] = v48;
                    let v50 = v17 + 2i;
                    let v51 = v36 + v50;
                    let v52 = v15 + v50;
                    let v53 = v52 < 8i;
                    let v54 = select(8i, v52, v53);
                    let v55 = v54 * 10i;
                    let v56 = v55 + v44;
                    let v57 = p0[u32(v56)];
                    let v58 = select(0.0f, v57, v42);
                    m30[0u] = v58;
                    let v60 = v16 + n14;
                    let v62 = v60 < 11i;
                    let v63 = select(11i, v60, v62);
                    let v65 = p1[u32(v63)];
                    m31[0u] = v65;
                    let v67 = 9i + n14;
                    let v68 = v63 + 12i;
                    let v69 = p1[u32(v68)];
                    m32[0u] = v69;
                    let v72 = 18i + n14;
                    let v74 = v63 + 24i;
                    let v75 = p1[u32(v74)];
                    m33[0u] = v75;
                    let v78 = 27i + n14;
                    let v80 = v63 + 36i;
                    let v81 = p1[u32(v80)];
                    m34[0u] = v81;
                    for (var n83 = 0i; n83 < 3i; n83 += 1i) {
                        let v84 = n83 & 1i;
                        let v86 = v84 * 20i;
                        let v87 = v84 * 36i;
                        let v88 = v86 + v37;
                        let v89 = m29[0u];
                        m12[u32(v88)] = v89;
                        let v91 = v86 + v51;
                        let v92 = m30[0u];
                        m12[u32(v91)] = v92;
                        let v94 = v87 + n14;
                        let v95 = m31[0u];
                        m13[u32(v94)] = v95;
                        let v97 = v87 + v67;
                        let v98 = m32[0u];
                        m13[u32(v97)] = v98;
                        let v100 = v87 + v72;
                        let v101 = m33[0u];
                        m13[u32(v100)] = v101;
                        let v103 = v87 + v78;
                        let v104 = m34[0u];
                        m13[u32(v103)] = v104;
                        workgroupBarrier();
                        let v107 = n83 + 1i;
                        let v108 = v107 < 3i;
                        if (v108) {
                            let v110 = v107 << 2u;
                            let v111 = v110 + v18;
                            let v112 = v111 < 10i;
                            let v113 = v111 < 9i;
                            let v114 = select(9i, v111, v113);
                            let v115 = v45 + v114;
                            let v116 = p0[u32(v115)];
                            let v117 = select(0.0f, v116, v112);
                            m29[0u] = v117;
                            let v119 = v55 + v114;
                            let v120 = p0[u32(v119)];
                            let v121 = select(0.0f, v120, v112);
                            m30[0u] = v121;
                            let v123 = v110 < 10i;
                            let v124 = v110 < 9i;
                            let v125 = select(9i, v110, v124);
                            let v126 = v125 * 12i;
                            let v127 = v63 + v126;
                            let v128 = p1[u32(v127)];
                            let v129 = select(0.0f, v128, v123);
                            m31[0u] = v129;
                            let v131 = v110 + 1i;
                            let v132 = v131 < 10i;
                            let v133 = v131 < 9i;
                            let v134 = select(9i, v131, v133);
                            let v135 = v134 * 12i;
                            let v136 = v63 + v135;
                            let v137 = p1[u32(v136)];
                            let v138 = select(0.0f, v137, v132);
                            m32[0u] = v138;
                            let v140 = v110 + 2i;
                            let v141 = v140 < 10i;
                            let v142 = v140 < 9i;
                            let v143 = select(9i, v140, v142);
                            let v144 = v143 * 12i;
                            let v145 = v63 + v144;
                            let v146 = p1[u32(v145)];
                            let v147 = select(0.0f, v146, v141);
                            m33[0u] = v147;
                            let v149 = v110 + 3i;
                            let v150 = v149 < 10i;
                            let v151 = v149 < 9i;
                            let v152 = select(9i, v149, v151);
                            let v153 = v152 * 12i;
                            let v154 = v63 + v153;
                            let v155 = p1[u32(v154)];
                            let v156 = select(0.0f, v155, v150);
                            m34[0u] = v156;
                        }
                        for (var n159 = 0i; n159 < 1i; n159 += 1i) {
                            let v160 = n159 << 2u;
                            let v161 = v160 * 5i;
                            let v162 = v161 + v17;
                            let v163 = v86 + v162;
                            let v164 = v160 * 9i;
                            let v165 = v164 + v18;
                            let v166 = v87 + v165;
                            let v167 = m12[u32(v163)];
                            let v168 = v163 + 2i;
                            let v169 = m12[u32(v168)];
                            let v170 = m13[u32(v166)];
                            let v172 = v166 + 4i;
                            let v173 = m13[u32(v172)];
                            let v174 = v167 * v170;
                            let v175 = m21[0u];
                            let v176 = v175 + v174;
                            m21[0u] = v176;
                            let v178 = v167 * v173;
                            let v179 = m23[0u];
                            let v180 = v179 + v178;
                            m23[0u] = v180;
                            let v182 = v169 * v170;
                            let v183 = m25[0u];
                            let v184 = v183 + v182;
                            m25[0u] = v184;
                            let v186 = v169 * v173;
                            let v187 = m27[0u];
                            let v188 = v187 + v186;
                            m27[0u] = v188;
                            let v190 = v163 + 5i;
                            let v191 = m12[u32(v190)];
                            let v193 = v163 + 7i;
                            let v194 = m12[u32(v193)];
                            let v195 = v166 + 9i;
                            let v196 = m13[u32(v195)];
                            let v198 = v166 + 13i;
                            let v199 = m13[u32(v198)];
                            let v200 = v191 * v196;
                            let v201 = m21[0u];
                            let v202 = v201 + v200;
                            m21[0u] = v202;
                            let v204 = v191 * v199;
                            let v205 = m23[0u];
                            let v206 = v205 + v204;
                            m23[0u] = v206;
                            let v208 = v194 * v196;
                            let v209 = m25[0u];
                            let v210 = v209 + v208;
                            m25[0u] = v210;
                            let v212 = v194 * v199;
                            let v213 = m27[0u];
                            let v214 = v213 + v212;
                            m27[0u] = v214;
                            let v216 = v163 + 10i;
                            let v217 = m12[u32(v216)];
                            let v218 = v163 + 12i;
                            let v219 = m12[u32(v218)];
                            let v220 = v166 + 18i;
                            let v221 = m13[u32(v220)];
                            let v223 = v166 + 22i;
                            let v224 = m13[u32(v223)];
                            let v225 = v217 * v221;
                            let v226 = m21[0u];
                            let v227 = v226 + v225;
                            m21[0u] = v227;
                            let v229 = v217 * v224;
                            let v230 = m23[0u];
                            let v231 = v230 + v229;
                            m23[0u] = v231;
                            let v233 = v219 * v221;
                            let v234 = m25[0u];
                            let v235 = v234 + v233;
                            m25[0u] = v235;
                            let v237 = v219 * v224;
                            let v238 = m27[0u];
                            let v239 = v238 + v237;
                            m27[0u] = v239;
                            let v242 = v163 + 15i;
                            let v243 = m12[u32(v242)];
                            let v245 = v163 + 17i;
                            let v246 = m12[u32(v245)];
                            let v247 = v166 + 27i;
                            let v248 = m13[u32(v247)];
                            let v250 = v166 + 31i;
                            let v251 = m13[u32(v250)];
                            let v252 = v243 * v248;
                            let v253 = m21[0u];
                            let v254 = v253 + v252;
                            m21[0u] = v254;
                            let v256 = v243 * v251;
                            let v257 = m23[0u];
                            let v258 = v257 + v256;
                            m23[0u] = v258;
                            let v260 = v246 * v248;
                            let v261 = m25[0u];
                            let v262 = v261 + v260;
                            m25[0u] = v262;
                            let v264 = v246 * v251;
                            let v265 = m27[0u];
                            let v266 = v265 + v264;
                            m27[0u] = v266;
                        }
                    }
                    let v270 = v38 + 2i;
                    let v271 = v16 + v18;
                    let v273 = v271 + 4i;
                    let v274 = v38 < 9i;
                    let v275 = v271 < 12i;
                    let v276 = v274 & v275;
                    if (v276) {
                        let v278 = m21[0u];
                        let v279 = p2[u32(v271)];
                        let v280 = v38 * 12i;
                        let v281 = v280 + v271;
                        let v282 = v278 + v279;
                        let v283 = select(0.0f, bitcast<f32>(bitcast<u32>(v282) ^ z), bitcast<f32>(bitcast<u32>(v282) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v282) ^ z)));
                        p3[u32(v281)] = v283;
                    }
                    let v286 = v273 < 12i;
                    let v287 = v274 & v286;
                    if (v287) {
                        let v289 = m23[0u];
                        let v290 = p2[u32(v273)];
                        let v291 = v38 * 12i;
                        let v292 = v291 + v273;
                        let v293 = v289 + v290;
                        let v294 = select(0.0f, bitcast<f32>(bitcast<u32>(v293) ^ z), bitcast<f32>(bitcast<u32>(v293) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v293) ^ z)));
                        p3[u32(v292)] = v294;
                    }
                    let v297 = v270 < 9i;
                    let v298 = v297 & v275;
                    if (v298) {
                        let v300 = m25[0u];
                        let v301 = p2[u32(v271)];
                        let v302 = v270 * 12i;
                        let v303 = v302 + v271;
                        let v304 = v300 + v301;
                        let v305 = select(0.0f, bitcast<f32>(bitcast<u32>(v304) ^ z), bitcast<f32>(bitcast<u32>(v304) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v304) ^ z)));
                        p3[u32(v303)] = v305;
                    }
                    let v308 = v297 & v286;
                    if (v308) {
                        let v310 = m27[0u];
                        let v311 = p2[u32(v273)];
                        let v312 = v270 * 12i;
                        let v313 = v312 + v273;
                        let v314 = v310 + v311;
                        let v315 = select(0.0f, bitcast<f32>(bitcast<u32>(v314) ^ z), bitcast<f32>(bitcast<u32>(v314) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v314) ^ z)));
                        p3[u32(v313)] = v315;
                    }
                }
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
