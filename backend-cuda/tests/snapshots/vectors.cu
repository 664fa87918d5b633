extern "C" __global__ void __launch_bounds__(1) k_vectors_0(const s32 *p0, s32 *p1, s32 *p2, u8 *p3, const float *p4, float *p5) {
    {
        const s64 i9 = blockIdx.x;
        const s64 v10 = as<s64>(as<u64>(i9) * as<u64>(16ll));
        const vec<s32, 16> v11 = load<16>(p0 + v10);
        const vec<s32, 16> v12 = fill<vec<s32, 16>>(0);
        const vec<u8, 16> v13 = v11 < v12;
        const vec<u8, 16> v14 = v13 ^ (u8)1;
        const vec<s32, 16> v15 = as<vec<s32, 16>>(0u - as<vec<u32, 16>>(v11));
        const vec<s32, 16> v16 = select(v14, v11, v15);
        store(p1 + v10, v16);
        store(p3 + v10, v14);
        const s32 f19_8_0 = as<s32>(as<u32>(v16.s[0]) + as<u32>(v16.s[8]));
        const s32 f19_8_1 = as<s32>(as<u32>(v16.s[1]) + as<u32>(v16.s[9]));
        const s32 f19_8_2 = as<s32>(as<u32>(v16.s[2]) + as<u32>(v16.s[10]));
        const s32 f19_8_3 = as<s32>(as<u32>(v16.s[3]) + as<u32>(v16.s[11]));
        const s32 f19_8_4 = as<s32>(as<u32>(v16.s[4]) + as<u32>(v16.s[12]));
        const s32 f19_8_5 = as<s32>(as<u32>(v16.s[5]) + as<u32>(v16.s[13]));
        const s32 f19_8_6 = as<s32>(as<u32>(v16.s[6]) + as<u32>(v16.s[14]));
        const s32 f19_8_7 = as<s32>(as<u32>(v16.s[7]) + as<u32>(v16.s[15]));
        const s32 f19_4_0 = as<s32>(as<u32>(f19_8_0) + as<u32>(f19_8_4));
        const s32 f19_4_1 = as<s32>(as<u32>(f19_8_1) + as<u32>(f19_8_5));
        const s32 f19_4_2 = as<s32>(as<u32>(f19_8_2) + as<u32>(f19_8_6));
        const s32 f19_4_3 = as<s32>(as<u32>(f19_8_3) + as<u32>(f19_8_7));
        const s32 f19_2_0 = as<s32>(as<u32>(f19_4_0) + as<u32>(f19_4_2));
        const s32 f19_2_1 = as<s32>(as<u32>(f19_4_1) + as<u32>(f19_4_3));
        const s32 f19_1_0 = as<s32>(as<u32>(f19_2_0) + as<u32>(f19_2_1));
        const s32 v19 = f19_1_0;
        const s32 v20 = v16.s[15];
        const s32 v21 = as<s32>(as<u32>(v19) - as<u32>(v20));
        p2[i9] = v21;
        const s64 v23 = as<s64>(as<u64>(i9) * as<u64>(4ll));
        const vec<float, 4> v24 = load<4>(p4 + v23);
        const float f25_2_0 = v24.s[0] * v24.s[2];
        const float f25_2_1 = v24.s[1] * v24.s[3];
        const float f25_1_0 = f25_2_0 * f25_2_1;
        const float v25 = f25_1_0;
        const float f26_2_0 = (((v24.s[0] > v24.s[2]) | (v24.s[0] != v24.s[0])) ? v24.s[0] : v24.s[2]);
        const float f26_2_1 = (((v24.s[1] > v24.s[3]) | (v24.s[1] != v24.s[1])) ? v24.s[1] : v24.s[3]);
        const float f26_1_0 = (((f26_2_0 > f26_2_1) | (f26_2_0 != f26_2_0)) ? f26_2_0 : f26_2_1);
        const float v26 = f26_1_0;
        const float v27 = v26 - v25;
        p5[i9] = v27;
    }
}
