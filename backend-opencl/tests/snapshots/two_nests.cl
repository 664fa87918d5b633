#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k_two_nests_0(__global const float *p0, ulong o0, __global float *p1, ulong o1, __global float *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i7 = get_group_id(0);
        {
            const long i8 = get_local_id(0);
            const long v9 = as_long(as_ulong(i7) * as_ulong(8l));
            const long v10 = as_long(as_ulong(v9) + as_ulong(i8));
            const float v11 = p0[v10];
            const float v12 = v11 * 2.0f;
            p1[v10] = v12;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 8, 1))) void k_two_nests_1(__global const float *p0, ulong o0, __global float *p1, ulong o1, __global float *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i16 = get_group_id(1);
        {
            const long i17 = get_local_id(1);
            const long v18 = as_long(as_ulong(i16) * as_ulong(8l));
            const long v19 = as_long(as_ulong(v18) + as_ulong(i17));
            const long v20 = as_long(as_ulong(63l) - as_ulong(v19));
            const float v21 = p1[v20];
            p2[v19] = v21;
        }
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_two_nests_2(__global const float *p0, ulong o0, __global float *p1, ulong o1, __global float *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p2[64l] = 2.0f;
}
