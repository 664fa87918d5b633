extern "C" __global__ void __launch_bounds__(8) k_two_nests_0(const float *p0, float *p1, float *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i7 = blockIdx.x;
        {
            const s64 i8 = threadIdx.x;
            const s64 v9 = as<s64>(as<u64>(i7) * as<u64>(8ll));
            const s64 v10 = as<s64>(as<u64>(v9) + as<u64>(i8));
            const float v11 = p0[v10];
            const float v12 = v11 * 2.0f;
            p1[v10] = v12;
        }
    }
}

extern "C" __global__ void __launch_bounds__(8) k_two_nests_1(const float *p0, float *p1, float *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i16 = blockIdx.y;
        {
            const s64 i17 = threadIdx.y;
            const s64 v18 = as<s64>(as<u64>(i16) * as<u64>(8ll));
            const s64 v19 = as<s64>(as<u64>(v18) + as<u64>(i17));
            const s64 v20 = as<s64>(as<u64>(63ll) - as<u64>(v19));
            const float v21 = p1[v20];
            p2[v19] = v21;
        }
    }
}

extern "C" __global__ void __launch_bounds__(1) k_two_nests_2(const float *p0, float *p1, float *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    p2[64ll] = 2.0f;
}
