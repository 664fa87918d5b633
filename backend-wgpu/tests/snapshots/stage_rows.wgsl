@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m6: array<f32, 36>;

@compute @workgroup_size(4, 1, 1)
fn k_stage_rows_0(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
) {
    {
        let n5 = i32(group.x);
        {
            let n7 = i32(local.x);
            let v8 = n5 << 2u;
            var m10: array<f32, 1>;
            m10[0u] = 0.0f;
            for (var n16 = 0i; n16 < 3i; n16 += 1i) {
                let v17 = n16 << 3u;
                for (var n19 = 0i; n19 < 1i; n19 += 1i) {
                    let v20 = n19 << 5u;
                    let v21 = v20 + n7;
                    let v23 = v21 & 7i;
                    let v24 = v21 >> 3u;
                    let v26 = v24 * 9i;
                    let v27 = v26 + v23;
                    let v28 = v8 + v24;
                    let v29 = v17 + v23;
                    let v30 = v21 + 4i;
                    let v31 = v30 & 7i;
                    let v32 = v30 >> 3u;
                    let v33 = v32 * 9i;
                    let v34 = v33 + v31;
                    let v35 = v8 + v32;
                    let v36 = v17 + v31;
                    let v38 = v21 + 8i;
                    let v39 = v38 & 7i;
                    let v40 = v38 >> 3u;
                    let v41 = v40 * 9i;
                    let v42 = v41 + v39;
                    let v43 = v8 + v40;
                    let v44 = v17 + v39;
                    let v46 = v21 + 12i;
                    let v47 = v46 & 7i;
                    let v48 = v46 >> 3u;
                    let v49 = v48 * 9i;
                    let v50 = v49 + v47;
                    let v51 = v8 + v48;
                    let v52 = v17 + v47;
                    let v54 = v21 + 16i;
                    let v55 = v54 & 7i;
                    let v56 = v54 >> 3u;
                    let v57 = v56 * 9i;
                    let v58 = v57 + v55;
                    let v59 = v8 + v56;
                    let v60 = v17 + v55;
                    let v61 = v21 + 20i;
                    let v62 = v61 & 7i;
                    let v63 = v61 >> 3u;
                    let v64 = v63 * 9i;
                    let v65 = v64 + v62;
                    let v66 = v8 + v63;
                    let v67 = v17 + v62;
                    let v69 = v21 + 24i;
                    let v70 = v69 & 7i;
                    let v71 = v69 >> 3u;
                    let v72 = v71 * 9i;
                    let v73 = v72 + v70;
                    let v74 = v8 + v71;
                    let v75 = v17 + v70;
                    let v77 = v21 + 28i;
                    let v78 = v77 & 7i;
                    let v79 = v77 >> 3u;
                    let v80 = v79 * 9i;
                    let v81 = v80 + v78;
                    let v82 = v8 + v79;
                    let v83 = v17 + v78;
                    let v85 = v29 < 19i;
                    let v86 = select(19i, v29, v85);
                    let v87 = v28 < 5i;
                    let v88 = select(5i, v28, v87);
                    let v89 = v88 * 20i;
                    let v90 = v89 + v86;
                    let v91 = p0[u32(v90)];
                    let v92 = v36 < 19i;
                    let v93 = select(19i, v36, v92);
                    let v94 = v35 < 5i;
                    let v95 = select(5i, v35, v94);
                    let v96 = v95 * 20i;
                    let v97 = v96 + v93;
                    let v98 = p0[u32(v97)];
                    let v99 = v44 < 19i;
                    let v100 = select(19i, v44, v99);
                    let v101 = v43 < 5i;
                    let v102 = select(5i, v43, v101);
                    let v103 = v102 * 20i;
                    let v104 = v103 + v100;
                    let v105 = p0[u32(v104)];
                    let v106 = v52 < 19i;
                    let v107 = select(19i, v52, v106);
                    let v108 = v51 < 5i;
                    let v109 = select(5i, v51, v108);
                    let v110 = v109 * 20i;
                    let v111 = v110 + v107;
                    let v112 = p0[u32(v111)];
                    let v113 = v60 < 19i;
                    let v114 = select(19i, v60, v113);
                    let v115 = v59 < 5i;
                    let v116 = select(5i, v59, v115);
                    let v117 = v116 * 20i;
                    let v118 = v117 + v114;
                    let v119 = p0[u32(v118)];
                    let v120 = v67 < 19i;
                    let v121 = select(19i, v67, v120);
                    let v122 = v66 < 5i;
                    let v123 = select(5i, v66, v122);
                    let v124 = v123 * 20i;
                    let v125 = v124 + v121;
                    let v126 = p0[u32(v125)];
                    let v127 = v75 < 19i;
                    let v128 = select(19i, v75, v127);
                    let v129 = v74 < 5i;
                    let v130 = select(5i, v74, v129);
                    let v131 = v130 * 20i;
                    let v132 = v131 + v128;
                    let v133 = p0[u32(v132)];
                    let v134 = v83 < 19i;
                    let v135 = select(19i, v83, v134);
                    let v136 = v82 < 5i;
                    let v137 = select(5i, v82, v136);
                    let v138 = v137 * 20i;
                    let v139 = v138 + v135;
                    let v140 = p0[u32(v139)];
                    m6[u32(v27)] = v91;
                    m6[u32(v34)] = v98;
                    m6[u32(v42)] = v105;
                    m6[u32(v50)] = v112;
                    m6[u32(v58)] = v119;
                    m6[u32(v65)] = v126;
                    m6[u32(v73)] = v133;
                    m6[u32(v81)] = v140;
                }
                workgroupBarrier();
                for (var n152 = 0i; n152 < 8i; n152 += 1i) {
                    let v153 = v17 + n152;
                    let v154 = v153 < 20i;
                    if (v154) {
                        let v157 = n7 * 9i;
                        let v158 = v157 + n152;
                        let v159 = m6[u32(v158)];
                        let v160 = m10[0u];
                        let v161 = v160 + v159;
                        m10[0u] = v161;
                        m6[u32(v158)] = v161;
                    }
                }
                workgroupBarrier();
                for (var n167 = 0i; n167 < 1i; n167 += 1i) {
                    let v168 = n167 << 5u;
                    let v169 = v168 + n7;
                    let v171 = v169 & 7i;
                    let v172 = v169 >> 3u;
                    let v174 = v172 * 9i;
                    let v175 = v174 + v171;
                    let v176 = v8 + v172;
                    let v177 = v17 + v171;
                    let v178 = v169 + 4i;
                    let v179 = v178 & 7i;
                    let v180 = v178 >> 3u;
                    let v181 = v180 * 9i;
                    let v182 = v181 + v179;
                    let v183 = v8 + v180;
                    let v184 = v17 + v179;
                    let v185 = v169 + 8i;
                    let v186 = v185 & 7i;
                    let v187 = v185 >> 3u;
                    let v188 = v187 * 9i;
                    let v189 = v188 + v186;
                    let v190 = v8 + v187;
                    let v191 = v17 + v186;
                    let v193 = v169 + 12i;
                    let v194 = v193 & 7i;
                    let v195 = v193 >> 3u;
                    let v196 = v195 * 9i;
                    let v197 = v196 + v194;
                    let v198 = v8 + v195;
                    let v199 = v17 + v194;
                    let v201 = v169 + 16i;
                    let v202 = v201 & 7i;
                    let v203 = v201 >> 3u;
                    let v204 = v203 * 9i;
                    let v205 = v204 + v202;
                    let v206 = v8 + v203;
                    let v207 = v17 + v202;
                    let v208 = v169 + 20i;
                    let v209 = v208 & 7i;
                    let v210 = v208 >> 3u;
                    let v211 = v210 * 9i;
                    let v212 = v211 + v209;
                    let v213 = v8 + v210;
                    let v214 = v17 + v209;
                    let v216 = v169 + 24i;
                    let v217 = v216 & 7i;
                    let v218 = v216 >> 3u;
                    let v219 = v218 * 9i;
                    let v220 = v219 + v217;
                    let v221 = v8 + v218;
                    let v222 = v17 + v217;
                    let v224 = v169 + 28i;
                    let v225 = v224 & 7i;
                    let v226 = v224 >> 3u;
                    let v227 = v226 * 9i;
                    let v228 = v227 + v225;
                    let v229 = v8 + v226;
                    let v230 = v17 + v225;
                    let v231 = v176 < 6i;
                    let v232 = v177 < 20i;
                    let v233 = v231 & v232;
                    if (v233) {
                        let v235 = v176 < 5i;
                        let v236 = select(5i, v176, v235);
                        let v237 = m6[u32(v175)];
                        let v238 = v236 * 20i;
                        let v239 = v238 + v177;
                        p1[u32(v239)] = v237;
                    }
                    let v242 = v183 < 6i;
                    let v243 = v184 < 20i;
                    let v244 = v242 & v243;
                    if (v244) {
                        let v246 = v183 < 5i;
                        let v247 = select(5i, v183, v246);
                        let v248 = m6[u32(v182)];
                        let v249 = v247 * 20i;
                        let v250 = v249 + v184;
                        p1[u32(v250)] = v248;
                    }
                    let v253 = v190 < 6i;
                    let v254 = v191 < 20i;
                    let v255 = v253 & v254;
                    if (v255) {
                        let v257 = v190 < 5i;
                        let v258 = select(5i, v190, v257);
                        let v259 = m6[u32(v189)];
                        let v260 = v258 * 20i;
                        let v261 = v260 + v191;
                        p1[u32(v261)] = v259;
                    }
                    let v264 = v198 < 6i;
                    let v265 = v199 < 20i;
                    let v266 = v264 & v265;
                    if (v266) {
                        let v268 = v198 < 5i;
                        let v269 = select(5i, v198, v268);
                        let v270 = m6[u32(v197)];
                        let v271 = v269 * 20i;
                        let v272 = v271 + v199;
                        p1[u32(v272)] = v270;
                    }
                    let v275 = v206 < 6i;
                    let v276 = v207 < 20i;
                    let v277 = v275 & v276;
                    if (v277) {
                        let v279 = v206 < 5i;
                        let v280 = select(5i, v206, v279);
                        let v281 = m6[u32(v205)];
                        let v282 = v280 * 20i;
                        let v283 = v282 + v207;
                        p1[u32(v283)] = v281;
                    }
                    let v286 = v213 < 6i;
                    let v287 = v214 < 20i;
                    let v288 = v286 & v287;
                    if (v288) {
                        let v290 = v213 < 5i;
                        let v291 = select(5i, v213, v290);
                        let v292 = m6[u32(v212)];
                        let v293 = v291 * 20i;
                        let v294 = v293 + v214;
                        p1[u32(v294)] = v292;
                    }
                    let v297 = v221 < 6i;
                    let v298 = v222 < 20i;
                    let v299 = v297 & v298;
                    if (v299) {
                        let v301 = v221 < 5i;
                        let v302 = select(5i, v221, v301);
                        let v303 = m6[u32(v220)];
                        let v304 = v302 * 20i;
                        let v305 = v304 + v222;
                        p1[u32(v305)] = v303;
                    }
                    let v308 = v229 < 6i;
                    let v309 = v230 < 20i;
                    let v310 = v308 & v309;
                    if (v310) {
                        let v312 = v229 < 5i;
                        let v313 = select(5i, v229, v312);
                        let v314 = m6[u32(v228)];
                        let v315 = v313 * 20i;
                        let v316 = v315 + v230;
                        p1[u32(v316)] = v314;
                    }
                }
                workgroupBarrier();
            }
        }
    }
}
