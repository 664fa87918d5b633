//! Running a block program: instructions on the registers of a thread, and the memory they name.

use super::LANES;
use super::frame::{Chunk, Frame, STEP, Word};
use super::ops::{self, VectorOp};
use zyx_core::ir::interp::scalar::{Fn1, Fn2};
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp, UnaryOp};

/// No scalar, no register.
pub(super) const NONE: u32 = u32::MAX;

/// An operation on the bits of elements: what an op of a kernel means on one lane.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScalarOp {
    One(Fn1),
    Two(Fn2),
    Unary(UnaryOp, DType),
    Binary(BinaryOp, DType),
    Ternary(TernaryOp, DType),
    Cast(DType, DType),
    /// The low bits as an element.
    Bits(DType),
}

impl ScalarOp {
    pub(super) fn apply(self, [x, y, z]: [u64; 3]) -> u64 {
        let at = |dtype, bits| Scalar::from_bits(dtype, bits);
        match self {
            ScalarOp::One(f) => f(x),
            ScalarOp::Two(f) => f(x, y),
            ScalarOp::Unary(op, dtype) => op.eval(at(dtype, x)).bits(),
            ScalarOp::Binary(op, dtype) => op.eval(at(dtype, x), at(dtype, y)).bits(),
            ScalarOp::Ternary(op, dtype) => {
                op.eval(at(dtype, x), at(dtype, y), at(dtype, z)).bits()
            }
            ScalarOp::Cast(from, to) => at(from, x).cast(to).bits(),
            ScalarOp::Bits(dtype) => at(dtype, x).bits(),
        }
    }
}

/// An operation lane by lane.
#[derive(Clone, Debug)]
pub(super) struct Each {
    pub(super) op: ScalarOp,
    pub(super) lanes: u8,
    /// Widths of destination and operands.
    pub(super) widths: [u8; 4],
    /// As many operands as there are.
    pub(super) operands: u8,
}

/// What an access of memory names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    /// The scalar that holds the address of the storage.
    pub(super) base: u32,
    /// The scalar that holds the index; the register of an access lane by lane.
    pub(super) index: u32,
    /// Bytes from one index to the next, and those added.
    pub(super) scale: u32,
    pub(super) offset: i64,
    /// A scalar without which nothing is accessed, or [`NONE`].
    pub(super) guard: u32,
    /// A register of truth values for each lane, or [`NONE`].
    pub(super) mask: u32,
    /// The scalar or register that is loaded or stored.
    pub(super) value: u32,
    pub(super) width: u8,
    pub(super) lanes: u8,
}

/// An instruction.
#[derive(Clone, Debug)]
pub(super) enum Inst {
    /// An operation on whole registers.
    Vector {
        f: VectorOp,
        r: [u32; 4],
        chunks: u8,
    },
    Each {
        r: [u32; 4],
        each: Box<Each>,
    },
    /// See [`ops::polynomial`].
    Polynomial {
        r: [u32; 4],
        coefficients: Box<[u32]>,
        chunks: u8,
    },
    /// So many lanes 0, 1, 2, … of `1 << width` bytes.
    Lanes {
        to: u32,
        width: u8,
        lanes: u8,
    },
    Extract {
        to: u32,
        from: u32,
        width: u8,
        lane: u8,
    },
    /// All lanes combined: the upper half into the lower, or from left to right.
    Fold {
        to: u32,
        from: u32,
        width: u8,
        lanes: u8,
        op: ScalarOp,
    },
    Add {
        to: u32,
        x: u32,
        y: u32,
    },
    Mul {
        to: u32,
        x: u32,
        y: u32,
    },
    Move {
        to: u32,
        x: u32,
    },
    Scalar {
        op: ScalarOp,
        to: u32,
        x: [u32; 3],
    },
    Select {
        to: u32,
        cond: u32,
        x: u32,
        y: u32,
    },
    Load(Access),
    Store(Access),
    /// Names the row of memory that an operand of the next vector operation is.
    Row(Access),
    LoadRow(Access),
    StoreRow(Access),
    Gather(Access),
    Scatter(Access),
    /// Sets the counter to `first` and goes on behind `end` if that is not below `len`.
    Loop {
        counter: u32,
        first: u32,
        len: u32,
        end: u32,
    },
    /// Counts, and goes back to behind `start` while there are iterations left.
    Next {
        counter: u32,
        len: u32,
        start: u32,
    },
    /// Where the condition holds, goes on behind the loop whose `Next` is at `end`.
    Break {
        cond: u32,
        end: u32,
    },
    /// Goes on behind `end` unless the condition holds.
    If {
        cond: u32,
        end: u32,
    },
}

/// Runs instructions from the first to the last.
///
/// # Safety
/// Scalars that accesses name as bases hold addresses; whatever is accessed lies in memory that
/// lives, is initialised where it is read, and is written by nobody else meanwhile.
pub(super) unsafe fn run(code: &[Inst], frame: &mut Frame) {
    let mut at = 0;
    while let Some(inst) = code.get(at) {
        at += 1;
        match *inst {
            Inst::Vector { f, r, chunks } => {
                frame.chunks = chunks.into();
                f(frame, r);
            }
            Inst::Polynomial { r, ref coefficients, chunks } => {
                frame.chunks = chunks.into();
                ops::polynomial(frame, r, coefficients);
            }
            Inst::Each { r, ref each } => lane_by_lane(frame, r, each),
            Inst::Lanes { to, width, lanes } => {
                for lane in 0..lanes as usize {
                    frame.set_lane(width, to, lane, lane as u64);
                }
            }
            Inst::Extract { to, from, width, lane } => {
                frame.scalars[to as usize] = frame.lane(width, from, lane as usize);
            }
            Inst::Fold { to, from, width, lanes, op } => {
                frame.scalars[to as usize] = fold(frame, from, width, lanes as usize, op);
            }
            Inst::Add { to, x, y } => {
                let s = &mut frame.scalars[..];
                s[to as usize] = s[x as usize].wrapping_add(s[y as usize]);
            }
            Inst::Mul { to, x, y } => {
                let s = &mut frame.scalars[..];
                s[to as usize] = s[x as usize].wrapping_mul(s[y as usize]);
            }
            Inst::Move { to, x } => frame.scalars[to as usize] = frame.scalars[x as usize],
            Inst::Scalar { op, to, x } => {
                let s = &mut frame.scalars[..];
                let x = x.map(|x| if x == NONE { 0 } else { s[x as usize] });
                s[to as usize] = op.apply(x);
            }
            Inst::Select { to, cond, x, y } => {
                let s = &mut frame.scalars[..];
                s[to as usize] = s[if s[cond as usize] != 0 { x } else { y } as usize];
            }
            // SAFETY: the caller's promise, for each access.
            Inst::Load(ref access) => unsafe { load(frame, access) },
            // SAFETY: as above.
            Inst::Store(ref access) => unsafe { store(frame, access) },
            Inst::Row(ref access) => {
                let start = access.start(frame);
                // SAFETY: the caller's promise, for all lanes.
                unsafe { frame.set_row(start) };
            }
            // SAFETY: as above.
            Inst::LoadRow(ref access) => unsafe {
                match access.width {
                    0 => load_row::<u8>(frame, access),
                    1 => load_row::<u16>(frame, access),
                    2 => load_row::<u32>(frame, access),
                    _ => load_row::<u64>(frame, access),
                }
            },
            // SAFETY: as above.
            Inst::StoreRow(ref access) => unsafe {
                match access.width {
                    0 => store_row::<u8>(frame, access),
                    1 => store_row::<u16>(frame, access),
                    2 => store_row::<u32>(frame, access),
                    _ => store_row::<u64>(frame, access),
                }
            },
            // SAFETY: as above.
            Inst::Gather(ref access) => unsafe {
                match access.width {
                    0 => gather::<u8>(frame, access),
                    1 => gather::<u16>(frame, access),
                    2 => gather::<u32>(frame, access),
                    _ => gather::<u64>(frame, access),
                }
            },
            // SAFETY: as above.
            Inst::Scatter(ref access) => unsafe {
                match access.width {
                    0 => scatter::<u8>(frame, access),
                    1 => scatter::<u16>(frame, access),
                    2 => scatter::<u32>(frame, access),
                    _ => scatter::<u64>(frame, access),
                }
            },
            Inst::Loop { counter, first, len, end } => {
                let s = &mut frame.scalars[..];
                s[counter as usize] = s[first as usize];
                if s[first as usize] as i64 >= s[len as usize] as i64 {
                    at = end as usize + 1;
                }
            }
            Inst::Next { counter, len, start } => {
                let s = &mut frame.scalars[..];
                s[counter as usize] += 1;
                if (s[counter as usize] as i64) < s[len as usize] as i64 {
                    at = start as usize + 1;
                }
            }
            Inst::Break { cond, end } => {
                if frame.scalars[cond as usize] != 0 {
                    at = end as usize + 1;
                }
            }
            Inst::If { cond, end } => {
                if frame.scalars[cond as usize] == 0 {
                    at = end as usize;
                }
            }
        }
    }
}

fn lane_by_lane(frame: &mut Frame, r: [u32; 4], each: &Each) {
    let Each { op, lanes, widths, operands } = *each;
    for lane in 0..lanes as usize {
        let mut x = [0; 3];
        for i in 0..operands as usize {
            x[i] = frame.lane(widths[i + 1], r[i + 1], lane);
        }
        frame.set_lane(widths[0], r[0], lane, op.apply(x));
    }
}

fn fold(frame: &mut Frame, from: u32, width: u8, lanes: usize, op: ScalarOp) -> u64 {
    let mut all = [0; LANES];
    for (lane, x) in all[..lanes].iter_mut().enumerate() {
        *x = frame.lane(width, from, lane);
    }
    let mut n = lanes;
    while n > 1 {
        let half = if lanes.is_power_of_two() { n / 2 } else { 1 };
        for i in half..n {
            all[i % half] = op.apply([all[i % half], all[i], 0]);
        }
        n = half;
    }
    all[0]
}

impl Access {
    /// The address of an element of the storage at `base`.
    fn at(&self, base: u64, index: u64) -> *mut u8 {
        let offset = (index as i64).wrapping_mul(self.scale.into()).wrapping_add(self.offset);
        std::ptr::with_exposed_provenance_mut(base.wrapping_add(offset as u64) as usize)
    }

    /// The address of the first element.
    fn start(&self, frame: &Frame) -> *mut u8 {
        self.at(frame.scalars[self.base as usize], frame.scalars[self.index as usize])
    }

    /// Whether a condition that holds for all lanes lets the access happen.
    fn allowed(&self, frame: &Frame) -> bool {
        self.guard == NONE || frame.scalars[self.guard as usize] != 0
    }

    /// A bit for each lane that is accessed.
    fn lanes(&self, frame: &Frame) -> u64 {
        let n = self.lanes as usize;
        if !self.allowed(frame) {
            return 0;
        }
        if self.mask == NONE {
            return ones(n);
        }
        let mut bits = 0;
        let chunks = &frame.w8[self.mask as usize..][..n.div_ceil(STEP)];
        for (i, eight) in chunks.as_flattened().as_chunks::<8>().0.iter().enumerate() {
            // Bytes of 0 and 1 become neighbouring bits; lanes beyond hold anything.
            let bytes = u64::from_le_bytes(*eight) & 0x0101_0101_0101_0101;
            bits |= bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56 << (8 * i);
        }
        bits & ones(n)
    }
}

/// So many ones, at most 64.
fn ones(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

/// Runs of ones among bits: where they begin and end.
fn runs(mut bits: u64) -> impl Iterator<Item = std::ops::Range<usize>> {
    std::iter::from_fn(move || {
        let start = bits.trailing_zeros() as usize;
        if start == 64 {
            return None;
        }
        let end = start + (bits >> start).trailing_ones() as usize;
        bits &= !ones(end);
        Some(start..end)
    })
}

/// # Safety
/// The access is in bounds unless its guard forbids it, as [`run`] says.
unsafe fn load(frame: &mut Frame, access: &Access) {
    let mut bits = 0;
    if access.allowed(frame) {
        let p = access.start(frame);
        // SAFETY: the caller's promise.
        bits = unsafe {
            match access.width {
                0 => p.read().into(),
                1 => p.cast::<u16>().read_unaligned().into(),
                2 => p.cast::<u32>().read_unaligned().into(),
                _ => p.cast::<u64>().read_unaligned(),
            }
        };
    }
    frame.scalars[access.value as usize] = bits;
}

/// # Safety
/// As [`load`].
unsafe fn store(frame: &mut Frame, access: &Access) {
    if access.allowed(frame) {
        let (p, bits) = (access.start(frame), frame.scalars[access.value as usize]);
        // SAFETY: the caller's promise.
        unsafe {
            match access.width {
                0 => p.write(bits as u8),
                1 => p.cast::<u16>().write_unaligned(bits as u16),
                2 => p.cast::<u32>().write_unaligned(bits as u32),
                _ => p.cast::<u64>().write_unaligned(bits),
            }
        }
    }
}

/// # Safety
/// As [`load`], for each lane that is not masked.
#[inline(never)]
unsafe fn load_row<W: Word>(frame: &mut Frame, access: &Access) {
    let (bits, n) = (access.lanes(frame), access.lanes as usize);
    let p = access.start(frame).cast::<W>();
    let register = &mut W::file(frame)[access.value as usize..][..n.div_ceil(STEP)];
    if bits == ones(n) && n.is_multiple_of(STEP) {
        for (i, chunk) in register.iter_mut().enumerate() {
            // SAFETY: all lanes are accessed, and these are among them.
            *chunk = unsafe { p.wrapping_add(i * STEP).cast::<Chunk<W>>().read_unaligned() };
        }
        return;
    }
    register.fill([W::default(); STEP]);
    for run in runs(bits) {
        let (from, to) = (p.wrapping_add(run.start), &mut register.as_flattened_mut()[run]);
        // SAFETY: these lanes are accessed; registers are no memory that accesses name.
        unsafe {
            let bytes = from.cast::<u8>();
            bytes.copy_to_nonoverlapping(to.as_mut_ptr().cast(), size_of_val(to));
        }
    }
}

/// # Safety
/// As [`load_row`].
#[inline(never)]
unsafe fn store_row<W: Word>(frame: &mut Frame, access: &Access) {
    let (bits, n) = (access.lanes(frame), access.lanes as usize);
    let p = access.start(frame).cast::<W>();
    let register = &W::file(frame)[access.value as usize..][..n.div_ceil(STEP)];
    if bits == ones(n) && n.is_multiple_of(STEP) {
        for (i, chunk) in register.iter().enumerate() {
            // SAFETY: all lanes are accessed, and these are among them.
            unsafe { p.wrapping_add(i * STEP).cast::<Chunk<W>>().write_unaligned(*chunk) };
        }
        return;
    }
    for run in runs(bits) {
        let (to, from) = (p.wrapping_add(run.start), &register.as_flattened()[run]);
        // SAFETY: these lanes are accessed; registers are no memory that accesses name.
        unsafe {
            let bytes = to.cast::<u8>();
            bytes.copy_from_nonoverlapping(from.as_ptr().cast(), size_of_val(from));
        }
    }
}

/// # Safety
/// As [`load_row`].
#[inline(never)]
unsafe fn gather<W: Word>(frame: &mut Frame, access: &Access) {
    let (bits, chunks) = (access.lanes(frame), (access.lanes as usize).div_ceil(STEP));
    for chunk in 0..chunks {
        let (indices, mut x) = (frame.w64[access.index as usize + chunk], [W::default(); STEP]);
        let bits = bits >> (STEP * chunk);
        let base = frame.scalars[access.base as usize];
        for (lane, (x, &index)) in x.iter_mut().zip(&indices).enumerate() {
            if bits >> lane & 1 == 1 {
                // SAFETY: the lane is not masked.
                *x = unsafe { access.at(base, index).cast::<W>().read_unaligned() };
            }
        }
        W::file(frame)[access.value as usize + chunk] = x;
    }
}

/// # Safety
/// As [`load_row`].
#[inline(never)]
unsafe fn scatter<W: Word>(frame: &mut Frame, access: &Access) {
    let (bits, chunks) = (access.lanes(frame), (access.lanes as usize).div_ceil(STEP));
    for chunk in 0..chunks {
        let indices = frame.w64[access.index as usize + chunk];
        let x = W::file(frame)[access.value as usize + chunk];
        let bits = bits >> (STEP * chunk);
        let base = frame.scalars[access.base as usize];
        for (lane, (&x, &index)) in x.iter().zip(&indices).enumerate() {
            if bits >> lane & 1 == 1 {
                // SAFETY: the lane is not masked.
                unsafe { access.at(base, index).cast::<W>().write_unaligned(x) };
            }
        }
    }
}
