#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

float f32_from_f16(ushort x) {
    return vload_half(0, (const __private half *)&x);
}

float f32_from_bf16(ushort x) {
    return as_float(convert_uint(x) << 16);
}

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k_arguments_0(__global float *p0, ulong o0, __global float *p1, ulong o1, long x0, int x1, float x2, ushort h3, ushort x4, uchar x5, uchar x6) {
    p0 += o0;
    p1 += o1;
    const ushort x3 = h3;
    __local float m19[8];
    const long v9 = convert_long(x1);
    const float v12 = f32_from_f16(x3);
    const float v13 = f32_from_bf16(x4);
    const float v14 = convert_float(x6);
    const float v15 = v12 + v13;
    const float v16 = x5 ? v15 : v14;
    const float v17 = v16 + x2;
    for (long i18 = get_group_id(0); i18 < x0; i18 += get_num_groups(0)) {
        {
            const long i20 = get_local_id(0);
            const long v21 = as_long(as_ulong(i18) * as_ulong(8l));
            const long v22 = as_long(as_ulong(v21) + as_ulong(i20));
            const float v23 = p0[v22];
            const float v24 = v23 + v17;
            m19[i20] = v24;
            barrier(CLK_LOCAL_MEM_FENCE);
            float m27[1];
            m27[0l] = 0.0f;
            for (long i30 = 0; i30 < v9; ++i30) {
                const float v31 = m19[i30];
                const float v32 = m27[0l];
                const float v33 = v32 + v31;
                m27[0l] = v33;
            }
            const float v36 = m27[0l];
            p0[v22] = v36;
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_arguments_1(__global float *p0, ulong o0, __global float *p1, ulong o1, long x0, int x1, float x2, ushort h3, ushort x4, uchar x5, uchar x6) {
    p0 += o0;
    p1 += o1;
    const ushort x3 = h3;
    const float v12 = f32_from_f16(x3);
    const float v13 = f32_from_bf16(x4);
    const float v14 = convert_float(x6);
    const float v15 = v12 + v13;
    const float v16 = x5 ? v15 : v14;
    const float v17 = v16 + x2;
    p1[0l] = v17;
}
