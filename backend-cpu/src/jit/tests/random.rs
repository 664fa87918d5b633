//! Random kernels: nests of loops and conditions, storage, vectors of all widths, guards, enough
//! live values to spill every register file. A failing seed reproduces the kernel.

use super::{Random, Way, check_way, inputs, ways};
use zyx_core::ir::{Access, Builder, Kernel, LoopKind, Op, Space, Type, Value};
use zyx_core::testing::generate;
use zyx_core::{BinaryOp, DType, Scalar, TernaryOp, UnaryOp};

/// Elements of each input, and of the stretch of each output that one parallel iteration owns.
const INPUT: i64 = 256;
const OWN: i64 = 128;

struct Generator {
    b: Builder,
    random: Random,
    bytes: usize,
    /// Values usable here, a list per open region.
    visible: Vec<Vec<Value>>,
    inputs: Vec<Value>,
    outputs: Vec<Value>,
    allocs: Vec<Vec<(Value, u32)>>,
    /// First element of the outputs that belongs to this iteration.
    own: Option<Value>,
    depth: usize,
}

/// Ops whose results are exact on every path.
const UNARY: [UnaryOp; 9] = [
    UnaryOp::Neg,
    UnaryOp::Abs,
    UnaryOp::Not,
    UnaryOp::Sqrt,
    UnaryOp::Recip,
    UnaryOp::Floor,
    UnaryOp::Ceil,
    UnaryOp::Round,
    UnaryOp::Trunc,
];

impl Generator {
    fn new(seed: u64, way: Way) -> Self {
        let mut random = Random(seed);
        let raw = random.below(4) == 0;
        let b = if raw { Builder::raw("random") } else { Builder::new("random") };
        Self {
            b,
            random,
            bytes: way.vector_bytes(),
            visible: vec![Vec::new()],
            inputs: Vec::new(),
            outputs: Vec::new(),
            allocs: vec![Vec::new()],
            own: None,
            depth: 0,
        }
    }

    fn kernel(mut self) -> Kernel {
        let trips = 1 + self.random.below(9) as i64;
        for _ in 0..1 + self.random.below(4) {
            let dtype = self.random.pick(DType::ALL);
            let it = self.b.param(dtype, INPUT as u64, Access::Read);
            self.inputs.push(it);
        }
        for _ in 0..1 + self.random.below(3) {
            let dtype = self.random.pick(DType::ALL);
            let it = self.b.param(dtype, (trips * OWN) as u64, Access::ReadWrite);
            self.outputs.push(it);
        }
        for dtype in [DType::I64, DType::F32, DType::U8] {
            let var = self.b.var(dtype, 0, 5);
            self.visible[0].push(var);
        }
        for _ in 0..1 + self.random.below(2) {
            let len = self.b.index(trips);
            let kind = self.random.pick(&[LoopKind::Parallel, LoopKind::Group, LoopKind::Serial]);
            let i = self.b.open_loop(kind, 0, len);
            let own = self.b.index(OWN);
            self.own = Some(self.b.binary(BinaryOp::Mul, i, own));
            self.region(Some(i));
            self.b.close();
        }
        self.b.finish()
    }

    /// The body of an open region.
    fn region(&mut self, counter: Option<Value>) {
        self.visible.push(counter.into_iter().collect());
        self.allocs.push(Vec::new());
        let n = match self.random.below(3) {
            0 => 3 + self.random.below(8),
            1 => 10 + self.random.below(30),
            _ => 10 + self.random.below(if self.depth == 0 { 150 } else { 20 }),
        };
        for _ in 0..n {
            self.statement();
        }
        for _ in 0..1 + self.random.below(4) {
            self.store();
        }
        self.visible.pop();
        self.allocs.pop();
    }

    fn statement(&mut self) {
        match self.random.below(40) {
            0 | 1 if self.depth < 3 => self.nested_loop(),
            2 | 3 if self.depth < 3 => self.condition(),
            4..=6 => self.store(),
            7 => self.alloc(),
            8..=11 => self.store_alloc(),
            _ => {
                let ty = self.any_type();
                let value = self.compute(ty);
                self.see(value);
            }
        }
    }

    fn see(&mut self, value: Value) {
        self.visible.last_mut().unwrap().push(value);
    }

    fn nested_loop(&mut self) {
        let len = match self.random.below(4) {
            0 => self.pick(Type::scalar(DType::I64)).map(|x| {
                let three = self.b.index(3);
                self.b.binary(BinaryOp::And, x, three)
            }),
            _ => None,
        };
        let len = len.unwrap_or_else(|| {
            let n = self.random.below(6) as i64;
            self.b.index(n)
        });
        let i = self.b.open_loop(LoopKind::Serial, 0, len);
        self.depth += 1;
        self.region(Some(i));
        self.depth -= 1;
        self.b.close();
    }

    fn condition(&mut self) {
        let cond = self.operand(Type::scalar(DType::Bool));
        self.b.open_if(cond);
        self.depth += 1;
        self.region(None);
        self.depth -= 1;
        self.b.close();
    }

    fn any_type(&mut self) -> Type {
        let common = [DType::F32, DType::I32, DType::I64, DType::F32, DType::Bool, DType::F64];
        let dtype = match self.random.below(3) {
            0 => self.random.pick(DType::ALL),
            _ => self.random.pick(&common),
        };
        let widest = (self.bytes / dtype.size()).min(64);
        let lanes = self.random.pick(&[1, 1, 2, 4, 8, 16, 32, 64]).min(widest);
        // Bools come from comparisons of wider elements mostly.
        let lanes = if dtype == DType::Bool { lanes.min(self.bytes / 4) } else { lanes };
        Type::vector(dtype, lanes as u8)
    }

    /// A visible value of this type.
    fn pick(&mut self, ty: Type) -> Option<Value> {
        let fitting: Vec<Value> =
            self.visible.iter().flatten().copied().filter(|&v| self.b.ty(v) == ty).collect();
        if fitting.is_empty() { None } else { Some(self.random.pick(&fitting)) }
    }

    fn operand(&mut self, ty: Type) -> Value {
        if self.random.below(4) > 0
            && let Some(value) = self.pick(ty)
        {
            return value;
        }
        self.source(ty)
    }

    /// A value that needs no other value of the type.
    fn source(&mut self, ty: Type) -> Value {
        let choice = self.random.below(6);
        if choice == 0 && ty.is_vector() {
            let scalar = self.operand(Type::scalar(ty.dtype));
            return self.b.splat(scalar, ty.lanes);
        }
        if choice == 1 {
            let others: Vec<Value> = self
                .visible
                .iter()
                .flatten()
                .copied()
                .filter(|&v| self.b.ty(v).lanes == ty.lanes && self.b.ty(v).dtype != ty.dtype)
                .collect();
            if !others.is_empty() {
                let x = self.random.pick(&others);
                return self.b.cast(ty.dtype, x);
            }
        }
        if choice == 2 && ty.is_vector() && ty.dtype.is_int() {
            return self.b.emit(Op::Lanes, ty);
        }
        let inputs: Vec<Value> =
            self.inputs.iter().copied().filter(|&p| self.b.ty(p).dtype == ty.dtype).collect();
        if choice > 2 && !inputs.is_empty() {
            let buf = self.random.pick(&inputs);
            return self.load(buf, ty.lanes, INPUT, None);
        }
        let x = match self.random.below(4) {
            0 => Scalar::from_bits(ty.dtype, self.random.next()),
            _ => Scalar::from_i64(ty.dtype, self.random.below(20) as i64 - 5),
        };
        let constant = self.b.constant(x);
        self.b.splat(constant, ty.lanes)
    }

    /// An index in `0 .. len`, from which `lanes` elements can be accessed.
    fn index(&mut self, lanes: u8, len: i64) -> Value {
        let x = match self.pick(Type::scalar(DType::I64)) {
            Some(x) => x,
            None => self.b.index(3),
        };
        let half = self.b.index(len / 2 - 1);
        let low = self.b.binary(BinaryOp::And, x, half);
        let most = len / 2 - i64::from(lanes);
        let offset = self.random.below(most as usize + 1) as i64;
        let offset = self.b.index(offset);
        self.b.binary(BinaryOp::Add, low, offset)
    }

    fn load(&mut self, buf: Value, lanes: u8, len: i64, base: Option<Value>) -> Value {
        let gather = lanes > 1 && usize::from(lanes) * 8 <= self.bytes && self.random.below(5) == 0;
        let mut index = if gather {
            let at = self.operand(Type::vector(DType::I64, lanes));
            let most = self.b.index(len / 2 - 1);
            self.b.binary(BinaryOp::And, at, most)
        } else {
            self.index(lanes, len)
        };
        if let Some(base) = base {
            index = self.b.binary(BinaryOp::Add, index, base);
        }
        if self.random.below(4) == 0 {
            let per_lane = self.b.ty(index).is_vector() || self.random.below(2) == 0;
            let lanes = if per_lane { lanes } else { 1 };
            if usize::from(lanes) * 4 <= self.bytes {
                let cond = self.operand(Type::vector(DType::Bool, lanes));
                index = self.b.guard(index, cond);
            }
        }
        self.b.load_vector(buf, index, lanes)
    }

    fn store(&mut self) {
        let buf = self.random.pick(&self.outputs.clone());
        let dtype = self.b.ty(buf).dtype;
        let lanes = self.random.pick(&[1, 2, 4, 8]).min(self.bytes / dtype.size()) as u8;
        let value = self.operand(Type::vector(dtype, lanes));
        let own = self.own.unwrap();
        let at = self.index(lanes, OWN);
        let mut index = self.b.binary(BinaryOp::Add, at, own);
        if self.random.below(4) == 0 {
            let lanes = self.random.pick(&[1, lanes]);
            let cond = self.operand(Type::vector(DType::Bool, lanes));
            index = self.b.guard(index, cond);
        }
        self.b.store(buf, index, value);
        if self.random.below(4) == 0 {
            let value = self.load(buf, lanes, OWN, Some(own));
            self.see(value);
        }
    }

    /// New storage, filled, so that every load finds something.
    fn alloc(&mut self) {
        let ty = self.any_type();
        let len = 1 + self.random.below(4) as u32;
        let alloc = self.b.alloc(Space::Register, ty, len);
        for i in 0..len {
            let value = self.operand(ty);
            let index = self.b.index(i.into());
            self.b.store(alloc, index, value);
        }
        self.allocs.last_mut().unwrap().push((alloc, len));
    }

    fn any_alloc(&mut self) -> Option<(Value, u32)> {
        let all: Vec<(Value, u32)> = self.allocs.iter().flatten().copied().collect();
        if all.is_empty() { None } else { Some(self.random.pick(&all)) }
    }

    fn alloc_index(&mut self, len: u32) -> Value {
        // Mostly known, so that the storage is promoted.
        if self.random.below(12) > 0 || !len.is_power_of_two() {
            let at = self.random.below(len as usize) as i64;
            return self.b.index(at);
        }
        let x = self.operand(Type::scalar(DType::I64));
        let most = self.b.index(i64::from(len) - 1);
        self.b.binary(BinaryOp::And, x, most)
    }

    /// `storage = storage op x`, or a plain store, or just a load.
    fn store_alloc(&mut self) {
        let Some((alloc, len)) = self.any_alloc() else { return };
        let ty = self.b.ty(alloc);
        let at = self.alloc_index(len);
        let old = self.b.load(alloc, at);
        let choice = self.random.below(4);
        if choice == 0 {
            self.see(old);
            return;
        }
        let new = if choice == 1 { self.operand(ty) } else { self.combine(ty, old) };
        self.b.store(alloc, at, new);
        if self.random.below(3) == 0 {
            self.see(new);
        }
        if self.random.below(3) == 0 {
            self.see(old);
        }
    }

    fn combine(&mut self, ty: Type, old: Value) -> Value {
        let x = self.operand(ty);
        if ty.dtype.is_float() && self.random.below(2) == 0 {
            let y = self.operand(ty);
            return self.b.ternary(TernaryOp::MulAdd, x, y, old);
        }
        self.binary(ty, old, x)
    }

    fn binary(&mut self, ty: Type, x: Value, y: Value) -> Value {
        let ops: Vec<BinaryOp> = BinaryOp::ALL
            .iter()
            .copied()
            .filter(|op| op.domain().contains(ty.dtype) && op.result(ty.dtype) == ty.dtype)
            .filter(|op| {
                !matches!(op, BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::LogAddExp | BinaryOp::Gcd)
            })
            .collect();
        let op = self.random.pick(&ops);
        let value = self.b.binary(op, x, y);
        if ty.dtype.is_float() && matches!(op, BinaryOp::Max | BinaryOp::Min) {
            // The sign of a zero is open; adding zero settles it.
            let zero = self.b.constant(Scalar::from_i64(ty.dtype, 0));
            return self.b.binary(BinaryOp::Add, value, zero);
        }
        value
    }

    fn compute(&mut self, ty: Type) -> Value {
        match self.random.below(12) {
            0..=4 => {
                if ty.dtype == DType::Bool && self.random.below(3) > 0 {
                    return self.comparison(ty.lanes);
                }
                let (x, y) = (self.operand(ty), self.operand(ty));
                self.binary(ty, x, y)
            }
            5 => {
                let ops: Vec<UnaryOp> =
                    UNARY.into_iter().filter(|op| op.domain().contains(ty.dtype)).collect();
                let x = self.operand(ty);
                if ops.is_empty() {
                    return x;
                }
                let op = self.random.pick(&ops);
                self.b.unary(op, x)
            }
            6 if ty.dtype.is_float() => {
                let [x, y, z] = [(); 3].map(|()| self.operand(ty));
                self.b.ternary(TernaryOp::MulAdd, x, y, z)
            }
            6 | 7 => {
                let lanes = ty.lanes;
                if ty.dtype != DType::Bool && usize::from(lanes) * 4 > self.bytes {
                    return self.operand(ty);
                }
                let cond = self.operand(Type::vector(DType::Bool, lanes));
                let (x, y) = (self.operand(ty), self.operand(ty));
                self.b.select(cond, x, y)
            }
            8 if !ty.is_vector() => {
                let vectors: Vec<Value> = self
                    .visible
                    .iter()
                    .flatten()
                    .copied()
                    .filter(|&v| self.b.ty(v).is_vector() && self.b.ty(v).dtype == ty.dtype)
                    .collect();
                if vectors.is_empty() {
                    return self.operand(ty);
                }
                let x = self.random.pick(&vectors);
                if self.random.below(2) == 0 {
                    let lane = self.random.below(self.b.ty(x).lanes.into()) as u8;
                    return self.b.emit(Op::Extract { x, lane }, ty);
                }
                let op = match ty.dtype.class() {
                    zyx_core::Class::Float => self.random.pick(&[BinaryOp::Add, BinaryOp::Mul]),
                    _ => self.random.pick(&[BinaryOp::Add, BinaryOp::Max, BinaryOp::Xor]),
                };
                self.b.emit(Op::Fold { op, x }, ty)
            }
            9 => {
                let others =
                    [DType::U8, DType::I16, DType::I32, DType::U32, DType::I64, DType::F32];
                let others: Vec<DType> = others
                    .into_iter()
                    .filter(|d| d.size() * usize::from(ty.lanes) <= self.bytes)
                    .collect();
                let Some(&_) = others.first() else { return self.operand(ty) };
                let from = self.random.pick(&others);
                let x = self.operand(ty.with(from));
                self.b.cast(ty.dtype, x)
            }
            _ => self.source(ty),
        }
    }

    fn comparison(&mut self, lanes: u8) -> Value {
        let dtypes: Vec<DType> = DType::ALL
            .iter()
            .copied()
            .filter(|d| d.size() * usize::from(lanes) <= self.bytes)
            .collect();
        let ty = Type::vector(self.random.pick(&dtypes), lanes);
        let (x, y) = (self.operand(ty), self.operand(ty));
        let op = self.random.pick(&[BinaryOp::Lt, BinaryOp::Le, BinaryOp::Eq, BinaryOp::Ne]);
        self.b.binary(op, x, y)
    }
}

fn check_seed(seed: u64, way: Way) {
    let kernel = Generator::new(seed, way).kernel();
    let mut random = Random(seed ^ 0x5eed);
    let inputs = inputs(&kernel, &mut random);
    let vars = [random.next() % 6, 2.5f32.to_bits().into(), random.next() % 6];
    check_way(&kernel, way, &inputs, &vars, &format!("seed {seed}"));
}

#[test]
fn random_kernels_agree_with_the_interpreter() {
    for way in ways() {
        for seed in 0..400 {
            check_seed(seed, way);
        }
    }
}

#[test]
#[ignore = "takes minutes; for changes of the allocator and of lowering"]
fn many_random_kernels_agree_with_the_interpreter() {
    for way in ways() {
        for seed in 400..20_000 {
            check_seed(seed, way);
        }
    }
}

/// The core's own generator: other shapes of kernels, 32-bit indices, atomics.
#[test]
fn kernels_of_the_core_generator_agree_with_the_interpreter() {
    for way in ways() {
        for seed in 0..600 {
            let options = generate::Options {
                size: 8 + (seed as usize % 5) * 20,
                max_lanes: (way.vector_bytes() / 8) as u8,
                atomics: seed % 3 == 0,
                // Nothing makes such vectors for a CPU: the interpreter runs kernels that have one.
                joined: false,
                ..generate::Options::default()
            };
            let kernel = generate::random_kernel(seed, &options);
            let inputs = generate::random_inputs(&kernel, seed);
            let vars = generate::random_vars(&kernel, seed);
            check_way(&kernel, way, &inputs, &vars, &format!("seed {seed}"));
        }
    }
}
