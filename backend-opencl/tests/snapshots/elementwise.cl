#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void k_elementwise_0(__global const float *p0, ulong o0, __global const float *p1, ulong o1, __global float *p2, ulong o2, float x0) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i9 = get_group_id(0);
        {
            const long i10 = get_local_id(0);
            const long v11 = as_long(as_ulong(i9) * as_ulong(256l));
            const long v12 = as_long(as_ulong(i10) * as_ulong(4l));
            const long v13 = as_long(as_ulong(i9) * as_ulong(256l));
            const long v14 = as_long(as_ulong(v11) + as_ulong(v12));
            const long4 v15 = (long4)(0, 1, 2, 3);
            const long4 v16 = (long4)(v14);
            const long4 v17 = as_long4(as_ulong4(v16) + as_ulong4(v15));
            const long4 v18 = (long4)(1003l);
            const uchar4 v19 = convert_uchar4(-(v17 < v18));
            const float4 v21 = (float4)((v19.s0) ? p0[v14] : 0.0f, (v19.s1) ? p0[v14 + 1] : 0.0f, (v19.s2) ? p0[v14 + 2] : 0.0f, (v19.s3) ? p0[v14 + 3] : 0.0f);
            const float4 v22 = (float4)((v19.s0) ? p1[v14] : 0.0f, (v19.s1) ? p1[v14 + 1] : 0.0f, (v19.s2) ? p1[v14 + 2] : 0.0f, (v19.s3) ? p1[v14 + 3] : 0.0f);
            const float4 v23 = (float4)(x0);
            const float4 v24 = v21 * v23;
            const float4 v25 = v24 + v22;
            const float4 v27 = (float4)(0.0f);
            const float4 v28 = select((float4)(v27), (float4)(v25), ((v25 > v27) | (v25 != v25)));
            if ((v19.s0)) p2[v14] = v28.s0;
            if ((v19.s1)) p2[v14 + 1] = v28.s1;
            if ((v19.s2)) p2[v14 + 2] = v28.s2;
            if ((v19.s3)) p2[v14 + 3] = v28.s3;
        }
    }
}
