static __device__ __forceinline__ u64 await_u64(const volatile u64 *p) {
    u64 x;
    do x = *p;
    while (x == 0);
    return x;
}

extern "C" __global__ void __launch_bounds__(32) k_atomic_waits_0(u64 *p0, u64 *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ u64 m9[1];
    {
        const s64 i8 = blockIdx.x;
        {
            const s64 i10 = threadIdx.x;
            const u8 v11 = (u8)(i10 == 0ll);
            if (v11) {
                const u64 v13 = atomicAdd(p0 + 0ll, 1ull);
                m9[0ll] = v13;
            }
            __syncthreads();
            const u64 v17 = m9[0ll];
            const s64 v18 = convert<s64>(v17);
            const s64 v19 = i10 & 1ll;
            const u8 v20 = (u8)(v19 == 1ll);
            const u8 v21 = (u8)(0ll < v18);
            const u8 v22 = v20 & v21;
            const u64 v24 = (v22) ? await_u64(p0 + v18) : 0ull;
            const u64 v25 = v24 + 3ull;
            const s64 v26 = as<s64>(as<u64>(v18) + as<u64>(1ll));
            const u8 v27 = (u8)(i10 == 1ll);
            if ((v27)) *(volatile u64 *)(p0 + (v26)) = v25;
            const s64 v30 = as<s64>(as<u64>(v18) * as<u64>(32ll));
            const s64 v31 = as<s64>(as<u64>(v30) + as<u64>(i10));
            p1[v31] = v25;
        }
    }
}
