#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_gather_0(__global const float *p0, ulong o0, __global const long *p1, ulong o1, __global float *p2, ulong o2, __global int *p3, ulong o3) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    {
        const long i9 = get_group_id(0);
        const long v10 = as_long(as_ulong(i9) * as_ulong(4l));
        const long4 v11 = vload4(0, p1 + v10);
        const long4 v12 = (long4)(0l);
        const long4 v13 = (long4)(10l);
        const uchar4 v14 = convert_uchar4(-(v12 <= v11));
        const uchar4 v15 = convert_uchar4(-(v11 < v13));
        const uchar4 v16 = v14 & v15;
        const float4 v18 = (float4)((v16.s0) ? p0[v11.s0] : 0.0f, (v16.s1) ? p0[v11.s1] : 0.0f, (v16.s2) ? p0[v11.s2] : 0.0f, (v16.s3) ? p0[v11.s3] : 0.0f);
        *(__global float4 *)(p2 + v10) = v18;
        const long4 v20 = (long4)(0, 1, 2, 3);
        const long4 v21 = (long4)(v10);
        const long4 v22 = as_long4(as_ulong4(v21) + as_ulong4(v20));
        const long4 v23 = (long4)(31l);
        const long4 v24 = as_long4(as_ulong4(v23) - as_ulong4(v22));
        const int4 v26 = convert_int4(v22);
        if ((v16.s0)) p3[v24.s0] = v26.s0;
        if ((v16.s1)) p3[v24.s1] = v26.s1;
        if ((v16.s2)) p3[v24.s2] = v26.s2;
        if ((v16.s3)) p3[v24.s3] = v26.s3;
    }
}
