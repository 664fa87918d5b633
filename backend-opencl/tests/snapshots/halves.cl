#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

float4 f32_from_f16x4(ushort4 x) {
    return vload_half4(0, (const __private half *)&x);
}

float4 f32_from_bf16x4(ushort4 x) {
    return as_float4(convert_uint4(x) << 16);
}

ushort4 f16_from_f32x4(float4 x) {
    ushort4 r;
    vstore_half4_rte(x, 0, (__private half *)&r);
    return r;
}

ushort4 bf16_from_f32x4(float4 x) {
    const uint4 u = as_uint4(x);
    const uint4 r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint4 q = (u >> 16) | 0x40u;
    return convert_ushort4(select(r, q, x != x));
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_halves_0(__global const ushort *p0, ulong o0, __global const ushort *p1, ulong o1, __global ushort *p2, ulong o2, __global ushort *p3, ulong o3) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    {
        const long i6 = get_group_id(0);
        const long v7 = as_long(as_ulong(i6) * as_ulong(4l));
        const ushort4 v8 = *(const __global ushort4 *)(p0 + v7);
        const ushort4 v9 = *(const __global ushort4 *)(p1 + v7);
        const float4 v10 = f32_from_f16x4(v8);
        const float4 v11 = f32_from_bf16x4(v9);
        const float4 v12 = v10 * v11;
        const ushort4 v13 = f16_from_f32x4(v12);
        *(__global ushort4 *)(p2 + v7) = v13;
        const ushort4 v15 = bf16_from_f32x4(v12);
        *(__global ushort4 *)(p3 + v7) = v15;
    }
}
