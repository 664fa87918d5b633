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

extern "C" __global__ void __launch_bounds__(32) k_atomic_parts_0(u8 *p0, u16 *p1, s16 *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i8 = blockIdx.x;
        {
            const s64 i9 = threadIdx.x;
            const s64 v10 = i9 % 4ll;
            add_u8_buffer(p0 + v10, (u8)1);
            add_u16_buffer(p1 + v10, (u16)1);
            const s64 v13 = i9 % 8ll;
            const s64 v14 = as<s64>(as<u64>(4ll) - as<u64>(v13));
            const s16 v15 = convert<s16>(v14);
            *(volatile s16 *)(p2 + (v13)) = v15;
        }
    }
}
