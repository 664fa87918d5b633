
// Wide matrix instructions of Hopper, `wgmma.m64n64k16`, for groups of 128 threads. Sums are taken by
// reference: between `begin` and `end` nobody else touches their registers.
#define FOUR(f, i) f(c.s[i]), f(c.s[i + 1]), f(c.s[i + 2]), f(c.s[i + 3])
#define SUMS(f)                                                                       \
    FOUR(f, 0), FOUR(f, 4), FOUR(f, 8), FOUR(f, 12), FOUR(f, 16), FOUR(f, 20), FOUR(f, 24), \
        FOUR(f, 28)
#define NAMES                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "         \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
#define ADDED(x) "+f"(x)
#define NEW(x) "=f"(x)

// `keep` is 0 where sums start at zero. The last operands say whether signs of factors are turned and
// whether factors lie along steps (0) or across them.
#define WIDE(name, type, f, keep)                                                     \
    template <int TURNED>                                                             \
    DEVICE void panels_##name(vec<float, 32> &c, u64 a, u64 b) {                      \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " keep ", 0; "                    \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " "  \
                     NAMES "%32, %33, p, 1, 1, 0, %34;}"                              \
                     : SUMS(f) : "l"(a), "l"(b), "n"(TURNED));                        \
    }                                                                                 \
    template <int TURNED>                                                             \
    DEVICE void held_##name(vec<float, 32> &c, vec<u16, 8> a, u64 b) {                \
        const vec<u32, 4> x = as<vec<u32, 4>>(a);                                     \
        asm volatile("{.reg .pred p; setp.ne.b32 p, " keep ", 0; "                    \
                     "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " "  \
                     NAMES "{%32, %33, %34, %35}, %36, p, 1, 1, %37;}"                \
                     : SUMS(f)                                                        \
                     : "r"(x.s[0]), "r"(x.s[1]), "r"(x.s[2]), "r"(x.s[3]), "l"(b), "n"(TURNED)); \
    }

WIDE(f16, "f16", ADDED, "1")
WIDE(f16_new, "f16", NEW, "0")
WIDE(bf16, "bf16", ADDED, "1")
WIDE(bf16_new, "bf16", NEW, "0")

// What the instructions call a descriptor: where the matrix begins, that it lies in rows of 128 bytes,
// eight of which are 1024, and that slots of 16 bytes are in other places in each of them.
DEVICE u64 panel(const void *storage, u32 slot) {
    const u32 at = ((u32)__cvta_generic_to_shared(storage) >> 4 | 1u << 16) + slot;
    u64 r;
    asm("mov.b64 %0, {%1, %2};" : "=l"(r) : "r"(at), "r"(1u << 30 | 1024u >> 4));
    return r;
}

DEVICE void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

DEVICE void end() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits for all but the last `later` that were ended.
template <int later>
DEVICE void wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(later) : "memory");
}

// Keeps compilers from using sums before the end.
DEVICE void settled(vec<float, 32> &c) { asm volatile("" : SUMS(ADDED)::"memory"); }

// What was stored to shared storage is seen by the instructions.
DEVICE void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
