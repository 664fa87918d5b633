#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_stores_0(__global int *p0, ulong o0, __global uint *p1, ulong o1, __global int *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i7 = get_group_id(0);
        {
            const long i8 = get_local_id(0);
            const long v9 = i8 % 8l;
            const long v10 = as_long(as_ulong(v9) + as_ulong(200l));
            const int v11 = convert_int(v10);
            const uint v12 = convert_uint(v10);
            *(volatile __global int *)(p0 + (v9)) = v11;
            *(volatile __global uint *)(p1 + (v9)) = v12;
            const int v15 = *(volatile __global int *)(p0 + (v9));
            const uint v16 = *(volatile __global uint *)(p1 + (v9));
            const int v17 = convert_int(v16);
            const int v18 = as_int(as_uint(v15) + as_uint(v17));
            const long v19 = as_long(as_ulong(i7) * as_ulong(32l));
            const long v20 = as_long(as_ulong(v19) + as_ulong(i8));
            p2[v20] = v18;
        }
    }
}
