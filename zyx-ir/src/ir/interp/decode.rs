//! From a kernel to flat code over a frame of slots.
//!
//! Every value has as many consecutive slots as lanes; register storage and a few temporaries
//! follow in the same frame. Literals are in the initial frame and cost nothing while running.
//! Regions become jumps, so that a thread can stop at a barrier in the middle of loops and go on
//! later from its program counter alone. Guards disappear: each access carries the conditions of
//! its index as one mask.

use super::scalar::{Fn1, Fn2, binary, cast, unary};
use crate::dtype::DType;
use crate::ir::kernel::Kernel;
use crate::ir::op::{BarrierScope, LoopKind, Op, Order, ShuffleKind, Space, Value};
use crate::ir::regions::{Regions, loop_kind};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;

/// A position in the frame.
pub(super) type Slot = u32;

/// One instruction. `n` is a number of lanes; the short forms without it work on one.
#[derive(Clone, Copy, Debug)]
pub(super) enum Inst {
    Unary {
        f: Fn1,
        dst: Slot,
        x: Slot,
    },
    UnaryLanes {
        f: Fn1,
        dst: Slot,
        x: Slot,
        n: u8,
    },
    UnaryTable {
        op: UnaryOp,
        dtype: DType,
        dst: Slot,
        x: Slot,
        n: u8,
    },
    Binary {
        f: Fn2,
        dst: Slot,
        x: Slot,
        y: Slot,
    },
    BinaryLanes {
        f: Fn2,
        dst: Slot,
        x: Slot,
        y: Slot,
        n: u8,
    },
    BinaryTable {
        op: BinaryOp,
        dtype: DType,
        dst: Slot,
        x: Slot,
        y: Slot,
        n: u8,
    },
    Where {
        dst: Slot,
        x: Slot,
        y: Slot,
        z: Slot,
        n: u8,
    },
    MulAdd {
        dtype: DType,
        dst: Slot,
        x: Slot,
        y: Slot,
        z: Slot,
        n: u8,
    },
    CastTable {
        from: DType,
        to: DType,
        dst: Slot,
        x: Slot,
        n: u8,
    },
    Copy {
        dst: Slot,
        x: Slot,
        n: u8,
    },
    Splat {
        dst: Slot,
        x: Slot,
        n: u8,
    },
    Fold {
        op: BinaryOp,
        dtype: DType,
        dst: Slot,
        x: Slot,
        n: u8,
    },
    /// One unguarded scalar element.
    LoadElement {
        dst: Slot,
        index: Slot,
        access: u32,
    },
    StoreElement {
        src: Slot,
        index: Slot,
        access: u32,
    },
    Load {
        dst: Slot,
        access: u32,
    },
    Store {
        src: Slot,
        access: u32,
    },
    Atomic {
        op: BinaryOp,
        dst: Slot,
        src: Slot,
        access: u32,
    },
    /// Storage is allocated anew.
    Fresh {
        alloc: u32,
    },
    /// A loop whose iterations follow one another.
    Loop {
        counter: Slot,
        len: Slot,
        exit: u32,
    },
    Next {
        counter: Slot,
        len: Slot,
        body: u32,
    },
    /// A loop whose iterations are independent.
    Enter {
        index: u32,
    },
    Advance {
        index: u32,
    },
    Unless {
        cond: Slot,
        target: u32,
    },
    /// Leaves a serial loop.
    Break {
        cond: Slot,
        target: u32,
    },
    /// Local iterations that wait for one another.
    Locals {
        nest: u32,
    },
    Barrier {
        scope: BarrierScope,
        value: Value,
    },
    Shuffle {
        kind: ShuffleKind,
        dst: Slot,
        x: Slot,
        lane: Slot,
        n: u8,
        value: Value,
    },
    Mma {
        row: u16,
        dst: Slot,
        a: Factor,
        b: Factor,
        c: Slot,
        value: Value,
    },
    Stop,
}

/// Where a factor of a matrix instruction is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Factor {
    /// In the threads' frames.
    Held(Slot),
    /// In shared storage: the access to its first slot.
    Panel(u32),
}

/// Where storage is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// Buffer argument; elements have `1 << log2` bytes.
    Param { slot: u16, log2: u8 },
    /// In the thread's frame.
    Register { base: Slot, alloc: u32 },
    /// In the group's shared storage.
    Shared { base: u32, alloc: u32 },
}

/// Everything about one `Load`, `Store` or `Atomic`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) value: Value,
    pub(super) place: Place,
    pub(super) dtype: DType,
    /// Elements in the storage.
    pub(super) len: u64,
    /// Lanes per element: 1 but for storage of vectors.
    pub(super) width: u8,
    pub(super) index: Slot,
    /// Whether the index has a slot per element accessed.
    pub(super) gather: bool,
    /// Elements accessed.
    pub(super) n: u8,
    /// A slot per element accessed: whether it is.
    pub(super) mask: Option<Slot>,
    pub(super) order: Order,
}

/// A loop of independent iterations.
#[derive(Clone, Copy, Debug)]
pub(super) struct ParallelLoop {
    pub(super) value: Value,
    pub(super) counter: Slot,
    pub(super) len: Slot,
    pub(super) body: u32,
    pub(super) exit: u32,
}

/// A nest of local loops with barriers or shuffles inside.
#[derive(Clone, Debug)]
pub(super) struct LocalNest {
    /// The outermost loop.
    pub(super) value: Value,
    /// Counter and length by axis, the fastest first.
    pub(super) loops: Vec<(u8, Slot, Slot)>,
    pub(super) body: u32,
    pub(super) exit: u32,
}

/// Storage of the kernel's own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Storage {
    pub(super) space: Space,
    pub(super) len: u32,
    /// Number of elements of the same space allocated before.
    pub(super) first: u32,
}

/// A decoded kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) insts: Vec<Inst>,
    /// The op that each instruction is of.
    pub(super) values: Vec<Value>,
    /// The first slot of each value that has any.
    pub(super) slots: Vec<Slot>,
    /// The frame at the start.
    pub(super) frame: Vec<u64>,
    /// Argument slot and frame slot of each `Var`.
    pub(super) vars: Vec<(u16, Slot)>,
    pub(super) accesses: Vec<Access>,
    pub(super) loops: Vec<ParallelLoop>,
    pub(super) nests: Vec<LocalNest>,
    pub(super) storages: Vec<Storage>,
    /// Slots of shared storage.
    pub(super) shared_slots: u32,
    /// Elements of register and of shared storage.
    pub(super) elements: [u32; 2],
}

/// Decodes a kernel that passed `verify::structure`.
pub(super) fn decode(kernel: &Kernel) -> Code {
    let mut decoder = Decoder {
        kernel,
        regions: Regions::of(kernel),
        code: Code::default(),
        places: vec![None; kernel.ops().len()],
        open: Vec::new(),
        nest: None,
        value: Value(0),
    };
    for (value, op, _) in kernel.iter() {
        decoder.value = if let Op::End { open } = op { open } else { value };
        let slot = decoder.slot_of(value, op);
        decoder.code.slots.push(slot);
        decoder.op(value, op, slot);
    }
    decoder.emit(Inst::Stop);
    decoder.code
}

/// A region being decoded, and what its end does.
enum Open {
    Serial {
        at: usize,
        counter: Slot,
        len: Slot,
        /// The instructions that leave the loop early.
        breaks: Vec<usize>,
    },
    Parallel {
        index: u32,
    },
    If {
        at: usize,
    },
    /// The outermost loop of a nest of waiting local iterations.
    Locals {
        nest: u32,
    },
    /// An inner loop of such a nest.
    InnerLocal,
}

struct Decoder<'k> {
    kernel: &'k Kernel,
    regions: Regions,
    code: Code,
    places: Vec<Option<(Place, u64)>>,
    open: Vec<Open>,
    /// The nest of waiting local iterations being decoded.
    nest: Option<u32>,
    /// The op being decoded, or the one whose region ends.
    value: Value,
}

impl Decoder<'_> {
    fn emit(&mut self, inst: Inst) {
        self.code.insts.push(inst);
        self.code.values.push(self.value);
    }

    fn here(&self) -> u32 {
        self.code.insts.len() as u32
    }

    fn allocate(&mut self, n: usize) -> Slot {
        let slot = self.code.frame.len() as Slot;
        self.code.frame.resize(slot as usize + n, 0);
        slot
    }

    fn slot(&self, value: Value) -> Slot {
        self.code.slots[value.idx()]
    }

    fn dtype(&self, value: Value) -> DType {
        self.kernel.ty(value).dtype
    }

    /// Slots for the value an op defines, filled if it is a literal.
    fn slot_of(&mut self, value: Value, op: Op) -> Slot {
        let lanes = self.kernel.ty(value).lanes as usize;
        match op {
            Op::Param { .. } | Op::Alloc { .. } | Op::Store { .. } | Op::Panel { .. } => 0,
            Op::If { .. } | Op::Break { .. } | Op::End { .. } | Op::Barrier { .. } => 0,
            Op::Guard { index, .. } => self.slot(index),
            _ => {
                let slot = self.allocate(lanes);
                if let Some(literal) = self.kernel.constant(value) {
                    self.code.frame[slot as usize..].fill(literal.bits());
                }
                slot
            }
        }
    }

    fn op(&mut self, value: Value, op: Op, dst: Slot) {
        if self.kernel.constant(value).is_some() {
            return;
        }
        let ty = self.kernel.ty(value);
        let (n, dtype) = (ty.lanes, ty.dtype);
        match op {
            Op::Param { slot, .. } => {
                let log2 = dtype.size().trailing_zeros() as u8;
                let len = self.kernel.params()[slot as usize].len;
                self.places[value.idx()] = Some((Place::Param { slot, log2 }, len));
            }
            Op::Var { slot } => self.code.vars.push((slot, dst)),
            Op::Const { .. } | Op::Guard { .. } | Op::Panel { .. } => {}
            Op::Alloc { space, len } => self.alloc(value, space, len),
            Op::Unary { op, x } => self.unary(op, dtype, dst, x, n),
            Op::Binary { op, x, y } => self.binary(op, dst, x, y, n),
            Op::Ternary { op: TernaryOp::Where, x, y, z } => {
                let (x, y, z) = (self.slot(x), self.slot(y), self.slot(z));
                self.emit(Inst::Where { dst, x, y, z, n });
            }
            Op::Ternary { op: TernaryOp::MulAdd, x, y, z } => {
                let (x, y, z) = (self.slot(x), self.slot(y), self.slot(z));
                self.emit(Inst::MulAdd { dtype, dst, x, y, z, n });
            }
            Op::Cast { x } => {
                let (from, x) = (self.dtype(x), self.slot(x));
                self.cast(from, dtype, dst, x, n);
            }
            // Other dtypes of one width share their canonical bits.
            Op::Bitcast { x } if dtype == DType::Bool => {
                let x = self.slot(x);
                self.emit(Inst::UnaryLanes { f: |x| (x != 0) as u64, dst, x, n });
            }
            Op::Bitcast { x } => self.emit_copy(dst, self.slot(x), n),
            Op::Splat { x } => self.emit(Inst::Splat { dst, x: self.slot(x), n }),
            Op::Lanes => {
                for lane in 0..n {
                    let bits = Scalar::from_i64(dtype, lane as i64).bits();
                    self.code.frame[dst as usize + lane as usize] = bits;
                }
            }
            Op::Extract { x, lane } => self.emit_copy(dst, self.slot(x) + lane as Slot, 1),
            Op::Concat { x, y } => {
                let (first, second) = (self.kernel.ty(x).lanes, self.kernel.ty(y).lanes);
                self.emit_copy(dst, self.slot(x), first);
                self.emit_copy(dst + Slot::from(first), self.slot(y), second);
            }
            Op::Fold { op, x } => {
                let n = self.kernel.ty(x).lanes;
                self.emit(Inst::Fold { op, dtype, dst, x: self.slot(x), n });
            }
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => self.access(value, op, dst),
            Op::Loop { .. } | Op::If { .. } => self.open(value, op, dst),
            Op::Break { cond } => self.leave(cond),
            Op::End { .. } => self.close(),
            Op::Barrier { scope } => self.emit(Inst::Barrier { scope, value }),
            Op::Shuffle { kind, x, lane } => {
                let (x, lane) = (self.slot(x), self.wide_index(lane));
                self.emit(Inst::Shuffle { kind, dst, x, lane, n, value });
            }
            Op::Mma { row, a, b, c } => {
                let [a, b] = [a, b].map(|x| self.factor(value, x));
                let c = self.slot(c);
                self.emit(Inst::Mma { row, dst, a, b, c, value });
            }
        }
    }

    fn emit_copy(&mut self, dst: Slot, x: Slot, n: u8) {
        self.emit(Inst::Copy { dst, x, n });
    }

    fn unary(&mut self, op: UnaryOp, dtype: DType, dst: Slot, x: Value, n: u8) {
        let x = self.slot(x);
        self.emit(match unary(op, dtype) {
            Some(f) if n == 1 => Inst::Unary { f, dst, x },
            Some(f) => Inst::UnaryLanes { f, dst, x, n },
            None => Inst::UnaryTable { op, dtype, dst, x, n },
        });
    }

    fn binary(&mut self, op: BinaryOp, dst: Slot, x: Value, y: Value, n: u8) {
        let dtype = self.dtype(x);
        let (x, y) = (self.slot(x), self.slot(y));
        self.emit(match binary(op, dtype) {
            Some(f) if n == 1 => Inst::Binary { f, dst, x, y },
            Some(f) => Inst::BinaryLanes { f, dst, x, y, n },
            None => Inst::BinaryTable { op, dtype, dst, x, y, n },
        });
    }

    fn cast(&mut self, from: DType, to: DType, dst: Slot, x: Slot, n: u8) {
        self.emit(match cast(from, to) {
            Some(f) if n == 1 => Inst::Unary { f, dst, x },
            Some(f) => Inst::UnaryLanes { f, dst, x, n },
            None => Inst::CastTable { from, to, dst, x, n },
        });
    }

    fn alloc(&mut self, value: Value, space: Space, len: u32) {
        let ty = self.kernel.ty(value);
        let slots = len as usize * ty.lanes as usize;
        let alloc = self.code.storages.len() as u32;
        let first = self.code.elements[space as usize];
        self.code.elements[space as usize] += len;
        self.code.storages.push(Storage { space, len, first });
        let place = match space {
            Space::Register => Place::Register { base: self.allocate(slots), alloc },
            Space::Shared => {
                let base = self.code.shared_slots;
                self.code.shared_slots += slots as u32;
                Place::Shared { base, alloc }
            }
        };
        self.places[value.idx()] = Some((place, len as u64));
        self.emit(Inst::Fresh { alloc });
    }

    /// A factor of the matrix instruction `value`.
    fn factor(&mut self, value: Value, x: Value) -> Factor {
        let Op::Panel { buf, index } = self.kernel.op(x) else {
            return Factor::Held(self.slot(x));
        };
        let (place, len) =
            self.places[buf.idx()].expect("invariant: storage is decoded before its use");
        let ty = self.kernel.ty(buf);
        let (index, access) = (self.wide_index(index), self.code.accesses.len() as u32);
        self.code.accesses.push(Access {
            value,
            place,
            dtype: ty.dtype,
            len,
            width: ty.lanes,
            index,
            gather: false,
            n: 1,
            mask: None,
            order: Order::Plain,
        });
        Factor::Panel(access)
    }

    fn access(&mut self, value: Value, op: Op, dst: Slot) {
        let (buf, index, order) = match op {
            Op::Load { buf, index, order } => (buf, index, order),
            Op::Store { buf, index, order, .. } => (buf, index, order),
            Op::Atomic { buf, index, order, .. } => (buf, index, order),
            _ => unreachable!("invariant: called for accesses only"),
        };
        let element = self.kernel.ty(buf);
        let lanes = self.kernel.ty(value).lanes;
        let n = if element.is_vector() { 1 } else { lanes };
        let mask = self.mask(index, n);
        let gather = self.kernel.ty(index).is_vector();
        let index = self.wide_index(index);
        let (place, len) =
            self.places[buf.idx()].expect("invariant: storage is decoded before its use");
        let (width, dtype) = (element.lanes, element.dtype);
        let access = self.code.accesses.len() as u32;
        self.code.accesses.push(Access {
            value,
            place,
            dtype,
            len,
            width,
            index,
            gather,
            n,
            mask,
            order,
        });
        let is_element = lanes == 1 && mask.is_none();
        let inst = match op {
            Op::Load { .. } if is_element => Inst::LoadElement { dst, index, access },
            Op::Load { .. } => Inst::Load { dst, access },
            Op::Store { value, .. } if is_element => {
                Inst::StoreElement { src: self.slot(value), index, access }
            }
            Op::Store { value, .. } => Inst::Store { src: self.slot(value), access },
            Op::Atomic { op, value, .. } => Inst::Atomic { op, dst, src: self.slot(value), access },
            _ => unreachable!("invariant: called for accesses only"),
        };
        self.emit(inst);
    }

    /// The conditions that guard an index, as one condition per element of the access.
    fn mask(&mut self, mut index: Value, n: u8) -> Option<Slot> {
        let mut mask: Option<Slot> = None;
        while let Op::Guard { index: inner, cond } = self.kernel.op(index) {
            let mut own = self.slot(cond);
            if n > 1 && self.kernel.ty(cond).lanes == 1 {
                let dst = self.allocate(n as usize);
                self.emit(Inst::Splat { dst, x: own, n });
                own = dst;
            }
            mask = Some(match mask {
                None => own,
                Some(other) => {
                    let dst = self.allocate(n as usize);
                    self.emit(Inst::BinaryLanes { f: |x, y| x & y, dst, x: own, y: other, n });
                    dst
                }
            });
            index = inner;
        }
        mask
    }

    /// The slots of an index as 64-bit integers.
    fn wide_index(&mut self, index: Value) -> Slot {
        let (ty, slot) = (self.kernel.ty(index), self.slot(index));
        if ty.dtype == DType::I64 {
            return slot;
        }
        let dst = self.allocate(ty.lanes as usize);
        self.cast(ty.dtype, DType::I64, dst, slot, ty.lanes);
        dst
    }

    fn open(&mut self, value: Value, op: Op, counter: Slot) {
        let (kind, axis, len) = match op {
            Op::If { cond } => {
                self.open.push(Open::If { at: self.code.insts.len() });
                let cond = self.slot(cond);
                return self.emit(Inst::Unless { cond, target: 0 });
            }
            Op::Loop { kind, axis, len } => (kind, axis, self.wide_index(len)),
            _ => unreachable!("invariant: called for loops and ifs only"),
        };
        let open = match kind {
            LoopKind::Serial => {
                let at = self.code.insts.len();
                self.emit(Inst::Loop { counter, len, exit: 0 });
                Open::Serial { at, counter, len, breaks: Vec::new() }
            }
            LoopKind::Local if self.nest.is_some() => {
                let nest = self.nest.expect("invariant: just tested") as usize;
                self.code.nests[nest].loops.push((axis, counter, len));
                Open::InnerLocal
            }
            LoopKind::Local if self.waits(value) => {
                let nest = self.code.nests.len() as u32;
                self.emit(Inst::Locals { nest });
                let body = self.here();
                let loops = vec![(axis, counter, len)];
                self.code.nests.push(LocalNest { value, loops, body, exit: 0 });
                self.nest = Some(nest);
                Open::Locals { nest }
            }
            _ => {
                let index = self.code.loops.len() as u32;
                self.emit(Inst::Enter { index });
                let body = self.here();
                self.code.loops.push(ParallelLoop { value, counter, len, body, exit: 0 });
                Open::Parallel { index }
            }
        };
        self.open.push(open);
    }

    /// Leaves the innermost loop, which is a serial one, where a condition holds.
    fn leave(&mut self, cond: Value) {
        let (at, cond) = (self.code.insts.len(), self.slot(cond));
        match self.open.last_mut() {
            Some(Open::Serial { breaks, .. }) => breaks.push(at),
            _ => unreachable!("invariant: a break stands directly in a serial loop"),
        }
        self.emit(Inst::Break { cond, target: 0 });
    }

    /// Whether iterations of this local loop wait for one another.
    fn waits(&self, local: Value) -> bool {
        debug_assert_eq!(loop_kind(self.kernel, local), Some(LoopKind::Local));
        let rest = self.kernel.iter().skip(local.idx() + 1);
        rest.take_while(|&(v, _, _)| self.regions.enclosing(v).any(|r| r == local))
            .any(|(_, op, _)| op.meets())
    }

    fn close(&mut self) {
        match self.open.pop().expect("invariant: regions nest") {
            Open::Serial { at, counter, len, breaks } => {
                self.emit(Inst::Next { counter, len, body: at as u32 + 1 });
                let exit = self.here();
                self.code.insts[at] = Inst::Loop { counter, len, exit };
                for at in breaks {
                    if let Inst::Break { target, .. } = &mut self.code.insts[at] {
                        *target = exit;
                    }
                }
            }
            Open::Parallel { index } => {
                self.emit(Inst::Advance { index });
                self.code.loops[index as usize].exit = self.here();
            }
            Open::If { at } => {
                let target = self.here();
                if let Inst::Unless { target: t, .. } = &mut self.code.insts[at] {
                    *t = target;
                }
            }
            Open::Locals { nest } => {
                self.emit(Inst::Stop);
                let exit = self.here();
                let nest = &mut self.code.nests[nest as usize];
                nest.exit = exit;
                nest.loops.sort_by_key(|&(axis, _, _)| axis);
                self.nest = None;
            }
            Open::InnerLocal => {}
        }
    }
}
