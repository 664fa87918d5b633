#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k_transpose_shared_0(__global const float *p0, ulong o0, __global float *p1, ulong o1, float x0) {
    p0 += o0;
    p1 += o1;
    __local float m14[20];
    {
        const long i8 = get_group_id(2);
        const int v9 = convert_int(i8);
        {
            const long i10 = get_group_id(1);
            const int v11 = convert_int(i10);
            {
                const long i12 = get_group_id(0);
                const int v13 = convert_int(i12);
                {
                    const long i15 = get_local_id(0);
                    const int v16 = convert_int(i15);
                    const int v18 = as_int(as_uint(v11) << 2);
                    const int v19 = as_int(as_uint(v13) << 2);
                    const int v21 = v16 & 3;
                    const int v22 = v16 >> 2;
                    const int v24 = as_int(as_uint(v21) * as_uint(5));
                    const int v25 = as_int(as_uint(v24) + as_uint(v22));
                    const int v26 = as_int(as_uint(v18) + as_uint(v21));
                    const int v27 = as_int(as_uint(v19) + as_uint(v22));
                    const uchar v29 = (uchar)(v26 < 9);
                    if (v29) {
                        const long v31 = convert_long(v26);
                        const long v32 = convert_long(v27);
                        const long v33 = as_long(as_ulong(v32) * as_ulong(9l));
                        const long v34 = as_long(as_ulong(v31) + as_ulong(v33));
                        const float v35 = p0[v34];
                        m14[v25] = v35;
                    }
                    const int v39 = as_int(as_uint(v16) + as_uint(8));
                    const int v40 = v39 & 3;
                    const int v41 = v39 >> 2;
                    const int v42 = as_int(as_uint(v40) * as_uint(5));
                    const int v43 = as_int(as_uint(v42) + as_uint(v41));
                    const int v44 = as_int(as_uint(v18) + as_uint(v40));
                    const int v45 = as_int(as_uint(v19) + as_uint(v41));
                    const uchar v46 = (uchar)(v44 < 9);
                    if (v46) {
                        const long v48 = convert_long(v44);
                        const long v49 = convert_long(v45);
                        const long v50 = as_long(as_ulong(v49) * as_ulong(9l));
                        const long v51 = as_long(as_ulong(v48) + as_ulong(v50));
                        const float v52 = p0[v51];
                        m14[v43] = v52;
                    }
                    barrier(CLK_LOCAL_MEM_FENCE);
                    const int v56 = as_int(as_uint(v22) * as_uint(5));
                    const int v57 = as_int(as_uint(v56) + as_uint(v21));
                    const int v58 = as_int(as_uint(v18) + as_uint(v22));
                    const int v59 = as_int(as_uint(v19) + as_uint(v21));
                    const uchar v60 = (uchar)(v58 < 9);
                    if (v60) {
                        const long v62 = convert_long(v58);
                        const long v63 = convert_long(v59);
                        const float v64 = m14[v57];
                        const long v66 = as_long(as_ulong(v62) * as_ulong(20l));
                        const long v67 = as_long(as_ulong(v66) + as_ulong(v63));
                        const float v68 = v64 * x0;
                        p1[v67] = v68;
                    }
                    const int v71 = as_int(as_uint(v41) * as_uint(5));
                    const int v72 = as_int(as_uint(v71) + as_uint(v40));
                    const int v73 = as_int(as_uint(v18) + as_uint(v41));
                    const int v74 = as_int(as_uint(v19) + as_uint(v40));
                    const uchar v75 = (uchar)(v73 < 9);
                    if (v75) {
                        const long v77 = convert_long(v73);
                        const long v78 = convert_long(v74);
                        const float v79 = m14[v72];
                        const long v81 = as_long(as_ulong(v77) * as_ulong(20l));
                        const long v82 = as_long(as_ulong(v81) + as_ulong(v78));
                        const float v83 = v79 * x0;
                        p1[v82] = v83;
                    }
                }
            }
        }
    }
}
