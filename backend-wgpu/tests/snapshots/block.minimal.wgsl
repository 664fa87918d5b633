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
                    let v39 = select(8i, v38, v38 < 8i);
                    let v41 = v18 < 10i;
                    let v42 = select(9i, v18, v18 < 9i);
                    let v43 = v39 * 10i;
                    let v44 = v43 + v42;
                    let v45 = p0[u32(v44)];
                    let v46 = select(0.0f, v45, v41);
                    m29[0u] = v46;
                    let v48 = v17 + 2i;
                    let v49 = v36 + v48;
                    let v50 = v15 + v48;
                    let v51 = select(8i, v50, v50 < 8i);
                    let v52 = v51 * 10i;
                    let v53 = v52 + v42;
                    let v54 = p0[u32(v53)];
                    let v55 = select(0.0f, v54, v41);
                    m30[0u] = v55;
                    let v57 = v16 + n14;
                    let v59 = select(11i, v57, v57 < 11i);
                    let v61 = p1[u32(v59)];
                    m31[0u] = v61;
                    let v63 = 9i + n14;
                    let v64 = v59 + 12i;
                    let v65 = p1[u32(v64)];
                    m32[0u] = v65;
                    let v68 = 18i + n14;
                    let v70 = v59 + 24i;
                    let v71 = p1[u32(v70)];
                    m33[0u] = v71;
                    let v74 = 27i + n14;
                    let v76 = v59 + 36i;
                    let v77 = p1[u32(v76)];
                    m34[0u] = v77;
                    for (var n79 = 0i; n79 < 3i; n79 += 1i) {
                        let v80 = n79 & 1i;
                        let v82 = v80 * 20i;
                        let v83 = v80 * 36i;
                        let v84 = v82 + v37;
                        let v85 = m29[0u];
                        m12[u32(v84)] = v85;
                        let v87 = v82 + v49;
                        let v88 = m30[0u];
                        m12[u32(v87)] = v88;
                        let v90 = v83 + n14;
                        let v91 = m31[0u];
                        m13[u32(v90)] = v91;
                        let v93 = v83 + v63;
                        let v94 = m32[0u];
                        m13[u32(v93)] = v94;
                        let v96 = v83 + v68;
                        let v97 = m33[0u];
                        m13[u32(v96)] = v97;
                        let v99 = v83 + v74;
                        let v100 = m34[0u];
                        m13[u32(v99)] = v100;
                        workgroupBarrier();
                        let v103 = n79 + 1i;
                        let v104 = v103 < 3i;
                        if (v104) {
                            let v106 = v103 << 2u;
                            let v107 = v106 + v18;
                            let v108 = v107 < 10i;
                            let v109 = select(9i, v107, v107 < 9i);
                            let v110 = v43 + v109;
                            let v111 = p0[u32(v110)];
                            let v112 = select(0.0f, v111, v108);
                            m29[0u] = v112;
                            let v114 = v52 + v109;
                            let v115 = p0[u32(v114)];
                            let v116 = select(0.0f, v115, v108);
                            m30[0u] = v116;
                            let v118 = v106 < 10i;
                            let v119 = select(9i, v106, v106 < 9i);
                            let v120 = v119 * 12i;
                            let v121 = v59 + v120;
                            let v122 = p1[u32(v121)];
                            let v123 = select(0.0f, v122, v118);
                            m31[0u] = v123;
                            let v125 = v106 + 1i;
                            let v126 = v125 < 10i;
                            let v127 = select(9i, v125, v125 < 9i);
                            let v128 = v127 * 12i;
                            let v129 = v59 + v128;
                            let v130 = p1[u32(v129)];
                            let v131 = select(0.0f, v130, v126);
                            m32[0u] = v131;
                            let v133 = v106 + 2i;
                            let v134 = v133 < 10i;
                            let v135 = select(9i, v133, v133 < 9i);
                            let v136 = v135 * 12i;
                            let v137 = v59 + v136;
                            let v138 = p1[u32(v137)];
                            let v139 = select(0.0f, v138, v134);
                            m33[0u] = v139;
                            let v141 = v106 + 3i;
                            let v142 = v141 < 10i;
                            let v143 = select(9i, v141, v141 < 9i);
                            let v144 = v143 * 12i;
                            let v145 = v59 + v144;
                            let v146 = p1[u32(v145)];
                            let v147 = select(0.0f, v146, v142);
                            m34[0u] = v147;
                        }
                        for (var n150 = 0i; n150 < 1i; n150 += 1i) {
                            let v151 = n150 << 2u;
                            let v152 = v151 * 5i;
                            let v153 = v152 + v17;
                            let v154 = v82 + v153;
                            let v155 = v151 * 9i;
                            let v156 = v155 + v18;
                            let v157 = v83 + v156;
                            let v158 = m12[u32(v154)];
                            let v159 = v154 + 2i;
                            let v160 = m12[u32(v159)];
                            let v161 = m13[u32(v157)];
                            let v163 = v157 + 4i;
                            let v164 = m13[u32(v163)];
                            let v165 = v158 * v161;
                            let v166 = m21[0u];
                            let v167 = v166 + v165;
                            m21[0u] = v167;
                            let v169 = v158 * v164;
                            let v170 = m23[0u];
                            let v171 = v170 + v169;
                            m23[0u] = v171;
                            let v173 = v160 * v161;
                            let v174 = m25[0u];
                            let v175 = v174 + v173;
                            m25[0u] = v175;
                            let v177 = v160 * v164;
                            let v178 = m27[0u];
                            let v179 = v178 + v177;
                            m27[0u] = v179;
                            let v181 = v154 + 5i;
                            let v182 = m12[u32(v181)];
                            let v184 = v154 + 7i;
                            let v185 = m12[u32(v184)];
                            let v186 = v157 + 9i;
                            let v187 = m13[u32(v186)];
                            let v189 = v157 + 13i;
                            let v190 = m13[u32(v189)];
                            let v191 = v182 * v187;
                            let v192 = m21[0u];
                            let v193 = v192 + v191;
                            m21[0u] = v193;
                            let v195 = v182 * v190;
                            let v196 = m23[0u];
                            let v197 = v196 + v195;
                            m23[0u] = v197;
                            let v199 = v185 * v187;
                            let v200 = m25[0u];
                            let v201 = v200 + v199;
                            m25[0u] = v201;
                            let v203 = v185 * v190;
                            let v204 = m27[0u];
                            let v205 = v204 + v203;
                            m27[0u] = v205;
                            let v207 = v154 + 10i;
                            let v208 = m12[u32(v207)];
                            let v209 = v154 + 12i;
                            let v210 = m12[u32(v209)];
                            let v211 = v157 + 18i;
                            let v212 = m13[u32(v211)];
                            let v214 = v157 + 22i;
                            let v215 = m13[u32(v214)];
                            let v216 = v208 * v212;
                            let v217 = m21[0u];
                            let v218 = v217 + v216;
                            m21[0u] = v218;
                            let v220 = v208 * v215;
                            let v221 = m23[0u];
                            let v222 = v221 + v220;
                            m23[0u] = v222;
                            let v224 = v210 * v212;
                            let v225 = m25[0u];
                            let v226 = v225 + v224;
                            m25[0u] = v226;
                            let v228 = v210 * v215;
                            let v229 = m27[0u];
                            let v230 = v229 + v228;
                            m27[0u] = v230;
                            let v233 = v154 + 15i;
                            let v234 = m12[u32(v233)];
                            let v236 = v154 + 17i;
                            let v237 = m12[u32(v236)];
                            let v238 = v157 + 27i;
                            let v239 = m13[u32(v238)];
                            let v241 = v157 + 31i;
                            let v242 = m13[u32(v241)];
                            let v243 = v234 * v239;
                            let v244 = m21[0u];
                            let v245 = v244 + v243;
                            m21[0u] = v245;
                            let v247 = v234 * v242;
                            let v248 = m23[0u];
                            let v249 = v248 + v247;
                            m23[0u] = v249;
                            let v251 = v237 * v239;
                            let v252 = m25[0u];
                            let v253 = v252 + v251;
                            m25[0u] = v253;
                            let v255 = v237 * v242;
                            let v256 = m27[0u];
                            let v257 = v256 + v255;
                            m27[0u] = v257;
                        }
                    }
                    let v261 = v38 + 2i;
                    let v262 = v16 + v18;
                    let v264 = v262 + 4i;
                    let v265 = v38 < 9i;
                    let v266 = v262 < 12i;
                    let v267 = v265 & v266;
                    if (v267) {
                        let v269 = m21[0u];
                        let v270 = p2[u32(v262)];
                        let v271 = v38 * 12i;
                        let v272 = v271 + v262;
                        let v273 = v269 + v270;
                        let v274 = select(0.0f, bitcast<f32>(bitcast<u32>(v273) ^ z), bitcast<f32>(bitcast<u32>(v273) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v273) ^ z)));
                        p3[u32(v272)] = v274;
                    }
                    let v277 = v264 < 12i;
                    let v278 = v265 & v277;
                    if (v278) {
                        let v280 = m23[0u];
                        let v281 = p2[u32(v264)];
                        let v282 = v38 * 12i;
                        let v283 = v282 + v264;
                        let v284 = v280 + v281;
                        let v285 = select(0.0f, bitcast<f32>(bitcast<u32>(v284) ^ z), bitcast<f32>(bitcast<u32>(v284) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v284) ^ z)));
                        p3[u32(v283)] = v285;
                    }
                    let v288 = v261 < 9i;
                    let v289 = v288 & v266;
                    if (v289) {
                        let v291 = m25[0u];
                        let v292 = p2[u32(v262)];
                        let v293 = v261 * 12i;
                        let v294 = v293 + v262;
                        let v295 = v291 + v292;
                        let v296 = select(0.0f, bitcast<f32>(bitcast<u32>(v295) ^ z), bitcast<f32>(bitcast<u32>(v295) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v295) ^ z)));
                        p3[u32(v294)] = v296;
                    }
                    let v299 = v288 & v277;
                    if (v299) {
                        let v301 = m27[0u];
                        let v302 = p2[u32(v264)];
                        let v303 = v261 * 12i;
                        let v304 = v303 + v264;
                        let v305 = v301 + v302;
                        let v306 = select(0.0f, bitcast<f32>(bitcast<u32>(v305) ^ z), bitcast<f32>(bitcast<u32>(v305) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v305) ^ z)));
                        p3[u32(v304)] = v306;
                    }
                }
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
