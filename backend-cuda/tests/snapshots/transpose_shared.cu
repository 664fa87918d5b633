extern "C" __global__ void __launch_bounds__(8) k_transpose_shared_0(const float *p0, float *p1, float x0) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ float m14[20];
    {
        const s64 i8 = blockIdx.z;
        const s32 v9 = convert<s32>(i8);
        {
            const s64 i10 = blockIdx.y;
            const s32 v11 = convert<s32>(i10);
            {
                const s64 i12 = blockIdx.x;
                const s32 v13 = convert<s32>(i12);
                {
                    const s64 i15 = threadIdx.x;
                    const s32 v16 = convert<s32>(i15);
                    const s32 v18 = as<s32>(as<u32>(v11) << 2);
                    const s32 v19 = as<s32>(as<u32>(v13) << 2);
                    const s32 v21 = v16 & 3;
                    const s32 v22 = v16 >> 2;
                    const s32 v24 = as<s32>(as<u32>(v21) * as<u32>(5));
                    const s32 v25 = as<s32>(as<u32>(v24) + as<u32>(v22));
                    const s32 v26 = as<s32>(as<u32>(v18) + as<u32>(v21));
                    const s32 v27 = as<s32>(as<u32>(v19) + as<u32>(v22));
                    const u8 v29 = (u8)(v26 < 9);
                    if (v29) {
                        const s64 v31 = convert<s64>(v26);
                        const s64 v32 = convert<s64>(v27);
                        const s64 v33 = as<s64>(as<u64>(v32) * as<u64>(9ll));
                        const s64 v34 = as<s64>(as<u64>(v31) + as<u64>(v33));
                        const float v35 = p0[v34];
                        m14[v25] = v35;
                    }
                    const s32 v39 = as<s32>(as<u32>(v16) + as<u32>(8));
                    const s32 v40 = v39 & 3;
                    const s32 v41 = v39 >> 2;
                    const s32 v42 = as<s32>(as<u32>(v40) * as<u32>(5));
                    const s32 v43 = as<s32>(as<u32>(v42) + as<u32>(v41));
                    const s32 v44 = as<s32>(as<u32>(v18) + as<u32>(v40));
                    const s32 v45 = as<s32>(as<u32>(v19) + as<u32>(v41));
                    const u8 v46 = (u8)(v44 < 9);
                    if (v46) {
                        const s64 v48 = convert<s64>(v44);
                        const s64 v49 = convert<s64>(v45);
                        const s64 v50 = as<s64>(as<u64>(v49) * as<u64>(9ll));
                        const s64 v51 = as<s64>(as<u64>(v48) + as<u64>(v50));
                        const float v52 = p0[v51];
                        m14[v43] = v52;
                    }
                    __syncthreads();
                    const s32 v56 = as<s32>(as<u32>(v22) * as<u32>(5));
                    const s32 v57 = as<s32>(as<u32>(v56) + as<u32>(v21));
                    const s32 v58 = as<s32>(as<u32>(v18) + as<u32>(v22));
                    const s32 v59 = as<s32>(as<u32>(v19) + as<u32>(v21));
                    const u8 v60 = (u8)(v58 < 9);
                    if (v60) {
                        const s64 v62 = convert<s64>(v58);
                        const s64 v63 = convert<s64>(v59);
                        const float v64 = m14[v57];
                        const s64 v66 = as<s64>(as<u64>(v62) * as<u64>(20ll));
                        const s64 v67 = as<s64>(as<u64>(v66) + as<u64>(v63));
                        const float v68 = v64 * x0;
                        p1[v67] = v68;
                    }
                    const s32 v71 = as<s32>(as<u32>(v41) * as<u32>(5));
                    const s32 v72 = as<s32>(as<u32>(v71) + as<u32>(v40));
                    const s32 v73 = as<s32>(as<u32>(v18) + as<u32>(v41));
                    const s32 v74 = as<s32>(as<u32>(v19) + as<u32>(v40));
                    const u8 v75 = (u8)(v73 < 9);
                    if (v75) {
                        const s64 v77 = convert<s64>(v73);
                        const s64 v78 = convert<s64>(v74);
                        const float v79 = m14[v72];
                        const s64 v81 = as<s64>(as<u64>(v77) * as<u64>(20ll));
                        const s64 v82 = as<s64>(as<u64>(v81) + as<u64>(v78));
                        const float v83 = v79 * x0;
                        p1[v82] = v83;
                    }
                }
            }
        }
    }
}
