static __device__ __forceinline__ u8 add_u8_buffer(volatile u8 *p, u8 x) {
    const u64 at = (u64)p;
    volatile u32 *word = (volatile u32 *)(at & ~(u64)3);
    const u32 shift = (u32)(at & 3) * 8u;
    u32 seen = *word, old;
    u8 y;
    do {
        old = seen;
        y = (u8)(old >> shift);
        const u32 a = convert<u32>(y), b = convert<u32>(x);
        const u32 c = a + b;
        const u8 z = convert<u8>(c);
        seen = exchange(word, old, (old & ~(0xffu << shift)) | ((u32)z << shift));
    } while (seen != old);
    return y;
}

static __device__ __forceinline__ u16 add_u16_buffer(volatile u16 *p, u16 x) {
    const u64 at = (u64)p;
    volatile u32 *word = (volatile u32 *)(at & ~(u64)3);
    const u32 shift = (u32)(at & 3) * 8u;
    u32 seen = *word, old;
    u16 y;
    do {
        old = seen;
        y = (u16)(old >> shift);
        const u32 a = convert<u32>(y), b = convert<u32>(x);
        const u32 c = a + b;
        const u16 z = convert<u16>(c);
        seen = exchange(word, old, (old & ~(0xffffu << shift)) | ((u32)z << shift));
    } while (seen != old);
    return y;
}

static __device__ __forceinline__ s64 add_i64_buffer(volatile s64 *p, s64 x) {
    volatile u64 *word = (volatile u64 *)p;
    u64 seen = *word, old;
    s64 y;
    do {
        old = seen;
        y = as<s64>(old);
        const s64 a = y, b = x;
        const s64 c = as<s64>(as<u64>(a) + as<u64>(b));
        const s64 z = c;
        seen = exchange(word, old, as<u64>(z));
    } while (seen != old);
    return y;
}

extern "C" __global__ void __launch_bounds__(32) k_atomics_0(s32 *p0, float *p1, u8 *p2, u16 *p3, s64 *p4) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __builtin_assume(((u64)p3 & 63) == 0);
    __builtin_assume(((u64)p4 & 63) == 0);
    __shared__ s64 m14[4];
    {
        const s64 i13 = blockIdx.x;
        {
            const s64 i15 = threadIdx.x;
            const u8 v16 = (u8)(i15 < 4ll);
            if (v16) {
                m14[i15] = 0ll;
            }
            __syncthreads();
            const s64 v21 = i15 % 4ll;
            const s32 v22 = atomicAdd(p0 + v21, 1);
            const float v23 = atomicAdd(p1 + v21, 1.0f);
            const u8 v24 = add_u8_buffer(p2 + v21, (u8)1);
            const u16 v25 = add_u16_buffer(p3 + v21, (u16)1);
            const u8 v26 = (u8)(v21 < 4ll);
            const s64 v28 = (v26) ? atomicMax(m14 + v21, i15) : 0ll;
            __syncthreads();
            if (v16) {
                const s64 v31 = m14[i15];
                const s64 v32 = add_i64_buffer(p4 + i15, v31);
            }
        }
    }
}
