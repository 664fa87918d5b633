#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(4, 8, 1))) void k_matmul_0(__global const float *p0, ulong o0, __global const float *p1, ulong o1, __global float *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    __local float m14[64];
    __local float m15[128];
    {
        const long i12 = get_group_id(1);
        {
            const long i13 = get_group_id(0);
            {
                const long i16 = get_local_id(1);
                {
                    const long i17 = get_local_id(0);
                    float4 m18[1];
                    const float4 v19 = (float4)(0.0f);
                    m18[0l] = v19;
                    const long v21 = as_long(as_ulong(i12) * as_ulong(8l));
                    const long v22 = as_long(as_ulong(v21) + as_ulong(i16));
                    const long v23 = as_long(as_ulong(i13) * as_ulong(16l));
                    const long v24 = as_long(as_ulong(i17) * as_ulong(4l));
                    const long v25 = as_long(as_ulong(v23) + as_ulong(v24));
                    for (long i26 = 0; i26 < 3l; ++i26) {
                        const long v27 = as_long(as_ulong(i26) * as_ulong(8l));
                        const long v28 = as_long(as_ulong(v22) * as_ulong(24l));
                        const long v29 = as_long(as_ulong(v28) + as_ulong(v27));
                        const long v30 = as_long(as_ulong(i17) * as_ulong(2l));
                        const long v31 = as_long(as_ulong(v29) + as_ulong(v30));
                        const float2 v32 = *(const __global float2 *)(p0 + v31);
                        const long v33 = as_long(as_ulong(i16) * as_ulong(8l));
                        const long v34 = as_long(as_ulong(v33) + as_ulong(v30));
                        vstore2(v32, 0, m14 + v34);
                        const long v36 = as_long(as_ulong(v27) + as_ulong(i16));
                        const long v37 = as_long(as_ulong(v36) * as_ulong(32l));
                        const long v38 = as_long(as_ulong(v37) + as_ulong(v25));
                        const float4 v39 = *(const __global float4 *)(p1 + v38);
                        const long v40 = as_long(as_ulong(i16) * as_ulong(16l));
                        const long v41 = as_long(as_ulong(v40) + as_ulong(v24));
                        vstore4(v39, 0, m15 + v41);
                        barrier(CLK_LOCAL_MEM_FENCE);
                        for (long i44 = 0; i44 < 8l; ++i44) {
                            const long v45 = as_long(as_ulong(v33) + as_ulong(i44));
                            const float v46 = m14[v45];
                            const float4 v47 = (float4)(v46);
                            const long v48 = as_long(as_ulong(i44) * as_ulong(16l));
                            const long v49 = as_long(as_ulong(v48) + as_ulong(v24));
                            const float4 v50 = vload4(0, m15 + v49);
                            const float4 v51 = m18[0l];
                            const float4 v52 = fma(v47, v50, v51);
                            m18[0l] = v52;
                        }
                        barrier(CLK_LOCAL_MEM_FENCE);
                    }
                    const float4 v57 = m18[0l];
                    const long v58 = as_long(as_ulong(v22) * as_ulong(32l));
                    const long v59 = as_long(as_ulong(v58) + as_ulong(v25));
                    *(__global float4 *)(p2 + v59) = v57;
                }
            }
        }
    }
}
