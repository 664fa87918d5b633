//! Products of bytes by the matrix registers of AMX (Sapphire Rapids of 2023 on), under Linux.
//!
//! Two registers hold 16 rows of A each, two 16 columns of B, with 16 factors along k, and four their
//! sums: a step multiplies 64 numbers along k of 32 rows by 32 columns, eight times as fast as vectors.
//! Operands are packed as for AVX-512 VNNI, A in rows, so that tiles of less than 16 rows are left to
//! that.

use super::bytes::{BEHIND, Write};
use super::kernels::Kernels;
use super::tile::{TileArgs, Variant};
use std::arch::asm;
use std::cell::Cell;
use std::sync::OnceLock;

/// Rows of a register.
const HEIGHT: usize = 16;

/// The most rows and vectors of a tile.
pub(super) const ROWS: usize = 2 * HEIGHT;
pub(super) const VECTORS: usize = 2;

/// Numbers along k in a register.
const DEPTH: usize = 16;

/// Whether the machine has the registers and the system lets this process use them, which it then has
/// asked for.
pub(super) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        use std::arch::x86_64::{__cpuid, __cpuid_count};
        // OSXSAVE; then AMX-TILE and AMX-INT8.
        let has = __cpuid(0).eax >= 7
            && __cpuid(1).ecx & 1 << 27 != 0
            && __cpuid_count(7, 0).edx & (1 << 24 | 1 << 25) == 1 << 24 | 1 << 25;
        has && is_permitted()
    })
}

/// Asks the system for permission: the registers enlarge what it saves of each thread.
#[cfg(target_os = "linux")]
fn is_permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call reads no memory; what it knows nothing of, it refuses.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn is_permitted() -> bool {
    false
}

/// Shapes of the registers.
#[repr(C, align(64))]
struct Shapes {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

thread_local! {
    /// Whether the registers of this thread have their shapes.
    static SHAPED: Cell<bool> = const { Cell::new(false) };
}

/// Gives the registers of this thread their shapes, if they have none.
///
/// # Safety
/// [`is_available`]. The same holds for every function below.
pub(super) unsafe fn begin() {
    if SHAPED.replace(true) {
        return;
    }
    let mut shapes =
        Shapes { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
    shapes.row_bytes[..8].fill(64);
    shapes.rows[..8].fill(HEIGHT as u8);
    // SAFETY: the machine has the registers, and the shapes are legal.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const shapes, options(nostack, readonly)) }
}

/// Gives the registers back.
pub(super) unsafe fn end() {
    SHAPED.set(false);
    // SAFETY: the machine has the registers.
    unsafe { asm!("tilerelease", options(nostack, nomem)) }
}

/// Rows of an operand: the first of two registers, the second, and bytes between rows.
#[derive(Clone, Copy)]
struct Side(*const f32, *const f32, usize);

/// [`super::bytes::tile`] of any rows by NV vectors, between [`begin`] and [`end`]; `few` are the kernels
/// for few rows.
///
/// # Safety
/// As there.
pub(super) unsafe fn tile<const NV: usize>(t: &TileArgs<f32>, few: &Kernels<f32>, write: Write) {
    if t.rows < HEIGHT {
        // SAFETY: the caller's contract.
        return unsafe { tile_of_few(t, few, NV) };
    }
    let (k, second) = (t.k - BEHIND, t.rows - HEIGHT);
    let apart = |rows: &[*const f32]| rows[1].addr().wrapping_sub(rows[0].addr());
    let a = Side(t.a[0], t.a[second], apart(&t.a));
    let b = Side(t.b, t.b.wrapping_add(HEIGHT), t.b_step as usize * size_of::<f32>());
    let c_bytes = apart(&t.c);
    let even = t.c[..t.rows].windows(2).all(|rows| apart(rows) == c_bytes);
    let in_place = !t.corrected && t.last == HEIGHT && even;
    let mut block = std::mem::MaybeUninit::<[[[f32; HEIGHT]; NV]; ROWS]>::uninit();
    let first = block.as_mut_ptr().cast::<f32>();
    let width = NV * HEIGHT;
    let sums = match in_place {
        true => Side(t.c[0], t.c[second], c_bytes),
        false => Side(first, first.wrapping_add(second * width), width * size_of::<f32>()),
    };
    // SAFETY: the caller's contract: A has `rows` rows of `k` numbers, evenly apart, B as many steps, and
    // C these rows, the block being large enough for any; numbers may be zero; the compiler does not use the
    // registers, so they keep the sums between statements.
    unsafe {
        if in_place && t.accumulate {
            load::<NV>(sums);
        } else {
            asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                options(nostack, nomem, preserves_flags));
        }
        multiply::<NV>(a, b, k / DEPTH);
        if !k.is_multiple_of(DEPTH) {
            let mut rest: Rest = std::mem::zeroed();
            let [a, b] = rest.copy(t, k, NV);
            multiply::<NV>(a, b, 1);
        }
        store::<NV>(sums);
        if !in_place {
            write(t, first, NV);
        }
    }
}

/// Adds the products of so many times 16 numbers along k.
#[inline(always)]
unsafe fn multiply<const NV: usize>(a: Side, b: Side, steps: usize) {
    let (Side(mut a0, mut a1, a_bytes), Side(mut b0, mut b1, b_bytes)) = (a, b);
    for _ in 0..steps {
        // SAFETY: the caller passes so many rows of so many numbers.
        unsafe {
            if NV == 2 {
                asm!(
                    "tileloadd tmm4, [{b0} + {b_bytes}*1]",
                    "tileloadd tmm6, [{a0} + {a_bytes}*1]",
                    "tdpbsud tmm0, tmm6, tmm4",
                    "tileloadd tmm5, [{b1} + {b_bytes}*1]",
                    "tdpbsud tmm1, tmm6, tmm5",
                    "tileloadd tmm7, [{a1} + {a_bytes}*1]",
                    "tdpbsud tmm2, tmm7, tmm4",
                    "tdpbsud tmm3, tmm7, tmm5",
                    a0 = in(reg) a0, a1 = in(reg) a1, a_bytes = in(reg) a_bytes,
                    b0 = in(reg) b0, b1 = in(reg) b1, b_bytes = in(reg) b_bytes,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, readonly, preserves_flags)
                );
            } else {
                asm!(
                    "tileloadd tmm4, [{b0} + {b_bytes}*1]",
                    "tileloadd tmm6, [{a0} + {a_bytes}*1]",
                    "tdpbsud tmm0, tmm6, tmm4",
                    "tileloadd tmm7, [{a1} + {a_bytes}*1]",
                    "tdpbsud tmm2, tmm7, tmm4",
                    a0 = in(reg) a0, a1 = in(reg) a1, a_bytes = in(reg) a_bytes,
                    b0 = in(reg) b0, b_bytes = in(reg) b_bytes,
                    out("tmm0") _, out("tmm2") _, out("tmm4") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, readonly, preserves_flags)
                );
            }
        }
        (a0, a1) = (a0.wrapping_add(DEPTH), a1.wrapping_add(DEPTH));
        let step = DEPTH * b_bytes / size_of::<f32>();
        (b0, b1) = (b0.wrapping_add(step), b1.wrapping_add(step));
    }
}

/// What is left of `k` numbers along k, with zeros behind it.
struct Rest {
    rows: [[f32; DEPTH]; ROWS],
    columns: [[f32; VECTORS * HEIGHT]; DEPTH],
}

impl Rest {
    /// Copies it.
    #[inline(never)]
    unsafe fn copy(&mut self, t: &TileArgs<f32>, k: usize, vectors: usize) -> [Side; 2] {
        let (done, left) = (k / DEPTH * DEPTH, k % DEPTH);
        // SAFETY: the caller's contract: A and B have `k` numbers along k; the copies have all of a step.
        unsafe {
            for (row, from) in self.rows.iter_mut().zip(&t.a[..t.rows]) {
                row.as_mut_ptr().copy_from_nonoverlapping(from.wrapping_add(done), left);
            }
            for (i, row) in self.columns.iter_mut().enumerate().take(left) {
                let from = t.b.wrapping_offset(t.b_step * (done + i) as isize);
                row.as_mut_ptr().copy_from_nonoverlapping(from, vectors * HEIGHT);
            }
        }
        let (rows, columns) =
            (self.rows.as_ptr().cast::<f32>(), self.columns.as_ptr().cast::<f32>());
        let second = rows.wrapping_add((t.rows - HEIGHT) * DEPTH);
        let bytes = [size_of_val(&self.rows[0]), size_of_val(&self.columns[0])];
        [Side(rows, second, bytes[0]), Side(columns, columns.wrapping_add(HEIGHT), bytes[1])]
    }
}

/// An instruction for the sums of both registers of rows, in one column of registers or both.
macro_rules! move_sums {
    ($nv:ident, $sums:ident, [$($instruction:literal),*], [$($right:literal),*], $($option:ident),*) => {{
        let Side(first, second, bytes) = $sums;
        asm!($($instruction),*, first = in(reg) first, second = in(reg) second,
            bytes = in(reg) bytes, out("tmm0") _, out("tmm2") _,
            options(nostack, preserves_flags $(, $option)*));
        if $nv == 2 {
            asm!($($right),*, first = in(reg) first.wrapping_add(HEIGHT),
                second = in(reg) second.wrapping_add(HEIGHT), bytes = in(reg) bytes,
                out("tmm1") _, out("tmm3") _, options(nostack, preserves_flags $(, $option)*));
        }
    }};
}

/// Reads the sums.
#[inline(always)]
unsafe fn load<const NV: usize>(sums: Side) {
    // SAFETY: the caller passes 16 rows at both.
    unsafe {
        move_sums!(
            NV,
            sums,
            ["tileloadd tmm0, [{first} + {bytes}*1]", "tileloadd tmm2, [{second} + {bytes}*1]"],
            ["tileloadd tmm1, [{first} + {bytes}*1]", "tileloadd tmm3, [{second} + {bytes}*1]"],
            readonly
        );
    }
}

/// Writes the sums, some rows perhaps from both registers, which then agree.
#[inline(always)]
unsafe fn store<const NV: usize>(sums: Side) {
    // SAFETY: the caller passes room for 16 rows at both.
    unsafe {
        move_sums!(
            NV,
            sums,
            ["tilestored [{first} + {bytes}*1], tmm0", "tilestored [{second} + {bytes}*1], tmm2"],
            ["tilestored [{first} + {bytes}*1], tmm1", "tilestored [{second} + {bytes}*1], tmm3"],
        );
    }
}

/// The same for fewer rows than a register has.
#[cold]
unsafe fn tile_of_few(t: &TileArgs<f32>, few: &Kernels<f32>, vectors: usize) {
    for start in (0..t.rows).step_by(few.rows) {
        let mut part = TileArgs { rows: few.rows.min(t.rows - start), ..*t };
        part.a.rotate_left(start);
        part.c.rotate_left(start);
        let kernel = few.tile(part.rows, vectors, Variant::Plain);
        // SAFETY: the caller's contract: these rows are some of the tile.
        unsafe { kernel(&part) };
    }
}
