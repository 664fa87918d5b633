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
                const s64 v16 = 32ll >> i15;
                const u8 v17 = (u8)(i9 < v16);
                if (v17) {
                    const s64 v19 = as<s64>(as<u64>(i9) + as<u64>(v16));
                    const float v20 = m8[i9];
                    const float v21 = m8[v19];
                    const float v22 = max_nan(v20, v21);
                    m8[i9] = v22;
                }
                __syncthreads();
            }
            const u8 v27 = (u8)(i9 == 0ll);
            if (v27) {
                const float v29 = m8[0ll];
                p1[i7] = v29;
            }
        }
    }
}
