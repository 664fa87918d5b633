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

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_parts_0(__global uchar *p0, ulong o0, __global ushort *p1, ulong o1, __global short *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i9 = get_group_id(0);
        {
            const long i10 = get_local_id(0);
            const long v11 = i10 % 4l;
            add_u8_buffer(p0 + v11, (uchar)1);
            add_u16_buffer(p1 + v11, (ushort)1);
            const long v14 = i10 % 8l;
            const long v15 = as_long(as_ulong(4l) - as_ulong(v14));
            const short v16 = convert_short(v15);
            *(volatile __global short *)(p2 + (v14)) = v16;
        }
    }
}
