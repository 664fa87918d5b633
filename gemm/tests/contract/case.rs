//! One contraction with data, and the naive sum that it has to give.

use half::{bf16, f16};
use std::sync::atomic::{AtomicUsize, Ordering};
use zyx_gemm::memory::Block;
use zyx_gemm::pool::Pool;
use zyx_gemm::{Acc, DType, Dim, Extensions, Isa, Options, Plan, Spec, Tile};

/// SplitMix64.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// In -1..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// Numbers of a type known at run time, so that one instance of the tests serves all types.
#[derive(Clone)]
pub(crate) struct Numbers {
    dtype: DType,
    /// As many bytes as needed, aligned for every type.
    pub(crate) words: Vec<u64>,
}

impl Numbers {
    pub(crate) fn random(dtype: DType, len: usize, rng: &mut Rng) -> Numbers {
        let mut numbers = Numbers { dtype, words: vec![0; (len * dtype.size()).div_ceil(8)] };
        (0..len).for_each(|i| {
            let integer = rng.next();
            numbers.set(
                i,
                match dtype {
                    DType::F16 | DType::BF16 | DType::F32 | DType::F64 => rng.unit(),
                    // The extremes are as frequent as all others.
                    DType::I8 if integer & 0x100 != 0 => [-128.0, 127.0][(integer & 1) as usize],
                    DType::U8 if integer & 0x100 != 0 => [0.0, 255.0][(integer & 1) as usize],
                    DType::I8 => f64::from(integer as i8),
                    DType::U8 => f64::from(integer as u8),
                    DType::I32 => f64::from(integer as i32),
                },
            );
        });
        numbers
    }

    pub(crate) fn set(&mut self, i: usize, x: f64) {
        assert!((i + 1) * self.dtype.size() <= self.words.len() * 8);
        let p = self.words.as_mut_ptr();
        // SAFETY: element i is inside the words, exclusively borrowed, and aligned for its type.
        unsafe {
            match self.dtype {
                DType::F16 => p.cast::<f16>().add(i).write(f16::from_f64(x)),
                DType::BF16 => p.cast::<bf16>().add(i).write(bf16::from_f64(x)),
                DType::F32 => p.cast::<f32>().add(i).write(x as f32),
                DType::F64 => p.cast::<f64>().add(i).write(x),
                DType::I8 => p.cast::<i8>().add(i).write(x as i8),
                DType::U8 => p.cast::<u8>().add(i).write(x as u8),
                DType::I32 => p.cast::<i32>().add(i).write(wrap(x)),
            }
        }
    }

    pub(crate) fn get(&self, i: usize) -> f64 {
        assert!((i + 1) * self.dtype.size() <= self.words.len() * 8);
        let p = self.words.as_ptr();
        // SAFETY: element i is inside the words and was initialised.
        unsafe {
            match self.dtype {
                DType::F16 => p.cast::<f16>().add(i).read().to_f64(),
                DType::BF16 => p.cast::<bf16>().add(i).read().to_f64(),
                DType::F32 => p.cast::<f32>().add(i).read().into(),
                DType::F64 => p.cast::<f64>().add(i).read(),
                DType::I8 => p.cast::<i8>().add(i).read().into(),
                DType::U8 => p.cast::<u8>().add(i).read().into(),
                DType::I32 => p.cast::<i32>().add(i).read().into(),
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.words.len() * 8 / self.dtype.size()
    }

    /// The address of element `i`.
    pub(crate) fn at(&mut self, i: usize) -> *mut u8 {
        self.words.as_mut_ptr().cast::<u8>().wrapping_add(i * self.dtype.size())
    }

    /// Half the distance from 1 to the next larger number, and the least magnitude counted on.
    pub(crate) fn rounding(&self) -> (f64, f64) {
        match self.dtype {
            DType::F16 => (1.0 / 2048.0, 3e-8),
            DType::BF16 => (1.0 / 256.0, 1e-40),
            DType::F32 => (f64::from(f32::EPSILON) / 2.0, 1e-45),
            DType::F64 => (f64::EPSILON / 2.0, 0.0),
            DType::I8 | DType::U8 | DType::I32 => (0.0, 0.0),
        }
    }
}

/// The number of 32 bits that an integer, of which `x` has all digits, is modulo 2^32.
fn wrap(x: f64) -> i32 {
    x as i64 as i32
}

/// Runs with an operand packed beforehand.
pub(crate) static PREPACKED: AtomicUsize = AtomicUsize::new(0);

const ISAS: [Isa; 4] = [Isa::Portable, Isa::Neon, Isa::Avx2, Isa::Avx512];

pub(crate) fn available() -> impl Iterator<Item = Isa> {
    ISAS.into_iter().filter(|isa| isa.is_available())
}

/// All offsets of a group, last dimension fastest.
pub(crate) fn offsets(dims: &[Dim], stride: fn(&Dim) -> isize) -> Vec<isize> {
    dims.iter().fold(vec![0], |outer, d| {
        outer.iter().flat_map(|o| (0..d.len as isize).map(move |i| o + i * stride(d))).collect()
    })
}

/// One contraction with data; `starts` are the positions of the elements at offset zero.
pub(crate) struct Case {
    pub(crate) spec: Spec,
    pub(crate) operands: [Numbers; 3],
    pub(crate) starts: [usize; 3],
}

/// Where the element at offset zero is, and how many elements there are.
fn extent(spec: &Spec, stride: fn(&Dim) -> isize) -> (usize, usize) {
    let (mut low, mut high) = (0, 0);
    for d in [&spec.batch, &spec.m, &spec.n, &spec.k].into_iter().flatten() {
        let reach = stride(d) * (d.len as isize - 1).max(0);
        low += reach.min(0);
        high += reach.max(0);
    }
    (-low as usize, (high - low) as usize + 1)
}

impl Case {
    pub(crate) fn new(spec: Spec, rng: &mut Rng) -> Case {
        let extents = [extent(&spec, |d| d.a), extent(&spec, |d| d.b), extent(&spec, |d| d.c)];
        let operands = [
            Numbers::random(spec.a, extents[0].1, rng),
            Numbers::random(spec.b, extents[1].1, rng),
            Numbers::random(spec.c, extents[2].1, rng),
        ];
        Case { spec, operands, starts: extents.map(|e| e.0) }
    }

    /// Exact C and its error bound at every element; elements no index names keep a bound of 0.
    pub(crate) fn expected(&self, accumulate: bool) -> (Vec<f64>, Vec<f64>) {
        let s = &self.spec;
        let (ba, bb, bc) =
            (offsets(&s.batch, |d| d.a), offsets(&s.batch, |d| d.b), offsets(&s.batch, |d| d.c));
        let (ma, mc) = (offsets(&s.m, |d| d.a), offsets(&s.m, |d| d.c));
        let (nb, nc) = (offsets(&s.n, |d| d.b), offsets(&s.n, |d| d.c));
        let (ka, kb) = (offsets(&s.k, |d| d.a), offsets(&s.k, |d| d.b));
        let at = |start: usize, offset: isize| start.checked_add_signed(offset).unwrap();
        let [a, b, mut want] = [0, 1, 2].map(|i| {
            (0..self.operands[i].len()).map(|j| self.operands[i].get(j)).collect::<Vec<_>>()
        });
        let mut bound = vec![0.0; want.len()];
        let eps = match s.acc {
            Acc::F32 => f64::from(f32::EPSILON) / 2.0,
            Acc::F64 => f64::EPSILON / 2.0,
            Acc::I32 => 0.0,
        };
        for i in 0..bc.len() {
            for (ma, mc) in ma.iter().zip(&mc) {
                for (nb, nc) in nb.iter().zip(&nc) {
                    let (mut sum, mut magnitude) = (0.0, 0.0);
                    for (ka, kb) in ka.iter().zip(&kb) {
                        let x = a[at(self.starts[0], ba[i] + ma + ka)];
                        let product = x * b[at(self.starts[1], bb[i] + nb + kb)];
                        sum += product;
                        magnitude += product.abs();
                    }
                    let c = at(self.starts[2], bc[i] + mc + nc);
                    if accumulate {
                        sum += want[c];
                        magnitude += want[c].abs();
                    }
                    if s.acc == Acc::I32 {
                        // Integers below 2^53 are exact here.
                        (want[c], bound[c]) = (wrap(sum).into(), 0.0);
                        continue;
                    }
                    let (half, tiny) = self.operands[2].rounding();
                    // The reference itself rounds like an f64 accumulator.
                    let sums = (ka.len() + 3) as f64 * (eps + f64::EPSILON) * magnitude;
                    (want[c], bound[c]) = (sum, sums + half * (sum.abs() + sums) + tiny);
                }
            }
        }
        (want, bound)
    }

    pub(crate) fn compare(&self, got: &Numbers, want: &(Vec<f64>, Vec<f64>), what: &str) {
        for (i, (want, bound)) in want.0.iter().zip(&want.1).enumerate() {
            let error = (got.get(i) - want).abs();
            assert!(
                error <= *bound,
                "{what}: element {i} is {}, not {want}, error {error:e} over {bound:e}\n{:?}",
                got.get(i),
                self.spec,
            );
        }
    }

    /// C after a run into a copy of C, or of whatever an epilogue made of it.
    pub(crate) fn run(
        &self,
        plan: &Plan,
        pool: &Pool,
        accumulate: bool,
        epilogue: Option<&(dyn Fn(Tile, *mut u8) + Sync)>,
    ) -> Numbers {
        let [mut a, mut b, mut c] = self.operands.clone();
        let at = (a.at(self.starts[0]), b.at(self.starts[1]), c.at(self.starts[2]));
        let address = at.2 as usize;
        let call = |tile: Tile| epilogue.iter().for_each(|f| f(tile, address as *mut u8));
        let call = epilogue.is_some().then_some(&call as &(dyn Fn(Tile) + Sync));
        // SAFETY: the numbers cover all offsets of the specification, C is a copy of ours.
        unsafe { plan.run(pool, (at.0.cast_const(), at.1.cast_const(), at.2), accumulate, call) }
            .unwrap();
        c
    }

    /// Runs on every instruction set, with and without threads, accumulation, prologue and epilogue.
    pub(crate) fn check(&self, pool: &Pool) {
        for accumulate in [false, true] {
            let want = self.expected(accumulate);
            for (isa, extensions) in self.levels() {
                for threads in [1, pool.n_threads()] {
                    for epilogue in [false, true] {
                        let options = Options {
                            isa: Some(isa),
                            threads: Some(threads),
                            epilogue,
                            computed: None,
                            extensions,
                        };
                        let plan = Plan::new(&self.spec, &options).unwrap();
                        let c = self.run(&plan, pool, accumulate, None);
                        let what = format!(
                            "{isa:?} {threads} threads, {accumulate}, {epilogue}, {extensions:?}"
                        );
                        self.compare(&c, &want, &what);
                        if !accumulate {
                            self.check_prepacked(pool, (&plan, &options), &c);
                        }
                    }
                }
                self.check_prologues(pool, (isa, accumulate), &want);
                if !accumulate {
                    self.check_epilogue(pool, (isa, extensions), &want);
                }
            }
        }
    }

    /// How many elements there are of A, B and C.
    #[cfg(unix)]
    pub(crate) fn lens(&self) -> [usize; 3] {
        [extent(&self.spec, |d| d.a), extent(&self.spec, |d| d.b), extent(&self.spec, |d| d.c)]
            .map(|extent| extent.1)
    }

    /// Plain options.
    #[cfg(unix)]
    pub(crate) fn options(&self, isa: Isa, extensions: Extensions, threads: usize) -> Options {
        let (isa, threads) = (Some(isa), Some(threads));
        Options { isa, threads, epilogue: false, computed: None, extensions }
    }

    /// The instruction sets of this machine, for bytes with all of their extensions, some and none.
    pub(crate) fn levels(&self) -> impl Iterator<Item = (Isa, Extensions)> {
        let n = if self.spec.acc == Acc::I32 { 3 } else { 1 };
        let some = [Extensions::All, Extensions::Vectors, Extensions::None].into_iter().take(n);
        available().flat_map(move |isa| some.clone().map(move |extensions| (isa, extensions)))
    }

    /// With an operand packed beforehand, results are the same to the last bit.
    fn check_prepacked(&self, pool: &Pool, (plan, options): (&Plan, &Options), want: &Numbers) {
        for side in 0..2 {
            let Some(plan) = plan.prepacked(&self.spec, options, side) else { continue };
            let copy = Block::new(plan.packed_bytes()).unwrap();
            let [mut a, mut b, mut c] = self.operands.clone();
            let mut at = [a.at(self.starts[0]), b.at(self.starts[1]), c.at(self.starts[2])];
            // SAFETY: the numbers cover all offsets of the specification, the block the copy.
            unsafe {
                plan.pack(pool, at[side], copy.as_ptr());
                at[side] = copy.as_ptr();
                plan.run(pool, (at[0], at[1], at[2]), false, None).unwrap();
            }
            assert!(c.words == want.words, "{side} prepacked: {plan:?}\n{:?}", self.spec);
            PREPACKED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An epilogue that writes what it is given must see every element once and give the result.
    pub(crate) fn check_epilogue(
        &self,
        pool: &Pool,
        (isa, extensions): (Isa, Extensions),
        want: &(Vec<f64>, Vec<f64>),
    ) {
        let options = Options {
            isa: Some(isa),
            threads: Some(pool.n_threads()),
            epilogue: true,
            computed: None,
            extensions,
        };
        let plan = Plan::new(&self.spec, &options).unwrap();
        let s = &self.spec;
        let (bc, mc, nc) =
            (offsets(&s.batch, |d| d.c), offsets(&s.m, |d| d.c), offsets(&s.n, |d| d.c));
        let seen: Vec<AtomicUsize> =
            (0..self.operands[2].len()).map(|_| AtomicUsize::new(0)).collect();
        let write = |tile: Tile, c: *mut u8| {
            for i in 0..tile.m_len {
                for j in 0..tile.n_len {
                    let at = i * tile.row_stride + j;
                    let offset = bc[tile.batch] + mc[tile.m0 + i] + nc[tile.n0 + j];
                    let index = self.starts[2].checked_add_signed(offset).unwrap();
                    seen[index].fetch_add(1, Ordering::Relaxed);
                    // SAFETY: the tile holds that many accumulators of the type asked for, and the
                    // element, whose index was just checked, is visited by one thread only.
                    unsafe {
                        let x = match s.acc {
                            Acc::F32 => f64::from(*tile.ptr.cast::<f32>().add(at)),
                            Acc::F64 => *tile.ptr.cast::<f64>().add(at),
                            Acc::I32 => f64::from(*tile.ptr.cast::<i32>().add(at)),
                        };
                        match s.c {
                            DType::F16 => *c.cast::<f16>().offset(offset) = f16::from_f64(x),
                            DType::BF16 => *c.cast::<bf16>().offset(offset) = bf16::from_f64(x),
                            DType::F32 => *c.cast::<f32>().offset(offset) = x as f32,
                            DType::F64 => *c.cast::<f64>().offset(offset) = x,
                            DType::I32 => *c.cast::<i32>().offset(offset) = wrap(x),
                            DType::I8 | DType::U8 => unreachable!("no sums of bytes are bytes"),
                        }
                    }
                }
            }
        };
        let c = self.run(&plan, pool, false, Some(&write));
        self.compare(&c, want, &format!("{isa:?} epilogue"));
        let total: usize = seen.iter().map(|n| n.load(Ordering::Relaxed)).sum();
        assert_eq!(total, bc.len() * mc.len() * nc.len());
    }
}
