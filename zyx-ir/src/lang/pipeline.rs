//! Loops that load into shared storage what later steps need, while a step computes.

use super::SMALL;
use super::array::{Array, numel};
use super::control::{Carried, Span};
use super::group::{Group, Space};
use super::value::Val;
use crate::dtype::DType;

/// Most elements of a tile that a thread holds between their load and their store.
const MAX_HELD: usize = 32;
/// Most stages: the loads of each but the first are recorded one after the other.
const MAX_STAGES: usize = 16;

/// The steps of a pipeline: how many buffers they share and how a thread fills one.
pub(super) struct Stages<'f, 'k> {
    /// Buffers; step `i` has the buffer `i % count`.
    pub(super) count: usize,
    /// Whether the first step was loaded already, and steps of a known number are recorded one by one, with literal numbers: for
    /// a factor that threads hold.
    pub(super) is_held: bool,
    /// Loads what a step needs into registers.
    pub(super) load: &'f dyn Fn(Val<'k>),
    /// Stores what was loaded in the buffer of a step.
    pub(super) store: &'f dyn Fn(Val<'k>),
}

impl<'k> Group<'k> {
    /// Runs a step for each number of a range with tiles of shared storage: `load` gives their elements, and may
    /// give one of each of several tiles of the same shape. While a step computes, the elements of the step `stages - 1`
    /// behind it are on their way; there is storage for `stages` steps.
    ///
    /// Elements are loaded to registers before a step computes, and stored behind it. So two stages hide the latency of loads, and
    /// more hide no more of it. Where a group is one thread, and where a thread would hold more than 32 elements, each step
    /// loads its own tiles first.
    ///
    /// ```
    /// use zyx_ir::BinaryOp::Add;
    /// use zyx_ir::DType;
    /// use zyx_ir::lang::{Lang, Setting, record};
    ///
    /// // Sums of the rows of a matrix, weighted by those of another one.
    /// let weighted = |k: &Lang| {
    ///     let [rows, cols] = k.sizes(["rows", "cols"]);
    ///     let (x, w) = (k.input("x", [rows, cols]), k.input("w", [rows, cols]));
    ///     let y = k.output("y", [rows], x.dtype());
    ///     k.groups([rows], 64, |g, [row]| {
    ///         let sum = k.var(k.value(0, x.dtype()));
    ///         let load = |step, [i]: [_; 1]| [&x, &w].map(|x| x.at_or([row, step * 256 + i], 0));
    ///         g.pipeline(2, cols.div_ceil(256), [256], load, |_, tiles| {
    ///             let part = g.reduce(Add, 256, |i| tiles[0].at(i) * tiles[1].at(i));
    ///             sum.set(sum.get() + part);
    ///         });
    ///         y.set(row, sum.get());
    ///     });
    /// };
    /// let setting = Setting { inputs: vec![DType::F32; 2], ..Setting::default() };
    /// record("weighted", &setting, weighted)?;
    /// # Ok::<(), zyx_ir::lang::LangError>(())
    /// ```
    #[track_caller]
    pub fn pipeline<S: Space<'k>, C: Carried<'k>>(
        self,
        stages: usize,
        span: impl Span<'k>,
        shape: S,
        load: impl Fn(Val<'k>, S::At) -> C,
        compute: impl Fn(Val<'k>, &[Array<'k>]),
    ) {
        let (k, (first, len)) = (self.k, self.k.numbers(span));
        let shape = shape.list(k);
        let element =
            |step, at: &[Val<'k>]| k.of_program(|| load(first + step, Carried::with(at)).list());
        let compute = |step, tiles: &[Array<'k>]| k.of_program(|| compute(first + step, tiles));
        k.primitive(|| self.pipelined(stages, len, &shape, &element, &compute));
    }

    fn pipelined(
        self,
        stages: usize,
        len: Val<'k>,
        extents: &[Val<'k>],
        element: &dyn Fn(Val<'k>, &[Val<'k>]) -> Vec<Val<'k>>,
        compute: &dyn Fn(Val<'k>, &[Array<'k>]),
    ) {
        let k = self.k;
        if !(1..=MAX_STAGES).contains(&stages) {
            return k.fail(format_args!("a `pipeline` has 1 to {MAX_STAGES} stages, not {stages}"));
        }
        let literal = |x: &Val<'k>| usize::try_from(x.literal()?.to_i64()).ok();
        let shape = extents.iter().map(literal).collect::<Option<Vec<usize>>>();
        let numel = shape.as_deref().and_then(numel).filter(|&n| u64::from(n) <= SMALL);
        let (Some(shape), Some(numel)) = (shape, numel.map(|n| n as usize)) else {
            return k.fail(format_args!(
                "a tile of a `pipeline` has literal extents and at most {SMALL} elements"
            ));
        };
        let mut dtypes: Vec<DType> = Vec::new();
        // Recorded once for the dtypes, and never run.
        self.phase("pipeline", || {
            k.for_each(0usize, |step| {
                let at = vec![k.index(0); extents.len()];
                dtypes = element(step, &at).iter().map(|x| x.dtype()).collect();
            });
        });
        if dtypes.is_empty() {
            return k.fail("`load` of a `pipeline` gives no value");
        }
        let element = |step, at: &[Val<'k>]| {
            let values = element(step, at);
            if !k.has_failed() && values.iter().map(|x| x.dtype()).ne(dtypes.iter().copied()) {
                k.fail("`load` of a `pipeline` gives values of other dtypes than at first, or another number of them");
            }
            values
        };
        let turns = numel.div_ceil(self.threads());
        let number = self.number().filter(|_| stages > 1 && turns * dtypes.len() <= MAX_HELD);
        let count = if number.is_some() { stages } else { 1 };
        let whole: Vec<usize> = [count].into_iter().chain(shape).collect();
        let tiles: Vec<Array<'k>> = dtypes.iter().map(|&x| self.scratch(&whole, x)).collect();
        let of_step = |step: Val<'k>| -> Vec<Array<'k>> {
            tiles.iter().map(|tile| tile.row(step % count)).collect()
        };
        let Some(number) = number else {
            k.for_each(len, |step| {
                let tiles = of_step(step);
                self.each(extents, |at| {
                    let values = element(step, &at);
                    tiles.iter().zip(values).for_each(|(tile, x)| tile.set(&at[..], x));
                });
                compute(step, &tiles);
            });
            return tiles.iter().for_each(|tile| self.give_back(tile));
        };
        let held: Vec<Array<'k>> = dtypes.iter().map(|&x| k.array([turns], x)).collect();
        let each = |body: &dyn Fn(usize, &[Val<'k>])| {
            for turn in 0..turns {
                let place = number + turn * self.threads();
                let body = || body(turn, &k.digits(place, extents));
                let is_whole = (turn + 1) * self.threads() <= numel;
                if is_whole { body() } else { k.when(place.lt(numel), body) }
            }
        };
        let load = &|step: Val<'k>| {
            each(&|turn, at| {
                let values = element(step, at);
                held.iter().zip(values).for_each(|(held, x)| held.set(turn, x));
            });
        };
        let store = &|step: Val<'k>| {
            let tiles = of_step(step);
            each(&|turn, at| {
                tiles.iter().zip(&held).for_each(|(tile, held)| tile.set(at, held.at(turn)));
            });
        };
        let stages = Stages { count, is_held: false, load, store };
        k.when(len.gt(0), || self.run_stages(&stages, len, &|step| compute(step, &of_step(step))));
        tiles.iter().for_each(|tile| self.give_back(tile));
    }

    /// Runs steps. The first one is run in any case.
    pub(super) fn run_stages(
        self,
        stages: &Stages<'_, 'k>,
        len: Val<'k>,
        compute: &dyn Fn(Val<'k>),
    ) {
        let (k, Stages { count, is_held, load, store }) = (self.k, stages);
        let (ahead, known) = (count - 1, len.literal().map(|n| n.to_i64()));
        let fill = |step: Val<'k>| {
            load(step);
            store(step);
        };
        self.phase("pipeline", || {
            if !*is_held {
                load(k.index(0));
            }
            store(k.index(0));
            for step in (1..ahead as i64).map(|step| k.index(step)) {
                k.when(step.lt(len), || fill(step));
            }
        });
        let step = |step: Val<'k>| {
            self.phase("pipeline", || load(step + ahead));
            compute(step);
            // Since the last barrier no thread reads what the step before had in this buffer.
            self.phase_beside("pipeline", || store(step + ahead));
        };
        let whole = (len - ahead).maximum(0);
        match known.map_or(1, |n| n - ahead as i64) {
            n if n <= 0 => {}
            n if known.is_some() && *is_held => (0..n).for_each(|i| step(k.index(i))),
            _ => k.for_each(whole, step),
        }
        if ahead == 1 { compute(whole) } else { k.for_each(whole..len, compute) }
    }
}
