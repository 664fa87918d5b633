//! A distribution by groups of threads: each ranks the keys of a block in shared storage.
//!
//! Rows that fit into a block are sorted whole: all digits in turn, and nothing is distributed.
//!
//! A thread alone would place its block's keys one after the other, each at an address of its own.
//! Here a group brings a block to shared storage, sorts it there by the byte that counts, and
//! writes it out in that order, so that neighbours write side by side: the keys of a bin are a run.
//!
//! A block is sorted by four bits at a time. Each thread has sixteen keys or fewer that follow one
//! another and counts its own of each digit; the counts of all threads, digit by digit and within a
//! digit thread by thread, are summed up; what stands before a thread's count is the rank of its
//! first key of that digit (Merrill and Grimshaw 2011). Two counters share a word, so that a digit
//! and the one eight above it are summed at once. All of that is stable and nothing is atomic, so the
//! result is that of [`radix_scatter`](super::radix_scatter) on every device.

use crate::affine::AtomId;
use crate::dtype::DType;
use crate::graph::NodeId;
use crate::hal::Caps;
use crate::ir::{BarrierScope, Builder, LoopKind, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Eq, Le, Lt, Mul, Or, Shl, Shr, Sub};
use crate::ops::UnaryOp;
use crate::scalar::Scalar;
use crate::schedule::lower::Lowering;
use crate::schedule::pull::TupleId;

/// Bits of a digit that is ranked at once, and words of counters that a thread has.
const BITS: i64 = 4;
const WORDS: i64 = 1 << (BITS - 1);
/// Bins of a byte.
const BINS: i64 = 256;
/// Threads whose counts are summed by one of them.
const SEGMENT: i64 = 16;
/// Words of 32 bits that memory serves at once: after so many of them a place is left out, so that
/// threads whose places are a power of two apart do not wait for one another.
const BANKS: i64 = 32;

/// Keys that a group ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    threads: i64,
    /// Keys of a thread.
    own: i64,
}

impl Block {
    /// The largest block whose keys are distributed that a device has room for, if it wants work for many threads.
    pub(crate) fn of(caps: &Caps) -> Option<Block> {
        let sizes = [(256, 16), (256, 8), (128, 8)];
        let blocks = sizes.map(|(threads, own)| Block { threads, own });
        blocks.into_iter().find(|block| block.fits(caps, caps.shared_bytes))
    }

    /// The smallest block that holds so many keys, where a device has one.
    pub(crate) fn holding(caps: &Caps, n: usize) -> Option<Block> {
        let sizes = [(64, 4), (128, 15), (256, 16), (512, 16), (1024, 16)];
        let (threads, _) = sizes.into_iter().find(|&(threads, own)| n as i64 <= threads * own)?;
        let block = Block { threads, own: (n as i64 + threads - 1) / threads };
        block.fits(caps, caps.most_shared_bytes.max(caps.shared_bytes)).then_some(block)
    }

    fn fits(self, caps: &Caps, shared_bytes: usize) -> bool {
        let fits = self.bytes() <= shared_bytes as i64 && self.threads <= caps.max_local as i64;
        fits && !caps.has_few_threads()
    }

    /// Keys of a block.
    pub(crate) fn keys(self) -> i64 {
        self.threads * self.own
    }

    /// The threads of a group; emitted outside of the loop over groups.
    pub(super) fn threads(self, b: &mut Builder) -> Value {
        b.index(self.threads)
    }

    fn bytes(self) -> i64 {
        let counters = padded(WORDS * self.threads, BANKS);
        let words = counters + self.threads + self.threads / SEGMENT;
        8 * (padded(self.keys(), BANKS / 2) + BINS) + 4 * words
    }
}

/// How many places `n` elements take with one left out after each `run`.
fn padded(n: i64, run: i64) -> i64 {
    n + n / run
}

/// Where the sources of a distribution are.
pub(super) struct Sources {
    /// The keys, and the shift that brings the byte that counts to the lowest place.
    pub(super) x: NodeId,
    pub(super) shift: NodeId,
    /// The tuple of both, and the counter of the keys of a block in it.
    pub(super) tuple: TupleId,
    pub(super) step: AtomId,
    /// First positions, and the counter of bins in their tuple.
    pub(super) starts: NodeId,
    pub(super) first: TupleId,
    pub(super) bin: AtomId,
    /// Keys of a block and of all.
    pub(super) length: i64,
    pub(super) total: usize,
}

/// Rows that are sorted whole, each by a group.
pub(super) struct Rows {
    /// The keys, their tuple and the counter along the row in it.
    pub(super) x: NodeId,
    pub(super) tuple: TupleId,
    pub(super) step: AtomId,
    pub(super) length: i64,
    /// The number of the row.
    pub(super) row: Value,
    /// The bits that count: the first, and how many.
    pub(super) first: u8,
    pub(super) bits: u8,
}

/// Shared storage of a group.
struct Storage {
    keys: Value,
    counters: Value,
    sums: Value,
    segments: Value,
}

impl Storage {
    fn of(b: &mut Builder, block: Block) -> Storage {
        let mut shared = |dtype, n: i64| b.alloc(Space::Shared, Type::scalar(dtype), n as u32);
        Storage {
            keys: shared(DType::U64, padded(block.keys(), BANKS / 2)),
            counters: shared(DType::U32, padded(WORDS * block.threads, BANKS)),
            sums: shared(DType::U32, block.threads),
            segments: shared(DType::U32, block.threads / SEGMENT),
        }
    }
}

/// A group with the keys of a block.
struct Ranks<'l, 'a> {
    l: &'l mut Lowering<'a>,
    block: Block,
    storage: Storage,
    thread: Value,
    /// The keys, their tuple and the counter of a block's keys in it, and how many there are.
    x: NodeId,
    tuple: TupleId,
    step: AtomId,
    length: i64,
}

/// What a distribution has besides.
struct Distribution<'s> {
    sources: &'s Sources,
    /// By which a key is shifted so that the byte that counts is the lowest.
    shift: Value,
    /// For each bin its first position.
    starts: Value,
}

/// Emits what a group does, inside the loop over blocks.
pub(super) fn emit(
    l: &mut Lowering<'_>,
    sources: &Sources,
    (block, threads): (Block, Value),
    out: Value,
) {
    let storage = Storage::of(&mut l.b, block);
    let starts = l.b.alloc(Space::Shared, Type::scalar(DType::I64), BINS as u32);
    let thread = l.b.open_loop(LoopKind::Local, 0, threads);
    l.open_scope();
    let zero = l.b.index(0);
    l.counters.insert(sources.step, zero);
    let shift = l.value(sources.shift, sources.tuple, None);
    l.close_scope();
    let &Sources { x, tuple, step, length, .. } = sources;
    let mut ranks = Ranks { l, block, storage, thread, x, tuple, step, length };
    let distribution = Distribution { sources, shift, starts };
    ranks.load_starts(&distribution);
    ranks.bring();
    for digit in 0..8 / BITS {
        let shift = ranks.op(Add, shift, BITS * digit);
        ranks.sort(shift);
    }
    ranks.write(&distribution, out);
    l.b.close();
}

/// Emits what a group does with its row, inside the loop over rows.
pub(super) fn emit_rows(
    l: &mut Lowering<'_>,
    rows: &Rows,
    (block, threads): (Block, Value),
    out: Value,
) {
    let storage = Storage::of(&mut l.b, block);
    let thread = l.b.open_loop(LoopKind::Local, 0, threads);
    let &Rows { x, tuple, step, length, row, first, bits } = rows;
    let mut ranks = Ranks { l, block, storage, thread, x, tuple, step, length };
    ranks.bring();
    let digits = ranks.l.b.index(i64::from(bits).div_euclid(BITS));
    let digit = ranks.l.b.open_loop(LoopKind::Serial, 0, digits);
    let digit = ranks.l.b.cast(DType::U64, digit);
    let shift = ranks.op(Mul, digit, BITS);
    let shift = ranks.op(Add, shift, first.into());
    ranks.sort(shift);
    ranks.l.b.close();
    let start = ranks.op(Mul, row, length);
    for i in 0..block.own {
        let number = ranks.beside(i);
        let place = ranks.key_place(number);
        let key = ranks.l.b.load(ranks.storage.keys, place);
        let mut position = ranks.l.b.binary(Add, start, number);
        if length < block.keys() {
            let real = ranks.op(Lt, number, length);
            position = ranks.l.b.guard(position, real);
        }
        ranks.l.b.store(out, position, key);
    }
    ranks.l.b.close();
}

impl Ranks<'_, '_> {
    fn op(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        let dtype = self.l.b.ty(x).dtype;
        if matches!((op, by), (Add | Shl | Shr, 0) | (Mul, 1)) {
            return x;
        }
        let by = self.l.b.constant(Scalar::from_i64(dtype, by));
        self.l.b.binary(op, x, by)
    }

    fn meet(&mut self) {
        self.l.b.barrier(BarrierScope::Shared);
    }

    /// The place of element `i` where one is left out after each `run`.
    fn place(&mut self, i: Value, run: i64) -> Value {
        let skipped = self.op(BinaryOp::Div, i, run);
        self.l.b.binary(Add, i, skipped)
    }

    fn key_place(&mut self, i: Value) -> Value {
        self.place(i, BANKS / 2)
    }

    /// The number, in the block, of a thread's key: of those that lie beside its neighbours'.
    fn beside(&mut self, i: i64) -> Value {
        self.op(Add, self.thread, i * self.block.threads)
    }

    /// Brings the block to shared storage. What fills it up comes last in every order.
    fn bring(&mut self) {
        for i in 0..self.block.own {
            let number = self.beside(i);
            let key = self.key(number);
            let place = self.key_place(number);
            self.l.b.store(self.storage.keys, place, key);
        }
        self.meet();
    }

    fn key(&mut self, number: Value) -> Value {
        let (x, tuple, step, length) = (self.x, self.tuple, self.step, self.length);
        let inside = (length < self.block.keys()).then(|| self.op(Lt, number, length));
        self.l.open_scope();
        self.l.counters.insert(step, number);
        let key = self.l.value(x, tuple, inside);
        self.l.close_scope();
        let Some(inside) = inside else { return key };
        let last = self.l.b.constant(Scalar::from_bits(DType::U64, u64::MAX));
        self.l.b.select(inside, key, last)
    }

    /// The byte that counts.
    fn byte(&mut self, key: Value, shift: Value) -> Value {
        let shifted = self.l.b.binary(Shr, key, shift);
        let low = self.l.b.cast(DType::U32, shifted);
        self.op(And, low, BINS - 1)
    }

    /// Sorts the block by the digit above the bits that `shift` takes off. Keys are loaded twice, so that a thread does not hold
    /// them while it counts: registers limit how many groups share a multiprocessor.
    fn sort(&mut self, shift: Value) {
        let nothing = self.l.b.constant(Scalar::from(0u32));
        for word in 0..WORDS {
            let place = self.op(Add, self.thread, word * self.block.threads);
            let place = self.place(place, BANKS);
            self.l.b.store(self.storage.counters, place, nothing);
        }
        let mut before = Vec::new();
        for i in 0..self.block.own {
            let key = self.own_key(i);
            let (place, half) = self.counter(key, shift);
            let old = self.l.b.load(self.storage.counters, place);
            let one = self.l.b.constant(Scalar::from(1u32));
            let one = self.l.b.binary(Shl, one, half);
            let new = self.l.b.binary(Add, old, one);
            self.l.b.store(self.storage.counters, place, new);
            before.push(self.l.b.binary(Shr, old, half));
        }
        self.meet();
        self.sum_up();
        let mut ranked = Vec::new();
        for (i, before) in before.into_iter().enumerate() {
            let key = self.own_key(i as i64);
            let (place, half) = self.counter(key, shift);
            let start = self.l.b.load(self.storage.counters, place);
            let start = self.l.b.binary(Shr, start, half);
            let rank = self.l.b.binary(Add, start, before);
            // Without what the other half of the word counts.
            let keys = self.block.keys();
            let mut rank = self.op(And, rank, (keys as u64).next_power_of_two() as i64 - 1);
            if keys & (keys - 1) != 0 {
                rank = self.op(BinaryOp::Min, rank, keys - 1);
            }
            let rank = self.l.b.cast(DType::I64, rank);
            ranked.push((key, self.key_place(rank)));
        }
        self.meet();
        for (key, place) in ranked {
            self.l.b.store(self.storage.keys, place, key);
        }
        self.meet();
    }

    /// A key of those that follow one another.
    fn own_key(&mut self, i: i64) -> Value {
        let first = self.op(Mul, self.thread, self.block.own);
        let number = self.op(Add, first, i);
        let place = self.key_place(number);
        self.l.b.load(self.storage.keys, place)
    }

    /// Where the thread counts a key's digit, and by how many bits up in that word.
    fn counter(&mut self, key: Value, shift: Value) -> (Value, Value) {
        let shifted = self.l.b.binary(Shr, key, shift);
        let bits = self.l.b.cast(DType::U32, shifted);
        let word = self.op(And, bits, WORDS - 1);
        let word = self.l.b.cast(DType::I64, word);
        let word = self.op(Mul, word, self.block.threads);
        let place = self.l.b.binary(Add, word, self.thread);
        let half = self.op(And, bits, WORDS);
        (self.place(place, BANKS), self.op(Shl, half, 4 - (BITS - 1)))
    }

    /// Replaces each counter by the sum of those before it, digit by digit.
    fn sum_up(&mut self) {
        let first = self.op(Mul, self.thread, WORDS);
        let mut running = self.l.b.constant(Scalar::from(0u32));
        let mut before = Vec::new();
        for i in 0..WORDS {
            let place = self.op(Add, first, i);
            let place = self.place(place, BANKS);
            before.push((place, running));
            let count = self.l.b.load(self.storage.counters, place);
            running = self.l.b.binary(Add, running, count);
        }
        self.l.b.store(self.storage.sums, self.thread, running);
        self.meet();
        let (lane, segment) = {
            let lane = self.op(BinaryOp::Rem, self.thread, SEGMENT);
            (lane, self.op(BinaryOp::Div, self.thread, SEGMENT))
        };
        let start = self.op(Mul, segment, SEGMENT);
        let [own, all] = self.sums(self.storage.sums, Some(start), lane, SEGMENT);
        let last = self.op(Eq, lane, SEGMENT - 1);
        let place = self.l.b.guard(segment, last);
        self.l.b.store(self.storage.segments, place, all);
        self.meet();
        let segments = self.block.threads / SEGMENT;
        let [before_segment, all] = self.sums(self.storage.segments, None, segment, segments);
        // The digits of upper halves come after those of all lower ones.
        let lower = self.op(Shl, all, 16);
        let base = self.l.b.binary(Add, own, before_segment);
        let base = self.l.b.binary(Add, base, lower);
        for (place, sum) in before {
            let sum = self.l.b.binary(Add, base, sum);
            self.l.b.store(self.storage.counters, place, sum);
        }
        self.meet();
    }

    /// The sum of the first `count` of `n` words, and of all.
    fn sums(&mut self, words: Value, start: Option<Value>, count: Value, n: i64) -> [Value; 2] {
        let nothing = self.l.b.constant(Scalar::from(0u32));
        let [mut some, mut all] = [nothing; 2];
        for i in 0..n {
            let place = match start {
                Some(start) => self.op(Add, start, i),
                None => self.l.b.index(i),
            };
            let word = self.l.b.load(words, place);
            let number = self.l.b.index(i);
            let counts = self.l.b.binary(Lt, number, count);
            let counted = self.l.b.select(counts, word, nothing);
            some = self.l.b.binary(Add, some, counted);
            all = self.l.b.binary(Add, all, word);
        }
        [some, all]
    }

    /// Loads the first positions of the block's bins, long before they are needed.
    fn load_starts(&mut self, of: &Distribution<'_>) {
        let threads = self.block.threads;
        for turn in 0..(BINS + threads - 1) / threads {
            let bin = self.op(Add, self.thread, turn * threads);
            self.l.open_scope();
            self.l.counters.insert(of.sources.bin, bin);
            let start = self.l.value(of.sources.starts, of.sources.first, None);
            self.l.close_scope();
            self.l.b.store(of.starts, bin, start);
        }
    }

    /// Writes the sorted block: the keys of a bin from its first position on. Counters, which are
    /// done with, hold the rank of each bin's first key.
    fn write(&mut self, of: &Distribution<'_>, out: Value) {
        for i in 0..self.block.own {
            let (number, _, bin) = self.sorted(i, of.shift);
            let begins = self.begins(number, bin, of.shift);
            let place = self.l.b.guard(bin, begins);
            let rank = self.l.b.cast(DType::U32, number);
            self.l.b.store(self.storage.counters, place, rank);
        }
        self.meet();
        for i in 0..self.block.own {
            let (number, key, bin) = self.sorted(i, of.shift);
            let start = self.l.b.load(of.starts, bin);
            let begin = self.l.b.load(self.storage.counters, bin);
            let begin = self.l.b.cast(DType::I64, begin);
            let further = self.l.b.binary(Sub, number, begin);
            let position = self.l.b.binary(Add, start, further);
            let mut inside = self.l.in_range(position, of.sources.total);
            if self.length < self.block.keys() {
                let real = self.op(Lt, number, self.length);
                inside = self.l.b.binary(And, inside, real);
            }
            let position = self.l.b.guard(position, inside);
            self.l.b.store(out, position, key);
        }
    }

    /// A key of the sorted block, its number and its bin.
    fn sorted(&mut self, i: i64, shift: Value) -> (Value, Value, Value) {
        let number = self.beside(i);
        let place = self.key_place(number);
        let key = self.l.b.load(self.storage.keys, place);
        let byte = self.byte(key, shift);
        (number, key, self.l.b.cast(DType::I64, byte))
    }

    /// Whether a key of the sorted block, in this bin, is the first of its bin.
    fn begins(&mut self, number: Value, bin: Value, shift: Value) -> Value {
        let zero = self.l.b.index(0);
        let is_first = self.l.b.binary(Eq, number, zero);
        let (before, one) = (self.op(Sub, number, 1), self.l.b.index(1));
        let exists = self.l.b.binary(Le, one, number);
        let before = self.key_place(before);
        let before = self.l.b.guard(before, exists);
        let before = self.l.b.load(self.storage.keys, before);
        let before = self.byte(before, shift);
        let before = self.l.b.cast(DType::I64, before);
        let same = self.l.b.binary(Eq, before, bin);
        let other = self.l.b.unary(UnaryOp::Not, same);
        self.l.b.binary(Or, is_first, other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Kernel, Op};
    use crate::reference::Reference;
    use crate::runtime::{Device, Optimizer, Runtime};
    use crate::tensor::Tensor;
    use crate::testing::{evaluate, kernels};

    /// A GPU with so much shared storage.
    fn device(shared_bytes: usize, optimizer: Optimizer) -> Device {
        let mut reference = Reference::default();
        reference.caps.simt = true;
        reference.caps.max_local = if shared_bytes > 48 << 10 { 1024 } else { 256 };
        reference.caps.shared_bytes = shared_bytes;
        reference.caps.threads = 1 << 18;
        let runtime = Runtime::default();
        runtime.register(reference);
        let device = runtime.device("reference").unwrap();
        device.set_optimizer(optimizer);
        device
    }

    fn ranks(kernel: &&Kernel) -> bool {
        kernel.ops().iter().any(|op| matches!(op, Op::Barrier { .. }))
    }

    /// The interpreter finds races; equal keys tell stability.
    #[test]
    fn groups_sort_as_threads_do() {
        for (shared, keys) in [(48 << 10, 4096), (32 << 10, 2048), (16 << 10, 1024)] {
            let block = Block::of(device(shared, Optimizer::Off).caps());
            assert_eq!(block.map(Block::keys), Some(keys));
        }
        // Rows that fit are sorted by one launch, others by one for each byte.
        for (dims, shared, optimizer, launches) in [
            ([1, 4100], 48 << 10, Optimizer::Off, 2),
            ([2, 2048], 32 << 10, Optimizer::Default, 1),
            ([3, 1500], 16 << 10, Optimizer::Default, 2),
            ([3, 700], 16 << 10, Optimizer::Off, 1),
            ([5, 130], 48 << 10, Optimizer::Default, 1),
            ([2, 4099], 96 << 10, Optimizer::Off, 1),
            ([1, 9000], 128 << 10, Optimizer::Default, 1),
        ] {
            let d = device(shared, optimizer);
            let n = dims[0] * dims[1];
            let values: Vec<u16> = (0..n).map(|i| (i * 7919 % 1031 * 61) as u16).collect();
            let x = Tensor::from_slice(&values, dims, &d).unwrap();
            let (sorted, order) = x.sort(1, false).unwrap();
            assert_eq!(kernels(&[&order]).iter().filter(ranks).count(), launches, "{dims:?}");
            let expected = evaluate(&[&sorted, &order]).unwrap();
            Tensor::realize_all([&sorted, &order]).unwrap();
            for (got, expected) in [sorted.cast(DType::I64), order].iter().zip(expected) {
                let expected: Vec<i64> = expected.iter().map(|x| x.to_i64()).collect();
                assert_eq!(got.to_vec::<i64>().unwrap(), expected, "{dims:?}");
            }
        }
    }

    /// Each example of a batch is sorted as one alone, by groups.
    #[test]
    fn groups_sort_each_example() {
        let d = device(16 << 10, Optimizer::Off);
        let values: Vec<u16> = (0..2 * 2100).map(|i| (i * 7919 % 1031 * 61) as u16).collect();
        let x = Tensor::from_slice(&values, [2, 2100], &d).unwrap();
        let order = |x: &[Tensor]| Ok(x[0].sort(0, false)?.1);
        let all = Tensor::vmap(order, &[&x], &[Some(0)], 0).unwrap();
        assert_eq!(kernels(&[&all]).iter().filter(ranks).count(), 4, "one of each byte, twice");
        let [alone, got] = [x.sort(1, false).unwrap().1, all].map(|y| y.to_vec::<i64>().unwrap());
        assert_eq!(got, alone);
    }
}
