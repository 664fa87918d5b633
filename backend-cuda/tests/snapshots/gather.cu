extern "C" __global__ void __launch_bounds__(1) k_gather_0(const float *p0, const s64 *p1, float *p2, s32 *p3) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    __builtin_assume(((u64)p3 & 63) == 0);
    {
        const s64 i9 = blockIdx.x;
        const s64 v10 = as<s64>(as<u64>(i9) * as<u64>(4ll));
        const vec<s64, 4> v11 = load<4>(p1 + v10);
        const vec<s64, 4> v12 = fill<vec<s64, 4>>(0ll);
        const vec<s64, 4> v13 = fill<vec<s64, 4>>(10ll);
        const vec<u8, 4> v14 = v12 <= v11;
        const vec<u8, 4> v15 = v11 < v13;
        const vec<u8, 4> v16 = v14 & v15;
        const vec<float, 4> v18 = make<vec<float, 4>>((v16.s[0]) ? p0[v11.s[0]] : 0.0f, (v16.s[1]) ? p0[v11.s[1]] : 0.0f, (v16.s[2]) ? p0[v11.s[2]] : 0.0f, (v16.s[3]) ? p0[v11.s[3]] : 0.0f);
        *(vec<float, 4> *)(p2 + v10) = v18;
        const vec<s64, 4> v20 = make<vec<s64, 4>>(0, 1, 2, 3);
        const vec<s64, 4> v21 = fill<vec<s64, 4>>(v10);
        const vec<s64, 4> v22 = as<vec<s64, 4>>(as<vec<u64, 4>>(v21) + as<vec<u64, 4>>(v20));
        const vec<s64, 4> v23 = fill<vec<s64, 4>>(31ll);
        const vec<s64, 4> v24 = as<vec<s64, 4>>(as<vec<u64, 4>>(v23) - as<vec<u64, 4>>(v22));
        const vec<s32, 4> v26 = convert<vec<s32, 4>>(v22);
        if ((v16.s[0])) p3[v24.s[0]] = v26.s[0];
        if ((v16.s[1])) p3[v24.s[1]] = v26.s[1];
        if ((v16.s[2])) p3[v24.s[2]] = v26.s[2];
        if ((v16.s[3])) p3[v24.s[3]] = v26.s[3];
    }
}
