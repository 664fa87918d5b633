//! Running a block program: instructions on the registers of a thread, and the memory they name.

use super::frame::{Chunk, Frame, STEP, Word};
use super::ops::VectorOp;
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
    Vector { f: VectorOp, r: [u32; 4] },
    Each { r: [u32; 4], each: Box<Each> },
    /// 0, 1, 2, … as words of `1 << width` bytes.
    Lanes { to: u32, width: u8 },
    Extract { to: u32, from: u32, width: u8, lane: u8 },
    /// All lanes combined: the upper half into the lower, or from left to right.
    Fold { to: u32, from: u32, width: u8, lanes: u8, op: ScalarOp },
    Add { to: u32, x: u32, y: u32 },
    Mul { to: u32, x: u32, y: u32 },
    Move { to: u32, x: u32 },
    Scalar { op: ScalarOp, to: u32, x: [u32; 3] },
    Select { to: u32, cond: u32, x: u32, y: u32 },
    Load(Access),
    Store(Access),
    LoadRow(Access),
    StoreRow(Access),
    Gather(Access),
    Scatter(Access),
    /// Sets the counter to `first` and goes on behind `end` if that is not below `len`.
    Loop { counter: u32, first: u32, len: u32, end: u32 },
    /// Counts, and goes back to behind `start` while there are iterations left.
    Next { counter: u32, len: u32, start: u32 },
    /// Goes on behind `end` unless the condition holds.
    If { cond: u32, end: u32 },
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
            Inst::Vector { f, r } => f(frame, r),
            Inst::Each { r, ref each } => lane_by_lane(frame, r, each),
            Inst::Lanes { to, width } => {
                for lane in 0..frame.chunks * STEP {
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
    let mut all = [0; 256];
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
    /// The address of an element.
    fn address(&self, frame: &Frame, index: u64) -> *mut u8 {
        let offset = (index as i64).wrapping_mul(self.scale.into()).wrapping_add(self.offset);
        let base = frame.scalars[self.base as usize];
        std::ptr::with_exposed_provenance_mut(base.wrapping_add(offset as u64) as usize)
    }

    /// The address of the first element.
    fn start(&self, frame: &Frame) -> *mut u8 {
        self.address(frame, frame.scalars[self.index as usize])
    }

    /// Whether a condition that holds for all lanes lets the access happen.
    fn allowed(&self, frame: &Frame) -> bool {
        self.guard == NONE || frame.scalars[self.guard as usize] != 0
    }

    /// A bit for each lane that is accessed; `None` if that is all of them.
    fn lanes(&self, frame: &mut Frame) -> Option<[u64; 4]> {
        if self.mask == NONE {
            return None;
        }
        let mut bits = [0; 4];
        let lanes = &frame.lanes::<u8>(self.mask)[..self.lanes as usize];
        for (i, eight) in lanes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..eight.len()].copy_from_slice(eight);
            // Bytes of 0 and 1 become neighbouring bits.
            let low = u64::from_le_bytes(word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
            bits[i / 8] |= low << (i % 8 * 8);
        }
        let all = (0..4).all(|i| bits[i] == ones((self.lanes as usize).saturating_sub(64 * i)));
        (!all).then_some(bits)
    }
}

/// So many ones, at most 64.
fn ones(n: usize) -> u64 {
    if n >= 64 { u64::MAX } else { (1 << n) - 1 }
}

fn holds(bits: &[u64; 4], lane: usize) -> bool {
    bits[lane / 64] >> (lane % 64) & 1 == 1
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
unsafe fn load_row<W: Word>(frame: &mut Frame, access: &Access) {
    if !access.allowed(frame) {
        return frame.lanes::<W>(access.value).fill(W::default());
    }
    let (p, n) = (access.start(frame).cast::<W>(), access.lanes as usize);
    let Some(bits) = access.lanes(frame) else {
        let (chunks, at) = (frame.chunks, access.value as usize);
        let register = &mut W::file(frame)[at..][..chunks];
        for (i, chunk) in register.iter_mut().enumerate().take(n / STEP) {
            // SAFETY: all lanes are accessed, and these lie among them.
            *chunk = unsafe { p.wrapping_add(i * STEP).cast::<Chunk<W>>().read_unaligned() };
        }
        for i in n / STEP * STEP..n {
            // SAFETY: as above.
            register[i / STEP][i % STEP] = unsafe { p.wrapping_add(i).read_unaligned() };
        }
        return;
    };
    for (i, x) in frame.lanes::<W>(access.value)[..n].iter_mut().enumerate() {
        // SAFETY: the lane is not masked.
        let read = || unsafe { p.wrapping_add(i).read_unaligned() };
        *x = if holds(&bits, i) { read() } else { W::default() };
    }
}

/// # Safety
/// As [`load_row`].
unsafe fn store_row<W: Word>(frame: &mut Frame, access: &Access) {
    if !access.allowed(frame) {
        return;
    }
    let (p, n) = (access.start(frame).cast::<W>(), access.lanes as usize);
    let bits = access.lanes(frame);
    let (chunks, at) = (frame.chunks, access.value as usize);
    let register = &W::file(frame)[at..][..chunks];
    let Some(bits) = bits else {
        for (i, chunk) in register.iter().enumerate().take(n / STEP) {
            // SAFETY: all lanes are accessed, and these lie among them.
            unsafe { p.wrapping_add(i * STEP).cast::<Chunk<W>>().write_unaligned(*chunk) };
        }
        for i in n / STEP * STEP..n {
            // SAFETY: as above.
            unsafe { p.wrapping_add(i).write_unaligned(register[i / STEP][i % STEP]) };
        }
        return;
    };
    for (i, &x) in register.as_flattened()[..n].iter().enumerate() {
        if holds(&bits, i) {
            // SAFETY: the lane is not masked.
            unsafe { p.wrapping_add(i).write_unaligned(x) };
        }
    }
}

/// # Safety
/// As [`load_row`].
unsafe fn gather<W: Word>(frame: &mut Frame, access: &Access) {
    let (allowed, n) = (access.allowed(frame), access.lanes as usize);
    let bits = access.lanes(frame);
    for lane in 0..n {
        let mut x = W::default();
        if allowed && bits.is_none_or(|bits| holds(&bits, lane)) {
            let index = frame.lanes::<u64>(access.index)[lane];
            // SAFETY: the lane is not masked.
            x = unsafe { access.address(frame, index).cast::<W>().read_unaligned() };
        }
        frame.lanes::<W>(access.value)[lane] = x;
    }
}

/// # Safety
/// As [`load_row`].
unsafe fn scatter<W: Word>(frame: &mut Frame, access: &Access) {
    let (allowed, n) = (access.allowed(frame), access.lanes as usize);
    let bits = access.lanes(frame);
    for lane in (0..n).filter(|_| allowed) {
        if bits.is_none_or(|bits| holds(&bits, lane)) {
            let index = frame.lanes::<u64>(access.index)[lane];
            let x = frame.lanes::<W>(access.value)[lane];
            // SAFETY: the lane is not masked.
            unsafe { access.address(frame, index).cast::<W>().write_unaligned(x) };
        }
    }
}
