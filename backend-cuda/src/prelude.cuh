typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

#define DEVICE static __device__ __forceinline__

// The bits of a value as another type of the same size.
template <typename T, typename F>
DEVICE T as(const F &x) {
    T r;
    memcpy(&r, &x, sizeof(T));
    return r;
}

template <typename T, typename F>
DEVICE T convert(F x) {
    return (T)x;
}

// A float truncated to an integer: NaN to 0, what is too large to the nearest that is not.
template <typename T, typename F>
DEVICE T saturate(F x) {
    const bool is_signed = (T)-1 < (T)0;
    const int bits = 8 * (int)sizeof(T) - (is_signed ? 1 : 0);
    const F above = (F)(1ull << (bits - 1)) * (F)2;
    const T highest = (T)(~0ull >> (64 - bits));
    const T lowest = is_signed ? (T)(-highest - 1) : (T)0;
    const F below = is_signed ? -above : (F)0;
    if (x >= above) return highest;
    if (x > below) return (T)x;
    return x != x ? (T)0 : lowest;
}

DEVICE float unpack_f16(u16 x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
    return r;
}

DEVICE u16 pack_f16(float x) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

DEVICE float unpack_bf16(u16 x) { return __uint_as_float((u32)x << 16); }

#if __CUDA_ARCH__ >= 800
DEVICE u16 pack_bf16(float x) {
    u16 r;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}

// Two halves in a word, the first in its lower part.
DEVICE u32 pack_pair_f16(float x, float y) {
    u32 r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(y), "f"(x));
    return r;
}

DEVICE u32 pack_pair_bf16(float x, float y) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(y), "f"(x));
    return r;
}

DEVICE float max_nan(float x, float y) {
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}

DEVICE float min_nan(float x, float y) {
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
    return r;
}
#else
// Adding half of what is cut off, less one unless the last kept bit is odd, rounds ties to even;
// a NaN keeps its upper bits and stays quiet.
DEVICE u16 pack_bf16(float x) {
    const u32 u = __float_as_uint(x);
    return (u16)(x != x ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

DEVICE u32 pack_pair_f16(float x, float y) { return pack_f16(x) | (u32)pack_f16(y) << 16; }
DEVICE u32 pack_pair_bf16(float x, float y) { return pack_bf16(x) | (u32)pack_bf16(y) << 16; }

DEVICE float max_nan(float x, float y) { return ((x > y) | (x != x)) ? x : y; }
DEVICE float min_nan(float x, float y) { return ((x < y) | (x != x)) ? x : y; }
#endif

DEVICE u32 exchange(volatile u32 *p, u32 old, u32 next) { return atomicCAS((u32 *)p, old, next); }
DEVICE u64 exchange(volatile u64 *p, u64 old, u64 next) { return atomicCAS((u64 *)p, old, next); }

DEVICE s64 atomic_add(s64 *p, s64 x) { return (s64)atomicAdd((u64 *)p, (u64)x); }
DEVICE s64 atomic_sub(s64 *p, s64 x) { return (s64)atomicAdd((u64 *)p, 0 - (u64)x); }
DEVICE u64 atomic_sub(u64 *p, u64 x) { return atomicAdd(p, 0 - x); }
DEVICE s64 atomic_and(s64 *p, s64 x) { return (s64)atomicAnd((u64 *)p, (u64)x); }
DEVICE s64 atomic_or(s64 *p, s64 x) { return (s64)atomicOr((u64 *)p, (u64)x); }
DEVICE s64 atomic_xor(s64 *p, s64 x) { return (s64)atomicXor((u64 *)p, (u64)x); }

// `exp2`, with zero for what would be below the normal numbers.
DEVICE float normal_exp2(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// What a short kernel starts with, which in a graph may be launched when the groups it waits for are
// through: it waits until what they stored is seen. Launched in another way, it waits for nothing.
// No kernel lets others be launched earlier: their groups would crowd where there is room then.
DEVICE void enter() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
