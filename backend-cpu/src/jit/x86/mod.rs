//! Code for x86-64: the rows that machine-neutral vector operations become ([`select`]), and the
//! bytes of allocated operations ([`emit`]), by the assembler in [`asm`].

#[allow(dead_code, reason = "instruction families are complete, not by present use")]
pub(crate) mod asm;
#[cfg(any(test, not(target_arch = "aarch64")))]
pub(super) mod emit;
#[cfg(any(test, not(target_arch = "aarch64")))]
mod select;
#[cfg(any(test, not(target_arch = "aarch64")))]
mod writer;

#[cfg(any(test, not(target_arch = "aarch64")))]
pub(super) use self::writer::Writer;

use self::asm::{Len, VOp};
use super::machine::{Elem, Shape};

/// The shortest vector of at least so many bytes, of which there are at most 64.
pub(super) const fn len_of(bytes: usize) -> Len {
    match bytes {
        0..=16 => Len::X,
        17..=32 => Len::Y,
        _ => Len::Z,
    }
}

/// The three forms of a multiply-add: factors 1 and 3, 2 and 1, 2 and 3, as Intel counts operands.
#[cfg(any(test, not(target_arch = "aarch64")))]
fn fma(shape: Shape) -> [VOp; 3] {
    [
        fp(shape, [VOp::Vfmadd132ps, VOp::Vfmadd132pd, VOp::Vfmadd132ss, VOp::Vfmadd132sd]),
        fp(shape, [VOp::Vfmadd213ps, VOp::Vfmadd213pd, VOp::Vfmadd213ss, VOp::Vfmadd213sd]),
        fp(shape, [VOp::Vfmadd231ps, VOp::Vfmadd231pd, VOp::Vfmadd231ss, VOp::Vfmadd231sd]),
    ]
}

/// The member of a floating-point family for a shape: packed and scalar, single and double.
const fn fp(shape: Shape, [ps, pd, ss, sd]: [VOp; 4]) -> VOp {
    match (shape.elem, shape.lanes) {
        (Elem::F32, 1) => ss,
        (Elem::F32, _) => ps,
        (_, 1) => sd,
        _ => pd,
    }
}
