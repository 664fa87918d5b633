#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

uchar add_u8_buffer(volatile __global uchar *p, uchar x) {
    const size_t at = (size_t)p;
    volatile __global uint *word = (volatile __global uint *)(at & ~(size_t)3);
    const uint shift = (uint)(at & 3) * 8u;
    uint seen = *word, old;
    uchar y;
    do {
        old = seen;
        y = (uchar)(old >> shift);
        const uint a = convert_uint(y), b = convert_uint(x);
        const uint c = a + b;
        const uchar z = convert_uchar(c);
        seen = atomic_cmpxchg(word, old, (old & ~(0xffu << shift)) | ((uint)z << shift));
    } while (seen != old);
    return y;
}

ushort add_u16_buffer(volatile __global ushort *p, ushort x) {
    const size_t at = (size_t)p;
    volatile __global uint *word = (volatile __global uint *)(at & ~(size_t)3);
    const uint shift = (uint)(at & 3) * 8u;
    uint seen = *word, old;
    ushort y;
    do {
        old = seen;
        y = (ushort)(old >> shift);
        const uint a = convert_uint(y), b = convert_uint(x);
        const uint c = a + b;
        const ushort z = convert_ushort(c);
        seen = atomic_cmpxchg(word, old, (old & ~(0xffffu << shift)) | ((uint)z << shift));
    } while (seen != old);
    return y;
}

long add_i64_buffer(volatile __global long *p, long x) {
    volatile __global ulong *word = (volatile __global ulong *)p;
    ulong seen = *word, old;
    long y;
    do {
        old = seen;
        y = as_long(old);
        const long a = y, b = x;
        const long c = as_long(as_ulong(a) + as_ulong(b));
        const long z = c;
        seen = atom_cmpxchg(word, old, as_ulong(z));
    } while (seen != old);
    return y;
}

float add_f32_buffer(volatile __global float *p, float x) {
    volatile __global uint *word = (volatile __global uint *)p;
    uint seen = *word, old;
    float y;
    do {
        old = seen;
        y = as_float(old);
        const float a = y, b = x;
        const float c = a + b;
        const float z = c;
        seen = atomic_cmpxchg(word, old, as_uint(z));
    } while (seen != old);
    return y;
}

long max_i64_shared(volatile __local long *p, long x) {
    volatile __local ulong *word = (volatile __local ulong *)p;
    ulong seen = *word, old;
    long y;
    do {
        old = seen;
        y = as_long(old);
        const long a = y, b = x;
        const long c = max(a, b);
        const long z = c;
        seen = atom_cmpxchg(word, old, as_ulong(z));
    } while (seen != old);
    return y;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomics_0(__global int *p0, ulong o0, __global float *p1, ulong o1, __global uchar *p2, ulong o2, __global ushort *p3, ulong o3, __global long *p4, ulong o4) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    p4 += o4;
    __local long m14[4];
    {
        const long i13 = get_group_id(0);
        {
            const long i15 = get_local_id(0);
            const uchar v16 = (uchar)(i15 < 4l);
            if (v16) {
                m14[i15] = 0l;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const long v21 = i15 % 4l;
            const int v22 = atomic_add(p0 + v21, 1);
            const float v23 = add_f32_buffer(p1 + v21, 1.0f);
            const uchar v24 = add_u8_buffer(p2 + v21, (uchar)1);
            const ushort v25 = add_u16_buffer(p3 + v21, (ushort)1);
            const uchar v26 = (uchar)(v21 < 4l);
            const long v28 = (v26) ? max_i64_shared(m14 + v21, i15) : 0l;
            barrier(CLK_LOCAL_MEM_FENCE);
            if (v16) {
                const long v31 = m14[i15];
                const long v32 = add_i64_buffer(p4 + i15, v31);
            }
        }
    }
}
