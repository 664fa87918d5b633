
// Copies of 16 bytes from memory to shared storage that the thread does not wait for.
DEVICE void copy(void *storage, u32 slot, const void *from) {
    const u32 to = (u32)__cvta_generic_to_shared(storage) + 16 * slot;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

DEVICE void copied() { asm volatile("cp.async.wait_all;" ::: "memory"); }
