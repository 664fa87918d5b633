extern "C" __global__ void __launch_bounds__(64) k_elementwise_0(const float *p0, const float *p1, float *p2, float x0) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __builtin_assume(((u64)p2 & 63) == 0);
    {
        const s64 i9 = blockIdx.x;
        {
            const s64 i10 = threadIdx.x;
            const s64 v11 = as<s64>(as<u64>(i9) * as<u64>(256ll));
            const s64 v12 = as<s64>(as<u64>(i10) * as<u64>(4ll));
            const s64 v13 = as<s64>(as<u64>(i9) * as<u64>(256ll));
            const s64 v14 = as<s64>(as<u64>(v11) + as<u64>(v12));
            const vec<s64, 4> v15 = make<vec<s64, 4>>(0, 1, 2, 3);
            const vec<s64, 4> v16 = fill<vec<s64, 4>>(v14);
            const vec<s64, 4> v17 = as<vec<s64, 4>>(as<vec<u64, 4>>(v16) + as<vec<u64, 4>>(v15));
            const vec<s64, 4> v18 = fill<vec<s64, 4>>(1003ll);
            const vec<u8, 4> v19 = v17 < v18;
            const vec<float, 4> v21 = make<vec<float, 4>>((v19.s[0]) ? p0[v14] : 0.0f, (v19.s[1]) ? p0[v14 + 1] : 0.0f, (v19.s[2]) ? p0[v14 + 2] : 0.0f, (v19.s[3]) ? p0[v14 + 3] : 0.0f);
            const vec<float, 4> v22 = make<vec<float, 4>>((v19.s[0]) ? p1[v14] : 0.0f, (v19.s[1]) ? p1[v14 + 1] : 0.0f, (v19.s[2]) ? p1[v14 + 2] : 0.0f, (v19.s[3]) ? p1[v14 + 3] : 0.0f);
            const vec<float, 4> v23 = fill<vec<float, 4>>(x0);
            const vec<float, 4> v24 = v21 * v23;
            const vec<float, 4> v25 = v24 + v22;
            const vec<float, 4> v27 = fill<vec<float, 4>>(0.0f);
            const vec<float, 4> v28 = max_nan(v25, v27);
            if ((v19.s[0])) p2[v14] = v28.s[0];
            if ((v19.s[1])) p2[v14 + 1] = v28.s[1];
            if ((v19.s[2])) p2[v14 + 2] = v28.s[2];
            if ((v19.s[3])) p2[v14 + 3] = v28.s[3];
        }
    }
}
