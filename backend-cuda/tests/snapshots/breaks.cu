extern "C" __global__ void __launch_bounds__(32) k_breaks_0(const s32 *p0, s32 *p1, s32 x0) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    __shared__ s32 m15[32];
    {
        const s64 i14 = blockIdx.x;
        {
            const s64 i16 = threadIdx.x;
            const s64 v17 = as<s64>(as<u64>(i14) * as<u64>(32ll));
            const s64 v18 = as<s64>(as<u64>(v17) + as<u64>(i16));
            const s32 v19 = p0[v18];
            const s32 v20 = v19 & 1023;
            const s32 v21 = as<s32>(as<u32>(v20) + as<u32>(1));
            s32 m22[1];
            m22[0ll] = v21;
            s32 m24[1];
            m24[0ll] = 0;
            for (s64 i26 = 0; i26 < 500ll; ++i26) {
                const s32 v27 = m22[0ll];
                const u8 v28 = (u8)(v27 <= 1);
                if (v28) break;
                const s32 v30 = v27 / 2;
                const s32 v31 = v27 & 1;
                const u8 v32 = (u8)(v31 == 1);
                const s32 v33 = as<s32>(as<u32>(v27) * as<u32>(3));
                const s32 v34 = as<s32>(as<u32>(v33) + as<u32>(1));
                const s32 v35 = v32 ? v34 : v30;
                m22[0ll] = v35;
                const s32 v37 = m24[0ll];
                const s32 v38 = as<s32>(as<u32>(v37) + as<u32>(1));
                m24[0ll] = v38;
            }
            const s32 v41 = m24[0ll];
            m15[i16] = v41;
            __syncthreads();
            const s64 v44 = as<s64>(as<u64>(i16) + as<u64>(1ll));
            const s64 v45 = v44 % 32ll;
            for (s64 i46 = 0; i46 < 20ll; ++i46) {
                const s32 v47 = convert<s32>(i46);
                const u8 v48 = (u8)(x0 <= v47);
                if (v48) break;
                const s32 v50 = m15[v45];
                __syncthreads();
                m15[i16] = v50;
                __syncthreads();
            }
            const s32 v55 = m15[i16];
            p1[v18] = v55;
        }
    }
}
