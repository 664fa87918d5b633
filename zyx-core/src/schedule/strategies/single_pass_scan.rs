//! Scans in one pass: groups of threads that look back at what ends before them.
//!
//! A row is cut into tiles. A group tells the others what a tile combines to, learns from theirs what
//! comes before it, scans it in shared storage and writes results: each element is read and written
//! once (decoupled look-back, Merrill and Garland 2016). A group gets the number of a tile when it is
//! ready for it, so it waits only for tiles that others have begun with, who go on whatever happens
//! ([`Progress::Occupancy`]).
//!
//! Groups would wait for the slowest of all that loads before them, and memory would idle meanwhile.
//! So a group looks back for a tile only after it has loaded the next one and told what that combines
//! to: by then the others have told, too. The older tile is in shared storage, the newer in registers.
//!
//! Each thread of a group waits for one of the tiles before its own, as many as there are threads: for
//! what that combines to, and of the furthest for what all up to it do, which each group tells last.
//! What is combined with what follows from the place in the row alone, so results are the same from run
//! to run.
//!
//! Where there are rows enough for all groups, a group scans the tiles of its row in turn: none waits.
//!
//! Of sums in `f32`, what all up to a tile add up to comes with its rounding error (Knuth's TwoSum, TAOCP
//! 4.2.2), so the error of a long row is that of one window of tiles.
//!
//! What groups tell one another are words of the scan's state: half of each is a part of the value,
//! and one more bit says that it is there. The number of tiles given away comes first. All of it is
//! zero before the launch.

use super::Nest;
use crate::affine::AtomId;
use crate::dtype::DType;
use crate::graph::{Graph, Node, NodeId};
use crate::hal::{Caps, Progress};
use crate::ir::{Access, BarrierScope, Builder, LoopKind, Op, Order, Space, Type, Value};
use crate::ops::BinaryOp::{self, Add, And, Div, Eq, Le, Lt, Min, Mul, Or, Rem, Shl, Shr, Sub};
use crate::runtime::Device;
use crate::scalar::Scalar;
use crate::schedule::item::ScheduleItem;
use crate::schedule::loop_body::collect_roots;
use crate::schedule::lower::{Lowered, Lowering, name};
use crate::schedule::pull::TupleId;
use crate::shape::Shape;
use std::sync::Arc;

/// Threads of a group, and tiles that it looks back at.
const THREADS: i64 = 256;
/// Threads whose elements are combined by each of them.
const SEGMENT: i64 = 16;
/// Bytes of the elements that a thread has, at most; and elements, at least.
const OWN_BYTES: i64 = 128;
const MIN_OWN: i64 = 8;
/// Words of 32 bits that memory serves at once: after so many a place is left out.
const BANKS: i64 = 32;
/// Fewest elements of a row, and the part of a device's threads that there are rows at most: more
/// rows keep it busy by themselves.
const MIN_ROW: usize = 1 << 8;
const MANY_ROWS: usize = 8;
/// Groups that a multiprocessor has room for.
const GROUPS: usize = 4;
/// No tile.
const NONE: u32 = u32::MAX;

/// How a scan is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiles {
    /// Elements of a row, and of a thread.
    n: i64,
    own: i64,
    /// Words that hold an element, and what all up to a tile combine to: two elements where the
    /// second is the rounding error of the first.
    words: i64,
    whole_words: i64,
    rows: i64,
    /// Most groups there are room for.
    groups: i64,
}

impl Tiles {
    /// The tiles of a scan that a device computes in one pass.
    fn of(graph: &Graph, id: NodeId, caps: &Caps) -> Option<Tiles> {
        let Node::Scan { op, axis, .. } = graph.node(id) else { return None };
        let (dtype, shape) = (graph.dtype(id), graph.shape(id));
        let n = shape[axis as usize];
        let along_memory = shape[axis as usize + 1..].iter().all(|&extent| extent == 1);
        let rows = shape.numel() / n.max(1);
        let size = dtype.size() as i64;
        if !along_memory || n < MIN_ROW || rows == 0 || rows > caps.threads / MANY_ROWS || size < 4
        {
            return None;
        }
        let groups = caps.multiprocessors().max(1) * GROUPS;
        let share = (shape.numel() / groups) as i64 / THREADS;
        let own = share.clamp(MIN_OWN, OWN_BYTES / size).min((n as i64 + THREADS - 1) / THREADS);
        let own = (own as u64).next_power_of_two() as i64;
        // The last tile of a row is nearly as full as the others.
        let of_row = (n as i64 + THREADS * own - 1) / (THREADS * own);
        let own = (n as i64 + THREADS * of_row - 1) / (THREADS * of_row);
        let words = size / 4;
        let compensated = (op, dtype) == (Add, DType::F32);
        let tiles = Tiles {
            n: n as i64,
            own,
            words,
            whole_words: if compensated { 2 * words } else { words },
            rows: rows as i64,
            groups: groups as i64,
        };
        let waits = caps.progress == Progress::Occupancy
            && caps.atomics.contains(DType::U64)
            && caps.has_atomic(Add, DType::U64)
            && caps.branched_barriers;
        let fits = !caps.has_few_threads()
            && !caps.emulated.contains(DType::U64)
            && caps.compute.contains(dtype)
            && caps.max_local as i64 >= THREADS
            && caps.shared_bytes as i64 >= tiles.shared_bytes(size)
            && caps.max_groups[0] >= tiles.all() as u64;
        (fits && (waits || tiles.is_walked())).then_some(tiles)
    }

    /// Elements of a tile.
    fn tile(self) -> i64 {
        THREADS * self.own
    }

    /// Tiles of a row.
    fn of_row(self) -> i64 {
        (self.n + self.tile() - 1) / self.tile()
    }

    fn all(self) -> i64 {
        self.rows * self.of_row()
    }

    /// Whether a group scans the tiles of a row in turn, so that none waits for another.
    fn is_walked(self) -> bool {
        self.of_row() == 1 || self.rows >= self.groups
    }

    /// Words of the state: for each tile what it combines to, and what all up to it do.
    fn state(self) -> usize {
        (1 + (self.words + self.whole_words) * self.all()) as usize
    }

    /// Whether what all up to a tile add up to comes with its rounding error.
    fn compensated(self) -> bool {
        self.whole_words > self.words
    }

    fn shared_bytes(self, size: i64) -> i64 {
        size * (self.padded(self.tile()) + 2 * THREADS + THREADS / SEGMENT + 2) + 8
    }

    /// How many places `n` elements take with one left out after each run that fills the banks.
    fn padded(self, n: i64) -> i64 {
        n + n / (BANKS / self.words)
    }
}

/// The graph in which scans that a device computes in one pass have a state; `None` if there is
/// none. Groups wait for one another only where the device's litmus test agrees with what its driver promises.
pub(in crate::schedule) fn prepare(graph: &Graph, device: &Device) -> Option<Graph> {
    let of = |id| Tiles::of(graph, id, device.caps());
    let mut tiles: Vec<Option<Tiles>> = graph.ids().map(of).collect();
    let waits = |tiles: &Option<Tiles>| tiles.is_some_and(|tiles| !tiles.is_walked());
    if tiles.iter().any(waits) && device.progress().ok() != Some(Progress::Occupancy) {
        tiles.iter_mut().filter(|tiles| waits(tiles)).for_each(|tiles| *tiles = None);
    }
    tiles.iter().find(|tiles| tiles.is_some())?;
    let mut new = graph.without_nodes();
    let mut map: Vec<NodeId> = Vec::with_capacity(graph.len());
    for (id, tiles) in graph.ids().zip(tiles) {
        new.origins.hand_on(&graph.origins, id);
        let mut node = graph.node(id).map(|source| map[source.idx()]);
        if let (Node::Scan { state, .. }, Some(tiles)) = (&mut node, tiles) {
            let shape = Shape::from([tiles.state()]);
            *state = Some(new.push(Node::Const { bits: 0 }, DType::U64, shape));
        }
        map.push(new.push(node, graph.dtype(id), graph.shape(id).clone()));
    }
    new.outputs = graph.outputs.iter().map(|id| map[id.idx()]).collect();
    Some(new)
}

/// The kernels of a scan that has a state.
pub(super) fn lower(nest: &mut Nest<'_>) -> Option<Vec<ScheduleItem>> {
    let Nest { graph, partition, number: group, group: this, caps, .. } = nest;
    let (graph, partition, group, caps) = (*graph, &mut **partition, *group, *caps);
    let root = this.roots[0].clone();
    let Node::Scan { op, x, state: Some(state), .. } = graph.node(root.node) else { return None };
    let tiles = Tiles::of(graph, root.node, caps)?;
    let (&along, outer) = this.axes.split_last()?;
    let roots = [(root.node, root.tuple)];
    let found = collect_roots(graph, partition, group, &roots, &[], &this.axes);
    if !found.body.reductions.is_empty() {
        return None;
    }
    let mut l = Lowering::new(graph, partition, name(graph, this));
    let mut written = vec![(root.node, Access::Write)];
    if !tiles.is_walked() {
        written.push((state, Access::ReadWrite));
    }
    l.declare(found, &written);
    let dtype = graph.dtype(root.node);
    let buffer = (!tiles.is_walked()).then(|| l.param(state));
    let groups = if tiles.is_walked() { tiles.rows } else { tiles.all().min(tiles.groups) };
    let [n_groups, threads] = [groups, THREADS].map(|n| l.b.index(n));
    let number = l.b.open_loop(LoopKind::Group, 0, n_groups);
    let storage = Storage {
        elements: shared(&mut l.b, dtype, tiles.padded(tiles.tile())),
        sums: shared(&mut l.b, dtype, THREADS),
        segments: shared(&mut l.b, dtype, THREADS / SEGMENT),
    };
    let tickets = buffer.map(|state| Tickets {
        state,
        starts: shared(&mut l.b, dtype, THREADS),
        furthest: shared(&mut l.b, dtype, 2),
        numbers: shared(&mut l.b, DType::U32, 2),
        groups,
    });
    let thread = l.b.open_loop(LoopKind::Local, 0, threads);
    let source = (x, root.tuple);
    let mut pass = Pass { l: &mut l, tiles, op, dtype, storage, thread, along, outer };
    match &tickets {
        Some(tickets) => pass.look_back(tickets, source, root.node),
        None => pass.walk(number, source, (root.node, root.tuple)),
    }
    l.b.close();
    l.b.close();
    let scan = l.finish();
    let zeros = tickets.is_some().then(|| zeros(graph, state));
    Some(zeros.into_iter().chain([scan]).map(ScheduleItem::Kernel).collect())
}

/// The kernel that writes zeros.
fn zeros(graph: &Graph, state: NodeId) -> Lowered {
    let n = graph.shape(state).numel();
    let mut b = Builder::new(&format!("zeros_{n}"));
    let buffer = b.param(DType::U64, n as u64, Access::Write);
    let (len, zero) = (b.index(n as i64), b.constant(Scalar::from(0u64)));
    let i = b.open_loop(LoopKind::Parallel, 0, len);
    b.store(buffer, i, zero);
    b.close();
    Lowered { kernel: Arc::new(b.finish()), params: vec![state], vars: Vec::new() }
}

fn shared(b: &mut Builder, dtype: DType, n: i64) -> Value {
    b.alloc(Space::Shared, Type::scalar(dtype), n as u32)
}

/// Shared storage of a group.
struct Storage {
    elements: Value,
    sums: Value,
    segments: Value,
}

/// What groups look back with.
struct Tickets {
    state: Value,
    /// For each thread what those before it have of the tile in shared storage.
    starts: Value,
    /// What all up to the furthest tile add up to, and its rounding error.
    furthest: Value,
    /// The tile in shared storage and the one that is being loaded.
    numbers: Value,
    groups: i64,
}

/// What all up to a place of a row combine to, and how much more that is than its value.
#[derive(Clone, Copy)]
struct Whole {
    value: Value,
    error: Option<Value>,
}

/// What a group does, being emitted.
struct Pass<'l, 'a> {
    l: &'l mut Lowering<'a>,
    tiles: Tiles,
    op: BinaryOp,
    dtype: DType,
    storage: Storage,
    thread: Value,
    along: AtomId,
    outer: &'l [AtomId],
}

impl Pass<'_, '_> {
    fn by(&mut self, op: BinaryOp, x: Value, by: i64) -> Value {
        let dtype = self.l.b.ty(x).dtype;
        if matches!((op, by), (Add | Shl | Shr, 0) | (Mul | Div, 1)) {
            return x;
        }
        let by = self.l.b.constant(Scalar::from_i64(dtype, by));
        self.l.b.binary(op, x, by)
    }

    fn meet(&mut self) {
        self.l.b.barrier(BarrierScope::Shared);
    }

    fn combine(&mut self, x: Value, y: Value) -> Value {
        self.l.b.binary(self.op, x, y)
    }

    fn neutral(&mut self) -> Value {
        let identity = self.op.identity(self.dtype).expect("invariant: scans are associative");
        self.l.b.constant(identity)
    }

    fn is_first(&mut self) -> Value {
        let zero = self.l.b.index(0);
        self.l.b.binary(Eq, self.thread, zero)
    }

    /// The tiles of a row in turn, each behind what those before it combine to.
    fn walk(&mut self, row: Value, source: (NodeId, TupleId), root: (NodeId, TupleId)) {
        if self.tiles.of_row() == 1 {
            let elements = self.bring(row, source, None);
            let [before, _] = self.scan(&elements);
            return self.write(row, before, root);
        }
        let zero = self.l.b.index(0);
        let neutral = self.neutral();
        let parts = if self.tiles.compensated() { 2 } else { 1 };
        let so_far: Vec<Value> = (0..parts)
            .map(|_| {
                let part = self.l.b.alloc(Space::Register, Type::scalar(self.dtype), 1);
                self.l.b.store(part, zero, neutral);
                part
            })
            .collect();
        let turns = self.l.b.index(self.tiles.of_row());
        let turn = self.l.b.open_loop(LoopKind::Serial, 0, turns);
        let first = self.by(Mul, row, self.tiles.of_row());
        let tile = self.l.b.binary(Add, first, turn);
        let elements = self.bring(tile, source, None);
        let [start, all] = self.scan(&elements);
        let value = self.l.b.load(so_far[0], zero);
        let error = so_far.get(1).map(|&part| self.l.b.load(part, zero));
        let start = error.map_or(start, |error| self.combine(error, start));
        let before = self.combine(value, start);
        let whole = self.append(Whole { value, error }, all);
        for (&part, value) in so_far.iter().zip([Some(whole.value), whole.error]) {
            self.l.b.store(part, zero, value.expect("invariant: an error for each sum"));
        }
        self.write(tile, before, root);
        self.meet();
        self.l.b.close();
    }

    /// All tiles of a group: in each turn one is loaded, and the one before it is done.
    fn look_back(&mut self, tickets: &Tickets, (x, tuple): (NodeId, TupleId), root: NodeId) {
        let first = self.is_first();
        let [old, new] = [0, 1].map(|i| self.l.b.index(i));
        let none = self.l.b.constant(Scalar::from(NONE));
        let at = self.l.b.guard(new, first);
        self.l.b.store(tickets.numbers, at, none);
        let whole = self.l.b.alloc(Space::Register, Type::scalar(self.dtype), 1);
        let neutral = self.neutral();
        self.l.b.store(whole, old, neutral);

        let loads = (self.tiles.all() + tickets.groups - 1) / tickets.groups;
        let turns = self.l.b.index(loads + 1);
        let turn = self.l.b.open_loop(LoopKind::Serial, 0, turns);
        let loads = self.by(Lt, turn, loads);
        self.draw(tickets, loads);
        let (older, is_older) = self.drawn(tickets, old);
        let (newer, is_newer) = self.drawn(tickets, new);
        let elements = self.bring(newer, (x, tuple), Some(is_newer));
        let total = self.total(&elements);
        let at = self.at(newer);
        let tells = self.l.b.binary(And, is_newer, first);
        self.tell(tickets.state, at, total, tells);

        self.l.b.open_if(is_older);
        let before = self.learn_before(tickets, older);
        let so_far = self.l.b.load(whole, old);
        let up_to_here = self.append(before, so_far);
        let at = self.at_whole(older);
        self.tell(tickets.state, at, up_to_here.value, first);
        if let Some(error) = up_to_here.error {
            let at = self.by(Add, at, self.tiles.words);
            self.tell(tickets.state, at, error, first);
        }
        let start = self.l.b.load(tickets.starts, self.thread);
        let start = before.error.map_or(start, |error| self.combine(error, start));
        let before = self.combine(before.value, start);
        self.write(older, before, (root, tuple));
        self.meet();
        self.l.b.close();

        self.l.b.open_if(is_newer);
        let [start, all] = self.scan(&elements);
        self.l.b.store(tickets.starts, self.thread, start);
        self.l.b.store(whole, old, all);
        self.l.b.close();
        self.l.b.close();
    }

    /// The newer tile becomes the older one, and the next that nobody has the newer, where `cond`
    /// holds.
    fn draw(&mut self, tickets: &Tickets, cond: Value) {
        let [old, new] = [0, 1].map(|i| self.l.b.index(i));
        let first = self.is_first();
        self.l.b.open_if(first);
        let number = self.l.b.load(tickets.numbers, new);
        self.l.b.store(tickets.numbers, old, number);
        let one = self.l.b.constant(Scalar::from(1u64));
        let at = self.l.b.guard(old, cond);
        let number = self.l.b.atomic(Add, tickets.state, at, one);
        let number = self.l.b.cast(DType::U32, number);
        let none = self.l.b.constant(Scalar::from(NONE));
        let number = self.l.b.select(cond, number, none);
        self.l.b.store(tickets.numbers, new, number);
        self.l.b.close();
        self.meet();
    }

    /// A tile of the group, and whether it is one.
    fn drawn(&mut self, tickets: &Tickets, which: Value) -> (Value, Value) {
        let number = self.l.b.load(tickets.numbers, which);
        let number = self.l.b.cast(DType::I64, number);
        let exists = self.by(Lt, number, self.tiles.all());
        (self.by(Min, number, self.tiles.all() - 1), exists)
    }

    /// The number, in its tile, of an element of those that lie beside its neighbours', where it is
    /// in the row, and whether it is.
    fn beside(&mut self, tile: Value, i: i64) -> (Value, Value, Option<Value>) {
        let number = self.by(Add, self.thread, i * THREADS);
        let place = self.by(Rem, tile, self.tiles.of_row());
        let start = self.by(Mul, place, self.tiles.tile());
        let position = self.l.b.binary(Add, start, number);
        let whole = self.tiles.n % self.tiles.tile() == 0;
        (number, position, (!whole).then(|| self.by(Lt, position, self.tiles.n)))
    }

    /// Makes counters those of a tile's row.
    fn enter_row(&mut self, tile: Value) {
        let row = self.by(Div, tile, self.tiles.of_row());
        self.l.count_digits(self.outer, row);
    }

    /// The elements of a tile that lie beside the neighbours', with neutral ones behind the row.
    fn bring(
        &mut self,
        tile: Value,
        (x, tuple): (NodeId, TupleId),
        exists: Option<Value>,
    ) -> Vec<Value> {
        self.enter_row(tile);
        let mut elements = Vec::new();
        for i in 0..self.tiles.own {
            let (_, position, inside) = self.beside(tile, i);
            let cond = match (inside, exists) {
                (Some(inside), Some(exists)) => Some(self.l.b.binary(And, inside, exists)),
                (inside, exists) => inside.or(exists),
            };
            self.l.open_scope();
            self.l.counters.insert(self.along, position);
            let element = self.l.value(x, tuple, cond);
            self.l.close_scope();
            let neutral = self.neutral();
            elements.push(inside.map_or(element, |c| self.l.b.select(c, element, neutral)));
        }
        elements
    }

    fn padded(&mut self, number: Value) -> Value {
        let skipped = self.by(Div, number, BANKS / self.tiles.words);
        self.l.b.binary(Add, number, skipped)
    }

    /// What all elements of the threads combine to: right in the first thread.
    fn total(&mut self, elements: &[Value]) -> Value {
        let mut values = elements.to_vec();
        while let [_, _, ..] = values[..] {
            let halves = values.chunks(2).map(|pair| match *pair {
                [x, y] => self.combine(x, y),
                _ => pair[0],
            });
            values = halves.collect();
        }
        let own = values[0];
        self.l.b.store(self.storage.sums, self.thread, own);
        self.meet();
        let [segment, lane, start] = self.segment();
        let [_, all] = self.folds(self.storage.sums, Some(start), lane, SEGMENT);
        self.leave_segment(segment, lane, all);
        let [_, all] = self.folds(self.storage.segments, None, segment, THREADS / SEGMENT);
        all
    }

    /// Scans a tile in shared storage, each thread the elements that follow one another. Gives what
    /// the threads before this one have, and what all of them have.
    fn scan(&mut self, elements: &[Value]) -> [Value; 2] {
        for (i, &element) in elements.iter().enumerate() {
            let number = self.by(Add, self.thread, i as i64 * THREADS);
            let at = self.padded(number);
            self.l.b.store(self.storage.elements, at, element);
        }
        self.meet();
        let first = self.by(Mul, self.thread, self.tiles.own);
        let mut running = None;
        for i in 0..self.tiles.own {
            let number = self.by(Add, first, i);
            let at = self.padded(number);
            let mut sum = self.l.b.load(self.storage.elements, at);
            if let Some(so_far) = running {
                sum = self.combine(so_far, sum);
                self.l.b.store(self.storage.elements, at, sum);
            }
            running = Some(sum);
        }
        self.scan_threads(running.expect("invariant: a thread has elements"))
    }

    /// What the threads before this one have, one value each, and what all of them have.
    fn scan_threads(&mut self, value: Value) -> [Value; 2] {
        self.l.b.store(self.storage.sums, self.thread, value);
        self.meet();
        let [segment, lane, start] = self.segment();
        let [own, all] = self.folds(self.storage.sums, Some(start), lane, SEGMENT);
        self.leave_segment(segment, lane, all);
        let [before, all] = self.folds(self.storage.segments, None, segment, THREADS / SEGMENT);
        [self.combine(before, own), all]
    }

    /// A thread's segment, its place there, and the first thread of it.
    fn segment(&mut self) -> [Value; 3] {
        let segment = self.by(Div, self.thread, SEGMENT);
        [segment, self.by(Rem, self.thread, SEGMENT), self.by(Mul, segment, SEGMENT)]
    }

    fn leave_segment(&mut self, segment: Value, lane: Value, all: Value) {
        let last = self.by(Eq, lane, SEGMENT - 1);
        let place = self.l.b.guard(segment, last);
        self.l.b.store(self.storage.segments, place, all);
        self.meet();
    }

    /// The first `count` of `n` values combined, and all of them.
    fn folds(&mut self, values: Value, start: Option<Value>, count: Value, n: i64) -> [Value; 2] {
        let neutral = self.neutral();
        let [mut some, mut all] = [neutral; 2];
        for i in 0..n {
            let place = match start {
                Some(start) => self.by(Add, start, i),
                None => self.l.b.index(i),
            };
            let value = self.l.b.load(values, place);
            let number = self.l.b.index(i);
            let counts = self.l.b.binary(Lt, number, count);
            let counted = self.l.b.select(counts, value, neutral);
            some = self.combine(some, counted);
            all = if i == 0 { value } else { self.combine(all, value) };
        }
        [some, all]
    }

    /// What all before a tile in its row combine to.
    fn learn_before(&mut self, tickets: &Tickets, tile: Value) -> Whole {
        // The furthest tile of all threads is the first one's.
        let place = self.by(Rem, tile, self.tiles.of_row());
        let end = self.l.b.binary(Add, place, self.thread);
        let least = self.l.b.index(THREADS);
        let exists = self.l.b.binary(Le, least, end);
        let other = self.l.b.binary(Add, tile, self.thread);
        let other = self.by(Sub, other, THREADS);
        let first = self.is_first();
        let [part, whole] = [self.at(other), self.at_whole(other)];
        let at = self.l.b.select(first, whole, part);
        let value = self.learn(tickets.state, at, exists);
        if !self.tiles.compensated() {
            let [_, value] = self.scan_threads(value);
            return Whole { value, error: None };
        }
        // The first thread's is told to the others by itself: it is much larger than theirs.
        let at = self.by(Add, at, self.tiles.words);
        let exists = self.l.b.binary(And, exists, first);
        let error = self.learn(tickets.state, at, exists);
        for (i, part) in [value, error].into_iter().enumerate() {
            let place = self.l.b.index(i as i64);
            let place = self.l.b.guard(place, first);
            self.l.b.store(tickets.furthest, place, part);
        }
        let neutral = self.neutral();
        let value = self.l.b.select(first, neutral, value);
        let [_, window] = self.scan_threads(value);
        let [value, error] = [0, 1].map(|i| {
            let place = self.l.b.index(i);
            self.l.b.load(tickets.furthest, place)
        });
        self.append(Whole { value, error: Some(error) }, window)
    }

    /// What a whole and a part behind it combine to.
    fn append(&mut self, whole: Whole, part: Value) -> Whole {
        let Some(error) = whole.error else {
            return Whole { value: self.combine(whole.value, part), error: None };
        };
        let x = whole.value;
        let y = self.combine(part, error);
        let value = self.combine(x, y);
        let b = &mut self.l.b;
        let of_y = b.binary(Sub, value, x);
        let of_x = b.binary(Sub, value, of_y);
        let [lost_x, lost_y] = [b.binary(Sub, x, of_x), b.binary(Sub, y, of_y)];
        let lost = b.binary(Add, lost_x, lost_y);
        // Of an infinite sum nothing is known.
        let nothing = b.binary(Sub, lost, lost);
        let finite = b.binary(Eq, nothing, nothing);
        let neutral = self.neutral();
        Whole { value, error: Some(self.l.b.select(finite, lost, neutral)) }
    }

    /// Where the state has what a tile combines to.
    fn at(&mut self, number: Value) -> Value {
        let at = self.by(Mul, number, self.tiles.words);
        self.by(Add, at, 1)
    }

    /// Where it has what all up to a tile combine to.
    fn at_whole(&mut self, number: Value) -> Value {
        let at = self.by(Mul, number, self.tiles.whole_words);
        self.by(Add, at, 1 + self.tiles.words * self.tiles.all())
    }

    /// Stores a value for others to see, where `cond` holds.
    fn tell(&mut self, state: Value, at: Value, value: Value, cond: Value) {
        let half = if self.tiles.words == 1 { DType::U32 } else { DType::U64 };
        let bits = self.l.b.bitcast(half, value);
        let bits = self.l.b.cast(DType::U64, bits);
        for word in 0..self.tiles.words {
            let part = self.by(Shr, bits, 32 * word);
            let part = self.by(Shl, part, 32);
            let part = self.by(Or, part, 1);
            let index = self.by(Add, at, word);
            let index = self.l.b.guard(index, cond);
            let op = Op::Store { order: Order::Relaxed, buf: state, index, value: part };
            self.l.b.push(op, Type::scalar(DType::U64));
        }
    }

    /// The value that another group stores, when it has; the neutral one where `cond` does not hold.
    fn learn(&mut self, state: Value, at: Value, cond: Value) -> Value {
        let mut bits = None;
        for word in 0..self.tiles.words {
            let index = self.by(Add, at, word);
            let index = self.l.b.guard(index, cond);
            let op = Op::Load { order: Order::AcquireSpin, buf: state, index };
            let part = self.l.b.push(op, Type::scalar(DType::U64));
            let part = self.by(Shr, part, 32);
            let part = self.by(Shl, part, 32 * word);
            bits = Some(bits.map_or(part, |bits| self.l.b.binary(Or, bits, part)));
        }
        let bits = bits.expect("invariant: a value has a word");
        let half = if self.tiles.words == 1 { DType::U32 } else { DType::U64 };
        let bits = self.l.b.cast(half, bits);
        let value = self.l.b.bitcast(self.dtype, bits);
        let neutral = self.neutral();
        self.l.b.select(cond, value, neutral)
    }

    /// Writes the tile in shared storage: to what a thread has comes what was before it.
    fn write(&mut self, tile: Value, before: Value, (node, tuple): (NodeId, TupleId)) {
        let buffer = self.l.param(node);
        self.l.b.store(self.storage.sums, self.thread, before);
        self.meet();
        self.enter_row(tile);
        for i in 0..self.tiles.own {
            let (number, position, inside) = self.beside(tile, i);
            let from = self.padded(number);
            let so_far = self.l.b.load(self.storage.elements, from);
            let owner = self.by(Div, number, self.tiles.own);
            let before = self.l.b.load(self.storage.sums, owner);
            let result = self.combine(before, so_far);
            self.l.open_scope();
            self.l.counters.insert(self.along, position);
            let flat = self.l.indices.flat(self.l.nodes.graph, node, tuple);
            let at = self.l.index(&flat);
            self.l.close_scope();
            let at = inside.map_or(at, |inside| self.l.b.guard(at, inside));
            self.l.b.store(buffer, at, result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DTypeSet;
    use crate::error::Result;
    use crate::reference::Reference;
    use crate::runtime::{Litmus, Optimizer, Runtime};
    use crate::tensor::Tensor;
    use crate::testing::evaluate;

    fn device(progress: Progress, optimizer: Optimizer) -> Device {
        device_that(true, progress, optimizer)
    }

    /// A device that keeps what it promises, or not.
    fn device_that(keeps: bool, progress: Progress, optimizer: Optimizer) -> Device {
        let mut reference = Reference::default();
        reference.caps.simt = true;
        reference.caps.max_local = 256;
        reference.caps.shared_bytes = 48 << 10;
        reference.caps.threads = 1 << 21;
        reference.caps.atomics = DTypeSet::ALL;
        reference.caps.atomic_add = DTypeSet::ALL;
        reference.caps.progress = progress;
        let runtime = Runtime::default();
        runtime.register(reference);
        let device = runtime.device("reference").unwrap();
        device.set_optimizer(optimizer);
        let litmus = Litmus { intact: true, earlier: keeps, later: false, ordered: true };
        device.known_litmus().set(litmus).unwrap();
        device
    }

    fn launches(y: &Tensor) -> usize {
        y.explain().unwrap().launches.len()
    }

    /// What a scan is of, and how.
    type Case = (&'static str, fn(&Device) -> Result<Tensor>, usize);

    fn numbers(n: usize, device: &Device) -> Result<Tensor> {
        let values: Vec<i32> = (0..n).map(|i| (i * 7919 % 1031) as i32 - 400).collect();
        Tensor::from_slice(&values, [n], device)
    }

    /// Integers and extremes are the same in any order; the interpreter finds races and groups that
    /// wait for what nobody tells.
    const CASES: &[Case] = &[
        ("tiles that end with the row", |d| numbers(8192, d)?.scan_with(Add, 0, false, false), 2),
        ("and that do not", |d| numbers(5000, d)?.scan_with(BinaryOp::Max, 0, false, false), 2),
        ("from the end", |d| numbers(9001, d)?.scan_with(BinaryOp::Xor, 0, true, false), 3),
        ("in two words", |d| numbers(6000, d)?.cast(DType::I64).cumsum(0), 2),
        ("of several rows", |d| (numbers(15_003, d)?.reshape([3, 5001])? * 3).cumsum(1), 2),
        ("a tile for each row", |d| numbers(4400, d)?.reshape([4, 1100, 1])?.cumsum(1), 1),
        ("more tiles than a window", |d| numbers(600_000, d)?.cumsum(0), 2),
    ];

    #[test]
    fn groups_that_look_back_scan_as_threads_do() {
        for optimizer in [Optimizer::Off, Optimizer::Default] {
            let device = device(Progress::Occupancy, optimizer);
            for &(what, scan, kernels) in CASES {
                let y = scan(&device).unwrap();
                assert_eq!(launches(&y), kernels, "{what}: {:?}", y.explain());
                let y = y.cast(DType::I64);
                let expected = evaluate(&[&y]).unwrap().remove(0);
                let expected: Vec<i64> = expected.iter().map(|x| x.to_i64()).collect();
                assert_eq!(y.to_vec::<i64>().unwrap(), expected, "{what}");
            }
        }
    }

    /// Rows enough for all groups, of more tiles than one.
    #[test]
    fn groups_that_walk_along_rows_scan_as_threads_do() {
        for progress in [Progress::Occupancy, Progress::None] {
            let mut caps = device(progress, Optimizer::Default).caps().clone();
            caps.threads = 1 << 13;
            let runtime = Runtime::default();
            runtime.register(Reference { caps, ..Reference::default() });
            let device = runtime.device("reference").unwrap();
            let x = numbers(17 * 9001, &device).unwrap().reshape([17, 9001]).unwrap();
            for y in [x.cumsum(1), x.cummax(1).map(|both| both.0), x.cast(DType::F32).cumsum(1)] {
                let y = y.unwrap();
                assert_eq!(launches(&y), 1, "{:?}", y.explain());
                let y = y.cast(DType::F64);
                let expected = evaluate(&[&y]).unwrap().remove(0);
                let expected: Vec<f64> = expected.iter().map(|x| x.to_f64()).collect();
                assert_eq!(y.to_vec::<f64>().unwrap(), expected);
            }
        }
    }

    /// Twice the same, with another launch of the same program between.
    #[test]
    fn sums_of_floats_are_the_same_each_time() {
        let device = device(Progress::Occupancy, Optimizer::Default);
        let x = numbers(70_000, &device).unwrap().cast(DType::F32) / 7.0;
        x.realize().unwrap();
        let sums = || x.cumsum(0).unwrap().to_vec::<f32>().unwrap();
        let first = sums();
        x.neg().cumsum(0).unwrap().realize().unwrap();
        assert_eq!(sums(), first);
        let mut sum = 0.0f64;
        for (x, y) in x.to_vec::<f32>().unwrap().into_iter().zip(first) {
            sum += f64::from(x);
            assert!((f64::from(y) - sum).abs() <= 1e-6 * sum.abs().max(1e4), "{y} is not {sum}");
        }
    }

    /// Equal numbers are rounded the same way each time, so errors of a plain sum grow with each of the
    /// four windows of tiles.
    #[test]
    fn the_error_of_a_long_scan_is_that_of_a_window() {
        let n = 1 << 21;
        let device = device(Progress::Occupancy, Optimizer::Off);
        let x = Tensor::full([n], 0.1f32, &device).contiguous();
        x.realize().unwrap();
        let sums = x.cumsum(0).unwrap().to_vec::<f32>().unwrap();
        for (i, &sum) in sums.iter().enumerate() {
            let error = f64::from(sum) / (f64::from(0.1f32) * (i + 1) as f64) - 1.0;
            assert!(error.abs() < 6e-7, "{error:e} at {i}");
        }
    }

    #[test]
    fn nobody_waits_where_that_may_take_for_ever() {
        let waits = |progress: Progress, keeps: bool| {
            let device = device_that(keeps, progress, Optimizer::Off);
            let y = numbers(100_000, &device).unwrap().cumsum(0).unwrap();
            let (graph, _) = crate::graph::capture(&[&y], 0);
            let graph = crate::schedule::split_reduction::split(&graph, &device).unwrap_or(graph);
            let list = crate::schedule::kernels(&graph, &device);
            list.iter().any(crate::ir::Kernel::waits)
        };
        assert!(waits(Progress::Occupancy, true));
        assert!(!waits(Progress::Occupancy, false) && !waits(Progress::None, true));
    }
}
