//! Functions of the C library that are not as good everywhere, as good on every system.
//!
//! The library of MinGW rounds `fma` twice, and takes sines of large numbers from an instruction that
//! knows 66 bits of pi. There they are computed here; elsewhere they are the standard library's.
//! Tests on other systems compare both.

mod circular;
mod fma;

/// Whether the C library's functions are those of MinGW.
const MINGW: bool = cfg!(all(windows, target_env = "gnu"));

/// `x * y + z`, rounded once.
pub fn mul_add_f64(x: f64, y: f64, z: f64) -> f64 {
    if MINGW { fma::double(x, y, z) } else { x.mul_add(y, z) }
}

/// `x * y + z`, rounded once.
pub fn mul_add_f32(x: f32, y: f32, z: f32) -> f32 {
    if MINGW { fma::single(x, y, z) } else { x.mul_add(y, z) }
}

/// The sine of radians.
pub fn sin(x: f64) -> f64 {
    if MINGW { circular::sin(x) } else { x.sin() }
}

/// The cosine of radians.
pub fn cos(x: f64) -> f64 {
    if MINGW { circular::cos(x) } else { x.cos() }
}

/// The tangent of radians.
pub fn tan(x: f64) -> f64 {
    if MINGW { circular::tan(x) } else { x.tan() }
}
