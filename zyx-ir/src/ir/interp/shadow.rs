//! Who touched which element last, and what orders iterations: the race detector.
//!
//! **Tasks.** Each iteration of a parallel loop is a task, each phase between barriers of a local
//! iteration another. Tasks form a tree: the parent is the task that entered the loop. One entry
//! of a loop is a *span*, a range of consecutive task numbers, so that nothing is allocated per
//! iteration.
//!
//! **Order.** Walk down from the root to two tasks. Where they first differ they are either
//! different iterations of one span, then nothing orders them, or in different spans, then the
//! loops followed one another. If they never differ, one contains the other, or they are one
//! iteration. Spans compare by a *key*, so that the phases of a local iteration between barriers
//! that do not order buffers count as one phase for buffers.
//!
//! **Marks.** A tree of fork and join, run depth first, needs one earlier load and one earlier
//! store per element to find whether there is a race (Feng and Leiserson 1997): a later access
//! unordered with a mark that was replaced is unordered with the mark that replaced it. A load
//! mark is therefore replaced only by one it is ordered before. Atomic accesses have marks of
//! their own, as they race with plain accesses only.
//!
//! **Releases.** A release ends a task; the rest of its iteration goes on under a new number. Who
//! acquires the element is ordered after the task that ended, and after all it had acquired.

use crate::ir::op::Value;
use rustc_hash::FxHashMap;

/// A task; 0 is none.
pub(super) type Task = u32;

/// The task of the code outside all parallel loops.
pub(super) const ROOT: Task = 1;

/// What a barrier or span orders: the index of the key it compares by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Domain {
    /// Buffer arguments.
    Buffers = 0,
    /// Shared storage of a group.
    Shared = 1,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    first: Task,
    /// The iteration `first` stands for.
    iteration: u64,
    parent: Task,
    depth: u32,
    keys: [u32; 2],
}

/// How an element was accessed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Load,
    Store,
    AtomicLoad,
    AtomicStore,
}

/// The last access of one kind: by which task, by which op.
#[derive(Clone, Copy, Default, Debug)]
struct Mark {
    task: Task,
    value: u32,
}

/// The marks of one storage; a list is empty until its kind of access happens.
#[derive(Clone, Debug, Default)]
struct Marks {
    len: usize,
    kinds: [Vec<Mark>; 4],
}

/// A release: the task it ended and what that task had acquired.
#[derive(Clone, Debug)]
struct Release {
    task: Task,
    acquired: Vec<u32>,
}

/// The shadow of one run.
#[derive(Debug)]
pub(super) struct Shadow {
    spans: Vec<Span>,
    next: u64,
    marks: Vec<Marks>,
    releases: Vec<Release>,
    /// The release that an acquire of an element sees.
    released: FxHashMap<(u32, u64), u32>,
}

impl Shadow {
    /// A shadow of storages with the given numbers of elements.
    pub(super) fn new(lens: impl Iterator<Item = u64>) -> Shadow {
        let root = Span { first: ROOT, iteration: 0, parent: 0, depth: 0, keys: [0, 0] };
        let marks = lens.map(|len| Marks { len: len as usize, ..Marks::default() }).collect();
        Shadow {
            spans: vec![root],
            next: ROOT as u64 + 1,
            marks,
            releases: Vec::new(),
            released: FxHashMap::default(),
        }
    }

    /// Enters a parallel loop of `len` iterations: the task of the first, the rest follow.
    /// `None` when the numbers are used up.
    pub(super) fn span(&mut self, parent: Task, len: u64) -> Option<Task> {
        let key = self.spans.len() as u32;
        self.push(parent, 0, len, [key, key])
    }

    /// Starts the phase of `len` local iterations after a barrier; `before` is the first task of
    /// the phase that ends. What the barrier does not order goes on as if there were none.
    pub(super) fn phase(&mut self, before: Task, len: u64, orders_buffers: bool) -> Option<Task> {
        let key = self.spans.len() as u32;
        let old = self.spans[self.span_of(before)];
        let buffers = if orders_buffers { key } else { old.keys[Domain::Buffers as usize] };
        self.push(old.parent, 0, len, [buffers, key])
    }

    fn push(&mut self, parent: Task, iteration: u64, len: u64, keys: [u32; 2]) -> Option<Task> {
        let depth = self.spans[self.span_of(parent)].depth + 1;
        let first = u32::try_from(self.next).ok()?;
        u32::try_from(self.next + len).ok()?;
        self.next += len;
        self.spans.push(Span { first, iteration, parent, depth, keys });
        Some(first)
    }

    fn span_of(&self, task: Task) -> usize {
        // Most questions are about the newest span.
        match self.spans.last() {
            Some(last) if last.first <= task => self.spans.len() - 1,
            _ => self.spans.partition_point(|span| span.first <= task) - 1,
        }
    }

    /// Key, iteration and parent of the ancestor of `task` (or itself) at `depth`.
    fn ancestor(&self, mut task: Task, depth: u32, domain: Domain) -> (u32, u64, Task) {
        loop {
            let span = self.spans[self.span_of(task)];
            if span.depth == depth {
                let iteration = span.iteration + (task - span.first) as u64;
                return (span.keys[domain as usize], iteration, span.parent);
            }
            task = span.parent;
        }
    }

    /// Whether nothing in the tree orders two tasks.
    fn parallel(&self, a: Task, b: Task, domain: Domain) -> bool {
        if a == b {
            return false;
        }
        let depth_of = |task| self.spans[self.span_of(task)].depth;
        let mut parallel = false;
        // From the inside out; the outermost difference decides.
        let (mut a, mut b) = (a, b);
        for depth in (1..=depth_of(a).min(depth_of(b))).rev() {
            let (key_a, at_a, up_a) = self.ancestor(a, depth, domain);
            let (key_b, at_b, up_b) = self.ancestor(b, depth, domain);
            if (key_a, at_a) != (key_b, at_b) {
                parallel = key_a == key_b;
            }
            (a, b) = (up_a, up_b);
        }
        parallel
    }

    /// Whether an earlier access by `earlier` is unordered with one by `task` now.
    fn races(&self, earlier: Task, task: Task, acquired: &[u32], domain: Domain) -> bool {
        let seen = |release: &u32| {
            let released = self.releases[*release as usize].task;
            earlier <= released && !self.parallel(earlier, released, domain)
        };
        earlier != 0 && self.parallel(earlier, task, domain) && !acquired.iter().any(seen)
    }

    /// Records an access; gives the op of an earlier one it races with.
    pub(super) fn access(
        &mut self,
        storage: usize,
        element: u64,
        kind: Kind,
        by: (Task, &[u32], Value),
        domain: Domain,
    ) -> Result<(), Value> {
        let (task, acquired, value) = by;
        let against: &[Kind] = match kind {
            Kind::Load => &[Kind::Store, Kind::AtomicStore],
            Kind::Store => &[Kind::Store, Kind::Load, Kind::AtomicStore, Kind::AtomicLoad],
            Kind::AtomicLoad => &[Kind::Store],
            Kind::AtomicStore => &[Kind::Store, Kind::Load],
        };
        let element = element as usize;
        for &other in against {
            let mark = self.mark(storage, element, other);
            if self.races(mark.task, task, acquired, domain) {
                return Err(Value(mark.value));
            }
        }
        let old = self.mark(storage, element, kind);
        let marks = &mut self.marks[storage];
        if marks.kinds[kind as usize].is_empty() {
            marks.kinds[kind as usize] = vec![Mark::default(); marks.len];
        }
        if old.task == task || !self.races(old.task, task, acquired, domain) {
            self.marks[storage].kinds[kind as usize][element] = Mark { task, value: value.0 };
        }
        Ok(())
    }

    fn mark(&self, storage: usize, element: usize, kind: Kind) -> Mark {
        self.marks[storage].kinds[kind as usize].get(element).copied().unwrap_or_default()
    }

    /// The op that stored to an element last, if any did.
    pub(super) fn last_store(&self, storage: usize, element: u64) -> Option<Value> {
        let of = |kind| self.mark(storage, element as usize, kind);
        let (plain, atomic) = (of(Kind::Store), of(Kind::AtomicStore));
        let mark = if plain.task != 0 { plain } else { atomic };
        (mark.task != 0).then_some(Value(mark.value))
    }

    /// Whether the last store to an element is unordered with the task.
    pub(super) fn unordered_store(
        &self,
        storage: usize,
        element: u64,
        (task, acquired): (Task, &[u32]),
    ) -> bool {
        let mark = self.mark(storage, element as usize, Kind::Store);
        self.races(mark.task, task, acquired, Domain::Buffers)
    }

    /// Forgets all accesses of a storage, which is allocated anew.
    pub(super) fn fresh(&mut self, storage: usize) {
        for marks in &mut self.marks[storage].kinds {
            marks.fill(Mark::default());
        }
        if !self.released.is_empty() {
            self.released.retain(|&(s, _), _| s as usize != storage);
        }
    }

    /// Releases at an element. Gives the task that the iteration goes on as; `acquired` is what
    /// it has acquired and grows by its own release.
    pub(super) fn release(
        &mut self,
        storage: usize,
        element: u64,
        task: Task,
        acquired: &mut Vec<u32>,
    ) -> Option<Task> {
        let index = self.releases.len() as u32;
        let mut seen = acquired.clone();
        // Whoever acquires from the last of several releases of one element sees them all.
        if let Some(&before) = self.released.get(&(storage as u32, element)) {
            seen.push(before);
            seen.extend_from_slice(&self.releases[before as usize].acquired);
            seen.sort_unstable();
            seen.dedup();
        }
        self.releases.push(Release { task, acquired: seen });
        self.released.insert((storage as u32, element), index);
        acquired.push(index);
        let span = self.spans[self.span_of(task)];
        if task == ROOT {
            return Some(ROOT);
        }
        let iteration = span.iteration + (task - span.first) as u64;
        self.push(span.parent, iteration, 1, span.keys)
    }

    /// Acquires at an element: `acquired` grows by the release seen there.
    pub(super) fn acquire(&self, storage: usize, element: u64, acquired: &mut Vec<u32>) {
        let Some(&release) = self.released.get(&(storage as u32, element)) else { return };
        if !acquired.contains(&release) {
            acquired.push(release);
            acquired.extend_from_slice(&self.releases[release as usize].acquired);
        }
    }

    /// A store that releases nothing hides earlier releases of the element.
    pub(super) fn unrelease(&mut self, storage: usize, element: u64) {
        if !self.released.is_empty() {
            self.released.remove(&(storage as u32, element));
        }
    }
}
