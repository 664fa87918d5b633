//! Local iterations that wait for one another: barriers, shuffles and matrix instructions.
//!
//! Each iteration is a thread of its own, started from the frame of its group. All are run to
//! where they wait; then all must wait at the same op, which a barrier turns into a new phase and
//! a shuffle into an exchange within each subgroup, a matrix instruction into a product of each team.

use super::Fault;
use super::decode::{Factor, Inst, LocalNest, Slot};
use super::machine::{AccessKind, Failed, Machine, Stop, Thread};
use crate::ir::mma;
use crate::ir::op::{BarrierScope, ShuffleKind, Value};

/// Most local iterations of a group; each has a frame. No device has more than a few thousand.
const MAX_LOCALS: u64 = 1 << 16;

impl<const CHECK: bool> Machine<'_, '_, '_, CHECK> {
    /// Runs all local iterations of a nest; `group` is the thread that enters it.
    pub(super) fn run_locals(
        &mut self,
        nest: &LocalNest,
        group: &mut Thread,
    ) -> Result<(), Failed> {
        let lens: Vec<u64> = nest
            .loops
            .iter()
            .map(|&(_, _, len)| (group.frame[len as usize] as i64).max(0) as u64)
            .collect();
        let n = lens.iter().fold(1, |n: u64, &len| n.saturating_mul(len));
        if n == 0 {
            return Ok(());
        }
        if n > MAX_LOCALS {
            return Err((nest.value, Fault::Endless { limit: MAX_LOCALS }));
        }
        let mut threads: Vec<Thread> = (0..n).map(|id| start(nest, &lens, id, group)).collect();
        self.number(&mut threads, group, None)?;
        loop {
            let order = self.permutation(n);
            let mut stops = vec![Stop::Done; threads.len()];
            for position in 0..n {
                let id = order.at(position) as usize;
                let thread = &mut threads[id];
                match self.resume(thread) {
                    Ok(stop) => stops[id] = stop,
                    Err(failed) => return Err(self.leave(group, thread, failed)),
                }
            }
            let Some(inst) = self.meeting(&threads, &stops, group)? else {
                join(&threads, group);
                return Ok(());
            };
            match inst {
                Inst::Barrier { scope, .. } => self.number(&mut threads, group, Some(scope))?,
                Inst::Mma { row, dst, a, b, c, value } => {
                    let row = mma::ROWS[row as usize];
                    if !threads.len().is_multiple_of(row.team()) {
                        return Err((value, Fault::Divergent { other: None }));
                    }
                    for team in threads.chunks_exact_mut(row.team()) {
                        self.multiply(value, row, (dst, [a, b], c), team)?;
                    }
                }
                inst => self.exchange(inst, &mut threads),
            }
            for thread in &threads {
                self.note((thread.pc - 1, thread.pc), &thread.frame);
            }
        }
    }

    /// Fails with the frame of the local iteration that failed.
    fn leave(&self, group: &mut Thread, thread: &mut Thread, failed: Failed) -> Failed {
        group.frame = std::mem::take(&mut thread.frame);
        failed
    }

    /// The op all threads wait at, `None` if all have ended.
    fn meeting(
        &self,
        threads: &[Thread],
        stops: &[Stop],
        group: &mut Thread,
    ) -> Result<Option<Inst>, Failed> {
        let place = |id: usize| match stops[id] {
            Stop::Done => None,
            Stop::Waits => Some(threads[id].pc),
        };
        let name = |pc: usize| match self.code.insts[pc - 1] {
            Inst::Barrier { value, .. } | Inst::Shuffle { value, .. } | Inst::Mma { value, .. } => {
                value
            }
            _ => unreachable!("invariant: threads wait at ops where they meet"),
        };
        let first = place(0);
        let Some(other) = (1..threads.len()).find(|&id| place(id) != first) else {
            return Ok(first.map(|pc| self.code.insts[pc - 1]));
        };
        // Report the one that waits; it waits in vain.
        let (waits, id, elsewhere) = match (first, place(other)) {
            (Some(pc), elsewhere) => (pc, 0, elsewhere),
            (None, Some(pc)) => (pc, other, None),
            (None, None) => unreachable!("invariant: the places differ"),
        };
        group.frame.clone_from(&threads[id].frame);
        let other: Option<Value> = elsewhere.map(name);
        Err((name(waits), Fault::Divergent { other }))
    }

    /// Numbers the threads as tasks: at the start, and anew after each barrier, when what one
    /// has acquired is known to all.
    fn number(
        &mut self,
        threads: &mut [Thread],
        group: &Thread,
        barrier: Option<BarrierScope>,
    ) -> Result<(), Failed> {
        if !CHECK {
            return Ok(());
        }
        let n = threads.len() as u64;
        let first = match barrier {
            None => self.shadow.span(group.task, n),
            Some(scope) => {
                let mut all: Vec<u32> =
                    threads.iter().flat_map(|t| t.acquired.iter().copied()).collect();
                all.sort_unstable();
                all.dedup();
                threads.iter_mut().for_each(|t| t.acquired.clone_from(&all));
                self.shadow.phase(threads[0].task, n, scope == BarrierScope::Group)
            }
        };
        let first = first.ok_or((Value(0), Fault::Endless { limit: u32::MAX as u64 }))?;
        for (id, thread) in threads.iter_mut().enumerate() {
            thread.task = first + id as u32;
        }
        Ok(())
    }

    /// Performs a matrix instruction of a team.
    fn multiply(
        &mut self,
        value: Value,
        row: mma::Row,
        (dst, factors, c): (Slot, [Factor; 2], Slot),
        team: &mut [Thread],
    ) -> Result<(), Failed> {
        let held = |at: Slot, n: usize, team: &[Thread]| -> Vec<u64> {
            team.iter().flat_map(|t| &t.frame[at as usize..][..n]).copied().collect()
        };
        let mut matrices = [const { Vec::new() }; 2];
        for (right, (matrix, factor)) in matrices.iter_mut().zip(factors).enumerate() {
            *matrix = match factor {
                Factor::Held(at) => held(at, mma::HELD, team),
                Factor::Panel(access) => {
                    let turned = right == 1 && row.shape == mma::Shape::Turned;
                    self.panel(value, (access, turned), team)?
                }
            };
        }
        let panels = factors.map(|factor| matches!(factor, Factor::Panel(_)));
        let [a, b] = &matrices;
        let sums = mma::multiply(row, panels, [a, b, &held(c, row.held(), team)]);
        for (thread, sums) in team.iter_mut().zip(sums.chunks_exact(row.held())) {
            thread.frame[dst as usize..][..row.held()].copy_from_slice(sums);
        }
        Ok(())
    }

    /// Reads a matrix in shared storage, each slot by one thread of the team.
    fn panel(
        &mut self,
        value: Value,
        (access, turned): (u32, bool),
        team: &mut [Thread],
    ) -> Result<Vec<u64>, Failed> {
        let a = self.code.accesses[access as usize];
        let first = team[0].frame[a.index as usize];
        let rows = (mma::SLOTS * mma::SLOTS) as u64;
        if team.iter().any(|t| t.frame[a.index as usize] != first) {
            return Err((value, Fault::Divergent { other: None }));
        }
        let mut held = Vec::with_capacity(team.len() * mma::HELD);
        for (id, thread) in team.iter_mut().enumerate() {
            let element = mma::slot(first as usize + mma::panel(id, turned).0) as u64;
            if element >= a.len || first % rows >= mma::SLOTS as u64 {
                return Err((value, Fault::OutOfBounds { index: first as i64, len: a.len }));
            }
            if CHECK {
                self.see(&a, element, AccessKind::Load, thread)?;
            }
            held.extend((0..mma::HELD).map(|part| self.read(&a, element, part, &thread.frame)));
        }
        Ok(held)
    }

    /// Performs a shuffle all threads wait at.
    fn exchange(&self, inst: Inst, threads: &mut [Thread]) {
        let Inst::Shuffle { kind, dst, x, lane, n, .. } = inst else { return };
        let subgroup = self.options.subgroup.max(1);
        let values: Vec<u64> = threads
            .iter()
            .flat_map(|t| t.frame[x as usize..][..n as usize].iter().copied())
            .collect();
        let total = threads.len();
        for (id, thread) in threads.iter_mut().enumerate() {
            let (base, own) = (id - id % subgroup, (id % subgroup) as i64);
            let lane = thread.frame[lane as usize] as i64;
            let source = match kind {
                ShuffleKind::Index => lane,
                ShuffleKind::Xor => own ^ lane,
                ShuffleKind::Down => own.wrapping_add(lane),
            };
            let size = subgroup.min(total - base) as i64;
            let source = if (0..size).contains(&source) { source } else { own };
            let from = (base + source as usize) * n as usize;
            thread.frame[dst as usize..][..n as usize]
                .copy_from_slice(&values[from..from + n as usize]);
        }
    }
}

/// The thread of local iteration `id`, axis 0 counting fastest.
fn start(nest: &LocalNest, lens: &[u64], id: u64, group: &Thread) -> Thread {
    let mut thread = Thread { pc: nest.body as usize, ..group.clone() };
    let mut rest = id;
    for (&(_, counter, _), len) in nest.loops.iter().zip(lens) {
        thread.frame[counter as usize] = rest % len;
        rest /= len;
    }
    thread
}

/// What the threads acquired is known to the group after them.
fn join(threads: &[Thread], group: &mut Thread) {
    // Appended, not merged: loops around the nest remember how long the list was.
    for &release in threads.iter().flat_map(|t| &t.acquired) {
        if !group.acquired.contains(&release) {
            group.acquired.push(release);
        }
    }
}
