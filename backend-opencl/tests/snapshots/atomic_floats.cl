#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#pragma OPENCL FP_CONTRACT OFF

float add_f32_buffer(volatile __global float *p, float x) {
    volatile __global uint *word = (volatile __global uint *)p;
    uint seen = *word, old;
    float y;
    do {
        old = seen;
        y = as_float(old);
        const float a = y, b = x;
        const float c = a + b;
        const float z = c;
        seen = atomic_cmpxchg(word, old, as_uint(z));
    } while (seen != old);
    return y;
}

__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void k_atomic_floats_0(__global float *p0, ulong o0, __global float *p1, ulong o1) {
    p0 += o0;
    p1 += o1;
    {
        const long i7 = get_group_id(0);
        {
            const long i8 = get_local_id(0);
            const long v9 = i8 % 4l;
            add_f32_buffer(p0 + v9, 1.0f);
            const long v11 = i8 % 8l;
            const float v12 = convert_float(v11);
            *(volatile __global float *)(p1 + (v11)) = v12;
            const float v14 = *(volatile __global float *)(p1 + (v11));
            *(volatile __global float *)(p1 + (v11)) = v14;
        }
    }
}
