@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m7: array<f32, 36>;

@compute @workgroup_size(4, 1, 1)
fn k_relay_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n5 = bitcast<i64>(u64(group.x));
        let v6 = i32(n5);
        {
            let n8 = bitcast<i64>(u64(local.x));
            let v9 = i32(n8);
            let v11 = v6 << 2u;
            let v12 = v11 + v9;
            let v14 = select(5i, v12, v12 < 5i);
            let v15 = i64(v14);
            var m16: array<f32, 1>;
            m16[0u] = 0.0f;
            for (var c22 = 0i; c22 < 3i; c22 = c22 + 1i) {
                let n22 = i64(c22);
                let v23 = i32(n22);
                let v25 = v23 << 3u;
                for (var c27 = 0i; c27 < 1i; c27 = c27 + 1i) {
                    let n27 = i64(c27);
                    let v28 = i32(n27);
                    let v29 = v28 << 5u;
                    let v30 = v29 + v9;
                    let v32 = v30 & 7i;
                    let v33 = v30 >> 3u;
                    let v35 = v33 * 9i;
                    let v36 = v35 + v32;
                    let v37 = v11 + v33;
                    let v38 = v25 + v32;
                    let v40 = v30 + 4i;
                    let v41 = v40 & 7i;
                    let v42 = v40 >> 3u;
                    let v43 = v42 * 9i;
                    let v44 = v43 + v41;
                    let v45 = v11 + v42;
                    let v46 = v25 + v41;
                    let v48 = v30 + 8i;
                    let v49 = v48 & 7i;
                    let v50 = v48 >> 3u;
                    let v51 = v50 * 9i;
                    let v52 = v51 + v49;
                    let v53 = v11 + v50;
                    let v54 = v25 + v49;
                    let v56 = v30 + 12i;
                    let v57 = v56 & 7i;
                    let v58 = v56 >> 3u;
                    let v59 = v58 * 9i;
                    let v60 = v59 + v57;
                    let v61 = v11 + v58;
                    let v62 = v25 + v57;
                    let v64 = v30 + 16i;
                    let v65 = v64 & 7i;
                    let v66 = v64 >> 3u;
                    let v67 = v66 * 9i;
                    let v68 = v67 + v65;
                    let v69 = v11 + v66;
                    let v70 = v25 + v65;
                    let v72 = v30 + 20i;
                    let v73 = v72 & 7i;
                    let v74 = v72 >> 3u;
                    let v75 = v74 * 9i;
                    let v76 = v75 + v73;
                    let v77 = v11 + v74;
                    let v78 = v25 + v73;
                    let v80 = v30 + 24i;
                    let v81 = v80 & 7i;
                    let v82 = v80 >> 3u;
                    let v83 = v82 * 9i;
                    let v84 = v83 + v81;
                    let v85 = v11 + v82;
                    let v86 = v25 + v81;
                    let v88 = v30 + 28i;
                    let v89 = v88 & 7i;
                    let v90 = v88 >> 3u;
                    let v91 = v90 * 9i;
                    let v92 = v91 + v89;
                    let v93 = v11 + v90;
                    let v94 = v25 + v89;
                    let v96 = select(19i, v38, v38 < 19i);
                    let v97 = select(5i, v37, v37 < 5i);
                    let v98 = i64(v97);
                    let v99 = i64(v96);
                    let v100 = v98 * 20li;
                    let v101 = v100 + v99;
                    let v102 = p0[u32(v101)];
                    let v103 = select(19i, v46, v46 < 19i);
                    let v104 = select(5i, v45, v45 < 5i);
                    let v105 = i64(v104);
                    let v106 = i64(v103);
                    let v107 = v105 * 20li;
                    let v108 = v107 + v106;
                    let v109 = p0[u32(v108)];
                    let v110 = select(19i, v54, v54 < 19i);
                    let v111 = select(5i, v53, v53 < 5i);
                    let v112 = i64(v111);
                    let v113 = i64(v110);
                    let v114 = v112 * 20li;
                    let v115 = v114 + v113;
                    let v116 = p0[u32(v115)];
                    let v117 = select(19i, v62, v62 < 19i);
                    let v118 = select(5i, v61, v61 < 5i);
                    let v119 = i64(v118);
                    let v120 = i64(v117);
                    let v121 = v119 * 20li;
                    let v122 = v121 + v120;
                    let v123 = p0[u32(v122)];
                    let v124 = select(19i, v70, v70 < 19i);
                    let v125 = select(5i, v69, v69 < 5i);
                    let v126 = i64(v125);
                    let v127 = i64(v124);
                    let v128 = v126 * 20li;
                    let v129 = v128 + v127;
                    let v130 = p0[u32(v129)];
                    let v131 = select(19i, v78, v78 < 19i);
                    let v132 = select(5i, v77, v77 < 5i);
                    let v133 = i64(v132);
                    let v134 = i64(v131);
                    let v135 = v133 * 20li;
                    let v136 = v135 + v134;
                    let v137 = p0[u32(v136)];
                    let v138 = select(19i, v86, v86 < 19i);
                    let v139 = select(5i, v85, v85 < 5i);
                    let v140 = i64(v139);
                    let v141 = i64(v138);
                    let v142 = v140 * 20li;
                    let v143 = v142 + v141;
                    let v144 = p0[u32(v143)];
                    let v145 = select(19i, v94, v94 < 19i);
                    let v146 = select(5i, v93, v93 < 5i);
                    let v147 = i64(v146);
                    let v148 = i64(v145);
                    let v149 = v147 * 20li;
                    let v150 = v149 + v148;
                    let v151 = p0[u32(v150)];
                    m7[u32(v36)] = v102;
                    m7[u32(v44)] = v109;
                    m7[u32(v52)] = v116;
                    m7[u32(v60)] = v123;
                    m7[u32(v68)] = v130;
                    m7[u32(v76)] = v137;
                    m7[u32(v84)] = v144;
                    m7[u32(v92)] = v151;
                }
                workgroupBarrier();
                for (var c163 = 0i; c163 < 8i; c163 = c163 + 1i) {
                    let n163 = i64(c163);
                    let v164 = i32(n163);
                    let v165 = v25 + v164;
                    let v167 = v165 < 20i;
                    if (v167) {
                        let v170 = v9 * 9i;
                        let v171 = v170 + v164;
                        let v172 = i64(v165);
                        let v173 = v15 * 20li;
                        let v174 = v173 + v172;
                        let v175 = m7[u32(v171)];
                        let v176 = m16[0u];
                        let v177 = v176 + v175;
                        m16[0u] = v177;
                        m7[u32(v171)] = v177;
                    }
                }
                workgroupBarrier();
                for (var c183 = 0i; c183 < 1i; c183 = c183 + 1i) {
                    let n183 = i64(c183);
                    let v184 = i32(n183);
                    let v185 = v184 << 5u;
                    let v186 = v185 + v9;
                    let v188 = v186 & 7i;
                    let v189 = v186 >> 3u;
                    let v191 = v189 * 9i;
                    let v192 = v191 + v188;
                    let v193 = v11 + v189;
                    let v194 = v25 + v188;
                    let v196 = v186 + 4i;
                    let v197 = v196 & 7i;
                    let v198 = v196 >> 3u;
                    let v199 = v198 * 9i;
                    let v200 = v199 + v197;
                    let v201 = v11 + v198;
                    let v202 = v25 + v197;
                    let v204 = v186 + 8i;
                    let v205 = v204 & 7i;
                    let v206 = v204 >> 3u;
                    let v207 = v206 * 9i;
                    let v208 = v207 + v205;
                    let v209 = v11 + v206;
                    let v210 = v25 + v205;
                    let v212 = v186 + 12i;
                    let v213 = v212 & 7i;
                    let v214 = v212 >> 3u;
                    let v215 = v214 * 9i;
                    let v216 = v215 + v213;
                    let v217 = v11 + v214;
                    let v218 = v25 + v213;
                    let v220 = v186 + 16i;
                    let v221 = v220 & 7i;
                    let v222 = v220 >> 3u;
                    let v223 = v222 * 9i;
                    let v224 = v223 + v221;
                    let v225 = v11 + v222;
                    let v226 = v25 + v221;
                    let v228 = v186 + 20i;
                    let v229 = v228 & 7i;
                    let v230 = v228 >> 3u;
                    let v231 = v230 * 9i;
                    let v232 = v231 + v229;
                    let v233 = v11 + v230;
                    let v234 = v25 + v229;
                    let v236 = v186 + 24i;
                    let v237 = v236 & 7i;
                    let v238 = v236 >> 3u;
                    let v239 = v238 * 9i;
                    let v240 = v239 + v237;
                    let v241 = v11 + v238;
                    let v242 = v25 + v237;
                    let v244 = v186 + 28i;
                    let v245 = v244 & 7i;
                    let v246 = v244 >> 3u;
                    let v247 = v246 * 9i;
                    let v248 = v247 + v245;
                    let v249 = v11 + v246;
                    let v250 = v25 + v245;
                    let v252 = v193 < 6i;
                    let v253 = v194 < 20i;
                    let v254 = v252 & v253;
                    if (v254) {
                        let v256 = select(5i, v193, v193 < 5i);
                        let v257 = i64(v256);
                        let v258 = i64(v194);
                        let v259 = m7[u32(v192)];
                        let v260 = v257 * 20li;
                        let v261 = v260 + v258;
                        p1[u32(v261)] = v259;
                    }
                    let v264 = v201 < 6i;
                    let v265 = v202 < 20i;
                    let v266 = v264 & v265;
                    if (v266) {
                        let v268 = select(5i, v201, v201 < 5i);
                        let v269 = i64(v268);
                        let v270 = i64(v202);
                        let v271 = m7[u32(v200)];
                        let v272 = v269 * 20li;
                        let v273 = v272 + v270;
                        p1[u32(v273)] = v271;
                    }
                    let v276 = v209 < 6i;
                    let v277 = v210 < 20i;
                    let v278 = v276 & v277;
                    if (v278) {
                        let v280 = select(5i, v209, v209 < 5i);
                        let v281 = i64(v280);
                        let v282 = i64(v210);
                        let v283 = m7[u32(v208)];
                        let v284 = v281 * 20li;
                        let v285 = v284 + v282;
                        p1[u32(v285)] = v283;
                    }
                    let v288 = v217 < 6i;
                    let v289 = v218 < 20i;
                    let v290 = v288 & v289;
                    if (v290) {
                        let v292 = select(5i, v217, v217 < 5i);
                        let v293 = i64(v292);
                        let v294 = i64(v218);
                        let v295 = m7[u32(v216)];
                        let v296 = v293 * 20li;
                        let v297 = v296 + v294;
                        p1[u32(v297)] = v295;
                    }
                    let v300 = v225 < 6i;
                    let v301 = v226 < 20i;
                    let v302 = v300 & v301;
                    if (v302) {
                        let v304 = select(5i, v225, v225 < 5i);
                        let v305 = i64(v304);
                        let v306 = i64(v226);
                        let v307 = m7[u32(v224)];
                        let v308 = v305 * 20li;
                        let v309 = v308 + v306;
                        p1[u32(v309)] = v307;
                    }
                    let v312 = v233 < 6i;
                    let v313 = v234 < 20i;
                    let v314 = v312 & v313;
                    if (v314) {
                        let v316 = select(5i, v233, v233 < 5i);
                        let v317 = i64(v316);
                        let v318 = i64(v234);
                        let v319 = m7[u32(v232)];
                        let v320 = v317 * 20li;
                        let v321 = v320 + v318;
                        p1[u32(v321)] = v319;
                    }
                    let v324 = v241 < 6i;
                    let v325 = v242 < 20i;
                    let v326 = v324 & v325;
                    if (v326) {
                        let v328 = select(5i, v241, v241 < 5i);
                        let v329 = i64(v328);
                        let v330 = i64(v242);
                        let v331 = m7[u32(v240)];
                        let v332 = v329 * 20li;
                        let v333 = v332 + v330;
                        p1[u32(v333)] = v331;
                    }
                    let v336 = v249 < 6i;
                    let v337 = v250 < 20i;
                    let v338 = v336 & v337;
                    if (v338) {
                        let v340 = select(5i, v249, v249 < 5i);
                        let v341 = i64(v340);
                        let v342 = i64(v250);
                        let v343 = m7[u32(v248)];
                        let v344 = v341 * 20li;
                        let v345 = v344 + v342;
                        p1[u32(v345)] = v343;
                    }
                }
                workgroupBarrier();
            }
        }
    }
}
