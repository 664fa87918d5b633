//! Litmus tests of a device: how groups of threads see each other's atomic accesses while they run.
//!
//! One launch of many groups, which take tickets as they start. In each round a group publishes a message of two words at
//! permuted addresses, and reads those of the tickets before and after its own, a bounded number of times. So the
//! test ends under every schedule.

use super::device::Device;
use super::erased::RawBuffer;
use crate::dtype::DType::{I64, U32};
use crate::error::Result;
use crate::hal::{Arg, DiskCache, Progress};
use crate::lang::{Lang, Recorded, Role, Setting, Val, record};
use crate::ops::BinaryOp::{Add, Max, Or};

/// Groups: as many as the largest GPUs run at a time, and a power of two.
const GROUPS: usize = 1024;
/// Messages of each group: 2^20 of all groups.
const ROUNDS: usize = 1024;
/// Reads of a group, at most, of messages of the ticket before its own, and of the next one: about 11 ms and 1 ms at 0.7 us each.
/// With the rounds they are fewer than the loop iterations after which a driver may end a thread (2^16).
const READS: [usize; 2] = [1 << 14, 1 << 10];
/// The flag of a word, above 16 bits of a message.
const PUBLISHED: u32 = 1 << 16;

/// The result of a litmus test: how groups of a device saw one another, which is no promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Litmus {
    /// Messages of two flagged words arrived as they were published.
    pub intact: bool,
    /// The message of the ticket before a group's own always arrived: a group that has started goes on.
    pub earlier: bool,
    /// The message of the next ticket always arrived, too: its group started meanwhile.
    pub later: bool,
    /// The word of a message that was published last never arrived before the other one.
    pub ordered: bool,
}

impl Litmus {
    /// From what should not have happened, by the numbers [`WRONG`] to [`REORDERED`].
    fn of(bad: [bool; 4]) -> Litmus {
        let [intact, earlier, later, ordered] = bad.map(|bad| !bad);
        Litmus { intact, earlier, later, ordered }
    }

    fn bytes(self) -> [u8; 4] {
        [self.intact, self.earlier, self.later, self.ordered].map(|good| u8::from(!good))
    }
}

/// Elements of the result of the test: whether something bad happened.
const WRONG: usize = 0;
const NO_EARLIER: usize = 1;
const NO_LATER: usize = 2;
const REORDERED: usize = 3;

fn test(k: &Lang) {
    let rounds = k.size("rounds");
    let words = k.scratch("words", [rounds, k.index(2), k.index(GROUPS as i64)], U32);
    let tickets = k.scratch("tickets", [1], U32);
    let bad = k.output_filled("bad", [4], U32, 0);
    k.groups([GROUPS], 1, |_, _| {
        let ticket = tickets.fetch(Add, 0, 1).cast(I64);
        let reads_left = READS.map(|reads| k.var(k.index(reads as i64)));
        k.for_each(rounds, |round| {
            for word in 0..2 {
                let place = place(ticket, round);
                words.atomic(Or, [round, k.index(word), place], published(ticket, round, word));
            }
            let last = round.eq(rounds - 1);
            let neighbours = [
                (NO_EARLIER, ticket - 1, ticket.gt(0)),
                (NO_LATER, ticket + 1, last & ticket.lt(GROUPS - 1)),
            ];
            for (left, (number, other, exists)) in reads_left.iter().zip(neighbours) {
                k.when(exists, || {
                    let place = place(other, round);
                    let missing = k.var(k.value(1, U32));
                    k.for_each(left.get(), |_| {
                        left.set(left.get() - 1);
                        let [second, first] =
                            [1, 0].map(|word| words.at_atomic([round, k.index(word), place]));
                        k.when(second.ne(0) & first.eq(0), || bad.atomic(Max, REORDERED, 1));
                        let is_there = first.ne(0) & second.ne(0);
                        k.when(is_there, || {
                            let [x, y] = [0, 1].map(|word| published(other, round, word));
                            k.when(first.ne(x) | second.ne(y), || bad.atomic(Max, WRONG, 1));
                            missing.set(0);
                        });
                        k.break_if(is_there);
                    });
                    bad.atomic(Max, number, missing.get());
                });
            }
        });
    });
}

/// The place of the message of a ticket: another order of places in each round.
fn place<'k>(ticket: Val<'k>, round: Val<'k>) -> Val<'k> {
    // Odd factors permute the numbers below a power of two; these are far apart.
    (ticket * (round * 2 + 0x9e5)) % GROUPS
}

/// A word of the message of a ticket in a round.
fn published<'k>(ticket: Val<'k>, round: Val<'k>, word: i64) -> Val<'k> {
    // All 32 bits differ from message to message (Knuth's multiplicative hash).
    let number = (ticket * ROUNDS + round).cast(U32) * 0x9e37_79b1u32;
    ((number >> (16 * word)) & (PUBLISHED - 1)) | PUBLISHED
}

impl Device {
    /// The progress that groups which wait for one another may expect: what the driver promises ([`Caps::progress`](crate::hal::Caps)), unless
    /// a litmus test on this device contradicts it.
    ///
    /// ```
    /// use zyx::internals::hal::Progress;
    /// # let device = zyx::runtime().device("reference")?;
    /// assert_eq!(device.progress()?, Progress::None);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the test cannot run; see [`Device::litmus`].
    pub fn progress(&self) -> Result<Progress> {
        if self.caps().progress == Progress::None {
            return Ok(Progress::None);
        }
        let Litmus { intact, earlier, .. } = self.litmus()?;
        Ok(if intact && earlier { self.caps().progress } else { Progress::None })
    }

    /// The result of a litmus test, which runs once for each device and version of its driver.
    ///
    /// ```
    /// # let device = zyx::runtime().device("reference")?;
    /// let litmus = device.litmus()?;
    /// // Its groups run one after another.
    /// assert!(litmus.intact && litmus.earlier && !litmus.later);
    /// # Ok::<(), zyx::Error>(())
    /// ```
    ///
    /// # Errors
    /// When the device has no atomics on `u32`, or fails.
    pub fn litmus(&self) -> Result<Litmus> {
        if let Some(&known) = self.known_litmus().get() {
            return Ok(known);
        }
        let setting = Setting { caps: self.caps().clone(), ..Setting::default() };
        let recorded = record("litmus", &setting, test)?;
        let text = recorded.kernel().to_string();
        let cache = DiskCache::new("litmus", &self.tuning_identity());
        let stored = cache.load(&text).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        let litmus = match stored {
            Some(bytes) => Litmus::of(bytes.map(|byte| byte != 0)),
            None => {
                let found = self.run_litmus(&recorded)?;
                // A message may be late because the machine was busy: the next process looks again.
                if found.intact && found.earlier {
                    cache.store(&text, &found.bytes());
                }
                found
            }
        };
        Ok(*self.known_litmus().get_or_init(|| litmus))
    }

    /// Runs the test. Whoever asks may have the device to itself already, so memory is free or new, and no lock of it is taken.
    fn run_litmus(&self, recorded: &Recorded) -> Result<Litmus> {
        let value = |expr: &crate::lang::SizeExpr| {
            expr.eval(&|_| Some(ROUNDS as i64)).expect("invariant: its only size is known") as u64
        };
        let program = self.program(recorded.kernel())?;
        let mut blocks = Vec::new();
        let run = |blocks: &mut Vec<(RawBuffer, usize)>| {
            for argument in recorded.arguments() {
                let n: u64 = argument.shape.iter().map(value).product();
                let zeros = vec![0; n as usize * argument.dtype.size()];
                blocks.push((self.take_free(zeros.len())?, zeros.len()));
                self.write_uncounted(&blocks[blocks.len() - 1].0, &zeros)?;
            }
            let buffers = blocks.iter().map(|(block, _)| Arg::Buffer(block, 0));
            let scalars = recorded.scalars().iter().map(|expr| Arg::Scalar(value(expr)));
            self.run_raw(&program, &buffers.chain(scalars).collect::<Vec<_>>())?;
            let is_result = |argument: &crate::lang::Argument| argument.role != Role::Scratch;
            let result = recorded.arguments().iter().position(is_result);
            let mut bytes = [0; 16];
            self.read_uncounted(&blocks[result.expect("invariant: it has one")].0, &mut bytes)?;
            let (words, _) = bytes.as_chunks::<4>();
            Ok(Litmus::of(std::array::from_fn(|i| words[i] != [0; 4])))
        };
        let litmus = run(&mut blocks);
        blocks.into_iter().for_each(|(block, bytes)| self.release(block, bytes));
        litmus
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DTypeSet;
    use crate::reference::Reference;
    use crate::runtime::Runtime;

    fn device(change: impl FnOnce(&mut crate::hal::Caps)) -> Device {
        let mut reference = Reference::default();
        reference.caps.simt = true;
        reference.caps.progress = Progress::Occupancy;
        change(&mut reference.caps);
        let runtime = Runtime::default();
        runtime.register(reference);
        runtime.device("reference").unwrap()
    }

    #[test]
    fn a_promise_that_is_kept_stays() {
        let device = device(|_| {});
        // Its groups run one after another.
        let expected = Litmus { intact: true, earlier: true, later: false, ordered: true };
        // Planning a scan asks while it has the device to itself.
        let _alone = device.write_lock();
        assert_eq!(device.litmus().unwrap(), expected);
        assert_eq!(device.progress().unwrap(), Progress::Occupancy);
    }

    #[test]
    fn a_promise_that_is_broken_goes() {
        let bad = Litmus { intact: true, earlier: false, later: false, ordered: true };
        assert_eq!(Litmus::of(bad.bytes().map(|byte| byte != 0)), bad);
        let device = device(|_| {});
        device.known_litmus().set(bad).unwrap();
        assert_eq!(device.progress().unwrap(), Progress::None);
    }

    #[test]
    fn a_device_without_atomics_is_refused() {
        let device = device(|caps| caps.atomics = DTypeSet::NONE);
        assert!(device.litmus().unwrap_err().to_string().contains("atomic"));
    }
}
