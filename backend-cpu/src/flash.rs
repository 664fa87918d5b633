//! Flash attention: attention as products of blocks, with a compiled kernel between them.
//!
//! A task is a block of rows of one index of the batch. It goes through the blocks of columns: the
//! contraction library computes the tile, the update kernel makes weights of it, and the library
//! adds their product with the values to the sums; all of it stays in the thread's second-level
//! cache. Tasks share nothing they write, so they run in any order on any thread with one result.

use crate::library;
use crate::run::{self, Kernel, Words};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::OnceLock;
use zyx_core::DType;
use zyx_core::hal::{Arg, DeviceError, FLASH_VARS, FlashOperand, FlashSpec, Watch};
use zyx_gemm::memory::Block;
use zyx_gemm::pool::Pool;
use zyx_gemm::{Dim, Plan, Spec};

thread_local! {
    /// Tiles, sums and states of this thread, kept between launches.
    static SCRATCH: Cell<Option<Block>> = const { Cell::new(None) };
}

/// Flash attention that can run.
#[derive(Debug)]
pub(crate) struct FlashAttention {
    spec: FlashSpec,
    /// For blocks of full and of remaining rows, and in each of columns: the products of the tiles,
    /// then of the sums. Each is for one thread, the one that has the block.
    plans: [[Vec<Plan>; 2]; 2],
    update: Arc<Kernel>,
    finish: Arc<Kernel>,
    /// Bytes each operand has to span.
    spans: Vec<usize>,
    /// Buffers that either kernel has beyond the shared ones, and scalars beyond the shared ones.
    own: [[usize; 2]; 2],
    /// Where each tile, sum and state begins in a thread's scratch memory, and its bytes in all.
    places: Vec<usize>,
    scratch: usize,
}

/// A kernel with the numbers of its own buffers and scalars.
pub(crate) type Own = (Arc<Kernel>, [usize; 2]);

impl FlashAttention {
    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        let plans = self.plans.iter().flatten().map(Vec::len).sum::<usize>();
        plans * library::PLAN + self.update.bytes() + self.finish.bytes()
    }

    /// The flash attention, if the library does it.
    pub(crate) fn new(
        spec: &FlashSpec,
        options: &zyx_gemm::Options,
        [update, finish]: [Own; 2],
    ) -> Option<FlashAttention> {
        let [rows, columns] = [spec.rows, spec.columns];
        let [block_rows, block_columns] = spec.block;
        if rows == 0 || columns == 0 || spec.batches() == 0 {
            return None;
        }
        let tails = [[block_rows, rows % block_rows], [block_columns, columns % block_columns]];
        let options = zyx_gemm::Options { threads: Some(1), ..*options };
        let plans = |r: usize, c: usize| -> Option<Vec<Plan>> {
            if r == 0 || c == 0 {
                return Some(Vec::new());
            }
            let tiles = (0..spec.tiles.len()).map(|i| tile_spec(spec, i, r, c));
            let sums = (0..spec.sums.len()).map(|i| sum_spec(spec, i, r, c));
            tiles.chain(sums).map(|own| Plan::new(&own?, &options).ok()).collect()
        };
        let row_of = |r: usize| Some([plans(r, tails[1][0])?, plans(r, tails[1][1])?]);
        let plans = [row_of(tails[0][0])?, row_of(tails[0][1])?];
        let bytes = spec.acc.size();
        let cells = block_rows * block_columns;
        let sizes = std::iter::repeat_n(cells, spec.tiles.len() + spec.spare)
            .chain(spec.sums.iter().map(|sum| block_rows * sum.b.width()))
            .chain(std::iter::repeat_n(block_rows, spec.state.len()));
        let mut places = Vec::new();
        let mut scratch = 0;
        for size in sizes {
            places.push(scratch);
            // An odd number of cache lines apart, lest tiles share the sets of a cache.
            scratch += ((size * bytes).div_ceil(64) | 1) * 64;
        }
        let spans = operand_spans(spec)?;
        let own = [update.1, finish.1];
        let (update, finish) = (update.0, finish.0);
        Some(FlashAttention {
            spec: spec.clone(),
            plans,
            update,
            finish,
            spans,
            own,
            places,
            scratch,
        })
    }

    pub(crate) fn launch(&self, pool: &Pool, args: &[Arg<'_, Block>]) -> Result<(), DeviceError> {
        let n_operands = self.spans.len();
        let [[update_buffers, update_scalars], [finish_buffers, _]] = self.own;
        let given = self.spec.buffers();
        let (operands, rest) = args.split_at(n_operands);
        let (of_update, rest) = rest.split_at(update_buffers);
        let (of_finish, scalars) = rest.split_at(finish_buffers);
        run::check_spans(operands, &self.spans)?;
        let (update_scalars, finish_scalars) = scalars.split_at(update_scalars);
        self.update.check_own([given, FLASH_VARS], of_update, update_scalars)?;
        self.finish.check_own([given, FLASH_VARS], of_finish, finish_scalars)?;
        let ready = Ready {
            flash: self,
            operands: run::words(operands),
            update: [run::words(of_update), run::words(update_scalars)],
            finish: [run::words(of_finish), run::words(finish_scalars)],
            pool,
            watch: Watch::here(),
            failed: OnceLock::new(),
        };
        let tasks = self.spec.batches() * self.row_blocks();
        pool.run(tasks, 1, &|range| ready.tasks(range));
        match ready.failed.into_inner() {
            Some(reason) => Err(run::driver("flash", reason)),
            None => Ok(()),
        }
    }

    fn row_blocks(&self) -> usize {
        self.spec.rows.div_ceil(self.spec.block[0])
    }
}

/// The product that a tile is.
fn tile_spec(spec: &FlashSpec, i: usize, rows: usize, columns: usize) -> Option<Spec> {
    let tile = &spec.tiles[i];
    let k = tile.a.inner.iter().zip(&tile.b.inner).map(|(a, b)| Dim::k(a.0, a.1, b.1));
    Some(Spec {
        a: library::dtype(tile.a.dtype)?,
        b: library::dtype(tile.b.dtype)?,
        acc: library::acc(spec.acc)?,
        c: library::dtype(spec.acc)?,
        batch: Vec::new(),
        m: vec![Dim::m(rows, tile.a.along, spec.block[1] as isize)],
        n: vec![Dim::n(columns, tile.b.along, 1)],
        k: k.collect(),
    })
}

/// The product that is added to a sum.
fn sum_spec(spec: &FlashSpec, i: usize, rows: usize, columns: usize) -> Option<Spec> {
    let operand = &spec.sums[i].b;
    let width = operand.width();
    let mut stride = width;
    let n = operand.inner.iter().map(|&(len, b)| {
        stride /= len.max(1);
        Dim::n(len, b, stride as isize)
    });
    Some(Spec {
        a: library::dtype(spec.acc)?,
        b: library::dtype(operand.dtype)?,
        acc: library::acc(spec.acc)?,
        c: library::dtype(spec.acc)?,
        batch: Vec::new(),
        m: vec![Dim::m(rows, spec.block[1] as isize, width as isize)],
        n: n.collect(),
        k: vec![Dim::k(columns, 1, operand.along)],
    })
}

/// Bytes that each operand spans; `None` if one begins before its buffer.
fn operand_spans(spec: &FlashSpec) -> Option<Vec<usize>> {
    let lengths = |i: usize| {
        let is_row = i < 2 * spec.tiles.len() && i.is_multiple_of(2);
        if is_row { spec.rows } else { spec.columns }
    };
    let span = |(i, operand): (usize, &FlashOperand)| {
        let batch = spec.batch.iter().copied().zip(operand.batch.iter().copied());
        let along = (lengths(i), operand.along);
        let (mut low, mut high) = (operand.offset, operand.offset);
        for (len, stride) in batch.chain([along]).chain(operand.inner.iter().copied()) {
            let reach = isize::try_from(len.checked_sub(1)?).ok()?.checked_mul(stride)?;
            low = low.checked_add(reach.min(0))?;
            high = high.checked_add(reach.max(0))?;
        }
        (low >= 0).then(|| (high as usize + 1) * operand.dtype.size())
    };
    spec.operands().enumerate().map(span).collect()
}

/// Flash attention with the arguments of one launch, which were checked.
struct Ready<'a> {
    flash: &'a FlashAttention,
    /// Addresses of the operands.
    operands: Words,
    /// Addresses and scalars that the kernels have of their own.
    update: [Words; 2],
    finish: [Words; 2],
    pool: &'a Pool,
    watch: Watch,
    failed: OnceLock<String>,
}

impl Ready<'_> {
    /// Executes some tasks.
    fn tasks(&self, range: Range<usize>) {
        let flash = self.flash;
        let scratch = match SCRATCH.take() {
            Some(block) if block.len() >= flash.scratch => Ok(block),
            _ => Block::new(flash.scratch),
        };
        let scratch = match scratch {
            Ok(scratch) => scratch,
            Err(error) => {
                let _ = self.failed.set(error.to_string());
                return;
            }
        };
        for task in range.take_while(|_| !self.watch.is_stopped()) {
            // What sees most columns first, so that no thread is left with it at the end.
            let blocks = flash.row_blocks();
            let (batch, block) = (task / blocks, blocks - 1 - task % blocks);
            if let Err(error) = self.rows(batch, block, scratch.as_ptr()) {
                let _ = self.failed.set(error);
            }
        }
        SCRATCH.set(Some(scratch));
    }

    /// A block of rows from start to end.
    fn rows(&self, batch: usize, block: usize, scratch: *mut u8) -> Result<(), String> {
        let flash = self.flash;
        let spec = &flash.spec;
        let first = block * spec.block[0];
        let n_rows = spec.block[0].min(spec.rows - first);
        let buffers: Words =
            flash.places.iter().map(|&place| scratch.wrapping_add(place) as u64).collect();
        self.reset(&buffers, n_rows);
        let operands = self.addresses(batch);
        for start in (0..spec.columns).step_by(spec.block[1]) {
            let n_columns = spec.block[1].min(spec.columns - start);
            if !spec.is_seen(first..first + n_rows, start..start + n_columns) {
                continue;
            }
            let full = |n: usize, most: usize| usize::from(n < most);
            let plans = &flash.plans[full(n_rows, spec.block[0])][full(n_columns, spec.block[1])];
            for i in 0..spec.tiles.len() {
                let (a, b) = (&spec.tiles[i].a, &spec.tiles[i].b);
                let a = at(operands[2 * i], a, first);
                let b = at(operands[2 * i + 1], b, start);
                let c = buffers[i] as *mut u8;
                // SAFETY: spans of the operands were checked for all rows and columns, the tile is
                // this thread's own and as large as a block.
                unsafe { plans[i].run(self.pool, (a, b, c), false, None) }
                    .map_err(|error| error.to_string())?;
            }
            let place = [batch, first, start, n_rows, n_columns];
            // SAFETY: scratch buffers are as long as the kernel declares, its own arguments were
            // checked; rows of different tasks are disjoint.
            unsafe { flash.update.run_here(&words(&buffers, &self.update, place)) };
            for (i, sum) in spec.sums.iter().enumerate() {
                let number = spec.tiles.len() + i;
                let a = buffers[sum.tile] as *const u8;
                let b = at(operands[2 * spec.tiles.len() + i], &sum.b, start);
                let c = buffers[spec.tiles.len() + spec.spare + i] as *mut u8;
                // SAFETY: as above.
                unsafe { plans[number].run(self.pool, (a, b, c), true, None) }
                    .map_err(|error| error.to_string())?;
            }
        }
        let place = [batch, first, 0, n_rows, 0];
        // SAFETY: as for the update.
        unsafe { flash.finish.run_here(&words(&buffers, &self.finish, place)) };
        Ok(())
    }

    /// Sums to zero and states to their first values.
    fn reset(&self, buffers: &[u64], n_rows: usize) {
        let spec = &self.flash.spec;
        let first = spec.tiles.len() + spec.spare;
        let sums = spec.sums.iter().map(|sum| (n_rows * sum.b.width(), 0));
        let states = spec.state.iter().map(|x| (n_rows, x.bits()));
        for (&buffer, (len, bits)) in buffers[first..].iter().zip(sums.chain(states)) {
            match spec.acc {
                DType::F64 => fill(buffer as *mut f64, len, f64::from_bits(bits)),
                _ => fill(buffer as *mut f32, len, f32::from_bits(bits as u32)),
            }
        }
    }

    /// Addresses of the operands' first elements for an index of the batch.
    fn addresses(&self, batch: usize) -> Words {
        let spec = &self.flash.spec;
        let of = |(operand, &word): (&FlashOperand, &u64)| {
            let (mut offset, mut rest) = (operand.offset, batch);
            for (&len, &stride) in spec.batch.iter().zip(&operand.batch).rev() {
                offset += (rest % len) as isize * stride;
                rest /= len;
            }
            word.wrapping_add_signed((offset * operand.dtype.size() as isize) as i64)
        };
        spec.operands().zip(&self.operands).map(of).collect()
    }
}

/// The address of a row or column of an operand.
fn at(address: u64, operand: &FlashOperand, index: usize) -> *const u8 {
    let offset = index as isize * operand.along * operand.dtype.size() as isize;
    address.wrapping_add_signed(offset as i64) as *const u8
}

fn fill<T: Copy>(buffer: *mut T, len: usize, value: T) {
    for i in 0..len {
        // SAFETY: the caller's buffer has so many elements of a block, which are this thread's own.
        unsafe { buffer.wrapping_add(i).write(value) };
    }
}

/// The arguments of a kernel: shared buffers, its own, where the block is, its own scalars.
fn words(buffers: &[u64], own: &[Words; 2], place: [usize; FLASH_VARS]) -> Words {
    let mut words = Words::from_slice(buffers);
    words.extend_from_slice(&own[0]);
    words.extend(place.map(|x| x as u64));
    words.extend_from_slice(&own[1]);
    words
}
