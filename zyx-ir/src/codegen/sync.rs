//! Who executes what: regions, barriers and the threads that write, for emitters of any language.
//!
//! What stands outside of `Local` loops belongs to the group as a whole. All its threads compute
//! values and private storage there, each its own copy of the same; what others can see is
//! written by the first thread alone. [`Sync`] follows an emitter through the ops of a stage and
//! says where a barrier has to stand because what one thread wrote may be read or overwritten by
//! another; it fails if some threads could miss the barrier. A kernel with one nest, whose
//! accesses of written memory all stand in the innermost loop, gets no barrier but its own.

use super::stages::{Extent, Stage};
use crate::ir::{Access, Kernel, LoopKind, Op, Space, Value};

/// What the group did to buffers and shared storage since its last barrier.
#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    read: bool,
    written: bool,
}

impl Traffic {
    fn any(self) -> bool {
        self.read || self.written
    }
}

/// An open region, and what to restore at its end.
#[derive(Debug)]
struct Frame {
    /// Kind and axis of the loop, if it is one.
    kind: Option<(LoopKind, usize)>,
    /// Whether the same thread may run the body again.
    repeats: bool,
    traffic: Traffic,
    divergent: bool,
    /// The traffic since the last barrier at the places where a break may end the loop.
    left: Traffic,
}

/// How a loop is executed by a thread of the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The thread runs all iterations in order.
    Serial,
    /// The thread runs one iteration: its position along the axis.
    Single,
    /// The thread runs every so-manyth iteration from its position on; the step is the extent.
    Strided,
}

/// Whether a barrier of the whole group, buffers included, has to stand before an op.
pub type Barrier = bool;

/// Where an emitter stands in a stage. The methods are called in program order, once per op.
#[derive(Debug)]
pub struct Sync<'a> {
    kernel: &'a Kernel,
    stage: &'a Stage,
    frames: Vec<Frame>,
    traffic: Traffic,
    /// Whether threads of the group may be elsewhere, so that a barrier would hang.
    divergent: bool,
    /// Whether threads of the group share storage so far.
    shares: bool,
}

impl<'a> Sync<'a> {
    /// Stands before the first op of a stage.
    pub fn new(kernel: &'a Kernel, stage: &'a Stage) -> Sync<'a> {
        let traffic = Traffic::default();
        Sync { kernel, stage, frames: Vec::new(), traffic, divergent: false, shares: false }
    }

    /// How many regions are open.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// Notes shared storage.
    pub fn share(&mut self) {
        self.shares = true;
    }

    fn open(&mut self, kind: Option<(LoopKind, usize)>, repeats: bool) {
        let (traffic, divergent) = (self.traffic, self.divergent);
        let left = Traffic::default();
        self.frames.push(Frame { kind, repeats, traffic, divergent, left });
    }

    /// Enters an `If`.
    pub fn open_if(&mut self) {
        self.open(None, false);
    }

    /// Notes a break of the innermost loop.
    pub fn break_loop(&mut self) {
        let traffic = self.traffic;
        if let Some(frame) = self.frames.last_mut() {
            frame.left.read |= traffic.read;
            frame.left.written |= traffic.written;
        }
    }

    /// Enters a loop on a device with so many groups per axis. The barrier stands before it.
    ///
    /// # Errors
    /// When threads could miss the barrier.
    pub fn open_loop(
        &mut self,
        kind: LoopKind,
        axis: usize,
        len: Value,
        max_groups: [u64; 3],
    ) -> Result<(Spread, Barrier), String> {
        let (single, barrier) = match kind {
            LoopKind::Serial | LoopKind::Parallel => {
                self.open(Some((kind, axis)), true);
                return Ok((Spread::Serial, false));
            }
            LoopKind::Group => {
                let extent = self.stage.groups[axis];
                let fits = matches!(extent, Extent::Const(n) if n <= max_groups[axis]);
                (self.is(extent, len) && fits, false)
            }
            LoopKind::Local => {
                let barrier = self.traffic.any() && self.synchronise()?;
                (self.is(Extent::Const(self.stage.local[axis]), len), barrier)
            }
        };
        self.open(Some((kind, axis)), !single);
        self.divergent |= !single && kind == LoopKind::Local;
        Ok((if single { Spread::Single } else { Spread::Strided }, barrier))
    }

    /// Whether a loop of length `len` has as many iterations as the launch has along its axis.
    fn is(&self, extent: Extent, len: Value) -> bool {
        match extent {
            Extent::Const(n) => self.kernel.constant(len).is_some_and(|c| c.to_i128() == n.into()),
            Extent::Value(value) => value == len,
        }
    }

    /// Leaves the innermost region. The barrier stands at the end of its body.
    ///
    /// # Errors
    /// When threads could miss the barrier.
    pub fn close(&mut self) -> Result<Barrier, String> {
        let frame = self.frames.last().expect("invariant: regions are balanced");
        // Iterations of other loops than serial ones meet in shared storage only.
        let meets = matches!(frame.kind, Some((LoopKind::Serial, _))) || self.shares;
        let local = matches!(frame.kind, Some((LoopKind::Local, _)));
        let collective = self.is_collective();
        let meets = frame.repeats && meets && !local && collective && self.traffic.any();
        let barrier = meets && self.synchronise()?;
        let frame = self.frames.pop().expect("invariant: regions are balanced");
        self.divergent = frame.divergent;
        // The region may not have run at all, so what came before it still counts.
        self.traffic.read |= frame.traffic.read | frame.left.read;
        self.traffic.written |=
            frame.traffic.written | frame.left.written | (local && self.is_collective());
        Ok(barrier)
    }

    /// Whether the group has more than one thread.
    fn has_threads(&self) -> bool {
        self.stage.local != [1; 3]
    }

    /// Whether all threads of a group execute this for the same iteration.
    pub fn is_collective(&self) -> bool {
        let local = |frame: &Frame| matches!(frame.kind, Some((LoopKind::Local, _)));
        self.has_threads() && !self.frames.iter().any(local)
    }

    /// Axes along which all threads execute this for the same iteration.
    pub fn idle_axes(&self) -> impl Iterator<Item = usize> {
        (0..3).filter(|&axis| {
            self.stage.local[axis] != 1
                && self.frames.iter().all(|frame| frame.kind != Some((LoopKind::Local, axis)))
        })
    }

    /// Whether other threads see this storage.
    pub fn is_memory(&self, buf: Value) -> bool {
        !matches!(self.kernel.op(buf), Op::Alloc { space: Space::Register, .. })
    }

    /// Notes a load.
    ///
    /// # Errors
    /// When threads could miss the barrier before it.
    pub fn load(&mut self, buf: Value) -> Result<Barrier, String> {
        let constant = matches!(self.kernel.op(buf), Op::Param { access: Access::Read, .. });
        let mut barrier = false;
        if self.idle_axes().next().is_some() && self.is_memory(buf) && !constant {
            barrier = self.traffic.written && self.synchronise()?;
            self.traffic.read = true;
        }
        Ok(barrier)
    }

    /// Notes a store or an atomic; of the threads that run the same iteration the first executes
    /// it, those whose position along each of the [idle axes](Sync::idle_axes) is 0.
    ///
    /// # Errors
    /// When threads could miss the barrier before it.
    pub fn write(&mut self, buf: Value) -> Result<Barrier, String> {
        let mut barrier = false;
        if self.is_collective() && self.is_memory(buf) {
            barrier = self.traffic.any() && self.synchronise()?;
            self.traffic.written = true;
        }
        Ok(barrier)
    }

    /// Notes an atomic, as a write; `used` if anything asks for the old element.
    ///
    /// # Errors
    /// When no other thread sees the storage, when threads could miss the barrier before it, or when
    /// what the first thread gets would have to be handed to some threads of the group only.
    pub fn atomic(&mut self, value: Value, buf: Value, used: bool) -> Result<Barrier, String> {
        if !self.is_memory(buf) {
            return Err(format!("{value}: atomics on storage that no other thread sees"));
        }
        if used && self.idle_axes().next().is_some() && !self.is_collective() {
            return Err(format!(
                "{value}: an atomic in a nest over fewer axes than its neighbours"
            ));
        }
        self.write(buf)
    }

    /// Hands what the first thread got to all threads of the group, through shared storage: the
    /// barrier stands between writing it and reading it.
    ///
    /// # Errors
    /// When threads could miss the barrier.
    pub fn broadcast(&mut self) -> Result<Barrier, String> {
        self.shares = true;
        let barrier = self.synchronise()?;
        self.traffic.read = true;
        Ok(barrier)
    }

    /// A barrier that the kernel does not spell out.
    fn synchronise(&mut self) -> Result<Barrier, String> {
        let threads = self.has_threads();
        if threads && self.divergent {
            return Err("a barrier is needed where threads of the group are absent".into());
        }
        self.traffic = Traffic::default();
        Ok(threads)
    }

    /// A barrier of the kernel's own: whether it has to be emitted.
    ///
    /// # Errors
    /// When threads could miss it.
    pub fn barrier(&self, value: Value) -> Result<Barrier, String> {
        if self.divergent {
            return Err(format!("{value}: a barrier in a local loop narrower than the group"));
        }
        Ok(self.has_threads())
    }
}
