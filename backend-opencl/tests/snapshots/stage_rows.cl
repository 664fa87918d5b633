#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void k_stage_rows_0(__global const float *p0, ulong o0, __global float *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    __local float m7[36];
    {
        const long i5 = get_group_id(0);
        const int v6 = convert_int(i5);
        {
            const long i8 = get_local_id(0);
            const int v9 = convert_int(i8);
            const int v11 = as_int(as_uint(v6) << 2);
            const int v12 = as_int(as_uint(v11) + as_uint(v9));
            const int v14 = min(v12, 5);
            const long v15 = convert_long(v14);
            float m16[1];
            m16[0l] = 0.0f;
            for (long i22 = 0; i22 < 3l; ++i22) {
                const int v23 = convert_int(i22);
                const int v25 = as_int(as_uint(v23) << 3);
                for (long i27 = 0; i27 < 1l; ++i27) {
                    const int v28 = convert_int(i27);
                    const int v29 = as_int(as_uint(v28) << 5);
                    const int v30 = as_int(as_uint(v29) + as_uint(v9));
                    const int v32 = v30 & 7;
                    const int v33 = v30 >> 3;
                    const int v35 = as_int(as_uint(v33) * as_uint(9));
                    const int v36 = as_int(as_uint(v35) + as_uint(v32));
                    const int v37 = as_int(as_uint(v11) + as_uint(v33));
                    const int v38 = as_int(as_uint(v25) + as_uint(v32));
                    const int v40 = as_int(as_uint(v30) + as_uint(4));
                    const int v41 = v40 & 7;
                    const int v42 = v40 >> 3;
                    const int v43 = as_int(as_uint(v42) * as_uint(9));
                    const int v44 = as_int(as_uint(v43) + as_uint(v41));
                    const int v45 = as_int(as_uint(v11) + as_uint(v42));
                    const int v46 = as_int(as_uint(v25) + as_uint(v41));
                    const int v48 = as_int(as_uint(v30) + as_uint(8));
                    const int v49 = v48 & 7;
                    const int v50 = v48 >> 3;
                    const int v51 = as_int(as_uint(v50) * as_uint(9));
                    const int v52 = as_int(as_uint(v51) + as_uint(v49));
                    const int v53 = as_int(as_uint(v11) + as_uint(v50));
                    const int v54 = as_int(as_uint(v25) + as_uint(v49));
                    const int v56 = as_int(as_uint(v30) + as_uint(12));
                    const int v57 = v56 & 7;
                    const int v58 = v56 >> 3;
                    const int v59 = as_int(as_uint(v58) * as_uint(9));
                    const int v60 = as_int(as_uint(v59) + as_uint(v57));
                    const int v61 = as_int(as_uint(v11) + as_uint(v58));
                    const int v62 = as_int(as_uint(v25) + as_uint(v57));
                    const int v64 = as_int(as_uint(v30) + as_uint(16));
                    const int v65 = v64 & 7;
                    const int v66 = v64 >> 3;
                    const int v67 = as_int(as_uint(v66) * as_uint(9));
                    const int v68 = as_int(as_uint(v67) + as_uint(v65));
                    const int v69 = as_int(as_uint(v11) + as_uint(v66));
                    const int v70 = as_int(as_uint(v25) + as_uint(v65));
                    const int v72 = as_int(as_uint(v30) + as_uint(20));
                    const int v73 = v72 & 7;
                    const int v74 = v72 >> 3;
                    const int v75 = as_int(as_uint(v74) * as_uint(9));
                    const int v76 = as_int(as_uint(v75) + as_uint(v73));
                    const int v77 = as_int(as_uint(v11) + as_uint(v74));
                    const int v78 = as_int(as_uint(v25) + as_uint(v73));
                    const int v80 = as_int(as_uint(v30) + as_uint(24));
                    const int v81 = v80 & 7;
                    const int v82 = v80 >> 3;
                    const int v83 = as_int(as_uint(v82) * as_uint(9));
                    const int v84 = as_int(as_uint(v83) + as_uint(v81));
                    const int v85 = as_int(as_uint(v11) + as_uint(v82));
                    const int v86 = as_int(as_uint(v25) + as_uint(v81));
                    const int v88 = as_int(as_uint(v30) + as_uint(28));
                    const int v89 = v88 & 7;
                    const int v90 = v88 >> 3;
                    const int v91 = as_int(as_uint(v90) * as_uint(9));
                    const int v92 = as_int(as_uint(v91) + as_uint(v89));
                    const int v93 = as_int(as_uint(v11) + as_uint(v90));
                    const int v94 = as_int(as_uint(v25) + as_uint(v89));
                    const int v96 = min(v38, 19);
                    const int v97 = min(v37, 5);
                    const long v98 = convert_long(v97);
                    const long v99 = convert_long(v96);
                    const long v100 = as_long(as_ulong(v98) * as_ulong(20l));
                    const long v101 = as_long(as_ulong(v100) + as_ulong(v99));
                    const float v102 = p0[v101];
                    const int v103 = min(v46, 19);
                    const int v104 = min(v45, 5);
                    const long v105 = convert_long(v104);
                    const long v106 = convert_long(v103);
                    const long v107 = as_long(as_ulong(v105) * as_ulong(20l));
                    const long v108 = as_long(as_ulong(v107) + as_ulong(v106));
                    const float v109 = p0[v108];
                    const int v110 = min(v54, 19);
                    const int v111 = min(v53, 5);
                    const long v112 = convert_long(v111);
                    const long v113 = convert_long(v110);
                    const long v114 = as_long(as_ulong(v112) * as_ulong(20l));
                    const long v115 = as_long(as_ulong(v114) + as_ulong(v113));
                    const float v116 = p0[v115];
                    const int v117 = min(v62, 19);
                    const int v118 = min(v61, 5);
                    const long v119 = convert_long(v118);
                    const long v120 = convert_long(v117);
                    const long v121 = as_long(as_ulong(v119) * as_ulong(20l));
                    const long v122 = as_long(as_ulong(v121) + as_ulong(v120));
                    const float v123 = p0[v122];
                    const int v124 = min(v70, 19);
                    const int v125 = min(v69, 5);
                    const long v126 = convert_long(v125);
                    const long v127 = convert_long(v124);
                    const long v128 = as_long(as_ulong(v126) * as_ulong(20l));
                    const long v129 = as_long(as_ulong(v128) + as_ulong(v127));
                    const float v130 = p0[v129];
                    const int v131 = min(v78, 19);
                    const int v132 = min(v77, 5);
                    const long v133 = convert_long(v132);
                    const long v134 = convert_long(v131);
                    const long v135 = as_long(as_ulong(v133) * as_ulong(20l));
                    const long v136 = as_long(as_ulong(v135) + as_ulong(v134));
                    const float v137 = p0[v136];
                    const int v138 = min(v86, 19);
                    const int v139 = min(v85, 5);
                    const long v140 = convert_long(v139);
                    const long v141 = convert_long(v138);
                    const long v142 = as_long(as_ulong(v140) * as_ulong(20l));
                    const long v143 = as_long(as_ulong(v142) + as_ulong(v141));
                    const float v144 = p0[v143];
                    const int v145 = min(v94, 19);
                    const int v146 = min(v93, 5);
                    const long v147 = convert_long(v146);
                    const long v148 = convert_long(v145);
                    const long v149 = as_long(as_ulong(v147) * as_ulong(20l));
                    const long v150 = as_long(as_ulong(v149) + as_ulong(v148));
                    const float v151 = p0[v150];
                    m7[v36] = v102;
                    m7[v44] = v109;
                    m7[v52] = v116;
                    m7[v60] = v123;
                    m7[v68] = v130;
                    m7[v76] = v137;
                    m7[v84] = v144;
                    m7[v92] = v151;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (long i163 = 0; i163 < 8l; ++i163) {
                    const int v164 = convert_int(i163);
                    const int v165 = as_int(as_uint(v25) + as_uint(v164));
                    const uchar v167 = (uchar)(v165 < 20);
                    if (v167) {
                        const int v170 = as_int(as_uint(v9) * as_uint(9));
                        const int v171 = as_int(as_uint(v170) + as_uint(v164));
                        const long v172 = convert_long(v165);
                        const long v173 = as_long(as_ulong(v15) * as_ulong(20l));
                        const long v174 = as_long(as_ulong(v173) + as_ulong(v172));
                        const float v175 = m7[v171];
                        const float v176 = m16[0l];
                        const float v177 = v176 + v175;
                        m16[0l] = v177;
                        m7[v171] = v177;
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                for (long i183 = 0; i183 < 1l; ++i183) {
                    const int v184 = convert_int(i183);
                    const int v185 = as_int(as_uint(v184) << 5);
                    const int v186 = as_int(as_uint(v185) + as_uint(v9));
                    const int v188 = v186 & 7;
                    const int v189 = v186 >> 3;
                    const int v191 = as_int(as_uint(v189) * as_uint(9));
                    const int v192 = as_int(as_uint(v191) + as_uint(v188));
                    const int v193 = as_int(as_uint(v11) + as_uint(v189));
                    const int v194 = as_int(as_uint(v25) + as_uint(v188));
                    const int v196 = as_int(as_uint(v186) + as_uint(4));
                    const int v197 = v196 & 7;
                    const int v198 = v196 >> 3;
                    const int v199 = as_int(as_uint(v198) * as_uint(9));
                    const int v200 = as_int(as_uint(v199) + as_uint(v197));
                    const int v201 = as_int(as_uint(v11) + as_uint(v198));
                    const int v202 = as_int(as_uint(v25) + as_uint(v197));
                    const int v204 = as_int(as_uint(v186) + as_uint(8));
                    const int v205 = v204 & 7;
                    const int v206 = v204 >> 3;
                    const int v207 = as_int(as_uint(v206) * as_uint(9));
                    const int v208 = as_int(as_uint(v207) + as_uint(v205));
                    const int v209 = as_int(as_uint(v11) + as_uint(v206));
                    const int v210 = as_int(as_uint(v25) + as_uint(v205));
                    const int v212 = as_int(as_uint(v186) + as_uint(12));
                    const int v213 = v212 & 7;
                    const int v214 = v212 >> 3;
                    const int v215 = as_int(as_uint(v214) * as_uint(9));
                    const int v216 = as_int(as_uint(v215) + as_uint(v213));
                    const int v217 = as_int(as_uint(v11) + as_uint(v214));
                    const int v218 = as_int(as_uint(v25) + as_uint(v213));
                    const int v220 = as_int(as_uint(v186) + as_uint(16));
                    const int v221 = v220 & 7;
                    const int v222 = v220 >> 3;
                    const int v223 = as_int(as_uint(v222) * as_uint(9));
                    const int v224 = as_int(as_uint(v223) + as_uint(v221));
                    const int v225 = as_int(as_uint(v11) + as_uint(v222));
                    const int v226 = as_int(as_uint(v25) + as_uint(v221));
                    const int v228 = as_int(as_uint(v186) + as_uint(20));
                    const int v229 = v228 & 7;
                    const int v230 = v228 >> 3;
                    const int v231 = as_int(as_uint(v230) * as_uint(9));
                    const int v232 = as_int(as_uint(v231) + as_uint(v229));
                    const int v233 = as_int(as_uint(v11) + as_uint(v230));
                    const int v234 = as_int(as_uint(v25) + as_uint(v229));
                    const int v236 = as_int(as_uint(v186) + as_uint(24));
                    const int v237 = v236 & 7;
                    const int v238 = v236 >> 3;
                    const int v239 = as_int(as_uint(v238) * as_uint(9));
                    const int v240 = as_int(as_uint(v239) + as_uint(v237));
                    const int v241 = as_int(as_uint(v11) + as_uint(v238));
                    const int v242 = as_int(as_uint(v25) + as_uint(v237));
                    const int v244 = as_int(as_uint(v186) + as_uint(28));
                    const int v245 = v244 & 7;
                    const int v246 = v244 >> 3;
                    const int v247 = as_int(as_uint(v246) * as_uint(9));
                    const int v248 = as_int(as_uint(v247) + as_uint(v245));
                    const int v249 = as_int(as_uint(v11) + as_uint(v246));
                    const int v250 = as_int(as_uint(v25) + as_uint(v245));
                    const uchar v252 = (uchar)(v193 < 6);
                    const uchar v253 = (uchar)(v194 < 20);
                    const uchar v254 = v252 & v253;
                    if (v254) {
                        const int v256 = min(v193, 5);
                        const long v257 = convert_long(v256);
                        const long v258 = convert_long(v194);
                        const float v259 = m7[v192];
                        const long v260 = as_long(as_ulong(v257) * as_ulong(20l));
                        const long v261 = as_long(as_ulong(v260) + as_ulong(v258));
                        p1[v261] = v259;
                    }
                    const uchar v264 = (uchar)(v201 < 6);
                    const uchar v265 = (uchar)(v202 < 20);
                    const uchar v266 = v264 & v265;
                    if (v266) {
                        const int v268 = min(v201, 5);
                        const long v269 = convert_long(v268);
                        const long v270 = convert_long(v202);
                        const float v271 = m7[v200];
                        const long v272 = as_long(as_ulong(v269) * as_ulong(20l));
                        const long v273 = as_long(as_ulong(v272) + as_ulong(v270));
                        p1[v273] = v271;
                    }
                    const uchar v276 = (uchar)(v209 < 6);
                    const uchar v277 = (uchar)(v210 < 20);
                    const uchar v278 = v276 & v277;
                    if (v278) {
                        const int v280 = min(v209, 5);
                        const long v281 = convert_long(v280);
                        const long v282 = convert_long(v210);
                        const float v283 = m7[v208];
                        const long v284 = as_long(as_ulong(v281) * as_ulong(20l));
                        const long v285 = as_long(as_ulong(v284) + as_ulong(v282));
                        p1[v285] = v283;
                    }
                    const uchar v288 = (uchar)(v217 < 6);
                    const uchar v289 = (uchar)(v218 < 20);
                    const uchar v290 = v288 & v289;
                    if (v290) {
                        const int v292 = min(v217, 5);
                        const long v293 = convert_long(v292);
                        const long v294 = convert_long(v218);
                        const float v295 = m7[v216];
                        const long v296 = as_long(as_ulong(v293) * as_ulong(20l));
                        const long v297 = as_long(as_ulong(v296) + as_ulong(v294));
                        p1[v297] = v295;
                    }
                    const uchar v300 = (uchar)(v225 < 6);
                    const uchar v301 = (uchar)(v226 < 20);
                    const uchar v302 = v300 & v301;
                    if (v302) {
                        const int v304 = min(v225, 5);
                        const long v305 = convert_long(v304);
                        const long v306 = convert_long(v226);
                        const float v307 = m7[v224];
                        const long v308 = as_long(as_ulong(v305) * as_ulong(20l));
                        const long v309 = as_long(as_ulong(v308) + as_ulong(v306));
                        p1[v309] = v307;
                    }
                    const uchar v312 = (uchar)(v233 < 6);
                    const uchar v313 = (uchar)(v234 < 20);
                    const uchar v314 = v312 & v313;
                    if (v314) {
                        const int v316 = min(v233, 5);
                        const long v317 = convert_long(v316);
                        const long v318 = convert_long(v234);
                        const float v319 = m7[v232];
                        const long v320 = as_long(as_ulong(v317) * as_ulong(20l));
                        const long v321 = as_long(as_ulong(v320) + as_ulong(v318));
                        p1[v321] = v319;
                    }
                    const uchar v324 = (uchar)(v241 < 6);
                    const uchar v325 = (uchar)(v242 < 20);
                    const uchar v326 = v324 & v325;
                    if (v326) {
                        const int v328 = min(v241, 5);
                        const long v329 = convert_long(v328);
                        const long v330 = convert_long(v242);
                        const float v331 = m7[v240];
                        const long v332 = as_long(as_ulong(v329) * as_ulong(20l));
                        const long v333 = as_long(as_ulong(v332) + as_ulong(v330));
                        p1[v333] = v331;
                    }
                    const uchar v336 = (uchar)(v249 < 6);
                    const uchar v337 = (uchar)(v250 < 20);
                    const uchar v338 = v336 & v337;
                    if (v338) {
                        const int v340 = min(v249, 5);
                        const long v341 = convert_long(v340);
                        const long v342 = convert_long(v250);
                        const float v343 = m7[v248];
                        const long v344 = as_long(as_ulong(v341) * as_ulong(20l));
                        const long v345 = as_long(as_ulong(v344) + as_ulong(v342));
                        p1[v345] = v343;
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
    }
}
