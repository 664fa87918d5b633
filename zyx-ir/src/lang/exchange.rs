//! Values that the threads of a group give each other.

use super::SMALL;
use super::group::Group;
use super::value::Val;
use crate::dtype::DType;
use crate::ir::ShuffleKind;

/// Places for each element of padding: as many as shared storage has banks of 4 bytes.
const BANKS: usize = 32;

impl<'k> Group<'k> {
    /// Permutes `n` values: `value` gives that of each place, `from` the place that a place takes its value from, and
    /// `emit` gets each place with what it took: 0 where that is from no place.
    ///
    /// Neighbouring places are of neighbouring threads. The values are in shared storage meanwhile, or shuffled where they are
    /// those of one subgroup.
    ///
    /// | permutation | `from` |
    /// |---|---|
    /// | transposition of `rows * columns` places | `i % rows * columns + i / rows` |
    /// | from `k` consecutive places a thread to every `threads`-th | `i % threads * k + i / threads` |
    /// | rotation by `by` | `(i + by) % n` |
    ///
    /// ```
    /// use zyx_ir::DType;
    /// use zyx_ir::lang::{Lang, Setting, record};
    ///
    /// // Tiles of 16 x 16 elements; loads and stores are of consecutive ones.
    /// let transposed = |k: &Lang| {
    ///     let n = k.size("n");
    ///     let x = k.input("x", [n, k.index(16), k.index(16)]);
    ///     let y = k.output("y", [n, k.index(16), k.index(16)], x.dtype());
    ///     k.groups([n], 256, |g, [tile]| {
    ///         g.exchange(
    ///             256,
    ///             x.dtype(),
    ///             |i| x.at([tile, i / 16, i % 16]),
    ///             |i| i % 16 * 16 + i / 16,
    ///             |i, value| y.set([tile, i / 16, i % 16], value),
    ///         );
    ///     });
    /// };
    /// let setting = Setting { inputs: vec![DType::F32], ..Setting::default() };
    /// record("transposed", &setting, transposed)?;
    /// # Ok::<(), zyx_ir::lang::LangError>(())
    /// ```
    #[track_caller]
    pub fn exchange(
        self,
        n: usize,
        dtype: DType,
        value: impl FnOnce(Val<'k>) -> Val<'k>,
        from: impl FnOnce(Val<'k>) -> Val<'k>,
        emit: impl FnOnce(Val<'k>, Val<'k>),
    ) {
        let k = self.k;
        if n as u64 > SMALL {
            return k.fail(format_args!("`exchange` of {n} values: no device has so much storage"));
        }
        let value = |i| k.of_program(|| value(i));
        let taken = |i| k.as_index(k.of_program(|| from(i)));
        let emit = |i, x| k.of_program(|| emit(i, x));
        let is_place = |i: Val<'k>| i.ge(0) & i.lt(n);
        k.primitive(|| {
            if let Some(number) = self.number().filter(|_| n <= self.lanes()) {
                let own = k.var(k.value(0, dtype));
                let lane = k.var(k.index(0));
                self.phase("exchange", || {
                    k.when(number.lt(n), || {
                        own.set(value(number));
                        lane.set(taken(number));
                    });
                });
                let (own, lane) = (own.get(), lane.get());
                let inside = is_place(lane);
                let other = k.shuffle(ShuffleKind::Index, own, inside.select(lane, 0));
                let other = inside.select(other, k.value(0, dtype));
                return self.phase("exchange", || k.when(number.lt(n), || emit(number, other)));
            }
            // Places at a distance of a power of two lie in different banks.
            let padding = if self.number().is_some() { BANKS } else { n.max(1) };
            let place = |i: Val<'k>| i + i / padding;
            let places = self.scratch(&[n + n / padding], dtype);
            self.phase("exchange", || {
                self.spread(&[k.index(n as i64)], |i| places.set(place(i[0]), value(i[0])));
            });
            self.phase("exchange", || {
                self.spread(&[k.index(n as i64)], |i| {
                    let from = taken(i[0]);
                    emit(i[0], places.at_if(is_place(from), place(from), 0));
                });
            });
            self.give_back(&places);
        });
    }
}
