#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_stores_0(__global uchar *p0, ulong o0, __global short *p1, ulong o1, __global int *p2, ulong o2, __global int *p3, ulong o3) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    {
        const long i8 = get_group_id(0);
        {
            const long i9 = get_local_id(0);
            const long v10 = i9 % 8l;
            const long v11 = as_long(as_ulong(v10) + as_ulong(200l));
            const uchar v12 = convert_uchar(v11);
            const long v13 = as_long(as_ulong(8l) - as_ulong(v11));
            const short v14 = convert_short(v13);
            const int v15 = convert_int(v11);
            *(volatile __global uchar *)(p0 + (v10)) = v12;
            *(volatile __global short *)(p1 + (v10)) = v14;
            *(volatile __global int *)(p2 + (v10)) = v15;
            const uchar v19 = *(volatile __global uchar *)(p0 + (v10));
            const short v20 = *(volatile __global short *)(p1 + (v10));
            const int v21 = *(volatile __global int *)(p2 + (v10));
            const int v22 = convert_int(v19);
            const int v23 = convert_int(v20);
            const int v24 = as_int(as_uint(v22) + as_uint(v23));
            const int v25 = as_int(as_uint(v24) + as_uint(v21));
            const long v26 = as_long(as_ulong(i8) * as_ulong(32l));
            const long v27 = as_long(as_ulong(v26) + as_ulong(i9));
            p3[v27] = v25;
        }
    }
}
