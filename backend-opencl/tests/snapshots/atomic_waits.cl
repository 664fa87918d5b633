#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

ulong await_u64(const volatile __global ulong *p) {
    ulong x;
    do x = *p;
    while (x == 0);
    return x;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_waits_0(__global ulong *p0, ulong o0, __global ulong *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    __local ulong m9[1];
    {
        const long i8 = get_group_id(0);
        {
            const long i10 = get_local_id(0);
            const uchar v11 = (uchar)(i10 == 0l);
            if (v11) {
                const ulong v13 = atom_add(p0 + 0l, 1ul);
                m9[0l] = v13;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const ulong v17 = m9[0l];
            const long v18 = convert_long(v17);
            const long v19 = i10 & 1l;
            const uchar v20 = (uchar)(v19 == 1l);
            const uchar v21 = (uchar)(0l < v18);
            const uchar v22 = v20 & v21;
            const ulong v24 = (v22) ? await_u64(p0 + v18) : 0ul;
            const ulong v25 = v24 + 3ul;
            const long v26 = as_long(as_ulong(v18) + as_ulong(1l));
            const uchar v27 = (uchar)(i10 == 1l);
            if ((v27)) *(volatile __global ulong *)(p0 + (v26)) = v25;
            const long v30 = as_long(as_ulong(v18) * as_ulong(32l));
            const long v31 = as_long(as_ulong(v30) + as_ulong(i10));
            p1[v31] = v25;
        }
    }
}
