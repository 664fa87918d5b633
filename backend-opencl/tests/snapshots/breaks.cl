#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_breaks_0(__global const int *p0, ulong o0, __global int *p1, ulong o1, int x0) {
    p0 += o0;
    p1 += o1;
    __local int m15[32];
    {
        const long i14 = get_group_id(0);
        {
            const long i16 = get_local_id(0);
            const long v17 = as_long(as_ulong(i14) * as_ulong(32l));
            const long v18 = as_long(as_ulong(v17) + as_ulong(i16));
            const int v19 = p0[v18];
            const int v20 = v19 & 1023;
            const int v21 = as_int(as_uint(v20) + as_uint(1));
            int m22[1];
            m22[0l] = v21;
            int m24[1];
            m24[0l] = 0;
            for (long i26 = 0; i26 < 500l; ++i26) {
                const int v27 = m22[0l];
                const uchar v28 = (uchar)(v27 <= 1);
                if (v28) break;
                const int v30 = v27 / 2;
                const int v31 = v27 & 1;
                const uchar v32 = (uchar)(v31 == 1);
                const int v33 = as_int(as_uint(v27) * as_uint(3));
                const int v34 = as_int(as_uint(v33) + as_uint(1));
                const int v35 = v32 ? v34 : v30;
                m22[0l] = v35;
                const int v37 = m24[0l];
                const int v38 = as_int(as_uint(v37) + as_uint(1));
                m24[0l] = v38;
            }
            const int v41 = m24[0l];
            m15[i16] = v41;
            barrier(CLK_LOCAL_MEM_FENCE);
            const long v44 = as_long(as_ulong(i16) + as_ulong(1l));
            const long v45 = v44 % 32l;
            for (long i46 = 0; i46 < 20l; ++i46) {
                const int v47 = convert_int(i46);
                const uchar v48 = (uchar)(x0 <= v47);
                if (v48) break;
                const int v50 = m15[v45];
                barrier(CLK_LOCAL_MEM_FENCE);
                m15[i16] = v50;
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            const int v55 = m15[i16];
            p1[v18] = v55;
        }
    }
}
