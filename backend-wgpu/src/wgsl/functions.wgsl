// Functions that translated kernels call; a source gets those it uses. A blank line ends each.

// A float by its bits. Not an expression the translator could evaluate: WGSL has no constant
// infinities or NaNs.
fn real(x: u32) -> f32 {
    return bitcast<f32>(x);
}

fn real64(x: u64) -> f64 {
    return bitcast<f64>(x);
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}

fn is_nan_f64(x: f64) -> bool {
    return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}

// `x / y` by a multiply-add that rounds once: it gives remainders exactly, and these correct what the
// device is off by, but for operands that the core sees to. The lowest bits of the first guess are cut
// off, so that no compiler knows what it is to the operand and "simplifies".
fn div_f32(x: f32, y: f32) -> f32 {
    let guess = bitcast<f32>(bitcast<u32>(1.0f / y) & 0xfffffff0u);
    let near = fma(fma(-y, guess, 1.0f), guess, guess);
    let inverse = fma(fma(-y, near, 1.0f), near, near);
    let first = x * inverse;
    let second = fma(fma(-y, first, x), inverse, first);
    return fma(fma(-y, second, x), inverse, second);
}
