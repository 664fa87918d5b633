extern "C" __global__ void __launch_bounds__(32) k_atomics_0(s32 *p0, u32 *p1, s64 *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __shared__ s64 m10[4];
    {
        const s64 i9 = blockIdx.x;
        {
            const s64 i11 = threadIdx.x;
            const u8 v12 = (u8)(i11 < 4ll);
            if (v12) {
                m10[i11] = 0ll;
            }
            __syncthreads();
            const s64 v17 = i11 % 4ll;
            atomicAdd(p0 + v17, 1);
            atomicAdd(p1 + v17, 1u);
            const u8 v20 = (u8)(v17 < 4ll);
            if ((v20)) atomicMax(m10 + v17, i11);
            __syncthreads();
            if (v12) {
                const s64 v25 = m10[i11];
                atomic_add(p2 + i11, v25);
            }
        }
    }
}
