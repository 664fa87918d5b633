extern "C" __global__ void __launch_bounds__(64) k_elementwise_0(const float *p0, const float *p1, float *p2, float x0) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i8 = blockIdx.x;
        {
            const s64 i9 = threadIdx.x;
            const s64 v10 = as<s64>(as<u64>(i8) * as<u64>(256ll));
            const s64 v11 = as<s64>(as<u64>(i9) * as<u64>(4ll));
            const s64 v12 = as<s64>(as<u64>(v10) + as<u64>(v11));
            const vec<s64, 4> v13 = make<vec<s64, 4>>(0, 1, 2, 3);
            const vec<s64, 4> v14 = fill<vec<s64, 4>>(v12);
            const vec<s64, 4> v15 = as<vec<s64, 4>>(as<vec<u64, 4>>(v14) + as<vec<u64, 4>>(v13));
            const vec<s64, 4> v16 = fill<vec<s64, 4>>(1003ll);
            const vec<u8, 4> v17 = v15 < v16;
            const vec<float, 4> v19 = make<vec<float, 4>>((v17.s[0]) ? p0[v12] : 0.0f, (v17.s[1]) ? p0[v12 + 1] : 0.0f, (v17.s[2]) ? p0[v12 + 2] : 0.0f, (v17.s[3]) ? p0[v12 + 3] : 0.0f);
            const vec<float, 4> v20 = make<vec<float, 4>>((v17.s[0]) ? p1[v12] : 0.0f, (v17.s[1]) ? p1[v12 + 1] : 0.0f, (v17.s[2]) ? p1[v12 + 2] : 0.0f, (v17.s[3]) ? p1[v12 + 3] : 0.0f);
            const vec<float, 4> v21 = fill<vec<float, 4>>(x0);
            const vec<float, 4> v22 = v19 * v21;
            const vec<float, 4> v23 = v22 + v20;
            const vec<float, 4> v25 = fill<vec<float, 4>>(0.0f);
            const vec<float, 4> v26 = max_nan(v23, v25);
            if ((v17.s[0])) p2[v12] = v26.s[0];
            if ((v17.s[1])) p2[v12 + 1] = v26.s[1];
            if ((v17.s[2])) p2[v12 + 2] = v26.s[2];
            if ((v17.s[3])) p2[v12 + 3] = v26.s[3];
        }
    }
}
