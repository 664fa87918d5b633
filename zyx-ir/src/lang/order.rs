//! Places of elements: in a stable order of digits, and behind one another in a list that groups share.

use super::array::Array;
use super::control::Span;
use super::group::Group;
use super::value::Val;
use crate::dtype::DType;
use crate::ops::BinaryOp;

/// Most bits of a digit: each thread has a counter for each value.
const MOST_BITS: u32 = 8;

impl<'k> Group<'k> {
    /// Ranks elements by a digit of so many bits, an integer: `emit` gets the number of each and its place among all, in the
    /// order of digits, and of numbers where digits are equal. A step of a radix sort.
    ///
    /// Threads count the digits of consecutive elements, counters are scanned digit by digit, and each thread
    /// numbers its elements from its counters on.
    #[track_caller]
    pub fn rank(
        self,
        span: impl Span<'k>,
        bits: u32,
        digit: impl Fn(Val<'k>) -> Val<'k>,
        emit: impl Fn(Val<'k>, Val<'k>),
    ) {
        let k = self.k;
        let (first, len) = k.numbers(span);
        if !(1..=MOST_BITS).contains(&bits) {
            return k.fail(format_args!("`rank` by {bits} bits: a digit has 1 to {MOST_BITS}"));
        }
        k.primitive(|| {
            let (threads, number) = (self.threads(), self.thread());
            let counters = threads << bits;
            let counts = self.scratch(&[counters], DType::I32);
            self.each(counters, |i| counts.set(i, 0));
            // The counter of an element, for each of the thread's.
            let own = |visit: &dyn Fn(Val<'k>, Val<'k>)| {
                let each = len.div_ceil(threads);
                let start = first + number * each;
                self.phase("rank", || {
                    k.for_each(start..(first + len).minimum(start + each), |i| {
                        let digit = k.of_program(|| digit(i));
                        let digit = k.as_index(digit).binary(BinaryOp::And, (1i64 << bits) - 1);
                        visit(i, digit * threads + number);
                    });
                });
            };
            own(&|_, at| counts.set(at, counts.at(at) + 1));
            let keep = |i, before, _| counts.set(i, before);
            self.scan(BinaryOp::Add, counters, DType::I32, |i| counts.at(i), keep);
            own(&|i, at| {
                let place = counts.at(at);
                counts.set(at, place + 1);
                k.of_program(|| emit(i, k.as_index(place)));
            });
            self.give_back(&counts);
        });
    }

    /// Appends the numbers of a range for which a condition holds to a list that groups share, and that `counter`, an array of
    /// one integer, has the length of: `emit` gets each number and its place. Groups come in any order; one atomic
    /// operation serves as many numbers as the group has threads.
    #[track_caller]
    pub fn append(
        self,
        counter: &Array<'k>,
        span: impl Span<'k>,
        condition: impl Fn(Val<'k>) -> Val<'k>,
        emit: impl Fn(Val<'k>, Val<'k>),
    ) {
        let k = self.k;
        let (first, len) = k.numbers(span);
        let dtype = counter.dtype();
        if !dtype.is_int() || counter.rank() != 1 {
            let reason = format!("`append` counts in {counter:?}, not in an array of one integer");
            return k.fail(reason);
        }
        k.primitive(|| {
            let holds = |at| k.of_program(|| condition(first + at)).cast(dtype);
            let add = (BinaryOp::Add, k.value(0, dtype));
            self.scan_turns("append", add, len, holds, |at, own, before, all| {
                let place = counter.fetch(BinaryOp::Add, 0, all) + before;
                self.phase("append", || {
                    k.when(own.ne(0), || k.of_program(|| emit(first + at, k.as_index(place))));
                });
            });
        });
    }
}
