//! Numbers that instructions can hold, and those that they cannot.

/// The thirteen bits (`N`, `immr`, `imms`) by which logical instructions spell a mask of `width` bits,
/// 32 or 64: a run of ones, rotated, in elements of a power of two bits that repeat. Zeros alone, and
/// ones alone, have no such spelling.
pub(crate) fn bitmask(value: u64, width: u32) -> Option<u32> {
    let all = u64::MAX >> (64 - width);
    if value & !all != 0 || value == 0 || value == all {
        return None;
    }
    // The shortest element that repeats.
    let mut element = width;
    while element > 2 {
        let half = element / 2;
        let ones = (1_u64 << half) - 1;
        if value & ones != value >> half & ones {
            break;
        }
        element = half;
    }
    let ones = u64::MAX >> (64 - element);
    let count = (value & ones).count_ones();
    let run = (1_u64 << count) - 1;
    let rotated = |by: u32| match by {
        0 => run,
        _ => (run >> by | run << (element - by)) & ones,
    };
    let immr = (0..element).find(|&by| rotated(by) == value & ones)?;
    let n = u32::from(element == 64);
    let imms = !(2 * element - 1) & 0x3f | (count - 1);
    Some(n << 12 | immr << 6 | imms)
}

/// Twelve bits, and whether they count in 4096, that are added or subtracted in one instruction.
pub(crate) fn add_immediate(value: u64) -> Option<(u32, bool)> {
    match (value >> 12, value & 0xfff) {
        (0, low) => Some((low as u32, false)),
        (high, 0) if high <= 0xfff => Some((high as u32, true)),
        _ => None,
    }
}

/// The eight bits by which `fmov` spells a float: a sign, three bits of exponent, four of mantissa.
pub(crate) fn float8(value: f64) -> Option<u8> {
    (0..=u8::MAX).find(|&imm| float8_value(imm).to_bits() == value.to_bits())
}

/// The float that eight bits spell: `(16 + mantissa) / 16 * 2^e` for `e` from -3 to 4.
pub(crate) fn float8_value(imm: u8) -> f64 {
    let sign = if imm & 0x80 == 0 { 1.0 } else { -1.0 };
    let exponent = (i32::from(imm >> 4 & 7) ^ 4) - 3;
    sign * f64::from(16 + (imm & 15)) / 16.0 * f64::powi(2.0, exponent)
}

/// The eight bits by which `movi` spells eight bytes that are each zeros or ones.
pub(crate) fn byte_mask(value: u64) -> Option<u8> {
    let bytes = value.to_le_bytes();
    let plain = bytes.iter().all(|&byte| byte == 0 || byte == 0xff);
    plain.then(|| (0..8).fold(0, |mask, i| mask | (bytes[i] & 1) << i))
}
