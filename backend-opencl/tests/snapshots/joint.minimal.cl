#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void k_joint_0(__global int *p0, ulong o0, __global int *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    __local int m7[16];
    __local int a28_0;
    const int v8 = p0[15l];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
        const long i9 = get_local_id(0);
        const int v10 = p0[i9];
        const int v11 = as_int(as_uint(v10) + as_uint(v8));
        m7[i9] = v11;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const int v14 = m7[0l];
    const int v15 = as_int(as_uint(v14) + as_uint(1));
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if ((get_local_id(0) == 0)) m7[0l] = v15;
    for (long i17 = 0; i17 < 8l; ++i17) {
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const int v18 = m7[i17];
        const int v19 = as_int(as_uint(v18) + as_uint(1));
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        if ((get_local_id(0) == 0)) m7[i17] = v19;
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    {
        const long i22 = get_local_id(0);
        const long v23 = as_long(as_ulong(15l) - as_ulong(i22));
        const int v24 = m7[v23];
        p1[i22] = v24;
        p0[i22] = v24;
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (get_local_id(0) == 0) a28_0 = atomic_add(p0 + 0l, 1);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const int v28 = a28_0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if ((get_local_id(0) == 0)) p1[16l] = v28;
}
