#pragma OPENCL FP_CONTRACT OFF

int pow_i32(int x, int y) {
    if (y < 0) return x == 1 ? 1 : x == -1 ? 1 - 2 * (y & 1) : 0;
    int r = 1, b = x;
    for (; y > 0; y >>= 1) {
        if (y & 1) r = as_int(as_uint(r) * as_uint(b));
        b = as_int(as_uint(b) * as_uint(b));
    }
    return r;
}

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_integers_0(__global const int *p0, ulong o0, __global const int *p1, ulong o1, __global int *p2, ulong o2, __global const long *p3, ulong o3, __global long *p4, ulong o4) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    p4 += o4;
    for (long i8 = 0; i8 < 60l; ++i8) {
        const int v9 = p0[i8];
        const int v10 = p1[i8];
        const int v11 = v9 / v10;
        const int v12 = v9 % v10;
        const int v13 = as_int(as_uint(v11) << v10);
        const int v14 = v12 >> v10;
        const int v15 = pow_i32(v9, 3);
        const int v16 = v13 ^ v14;
        const int v17 = as_int(as_uint(v16) + as_uint(v15));
        p2[i8] = v17;
        const long v19 = p3[i8];
        const long v20 = v19 / 7l;
        const long v21 = v19 % 7l;
        const long v22 = as_long(0ul - as_ulong(v21));
        const long v23 = ((v22 < 0l) ? as_long(0ul - as_ulong(v22)) : v22);
        const long v24 = as_long(as_ulong(v20) * as_ulong(v23));
        p4[i8] = v24;
    }
}
