//! Operands that a prologue computes block by block.

use crate::case::{Case, Numbers, offsets};
use zyx_gemm::pool::Pool;
use zyx_gemm::{
    Acc, Dim, Epilogue, Extensions, Fused, Isa, OperandBlock, Options, Plan, WHOLE_RUN,
};

impl Case {
    /// Each operand that a prologue may compute, computed by one that looks its elements up.
    pub(crate) fn check_prologues(
        &self,
        pool: &Pool,
        (isa, accumulate): (Isa, bool),
        want: &(Vec<f64>, Vec<f64>),
    ) {
        for side in [0, 1] {
            if [self.spec.a, self.spec.b][side] != self.spec.acc.dtype() {
                continue;
            }
            // Half of the combinations: the block sizes differ by threads, what is added does not.
            let threads = if accumulate { 1 } else { pool.n_threads() };
            let options = Options {
                isa: Some(isa),
                threads: Some(threads),
                computed: Some(side),
                extensions: Extensions::All,
                epilogue: false,
            };
            let plan = Plan::new(&self.spec, &options).unwrap();
            let c = self.run_computed(&plan, pool, side, accumulate);
            let what = format!("{isa:?} {threads} threads, {accumulate}, computed {side}");
            self.compare(&c, want, &what);
        }
    }

    /// C after a run in which an operand is read by the prologue only.
    fn run_computed(&self, plan: &Plan, pool: &Pool, side: usize, accumulate: bool) -> Numbers {
        let [mut a, mut b, mut c] = self.operands.clone();
        let mut at = [a.at(self.starts[0]), b.at(self.starts[1]), c.at(self.starts[2])];
        at[side] = std::ptr::null_mut();
        let compute = self.prologue(side);
        let fused = Fused { prologue: Some(&compute), epilogue: None::<&Epilogue<'_>> };
        // SAFETY: the numbers cover all offsets of the specification but for the operand that is
        // not accessed, C is a copy of ours.
        unsafe { plan.run_fused(pool, (at[0], at[1], at[2]), accumulate, fused) }.unwrap();
        c
    }

    /// Writes the elements of an operand that make a block, which has to be inside it.
    fn prologue(&self, side: usize) -> impl Fn(OperandBlock) + Sync {
        let spec = &self.spec;
        let stride = [|d: &Dim| d.a, |d: &Dim| d.b][side];
        let batch = offsets(&spec.batch, stride);
        let rows = offsets([&spec.m, &spec.n][side], stride);
        let steps = offsets(&spec.k, stride);
        let run = spec.k.last().map_or(1, |d| d.len);
        move |block: OperandBlock| {
            assert!(block.rows > 0 && block.runs > 0 && block.steps > 0);
            if run <= WHOLE_RUN {
                assert_eq!((block.step0, block.steps), (0, run));
            } else {
                assert!(block.step0 + block.steps <= run);
                assert!(block.runs == 1 || block.steps == run);
            }
            for i in 0..block.rows {
                for r in 0..block.runs {
                    for j in 0..block.steps {
                        let k = (block.run0 + r) * run + block.step0 + j;
                        let offset = batch[block.batch] + rows[block.row0 + i] + steps[k];
                        let element = self.starts[side].checked_add_signed(offset).unwrap();
                        let x = self.operands[side].get(element);
                        let at = i * block.row_stride + r * block.steps + j;
                        // SAFETY: the block has room for these accumulators and is this thread's.
                        unsafe {
                            match spec.acc {
                                Acc::F32 => *block.ptr.cast::<f32>().add(at) = x as f32,
                                Acc::F64 => *block.ptr.cast::<f64>().add(at) = x,
                                Acc::I32 => unreachable!("no operand is of the type of its sums"),
                            }
                        }
                    }
                }
            }
        }
    }
}
