//! Random values: expressions over what is in scope.

use super::build::Generator;
use crate::dtype::DType;
use crate::ir::op::{Op, Order, Type, Value};
use crate::ops::{BinaryOp, TernaryOp, UnaryOp};
use crate::scalar::Scalar;

/// How deep an expression nests at most.
const DEPTH: usize = 3;

impl Generator<'_> {
    /// A dtype of the options; bool seldom.
    pub(super) fn dtype(&mut self) -> DType {
        let dtypes = self.dtypes.clone();
        match self.random.pick(&dtypes) {
            DType::Bool => self.random.pick(&dtypes),
            dtype => dtype,
        }
    }

    /// A type of the options: mostly scalar.
    pub(super) fn ty(&mut self) -> Type {
        let dtype = self.dtype();
        let most = self.options.lanes(dtype);
        let choices = [2, 4, 8, 16].into_iter().filter(|&n| n <= most).collect::<Vec<u8>>();
        if choices.is_empty() || self.random.once_in(2) {
            return Type::scalar(dtype);
        }
        Type::vector(dtype, self.random.pick(&choices))
    }

    pub(super) fn constant(&mut self, x: Scalar) -> Value {
        self.b.push(Op::Const { bits: x.bits() }, Type::scalar(x.dtype()))
    }

    pub(super) fn index(&mut self, x: i64) -> Value {
        self.constant(Scalar::from(x))
    }

    /// A value of some type, new or in scope, which is then in scope.
    pub(super) fn value(&mut self, ty: Type) -> Value {
        let value = self.expression(ty, DEPTH);
        self.pool.push(value);
        value
    }

    /// A value of some type that depends on one in scope, so that what was computed is not dead.
    pub(super) fn connected(&mut self, ty: Type) -> Value {
        let value = self.value(ty);
        if self.pool.is_empty() || self.random.once_in(4) {
            return value;
        }
        let recent = self.pool.len().saturating_sub(6);
        let from = self.pool[recent + self.random.below(self.pool.len() - recent)];
        let from = self.converted(from, ty);
        self.combined(ty, from, value)
    }

    /// A value as another type, by cast, extract and splat.
    fn converted(&mut self, mut x: Value, ty: Type) -> Value {
        let from = self.b.ty(x);
        if from.is_vector() && from.lanes != ty.lanes {
            let lane = self.random.below(from.lanes as usize) as u8;
            x = self.b.push(Op::Extract { x, lane }, Type::scalar(from.dtype));
        }
        if from.dtype != ty.dtype {
            let to = self.b.ty(x).with(ty.dtype);
            x = self.b.push(Op::Cast { x }, to);
        }
        if self.b.ty(x) == ty { x } else { self.b.push(Op::Splat { x }, ty) }
    }

    fn expression(&mut self, ty: Type, depth: usize) -> Value {
        let known: Vec<Value> = self.pool.iter().copied().filter(|&v| self.b.ty(v) == ty).collect();
        if !known.is_empty() && (depth == 0 || self.random.once_in(3)) {
            return self.random.pick(&known);
        }
        if depth == 0 || self.random.once_in(8) {
            return self.leaf(ty);
        }
        for _ in 0..4 {
            let made = match self.random.below(10) {
                0 => self.unary(ty, depth),
                1..4 => self.binary(ty, depth),
                4 => self.ternary(ty, depth),
                5 => Some(self.cast(ty, depth)),
                6 => self.bitcast(ty, depth),
                7 => self.reshape_lanes(ty, depth),
                _ => self.load_input(ty),
            };
            if let Some(value) = made {
                return value;
            }
        }
        self.leaf(ty)
    }

    /// A literal, or lane numbers.
    fn leaf(&mut self, ty: Type) -> Value {
        if ty.is_vector() && ty.dtype.is_int() && self.random.once_in(3) {
            return self.b.push(Op::Lanes, ty);
        }
        let x = self.random.scalar(ty.dtype);
        let x = self.constant(x);
        if ty.is_vector() { self.b.push(Op::Splat { x }, ty) } else { x }
    }

    fn unary(&mut self, ty: Type, depth: usize) -> Option<Value> {
        let op = self.random.pick(UnaryOp::ALL);
        if !self.options.unary(op, ty.dtype) {
            return None;
        }
        let x = self.expression(ty, depth - 1);
        Some(self.b.push(Op::Unary { op, x }, ty))
    }

    fn binary(&mut self, ty: Type, depth: usize) -> Option<Value> {
        let op = self.random.pick(BinaryOp::ALL);
        let operand = match op.is_comparison() {
            true if ty.dtype != DType::Bool => return None,
            true => ty.with(self.fitting(ty)),
            false => ty,
        };
        if !self.options.binary(op, operand.dtype) {
            return None;
        }
        let (x, y) = (self.expression(operand, depth - 1), self.expression(operand, depth - 1));
        Some(self.b.push(Op::Binary { op, x, y }, ty))
    }

    fn ternary(&mut self, ty: Type, depth: usize) -> Option<Value> {
        let op = self.random.pick(TernaryOp::ALL);
        if !self.options.ternary(op, ty.dtype) {
            return None;
        }
        let first = if op == TernaryOp::Where { ty.with(DType::Bool) } else { ty };
        let x = self.expression(first, depth - 1);
        let (y, z) = (self.expression(ty, depth - 1), self.expression(ty, depth - 1));
        Some(self.b.push(Op::Ternary { op, x, y, z }, ty))
    }

    fn cast(&mut self, ty: Type, depth: usize) -> Value {
        let from = ty.with(self.fitting(ty));
        let x = self.expression(from, depth - 1);
        if from == ty { x } else { self.b.push(Op::Cast { x }, ty) }
    }

    /// Bits of floats are not looked at where results must be exact: NaNs differ.
    fn bitcast(&mut self, ty: Type, depth: usize) -> Option<Value> {
        let exact = self.options.exact;
        let from: Vec<DType> = self
            .dtypes
            .iter()
            .copied()
            .filter(|d| d.bits() == ty.dtype.bits() && *d != ty.dtype)
            .filter(|d| !(exact && d.is_float()) && self.options.lanes(*d) >= ty.lanes)
            .collect();
        if from.is_empty() || ty.dtype == DType::Bool {
            return None;
        }
        let from = ty.with(self.random.pick(&from));
        let x = self.expression(from, depth - 1);
        Some(self.b.push(Op::Bitcast { x }, ty))
    }

    /// A vector from a scalar or from two halves, or a scalar from a vector.
    fn reshape_lanes(&mut self, ty: Type, depth: usize) -> Option<Value> {
        if ty.is_vector() {
            if self.options.joined && self.random.once_in(3) {
                let half = Type::vector(ty.dtype, ty.lanes / 2);
                let (x, y) = (self.expression(half, depth - 1), self.expression(half, depth - 1));
                return Some(self.b.push(Op::Concat { x, y }, ty));
            }
            let x = self.expression(Type::scalar(ty.dtype), depth - 1);
            return Some(self.b.push(Op::Splat { x }, ty));
        }
        let most = self.options.lanes(ty.dtype);
        if most < 2 {
            return None;
        }
        let lanes = if most >= 4 { self.random.pick(&[2, 4]) } else { 2 };
        let x = self.expression(Type::vector(ty.dtype, lanes), depth - 1);
        let op = self.random.pick(BinaryOp::ALL);
        if self.options.fold(op, ty.dtype) {
            return Some(self.b.push(Op::Fold { op, x }, ty));
        }
        let lane = self.random.below(lanes as usize) as u8;
        Some(self.b.push(Op::Extract { x, lane }, ty))
    }

    /// A dtype whose vectors may have as many lanes as `ty`.
    fn fitting(&mut self, ty: Type) -> DType {
        let dtypes: Vec<DType> =
            self.dtypes.iter().copied().filter(|&d| self.options.lanes(d) >= ty.lanes).collect();
        if dtypes.is_empty() { ty.dtype } else { self.random.pick(&dtypes) }
    }

    /// An element or vector of an input, at a random index.
    pub(super) fn load_input(&mut self, ty: Type) -> Option<Value> {
        let inputs: Vec<Value> =
            self.inputs.iter().copied().filter(|&p| self.b.ty(p).dtype == ty.dtype).collect();
        if inputs.is_empty() {
            return None;
        }
        let buf = self.random.pick(&inputs);
        let gather = ty.is_vector() && self.options.masked && self.random.once_in(3);
        let index = if gather { self.gather_index(ty.lanes) } else { self.random_index() };
        let index = self.maybe_narrow(index);
        let index = self.maybe_guarded(index, ty.lanes);
        Some(self.b.push(Op::Load { order: Order::Plain, buf, index }, ty))
    }

    /// A scalar index that is never negative and never large: counters combined, or data clamped.
    pub(super) fn random_index(&mut self) -> Value {
        let counters: Vec<Value> = self.loops.iter().map(|l| l.counter).collect();
        if counters.is_empty() || self.random.once_in(8) {
            let at = self.random.between(0, 9);
            return self.index(at);
        }
        let mut index = self.wide_counter(self.loops.len() - 1);
        for _ in 0..self.random.below(4) {
            let small = self.random.between(1, 6);
            let small = self.index(small);
            let ops = [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Min];
            let op = self.random.pick(&ops);
            let other = match op {
                BinaryOp::Add => {
                    let other = self.random.below(counters.len());
                    self.wide_counter(other)
                }
                _ => small,
            };
            index = self.index_op(op, index, other);
            if op == BinaryOp::Mul {
                // Products of products would make large buffers.
                let limit = self.index(61);
                index = self.index_op(BinaryOp::Rem, index, limit);
            }
        }
        if self.random.once_in(4) { self.clamped_data() } else { index }
    }

    /// Loaded or computed data as an index, clamped.
    fn clamped_data(&mut self) -> Value {
        let data = self.expression(Type::scalar(DType::I64), 1);
        let (low, high) = (self.index(0), self.index(11));
        let data = self.index_op(BinaryOp::Max, data, low);
        self.index_op(BinaryOp::Min, data, high)
    }

    fn gather_index(&mut self, lanes: u8) -> Value {
        let ty = Type::vector(DType::I64, lanes);
        let x = self.random_index();
        let base = self.b.push(Op::Splat { x }, ty);
        let lane = self.b.push(Op::Lanes, ty);
        let stride = self.random.between(0, 3);
        let x = self.index(stride);
        let stride = self.b.push(Op::Splat { x }, ty);
        let offset = self.b.push(Op::Binary { op: BinaryOp::Mul, x: lane, y: stride }, ty);
        self.b.push(Op::Binary { op: BinaryOp::Add, x: base, y: offset }, ty)
    }

    pub(super) fn index_op(&mut self, op: BinaryOp, x: Value, y: Value) -> Value {
        let ty = self.b.ty(x);
        self.b.push(Op::Binary { op, x, y }, ty)
    }

    /// The index as it is, or narrowed to 32 bits, which random indices always fit.
    pub(super) fn maybe_narrow(&mut self, index: Value) -> Value {
        if !self.options.narrow || !self.random.once_in(6) {
            return index;
        }
        let ty = self.b.ty(index).with(DType::I32);
        self.b.push(Op::Cast { x: index }, ty)
    }

    /// The index as it is, or guarded by a bound on it or by any condition.
    pub(super) fn maybe_guarded(&mut self, index: Value, lanes: u8) -> Value {
        if !self.random.once_in(3) {
            return index;
        }
        let per_lane = lanes > 1 && self.options.masked && !self.random.once_in(4);
        let cond = if per_lane { self.lane_bound(index, lanes) } else { self.bound(index) };
        let ty = self.b.ty(index);
        self.b.push(Op::Guard { index, cond }, ty)
    }

    /// A scalar condition: the index is below something, or anything at all.
    fn bound(&mut self, index: Value) -> Value {
        if self.b.ty(index).is_vector() || self.random.once_in(3) {
            return self.expression(Type::scalar(DType::Bool), 2);
        }
        let limit = self.random.between(1, 12);
        let y = self.constant(Scalar::from_i64(self.b.ty(index).dtype, limit));
        self.b.push(Op::Binary { op: BinaryOp::Lt, x: index, y }, Type::scalar(DType::Bool))
    }

    /// A condition per lane: the lane's index is below something, or anything at all.
    fn lane_bound(&mut self, index: Value, lanes: u8) -> Value {
        let cond = Type::vector(DType::Bool, lanes);
        if self.random.once_in(3) {
            return self.expression(cond, 2);
        }
        let dtype = self.b.ty(index).dtype;
        let ty = Type::vector(dtype, lanes);
        let mut x = index;
        if !self.b.ty(index).is_vector() {
            let base = self.b.push(Op::Splat { x: index }, ty);
            let lane = self.b.push(Op::Lanes, ty);
            x = self.b.push(Op::Binary { op: BinaryOp::Add, x: base, y: lane }, ty);
        }
        let limit = self.random.between(1, 20);
        let limit = self.constant(Scalar::from_i64(dtype, limit));
        let y = self.b.push(Op::Splat { x: limit }, ty);
        self.b.push(Op::Binary { op: BinaryOp::Lt, x, y }, cond)
    }
}
