
// Lanes that are computed with one by one and moved together.
template <typename T, int N>
struct alignas(sizeof(T) * N <= 16 ? sizeof(T) * N : 16) vec {
    typedef T lane;
    T s[N];
};

template <typename T>
struct same {
    typedef T type;
};

template <typename V, typename... A>
DEVICE V make(A... a) {
    V r = {{(typename V::lane)a...}};
    return r;
}

template <typename V>
DEVICE V fill(typename V::lane x) {
    V r;
    for (int i = 0; i < (int)(sizeof(V) / sizeof(x)); ++i) r.s[i] = x;
    return r;
}

template <typename V>
DEVICE V fill(V x) {
    return x;
}

#define BINARY(R, head, body)                                           \
    template <typename T, int N>                                        \
    DEVICE vec<R, N> head(vec<T, N> x, vec<T, N> y) {                   \
        vec<R, N> r;                                                    \
        for (int i = 0; i < N; ++i) {                                   \
            const T a = x.s[i], b = y.s[i];                             \
            r.s[i] = (R)(body);                                         \
        }                                                               \
        return r;                                                       \
    }                                                                   \
    template <typename T, int N>                                        \
    DEVICE vec<R, N> head(vec<T, N> x, typename same<T>::type y) {      \
        return head(x, fill<vec<T, N>>(y));                            \
    }                                                                   \
    template <typename T, int N>                                        \
    DEVICE vec<R, N> head(typename same<T>::type x, vec<T, N> y) {      \
        return head(fill<vec<T, N>>(x), y);                            \
    }

BINARY(T, operator+, a + b)
BINARY(T, operator-, a - b)
BINARY(T, operator*, a * b)
BINARY(T, operator/, a / b)
BINARY(T, operator%, a % b)
BINARY(T, operator&, a & b)
BINARY(T, operator|, a | b)
BINARY(T, operator^, a ^ b)
BINARY(u8, operator<, a < b)
BINARY(u8, operator<=, a <= b)
BINARY(u8, operator>, a > b)
BINARY(u8, operator>=, a >= b)
BINARY(u8, operator==, a == b)
BINARY(u8, operator!=, a != b)
BINARY(T, min, b < a ? b : a)
BINARY(T, max, a < b ? b : a)
BINARY(T, max_nan, max_nan(a, b))
BINARY(T, min_nan, min_nan(a, b))
BINARY(T, fmod, fmod(a, b))
BINARY(T, pow, pow(a, b))
BINARY(T, atan2, atan2(a, b))

// Distances may be of another type than what is shifted.
#define SHIFT(op)                                                       \
    template <typename T, typename D, int N>                            \
    DEVICE vec<T, N> operator op(vec<T, N> x, vec<D, N> y) {            \
        vec<T, N> r;                                                    \
        for (int i = 0; i < N; ++i) r.s[i] = (T)(x.s[i] op y.s[i]);     \
        return r;                                                       \
    }                                                                   \
    template <typename T, typename D, int N>                            \
    DEVICE vec<T, N> operator op(vec<T, N> x, D y) {                    \
        vec<T, N> r;                                                    \
        for (int i = 0; i < N; ++i) r.s[i] = (T)(x.s[i] op y);          \
        return r;                                                       \
    }

SHIFT(<<)
SHIFT(>>)

#define UNARY(head, body)                                               \
    template <typename T, int N>                                        \
    DEVICE vec<T, N> head(vec<T, N> x) {                                \
        vec<T, N> r;                                                    \
        for (int i = 0; i < N; ++i) {                                   \
            const T a = x.s[i];                                         \
            r.s[i] = (T)(body);                                         \
        }                                                               \
        return r;                                                       \
    }
#define FUNCTION(f) UNARY(f, f(a))

UNARY(operator-, -a)
UNARY(operator~, ~a)
FUNCTION(fabs)
FUNCTION(sqrt)
FUNCTION(exp)
FUNCTION(exp2)
FUNCTION(expm1)
FUNCTION(log)
FUNCTION(log2)
FUNCTION(log1p)
FUNCTION(sin)
FUNCTION(cos)
FUNCTION(tan)
FUNCTION(asin)
FUNCTION(acos)
FUNCTION(atan)
FUNCTION(sinh)
FUNCTION(cosh)
FUNCTION(tanh)
FUNCTION(erf)
FUNCTION(floor)
FUNCTION(ceil)
FUNCTION(rint)
FUNCTION(trunc)

template <typename T, int N>
DEVICE vec<T, N> fma(vec<T, N> x, vec<T, N> y, vec<T, N> z) {
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.s[i] = fma(x.s[i], y.s[i], z.s[i]);
    return r;
}

template <typename T, int N>
DEVICE vec<T, N> select(vec<u8, N> test, vec<T, N> if_true, vec<T, N> if_false) {
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.s[i] = test.s[i] ? if_true.s[i] : if_false.s[i];
    return r;
}

template <typename V, typename F, int N>
DEVICE V convert(vec<F, N> x) {
    V r;
    for (int i = 0; i < N; ++i) r.s[i] = (typename V::lane)x.s[i];
    return r;
}

template <typename V, typename F, int N>
DEVICE V saturate(vec<F, N> x) {
    V r;
    for (int i = 0; i < N; ++i) r.s[i] = saturate<typename V::lane>(x.s[i]);
    return r;
}

// Consecutive elements; whole words of memory where the address allows it, which the compiler
// mostly knows.
template <int N, typename T>
DEVICE vec<T, N> load(const T *p) {
    const u64 align = alignof(vec<T, N>);
    if (((u64)p & (align - 1)) == 0) return *(const vec<T, N> *)p;
    vec<T, N> r;
    for (int i = 0; i < N; ++i) r.s[i] = p[i];
    return r;
}

template <typename T, int N>
DEVICE void store(T *p, vec<T, N> x) {
    const u64 align = alignof(vec<T, N>);
    if (((u64)p & (align - 1)) == 0) {
        *(vec<T, N> *)p = x;
    } else {
        for (int i = 0; i < N; ++i) p[i] = x.s[i];
    }
}
