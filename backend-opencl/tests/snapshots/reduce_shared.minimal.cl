#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k_reduce_shared_0(__global const float *p0, ulong o0, __global float *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    __local float m8[64];
    {
        const long i7 = get_group_id(0);
        {
            const long i9 = get_local_id(0);
            const long v10 = as_long(as_ulong(i7) * as_ulong(64l));
            const long v11 = as_long(as_ulong(v10) + as_ulong(i9));
            const float v12 = p0[v11];
            m8[i9] = v12;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (long i15 = 0; i15 < 6l; ++i15) {
                const long v16 = 32l >> i15;
                const uchar v17 = (uchar)(i9 < v16);
                if (v17) {
                    const long v19 = as_long(as_ulong(i9) + as_ulong(v16));
                    const float v20 = m8[i9];
                    const float v21 = m8[v19];
                    const float v22 = (((v20 > v21) | (v20 != v20)) ? v20 : v21);
                    m8[i9] = v22;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            const uchar v27 = (uchar)(i9 == 0l);
            if (v27) {
                const float v29 = m8[0l];
                p1[i7] = v29;
            }
        }
    }
}
