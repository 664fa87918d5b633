//! Tuning: which passes at which sites make a kernel fast on a device.
//!
//! [`optimize`] is the default: a fixed heuristic per kind of device (`cpu.rs`, `simt.rs`), fast
//! enough to run before every compilation, guided by the device's [`Caps`] alone. It gives a
//! [`Trace`], so what it did can be printed, cached, replayed and changed. [`cost`] estimates the
//! time of a kernel from its loops without running it.

mod block;
pub mod candidates;
pub mod check;
pub mod choice;
pub mod cost;
mod cpu;
mod joint;
mod knobs;
pub mod launches;
mod map_to_threads;
mod mma;
pub mod model;
mod parts;
mod rows;
mod scan;
pub mod search;
mod simt;
mod sources;
mod strategies;
mod tile;
mod transpose;

use crate::caps::Caps;
use crate::ir::Kernel;
use crate::passes;
use crate::passes::loops::{loops, serial_around};
use crate::passes::{Pass, Site, Step, Trace, accumulate, compensate, vectorize};
use smallvec::SmallVec;

/// The kernel made fast for a device by the default heuristic. Computations that know nothing of
/// one another are made fast each for itself.
pub fn optimize(kernel: &Kernel, caps: &Caps) -> Kernel {
    optimize_by(kernel, caps, &mut |kernel| tune(kernel, caps).kernel)
}

/// As [`optimize`], with another choice for each single computation.
pub(crate) fn optimize_by(
    kernel: &Kernel,
    caps: &Caps,
    choose: &mut dyn FnMut(&Kernel) -> Kernel,
) -> Kernel {
    joint::tune(kernel, caps, choose).unwrap_or_else(|| choose(kernel))
}

/// The steps [`optimize`] takes for a kernel of one computation.
pub fn default_trace(kernel: &Kernel, caps: &Caps) -> Trace {
    tune(kernel, caps).trace
}

/// How passes order the float sums of a kernel: the steps that do, each with its parameters, the serial loops
/// around, and the length of the loop where that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SumOrder {
    steps: Vec<Reordered>,
    /// How threads share the sums of a whole kernel. Members of a family may differ in it.
    shared: Vec<SmallVec<[i64; 2]>>,
}

type Reordered = (&'static str, SmallVec<[i64; 2]>, Option<i64>);

impl SumOrder {
    /// That of what [`optimize`] makes of a kernel, and of what becomes of it in terms of a device.
    pub fn of(kernel: &Kernel, caps: &Caps) -> SumOrder {
        let mut order = SumOrder::default();
        let mut add = |part: &Kernel| {
            if part.has_float_sums() {
                let draft = tune(part, caps);
                order.steps.extend(draft.reordered);
                order.shared.extend(draft.shared);
                let cuts = compensate::cuts(&draft.kernel).into_iter();
                order.steps.extend(cuts.map(|(len, params)| (compensate::PASS.name, params, len)));
            }
        };
        match crate::ir::joint::separate(kernel) {
            None => add(kernel),
            Some(parts) => parts.iter().for_each(|part| add(&part.kernel)),
        }
        order
    }

    /// Whether the kernel of a family, whose order this is, gives every bit that a member of this order gives.
    ///
    /// What is done to a loop of unknown length is done for each length alike. Blocks change nothing where all is
    /// one, nor do several accumulators of a loop that the member does not have: it runs once at most.
    pub fn serves(&self, member: &SumOrder) -> bool {
        let mut steps = member.steps.iter().peekable();
        let all = self.steps.iter().all(|(pass, params, len)| {
            let same = |(other, own, at): &&Reordered| {
                let alike = match (len, at, params.split_last(), own.split_last()) {
                    (None, Some(at), Some((around, params)), Some((same, own)))
                        if *pass == accumulate::PASS.name =>
                    {
                        around == same && accumulate::adds_alike(params, own, *at)
                    }
                    _ => own == params && (len.is_none() || at == len),
                };
                other == pass && alike
            };
            let found = steps.next_if(same).is_some();
            let may_lack =
                *pass == accumulate::PASS.name || *pass == compensate::PASS.name && params[0] > 0;
            found || len.is_none() && may_lack
        });
        all && steps.next().is_none()
    }

    /// Whether a kernel with longer loops, whose order this is and that adds zeros for the iterations that the member
    /// does not have, adds up in the same steps as a member of this order.
    ///
    /// Its results are the same but for the last bits of two kinds of sums: of blocks, of which it may have more, whose
    /// errors are added once more, and of several axes that threads share, of which each has other elements.
    pub fn serves_shorter(&self, member: &SumOrder) -> bool {
        let same = |((pass, params, len), (other, own, at)): (&Reordered, &Reordered)| {
            let lanes = *pass == vectorize::PASS.name || *pass == accumulate::PASS.name;
            let whole = || at.is_some_and(|at| at % params[0].max(1) == 0);
            pass == other && params == own && (!lanes || len == at || whole())
        };
        self.steps.len() == member.steps.len() && self.steps.iter().zip(&member.steps).all(same)
    }
}

pub use block::step_time;
pub use knobs::Knobs;

fn tune(kernel: &Kernel, caps: &Caps) -> Draft {
    strategies::improve(kernel, caps)
}

/// The heuristic with other parameters than its own.
fn tune_with(kernel: &Kernel, caps: &Caps, knobs: Knobs) -> Draft {
    let (trace, reordered, shared) = Default::default();
    let draft = Draft { kernel: kernel.clone(), trace, reordered, shared, knobs, used: 0 };
    if caps.simt { simt::tune(draft, caps) } else { cpu::tune(draft, caps) }
}

/// A kernel being tuned and the steps taken so far.
struct Draft {
    kernel: Kernel,
    trace: Trace,
    reordered: Vec<Reordered>,
    shared: Vec<SmallVec<[i64; 2]>>,
    /// What the heuristic is to choose.
    knobs: Knobs,
    /// The strategies that were applied, a bit each.
    used: i64,
}

impl Draft {
    /// A copy to try steps on.
    fn fork(&self) -> Draft {
        let (trace, reordered) = (self.trace.clone(), self.reordered.clone());
        let (kernel, shared) = (self.kernel.clone(), self.shared.clone());
        Draft { kernel, trace, reordered, shared, ..*self }
    }

    /// Takes one step.
    #[inline(never)]
    fn step(&mut self, pass: &Pass, site: Site) {
        if pass.reassociates_at(&self.kernel, &site) {
            match site.value {
                Some(_) => self.reorders(pass, &site),
                // A pass without parameters does the same to every kernel.
                None if !site.params.is_empty() => self.shared.push(site.params.clone()),
                None => {}
            }
        }
        // Whatever their blocks are, matrix instructions add up alike.
        if pass.name == passes::mma::PASS.name {
            self.reordered.push((pass.name, SmallVec::new(), None));
        }
        self.kernel = (pass.apply)(&self.kernel, &site);
        let pass = passes::pass(pass.name).expect("invariant: passes used are in the table");
        self.trace.steps.push(Step { pass, site });
    }

    /// Notes a step that orders sums.
    fn reorders(&mut self, pass: &Pass, site: &Site) {
        let list = loops(&self.kernel);
        let l = list.iter().find(|l| Some(l.open) == site.value);
        let mut params = site.params.clone();
        params.push(l.map_or(0, |l| serial_around(&list, l)));
        self.reordered.push((pass.name, params, l.and_then(|l| l.len)));
    }

    /// Applies a pass to the kernel as a whole.
    fn whole(&mut self, pass: &Pass) {
        self.step(pass, Site::whole());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::{DType, DTypeSet};
    use crate::passes::property_tests::{Rng, compare, devices, inputs, run};
    use crate::passes::samples;

    fn gpu(vector_bytes: usize, shared_bytes: usize, threads: usize) -> Caps {
        Caps {
            simt: true,
            max_local: 256,
            shared_bytes,
            vector_bytes,
            masked: vector_bytes > 0,
            threads,
            mma: DTypeSet::of(&[DType::F16, DType::BF16]),
            ..Caps::default()
        }
    }

    /// Kernels large enough for every branch of the heuristic for GPUs, on GPUs with and without
    /// vectors and shared storage: what comes out is legal there and computes the same.
    #[test]
    fn tuned_kernels_are_legal_on_every_gpu() {
        let kernels = [
            samples::chain(1 << 12),
            samples::sum_rows(DType::F32, 64, 1024),
            samples::sum_rows(DType::F64, 8, 512),
            samples::sum_rows(DType::F32, 24, 100),
            samples::sum_cols(DType::F32, 256, 64),
            samples::sum_cols(DType::F32, 65, 24),
            samples::softmax(16, 512),
            samples::sum_all(1000),
            samples::transpose(256, 128),
            samples::transpose(24, 40),
            samples::matmul(64, 32, 128),
            samples::matmul_columns(64, 40, 68),
            samples::windows(2, 12, 24, 40, 3),
            samples::halves(DType::BF16, [48, 40, 72]),
            samples::halves_columns(DType::F16, [30, 33, 40]),
        ];
        for vector_bytes in [0, 16] {
            for (shared_bytes, threads) in [(0, 1 << 8), (16 << 10, 1 << 8), (48 << 10, 1 << 18)] {
                let caps = gpu(vector_bytes, shared_bytes, threads);
                for kernel in &kernels {
                    let tuned = optimize(kernel, &caps);
                    if let Err(e) = crate::ir::verify_for(&tuned, &caps) {
                        panic!("{e}\n{tuned}");
                    }
                    let input = inputs(kernel, &mut Rng(3));
                    let (expected, found) = (run(kernel, &input, &[]), run(&tuned, &input, &[]));
                    if let Err(e) = compare(kernel, (&expected, &found), Some(1e-5)) {
                        panic!("{e}\n{kernel}\n{tuned}");
                    }
                }
            }
        }
    }

    /// Kernels of other sizes with the program of one that has longer loops, on GPUs of all kinds: within
    /// the last bits where they add up in the same steps.
    #[test]
    fn longer_loops_compute_what_their_members_do_on_every_gpu() {
        use crate::ir::{Family, Outline, Verified};
        type Sized = fn(i64) -> Kernel;
        let kernels: [Sized; 12] = [
            |n| samples::chain(24 * n),
            |n| samples::sum_rows(DType::F32, n, 96),
            |n| samples::sum_rows(DType::F32, 40, n),
            |n| samples::sum_cols(DType::F32, 3 * n, 64),
            |n| samples::sum_cols(DType::F32, 64, n),
            |n| samples::softmax(n, n),
            |n| samples::transpose(n, 2 * n),
            |n| samples::matmul(n, 32, 64),
            |n| samples::matmul(64, n, 40),
            |n| samples::matmul_columns(40, 24, n),
            |n| samples::windows(2, 3, 4, n, 3),
            |n| samples::halves(DType::BF16, [n, 40, 2 * n]),
        ];
        let mut alike = 0;
        for (vector_bytes, shared_bytes, threads) in
            [(0, 0, 1 << 8), (16, 16 << 10, 1 << 13), (16, 48 << 10, 1 << 18)]
        {
            let caps = gpu(vector_bytes, shared_bytes, threads);
            for (number, kernel) in kernels.iter().enumerate() {
                let outline = |n| Outline::of(&Verified::new(&kernel(n)).unwrap()).unwrap();
                // The largest first, since the interpreter takes buffers to be as long as its.
                let sizes = [48, 45, 33, 40, 47];
                let family = Family::new(&outline(48), true).with(&outline(45));
                let padded = |n| {
                    let padded = family.padded(&outline(n), "padded").unwrap();
                    Outline::with_lengths(&Verified::new(&padded).unwrap()).unwrap()
                };
                let largest = padded(48);
                let all = family.of_padded(&outline(48), &largest).unwrap();
                let general = all.kernel("general").unwrap();
                let tuned = optimize(&general, &caps);
                let order = SumOrder::of(&general, &caps);
                for n in sizes {
                    let (own, own_outline) = (kernel(n), padded(n));
                    // Maps have few lengths, but not one.
                    if own_outline.key() != largest.key() {
                        continue;
                    }
                    let member = all.member(&own_outline).unwrap();
                    let input = inputs(&own, &mut Rng(3));
                    let expected = run(&optimize(&own, &caps), &input, &[]);
                    let found = run(&tuned, &input, member.values());
                    let same = order.serves_shorter(&SumOrder::of(&own, &caps));
                    alike += usize::from(same && n != 48);
                    let most = Some(if same { 1e-7 } else { 1e-5 });
                    if let Err(e) = compare(&own, (&expected, &found), most) {
                        panic!("{number}, {n}: {e}\n{own}\n{}\n{tuned}", *general);
                    }
                }
            }
        }
        assert!(alike > 60, "{alike} alike");
    }

    #[test]
    fn tuned_samples_keep_their_meaning() {
        for kernel in samples::all() {
            let input = inputs(&kernel, &mut Rng(7));
            let expected = run(&kernel, &input, &[]);
            for caps in devices() {
                let trace = default_trace(&kernel, &caps);
                let tuned = optimize(&kernel, &caps);
                if crate::ir::joint::separate(&kernel).is_none() {
                    assert_eq!(trace.apply(&kernel).as_ref(), Some(&tuned));
                }
                let found = run(&tuned, &input, &[]);
                if let Err(e) = compare(&kernel, (&expected, &found), Some(1e-5)) {
                    panic!("{trace}: {e}\n{kernel}\n{tuned}");
                }
            }
        }
    }
}
