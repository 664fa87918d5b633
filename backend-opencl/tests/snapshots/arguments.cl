#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

float f32_from_f16(ushort x) {
    return vload_half(0, (const __private half *)&x);
}

float f32_from_bf16(ushort x) {
    return as_float(convert_uint(x) << 16);
}

__kernel void k_arguments_0(__global float *p0, ulong o0, __global float *p1, ulong o1, long x0, int x1, float x2, ushort h3, ushort x4, uchar x5, uchar x6) {
    p0 += o0;
    p1 += o1;
    const ushort x3 = h3;
    __local float m20[8];
    const long v9 = convert_long(x1);
    const float v13 = f32_from_f16(x3);
    const float v14 = f32_from_bf16(x4);
    const float v15 = convert_float(x6);
    const float v16 = v13 + v14;
    const float v17 = x5 ? v16 : v15;
    const float v18 = v17 + x2;
    for (long i19 = get_group_id(0); i19 < x0; i19 += get_num_groups(0)) {
        {
            const long i21 = get_local_id(0);
            const long v22 = as_long(as_ulong(i19) * as_ulong(8l));
            const long v23 = as_long(as_ulong(v22) + as_ulong(i21));
            const float v24 = p0[v23];
            const float v25 = v24 + v18;
            m20[i21] = v25;
            barrier(CLK_LOCAL_MEM_FENCE);
            const long v28 = as_long(as_ulong(v9) - as_ulong(1l));
            const long v29 = as_long(as_ulong(v28) - as_ulong(i21));
            const float v30 = m20[v29];
            p0[v23] = v30;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_arguments_1(__global float *p0, ulong o0, __global float *p1, ulong o1, long x0, int x1, float x2, ushort h3, ushort x4, uchar x5, uchar x6) {
    p0 += o0;
    p1 += o1;
    const ushort x3 = h3;
    const float v13 = f32_from_f16(x3);
    const float v14 = f32_from_bf16(x4);
    const float v15 = convert_float(x6);
    const float v16 = v13 + v14;
    const float v17 = x5 ? v16 : v15;
    const float v18 = v17 + x2;
    p1[0l] = v18;
}
