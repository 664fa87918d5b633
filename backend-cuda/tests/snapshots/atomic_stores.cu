extern "C" __global__ void __launch_bounds__(32) k_atomic_stores_0(u8 *p0, s16 *p1, s32 *p2, s32 *p3) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __builtin_assume(((u64)p3 & 63) == 0);
    {
        const s64 i8 = blockIdx.x;
        {
            const s64 i9 = threadIdx.x;
            const s64 v10 = i9 % 8ll;
            const s64 v11 = as<s64>(as<u64>(v10) + as<u64>(200ll));
            const u8 v12 = convert<u8>(v11);
            const s64 v13 = as<s64>(as<u64>(8ll) - as<u64>(v11));
            const s16 v14 = convert<s16>(v13);
            const s32 v15 = convert<s32>(v11);
            *(volatile u8 *)(p0 + (v10)) = v12;
            *(volatile s16 *)(p1 + (v10)) = v14;
            *(volatile s32 *)(p2 + (v10)) = v15;
            const u8 v19 = *(volatile u8 *)(p0 + (v10));
            const s16 v20 = *(volatile s16 *)(p1 + (v10));
            const s32 v21 = *(volatile s32 *)(p2 + (v10));
            const s32 v22 = convert<s32>(v19);
            const s32 v23 = convert<s32>(v20);
            const s32 v24 = as<s32>(as<u32>(v22) + as<u32>(v23));
            const s32 v25 = as<s32>(as<u32>(v24) + as<u32>(v21));
            const s64 v26 = as<s64>(as<u64>(i8) * as<u64>(32ll));
            const s64 v27 = as<s64>(as<u64>(v26) + as<u64>(i9));
            p3[v27] = v25;
        }
    }
}
