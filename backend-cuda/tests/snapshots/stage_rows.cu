extern "C" __global__ void __launch_bounds__(4) k_stage_rows_0(const float *p0, float *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ float m7[36];
    {
        const s64 i5 = blockIdx.x;
        const s32 v6 = convert<s32>(i5);
        {
            const s64 i8 = threadIdx.x;
            const s32 v9 = convert<s32>(i8);
            const s32 v11 = as<s32>(as<u32>(v6) << 2);
            const s32 v12 = as<s32>(as<u32>(v11) + as<u32>(v9));
            const s32 v14 = min(v12, 5);
            const s64 v15 = convert<s64>(v14);
            float m16[1];
            m16[0ll] = 0.0f;
            for (s64 i22 = 0; i22 < 3ll; ++i22) {
                const s32 v23 = convert<s32>(i22);
                const s32 v25 = as<s32>(as<u32>(v23) << 3);
                for (s64 i27 = 0; i27 < 1ll; ++i27) {
                    const s32 v28 = convert<s32>(i27);
                    const s32 v29 = as<s32>(as<u32>(v28) << 5);
                    const s32 v30 = as<s32>(as<u32>(v29) + as<u32>(v9));
                    const s32 v32 = v30 & 7;
                    const s32 v33 = v30 >> 3;
                    const s32 v35 = as<s32>(as<u32>(v33) * as<u32>(9));
                    const s32 v36 = as<s32>(as<u32>(v35) + as<u32>(v32));
                    const s32 v37 = as<s32>(as<u32>(v11) + as<u32>(v33));
                    const s32 v38 = as<s32>(as<u32>(v25) + as<u32>(v32));
                    const s32 v40 = as<s32>(as<u32>(v30) + as<u32>(4));
                    const s32 v41 = v40 & 7;
                    const s32 v42 = v40 >> 3;
                    const s32 v43 = as<s32>(as<u32>(v42) * as<u32>(9));
                    const s32 v44 = as<s32>(as<u32>(v43) + as<u32>(v41));
                    const s32 v45 = as<s32>(as<u32>(v11) + as<u32>(v42));
                    const s32 v46 = as<s32>(as<u32>(v25) + as<u32>(v41));
                    const s32 v48 = as<s32>(as<u32>(v30) + as<u32>(8));
                    const s32 v49 = v48 & 7;
                    const s32 v50 = v48 >> 3;
                    const s32 v51 = as<s32>(as<u32>(v50) * as<u32>(9));
                    const s32 v52 = as<s32>(as<u32>(v51) + as<u32>(v49));
                    const s32 v53 = as<s32>(as<u32>(v11) + as<u32>(v50));
                    const s32 v54 = as<s32>(as<u32>(v25) + as<u32>(v49));
                    const s32 v56 = as<s32>(as<u32>(v30) + as<u32>(12));
                    const s32 v57 = v56 & 7;
                    const s32 v58 = v56 >> 3;
                    const s32 v59 = as<s32>(as<u32>(v58) * as<u32>(9));
                    const s32 v60 = as<s32>(as<u32>(v59) + as<u32>(v57));
                    const s32 v61 = as<s32>(as<u32>(v11) + as<u32>(v58));
                    const s32 v62 = as<s32>(as<u32>(v25) + as<u32>(v57));
                    const s32 v64 = as<s32>(as<u32>(v30) + as<u32>(16));
                    const s32 v65 = v64 & 7;
                    const s32 v66 = v64 >> 3;
                    const s32 v67 = as<s32>(as<u32>(v66) * as<u32>(9));
                    const s32 v68 = as<s32>(as<u32>(v67) + as<u32>(v65));
                    const s32 v69 = as<s32>(as<u32>(v11) + as<u32>(v66));
                    const s32 v70 = as<s32>(as<u32>(v25) + as<u32>(v65));
                    const s32 v72 = as<s32>(as<u32>(v30) + as<u32>(20));
                    const s32 v73 = v72 & 7;
                    const s32 v74 = v72 >> 3;
                    const s32 v75 = as<s32>(as<u32>(v74) * as<u32>(9));
                    const s32 v76 = as<s32>(as<u32>(v75) + as<u32>(v73));
                    const s32 v77 = as<s32>(as<u32>(v11) + as<u32>(v74));
                    const s32 v78 = as<s32>(as<u32>(v25) + as<u32>(v73));
                    const s32 v80 = as<s32>(as<u32>(v30) + as<u32>(24));
                    const s32 v81 = v80 & 7;
                    const s32 v82 = v80 >> 3;
                    const s32 v83 = as<s32>(as<u32>(v82) * as<u32>(9));
                    const s32 v84 = as<s32>(as<u32>(v83) + as<u32>(v81));
                    const s32 v85 = as<s32>(as<u32>(v11) + as<u32>(v82));
                    const s32 v86 = as<s32>(as<u32>(v25) + as<u32>(v81));
                    const s32 v88 = as<s32>(as<u32>(v30) + as<u32>(28));
                    const s32 v89 = v88 & 7;
                    const s32 v90 = v88 >> 3;
                    const s32 v91 = as<s32>(as<u32>(v90) * as<u32>(9));
                    const s32 v92 = as<s32>(as<u32>(v91) + as<u32>(v89));
                    const s32 v93 = as<s32>(as<u32>(v11) + as<u32>(v90));
                    const s32 v94 = as<s32>(as<u32>(v25) + as<u32>(v89));
                    const s32 v96 = min(v38, 19);
                    const s32 v97 = min(v37, 5);
                    const s64 v98 = convert<s64>(v97);
                    const s64 v99 = convert<s64>(v96);
                    const s64 v100 = as<s64>(as<u64>(v98) * as<u64>(20ll));
                    const s64 v101 = as<s64>(as<u64>(v100) + as<u64>(v99));
                    const float v102 = p0[v101];
                    const s32 v103 = min(v46, 19);
                    const s32 v104 = min(v45, 5);
                    const s64 v105 = convert<s64>(v104);
                    const s64 v106 = convert<s64>(v103);
                    const s64 v107 = as<s64>(as<u64>(v105) * as<u64>(20ll));
                    const s64 v108 = as<s64>(as<u64>(v107) + as<u64>(v106));
                    const float v109 = p0[v108];
                    const s32 v110 = min(v54, 19);
                    const s32 v111 = min(v53, 5);
                    const s64 v112 = convert<s64>(v111);
                    const s64 v113 = convert<s64>(v110);
                    const s64 v114 = as<s64>(as<u64>(v112) * as<u64>(20ll));
                    const s64 v115 = as<s64>(as<u64>(v114) + as<u64>(v113));
                    const float v116 = p0[v115];
                    const s32 v117 = min(v62, 19);
                    const s32 v118 = min(v61, 5);
                    const s64 v119 = convert<s64>(v118);
                    const s64 v120 = convert<s64>(v117);
                    const s64 v121 = as<s64>(as<u64>(v119) * as<u64>(20ll));
                    const s64 v122 = as<s64>(as<u64>(v121) + as<u64>(v120));
                    const float v123 = p0[v122];
                    const s32 v124 = min(v70, 19);
                    const s32 v125 = min(v69, 5);
                    const s64 v126 = convert<s64>(v125);
                    const s64 v127 = convert<s64>(v124);
                    const s64 v128 = as<s64>(as<u64>(v126) * as<u64>(20ll));
                    const s64 v129 = as<s64>(as<u64>(v128) + as<u64>(v127));
                    const float v130 = p0[v129];
                    const s32 v131 = min(v78, 19);
                    const s32 v132 = min(v77, 5);
                    const s64 v133 = convert<s64>(v132);
                    const s64 v134 = convert<s64>(v131);
                    const s64 v135 = as<s64>(as<u64>(v133) * as<u64>(20ll));
                    const s64 v136 = as<s64>(as<u64>(v135) + as<u64>(v134));
                    const float v137 = p0[v136];
                    const s32 v138 = min(v86, 19);
                    const s32 v139 = min(v85, 5);
                    const s64 v140 = convert<s64>(v139);
                    const s64 v141 = convert<s64>(v138);
                    const s64 v142 = as<s64>(as<u64>(v140) * as<u64>(20ll));
                    const s64 v143 = as<s64>(as<u64>(v142) + as<u64>(v141));
                    const float v144 = p0[v143];
                    const s32 v145 = min(v94, 19);
                    const s32 v146 = min(v93, 5);
                    const s64 v147 = convert<s64>(v146);
                    const s64 v148 = convert<s64>(v145);
                    const s64 v149 = as<s64>(as<u64>(v147) * as<u64>(20ll));
                    const s64 v150 = as<s64>(as<u64>(v149) + as<u64>(v148));
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
                __syncthreads();
                for (s64 i163 = 0; i163 < 8ll; ++i163) {
                    const s32 v164 = convert<s32>(i163);
                    const s32 v165 = as<s32>(as<u32>(v25) + as<u32>(v164));
                    const u8 v167 = (u8)(v165 < 20);
                    if (v167) {
                        const s32 v170 = as<s32>(as<u32>(v9) * as<u32>(9));
                        const s32 v171 = as<s32>(as<u32>(v170) + as<u32>(v164));
                        const s64 v172 = convert<s64>(v165);
                        const s64 v173 = as<s64>(as<u64>(v15) * as<u64>(20ll));
                        const s64 v174 = as<s64>(as<u64>(v173) + as<u64>(v172));
                        const float v175 = m7[v171];
                        const float v176 = m16[0ll];
                        const float v177 = v176 + v175;
                        m16[0ll] = v177;
                        m7[v171] = v177;
                    }
                }
                __syncthreads();
                for (s64 i183 = 0; i183 < 1ll; ++i183) {
                    const s32 v184 = convert<s32>(i183);
                    const s32 v185 = as<s32>(as<u32>(v184) << 5);
                    const s32 v186 = as<s32>(as<u32>(v185) + as<u32>(v9));
                    const s32 v188 = v186 & 7;
                    const s32 v189 = v186 >> 3;
                    const s32 v191 = as<s32>(as<u32>(v189) * as<u32>(9));
                    const s32 v192 = as<s32>(as<u32>(v191) + as<u32>(v188));
                    const s32 v193 = as<s32>(as<u32>(v11) + as<u32>(v189));
                    const s32 v194 = as<s32>(as<u32>(v25) + as<u32>(v188));
                    const s32 v196 = as<s32>(as<u32>(v186) + as<u32>(4));
                    const s32 v197 = v196 & 7;
                    const s32 v198 = v196 >> 3;
                    const s32 v199 = as<s32>(as<u32>(v198) * as<u32>(9));
                    const s32 v200 = as<s32>(as<u32>(v199) + as<u32>(v197));
                    const s32 v201 = as<s32>(as<u32>(v11) + as<u32>(v198));
                    const s32 v202 = as<s32>(as<u32>(v25) + as<u32>(v197));
                    const s32 v204 = as<s32>(as<u32>(v186) + as<u32>(8));
                    const s32 v205 = v204 & 7;
                    const s32 v206 = v204 >> 3;
                    const s32 v207 = as<s32>(as<u32>(v206) * as<u32>(9));
                    const s32 v208 = as<s32>(as<u32>(v207) + as<u32>(v205));
                    const s32 v209 = as<s32>(as<u32>(v11) + as<u32>(v206));
                    const s32 v210 = as<s32>(as<u32>(v25) + as<u32>(v205));
                    const s32 v212 = as<s32>(as<u32>(v186) + as<u32>(12));
                    const s32 v213 = v212 & 7;
                    const s32 v214 = v212 >> 3;
                    const s32 v215 = as<s32>(as<u32>(v214) * as<u32>(9));
                    const s32 v216 = as<s32>(as<u32>(v215) + as<u32>(v213));
                    const s32 v217 = as<s32>(as<u32>(v11) + as<u32>(v214));
                    const s32 v218 = as<s32>(as<u32>(v25) + as<u32>(v213));
                    const s32 v220 = as<s32>(as<u32>(v186) + as<u32>(16));
                    const s32 v221 = v220 & 7;
                    const s32 v222 = v220 >> 3;
                    const s32 v223 = as<s32>(as<u32>(v222) * as<u32>(9));
                    const s32 v224 = as<s32>(as<u32>(v223) + as<u32>(v221));
                    const s32 v225 = as<s32>(as<u32>(v11) + as<u32>(v222));
                    const s32 v226 = as<s32>(as<u32>(v25) + as<u32>(v221));
                    const s32 v228 = as<s32>(as<u32>(v186) + as<u32>(20));
                    const s32 v229 = v228 & 7;
                    const s32 v230 = v228 >> 3;
                    const s32 v231 = as<s32>(as<u32>(v230) * as<u32>(9));
                    const s32 v232 = as<s32>(as<u32>(v231) + as<u32>(v229));
                    const s32 v233 = as<s32>(as<u32>(v11) + as<u32>(v230));
                    const s32 v234 = as<s32>(as<u32>(v25) + as<u32>(v229));
                    const s32 v236 = as<s32>(as<u32>(v186) + as<u32>(24));
                    const s32 v237 = v236 & 7;
                    const s32 v238 = v236 >> 3;
                    const s32 v239 = as<s32>(as<u32>(v238) * as<u32>(9));
                    const s32 v240 = as<s32>(as<u32>(v239) + as<u32>(v237));
                    const s32 v241 = as<s32>(as<u32>(v11) + as<u32>(v238));
                    const s32 v242 = as<s32>(as<u32>(v25) + as<u32>(v237));
                    const s32 v244 = as<s32>(as<u32>(v186) + as<u32>(28));
                    const s32 v245 = v244 & 7;
                    const s32 v246 = v244 >> 3;
                    const s32 v247 = as<s32>(as<u32>(v246) * as<u32>(9));
                    const s32 v248 = as<s32>(as<u32>(v247) + as<u32>(v245));
                    const s32 v249 = as<s32>(as<u32>(v11) + as<u32>(v246));
                    const s32 v250 = as<s32>(as<u32>(v25) + as<u32>(v245));
                    const u8 v252 = (u8)(v193 < 6);
                    const u8 v253 = (u8)(v194 < 20);
                    const u8 v254 = v252 & v253;
                    if (v254) {
                        const s32 v256 = min(v193, 5);
                        const s64 v257 = convert<s64>(v256);
                        const s64 v258 = convert<s64>(v194);
                        const float v259 = m7[v192];
                        const s64 v260 = as<s64>(as<u64>(v257) * as<u64>(20ll));
                        const s64 v261 = as<s64>(as<u64>(v260) + as<u64>(v258));
                        p1[v261] = v259;
                    }
                    const u8 v264 = (u8)(v201 < 6);
                    const u8 v265 = (u8)(v202 < 20);
                    const u8 v266 = v264 & v265;
                    if (v266) {
                        const s32 v268 = min(v201, 5);
                        const s64 v269 = convert<s64>(v268);
                        const s64 v270 = convert<s64>(v202);
                        const float v271 = m7[v200];
                        const s64 v272 = as<s64>(as<u64>(v269) * as<u64>(20ll));
                        const s64 v273 = as<s64>(as<u64>(v272) + as<u64>(v270));
                        p1[v273] = v271;
                    }
                    const u8 v276 = (u8)(v209 < 6);
                    const u8 v277 = (u8)(v210 < 20);
                    const u8 v278 = v276 & v277;
                    if (v278) {
                        const s32 v280 = min(v209, 5);
                        const s64 v281 = convert<s64>(v280);
                        const s64 v282 = convert<s64>(v210);
                        const float v283 = m7[v208];
                        const s64 v284 = as<s64>(as<u64>(v281) * as<u64>(20ll));
                        const s64 v285 = as<s64>(as<u64>(v284) + as<u64>(v282));
                        p1[v285] = v283;
                    }
                    const u8 v288 = (u8)(v217 < 6);
                    const u8 v289 = (u8)(v218 < 20);
                    const u8 v290 = v288 & v289;
                    if (v290) {
                        const s32 v292 = min(v217, 5);
                        const s64 v293 = convert<s64>(v292);
                        const s64 v294 = convert<s64>(v218);
                        const float v295 = m7[v216];
                        const s64 v296 = as<s64>(as<u64>(v293) * as<u64>(20ll));
                        const s64 v297 = as<s64>(as<u64>(v296) + as<u64>(v294));
                        p1[v297] = v295;
                    }
                    const u8 v300 = (u8)(v225 < 6);
                    const u8 v301 = (u8)(v226 < 20);
                    const u8 v302 = v300 & v301;
                    if (v302) {
                        const s32 v304 = min(v225, 5);
                        const s64 v305 = convert<s64>(v304);
                        const s64 v306 = convert<s64>(v226);
                        const float v307 = m7[v224];
                        const s64 v308 = as<s64>(as<u64>(v305) * as<u64>(20ll));
                        const s64 v309 = as<s64>(as<u64>(v308) + as<u64>(v306));
                        p1[v309] = v307;
                    }
                    const u8 v312 = (u8)(v233 < 6);
                    const u8 v313 = (u8)(v234 < 20);
                    const u8 v314 = v312 & v313;
                    if (v314) {
                        const s32 v316 = min(v233, 5);
                        const s64 v317 = convert<s64>(v316);
                        const s64 v318 = convert<s64>(v234);
                        const float v319 = m7[v232];
                        const s64 v320 = as<s64>(as<u64>(v317) * as<u64>(20ll));
                        const s64 v321 = as<s64>(as<u64>(v320) + as<u64>(v318));
                        p1[v321] = v319;
                    }
                    const u8 v324 = (u8)(v241 < 6);
                    const u8 v325 = (u8)(v242 < 20);
                    const u8 v326 = v324 & v325;
                    if (v326) {
                        const s32 v328 = min(v241, 5);
                        const s64 v329 = convert<s64>(v328);
                        const s64 v330 = convert<s64>(v242);
                        const float v331 = m7[v240];
                        const s64 v332 = as<s64>(as<u64>(v329) * as<u64>(20ll));
                        const s64 v333 = as<s64>(as<u64>(v332) + as<u64>(v330));
                        p1[v333] = v331;
                    }
                    const u8 v336 = (u8)(v249 < 6);
                    const u8 v337 = (u8)(v250 < 20);
                    const u8 v338 = v336 & v337;
                    if (v338) {
                        const s32 v340 = min(v249, 5);
                        const s64 v341 = convert<s64>(v340);
                        const s64 v342 = convert<s64>(v250);
                        const float v343 = m7[v248];
                        const s64 v344 = as<s64>(as<u64>(v341) * as<u64>(20ll));
                        const s64 v345 = as<s64>(as<u64>(v344) + as<u64>(v342));
                        p1[v345] = v343;
                    }
                }
                __syncthreads();
            }
        }
    }
}
