@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
@group(0) @binding(2) var<storage, read_write> p2: array<f32>;
@group(0) @binding(3) var<storage, read_write> p3: array<f32>;
var<workgroup> m15: array<f32, 40>;
var<workgroup> m16: array<f32, 72>;
@group(0) @binding(4) var<uniform> args: array<vec4<u32>, 1>;

@compute @workgroup_size(8, 1, 1)
fn k_block_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    let z = args[0].x;
    {
        let n9 = bitcast<i64>(u64(group.z));
        let v10 = i32(n9);
        {
            let n11 = bitcast<i64>(u64(group.y));
            let v12 = i32(n11);
            {
                let n13 = bitcast<i64>(u64(group.x));
                let v14 = i32(n13);
                {
                    let n17 = bitcast<i64>(u64(local.x));
                    let v18 = i32(n17);
                    let v20 = v12 << 2u;
                    let v22 = v14 << 3u;
                    let v23 = v18 >> 2u;
                    let v24 = v18 & 3i;
                    var m27: array<f32, 1>;
                    m27[0u] = 0.0f;
                    var m29: array<f32, 1>;
                    m29[0u] = 0.0f;
                    var m31: array<f32, 1>;
                    m31[0u] = 0.0f;
                    var m33: array<f32, 1>;
                    m33[0u] = 0.0f;
                    var m35: array<f32, 1>;
                    var m36: array<f32, 1>;
                    var m37: array<f32, 1>;
                    var m38: array<f32, 1>;
                    var m39: array<f32, 1>;
                    var m40: array<f32, 1>;
                    let v43 = v24 * 5i;
                    let v44 = v43 + v23;
                    let v45 = v20 + v23;
                    let v47 = select(8i, v45, v45 < 8i);
                    let v49 = v24 < 10i;
                    let v51 = select(9i, v24, v24 < 9i);
                    let v52 = i64(v47);
                    let v53 = i64(v51);
                    let v55 = v52 * 10li;
                    let v56 = v55 + v53;
                    let v57 = p0[u32(v56)];
                    let v58 = select(0.0f, v57, v49);
                    m35[0u] = v58;
                    let v60 = v23 + 2i;
                    let v61 = v43 + v60;
                    let v62 = v20 + v60;
                    let v63 = select(8i, v62, v62 < 8i);
                    let v64 = i64(v63);
                    let v65 = v64 * 10li;
                    let v66 = v65 + v53;
                    let v67 = p0[u32(v66)];
                    let v68 = select(0.0f, v67, v49);
                    m36[0u] = v68;
                    let v70 = v22 + v18;
                    let v72 = select(11i, v70, v70 < 11i);
                    let v74 = i64(v72);
                    let v76 = p1[u32(v74)];
                    m37[0u] = v76;
                    let v79 = 9i + v18;
                    let v80 = v74 + 12li;
                    let v81 = p1[u32(v80)];
                    m38[0u] = v81;
                    let v84 = 18i + v18;
                    let v86 = v74 + 24li;
                    let v87 = p1[u32(v86)];
                    m39[0u] = v87;
                    let v90 = 27i + v18;
                    let v92 = v74 + 36li;
                    let v93 = p1[u32(v92)];
                    m40[0u] = v93;
                    for (var c95 = 0i; c95 < 3i; c95 = c95 + 1i) {
                        let n95 = i64(c95);
                        let v96 = i32(n95);
                        let v97 = v96 & 1i;
                        let v99 = v97 * 20i;
                        let v101 = v97 * 36i;
                        let v102 = v99 + v44;
                        let v103 = m35[0u];
                        m15[u32(v102)] = v103;
                        let v105 = v99 + v61;
                        let v106 = m36[0u];
                        m15[u32(v105)] = v106;
                        let v108 = v101 + v18;
                        let v109 = m37[0u];
                        m16[u32(v108)] = v109;
                        let v111 = v101 + v79;
                        let v112 = m38[0u];
                        m16[u32(v111)] = v112;
                        let v114 = v101 + v84;
                        let v115 = m39[0u];
                        m16[u32(v114)] = v115;
                        let v117 = v101 + v90;
                        let v118 = m40[0u];
                        m16[u32(v117)] = v118;
                        workgroupBarrier();
                        let v121 = v96 + 1i;
                        let v122 = v121 < 3i;
                        if (v122) {
                            let v124 = v121 << 2u;
                            let v125 = v124 + v24;
                            let v126 = v125 < 10i;
                            let v127 = select(9i, v125, v125 < 9i);
                            let v128 = i64(v127);
                            let v129 = v55 + v128;
                            let v130 = p0[u32(v129)];
                            let v131 = select(0.0f, v130, v126);
                            m35[0u] = v131;
                            let v133 = v65 + v128;
                            let v134 = p0[u32(v133)];
                            let v135 = select(0.0f, v134, v126);
                            m36[0u] = v135;
                            let v137 = v124 < 10i;
                            let v138 = select(9i, v124, v124 < 9i);
                            let v139 = i64(v138);
                            let v140 = v139 * 12li;
                            let v141 = v74 + v140;
                            let v142 = p1[u32(v141)];
                            let v143 = select(0.0f, v142, v137);
                            m37[0u] = v143;
                            let v145 = v124 + 1i;
                            let v146 = v145 < 10i;
                            let v147 = select(9i, v145, v145 < 9i);
                            let v148 = i64(v147);
                            let v149 = v148 * 12li;
                            let v150 = v74 + v149;
                            let v151 = p1[u32(v150)];
                            let v152 = select(0.0f, v151, v146);
                            m38[0u] = v152;
                            let v154 = v124 + 2i;
                            let v155 = v154 < 10i;
                            let v156 = select(9i, v154, v154 < 9i);
                            let v157 = i64(v156);
                            let v158 = v157 * 12li;
                            let v159 = v74 + v158;
                            let v160 = p1[u32(v159)];
                            let v161 = select(0.0f, v160, v155);
                            m39[0u] = v161;
                            let v163 = v124 + 3i;
                            let v164 = v163 < 10i;
                            let v165 = select(9i, v163, v163 < 9i);
                            let v166 = i64(v165);
                            let v167 = v166 * 12li;
                            let v168 = v74 + v167;
                            let v169 = p1[u32(v168)];
                            let v170 = select(0.0f, v169, v164);
                            m40[0u] = v170;
                        }
                        for (var c173 = 0i; c173 < 1i; c173 = c173 + 1i) {
                            let n173 = i64(c173);
                            let v174 = i32(n173);
                            let v175 = v174 << 2u;
                            let v176 = v175 * 5i;
                            let v177 = v176 + v23;
                            let v178 = v99 + v177;
                            let v179 = v175 * 9i;
                            let v180 = v179 + v24;
                            let v181 = v101 + v180;
                            let v182 = m15[u32(v178)];
                            let v183 = v178 + 2i;
                            let v184 = m15[u32(v183)];
                            let v185 = m16[u32(v181)];
                            let v187 = v181 + 4i;
                            let v188 = m16[u32(v187)];
                            let v189 = v182 * v185;
                            let v190 = m27[0u];
                            let v191 = v190 + v189;
                            m27[0u] = v191;
                            let v193 = v182 * v188;
                            let v194 = m29[0u];
                            let v195 = v194 + v193;
                            m29[0u] = v195;
                            let v197 = v184 * v185;
                            let v198 = m31[0u];
                            let v199 = v198 + v197;
                            m31[0u] = v199;
                            let v201 = v184 * v188;
                            let v202 = m33[0u];
                            let v203 = v202 + v201;
                            m33[0u] = v203;
                            let v205 = v178 + 5i;
                            let v206 = m15[u32(v205)];
                            let v208 = v178 + 7i;
                            let v209 = m15[u32(v208)];
                            let v210 = v181 + 9i;
                            let v211 = m16[u32(v210)];
                            let v213 = v181 + 13i;
                            let v214 = m16[u32(v213)];
                            let v215 = v206 * v211;
                            let v216 = m27[0u];
                            let v217 = v216 + v215;
                            m27[0u] = v217;
                            let v219 = v206 * v214;
                            let v220 = m29[0u];
                            let v221 = v220 + v219;
                            m29[0u] = v221;
                            let v223 = v209 * v211;
                            let v224 = m31[0u];
                            let v225 = v224 + v223;
                            m31[0u] = v225;
                            let v227 = v209 * v214;
                            let v228 = m33[0u];
                            let v229 = v228 + v227;
                            m33[0u] = v229;
                            let v231 = v178 + 10i;
                            let v232 = m15[u32(v231)];
                            let v234 = v178 + 12i;
                            let v235 = m15[u32(v234)];
                            let v236 = v181 + 18i;
                            let v237 = m16[u32(v236)];
                            let v239 = v181 + 22i;
                            let v240 = m16[u32(v239)];
                            let v241 = v232 * v237;
                            let v242 = m27[0u];
                            let v243 = v242 + v241;
                            m27[0u] = v243;
                            let v245 = v232 * v240;
                            let v246 = m29[0u];
                            let v247 = v246 + v245;
                            m29[0u] = v247;
                            let v249 = v235 * v237;
                            let v250 = m31[0u];
                            let v251 = v250 + v249;
                            m31[0u] = v251;
                            let v253 = v235 * v240;
                            let v254 = m33[0u];
                            let v255 = v254 + v253;
                            m33[0u] = v255;
                            let v258 = v178 + 15i;
                            let v259 = m15[u32(v258)];
                            let v261 = v178 + 17i;
                            let v262 = m15[u32(v261)];
                            let v263 = v181 + 27i;
                            let v264 = m16[u32(v263)];
                            let v266 = v181 + 31i;
                            let v267 = m16[u32(v266)];
                            let v268 = v259 * v264;
                            let v269 = m27[0u];
                            let v270 = v269 + v268;
                            m27[0u] = v270;
                            let v272 = v259 * v267;
                            let v273 = m29[0u];
                            let v274 = v273 + v272;
                            m29[0u] = v274;
                            let v276 = v262 * v264;
                            let v277 = m31[0u];
                            let v278 = v277 + v276;
                            m31[0u] = v278;
                            let v280 = v262 * v267;
                            let v281 = m33[0u];
                            let v282 = v281 + v280;
                            m33[0u] = v282;
                        }
                    }
                    let v286 = v45 + 2i;
                    let v287 = v22 + v24;
                    let v289 = v287 + 4i;
                    let v290 = v45 < 9i;
                    let v292 = v287 < 12i;
                    let v293 = v290 & v292;
                    if (v293) {
                        let v295 = i64(v45);
                        let v296 = i64(v287);
                        let v297 = m27[0u];
                        let v298 = p2[u32(v296)];
                        let v299 = v295 * 12li;
                        let v300 = v299 + v296;
                        let v301 = v297 + v298;
                        let v302 = select(0.0f, bitcast<f32>(bitcast<u32>(v301) ^ z), bitcast<f32>(bitcast<u32>(v301) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v301) ^ z)));
                        p3[u32(v300)] = v302;
                    }
                    let v305 = v289 < 12i;
                    let v306 = v290 & v305;
                    if (v306) {
                        let v308 = i64(v45);
                        let v309 = i64(v289);
                        let v310 = m29[0u];
                        let v311 = p2[u32(v309)];
                        let v312 = v308 * 12li;
                        let v313 = v312 + v309;
                        let v314 = v310 + v311;
                        let v315 = select(0.0f, bitcast<f32>(bitcast<u32>(v314) ^ z), bitcast<f32>(bitcast<u32>(v314) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v314) ^ z)));
                        p3[u32(v313)] = v315;
                    }
                    let v318 = v286 < 9i;
                    let v319 = v318 & v292;
                    if (v319) {
                        let v321 = i64(v286);
                        let v322 = i64(v287);
                        let v323 = m31[0u];
                        let v324 = p2[u32(v322)];
                        let v325 = v321 * 12li;
                        let v326 = v325 + v322;
                        let v327 = v323 + v324;
                        let v328 = select(0.0f, bitcast<f32>(bitcast<u32>(v327) ^ z), bitcast<f32>(bitcast<u32>(v327) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v327) ^ z)));
                        p3[u32(v326)] = v328;
                    }
                    let v331 = v318 & v305;
                    if (v331) {
                        let v333 = i64(v286);
                        let v334 = i64(v289);
                        let v335 = m33[0u];
                        let v336 = p2[u32(v334)];
                        let v337 = v333 * 12li;
                        let v338 = v337 + v334;
                        let v339 = v335 + v336;
                        let v340 = select(0.0f, bitcast<f32>(bitcast<u32>(v339) ^ z), bitcast<f32>(bitcast<u32>(v339) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v339) ^ z)));
                        p3[u32(v338)] = v340;
                    }
                }
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
