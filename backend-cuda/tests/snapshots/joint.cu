extern "C" __global__ void __launch_bounds__(16) k_joint_0(s32 *p0, s32 *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ s32 m7[16];
    __shared__ s32 a28_0;
    const s32 v8 = p0[15ll];
    __syncthreads();
    {
        const s64 i9 = threadIdx.x;
        const s32 v10 = p0[i9];
        const s32 v11 = as<s32>(as<u32>(v10) + as<u32>(v8));
        m7[i9] = v11;
    }
    __syncthreads();
    const s32 v14 = m7[0ll];
    const s32 v15 = as<s32>(as<u32>(v14) + as<u32>(1));
    __syncthreads();
    if ((threadIdx.x == 0)) m7[0ll] = v15;
    for (s64 i17 = 0; i17 < 8ll; ++i17) {
        __syncthreads();
        const s32 v18 = m7[i17];
        const s32 v19 = as<s32>(as<u32>(v18) + as<u32>(1));
        __syncthreads();
        if ((threadIdx.x == 0)) m7[i17] = v19;
        __syncthreads();
    }
    __syncthreads();
    {
        const s64 i22 = threadIdx.x;
        const s64 v23 = as<s64>(as<u64>(15ll) - as<u64>(i22));
        const s32 v24 = m7[v23];
        p1[i22] = v24;
        p0[i22] = v24;
    }
    __syncthreads();
    if (threadIdx.x == 0) a28_0 = atomicAdd(p0 + 0ll, 1);
    __syncthreads();
    const s32 v28 = a28_0;
    __syncthreads();
    if ((threadIdx.x == 0)) p1[16ll] = v28;
}
