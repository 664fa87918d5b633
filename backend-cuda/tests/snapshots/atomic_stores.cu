extern "C" __global__ void __launch_bounds__(32) k_atomic_stores_0(s32 *p0, u32 *p1, s32 *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i7 = blockIdx.x;
        {
            const s64 i8 = threadIdx.x;
            const s64 v9 = i8 % 8ll;
            const s64 v10 = as<s64>(as<u64>(v9) + as<u64>(200ll));
            const s32 v11 = convert<s32>(v10);
            const u32 v12 = convert<u32>(v10);
            *(volatile s32 *)(p0 + (v9)) = v11;
            *(volatile u32 *)(p1 + (v9)) = v12;
            const s32 v15 = *(volatile s32 *)(p0 + (v9));
            const u32 v16 = *(volatile u32 *)(p1 + (v9));
            const s32 v17 = convert<s32>(v16);
            const s32 v18 = as<s32>(as<u32>(v15) + as<u32>(v17));
            const s64 v19 = as<s64>(as<u64>(i7) * as<u64>(32ll));
            const s64 v20 = as<s64>(as<u64>(v19) + as<u64>(i8));
            p2[v20] = v18;
        }
    }
}
