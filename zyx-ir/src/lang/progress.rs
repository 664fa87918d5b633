//! Groups that use each other's results without waiting for one another.
//!
//! [`LookBack`] is the decoupled look-back of a single-pass scan (Merrill and Garland 2016): a group publishes the sum of its tile,
//! and adds up the sums before it. [`Queue`] hands work to groups that have none. Both need 32-bit atomics alone, and no
//! order among them: a 32-bit value is published as two words, each with half of its bits and a flag. A group reads a word a
//! bounded number of times. If the sum of a tile is still missing then, the group computes it itself, so a kernel ends
//! under every schedule, also where no group makes progress before another has ended.

use super::array::Array;
use super::control::Var;
use super::group::Group;
use super::handle::{LookBackHandle, QueueHandle};
use super::value::{Operand, Val};
use super::{Lang, SMALL};
use crate::caps::Progress;
use crate::dtype::DType;
use crate::ops::BinaryOp::{self, Add, Max, Or};
use crate::scalar::Scalar;

/// Bits of a value in one published word.
const HALF: usize = 16;

/// The flag of a published word, above its half of a value.
const PUBLISHED: u32 = 1 << HALF;

/// Reads of a missing word on a device that promises that a group which started goes on: some 50 ms at 0.7 us each (latency of
/// the second-level cache of an H200), so the fallback runs where the promise is broken.
const PROMISED_READS: usize = 1 << 16;

/// The same where nothing is promised, or drivers end loops after 2^16 iterations: some 45 us, about ten times as long as the
/// fallback takes for a tile of 16 KiB.
const READS: usize = 64;

/// Kinds of published combinations: of a tile, and of all tiles up to it.
pub(super) const TILE: i64 = 0;
pub(super) const PREFIX: i64 = 1;

/// States of a combination that a thread reads: found, or missing of a tile, or of all tiles up to it. The largest state of the threads
/// decides how the group goes on.
const FOUND: i32 = 0;
const NO_TILE: i32 = 1;
const NO_PREFIX: i32 = 2;

/// Bits of a slot of a queue: a group took the slot; a thread put an item there, which stands above these bits.
const TAKEN: u32 = 1;
const FILLED: u32 = 2;
const ITEM_SHIFT: u32 = 2;

/// Counters of a queue: the slot where the next item is taken, the one where it is put, and items that are in the queue or being worked
/// on.
const TAKE: i64 = 0;
const PUT: i64 = 1;
const ACTIVE: i64 = 2;
/// A summand that takes one off a counter, modulo 2^32.
const LESS: u32 = u32::MAX;

/// Combinations of tiles that groups publish for one another; see [`Lang::look_back`].
#[derive(Clone, Debug)]
pub struct LookBack<'k> {
    pub(super) k: &'k Lang,
    pub(super) handle: LookBackHandle,
}

impl Lang {
    /// Look-back across groups: each group gets the combination of all tiles before its own, by an associative and commutative
    /// operation, in one launch.
    ///
    /// Values have 32 or 64 bits. The device needs 32-bit atomics, or runs groups one after another.
    #[track_caller]
    pub fn look_back<'k>(
        &'k self,
        name: &str,
        op: BinaryOp,
        dtype: DType,
        tiles: impl Operand<'k>,
    ) -> LookBack<'k> {
        if op.identity(dtype).is_none() || !matches!(dtype.bits(), 32 | 64) {
            self.fail(format_args!(
                "`look_back` by `{op}` on {dtype}: it needs a neutral element and 32 or 64 bits"
            ));
        }
        self.state.borrow_mut().recorded.looks_back = true;
        let bits = if dtype.bits() == 64 { DType::U64 } else { DType::U32 };
        let tiles = tiles.val(self, DType::I64);
        let [kinds, words] = [2, bits.bits() / HALF].map(|x| self.index(x as i64));
        let words = self.words(name, [kinds, words, tiles + 1]).handle();
        LookBack { k: self, handle: LookBackHandle { op, dtype, bits, tiles: tiles.id(), words } }
    }

    /// A queue of numbers from 0 to [`SMALL`] for irregular work, with so many slots. Each slot is used once.
    #[track_caller]
    pub fn queue<'k>(&'k self, name: &str, capacity: impl Operand<'k>) -> Queue<'k> {
        let capacity = capacity.val(self, DType::I64);
        let ends = self.words(&format!("{name}_ends"), [self.index(3)]).handle();
        let slots = self.words(name, [capacity]).handle();
        Queue { k: self, handle: QueueHandle { capacity: capacity.id(), slots, ends } }
    }

    /// Words of zeros that groups change atomically.
    #[track_caller]
    fn words<'k, const N: usize>(&'k self, name: &str, shape: [Val<'k>; N]) -> Array<'k> {
        let (caps, dtype) = (self.caps(), DType::U32);
        let lacks = |op: &BinaryOp| caps.simt && !caps.has_atomic(*op, dtype);
        if let Some(op) = [Add, Or].into_iter().find(lacks) {
            let reason = "on u32, which the device lacks";
            self.fail(format_args!("`{name}` needs the atomic `{op}` {reason}"));
        }
        self.scratch(name, shape, dtype)
    }
}

impl<'k> LookBack<'k> {
    fn words(&self) -> Array<'k> {
        self.k.array_of(&self.handle.words)
    }

    /// The number of the tile that the group works on. Tickets are given in order, so the groups of all tiles before it
    /// have started.
    #[track_caller]
    pub fn ticket(&self, group: Group<'k>) -> Val<'k> {
        group.is_whole("ticket");
        let (zero, tiles) = (self.k.index(0), self.k.val_of(self.handle.tiles));
        self.words().fetch(Add, [zero, zero, tiles], 1).cast(DType::I64)
    }

    /// Publishes the combination of a tile, and gives that of all tiles before it.
    ///
    /// `recompute` gives the combination of another tile, which its group did not publish in time. If it combines in the same
    /// order as that group does, results do not depend on the schedule: the order in which tiles are combined follows from
    /// their numbers.
    #[track_caller]
    pub fn prefix(
        &self,
        group: Group<'k>,
        tile: Val<'k>,
        sum: Val<'k>,
        recompute: impl FnOnce(Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        self.k.primitive(|| {
            self.publish(group, TILE, tile, sum);
            let before = self.look_back(group, tile, recompute);
            self.publish(group, PREFIX, tile, before.binary(self.handle.op, sum));
            before
        })
    }

    /// Publishes a combination.
    pub(super) fn publish(&self, group: Group<'k>, kind: i64, tile: Val<'k>, sum: Val<'k>) {
        let (k, width) = (self.k, self.handle.bits);
        let bits = sum.bitcast(width);
        group.in_first_thread("look_back", || {
            for word in 0..width.bits() / HALF {
                let half = ((bits >> (word * HALF)) & (PUBLISHED - 1)).cast(DType::U32);
                let at = [k.index(kind), k.index(word as i64), tile];
                self.words().atomic(Or, at, half | PUBLISHED);
            }
        });
    }

    /// The combination of all tiles before one.
    ///
    /// Each thread reads the combination of one tile, but the first thread that of all tiles up to `threads` before this one. If
    /// that is missing, the group goes back in steps of as many tiles, and then forward.
    pub(super) fn look_back(
        &self,
        group: Group<'k>,
        tile: Val<'k>,
        recompute: impl FnOnce(Val<'k>) -> Val<'k>,
    ) -> Val<'k> {
        let (k, threads, thread) = (self.k, group.threads(), group.thread());
        let LookBackHandle { op, dtype, .. } = self.handle;
        let identity = op.identity(dtype).unwrap_or(Scalar::from_i64(dtype, 0));
        let identity = k.val(|s| s.b.constant(identity));
        let before = k.var(identity);
        // The first tile of a step, and the worst state of a thread in the step before: in shared storage, which barriers may stand
        // in branches by.
        let step = group.shared([2], DType::I32);
        let go_to = |first: Val<'k>, worst: Val<'k>| {
            group.in_first_thread("look_back", || {
                step.set(0, first.cast(DType::I32));
                step.set(1, worst);
            });
        };
        go_to(tile - threads, k.value(NO_PREFIX, DType::I32));
        k.for_each((tile / threads + 1) * 2, |_| {
            let first = step.at(0).cast(DType::I64);
            k.break_if(first.ge(tile));
            let reads_prefix = thread.eq(0) & step.at(1).eq(NO_PREFIX);
            let (value, state) = (k.var(identity), k.var(k.value(FOUND, DType::I32)));
            group.phase("look_back", || self.read(reads_prefix, first + thread, &value, &state));
            let worst = group.combine(Max, state.get());
            go_to(worst.eq(NO_PREFIX).select(first - threads, first + threads), worst);
            let worst = step.at(1);
            k.when(worst.eq(NO_TILE), || {
                let states = group.scratch(&[threads], DType::I32);
                group.phase("look_back", || states.set(thread, state.get()));
                k.for_each(threads, |other| {
                    k.when(states.at(other).eq(NO_TILE), || {
                        let sum = k.of_program(|| recompute(first + other));
                        group.phase("look_back", || k.when(thread.eq(other), || value.set(sum)));
                    });
                });
                group.give_back(&states);
            });
            k.when(worst.ne(NO_PREFIX), || {
                let start = thread.eq(0).select(before.get(), identity);
                before.set(group.combine(op, start.binary(op, value.get())));
            });
        });
        before.get()
    }

    /// Reads a published combination. There is nothing to read before the first tile.
    fn read(&self, reads_prefix: Val<'k>, tile: Val<'k>, value: &Var<'k>, state: &Var<'k>) {
        let (k, &LookBackHandle { dtype, bits: width, .. }) = (self.k, &self.handle);
        let kind = reads_prefix.select(k.index(PREFIX), k.index(TILE));
        k.when(tile.ge(0), || {
            state.set(reads_prefix.select(k.value(NO_PREFIX, DType::I32), NO_TILE));
            k.for_each(reads(k), |_| {
                let (mut all, mut bits) = (k.value(PUBLISHED, DType::U32), k.value(0, width));
                for word in 0..width.bits() / HALF {
                    let half = self.words().at_atomic([kind, k.index(word as i64), tile]);
                    all = all & half;
                    bits = bits | ((half & (PUBLISHED - 1)).cast(width) << (word * HALF));
                }
                k.when(all.ne(0), || {
                    value.set(bits.bitcast(dtype));
                    state.set(FOUND);
                });
                k.break_if(all.ne(0));
            });
        });
    }
}

/// A queue of work that groups share, none of which waits for another; see [`Lang::queue`].
///
/// A group takes a slot, then looks whether there is an item in it. A thread that comes with an item later finds the slot taken, and puts
/// the item in another one. A group stops only when it sees all slots taken, its own items' among them, so no item stays
/// behind. This needs no order among atomics on different words.
#[derive(Clone, Debug)]
pub struct Queue<'k> {
    pub(super) k: &'k Lang,
    pub(super) handle: QueueHandle,
}

impl<'k> Queue<'k> {
    /// The slots, their number, and the counters.
    fn parts(&self) -> (Array<'k>, Val<'k>, Array<'k>) {
        let (k, QueueHandle { capacity, slots, ends }) = (self.k, &self.handle);
        (k.array_of(slots), k.val_of(*capacity), k.array_of(ends))
    }

    /// Puts an item in the queue; gives whether it could: false where all slots were used, and for numbers that are not
    /// from 0 to [`SMALL`].
    ///
    /// In a group, outside of what its threads do each for itself, one of them does. The group has to call
    /// [`Queue::drain`] afterwards, or the item may stay in the queue.
    #[track_caller]
    pub fn push(&self, item: impl Operand<'k>) -> Val<'k> {
        let (k, (slots, capacity, ends)) = (self.k, self.parts());
        let item = k.as_index(item.val(k, DType::I64));
        let push = || {
            let is_kept = k.var(k.value(false, DType::Bool));
            let fits = item.ge(0) & item.le(SMALL as i64);
            let word = (item.cast(DType::U32) << ITEM_SHIFT) | FILLED;
            k.for_each(capacity, |_| {
                // Where slots are used up the counter stays, since it would wrap.
                let end = ends.at_atomic(PUT).cast(DType::I64);
                k.break_if(!(fits & end.lt(capacity)));
                let slot = ends.fetch(Add, PUT, 1).cast(DType::I64);
                k.break_if(slot.ge(capacity));
                ends.atomic(Add, ACTIVE, 1);
                is_kept.set((slots.fetch(Or, slot, word) & TAKEN).eq(0));
                k.when(!is_kept.get(), || ends.atomic(Add, ACTIVE, LESS));
                k.break_if(is_kept.get());
            });
            is_kept.get()
        };
        k.primitive(|| Group { k }.value_of_first_thread(DType::Bool, push))
    }

    /// Takes the next slot, whether or not there is an item yet; gives the item, or -1.
    pub(super) fn take(&self) -> Val<'k> {
        let (k, (slots, capacity, ends)) = (self.k, self.parts());
        let item = k.var(k.value(-1, DType::I32));
        let slot = ends.fetch(Add, TAKE, 1).cast(DType::I64);
        k.when(slot.lt(capacity), || {
            let word = slots.fetch(Or, slot, TAKEN);
            let old = (word >> ITEM_SHIFT).cast(DType::I32);
            item.set((word & FILLED).ne(0).select(old, -1));
        });
        item.get()
    }

    /// Takes an item; gives -1 if there is none. All threads of the group get it.
    #[track_caller]
    pub fn pop(&self, group: Group<'k>) -> Val<'k> {
        group.is_whole("pop");
        let (k, (_, capacity, ends)) = (self.k, self.parts());
        let pop = || {
            let (item, looks) = (k.var(k.value(-1, DType::I32)), k.var(k.value(0, DType::I32)));
            let most = reads(k);
            k.for_each(capacity + most, |_| {
                let is_filled = ends.at_atomic(TAKE).lt(ends.at_atomic(PUT));
                k.when(is_filled, || item.set(self.take()));
                looks.set(looks.get() + (!is_filled).cast(DType::I32));
                // While others work there may be further items.
                let is_idle = ends.at_atomic(ACTIVE).eq(0);
                let enough = is_idle.select(READS as i32, k.value(most as i32, DType::I32));
                k.break_if(item.get().ge(0) | looks.get().ge(enough));
            });
            item.get()
        };
        k.primitive(|| group.value_of_first_thread(DType::I32, pop).cast(DType::I64))
    }

    /// Takes items until there are none, and runs the body for each by the whole group. The body may push further ones.
    #[track_caller]
    pub fn drain(&self, group: Group<'k>, body: impl FnOnce(Val<'k>)) {
        let (k, (_, capacity, ends)) = (self.k, self.parts());
        k.for_each(capacity, |_| {
            let item = self.pop(group);
            k.break_if(item.lt(0));
            body(item);
            ends.atomic(Add, ACTIVE, LESS);
        });
    }
}

/// Reads of a word that another group is to write.
fn reads(k: &Lang) -> usize {
    let caps = k.caps();
    let is_promised = caps.progress == Progress::Occupancy && caps.max_iterations == 0;
    if is_promised { PROMISED_READS } else { READS }
}
