@group(0) @binding(0) var<storage, read_write> p0: array<f32>;
@group(0) @binding(1) var<storage, read_write> p1: array<f32>;
var<workgroup> m6: array<f32, 36>;

@compute @workgroup_size(4, 1, 1)
fn k_relay_0(
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
                    let v85 = select(19i, v29, v29 < 19i);
                    let v86 = select(5i, v28, v28 < 5i);
                    let v87 = v86 * 20i;
                    let v88 = v87 + v85;
                    let v89 = p0[u32(v88)];
                    let v90 = select(19i, v36, v36 < 19i);
                    let v91 = select(5i, v35, v35 < 5i);
                    let v92 = v91 * 20i;
                    let v93 = v92 + v90;
                    let v94 = p0[u32(v93)];
                    let v95 = select(19i, v44, v44 < 19i);
                    let v96 = select(5i, v43, v43 < 5i);
                    let v97 = v96 * 20i;
                    let v98 = v97 + v95;
                    let v99 = p0[u32(v98)];
                    let v100 = select(19i, v52, v52 < 19i);
                    let v101 = select(5i, v51, v51 < 5i);
                    let v102 = v101 * 20i;
                    let v103 = v102 + v100;
                    let v104 = p0[u32(v103)];
                    let v105 = select(19i, v60, v60 < 19i);
                    let v106 = select(5i, v59, v59 < 5i);
                    let v107 = v106 * 20i;
                    let v108 = v107 + v105;
                    let v109 = p0[u32(v108)];
                    let v110 = select(19i, v67, v67 < 19i);
                    let v111 = select(5i, v66, v66 < 5i);
                    let v112 = v111 * 20i;
                    let v113 = v112 + v110;
                    let v114 = p0[u32(v113)];
                    let v115 = select(19i, v75, v75 < 19i);
                    let v116 = select(5i, v74, v74 < 5i);
                    let v117 = v116 * 20i;
                    let v118 = v117 + v115;
                    let v119 = p0[u32(v118)];
                    let v120 = select(19i, v83, v83 < 19i);
                    let v121 = select(5i, v82, v82 < 5i);
                    let v122 = v121 * 20i;
                    let v123 = v122 + v120;
                    let v124 = p0[u32(v123)];
                    m6[u32(v27)] = v89;
                    m6[u32(v34)] = v94;
                    m6[u32(v42)] = v99;
                    m6[u32(v50)] = v104;
                    m6[u32(v58)] = v109;
                    m6[u32(v65)] = v114;
                    m6[u32(v73)] = v119;
                    m6[u32(v81)] = v124;
                }
                workgroupBarrier();
                for (var n136 = 0i; n136 < 8i; n136 += 1i) {
                    let v137 = v17 + n136;
                    let v138 = v137 < 20i;
                    if (v138) {
                        let v141 = n7 * 9i;
                        let v142 = v141 + n136;
                        let v143 = m6[u32(v142)];
                        let v144 = m10[0u];
                        let v145 = v144 + v143;
                        m10[0u] = v145;
                        m6[u32(v142)] = v145;
                    }
                }
                workgroupBarrier();
                for (var n151 = 0i; n151 < 1i; n151 += 1i) {
                    let v152 = n151 << 5u;
                    let v153 = v152 + n7;
                    let v155 = v153 & 7i;
                    let v156 = v153 >> 3u;
                    let v158 = v156 * 9i;
                    let v159 = v158 + v155;
                    let v160 = v8 + v156;
                    let v161 = v17 + v155;
                    let v162 = v153 + 4i;
                    let v163 = v162 & 7i;
                    let v164 = v162 >> 3u;
                    let v165 = v164 * 9i;
                    let v166 = v165 + v163;
                    let v167 = v8 + v164;
                    let v168 = v17 + v163;
                    let v169 = v153 + 8i;
                    let v170 = v169 & 7i;
                    let v171 = v169 >> 3u;
                    let v172 = v171 * 9i;
                    let v173 = v172 + v170;
                    let v174 = v8 + v171;
                    let v175 = v17 + v170;
                    let v177 = v153 + 12i;
                    let v178 = v177 & 7i;
                    let v179 = v177 >> 3u;
                    let v180 = v179 * 9i;
                    let v181 = v180 + v178;
                    let v182 = v8 + v179;
                    let v183 = v17 + v178;
                    let v185 = v153 + 16i;
                    let v186 = v185 & 7i;
                    let v187 = v185 >> 3u;
                    let v188 = v187 * 9i;
                    let v189 = v188 + v186;
                    let v190 = v8 + v187;
                    let v191 = v17 + v186;
                    let v192 = v153 + 20i;
                    let v193 = v192 & 7i;
                    let v194 = v192 >> 3u;
                    let v195 = v194 * 9i;
                    let v196 = v195 + v193;
                    let v197 = v8 + v194;
                    let v198 = v17 + v193;
                    let v200 = v153 + 24i;
                    let v201 = v200 & 7i;
                    let v202 = v200 >> 3u;
                    let v203 = v202 * 9i;
                    let v204 = v203 + v201;
                    let v205 = v8 + v202;
                    let v206 = v17 + v201;
                    let v208 = v153 + 28i;
                    let v209 = v208 & 7i;
                    let v210 = v208 >> 3u;
                    let v211 = v210 * 9i;
                    let v212 = v211 + v209;
                    let v213 = v8 + v210;
                    let v214 = v17 + v209;
                    let v215 = v160 < 6i;
                    let v216 = v161 < 20i;
                    let v217 = v215 & v216;
                    if (v217) {
                        let v219 = select(5i, v160, v160 < 5i);
                        let v220 = m6[u32(v159)];
                        let v221 = v219 * 20i;
                        let v222 = v221 + v161;
                        p1[u32(v222)] = v220;
                    }
                    let v225 = v167 < 6i;
                    let v226 = v168 < 20i;
                    let v227 = v225 & v226;
                    if (v227) {
                        let v229 = select(5i, v167, v167 < 5i);
                        let v230 = m6[u32(v166)];
                        let v231 = v229 * 20i;
                        let v232 = v231 + v168;
                        p1[u32(v232)] = v230;
                    }
                    let v235 = v174 < 6i;
                    let v236 = v175 < 20i;
                    let v237 = v235 & v236;
                    if (v237) {
                        let v239 = select(5i, v174, v174 < 5i);
                        let v240 = m6[u32(v173)];
                        let v241 = v239 * 20i;
                        let v242 = v241 + v175;
                        p1[u32(v242)] = v240;
                    }
                    let v245 = v182 < 6i;
                    let v246 = v183 < 20i;
                    let v247 = v245 & v246;
                    if (v247) {
                        let v249 = select(5i, v182, v182 < 5i);
                        let v250 = m6[u32(v181)];
                        let v251 = v249 * 20i;
                        let v252 = v251 + v183;
                        p1[u32(v252)] = v250;
                    }
                    let v255 = v190 < 6i;
                    let v256 = v191 < 20i;
                    let v257 = v255 & v256;
                    if (v257) {
                        let v259 = select(5i, v190, v190 < 5i);
                        let v260 = m6[u32(v189)];
                        let v261 = v259 * 20i;
                        let v262 = v261 + v191;
                        p1[u32(v262)] = v260;
                    }
                    let v265 = v197 < 6i;
                    let v266 = v198 < 20i;
                    let v267 = v265 & v266;
                    if (v267) {
                        let v269 = select(5i, v197, v197 < 5i);
                        let v270 = m6[u32(v196)];
                        let v271 = v269 * 20i;
                        let v272 = v271 + v198;
                        p1[u32(v272)] = v270;
                    }
                    let v275 = v205 < 6i;
                    let v276 = v206 < 20i;
                    let v277 = v275 & v276;
                    if (v277) {
                        let v279 = select(5i, v205, v205 < 5i);
                        let v280 = m6[u32(v204)];
                        let v281 = v279 * 20i;
                        let v282 = v281 + v206;
                        p1[u32(v282)] = v280;
                    }
                    let v285 = v213 < 6i;
                    let v286 = v214 < 20i;
                    let v287 = v285 & v286;
                    if (v287) {
                        let v289 = select(5i, v213, v213 < 5i);
                        let v290 = m6[u32(v212)];
                        let v291 = v289 * 20i;
                        let v292 = v291 + v214;
                        p1[u32(v292)] = v290;
                    }
                }
                workgroupBarrier();
            }
        }
    }
}
