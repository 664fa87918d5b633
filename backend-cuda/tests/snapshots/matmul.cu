extern "C" __global__ void __launch_bounds__(32) k_matmul_0(const float *p0, const float *p1, float *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __shared__ float m14[64];
    __shared__ float m15[128];
    {
        const s64 i12 = blockIdx.y;
        {
            const s64 i13 = blockIdx.x;
            {
                const s64 i16 = threadIdx.y;
                {
                    const s64 i17 = threadIdx.x;
                    vec<float, 4> m18[1];
                    const vec<float, 4> v19 = fill<vec<float, 4>>(0.0f);
                    m18[0ll] = v19;
                    const s64 v21 = as<s64>(as<u64>(i12) * as<u64>(8ll));
                    const s64 v22 = as<s64>(as<u64>(v21) + as<u64>(i16));
                    const s64 v23 = as<s64>(as<u64>(i13) * as<u64>(16ll));
                    const s64 v24 = as<s64>(as<u64>(i17) * as<u64>(4ll));
                    const s64 v25 = as<s64>(as<u64>(v23) + as<u64>(v24));
                    for (s64 i26 = 0; i26 < 3ll; ++i26) {
                        const s64 v27 = as<s64>(as<u64>(i26) * as<u64>(8ll));
                        const s64 v28 = as<s64>(as<u64>(v22) * as<u64>(24ll));
                        const s64 v29 = as<s64>(as<u64>(v28) + as<u64>(v27));
                        const s64 v30 = as<s64>(as<u64>(i17) * as<u64>(2ll));
                        const s64 v31 = as<s64>(as<u64>(v29) + as<u64>(v30));
                        const vec<float, 2> v32 = *(const vec<float, 2> *)(p0 + v31);
                        const s64 v33 = as<s64>(as<u64>(i16) * as<u64>(8ll));
                        const s64 v34 = as<s64>(as<u64>(v33) + as<u64>(v30));
                        store(m14 + v34, v32);
                        const s64 v36 = as<s64>(as<u64>(v27) + as<u64>(i16));
                        const s64 v37 = as<s64>(as<u64>(v36) * as<u64>(32ll));
                        const s64 v38 = as<s64>(as<u64>(v37) + as<u64>(v25));
                        const vec<float, 4> v39 = *(const vec<float, 4> *)(p1 + v38);
                        const s64 v40 = as<s64>(as<u64>(i16) * as<u64>(16ll));
                        const s64 v41 = as<s64>(as<u64>(v40) + as<u64>(v24));
                        store(m15 + v41, v39);
                        __syncthreads();
                        for (s64 i44 = 0; i44 < 8ll; ++i44) {
                            const s64 v45 = as<s64>(as<u64>(v33) + as<u64>(i44));
                            const float v46 = m14[v45];
                            const vec<float, 4> v47 = fill<vec<float, 4>>(v46);
                            const s64 v48 = as<s64>(as<u64>(i44) * as<u64>(16ll));
                            const s64 v49 = as<s64>(as<u64>(v48) + as<u64>(v24));
                            const vec<float, 4> v50 = load<4>(m15 + v49);
                            const vec<float, 4> v51 = m18[0ll];
                            const vec<float, 4> v52 = fma(v47, v50, v51);
                            m18[0ll] = v52;
                        }
                        __syncthreads();
                    }
                    const vec<float, 4> v57 = m18[0ll];
                    const s64 v58 = as<s64>(as<u64>(v22) * as<u64>(32ll));
                    const s64 v59 = as<s64>(as<u64>(v58) + as<u64>(v25));
                    *(vec<float, 4> *)(p2 + v59) = v57;
                }
            }
        }
    }
}
