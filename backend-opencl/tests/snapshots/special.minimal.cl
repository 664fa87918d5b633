#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void k_special_0(__global const float *p0, ulong o0, __global float *p1, ulong o1, __global char *p2, ulong o2) {
    p0 += o0;
    p1 += o1;
    p2 += o2;
    {
        const long i8 = get_group_id(0);
        const float v9 = p0[i8];
        const float v10 = exp(v9);
        const float v11 = log1p(v9);
        const float v12 = tanh(v10);
        const float v13 = fmod(v9, 3.0f);
        const float v14 = sqrt(v11);
        const float v15 = rint(v9);
        const float v16 = (((v14 < as_float(0x7f800000u)) | (v14 != v14)) ? v14 : as_float(0x7f800000u));
        const float v17 = v12 + v13;
        const float v18 = v17 + v16;
        const uchar v19 = (uchar)(v18 != v18);
        const float v20 = v19 ? v15 : v18;
        const float v21 = (((v20 > 1e-45f) | (v20 != v20)) ? v20 : 1e-45f);
        const uchar v22 = (uchar)(as_float(0x7f800000u) < v21);
        const float v23 = v22 ? as_float(0x7fc00000u) : v21;
        p1[i8] = v23;
        const char v25 = convert_char_sat(v9 == v9 ? v9 : 0);
        p2[i8] = v25;
    }
}
