extern "C" __global__ void __launch_bounds__(32) k_atomic_stores_0(s32 *p0, u32 *p1, s32 *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i6 = blockIdx.x;
        {
            const s64 i7 = threadIdx.x;
            const s64 v8 = i7 % 8ll;
            const s64 v9 = as<s64>(as<u64>(v8) + as<u64>(200ll));
            const s32 v10 = convert<s32>(v9);
            const u32 v11 = convert<u32>(v9);
            *(volatile s32 *)(p0 + (v8)) = v10;
            *(volatile u32 *)(p1 + (v8)) = v11;
            const s32 v14 = *(volatile s32 *)(p0 + (v8));
            const u32 v15 = *(volatile u32 *)(p1 + (v8));
            const s32 v16 = convert<s32>(v15);
            const s32 v17 = as<s32>(as<u32>(v14) + as<u32>(v16));
            const s64 v18 = as<s64>(as<u64>(i6) * as<u64>(32ll));
            const s64 v19 = as<s64>(as<u64>(v18) + as<u64>(i7));
            p2[v19] = v17;
        }
    }
}
