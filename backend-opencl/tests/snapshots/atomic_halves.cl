#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

float f32_from_f16(ushort x) {
    return vload_half(0, (const __private half *)&x);
}

ushort f16_from_f32(float x) {
    ushort r;
    vstore_half_rte(x, 0, (__private half *)&r);
    return r;
}

ushort add_f16_buffer(volatile __global ushort *p, ushort x) {
    const size_t at = (size_t)p;
    volatile __global uint *word = (volatile __global uint *)(at & ~(size_t)3);
    const uint shift = (uint)(at & 3) * 8u;
    uint seen = *word, old;
    ushort y;
    do {
        old = seen;
        y = (ushort)(old >> shift);
        const float a = f32_from_f16(y), b = f32_from_f16(x);
        const float c = a + b;
        const ushort z = f16_from_f32(c);
        seen = atomic_cmpxchg(word, old, (old & ~(0xffffu << shift)) | ((uint)z << shift));
    } while (seen != old);
    return y;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_halves_0(__global ushort *p0, ulong o0) {
    p0 += o0;
    {
        const long i5 = get_group_id(0);
        {
            const long i6 = get_local_id(0);
            const long v7 = i6 % 4l;
            add_f16_buffer(p0 + v7, (ushort)0x3c00);
        }
    }
}
