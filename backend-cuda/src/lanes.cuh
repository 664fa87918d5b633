
// Exchange within the 32 threads of a warp; from a lane that does not exist, the own value.
template <typename T>
DEVICE T from_lane(T x, u32 lane) {
    u32 words[(sizeof(T) + 3) / 4] = {};
    memcpy(words, &x, sizeof(T));
    for (int i = 0; i < (int)(sizeof(words) / 4); ++i) {
        words[i] = __shfl_sync(0xffffffffu, words[i], lane);
    }
    T r;
    memcpy(&r, words, sizeof(T));
    return r;
}

DEVICE u32 own_thread() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

// Lanes that the warp of a thread has, if not all groups are whole warps.
template <bool whole>
DEVICE u32 lanes() {
    const u32 threads = blockDim.x * blockDim.y * blockDim.z;
    return whole ? 32 : min(32u, threads - (own_thread() & ~31u));
}

template <bool whole, typename T>
DEVICE T shuffle_index(T x, u64 lane) {
    return from_lane(x, lane < lanes<whole>() ? (u32)lane : own_thread() & 31);
}

template <bool whole, typename T>
DEVICE T shuffle_xor(T x, u64 lane) {
    return shuffle_index<whole>(x, (own_thread() & 31) ^ lane);
}

template <bool whole, typename T>
DEVICE T shuffle_down(T x, u64 lane) {
    return shuffle_index<whole>(x, (own_thread() & 31) + lane);
}
