extern "C" __global__ void __launch_bounds__(8) k_parts_0(const u8 *p0, const s16 *p1, const u8 *p2, s8 *p3, u16 *p4, u8 *p5, s8 x0) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __builtin_assume(((u64)p3 & 63) == 0);
    __builtin_assume(((u64)p4 & 63) == 0);
    __builtin_assume(((u64)p5 & 63) == 0);
    {
        const s64 i11 = blockIdx.x;
        {
            const s64 i12 = threadIdx.x;
            const s64 v13 = as<s64>(as<u64>(i11) * as<u64>(8ll));
            const s64 v14 = as<s64>(as<u64>(v13) + as<u64>(i12));
            const u8 v15 = (u8)(v14 < 30ll);
            const u8 v17 = p0[v14];
            const s16 v18 = (v15) ? p1[v14] : (s16)0;
            const u8 v19 = p2[v14];
            const s32 v20 = convert<s32>(v17);
            const s32 v21 = convert<s32>(v18);
            const s32 v22 = convert<s32>(x0);
            const s32 v23 = as<s32>(as<u32>(v20) + as<u32>(v21));
            const s32 v24 = as<s32>(as<u32>(v23) * as<u32>(v22));
            const s8 v25 = convert<s8>(v24);
            const u16 v26 = convert<u16>(v23);
            const s32 v27 = max(v20, v21);
            const u8 v28 = (u8)(v20 < v27);
            const u8 v29 = v19 ^ v28;
            p3[v14] = v25;
            if ((v15)) p4[v14] = v26;
            p5[v14] = v29;
        }
    }
}
