//! From a part of a kernel to instructions on registers.
//!
//! One walk over the ops, in order. Scalars have a place each for good; vectors have registers
//! that are shared by values that do not live at once, so few that they stay in the first-level
//! cache. Literals, splats of literals and lane numbers are made once, in front of everything.

use super::frame::{ROW, STEP, Sizes};
use super::functions;
use super::machine::{Access, Each, Inst, NONE, ScalarOp};
use super::ops::{self, Product, VectorOp};
use super::{BlockError, HI, LANES, LO, PARAMS, ZERO};
use crate::facts::{Facts, Slot};
use rustc_hash::{FxHashMap, FxHashSet};
use zyx_core::ir::interp::scalar;
use zyx_core::ir::{Kernel, Op, Order, Type, Value};
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp};

type Result<T> = std::result::Result<T, BlockError>;

/// The code of a part.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub(super) insts: Vec<Inst>,
    /// Scalars that are literals.
    pub(super) literals: Vec<(u32, u64)>,
    /// Scalars that are addresses of private arrays, with their places in bytes.
    pub(super) arrays: Vec<(u32, usize)>,
    pub(super) sizes: Sizes,
    /// The scalar that was asked for.
    pub(super) result: u32,
}

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Val {
    /// Nowhere: storage, effects, other parts.
    None,
    Scalar(u32),
    /// A number of `registers`.
    Vector(u32),
}

/// A vector register before registers are shared.
#[derive(Clone, Copy, Debug)]
struct Register {
    width: u8,
    /// The first and last instruction that names it.
    first: u32,
    last: u32,
}

/// Which fields of the instruction at `at` are registers.
type Named = (u32, [u32; 4]);

/// The methods that make instructions are large once inlined, and run once for each op.
struct Translate<'a> {
    kernel: &'a Kernel,
    facts: &'a Facts,
    live: Vec<bool>,
    /// For sums and differences the product that is computed with them.
    products: FxHashMap<Value, (Value, Product)>,
    /// Of these the ones that are a step of a polynomial which goes on: nobody computes them.
    inner: FxHashSet<Value>,
    vals: Vec<Val>,
    /// In front of everything, then the rest.
    head: Vec<Inst>,
    body: Vec<Inst>,
    head_named: Vec<Named>,
    body_named: Vec<Named>,
    registers: Vec<Register>,
    scalars: u32,
    literals: FxHashMap<u64, u32>,
    splats: FxHashMap<(u64, u8), u32>,
    lane_numbers: FxHashMap<u8, u32>,
    slots: Vec<Val>,
    /// The use of the last operand that stays in memory.
    row_until: usize,
    bases: FxHashMap<Value, u32>,
    arrays: Vec<(u32, usize)>,
    storage: usize,
    /// Open regions: where they begin.
    open: Vec<usize>,
    /// Loops of the body, inner before outer.
    loops: Vec<(u32, u32)>,
    /// Of the widest vector.
    lanes: u8,
}

/// The end of a loop that is not closed yet.
const OPEN: u32 = u32::MAX;

/// Translates the ops of a part; `parallel` is the loop whose iterations are the range to run.
/// With `length`, translates what that value needs instead.
pub(super) fn translate(
    kernel: &Kernel,
    facts: &Facts,
    part: &[bool],
    parallel: Option<Value>,
    length: Option<Value>,
) -> Result<Code> {
    let n = length.map_or(kernel.ops().len(), |len| len.idx() + 1);
    let mut live = live(kernel, facts, &part[..n], length);
    let products = products(kernel, facts, &mut live);
    let inner = inner_steps(kernel, facts, &products, &mut live);
    let mut it = Translate {
        kernel,
        facts,
        live,
        products,
        inner,
        vals: vec![Val::None; n],
        head: Vec::new(),
        body: Vec::new(),
        head_named: Vec::new(),
        body_named: Vec::new(),
        registers: Vec::new(),
        scalars: PARAMS + (kernel.params().len() + kernel.vars().len()) as u32,
        literals: FxHashMap::default(),
        splats: FxHashMap::default(),
        lane_numbers: FxHashMap::default(),
        slots: vec![Val::None; facts.n_slots],
        row_until: 0,
        bases: FxHashMap::default(),
        arrays: Vec::new(),
        storage: 0,
        open: Vec::new(),
        loops: Vec::new(),
        lanes: 1,
    };
    it.literals.insert(0, ZERO);
    for (value, op, ty) in kernel.iter().take(n) {
        if it.live[value.idx()] {
            it.op(value, op, ty, parallel == Some(value))?;
        }
    }
    let result = match length {
        Some(len) => {
            let x = it.scalar(len)?;
            it.widened(x, kernel.ty(len).dtype, DType::I64)
        }
        None => ZERO,
    };
    it.finish(result)
}

/// An index without its guards and without what is added to it for good, and how much that is.
fn base(kernel: &Kernel, facts: &Facts, index: Value) -> (Value, i64) {
    let (mut index, mut offset) = (kernel.unguarded(index).0, 0i64);
    while let Op::Binary { op: BinaryOp::Add, x, y } = kernel.op(index) {
        let literal = |v: Value| match kernel.op(v) {
            Op::Const { .. } => kernel.constant(v).map(|c| c.to_i64()),
            _ => None,
        };
        let (x, c) = match (literal(x), literal(y)) {
            (_, Some(c)) => (x, c),
            (Some(c), _) => (y, c),
            _ => break,
        };
        // Values that share a register with storage may be gone when the access happens.
        let stays = match kernel.op(x) {
            Op::Loop { .. } | Op::Var { .. } | Op::Const { .. } => true,
            Op::Binary { .. } => facts.target[x.idx()].is_none(),
            _ => false,
        };
        let is_index = kernel.ty(index) == Type::scalar(DType::I64);
        let Some(sum) = offset.checked_add(c).filter(|_| stays && is_index) else { break };
        (index, offset) = (x, sum);
    }
    (index, offset)
}

/// The ops of a part that somebody needs.
fn live(kernel: &Kernel, facts: &Facts, part: &[bool], length: Option<Value>) -> Vec<bool> {
    let mut live = vec![false; part.len()];
    if let Some(len) = length {
        live[len.idx()] = true;
    }
    for at in (0..part.len()).rev().filter(|&at| part[at]) {
        let op = kernel.ops()[at];
        let plain = matches!(op, Op::Load { order: Order::Plain, .. });
        let droppable = op.is_pure() || plain || matches!(op, Op::Param { .. } | Op::Var { .. });
        let droppable = droppable || matches!(op, Op::Alloc { .. });
        live[at] |= length.is_none() && !droppable;
        if !live[at] {
            continue;
        }
        let mut mark = |v: Value| live[v.idx()] = true;
        match op {
            Op::End { .. } => {}
            Op::Load { buf, index, .. } | Op::Store { buf, index, .. } => {
                mark(buf);
                mark(base(kernel, facts, index).0);
                kernel.unguarded(index).1.into_iter().for_each(&mut mark);
                if let Op::Store { value, .. } = op {
                    mark(value);
                }
            }
            _ => op.operands().for_each(mark),
        }
    }
    live
}

/// Products of vectors that only the sum or difference behind them needs: these compute them, too.
fn products(
    kernel: &Kernel,
    facts: &Facts,
    live: &mut [bool],
) -> FxHashMap<Value, (Value, Product)> {
    let mut found = FxHashMap::default();
    // Where the stretch without loops and conditions that an op stands in begins.
    let mut stretch = 0;
    for (value, op, ty) in kernel.iter().take(live.len()) {
        if op.opens_region() || matches!(op, Op::End { .. }) {
            stretch = value.idx();
        }
        let Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Sub), x, y } = op else { continue };
        if !live[value.idx()] || !ty.is_vector() || ops::product(Product::Plus, ty.dtype).is_none()
        {
            continue;
        }
        // What the product reads must still be there: registers of storage may have changed.
        let stays = |v: Value| match kernel.op(v) {
            Op::Load { .. } => !facts.alias[v.idx()] && facts.target[v.idx()].is_none(),
            Op::Splat { .. } => true,
            Op::Unary { .. } | Op::Binary { .. } | Op::Ternary { .. } => {
                facts.target[v.idx()].is_none()
            }
            _ => false,
        };
        let is_product = |v: Value| match kernel.op(v) {
            Op::Binary { op: BinaryOp::Mul, x, y } => {
                let own = facts.uses[v.idx()] == 1 && facts.target[v.idx()].is_none();
                own && v.idx() > stretch && live[v.idx()] && stays(x) && stays(y)
            }
            _ => false,
        };
        let way = match op {
            BinaryOp::Add if is_product(x) => (x, Product::Plus),
            BinaryOp::Add if is_product(y) => (y, Product::Plus),
            BinaryOp::Sub if is_product(x) => (x, Product::Minus),
            BinaryOp::Sub if is_product(y) => (y, Product::From),
            _ => continue,
        };
        live[way.0.idx()] = false;
        found.insert(value, way);
    }
    found
}

/// The sums that are steps of a polynomial by Horner's rule which has another step behind: a product
/// with the same factor, and again a literal added.
fn inner_steps(
    kernel: &Kernel,
    facts: &Facts,
    products: &FxHashMap<Value, (Value, Product)>,
    live: &mut [bool],
) -> FxHashSet<Value> {
    let mut inner = FxHashSet::default();
    let step = |value: Value| {
        let &(product, Product::Plus) = products.get(&value)? else { return None };
        let Op::Binary { x, y, .. } = kernel.op(value) else { return None };
        kernel.constant(if product == x { y } else { x })?;
        let Op::Binary { x, y, .. } = kernel.op(product) else { return None };
        Some((x, y))
    };
    // A stretch without loops and conditions, as products ask for, lies between.
    let ends =
        |v: usize| kernel.ops()[v].opens_region() || matches!(kernel.ops()[v], Op::End { .. });
    for (value, ..) in kernel.iter().take(live.len()) {
        let Some((start, x)) = step(value) else { continue };
        let same = step(start).is_some_and(|(_, other)| other == x);
        let only = facts.uses[start.idx()] == 1 && facts.target[start.idx()].is_none();
        if same && only && !(start.idx()..value.idx()).any(ends) {
            inner.insert(start);
            live[start.idx()] = false;
        }
    }
    inner
}

fn width(dtype: DType) -> u8 {
    dtype.size().trailing_zeros() as u8
}

impl Translate<'_> {
    // ---- instructions and registers ----------------------------------------------------------

    #[inline(never)]
    fn push(&mut self, inst: Inst, named: [u32; 4]) {
        let at = self.body.len() as u32 + 1;
        for register in named.into_iter().filter(|&r| r != NONE) {
            let last = &mut self.registers[register as usize].last;
            *last = (*last).max(at);
            let first = &mut self.registers[register as usize].first;
            *first = (*first).min(at);
        }
        self.body_named.push((self.body.len() as u32, named));
        self.body.push(inst);
    }

    /// An operation on the registers of `r` that `vectors` says are such.
    #[inline(never)]
    fn push_vector(&mut self, f: VectorOp, r: [u32; 4], vectors: [bool; 4], lanes: u8) {
        let named = std::array::from_fn(|i| if vectors[i] && r[i] != ROW { r[i] } else { NONE });
        self.push(Inst::Vector { f, r, chunks: lanes.div_ceil(STEP as u8) }, named);
    }

    /// An operation whose operands are all registers.
    fn push_whole(&mut self, f: VectorOp, r: [u32; 4], lanes: u8) {
        self.push_vector(f, r, [true; 4], lanes);
    }

    #[inline(never)]
    fn push_head(&mut self, inst: Inst, register: u32) {
        self.registers[register as usize].first = 0;
        self.head_named.push((self.head.len() as u32, [register, NONE, NONE, NONE]));
        self.head.push(inst);
    }

    fn new_scalar(&mut self) -> u32 {
        self.scalars += 1;
        self.scalars - 1
    }

    #[inline(never)]
    fn new_register(&mut self, dtype: DType, lanes: u8) -> u32 {
        self.lanes = self.lanes.max(lanes);
        self.registers.push(Register { width: width(dtype), first: u32::MAX, last: 0 });
        self.registers.len() as u32 - 1
    }

    #[inline(never)]
    fn literal(&mut self, bits: u64) -> u32 {
        if let Some(&known) = self.literals.get(&bits) {
            return known;
        }
        let new = self.new_scalar();
        self.literals.insert(bits, new);
        new
    }

    #[inline(never)]
    fn literal_splat(&mut self, bits: u64, ty: Type) -> u32 {
        let width = width(ty.dtype);
        self.lanes = self.lanes.max(ty.lanes);
        if let Some(&known) = self.splats.get(&(bits, width)) {
            return known;
        }
        let (x, to) = (self.literal(bits), self.new_register(ty.dtype, ty.lanes));
        let inst = Inst::Vector { f: ops::splat(width), r: [to, x, 0, 0], chunks: 0 };
        self.push_head(inst, to);
        self.splats.insert((bits, width), to);
        to
    }

    // ---- values ------------------------------------------------------------------------------

    fn ty(&self, value: Value) -> Type {
        self.kernel.ty(value)
    }

    fn set(&mut self, value: Value, val: Val) {
        self.vals[value.idx()] = val;
    }

    fn scalar(&mut self, value: Value) -> Result<u32> {
        match self.vals[value.idx()] {
            Val::Scalar(x) => Ok(x),
            _ => Err(BlockError::new("a vector where a scalar is needed")),
        }
    }

    fn vector(&mut self, value: Value) -> Result<u32> {
        match self.vals[value.idx()] {
            Val::Vector(x) => Ok(x),
            _ => Err(BlockError::new("a scalar where a vector is needed")),
        }
    }

    /// Where the result of an op goes: the storage it is stored to, if it may be computed there.
    #[inline(never)]
    fn target(&mut self, value: Value, ty: Type) -> u32 {
        if let Some(Slot(slot)) = self.facts.target[value.idx()] {
            match self.slots[slot as usize] {
                Val::Scalar(x) | Val::Vector(x) => return x,
                Val::None => {}
            }
        }
        if ty.is_vector() { self.new_register(ty.dtype, ty.lanes) } else { self.new_scalar() }
    }

    fn place(ty: Type, at: u32) -> Val {
        if ty.is_vector() { Val::Vector(at) } else { Val::Scalar(at) }
    }

    /// A scalar converted, if its bits differ.
    #[inline(never)]
    fn widened(&mut self, x: u32, from: DType, to: DType) -> u32 {
        if from == to {
            return x;
        }
        let new = self.new_scalar();
        self.push_scalar(cast(from, to), new, [x, NONE, NONE]);
        new
    }

    #[inline(never)]
    fn push_scalar(&mut self, op: ScalarOp, to: u32, x: [u32; 3]) {
        self.push(Inst::Scalar { op, to, x }, [NONE; 4]);
    }

    /// An operation on each lane, or on scalars.
    #[inline(never)]
    fn each(&mut self, value: Value, op: ScalarOp, operands: &[Value]) -> Result<()> {
        let ty = self.ty(value);
        let mut r = [NONE; 4];
        let mut widths = [width(ty.dtype); 4];
        for (i, &operand) in operands.iter().enumerate() {
            let vector = ty.is_vector();
            r[i + 1] = if vector { self.vector(operand)? } else { self.scalar(operand)? };
            widths[i + 1] = width(self.ty(operand).dtype);
        }
        let to = self.target(value, ty);
        r[0] = to;
        match ty.is_vector() {
            true => {
                let operands = operands.len() as u8;
                let each = Each { op, lanes: ty.lanes, widths, operands };
                self.push(Inst::Each { r, each: Box::new(each) }, r);
            }
            false => self.push_scalar(op, to, [r[1], r[2], r[3]]),
        }
        self.set(value, Self::place(ty, to));
        Ok(())
    }

    /// An operation on vectors that has a loop of its own.
    #[inline(never)]
    fn whole(&mut self, value: Value, f: VectorOp, operands: &[Value]) -> Result<()> {
        let ty = self.ty(value);
        let mut r = [NONE; 4];
        for (i, &operand) in operands.iter().enumerate() {
            r[i + 1] = self.vector(operand)?;
        }
        r[0] = self.target(value, ty);
        self.push_whole(f, r, ty.lanes);
        self.set(value, Val::Vector(r[0]));
        Ok(())
    }

    // ---- the walk ----------------------------------------------------------------------------

    fn op(&mut self, value: Value, op: Op, ty: Type, is_range: bool) -> Result<()> {
        if usize::from(ty.lanes) > LANES {
            return Err(BlockError::new("vectors of more than 64 lanes"));
        }
        let params = self.kernel.params().len() as u32;
        match op {
            Op::Param { slot, .. } => {
                self.bases.insert(value, PARAMS + u32::from(slot));
            }
            Op::Var { slot } => {
                let (x, to) = (PARAMS + params + u32::from(slot), self.new_scalar());
                self.push_scalar(ScalarOp::Bits(ty.dtype), to, [x, NONE, NONE]);
                self.set(value, Val::Scalar(to));
            }
            Op::Const { bits } => {
                let x = self.literal(Scalar::from_bits(ty.dtype, bits).bits());
                self.set(value, Val::Scalar(x));
            }
            Op::Alloc { len, .. } => self.alloc(value, ty, len),
            Op::Unary { op, x } => {
                let (vector, scalar) = match functions::row(op, ty.dtype) {
                    Some((vector, scalar)) => (Some(vector), Some(scalar)),
                    None => (ops::unary(op, ty.dtype), scalar::unary(op, ty.dtype)),
                };
                let vector = vector.filter(|_| ty.is_vector());
                let scalar = scalar.map_or(ScalarOp::Unary(op, ty.dtype), ScalarOp::One);
                self.with(value, vector, scalar, &[x])?;
            }
            Op::Binary { op, x, y } => self.binary(value, op, x, y)?,
            Op::Ternary { op: TernaryOp::Where, x, y, z } => match ty.is_vector() {
                true if self.ty(x).is_vector() => {
                    self.whole(value, ops::select(width(ty.dtype)), &[x, y, z])?;
                }
                true => return Err(BlockError::new("a vector chosen by a scalar")),
                false => {
                    let (cond, x, y) = (self.scalar(x)?, self.scalar(y)?, self.scalar(z)?);
                    let to = self.target(value, ty);
                    self.push(Inst::Select { to, cond, x, y }, [NONE; 4]);
                    self.set(value, Val::Scalar(to));
                }
            },
            Op::Ternary { op, x, y, z } => {
                self.each(value, ScalarOp::Ternary(op, ty.dtype), &[x, y, z])?;
            }
            Op::Cast { x } if self.ty(x).dtype == ty.dtype => self.set(value, self.vals[x.idx()]),
            Op::Cast { x } => {
                let from = self.ty(x).dtype;
                let vector = ops::cast(from, ty.dtype).filter(|_| ty.is_vector());
                self.with(value, vector, cast(from, ty.dtype), &[x])?;
            }
            Op::Bitcast { x } if ty.dtype == DType::Bool => {
                self.each(value, ScalarOp::Bits(ty.dtype), &[x])?;
            }
            Op::Bitcast { x } => self.set(value, self.vals[x.idx()]),
            Op::Splat { x } => match self.kernel.constant(x) {
                _ if !ty.is_vector() => self.set(value, self.vals[x.idx()]),
                Some(c) => {
                    let to = self.literal_splat(c.bits(), ty);
                    self.set(value, Val::Vector(to));
                }
                None => {
                    let (x, to) = (self.scalar(x)?, self.new_register(ty.dtype, ty.lanes));
                    let only = [true, false, false, false];
                    let f = ops::splat(width(ty.dtype));
                    self.push_vector(f, [to, x, NONE, NONE], only, ty.lanes);
                    self.set(value, Val::Vector(to));
                }
            },
            Op::Lanes => self.lane_numbers(value, ty)?,
            Op::Extract { x, lane } => {
                let (from, to) = (self.vector(x)?, self.new_scalar());
                let width = width(ty.dtype);
                self.push(Inst::Extract { to, from, width, lane }, [from, NONE, NONE, NONE]);
                self.set(value, Val::Scalar(to));
            }
            Op::Fold { op, x } => self.fold(value, op, x)?,
            // Accesses look behind it.
            Op::Guard { .. } => {}
            Op::Load { order: Order::Plain, buf, index } => self.load(value, buf, index, ty)?,
            Op::Store { order: Order::Plain | Order::Streaming, buf, index, value } => {
                self.store(buf, index, value)?;
            }
            Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } => {
                return Err(BlockError::new("accesses in an order between threads"));
            }
            Op::Loop { len, .. } => self.open_loop(value, len, is_range)?,
            Op::If { cond } => {
                let cond = self.scalar(cond)?;
                self.open.push(self.body.len());
                self.push(Inst::If { cond, end: 0 }, [NONE; 4]);
            }
            Op::Break { cond } => {
                let cond = self.scalar(cond)?;
                self.push(Inst::Break { cond, end: OPEN }, [NONE; 4]);
            }
            Op::End { .. } => self.close(),
            Op::Barrier { .. } | Op::Shuffle { .. } | Op::Panel { .. } | Op::Mma { .. } => {
                return Err(BlockError::new("threads that meet"));
            }
            Op::Concat { .. } => return Err(BlockError::new("vectors joined")),
        }
        Ok(())
    }

    /// The result of an operation by the loop it has on vectors, or lane by lane.
    fn with(
        &mut self,
        value: Value,
        vector: Option<VectorOp>,
        scalar: ScalarOp,
        operands: &[Value],
    ) -> Result<()> {
        match vector {
            Some(f) => self.whole(value, f, operands),
            None => self.each(value, scalar, operands),
        }
    }

    #[inline(never)]
    fn binary(&mut self, value: Value, op: BinaryOp, x: Value, y: Value) -> Result<()> {
        let (ty, of) = (self.ty(value), self.ty(x).dtype);
        let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Mul);
        if ty == Type::scalar(DType::I64) && is_sum {
            let (x, y, to) = (self.scalar(x)?, self.scalar(y)?, self.target(value, ty));
            let inst = match op {
                BinaryOp::Add => Inst::Add { to, x, y },
                _ => Inst::Mul { to, x, y },
            };
            self.push(inst, [NONE; 4]);
            self.set(value, Val::Scalar(to));
            return Ok(());
        }
        if self.products.contains_key(&value)
            && let Some(done) = self.polynomial(value)?
        {
            return Ok(done);
        }
        if let Some(&(product, way)) = self.products.get(&value)
            && let Op::Binary { x: a, y: b, .. } = self.kernel.op(product)
            && let Some(f) = ops::product(way, of)
        {
            return self.whole(value, f, &[a, b, if product == x { y } else { x }]);
        }
        let bound = self.kernel.constant(y).filter(|c| !c.to_f64().is_nan() && ty.is_vector());
        if let Some(bound) = bound
            && let Some(f) = ops::clamp(op, of)
        {
            let bound = self.literal(bound.bits());
            let r = [self.target(value, ty), self.vector(x)?, bound, NONE];
            self.push_vector(f, r, [true, true, false, false], ty.lanes);
            self.set(value, Val::Vector(r[0]));
            return Ok(());
        }
        if let Op::Splat { x: distance } = self.kernel.op(y)
            && ty.is_vector()
            && let Some(f) = ops::shift(op, of)
        {
            let r = [self.target(value, ty), self.vector(x)?, self.scalar(distance)?, NONE];
            self.push_vector(f, r, [true, true, false, false], ty.lanes);
            self.set(value, Val::Vector(r[0]));
            return Ok(());
        }
        let vector = ops::binary(op, of).filter(|_| ty.is_vector());
        let scalar = scalar::binary(op, of).map_or(ScalarOp::Binary(op, of), ScalarOp::Two);
        self.with(value, vector, scalar, &[x, y])
    }

    /// The only use of a load of whole chunks, if that is an operation which reads them where they are: no
    /// other one does meanwhile, and nothing is written.
    #[inline(never)]
    fn row_use(&self, load: Value, ty: Type) -> Option<usize> {
        let at = load.idx();
        let own = self.facts.uses[at] == 1 && self.facts.target[at].is_none();
        if !own || !usize::from(ty.lanes).is_multiple_of(STEP) || at < self.row_until {
            return None;
        }
        for (i, &op) in self.kernel.ops().iter().enumerate().take(self.live.len()).skip(at + 1) {
            match op {
                Op::Binary { op, x, y } if x == load || y == load => {
                    // Products that are computed elsewhere are not live, and a literal is no vector.
                    let plain = [Value(i as u32), x, y].iter().all(|v| self.live[v.idx()]);
                    let fits = ops::takes_rows(op, ty.dtype) && self.kernel.constant(y).is_none();
                    return Some(i).filter(|_| plain && fits);
                }
                Op::Load { order: Order::Plain, .. } => {}
                _ if op.is_pure() => {}
                _ => return None,
            }
        }
        None
    }

    /// The product plus a literal that `value` is: the product's factors and the literal's bits.
    fn step(&self, value: Value) -> Option<(Value, Value, u64)> {
        let &(product, Product::Plus) = self.products.get(&value)? else { return None };
        let Op::Binary { x, y, .. } = self.kernel.op(value) else { return None };
        let added = self.kernel.constant(if product == x { y } else { x })?;
        let Op::Binary { x, y, .. } = self.kernel.op(product) else { return None };
        Some((x, y, added.bits()))
    }

    /// The sum that ends a polynomial of two steps or more, in one pass over the lanes.
    #[inline(never)]
    fn polynomial(&mut self, value: Value) -> Result<Option<()>> {
        let Some((mut start, x, last)) = self.step(value) else { return Ok(None) };
        let mut coefficients = vec![last];
        while let Some((inner, _, added)) = self.step(start).filter(|s| s.1 == x)
            && self.inner.contains(&start)
        {
            coefficients.push(added);
            start = inner;
        }
        if coefficients.len() < 2 {
            return Ok(None);
        }
        let coefficients = coefficients.into_iter().rev().map(|c| self.literal(c)).collect();
        let ty = self.ty(value);
        let r = [self.target(value, ty), self.vector(start)?, self.vector(x)?, NONE];
        let chunks = ty.lanes.div_ceil(STEP as u8);
        self.push(Inst::Polynomial { r, coefficients, chunks }, r);
        self.set(value, Val::Vector(r[0]));
        Ok(Some(()))
    }

    #[inline(never)]
    fn lane_numbers(&mut self, value: Value, ty: Type) -> Result<()> {
        if !ty.dtype.is_int() {
            return Err(BlockError::new("lane numbers that are no integers"));
        }
        let width = width(ty.dtype);
        self.lanes = self.lanes.max(ty.lanes);
        let known = self.lane_numbers.get(&width).copied();
        let to = known.unwrap_or_else(|| {
            let to = self.new_register(ty.dtype, ty.lanes);
            self.push_head(Inst::Lanes { to, width, lanes: 0 }, to);
            self.lane_numbers.insert(width, to);
            to
        });
        self.set(value, Val::Vector(to));
        Ok(())
    }

    #[inline(never)]
    fn fold(&mut self, value: Value, op: BinaryOp, x: Value) -> Result<()> {
        let ty = self.ty(x);
        let (from, to) = (self.vector(x)?, self.new_scalar());
        let fast = ops::folded(op, ty.dtype).filter(|_| ty.lanes.is_power_of_two());
        match fast {
            Some(f) => {
                let r = [to, from, ty.lanes.into(), NONE];
                self.push_vector(f, r, [false, true, false, false], ty.lanes);
            }
            None => {
                let two = scalar::binary(op, ty.dtype);
                let op = two.map_or(ScalarOp::Binary(op, ty.dtype), ScalarOp::Two);
                let inst = Inst::Fold { to, from, width: width(ty.dtype), lanes: ty.lanes, op };
                self.push(inst, [from, NONE, NONE, NONE]);
            }
        }
        self.set(value, Val::Scalar(to));
        Ok(())
    }

    // ---- memory ------------------------------------------------------------------------------

    #[inline(never)]
    fn alloc(&mut self, value: Value, ty: Type, len: u32) {
        if let Some(Slot(first)) = self.facts.promoted[value.idx()] {
            for slot in first..first + len {
                let at = match ty.is_vector() {
                    true => self.new_register(ty.dtype, ty.lanes),
                    false => self.new_scalar(),
                };
                self.slots[slot as usize] = Self::place(ty, at);
                if ty.is_vector() {
                    // Of its own for good: what it holds may come from an iteration before.
                    self.registers[at as usize] =
                        Register { width: width(ty.dtype), first: 0, last: u32::MAX };
                }
            }
            return;
        }
        let base = self.new_scalar();
        self.arrays.push((base, self.storage));
        self.storage += (ty.bytes() * len as usize).next_multiple_of(64);
        self.bases.insert(value, base);
    }

    fn slot(&self, buf: Value, index: Value) -> Option<Val> {
        let Slot(slot) = self.facts.slot(self.kernel, buf, index)?;
        Some(self.slots[slot as usize])
    }

    #[inline(never)]
    fn copy(&mut self, ty: Type, to: u32, from: u32) {
        if to == from {
            return;
        }
        match ty.is_vector() {
            true => {
                let r = [to, from, NONE, NONE];
                self.push_whole(ops::copy(width(ty.dtype)), r, ty.lanes);
            }
            false => self.push(Inst::Move { to, x: from }, [NONE; 4]),
        }
    }

    #[inline(never)]
    fn load(&mut self, value: Value, buf: Value, index: Value, ty: Type) -> Result<()> {
        if let Some(slot) = self.slot(buf, index) {
            let (Val::Scalar(from) | Val::Vector(from)) = slot else {
                return Err(BlockError::new("storage of another part"));
            };
            let mut to = from;
            if !self.facts.alias[value.idx()] {
                to = if ty.is_vector() {
                    self.new_register(ty.dtype, ty.lanes)
                } else {
                    self.new_scalar()
                };
                self.copy(ty, to, from);
            }
            self.set(value, Self::place(ty, to));
            return Ok(());
        }
        let (mut access, scattered) = self.access(buf, index, ty, NONE)?;
        let plain = !scattered && access.guard == NONE && access.mask == NONE;
        if plain && let Some(at) = self.row_use(value, ty) {
            self.row_until = at;
            self.push(Inst::Row(access), [NONE; 4]);
            self.set(value, Val::Vector(ROW));
            return Ok(());
        }
        let to = self.target(value, ty);
        access.value = to;
        let inst = match (ty.is_vector(), scattered) {
            (false, _) => Inst::Load(access),
            (true, false) => Inst::LoadRow(access),
            (true, true) => Inst::Gather(access),
        };
        self.push_access(inst, access, ty, scattered);
        self.set(value, Self::place(ty, to));
        Ok(())
    }

    #[inline(never)]
    fn store(&mut self, buf: Value, index: Value, value: Value) -> Result<()> {
        let ty = self.ty(value);
        let (Val::Scalar(from) | Val::Vector(from)) = self.vals[value.idx()] else {
            return Err(BlockError::new("a value of another part"));
        };
        if let Some(slot) = self.slot(buf, index) {
            let (Val::Scalar(to) | Val::Vector(to)) = slot else {
                return Err(BlockError::new("storage of another part"));
            };
            self.copy(ty, to, from);
            return Ok(());
        }
        let (access, scattered) = self.access(buf, index, ty, from)?;
        let inst = match (ty.is_vector(), scattered) {
            (false, _) => Inst::Store(access),
            (true, false) => Inst::StoreRow(access),
            (true, true) => Inst::Scatter(access),
        };
        self.push_access(inst, access, ty, scattered);
        Ok(())
    }

    fn push_access(&mut self, inst: Inst, access: Access, ty: Type, scattered: bool) {
        let value = if ty.is_vector() { access.value } else { NONE };
        let index = if scattered { access.index } else { NONE };
        self.push(inst, [value, index, access.mask, NONE]);
    }

    /// An access of `value`, and whether each lane has an index of its own.
    #[inline(never)]
    fn access(&mut self, buf: Value, index: Value, ty: Type, value: u32) -> Result<(Access, bool)> {
        let (mut guard, mut mask) = (NONE, NONE);
        let and = scalar::binary(BinaryOp::And, DType::Bool);
        for cond in self.kernel.unguarded(index).1 {
            if self.ty(cond).is_vector() {
                let x = self.vector(cond)?;
                mask = match mask {
                    NONE => x,
                    y => {
                        let to = self.new_register(DType::Bool, ty.lanes);
                        let f = ops::binary(BinaryOp::And, DType::Bool);
                        let f = f.ok_or_else(|| BlockError::new("conditions joined"))?;
                        let r = [to, x, y, NONE];
                        self.push_whole(f, r, ty.lanes);
                        to
                    }
                };
            } else {
                let x = self.scalar(cond)?;
                guard = match (guard, and) {
                    (NONE, _) => x,
                    (y, Some(and)) => {
                        let to = self.new_scalar();
                        self.push_scalar(ScalarOp::Two(and), to, [x, y, NONE]);
                        to
                    }
                    (_, None) => return Err(BlockError::new("conditions joined")),
                };
            }
        }
        let (index, offset) = base(self.kernel, self.facts, index);
        let of = self.ty(buf);
        let element = if of.is_vector() { of.bytes() } else { ty.dtype.size() };
        let it = self.ty(index);
        let at = match it.is_vector() {
            false => {
                let at = self.scalar(index)?;
                self.widened(at, it.dtype, DType::I64)
            }
            true => self.wide_indices(index)?,
        };
        let Some(&base) = self.bases.get(&buf) else {
            return Err(BlockError::new("storage of another part"));
        };
        let access = Access {
            base,
            index: at,
            scale: element as u32,
            offset: offset.wrapping_mul(element as i64),
            guard,
            mask,
            value,
            width: width(ty.dtype),
            lanes: ty.lanes,
        };
        Ok((access, it.is_vector()))
    }

    /// Indices of lanes in 64 bits.
    #[inline(never)]
    fn wide_indices(&mut self, index: Value) -> Result<u32> {
        let ty = self.ty(index);
        let at = self.vector(index)?;
        if matches!(ty.dtype, DType::I64 | DType::U64) {
            return Ok(at);
        }
        let to = self.new_register(DType::I64, ty.lanes);
        let r = [to, at, NONE, NONE];
        match ops::cast(ty.dtype, DType::I64) {
            Some(f) => self.push_whole(f, r, ty.lanes),
            None => {
                let widths = [3, width(ty.dtype), 0, 0];
                let op = cast(ty.dtype, DType::I64);
                let each = Each { op, lanes: ty.lanes, widths, operands: 1 };
                self.push(Inst::Each { r, each: Box::new(each) }, r);
            }
        }
        Ok(to)
    }

    // ---- regions -----------------------------------------------------------------------------

    #[inline(never)]
    fn open_loop(&mut self, value: Value, len: Value, is_range: bool) -> Result<()> {
        let (first, len) = match is_range {
            true => (LO, HI),
            false => {
                let x = self.scalar(len)?;
                (ZERO, self.widened(x, self.ty(len).dtype, DType::I64))
            }
        };
        let counter = self.new_scalar();
        self.set(value, Val::Scalar(counter));
        self.open.push(self.body.len());
        self.push(Inst::Loop { counter, first, len, end: 0 }, [NONE; 4]);
        Ok(())
    }

    #[inline(never)]
    fn close(&mut self) {
        let Some(start) = self.open.pop() else { return };
        let end = self.body.len() as u32;
        if matches!(self.body[start], Inst::Loop { .. }) {
            for inst in &mut self.body[start..] {
                match inst {
                    // Those of inner loops have ends already.
                    Inst::Break { end: to, .. } if *to == OPEN => *to = end,
                    _ => {}
                }
            }
        }
        match &mut self.body[start] {
            Inst::Loop { counter, len, end: to, .. } => {
                *to = end;
                let (counter, len, start) = (*counter, *len, start as u32);
                self.push(Inst::Next { counter, len, start }, [NONE; 4]);
                self.loops.push((start + 1, end + 1));
            }
            Inst::If { end: to, .. } => *to = end,
            _ => {}
        }
    }

    // ---- registers shared --------------------------------------------------------------------

    fn finish(mut self, result: u32) -> Result<Code> {
        // What enters a loop from outside lives until it ends; inner loops end first.
        for register in self.registers.iter_mut().filter(|r| r.first != u32::MAX) {
            for &(start, end) in &self.loops {
                if register.first < start && (start..=end).contains(&register.last) {
                    register.last = end;
                }
            }
        }
        let chunks = usize::from(self.lanes).div_ceil(STEP);
        let (places, registers) = share(&self.registers);
        let first = |register: u32| places[register as usize] * chunks as u32;
        for (insts, named) in
            [(&mut self.head, &self.head_named), (&mut self.body, &self.body_named)]
        {
            for &(at, named) in named {
                place(&mut insts[at as usize], named, first);
            }
        }
        let shift = self.head.len() as u32;
        for inst in &mut self.body {
            match inst {
                Inst::Loop { end, .. } | Inst::If { end, .. } | Inst::Break { end, .. } => {
                    *end += shift;
                }
                Inst::Next { start, .. } => *start += shift,
                _ => {}
            }
        }
        // Those of the widest vectors serve all.
        for inst in &mut self.head {
            match inst {
                Inst::Vector { chunks: own, .. } => *own = chunks as u8,
                Inst::Lanes { lanes, .. } => *lanes = self.lanes,
                _ => {}
            }
        }
        let mut insts = self.head;
        insts.append(&mut self.body);
        let scalars = self.scalars as usize;
        let sizes = Sizes { chunks, scalars, registers, storage: self.storage };
        let literals = self.literals.into_iter().map(|(bits, at)| (at, bits)).collect();
        Ok(Code { insts, literals, arrays: self.arrays, sizes, result })
    }
}

/// Puts registers where they are: `named` has the numbers of those that the instruction names, in
/// the order of its fields.
fn place(inst: &mut Inst, named: [u32; 4], first: impl Fn(u32) -> u32) {
    let at = |i: usize, field: &mut u32| {
        if named[i] != NONE {
            *field = first(named[i]);
        }
    };
    match inst {
        Inst::Vector { r, .. } | Inst::Each { r, .. } | Inst::Polynomial { r, .. } => {
            r.iter_mut().enumerate().for_each(|(i, field)| at(i, field));
        }
        Inst::Lanes { to, .. } => at(0, to),
        Inst::Extract { from, .. } | Inst::Fold { from, .. } => at(0, from),
        Inst::LoadRow(a) | Inst::StoreRow(a) | Inst::Gather(a) | Inst::Scatter(a) => {
            at(0, &mut a.value);
            at(1, &mut a.index);
            at(2, &mut a.mask);
        }
        Inst::Load(_) | Inst::Store(_) | Inst::Row(_) => {}
        Inst::Add { .. } | Inst::Mul { .. } | Inst::Move { .. } | Inst::Scalar { .. } => {}
        Inst::Select { .. } | Inst::Loop { .. } | Inst::Next { .. } => {}
        Inst::If { .. } | Inst::Break { .. } => {}
    }
}

/// A place for each register among those of its width, and how many there are of each.
fn share(registers: &[Register]) -> (Vec<u32>, [u32; 4]) {
    let mut order: Vec<usize> =
        (0..registers.len()).filter(|&i| registers[i].first != u32::MAX).collect();
    order.sort_by_key(|&i| registers[i].first);
    let mut places = vec![0; registers.len()];
    let mut counts = [0; 4];
    // Those in use, and those free, of each width.
    let mut used: [Vec<(u32, u32)>; 4] = Default::default();
    let mut free: [Vec<u32>; 4] = Default::default();
    for i in order {
        let Register { width, first, last } = registers[i];
        let (used, free) = (&mut used[width as usize], &mut free[width as usize]);
        // An instruction may write what it reads last: it reads each lane before it writes it.
        used.retain(|&(until, at)| {
            let ends = until <= first;
            if ends {
                free.push(at);
            }
            !ends
        });
        let at = free.pop().unwrap_or_else(|| {
            counts[width as usize] += 1;
            counts[width as usize] - 1
        });
        used.push((last, at));
        places[i] = at;
    }
    (places, counts)
}

/// A conversion of one element.
fn cast(from: DType, to: DType) -> ScalarOp {
    scalar::cast(from, to).map_or(ScalarOp::Cast(from, to), ScalarOp::One)
}
