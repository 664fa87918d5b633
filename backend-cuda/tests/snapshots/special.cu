extern "C" __global__ void __launch_bounds__(1) k_special_0(const float *p0, float *p1, s8 *p2) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i8 = blockIdx.x;
        const float v9 = p0[i8];
        const float v10 = exp(v9);
        const float v11 = log1p(v9);
        const float v12 = tanh(v10);
        const float v13 = fmod(v9, 3.0f);
        const float v14 = sqrt(v11);
        const float v15 = rint(v9);
        const float v16 = min_nan(v14, as<float>(0x7f800000u));
        const float v17 = v12 + v13;
        const float v18 = v17 + v16;
        const u8 v19 = (u8)(v18 != v18);
        const float v20 = v19 ? v15 : v18;
        const float v21 = max_nan(v20, 1e-45f);
        const u8 v22 = (u8)(as<float>(0x7f800000u) < v21);
        const float v23 = v22 ? as<float>(0x7fc00000u) : v21;
        p1[i8] = v23;
        const s8 v25 = saturate<s8>(v9);
        p2[i8] = v25;
    }
}
