
// Matrix instructions: a thread's vectors in the order of `zyx_core::ir::mma`. Two of `m16n8` make
// one of 16 columns; which register holds what follows from the numbering there.
#if __CUDA_ARCH__ >= 800
#define PRODUCT(type, i)                                                      \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(c.s[i]), "+f"(c.s[i + 1]), "+f"(c.s[i + 4]), "+f"(c.s[i + 5]) \
                 : "r"(x.s[0]), "r"(x.s[1]), "r"(x.s[2]), "r"(x.s[3]),        \
                   "r"(y.s[i]), "r"(y.s[i + 1]))
#else
#define HALF(type, i, k)                                                      \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." type "." type ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"        \
                 : "+f"(c.s[i]), "+f"(c.s[i + 1]), "+f"(c.s[i + 4]), "+f"(c.s[i + 5]) \
                 : "r"(x.s[2 * k]), "r"(x.s[2 * k + 1]), "r"(y.s[i + k]))
#define PRODUCT(type, i) \
    HALF(type, i, 0);    \
    HALF(type, i, 1)
#endif

#define MMA(name, type)                                                            \
    DEVICE vec<float, 8> name(vec<u16, 8> a, vec<u16, 8> b, vec<float, 8> c) {     \
        const vec<u32, 4> x = as<vec<u32, 4>>(a), y = as<vec<u32, 4>>(b);          \
        PRODUCT(type, 0);                                                          \
        PRODUCT(type, 2);                                                          \
        return c;                                                                  \
    }

MMA(mma_f16, "f16")
#if __CUDA_ARCH__ >= 800
MMA(mma_bf16, "bf16")
#endif
