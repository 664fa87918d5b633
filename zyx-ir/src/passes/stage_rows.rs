//! `stage_rows`: rows that threads walk along go through shared storage.
//!
//! A running sum gives each thread a row: it reads an element, combines it, and stores a result,
//! one step after the other; so does a sum of short rows, but for the results. Neighbouring threads
//! are a row apart, so each of their accesses touches a line of memory for four bytes of it. Here
//! the threads of a group together bring a piece of all their rows into shared storage, neighbours
//! taking neighbours, then each walks along its own row there and leaves results in place, and
//! together they carry those back. Rows in shared storage are one element longer, which spreads the
//! steps of all threads over its banks. What does not run along rows each thread does as before.
//!
//! Parameters: threads (and rows) of a group, and steps of a piece, powers of two.

use super::elements::Elements;
use super::loops::{LoopInfo, loops};
use super::nest;
use super::variance::slope;
use super::{Pass, Site};
use crate::caps::Caps;
use crate::dtype::DType;
use crate::ir::{Access, BarrierScope, Kernel, LoopKind, Op, Order, Space, Type, Value};
use crate::ops::BinaryOp;
use rustc_hash::FxHashMap;

use BinaryOp::{Add, Lt, Min};

/// The row of the pass table.
pub const PASS: Pass = Pass {
    name: "stage_rows",
    doc: "bring rows of (1) threads to shared storage in pieces of (2), to be walked there",
    reassociates: false,
    sites,
    apply,
};

/// Groups and pieces offered.
const CHOICES: [[i64; 2]; 2] = [[4, 8], [8, 4]];

/// Elements that a thread brings before it leaves them: loads that are under way together.
const TOGETHER: i64 = 8;

/// The most storage a group may take on any device.
const SHARED_BYTES: usize = 48 << 10;

fn sites(kernel: &Kernel, caps: &Caps) -> Vec<Site> {
    nest::grouped(kernel, caps, &CHOICES, Found::of, |found, choice| {
        found.fits(kernel, choice, caps)
    })
}

/// A nest of parallel loops around one loop that walks along rows.
#[derive(Debug)]
pub struct Found {
    /// The parallel loops, outermost first.
    rows: Vec<LoopInfo>,
    steps: LoopInfo,
    /// Loads and stores along a row.
    loads: Vec<Value>,
    stores: Vec<Value>,
}

impl Found {
    /// The nest of a parallel loop at the top, if its threads walk along rows.
    pub fn of(kernel: &Kernel, root: Option<Value>) -> Option<Found> {
        let rows = nest::chain(kernel, root)?;
        let row = *rows.last()?;
        let steps = loops(kernel).into_iter().find(|l| l.open > row.open)?;
        let alone = steps.kind == Some(LoopKind::Serial) && steps.innermost && steps.end < row.end;
        let after = steps.end + 1..row.end;
        let alone = alone && after.clone().all(|i| !kernel.op(Value(i as u32)).opens_region());
        if !alone || !row.body().all(|i| is_plain(kernel, Value(i as u32))) {
            return None;
        }
        let mut slopes = Slopes { kernel, known: FxHashMap::default() };
        // The loop along whose rows threads would be neighbours without this pass.
        let neighbours = rows.iter().rfind(|l| l.len != Some(1)).copied()?;
        let mut along = |index: Value| {
            slopes.of(index, steps.open).is_some_and(|slope| slope.abs() == 1)
                && slopes.of(index, neighbours.open).is_some_and(|slope| slope.abs() > 1)
        };
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        for v in row.body().map(|i| Value(i as u32)) {
            match kernel.op(v) {
                Op::Load { buf, index, .. } if is_param(kernel, buf) => {
                    let walked = steps.body().contains(&v.idx());
                    loads.extend((walked && along(index)).then_some(v));
                }
                Op::Store { buf, index, .. } if is_param(kernel, buf) => {
                    match steps.body().contains(&v.idx()) {
                        true if along(index) => stores.push(v),
                        // Once for each row, after its steps.
                        false if v > steps.open => {}
                        _ => return None,
                    }
                }
                _ => {}
            }
        }
        let found = Found { rows, steps, loads, stores };
        (!found.loads.is_empty() || found.walks()).then_some(found)
    }

    /// Whether results are stored along the rows.
    pub fn walks(&self) -> bool {
        !self.stores.is_empty()
    }

    /// Rows, and steps of each.
    pub fn extents(&self) -> Option<[i64; 2]> {
        let rows = self.rows.iter().map(|l| l.len).try_fold(1i64, |n, len| n.checked_mul(len?))?;
        Some([rows, self.steps.len?])
    }

    /// Whether a device has room for such groups.
    pub fn fits(&self, kernel: &Kernel, [threads, piece]: [i64; 2], caps: &Caps) -> bool {
        let powers = [threads, piece].iter().all(|&x| (2..=1024).contains(&x) && x & (x - 1) == 0);
        let Some([rows, steps]) = self.extents() else { return false };
        let bytes: usize = tiles(kernel, self).iter().map(|ty| ty.size()).sum();
        powers
            && (1..1 << 30).contains(&rows)
            && (1..1 << 30).contains(&steps)
            && rows.saturating_mul(threads) < 1 << 31
            && threads <= caps.max_local as i64
            && bytes * (threads * (piece + 1)) as usize <= caps.shared_bytes.min(SHARED_BYTES)
            && (rows + threads - 1) / threads <= caps.max_groups[0] as i64
    }
}

/// Dtypes of the storage: one for each load, and for stores that cannot take a load's place.
fn tiles(kernel: &Kernel, found: &Found) -> Vec<DType> {
    let mut all: Vec<DType> = found.loads.iter().map(|&v| kernel.ty(v).dtype).collect();
    for (i, &store) in found.stores.iter().enumerate() {
        if place_of(kernel, found, i).is_none() {
            all.push(stored(kernel, store));
        }
    }
    all
}

/// The load whose storage the store number `i` takes over: of the same dtype and before it.
fn place_of(kernel: &Kernel, found: &Found, i: usize) -> Option<usize> {
    let (load, store) = (*found.loads.get(i)?, found.stores[i]);
    (load < store && kernel.ty(load).dtype == stored(kernel, store)).then_some(i)
}

fn stored(kernel: &Kernel, store: Value) -> DType {
    match kernel.op(store) {
        Op::Store { value, .. } => kernel.ty(value).dtype,
        _ => unreachable!("invariant: stores are stores"),
    }
}

fn is_param(kernel: &Kernel, buf: Value) -> bool {
    matches!(kernel.op(buf), Op::Param { .. })
}

/// Whether an op of the nest may be run by another thread at another time.
fn is_plain(kernel: &Kernel, v: Value) -> bool {
    let scalar = !kernel.ty(v).is_vector();
    scalar
        && match kernel.op(v) {
            Op::Load { buf, order, .. } => {
                let fixed = match kernel.op(buf) {
                    Op::Param { access, .. } => access == Access::Read,
                    _ => true,
                };
                order == Order::Plain && fixed
            }
            Op::Store { buf, order, .. } => {
                let written = match kernel.op(buf) {
                    Op::Param { access, .. } => access == Access::Write,
                    _ => true,
                };
                order == Order::Plain && written
            }
            Op::Alloc { space, .. } => space == Space::Register,
            Op::Loop { .. } | Op::End { .. } => true,
            op => op.is_pure(),
        }
}

/// By how much integers made of counters alone grow with one of them.
struct Slopes<'k> {
    kernel: &'k Kernel,
    known: FxHashMap<(Value, Value), Option<i64>>,
}

impl Slopes<'_> {
    /// `None` where it is no constant, or the value depends on memory.
    fn of(&mut self, v: Value, counter: Value) -> Option<i64> {
        if v <= counter {
            return Some((v == counter).into());
        }
        if let Some(&known) = self.known.get(&(v, counter)) {
            return known;
        }
        let slope = self.find(v, counter);
        self.known.insert((v, counter), slope);
        slope
    }

    fn find(&mut self, v: Value, counter: Value) -> Option<i64> {
        let op = self.kernel.op(v);
        match op {
            // Other counters.
            Op::Loop { .. } => return Some(0),
            _ if !op.is_pure() => return None,
            Op::Cast { x } if self.kernel.ty(x).dtype.is_int() => return self.of(x, counter),
            Op::Guard { index, cond } => {
                self.of_pure(cond)?;
                return self.of(index, counter);
            }
            _ => {}
        }
        slope(self.kernel, op, |x| self.of(x, counter)).or_else(|| {
            let still = op.operands().into_iter().all(|x| self.of(x, counter) == Some(0));
            still.then_some(0)
        })
    }

    /// Whether a condition can be computed again: it depends on counters, not on memory.
    fn of_pure(&mut self, v: Value) -> Option<()> {
        let op = self.kernel.op(v);
        match op {
            Op::Loop { .. } | Op::Var { .. } => Some(()),
            _ if !op.is_pure() => None,
            _ => op.operands().into_iter().try_for_each(|x| self.of_pure(x)),
        }
    }
}

fn apply(kernel: &Kernel, site: &Site) -> Kernel {
    let (Some(found), &[threads, piece]) = (Found::of(kernel, site.value), &site.params[..]) else {
        return kernel.clone();
    };
    let any = Caps { max_local: 1024, shared_bytes: SHARED_BYTES, ..Caps::default() };
    match found.extents() {
        Some(extents) if found.fits(kernel, [threads, piece], &any) => {
            emit(kernel, &found, extents, [threads, piece])
        }
        _ => kernel.clone(),
    }
}

fn emit(kernel: &Kernel, found: &Found, extents: [i64; 2], sizes: [i64; 2]) -> Kernel {
    let ([rows, steps], [threads, piece]) = (extents, sizes);
    let root = found.rows[0];
    let mut at = Elements::new(kernel, root.open);
    let groups = at.r.out.index((rows + threads - 1) / threads);
    let locals = at.r.out.index(threads);
    let group = at.r.out.open_loop(LoopKind::Group, 0, groups);
    let group = at.r.out.cast(DType::I32, group);
    let storage: Vec<Value> = tiles(kernel, found)
        .into_iter()
        .map(|dtype| {
            let len = (threads * (piece + 1)) as u32;
            at.r.out.alloc(Space::Shared, Type::scalar(dtype), len)
        })
        .collect();
    let thread = at.r.out.open_loop(LoopKind::Local, 0, locals);
    let thread = at.r.out.cast(DType::I32, thread);
    let first = at.times(group, threads);
    let relay = Relay { found, storage, thread, first, extents, sizes };
    relay.prepare(&mut at);
    let pieces = at.r.out.index((steps + piece - 1) / piece);
    let number = at.r.out.open_loop(LoopKind::Serial, 0, pieces);
    let number = at.r.out.cast(DType::I32, number);
    let start = at.times(number, piece);
    if !found.loads.is_empty() {
        relay.bring(&mut at, start);
        at.r.out.barrier(BarrierScope::Shared);
    }
    relay.walk(&mut at, start);
    at.r.out.barrier(BarrierScope::Shared);
    if found.walks() {
        relay.carry_back(&mut at, start);
        at.r.out.barrier(BarrierScope::Shared);
    }
    at.r.out.close();
    relay.finish(&mut at);
    (0..2).for_each(|_| at.r.out.close());
    at.r.finish_from(root.end + 1)
}

/// What the phases share.
struct Relay<'f> {
    found: &'f Found,
    storage: Vec<Value>,
    thread: Value,
    /// The group's first row.
    first: Value,
    extents: [i64; 2],
    sizes: [i64; 2],
}

impl Relay<'_> {
    /// Sets the counters of the parallel loops for a row, held to the last one.
    fn place_row(&self, at: &mut Elements<'_>, row: Value) {
        let [rows, _] = self.extents;
        let row = if rows % self.sizes[0] == 0 { row } else { at.op(Min, row, rows - 1) };
        at.clear();
        at.place(&self.found.rows, row);
    }

    fn place_step(&self, at: &mut Elements<'_>, step: Value) {
        let open = self.found.steps.open;
        let counter = at.r.out.cast(at.r.src.ty(open).dtype, step);
        at.set(open, counter);
    }

    /// What a thread does before it walks along its row.
    fn prepare(&self, at: &mut Elements<'_>) {
        let row = at.r.out.binary(Add, self.first, self.thread);
        self.place_row(at, row);
        for l in &self.found.rows {
            let counter = at.eval(l.open);
            at.r.set(l.open, counter);
        }
        let before = self.found.rows[0].open.idx() + 1..self.found.steps.open.idx();
        for v in before.map(|i| Value(i as u32)) {
            if !matches!(at.r.src.op(v), Op::Loop { .. }) {
                at.r.copy(v);
            }
        }
    }

    /// Runs `f` for each of a thread's elements of a piece: with the place in shared storage and,
    /// where the piece may reach beyond the rows, whether the element exists.
    fn each(
        &self,
        at: &mut Elements<'_>,
        start: Value,
        mut f: impl FnMut(&mut Elements<'_>, &[(Value, Value, Value)]),
    ) {
        let [threads, piece] = self.sizes;
        let together = TOGETHER.min(piece);
        let turns = at.r.out.index(piece / together);
        let turn = at.r.out.open_loop(LoopKind::Serial, 0, turns);
        let turn = at.r.out.cast(DType::I32, turn);
        let base = at.times(turn, together * threads);
        let base = at.r.out.binary(Add, base, self.thread);
        let elements: Vec<(Value, Value, Value)> = (0..together)
            .map(|i| {
                let id = at.plus(base, i * threads);
                let (step, row) = (at.masked(id, piece), at.shifted(id, piece));
                let place = at.times(row, piece + 1);
                let place = at.r.out.binary(Add, place, step);
                let row = at.r.out.binary(Add, self.first, row);
                let step = at.r.out.binary(Add, start, step);
                (row, step, place)
            })
            .collect();
        f(at, &elements);
        at.r.out.close();
    }

    fn bring(&self, at: &mut Elements<'_>, start: Value) {
        let [_, steps] = self.extents;
        self.each(at, start, |at, elements| {
            let mut brought = Vec::new();
            for &(row, step, place) in elements {
                let whole = steps % self.sizes[1] == 0;
                let step = if whole { step } else { at.op(Min, step, steps - 1) };
                self.place_row(at, row);
                self.place_step(at, step);
                for (i, &load) in self.found.loads.iter().enumerate() {
                    brought.push((self.storage[i], place, at.eval(load)));
                }
            }
            brought.into_iter().for_each(|(storage, place, x)| {
                at.r.out.store(storage, place, x);
            });
        });
    }

    /// Where the store number `i` leaves its elements.
    fn storage_of(&self, kernel: &Kernel, i: usize) -> Value {
        let own = |i: &usize| place_of(kernel, self.found, *i).is_none();
        let taken = place_of(kernel, self.found, i);
        let number = taken.unwrap_or_else(|| self.found.loads.len() + (0..i).filter(own).count());
        self.storage[number]
    }

    fn walk(&self, at: &mut Elements<'_>, start: Value) {
        let ([_, steps], [_, piece]) = (self.extents, self.sizes);
        let length = at.r.out.index(piece);
        let i = at.r.out.open_loop(LoopKind::Serial, 0, length);
        let i = at.r.out.cast(DType::I32, i);
        let step = at.r.out.binary(Add, start, i);
        let partial = steps % piece != 0;
        if partial {
            let inside = at.op(Lt, step, steps);
            at.r.out.open_if(inside);
        }
        let line = at.times(self.thread, piece + 1);
        let place = at.r.out.binary(Add, line, i);
        let open = self.found.steps.open;
        let counter = at.r.out.cast(at.r.src.ty(open).dtype, step);
        at.r.set(open, counter);
        for v in self.found.steps.body().map(|i| Value(i as u32)) {
            if let Some(i) = self.found.loads.iter().position(|&load| load == v) {
                let x = at.r.out.load(self.storage[i], place);
                at.r.set(v, x);
            } else if let Some(i) = self.found.stores.iter().position(|&store| store == v) {
                let Op::Store { value, .. } = at.r.src.op(v) else {
                    unreachable!("invariant: stores are stores")
                };
                let x = at.r.get(value);
                let storage = self.storage_of(at.r.src, i);
                at.r.out.store(storage, place, x);
            } else {
                at.r.copy(v);
            }
        }
        if partial {
            at.r.out.close();
        }
        at.r.out.close();
    }

    /// What a thread does after it walked along its row, if it has one of its own.
    fn finish(&self, at: &mut Elements<'_>) {
        let Some(row) = self.found.rows.last() else { return };
        let after = self.found.steps.end + 1..row.end;
        if after.is_empty() {
            return;
        }
        let partial = self.extents[0] % self.sizes[0] != 0;
        if partial {
            let row = at.r.out.binary(Add, self.first, self.thread);
            at.open_below([(row, self.extents[0], self.sizes[0])]);
        }
        at.r.copy_range(after);
        if partial {
            at.r.out.close();
        }
    }

    fn carry_back(&self, at: &mut Elements<'_>, start: Value) {
        let ([rows, steps], [threads, piece]) = (self.extents, self.sizes);
        self.each(at, start, |at, elements| {
            for &(row, step, place) in elements {
                let open = at.open_below([(row, rows, threads), (step, steps, piece)]);
                self.place_row(at, row);
                self.place_step(at, step);
                for (i, &store) in self.found.stores.iter().enumerate() {
                    let Op::Store { buf, index, .. } = at.r.src.op(store) else {
                        unreachable!("invariant: stores are stores")
                    };
                    let storage = self.storage_of(at.r.src, i);
                    let x = at.r.out.load(storage, place);
                    let (buf, index) = (at.eval(buf), at.eval(index));
                    at.r.out.store(buf, index, x);
                }
                if open {
                    at.r.out.close();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::samples;

    #[test]
    fn only_walks_along_rows_are_relayed() {
        let kernel = samples::resume(9, 20);
        let found = Found::of(&kernel, Some(loops(&kernel)[0].open)).unwrap();
        assert_eq!((found.loads.len(), found.stores.len()), (1, 1));
        assert_eq!(found.extents(), Some([9, 20]));
        assert_eq!(tiles(&kernel, &found), [DType::F32]);
        let kernel = samples::sum_rows(DType::F32, 5, 39);
        let found = Found::of(&kernel, Some(loops(&kernel)[0].open)).unwrap();
        assert_eq!((found.loads.len(), found.walks()), (1, false));
        for kernel in [samples::sum_cols(DType::F32, 5, 39), samples::transpose(9, 20)] {
            assert!(Found::of(&kernel, Some(loops(&kernel)[0].open)).is_none());
        }
    }
}
