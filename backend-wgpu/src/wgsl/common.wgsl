// Functions that translated kernels call; a source gets those it uses. A blank line ends each.

// A float by its bits. Not an expression the translator could evaluate: WGSL has no constant
// infinities or NaNs.
fn real(x: u32) -> f32 {
    return bitcast<f32>(x);
}

fn is_nan_f32(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}
