extern "C" __global__ void __launch_bounds__(64) k_reduce_shared_0(const float *p0, float *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ float m8[64];
    {
        const s64 i7 = blockIdx.x;
        {
            const s64 i9 = threadIdx.x;
            const s64 v10 = as<s64>(as<u64>(i7) * as<u64>(64ll));
            const s64 v11 = as<s64>(as<u64>(v10) + as<u64>(i9));
            const float v12 = p0[v11];
            m8[i9] = v12;
            __syncthreads();
            for (s64 i15 = 0; i15 < 6ll; ++i15) {
                const u64 v16 = as<u64>(i15);
                const u8 v18 = (u8)(v16 < 64ull);
                const s64 v20 = v18 ? i15 : 63ll;
                const s64 v21 = 32ll >> v20;
                const u8 v22 = (u8)(i9 < v21);
                if (v22) {
                    const s64 v24 = as<s64>(as<u64>(i9) + as<u64>(v21));
                    const float v25 = m8[i9];
                    const float v26 = m8[v24];
                    const float v27 = max_nan(v25, v26);
                    m8[i9] = v27;
                }
                __syncthreads();
            }
            const u8 v32 = (u8)(i9 == 0ll);
            if (v32) {
                const float v34 = m8[0ll];
                p1[i7] = v34;
            }
        }
    }
}
