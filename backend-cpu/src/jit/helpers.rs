//! Rust functions that compiled kernels call for ops without an instruction.
//!
//! Operands and results are arrays in the caller's frame, laid out like memory. What to do is one
//! word, [`Call`], made when the kernel is compiled. The meaning of every op is the core's.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp, UnaryOp};

/// What a call computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    kind: Kind,
    /// The op's number in its table, or the target dtype of a cast.
    op: u8,
    dtype: DType,
    lanes: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Kind {
    Unary,
    Binary,
    Ternary,
    Cast,
    Fold,
}

const KINDS: [Kind; 5] = [Kind::Unary, Kind::Binary, Kind::Ternary, Kind::Cast, Kind::Fold];

impl Call {
    pub(super) const fn unary(op: UnaryOp, dtype: DType, lanes: u8) -> Self {
        Self { kind: Kind::Unary, op: op as u8, dtype, lanes }
    }

    pub(super) const fn binary(op: BinaryOp, dtype: DType, lanes: u8) -> Self {
        Self { kind: Kind::Binary, op: op as u8, dtype, lanes }
    }

    pub(super) const fn ternary(op: TernaryOp, dtype: DType, lanes: u8) -> Self {
        Self { kind: Kind::Ternary, op: op as u8, dtype, lanes }
    }

    pub(super) const fn cast(from: DType, to: DType, lanes: u8) -> Self {
        Self { kind: Kind::Cast, op: to as u8, dtype: from, lanes }
    }

    pub(super) const fn fold(op: BinaryOp, dtype: DType, lanes: u8) -> Self {
        Self { kind: Kind::Fold, op: op as u8, dtype, lanes }
    }

    /// The word that travels in a register.
    pub(super) const fn encode(self) -> u64 {
        u64::from_le_bytes([self.kind as u8, self.op, self.dtype as u8, self.lanes, 0, 0, 0, 0])
    }

    fn decode(word: u64) -> Self {
        let [kind, op, dtype, lanes, ..] = word.to_le_bytes();
        Self { kind: KINDS[usize::from(kind)], op, dtype: DType::ALL[usize::from(dtype)], lanes }
    }
}

/// A function that kernels may call, in their calling convention: one for every system of x86-64.
/// Elsewhere no kernels are compiled, and nobody calls it.
macro_rules! called_by_kernels {
    ($(#[$meta:meta])* unsafe fn $name:ident($($arg:ident: $type:ty,)*) $body:block) => {
        $(#[$meta])*
        #[cfg(target_arch = "x86_64")]
        unsafe extern "sysv64" fn $name($($arg: $type),*) $body

        $(#[$meta])*
        #[cfg(not(target_arch = "x86_64"))]
        unsafe extern "C" fn $name($($arg: $type),*) $body
    };
}

/// Where [`elementwise`] is.
pub(super) fn elementwise_address() -> usize {
    elementwise as *const () as usize
}

/// Where [`atomic`] is.
pub(super) fn atomic_address() -> usize {
    atomic as *const () as usize
}

/// Reads element `lane` of an array of `dtype`.
///
/// # Safety
/// The array has more than `lane` elements.
unsafe fn read(array: *const u8, lane: usize, dtype: DType) -> Scalar {
    let mut bytes = [0; 8];
    let size = dtype.size();
    // SAFETY: the caller guarantees the element; at most eight bytes are copied to eight bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(array.add(lane * size), bytes.as_mut_ptr(), size);
    }
    Scalar::from_bits(dtype, u64::from_le_bytes(bytes))
}

/// Writes element `lane` of an array.
///
/// # Safety
/// The array has more than `lane` elements.
unsafe fn write(array: *mut u8, lane: usize, x: Scalar) {
    let size = x.dtype().size();
    let bytes = x.bits().to_le_bytes();
    // SAFETY: the caller guarantees the element; at most eight bytes are copied from eight bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), array.add(lane * size), size);
    }
}

called_by_kernels! {
    /// Applies an op to arrays of lanes.
    ///
    /// # Safety
    /// The arrays the op needs have as many elements as `word` says, and `dst` does not overlap them.
    unsafe fn elementwise(
        dst: *mut u8,
        a: *const u8,
        b: *const u8,
        c: *const u8,
        word: u64,
    ) {
        let call = Call::decode(word);
        let n = usize::from(call.lanes);
        let dtype = call.dtype;
        if call.kind == Kind::Fold {
            // The upper half into the lower, until one is left: the interpreter's grouping.
            let op = BinaryOp::ALL[usize::from(call.op)];
            // SAFETY: the caller guarantees `n` elements of `a`, and one of `dst`.
            unsafe {
                let mut lanes: Vec<Scalar> = (0..n).map(|lane| read(a, lane, dtype)).collect();
                while lanes.len() > 1 {
                    let half = lanes.len() / 2;
                    let upper = lanes.split_off(half);
                    lanes.iter_mut().zip(upper).for_each(|(x, y)| *x = op.eval(*x, y));
                }
                write(dst, 0, lanes[0]);
            }
            return;
        }
        for lane in 0..n {
            // SAFETY: the caller guarantees `n` elements of every operand the op has, and of `dst`.
            unsafe {
                let x = || read(a, lane, dtype);
                let result = match call.kind {
                    Kind::Unary => UnaryOp::ALL[usize::from(call.op)].eval(x()),
                    Kind::Binary => BinaryOp::ALL[usize::from(call.op)].eval(x(), read(b, lane, dtype)),
                    Kind::Ternary => {
                        let op = TernaryOp::ALL[usize::from(call.op)];
                        op.eval(x(), read(b, lane, dtype), read(c, lane, dtype))
                    }
                    Kind::Cast | Kind::Fold => x().cast(DType::ALL[usize::from(call.op)]),
                };
                write(dst, lane, result);
            }
        }
    }
}

called_by_kernels! {
    /// Combines elements anywhere in memory with operands, indivisibly, lane after lane; gives the
    /// old elements, and zero for lanes without an address.
    ///
    /// # Safety
    /// `old` and `operands` have as many elements as `word` says, `places` as many addresses; each is
    /// null or an aligned element that is accessed by atomics only.
    unsafe fn atomic(
        old: *mut u8,
        operands: *const u8,
        places: *const *mut u8,
        _unused: *const u8,
        word: u64,
    ) {
        let call = Call::decode(word);
        let op = BinaryOp::ALL[usize::from(call.op)];
        for lane in 0..usize::from(call.lanes) {
            // SAFETY: the caller guarantees as many addresses.
            let place = unsafe { places.add(lane).read() };
            // SAFETY: the caller guarantees as many operands.
            let operand = unsafe { read(operands, lane, call.dtype) };
            let before = if place.is_null() {
                0
            } else {
                // SAFETY: the caller guarantees that the address is an element of this dtype.
                unsafe { update(place, op, operand) }
            };
            // SAFETY: the caller guarantees room for as many results.
            unsafe { write(old, lane, Scalar::from_bits(call.dtype, before)) };
        }
    }
}

/// Replaces an element by `op(element, operand)`; gives the old one's bits.
///
/// # Safety
/// `place` is an aligned element of the operand's dtype, accessed by atomics only.
unsafe fn update(place: *mut u8, op: BinaryOp, operand: Scalar) -> u64 {
    let dtype = operand.dtype();
    let next = |bits: u64| op.eval(Scalar::from_bits(dtype, bits), operand).bits();
    macro_rules! exchange {
        ($atomic:ty, $int:ty) => {{
            // SAFETY: the caller guarantees an aligned element of this size.
            let cell = unsafe { <$atomic>::from_ptr(place.cast()) };
            let order = Ordering::AcqRel;
            let result = cell
                .fetch_update(order, Ordering::Acquire, |bits| Some(next(u64::from(bits)) as $int));
            u64::from(result.unwrap_or_else(|bits| bits))
        }};
    }
    match dtype.size() {
        1 => exchange!(AtomicU8, u8),
        2 => exchange!(AtomicU16, u16),
        4 => exchange!(AtomicU32, u32),
        _ => exchange!(AtomicU64, u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_encoding() {
        for &op in BinaryOp::ALL {
            for &dtype in DType::ALL {
                for call in [
                    Call::binary(op, dtype, 64),
                    Call::fold(op, dtype, 2),
                    Call::cast(dtype, DType::BF16, 1),
                    Call::ternary(TernaryOp::MulAdd, dtype, 16),
                    Call::unary(UnaryOp::Trunc, dtype, 3),
                ] {
                    assert_eq!(Call::decode(call.encode()), call);
                }
            }
        }
    }

    #[test]
    fn elementwise_matches_the_op_table() {
        let (a, b) = ([5.5f32, -7.0], [2.0f32, 3.0]);
        let mut out = [0f32; 2];
        let word = Call::binary(BinaryOp::Rem, DType::F32, 2).encode();
        // SAFETY: all arrays have two elements.
        unsafe {
            let c = std::ptr::null();
            elementwise(out.as_mut_ptr().cast(), a.as_ptr().cast(), b.as_ptr().cast(), c, word);
        }
        assert_eq!(out, [1.5, -1.0]);
    }

    #[test]
    fn atomics_apply_lane_after_lane_and_skip_null() {
        let mut cell = 10u32;
        let operands = [1u32, 2, 3, 4];
        let place: *mut u8 = (&raw mut cell).cast();
        let places = [place, std::ptr::null_mut(), place, place];
        let mut old = [0u32; 4];
        let word = Call::binary(BinaryOp::Add, DType::U32, 4).encode();
        // SAFETY: four lanes each; the address is an aligned `u32`.
        unsafe {
            let none = std::ptr::null();
            let operands = operands.as_ptr().cast();
            atomic(old.as_mut_ptr().cast(), operands, places.as_ptr(), none, word);
        }
        assert_eq!((old, cell), ([10, 0, 11, 14], 18));
    }
}
