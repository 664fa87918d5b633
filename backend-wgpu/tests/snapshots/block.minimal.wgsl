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
        let n9 = vec2<u32>(group.z, 0u);
        let v10 = i32(n9.x);
        {
            let n11 = vec2<u32>(group.y, 0u);
            let v12 = i32(n11.x);
            {
                let n13 = vec2<u32>(group.x, 0u);
                let v14 = i32(n13.x);
                {
                    let n17 = vec2<u32>(local.x, 0u);
                    let v18 = i32(n17.x);
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
                    let v52 = vec2<u32>(u32(v47), u32(v47 >> 31u));
                    let v53 = vec2<u32>(u32(v51), u32(v51 >> 31u));
                    let v55 = mul_64(v52, vec2<u32>(10u, 0u));
                    let v56 = add_64(v55, v53);
                    let v57 = p0[v56.x];
                    let v58 = select(0.0f, v57, v49);
                    m35[0u] = v58;
                    let v60 = v23 + 2i;
                    let v61 = v43 + v60;
                    let v62 = v20 + v60;
                    let v63 = select(8i, v62, v62 < 8i);
                    let v64 = vec2<u32>(u32(v63), u32(v63 >> 31u));
                    let v65 = mul_64(v64, vec2<u32>(10u, 0u));
                    let v66 = add_64(v65, v53);
                    let v67 = p0[v66.x];
                    let v68 = select(0.0f, v67, v49);
                    m36[0u] = v68;
                    let v70 = v22 + v18;
                    let v72 = select(11i, v70, v70 < 11i);
                    let v74 = vec2<u32>(u32(v72), u32(v72 >> 31u));
                    let v76 = p1[v74.x];
                    m37[0u] = v76;
                    let v79 = 9i + v18;
                    let v80 = add_64(v74, vec2<u32>(12u, 0u));
                    let v81 = p1[v80.x];
                    m38[0u] = v81;
                    let v84 = 18i + v18;
                    let v86 = add_64(v74, vec2<u32>(24u, 0u));
                    let v87 = p1[v86.x];
                    m39[0u] = v87;
                    let v90 = 27i + v18;
                    let v92 = add_64(v74, vec2<u32>(36u, 0u));
                    let v93 = p1[v92.x];
                    m40[0u] = v93;
                    for (var c95 = 0i; c95 < 3i; c95 = c95 + 1i) {
                        let n95 = vec2<u32>(u32(c95), u32(c95 >> 31u));
                        let v96 = i32(n95.x);
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
                            let v128 = vec2<u32>(u32(v127), u32(v127 >> 31u));
                            let v129 = add_64(v55, v128);
                            let v130 = p0[v129.x];
                            let v131 = select(0.0f, v130, v126);
                            m35[0u] = v131;
                            let v133 = add_64(v65, v128);
                            let v134 = p0[v133.x];
                            let v135 = select(0.0f, v134, v126);
                            m36[0u] = v135;
                            let v137 = v124 < 10i;
                            let v138 = select(9i, v124, v124 < 9i);
                            let v139 = vec2<u32>(u32(v138), u32(v138 >> 31u));
                            let v140 = mul_64(v139, vec2<u32>(12u, 0u));
                            let v141 = add_64(v74, v140);
                            let v142 = p1[v141.x];
                            let v143 = select(0.0f, v142, v137);
                            m37[0u] = v143;
                            let v145 = v124 + 1i;
                            let v146 = v145 < 10i;
                            let v147 = select(9i, v145, v145 < 9i);
                            let v148 = vec2<u32>(u32(v147), u32(v147 >> 31u));
                            let v149 = mul_64(v148, vec2<u32>(12u, 0u));
                            let v150 = add_64(v74, v149);
                            let v151 = p1[v150.x];
                            let v152 = select(0.0f, v151, v146);
                            m38[0u] = v152;
                            let v154 = v124 + 2i;
                            let v155 = v154 < 10i;
                            let v156 = select(9i, v154, v154 < 9i);
                            let v157 = vec2<u32>(u32(v156), u32(v156 >> 31u));
                            let v158 = mul_64(v157, vec2<u32>(12u, 0u));
                            let v159 = add_64(v74, v158);
                            let v160 = p1[v159.x];
                            let v161 = select(0.0f, v160, v155);
                            m39[0u] = v161;
                            let v163 = v124 + 3i;
                            let v164 = v163 < 10i;
                            let v165 = select(9i, v163, v163 < 9i);
                            let v166 = vec2<u32>(u32(v165), u32(v165 >> 31u));
                            let v167 = mul_64(v166, vec2<u32>(12u, 0u));
                            let v168 = add_64(v74, v167);
                            let v169 = p1[v168.x];
                            let v170 = select(0.0f, v169, v164);
                            m40[0u] = v170;
                        }
                        for (var c173 = 0i; c173 < 1i; c173 = c173 + 1i) {
                            let n173 = vec2<u32>(u32(c173), u32(c173 >> 31u));
                            let v174 = i32(n173.x);
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
                        let v295 = vec2<u32>(u32(v45), u32(v45 >> 31u));
                        let v296 = vec2<u32>(u32(v287), u32(v287 >> 31u));
                        let v297 = m27[0u];
                        let v298 = p2[v296.x];
                        let v299 = mul_64(v295, vec2<u32>(12u, 0u));
                        let v300 = add_64(v299, v296);
                        let v301 = v297 + v298;
                        let v302 = select(0.0f, bitcast<f32>(bitcast<u32>(v301) ^ z), bitcast<f32>(bitcast<u32>(v301) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v301) ^ z)));
                        p3[v300.x] = v302;
                    }
                    let v305 = v289 < 12i;
                    let v306 = v290 & v305;
                    if (v306) {
                        let v308 = vec2<u32>(u32(v45), u32(v45 >> 31u));
                        let v309 = vec2<u32>(u32(v289), u32(v289 >> 31u));
                        let v310 = m29[0u];
                        let v311 = p2[v309.x];
                        let v312 = mul_64(v308, vec2<u32>(12u, 0u));
                        let v313 = add_64(v312, v309);
                        let v314 = v310 + v311;
                        let v315 = select(0.0f, bitcast<f32>(bitcast<u32>(v314) ^ z), bitcast<f32>(bitcast<u32>(v314) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v314) ^ z)));
                        p3[v313.x] = v315;
                    }
                    let v318 = v286 < 9i;
                    let v319 = v318 & v292;
                    if (v319) {
                        let v321 = vec2<u32>(u32(v286), u32(v286 >> 31u));
                        let v322 = vec2<u32>(u32(v287), u32(v287 >> 31u));
                        let v323 = m31[0u];
                        let v324 = p2[v322.x];
                        let v325 = mul_64(v321, vec2<u32>(12u, 0u));
                        let v326 = add_64(v325, v322);
                        let v327 = v323 + v324;
                        let v328 = select(0.0f, bitcast<f32>(bitcast<u32>(v327) ^ z), bitcast<f32>(bitcast<u32>(v327) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v327) ^ z)));
                        p3[v326.x] = v328;
                    }
                    let v331 = v318 & v305;
                    if (v331) {
                        let v333 = vec2<u32>(u32(v286), u32(v286 >> 31u));
                        let v334 = vec2<u32>(u32(v289), u32(v289 >> 31u));
                        let v335 = m33[0u];
                        let v336 = p2[v334.x];
                        let v337 = mul_64(v333, vec2<u32>(12u, 0u));
                        let v338 = add_64(v337, v334);
                        let v339 = v335 + v336;
                        let v340 = select(0.0f, bitcast<f32>(bitcast<u32>(v339) ^ z), bitcast<f32>(bitcast<u32>(v339) ^ z) > 0.0f || is_nan_f32(bitcast<f32>(bitcast<u32>(v339) ^ z)));
                        p3[v338.x] = v340;
                    }
                }
            }
        }
    }
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
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
