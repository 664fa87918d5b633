//! Which pure values a builder may share: a hash table of value numbers.
//!
//! The table holds numbers only; an entry is compared with the op it stands for, and counts while
//! the region that op stands in is open. Entries of closed regions stay until an equal op takes
//! their place, so closing a region costs nothing. Builders live for microseconds and are the
//! inner loop of every pass, which is why this is not a `HashMap` of ops.

use super::op::{Op, Type, Value};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Memo {
    /// Value numbers plus one, 0 for free; a power of two, at most half full.
    slots: Vec<u32>,
    used: usize,
    /// For each value the region it stands in.
    region: Vec<u32>,
    /// For each region whether it is open.
    is_open: Vec<bool>,
    /// The open regions, innermost last; region 0 is the kernel.
    open: Vec<u32>,
}

/// Where an op is or belongs.
pub(super) enum Entry {
    /// An equal value that may be used.
    Shared(Value),
    /// The slot for the value once it has been pushed.
    Vacant(usize),
}

impl Memo {
    pub(super) fn new() -> Memo {
        Memo {
            slots: vec![0; 128],
            used: 0,
            region: Vec::with_capacity(64),
            is_open: vec![true],
            open: vec![0],
        }
    }

    /// Makes place for so many values more.
    pub(super) fn reserve(&mut self, values: usize) {
        self.region.reserve(values);
        let slots = (2 * values).next_power_of_two();
        if self.used == 0 && slots > self.slots.len() {
            self.slots = vec![0; slots];
        }
    }

    /// Takes notice of the next value, in program order.
    pub(super) fn pushed(&mut self, op: Op) {
        if let Op::End { .. } = op
            && self.open.len() > 1
            && let Some(region) = self.open.pop()
        {
            self.is_open[region as usize] = false;
        }
        self.region.push(self.open.last().copied().unwrap_or(0));
        if op.opens_region() {
            self.open.push(self.is_open.len() as u32);
            self.is_open.push(true);
        }
    }

    /// Finds an op among those pushed so far.
    pub(super) fn find(&mut self, ops: &[Op], types: &[Type], op: Op, ty: Type) -> Entry {
        if 2 * (self.used + 1) > self.slots.len() {
            self.grow(ops, types);
        }
        let mut slot = self.start(op, ty);
        loop {
            let Some(index) = self.slots[slot].checked_sub(1) else { return Entry::Vacant(slot) };
            let index = index as usize;
            if ops[index] == op && types[index] == ty {
                let visible = self.is_open[self.region[index] as usize];
                return if visible {
                    Entry::Shared(Value(index as u32))
                } else {
                    Entry::Vacant(slot)
                };
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    /// Fills the slot that [`Memo::find`] gave.
    pub(super) fn insert(&mut self, slot: usize, value: Value) {
        self.used += (self.slots[slot] == 0) as usize;
        self.slots[slot] = value.0 + 1;
    }

    fn start(&self, op: Op, ty: Type) -> usize {
        let mut hasher = FxHasher::default();
        (op, ty).hash(&mut hasher);
        hasher.finish() as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self, ops: &[Op], types: &[Type]) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![0; old.len() * 4];
        for entry in old.into_iter().filter(|&entry| entry > 0) {
            let index = entry as usize - 1;
            let mut slot = self.start(ops[index], types[index]);
            while self.slots[slot] != 0 {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = entry;
        }
    }
}
