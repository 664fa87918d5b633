//! The structure of random kernels: loops, ifs, storage, stores.
//!
//! What keeps the kernels free of races: a store goes to a place computed from the counters of
//! all loops around it, as a number in mixed radix, in a part of a buffer that no other store
//! uses. Lengths of buffers are set at the end to what range analysis says is touched.

use super::{Options, Random};
use crate::dtype::DType;
use crate::ir::kernel::{Builder, Kernel, ParamInfo, VarInfo};
use crate::ir::op::{Access, BarrierScope, LoopKind, Op, Order, Space, Type, Value};
use crate::ir::range::Ranges;
use crate::ops::BinaryOp;
use crate::scalar::Scalar;

/// A loop that is open.
#[derive(Clone, Copy)]
pub(super) struct OpenLoop {
    pub(super) counter: Value,
    kind: LoopKind,
    /// The most iterations it can have.
    most: i64,
}

/// A buffer that is stored to.
struct Output {
    buf: Value,
    dtype: DType,
    /// The first element no store has been given.
    free: i64,
}

pub(super) struct Generator<'o> {
    pub(super) random: Random,
    /// The stream that breaks are drawn from. Apart from `random`, so that breaks change nothing else of a seed's kernel.
    breaks: Random,
    pub(super) options: &'o Options,
    pub(super) dtypes: Vec<DType>,
    pub(super) b: Builder,
    /// Values in scope.
    pub(super) pool: Vec<Value>,
    pub(super) loops: Vec<OpenLoop>,
    pub(super) inputs: Vec<Value>,
    outputs: Vec<Output>,
    /// Statements left.
    left: usize,
    /// Iterations the innermost loop's body has in all.
    iterations: i64,
}

/// Most iterations of one body.
const ITERATIONS: i64 = 300;
/// More than any buffer needs; the true lengths are set at the end.
const PROVISIONAL: u64 = 1 << 40;

pub(super) fn kernel(seed: u64, options: &Options) -> Kernel {
    let dtypes: Vec<DType> =
        DType::ALL.iter().copied().filter(|&d| options.dtypes.contains(d)).collect();
    let mut generator = Generator {
        random: Random::new(seed),
        breaks: Random::new(seed ^ 0xb4ea),
        options,
        dtypes,
        b: Builder::raw(&format!("random_{seed}")),
        pool: Vec::new(),
        loops: Vec::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        left: options.size,
        iterations: 1,
    };
    generator.arguments();
    if options.local {
        generator.group();
    } else {
        generator.block(0);
        generator.store();
    }
    fitted(&generator.b.finish())
}

impl Generator<'_> {
    fn arguments(&mut self) {
        for _ in 0..self.random.between(1, 3) {
            let dtype = self.dtype();
            let param = self.b.param(dtype, PROVISIONAL, Access::Read);
            self.inputs.push(param);
        }
        for _ in 0..self.random.between(1, 3) {
            let dtype = self.dtype();
            let buf = self.b.param(dtype, PROVISIONAL, Access::Write);
            self.outputs.push(Output { buf, dtype, free: 0 });
        }
        for _ in 0..self.random.below(3) {
            let dtype = self.dtype();
            let (min, max) = if dtype.is_int() { (0, 100) } else { (0, 0) };
            let var = self.b.var(dtype, min, max);
            self.pool.push(var);
        }
    }

    /// A few statements in one region.
    fn block(&mut self, depth: usize) {
        for _ in 0..self.random.between(2, 5) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            match self.random.below(12) {
                0..3 if depth < 3 => self.nested_loop(depth),
                3 if depth < 4 => self.nested_if(depth),
                4 => self.accumulator(depth),
                5 => self.tile(),
                6 if self.options.atomics => self.atomic(),
                7 => self.update(),
                8 => self.store(),
                9 => {
                    let ty = self.ty();
                    let loaded = self.load_input(ty);
                    self.pool.extend(loaded);
                }
                _ => {
                    let ty = self.ty();
                    self.value(ty);
                }
            }
        }
    }

    /// Opens a loop of at most a few iterations; `None` when there are enough already.
    fn open_loop(&mut self, kinds: &[LoopKind]) -> Option<()> {
        let most = self.random.between(1, 7);
        if self.iterations * most > ITERATIONS {
            return None;
        }
        let kind = self.random.pick(kinds);
        let narrow = self.options.narrow && self.random.once_in(8);
        let dtype = if narrow { DType::I32 } else { DType::I64 };
        let len = if self.random.once_in(4) && self.b.depth() == 0 {
            // At the top, where arguments stand.
            self.b.var(dtype, 0, most)
        } else {
            self.constant(Scalar::from_i64(dtype, most))
        };
        let counter = self.b.push(Op::Loop { kind, axis: 0, len }, Type::scalar(dtype));
        self.loops.push(OpenLoop { counter, kind, most });
        self.iterations *= most;
        Some(())
    }

    fn close_loop(&mut self) {
        let closed = self.loops.pop().expect("invariant: a loop is open");
        self.iterations /= closed.most;
        self.b.close();
    }

    fn nested_loop(&mut self, depth: usize) {
        if self.open_loop(&[LoopKind::Serial, LoopKind::Parallel]).is_none() {
            return;
        }
        let scope = self.pool.len();
        if self.random.once_in(2) {
            let counter = self.loops.last().expect("invariant: just opened").counter;
            self.pool.push(counter);
        }
        self.maybe_break();
        self.block(depth + 1);
        if !self.random.once_in(3) {
            self.maybe_break();
            self.store();
        }
        self.pool.truncate(scope);
        self.close_loop();
    }

    /// At times, a break of the innermost loop, which is the innermost region, if it is a serial one: by its
    /// counter, or by whatever value there is.
    fn maybe_break(&mut self) {
        let Some(&OpenLoop { counter, kind: LoopKind::Serial, most }) = self.loops.last() else {
            return;
        };
        if !self.breaks.once_in(6) {
            return;
        }
        std::mem::swap(&mut self.random, &mut self.breaks);
        let scope = self.pool.len();
        let bool = Type::scalar(DType::Bool);
        let cond = if self.random.once_in(2) {
            self.value(bool)
        } else {
            let last = self.random.between(0, most);
            let last = self.constant(Scalar::from_i64(self.b.ty(counter).dtype, last));
            self.b.push(Op::Binary { op: BinaryOp::Le, x: last, y: counter }, bool)
        };
        self.b.break_if(cond);
        self.pool.truncate(scope);
        std::mem::swap(&mut self.random, &mut self.breaks);
    }

    fn nested_if(&mut self, depth: usize) {
        let cond = self.value(Type::scalar(DType::Bool));
        self.b.open_if(cond);
        let scope = self.pool.len();
        self.block(depth + 1);
        self.pool.truncate(scope);
        self.b.close();
    }

    /// A register combined with a value in every iteration of a serial loop.
    fn accumulator(&mut self, depth: usize) {
        let ty = self.ty();
        let storage = self.b.alloc(Space::Register, ty, 1);
        let zero = self.index(0);
        let first = self.value(ty);
        self.b.store(storage, zero, first);
        if self.open_loop(&[LoopKind::Serial]).is_some() {
            let scope = self.pool.len();
            if depth < 3 && self.left > 0 && self.random.once_in(3) {
                self.left -= 1;
                self.block(depth + 1);
            }
            self.maybe_break();
            let old = self.b.load(storage, zero);
            self.pool.push(old);
            let new = self.connected(ty);
            let combined = self.combined(ty, old, new);
            self.b.store(storage, zero, combined);
            self.maybe_break();
            self.pool.truncate(scope);
            self.close_loop();
        }
        let last = self.b.load(storage, zero);
        self.pool.push(last);
    }

    /// Two values by an op that the options allow, or one of them.
    pub(super) fn combined(&mut self, ty: Type, x: Value, y: Value) -> Value {
        let ops: Vec<BinaryOp> = BinaryOp::ALL
            .iter()
            .copied()
            .filter(|&op| self.options.binary(op, ty.dtype) && op.result(ty.dtype) == ty.dtype)
            .collect();
        if ops.is_empty() {
            return y;
        }
        let op = self.random.pick(&ops);
        self.b.push(Op::Binary { op, x, y }, ty)
    }

    /// Register storage filled by one loop and read by another.
    fn tile(&mut self) {
        let ty = self.ty();
        let len = self.random.between(1, 4);
        if self.iterations * len > ITERATIONS {
            return;
        }
        let storage = self.b.alloc(Space::Register, ty, len as u32);
        let n = self.index(len);
        let i = self.b.open_loop(LoopKind::Serial, 0, n);
        let scope = self.pool.len();
        let x = self.connected(ty);
        self.b.store(storage, i, x);
        self.pool.truncate(scope);
        self.b.close();
        let element = self.random_index();
        let at = self.index_op(BinaryOp::Rem, element, n);
        let x = self.b.load(storage, at);
        self.pool.push(x);
    }

    /// The counter of an open loop as a 64-bit index.
    pub(super) fn wide_counter(&mut self, which: usize) -> Value {
        let x = self.loops[which].counter;
        match self.b.ty(x).dtype {
            DType::I64 => x,
            _ => self.b.push(Op::Cast { x }, Type::scalar(DType::I64)),
        }
    }

    /// A place that each iteration of the chosen loops has to itself, `scale` elements wide, in a
    /// part of the buffer from `base` on; and the size of that part.
    fn own_place(
        &mut self,
        base: i64,
        scale: i64,
        chosen: impl Fn(LoopKind) -> bool,
    ) -> (Value, i64) {
        let mut place: Option<Value> = None;
        let mut size = scale;
        for which in 0..self.loops.len() {
            let (kind, most) = (self.loops[which].kind, self.loops[which].most);
            if !chosen(kind) {
                continue;
            }
            let counter = self.wide_counter(which);
            size *= most;
            place = Some(match place {
                None => counter,
                Some(outer) => {
                    let radix = self.index(most);
                    let outer = self.index_op(BinaryOp::Mul, outer, radix);
                    self.index_op(BinaryOp::Add, outer, counter)
                }
            });
        }
        let mut place = place.unwrap_or_else(|| self.index(0));
        if scale > 1 {
            let scale = self.index(scale);
            place = self.index_op(BinaryOp::Mul, place, scale);
        }
        if base > 0 {
            let base = self.index(base);
            place = self.index_op(BinaryOp::Add, place, base);
        }
        (place, size)
    }

    /// A store to a place of its own.
    fn store(&mut self) {
        let which = self.random.below(self.outputs.len());
        let Output { buf, dtype, free } = self.outputs[which];
        let lanes = loop {
            let ty = self.ty();
            if ty.lanes <= self.options.lanes(dtype) {
                break ty.lanes;
            }
        };
        let ty = Type::vector(dtype, lanes);
        let value = self.connected(ty);
        let (mut index, size) = self.own_place(free, lanes as i64, |_| true);
        if lanes > 1 && self.options.masked && self.random.once_in(4) {
            index = self.reversed_lanes(index, lanes);
        }
        let index = self.maybe_narrow(index);
        let index = self.maybe_guarded(index, lanes);
        let order = if self.random.once_in(6) { Order::Streaming } else { Order::Plain };
        self.b.push(Op::Store { order, buf, index, value }, ty);
        self.outputs[which].free += size;
    }

    /// A vector index of the same elements as `index` and those after it, last first.
    fn reversed_lanes(&mut self, index: Value, lanes: u8) -> Value {
        let ty = Type::vector(DType::I64, lanes);
        let last = self.index(lanes as i64 - 1);
        let x = self.index_op(BinaryOp::Add, index, last);
        let x = self.b.push(Op::Splat { x }, ty);
        let y = self.b.push(Op::Lanes, ty);
        self.b.push(Op::Binary { op: BinaryOp::Sub, x, y }, ty)
    }

    /// A load, an op and a store on a place of a buffer that each parallel iteration owns.
    fn update(&mut self) {
        if self.b.depth() > 0 && self.updated().is_none() {
            return;
        }
        let buf = match self.updated() {
            Some(buf) => buf,
            None => {
                let dtype = self.dtype();
                self.b.param(dtype, PROVISIONAL, Access::ReadWrite)
            }
        };
        let free = self.outputs.iter().find(|o| o.buf == buf).map_or(0, |o| o.free);
        let ty = self.b.ty(buf);
        let (index, size) = self.own_place(free, 1, |kind| kind != LoopKind::Serial);
        let old = self.b.load(buf, index);
        let new = self.connected(ty);
        let new = self.combined(ty, old, new);
        self.b.store(buf, index, new);
        self.spent(buf, free + size);
    }

    /// A buffer declared for updates, if there is one.
    fn updated(&self) -> Option<Value> {
        let is_update =
            |v: &Value| matches!(self.b.op(*v), Op::Param { access: Access::ReadWrite, .. });
        self.outputs.iter().map(|o| o.buf).find(is_update)
    }

    fn spent(&mut self, buf: Value, free: i64) {
        match self.outputs.iter_mut().find(|o| o.buf == buf) {
            Some(output) => output.free = free,
            None => {
                let dtype = self.b.ty(buf).dtype;
                self.outputs.push(Output { buf, dtype, free });
            }
        }
    }

    /// Adds to some element of a buffer of counters; the old value is not used.
    fn atomic(&mut self) {
        let is_int = |d: &DType| d.is_int() && self.options.caps.atomic_add.contains(*d);
        let ints: Vec<DType> = self.dtypes.iter().copied().filter(is_int).collect();
        if ints.is_empty() || self.b.depth() > 0 {
            return;
        }
        let dtype = self.random.pick(&ints);
        let buf = self.b.param(dtype, PROVISIONAL, Access::ReadWrite);
        if self.open_loop(&[LoopKind::Parallel]).is_none() {
            // The buffer is touched once, or it would have no length.
            let at = self.index(0);
            let one = self.constant(Scalar::from_i64(dtype, 1));
            self.b.store(buf, at, one);
            return;
        }
        let scope = self.pool.len();
        let x = self.value(Type::scalar(dtype));
        let index = self.random_index();
        self.b.atomic(BinaryOp::Add, buf, index, x);
        self.pool.truncate(scope);
        self.close_loop();
    }

    /// A kernel of groups: each local iteration stores to shared storage, waits, and reads what
    /// another has stored.
    fn group(&mut self) {
        let (groups, locals) = (self.random.between(1, 4), self.random.pick(&[1i64, 2, 4, 8]));
        let (g, l) = (self.index(groups), self.index(locals));
        let counter = self.b.open_loop(LoopKind::Group, 0, g);
        self.loops.push(OpenLoop { counter, kind: LoopKind::Group, most: groups });
        let ty = Type::scalar(self.dtype());
        let shared = self.b.alloc(Space::Shared, ty, locals as u32);
        let counter = self.b.open_loop(LoopKind::Local, 0, l);
        self.loops.push(OpenLoop { counter, kind: LoopKind::Local, most: locals });
        self.iterations = groups * locals;
        for _ in 0..self.random.between(1, 3) {
            self.block(2);
            let x = self.value(ty);
            self.b.store(shared, counter, x);
            self.b.barrier(BarrierScope::Shared);
            let shift = self.random.between(0, 7);
            let shift = self.index(shift);
            let at = self.index_op(BinaryOp::Add, counter, shift);
            let at = self.index_op(BinaryOp::Rem, at, l);
            let x = self.b.load(shared, at);
            self.b.barrier(BarrierScope::Shared);
            self.pool.push(x);
        }
        self.store();
        self.pool.clear();
        self.close_loop();
        self.close_loop();
    }
}

/// The kernel with buffers as long as it needs.
fn fitted(kernel: &Kernel) -> Kernel {
    let ranges = Ranges::of(kernel);
    let mut params: Vec<ParamInfo> =
        kernel.params().iter().map(|info| ParamInfo { len: 0, ..*info }).collect();
    for (value, op, _) in kernel.iter() {
        let Some(elements) = ranges.elements(value) else { continue };
        let buf = op.operands().next().map(|buf| kernel.op(buf));
        if let Some(Op::Param { slot, .. }) = buf {
            let len = (elements.max + 1).clamp(0, PROVISIONAL as i128) as u64;
            params[slot as usize].len = params[slot as usize].len.max(len);
        }
    }
    let vars: Vec<VarInfo> = kernel.vars().to_vec();
    let mut b = Builder::raw(kernel.name()).with_arguments(params, vars);
    for (_, op, ty) in kernel.iter() {
        b.push(op, ty);
    }
    b.finish()
}
