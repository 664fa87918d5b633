extern "C" __global__ void __launch_bounds__(32) k_atomic_floats_0(float *p0, float *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    {
        const s64 i6 = blockIdx.x;
        {
            const s64 i7 = threadIdx.x;
            const s64 v8 = i7 % 4ll;
            atomicAdd(p0 + v8, 1.0f);
            const s64 v10 = i7 % 8ll;
            const float v11 = convert<float>(v10);
            *(volatile float *)(p1 + (v10)) = v11;
            const float v13 = *(volatile float *)(p1 + (v10));
            *(volatile float *)(p1 + (v10)) = v13;
        }
    }
}
