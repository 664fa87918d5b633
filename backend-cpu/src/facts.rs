//! What both ways to run a kernel need to know of it before they translate it: how often and until
//! when values are used, and which storage lives in registers.
//!
//! Register storage whose indices are all constant is *promoted*: each element becomes one
//! register that is written many times. A load of it need not copy, as long as nothing is stored
//! before the last use of the loaded value; the instruction that computes a stored value can write
//! the element directly, as long as nobody looks in between and no break leaves the loop there. Both are decided here, by positions
//! alone, so that an accumulation becomes one instruction.

use zyx_core::ir::{Kernel, Op, Space, Type, Value};

/// Storage larger than this is not promoted.
const MAX_PROMOTED: u32 = 256;

/// One element of promoted storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(pub(crate) u32);

#[derive(Debug)]
pub(crate) struct Facts {
    /// For each op, the `End` that closes its region (itself if it opens none).
    pub(crate) ends: Vec<usize>,
    /// How many operands name each value.
    pub(crate) uses: Vec<u32>,
    /// For promoted storage, its first slot.
    pub(crate) promoted: Vec<Option<Slot>>,
    pub(crate) n_slots: usize,
    /// The slot a value's register is, because the value is stored there.
    pub(crate) target: Vec<Option<Slot>>,
    /// For loads from slots: whether the loaded value is the slot's register itself.
    pub(crate) alias: Vec<bool>,
}

/// An access of a slot: where, and whether it writes.
#[derive(Clone, Copy, Debug)]
struct Access {
    at: usize,
    store: Option<Value>,
    /// When the write happens: at the instruction that computes the value, if that targets the
    /// slot.
    effective: usize,
}

impl Facts {
    /// Storage of elements of type `ty` may live in registers where `fits(ty)`.
    pub(crate) fn new(kernel: &Kernel, fits: impl Fn(Type) -> bool) -> Self {
        let n = kernel.ops().len();
        let ends = kernel.region_ends();
        let mut uses = vec![0; n];
        for op in kernel.ops() {
            if !matches!(op, Op::End { .. }) {
                for operand in op.operands() {
                    uses[operand.idx()] += 1;
                }
            }
        }
        let (promoted, n_slots) = promote(kernel, fits);
        let mut facts =
            Self { ends, uses, promoted, n_slots, target: vec![None; n], alias: vec![false; n] };
        if n_slots > 0 {
            facts.connect(kernel);
        }
        facts
    }

    /// The slot that an access of `buf` at `index` means, if `buf` is promoted.
    pub(crate) fn slot(&self, kernel: &Kernel, buf: Value, index: Value) -> Option<Slot> {
        let Slot(first) = self.promoted[buf.idx()]?;
        let element = kernel.constant(index)?.to_i64();
        Some(Slot(first + element as u32))
    }

    /// Decides which loads are aliases and which values are computed in place.
    fn connect(&mut self, kernel: &Kernel) {
        let parents = parents(kernel);
        let last_use = self.last_uses(kernel, &parents);
        let mut accesses: Vec<Vec<Access>> = vec![Vec::new(); self.n_slots];
        for (value, op, _) in kernel.iter() {
            let at = value.idx();
            match op {
                Op::Load { buf, index, .. } => {
                    if let Some(Slot(slot)) = self.slot(kernel, buf, index) {
                        accesses[slot as usize].push(Access { at, store: None, effective: at });
                    }
                }
                Op::Store { buf, index, value, .. } => {
                    if let Some(Slot(slot)) = self.slot(kernel, buf, index) {
                        let access = Access { at, store: Some(value), effective: at };
                        accesses[slot as usize].push(access);
                    }
                }
                _ => {}
            }
        }
        let births = self.births(kernel);
        let is_break = |i: &usize| matches!(kernel.ops()[*i], Op::Break { .. });
        let breaks: Vec<usize> = (0..kernel.ops().len()).filter(is_break).collect();
        for (slot, accesses) in accesses.iter_mut().enumerate() {
            for i in 0..accesses.len() {
                let early = accesses[i].store.is_some_and(|value| value.idx() < births[slot]);
                // Behind the loop the element is what it was before the break.
                let left = accesses[i].store.is_some_and(|value| {
                    breaks.iter().any(|&b| value.idx() < b && b < accesses[i].at)
                });
                if early || left {
                    continue;
                }
                self.try_target(kernel, Slot(slot as u32), accesses, i, &parents, &last_use);
            }
            let stores: Vec<usize> =
                accesses.iter().filter(|a| a.store.is_some()).map(|a| a.effective).collect();
            for load in accesses.iter().filter(|a| a.store.is_none()) {
                let until = last_use[load.at];
                self.alias[load.at] = !stores.iter().any(|&s| load.at < s && s < until);
            }
        }
    }

    /// Where the storage of each slot is allocated.
    fn births(&self, kernel: &Kernel) -> Vec<usize> {
        let mut births = vec![0; self.n_slots];
        for (value, op, _) in kernel.iter() {
            if let (Op::Alloc { len, .. }, Some(Slot(first))) = (op, self.promoted[value.idx()]) {
                births[first as usize..(first + len) as usize].fill(value.idx());
            }
        }
        births
    }

    /// Lets the value of the `i`-th access, if that is a store, be computed in the slot.
    fn try_target(
        &mut self,
        kernel: &Kernel,
        slot: Slot,
        accesses: &mut [Access],
        i: usize,
        parents: &[usize],
        last_use: &[usize],
    ) {
        let Some(value) = accesses[i].store else { return };
        let (q, p) = (value.idx(), accesses[i].at);
        let computed = matches!(
            kernel.op(value),
            Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } | Op::Load { .. }
        );
        let quiet = accesses.iter().enumerate().all(|(j, other)| {
            let between = q < other.at && other.at < p;
            // A later store must wait until the value has served its other uses.
            let early =
                other.store.is_some() && q < other.effective && other.effective < last_use[q];
            // A value that is in the slot already must have served its uses when this one is computed.
            let late = other.store.is_some_and(|earlier| {
                let in_slot = self.target[earlier.idx()] == Some(slot);
                in_slot && earlier.idx() < q && q < last_use[earlier.idx()]
            });
            j == i || !(between || early || late)
        });
        if computed && quiet && parents[q] == parents[p] && self.target[q].is_none() {
            self.target[q] = Some(slot);
            accesses[i].effective = q;
        }
    }

    /// For each value the position of its last use, where a use inside a loop that the value
    /// enters from outside counts until the end of that loop.
    fn last_uses(&self, kernel: &Kernel, parents: &[usize]) -> Vec<usize> {
        let mut last: Vec<usize> = (0..kernel.ops().len()).collect();
        for (value, op, _) in kernel.iter().rev() {
            let at = value.idx();
            // These results may be the operand's register itself.
            let shares = matches!(
                op,
                Op::Bitcast { .. } | Op::Cast { .. } | Op::Extract { .. } | Op::Guard { .. }
            );
            let direct = if shares { last[at] } else { at };
            if matches!(op, Op::End { .. }) {
                continue;
            }
            for operand in op.operands() {
                let mut until = direct;
                // The outermost loop around this use that the operand is not in.
                let mut region = parents[at];
                while region != usize::MAX && region > operand.idx() {
                    if matches!(kernel.ops()[region], Op::Loop { .. }) {
                        until = until.max(self.ends[region]);
                    }
                    region = parents[region];
                }
                let it = &mut last[operand.idx()];
                *it = (*it).max(until);
            }
        }
        last
    }
}

/// For each op the region it stands in (`usize::MAX` at the top).
pub(crate) fn parents(kernel: &Kernel) -> Vec<usize> {
    let mut open = Vec::new();
    let mut parents = Vec::with_capacity(kernel.ops().len());
    for (i, op) in kernel.ops().iter().enumerate() {
        if matches!(op, Op::End { .. }) {
            open.pop();
        }
        parents.push(open.last().copied().unwrap_or(usize::MAX));
        if op.opens_region() {
            open.push(i);
        }
    }
    parents
}

fn promote(kernel: &Kernel, may: impl Fn(Type) -> bool) -> (Vec<Option<Slot>>, usize) {
    let n = kernel.ops().len();
    let mut fits = vec![false; n];
    for (value, op, ty) in kernel.iter() {
        match op {
            Op::Alloc { space: Space::Register, len } => {
                fits[value.idx()] = len <= MAX_PROMOTED && may(ty);
            }
            Op::Load { buf, index, .. } => {
                let whole = whole_element(kernel, buf, index, ty);
                fits[buf.idx()] &= whole;
            }
            Op::Store { buf, index, value, .. } => {
                let whole = whole_element(kernel, buf, index, kernel.ty(value));
                fits[buf.idx()] &= whole;
            }
            Op::Atomic { buf, .. } => fits[buf.idx()] = false,
            _ => {}
        }
    }
    let mut n_slots = 0;
    let mut promoted = vec![None; n];
    for (value, op, _) in kernel.iter() {
        if let Op::Alloc { len, .. } = op
            && fits[value.idx()]
        {
            promoted[value.idx()] = Some(Slot(n_slots));
            n_slots += len;
        }
    }
    (promoted, n_slots as usize)
}

/// Whether an access means one whole element of `buf` that is known now.
fn whole_element(kernel: &Kernel, buf: Value, index: Value, ty: Type) -> bool {
    let Op::Alloc { len, .. } = kernel.op(buf) else { return false };
    let index = matches!(kernel.op(index), Op::Const { .. })
        .then(|| kernel.constant(index).map(|c| c.to_i64()))
        .flatten();
    kernel.ty(buf) == ty && index.is_some_and(|i| (0..i64::from(len)).contains(&i))
}
