#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_naive_sum_0(__global const float *p0, ulong o0, __global float *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    for (long i6 = 0; i6 < 23l; ++i6) {
        float m7[1];
        m7[0l] = 0.0f;
        const long v9 = as_long(as_ulong(i6) * as_ulong(37l));
        for (long i10 = 0; i10 < 37l; ++i10) {
            const long v11 = as_long(as_ulong(v9) + as_ulong(i10));
            const float v12 = p0[v11];
            const float v13 = m7[0l];
            const float v14 = v13 + v12;
            m7[0l] = v14;
        }
        const float v17 = m7[0l];
        p1[i6] = v17;
    }
}
