//! The registers of a block program.
//!
//! A vector register is a run of chunks of [`STEP`] elements, which the compiler makes vector
//! instructions of. Elements are words of their width; what they mean is up to the operation.
//! Operations work on whole chunks: lanes beyond those of a value hold anything.

use std::cell::Cell;

/// Elements of a chunk.
pub(super) const STEP: usize = 16;

/// A chunk of a register.
pub(super) type Chunk<W> = [W; STEP];

/// All registers of a thread.
#[derive(Default, Debug)]
pub(super) struct Frame {
    /// Chunks of registers that the operation under way works on.
    pub(super) chunks: usize,
    /// Bits of scalars, zero-extended.
    pub(super) scalars: Vec<u64>,
    pub(super) w8: Vec<Chunk<u8>>,
    pub(super) w16: Vec<Chunk<u16>>,
    pub(super) w32: Vec<Chunk<u32>>,
    pub(super) w64: Vec<Chunk<u64>>,
    /// Private arrays, at least eight bytes for each element.
    pub(super) storage: Vec<u64>,
    /// The address of the operand [`ROW`].
    row: usize,
}

/// An operand that is a row of memory.
pub(super) const ROW: u32 = 1 << 31;

/// A word that elements are kept in.
pub(super) trait Word: Copy + Default + Eq + 'static {
    /// The registers of such words.
    fn file(frame: &mut Frame) -> &mut Vec<Chunk<Self>>;
    /// Those, and the registers of truth values; `None` where they are the same.
    fn with_bools(frame: &mut Frame) -> Option<(&mut [Chunk<Self>], &mut [Chunk<u8>])>;
    /// The word with these low bits.
    fn of(bits: u64) -> Self;
    /// The bits, zero-extended.
    fn bits(self) -> u64;
}

macro_rules! words {
    ($($word:ident $file:ident $bools:expr;)*) => {
        $(impl Word for $word {
            #[inline(always)]
            fn file(frame: &mut Frame) -> &mut Vec<Chunk<$word>> {
                &mut frame.$file
            }
            #[inline(always)]
            fn with_bools(frame: &mut Frame) -> Option<(&mut [Chunk<$word>], &mut [Chunk<u8>])> {
                let bools: fn(&mut Frame) -> Option<(&mut [Chunk<$word>], &mut [Chunk<u8>])> = $bools;
                bools(frame)
            }
            #[inline(always)]
            fn of(bits: u64) -> $word {
                bits as $word
            }
            #[inline(always)]
            fn bits(self) -> u64 {
                self as u64
            }
        })*
    };
}

words! {
    u8 w8 |_| None;
    u16 w16 |frame| Some((&mut frame.w16, &mut frame.w8));
    u32 w32 |frame| Some((&mut frame.w32, &mut frame.w8));
    u64 w64 |frame| Some((&mut frame.w64, &mut frame.w8));
}

/// The chunks of registers of one file, any of which may be the same: `n` from each of `at` on.
#[inline(always)]
pub(super) fn registers<W: Word, const K: usize>(
    file: &mut [Chunk<W>],
    n: usize,
    at: [u32; K],
) -> [&[Cell<Chunk<W>>]; K] {
    let cells = Cell::from_mut(file).as_slice_of_cells();
    let fits = |&at: &u32| cells.len().checked_sub(n).is_some_and(|last| at as usize <= last);
    if !at.iter().all(fits) {
        no_such_register();
    }
    // SAFETY: the chunks from each place on lie in the file, as just checked.
    at.map(|at| unsafe { cells.get_unchecked(at as usize..at as usize + n) })
}

/// The chunks of two operands, registers or [`ROW`], and of a register that they go to.
#[inline(always)]
pub(super) fn operands(
    frame: &mut Frame,
    from: [u32; 2],
    to: u32,
) -> ([*const Chunk<u32>; 2], &[Cell<Chunk<u32>>]) {
    let Frame { chunks, w32, row, .. } = frame;
    let cells = Cell::from_mut(&mut w32[..]).as_slice_of_cells();
    let fits = |at: u32| cells.len().checked_sub(*chunks).is_some_and(|last| at as usize <= last);
    if !fits(to) {
        no_such_register();
    }
    let from = from.map(|at| match fits(at) {
        true => cells.as_ptr().cast::<Chunk<u32>>().wrapping_add(at as usize),
        false if at == ROW => std::ptr::with_exposed_provenance(*row),
        false => no_such_register(),
    });
    // SAFETY: so many chunks lie in the file, as just checked.
    (from, unsafe { cells.get_unchecked(to as usize..to as usize + *chunks) })
}

/// One place for all operations, which stay small so.
#[cold]
#[inline(never)]
pub(super) fn no_such_register() -> ! {
    panic!("invariant: a frame has the registers of the program that runs on it")
}

impl Frame {
    /// Says where the operand [`ROW`] is.
    ///
    /// # Safety
    /// As many chunks as an operation is asked for can be read there, until another row is named; nobody
    /// writes them meanwhile.
    pub(super) unsafe fn set_row(&mut self, row: *const u8) {
        self.row = row.expose_provenance();
    }

    /// Makes room for so many chunks of each width and so many scalars and bytes of storage.
    pub(super) fn reserve(&mut self, sizes: &Sizes) {
        fn grow<T: Clone>(file: &mut Vec<T>, len: usize, zero: T) {
            if file.len() < len {
                file.resize(len, zero);
            }
        }
        let [w8, w16, w32, w64] = sizes.registers.map(|n| n as usize * sizes.chunks);
        grow(&mut self.scalars, sizes.scalars, 0);
        grow(&mut self.w8, w8, [0; STEP]);
        grow(&mut self.w16, w16, [0; STEP]);
        grow(&mut self.w32, w32, [0; STEP]);
        grow(&mut self.w64, w64, [0; STEP]);
        grow(&mut self.storage, sizes.storage.div_ceil(8), 0);
    }

    /// The words of a register from its first lane on.
    #[inline(always)]
    pub(super) fn lanes<W: Word>(&mut self, register: u32) -> &mut [W] {
        W::file(self)[register as usize..].as_flattened_mut()
    }

    /// Bits of a lane of a register whose elements have `1 << width` bytes.
    pub(super) fn lane(&mut self, width: u8, register: u32, lane: usize) -> u64 {
        match width {
            0 => self.lanes::<u8>(register)[lane].bits(),
            1 => self.lanes::<u16>(register)[lane].bits(),
            2 => self.lanes::<u32>(register)[lane].bits(),
            _ => self.lanes::<u64>(register)[lane],
        }
    }

    /// Sets a lane.
    pub(super) fn set_lane(&mut self, width: u8, register: u32, lane: usize, bits: u64) {
        match width {
            0 => self.lanes::<u8>(register)[lane] = u8::of(bits),
            1 => self.lanes::<u16>(register)[lane] = u16::of(bits),
            2 => self.lanes::<u32>(register)[lane] = u32::of(bits),
            _ => self.lanes::<u64>(register)[lane] = bits,
        }
    }
}

/// What a program needs of a [`Frame`].
#[derive(Clone, Debug, Default)]
pub(super) struct Sizes {
    pub(super) chunks: usize,
    pub(super) scalars: usize,
    /// Registers of each width.
    pub(super) registers: [u32; 4],
    /// Bytes of private arrays.
    pub(super) storage: usize,
}
