//! Products of 8-bit integers, signed or not, summed in `i32`: copies of blocks of A and B, and tiles.
//!
//! A number of a packed operand is a *factor*: the bytes of four neighbouring steps of k of one row or
//! column or, where no instruction multiplies bytes, the words of two, in the place of one sum. Where
//! steps do not fill the last, zeros follow in A, and something in B. The orders are those of `pack`.
//! Sums are exact modulo 2^32, so that results depend on no order. They lie in the place of `f32`,
//! which those who only move them take them for.
//!
//! An instruction for bytes takes each side as signed, or as not. Where an operand is the other, its
//! bytes are packed with the upper bit inverted: a number x of it becomes a factor x', which is x less
//! 128 or -128, the same d for all. With d and e for the two operands, the sum of x y is that of
//! x' y', e times that of x', d times that of y', and d e for each step. What depends on x' only lies
//! behind each packed row, what depends on y' behind each column, and a tile adds both.

use super::offsets::Offsets;
use super::pack::{AHEAD, Panel, Piece, Rows, prefetch};
use super::simd::{Factors, Interleave, Simd};
use super::spec::DType;
use super::store::Store;
use super::tile::{MAX_ROWS, SPREAD, TileArgs, prefetch_row};

/// The most steps of k in a factor.
pub(super) const MAX_DEPTH: usize = 4;

/// Columns packed at a time.
pub(super) const ROW: usize = 16;

/// Packed numbers behind those of the steps; of words, zeros.
pub(super) const BEHIND: usize = 1;

/// How bytes of an operand become factors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Form {
    /// The upper bit, if it is inverted in each byte; words are then less by this.
    pub(super) mask: u8,
    /// Steps in a factor.
    pub(super) depth: usize,
    /// Factors in a vector, at most [`ROW`].
    pub(super) lanes: usize,
    /// How much more elements of this operand are than their factors, and those of the other.
    own: i32,
    other: i32,
}

impl Form {
    /// For both operands, where factors are bytes with such signs, or words.
    pub(super) fn of(
        dtypes: [DType; 2],
        signed: Option<[bool; 2]>,
        (depth, lanes): (usize, usize),
    ) -> [Form; 2] {
        let is_signed = dtypes.map(|dtype| dtype == DType::I8);
        let form = |inverted, own, other| {
            let mask = if inverted { 0x80 } else { 0 };
            Form { mask, depth, lanes, own, other }
        };
        let Some(signed) = signed else {
            return is_signed.map(|is_signed| form(is_signed, 0, 0));
        };
        let [a, b] = [0, 1].map(|side| match (is_signed[side], signed[side]) {
            (true, false) => -128,
            (false, true) => 128,
            _ => 0,
        });
        [form(a != 0, a, b), form(b != 0, b, a)]
    }

    /// Whether tiles have something to add for this operand.
    pub(super) fn corrects(self) -> bool {
        self.other != 0
    }

    /// The number of these bytes.
    #[inline(always)]
    fn number(self, bytes: [u8; MAX_DEPTH]) -> f32 {
        let bits = match self.depth {
            MAX_DEPTH => u32::from_ne_bytes(bytes.map(|byte| byte ^ self.mask)),
            _ => {
                let [low, high] = [bytes[0], bytes[1]].map(|b| self.word(b).to_ne_bytes());
                u32::from_ne_bytes([low[0], low[1], high[0], high[1]])
            }
        };
        f32::from_bits(bits)
    }

    /// The word of a byte.
    #[inline(always)]
    fn word(self, byte: u8) -> i16 {
        i16::from(byte ^ self.mask) - i16::from(self.mask)
    }

    /// What a tile adds for a row or a column of which the factors of so many steps have this sum;
    /// what is the same for all comes with the columns.
    #[inline(always)]
    pub(super) fn behind(self, steps: usize, side: usize) -> (i32, i32) {
        (self.own.wrapping_mul((steps * side) as i32), self.other)
    }
}

/// The offsets of the steps in the number of step `i` of `k` from `k0` on; of those that there are not,
/// the last one's.
#[inline(always)]
fn steps(offsets: &Offsets, (k0, k): (usize, usize), i: usize) -> [isize; MAX_DEPTH] {
    std::array::from_fn(|j| offsets.at(k0 + (i + j).min(k - 1)))
}

/// The `n` bytes at `p`, so far apart, at most [`ROW`], the first of them lowest.
#[inline(never)]
pub(super) unsafe fn few(p: *const u8, step: isize, n: usize) -> u128 {
    // SAFETY: the caller passes n bytes, of which numbers that overlap are read.
    unsafe {
        if step != 1 {
            let at = |i: usize| u128::from(*p.wrapping_offset(step.wrapping_mul(i as isize)));
            return (0..n).rev().fold(0, |bytes, i| bytes << 8 | at(i));
        }
        macro_rules! twice {
            ($type:ty) => {{
                const SIZE: usize = size_of::<$type>();
                let [low, high] = [p, p.wrapping_add(n - SIZE)].map(|p| {
                    u128::from(<$type>::from_le_bytes(p.cast::<[u8; SIZE]>().read_unaligned()))
                });
                low | high << (8 * (n - SIZE))
            }};
        }
        match n {
            8.. => twice!(u64),
            4.. => twice!(u32),
            2.. => twice!(u16),
            1 => u128::from(*p),
            0 => 0,
        }
    }
}

/// Packs a panel from the runs along n listed in its pieces.
///
/// # Safety
/// The elements described must be readable, the destination writable and not aliased. The same
/// holds for every function of this file.
#[inline(always)]
pub(super) unsafe fn panel_runs<I: Interleave>(p: &Panel<'_, f32>) {
    let mask = p.form.mask;
    let (depth, lanes) = I::FORM.unwrap_or((p.form.depth, p.form.lanes));
    let columns = p.vectors * lanes;
    let step = p.n_offsets.step;
    let first = p.src.wrapping_offset(if p.contiguous { p.n_offsets.at(p.n0) } else { 0 });
    for (row, i) in (0..p.k).step_by(depth).enumerate() {
        let dst = p.dst.wrapping_add(row * columns);
        let rows = steps(p.k_offsets, (p.k0, p.k), i).map(|step| first.wrapping_offset(step));
        if p.contiguous {
            for step in steps(p.k_offsets, (p.k0, p.k), (i + AHEAD).min(p.k - 1)) {
                prefetch(first.wrapping_offset(step));
            }
        }
        let insert = |all: &mut [I::Row; MAX_DEPTH], step, lanes, offset: isize| {
            let rows = rows.map(|row| row.wrapping_offset(offset));
            // SAFETY: the caller's contract: all steps have these lanes.
            unsafe {
                if (step, lanes) == (1, (0, ROW)) {
                    *all = rows.map(|row| I::row(row));
                } else {
                    for (bytes, row) in all.iter_mut().zip(rows) {
                        *bytes = I::insert(*bytes, row, step, lanes);
                    }
                }
            }
        };
        // As many at a time as there are in a row, or in a vector, which pieces belong to.
        let most = if p.contiguous { ROW } else { lanes };
        for column in (0..columns).step_by(most) {
            // SAFETY: the row of the panel is inside the destination.
            unsafe {
                let mut all = [I::no_row(); MAX_DEPTH];
                if p.contiguous {
                    let n = most.min(p.width - column);
                    insert(&mut all, 1, (0, n), column as isize);
                } else {
                    let v = column / lanes;
                    let [start, end] = [v, v + 1].map(|v| p.piece_starts[v] as usize);
                    for &Piece { lo, hi, offset } in &p.pieces[start..end] {
                        insert(&mut all, step, (lo as usize, hi as usize), offset);
                    }
                }
                let n = most.min(columns - column);
                I::interleave(all, mask, depth, dst.wrapping_add(column), n);
            }
        }
    }
}

/// Packs a panel from runs along k.
#[inline(always)]
pub(super) unsafe fn panel_transposed<I: Interleave>(p: &Panel<'_, f32>) {
    let Form { mask, depth, lanes, .. } = p.form;
    let columns = p.vectors * lanes;
    let mut i = 0;
    while i < p.k {
        let left = p.k_offsets.left_in_run(p.k0 + i).min(p.k - i);
        let dst = p.dst.wrapping_add(i / depth * columns);
        // SAFETY: these columns have these steps, and the destination as many rows.
        unsafe {
            if left < ROW / MAX_DEPTH * depth {
                gather(p, i, (0, columns), dst);
                i += depth;
                continue;
            }
            let src = p.src.wrapping_offset(p.k_offsets.at(p.k0 + i));
            let whole = p.width / 4 * 4;
            for column in (0..whole).step_by(4) {
                let rows: [*const u8; 4] =
                    std::array::from_fn(|j| src.wrapping_offset(p.n_offsets.at(p.n0 + column + j)));
                I::transpose(rows, mask, depth, dst.wrapping_add(column), columns);
            }
            for number in 0..ROW / MAX_DEPTH {
                let dst = dst.wrapping_add(number * columns);
                gather(p, i + number * depth, (whole, columns), dst);
            }
        }
        i += ROW / MAX_DEPTH * depth;
    }
}

/// Packs the numbers of step `i` of columns `from` to `to`, and something for those that there are not.
unsafe fn gather(p: &Panel<'_, f32>, i: usize, (from, to): (usize, usize), dst: *mut f32) {
    let steps = steps(p.k_offsets, (p.k0, p.k), i);
    for column in from..to {
        let mut bytes = [0; MAX_DEPTH];
        if column < p.width {
            let src = p.src.wrapping_offset(p.n_offsets.at(p.n0 + column));
            // SAFETY: the column has these steps.
            bytes = steps.map(|step| unsafe { *src.wrapping_offset(step) });
        }
        // SAFETY: the caller passes room for these numbers.
        unsafe { *dst.wrapping_add(column) = p.form.number(bytes) };
    }
}

/// Packs a panel element by element.
pub(super) unsafe fn panel_scattered(p: &Panel<'_, f32>) {
    let columns = p.vectors * p.form.lanes;
    for (row, i) in (0..p.k).step_by(p.form.depth).enumerate() {
        // SAFETY: the row of the panel has so many numbers.
        unsafe { gather(p, i, (0, columns), p.dst.wrapping_add(row * columns)) };
    }
}

/// Packs a block of A into rows along k.
pub(super) unsafe fn rows(p: &Rows<'_, f32>) {
    let Form { depth, mask, other, .. } = p.form;
    let end = p.k.div_ceil(depth);
    for m in 0..p.rows {
        let src = p.src.wrapping_offset(p.m_offsets.at(p.m0 + m));
        let dst = p.dst.wrapping_add(m * p.row_stride);
        // SAFETY: a row has room for whole numbers, and one more; each run is inside row m at both
        // ends.
        unsafe {
            let bytes = dst.cast::<u8>();
            let mut i = 0;
            while i < p.k {
                let run = p.k_offsets.left_in_run(p.k0 + i).min(p.k - i);
                let from = src.wrapping_offset(p.k_offsets.at(p.k0 + i));
                if p.k_offsets.step == 1 && run >= ROW {
                    bytes.wrapping_add(i).copy_from_nonoverlapping(from, run);
                } else {
                    let mut from = from;
                    for j in 0..run {
                        *bytes.wrapping_add(i + j) = *from;
                        from = from.wrapping_offset(p.k_offsets.step);
                    }
                }
                i += run;
            }
            bytes.wrapping_add(p.k).write_bytes(0, end * depth - p.k);
            let mut sum = 0_i32;
            if depth < MAX_DEPTH {
                // From the last on, for a word takes the place of two bytes.
                for i in (0..end * depth).rev() {
                    let word = p.form.word(*bytes.wrapping_add(i));
                    dst.cast::<i16>().wrapping_add(i).write_unaligned(word);
                }
            } else if mask != 0 || other != 0 {
                // Factors of A are signed.
                for factor in std::slice::from_raw_parts_mut(bytes, end * depth) {
                    *factor ^= mask;
                    sum = sum.wrapping_add(factor.cast_signed().into());
                }
            }
            *dst.wrapping_add(end).cast() = sum.wrapping_mul(other);
        }
    }
}

/// Packs a block of A into strips: for every tile, and in it for every number, its rows side by side.
///
/// Behind the last is room for the sums of the rows, then zeros for tiles that read more rows.
#[inline(always)]
pub(super) unsafe fn strips<I: Interleave>(p: &Rows<'_, f32>) {
    let Form { mask, depth, .. } = p.form;
    for tile in 0..p.tiles {
        let (start, end) = (tile * p.rows / p.tiles, (tile + 1) * p.rows / p.tiles);
        let (rows, strip) = (end - start, p.dst.wrapping_add(start * p.row_stride));
        let adjacent = p.m_offsets.step == 1 && p.m_offsets.left_in_run(p.m0 + start) >= rows;
        let mut dst = strip;
        for i in (0..p.k).step_by(depth) {
            let steps = steps(p.k_offsets, (p.k0, p.k), i);
            let n = depth.min(p.k - i);
            let run = match p.k_offsets.step {
                1 => p.k_offsets.left_in_run(p.k0 + i).min(n),
                _ => 1,
            };
            // SAFETY: the rows are inside A, and the strip inside the destination.
            unsafe {
                if adjacent && run == 1 {
                    let from = p.src.wrapping_offset(p.m_offsets.at(p.m0 + start));
                    let mut all = [I::no_row(); MAX_DEPTH];
                    for (row, step) in all.iter_mut().zip(steps).take(n) {
                        *row = I::insert(*row, from.wrapping_offset(step), 1, (0, rows));
                    }
                    I::interleave(all, mask, depth, dst, rows);
                } else {
                    for m in 0..rows {
                        let from = p.src.wrapping_offset(p.m_offsets.at(p.m0 + start + m));
                        let mut bytes = [0; MAX_DEPTH];
                        if run == MAX_DEPTH {
                            bytes =
                                from.wrapping_offset(steps[0]).cast::<[u8; 4]>().read_unaligned();
                        } else {
                            for (byte, step) in bytes.iter_mut().zip(steps).take(n) {
                                *byte = *from.wrapping_offset(step);
                            }
                        }
                        *dst.wrapping_add(m) = p.form.number(bytes);
                    }
                }
            }
            dst = dst.wrapping_add(rows);
        }
        // SAFETY: a strip has room for the sums of its rows, and `TileShape::row_stride` more numbers.
        unsafe { dst.wrapping_add(BEHIND * rows).write_bytes(0, MAX_ROWS) };
    }
}

/// Writes, behind `steps` rows of `n` factors, what a tile adds for each; `side` is 1 for B.
#[inline(always)]
pub(super) unsafe fn add_up<S: Factors>(
    first: *mut f32,
    steps: usize,
    n: usize,
    side: usize,
    form: Form,
) {
    let behind = first.wrapping_add(steps * n);
    if form.other == 0 {
        // SAFETY: the caller passes room for one more row.
        return unsafe { behind.write_bytes(0, n) };
    }
    let (term, factor) = form.behind(steps * S::DEPTH, side);
    for i in (0..n).step_by(S::F::LANES) {
        let lanes = (n - i).min(S::F::LANES);
        // SAFETY: the caller passes so many rows of so many numbers, and room for one more.
        unsafe {
            let mut sums = S::F::zero();
            for step in 0..steps {
                let at = first.wrapping_add(i + step * n).cast_const();
                let whole = lanes == S::F::LANES;
                let factors = if whole { S::F::load(at) } else { S::F::load_first(at, lanes) };
                sums = S::add_up(sums, factors, side);
            }
            S::F::store_first(behind.wrapping_add(i), lanes, S::scale(sums, term, factor));
        }
    }
}

/// Writes the sums of a tile, which lie side by side in rows of so many vectors: [`write()`] of
/// some kind.
pub(super) type Write = unsafe fn(&TileArgs<f32>, *const f32, usize);

/// [`super::tile::tile`] for factors, of MR rows by NV vectors; hands all sums to `write`.
///
/// Rows of A that the tile does not have are those of its last one again.
///
/// # Safety
/// As there; operands are packed by this file, and `write` is [`write()`].
#[inline(always)]
pub(super) unsafe fn tile<S: Factors, const MR: usize, const NV: usize>(
    t: &TileArgs<f32>,
    write: Write,
) {
    let rows: [*const f32; MR] = std::array::from_fn(|i| t.a[i.min(t.rows - 1)]);
    let (mut a, mut b, mut ahead) = (0_isize, t.b, t.ahead);
    let k = t.k - BEHIND;
    // The fetches are spread over the loop: there are a dozen miss buffers, and B needs them.
    let segments = if k < SPREAD { 0 } else { MR };
    // SAFETY: the caller's contract: there are so many steps in A and B.
    unsafe {
        let mut acc = [[S::F::zero(); NV]; MR];
        for segment in 0..=segments {
            let mut steps = k;
            if segments > 0 {
                steps = if segment < MR { k / MR } else { k % MR };
                prefetch_row::<S::F, NV>(t.c[segment % t.rows]);
                prefetch_row::<S::F, NV>(ahead);
                ahead = ahead.wrapping_offset(t.ahead_step);
            }
            for _ in 0..steps {
                let mut right = [S::F::zero(); NV];
                for (j, right) in right.iter_mut().enumerate() {
                    *right = S::F::load(b.wrapping_add(j * S::F::LANES));
                }
                for (row, acc) in rows.iter().zip(&mut acc) {
                    let left = S::F::splat(row.wrapping_offset(a));
                    for (right, acc) in right.iter().zip(acc) {
                        *acc = S::dot(*acc, left, *right);
                    }
                }
                a = a.wrapping_add(t.a_step);
                b = b.wrapping_offset(t.b_step);
            }
        }
        let block = acc;
        write(t, std::ptr::from_ref(&block).cast(), NV);
    }
}

/// Writes the sums of a tile, rows of so many vectors, to C.
///
/// # Safety
/// The sums must be readable; else as [`tile`].
#[inline(always)]
pub(super) unsafe fn write<S: Factors>(t: &TileArgs<f32>, block: *const f32, vectors: usize) {
    let end = (t.k - BEHIND) as isize;
    let of_columns = t.b.wrapping_offset(t.b_step.wrapping_mul(end));
    let (mut row, mut v) = (0, 0);
    for i in 0..t.rows * vectors {
        let (at, last) = (v * S::F::LANES, v + 1 == vectors);
        // SAFETY: the caller's contract: A and B have sums behind their steps, and C these lanes.
        unsafe {
            let of_row = S::F::splat(t.a[row].wrapping_offset(t.a_step.wrapping_mul(end)));
            let of_both = S::add(of_row, S::F::load(of_columns.wrapping_add(at)));
            let sums = S::add(S::F::load(block.wrapping_add(i * S::F::LANES)), of_both);
            let lanes = if last { t.last } else { S::F::LANES };
            let to = t.c[row].cast_mut().wrapping_add(at);
            write_first::<S>(to, lanes, sums, t.accumulate);
        }
        (row, v) = if last { (row + 1, 0) } else { (row, v + 1) };
    }
}

/// Writes or adds the first lanes.
#[inline(always)]
unsafe fn write_first<S: Factors>(
    to: *mut f32,
    lanes: usize,
    mut sums: <S::F as Simd>::V,
    accumulate: bool,
) {
    // SAFETY: the caller passes so many numbers.
    unsafe {
        if lanes == S::F::LANES {
            if accumulate {
                sums = S::add(sums, S::F::load(to));
            }
            S::F::store(to, sums);
        } else {
            if accumulate {
                sums = S::add(sums, S::F::load_first(to, lanes));
            }
            S::F::store_first(to, lanes, sums);
        }
    }
}

/// [`super::store::add`] for sums.
///
/// # Safety
/// As there.
pub(super) unsafe fn add(to: *mut f32, from: *const f32, n: usize) {
    // SAFETY: the caller's contract.
    unsafe { write_run(to.cast(), from.cast(), (1, n), true) }
}

/// Writes or adds so many sums to elements `step` apart.
unsafe fn write_run(to: *mut i32, from: *const i32, (step, n): (isize, usize), accumulate: bool) {
    // SAFETY: the caller's contract: each sum exists on both sides.
    unsafe {
        if step == 1 && !accumulate {
            return to.copy_from_nonoverlapping(from, n);
        }
        for i in 0..n {
            let to = to.wrapping_offset(step.wrapping_mul(i as isize));
            let sum = *from.wrapping_add(i);
            *to = if accumulate { sum.wrapping_add(*to) } else { sum };
        }
    }
}

/// [`super::store::store`] of sums as they are.
///
/// # Safety
/// As there.
pub(super) unsafe fn store(s: &Store<'_, f32>) {
    for m in 0..s.rows {
        let dst = s.dst.cast::<i32>().wrapping_offset(s.m_offsets.at(s.m0 + m));
        let src = s.src.cast::<i32>().wrapping_add(m * s.row_stride);
        let mut n = 0;
        while n < s.columns {
            let run = s.n_offsets.left_in_run(s.n0 + n).min(s.columns - n);
            let (to, from) = (dst.wrapping_offset(s.n_offsets.at(s.n0 + n)), src.wrapping_add(n));
            // SAFETY: the run lies inside row m of the block and of C.
            unsafe { write_run(to, from, (s.n_offsets.step, run), s.accumulate) };
            n += run;
        }
    }
}
