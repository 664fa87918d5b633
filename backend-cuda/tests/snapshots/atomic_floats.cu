extern "C" __global__ void __launch_bounds__(32) k_atomic_floats_0(float *p0, float *p1) {
    enter();
    __builtin_assume(((u64)p0 & 63) == 0);
    __builtin_assume(((u64)p1 & 63) == 0);
    {
        const s64 i7 = blockIdx.x;
        {
            const s64 i8 = threadIdx.x;
            const s64 v9 = i8 % 4ll;
            atomicAdd(p0 + v9, 1.0f);
            const s64 v11 = i8 % 8ll;
            const float v12 = convert<float>(v11);
            *(volatile float *)(p1 + (v11)) = v12;
            const float v14 = *(volatile float *)(p1 + (v11));
            *(volatile float *)(p1 + (v11)) = v14;
        }
    }
}
