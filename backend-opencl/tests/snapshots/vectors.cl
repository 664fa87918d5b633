#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_vectors_0(__global const int *p0, ulong o0, __global int *p1, ulong o1, __global int *p2, ulong o2, __global uchar *p3, ulong o3, __global const float *p4, ulong o4, __global float *p5, ulong o5) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    p4 += o4;
    p5 += o5;
    {
        const long i9 = get_group_id(0);
        const long v10 = as_long(as_ulong(i9) * as_ulong(16l));
        const int16 v11 = vload16(0, p0 + v10);
        const int16 v12 = (int16)(0);
        const uchar16 v13 = convert_uchar16(-(v11 < v12));
        const uchar16 v14 = v13 ^ (uchar)1;
        const int16 v15 = as_int16(0u - as_uint16(v11));
        const int16 v16 = select(v15, v11, -convert_int16(v14));
        vstore16(v16, 0, p1 + v10);
        *(__global uchar16 *)(p3 + v10) = v14;
        const int f19_8_0 = as_int(as_uint(v16.s0) + as_uint(v16.s8));
        const int f19_8_1 = as_int(as_uint(v16.s1) + as_uint(v16.s9));
        const int f19_8_2 = as_int(as_uint(v16.s2) + as_uint(v16.sa));
        const int f19_8_3 = as_int(as_uint(v16.s3) + as_uint(v16.sb));
        const int f19_8_4 = as_int(as_uint(v16.s4) + as_uint(v16.sc));
        const int f19_8_5 = as_int(as_uint(v16.s5) + as_uint(v16.sd));
        const int f19_8_6 = as_int(as_uint(v16.s6) + as_uint(v16.se));
        const int f19_8_7 = as_int(as_uint(v16.s7) + as_uint(v16.sf));
        const int f19_4_0 = as_int(as_uint(f19_8_0) + as_uint(f19_8_4));
        const int f19_4_1 = as_int(as_uint(f19_8_1) + as_uint(f19_8_5));
        const int f19_4_2 = as_int(as_uint(f19_8_2) + as_uint(f19_8_6));
        const int f19_4_3 = as_int(as_uint(f19_8_3) + as_uint(f19_8_7));
        const int f19_2_0 = as_int(as_uint(f19_4_0) + as_uint(f19_4_2));
        const int f19_2_1 = as_int(as_uint(f19_4_1) + as_uint(f19_4_3));
        const int f19_1_0 = as_int(as_uint(f19_2_0) + as_uint(f19_2_1));
        const int v19 = f19_1_0;
        const int v20 = v16.sf;
        const int v21 = as_int(as_uint(v19) - as_uint(v20));
        p2[i9] = v21;
        const long v23 = as_long(as_ulong(i9) * as_ulong(4l));
        const float4 v24 = *(const __global float4 *)(p4 + v23);
        const float f25_2_0 = v24.s0 * v24.s2;
        const float f25_2_1 = v24.s1 * v24.s3;
        const float f25_1_0 = f25_2_0 * f25_2_1;
        const float v25 = f25_1_0;
        const float f26_2_0 = (((v24.s0 > v24.s2) | (v24.s0 != v24.s0)) ? v24.s0 : v24.s2);
        const float f26_2_1 = (((v24.s1 > v24.s3) | (v24.s1 != v24.s1)) ? v24.s1 : v24.s3);
        const float f26_1_0 = (((f26_2_0 > f26_2_1) | (f26_2_0 != f26_2_0)) ? f26_2_0 : f26_2_1);
        const float v26 = f26_1_0;
        const float v27 = v26 - v25;
        p5[i9] = v27;
    }
}
