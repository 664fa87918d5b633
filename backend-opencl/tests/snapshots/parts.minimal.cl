#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(8, 1, 1))) void k_parts_0(__global const uchar *p0, ulong o0, __global const short *p1, ulong o1, __global const uchar *p2, ulong o2, __global char *p3, ulong o3, __global ushort *p4, ulong o4, __global uchar *p5, ulong o5, char x0) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    p3 += o3;
    p4 += o4;
    p5 += o5;
    {
        const long i11 = get_group_id(0);
        {
            const long i12 = get_local_id(0);
            const long v13 = as_long(as_ulong(i11) * as_ulong(8l));
            const long v14 = as_long(as_ulong(v13) + as_ulong(i12));
            const uchar v15 = (uchar)(v14 < 30l);
            const uchar v17 = p0[v14];
            const short v18 = (v15) ? p1[v14] : (short)0;
            const uchar v19 = p2[v14];
            const int v20 = convert_int(v17);
            const int v21 = convert_int(v18);
            const int v22 = convert_int(x0);
            const int v23 = as_int(as_uint(v20) + as_uint(v21));
            const int v24 = as_int(as_uint(v23) * as_uint(v22));
            const char v25 = convert_char(v24);
            const ushort v26 = convert_ushort(v23);
            const int v27 = max(v20, v21);
            const uchar v28 = (uchar)(v20 < v27);
            const uchar v29 = v19 ^ v28;
            p3[v14] = v25;
            if ((v15)) p4[v14] = v26;
            p5[v14] = v29;
        }
    }
}
