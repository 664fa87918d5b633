//! What the threads of a warp do together: exchanges between lanes, matrix instructions.

use super::{Body, Reg, suffix};
use zyx_core::DType;
use zyx_core::codegen::matrix::{Step, is_zero};
use zyx_core::ir::mma::{Row, Shape};
use zyx_core::ir::{Op, ShuffleKind, Value};

impl Body<'_> {
    /// Lanes that the warp of this thread has.
    pub(super) fn warp(&mut self, own: &str) -> String {
        let threads: u64 = self.stage.local.iter().product();
        if threads.is_multiple_of(32) {
            return "32".to_owned();
        }
        // Threads are numbered along x first.
        let mut at = "0".to_owned();
        for axis in [2, 1, 0] {
            let i = self.position("tid", axis, DType::U32);
            let n = self.stage.local[axis].to_string();
            at = self.set(Reg::Word, "mad.lo.u32", &[&at, &n, &i]);
        }
        let before = self.set(Reg::Word, "sub.u32", &[&at, own]);
        let left = self.set(Reg::Word, "sub.u32", &[&threads.to_string(), &before]);
        self.set(Reg::Word, "min.u32", &[&left, "32"])
    }

    pub(super) fn shuffle(
        &mut self,
        kind: ShuffleKind,
        dtype: DType,
        x: &str,
        lane: &str,
    ) -> String {
        let own = self.set(Reg::Word, "mov.u32", &["%laneid"]);
        let lanes = self.warp(&own);
        let lanes = self.cast(DType::U32, DType::U64, &lanes);
        let long = self.cast(DType::U32, DType::U64, &own);
        let from = match kind {
            ShuffleKind::Index => lane.to_owned(),
            ShuffleKind::Xor => self.set(Reg::Long, "xor.b64", &[&long, lane]),
            ShuffleKind::Down => self.set(Reg::Long, "add.u64", &[&long, lane]),
        };
        let exists = self.set(Reg::Pred, "setp.lt.u64", &[&from, &lanes]);
        let from = self.set(Reg::Long, "selp.b64", &[&from, &long, &exists]);
        let from = self.set(Reg::Word, "cvt.u32.u64", &[&from]);
        let exchange = |this: &mut Self, word: &str| {
            this.set(Reg::Word, "shfl.sync.idx.b32", &[word, &from, "0x1f", "0xffffffff"])
        };
        let x = self.copy(dtype, x);
        if dtype.bits() == 64 {
            let long = self.bitcast(dtype, DType::U64, &x);
            let (low, high) = (self.fresh(Reg::Word), self.fresh(Reg::Word));
            self.line(&format!("mov.b64 {{{low}, {high}}}, {long};"));
            let (low, high) = (exchange(self, &low), exchange(self, &high));
            let long = self.set(Reg::Long, "mov.b64", &[&format!("{{{low}, {high}}}")]);
            return self.bitcast(DType::U64, dtype, &long);
        }
        if dtype == DType::Bool {
            let word = self.set(Reg::Word, "selp.u32", &["1", "0", &x]);
            let got = exchange(self, &word);
            return self.set(Reg::Pred, "setp.ne.u32", &[&got, "0"]);
        }
        let word = self.bitcast(dtype, DType::U32, &x);
        let got = exchange(self, &word);
        self.bitcast(DType::U32, dtype, &got)
    }

    /// A product of matrices of 16 x 16 that the lanes of a warp hold: two instructions for eight columns each.
    pub(super) fn mma(&mut self, row: Row, [a, b, c]: [Value; 3]) -> Vec<String> {
        let name = suffix(row.factor);
        let [a, b] = [a, b].map(|x| {
            let lanes = self.lanes(x);
            self.pack(row.factor, &lanes)
        });
        let mut sums = self.lanes(c);
        for i in [0, 2] {
            let places = [i, i + 1, i + 4, i + 5];
            let parts: &[(&str, &[usize], &[usize])] = match self.target.is_ampere() {
                true => &[("k16", &[0, 1, 2, 3], &[0, 1])],
                false => &[("k8", &[0, 1], &[0]), ("k8", &[2, 3], &[1])],
            };
            for (depth, left, right) in parts {
                let list = |all: Vec<&String>| {
                    format!("{{{}}}", all.into_iter().cloned().collect::<Vec<_>>().join(", "))
                };
                let new: Vec<String> = places.iter().map(|_| self.fresh(Reg::Float)).collect();
                let d = list(new.iter().collect());
                let left = list(left.iter().map(|&k| &a[k]).collect());
                let right = list(right.iter().map(|&k| &b[i + k]).collect());
                let before = list(places.iter().map(|&k| &sums[k]).collect());
                self.line(&format!(
                    "mma.sync.aligned.m16n8{depth}.row.col.f32.{name}.{name}.f32 {d}, {left}, {right}, {before};"
                ));
                for (place, x) in places.into_iter().zip(new) {
                    sums[place] = x;
                }
            }
        }
        sums
    }
    /// Writes what stands around wide instructions.
    pub(super) fn around(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Begin => self.line("wgmma.fence.sync.aligned;"),
                Step::End => self.line("wgmma.commit_group.sync.aligned;"),
                Step::Wait { later } => {
                    self.line(&format!("wgmma.wait_group.sync.aligned {later};"));
                }
                Step::Settled(_) => {}
            }
        }
    }

    /// What the instructions call a descriptor: where the matrix begins, that it lies in rows of 128 bytes, eight
    /// of which are 1024, and that slots of 16 bytes are in other places in each of them.
    pub(super) fn panel(&mut self, buf: Value, index: Value) -> String {
        let (base, slot) = (self.bases[&buf].clone(), self.held(index));
        let slot = self.cast(self.kernel.ty(index).dtype, DType::U32, &slot);
        let start = self.set(Reg::Word, "shr.u32", &[&base, "4"]);
        let start = self.set(Reg::Word, "or.b32", &[&start, "0x10000"]);
        let start = self.set(Reg::Word, "add.u32", &[&start, &slot]);
        let rows = self.set(Reg::Word, "mov.u32", &["0x40000040"]);
        self.set(Reg::Long, "mov.b64", &[&format!("{{{start}, {rows}}}")])
    }

    /// A wide product: 64 rows, 64 columns, 16 steps, of 128 threads.
    pub(super) fn wide(&mut self, row: Row, value: Value, [a, b, c]: [Value; 3]) -> Vec<String> {
        let (steps, goes_on) = self.chains.extend(value, c);
        let (begin, before) = match steps.split_last() {
            Some((last, before)) => (Some(*last), before),
            None => (None, &[][..]),
        };
        self.around(before);
        let zero = is_zero(self.kernel, c);
        let n = usize::from(self.kernel.ty(c).lanes);
        let sums: Vec<String> = if zero {
            (0..n).map(|_| self.fresh(Reg::Float)).collect()
        } else {
            let lanes = self.lanes(c);
            match goes_on {
                true => lanes,
                false => lanes.iter().map(|x| self.copy(DType::F32, x)).collect(),
            }
        };
        self.around(begin.as_slice());
        let keep = self.set(Reg::Pred, "setp.ne.u32", &[if zero { "0" } else { "1" }, "0"]);
        let (name, all, right) = (suffix(row.factor), sums.join(", "), self.held(b));
        let turned = u8::from(row.shape == Shape::Turned);
        let (left, signs) = match self.kernel.op(a) {
            Op::Panel { .. } => (self.held(a), "1, 1, 0"),
            _ => {
                let lanes = self.lanes(a);
                (format!("{{{}}}", self.pack(row.factor, &lanes).join(", ")), "1, 1")
            }
        };
        let instruction = format!("wgmma.mma_async.sync.aligned.m64n64k16.f32.{name}.{name}");
        self.line(&format!("{instruction} {{{all}}}, {left}, {right}, {keep}, {signs}, {turned};"));
        sums
    }
}
