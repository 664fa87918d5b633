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
        const u8 v14 = (u8)(v10 == 0);
        const u8 v15 = (u8)(v10 == (-1));
        const u8 v16 = v14 | v15;
        const s32 v17 = v16 ? 1 : v10;
        const s32 v18 = v9 / v17;
        const s32 v19 = v14 ? 0 : v18;
        const s32 v20 = as<s32>(0u - as<u32>(v9));
        const s32 v21 = v15 ? v20 : v19;
        const s32 v22 = v9 % v17;
        const s32 v23 = v14 ? v9 : v22;
        const s32 v24 = v15 ? 0 : v23;
        const u32 v25 = as<u32>(v10);
        const u8 v27 = (u8)(v25 < 32u);
        const s32 v29 = v27 ? v10 : 31;
        const s32 v30 = as<s32>(as<u32>(v21) << v29);
        const s32 v31 = v27 ? v30 : 0;
        const s32 v32 = v24 >> v29;
        s32 m34[1];
        m34[0ll] = 1;
        s32 m36[1];
        m36[0ll] = v9;
        s32 m38[1];
        m38[0ll] = 3;
        for (s64 i41 = 0; i41 < 32ll; ++i41) {
            const s32 v42 = m34[0ll];
            const s32 v43 = m36[0ll];
            const s32 v44 = m38[0ll];
            const s32 v45 = v44 & 1;
            const u8 v46 = (u8)(v45 == 0);
            const s32 v47 = as<s32>(as<u32>(v42) * as<u32>(v43));
            const s32 v48 = v46 ? v42 : v47;
            m34[0ll] = v48;
            const s32 v50 = as<s32>(as<u32>(v43) * as<u32>(v43));
            m36[0ll] = v50;
            const s32 v52 = v44 >> 1;
            m38[0ll] = v52;
        }
        const s32 v55 = m34[0ll];
        const u8 v57 = (u8)(v9 == (-1));
        const s32 v58 = v57 ? (-1) : 0;
        const u8 v59 = (u8)(v9 == 1);
        const s32 v60 = v59 ? 1 : v58;
        const s32 v62 = v31 ^ v32;
        const s32 v63 = as<s32>(as<u32>(v62) + as<u32>(v55));
        p2[i8] = v63;
        const s64 v65 = p3[i8];
        const s64 v66 = v65 / 7ll;
        const s64 v67 = v65 % 7ll;
        const s64 v68 = as<s64>(0ull - as<u64>(v67));
        const s64 v69 = ((v68 < 0ll) ? as<s64>(0ull - as<u64>(v68)) : v68);
        const s64 v70 = as<s64>(as<u64>(v66) * as<u64>(v69));
        p4[i8] = v70;
    }
}
