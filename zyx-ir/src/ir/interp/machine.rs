//! Execution of decoded kernels, one thread at a time.
//!
//! A [`Thread`] is a program counter and a frame. The machine runs it until it ends or waits at a
//! barrier; `locals.rs` runs the local iterations of a group this way, phase by phase. `CHECK`
//! compiles the machine with and without the shadow of `shadow.rs`.

use super::decode::{Access, Code, Inst, ParallelLoop, Place, Slot};
use super::memory::Memory;
use super::scalar::eval_binary;
use super::shadow::{Domain, Kind, ROOT, Shadow, Task};
use super::trace::Trace;
use super::{Fault, Options, Program, splitmix};
use crate::affine::gcd;
use crate::dtype::DType;
use crate::ir::kernel::Kernel;
use crate::ir::op::{self, Op, Order, Space, Type, Value};
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// A fault with what is needed to report it.
pub(super) struct Failure {
    pub(super) value: Value,
    pub(super) frame: Vec<u64>,
    pub(super) fault: Fault,
}

/// A fault at a value, before the frame is attached.
pub(super) type Failed = (Value, Fault);

/// One flow of control.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) pc: usize,
    pub(super) frame: Vec<u64>,
    /// Which elements of register storage were stored to; kept when checking.
    pub(super) written: Vec<bool>,
    pub(super) loops: Vec<Running>,
    pub(super) task: Task,
    /// Releases this thread has acquired.
    pub(super) acquired: Vec<u32>,
}

/// A parallel loop being run: `position` counts up, the counter is a permutation of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    position: i64,
    len: i64,
    order: Permutation,
    outer: Task,
    first: Task,
    /// How much the thread had acquired before the loop, and what iterations have since.
    acquired_before: usize,
    acquired_inside: Vec<u32>,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has ended.
    Done,
    /// It waits at the barrier, shuffle or matrix instruction before its program counter.
    Waits,
}

/// Everything one run shares.
pub(super) struct Machine<'p, 'm, 'b, const CHECK: bool> {
    pub(super) code: &'p Code,
    pub(super) kernel: &'p Kernel,
    memory: Memory<'m, 'b>,
    pub(super) shared: Vec<u64>,
    pub(super) shadow: Shadow,
    /// For each argument the one whose storage in the shadow it shares; empty without checks.
    homes: Vec<usize>,
    /// Whether loads of an argument matter: it or one that shares its memory is stored to.
    observed: Vec<bool>,
    pub(super) options: &'p Options,
    random: u64,
    left: u64,
    trace: Option<&'p mut Trace>,
}

impl<'p, 'm, 'b, const CHECK: bool> Machine<'p, 'm, 'b, CHECK> {
    pub(super) fn new(
        program: &'p Program,
        memory: Memory<'m, 'b>,
        homes: Vec<usize>,
        options: &'p Options,
        trace: Option<&'p mut Trace>,
    ) -> Machine<'p, 'm, 'b, CHECK> {
        let (kernel, code) = (&program.kernel, &program.code);
        // Storages of the shadow: buffer arguments by slot, then the kernel's own.
        let info = kernel.params();
        let mut lens: Vec<u64> = info.iter().map(|info| info.len).collect();
        let mut stored: Vec<bool> =
            info.iter().map(|info| info.access != op::Access::Read).collect();
        for (slot, &home) in homes.iter().enumerate() {
            lens[home] = lens[home].max(lens[slot]);
            stored[home] |= stored[slot];
        }
        let observed = homes.iter().map(|&home| stored[home]).collect();
        let own = code.storages.iter().map(|s| match s.space {
            Space::Register => 0,
            Space::Shared => s.len as u64,
        });
        Machine {
            code,
            kernel,
            memory,
            shared: vec![0; code.shared_slots as usize],
            shadow: Shadow::new(lens.into_iter().chain(own)),
            homes,
            observed,
            options,
            random: options.shuffle.unwrap_or_default(),
            left: options.max_iterations,
            trace,
        }
    }

    /// Runs the whole kernel.
    pub(super) fn run(mut self, vars: &[u64]) -> Result<(), Failure> {
        let mut thread = Thread {
            frame: self.code.frame.clone(),
            written: vec![false; self.code.elements[Space::Register as usize] as usize],
            loops: vec![Running::default(); self.code.loops.len()],
            task: ROOT,
            ..Thread::default()
        };
        for &(slot, at) in &self.code.vars {
            let dtype = self.kernel.vars()[slot as usize].dtype;
            thread.frame[at as usize] = Scalar::from_bits(dtype, vars[slot as usize]).bits();
        }
        match self.resume(&mut thread) {
            Ok(_) => Ok(()),
            Err((value, fault)) => Err(Failure { value, frame: thread.frame, fault }),
        }
    }

    /// Runs a thread until it ends or waits.
    pub(super) fn resume(&mut self, t: &mut Thread) -> Result<Stop, Failed> {
        let code = self.code;
        loop {
            let at = t.pc;
            let inst = code.insts[at];
            t.pc += 1;
            match inst {
                Inst::Binary { f, dst, x, y } => {
                    t.frame[dst as usize] = f(t.frame[x as usize], t.frame[y as usize]);
                }
                Inst::Unary { f, dst, x } => t.frame[dst as usize] = f(t.frame[x as usize]),
                Inst::Loop { counter, len, exit } => {
                    t.frame[counter as usize] = 0;
                    if t.frame[len as usize] as i64 <= 0 {
                        t.pc = exit as usize;
                    } else {
                        self.count(counter)?;
                    }
                }
                Inst::Next { counter, len, body } => {
                    let next = t.frame[counter as usize] + 1;
                    let len = t.frame[len as usize] as i64;
                    if next > self.options.patience && len >= i64::from(i32::MAX >> 1) {
                        return Err(self.endless(counter, self.options.patience));
                    }
                    if (next as i64) < len {
                        t.frame[counter as usize] = next;
                        t.pc = body as usize;
                        self.count(counter)?;
                    }
                }
                Inst::Unless { cond, target } => {
                    if t.frame[cond as usize] == 0 {
                        t.pc = target as usize;
                    }
                }
                Inst::Break { cond, target } => {
                    if t.frame[cond as usize] != 0 {
                        t.pc = target as usize;
                    }
                }
                Inst::Enter { index } => self.enter(t, index as usize)?,
                Inst::Advance { index } => self.advance(t, index as usize)?,
                Inst::LoadElement { dst, index, access } => {
                    let access = &code.accesses[access as usize];
                    let element = t.frame[index as usize];
                    t.frame[dst as usize] = self.load_element(access, element, t)?;
                }
                Inst::StoreElement { src, index, access } => {
                    let access = &code.accesses[access as usize];
                    let element = t.frame[index as usize];
                    self.store_element(access, element, src, t)?;
                }
                Inst::Load { dst, access } => {
                    self.load(&code.accesses[access as usize], dst, t)?;
                }
                Inst::Store { src, access } => {
                    self.store(&code.accesses[access as usize], src, t)?;
                }
                Inst::Atomic { op, dst, src, access } => {
                    self.atomic(&code.accesses[access as usize], op, (dst, src), t)?;
                }
                Inst::Fresh { alloc } => self.fresh(t, alloc as usize),
                Inst::Locals { nest } => {
                    let nest = &code.nests[nest as usize];
                    self.run_locals(nest, t)?;
                    t.pc = nest.exit as usize;
                }
                Inst::Barrier { .. } | Inst::Shuffle { .. } | Inst::Mma { .. } => {
                    return Ok(Stop::Waits);
                }
                Inst::Stop => return Ok(Stop::Done),
                _ => compute(inst, &mut t.frame),
            }
            if CHECK && self.trace.is_some() {
                self.note((at, t.pc), &t.frame);
            }
        }
    }

    /// Notes what an instruction gave, if its thread is traced.
    #[cold]
    pub(super) fn note(&mut self, places: (usize, usize), frame: &[u64]) {
        if let Some(trace) = &mut self.trace {
            trace.note(self.kernel, self.code, places, frame);
        }
    }

    /// Counts an iteration of the loop with this counter against the limit.
    #[inline]
    fn count(&mut self, counter: Slot) -> Result<(), Failed> {
        if self.left == 0 {
            return Err(self.endless(counter, self.options.max_iterations));
        }
        self.left -= 1;
        Ok(())
    }

    #[cold]
    fn endless(&self, counter: Slot, limit: u64) -> Failed {
        let is_it = |&(value, op, _): &(Value, Op, Type)| {
            matches!(op, Op::Loop { .. }) && self.code.slots[value.idx()] == counter
        };
        let (value, _, _) =
            self.kernel.iter().find(is_it).expect("invariant: counters belong to loops");
        (value, Fault::Endless { limit })
    }

    fn enter(&mut self, t: &mut Thread, index: usize) -> Result<(), Failed> {
        let info = &self.code.loops[index];
        let len = t.frame[info.len as usize] as i64;
        if len <= 0 {
            t.pc = info.exit as usize;
            return Ok(());
        }
        self.count(info.counter)?;
        let order = self.permutation(len as u64);
        t.frame[info.counter as usize] = order.at(0);
        let running = &mut t.loops[index];
        (running.position, running.len, running.order) = (0, len, order);
        if CHECK {
            running.outer = t.task;
            running.acquired_before = t.acquired.len();
            running.first = self
                .shadow
                .span(t.task, len as u64)
                .ok_or((info.value, Fault::Endless { limit: u32::MAX as u64 }))?;
            t.task = running.first;
        }
        Ok(())
    }

    fn advance(&mut self, t: &mut Thread, index: usize) -> Result<(), Failed> {
        let info: &ParallelLoop = &self.code.loops[index];
        let running = &mut t.loops[index];
        running.position += 1;
        if CHECK {
            // What one iteration acquired says nothing to the next, but to all after the loop.
            if t.acquired.len() > running.acquired_before {
                running.acquired_inside.extend(t.acquired.drain(running.acquired_before..));
            }
            t.task = running.first.wrapping_add(running.position as u32);
        }
        if running.position < running.len {
            t.frame[info.counter as usize] = running.order.at(running.position as u64);
            t.pc = info.body as usize;
            return self.count(info.counter);
        }
        if CHECK {
            t.task = running.outer;
            t.acquired.append(&mut running.acquired_inside);
        }
        Ok(())
    }

    /// The order of `len` independent iterations.
    pub(super) fn permutation(&mut self, len: u64) -> Permutation {
        match self.options.shuffle {
            Some(_) => Permutation::new(splitmix(&mut self.random), len),
            None if self.options.reversed => Permutation::reversed(len),
            None => Permutation::default(),
        }
    }

    fn fresh(&mut self, t: &mut Thread, alloc: usize) {
        if !CHECK {
            return;
        }
        let storage = self.code.storages[alloc];
        match storage.space {
            Space::Register => {
                let first = storage.first as usize;
                t.written[first..first + storage.len as usize].fill(false);
            }
            Space::Shared => self.shadow.fresh(self.kernel.params().len() + alloc),
        }
    }

    #[inline]
    fn load_element(&mut self, a: &Access, element: u64, t: &mut Thread) -> Result<u64, Failed> {
        if element >= a.len {
            return Err(out_of_bounds(a, element as i64));
        }
        if CHECK {
            self.see(a, element, AccessKind::Load, t)?;
        }
        let bits = self.read(a, element, 0, &t.frame);
        arrived(a, element, bits)?;
        Ok(bits)
    }

    #[inline]
    fn store_element(
        &mut self,
        a: &Access,
        element: u64,
        src: Slot,
        t: &mut Thread,
    ) -> Result<(), Failed> {
        if element >= a.len {
            return Err(out_of_bounds(a, element as i64));
        }
        if CHECK {
            self.see(a, element, AccessKind::Store, t)?;
        }
        let bits = t.frame[src as usize];
        self.write(a, element, 0, bits, &mut t.frame);
        Ok(())
    }

    fn load(&mut self, a: &Access, dst: Slot, t: &mut Thread) -> Result<(), Failed> {
        for lane in 0..a.n as usize {
            let at = dst as usize + lane * a.width as usize;
            match element(a, lane, &t.frame)? {
                None => t.frame[at..at + a.width as usize].fill(0),
                Some(element) => {
                    if CHECK {
                        self.see(a, element, AccessKind::Load, t)?;
                    }
                    for part in 0..a.width as usize {
                        t.frame[at + part] = self.read(a, element, part, &t.frame);
                    }
                    arrived(a, element, t.frame[at])?;
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, a: &Access, src: Slot, t: &mut Thread) -> Result<(), Failed> {
        for lane in 0..a.n as usize {
            let Some(element) = element(a, lane, &t.frame)? else { continue };
            if CHECK {
                self.see(a, element, AccessKind::Store, t)?;
            }
            for part in 0..a.width as usize {
                let bits = t.frame[src as usize + lane * a.width as usize + part];
                self.write(a, element, part, bits, &mut t.frame);
            }
        }
        Ok(())
    }

    fn atomic(
        &mut self,
        a: &Access,
        op: BinaryOp,
        (dst, src): (Slot, Slot),
        t: &mut Thread,
    ) -> Result<(), Failed> {
        for lane in 0..a.n as usize {
            let Some(element) = element(a, lane, &t.frame)? else {
                t.frame[dst as usize + lane] = 0;
                continue;
            };
            if CHECK {
                self.see(a, element, AccessKind::Update, t)?;
            }
            let old = self.read(a, element, 0, &t.frame);
            let new = eval_binary(op, a.dtype, old, t.frame[src as usize + lane]);
            self.write(a, element, 0, new, &mut t.frame);
            t.frame[dst as usize + lane] = old;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn read(&self, a: &Access, element: u64, part: usize, frame: &[u64]) -> u64 {
        let at = element as usize * a.width as usize + part;
        match a.place {
            Place::Param { slot, log2 } => {
                let bits = self.memory.load(slot, log2, element as usize);
                if a.dtype == DType::Bool { (bits != 0) as u64 } else { bits }
            }
            Place::Register { base, .. } => frame[base as usize + at],
            Place::Shared { base, .. } => self.shared[base as usize + at],
        }
    }

    #[inline]
    fn write(&mut self, a: &Access, element: u64, part: usize, bits: u64, frame: &mut [u64]) {
        let at = element as usize * a.width as usize + part;
        match a.place {
            Place::Param { slot, log2 } => self.memory.store(slot, log2, element as usize, bits),
            Place::Register { base, .. } => frame[base as usize + at] = bits,
            Place::Shared { base, .. } => self.shared[base as usize + at] = bits,
        }
    }

    /// Checks an access that is in bounds against those before it.
    pub(super) fn see(
        &mut self,
        a: &Access,
        at: u64,
        kind: AccessKind,
        t: &mut Thread,
    ) -> Result<(), Failed> {
        let index = at as i64;
        let (storage, domain) = match a.place {
            Place::Param { slot, .. } => (self.homes[slot as usize], Domain::Buffers),
            Place::Shared { alloc, .. } => {
                (self.kernel.params().len() + alloc as usize, Domain::Shared)
            }
            Place::Register { alloc, .. } => {
                let first = self.code.storages[alloc as usize].first as usize;
                let written = &mut t.written[first + at as usize];
                if kind == AccessKind::Load && !*written {
                    return Err((a.value, Fault::Uninitialised { index }));
                }
                *written = true;
                return Ok(());
            }
        };
        if let Place::Param { slot, .. } = a.place {
            if !self.observed[slot as usize] {
                return Ok(());
            }
            if self.kernel.params()[slot as usize].access == op::Access::Write {
                self.stored_once(a, storage, at, t)?;
            }
            if kind != AccessKind::Store {
                self.not_overwritten(a, slot, storage, at)?;
            }
        } else if kind != AccessKind::Store && self.shadow.last_store(storage, at).is_none() {
            return Err((a.value, Fault::Uninitialised { index }));
        }
        let mark = kind.mark(a.order);
        if matches!(a.order, Order::Acquire | Order::AcquireRelease) {
            self.shadow.acquire(storage, at, &mut t.acquired);
        }
        self.shadow
            .access(storage, at, mark, (t.task, &t.acquired, a.value), domain)
            .map_err(|earlier| (a.value, Fault::Race { index, earlier }))?;
        self.release(a, storage, at, kind, t)
    }

    /// A `Write` buffer takes one store per element.
    fn stored_once(&self, a: &Access, storage: usize, at: u64, t: &Thread) -> Result<(), Failed> {
        let Some(earlier) = self.shadow.last_store(storage, at) else { return Ok(()) };
        // A race with it is the worse news.
        let index = at as i64;
        let fault = if self.shadow.unordered_store(storage, at, (t.task, &t.acquired)) {
            Fault::Race { index, earlier }
        } else {
            Fault::StoredTwice { index, earlier }
        };
        Err((a.value, fault))
    }

    /// What is loaded through one argument was not stored through another bound to the same
    /// memory; on different memory it would not have been there.
    fn not_overwritten(
        &self,
        a: &Access,
        slot: u16,
        storage: usize,
        at: u64,
    ) -> Result<(), Failed> {
        let Some(earlier) = self.shadow.last_store(storage, at) else { return Ok(()) };
        let through = self.kernel.op(earlier).operands().next().map(|buf| self.kernel.op(buf));
        match through {
            Some(Op::Param { slot: other, .. }) if other != slot => {
                Err((a.value, Fault::Race { index: at as i64, earlier }))
            }
            _ => Ok(()),
        }
    }

    fn release(
        &mut self,
        a: &Access,
        storage: usize,
        at: u64,
        kind: AccessKind,
        t: &mut Thread,
    ) -> Result<(), Failed> {
        if matches!(a.order, Order::Release | Order::AcquireRelease) {
            t.task = self
                .shadow
                .release(storage, at, t.task, &mut t.acquired)
                .ok_or((a.value, Fault::Endless { limit: u32::MAX as u64 }))?;
        } else if kind == AccessKind::Store {
            self.shadow.unrelease(storage, at);
        }
        Ok(())
    }
}

/// What an instruction does to an element.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Load,
    Store,
    Update,
}

impl AccessKind {
    fn mark(self, order: Order) -> Kind {
        let plain = matches!(order, Order::Plain | Order::Streaming | Order::AsyncCopy);
        match self {
            AccessKind::Load if plain => Kind::Load,
            AccessKind::Load => Kind::AtomicLoad,
            AccessKind::Store if plain => Kind::Store,
            AccessKind::Store | AccessKind::Update => Kind::AtomicStore,
        }
    }
}

/// What is waited for has to be there: whoever comes later cannot store it any more.
#[inline(always)]
fn arrived(a: &Access, element: u64, bits: u64) -> Result<(), Failed> {
    match (a.order, bits) {
        (Order::AcquireSpin, 0) => Err((a.value, Fault::Starved { index: element as i64 })),
        _ => Ok(()),
    }
}

/// The element that lane `lane` of an access means, `None` where its guard excludes it.
#[inline]
fn element(a: &Access, lane: usize, frame: &[u64]) -> Result<Option<u64>, Failed> {
    if a.mask.is_some_and(|mask| frame[mask as usize + lane] == 0) {
        return Ok(None);
    }
    let index = if a.gather {
        frame[a.index as usize + lane]
    } else {
        frame[a.index as usize].wrapping_add(lane as u64)
    };
    if index < a.len { Ok(Some(index)) } else { Err(out_of_bounds(a, index as i64)) }
}

#[cold]
fn out_of_bounds(a: &Access, index: i64) -> Failed {
    (a.value, Fault::OutOfBounds { index, len: a.len })
}

/// Executes an instruction that reads and writes nothing but the frame.
fn compute(inst: Inst, frame: &mut [u64]) {
    let lanes = |n: u8| 0..n as usize;
    match inst {
        Inst::UnaryLanes { f, dst, x, n } => {
            lanes(n).for_each(|i| frame[dst as usize + i] = f(frame[x as usize + i]));
        }
        Inst::UnaryTable { op, dtype, dst, x, n } => lanes(n).for_each(|i| {
            let x = Scalar::from_bits(dtype, frame[x as usize + i]);
            frame[dst as usize + i] = op.eval(x).bits();
        }),
        Inst::BinaryLanes { f, dst, x, y, n } => lanes(n).for_each(|i| {
            frame[dst as usize + i] = f(frame[x as usize + i], frame[y as usize + i]);
        }),
        Inst::BinaryTable { op, dtype, dst, x, y, n } => lanes(n).for_each(|i| {
            let (x, y) = (frame[x as usize + i], frame[y as usize + i]);
            frame[dst as usize + i] = eval_binary(op, dtype, x, y);
        }),
        Inst::Where { dst, x, y, z, n } => lanes(n).for_each(|i| {
            let chosen = if frame[x as usize + i] != 0 { y } else { z };
            frame[dst as usize + i] = frame[chosen as usize + i];
        }),
        Inst::MulAdd { dtype, dst, x, y, z, n } => lanes(n).for_each(|i| {
            let at = |slot: Slot| Scalar::from_bits(dtype, frame[slot as usize + i]);
            let result = crate::ops::TernaryOp::MulAdd.eval(at(x), at(y), at(z));
            frame[dst as usize + i] = result.bits();
        }),
        Inst::CastTable { from, to, dst, x, n } => lanes(n).for_each(|i| {
            let x = Scalar::from_bits(from, frame[x as usize + i]);
            frame[dst as usize + i] = x.cast(to).bits();
        }),
        Inst::Copy { dst, x, n } => {
            frame.copy_within(x as usize..x as usize + n as usize, dst as usize);
        }
        Inst::Splat { dst, x, n } => {
            let bits = frame[x as usize];
            frame[dst as usize..dst as usize + n as usize].fill(bits);
        }
        Inst::Fold { op, dtype, dst, x, n } => {
            let x = x as usize;
            frame[dst as usize] = fold(op, dtype, &mut frame[x..x + n as usize].to_vec());
        }
        _ => unreachable!("invariant: memory and flow are the machine's own"),
    }
}

/// All lanes combined, in the order the module documentation fixes.
fn fold(op: BinaryOp, dtype: DType, lanes: &mut [u64]) -> u64 {
    let mut n = lanes.len();
    if !n.is_power_of_two() {
        let combine = |x, &y: &u64| eval_binary(op, dtype, x, y);
        return lanes[1..].iter().fold(lanes[0], combine);
    }
    while n > 1 {
        n /= 2;
        for i in 0..n {
            lanes[i] = eval_binary(op, dtype, lanes[i], lanes[i + n]);
        }
    }
    lanes[0]
}

/// A permutation of `0 .. len`: `position * factor + start` modulo `len`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    len: u64,
    factor: u64,
    start: u64,
}

impl Default for Permutation {
    /// The identity, of any length.
    fn default() -> Permutation {
        Permutation { len: 0, factor: 1, start: 0 }
    }
}

impl Permutation {
    fn new(random: u64, len: u64) -> Permutation {
        let mut factor = (random >> 32) % len;
        while gcd(factor, len) != 1 {
            factor = (factor + 1) % len.max(2);
        }
        Permutation { len, factor, start: random as u32 as u64 % len }
    }

    /// From the last to the first.
    fn reversed(len: u64) -> Permutation {
        Permutation { len, factor: len - 1, start: len - 1 }
    }

    pub(super) fn at(&self, position: u64) -> u64 {
        if self.len == 0 {
            return position;
        }
        let wide = position as u128 * self.factor as u128 + self.start as u128;
        (wide % self.len as u128) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_are_permutations() {
        for len in 1..40u64 {
            for random in [0, 1, u64::MAX, 0x1234_5678_9abc_def0] {
                let order = Permutation::new(random, len);
                let mut seen: Vec<u64> = (0..len).map(|i| order.at(i)).collect();
                seen.sort_unstable();
                assert!(seen.into_iter().eq(0..len), "{order:?}");
            }
            let order = Permutation::reversed(len);
            assert!((0..len).map(|i| order.at(i)).eq((0..len).rev()), "{order:?}");
        }
    }

    #[test]
    fn folds_halve() {
        // Subtraction shows the grouping: (1 - 3) - (2 - 4) against ((1 - 2) - 3) - 4.
        let bits = |x: i64| x as u64;
        assert_eq!(fold(BinaryOp::Sub, DType::I64, &mut [1, 2, 3, 4]), bits(0));
        assert_eq!(fold(BinaryOp::Sub, DType::I64, &mut [1, 2, 3]), bits(-4));
    }
}
