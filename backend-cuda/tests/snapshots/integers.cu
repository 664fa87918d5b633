static __device__ __forceinline__ s32 pow_i32(s32 x, s32 y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1) : 0;
    s32 r = 1, b = x;
    for (; y > 0; y >>= 1) {
        if (y & 1) r = as<s32>(as<u32>(r) * as<u32>(b));
        b = as<s32>(as<u32>(b) * as<u32>(b));
    }
    return r;
}

extern "C" __global__ void __launch_bounds__(1) k_integers_0(const s32 *p0, const s32 *p1, s32 *p2, const s64 *p3, s64 *p4) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __builtin_assume(((u64)p3 & 63) == 0);
    __builtin_assume(((u64)p4 & 63) == 0);
    for (s64 i8 = 0; i8 < 60ll; ++i8) {
        const s32 v9 = p0[i8];
        const s32 v10 = p1[i8];
        const s32 v11 = v9 / v10;
        const s32 v12 = v9 % v10;
        const s32 v13 = as<s32>(as<u32>(v11) << v10);
        const s32 v14 = v12 >> v10;
        const s32 v15 = pow_i32(v9, 3);
        const s32 v16 = v13 ^ v14;
        const s32 v17 = as<s32>(as<u32>(v16) + as<u32>(v15));
        p2[i8] = v17;
        const s64 v19 = p3[i8];
        const s64 v20 = v19 / 7ll;
        const s64 v21 = v19 % 7ll;
        const s64 v22 = as<s64>(0ull - as<u64>(v21));
        const s64 v23 = ((v22 < 0ll) ? as<s64>(0ull - as<u64>(v22)) : v22);
        const s64 v24 = as<s64>(as<u64>(v20) * as<u64>(v23));
        p4[i8] = v24;
    }
}
