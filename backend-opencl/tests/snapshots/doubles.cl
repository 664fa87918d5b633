#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

ushort2 f16_from_f32x2(float2 x) {
    ushort2 r;
    vstore_half2_rte(x, 0, (__private half *)&r);
    return r;
}

ushort2 bf16_from_f32x2(float2 x) {
    const uint2 u = as_uint2(x);
    const uint2 r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    const uint2 q = (u >> 16) | 0x40u;
    return convert_ushort2(select(r, q, x != x));
}

float odd_f32_from_f64(double x) {
    const float f = convert_float_rtz(x);
    return (double)f == x || x != x ? f : as_float(as_uint(f) | 1u);
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_doubles_0(__global const double *p0, ulong o0, __global double *p1, ulong o1, __global ushort *p2, ulong o2, __global ushort *p3, ulong o3) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    {
        const long i7 = get_group_id(2);
        const long v8 = as_long(as_ulong(i7) * as_ulong(2l));
        const double2 v9 = *(const __global double2 *)(p0 + v8);
        const double2 v10 = (double2)(0.3333333333333333);
        const double2 v11 = v9 / v10;
        *(__global double2 *)(p1 + v8) = v11;
        const ushort2 v13 = f16_from_f32x2((float2)(odd_f32_from_f64(v11.s0), odd_f32_from_f64(v11.s1)));
        *(__global ushort2 *)(p2 + v8) = v13;
        const ushort2 v15 = bf16_from_f32x2((float2)(odd_f32_from_f64(v11.s0), odd_f32_from_f64(v11.s1)));
        *(__global ushort2 *)(p3 + v8) = v15;
    }
}
