#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

long max_i64_shared(volatile __local long *p, long x) {
    volatile __local ulong *word = (volatile __local ulong *)p;
    ulong seen = *word, old;
    long y;
    do {
        old = seen;
        y = as_long(old);
        const long a = y, b = x;
        const long c = max(a, b);
        const long z = c;
        seen = atom_cmpxchg(word, old, as_ulong(z));
    } while (seen != old);
    return y;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomics_0(__global int *p0, ulong o0, __global uint *p1, ulong o1, __global long *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    __local long m10[4];
    {
        const long i9 = get_group_id(0);
        {
            const long i11 = get_local_id(0);
            const uchar v12 = (uchar)(i11 < 4l);
            if (v12) {
                m10[i11] = 0l;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const long v17 = i11 % 4l;
            atomic_add(p0 + v17, 1);
            atomic_add(p1 + v17, 1u);
            const uchar v20 = (uchar)(v17 < 4l);
            if ((v20)) max_i64_shared(m10 + v17, i11);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (v12) {
                const long v25 = m10[i11];
                atom_add(p2 + i11, v25);
            }
        }
    }
}
